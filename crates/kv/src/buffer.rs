//! A transaction's own writes before commit: points, and spans that it deletes.
//!
//! ```text
//!   put b=1, put d=2, delete_span [c, f), put e=3
//!
//!   points   b=1                e=3        (d=2 was removed by the span)
//!   spans              [c ────────── f)
//!   reads    b → 1    c, d → absent    e → 3    g → ask the engine
//! ```
//!
//! Invariant: a point inside a deleted span was written after the span was deleted. So at commit
//! spans and points can share one timestamp: at equal timestamps points win.
//!
//! Every change is logged with what it replaced, so that a savepoint is a position in that log.
//! `testscripts/buffer` shows it all.

use std::collections::BTreeMap;
use std::ops::Bound;

use braid_lsm::{Batch, CommitTs, KeySpan};
use bytes::Bytes;

use crate::span_map::SpanMap;

/// A buffered point: `Some` = put, `None` = delete.
pub(crate) type Slot = Option<Bytes>;

/// Besides its key and value, what a buffered write takes: entries of the buffer, of the log of
/// changes and of the batch.
const WRITE_BYTES: usize = 200;

/// Bytes that a buffered write takes.
pub(crate) fn write_memory(key: &Bytes, slot: &Slot) -> usize {
    key.len() + slot.as_ref().map_or(0, Bytes::len) + WRITE_BYTES
}

#[derive(Default)]
pub(crate) struct Buffer {
    points: BTreeMap<Bytes, Slot>,
    /// What scans were opened over stays as it was then.
    spans: SpanMap,
    undo: Vec<Undo>,
}

/// The buffer as it was at an earlier position: what differs from now.
pub(crate) struct Past {
    /// What keys were that were written since; `None` is one of which the buffer said nothing.
    points: BTreeMap<Bytes, Option<Slot>>,
    pub(crate) spans: SpanMap,
}

#[derive(Clone)]
enum Undo {
    Point { key: Bytes, before: Option<Slot> },
    Span { span: KeySpan, grown: KeySpan, replaced: Vec<KeySpan>, removed: Vec<(Bytes, Slot)> },
}

/// The last changes of a buffer, cut off: what they made of each key, and the spans that were
/// deleted before those points were written.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) points: BTreeMap<Bytes, Slot>,
    pub(crate) spans: SpanMap,
    undo: Vec<Undo>,
}

/// What the buffer says about a key.
pub(crate) enum Lookup {
    Put(Bytes),
    Deleted,
    Unknown,
}

impl Buffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.points.is_empty() && self.spans.is_empty()
    }

    /// Writes and deleted spans.
    pub(crate) fn len(&self) -> usize {
        self.points.len() + self.spans.len()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Lookup {
        answer(self.points.get(key), &self.spans, key)
    }

    /// As [`Buffer::get`], of an earlier state.
    pub(crate) fn get_at(&self, past: &Past, key: &[u8]) -> Lookup {
        let point = match past.points.get(key) {
            Some(earlier) => earlier.as_ref(),
            None => self.points.get(key),
        };
        answer(point, &past.spans, key)
    }

    /// What there was at a position.
    pub(crate) fn past(&self, position: usize) -> Past {
        let mut past = Past { points: BTreeMap::new(), spans: self.spans.clone() };
        for undo in self.undo[position.min(self.undo.len())..].iter().rev() {
            match undo {
                Undo::Point { key, before } => {
                    past.points.insert(key.clone(), before.clone());
                }
                Undo::Span { grown, replaced, removed, .. } => {
                    past.spans.undo(grown, replaced);
                    let removed = removed.iter().map(|(k, slot)| (k.clone(), Some(slot.clone())));
                    past.points.extend(removed);
                }
            }
        }
        past
    }

    pub(crate) fn set(&mut self, key: Bytes, slot: Slot) {
        let before = self.points.insert(key.clone(), slot);
        self.undo.push(Undo::Point { key, before });
    }

    /// Deletes a span; returns the puts of this buffer that it removed.
    pub(crate) fn delete_span(&mut self, span: &KeySpan) -> Vec<(Bytes, Bytes)> {
        let removed: Vec<(Bytes, Slot)> =
            self.points_in(span).map(|(k, v)| (k.clone(), v.clone())).collect();
        for (key, _) in &removed {
            self.points.remove(key);
        }
        let (grown, replaced) = self.spans.insert(span);
        let puts =
            removed.iter().filter_map(|(k, v)| Some((k.clone(), v.clone()?))).collect::<Vec<_>>();
        self.undo.push(Undo::Span { span: span.clone(), grown, replaced, removed });
        puts
    }

    fn points_in(&self, span: &KeySpan) -> impl Iterator<Item = (&Bytes, &Slot)> {
        self.points.range::<[u8], _>((
            Bound::Included(span.start.as_ref()),
            Bound::Excluded(span.end.as_ref()),
        ))
    }

    /// The points in a span, copied.
    pub(crate) fn copy_of(&self, span: &KeySpan) -> Vec<(Bytes, Slot)> {
        self.points_in(span).map(|(k, v)| (k.clone(), v.clone())).collect()
    }

    /// As [`Buffer::copy_of`], of an earlier state.
    pub(crate) fn copy_at(&self, past: &Past, span: &KeySpan) -> Vec<(Bytes, Slot)> {
        let mut points: BTreeMap<Bytes, Slot> = self.copy_of(span).into_iter().collect();
        let within = (
            Bound::Included(span.start.as_ref() as &[u8]),
            Bound::Excluded(span.end.as_ref() as &[u8]),
        );
        for (key, earlier) in past.points.range::<[u8], _>(within) {
            match earlier {
                Some(slot) => points.insert(key.clone(), slot.clone()),
                None => points.remove(key),
            };
        }
        points.into_iter().collect()
    }

    /// The spans that are deleted in the store.
    pub(crate) fn spans(&self) -> &SpanMap {
        &self.spans
    }

    pub(crate) fn position(&self) -> usize {
        self.undo.len()
    }

    /// Takes back everything after `position`. Bytes that became free, as [`write_memory`] counts.
    pub(crate) fn rollback_to(&mut self, position: usize) -> usize {
        let mut freed = 0;
        while self.undo.len() > position {
            let last = self.undo.pop().expect("length was just checked");
            freed += self.take_back(last);
        }
        freed
    }

    /// Takes back one change, the last one. Bytes that became free.
    fn take_back(&mut self, change: Undo) -> usize {
        match change {
            Undo::Point { key, before } => {
                let length = key.len();
                let gone = match before {
                    Some(slot) => self.points.insert(key, slot),
                    None => self.points.remove(&key),
                };
                let value = gone.flatten().map_or(0, |v| v.len());
                length + value + WRITE_BYTES
            }
            Undo::Span { grown, replaced, removed, .. } => {
                self.spans.undo(&grown, &replaced);
                self.points.extend(removed);
                0
            }
        }
    }

    /// Cuts off everything after `position`.
    pub(crate) fn split_off(&mut self, position: usize) -> Part {
        let mut part = Part::default();
        for change in &self.undo[position..] {
            match change {
                // If it is not there, a span removed it that is in this part, too.
                Undo::Point { key, .. } => {
                    if let Some(slot) = self.points.get(key) {
                        part.points.insert(key.clone(), slot.clone());
                    }
                }
                Undo::Span { span, .. } => {
                    part.spans.insert(span);
                }
            }
        }
        part.undo = self.undo.split_off(position);
        for change in part.undo.iter().rev() {
            self.take_back(change.clone());
        }
        part
    }

    /// Takes in again what was cut off last.
    pub(crate) fn rejoin(&mut self, part: Part) {
        for change in &part.undo {
            if let Undo::Span { span, removed, .. } = change {
                removed.iter().for_each(|(key, _)| {
                    self.points.remove(key);
                });
                self.spans.insert(span);
            }
        }
        self.points.extend(part.points);
        self.undo.extend(part.undo);
    }

    /// The one batch that makes this transaction happen, once it has its timestamp.
    pub(crate) fn to_batch(&self) -> Batch {
        let mut batch = Batch::at(CommitTs::ZERO);
        for span in self.spans.iter() {
            batch.delete_span(&span.start, &span.end);
        }
        for (key, slot) in &self.points {
            match slot {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        batch
    }
}

fn answer(point: Option<&Slot>, spans: &SpanMap, key: &[u8]) -> Lookup {
    match point {
        Some(Some(value)) => Lookup::Put(value.clone()),
        Some(None) => Lookup::Deleted,
        None if spans.covering(key).is_some() => Lookup::Deleted,
        None => Lookup::Unknown,
    }
}

#[cfg(test)]
impl Buffer {
    /// The buffer as text: spans, points, and the log that savepoints are positions in.
    pub(crate) fn describe(&self) -> String {
        let text = |b: &Bytes| b.escape_ascii().to_string();
        let span = |s: &KeySpan| format!("[{}, {})", text(&s.start), text(&s.end));
        let point = |(key, slot): (&Bytes, &Slot)| match slot {
            Some(value) => format!("{}={}", text(key), text(value)),
            None => format!("{} deleted", text(key)),
        };
        let spans: Vec<String> = self.spans.iter().map(span).collect();
        let points: Vec<String> = self.points.iter().map(point).collect();
        let log = self.undo.iter().map(|undo| match undo {
            Undo::Point { key, before: None } => format!("{} was not there", text(key)),
            Undo::Point { key, before: Some(slot) } => format!("was {}", point((key, slot))),
            Undo::Span { grown, replaced, removed, .. } => {
                let replaced = replaced.iter().map(span);
                let removed = removed.iter().map(|(key, slot)| point((key, slot)));
                let was: Vec<String> = replaced.chain(removed).collect();
                format!("{} was ({})", span(grown), was.join(" "))
            }
        });
        let log: Vec<String> = log.collect();
        let lists =
            [("spans", spans.join(" ")), ("points", points.join(" ")), ("log", log.join("; "))];
        let lines = lists.iter().map(|(name, list)| format!("  {name:<8}{list}"));
        lines.map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// How many spans lie in each chunk of the map.
    pub(crate) fn chunks(&self) -> Vec<usize> {
        self.spans.chunk_lengths()
    }
}
