//! Everything that must pass before a change is handed in, in one process per step.

use std::process::Command;

const STEPS: &[(&str, &[&str])] = &[
    ("format", &["fmt", "--all", "--check"]),
    ("tidy", &["run", "-q", "-p", "xtask", "--", "tidy"]),
    ("tests", &["test", "--workspace"]),
    ("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ("docs", &["doc", "--workspace", "--no-deps", "--document-private-items"]),
];

/// Runs all steps; stops at the first that fails.
pub fn run() -> Result<(), String> {
    for (name, arguments) in STEPS {
        println!("==> {name}: cargo {}", arguments.join(" "));
        let mut command = Command::new("cargo");
        command.args(*arguments);
        if *name == "docs" {
            command.env("RUSTDOCFLAGS", "-D warnings");
        }
        let status = command.status().map_err(|e| format!("cannot run cargo: {e}"))?;
        if !status.success() {
            return Err(format!("step {name} failed"));
        }
    }
    Ok(())
}
