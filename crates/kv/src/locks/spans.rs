//! Locked spans as disjoint fragments in key order, so that finding who holds a key or overlaps a
//! span costs a search and not a walk over all spans.
//!
//! ```text
//!   lock [b, f) by T1     [b ────────── f)T1
//!   lock [d, h) by T2     [b ── d)T1 [d ── f)T1,T2 [f ── h)T2
//!   release T1                       [d ── f)T2    [f ── h)T2
//! ```
//!
//! Fragments are cut when a lock begins or ends inside of them and never joined again; they go
//! when nobody holds them any more.

use std::collections::BTreeMap;
use std::ops::Bound;

use braid_lsm::KeySpan;
use bytes::Bytes;

use super::{LockMode, TxnId};

/// Who holds a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) txn: TxnId,
    pub(super) mode: LockMode,
    /// How many of its locked spans cover the fragment.
    count: u32,
}

#[derive(Clone)]
struct Fragment {
    end: Bytes,
    holders: Vec<Holder>,
}

/// Locked spans of all transactions.
#[derive(Default)]
pub(super) struct SpanLocks {
    /// By start; disjoint.
    fragments: BTreeMap<Bytes, Fragment>,
}

impl SpanLocks {
    /// Those who hold a span that contains the key.
    pub(super) fn at(&self, key: &[u8]) -> &[Holder] {
        let upto = (Bound::Unbounded, Bound::Included(key));
        match self.fragments.range::<[u8], _>(upto).next_back() {
            Some((_, f)) if key < f.end.as_ref() as &[u8] => &f.holders,
            _ => &[],
        }
    }

    /// Fragments that overlap the span: start, end, holders.
    pub(super) fn overlapping<'a>(
        &'a self,
        span: &'a KeySpan,
    ) -> impl Iterator<Item = (&'a Bytes, &'a Bytes, &'a [Holder])> {
        self.fragments
            .range::<[u8], _>((Bound::Unbounded, Bound::Excluded(span.end.as_ref() as &[u8])))
            .rev()
            .take_while(|(_, f)| f.end > span.start)
            .map(|(start, f)| (start, &f.end, f.holders.as_slice()))
    }

    /// All fragments in key order.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Bytes, &Bytes, &[Holder])> {
        self.fragments.iter().map(|(start, f)| (start, &f.end, f.holders.as_slice()))
    }

    /// Cuts the fragment that contains `key` in its inside.
    fn cut(&mut self, key: &Bytes) {
        let upto = (Bound::Unbounded, Bound::Excluded(key.as_ref() as &[u8]));
        let Some((_, f)) = self.fragments.range_mut::<[u8], _>(upto).next_back() else { return };
        if *key < f.end {
            let right = Fragment { end: f.end.clone(), holders: f.holders.clone() };
            f.end = key.clone();
            self.fragments.insert(key.clone(), right);
        }
    }

    /// Takes out what lies from `at` on.
    pub(super) fn split_off(&mut self, at: &Bytes) -> SpanLocks {
        self.cut(at);
        SpanLocks { fragments: self.fragments.split_off(at) }
    }

    fn starts_in(&self, span: &KeySpan) -> Vec<Bytes> {
        let inside = (
            Bound::Included(span.start.as_ref() as &[u8]),
            Bound::Excluded(span.end.as_ref() as &[u8]),
        );
        self.fragments.range::<[u8], _>(inside).map(|(start, _)| start.clone()).collect()
    }

    /// Adds a lock that is in conflict with nobody's.
    pub(super) fn insert(&mut self, span: &KeySpan, txn: TxnId, mode: LockMode) {
        self.cut(&span.start);
        self.cut(&span.end);
        let mut from = span.start.clone();
        for start in self.starts_in(span) {
            if from < start {
                self.fill(from, start.clone(), txn, mode);
            }
            let f = self.fragments.get_mut(&start).expect("its start was just listed");
            match f.holders.iter_mut().find(|h| h.txn == txn) {
                Some(h) => {
                    h.mode = h.mode.max(mode);
                    h.count += 1;
                }
                None => f.holders.push(Holder { txn, mode, count: 1 }),
            }
            from = f.end.clone();
        }
        if from < span.end {
            self.fill(from, span.end.clone(), txn, mode);
        }
    }

    fn fill(&mut self, start: Bytes, end: Bytes, txn: TxnId, mode: LockMode) {
        let holders = vec![Holder { txn, mode, count: 1 }];
        self.fragments.insert(start, Fragment { end, holders });
    }

    /// Takes back one [`SpanLocks::insert`] of the same span.
    pub(super) fn remove(&mut self, span: &KeySpan, txn: TxnId) {
        for start in self.starts_in(span) {
            let f = self.fragments.get_mut(&start).expect("its start was just listed");
            f.holders.retain_mut(|h| {
                if h.txn == txn {
                    h.count -= 1;
                }
                h.count > 0
            });
            if f.holders.is_empty() {
                self.fragments.remove(&start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(s: &str, e: &str) -> KeySpan {
        KeySpan::new(s.as_bytes().to_vec(), e.as_bytes().to_vec())
    }

    fn show(locks: &SpanLocks) -> String {
        let mut out = Vec::new();
        for (start, end, holders) in locks.all() {
            let names: Vec<_> = holders.iter().map(|h| h.txn.0.to_string()).collect();
            let (start, end) = (start.escape_ascii(), end.escape_ascii());
            out.push(format!("[{start},{end}){}", names.join("+")));
        }
        out.join(" ")
    }

    #[test]
    fn fragments_are_cut_and_go_with_their_last_holder() {
        let mut locks = SpanLocks::default();
        locks.insert(&span("b", "f"), TxnId(1), LockMode::Shared);
        locks.insert(&span("d", "h"), TxnId(2), LockMode::Shared);
        assert_eq!(show(&locks), "[b,d)1 [d,f)1+2 [f,h)2");
        assert_eq!(locks.at(b"e").len(), 2);
        assert!(locks.at(b"a").is_empty() && locks.at(b"h").is_empty());
        assert_eq!(locks.overlapping(&span("c", "d")).count(), 1);
        assert_eq!(locks.overlapping(&span("a", "z")).count(), 3);
        locks.remove(&span("b", "f"), TxnId(1));
        assert_eq!(show(&locks), "[d,f)2 [f,h)2");
        locks.remove(&span("d", "h"), TxnId(2));
        assert_eq!(show(&locks), "");
    }

    #[test]
    fn a_span_locked_twice_stays_until_both_are_released() {
        let mut locks = SpanLocks::default();
        locks.insert(&span("b", "f"), TxnId(1), LockMode::Shared);
        locks.insert(&span("a", "d"), TxnId(1), LockMode::Exclusive);
        assert_eq!(show(&locks), "[a,b)1 [b,d)1 [d,f)1");
        locks.remove(&span("a", "d"), TxnId(1));
        assert_eq!(show(&locks), "[b,d)1 [d,f)1");
        locks.remove(&span("b", "f"), TxnId(1));
        assert_eq!(show(&locks), "");
    }
}
