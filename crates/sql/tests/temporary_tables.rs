//! Temporary tables belong to their session, and go with it.

use crate::harness;

use crate::harness::{database, error, rows, run, session};

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
fn those_of_others_are_in_nobodys_way() {
    let db = database();
    let (mut a, mut b) = (session(&db), session(&db));
    run(&mut a, "create temp table t (a serial primary key, b int generated always as identity)");
    run(&mut a, "create temp sequence own; create temp table u (a int default nextval('own'))");
    run(
        &mut b,
        "create table t (a serial primary key); create sequence s; create view v as select 1",
    );
    run(&mut b, "drop table t; drop sequence s; drop view v");
    // What they use of all is in the way, as in PostgreSQL.
    run(&mut b, "create sequence used");
    run(&mut a, "create temp table w (a int default nextval('used'))");
    assert_eq!(error(&mut b, "drop sequence used").state().0, "2BP01");
    run(&mut a, "insert into t default values; insert into u default values");
    assert_eq!(rows(&mut a, "select a, b from t"), ["1|1"]);
    assert_eq!(rows(&mut a, "select a from u"), ["1"]);
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

const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

/// Two sessions that give up soon when they have to wait.
fn two(db: &std::sync::Arc<braid_sql::Database>) -> (braid_sql::Session, braid_sql::Session) {
    let (mut a, mut b) = (session(db), session(db));
    run(&mut a, "set lock_timeout = '2s'");
    run(&mut b, "set lock_timeout = '2s'");
    (a, b)
}

#[test]
fn blocks_that_make_temporary_tables_do_not_wait_for_each_other() {
    for level in LEVELS {
        for drop in ["", "on commit drop"] {
            let db = database();
            let (mut a, mut b) = two(&db);
            for s in [&mut a, &mut b] {
                run(s, &format!("begin isolation level {level}"));
                run(s, &format!("create temp table t (id serial primary key, n int) {drop}"));
                run(s, "create index on t (n); insert into t (n) values (1)");
            }
            run(&mut b, "insert into t (n) values (2); commit");
            run(&mut a, "insert into t (n) values (3)");
            assert_eq!(rows(&mut a, "select n from t order by id"), ["1", "3"], "{level}");
            run(&mut a, "commit");
            for (s, own) in [(&mut a, ["1", "3"]), (&mut b, ["1", "2"])] {
                match drop {
                    "" => assert_eq!(rows(s, "select n from t order by id"), own, "{level}"),
                    _ => assert_eq!(error(s, "insert into t values (1)").state().0, "42P01"),
                }
            }
        }
    }
}

#[test]
fn a_block_with_a_temporary_table_keeps_no_schema_change_waiting() {
    for level in LEVELS {
        let db = database();
        let (mut a, mut b) = two(&db);
        run(&mut a, "create table p (id int primary key)");
        run(&mut a, &format!("begin isolation level {level}; create temp table t (n int)"));
        run(&mut b, "create table other (id int primary key); insert into other values (1)");
        run(&mut b, "alter table p add column x int");
        run(&mut a, "insert into t values (1)");
        match level {
            "read committed" => assert_eq!(rows(&mut a, "select id from other"), ["1"]),
            _ => assert_eq!(rows(&mut a, "select n from t"), ["1"]),
        }
        if level == "read committed" {
            // A change of what all see may follow, and then keeps others waiting.
            run(&mut a, "create table mine (id int primary key)");
            assert_eq!(error(&mut b, "create table mine (id int)").state().0, "55P03");
            run(&mut b, "create temp table also (n int)");
        }
        run(&mut a, "commit");
        assert_eq!(rows(&mut a, "select n from t"), ["1"], "{level}");
        assert_eq!(rows(&mut a, "select id from other"), ["1"], "{level}");
        assert!(rows(&mut b, "select id, x from p").is_empty());
    }
}

#[test]
fn a_block_with_a_schema_change_keeps_no_temporary_table_waiting() {
    for level in LEVELS {
        let db = database();
        let (mut a, mut b) = two(&db);
        run(&mut a, &format!("begin isolation level {level}; create table kept (id int)"));
        run(&mut b, "create temp table t (n int); insert into t values (1)");
        run(&mut a, "create table more (id int); insert into kept values (7); commit");
        assert_eq!(rows(&mut b, "select n from t"), ["1"], "{level}");
        assert_eq!(rows(&mut b, "select id from kept"), ["7"], "{level}");
        run(&mut b, "insert into more values (1)");
    }
}

#[test]
fn what_a_temporary_table_needs_may_be_gone_when_it_is_committed() {
    let lost = [
        ("create type gone as enum ('a')", "create temp table t (x gone)", "drop type gone"),
        ("create domain gone as int", "create temp table t (x gone)", "drop domain gone"),
        ("create sequence gone", "create temp table t (x int default nextval('gone'))", ""),
    ];
    for (first, temporary, gone) in lost {
        let db = database();
        let (mut a, mut b) = two(&db);
        run(&mut a, first);
        run(&mut a, &format!("begin; {temporary}"));
        run(&mut b, gone);
        match gone {
            "" => drop(run(&mut a, "commit; insert into t default values")),
            _ => assert_eq!(error(&mut a, "commit").state().0, "40001", "{gone}"),
        }
        assert_eq!(left(&mut b), usize::from(gone.is_empty()), "{gone}");
        let _ = run(&mut b, "create table works (id int)");
    }
}

#[test]
fn rollback_to_a_savepoint_sees_what_others_have_changed() {
    let db = database();
    let (mut a, mut b) = two(&db);
    run(&mut a, "begin isolation level read committed; create temp table t (n int)");
    run(&mut a, "savepoint one; create temp table u (n int)");
    run(&mut b, "create table other (id int); insert into other values (4)");
    run(&mut a, "rollback to one");
    assert_eq!(rows(&mut a, "select id from other"), ["4"]);
    run(&mut a, "savepoint two");
    assert_eq!(error(&mut a, "insert into u values (1)").state().0, "42P01");
    run(&mut a, "rollback to two; create temp table u (n int); commit");
    assert!(rows(&mut a, "select * from u").is_empty());
    assert_eq!(rows(&mut b, "select id from other"), ["4"]);
}

#[test]
fn statements_of_a_block_know_what_others_have_created_meanwhile() {
    let db = database();
    let (mut a, mut b) = two(&db);
    for level in LEVELS {
        run(&mut a, &format!("begin isolation level {level}"));
        run(&mut b, "create table late (id int primary key); insert into late values (1)");
        // The view of a block is that of its first statement.
        assert_eq!(rows(&mut a, "select * from late"), ["1"], "{level}");
        run(&mut b, "alter table late add column x int");
        match level {
            "read committed" => assert_eq!(rows(&mut a, "select * from late"), ["1|NULL"]),
            _ => assert_eq!(rows(&mut a, "select * from late"), ["1"], "{level}"),
        }
        run(&mut a, "commit; drop table late");
    }
}
