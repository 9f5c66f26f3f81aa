//! A range that was split off is *founded* when a majority of its replicas is there.
//!
//! ```text
//!   left   [a                z)   i9 i10=split ... i14=founded    i15 r1 loses its vote
//!   right            [m      z)            i1 ...
//! ```
//!
//! A split is committed when a majority of the left range has its entry *in the log*. Who has only
//! that has the right range's rows nowhere else: they come into being when the entry is applied.
//! So the left range must not throw such a log away before enough replicas of the right one are
//! there:
//!
//! - It may not lose replicas, nor get others: one that goes takes its log along, and those that
//!   come later do not belong to the right range. Else all nodes of the left range could be
//!   exchanged until one node alone has the right one.
//! - Its log is not cut: who is behind gets the left range's state then, and never applies the
//!   split.
//!
//! Until then the right range is in the left one's list of `unfounded` ones, which is part of its
//! state: a command puts it there, another one takes it out. That a majority is there shows in the
//! right range's own log: each replica that has acknowledged an entry of it exists. Its birth is
//! durable before it acknowledges any (`Replicas::bear`), and later than that the left range's
//! replica may go.
//!
//! Who leads the left range may have no replica of the right one: then it asks the other nodes.

use braid_consensus::{LogIndex, Result};

use crate::command::Act;
use crate::ids::{NodeId, RangeId};
use crate::raft_snapshot::Said;
use crate::replica::{Matter, Replica};
use crate::replicas::Replicas;
use crate::request::NOBODY;

/// Every so many ticks other nodes are asked.
const ASK_TICKS: u64 = 17;

impl Replica {
    /// Ranges that were split off this one, led from here, and are not known to be founded.
    fn awaited(&self) -> &[RangeId] {
        match self.group.is_leader() {
            true => &self.machine.state.unfounded,
            false => &[],
        }
    }

    /// Proposes that a range is founded.
    fn note_founded(&mut self, range: RangeId) -> Result<()> {
        let matter = Matter::Founded(range);
        let ts = self.next_write();
        let is_proposed = self.pending.values().any(|pending| pending.matter == matter);
        if !is_proposed && self.proposes() && self.serves(ts) {
            let place = (ts, Vec::new(), Vec::new());
            self.propose_for(NOBODY, matter, place, Act::Founded(range))?;
        }
        Ok(())
    }
}

impl Replicas {
    /// Whether this node knows that a range is founded. Its replica here may have gone since then:
    /// that is decided by a majority, too.
    pub(crate) fn is_founded(&self, range: RangeId) -> bool {
        let has_entries = |replica: &Replica| replica.machine.state.applied > LogIndex(0);
        self.replicas.get(&range).is_some_and(has_entries)
            || self.absent.retired.contains_key(&range)
    }

    /// Time has passed for ranges that were split off.
    pub(crate) fn tick_founding(&mut self) -> Result<()> {
        let asks = self.counts.ticks.is_multiple_of(ASK_TICKS);
        let mut questions = Vec::new();
        let awaited = |left: RangeId| {
            let awaited = self.replicas.get(&left).map_or(&[][..], Replica::awaited);
            awaited.iter().map(|right| (left, *right)).collect::<Vec<_>>()
        };
        // Who waits for that does not sleep.
        let awake = self.quiet.sleepers.awake().into_iter();
        let pairs: Vec<(RangeId, RangeId)> = awake.flat_map(awaited).collect();
        for (left, right) in pairs {
            if self.is_founded(right) {
                self.conclude_founding(left, right)?;
            } else if asks {
                questions.push((left, right));
            }
        }
        for (left, right) in questions {
            let of_range = &self.replicas[&left].machine.state.descriptor;
            let members = self.moves.placement.nodes();
            let nodes = of_range.all_replicas().map(|(_, node)| node).chain(members);
            let others: std::collections::BTreeSet<NodeId> =
                nodes.filter(|node| *node != self.options.node).collect();
            others.iter().for_each(|node| self.say(right, *node, &Said::IsFounded));
        }
        Ok(())
    }

    /// Another node has said that a range is founded.
    pub(crate) fn hear_of_founding(&mut self, right: RangeId) -> Result<()> {
        let waits = |replica: &Replica| replica.awaited().contains(&right);
        let left = self.replicas.iter().find(|(_, replica)| waits(replica));
        match left.map(|(left, _)| *left) {
            Some(left) => self.conclude_founding(left, right),
            None => Ok(()),
        }
    }

    fn conclude_founding(&mut self, left: RangeId, right: RangeId) -> Result<()> {
        if let Some(replica) = self.replicas.get_mut(&left) {
            // The lease of a range that nobody asks anything is over.
            replica.wanted = true;
            replica.note_founded(right)?;
            self.touch(left);
        }
        Ok(())
    }
}
