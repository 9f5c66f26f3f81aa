//! Transactions whose writes do not fit into memory: they read, go back and commit as if all of it
//! were there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_env::clock::WallClock;
use braid_env::fs::{CrashPolicy, FaultFs, FileSystem, MemFs};
use braid_env::random::Random;
use braid_kv::{
    Isolation, KeySpan, KvError, ReadMode, SavepointId, ScanOptions, Store, StoreOptions, Txn,
    TxnOptions,
};
use bytes::Bytes;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Row `k..` has class 1, what lies inside of it (behind a slash) class 2.
fn class_of(key: &[u8]) -> u8 {
    if key.contains(&b'/') { 2 } else { 1 }
}

fn open(fs: Arc<dyn FileSystem>) -> Arc<Store> {
    let mut options = StoreOptions::new(fs, Path::new("db"), Arc::new(WallClock));
    options.engine.row_class = class_of;
    Store::open(options).expect("opens")
}

fn begin(store: &Arc<Store>, spill: usize) -> Arc<Txn> {
    let spill = Some(spill);
    store.begin(TxnOptions { batch: 50, spill, ..TxnOptions::default() }).expect("begins")
}

fn random_key(random: &mut Random) -> Vec<u8> {
    let row = random.below(60);
    match random.below(3) {
        0 => format!("k{row:02}").into_bytes(),
        _ => format!("k{row:02}/{:03}", random.below(50)).into_bytes(),
    }
}

fn random_span(random: &mut Random) -> KeySpan {
    let (a, b) = (random_key(random), random_key(random));
    KeySpan::new(a.clone().min(b.clone()), a.max(b))
}

/// What is left in the folder of loads.
fn files(fs: &dyn FileSystem) -> Vec<String> {
    let folder = Path::new("db/bulk");
    if fs.exists(folder).expect("asks") { fs.list(folder).expect("lists") } else { Vec::new() }
}

/// A transaction beside what it must look like.
struct Twin {
    txn: Arc<Txn>,
    /// All that it sees.
    seen: Model,
    /// Of that, what it has put itself.
    own: Model,
    savepoints: Vec<(SavepointId, Model, Model)>,
}

impl Twin {
    fn write(&mut self, random: &mut Random, n: u64) {
        let key = random_key(random);
        match random.below(12) {
            0 => {
                let span = match random.below(3) {
                    0 => random_span(random),
                    _ => KeySpan::prefix(&key),
                };
                let removed = self.txn.delete_span(&span).expect("deletes");
                let inside = |at: &Vec<u8>| span.contains(at);
                let own = self.own.iter().filter(|(at, _)| inside(at));
                let own: Vec<_> = own.map(|(k, v)| (k.clone(), v.clone())).collect();
                let removed: Vec<_> =
                    removed.iter().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
                assert_eq!(removed, own, "what a span takes of the own rows");
                self.seen.retain(|at, _| !inside(at));
                self.own.retain(|at, _| !inside(at));
            }
            1 | 2 => {
                self.txn.delete(key.clone()).expect("deletes");
                self.seen.remove(&key);
                self.own.remove(&key);
            }
            _ => {
                let value = format!("{n}-{}", "v".repeat(random.below(40) as usize)).into_bytes();
                self.txn.put(key.clone(), value.clone()).expect("puts");
                self.seen.insert(key.clone(), value.clone());
                self.own.insert(key, value);
            }
        }
    }

    fn go_back(&mut self, random: &mut Random) {
        match random.below(6) {
            5 => {
                // A statement of several parts: all read what was there before the first.
                let since = self.txn.savepoint();
                let seen = self.seen.clone();
                for n in 0..random.below(80) {
                    self.write(random, n);
                }
                let now = std::mem::replace(&mut self.seen, seen);
                let past = self.txn.look_back(since).expect("looks back");
                self.look(random);
                drop(past);
                self.seen = now;
                self.look(random);
            }
            0 | 1 => {
                let id = self.txn.savepoint();
                self.savepoints.push((id, self.seen.clone(), self.own.clone()));
            }
            2 if !self.savepoints.is_empty() => {
                let at = random.below(self.savepoints.len() as u64) as usize;
                self.savepoints.truncate(at + 1);
                let (id, seen, own) = self.savepoints[at].clone();
                self.txn.rollback_to(id);
                (self.seen, self.own) = (seen, own);
            }
            3 if !self.savepoints.is_empty() => {
                let at = random.below(self.savepoints.len() as u64) as usize;
                self.savepoints.remove(at);
                self.txn.keep_savepoints(self.savepoints.iter().map(|(id, ..)| *id));
            }
            _ => {
                // A statement that is taken back, and would run again.
                let mark = self.txn.begin_retryable();
                for _ in 0..random.below(60) {
                    self.txn.put(random_key(random), "taken back").expect("puts");
                }
                self.txn.retry_statement(mark).expect("nothing has changed meanwhile");
            }
        }
    }

    fn look(&self, random: &mut Random) {
        let keys: Vec<Bytes> = (0..20).map(|_| random_key(random).into()).collect();
        let got = self.txn.get_many(&keys, ReadMode::Recorded).expect("reads");
        for (key, value) in keys.iter().zip(got) {
            let expected = self.seen.get(key.as_ref()).map(Vec::as_slice);
            assert_eq!(value.as_deref(), expected, "{key:?}");
            assert_eq!(self.txn.get(key).expect("reads").as_deref(), expected, "{key:?}");
        }
        let span = random_span(random);
        let reverse = random.below(2) == 0;
        let classes = [u32::MAX, 1 << 1, 1 << 2][random.below(3) as usize];
        let limit = Some(random.below(60) as usize).filter(|n| *n > 20);
        let options = ScanOptions { reverse, classes, limit, ..ScanOptions::default() };
        let rows = self.seen.range(span.start.to_vec()..span.end.to_vec());
        let rows = rows.filter(|(key, _)| classes & (1 << class_of(key)) != 0);
        let mut expected: Vec<_> = rows.map(|(k, v)| (k.clone(), v.clone())).collect();
        if reverse {
            expected.reverse();
        }
        expected.truncate(limit.unwrap_or(usize::MAX));
        let mut scan = self.txn.scan(span, options).expect("opens");
        let found = std::iter::from_fn(|| scan.next().expect("scans"));
        let found: Vec<_> = found.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        assert_eq!(found, expected, "{options:?}");
    }
}

fn stored(store: &Arc<Store>) -> Model {
    let txn = store.begin(TxnOptions::default()).expect("begins");
    let mut scan = txn.scan(KeySpan::all(), ScanOptions::default()).expect("opens");
    let rows = std::iter::from_fn(|| scan.next().expect("scans"));
    rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

#[test]
fn writes_on_disk_are_what_they_would_be_in_memory() {
    let (mut spilled, mut committed) = (0, 0);
    for seed in 0..60 {
        let mut random = Random::seeded(seed);
        let fs = Arc::new(MemFs::new());
        let store = open(fs.clone());
        let mut model = Model::new();
        for round in 0..5 {
            let txn = begin(&store, 1_500 + random.below(12_000) as usize);
            let (seen, own, savepoints) = (model.clone(), Model::new(), Vec::new());
            let mut twin = Twin { txn, seen, own, savepoints };
            for n in 0..random.below(500) {
                twin.write(&mut random, n);
                if random.below(30) == 0 {
                    twin.go_back(&mut random);
                }
                if random.below(25) == 0 {
                    twin.look(&mut random);
                }
            }
            spilled += usize::from(twin.txn.spilled() > 0);
            if random.below(4) > 0 {
                twin.txn.commit().unwrap_or_else(|e| panic!("seed {seed}, {round}: {e}"));
                model = twin.seen.clone();
                committed += 1;
            }
            drop(twin);
            assert_eq!(files(&*fs), Vec::<String>::new(), "seed {seed}, {round}");
            assert_eq!(stored(&store), model, "seed {seed}, {round}");
            if random.below(3) == 0 {
                store.engine().flush().expect("flushes");
            }
        }
        // What was acknowledged is there after a crash.
        let crashed = fs.crash_clone(&mut random, CrashPolicy::LoseAll);
        drop(store);
        assert_eq!(stored(&open(Arc::new(crashed))), model, "seed {seed} after a crash");
    }
    assert!(spilled > 100 && committed > 100, "{spilled} of {committed} spilled");
}

#[test]
fn memory_does_not_grow_with_what_is_written() {
    let fs = Arc::new(MemFs::new());
    let mut options = StoreOptions::new(fs, Path::new("db"), Arc::new(WallClock));
    options.memory = braid_env::memory::Pool::new(24 << 20);
    let store = Store::open(options).expect("opens");
    let txn = store.begin(TxnOptions::default()).expect("begins");
    // One lock for all.
    let all = KeySpan::new("row", "rox");
    txn.lock_span(&all, braid_kv::LockMode::Exclusive, braid_kv::Wait::Block).expect("locks");
    let value = Bytes::from(vec![b'v'; 900]);
    let key = |n: u32| format!("row {:08}", n.wrapping_mul(2_654_435_761) % 40_009);
    for n in 0..40_000 {
        txn.put(key(n), value.clone()).unwrap_or_else(|e| panic!("row {n}: {e}"));
    }
    assert!(txn.spilled() >= 3, "{} parts", txn.spilled());
    assert!(store.memory().peak() < 16 << 20, "{} bytes", store.memory().peak());
    txn.commit().expect("commits");
    let keys: std::collections::BTreeSet<String> = (0..40_000).map(key).collect();
    assert_eq!(stored(&store).len(), keys.len());
}

/// What must be known of writes on disk is bounded, too: also where each key is long.
#[test]
fn memory_does_not_grow_with_what_lies_on_disk() {
    const SPILL: usize = 1 << 20;
    let store = open(Arc::new(MemFs::new()));
    let txn = begin(&store, SPILL);
    let all = KeySpan::new("row", "rox");
    txn.lock_span(&all, braid_kv::LockMode::Exclusive, braid_kv::Wait::Block).expect("locks");
    let tail = "k".repeat(600);
    let key = |n: u32| format!("row {:08} {tail}", u64::from(n) * 48_271 % 200_003);
    let mut random = Random::seeded(7);
    for n in 0..120_000 {
        txn.put(key(n), n.to_be_bytes().to_vec()).unwrap_or_else(|e| panic!("row {n}: {e}"));
        if n % 1_000 == 999 {
            let some = random.below(u64::from(n)) as u32;
            let found = txn.get(key(some).as_bytes()).expect("reads");
            assert_eq!(found.as_deref(), Some(&some.to_be_bytes()[..]), "{some} of {n}");
            assert_eq!(txn.get(key(199_999 - some % 80_000).as_bytes()).expect("reads"), None);
        }
    }
    assert!(txn.spilled() >= 3, "{} parts", txn.spilled());
    // What is in memory, as much again for directories of what is on disk, and some keys.
    let held = store.memory().used();
    assert!(held < 2 * SPILL + SPILL / 2, "{held} bytes");
    let mut scan = txn.scan(all, ScanOptions { reverse: true, ..ScanOptions::default() });
    let scan = scan.as_mut().expect("opens");
    let mut rows = 0;
    while scan.next().expect("scans").is_some() {
        rows += 1;
    }
    assert_eq!(rows, 120_000);
}

/// What counts as much follows what the node has to give at present, not what it was made for.
#[test]
fn where_the_node_has_little_to_give_few_locks_are_many() {
    let mut options =
        StoreOptions::new(Arc::new(MemFs::new()), Path::new("db"), Arc::new(WallClock));
    options.memory = braid_env::memory::Pool::new(32 << 20);
    let store = Store::open(options).expect("opens");
    let lock = |txn: &Txn, count: usize| {
        for n in 0..count {
            let key = format!("{n:01000}");
            txn.hold(key.as_bytes(), braid_kv::LockMode::Exclusive).expect("there is room");
        }
        txn.holds_many_locks()
    };
    let txn = store.begin(TxnOptions::default()).expect("begins");
    assert!(!lock(&txn, 2_000), "2 MB of 32 are few");
    txn.rollback();
    // Nobody has counted most of it: a quarter is left.
    store.memory().note_resident(32 << 20, 0);
    let txn = store.begin(TxnOptions::default()).expect("begins");
    assert!(!lock(&txn, 100));
    assert!(lock(&txn, 2_500), "more than a quarter of 8 MB");
    for n in 0..20_000 {
        txn.put(format!("{n:05}"), vec![b'v'; 1_000]).expect("it goes to disk in time");
    }
    assert!(txn.spilled() > 1);
}

#[test]
fn a_full_disk_leaves_what_was_written_as_it_was() {
    for nth in 1..6 {
        let disk = Arc::new(MemFs::new());
        let fs = Arc::new(FaultFs::new(disk.clone(), 1));
        let store = open(fs.clone());
        let txn = begin(&store, 2_000);
        let mut random = Random::seeded(nth);
        let mut twin = Twin { txn, seen: Model::new(), own: Model::new(), savepoints: Vec::new() };
        fs.add_rule(&format!("write(.own) nth={nth} -> ENOSPC")).expect("a rule");
        let mut failed = None;
        for n in 0..400 {
            if n % 7 == 0 {
                let id = twin.txn.savepoint();
                let state = (id, twin.seen.clone(), twin.own.clone());
                twin.savepoints = twin.savepoints.into_iter().rev().take(2).rev().collect();
                twin.savepoints.push(state);
                twin.txn.keep_savepoints(twin.savepoints.iter().map(|(id, ..)| *id));
            }
            let key = random_key(&mut random);
            match twin.txn.put(key.clone(), n.to_string()) {
                Ok(()) => {
                    twin.seen.insert(key.clone(), n.to_string().into_bytes());
                    twin.own.insert(key, n.to_string().into_bytes());
                }
                Err(KvError::Engine(braid_lsm::Error::DiskFull)) => {
                    failed = Some(n);
                    break;
                }
                Err(e) => panic!("{e}"),
            }
        }
        assert!(failed.is_some(), "the disk was never full");
        twin.look(&mut random);
        let (id, seen, own) = twin.savepoints[1].clone();
        twin.txn.rollback_to(id);
        (twin.seen, twin.own) = (seen, own);
        twin.look(&mut random);
        for n in 0..200 {
            twin.write(&mut random, n);
        }
        twin.look(&mut random);
        twin.txn.commit().expect("commits");
        assert_eq!(stored(&store), twin.seen, "{nth}");
        assert_eq!(files(&*disk), Vec::<String>::new());
    }
}

#[test]
fn a_cancel_leaves_what_was_written_as_it_was() {
    let store = open(Arc::new(MemFs::new()));
    let stop = Arc::new(AtomicBool::new(false));
    let (cancel, spill) = (Some(stop.clone()), Some(2_000));
    let txn = store.begin(TxnOptions { cancel, spill, ..TxnOptions::default() }).expect("begins");
    let mut twin = Twin { txn, seen: Model::new(), own: Model::new(), savepoints: Vec::new() };
    let mut random = Random::seeded(8);
    for n in 0..200 {
        twin.write(&mut random, n);
    }
    stop.store(true, Ordering::SeqCst);
    let mut refused = 0;
    for n in 0..40 {
        let key = format!("k{n:02}").into_bytes();
        match twin.txn.put(key.clone(), "late") {
            Ok(()) => {
                twin.seen.insert(key.clone(), b"late".to_vec());
                twin.own.insert(key, b"late".to_vec());
            }
            Err(KvError::Canceled) => refused += 1,
            Err(e) => panic!("{e}"),
        }
    }
    assert!(refused > 0, "nothing had to go to disk");
    stop.store(false, Ordering::SeqCst);
    for n in 0..200 {
        twin.write(&mut random, n);
        twin.look(&mut random);
    }
    twin.txn.commit().expect("commits");
    assert_eq!(stored(&store), twin.seen);
}

#[test]
fn a_damaged_layer_is_a_named_error_and_never_a_wrong_answer() {
    let fs = Arc::new(MemFs::new());
    let store = open(fs.clone());
    let key = |n: usize| format!("key {n:04}").into_bytes();
    let value = |n: usize| format!("value {n}").into_bytes();
    let mut named = 0;
    for round in 0..40 {
        let txn = begin(&store, 2_000);
        (0..200).for_each(|n| txn.put(key(n), value(n)).expect("puts"));
        let layers = files(&*fs);
        let layer = Path::new("db/bulk").join(&layers[round % layers.len()]);
        let length = fs.open(&layer).and_then(|f| f.len()).expect("has a length");
        let offset = Random::seeded(round as u64).below(length);
        fs.flip(&layer, offset, 1 << (round % 8)).expect("flips");
        let mut check = |result: Result<(), KvError>| match result {
            Err(KvError::Engine(braid_lsm::Error::Corruption { file, .. })) => {
                assert_eq!(file, layer);
                named += 1;
            }
            other => other.expect("fails by its name only"),
        };
        for n in 0..200 {
            let got = txn.get(&key(n)).map(|got| assert_eq!(got, Some(value(n).into()), "{n}"));
            check(got);
        }
        let committed = txn.commit();
        let rows = stored(&store);
        match &committed {
            Ok(_) => assert_eq!(rows.len(), 200, "all of it"),
            Err(_) => assert_eq!(rows.len(), 0, "nothing of it"),
        }
        check(committed.map(drop));
        drop(txn);
        assert_eq!(files(&*fs), Vec::<String>::new());
        if !rows.is_empty() {
            let txn = begin(&store, 2_000);
            txn.delete_span(&KeySpan::new("key", "kez")).expect("deletes");
            txn.commit().expect("commits");
        }
    }
    assert!(named > 40, "{named}");
}

#[test]
fn what_was_read_is_validated_and_others_are_waited_for() {
    for isolation in [Isolation::Serializable, Isolation::RepeatableRead] {
        let store = open(Arc::new(MemFs::new()));
        let options = TxnOptions { isolation, spill: Some(1_000), ..TxnOptions::default() };
        let txn = store.begin(options).expect("begins");
        assert_eq!(txn.get(b"read").expect("reads"), None);
        for n in 0..100 {
            txn.put(format!("own {n}"), "row").expect("puts");
        }
        assert!(txn.spilled() > 0);
        let other = store.begin(TxnOptions::default()).expect("begins");
        other.put("read", "newer").expect("puts");
        other.commit().expect("commits");
        let committed = txn.commit();
        assert_eq!(committed.is_ok(), isolation == Isolation::RepeatableRead, "{committed:?}");
        assert_eq!(stored(&store).len(), 1 + if committed.is_ok() { 100 } else { 0 });
    }
}
