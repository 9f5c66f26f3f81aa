//! DataFusion's memory, out of the statement's account.
//!
//! Its operators ask before they grow. Those that can spill do so when they are refused, into files
//! below the data directory; the others fail, and the error names them.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_catalog::memory_error;
use braid_env::memory::{Account, Exceeded, Scope};
use braid_types::{SqlError, SqlResult, SqlState};
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use parking_lot::Mutex;

use crate::error::from_df;

/// Where plans may spill to; `None`: nowhere.
#[derive(Clone, Debug, Default)]
pub struct SpillDirectory(pub Option<PathBuf>);

/// This part of a statement's memory is kept for operators that cannot spill.
const SPARE_PART: usize = 8;

/// What a running plan takes apart from what its operators ask for: the plans themselves, batches
/// between operators. Taken from the node, not from the statement: it cannot do with less.
const PLAN_BYTES: usize = 512 << 10;

/// The statement's account as DataFusion sees it.
#[derive(Debug)]
struct StatementPool {
    account: Arc<Account>,
    /// Holds [`PLAN_BYTES`] as long as this lives.
    _plan: Arc<Account>,
    spillers: Mutex<Spillers>,
}

/// Whether an operator gets an equal share: it can spill, or merges what was spilled, in several
/// rounds if need be.
fn shares(consumer: &MemoryConsumer) -> bool {
    consumer.can_spill() || merges(consumer)
}

/// Whether an operator merges rows that a sort holds, which are counted for both meanwhile, or has
/// spilled.
fn merges(consumer: &MemoryConsumer) -> bool {
    consumer.name().starts_with("ExternalSorterMerge")
}

/// Operators that get along with less. They share equally what the others leave: one sort that took
/// all would leave nothing for the next, which cannot make it spill.
#[derive(Debug, Default)]
struct Spillers {
    count: usize,
    bytes: usize,
    /// The most that one of them was given, merges apart.
    most: usize,
}

/// What all operators of a statement may hold together that can spill: at most a third of what the
/// node gives at the moment, since they need it only to be faster.
pub(crate) fn spillers_limit(account: &Account) -> usize {
    account.limit().min(account.pool().room() / 3)
}

impl StatementPool {
    /// What one operator that can spill may hold.
    fn share(&self) -> usize {
        let spillers = self.spillers.lock();
        let others = self.account.used().saturating_sub(spillers.bytes);
        let limit = spillers_limit(&self.account);
        (limit - limit / SPARE_PART).saturating_sub(others) / spillers.count.max(1)
    }

    fn count(&self, reservation: &MemoryReservation, change: isize) {
        if shares(reservation.consumer()) {
            let mut spillers = self.spillers.lock();
            spillers.bytes = spillers.bytes.saturating_add_signed(change);
            if !merges(reservation.consumer()) {
                let size = reservation.size().saturating_add_signed(change);
                spillers.most = spillers.most.max(size);
            }
        }
    }
}

impl fmt::Display for StatementPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "statement ({} bytes held)", self.account.used())
    }
}

impl MemoryPool for StatementPool {
    fn name(&self) -> &str {
        "statement"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if shares(consumer) {
            self.spillers.lock().count += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if shares(consumer) {
            self.spillers.lock().count -= 1;
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.account.take_anyway(additional);
        self.count(reservation, additional as isize);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.account.give(shrink);
        self.count(reservation, -(shrink as isize));
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let merges = merges(reservation.consumer());
        if merges && reservation.size() + additional <= self.spillers.lock().most {
            // Its sort has grown to that when there was more room, and must be able to spill now.
            self.grow(reservation, additional);
            return Ok(());
        }
        if shares(reservation.consumer()) && reservation.size() + additional > self.share() {
            let what = operator(reservation.consumer().name()).to_string();
            let (own, room) = (self.account.limit(), self.account.pool().room());
            let is_own = own == spillers_limit(&self.account);
            let (scope, limit) = if is_own { (Scope::Statement, own) } else { (Scope::Node, room) };
            let refused = Exceeded { what, bytes: additional, scope, limit };
            return Err(DataFusionError::ResourcesExhausted(marked(&refused)));
        }
        self.account
            .take(operator(reservation.consumer().name()), additional)
            .map_err(|e| DataFusionError::ResourcesExhausted(marked(&e)))?;
        self.count(reservation, additional as isize);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.account.used()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.account.limit())
    }
}

/// An operator's name without the number of its partition.
fn operator(consumer: &str) -> &str {
    consumer.split(['[', '(', ' ']).next().unwrap_or(consumer)
}

/// Operators look at the kind of the error to decide whether to spill, so it must stay theirs; the
/// mark lets [`exhausted`] find the words again among theirs.
const MARK: &str = "\u{1}";

fn marked(e: &Exceeded) -> String {
    let error = memory_error(e);
    let (detail, hint) = (error.detail().unwrap_or_default(), error.hint().unwrap_or_default());
    format!("{MARK}{}{MARK}{detail}{MARK}{hint}{MARK}", error.message())
}

/// This part of a statement's memory, for rows that are kept while other operators need the rest.
pub(crate) fn part_of(task: &TaskContext, part: usize) -> usize {
    match task.memory_pool().memory_limit() {
        MemoryLimit::Finite(bytes) => bytes / part,
        MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX,
    }
}

/// The error of a refused operator.
pub(crate) fn exhausted(message: &str) -> SqlError {
    let parts: Vec<&str> = message.split(MARK).collect();
    match parts.as_slice() {
        [_, message, detail, hint, ..] => {
            SqlError::new(SqlState::OUT_OF_MEMORY, *message).with_detail(*detail).with_hint(*hint)
        }
        _ => SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
            .with_detail(message)
            .with_hint("Raise statement_mem, or make the statement smaller."),
    }
}

/// What the plans of all statements have in common: a directory of their own to spill into, made
/// once, since making one for a statement takes longer than most statements.
///
/// # Errors
/// When the directory cannot be made.
pub(crate) fn common_runtime(spill: &SpillDirectory) -> SqlResult<Arc<RuntimeEnv>> {
    let mode = match &spill.0 {
        Some(path) => DiskManagerMode::Directories(vec![Path::to_path_buf(path)]),
        None => DiskManagerMode::Disabled,
    };
    // What may be spilled is bounded by the disk, not by a number.
    let disk = DiskManagerBuilder::default().with_mode(mode).with_max_temp_directory_size(u64::MAX);
    RuntimeEnvBuilder::new().with_disk_manager_builder(disk).build_arc().map_err(from_df)
}

/// With up to so many operators that share equally, each sort reserves what it usually does.
const FEW_SPILLERS: usize = 8;
/// A sort reserves that much for merging at least.
const MERGING_LEAST: usize = 64 << 10;

/// The context for the execution of a plan: the more operators share what there is, the less of it
/// each sort reserves for merging what it may spill, or the reservations alone would be too much.
pub(crate) fn fitting(task: Arc<TaskContext>, plan: &dyn ExecutionPlan) -> Arc<TaskContext> {
    let (config, spillers) = (task.session_config(), spillers(plan));
    let usual = config.options().execution.sort_spill_reservation_bytes;
    if spillers <= FEW_SPILLERS || usual <= MERGING_LEAST {
        return task;
    }
    let mut config = config.clone();
    let less = (usual / spillers * FEW_SPILLERS).max(MERGING_LEAST);
    config.options_mut().execution.sort_spill_reservation_bytes = less;
    context(config, task.runtime_env())
}

/// What operators look at: no functions, which all plans have bound already.
pub(crate) fn context(config: SessionConfig, runtime: Arc<RuntimeEnv>) -> Arc<TaskContext> {
    let none = (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
    let (scalar, higher, aggregate, window) = none;
    let name = String::new();
    Arc::new(TaskContext::new(None, name, config, scalar, higher, aggregate, window, runtime))
}

/// How often operators of a plan are going to ask as ones that share.
fn spillers(plan: &dyn ExecutionPlan) -> usize {
    let partitions = plan.properties().partitioning.partition_count();
    let own = match plan.name() {
        // And the merge.
        "SortExec" => 2 * partitions,
        "AggregateExec" | "RepartitionExec" | "SortMergeJoinExec" => partitions,
        _ => 0,
    };
    own + plan.children().into_iter().map(|below| spillers(below.as_ref())).sum::<usize>()
}

/// What a statement's plans run in.
pub(crate) fn runtime(account: Arc<Account>, common: &RuntimeEnv) -> Arc<RuntimeEnv> {
    let plan = account.pool().account(usize::MAX);
    plan.take_anyway(PLAN_BYTES);
    let pool = StatementPool { account, _plan: plan, spillers: Mutex::default() };
    Arc::new(RuntimeEnv { memory_pool: Arc::new(pool), ..common.clone() })
}

#[cfg(test)]
mod tests {
    use braid_env::memory::Pool;

    use super::*;

    #[test]
    fn a_merge_gets_what_its_sort_had_though_there_is_less_room_now() {
        const MIB: usize = 1 << 20;
        let node = Pool::new(96 * MIB);
        let runtime = runtime(node.account(usize::MAX), &RuntimeEnv::default());
        let pool = &runtime.memory_pool;
        let sort = MemoryConsumer::new("ExternalSorter[0]").with_can_spill(true).register(pool);
        let merge = MemoryConsumer::new("ExternalSorterMerge[0]").register(pool);
        while sort.try_grow(MIB).is_ok() {}
        let had = sort.size();
        assert!(had > 8 * MIB, "{had}");
        node.note_resident(96 * MIB + node.used(), 0);
        assert!(sort.try_grow(MIB).is_err());
        while merge.try_grow(MIB).is_ok() {}
        assert_eq!(merge.size(), had);
    }
}
