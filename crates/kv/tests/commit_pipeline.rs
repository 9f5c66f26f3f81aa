//! A commit does what takes time outside of the commit mutex: while it writes its rows to the
//! device, or reads from it what it must validate, others commit.

mod support;

use std::path::Path;
use std::sync::Arc;

use braid_env::clock::WallClock;
use braid_env::fs::{CrashPolicy, FileSystem, MemFs};
use braid_env::memory::Account;
use braid_env::random::Random;
use braid_kv::{Isolation, KeySpan, KvError, ScanOptions, Store, StoreOptions, Txn, TxnOptions};
use support::{Gate, GatedFs};

struct World {
    mem: MemFs,
    syncs: Arc<Gate>,
    reads: Arc<Gate>,
    store: Arc<Store>,
}

const MANY: usize = 500;

fn open(fs: Arc<dyn FileSystem>) -> Arc<Store> {
    let mut options = StoreOptions::new(fs, Path::new("db"), Arc::new(WallClock));
    options.engine.large_batch_rows = MANY;
    options.engine.automatic_compaction = false;
    options.engine.block_cache_size = 0;
    Store::open(options).expect("opens")
}

fn world() -> World {
    world_with_gates_at(".sst")
}

fn world_with_gates_at(of_files: &'static str) -> World {
    let mem = MemFs::new();
    let (syncs, reads): (Arc<Gate>, Arc<Gate>) = Default::default();
    let fs = GatedFs { fs: mem.clone(), of_files, syncs: syncs.clone(), reads: reads.clone() };
    World { store: open(Arc::new(fs)), mem, syncs, reads }
}

fn key(n: usize) -> Vec<u8> {
    format!("k{n:06}").into_bytes()
}

impl World {
    fn begin(&self) -> Arc<Txn> {
        self.store.begin(TxnOptions::default()).expect("begins")
    }

    fn put_many(&self, value: &'static str) -> Arc<Txn> {
        let txn = self.begin();
        (0..MANY).for_each(|n| txn.put(key(n), value).unwrap());
        txn
    }

    fn commit_small(&self, name: &'static str) {
        let txn = self.begin();
        txn.put(name, "small").unwrap();
        txn.commit().unwrap();
    }

    /// Commits a transaction that waits at a gate, which opens when a small one is committed.
    fn commit_beside_a_small_one(&self, gate: &Gate, txn: &Txn) {
        gate.shut();
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| txn.commit());
            gate.wait_for_one();
            self.commit_small("small");
            gate.open();
            slow.join().unwrap().expect("nothing that it read has changed");
        });
    }
}

#[test]
fn others_commit_while_a_large_commit_writes_its_rows() {
    let world = world();
    let txn = world.put_many("1");
    world.commit_beside_a_small_one(&world.syncs, &txn);
    let seen = world.begin();
    assert!(seen.get(b"small").unwrap().is_some());
    assert_eq!(seen.get(&key(MANY - 1)).unwrap().unwrap(), "1");
}

/// The ssts of a bulk load get names in the store's directory, and an edit, which both wait for the
/// device.
#[test]
fn others_commit_while_a_load_is_taken_in() {
    for of_files in ["/", "MANIFEST-000001"] {
        let world = world_with_gates_at(of_files);
        // The log has its file.
        world.commit_small("first");
        let txn = world.begin();
        let mut load = txn.bulk_load(1, 1 << 20, &Account::unlimited()).unwrap();
        (0..20_000).for_each(|n| load.put(0, &key(n), &[7; 20]).unwrap());
        txn.attach(load.finish(|_| -> Result<(), KvError> { Ok(()) }).unwrap()).unwrap();
        let old = world.begin();
        world.commit_beside_a_small_one(&world.syncs, &txn);
        assert!(old.get(&key(17)).unwrap().is_none(), "{of_files}: older than the load");
        let seen = world.begin();
        assert!(seen.get(b"small").unwrap().is_some());
        assert_eq!(seen.get(&key(19_999)).unwrap().unwrap(), [7; 20].as_slice());
        let left = world.mem.crash_clone(&mut Random::seeded(1), CrashPolicy::LoseAll);
        let again = open(Arc::new(left)).begin(TxnOptions::default()).unwrap();
        assert!(again.get(&key(17)).unwrap().is_some(), "{of_files}: it is durable");
    }
}

#[test]
fn others_commit_while_a_commit_reads_what_it_must_validate() {
    let world = world();
    world.put_many("1").commit().unwrap();
    let txn = world.begin();
    assert!(txn.get(&key(7)).unwrap().is_some());
    let mut scan = txn.scan(KeySpan::new(key(100), key(200)), ScanOptions::default()).unwrap();
    while scan.next().unwrap().is_some() {}
    drop(scan);
    txn.put("mine", "1").unwrap();
    // Something newer in an sst around what was read: it has to be looked into.
    let other = world.begin();
    (300..300 + MANY).for_each(|n| other.put(key(n), "2").unwrap());
    other.put(key(50), "2").unwrap();
    other.commit().unwrap();
    world.commit_beside_a_small_one(&world.reads, &txn);
}

/// What is committed while the first look is taken is found by the second.
#[test]
fn a_change_during_validation_is_found() {
    let world = world();
    world.put_many("1").commit().unwrap();
    let txn = world.begin();
    assert!(txn.get(b"small").unwrap().is_none());
    (0..MANY).for_each(|n| txn.put(key(n), "2").unwrap());
    world.syncs.shut();
    std::thread::scope(|scope| {
        let large = scope.spawn(|| txn.commit());
        world.syncs.wait_for_one();
        world.commit_small("small");
        world.syncs.open();
        assert!(matches!(large.join().unwrap(), Err(KvError::Retry { .. })));
    });
    assert_eq!(world.begin().get(&key(3)).unwrap().unwrap(), "1", "nothing was written");
    let names = world.mem.list(Path::new("db")).unwrap();
    let ssts = names.iter().filter(|name| name.ends_with(".sst")).count();
    assert_eq!(ssts, 1, "its files are gone: {names:?}");
}

/// A large commit is one commit: all of it or nothing, durable when it is acknowledged, laid over
/// what was there before, spans that it deleted included.
#[test]
fn a_large_commit_is_whole_after_a_crash() {
    let world = world();
    let old = world.begin();
    (0..2 * MANY).for_each(|n| old.put(key(n), "old").unwrap());
    old.put("other", "old").unwrap();
    old.commit().unwrap();
    let before = world.begin();
    let options = TxnOptions { isolation: Isolation::RepeatableRead, ..TxnOptions::default() };
    let txn = world.store.begin(options).unwrap();
    txn.delete_span(&KeySpan::new(key(0), key(MANY + 10))).unwrap();
    (5..MANY + 5).for_each(|n| txn.put(key(n), "new").unwrap());
    txn.delete("other").unwrap();
    txn.commit().unwrap();
    let check = |txn: &Txn, what: &str| {
        for n in [0, 4, MANY + 5, MANY + 9] {
            assert!(txn.get(&key(n)).unwrap().is_none(), "{what}: {n}");
        }
        for (n, value) in [(5, "new"), (MANY + 4, "new"), (MANY + 10, "old")] {
            assert_eq!(txn.get(&key(n)).unwrap().unwrap(), value, "{what}: {n}");
        }
        assert!(txn.get(b"other").unwrap().is_none(), "{what}");
    };
    check(&world.begin(), "at once");
    assert_eq!(before.get(&key(0)).unwrap().unwrap(), "old", "the past is what it was");
    let left = world.mem.crash_clone(&mut Random::seeded(1), CrashPolicy::LoseAll);
    let store = open(Arc::new(left));
    check(&store.begin(TxnOptions::default()).unwrap(), "after a crash");
}
