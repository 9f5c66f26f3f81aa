//! What is asked of a range, and what it answers. All of it is data.

use std::sync::Arc;

use braid_kv::{
    Conflict, GotMany, Grant, KvError, LockMany, LockReport, Reads, ScanMany, ScannedMany,
    ShownRange, Target, TxnId as LockTxn,
};
use braid_lsm::{CommitTs, KeySpan};
use bytes::Bytes;

use crate::command::{Split, Write};
use crate::ids::{NodeId, RangeDescriptor, RangeId, TxnId};
use crate::prepared::{Anchor, Decision};

/// Tells the answers to a node's requests apart.
pub type RequestNumber = u64;

/// The number of requests that a node makes of itself: nobody hears the answer.
pub(crate) const NOBODY: RequestNumber = 0;

/// A question to a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Whom it is for, as far as the asker knows.
    pub range: RangeId,
    /// What.
    pub ask: Ask,
}

impl Request {
    /// A question to a node, whatever ranges it has.
    pub fn of_node(ask: Ask) -> Request {
        Request { range: RangeId(0), ask }
    }
}

/// What the clocks of nodes showed after a reader had begun. Each has said so because it was asked
/// ([`Ask::Clock`]), or is the reader's own: whatever it stamps above that, wherever, came later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetClocks(pub Arc<[(NodeId, CommitTs)]>);

impl MetClocks {
    /// Up to when a node may have stamped something before the reader began that it has stamped up
    /// to `end`.
    pub(crate) fn bound(&self, (node, end): (NodeId, CommitTs)) -> CommitTs {
        let clock = self.0.iter().find(|(met, _)| *met == node);
        clock.map_or(end, |(_, clock)| end.min(*clock))
    }
}

/// Which state is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct When {
    /// Every commit at or before this timestamp.
    pub at: CommitTs,
    /// What was written up to here may have happened before the reader began.
    pub limit: CommitTs,
    /// What the clock of the node that is asked showed at some time after the reader began, if
    /// that is known: what it has written later came later.
    pub observed: Option<CommitTs>,
    /// Of what whoever served the range has been certain when it answered this reader, if it has
    /// ([`crate::AnswerTimes`]): what is written there above that, by whomever, came later. A lease
    /// that moves changes nothing.
    pub served: Option<CommitTs>,
    /// Of those that stamp what is written there from afar, and of earlier holders.
    pub met: MetClocks,
}

impl When {
    /// As of a timestamp, whatever was written later.
    pub fn exactly(at: CommitTs) -> When {
        When { at, limit: at, observed: None, served: None, met: MetClocks::default() }
    }
}

/// The locks that a transaction has in a range: the sequence of the lease with which their table
/// began. They go when another process gets the lease.
pub type LockSession = u64;

/// Locks that a transaction relies on, in one range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLocks {
    /// Whose.
    pub owner: LockTxn,
    /// Since when: they must still be there.
    pub session: LockSession,
    /// All of them are inside of this span.
    pub span: KeySpan,
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
    /// The values of keys.
    Get {
        /// Each is answered.
        keys: Vec<Bytes>,
        /// Which state.
        when: When,
    },
    /// Rows of spans. Its time and its cursors do not count.
    Scan {
        /// What.
        request: ScanMany,
        /// Which state.
        when: When,
    },
    /// A transaction of which all writes are in this range: what was read must still hold, then
    /// all writes happen at one timestamp.
    Commit(CommitAsk),
    /// A part of a transaction over several ranges: what was read must still hold, then nothing
    /// gets in its way until it is known whether the transaction has happened.
    Prepare(PrepareAsk),
    /// What has become of a transaction over several ranges; it was decided.
    Resolve {
        /// Which.
        txn: TxnId,
        /// What.
        decision: Decision,
        /// The keys for which this is asked; `None`: whatever the range has.
        span: Option<KeySpan>,
    },
    /// Whether a transaction over several ranges has happened. If nobody knows of it, it never
    /// will.
    Decide {
        /// Which.
        txn: TxnId,
        /// The range that has this key knows.
        anchor: Bytes,
    },
    /// All that waited for the outcome of a transaction over several ranges know it.
    Settle {
        /// Which.
        txn: TxnId,
        /// As in [`Ask::Decide`].
        anchor: Bytes,
    },
    /// Transactions over several ranges that are not at their end here after a while.
    Unfinished,
    /// The ranges that the node leads and that have such transactions, of whatever age: see
    /// [`Request::of_node`]. Those that have none need not be asked.
    UnfinishedRanges,
    /// Whether what was read still holds, and the locks are still there.
    Validate {
        /// Which locks.
        locks: Option<HeldLocks>,
        /// Nothing newer than that,
        floor: CommitTs,
        /// and nothing up to here will come.
        through: CommitTs,
        /// What was read.
        reads: Reads,
    },
    /// Locks, one after the other.
    Lock(LockAsk),
    /// The transaction does not wait any longer for what it asked for at this step.
    GiveUp {
        /// Who.
        txn: LockTxn,
        /// Which request.
        step: u64,
    },
    /// Gives locks back.
    Release {
        /// Of whom.
        txn: LockTxn,
        /// As in [`LockAsk`].
        step: u64,
        /// Which. Not held: nothing happens.
        targets: Vec<Target>,
        /// All that it has in this range.
        ended: bool,
    },
    /// A coordinator is there, and leads these transactions. Others of its own up to `newest` have
    /// ended: their locks go.
    Running {
        /// The newest one that it has begun.
        newest: LockTxn,
        /// Those that have not ended.
        running: Vec<LockTxn>,
    },
    /// A transaction that may have locks in this range waits in another one.
    WaitsFor {
        /// Who.
        txn: LockTxn,
        /// Who waits for whom, from this one on; nobody: it waits no more.
        waits: Vec<WaitReport>,
    },
    /// Rows at a timestamp of the past, for keys that nobody else knows and that were never
    /// written.
    Ingest {
        /// Names it. Asking again with the same name never makes it happen twice.
        txn: TxnId,
        /// When.
        at: CommitTs,
        /// What.
        rows: Vec<(Bytes, Bytes)>,
    },
    /// Keys that cut a span into about even parts of at least so many bytes; how many at most.
    Divide(KeySpan, usize, u64),
    /// About how many bytes a span has in files.
    StoredBytes(KeySpan),
    /// The locks, to look at.
    ShowLocks,
    /// The transactions of a router read as of no earlier time, and none that begins will. Of a
    /// node: see [`Request::of_node`].
    ReadsFrom {
        /// Tells the router from others.
        coordinator: u64,
        /// When.
        oldest: CommitTs,
    },
    /// A lease on locks is wanted back: see [`Request::of_node`] and [`crate::Recalls`].
    Recall {
        /// Of this process of the node.
        coordinator: u64,
    },
    /// A process is gone: nothing is looked at any more that it has sent, and its locks are free.
    /// Of a node: see [`Request::of_node`].
    Fence {
        /// Of the process.
        coordinator: u64,
    },
    /// What the node's clock shows, which every answer says: see [`Request::of_node`].
    Clock,
    /// All ranges that the node has replicas of, to look at: see [`Request::of_node`].
    ShowRanges,
    /// The same, for who looks for keys.
    Ranges,
    /// Splits the range. Answered like a request for keys that it does not have, once it was.
    Split(Split),
    /// The same in front of this key, into a range that the node gives a number.
    SplitAt(Bytes),
}

/// Asks for a commit: see [`Ask::Commit`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitAsk {
    /// Who. Asking again with the same name never makes it happen twice.
    pub txn: TxnId,
    /// As of when it has read.
    pub read_at: CommitTs,
    /// What it has read.
    pub reads: Reads,
    /// Its locks in this range, which must still be there.
    pub locks: Option<HeldLocks>,
    /// It must not happen later than that.
    pub not_after: Option<CommitTs>,
    /// It must not happen earlier: what is prepared elsewhere has these bounds.
    pub not_before: CommitTs,
    /// What it writes here.
    pub writes: Vec<Write>,
    /// What it touches in other ranges, where it is prepared.
    pub anchor: Option<Anchor>,
}

/// Asks to prepare: see [`Ask::Prepare`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrepareAsk {
    /// As in [`CommitAsk`]. Asking again with the same name gives the same answer.
    pub txn: TxnId,
    /// Whose locks are to be kept.
    pub owner: LockTxn,
    /// Its locks in this range, which must still be there.
    pub locks: Option<HeldLocks>,
    /// The range that has this key will know whether it has happened.
    pub anchor: Bytes,
    /// As of when it has read.
    pub read_at: CommitTs,
    /// What it has read.
    pub reads: Reads,
    /// What it writes.
    pub writes: Vec<Write>,
}

/// Asks for locks: see [`Ask::Lock`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockAsk {
    /// What.
    pub request: LockMany,
    /// Grows with every request of the transaction for locks. Asking again with the same one
    /// gives the same answer. 0: aside of the others, whatever became of them; nobody is waited
    /// for, and locks that it has already are given again.
    pub step: u64,
    /// The locks that it has in this range already, as far as it knows.
    pub session: Option<LockSession>,
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
        /// The node whose clock has chosen that.
        by: NodeId,
    },
    /// To [`Ask::Prepare`]: it can happen from this timestamp on.
    Prepared {
        /// Not below.
        bound: CommitTs,
    },
    /// The transaction has not happened and never will: others have ended it.
    Aborted,
    /// Nothing has happened so far: an older transaction is prepared there, and this one may keep
    /// that one waiting elsewhere. It gives up what it has prepared, and begins its commit anew.
    Yield,
    /// Nothing has happened so far: a transaction is in the way which should be at its end by now.
    /// Somebody should find out what has become of it.
    Blocked {
        /// Which.
        txn: TxnId,
        /// The range that has this key knows.
        anchor: Bytes,
    },
    /// To [`Ask::Unfinished`].
    Unfinished(Unfinished),
    /// To [`Ask::Get`].
    Got(GotMany),
    /// To [`Ask::Scan`].
    Scanned(ScannedMany),
    /// Something was written about when the reader began. Reading as of this timestamp, or a later
    /// one, is certain.
    Uncertain(CommitTs),
    /// To [`Ask::Validate`]: nothing has changed. To [`Ask::Release`] and [`Ask::Running`]: done.
    /// To [`Ask::Recall`]: it was given back; else that is answered with [`Answer::Again`]. To
    /// [`Ask::Fence`]: done.
    Fine,
    /// What it has read was changed, or its locks are gone: it has not happened and will not.
    Conflict(Conflict),
    /// Nothing has happened: it would be later than it must be.
    TooLate,
    /// To [`Ask::Lock`] and [`Ask::GiveUp`].
    Locked(Locked),
    /// To [`Ask::Lock`], again and again: it is not granted yet. Whoever asks again finds the
    /// request in its place.
    Waits {
        /// Who waits for whom, from the asker on, as far as is known here.
        waits: Vec<WaitReport>,
    },
    /// To [`Ask::Divide`].
    Divided(Vec<Bytes>),
    /// To [`Ask::StoredBytes`].
    Stored(u64),
    /// To [`Ask::ShowLocks`].
    Locks(LockReport),
    /// To [`Ask::ShowRanges`], in key order.
    ShownRanges(Vec<ShownRange>),
    /// To [`Ask::Ranges`] and [`Ask::UnfinishedRanges`].
    Ranges(Vec<RangeDescriptor>),
    /// Nothing has happened here: another replica may serve.
    NotHolder {
        /// Which, as far as this one knows.
        try_node: Option<NodeId>,
    },
    /// Nothing has happened here: the range has other keys. It never had the request's, or gave
    /// them away. To a commit and to rows of a bulk load only whoever has the lease says so.
    WrongRange {
        /// What the range is now, and some others of which the node has replicas.
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
    /// Nothing has happened: a majority of the range's disks has no room for what adds data.
    DiskFull,
    /// To [`Ask::Recall`]: a process of the node had it that is gone.
    OfPredecessor {
        /// Which it may have asked something, beside those that the asker knows of.
        nodes: Vec<NodeId>,
    },
}

/// Answers [`Ask::Unfinished`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Prepared, and the keys of those who know what has become of them.
    pub prepared: Vec<(TxnId, Bytes)>,
    /// Decided here, with those who may not know it.
    pub decided: Vec<(TxnId, Decision, Anchor)>,
}

/// Answers [`Ask::Lock`]: grants for the first items, and why there are no more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locked {
    /// To be named with later requests.
    pub session: LockSession,
    /// In the order of the items.
    pub grants: Vec<Grant>,
    /// Why the last grant is no good, or the item after it was not granted.
    pub stop: Option<LockStop>,
    /// Nanoseconds for which somebody else had to be waited for.
    pub waited_nanos: u64,
}

/// Whom a transaction waits for, as the range in which it waits has said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitReport {
    /// Who waits.
    pub txn: LockTxn,
    /// By which of its steps.
    pub step: u64,
    /// For whom.
    pub whom: Vec<LockTxn>,
    /// Microseconds since that was so, as far as whoever passes it on knows.
    pub age_micros: u64,
}

/// Why there are no more locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockStop {
    /// Something newer is there.
    Newer(Conflict),
    /// One is not free.
    NotFree,
    /// One was not free in time.
    TimedOut,
    /// Waiting would have closed this circle.
    Deadlock(String),
    /// The asker gave up.
    GivenUp,
}

impl From<LockStop> for KvError {
    fn from(stop: LockStop) -> KvError {
        match stop {
            LockStop::Newer(conflict) => KvError::Retry { conflict },
            LockStop::NotFree => KvError::LockNotAvailable,
            LockStop::TimedOut => KvError::LockTimeout,
            LockStop::Deadlock(cycle) => KvError::Deadlock { cycle },
            LockStop::GivenUp => KvError::Canceled,
        }
    }
}
