//! The space of a deleted span comes back without its rows being read or anything being rewritten.

use std::path::Path;
use std::sync::Arc;

use braid_env::fs::MemFs;
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
