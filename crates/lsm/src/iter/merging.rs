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
//! next slab begins where no tombstone touches the last any more, or a layer above it has a row
//! (`pass_touching`): that is one step along a list for each, with nothing else to be asked.

use std::sync::Arc;

use braid_env::clock::Clock;
use bytes::Bytes;

use super::dead_run::DeadRun;
use super::layer::LayerCursor;
use super::row_batch::RowBatch;
use super::scan::{ScanPlan, ScanStats};
use super::source::{ReadWork, Source};
use super::stretch::{STEP, Stretch};
use crate::error::Result;
use crate::key::{KeySpan, Kind, compare};
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
    /// Was sought once: it has nothing between there and its key.
    is_known: bool,
}

impl From<LayerCursor> for Layer {
    fn from(source: LayerCursor) -> Layer {
        Layer { source, cover: None, in_place: false, aimed: false, is_known: false }
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

/// For each layer, which of those above it has the first row in front of `end`. Passing tombstones
/// moves no layer to another row.
fn rows_above(layers: &[Layer], end: &[u8]) -> Vec<Option<usize>> {
    let mut first: Option<(usize, &[u8])> = None;
    let mut rows = Vec::with_capacity(layers.len());
    for (i, layer) in layers.iter().enumerate() {
        rows.push(first.map(|(row, _)| row));
        if let Some(key) = layer.source.key()
            && key < first.map_or(end, |(_, key)| key)
        {
            first = Some((i, key));
        }
    }
    rows
}

/// Moves `at` over tombstones of the first layer that has one there, up to the next row of a layer
/// above it. Returns how many there were. `last` is the layer whose tombstones were passed last: it
/// has none where they ended. `rows`: for each layer, which of those above it has the next row in
/// the span.
fn pass_one_run(
    layers: &mut [Layer],
    rows: &[Option<usize>],
    at: &mut Vec<u8>,
    end: &[u8],
    last: &mut Option<usize>,
) -> Result<u64> {
    for (i, row) in rows.iter().enumerate().take(layers.len()) {
        if *last == Some(i) {
            continue;
        }
        let (above, rest) = layers.split_at_mut(i);
        let layer = &mut rest[0];
        if !layer.is_known {
            return Ok(0);
        }
        let stop = row.and_then(|row| above[row].source.key()).unwrap_or(end);
        if compare(stop, at).is_le() {
            // A row is here, or a layer has to be sought to here.
            return Ok(0);
        }
        let passed = layer.source.pass(at, stop)?;
        if passed > 0 {
            *last = Some(i);
            return Ok(passed);
        }
    }
    Ok(0)
}

/// The merged rows of a span, as one read sees them.
pub(crate) struct MergeCursor {
    layers: Vec<Layer>,
    plan: Arc<ScanPlan>,
    /// What of the plan's span is read now.
    span: KeySpan,
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
    /// Nothing is visible from the slab's start to the end of the span.
    is_passed: bool,
    /// Stretches handed out.
    stretches: u64,
    /// What was passed since the last row.
    dead: DeadRun,
    pub(crate) stats: ScanStats,
}

impl MergeCursor {
    /// A cursor over the layers of a scan, newest first.
    pub(crate) fn new(layers: Vec<Layer>, plan: Arc<ScanPlan>) -> MergeCursor {
        let (done, backward) = (plan.span.is_empty(), plan.options.reverse);
        let dead = DeadRun::new(plan.view.store().options.dead_run);
        MergeCursor {
            layers,
            span: plan.span.clone(),
            plan,
            backward,
            active: 0,
            slab_start: Vec::new(),
            slab_end: None,
            current: None,
            started: false,
            done,
            is_passed: false,
            stretches: 0,
            dead,
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
        if self.backward { &self.span.start } else { &self.span.end }
    }

    /// Begins the slab at `at`, or behind it the first one that may not be empty.
    fn enter_slab(&mut self, at: &[u8], stopwatch: Option<&mut Stopwatch<'_>>) -> Result<()> {
        self.is_passed = false;
        self.enter_one_slab(at, stopwatch)?;
        while self.is_under_tombstone()
            && let Some(at) = self.pass_touching()?
        {
            if at.as_slice() >= self.limit() {
                // Nothing up to the end: what is there need not be looked for.
                self.is_passed = true;
                return Ok(());
            }
            for layer in &mut self.layers {
                layer.in_place = false;
            }
            self.enter_one_slab(&at, None)?;
        }
        Ok(())
    }

    /// Whether the last active layer is under a tombstone.
    fn is_under_tombstone(&self) -> bool {
        let last = self.layers[..self.active].last();
        last.and_then(|layer| layer.cover.as_ref()).is_some_and(|cover| cover.ts > 0)
    }

    /// Begins the slab at `at`: decides which layers are parked and brings the others there. With
    /// a stopwatch, one after the other, and their times are taken.
    fn enter_one_slab(
        &mut self,
        at: &[u8],
        mut stopwatch: Option<&mut Stopwatch<'_>>,
    ) -> Result<()> {
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
        }
        Ok(())
    }

    /// If nothing is visible in the slab under the last active layer's tombstone: goes on over the
    /// tombstones that touch it, of whichever layer, as long as nothing is visible in there either.
    /// Returns where that ends, if it is further on.
    ///
    /// A tombstone of a layer hides what lies below; rows of the layers above it are where the way
    /// ends. Those have to be known: a layer that was never looked into ends it, too.
    fn pass_touching(&mut self) -> Result<Option<Vec<u8>>> {
        if self.backward {
            return Ok(None);
        }
        let MergeCursor { layers, span, stats, active, .. } = self;
        let Some(cover) = layers[..*active].last().and_then(|layer| layer.cover.as_ref()) else {
            return Ok(None);
        };
        let Some(until) = cover.until.as_ref().filter(|until| **until < span.end) else {
            return Ok(None);
        };
        let in_slab = |layer: &Layer| layer.source.key().is_some_and(|key| key < until.as_ref());
        let is_cut = |layer: &Layer| {
            let other = layer.cover.as_ref().and_then(|cover| cover.until.as_ref());
            other.is_some_and(|other| other < until)
        };
        if layers[..*active].iter().any(|layer| in_slab(layer) || is_cut(layer)) {
            return Ok(None);
        }
        let mut at = until.to_vec();
        let before = stats.tombstones_passed;
        let mut last = None;
        let rows = rows_above(layers, &span.end);
        loop {
            let passed = pass_one_run(layers, &rows, &mut at, &span.end, &mut last)?;
            stats.tombstones_passed += passed;
            if passed == 0 {
                break;
            }
        }
        Ok((stats.tombstones_passed > before).then_some(at))
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
            (layer.aimed, layer.is_known) = (true, true);
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
            let from = if self.backward { &self.span.end } else { &self.span.start };
            self.enter_by_seek(&from.clone())?;
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
                    self.end();
                    return Ok(());
                }
                continue;
            };
            if self.dead.is_long() && self.pass_dead(winner)? {
                continue;
            }
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
            _ if self.backward => &self.span.start,
            _ => &self.span.end,
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
        let stretch = stretch.hiding_below(hidden_below);
        let mut stretch = stretch.with_patience(self.dead.passed(), self.dead.patience());
        let filled = layer.source.fill(&mut stretch);
        self.stats.rows_visited += stretch.visited();
        match stretch.dead() {
            (passed, true) => self.dead.end_run(&self.plan, passed),
            (passed, false) => self.dead.pass(passed),
        }
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
                    self.end();
                    return Ok(false);
                }
                continue;
            };
            if self.dead.is_long() && self.pass_dead(winner)? {
                continue;
            }
            self.stats.rows_visited += 1;
            self.pass_older_versions(winner)?;
            let layer = &self.layers[winner];
            let hidden = layer.cover.as_ref().is_some_and(|cover| layer.source.ts() < cover.ts);
            if layer.source.kind() == Kind::Put && !hidden {
                self.current = Some(winner);
                self.dead.end_run(&self.plan, 0);
                return Ok(true);
            }
            self.dead.pass(self.dead.passed() + STEP);
            self.layers[winner].source.advance()?;
        }
    }

    /// There is nothing more.
    fn end(&mut self) {
        self.done = true;
        self.dead.end_with_span(&self.plan, &self.span);
    }

    /// Many entries were passed without a row, and the winner stands on the next one. If it is
    /// known where they end, jumps there.
    #[cold]
    fn pass_dead(&mut self, winner: usize) -> Result<bool> {
        let at = self.layers[winner].source.key().expect("the winner has a key");
        let Some(to) = self.dead.look(&self.plan, &self.span, at) else { return Ok(false) };
        for layer in &mut self.layers {
            layer.in_place = false;
        }
        let to = (&to).clamp(&self.span.start, &self.span.end).clone();
        self.enter_slab(&to, None)?;
        Ok(true)
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
        let Some(at) = self.slab_end().cloned().filter(|_| !self.is_passed) else {
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
        let bound = to.clamp(&self.span.start, &self.span.end).to_vec();
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
        self.dead.end_run(&self.plan, 0);
        for layer in &mut self.layers {
            layer.in_place = false;
        }
        self.enter_by_seek(&bound)
    }

    /// Goes on with a part of the plan's span that lies ahead, forward. Layers that stand in or
    /// behind it stay where they are.
    pub(crate) fn go_on_with(&mut self, span: KeySpan) {
        debug_assert!(!self.backward && self.plan.span.start <= span.start);
        debug_assert!(span.end <= self.plan.span.end);
        (self.current, self.started, self.done) = (None, false, span.is_empty());
        self.dead.end_run(&self.plan, 0);
        self.span = span;
        for layer in &mut self.layers {
            layer.in_place = false;
        }
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

impl Drop for MergeCursor {
    fn drop(&mut self) {
        self.dead.end(&self.plan);
    }
}
