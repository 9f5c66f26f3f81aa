//! Structural operations on devices that fail, and damage to stores that were restructured.
//!
//! * *Single faults*: a script of batches, ingests, excises, both at once, cuts and checkpoints runs
//!   once per call of the file system, with that call failing. What a crash leaves then opens as a
//!   prefix of the history; so does every checkpoint that was reported complete, with all of its
//!   history.
//! * *Flipped bytes*: `check_store` notices every changed byte of a small store with virtual ssts,
//!   ingested files, one ingest still in the wal and old manifests. Only the seals at the ends of
//!   wal and manifest, and the unused space behind them, may change unnoticed.
//!
//! `cargo test -p braid-lsm --test structure_faults`; `BRAID_SEEDS` (default 1) scripts, and with
//! `BRAID_ALL_FAULTS=1` every call fails in every way instead of one in turn.

#[allow(dead_code)]
mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::fs::{CrashPolicy, FaultFs, FileSystem, MemFs};
use braid_env::random::Random;
use braid_env::tasks::SeededTasks;
use braid_lsm::{
    Batch, CommitTs, Db, Durability, Error, IngestOptions, KeySpan, Options, SstBuilder,
    check_store,
};
use support::faults::each_single_fault;
use support::options;
use support::oracle::{Call, Oracle, Written};
use support::workload::{collect, dir, open_at, open_on};

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
        small_ingest_bytes: 0,
        ..options::set(0, tasks.clone())
    }
}

fn key(n: u64) -> Vec<u8> {
    format!("k{n:02}").into_bytes()
}

/// Some puts that count themselves in `~n`; sometimes with a span deleted or excised.
fn written(random: &mut Random, number: u64, excises: bool) -> Written {
    let mut calls = Vec::new();
    let from = random.below(40);
    let span = (key(from), key(from + 1 + random.below(12)));
    if excises {
        calls.push(Call::Excise(span.0, span.1));
    } else if random.chance(1, 6) {
        calls.push(Call::DeleteSpan(span.0, span.1));
    }
    for _ in 0..3 {
        calls.push(Call::Put(key(random.below(40)), vec![b'v'; random.below(60) as usize]));
    }
    calls.push(Call::Put(b"~n".to_vec(), number.to_le_bytes().to_vec()));
    Written { ts: number, calls }
}

fn apply(db: &Db, written: &Written) -> Result<(), Error> {
    let mut batch = Batch::at(CommitTs(written.ts));
    for call in &written.calls {
        match call {
            Call::Put(key, value) => batch.put(key, value),
            Call::DeleteSpan(start, end) => batch.delete_span(start, end),
            Call::Delete(_) | Call::Excise(..) => unreachable!("not in this script"),
        }
    }
    db.write(batch, Durability::Sync)
}

fn build(fs: &Arc<dyn FileSystem>, written: &Written, options: &Options) -> Result<PathBuf, Error> {
    let path = PathBuf::from(format!("/in/{}.sst", written.ts));
    let ts = CommitTs(written.ts);
    let mut builder = SstBuilder::create(fs, &path, ts, options)?;
    let (points, spans) = Oracle::net(&written.calls);
    for (start, end) in &spans {
        builder.delete_span(start, end)?;
    }
    for (key, value) in &points {
        builder.put(key, value.as_deref().unwrap_or_default())?;
    }
    Ok(builder.finish()?.path)
}

fn ingest(
    fs: &Arc<dyn FileSystem>,
    db: &Db,
    written: &Written,
    options: &Options,
) -> Result<(), Error> {
    let path = build(fs, written, options)?;
    let excise = match written.calls.first() {
        Some(Call::Excise(start, end)) => Some(KeySpan::new(start.clone(), end.clone())),
        _ => None,
    };
    let ts_override = written.ts.is_multiple_of(2).then_some(CommitTs(written.ts));
    db.ingest(&[path], IngestOptions { excise, ts_override })
}

/// What a script tried, how much of it was durable, and the checkpoints that were complete.
struct Outcome {
    oracle: Oracle,
    durable: usize,
    copies: Vec<(PathBuf, usize)>,
}

fn script(seed: u64, fs: &Arc<dyn FileSystem>) -> Outcome {
    let tasks = Arc::new(SeededTasks::new(seed));
    let mut random = Random::seeded(seed);
    let mut done = Outcome { oracle: Oracle::default(), durable: 0, copies: Vec::new() };
    let Ok(db) = open_on(fs.clone(), small(&tasks)) else { return done };
    for number in 1..=32 {
        let is_ingest = number % 3 == 0;
        let written = written(&mut random, number, is_ingest && number % 2 == 0);
        done.oracle.write(written.clone());
        let result = if is_ingest {
            ingest(fs, &db, &written, &small(&tasks))
        } else {
            apply(&db, &written)
        };
        match result {
            Ok(()) => done.durable = done.oracle.batches(),
            // What a failed write left behind is not known, so nothing later may count.
            Err(_) => break,
        }
        tasks.run_one();
        if number % 10 == 0 {
            let copy = PathBuf::from(format!("/copy-{number}"));
            if db.checkpoint(&copy).is_ok() {
                done.copies.push((copy, done.oracle.batches()));
            }
        }
        if number % 7 == 0 && db.split_at(&key(random.below(40))).is_err() {
            break;
        }
        if number % 16 == 0 && db.compact_span(&KeySpan::all()).is_err() {
            break;
        }
    }
    done
}

/// Key, value and timestamp.
type Found = (Vec<u8>, Vec<u8>, u64);

/// All rows of the store in a directory, and which prefix of the history it claims to be.
fn rows(fs: &MemFs, dir: &Path) -> Result<(Vec<Found>, usize), Error> {
    let tasks = Arc::new(SeededTasks::new(1));
    let db = open_at(Arc::new(fs.clone()), dir, small(&tasks))?;
    tasks.run_all();
    let view = db.view(CommitTs(u64::MAX - 1))?;
    let claim = view.get(b"~n")?;
    let n = claim.map_or(0, |value| u64::from_le_bytes(value[..].try_into().unwrap())) as usize;
    let rows = collect(&mut view.scan(KeySpan::all(), Default::default())?)?;
    Ok((rows, n))
}

fn verify(fs: &MemFs, done: &Outcome, what: &str) {
    let (found, n) = rows(fs, dir()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let (durable, all) = (done.durable, done.oracle.batches());
    assert!(durable <= n && n <= all, "{what}: {n} came back, {durable} were durable of {all}");
    let expected = done.oracle.prefix(n).scan(b"", b"\xFF", u64::MAX - 1, n);
    assert_eq!(found, expected, "{what}");
    for (copy, batches) in &done.copies {
        let (found, n) = rows(fs, copy).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(n, *batches, "{what}: {}", copy.display());
        let expected = done.oracle.prefix(n).scan(b"", b"\xFF", u64::MAX - 1, n);
        assert_eq!(found, expected, "{what}: {}", copy.display());
    }
}

#[test]
fn any_single_fault_in_a_structural_script_is_survived() {
    for seed in support::seeds(1) {
        let base = MemFs::new();
        let counting = FaultFs::new(Arc::new(base.clone()), seed);
        let shared: Arc<dyn FileSystem> = Arc::new(counting.clone());
        let whole = script(seed, &shared);
        assert_eq!((whole.durable, whole.copies.len()), (32, 3));
        verify(&base.crash_clone(&mut Random::seeded(1), CrashPolicy::LoseAll), &whole, "no fault");
        each_single_fault(seed, counting.operations(), |fs| script(seed, &fs), verify);
    }
}

/// A small closed store: ssts in two levels, parts of files, an ingested file, one that waits in
/// the wal behind a memtable, and a manifest of an earlier open.
fn restructured() -> MemFs {
    let mem = MemFs::new();
    let fs: Arc<dyn FileSystem> = Arc::new(mem.clone());
    let tasks = Arc::new(SeededTasks::new(3));
    let options =
        Options { automatic_compaction: false, wal_recycled_segments: 0, ..small(&tasks) };
    let mut random = Random::seeded(3);
    let mut number = 0;
    let mut next = |excises: bool| {
        number += 1;
        written(&mut random, number, excises)
    };
    for round in 0..2 {
        let db = open_on(fs.clone(), options.clone()).unwrap();
        for _ in 0..6 {
            apply(&db, &next(false)).unwrap();
        }
        db.flush().unwrap();
        ingest(&fs, &db, &next(true), &options).unwrap();
        if round == 0 {
            db.compact_span(&KeySpan::all()).unwrap();
        }
        db.split_at(&key(20)).unwrap();
        apply(&db, &next(false)).unwrap();
        // Overlaps the memtable (all write `~n`), so it waits there when the store is closed.
        ingest(&fs, &db, &next(false), &options).unwrap();
        db.close().unwrap();
    }
    mem
}

/// Bytes up to the last one that means something: behind the last record there is a seal of 19
/// bytes, and then nothing.
fn meant(name: &str, bytes: &[u8]) -> usize {
    if name.ends_with(".wal") || name.starts_with("MANIFEST") {
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
        return used.saturating_sub(19 + 8);
    }
    bytes.len()
}

#[test]
fn a_check_notices_every_changed_byte() {
    let fs = restructured();
    let names = fs.list(dir()).unwrap();
    let report = check_store(Arc::new(fs.clone()), dir()).unwrap();
    assert!(report.problems.is_empty() && report.ssts > 3, "{report:?}");
    assert!(names.iter().filter(|name| name.starts_with("MANIFEST")).count() >= 2, "{names:?}");
    let mut noticed = 0;
    for name in &names {
        let path = dir().join(name);
        let bytes = braid_env::fs::read_all(&fs, &path).unwrap();
        for offset in 0..meant(name, &bytes) {
            let copy = fs.crash_clone(&mut Random::seeded(1), CrashPolicy::KeepAll);
            copy.flip(&path, offset as u64, [0x01, 0x80, 0xFF][offset % 3]).unwrap();
            let report = check_store(Arc::new(copy), dir()).unwrap();
            assert!(!report.problems.is_empty(), "byte {offset} of {name} changed unnoticed");
            noticed += 1;
        }
    }
    println!("{noticed} changed bytes, all noticed");
    assert!(noticed > 3_000, "{noticed}");
}
