//! Sequences: what they hand out after their declaration has changed, and who owns them.

use crate::harness::{database, rows, run, session, state};

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

/// The database of the next process, after an end in order.
fn started_anew(db: &std::sync::Arc<braid_sql::Database>) -> std::sync::Arc<braid_sql::Database> {
    db.give_sequences_back().unwrap();
    let general = std::sync::Arc::new(braid_sql::NoGeneralQueries);
    braid_sql::Database::open(db.coordinator().clone(), general).unwrap()
}

#[test]
fn numbers_go_on_after_an_end_in_order() {
    let mut db = database();
    let make = "create sequence s; create sequence down increment -3 maxvalue 10 start 10; \
                create sequence ring maxvalue 3 cycle; create sequence wide cache 500; \
                create sequence unused; create table t (id serial primary key, n int)";
    run(&mut session(&db), make);
    let each = "select nextval('s'), nextval('down'), nextval('ring'), nextval('wide')";
    for expected in ["1|10|1|1", "2|7|2|2", "3|4|3|3", "4|1|1|4"] {
        let s = &mut session(&db);
        assert_eq!(rows(s, each), [expected]);
        run(s, "insert into t (n) values (1)");
        db = started_anew(&db);
    }
    let s = &mut session(&db);
    assert_eq!(rows(s, "select max(id), count(*) from t"), ["4|4"]);
    assert_eq!(rows(s, "select nextval('unused')"), ["1"]);
    // Who still asks after the end gets what nobody has had, and so does the next process.
    db.give_sequences_back().unwrap();
    assert_eq!(next(s, 2), ["5", "6"]);
    let mut later = session(&started_anew(&db));
    assert_eq!(next(&mut later, 1), ["7"]);
}

#[test]
fn what_has_become_of_a_sequence_stays_after_an_end_in_order() {
    let db = database();
    let s = &mut session(&db);
    run(s, "create sequence s; create sequence gone; create sequence set; create sequence other");
    run(s, "select nextval('s'), nextval('gone'), nextval('set'), nextval('other')");
    run(s, "alter sequence s restart with 50; drop sequence gone; select setval('set', 64)");
    run(s, "alter sequence other increment by 10");
    run(s, "begin; create sequence never; select nextval('never'); rollback");
    let before = sequence_records(&db);
    let db = started_anew(&db);
    assert_eq!(sequence_records(&db), before, "none comes back");
    let s = &mut session(&db);
    let each = "select nextval('s'), nextval('set'), nextval('other')";
    assert_eq!(rows(s, each), ["50|65|11"]);
}

/// Keys of all stored positions of sequences.
fn sequence_records(db: &braid_sql::Database) -> Vec<bytes::Bytes> {
    let txn = db.coordinator().begin(braid_kv::TxnOptions::default()).unwrap();
    let first = braid_keys::system::sequence_value(0, 0);
    let after = braid_keys::system::sequence_value(u32::MAX, u32::MAX);
    let span = braid_kv::KeySpan::new(first, after);
    let mut scan = txn.scan(span, braid_kv::ScanOptions::default()).unwrap();
    let mut keys = Vec::new();
    while let Some((key, _)) = scan.next().unwrap() {
        keys.push(key);
    }
    keys
}
