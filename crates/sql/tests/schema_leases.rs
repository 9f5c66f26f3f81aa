//! Schema leases on three nodes: what a node may do without asking, and that whoever changes the
//! schema on another one waits for it as for one's own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::scope;
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::{FileSystem, MemFs};
use braid_kv::{Coordinator, Tally};
use braid_settings::DiskCopy;
use braid_sim::{LiveCluster, LiveOptions};
use braid_sql::{Database, NoGeneralQueries, Session};
use braid_types::SqlResult;
use bytes::Bytes;

use crate::harness::{error, rows, run, session, state, try_run};

/// Longer than a lease, with what clocks may differ by; and what it may take besides.
const OVER: Duration = Duration::from_millis(3_600);
const SLACK: Duration = Duration::from_secs(15);

const FAMILY: &str = "
    create table c (id int primary key, n int);
    create table o (id int, k int, n int, primary key (id, k))
        interleave in parent c on delete cascade";

/// Three nodes; all rows are in another range than the system's keys.
fn cluster() -> Arc<LiveCluster> {
    let (row_class, row_form) = (Some(braid_keys::row_class as _), Some(braid_rows::ROW_FORM));
    let borders = vec![Bytes::from_static(&[2])];
    LiveCluster::start(LiveOptions { row_class, row_form, borders, ..LiveOptions::default() })
}

fn on(cluster: &Arc<LiveCluster>, node: u64) -> Arc<Database> {
    open(&cluster.coordinator_on(node)).unwrap()
}

fn open(at: &Arc<Coordinator>) -> SqlResult<Arc<Database>> {
    let fs = Arc::new(MemFs::new());
    fs.create_dir_all(Path::new("/n")).unwrap();
    Database::open_shared(at.clone(), Arc::new(NoGeneralQueries), DiskCopy::new(fs, "/n"))
}

fn has_lease(db: &Database) -> bool {
    let at = db.coordinator();
    at.leases().is_some_and(|leases| leases.live(at.wall_clock_us()).is_some())
}

/// Has a node get a lease, which it does when statements have begun there.
fn get_lease(db: &Arc<Database>) {
    let s = &mut session(db);
    let until = WallClock.monotonic_nanos() + SLACK.as_nanos() as u64;
    while !has_lease(db) {
        assert!(WallClock.monotonic_nanos() < until, "no lease");
        run(s, "select n from c where id = -1");
        db.keep_schema_lease(Duration::from_millis(10)).unwrap();
    }
}

/// Nodes keep their leases while something is done.
fn kept<T>(nodes: &[&Arc<Database>], work: impl FnOnce() -> T) -> T {
    struct Stops<'a>(&'a AtomicBool);
    impl Drop for Stops<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let stop = &AtomicBool::new(false);
    scope(|threads| {
        let _stops = Stops(stop);
        for db in nodes {
            threads.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    db.keep_schema_lease(Duration::from_millis(10)).unwrap();
                }
            });
        }
        work()
    })
}

fn calls(work: impl FnOnce()) -> u64 {
    let before = Tally::here();
    work();
    Tally::here().since(before).network.calls
}

fn seconds(work: impl FnOnce()) -> Duration {
    let begun = WallClock.monotonic_nanos();
    work();
    Duration::from_nanos(WallClock.monotonic_nanos() - begun)
}

#[test]
fn a_family_is_written_without_a_word_about_the_schema() {
    let cluster = cluster();
    let (own, other) = (on(&cluster, 1), on(&cluster, 2));
    run(&mut session(&own), FAMILY);
    // The first node leads all ranges: what the second one sends for each statement is counted.
    let family = [
        "insert into c values (7, 0)",
        "begin; insert into o values (7, 1, 0), (7, 2, 0); update o set n = 1 where id = 7; commit",
        "update o set n = n + 1 where id = 7 and k = 1",
        "delete from o where id = 7 and k = 2",
        "delete from c where id = 7",
    ];
    let s = &mut session(&other);
    let asking: Vec<u64> = family.iter().map(|sql| calls(|| drop(run(s, sql)))).collect();
    // The lease may be over on a busy machine, and routers say now and then that they are there.
    let quiet = (0..20).any(|_| {
        get_lease(&other);
        // Range 1 has the system's keys.
        let before = cluster.requests_to(1);
        let leased: Vec<u64> = family.iter().map(|sql| calls(|| drop(run(s, sql)))).collect();
        // Two looks at the catalog and a lock, a look before and one at the commit, and its end.
        let fewer = leased.iter().zip(&asking).all(|(with, without)| with + 5 <= *without);
        // A look, a lock, the commit, the end of the locks; an update has two looks.
        let few = leased.iter().all(|calls| *calls <= 6);
        let is_heard = cluster.requests_to(1) > before;
        fewer && few && !is_heard && has_lease(&other)
    });
    assert!(quiet, "the system's range was asked each time, {asking:?} without a lease");
}

#[test]
fn a_change_waits_for_a_block_on_another_node_and_no_longer() {
    let cluster = cluster();
    let (own, other) = (on(&cluster, 1), on(&cluster, 2));
    run(&mut session(&own), FAMILY);
    get_lease(&own);
    get_lease(&other);
    kept(&[&own, &other], || {
        let writer = &mut session(&other);
        run(writer, "begin; insert into c values (1, 1)");
        assert!(has_lease(&other));
        let done = AtomicBool::new(false);
        scope(|threads| {
            threads.spawn(|| {
                run(&mut session(&own), "alter table c add column m int not null default 5");
                done.store(true, Ordering::SeqCst);
            });
            WallClock.sleep(Duration::from_millis(700));
            assert!(!has_lease(&other), "it was given back");
            assert!(!done.load(Ordering::SeqCst), "the block goes by the table as it was");
            run(writer, "update c set n = 2 where id = 1; commit");
        });
        assert_eq!(rows(writer, "select id, n, m from c"), ["1|2|5"]);
        // Whoever holds nothing keeps nobody waiting for as long as a lease lives.
        let quick = seconds(|| {
            for n in 0..5 {
                run(&mut session(&own), &format!("alter table c add column x{n} int"));
            }
        });
        assert!(quick < OVER, "{quick:?}");
    });
}

#[test]
fn a_block_that_was_recalled_may_go_on_return_to_a_savepoint_and_commit() {
    let cluster = cluster();
    let (own, other) = (on(&cluster, 1), on(&cluster, 2));
    run(&mut session(&own), FAMILY);
    for isolation in ["serializable", "repeatable read", "read committed"] {
        get_lease(&other);
        kept(&[&other], || {
            let s = &mut session(&other);
            run(s, &format!("begin isolation level {isolation}; savepoint a"));
            run(s, "insert into c values (1, 0); rollback to a; insert into c values (2, 0)");
            // It concerns another table.
            run(&mut session(&own), "create table z (id int primary key); drop table z");
            assert!(!has_lease(&other));
            run(s, "savepoint b; insert into o values (2, 1, 0); rollback to b; commit");
            assert_eq!(rows(s, "select id from c"), ["2"], "{isolation}");
            run(s, "delete from c");
            WallClock.sleep(Duration::from_millis(600));
        });
    }
}

#[test]
fn who_does_not_answer_is_waited_for_until_its_lease_is_over_and_cannot_commit_then() {
    let cluster = cluster();
    let (own, other) = (on(&cluster, 1), on(&cluster, 2));
    run(&mut session(&own), FAMILY);
    for (isolation, n) in [("serializable", 1), ("repeatable read", 2), ("read committed", 3)] {
        get_lease(&other);
        let s = &mut session(&other);
        run(s, &format!("begin isolation level {isolation}; insert into c values ({n}, 1)"));
        // One that holds a row and writes nothing, and one that has only read.
        let reader = &mut session(&other);
        run(reader, &format!("begin isolation level {isolation}; select * from c for share"));
        let waited = seconds(|| {
            run(&mut session(&own), &format!("alter table c add column m{n} int default 5"));
        });
        assert!(waited < OVER + SLACK, "{waited:?}");
        assert_eq!(state(s, "commit"), "40001", "{isolation}");
        assert_eq!(state(reader, "commit"), "40001", "{isolation}");
        // Statements of their own run again.
        run(s, &format!("insert into c (id, n) values ({n}, 2)"));
        assert_eq!(rows(s, &format!("select n, m{n} from c where id = {n}")), ["2|5"]);
        let patience = "set lock_timeout = '100ms'";
        get_lease_after_pause(&other);
        let timed = &mut session(&own);
        run(timed, patience);
        assert_eq!(state(timed, "alter table c add column never int"), "55P03");
        WallClock.sleep(OVER);
    }
}

/// The same after it was taken away: it is not wanted again at once.
fn get_lease_after_pause(db: &Arc<Database>) {
    db.keep_schema_lease(Duration::from_millis(10)).unwrap();
    get_lease(db);
}

#[test]
fn a_process_that_is_gone_is_waited_for_and_the_one_after_it_is_not_taken_for_it() {
    let cluster = cluster();
    let own = on(&cluster, 1);
    run(&mut session(&own), FAMILY);
    let gone = on(&cluster, 2);
    get_lease(&gone);
    drop(gone);
    let again = on(&cluster, 2);
    get_lease(&again);
    kept(&[&again], || {
        let waited = seconds(|| drop(run(&mut session(&own), "alter table c add column m int")));
        assert!(waited > Duration::from_secs(1), "it may have sent a commit: {waited:?}");
        assert!(waited < OVER + SLACK, "{waited:?}");
    });
    // One that ends in order is not.
    let begun = on(&cluster, 3);
    get_lease(&begun);
    begun.end_schema_lease().unwrap();
    drop(begun);
    WallClock.sleep(Duration::from_millis(500));
    let waited = seconds(|| drop(run(&mut session(&own), "alter table c add column l int")));
    assert!(waited < Duration::from_secs(2), "{waited:?}");
}

/// The machine's clock, some microseconds ahead or behind.
struct Shifted(AtomicI64);

impl Clock for Shifted {
    fn now_micros(&self) -> u64 {
        WallClock.now_micros().saturating_add_signed(self.0.load(Ordering::SeqCst))
    }

    fn monotonic_nanos(&self) -> u64 {
        WallClock.monotonic_nanos()
    }

    fn sleep(&self, duration: Duration) {
        WallClock.sleep(duration);
    }
}

#[test]
fn clocks_within_the_bound_let_nobody_commit_what_a_change_did_not_wait_for() {
    let cluster = cluster();
    let first = on(&cluster, 1);
    run(&mut session(&first), FAMILY);
    let by = |node: u64, shift: i64| {
        let clock = Arc::new(Shifted(AtomicI64::new(shift)));
        let at = cluster.coordinator_by_clock(node, clock.clone());
        // It reads about when others have written.
        let open = || open(&at).ok();
        ((0..100).find_map(|_| open()).expect("it is opened"), clock)
    };
    // The ranges' clocks are in between. A jump comes when the lease is there.
    for (round, (holds, jumps_to, changes)) in
        [(-120_000, -120_000, 120_000), (120_000, 120_000, -120_000), (120_000, -120_000, 120_000)]
            .into_iter()
            .enumerate()
    {
        let (holder, holder_clock) = by(2, holds);
        let (changer, _) = by(3, changes);
        get_lease(&holder);
        let mut open: Vec<Session> = (0..40).map(|_| session(&holder)).collect();
        for (n, s) in open.iter_mut().enumerate() {
            let id = round * 100 + n;
            run(
                s,
                &format!("begin isolation level read committed; insert into c values ({id}, 1)"),
            );
        }
        holder_clock.0.store(jumps_to, Ordering::SeqCst);
        let done = AtomicBool::new(false);
        let late = AtomicU64::new(0);
        scope(|threads| {
            threads.spawn(|| {
                let s = &mut session(&changer);
                let begin = "begin isolation level read committed";
                run(s, &format!("{begin}; alter table c add column m{round} int"));
                done.store(true, Ordering::SeqCst);
                let there = rows(s, "select count(*) from c");
                WallClock.sleep(Duration::from_millis(500));
                run(s, "commit");
                assert_eq!(rows(s, "select count(*) from c"), there, "nobody has written since");
            });
            // One after the other commits while the change waits, and when it does not any more.
            for s in &mut open {
                WallClock.sleep(Duration::from_millis(90));
                let was_done = done.load(Ordering::SeqCst);
                match try_run(s, "commit", &[]) {
                    Ok(_) => assert!(!was_done, "it was committed when nobody waited for it"),
                    Err(e) => {
                        assert_eq!(e.state().0, "40001");
                        late.fetch_add(1, Ordering::SeqCst);
                    }
                }
            }
        });
        assert!(late.load(Ordering::SeqCst) > 0, "no commit was late in round {round}");
    }
}

#[test]
fn indexes_and_columns_come_and_go_beside_writers_of_other_nodes() {
    let cluster = cluster();
    let nodes: Vec<Arc<Database>> = (1..=3).map(|node| on(&cluster, node)).collect();
    run(&mut session(&nodes[0]), FAMILY);
    for id in 1..=60 {
        run(&mut session(&nodes[0]), &format!("insert into c values ({id}, {})", id % 7));
    }
    let (stop, writes) = (&AtomicBool::new(false), &AtomicU64::new(0));
    let all: Vec<&Arc<Database>> = nodes.iter().collect();
    kept(&all, || {
        scope(|threads| {
            for (who, db) in nodes.iter().enumerate() {
                threads.spawn(move || {
                    let (s, mut n) = (&mut session(db), who);
                    while !stop.load(Ordering::SeqCst) {
                        n += 7;
                        let id = n % 60 + 1;
                        let sql = match n % 4 {
                            0 => format!("delete from c where id = {id}"),
                            1 => format!(
                                "insert into c (id, n) values ({id}, 1) on conflict do nothing"
                            ),
                            2 => format!("update c set n = n + 1 where id = {id}"),
                            _ => format!("insert into o values ({id}, {n}, 1)"),
                        };
                        match try_run(s, &sql, &[]) {
                            Ok(_) => drop(writes.fetch_add(1, Ordering::SeqCst)),
                            Err(e) => assert!(["40001", "23503"].contains(&e.state().0), "{e:?}"),
                        }
                    }
                });
            }
            let s = &mut session(&nodes[1]);
            for round in 0..3 {
                run(s, "create index by_n on c (n)");
                let counts = "select count(*), sum(n) from c";
                run(s, "begin isolation level repeatable read");
                let whole = rows(s, counts);
                let indexed = rows(s, &format!("{counts} where n > -1"));
                assert_eq!(whole, indexed, "round {round}");
                run(s, "commit");
                run(s, &format!("alter table c add column m{round} int not null default {round}"));
                run(s, "alter table c add constraint positive check (n >= 0)");
                run(s, "drop index by_n; alter table c drop constraint positive");
                WallClock.sleep(Duration::from_millis(1_200));
            }
            let before = writes.load(Ordering::SeqCst);
            run(s, "truncate c cascade");
            stop.store(true, Ordering::SeqCst);
            assert!(before > 100, "{before} writes");
        });
    });
    let s = &mut session(&nodes[2]);
    let (parents, children) = (rows(s, "select id from c"), rows(s, "select distinct id from o"));
    assert!(children.iter().all(|id| parents.contains(id)), "{parents:?} {children:?}");
    assert_eq!(error(s, "select m9 from c").state().0, "42703");
}

/// What becomes a table of its own in a change is not taken for one that another change has made.
#[test]
fn a_partition_with_rows_becomes_a_table_on_any_node() {
    let cluster = cluster();
    let (one, two) = (on(&cluster, 1), on(&cluster, 2));
    let made = "create table m (id int, d int) partition by range (d);
         create table m_low partition of m for values from (0) to (10);
         create table m_high partition of m for values from (10) to (20);
         insert into m values (1, 1), (2, 2), (11, 11)";
    run(&mut session(&one), made);
    for (db, detached) in [(&two, "m_low"), (&one, "m_high")] {
        run(&mut session(db), &format!("alter table m detach partition {detached}"));
    }
    let s = &mut session(&two);
    assert_eq!(rows(s, "select id from m_low"), ["1", "2"]);
    assert_eq!(rows(s, "select id from m_high"), ["11"]);
    assert_eq!(rows(s, "select id from m"), [""; 0]);
}

#[test]
fn a_node_that_runs_nothing_lets_its_lease_go() {
    let cluster = cluster();
    let (own, other) = (on(&cluster, 1), on(&cluster, 2));
    run(&mut session(&own), FAMILY);
    get_lease(&other);
    let sent = kept(&[&other], || {
        let s = &mut session(&other);
        // An open block keeps it.
        run(s, "begin; insert into c values (1, 1)");
        WallClock.sleep(OVER + Duration::from_secs(1));
        assert!(has_lease(&other));
        run(s, "commit");
        WallClock.sleep(OVER + Duration::from_secs(2));
        assert!(!has_lease(&other));
        calls(|| other.keep_schema_lease(Duration::from_millis(1)).unwrap())
    });
    assert_eq!(sent, 0);
}
