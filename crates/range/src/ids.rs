//! Who and what: nodes, ranges and transactions.

use std::fmt;

use braid_consensus::codec::{Reader, put_number};
use braid_consensus::{GroupId, ReplicaId};
use braid_lsm::{CommitTs, KeySpan};
use bytes::Bytes;

/// A process of the cluster with its store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// A range. Never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RangeId(pub u64);

impl RangeId {
    /// The group of its replicas.
    pub fn group(self) -> GroupId {
        GroupId(self.0)
    }
}

/// A transaction, as its coordinator has named it: the name of one try to commit. Whoever asks
/// again for the same commit uses the same name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId {
    /// When it began, by the coordinator's clock.
    pub began: CommitTs,
    /// Tells it from others that began then.
    pub number: u64,
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl fmt::Debug for RangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "range {}", self.0)
    }
}

impl fmt::Debug for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "txn {}/{}", self.began, self.number)
    }
}

/// What a range is: its keys and its replicas. The one that a replica has applied is the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeDescriptor {
    /// Which.
    pub id: RangeId,
    /// Its keys.
    pub span: KeySpan,
    /// Grows with each change of the descriptor.
    pub generation: u64,
    /// Where its replicas are that vote.
    pub replicas: Vec<(ReplicaId, NodeId)>,
    /// Where replicas are that do not vote yet: they are given what the others have.
    pub learners: Vec<(ReplicaId, NodeId)>,
    /// Where replicas are that have voted, vote no more, and are about to go.
    pub leaving: Vec<(ReplicaId, NodeId)>,
    /// The next replica has this number: none of its numbers is used twice, so one below it that
    /// is not listed was removed.
    pub next_replica: ReplicaId,
}

impl RangeDescriptor {
    /// A range that begins with these replicas.
    pub fn new(id: RangeId, span: KeySpan, replicas: Vec<(ReplicaId, NodeId)>) -> RangeDescriptor {
        let next_replica = number_behind(&replicas);
        let (learners, leaving) = (Vec::new(), Vec::new());
        RangeDescriptor { id, span, generation: 1, replicas, learners, leaving, next_replica }
    }

    /// All replicas, whether they vote or not.
    pub(crate) fn all_replicas(&self) -> impl Iterator<Item = (ReplicaId, NodeId)> {
        self.replicas.iter().chain(&self.learners).chain(&self.leaving).copied()
    }

    /// The replica on a node.
    pub fn replica_on(&self, node: NodeId) -> Option<ReplicaId> {
        self.all_replicas().find(|(_, there)| *there == node).map(|(replica, _)| replica)
    }

    /// The replica on a node, if it votes.
    pub(crate) fn voter_on(&self, node: NodeId) -> Option<ReplicaId> {
        self.replicas.iter().find(|(_, there)| *there == node).map(|(replica, _)| *replica)
    }

    /// The node of a replica.
    pub(crate) fn node_of(&self, replica: ReplicaId) -> Option<NodeId> {
        self.all_replicas().find(|(id, _)| *id == replica).map(|(_, node)| node)
    }

    /// Whether a replica was removed, and so will never belong to the range again.
    pub(crate) fn has_removed(&self, replica: ReplicaId) -> bool {
        replica < self.next_replica && self.node_of(replica).is_none()
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_number(out, self.id.0);
        put_span(out, &self.span);
        put_number(out, self.generation);
        put_replicas(out, &self.replicas);
        put_replicas(out, &self.learners);
        put_number(out, self.next_replica.0);
        put_replicas(out, &self.leaving);
    }

    /// Reads what was encoded as part of a range's state of that version.
    pub(crate) fn decode(reader: &mut Reader<'_>, version: u8) -> Option<RangeDescriptor> {
        let id = RangeId(reader.number()?);
        let span = take_span(reader)?;
        let generation = reader.number()?;
        let replicas = take_replicas(reader)?;
        // Before version 3 replicas could not change.
        let (learners, next_replica) = match version {
            ..3 => (Vec::new(), number_behind(&replicas)),
            _ => (take_replicas(reader)?, ReplicaId(reader.number()?)),
        };
        let leaving = if version < 4 { Vec::new() } else { take_replicas(reader)? };
        Some(RangeDescriptor { id, span, generation, replicas, learners, leaving, next_replica })
    }
}

fn number_behind(replicas: &[(ReplicaId, NodeId)]) -> ReplicaId {
    ReplicaId(replicas.iter().map(|(replica, _)| replica.0).max().unwrap_or(0) + 1)
}

fn put_replicas(out: &mut Vec<u8>, replicas: &[(ReplicaId, NodeId)]) {
    put_number(out, replicas.len() as u64);
    for (replica, node) in replicas {
        put_number(out, replica.0);
        put_number(out, node.0);
    }
}

fn take_replicas(reader: &mut Reader<'_>) -> Option<Vec<(ReplicaId, NodeId)>> {
    let mut replicas = Vec::new();
    for _ in 0..reader.number()? {
        replicas.push((ReplicaId(reader.number()?), NodeId(reader.number()?)));
    }
    Some(replicas)
}

pub(crate) fn put_span(out: &mut Vec<u8>, span: &KeySpan) {
    braid_consensus::codec::put_bytes(out, &span.start);
    braid_consensus::codec::put_bytes(out, &span.end);
}

pub(crate) fn take_span(reader: &mut Reader<'_>) -> Option<KeySpan> {
    let start = Bytes::copy_from_slice(reader.bytes()?);
    Some(KeySpan::new(start, Bytes::copy_from_slice(reader.bytes()?)))
}

pub(crate) fn put_txn(out: &mut Vec<u8>, txn: TxnId) {
    put_number(out, txn.began.0);
    put_number(out, txn.number);
}

pub(crate) fn take_txn(reader: &mut Reader<'_>) -> Option<TxnId> {
    Some(TxnId { began: CommitTs(reader.number()?), number: reader.number()? })
}
