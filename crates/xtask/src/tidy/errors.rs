//! `docs/errors.md` has all SQLSTATEs that the code gives, and no others.
//!
//! A SQLSTATE is given by a constant of `SqlState`, or by its five characters in quotes.

use std::collections::BTreeSet;
use std::path::Path;

const STATES: &str = "crates/types/src/error.rs";
const PAGE: &str = "docs/errors.md";

/// Classes of SQLSTATEs that a text of five characters may be of.
const CLASSES: &[&str] = &[
    "00", "01", "02", "03", "08", "0A", "0L", "20", "21", "22", "23", "24", "25", "26", "28", "2B",
    "2F", "34", "38", "39", "3B", "3D", "3F", "40", "42", "44", "53", "54", "55", "57", "58", "F0",
    "P0", "XX",
];

/// Crates that are clients: they know SQLSTATEs, and give none.
const CLIENTS: &[&str] = &["crates/workload/", "crates/cli/", "crates/xtask/", "crates/sim/"];

/// Texts of that form that are none.
const OTHERS: &[&str] = &["256MB"];

pub(super) fn check(root: &Path, tracked: &[String], findings: &mut Vec<String>) {
    let names = named(&super::read(root, STATES).unwrap_or_default());
    let mut given = BTreeSet::new();
    for file in tracked {
        let is_source = file.starts_with("crates/") && file.contains("/src/");
        let is_client = CLIENTS.iter().any(|krate| file.starts_with(krate));
        if !is_source || !file.ends_with(".rs") || is_client || file == STATES {
            continue;
        }
        given.extend(states(&super::read(root, file).unwrap_or_default(), &names));
    }
    let page = super::read(root, PAGE).unwrap_or_default();
    let told = told(&page);
    for state in given.difference(&told) {
        findings.push(format!("{PAGE}: {state} is given somewhere, and is missing"));
    }
    for state in told.difference(&given) {
        findings.push(format!("{PAGE}: nobody gives {state}"));
    }
}

/// The constants and their SQLSTATEs.
fn named(text: &str) -> Vec<(String, String)> {
    let pair = |line: &str| {
        let (name, rest) = line.trim().strip_suffix("\";")?.split_once(" = \"")?;
        Some((format!("SqlState::{name}"), rest.to_string()))
    };
    text.lines().filter_map(pair).collect()
}

/// What a source file gives, up to its tests.
fn states(text: &str, names: &[(String, String)]) -> BTreeSet<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut out = BTreeSet::new();
    for (name, state) in names {
        let ends = |rest: &str| !rest.starts_with(|c: char| c == '_' || c.is_alphanumeric());
        if text.split(name.as_str()).skip(1).any(ends) {
            out.insert(state.clone());
        }
    }
    let literals = text.split('"').filter(|part| is_state(part));
    out.extend(literals.filter(|part| !OTHERS.contains(part)).map(str::to_string));
    out
}

fn is_state(text: &str) -> bool {
    text.len() == 5
        && text.chars().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase())
        && CLASSES.contains(&&text[..2])
}

/// What the page tells.
fn told(page: &str) -> BTreeSet<String> {
    let words = page.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| is_state(word)).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_found_by_name_and_by_text() {
        let names = named("    /// No.\n    DISK_FULL = \"53100\";\n    DISK = \"53200\";\n");
        let text =
            "SqlState::DISK_FULL, SqlState(\"42P20\") \"hello\" \"256MB\"\n#[cfg(test)] \"0A000\"";
        let found: Vec<String> = states(text, &names).into_iter().collect();
        assert_eq!(found, ["42P20", "53100"]);
        let page: Vec<String> = told("| 53100, 40P01 | 12345 of 2026 |").into_iter().collect();
        assert_eq!(page, ["40P01", "53100"]);
    }
}
