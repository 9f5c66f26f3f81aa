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

use super::Source;
use super::scan::ScanStats;
use crate::error::Result;
use crate::key::{KeySpan, Kind};
use crate::range_tombstone::Cover;

struct Layer {
    source: Box<dyn Source>,
    cover: Option<Cover>,
    /// Positioned at or behind the current slab's start.
    in_place: bool,
}

/// The merged rows of a span, as one read sees them.
pub(crate) struct MergeCursor {
    layers: Vec<Layer>,
    span: KeySpan,
    backward: bool,
    /// Number of layers that are not parked.
    active: usize,
    /// Where the current slab starts; covers are valid from here on.
    slab_start: Vec<u8>,
    /// Where the current slab ends; `None`: at the end of the span.
    slab_end: Option<Vec<u8>>,
    /// Layer that holds the current row.
    current: Option<usize>,
    started: bool,
    done: bool,
    pub(crate) stats: ScanStats,
}

impl MergeCursor {
    /// A cursor over `sources`, newest first, all of the given direction.
    pub(crate) fn new(sources: Vec<Box<dyn Source>>, span: KeySpan, backward: bool) -> MergeCursor {
        let layers = sources
            .into_iter()
            .map(|source| Layer { source, cover: None, in_place: false })
            .collect();
        let done = span.is_empty();
        MergeCursor {
            layers,
            span,
            backward,
            active: 0,
            slab_start: Vec::new(),
            slab_end: None,
            current: None,
            started: false,
            done,
            stats: ScanStats::default(),
        }
    }

    /// Whether `a` comes strictly before `b` in the direction of the scan.
    fn ahead(&self, a: &[u8], b: &[u8]) -> bool {
        if self.backward { a > b } else { a < b }
    }

    /// Whether a key lies behind a boundary. Boundaries are exclusive ends going forward, and
    /// inclusive starts going backward.
    fn beyond(&self, key: &[u8], boundary: &[u8]) -> bool {
        if self.backward { key < boundary } else { key >= boundary }
    }

    fn limit(&self) -> &[u8] {
        if self.backward { &self.span.start } else { &self.span.end }
    }

    /// Begins the slab at `at`: decides which layers are parked and brings the others there.
    fn enter_slab(&mut self, at: &[u8]) -> Result<()> {
        let mut end: Option<Vec<u8>> = None;
        let mut active = 0;
        for i in 0..self.layers.len() {
            active += 1;
            if self.cover_is_over(i, at) {
                self.layers[i].cover = Some(self.layers[i].source.cover(at)?);
            }
            let cover = self.layers[i].cover.as_ref().expect("just made sure");
            if let Some(until) = &cover.until
                && end.as_ref().is_none_or(|end| self.ahead(until, end))
            {
                end = Some(until.to_vec());
            }
            if cover.ts > 0 {
                break;
            }
        }
        if active < self.layers.len() {
            self.stats.slabs_parked += 1;
        }
        for i in 0..active {
            self.bring(i, at)?;
        }
        for layer in &mut self.layers[active..] {
            layer.in_place = false;
        }
        self.active = active;
        self.slab_start = at.to_vec();
        self.slab_end = end;
        // Only the last active layer can be under a tombstone, and only its own rows can be
        // hidden row by row.
        if let Some(layer) = self.layers[..active].last_mut()
            && let Some(cover) = layer.cover.as_ref().filter(|cover| cover.ts > 0)
        {
            layer.source.skip_hidden(cover)?;
        }
        Ok(())
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

    /// Makes sure a layer stands at or behind `at`.
    fn bring(&mut self, i: usize, at: &[u8]) -> Result<()> {
        if self.layers[i].in_place {
            return Ok(());
        }
        // Backward, `at` itself is excluded: the keys of the slab are below it.
        let behind = self.layers[i]
            .source
            .key()
            .is_some_and(|key| if self.backward { key < at } else { key >= at });
        if !behind {
            self.layers[i].source.seek(at)?;
            self.stats.seeks += 1;
        }
        self.layers[i].in_place = true;
        Ok(())
    }

    /// Moves to the next row; false at the end.
    pub(crate) fn next(&mut self) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        if let Some(i) = self.current.take() {
            self.layers[i].source.advance()?;
        } else if !self.started {
            self.started = true;
            let at = if self.backward { self.span.end.clone() } else { self.span.start.clone() };
            self.enter_slab(&at)?;
        }
        self.settle()
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
        let beyond_slab = self.slab_end.as_ref().is_some_and(|end| self.beyond(key, end));
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
        let Some(at) = self.slab_end.take() else {
            return Ok(false);
        };
        let over = if self.backward {
            at.as_slice() <= self.limit()
        } else {
            self.beyond(&at, self.limit())
        };
        if over {
            return Ok(false);
        }
        self.enter_slab(&at)?;
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
        for layer in &mut self.layers {
            layer.in_place = false;
        }
        self.enter_slab(&bound)
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
}
