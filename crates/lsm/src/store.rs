//! The shared heart of an open store: what handles, views and background jobs all point to.
//!
//! Locks, in the order in which they may be taken: commit, manifest, state. None is held while
//! waiting for the wal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use braid_env::fs::DirLock;
use braid_env::tasks::Tasks;
use parking_lot::Mutex;

use crate::ballast::Ballast;
use crate::commit::CommitState;
use crate::compaction::{
    Background, CompactionCounters, JobOutput, LastLook, ReadMeter, Throttle, debt,
};
use crate::error::{Error, Result};
use crate::inspect::Events;
use crate::iter::{DeadSpans, ReadPoint};
use crate::key::CommitTs;
use crate::memtable::Memtable;
use crate::open::remove_old_manifests;
use crate::options::Options;
use crate::prepare::Prepared;
use crate::state::State;
use crate::structure::{ARRIVAL_STEP, NameSyncs};
use crate::versions::{Edit, Manifest, SstEnv, SstMeta, Version};
use crate::view::{View, check_floor};
use crate::wal::{Wal, segment_path};

/// Counters since open.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) tombstones: AtomicU64,
    pub(crate) points: AtomicU64,
    pub(crate) batches: AtomicU64,
    /// Bytes of batches as they go to the wal.
    pub(crate) user_bytes: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) flush_bytes: AtomicU64,
    pub(crate) compaction: CompactionCounters,
}

impl Counters {
    pub(crate) fn flushed(&self, output: &JobOutput) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flush_bytes.fetch_add(output.bytes_out, Ordering::Relaxed);
        self.compaction.flushed(output);
    }
}

/// An open store.
pub(crate) struct Store {
    pub(crate) options: Options,
    pub(crate) env: Arc<SstEnv>,
    pub(crate) tasks: Arc<dyn Tasks>,
    pub(crate) lock: Mutex<Option<Box<dyn DirLock>>>,
    pub(crate) state: ArcSwap<State>,
    /// Held while a new state is put together from the old one.
    pub(crate) state_lock: Mutex<()>,
    /// The commit pipeline: whoever holds it decides the order of batches.
    pub(crate) commit: Mutex<CommitState>,
    /// Whoever holds it decides the order of version edits.
    pub(crate) manifest: Arc<Mutex<Manifest>>,
    /// Commit index of the last batch that new views see.
    pub(crate) visible: AtomicU64,
    /// Largest timestamp of anything that ever arrived.
    pub(crate) newest: AtomicU64,
    /// Reads below this are rejected.
    pub(crate) gc_threshold: AtomicU64,
    /// Raised after each ingest or excise became visible, before any later batch does.
    pub(crate) structure_epoch: AtomicU64,
    /// The threshold that is durable: what compactions may use (contract C6).
    pub(crate) gc_durable: AtomicU64,
    pub(crate) next_file: AtomicU64,
    /// Oldest wal segment that may still exist.
    pub(crate) oldest_segment: Mutex<u64>,
    pub(crate) wal: Wal,
    pub(crate) names: NameSyncs,
    pub(crate) ballast: Arc<Ballast>,
    pub(crate) background: Background,
    pub(crate) throttle: Throttle,
    pub(crate) prepared: Prepared,
    pub(crate) read_meter: ReadMeter,
    pub(crate) dead_spans: DeadSpans,
    pub(crate) last_look: LastLook,
    pub(crate) closed: AtomicBool,
    pub(crate) counters: Counters,
    pub(crate) events: Events,
}

impl Store {
    /// Pins the current state. The order matters: first the layers, then the visible index, so
    /// that a view is a prefix of the arrival order. An ingest or excise between the two would be
    /// missing although batches after it are visible: then the layers are loaded again.
    pub(crate) fn pin(&self, ts: CommitTs) -> Result<(Arc<State>, ReadPoint)> {
        let (state, visible) = loop {
            let before = self.structure_epoch.load(Ordering::Acquire);
            let state = self.state.load_full();
            let visible = self.visible.load(Ordering::Acquire);
            if before == self.structure_epoch.load(Ordering::Acquire) {
                break (state, visible);
            }
        };
        Ok((state, self.read_point(ts, visible)?))
    }

    /// The moment that a read at `ts` looks at, of the first `visible` batches.
    pub(crate) fn read_point(&self, ts: CommitTs, visible: u64) -> Result<ReadPoint> {
        check_floor(ts, self.gc_threshold.load(Ordering::Acquire))?;
        Ok(ReadPoint { ts: ts.0.min(u64::MAX - 1), visible })
    }

    /// The earliest moment that is as good as a view's, if the view sees everything that is in its
    /// layers and these are the store's. Batches that began after it are another question.
    pub(crate) fn read_point_of(&self, view: &View) -> Option<ReadPoint> {
        let (newest, read) = (self.newest.load(Ordering::SeqCst), view.read_point());
        let is_current = std::ptr::eq(view.state(), &raw const **self.state.load());
        (newest <= read.ts && is_current).then_some(ReadPoint { ts: newest, ..read })
    }

    /// Seals the mutable memtable and puts an empty one in its place, unless it is empty. The
    /// caller holds the commit mutex, so no batch is in between.
    pub(crate) fn rotate(&self, commit: &mut CommitState) {
        if self.state.load().mutable.is_empty() {
            return;
        }
        let segment = self.wal.rotate();
        let filter = self.take_filter();
        commit.arrival += ARRIVAL_STEP;
        let _state = self.state_lock.lock();
        let old = self.state.load_full();
        let prefix = old.mutable.common_prefix();
        let mutable = Memtable::with_filter(commit.arrival, segment, &prefix, filter);
        let mutable = Arc::new(mutable.of_classes(self.options.row_class));
        let mut immutable = vec![old.mutable.clone()];
        immutable.extend(old.immutable.iter().cloned());
        self.state.store(Arc::new(State { mutable, immutable, ..State::clone(&old) }));
    }

    /// Makes an edit durable, then visible. `memtables`: what it replaces. False, and nothing was
    /// done, if the edit does not fit any more: a structural edit changed what it was made for.
    pub(crate) fn install(
        &self,
        edit: &Edit,
        memtables: impl FnOnce(&mut Vec<Arc<Memtable>>),
    ) -> Result<bool> {
        let mut manifest = self.manifest.lock();
        if !self.state.load().version.accepts(edit) {
            return Ok(false);
        }
        self.install_locked(&mut manifest, edit, &[], |state| memtables(&mut state.immutable))?;
        Ok(true)
    }

    /// As [`Store::install`], for whoever holds the manifest and made the edit from the version of
    /// now. `lent`: ssts whose files the edit takes over. `change`: what else changes with it.
    pub(crate) fn install_locked(
        &self,
        manifest: &mut Manifest,
        edit: &Edit,
        lent: &[Arc<SstMeta>],
        change: impl FnOnce(&mut State),
    ) -> Result<()> {
        let gc = self.gc_threshold.load(Ordering::Acquire);
        let mut edit = edit.clone();
        edit.next_file = Some(self.next_file.load(Ordering::Acquire));
        edit.gc_threshold = Some(gc);
        edit.newest_ts = Some(self.newest.load(Ordering::Acquire));
        edit.log_mark = Some(self.wal.mark());
        edit.time = Some(self.options.clock.now_micros());
        let before = self.state.load().version.clone();
        let (version, dropped) = before.apply(&edit, &self.env, lent);
        if self.options.paranoid_checks {
            version.check().map_err(|reason| Error::corruption(&self.env.dir, 0, reason))?;
        }
        self.open_added(&version, &edit);
        manifest.append(&edit, &*self.ballast)?;
        // It may have been lowered, and the manifest is held: this edit is the last one.
        self.gc_durable.store(gc, Ordering::Release);
        self.events.edited(&edit, &before);
        drop(before);
        {
            let _state = self.state_lock.lock();
            let mut state = State::clone(&self.state.load());
            state.version = Arc::new(version);
            change(&mut state);
            self.state.store(Arc::new(state));
        }
        self.rotate_manifest(manifest);
        for sst in dropped {
            sst.make_obsolete();
        }
        self.note_pressure();
        Ok(())
    }

    /// A manifest that has become long goes on in a new file.
    fn rotate_manifest(&self, manifest: &mut Manifest) {
        let version = self.state.load().version.clone();
        let (fs, dir) = (&*self.env.fs, &self.env.dir);
        if manifest.rotate(fs, dir, &version, self.options.manifest_size, &*self.ballast) {
            remove_old_manifests(fs, dir, manifest.number());
        }
    }

    /// Opens the ssts that an edit adds, so that no read pays for it: loading the filter of a large
    /// one takes longer than a small commit.
    fn open_added(&self, version: &Version, edit: &Edit) {
        for new in &edit.added {
            let candidates: &[Arc<SstMeta>] = match new.level {
                0 => version.level(0),
                level => version.overlapping(level, &new.bounds),
            };
            let Some(sst) = candidates.iter().find(|sst| sst.file_no == new.file_no) else {
                continue;
            };
            if let Err(error) = sst.reader(&self.env) {
                // The first read that needs the sst tries again, and says so.
                tracing::warn!(sst = sst.file_no, %error, "cannot open a new sst");
            }
        }
    }

    /// Tells the throttle how much work waits.
    pub(crate) fn note_pressure(&self) {
        let options = &self.options;
        if !options.automatic_compaction {
            return;
        }
        let version = self.state.load().version.clone();
        let (slow, stop) = if options.l0_sublevels {
            (options.l0_slow_sublevels, options.l0_stop_sublevels)
        } else {
            (options.l0_slow_files, options.l0_stop_files)
        };
        let soft = options.base_level_size.saturating_mul(64);
        let debt = (debt(&version, options), soft, soft.saturating_mul(8));
        self.throttle.note(version.l0().depth(), slow, stop, debt);
    }

    /// The gc threshold, made durable first if it is not (contract C6).
    pub(crate) fn durable_gc(&self) -> Result<u64> {
        if self.gc_threshold.load(Ordering::Acquire) > self.gc_durable.load(Ordering::Acquire) {
            self.install(&Edit::default(), |_| {})?;
        }
        Ok(self.gc_durable.load(Ordering::Acquire))
    }

    /// See [`Db::lower_gc_threshold`](crate::Db::lower_gc_threshold). Jobs whose inputs were chosen
    /// before it returns may still go by the higher one.
    pub(crate) fn lower_gc_threshold(&self, ts: CommitTs) -> Result<()> {
        {
            let _commit = self.commit.lock();
            if self.closed.load(Ordering::Acquire) {
                return Err(Error::Closed);
            }
            self.gc_threshold.fetch_min(ts.0, Ordering::AcqRel);
            self.background.sweep_above(ts.0);
        }
        if self.gc_durable.load(Ordering::Acquire) > ts.0 {
            self.install(&Edit::default(), |_| {})?;
        }
        Ok(())
    }

    /// The oldest wal segment that is needed when memtables up to `arrival` are flushed.
    pub(crate) fn first_segment_above(&self, arrival: u64) -> u64 {
        let state = self.state.load();
        let above = state.memtables().filter(|memtable| memtable.arrival > arrival);
        let waiting = state.structural.iter().map(|op| op.ticket.0);
        above.map(|memtable| memtable.first_segment).chain(waiting).min().unwrap_or(0)
    }

    /// Recycles or removes wal segments that recovery will not need. What cannot be removed now
    /// is removed by the next open.
    pub(crate) fn remove_wal_below(&self, floor: u64) {
        let mut oldest = self.oldest_segment.lock();
        while *oldest < floor {
            let path = segment_path(&self.env.dir, *oldest);
            if self.env.fs.exists(&path).unwrap_or(false)
                && let Err(error) = self.wal.retire(&path)
            {
                tracing::warn!(path = %path.display(), %error, "cannot remove wal segment");
            }
            *oldest += 1;
        }
    }

    /// Makes everything durable, marks clean ends, releases the directory.
    pub(crate) fn close(&self) -> Result<()> {
        {
            let _commit = self.commit.lock();
            if self.closed.swap(true, Ordering::AcqRel) {
                return Ok(());
            }
        }
        self.background.drain();
        let result = self.close_files();
        self.lock.lock().take();
        result
    }

    fn close_files(&self) -> Result<()> {
        self.wal.wait(self.wal.appended(), true)?;
        // The seal says that all of the segment was durable: damage is then not a torn tail.
        self.wal.rotate();
        self.wal.wait(self.wal.appended(), true)?;
        self.wal.remove_prepared()?;
        self.durable_gc()?;
        // A sealed manifest says where the log ends.
        let mut manifest = self.manifest.lock();
        let end = Edit { log_mark: Some(self.wal.mark()), ..Edit::default() };
        manifest.append(&end, &*self.ballast)?;
        manifest.seal(&*self.ballast)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "closing the store failed");
        }
    }
}
