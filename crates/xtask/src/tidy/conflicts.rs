//! The SQLSTATE of a lost conflict is decided in one file, and what follows it too.

use std::path::Path;

/// The states, as constants and as text.
const STATES: &[&str] = &[
    "SERIALIZATION_FAILURE",
    "DEADLOCK_DETECTED",
    "LOCK_NOT_AVAILABLE",
    "UNIQUE_VIOLATION",
    "\"40001\"",
    "\"40P01\"",
    "\"55P03\"",
    "\"23505\"",
];
/// Where they are decided, and where they get their names.
const PLACES: &[&str] = &["crates/catalog/src/conflict.rs", "crates/types/src/error.rs"];
/// A client like any other, that knows the states of the protocol only.
const CLIENTS: &[&str] = &["crates/workload/", "crates/cli/", "crates/xtask/"];

pub(super) fn check(root: &Path, tracked: &[String], findings: &mut Vec<String>) {
    for file in tracked {
        let ours = file.starts_with("crates/") && file.contains("/src/") && file.ends_with(".rs");
        let client = CLIENTS.iter().any(|folder| file.starts_with(folder));
        if !ours || client || PLACES.contains(&file.as_str()) {
            continue;
        }
        if let Some(text) = super::read(root, file) {
            check_text(file, &text, findings);
        }
    }
}

fn check_text(file: &str, text: &str, findings: &mut Vec<String>) {
    for (i, line) in text.lines().enumerate() {
        if line.trim_start() == "mod tests {" {
            return;
        }
        let code = line.split("//").next().unwrap_or_default();
        if let Some(state) = STATES.iter().find(|state| code.contains(*state)) {
            findings.push(format!(
                "{file}:{}: names {state}: braid_catalog::Lost makes it, After judges it",
                i + 1
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_conflicts_are_found_in_code_and_not_in_comments_or_tests() {
        let mut findings = Vec::new();
        let fine = "/// \"40001\"\nlet x = 1; // DEADLOCK_DETECTED\nmod tests {\n\"23505\"";
        check_text("a.rs", fine, &mut findings);
        assert_eq!(findings, [""; 0]);
        let text = "SqlState::UNIQUE_VIOLATION\nSqlState(\"55P03\")";
        check_text("a.rs", text, &mut findings);
        assert_eq!(findings.len(), 2, "{findings:?}");
    }
}
