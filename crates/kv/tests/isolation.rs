//! What concurrent transactions may see of each other, level by level.

mod place;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_env::clock::ManualClock;
use braid_env::fs::MemFs;
use braid_env::random::Random;
use braid_kv::{
    Coordinator, Isolation, KeySpan, KvError, LockMode, Locked, ScanOptions, Store, StoreOptions,
    Txn, TxnOptions, Wait,
};

fn store() -> Arc<Coordinator> {
    place::coordinator()
}

fn begin(store: &Arc<Coordinator>, isolation: Isolation) -> Arc<Txn> {
    store.begin(TxnOptions { isolation, ..TxnOptions::default() }).expect("begins")
}

fn set(store: &Arc<Coordinator>, rows: &[(&str, &str)]) {
    let txn = begin(store, Isolation::Serializable);
    for (k, v) in rows {
        txn.put(k.as_bytes().to_vec(), v.as_bytes().to_vec()).expect("puts");
    }
    txn.commit().expect("commits");
}

fn get(txn: &Txn, key: &str) -> Option<String> {
    let value = txn.get(key.as_bytes()).expect("gets")?;
    Some(String::from_utf8(value.to_vec()).expect("text"))
}

fn span(start: &str, end: &str) -> KeySpan {
    KeySpan::new(start.as_bytes().to_vec(), end.as_bytes().to_vec())
}

fn scan(txn: &Arc<Txn>, start: &str, end: &str, reverse: bool) -> String {
    let options = ScanOptions { reverse, ..ScanOptions::default() };
    let mut scan = txn.scan(span(start, end), options).expect("opens");
    let mut out = Vec::new();
    while let Some((k, v)) = scan.next().expect("scans") {
        out.push(format!("{}={}", k.escape_ascii(), v.escape_ascii()));
    }
    out.join(" ")
}

#[test]
fn a_scan_lays_own_writes_over_the_stored_rows() {
    let store = store();
    set(&store, &[("a", "1"), ("c", "1"), ("d", "1"), ("e", "1"), ("g", "1")]);
    let txn = begin(&store, Isolation::Serializable);
    txn.put("b", "2").unwrap();
    txn.put("c", "2").unwrap();
    txn.delete("g").unwrap();
    let before = txn.savepoint();
    assert_eq!(txn.delete_span(&span("c", "f")).unwrap(), [("c".into(), "2".into())]);
    txn.put("d", "3").unwrap();
    assert_eq!(scan(&txn, "a", "z", false), "a=1 b=2 d=3");
    assert_eq!(scan(&txn, "a", "z", true), "d=3 b=2 a=1");
    txn.rollback_to(before);
    assert_eq!(scan(&txn, "a", "z", false), "a=1 b=2 c=2 d=1 e=1");
    let mut scan_open = txn.scan(span("a", "z"), ScanOptions::default()).unwrap();
    txn.put("aa", "late").unwrap();
    scan_open.next().unwrap();
    assert_eq!(scan_open.next().unwrap().unwrap().0, "b", "an open scan does not see later writes");
    scan_open.seek(b"d").unwrap();
    assert_eq!(scan_open.next().unwrap().unwrap().0, "d");
    drop(scan_open);
    txn.delete_span(&span("c", "f")).unwrap();
    txn.commit().unwrap();
    let after = begin(&store, Isolation::Serializable);
    assert_eq!(scan(&after, "a", "z", false), "a=1 aa=late b=2");
}

#[test]
fn write_skew_is_caught_only_by_serializable() {
    for (isolation, conflicts) in
        [(Isolation::Serializable, true), (Isolation::RepeatableRead, false)]
    {
        let store = store();
        set(&store, &[("x", "1"), ("y", "1")]);
        let (a, b) = (begin(&store, isolation), begin(&store, isolation));
        assert_eq!(get(&a, "y").as_deref(), Some("1"));
        assert_eq!(get(&b, "x").as_deref(), Some("1"));
        a.put("x", "0").unwrap();
        b.put("y", "0").unwrap();
        a.commit().unwrap();
        let second = b.commit();
        assert_eq!(matches!(second, Err(KvError::Retry { .. })), conflicts, "{isolation:?}");
    }
}

#[test]
fn phantoms_conflict_but_what_lies_beyond_a_limit_does_not() {
    let store = store();
    set(&store, &[("k1", "1"), ("k2", "1"), ("k5", "1")]);
    let insert = |key: &str| set(&store, &[(key, "new")]);
    let reader = |limit| {
        let txn = begin(&store, Isolation::Serializable);
        let options = ScanOptions { limit, ..ScanOptions::default() };
        let mut scan = txn.scan(span("k", "l"), options).unwrap();
        while scan.next().unwrap().is_some() {}
        drop(scan);
        txn.put("elsewhere", "w").unwrap();
        txn
    };
    let txn = reader(Some(2));
    insert("k3");
    txn.commit().expect("k3 lies behind the two rows that were read");
    let txn = reader(Some(2));
    insert("k15");
    assert!(matches!(txn.commit(), Err(KvError::Retry { .. })), "k15 lies between them");
    let txn = reader(None);
    insert("k9");
    assert!(matches!(txn.commit(), Err(KvError::Retry { .. })), "the whole span was read");
}

#[test]
fn lost_updates_are_refused_at_every_level() {
    for isolation in [Isolation::Serializable, Isolation::RepeatableRead, Isolation::ReadCommitted]
    {
        let store = store();
        set(&store, &[("x", "1")]);
        let txn = begin(&store, isolation);
        assert_eq!(get(&txn, "x").as_deref(), Some("1"));
        set(&store, &[("x", "2")]);
        let savepoint = txn.savepoint();
        assert!(matches!(txn.put("x", "3"), Err(KvError::Retry { .. })), "{isolation:?}");
        txn.rollback_to(savepoint);
        assert!(txn.put("x", "3").is_err(), "a second try in the same view fails, too");
        if isolation == Isolation::ReadCommitted {
            txn.begin_statement().unwrap();
            assert_eq!(get(&txn, "x").as_deref(), Some("2"));
        } else {
            txn.restart().unwrap();
        }
        txn.put("x", "3").unwrap();
        txn.commit().unwrap();
    }
}

#[test]
fn a_span_delete_conflicts_with_rows_that_came_meanwhile() {
    let store = store();
    set(&store, &[("f1", "1")]);
    let deleter = begin(&store, Isolation::RepeatableRead);
    deleter.get(b"f1").unwrap();
    set(&store, &[("f2", "1")]);
    assert!(matches!(deleter.delete_span(&span("f", "g")), Err(KvError::Retry { .. })));
    deleter.restart().unwrap();
    deleter.delete_span(&span("f", "g")).unwrap();
    let inserter = begin(&store, Isolation::RepeatableRead);
    let locked = inserter.lock(b"f3", LockMode::Exclusive, Wait::SkipLocked).unwrap();
    assert_eq!(locked, Locked::Skipped, "the span is locked as a whole");
    assert!(matches!(
        inserter.lock(b"f3", LockMode::Shared, Wait::NoWait),
        Err(KvError::LockNotAvailable)
    ));
    deleter.commit().unwrap();
    assert!(matches!(inserter.put("f3", "1"), Err(KvError::Retry { .. })), "covered by the delete");
}

/// What one try has read can be held by the next, so that this one is not overtaken.
#[test]
fn a_later_try_holds_what_an_earlier_one_has_read() {
    let store = store();
    set(&store, &[("f1", "1"), ("f2", "1"), ("x", "1")]);
    let first = begin(&store, Isolation::Serializable);
    scan(&first, "f", "g", false);
    get(&first, "x");
    first.put("y", "1").unwrap();
    assert!(first.reads_so_far(1).is_none(), "more than one");
    let read = first.reads_so_far(2).expect("a span and a key");
    set(&store, &[("f3", "1")]);
    assert!(matches!(first.commit(), Err(KvError::Retry { .. })));

    let second = begin(&store, Isolation::Serializable);
    set(&store, &[("f4", "1")]);
    second.hold_reads(&read).unwrap();
    second.restart().unwrap();
    let other = begin(&store, Isolation::Serializable);
    let locked = |key: &str, mode| other.lock(key.as_bytes(), mode, Wait::SkipLocked).unwrap();
    assert_eq!(locked("f5", LockMode::NoKeyExclusive), Locked::Skipped, "of the span");
    assert_eq!(locked("x", LockMode::Exclusive), Locked::Skipped, "of the key");
    assert_eq!(locked("x1", LockMode::Exclusive), Locked::Yes, "beside it");
    assert_eq!(locked("f1", LockMode::KeyShare), Locked::Yes, "who refers to it");
    assert_eq!(scan(&second, "f", "g", false), "f1=1 f2=1 f3=1 f4=1");
    second.put_same_key("f1", "2").unwrap();
    second.commit().unwrap();
}

#[test]
fn a_deadlock_has_one_victim() {
    let store = store();
    set(&store, &[("x", "1"), ("y", "1")]);
    let (a, b) =
        (begin(&store, Isolation::RepeatableRead), begin(&store, Isolation::RepeatableRead));
    a.put("x", "a").unwrap();
    b.put("y", "b").unwrap();
    let other = Arc::clone(&a);
    let waiting = std::thread::Builder::new().spawn(move || other.put("y", "a")).unwrap();
    while !store.describe_locks().lines.contains("wanted") {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(matches!(b.put("x", "b"), Err(KvError::Deadlock { .. })));
    b.rollback();
    waiting.join().unwrap().expect("the other one goes on");
    a.commit().unwrap();
    assert_eq!(store.describe_locks().lines, "", "nothing is left locked");
}

#[test]
fn waiting_can_be_cancelled_and_leaves_nothing_behind() {
    let store = store();
    let holder = begin(&store, Isolation::Serializable);
    holder.put("x", "1").unwrap();
    let cancel = Arc::new(AtomicBool::new(false));
    let options = TxnOptions { cancel: Some(Arc::clone(&cancel)), ..TxnOptions::default() };
    let waiter = store.begin(options).unwrap();
    let thread = std::thread::Builder::new().spawn(move || waiter.put("x", "2")).unwrap();
    while !store.describe_locks().lines.contains("wanted") {
        std::thread::sleep(Duration::from_millis(1));
    }
    cancel.store(true, Ordering::Relaxed);
    assert!(matches!(thread.join().unwrap(), Err(KvError::Canceled)));
    holder.commit().unwrap();
    assert_eq!(store.describe_locks().lines, "");
}

#[test]
fn the_past_can_be_read_within_the_window_only() {
    let clock = Arc::new(ManualClock::at_micros(1_000_000_000));
    let mut options = StoreOptions::new(Arc::new(MemFs::new()), Path::new("db"), clock.clone());
    options.gc_window = Duration::from_secs(100);
    let store = Store::open(options).unwrap();
    set(&store.coordinator(), &[("x", "old")]);
    let then = store.now();
    clock.advance(Duration::from_secs(50));
    set(&store.coordinator(), &[("x", "new")]);
    store.advance_gc().unwrap();
    let at = |ts| store.begin(TxnOptions { as_of: Some(ts), ..TxnOptions::default() });
    let past = at(then).unwrap();
    assert_eq!(get(&past, "x").as_deref(), Some("old"));
    assert!(matches!(past.put("x", "rewritten"), Err(KvError::ReadOnly)));
    clock.advance(Duration::from_secs(100));
    store.advance_gc().unwrap();
    assert_eq!(
        get(&past, "x").as_deref(),
        Some("old"),
        "a running transaction holds the threshold"
    );
    drop(past);
    store.advance_gc().unwrap();
    assert!(matches!(at(then), Err(KvError::TimestampOutOfWindow { .. })));
    let future = Store::timestamp_at(u64::MAX >> 13);
    assert!(matches!(at(future), Err(KvError::TimestampOutOfWindow { .. })));
}

/// Threads move units between cells under SERIALIZABLE. Each reads all cells by a scan, and writes
/// "sum of all cells" to a log cell: any anomaly shows as a sum other than the constant one.
#[test]
fn concurrent_serializable_transfers_keep_the_sum() {
    const CELLS: u64 = 6;
    let store = store();
    let rows: Vec<(String, String)> = (0..CELLS).map(|i| (format!("c{i}"), "100".into())).collect();
    let borrowed: Vec<(&str, &str)> = rows.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    set(&store, &borrowed);
    let threads: Vec<_> = (0..4u64)
        .map(|t| {
            let store = Arc::clone(&store);
            std::thread::Builder::new().spawn(move || transfers(&store, t)).unwrap()
        })
        .collect();
    let commits: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    assert!(commits > 100, "{commits} commits");
    let txn = begin(&store, Isolation::Serializable);
    assert_eq!(sum(&txn), 600);
}

fn sum(txn: &Arc<Txn>) -> i64 {
    let text = scan(txn, "c", "d", false);
    text.split(' ').map(|cell| cell.split_once('=').unwrap().1.parse::<i64>().unwrap()).sum()
}

fn transfers(store: &Arc<Coordinator>, seed: u64) -> u64 {
    let mut random = Random::seeded(seed);
    let mut commits = 0;
    for _ in 0..150 {
        let txn = begin(store, Isolation::Serializable);
        let (from, to) = (random.below(6), random.below(6));
        let attempt = || -> Result<(), KvError> {
            assert_eq!(sum(&txn), 600, "a consistent view");
            if from == to {
                return Ok(());
            }
            for (cell, delta) in [(from, -1), (to, 1)] {
                let key = format!("c{cell}");
                let value: i64 = get(&txn, &key).unwrap().parse().unwrap();
                txn.put(key, (value + delta).to_string())?;
            }
            txn.commit().map(drop)
        };
        match attempt() {
            Ok(()) => commits += 1,
            Err(KvError::Retry { .. } | KvError::Deadlock { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    }
    commits
}

#[test]
fn a_statement_runs_again_if_earlier_reads_still_hold() {
    let store = store();
    set(&store, &[("a", "1"), ("b", "1"), ("c", "1")]);
    let txn = begin(&store, Isolation::Serializable);
    assert_eq!(get(&txn, "a").as_deref(), Some("1"));
    txn.put("x", "mine").unwrap();
    set(&store, &[("b", "2")]);
    // The statement reads b, which is old by now, and wants to write it.
    let mark = txn.begin_retryable();
    assert_eq!(get(&txn, "b").as_deref(), Some("1"));
    txn.put("y", "taken back").unwrap();
    assert!(matches!(txn.put("b", "3"), Err(KvError::Retry { .. })));
    txn.retry_statement(mark).unwrap();
    assert_eq!(get(&txn, "b").as_deref(), Some("2"));
    assert_eq!((get(&txn, "x").as_deref(), get(&txn, "y")), (Some("mine"), None));
    txn.put("b", "3").unwrap();
    txn.commit().unwrap();
    let after = begin(&store, Isolation::Serializable);
    assert_eq!(scan(&after, "a", "z", false), "a=1 b=3 c=1 x=mine");
}

#[test]
fn a_statement_does_not_run_again_over_reads_that_changed() {
    for (isolation, scanned) in [
        (Isolation::Serializable, false),
        (Isolation::Serializable, true),
        (Isolation::RepeatableRead, false),
    ] {
        let store = store();
        set(&store, &[("a", "1"), ("b", "1")]);
        let txn = begin(&store, isolation);
        if scanned {
            assert_eq!(scan(&txn, "a", "b", false), "a=1");
        } else {
            assert_eq!(get(&txn, "a").as_deref(), Some("1"));
        }
        let mark = txn.begin_retryable();
        set(&store, &[("a", "2"), ("b", "2")]);
        assert!(matches!(txn.put("b", "3"), Err(KvError::Retry { .. })));
        assert!(matches!(txn.retry_statement(mark), Err(KvError::Retry { .. })));
    }
    // An open scan would report later what it read at the old timestamp.
    let store = store();
    set(&store, &[("a", "1"), ("b", "1")]);
    let txn = begin(&store, Isolation::Serializable);
    let mut open = txn.scan(span("a", "b"), ScanOptions::default()).unwrap();
    open.next().unwrap();
    let mark = txn.begin_retryable();
    set(&store, &[("b", "2")]);
    assert!(matches!(txn.put("b", "3"), Err(KvError::Retry { .. })));
    assert!(txn.retry_statement(mark).is_err());
    drop(open);
    txn.retry_statement(mark).unwrap();
}
