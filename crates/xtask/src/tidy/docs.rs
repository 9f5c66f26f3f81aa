//! Links in Markdown lead somewhere, and nothing names a machine.

use std::path::Path;

/// Texts that belong to one machine or to the place where this was written. Split, so that this
/// file does not find itself.
const FORBIDDEN: &[&[&str]] =
    &[&["/ro", "ot/"], &["/wo", "rk/"], &["../sha", "red"], &["index.crates", ".io"]];

pub(super) fn check(root: &Path, tracked: &[String], findings: &mut Vec<String>) {
    for file in tracked {
        let Some(text) = super::read(root, file) else { continue };
        for (i, line) in text.lines().enumerate() {
            for parts in FORBIDDEN {
                if line.contains(&parts.concat()) && file != "Cargo.lock" {
                    findings.push(format!("{file}:{}: names a machine's path or host", i + 1));
                }
            }
        }
        if file.ends_with(".md") {
            let folder = Path::new(file).parent().unwrap_or(Path::new(""));
            for (line, target) in links(&text) {
                if !root.join(folder).join(&target).exists() {
                    findings.push(format!("{file}:{line}: dead link to {target}"));
                }
            }
        }
    }
}

/// Relative targets of inline links, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    let mut code = false;
    for (i, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if code {
            continue;
        }
        for rest in line.split("](").skip(1) {
            let Some(target) = rest.split(')').next() else { continue };
            let target = target.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                out.push((i + 1, target.to_string()));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_relative_links_only() {
        let text = "[a](b.md#x) [c](https://d)\n```\n[e](f)\n```\n[g](h/i.md)";
        assert_eq!(links(text), [(1, "b.md".to_string()), (5, "h/i.md".to_string())]);
    }
}
