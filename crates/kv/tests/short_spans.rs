//! Many short spans in one request: the rows that scans of each span give, and as much of a
//! dependence on them.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use braid_env::clock::WallClock;
use braid_env::fs::MemFs;
use braid_env::random::Random;
use braid_kv::{
    KeySpan, KvError, ReadMode, RowBatch, ScanOptions, Store, StoreOptions, Txn, TxnOptions,
};

/// Rows have class 1, what lies inside of them (behind a slash) class 2.
fn class_of(key: &[u8]) -> u8 {
    if key.contains(&b'/') { 2 } else { 1 }
}

fn store() -> Arc<Store> {
    let mut options =
        StoreOptions::new(Arc::new(MemFs::new()), Path::new("db"), Arc::new(WallClock));
    options.engine.row_class = class_of;
    Store::open(options).expect("opens")
}

fn begin(store: &Arc<Store>) -> Arc<Txn> {
    store.begin(TxnOptions { batch: 50, ..TxnOptions::default() }).expect("begins")
}

fn key(row: u64, inside: Option<u64>) -> Vec<u8> {
    match inside {
        None => format!("k{row:03}").into_bytes(),
        Some(inside) => format!("k{row:03}/{inside:04}").into_bytes(),
    }
}

/// Everything that begins with row `n`, and up to `rows` more.
fn family(n: u64, rows: u64) -> KeySpan {
    KeySpan::new(key(n, None), [key(n + rows, None), b"\xff".to_vec()].concat())
}

/// Rows with some inside, deleted rows and spans, some of it in files, some in memory.
fn fill(store: &Arc<Store>, random: &mut Random) {
    for round in 0..4 {
        let txn = begin(store);
        for n in 0..400_usize {
            let (row, inside) = (random.below(200), Some(random.below(9)).filter(|_| n % 3 > 0));
            match random.below(8) {
                0 => txn.delete(key(row, inside)).expect("deletes"),
                1 if n % 5 == 0 => drop(txn.delete_span(&family(row, 2)).expect("deletes")),
                _ => txn.put(key(row, inside), vec![b'v'; n % 70]).expect("puts"),
            }
        }
        txn.commit().expect("commits");
        if round % 2 == 0 {
            store.engine().flush().expect("flushes");
        }
    }
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn pairs(found: &[Arc<RowBatch>]) -> Pairs {
    let rows = found.iter().flat_map(|rows| rows.iter());
    rows.map(|(key, value, _)| (key.to_vec(), value.to_vec())).collect()
}

fn one_by_one(txn: &Arc<Txn>, spans: &[KeySpan], options: ScanOptions) -> Pairs {
    let mut rows = Pairs::new();
    for span in spans {
        let mut scan = txn.scan(span.clone(), options).expect("opens");
        while let Some((key, value)) = scan.next().expect("scans") {
            rows.push((key.to_vec(), value.to_vec()));
        }
    }
    rows
}

#[test]
fn they_have_the_rows_of_scans_one_by_one() {
    for seed in 0..12 {
        let mut random = Random::seeded(seed);
        let store = store();
        fill(&store, &mut random);
        let txn = begin(&store);
        let (mut spans, mut from) = (Vec::new(), 0);
        while from < 190 {
            let rows = random.below(3);
            spans.push(family(from, rows));
            from += rows + 1 + random.below(6);
        }
        if seed % 4 == 3 {
            // Out of order, and one twice.
            spans.reverse();
            spans.push(spans[0].clone());
        }
        let jump = Some((2, 0xff));
        for (classes, jump) in [(u32::MAX, None), (2, jump), (4, None)] {
            let options = ScanOptions { classes, jump, ..ScanOptions::default() };
            let expected = one_by_one(&txn, &spans, options);
            let mut left = VecDeque::from(spans.clone());
            let mut found = Pairs::new();
            assert!(txn.reads_spans(&options));
            let mut requests = 0;
            while !left.is_empty() {
                let most = (1 + random.below(60) as usize, 1 + random.below(40) as usize);
                let rows = txn.read_spans(&mut left, &options, most).expect("reads");
                found.extend(pairs(&rows));
                requests += 1;
                assert!(requests < 2_000, "it goes on, seed {seed}");
            }
            assert_eq!(found, expected, "seed {seed}, classes {classes:x}, jump {jump:?}");
        }
    }
}

/// What was given back counts as read, what is left does not.
#[test]
fn a_commit_depends_on_what_was_read() {
    let options = ScanOptions::default();
    for (written, conflicts) in [(10, true), (12, false), (20, true), (21, false), (50, false)] {
        let store = store();
        let before = begin(&store);
        (0..100).for_each(|n| before.put(key(n, None), b"v".to_vec()).expect("puts"));
        before.commit().expect("commits");
        let txn = begin(&store);
        let spans = [family(10, 0), family(20, 0), family(50, 0)];
        let mut left = VecDeque::from(spans.to_vec());
        let rows = txn.read_spans(&mut left, &options, (2, 100)).expect("reads");
        assert_eq!(pairs(&rows).len(), 2);
        assert_eq!(left, [spans[2].clone()]);
        txn.put(b"mine".to_vec(), b"v".to_vec()).expect("puts");
        let other = begin(&store);
        other.put(key(written, Some(1)), b"new".to_vec()).expect("puts");
        other.commit().expect("commits");
        let ended = txn.commit();
        assert_eq!(matches!(ended, Err(KvError::Retry { .. })), conflicts, "{written} {ended:?}");
    }
}

/// The inside of a row that is jumped over was not read.
#[test]
fn what_is_jumped_over_was_not_read() {
    let options = ScanOptions { classes: 2, jump: Some((2, 0xff)), ..ScanOptions::default() };
    for (inside, conflicts) in [(Some(1), false), (None, true)] {
        let store = store();
        let before = begin(&store);
        before.put(key(1, None), b"v".to_vec()).expect("puts");
        before.put(key(3, None), b"v".to_vec()).expect("puts");
        before.commit().expect("commits");
        let txn = begin(&store);
        let mut left = VecDeque::from(vec![family(1, 0), family(3, 0)]);
        let rows = txn.read_spans(&mut left, &options, (2, 100)).expect("reads");
        assert_eq!(pairs(&rows).len(), 2);
        txn.put(b"mine".to_vec(), b"v".to_vec()).expect("puts");
        let other = begin(&store);
        other.put(key(1, inside), b"new".to_vec()).expect("puts");
        other.commit().expect("commits");
        let ended = txn.commit();
        assert_eq!(matches!(ended, Err(KvError::Retry { .. })), conflicts, "{ended:?}");
    }
}

#[test]
fn own_writes_and_the_newest_state_need_scans() {
    let store = store();
    let txn = begin(&store);
    let options = ScanOptions::default();
    assert!(txn.reads_spans(&options));
    assert!(!txn.reads_spans(&ScanOptions { reverse: true, ..options }));
    assert!(!txn.reads_spans(&ScanOptions { mode: ReadMode::Latest, ..options }));
    assert!(!txn.reads_spans(&ScanOptions { limit: Some(3), ..options }));
    txn.put(b"mine".to_vec(), b"v".to_vec()).expect("puts");
    assert!(!txn.reads_spans(&options));
}
