//! A view: the store at one timestamp, for as long as it is held.
//!
//! A view pins the layers that existed when it was made, then remembers how many batches were
//! visible (in this order, so that what it sees is a prefix of the arrival order). Later writes,
//! flushes, compactions and garbage collection do not change what it reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::iter::{Export, MergeCursor, ReadPoint, ReadWork, Scan, ScanOptions, ScanPlan};
use crate::key::{CommitTs, KeySpan};
use crate::state::State;
use crate::store::Store;
use crate::structure::Queued;
use crate::versions::SstEnv;

/// The store at one timestamp. Cloning is cheap; clones read the same.
#[derive(Clone)]
pub struct View {
    pinned: Arc<Pinned>,
}

struct Pinned {
    state: Arc<State>,
    read: ReadPoint,
    store: Arc<Store>,
    blocks_read: AtomicU64,
    blocks_from_disk: AtomicU64,
}

impl View {
    pub(crate) fn new(store: Arc<Store>, state: Arc<State>, read: ReadPoint) -> View {
        let (blocks_read, blocks_from_disk) = (AtomicU64::new(0), AtomicU64::new(0));
        View { pinned: Arc::new(Pinned { state, read, store, blocks_read, blocks_from_disk }) }
    }

    pub(crate) fn read_point(&self) -> ReadPoint {
        self.pinned.read
    }

    #[inline]
    pub(crate) fn state(&self) -> &State {
        &self.pinned.state
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.pinned.store
    }

    pub(crate) fn env(&self) -> &Arc<SstEnv> {
        &self.pinned.store.env
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
        let Pinned { state, read, store, .. } = &*self.pinned;
        let mut work = ReadWork::default();
        if store.read_meter.is_due() {
            store.sample_get(state, key);
        }
        let found = state.get(&store.env, key, *read, &mut work);
        self.pinned.blocks_read.fetch_add(work.blocks, Ordering::Relaxed);
        if work.from_disk > 0 {
            self.pinned.blocks_from_disk.fetch_add(work.from_disk, Ordering::Relaxed);
        }
        found
    }

    /// Timestamp of the newest range tombstone over a key that this view sees.
    pub fn covering_tombstone_ts(&self, key: &[u8]) -> Result<Option<CommitTs>> {
        let Pinned { state, read, store, .. } = &*self.pinned;
        for layer in state.queue() {
            let found = match layer {
                Queued::Memtable(memtable) => {
                    let ts = memtable.skyline().stab(key, read.ts, read.visible);
                    Some(ts).filter(|ts| *ts > 0)
                }
                Queued::Structural(op) => op.stab(&store.env, key, read.ts)?,
            };
            if let Some(ts) = found {
                return Ok((ts > 0).then_some(CommitTs(ts)));
            }
        }
        let ts = state.stab_ssts(&store.env, key, read.ts)?;
        Ok((ts > 0).then_some(CommitTs(ts)))
    }

    /// Rows of a span, in key order or backwards.
    pub fn scan(&self, span: KeySpan, options: ScanOptions) -> Result<Scan> {
        let plan = ScanPlan { view: self.clone(), span, options };
        let (limit, plan) = (plan.options.limit, Arc::new(plan));
        let cursor = MergeCursor::new(self.pinned.state.layers(&plan), plan);
        Ok(Scan::new(cursor, limit))
    }

    /// Every version in a span, deletions and range tombstones included: what another store needs
    /// to answer as this one. May read from the device.
    pub fn export(&self, span: &KeySpan) -> Result<Export> {
        Export::new(self.clone(), span)
    }

    /// Blocks that point reads of this view looked at, and how many of them came from the device.
    pub fn blocks_read(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.pinned.blocks_read), count(&self.pinned.blocks_from_disk))
    }
}

/// Rejects reads of times whose history may be gone (contract C5).
pub(crate) fn check_floor(read: CommitTs, threshold: u64) -> Result<()> {
    if read.0 < threshold {
        return Err(Error::BelowGcThreshold { read, threshold: CommitTs(threshold) });
    }
    Ok(())
}
