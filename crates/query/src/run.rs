//! Running plans: DataFusion's session, memory budget, batches to rows.
//!
//! A plan is driven by the thread that asks for rows: no channel, no task of its own. Operators
//! that want an async runtime find the engine's: those that spill, and those of plans for several
//! threads (`side_by_side.rs`).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use braid_catalog::memory_error;
use braid_rows::{Row, row_memory};
use braid_sql::answer::{Answer, Cell, CellReader, ColumnBatch};
use braid_sql::general_query::RowStream;
use braid_types::{SqlError, SqlResult, SqlState, SqlType};
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{
    SendableRecordBatchStream, SessionState, SessionStateBuilder, TaskContext,
};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use parking_lot::Mutex;

use crate::arrow_form::Reader;
use crate::error::from_df;
use crate::exec::constant::bind_constants;
use crate::exec::execution::{Execution, Place};
use crate::exec::facts::{LOOKUP_BYTES, LOOKUPS_LEAST, LOOKUPS_MAX};
use crate::exec::partitions::pieces::Readers;
use crate::exec::stoppable::{Bounds, stoppable};
use crate::join_order;
use crate::learned_names;
use crate::memory::{context, fitting, runtime, spillers_limit};
use crate::planning::{check_size, physical_rules, rules, rules_after_ordering, stopping_at};
use crate::shared_parts::{PartPlanner, linked, shared};
use crate::short_memory::refused;

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Drives a future on this thread. May be nested: a plan's function may drive another plan.
pub(crate) fn drive<F: Future>(future: F) -> F::Output {
    // On one of the engine's threads, a nested plan must not use up what the plan around it may do
    // before others get their turn: nobody would give it more.
    let mut future = pin!(tokio::task::coop::unconstrained(future));
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// How a plan is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Way {
    /// Nothing holds a whole input that cannot spill it.
    pub(crate) short_memory: bool,
    /// Threads that read besides the first.
    pub(crate) helpers: usize,
}

/// This part of what operators that can spill may hold is for the keys that one join tells its
/// other side.
const KEYS_PART: usize = 4;

/// The session that makes all plans for one thread.
pub(crate) fn planner() -> &'static Arc<SessionState> {
    static PLANNER: LazyLock<Arc<SessionState>> = LazyLock::new(|| new_planner(Way::default()));
    &PLANNER
}

/// The session that makes plans in this way.
fn planner_for(way: Way) -> Arc<SessionState> {
    static PLANNERS: Mutex<BTreeMap<Way, Arc<SessionState>>> = Mutex::new(BTreeMap::new());
    if way == Way::default() {
        return planner().clone();
    }
    PLANNERS.lock().entry(way).or_insert_with(|| new_planner(way)).clone()
}

/// It knows no functions by name: all names are resolved by our binder.
fn new_planner(way: Way) -> Arc<SessionState> {
    let threads = way.helpers + 1;
    let mut config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_batch_size(1024)
        .with_information_schema(false);
    let options = config.options_mut();
    // One side of a join is held once, for all threads.
    options.optimizer.repartition_joins = false;
    options.optimizer.repartition_windows = false;
    options.optimizer.enable_round_robin_repartition = false;
    options.execution.collect_statistics = false;
    // A minimum or maximum of one execution would still bound the scans of the next.
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_query_planner(Arc::new(PartPlanner))
        .with_optimizer_rules(rules())
        .with_physical_optimizer_rules(physical_rules(way.short_memory, threads))
        .build();
    Arc::new(state)
}

/// What a configuration says of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sizes {
    /// What a sort keeps free for merging what it has spilled.
    merging: usize,
    /// A sort of less copies its rows before it sorts them.
    in_place: usize,
    /// Keys of a join that are looked up one by one on its other side.
    keys: usize,
}

impl Sizes {
    fn for_limit(limit: usize) -> Sizes {
        Sizes {
            merging: (limit / 32).clamp(64 << 10, 10 << 20),
            in_place: (limit / 8).clamp(64 << 10, 1 << 20),
            keys: (limit / KEYS_PART / LOOKUP_BYTES).clamp(LOOKUPS_LEAST, LOOKUPS_MAX),
        }
    }

    fn config(self) -> SessionConfig {
        let mut config = planner().config().clone();
        let options = config.options_mut();
        options.execution.sort_spill_reservation_bytes = self.merging;
        options.execution.sort_in_place_threshold_bytes = self.in_place;
        options.optimizer.hash_join_inlist_pushdown_max_distinct_values = self.keys;
        // Bytes that the rows which have them may have.
        options.optimizer.hash_join_inlist_pushdown_max_size = self.keys * 32;
        config
    }
}

/// The configuration of a statement that keeps within bounds. Most statements have that of the one
/// before: to make one costs as much as to run a small plan.
fn config(bounds: Bounds) -> SessionConfig {
    static LAST: Mutex<Option<(Sizes, SessionConfig)>> = Mutex::new(None);
    let sizes = Sizes::for_limit(spillers_limit(&bounds.memory));
    let known = LAST.lock().as_ref().filter(|(of, _)| *of == sizes).map(|(_, c)| c.clone());
    let config = known.unwrap_or_else(|| {
        let config = sizes.config();
        *LAST.lock() = Some((sizes, config.clone()));
        config
    });
    config.with_extension(Arc::new(bounds))
}

/// What the operators of one execution look at.
pub(crate) fn task(bounds: Bounds, common: &RuntimeEnv) -> Arc<TaskContext> {
    let runtime = runtime(bounds.memory.clone(), common);
    context(config(bounds), runtime)
}

/// An optimized logical plan, which may hold constants of an execution.
///
/// # Errors
/// What the optimizer reports; 54001 for a plan beyond the limits, 57014 when it has to stop.
pub(crate) fn optimized(plan: &LogicalPlan, cancel: &Arc<AtomicBool>) -> SqlResult<LogicalPlan> {
    check_size(plan)?;
    let state = planner();
    stopping_at(cancel, || ordered(state.optimize(plan)?, state)).map_err(from_df)
}

/// The physical plan of an optimized one for executions at this place.
///
/// # Errors
/// What the planner reports; 57014 when it has to stop.
pub(crate) fn physical_at(
    optimized: LogicalPlan,
    place: &Arc<Place>,
    way: Way,
    cancel: &Arc<AtomicBool>,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let state = planner_for(way);
    stopping_at(cancel, || {
        let optimized = bind_constants(optimized, place)?;
        linked(drive(state.query_planner().create_physical_plan(&optimized, state.as_ref()))?)
    })
    .map_err(from_df)
}

/// An optimized plan with its joins in order, and what occurs twice in it marked.
fn ordered(plan: LogicalPlan, state: &SessionState) -> datafusion::common::Result<LogicalPlan> {
    let ordered = join_order::ordered(plan)?;
    if !ordered.transformed {
        return Ok(ordered.data);
    }
    let shared = shared(ordered.data)?;
    // Other columns are wanted in between now.
    rules_after_ordering().optimize(shared.data, state, |_, _| {})
}

/// The operators of a plan as they were before anybody executed them.
///
/// # Errors
/// What DataFusion reports when it rebuilds a node.
pub(crate) fn fresh_operators(plan: &Arc<dyn ExecutionPlan>) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let fresh = reset_plan_states(plan.clone()).and_then(linked).map_err(from_df)?;
    if !tells(&fresh) {
        return Ok(fresh);
    }
    // What an operator tells the scans below it belongs to one execution: they are linked anew.
    learned_names::link(fresh, planner().config_options()).map_err(from_df)
}

/// Whether operators of a plan tell scans below them what they have learned.
fn tells(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let sort_with_limit = || plan.downcast_ref::<SortExec>().is_some_and(|s| s.fetch().is_some());
    plan.downcast_ref::<HashJoinExec>().is_some()
        || sort_with_limit()
        || plan.children().into_iter().any(tells)
}

/// Starts a plan.
fn start(
    task: Arc<TaskContext>,
    plan: Arc<dyn ExecutionPlan>,
    cancel: &Arc<AtomicBool>,
) -> SqlResult<SendableRecordBatchStream> {
    let task = fitting(task, plan.as_ref());
    let plan = stoppable(plan, cancel).map_err(from_df)?;
    execute_stream(plan, task).map_err(from_df)
}

/// Runs a plan beside the one of an execution and gives at most `limit` rows, which stay on the
/// statement's account.
///
/// # Errors
/// Of running.
pub(crate) fn collect_rows(
    execution: &Execution,
    plan: Arc<dyn ExecutionPlan>,
    types: &[SqlType],
    limit: usize,
) -> SqlResult<Vec<Row>> {
    let mut stream = start(execution.task_beside()?, plan, &execution.cancel)?;
    let memory = &execution.memory;
    let mut rows: Vec<Row> = Vec::new();
    while rows.len() < limit {
        let Some(batch) = drive(stream.next()) else { break };
        let batch = batch.map_err(from_df)?;
        let (before, room) = (rows.len(), rows.capacity());
        if room - before < batch.num_rows() {
            let more = (2 * room).max(before + batch.num_rows());
            let (old, new) = (room * size_of::<Row>(), more * size_of::<Row>());
            memory
                .regrow("subquery", old, new, || rows.reserve_exact(more - before))
                .map_err(|e| memory_error(&e))?;
        }
        push_rows(&batch, types, &mut rows);
        let values = |row: &Row| row_memory(row) - size_of::<Row>();
        let bytes = rows[before..].iter().map(values).sum();
        memory.take("subquery", bytes).map_err(|e| memory_error(&e))?;
    }
    rows.truncate(limit);
    Ok(rows)
}

fn push_rows(batch: &RecordBatch, types: &[SqlType], rows: &mut Vec<Row>) {
    let readers: Vec<Reader<'_>> = batch.columns().iter().map(|c| Reader::new(c)).collect();
    for at in 0..batch.num_rows() {
        rows.push(readers.iter().zip(types).map(|(r, ty)| r.get(at, ty)).collect());
    }
}

/// Plans a statement again, for joins that hold no whole input.
pub type Again = Box<dyn FnOnce() -> SqlResult<Arc<dyn ExecutionPlan>> + Send>;

/// Milliseconds for which a plan waits at most for what the one before it held.
const SETTLING: usize = 5_000;

/// The rows of a running plan.
pub(crate) struct PlanRows {
    stream: Option<SendableRecordBatchStream>,
    types: Arc<[SqlType]>,
    cancel: Arc<AtomicBool>,
    /// Kept so that spilled files and the budget live as long as the stream.
    task: Arc<TaskContext>,
    /// Until the first row.
    again: Option<Again>,
    /// Threads that read for the plan.
    readers: Arc<Readers>,
    /// What its statement held before.
    held: usize,
    handle: tokio::runtime::Handle,
}

impl PlanRows {
    /// Starts a plan.
    ///
    /// # Errors
    /// Of starting it.
    pub fn start(
        task: Arc<TaskContext>,
        plan: Arc<dyn ExecutionPlan>,
        types: Vec<SqlType>,
        execution: &Execution,
        handle: tokio::runtime::Handle,
    ) -> SqlResult<PlanRows> {
        let (cancel, readers) = (execution.cancel.clone(), execution.readers.clone());
        let held = task.runtime_env().memory_pool.reserved();
        let _entered = handle.enter();
        let stream = start(task.clone(), plan, &cancel)?;
        drop(_entered);
        let stream = Some(stream);
        let types = types.into();
        Ok(PlanRows { stream, types, cancel, task, again: None, readers, held, handle })
    }

    /// What to run instead when an operator that cannot spill is refused its memory before the
    /// first row.
    #[must_use]
    pub fn or_else(mut self, again: Again) -> PlanRows {
        self.again = Some(again);
        self
    }

    /// Waits for other threads that ran parts of a plan, and for what these held.
    fn settle(&self) {
        self.readers.settle();
        let pool = &self.task.runtime_env().memory_pool;
        for _ in 0..SETTLING {
            if pool.reserved() <= self.held {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The next batch of the plan; of the other plan when this one could not hold a join.
    fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        loop {
            let Some(stream) = &mut self.stream else { return Ok(None) };
            let error = match drive(stream.next()).transpose() {
                Ok(batch) => {
                    if batch.as_ref().is_none_or(|b| b.num_rows() > 0) {
                        self.again = None;
                    }
                    return Ok(batch);
                }
                Err(e) => e,
            };
            // What it held is free before the next plan begins.
            self.stream = None;
            self.settle();
            match self.again.take().filter(|_| refused(&error)) {
                Some(again) => {
                    self.stream = Some(start(self.task.clone(), again()?, &self.cancel)?);
                }
                None => return Err(from_df(error)),
            }
        }
    }
}

/// A batch of a plan, as an answer.
struct PlanBatch {
    batch: RecordBatch,
    types: Arc<[SqlType]>,
}

impl ColumnBatch for PlanBatch {
    fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    fn readers(&self) -> Vec<Box<dyn CellReader + '_>> {
        let columns = self.batch.columns().iter().zip(self.types.iter());
        columns
            .map(|(array, ty)| {
                Box::new(PlanCells { values: Reader::new(array), ty }) as Box<dyn CellReader + '_>
            })
            .collect()
    }
}

/// Reads one column of a plan's batch.
struct PlanCells<'a> {
    values: Reader<'a>,
    ty: &'a SqlType,
}

impl CellReader for PlanCells<'_> {
    fn cell(&self, row: usize) -> Cell<'_> {
        match self.values.text(row) {
            Some(text) => Cell::Text(text),
            None => Cell::Value(self.values.get(row, self.ty)),
        }
    }
}

impl RowStream for PlanRows {
    fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>> {
        let Some(batch) = self.next_full()? else { return Ok(None) };
        let mut rows = Vec::with_capacity(batch.num_rows());
        push_rows(&batch, &self.types, &mut rows);
        Ok(Some(rows))
    }

    fn next_answer(&mut self) -> SqlResult<Option<Answer>> {
        let Some(batch) = self.next_full()? else { return Ok(None) };
        let types = self.types.clone();
        Ok(Some(Answer::Columns(Box::new(PlanBatch { batch, types }))))
    }
}

impl PlanRows {
    /// The next batch that has rows.
    fn next_full(&mut self) -> SqlResult<Option<RecordBatch>> {
        let handle = self.handle.clone();
        let _entered = handle.enter();
        loop {
            if self.cancel.load(Ordering::Relaxed) {
                self.stream = None;
                return Err(SqlError::new(
                    SqlState::QUERY_CANCELED,
                    "canceling statement due to user request",
                ));
            }
            match self.next()? {
                None => {
                    self.stream = None;
                    return Ok(None);
                }
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => return Ok(Some(batch)),
            }
        }
    }
}
