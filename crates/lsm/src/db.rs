//! The handle of an open store. Thin: it delegates.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_env::fs::FileSystem;
use bytes::Bytes;

use crate::batch::Batch;
use crate::cache::{region_bytes, release_free};
use crate::commit::{Durability, Pending};
use crate::compaction::levels_targets;
use crate::error::{Error, Result};
use crate::inspect::Event;
use crate::inspect::{explain_get, explain_scan};
use crate::iter::{ReadWork, ScanStats};
use crate::key::{Between, CommitTs, KeySpan};
use crate::metrics::{LevelMetrics, Metrics};
use crate::open;
use crate::options::Options;
use crate::store::Store;
use crate::structure::{IngestOptions, PreparedBatch};
use crate::versions::LEVELS;
use crate::view::View;

/// An open store. Cloning gives another handle of the same store.
#[derive(Clone)]
pub struct Db {
    store: Arc<Store>,
}

/// Of many keys, how many further on memory is asked for.
const KEYS_AHEAD: usize = 6;

impl Db {
    /// Whether there is a store in a directory.
    ///
    /// # Errors
    /// The disk's.
    pub fn exists(fs: &dyn FileSystem, dir: &Path) -> std::io::Result<bool> {
        fs.exists(&dir.join("CURRENT"))
    }

    /// Opens the store in a directory, creating both if they do not exist, and replays what was
    /// written last. Fails with `DirectoryInUse` if anybody else has it open, with `Corruption`
    /// if damage is found, with `FormatTooNew` if a newer version wrote it. Blocks on the device.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path, options: Options) -> Result<Db> {
        Ok(Db { store: open::open(fs, dir, options)? })
    }

    /// Writes a batch; returns when it is as durable as asked. Atomic. Blocks on the device.
    pub fn write(&self, batch: Batch, durability: Durability) -> Result<()> {
        let pending = self.apply(batch)?;
        match durability {
            Durability::Sync => pending.wait_durable(),
            Durability::Buffered => pending.wait_written(),
        }
    }

    /// Makes a batch visible to new views and queues it for the wal; does not wait for the device
    /// (except when writers are far ahead of it). The caller waits on the result, outside of its
    /// own locks.
    ///
    /// Fails with `TimestampContract` if the batch is older than what it overlaps, and with
    /// `TooLarge`, `DiskFull` or `Closed`; nothing was written then.
    pub fn apply(&self, batch: Batch) -> Result<Pending> {
        self.store.apply(batch)
    }

    /// As [`Db::apply`], and never waits for background work: for threads that have others to
    /// serve. Whoever calls it asks [`Db::has_room`] first; without room the store grows in memory.
    /// Nor is anything refused while [`Db::is_full`] says so: what has been agreed upon must be
    /// taken in, in the room that the ballast has left, and whoever agrees stops agreeing.
    pub fn apply_at_once(&self, batch: Batch) -> Result<Pending> {
        self.store.apply_at_once(batch)
    }

    /// As [`Db::apply_at_once`], of a batch that may be at or below the garbage collection
    /// threshold: it goes where nothing was ever written, or where all of it was cut out
    /// ([`Db::excise`]), and with others like it, the older ones first. That nothing was there is
    /// for the caller to know: of what was dropped nothing is left to be seen.
    pub fn fill(&self, batch: Batch) -> Result<Pending> {
        self.store.fill(batch)
    }

    /// Whether a batch is taken in without waiting for flushes or compactions. They are under way
    /// if not: ask again later. Lock-free.
    pub fn has_room(&self) -> bool {
        self.store.has_room()
    }

    /// Whether what adds data is refused since the device is full. Looks whether it still is.
    pub fn is_full(&self) -> bool {
        self.store.ballast.is_full()
    }

    /// Does all that a batch needs before it has its place in the order of arrival and its
    /// timestamp: its net effect and wal form, waiting for room; a large one is written into ssts.
    /// Blocks on the device. The caller then applies it under whatever lock decides his order.
    ///
    /// Fails with `TooLarge`, `DiskFull` or an I/O error; nothing was written then.
    pub fn prepare(&self, batch: Batch) -> Result<PreparedBatch> {
        self.store.prepare_batch(batch)
    }

    /// The store as of `ts`: batches up to now with a timestamp up to `ts`. Fails with
    /// `BelowGcThreshold` if that history may be gone. Lock-free.
    pub fn view(&self, ts: CommitTs) -> Result<View> {
        if self.store.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let (state, read) = self.store.pin(ts)?;
        Ok(View::new(self.store.clone(), state, read))
    }

    /// The value of a key as of `ts`, `None` if it does not exist: what [`View::get`] of a fresh
    /// view returns, without making one. Lock-free; may read from the device.
    pub fn get(&self, key: &[u8], ts: CommitTs) -> Result<Option<Bytes>> {
        Ok(self.get_with_stats(key, ts)?.0)
    }

    /// As [`Db::get`], with what was looked at: entries and blocks.
    pub fn get_with_stats(&self, key: &[u8], ts: CommitTs) -> Result<(Option<Bytes>, ScanStats)> {
        let mut found = None;
        let stats = self.get_each(&[key], ts, |value| found = value)?;
        Ok((found, stats))
    }

    /// The values of keys as of `ts`, each as [`Db::get`] returns it, and what was looked at in
    /// all. While one is looked up, memory that the next ones need is on its way: many keys cost
    /// less than each alone, the least if they are in order.
    pub fn get_many(
        &self,
        keys: &[Bytes],
        ts: CommitTs,
    ) -> Result<(Vec<Option<Bytes>>, ScanStats)> {
        let mut values = Vec::with_capacity(keys.len());
        let stats = self.get_each(keys, ts, |value| values.push(value))?;
        Ok((values, stats))
    }

    fn get_each(
        &self,
        keys: &[impl AsRef<[u8]>],
        ts: CommitTs,
        mut take: impl FnMut(Option<Bytes>),
    ) -> Result<ScanStats> {
        let store = &self.store;
        if store.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        // First the layers, then the visible index, and again if an operation came in between; see
        // `Store::pin`.
        let (state, visible) = loop {
            let before = store.structure_epoch.load(Ordering::Acquire);
            let state = store.state.load();
            let visible = store.visible.load(Ordering::Acquire);
            if before == store.structure_epoch.load(Ordering::Acquire) {
                break (state, visible);
            }
        };
        let read = store.read_point(ts, visible)?;
        let mut work = ReadWork::default();
        let mut found = 0;
        let prefetch = |key: &[u8]| state.prefetch_get(&store.env, key);
        if keys.len() > 1 {
            keys.iter().take(KEYS_AHEAD).for_each(|key| prefetch(key.as_ref()));
        }
        for (n, key) in keys.iter().enumerate() {
            if let Some(next) = keys.get(n + KEYS_AHEAD) {
                prefetch(next.as_ref());
            }
            let key = key.as_ref();
            if store.read_meter.is_due() {
                store.sample_get(&state, key);
            }
            let value = state.get(&store.env, key, read, &mut work)?;
            found += u64::from(value.is_some());
            take(value.map(|(value, _)| value));
        }
        let stats = ScanStats {
            rows_visited: work.rows_passed + found,
            rows_returned: found,
            blocks_read: work.blocks,
            blocks_from_disk: work.from_disk,
            ..ScanStats::default()
        };
        Ok(stats)
    }

    /// Newest timestamp of an entry of `key` or a range tombstone over it, over everything that
    /// has arrived; `ZERO` if there is none. For conflict checks.
    pub fn max_ts(&self, key: &[u8]) -> Result<CommitTs> {
        let store = &self.store;
        Ok(CommitTs(store.state.load_full().max_ts_of(&store.env, key, 0)?))
    }

    /// As [`Db::max_ts`], if that is above `floor`; else `None`. Layers that are older are not
    /// looked at.
    pub fn newest_of(&self, key: &[u8], floor: CommitTs) -> Result<Option<CommitTs>> {
        let store = &self.store;
        let newest = store.state.load_full().max_ts_of(&store.env, key, floor.0)?;
        Ok((newest > floor.0).then_some(CommitTs(newest)))
    }

    /// Newest timestamp of anything in a span; `ZERO` if there is nothing.
    ///
    /// History that garbage collection removed does not count. Where only "is there anything
    /// newer than T" matters, [`Db::newest_above`] is cheaper.
    pub fn max_ts_in_span(&self, span: &KeySpan) -> Result<CommitTs> {
        let store = &self.store;
        Ok(CommitTs(store.state.load_full().newest_above(&store.env, span, 0, true)?))
    }

    /// Newest timestamp above `floor` of an entry or tombstone in a span, `None` if there is
    /// nothing above it. Layers and blocks that are older are not looked at, so the cost follows
    /// what arrived since `floor`, not the size of the span.
    pub fn newest_above(&self, span: &KeySpan, floor: CommitTs) -> Result<Option<CommitTs>> {
        let store = &self.store;
        let newest = store.state.load_full().newest_above(&store.env, span, floor.0, true)?;
        Ok((newest > floor.0).then_some(CommitTs(newest)))
    }

    /// Newest timestamp above `floor` and not above `upto` of an entry or tombstone in a span,
    /// whatever is newer; `None` if there is nothing in between. The cost is that of
    /// [`Db::newest_above`].
    ///
    /// `floor` is not below the threshold: of what lies further back something may be missing.
    pub fn newest_between(
        &self,
        span: &KeySpan,
        floor: CommitTs,
        upto: CommitTs,
    ) -> Result<Option<CommitTs>> {
        let store = &self.store;
        let times = Between { floor: floor.0, upto: upto.0 };
        let newest = store.state.load_full().newest_between(&store.env, span, times, true)?;
        Ok((newest > floor.0).then_some(CommitTs(newest)))
    }

    /// Declares that nobody will read below `ts` any more: reads and writes there are rejected
    /// from now on, and compactions drop what only they would see. Never decreases by that.
    pub fn set_gc_threshold(&self, ts: CommitTs) -> Result<()> {
        {
            // Under the commit mutex, so that its order to batches is defined.
            let _commit = self.store.commit.lock();
            if self.store.closed.load(Ordering::Acquire) {
                return Err(Error::Closed);
            }
            self.store.gc_threshold.fetch_max(ts.0, Ordering::AcqRel);
        }
        self.store.schedule();
        Ok(())
    }

    /// Takes that back: from now on versions at `ts` and later are kept, and may be read and
    /// written. What was dropped meanwhile is gone, so it is for whoever is about to cut a span
    /// out and put versions in its place that begin earlier ([`IngestOptions::excise`]), or writes
    /// into one that has no version between the two, and reads other spans as before. Does nothing
    /// if the threshold is not above `ts`. Durable when it
    /// returns: a crash must not bring the higher one back when those versions are there.
    pub fn lower_gc_threshold(&self, ts: CommitTs) -> Result<()> {
        self.store.lower_gc_threshold(ts)
    }

    /// The oldest time that can be read.
    pub fn gc_threshold(&self) -> CommitTs {
        CommitTs(self.store.gc_threshold.load(Ordering::Acquire))
    }

    /// Takes finished ssts in, all of them or none; durable when it returns.
    ///
    /// The files are linked into the directory (copied if it is on another device). They must be
    /// durable, as [`SstBuilder::finish`](crate::SstBuilder::finish) leaves them, and must not be
    /// changed afterwards; their old names may be removed. Their spans must be disjoint. An ingest
    /// is a write: it has its place among batches, is visible to views made after it, and obeys
    /// the same contracts (`TimestampContract`; what [`IngestOptions::excise`] cuts out does not
    /// count). `InvalidIngest` if the files do not fit; nothing was changed then. Waits for the
    /// device, never for a flush. Few bytes ([`Options::small_ingest_bytes`]) become a batch.
    pub fn ingest(&self, files: &[PathBuf], options: IngestOptions) -> Result<()> {
        self.store.ingest(files, options)
    }

    /// As [`Db::prepare`], of finished ssts that hold one entry per key: all that [`Db::ingest`]
    /// does before they have their place and their timestamp. Blocks on the device.
    pub fn prepare_files(&self, files: &[PathBuf]) -> Result<PreparedBatch> {
        self.store.prepare_files(files)
    }

    /// The spans of finished ssts that may be ingested. Reads their ends from the device.
    pub fn spans_of(&self, files: &[PathBuf]) -> Result<Vec<KeySpan>> {
        self.store.spans_of(files)
    }

    /// Cuts a span out of the store: views made after it see nothing in there of what was written
    /// before, at any time, and newer writes may have older timestamps. Views made before go on
    /// reading it. Costs as much as the number of ssts at the span's edges; files wholly inside are
    /// unlinked. Durable when it returns.
    pub fn excise(&self, span: &KeySpan) -> Result<()> {
        self.store.ingest(&[], IngestOptions { excise: Some(span.clone()), ..Default::default() })
    }

    /// Makes a copy of the store in an empty directory on the same device: hard links to its ssts
    /// and a manifest. It holds every batch written before the call, and opens as a store of its
    /// own. Flushes memtables; the last of them while writers wait. Durable when it returns.
    pub fn checkpoint(&self, dir: &Path) -> Result<()> {
        self.store.checkpoint(dir)
    }

    /// Writes all memtables out as ssts. Blocks until that is done.
    pub fn flush(&self) -> Result<()> {
        self.store.flush_all()
    }

    /// To be called again and again, a few times in a second: if next to nothing was written since
    /// the call before, and the memtable is worth an sst, begins to write it out. Returns whether
    /// it did. Does not wait, for that nor for anybody else.
    pub fn flush_if_idle(&self) -> bool {
        self.store.flush_if_idle()
    }

    /// Compacts a span down to the bottom level, dropping what may be dropped. Blocks.
    pub fn compact_span(&self, span: &KeySpan) -> Result<()> {
        self.store.compact_to_bottom(span)
    }

    /// The last 10,000 events, oldest first.
    pub fn events(&self) -> Vec<Event> {
        self.store.events.recent()
    }

    /// How a get of `key` at `ts` goes: which layers, blocks and tombstones are consulted, and why
    /// it stops. For people.
    pub fn explain_get(&self, key: &[u8], ts: CommitTs) -> Result<String> {
        let view = self.view(ts)?;
        explain_get(view.state(), view.env(), key, view.read_point())
    }

    /// What a scan of a span at `ts` may look at, and what it did. Reads all of it. For people.
    pub fn explain_scan(&self, span: &KeySpan, ts: CommitTs) -> Result<String> {
        explain_scan(&self.view(ts)?, span)
    }

    /// Cuts every sst over `key` into two parts of its file. Changes no answer; for tests that want
    /// such ssts everywhere. Returns how many were cut.
    #[doc(hidden)]
    pub fn split_at(&self, key: &[u8]) -> Result<usize> {
        self.store.split_at(key)
    }

    /// Drops the ssts in a span that range tombstones up to the gc threshold hide completely,
    /// without reading them, and cuts those that they hide in part. No answer changes. Returns how
    /// many ssts went, and how many bytes. Happens by itself, too, when the threshold passes a
    /// tombstone; this is for those who turned that off. Flushes first; blocks.
    pub fn delete_files_in_range(&self, span: &KeySpan) -> Result<(u64, u64)> {
        self.store.sweep_span(span)
    }

    /// Whether nothing is being flushed or compacted, and nothing is due. The mutable memtable
    /// does not count. Starts what is due.
    pub fn is_quiet(&self) -> bool {
        self.store.is_quiet()
    }

    /// Gives memory that caches had and do not need at the moment back to the system: for a process
    /// that is short of it. It is that of all stores of the process. Takes milliseconds at most.
    pub fn release_free_memory(&self) {
        release_free();
    }

    /// Sizes and counters.
    pub fn metrics(&self) -> Metrics {
        let state = self.store.state.load();
        let counters = &self.store.counters;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (cache_hits, cache_misses) = self.store.env.cache.counts();
        let (cache_block_bytes, cache_pinned_bytes) = self.store.env.cache.bytes();
        let (frame_region_bytes, frame_free_bytes) = region_bytes();
        let virtual_files =
            |level| state.version.level(level).iter().filter(|sst| sst.is_virtual()).count();
        let levels = (0..LEVELS)
            .map(|level| {
                let mut metrics = LevelMetrics {
                    files: state.version.level(level).len(),
                    bytes: state.version.level_bytes(level),
                    virtual_files: virtual_files(level),
                    ..LevelMetrics::default()
                };
                counters.compaction.fill_level(level, &mut metrics);
                metrics
            })
            .collect();
        let reads = self.store.read_meter.counts();
        let (compaction_bytes_in, compaction_bytes_out) = counters.compaction.bytes();
        let (write_wait_nanos, longest_write_wait_nanos) = self.store.throttle.waits();
        Metrics {
            levels,
            l0_runs: state.version.l0().depth(),
            reasons: counters.compaction.reasons(),
            sampled_gets: reads.gets,
            sampled_get_ssts: reads.get_ssts,
            sampled_seeks: reads.seeks,
            sampled_seek_ssts: reads.seek_ssts,
            write_wait_nanos,
            longest_write_wait_nanos,
            base_level: levels_targets(&state.version, &self.store.options).0,
            memtable_bytes: state.memtables().map(|memtable| memtable.bytes() as u64).sum(),
            immutable_memtables: state.immutable.len(),
            wal_bytes_synced: self.store.wal.synced(),
            cache_block_bytes,
            cache_pinned_bytes,
            cache_sidecar_bytes: self.store.env.cache.sidecar_bytes(),
            frame_region_bytes,
            frame_free_bytes,
            cache_hits,
            cache_misses,
            blocks_read: cache_misses,
            tombstones_written: count(&counters.tombstones),
            points_written: count(&counters.points),
            batches_written: count(&counters.batches),
            flush_bytes: count(&counters.flush_bytes),
            compaction_bytes_in,
            compaction_bytes_out,
            flushes: count(&counters.flushes),
            compactions: counters.compaction.compactions(),
            garbage_bytes: state.version.garbage_bytes(),
            disk_full: self.store.ballast.was_full(),
        }
    }

    /// The newest timestamp of anything that ever arrived: a clock that is restarted must go on
    /// above it. `ZERO` for an empty store.
    pub fn last_commit_ts(&self) -> CommitTs {
        CommitTs(self.store.newest.load(Ordering::Acquire))
    }

    /// Makes everything durable and releases the directory. Later calls fail with `Closed`;
    /// views that are still held go on reading. Without it, dropping the last handle does the
    /// same but cannot report errors.
    pub fn close(&self) -> Result<()> {
        self.store.close()
    }
}
