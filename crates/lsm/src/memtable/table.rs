//! One memtable: points, range tombstones, and the facts that let reads skip it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::arrival_log::ArrivalLog;
use super::key_filter::KeyFilter;
use super::skiplist::{NodeRef, SkipList};
use crate::iter::ReadPoint;
use crate::key::{Between, KeySpan, Kind};
use crate::options::RowClassFn;
use crate::range_tombstone::Skyline;
use crate::sstable::key_hash;

/// A range tombstone as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tombstone {
    pub(crate) start: Bytes,
    pub(crate) end: Bytes,
    pub(crate) ts: u64,
}

/// Newest of some timestamps of tombstones that share a key with a span; their floor if there is
/// none.
pub(crate) fn newest_tombstone(all: &[Tombstone], span: &KeySpan, times: Between) -> u64 {
    let inside = all.iter().filter(|t| t.start < span.end && span.start < t.end);
    inside.fold(times.floor, |newest, t| times.over(newest).raised(t.ts))
}

/// A sorted buffer of writes.
pub(crate) struct Memtable {
    /// Position in the arrival order: larger is newer.
    pub(crate) arrival: u64,
    /// First wal segment that holds batches of this memtable.
    pub(crate) first_segment: u64,
    points: SkipList,
    filter: KeyFilter,
    skyline: Skyline,
    log: Mutex<ArrivalLog>,
    /// Entries are classified once, when they come: scans ask each of them.
    row_class: RowClassFn,
    min_ts: AtomicU64,
    max_ts: AtomicU64,
    bytes: AtomicUsize,
}

impl Memtable {
    /// An empty memtable. `prefix` is what most keys are expected to begin with, `size` the bytes
    /// it is expected to grow to.
    pub(crate) fn new(arrival: u64, first_segment: u64, prefix: &[u8], size: usize) -> Memtable {
        let filter = KeyFilter::for_memtable_of(size);
        Memtable::with_filter(arrival, first_segment, prefix, filter)
    }

    /// As [`Memtable::new`], with an empty filter that was made before.
    pub(crate) fn with_filter(
        arrival: u64,
        first_segment: u64,
        prefix: &[u8],
        filter: KeyFilter,
    ) -> Memtable {
        Memtable {
            arrival,
            first_segment,
            points: SkipList::new(prefix, arrival),
            filter,
            skyline: Skyline::new(prefix),
            log: Mutex::default(),
            row_class: |_| 0,
            min_ts: AtomicU64::new(u64::MAX),
            max_ts: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// The same, empty still, with entries of these classes.
    pub(crate) fn of_classes(self, row_class: RowClassFn) -> Memtable {
        Memtable { row_class, ..self }
    }

    /// Adds range tombstones of one batch. They stay invisible until the commit pipeline raises
    /// the visible index to `idx`.
    pub(crate) fn insert_spans(&self, spans: &[(&[u8], &[u8])], ts: u64, idx: u64) {
        if spans.is_empty() {
            return;
        }
        self.note_ts(ts);
        for (start, end) in spans {
            // With the pieces that it cuts others into.
            self.bytes.fetch_add(2 * (start.len() + end.len()) + 350, Ordering::Relaxed);
            self.skyline.insert(start, end, ts, idx);
        }
    }

    /// Brings closer what an insert of `key` will need.
    pub(crate) fn prefetch(&self, key: &[u8]) {
        self.filter.prefetch(key_hash(key));
    }

    /// Brings closer what a get of a key with this hash looks at first.
    pub(crate) fn prefetch_hash(&self, hash: u64) {
        self.filter.prefetch(hash);
    }

    /// Adds points of one batch, after its range tombstones. Invisible as those are.
    pub(crate) fn insert_points<'a>(
        &self,
        points: impl Iterator<Item = (&'a [u8], Kind, &'a [u8])>,
        ts: u64,
        idx: u64,
    ) {
        let covered = !self.skyline.is_empty();
        let mut log = self.log.lock();
        let mut count = 0;
        let mut bytes = 0;
        for (key, kind, value) in points {
            if covered {
                self.skyline.point_arrives(key);
            }
            let hash = key_hash(key);
            self.filter.prefetch(hash);
            let class = (self.row_class)(key) & 31;
            let node = self.points.insert(key, ts, idx, (kind, class), value);
            self.filter.insert(hash);
            if count == 0 {
                log.batch(ts);
            }
            // SAFETY: the log lives in the same memtable as the node, and nodes never move.
            log.point(unsafe { node.outliving_its_borrow() });
            count += 1;
            bytes += key.len() + value.len() + 90;
        }
        if count > 0 {
            self.note_ts(ts);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn note_ts(&self, ts: u64) {
        self.min_ts.fetch_min(ts, Ordering::AcqRel);
        self.max_ts.fetch_max(ts, Ordering::AcqRel);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.max_ts() == 0
    }

    /// Smallest timestamp of an entry or tombstone; MAX if empty.
    pub(crate) fn min_ts(&self) -> u64 {
        self.min_ts.load(Ordering::Acquire)
    }

    /// Largest timestamp of an entry or tombstone; 0 if empty.
    pub(crate) fn max_ts(&self) -> u64 {
        self.max_ts.load(Ordering::Acquire)
    }

    /// Estimated bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn points(&self) -> &SkipList {
        &self.points
    }

    pub(crate) fn skyline(&self) -> &Skyline {
        &self.skyline
    }

    /// All range tombstones, in arrival order.
    pub(crate) fn tombstones(&self) -> Vec<Tombstone> {
        self.skyline.tombstones()
    }

    /// What the keys of this memtable have in common at their beginning.
    pub(crate) fn common_prefix(&self) -> Vec<u8> {
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else {
            return Vec::new();
        };
        let both = first.key().iter().zip(last.key());
        let len = both.take_while(|(a, b)| a == b).count();
        first.key()[..len].to_vec()
    }

    /// The newest entry of `key` with `ts <= read_ts` in a batch up to `visible`.
    pub(crate) fn get(&self, key: &[u8], read_ts: u64, visible: u64) -> Option<NodeRef<'_>> {
        let mut at = self.points.seek(key, read_ts);
        while let Some(node) = at {
            if node.key() != key {
                return None;
            }
            if node.idx() <= visible {
                return Some(node);
            }
            at = node.next();
        }
        None
    }

    /// Timestamp of the newest range tombstone over a key that the read sees, 0 if none; and
    /// whether it hides all points of this memtable that it covers.
    pub(crate) fn stab(&self, key: &[u8], read: ReadPoint) -> (u64, bool) {
        if self.skyline.is_empty() {
            return (0, false);
        }
        self.skyline.stab_clean(key, read.ts, read.visible)
    }

    /// Whether the key with this hash may have entries here.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.filter.may_contain(hash)
    }

    /// Newest timestamp of an entry of `key` or a tombstone over it; 0 if none.
    pub(crate) fn max_ts_of(&self, key: &[u8], hash: u64) -> u64 {
        let point = if self.may_contain(hash) {
            self.get(key, u64::MAX, u64::MAX).map_or(0, |node| node.ts())
        } else {
            0
        };
        point.max(self.skyline.stab(key, u64::MAX, u64::MAX))
    }

    /// Newest timestamp above `floor` in the span, 0 if there is none above.
    /// `tombstones`: whether range tombstones count.
    pub(crate) fn newest_above(&self, span: &KeySpan, floor: u64, tombstones: bool) -> u64 {
        self.newest_between(span, Between::above(floor), tombstones)
    }

    /// Newest of some timestamps in the span, 0 if there is none of them.
    pub(crate) fn newest_between(&self, span: &KeySpan, times: Between, tombstones: bool) -> u64 {
        if !times.meets(self.min_ts(), self.max_ts()) || span.is_empty() {
            return 0;
        }
        let mut newest = times.floor;
        if tombstones {
            let over = self.skyline.max_ts_in(&span.start, &span.end);
            newest = match over <= times.upto {
                true => times.raised(over),
                false => newest_tombstone(&self.skyline.tombstones(), span, times),
            };
        }
        newest = self.newest_point(span, times.over(newest));
        if newest > times.floor { newest } else { 0 }
    }

    /// Either the span is short, or little arrived since the floor: whichever ends first answers.
    fn newest_point(&self, span: &KeySpan, times: Between) -> u64 {
        const SHORT: usize = 128;
        let mut newest = times;
        let mut at = self.points.seek(&span.start, u64::MAX);
        for _ in 0..SHORT {
            match at {
                Some(node) if node.key() < span.end.as_ref() => {
                    newest.floor = newest.raised(node.ts());
                    // Older versions say less, but for what came too late.
                    at = if node.ts() <= times.upto { node.next_key() } else { node.next() };
                }
                _ => return newest.floor,
            }
        }
        self.log.lock().newest_of(span, newest)
    }
}
