//! The space of a deleted span comes back without its rows being read or anything being rewritten.
//!
//! At full size, with figures (ten million rows, in memory, about a minute):
//! `BRAID_ROWS=10000000 cargo test --release -p braid-lsm --test reclaim -- --nocapture long_span`

use std::path::Path;
use std::sync::Arc;

use braid_env::clock::{Clock, WallClock};
use braid_env::fs::{FileSystem, MemFs};
use braid_env::tasks::SeededTasks;
use braid_lsm::{
    Batch, CommitTs, CompactionReason, Db, Durability, KeySpan, Metrics, Options, ScanOptions,
};

const ROWS: u64 = 120_000;

fn key(n: u64) -> Vec<u8> {
    format!("family/{n:08}").into_bytes()
}

/// A store with many ssts on the lowest two levels, and the tasks that it queued.
fn filled() -> (Db, Arc<SeededTasks>) {
    let tasks = Arc::new(SeededTasks::new(7));
    let options = Options {
        ballast_size: 0,
        memtable_size: 1 << 20,
        wal_segment_size: 1 << 20,
        target_sst_size: 128 << 10,
        base_level_size: 1 << 20,
        flush_split_bytes: 256 << 10,
        tasks: Some(tasks.clone()),
        ..Options::default()
    };
    let db = Db::open(Arc::new(MemFs::new()), Path::new("/store"), options).unwrap();
    let mut random = braid_env::random::Random::seeded(3);
    let mut value = vec![0; 100];
    for ts in 1..=ROWS / 100 {
        let mut batch = Batch::at(CommitTs(ts));
        for i in 0..100 {
            random.fill(&mut value);
            batch.put(&key((ts - 1) * 100 + i), &value);
        }
        db.write(batch, Durability::Buffered).unwrap();
        tasks.run_one();
    }
    db.flush().unwrap();
    tasks.run_all();
    (db, tasks)
}

fn bytes(metrics: &Metrics) -> u64 {
    metrics.levels.iter().map(|level| level.bytes).sum()
}

fn written(metrics: &Metrics) -> u64 {
    metrics.flush_bytes + metrics.compaction_bytes_out
}

/// Rows of a full scan, and the blocks it looked at.
fn scan(db: &Db, ts: u64) -> (u64, u64) {
    let view = db.view(CommitTs(ts)).unwrap();
    let mut scan = view.scan(KeySpan::all(), ScanOptions::default()).unwrap();
    let mut rows = 0;
    while scan.next_row().unwrap().is_some() {
        rows += 1;
    }
    (rows, scan.stats().blocks_read)
}

#[test]
fn a_deleted_span_is_given_back_unread_when_the_threshold_passes() {
    let (db, tasks) = filled();
    let (first, last) = (50, ROWS - 50);
    let before = db.metrics();
    let files: usize = before.levels.iter().map(|level| level.files).sum();
    assert!(files > 60, "{before:?}");
    let old = db.view(CommitTs(5_000)).unwrap();
    let ts = 10_000;
    let mut batch = Batch::at(CommitTs(ts));
    batch.delete_span(&key(first), &key(last));
    db.write(batch, Durability::Sync).unwrap();
    let (rows, blocks) = scan(&db, ts);
    assert_eq!(rows, 100);
    assert!(blocks <= 20, "{blocks} blocks");

    // The tombstone is still in the memtable: passing it gets it out of there.
    db.set_gc_threshold(CommitTs(ts)).unwrap();
    tasks.run_all();
    let after = db.metrics();
    assert!(bytes(&after) < bytes(&before) / 50, "{} of {}", bytes(&after), bytes(&before));
    let wrote = written(&after) - written(&before);
    assert!(wrote < 1 << 20, "{wrote} bytes written");
    let unread = after.reason(CompactionReason::DeleteOnly);
    assert!(unread.dropped_ssts as usize > files - 10, "{unread:?}");
    assert_eq!(after.compaction_bytes_in - before.compaction_bytes_in, 0, "nothing was read");
    let (rows, blocks) = scan(&db, ts);
    assert_eq!(rows, 100);
    assert!(blocks <= 20, "{blocks} blocks");
    let tombstones = db.metrics().levels.iter().map(|level| level.files).sum::<usize>();
    assert!(tombstones <= 4, "the tombstone is gone as well: {after:?}");
    // Who looked before still sees everything.
    assert!(old.get(&key(ROWS / 2)).unwrap().is_some());
}

#[test]
fn many_tombstones_side_by_side_and_on_each_other_drop_files_together() {
    let (db, tasks) = filled();
    let before = db.metrics();
    for n in 0..40u64 {
        let mut batch = Batch::at(CommitTs(10_000 + n));
        batch.delete_span(&key(n * ROWS / 40), &key((n + 1) * ROWS / 40 + n));
        db.write(batch, Durability::Buffered).unwrap();
        if n % 10 == 0 {
            db.flush().unwrap();
        }
    }
    // Half of them are past the threshold.
    db.set_gc_threshold(CommitTs(10_019)).unwrap();
    tasks.run_all();
    let half = bytes(&db.metrics());
    assert!(half < bytes(&before) * 6 / 10 && half > bytes(&before) * 4 / 10, "{half}");
    db.set_gc_threshold(CommitTs(10_039)).unwrap();
    tasks.run_all();
    let after = db.metrics();
    assert!(bytes(&after) < 1_000, "{after:?}");
    assert!(written(&after) - written(&before) < 1 << 20);
    assert_eq!(scan(&db, 20_000).0, 0);
}

#[test]
fn rows_that_came_later_survive_what_was_deleted_before_them() {
    let (db, tasks) = filled();
    let mut batch = Batch::at(CommitTs(10_000));
    batch.delete_span(&key(0), &key(ROWS));
    db.write(batch, Durability::Buffered).unwrap();
    let mut batch = Batch::at(CommitTs(10_001));
    for n in (0..ROWS).step_by(1_000) {
        batch.put(&key(n), b"again");
    }
    db.write(batch, Durability::Buffered).unwrap();
    db.set_gc_threshold(CommitTs(10_001)).unwrap();
    tasks.run_all();
    assert_eq!(scan(&db, 20_000).0, ROWS / 1_000);
    assert!(bytes(&db.metrics()) < 200_000, "{:?}", db.metrics());
}

#[test]
fn the_manual_tool_drops_what_a_store_without_compactions_keeps() {
    let (db, _tasks) = filled();
    let files: usize = db.metrics().levels.iter().map(|level| level.files).sum();
    let mut batch = Batch::at(CommitTs(10_000));
    batch.delete_span(&key(0), &key(ROWS));
    db.write(batch, Durability::Buffered).unwrap();
    let all = KeySpan::all();
    assert_eq!(db.delete_files_in_range(&all).unwrap(), (0, 0), "history is still wanted");
    db.set_gc_threshold(CommitTs(10_000)).unwrap();
    let half = KeySpan::new(key(0), key(ROWS / 2));
    let (ssts, freed) = db.delete_files_in_range(&half).unwrap();
    assert!(ssts as usize > files / 3 && freed > 4 << 20, "{ssts} of {files}, {freed} bytes");
    assert_eq!(scan(&db, 20_000).0, 0);
}

/// Full scan, delete, full scan, threshold, full scan, with what each of them did.
#[test]
fn a_long_span_costs_no_more_than_a_short_one() {
    let rows: u64 =
        std::env::var("BRAID_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(200_000);
    let tasks = Arc::new(SeededTasks::new(11));
    let fs = MemFs::new();
    let scale = if rows > 1_000_000 { 1 } else { 32 };
    let options = Options {
        ballast_size: 0,
        memtable_size: (32 << 20) / scale as usize,
        target_sst_size: (8 << 20) / scale,
        base_level_size: (64 << 20) / scale,
        flush_split_bytes: (8 << 20) / scale,
        tasks: Some(tasks.clone()),
        ..Options::default()
    };
    let db = Db::open(Arc::new(fs.clone()), Path::new("/store"), options).unwrap();
    // Four passes over the keys: their ssts overlap, and have to be merged.
    let mut random = braid_env::random::Random::seeded(5);
    let mut value = vec![0; 100];
    let order: Vec<u64> = (0..4).flat_map(|pass| (pass..rows).step_by(4)).collect();
    for (batch_no, numbers) in order.chunks(500).enumerate() {
        let mut batch = Batch::at(CommitTs(1 + batch_no as u64));
        for n in numbers {
            random.fill(&mut value);
            batch.put(&key(*n), &value);
        }
        db.write(batch, Durability::Buffered).unwrap();
        tasks.run_one();
    }
    db.flush().unwrap();
    tasks.run_all();

    let ssts =
        || fs.list(Path::new("/store")).unwrap().iter().filter(|n| n.ends_with(".sst")).count();
    let (before, files_before) = (db.metrics(), ssts());
    let ts = 1 + rows;
    let look = |what: &str| {
        let start = WallClock.monotonic_nanos();
        let (found, blocks) = scan(&db, ts);
        let millis = (WallClock.monotonic_nanos() - start) as f64 / 1e6;
        println!("{what}: {found} rows, {blocks} blocks, {millis:.2} ms");
        (found, blocks)
    };
    assert_eq!(look("full scan").0, rows);
    let (first, last) = (rows / 1_000, rows - rows / 1_000);
    let start = WallClock.monotonic_nanos();
    let mut batch = Batch::at(CommitTs(ts));
    batch.delete_span(&key(first), &key(last));
    db.write(batch, Durability::Sync).unwrap();
    let micros = (WallClock.monotonic_nanos() - start) / 1_000;
    println!("deleted {} of {rows} rows in {micros} us", last - first);
    let span = KeySpan::new(key(first), key(last));
    let inside = |what: &str| {
        let view = db.view(CommitTs(ts)).unwrap();
        let mut scan = view.scan(span.clone(), ScanOptions::default()).unwrap();
        assert!(scan.next_row().unwrap().is_none());
        let blocks = scan.stats().blocks_read;
        println!("{what}: {blocks} blocks");
        blocks
    };
    assert!(inside("scan of the deleted span") <= 20);
    // What is left of the store is read as before.
    assert_eq!(look("full scan after the delete").0, rows - (last - first));

    let start = WallClock.monotonic_nanos();
    db.set_gc_threshold(CommitTs(ts)).unwrap();
    tasks.run_all();
    let millis = (WallClock.monotonic_nanos() - start) / 1_000_000;
    let (after, files_after) = (db.metrics(), ssts());
    let wrote = written(&after) - written(&before);
    println!(
        "threshold passed: {} MB in {files_before} files became {} KB in {files_after} files \
         ({} KB of dead parts) in {millis} ms; flushes and compactions wrote {} KB and read {} KB",
        bytes(&before) >> 20,
        bytes(&after) >> 10,
        after.garbage_bytes >> 10,
        wrote >> 10,
        (after.compaction_bytes_in - before.compaction_bytes_in) >> 10
    );
    assert!(bytes(&after) < bytes(&before) / 100, "{after:?}");
    // Two edges of the span, and no more than one file at each on each level.
    assert!(files_after <= 4 + 2 * before.levels.iter().filter(|l| l.files > 0).count());
    assert!(wrote < 2 << 20, "{wrote} bytes written");
    assert!(inside("scan of the deleted span") <= 20);
    assert_eq!(look("full scan at the end").0, rows - (last - first));
}
