//! The commit pipeline: one batch after the other gets its place in the arrival order.
//!
//! ```text
//!   normalise, encode                       outside of any lock
//!   -- commit mutex ---------------------------------------------------
//!   contracts C1, C2                        nothing is written if one is broken
//!   wal queue (a copy in memory)            this order is the arrival order
//!   memtable: tombstones, then points       invisible: above the visible index
//!   visible index + 1                       atomic for readers
//!   -------------------------------------------------------------------
//!   wait for the wal (group commit)         if the caller wants durability
//! ```
//!
//! The device is never touched under the mutex. A batch is visible to new views as soon as
//! [`Db::apply`](crate::Db::apply) returns; whoever must not act on it before it is durable waits
//! on the [`Pending`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::batch::{Batch, BatchOp};
use crate::error::{Error, Result};
use crate::key::{CommitTs, KeySpan, Kind};
use crate::memtable::Memtable;
use crate::store::Store;
use crate::wal::Lsn;

/// When a write returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After the batch is durable on the device.
    Sync,
    /// After the batch was handed to the operating system: it survives the process, not a power
    /// failure. Batches become durable in order, so nothing later survives without it.
    Buffered,
}

/// A batch that is visible and queued for the wal. Dropping it does not undo anything.
#[must_use = "the batch is not durable before wait_durable() returns"]
#[derive(Clone)]
pub struct Pending {
    store: Arc<Store>,
    lsn: Lsn,
    /// Bytes that waited in the wal's queue then.
    queued: u64,
    /// It is in ssts that want to become part of the version.
    in_files: bool,
}

/// Longer queues of the wal are written out by whoever goes on appending.
const QUEUE_LIMIT: u64 = 1 << 20;

impl Pending {
    pub(crate) fn of_files(store: Arc<Store>, lsn: Lsn) -> Pending {
        Pending { store, lsn, queued: 0, in_files: true }
    }

    /// Does what a batch leaves behind for its writer, after [`PreparedBatch::apply`]: to be
    /// called outside of the locks that applying needed. May wait for the device.
    ///
    /// [`PreparedBatch::apply`]: crate::PreparedBatch::apply
    pub fn relieve(&self) -> Result<()> {
        if self.in_files {
            // An edit that fails is tried again, and reported, by the flush.
            if let Err(error) = self.store.install_due_operations() {
                tracing::warn!(%error, "a batch waits for its edit");
            }
            self.store.schedule();
        }
        if self.queued > QUEUE_LIMIT {
            // Memory of the queue is bounded by whoever goes on appending.
            self.store.wal.wait(self.lsn, false)?;
        }
        Ok(())
    }

    /// Blocks until the batch, and every batch before it, is durable. Many waiters share one sync.
    pub fn wait_durable(&self) -> Result<()> {
        self.store.wal.wait(self.lsn, true)
    }

    /// Blocks until the batch was handed to the operating system.
    pub fn wait_written(&self) -> Result<()> {
        self.store.wal.wait(self.lsn, false)
    }
}

/// What the holder of the commit mutex may change.
pub(crate) struct CommitState {
    /// Commit index of the last batch.
    pub(crate) last_idx: u64,
    /// Arrival number of the mutable memtable.
    pub(crate) arrival: u64,
    /// The last batch is durable when the wal is up to here.
    pub(crate) last_lsn: Lsn,
}

/// Whether a batch may have a time at or below the garbage collection threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    IsClosed,
    IsOpen,
}

impl Store {
    /// Applies a batch; see the module.
    pub(crate) fn apply(self: &Arc<Store>, mut batch: Batch) -> Result<Pending> {
        batch.normalise()?;
        if batch.adds_data() && self.ballast.is_full() {
            return Err(Error::DiskFull);
        }
        self.make_room(batch.encoded().len() as u64)?;
        let pending = self.apply_prepared(&mut batch)?;
        pending.relieve()?;
        Ok(pending)
    }

    /// As `apply`, without waiting for room and whatever adds data: the caller has looked.
    pub(crate) fn apply_at_once(self: &Arc<Store>, mut batch: Batch) -> Result<Pending> {
        batch.normalise()?;
        self.background.forgive_disk_full();
        let pending = self.apply_prepared(&mut batch)?;
        pending.relieve()?;
        Ok(pending)
    }

    /// Whether a batch is taken in without waiting for background work. If not, that is under way.
    pub(crate) fn has_room(self: &Arc<Store>) -> bool {
        let state = self.state.load();
        let most = self.options.max_immutable_memtables.max(1);
        let full = state.mutable.bytes() >= self.options.memtable_size;
        let waits = full && state.immutable.len() >= most || self.throttle.is_full();
        if waits {
            self.schedule();
        }
        !waits
    }

    /// See [`Db::fill`](crate::Db::fill).
    pub(crate) fn fill(self: &Arc<Store>, mut batch: Batch) -> Result<Pending> {
        batch.normalise()?;
        if batch.adds_data() && self.ballast.is_full() {
            return Err(Error::DiskFull);
        }
        let pending = self.take_in(&mut batch, Past::IsOpen)?;
        pending.relieve()?;
        Ok(pending)
    }

    /// As `apply`, of a net effect for which there is room.
    pub(crate) fn apply_prepared(self: &Arc<Store>, batch: &mut Batch) -> Result<Pending> {
        self.take_in(batch, Past::IsClosed)
    }

    fn take_in(self: &Arc<Store>, batch: &mut Batch, past: Past) -> Result<Pending> {
        let size = batch.encoded().len() as u64;
        if let Some(BatchOp::Point { key, .. }) = batch.ops().next() {
            self.state.load().mutable.prefetch(key);
        }
        let mut commit = self.commit.lock();
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let (lsn, queued) = if batch.is_empty() {
            (self.wal.appended(), 0)
        } else {
            self.check_contracts(batch, past)?;
            let appended = self.wal.append(batch.encoded())?;
            commit.last_lsn = appended.lsn;
            self.counters.user_bytes.fetch_add(size, Ordering::Relaxed);
            self.insert(&mut commit, batch);
            self.rotate_if_full(&mut commit);
            (appended.lsn, appended.queued)
        };
        drop(commit);
        Ok(Pending { store: self.clone(), lsn, queued, in_files: false })
    }

    /// Waits if background work is behind: see the throttle. Takes no lock while it waits.
    pub(crate) fn make_room(self: &Arc<Store>, bytes: u64) -> Result<()> {
        self.background.forgive_disk_full();
        let options = &self.options;
        let clock = &options.clock;
        let state = self.state.load();
        let most = options.max_immutable_memtables.max(1);
        let waiting = state.immutable.len();
        let full = state.mutable.bytes() >= options.memtable_size && waiting >= most;
        drop(state);
        let pressed = waiting * 2 > most + 1 && most > 2;
        let pressure = if pressed { (waiting * 1_000 / most) as u64 / 2 } else { 0 };
        let l0_presses = options.automatic_compaction && self.throttle.is_pressed();
        if !(full || pressed || l0_presses) {
            return Ok(());
        }
        let now = clock.monotonic_nanos();
        if self.throttle.is_full() {
            self.relieve_l0(now, self.throttle.stop(bytes))?;
        }
        if let Some(delay) = self.throttle.delay(bytes, now, pressure) {
            let waited = clock.monotonic_nanos().saturating_sub(now);
            clock.sleep(delay.saturating_sub(Duration::from_nanos(waited)));
        }
        let is_full = || {
            let state = self.state.load();
            state.mutable.bytes() >= options.memtable_size && state.immutable.len() >= most
        };
        while is_full() {
            self.await_progress()?;
        }
        self.throttle.waited(clock.monotonic_nanos().saturating_sub(now));
        Ok(())
    }

    /// While L0 is at its limit: does background work where that is up to the writers, and waits
    /// for it for up to `longest`.
    fn relieve_l0(self: &Arc<Store>, since: u64, longest: Option<Duration>) -> Result<()> {
        let clock = &self.options.clock;
        self.schedule();
        while self.throttle.is_full() && self.tasks.help_one() {}
        let longest = longest.unwrap_or_default().as_nanos() as u64;
        // Under a clock that stands still, jobs are done on this thread until none is left.
        let mut idle = 0;
        while self.throttle.is_full()
            && idle < 10
            && clock.monotonic_nanos().saturating_sub(since) < longest
        {
            if !self.await_progress()? {
                idle += 1;
            }
        }
        Ok(())
    }

    fn rotate_if_full(self: &Arc<Store>, commit: &mut CommitState) {
        let state = self.state.load();
        let bytes = state.mutable.bytes();
        self.prepare_if_due(bytes);
        let full = bytes >= self.options.memtable_size;
        if full && state.immutable.len() < self.options.max_immutable_memtables {
            self.rotate(commit);
            self.schedule();
        }
    }

    /// Puts a batch into the mutable memtable and makes it visible.
    pub(crate) fn insert(&self, commit: &mut CommitState, batch: &Batch) {
        let idx = commit.last_idx + 1;
        self.dead_spans.begin_batch(batch, idx);
        let state = self.state.load();
        insert_into(&state.mutable, batch, idx);
        commit.last_idx = idx;
        self.newest.fetch_max(batch.ts().0, Ordering::AcqRel);
        self.visible.store(idx, Ordering::Release);
        self.count_batch(batch);
    }

    pub(crate) fn count_batch(&self, batch: &Batch) {
        let spans = batch.span_count() as u64;
        self.counters.tombstones.fetch_add(spans, Ordering::Relaxed);
        self.counters.points.fetch_add(batch.len() as u64 - spans, Ordering::Relaxed);
        self.counters.batches.fetch_add(1, Ordering::Relaxed);
    }

    /// Contracts C1 and, unless its caller answers for it, C2.
    ///
    /// If the batch is newer than everything that ever arrived, as commits
    /// of one clock are, this is two comparisons.
    fn check_contracts(&self, batch: &Batch, past: Past) -> Result<()> {
        let ts = batch.ts().0;
        let first_key = || match batch.ops().next() {
            Some(BatchOp::Point { key, .. }) => key.to_vec(),
            Some(BatchOp::Span { start, .. }) => start.to_vec(),
            None => Vec::new(),
        };
        let broken = |key: Vec<u8>, have: u64| {
            Err(Error::TimestampContract { key, write: batch.ts(), have: CommitTs(have) })
        };
        if ts == 0 || ts == u64::MAX {
            return broken(first_key(), ts);
        }
        let threshold = self.gc_threshold.load(Ordering::Acquire);
        if ts <= threshold && past == Past::IsClosed {
            return broken(first_key(), threshold);
        }
        if ts > self.newest.load(Ordering::Acquire) {
            return Ok(());
        }
        for op in batch.ops() {
            match op {
                BatchOp::Point { key, .. } => {
                    let have = self.state.load().max_ts_of(&self.env, key, 0)?;
                    if have > ts {
                        return broken(key.to_vec(), have);
                    }
                }
                BatchOp::Span { start, end } => {
                    let span = KeySpan::new(start.to_vec(), end.to_vec());
                    // Above every point, and not below any tombstone.
                    let point = self.state.load().newest_above(&self.env, &span, ts - 1, false)?;
                    let any = self.state.load().newest_above(&self.env, &span, ts, true)?;
                    if point >= ts || any > ts {
                        return broken(start.to_vec(), point.max(any));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Puts the net effect of a batch into a memtable: tombstones first, so that points of the same
/// batch count as newer.
pub(crate) fn insert_into(memtable: &Memtable, batch: &Batch, idx: u64) {
    let ts = batch.ts().0;
    let mut spans: Vec<(&[u8], &[u8])> = Vec::with_capacity(batch.span_count());
    if batch.span_count() > 0 {
        spans.extend(batch.ops().filter_map(|op| match op {
            BatchOp::Span { start, end } => Some((start, end)),
            BatchOp::Point { .. } => None,
        }));
    }
    memtable.insert_spans(&spans, ts, idx);
    let points = batch.ops().filter_map(|op| match op {
        BatchOp::Point { key, kind, value } => Some((key, kind, value)),
        BatchOp::Span { .. } => None,
    });
    memtable.insert_points(
        points.map(|(key, kind, value): (_, Kind, _)| (key, kind, value)),
        ts,
        idx,
    );
}
