//! One transaction: reads, writes, locks, savepoints, end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use braid_env::memory;
use braid_lsm::{CommitTs, IngestOptions, KeySpan, View};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::buffer::{Buffer, Lookup, write_memory};
use crate::bulk::{BulkFiles, BulkLoad};
use crate::error::{Conflict, KvError, KvResult};
use crate::locks::{LockMode, Target, TxnId, Wait};
use crate::read_set::{ReadMark, ReadSet};
use crate::scan::{ReadMode, ScanOptions, TxnScan};
use crate::shown::{Noting, Shown};
use crate::store::Store;

/// Locks that are released without letting others at the table.
const RELEASED_AT_ONCE: usize = 256;

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
#[derive(Clone, Default)]
pub struct TxnOptions {
    /// Default SERIALIZABLE.
    pub isolation: Isolation,
    /// Refuse writes.
    pub read_only: bool,
    /// Read at this timestamp in the past; implies `read_only`.
    pub as_of: Option<CommitTs>,
    /// Raised by others to stop waiting for locks.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Give up waiting for one lock after this long.
    pub lock_timeout: Option<Duration>,
    /// Commit returns before the commit is durable (`synchronous_commit = off`).
    pub async_commit: bool,
    /// Notes what was read before it was durable: whoever hands it out settles that first.
    pub shown: Option<Arc<Shown>>,
}

/// A position to roll back to. Later savepoints die with the rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavepointId {
    writes: usize,
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
}

/// See the [crate documentation](crate). All methods take `&self`; one transaction may be used from
/// several threads, for instance by the operators of one query. Dropping it rolls it back.
pub struct Txn {
    store: Arc<Store>,
    id: TxnId,
    options: TxnOptions,
    cancel: Arc<AtomicBool>,
    state: Mutex<State>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    gets: AtomicU64,
    rows_scanned: AtomicU64,
    writes: AtomicU64,
    span_deletes: AtomicU64,
}

struct State {
    read_ts: CommitTs,
    view: Option<Reading>,
    buffer: Buffer,
    reads: ReadSet,
    /// Keys that the commit depends on for the whole transaction.
    depends_on: HashSet<Bytes>,
    /// A view of what was newest when it was last asked for.
    latest: Option<(CommitTs, Reading)>,
    /// A bulk load that enters the store at commit.
    attached: Option<BulkFiles>,
    held: HashMap<Bytes, Held>,
    /// By start. Of spans with the same start the last.
    held_spans: BTreeMap<Bytes, (KeySpan, Held)>,
    /// Locks in the order in which they were first taken.
    acquired: Vec<Target>,
    /// Scans that will still report what they read at the read timestamp of their start, with the
    /// span that they were opened for.
    open_scans: BTreeMap<u64, KeySpan>,
    next_scan: u64,
    ended: bool,
    /// Memory of the buffer.
    written: memory::Held,
    /// Memory of the locks.
    locked: memory::Held,
    /// Memory of what was read, in steps.
    noted: memory::Held,
}

/// A view, and what reads of it note.
#[derive(Clone)]
struct Reading {
    view: View,
    noting: Option<Noting>,
}

/// The reads of a transaction are counted again when they have grown or shrunk by so much.
const READS_STEP: usize = 64 << 10;
/// What a lock takes besides its key.
const LOCK_BYTES: usize = 150;

#[derive(Clone, Copy)]
struct Held {
    mode: LockMode,
    /// Whether "nothing newer than the read timestamp" has been seen true under this lock.
    checked: bool,
}

impl Txn {
    pub(crate) fn new(store: Arc<Store>, id: TxnId, read_ts: CommitTs, options: TxnOptions) -> Txn {
        let cancel = options.cancel.clone().unwrap_or_default();
        let account = store.memory().account(usize::MAX);
        let state = State {
            read_ts,
            view: None,
            buffer: Buffer::default(),
            reads: ReadSet::default(),
            depends_on: HashSet::new(),
            latest: None,
            attached: None,
            held: HashMap::new(),
            held_spans: BTreeMap::new(),
            acquired: Vec::new(),
            open_scans: BTreeMap::new(),
            next_scan: 0,
            ended: false,
            written: account.hold("the transaction's writes"),
            locked: account.hold("the transaction's locks"),
            noted: account.hold("the transaction's reads"),
        };
        Txn { store, id, options, cancel, state: Mutex::new(state), counts: Counts::default() }
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

    /// The store it runs on.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Work done so far.
    pub fn stats(&self) -> TxnStats {
        TxnStats {
            gets: self.counts.gets.load(Ordering::Relaxed),
            rows_scanned: self.counts.rows_scanned.load(Ordering::Relaxed),
            writes: self.counts.writes.load(Ordering::Relaxed),
            span_deletes: self.counts.span_deletes.load(Ordering::Relaxed),
        }
    }

    /// Whether nothing was written so far.
    pub fn is_clean(&self) -> bool {
        self.state.lock().buffer.is_empty()
    }

    /// Number of buffered writes, a deleted span counting one.
    pub fn write_count(&self) -> usize {
        self.state.lock().buffer.len()
    }

    /// Bytes of keys and values written so far.
    pub fn write_bytes(&self) -> usize {
        self.state.lock().buffer.size_bytes()
    }

    /// Tells the transaction that a statement starts. Under READ COMMITTED it moves the read
    /// timestamp to now; otherwise it does nothing.
    pub fn begin_statement(&self) -> KvResult<()> {
        if self.options.isolation == Isolation::ReadCommitted && self.options.as_of.is_none() {
            self.refresh(&mut *self.open_state()?);
        }
        Ok(())
    }

    /// Forgets all writes and reads, keeps the locks, and moves the read timestamp to now: for
    /// running a whole transaction again after [`KvError::Retry`]. Keeping the locks is what makes
    /// the second try succeed.
    pub fn restart(&self) -> KvResult<()> {
        let mut state = self.open_state()?;
        state.buffer = Buffer::default();
        state.written.resize(0)?;
        state.reads.clear();
        state.noted.release();
        state.depends_on.clear();
        self.refresh(&mut state);
        Ok(())
    }

    /// Remembers where a statement begins.
    pub fn begin_retryable(&self) -> StatementMark {
        let state = self.state.lock();
        StatementMark { writes: state.buffer.position(), reads: state.reads.mark() }
    }

    /// Makes a statement that failed with [`KvError::Retry`] ready to run again: takes back what
    /// it wrote and read, keeps its locks, and moves the read timestamp to now.
    ///
    /// The transaction stays serializable because what it read *before* the statement is first
    /// found unchanged: it might as well have begun now. (CockroachDB calls this a read refresh.)
    ///
    /// # Errors
    /// [`KvError::Retry`] when something read before has changed, a scan is still open, or the
    /// isolation level promises one view: then only the whole transaction can be run again.
    pub fn retry_statement(&self, mark: StatementMark) -> KvResult<()> {
        let mut state = self.open_state()?;
        let freed = state.buffer.rollback_to(mark.writes);
        state.written.shrink(freed);
        state.reads.forget_since(mark.reads);
        let fixed =
            self.options.isolation == Isolation::RepeatableRead || self.options.as_of.is_some();
        if fixed || (self.records_reads() && !state.open_scans.is_empty()) {
            return Err(KvError::Retry { conflict: Conflict::FixedView });
        }
        let old = state.read_ts;
        self.refresh(&mut state);
        // After the new timestamp was chosen: every commit up to it is visible to this check.
        // Descriptors count too, and go on counting.
        let depends_on: Vec<Bytes> = state.depends_on.iter().cloned().collect();
        depends_on.iter().for_each(|key| state.reads.add_point(key));
        if self.records_reads()
            && let Err(changed) = self.store.validate(old, &state.reads)
        {
            return Err(changed);
        }
        Ok(())
    }

    fn refresh(&self, state: &mut State) {
        let old = state.read_ts;
        state.read_ts = self.store.enter(self.id);
        state.view = None;
        if state.read_ts != old {
            self.store.leave(self.id, old);
        }
    }

    /// The newest value at or below the read timestamp, own writes included.
    pub fn get(&self, key: &[u8]) -> KvResult<Option<Bytes>> {
        self.get_as(key, ReadMode::Recorded)
    }

    /// The value of a key as the mode says; own writes are always included.
    pub fn get_as(&self, key: &[u8], mode: ReadMode) -> KvResult<Option<Bytes>> {
        self.counts.gets.fetch_add(1, Ordering::Relaxed);
        let Reading { view, noting } = {
            let mut state = self.open_state()?;
            match state.buffer.get(key) {
                Lookup::Put(value) => return Ok(Some(value)),
                Lookup::Deleted => return Ok(None),
                Lookup::Unknown => {}
            }
            // A key that only we can write cannot be changed by others: no need to validate it.
            let own = state.held.get(key).is_some_and(|h| h.checked && h.mode.owns_writes());
            if mode == ReadMode::Recorded && self.records_reads() && !own {
                state.reads.add_point(key);
                state.count_reads()?;
            }
            self.view_for(&mut state, mode)?
        };
        let Some(noting) = noting else { return Ok(view.get(key)?) };
        let found = view.get_with_ts(key)?;
        noting.point(&self.store, key, found.as_ref().map(|(_, ts)| *ts))?;
        Ok(found.map(|(value, _)| value))
    }

    /// Makes the commit depend on a key as if it had been read at the read timestamp. Cheap to say
    /// again and again.
    pub fn depend_on(&self, key: &[u8]) -> KvResult<()> {
        if self.records_reads() {
            let mut state = self.open_state()?;
            if !state.depends_on.contains(key) {
                state.depends_on.insert(Bytes::copy_from_slice(key));
            }
        }
        Ok(())
    }

    /// Opens a scan. See [`TxnScan`].
    pub fn scan(self: &Arc<Self>, span: KeySpan, options: ScanOptions) -> KvResult<TxnScan> {
        let (id, Reading { view, noting }, overlay) = {
            let mut state = self.open_state()?;
            let reading = self.view_for(&mut state, options.mode)?;
            let id = state.next_scan;
            state.next_scan += 1;
            if options.mode == ReadMode::Recorded && self.records_reads() {
                state.open_scans.insert(id, span.clone());
            }
            (id, reading, state.buffer.overlay(&span))
        };
        let noting = match &noting {
            Some(noting) => noting.scan(&self.store, &span)?,
            None => None,
        };
        // The limit goes to the engine only if the overlay cannot hide any of its rows.
        let hides = !overlay.points.is_empty() || !overlay.spans.is_empty();
        let engine_options = braid_lsm::ScanOptions {
            reverse: options.reverse,
            classes: options.classes,
            limit: if hides { None } else { options.limit },
            ..Default::default()
        };
        match view.scan(span.clone(), engine_options) {
            Ok(engine) => {
                let txn = Arc::clone(self);
                Ok(TxnScan::new(txn, id, engine, overlay, (span, noting), options))
            }
            Err(error) => {
                self.state.lock().open_scans.remove(&id);
                Err(error.into())
            }
        }
    }

    /// Whether the span holds no row.
    pub fn span_is_empty(self: &Arc<Self>, span: &KeySpan) -> KvResult<bool> {
        let options = ScanOptions { limit: Some(1), ..ScanOptions::default() };
        Ok(self.scan(span.clone(), options)?.next()?.is_none())
    }

    /// Locks a key until the end of the transaction, and checks that nothing newer than the read
    /// timestamp is stored there. Blocks according to `wait`.
    pub fn lock(&self, key: &[u8], mode: LockMode, wait: Wait) -> KvResult<Locked> {
        if self.open_state()?.holds(key, mode, true) {
            return Ok(Locked::Yes);
        }
        let key = Bytes::copy_from_slice(key);
        if !self.acquire_key(&key, mode, wait)? {
            return Ok(Locked::Skipped);
        }
        let mut state = self.open_state()?;
        self.check_key(&state, &key)?;
        state.held.get_mut(&key).expect("it was just acquired").checked = true;
        Ok(Locked::Yes)
    }

    /// Locks a key until the end of the transaction, whatever has happened to it since the read
    /// timestamp: for what is asked of the newest state ([`ReadMode::Latest`]) and must stay true.
    pub fn hold(&self, key: &[u8], mode: LockMode) -> KvResult<()> {
        if self.open_state()?.holds(key, mode, false) {
            return Ok(());
        }
        self.acquire_key(&Bytes::copy_from_slice(key), mode, Wait::Block).map(|_| ())
    }

    /// Waits until no other transaction holds a key in a way that excludes `mode`, without keeping
    /// a lock, and checks that nothing newer than the read timestamp is stored there.
    pub fn await_key(&self, key: &[u8], mode: LockMode) -> KvResult<()> {
        if self.open_state()?.holds(key, mode, true) {
            return Ok(());
        }
        let target = Target::Key(Bytes::copy_from_slice(key));
        self.acquire(target.clone(), mode, Wait::Block)?;
        // What was held before is held on, and released at the end.
        if !self.open_state()?.held.contains_key(key) {
            self.store.locks().release(self.id, std::iter::once(&target), false);
        }
        let state = self.open_state()?;
        self.check_key(&state, key)
    }

    fn check_key(&self, state: &State, key: &[u8]) -> KvResult<()> {
        if self.store.engine().max_ts(key)? > state.read_ts {
            let key = Bytes::copy_from_slice(key);
            return Err(KvError::Retry { conflict: Conflict::Written(key) });
        }
        Ok(())
    }

    /// Takes a lock and notes it as held, not yet checked.
    fn acquire_key(&self, key: &Bytes, mode: LockMode, wait: Wait) -> KvResult<bool> {
        if !self.acquire(Target::Key(key.clone()), mode, wait)? {
            return Ok(false);
        }
        let mut state = self.state.lock();
        match state.held.get_mut(key) {
            Some(held) => held.mode = held.mode.max(mode),
            None => {
                if let Err(e) = state.locked.grow(key.len() + LOCK_BYTES) {
                    drop(state);
                    let target = Target::Key(key.clone());
                    self.store.locks().release(self.id, std::iter::once(&target), true);
                    return Err(e.into());
                }
                state.held.insert(key.clone(), Held { mode, checked: false });
                state.acquired.push(Target::Key(key.clone()));
            }
        }
        Ok(true)
    }

    /// That what is newest in a span ([`ReadMode::Latest`]) is what this transaction's later reads
    /// will see: under READ COMMITTED always, else if nothing newer than its view is there.
    pub fn check_seen(&self, span: &KeySpan) -> KvResult<()> {
        let state = self.open_state()?;
        if self.options.isolation != Isolation::ReadCommitted
            && self.store.engine().newest_above(span, state.read_ts)?.is_some()
        {
            return Err(KvError::Retry { conflict: Conflict::WrittenSpan(span.clone()) });
        }
        Ok(())
    }

    /// Locks every key of a span, present or not, with the same check as [`Txn::lock`].
    pub fn lock_span(&self, span: &KeySpan, mode: LockMode, wait: Wait) -> KvResult<Locked> {
        if self.open_state()?.holds_span(span, mode) {
            return Ok(Locked::Yes);
        }
        if !self.acquire(Target::Span(span.clone()), mode, wait)? {
            return Ok(Locked::Skipped);
        }
        let mut state = self.open_state()?;
        let bytes = span.start.len() + span.end.len() + LOCK_BYTES;
        if let Err(e) = state.locked.grow(bytes) {
            drop(state);
            let target = Target::Span(span.clone());
            self.store.locks().release(self.id, std::iter::once(&target), true);
            return Err(e.into());
        }
        state.acquired.push(Target::Span(span.clone()));
        let held = Held { mode, checked: false };
        state.held_spans.insert(span.start.clone(), (span.clone(), held));
        if self.store.engine().newest_above(span, state.read_ts)?.is_some() {
            return Err(KvError::Retry { conflict: Conflict::WrittenSpan(span.clone()) });
        }
        if let Some((_, held)) = state.held_spans.get_mut(&span.start) {
            held.checked = true;
        }
        Ok(Locked::Yes)
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
        state.written.grow(write_memory(&key, &slot))?;
        state.buffer.set(key, slot);
        Ok(())
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
        Ok(self.open_state()?.buffer.delete_span(span))
    }

    /// Starts a bulk load into several targets; see [`BulkLoad`]. `budget` is the memory that it
    /// may use, in bytes.
    pub fn bulk_load(&self, targets: usize, budget: usize) -> KvResult<BulkLoad> {
        self.check_writable()?;
        Ok(BulkLoad::new(self.store.bulk_folder().clone(), targets, budget))
    }

    /// Takes a load in at once, at the read timestamp: for spans that nobody else knows before this
    /// transaction commits, and that were empty. If the transaction fails, the rows stay there, and
    /// nobody will ever look at them.
    ///
    /// Durable when it returns.
    pub fn ingest_private(&self, files: &BulkFiles) -> KvResult<()> {
        if files.is_empty() {
            return Ok(());
        }
        let mut state = self.open_state()?;
        let ts_override = Some(state.read_ts);
        let options = IngestOptions { ts_override, ..IngestOptions::default() };
        self.store.engine().ingest(files.paths(), options)?;
        // Views made before do not have the new ssts.
        state.view = None;
        state.latest = None;
        Ok(())
    }

    /// Deletes a key at commit whatever has happened to it: a record about this transaction that
    /// another one wrote for it.
    pub fn delete_at_commit(&self, key: Vec<u8>) -> KvResult<()> {
        self.check_writable()?;
        self.hold(&key, LockMode::Exclusive)?;
        self.open_state()?.buffer.set(key.into(), None);
        Ok(())
    }

    /// Makes a load part of the commit, which then may write nothing else. The caller holds locks
    /// that keep all others from writing to the keys of the load, and knows that the newest state
    /// allows them.
    pub fn attach(&self, files: BulkFiles) -> KvResult<()> {
        let mut state = self.open_state()?;
        debug_assert!(state.buffer.is_empty() && state.attached.is_none());
        state.attached = Some(files).filter(|files| !files.is_empty());
        Ok(())
    }

    /// Marks a position.
    pub fn savepoint(&self) -> SavepointId {
        let state = self.state.lock();
        SavepointId { writes: state.buffer.position(), locks: state.acquired.len() }
    }

    /// Takes back all writes since the savepoint and releases the locks taken since then.
    /// Remembered reads stay; what was protected by a released lock is remembered as read.
    pub fn rollback_to(&self, savepoint: SavepointId) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        let freed = state.buffer.rollback_to(savepoint.writes);
        state.written.shrink(freed);
        let kept = savepoint.locks.min(state.acquired.len());
        let released = state.acquired.split_off(kept);
        for target in &released {
            match target {
                Target::Key(key) => {
                    let held = state.held.remove(key);
                    state.locked.shrink(key.len() + LOCK_BYTES);
                    if self.records_reads() && held.is_some_and(|h| h.mode.owns_writes()) {
                        state.reads.add_point(key);
                    }
                }
                Target::Span(span) => {
                    state.held_spans.remove(&span.start);
                    if self.records_reads() {
                        state.reads.add_span(span.clone());
                    }
                }
            }
        }
        drop(state);
        if !released.is_empty() {
            self.store.locks().release(self.id, released.iter(), false);
        }
    }

    /// Commits. Returns when the commit is durable (unless `async_commit`).
    ///
    /// # Errors
    /// [`KvError::Retry`]: nothing was written. [`KvError::Engine`] from the disk: the outcome of
    /// this transaction is known only after the store was opened again.
    pub fn commit(&self) -> KvResult<CommitTs> {
        let (committed, pending) = {
            let mut state = self.open_state()?;
            let files = state.attached.take();
            assert!(files.is_none() || state.buffer.is_empty(), "a load is all that is written");
            if files.is_none() && state.buffer.is_empty() {
                let read_ts = state.read_ts;
                drop(state);
                self.end();
                return Ok(read_ts);
            }
            // A scan that is still open has told nobody yet what it read.
            let open = std::mem::take(&mut state.open_scans);
            open.into_values().for_each(|span| state.reads.add_span(span));
            let depends_on = std::mem::take(&mut state.depends_on);
            depends_on.iter().for_each(|key| state.reads.add_point(key));
            let reads = self.records_reads().then_some(&state.reads);
            if let Some(files) = files {
                let result = self.store.commit_files(state.read_ts, reads, &files);
                drop(state);
                self.end();
                return result;
            }
            let waits = !self.options.async_commit;
            let batch = state.buffer.to_batch();
            let result = self.store.commit_batch(state.read_ts, reads, waits, batch);
            drop(state);
            self.end();
            result?
        };
        if !self.options.async_commit {
            pending.wait_durable()?;
            self.store.durable().reached(committed);
        }
        Ok(committed)
    }

    /// Ends the transaction without effect. Does nothing if it has ended already.
    pub fn rollback(&self) {
        self.end();
    }

    fn end(&self) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        state.ended = true;
        state.view = None;
        state.latest = None;
        state.attached = None;
        state.buffer = Buffer::default();
        state.reads.clear();
        state.noted.release();
        state.written.release();
        state.locked.release();
        state.held = HashMap::new();
        state.held_spans.clear();
        let acquired = std::mem::take(&mut state.acquired);
        let read_ts = state.read_ts;
        drop(state);
        // Others get at the table in between: a million locks take their time.
        let mut parts = acquired.chunks(RELEASED_AT_ONCE).peekable();
        while let Some(part) = parts.next() {
            self.store.locks().release(self.id, part.iter(), parts.peek().is_none());
        }
        self.store.leave(self.id, read_ts);
    }

    pub(crate) fn record_span_read(&self, span: KeySpan) {
        if self.records_reads() {
            self.state.lock().reads.add_span(span);
        }
    }

    /// A scan has reported all it read.
    pub(crate) fn scan_closed(&self, id: u64, rows: u64) {
        self.state.lock().open_scans.remove(&id);
        self.counts.rows_scanned.fetch_add(rows, Ordering::Relaxed);
    }

    /// Reads matter only where they are validated; a read-only transaction sees the state at its
    /// read timestamp, which is serializable as it is.
    fn records_reads(&self) -> bool {
        self.options.isolation == Isolation::Serializable && !self.read_only()
    }

    fn check_writable(&self) -> KvResult<()> {
        if self.read_only() { Err(KvError::ReadOnly) } else { Ok(()) }
    }

    fn open_state(&self) -> KvResult<parking_lot::MutexGuard<'_, State>> {
        let state = self.state.lock();
        if state.ended { Err(KvError::Ended) } else { Ok(state) }
    }

    fn view_for(&self, state: &mut State, mode: ReadMode) -> KvResult<Reading> {
        let newest = self.store.engine().last_commit_ts();
        if mode != ReadMode::Latest || newest <= state.read_ts {
            if state.view.is_none() {
                state.view = Some(self.reading(state.read_ts)?);
            }
            return Ok(state.view.clone().expect("just made"));
        }
        match &state.latest {
            Some((ts, reading)) if newest <= *ts => Ok(reading.clone()),
            _ => {
                let now = self.store.now();
                let reading = self.reading(now)?;
                state.latest = Some((now, reading.clone()));
                Ok(reading)
            }
        }
    }

    fn reading(&self, ts: CommitTs) -> KvResult<Reading> {
        let view = self.store.engine().view(ts)?;
        // After the view was made: all that it sees was noted as applied before.
        let noting = Noting::of(&self.store, self.options.shown.as_ref(), ts);
        Ok(Reading { view, noting })
    }

    fn acquire(&self, target: Target, mode: LockMode, wait: Wait) -> KvResult<bool> {
        let timeout = self.options.lock_timeout;
        self.store.locks().acquire(self.id, target, mode, wait, timeout, &self.cancel)
    }
}

impl State {
    /// Counts what was read. In steps: point reads are many and small.
    fn count_reads(&mut self) -> KvResult<()> {
        let bytes = self.reads.size_bytes();
        if bytes.abs_diff(self.noted.bytes()) >= READS_STEP {
            self.noted.resize(bytes)?;
        }
        Ok(())
    }

    /// Whether a lock on the key is held; `checked`: and nothing newer was there.
    fn holds(&self, key: &[u8], mode: LockMode, checked: bool) -> bool {
        let enough = |h: &Held| h.mode >= mode && (h.checked || !checked);
        let upto = (Bound::Unbounded, Bound::Included(key));
        self.held.get(key).is_some_and(enough)
            || self
                .held_spans
                .range::<[u8], _>(upto)
                .next_back()
                .is_some_and(|(_, (span, h))| enough(h) && span.contains(key))
    }

    fn holds_span(&self, span: &KeySpan, mode: LockMode) -> bool {
        let upto = (Bound::Unbounded, Bound::Included(span.start.as_ref() as &[u8]));
        self.held_spans
            .range::<[u8], _>(upto)
            .next_back()
            .is_some_and(|(_, (own, h))| h.checked && h.mode >= mode && own.end >= span.end)
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        self.end();
    }
}
