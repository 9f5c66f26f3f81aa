//! The damage campaign: files of a store are deleted, cut off, exchanged, copied over each other,
//! replaced by files of another store, and changed byte by byte; opening and reading everything
//! gives the right answer, or an error that names a file of the store. Never a wrong answer; and
//! what an open notices, `check_store` notices as well.
//!
//! Two kinds of stores are damaged: closed ones, and ones whose process died while everything that
//! was written had been reported durable. The foreign store was made by the same steps with other
//! values, so that its files have the same names and sizes.
//!
//! A store that died ends in a log, and in a manifest, that nobody sealed: damage to what was synced
//! last cannot be told from a power failure in the middle of that write, unless something that was
//! written later knows better. There, and only there, an older state is a right answer as well.
//!
//! ```text
//!   cargo test -p braid-lsm --test damage                                   the short version
//!   BRAID_SEEDS=500 cargo test --release -p braid-lsm --test damage         the long campaign
//!   BRAID_FIRST_SEED=17 BRAID_SEEDS=1 cargo test -p braid-lsm --test damage    seed 17 again
//! ```

#[allow(dead_code)]
mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::fs::{CrashPolicy, FileSystem, MemFs, read_all};
use braid_env::random::Random;
use braid_env::tasks::SeededTasks;
use braid_lsm::{
    Batch, CommitTs, Durability, Error, IngestOptions, KeySpan, Options, ScanOptions, SstBuilder,
    check_store,
};
use support::options;
use support::workload::{collect, dir, open_on};

type Rows = Vec<(Vec<u8>, Vec<u8>, u64)>;

fn small(tasks: &Arc<SeededTasks>) -> Options {
    Options {
        memtable_size: 2_500,
        wal_segment_size: 1 << 10,
        wal_recycled_segments: 2,
        block_size: 150,
        index_partition_size: 120,
        l0_compaction_files: 3,
        base_level_size: 4 << 10,
        target_sst_size: 800,
        small_ingest_bytes: 0,
        ..options::set(0, tasks.clone())
    }
}

/// A store, how it was left, and what is in it.
struct Subject {
    fs: MemFs,
    rows: Rows,
    /// What was in it, write after write, since the last open.
    history: Vec<Rows>,
    closed: bool,
}

fn rows_of(db: &braid_lsm::Db) -> Result<Rows, Error> {
    let view = db.view(CommitTs(u64::MAX - 1))?;
    collect(&mut view.scan(KeySpan::all(), ScanOptions::default())?)
}

fn read_all_rows(fs: &MemFs) -> Result<Rows, Error> {
    let tasks = Arc::new(SeededTasks::new(1));
    let db = open_on(Arc::new(fs.clone()), small(&tasks))?;
    let view = db.view(CommitTs(u64::MAX - 1))?;
    let rows = collect(&mut view.scan(KeySpan::all(), ScanOptions::default())?)?;
    for (key, value, ts) in &rows {
        let found = view.get_with_ts(key)?.map(|(value, ts)| (value.to_vec(), ts.0));
        assert_eq!(found, Some((value.clone(), *ts)), "a get and the scan differ");
    }
    Ok(rows)
}

/// A store with several opens behind it. `who` stands in every value.
fn store(seed: u64, who: u8, closed: bool) -> Subject {
    let fs = MemFs::new();
    let shared: Arc<dyn FileSystem> = Arc::new(fs.clone());
    let mut random = Random::seeded(seed);
    let opens = 1 + random.below(3);
    let (mut ts, mut history) = (0, Vec::new());
    for open in 0..opens {
        let tasks = Arc::new(SeededTasks::new(seed));
        // Every other store keeps a long log.
        let memtable_size = if seed.is_multiple_of(2) { 2_500 } else { 1 << 20 };
        let db = open_on(shared.clone(), Options { memtable_size, ..small(&tasks) }).unwrap();
        history = vec![rows_of(&db).unwrap()];
        for _ in 0..15 + random.below(60) {
            ts += 1;
            let mut batch = Batch::at(CommitTs(ts));
            for _ in 0..1 + random.below(3) {
                let key = format!("k{:02}", random.below(60));
                match random.below(9) {
                    0 => batch.delete(key.as_bytes()),
                    1 => batch.delete_span(key.as_bytes(), format!("{key}~").as_bytes()),
                    _ => batch.put(key.as_bytes(), &vec![who; random.below(60) as usize]),
                }
            }
            batch.put(b"~n", &ts.to_le_bytes());
            db.write(batch, Durability::Sync).unwrap();
            history.push(rows_of(&db).unwrap());
            if random.chance(1, 3) {
                tasks.run_one();
            }
            if random.chance(1, 25) {
                db.flush().unwrap();
            }
        }
        if random.chance(1, 2) {
            ts += 1;
            ingest(&shared, &db, ts, who, &small(&tasks));
        }
        if random.chance(1, 3) {
            db.compact_span(&KeySpan::all()).unwrap();
        }
        if open + 1 < opens || closed {
            if random.chance(1, 2) {
                tasks.run_all();
            }
            db.close().unwrap();
        } else {
            // The process dies: its files stay, and nobody tidies up.
            let left = fs.crash_clone(&mut random, CrashPolicy::KeepAll);
            db.close().unwrap();
            let whole = left.crash_clone(&mut random, CrashPolicy::KeepAll);
            let rows = read_all_rows(&whole).unwrap();
            return Subject { rows, history, fs: left, closed };
        }
    }
    let copy = fs.crash_clone(&mut random, CrashPolicy::KeepAll);
    Subject { rows: read_all_rows(&copy).unwrap(), history, fs, closed }
}

fn ingest(fs: &Arc<dyn FileSystem>, db: &braid_lsm::Db, ts: u64, who: u8, options: &Options) {
    let path = PathBuf::from(format!("/in/{ts}.sst"));
    let mut builder = SstBuilder::create(fs, &path, CommitTs(1), options).unwrap();
    for n in 70..75 {
        builder.put(format!("k{n}").as_bytes(), &[who; 30]).unwrap();
    }
    builder.finish().unwrap();
    let at = IngestOptions { ts_override: Some(CommitTs(ts)), excise: None };
    db.ingest(&[path], at).unwrap();
}

fn write(fs: &MemFs, name: &str, bytes: &[u8]) {
    let file = fs.create(&dir().join(name)).unwrap();
    file.write_at(bytes, 0).unwrap();
}

fn read(fs: &MemFs, name: &str) -> Vec<u8> {
    read_all(fs, &dir().join(name)).unwrap()
}

/// The files that count.
fn files(fs: &MemFs) -> Vec<String> {
    let mut names = fs.list(dir()).unwrap();
    names.retain(|name| name != "LOCK" && name != "BALLAST" && !name.ends_with(".recycled"));
    names.sort();
    names
}

/// One file that is like another: of the same kind, if there is one.
fn other_like(random: &mut Random, names: &[String], name: &str) -> Option<String> {
    let kind = |name: &str| {
        let of_name = Path::new(name).extension().map(|kind| kind.to_owned());
        (of_name, name.starts_with("MANIFEST"))
    };
    let all: Vec<&String> = names.iter().filter(|other| *other != name).collect();
    let alike: Vec<&String> =
        all.iter().copied().filter(|other| kind(other) == kind(name)).collect();
    let from = if alike.is_empty() || random.chance(1, 6) { all } else { alike };
    (!from.is_empty()).then(|| (*random.pick(&from)).clone())
}

/// What was done to which files.
struct Damage {
    what: String,
    names: Vec<String>,
}

fn damage(random: &mut Random, copy: &MemFs, foreign: &MemFs) -> Option<Damage> {
    let names = files(copy);
    // Wal segments are a third of the cases, whatever else there is.
    let segments: Vec<String> = names.iter().filter(|n| n.ends_with(".wal")).cloned().collect();
    let some = if segments.is_empty() || random.chance(2, 3) { &names } else { &segments };
    let name = random.pick(some).clone();
    let path = dir().join(&name);
    let len = copy.open(&path).unwrap().len().unwrap();
    let (what, other) = match random.below(6) {
        0 => {
            copy.remove(&path).unwrap();
            ("deleted".to_string(), None)
        }
        1 => {
            let to = random.below(len);
            let bytes = read(copy, &name);
            write(copy, &name, &bytes[..to as usize]);
            (format!("cut off at {to} of {len}"), None)
        }
        2 => {
            let other = other_like(random, &names, &name)?;
            let (a, b) = (read(copy, &name), read(copy, &other));
            write(copy, &name, &b);
            write(copy, &other, &a);
            (format!("exchanged with {other}"), Some(other))
        }
        3 => {
            let other = other_like(random, &names, &name)?;
            let bytes = read(copy, &other);
            write(copy, &name, &bytes);
            (format!("replaced by a copy of {other}"), None)
        }
        4 => {
            let others = files(foreign);
            let other = others.iter().find(|other| **other == name);
            let other = other.cloned().or_else(|| other_like(random, &others, &name))?;
            let bytes = read(foreign, &other);
            write(copy, &name, &bytes);
            (format!("replaced by {other} of another store"), None)
        }
        _ => {
            let at = random.below(len);
            let mask = 1 + random.below(255) as u8;
            copy.flip(&path, at, mask).unwrap();
            (format!("byte {at} changed by {mask:#x}"), None)
        }
    };
    let names = [Some(name.clone()), other].into_iter().flatten().collect();
    Some(Damage { what: format!("{name}: {what}"), names })
}

/// Whether the damage is inside the last segment or the manifest of a store that nobody closed,
/// where an older state is what a power failure might have left.
fn may_be_a_power_failure(subject: &Subject, damage: &Damage) -> bool {
    let names = files(&subject.fs);
    let last = |what: &str| names.iter().rfind(|name| name.contains(what)).cloned();
    let inside = damage.what.contains("byte") || damage.what.contains("cut off");
    let unsealed: Vec<String> = [last(".wal"), last("MANIFEST")].into_iter().flatten().collect();
    !subject.closed && inside && damage.names.iter().all(|name| unsealed.contains(name))
}

/// Damages a store in some ways; counts what was noticed, and what did no harm.
fn run(seed: u64, cases: u64, counts: &mut (u64, u64)) {
    let closed = !seed.is_multiple_of(3);
    let subject = store(seed, b'v', closed);
    let foreign = store(seed, b'w', closed);
    for case in 0..cases {
        let mut random = Random::seeded(seed * 1_000 + case);
        let copy = subject.fs.crash_clone(&mut random, CrashPolicy::KeepAll);
        let Some(damage) = damage(&mut random, &copy, &foreign.fs) else { continue };
        let words = format!("seed {seed} case {case}, {}", damage.what);
        let report = check_store(Arc::new(copy.clone()), dir()).unwrap();
        match read_all_rows(&copy) {
            Ok(rows) if rows == subject.rows => counts.1 += 1,
            Ok(rows) => {
                let older = subject.history.contains(&rows);
                let excused = older && may_be_a_power_failure(&subject, &damage);
                assert!(excused, "{words}: a wrong answer, {} rows", rows.len());
            }
            Err(Error::Corruption { file, reason, .. }) => {
                counts.0 += 1;
                assert!(file.parent() == Some(dir()), "{words}: {}: {reason}", file.display());
                assert!(!report.problems.is_empty(), "{words}: the check misses: {reason}");
            }
            Err(Error::FormatTooNew { .. }) => counts.0 += 1,
            Err(other) => panic!("{words}: {other}"),
        }
    }
}

#[test]
fn damaged_stores_never_answer_wrongly() {
    let (mut counts, seeds) = ((0, 0), support::seeds(60));
    for seed in seeds {
        run(seed, 8, &mut counts);
    }
    let (noticed, harmless) = counts;
    println!("{noticed} damages were named, {harmless} did no harm");
    assert!(noticed >= harmless / 2, "{noticed} named, {harmless} harmless");
}

/// The first store with as many files of a kind, and the foreign one beside it.
fn store_with(closed: bool, kinds: &[(&str, usize)]) -> (Subject, Subject) {
    let enough = |subject: &Subject| {
        let names = files(&subject.fs);
        let count = |what: &str| names.iter().filter(|name| name.contains(what)).count();
        kinds.iter().all(|(what, least)| count(what) >= *least)
    };
    let of_seed = |seed| (store(seed, b'v', closed), store(seed, b'w', closed));
    (0..).map(of_seed).find(|(subject, foreign)| enough(subject) && enough(foreign)).unwrap()
}

/// What becomes of segments when files are copied about, one by one: each is an error that names the
/// file, at open and in the check.
#[test]
fn a_lost_swapped_repeated_or_foreign_segment_is_named() {
    for closed in [true, false] {
        let (subject, foreign) = store_with(closed, &[(".wal", 4)]);
        let names = files(&subject.fs);
        let all: Vec<&String> = names.iter().filter(|name| name.ends_with(".wal")).collect();
        let (first, last) = (all[0].as_str(), all[all.len() - 1].as_str());
        let before_last = all[all.len() - 2].as_str();
        let of = |name: &str| read(&subject.fs, name);
        type Change<'a> = (&'a str, Option<Vec<u8>>);
        let cases: Vec<(&str, Vec<Change<'_>>)> = vec![
            ("the last one is gone", vec![(last, None)]),
            ("the first one is gone", vec![(first, None)]),
            ("two are gone", vec![(before_last, None), (last, None)]),
            ("two are swapped", vec![(before_last, Some(of(last))), (last, Some(of(before_last)))]),
            ("one is repeated", vec![(last, Some(of(before_last)))]),
            ("the first is repeated", vec![(last, Some(of(first)))]),
            ("the last came early", vec![(before_last, Some(of(last)))]),
            ("one is foreign", vec![(last, Some(read(&foreign.fs, last)))]),
            ("one is empty", vec![(last, Some(Vec::new()))]),
            ("one is a manifest", vec![(last, Some(of(&names[names.len() - 1])))]),
        ];
        for (what, changes) in cases {
            let copy = subject.fs.crash_clone(&mut Random::seeded(1), CrashPolicy::KeepAll);
            let mut touched = Vec::new();
            for (name, bytes) in &changes {
                touched.push(dir().join(name));
                match bytes {
                    None => copy.remove(&dir().join(name)).unwrap(),
                    Some(bytes) => write(&copy, name, bytes),
                }
            }
            let report = check_store(Arc::new(copy.clone()), dir()).unwrap();
            let named = report.problems.iter().any(|problem| touched.contains(&problem.file));
            assert!(named, "closed {closed}, {what}: {:?}", report.problems);
            match read_all_rows(&copy) {
                Err(Error::Corruption { file, .. }) if touched.contains(&file) => {}
                other => panic!("closed {closed}, {what}: {other:?}"),
            }
        }
    }
}

/// A store that goes on from a copy of another: same identity, same numbers, other contents.
fn goes_on(from: &MemFs, who: u8, batches: u64) -> (MemFs, Rows) {
    let fs = from.crash_clone(&mut Random::seeded(1), CrashPolicy::KeepAll);
    let tasks = Arc::new(SeededTasks::new(1));
    let long_log = Options { memtable_size: 1 << 20, ..small(&tasks) };
    let db = open_on(Arc::new(fs.clone()), long_log).unwrap();
    for ts in 1001..1001 + batches {
        let mut batch = Batch::at(CommitTs(ts));
        batch.put(format!("k{}", ts % 40).as_bytes(), &[who; 60]);
        db.write(batch, Durability::Sync).unwrap();
    }
    let rows = rows_of(&db).unwrap();
    let left = fs.crash_clone(&mut Random::seeded(2), CrashPolicy::KeepAll);
    db.close().unwrap();
    (left, rows)
}

/// Only what a segment says of the one before it tells such files apart.
#[test]
fn a_segment_of_a_copy_that_went_its_own_way_is_named() {
    let before = store(1, b'v', true);
    let ((fs, rows), (other, _)) = (goes_on(&before.fs, b'a', 60), goes_on(&before.fs, b'b', 60));
    let mut named = 0;
    for name in files(&fs).iter().filter(|name| name.ends_with(".wal")) {
        if !files(&other).contains(name) || read(&fs, name) == read(&other, name) {
            continue;
        }
        let copy = fs.crash_clone(&mut Random::seeded(3), CrashPolicy::KeepAll);
        write(&copy, name, &read(&other, name));
        let report = check_store(Arc::new(copy.clone()), dir()).unwrap();
        match read_all_rows(&copy) {
            Err(Error::Corruption { .. }) => {
                named += 1;
                assert!(!report.problems.is_empty(), "{name}");
            }
            // The one that was made ahead of need has nothing in it.
            Ok(found) => assert!(found == rows, "{name}: a wrong answer"),
            Err(error) => panic!("{name}: {error}"),
        }
    }
    assert!(named >= 3, "{named} named");
}

/// Where a segment begins, the manifest learns how far it was durable then: damage before that is
/// no power failure, though nobody sealed the segment.
#[test]
fn the_first_record_of_the_last_segment_was_durable() {
    let before = store(1, b'v', true);
    // Sometimes it is the only record there.
    for batches in 1..40 {
        let (left, _) = goes_on(&before.fs, b'a', batches);
        let names = files(&left);
        let last = names.iter().rfind(|name| name.ends_with(".wal")).unwrap();
        for at in [70, 90] {
            let copy = left.crash_clone(&mut Random::seeded(3), CrashPolicy::KeepAll);
            copy.flip(&dir().join(last), at, 0x11).unwrap();
            match read_all_rows(&copy) {
                Err(Error::Corruption { .. }) => {}
                other => panic!("{batches} batches, byte {at} of {last}: {other:?}"),
            }
        }
    }
}

/// Manifests and ssts of another time or another store, whatever the cases of the campaign were.
#[test]
fn a_manifest_or_sst_of_another_time_or_store_is_named() {
    let (subject, foreign) = store_with(true, &[("MANIFEST", 2), (".sst", 2)]);
    let names = files(&subject.fs);
    let manifests: Vec<&String> = names.iter().filter(|name| name.contains("MANIFEST")).collect();
    let ssts: Vec<&String> = names.iter().filter(|name| name.ends_with(".sst")).collect();
    let (newest, older) = (manifests[manifests.len() - 1], manifests[manifests.len() - 2]);
    let of = |name: &str| read(&subject.fs, name);
    let text = String::from_utf8(of("CURRENT")).unwrap();
    // What CURRENT said when the older manifest was the current one: as of a checksum of its name.
    let before = {
        let store = text.split(' ').nth(1).unwrap();
        let name = format!("{older} {store}");
        format!("{name} {:016x}\n", xxhash_rust::xxh3::xxh3_64(name.as_bytes())).into_bytes()
    };
    type Change<'a> = (&'a str, Option<Vec<u8>>);
    let cases: Vec<(&str, Vec<Change<'_>>)> = vec![
        ("CURRENT is older", vec![("CURRENT", Some(before))]),
        ("CURRENT is gone", vec![("CURRENT", None)]),
        ("CURRENT is foreign", vec![("CURRENT", Some(read(&foreign.fs, "CURRENT")))]),
        ("the manifest is gone", vec![(newest, None)]),
        ("the manifest is foreign", vec![(newest, Some(read(&foreign.fs, newest)))]),
        ("the manifest is an older one", vec![(newest, Some(of(older)))]),
        ("two manifests are swapped", vec![(newest, Some(of(older))), (older, Some(of(newest)))]),
        ("an sst is gone", vec![(ssts[0], None)]),
        ("an sst is foreign", vec![(ssts[0], Some(read(&foreign.fs, ssts[0])))]),
        ("an sst is repeated", vec![(ssts[0], Some(of(ssts[1])))]),
        ("two ssts are swapped", vec![(ssts[0], Some(of(ssts[1]))), (ssts[1], Some(of(ssts[0])))]),
    ];
    for (what, changes) in cases {
        let copy = subject.fs.crash_clone(&mut Random::seeded(1), CrashPolicy::KeepAll);
        for (name, bytes) in &changes {
            match bytes {
                None => copy.remove(&dir().join(name)).unwrap(),
                Some(bytes) => write(&copy, name, bytes),
            }
        }
        let report = check_store(Arc::new(copy.clone()), dir()).unwrap();
        assert!(!report.problems.is_empty(), "{what}");
        let tasks = Arc::new(SeededTasks::new(1));
        match open_on(Arc::new(copy.clone()), small(&tasks)) {
            Err(Error::Corruption { file, .. }) => {
                let names: Vec<PathBuf> =
                    changes.iter().map(|(name, _)| dir().join(name)).collect();
                let current = names.contains(&file) || file == dir().join(newest.as_str());
                assert!(current, "{what}: {}", file.display());
            }
            Err(other) => panic!("{what}: {other}"),
            Ok(_) => panic!("{what}: it opened"),
        }
    }
}
