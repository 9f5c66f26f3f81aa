//! One transaction: reads, writes, locks, savepoints, end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use braid_env::memory::{self, Account};
use braid_lsm::{BatchWrite, CommitTs, KeySpan};
use bytes::Bytes;
use foldhash::HashMap;
use parking_lot::Mutex;

use crate::ahead::Ahead;
use crate::buffer::{Lookup, write_memory};
use crate::bulk::{BulkFiles, BulkLoad};
use crate::coordinator::Coordinator;
use crate::error::{Conflict, KvError, KvResult};
use crate::locking::{Patience, lock_memory};
use crate::locks::leased::Leased;
use crate::locks::{LockMode, Target, TxnId, Wait};
use crate::own_writes::OwnWrites;
use crate::read_set::{ReadMark, ReadSet};
use crate::row_form::{KeyNames, KeyTime};
use crate::shown::Shown;
use crate::spans::{Begun, Commit, Committed, LockItem, Spans, Validate, Work, Writes};
use crate::tally::{Counts, Network, StopsBy, Tally};

/// A large value that was read is there so many times: as it was read, as a value, in a message.
const COPIES: usize = 3;

/// Most writes of a transaction with [`Txn::name`]: their batch is made while other commits wait.
const MOST_WITH_TIMES: usize = 10_000;

/// Locks that are released without letting others at the table.
pub(crate) const RELEASED_AT_ONCE: usize = 256;

/// Writes of one transaction go to disk when they take this part of the node's memory,
const SPILL_PART: usize = 16;
/// but not fewer bytes than this
const SPILL_LEAST: usize = 8 << 20;
/// nor more than this.
const SPILL_MOST: usize = 256 << 20;
/// Where the node has less to give at present than so many times that, it is this part of it.
const SPILL_PART_OF_ROOM: usize = 4;
/// Where memory is refused, it helps to move so many bytes.
pub(crate) const WORTH_SPILLING: usize = 1 << 20;

/// Isolation levels of SQL, as PostgreSQL names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// As if transactions ran one after the other.
    #[default]
    Serializable,
    /// One view for the whole transaction (snapshot isolation).
    RepeatableRead,
    /// One view for each statement.
    ReadCommitted,
}

/// How a transaction runs.
#[derive(Clone)]
pub struct TxnOptions {
    /// Default SERIALIZABLE.
    pub isolation: Isolation,
    /// Refuse writes.
    pub read_only: bool,
    /// Read at this timestamp in the past; implies `read_only`.
    pub as_of: Option<CommitTs>,
    /// Raised by others to stop waiting for locks and other nodes. `None`: over other nodes by
    /// what [stops](Tally::stop_by) the thread that begins it, if anything does.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Give up waiting for one lock after this long.
    pub lock_timeout: Option<Duration>,
    /// Commit returns before the commit is durable (`synchronous_commit = off`).
    pub async_commit: bool,
    /// Notes what was read before it was durable: whoever hands it out settles that first.
    pub shown: Option<Arc<Shown>>,
    /// Keys, rows or locks that one request asks for at most. 1: one by one, for tests.
    pub batch: usize,
    /// Bytes of writes beyond which they go to disk, and of locks beyond which they are many, for
    /// tests; `None`: by the node's memory.
    pub spill: Option<usize>,
}

/// Default of [`TxnOptions::batch`].
const BATCH: usize = 1024;

impl Default for TxnOptions {
    fn default() -> TxnOptions {
        TxnOptions {
            isolation: Isolation::default(),
            read_only: false,
            as_of: None,
            cancel: None,
            lock_timeout: None,
            async_commit: false,
            shown: None,
            batch: BATCH,
            spill: None,
        }
    }
}

/// A position to roll back to. Later savepoints die with the rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavepointId {
    pub(crate) writes: usize,
    locks: usize,
}

/// Where a statement began; see [`Txn::retry_statement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementMark {
    writes: usize,
    reads: ReadMark,
}

/// Answer of [`Txn::lock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// The lock is held.
    Yes,
    /// Somebody else holds it and the caller said [`Wait::SkipLocked`].
    Skipped,
}

/// Work done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxnStats {
    /// Point reads.
    pub gets: u64,
    /// Rows returned by closed scans.
    pub rows_scanned: u64,
    /// Point writes.
    pub writes: u64,
    /// Range tombstones.
    pub span_deletes: u64,
    /// Requests to the far side (see [`Spans`]) that were answered.
    pub requests: u64,
    /// What was sent to other nodes for them, by those who asked. What is looked after later, and
    /// by others, does not count.
    pub network: Network,
    /// Different ranges that were asked since [`Txn::begin_touching`]; 0 on a node that is alone.
    pub ranges_touched: u64,
    /// How many ranges the commit had to agree in; 0 before it, and without writes.
    pub participants: u64,
    /// Nanoseconds that the commit took, until it was durable; 0 before it.
    pub commit_nanos: u64,
    /// What was looked at there for point reads and scans.
    pub work: Work,
    /// Requests that had to wait for a lock of somebody else, and nanoseconds of that.
    pub lock_waits: u64,
    /// See `lock_waits`.
    pub lock_wait_nanos: u64,
}

/// See the [crate documentation](crate). All methods take `&self`; one transaction may be used from
/// several threads, for instance by the operators of one query. Dropping it rolls it back.
pub struct Txn {
    coordinator: Arc<Coordinator>,
    id: TxnId,
    pub(crate) options: TxnOptions,
    /// How long it waits for a lock.
    pub(crate) patience: Patience,
    cancel: Arc<AtomicBool>,
    /// Bytes of writes that stay in memory; of locks, if a lock on a span can stand for them.
    pub(crate) spill_at: usize,
    pub(crate) state: Mutex<State>,
    /// Locks under a lease of the node. Locked before the state.
    pub(crate) leased: Mutex<Leased>,
    pub(crate) counts: Counts,
}

/// All that a transaction is, at its coordinator. Nothing of it is anywhere else but its locks, and
/// the promise that what its read timestamp sees is kept.
pub(crate) struct State {
    pub(crate) read_ts: CommitTs,
    pub(crate) own: OwnWrites,
    pub(crate) reads: ReadSet,
    /// Keys that the commit depends on for the whole transaction.
    pub(crate) depends_on: BTreeSet<Bytes>,
    /// Answers that are not used yet.
    pub(crate) ahead: Ahead,
    /// Keys that get the time of the commit. What was taken back may be among them.
    pub(crate) names: KeyNames,
    /// A bulk load that enters the store at commit.
    attached: Option<BulkFiles>,
    pub(crate) held: HashMap<Bytes, Held>,
    /// By start. Of spans with the same start the last.
    pub(crate) held_spans: BTreeMap<Bytes, (KeySpan, Held)>,
    /// Locks in the order in which they were first taken.
    pub(crate) acquired: Vec<Target>,
    pub(crate) scans: OpenScans,
    pub(crate) ended: bool,
    /// Locks that it had are gone: only another transaction can do what it wanted to.
    pub(crate) locks_lost: bool,
    pub(crate) memory: Counted,
    /// The account of the statement that runs.
    payer: Weak<Account>,
}

/// Scans that will still report what they read at the read timestamp of their start, with the span
/// that they were opened for.
#[derive(Default)]
pub(crate) struct OpenScans {
    pub(crate) open: BTreeMap<u64, KeySpan>,
    pub(crate) next: u64,
}

/// Memory of a transaction.
pub(crate) struct Counted {
    /// Of what was written, as far as it is not on disk.
    pub(crate) written: memory::Held,
    /// Of what must be known of writes on disk.
    layered: memory::Held,
    /// Of the locks.
    pub(crate) locked: memory::Held,
    /// Of what was read, in steps.
    noted: memory::Held,
}

/// The reads of a transaction are counted again when they have grown or shrunk by so much.
const READS_STEP: usize = 64 << 10;

/// A lock that is held.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    pub(crate) mode: LockMode,
    /// Whether "nothing newer than the read timestamp" has been seen true under this lock.
    pub(crate) checked: bool,
}

impl Txn {
    pub(crate) fn new(coordinator: Arc<Coordinator>, begun: Begun, options: TxnOptions) -> Txn {
        let cancel = options.cancel.clone().unwrap_or_default();
        let account = coordinator.memory().account(usize::MAX);
        let state = State {
            read_ts: begun.read_ts,
            own: OwnWrites::default(),
            reads: ReadSet::default(),
            depends_on: BTreeSet::new(),
            ahead: Ahead::default(),
            names: KeyNames::default(),
            attached: None,
            held: HashMap::default(),
            held_spans: BTreeMap::new(),
            acquired: Vec::new(),
            scans: OpenScans::default(),
            ended: false,
            locks_lost: false,
            memory: Counted {
                written: account.hold("the transaction's writes"),
                layered: account.hold("the transaction's writes on disk"),
                locked: account.hold("the transaction's locks"),
                noted: account.hold("the transaction's reads"),
            },
            payer: Weak::new(),
        };
        let (state, counts) = (Mutex::new(state), Counts::default());
        let leased = Mutex::default();
        let share = coordinator.memory().limit() / SPILL_PART;
        let spill_at = options.spill.unwrap_or_else(|| share.clamp(SPILL_LEAST, SPILL_MOST));
        let (id, patience) = (begun.txn, Patience::new(options.lock_timeout));
        Txn { coordinator, id, options, patience, cancel, spill_at, state, leased, counts }
    }

    /// Identity within this process.
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// What reads see: every commit at or before this timestamp.
    pub fn read_ts(&self) -> CommitTs {
        self.state.lock().read_ts
    }

    /// The isolation level.
    pub fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    /// Whether writes are refused.
    pub fn read_only(&self) -> bool {
        self.options.read_only || self.options.as_of.is_some()
    }

    /// Where it was begun.
    pub fn coordinator(&self) -> &Arc<Coordinator> {
        &self.coordinator
    }

    /// Keys, rows or locks that one request asks for at most.
    pub fn batch_max(&self) -> usize {
        self.options.batch
    }

    /// Work done so far.
    pub fn stats(&self) -> TxnStats {
        TxnStats {
            gets: self.counts.gets.load(Ordering::Relaxed),
            rows_scanned: self.counts.rows_scanned.load(Ordering::Relaxed),
            writes: self.counts.writes.load(Ordering::Relaxed),
            span_deletes: self.counts.span_deletes.load(Ordering::Relaxed),
            requests: self.counts.requests.load(Ordering::Relaxed),
            network: self.counts.sent.network(),
            ranges_touched: self.counts.sent.touched.load(Ordering::Relaxed),
            participants: self.counts.participants.load(Ordering::Relaxed),
            commit_nanos: self.counts.commit_nanos.load(Ordering::Relaxed),
            work: self.counts.work(),
            lock_waits: self.counts.lock_waits.load(Ordering::Relaxed),
            lock_wait_nanos: self.counts.lock_wait_nanos.load(Ordering::Relaxed),
        }
    }

    /// From here on other ranges are counted as [`TxnStats::ranges_touched`].
    pub fn begin_touching(&self) {
        self.counts.sent.begin_touching();
    }

    /// How many ranges would have to agree if it committed now; `None` where its writes are too
    /// many to be looked through.
    ///
    /// # Errors
    /// Of finding the ranges.
    pub fn participants_so_far(&self) -> KvResult<Option<u64>> {
        let batch = {
            let state = self.state.lock();
            if state.own.has_layers() {
                return Ok(None);
            }
            state.own.to_batch()
        };
        let span = |write| match write {
            BatchWrite::Put(key, _) | BatchWrite::Delete(key) => KeySpan::point(key),
            BatchWrite::DeleteSpan(start, end) => KeySpan::new(start.to_vec(), end.to_vec()),
        };
        let spans: Vec<KeySpan> = batch.writes().map(span).collect();
        self.spans().participants(&spans).map(Some)
    }

    /// Whether nothing was written so far.
    pub fn is_clean(&self) -> bool {
        self.state.lock().own.is_empty()
    }

    /// Whether it holds no lock: nobody waits for it then.
    pub fn is_unlocked(&self) -> bool {
        self.state.lock().acquired.is_empty() && !self.has_leased()
    }

    /// Large values that are read from now on are paid from this account, of a statement, as long
    /// as it lives.
    pub fn pay_from(&self, account: &Arc<Account>) {
        self.state.lock().payer = Arc::downgrade(account);
    }

    /// So many bytes were read, which is more than anybody would ask for: a large value is among
    /// them. See [`Account::pass`].
    pub(crate) fn pass(&self, bytes: usize) -> KvResult<()> {
        if bytes < memory::LARGE_VALUE {
            return Ok(());
        }
        let payer = self.state.lock().payer.upgrade();
        Ok(payer.map_or(Ok(()), |account| account.pass(bytes, COPIES))?)
    }

    /// Tells the transaction that a statement starts. Under READ COMMITTED it moves the read
    /// timestamp to now; otherwise it does nothing.
    pub fn begin_statement(&self) -> KvResult<()> {
        self.open_state()?.ahead.clear();
        if self.options.isolation == Isolation::ReadCommitted && self.options.as_of.is_none() {
            self.refresh(&mut *self.open_state()?);
        }
        Ok(())
    }

    /// Forgets all writes and reads, keeps the locks, and moves the read timestamp to now: for
    /// running a whole transaction again after [`KvError::Retry`]. Keeping the locks is what makes
    /// the second try succeed.
    ///
    /// # Errors
    /// [`KvError::Retry`] when locks are lost: then another transaction must try it.
    pub fn restart(&self) -> KvResult<()> {
        self.begin_anew(false)
    }

    /// Restarts for the first statement of a block. If it keeps its view from now on, others are
    /// asked once, so that no later statement is in doubt: see [`Spans::settle`].
    ///
    /// # Errors
    /// As [`Txn::restart`].
    pub fn restart_to_stay(&self) -> KvResult<()> {
        let keeps = self.options.isolation == Isolation::RepeatableRead || self.read_only();
        self.begin_anew(keeps && self.options.as_of.is_none())
    }

    fn begin_anew(&self, stays: bool) -> KvResult<()> {
        // A node that is alone asks nobody.
        let _asking = self.coordinator.leases().filter(|_| stays).map(|_| self.count_request());
        let mut state = self.open_state()?;
        state.check_locks()?;
        state.own = OwnWrites::default();
        state.memory.written.release();
        state.memory.layered.release();
        state.reads.clear();
        state.memory.noted.release();
        state.depends_on.clear();
        match stays {
            true => {
                state.ahead.clear();
                state.read_ts = self.spans().settle(self.id, state.read_ts);
            }
            false => self.refresh(&mut state),
        }
        Ok(())
    }

    /// Remembers where a statement begins.
    pub fn begin_retryable(&self) -> StatementMark {
        let mut state = self.state.lock();
        StatementMark { writes: state.own.begin_statement(), reads: state.reads.mark() }
    }

    /// Makes a statement that failed with [`KvError::Retry`] ready to run again: takes back what
    /// it wrote and read, keeps its locks, and moves the read timestamp to now.
    ///
    /// The transaction stays serializable because what it read *before* the statement is first
    /// found unchanged: it might as well have begun now. (CockroachDB calls this a read refresh.)
    ///
    /// # Errors
    /// [`KvError::Retry`] when something read before has changed, a scan is still open, locks are
    /// lost, or the isolation level promises one view: then only the whole transaction can be run
    /// again.
    pub fn retry_statement(&self, mark: StatementMark) -> KvResult<()> {
        let mut state = self.open_state()?;
        state.check_locks()?;
        state.take_back(mark.writes);
        state.reads.forget_since(mark.reads);
        let fixed =
            self.options.isolation == Isolation::RepeatableRead || self.options.as_of.is_some();
        if fixed || (self.records_reads() && !state.scans.open.is_empty()) {
            return Err(KvError::Retry { conflict: Conflict::FixedView });
        }
        self.move_view(&mut state)
    }

    /// Moves the read timestamp to now, if nothing that was read has changed since the old one.
    pub(crate) fn move_view(&self, state: &mut State) -> KvResult<()> {
        let old = state.read_ts;
        self.refresh(state);
        // After the new timestamp was chosen: every commit up to it is visible to this check.
        // Descriptors count too, and go on counting.
        if !state.depends_on.is_empty() && !self.is_fixed_between(old, state.read_ts) {
            let depends_on: Vec<Bytes> = state.depends_on.iter().cloned().collect();
            depends_on.iter().for_each(|key| state.reads.add_point(key));
        }
        if !self.records_reads() {
            return Ok(());
        }
        let _asking = self.count_request();
        let through = state.read_ts;
        let request = Validate { floor: old, through, reads: state.reads.take() };
        let unchanged = self.spans().validate(&request);
        state.reads.put_back(request.reads);
        unchanged
    }

    pub(crate) fn refresh(&self, state: &mut State) {
        state.ahead.clear();
        state.read_ts = self.spans().refresh(self.id, state.read_ts);
    }

    /// Writes a row. Locks the key exclusively first.
    pub fn put(&self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> KvResult<()> {
        self.write(key.into(), Some(value.into()), LockMode::Exclusive)
    }

    /// Writes another value to a row of which nothing changes that others may rely on under
    /// [`LockMode::KeyShare`].
    pub fn put_same_key(&self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> KvResult<()> {
        self.write(key.into(), Some(value.into()), LockMode::NoKeyExclusive)
    }

    /// Deletes a row. Locks the key exclusively first.
    pub fn delete(&self, key: impl Into<Bytes>) -> KvResult<()> {
        self.write(key.into(), None, LockMode::Exclusive)
    }

    fn write(&self, key: Bytes, slot: Option<Bytes>, mode: LockMode) -> KvResult<()> {
        self.check_writable()?;
        self.lock(&key, mode, Wait::Block)?;
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        let mut state = self.open_state()?;
        debug_assert!(!state.own.looks_back(), "nobody writes while looking back");
        self.take_for_write(&mut state, write_memory(&key, &slot))?;
        state.own.set(key, slot);
        Ok(())
    }

    /// Says of a key that was put that it is a name: at commit the time gets to these places.
    /// Until then it can be read by this name alone. `guarded`: nobody else deletes a span in
    /// which it may come to lie.
    ///
    /// # Errors
    /// When the far side cannot do that: see [`Txn::gives_key_times`].
    pub fn name(&self, key: impl Into<Bytes>, times: Vec<KeyTime>, guarded: bool) -> KvResult<()> {
        let form = self.coordinator().row_form().filter(|_| self.gives_key_times());
        let Some(form) = form else {
            return Err(KvError::Unavailable("keys get no time of a commit here".into()));
        };
        let key = key.into();
        let future = {
            let mut state = self.open_state()?;
            state.names.add(key.clone(), times);
            state.names.future(&key, form, state.read_ts)
        };
        if !guarded {
            return Ok(());
        }
        // Names of others lie outside: who writes to the same place does not wait here.
        let target = Target::Span(future);
        self.lock_many(vec![LockItem { target, mode: LockMode::KeyShare, check: false }])
    }

    /// Refuses to look at a span into which the commit may put keys; `deletes`: unless all of these
    /// go with it.
    pub(crate) fn check_names(&self, state: &State, span: &KeySpan, deletes: bool) -> KvResult<()> {
        let form = self.coordinator().row_form().filter(|_| !state.names.is_empty());
        let Some(form) = form.filter(|_| !span.is_empty()) else { return Ok(()) };
        for name in state.names.near(span) {
            let reach = state.names.reach(name, form, state.read_ts);
            let goes = deletes && span.start <= reach.start && reach.end <= span.end;
            let touches = span.start < reach.end && reach.start < span.end;
            if touches && !goes && matches!(state.own.get(name)?, Lookup::Put(_)) {
                return Err(KvError::TimePending);
            }
        }
        Ok(())
    }

    /// Whether [`Txn::name`] can be asked.
    pub fn gives_key_times(&self) -> bool {
        self.coordinator().row_form().is_some() && self.spans().gives_key_times()
    }

    /// Deletes every row of a span by one range tombstone. Locks the span exclusively first.
    ///
    /// Returns the rows that this transaction had written into the span and that are gone now, so
    /// that the caller can take back what he stored elsewhere for them.
    pub fn delete_span(&self, span: &KeySpan) -> KvResult<Vec<(Bytes, Bytes)>> {
        self.check_writable()?;
        if span.is_empty() {
            return Ok(Vec::new());
        }
        self.lock_span(span, LockMode::Exclusive, Wait::Block)?;
        self.counts.span_deletes.fetch_add(1, Ordering::Relaxed);
        let mut state = self.open_state()?;
        self.check_names(&state, span, true)?;
        state.own.delete_span(span)
    }

    /// How many parts of what it has written lie on disk: there were too many for memory.
    pub fn spilled(&self) -> usize {
        self.state.lock().own.layers()
    }

    /// Takes memory for a write. If there is too much of it, what was written goes to disk.
    fn take_for_write(&self, state: &mut State, bytes: usize) -> KvResult<()> {
        if state.memory.written.bytes() + bytes > self.much() && self.spill(state)? {
            return Ok(state.memory.written.grow(bytes)?);
        }
        match state.memory.written.grow(bytes) {
            Err(_) if state.memory.written.bytes() >= WORTH_SPILLING && self.spill(state)? => {
                Ok(state.memory.written.grow(bytes)?)
            }
            other => Ok(other?),
        }
    }

    /// So many bytes of one kind are much: less where the node has little to give at present, since
    /// rows, writes and locks of a statement take their part each.
    pub(crate) fn much(&self) -> usize {
        let room = self.coordinator.memory().room() / SPILL_PART_OF_ROOM;
        self.spill_at.min(room.max(WORTH_SPILLING))
    }

    /// Moves what was written to disk, if it can lie there; what then is in memory is counted.
    pub(crate) fn spill(&self, state: &mut State) -> KvResult<bool> {
        let folder = self.coordinator.bulk_folder();
        if !self.spans().takes_files() || !state.own.spill(folder, self.spill_at, &self.cancel)? {
            return Ok(false);
        }
        state.memory.written.release();
        // Whatever comes of that, what was written is on disk.
        let merged = state.own.merge_layers(folder, &self.cancel);
        state.memory.layered.resize(state.own.layer_memory())?;
        merged.map(|()| true)
    }

    /// How it was begun.
    pub fn options(&self) -> &TxnOptions {
        &self.options
    }

    /// Starts a bulk load into several targets; see [`BulkLoad`]. `budget` is the memory that it
    /// may use, in bytes, as long as `account` gives it.
    pub fn bulk_load(
        &self,
        targets: usize,
        budget: usize,
        account: &Arc<Account>,
    ) -> KvResult<BulkLoad> {
        self.check_writable()?;
        let folder = self.coordinator.bulk_folder().clone();
        Ok(BulkLoad::new(folder, targets, budget, account))
    }

    /// Takes a load in at once, at the read timestamp: for spans that nobody else knows before this
    /// transaction commits, and that were empty. If the transaction fails, the rows stay there, and
    /// nobody will ever look at them.
    ///
    /// Durable when it returns.
    ///
    /// # Errors
    /// [`KvError::Retry`] if something newer than the read timestamp is there after all: a span
    /// that was deleted and that the load lies in.
    pub fn ingest_private(&self, files: &BulkFiles) -> KvResult<()> {
        if files.is_empty() {
            return Ok(());
        }
        let mut state = self.open_state()?;
        let _asking = self.count_request();
        self.spans().ingest(files.paths(), state.read_ts)?;
        // What was said before does not have the new rows.
        state.ahead.clear();
        Ok(())
    }

    /// Deletes a key at commit whatever has happened to it: a record about this transaction that
    /// another one wrote for it.
    pub fn delete_at_commit(&self, key: Vec<u8>) -> KvResult<()> {
        self.write_over(key, None)
    }

    /// Writes a value over whatever the key has, also if that is newer than the read timestamp: the
    /// caller has read it ([`ReadMode::Latest`](crate::ReadMode::Latest)) after he has taken the
    /// lock with [`Txn::hold`].
    pub fn put_over(&self, key: Vec<u8>, value: impl Into<Bytes>) -> KvResult<()> {
        self.write_over(key, Some(value.into()))
    }

    fn write_over(&self, key: Vec<u8>, slot: Option<Bytes>) -> KvResult<()> {
        self.check_writable()?;
        self.hold(&key, LockMode::Exclusive)?;
        self.open_state()?.own.set(key.into(), slot);
        Ok(())
    }

    /// Makes a load part of the commit, which then may write nothing else. The caller holds locks
    /// that keep all others from writing to the keys of the load, and knows that the newest state
    /// allows them.
    pub fn attach(&self, files: BulkFiles) -> KvResult<()> {
        let mut state = self.open_state()?;
        debug_assert!(state.own.is_empty() && state.attached.is_none());
        state.attached = Some(files).filter(|files| !files.is_empty());
        Ok(())
    }

    /// Whether a load is all that it may write: see [`Txn::attach`].
    pub fn is_all_load(&self) -> bool {
        self.open_state().is_ok_and(|state| state.attached.is_some())
    }

    /// Marks a position.
    pub fn savepoint(&self) -> SavepointId {
        let mut state = self.state.lock();
        SavepointId { writes: state.own.savepoint(), locks: state.acquired.len() }
    }

    /// Of all savepoints so far, only these, in their order, may be rolled back to from now on.
    pub fn keep_savepoints(&self, savepoints: impl IntoIterator<Item = SavepointId>) {
        let positions: Vec<usize> = savepoints.into_iter().map(|s| s.writes).collect();
        self.state.lock().own.keep_savepoints(&positions);
    }

    /// Takes back all writes since the savepoint and releases the locks taken since then.
    /// Remembered reads stay; what was protected by a released lock is remembered as read.
    pub fn rollback_to(&self, savepoint: SavepointId) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        state.take_back(savepoint.writes);
        let kept = savepoint.locks.min(state.acquired.len());
        let released = state.acquired.split_off(kept);
        state.ahead.clear();
        for target in &released {
            state.memory.locked.shrink(lock_memory(target));
            match target {
                Target::Key(key) => {
                    let held = state.held.remove(key);
                    if self.records_reads() && held.is_some_and(|h| h.mode.owns_writes()) {
                        state.reads.add_point(key);
                    }
                }
                Target::Span(span) => {
                    let held = state.held_spans.remove(&span.start);
                    if self.records_reads() && held.is_none_or(|(_, h)| h.checked) {
                        state.reads.add_span(span.clone());
                    }
                }
            }
        }
        drop(state);
        if !released.is_empty() {
            self.spans().release(self.id, &released, false);
        }
    }

    /// Commits. Returns when the commit is durable (unless `async_commit`).
    ///
    /// # Errors
    /// [`KvError::Retry`]: nothing was written. [`KvError::Engine`] from the disk: the outcome of
    /// this transaction is known only after the store was opened again.
    pub fn commit(&self) -> KvResult<CommitTs> {
        let reliance = self.rely_on_lease().inspect_err(|_| self.end())?;
        let (request, files) = {
            let mut state = self.open_state()?;
            let mut files = state.attached.take();
            assert!(files.is_none() || state.own.is_empty(), "a load is all that is written");
            if files.is_none() && state.own.is_empty() {
                let (read_ts, is_locked) = (state.read_ts, !state.acquired.is_empty());
                drop(state);
                let is_locked = is_locked || self.has_leased();
                let checked = match is_locked {
                    true => self.check_locks(),
                    false => Ok(()),
                };
                self.end();
                return checked.map(|()| read_ts);
            }
            let names = std::mem::take(&mut state.names);
            let many = state.own.has_layers() || state.own.len() > MOST_WITH_TIMES;
            if many && !names.is_empty() {
                drop(state);
                self.end();
                return Err(KvError::TooManyWithTimes { most: MOST_WITH_TIMES });
            }
            if state.own.has_layers() {
                files = Some(state.own.to_files(self.coordinator.bulk_folder())?);
            }
            // A scan that is still open has told nobody yet what it read.
            let open = std::mem::take(&mut state.scans.open);
            open.into_values().for_each(|span| state.reads.add_span(span));
            let depends_on = std::mem::take(&mut state.depends_on);
            if !reliance.fixes_dependencies() {
                depends_on.iter().for_each(|key| state.reads.add_point(key));
            }
            let reads = self.records_reads().then(|| state.reads.take());
            let writes = match &files {
                Some(files) => Writes::Files(files.paths().to_vec()),
                None => Writes::Batch(state.own.to_batch()),
            };
            let waits = !self.options.async_commit && files.is_none();
            let read_ts = state.read_ts;
            let not_after = reliance.not_after();
            (Commit { txn: self.id, read_ts, reads, writes, names, waits, not_after }, files)
        };
        let _asking = self.count_request();
        let begun = WallClock.monotonic_nanos();
        let waits = request.waits;
        let result = self.spans().commit(request);
        // The files of a load go when the far side has them.
        drop(files);
        self.end();
        let Committed { at, participants } = result?;
        self.counts.participants.store(participants, Ordering::Relaxed);
        if waits {
            self.spans().await_durable(at)?;
        }
        let nanos = WallClock.monotonic_nanos() - begun;
        self.counts.commit_nanos.store(nanos, Ordering::Relaxed);
        Ok(at)
    }

    /// Ends the transaction without effect. Does nothing if it has ended already.
    pub fn rollback(&self) {
        self.end();
    }

    fn end(&self) {
        // Who was told to stop tells others, and does not wait for what they say.
        let _stop = self.stops_here();
        let pinned = self.end_leased();
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        state.ended = true;
        state.ahead.clear();
        state.attached = None;
        state.own = OwnWrites::default();
        state.reads.clear();
        state.memory.noted.release();
        state.memory.written.release();
        state.memory.layered.release();
        state.memory.locked.release();
        state.held = HashMap::default();
        state.held_spans.clear();
        let acquired = std::mem::take(&mut state.acquired);
        let read_ts = state.read_ts;
        drop(state);
        if acquired.is_empty() && pinned {
            self.spans().release(self.id, &[], true);
        }
        // Others get at the table in between: a million locks take their time.
        let mut parts = acquired.chunks(RELEASED_AT_ONCE).peekable();
        while let Some(part) = parts.next() {
            self.spans().release(self.id, part, parts.peek().is_none());
        }
        self.spans().leave(self.id, read_ts);
    }

    /// Reads matter only where they are validated; a read-only transaction sees the state at its
    /// read timestamp, which is serializable as it is.
    pub(crate) fn records_reads(&self) -> bool {
        self.options.isolation == Isolation::Serializable && !self.read_only()
    }

    fn check_writable(&self) -> KvResult<()> {
        if self.read_only() { Err(KvError::ReadOnly) } else { Ok(()) }
    }

    pub(crate) fn open_state(&self) -> KvResult<parking_lot::MutexGuard<'_, State>> {
        let state = self.state.lock();
        if state.ended { Err(KvError::Ended) } else { Ok(state) }
    }

    pub(crate) fn spans(&self) -> &dyn Spans {
        self.coordinator.spans()
    }

    pub(crate) fn stop_flag(&self) -> &AtomicBool {
        &self.cancel
    }

    /// Counts a request, and what is sent for it while the answer lives.
    pub(crate) fn count_request(&self) -> Asking<'_> {
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        Tally::add_request();
        let outer = Tally::note_touched(Some(Vec::new()));
        // In one process nobody waits for an answer.
        let stop = self.stops_here();
        Asking { counts: &self.counts, before: Tally::here().network, outer, stop }
    }

    /// What the calling thread asks for stops with the transaction, if it goes to other nodes.
    fn stops_here(&self) -> Option<StopsBy> {
        self.coordinator.leases().map(|_| Tally::stop_by(&self.cancel))
    }
}

/// A request is on its way.
pub(crate) struct Asking<'a> {
    counts: &'a Counts,
    before: Network,
    /// Where ranges were noted before.
    outer: Option<Vec<u64>>,
    /// It stops with the transaction, if that is of use.
    stop: Option<StopsBy>,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        drop(self.stop.take());
        let touched = Tally::note_touched(self.outer.take()).unwrap_or_default();
        self.counts.sent.add(Tally::here().network.since(self.before), touched);
    }
}

impl State {
    /// Whether a load waits for the commit.
    pub(crate) fn is_attached(&self) -> bool {
        self.attached.is_some()
    }

    /// Takes back what was written since a position.
    fn take_back(&mut self, position: usize) {
        match self.own.rollback_to(position) {
            Some(freed) => self.memory.written.shrink(freed),
            None => {
                self.memory.written.release();
                // Less was taken than there is where the pool had no more.
                let left = self.own.layer_memory();
                self.memory.layered.shrink(self.memory.layered.bytes().saturating_sub(left));
            }
        }
    }

    /// Counts what was read. In steps: point reads are many and small.
    pub(crate) fn count_reads(&mut self) -> KvResult<()> {
        let bytes = self.reads.size_bytes();
        if bytes.abs_diff(self.memory.noted.bytes()) >= READS_STEP {
            self.memory.noted.resize(bytes)?;
        }
        Ok(())
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        self.end();
    }
}
