//! All that a transaction has written: the buffer in memory, and layers below it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use braid_lsm::{Batch, KeySpan, RowClassFn};
use bytes::Bytes;

use super::directory::Directories;
use super::files;
use super::filter;
use super::layer::{Layer, LayerWriter};
use super::rows::{OwnRows, layers_over};
use crate::buffer::{Buffer, Lookup, Past, Slot};
use crate::bulk::{BulkFiles, BulkFolder};
use crate::error::{KvError, KvResult};
use crate::span_map::SpanMap;

/// With more places than this to go back to, what is in memory stays there.
const MARKS_MAX: usize = 64;
/// More layers than this between two places to go back to are merged.
const LAYERS_MANY: usize = 12;
const EVERY_CLASS: (u32, RowClassFn) = (u32::MAX, |_| 0);

/// See the [module](super).
#[derive(Default)]
pub(crate) struct OwnWrites {
    buffer: Buffer,
    /// From the oldest.
    layers: Vec<Arc<Layer>>,
    /// Made with the first layer.
    directories: Option<Arc<Directories>>,
    /// Positions of savepoints that may be gone back to, ascending.
    savepoints: Vec<usize>,
    /// Where the statement began that may have to run again.
    statement: usize,
    /// What reads see instead, while they look back.
    past: Option<Arc<Earlier>>,
}

/// What there was at an earlier position.
pub(crate) struct Earlier {
    /// Layers that were there.
    layers: usize,
    /// Of what is in memory now; `None`: nothing of that was there.
    buffer: Option<Past>,
}

/// A frozen copy of what was written in one span.
pub(crate) struct Overlay {
    /// In memory.
    pub(crate) points: Vec<(Bytes, Slot)>,
    /// On disk, from the newest, each with the spans that were deleted after it.
    pub(super) layers: Vec<(Arc<Layer>, SpanMap)>,
    /// Deleted in the store.
    pub(crate) spans: SpanMap,
}

impl Overlay {
    /// Whether nothing lies over what is stored.
    pub(crate) fn is_empty(&self) -> bool {
        self.points.is_empty() && self.layers.is_empty() && self.spans.is_empty()
    }
}

impl OwnWrites {
    pub(crate) fn is_empty(&self) -> bool {
        self.layers.is_empty() && self.buffer.is_empty()
    }

    /// How many writes are in memory.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether something lies on disk.
    pub(crate) fn has_layers(&self) -> bool {
        !self.layers.is_empty()
    }

    /// Whether all of it is in memory, and reads see all of it.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.layers.is_empty() && !self.looks_back()
    }

    /// What is in memory: spans that are deleted, and written keys.
    pub(crate) fn in_memory(&self) -> (Vec<KeySpan>, Vec<(Bytes, Slot)>) {
        let spans = self.buffer.spans().iter().cloned().collect();
        (spans, self.buffer.copy_of(&KeySpan::all()))
    }

    /// How many layers lie on disk.
    pub(crate) fn layers(&self) -> usize {
        self.layers.len()
    }

    /// The position in front of what is in memory.
    fn base(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.end)
    }

    fn position(&self) -> usize {
        self.base() + self.buffer.position()
    }

    /// A position to go back to, until it is said that it is not needed any more.
    pub(crate) fn savepoint(&mut self) -> usize {
        let here = self.position();
        if self.savepoints.last() != Some(&here) {
            self.savepoints.push(here);
        }
        here
    }

    /// Of all savepoints so far, these may be gone back to; in the order in which they were made.
    pub(crate) fn keep_savepoints(&mut self, positions: &[usize]) {
        self.savepoints.retain(|position| positions.binary_search(position).is_ok());
    }

    /// A position to go back to until the next one of these.
    pub(crate) fn begin_statement(&mut self) -> usize {
        self.statement = self.position();
        self.statement
    }

    /// Lets reads see what was there at `position`, a savepoint. Returns what they saw until now,
    /// for [`OwnWrites::look_at`].
    pub(crate) fn look_back(&mut self, position: usize) -> Option<Arc<Earlier>> {
        let buffer = position.checked_sub(self.base()).map(|inside| self.buffer.past(inside));
        let layers = self.layers.partition_point(|layer| layer.end <= position);
        self.look_at(Some(Arc::new(Earlier { layers, buffer })))
    }

    /// Sets what reads see: an earlier state, or all there is.
    pub(crate) fn look_at(&mut self, past: Option<Arc<Earlier>>) -> Option<Arc<Earlier>> {
        std::mem::replace(&mut self.past, past)
    }

    /// Whether reads see an earlier state.
    pub(crate) fn looks_back(&self) -> bool {
        self.past.is_some()
    }

    /// The layers that reads see.
    fn seen_layers(&self) -> &[Arc<Layer>] {
        self.past.as_ref().map_or(&self.layers, |past| &self.layers[..past.layers])
    }

    pub(crate) fn get(&self, key: &[u8]) -> KvResult<Lookup> {
        let found = match self.past.as_ref().map(|past| &past.buffer) {
            None => self.buffer.get(key),
            Some(Some(past)) => self.buffer.get_at(past, key),
            Some(None) => Lookup::Unknown,
        };
        let layers = self.seen_layers();
        if layers.is_empty() || !matches!(found, Lookup::Unknown) {
            return Ok(found);
        }
        let hash = filter::hash(key);
        for layer in layers.iter().rev() {
            match layer.get(key, hash)? {
                Some(Some(value)) => return Ok(Lookup::Put(value)),
                Some(None) => return Ok(Lookup::Deleted),
                None if layer.spans.covering(key).is_some() => return Ok(Lookup::Deleted),
                None => {}
            }
        }
        Ok(Lookup::Unknown)
    }

    pub(crate) fn set(&mut self, key: Bytes, slot: Slot) {
        self.buffer.set(key, slot);
    }

    /// Deletes a span; returns the puts that it removed.
    pub(crate) fn delete_span(&mut self, span: &KeySpan) -> KvResult<Vec<(Bytes, Bytes)>> {
        let below = match self.layers.iter().any(|layer| layer.may_meet(span)) {
            true => {
                let mut rows = OwnRows::open(self.overlay(span), span, EVERY_CLASS, false)?;
                let mut puts = Vec::new();
                while let Some((key, slot)) = rows.next()? {
                    puts.extend(slot.map(|value| (key, value)));
                }
                Some(puts)
            }
            false => None,
        };
        let puts = self.buffer.delete_span(span);
        Ok(below.unwrap_or(puts))
    }

    /// Copies what a scan over `span` must lay over the engine's rows.
    pub(crate) fn overlay(&self, span: &KeySpan) -> Overlay {
        let nothing = SpanMap::default();
        let (points, deleted) = match self.past.as_ref().map(|past| &past.buffer) {
            None => (self.buffer.copy_of(span), self.buffer.spans()),
            Some(Some(past)) => (self.buffer.copy_at(past, span), &past.spans),
            Some(None) => (Vec::new(), &nothing),
        };
        let (layers, spans) = layers_over(self.seen_layers(), deleted, span);
        Overlay { points, layers, spans }
    }

    /// Takes back everything after `position`. Bytes of memory that became free, as
    /// [`write_memory`](crate::buffer::write_memory) counts; `None`: all that was in memory.
    pub(crate) fn rollback_to(&mut self, position: usize) -> Option<usize> {
        self.savepoints.retain(|savepoint| *savepoint <= position);
        if position >= self.base() {
            return Some(self.buffer.rollback_to(position - self.base()));
        }
        self.buffer = Buffer::default();
        while self.base() > position {
            self.layers.pop();
        }
        debug_assert_eq!(self.base(), position, "layers end where somebody may go back to");
        None
    }

    /// Positions between these two that may be gone back to, ascending.
    fn marks_between(&self, base: usize, end: usize) -> Vec<usize> {
        let all = self.savepoints.iter().copied().chain([self.statement]);
        let mut marks: Vec<usize> = all.filter(|mark| *mark > base && *mark < end).collect();
        marks.sort_unstable();
        marks.dedup();
        marks
    }

    /// Moves what is in memory to disk. `false` if it has to stay. Of what there is about it, what
    /// may be read again takes `room` bytes of memory at most. `stop` cancels it; then it has
    /// stayed.
    pub(crate) fn spill(
        &mut self,
        folder: &BulkFolder,
        room: usize,
        stop: &AtomicBool,
    ) -> KvResult<bool> {
        let (base, end) = (self.base(), self.position());
        let cuts = self.marks_between(base, end);
        // An earlier state is one of the buffer as it is.
        if cuts.len() > MARKS_MAX || base == end || self.looks_back() {
            return Ok(false);
        }
        let mut parts = Vec::with_capacity(cuts.len() + 1);
        for cut in cuts.iter().rev().copied().chain([base]) {
            parts.push(self.buffer.split_off(cut - base));
        }
        let ends = cuts.into_iter().chain([end]);
        let written = parts.iter().rev().zip(ends);
        let directories =
            self.directories.get_or_insert_with(|| Arc::new(Directories::new(room))).clone();
        let place = (folder, &directories);
        let written: KvResult<Vec<Layer>> =
            written.map(|(part, end)| Layer::write(place, part, end, stop)).collect();
        match written {
            Ok(layers) => {
                self.layers.extend(layers.into_iter().map(Arc::new));
                Ok(true)
            }
            Err(error) => {
                parts.into_iter().rev().for_each(|part| self.buffer.rejoin(part));
                Err(error)
            }
        }
    }

    /// Makes one layer of many, so that reads look into few: as many of the newest ones as have
    /// more bytes behind them than they have themselves. Each byte is written again about as often
    /// as the whole has doubled. `stop` cancels it; then they stay as they are.
    pub(crate) fn merge_layers(&mut self, folder: &BulkFolder, stop: &AtomicBool) -> KvResult<()> {
        let mut to = self.layers.len();
        while to > LAYERS_MANY {
            // What lies between two marks.
            let end = self.layers[to - 1].end;
            let from = self
                .marks_between(0, end)
                .last()
                .map_or(0, |mark| self.layers.partition_point(|layer| layer.end <= *mark));
            if to - from > LAYERS_MANY {
                let mut behind = 0;
                let mut first = to;
                for at in (from..to).rev() {
                    if self.layers[at].bytes() <= behind {
                        first = at;
                    }
                    behind += self.layers[at].bytes();
                }
                // Of layers that grow smaller and smaller the last two.
                let first = first.min(to - 2);
                match self.merged(first..to, folder, stop) {
                    Ok(merged) => {
                        self.layers.splice(first..to, [Arc::new(merged)]);
                    }
                    // They are as good as one.
                    Err(KvError::Engine(braid_lsm::Error::DiskFull)) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
            to = from;
        }
        Ok(())
    }

    /// Some neighbouring layers as one.
    fn merged(
        &self,
        layers: Range<usize>,
        folder: &BulkFolder,
        stop: &AtomicBool,
    ) -> KvResult<Layer> {
        let (all, layers) = (KeySpan::all(), &self.layers[layers]);
        let directories = self.directories.as_ref().expect("there are layers");
        let (from_newest, spans) = layers_over(layers, &SpanMap::default(), &all);
        let overlay = Overlay { points: Vec::new(), layers: from_newest, spans: spans.clone() };
        let mut rows = OwnRows::open(overlay, &all, EVERY_CLASS, false)?;
        let mut writer = LayerWriter::create(folder, directories, stop)?;
        while let Some((key, slot)) = rows.next()? {
            writer.put(&key, slot.as_deref())?;
        }
        writer.finish(spans, layers.last().map_or(0, |layer| layer.end))
    }

    /// Bytes that layers keep in memory.
    pub(crate) fn layer_memory(&self) -> usize {
        let room = self.directories.as_ref().map_or(0, |directories| directories.room());
        let directories: usize = self.layers.iter().map(|layer| layer.directory_memory()).sum();
        let layers: usize = self.layers.iter().map(|layer| layer.memory()).sum();
        layers + directories.min(room)
    }

    /// The one batch that makes this transaction happen, once it has its timestamp: if nothing lies
    /// on disk.
    pub(crate) fn to_batch(&self) -> Batch {
        debug_assert!(self.layers.is_empty(), "a batch is all that was written");
        self.buffer.to_batch()
    }

    /// Ssts that make this transaction happen, once they have their timestamp.
    pub(crate) fn to_files(&self, folder: &Arc<BulkFolder>) -> KvResult<BulkFiles> {
        let all = KeySpan::all();
        let overlay = self.overlay(&all);
        let spans = overlay.spans.clone();
        files::write(folder, OwnRows::open(overlay, &all, EVERY_CLASS, false)?, &spans)
    }
}
