//! Several sessions at once: conflicts, locks, schema changes in between.

use std::sync::Arc;

use crate::harness::{database, error, rows, run, session, state, tag, try_run};

#[test]
fn single_statements_run_again_by_themselves() {
    let db = database();
    run(
        &mut session(&db),
        "create table t (id int primary key, n int); insert into t values (1, 0)",
    );
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let db = Arc::clone(&db);
            #[expect(clippy::disallowed_methods, reason = "a test of real threads")]
            std::thread::spawn(move || {
                let s = &mut session(&db);
                for _ in 0..50 {
                    assert_eq!(tag(s, "update t set n = n + 1 where id = 1"), "UPDATE 1");
                }
            })
        })
        .collect();
    for t in threads {
        t.join().unwrap();
    }
    assert_eq!(rows(&mut session(&db), "select n from t"), ["200"]);
}

#[test]
fn read_committed_sees_what_was_committed() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(a, "create table t (id int primary key, n int); insert into t values (1, 0)");
    run(a, "begin isolation level read committed; select * from t");
    run(b, "update t set n = 5 where id = 1");
    assert_eq!(rows(a, "select n from t where id = 1"), ["5"]);
    run(a, "update t set n = n + 1 where id = 1; commit");
    assert_eq!(rows(b, "select n from t"), ["6"]);
    run(a, "begin isolation level repeatable read; select * from t");
    run(b, "update t set n = 7 where id = 1");
    assert_eq!(rows(a, "select n from t where id = 1"), ["6"]);
    assert_eq!(state(a, "update t set n = n + 1 where id = 1"), "40001");
    run(a, "rollback");
}

#[test]
fn a_block_starts_at_its_first_statement() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(a, "create table t (id int primary key, n int); insert into t values (1, 0)");
    for isolation in ["serializable", "repeatable read", "read committed"] {
        run(a, &format!("begin isolation level {isolation}"));
        run(b, "update t set n = 10 where id = 1");
        assert_eq!(tag(a, "update t set n = n + 1 where id = 1"), "UPDATE 1");
        run(a, "commit");
        assert_eq!(rows(b, "select n from t"), ["11"]);
    }
    run(a, "begin; select n from t where id = 1");
    run(b, "update t set n = 20 where id = 1");
    assert_eq!(rows(a, "select n from t where id = 1"), ["11"]);
    run(a, "rollback");
}

#[test]
fn a_statement_in_a_block_runs_again_while_earlier_reads_hold() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(a, "create table t (id int primary key, n int)");
    run(a, "insert into t values (1, 0), (2, 0), (3, 0)");
    run(a, "begin; update t set n = n + 1 where id = 1");
    run(b, "update t set n = 10 where id = 2");
    assert_eq!(tag(a, "update t set n = n + 1 where id = 2"), "UPDATE 1");
    // A table that got a column meanwhile is met in its new form.
    run(b, "create table u (id int primary key, n int); insert into u values (1, 0)");
    run(a, "rollback; begin; update t set n = n + 1 where id = 1");
    run(b, "alter table u add column c int default 7");
    run(b, "update t set n = 10 where id = 2");
    assert_eq!(tag(a, "update u set n = 5 where id = 1"), "UPDATE 1");
    assert_eq!(tag(a, "update t set n = n + 1 where id = 2"), "UPDATE 1");
    run(a, "commit");
    assert_eq!(rows(b, "select id, n from t order by id"), ["1|1", "2|11", "3|0"]);
    assert_eq!(rows(b, "select * from u"), ["1|5|7"]);
    // What was read before has changed: only the whole block can run again.
    run(a, "begin; select n from t where id = 1");
    run(b, "update t set n = 5 where id in (1, 2)");
    assert_eq!(state(a, "update t set n = n + 1 where id = 2"), "40001");
    run(a, "rollback");
}

#[test]
fn transfers_over_one_hot_row_seldom_fail() {
    let db = database();
    run(
        &mut session(&db),
        "create table t (id int primary key, n int); insert into t values (0, 0)",
    );
    let threads: Vec<_> = (1..5)
        .map(|own| {
            let db = Arc::clone(&db);
            #[expect(clippy::disallowed_methods, reason = "a test of real threads")]
            std::thread::spawn(move || {
                let s = &mut session(&db);
                run(s, &format!("insert into t values ({own}, 0)"));
                for _ in 0..50 {
                    run(s, &format!("begin; update t set n = n + 1 where id = {own}"));
                    run(s, "update t set n = n + 1 where id = 0; commit");
                }
            })
        })
        .collect();
    for t in threads {
        t.join().unwrap();
    }
    let all = rows(&mut session(&db), "select n from t order by id");
    assert_eq!(all, ["200", "50", "50", "50", "50"]);
}

#[test]
fn row_locks() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(a, "create table t (id int primary key, n int); insert into t values (1, 0), (2, 0)");
    run(a, "begin; select * from t where id = 1 for update");
    assert_eq!(state(b, "select * from t where id = 1 for update nowait"), "55P03");
    assert_eq!(rows(b, "select id from t order by id for update skip locked"), ["2"]);
    run(b, "set lock_timeout = '50ms'");
    assert_eq!(state(b, "update t set n = 1 where id = 1"), "55P03");
    run(a, "commit");
    assert_eq!(tag(b, "update t set n = 1 where id = 1"), "UPDATE 1");
}

#[test]
fn schema_changes_are_seen_by_other_sessions() {
    let db = database();
    let (a, b) = (&mut session(&db), &mut session(&db));
    run(a, "create table t (id int primary key)");
    assert_eq!(rows(b, "select * from t").len(), 0);
    run(a, "alter table t add column n int default 3; insert into t values (1)");
    assert_eq!(rows(b, "select * from t"), ["1|3"]);
    // An index made in a block holds what others wrote before it.
    run(a, "begin; create unique index i on t (n)");
    run(a, "commit");
    assert_eq!(state(b, "insert into t values (2, 3)"), "23505");
    // Old pictures of the catalog for old timestamps, and for open transactions.
    run(b, "begin; select * from t");
    run(a, "drop table t");
    assert_eq!(error(a, "select * from t where id = 1").state().0, "0A000");
    assert_eq!(rows(b, "select n from t where id = 1"), ["3"]);
    assert!(try_run(b, "insert into t values (9, 9)", &[]).is_err());
    run(b, "rollback");
}

#[test]
fn a_child_cannot_slip_under_a_range_delete() {
    let db = database();
    for isolation in ["serializable", "repeatable read", "read committed"] {
        let (a, b) = (&mut session(&db), &mut session(&db));
        run(a, "create table p (id int primary key)");
        run(
            a,
            "create table c (id int, n int, primary key (id, n)) interleave in parent p on delete cascade",
        );
        run(a, "insert into p values (1), (2)");
        run(a, &format!("begin isolation level {isolation}; delete from p where id = 1"));
        run(b, "set lock_timeout = '100ms'");
        assert!(try_run(b, "insert into c values (1, 1)", &[]).is_err(), "{isolation}");
        assert_eq!(tag(b, "insert into c values (2, 1)"), "INSERT 0 1");
        run(a, "commit");
        assert_eq!(state(b, "insert into c values (1, 1)"), "23503");
        assert_eq!(rows(b, "select count(*) from c"), ["1"]);
        run(a, "drop table p cascade");
    }
}

#[test]
fn time_travel() {
    let s = &mut session(&database());
    run(s, "create table p (id int primary key)");
    run(
        s,
        "create table c (id int, n int, primary key (id, n)) interleave in parent p on delete cascade",
    );
    run(s, "insert into p values (1); insert into c values (1, 1), (1, 2)");
    let now = rows(s, "select clock_timestamp()")[0].clone();
    run(s, "delete from p where id = 1");
    run(s, "alter table c add column x int");
    assert_eq!(rows(s, "select count(*) from c"), ["0"]);
    let old = format!("select * from c as of system time '{now}' order by id, n");
    assert_eq!(rows(s, &old), ["1|1", "1|2"]);
    run(s, &format!("begin as of system time '{now}'"));
    assert_eq!(rows(s, "select count(*) from c"), ["2"]);
    assert_eq!(state(s, "insert into p values (9)"), "25006");
    run(s, "rollback");
    assert_eq!(state(s, "select * from c as of system time 'x'"), "22023");
}

/// Rows of tables without a primary key have hidden numbers, commits have timestamps, and some of the
/// past is given up: none of them may depend on a clock that never goes back.
#[test]
fn a_clock_that_was_set_back_stops_no_statement() {
    use braid_env::clock::ManualClock;
    use braid_kv::{Store, StoreOptions};
    const DAY: u64 = 86_400_000_000;
    let now = 1_800_000_000_000_000;
    let (fs, clock) = (braid_env::fs::MemFs::new(), Arc::new(ManualClock::at_micros(now)));
    let open = || {
        let mut options = StoreOptions::new(Arc::new(fs.clone()), "db", clock.clone());
        options.engine.row_class = braid_keys::row_class;
        options.row_form = Some(braid_rows::ROW_FORM);
        let store = Store::open(options).unwrap();
        let general = Arc::new(braid_sql::NoGeneralQueries);
        let db = braid_sql::Database::open(store.coordinator(), general).unwrap();
        (store, db)
    };
    let many: Vec<String> = (1..=100).map(|n| format!("({n})")).collect();
    let work = |db: &Arc<braid_sql::Database>, round: usize| {
        for level in ["serializable", "repeatable read", "read committed"] {
            let s = &mut session(db);
            run(s, &format!("set default_transaction_isolation = '{level}'"));
            run(s, &format!("insert into t values {}", many.join(", ")));
            run(s, "begin; insert into t values (-1), (-2); update t set n = -3 where n = -2");
            run(s, "delete from t where n in (-1, -3); commit");
            run(s, &format!("create table made_{round}_{} (n int)", level.replace(' ', "_")));
        }
        let s = &mut session(db);
        let expected = (300 * (round + 1)).to_string();
        assert_eq!(rows(s, "select count(*) from t"), [expected], "round {round}");
        run(s, "insert into twice values (1) on conflict (n) do update set at = clock_timestamp()");
    };
    let (store, db) = open();
    run(
        &mut session(&db),
        "create table t (n int); create table twice (n int primary key, at timestamptz)",
    );
    work(&db, 0);
    // The past up to tomorrow is given up; then it is yesterday, in the running node.
    clock.set_micros(now + DAY);
    store.set_gc_window(std::time::Duration::from_secs(1));
    work(&db, 1);
    store.advance_gc().unwrap();
    clock.set_micros(now - DAY);
    work(&db, 2);
    store.advance_gc().unwrap();
    drop(db);
    while Arc::strong_count(&store) > 1 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drop(store);
    // Long ago, when the next one starts.
    clock.set_micros(now / 2);
    let (_store, db) = open();
    work(&db, 3);
}

#[test]
fn writers_keep_up_with_schema_changes() {
    let db = database();
    run(&mut session(&db), "create table t (id int primary key, n int)");
    let writers: Vec<_> = (0..3)
        .map(|w| {
            let db = Arc::clone(&db);
            #[expect(clippy::disallowed_methods, reason = "a test of real threads")]
            std::thread::spawn(move || {
                let s = &mut session(&db);
                for i in 0..60 {
                    run(s, &format!("insert into t (id, n) values ({}, {i})", w * 1000 + i));
                }
            })
        })
        .collect();
    let s = &mut session(&db);
    for i in 0..6 {
        run(s, &format!("create index i{i} on t (n)"));
        run(s, &format!("alter table t add column c{i} int default {i}"));
    }
    for w in writers {
        w.join().unwrap();
    }
    // Every row is in every index, whichever came first.
    assert_eq!(rows(s, "select count(*) from t"), ["180"]);
    for i in 0..6 {
        assert_eq!(rows(s, "select count(*) from t where n = 7"), ["3"]);
        assert_eq!(rows(s, &format!("select count(c{i}) from t")), ["180"]);
        run(s, &format!("drop index i{i}"));
    }
}
