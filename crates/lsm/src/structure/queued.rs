//! Ingests and excises that wait for older memtables: layers that reads look through.
//!
//! ```text
//!   newest   mutable memtable            arrival 5 << 20
//!            ingest of [k, p)            arrival (4 << 20) + 1     its ssts are one run
//!            memtable that holds "m"     arrival 4 << 20
//!            excise of [a, c)            arrival (3 << 20) + 1     nothing below is seen there
//!            memtable that holds "b"     arrival 3 << 20
//!   oldest   the version
//! ```
//!
//! One operation may do both: its ssts come first, then its barrier. An operation that shares no
//! key with anything in memory is put below all memtables, where it can become part of the version
//! at once: which of two layers is the upper one matters only to keys that are in both. Files come
//! wide, so the memtable often holds a few keys between theirs; those are looked up in the file
//! ([`Incoming`]). Otherwise a trickle of small writes would have every ingest seal a memtable of a
//! few rows, and each of these would become ssts of L0 that lie on the ingested ones.
//!
//! Arrival numbers of memtables are [`ARRIVAL_STEP`] apart; operations take numbers in between.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::Result;
use crate::iter::{ReadWork, Source};
use crate::key::{KeySpan, Kind};
use crate::memtable::{Memtable, NodeRef};
use crate::range_tombstone::Cover;
use crate::sstable::{SstReader, key_hash};
use crate::state::State;
use crate::versions::{Run, SstEnv};
use crate::wal::Lsn;

/// Operations that one edit makes part of the version at most.
const DUE_AT_ONCE: usize = 32;

/// Distance between the arrival numbers of memtables.
pub(crate) const ARRIVAL_STEP: u64 = 1 << 20;

/// A waiting ingest, excise or both.
pub(crate) struct Structural {
    /// Wal segment of its record, and its number: names it in the manifest once it is installed.
    pub(crate) ticket: (u64, u64),
    /// Everything that arrived before it is durable when the wal is up to here.
    pub(crate) before: Lsn,
    /// Its own record is durable when the wal is up to here.
    pub(crate) lsn: Lsn,
    pub(crate) arrival: u64,
    /// Nothing that arrived before is seen in this span.
    pub(crate) excised: Option<KeySpan>,
    /// The ingested ssts.
    pub(crate) run: Run,
}

/// One layer that is not part of the version yet.
#[derive(Clone, Copy)]
pub(crate) enum Queued<'a> {
    Memtable(&'a Arc<Memtable>),
    Structural(&'a Arc<Structural>),
}

/// Where a new operation goes among the layers in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Below all memtables, with this arrival number.
    Bottom(u64),
    /// On top of everything that arrived so far: the mutable memtable must be sealed first.
    Top,
}

/// A new operation, as far as its place depends on it.
pub(crate) struct Incoming<'a> {
    pub(crate) excised: Option<&'a KeySpan>,
    /// Spans of the ingested files.
    pub(crate) spans: Vec<KeySpan>,
    /// Opens file number i of them.
    pub(crate) open: &'a dyn Fn(usize) -> Result<Arc<SstReader>>,
    /// So many keys of memtables are looked up in a file; if there are more, they count as shared.
    /// A replay has no limit: what went below the memtables once goes there again.
    pub(crate) patience: usize,
}

impl Incoming<'_> {
    fn all_spans(&self) -> impl Iterator<Item = &KeySpan> {
        self.excised.into_iter().chain(&self.spans)
    }

    /// Whether it shares keys with a memtable: points with points, or a range tombstone with
    /// anything.
    fn meets(&self, memtable: &Memtable) -> Result<bool> {
        if self.excised.is_some_and(|span| memtable.newest_above(span, 0, true) > 0) {
            return Ok(true);
        }
        for (i, span) in self.spans.iter().enumerate() {
            if memtable.skyline().max_ts_in(&span.start, &span.end) > 0 {
                return Ok(true);
            }
            let inside = |node: &NodeRef<'_>| node.key() < span.end.as_ref();
            let mut at = memtable.points().seek(&span.start, u64::MAX).filter(inside);
            if at.is_none() {
                continue;
            }
            let reader = (self.open)(i)?;
            if reader.properties().tombstones > 0 {
                return Ok(true);
            }
            let mut left = self.patience;
            while let Some(node) = at {
                let found = reader.may_contain(key_hash(node.key()))
                    && reader.get(node.key(), u64::MAX, &mut ReadWork::default())?.is_some();
                if found || left == 0 {
                    return Ok(true);
                }
                left -= 1;
                at = node.next().filter(inside);
            }
        }
        Ok(false)
    }
}

/// What an entry of a layer says about a key.
pub(crate) type Answer = Option<(Bytes, u64)>;

impl Structural {
    /// The spans that it changes.
    pub(crate) fn spans(&self) -> impl Iterator<Item = &KeySpan> {
        self.excised.iter().chain(self.run.ssts().iter().map(|sst| sst.bounds()))
    }

    fn hides_below(&self, key: &[u8]) -> bool {
        self.excised.as_ref().is_some_and(|span| span.contains(key))
    }

    /// What a read of `key` finds here; `None`: it must look further down.
    pub(crate) fn get(
        &self,
        env: &SstEnv,
        key: &[u8],
        hash: u64,
        read_ts: u64,
        work: &mut ReadWork,
    ) -> Result<Option<Answer>> {
        if let Some(sst) = self.run.file_of(key).filter(|sst| sst.min_ts <= read_ts) {
            let reader = sst.reader(env)?;
            let hidden_below = reader.skyline().stab(key, read_ts);
            if reader.may_contain(hash)
                && let Some(found) = reader.get(key, read_ts, work)?
            {
                let lives = found.kind == Kind::Put && found.ts >= hidden_below;
                return Ok(Some(lives.then_some((found.value, found.ts))));
            }
            if hidden_below > 0 {
                return Ok(Some(None));
            }
        }
        Ok(self.hides_below(key).then_some(None))
    }

    /// Timestamp of the newest visible tombstone over `key`, 0 if there is none here or below;
    /// `None`: look further down.
    pub(crate) fn stab(&self, env: &SstEnv, key: &[u8], read_ts: u64) -> Result<Option<u64>> {
        let mut ts = 0;
        if let Some(sst) = self.run.file_of(key) {
            ts = sst.reader(env)?.skyline().stab(key, read_ts);
        }
        Ok((ts > 0 || self.hides_below(key)).then_some(ts))
    }

    /// Newest timestamp of an entry of `key` or a tombstone over it; `None`: look further down.
    pub(crate) fn max_ts_of(&self, env: &SstEnv, key: &[u8], hash: u64) -> Result<Option<u64>> {
        let mut ts = 0;
        if let Some(sst) = self.run.file_of(key) {
            let reader = sst.reader(env)?;
            ts = reader.skyline().stab(key, u64::MAX);
            if reader.may_contain(hash)
                && let Some(found) = reader.get(key, u64::MAX, &mut ReadWork::default())?
            {
                ts = ts.max(found.ts);
            }
        }
        Ok((ts > 0 || self.hides_below(key)).then_some(ts))
    }
}

impl State {
    /// All layers in memory, newest first.
    pub(crate) fn queue(&self) -> impl Iterator<Item = Queued<'_>> {
        let mut memtables = self.memtables().peekable();
        let mut operations = self.structural.iter().peekable();
        std::iter::from_fn(move || {
            let operation = operations.peek().map_or(0, |op| op.arrival);
            if memtables.peek().is_some_and(|memtable| memtable.arrival > operation) {
                return memtables.next().map(Queued::Memtable);
            }
            operations.next().map(Queued::Structural)
        })
    }

    /// The sealed memtables that may be flushed now, newest first: those older than every waiting
    /// operation. The oldest ones up to `most` bytes: what a recovered log holds is flushed in
    /// parts that outlive the next crash.
    pub(crate) fn flushable(&self, most: usize) -> Vec<Arc<Memtable>> {
        let oldest = self.structural.last().map_or(u64::MAX, |op| op.arrival);
        let due = self.immutable.partition_point(|memtable| memtable.arrival >= oldest);
        let (mut from, mut bytes) = (self.immutable.len(), 0);
        for memtable in self.immutable[due..].iter().rev() {
            bytes += memtable.bytes();
            if bytes > most && from < self.immutable.len() {
                break;
            }
            from -= 1;
        }
        self.immutable[from..].to_vec()
    }

    /// The waiting operations that no older memtable precedes, the oldest first.
    pub(crate) fn due_operations(&self) -> Vec<Arc<Structural>> {
        let oldest = self.immutable.last().map_or(self.mutable.arrival, |oldest| oldest.arrival);
        let due = self.structural.iter().rev().take_while(|op| op.arrival < oldest);
        due.take(DUE_AT_ONCE).cloned().collect()
    }

    /// Where an operation goes.
    pub(crate) fn place_of(&self, incoming: &Incoming<'_>) -> Result<Place> {
        let waits_behind = self
            .structural
            .iter()
            .flat_map(|op| op.spans())
            .any(|other| incoming.all_spans().any(|span| span.overlaps(other)));
        let flushed = self.version.newest_arrival();
        let oldest = self.immutable.last().map_or(self.mutable.arrival, |oldest| oldest.arrival);
        let waiting = self.structural.iter().map(|op| op.arrival).filter(|at| *at < oldest).max();
        let arrival = flushed.max(waiting.unwrap_or(0)) + 1;
        if waits_behind || arrival >= oldest {
            return Ok(Place::Top);
        }
        for memtable in self.memtables() {
            if incoming.meets(memtable)? {
                return Ok(Place::Top);
            }
        }
        Ok(Place::Bottom(arrival))
    }

    /// Arrival number of an operation that goes on top; the mutable memtable is empty.
    pub(crate) fn arrival_on_top(&self) -> u64 {
        let sealed = self.immutable.first().map_or(0, |newest| newest.arrival);
        let waiting = self.structural.first().map_or(0, |newest| newest.arrival);
        let flushed = self.version.newest_arrival();
        sealed.max(waiting).max(flushed) + 1
    }

    /// The layers with one more operation.
    pub(crate) fn with_operation(&self, op: Arc<Structural>) -> State {
        let mut state = self.clone();
        let at = state.structural.partition_point(|other| other.arrival > op.arrival);
        state.structural.insert(at, op);
        state
    }
}

/// The parts of `spans` outside of `cut`.
pub(crate) fn without(spans: Vec<KeySpan>, cut: &KeySpan) -> Vec<KeySpan> {
    let mut rest = Vec::new();
    for span in spans {
        if !span.overlaps(cut) {
            rest.push(span);
            continue;
        }
        let low = KeySpan { start: span.start.clone(), end: cut.start.clone() };
        let high = KeySpan { start: cut.end.clone(), end: span.end.clone() };
        rest.extend([low, high].into_iter().filter(|side| !side.is_empty()));
    }
    rest
}

/// The barrier of an excise as a layer of a scan: no rows, and a tombstone over its span that is
/// newer than everything, so that all layers below are parked there.
pub(crate) struct BarrierCursor {
    span: KeySpan,
    backward: bool,
}

impl BarrierCursor {
    pub(crate) fn new(span: KeySpan, backward: bool) -> BarrierCursor {
        BarrierCursor { span, backward }
    }
}

impl Source for BarrierCursor {
    fn seek(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        Ok(())
    }

    fn key(&self) -> Option<&[u8]> {
        None
    }

    fn ts(&self) -> u64 {
        0
    }

    fn kind(&self) -> Kind {
        Kind::Delete
    }

    fn value(&self) -> &[u8] {
        &[]
    }

    fn work(&self) -> ReadWork {
        ReadWork::default()
    }

    fn cover(&mut self, at: &[u8]) -> Result<Cover> {
        let KeySpan { start, end } = &self.span;
        // Backward, `at` stands for the keys just below it.
        let (ts, until) = if self.backward {
            match at {
                _ if at > end.as_ref() => (0, Some(end)),
                _ if at > start.as_ref() => (u64::MAX, Some(start)),
                _ => (0, None),
            }
        } else {
            match at {
                _ if at < start.as_ref() => (0, Some(start)),
                _ if at < end.as_ref() => (u64::MAX, Some(end)),
                _ => (0, None),
            }
        };
        Ok(Cover { ts, until: until.cloned(), clean: false })
    }

    fn skip_hidden(&mut self, _: &Cover) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_a_span_out_leaves_what_is_beside_it() {
        let spans = vec![KeySpan::new("a", "f"), KeySpan::new("k", "p")];
        let rest = without(spans, &KeySpan::new("c", "m"));
        assert_eq!(rest, [KeySpan::new("a", "c"), KeySpan::new("m", "p")]);
    }

    #[test]
    fn a_barrier_covers_its_span_in_both_directions() {
        let span = KeySpan::new("c", "m");
        let cover = |backward, at: &str| {
            let cover = BarrierCursor::new(span.clone(), backward).cover(at.as_bytes()).unwrap();
            (cover.ts, cover.until.map(|until| until[0] as char))
        };
        assert_eq!(cover(false, "a"), (0, Some('c')));
        assert_eq!(cover(false, "c"), (u64::MAX, Some('m')));
        assert_eq!(cover(false, "m"), (0, None));
        assert_eq!(cover(true, "z"), (0, Some('m')));
        assert_eq!(cover(true, "m"), (u64::MAX, Some('c')));
        assert_eq!(cover(true, "c"), (0, None));
    }
}
