//! Statements in the log: slow ones, and those that `log_statement` names.

use std::io::Write;
use std::sync::Arc;

use crate::harness::Db;
use parking_lot::Mutex;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What statements leave in the log.
fn logged(db: &mut Db, statements: &[&str]) -> Vec<String> {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .without_time()
        .finish();
    tracing::subscriber::with_default(log, || {
        // One that fails is logged before it runs, too.
        statements.iter().for_each(|sql| drop(db.try_run(sql)));
    });
    let bytes = lines.0.lock().clone();
    let text = String::from_utf8(bytes).expect("text");
    text.lines().filter(|l| l.contains("braid::statement")).map(str::to_string).collect()
}

#[test]
fn what_takes_long_is_logged_with_what_it_did() {
    let mut db = Db::new();
    db.run("create table t (id int primary key, v text)");
    db.run("insert into t values (1, 'a'), (2, 'b')");
    assert!(logged(&mut db, &["select v from t"]).is_empty(), "nothing is logged by default");
    db.run("set log_min_duration_statement = 0");
    let lines = logged(&mut db, &["select v from t", "select 1 / 0"]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in [
        "slow statement pid=",
        "user=\"root\" database=\"defaultdb\"",
        "duration_ms=",
        "rows=2 requests=1 bytes=",
        " lock_wait_ms=0.0 entries=2 blocks=0 blocks_from_disk=0 memory_peak=",
        "tries=1 query_id=",
        "statement=\"select v from t\"",
    ] {
        assert!(lines[0].contains(part), "{part}: {}", lines[0]);
    }
    db.run("set log_min_duration_statement = '1h'");
    assert!(logged(&mut db, &["select v from t"]).is_empty());
    assert_eq!(db.run("show log_min_duration_statement"), ["1h"]);
    db.run("set log_min_duration_statement = -1");
    assert!(logged(&mut db, &["select v from t"]).is_empty());
    assert!(db.try_run("set log_min_duration_statement = 'soon'").is_err());
}

#[test]
fn statements_are_logged_by_what_they_may_do() {
    let mut db = Db::new();
    db.run("create table t (id int primary key, v text)");
    let all = ["truncate t", "insert into t values (1, 'a')", "select v from t", "select nothing"];
    for (setting, count) in [("none", 0), ("ddl", 1), ("mod", 2), ("ALL", 3)] {
        db.run(&format!("set log_statement = {setting}"));
        // A statement that cannot be planned does not come to run.
        let lines = logged(&mut db, &all);
        assert_eq!(lines.len(), count, "{setting}: {lines:?}");
        assert!(lines.iter().all(|l| l.contains("statement=\"")), "{lines:?}");
    }
    assert!(db.try_run("set log_statement = some").is_err());
}
