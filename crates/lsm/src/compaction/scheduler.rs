//! When background work runs: one flush, and as many compactions as there are slots.
//!
//! A compaction is admitted under one lock: the picker looks at the newest version and at the
//! claims of running jobs, and what it proposes is claimed before the lock is let go. A claim ends
//! after the job's edit is installed, so whoever finds an sst unclaimed also finds it as that job
//! left it.
//!
//! A job is two tasks: the first merges and writes ssts, the second installs them. In between,
//! anything else may happen; with the deterministic executor tests decide what.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::claims::Claims;
use super::job::{Job, JobOutput};
use super::output_cuts::OutputCuts;
use super::picker::{Scene, levels_targets, pick, target_sst_size};
use super::read_meter::Written;
use super::read_triggered::pick_for_reads;
use super::spec::{CompactionReason, Spec, hull_of};
use super::unit::Unit;
use crate::error::{Error, Result};
use crate::inspect::{EventKind, EventSst, JobKind, JobOutcome, JobTicket};
use crate::key::KeySpan;
use crate::memtable::Memtable;
use crate::sstable::{key_hash, sst_path};
use crate::state::State;
use crate::store::Store;
use crate::versions::{Edit, LEVELS, SstFacts, SstMeta, Version};

/// One flush takes so many full memtables.
const FLUSHED_AT_ONCE: usize = 2;

#[derive(Default)]
struct Slots {
    flush: bool,
    /// Compactions that were admitted and have not ended.
    compactions: usize,
    claims: Claims,
    /// One of the compactions is for the sake of reads.
    for_reads: bool,
    /// A sweep was admitted and has not ended.
    sweeping: bool,
    /// Gc threshold at the last sweep.
    swept: u64,
    /// A sweep left out ssts that were busy.
    sweep_again: bool,
    /// Tasks that are on a thread right now.
    running: usize,
    error: Option<Error>,
}

/// What is going on in the background.
#[derive(Default)]
pub(crate) struct Background {
    slots: Mutex<Slots>,
    changed: Condvar,
    /// Work may have stopped because the device was full.
    disk_full: AtomicBool,
}

/// What a sweep would do.
#[derive(Default)]
pub(crate) struct SweepPlan {
    /// Nothing in them can be seen.
    pub(crate) dead: Vec<Arc<SstMeta>>,
    /// These parts of them cannot.
    pub(crate) partly: Vec<(Arc<SstMeta>, Vec<KeySpan>)>,
    /// Hold only tombstones that may have done their work.
    pub(crate) tombstones: Vec<Arc<SstMeta>>,
}

/// An admitted compaction.
struct Admitted {
    claim: u64,
    spec: Spec,
}

impl Background {
    /// The error that stopped background work, if there is one.
    pub(crate) fn error(&self) -> Option<Error> {
        self.slots.lock().error.clone()
    }

    /// Waits a moment for something to change. Returns early, with true, on any change.
    fn wait(&self) -> bool {
        let mut slots = self.slots.lock();
        !self.changed.wait_for(&mut slots, Duration::from_millis(50)).timed_out()
    }

    pub(crate) fn enter(&self) {
        self.slots.lock().running += 1;
    }

    pub(crate) fn leave(&self) {
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

    fn take_flush(&self) -> bool {
        !std::mem::replace(&mut self.slots.lock().flush, true)
    }

    fn end_flush(&self) {
        self.slots.lock().flush = false;
        self.changed.notify_all();
    }

    fn end_compaction(&self, claim: u64, reason: CompactionReason) {
        let mut slots = self.slots.lock();
        slots.compactions -= 1;
        slots.for_reads &= reason != CompactionReason::ReadTriggered;
        if std::mem::take(&mut slots.sweep_again) {
            slots.swept = 0;
        }
        drop(slots);
        self.end_claim(claim);
    }

    /// Ends a claim that is not a compaction's.
    pub(crate) fn end_claim(&self, claim: u64) {
        self.slots.lock().claims.release(claim);
        self.changed.notify_all();
    }

    /// Claims the ssts of a plan that are live and free; takes the others out of it. `None` if
    /// none is left.
    pub(crate) fn claim_sweep(&self, store: &Store, plan: &mut SweepPlan) -> Option<u64> {
        let mut slots = self.slots.lock();
        // Loaded under the lock, as in `admit`.
        let version = store.state.load().version.clone();
        let live: HashSet<u64> = version.ssts().map(|sst| sst.file_no).collect();
        let mut left_out = false;
        let claims = &slots.claims;
        let mut free = |sst: &Arc<SstMeta>| {
            let free = !claims.is_busy(sst.file_no) && !claims.is_reserved(sst.bounds());
            left_out |= !free;
            free && live.contains(&sst.file_no)
        };
        plan.dead.retain(&mut free);
        plan.partly.retain(|(sst, _)| free(sst));
        plan.tombstones.retain(&mut free);
        slots.sweep_again |= left_out;
        let partly = plan.partly.iter().map(|(sst, _)| sst);
        let all: Vec<Arc<SstMeta>> =
            plan.dead.iter().chain(partly).chain(&plan.tombstones).cloned().collect();
        let hull = hull_of(all.iter())?;
        Some(slots.claims.take_files(&all, hull))
    }

    fn end_sweep(&self) {
        self.slots.lock().sweeping = false;
        self.changed.notify_all();
    }

    /// Ssts with tombstones arrived: the next sweep looks at all of them again.
    fn sweep_anew(&self) {
        self.slots.lock().swept = 0;
    }

    /// The threshold was lowered: what it passes from there on is looked for again.
    pub(crate) fn sweep_above(&self, gc: u64) {
        let mut slots = self.slots.lock();
        slots.swept = slots.swept.min(gc);
    }

    /// Reserves a span unless part of it is reserved already.
    pub(crate) fn try_reserve(&self, span: &KeySpan) -> Option<u64> {
        let mut slots = self.slots.lock();
        (!slots.claims.is_reserved(span)).then(|| slots.claims.reserve(span.clone()))
    }

    pub(crate) fn unreserve(&self, id: u64) {
        self.slots.lock().claims.unreserve(id);
        self.changed.notify_all();
    }

    /// Whether an edit that puts something over `span` into `level`, and cuts these ssts there,
    /// would make the work of a running compaction useless.
    pub(crate) fn is_disturbed(&self, level: usize, span: &KeySpan, cut: &[Arc<SstMeta>]) -> bool {
        let slots = self.slots.lock();
        slots.claims.blocks(level, span) || cut.iter().any(|sst| slots.claims.is_busy(sst.file_no))
    }

    /// Whether a running compaction overlaps a span.
    pub(crate) fn is_touched(&self, span: &KeySpan) -> bool {
        self.slots.lock().claims.touches(span)
    }

    fn fail(&self, error: &Error) {
        if matches!(error, Error::Closed) {
            return;
        }
        tracing::error!(%error, "background work failed");
        let mut slots = self.slots.lock();
        slots.error = Some(error.clone());
        self.disk_full.store(matches!(error, Error::DiskFull), Ordering::Release);
        drop(slots);
        self.changed.notify_all();
    }

    /// A full device may have room again: forgets that error, so that work is tried again.
    pub(crate) fn forgive_disk_full(&self) {
        // Asked before every write.
        if !self.disk_full.load(Ordering::Relaxed) {
            return;
        }
        let mut slots = self.slots.lock();
        self.disk_full.store(false, Ordering::Release);
        if matches!(slots.error, Some(Error::DiskFull)) {
            slots.error = None;
        }
    }
}

/// Whether the threshold has passed tombstones of ssts since the last sweep.
fn sweep_is_due(version: &Version, gc: u64, swept: u64) -> bool {
    let passed = |sst: &Arc<SstMeta>| sst.tombstones > 0 && sst.min_ts <= gc && sst.max_ts > swept;
    gc > swept && version.ssts().any(passed)
}

impl Store {
    /// Starts background work that is due. Never blocks.
    pub(crate) fn schedule(self: &Arc<Store>) {
        if self.closed.load(Ordering::Acquire) || self.background.error().is_some() {
            return;
        }
        let state = self.state.load();
        let queued = !state.immutable.is_empty() || !state.structural.is_empty();
        if queued && self.background.take_flush() {
            self.spawn(|store| store.flush_task());
        }
        if self.options.automatic_compaction {
            if self.admit_sweep() {
                self.spawn(|store| store.sweep_task());
            }
            while let Some(admitted) = self.admit() {
                self.spawn(move |store| store.compaction_task(admitted));
            }
        }
    }

    /// Claims the most urgent compaction, if there is one and a slot for it.
    fn admit(&self) -> Option<Admitted> {
        let mut slots = self.background.slots.lock();
        if slots.compactions >= self.options.compaction_slots.max(1) {
            return None;
        }
        // The version is loaded under the lock: see the module.
        let version = self.state.load().version.clone();
        let gc = self.gc_threshold.load(Ordering::Acquire);
        let garbage = !slots.sweeping && !sweep_is_due(&version, gc, slots.swept);
        let (options, claims) = (&self.options, &slots.claims);
        let scene = Scene { version: &version, options, gc, claims, garbage };
        let spec = pick(&scene).or_else(|| self.pick_for_reads(&scene, slots.for_reads))?;
        slots.for_reads |= spec.reason == CompactionReason::ReadTriggered;
        let claim = slots.claims.take(&spec);
        slots.compactions += 1;
        Some(Admitted { claim, spec })
    }

    /// What reads pay for, if nothing is more urgent and no other such compaction runs.
    fn pick_for_reads(&self, scene: &Scene<'_>, running: bool) -> Option<Spec> {
        let now = self.options.clock.monotonic_nanos();
        if !self.options.read_triggered || running || !self.read_meter.wants_evaluation(now) {
            return None;
        }
        let written = Written {
            user: self.counters.user_bytes.load(Ordering::Relaxed),
            flushed: self.counters.flush_bytes.load(Ordering::Relaxed),
            others: self.counters.compaction.bytes_not_for_reads(),
        };
        pick_for_reads(scene, scene.base(), &self.read_meter, written, now)
    }

    /// Looks at a get, one in many.
    #[cold]
    pub(crate) fn sample_get(self: &Arc<Store>, state: &State, key: &[u8]) {
        let clock = &*self.options.clock;
        self.read_meter.sample_get(state, &self.env, key, key_hash(key), clock);
        self.after_sample(clock.monotonic_nanos());
    }

    /// Something was charged: perhaps it is time to do something about it.
    pub(crate) fn after_sample(self: &Arc<Store>, now: u64) {
        if self.options.read_triggered && self.read_meter.wants_evaluation(now) {
            self.schedule();
        }
    }

    /// Whether it is time to look for ssts that can be dropped unread.
    fn admit_sweep(&self) -> bool {
        let mut slots = self.background.slots.lock();
        let gc = self.gc_threshold.load(Ordering::Acquire);
        let state = self.state.load();
        let in_memtable =
            gc > slots.swept && state.mutable.min_ts() <= gc && !state.mutable.skyline().is_empty();
        if slots.sweeping || !(in_memtable || sweep_is_due(&state.version, gc, slots.swept)) {
            return false;
        }
        slots.sweeping = true;
        slots.swept = gc;
        true
    }

    fn sweep_task(self: &Arc<Store>) {
        if self.closed.load(Ordering::Acquire) {
            self.background.end_sweep();
            return;
        }
        self.flush_tombstones(self.gc_threshold.load(Ordering::Acquire));
        match self.plan_sweep(&KeySpan::all()) {
            Ok(None) => {
                self.background.end_sweep();
                self.schedule();
            }
            Ok(Some((claim, swept))) => self.spawn(move |store| {
                match store.install_sweep(claim, &swept) {
                    Ok(true) => {}
                    Ok(false) => store.background.sweep_anew(),
                    Err(error) => store.work_failed(&error),
                }
                store.background.end_sweep();
                store.schedule();
            }),
            Err(error) => {
                self.work_failed(&error);
                self.background.end_sweep();
            }
        }
    }

    /// Background work failed: it stops, and writers are told.
    fn work_failed(&self, error: &Error) {
        if !matches!(error, Error::Closed) {
            self.events.emit(EventKind::Failed { error: error.to_string() });
        }
        self.background.fail(error);
    }

    /// Whether nothing is being flushed or compacted, and nothing is due.
    pub(crate) fn is_quiet(self: &Arc<Store>) -> bool {
        self.schedule();
        let slots = self.background.slots.lock();
        !slots.flush
            && !slots.sweeping
            && slots.compactions == 0
            && self.state.load().immutable.is_empty()
    }

    /// Queues a task that holds the store only while it runs.
    pub(crate) fn spawn(self: &Arc<Store>, task: impl FnOnce(&Arc<Store>) + Send + 'static) {
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
            Ok(None) => self.background.end_flush(),
            Ok(Some((memtables, output))) => self.spawn(move |store| {
                if let Err(error) = store.install_flush(&memtables, output) {
                    store.work_failed(&error);
                }
                store.background.end_flush();
                store.schedule();
            }),
            Err(error) => {
                self.work_failed(&error);
                self.background.end_flush();
            }
        }
    }

    fn run_flush(&self) -> Result<Option<(Vec<Arc<Memtable>>, JobOutput)>> {
        if self.closed.load(Ordering::Acquire) {
            return Ok(None);
        }
        self.install_due_operations()?;
        let most = self.options.memtable_size.saturating_mul(FLUSHED_AT_ONCE);
        let memtables = self.state.load().flushable(most);
        if memtables.is_empty() {
            return Ok(None);
        }
        // Nothing may be in ssts that a crash could still take out of the wal in front of it.
        self.wal.wait(self.wal.appended(), true)?;
        let version = self.state.load().version.clone();
        let base = levels_targets(&version, &self.options).0;
        let job = Job {
            memtables: memtables.clone(),
            runs: Vec::new(),
            output_level: 0,
            cuts: OutputCuts::for_l0(&version, base, &self.options),
            // After the inputs were chosen: it may be lowered for what comes later.
            gc: self.durable_gc()?,
            below: None,
            lenders: Vec::new(),
        };
        let bytes = memtables.iter().map(|memtable| memtable.bytes() as u64).sum();
        let ticket = self.events.began(JobKind::Flush, 0, Vec::new(), bytes);
        let output = self.run_job(&job, ticket)?;
        Ok(Some((memtables, output)))
    }

    /// Runs a job; its end is reported here if it fails, otherwise when it is installed.
    fn run_job(&self, job: &Job, ticket: JobTicket) -> Result<JobOutput> {
        match self.with_reserve(|| job.run(self)) {
            Ok(output) => Ok(JobOutput { ticket, ..output }),
            Err(error) => {
                let outcome = JobOutcome::Failed(error.to_string());
                self.events.ended(ticket, outcome, &JobOutput::default());
                Err(error)
            }
        }
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
            added: output.ssts.to_vec(),
            wal_floor: Some(floor),
            next_arrival: Some(newest + 1),
            reason: Some("flush".into()),
            ..Edit::default()
        };
        self.install(&edit, |memtables| memtables.retain(|memtable| memtable.arrival > newest))?;
        self.counters.flushed(&output);
        self.events.ended(output.ticket, JobOutcome::Installed, &output);
        if output.ssts.iter().any(|facts| facts.tombstones > 0) {
            self.background.sweep_anew();
        }
        tracing::debug!(ssts = output.ssts.len(), bytes = output.bytes_out, "flushed");
        self.remove_wal_below(floor);
        Ok(())
    }

    fn compaction_task(self: &Arc<Store>, admitted: Admitted) {
        let Admitted { claim, spec } = admitted;
        if self.closed.load(Ordering::Acquire) {
            self.background.end_compaction(claim, spec.reason);
            return;
        }
        let (start, reason) = (self.options.clock.monotonic_nanos(), spec.reason);
        let done = self.unit_of(spec).and_then(|unit| {
            let (edit, output) = self.run_compaction(&unit)?;
            Ok((unit.spec, edit, output))
        });
        match done {
            Ok((spec, edit, output)) => {
                let nanos = self.options.clock.monotonic_nanos().saturating_sub(start);
                self.read_meter.compacted(output.bytes_in + output.bytes_out, nanos);
                if spec.output_level > 0 {
                    let l0 = spec.inputs().filter(|sst| sst.level == 0);
                    self.throttle.drained(l0.map(|sst| sst.size).sum(), nanos);
                }
                self.spawn(move |store| {
                    match store.install(&edit, |_| {}) {
                        Ok(true) => {
                            store.note_compaction(&spec, &output);
                            store.keep_warm(&spec, &output);
                        }
                        Ok(false) => store.discard(&output),
                        Err(error) => store.work_failed(&error),
                    }
                    store.background.end_compaction(claim, reason);
                    store.schedule();
                });
            }
            Err(error) => {
                self.work_failed(&error);
                self.background.end_compaction(claim, reason);
            }
        }
    }

    /// As much of a spec as one job does.
    fn unit_of(&self, spec: Spec) -> Result<Unit> {
        let gc = self.gc_durable.load(Ordering::Acquire);
        // A move writes nothing; what reads pay for is limited, and accounted for, as a whole; so
        // does L0 go down without sublevels.
        let whole = spec.reason == CompactionReason::ReadTriggered || !self.options.l0_sublevels;
        if whole || spec.moves(gc).is_some() {
            return Ok(Unit::whole(spec));
        }
        let number = || self.next_file.fetch_add(1, Ordering::AcqRel);
        Unit::of(spec, self.options.compaction_unit_bytes, &self.env, number)
    }

    /// What is compacted because it is read all the time was in the cache, and would be missed.
    fn keep_warm(&self, spec: &Spec, output: &JobOutput) {
        if spec.reason != CompactionReason::ReadTriggered {
            return;
        }
        let version = self.state.load().version.clone();
        let written =
            |sst: &&Arc<SstMeta>| output.ssts.iter().any(|facts| facts.file_no == sst.file_no);
        for sst in version.level(spec.output_level).iter().filter(written) {
            if let Err(error) = sst.reader(&self.env).and_then(|reader| reader.warm()) {
                // The first read that needs the block tries again, and says so.
                tracing::warn!(sst = sst.file_no, %error, "cannot bring a new sst to memory");
            }
        }
    }

    /// Removes what a job wrote in vain: a structural edit changed its inputs meanwhile.
    pub(crate) fn discard(&self, output: &JobOutput) {
        self.events.ended(output.ticket, JobOutcome::Outdated, output);
        for facts in &output.ssts {
            let path = sst_path(&self.env.dir, facts.file_no);
            if let Err(error) = self.env.fs.remove(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove unwanted sst");
            }
        }
    }

    /// Merges the inputs of a unit, which nobody else may take meanwhile, or moves them.
    pub(crate) fn run_compaction(&self, unit: &Unit) -> Result<(Edit, JobOutput)> {
        let gc = self.durable_gc()?;
        let Unit { spec, used, rest } = unit;
        let inputs: Vec<EventSst> = used.iter().map(|sst| EventSst::of(sst)).collect();
        let bytes = spec.inputs().map(|sst| sst.size).sum();
        let what = JobKind::Compaction(spec.reason);
        let ticket = self.events.began(what, spec.output_level, inputs, bytes);
        let dropped = used.iter().map(|sst| sst.file_no).collect();
        if let Some(moves) = spec.moves(gc) {
            let level = spec.output_level;
            let moved = moves.iter().map(|sst| SstFacts { level, ..sst.facts().clone() });
            let added = moved.chain(rest.iter().cloned()).collect();
            let moved_count = moves.len() as u64;
            let output = JobOutput { moved: moved_count, ticket, ..JobOutput::default() };
            let reason = Some(format!("move: {}", spec.reason.as_str()).into());
            return Ok((Edit { added, dropped, reason, ..Edit::default() }, output));
        }
        let version = self.state.load().version.clone();
        let job = self.job_of(unit, &version, gc);
        let output = self.run_job(&job, ticket)?;
        tracing::debug!(
            reason = spec.reason.as_str(),
            level = spec.output_level,
            bytes_in = output.bytes_in,
            bytes_out = output.bytes_out,
            dropped = output.dropped.entries(),
            "compacted"
        );
        let added = output.ssts.iter().chain(rest).cloned().collect();
        let reason = Some(spec.reason.as_str().into());
        Ok((Edit { added, dropped, reason, ..Edit::default() }, output))
    }

    fn job_of(&self, unit: &Unit, version: &Version, gc: u64) -> Job {
        let spec = &unit.spec;
        let base = levels_targets(version, &self.options).0;
        let level = spec.output_level;
        let hull = spec.hull();
        let bounds = |sst: &Arc<SstMeta>| sst.bounds().clone();
        let (cuts, below) = if level == 0 {
            // Older ssts of L0 may lie below the output.
            (OutputCuts::for_l0(version, base, &self.options), None)
        } else {
            let target = target_sst_size(&self.options, base, level);
            let grandparents: &[Arc<SstMeta>] =
                if level + 1 < LEVELS { version.overlapping(level + 1, &hull) } else { &[] };
            let below = (level + 1..LEVELS)
                .flat_map(|level| version.overlapping(level, &hull).iter().map(bounds));
            (OutputCuts::above(target, grandparents.iter()), Some(below.collect()))
        };
        let is_input = |sst: &SstMeta| unit.used.iter().any(|input| input.file_no == sst.file_no);
        let lenders = version
            .ssts()
            .filter(|sst| sst.tombstones > 0 && sst.min_ts <= gc)
            .filter(|sst| sst.bounds().overlaps(&hull) && !is_input(sst));
        Job {
            memtables: Vec::new(),
            runs: spec.runs.clone(),
            output_level: level,
            cuts,
            gc,
            below,
            lenders: lenders.cloned().collect(),
        }
    }

    /// Waits for background work to change something, or does some of it on this thread. False if
    /// nothing happened.
    pub(crate) fn await_progress(self: &Arc<Store>) -> Result<bool> {
        if let Some(error) = self.background.error() {
            return Err(error);
        }
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        self.schedule();
        Ok(self.tasks.help_one() || self.background.wait())
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
        let waits = |state: &State| {
            state.immutable.iter().any(|memtable| memtable.arrival < upto)
                || state.structural.iter().any(|op| op.arrival < upto)
        };
        while waits(&self.state.load()) {
            self.await_progress()?;
        }
        Ok(())
    }
}
