//! Batches of a scan hold what the scan hands out row by row, whether values were copied or lie in
//! blocks that the batch keeps.

use std::path::Path;
use std::sync::Arc;

use braid_env::fs::MemFs;
use braid_env::random::Random;
use braid_lsm::{Batch, CommitTs, Db, Durability, KeySpan, Options, Row, RowBatch, ScanOptions};

const NOW: CommitTs = CommitTs(1_000_000);

/// Short keys, keys whose shared part or whose own rest is long, and keys that end in zeros.
fn key(shape: u64, n: u64) -> Vec<u8> {
    match shape {
        0 => format!("{n:06}").into_bytes(),
        1 => [vec![b'p'; 60], format!("{n:06}").into_bytes()].concat(),
        2 => [b"t/".to_vec(), (n / 50).to_be_bytes().to_vec(), vec![b'x'; (n % 50) as usize]]
            .concat(),
        _ => [n.to_be_bytes().to_vec(), vec![0; (n % 3) as usize]].concat(),
    }
}

/// Rows in a memtable, in L0 and below, with deletes and range tombstones among them.
fn store(fs: &MemFs, shape: u64) -> Db {
    let options = Options { block_cache_size: 256 << 10, ..Options::default() };
    let db = Db::open(Arc::new(fs.clone()), Path::new("/store"), options).unwrap();
    let mut random = Random::seeded(shape);
    let mut ts = 0;
    for layer in 0..3 {
        for n in 0..4_000 {
            if layer > 0 && !random.chance(1, 10) {
                continue;
            }
            ts += 1;
            let mut batch = Batch::at(CommitTs(ts));
            match random.below(20) {
                0 => batch.delete(&key(shape, n)),
                1 if layer > 0 => {
                    let (a, b) = (key(shape, n), key(shape, n + random.below(60)));
                    batch.delete_span(&a.clone().min(b.clone()), &a.max(b));
                }
                _ => {
                    let len = if random.chance(1, 50) { 5_000 } else { random.below(200) };
                    batch.put(&key(shape, n), &vec![n as u8; len as usize]);
                }
            }
            db.write(batch, Durability::Buffered).unwrap();
        }
        match layer {
            0 => db.compact_span(&KeySpan::all()).unwrap(),
            1 => db.flush().unwrap(),
            _ => {}
        }
    }
    db
}

fn rows(db: &Db, span: &KeySpan, options: &ScanOptions) -> Vec<Row> {
    let mut scan = db.view(NOW).unwrap().scan(span.clone(), options.clone()).unwrap();
    let mut rows = Vec::new();
    while let Some(row) = scan.next_row().unwrap() {
        rows.push(row);
    }
    rows
}

#[test]
fn batches_hold_the_rows_that_steps_give() {
    for shape in 0..4 {
        let db = store(&MemFs::new(), shape);
        let mut random = Random::seeded(9);
        let mut batch = RowBatch::new();
        for turn in 0..60 {
            let (a, b) = (key(shape, random.below(4_000)), key(shape, random.below(4_000)));
            let span = KeySpan::new(a.clone().min(b.clone()), a.max(b));
            let limit = random.chance(1, 3).then(|| random.below(300) as usize);
            let options = ScanOptions { reverse: turn % 4 == 0, limit, ..ScanOptions::default() };
            let expected = rows(&db, &span, &options);
            let max_rows = [1, 3, 64, 1_000][random.below(4) as usize];
            let max_bytes = [1, 700, 40_000, usize::MAX][random.below(4) as usize];
            let mut scan = db.view(NOW).unwrap().scan(span, options).unwrap();
            let mut at = 0;
            while scan.next_batch_into(&mut batch, max_rows, max_bytes).unwrap() > 0 {
                assert!(batch.len() <= max_rows);
                let before_last: usize = batch.byte_len()
                    - batch.key(batch.len() - 1).len()
                    - batch.value(batch.len() - 1).len();
                assert!(batch.len() == 1 || before_last < max_bytes, "stops once there is enough");
                for (key, value, ts) in batch.clone().iter() {
                    let Row { key: k, value: v, ts: t } = &expected[at];
                    assert_eq!((key, value, ts), (k.as_ref(), v.as_ref(), *t), "shape {shape}");
                    at += 1;
                }
            }
            assert_eq!(at, expected.len(), "shape {shape}, turn {turn}");
        }
    }
}

#[test]
fn a_batch_outlives_the_store_it_was_read_from() {
    let fs = MemFs::new();
    let db = store(&fs, 0);
    let options = ScanOptions::default();
    let expected = rows(&db, &KeySpan::all(), &options);
    let mut scan = db.view(NOW).unwrap().scan(KeySpan::all(), options).unwrap();
    let batch = scan.next_batch(2_000, usize::MAX).unwrap();
    drop(scan);
    // The blocks leave the cache, then the files go, then the store.
    let mut batch_of_all = Batch::at(NOW);
    batch_of_all.delete_span(b"", b"\xff");
    db.write(batch_of_all, Durability::Buffered).unwrap();
    db.set_gc_threshold(CommitTs(NOW.0 + 1)).unwrap();
    db.compact_span(&KeySpan::all()).unwrap();
    db.close().unwrap();
    assert_eq!(batch.len(), 2_000);
    for (row, (key, value, ts)) in expected.iter().zip(batch.iter()) {
        assert_eq!((row.key.as_ref(), row.value.as_ref(), row.ts), (key, value, ts));
    }
}
