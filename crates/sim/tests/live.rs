//! Transactions over several ranges that nobody told them of: what is read, locked and validated at
//! their borders.

use std::collections::BTreeMap;
use std::sync::Arc;

use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use braid_env::random::Random;
use braid_kv::{
    Conflict, Coordinator, Isolation, KeySpan, KvError, LockMode, ScanOptions, Txn, TxnOptions,
    Wait,
};
use braid_sim::{LiveCluster, LiveOptions};
use bytes::Bytes;

fn key(n: u64) -> Bytes {
    format!("k{n:03}").into()
}

/// Three ranges: keys below 100, below 200, and others.
fn cluster() -> (Arc<LiveCluster>, Arc<Coordinator>) {
    let borders = vec![key(100), key(200)];
    let cluster = LiveCluster::start(LiveOptions { borders, ..LiveOptions::default() });
    let coordinator = cluster.coordinator();
    (cluster, coordinator)
}

fn begin(at: &Arc<Coordinator>, isolation: Isolation, batch: usize) -> Arc<Txn> {
    at.begin(TxnOptions { isolation, batch, ..TxnOptions::default() }).expect("begins")
}

fn set(at: &Arc<Coordinator>, n: u64, value: &str) {
    let txn = begin(at, Isolation::Serializable, 1024);
    txn.put(key(n), value.to_string()).expect("puts");
    txn.commit().expect("commits");
}

fn scan(txn: &Arc<Txn>, span: KeySpan, options: ScanOptions) -> Vec<(Bytes, Bytes)> {
    let mut scan = txn.scan(span, options).expect("opens");
    let mut out = Vec::new();
    while let Some(row) = scan.next().expect("scans") {
        out.push(row);
    }
    out
}

#[test]
fn what_is_read_does_not_depend_on_borders() {
    for seed in 0..6 {
        let (cluster, at) = cluster();
        let mut random = Random::seeded(seed);
        let mut model: BTreeMap<Bytes, Bytes> = BTreeMap::new();
        for round in 0..60 {
            let n = random.below(300);
            let txn = begin(&at, Isolation::Serializable, 1 + random.below(9) as usize);
            match random.below(4) {
                0 => {
                    // Inside of one range, also later.
                    let border = [50, 100, 150, 151, 200, 300].into_iter().find(|at| *at > n);
                    let end = key((n + 1 + random.below(30)).min(border.unwrap_or(300)));
                    txn.delete_span(&KeySpan::new(key(n), end.clone())).expect("deletes");
                    model.retain(|k, _| *k < key(n) || *k >= end);
                }
                _ => {
                    txn.put(key(n), format!("v{round}")).expect("puts");
                    model.insert(key(n), format!("v{round}").into());
                }
            }
            txn.commit().expect("commits");
            if round == 30 {
                // The router learns of these from whoever it asks.
                [50, 150, 151].into_iter().for_each(|n| cluster.split(&key(n)));
            }
            let txn = begin(&at, Isolation::RepeatableRead, 1 + random.below(9) as usize);
            let (a, b) = (random.below(300), random.below(300));
            let span = KeySpan::new(key(a.min(b)), key(a.max(b) + 1));
            let inside = model.range(span.start.clone()..span.end.clone());
            let mut expected: Vec<(Bytes, Bytes)> =
                inside.map(|(k, v)| (k.clone(), v.clone())).collect();
            let reverse = random.below(2) == 0;
            if reverse {
                expected.reverse();
            }
            let limit = (random.below(2) == 0).then(|| 1 + random.below(20) as usize);
            expected.truncate(limit.unwrap_or(usize::MAX));
            let options = ScanOptions { reverse, limit, ..ScanOptions::default() };
            assert_eq!(scan(&txn, span, options), expected, "seed {seed}, round {round}");
            let keys: Vec<Bytes> = (0..20).map(|_| key(random.below(300))).collect();
            let got = txn.get_many(&keys, braid_kv::ReadMode::Recorded).expect("gets");
            let expected: Vec<Option<Bytes>> = keys.iter().map(|k| model.get(k).cloned()).collect();
            assert_eq!(got, expected, "seed {seed}, round {round}");
        }
        assert_eq!(cluster.describe().matches("leads").count(), 6, "{}", cluster.describe());
    }
}

#[test]
fn write_skew_over_a_border_is_caught_only_by_serializable() {
    for (isolation, conflicts) in
        [(Isolation::Serializable, true), (Isolation::RepeatableRead, false)]
    {
        let (_cluster, at) = cluster();
        set(&at, 1, "1");
        set(&at, 201, "1");
        let (a, b) = (begin(&at, isolation, 1024), begin(&at, isolation, 1024));
        assert!(a.get(&key(201)).expect("gets").is_some());
        // A span that goes over all borders, and the rows of it that are not there.
        assert_eq!(scan(&b, KeySpan::new(key(0), key(200)), ScanOptions::default()).len(), 1);
        a.put(key(1), "0").expect("puts");
        b.put(key(201), "0").expect("puts");
        a.commit().expect("commits");
        let second = b.commit();
        let caught = matches!(&second, Err(KvError::Retry { conflict: Conflict::ReadSpan(_) }));
        assert_eq!(caught, conflicts, "{isolation:?}: {second:?}");
        assert!(caught || second.is_ok(), "{second:?}");
    }
}

#[test]
fn a_locked_span_is_locked_in_all_of_its_ranges() {
    let (cluster, at) = cluster();
    let holder = begin(&at, Isolation::ReadCommitted, 1024);
    let span = KeySpan::new(key(90), key(210));
    holder.lock_span(&span, LockMode::Exclusive, Wait::Block).expect("locks");
    let free = |n| {
        let txn = begin(&at, Isolation::ReadCommitted, 1024);
        let locked = txn.lock(&key(n), LockMode::KeyShare, Wait::NoWait);
        assert!(matches!(locked, Ok(_) | Err(KvError::LockNotAvailable)), "{locked:?}");
        locked.is_ok()
    };
    let expected = [(89, true), (90, false), (150, false), (209, false), (210, true)];
    expected.into_iter().for_each(|(n, is_free)| assert_eq!(free(n), is_free, "{n}"));
    // What it writes goes into one of them; in the others its locks are looked after.
    cluster.split(&key(120));
    expected.into_iter().for_each(|(n, is_free)| assert_eq!(free(n), is_free, "{n}"));
    holder.put(key(150), "mine").expect("puts");
    holder.commit().expect("commits");
    expected.into_iter().for_each(|(n, _)| assert!(free(n), "{n}"));
    let all = begin(&at, Isolation::Serializable, 1024);
    assert_eq!(all.get(&key(150)).expect("gets").as_deref(), Some(b"mine".as_slice()));
    assert_eq!(at.describe_locks().lines, "");
}

fn all_rows(at: &Arc<Coordinator>) -> Vec<(Bytes, Bytes)> {
    let txn = begin(at, Isolation::Serializable, 1024);
    scan(&txn, KeySpan::new(key(0), key(400)), ScanOptions::default())
}

fn row(n: u64, value: &'static str) -> (Bytes, Bytes) {
    (key(n), value.into())
}

#[test]
fn a_commit_into_several_ranges_happens_in_all_of_them_at_one_time() {
    let (cluster, at) = cluster();
    let txn = begin(&at, Isolation::Serializable, 1024);
    [1, 101, 201].into_iter().for_each(|n| txn.put(key(n), "a").expect("puts"));
    let before = begin(&at, Isolation::RepeatableRead, 1024);
    let done = txn.commit().expect("commits");
    assert_eq!(txn.stats().participants, 3);
    assert_eq!(all_rows(&at), [row(1, "a"), row(101, "a"), row(201, "a")]);
    assert_eq!(before.get(&key(101)).expect("gets"), None);
    for (time, rows) in [(done.0 - 1, 0), (done.0, 3)] {
        let options =
            TxnOptions { as_of: Some(braid_lsm::CommitTs(time)), ..TxnOptions::default() };
        let past = at.begin(options).expect("begins");
        let span = KeySpan::new(key(0), key(400));
        assert_eq!(scan(&past, span, ScanOptions::default()).len(), rows);
    }
    // Its keys were in one range when it began, and are in two when it commits.
    let txn = begin(&at, Isolation::Serializable, 1024);
    txn.put(key(10), "b").expect("puts");
    txn.put(key(20), "b").expect("puts");
    cluster.split(&key(15));
    txn.commit().expect("commits");
    // A span over all borders, those that nobody knows of, too.
    cluster.split(&key(150));
    let erases = begin(&at, Isolation::Serializable, 1024);
    erases.delete_span(&KeySpan::new(key(5), key(300))).expect("deletes");
    erases.put(key(120), "c").expect("puts");
    cluster.split(&key(110));
    erases.commit().expect("commits");
    assert_eq!(all_rows(&at), [row(1, "a"), row(120, "c")]);
    assert_eq!(at.describe_locks().lines, "");
    cluster.settle();
    assert_eq!(cluster.unfinished(), (0, 0));
}

#[test]
fn of_two_that_read_what_the_other_writes_over_borders_one_happens() {
    for seed in 0..10 {
        let (cluster, at) = cluster();
        let mut random = Random::seeded(seed);
        let keys = [1, 101, 201];
        keys.into_iter().for_each(|n| set(&at, n, "0"));
        // Each reads one range and writes the other two.
        let run = |n: usize, pause: u64| {
            let txn = begin(&at, Isolation::Serializable, 1024);
            let read = txn.get(&key(keys[n])).expect("gets");
            std::thread::sleep(std::time::Duration::from_millis(pause));
            let text = format!("{} after {:?}", n, read.expect("there"));
            for other in (0..3).filter(|other| *other != n) {
                txn.put(key(keys[other]), text.clone())?;
            }
            txn.commit()
        };
        let pauses = [random.below(20), random.below(20), random.below(20)];
        let done: Vec<_> = std::thread::scope(|scope| {
            let run = &run;
            let spawn = |(n, pause)| scope.spawn(move || run(n, pause));
            let threads: Vec<_> = pauses.into_iter().enumerate().map(spawn).collect();
            threads.into_iter().map(|thread| thread.join().expect("joins")).collect()
        });
        let happened = done.iter().filter(|done| done.is_ok()).count();
        assert!(happened >= 1, "{done:?}");
        for failed in done.iter().filter_map(|done| done.as_ref().err()) {
            let expected = matches!(failed, KvError::Retry { .. } | KvError::Deadlock { .. });
            assert!(expected, "{failed}");
        }
        cluster.settle();
        assert_eq!((cluster.unfinished(), at.describe_locks().lines.as_str()), ((0, 0), ""));
    }
}

#[test]
fn circles_of_waiting_over_several_ranges_are_found() {
    for count in [2, 3] {
        let (cluster, at) = cluster();
        let keys = [1, 101, 201];
        let barrier = std::sync::Barrier::new(count);
        let run = |n: usize| {
            let txn = begin(&at, Isolation::ReadCommitted, 1024);
            txn.put(key(keys[n]), "mine").expect("puts");
            barrier.wait();
            txn.put(key(keys[(n + 1) % count]), "mine")?;
            txn.commit()
        };
        let done: Vec<_> = std::thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> = (0..count).map(|n| scope.spawn(move || run(n))).collect();
            threads.into_iter().map(|thread| thread.join().expect("joins")).collect()
        });
        // The others go on; what they had seen may have changed by then.
        let deadlock = |done: &&Result<_, _>| matches!(done, Err(KvError::Deadlock { .. }));
        assert_eq!(done.iter().filter(deadlock).count(), 1, "{done:?}");
        let fine = |done: &Result<_, KvError>| match done {
            Ok(_) | Err(KvError::Deadlock { .. }) => true,
            Err(KvError::Retry { conflict: Conflict::Written(_) }) => true,
            Err(_) => false,
        };
        assert!(done.iter().all(fine) && done.iter().any(Result::is_ok), "{done:?}");
        cluster.settle();
        assert_eq!((cluster.unfinished(), at.describe_locks().lines.as_str()), ((0, 0), ""));
    }
}

#[test]
fn a_long_wait_for_a_lock_is_no_failure() {
    let (_cluster, at) = cluster();
    let holder = begin(&at, Isolation::ReadCommitted, 1024);
    holder.put(key(1), "first").expect("puts");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let txn = begin(&at, Isolation::ReadCommitted, 1024);
            txn.put(key(101), "second").expect("puts");
            txn.lock(&key(1), LockMode::Exclusive, Wait::Block).map(|_| txn.commit().is_ok())
        });
        std::thread::sleep(std::time::Duration::from_secs(4));
        assert!(!waits.is_finished());
        holder.rollback();
        assert!(waits.join().expect("joins").expect("locks"));
    });
}

#[test]
fn a_failed_commit_into_several_ranges_leaves_nothing() {
    let (cluster, at) = cluster();
    set(&at, 201, "0");
    let txn = begin(&at, Isolation::Serializable, 1024);
    assert!(txn.get(&key(201)).expect("gets").is_some());
    [1, 101].into_iter().for_each(|n| txn.put(key(n), "a").expect("puts"));
    set(&at, 201, "1");
    let refused = txn.commit();
    assert!(matches!(refused, Err(KvError::Retry { .. })), "{refused:?}");
    assert_eq!(all_rows(&at), [row(201, "1")]);
    // What was prepared is gone: others write there at once.
    [1, 101].into_iter().for_each(|n| set(&at, n, "b"));
    cluster.settle();
    assert_eq!((cluster.unfinished(), at.describe_locks().lines.as_str()), ((0, 0), ""));
}

#[test]
fn participants_and_remote_calls_are_counted() {
    let (cluster, at) = cluster();
    let count = |at: &Arc<Coordinator>, keys: &[u64], reads: &[u64]| {
        let txn = begin(at, Isolation::Serializable, 1024);
        reads.iter().for_each(|n| drop(txn.get(&key(*n)).expect("gets")));
        keys.iter().for_each(|n| txn.put(key(*n), "a").expect("puts"));
        assert_eq!(txn.stats().participants, 0);
        let so_far = txn.participants_so_far().expect("borders are known");
        txn.commit().expect("commits");
        assert_eq!(so_far, Some(txn.stats().participants));
        let stats = txn.stats();
        (stats.participants, stats.network.calls, stats.ranges_touched)
    };
    // All ranges are served by the first node, and asked by it.
    assert_eq!(count(&at, &[1, 2], &[3]), (1, 0, 1));
    assert_eq!(count(&at, &[1, 101, 201], &[]), (3, 0, 3));
    assert_eq!(count(&at, &[], &[1, 101]), (0, 0, 2));
    // What is only read elsewhere does not make a participant.
    assert_eq!(count(&at, &[1], &[101, 201]), (1, 0, 3));
    let elsewhere = cluster.coordinator_on(2);
    // A lock, a commit, and the lock back.
    assert_eq!(count(&elsewhere, &[1], &[]), (1, 3, 1));
    // It learns of a border. Then: two locks; prepare, commit and resolve; both locks back.
    assert_eq!(count(&elsewhere, &[1, 101], &[]), (2, 8, 2));
    assert_eq!(count(&elsewhere, &[1, 101], &[]), (2, 7, 2));
}

#[test]
fn a_lock_that_went_along_with_a_split_goes_when_its_transaction_has_ended() {
    let (cluster, at) = cluster();
    let first = begin(&at, Isolation::ReadCommitted, 1024);
    first.lock(&key(150), LockMode::Exclusive, Wait::Block).expect("locks");
    // Its router does not know where the lock is when it ends.
    cluster.split(&key(140));
    first.rollback();
    let lock_timeout = Some(Duration::from_secs(5));
    let isolation = Isolation::ReadCommitted;
    let options = TxnOptions { isolation, lock_timeout, ..TxnOptions::default() };
    let second = at.begin(options).expect("begins");
    second.lock(&key(150), LockMode::Exclusive, Wait::Block).expect("nobody has it");
}

/// Who is asked for keys that it does not have tells of a few other ranges only.
#[test]
fn keys_are_found_behind_more_borders_than_an_answer_tells_of() {
    let borders: Vec<Bytes> = (1..=150).map(|n| key(2 * n)).collect();
    let cluster = LiveCluster::start(LiveOptions { borders, ..LiveOptions::default() });
    let (writer, reader) = (cluster.coordinator(), cluster.coordinator_on(2));
    let locks = begin(&writer, Isolation::ReadCommitted, 1024);
    locks.lock(&key(299), LockMode::Exclusive, Wait::Block).expect("locks");
    set(&writer, 297, "far");
    let txn = begin(&reader, Isolation::Serializable, 1024);
    assert_eq!(txn.get(&key(297)).expect("it is found").as_deref(), Some(b"far".as_slice()));
    // More of them, in front of what is locked.
    (0..80).for_each(|n| cluster.split(&Bytes::from(format!("k298{n:02}"))));
    locks.put(key(299), "mine").expect("puts");
    locks.commit().expect("its locks are there still");
    let all = KeySpan::new(key(0), key(999));
    let txn = begin(&reader, Isolation::Serializable, 1024);
    assert_eq!(scan(&txn, all, ScanOptions::default()).len(), 2);
}

/// Versions are kept for a second.
fn forgetful() -> (Arc<LiveCluster>, Arc<Coordinator>) {
    let gc_window_micros = Some(1_000_000);
    let borders = vec![key(100)];
    let cluster =
        LiveCluster::start(LiveOptions { borders, gc_window_micros, ..LiveOptions::default() });
    let coordinator = cluster.coordinator();
    (cluster, coordinator)
}

/// Others write for so long.
fn go_on(at: &Arc<Coordinator>, time: Duration) {
    let until = WallClock.monotonic_nanos() + time.as_nanos() as u64;
    while WallClock.monotonic_nanos() < until {
        set(at, 1, "new");
        set(at, 101, "new");
        WallClock.sleep(Duration::from_millis(20));
    }
}

fn as_of(at: &Arc<Coordinator>, ts: braid_lsm::CommitTs) -> Result<Arc<Txn>, KvError> {
    let options = TxnOptions { as_of: Some(ts), read_only: true, ..TxnOptions::default() };
    at.begin(options)
}

fn get(txn: &Arc<Txn>, n: u64) -> Result<Option<Bytes>, KvError> {
    txn.get(&key(n))
}

#[test]
fn what_a_transaction_reads_stays_while_its_router_says_so() {
    let (cluster, at) = forgetful();
    let other = cluster.coordinator_on(2);
    set(&at, 1, "old");
    set(&at, 101, "old");
    let old = Some(Bytes::from_static(b"old"));
    let oldest = begin(&at, Isolation::RepeatableRead, 1024);
    // Whoever has read the same time and ends takes it away from nobody.
    drop(as_of(&at, oldest.read_ts()).expect("it is in the window"));
    go_on(&other, Duration::from_millis(400));
    let reader = begin(&at, Isolation::RepeatableRead, 1024);
    let then = reader.read_ts();
    let past = as_of(&other, then).expect("it is in the window");
    go_on(&other, Duration::from_millis(3_500));
    for n in [1, 101] {
        assert!(get(&oldest, n).expect("it is protected").is_some());
        assert!(get(&reader, n).expect("it is protected").is_some());
        assert_eq!(get(&past, n).expect("it is protected"), get(&reader, n).expect("it reads"));
    }
    assert_eq!(get(&oldest, 1).expect("it is protected"), old);
    oldest.rollback();
    // While others protect it, whoever asks for that time gets it as well.
    drop(as_of(&at, then).expect("it is still there"));
    reader.rollback();
    go_on(&at, Duration::from_millis(500));
    assert!(get(&past, 101).expect("it is protected").is_some());
    past.rollback();
    go_on(&at, Duration::from_millis(2_500));
    for coordinator in [&at, &other] {
        let refused = as_of(coordinator, then);
        let told =
            matches!(refused, Err(KvError::TimestampOutOfWindow { oldest, .. }) if oldest > then);
        assert!(told, "it begins as if that time could be read");
    }
    // What is newer than the window can be read everywhere.
    let now = begin(&at, Isolation::RepeatableRead, 1024).read_ts();
    set(&at, 1, "newer");
    let recent = as_of(&other, now).expect("it is in the window");
    assert_eq!(get(&recent, 1).expect("it reads").as_deref(), Some(b"new".as_slice()));
}

/// Whoever reads under locks relies on them as much as one who writes.
#[test]
fn who_has_lost_its_locks_is_told_so_at_its_commit_also_if_it_writes_nothing() {
    let (cluster, at) = forgetful();
    let locks = |keys: &[u64]| {
        let txn = begin(&at, Isolation::ReadCommitted, 1024);
        for n in keys {
            txn.lock(&key(*n), LockMode::Exclusive, Wait::Block).expect("locks");
        }
        txn
    };
    locks(&[1, 101]).commit().expect("it has its locks");
    let (reader, writer, goes_on) = (locks(&[2, 102]), locks(&[3]), locks(&[4]));
    let savepoint = begin(&at, Isolation::ReadCommitted, 1024);
    let before = savepoint.savepoint();
    savepoint.lock(&key(5), LockMode::Exclusive, Wait::Block).expect("locks");
    savepoint.rollback_to(before);
    writer.put(key(3), "mine").expect("puts");
    cluster.silence();
    go_on(&cluster.coordinator_on(3), Duration::from_millis(3_500));
    let lost = |result: Result<(), KvError>| {
        assert!(
            matches!(result, Err(KvError::Retry { conflict: Conflict::LocksLost })),
            "{result:?}"
        );
    };
    lost(reader.commit().map(drop));
    lost(writer.commit().map(drop));
    // A statement that is told so cannot be helped by trying it again: only by another transaction.
    let mark = goes_on.begin_retryable();
    goes_on.begin_statement().expect("it reads on");
    lost(goes_on.lock(&key(6), LockMode::Exclusive, Wait::Block).map(drop));
    lost(goes_on.retry_statement(mark));
    lost(goes_on.restart());
    goes_on.rollback();
    // What it has locked no more matters no more.
    savepoint.commit().expect("it relies on nothing");
}

#[test]
fn a_transaction_whose_router_was_silent_is_told_that_it_is_too_old() {
    let (cluster, at) = forgetful();
    set(&at, 1, "old");
    set(&at, 101, "old");
    let begun = || {
        let reader = begin(&at, Isolation::Serializable, 1024);
        assert!(get(&reader, 1).expect("it reads").is_some());
        reader
    };
    let (reader, writer, locker) = (begun(), begun(), begun());
    let statement = begin(&at, Isolation::ReadCommitted, 1024);
    let then = braid_lsm::CommitTs(reader.read_ts().0 + 1);
    let past = as_of(&at, then).expect("it is in the window");
    cluster.silence();
    let other = cluster.coordinator_on(3);
    go_on(&other, Duration::from_millis(3_500));
    let collected =
        |error: &KvError| matches!(error, KvError::Retry { conflict: Conflict::Collected(_) });
    let refused = get(&reader, 101).expect_err("rows of that time are gone");
    assert!(collected(&refused), "{refused}");
    let refused = get(&past, 101).expect_err("rows of that time are gone");
    assert!(matches!(refused, KvError::TimestampOutOfWindow { .. }), "{refused}");
    let refused = locker.lock(&key(105), LockMode::Exclusive, Wait::Block);
    assert!(refused.as_ref().is_err_and(collected), "{refused:?}");
    // What it writes over may have been deleted since then, without a trace.
    let refused = writer.put(key(106), "1").expect_err("it cannot be checked any more");
    assert!(collected(&refused), "{refused}");
    // A statement that may see a newer state does.
    statement.begin_statement().expect("it reads on");
    assert_eq!(get(&statement, 101).expect("it reads").as_deref(), Some(b"new".as_slice()));
    // Who reads the newest state in any case is not held up.
    let after = begin(&at, Isolation::Serializable, 1024);
    assert_eq!(get(&after, 101).expect("it reads").as_deref(), Some(b"new".as_slice()));
    after.put(key(107), "1").expect("puts");
    after.commit().expect("commits");
}
