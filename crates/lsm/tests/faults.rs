//! Devices that fail, fill up and change bytes behind our back.
//!
//! * *Single faults*: a script of writes, flushes and compactions runs once to count its calls of
//!   the file system; then once per call, with that call failing (`EIO`, `ENOSPC` or half of a
//!   write). Nothing may be answered wrongly, and after a reopen everything that was reported
//!   durable is there.
//! * *Flipped bytes*: every byte of every file of a small closed store is changed; opening and
//!   reading it all gives the right answer or an error that names the file.
//! * *A full device*: writes that add data are refused, reads and range deletes go on.
//!
//! `cargo test -p braid-lsm --test faults`; `BRAID_SEEDS` (default 1) scripts are run, and with
//! `BRAID_ALL_FAULTS=1` every call fails in every way instead of one in turn.

#[allow(dead_code)]
mod support;

use std::path::Path;
use std::sync::Arc;

use braid_env::fs::{CrashPolicy, FaultFs, FileSystem, MemFs};
use braid_env::random::Random;
use braid_env::tasks::SeededTasks;
use braid_lsm::{
    Batch, CheckReport, CommitTs, Db, Durability, Error, KeySpan, Options, ScanOptions, check_store,
};
use support::faults::each_single_fault;
use support::options;
use support::oracle::{Call, Oracle, Written};
use support::workload::{collect, dir, open_on};

fn small(tasks: &Arc<SeededTasks>) -> Options {
    Options {
        memtable_size: 1_500,
        wal_segment_size: 2 << 10,
        block_size: 150,
        index_partition_size: 120,
        l0_compaction_files: 2,
        base_level_size: 1 << 10,
        target_sst_size: 500,
        block_cache_size: 1 << 16,
        large_batch_rows: 3,
        ..options::set(0, tasks.clone())
    }
}

/// One step of the script: a batch that counts itself in `~n`.
fn batch_of(random: &mut Random, number: u64) -> Written {
    let mut calls = Vec::new();
    for _ in 0..3 {
        let key = format!("k{:02}", random.below(40)).into_bytes();
        calls.push(match random.below(8) {
            0 => Call::Delete(key),
            1 => Call::DeleteSpan(key.clone(), [key.as_slice(), b"~"].concat()),
            _ => Call::Put(key, vec![b'v'; random.below(60) as usize]),
        });
    }
    calls.push(Call::Put(b"~n".to_vec(), number.to_le_bytes().to_vec()));
    Written { ts: number, calls }
}

fn apply(db: &Db, written: &Written) -> Result<(), Error> {
    let mut batch = Batch::at(CommitTs(written.ts));
    for call in &written.calls {
        match call {
            Call::Put(key, value) => batch.put(key, value),
            Call::Delete(key) => batch.delete(key),
            Call::DeleteSpan(start, end) => batch.delete_span(start, end),
            Call::Excise(..) => unreachable!("the script excises nothing"),
        }
    }
    if !written.ts.is_multiple_of(10) {
        return db.write(batch, Durability::Sync);
    }
    // Prepared, and large by the options: its rows are in ssts before it has its place.
    let mut prepared = db.prepare(batch)?;
    let pending = prepared.apply(CommitTs(written.ts))?;
    pending.relieve()?;
    pending.wait_durable()
}

/// Runs the script until something fails. Returns everything tried, and how many were durable.
fn script(seed: u64, fs: Arc<dyn FileSystem>) -> (Oracle, usize) {
    let tasks = Arc::new(SeededTasks::new(seed));
    let mut random = Random::seeded(seed);
    let mut oracle = Oracle::default();
    let mut durable = 0;
    let Ok(db) = open_on(fs, small(&tasks)) else { return (oracle, durable) };
    for number in 1..=60 {
        let written = batch_of(&mut random, number);
        oracle.write(written.clone());
        match apply(&db, &written) {
            Ok(()) => durable = oracle.batches(),
            // What a failed write left behind is not known, so nothing later may count.
            Err(_) => break,
        }
        tasks.run_one();
        if number % 15 == 0 && db.set_gc_threshold(CommitTs(number / 2)).is_err() {
            break;
        }
        if number % 20 == 0 && db.compact_span(&KeySpan::all()).is_err() {
            continue;
        }
        // Whatever failed in the background, reads are right or say that they fail.
        if let Ok(view) = db.view(CommitTs(number))
            && let Ok(mut scan) = view.scan(KeySpan::all(), ScanOptions::default())
            && let Ok(rows) = collect(&mut scan)
        {
            let expected = oracle.scan(b"", b"\xFF", number, usize::MAX);
            assert_eq!(rows, expected, "seed {seed} after batch {number}");
        }
    }
    (oracle, durable)
}

/// Opens what is on the device and compares it with the prefix that it claims to be.
fn verify(fs: &MemFs, oracle: &Oracle, durable: usize, what: &str) {
    let tasks = Arc::new(SeededTasks::new(1));
    let db = open_on(Arc::new(fs.clone()), small(&tasks))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let view = db.view(CommitTs(u64::MAX - 1)).unwrap();
    let claim = view.get(b"~n").unwrap();
    let n = claim.map_or(0, |value| u64::from_le_bytes(value[..].try_into().unwrap())) as usize;
    assert!(durable <= n && n <= oracle.batches(), "{what}: {n} came back, {durable} were durable");
    let rows = collect(&mut view.scan(KeySpan::all(), ScanOptions::default()).unwrap()).unwrap();
    assert_eq!(rows, oracle.prefix(n).scan(b"", b"\xFF", u64::MAX - 1, n), "{what}");
}

#[test]
fn any_single_fault_is_survived() {
    for seed in support::seeds(1) {
        let counting = FaultFs::new(Arc::new(MemFs::new()), seed);
        script(seed, Arc::new(counting.clone()));
        each_single_fault(
            seed,
            counting.operations(),
            |fs| script(seed, fs),
            |after, (oracle, durable), what| verify(after, oracle, *durable, what),
        );
    }
}

/// A small closed store with ssts in two levels and batches in the wal.
fn small_store() -> (MemFs, Oracle) {
    let fs = MemFs::new();
    let tasks = Arc::new(SeededTasks::new(3));
    let mut random = Random::seeded(3);
    let mut oracle = Oracle::default();
    let db = open_on(Arc::new(fs.clone()), small(&tasks)).unwrap();
    for number in 1..=40 {
        let written = batch_of(&mut random, number);
        apply(&db, &written).unwrap();
        oracle.write(written);
        match number {
            15 => db.compact_span(&KeySpan::all()).unwrap(),
            30 => db.flush().unwrap(),
            _ => {}
        }
    }
    db.close().unwrap();
    drop(db);
    (fs, oracle)
}

fn read_everything(fs: &MemFs, oracle: &Oracle) -> Result<(), Error> {
    let tasks = Arc::new(SeededTasks::new(1));
    let db = open_on(Arc::new(fs.clone()), small(&tasks))?;
    let n = oracle.batches();
    for ts in [u64::MAX - 1, 33, 20, 10] {
        let view = db.view(CommitTs(ts))?;
        let rows = collect(&mut view.scan(KeySpan::all(), ScanOptions::default())?)?;
        assert_eq!(rows, oracle.scan(b"", b"\xFF", ts, n), "wrong answer at {ts}");
        for i in 0..40 {
            let key = format!("k{i:02}").into_bytes();
            let found = view.get_with_ts(&key)?.map(|(value, ts)| (value.to_vec(), ts.0));
            assert_eq!(found, oracle.get(&key, ts, n), "wrong answer at {ts}");
        }
    }
    Ok(())
}

#[test]
fn a_flipped_byte_is_never_a_wrong_answer() {
    let (fs, oracle) = small_store();
    read_everything(&fs.crash_clone(&mut Random::seeded(1), CrashPolicy::KeepAll), &oracle)
        .unwrap();
    let report = check_store(Arc::new(fs.clone()), dir()).unwrap();
    assert!(report.problems.is_empty() && report.ssts >= 2, "{report:?}");
    let (mut noticed, mut harmless) = (0, 0);
    for name in fs.list(dir()).unwrap() {
        let path = dir().join(&name);
        let len = fs.open(&path).unwrap().len().unwrap();
        for offset in 0..len {
            let copy = fs.crash_clone(&mut Random::seeded(1), CrashPolicy::KeepAll);
            let mask = [0x01, 0x80, 0xFF][offset as usize % 3];
            copy.flip(&path, offset, mask).unwrap();
            // The checker reads as much again; it looks at a part of the bytes.
            let checked = offset % 4 == 0;
            let report = if checked {
                check_store(Arc::new(copy.clone()), dir()).unwrap()
            } else {
                CheckReport::default()
            };
            match read_everything(&copy, &oracle) {
                Ok(()) => harmless += 1,
                Err(Error::Corruption { file, .. }) => {
                    noticed += 1;
                    assert!(file.starts_with(dir()), "{name} {offset}: {}", file.display());
                    let found = !checked || !report.problems.is_empty();
                    assert!(found, "check_store misses byte {offset} of {name}");
                }
                Err(Error::FormatTooNew { .. }) => noticed += 1,
                Err(other) => panic!("byte {offset} of {name}: {other}"),
            }
        }
    }
    // Unused parts of wal segments, seals and ends of manifests are harmless; most bytes are not.
    println!("{noticed} flipped bytes noticed, {harmless} without any effect");
    assert!(noticed > 3_000, "{noticed} noticed, {harmless} harmless");
}

#[test]
fn a_missing_or_foreign_file_is_named() {
    let (fs, oracle) = small_store();
    let names = fs.list(dir()).unwrap();
    let sst = names.iter().find(|name| name.ends_with(".sst")).unwrap();
    let copy = fs.crash_clone(&mut Random::seeded(1), CrashPolicy::KeepAll);
    copy.remove(&dir().join(sst)).unwrap();
    let error = read_everything(&copy, &oracle).unwrap_err();
    assert!(error.to_string().contains(sst.as_str()), "{error}");
    for name in ["CURRENT", "MANIFEST"] {
        let copy = fs.crash_clone(&mut Random::seeded(1), CrashPolicy::KeepAll);
        let name = names.iter().find(|found| found.starts_with(name)).unwrap();
        copy.remove(&dir().join(name)).unwrap();
        assert!(read_everything(&copy, &oracle).is_err(), "{name} is gone and nobody notices");
    }
}

#[test]
fn a_full_device_refuses_data_and_still_deletes() {
    let fs = MemFs::new();
    fs.set_capacity(1_200 << 10);
    let tasks = Arc::new(SeededTasks::new(1));
    let options = || Options {
        memtable_size: 32 << 10,
        wal_segment_size: 64 << 10,
        ballast_size: 256 << 10,
        wal_recycled_segments: 1,
        ..options::set(0, tasks.clone())
    };
    let db = Db::open(Arc::new(fs.clone()), Path::new("/store"), options()).unwrap();
    let put = |db: &Db, ts: u64| {
        let mut batch = Batch::at(CommitTs(ts));
        let mut value = vec![0; 4_000];
        Random::seeded(ts).fill(&mut value);
        batch.put(format!("{ts:06}").as_bytes(), &value);
        db.write(batch, Durability::Sync)
    };
    let mut ts = 0;
    let error = loop {
        ts += 1;
        if let Err(error) = put(&db, ts) {
            break error;
        }
        tasks.run_one();
        assert!(ts < 1_000, "the device never fills up");
    };
    assert!(error.is_disk_full(), "{error}");
    assert!(db.metrics().disk_full);
    let view = db.view(CommitTs(ts)).unwrap();
    assert!(view.get(b"000001").unwrap().is_some(), "reads go on");
    drop(view);
    let mut batch = Batch::at(CommitTs(ts + 1));
    batch.delete_span(b"0", b"1");
    db.write(batch, Durability::Sync).expect("range deletes go on");
    assert!(put(&db, ts + 2).unwrap_err().is_disk_full());
    // Nobody wants to see the deleted rows any more: compaction frees their room.
    db.set_gc_threshold(CommitTs(ts + 1)).unwrap();
    db.compact_span(&KeySpan::all()).unwrap();
    put(&db, ts + 3).expect("there is room again");
    assert!(!db.metrics().disk_full);
    db.close().unwrap();
    drop(db);
    let db = Db::open(Arc::new(fs), Path::new("/store"), options()).unwrap();
    let view = db.view(CommitTs(u64::MAX - 1)).unwrap();
    let rows = collect(&mut view.scan(KeySpan::all(), ScanOptions::default()).unwrap()).unwrap();
    assert_eq!(rows.len(), 1);
}
