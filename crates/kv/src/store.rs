//! One engine directory with its clock, its locks and its running transactions.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use braid_env::clock::{Clock, Hlc};
use braid_env::fs::FileSystem;
use braid_env::memory::Pool;
use braid_lsm::{CommitTs, Db};
use parking_lot::Mutex;

use crate::bulk::BulkFolder;
use crate::coordinator::{Coordinator, ValueForms};
use crate::error::{KvError, KvResult};
use crate::locks::{LockTable, TxnId};
use crate::row_form::RowForm;
use crate::shown::Durable;
use crate::spans::Spans;
use crate::stored::{Cursors, StoredKeys};
use crate::txn::{Txn, TxnOptions};
use crate::watch::Watches;

/// How to open a [`Store`].
pub struct StoreOptions {
    /// Where files live.
    pub fs: Arc<dyn FileSystem>,
    /// The store's directory; created if it does not exist.
    pub dir: PathBuf,
    /// Options of the engine.
    pub engine: braid_lsm::Options,
    /// Physical time.
    pub clock: Arc<dyn Clock>,
    /// How far into the past `AS OF SYSTEM TIME` can read. Default 4 hours.
    pub gc_window: Duration,
    /// What transactions and statements may hold together. Default: no limit.
    pub memory: Arc<Pool>,
    /// What is known of the values of rows. Without it, as by default, a read that wants no more
    /// than a part of a value depends on the whole value.
    pub row_form: Option<RowForm>,
}

impl StoreOptions {
    /// Options with defaults, for the given place and clock.
    pub fn new(fs: Arc<dyn FileSystem>, dir: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        StoreOptions {
            fs,
            dir: dir.into(),
            engine: braid_lsm::Options::default(),
            clock,
            gc_window: Duration::from_secs(4 * 3600),
            memory: Pool::unlimited(),
            row_form: None,
        }
    }
}

/// See the [module documentation](self). Shared by all sessions.
pub struct Store {
    db: Db,
    hlc: Hlc,
    locks: LockTable,
    forms: ValueForms,
    /// Serializes "validate what came since, and apply". Never held while waiting for the disk or
    /// for background work.
    pub(crate) commit_order: Mutex<()>,
    /// Every commit at or below this timestamp can be seen by new views. Written under
    /// `commit_order`.
    newest_visible: AtomicU64,
    durable: Durable,
    cursors: Cursors,
    watches: Watches,
    bulk: Arc<BulkFolder>,
    next_txn: AtomicU64,
    /// Read timestamps of running transactions: the GC threshold stays below all of them.
    active: Mutex<BTreeSet<(CommitTs, TxnId)>>,
    gc_window_us: AtomicU64,
    clock: Arc<dyn Clock>,
    memory: Arc<Pool>,
}

impl Store {
    /// Opens or creates the store. Replays the wal if the last process did not close it.
    ///
    /// # Errors
    /// [`KvError::Engine`] when the directory is in use, damaged, or of a newer format.
    pub fn open(options: StoreOptions) -> KvResult<Arc<Store>> {
        let (row_class, row_form) = (options.engine.row_class, options.row_form);
        let db = Db::open(options.fs.clone(), &options.dir, options.engine.clone())?;
        // After the store was locked for this process.
        let bulk = BulkFolder::open(options.fs, &options.dir, options.engine)?;
        let hlc = Hlc::new(Arc::clone(&options.clock));
        // Every new timestamp must lie above all that the engine has seen (contract C1), and above
        // the gc threshold (C2), even if the clock was set back since then.
        hlc.update(db.last_commit_ts().max(db.gc_threshold()).0);
        Ok(Arc::new(Store {
            newest_visible: AtomicU64::new(db.last_commit_ts().0),
            durable: Durable::default(),
            cursors: Cursors::default(),
            watches: Watches::default(),
            db,
            hlc,
            locks: LockTable::default(),
            forms: ValueForms { row_class, row_form },
            commit_order: Mutex::new(()),
            bulk,
            next_txn: AtomicU64::new(1),
            active: Mutex::new(BTreeSet::new()),
            gc_window_us: AtomicU64::new(options.gc_window.as_micros() as u64),
            clock: options.clock,
            memory: options.memory,
        }))
    }

    /// What transactions and statements hold together.
    pub fn memory(&self) -> &Arc<Pool> {
        &self.memory
    }

    /// A coordinator of transactions whose far side is this store.
    pub fn coordinator(self: &Arc<Self>) -> Arc<Coordinator> {
        self.coordinator_through(self.clone())
    }

    /// A coordinator whose requests somebody else carries to this store.
    pub fn coordinator_through(self: &Arc<Self>, carrier: Arc<dyn Spans>) -> Arc<Coordinator> {
        let (memory, bulk) = (self.memory.clone(), self.bulk.clone());
        Arc::new(Coordinator::new(carrier, memory, bulk, self.forms))
    }

    /// Starts a transaction with a coordinator of its own.
    ///
    /// # Errors
    /// [`KvError::TimestampOutOfWindow`] for a read timestamp that cannot be read.
    pub fn begin(self: &Arc<Self>, options: TxnOptions) -> KvResult<Arc<Txn>> {
        self.coordinator().begin(options)
    }

    pub(crate) fn new_txn_id(&self) -> TxnId {
        TxnId(self.next_txn.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn cursors(&self) -> &Cursors {
        &self.cursors
    }

    pub(crate) fn watches(&self) -> &Watches {
        &self.watches
    }

    /// The newest timestamp at which every acknowledged commit is visible.
    pub fn now(&self) -> CommitTs {
        // Nobody applies a batch while we hold the order, so the clock itself is a safe answer.
        // If somebody does, what he has not applied yet is not acknowledged yet either.
        if let Some(_order) = self.commit_order.try_lock() {
            let now = self.hlc.now();
            self.newest_visible.fetch_max(now, Ordering::AcqRel);
            return CommitTs(now);
        }
        CommitTs(self.newest_visible.load(Ordering::Acquire))
    }

    /// A number that no other call has returned or will return, also after a restart, as long as
    /// what is made of it is committed: the clock never falls behind a commit. Grows with time,
    /// whatever happens to the physical clock.
    pub fn unique_number(&self) -> i64 {
        // Half of a stamp that is even: no other one has this half, whoever asks at the same time.
        loop {
            let stamp = self.hlc.now();
            if stamp.is_multiple_of(2) {
                return (stamp >> 1) as i64;
            }
        }
    }

    /// Physical clock, microseconds since 1970.
    pub fn wall_clock_us(&self) -> u64 {
        self.clock.now_micros()
    }

    /// The timestamp whose physical part is `us` microseconds since 1970.
    pub fn timestamp_at(us: u64) -> CommitTs {
        CommitTs(us << braid_env::clock::LOGICAL_BITS)
    }

    /// Oldest timestamp that can still be read.
    pub fn oldest_readable(&self) -> CommitTs {
        self.db.gc_threshold()
    }

    /// Sets how far into the past `AS OF SYSTEM TIME` can read, from the next GC step on.
    pub fn set_gc_window(&self, window: Duration) {
        self.gc_window_us.store(window.as_micros() as u64, Ordering::Relaxed);
    }

    /// The GC window.
    pub fn gc_window(&self) -> Duration {
        Duration::from_micros(self.gc_window_us.load(Ordering::Relaxed))
    }

    /// Moves the GC threshold to "now minus the window", but not above any running transaction.
    /// Called from time to time by a background task. Writes one manifest record.
    pub fn advance_gc(&self) -> KvResult<CommitTs> {
        let wall = self.clock.now_micros();
        let wanted = wall.saturating_sub(self.gc_window_us.load(Ordering::Relaxed));
        let active = self.active.lock();
        let mut threshold = Store::timestamp_at(wanted);
        if let Some((oldest, _)) = active.first() {
            threshold = threshold.min(CommitTs(oldest.0.saturating_sub(1)));
        }
        threshold = threshold.min(CommitTs(self.newest_visible.load(Ordering::Acquire)));
        if threshold > self.db.gc_threshold() {
            // Under `active`, so that nobody enters below it meanwhile.
            self.db.set_gc_threshold(threshold)?;
        }
        Ok(self.db.gc_threshold())
    }

    /// The engine, for tools, metrics and maintenance.
    pub fn engine(&self) -> &Db {
        &self.db
    }

    /// The lock table, to look at.
    pub fn locks(&self) -> &LockTable {
        &self.locks
    }

    pub(crate) fn row_class(&self) -> braid_lsm::RowClassFn {
        self.forms.row_class
    }

    /// The engine, to be asked.
    pub(crate) fn stored(&self) -> StoredKeys<'_> {
        let ValueForms { row_class, row_form } = self.forms;
        let cursors = Some(&self.cursors);
        StoredKeys { engine: &self.db, row_class, row_form, cursors }
    }

    /// How far commits are durable.
    pub(crate) fn durable(&self) -> &Durable {
        &self.durable
    }

    pub(crate) fn next_commit_ts(&self) -> CommitTs {
        CommitTs(self.hlc.now())
    }

    /// The next commit timestamp that is the first of a microsecond: no other commit is in it, and
    /// no clock has been there before.
    pub(crate) fn next_whole_commit_ts(&self) -> CommitTs {
        let ts = Hlc::from_micros(Hlc::micros_of(self.hlc.now()) + 1);
        self.hlc.update(ts);
        CommitTs(ts)
    }

    /// Every commit up to here has been applied.
    pub(crate) fn published(&self) -> CommitTs {
        CommitTs(self.newest_visible.load(Ordering::Acquire))
    }

    pub(crate) fn publish(&self, ts: CommitTs) {
        self.newest_visible.fetch_max(ts.0, Ordering::AcqRel);
    }

    /// Chooses a read timestamp and protects it from GC, in one step.
    pub(crate) fn enter(&self, id: TxnId) -> CommitTs {
        let now = self.now();
        let mut active = self.active.lock();
        // The threshold never passes `newest_visible`, which is at least `now`'s predecessor.
        let ts = now.max(self.db.gc_threshold());
        active.insert((ts, id));
        ts
    }

    pub(crate) fn enter_at(&self, id: TxnId, asked: CommitTs) -> KvResult<CommitTs> {
        let newest = self.now();
        let mut active = self.active.lock();
        let oldest = self.db.gc_threshold();
        if asked < oldest || asked > newest {
            return Err(KvError::TimestampOutOfWindow { asked, oldest, newest });
        }
        active.insert((asked, id));
        Ok(asked)
    }

    pub(crate) fn forget_active(&self, id: TxnId, read_ts: CommitTs) {
        self.active.lock().remove(&(read_ts, id));
    }

    /// Whether all running transactions have begun after this one, which has ended.
    pub fn all_younger_than(&self, id: TxnId) -> bool {
        self.active.lock().iter().all(|(_, running)| *running > id)
    }

    /// Number of running transactions.
    pub fn active_transactions(&self) -> usize {
        self.active.lock().len()
    }
}
