//! Watches: which keys and spans commits have touched since somebody asked.
//!
//! ```text
//!   watch(spans, classes)            from now on, under the commit mutex
//!     every commit                   its keys of these classes, its deleted spans, its files
//!   watched(watch, upto)             what was touched by commits up to then, and forgets it
//! ```
//! Whoever copies rows while others write reads them as of one time, and learns by a watch where to
//! look again. It tells *where*, not *what*: both states are in the store, at their timestamps.
//!
//! **Memory** is bounded: too many places become fewer and larger ones. They are never too small,
//! so that looking at all of them finds every change.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use braid_lsm::{CommitTs, KeySpan, PreparedBatch, RowClassFn};
use bytes::Bytes;
use parking_lot::Mutex;

/// Places that a watch keeps before it makes them fewer.
const MOST_PLACES: usize = 32 << 10;
/// Deleted spans that a watch keeps, each with its timestamp.
const MOST_ERASED: usize = 16 << 10;
/// Places that one commit leaves in a watch at most, about.
const MOST_AT_ONCE: usize = 1024;

/// Asks for a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// What is watched.
    pub spans: Vec<KeySpan>,
    /// Only keys of these classes: bit n stands for class n. Deleted spans and files always.
    pub classes: u32,
}

/// What a watch has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Spans in which something was written, disjoint and in order: of one key mostly, larger ones
    /// where there was much.
    pub touched: Vec<KeySpan>,
    /// Spans that were deleted by one tombstone, and when.
    pub erased: Vec<(KeySpan, CommitTs)>,
    /// More spans were deleted than were kept: any may have been.
    pub lost: bool,
}

impl Watched {
    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.touched.is_empty() && self.erased.is_empty() && !self.lost
    }
}

/// All watches of a store.
#[derive(Default)]
pub(crate) struct Watches {
    open: Mutex<HashMap<u64, Seen>>,
    count: AtomicUsize,
    last: AtomicU64,
}

struct Seen {
    watch: Watch,
    /// End and newest timestamp, by start. Disjoint.
    touched: BTreeMap<Bytes, (Bytes, CommitTs)>,
    erased: Vec<(KeySpan, CommitTs)>,
    lost: bool,
}

impl Watches {
    /// Whether nobody watches: then commits have nothing to tell.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Under the commit mutex: every later commit is seen.
    pub(crate) fn open(&self, watch: Watch) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let (touched, erased) = (BTreeMap::new(), Vec::new());
        let mut open = self.open.lock();
        open.insert(number, Seen { watch, touched, erased, lost: false });
        self.count.store(open.len(), Ordering::Release);
        number
    }

    pub(crate) fn close(&self, number: u64) {
        let mut open = self.open.lock();
        let closed = open.remove(&number);
        self.count.store(open.len(), Ordering::Release);
        drop(open);
        drop(closed);
    }

    /// What commits up to `upto` have touched. They have all been told of.
    pub(crate) fn take(&self, number: u64, upto: CommitTs) -> Watched {
        let mut open = self.open.lock();
        open.get_mut(&number).map(|seen| seen.take(upto)).unwrap_or_default()
    }

    /// A batch is about to be applied. Under the commit mutex.
    pub(crate) fn batch(&self, batch: &PreparedBatch, ts: CommitTs, class_of: RowClassFn) {
        let at_once = batch.touched_count().div_ceil(MOST_AT_ONCE).max(1);
        for seen in self.open.lock().values_mut() {
            let mut run: Option<(Bytes, Bytes, usize)> = None;
            for (start, end) in batch.touched() {
                match end {
                    Some(end) => seen.erase(start, end, ts),
                    None if !seen.wants(start, class_of) => {}
                    None => {
                        let key = Bytes::copy_from_slice(start);
                        let (first, _, keys) = run.take().unwrap_or((key.clone(), key.clone(), 0));
                        if keys + 1 == at_once {
                            seen.touch(first, &key, ts);
                        } else {
                            run = Some((first, key, keys + 1));
                        }
                    }
                }
            }
            if let Some((first, last, _)) = run {
                seen.touch(first, &last, ts);
            }
        }
    }

    /// Files are about to be taken in. Under the commit mutex.
    pub(crate) fn files(&self, spans: &[KeySpan], ts: CommitTs) {
        for seen in self.open.lock().values_mut() {
            for own in seen.watch.spans.clone() {
                for span in spans.iter().filter_map(|span| common(span, &own)) {
                    seen.touch_span(span, ts);
                }
            }
        }
    }
}

/// What two spans share.
fn common(a: &KeySpan, b: &KeySpan) -> Option<KeySpan> {
    let span = KeySpan {
        start: a.start.clone().max(b.start.clone()),
        end: a.end.clone().min(b.end.clone()),
    };
    (!span.is_empty()).then_some(span)
}

impl Seen {
    fn wants(&self, key: &[u8], class_of: RowClassFn) -> bool {
        self.watch.classes & (1 << class_of(key)) != 0
            && self.watch.spans.iter().any(|span| span.contains(key))
    }

    fn touch(&mut self, first: Bytes, last: &[u8], ts: CommitTs) {
        self.touch_span(KeySpan { start: first, end: KeySpan::point(last).end }, ts);
    }

    fn touch_span(&mut self, mut span: KeySpan, mut ts: CommitTs) {
        // What overlaps becomes one with it.
        loop {
            let before = self.touched.range::<Bytes, _>(..&span.end).next_back();
            let Some((start, (end, at))) = before.filter(|(_, (end, _))| *end > span.start) else {
                break;
            };
            let start = start.clone();
            ts = ts.max(*at);
            span.end = span.end.max(end.clone());
            span.start = span.start.min(start.clone());
            self.touched.remove(&start);
        }
        self.touched.insert(span.start, (span.end, ts));
        if self.touched.len() > MOST_PLACES {
            self.coarsen();
        }
    }

    /// Every other place becomes one with that before it.
    fn coarsen(&mut self) {
        let mut places = std::mem::take(&mut self.touched).into_iter();
        while let Some((start, (end, ts))) = places.next() {
            let (end, ts) = match places.next() {
                Some((_, (further, newer))) => (further, ts.max(newer)),
                None => (end, ts),
            };
            self.touched.insert(start, (end, ts));
        }
    }

    fn erase(&mut self, start: &[u8], end: &[u8], ts: CommitTs) {
        let touches = |own: &KeySpan| own.start.as_ref() < end && start < own.end.as_ref();
        if self.lost || !self.watch.spans.iter().any(touches) {
            return;
        }
        if self.erased.len() == MOST_ERASED {
            self.lost = true;
            self.erased = Vec::new();
            return;
        }
        let span = KeySpan::new(Bytes::copy_from_slice(start), Bytes::copy_from_slice(end));
        self.erased.push((span, ts));
    }

    fn take(&mut self, upto: CommitTs) -> Watched {
        let mut out = Watched { lost: self.lost, ..Watched::default() };
        self.lost = false;
        let touched = std::mem::take(&mut self.touched);
        for (start, (end, ts)) in touched {
            out.touched.push(KeySpan { start: start.clone(), end: end.clone() });
            // It may hold older places, too: told now and once more.
            if ts > upto {
                self.touched.insert(start, (end, ts));
            }
        }
        let erased = std::mem::take(&mut self.erased);
        (out.erased, self.erased) = erased.into_iter().partition(|(_, ts)| *ts <= upto);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Seen {
        let watch = Watch { spans: vec![KeySpan::new("a", "n")], classes: u32::MAX };
        Seen { watch, touched: BTreeMap::new(), erased: Vec::new(), lost: false }
    }

    fn key(n: usize) -> Bytes {
        format!("k{n:06}").into()
    }

    #[test]
    fn what_is_newer_is_told_again() {
        let mut seen = seen();
        seen.touch("b".into(), b"b", CommitTs(5));
        seen.touch("c".into(), b"c", CommitTs(9));
        seen.erase(b"x", b"z", CommitTs(5));
        seen.erase(b"m", b"z", CommitTs(6));
        seen.erase(b"a", b"b", CommitTs(8));
        let first = seen.take(CommitTs(7));
        assert_eq!(first.touched, [KeySpan::point(b"b"), KeySpan::point(b"c")]);
        assert_eq!(first.erased, [(KeySpan::new("m", "z"), CommitTs(6))]);
        let second = seen.take(CommitTs(9));
        assert_eq!(second.touched, [KeySpan::point(b"c")]);
        assert_eq!(second.erased, [(KeySpan::new("a", "b"), CommitTs(8))]);
        assert!(seen.take(CommitTs(9)).is_empty());
    }

    #[test]
    fn too_many_places_become_larger_and_none_is_lost() {
        let mut seen = seen();
        for n in 0..3 * MOST_PLACES {
            // Not in order.
            let n = n * 7_919 % (3 * MOST_PLACES);
            seen.touch(key(2 * n), &key(2 * n), CommitTs(n as u64 + 1));
        }
        assert!(seen.touched.len() <= MOST_PLACES);
        let out = seen.take(CommitTs(u64::MAX)).touched;
        assert!(out.windows(2).all(|pair| pair[0].end <= pair[1].start));
        for n in 0..3 * MOST_PLACES {
            let at = out.partition_point(|span| span.start <= key(2 * n));
            assert!(at > 0 && out[at - 1].contains(&key(2 * n)), "{n}");
        }
    }

    #[test]
    fn more_deleted_spans_than_are_kept_are_all() {
        let mut seen = seen();
        for n in 0..=MOST_ERASED {
            seen.erase(&key(n), &key(n + 1), CommitTs(n as u64));
        }
        let out = seen.take(CommitTs(u64::MAX));
        assert!(out.lost && out.erased.is_empty());
        assert!(!seen.take(CommitTs(u64::MAX)).lost);
    }
}
