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

const FORMS: &str = include_str!("../../cli/src/shell/forms.txt");

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

This page is written by a test, from the registry of statements and `crates/cli/src/shell/forms.txt`:
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
fn the_page_of_statements_is_what_the_registry_says() {
    is_page("statements.md", &page());
}

const TYPES: &str = include_str!("types.txt");

/// What is made of these, and what has a name alone.
const NO_LINES: &[&str] = &[
    "aclitem",
    "gtsvector",
    "pg_brin_bloom_summary",
    "pg_brin_minmax_multi_summary",
    "pg_dependencies",
    "pg_mcv_list",
    "pg_ndistinct",
    "pg_node_tree",
    "regconfig",
    "regdictionary",
    "xid",
    "xml",
];

fn types_page() -> String {
    let mut db = Db::new();
    db.run("create extension citext; set timezone = 'UTC'");
    let mut out = String::from(
        "# Types\n\nAll types that are built in, with a value as it is written and as it is printed. Of \
         each there are arrays (`int[]`, also `ARRAY<INT64>`).\nBesides there are enums, domains, composite \
         types and ranges of your own ([CREATE TYPE](statements.md#create-type),\n[CREATE DOMAIN]\
         (statements.md#create-domain)), and a row type of each table.\n\nThis page is written by a \
         test: `WRITE_DOCS=1 cargo test --workspace --test query reference::`.\n\n\
         | type | also called | a value | prints | |\n|---|---|---|---|---|\n",
    );
    let mut told = Vec::new();
    for line in TYPES.lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, others, value, about] = parts[..] else { panic!("four parts: {line}") };
        let printed = db.run(&format!("select {value}::{name}"));
        told.extend(db.run(&format!("select typname from pg_type where oid = '{name}'::regtype")));
        let code = |text: &str| match text {
            "" => String::new(),
            text => format!("`{text}`"),
        };
        let _ = writeln!(
            out,
            "| `{name}` | {others} | {} | {} | {about} |",
            code(value),
            code(&printed.join(" "))
        );
    }
    let all = db.run(
        "select typname from pg_type where typtype in ('b', 'r', 'm') and typname !~ '^_' and \
         typnamespace = 'pg_catalog'::regnamespace",
    );
    let missing = all.iter().filter(|t| !told.contains(t) && !NO_LINES.contains(&t.as_str()));
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "types.txt has no line for {missing:?}");
    out
}

fn settings_page() -> String {
    let mut out = String::from(
        "# Settings of a session\n\n`SET name = value`, `SET LOCAL` until the end of the transaction, \
         `SHOW`, `RESET`; `ALTER ROLE .. SET` for the sessions of a role, `braid start --set`\nfor all of a \
         node, and `sql.defaults.<name>` of some for [all nodes](settings.md). Names with a dot that are \
         not here are yours:\nany value is kept.\n\nThis page is written by a test, from the registry of \
         settings: `WRITE_DOCS=1 cargo test --workspace --test query reference::`.\n\n\
         | setting | kind | default | what it is about |\n|---|---|---|---|\n",
    );
    let (with, without): (Vec<_>, Vec<_>) =
        braid_sql::session::shown_settings().into_iter().partition(|s| s.has_meaning);
    for s in &with {
        let kind = if s.can_be_set { s.kind } else { "fixed" };
        let default = if s.default.is_empty() { String::new() } else { format!("`{}`", s.default) };
        let _ = writeln!(out, "| `{}` | {kind} | {default} | {} |", s.name, s.about);
    }
    out.push_str(
        "\n## Accepted\n\nPostgreSQL has them, clients and dumps set them, and they change nothing here. \
         What is no value of theirs is refused.\n\n",
    );
    let names: Vec<String> = without.iter().map(|s| format!("`{}`", s.name)).collect();
    let _ = writeln!(out, "{}", names.join(",\n"));
    out
}

#[allow(clippy::disallowed_methods, reason = "the page is a file of the repository")]
fn is_page(name: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("WRITE_DOCS").is_some() {
        std::fs::write(&path, wanted).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "docs/{name} is stale: run this test with WRITE_DOCS=1");
}

#[test]
fn the_page_of_types_prints_a_value_of_each() {
    is_page("types.md", &types_page());
}

#[test]
fn the_page_of_session_settings_is_what_the_registry_says() {
    is_page("session-settings.md", &settings_page());
    for s in braid_sql::session::shown_settings() {
        assert!(!s.about.is_empty(), "{}: about.rs has no line for it", s.name);
    }
}
