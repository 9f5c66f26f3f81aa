//! What was shown survives: a commit that is visible but not durable is read, and settling waits.
//!
//! The file system holds back syncs of the wal: a writer's commit stays visible and not durable for
//! as long as the test wants. `settle` must not return before the sync is let through if, and only
//! if, what was read depends on it.
#![allow(clippy::disallowed_types, reason = "a test may panic while it holds a lock")]

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_env::clock::WallClock;
use braid_env::fs::{CrashPolicy, FileSystem, MemFs};
use braid_env::random::Random;
use braid_kv::{KeySpan, KvError, ScanOptions, Shown, Store, StoreOptions, Txn, TxnOptions};
use support::{Gate, GatedFs};

struct World {
    mem: MemFs,
    gate: Arc<Gate>,
    store: Arc<Store>,
}

fn open(fs: Arc<dyn FileSystem>) -> Arc<Store> {
    Store::open(StoreOptions::new(fs, Path::new("db"), Arc::new(WallClock))).expect("opens")
}

fn world() -> World {
    let (mem, gate) = (MemFs::new(), Arc::new(Gate::default()));
    let (syncs, reads) = (gate.clone(), Arc::default());
    let fs = GatedFs { fs: mem.clone(), of_files: ".wal", syncs, reads };
    let store = open(Arc::new(fs));
    let world = World { mem, gate, store };
    let txn = world.begin(None, false);
    for key in ["a", "b", "c", "m"] {
        txn.put(key, "old").unwrap();
    }
    txn.commit().unwrap();
    world
}

impl World {
    fn begin(&self, shown: Option<&Arc<Shown>>, async_commit: bool) -> Arc<Txn> {
        let shown = shown.cloned();
        let options = TxnOptions { shown, async_commit, ..TxnOptions::default() };
        self.store.begin(options).expect("begins")
    }

    /// Commits "b" anew, deletes "c", erases ["m", "n"), and does not become durable. Meanwhile
    /// `body` runs; the gate is open again afterwards.
    fn with_open_commit(&self, body: impl FnOnce()) {
        self.gate.shut();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let txn = self.begin(None, false);
                txn.put("b", "new").unwrap();
                txn.delete("c").unwrap();
                txn.delete_span(&KeySpan::new("m", "n")).unwrap();
                txn.commit().unwrap();
            });
            self.gate.wait_for_one();
            body();
            self.gate.open();
        });
    }

    /// Reads while a commit is open; whether settling then waits for it.
    fn waits(&self, read: impl Fn(&Arc<Txn>) + Sync) -> bool {
        let mut waited = false;
        self.with_open_commit(|| {
            let shown = Arc::new(Shown::default());
            let txn = self.begin(Some(&shown), false);
            read(&txn);
            let settled = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let (shown, settled, store) = (&shown, &settled, &self.store);
                scope.spawn(move || {
                    shown.settle(&**store).unwrap();
                    settled.store(true, Ordering::SeqCst);
                });
                for _ in 0..20 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                waited = !settled.load(Ordering::SeqCst);
                self.gate.open();
            });
            assert!(!waited || self.holds_new_row(), "settled before the commit was durable");
        });
        waited
    }

    /// Whether the new row is there after a power failure now.
    fn holds_new_row(&self) -> bool {
        let left = self.mem.crash_clone(&mut Random::seeded(1), CrashPolicy::LoseAll);
        let txn = open(Arc::new(left)).begin(TxnOptions::default()).unwrap();
        txn.get(b"b").unwrap().is_some_and(|value| value == "new")
    }
}

fn scan(txn: &Arc<Txn>, start: &str, end: &str, options: ScanOptions) -> Vec<String> {
    let span = KeySpan::new(start.as_bytes().to_vec(), end.as_bytes().to_vec());
    let mut scan = txn.scan(span, options).unwrap();
    let mut keys = Vec::new();
    while let Some((key, _)) = scan.next().unwrap() {
        keys.push(key.escape_ascii().to_string());
    }
    keys
}

#[test]
fn what_was_read_before_it_is_durable_is_not_shown_before_it_is() {
    let all = ScanOptions::default;
    type Case = (&'static str, bool, Box<dyn Fn(&Arc<Txn>) + Sync>);
    let cases: Vec<Case> = vec![
        ("nothing", false, Box::new(|_| {})),
        ("an old row", false, Box::new(|txn| drop(txn.get(b"a").unwrap().unwrap()))),
        ("a new row", true, Box::new(|txn| assert_eq!(txn.get(b"b").unwrap().unwrap(), "new"))),
        ("a deleted row", true, Box::new(|txn| assert!(txn.get(b"c").unwrap().is_none()))),
        ("an erased row", true, Box::new(|txn| assert!(txn.get(b"m").unwrap().is_none()))),
        ("a row that never was", false, Box::new(|txn| drop(txn.get(b"x").unwrap()))),
        ("old rows", false, Box::new(move |txn| assert_eq!(scan(txn, "", "b", all()), ["a"]))),
        ("all rows", true, Box::new(move |txn| assert_eq!(scan(txn, "", "z", all()).len(), 2))),
        ("no rows any more", true, {
            Box::new(move |txn| assert!(scan(txn, "c", "z", all()).is_empty()))
        }),
        ("no rows ever", false, {
            Box::new(move |txn| assert!(scan(txn, "p", "z", all()).is_empty()))
        }),
        ("the first row", false, {
            let one = || ScanOptions { limit: Some(1), ..ScanOptions::default() };
            Box::new(move |txn| assert_eq!(scan(txn, "", "z", one()), ["a"]))
        }),
        ("the last row", true, {
            let one = || ScanOptions { limit: Some(1), reverse: true, ..ScanOptions::default() };
            Box::new(move |txn| assert_eq!(scan(txn, "", "z", one()), ["b"]))
        }),
    ];
    for (what, expected, read) in cases {
        let world = world();
        assert_eq!(world.waits(&read), expected, "{what}");
    }
}

/// A portal that is suspended has handed out rows, and its scan goes on.
#[test]
fn an_open_scan_counts_before_it_ends() {
    let world = world();
    let held = Mutex::new(None);
    let waited = world.waits(|txn| {
        let mut scan = txn.scan(KeySpan::new("", "z"), ScanOptions::default()).unwrap();
        assert!(scan.next().unwrap().is_some());
        *held.lock().unwrap() = Some(scan);
    });
    assert!(waited);
}

/// `synchronous_commit = off`: nobody waits, neither the writer nor who reads it.
#[test]
fn nobody_waits_for_a_commit_that_its_writer_does_not_wait_for() {
    let world = world();
    world.gate.shut();
    let txn = world.begin(None, true);
    txn.put("b", "new").unwrap();
    txn.commit().unwrap();
    let shown = Arc::new(Shown::default());
    let txn = world.begin(Some(&shown), false);
    assert_eq!(txn.get(b"b").unwrap().unwrap(), "new");
    shown.settle(&*world.store).unwrap();
    world.gate.open();
}

/// The disk fails: what was seen is not shown, now or later.
#[test]
fn what_will_never_be_durable_is_never_shown() {
    let mem = MemFs::new();
    let faulty = braid_env::fs::FaultFs::new(Arc::new(mem), 1);
    let store = open(Arc::new(faulty.clone()));
    let begin = |shown: &Arc<Shown>| {
        let options = TxnOptions { shown: Some(shown.clone()), ..TxnOptions::default() };
        store.begin(options).unwrap()
    };
    faulty.add_rule("sync(.wal) -> EIO").unwrap();
    let shown = Arc::new(Shown::default());
    let txn = begin(&shown);
    txn.put("a", "1").unwrap();
    assert!(matches!(txn.commit(), Err(KvError::Engine(_))));
    let txn = begin(&shown);
    assert!(txn.get(b"a").unwrap().is_some(), "it is visible");
    assert!(matches!(shown.settle(&*store), Err(KvError::Engine(_))));
}
