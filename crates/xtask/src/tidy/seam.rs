//! What lies above `kv` knows the seam and not what is behind it: a coordinator, transactions, and
//! no store.

use std::path::Path;

/// Crates that must work the same when keys are kept by several nodes.
const ABOVE: &[&str] = &[
    "crates/catalog/src/",
    "crates/rows/src/",
    "crates/planner/src/",
    "crates/sql/src/",
    "crates/query/src/",
];
/// What `kv` has of this node.
const BEHIND: &[&str] = &["Store", "StoreOptions", "LockTable"];

pub(super) fn check(root: &Path, tracked: &[String], findings: &mut Vec<String>) {
    for file in tracked {
        let above = ABOVE.iter().any(|folder| file.starts_with(folder));
        if above
            && file.ends_with(".rs")
            && let Some(text) = super::read(root, file)
        {
            check_text(file, &text, findings);
        }
    }
}

fn check_text(file: &str, text: &str, findings: &mut Vec<String>) {
    for (i, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let mut words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        if let Some(word) = words.find(|word| BEHIND.contains(word)) {
            findings.push(format!(
                "{file}:{}: names {word}: transactions are begun by a braid_kv::Coordinator",
                i + 1
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_found_and_its_relatives_are_not() {
        let mut findings = Vec::new();
        check_text(
            "a.rs",
            "use braid_kv::{Stored, Txn};\n/// The Store.\nlet x = 1; // Store",
            &mut findings,
        );
        assert_eq!(findings, [""; 0]);
        check_text("a.rs", "fn f(store: &Arc<Store>) {}\nbraid_kv::Store::open(o)", &mut findings);
        assert_eq!(findings.len(), 2, "{findings:?}");
    }
}
