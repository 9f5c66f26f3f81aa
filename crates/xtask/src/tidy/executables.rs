//! Every file of tests is part of an executable. A crate whose manifest says `autotests = false`
//! names them itself: in `tests/main.rs` or as an executable of their own.

use std::path::Path;

pub(super) fn check(root: &Path, tracked: &[String], findings: &mut Vec<String>) {
    for manifest in tracked.iter().filter(|file| file.ends_with("/Cargo.toml")) {
        let Some(folder) = manifest.strip_suffix("Cargo.toml") else { continue };
        let text = super::read(root, manifest).unwrap_or_default();
        let cover = super::read(root, &format!("{folder}tests/main.rs")).unwrap_or_default();
        let prefix = format!("{folder}tests/");
        let tests = tracked.iter().filter_map(|file| file.strip_prefix(&prefix));
        check_tests((manifest, &text), &cover, tests, findings);
    }
}

fn check_tests<'a>(
    (manifest, text): (&str, &str),
    cover: &str,
    tests: impl Iterator<Item = &'a str>,
    findings: &mut Vec<String>,
) {
    if !text.lines().any(|line| line == "autotests = false") {
        return;
    }
    for file in tests.filter(|file| !file.contains('/')) {
        let Some(name) = file.strip_suffix(".rs") else { continue };
        let own = format!("path = \"tests/{file}\"");
        let part = format!("mod {name};");
        if !text.lines().any(|line| line == own) && !cover.lines().any(|line| line == part) {
            findings.push(format!(
                "{manifest}: tests/{file} is in no executable: name it in tests/main.rs"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_nobody_names_is_found() {
        let found = |text: &str, cover: &str| {
            let mut findings = Vec::new();
            let files = ["main.rs", "copy.rs", "harness/mod.rs"].into_iter();
            check_tests(("a/Cargo.toml", text), cover, files, &mut findings);
            findings
        };
        let own = "autotests = false\n[[test]]\npath = \"tests/main.rs\"\n";
        assert_eq!(found("[package]\n", ""), [""; 0]);
        assert_eq!(found(own, "mod copy;\n"), [""; 0]);
        assert_eq!(found(&format!("{own}path = \"tests/copy.rs\"\n"), ""), [""; 0]);
        assert_eq!(
            found(own, "// mod copy;\n"),
            ["a/Cargo.toml: tests/copy.rs is in no executable: name it in tests/main.rs"]
        );
    }
}
