//! Budgets and conventions of source files.

use std::collections::HashMap;
use std::path::Path;

const FILE_LINES_MAX: usize = 1000;
const TEST_LINES_MAX: usize = 300;
const FOLDER_ENTRIES_MAX: usize = 25;
const COLUMNS_MAX: usize = 100;
/// Cover pages that have logic today. The list only shrinks.
const COVERS_WITH_LOGIC: &[&str] = &["crates/query/src/bind/mod.rs"];
const NAMES_FORBIDDEN: &[&str] =
    &["util", "utils", "common", "types", "inner", "misc", "helper", "helpers"];

pub(super) fn check(root: &Path, tracked: &[String], findings: &mut Vec<String>) {
    let mut entries: HashMap<String, std::collections::HashSet<String>> = HashMap::new();
    for file in tracked {
        count_entries(file, &mut entries);
        if !file.ends_with(".rs") {
            continue;
        }
        check_name(file, findings);
        if let Some(text) = super::read(root, file) {
            check_text(file, &text, findings);
        }
    }
    for (folder, names) in entries {
        if names.len() > FOLDER_ENTRIES_MAX {
            findings.push(format!(
                "{folder}: {} entries, at most {FOLDER_ENTRIES_MAX}: make a folder by role",
                names.len()
            ));
        }
    }
}

fn count_entries(file: &str, entries: &mut HashMap<String, std::collections::HashSet<String>>) {
    let exempt = ["testscripts", "functions", "fixtures", "tests/"];
    if !file.starts_with("crates/") || exempt.iter().any(|e| file.contains(e)) {
        return;
    }
    let mut folder = String::new();
    for part in file.split('/') {
        if !folder.is_empty() {
            entries.entry(folder.clone()).or_default().insert(part.to_string());
            folder.push('/');
        }
        folder.push_str(part);
    }
}

fn check_name(file: &str, findings: &mut Vec<String>) {
    let stem = Path::new(file).file_stem().and_then(|s| s.to_str()).unwrap_or_default();
    let stem = stem.strip_suffix("_v2").map_or(stem, |_| "util");
    if NAMES_FORBIDDEN.contains(&stem) {
        findings.push(format!("{file}: this name says nothing; name the file after its role"));
    }
}

fn check_text(file: &str, text: &str, findings: &mut Vec<String>) {
    let is_test = file.contains("/tests/") || file.ends_with("/tests.rs");
    if !text.trim_start().starts_with("//!") && !file.contains("/fixtures/") {
        findings.push(format!("{file}:1: begin with a `//!` header that says what this is for"));
    }
    let inline_tests = text.lines().position(|l| l.trim() == "#[cfg(test)]");
    let lines = text.lines().count();
    let production = inline_tests.filter(|_| text.contains("mod tests {")).unwrap_or(lines);
    if file.ends_with("/mod.rs") && !is_test && !COVERS_WITH_LOGIC.contains(&file) {
        let code = |l: &&str| {
            ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "impl"]
                .iter()
                .any(|start| l.starts_with(start))
        };
        if text.lines().take(production).any(|l| code(&l)) {
            findings.push(format!("{file}: a mod.rs is a cover page: move the logic to a file"));
        }
    }
    if production > FILE_LINES_MAX {
        findings
            .push(format!("{file}: {production} lines, at most {FILE_LINES_MAX}: split by role"));
    }
    if !is_test && lines - production > TEST_LINES_MAX {
        findings.push(format!(
            "{file}: {} lines of inline tests, at most {TEST_LINES_MAX}: move them to tests/",
            lines - production
        ));
    }
    for (i, line) in text.lines().enumerate() {
        if line.chars().count() > COLUMNS_MAX && !line.contains("http") && !is_test {
            findings.push(format!("{file}:{}: over {COLUMNS_MAX} columns", i + 1));
        }
        if line.contains("TODO") && !line.contains("TODO(#") && !file.contains("xtask") {
            findings.push(format!("{file}:{}: a TODO names its issue: TODO(#12)", i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(file: &str, text: &str) -> Vec<String> {
        let mut out = Vec::new();
        check_name(file, &mut out);
        check_text(file, text, &mut out);
        out
    }

    #[test]
    fn a_decent_file_passes() {
        assert_eq!(findings("crates/x/src/role.rs", "//! Role.\n\nfn f() {\n}\n"), [""; 0]);
    }

    #[test]
    fn smells_are_found() {
        let cover = "//! X.\nmod a;\npub use a::A;\n";
        assert_eq!(findings("src/x/mod.rs", cover), [""; 0]);
        let logic = "//! X.\nmod a;\nfn f() {}\n";
        assert!(findings("src/x/mod.rs", logic)[0].contains("cover page"));
        assert!(findings("src/util.rs", "//! X.\n")[0].contains("says nothing"));
        assert!(findings("src/log_v2.rs", "//! X.\n")[0].contains("says nothing"));
        assert!(findings("a.rs", "fn f() {}\n")[0].contains("header"));
        assert!(findings("a.rs", "//! X.\n// TODO: later\n")[0].contains("issue"));
        let wide = format!("//! {}\n", "x".repeat(100));
        assert!(findings("a.rs", &wide)[0].contains("columns"));
        let tall = format!("//! X.\n{}", "use a;\n".repeat(1000));
        assert!(findings("a.rs", &tall)[0].contains("1001 lines"));
    }
}
