//! Every statement type keeps its word: what its entry says is what a session does.
//!
//! The page of statements is written by `query/tests/reference.rs`.

use crate::harness::{database, run, session, try_run};
use braid_sql::statement::{Effect, Entry, entries};
use braid_sql::{Outcome, Session};
use braid_types::{Datum, SqlResult};

/// What the examples speak of.
const SCHEMA: &str = include_str!("statement_registry.sql");

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
            "CREATE TABLE" if entry.example.contains(" as execute ") => Ok(Some("SELECT")),
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
