//! Public items that no other crate names, and dependencies that nobody uses.
//!
//! By words, not by resolution: what is found is unused for certain, but not all that is unused is
//! found. Types are left out: a signature may need one that nobody names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The words of a crate's own files, and of those that stand outside of it: tests, examples.
#[derive(Default)]
struct Words {
    own: BTreeSet<String>,
    beside: BTreeSet<String>,
}

pub(super) fn check(root: &Path, tracked: &[String], findings: &mut Vec<String>) {
    let mut crates: BTreeMap<String, Words> = BTreeMap::new();
    let mut public = Vec::new();
    for file in tracked.iter().filter(|file| file.ends_with(".rs")) {
        let Some(text) = super::read(root, file) else { continue };
        let (name, own) = place(file);
        let words = crates.entry(name.clone()).or_default();
        let set = if own { &mut words.own } else { &mut words.beside };
        set.extend(words_of(&text).map(str::to_string));
        if own {
            public.extend(items(&text).map(|(line, item)| (name.clone(), file, line, item)));
        }
    }
    for (name, file, line, item) in public {
        let outside = |(other, words): (&String, &Words)| {
            words.beside.contains(&item) || (*other != name && words.own.contains(&item))
        };
        if !crates.iter().any(outside) {
            let hint = "make it pub(crate), or delete it";
            findings.push(format!("{file}:{line}: no other crate names `{item}`: {hint}"));
        }
    }
    let manifest = |file: &&String| file.starts_with("crates/") && file.ends_with("/Cargo.toml");
    for file in tracked.iter().filter(manifest) {
        let Some(text) = super::read(root, file) else { continue };
        let name = file.strip_suffix("/Cargo.toml").unwrap_or_default();
        if let Some(words) = crates.get(name) {
            check_dependencies(file, &text, words, findings);
        }
    }
}

/// The folder of a file's crate, and whether the file is a part of its library or binary.
fn place(file: &str) -> (String, bool) {
    let parts: Vec<&str> = file.split('/').collect();
    match parts.as_slice() {
        ["crates", name, "src", ..] => (format!("crates/{name}"), true),
        ["crates", name, ..] => (format!("crates/{name}"), false),
        _ => (parts[0].to_string(), false),
    }
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// Functions, constants and statics that are public without restriction.
fn items(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines().enumerate().filter_map(|(i, line)| {
        let rest = line.trim_start().strip_prefix("pub ")?;
        let rest = ["const fn ", "unsafe fn ", "async fn ", "fn ", "const ", "static "]
            .iter()
            .find_map(|kind| rest.strip_prefix(kind))?;
        Some((i + 1, words_of(rest).next()?.to_string()))
    })
}

fn check_dependencies(file: &str, text: &str, words: &Words, findings: &mut Vec<String>) {
    let mut section = "";
    for (i, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
            continue;
        }
        let Some((name, _)) = line.split_once(['.', '=', ' ']) else { continue };
        let ident = name.trim().replace('-', "_");
        let used = match section {
            "dependencies" => words.own.contains(&ident),
            "dev-dependencies" => words.own.contains(&ident) || words.beside.contains(&ident),
            _ => continue,
        };
        let is_name = ident.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !used && is_name && !ident.is_empty() {
            findings.push(format!("{file}:{}: nothing uses `{name}`: take it out", i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_items_are_listed_and_restricted_ones_are_not() {
        let text = "pub fn a() {}\n    pub const fn b() {}\npub(crate) fn c() {}\nfn d() {}\n\
                    pub const E: u8 = 1;\n    pub field: u8,\npub struct F;";
        let found: Vec<_> = items(text).collect();
        assert_eq!(found, [(1, "a".to_string()), (2, "b".to_string()), (5, "E".to_string())]);
    }

    #[test]
    fn a_dependency_that_no_file_names_is_found() {
        let set = |words: &[&str]| words.iter().map(|w| w.to_string()).collect();
        let words = Words { own: set(&["a_b"]), beside: set(&["t"]) };
        let toml = "[package]\nname = \"x\"\n[dependencies]\na-b.workspace = true\nt = \"1\"\n\
                    # why\n[dev-dependencies]\nt = \"1\"\nu.workspace = true\n";
        let mut findings = Vec::new();
        check_dependencies("x/Cargo.toml", toml, &words, &mut findings);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].contains(":5:") && findings[1].contains(":9:"), "{findings:?}");
    }
}
