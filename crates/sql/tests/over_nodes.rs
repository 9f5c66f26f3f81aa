//! Advisory locks, LISTEN and NOTIFY, and temporary tables, between sessions of different nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::MemFs;
use braid_keys::system;
use braid_kv::{KeySpan, TxnOptions};
use braid_settings::DiskCopy;
use braid_sim::{LiveCluster, LiveOptions};
use braid_sql::{Backends, Cause, Database, NoGeneralQueries, Session};
use parking_lot::Mutex;

use crate::harness::{error, rows, run, session, state};

fn cluster() -> Arc<LiveCluster> {
    let (row_class, row_form) = (Some(braid_keys::row_class as _), Some(braid_rows::ROW_FORM));
    LiveCluster::start(LiveOptions { row_class, row_form, ..LiveOptions::default() })
}

fn on(cluster: &Arc<LiveCluster>, node: u64) -> Arc<Database> {
    let fs = Arc::new(MemFs::new());
    let at = cluster.coordinator_on(node);
    Database::open_shared(at, Arc::new(NoGeneralQueries), DiskCopy::new(fs, "/n")).unwrap()
}

/// Says what is asked of a node's sessions.
#[derive(Default)]
struct Heard {
    ended: Mutex<Vec<i32>>,
    woken: Mutex<Vec<i32>>,
}

impl Backends for Heard {
    fn signal(&self, pid: i32, cause: Cause) -> bool {
        assert_eq!(cause, Cause::Terminate);
        self.ended.lock().push(pid);
        true
    }

    fn wake(&self, pid: i32) {
        self.woken.lock().push(pid);
    }
}

fn heard_on(db: &Arc<Database>) -> Arc<Heard> {
    let heard = Arc::new(Heard::default());
    db.set_backends(heard.clone());
    heard
}

fn number(s: &mut Session) -> i32 {
    rows(s, "select pg_backend_pid()")[0].parse().unwrap()
}

fn free(s: &mut Session, call: &str) -> bool {
    rows(s, &format!("select {call}")) == ["t"]
}

#[test]
fn a_lock_is_held_among_all_nodes_until_its_session_gives_it_back() {
    let cluster = cluster();
    let (one, two) = (on(&cluster, 1), on(&cluster, 2));
    let (mut a, mut b) = (session(&one), session(&two));
    run(&mut a, "select pg_advisory_lock(1)");
    run(&mut a, "select pg_advisory_lock(1)");
    assert!(!free(&mut b, "pg_try_advisory_lock(1)"));
    assert!(!free(&mut b, "pg_try_advisory_lock_shared(1)"));
    assert!(free(&mut b, "pg_try_advisory_lock(1, 0)"), "two numbers are another lock");
    assert!(free(&mut a, "pg_advisory_unlock(1)"));
    assert!(!free(&mut b, "pg_try_advisory_lock(1)"));
    assert!(free(&mut a, "pg_advisory_unlock(1)"));
    assert!(!free(&mut a, "pg_advisory_unlock(1)"));
    assert!(free(&mut b, "pg_try_advisory_lock(1)"));
    assert!(!free(&mut a, "pg_try_advisory_lock(1)"));
    let elsewhere = one.advisory_locks_elsewhere().unwrap();
    let shown: Vec<_> = elsewhere.iter().map(|l| (l.pid, l.shared, l.granted)).collect();
    assert_eq!(shown, [(number(&mut b), false, true); 2]);
    // A session that ends asks nobody; its node gives its locks back soon.
    drop(b);
    two.keep_over_nodes().unwrap();
    assert!(free(&mut a, "pg_try_advisory_lock(1)"));
    assert_eq!(one.advisory_locks_elsewhere().unwrap().len(), 0);
}

#[test]
fn sharers_of_all_nodes_keep_others_out_together() {
    let cluster = cluster();
    let (one, two) = (on(&cluster, 1), on(&cluster, 2));
    let (mut a, mut b) = (session(&one), session(&two));
    assert!(free(&mut a, "pg_try_advisory_lock_shared(1)"));
    assert!(free(&mut b, "pg_try_advisory_lock_shared(1)"));
    assert!(!free(&mut a, "pg_try_advisory_lock(1)"));
    run(&mut b, "select pg_advisory_unlock_all()");
    assert!(free(&mut a, "pg_try_advisory_lock(1)"));
    assert!(!free(&mut b, "pg_try_advisory_lock_shared(1)"));
    // It has it in both modes, and gives back one.
    assert!(free(&mut a, "pg_advisory_unlock(1)"));
    assert!(free(&mut b, "pg_try_advisory_lock_shared(1)"));
}

#[test]
fn locks_of_a_transaction_end_with_it_on_all_nodes() {
    let cluster = cluster();
    let (one, two) = (on(&cluster, 1), on(&cluster, 2));
    let (mut a, mut b) = (session(&one), session(&two));
    for end in ["commit", "rollback"] {
        run(&mut a, "begin; select pg_advisory_xact_lock(1)");
        assert!(!free(&mut b, "pg_try_advisory_xact_lock(1)"));
        run(&mut a, end);
        run(&mut b, "begin");
        assert!(free(&mut b, "pg_try_advisory_xact_lock(1)"), "after {end}");
        run(&mut b, "rollback");
    }
    run(&mut a, "select pg_advisory_xact_lock(1)");
    a.rests();
    assert!(free(&mut b, "pg_try_advisory_lock(1)"));
}

#[test]
fn who_waits_for_another_node_goes_on_when_the_lock_is_free_or_his_time_is_over() {
    let cluster = cluster();
    let (one, two) = (on(&cluster, 1), on(&cluster, 2));
    let (mut a, mut b) = (session(&one), session(&two));
    run(&mut a, "select pg_advisory_lock(1)");
    run(&mut b, "set lock_timeout = '60ms'");
    assert_eq!(state(&mut b, "select pg_advisory_lock(1)"), "55P03");
    run(&mut b, "set lock_timeout = 0");
    scope(|scope| {
        let waiter = scope.spawn(|| rows(&mut b, "select pg_advisory_lock(1)"));
        // Longer than it takes until it says that it waits.
        sleep(Duration::from_millis(1_500));
        assert!(!waiter.is_finished());
        let waits = one.advisory_locks_elsewhere().unwrap();
        assert_eq!(waits.iter().map(|l| l.granted).collect::<Vec<_>>(), [false]);
        run(&mut a, "select pg_advisory_unlock(1)");
        assert_eq!(waiter.join().expect("it gets the lock").len(), 1);
    });
    assert!(!free(&mut a, "pg_try_advisory_lock(1)"));
}

#[test]
fn one_of_a_circle_over_nodes_is_refused() {
    let cluster = cluster();
    let all: Vec<_> = (1..=3).map(|node| on(&cluster, node)).collect();
    let sessions: Vec<_> = all.iter().map(session).collect();
    let results: Vec<_> = scope(|scope| {
        let each = sessions.into_iter().enumerate().map(|(n, mut s)| {
            scope.spawn(move || {
                run(&mut s, &format!("begin; select pg_advisory_xact_lock({n})"));
                sleep(Duration::from_millis(200));
                let next = format!("select pg_advisory_xact_lock({})", (n + 1) % 3);
                let result = crate::harness::try_run(&mut s, &next, &[]).map(|_| ());
                run(&mut s, "rollback");
                result.map_err(|e| e.state().0)
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(results, [Ok(()), Ok(()), Err("40P01")], "the session with the greatest number");
}

/// A node that says nothing any more keeps its locks for some seconds only, and knows it.
#[test]
fn locks_of_a_process_that_is_gone_are_free() {
    let cluster = cluster();
    let (one, two) = (on(&cluster, 1), on(&cluster, 2));
    let heard = heard_on(&one);
    let (mut a, mut b) = (session(&one), session(&two));
    run(&mut a, "select pg_advisory_lock(1), pg_advisory_lock(2)");
    let begun = WallClock.monotonic_nanos();
    let took = |since: u64| Duration::from_nanos(WallClock.monotonic_nanos() - since);
    sleep(Duration::from_secs(2));
    // Said again, it counts for longer.
    one.keep_over_nodes().unwrap();
    run(&mut b, "select pg_advisory_lock(1)");
    assert!(took(begun) > Duration::from_secs(7), "{:?}", took(begun));
    assert!(took(begun) < Duration::from_secs(20), "{:?}", took(begun));
    assert_eq!(heard.ended.lock().len(), 0);
    one.keep_over_nodes().unwrap();
    assert_eq!(*heard.ended.lock(), [number(&mut a)], "it must not believe that it has them");
    assert!(free(&mut b, "pg_try_advisory_lock(2)"));
}

fn told(s: &mut Session) -> Vec<String> {
    s.rests();
    let all = s.take_notifications();
    all.iter().map(|n| format!("{}:{}:{}", n.pid, n.channel, n.payload)).collect()
}

#[test]
fn what_is_said_on_one_node_is_heard_on_all_in_one_order() {
    let cluster = cluster();
    let (one, two) = (on(&cluster, 1), on(&cluster, 2));
    let heard = heard_on(&two);
    let (mut a, mut b, mut c) = (session(&one), session(&two), session(&two));
    run(&mut a, "create table t (n int primary key); notify c, 'before'; listen c");
    a.rests();
    run(&mut b, "listen c");
    b.rests();
    run(&mut a, "begin; insert into t values (1); notify c, 'x'; notify c, 'x'; notify d, 'y'");
    run(&mut a, "savepoint s; notify c, 'taken back'; rollback to s; commit");
    run(&mut a, "begin; notify c, 'never'; rollback");
    run(&mut c, "select pg_notify('c', 'z')");
    c.rests();
    run(&mut a, "notify c");
    a.rests();
    two.follow_messages(Duration::ZERO).unwrap();
    let (from_a, from_c) = (number(&mut a), number(&mut c));
    let all = [format!("{from_a}:c:x"), format!("{from_c}:c:z"), format!("{from_a}:c:")];
    assert_eq!(told(&mut a), all);
    assert_eq!(told(&mut b), all);
    assert_eq!(told(&mut c), [""; 0]);
    assert_eq!(*heard.woken.lock(), [number(&mut b)]);
    // One that fails has said nothing, and the next one not what it was about to say.
    run(&mut a, "begin isolation level serializable; select * from t; notify c, 'lost'");
    run(&mut b, "insert into t values (2)");
    run(&mut a, "insert into t values (3)");
    assert_eq!(error(&mut a, "commit").state().0, "40001");
    run(&mut a, "begin; notify c, 'after'; commit");
    two.follow_messages(Duration::ZERO).unwrap();
    assert_eq!(told(&mut b), [format!("{from_a}:c:after")]);
}

/// Who begins to listen in the same transaction hears itself, as on one node.
#[test]
fn a_session_hears_itself() {
    let cluster = cluster();
    let mut a = session(&on(&cluster, 1));
    run(&mut a, "begin; listen c; notify c, '1'; commit");
    let pid = number(&mut a);
    assert_eq!(told(&mut a), [format!("{pid}:c:1")]);
    run(&mut a, "unlisten *; notify c, '2'");
    assert_eq!(told(&mut a), [""; 0]);
}

/// What was taken away before a node has heard it ends the sessions that wanted to hear it.
#[test]
fn nobody_misses_something_and_does_not_know() {
    let cluster = cluster();
    let (one, two) = (on(&cluster, 1), on(&cluster, 2));
    let heard = heard_on(&two);
    let (mut a, mut b) = (session(&one), session(&two));
    run(&mut b, "listen c");
    b.rests();
    run(&mut a, "notify c, '1'");
    run(&mut a, "notify c, '2'");
    let txn = one.coordinator().begin(TxnOptions::default()).unwrap();
    txn.delete_span(&KeySpan::new(system::message(0), system::message(2))).unwrap();
    txn.commit().unwrap();
    two.follow_messages(Duration::ZERO).unwrap();
    assert_eq!(*heard.ended.lock(), [number(&mut b)]);
}

#[test]
fn many_who_say_something_at_once_are_heard_whole_and_alike() {
    let cluster = cluster();
    let (one, two) = (on(&cluster, 1), on(&cluster, 2));
    let (mut a, mut b) = (session(&one), session(&two));
    for s in [&mut a, &mut b] {
        run(s, "listen c");
        s.rests();
    }
    let stop = AtomicBool::new(false);
    scope(|threads| {
        for db in [&one, &two] {
            let stop = &stop;
            threads.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    db.follow_messages(Duration::from_millis(5)).unwrap();
                }
            });
        }
        let writers = [(&one, "a"), (&two, "b"), (&one, "c")].map(|(db, name)| {
            threads.spawn(move || {
                let mut s = session(db);
                for n in 0..20 {
                    run(&mut s, &format!("begin; notify c, '{name}{n}'; commit"));
                }
            })
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        stop.store(true, Ordering::SeqCst);
    });
    for db in [&one, &two] {
        db.follow_messages(Duration::ZERO).unwrap();
    }
    let (here, there) = (told(&mut a), told(&mut b));
    assert_eq!(here, there);
    assert_eq!(here.len(), 60);
    for name in ["a", "b", "c"] {
        let of = |one: &&String| one.rsplit(':').next().is_some_and(|text| text.starts_with(name));
        let order: Vec<&String> = here.iter().filter(of).collect();
        assert!((0..20).all(|n| order[n].ends_with(&format!("{name}{n}"))), "{order:?}");
    }
}

#[test]
fn temporary_tables_are_their_sessions_on_every_node() {
    let cluster = cluster();
    let (one, two) = (on(&cluster, 1), on(&cluster, 2));
    let (mut a, mut b) = (session(&one), session(&two));
    run(&mut a, "create temp table t (n int) on commit delete rows");
    run(&mut b, "create temp table t (n int, m text); insert into t values (7, 'b')");
    run(&mut a, "begin; insert into t values (1), (2)");
    assert_eq!(rows(&mut a, "select n from t"), ["1", "2"]);
    run(&mut a, "commit");
    assert_eq!(rows(&mut a, "select n from t"), [""; 0]);
    assert_eq!(rows(&mut b, "select n, m from t"), ["7|b"]);
    run(&mut b, "create temp sequence s; create temp view v as select m from t");
    assert_eq!(rows(&mut b, "select nextval('s')"), ["1"]);
    assert_eq!(state(&mut a, "select nextval('s')"), "42P01");
    drop(a);
    let left = |db: &Arc<Database>| {
        let catalog = db.current_catalog().unwrap();
        let all = catalog.databases().flat_map(|d| catalog.schemas(d.id)).map(|s| s.name.clone());
        all.filter(|name| name.starts_with("pg_temp_")).count()
    };
    assert_eq!(left(&two), 1, "the session that ended took its own along");
    // A crash: nobody has dropped them. The next process of that node does, and no other one.
    std::mem::forget(b);
    one.drop_temporary_of_gone(true).unwrap();
    assert_eq!(left(&one), 1);
    on(&cluster, 2).drop_temporary_of_gone(true).unwrap();
    assert_eq!(left(&one), 0);
}

/// Many rows go into a table that the same statement makes, empties or takes out of another one: it
/// is not what others know, and nobody has changed it in between.
#[test]
fn many_rows_are_loaded_into_what_a_statement_makes() {
    let cluster = cluster();
    let (one, two) = (on(&cluster, 1), on(&cluster, 2));
    let (mut a, mut b) = (session(&one), session(&two));
    run(&mut a, "create table s (n int primary key); insert into s values (0)");
    for doubled in 0..14 {
        run(&mut a, &format!("insert into s select n + {} from s", 1 << doubled));
    }
    run(&mut a, "create table made as select n from s");
    run(&mut a, "select n into chosen from s");
    run(&mut a, "begin; create table inside as select n from s; commit");
    run(&mut a, "create materialized view seen as select n from s");
    run(&mut b, "insert into s values (-1)");
    run(&mut a, "refresh materialized view seen");
    run(
        &mut a,
        "create table parted (n int) partition by range (n);
         create table low partition of parted for values from (0) to (100000);
         insert into parted select n from s where n >= 0;
         alter table parted detach partition low",
    );
    let many = |s: &mut Session, table: &str| rows(s, &format!("select count(*) from {table}"));
    for s in [&mut a, &mut b] {
        for table in ["made", "chosen", "inside", "low"] {
            assert_eq!(many(s, table), ["16384"], "{table}");
        }
        assert_eq!((many(s, "seen"), many(s, "parted")), (vec!["16385".into()], vec!["0".into()]));
    }
}
