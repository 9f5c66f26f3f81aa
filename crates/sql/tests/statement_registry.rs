//! Every statement type keeps its word: what its entry says is what a session does.
//!
//! After a change of the entries: `WRITE_DOCS=1 cargo test --workspace --test sql statement_registry::`.

use std::fmt::Write as _;
use std::path::Path;

use crate::harness::{database, run, session, try_run};
use braid_sql::statement::{Effect, Entry, entries};
use braid_sql::{Outcome, Session};
use braid_types::{Datum, SqlResult};

/// What the examples speak of.
const SCHEMA: &str = "create schema x; create database d; create sequence s;
    create table t (a int primary key, b text); insert into t values (1, 'one'), (2, 'two');
    create table keyed (a int primary key, b text, e int); create index i on keyed (b);
    create table parts (a int) partition by list (a); create table p1 partition of parts for values in (1);
    create view v as select 1 as one; create materialized view mv as select 1 as one; create type m as enum ('some'); create type comp as (x int); create domain p as int; create collation co (provider = icu, locale = 'sv'); create function fn(int) returns int language sql as 'select $1'; declare c cursor with hold for select 1; prepare p (int) as select $1::int";

/// Runs one statement to its end, whatever it answers.
fn execute(s: &mut Session, sql: &str, params: &[Datum]) -> SqlResult<Option<String>> {
    let statement = s.parse_script(sql)?.remove(0);
    let p = s.prepare(statement, &[])?;
    Ok(match s.execute(&p, params.to_vec())? {
        Outcome::Rows(mut rows) => {
            while rows.next_batch()?.is_some() {}
            Some(rows.tag())
        }
        Outcome::Done(tag) => Some(tag),
        Outcome::Empty | Outcome::CopyIn(_) | Outcome::CopyOut(_) => None,
    })
}

/// A session over the schema of the examples; savepoints need a block around them.
fn ready(entry: &Entry) -> Session {
    let mut s = session(&database());
    run(&mut s, SCHEMA);
    if entry.name.contains("SAVEPOINT") {
        run(&mut s, "begin; savepoint a");
    }
    s
}

#[test]
fn every_example_runs_and_its_tag_begins_with_its_name() {
    for entry in entries() {
        let mut s = ready(entry);
        let wanted = match entry.name {
            // These name something that is not there.
            "CANCEL JOB" | "PAUSE JOB" | "RESUME JOB" => Err("42704"),
            // Its lock would end with the statement.
            "LOCK TABLE" => Err("25P01"),
            // These databases have no folder for it.
            "IMPORT" | "IMPORT PGDUMP" | "EXPORT" => Err("55000"),
            // These databases are on a node alone.
            "ALTER TABLE SPLIT AT" => Err("0A000"),
            "EMPTY STATEMENT" | "COPY TO" | "COPY RETURNING TO" | "COPY FROM" => Ok(None),
            "SET TRANSACTION" | "SET SESSION CHARACTERISTICS" => Ok(Some("SET")),
            "ROLLBACK TO SAVEPOINT" => Ok(Some("ROLLBACK")),
            "RELEASE SAVEPOINT" => Ok(Some("RELEASE")),
            "CLOSE" => Ok(Some("CLOSE CURSOR ALL")),
            "DISCARD" => Ok(Some("DISCARD PLANS")),
            "EXECUTE" => Ok(Some("SELECT")),
            "EXPLAIN ANALYZE" => Ok(Some("EXPLAIN")),
            name => Ok(Some(name)),
        };
        let found = execute(&mut s, entry.example, &[]);
        let word = |tag: &String| {
            tag.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ').to_string()
        };
        let found = match &found {
            Ok(tag) => Ok(tag.as_ref().map(word)),
            Err(e) => Err(e.state().0),
        };
        assert_eq!(
            found.as_ref().map(|tag| tag.as_deref()),
            wanted.as_ref().copied(),
            "{}",
            entry.example
        );
    }
}

#[test]
fn a_read_only_transaction_takes_what_does_not_write() {
    for entry in entries() {
        let mut s = ready(entry);
        // EXPORT has no folder: tests/export.rs.
        if matches!(entry.effect, Effect::None) || entry.name == "EXPORT" {
            continue;
        }
        run(&mut s, "begin read only");
        let found = execute(&mut s, entry.example, &[]);
        if entry.effect == Effect::Writes {
            let e = found.expect_err(entry.example);
            let message = format!("cannot execute {} in a read-only transaction", entry.name);
            assert_eq!(
                (e.state().0, e.message()),
                ("25006", message.as_str()),
                "{}",
                entry.example
            );
        } else {
            found.unwrap_or_else(|e| panic!("{}: {e:?}", entry.example));
        }
    }
}

#[test]
fn a_read_only_transaction_looks_into_explain_analyze_and_locks() {
    for (sql, name) in [
        ("explain analyze insert into t values (9, '')", "INSERT"),
        ("explain analyze delete from t", "DELETE"),
        ("select * from t for update", "SELECT FOR UPDATE"),
    ] {
        let mut s = session(&database());
        run(&mut s, SCHEMA);
        run(&mut s, "begin read only");
        let e = execute(&mut s, sql, &[]).expect_err(sql);
        let message = format!("cannot execute {name} in a read-only transaction");
        assert_eq!((e.state().0, e.message()), ("25006", message.as_str()));
    }
}

#[test]
fn a_failed_block_takes_what_ends_it() {
    for entry in entries() {
        let mut s = ready(entry);
        if s.tx_status() != b'T' {
            run(&mut s, "begin");
        }
        assert!(try_run(&mut s, "select 1 / 0", &[]).is_err());
        let found = execute(&mut s, entry.example, &[]);
        if entry.in_failed_block {
            found.unwrap_or_else(|e| panic!("{}: {e:?}", entry.example));
        } else {
            assert_eq!(found.expect_err(entry.example).state().0, "25P02", "{}", entry.example);
        }
    }
}

fn page() -> String {
    let mut out = String::from(
        "# Statements\n\nEvery type of statement, as the registry of `braid-sql` has it. \
         *Runs as*: a **plan** is made once and kept; a\n**utility** runs in a transaction from \
         its text; a **schema change** writes descriptors, and those with *steps*\ndo not keep \
         writers out; the **session** does the rest itself.\n\nThis page is written by a test: \
         `WRITE_DOCS=1 cargo test --workspace --test sql statement_registry::`.\n\n\
         | statement | what it does | example | effect | runs as |\n|---|---|---|---|---|\n",
    );
    for e in entries() {
        let effect = match e.effect {
            Effect::None => "none",
            Effect::Reads => "reads",
            Effect::Writes => "writes",
            Effect::AsPlanned => "reads; writes with FOR UPDATE",
            Effect::AsExplained => "that of what it runs",
        };
        let failed = if e.in_failed_block { "; also in a failed block" } else { "" };
        let steps = if e.has_steps() { ", in steps" } else { "" };
        let example = if e.example.is_empty() { String::new() } else { format!("`{}`", e.example) };
        let (name, about, runs) = (e.name, e.about, e.runs_as());
        let _ =
            writeln!(out, "| {name} | {about} | {example} | {effect}{failed} | {runs}{steps} |");
    }
    out
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
