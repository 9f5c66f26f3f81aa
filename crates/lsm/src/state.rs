//! Everything a read needs, as one immutable value behind an atomic pointer; and the reads that
//! look at all layers of it.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::Result;
use crate::iter::{Layer, LayerCursor, ReadPoint, ReadWork, RunCursor, ScanPlan};
use crate::key::{Between, CommitTs, KeySpan, Kind};
use crate::memtable::{Memtable, MemtableCursor, newest_tombstone};
use crate::sstable::{SstReader, key_hash};
use crate::structure::{BarrierCursor, Queued, Structural, without};
use crate::versions::{Run, RunFile, SstEnv, SstMeta, Version};

/// The layers of the store at a moment. Replaced as a whole, never changed.
#[derive(Clone)]
pub(crate) struct State {
    /// Receives writes.
    pub(crate) mutable: Arc<Memtable>,
    /// Sealed, not flushed yet; newest first.
    pub(crate) immutable: Vec<Arc<Memtable>>,
    /// Ingests and excises that are not part of the version yet; newest first. They lie between
    /// memtables, by their arrival; usually there are none.
    pub(crate) structural: Vec<Arc<Structural>>,
    /// The live ssts.
    pub(crate) version: Arc<Version>,
}

/// So many runs are looked at together: their cache misses overlap.
const RUNS_AHEAD: usize = 8;

/// Newest timestamp of those of anything in the span in a run; their floor if there is none.
fn newest_in_run(
    env: &SstEnv,
    run: &[Arc<SstMeta>],
    span: &KeySpan,
    mut times: Between,
    tombstones: bool,
) -> Result<u64> {
    let first = run.partition_point(|sst| sst.bounds().end <= span.start);
    for sst in run[first..].iter().take_while(|sst| sst.bounds().start < span.end) {
        if !times.meets(sst.min_ts, sst.max_ts) {
            continue;
        }
        let reader = sst.reader(env)?;
        let span = span.intersect(sst.bounds());
        if tombstones {
            let newest = reader.skyline().max_ts_in(&span.start, &span.end);
            times.floor = match newest <= times.upto {
                true => times.raised(newest),
                false => newest_tombstone(&reader.skyline().tombstones(), &span, times),
            };
        }
        times.floor = reader.newest_point(&span, times)?;
    }
    Ok(times.floor)
}

impl State {
    /// All memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.mutable).chain(&self.immutable)
    }

    /// The value of a key, as a read sees it. Goes from layer to layer, newest first, and stops at
    /// the first one with a point or a tombstone for the key: everything below is older.
    pub(crate) fn get(
        &self,
        env: &SstEnv,
        key: &[u8],
        read: ReadPoint,
        work: &mut ReadWork,
    ) -> Result<Option<(Bytes, CommitTs)>> {
        let hash = key_hash(key);
        if !self.structural.is_empty() {
            return self.get_through_queue(env, key, hash, read, work);
        }
        for memtable in self.memtables() {
            if read.ts < memtable.min_ts() {
                continue;
            }
            let (hidden_below, hides_all) = memtable.stab(key, read);
            if !hides_all
                && memtable.may_contain(hash)
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
        self.get_from_ssts(env, key, hash, read.ts, work)
    }

    /// Brings closer what [`State::get`] of a key looks at first: filters.
    pub(crate) fn prefetch_get(&self, env: &SstEnv, key: &[u8]) {
        let hash = key_hash(key);
        self.memtables().for_each(|memtable| memtable.prefetch_hash(hash));
        for run in self.version.runs_for_reads().iter().take(RUNS_AHEAD) {
            if let Some(Ok(reader)) = run.file_of(key).map(|file| file.reader(env)) {
                reader.prefetch_filter(hash);
            }
        }
    }

    /// As [`State::get`] while ingests or excises wait between the memtables.
    fn get_through_queue(
        &self,
        env: &SstEnv,
        key: &[u8],
        hash: u64,
        read: ReadPoint,
        work: &mut ReadWork,
    ) -> Result<Option<(Bytes, CommitTs)>> {
        for layer in self.queue() {
            let memtable = match layer {
                Queued::Memtable(memtable) => memtable,
                Queued::Structural(op) => {
                    if let Some(answer) = op.get(env, key, hash, read.ts, work)? {
                        return Ok(answer.map(|(value, ts)| (value, CommitTs(ts))));
                    }
                    continue;
                }
            };
            let (hidden_below, _) = memtable.stab(key, read);
            if let Some(node) = memtable.get(key, read.ts, read.visible) {
                let lives = node.kind() == Kind::Put && node.ts() >= hidden_below;
                let value = || (Bytes::copy_from_slice(node.value()), CommitTs(node.ts()));
                return Ok(lives.then(value));
            }
            if hidden_below > 0 {
                return Ok(None);
            }
        }
        self.get_from_ssts(env, key, hash, read.ts, work)
    }

    fn get_from_ssts(
        &self,
        env: &SstEnv,
        key: &[u8],
        hash: u64,
        read_ts: u64,
        work: &mut ReadWork,
    ) -> Result<Option<(Bytes, CommitTs)>> {
        let mut groups = self.version.runs_for_reads().chunks(RUNS_AHEAD).peekable();
        while let Some(runs) = groups.next() {
            let mut found: [Option<(&RunFile, &SstReader)>; RUNS_AHEAD] = [None; RUNS_AHEAD];
            for (slot, run) in found.iter_mut().zip(runs) {
                if let Some(file) = run.file_of(key).filter(|file| file.min_ts <= read_ts) {
                    let reader = file.reader(env)?;
                    reader.prefetch_filter(hash);
                    if file.has_tombstones {
                        reader.skyline().prefetch(key);
                    }
                    *slot = Some((file, reader));
                }
            }
            // What is nowhere below need not be looked for under tombstones.
            if groups.peek().is_none() {
                let may = |slot: &Option<(&RunFile, &SstReader)>| {
                    slot.is_some_and(|(_, reader)| reader.may_contain(hash))
                };
                let Some(last) = found.iter().rposition(may) else { return Ok(None) };
                found[last + 1..].fill(None);
            }
            for (file, reader) in found.into_iter().flatten() {
                if file.has_tombstones {
                    reader.skyline().prefetch_top(key);
                }
                let found =
                    if reader.may_contain(hash) { reader.get(key, read_ts, work)? } else { None };
                if found.as_ref().is_some_and(|found| found.kind == Kind::Delete) {
                    return Ok(None);
                }
                let hidden_below =
                    if file.has_tombstones { reader.skyline().stab(key, read_ts) } else { 0 };
                if let Some(found) = found {
                    let lives = found.ts >= hidden_below;
                    return Ok(lives.then_some((found.value, CommitTs(found.ts))));
                }
                if hidden_below > 0 {
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// Timestamp of the newest visible range tombstone over a key in ssts; 0 if none.
    pub(crate) fn stab_ssts(&self, env: &SstEnv, key: &[u8], read_ts: u64) -> Result<u64> {
        for run in self.version.runs_for_reads() {
            if let Some(file) = run.file_of(key).filter(|file| file.has_tombstones) {
                let ts = file.reader(env)?.skyline().stab(key, read_ts);
                if ts > 0 {
                    return Ok(ts);
                }
            }
        }
        Ok(0)
    }

    /// Cursors over the layers that overlap a scan, newest first.
    pub(crate) fn layers(&self, plan: &Arc<ScanPlan>) -> Vec<Layer> {
        let (read, runs) = (plan.read(), self.version.runs_for_reads());
        let mut layers = Vec::with_capacity(1 + self.immutable.len() + runs.len());
        let add_memtable = |layers: &mut Vec<Layer>, memtable: &Arc<Memtable>| {
            if !memtable.is_empty() && memtable.min_ts() <= read.ts {
                let cursor = MemtableCursor::new(memtable.clone(), read, plan);
                layers.push(LayerCursor::Memtable(cursor).into());
            }
        };
        let add_run = |layers: &mut Vec<Layer>, run_no: usize, run: &Run| {
            let first = run.first_ending_above(&plan.span.start);
            let end = run.first_starting_at(&plan.span.end);
            if first < end && run.min_ts() <= read.ts {
                let cursor = RunCursor::new(plan.clone(), run_no, first..end);
                layers.push(LayerCursor::Run(cursor).into());
            }
        };
        if self.structural.is_empty() {
            self.memtables().for_each(|memtable| add_memtable(&mut layers, memtable));
        } else {
            // Runs of waiting operations are numbered behind those of the version.
            let mut run_no = runs.len();
            for layer in self.queue() {
                match layer {
                    Queued::Memtable(memtable) => add_memtable(&mut layers, memtable),
                    Queued::Structural(op) => {
                        add_run(&mut layers, run_no, &op.run);
                        run_no += 1;
                        let barrier =
                            |span: &KeySpan| BarrierCursor::new(span.clone(), plan.options.reverse);
                        let barrier = op.excised.as_ref().map(barrier);
                        layers.extend(barrier.map(LayerCursor::Barrier).map(Layer::from));
                    }
                }
            }
        }
        for (run_no, run) in runs.iter().enumerate() {
            add_run(&mut layers, run_no, run);
        }
        layers
    }

    /// A run of the version, or behind those the run of a waiting operation.
    #[inline]
    pub(crate) fn run(&self, number: usize) -> &Run {
        let runs = self.version.runs_for_reads();
        match runs.get(number) {
            Some(run) => run,
            None => &self.structural[number - runs.len()].run,
        }
    }

    /// Newest timestamp above `floor` of anything in the span, 0 if there is none above it.
    /// `tombstones`: whether range tombstones count as well as points.
    pub(crate) fn newest_above(
        &self,
        env: &SstEnv,
        span: &KeySpan,
        floor: u64,
        tombstones: bool,
    ) -> Result<u64> {
        self.newest_between(env, span, Between::above(floor), tombstones)
    }

    /// Newest of some timestamps of anything in the span, 0 if there is none of them.
    pub(crate) fn newest_between(
        &self,
        env: &SstEnv,
        span: &KeySpan,
        times: Between,
        tombstones: bool,
    ) -> Result<u64> {
        if span.is_empty() {
            return Ok(0);
        }
        let mut newest = times.floor;
        // What an excise cut out is not looked for below it.
        let mut spans = vec![span.clone()];
        for layer in self.queue() {
            for span in &spans {
                newest = match layer {
                    Queued::Memtable(memtable) => {
                        newest.max(memtable.newest_between(span, times.over(newest), tombstones))
                    }
                    Queued::Structural(op) => {
                        newest_in_run(env, op.run.ssts(), span, times.over(newest), tombstones)?
                    }
                };
            }
            if let Queued::Structural(op) = layer
                && let Some(cut) = &op.excised
            {
                spans = without(spans, cut);
            }
        }
        for run in self.version.runs() {
            for span in &spans {
                newest = newest_in_run(env, run, span, times.over(newest), tombstones)?;
            }
        }
        Ok(if newest > times.floor { newest } else { 0 })
    }

    /// Newest timestamp of an entry of `key` or a tombstone over it; 0 if none. Layers of which
    /// nothing is above `floor` are not looked at.
    pub(crate) fn max_ts_of(&self, env: &SstEnv, key: &[u8], floor: u64) -> Result<u64> {
        let hash = key_hash(key);
        for layer in self.queue() {
            let found = match layer {
                Queued::Memtable(memtable) if memtable.max_ts() <= floor => None,
                Queued::Memtable(memtable) => {
                    Some(memtable.max_ts_of(key, hash)).filter(|ts| *ts > 0)
                }
                Queued::Structural(op) => op.max_ts_of(env, key, hash)?,
            };
            if let Some(ts) = found {
                return Ok(ts);
            }
        }
        for run in self.version.runs_for_reads() {
            let Some(file) = run.file_of(key).filter(|file| file.sst.max_ts > floor) else {
                continue;
            };
            let reader = file.reader(env)?;
            let mut ts = reader.skyline().stab(key, u64::MAX);
            if reader.may_contain(hash)
                && let Some(found) = reader.get(key, u64::MAX, &mut ReadWork::default())?
            {
                ts = ts.max(found.ts);
            }
            if ts > 0 {
                return Ok(ts);
            }
        }
        Ok(0)
    }
}
