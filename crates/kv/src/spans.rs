//! The seam: what a transaction asks of the place where keys are kept.
//!
//! ```text
//!   Txn            buffer, read set, savepoints, retries, what it holds     at its coordinator
//!   ── trait Spans ──────────────────────────────────────────── requests and answers are data ──
//!   the far side   entries, locks, validation, timestamps                    today: one `Store`
//! ```
//!
//! Requests and answers are owned data: keys, spans, timestamps, modes, a transaction's id. Nothing
//! in them points into an engine, and nothing is pinned over there from one request to the next:
//! what was read at a timestamp reads the same at any later request. A scan may leave a *cursor*
//! behind, a number that saves the search for its place; whoever does not know the number goes on
//! from the key, with the same answer.
//!
//! Everything that is asked for many keys can be asked at once. [`crate::TxnStats::requests`]
//! counts what a transaction has asked.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use braid_lsm::{Batch, CommitTs, KeySpan, RowBatch};
use bytes::Bytes;

use crate::error::{KvError, KvResult};
use crate::locks::leased::LeaseLimit;
use crate::locks::{LockMode, Target, TxnId, Wait};
use crate::read_set::Reads;
use crate::row_form::KeyNames;
use crate::watch::{Watch, Watched};

/// Which state a request reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAt {
    /// Every commit at or before this timestamp.
    Time(CommitTs),
    /// The newest committed state.
    Latest,
}

/// What the far side has looked at to make an answer, and how long that is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Entries, visible or not, wanted or not.
    pub entries: u64,
    /// Range tombstones below which something was passed over.
    pub tombstones: u64,
    /// Blocks, cached or not.
    pub blocks: u64,
    /// Of these, those that were not in the cache.
    pub blocks_from_disk: u64,
    /// Bytes of keys and values of the answer.
    pub bytes: u64,
}

impl Work {
    /// What both are.
    #[must_use]
    pub fn plus(self, other: Work) -> Work {
        Work {
            entries: self.entries + other.entries,
            tombstones: self.tombstones + other.tombstones,
            blocks: self.blocks + other.blocks,
            blocks_from_disk: self.blocks_from_disk + other.blocks_from_disk,
            bytes: self.bytes + other.bytes,
        }
    }

    /// What has come since then, of numbers that only grow.
    #[must_use]
    pub fn since(self, before: Work) -> Work {
        Work {
            entries: self.entries - before.entries,
            tombstones: self.tombstones - before.tombstones,
            blocks: self.blocks - before.blocks,
            blocks_from_disk: self.blocks_from_disk - before.blocks_from_disk,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// Asks for the values of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetMany {
    /// In any order; each is answered.
    pub keys: Vec<Bytes>,
    /// The state.
    pub at: ReadAt,
    /// Whether the answer says what of it is not durable yet.
    pub notes: bool,
}

/// Answers [`GetMany`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GotMany {
    /// In the order of the keys.
    pub values: Vec<Option<Bytes>>,
    /// The newest thing that was seen and is not durable yet.
    pub undurable: Option<CommitTs>,
    /// What was looked at.
    pub work: Work,
}

/// Answers for one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GotOne {
    /// The value.
    pub value: Option<Bytes>,
    /// The newest thing that was seen and is not durable yet.
    pub undurable: Option<CommitTs>,
    /// What was looked at.
    pub work: Work,
}

/// After a row of these classes a scan goes on at the row's key followed by this suffix: what lies
/// inside of the row is not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jump {
    /// Bit n stands for class n.
    pub classes: u32,
    /// What is put behind the key.
    pub suffix: Bytes,
}

/// Asks for the first rows of several spans, or for the next ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanMany {
    /// What is left of each span.
    pub scans: Vec<SpanScan>,
    /// The state.
    pub at: ReadAt,
    /// From the end of each span to its start.
    pub reverse: bool,
    /// Only rows of these classes: bit n stands for class n.
    pub classes: u32,
    /// What is passed over after a row.
    pub jump: Option<Jump>,
    /// Rows after which the answer ends, over all spans. Spans that were not come to are answered
    /// with no rows and all of the span left.
    pub rows: usize,
    /// Bytes of keys and values after which the answer ends.
    pub bytes: usize,
    /// Whether the answer says what of it is not durable yet.
    pub notes: bool,
    /// Whether many rows of a block may come as a part of it, where the store is near. A hint: it
    /// changes no row.
    pub blocks: bool,
}

/// One span of [`ScanMany`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanScan {
    /// What is left of it.
    pub span: KeySpan,
    /// Rows after which this span's part of the answer ends.
    pub rows: usize,
    /// Whether the rest of the span will be asked for, as far as the asker knows.
    pub more: bool,
    /// What the answer to the request before said.
    pub cursor: Option<u64>,
}

/// A part of the answer to [`ScanMany`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanRows {
    /// Keys and values. They are the answer's own: blocks that the batch keeps are held in memory
    /// and nothing else.
    pub rows: Arc<RowBatch>,
    /// What is left of the span; `None`: nothing.
    pub rest: Option<KeySpan>,
    /// Saves the search for the rest's place.
    pub cursor: Option<u64>,
}

/// Answers [`ScanMany`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedMany {
    /// In the order of the spans.
    pub parts: Vec<SpanRows>,
    /// The timestamp that was read at: whoever asked for the newest state goes on with this one.
    pub at: CommitTs,
    /// The newest thing that was seen and is not durable yet.
    pub undurable: Option<CommitTs>,
    /// What was looked at.
    pub work: Work,
}

/// One lock of [`LockMany`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockItem {
    /// A key or a span.
    pub target: Target,
    /// How strong.
    pub mode: LockMode,
    /// Whether nothing newer than the request's timestamp may be stored there.
    pub check: bool,
}

/// Asks for locks, one after the other in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockMany {
    /// For whom.
    pub txn: TxnId,
    /// What.
    pub items: Vec<LockItem>,
    /// What the holder has seen: checks compare with it.
    pub read_ts: CommitTs,
    /// What to do about one that is not free. The ones before it stay granted.
    pub wait: Wait,
    /// How long to wait for one lock.
    pub timeout: Option<Duration>,
}

/// Asks for one lock: as [`LockMany`], without a list.
#[derive(Clone, Copy, Debug)]
pub struct LockOne<'a> {
    /// For whom.
    pub txn: TxnId,
    /// What.
    pub item: &'a LockItem,
    /// What the holder has seen: checks compare with it.
    pub read_ts: CommitTs,
    /// What to do if it is not free.
    pub wait: Wait,
    /// How long to wait for it.
    pub timeout: Option<Duration>,
}

/// What became of a lock that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// It is held; if a check was asked for, nothing newer was there.
    Held,
    /// It is held, and something newer is there: the last one of its answer.
    Newer,
    /// It was not free and the asker wants to pass over it.
    Skipped,
}

/// Answers [`LockMany`]: grants for the first items, and why there are no more.
#[derive(Debug, Default)]
pub struct LockedMany {
    /// In the order of the items.
    pub grants: Vec<Grant>,
    /// Why the last grant is no good, or the item after it was not granted.
    pub error: Option<KvError>,
    /// Nanoseconds for which somebody else had to be waited for.
    pub waited_nanos: u64,
}

/// Answers [`LockOne`].
#[derive(Debug, Default)]
pub struct LockedOne {
    /// What became of it.
    pub grant: Option<Grant>,
    /// Why the grant is no good, or there is none.
    pub error: Option<KvError>,
    /// As in [`LockedMany`].
    pub waited_nanos: u64,
}

/// Asks whether nothing of this has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validate {
    /// Since then.
    pub floor: CommitTs,
    /// Up to there: no later change has a timestamp at or below this one.
    pub through: CommitTs,
    /// What.
    pub reads: Reads,
}

/// What a transaction writes.
#[derive(Clone, Debug)]
pub enum Writes {
    /// Puts, deletes and deleted spans.
    Batch(Batch),
    /// Finished ssts of a bulk load, by name.
    Files(Vec<PathBuf>),
}

/// Asks to make a transaction happen: reads still true, then all writes, at one timestamp.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Whose locks protect what is written.
    pub txn: TxnId,
    /// What it has read is as of this timestamp.
    pub read_ts: CommitTs,
    /// What must still be as it was read; `None` below SERIALIZABLE.
    pub reads: Option<Reads>,
    /// What it writes.
    pub writes: Writes,
    /// Keys among those of a batch that get the time of the commit.
    pub names: KeyNames,
    /// Somebody will ask for it with [`Spans::await_durable`].
    pub waits: bool,
    /// It must not happen later than that: it relies on a lease on locks.
    pub not_after: Option<LeaseLimit>,
}

/// Answers [`Commit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// When it has happened.
    pub at: CommitTs,
    /// How many places had to agree: 1, unless it wrote into several ranges.
    pub participants: u64,
}

/// Who may have a lease on locks: see [`LockLeases`](crate::LockLeases).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseHolder {
    /// The node.
    pub node: u64,
    /// Its process, whose number is not used again.
    pub coordinator: u64,
}

/// Whose leases on locks a coordinator's are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseHome {
    /// Who.
    pub holder: LeaseHolder,
    /// No two clocks differ by more, in microseconds.
    pub max_clock_offset_us: u64,
}

/// Answers a transaction's begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Never given out before or again.
    pub txn: TxnId,
    /// What it reads. What it can see is kept until [`Spans::leave`].
    pub read_ts: CommitTs,
}

/// See the [module's page](self).
///
/// Blocking: a thread that asks waits for the answer. The flag `stop` of [`Spans::lock_many`] is no
/// part of the request: whoever carries the request elsewhere watches it, and says so there.
pub trait Spans: Send + Sync {
    /// Begins a transaction that reads the present, or the past.
    fn begin(&self, as_of: Option<CommitTs>) -> KvResult<Begun>;

    /// Another read timestamp for a transaction, instead of `old`: now.
    fn refresh(&self, txn: TxnId, old: CommitTs) -> CommitTs;

    /// The same for a reader that keeps this view while it tells others what it sees, so that it
    /// cannot read at a later time once it is in doubt about what was there before. Asks others if
    /// there are any, and waits for them a moment at most.
    fn settle(&self, txn: TxnId, old: CommitTs) -> CommitTs {
        self.refresh(txn, old)
    }

    /// A transaction has ended.
    fn leave(&self, txn: TxnId, read_ts: CommitTs);

    /// Whether all running transactions have begun after this one, which has ended.
    fn all_younger_than(&self, txn: TxnId) -> bool;

    /// A number that no other call has returned or will return, also after a restart, as long as
    /// what is made of it is committed. Grows with time.
    fn unique_number(&self) -> i64;

    /// Physical clock, microseconds since 1970.
    fn wall_clock_us(&self) -> u64;

    /// What clients are told that the time is, in microseconds since 1970: the physical clock; but
    /// what was written up to then includes all that was acknowledged here, so it is ahead of that
    /// where commits are stamped by the clocks of others. By no more than these may differ.
    fn told_clock_us(&self) -> u64 {
        self.wall_clock_us()
    }

    /// Reads keys.
    fn get_many(&self, request: &GetMany) -> KvResult<GotMany>;

    /// Reads one key: as [`Spans::get_many`], without lists.
    fn get(&self, key: &[u8], at: ReadAt, notes: bool) -> KvResult<GotOne> {
        let keys = vec![Bytes::copy_from_slice(key)];
        let mut got = self.get_many(&GetMany { keys, at, notes })?;
        let value = got.values.pop().flatten();
        Ok(GotOne { value, undurable: got.undurable, work: got.work })
    }

    /// Reads rows of spans.
    fn scan_many(&self, request: &ScanMany) -> KvResult<ScannedMany>;

    /// Keys that cut a span into at most `parts` parts of about the same number of stored bytes,
    /// each of at least `least` bytes; fewer where less is stored.
    fn divide(&self, span: &KeySpan, parts: usize, least: u64) -> KvResult<Vec<Bytes>>;

    /// About how many bytes a span has in files; what was written last is not in one yet.
    fn stored_bytes(&self, span: &KeySpan) -> KvResult<u64>;

    /// Forgets a cursor.
    fn close_cursor(&self, cursor: u64);

    /// Takes locks.
    fn lock_many(&self, request: LockMany, stop: &AtomicBool) -> LockedMany;

    /// Takes one lock: as [`Spans::lock_many`], without lists.
    fn lock(&self, request: LockOne<'_>, stop: &AtomicBool) -> LockedOne {
        let LockOne { txn, item, read_ts, wait, timeout } = request;
        let items = vec![item.clone()];
        let answer = self.lock_many(LockMany { txn, items, read_ts, wait, timeout }, stop);
        let (grant, error) = (answer.grants.first().copied(), answer.error);
        LockedOne { grant, error, waited_nanos: answer.waited_nanos }
    }

    /// Gives locks back. `ended`: the transaction holds and wants nothing else.
    fn release(&self, txn: TxnId, targets: &[Target], ended: bool);

    /// Whether all locks are there that a transaction has been given: for one that ends without
    /// having written anything. Whoever writes hears of that with the commit.
    ///
    /// # Errors
    /// [`KvError::Retry`] with [`Conflict::LocksLost`](crate::Conflict::LocksLost).
    fn check_locks(&self, _txn: TxnId) -> KvResult<()> {
        Ok(())
    }

    /// Takes locks for a transaction that may ask for others at the same time, or wait for one: no
    /// one is waited for. All of them or, with an error, nobody knows which.
    ///
    /// # Errors
    /// [`KvError::LockNotAvailable`] if one is not free, [`KvError::Retry`] if earlier ones are
    /// lost.
    fn lock_aside(&self, request: LockMany) -> KvResult<()> {
        self.lock_many(request, &AtomicBool::new(false)).error.map_or(Ok(()), Err)
    }

    /// Whose leases on locks there can be; `None`: all who lock something are in this process.
    fn lease_home(&self) -> Option<LeaseHome> {
        None
    }

    /// Whether this process holds a lease, or is about to get one: until it says no, whoever
    /// recalls it is told to wait.
    fn holds_lease(&self, _held: bool) {}

    /// Blocks until somebody recalls the lease, but not for longer than that; whether somebody has.
    fn await_recall(&self, _patience: Duration) -> bool {
        false
    }

    /// Asks for a lease back; whether its holder has given it back. If not, a moment has passed.
    fn recall(&self, _holder: LeaseHolder) -> bool {
        false
    }

    /// Whether reads are still true.
    fn validate(&self, request: &Validate) -> KvResult<()>;

    /// Makes a transaction happen; it is visible, and maybe not durable, when this returns.
    fn commit(&self, request: Commit) -> KvResult<Committed>;

    /// How many ranges have to agree when this is written. A store is one.
    fn participants(&self, writes: &[KeySpan]) -> KvResult<u64> {
        Ok(u64::from(!writes.is_empty()))
    }

    /// Whether it takes finished ssts: [`Writes::Files`] and [`Spans::ingest`].
    fn takes_files(&self) -> bool {
        false
    }

    /// Whether keys can get the time of their commit: [`Commit::names`].
    fn gives_key_times(&self) -> bool {
        false
    }

    /// Takes ssts in at this timestamp, which lies in the past: for spans that nobody else knows.
    /// Durable when it returns.
    fn ingest(&self, files: &[PathBuf], at: CommitTs) -> KvResult<()>;

    /// Watches what commits touch, from now on: every later commit, and each with a timestamp above
    /// those that a transaction sees which has begun before.
    fn watch(&self, watch: Watch) -> u64;

    /// What commits up to `upto`, which are all visible, have touched since the last question.
    fn watched(&self, watch: u64, upto: CommitTs) -> Watched;

    /// Ends a watch.
    fn unwatch(&self, watch: u64);

    /// Blocks until every commit up to `ts` that somebody waits for is durable.
    fn await_durable(&self, ts: CommitTs) -> KvResult<()>;

    /// The locks, to look at.
    fn describe_locks(&self) -> LockReport;

    /// Makes a key the first one of a range, if it is not; nothing but the ranges changes.
    fn split_at(&self, _key: &[u8]) -> KvResult<()> {
        Err(KvError::Unavailable("keys are in one store, and there are no ranges".into()))
    }

    /// The ranges in key order, as this node has them; `None`: keys are in one store, and there are
    /// no ranges.
    fn describe_ranges(&self) -> KvResult<Option<Vec<ShownRange>>> {
        Ok(None)
    }

    /// All nodes that the cluster ever had, by number; none if there is no cluster.
    fn describe_nodes(&self) -> Vec<ShownNode> {
        Vec::new()
    }

    /// This node goes by the cluster's settings of a version, at least: others are told.
    fn goes_by_settings(&self, _version: u64) {}

    /// Blocks until some node tells of settings that are newer than `known`, but not for longer
    /// than that; the newest version that was told of.
    fn await_settings(&self, known: u64, _patience: Duration) -> u64 {
        known
    }

    /// Asks a node something that only its sessions' side understands; blocks until it has
    /// answered, but not for longer than that. `None`: it has not.
    fn call_node(&self, _node: u64, _body: Bytes, _patience: Duration) -> Option<Bytes> {
        None
    }

    /// The next thing that another node asks; blocks until there is one, but not for longer than
    /// that.
    fn next_call(&self, _patience: Duration) -> Option<NodeCall> {
        None
    }

    /// Answers what another node has asked; it may be lost.
    fn answer_call(&self, _call: &NodeCall, _answer: Bytes) {}

    /// There are so many messages of sessions to each other, at least: other nodes are told.
    fn has_messages(&self, _count: u64) {}

    /// Blocks until some node tells of more messages than are `known` (`None`: of any that this one
    /// has not heard of), but not for longer than that.
    fn await_messages(&self, _known: Option<u64>, _patience: Duration) {}

    /// By which version of the settings each node goes, as far as it has said so.
    fn settings_of_nodes(&self) -> Vec<NodeSettings> {
        Vec::new()
    }
}

/// What another node asks of this one's sessions' side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCall {
    /// Who asks.
    pub from: u64,
    /// Tells it from others of that node.
    pub number: u64,
    /// What, as both sides understand it.
    pub body: Bytes,
}

/// What a node has said of the cluster's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSettings {
    /// Its number.
    pub node: u64,
    /// The version that it goes by.
    pub version: u64,
    /// How long ago it has said anything.
    pub silent: Duration,
}

/// A range, to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownRange {
    /// Its number.
    pub id: u64,
    /// The keys that it has.
    pub span: KeySpan,
    /// The nodes that have a replica.
    pub replicas: Vec<u64>,
    /// The node whose lease is not over.
    pub leaseholder: Option<u64>,
    /// About how many bytes it has in files.
    pub bytes: u64,
    /// What is about to change in who has a replica, and why; `None`: nothing.
    pub moves: Option<String>,
}

/// A node of a cluster, to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownNode {
    /// Its number.
    pub id: u64,
    /// Where it listens for the others.
    pub address: String,
    /// Where it is, as `region=eu,zone=a`; empty if it has not said.
    pub locality: String,
    /// What the cluster wants of it, or that it is not connected to the node that is asked.
    pub state: &'static str,
}

/// Locks as text, and how many requests wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockReport {
    /// One line per lock or waiting request, in key order.
    pub lines: String,
    /// Number of requests that wait.
    pub waiting: usize,
    /// The same locks and requests as data.
    pub locks: Vec<ShownLock>,
}

/// A lock that is held or waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownLock {
    /// By whom.
    pub txn: TxnId,
    /// Of what.
    pub target: Target,
    /// How strong.
    pub mode: LockMode,
    /// Held.
    pub granted: bool,
}

impl ShownLock {
    /// Whether it is held, and keeps another transaction's request waiting.
    pub fn blocks(&self, request: &ShownLock) -> bool {
        self.granted
            && !request.granted
            && self.txn != request.txn
            && self.target.overlaps(&request.target)
            && self.mode.excludes(request.mode)
    }
}
