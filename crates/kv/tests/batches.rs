//! Scans in batches: the same rows as one by one and as a model has, whatever lies over them, and
//! nothing counts as read that was not handed out.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use braid_env::clock::WallClock;
use braid_env::fs::MemFs;
use braid_env::memory::Pool;
use braid_env::random::Random;
use braid_kv::{
    Isolation, KeySpan, KvError, ReadMode, ScanOptions, Store, StoreOptions, Txn, TxnOptions,
    TxnScan,
};
use bytes::Bytes;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Row `a..` has class 1, what lies inside of it (behind a slash) class 2.
fn class_of(key: &[u8]) -> u8 {
    if key.contains(&b'/') { 2 } else { 1 }
}

fn store() -> Arc<Store> {
    let fs = Arc::new(MemFs::new());
    let mut options = StoreOptions::new(fs, Path::new("db"), Arc::new(WallClock));
    options.engine.row_class = class_of;
    Store::open(options).expect("opens")
}

fn begin(store: &Arc<Store>) -> Arc<Txn> {
    store.begin(TxnOptions { batch: 50, ..TxnOptions::default() }).expect("begins")
}

/// Row `n`, or with `inside` one that lies in it.
fn key(n: u64, inside: Option<u64>) -> Vec<u8> {
    match inside {
        None => format!("k{n:03}").into_bytes(),
        Some(inside) => format!("k{n:03}/{inside:04}").into_bytes(),
    }
}

/// A few random writes, to a transaction and to the model.
fn write(txn: &Txn, model: &mut Model, random: &mut Random, count: u64) {
    for n in 0..count {
        let row = random.below(120);
        let inside = Some(random.below(400)).filter(|n| n % 3 > 0);
        let key = key(row, inside);
        match random.below(6) {
            0 => {
                let end = [key.as_slice(), b"0"].concat();
                txn.delete_span(&KeySpan::new(key.clone(), end.clone())).expect("deletes");
                model.retain(|at, _| *at < key || *at >= end);
            }
            1 => {
                txn.delete(key.clone()).expect("deletes");
                model.remove(&key);
            }
            _ => {
                let value = vec![b'v'; (n % 90) as usize];
                txn.put(key.clone(), value.clone()).expect("puts");
                model.insert(key, value);
            }
        }
    }
}

/// What a scan must give.
fn expected(model: &Model, span: &KeySpan, options: &ScanOptions) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rows = model.range(span.start.to_vec()..span.end.to_vec());
    let rows = rows.filter(|(key, _)| options.classes & (1 << class_of(key)) != 0);
    let mut rows: Vec<_> = rows.map(|(key, value)| (key.clone(), value.clone())).collect();
    if options.reverse {
        rows.reverse();
    }
    if let Some((classes, suffix)) = options.jump {
        let mut past = Vec::new();
        rows.retain(|(key, _)| {
            let wanted = *key >= past;
            if wanted && classes & (1 << class_of(key)) != 0 {
                past = [key.as_slice(), &[suffix]].concat();
            }
            wanted
        });
    }
    rows.truncate(options.limit.unwrap_or(usize::MAX));
    rows
}

fn read(scan: &mut TxnScan, most: &mut impl FnMut() -> usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some(rows) = scan.next_batch(most()).expect("scans") {
        let rows = (0..rows.len()).map(|i| (rows.key(i).to_vec(), rows.value(i).to_vec()));
        found.extend(rows);
    }
    found
}

#[test]
fn batches_have_the_rows_that_the_model_has() {
    for seed in 0..45 {
        let mut random = Random::seeded(seed);
        let store = store();
        let mut model = Model::new();
        let most = [300, 2_000, 1_000][seed as usize % 3];
        if seed % 3 == 2 {
            // Few rows inside are passed; over so many the scan leaps.
            let txn = begin(&store);
            for n in 0..12_000 {
                let key = key(n % 6 * 20, Some(n / 6));
                txn.put(key.clone(), "inside").expect("puts");
                model.insert(key, b"inside".to_vec());
            }
            txn.commit().expect("commits");
        }
        for _ in 0..4 {
            let txn = begin(&store);
            write(&txn, &mut model, &mut random, most / 4);
            txn.commit().expect("commits");
            if random.below(2) == 0 {
                store.engine().flush().expect("flushes");
            }
        }
        let txn = begin(&store);
        for round in 0..12 {
            if round > 3 {
                write(&txn, &mut model, &mut random, 25);
            }
            let (low, high) = (random.below(120), random.below(121));
            let span = KeySpan::new(key(low.min(high), None), key(low.max(high), None));
            let reverse = random.below(3) == 0;
            let classes = [u32::MAX, 1 << 1, 1 << 2][random.below(3) as usize];
            // What jumps wants no rows inside: their row may be deleted here, and stored.
            let jumps = !reverse && classes == 2 && random.below(4) > 0;
            let jump = jumps.then_some((classes, b'0'));
            let limit = Some(random.below(60) as usize).filter(|n| *n > 20);
            let options = ScanOptions { reverse, classes, jump, limit, ..ScanOptions::default() };
            let expected = expected(&model, &span, &options);
            let mut scan = txn.scan(span.clone(), options).expect("opens");
            let mut sizes = || 1 + random.below(40) as usize;
            let found = read(&mut scan, &mut sizes);
            assert!(found == expected, "seed {seed}: {options:?}");
            let mut scan = txn.scan(span, options).expect("opens");
            let one_by_one = std::iter::from_fn(|| scan.next().expect("scans"));
            let one_by_one: Vec<_> =
                one_by_one.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            assert!(one_by_one == expected, "seed {seed}: {options:?}");
        }
        txn.rollback();
        assert_eq!(store.open_cursors(), 0);
    }
}

#[test]
fn who_has_no_room_for_a_large_value_is_refused_and_leaves_nothing_open() {
    const MIB: usize = 1 << 20;
    let store = store();
    let txn = begin(&store);
    for n in 0..60 {
        txn.put(key(n, None), vec![b'v'; if n % 20 == 7 { 4 * MIB } else { 10 }]).expect("puts");
    }
    txn.commit().expect("commits");
    let memory = Pool::new(8 * MIB);
    let account = memory.account(usize::MAX);
    let txn = begin(&store);
    let refused = |result: Option<KvError>| {
        let said = result.map_or_else(|| "nothing".to_string(), |e| e.to_string());
        assert!(said.starts_with("a large value asked for"), "{said}");
    };
    txn.pay_from(&account);
    refused(txn.get(&key(7, None)).err());
    refused(txn.get_many(&[key(6, None).into(), key(7, None).into()], ReadMode::Recorded).err());
    let mut scan = txn.scan(KeySpan::all(), ScanOptions::default()).expect("opens");
    refused(std::iter::repeat_with(|| scan.next()).find_map(Result::err));
    drop(scan);
    assert_eq!(store.open_cursors(), 0);
    assert_eq!(txn.get(&key(6, None)).expect("is small").map(|value| value.len()), Some(10));
    assert_eq!(memory.used(), 0);
    // Whoever has gone away pays for nothing.
    drop(account);
    assert!(txn.get(&key(7, None)).expect("gets").is_some());
    txn.rollback();
}

/// Whether a transaction that has read so can commit after another one has written there.
fn survives(read: impl FnOnce(&Arc<Txn>), write: &[u8]) -> bool {
    let store = store();
    let txn = begin(&store);
    for n in 0..20 {
        txn.put(key(n, None), "row").expect("puts");
        txn.put(key(n, Some(1)), "inside").expect("puts");
    }
    txn.commit().expect("commits");
    let reader = begin(&store);
    read(&reader);
    reader.put("own", "write").expect("puts");
    let other = begin(&store);
    other.put(write.to_vec(), "newer").expect("puts");
    other.commit().expect("commits");
    reader.commit().is_ok()
}

#[test]
fn what_was_handed_out_is_read_and_nothing_else() {
    let whole = || KeySpan::new("k", "l");
    let jump = Some((2, b'0'));
    for jump in [None, jump] {
        let options = ScanOptions { classes: 2, jump, ..ScanOptions::default() };
        // Ten rows of twenty, in one batch or in two, or one by one.
        let parts: [&[usize]; 3] = [&[10], &[4, 6], &[1; 10]];
        for sizes in parts {
            let read = |txn: &Arc<Txn>| {
                let mut scan = txn.scan(whole(), options).expect("opens");
                for size in sizes {
                    assert_eq!(scan.next_batch(*size).unwrap().unwrap().len(), *size);
                }
            };
            assert!(!survives(read, &key(9, None)), "it is read");
            assert!(!survives(read, b"k0035"), "nothing was there");
            assert!(survives(read, &key(10, None)), "it came later");
            assert!(survives(read, b"k009:"), "it lies behind the last row");
            assert_eq!(survives(read, &key(5, Some(7))), jump.is_some(), "inside of a row");
        }
        let all = |txn: &Arc<Txn>| {
            let mut scan = txn.scan(whole(), options).expect("opens");
            while scan.next_batch(7).expect("scans").is_some() {}
        };
        assert!(!survives(all, b"k999"), "the end is read");
        assert_eq!(survives(all, &key(19, Some(7))), jump.is_some(), "inside of the last row");
    }
}

#[test]
fn many_keys_at_once_are_what_they_are_one_by_one() {
    let store = store();
    let mut random = Random::seeded(5);
    let txn = begin(&store);
    let mut model = Model::new();
    write(&txn, &mut model, &mut random, 400);
    txn.commit().expect("commits");
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable]
    {
        let txn = store.begin(TxnOptions { batch: 50, isolation, ..TxnOptions::default() });
        let txn = txn.expect("begins");
        let mut own = model.clone();
        for own_writes in [0, 60] {
            write(&txn, &mut own, &mut random, own_writes);
            let keys: Vec<Bytes> = (0..130)
                .flat_map(|n| [key(n, None), key(n, Some(random.below(400)))])
                .chain([key(500, None)])
                .map(Bytes::from)
                .collect();
            let before = txn.stats();
            let got = txn.get_many(&keys, ReadMode::Recorded).expect("reads");
            let after = txn.stats();
            for (key, value) in keys.iter().zip(got) {
                assert_eq!(value.as_deref(), own.get(key.as_ref()).map(Vec::as_slice), "{key:?}");
                assert_eq!(txn.get(key).expect("reads"), value, "{key:?}");
            }
            assert_eq!(after.gets - before.gets, 261);
            let asked = 261u64.div_ceil(50);
            let requests = after.requests - before.requests;
            assert!(requests <= asked && (own_writes > 0 || requests == asked), "{requests}");
        }
        // Each counts as read.
        let other = store.begin(TxnOptions::default()).expect("begins");
        other.put(key(500, None), b"other".to_vec()).expect("puts");
        other.commit().expect("commits");
        txn.put(b"x".to_vec(), b"".to_vec()).expect("puts");
        let lost = matches!(txn.commit(), Err(KvError::Retry { .. }));
        assert_eq!(lost, isolation == Isolation::Serializable, "{isolation:?}");
        own.insert(key(500, None), b"other".to_vec());
        model = own;
    }
}
