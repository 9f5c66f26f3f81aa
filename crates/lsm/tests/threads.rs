//! Real threads: writers, readers, flushes, compactions, ingests and excises at the same time.
//!
//! Each writer owns a family of keys and keeps a model of it. Every batch writes the same number
//! under its first and its last key, so that a reader sees a torn batch at once. Readers hold views
//! and read them twice. At the end, and after reopening, each family is what its writer says.
//!
//! `cargo test -p braid-lsm --test threads`; `BRAID_ROUNDS` (default 2,000) batches per writer.

#[allow(dead_code)]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use braid_env::fs::{FileSystem, MemFs};
use braid_env::random::Random;
use braid_env::tasks::spawn_thread;
use braid_lsm::{
    Batch, CommitTs, Db, Durability, IngestOptions, KeySpan, Options, ScanOptions, SstBuilder,
};

const WRITERS: u64 = 4;

type Family = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options {
        memtable_size: 16 << 10,
        wal_segment_size: 16 << 10,
        block_size: 512,
        flush_split_bytes: 4 << 10,
        l0_slow_sublevels: 8,
        l0_stop_sublevels: 12,
        compaction_slots: 3,
        compaction_unit_bytes: 12 << 10,
        base_level_size: 16 << 10,
        level_multiplier: 3,
        target_sst_size: 4 << 10,
        block_cache_size: 64 << 10,
        small_ingest_bytes: 0,
        ballast_size: 0,
        paranoid_checks: true,
        ..Options::default()
    }
}

fn writer(fs: &Arc<dyn FileSystem>, db: &Db, clock: &AtomicU64, id: u64, rounds: u64) -> Family {
    let mut random = Random::seeded(id);
    let mut family = Family::new();
    let key = |n: u64| format!("{id}/{n:03}").into_bytes();
    for round in 0..rounds {
        let mut value = vec![0; 20 + random.below(200) as usize];
        random.fill(&mut value);
        value[..8].copy_from_slice(&round.to_le_bytes());
        // The timestamp is taken late: two writers may apply theirs in the other order.
        let ts = CommitTs(clock.fetch_add(1, Ordering::SeqCst));
        if random.chance(1, 30) {
            // The same as a file, sometimes with a span cut out of what was there.
            let path = PathBuf::from(format!("/in/{id}-{round}.sst"));
            let mut file = SstBuilder::create(fs, &path, ts, &options()).unwrap();
            let mut names = vec![format!("{id}/!first").into_bytes()];
            let from = random.below(300);
            names.extend((from..from + random.below(20)).map(key));
            names.push(format!("{id}/~last").into_bytes());
            let cut = KeySpan::new(key(random.below(300)), key(random.below(300)));
            let excise = random.chance(1, 2).then_some(cut).filter(|cut| !cut.is_empty());
            if let Some(cut) = &excise {
                family.retain(|k, _| !cut.contains(k));
            }
            for name in names {
                file.put(&name, &value).unwrap();
                family.insert(name, value.clone());
            }
            let file = file.finish().unwrap();
            db.ingest(&[file.path], IngestOptions { excise, ts_override: None }).unwrap();
            fs.remove(&path).unwrap();
            continue;
        }
        let mut batch = Batch::at(ts);
        if random.chance(1, 8) {
            let (from, len) = (random.below(300), random.below(100));
            batch.delete_span(&key(from), &key(from + len));
            family.retain(|k, _| *k < key(from) || *k >= key(from + len));
        }
        for name in [format!("{id}/!first"), format!("{id}/~last")] {
            batch.put(name.as_bytes(), &value);
            family.insert(name.into_bytes(), value.clone());
        }
        for _ in 0..random.below(6) {
            let key = key(random.below(300));
            batch.put(&key, &value);
            family.insert(key, value.clone());
        }
        let durability = if random.chance(1, 10) { Durability::Sync } else { Durability::Buffered };
        db.write(batch, durability).unwrap();
    }
    family
}

fn rows(db: &Db, span: KeySpan, ts: u64, reverse: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let view = db.view(CommitTs(ts)).unwrap();
    let options = ScanOptions { reverse, ..ScanOptions::default() };
    let mut scan = view.scan(span, options).unwrap();
    let mut found = Vec::new();
    while let Some(row) = scan.next_row().unwrap() {
        found.push((row.key.to_vec(), row.value.to_vec()));
    }
    if reverse {
        found.reverse();
    }
    found
}

fn reader(db: &Db, clock: &AtomicU64, stop: &AtomicBool, seed: u64) -> u64 {
    let mut random = Random::seeded(seed);
    let mut reads = 0;
    while !stop.load(Ordering::SeqCst) {
        let now = clock.load(Ordering::SeqCst);
        let id = random.below(WRITERS);
        let span = KeySpan::prefix(format!("{id}/").as_bytes());
        let ts = now.saturating_sub(random.below(20)).max(db.gc_threshold().0);
        let Ok(view) = db.view(CommitTs(ts)) else { continue };
        for _ in 0..100 {
            let view = db.view(CommitTs(u64::MAX - 1)).unwrap();
            let pair = |name: &str| view.get(format!("{id}/{name}").as_bytes()).unwrap();
            assert_eq!(pair("!first"), pair("~last"), "a batch was seen in part");
        }
        let pair = |name: &str| view.get(format!("{id}/{name}").as_bytes()).unwrap();
        assert_eq!(pair("!first"), pair("~last"), "a batch was seen in part");
        let mut scan = view.scan(span.clone(), ScanOptions::default()).unwrap();
        let mut forward = Vec::new();
        while let Some(row) = scan.next_row().unwrap() {
            forward.push(row);
        }
        let backwards = ScanOptions { reverse: true, ..ScanOptions::default() };
        let mut scan = view.scan(span, backwards).unwrap();
        while let Some(row) = scan.next_row().unwrap() {
            assert_eq!(Some(row), forward.pop(), "a view changed while it was read");
        }
        assert!(forward.is_empty());
        reads += 1;
        if reads % 20 == 0 {
            // Far behind: a writer that lost the processor must not be overtaken.
            db.set_gc_threshold(CommitTs(now.saturating_sub(4_000))).unwrap();
        }
    }
    reads
}

#[test]
fn writers_readers_and_background_work_do_not_disturb_each_other() {
    let rounds = support::setting("BRAID_ROUNDS", 2_000);
    let fs = MemFs::new();
    let dir = Path::new("/store");
    let db = Db::open(Arc::new(fs.clone()), dir, options()).unwrap();
    let clock = Arc::new(AtomicU64::new(1));
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|id| {
            let (db, clock) = (db.clone(), clock.clone());
            let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
            spawn_thread("writer", move || writer(&fs, &db, &clock, id, rounds))
        })
        .collect();
    let readers: Vec<_> = (0..2)
        .map(|seed| {
            let (db, clock, stop) = (db.clone(), clock.clone(), stop.clone());
            spawn_thread("reader", move || reader(&db, &clock, &stop, seed))
        })
        .collect();
    let mut expected = Family::new();
    for writer in writers {
        expected.extend(writer.join().unwrap());
    }
    stop.store(true, Ordering::SeqCst);
    let reads: u64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
    assert!(reads > 0);
    let expected: Vec<_> = expected.into_iter().collect();
    for reverse in [false, true] {
        assert_eq!(rows(&db, KeySpan::all(), u64::MAX - 1, reverse), expected);
    }
    db.compact_span(&KeySpan::all()).unwrap();
    assert_eq!(rows(&db, KeySpan::all(), u64::MAX - 1, false), expected);
    let metrics = db.metrics();
    assert!(metrics.flushes > 3 && metrics.compactions > 3, "{metrics:?}");
    db.close().unwrap();
    drop(db);
    let db = Db::open(Arc::new(fs), dir, options()).unwrap();
    assert_eq!(rows(&db, KeySpan::all(), u64::MAX - 1, false), expected);
}
