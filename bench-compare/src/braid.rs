//! Our engine behind [`Kv`].

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use braid_env::fs::{DiskFs, FileSystem};
use braid_lsm::{
    Batch, CommitTs, CompactionReason, Db, IngestOptions, KeySpan, Options, RowBatch, ScanOptions,
    SstBuilder,
};

use crate::run::{Kv, Op};
use crate::step::{Report, Step};

thread_local! {
    /// A reader uses the memory of its batch again, as the other engines' iterators have none.
    static BATCH: Cell<RowBatch> = Cell::default();
}

pub struct Braid {
    db: Db,
    ts: AtomicU64,
    /// Timestamps must arrive in order where keys overlap (the transaction layer's duty).
    order: Mutex<()>,
    dir: PathBuf,
    options: Options,
    /// Peers keep no history; neither do we then, by a gc threshold that follows the clock.
    keeps_nothing: bool,
}

impl Braid {
    pub fn open(dir: &Path, step: &Step) -> Braid {
        let defaults = Options::default();
        let options = Options {
            base_level_size: step.number_or("base", defaults.base_level_size),
            target_sst_size: step.number_or("file", defaults.target_sst_size),
            flush_split_bytes: step.number_or("file", defaults.flush_split_bytes),
            memtable_size: step.number("memtable") as usize,
            block_cache_size: step.number("cache") as usize,
            ballast_size: 0,
            l0_sublevels: step.text("l0_sublevels") != "0",
            read_triggered: step.text("read_triggered") != "0",
            ..defaults
        };
        let db = Db::open(Arc::new(DiskFs), dir, options.clone()).expect("BraidDB opens");
        let ts = AtomicU64::new(db.last_commit_ts().0);
        let keeps_nothing = step.text("history") != "1";
        Braid { db, ts, order: Mutex::new(()), dir: dir.to_path_buf(), options, keeps_nothing }
    }

    fn forget_history(&self) {
        if self.keeps_nothing {
            self.db.set_gc_threshold(self.now()).expect("BraidDB moves its gc threshold");
        }
    }

    fn now(&self) -> CommitTs {
        CommitTs(self.ts.load(Ordering::Acquire))
    }

    fn next(&self) -> CommitTs {
        CommitTs(self.ts.fetch_add(1, Ordering::AcqRel) + 1)
    }
}

impl Kv for Braid {
    fn write(&self, ops: &[Op<'_>]) {
        let order = self.order.lock().expect("nobody panics with it");
        let mut batch = Batch::at(self.next());
        for op in ops {
            match op {
                Op::Put(key, value) => batch.put(key, value),
                Op::Delete(key) => batch.delete(key),
                Op::DeleteRange(from, to) => batch.delete_span(from, to),
            }
        }
        let pending = self.db.apply(batch).expect("BraidDB writes");
        if self.keeps_nothing && self.now().0.is_multiple_of(16_384) {
            self.forget_history();
        }
        drop(order);
        pending.wait_written().expect("BraidDB writes");
    }

    fn get(&self, key: &[u8]) -> bool {
        let found = self.db.get(key, self.now()).expect("BraidDB reads");
        found.is_some_and(|value| std::hint::black_box(value.len()) > 0)
    }

    fn scan(&self, from: &[u8], rows: usize) -> usize {
        let view = self.db.view(self.now()).expect("BraidDB reads");
        let limit = if rows == usize::MAX { None } else { Some(rows) };
        let options = ScanOptions { limit, ..ScanOptions::default() };
        let span = KeySpan::new(from.to_vec(), vec![0xff; 17]);
        let mut scan = view.scan(span, options).expect("BraidDB scans");
        let mut batch = BATCH.take();
        let (mut seen, mut sum) = (0, 0u64);
        while scan.next_batch_into(&mut batch, 1_024, 1 << 20).expect("BraidDB scans") > 0 {
            for i in 0..batch.len() {
                let (key, value) = (batch.key(i), batch.value(i));
                sum += u64::from(key[key.len() - 1]) + u64::from(value[0]);
            }
            seen += batch.len();
        }
        BATCH.set(batch);
        std::hint::black_box(sum);
        seen
    }

    fn keys(&self, from: &[u8], to: &[u8]) -> Vec<Vec<u8>> {
        let view = self.db.view(self.now()).expect("BraidDB reads");
        let span = KeySpan::new(from.to_vec(), to.to_vec());
        let mut scan = view.scan(span, ScanOptions::default()).expect("BraidDB scans");
        let mut keys = Vec::new();
        while let Some(row) = scan.next_row().expect("BraidDB scans") {
            keys.push(row.key.to_vec());
        }
        keys
    }

    fn flush(&self) {
        self.forget_history();
        self.db.flush().expect("BraidDB flushes");
    }

    fn compact_all(&self) {
        self.db.compact_span(&KeySpan::all()).expect("BraidDB compacts");
    }

    fn is_quiet(&self) -> bool {
        self.forget_history();
        self.db.is_quiet()
    }

    fn build(&self, rows: &[(Vec<u8>, Vec<u8>)], name: &str) {
        let path = self.dir.join(name);
        // The real timestamp is given at the ingest.
        let ts = CommitTs(1);
        let disk: Arc<dyn FileSystem> = Arc::new(DiskFs);
        let mut builder =
            SstBuilder::create(&disk, &path, ts, &self.options).expect("the sst opens");
        for (key, value) in rows {
            builder.put(key, value).expect("rows are in order");
        }
        builder.finish().expect("the sst is finished");
    }

    fn ingest(&self, name: &str) {
        let path = self.dir.join(name);
        let _order = self.order.lock().expect("nobody panics with it");
        let options = IngestOptions { ts_override: Some(self.next()), ..IngestOptions::default() };
        self.db.ingest(std::slice::from_ref(&path), options).expect("BraidDB ingests");
        std::fs::remove_file(&path).expect("the store has a link of its own");
        self.forget_history();
    }

    fn stats(&self) -> Report {
        let metrics = self.db.metrics();
        let mut report = Report::new();
        let mut amp = 0.0;
        for (level, m) in metrics.levels.iter().enumerate() {
            let files = m.files as f64;
            report.insert(format!("l{level}_files"), files);
            amp += if level == 0 { metrics.l0_runs as f64 } else { f64::from(files > 0.0) };
        }
        report.insert("read_amp".into(), amp);
        report.insert("l0_sublevels".into(), metrics.l0_runs as f64);
        report.insert("write_amp".into(), metrics.write_amplification());
        let for_reads = metrics.reason(CompactionReason::ReadTriggered);
        report.insert("for_reads".into(), for_reads.compactions as f64);
        report.insert("for_reads_bytes".into(), for_reads.bytes_out as f64);
        let per_get = metrics.sampled_get_ssts as f64 / metrics.sampled_gets.max(1) as f64;
        report.insert("ssts_per_get".into(), per_get);
        report.insert("longest_wait_ms".into(), metrics.longest_write_wait_nanos as f64 / 1e6);
        report.insert(
            "bytes_written".into(),
            (metrics.flush_bytes + metrics.compaction_bytes_out) as f64,
        );
        report.insert("user_bytes".into(), metrics.wal_bytes_synced as f64);
        let bytes: u64 = metrics.levels.iter().map(|level| level.bytes).sum();
        report.insert("sst_bytes".into(), bytes as f64);
        report
    }
}
