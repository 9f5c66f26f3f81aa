//! Sequences: what they hand out after their declaration has changed, and who owns them.

mod harness;

use harness::{database, rows, run, session, state};

fn next(s: &mut braid_sql::Session, n: usize) -> Vec<String> {
    (0..n).map(|_| rows(s, "select nextval('s')")[0].clone()).collect()
}

#[test]
fn another_increment_counts_from_the_last_value() {
    let db = database();
    let s = &mut session(&db);
    run(s, "create sequence s");
    assert_eq!(next(s, 2), ["1", "2"]);
    run(s, "alter sequence s increment by 50");
    assert_eq!(next(s, 3), ["52", "102", "152"]);
    run(s, "alter sequence s increment by -1");
    assert_eq!(next(s, 2), ["151", "150"]);
    run(s, "alter sequence s increment by 1");
    // Another session's values come from the same place.
    assert_eq!(next(&mut session(&db), 1), ["151"]);
    assert_eq!(next(s, 1), ["152"]);
}

#[test]
fn bounds_hold_at_once() {
    let s = &mut session(&database());
    run(s, "create sequence s");
    next(s, 3);
    run(s, "alter sequence s maxvalue 4");
    assert_eq!(next(s, 1), ["4"]);
    assert_eq!(state(s, "select nextval('s')"), "2200H");
    run(s, "alter sequence s cycle");
    assert_eq!(next(s, 2), ["1", "2"]);
}

#[test]
fn a_restart_that_is_rolled_back_leaves_nothing() {
    let s = &mut session(&database());
    run(s, "create table t (id serial primary key, n int); insert into t (n) values (1), (2)");
    run(s, "begin; alter sequence t_id_seq restart with 1000; rollback");
    run(s, "insert into t (n) values (3)");
    run(s, "truncate t restart identity; insert into t (n) values (4)");
    assert_eq!(rows(s, "select * from t"), ["1|4"]);
    run(s, "begin; truncate t restart identity; rollback; insert into t (n) values (5)");
    assert_eq!(rows(s, "select id from t order by id"), ["1", "2"]);
    run(s, "alter sequence t_id_seq restart with 50; insert into t (n) values (6)");
    assert_eq!(rows(s, "select max(id) from t"), ["50"]);
}

#[test]
fn a_default_uses_the_sequence_it_names() {
    let s = &mut session(&database());
    run(s, "create table t (id serial primary key, n int)");
    run(s, "create sequence t_id_seq2 start with 500");
    run(s, "alter table t alter id set default nextval('t_id_seq2')");
    run(s, "insert into t (n) values (1)");
    assert_eq!(rows(s, "select id from t"), ["500"]);
    run(s, "alter table t alter id set default nextval('public.t_id_seq'::regclass)");
    run(s, "insert into t (n) values (2)");
    assert_eq!(rows(s, "select min(id) from t"), ["1"]);
}

#[test]
fn an_owned_sequence_goes_and_restarts_with_its_table() {
    let s = &mut session(&database());
    run(s, "create sequence s; create table t (id int primary key default nextval('s'), n int)");
    run(s, "alter sequence s owned by t.id; insert into t (n) values (1), (2)");
    run(s, "truncate t restart identity; insert into t (n) values (3)");
    assert_eq!(rows(s, "select id from t"), ["1"]);
    run(s, "drop table t");
    assert_eq!(state(s, "select nextval('s')"), "42P01");
    run(s, "create sequence s; create table t (id int primary key, k int, n int)");
    run(s, "alter sequence s owned by t.k; alter table t drop column k");
    assert_eq!(state(s, "select nextval('s')"), "42P01");
}
