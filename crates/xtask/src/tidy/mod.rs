//! What the compiler does not check: budgets, headers, layers, names, links.
//!
//! - [`files`]: size, header, name and width of every source file; logic in cover pages.
//! - [`budgets`]: length of functions, fields of structs.
//! - [`layers`]: arrows between crates point down only.
//! - [`seam`]: nobody above `kv` names what is behind its interface.
//! - [`conflicts`]: the SQLSTATE of a lost conflict is decided in one file.
//! - [`unused`]: public items that no other crate names, dependencies that nobody uses.
//! - [`docs`]: links in Markdown lead somewhere; nothing names this machine; CI's test command.
//!
//! Each finding says what to do instead. The checks have tests of their own.

mod budgets;
mod conflicts;
mod docs;
mod files;
mod layers;
mod seam;
mod unused;

use std::path::{Path, PathBuf};
use std::process::Command;

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
    unused::check(&root, &tracked, &mut findings);
    docs::check(&root, &tracked, &mut findings);
    docs::check_test_command(&root, &mut findings);
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
fn read(root: &Path, file: &str) -> Option<String> {
    std::fs::read_to_string(root.join(file)).ok()
}
