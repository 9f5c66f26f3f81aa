//! Opening after many crashes stays quick: what was replayed is flushed, so old segments go; and
//! background work gets on although a crash always comes before long.

#[allow(dead_code)]
mod support;

use std::sync::Arc;

use braid_env::fs::{CrashPolicy, FileSystem, MemFs};
use braid_env::random::Random;
use braid_env::tasks::SeededTasks;
use braid_lsm::{Batch, CommitTs, Durability, KeySpan, ScanOptions};
use support::options;
use support::workload::{collect, dir, open_on};

/// Writes `batches` of 100 bytes per round, never closes, and opens what a crash leaves.
fn killed_again_and_again(rounds: u64, batches: u64, set: usize) -> (usize, u64) {
    let mut fs = MemFs::new();
    let mut most_segments = 0;
    let mut ts = 0;
    for round in 0..rounds {
        let tasks = Arc::new(SeededTasks::new(round));
        let db = open_on(Arc::new(fs.clone()), options::set(set, tasks.clone())).unwrap();
        tasks.run_all();
        let view = db.view(CommitTs(u64::MAX - 1)).unwrap();
        let all = view.scan(KeySpan::all(), ScanOptions::default());
        assert_eq!(collect(&mut all.unwrap()).unwrap().len() as u64, ts, "round {round}");
        for _ in 0..batches {
            ts += 1;
            let mut batch = Batch::at(CommitTs(ts));
            batch.put(format!("{ts:06}").as_bytes(), &[7; 100]);
            db.write(batch, Durability::Sync).unwrap();
        }
        let names = fs.list(dir()).unwrap();
        let segments = names.iter().filter(|name| name.ends_with(".wal")).count();
        most_segments = most_segments.max(segments);
        let mut random = Random::seeded(round);
        fs = fs.crash_clone(&mut random, CrashPolicy::LoseAll);
    }
    (most_segments, ts)
}

#[test]
fn segments_do_not_pile_up_over_crashes() {
    // Little per round: only the number of segments asks for a flush.
    let (segments, _) = killed_again_and_again(30, 3, 0);
    assert!(segments <= 4, "{segments} segments");
    // Several memtables per round.
    let (segments, rows) = killed_again_and_again(8, 150, 2);
    assert!(rows == 1_200 && segments < 60, "{segments} segments");
}

/// Buffered batches over many small segments, synced now and then; what a crash leaves is a prefix
/// with everything that was synced. Counts crashes that left segments begun ahead of durability.
#[test]
fn a_segment_begun_before_the_last_was_durable_never_outlives_it() {
    let (mut left_ahead, mut cut_off) = (0, 0);
    for seed in 0..300 {
        let mut random = Random::seeded(seed);
        let mut fs = MemFs::new();
        let (mut durable, mut ts) = (0, 0);
        for round in 0..3 {
            let tasks = Arc::new(SeededTasks::new(seed));
            let small = braid_lsm::Options {
                memtable_size: 64 << 20,
                wal_segment_size: 2 << 10,
                ..options::set(0, tasks.clone())
            };
            let db = open_on(Arc::new(fs.clone()), small).unwrap();
            tasks.run_all();
            let view = db.view(CommitTs(u64::MAX - 1)).unwrap();
            let rows = collect(&mut view.scan(KeySpan::all(), ScanOptions::default()).unwrap());
            let rows = rows.unwrap();
            let first_lost = (1..).zip(&rows).find(|(ts, row)| row.2 != *ts);
            assert!(first_lost.is_none(), "seed {seed} round {round}: a hole at {first_lost:?}");
            let have = rows.len() as u64;
            assert!((durable..=ts).contains(&have), "seed {seed}: {durable} <= {have} <= {ts}");
            cut_off += u64::from(have < ts);
            (durable, ts) = (have, have);
            for _ in 0..random.below(120) {
                ts += 1;
                let mut batch = Batch::at(CommitTs(ts));
                batch.put(format!("{ts:06}").as_bytes(), &[7; 100]);
                let sync = random.below(40) == 0;
                let durability = if sync { Durability::Sync } else { Durability::Buffered };
                db.write(batch, durability).unwrap();
                durable = if sync { ts } else { durable };
            }
            let policy = match random.below(4) {
                0 => CrashPolicy::LoseAll,
                1 => CrashPolicy::KeepAll,
                2 => CrashPolicy::LoseNames,
                _ => CrashPolicy::Random(50),
            };
            fs = fs.crash_clone(&mut random, policy);
            let names = fs.list(dir()).unwrap();
            left_ahead += u64::from(names.iter().any(|name| name.ends_with(".ahead")));
        }
    }
    assert!(left_ahead > 100 && cut_off > 100, "{left_ahead} ahead, {cut_off} cut off");
}

#[test]
fn a_long_log_is_replayed_into_several_memtables() {
    let fs = MemFs::new();
    // A store that flushes nothing leaves all of its log behind.
    let tasks = Arc::new(SeededTasks::new(1));
    let writer = braid_lsm::Options {
        memtable_size: 64 << 20,
        wal_segment_size: 4 << 10,
        ..options::set(0, tasks)
    };
    let db = open_on(Arc::new(fs.clone()), writer).unwrap();
    for ts in 1..=1_000 {
        let mut batch = Batch::at(CommitTs(ts));
        batch.put(format!("{:03}", ts % 300).as_bytes(), &ts.to_le_bytes());
        if ts % 100 == 0 {
            batch.delete_span(b"100", b"150");
        }
        db.write(batch, Durability::Sync).unwrap();
    }
    db.close().unwrap();
    drop(db);
    let tasks = Arc::new(SeededTasks::new(1));
    let reader = braid_lsm::Options { memtable_size: 10 << 10, ..options::set(0, tasks.clone()) };
    let db = open_on(Arc::new(fs.clone()), reader.clone()).unwrap();
    assert!(db.metrics().immutable_memtables > 3, "{:?}", db.metrics());
    let read = |db: &braid_lsm::Db| {
        let view = db.view(CommitTs(u64::MAX - 1)).unwrap();
        collect(&mut view.scan(KeySpan::all(), ScanOptions::default()).unwrap()).unwrap()
    };
    let rows = read(&db);
    assert_eq!(rows.len(), 250);
    assert!(rows.iter().all(|(key, value, ts)| {
        let n: u64 = String::from_utf8(key.clone()).unwrap().parse().unwrap();
        ts % 300 == n && *value == ts.to_le_bytes()
    }));
    tasks.run_all();
    assert_eq!(db.metrics().immutable_memtables, 0);
    assert_eq!(read(&db), rows);
    db.close().unwrap();
    drop(db);
    let names = fs.list(dir()).unwrap();
    let segments = names.iter().filter(|name| name.ends_with(".wal")).count();
    assert!(segments <= 3, "the old segments are gone: {names:?}");
    assert_eq!(read(&open_on(Arc::new(fs), reader).unwrap()), rows);
}

/// Half a segment before it is needed, the next one is made, by background work if that gets there
/// first; either way nothing is lost.
#[test]
fn the_next_segment_is_made_before_it_is_needed() {
    for runs in [true, false] {
        let fs = MemFs::new();
        let tasks = Arc::new(SeededTasks::new(1));
        let mut options = options::set(0, tasks.clone());
        (options.wal_segment_size, options.memtable_size) = (16 << 10, 1 << 20);
        let db = open_on(Arc::new(fs.clone()), options).unwrap();
        tasks.run_all();
        let ahead = |fs: &MemFs| {
            let names = fs.list(dir()).unwrap();
            names.iter().filter(|name| name.ends_with(".ahead")).count()
        };
        let put = |ts: u64| {
            let mut batch = Batch::at(CommitTs(ts));
            batch.put(format!("{ts:06}").as_bytes(), &[7; 100]);
            db.write(batch, Durability::Buffered).unwrap();
        };
        (1..=90).for_each(put);
        assert_eq!(ahead(&fs), 0, "no writer made it");
        if runs {
            tasks.run_all();
            assert_eq!(ahead(&fs), 1, "background work did");
        }
        (91..=250).for_each(put);
        db.close().unwrap();
        let again = Arc::new(SeededTasks::new(2));
        let db = open_on(Arc::new(fs), options::set(0, again)).unwrap();
        let view = db.view(CommitTs(u64::MAX - 1)).unwrap();
        let all = view.scan(KeySpan::all(), ScanOptions::default());
        assert_eq!(collect(&mut all.unwrap()).unwrap().len(), 250);
    }
}

/// A store whose L0 is as deep as writers may make it, with much under it: twenty passes over all
/// keys, each a sublevel of wide ssts.
fn a_deep_l0(options: &dyn Fn(Arc<SeededTasks>) -> braid_lsm::Options) -> MemFs {
    let (fs, tasks) = (MemFs::new(), Arc::new(SeededTasks::new(1)));
    let by_hand = braid_lsm::Options {
        automatic_compaction: false,
        target_sst_size: 1 << 20,
        ..options(tasks)
    };
    let db = open_on(Arc::new(fs.clone()), by_hand).unwrap();
    let mut ts = 0;
    let mut pass = |step: usize, tag: u8| {
        for n in (0..2_000).step_by(step) {
            ts += 1;
            let mut batch = Batch::at(CommitTs(ts));
            batch.put(format!("{n:06}").as_bytes(), &[tag; 100]);
            db.write(batch, Durability::Buffered).unwrap();
        }
        db.flush().unwrap();
    };
    pass(1, 0);
    db.compact_span(&KeySpan::all()).unwrap();
    (1..=20).for_each(|tag| pass(7, tag));
    assert_eq!(db.metrics().l0_runs, 20);
    db.close().unwrap();
    drop(db);
    fs
}

/// Opens it again and again, each time for so few changes of the disk that a compaction of all of
/// it would never end. L0 must become shallow nevertheless.
#[test]
fn a_deep_l0_drains_though_a_crash_always_comes_soon() {
    let options = |tasks: Arc<SeededTasks>| braid_lsm::Options {
        memtable_size: 1 << 20,
        wal_segment_size: 1 << 10,
        codec: braid_lsm::Codec::None,
        bottom_codec: braid_lsm::Codec::None,
        block_size: 500,
        target_sst_size: 8 << 10,
        flush_split_bytes: 1 << 20,
        base_level_size: 64 << 10,
        compaction_unit_bytes: 32 << 10,
        compaction_slots: 1,
        // No writer does background work.
        l0_slow_sublevels: 90,
        l0_stop_sublevels: 100,
        ..options::set(0, tasks)
    };
    let mut fs = a_deep_l0(&options);
    let (mut depths, mut ts) = (vec![20], 1_000_000);
    for round in 0..40 {
        let tasks = Arc::new(SeededTasks::new(round));
        let db = open_on(Arc::new(fs.clone()), options(tasks.clone())).unwrap();
        // A few writes, whose log the next open flushes.
        for n in [round, 1_000 + round] {
            ts += 1;
            let mut batch = Batch::at(CommitTs(ts));
            batch.put(format!("{n:06}").as_bytes(), &[99; 100]);
            db.write(batch, Durability::Sync).unwrap();
        }
        fs.arm_crash(40, Random::seeded(round), CrashPolicy::LoseAll);
        tasks.run_all();
        fs = match fs.take_crash() {
            Some(left) => left,
            None => fs.crash_clone(&mut Random::seeded(round), CrashPolicy::LoseAll),
        };
        let tasks = Arc::new(SeededTasks::new(round));
        let idle = braid_lsm::Options { automatic_compaction: false, ..options(tasks) };
        let copy = fs.crash_clone(&mut Random::seeded(1), CrashPolicy::LoseAll);
        let db = open_on(Arc::new(copy), idle).unwrap();
        depths.push(db.metrics().l0_runs);
        let view = db.view(CommitTs(u64::MAX - 1)).unwrap();
        let all = view.scan(KeySpan::all(), ScanOptions::default());
        let rows = collect(&mut all.unwrap()).unwrap();
        assert_eq!(rows.len(), 2_000, "round {round}");
        for (n, (_, value, _)) in rows.iter().enumerate() {
            let n = n as u64;
            let is_written = n <= round || (1_000..=1_000 + round).contains(&n);
            let tag = if is_written { 99 } else { 20 * u8::from(n.is_multiple_of(7)) };
            assert_eq!(*value, [tag; 100], "round {round}, row {n}");
        }
    }
    assert!(depths.iter().all(|depth| *depth <= 22), "{depths:?}");
    assert!(depths[30..].iter().all(|depth| *depth <= 2), "it does not get on: {depths:?}");
}
