//! Locks: who waits for whom, what a wait costs, what savepoints and ends release.
#![allow(clippy::disallowed_types, reason = "a test may panic while it holds a lock")]

mod place;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use braid_env::clock::{ManualClock, WallClock};
use braid_env::fs::MemFs;
use braid_kv::{
    Coordinator, Isolation, KeySpan, KvError, LockMode, Locked, ReadMode, ScanOptions, Store,
    StoreOptions, Txn, TxnOptions, Wait,
};

const LEVELS: [Isolation; 3] =
    [Isolation::Serializable, Isolation::RepeatableRead, Isolation::ReadCommitted];

fn store() -> Arc<Coordinator> {
    place::coordinator()
}

fn begin(store: &Arc<Coordinator>, isolation: Isolation) -> Arc<Txn> {
    store.begin(TxnOptions { isolation, ..TxnOptions::default() }).expect("begins")
}

fn set(store: &Arc<Coordinator>, key: &str, value: &str) {
    let txn = begin(store, Isolation::Serializable);
    txn.put(key.to_string(), value.to_string()).expect("puts");
    txn.commit().expect("commits");
}

fn span(start: &str, end: &str) -> KeySpan {
    KeySpan::new(start.as_bytes().to_vec(), end.as_bytes().to_vec())
}

/// Runs `f` on a thread and returns when it waits for a lock.
fn waiting<T: Send + 'static>(
    store: &Arc<Coordinator>,
    f: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    let before = store.describe_locks().waiting;
    #[expect(clippy::disallowed_methods, reason = "a test of real threads")]
    let handle = std::thread::spawn(f);
    while store.describe_locks().waiting == before {
        assert!(!handle.is_finished(), "it should have waited");
        std::thread::yield_now();
    }
    handle
}

#[test]
fn a_reference_does_not_wait_for_an_update_of_its_parent() {
    let store = store();
    set(&store, "parent", "1");
    for isolation in LEVELS {
        let (a, b) = (begin(&store, isolation), begin(&store, isolation));
        a.put_same_key("parent", "2").unwrap();
        b.hold(b"parent", LockMode::KeyShare).unwrap();
        // Both directions, so that a child's insert and its parent's update never deadlock.
        let c = begin(&store, isolation);
        c.hold(b"parent", LockMode::KeyShare).unwrap();
        let locked = b.lock(b"parent", LockMode::Exclusive, Wait::NoWait);
        assert!(matches!(locked, Err(KvError::LockNotAvailable)));
    }
}

#[test]
fn latest_reads_see_what_the_view_does_not() {
    let store = store();
    set(&store, "a", "1");
    for isolation in LEVELS {
        let txn = begin(&store, isolation);
        assert!(txn.get(b"b").unwrap().is_none());
        set(&store, "b", "2");
        assert!(txn.get(b"b").unwrap().is_none(), "{isolation:?}");
        assert_eq!(txn.get_as(b"b", ReadMode::Latest).unwrap().unwrap(), "2");
        let options = ScanOptions { mode: ReadMode::Latest, ..ScanOptions::default() };
        let mut scan = txn.scan(span("a", "z"), options).unwrap();
        assert_eq!(scan.next().unwrap().unwrap().0, "a");
        assert_eq!(scan.next().unwrap().unwrap().0, "b");
        let cleaner = begin(&store, Isolation::Serializable);
        cleaner.delete("b").unwrap();
        cleaner.commit().unwrap();
        assert!(txn.get_as(b"b", ReadMode::Latest).unwrap().is_none());
    }
}

#[test]
fn what_an_open_scan_has_read_is_validated() {
    let store = store();
    set(&store, "a", "1");
    let txn = begin(&store, Isolation::Serializable);
    let mut scan = txn.scan(span("a", "m"), ScanOptions::default()).unwrap();
    scan.next().unwrap();
    set(&store, "a", "2");
    txn.put("x", "1").unwrap();
    assert!(matches!(txn.commit(), Err(KvError::Retry { .. })), "the scan is still open");
}

#[test]
fn a_holder_passes_those_who_wait_for_it() {
    let store = store();
    let a = begin(&store, Isolation::Serializable);
    a.put("f/1", "x").unwrap();
    let b = begin(&store, Isolation::Serializable);
    let waiter = waiting(&store, move || b.delete_span(&span("f/", "f0")).map(|_| ()));
    // Had it to queue behind b, which waits for it, that would be a deadlock.
    a.delete_span(&span("f/", "f0")).unwrap();
    a.commit().unwrap();
    assert!(matches!(waiter.join().unwrap(), Err(KvError::Retry { .. })));
    assert_eq!(store.describe_locks().lines, "");
}

#[test]
fn a_writer_in_a_family_goes_on_while_others_wait_for_the_family() {
    let store = store();
    let a = begin(&store, Isolation::Serializable);
    a.put("f/1", "x").unwrap();
    let (b, c) = (begin(&store, Isolation::Serializable), begin(&store, Isolation::Serializable));
    let family = waiting(&store, move || b.delete_span(&span("f/", "f0")).map(|_| ()));
    // Waits behind the family's deleter, not for a lock.
    let row = waiting(&store, move || c.put("f/2", "y"));
    a.put("f/3", "x").unwrap();
    a.put("f/2", "x").unwrap();
    a.commit().unwrap();
    assert!(matches!(family.join().unwrap(), Err(KvError::Retry { .. })));
    assert!(matches!(row.join().unwrap(), Err(KvError::Retry { .. })));
    assert_eq!(store.describe_locks().lines, "");
}

#[test]
fn rolling_back_to_a_savepoint_releases_later_locks() {
    let store = store();
    for isolation in LEVELS {
        let (a, b) = (begin(&store, isolation), begin(&store, isolation));
        a.put("kept", "1").unwrap();
        let savepoint = a.savepoint();
        a.put("k", "1").unwrap();
        a.put("kept", "2").unwrap();
        a.delete_span(&span("s", "t")).unwrap();
        let skipped = b.lock(b"k", LockMode::Shared, Wait::SkipLocked).unwrap();
        assert_eq!(skipped, Locked::Skipped);
        a.rollback_to(savepoint);
        assert_eq!(b.lock(b"k", LockMode::Exclusive, Wait::NoWait).unwrap(), Locked::Yes);
        assert_eq!(b.lock(b"s1", LockMode::Exclusive, Wait::NoWait).unwrap(), Locked::Yes);
        assert_eq!(
            b.lock(b"kept", LockMode::Shared, Wait::SkipLocked).unwrap(),
            Locked::Skipped,
            "it was locked before the savepoint"
        );
    }
}

#[test]
fn a_lock_on_a_span_takes_the_place_of_those_on_its_keys() {
    let store = store();
    for isolation in LEVELS {
        let (a, b) = (begin(&store, isolation), begin(&store, isolation));
        a.put("other", "1").unwrap();
        for key in ["k1", "k2", "k3"] {
            a.put(key, "1").unwrap();
        }
        let savepoint = a.savepoint();
        // More than those that the span will stand for: else it is kept wherever it stands.
        for key in ["k4", "z", "z2", "z3", "z4"] {
            a.put(key, "1").unwrap();
        }
        let before = store.describe_locks().locks.len();
        a.lock_instead(&span("k", "l")).unwrap();
        a.lock_instead(&span("k", "l")).unwrap();
        assert_eq!(store.describe_locks().locks.len(), before - 3, "one for four");
        a.put("k5", "1").unwrap();
        assert_eq!(store.describe_locks().locks.len(), before - 3, "it is locked already");
        let taken = |key: &str| {
            let locked = b.lock(key.as_bytes(), LockMode::Exclusive, Wait::SkipLocked).unwrap();
            locked == Locked::Skipped
        };
        assert!(["k1", "k4", "k9", "other", "z"].into_iter().all(taken));
        // What was locked before the savepoint stays so: with it, all of the span.
        a.rollback_to(savepoint);
        assert!(["k1", "k3", "k9", "other"].into_iter().all(taken));
        a.commit().unwrap();
        for key in ["k1", "k3", "k9", "other", "z"] {
            b.hold(key.as_bytes(), LockMode::Exclusive).unwrap();
        }
    }
}

#[test]
fn what_was_read_under_a_released_lock_is_validated() {
    let store = store();
    set(&store, "k", "1");
    let a = begin(&store, Isolation::Serializable);
    let savepoint = a.savepoint();
    a.lock(b"k", LockMode::Exclusive, Wait::Block).unwrap();
    assert!(a.get(b"k").unwrap().is_some());
    a.rollback_to(savepoint);
    set(&store, "k", "2");
    a.put("other", "1").unwrap();
    assert!(matches!(a.commit(), Err(KvError::Retry { .. })));
}

#[test]
fn waiting_for_a_key_keeps_no_lock() {
    let store = store();
    set(&store, "k", "1");
    let a = begin(&store, Isolation::ReadCommitted);
    a.delete("k").unwrap();
    let b = begin(&store, Isolation::ReadCommitted);
    let b2 = b.clone();
    let waiter = waiting(&store, move || b2.await_key(b"k", LockMode::KeyShare));
    a.rollback();
    waiter.join().unwrap().unwrap();
    assert_eq!(store.describe_locks().lines, "");
    let c = begin(&store, Isolation::ReadCommitted);
    c.delete("k").unwrap();
    let b2 = b.clone();
    let waiter = waiting(&store, move || b2.await_key(b"k", LockMode::KeyShare));
    c.commit().unwrap();
    assert!(matches!(waiter.join().unwrap(), Err(KvError::Retry { .. })), "it has changed");
    assert_eq!(store.describe_locks().lines, "");
}

#[test]
fn those_who_wait_for_one_key_are_served_in_order_of_arrival() {
    let store = store();
    let first = begin(&store, Isolation::ReadCommitted);
    first.hold(b"hot", LockMode::NoKeyExclusive).unwrap();
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let handles: Vec<_> = (0..50)
        .map(|n| {
            let (txn, order) = (begin(&store, Isolation::ReadCommitted), order.clone());
            waiting(&store, move || {
                txn.hold(b"hot", LockMode::NoKeyExclusive).unwrap();
                order.lock().unwrap().push(n);
                txn.rollback();
            })
        })
        .collect();
    // Whoever needs only the key does not queue at all.
    begin(&store, Isolation::ReadCommitted).hold(b"hot", LockMode::KeyShare).unwrap();
    first.rollback();
    for handle in handles {
        handle.join().unwrap();
    }
    assert_eq!(*order.lock().unwrap(), (0..50).collect::<Vec<_>>());
    assert_eq!(store.describe_locks().lines, "");
}

#[test]
fn a_lock_timeout_gives_up_and_lets_those_behind_go_on() {
    let store = store();
    let holder = begin(&store, Isolation::ReadCommitted);
    holder.hold(b"k", LockMode::Shared).unwrap();
    let options = TxnOptions {
        isolation: Isolation::ReadCommitted,
        lock_timeout: Some(Duration::from_millis(60)),
        ..TxnOptions::default()
    };
    let writer = store.begin(options).unwrap();
    let writer = waiting(&store, move || writer.hold(b"k", LockMode::Exclusive));
    let reader = begin(&store, Isolation::ReadCommitted);
    let reader = waiting(&store, move || reader.hold(b"k", LockMode::Shared));
    assert!(matches!(writer.join().unwrap(), Err(KvError::LockTimeout)));
    reader.join().unwrap().unwrap();
}

#[test]
fn deadlocks_over_keys_and_spans_are_found() {
    let store = store();
    let (a, b) = (begin(&store, Isolation::Serializable), begin(&store, Isolation::Serializable));
    a.put("x/1", "1").unwrap();
    b.put("y/1", "1").unwrap();
    let waiter = {
        let a = a.clone();
        waiting(&store, move || a.delete_span(&span("y/", "y0")).map(|_| ()))
    };
    let error = b.delete_span(&span("x/", "x0")).unwrap_err();
    assert!(matches!(error, KvError::Deadlock { .. }), "{error}");
    b.rollback();
    waiter.join().unwrap().unwrap();
    a.commit().unwrap();
    // Two who share a key and both want to write it.
    let (a, b) = (begin(&store, Isolation::Serializable), begin(&store, Isolation::Serializable));
    a.hold(b"k", LockMode::Shared).unwrap();
    b.hold(b"k", LockMode::Shared).unwrap();
    let waiter = {
        let a = a.clone();
        waiting(&store, move || a.put("k", "a"))
    };
    assert!(matches!(b.put("k", "b"), Err(KvError::Deadlock { .. })));
    b.rollback();
    waiter.join().unwrap().unwrap();
}

/// Two that ask at the same time once got one number.
#[test]
fn unique_numbers_are_unique_whoever_asks_at_the_same_time() {
    let fs = Arc::new(MemFs::new());
    let store = Store::open(StoreOptions::new(fs, "db", Arc::new(WallClock))).unwrap();
    let ask = || (0..50_000).map(|_| store.unique_number()).collect::<Vec<i64>>();
    let mut all: Vec<i64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let asked = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), asked);
}

#[test]
fn unique_numbers_survive_a_clock_that_was_set_back() {
    let (fs, clock) = (Arc::new(MemFs::new()), Arc::new(ManualClock::at_micros(1_000_000_000)));
    let open = |clock: &Arc<ManualClock>| {
        Store::open(StoreOptions::new(fs.clone(), Path::new("db"), clock.clone())).unwrap()
    };
    let store = open(&clock);
    let mut last = 0;
    for _ in 0..10_000 {
        let n = store.unique_number();
        assert!(n > last);
        last = n;
    }
    set(&store.coordinator(), "k", "1");
    // Moves the gc threshold far beyond the newest commit.
    clock.set_micros(900_000_000_000);
    store.set_gc_window(Duration::from_secs(1));
    store.now();
    store.advance_gc().unwrap();
    drop(store);
    clock.set_micros(1_000);
    let store = open(&clock);
    assert!(store.unique_number() > last);
    set(&store.coordinator(), "k", "2");
}
