//! `docs/statements.md`: the forms of all statements, which the parser takes, and how they fail.
//!
//! After a change: `WRITE_DOCS=1 cargo test --workspace --test query reference::`. The examples are
//! run by `sql/tests/statement_registry.rs`.

use std::fmt::Write as _;
use std::path::Path;

use crate::forms;
use crate::harness::Db;
use braid_sql::statement::{Effect, Entry, entries};

/// What the examples speak of.
const SCHEMA: &str = include_str!("../../sql/tests/statement_registry.sql");

const FORMS: &str = include_str!("reference/statements.txt");

/// The entries of each name, in their order.
fn by_name() -> Vec<(&'static str, Vec<&'static Entry>)> {
    let mut out: Vec<(&str, Vec<&Entry>)> = Vec::new();
    for entry in entries() {
        match out.iter_mut().find(|(name, _)| *name == entry.name) {
            Some((_, all)) => all.push(entry),
            None => out.push((entry.name, vec![entry])),
        }
    }
    out
}

#[test]
fn every_form_of_the_page_is_taken_by_the_parser_and_belongs_to_its_name() {
    let (sections, samples) = forms::read(FORMS);
    let s = Db::new().session;
    let (mut wrong, mut count) = (Vec::new(), 0);
    for section in &sections {
        for sql in section.tries(&samples) {
            count += 1;
            match s.parse_script(&sql) {
                Ok(all) => {
                    let of = entries().find(|entry| all.first().is_some_and(|s| entry.claims(s)));
                    let name = of.map_or("no statement", |entry| entry.name);
                    if all.len() != 1 || name != section.name {
                        wrong.push(format!("{sql}\n   is {name}, not {}", section.name));
                    }
                }
                Err(e) => wrong.push(format!("{sql}\n   {e}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 1_000, "{count}");
}

const HEAD: &str = "# Statements

Each statement: its forms, an example, and how it fails. A test makes statements of all forms, with optional parts left
out and taken, and the parser takes them; it runs the examples, and those that fail.

In the forms words in capitals are as they are, `[ ]` may be there, `{ | }` is one of several, `[, ..]` is the part in
front of it again, behind a comma, and `[..]` without one. Behind each line about a statement is what it does to rows and
descriptors, and how it runs: a *plan* is made once and kept; a *utility* runs in a transaction from its text; a *schema
change* writes descriptors, and those *in steps* do not keep writers out; the *session* does the rest itself.

This page is written by a test, from the registry of statements and `crates/query/tests/reference/statements.txt`:
`WRITE_DOCS=1 cargo test --workspace --test query reference::`.
";

fn page() -> String {
    let (sections, _) = forms::read(FORMS);
    let mut out = format!("{HEAD}\n");
    let link = |name: &str| format!("[{name}](#{})", name.to_lowercase().replace(' ', "-"));
    let links: Vec<String> = by_name().iter().map(|(name, _)| link(name)).collect();
    let _ = writeln!(out, "{}\n\nExamples are about these:\n", links.join(",\n"));
    let lines: Vec<&str> = SCHEMA.split(';').map(str::trim).collect();
    let _ = writeln!(out, "```sql\n{};\n```", lines.join(";\n"));
    for (name, all) in by_name() {
        let section = sections.iter().find(|section| section.name == name);
        let section = section.unwrap_or_else(|| panic!("{name} has no forms"));
        let _ = writeln!(out, "\n## {name}\n");
        if !section.lines.is_empty() {
            let _ = writeln!(out, "```text\n{}\n```\n", section.lines.join("\n"));
        }
        for e in all {
            let effect = match e.effect {
                Effect::None => "no effect on rows",
                Effect::Reads => "reads",
                Effect::Writes => "writes",
                Effect::AsPlanned => "reads; writes with FOR UPDATE",
                Effect::AsExplained => "the effect of what it runs",
            };
            let failed = if e.in_failed_block { "; also in a failed block" } else { "" };
            let steps = if e.has_steps() { ", in steps" } else { "" };
            let (about, runs) = (e.about, e.runs_as());
            let _ = writeln!(out, "- {about}. *{effect}{failed}; {runs}{steps}*");
            if !e.example.is_empty() {
                let _ = writeln!(out, "  <br>`{}`", e.example);
            }
        }
        failures(section, &mut out);
    }
    out
}

/// How statements of a section fail.
fn failures(section: &forms::Section, out: &mut String) {
    if section.failing.is_empty() {
        return;
    }
    out.push_str("\n| fails | with |\n|---|---|\n");
    for sql in &section.failing {
        let mut db = Db::new();
        db.run(SCHEMA);
        let e = db.try_run(sql).err().unwrap_or_else(|| panic!("{sql}: it does not"));
        let _ = writeln!(out, "| `{sql}` | {}: {} |", e.state().0, e.message());
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the page is a file of the repository")]
fn the_page_of_statements_is_what_the_registry_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/statements.md");
    let wanted = page();
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(&path, &wanted).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "docs/statements.md is stale: run this test with WRITE_DOCS=1");
}
