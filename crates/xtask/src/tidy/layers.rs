//! Arrows between crates point down only.

use std::path::Path;
use std::process::Command;

/// From the bottom up. A crate may use crates of lower layers only; those of one layer do not know
/// each other.
const LAYERS: &[&[&str]] = &[
    &["braid-env"],
    &["braid-lsm", "braid-types", "braid-walk"],
    &[
        "braid-keys",
        "braid-kv",
        "braid-parser",
        "braid-scalar",
        "braid-import",
        "braid-consensus",
        "braid-settings",
    ],
    &["braid-catalog", "braid-range"],
    &["braid-rows", "braid-cluster"],
    &["braid-planner"],
    &["braid-sql"],
    &["braid-query", "braid-node"],
    &["braid-server", "braid-workload"],
    &["braid"],
];
/// Crates that stand beside the layers: nothing but tests depends on them.
const ASIDE: &[&str] = &["xtask", "braid-script", "braid-sim"];
/// What a crate must never know, besides the layers above it.
const NEVER: &[(&str, &str)] = &[
    ("braid-lsm", "tokio"),
    ("braid-kv", "tokio"),
    ("braid-consensus", "tokio"),
    ("braid-range", "tokio"),
    ("braid-range", "raft"),
    ("braid-cluster", "raft"),
    ("braid-cluster", "tokio"),
    ("braid-node", "raft"),
    ("braid-node", "tokio"),
    ("braid-node", "braid-sql"),
    ("braid-catalog", "braid-parser"),
    ("braid-catalog", "braid-scalar"),
    ("braid-rows", "braid-lsm"),
    ("braid-rows", "braid-import"),
    ("braid-rows", "datafusion"),
    ("braid-settings", "braid-kv"),
    ("braid-settings", "braid-parser"),
    ("braid-settings", "tokio"),
    ("braid-planner", "braid-lsm"),
    ("braid-planner", "braid-keys"),
    ("braid-planner", "braid-parser"),
    ("braid-planner", "datafusion"),
    ("braid-sql", "braid-lsm"),
    ("braid-query", "braid-lsm"),
    ("braid-sql", "datafusion"),
    ("braid-sql", "tokio"),
    ("braid-sql", "pgwire"),
    ("braid-keys", "braid-lsm"),
    ("braid-workload", "braid-sql"),
];

pub(super) fn check(root: &Path, findings: &mut Vec<String>) -> Result<(), String> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("cannot run cargo metadata: {e}"))?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let uses: Vec<&str> = package["dependencies"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|d| d["kind"].is_null())
            .filter_map(|d| d["name"].as_str())
            .collect();
        check_package(name, &uses, findings);
    }
    Ok(())
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|l| l.contains(&name))
}

fn check_package(name: &str, uses: &[&str], findings: &mut Vec<String>) {
    let Some(own) = layer(name) else {
        if !ASIDE.contains(&name) {
            findings.push(format!("{name}: give this crate a layer in xtask/src/tidy/layers.rs"));
        }
        return;
    };
    for used in uses {
        if layer(used).is_some_and(|l| l >= own) || ASIDE.contains(used) {
            findings.push(format!("{name} uses {used}: arrows point down only"));
        }
        if NEVER.contains(&(name, used)) {
            findings.push(format!("{name} uses {used}, which it must not know"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upward_and_forbidden_arrows_are_found() {
        let mut findings = Vec::new();
        check_package("braid-kv", &["braid-lsm", "braid-env"], &mut findings);
        assert!(findings.is_empty());
        check_package("braid-lsm", &["braid-kv"], &mut findings);
        check_package("braid-sql", &["datafusion"], &mut findings);
        check_package("braid-new", &[], &mut findings);
        assert_eq!(findings.len(), 3, "{findings:?}");
    }
}
