//! Times that are closed: what was then is read at any replica, not only where the lease is.
//!
//! ```text
//!   leaseholder   entry 7 at 40 | entry 8 at 50 | says: 55 is closed with entry 8 | entry 9 at 60
//!   follower      applied 7: asks whoever has the lease | applied 8: reads at or below 55
//! ```
//!
//! Whoever serves a range says now and then what its clock shows, and its last entry. That is a
//! promise: whatever is written at or below that time lies in the log up to that entry, or never
//! happens. It holds for good, whatever becomes of the lease, the log and whoever has said it:
//!
//! 1. What it proposes later has a later time: its clock only goes forward.
//! 2. Other leases begin above the end of this one, which is above all that it has served.
//! 3. What was *prepared* is written later, at a time above its bound, and the bound is the time of
//!    the entry that has prepared it. So a part that may be written at or below the closed time is
//!    known to whoever has applied the entry; where one is in the way, the leaseholder is asked.
//! 4. Rows of the past that are taken in lie under keys that nobody has read or known of.
//!
//! A replica that has applied the entry answers reads of the past by itself, if they are as of a
//! time at or below: also when nobody else is there, and without being woken. Nothing in doubt is
//! read so: a reader that wants the newest state asks where the lease is. The idea is that of
//! closed timestamps (Taft et al., "CockroachDB: The Resilient Geo-Distributed SQL Database",
//! 2020).
//!
//! It costs a message to each other replica once a second, and nothing in ranges that sleep: those
//! say it last before they do. Who asks for a later time then wakes them.

use braid_consensus::LogIndex;
use braid_lsm::{CommitTs, KeySpan};

use crate::ids::{NodeId, RangeId};
use crate::raft_snapshot::Said;
use crate::replica::Replica;
use crate::replicas::Replicas;
use crate::request::{Ask, When};

/// From one promise of a range that is awake to the next.
const CLOSE_TICKS: u64 = 10;

/// What a leaseholder promises: all writes at or below the time lie in the log up to that entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) upto: CommitTs,
    pub(crate) last: LogIndex,
}

/// What a replica has been promised.
#[derive(Debug, Default)]
pub(crate) struct ClosedTimes {
    /// The entries of these promises are applied.
    upto: CommitTs,
    /// The oldest one of which they are not: newer ones do not take its place, or a replica that is
    /// always a little behind would never come to one.
    coming: Option<Closed>,
}

impl ClosedTimes {
    fn hear(&mut self, closed: Closed, applied: LogIndex) {
        if closed.last <= applied {
            self.upto = self.upto.max(closed.upto);
        } else if self.coming.is_none_or(|coming| coming.last <= applied) {
            self.settle(applied);
            self.coming = Some(closed);
        }
    }

    fn settle(&mut self, applied: LogIndex) {
        if let Some(come) = self.coming.take_if(|coming| coming.last <= applied) {
            self.upto = self.upto.max(come.upto);
        }
    }

    /// The newest time that is closed for whoever has applied that much.
    fn newest(&mut self, applied: LogIndex) -> CommitTs {
        self.settle(applied);
        self.upto
    }
}

impl Replica {
    /// Closes the time that it is now, if this replica serves it.
    fn close(&self) -> Option<Closed> {
        let upto = self.clocks.now();
        let may = self.proposes() && self.serves(upto);
        may.then(|| Closed { upto, last: self.group.last() })
    }

    /// Whether a time is closed here.
    fn is_closed(&mut self, when: &When) -> bool {
        let applied = self.machine.state.applied;
        when.limit == when.at && when.at <= self.closed.newest(applied)
    }

    /// Whether all that was ever written into these spans as of that time is here.
    pub(crate) fn has_closed(&mut self, spans: &[KeySpan], when: &When) -> bool {
        self.is_closed(when)
            && self.collected(when.at).is_none()
            && self.prepared_in(spans, when.at).is_none()
    }

    /// Whether a request is answered from what is here: one for a closed time, or for sizes, which
    /// are about right on any replica.
    pub(crate) fn needs_nobody(&mut self, ask: &Ask) -> bool {
        match ask {
            Ask::Get { when, .. } | Ask::Scan { when, .. } => self.is_closed(when),
            Ask::Divide(..) | Ask::StoredBytes(_) => true,
            _ => false,
        }
    }
}

impl Replicas {
    /// A tick has passed: where this node serves, it says up to when.
    pub(crate) fn tick_closed(&mut self) {
        if self.counts.ticks.is_multiple_of(CLOSE_TICKS) {
            self.quiet.sleepers.awake().into_iter().for_each(|range| self.say_closed(range));
        }
    }

    /// Says to all other replicas of a range up to when it is closed, if this node serves it.
    pub(crate) fn say_closed(&mut self, range: RangeId) {
        let Some(replica) = self.replicas.get(&range) else { return };
        let Some(closed) = replica.close() else { return };
        let all = replica.machine.state.descriptor.all_replicas().map(|(_, node)| node);
        let others: Vec<NodeId> = all.filter(|node| *node != self.options.node).collect();
        for node in others {
            self.say(range, node, &Said::Closed(closed));
        }
    }

    /// A time is closed in a range.
    pub(crate) fn hear_closed(&mut self, range: RangeId, closed: Closed) {
        if let Some(replica) = self.replicas.get_mut(&range) {
            replica.closed.hear(closed, replica.machine.state.applied);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_when_its_entry_is_applied_and_who_is_behind_comes_to_one_nevertheless() {
        let mut times = ClosedTimes::default();
        let closed = |upto, last| Closed { upto: CommitTs(upto), last: LogIndex(last) };
        times.hear(closed(10, 5), LogIndex(5));
        assert_eq!(times.newest(LogIndex(5)), CommitTs(10));
        times.hear(closed(20, 8), LogIndex(5));
        times.hear(closed(30, 9), LogIndex(6));
        assert_eq!(times.newest(LogIndex(7)), CommitTs(10));
        // The second one was not waited for.
        assert_eq!(times.newest(LogIndex(9)), CommitTs(20));
        times.hear(closed(40, 12), LogIndex(9));
        times.hear(closed(50, 13), LogIndex(12));
        assert_eq!(times.newest(LogIndex(12)), CommitTs(40));
        // Late and twice.
        times.hear(closed(20, 8), LogIndex(13));
        assert_eq!(times.newest(LogIndex(13)), CommitTs(50));
    }
}
