//! A view: the store at one timestamp, for as long as it is held.
//!
//! A view pins the layers that existed when it was made, then remembers how many batches were
//! visible (in this order, so that what it sees is a prefix of the arrival order). Later writes,
//! flushes, compactions and garbage collection do not change what it reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::iter::{MergeCursor, ReadPoint, Scan, ScanOptions, Source};
use crate::key::{CommitTs, KeySpan, Kind};
use crate::memtable::MemtableCursor;
use crate::sstable::key_hash;
use crate::state::State;
use crate::store::Store;

/// Counts the work of reads; shared by the cursors of one scan.
#[derive(Debug, Default)]
pub(crate) struct ReadCounters {
    blocks_read: AtomicU64,
    blocks_from_disk: AtomicU64,
    rows_passed: AtomicU64,
}

impl ReadCounters {
    pub(crate) fn blocks(&self) -> (u64, u64) {
        (self.blocks_read.load(Ordering::Relaxed), self.blocks_from_disk.load(Ordering::Relaxed))
    }

    /// A cursor passed a row that the read does not want or cannot see.
    pub(crate) fn row_passed(&self) {
        self.rows_passed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn rows_passed(&self) -> u64 {
        self.rows_passed.load(Ordering::Relaxed)
    }

    pub(crate) fn block_read(&self, from_disk: bool) {
        self.blocks_read.fetch_add(1, Ordering::Relaxed);
        self.blocks_from_disk.fetch_add(u64::from(from_disk), Ordering::Relaxed);
    }
}

/// The store at one timestamp. Cloning is cheap; clones read the same.
#[derive(Clone)]
pub struct View {
    pinned: Arc<Pinned>,
}

struct Pinned {
    state: Arc<State>,
    read: ReadPoint,
    store: Arc<Store>,
    counters: Arc<ReadCounters>,
}

impl View {
    pub(crate) fn new(store: Arc<Store>, state: Arc<State>, read: ReadPoint) -> View {
        View { pinned: Arc::new(Pinned { state, read, store, counters: Arc::default() }) }
    }

    /// The timestamp this view reads at.
    pub fn ts(&self) -> CommitTs {
        CommitTs(self.pinned.read.ts)
    }

    /// The value of a key, `None` if it does not exist. May read from the device.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.get_with_ts(key)?.map(|(value, _)| value))
    }

    /// The value of a key and when it was committed.
    pub fn get_with_ts(&self, key: &[u8]) -> Result<Option<(Bytes, CommitTs)>> {
        let Pinned { state, read, store, counters } = &*self.pinned;
        let hash = key_hash(key);
        let mut hidden_below = 0;
        for memtable in state.memtables() {
            if read.ts < memtable.min_ts() {
                continue;
            }
            hidden_below = memtable.skyline().stab(key, read.ts, read.visible).max(hidden_below);
            if memtable.may_contain(hash)
                && let Some(node) = memtable.get(key, read.ts, read.visible)
            {
                let lives = node.kind() == Kind::Put && node.ts() >= hidden_below;
                return Ok(
                    lives.then(|| (Bytes::copy_from_slice(node.value()), CommitTs(node.ts())))
                );
            }
            // Everything in lower layers is older than this tombstone.
            if hidden_below > 0 {
                return Ok(None);
            }
        }
        state.get_from_ssts(&store.env, key, hash, read.ts, counters)
    }

    /// Timestamp of the newest range tombstone over a key that this view sees.
    pub fn covering_tombstone_ts(&self, key: &[u8]) -> Result<Option<CommitTs>> {
        let Pinned { state, read, store, .. } = &*self.pinned;
        for memtable in state.memtables() {
            let ts = memtable.skyline().stab(key, read.ts, read.visible);
            if ts > 0 {
                return Ok(Some(CommitTs(ts)));
            }
        }
        let ts = state.stab_ssts(&store.env, key, read.ts)?;
        Ok((ts > 0).then_some(CommitTs(ts)))
    }

    /// Rows of a span, in key order or backwards.
    pub fn scan(&self, span: KeySpan, options: ScanOptions) -> Result<Scan> {
        let Pinned { state, read, store, .. } = &*self.pinned;
        let counters = Arc::new(ReadCounters::default());
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        for memtable in state.memtables() {
            if memtable.is_empty() || memtable.min_ts() > read.ts {
                continue;
            }
            sources.push(Box::new(MemtableCursor::new(
                memtable.clone(),
                *read,
                options.reverse,
                options.classes,
                store.options.row_class,
                counters.clone(),
            )));
        }
        sources.extend(state.run_cursors(&store.env, &span, read.ts, &options, &counters));
        let cursor = MergeCursor::new(sources, span, options.reverse);
        Ok(Scan::new(cursor, options.limit, counters))
    }

    /// Blocks that point reads of this view looked at, and how many of them came from the device.
    pub fn blocks_read(&self) -> (u64, u64) {
        self.pinned.counters.blocks()
    }
}

/// Rejects reads of times whose history may be gone (contract C5).
pub(crate) fn check_floor(read: CommitTs, threshold: u64) -> Result<()> {
    if read.0 < threshold {
        return Err(Error::BelowGcThreshold { read, threshold: CommitTs(threshold) });
    }
    Ok(())
}
