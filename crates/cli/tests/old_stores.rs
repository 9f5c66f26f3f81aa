//! Stores that earlier builds have written open, and hold what they held.
//!
//! Each folder in `tests/stores` is such a store, with every kind of descriptor and type that there
//! was then, and `answers.txt`: what it answers to `questions.sql`, which also writes, and changes
//! the schema. All that is asked of one copy, and then of others that are killed in the middle of it
//! and go on.
//!
//! A store in the repository is never written anew. When what is stored changes, a new one is added
//! beside the old ones, by the build that has just become the older one:
//!
//! ```text
//!   BRAID_WRITE_STORE=2026-11-28 BRAID_BINARY=.. cargo test --workspace --test old_stores
//! ```
//!
//! `BRAID_REWRITE=1` writes the answers anew, which the change of what is printed may need.

#![expect(clippy::disallowed_methods, reason = "the tests play the user, who has real files")]

mod support;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use postgres::{Client, SimpleQueryMessage};
use support::Node;

/// All tables, and what each holds.
const TABLES: &str = "SELECT format('SHOW CREATE TABLE %s', c.oid::regclass::text),
        format('SELECT t::text FROM %s t ORDER BY t::text', c.oid::regclass::text)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname IN ('shop', 'kinds', 'public') AND c.relkind IN ('r', 'p') ORDER BY 2";

fn stores() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores")
}

fn script(name: &str) -> String {
    std::fs::read_to_string(stores().join(name)).expect("a script")
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

/// Statements, each on a line; lines of comments are left out.
fn statements(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with("--"))
}

/// What is answered, or the state and the message of the error.
fn answer(client: &mut Client, sql: &str) -> Vec<Vec<String>> {
    let messages = match client.simple_query(sql) {
        Ok(messages) => messages,
        Err(e) => {
            let error = e.as_db_error().unwrap_or_else(|| panic!("{sql}: {e}"));
            return vec![vec![error.code().code().into(), error.message().into()]];
        }
    };
    let rows = messages.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|n| row.get(n).unwrap_or("NULL").to_string()).collect())
        }
        _ => None,
    });
    rows.collect()
}

fn note(text: &mut String, sql: &str, rows: &[Vec<String>]) {
    writeln!(text, "{sql}").expect("text grows");
    for row in rows {
        let row = row.join("|").replace('\n', "\n    ");
        writeln!(text, "    {}", row.trim_end()).expect("text grows");
    }
}

/// What is printed is to be the same for each session.
fn begin(client: &mut Client) {
    let settings = "SET TIME ZONE 'UTC'; SET search_path = kinds, shop, public";
    client.batch_execute(settings).expect("settings");
}

/// What all tables are and hold.
fn tables(client: &mut Client) -> String {
    let mut text = String::new();
    for sql in answer(client, TABLES).concat() {
        let rows = answer(client, &sql);
        note(&mut text, &sql, &rows);
    }
    text
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("the store") {
        let entry = entry.expect("a file");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a kind").is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("it is copied")),
        }
    }
}

/// Copies what a store cannot do without: a wal's zeros are room for more.
fn keep(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("the store") {
        let entry = entry.expect("a file");
        let name = entry.file_name();
        if entry.path().is_dir() || name == "BALLAST" || name == "LOCK" {
            continue;
        }
        let mut bytes = std::fs::read(entry.path()).expect("it is read");
        if name.to_string_lossy().ends_with(".wal") {
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(used.next_multiple_of(4_096));
        }
        std::fs::write(to.join(name), bytes).expect("it is written");
    }
}

/// Writes a store with this name.
fn write(name: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let node = Node::start(&folder.path().join("store"));
    let client = &mut node.client();
    client.batch_execute("CREATE ROLE reader").expect("a role");
    client.batch_execute(&script("../dumps/objects.sql")).expect("objects");
    for sql in statements(&script("kinds.sql")) {
        client.batch_execute(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    }
    client.batch_execute("CREATE DATABASE other").expect("a database");
    node.terminate();
    keep(&folder.path().join("store"), &stores().join(name).join("store"));
}

/// Asks all questions, and the tables before them; after so many of them the node is killed, and
/// goes on.
fn ask(data: &Path, kill_after: Option<usize>) -> String {
    let mut node = Node::start(data);
    let mut client = node.client();
    begin(&mut client);
    let mut text = tables(&mut client);
    for (at, sql) in statements(&script("questions.sql")).enumerate() {
        if kill_after == Some(at) {
            node.kill();
            node = Node::start(data);
            client = node.client();
            begin(&mut client);
        }
        let rows = answer(&mut client, sql);
        note(&mut text, sql, &rows);
    }
    text
}

#[test]
fn stores_of_earlier_builds_open_and_answer_as_ever() {
    if let Ok(name) = std::env::var("BRAID_WRITE_STORE") {
        write(&name);
    }
    let mut count = 0;
    for entry in std::fs::read_dir(stores()).expect("the folder") {
        let folder = entry.expect("a file").path();
        if !folder.is_dir() {
            continue;
        }
        count += 1;
        let copies = tempfile::tempdir().expect("a temporary folder");
        let opened = |name: &str, kill_after| {
            let data = copies.path().join(name);
            copy(&folder.join("store"), &data);
            ask(&data, kill_after)
        };
        let answers = folder.join("answers.txt");
        let told = opened("whole", None);
        if is_set("BRAID_REWRITE") || is_set("BRAID_WRITE_STORE") && !answers.exists() {
            std::fs::write(&answers, &told).expect("they are written");
        }
        let known = std::fs::read_to_string(&answers).expect("what is answered");
        assert_same(&folder, &known, &told);
        for at in [1, 30, 55] {
            assert_same(&folder, &known, &opened(&format!("killed at {at}"), Some(at)));
        }
    }
    assert_ne!(count, 0, "there is no store");
}

/// # Panics
/// With the first line that differs.
fn assert_same(folder: &Path, known: &str, told: &str) {
    let mut last = "";
    for (known, told) in known.lines().zip(told.lines()) {
        if !known.starts_with(' ') {
            last = known;
        }
        assert_eq!(known, told, "{}: {last}", folder.display());
    }
    assert_eq!(known.lines().count(), told.lines().count(), "{}", folder.display());
}
