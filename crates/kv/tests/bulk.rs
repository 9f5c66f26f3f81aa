//! Bulk loads: any order in, key order out, whole or not at all.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_env::clock::WallClock;
use braid_env::fs::{FileSystem, MemFs};
use braid_env::memory::{Account, Pool};
use braid_env::random::Random;
use braid_kv::{
    BulkFiles, BulkLoad, Isolation, KeySpan, KvError, Loaded, ReadMode, ScanOptions, Store,
    StoreOptions, Txn, TxnOptions,
};

fn open(fs: &Arc<MemFs>) -> Arc<Store> {
    Store::open(StoreOptions::new(fs.clone(), Path::new("db"), Arc::new(WallClock))).unwrap()
}

fn begin(store: &Arc<Store>, isolation: Isolation) -> Arc<Txn> {
    store.begin(TxnOptions { isolation, ..TxnOptions::default() }).unwrap()
}

fn load(txn: &Txn, keys: impl Iterator<Item = u64>, budget: usize) -> BulkFiles {
    let mut load = txn.bulk_load(2, budget, &Account::unlimited()).unwrap();
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
    let mut load = txn.bulk_load(1, 1 << 16, &Account::unlimited()).unwrap();
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

/// A load whose keys come scattered, about 120 bytes each.
fn scattered(txn: &Txn, rows: u64, budget: usize, account: &Arc<Account>) -> BulkLoad {
    let mut load = txn.bulk_load(1, budget, account).unwrap();
    for n in 0..rows {
        load.put(0, &key(n), &n.to_le_bytes().repeat(5)).unwrap();
    }
    load
}

#[test]
fn a_load_is_finished_on_several_threads_with_the_same_rows() {
    for budget in [1 << 18, 1 << 26] {
        let fs = Arc::new(MemFs::new());
        let store = open(&fs);
        let txn = begin(&store, Isolation::Serializable);
        let account = Account::unlimited();
        // Filled side by side, too.
        let mut load = scattered(&txn, 150_000, budget, &account);
        let mut other = txn.bulk_load(1, budget, &account).unwrap();
        for n in 150_000..300_000 {
            other.put(0, &key(n), &n.to_le_bytes().repeat(5)).unwrap();
        }
        other.sort();
        load.absorb(other);
        let parts = AtomicU64::new(0);
        let files = load.finish_beside(3, || {
            parts.fetch_add(1, Ordering::Relaxed);
            let mut last = Vec::new();
            move |row: Loaded<'_>| -> Result<(), KvError> {
                assert!(!row.again && last.as_slice() < row.key, "in order");
                last = row.key.to_vec();
                Ok(())
            }
        });
        let files = files.unwrap();
        assert_eq!(parts.load(Ordering::Relaxed), 3, "budget {budget}");
        assert!(files.paths().len() >= 3);
        txn.attach(files).unwrap();
        txn.commit().unwrap();
        let txn = begin(&store, Isolation::Serializable);
        assert_eq!(count(&txn), 300_000);
        for n in [0, 149_999, 150_000, 299_999] {
            assert!(txn.get(&key(n)).unwrap().is_some());
        }
    }
}

#[test]
fn keys_that_came_twice_are_told_whatever_thread_finds_them() {
    for budget in [1 << 18, 1 << 26] {
        let fs = Arc::new(MemFs::new());
        let store = open(&fs);
        let txn = begin(&store, Isolation::Serializable);
        let account = Account::unlimited();
        let mut load = scattered(&txn, 200_000, budget, &account);
        load.absorb(scattered(&txn, 200_000, budget, &account));
        let twice = AtomicU64::new(0);
        let files = load.finish_beside(4, || {
            |row: Loaded<'_>| -> Result<(), KvError> {
                twice.fetch_add(u64::from(row.again), Ordering::Relaxed);
                if row.again { Err(KvError::ReadOnly) } else { Ok(()) }
            }
        });
        assert!(matches!(files, Err(KvError::ReadOnly)));
        assert_eq!(twice.load(Ordering::Relaxed), 4, "one in each part");
        assert_eq!(fs.list(Path::new("db/bulk")).unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_load_that_is_refused_memory_goes_on_with_less() {
    let fs = Arc::new(MemFs::new());
    let store = open(&fs);
    let txn = begin(&store, Isolation::Serializable);
    let pool = Pool::new(1 << 20);
    let account = pool.account(usize::MAX);
    let load = scattered(&txn, 50_000, 1 << 26, &account);
    assert!(pool.used() > 0 && pool.peak() <= 1 << 20);
    assert!(!load.is_below(usize::MAX), "some of it is on disk");
    let files = load.finish(|_| -> Result<(), KvError> { Ok(()) }).unwrap();
    assert_eq!(pool.used(), 0);
    txn.attach(files).unwrap();
    txn.commit().unwrap();
    assert_eq!(count(&begin(&store, Isolation::Serializable)), 50_000);
    // Where there is nothing at all, it says so.
    let txn = begin(&store, Isolation::Serializable);
    let mut load = txn.bulk_load(1, 1 << 26, &Pool::new(100).account(usize::MAX)).unwrap();
    assert!(matches!(load.put(0, b"k", b"v"), Err(KvError::OutOfMemory(_))));
}

#[test]
fn a_span_is_divided_into_parts_of_about_the_same_size() {
    let store = open(&Arc::new(MemFs::new()));
    let txn = begin(&store, Isolation::Serializable);
    let whole = KeySpan::new("a", "z");
    assert_eq!(txn.divide(&whole, 4, 1).unwrap(), std::slice::from_ref(&whole), "nothing there");
    let load = scattered(&txn, 200_000, 1 << 26, &Account::unlimited());
    txn.attach(load.finish(|_| -> Result<(), KvError> { Ok(()) }).unwrap()).unwrap();
    txn.commit().unwrap();
    let txn = begin(&store, Isolation::Serializable);
    let parts = txn.divide(&whole, 3, 1 << 10).unwrap();
    let rows = |span: &KeySpan| {
        let mut scan = txn.scan(span.clone(), ScanOptions::default()).unwrap();
        let mut rows = 0;
        while scan.next().unwrap().is_some() {
            rows += 1;
        }
        rows
    };
    assert_eq!((parts.len(), &parts[0].start, &parts[2].end), (3, &whole.start, &whole.end));
    assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
    let each: Vec<usize> = parts.iter().map(rows).collect();
    assert_eq!(each.iter().sum::<usize>(), 200_000);
    assert!(each.iter().all(|rows| (50_000..85_000).contains(rows)), "{each:?}");
    assert_eq!(
        txn.divide(&whole, 3, 1 << 30).unwrap(),
        std::slice::from_ref(&whole),
        "too small to be worth it"
    );
    let many = txn.divide(&whole, 400, 1).unwrap();
    let each: Vec<usize> = many.iter().map(rows).collect();
    assert!(many.len() > 100, "the lower indexes know more cuts: {}", many.len());
    assert!(each.iter().all(|rows| *rows < 4_000), "{each:?}");

    let all = txn.stored_bytes(&whole).unwrap();
    let shares: Vec<u64> = parts.iter().map(|part| txn.stored_bytes(part).unwrap()).collect();
    assert!(all > 200_000 && shares.iter().all(|part| (all / 4..all / 2).contains(part)));
    assert!(shares.iter().sum::<u64>().abs_diff(all) < all / 50, "{shares:?} of {all}");
    let of_many: u64 = many.iter().map(|part| txn.stored_bytes(part).unwrap()).sum();
    assert!(of_many.abs_diff(all) < all / 20, "{of_many} of {all}");
    assert_eq!(txn.stored_bytes(&KeySpan::new("zz", "zzz")).unwrap(), 0);
}
