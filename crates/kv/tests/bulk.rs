//! Bulk loads: any order in, key order out, whole or not at all.

use std::path::Path;
use std::sync::Arc;

use braid_env::clock::WallClock;
use braid_env::fs::{FileSystem, MemFs};
use braid_env::random::Random;
use braid_kv::{
    BulkFiles, Isolation, KeySpan, KvError, ReadMode, ScanOptions, Store, StoreOptions, Txn,
    TxnOptions,
};

fn open(fs: &Arc<MemFs>) -> Arc<Store> {
    Store::open(StoreOptions::new(fs.clone(), Path::new("db"), Arc::new(WallClock))).unwrap()
}

fn begin(store: &Arc<Store>, isolation: Isolation) -> Arc<Txn> {
    store.begin(TxnOptions { isolation, ..TxnOptions::default() }).unwrap()
}

fn load(txn: &Txn, keys: impl Iterator<Item = u64>, budget: usize) -> BulkFiles {
    let mut load = txn.bulk_load(2, budget).unwrap();
    for n in keys {
        load.put((n % 2) as usize, &key(n), &n.to_le_bytes().repeat(5)).unwrap();
    }
    load.finish(|row| -> Result<(), KvError> {
        assert!(!row.again);
        assert_eq!(row.key, key(u64::from_le_bytes(row.value[..8].try_into().unwrap())));
        Ok(())
    })
    .unwrap()
}

fn key(n: u64) -> Vec<u8> {
    format!("{}/{:010}", ["even", "odd"][(n % 2) as usize], n.wrapping_mul(7919) % 1_000_003)
        .into_bytes()
}

fn count(txn: &Arc<Txn>) -> usize {
    let mut scan = txn.scan(KeySpan::new("a", "z"), ScanOptions::default()).unwrap();
    let mut rows = 0;
    while let Some((_, value)) = scan.next().unwrap() {
        assert_eq!(value.len(), 40);
        rows += 1;
    }
    rows
}

#[test]
fn a_load_appears_at_its_commit_whatever_fits_into_memory() {
    for budget in [1 << 16, 1 << 18, 1 << 26] {
        let fs = Arc::new(MemFs::new());
        let store = open(&fs);
        let before = begin(&store, Isolation::RepeatableRead);
        let txn = begin(&store, Isolation::Serializable);
        txn.attach(load(&txn, 0..50_000, budget)).unwrap();
        assert_eq!(count(&txn), 0);
        let committed = txn.commit().unwrap();
        assert_eq!(count(&before), 0, "an older view does not see it");
        assert_eq!(count(&begin(&store, Isolation::RepeatableRead)), 50_000);
        assert_eq!(store.engine().max_ts(&key(17)).unwrap(), committed);
        assert_eq!(fs.list(Path::new("db/bulk")).unwrap(), Vec::<String>::new());
        drop((before, txn, store));
        assert_eq!(count(&begin(&open(&fs), Isolation::RepeatableRead)), 50_000, "it is durable");
    }
}

#[test]
fn a_load_that_fails_leaves_nothing() {
    let fs = Arc::new(MemFs::new());
    let store = open(&fs);
    let txn = begin(&store, Isolation::Serializable);
    let mut random = Random::seeded(1);
    let mut load = txn.bulk_load(1, 1 << 16).unwrap();
    for _ in 0..20_000 {
        load.put(0, &key(random.next_u64() % 40_000), b"v").unwrap();
    }
    assert!(!load.is_below(usize::MAX), "some of it is on disk");
    let result = load.finish(|row| if row.again { Err(KvError::ReadOnly) } else { Ok(()) });
    assert!(matches!(result, Err(KvError::ReadOnly)));
    assert_eq!(fs.list(Path::new("db/bulk")).unwrap(), Vec::<String>::new());
    txn.commit().unwrap();
    drop(txn);
    assert_eq!(count(&begin(&store, Isolation::Serializable)), 0);
    // What a crash leaves behind goes at the next start.
    let txn = begin(&store, Isolation::Serializable);
    let files = self::load(&txn, 0..10_000, 1 << 16);
    std::mem::forget(files);
    drop((txn, store));
    assert!(!fs.list(Path::new("db/bulk")).unwrap().is_empty());
    let store = open(&fs);
    assert_eq!(fs.list(Path::new("db/bulk")).unwrap(), Vec::<String>::new());
    assert_eq!(count(&begin(&store, Isolation::Serializable)), 0);
}

#[test]
fn a_private_load_is_seen_by_its_own_transaction_at_every_level() {
    for isolation in [Isolation::Serializable, Isolation::RepeatableRead, Isolation::ReadCommitted]
    {
        let fs = Arc::new(MemFs::new());
        let store = open(&fs);
        let txn = begin(&store, isolation);
        assert_eq!(count(&txn), 0);
        let other = begin(&store, Isolation::ReadCommitted);
        other.put("zz", "1").unwrap();
        other.commit().unwrap();
        txn.ingest_private(&load(&txn, 0..5_000, 1 << 26)).unwrap();
        assert_eq!(count(&txn), 5_000, "{isolation:?}");
        assert!(txn.get_as(&key(3), ReadMode::Latest).unwrap().is_some());
        txn.delete(key(3)).unwrap();
        assert_eq!(count(&txn), 4_999);
        txn.commit().unwrap();
    }
}

#[test]
fn what_a_serializable_load_read_is_validated() {
    let fs = Arc::new(MemFs::new());
    let store = open(&fs);
    let txn = begin(&store, Isolation::Serializable);
    assert!(txn.get(b"zz").unwrap().is_none());
    txn.attach(load(&txn, 0..5_000, 1 << 26)).unwrap();
    let other = begin(&store, Isolation::ReadCommitted);
    other.put("zz", "1").unwrap();
    other.commit().unwrap();
    assert!(matches!(txn.commit(), Err(KvError::Retry { .. })));
    assert_eq!(count(&begin(&store, Isolation::Serializable)), 0);
}
