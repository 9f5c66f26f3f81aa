//! The tests that `docs/promises.md` names exist.
//!
//! In the last column of its tables stand files below `crates/` and, behind a colon, functions in
//! them, all in backticks.

use std::path::Path;

const PAGE: &str = "docs/promises.md";

pub(super) fn check(root: &Path, findings: &mut Vec<String>) {
    let page = super::read(root, PAGE).unwrap_or_default();
    let read = |file: &str| super::read(root, &format!("crates/{file}"));
    check_text(&page, &read, findings);
}

fn check_text(page: &str, read: &dyn Fn(&str) -> Option<String>, findings: &mut Vec<String>) {
    let rows = page.lines().enumerate().filter(|(_, line)| line.starts_with("| "));
    let mut named = 0;
    for (n, line) in rows {
        let cell = line.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        let mut file: Option<(&str, Option<String>)> = None;
        // Every other piece stands in backticks.
        for word in cell.split('`').skip(1).step_by(2) {
            if word.ends_with(".rs") {
                let text = read(word);
                if text.is_none() {
                    findings.push(format!("{PAGE}:{}: there is no crates/{word}", n + 1));
                }
                file = Some((word, text));
                continue;
            }
            named += 1;
            let Some((name, text)) = &file else {
                findings.push(format!("{PAGE}:{}: `{word}` is in no file", n + 1));
                continue;
            };
            let call = format!("fn {word}()");
            if text.as_ref().is_some_and(|text| !text.contains(&call)) {
                findings.push(format!("{PAGE}:{}: {name} has no test {word}", n + 1));
            }
        }
        if file.is_none() && !line.starts_with("| promise ") {
            findings.push(format!("{PAGE}:{}: a promise without a test", n + 1));
        }
    }
    if named == 0 {
        findings.push(format!("{PAGE}: it names no test"));
    }
}

#[cfg(test)]
mod tests {
    use super::check_text;

    fn found(page: &str) -> Vec<String> {
        let read = |file: &str| (file == "kv/tests/a.rs").then(|| "fn one() {}".to_string());
        let mut findings = Vec::new();
        check_text(page, &read, &mut findings);
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
}
