//! Bulk loads: any order in, key order out, whole or not at all.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use braid_env::clock::{ManualClock, WallClock};
use braid_env::fs::{FileSystem, MemFs};
use braid_env::memory::{Account, Pool};
use braid_env::random::Random;
use braid_kv::{
    BulkFiles, BulkLoad, Isolation, KeySpan, KvError, Loaded, LockMode, ReadMode, SavedLoad,
    SavedTxn, ScanOptions, SpillAs, Store, StoreOptions, Txn, TxnOptions,
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

fn count_in(txn: &Arc<Txn>, span: &KeySpan) -> usize {
    let mut scan = txn.scan(span.clone(), ScanOptions::default()).unwrap();
    let mut rows = 0;
    while scan.next().unwrap().is_some() {
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
fn what_was_written_last_is_divided_too() {
    let store = open(&Arc::new(MemFs::new()));
    let txn = begin(&store, Isolation::Serializable);
    let key = |n: u32| format!("k{n:06}");
    (0..5_000).for_each(|n| txn.put(key(n), vec![7; 100]).unwrap());
    txn.commit().unwrap();
    let txn = begin(&store, Isolation::Serializable);
    let whole = KeySpan::new(key(0), key(4_900));
    assert_eq!(txn.stored_bytes(&whole).unwrap(), 0, "no file has any of it");
    let parts = txn.divide(&whole, 4, 64 << 10).unwrap();
    assert_eq!((parts.len(), &parts[0].start, &parts[3].end), (4, &whole.start, &whole.end));
    for part in &parts {
        let rows = count_in(&txn, part);
        assert!((500..2_200).contains(&rows), "{rows}");
    }
    assert_eq!(txn.divide(&whole, 4, 10 << 20).unwrap().len(), 1);
    let few = KeySpan::new(key(0), key(500));
    assert_eq!(txn.divide(&few, 2, 64 << 10).unwrap().len(), 1);
}

/// Of rows that a range tombstone covers there is nothing to read: parts are made of the others.
#[test]
fn what_is_erased_is_not_divided() {
    for in_files in [false, true] {
        let store = open(&Arc::new(MemFs::new()));
        let key = |n: u32| format!("k{n:06}");
        // Files do not make them smaller, as they would of equal bytes.
        let mut random = Random::seeded(7);
        let mut value = || (0..100).map(|_| random.next_u64() as u8).collect::<Vec<u8>>();
        let txn = begin(&store, Isolation::Serializable);
        if in_files {
            let mut load = txn.bulk_load(1, 1 << 26, &Account::unlimited()).unwrap();
            (0..60_000).for_each(|n| load.put(0, key(n).as_bytes(), &value()).unwrap());
            txn.attach(load.finish(|_| -> Result<(), KvError> { Ok(()) }).unwrap()).unwrap();
        } else {
            (0..20_000).for_each(|n| txn.put(key(n), value()).unwrap());
        }
        txn.commit().unwrap();
        let txn = begin(&store, Isolation::Serializable);
        let (from, to) = if in_files { (3_000, 57_000) } else { (2_000, 18_000) };
        txn.delete_span(&KeySpan::new(key(from), key(to))).unwrap();
        txn.commit().unwrap();
        // Rows that were written behind the tombstone count again.
        let txn = begin(&store, Isolation::Serializable);
        (from..from + 1_000).for_each(|n| txn.put(key(n), value()).unwrap());
        txn.commit().unwrap();
        let txn = begin(&store, Isolation::Serializable);
        let whole = KeySpan::new(key(0), key(60_000));
        let rows = count_in(&txn, &whole);
        let parts = txn.divide(&whole, 4, 1 << 10).unwrap();
        let each: Vec<usize> = parts.iter().map(|part| count_in(&txn, part)).collect();
        assert_eq!((parts.len(), each.iter().sum::<usize>()), (4, rows), "{in_files} {each:?}");
        let even = rows / 4;
        assert!(each.iter().all(|n| (even / 3..even * 2).contains(n)), "{in_files} {each:?}");
    }
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
    let rows = |span: &KeySpan| count_in(&txn, span);
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

/// How the rows of a load are kept until its end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Spill(SpillAs),
    Cut,
}

const WAYS: [Way; 4] =
    [Way::Spill(SpillAs::Runs), Way::Spill(SpillAs::Ssts), Way::Spill(SpillAs::Observed), Way::Cut];

/// Numbers in the orders in which rows come.
fn orders(rows: u64) -> Vec<(&'static str, Vec<u64>)> {
    let sorted: Vec<u64> = (0..rows).collect();
    let mut random = sorted.clone();
    Random::seeded(5).shuffle(&mut random);
    let mut nearly = sorted.clone();
    nearly.chunks_mut(16).for_each(|part| Random::seeded(6).shuffle(part));
    let reversed = sorted.iter().rev().copied().collect();
    vec![("sorted", sorted), ("nearly", nearly), ("reversed", reversed), ("random", random)]
}

fn plain_key(n: u64) -> Vec<u8> {
    format!("even/{n:010}").into_bytes()
}

fn plain_load(txn: &Txn, way: Way, budget: usize) -> BulkLoad {
    load_of(txn, way, budget, None)
}

fn load_of(txn: &Txn, way: Way, budget: usize, job: Option<u32>) -> BulkLoad {
    let mut load = txn.bulk_load(1, budget, &Account::unlimited()).unwrap();
    job.into_iter().for_each(|job| load.for_job(job));
    match way {
        Way::Spill(spill) => load.spill_as(0, spill),
        Way::Cut => load.cut_at([5_000, 20_000, 30_000].map(plain_key).to_vec()),
    }
    load
}

fn put_plain(load: &mut BulkLoad, numbers: &[u64]) {
    for n in numbers {
        load.put(0, &plain_key(*n), &n.to_le_bytes().repeat(5)).unwrap();
    }
}

#[test]
fn rows_in_every_order_become_the_same_whatever_way_they_took() {
    const ROWS: u64 = 40_000;
    for (order, numbers) in orders(ROWS) {
        for way in WAYS {
            let fs = Arc::new(MemFs::new());
            let store = open(&fs);
            let txn = begin(&store, Isolation::Serializable);
            let mut load = plain_load(&txn, way, 1 << 18);
            put_plain(&mut load, &numbers);
            let spilled = load.spilled();
            let mut seen = 0;
            let files = load.finish(|row| -> Result<(), KvError> {
                assert!(!row.again);
                seen += 1;
                Ok(())
            });
            let files = files.unwrap();
            let early = files.finished_early();
            match (order, way) {
                ("random", Way::Spill(SpillAs::Observed)) => {
                    assert_eq!((spilled.ssts, early), (0, 0))
                }
                ("random", Way::Spill(SpillAs::Ssts)) => assert_eq!((spilled.runs, early), (0, 0)),
                (_, Way::Spill(SpillAs::Runs) | Way::Cut) => assert_eq!(early, 0),
                ("nearly", _) => assert!(spilled.runs == 0 && early >= 1, "{spilled:?} {early}"),
                _ => {
                    assert_eq!((spilled.runs, early), (0, spilled.ssts), "{order} {way:?}");
                    assert!(seen < ROWS / 2, "what lies apart is not read again: {seen}");
                }
            }
            txn.attach(files).unwrap();
            txn.commit().unwrap();
            assert_eq!(fs.list(Path::new("db/bulk")).unwrap(), Vec::<String>::new());
            let txn = begin(&store, Isolation::Serializable);
            assert_eq!(count(&txn), ROWS as usize, "{order} {way:?}");
            for n in [0, 1, 4_999, 5_000, ROWS - 1] {
                let value = txn.get(&plain_key(n)).unwrap().expect("it was put");
                assert_eq!(value[..8], n.to_le_bytes(), "{order} {way:?}");
            }
        }
    }
}

#[test]
fn equal_keys_are_told_whatever_way_they_took() {
    for (order, mut numbers) in orders(20_000) {
        numbers.push(numbers[7]);
        for way in WAYS {
            for threads in [1, 3] {
                let store = open(&Arc::new(MemFs::new()));
                let txn = begin(&store, Isolation::Serializable);
                let mut load = plain_load(&txn, way, 1 << 17);
                put_plain(&mut load, &numbers);
                let twice = AtomicU64::new(0);
                let each = || {
                    |row: Loaded<'_>| -> Result<(), KvError> {
                        twice.fetch_add(u64::from(row.again), Ordering::Relaxed);
                        if row.again { Err(KvError::ReadOnly) } else { Ok(()) }
                    }
                };
                let files = match threads {
                    1 => load.finish(each()),
                    n => load.finish_beside(n, each),
                };
                assert!(matches!(files, Err(KvError::ReadOnly)), "{order} {way:?} {threads}");
                assert_eq!(twice.load(Ordering::Relaxed), 1, "{order} {way:?} {threads}");
            }
        }
    }
}

#[test]
fn a_target_that_is_looked_at_gives_every_row_to_see() {
    let store = open(&Arc::new(MemFs::new()));
    let txn = begin(&store, Isolation::Serializable);
    let mut load = plain_load(&txn, Way::Spill(SpillAs::Ssts), 1 << 17);
    load.look_at_all(0);
    put_plain(&mut load, &(0..20_000).collect::<Vec<_>>());
    assert!(load.spilled().ssts > 2);
    let mut seen = 0;
    let files = load.finish(|row| -> Result<(), KvError> {
        assert_eq!(row.key, plain_key(seen));
        seen += 1;
        Ok(())
    });
    assert_eq!((seen, files.unwrap().finished_early()), (20_000, 0));
}

#[test]
fn siblings_fill_their_parts_and_become_one() {
    for way in WAYS {
        let store = open(&Arc::new(MemFs::new()));
        let txn = begin(&store, Isolation::Serializable);
        let mut load = plain_load(&txn, way, 1 << 18);
        load.share_memory(2);
        let mut other = load.sibling();
        put_plain(&mut load, &(0..15_000).collect::<Vec<_>>());
        put_plain(&mut other, &(15_000..30_000).collect::<Vec<_>>());
        load.absorb(other);
        let mut seen = 0;
        load.visit(|row| -> Result<(), KvError> {
            assert!(!row.again);
            seen += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, 30_000, "{way:?}");
        txn.attach(load.finish(|_| -> Result<(), KvError> { Ok(()) }).unwrap()).unwrap();
        txn.commit().unwrap();
        assert_eq!(count(&begin(&store, Isolation::Serializable)), 30_000, "{way:?}");
    }
}

/// What was saved is there after a crash, what came later is not, and the load goes on.
#[test]
fn a_load_goes_on_in_another_process() {
    use braid_env::fs::CrashPolicy;
    for (order, numbers) in orders(20_000) {
        for way in WAYS {
            let fs = Arc::new(MemFs::new());
            let store = open(&fs);
            let txn = begin(&store, Isolation::Serializable);
            let mut load = load_of(&txn, way, 1 << 17, Some(7));
            put_plain(&mut load, &numbers[..9_000]);
            let saved = load.save().unwrap().encode();
            store.coordinator().write_job_note(7, &saved).unwrap();
            // Not saved: it comes once more.
            put_plain(&mut load, &numbers[9_000..14_000]);
            let crashed = fs.crash_clone(&mut Random::seeded(3), CrashPolicy::LoseAll);
            drop((load, txn, store));

            let fs = Arc::new(crashed);
            let store = open(&fs);
            let coordinator = store.coordinator();
            let saved = SavedLoad::decode(&coordinator.read_job_note(7).unwrap()).unwrap();
            let note = |name: &str| name == "job-7-note" || saved.needs(name);
            coordinator.sweep_job_files(|job, name| job == 7 && note(name)).unwrap();
            let txn = begin(&store, Isolation::Serializable);
            let mut load = load_of(&txn, way, 1 << 17, Some(7));
            load.restore(&saved).unwrap();
            put_plain(&mut load, &numbers[9_000..]);
            let files = load.finish(|row| -> Result<(), KvError> {
                assert!(!row.again, "{order} {way:?}");
                Ok(())
            });
            txn.attach(files.unwrap()).unwrap();
            txn.commit().unwrap();
            coordinator.sweep_job_files(|_, _| false).unwrap();
            assert_eq!(fs.list(Path::new("db/bulk")).unwrap(), Vec::<String>::new());
            let txn = begin(&store, Isolation::Serializable);
            assert_eq!(count(&txn), 20_000, "{order} {way:?}");
        }
    }
}

#[test]
fn a_saved_load_whose_files_changed_is_refused() {
    let fs = Arc::new(MemFs::new());
    let store = open(&fs);
    let txn = begin(&store, Isolation::Serializable);
    let mut load = load_of(&txn, Way::Spill(SpillAs::Runs), 1 << 17, Some(1));
    put_plain(&mut load, &(0..5_000).collect::<Vec<_>>());
    let saved = load.save().unwrap();
    drop(load);
    let names = fs.list(Path::new("db/bulk")).unwrap();
    assert!(!names.is_empty() && names.iter().all(|n| n.starts_with("job-1-")), "{names:?}");
    let file = fs.open_write(&Path::new("db/bulk").join(&names[0])).unwrap();
    file.set_len(100).unwrap();
    let mut again = plain_load(&txn, Way::Spill(SpillAs::Runs), 1 << 17);
    assert!(again.restore(&saved).is_err());
    assert!(store.coordinator().read_job_note(1).is_none());
}

/// A transaction that is saved and restored in another process, if nothing that it depends on has
/// changed in between; what it alone can know may have.
#[test]
fn a_transaction_goes_on_in_another_process_if_nothing_has_changed() {
    for (changed, wanted) in [
        ("other", true),
        ("read", false),
        ("here/written", false),
        ("span/x", false),
        ("fixed/x", false),
        ("own/x", true),
    ] {
        let fs = Arc::new(MemFs::new());
        let store = open(&fs);
        let first = begin(&store, Isolation::Serializable);
        for key in ["read", "here/written", "span/gone", "fixed/y"] {
            first.put(key, "old").unwrap();
        }
        first.commit().unwrap();
        drop(first);
        let txn = begin(&store, Isolation::Serializable);
        txn.get(b"read").unwrap();
        txn.get(b"own/read").unwrap();
        txn.put("here/written", "new").unwrap();
        txn.put("own/written", "new").unwrap();
        txn.delete_span(&KeySpan::new("span/", "span0")).unwrap();
        txn.put("span/new", "new").unwrap();
        txn.delete_at_commit(b"record".to_vec()).unwrap();
        let own = ["even", "odd", "own"].map(|name| KeySpan::prefix(format!("{name}/").as_bytes()));
        txn.ingest_private(&load(&txn, 0..500, 1 << 26)).unwrap();
        // Its view moves, and what others have written until now is no change.
        let other = begin(&store, Isolation::Serializable);
        other.put("fixed/z", "early").unwrap();
        other.commit().unwrap();
        let fixed = vec![KeySpan::new("fixed/", "fixed0")];
        let saved = txn.save(&own, fixed.clone()).unwrap().unwrap();
        assert_eq!(txn.get(b"fixed/z").unwrap().as_deref(), Some(&b"early"[..]));
        assert_eq!(saved.deletes_in(&KeySpan::new("r", "s")).collect::<Vec<_>>(), [b"record"]);
        let bytes = saved.encode();
        drop((txn, other));
        drop(store);

        let store = open(&fs);
        let other = begin(&store, Isolation::Serializable);
        other.put(changed, "changed").unwrap();
        other.commit().unwrap();
        let saved = SavedTxn::decode(&bytes).unwrap();
        let txn = begin(&store, Isolation::Serializable);
        let restored = txn.restore(&saved);
        if !wanted {
            assert!(matches!(restored, Err(KvError::Retry { .. })), "{changed}: {restored:?}");
            continue;
        }
        restored.unwrap();
        assert!(txn.holds(b"here/written", LockMode::Exclusive), "{changed}");
        for span in &own[..2] {
            let mut scan = txn.scan(span.clone(), ScanOptions::default()).unwrap();
            let loaded = std::iter::from_fn(|| scan.next().unwrap()).count();
            assert_eq!(loaded, 250, "{changed}");
        }
        let seen = |txn: &Txn, key: &str| txn.get(key.as_bytes()).unwrap();
        assert_eq!(seen(&txn, "span/gone"), None);
        // It can be carried on and on.
        let saved = txn.save(&own, fixed).unwrap().unwrap();
        txn.rollback();
        let txn = begin(&store, Isolation::Serializable);
        txn.restore(&saved).unwrap();
        txn.commit().unwrap();
        let after = begin(&store, Isolation::Serializable);
        for key in ["here/written", "own/written", "span/new"] {
            assert_eq!(seen(&after, key).as_deref(), Some(&b"new"[..]), "{changed}: {key}");
        }
        assert_eq!(seen(&after, "span/gone"), None);
        // What a saved transaction has read is read by the one that goes on, too.
        let txn = begin(&store, Isolation::Serializable);
        txn.get(b"read").unwrap();
        txn.put("z", "z").unwrap();
        let saved = txn.save(&[], Vec::new()).unwrap().unwrap();
        txn.rollback();
        let txn = begin(&store, Isolation::Serializable);
        txn.restore(&saved).unwrap();
        let other = begin(&store, Isolation::Serializable);
        other.put("read", "late").unwrap();
        other.commit().unwrap();
        assert!(matches!(txn.commit(), Err(KvError::Retry { .. })), "{changed}");
    }
}

/// What one view for the whole transaction promises cannot be carried over, nor what lies on disk.
#[test]
fn some_transactions_cannot_be_saved() {
    let fs = Arc::new(MemFs::new());
    let store = open(&fs);
    let txn = begin(&store, Isolation::RepeatableRead);
    txn.put("a", "b").unwrap();
    assert_eq!(txn.save(&[], Vec::new()).unwrap(), None);
    txn.rollback();
    let options = TxnOptions { spill: Some(1 << 10), ..TxnOptions::default() };
    let txn = store.begin(options).unwrap();
    (0..100).for_each(|n| txn.put(key(n), vec![7; 100]).unwrap());
    assert!(txn.spilled() > 0);
    assert_eq!(txn.save(&[], Vec::new()).unwrap(), None);
    // One that could not commit says so.
    let txn = begin(&store, Isolation::Serializable);
    txn.get(b"a").unwrap();
    let other = begin(&store, Isolation::Serializable);
    other.put("a", "c").unwrap();
    other.commit().unwrap();
    assert!(matches!(txn.save(&[], Vec::new()), Err(KvError::Retry { .. })));
}

/// A row that somebody has deleted may be gone with all that tells of it.
#[test]
fn nobody_says_that_nothing_has_changed_since_what_cannot_be_read() {
    let clock = Arc::new(ManualClock::at_micros(1_000_000_000));
    let options = StoreOptions::new(Arc::new(MemFs::new()), "db", clock.clone());
    let store = Store::open(options).unwrap();
    let span = || vec![KeySpan::new("a", "b")];
    let coordinator = store.coordinator();
    let txn = begin(&store, Isolation::Serializable);
    txn.put("a", "there").unwrap();
    let since = txn.commit().unwrap();
    assert!(coordinator.is_unchanged(span(), since).unwrap());
    let txn = begin(&store, Isolation::Serializable);
    txn.delete("a").unwrap();
    txn.commit().unwrap();
    assert!(!coordinator.is_unchanged(span(), since).unwrap());
    clock.advance(Duration::from_secs(5 * 3600));
    store.advance_gc().unwrap();
    store.engine().flush().unwrap();
    store.engine().compact_span(&KeySpan::all()).unwrap();
    assert!(!coordinator.is_unchanged(span(), since).unwrap());
    assert!(coordinator.is_unchanged(Vec::new(), since).unwrap());
}
