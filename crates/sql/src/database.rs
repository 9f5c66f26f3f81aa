//! What all sessions of a node share: the coordinator of transactions, the current catalog,
//! sequences, row ids.
//!
//! **Catalog cache.** A transaction must use the catalog as of its read timestamp. Reading and
//! comparing the version key for each transaction would cost a read, so schema changes announce
//! themselves: `started` is raised before such a transaction commits, `finished` after. While both
//! are equal and did not change since the cached catalog was loaded, the cached one is the
//! catalog of every transaction that begins.
//!
//! ```text
//!   started   1 ─────────────► 2
//!   finished  1 ──────────────────────────► 2
//!   begin here: cached         |  here: read the version key   |  here: load, then cached again
//! ```
//!
//! In a cluster other nodes change it, too: each transaction looks what its version is, unless the
//! node's lease says that it stays what it is ([`crate::runtime`]).
//!
//! **Sequences** hand out values outside of transactions, from blocks that are reserved durably; a
//! crash loses the rest of a block, never repeats a value. A node that ends in order gives it back.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use braid_catalog::{
    After, Catalog, SchemaLease, Sequence, kv_error, load_catalog, read_version, reserve_ids,
};
use braid_import::Folder;
use braid_keys::system;
use braid_kv::{CommitTs, Coordinator, Isolation, KvError, Tally, Txn, TxnOptions};
use braid_settings::{DiskCopy, Live};
use braid_types::{SqlError, SqlResult, SqlState};
use parking_lot::{Mutex, MutexGuard};

use crate::cluster_settings::digest;
use crate::general_query::GeneralQueries;
use crate::jobs::expiry::Expiry;
use crate::jobs::reclaim::Reclaim;
use crate::jobs::undo::Undo;
use crate::jobs::{Jobs, Reclaimed};
use crate::over_nodes::OverNodes;
use crate::runtime::advisory::{AdvisoryLock, AdvisoryLocks};
use crate::runtime::channels::Channels;
use crate::runtime::node::Runtime;
use crate::runtime::{Sessions, Statements, Transactions};
use crate::session::settings::Settings;
use crate::session::{Backends, Cause, drop_leftovers, session_number, sessions_most};
use crate::statistics::Statistics;

/// Microseconds from 1970 to 2000, PostgreSQL's epoch.
pub(crate) const EPOCH_MICROS: i64 = 946_684_800_000_000;

/// How often the catalog is looked for as of a later time, if another node changes it.
const CATALOG_TRIES: u32 = 20;

/// Values of a sequence reserved at once when its CACHE is 1.
const SEQUENCE_BLOCK: i128 = 64;

/// Who waits for a sequence looks so often whether it should stop.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// See the [module documentation](self).
pub struct Database {
    coordinator: Arc<Coordinator>,
    general: Arc<dyn GeneralQueries>,
    cache: Mutex<Cached>,
    started: AtomicU64,
    finished: AtomicU64,
    /// By sequence id and generation.
    sequences: Mutex<HashMap<(u32, u32), SharedBlock>>,
    random: Mutex<braid_env::random::Random>,
    next_pid: AtomicU64,
    backends: OnceLock<Arc<dyn Backends>>,
    jobs: Jobs,
    undos: Mutex<Vec<Undo>>,
    reclaim: Reclaim,
    runtime: Runtime,
    statistics: Statistics,
    cluster_settings: Live,
}

struct Cached {
    catalog: Arc<Catalog>,
    /// Value of `started` when it was loaded with no schema change in flight.
    stable_at: Option<u64>,
}

type SharedBlock = Arc<Mutex<Block>>;

/// Reserved values: `next` is the next to hand out, `left` how many may be. They follow the rules
/// by which they were reserved; under other ones they are given back.
#[derive(Default)]
struct Block {
    next: i128,
    left: u64,
    rules: Option<Rules>,
}

/// What of a sequence's declaration decides its values.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Rules {
    increment: i64,
    min: i64,
    max: i64,
    cycle: bool,
    cache: i64,
}

impl Rules {
    fn of(s: &Sequence) -> Rules {
        let Sequence { increment, min, max, cycle, cache, .. } = *s;
        Rules { increment, min, max, cycle, cache }
    }
}

impl Database {
    /// Opens the database behind a coordinator; creates the first database and schema in an empty
    /// one.
    pub fn open(
        coordinator: Arc<Coordinator>,
        general: Arc<dyn GeneralQueries>,
    ) -> SqlResult<Arc<Database>> {
        braid_catalog::bootstrap(&coordinator)?;
        crate::bulk::erase_unfinished(&coordinator)?;
        crate::jobs::undo::all(&coordinator)?;
        let database = Database::of(coordinator, general, None)?;
        drop_leftovers(&database)?;
        Ok(database)
    }

    /// The same on a node of a cluster. What looks left behind may belong to another node, so
    /// nothing is taken away, and what could leave something is refused; each transaction looks
    /// whether another node has changed the catalog, unless somebody keeps a lease
    /// ([`Database::keep_schema_lease`]). `settings` is this node's copy of the cluster's settings.
    pub fn open_shared(
        coordinator: Arc<Coordinator>,
        general: Arc<dyn GeneralQueries>,
        settings: DiskCopy,
    ) -> SqlResult<Arc<Database>> {
        braid_catalog::bootstrap(&coordinator)?;
        Database::of(coordinator, general, Some(settings))
    }

    fn of(
        coordinator: Arc<Coordinator>,
        general: Arc<dyn GeneralQueries>,
        settings: Option<DiskCopy>,
    ) -> SqlResult<Arc<Database>> {
        let shared = settings.is_some();
        let cluster_settings = Live::open(settings, digest).map_err(|e| {
            let text = format!("the copy of the cluster settings cannot be read: {e}");
            SqlError::new(SqlState::IO_ERROR, text)
        })?;
        let txn = coordinator.begin(read_only()).map_err(kv_error)?;
        let catalog = Arc::new(load_catalog(&txn)?);
        crate::jobs::reclaim::adopt(&coordinator, &catalog)?;
        let now = coordinator.wall_clock_us();
        let adopted = coordinator.begin(read_only()).map_err(kv_error)?;
        let reclaim = Reclaim::for_catalog(&adopted, &catalog, now)?;
        let runtime = Runtime::new(now as i64 - EPOCH_MICROS, shared);
        let database = Arc::new(Database {
            coordinator,
            general,
            cache: Mutex::new(Cached { catalog, stable_at: Some(0) }),
            started: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            sequences: Mutex::new(HashMap::new()),
            random: Mutex::new(braid_env::random::Random::from_entropy()),
            next_pid: AtomicU64::new(1),
            backends: OnceLock::new(),
            jobs: Jobs::default(),
            undos: Mutex::default(),
            reclaim,
            runtime,
            statistics: Statistics::default(),
            cluster_settings,
        });
        database.read_cluster_settings()?;
        Ok(database)
    }

    /// What holds on all nodes.
    pub fn cluster_settings(&self) -> &Live {
        &self.cluster_settings
    }

    /// The number of this node in its cluster; 0 on one that is alone.
    pub(crate) fn own_node(&self) -> u64 {
        self.home().map_or(0, |home| home.holder.node)
    }

    /// Whether other nodes have the same tables.
    pub(crate) fn is_shared(&self) -> bool {
        self.runtime.shared
    }

    /// Where transactions are begun.
    pub fn coordinator(&self) -> &Arc<Coordinator> {
        &self.coordinator
    }

    /// The planner of general queries.
    pub fn general(&self) -> &Arc<dyn GeneralQueries> {
        &self.general
    }

    /// What statements have done.
    pub fn statements(&self) -> &Statements {
        &self.runtime.statements
    }

    /// What transactions have done.
    pub fn transactions(&self) -> &Transactions {
        &self.runtime.transactions
    }

    /// Puts what transactions have done aside each time that a minute of the clock is over. To be
    /// called every second by a background task.
    pub fn count_minutes(&self) {
        let now = self.clock_micros();
        if self.runtime.transactions.is_minute_over(now) {
            let all = self.runtime.transactions.all(&self.statements().all());
            self.runtime.transactions.close_minute(now, all);
        }
    }

    /// Who is connected, and what each does.
    pub fn sessions(&self) -> &Sessions {
        &self.runtime.sessions
    }

    /// Locks on numbers that sessions of this node hold or wait for.
    pub fn advisory_locks(&self) -> Vec<AdvisoryLock> {
        self.runtime.advisory.shown()
    }

    /// Locks on numbers.
    pub(crate) fn advisory(&self) -> &AdvisoryLocks {
        &self.runtime.advisory
    }

    /// Who listens to what.
    pub(crate) fn channels(&self) -> &Channels {
        &self.runtime.channels
    }

    /// What sessions of different nodes have in common.
    pub(crate) fn over_nodes(&self) -> &OverNodes {
        &self.runtime.over_nodes
    }

    /// Ends a session of this node: what it relies on is not so any more.
    pub(crate) fn end_session(&self, pid: i32) {
        if let Some(backends) = self.backends.get() {
            backends.signal(pid, Cause::Terminate);
        }
    }

    /// Has a session look for what it is to be told.
    pub(crate) fn wake(&self, pid: i32) {
        if let Some(backends) = self.backends.get() {
            backends.wake(pid);
        }
    }

    /// Settings that sessions begin with and RESET returns to; the first call counts.
    ///
    /// # Errors
    /// 42704 for a setting that there is not, 22023 for a value that it cannot have.
    pub fn set_defaults(&self, settings: Vec<(String, String)>) -> SqlResult<()> {
        Settings::check_all(&settings)?;
        self.runtime.defaults.get_or_init(|| settings);
        Ok(())
    }

    pub(crate) fn defaults(&self) -> &[(String, String)] {
        self.runtime.defaults.get().map_or(&[], |settings| settings)
    }

    /// Says below which folder IMPORT finds its files; the first call counts.
    pub fn set_import_folder(&self, folder: impl Into<PathBuf>) {
        self.runtime.import_folder.get_or_init(|| Folder::new(folder));
    }

    /// Where IMPORT finds its files.
    ///
    /// # Errors
    /// 55000 if the node has no such folder.
    pub(crate) fn import_folder(&self) -> SqlResult<&Folder> {
        self.runtime.import_folder.get().ok_or_else(|| {
            let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
            SqlError::new(state, "this node has no folder for imports")
                .with_hint("Start it with --import-dir, or use COPY FROM STDIN.")
        })
    }

    /// Says where the sessions of the node are found; the first call counts.
    pub fn set_backends(&self, backends: Arc<dyn Backends>) {
        self.backends.get_or_init(|| backends);
    }

    /// The sessions of the node, if there is a server.
    pub(crate) fn backends(&self) -> Option<&Arc<dyn Backends>> {
        self.backends.get()
    }

    /// Jobs that run.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Takes away what nobody can reach any more and what was given up before `readable`, the
    /// oldest time that can be read. Looks at up to `budget` keys. Called from time to time by a
    /// background task.
    pub fn reclaim(&self, readable: CommitTs, budget: usize) -> SqlResult<()> {
        crate::jobs::reclaim::step(self, readable, budget)
    }

    /// What [`Database::reclaim`] has done.
    pub fn reclaimed(&self) -> Reclaimed {
        self.reclaim.done()
    }

    pub(crate) fn expiry(&self) -> &Expiry {
        self.jobs.expiry()
    }

    pub(crate) fn reclaim_state(&self) -> &Reclaim {
        &self.reclaim
    }

    pub(crate) fn schema_lease(&self) -> &SchemaLease {
        &self.runtime.schema_lease
    }

    pub(crate) fn statistics_state(&self) -> &Statistics {
        &self.statistics
    }

    /// Takes back a job that has ended too early, now or, if somebody is in the way, from time to
    /// time until that is done.
    pub(crate) fn undo(&self, undo: Undo) -> SqlResult<()> {
        self.undos.lock().push(undo);
        self.go_on_with_jobs()
    }

    /// Goes on with what jobs have left to do that had to wait. Called from time to time by a
    /// background task.
    pub fn go_on_with_jobs(&self) -> SqlResult<()> {
        crate::bulk::erase_abandoned(&self.coordinator)?;
        let undos = std::mem::take(&mut *self.undos.lock());
        let mut result = Ok(());
        for mut undo in undos {
            match undo.go_on(self) {
                Ok(true) => {}
                Ok(false) => self.undos.lock().push(undo),
                Err(e) => {
                    self.undos.lock().push(undo);
                    result = Err(e);
                }
            }
        }
        result
    }

    /// The newest committed catalog.
    pub fn current_catalog(&self) -> SqlResult<Arc<Catalog>> {
        let (_txn, catalog) = self.begin(read_only())?;
        Ok(catalog)
    }

    /// Begins a transaction together with the catalog as of its read timestamp.
    pub fn begin(&self, options: TxnOptions) -> SqlResult<(Arc<Txn>, Arc<Catalog>)> {
        let before = self.started.load(Ordering::SeqCst);
        let calm = self.finished.load(Ordering::SeqCst) == before && options.as_of.is_none();
        let mut tries = 0;
        let txn = self.coordinator.begin(options).map_err(kv_error)?;
        if self.runtime.shared
            && let Some(catalog) = self.leased_catalog(&txn)
        {
            return Ok((txn, catalog));
        }
        let calm = calm && !self.runtime.shared && self.started.load(Ordering::SeqCst) == before;
        loop {
            match self.catalog_for(&txn, calm.then_some(before)) {
                Ok(catalog) => return Ok((txn, catalog)),
                // Another node has changed it about when this one began.
                Err(e)
                    if self.runtime.shared
                        && After::error(&e).is_again()
                        && tries < CATALOG_TRIES =>
                {
                    tries += 1;
                    txn.restart().map_err(kv_error)?;
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// The catalog for a transaction that has a new read timestamp.
    pub(crate) fn catalog_at(&self, txn: &Arc<Txn>) -> SqlResult<Arc<Catalog>> {
        if self.runtime.shared
            && let Some(catalog) = self.leased_catalog(txn)
        {
            return Ok(catalog);
        }
        let may_move = self.runtime.shared && txn.isolation() == Isolation::ReadCommitted;
        let mut tries = 0;
        loop {
            match self.catalog_for(txn, None) {
                Err(e) if may_move && After::error(&e).is_again() && tries < CATALOG_TRIES => {
                    tries += 1;
                    txn.begin_statement().map_err(kv_error)?;
                }
                other => return other,
            }
        }
    }

    fn catalog_for(&self, txn: &Arc<Txn>, stable: Option<u64>) -> SqlResult<Arc<Catalog>> {
        {
            let cache = self.cache.lock();
            if stable.is_some() && cache.stable_at == stable {
                return Ok(cache.catalog.clone());
            }
        }
        let version = read_version(txn)?.unwrap_or(0);
        {
            let mut cache = self.cache.lock();
            if cache.catalog.version == version {
                if stable.is_some() {
                    cache.stable_at = stable;
                }
                return Ok(cache.catalog.clone());
            }
        }
        let loaded = Arc::new(load_catalog(txn)?);
        let mut cache = self.cache.lock();
        if loaded.version > cache.catalog.version {
            *cache = Cached { catalog: loaded.clone(), stable_at: stable };
        }
        Ok(loaded)
    }

    /// Counts schema changes; `None` while one is being committed, or if other nodes may commit
    /// one, as they can where this one has no lease. Taken before a read timestamp is chosen and
    /// equal later: no schema change was committed after that timestamp.
    pub(crate) fn schema_epoch(&self) -> Option<u64> {
        if self.runtime.shared {
            return self.lease_epoch();
        }
        let finished = self.finished.load(Ordering::SeqCst);
        let started = self.started.load(Ordering::SeqCst);
        (started == finished).then_some(started)
    }

    /// Commits a transaction that changed the catalog, announcing it to all sessions.
    pub(crate) fn commit_schema_change(&self, txn: &Txn) -> Result<(), KvError> {
        self.started.fetch_add(1, Ordering::SeqCst);
        let result = txn.commit();
        self.finished.fetch_add(1, Ordering::SeqCst);
        result.map(|_| ())
    }

    /// Ids that were never used.
    pub(crate) fn new_ids(&self, count: u32) -> SqlResult<u32> {
        reserve_ids(&self.coordinator, count)
    }

    /// A new id for a row without a primary key: grows with time, also over restarts, and whatever
    /// is done to the physical clock.
    pub(crate) fn new_row_id(&self) -> i64 {
        self.coordinator.unique_number()
    }

    /// Now, in microseconds since 2000-01-01 UTC, as clients are told it: what is read as of that
    /// time has all that was acknowledged to them here.
    pub fn clock_micros(&self) -> i64 {
        self.coordinator.told_clock_us() as i64 - EPOCH_MICROS
    }

    /// When the node began, in microseconds since 2000-01-01 UTC.
    pub fn begun_micros(&self) -> i64 {
        self.runtime.begun_micros
    }

    /// Random bits.
    pub(crate) fn random_u64(&self) -> u64 {
        self.random.lock().next_u64()
    }

    /// A process id to show to clients.
    pub(crate) fn new_pid(&self) -> i32 {
        let node = self.own_node();
        let count = self.next_pid.fetch_add(1, Ordering::Relaxed);
        session_number(node, (count & sessions_most(node) as u64) as i32)
    }

    fn block(&self, s: &Sequence) -> Arc<Mutex<Block>> {
        self.sequences.lock().entry((s.id, s.generation)).or_default().clone()
    }

    /// The next value of a sequence.
    ///
    /// # Errors
    /// 2200H when a sequence without CYCLE is at its bound.
    pub fn nextval(&self, s: &Sequence) -> SqlResult<i64> {
        let Some(reversed) = &s.reversed else { return self.next_counter(s) };
        loop {
            if let Some(value) = reversed.value(self.next_counter(s)?) {
                return Ok(value);
            }
        }
    }

    fn next_counter(&self, s: &Sequence) -> SqlResult<i64> {
        let block = self.block(s);
        let mut block = locked(&block)?;
        if block.left > 0 && block.rules != Some(Rules::of(s)) {
            self.give_back(s, &mut block)?;
        }
        if block.left == 0 {
            *block = self.reserve_block(s)?;
        }
        let value = block.next;
        block.next += i128::from(s.increment);
        block.left -= 1;
        Ok(value as i64)
    }

    /// Returns the rest of a block, so that the next value is the one after the last handed out.
    fn give_back(&self, s: &Sequence, block: &mut Block) -> SqlResult<()> {
        let key = system::sequence_value(s.id, s.generation);
        loop {
            let txn = self.coordinator.begin(snapshot()).map_err(kv_error)?;
            let increment = block.rules.map_or(s.increment, |r| r.increment);
            let last = Position { value: block.next - i128::from(increment), is_called: true };
            if self.store_sequence(&txn, key.clone(), last)? {
                *block = Block::default();
                return Ok(());
            }
        }
    }

    /// Returns the rest of all blocks, for an end in order: the next process goes on with the value
    /// after the last one that was handed out. Whoever asks afterwards reserves a block anew, so
    /// nothing is ever handed out twice. In a cluster other nodes reserve behind these blocks, and
    /// they are lost.
    ///
    /// # Errors
    /// Of the store; then values are left out, as after a crash.
    pub fn give_sequences_back(&self) -> SqlResult<()> {
        if self.is_shared() {
            return Ok(());
        }
        let all = self.sequences.lock();
        let mut blocks: Vec<_> = all.iter().map(|(id, block)| (*id, block.lock())).collect();
        blocks.retain(|(_, block)| block.left > 0);
        while !blocks.is_empty() {
            let txn = self.coordinator.begin(snapshot()).map_err(kv_error)?;
            for ((id, generation), block) in &blocks {
                let Some(rules) = block.rules else { continue };
                let key = system::sequence_value(*id, *generation);
                let step = i128::from(rules.increment);
                let (last, end) =
                    (block.next - step, block.next + step * i128::from(block.left - 1));
                // A sequence that is gone, or whose making was rolled back, is not to come back.
                let stored = stored_position(&txn, &key)?;
                if stored.is_some_and(|at| at.is_called && at.value == end) {
                    let last = Position { value: last, is_called: true };
                    txn.put(key, last.encode()).map_err(kv_error)?;
                }
            }
            match txn.commit() {
                Ok(_) => break,
                Err(KvError::Retry { .. }) => {}
                Err(e) => return Err(kv_error(e)),
            }
        }
        blocks.iter_mut().for_each(|(_, block)| **block = Block::default());
        Ok(())
    }

    fn reserve_block(&self, s: &Sequence) -> SqlResult<Block> {
        let key = system::sequence_value(s.id, s.generation);
        loop {
            let txn = self.coordinator.begin(snapshot()).map_err(kv_error)?;
            let mut next = match stored_position(&txn, &key)? {
                None => i128::from(s.start),
                Some(Position { value, is_called: false }) => value,
                Some(Position { value, is_called: true }) => value + i128::from(s.increment),
            };
            let (min, max) = (i128::from(s.min), i128::from(s.max));
            if next > max || next < min {
                if !s.cycle {
                    let (which, bound) =
                        if s.increment > 0 { ("maximum", s.max) } else { ("minimum", s.min) };
                    return Err(SqlError::new(
                        SqlState("2200H"),
                        format!(
                            "nextval: reached {which} value of sequence \"{}\" ({bound})",
                            s.name
                        ),
                    ));
                }
                next = if s.increment > 0 { min } else { max };
            }
            let step = i128::from(s.increment);
            let room = if step > 0 { (max - next) / step } else { (next - min) / -step } + 1;
            let count = room.min(i128::from(s.cache).max(SEQUENCE_BLOCK));
            let last = Position { value: next + step * (count - 1), is_called: true };
            if self.store_sequence(&txn, key.clone(), last)? {
                return Ok(Block { next, left: count as u64, rules: Some(Rules::of(s)) });
            }
        }
    }

    fn store_sequence(&self, txn: &Txn, key: Vec<u8>, at: Position) -> SqlResult<bool> {
        let result = txn.put(key, at.encode()).and_then(|()| txn.commit().map(|_| ()));
        match result {
            Ok(()) => Ok(true),
            Err(KvError::Retry { .. }) => Ok(false),
            Err(e) => Err(kv_error(e)),
        }
    }

    /// The last value of a sequence that was handed out; `false`: none was, and it is the first.
    ///
    /// # Errors
    /// Of reading it.
    pub fn sequence_position(&self, s: &Sequence) -> SqlResult<(i64, bool)> {
        let block = self.block(s);
        let block = locked(&block)?;
        if block.left > 0 {
            let increment = block.rules.map_or(s.increment, |r| r.increment);
            return Ok(((block.next - i128::from(increment)) as i64, true));
        }
        let txn = self.coordinator.begin(snapshot()).map_err(kv_error)?;
        let stored = stored_position(&txn, &system::sequence_value(s.id, s.generation))?;
        Ok(stored.map_or((s.start, false), |at| (at.value as i64, at.is_called)))
    }

    /// Sets a sequence; the next value is `value`, or the one after it when `is_called`.
    pub fn setval(&self, s: &Sequence, value: i64, is_called: bool) -> SqlResult<()> {
        if value < s.min || value > s.max {
            return Err(SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!(
                    "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                    s.name, s.min, s.max
                ),
            ));
        }
        let block = self.block(s);
        let mut block = locked(&block)?;
        let at = Position { value: i128::from(value), is_called };
        let key = system::sequence_value(s.id, s.generation);
        loop {
            let txn = self.coordinator.begin(snapshot()).map_err(kv_error)?;
            if self.store_sequence(&txn, key.clone(), at)? {
                *block = Block::default();
                return Ok(());
            }
        }
    }
}

/// Who has a block may wait for other nodes, to reserve another one; who waits for that stops with
/// its statement.
fn locked(block: &Mutex<Block>) -> SqlResult<MutexGuard<'_, Block>> {
    loop {
        if let Some(block) = block.try_lock_for(LOOK_EVERY) {
            return Ok(block);
        }
        if Tally::stop_flag().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(kv_error(KvError::Canceled));
        }
    }
}

/// Where a sequence stands, as it is stored.
#[derive(Clone, Copy)]
struct Position {
    value: i128,
    /// The value was handed out or reserved; else it is the next one.
    is_called: bool,
}

impl Position {
    /// 16 bytes value, big endian; 1 byte: 1 if it is called. Without that byte it is not.
    fn encode(&self) -> Vec<u8> {
        let mut out = self.value.to_be_bytes().to_vec();
        out.push(u8::from(self.is_called));
        out
    }

    fn decode(bytes: &[u8]) -> Option<Position> {
        let (value, called) = bytes.split_at_checked(16)?;
        let is_called = match called {
            [] | [0] => false,
            [1] => true,
            _ => return None,
        };
        Some(Position { value: i128::from_be_bytes(value.try_into().ok()?), is_called })
    }
}

fn stored_position(txn: &Txn, key: &[u8]) -> SqlResult<Option<Position>> {
    let Some(bytes) = txn.get(key).map_err(kv_error)? else { return Ok(None) };
    Position::decode(&bytes).map(Some).ok_or_else(|| {
        SqlError::new(SqlState::DATA_CORRUPTED, "damaged system record: sequence value")
    })
}

fn read_only() -> TxnOptions {
    TxnOptions { read_only: true, ..TxnOptions::default() }
}

fn snapshot() -> TxnOptions {
    TxnOptions { isolation: Isolation::RepeatableRead, ..TxnOptions::default() }
}
