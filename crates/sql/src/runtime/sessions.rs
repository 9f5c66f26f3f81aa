//! Who is connected, and what each does at this moment.
//!
//! ```text
//!   Session ──► Activity ◄── Sessions ◄── pg_stat_activity, pg_locks, pg_stat_database
//!     writes       │
//!                  ├ Now: state, text, since when     one lock, taken by its session twice for
//!                  │                                  each statement, by readers when they look
//!                  └ done: commits, rows, ..          counters with one writer
//! ```
//! What a session has done goes to its database's sum when it ends.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use braid_env::memory::Account;
use braid_kv::{Txn, TxnStats, Work};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::copies::Copies;
use crate::session::SessionState;

/// Bytes of a text that are shown: PostgreSQL's default of `track_activity_query_size`, less the
/// zero at its end.
const TEXT_MAX: usize = 1_023;

/// All sessions of a node.
#[derive(Default)]
pub struct Sessions {
    open: Mutex<BTreeMap<u64, Arc<Activity>>>,
    /// What sessions that have ended did, by database.
    ended: Mutex<HashMap<String, Done>>,
    last: AtomicU64,
    copies: Copies,
}

/// What a session is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// A statement runs.
    Active,
    /// It waits for its client, outside of a transaction block.
    #[default]
    Idle,
    /// In one.
    IdleInTransaction,
    /// In one that has failed.
    IdleInFailedTransaction,
}

/// One session, as others see it.
pub struct Activity {
    number: u64,
    /// Process id as clients know it.
    pub pid: i32,
    /// User.
    pub user: String,
    /// Name of its database.
    pub database: String,
    /// Where the client is.
    pub client: Option<SocketAddr>,
    /// When it began, microseconds since 2000.
    pub begun: i64,
    session: Weak<SessionState>,
    now: Mutex<Now>,
    /// The transaction that ran last, as locks know it.
    transaction: AtomicU64,
    running: Mutex<Option<Running>>,
    fingerprint: AtomicI64,
    done: Counters,
}

/// What a session does. Times are microseconds since 2000.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// See [`State`].
    pub state: State,
    /// Since when.
    pub since: i64,
    /// The statement that runs, or ran last.
    pub text: String,
    /// When that began.
    pub text_since: Option<i64>,
    /// When the transaction began that is open.
    pub transaction_since: Option<i64>,
}

/// A session as it is shown, on this node or another one. Times are microseconds since 2000.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenSession {
    /// Process id as clients know it.
    pub pid: i32,
    /// User.
    pub user: String,
    /// Name of its database.
    pub database: String,
    /// `application_name`.
    pub application: String,
    /// Where the client is.
    pub client: Option<SocketAddr>,
    /// When it began.
    pub begun: i64,
    /// What it does.
    pub now: Now,
    /// The transaction that ran last, as locks know it.
    pub transaction: u64,
    /// The fingerprint of what it runs or ran last.
    pub fingerprint: Option<i64>,
}

/// Where it is seen how far a statement has come. It ends without being asked.
struct Running {
    txn: Weak<Txn>,
    before: TxnStats,
    memory: Weak<Account>,
    tries: u64,
}

/// How far a statement has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Tries, this one among them.
    pub tries: u64,
    /// Requests to the store.
    pub requests: u64,
    /// What was looked at there.
    pub work: Work,
    /// Times that it waited for a lock, without the one that it waits for now.
    pub lock_waits: u64,
    /// Nanoseconds of that.
    pub lock_wait_nanos: u64,
    /// Bytes that it holds.
    pub memory: usize,
    /// Most bytes that it held.
    pub memory_peak: usize,
}

/// Sums that only their session adds to.
#[derive(Default)]
pub(crate) struct Counters([AtomicU64; 11]);

/// What is summed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sum {
    Commits,
    Rollbacks,
    RowsRead,
    RowsGiven,
    Inserted,
    Updated,
    Deleted,
    Deadlocks,
    Errors,
    BlocksFound,
    BlocksRead,
}

/// What sessions have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done([u64; 11]);

impl Done {
    pub(crate) fn get(&self, sum: Sum) -> u64 {
        self.0[sum as usize]
    }

    /// Transactions that were committed.
    pub fn commits(&self) -> u64 {
        self.get(Sum::Commits)
    }

    /// Transactions that were rolled back.
    pub fn rollbacks(&self) -> u64 {
        self.get(Sum::Rollbacks)
    }

    /// Rows that were read in the store.
    pub fn rows_read(&self) -> u64 {
        self.get(Sum::RowsRead)
    }

    /// Rows that clients were given.
    pub fn rows_given(&self) -> u64 {
        self.get(Sum::RowsGiven)
    }

    /// Rows inserted, updated and deleted.
    pub fn rows_written(&self) -> [u64; 3] {
        [Sum::Inserted, Sum::Updated, Sum::Deleted].map(|sum| self.get(sum))
    }

    /// Statements that failed because of a deadlock.
    pub fn deadlocks(&self) -> u64 {
        self.get(Sum::Deadlocks)
    }

    /// Blocks found in the cache, and those that were not.
    pub fn blocks(&self) -> [u64; 2] {
        [Sum::BlocksFound, Sum::BlocksRead].map(|sum| self.get(sum))
    }

    fn add(&mut self, other: Done) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}

impl Counters {
    fn add(&self, sum: Sum, more: u64) {
        // One writer: no need for an addition that others can see half done.
        let counter = &self.0[sum as usize];
        counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    fn done(&self) -> Done {
        Done(std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed)))
    }
}

impl Activity {
    /// A statement is read, planned or run.
    pub(crate) fn begin(&self, text: &str, at: i64, transaction_since: Option<i64>) {
        let mut now = self.now.lock();
        if now.state != State::Active {
            (now.state, now.since) = (State::Active, at);
        }
        now.text.clear();
        now.text.push_str(&text[..text.floor_char_boundary(TEXT_MAX)]);
        now.text_since = Some(at);
        now.transaction_since = transaction_since.or(Some(at));
    }

    /// The client has its answer.
    pub(crate) fn rest(&self, state: State, at: i64, transaction_since: Option<i64>) {
        let mut now = self.now.lock();
        (now.state, now.since, now.transaction_since) = (state, at, transaction_since);
    }

    /// The statement's fingerprint; 0: it has none.
    pub(crate) fn runs(&self, fingerprint: i64) {
        self.fingerprint.store(fingerprint, Ordering::Relaxed);
    }

    /// A try of its statement begins.
    pub(crate) fn runs_in(
        &self,
        txn: &Arc<Txn>,
        before: TxnStats,
        memory: &Arc<Account>,
        tries: u64,
    ) {
        self.transaction.store(txn.id().0, Ordering::Relaxed);
        let (txn, memory) = (Arc::downgrade(txn), Arc::downgrade(memory));
        *self.running.lock() = Some(Running { txn, before, memory, tries });
    }

    /// How far its statement has come, if one runs in a transaction.
    pub fn progress(&self) -> Option<Progress> {
        let running = self.running.lock();
        let running = running.as_ref()?;
        let (txn, memory) = (running.txn.upgrade()?, running.memory.upgrade()?);
        let (now, before) = (txn.stats(), &running.before);
        Some(Progress {
            tries: running.tries,
            requests: now.requests - before.requests,
            work: now.work.since(before.work),
            lock_waits: now.lock_waits - before.lock_waits,
            lock_wait_nanos: now.lock_wait_nanos - before.lock_wait_nanos,
            memory: memory.used(),
            memory_peak: memory.peak(),
        })
    }

    pub(crate) fn add(&self, sum: Sum, more: u64) {
        if more > 0 {
            self.done.add(sum, more);
        }
    }

    /// What it does.
    pub fn now(&self) -> Now {
        self.now.lock().clone()
    }

    /// The fingerprint of what it runs or ran last.
    pub fn fingerprint(&self) -> Option<i64> {
        Some(self.fingerprint.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// The transaction that ran last, as locks know it.
    pub fn transaction(&self) -> u64 {
        self.transaction.load(Ordering::Relaxed)
    }

    /// As others are shown it.
    pub(crate) fn seen(&self) -> SeenSession {
        SeenSession {
            pid: self.pid,
            user: self.user.clone(),
            database: self.database.clone(),
            application: self.application(),
            client: self.client,
            begun: self.begun,
            now: self.now(),
            transaction: self.transaction(),
            fingerprint: self.fingerprint(),
        }
    }

    /// `application_name`.
    pub fn application(&self) -> String {
        let session = self.session.upgrade();
        session.and_then(|s| s.settings_get("application_name")).unwrap_or_default()
    }
}

impl Sessions {
    /// What they copy.
    pub fn copies(&self) -> &Copies {
        &self.copies
    }

    /// A session begins.
    pub(crate) fn open(
        &self,
        session: &Arc<SessionState>,
        client: Option<SocketAddr>,
        now: i64,
    ) -> Arc<Activity> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let activity = Arc::new(Activity {
            number,
            pid: session.pid(),
            user: session.user.clone(),
            database: session.database.clone(),
            client,
            begun: now,
            session: Arc::downgrade(session),
            now: Mutex::new(Now { since: now, ..Now::default() }),
            transaction: AtomicU64::new(0),
            running: Mutex::default(),
            fingerprint: AtomicI64::new(0),
            done: Counters::default(),
        });
        self.open.lock().insert(number, activity.clone());
        activity
    }

    /// A session has ended.
    pub(crate) fn close(&self, activity: &Activity) {
        let mut open = self.open.lock();
        open.remove(&activity.number);
        let mut ended = self.ended.lock();
        ended.entry(activity.database.clone()).or_default().add(activity.done.done());
    }

    /// All that are open, the oldest first.
    pub fn all(&self) -> Vec<Arc<Activity>> {
        self.open.lock().values().cloned().collect()
    }

    /// What was done in a database since the node started, and how many are connected to it.
    pub fn done(&self, database: &str) -> (Done, usize) {
        // One that ends meanwhile is counted once: it is taken out and summed under this lock.
        let open = self.open.lock();
        let mut sum = self.ended.lock().get(database).copied().unwrap_or_default();
        let own = open.values().filter(|a| a.database == database);
        own.clone().for_each(|activity| sum.add(activity.done.done()));
        (sum, own.count())
    }
}
