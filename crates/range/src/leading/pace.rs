//! What one event wants of thousands of ranges is done for some of them with each tick.
//!
//! ```text
//!   a node is silent    wakes r1 .. r32 | r33 .. r64 | r65 ..     if it is heard again, the
//!                       tick            tick         tick         rest sleeps on
//! ```
//!
//! A node with thousands of ranges that was not heard for a moment, since its machine was busy,
//! would otherwise wake them all; these are then in the way of the next words, until nobody hears
//! anybody any more, and votes never come to an end. Who is asked something does not wait for its
//! turn.

use std::collections::BTreeSet;

use crate::ids::{NodeId, RangeId};

/// So many ranges have their turn with one tick.
pub(crate) const AT_ONCE: usize = 32;

/// Whose turn it is, of ranges that want the same: all have theirs, also if some of them go on
/// wanting it since they cannot have what they want.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Who had the last one.
    last: Option<RangeId>,
}

impl Turns {
    /// Takes those whose turn it is of all that want one, in the order of ranges.
    pub(crate) fn take(&mut self, mut wanting: Vec<RangeId>) -> BTreeSet<RangeId> {
        if wanting.len() > AT_ONCE {
            let next = wanting.partition_point(|range| Some(*range) <= self.last);
            wanting.rotate_left(next);
            wanting.truncate(AT_ONCE);
            self.last = wanting.last().copied();
        }
        wanting.into_iter().collect()
    }
}

/// Why a range is to wake: a node is not heard of, or is there again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cause {
    pub(crate) node: NodeId,
    pub(crate) is: Seen,
}

/// What was seen of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Seen {
    /// Nothing, for too long.
    Silent,
    /// It is heard again.
    Back,
    /// Its process is another one.
    BegunAnew,
}

/// Ranges that are to wake, and what has happened.
#[derive(Debug, Default)]
pub(crate) struct Waking {
    waiting: BTreeSet<(RangeId, Cause)>,
    /// How many have woken since the last tick.
    woken: usize,
}

impl Waking {
    pub(crate) fn add(&mut self, range: RangeId, cause: Cause) {
        self.waiting.insert((range, cause));
    }

    /// A tick has passed.
    pub(crate) fn tick(&mut self) {
        self.woken = 0;
    }

    /// The next one that is to wake now.
    pub(crate) fn next(&mut self) -> Option<(RangeId, Cause)> {
        if self.woken == AT_ONCE {
            return None;
        }
        let next = self.waiting.pop_first()?;
        self.woken += 1;
        Some(next)
    }

    /// The last one did not have to wake.
    pub(crate) fn is_left_asleep(&mut self) {
        self.woken -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(from: u64, end: u64) -> Vec<RangeId> {
        (from..end).map(RangeId).collect()
    }

    #[test]
    fn few_have_their_turn_at_once_and_many_one_after_the_other() {
        let mut turns = Turns::default();
        assert_eq!(turns.take(ranges(0, 32)).len(), 32);
        // None of them gets what it wants.
        let of = |taken: BTreeSet<RangeId>| (taken.first().copied(), taken.last().copied());
        assert_eq!(of(turns.take(ranges(1, 71))), (Some(RangeId(1)), Some(RangeId(32))));
        assert_eq!(of(turns.take(ranges(1, 71))), (Some(RangeId(33)), Some(RangeId(64))));
        let third = turns.take(ranges(1, 71));
        assert_eq!(of(third.clone()), (Some(RangeId(1)), Some(RangeId(70))));
        assert!(third.contains(&RangeId(65)) && third.contains(&RangeId(26)));
        assert_eq!(turns.take(ranges(1, 71)).first(), Some(&RangeId(27)));
    }

    #[test]
    fn some_wake_with_each_tick_and_one_that_sleeps_on_takes_nobody_s_place() {
        let mut waking = Waking::default();
        let cause = Cause { node: NodeId(1), is: Seen::Silent };
        ranges(0, 40).into_iter().for_each(|range| waking.add(range, cause));
        ranges(0, 40).into_iter().for_each(|range| waking.add(range, cause));
        assert_eq!(waking.next(), Some((RangeId(0), cause)));
        waking.is_left_asleep();
        assert_eq!(std::iter::from_fn(|| waking.next()).count(), 32);
        assert_eq!(waking.next(), None);
        waking.tick();
        assert_eq!(std::iter::from_fn(|| waking.next()).count(), 7);
    }
}
