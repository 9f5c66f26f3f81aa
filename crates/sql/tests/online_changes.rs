//! Schema changes in steps: what others write at every step, unique keys, constraints, waiting,
//! CANCEL JOB, and crashes.

use crate::harness;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::actors::Stage;
use crate::harness::{database, database_on, error, rows, run, session, state, tag, try_run};
use braid_catalog::load_catalog;
use braid_env::fs::{CrashPolicy, MemFs};
use braid_env::random::Random;
use braid_kv::{KeySpan, ScanOptions, TxnOptions};
use braid_rows::TableLayout;
use braid_sql::jobs::Step;
use braid_sql::{Database, Outcome, Session};
use parking_lot::Mutex;

const LEVELS: [&str; 3] = ["serializable", "repeatable read", "read committed"];

/// Steps of an index that is built in steps, in order.
const STEPS: [&str; 8] = [
    "announce",
    "wait for users",
    "backfill",
    "ingest",
    "enforce",
    "wait for noting users",
    "merge",
    "complete",
];

/// Statements of numbered sessions, by the step at which they run.
type Script = Vec<(&'static str, usize, String)>;

/// Runs a change while others run a script, and returns what it answered, with what went wrong in
/// the script.
fn change_beside(
    db: &Arc<Database>,
    change: &str,
    script: Script,
) -> (Option<&'static str>, Vec<String>) {
    let sessions: Mutex<Vec<Session>> = Mutex::new((0..3).map(|_| session(db)).collect());
    let errors: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = errors.clone();
    db.jobs().listen(move |step: &Step| {
        for (_, who, sql) in script.iter().filter(|(at, _, _)| *at == step.name) {
            let s = &mut sessions.lock()[*who];
            if let Err(e) = try_run(s, sql, &[]) {
                s.fail();
                seen.lock().push(e.state().0.to_string());
            }
        }
    });
    let result = try_run(&mut session(db), change, &[]);
    db.jobs().listen(|_| {});
    let errors = errors.lock().clone();
    (result.err().map(|e| e.state().0), errors)
}

/// Every entry of every index of a table, beside those that its rows ask for.
fn entries(db: &Arc<Database>, table: &str) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let txn = db.coordinator().begin(TxnOptions::default()).unwrap();
    let catalog = load_catalog(&txn).unwrap();
    let table = catalog.tables().find(|t| t.name == table).unwrap();
    assert!(table.building.is_none());
    let layout = Arc::new(TableLayout::new(&catalog, table).unwrap());
    let (wanted, stored) = harness::entries(&txn, &layout);
    (wanted, stored.into_iter().map(|(key, _)| key).collect())
}

/// That nothing of an index that was given up is left.
fn nothing_is_left(db: &Arc<Database>, table: &str) {
    let txn = db.coordinator().begin(TxnOptions::default()).unwrap();
    let catalog = load_catalog(&txn).unwrap();
    let table = catalog.tables().find(|t| t.name == table).unwrap();
    assert!(table.building.is_none() && table.indexes.is_empty());
    assert!(table.columns.iter().all(|c| c.expression.is_none()), "an expression was left");
    let (start, end) =
        (vec![braid_keys::path::DATA_PREFIX], vec![braid_keys::path::DATA_PREFIX + 1]);
    let mut scan = txn.scan(KeySpan::new(start, end), ScanOptions::default()).unwrap();
    let own = TableLayout::new(&catalog, table).unwrap();
    while let Some((key, value)) = scan.next().unwrap() {
        let row = own.decode(&key, &value, None).unwrap();
        assert!(row.is_some(), "{} was left", braid_keys::pretty::key(&key));
    }
}

fn table_with_rows(db: &Arc<Database>) {
    run(
        &mut session(db),
        "create table t (id int primary key, n int, v int default 0);
         insert into t values (1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 60)",
    );
}

/// What writers do to rows 2 and 7, and to the key 20.
const WRITES: [&str; 9] = [
    "insert into t values (7, 70)",
    "delete from t where id = 2",
    "update t set n = 25 where id = 2",
    "update t set v = v + 1 where id = 2",
    "update t set id = 9 where id = 2",
    "delete from t where id = 2; insert into t values (8, 20)",
    "update t set n = 26 where id = 2; update t set n = 20 where id = 2",
    "begin; insert into t values (7, 20); delete from t where id = 7; commit",
    "delete from t where id = 2; insert into t values (2, 28)",
];

#[test]
fn an_index_is_right_whatever_is_written_at_any_step() {
    let all = std::env::var("BRAID_ALL_STEPS").is_ok();
    let changes = [
        "create index i on t (n)",
        "create unique index i on t (n) include (v)",
        "create index i on t ((n + v), (n * 2)) where n <> 26 and v < 1",
        "create unique index i on t ((n % 100)) include (v) where n < 60",
    ];
    for (number, change) in changes.into_iter().enumerate() {
        for (a, first) in WRITES.iter().enumerate() {
            for (at, step) in STEPS.iter().enumerate() {
                // The second one at a later step, cycling through all of them.
                for (b, second) in WRITES.iter().enumerate() {
                    let later = STEPS[at + (a + b) % (STEPS.len() - at)];
                    // Each pair of writes at every third step, all of them over all pairs.
                    if (number + a + b + at) % 3 > 0 && !all {
                        continue;
                    }
                    let db = database();
                    table_with_rows(&db);
                    let script =
                        vec![(*step, 0, (*first).to_string()), (later, 1, (*second).to_string())];
                    let (failed, _) = change_beside(&db, change, script);
                    let twice = "select count(*) from t where n = 20";
                    if failed == Some("23505") && rows(&mut session(&db), twice) == ["2"] {
                        nothing_is_left(&db, "t");
                        continue;
                    }
                    assert_eq!(failed, None, "{change}: {first} at {step}, {second} at {later}");
                    let (wanted, stored) = entries(&db, "t");
                    assert_eq!(wanted, stored, "{change}: {first} at {step}, {second} at {later}");
                }
            }
        }
    }
}

#[test]
fn transactions_that_are_open_over_steps_are_in_the_index() {
    // Users of a step may stay until the change waits for them.
    let spans = [
        ("announce", "wait for users"),
        ("wait for users", "backfill"),
        ("wait for users", "ingest"),
        ("backfill", "ingest"),
        ("backfill", "enforce"),
        ("ingest", "enforce"),
        ("ingest", "wait for noting users"),
        ("wait for noting users", "merge"),
        ("wait for noting users", "complete"),
        ("merge", "complete"),
    ];
    for level in LEVELS {
        for write in WRITES.iter().filter(|w| !w.starts_with("begin")) {
            for (from, to) in spans {
                let db = database();
                table_with_rows(&db);
                let begin = format!("begin isolation level {level}; {write}");
                let script = vec![
                    (from, 0, begin),
                    // Others in between do not wait for it.
                    (from, 1, "insert into t values (100, 1000)".into()),
                    (to, 1, "update t set n = 1001 where id = 100".into()),
                    (to, 0, "commit".into()),
                    (to, 1, "update t set n = n + 1 where id = 5".into()),
                ];
                let (failed, errors) = change_beside(&db, "create unique index i on t (n)", script);
                assert_eq!((failed, errors), (None, vec![]), "{level}: {write}, {from} to {to}");
                let (wanted, stored) = entries(&db, "t");
                assert_eq!(wanted, stored, "{level}: {write}, {from} to {to}");
                assert_eq!(rows(&mut session(&db), "select id from t where n = 1001"), ["100"]);
            }
        }
    }
}

#[test]
fn a_duplicate_at_any_step_undoes_the_index_or_is_refused() {
    for step in STEPS {
        for write in ["insert into t values (7, 20)", "update t set n = 20 where id = 3"] {
            let db = database();
            table_with_rows(&db);
            let script = vec![(step, 0, write.to_string())];
            let (failed, errors) = change_beside(&db, "create unique index i on t (n)", script);
            let enforced = STEPS.iter().position(|s| *s == step) > Some(4);
            if enforced {
                assert_eq!(
                    (failed, errors),
                    (None, vec!["23505".to_string()]),
                    "{write} at {step}"
                );
                let (wanted, stored) = entries(&db, "t");
                assert_eq!(wanted, stored);
            } else {
                assert_eq!((failed, errors), (Some("23505"), vec![]), "{write} at {step}");
                nothing_is_left(&db, "t");
                run(&mut session(&db), "insert into t values (8, 20)");
            }
        }
    }
}

#[test]
fn a_duplicate_is_named() {
    let db = database();
    table_with_rows(&db);
    let s = &mut session(&db);
    run(s, "insert into t values (7, 20)");
    let e = error(s, "create unique index i on t (n)");
    assert_eq!(e.message(), "could not create unique index \"i\"");
    assert_eq!(e.detail(), Some("Key (n)=(20) is duplicated."));
    let jobs = rows(s, "show jobs");
    assert_eq!(jobs.len(), 1);
    assert!(jobs[0].contains("|create index|create unique index i on t (n)|failed|"), "{jobs:?}");
    let why = "|could not create unique index \"i\": Key (n)=(20) is duplicated.";
    assert!(jobs[0].ends_with(why), "{jobs:?}");
    run(s, "delete from t where id = 7; alter table t add constraint i unique (n)");
    assert_eq!(state(s, "insert into t values (7, 20)"), "23505");
}

/// The table's rows, and those that refer to it, as a constraint is added step by step.
const PROOF: [&str; 4] = ["announce", "wait for users", "validate", "complete"];

#[test]
fn constraints_hold_whatever_is_written_at_any_step() {
    let setup = "create table p (id int primary key, u int unique); insert into p values (1, 1), (2, 2);
        create table c (id int primary key, p int, n int); insert into c values (1, 1, 1), (2, null, 2)";
    let cases = [
        ("alter table c add constraint k check (n < 9)", "insert into c values (3, 1, 9)", "23514"),
        (
            "alter table c add constraint k check (n < 9)",
            "update c set n = 10 where id = 1",
            "23514",
        ),
        ("alter table c alter n set not null", "insert into c values (3, 1, null)", "23502"),
        ("alter table c alter n set not null", "update c set n = null where id = 2", "23502"),
        (
            "alter table c add constraint k foreign key (p) references p",
            "insert into c values (3, 7, 1)",
            "23503",
        ),
        (
            "alter table c add constraint k foreign key (p) references p",
            "delete from p where id = 1",
            "23503",
        ),
        (
            "alter table c add constraint k foreign key (p) references p",
            "update c set p = 8 where id = 2",
            "23503",
        ),
        (
            "alter table c add constraint k foreign key (p) references p (u)",
            "update p set u = 5 where u = 1",
            "23503",
        ),
    ];
    for (change, write, code) in cases {
        for (at, step) in PROOF.iter().enumerate() {
            for until in &PROOF[at..] {
                // A block may stay open until the change waits for it.
                if *until != *step && !(at == 0 && *until == "wait for users") && at != 1 {
                    continue;
                }
                let db = database();
                run(&mut session(&db), setup);
                let script = vec![
                    (*step, 0, format!("begin; {write}")),
                    (*until, 0, "commit".to_string()),
                    (
                        "complete",
                        1,
                        "insert into c values (9, 2, 3); delete from c where id = 9".into(),
                    ),
                ];
                let (failed, errors) = change_beside(&db, change, script);
                let what = format!("{change} beside {write}, from {step} to {until}");
                if at == 0 {
                    assert_eq!((failed, errors), (Some(code), vec![]), "{what}");
                    let s = &mut session(&db);
                    run(s, "insert into c values (4, 7, 12), (5, 1, null)");
                } else {
                    assert_eq!((failed, errors), (None, vec![code.to_string()]), "{what}");
                    assert_eq!(state(&mut session(&db), write), code, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_change_waits_for_the_users_of_the_step_before_and_nobody_waits_for_it() {
    for level in LEVELS {
        let db = database();
        table_with_rows(&db);
        let mut stage = Stage::new(&db, 3, "");
        stage
            .run(0, &format!("begin isolation level {level}; insert into t values (7, 70)"))
            .unwrap();
        stage.send(1, "create unique index i on t (n)");
        assert!(stage.waits(1), "{level}");
        // Others do not wait, nor does he for whom is waited, whatever he does next.
        stage.run(2, "insert into t values (8, 80); update t set n = 31 where id = 3").unwrap();
        stage.run(0, "update t set n = 71 where id = 7; delete from t where id = 1").unwrap();
        assert!(stage.waits(1));
        stage.run(0, "commit").unwrap();
        assert_eq!(stage.take(1).unwrap().tag, "CREATE INDEX", "{level}");
        let (wanted, stored) = entries(&db, "t");
        assert_eq!(wanted, stored, "{level}");
        assert_eq!(stored.len(), 7);
        assert_eq!(rows(&mut session(&db), "select id from t where n = 71"), ["7"]);
    }
}

#[test]
fn truncate_and_other_changes_wait_for_a_change_in_steps() {
    for other in ["truncate t", "alter table t add column w int default 4", "drop table t"] {
        let db = database();
        table_with_rows(&db);
        let mut stage = Stage::new(&db, 3, "");
        stage.run(0, "begin; insert into t values (7, 70)").unwrap();
        stage.send(1, "create index i on t (n)");
        stage.send(2, other);
        assert!(stage.waits(1) && stage.waits(2), "{other}");
        stage.run(0, "commit").unwrap();
        stage.take(1).unwrap();
        stage.take(2).unwrap();
        if other != "drop table t" {
            let (wanted, stored) = entries(&db, "t");
            assert_eq!(wanted, stored, "{other}");
        }
    }
    // He for whom the change waits truncates the table that it changes: one of both gives way.
    let db = database();
    table_with_rows(&db);
    let mut stage = Stage::new(&db, 2, "");
    stage.run(0, "begin; insert into t values (7, 70)").unwrap();
    stage.send(1, "create index i on t (n)");
    stage.send(0, "truncate t");
    let (a, b) = (stage.answered(0), stage.answered(1));
    assert!(a || b, "a deadlock is found");
    if a {
        assert_eq!(stage.take(0).unwrap_err().state().0, "40P01");
        stage.run(0, "rollback").unwrap();
        stage.take(1).unwrap();
    } else {
        panic!("the block waits for what waits for it, so it is the one to give way");
    }
}

#[test]
fn a_block_that_has_changed_the_schema_does_not_wait_for_a_change_in_steps() {
    let db = database();
    table_with_rows(&db);
    let mut stage = Stage::new(&db, 3, "");
    stage.run(0, "begin; insert into t values (7, 70)").unwrap();
    stage.send(1, "create index i on t (n)");
    assert!(stage.waits(1));
    // Holds the catalog, so that the next step cannot be published.
    stage.run(2, "begin; create table u (id int primary key)").unwrap();
    let e = stage.run(2, "alter table t add column w int").unwrap_err();
    assert_eq!(e.state().0, "55006");
    stage.run(2, "rollback").unwrap();
    stage.run(0, "commit").unwrap();
    stage.take(1).unwrap();
}

#[test]
fn a_read_that_spans_all_steps_commits() {
    // Nothing that it read is changed by an index or a constraint.
    for (change, level) in [
        ("create index i on t (n)", "serializable"),
        ("alter table t add check (n > 0)", "serializable"),
        ("alter table t alter n set not null", "serializable"),
        ("create index i on t (n)", "repeatable read"),
    ] {
        let db = database();
        table_with_rows(&db);
        let (a, b) = (&mut session(&db), &mut session(&db));
        run(a, "create table log (id int primary key)");
        run(a, &format!("begin isolation level {level}; select * from t"));
        run(b, change);
        run(a, "insert into log values (1); commit");
    }
}

#[test]
fn a_job_is_listed_and_can_be_canceled_at_any_step() {
    for step in STEPS {
        let db = database();
        table_with_rows(&db);
        let listed: Arc<Mutex<Vec<String>>> = Arc::default();
        let (seen, other) = (listed.clone(), Mutex::new(session(&db)));
        db.jobs().listen(move |at: &Step| {
            if at.name == step {
                let s = &mut other.lock();
                seen.lock().extend(rows(s, "show jobs"));
                assert_eq!(tag(s, &format!("cancel job {}", at.job)), "CANCEL JOB");
            }
        });
        let s = &mut session(&db);
        assert_eq!(state(s, "create index i on t (n)"), "57014", "{step}");
        // The flag of the canceled session is lowered by its server.
        let s = &mut session(&db);
        if step == "announce" {
            // Nothing was stored of it yet.
            assert_eq!(rows(s, "show jobs"), Vec::<String>::new());
        } else {
            let listed = listed.lock();
            assert!(listed[0].contains(&format!("|running|{step}|0.00|NULL")), "{listed:?}");
            let jobs = rows(s, "show jobs");
            assert!(jobs[0].contains("|canceled|"), "{step}: {jobs:?}");
            let id = jobs[0].split('|').next().unwrap();
            assert_eq!(state(s, &format!("cancel job {id}")), "55000");
        }
        nothing_is_left(&db, "t");
        let s = &mut session(&db);
        assert_eq!(state(s, "cancel job 999999"), "42704");
        assert_eq!(state(s, "cancel job x"), "42601");
    }
}

#[test]
fn a_backfill_can_be_slowed_down_and_canceled_meanwhile() {
    let db = database();
    table_with_rows(&db);
    let s = &mut session(&db);
    assert_eq!(state(s, "set backfill_rows_per_second = -1"), "22023");
    run(s, "set backfill_rows_per_second = 1000000");
    run(s, "create index quick on t (n)");
    // A row in a second: without the pauses it would be done before it is canceled.
    run(s, "set backfill_rows_per_second = 1; set max_parallel_maintenance_workers = 0");
    let begun: Arc<Mutex<Option<u32>>> = Arc::default();
    let job = begun.clone();
    db.jobs().listen(move |at: &Step| {
        if at.name == "backfill" {
            *job.lock() = Some(at.job);
        }
    });
    let other = &mut session(&db);
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| state(s, "create index slow on t (n)"));
        let id = loop {
            match *begun.lock() {
                Some(id) => break id,
                None => std::thread::yield_now(),
            }
        };
        // Writers go on.
        run(other, "insert into t values (987654, 7)");
        assert_eq!(tag(other, &format!("cancel job {id}")), "CANCEL JOB");
        assert_eq!(slow.join().expect("no panic"), "57014");
    });
    assert_eq!(rows(other, "select n from t where id = 987654"), ["7"]);
}

#[test]
fn a_crash_at_any_step_leaves_no_half_of_a_change() {
    let changes = [
        ("create unique index i on t (n)", STEPS.as_slice()),
        ("alter table t add check (n > 0)", PROOF.as_slice()),
    ];
    for (change, steps) in changes {
        for step in steps {
            let fs = MemFs::new();
            let db = database_on(fs.clone());
            table_with_rows(&db);
            let crashed: Arc<Mutex<Option<MemFs>>> = Arc::default();
            let (slot, at_step) = (crashed.clone(), *step);
            let other = Mutex::new(session(&db));
            db.jobs().listen(move |at: &Step| {
                if at.name == at_step {
                    run(&mut other.lock(), "insert into t values (7, 70)");
                    let image = fs.crash_clone(&mut Random::seeded(1), CrashPolicy::LoseAll);
                    *slot.lock() = Some(image);
                }
            });
            run(&mut session(&db), change);
            let db = database_on(crashed.lock().take().unwrap());
            nothing_is_left(&db, "t");
            let s = &mut session(&db);
            assert_eq!(rows(s, "select count(*) from t"), ["7"], "{change}, {step}");
            let jobs = rows(s, "show jobs");
            if *step == "announce" {
                assert!(jobs.is_empty());
            } else {
                assert!(jobs[0].contains("|failed|") && jobs[0].ends_with("the node stopped"));
            }
            run(s, change);
            run(s, "insert into t values (8, 80)");
            let (wanted, stored) = entries(&db, "t");
            assert_eq!(wanted, stored, "{change}, {step}");
        }
    }
}

#[test]
fn an_index_inside_of_families_is_right_beside_range_deletes() {
    for step in STEPS {
        for size in [3, 3_000] {
            let db = database();
            let s = &mut session(&db);
            run(s, "create table p (id int primary key);
                create table c (id int, k int, n int, v text, primary key (id, k)) interleave in parent p on delete cascade");
            run(s, "begin; insert into p values (1), (2), (3)");
            for i in 0..size {
                run(
                    s,
                    &format!(
                        "insert into c values ({}, {i}, {}, '{}')",
                        1 + i % 3,
                        i * 7 % 100,
                        "x".repeat(400)
                    ),
                );
            }
            run(s, "commit");
            let script = vec![
                (step, 0, "delete from p where id = 2".to_string()),
                (
                    step,
                    0,
                    "insert into p values (2); insert into c values (2, 100000, 5)".to_string(),
                ),
                ("complete", 0, "delete from p where id = 3".to_string()),
            ];
            let change = "create index i on c (id, n) include (v) interleave in p";
            let (failed, errors) = change_beside(&db, change, script);
            assert_eq!((failed, errors), (None, vec![]), "{step}");
            let (wanted, stored) = entries(&db, "c");
            assert_eq!(wanted.len(), stored.len(), "{step}, {size}");
            assert_eq!(wanted, stored, "{step}");
        }
    }
}

#[test]
fn a_global_index_is_right_beside_range_deletes() {
    for step in STEPS {
        let db = database();
        let s = &mut session(&db);
        run(s, "create table p (id int primary key);
            create table c (id int, k int, n int, primary key (id, k)) interleave in parent p on delete cascade;
            insert into p values (1), (2); insert into c values (1, 1, 10), (2, 1, 20), (2, 2, 30)");
        let script = vec![
            (step, 0, "delete from p where id = 2".to_string()),
            (step, 0, "insert into p values (2); insert into c values (2, 3, 20)".to_string()),
        ];
        let (failed, errors) = change_beside(&db, "create unique index i on c (n)", script);
        assert_eq!((failed, errors), (None, vec![]), "{step}");
        let s = &mut session(&db);
        assert_eq!(rows(s, "select k from c where n = 20"), ["3"], "{step}");
        assert_eq!(rows(s, "select k from c where n = 30"), Vec::<String>::new(), "{step}");
        assert_eq!(state(s, "insert into c values (1, 5, 20)"), "23505", "{step}");
        run(s, "insert into c values (1, 6, 30)");
    }
}

fn copy_in(s: &mut Session, table: &str, lines: impl Iterator<Item = String>) {
    let statement = s.parse_script(&format!("copy {table} from stdin")).unwrap().remove(0);
    let p = s.prepare(statement, &[]).unwrap();
    let Outcome::CopyIn(mut copy) = s.execute(&p, Vec::new()).unwrap() else { panic!("COPY") };
    lines.for_each(|line| copy.feed(line.as_bytes()).unwrap());
    copy.finish().unwrap();
}

#[test]
fn a_bulk_load_at_any_step_is_in_the_index() {
    for step in STEPS {
        let db = database();
        table_with_rows(&db);
        let other = Mutex::new(session(&db));
        db.jobs().listen(move |at: &Step| {
            if at.name == step {
                // Above what is written row by row.
                let lines = (100..20_100).map(|n| format!("{n}\t{}\t0\n", n * 7));
                copy_in(&mut other.lock(), "t", lines);
            }
        });
        run(&mut session(&db), "create unique index i on t (n)");
        let (wanted, stored) = entries(&db, "t");
        assert_eq!(wanted.len(), 20_006, "{step}");
        assert!(wanted == stored, "{step}");
        assert_eq!(state(&mut session(&db), "insert into t values (99, 700)"), "23505");
    }
}

/// Writes at random until told to stop, in autocommit and in blocks, at its level. Keys are its own,
/// values are everybody's.
fn write_at_random(db: &Arc<Database>, who: u64, stop: &AtomicBool) -> usize {
    let s = &mut session(db);
    let mut random = Random::seeded(who);
    let level = LEVELS[who as usize % LEVELS.len()];
    run(s, &format!("set default_transaction_isolation = '{level}'"));
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        let id = random.below(400) * 10 + who;
        let n = random.below(1 << 40);
        let write = match random.below(5) {
            0 | 1 => format!("insert into t values ({id}, {n}, 'x') on conflict (id) do nothing"),
            2 => format!("update t set n = {n} where id = {id}"),
            3 => format!("update t set v = 'y' where id = {id}"),
            _ => format!("delete from t where id = {id}"),
        };
        let sql = match random.below(3) {
            0 => format!("begin; {write}; update t set n = {} where id = {id}; commit", n + 1),
            1 => format!("begin; {write}; rollback"),
            _ => write,
        };
        match try_run(s, &sql, &[]) {
            Ok(_) => done += 1,
            Err(e) => {
                assert!(matches!(e.state().0, "40001" | "40P01"), "{sql}: {e}");
                s.fail();
                run(s, "rollback");
            }
        }
    }
    done
}

#[test]
fn indexes_that_are_built_beside_threads_of_writers_are_right() {
    let db = database();
    run(&mut session(&db), "create table t (id int primary key, n bigint, v text)");
    // Enough for sorted runs that are ingested.
    let text = "x".repeat(60);
    copy_in(
        &mut session(&db),
        "t",
        (10_000..40_000u64).map(|n| format!("{n}\t{}\t{text}\n", n << 41)),
    );
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|who| {
                let (db, stop) = (&db, &stop);
                scope.spawn(move || write_at_random(db, who, stop))
            })
            .collect();
        let s = &mut session(&db);
        for round in 0..6 {
            let unique = if round % 2 == 0 { "unique" } else { "" };
            run(s, &format!("create {unique} index i{round} on t (n) include (v)"));
            run(s, "alter table t add constraint k check (n >= 0)");
            run(s, "alter table t drop constraint k");
        }
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            assert!(writer.join().unwrap() > 0);
        }
    });
    let (wanted, stored) = entries(&db, "t");
    assert!(wanted.len() >= 6 * 30_000 && wanted == stored);
    assert_eq!(
        rows(&mut session(&db), "select count(*) from t where n = 30000 * 2199023255552"),
        ["1"]
    );
}
