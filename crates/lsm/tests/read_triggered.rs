//! Reads that pay for overlapping ssts again and again get them merged, within a budget.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use braid_env::clock::ManualClock;
use braid_env::fs::MemFs;
use braid_env::random::Random;
use braid_env::tasks::SeededTasks;
use braid_lsm::{
    Batch, CommitTs, CompactionReason, Db, Durability, KeySpan, Metrics, Options, ScanOptions,
};

const KEYS: u64 = 20_000;

struct Store {
    db: Db,
    tasks: Arc<SeededTasks>,
    clock: Arc<ManualClock>,
    ts: u64,
    random: Random,
}

fn key(n: u64) -> Vec<u8> {
    format!("user{n:08}").into_bytes()
}

impl Store {
    /// Eight flushes of random keys over a settled bottom level, which no level score objects to.
    fn untidy(read_triggered: bool) -> Store {
        let (tasks, clock) = (Arc::new(SeededTasks::new(5)), Arc::new(ManualClock::at_micros(1)));
        let options = Options {
            ballast_size: 0,
            memtable_size: 64 << 20,
            l0_compaction_sublevels: 100,
            base_level_size: 64 << 20,
            target_sst_size: 512 << 10,
            flush_split_bytes: 512 << 10,
            read_triggered,
            read_sample_every: 8,
            clock: clock.clone(),
            tasks: Some(tasks.clone()),
            ..Options::default()
        };
        let db = Db::open(Arc::new(MemFs::new()), Path::new("/store"), options).unwrap();
        let mut store = Store { db, tasks, clock, ts: 0, random: Random::seeded(11) };
        let all: Vec<u64> = (0..KEYS).collect();
        store.write(&all);
        store.db.compact_span(&KeySpan::all()).unwrap();
        for _ in 0..8 {
            let some: Vec<u64> = (0..KEYS / 8).map(|_| store.random.below(KEYS)).collect();
            store.write(&some);
            store.db.flush().unwrap();
        }
        store.tasks.run_all();
        store
    }

    fn write(&mut self, keys: &[u64]) {
        self.ts += 1;
        let mut batch = Batch::at(CommitTs(self.ts));
        let mut value = [0; 100];
        for n in keys {
            self.random.fill(&mut value);
            batch.put(&key(*n), &value);
        }
        self.db.write(batch, Durability::Buffered).unwrap();
    }

    /// So many reads, spread over so many seconds.
    fn read(&mut self, reads: u64, seconds: u64, scans: bool) {
        for i in 0..reads {
            let at = key(self.random.below(KEYS));
            if scans {
                let span = KeySpan::new(at, vec![0xFF]);
                let options = ScanOptions { limit: Some(2), ..ScanOptions::default() };
                let view = self.db.view(CommitTs(self.ts)).unwrap();
                assert!(view.scan(span, options).unwrap().next_batch(2, 1 << 20).is_ok());
            } else {
                assert!(self.db.get(&at, CommitTs(self.ts)).unwrap().is_some());
            }
            if i % (reads / 1_000).max(1) == 0 {
                self.clock.advance(Duration::from_millis(seconds));
                self.tasks.run_all();
            }
        }
    }

    /// Ssts that a get looked into, on average, during `reads` of them.
    fn ssts_per_get(&mut self, reads: u64) -> f64 {
        let before = self.db.metrics();
        self.read(reads, 0, false);
        let after = self.db.metrics();
        let ssts = after.sampled_get_ssts - before.sampled_get_ssts;
        ssts as f64 / (after.sampled_gets - before.sampled_gets) as f64
    }
}

fn runs(metrics: &Metrics) -> usize {
    metrics.l0_runs + metrics.levels[1..].iter().filter(|level| level.files > 0).count()
}

#[test]
fn a_store_that_is_only_read_becomes_tidy() {
    for scans in [false, true] {
        let mut store = Store::untidy(true);
        assert!(runs(&store.db.metrics()) >= 8, "{:?}", store.db.metrics());
        let before = store.ssts_per_get(4_000);
        // A few minutes of a hundred reads per second would not be worth a rewrite; many are.
        store.read(60_000, 60, scans);
        let after = store.ssts_per_get(4_000);
        assert!(after < before * 0.29, "scans {scans}: from {before} to {after}");
        let metrics = store.db.metrics();
        assert!(metrics.reason(CompactionReason::ReadTriggered).compactions > 0);
        assert!(runs(&metrics) <= 2, "{metrics:?}");
    }
}

#[test]
fn nothing_is_rewritten_if_it_is_off_or_reads_are_few() {
    let mut off = Store::untidy(false);
    off.read(20_000, 60, true);
    assert_eq!(off.db.metrics().reason(CompactionReason::ReadTriggered).compactions, 0);
    let mut few = Store::untidy(true);
    few.read(30, 60, false);
    assert_eq!(few.db.metrics().reason(CompactionReason::ReadTriggered).compactions, 0);
}

#[test]
fn seeks_inside_of_an_open_scan_count_too() {
    let store = Store::untidy(true);
    let before = runs(&store.db.metrics());
    for _ in 0..60 {
        let view = store.db.view(CommitTs(store.ts)).unwrap();
        let mut scan = view.scan(KeySpan::all(), ScanOptions::default()).unwrap();
        for at in (0..KEYS).step_by(20) {
            scan.seek(&key(at)).unwrap();
            assert_eq!(scan.next_batch(1, 1 << 20).unwrap().key(0), key(at));
        }
        store.clock.advance(Duration::from_secs(1));
        store.tasks.run_all();
    }
    let metrics = store.db.metrics();
    assert!(metrics.reason(CompactionReason::ReadTriggered).compactions > 0, "{metrics:?}");
    assert!(runs(&metrics) < before, "{metrics:?}");
}
