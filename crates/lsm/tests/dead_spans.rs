//! Scans walk through what is deleted once: the next ones know where it ends, and nothing that is
//! put there later is overlooked.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use braid_env::fs::{FileSystem, MemFs};
use braid_env::random::Random;
use braid_lsm::{
    Batch, CommitTs, Db, Durability, IngestOptions, KeySpan, Options, ScanOptions, SstBuilder, View,
};

const ROWS: u64 = 20_000;

fn open_in(fs: &Arc<MemFs>, options: Options) -> Db {
    let options = Options {
        row_class: |key| u8::from(!key.ends_with(b"0")),
        ballast_size: 0,
        wal_segment_size: 1 << 20,
        automatic_compaction: false,
        ..options
    };
    Db::open(fs.clone(), Path::new("/store"), options).expect("opens")
}

fn open() -> Db {
    open_in(&Arc::new(MemFs::new()), Options::default())
}

fn key(n: u64) -> Vec<u8> {
    format!("queue/{n:08}").into_bytes()
}

fn put(db: &Db, ts: u64, rows: impl IntoIterator<Item = u64>) {
    let mut batch = Batch::at(CommitTs(ts));
    rows.into_iter().for_each(|n| batch.put(&key(n), b"a row"));
    db.write(batch, Durability::Buffered).expect("writes");
}

fn delete(db: &Db, ts: u64, rows: impl IntoIterator<Item = u64>) {
    let mut batch = Batch::at(CommitTs(ts));
    rows.into_iter().for_each(|n| batch.delete(&key(n)));
    db.write(batch, Durability::Buffered).expect("writes");
}

/// The first rows of a view, and how many entries were looked at for them.
fn first(view: &View, options: ScanOptions) -> (Vec<Vec<u8>>, u64) {
    let most = options.limit.unwrap_or(usize::MAX);
    let mut scan = view.scan(KeySpan::all(), options).expect("scans");
    let batch = scan.next_batch(most, usize::MAX).expect("reads");
    let rows = batch.iter().map(|(key, ..)| key.to_vec()).collect();
    (rows, scan.stats().rows_visited)
}

fn forward() -> ScanOptions {
    ScanOptions { limit: Some(1), ..ScanOptions::default() }
}

fn backward() -> ScanOptions {
    ScanOptions { reverse: true, ..forward() }
}

fn all() -> ScanOptions {
    ScanOptions::default()
}

/// Rows 0 to `ROWS`, of which all but the first and the last are deleted, each by a batch of its own.
fn worn(db: &Db) -> u64 {
    put(db, 1, 0..=ROWS);
    (1..ROWS).for_each(|n| delete(db, 1 + n, [n]));
    ROWS + 1
}

#[test]
fn only_the_first_scan_walks_over_what_is_deleted() {
    for flushed in [false, true] {
        let db = open();
        let ts = worn(&db);
        if flushed {
            db.flush().expect("flushes");
        }
        for options in [all(), backward()] {
            let from_end = options.reverse;
            let view = db.view(CommitTs(ts)).expect("a view");
            if from_end {
                delete(&db, ts + 1, [ROWS]);
            }
            let view = if from_end { db.view(CommitTs(ts + 1)).expect("a view") } else { view };
            let (rows, visited) = first(&view, options.clone());
            // Backward nobody has to walk: the forward scan has noted where nothing is.
            let least = if from_end { 0 } else { ROWS };
            assert!(visited >= least, "flushed {flushed}: {visited} entries were looked at");
            assert_eq!(rows.len(), if from_end { 1 } else { 2 });
            let (again, visited) = first(&view, options);
            assert_eq!(again, rows);
            // Blocks are walked through as a whole.
            assert!(visited <= 4_000, "flushed {flushed}: {visited} entries at the second time");
        }
    }
}

#[test]
fn a_queue_does_not_get_slower() {
    let db = open();
    let mut ts = 1;
    put(&db, ts, 0..1_000);
    let (mut head, mut tail, mut most) = (0, 1_000, 0);
    for _ in 0..ROWS {
        ts += 1;
        let (rows, visited) = first(&db.view(CommitTs(ts)).expect("a view"), forward());
        assert_eq!(rows, [key(head)]);
        most = most.max(visited);
        delete(&db, ts, [head]);
        ts += 1;
        put(&db, ts, [tail]);
        (head, tail) = (head + 1, tail + 1);
    }
    assert!(most <= 600, "{most} entries were looked at for one row");
}

#[test]
fn what_comes_back_to_life_is_seen() {
    let db = open();
    let ts = worn(&db);
    let old = db.view(CommitTs(ts)).expect("a view");
    assert_eq!(first(&old, all()).0, [key(0), key(ROWS)]);

    // In the middle, at both edges, and right behind the row before.
    put(&db, ts + 1, [1, 5_000, 5_001, ROWS - 1]);
    let new = db.view(CommitTs(ts + 1)).expect("a view");
    let living = [0, 1, 5_000, 5_001, ROWS - 1, ROWS].map(key);
    let (rows, visited) = first(&new, all());
    assert_eq!(rows, living);
    assert!(visited <= 1_200, "{visited}: on both sides of what was put, notes are still good");
    let (rows, _) = first(&new, ScanOptions { reverse: true, ..all() });
    assert!(rows.iter().rev().eq(living.iter()));
    assert_eq!(first(&old, all()).0, [key(0), key(ROWS)], "who read before does not see it");

    // Views of the past: what was deleted later is there.
    let past = db.view(CommitTs(1)).expect("a view");
    assert_eq!(first(&past, all()).0.len() as u64, ROWS + 1);
    let half = db.view(CommitTs(ROWS / 2)).expect("a view");
    assert_eq!(first(&half, all()).0.len() as u64, ROWS / 2 + 2);
}

#[test]
fn large_batches_are_seen() {
    let db = open();
    let ts = worn(&db);
    let living = |ts: u64| first(&db.view(CommitTs(ts)).expect("a view"), all()).0.len() as u64;
    assert_eq!(living(ts), 2);
    // Behind enough that is dead for a scan to ask where that ends.
    put(&db, ts + 1, 5_000..15_000);
    assert_eq!(living(ts + 1), 10_002);
    delete(&db, ts + 2, 5_000..15_000);
    assert_eq!([living(ts + 2), living(ts + 2), living(ts + 1)], [2, 2, 10_002]);
}

#[test]
fn a_view_from_before_takes_no_notes() {
    let db = open();
    let ts = worn(&db);
    let before = db.view(CommitTs(ts)).expect("a view");
    put(&db, ts + 1, [7_000]);
    // It walks over the key that came, and must not say that nothing is there.
    assert_eq!(first(&before, all()).0, [key(0), key(ROWS)]);
    let after = db.view(CommitTs(ts + 1)).expect("a view");
    assert_eq!(first(&after, all()).0, [key(0), key(7_000), key(ROWS)]);
}

#[test]
fn what_comes_while_a_scan_walks_is_seen() {
    let db = open();
    let ts = worn(&db);
    let view = db.view(CommitTs(ts)).expect("a view");
    let mut scan = view.scan(KeySpan::all(), all()).expect("scans");
    assert!(scan.next_row().expect("reads").is_some());
    // The scan goes on when it is asked again: batches of one row end it in between.
    let batch = scan.next_batch(1, 1).expect("reads");
    assert_eq!(batch.len(), 1);
    put(&db, ts + 1, [9_000]);
    drop(scan);
    let after = db.view(CommitTs(ts + 1)).expect("a view");
    assert_eq!(first(&after, all()).0, [key(0), key(9_000), key(ROWS)]);
}

#[test]
fn notes_are_about_the_classes_that_were_asked_for() {
    let db = open();
    put(&db, 1, 0..ROWS);
    // Of each ten rows the first stays: it is of another class than the others.
    delete(&db, 2, (0..ROWS).filter(|n| n % 10 != 0));
    let view = db.view(CommitTs(2)).expect("a view");
    let of = |classes: u32| ScanOptions { classes, ..all() };
    assert_eq!(first(&view, of(1 << 1)).0.len(), 0);
    assert!(first(&view, of(1 << 1)).1 <= 200);
    assert_eq!(first(&view, of(1)).0.len() as u64, ROWS / 10);
    assert_eq!(first(&view, of(3)).0.len() as u64, ROWS / 10);
    assert_eq!(first(&view, all()).0.len() as u64, ROWS / 10);
}

#[test]
fn ingested_rows_are_seen() {
    let fs = Arc::new(MemFs::new());
    let db = open_in(&fs, Options::default());
    let ts = worn(&db);
    let before = db.view(CommitTs(ts)).expect("a view");
    assert_eq!(first(&before, all()).0.len(), 2);
    let path = PathBuf::from("/loaded.sst");
    let disk: Arc<dyn FileSystem> = fs.clone();
    let mut builder =
        SstBuilder::create(&disk, &path, CommitTs(ts + 1), &Options::default()).expect("begins");
    builder.put(&key(3_000), b"loaded").expect("takes a row");
    builder.finish().expect("finishes");
    db.ingest(&[path], IngestOptions::default()).expect("ingests");
    assert_eq!(first(&before, all()).0.len(), 2, "it cannot see what was loaded, nor say so");
    let after = db.view(CommitTs(ts + 1)).expect("a view");
    assert_eq!(first(&after, all()).0, [key(0), key(3_000), key(ROWS)]);
}

/// Scans and gets of one view see the same, while others put and delete beside them.
#[test]
fn scans_agree_with_gets_beside_writers() {
    const KEYS: u64 = 400;
    const BATCHES: u64 = 30_000;
    let db = open_in(&Arc::new(MemFs::new()), Options { dead_run: 8, ..Options::default() });
    put(&db, 1, 0..KEYS);
    let (written, stop) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicBool::new(false)));
    let readers: Vec<_> = (0..3)
        .map(|seed| {
            let (db, written, stop) = (db.clone(), written.clone(), stop.clone());
            let work = move || {
                let (mut random, mut compared) = (Random::seeded(seed), 0u64);
                while !stop.load(Ordering::Relaxed) {
                    let ts = written.load(Ordering::Acquire);
                    let view = db.view(CommitTs(ts)).expect("a view");
                    let reverse = random.chance(1, 3);
                    let (mut rows, _) = first(&view, ScanOptions { reverse, ..all() });
                    if reverse {
                        rows.reverse();
                    }
                    let there = |n: &u64| view.get(&key(*n)).expect("reads").is_some();
                    let expected: Vec<_> = (0..KEYS).filter(there).map(key).collect();
                    assert_eq!(rows, expected, "at {ts}");
                    compared += 1;
                }
                compared
            };
            std::thread::Builder::new().spawn(work).expect("a thread can be started")
        })
        .collect();
    let mut random = Random::seeded(99);
    for ts in 2..BATCHES {
        let (at, many) = (random.below(KEYS), random.chance(1, 4));
        match random.below(8) {
            0 => put(&db, ts, [at]),
            1 if many => put(&db, ts, at..(at + 20).min(KEYS)),
            2 if many => {
                let mut batch = Batch::at(CommitTs(ts));
                batch.delete_span(&key(at), &key(at + 60));
                db.write(batch, Durability::Buffered).expect("writes");
            }
            3 if ts % 5_000 == 0 => db.flush().expect("flushes"),
            _ => delete(&db, ts, at..(at + 5).min(KEYS)),
        }
        written.store(ts, Ordering::Release);
        if readers.iter().any(|reader| reader.is_finished()) {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    let compared: u64 = readers.into_iter().map(|r| r.join().expect("they agree")).sum();
    assert!(compared > 50, "{compared} views were compared");
}
