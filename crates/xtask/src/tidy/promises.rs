//! The tests that `docs/promises.md` and its like name exist.
//!
//! In the last column of their tables stand files below `crates/` and, behind a colon, functions in
//! them, or scripts, all in backticks.

use std::path::Path;

const PAGES: [&str; 2] = ["docs/promises.md", "docs/promises-interleaving.md"];
/// What the rows above tables begin with.
const HEADS: [&str; 2] = ["| promise ", "| | promise "];

pub(super) fn check(root: &Path, findings: &mut Vec<String>) {
    let read = |file: &str| super::read(root, file);
    for page in PAGES {
        let text = read(page).unwrap_or_default();
        check_text((page, &text), &read, findings);
    }
}

fn check_text(
    (page, text): (&str, &str),
    read: &dyn Fn(&str) -> Option<String>,
    findings: &mut Vec<String>,
) {
    let rows = text.lines().enumerate().filter(|(_, line)| line.starts_with("| "));
    let mut named = 0;
    for (n, line) in rows {
        let at = format!("{page}:{}", n + 1);
        let cell = line.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        let mut file: Option<(&str, Option<String>)> = None;
        let mut is_proven = false;
        // Every other piece stands in backticks.
        for word in cell.split('`').skip(1).step_by(2) {
            if let Some(script) = word.split(' ').next().filter(|s| s.starts_with("scripts/")) {
                is_proven = true;
                if read(script).is_none() {
                    findings.push(format!("{at}: there is no {script}"));
                }
                continue;
            }
            if word.ends_with(".rs") {
                is_proven = true;
                let text = read(&format!("crates/{word}"));
                if text.is_none() {
                    findings.push(format!("{at}: there is no crates/{word}"));
                }
                file = Some((word, text));
                continue;
            }
            named += 1;
            let Some((name, text)) = &file else {
                findings.push(format!("{at}: `{word}` is in no file"));
                continue;
            };
            let call = format!("fn {word}()");
            if text.as_ref().is_some_and(|text| !text.contains(&call)) {
                findings.push(format!("{at}: {name} has no test {word}"));
            }
        }
        if !is_proven && !HEADS.iter().any(|head| line.starts_with(head)) {
            findings.push(format!("{at}: a promise without a test"));
        }
    }
    if named == 0 {
        findings.push(format!("{page}: it names no test"));
    }
}

#[cfg(test)]
mod tests {
    use super::check_text;

    fn found(page: &str) -> Vec<String> {
        let read = |file: &str| match file {
            "crates/kv/tests/a.rs" => Some("fn one() {}".to_string()),
            "scripts/bench" => Some(String::new()),
            _ => None,
        };
        let mut findings = Vec::new();
        check_text(("docs/promises.md", page), &read, &mut findings);
        findings
    }

    #[test]
    fn tests_that_are_gone_are_found() {
        let head = "| promise | tests |\n|---|---|\n";
        assert_eq!(found(&format!("{head}| it `holds` | `kv/tests/a.rs`: `one` |")), [""; 0]);
        let gone = found(&format!("{head}| a | `kv/tests/a.rs`: `one`, `two`; `b.rs`: `x` |"));
        assert_eq!(
            gone,
            [
                "docs/promises.md:3: kv/tests/a.rs has no test two",
                "docs/promises.md:3: there is no crates/b.rs"
            ]
        );
        assert_eq!(found(&format!("{head}| a | by hand |")).len(), 2);
        assert_eq!(found("").len(), 1);
    }

    #[test]
    fn scripts_that_are_gone_are_found() {
        let line =
            "| | promise | tests |\n| P1 | a | `scripts/bench 5`, `kv/tests/a.rs`: `one` |\n";
        assert_eq!(found(line), [""; 0]);
        let gone = found(&format!("{line}| P2 | b | `scripts/other 7` |"));
        assert_eq!(gone, ["docs/promises.md:3: there is no scripts/other"]);
    }
}
