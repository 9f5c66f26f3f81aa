//! Trees are walked through `walk`: a visitor that is handed to sqlparser has the whole walk
//! compiled once more.

use std::path::Path;

/// What sqlparser offers.
const THEIRS: &[&str] =
    &["Visit", "VisitMut", "visit_expressions", "visit_expressions_mut", "visit_relations"];
/// Where it is used, and named.
const PLACES: &[&str] = &["crates/walk/", "crates/xtask/"];

pub(super) fn check(root: &Path, tracked: &[String], findings: &mut Vec<String>) {
    for file in tracked {
        let ours = file.starts_with("crates/") && file.ends_with(".rs");
        if ours
            && !PLACES.iter().any(|folder| file.starts_with(folder))
            && let Some(text) = super::read(root, file)
        {
            check_text(file, &text, findings);
        }
    }
}

fn check_text(file: &str, text: &str, findings: &mut Vec<String>) {
    // Others have visits of their own.
    if !text.contains("sqlparser") {
        return;
    }
    for (i, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let mut words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        if let Some(word) = words.find(|word| THEIRS.contains(word)) {
            findings.push(format!("{file}:{}: names {word}: use braid_walk", i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_of_others_are_found_and_visitors_are_not() {
        let mut findings = Vec::new();
        let fine =
            "use sqlparser::ast::Visitor; // not Visit\nload.visit(|row| row);\nnode.walk(v)";
        check_text("a.rs", fine, &mut findings);
        assert_eq!(findings, [""; 0]);
        check_text("a.rs", "type Visit = u8;", &mut findings);
        assert_eq!(findings, [""; 0]);
        let theirs = "use sqlparser::ast::{self, Visit};\nast::visit_relations(q, f)";
        check_text("a.rs", theirs, &mut findings);
        assert_eq!(findings.len(), 2, "{findings:?}");
    }
}
