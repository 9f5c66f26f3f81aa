//! The public interface, one story per test.

use std::path::Path;
use std::sync::Arc;

use braid_env::clock::ManualClock;
use braid_env::fs::{DiskFs, MemFs};
use braid_lsm::{Batch, CommitTs, Db, Durability, Error, KeySpan, Options, ScanOptions};

fn open(fs: &MemFs) -> Db {
    Db::open(Arc::new(fs.clone()), Path::new("/store"), Options::default()).unwrap()
}

fn put(db: &Db, ts: u64, key: &str, value: &str) {
    let mut batch = Batch::at(CommitTs(ts));
    batch.put(key.as_bytes(), value.as_bytes());
    db.write(batch, Durability::Sync).unwrap();
}

fn delete_span(db: &Db, ts: u64, start: &str, end: &str) {
    let mut batch = Batch::at(CommitTs(ts));
    batch.delete_span(start.as_bytes(), end.as_bytes());
    db.write(batch, Durability::Sync).unwrap();
}

fn get(db: &Db, ts: u64, key: &str) -> Option<String> {
    let value = db.view(CommitTs(ts)).unwrap().get(key.as_bytes()).unwrap();
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn keys(db: &Db, ts: u64, span: KeySpan, reverse: bool) -> Vec<String> {
    let view = db.view(CommitTs(ts)).unwrap();
    let mut scan = view.scan(span, ScanOptions { reverse, ..Default::default() }).unwrap();
    let mut found = Vec::new();
    while let Some(row) = scan.next_row().unwrap() {
        found.push(String::from_utf8(row.key.to_vec()).unwrap());
    }
    found
}

#[test]
fn a_span_delete_hides_older_rows_at_its_time_and_later() {
    let db = open(&MemFs::new());
    for (ts, key) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        put(&db, ts, key, key);
    }
    delete_span(&db, 5, "b", "d");
    put(&db, 6, "c", "again");
    assert_eq!(keys(&db, 4, KeySpan::all(), false), ["a", "b", "c", "d"]);
    assert_eq!(keys(&db, 5, KeySpan::all(), false), ["a", "d"]);
    assert_eq!(keys(&db, 6, KeySpan::all(), false), ["a", "c", "d"]);
    assert_eq!(keys(&db, 6, KeySpan::all(), true), ["d", "c", "a"]);
    assert_eq!(keys(&db, 6, KeySpan::new("b", "d"), true), ["c"]);
    assert_eq!(get(&db, 5, "c"), None);
    assert_eq!(get(&db, 9, "c").as_deref(), Some("again"));
    let view = db.view(CommitTs(9)).unwrap();
    assert_eq!(view.covering_tombstone_ts(b"b").unwrap(), Some(CommitTs(5)));
    assert_eq!(db.max_ts(b"c").unwrap(), CommitTs(6));
    assert_eq!(db.max_ts_in_span(&KeySpan::new("b", "c")).unwrap(), CommitTs(5));
    assert_eq!(db.newest_above(&KeySpan::all(), CommitTs(6)).unwrap(), None);
}

#[test]
fn a_view_does_not_change_and_a_batch_is_atomic() {
    let db = open(&MemFs::new());
    put(&db, 1, "a", "old");
    let view = db.view(CommitTs(100)).unwrap();
    let mut batch = Batch::at(CommitTs(2));
    batch.put(b"a", b"new");
    batch.put(b"b", b"new");
    db.write(batch, Durability::Buffered).unwrap();
    assert_eq!(view.get(b"a").unwrap().as_deref(), Some(&b"old"[..]));
    assert_eq!(view.get(b"b").unwrap(), None);
    assert_eq!(get(&db, 2, "b").as_deref(), Some("new"));
}

#[test]
fn writes_in_the_past_are_refused_and_change_nothing() {
    let db = open(&MemFs::new());
    put(&db, 10, "a", "x");
    let mut batch = Batch::at(CommitTs(5));
    batch.put(b"b", b"fine");
    batch.put(b"a", b"too old");
    let error = db.write(batch, Durability::Sync).unwrap_err();
    assert!(matches!(error, Error::TimestampContract { have: CommitTs(10), .. }), "{error}");
    assert_eq!(get(&db, 99, "b"), None);
    put(&db, 5, "b", "other keys have their own order");
    let mut batch = Batch::at(CommitTs(10));
    batch.delete_span(b"a", b"b");
    assert!(db.write(batch, Durability::Sync).is_err(), "a tombstone must be newer than points");
    delete_span(&db, 11, "a", "b");
    db.set_gc_threshold(CommitTs(50)).unwrap();
    assert!(matches!(db.view(CommitTs(49)), Err(Error::BelowGcThreshold { .. })));
    let mut batch = Batch::at(CommitTs(50));
    batch.put(b"z", b"");
    assert!(db.write(batch, Durability::Sync).is_err());
}

#[test]
fn everything_is_there_after_open_and_the_directory_is_locked() {
    let fs = MemFs::new();
    {
        let db = open(&fs);
        put(&db, 1, "a", "1");
        put(&db, 2, "b", "2");
        delete_span(&db, 3, "a", "b");
        let second = Db::open(Arc::new(fs.clone()), Path::new("/store"), Options::default());
        assert!(matches!(second, Err(Error::DirectoryInUse(_))));
    }
    for _ in 0..3 {
        let db = open(&fs);
        assert_eq!(get(&db, 9, "a"), None);
        assert_eq!(get(&db, 9, "b").as_deref(), Some("2"));
        assert_eq!(db.last_commit_ts(), CommitTs(3));
        db.close().unwrap();
        assert!(matches!(db.view(CommitTs(9)), Err(Error::Closed)));
    }
}

#[test]
fn a_scan_jumps_forward_and_backward() {
    let db = open(&MemFs::new());
    for i in 0..100 {
        put(&db, i + 1, &format!("k{i:02}"), "");
    }
    let view = db.view(CommitTs(1000)).unwrap();
    let mut scan = view.scan(KeySpan::all(), ScanOptions::default()).unwrap();
    assert_eq!(scan.next_row().unwrap().unwrap().key.as_ref(), b"k00");
    scan.seek(b"k50").unwrap();
    assert_eq!(scan.next_row().unwrap().unwrap().key.as_ref(), b"k50");
    scan.seek(b"k10").unwrap();
    assert_eq!(scan.next_row().unwrap().unwrap().key.as_ref(), b"k51");
    scan.seek(b"k51").unwrap();
    assert_eq!(scan.next_batch(10, 1 << 20).unwrap().key(0), b"k52");
    let options = ScanOptions { reverse: true, limit: Some(2), ..Default::default() };
    let mut scan = view.scan(KeySpan::all(), options).unwrap();
    assert_eq!(scan.next_row().unwrap().unwrap().key.as_ref(), b"k99");
    scan.seek(b"k50").unwrap();
    assert_eq!(scan.next_row().unwrap().unwrap().key.as_ref(), b"k49");
    assert_eq!(scan.next_row().unwrap(), None);
}

#[test]
fn the_longest_keys_and_long_values_survive_every_layer() {
    let fs = MemFs::new();
    let db = open(&fs);
    let long_key = |byte: u8| {
        let mut key = vec![b'k'; braid_lsm::MAX_KEY_LEN];
        key[braid_lsm::MAX_KEY_LEN - 1] = byte;
        key
    };
    let mut batch = Batch::at(CommitTs(1));
    for byte in 0..40 {
        batch.put(&long_key(byte), &[byte]);
    }
    batch.put(b"value", &vec![7; 9 << 20]);
    batch.put(b"", b"the empty key");
    db.write(batch, Durability::Sync).unwrap();
    let mut batch = Batch::at(CommitTs(2));
    batch.put(&vec![b'k'; braid_lsm::MAX_KEY_LEN + 1], b"");
    assert!(matches!(db.write(batch, Durability::Sync), Err(Error::TooLarge { .. })));
    let check = |db: &Db| {
        let view = db.view(CommitTs(5)).unwrap();
        for byte in 0..40 {
            assert_eq!(view.get(&long_key(byte)).unwrap().unwrap(), &[byte][..]);
        }
        assert_eq!(view.get(b"value").unwrap().unwrap().len(), 9 << 20);
        assert_eq!(view.get(b"").unwrap().unwrap(), &b"the empty key"[..]);
        let all =
            view.scan(KeySpan::all(), ScanOptions::default()).unwrap().next_batch(99, 1 << 30);
        assert_eq!(all.unwrap().len(), 42);
    };
    check(&db);
    db.close().unwrap();
    let db = open(&fs);
    check(&db);
    db.flush().unwrap();
    check(&db);
    db.compact_span(&KeySpan::all()).unwrap();
    check(&db);
}

#[test]
fn a_long_chain_of_versions_is_read_in_both_directions() {
    let db = open(&MemFs::new());
    for ts in 1..=30_000u64 {
        let mut batch = Batch::at(CommitTs(ts));
        batch.put(b"m", &ts.to_le_bytes());
        drop(db.apply(batch).unwrap());
    }
    put(&db, 30_001, "a", "first");
    put(&db, 30_002, "z", "last");
    for round in 0..2 {
        for ts in [1, 2, 4_096, 4_097, 15_000, 29_999, 30_000] {
            assert_eq!(keys(&db, ts, KeySpan::all(), false), ["m"], "round {round}");
            assert_eq!(keys(&db, ts, KeySpan::all(), true), ["m"], "round {round}");
            let view = db.view(CommitTs(ts)).unwrap();
            assert_eq!(view.get(b"m").unwrap().unwrap(), &ts.to_le_bytes()[..]);
        }
        assert_eq!(keys(&db, 40_000, KeySpan::all(), true), ["z", "m", "a"]);
        assert_eq!(keys(&db, 40_000, KeySpan::all(), false), ["a", "m", "z"]);
        db.flush().unwrap();
    }
}

#[test]
fn a_real_directory_works_as_the_one_in_memory() {
    let dir = std::env::temp_dir().join(format!("braid-lsm-basics-{}", std::process::id()));
    let options =
        || Options { memtable_size: 64 << 10, ballast_size: 1 << 20, ..Options::default() };
    let open = || Db::open(DiskFs::shared(), &dir, options());
    let db = open().unwrap();
    assert!(matches!(open(), Err(Error::DirectoryInUse(_))));
    for ts in 1..=400u64 {
        let mut batch = Batch::at(CommitTs(ts));
        for n in 0..10 {
            batch.put(format!("{:04}", (ts * 37 + n * 13) % 1_000).as_bytes(), &[ts as u8; 100]);
        }
        if ts % 50 == 0 {
            batch.delete_span(b"01", b"02");
        }
        db.write(batch, Durability::Buffered).unwrap();
    }
    let before = keys(&db, 400, KeySpan::all(), false);
    db.compact_span(&KeySpan::all()).unwrap();
    assert!(db.metrics().flushes > 2, "{:?}", db.metrics());
    db.close().unwrap();
    drop(db);
    let report = braid_lsm::check_store(DiskFs::shared(), &dir).unwrap();
    assert!(report.problems.is_empty() && report.rows > 500, "{report:?}");
    let db = open().unwrap();
    assert_eq!(keys(&db, 400, KeySpan::all(), false), before);
    let mut backwards = keys(&db, 400, KeySpan::all(), true);
    backwards.reverse();
    assert_eq!(backwards, before);
    drop(db);
    let fs = DiskFs::shared();
    for name in fs.list(&dir).unwrap() {
        fs.remove(&dir.join(name)).unwrap();
    }
}

#[test]
fn writers_wait_for_background_work_instead_of_filling_memory() {
    let tasks = Arc::new(braid_env::tasks::SeededTasks::new(1));
    let options = Options {
        memtable_size: 4 << 10,
        max_immutable_memtables: 2,
        l0_stop_sublevels: 3,
        l0_compaction_sublevels: 2,
        l0_slow_sublevels: 2,
        clock: Arc::new(ManualClock::at_micros(1)),
        ballast_size: 0,
        wal_segment_size: 16 << 10,
        tasks: Some(tasks.clone()),
        ..Options::default()
    };
    let db = Db::open(Arc::new(MemFs::new()), Path::new("/store"), options).unwrap();
    // Nobody but the writer itself runs background tasks here.
    for ts in 1..=2_000u64 {
        let mut batch = Batch::at(CommitTs(ts));
        batch.put(&ts.to_be_bytes(), &[1; 100]);
        drop(db.apply(batch).unwrap());
        let metrics = db.metrics();
        assert!(metrics.immutable_memtables <= 2 && metrics.memtable_bytes < 32 << 10);
        assert!(metrics.l0_runs <= 3, "{metrics:?}");
    }
    assert_eq!(keys_len(&db), 2_000);
}

fn keys_len(db: &Db) -> usize {
    let view = db.view(CommitTs(u64::MAX - 1)).unwrap();
    let mut scan = view.scan(KeySpan::all(), ScanOptions::default()).unwrap();
    let mut rows = 0;
    while scan.next_row().unwrap().is_some() {
        rows += 1;
    }
    rows
}

#[test]
fn a_memtable_is_written_out_once_nobody_writes() {
    let db = open(&MemFs::new());
    let fill = |ts: u64, rows: u64| {
        let mut batch = Batch::at(CommitTs(ts));
        for row in 0..rows {
            batch.put(format!("{ts:03}/{row:06}").as_bytes(), &[7; 100]);
        }
        db.write(batch, Durability::Buffered).unwrap();
    };
    // Not worth it.
    fill(1, 100);
    assert!(!db.flush_if_idle() && !db.flush_if_idle());
    // Somebody writes between any two looks.
    for ts in 2..6 {
        fill(ts, 10_000);
        assert!(!db.flush_if_idle());
    }
    put(&db, 6, "bookkeeping", "is next to nothing");
    assert!(db.flush_if_idle());
    db.flush().unwrap();
    let flushed = db.metrics();
    assert_eq!(flushed.flushes, 1);
    // It is empty now.
    assert!(!db.flush_if_idle() && !db.flush_if_idle());
    let view = db.view(CommitTs(9)).unwrap();
    let scan = view.scan(KeySpan::all(), ScanOptions::default()).unwrap();
    let rows = { scan }.next_batch(usize::MAX, usize::MAX).unwrap().len();
    assert_eq!(rows, 100 + 4 * 10_000 + 1);
}
