//! All checks, over the files that git knows.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{
    budgets, conflicts, docs, errors, executables, files, layers, planted, promises, seam, unused,
    walks,
};

/// Runs all checks over the files that git knows.
pub fn run() -> Result<(), String> {
    let root = root()?;
    let tracked = tracked_files(&root)?;
    let mut findings = Vec::new();
    files::check(&root, &tracked, &mut findings);
    budgets::check(&root, &tracked, &mut findings);
    layers::check(&root, &mut findings)?;
    seam::check(&root, &tracked, &mut findings);
    conflicts::check(&root, &tracked, &mut findings);
    executables::check(&root, &tracked, &mut findings);
    planted::check(&root, &mut findings);
    promises::check(&root, &mut findings);
    unused::check(&root, &tracked, &mut findings);
    walks::check(&root, &tracked, &mut findings);
    docs::check(&root, &tracked, &mut findings);
    docs::check_summary(&root, &tracked, &mut findings);
    docs::check_test_command(&root, &mut findings);
    errors::check(&root, &tracked, &mut findings);
    if findings.is_empty() {
        println!("tidy: {} files, nothing to say", tracked.len());
        return Ok(());
    }
    findings.sort();
    Err(format!("{}\ntidy: {} findings", findings.join("\n"), findings.len()))
}

fn root() -> Result<PathBuf, String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = manifest.ancestors().nth(2).ok_or("xtask is not two folders below the root")?;
    Ok(root.to_path_buf())
}

/// Tracked files and new ones that git does not ignore, relative to the root.
fn tracked_files(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("cannot run git: {e}"))?;
    let text = String::from_utf8(output.stdout).map_err(|e| format!("file name: {e}"))?;
    Ok(text.lines().filter(|f| root.join(f).is_file()).map(str::to_string).collect())
}

/// A file's text; findings are made about text files only.
pub(super) fn read(root: &Path, file: &str) -> Option<String> {
    std::fs::read_to_string(root.join(file)).ok()
}
