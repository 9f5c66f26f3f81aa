//! Links in Markdown lead somewhere, nothing names a machine, and CI runs the README's tests.

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
                // The site has nothing but these.
                if file.starts_with("docs/")
                    && target.matches("../").count() >= file.matches('/').count()
                {
                    findings.push(format!("{file}:{line}: {target} is no page of the site"));
                }
            }
        }
    }
}

/// The site of the documentation has all of its pages.
pub(super) fn check_summary(root: &Path, tracked: &[String], findings: &mut Vec<String>) {
    const SUMMARY: &str = "docs/SUMMARY.md";
    let summary = super::read(root, SUMMARY).unwrap_or_default();
    let pages = tracked.iter().filter_map(|file| file.strip_prefix("docs/"));
    for page in pages.filter(|page| page.ends_with(".md")) {
        if page != "SUMMARY.md" && !summary.contains(&format!("]({page})")) {
            findings.push(format!("{SUMMARY}: {page} is missing"));
        }
    }
}

/// The command after "Test it:" in the README is a line of `.ci/run`.
pub(super) fn check_test_command(root: &Path, findings: &mut Vec<String>) {
    let readme = super::read(root, "README.md").unwrap_or_default();
    let script = super::read(root, ".ci/run").unwrap_or_default();
    let command = test_command(&readme);
    if !command.is_some_and(|command| script.lines().any(|line| line == command)) {
        findings.push(".ci/run: it must run the test command of the README as it stands".into());
    }
}

fn test_command(readme: &str) -> Option<&str> {
    let (_, rest) = readme.split_once("Test it:")?;
    let (_, block) = rest.split_once("```sh\n")?;
    block.lines().next()
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
    fn the_test_command_is_the_first_line_of_its_block() {
        let readme = "Run it:\n```sh\na\n```\nTest it:\n\n```sh\ncargo test\n```\n";
        assert_eq!(test_command(readme), Some("cargo test"));
        assert_eq!(test_command("nothing"), None);
    }

    #[test]
    fn finds_relative_links_only() {
        let text = "[a](b.md#x) [c](https://d)\n```\n[e](f)\n```\n[g](h/i.md)";
        assert_eq!(links(text), [(1, "b.md".to_string()), (5, "h/i.md".to_string())]);
    }
}
