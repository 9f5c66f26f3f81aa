//! The gap: families erased one after the other, each by a range tombstone of its own, then the
//! first living row. Queues live like this. Measures the scan that finds it, wherever rows and
//! tombstones lie, and prints nanoseconds per tombstone.
//!
//! ```text
//!   cargo run --release -p braid-lsm --example gap [families, default 1000000]
//! ```

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::MemFs;
use braid_lsm::{Batch, CommitTs, Db, Durability, KeySpan, Options, ScanOptions};

/// Rows of a family.
const ROWS: u64 = 2;

fn family(n: u64) -> Vec<u8> {
    [b"queue/".as_slice(), &n.to_be_bytes()].concat()
}

fn open() -> Db {
    let options = Options {
        ballast_size: 0,
        memtable_size: 4 << 30,
        automatic_compaction: false,
        paranoid_checks: false,
        block_cache_size: 1 << 30,
        ..Options::default()
    };
    Db::open(Arc::new(MemFs::new()), Path::new("/store"), options).expect("opens")
}

fn fill(db: &Db, families: u64) {
    for first in (0..families + 10).step_by(1_000) {
        let mut batch = Batch::at(CommitTs(1 + first));
        for n in first..(first + 1_000).min(families + 10) {
            for row in 0..ROWS {
                batch.put(&[family(n), row.to_be_bytes().to_vec()].concat(), &[7; 20]);
            }
        }
        db.write(batch, Durability::Buffered).expect("writes");
    }
}

fn erase(db: &Db, base: u64, families: impl Iterator<Item = u64>) {
    for n in families {
        let mut batch = Batch::at(CommitTs(base + n));
        batch.delete_span(&family(n), &family(n + 1));
        db.write(batch, Durability::Buffered).expect("erases");
    }
}

/// Time of the scan to the first living row, the best of a few, in nanoseconds.
fn find(db: &Db, families: u64) -> u64 {
    let mut best = u64::MAX;
    for _ in 0..5 {
        let view = db.view(CommitTs(u64::MAX - 1)).expect("a view");
        let start = WallClock.monotonic_nanos();
        let options = ScanOptions { limit: Some(1), ..ScanOptions::default() };
        let mut scan = view.scan(KeySpan::all(), options).expect("scans");
        let row = scan.next_row().expect("reads").expect("a row lives");
        best = best.min(WallClock.monotonic_nanos() - start);
        assert!(row.key.starts_with(&family(families)), "the first living row");
    }
    best
}

fn report(what: &str, db: &Db, families: u64) {
    let nanos = find(db, families);
    let each = nanos as f64 / families as f64;
    println!("{what:<50} {:>9.3} ms {each:>8.1} ns a tombstone", nanos as f64 / 1e6);
}

fn flush(db: &Db) {
    db.flush().expect("flushes");
}

fn bottom(db: &Db) {
    db.compact_span(&KeySpan::all()).expect("compacts");
}

fn main() {
    let families: u64 =
        std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("a number"));
    let base = families + 1_000;
    type Step = fn(&Db);
    let nothing: Step = |_| {};
    let cases: [(&str, Step, Step); 6] = [
        ("rows and tombstones in the memtable", nothing, nothing),
        ("rows and tombstones in one flush", nothing, flush),
        ("tombstones in the memtable, rows in L0", flush, nothing),
        ("tombstones in the memtable, rows at the bottom", bottom, nothing),
        ("tombstones in L0, rows at the bottom", bottom, flush),
        ("rows and tombstones at the bottom", bottom, bottom),
    ];
    for (what, before, after) in cases {
        let db = open();
        fill(&db, families);
        before(&db);
        erase(&db, base, 0..families);
        after(&db);
        report(what, &db, families);
    }
    let db = open();
    fill(&db, families);
    bottom(&db);
    erase(&db, base, (0..families).filter(|n| n % 2_000 < 1_000));
    flush(&db);
    erase(&db, base, (0..families).filter(|n| n % 2_000 >= 1_000));
    report("a thousand in L0, a thousand in the memtable, ..", &db, families);
    let db = open();
    fill(&db, families);
    bottom(&db);
    erase(&db, base, (0..families).step_by(2));
    flush(&db);
    erase(&db, base, (1..families).step_by(2));
    report("every other one in L0, the others in the memtable", &db, families);
    while_erased(families);
}

/// A reader scans again and again while families are erased one by one.
fn while_erased(families: u64) {
    let db = open();
    fill(&db, families);
    bottom(&db);
    let (done, gone) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut scans, mut passed, mut nanos) = (0u64, 0u64, 0u64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..families {
                erase(&db, families + 1_000, n..n + 1);
                gone.store(n + 1, Ordering::Release);
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            let before = gone.load(Ordering::Acquire);
            let view = db.view(CommitTs(u64::MAX - 1)).expect("a view");
            let start = WallClock.monotonic_nanos();
            let options = ScanOptions { limit: Some(1), ..ScanOptions::default() };
            let mut scan = view.scan(KeySpan::all(), options).expect("scans");
            let row = scan.next_row().expect("reads").expect("a row lives");
            nanos += WallClock.monotonic_nanos() - start;
            assert!(row.key.as_ref() >= family(before).as_slice(), "what is gone stays gone");
            (scans, passed) = (scans + 1, passed + before);
        }
    });
    let each = nanos as f64 / passed.max(1) as f64;
    println!("while they are erased: {scans} scans, {each:.1} ns a tombstone");
}
