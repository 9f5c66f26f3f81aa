//! Temporary tables belong to their session, and go with it.

mod harness;

use harness::{database, error, rows, run, session};

fn left(s: &mut braid_sql::Session) -> usize {
    let catalog = s.state().db().current_catalog().unwrap();
    catalog.tables().filter(|t| t.name == "t").count()
}

#[test]
fn each_session_has_its_own() {
    let db = database();
    let (mut a, mut b) = (session(&db), session(&db));
    for s in [&mut a, &mut b] {
        run(s, "create temp table t (a int primary key)");
    }
    run(&mut a, "insert into t values (1)");
    assert_eq!(rows(&mut a, "select a from t"), ["1"]);
    assert!(rows(&mut b, "select a from t").is_empty());
    let pid = rows(&mut a, "select pg_backend_pid()").remove(0);
    let theirs = format!("select a from pg_temp_{pid}.t");
    assert_eq!(error(&mut b, &theirs).state().0, "0A000");
    assert_eq!(rows(&mut a, &theirs), ["1"]);
}

#[test]
fn they_end_with_their_session_whatever_it_was_doing() {
    let db = database();
    let mut other = session(&db);
    for last in ["select 1", "begin; insert into t values (2)", "begin; select 1 / 0"] {
        let mut s = session(&db);
        run(&mut s, "create temp table t (a int primary key)");
        assert_eq!(left(&mut other), 1);
        let _ = harness::try_run(&mut s, last, &[]);
        drop(s);
        assert_eq!(left(&mut other), 0, "{last}");
    }
    let mut s = session(&db);
    run(&mut s, "create temp table t (a int primary key); discard all");
    assert_eq!(left(&mut other), 0);
    assert_eq!(error(&mut s, "insert into t values (1)").state().0, "42P01");
}

#[test]
fn what_a_crash_leaves_goes_when_the_database_is_opened() {
    let db = database();
    let mut s = session(&db);
    run(&mut s, "create temp table t (a int primary key); create table kept (a int)");
    // The session never ends.
    std::mem::forget(s);
    let again = braid_sql::Database::open(
        db.coordinator().clone(),
        std::sync::Arc::new(braid_sql::NoGeneralQueries),
    )
    .unwrap();
    let mut s = session(&again);
    assert_eq!(left(&mut s), 0);
    assert!(rows(&mut s, "select * from kept").is_empty());
}
