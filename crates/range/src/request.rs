//! What is asked of a range, and what it answers. All of it is data.

use braid_lsm::{CommitTs, KeySpan};
use bytes::Bytes;

use crate::command::{Split, Write};
use crate::ids::{NodeId, RangeDescriptor, RangeId, TxnId};

/// Tells the answers to a node's requests apart.
pub type RequestNumber = u64;

/// A question to a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Whom it is for, as far as the asker knows.
    pub range: RangeId,
    /// What.
    pub ask: Ask,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// The rows of some spans, as of one timestamp.
    Read {
        /// Which; each is answered in key order.
        spans: Vec<KeySpan>,
        /// As of when; `None`: now.
        at: Option<CommitTs>,
        /// Bytes of keys and values after which the answer ends. One row is always given.
        bytes: usize,
    },
    /// A transaction of which all writes are in this range: what was read must still hold, then
    /// all writes happen at one timestamp.
    Commit {
        /// Who. Asking again with the same name never makes it happen twice.
        txn: TxnId,
        /// As of when it has read.
        read_at: CommitTs,
        /// What it has read.
        reads: Vec<KeySpan>,
        /// What it writes.
        writes: Vec<Write>,
    },
    /// Splits the range. Answered like a request for keys that it does not have, once it was.
    Split(Split),
}

/// What a range answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Ask::Read`].
    Rows {
        /// As of when.
        at: CommitTs,
        /// Keys and values, span after span.
        rows: Vec<(Bytes, Bytes)>,
        /// What was not come to.
        rest: Vec<KeySpan>,
    },
    /// The transaction has happened, now or when it was asked for before.
    Committed {
        /// When.
        at: CommitTs,
    },
    /// The transaction has not happened and will not: what it has read was changed.
    Conflict {
        /// When.
        newest: CommitTs,
    },
    /// Nothing has happened here: another replica may serve.
    NotHolder {
        /// Which, as far as this one knows.
        try_node: Option<NodeId>,
    },
    /// Nothing has happened here: the range has other keys. It never had the request's, or gave
    /// them away.
    WrongRange {
        /// What the range is now, and others of which the node has replicas.
        known: Vec<RangeDescriptor>,
    },
    /// There is no such range on the node.
    NoReplica,
    /// Nothing has happened so far of this request, for now; ask again.
    Again,
    /// A transaction that began too long ago: whether it has happened is not known any more.
    OutcomeUnknown,
    /// The request cannot be carried out, now or later.
    Refused(String),
}
