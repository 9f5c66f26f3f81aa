//! All versions of a span, to be taken to another store: every entry and every range tombstone
//! that a view sees, not only what a read would show.
//!
//! ```text
//!   layers   memtable    b@9          [c, g)@8
//!            run         b@5  d@7                    export [b, e):  b@9  b@5  [c, e)@8  d@7
//!            run              d@3  f@2                               d@3
//! ```
//!
//! Entries come in the order that [`SstBuilder`](crate::SstBuilder) wants: key ascending, timestamp
//! descending. A tombstone, cut at the ends of the span, comes in front of the first entry that is
//! not below its start. What a waiting excise hides is left out. Files are read beside the cache;
//! only one block of each layer is in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::source::ReadPoint;
use crate::error::Result;
use crate::key::{CommitTs, KeySpan, Kind};
use crate::memtable::{Memtable, NodeRef, Tombstone};
use crate::range_tombstone::coalesce;
use crate::sstable::SstEntries;
use crate::structure::{Queued, without};
use crate::versions::{SstEnv, SstMeta};
use crate::view::View;

/// Something that a span holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exported {
    /// A version of a key; without a value it is a deletion.
    Entry {
        /// Its key.
        key: Bytes,
        /// When it was written.
        ts: CommitTs,
        /// What was written.
        value: Option<Bytes>,
    },
    /// What is older is deleted in a span.
    Tombstone {
        /// Where.
        span: KeySpan,
        /// When.
        ts: CommitTs,
    },
}

/// The part of one layer that lies in a span.
enum Layer {
    Memtable(MemtablePart),
    Run(RunPart),
}

struct MemtablePart {
    // Borrows from `table`, which is kept alive below.
    at: Option<NodeRef<'static>>,
    end: Bytes,
    read: ReadPoint,
    #[expect(dead_code, reason = "keeps the nodes alive")]
    table: Arc<Memtable>,
}

struct RunPart {
    files: VecDeque<Arc<SstMeta>>,
    span: KeySpan,
    entries: Option<SstEntries>,
    read: ReadPoint,
}

impl MemtablePart {
    fn new(table: &Arc<Memtable>, span: &KeySpan, read: ReadPoint) -> MemtablePart {
        let first = table.points().seek(&span.start, u64::MAX);
        // SAFETY: the node lives as long as its memtable, which this part holds.
        let at = first.map(|node| unsafe { node.outliving_its_borrow() });
        let mut part = MemtablePart { at, end: span.end.clone(), read, table: table.clone() };
        part.settle();
        part
    }

    /// Goes on to the next entry that the view sees.
    fn settle(&mut self) {
        while let Some(node) = self.at {
            if node.key() >= self.end.as_ref() {
                self.at = None;
            } else if node.idx() <= self.read.visible && node.ts() <= self.read.ts {
                return;
            } else {
                self.at = node.next();
            }
        }
    }
}

impl RunPart {
    fn settle(&mut self, env: &SstEnv) -> Result<()> {
        loop {
            if let Some(entries) = &mut self.entries {
                while entries.key().is_some() && entries.ts() > self.read.ts {
                    entries.advance()?;
                }
                if entries.key().is_some() {
                    return Ok(());
                }
            }
            self.entries = None;
            let Some(file) = self.files.pop_front() else { return Ok(()) };
            let span = self.span.intersect(file.bounds());
            self.entries = Some(SstEntries::open_span(file.reader(env)?.clone(), span)?);
        }
    }
}

impl Layer {
    /// The current entry's place in the order.
    fn place(&self) -> Option<(&[u8], u64)> {
        match self {
            Layer::Memtable(part) => part.at.as_ref().map(|node| (node.key(), node.ts())),
            Layer::Run(part) => {
                let entries = part.entries.as_ref()?;
                entries.key().map(|key| (key, entries.ts()))
            }
        }
    }

    fn value(&self) -> Option<Bytes> {
        let (kind, value) = match self {
            Layer::Memtable(part) => part.at.as_ref().map(|node| (node.kind(), node.value()))?,
            Layer::Run(part) => part.entries.as_ref().map(|at| (at.kind(), at.value()))?,
        };
        (kind == Kind::Put).then(|| Bytes::copy_from_slice(value))
    }

    fn advance(&mut self, env: &SstEnv) -> Result<()> {
        match self {
            Layer::Memtable(part) => {
                part.at = part.at.and_then(|node| node.next());
                part.settle();
                Ok(())
            }
            Layer::Run(part) => {
                if let Some(entries) = &mut part.entries {
                    entries.advance()?;
                }
                part.settle(env)
            }
        }
    }
}

/// See the [module's page](self). Pins what it reads as its view does.
pub struct Export {
    view: View,
    /// Newest first.
    layers: Vec<Layer>,
    /// By start.
    tombstones: VecDeque<Tombstone>,
    /// The last entry that was handed out.
    last: Option<(Bytes, u64)>,
}

impl Export {
    pub(crate) fn new(view: View, span: &KeySpan) -> Result<Export> {
        let (read, env) = (view.read_point(), view.env().clone());
        let (mut layers, mut tombstones) = (Vec::new(), Vec::new());
        let mut spans = vec![span.clone()];
        spans.retain(|span| !span.is_empty());
        let state = view.state();
        for layer in state.queue() {
            for span in &spans {
                match layer {
                    Queued::Memtable(table) => {
                        let seen = table.skyline().tombstones_up_to(read.visible);
                        tombstones.extend(seen.iter().filter_map(|t| cut(t, span)));
                        layers.push(Layer::Memtable(MemtablePart::new(table, span, read)));
                    }
                    Queued::Structural(op) => {
                        let run = part_of(op.run.ssts(), span, read, &env, &mut tombstones)?;
                        layers.extend(run);
                    }
                }
            }
            if let Queued::Structural(op) = layer
                && let Some(hidden) = &op.excised
            {
                spans = without(spans, hidden);
            }
        }
        for run in state.version.runs() {
            for span in &spans {
                layers.extend(part_of(run, span, read, &env, &mut tombstones)?);
            }
        }
        tombstones.retain(|tombstone: &Tombstone| tombstone.ts <= read.ts);
        let mut tombstones = coalesce(tombstones);
        tombstones.sort_by(|a, b| a.start.cmp(&b.start));
        Ok(Export { view, layers, tombstones: tombstones.into(), last: None })
    }

    /// The next item; `None` at the end. May read from the device.
    pub fn next_item(&mut self) -> Result<Option<Exported>> {
        let env = self.view.env();
        loop {
            let mut first: Option<(usize, &[u8], u64)> = None;
            for (number, layer) in self.layers.iter().enumerate() {
                let Some((key, ts)) = layer.place() else { continue };
                // Of two that are alike the upper one counts.
                let is_before =
                    first.is_none_or(|(_, other, newer)| key < other || key == other && ts > newer);
                if is_before {
                    first = Some((number, key, ts));
                }
            }
            let starts = |t: &Tombstone| first.is_none_or(|(_, key, _)| t.start.as_ref() <= key);
            if let Some(Tombstone { start, end, ts }) = self.tombstones.pop_front_if(|t| starts(t))
            {
                let span = KeySpan { start, end };
                return Ok(Some(Exported::Tombstone { span, ts: CommitTs(ts) }));
            }
            let Some((number, key, ts)) = first else { return Ok(None) };
            let is_again = self.last.as_ref().is_some_and(|last| (&*last.0, last.1) == (key, ts));
            let key = Bytes::copy_from_slice(key);
            let value = self.layers[number].value();
            self.layers[number].advance(env)?;
            if !is_again {
                self.last = Some((key.clone(), ts));
                return Ok(Some(Exported::Entry { key, ts: CommitTs(ts), value }));
            }
        }
    }
}

/// A run as far as it lies in a span; its tombstones go to the others.
fn part_of(
    ssts: &[Arc<SstMeta>],
    span: &KeySpan,
    read: ReadPoint,
    env: &SstEnv,
    tombstones: &mut Vec<Tombstone>,
) -> Result<Option<Layer>> {
    let first = ssts.partition_point(|sst| sst.bounds().end <= span.start);
    let inside = ssts[first..].iter().take_while(|sst| sst.bounds().start < span.end);
    let files: VecDeque<Arc<SstMeta>> = inside.cloned().collect();
    if files.is_empty() {
        return Ok(None);
    }
    for file in &files {
        let inside = file.tombstones_inside(env)?;
        tombstones.extend(inside.iter().filter_map(|tombstone| cut(tombstone, span)));
    }
    let mut part = RunPart { files, span: span.clone(), entries: None, read };
    part.settle(env)?;
    Ok(Some(Layer::Run(part)))
}

/// The part of a tombstone that lies in a span.
fn cut(tombstone: &Tombstone, span: &KeySpan) -> Option<Tombstone> {
    let start = tombstone.start.clone().max(span.start.clone());
    let end = tombstone.end.clone().min(span.end.clone());
    (start < end).then_some(Tombstone { start, end, ts: tombstone.ts })
}
