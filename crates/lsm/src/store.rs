//! The shared heart of an open store: what handles, views and background jobs all point to.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use braid_env::fs::{DirLock, FileSystem};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::commit::CommitState;
use crate::error::Result;
use crate::iter::{ReadPoint, ScanOptions, Source};
use crate::key::{CommitTs, KeySpan};
use crate::options::Options;
use crate::state::State;
use crate::view::{ReadCounters, check_floor};
use crate::wal::Wal;

/// Counters of the write path.
#[derive(Default)]
pub(crate) struct WriteCounters {
    pub(crate) tombstones: AtomicU64,
    pub(crate) points: AtomicU64,
    pub(crate) batches: AtomicU64,
}

/// An open store.
pub(crate) struct Store {
    pub(crate) options: Options,
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) lock: Mutex<Option<Box<dyn DirLock>>>,
    pub(crate) state: ArcSwap<State>,
    /// The commit pipeline: whoever holds it decides the order of batches.
    pub(crate) commit: Mutex<CommitState>,
    /// Commit index of the last batch that new views see.
    pub(crate) visible: AtomicU64,
    /// Largest timestamp of anything that ever arrived.
    pub(crate) newest: AtomicU64,
    /// Reads below this are rejected; compactions may drop what only they would see.
    pub(crate) gc_threshold: AtomicU64,
    pub(crate) wal: Wal,
    pub(crate) closed: AtomicBool,
    pub(crate) writes: WriteCounters,
}

impl Store {
    /// Pins the current state. The order matters: first the layers, then the visible index, so
    /// that a view is a prefix of the arrival order.
    pub(crate) fn pin(&self, ts: CommitTs) -> Result<(Arc<State>, ReadPoint)> {
        let state = self.state.load_full();
        let visible = self.visible.load(Ordering::Acquire);
        check_floor(ts, self.gc_threshold.load(Ordering::Acquire))?;
        Ok((
            state,
            ReadPoint {
                ts: ts.0.min(u64::MAX - 1),
                visible,
            },
        ))
    }

    /// Newest timestamp above `floor` of anything in the span, 0 if there is none above it.
    /// `tombstones`: whether range tombstones count as well as points.
    pub(crate) fn newest_above(&self, span: &KeySpan, floor: u64, tombstones: bool) -> Result<u64> {
        let state = self.state.load_full();
        let mut newest = 0;
        for memtable in state.memtables() {
            newest = memtable
                .newest_above(span, floor.max(newest), tombstones)
                .max(newest);
        }
        Ok(newest)
    }

    /// Newest timestamp of an entry of `key` or a tombstone over it.
    pub(crate) fn max_ts_of(&self, key: &[u8]) -> Result<u64> {
        let state = self.state.load_full();
        let mut newest = 0;
        for memtable in state.memtables() {
            newest = memtable.max_ts_of(key).max(newest);
        }
        Ok(newest)
    }

    pub(crate) fn get_from_ssts(
        &self,
        _state: &State,
        _key: &[u8],
        _read_ts: u64,
        _counters: &ReadCounters,
    ) -> Result<Option<(Bytes, CommitTs)>> {
        Ok(None)
    }

    pub(crate) fn stab_ssts(&self, _state: &State, _key: &[u8], _read_ts: u64) -> Result<u64> {
        Ok(0)
    }

    pub(crate) fn push_sst_sources(
        &self,
        _state: &State,
        _span: &KeySpan,
        _read_ts: u64,
        _options: &ScanOptions,
        _counters: &Arc<ReadCounters>,
        _sources: &mut Vec<Box<dyn Source>>,
    ) -> Result<()> {
        Ok(())
    }
}
