//! A transaction's own writes in a span as one stream in key order, or against it: of each key what
//! was written last, and nothing that a span deleted later hides.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use braid_lsm::{KeySpan, RowClassFn};
use bytes::Bytes;

use super::layer::{Cursor, Layer};
use super::writes::Overlay;
use crate::buffer::Slot;
use crate::error::KvResult;
use crate::span_map::SpanMap;

/// See the module.
pub(crate) struct OwnRows {
    /// What was in memory.
    memory: std::vec::IntoIter<(Bytes, Slot)>,
    /// What lies on disk, merged with that; nothing if there is none.
    merged: Option<Box<Merged>>,
}

impl OwnRows {
    /// The rows of an overlay over a span; of these classes only.
    pub(crate) fn open(
        overlay: Overlay,
        span: &KeySpan,
        (classes, class_of): (u32, RowClassFn),
        reverse: bool,
    ) -> KvResult<OwnRows> {
        let wanted = move |key: &Bytes| classes == u32::MAX || classes & (1 << class_of(key)) != 0;
        let Overlay { mut points, layers, .. } = overlay;
        points.retain(|(key, _)| wanted(key));
        if reverse {
            points.reverse();
        }
        let memory = points.into_iter();
        if layers.is_empty() {
            return Ok(OwnRows { memory, merged: None });
        }
        let mut merged = Merged {
            heads: BinaryHeap::new(),
            memory,
            cursors: Vec::with_capacity(layers.len()),
            wanted: Box::new(wanted),
            reverse,
            next: None,
        };
        for (layer, hidden) in layers {
            let cursor = Cursor::open(layer, span, reverse)?;
            merged.cursors.push((cursor, hidden));
        }
        for age in 0..=merged.cursors.len() {
            merged.advance(age)?;
        }
        merged.next = merged.find()?;
        Ok(OwnRows { memory: Vec::new().into_iter(), merged: Some(Box::new(merged)) })
    }

    /// The key of the next one.
    #[inline]
    pub(crate) fn head(&self) -> Option<&Bytes> {
        match &self.merged {
            None => self.memory.as_slice().first().map(|(key, _)| key),
            Some(merged) => merged.next.as_ref().map(|(key, _)| key),
        }
    }

    /// The next one.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn next(&mut self) -> KvResult<Option<(Bytes, Slot)>> {
        match &mut self.merged {
            None => Ok(self.memory.next()),
            Some(merged) => {
                let found = merged.find()?;
                Ok(std::mem::replace(&mut merged.next, found))
            }
        }
    }
}

/// The memory and the layers, each with what it gives next.
struct Merged {
    heads: BinaryHeap<Head>,
    memory: std::vec::IntoIter<(Bytes, Slot)>,
    /// From the newest; with the spans that were deleted after them.
    cursors: Vec<(Cursor, SpanMap)>,
    wanted: Box<dyn Fn(&Bytes) -> bool + Send + Sync>,
    reverse: bool,
    /// What is given next.
    next: Option<(Bytes, Slot)>,
}

/// What one source gives next; the greatest comes first.
struct Head {
    key: Bytes,
    slot: Slot,
    /// 0: memory, then the layers from the newest.
    age: usize,
    reverse: bool,
}

impl Merged {
    /// Takes the next point of a source among the heads.
    fn advance(&mut self, age: usize) -> KvResult<()> {
        let found = match age.checked_sub(1) {
            None => self.memory.next(),
            Some(n) => loop {
                let (cursor, hidden) = &mut self.cursors[n];
                match cursor.next()? {
                    Some((key, _)) if hidden.covering(&key).is_some() || !(self.wanted)(&key) => {}
                    other => break other,
                }
            },
        };
        if let Some((key, slot)) = found {
            self.heads.push(Head { key, slot, age, reverse: self.reverse });
        }
        Ok(())
    }

    /// The next key, as its newest source has it.
    fn find(&mut self) -> KvResult<Option<(Bytes, Slot)>> {
        let Some(Head { key, slot, age, .. }) = self.heads.pop() else { return Ok(None) };
        self.advance(age)?;
        while let Some(older) = self.heads.peek()
            && older.key == key
        {
            let age = older.age;
            self.heads.pop();
            self.advance(age)?;
        }
        Ok(Some((key, slot)))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        let by_key = match self.reverse {
            true => self.key.cmp(&other.key),
            false => other.key.cmp(&self.key),
        };
        by_key.then(other.age.cmp(&self.age))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

/// Layers that may have points in a span, from the newest, each with what hides its points.
pub(super) fn layers_over(
    layers: &[Arc<Layer>],
    memory: &SpanMap,
    span: &KeySpan,
) -> (Vec<(Arc<Layer>, SpanMap)>, SpanMap) {
    let mut deleted = memory.clone();
    let mut out = Vec::new();
    for layer in layers.iter().rev() {
        if layer.may_meet(span) {
            out.push((layer.clone(), deleted.clone()));
        }
        layer.spans.iter().for_each(|span| {
            deleted.insert(span);
        });
    }
    (out, deleted)
}
