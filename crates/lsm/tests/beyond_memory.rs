//! A store whose indexes and filters alone are larger than the cache: reads answer, and what is kept
//! of them stays within its part of the budget, also while a view of everything is held.

use std::path::Path;
use std::sync::Arc;

use braid_env::fs::MemFs;
use braid_env::random::Random;
use braid_lsm::{Batch, CommitTs, Db, Durability, KeySpan, Options, ScanOptions};

const ROWS: u64 = 60_000;
const CACHE: u64 = 1 << 20;

fn key(n: u64) -> Vec<u8> {
    format!("a rather long key of the row {n:08}").into_bytes()
}

fn value(n: u64) -> Vec<u8> {
    let mut value = vec![n as u8; 400];
    value[..8].copy_from_slice(&n.to_be_bytes());
    value
}

/// A row in each block, and partitions of a few dozens.
fn store() -> Db {
    let options = Options {
        block_cache_size: CACHE as usize,
        block_size: 256,
        index_partition_size: 4 << 10,
        ballast_size: 0,
        ..Options::default()
    };
    let db = Db::open(Arc::new(MemFs::new()), Path::new("/store"), options).unwrap();
    for first in (0..ROWS).step_by(1_000) {
        let mut batch = Batch::at(CommitTs(1 + first));
        for n in first..first + 1_000 {
            batch.put(&key(n), &value(n));
        }
        db.write(batch, Durability::Buffered).unwrap();
    }
    db.compact_span(&KeySpan::all()).unwrap();
    db
}

fn check_kept(db: &Db, when: &str) {
    let metrics = db.metrics();
    // Half of the cache, the tops of the indexes (130 KiB here, where partitions are small), and
    // what cursors stand on.
    let most = CACHE / 2 + CACHE / 4;
    assert!(metrics.cache_pinned_bytes <= most, "{when}: {}", metrics.cache_pinned_bytes);
    assert!(metrics.cache_block_bytes + metrics.cache_pinned_bytes <= CACHE + CACHE / 8, "{when}");
}

#[test]
fn indexes_larger_than_the_cache_are_read_again_and_not_kept() {
    let db = store();
    check_kept(&db, "after the compaction");
    let view = db.view(CommitTs(1_000_000)).unwrap();
    for reverse in [false, true] {
        let mut scan =
            view.scan(KeySpan::all(), ScanOptions { reverse, ..ScanOptions::default() }).unwrap();
        for at in 0..ROWS {
            let n = if reverse { ROWS - 1 - at } else { at };
            let row = scan.next_row().unwrap().expect("a row");
            assert_eq!((row.key.as_ref(), row.value.as_ref()), (&*key(n), &*value(n)));
            if at % 7_919 == 0 {
                check_kept(&db, "inside of a scan");
            }
        }
        assert!(scan.next_row().unwrap().is_none());
    }
    // Several threads ask for the same and for other rows: each finds what another one's look has
    // let go.
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (view, db) = (&view, &db);
            scope.spawn(move || {
                let mut random = Random::seeded(seed);
                for turn in 0..20_000 {
                    let n = if turn % 2 == 0 { random.below(ROWS) } else { turn * 3 % ROWS };
                    assert_eq!(view.get(&key(n)).unwrap().as_deref(), Some(&*value(n)));
                    assert_eq!(view.get(&key(ROWS + n)).unwrap(), None);
                }
                check_kept(db, "among gets");
            });
        }
    });
    drop(view);
    check_kept(&db, "at the end");
}
