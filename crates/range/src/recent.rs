//! What was written a moment ago: which of it within a short time, and not only how new the newest
//! is.
//!
//! A reader who is in doubt about the time between two clocks must not be kept waiting by what is
//! written all the time, and later than that.

use std::collections::VecDeque;

use braid_lsm::{CommitTs, KeySpan};

/// Writes that are remembered.
const MOST: usize = 1024;
/// Keys of one commit that are; of more, the span that holds them all.
const MOST_OF_ONE: usize = 32;

/// See the [module's page](self).
pub(crate) struct Recent {
    writes: VecDeque<(CommitTs, KeySpan)>,
    /// Nothing is known of what was written up to here.
    forgotten: CommitTs,
}

impl Recent {
    /// Nothing is known of what was written up to there.
    pub(crate) fn since(forgotten: CommitTs) -> Recent {
        Recent { writes: VecDeque::new(), forgotten }
    }

    /// Something was written.
    pub(crate) fn note(&mut self, at: CommitTs, spans: impl Iterator<Item = KeySpan>) {
        let mut spans: Vec<KeySpan> = spans.collect();
        if spans.len() > MOST_OF_ONE {
            let start = spans.iter().map(|span| span.start.clone()).min().unwrap_or_default();
            let end = spans.iter().map(|span| span.end.clone()).max().unwrap_or_default();
            spans = vec![KeySpan::new(start, end)];
        }
        self.writes.extend(spans.into_iter().map(|span| (at, span)));
        while self.writes.len() > MOST {
            let (at, _) = self.writes.pop_front().expect("there are some");
            self.forgotten = self.forgotten.max(at);
        }
    }

    /// The newest change of a span above `floor` and not above `ceiling`, if there was one. `None`:
    /// that is not known any more.
    pub(crate) fn newest_between(
        &self,
        span: &KeySpan,
        floor: CommitTs,
        ceiling: CommitTs,
    ) -> Option<Option<CommitTs>> {
        if floor < self.forgotten {
            return None;
        }
        let within = |(at, written): &&(CommitTs, KeySpan)| {
            floor < *at && *at <= ceiling && written.overlaps(span)
        };
        Some(self.writes.iter().filter(within).map(|(at, _)| *at).max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: usize) -> KeySpan {
        KeySpan::point(format!("k{n:04}").as_bytes())
    }

    #[test]
    fn what_is_remembered_is_exact_and_what_is_forgotten_is_said_to_be() {
        let mut recent = Recent::since(CommitTs(10));
        recent.note(CommitTs(20), [key(1)].into_iter());
        recent.note(CommitTs(15), [key(2)].into_iter());
        recent.note(CommitTs(30), [key(1)].into_iter());
        let between = |recent: &Recent, n, floor, ceiling| {
            let found = recent.newest_between(&key(n), CommitTs(floor), CommitTs(ceiling));
            found.map(|newest| newest.map(|at| at.0))
        };
        assert_eq!(between(&recent, 1, 9, 40), None);
        assert_eq!(between(&recent, 1, 10, 19), Some(None));
        assert_eq!(between(&recent, 1, 10, 20), Some(Some(20)));
        assert_eq!(between(&recent, 1, 20, 29), Some(None));
        assert_eq!(between(&recent, 1, 20, 30), Some(Some(30)));
        assert_eq!(between(&recent, 2, 10, 40), Some(Some(15)));
        assert_eq!(between(&recent, 3, 10, 40), Some(None));
        // Of many keys at once the span between them is remembered.
        recent.note(CommitTs(40), (100..200).map(key));
        assert_eq!(between(&recent, 150, 30, 40), Some(Some(40)));
        assert_eq!(between(&recent, 200, 30, 40), Some(None));
        for n in 0..MOST as u64 {
            recent.note(CommitTs(50 + n), [key(300)].into_iter());
        }
        assert_eq!(between(&recent, 1, 39, 100), None);
        assert_eq!(between(&recent, 1, 40, 100), Some(None));
    }
}
