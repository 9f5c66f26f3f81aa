//! How much work reads do: what a range tombstone hides must not be looked at.

use std::path::Path;
use std::sync::Arc;

use braid_env::fs::MemFs;
use braid_lsm::{Batch, CommitTs, Db, Durability, KeySpan, Options, ScanOptions, ScanStats};

const ROWS: u64 = 40_000;

fn open() -> Db {
    open_with(Options::default())
}

/// What was flushed stays where it is.
fn open_without_compactions() -> Db {
    open_with(Options { automatic_compaction: false, ..Options::default() })
}

fn open_with(options: Options) -> Db {
    let options = Options {
        // Two classes: parents end in "/", children do not.
        row_class: |key| u8::from(!key.ends_with(b"/")),
        ballast_size: 0,
        wal_segment_size: 1 << 20,
        ..options
    };
    Db::open(Arc::new(MemFs::new()), Path::new("/store"), options).unwrap()
}

fn key(n: u64) -> Vec<u8> {
    format!("family/{n:08}").into_bytes()
}

fn fill(db: &Db, ts: u64) {
    let mut batch = Batch::at(CommitTs(ts));
    for n in 0..ROWS {
        batch.put(&key(n), &[n as u8; 100]);
    }
    db.write(batch, Durability::Buffered).unwrap();
}

fn delete(db: &Db, ts: u64, from: u64, to: u64) {
    let mut batch = Batch::at(CommitTs(ts));
    batch.delete_span(&key(from), &key(to));
    db.write(batch, Durability::Buffered).unwrap();
}

fn scan(db: &Db, options: ScanOptions) -> (u64, ScanStats) {
    let view = db.view(CommitTs(1_000)).unwrap();
    let mut scan = view.scan(KeySpan::all(), options).unwrap();
    let mut rows = 0;
    while scan.next_row().unwrap().is_some() {
        rows += 1;
    }
    (rows, scan.stats())
}

fn both(db: &Db, expected: u64, place: &str) {
    for reverse in [false, true] {
        let (rows, stats) = scan(db, ScanOptions { reverse, ..ScanOptions::default() });
        assert_eq!(rows, expected);
        assert!(stats.blocks_read <= 20, "{place}, reverse {reverse}: {stats:?}");
        assert!(stats.rows_visited <= expected + 10, "{place}, reverse {reverse}: {stats:?}");
    }
}

#[test]
fn a_scan_does_not_look_at_what_a_tombstone_hides() {
    // Rows and tombstone in the memtable.
    let db = open();
    fill(&db, 1);
    delete(&db, 2, 10, ROWS - 10);
    both(&db, 20, "memtable over memtable");
    // Both in one flush: the sst's own tombstone.
    db.flush().unwrap();
    both(&db, 20, "one sst");
    // Rows at the bottom, tombstone above them.
    let db = open();
    fill(&db, 1);
    db.compact_span(&KeySpan::all()).unwrap();
    delete(&db, 2, 10, ROWS - 10);
    both(&db, 20, "memtable over sst");
    db.flush().unwrap();
    both(&db, 20, "sst over sst");
    // Many tombstones side by side.
    let db = open();
    fill(&db, 1);
    db.compact_span(&KeySpan::all()).unwrap();
    for n in 0..100 {
        delete(&db, 2 + n, n * 400, (n + 1) * 400);
    }
    both(&db, 0, "a hundred tombstones");
}

#[test]
fn a_scan_of_one_class_does_not_read_blocks_without_it() {
    let db = open();
    let mut batch = Batch::at(CommitTs(1));
    for family in 0..20 {
        batch.put(format!("{family:03}/").as_bytes(), b"parent");
        for child in 0..2_000 {
            batch.put(format!("{family:03}/{child:06}").as_bytes(), &[7; 100]);
        }
    }
    db.write(batch, Durability::Buffered).unwrap();
    db.compact_span(&KeySpan::all()).unwrap();
    let (rows, all) = scan(&db, ScanOptions::default());
    assert_eq!(rows, 20 * 2_001);
    for reverse in [false, true] {
        let (rows, parents) =
            scan(&db, ScanOptions { classes: 1, reverse, ..ScanOptions::default() });
        assert_eq!(rows, 20);
        assert!(parents.blocks_read * 5 < all.blocks_read, "{parents:?} of {all:?}");
    }
}

/// Parents with so many children each; all of them were deleted and came again, if asked for.
fn fill_families(db: &Db, parents: u64, children: u64, again: bool) {
    for ts in 1..=if again { 3 } else { 1 } {
        let mut batch = Batch::at(CommitTs(ts));
        for parent in 0..parents {
            if ts == 1 {
                batch.put(&[&key(parent)[..], b"/"].concat(), &[1; 20]);
            }
            for child in 0..children {
                let key = [&key(parent)[..], format!("/{child:06}").as_bytes()].concat();
                match ts {
                    2 => batch.delete(&key),
                    _ => batch.put(&key, &[2; 40]),
                };
            }
        }
        db.write(batch, Durability::Buffered).unwrap();
    }
}

#[test]
fn rows_of_a_long_run_cost_scans_of_others_little() {
    let parents_only = ScanOptions { classes: 1 << 0, ..ScanOptions::default() };
    for again in [false, true] {
        let db = open_without_compactions();
        fill_families(&db, 100, 600, again);
        let (rows, stats) = scan(&db, parents_only.clone());
        assert_eq!(rows, 100);
        // In a memtable some are passed one by one, and then by the upper levels of the list.
        assert!(stats.rows_visited <= 100 * 80, "memtable: {stats:?}");
        db.flush().unwrap();
        let (rows, stats) = scan(&db, parents_only.clone());
        assert_eq!(rows, 100);
        assert_eq!(stats.rows_visited, 100, "{stats:?}");
        let (rows, _) = scan(&db, ScanOptions::default());
        assert_eq!(rows, 100 * 601);
    }
}

#[test]
fn short_runs_share_blocks() {
    let blocks_of = |parents, children| {
        let db = open_without_compactions();
        fill_families(&db, parents, children, false);
        db.flush().unwrap();
        scan(&db, ScanOptions::default()).1.blocks_read
    };
    // As many rows, all of one class.
    let (in_families, alone) = (blocks_of(2_000, 5), blocks_of(12_000, 0));
    assert!(in_families <= alone + alone / 2, "{in_families} blocks, {alone}");
}

#[test]
fn a_range_delete_writes_one_tombstone_and_gc_frees_the_room() {
    let db = open();
    fill(&db, 1);
    db.compact_span(&KeySpan::all()).unwrap();
    let before: u64 = db.metrics().levels.iter().map(|level| level.bytes).sum();
    delete(&db, 2, 0, ROWS);
    assert_eq!(db.metrics().tombstones_written, 1);
    db.set_gc_threshold(CommitTs(2)).unwrap();
    db.compact_span(&KeySpan::all()).unwrap();
    let after: u64 = db.metrics().levels.iter().map(|level| level.bytes).sum();
    assert!(before > 50_000 && after == 0, "{before} {after}");
}

#[test]
fn a_jump_over_children_does_not_visit_them() {
    let db = open();
    let mut batch = Batch::at(CommitTs(1));
    for family in 0..4 {
        batch.put(format!("{family}/").as_bytes(), b"parent");
        for child in 0..20_000 {
            batch.put(format!("{family}/{child:06}").as_bytes(), b"child");
        }
    }
    db.write(batch, Durability::Buffered).unwrap();
    for place in ["memtable", "ssts"] {
        let view = db.view(CommitTs(9)).unwrap();
        let options = ScanOptions { classes: 1, ..ScanOptions::default() };
        let mut scan = view.scan(KeySpan::all(), options).unwrap();
        let mut families = 0;
        while let Some(row) = scan.next_row().unwrap() {
            families += 1;
            scan.seek(&KeySpan::prefix(&row.key).end).unwrap();
        }
        assert_eq!(families, 4, "{place}");
        let stats = scan.stats();
        assert!(stats.rows_visited <= 8 && stats.seeks <= 6, "{place}: {stats:?}");
        drop(view);
        db.flush().unwrap();
    }
}

/// The gap: families erased one after the other, each by a tombstone at its own time, then the
/// first living row. Wherever rows and tombstones lie, they are passed as one.
#[test]
fn tombstones_that_touch_are_passed_as_one() {
    const GONE: u64 = 5_000;
    let erase = |db: &Db, families: std::ops::Range<u64>| {
        for n in families {
            delete(db, 2 + n, n, n + 1);
        }
    };
    let flush = |db: &Db| db.flush().unwrap();
    let bottom = |db: &Db| db.compact_span(&KeySpan::all()).unwrap();
    type Step<'a> = &'a dyn Fn(&Db);
    let nothing: Step<'_> = &|_| {};
    let half = |db: &Db| erase(db, 0..GONE / 2);
    let rest = |db: &Db| erase(db, GONE / 2..GONE);
    let half_flushed = |db: &Db| {
        half(db);
        flush(db);
    };
    let even_flushed = |db: &Db| {
        (0..GONE).step_by(2).for_each(|n| erase(db, n..n + 1));
        flush(db);
    };
    let odd = |db: &Db| (1..GONE).step_by(2).for_each(|n| erase(db, n..n + 1));
    let cases: [(&str, [Step<'_>; 4]); 10] = [
        ("all in the memtable", [nothing, &half, &rest, nothing]),
        ("all in one flush", [nothing, &half, &rest, &flush]),
        ("all at the bottom", [nothing, &half, &rest, &bottom]),
        ("memtable over memtable and L0", [&flush, &half, &rest, nothing]),
        ("memtable over the bottom", [&bottom, &half, &rest, nothing]),
        ("L0 over the bottom", [&bottom, &half, &rest, &flush]),
        ("L0 over L0", [&flush, &half, &rest, &flush]),
        ("memtable beside L0, over the bottom", [&bottom, &half_flushed, &rest, nothing]),
        ("every other one in L0, over the bottom", [&bottom, &even_flushed, &odd, nothing]),
        ("L0 beside L0, over L0", [&flush, &half_flushed, &rest, &flush]),
    ];
    for (place, steps) in cases {
        let db = open_without_compactions();
        fill(&db, 1);
        for step in steps {
            step(&db);
        }
        for classes in [u32::MAX, 0b10] {
            let view = db.view(CommitTs(10_000)).unwrap();
            let options = ScanOptions { classes, limit: Some(1), ..ScanOptions::default() };
            let mut scan = view.scan(KeySpan::all(), options).unwrap();
            assert_eq!(scan.next_row().unwrap().unwrap().key, key(GONE), "{place}");
            let stats = scan.stats();
            assert!(stats.tombstones_passed >= GONE - 20, "{place}: {stats:?}");
            assert!(stats.slabs_parked + stats.seeks <= 24, "{place}: {stats:?}");
            assert!(stats.rows_visited <= 12 && stats.blocks_read <= 24, "{place}: {stats:?}");
        }
        // A read of the time between sees what was there then.
        let view = db.view(CommitTs(2 + 2_999)).unwrap();
        let mut scan = view.scan(KeySpan::all(), ScanOptions::default()).unwrap();
        assert_eq!(scan.next_row().unwrap().unwrap().key, key(3_000), "{place}");
        // A seek into what was passed finds nothing in there either.
        let view = db.view(CommitTs(10_000)).unwrap();
        let mut scan = view.scan(KeySpan::all(), ScanOptions::default()).unwrap();
        for n in [100, 101, 2_000, GONE - 1] {
            scan.seek(&key(n)).unwrap();
        }
        assert_eq!(scan.next_row().unwrap().unwrap().key, key(GONE), "{place}");
    }
}
