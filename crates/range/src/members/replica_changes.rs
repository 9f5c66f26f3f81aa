//! Who has a replica changes by one replica at a time.
//!
//! ```text
//!   {1 2 3}     add r4 on n4      r4 gets what there is, and votes about nothing
//!   {1 2 3} 4   promote r4        not before r4 has nearly all of the log
//!   {1 2 3 4}   demote r3     r3 votes about nothing any more, and keeps all that it has
//!   {1 2 4} 3   remove r3     it goes
//!   {1 2 4}
//! ```
//!
//! A change is an entry of the log that carries a command, like everything else: it counts under
//! the lease under which it was proposed, once, and the descriptor changes in the same batch as its
//! place in the log. The group follows: who votes is always what the descriptor says.
//!
//! Why there never are two majorities:
//!
//! 1. Of two sets that follow each other one has one voter more, or one less: any majorities of
//!    theirs have a replica in common. The next change is proposed when the one before it is
//!    applied; who has it in its log knows that the one before it is committed, and does not stand
//!    for election before it has applied that.
//! 2. Who has the lease cannot be demoted, nor can a replica that does not vote get the lease. So
//!    the old lease's holder knows of the change before the next one can be granted.
//! 3. A replica goes, with its vote and its log, only when a later entry than the one that has
//!    demoted it is committed. If it went with that one, those who do not know yet that it is
//!    committed would go on to need its vote: of `{1 2 3 4}` r3 is gone, and if r1 is lost then, r2
//!    and r4 are no majority, though the set is `{1 2 4}` by now. Of those who have the later entry
//!    each knows that the demotion is committed, and without one of them nobody is elected.
//! 4. While a range that was split off is not founded, nothing changes ([`super::founding`]).
//! 5. Numbers of replicas are never used twice. A replica that was removed forgets nothing: it goes
//!    ([`super::retiring`]), and its number stays behind, so that no state of earlier times brings
//!    it back without what it had promised. What it says is not heard by anybody who knows that it
//!    was removed; it is told so instead.
//! 6. A node that comes back with an emptied disk is not let in under its number (`braid-node`).

use braid_consensus::codec::{Reader, put_number};
use braid_consensus::{Group, ReplicaChange, ReplicaId, ReplicaSet};

use crate::ids::{NodeId, RangeDescriptor};

/// A change of who has a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// A new replica, without a vote.
    Add(ReplicaId, NodeId),
    /// It gets a vote.
    Promote(ReplicaId),
    /// It loses its vote, and stays until it is removed.
    Demote(ReplicaId),
    /// It goes. It has no vote.
    Remove(ReplicaId),
}

impl Change {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let (kind, replica, node) = match self {
            Change::Add(replica, node) => (1, replica, node.0),
            Change::Promote(replica) => (2, replica, 0),
            Change::Remove(replica) => (3, replica, 0),
            Change::Demote(replica) => (4, replica, 0),
        };
        out.push(kind);
        put_number(out, replica.0);
        put_number(out, node);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Change> {
        let (kind, replica) = (reader.byte()?, ReplicaId(reader.number()?));
        let node = NodeId(reader.number()?);
        match kind {
            1 => Some(Change::Add(replica, node)),
            2 => Some(Change::Promote(replica)),
            3 => Some(Change::Remove(replica)),
            4 => Some(Change::Demote(replica)),
            _ => None,
        }
    }

    /// The same for the group.
    pub(crate) fn of_group(self) -> ReplicaChange {
        match self {
            Change::Add(replica, _) | Change::Demote(replica) => ReplicaChange::Learner(replica),
            Change::Promote(replica) => ReplicaChange::Voter(replica),
            Change::Remove(replica) => ReplicaChange::Remove(replica),
        }
    }
}

impl RangeDescriptor {
    /// Whether a replica votes, and so may have the lease.
    pub(crate) fn is_voter(&self, replica: ReplicaId) -> bool {
        self.replicas.iter().any(|(id, _)| *id == replica)
    }

    /// Whether a change is one of this range, while that replica has the lease.
    pub(crate) fn allows(&self, change: Change, holder: ReplicaId) -> bool {
        match change {
            Change::Add(replica, node) => {
                let is_new = replica == self.next_replica && self.replica_on(node).is_none();
                is_new && self.learners.is_empty() && self.leaving.is_empty()
            }
            Change::Promote(replica) => self.learners.iter().any(|(id, _)| *id == replica),
            Change::Demote(replica) => {
                let one_by_one = self.learners.is_empty() && self.leaving.is_empty();
                self.is_voter(replica) && replica != holder && one_by_one
            }
            Change::Remove(replica) => !self.is_voter(replica) && self.node_of(replica).is_some(),
        }
    }

    /// Carries a change out that is allowed.
    pub(crate) fn carry_out(&mut self, change: Change) {
        self.generation += 1;
        match change {
            Change::Add(replica, node) => {
                self.learners.push((replica, node));
                self.next_replica = ReplicaId(replica.0 + 1);
            }
            Change::Promote(replica) => {
                let promoted = self.learners.extract_if(.., |(id, _)| *id == replica);
                self.replicas.extend(promoted);
            }
            Change::Demote(replica) => {
                let demoted = self.replicas.extract_if(.., |(id, _)| *id == replica);
                self.leaving.extend(demoted);
            }
            Change::Remove(replica) => {
                self.learners.retain(|(id, _)| *id != replica);
                self.leaving.retain(|(id, _)| *id != replica);
            }
        }
    }
}

/// Why the group and the descriptor do not say the same, if they do not.
pub(crate) fn differ(group: &ReplicaSet, descriptor: &ReplicaSet, of: &Group) -> Option<String> {
    let differ = group != descriptor;
    differ.then(|| format!("{}: the group has {group}, its range {descriptor}", of.id()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RangeId;
    use braid_lsm::KeySpan;

    #[test]
    fn numbers_of_replicas_are_not_used_twice_and_changes_come_one_by_one() {
        let replicas = (1..=3).map(|n| (ReplicaId(n), NodeId(n))).collect();
        let mut range = RangeDescriptor::new(RangeId(1), KeySpan::new("a", "b"), replicas);
        let (one, four, five) = (ReplicaId(1), ReplicaId(4), ReplicaId(5));
        assert!(!range.allows(Change::Add(four, NodeId(3)), one), "it has one");
        assert!(!range.allows(Change::Add(five, NodeId(4)), one), "a number is left out");
        assert!(!range.allows(Change::Promote(ReplicaId(2)), one), "it votes");
        assert!(!range.allows(Change::Demote(one), one), "it has the lease");
        assert!(!range.allows(Change::Remove(ReplicaId(2)), one), "it votes");
        assert!(!range.allows(Change::Remove(four), one), "there is none");
        range.carry_out(Change::Add(four, NodeId(4)));
        assert!(!range.is_voter(four) && range.replica_on(NodeId(4)) == Some(four));
        assert!(!range.allows(Change::Add(five, NodeId(5)), one), "one at a time");
        range.carry_out(Change::Promote(four));
        range.carry_out(Change::Demote(ReplicaId(3)));
        assert!(!range.is_voter(ReplicaId(3)) && !range.has_removed(ReplicaId(3)));
        assert_eq!(range.replica_on(NodeId(3)), Some(ReplicaId(3)), "it is still there");
        assert!(!range.allows(Change::Promote(ReplicaId(3)), one), "it goes");
        assert!(!range.allows(Change::Demote(ReplicaId(2)), one), "one at a time");
        assert!(!range.allows(Change::Add(five, NodeId(5)), one), "one at a time");
        assert!(range.allows(Change::Remove(ReplicaId(3)), one));
        range.carry_out(Change::Remove(ReplicaId(3)));
        assert!(range.is_voter(four) && range.has_removed(ReplicaId(3)));
        assert!(!range.has_removed(four) && !range.has_removed(five));
        assert!(!range.allows(Change::Add(ReplicaId(3), NodeId(3)), one), "it was removed");
        assert!(range.allows(Change::Add(five, NodeId(3)), one), "it comes back as another one");
        assert_eq!(range.generation, 5);
    }

    #[test]
    fn changes_round_trip_and_cuts_are_noticed() {
        let replica = ReplicaId(300);
        for change in
            [Change::Add(replica, NodeId(7)), Change::Promote(replica), Change::Demote(replica)]
                .into_iter()
                .chain([Change::Remove(replica)])
        {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            assert_eq!(Change::decode(&mut Reader::new(&bytes)), Some(change));
            for len in 0..bytes.len() {
                assert_eq!(Change::decode(&mut Reader::new(&bytes[..len])), None);
            }
        }
    }
}
