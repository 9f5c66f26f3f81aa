//! What a flush or compaction may leave out, given a durable gc threshold `gc`.
//!
//! 1. a version, if a newer one of its key is at or below `gc`;
//! 2. a point, if a range tombstone with a timestamp up to `gc` covers it, of the inputs or of any
//!    other durable sst;
//! 3. the part of a range tombstone that a newer one up to `gc` covers;
//! 4. a delete or range tombstone up to `gc`, where nothing below the output could be under it.
//!
//! Nobody reads below `gc` (C5) and nobody writes at or below it (C2): from there on only the
//! newest state at `gc` matters. Every rule has a mutant in the rules model (`tests/model`).

use bytes::Bytes;

use crate::inspect::DropCounts;
use crate::key::{KeySpan, Kind};
use crate::memtable::Tombstone;
use crate::range_tombstone::{Skyline, coalesce};

/// Decides, entry by entry in merge order.
pub(crate) struct DropRules {
    gc: u64,
    /// Tombstones of the inputs up to `gc`.
    killers: Skyline,
    /// Tombstones of other ssts up to `gc`: they drop points, and stay where they are.
    borrowed: Skyline,
    /// Spans of ssts below the output, in key order, merged where they overlap.
    below: Vec<KeySpan>,
    key: Vec<u8>,
    last_ts: Option<u64>,
    /// A version at or below `gc` of this key was seen.
    settled: bool,
    killed_below: u64,
    /// What was left out so far.
    pub(crate) dropped: DropCounts,
}

impl DropRules {
    /// `tombstones`: all of the inputs. `below`: bounds of all ssts in levels under the output.
    pub(crate) fn new(gc: u64, tombstones: &[Tombstone], below: Vec<KeySpan>) -> DropRules {
        DropRules {
            gc,
            killers: skyline_up_to(gc, tombstones),
            borrowed: Skyline::default(),
            below: merge_spans(below),
            key: Vec::new(),
            last_ts: None,
            settled: false,
            killed_below: 0,
            dropped: DropCounts::default(),
        }
    }

    /// Lets tombstones of ssts that are not inputs drop points, too. They must be durable.
    pub(crate) fn borrow(&mut self, tombstones: &[Tombstone]) {
        self.borrowed = skyline_up_to(self.gc, tombstones);
    }

    /// Whether the next entry stays.
    pub(crate) fn keeps(&mut self, key: &[u8], ts: u64, kind: Kind) -> bool {
        if self.last_ts.is_none() || self.key != key {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.last_ts = None;
            self.settled = false;
            let killed_by = |skyline: &Skyline| {
                if skyline.is_empty() { 0 } else { skyline.stab(key, self.gc, 0) }
            };
            self.killed_below = killed_by(&self.killers).max(killed_by(&self.borrowed));
        }
        if self.last_ts == Some(ts) {
            // The same entry of an upper layer came before.
            self.dropped.repeated += 1;
            return false;
        }
        self.last_ts = Some(ts);
        if ts > self.gc {
            return true;
        }
        if self.settled {
            self.dropped.shadowed += 1;
            return false;
        }
        if ts < self.killed_below {
            self.dropped.covered += 1;
            return false;
        }
        self.settled = true;
        let kept = kind == Kind::Put || self.is_above_something(key);
        self.dropped.elided += u64::from(!kept);
        kept
    }

    fn is_above_something(&self, key: &[u8]) -> bool {
        let at = self.below.partition_point(|span| span.end.as_ref() <= key);
        self.below.get(at).is_some_and(|span| span.start.as_ref() <= key)
    }

    /// The range tombstones that stay, oldest first.
    pub(crate) fn surviving(&self, tombstones: &[Tombstone]) -> Vec<Tombstone> {
        let mut kept: Vec<Tombstone> =
            tombstones.iter().filter(|tombstone| tombstone.ts > self.gc).cloned().collect();
        for (start, end, ts) in self.killers.topmost() {
            self.parts_above_something(start, end, &mut |start, end| {
                kept.push(Tombstone { start, end, ts });
            });
        }
        coalesce(kept)
    }

    fn parts_above_something(&self, start: &[u8], end: &[u8], keep: &mut dyn FnMut(Bytes, Bytes)) {
        let first = self.below.partition_point(|span| *span.end <= *start);
        for span in self.below[first..].iter().take_while(|span| *span.start < *end) {
            let (start, end) = (start.max(&span.start), end.min(&span.end));
            keep(Bytes::copy_from_slice(start), Bytes::copy_from_slice(end));
        }
    }
}

/// A skyline of the tombstones up to `gc`.
pub(crate) fn skyline_up_to(gc: u64, tombstones: &[Tombstone]) -> Skyline {
    let skyline = Skyline::default();
    let mut closed: Vec<&Tombstone> = tombstones.iter().filter(|t| t.ts <= gc).collect();
    closed.sort_by_key(|tombstone| tombstone.ts);
    for tombstone in closed {
        skyline.insert(&tombstone.start, &tombstone.end, tombstone.ts, 0);
    }
    skyline
}

fn merge_spans(mut spans: Vec<KeySpan>) -> Vec<KeySpan> {
    spans.sort_by(|a, b| a.start.cmp(&b.start));
    let mut merged: Vec<KeySpan> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => {
                if span.end > last.end {
                    last.end = span.end;
                }
            }
            _ => merged.push(span),
        }
    }
    merged
}

/// The parts of tombstones inside `[low, high)`; an absent bound is open.
pub(crate) fn clip(
    tombstones: &[Tombstone],
    low: Option<&[u8]>,
    high: Option<&[u8]>,
) -> Vec<Tombstone> {
    let mut clipped = Vec::new();
    for tombstone in tombstones {
        let start = match low {
            Some(low) if tombstone.start.as_ref() < low => Bytes::copy_from_slice(low),
            _ => tombstone.start.clone(),
        };
        let end = match high {
            Some(high) if tombstone.end.as_ref() > high => Bytes::copy_from_slice(high),
            _ => tombstone.end.clone(),
        };
        if start < end {
            clipped.push(Tombstone { start, end, ts: tombstone.ts });
        }
    }
    clipped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tombstone(start: &'static str, end: &'static str, ts: u64) -> Tombstone {
        let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
        Tombstone { start: bytes(start), end: bytes(end), ts }
    }

    #[test]
    fn below_the_threshold_only_the_newest_state_stays() {
        let mut rules = DropRules::new(10, &[], vec![]);
        assert!(rules.keeps(b"a", 12, Kind::Put));
        assert!(rules.keeps(b"a", 10, Kind::Put));
        assert!(!rules.keeps(b"a", 9, Kind::Put));
        assert!(!rules.keeps(b"b", 5, Kind::Delete), "nothing lies below");
        assert!(!rules.keeps(b"b", 4, Kind::Put));
        let mut rules = DropRules::new(10, &[], vec![KeySpan::new("b", "c")]);
        assert!(rules.keeps(b"b", 5, Kind::Delete), "something may lie below");
        assert!(!rules.keeps(b"c", 5, Kind::Delete));
    }

    #[test]
    fn tombstones_drop_points_only_once_nobody_can_read_before_them() {
        let tombstones = [tombstone("a", "m", 7), tombstone("a", "m", 12)];
        let mut rules = DropRules::new(10, &tombstones, vec![]);
        assert!(rules.keeps(b"b", 11, Kind::Put));
        assert!(rules.keeps(b"b", 8, Kind::Put));
        assert!(!rules.keeps(b"c", 6, Kind::Put));
        assert_eq!(rules.surviving(&tombstones), [tombstone("a", "m", 12)]);
        let rules = DropRules::new(10, &tombstones, vec![KeySpan::new("c", "d")]);
        let kept = rules.surviving(&tombstones);
        assert_eq!(kept, [tombstone("c", "d", 7), tombstone("a", "m", 12)]);
    }
}
