//! When background work runs: at most one flush and one compaction at a time.
//!
//! A job is two tasks: the first merges and writes ssts, the second installs them. In between,
//! anything else may happen; with the deterministic executor tests decide what.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::job::{Job, JobOutput};
use super::picker::{Spec, pick, spec_for_span};
use crate::error::{Error, Result};
use crate::key::KeySpan;
use crate::memtable::Memtable;
use crate::sstable::sst_path;
use crate::store::Store;
use crate::versions::{Edit, LEVELS, NewSst, Version};

#[derive(Default)]
struct Slots {
    flush: bool,
    compaction: bool,
    /// Tasks that are on a thread right now.
    running: usize,
    error: Option<Error>,
}

/// What is going on in the background.
#[derive(Default)]
pub(crate) struct Background {
    slots: Mutex<Slots>,
    changed: Condvar,
}

impl Background {
    /// The error that stopped background work, if there is one.
    pub(crate) fn error(&self) -> Option<Error> {
        self.slots.lock().error.clone()
    }

    /// Waits a moment for something to change. Returns early on any change.
    fn wait(&self) {
        let mut slots = self.slots.lock();
        self.changed.wait_for(&mut slots, Duration::from_millis(50));
    }

    fn enter(&self) {
        self.slots.lock().running += 1;
    }

    fn leave(&self) {
        self.slots.lock().running -= 1;
        self.changed.notify_all();
    }

    /// Blocks until no task is on a thread.
    pub(crate) fn drain(&self) {
        let mut slots = self.slots.lock();
        while slots.running > 0 {
            self.changed.wait(&mut slots);
        }
    }

    fn take(&self, slot: fn(&mut Slots) -> &mut bool) -> bool {
        let mut slots = self.slots.lock();
        !std::mem::replace(slot(&mut slots), true)
    }

    fn give_back(&self, slot: fn(&mut Slots) -> &mut bool) {
        *slot(&mut self.slots.lock()) = false;
        self.changed.notify_all();
    }

    fn fail(&self, error: &Error) {
        if matches!(error, Error::Closed) {
            return;
        }
        tracing::error!(%error, "background work failed");
        self.slots.lock().error = Some(error.clone());
        self.changed.notify_all();
    }

    /// A full device may have room again: forgets that error, so that work is tried again.
    pub(crate) fn forgive_disk_full(&self) {
        let mut slots = self.slots.lock();
        if matches!(slots.error, Some(Error::DiskFull)) {
            slots.error = None;
        }
    }
}

fn flush_slot(slots: &mut Slots) -> &mut bool {
    &mut slots.flush
}

fn compaction_slot(slots: &mut Slots) -> &mut bool {
    &mut slots.compaction
}

impl Store {
    /// Starts background work that is due. Never blocks.
    pub(crate) fn schedule(self: &Arc<Store>) {
        if self.closed.load(Ordering::Acquire) || self.background.error().is_some() {
            return;
        }
        let state = self.state.load();
        if !state.immutable.is_empty() && self.background.take(flush_slot) {
            self.spawn(|store| store.flush_task());
        }
        let due = self.options.automatic_compaction
            && pick(&state.version, &self.options, self.gc_threshold.load(Ordering::Acquire))
                .is_some();
        if due && self.background.take(compaction_slot) {
            self.spawn(|store| store.compaction_task());
        }
    }

    /// Queues a task that holds the store only while it runs.
    fn spawn(self: &Arc<Store>, task: impl FnOnce(&Arc<Store>) + Send + 'static) {
        let weak = Arc::downgrade(self);
        self.tasks.spawn(Box::new(move || {
            let Some(store) = weak.upgrade() else { return };
            store.background.enter();
            task(&store);
            store.background.leave();
        }));
    }

    fn flush_task(self: &Arc<Store>) {
        match self.run_flush() {
            Ok(None) => self.background.give_back(flush_slot),
            Ok(Some((memtables, output))) => self.spawn(move |store| {
                if let Err(error) = store.install_flush(&memtables, output) {
                    store.background.fail(&error);
                }
                store.background.give_back(flush_slot);
                store.schedule();
            }),
            Err(error) => {
                self.background.fail(&error);
                self.background.give_back(flush_slot);
            }
        }
    }

    fn run_flush(&self) -> Result<Option<(Vec<Arc<Memtable>>, JobOutput)>> {
        if self.closed.load(Ordering::Acquire) {
            return Ok(None);
        }
        let memtables = self.state.load().immutable.clone();
        if memtables.is_empty() {
            return Ok(None);
        }
        // Nothing may be in ssts that a crash could still take out of the wal in front of it.
        self.wal.wait(self.wal.appended(), true)?;
        let job = Job {
            memtables: memtables.clone(),
            runs: Vec::new(),
            output_level: 0,
            target_size: 64 << 20,
            gc: self.durable_gc()?,
            below: None,
        };
        let output = self.with_reserve(|| job.run(self))?;
        Ok(Some((memtables, output)))
    }

    /// Runs something that may need the reserve to finish.
    fn with_reserve<T>(&self, run: impl Fn() -> Result<T>) -> Result<T> {
        match run() {
            Err(Error::DiskFull) if self.ballast.release_now() => run(),
            other => other,
        }
    }

    fn install_flush(&self, flushed: &[Arc<Memtable>], output: JobOutput) -> Result<()> {
        let newest = flushed.iter().map(|memtable| memtable.arrival).max().unwrap_or(0);
        let floor = self.first_segment_above(newest);
        let edit = Edit {
            added: output.ssts.iter().map(|facts| NewSst { facts: facts.clone() }).collect(),
            wal_floor: Some(floor),
            next_arrival: Some(newest + 1),
            reason: Some("flush".into()),
            ..Edit::default()
        };
        self.install(&edit, |memtables| memtables.retain(|memtable| memtable.arrival > newest))?;
        self.counters.flushed(&output);
        tracing::debug!(ssts = output.ssts.len(), bytes = output.bytes_out, "flushed");
        self.remove_wal_below(floor);
        Ok(())
    }

    fn compaction_task(self: &Arc<Store>) {
        let version = self.state.load().version.clone();
        let gc = self.gc_threshold.load(Ordering::Acquire);
        let spec = pick(&version, &self.options, gc);
        let closed = self.closed.load(Ordering::Acquire);
        let Some(spec) = spec.filter(|_| !closed) else {
            self.background.give_back(compaction_slot);
            return;
        };
        match self.run_compaction(&version, &spec) {
            Ok((edit, output)) => self.spawn(move |store| {
                store.finish_compaction(&edit, &output);
                store.schedule();
            }),
            Err(error) => {
                self.background.fail(&error);
                self.background.give_back(compaction_slot);
            }
        }
    }

    fn finish_compaction(&self, edit: &Edit, output: &JobOutput) {
        match self.install(edit, |_| {}) {
            Ok(true) => self.counters.compacted(output),
            Ok(false) => self.discard(output),
            Err(error) => self.background.fail(&error),
        }
        self.background.give_back(compaction_slot);
    }

    /// Removes what a job wrote in vain: a structural edit changed its inputs meanwhile.
    fn discard(&self, output: &JobOutput) {
        for facts in &output.ssts {
            let path = sst_path(&self.env.dir, facts.file_no);
            if let Err(error) = self.env.fs.remove(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove unwanted sst");
            }
        }
    }

    fn run_compaction(&self, version: &Version, spec: &Spec) -> Result<(Edit, JobOutput)> {
        let gc = self.durable_gc()?;
        let dropped = spec.runs.iter().flatten().map(|sst| sst.file_no).collect();
        if let Some(sst) = spec.trivial_move(gc) {
            let facts = sst.moved(spec.output_level).facts();
            let edit = Edit {
                added: vec![NewSst { facts }],
                dropped,
                reason: Some(format!("move: {}", spec.reason).into()),
                ..Edit::default()
            };
            return Ok((edit, JobOutput::default()));
        }
        let below = (spec.output_level + 1..LEVELS)
            .flat_map(|level| version.level(level).iter().map(|sst| sst.bounds().clone()))
            .collect();
        let depth =
            spec.output_level.saturating_sub(super::levels_targets(version, &self.options).0);
        let target = self.options.target_sst_size << depth.min(3);
        let job = Job {
            memtables: Vec::new(),
            runs: spec.runs.clone(),
            output_level: spec.output_level,
            target_size: target,
            gc,
            below: Some(below),
        };
        let output = self.with_reserve(|| job.run(self))?;
        tracing::debug!(
            reason = spec.reason,
            level = spec.output_level,
            bytes_in = output.bytes_in,
            bytes_out = output.bytes_out,
            dropped = output.entries_dropped,
            "compacted"
        );
        let added = output.ssts.iter().map(|facts| NewSst { facts: facts.clone() }).collect();
        let reason = Some(spec.reason.into());
        Ok((Edit { added, dropped, reason, ..Edit::default() }, output))
    }

    /// Waits for background work to change something, or does some of it on this thread.
    pub(crate) fn await_progress(self: &Arc<Store>) -> Result<()> {
        if let Some(error) = self.background.error() {
            return Err(error);
        }
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        self.schedule();
        if !self.tasks.help_one() {
            self.background.wait();
        }
        Ok(())
    }

    /// Seals the mutable memtable and waits until it is flushed.
    pub(crate) fn flush_all(self: &Arc<Store>) -> Result<()> {
        self.background.forgive_disk_full();
        let upto = {
            let mut commit = self.commit.lock();
            if self.closed.load(Ordering::Acquire) {
                return Err(Error::Closed);
            }
            if !self.state.load().mutable.is_empty() {
                self.rotate(&mut commit);
            }
            commit.arrival
        };
        while self.state.load().immutable.iter().any(|memtable| memtable.arrival < upto) {
            self.await_progress()?;
        }
        Ok(())
    }

    /// Compacts everything in a span to the bottom level.
    pub(crate) fn compact_to_bottom(self: &Arc<Store>, span: &KeySpan) -> Result<()> {
        self.flush_all()?;
        while !self.background.take(compaction_slot) {
            self.await_progress()?;
        }
        let version = self.state.load().version.clone();
        let result = match spec_for_span(&version, span) {
            None => Ok(()),
            Some(spec) => {
                self.background.enter();
                let done = self.run_compaction(&version, &spec).and_then(|(edit, output)| {
                    if self.install(&edit, |_| {})? {
                        self.counters.compacted(&output);
                    } else {
                        self.discard(&output);
                    }
                    Ok(())
                });
                self.background.leave();
                done
            }
        };
        self.background.give_back(compaction_slot);
        self.schedule();
        result
    }
}
