//! Where transactions are led from: the place that they ask, and what they need on this side of it.

use std::sync::Arc;

use std::path::PathBuf;
use std::time::Duration;

use braid_env::fs::FileSystem;
use braid_env::memory::Pool;
use bytes::Bytes;

use braid_lsm::{CommitTs, KeySpan, RowClassFn};
use parking_lot::MutexGuard;

use crate::bulk::{BulkFolder, ScratchFile};
use crate::error::{KvError, KvResult};
use crate::locks::TxnId;
use crate::locks::leased::LockLeases;
use crate::read_set::Reads;
use crate::row_form::RowForm;
use crate::shown::Shown;
use crate::spans::{
    LeaseHolder, LockReport, NodeCall, NodeSettings, ShownNode, ShownRange, Spans, Validate,
};
use crate::tally::Tally;
use crate::txn::{Txn, TxnOptions};
use crate::watch::{Watch, Watched};

/// Begins transactions. One for a node; shared by all of its sessions.
pub struct Coordinator {
    spans: Arc<dyn Spans>,
    memory: Arc<Pool>,
    bulk: Arc<BulkFolder>,
    forms: ValueForms,
    leases: Option<LockLeases>,
}

/// What a coordinator has on its own side.
pub struct CoordinatorOptions {
    /// Where the files of bulk loads lie, in a folder `bulk` below `dir`.
    pub fs: Arc<dyn FileSystem>,
    /// See `fs`.
    pub dir: PathBuf,
    /// How those files are written; classes of rows.
    pub engine: braid_lsm::Options,
    /// What transactions and statements may hold together.
    pub memory: Arc<Pool>,
    /// What is known of the values of rows: as where the keys are kept.
    pub row_form: Option<RowForm>,
}

/// What is known of the keys and values that transactions write.
#[derive(Clone, Copy)]
pub(crate) struct ValueForms {
    pub(crate) row_class: RowClassFn,
    pub(crate) row_form: Option<RowForm>,
}

impl Coordinator {
    pub(crate) fn new(
        spans: Arc<dyn Spans>,
        memory: Arc<Pool>,
        bulk: Arc<BulkFolder>,
        forms: ValueForms,
    ) -> Coordinator {
        let leases = spans.lease_home().map(LockLeases::new);
        Coordinator { spans, memory, bulk, forms, leases }
    }

    /// A coordinator of transactions whose keys are kept elsewhere. Removes what an earlier process
    /// left of its bulk loads.
    ///
    /// # Errors
    /// The disk's.
    pub fn over(spans: Arc<dyn Spans>, options: CoordinatorOptions) -> KvResult<Arc<Coordinator>> {
        let CoordinatorOptions { fs, dir, engine, memory, row_form } = options;
        let forms = ValueForms { row_class: engine.row_class, row_form };
        let bulk = BulkFolder::open(fs, &dir, engine)?;
        Ok(Arc::new(Coordinator::new(spans, memory, bulk, forms)))
    }

    /// Starts a transaction.
    ///
    /// # Errors
    /// [`crate::KvError::TimestampOutOfWindow`] for a read timestamp that cannot be read.
    pub fn begin(self: &Arc<Self>, mut options: TxnOptions) -> KvResult<Arc<Txn>> {
        // What a statement does beside its own transaction may wait for other nodes, too.
        if self.leases.is_some() && options.cancel.is_none() {
            options.cancel = Tally::stop_flag();
        }
        let begun = self.spans.begin(options.as_of)?;
        Ok(Arc::new(Txn::new(self.clone(), begun, options)))
    }

    /// What transactions and statements hold together.
    pub fn memory(&self) -> &Arc<Pool> {
        &self.memory
    }

    /// Whether all running transactions have begun after this one, which has ended.
    pub fn all_younger_than(&self, txn: TxnId) -> bool {
        self.spans.all_younger_than(txn)
    }

    /// A number that no other call has returned or will return, also after a restart, as long as
    /// what is made of it is committed: the clock never falls behind a commit. Grows with time,
    /// whatever happens to the physical clock.
    pub fn unique_number(&self) -> i64 {
        self.spans.unique_number()
    }

    /// Physical clock, microseconds since 1970.
    pub fn wall_clock_us(&self) -> u64 {
        self.spans.wall_clock_us()
    }

    /// What clients are told that the time is: see [`Spans::told_clock_us`].
    pub fn told_clock_us(&self) -> u64 {
        self.spans.told_clock_us()
    }

    /// The timestamp whose physical part is `us` microseconds since 1970.
    pub fn timestamp_at(us: u64) -> CommitTs {
        CommitTs(us << braid_env::clock::LOGICAL_BITS)
    }

    /// Blocks until what a session has seen is durable: see [`Shown::settle`].
    pub fn settle(&self, shown: &Shown) -> KvResult<()> {
        shown.settle(&*self.spans)
    }

    /// About how many bytes a span has in files; what was written last is not in one yet.
    pub fn stored_bytes(&self, span: &KeySpan) -> KvResult<u64> {
        self.spans.stored_bytes(span)
    }

    /// Watches what commits touch from now on, until it is dropped. Transactions that begin after
    /// this see everything that the watch does not.
    pub fn watch(self: &Arc<Self>, watch: Watch) -> Watching {
        Watching { number: self.spans.watch(watch), coordinator: self.clone() }
    }

    /// The locks, to look at; of those under leases the ones of this node.
    pub fn describe_locks(&self) -> LockReport {
        let mut report = self.spans.describe_locks();
        report.locks.extend(self.leases.iter().flat_map(LockLeases::shown));
        report
    }

    /// Leases on locks; `None` where nobody else locks anything.
    pub fn leases(&self) -> Option<&LockLeases> {
        self.leases.as_ref()
    }

    /// Whether this process holds a lease, or is about to get one: until it says no, whoever
    /// recalls it is told to wait.
    pub fn holds_lease(&self, held: bool) {
        self.spans.holds_lease(held);
    }

    /// Blocks until somebody recalls the lease, but not for longer than that; whether somebody has.
    pub fn await_recall(&self, patience: Duration) -> bool {
        self.spans.await_recall(patience)
    }

    /// Asks for a lease back; whether its holder has given it back. If not, a moment has passed.
    pub fn recall(&self, holder: LeaseHolder) -> bool {
        self.spans.recall(holder)
    }

    /// Gives this process's lease back, if it has one.
    ///
    /// # Errors
    /// If locks under it cannot be taken where keys are kept; then nobody relies on it anew.
    pub fn give_lease_back(&self) -> KvResult<()> {
        let Some(leases) = &self.leases else { return Ok(()) };
        let _kept = leases.keep();
        leases.give_back(&*self.spans)
    }

    /// The same for who [keeps](LockLeases::keep) others from it.
    ///
    /// # Errors
    /// As [`Coordinator::give_lease_back`].
    pub fn give_kept_lease_back(&self, _kept: &MutexGuard<'_, ()>) -> KvResult<()> {
        self.leases.as_ref().map_or(Ok(()), |leases| leases.give_back(&*self.spans))
    }

    /// Makes a key the first one of a range, if it is not.
    ///
    /// # Errors
    /// [`KvError::Unavailable`] if nobody serves its range, or there are no ranges.
    pub fn split_at(&self, key: &[u8]) -> KvResult<()> {
        self.spans.split_at(key)
    }

    /// The ranges in key order; `None`: keys are in one store, and there are no ranges.
    pub fn describe_ranges(&self) -> KvResult<Option<Vec<ShownRange>>> {
        self.spans.describe_ranges()
    }

    /// All nodes that the cluster ever had, by number; none if there is no cluster.
    pub fn describe_nodes(&self) -> Vec<ShownNode> {
        self.spans.describe_nodes()
    }

    /// This node goes by the cluster's settings of a version, at least: others are told.
    pub fn goes_by_settings(&self, version: u64) {
        self.spans.goes_by_settings(version);
    }

    /// Blocks until some node tells of settings that are newer than `known`, but not for longer
    /// than that; the newest version that was told of.
    pub fn await_settings(&self, known: u64, patience: Duration) -> u64 {
        self.spans.await_settings(known, patience)
    }

    /// Asks a node something: see [`Spans::call_node`].
    pub fn call_node(&self, node: u64, body: Bytes, patience: Duration) -> Option<Bytes> {
        self.spans.call_node(node, body, patience)
    }

    /// The next thing that another node asks: see [`Spans::next_call`].
    pub fn next_call(&self, patience: Duration) -> Option<NodeCall> {
        self.spans.next_call(patience)
    }

    /// Answers what another node has asked.
    pub fn answer_call(&self, call: &NodeCall, answer: Bytes) {
        self.spans.answer_call(call, answer);
    }

    /// There are so many messages of sessions to each other: other nodes are told.
    pub fn has_messages(&self, count: u64) {
        self.spans.has_messages(count);
    }

    /// Blocks until some node tells of more messages than are `known`, but not for longer than
    /// that; `None`: of any.
    pub fn await_messages(&self, known: Option<u64>, patience: Duration) {
        self.spans.await_messages(known, patience);
    }

    /// By which version of the settings each node goes, as far as it has said so; none if there is
    /// no cluster.
    pub fn settings_of_nodes(&self) -> Vec<NodeSettings> {
        self.spans.settings_of_nodes()
    }

    pub(crate) fn spans(&self) -> &dyn Spans {
        &*self.spans
    }

    /// Replaces what a job has noted to go on in another process; durable when it returns.
    pub fn write_job_note(&self, job: u32, content: &[u8]) -> KvResult<()> {
        self.bulk.write_note(job, content)
    }

    /// What a job has noted; `None` if there is nothing, or not whole.
    pub fn read_job_note(&self, job: u32) -> Option<Vec<u8>> {
        self.bulk.read_note(job)
    }

    /// Removes files of jobs' loads, and their notes, of which `lives` says no, given the job and
    /// the file's name.
    pub fn sweep_job_files(&self, lives: impl Fn(u32, &str) -> bool) -> KvResult<()> {
        self.bulk.sweep(lives)
    }

    /// A timestamp between what has happened and what will.
    pub fn now(self: &Arc<Self>) -> KvResult<CommitTs> {
        Ok(self.begin(TxnOptions::default())?.read_ts())
    }

    /// Whether nothing in these spans has changed after a timestamp. Where nobody can look back so
    /// far, something may have: what was deleted since then can be gone without a trace.
    pub fn is_unchanged(self: &Arc<Self>, spans: Vec<KeySpan>, since: CommitTs) -> KvResult<bool> {
        let Some(_kept) = self.look_back(since)? else { return Ok(spans.is_empty()) };
        let reads = Reads { spans, ..Reads::default() };
        let through = self.now()?;
        match self.spans.validate(&Validate { floor: since, through, reads }) {
            Ok(()) => Ok(true),
            Err(KvError::Retry { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// A transaction that sees what there was at a timestamp, and as long as it lives nothing of
    /// that goes; `None` if some of it may be gone.
    pub fn look_back(self: &Arc<Self>, to: CommitTs) -> KvResult<Option<Arc<Txn>>> {
        match self.begin(TxnOptions { as_of: Some(to), ..TxnOptions::default() }) {
            Ok(txn) => Ok(Some(txn)),
            Err(KvError::TimestampOutOfWindow { .. }) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// A file for what does not fit into memory, gone with its value.
    pub fn scratch_file(&self) -> KvResult<ScratchFile> {
        ScratchFile::create(&self.bulk)
    }

    pub(crate) fn bulk_folder(&self) -> &Arc<BulkFolder> {
        &self.bulk
    }

    pub(crate) fn row_class(&self) -> RowClassFn {
        self.forms.row_class
    }

    pub(crate) fn row_form(&self) -> Option<RowForm> {
        self.forms.row_form
    }
}

/// A watch that is open.
pub struct Watching {
    number: u64,
    coordinator: Arc<Coordinator>,
}

impl Watching {
    /// What was touched since the last question by what this transaction sees; more than that, now
    /// and then.
    pub fn upto(&self, txn: &Txn) -> Watched {
        self.coordinator.spans().watched(self.number, txn.read_ts())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.coordinator.spans().unwatch(self.number);
    }
}
