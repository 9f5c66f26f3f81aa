//! Merges layers, newest first, slab by slab.
//!
//! The key line is cut at the bounds of visible range tombstones; the pieces are *slabs*. Inside
//! a slab, each layer is under at most one visible tombstone. As upper layers are newer, the
//! first layer under a tombstone hides everything below it: those layers are *parked*. They are
//! not read, not even opened, until the slab ends, and then they are sought to the new position
//! at most once:
//!
//! ```text
//!                 |<-- slab 1 -->|<------- slab 2 -------->|<- slab 3 ->
//!   memtable       a    b          [b2 ..... tombstone @9 )   x
//!   L0.1              a2  b1       (parked)                     y
//!   L6             a1                 (parked: a million rows)  x  z
//! ```
//!
//! So a scan past a deleted span costs one step per boundary and one seek per layer that has data
//! behind it, however many rows are in there.
//!
//! Queues leave many tombstones side by side. If no active layer has a row in a slab under one, the
//! slab is extended over the tombstones of the same layer that touch it, to the next row above them
//! (`extend_slab`): that is one step of a list for each, and no layer is asked anything.

use std::sync::Arc;

use braid_env::clock::Clock;
use bytes::Bytes;

use super::layer::LayerCursor;
use super::row_batch::RowBatch;
use super::scan::{ScanPlan, ScanStats};
use super::source::{ReadWork, Source};
use super::stretch::Stretch;
use crate::error::Result;
use crate::key::Kind;
use crate::range_tombstone::Cover;
use crate::versions::SstMeta;

/// What handing out fewer rows takes is not looked at.
const LONG_FILL: usize = 64;

/// A layer of a scan, with what the merge knows about it.
pub(crate) struct Layer {
    source: LayerCursor,
    cover: Option<Cover>,
    /// Positioned at or behind the current slab's start.
    in_place: bool,
    /// Found its place in a seek, but does not stand on an entry yet.
    aimed: bool,
}

impl From<LayerCursor> for Layer {
    fn from(source: LayerCursor) -> Layer {
        Layer { source, cover: None, in_place: false, aimed: false }
    }
}

impl Layer {
    /// The second half of the way to `at`, after [`MergeCursor::aim`].
    fn settle_at(&mut self, at: &[u8]) -> Result<()> {
        if std::mem::take(&mut self.aimed) { self.source.settle_at(at) } else { Ok(()) }
    }
}

/// Takes the time of one layer after the other.
struct Stopwatch<'a> {
    clock: &'a dyn Clock,
    last: u64,
    laps: Vec<u64>,
}

impl Stopwatch<'_> {
    fn lap(&mut self) {
        let now = self.clock.monotonic_nanos();
        self.laps.push(now - self.last);
        self.last = now;
    }
}

/// The merged rows of a span, as one read sees them.
pub(crate) struct MergeCursor {
    layers: Vec<Layer>,
    plan: Arc<ScanPlan>,
    backward: bool,
    /// Number of layers that are not parked.
    active: usize,
    /// Where the current slab starts; covers are valid from here on.
    slab_start: Vec<u8>,
    /// Layer whose cover ends first, and the slab with it; `None`: at the end of the span.
    slab_end: Option<usize>,
    /// Layer that holds the current row.
    current: Option<usize>,
    started: bool,
    done: bool,
    /// Stretches handed out.
    stretches: u64,
    pub(crate) stats: ScanStats,
}

impl MergeCursor {
    /// A cursor over the layers of a scan, newest first.
    pub(crate) fn new(layers: Vec<Layer>, plan: Arc<ScanPlan>) -> MergeCursor {
        let (done, backward) = (plan.span.is_empty(), plan.options.reverse);
        MergeCursor {
            layers,
            plan,
            backward,
            active: 0,
            slab_start: Vec::new(),
            slab_end: None,
            current: None,
            started: false,
            done,
            stretches: 0,
            stats: ScanStats::default(),
        }
    }

    /// Whether `a` comes strictly before `b` in the direction of the scan.
    #[inline]
    fn ahead(&self, a: &[u8], b: &[u8]) -> bool {
        if self.backward { a > b } else { a < b }
    }

    /// Whether a key lies behind a boundary. Boundaries are exclusive ends going forward, and
    /// inclusive starts going backward.
    #[inline]
    fn beyond(&self, key: &[u8], boundary: &[u8]) -> bool {
        if self.backward { key < boundary } else { key >= boundary }
    }

    fn limit(&self) -> &[u8] {
        if self.backward { &self.plan.span.start } else { &self.plan.span.end }
    }

    /// Begins the slab at `at`: decides which layers are parked and brings the others there. With
    /// a stopwatch, one after the other, and their times are taken.
    fn enter_slab(&mut self, at: &[u8], mut stopwatch: Option<&mut Stopwatch<'_>>) -> Result<()> {
        self.slab_end = None;
        let mut active = 0;
        for i in 0..self.layers.len() {
            active += 1;
            // A layer is looked for tombstones when its place was found: what that needs is on its
            // way from memory meanwhile.
            self.aim(i, at)?;
            if let Some(stopwatch) = &mut stopwatch {
                self.layers[i].settle_at(at)?;
                stopwatch.lap();
            }
            if self.cover_is_over(i, at) {
                self.layers[i].cover = Some(self.layers[i].source.cover(at)?);
            }
            let cover = self.layers[i].cover.as_ref().expect("just made sure");
            let hides = cover.ts > 0;
            if let Some(until) = &cover.until
                && self.slab_end().is_none_or(|end| self.ahead(until, end))
            {
                self.slab_end = Some(i);
            }
            if hides {
                break;
            }
        }
        for layer in &mut self.layers[..active] {
            layer.settle_at(at)?;
        }
        if active < self.layers.len() {
            self.stats.slabs_parked += 1;
        }
        for layer in &mut self.layers[active..] {
            layer.in_place = false;
        }
        self.active = active;
        self.slab_start.clear();
        self.slab_start.extend_from_slice(at);
        // Only the last active layer can be under a tombstone, and only its own rows can be
        // hidden row by row.
        if let Some(layer) = self.layers[..active].last_mut()
            && let Some(cover) = layer.cover.as_ref().filter(|cover| cover.ts > 0)
        {
            layer.source.skip_hidden(cover)?;
            self.extend_slab()?;
        }
        Ok(())
    }

    /// If nothing is visible in the slab: makes one with it of what lies under the tombstones that
    /// touch the one over it. The last active layer is under one.
    fn extend_slab(&mut self) -> Result<()> {
        if self.backward || self.active == 0 {
            return Ok(());
        }
        let MergeCursor { layers, plan, stats, active, .. } = self;
        let (above, rest) = layers.split_at_mut(*active - 1);
        let (layer, _) = rest.split_first_mut().expect("a layer is active");
        let Some(cover) = &mut layer.cover else { return Ok(()) };
        let Some(until) = &cover.until else { return Ok(()) };
        let is_over = |key: &[u8]| key >= until.as_ref();
        // Up to the first thing that the layers above have to say.
        let mut stop: &[u8] = &plan.span.end;
        for other in above.iter() {
            let ends = other.cover.as_ref().and_then(|cover| cover.until.as_deref());
            for bound in [other.source.key(), ends].into_iter().flatten() {
                stop = stop.min(bound);
            }
        }
        if stop <= until.as_ref() || !layer.source.key().is_none_or(is_over) {
            return Ok(());
        }
        let passed = layer.source.extend(cover, stop)?;
        if passed == 0 {
            return Ok(());
        }
        stats.tombstones_passed += passed;
        // They differ in their timestamps, but have in common that nothing of the layer in here is
        // visible: a later seek into the slab must not find it so.
        (cover.ts, cover.clean) = (u64::MAX, true);
        self.slab_end = None;
        for i in 0..self.active {
            let until = self.layers[i].cover.as_ref().and_then(|cover| cover.until.as_ref());
            if until.is_some_and(|until| self.slab_end().is_none_or(|end| until < end)) {
                self.slab_end = Some(i);
            }
        }
        Ok(())
    }

    /// Where the current slab ends.
    #[inline]
    fn slab_end(&self) -> Option<&Bytes> {
        self.layers[self.slab_end?].cover.as_ref()?.until.as_ref()
    }

    fn cover_is_over(&self, layer: usize, at: &[u8]) -> bool {
        match &self.layers[layer].cover {
            None => true,
            Some(Cover { until: None, .. }) => false,
            Some(Cover { until: Some(until), .. }) => {
                if self.backward {
                    at <= until.as_ref()
                } else {
                    at >= until.as_ref()
                }
            }
        }
    }

    /// The first half of a layer's way to `at`, if it does not stand there or behind already.
    fn aim(&mut self, layer: usize, at: &[u8]) -> Result<()> {
        let (layer, backward) = (&mut self.layers[layer], self.backward);
        if std::mem::replace(&mut layer.in_place, true) {
            return Ok(());
        }
        // Backward, `at` itself is excluded: the keys of the slab are below it.
        let behind = |key: &[u8]| if backward { key < at } else { key >= at };
        if !layer.source.key().is_some_and(behind) {
            layer.source.aim(at)?;
            layer.aimed = true;
            self.stats.seeks += 1;
        }
        Ok(())
    }

    /// A seek: as `enter_slab`; one in many is measured.
    fn enter_by_seek(&mut self, at: &[u8]) -> Result<()> {
        if self.plan.view.store().read_meter.is_due() {
            self.metered_seek(at)
        } else {
            self.enter_slab(at, None)
        }
    }

    /// Sees what positioning each run takes, and charges it to the ssts that did not have to be
    /// there; see [`ReadMeter`](crate::compaction::ReadMeter).
    #[cold]
    fn metered_seek(&mut self, at: &[u8]) -> Result<()> {
        let plan = self.plan.clone();
        let store = plan.view.store();
        let clock = &*store.options.clock;
        let mut stopwatch = Stopwatch { clock, last: clock.monotonic_nanos(), laps: Vec::new() };
        self.enter_slab(at, Some(&mut stopwatch))?;
        let now = clock.monotonic_nanos();
        let laps = self.layers[..self.active].iter().zip(stopwatch.laps);
        let over: Vec<(&SstMeta, u64)> =
            laps.filter_map(|(layer, nanos)| Some((layer.source.sst_at(at)?, nanos))).collect();
        store.read_meter.charge_seek(&over, now);
        store.after_sample(now);
        Ok(())
    }

    /// As `fill`, measured: what going back and forth between runs takes is charged to the upper
    /// ones of them.
    #[cold]
    fn metered_fill(
        &mut self,
        batch: &mut RowBatch,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<()> {
        let plan = self.plan.clone();
        let store = plan.view.store();
        let start = store.options.clock.monotonic_nanos();
        let (stretches, rows) = (self.stretches, self.stats.rows_visited);
        self.unmetered_fill(batch, max_rows, max_bytes)?;
        let now = store.options.clock.monotonic_nanos();
        let stretches = (self.stretches - stretches) as f64;
        let rows = (self.stats.rows_visited - rows) as f64;
        if stretches > 1.0 && !self.done {
            let active = self.layers[..self.active].iter();
            let over: Vec<&SstMeta> =
                active.filter_map(|layer| layer.source.sst_at(layer.source.key()?)).collect();
            store.read_meter.charge_scan(&over, now - start, stretches / (stretches + rows), now);
            store.after_sample(now);
        }
        Ok(())
    }

    /// Moves off the row that was handed out last, or to the start.
    fn leave_current(&mut self) -> Result<()> {
        if let Some(i) = self.current.take() {
            self.layers[i].source.advance()?;
        } else if !self.started {
            self.started = true;
            let plan = self.plan.clone();
            self.enter_by_seek(if self.backward { &plan.span.end } else { &plan.span.start })?;
        }
        Ok(())
    }

    /// Moves to the next row; false at the end.
    pub(crate) fn next(&mut self) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        self.leave_current()?;
        self.settle()
    }

    /// Puts the next rows into `batch`, until it has `max_rows` or `max_bytes`, or the end.
    pub(crate) fn fill(
        &mut self,
        batch: &mut RowBatch,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<()> {
        if self.done || max_rows == 0 {
            return Ok(());
        }
        // A scan of a few rows is all seek.
        let long = max_rows >= LONG_FILL && self.started;
        if long && self.plan.view.store().read_meter.is_due() {
            return self.metered_fill(batch, max_rows, max_bytes);
        }
        self.unmetered_fill(batch, max_rows, max_bytes)
    }

    fn unmetered_fill(
        &mut self,
        batch: &mut RowBatch,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<()> {
        self.leave_current()?;
        while batch.len() < max_rows && (batch.is_empty() || batch.byte_len() < max_bytes) {
            let Some(winner) = self.winner() else {
                if !self.next_slab()? {
                    self.done = true;
                    return Ok(());
                }
                continue;
            };
            self.pass_older_versions(winner)?;
            self.stretches += 1;
            self.fill_stretch(winner, Stretch::new(batch, max_rows, max_bytes))?;
        }
        Ok(())
    }

    /// Lets the winner hand out rows up to where another layer or the next slab has its turn.
    fn fill_stretch(&mut self, winner: usize, stretch: Stretch<'_>) -> Result<()> {
        let runner_up = self.runner_up(winner);
        let hidden_below = self.layers[winner].cover.as_ref().map_or(0, |cover| cover.ts);
        // Taken out meanwhile: the winner's cover may be the one that ends the slab.
        let ending = self.slab_end.and_then(|layer| self.layers[layer].cover.take());
        // The boundary of the slab lies within the span, if there is one.
        let boundary = match ending.as_ref().and_then(|cover| cover.until.as_ref()) {
            Some(end) if !self.beyond(end, self.limit()) => end,
            _ if self.backward => &self.plan.span.start,
            _ => &self.plan.span.end,
        };
        let (before, rest) = self.layers.split_at_mut(winner);
        let (layer, behind) = rest.split_first_mut().expect("the winner is a layer");
        let other = runner_up.and_then(|i| {
            let other = if i < winner { &before[i] } else { &behind[i - winner - 1] };
            other.source.key()
        });
        let stretch = match other {
            Some(key) if self.backward && key >= boundary.as_ref() => stretch.backward(key, false),
            _ if self.backward => stretch.backward(boundary, true),
            Some(key) if key < boundary.as_ref() => stretch.forward(key),
            _ => stretch.forward(boundary),
        };
        let mut stretch = stretch.hiding_below(hidden_below);
        let filled = layer.source.fill(&mut stretch);
        self.stats.rows_visited += stretch.visited();
        if let Some(layer) = self.slab_end {
            self.layers[layer].cover = ending;
        }
        filled
    }

    /// The active layer with the next key apart from the winner.
    fn runner_up(&self, winner: usize) -> Option<usize> {
        let mut best: Option<(usize, &[u8])> = None;
        for (i, layer) in self.layers[..self.active].iter().enumerate() {
            if i != winner
                && let Some(key) = layer.source.key()
                && best.is_none_or(|(_, least)| self.ahead(key, least))
            {
                best = Some((i, key));
            }
        }
        best.map(|(i, _)| i)
    }

    /// From where the layers stand, finds the next visible row.
    fn settle(&mut self) -> Result<bool> {
        loop {
            let Some(winner) = self.winner() else {
                if !self.next_slab()? {
                    self.done = true;
                    return Ok(false);
                }
                continue;
            };
            self.stats.rows_visited += 1;
            self.pass_older_versions(winner)?;
            let layer = &self.layers[winner];
            let hidden = layer.cover.as_ref().is_some_and(|cover| layer.source.ts() < cover.ts);
            if layer.source.kind() == Kind::Put && !hidden {
                self.current = Some(winner);
                return Ok(true);
            }
            self.layers[winner].source.advance()?;
        }
    }

    /// The active layer with the next key of this slab; the newest one if several have it.
    fn winner(&self) -> Option<usize> {
        let mut best: Option<(usize, &[u8])> = None;
        for (i, layer) in self.layers[..self.active].iter().enumerate() {
            if let Some(key) = layer.source.key()
                && best.is_none_or(|(_, least)| self.ahead(key, least))
            {
                best = Some((i, key));
            }
        }
        let (i, key) = best?;
        let beyond_slab = self.slab_end().is_some_and(|end| self.beyond(key, end));
        if beyond_slab || self.beyond(key, self.limit()) { None } else { Some(i) }
    }

    /// Moves layers below the winner off the winner's key.
    fn pass_older_versions(&mut self, winner: usize) -> Result<()> {
        if winner + 1 >= self.active {
            return Ok(());
        }
        let (upper, lower) = self.layers.split_at_mut(winner + 1);
        let key = upper[winner].source.key();
        for layer in &mut lower[..self.active - winner - 1] {
            if layer.source.key() == key {
                layer.source.advance()?;
                self.stats.rows_visited += 1;
            }
        }
        Ok(())
    }

    fn next_slab(&mut self) -> Result<bool> {
        let Some(at) = self.slab_end().cloned() else {
            return Ok(false);
        };
        let over = if self.backward {
            at.as_ref() <= self.limit()
        } else {
            self.beyond(&at, self.limit())
        };
        if over {
            return Ok(false);
        }
        self.enter_slab(&at, None)?;
        Ok(true)
    }

    /// Jumps ahead: forward to the first row at or after `to`, backward to the last row below it.
    /// A position that was passed already is ignored.
    pub(crate) fn seek(&mut self, to: &[u8]) -> Result<()> {
        if self.done {
            return Ok(());
        }
        // Never outside of the span, on either side.
        let bound = to.clamp(&self.plan.span.start, &self.plan.span.end).to_vec();
        if let Some(i) = self.current.take() {
            let key = self.layers[i].source.key().expect("the current row has a key");
            // Going backward, `to` at or above the current key means "from here on".
            let passed =
                if self.backward { key < bound.as_slice() } else { key >= bound.as_slice() };
            if passed {
                return self.layers[i].source.advance();
            }
            // Otherwise the seek moves it: advancing first could walk over what is jumped over.
        }
        if self.started && self.ahead(&bound, &self.slab_start) {
            return Ok(());
        }
        self.started = true;
        for layer in &mut self.layers {
            layer.in_place = false;
        }
        self.enter_by_seek(&bound)
    }

    /// Key of the current row.
    pub(crate) fn key(&self) -> &[u8] {
        let i = self.current.expect("called after next() returned true");
        self.layers[i].source.key().expect("the current row has a key")
    }

    /// Value of the current row.
    pub(crate) fn value(&self) -> &[u8] {
        let i = self.current.expect("called after next() returned true");
        self.layers[i].source.value()
    }

    /// Timestamp of the current row.
    pub(crate) fn ts(&self) -> u64 {
        let i = self.current.expect("called after next() returned true");
        self.layers[i].source.ts()
    }

    /// What the layers did so far.
    pub(crate) fn work(&self) -> ReadWork {
        let mut work = ReadWork::default();
        self.layers.iter().for_each(|layer| work.add(layer.source.work()));
        work
    }
}
