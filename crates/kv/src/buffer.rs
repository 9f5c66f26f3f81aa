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
use std::sync::Arc;

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
    /// What reads see instead, while they look back.
    past: Option<Arc<Past>>,
}

/// The buffer as it was at an earlier position: what differs from now.
pub(crate) struct Past {
    /// What keys were that were written since; `None` is one of which the buffer said nothing.
    points: BTreeMap<Bytes, Option<Slot>>,
    spans: SpanMap,
}

enum Undo {
    Point { key: Bytes, before: Option<Slot> },
    Span { grown: KeySpan, replaced: Vec<KeySpan>, removed: Vec<(Bytes, Slot)> },
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

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.points.len() + self.spans.len()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Lookup {
        let earlier = self.past.as_ref().and_then(|past| past.points.get(key));
        let point = match earlier {
            Some(earlier) => earlier.as_ref(),
            None => self.points.get(key),
        };
        match point {
            Some(Some(value)) => Lookup::Put(value.clone()),
            Some(None) => Lookup::Deleted,
            None if self.seen_spans().covering(key).is_some() => Lookup::Deleted,
            None => Lookup::Unknown,
        }
    }

    /// The deleted spans that reads see.
    fn seen_spans(&self) -> &SpanMap {
        self.past.as_ref().map_or(&self.spans, |past| &past.spans)
    }

    /// Lets reads see what was there at `position`, or again all there is. Returns what they saw
    /// until now, for [`Buffer::look_at`].
    pub(crate) fn look_back(&mut self, position: usize) -> Option<Arc<Past>> {
        let mut past = Past { points: BTreeMap::new(), spans: self.spans.clone() };
        for undo in self.undo[position.min(self.undo.len())..].iter().rev() {
            match undo {
                Undo::Point { key, before } => {
                    past.points.insert(key.clone(), before.clone());
                }
                Undo::Span { grown, replaced, removed } => {
                    past.spans.undo(grown, replaced);
                    let removed = removed.iter().map(|(k, slot)| (k.clone(), Some(slot.clone())));
                    past.points.extend(removed);
                }
            }
        }
        self.look_at(Some(Arc::new(past)))
    }

    /// Sets what reads see: an earlier state, or all there is.
    pub(crate) fn look_at(&mut self, past: Option<Arc<Past>>) -> Option<Arc<Past>> {
        std::mem::replace(&mut self.past, past)
    }

    /// Whether reads see an earlier state.
    pub(crate) fn looks_back(&self) -> bool {
        self.past.is_some()
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
        self.undo.push(Undo::Span { grown, replaced, removed });
        puts
    }

    fn points_in(&self, span: &KeySpan) -> impl Iterator<Item = (&Bytes, &Slot)> {
        self.points.range::<[u8], _>((
            Bound::Included(span.start.as_ref()),
            Bound::Excluded(span.end.as_ref()),
        ))
    }

    /// Copies what a scan over `span` must lay over the engine's rows.
    pub(crate) fn overlay(&self, span: &KeySpan) -> Overlay {
        let now = self.points_in(span).map(|(k, v)| (k.clone(), v.clone()));
        let Some(past) = &self.past else {
            return Overlay { points: now.collect(), spans: self.spans.clone() };
        };
        let mut points: BTreeMap<Bytes, Slot> = now.collect();
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
        Overlay { points: points.into_iter().collect(), spans: past.spans.clone() }
    }

    pub(crate) fn position(&self) -> usize {
        self.undo.len()
    }

    /// Takes back everything after `position`. Bytes that became free, as [`write_memory`] counts.
    pub(crate) fn rollback_to(&mut self, position: usize) -> usize {
        let mut freed = 0;
        while self.undo.len() > position {
            match self.undo.pop().expect("length was just checked") {
                Undo::Point { key, before } => {
                    let length = key.len();
                    let gone = match before {
                        Some(slot) => self.points.insert(key, slot),
                        None => self.points.remove(&key),
                    };
                    let value = gone.flatten().map_or(0, |v| v.len());
                    freed += length + value + WRITE_BYTES;
                }
                Undo::Span { grown, replaced, removed } => {
                    self.spans.undo(&grown, &replaced);
                    self.points.extend(removed);
                }
            }
        }
        freed
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

/// A frozen copy of the buffer's content in one span.
pub(crate) struct Overlay {
    pub(crate) points: Vec<(Bytes, Slot)>,
    pub(crate) spans: SpanMap,
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
            Undo::Span { grown, replaced, removed } => {
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
