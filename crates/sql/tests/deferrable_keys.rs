//! Unique keys that are looked at late: between sessions, inside of families, after many rows.

use crate::harness::{database, error, rows, run, session, state};

const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

#[test]
fn of_two_blocks_that_write_one_key_the_second_fails() {
    for level in LEVELS {
        let db = database();
        let (a, b) = (&mut session(&db), &mut session(&db));
        run(a, "create table t (id int primary key, n int unique deferrable initially deferred)");
        for (s, id) in [(&mut *a, 1), (&mut *b, 2)] {
            run(s, &format!("begin isolation level {level}; select * from t where id = {id}"));
            run(s, &format!("insert into t values ({id}, 7)"));
        }
        run(a, "commit");
        let e = error(b, "commit");
        assert_eq!(e.state().0, "23505", "{level}: {e}");
        assert_eq!(rows(b, "select id from t"), ["1"], "{level}");
    }
}

#[test]
fn who_has_looked_keeps_others_waiting_until_his_end() {
    for (end, then) in [("commit", "23505"), ("rollback", "")] {
        let db = database();
        let (a, b) = (&mut session(&db), &mut session(&db));
        run(a, "create table t (id int primary key, n int unique deferrable)");
        run(a, "begin; insert into t values (1, 7)");
        run(b, "set lock_timeout = '100ms'");
        assert_eq!(state(b, "insert into t values (2, 7)"), "55P03");
        run(b, "insert into t values (3, 8)");
        run(a, end);
        match then {
            "" => drop(run(b, "insert into t values (2, 7)")),
            _ => assert_eq!(state(b, "insert into t values (2, 7)"), then),
        }
    }
}

#[test]
fn keys_of_rows_that_went_with_their_family_are_free() {
    let db = database();
    let s = &mut session(&db);
    run(s, "create table p (a int primary key)");
    run(
        s,
        "create table c (a int, b int, n int unique deferrable, primary key (a, b)) \
         interleave in parent p on delete cascade",
    );
    run(s, "insert into p values (1), (2); insert into c values (1, 1, 7), (1, 2, 8)");
    assert_eq!(state(s, "insert into c values (2, 1, 7)"), "23505");
    run(s, "delete from p where a = 1; insert into c values (2, 1, 7)");
    assert_eq!(state(s, "insert into c values (2, 2, 7)"), "23505");
    // A family gets another key, and its rows keep theirs.
    run(s, "begin; insert into p values (3); insert into c values (3, 1, 9)");
    run(s, "update c set n = 16 - n; commit");
    assert_eq!(rows(s, "select a, n from c"), ["2|9", "3|7"]);
}

#[test]
fn a_table_whose_keys_wait_keeps_its_form() {
    let db = database();
    let s = &mut session(&db);
    run(s, "create table t (id int primary key, n int unique deferrable initially deferred)");
    run(s, "begin; insert into t values (1, 7)");
    assert_eq!(state(s, "alter table t drop constraint t_n_key"), "55006");
    run(s, "rollback");
    run(s, "begin; insert into t values (1, 7); set constraints all immediate");
    run(s, "alter table t drop constraint t_n_key; insert into t values (2, 7); commit");
    assert_eq!(rows(s, "select n from t"), ["7", "7"]);
    assert_eq!(state(s, "alter table t add unique (n) deferrable"), "23505");
    assert_eq!(state(s, "insert into t values (3, 7) on conflict (n) do nothing"), "42P10");
}

#[test]
fn many_rows_change_their_keys_in_one_statement() {
    let db = database();
    let s = &mut session(&db);
    run(s, "set \"braid.request_batch\" = 16");
    run(s, "create table t (id int primary key, n int unique deferrable)");
    let all: Vec<String> = (0..3000).map(|n| format!("({n}, {n})")).collect();
    run(s, &format!("insert into t values {}", all.join(", ")));
    run(s, "update t set n = n + 1");
    run(s, "update t set n = 3001 - n");
    assert_eq!(rows(s, "select n from t where id in (0, 2999)"), ["3000", "1"]);
    assert_eq!(state(s, "update t set n = n / 2"), "23505");
    assert_eq!(rows(s, "select id from t where n = 1500"), ["1500"]);
}
