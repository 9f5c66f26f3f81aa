//! A key that is there is found, whatever arrives beside it at that moment.
//!
//! The story: `seek` walked to the last node before its place and then loaded that node's link once
//! more. A row of another key that was linked in between was taken for the place itself, and the
//! get answered "absent". It showed once in 10,000 transactions, as an UPDATE of zero rows.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_env::fs::MemFs;
use braid_env::random::Random;
use braid_lsm::{Batch, CommitTs, Db, Durability, Options};

const KEYS: u64 = 16;
const BATCHES: u64 = 40_000;

fn key(n: u64) -> Vec<u8> {
    format!("row/{n:04}").into_bytes()
}

#[test]
fn a_get_finds_its_key_while_neighbours_arrive() {
    let options = Options { memtable_size: 1 << 30, ..Options::default() };
    let db = Db::open(Arc::new(MemFs::new()), Path::new("db"), options).expect("opens");
    let mut batch = Batch::at(CommitTs(1));
    for n in 0..KEYS {
        batch.put(&key(n), b"there");
    }
    db.write(batch, Durability::Buffered).expect("writes");

    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|seed| {
            let (db, stop) = (db.clone(), Arc::clone(&stop));
            std::thread::Builder::new()
                .spawn(move || {
                    let mut random = Random::seeded(seed);
                    let view = db.view(CommitTs(1)).expect("a view of the beginning");
                    let mut gets = 0u64;
                    while !stop.load(Ordering::Relaxed) {
                        let key = key(random.below(KEYS));
                        let found = view.get(&key).expect("reads");
                        assert!(found.is_some(), "{} is not found", key.escape_ascii());
                        gets += 1;
                    }
                    gets
                })
                .expect("a thread can be started")
        })
        .collect();

    let mut random = Random::seeded(7);
    for ts in 2..BATCHES {
        // Each row sorts between one key and the next.
        let mut neighbour = key(random.below(KEYS));
        neighbour.extend_from_slice(&ts.to_be_bytes());
        let mut batch = Batch::at(CommitTs(ts));
        batch.put(&neighbour, b"new");
        if db.write(batch, Durability::Buffered).is_err() || readers.iter().any(|r| r.is_finished())
        {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    let gets: u64 = readers.into_iter().map(|r| r.join().expect("every get finds its key")).sum();
    assert!(gets > 1_000, "{gets} gets");
    db.close().expect("closes");
}
