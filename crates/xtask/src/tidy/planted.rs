//! The bugs of `scripts/planted-bugs.txt` can still be planted: each text stands in its file once.

use std::path::Path;

const LIST: &str = "scripts/planted-bugs.txt";

pub(super) fn check(root: &Path, findings: &mut Vec<String>) {
    let list = super::read(root, LIST).unwrap_or_default();
    let read = |file: &str| super::read(root, &format!("crates/{file}"));
    check_text(&list, &read, findings);
}

fn check_text(list: &str, read: &dyn Fn(&str) -> Option<String>, findings: &mut Vec<String>) {
    let (mut name, mut file, mut bugs) = ("", "", 0);
    let mut text: Option<Vec<&str>> = None;
    for line in list.lines() {
        let said = line.strip_prefix("@@ ").map(|said| said.split_once(' ').unwrap_or((said, "")));
        match said {
            Some(("bug", of)) => {
                (name, bugs) = (of, bugs + 1);
            }
            Some(("in", of)) => file = of,
            Some(("text", _)) => text = Some(Vec::new()),
            Some(("becomes", _)) => {
                let text = text.take().unwrap_or_default().join("\n");
                let times = read(file).map(|source| source.matches(&text).count());
                match times {
                    Some(1) => {}
                    Some(n) => findings.push(format!("{LIST}: {name}: {n} times in crates/{file}")),
                    None => findings.push(format!("{LIST}: {name}: there is no crates/{file}")),
                }
            }
            Some(_) => {}
            None => text.iter_mut().for_each(|lines| lines.push(line)),
        }
    }
    if bugs == 0 {
        findings.push(format!("{LIST}: no bugs"));
    }
}

#[cfg(test)]
mod tests {
    use super::check_text;

    fn found(list: &str) -> Vec<String> {
        let read = |file: &str| (file == "a.rs").then(|| "one\ntwo\ntwo\n".to_string());
        let mut findings = Vec::new();
        check_text(list, &read, &mut findings);
        findings
    }

    #[test]
    fn texts_that_are_gone_are_found() {
        let bug = |file: &str, text: &str| {
            let head = format!("# a part\n@@ bug b\n@@ in {file}\n@@ tests t\n");
            format!("{head}@@ text\n{text}\n@@ becomes\nx\n@@ end\n")
        };
        assert_eq!(found(&bug("a.rs", "one\n")), [""; 0]);
        assert_eq!(
            found(&bug("a.rs", "two")),
            ["scripts/planted-bugs.txt: b: 2 times in crates/a.rs"]
        );
        assert_eq!(
            found(&bug("a.rs", "three")),
            ["scripts/planted-bugs.txt: b: 0 times in crates/a.rs"]
        );
        assert_eq!(
            found(&bug("b.rs", "one")),
            ["scripts/planted-bugs.txt: b: there is no crates/b.rs"]
        );
        assert_eq!(found("# nothing"), ["scripts/planted-bugs.txt: no bugs"]);
    }
}
