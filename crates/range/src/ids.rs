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
    /// Where its replicas are.
    pub replicas: Vec<(ReplicaId, NodeId)>,
}

impl RangeDescriptor {
    /// The replica on a node.
    pub(crate) fn replica_on(&self, node: NodeId) -> Option<ReplicaId> {
        self.replicas.iter().find(|(_, there)| *there == node).map(|(replica, _)| *replica)
    }

    /// The node of a replica.
    pub(crate) fn node_of(&self, replica: ReplicaId) -> Option<NodeId> {
        self.replicas.iter().find(|(id, _)| *id == replica).map(|(_, node)| *node)
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_number(out, self.id.0);
        put_span(out, &self.span);
        put_number(out, self.generation);
        put_number(out, self.replicas.len() as u64);
        for (replica, node) in &self.replicas {
            put_number(out, replica.0);
            put_number(out, node.0);
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<RangeDescriptor> {
        let id = RangeId(reader.number()?);
        let span = take_span(reader)?;
        let generation = reader.number()?;
        let mut replicas = Vec::new();
        for _ in 0..reader.number()? {
            replicas.push((ReplicaId(reader.number()?), NodeId(reader.number()?)));
        }
        Some(RangeDescriptor { id, span, generation, replicas })
    }
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
