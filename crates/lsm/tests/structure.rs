//! Ingest, excise and checkpoint, one property each. The campaigns do them at random places.

#[allow(dead_code)]
mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::fs::{CrashPolicy, FaultFs, FileSystem, MemFs};
use braid_env::random::Random;
use braid_env::tasks::SeededTasks;
use braid_lsm::{
    Batch, CommitTs, Db, Durability, Error, Exported, IngestOptions, KeySpan, Options, ScanOptions,
    SstBuilder, check_store,
};
use support::options;
use support::workload::{collect, dir, open_at, open_on};

struct Bench {
    fs: Arc<dyn FileSystem>,
    tasks: Arc<SeededTasks>,
    db: Db,
    files: u64,
}

impl Bench {
    fn new() -> Bench {
        let tasks = Arc::new(SeededTasks::new(7));
        let fs: Arc<dyn FileSystem> = Arc::new(MemFs::new());
        let db = open_on(fs.clone(), Bench::options(&tasks)).unwrap();
        Bench { fs, tasks, db, files: 0 }
    }

    fn options(tasks: &Arc<SeededTasks>) -> Options {
        Options { block_size: 100, small_ingest_bytes: 0, ..options::set(0, tasks.clone()) }
    }

    fn put(&self, ts: u64, keys: &[&str]) {
        let mut batch = Batch::at(CommitTs(ts));
        keys.iter().for_each(|key| batch.put(key.as_bytes(), format!("v{ts}").as_bytes()));
        self.db.write(batch, Durability::Sync).unwrap();
    }

    fn builder(&mut self, ts: u64) -> SstBuilder {
        self.files += 1;
        let path = PathBuf::from(format!("/in/{}.sst", self.files));
        let options = Bench::options(&self.tasks);
        SstBuilder::create(&self.fs, &path, CommitTs(ts), &options).unwrap()
    }

    /// A file with the given rows, large enough not to become a batch.
    fn file(&mut self, ts: u64, keys: &[&str]) -> PathBuf {
        let mut builder = self.builder(ts);
        for key in keys {
            builder.put(key.as_bytes(), format!("f{ts}").repeat(1_000).as_bytes()).unwrap();
        }
        builder.finish().unwrap().path
    }

    fn ingest(&self, files: &[PathBuf]) -> Result<(), Error> {
        self.db.ingest(files, IngestOptions::default())
    }

    /// Keys with the first two bytes of their values.
    fn rows(&self, ts: u64) -> Vec<String> {
        let view = self.db.view(CommitTs(ts)).unwrap();
        let mut rows = Vec::new();
        for reverse in [true, false] {
            let options = ScanOptions { reverse, ..ScanOptions::default() };
            let found = collect(&mut view.scan(KeySpan::all(), options).unwrap()).unwrap();
            rows = found
                .iter()
                .map(|(key, value, _)| {
                    let text = String::from_utf8_lossy(&value[..2.min(value.len())]).into_owned();
                    format!("{}={text}", String::from_utf8_lossy(key))
                })
                .collect();
            if reverse {
                rows.reverse();
                for (key, value, _) in &found {
                    let got = view.get(key).unwrap();
                    assert_eq!(got.as_deref(), Some(value.as_slice()));
                }
            }
        }
        rows
    }

    fn files_per_level(&self) -> Vec<usize> {
        self.db.metrics().levels.iter().map(|level| level.files).collect()
    }
}

#[test]
fn an_ingest_into_nothing_goes_to_the_bottom() {
    let mut bench = Bench::new();
    let files = [bench.file(5, &["a", "b"]), bench.file(5, &["k", "l"])];
    bench.ingest(&files).unwrap();
    assert_eq!(bench.rows(5), ["a=f5", "b=f5", "k=f5", "l=f5"]);
    assert_eq!(bench.rows(4), [""; 0]);
    assert_eq!(bench.files_per_level(), [0, 0, 0, 0, 0, 0, 2]);
    // Between the two there is room at the bottom, above them there is not.
    let file = bench.file(6, &["c", "d"]);
    bench.ingest(&[file]).unwrap();
    let file = bench.file(7, &["b", "m"]);
    bench.ingest(&[file]).unwrap();
    assert_eq!(bench.files_per_level()[6], 3);
    assert_eq!(bench.files_per_level().iter().sum::<usize>(), 4);
    assert_eq!(bench.rows(7), ["a=f5", "b=f7", "c=f6", "d=f6", "k=f5", "l=f5", "m=f7"]);
    assert_eq!(bench.db.last_commit_ts(), CommitTs(7));
}

#[test]
fn an_sst_whose_bounds_are_in_the_way_is_cut() {
    let mut bench = Bench::new();
    let wide = bench.file(5, &["a", "b", "y", "z"]);
    bench.ingest(&[wide]).unwrap();
    let narrow = bench.file(6, &["k", "l"]);
    bench.ingest(&[narrow]).unwrap();
    assert_eq!(bench.files_per_level(), [0, 0, 0, 0, 0, 0, 3]);
    assert_eq!(bench.db.metrics().levels[6].virtual_files, 2);
    assert_eq!(bench.rows(6), ["a=f5", "b=f5", "k=f6", "l=f6", "y=f5", "z=f5"]);
}

#[test]
fn an_ingest_over_a_memtable_waits_for_no_flush_and_survives_a_crash() {
    let mut bench = Bench::new();
    bench.put(5, &["b", "k"]);
    let file = bench.file(6, &["a", "b", "c"]);
    bench.ingest(&[file]).unwrap();
    bench.put(7, &["c"]);
    let expected = ["a=f6", "b=f6", "c=v7", "k=v5"];
    assert_eq!(bench.rows(7), expected);
    assert_eq!(bench.rows(5), ["b=v5", "k=v5"]);
    assert_eq!(bench.db.metrics().flushes, 0, "nothing was flushed for it");
    assert_eq!(bench.files_per_level(), [0; 7], "it waits between the memtables");
    let view = bench.db.view(CommitTs(7)).unwrap();
    // The process dies; the wal still knows the ingest.
    let copy = Bench::new();
    drop(copy);
    bench.tasks.clear();
    bench.db.close().unwrap();
    let reopened = open_on(bench.fs.clone(), Bench::options(&bench.tasks)).unwrap();
    bench.db = reopened;
    assert_eq!(bench.rows(7), expected);
    bench.tasks.run_all();
    assert_eq!(bench.rows(7), expected);
    bench.db.flush().unwrap();
    assert_eq!(bench.rows(7), expected);
    assert_eq!(bench.rows(5), ["b=v5", "k=v5"]);
    drop(view);
    bench.db.close().unwrap();
    let report = check_store(bench.fs.clone(), dir()).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn one_timestamp_for_all_rows_and_one_entry_per_key() {
    let mut bench = Bench::new();
    bench.put(20, &["c"]);
    let mut builder = bench.builder(1);
    builder.put(b"a", &[b'x'; 70_000]).unwrap();
    builder.delete(b"c").unwrap();
    builder.delete_span_at(b"d", b"e", CommitTs(2)).unwrap();
    let file = builder.finish().unwrap();
    assert_eq!((file.rows, file.tombstones, file.max_ts), (2, 1, CommitTs(2)));
    let at = |ts: u64| IngestOptions { ts_override: Some(CommitTs(ts)), excise: None };
    let path = [file.path.clone()];
    let refused = bench.db.ingest(&path, at(19));
    assert!(matches!(refused, Err(Error::TimestampContract { have: CommitTs(20), .. })));
    bench.db.ingest(&path, at(30)).unwrap();
    assert_eq!(bench.rows(29), ["c=v2"]);
    assert_eq!(bench.rows(30), ["a=xx"]);
    assert_eq!(bench.db.max_ts(b"a").unwrap(), CommitTs(30));
    assert_eq!(bench.db.max_ts(b"d").unwrap(), CommitTs(30));
    bench.db.compact_span(&KeySpan::all()).unwrap();
    assert_eq!(bench.rows(29), ["c=v2"]);
    assert_eq!(bench.rows(30), ["a=xx"]);
    // Several versions of a key cannot be of one timestamp; as they are, they can come.
    let mut builder = bench.builder(1);
    builder.put_at(b"m", CommitTs(41), &[b'n'; 70_000]).unwrap();
    builder.put_at(b"m", CommitTs(40), b"old").unwrap();
    let unordered = builder.put_at(b"m", CommitTs(40), b"");
    assert!(matches!(unordered, Err(Error::InvalidIngest { .. })));
    let path = [builder.finish().unwrap().path];
    assert!(matches!(bench.db.ingest(&path, at(50)), Err(Error::InvalidIngest { .. })));
    bench.ingest(&path).unwrap();
    assert_eq!(bench.rows(40), ["a=xx", "m=ol"]);
    assert_eq!(bench.rows(41), ["a=xx", "m=nn"]);
}

/// A file may reach over keys that are newer than it is, also in its blocks, but have none of them.
#[test]
fn a_file_reaches_over_newer_keys_and_has_none_of_them() {
    let names = |first: char| (0..200).map(move |n| format!("{first}{n:04}"));
    let mut refused = 0;
    for seed in 0..60 {
        let random = &mut Random::seeded(seed);
        let mut bench = Bench::new();
        let mut builder = bench.builder(10);
        names('a').chain(names('z')).for_each(|key| builder.put(key.as_bytes(), b"f").unwrap());
        let path = [builder.finish().unwrap().path];
        // Older ones of its own, and newer ones beside them, somewhere.
        bench.put(5, &["a0007", "z0100"]);
        if random.chance(1, 2) {
            bench.db.flush().unwrap();
        }
        let own = random.chance(1, 2);
        let key = match (own, random.below(3)) {
            (false, 0) => "m".to_string(),
            (own, _) => {
                let first = if random.chance(1, 2) { 'a' } else { 'z' };
                format!("{first}{:04}{}", random.below(200), if own { "" } else { "x" })
            }
        };
        bench.put(20, &[&key, "h1", "h2"]);
        if random.chance(1, 2) {
            bench.db.flush().unwrap();
        }
        match bench.ingest(&path) {
            Ok(()) => {
                assert!(!own, "seed {seed}: {key}");
                assert_eq!(bench.rows(30).len(), 403, "seed {seed}");
            }
            Err(Error::TimestampContract { key: at, have: CommitTs(20), .. }) => {
                assert!(own && at == key.as_bytes(), "seed {seed}: {key} {at:?}");
                refused += 1;
            }
            Err(e) => panic!("seed {seed}: {e}"),
        }
    }
    assert!((10..50).contains(&refused), "{refused}");
}

#[test]
fn nothing_is_ingested_at_or_below_the_threshold_and_refusal_leaves_no_file() {
    let mut bench = Bench::new();
    bench.put(9, &["q"]);
    bench.db.set_gc_threshold(CommitTs(9)).unwrap();
    let file = bench.file(9, &["a"]);
    let (large, other) = (bench.file(10, &["a", "m"]), bench.file(10, &["k", "z"]));
    assert!(matches!(bench.ingest(&[file]), Err(Error::TimestampContract { .. })));
    assert!(matches!(bench.ingest(&[large, other]), Err(Error::InvalidIngest { .. })));
    let missing = bench.ingest(&[PathBuf::from("/in/none.sst")]);
    assert!(missing.is_err());
    let names = bench.fs.list(dir()).unwrap();
    assert!(!names.iter().any(|name| name.ends_with(".sst")), "{names:?}");
}

#[test]
fn small_files_become_a_batch() {
    let mut bench = Bench::new();
    let options = Options { small_ingest_bytes: 64 << 10, ..Bench::options(&bench.tasks) };
    bench.db.close().unwrap();
    bench.db = open_on(bench.fs.clone(), options).unwrap();
    bench.put(3, &["b", "x"]);
    let mut first = bench.builder(4);
    first.delete_span(b"a", b"c").unwrap();
    first.put(b"a", b"f4").unwrap();
    let first = first.finish().unwrap().path;
    let mut second = bench.builder(4);
    second.put(b"k", b"f4").unwrap();
    let second = second.finish().unwrap().path;
    bench.ingest(&[second, first]).unwrap();
    assert_eq!(bench.rows(4), ["a=f4", "k=f4", "x=v3"]);
    assert_eq!(bench.db.metrics().batches_written, 2);
    let names = bench.fs.list(dir()).unwrap();
    assert!(!names.iter().any(|name| name.ends_with(".sst")), "{names:?}");
}

#[test]
fn an_excise_cuts_memtables_and_ssts_but_no_older_view() {
    let bench = Bench::new();
    bench.put(5, &["a", "c", "e", "g"]);
    bench.db.compact_span(&KeySpan::all()).unwrap();
    bench.put(6, &["b", "d", "f"]);
    bench.db.flush().unwrap();
    bench.put(7, &["c"]);
    let before = bench.rows(7);
    let view = bench.db.view(CommitTs(7)).unwrap();
    let mut open = view.scan(KeySpan::all(), ScanOptions::default()).unwrap();
    open.next_row().unwrap();
    bench.db.excise(&KeySpan::new("c", "f")).unwrap();
    let after = ["a=v5", "b=v6", "f=v6", "g=v5"];
    assert_eq!(bench.rows(7), after);
    assert_eq!(bench.rows(5), ["a=v5", "g=v5"], "it is gone at every time");
    assert_eq!(bench.db.max_ts(b"d").unwrap(), CommitTs::ZERO);
    let span = KeySpan::new("c", "f");
    assert_eq!(bench.db.max_ts_in_span(&span).unwrap(), CommitTs::ZERO);
    // Older timestamps may come there now, and only there.
    bench.put(2, &["d"]);
    let refused = {
        let mut batch = Batch::at(CommitTs(2));
        batch.put(b"a", b"");
        bench.db.write(batch, Durability::Sync)
    };
    assert!(matches!(refused, Err(Error::TimestampContract { .. })));
    let expected = ["a=v5", "b=v6", "d=v2", "f=v6", "g=v5"];
    assert_eq!(bench.rows(7), expected);
    bench.tasks.run_all();
    bench.db.flush().unwrap();
    assert_eq!(bench.rows(7), expected);
    bench.db.compact_span(&KeySpan::all()).unwrap();
    assert_eq!(bench.rows(7), expected);
    let mut rest = collect(&mut open).unwrap();
    assert_eq!(rest.len() + 1, before.len(), "the open scan goes on as it began");
    rest.clear();
    let all = view.scan(KeySpan::all(), ScanOptions::default());
    assert_eq!(collect(&mut all.unwrap()).unwrap().len(), before.len());
}

#[test]
fn excising_and_ingesting_are_one_step() {
    let mut bench = Bench::new();
    bench.put(50, &["a", "c", "e", "g"]);
    bench.db.flush().unwrap();
    bench.put(51, &["d"]);
    // A replica's snapshot: older timestamps than what was there.
    let file = bench.file(20, &["c", "d"]);
    let excise = Some(KeySpan::new("c", "f"));
    bench.db.ingest(&[file], IngestOptions { excise, ts_override: None }).unwrap();
    let expected = ["a=v5", "c=f2", "d=f2", "g=v5"];
    assert_eq!(bench.rows(51), expected);
    assert_eq!(bench.rows(20), ["c=f2", "d=f2"]);
    bench.tasks.run_all();
    assert_eq!(bench.rows(51), expected);
    bench.db.compact_span(&KeySpan::all()).unwrap();
    assert_eq!(bench.rows(51), expected);
}

#[test]
fn a_checkpoint_is_a_store_of_its_own() {
    let mut bench = Bench::new();
    bench.put(5, &["a", "b"]);
    let file = bench.file(6, &["k", "l"]);
    bench.ingest(&[file]).unwrap();
    bench.db.excise(&KeySpan::new("l", "m")).unwrap();
    bench.put(7, &["c"]);
    let copy = Path::new("/copy");
    bench.db.checkpoint(copy).unwrap();
    assert!(bench.db.checkpoint(copy).is_err(), "the directory is not empty");
    let expected = ["a=v5", "b=v5", "c=v7", "k=f6"];
    bench.put(8, &["a"]);
    bench.db.excise(&KeySpan::all()).unwrap();
    bench.db.compact_span(&KeySpan::all()).unwrap();
    assert_eq!(bench.rows(8), [""; 0]);
    let report = check_store(bench.fs.clone(), copy).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let tasks = bench.tasks.clone();
    bench.db = open_at(bench.fs.clone(), copy, Bench::options(&tasks)).unwrap();
    assert_eq!(bench.rows(8), expected);
    assert_eq!(bench.db.last_commit_ts(), CommitTs(7));
    bench.put(9, &["d"]);
    bench.db.compact_span(&KeySpan::all()).unwrap();
    assert_eq!(bench.rows(9).len(), 5);
}

#[test]
fn a_file_on_another_device_is_copied_on_a_real_disk_it_is_linked() {
    let scratch = std::env::temp_dir().join(format!("braid-ingest-{}", std::process::id()));
    let fs = braid_env::fs::DiskFs::shared();
    fs.create_dir_all(&scratch).unwrap();
    let store = scratch.join("store");
    let options = || Options { ballast_size: 0, ..Options::default() };
    let db = Db::open(fs.clone(), &store, options()).unwrap();
    let path = scratch.join("file.sst");
    let mut builder = SstBuilder::create(&fs, &path, CommitTs(3), &options()).unwrap();
    for n in 0..5_000u64 {
        builder.put(format!("{n:05}").as_bytes(), &[n as u8; 50]).unwrap();
    }
    let file = builder.finish().unwrap();
    db.ingest(std::slice::from_ref(&file.path), IngestOptions::default()).unwrap();
    fs.remove(&file.path).unwrap();
    db.checkpoint(&scratch.join("copy")).unwrap();
    db.close().unwrap();
    drop(db);
    for dir in ["store", "copy"] {
        let db = Db::open(fs.clone(), &scratch.join(dir), options()).unwrap();
        let view = db.view(CommitTs(3)).unwrap();
        let rows = collect(&mut view.scan(KeySpan::all(), ScanOptions::default()).unwrap());
        assert_eq!(rows.unwrap().len(), 5_000);
        drop(view);
        db.close().unwrap();
        drop(db);
        for name in fs.list(&scratch.join(dir)).unwrap() {
            fs.remove(&scratch.join(dir).join(name)).unwrap();
        }
    }
}

/// A file is opened when it comes, and never again: neither for its place nor by those who read it.
#[test]
fn files_that_come_are_opened_once() {
    let faults = Arc::new(FaultFs::new(Arc::new(MemFs::new()), 1));
    let (fs, tasks) = (faults.clone() as Arc<dyn FileSystem>, Arc::new(SeededTasks::new(7)));
    let options = Options { large_batch_rows: 2, ..Bench::options(&tasks) };
    let db = open_on(fs.clone(), options).unwrap();
    let mut bench = Bench { fs, tasks, db, files: 0 };
    let files = [bench.file(5, &["a", "b"]), bench.file(5, &["k", "l"])];
    faults.add_rule("open(.sst) nth=3 times=100 -> EIO").unwrap();
    bench.ingest(&files).unwrap();
    files.iter().for_each(|file| bench.fs.remove(file).unwrap());
    assert_eq!(bench.rows(5), ["a=f5", "b=f5", "k=f5", "l=f5"]);
    // A large batch becomes files before it has its timestamp.
    faults.clear();
    faults.add_rule("open(.sst) nth=2 times=100 -> EIO").unwrap();
    bench.put(6, &["b", "c", "m"]);
    assert_eq!(bench.rows(6), ["a=f5", "b=v6", "c=v6", "k=f5", "l=f5", "m=v6"]);
    assert_eq!(bench.rows(5), ["a=f5", "b=f5", "k=f5", "l=f5"]);
    // Finished files that get theirs when the transaction commits.
    faults.clear();
    let file = bench.file(7, &["l", "n"]);
    faults.add_rule("open(.sst) nth=2 times=100 -> EIO").unwrap();
    let mut prepared = bench.db.prepare_files(std::slice::from_ref(&file)).unwrap();
    prepared.apply(CommitTs(9)).unwrap().wait_durable().unwrap();
    bench.fs.remove(&file).unwrap();
    assert_eq!(bench.rows(9)[4..], ["l=f7", "m=v6", "n=f7"]);
    assert_eq!(bench.rows(8).len(), 6);
}

#[test]
fn an_ingest_between_the_keys_of_a_memtable_does_not_seal_it() {
    let mut bench = Bench::new();
    bench.put(3, &["b", "m"]);
    // Wider than both keys, but without them.
    let between = bench.file(5, &["a", "k", "z"]);
    bench.ingest(&[between]).unwrap();
    assert_eq!(bench.files_per_level(), [0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(bench.db.metrics().immutable_memtables, 0);
    // One of them: it has to go above the memtable.
    let shared = bench.file(6, &["l", "m", "n"]);
    bench.ingest(&[shared]).unwrap();
    assert_eq!(bench.db.metrics().immutable_memtables, 1);
    let rows = ["a=f5", "b=v3", "k=f5", "l=f6", "m=f6", "n=f6", "z=f5"];
    assert_eq!(bench.rows(6), rows);
    // After a restart all of it is where it was, whatever had been flushed.
    let fs = bench.fs.clone();
    drop(bench);
    let db = open_on(fs, Bench::options(&Arc::new(SeededTasks::new(1)))).unwrap();
    let view = db.view(CommitTs(6)).unwrap();
    assert_eq!(view.get(b"m").unwrap().map(|value| value[..2].to_vec()), Some(b"f6".to_vec()));
    assert_eq!(view.get(b"b").unwrap().as_deref(), Some(&b"v3"[..]));
}

#[test]
fn a_range_tombstone_in_the_memtable_shares_keys_with_every_file_under_it() {
    let mut bench = Bench::new();
    let mut batch = Batch::at(CommitTs(3));
    batch.delete_span(b"c", b"f");
    bench.db.write(batch, Durability::Sync).unwrap();
    let file = bench.file(5, &["a", "z"]);
    bench.ingest(&[file]).unwrap();
    assert_eq!(bench.db.metrics().immutable_memtables, 1);
    assert_eq!(bench.rows(5), ["a=f5", "z=f5"]);
}

/// Takes a span of a store over to another one: all versions, as if everything had been written there.
fn carry(bench: &mut Bench, to: &mut Bench, span: &KeySpan) {
    let mut export = bench.db.view(CommitTs(u64::MAX - 1)).unwrap().export(span).unwrap();
    let mut builder = to.builder(1);
    while let Some(item) = export.next_item().unwrap() {
        match item {
            Exported::Entry { key, ts, value: Some(value) } => {
                builder.put_at(&key, ts, &value).unwrap();
            }
            Exported::Entry { key, ts, value: None } => builder.delete_at(&key, ts).unwrap(),
            Exported::Tombstone { span, ts } => {
                builder.delete_span_at(&span.start, &span.end, ts).unwrap();
            }
        }
    }
    let file = builder.finish().unwrap();
    let excise = Some(span.clone());
    to.db.ingest(&[file.path], IngestOptions { excise, ts_override: None }).unwrap();
}

/// The same by batches, where nothing was ever written.
fn carry_by_batches(bench: &mut Bench, to: &mut Bench, span: &KeySpan) {
    let mut export = bench.db.view(CommitTs(u64::MAX - 1)).unwrap().export(span).unwrap();
    let (mut spans, mut points) = (Vec::new(), Vec::new());
    while let Some(item) = export.next_item().unwrap() {
        match item {
            Exported::Entry { key, ts, value } => points.push((ts, key, value)),
            Exported::Tombstone { span, ts } => spans.push((ts, span)),
        }
    }
    for ts in (1..100).map(CommitTs) {
        let mut batch = Batch::at(ts);
        for (_, span) in spans.iter().filter(|(at, _)| *at == ts) {
            batch.delete_span(&span.start, &span.end);
        }
        for (_, key, value) in points.iter().filter(|(at, ..)| *at == ts) {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        drop(to.db.fill(batch).unwrap());
    }
}

#[test]
fn an_export_has_all_versions_and_tombstones_of_all_layers_and_nothing_that_came_later() {
    let mut bench = Bench::new();
    let write = |bench: &Bench, ts, batch: &dyn Fn(&mut Batch)| {
        let mut at = Batch::at(CommitTs(ts));
        batch(&mut at);
        bench.db.write(at, Durability::Sync).unwrap();
    };
    bench.put(1, &["a", "b", "c", "d", "e", "f"]);
    bench.db.flush().unwrap();
    bench.tasks.run_all();
    write(&bench, 2, &|b| b.delete_span(b"b", b"e"));
    bench.put(3, &["c"]);
    bench.db.flush().unwrap();
    bench.tasks.run_all();
    write(&bench, 4, &|b| b.delete(b"c"));
    // An excise that waits for a memtable, with an ingest on top of it.
    bench.put(5, &["e"]);
    let file = bench.file(6, &["e"]);
    let excise = Some(KeySpan::new("e", "f"));
    bench.db.ingest(&[file], IngestOptions { excise, ts_override: None }).unwrap();
    bench.put(7, &["b", "c"]);
    write(&bench, 8, &|b| b.delete_span(b"a", b"c"));
    let span = KeySpan::new("b", "f");
    let mut export = bench.db.view(CommitTs(u64::MAX - 1)).unwrap().export(&span).unwrap();
    write(&bench, 9, &|b| b.delete_span(b"a", b"z"));
    bench.put(10, &["b"]);
    let mut items = Vec::new();
    while let Some(item) = export.next_item().unwrap() {
        items.push(match item {
            Exported::Entry { key, ts, value } => {
                let kind = if value.is_some() { "" } else { "-" };
                format!("{kind}{}@{ts}", key.escape_ascii())
            }
            Exported::Tombstone { span, ts } => {
                format!("[{},{})@{ts}", span.start.escape_ascii(), span.end.escape_ascii())
            }
        });
    }
    let expected = "[b,e)@2 [b,c)@8 b@7 b@1 c@7 -c@4 c@3 c@1 d@1 e@6";
    assert_eq!(items.join(" "), expected);
}

/// A higher one would drop what is read from now on.
#[test]
fn a_threshold_that_was_lowered_is_lowered_after_a_crash() {
    let (tasks, fs) = (Arc::new(SeededTasks::new(7)), Arc::new(MemFs::new()));
    let db = open_on(fs.clone(), Bench::options(&tasks)).unwrap();
    let mut batch = Batch::at(CommitTs(50));
    batch.put(b"a", b"1");
    db.write(batch, Durability::Sync).unwrap();
    db.set_gc_threshold(CommitTs(40)).unwrap();
    db.flush().unwrap();
    db.lower_gc_threshold(CommitTs(12)).unwrap();
    db.lower_gc_threshold(CommitTs(30)).unwrap();
    assert!(db.view(CommitTs(11)).is_err() && db.view(CommitTs(12)).is_ok());
    let after = fs.crash_clone(&mut Random::seeded(1), CrashPolicy::LoseAll);
    drop(db);
    let db = open_on(Arc::new(after), Bench::options(&tasks)).unwrap();
    assert_eq!(db.gc_threshold(), CommitTs(12));
    db.set_gc_threshold(CommitTs(20)).unwrap();
    assert!(db.view(CommitTs(19)).is_err());
}

#[test]
fn what_is_carried_to_another_store_reads_the_same_at_all_times() {
    let ways = [(None, false), (Some(12), false), (None, true), (Some(12), true)];
    for (seed, (lowered, by_batches)) in (0..40).flat_map(|seed| ways.map(|way| (seed, way))) {
        let mut random = Random::seeded(seed);
        let (mut from, mut to) = (Bench::new(), Bench::new());
        let key = |random: &mut Random| format!("{:02}", random.below(12));
        for ts in 1..60 {
            let mut batch = Batch::at(CommitTs(ts));
            match random.below(5) {
                0 => {
                    let (a, b) = (key(&mut random), key(&mut random));
                    batch.delete_span(a.as_bytes(), b.as_bytes());
                }
                1 => batch.delete(key(&mut random).as_bytes()),
                _ => batch.put(key(&mut random).as_bytes(), ts.to_string().as_bytes()),
            }
            from.db.write(batch, Durability::Buffered).unwrap();
            if random.chance(1, 6) {
                from.db.flush().unwrap();
            }
            if random.chance(1, 4) {
                from.tasks.run_one();
            }
        }
        // What is there already is older, newer, and below the threshold.
        let there: &[&str] = if by_batches { &["01", "10", "99"] } else { &["03", "05", "99"] };
        to.put(70, there);
        to.db.set_gc_threshold(CommitTs(40)).unwrap();
        // Work that goes by that threshold may be on its way.
        for _ in 0..random.below(3) {
            to.tasks.run_one();
        }
        if let Some(lowered) = lowered {
            to.db.lower_gc_threshold(CommitTs(lowered)).unwrap();
        }
        let first = to.db.gc_threshold().0;
        assert_eq!(first, lowered.unwrap_or(40));
        let span = KeySpan::new("02", "09");
        match by_batches {
            true => carry_by_batches(&mut from, &mut to, &span),
            false => carry(&mut from, &mut to, &span),
        }
        let rows = |bench: &Bench, ts: u64| {
            let view = bench.db.view(CommitTs(ts)).unwrap();
            collect(&mut view.scan(span.clone(), ScanOptions::default()).unwrap()).unwrap()
        };
        for compacted in [false, true] {
            (first..65).for_each(|ts| assert_eq!(rows(&from, ts), rows(&to, ts), "{seed} {ts}"));
            let newest = |bench: &Bench| bench.db.newest_above(&span, CommitTs(first)).unwrap();
            assert_eq!(newest(&from), newest(&to), "seed {seed}, compacted: {compacted}");
            to.db.compact_span(&KeySpan::all()).unwrap();
        }
        assert_eq!(to.rows(71).last().map(String::as_str), Some("99=v7"));
    }
}
