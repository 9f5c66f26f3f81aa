//! The implementation of `braid_sql::GeneralQueries`.
//!
//! A query is bound and planned once and executed many times:
//!
//! ```text
//!   plan      bind ── names, types, a logical plan            ┐ kept with the prepared statement
//!   execute   the first time: optimize, physical plan         ┘
//!             each time: values of parameters and clock at the plan's Place, run
//! ```
//! Where the shape of the plan depends on values (LIMIT $1), it is kept for executions that have
//! the same ones. What depends on the execution beyond that (rows of the system catalog) makes the
//! binder say so; such a query is bound and planned for each execution.

use std::sync::Arc;
use std::time::Duration;

use braid_env::tasks::cores;
use braid_rows::Row;
use braid_scalar::ParamTypes;
use braid_sql::answer::Answer;
use braid_sql::explain::{Explained, PlanLine};
use braid_sql::session::SessionState as SqlSession;
use braid_sql::{ColumnInfo, GeneralPlan, GeneralQueries, PlanContext, RowStream, RunContext};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::GlobalLimitExec;
use parking_lot::Mutex;
use sqlparser::ast;

use crate::admission::{Admitted, Gate};
use crate::bind::assumed::Assumed;
use crate::bind::{Binder, Binding, Bounded, Surroundings};
use crate::error::from_df;
use crate::exec::execution::{Execution, OwnPlace, Place};
use crate::exec::made::Made;
use crate::exec::stoppable::Bounds;
use crate::explain;
use crate::memory::{SpillDirectory, common_runtime};
use crate::run::{self, PlanRows, Way};
use crate::side_by_side;
use crate::system;

/// Stack of a thread that reads for others, as large as that of one that serves a client: deep
/// plans recurse. Only what is touched takes memory.
const STACK_BYTES: usize = 64 << 20;

/// See the [module documentation](self).
pub struct Engine {
    runtime: tokio::runtime::Runtime,
    common: Arc<RuntimeEnv>,
    gate: Arc<Gate>,
}

impl Engine {
    /// An engine whose plans spill into a directory, which exists.
    ///
    /// # Errors
    /// When threads cannot be started, or nothing can be made in the directory.
    pub fn new(spill: SpillDirectory) -> SqlResult<Arc<Engine>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores())
            .thread_stack_size(STACK_BYTES)
            .thread_name("braid-query")
            // A thread that read a spilled file keeps what it has freed until it ends.
            .thread_keep_alive(Duration::from_millis(200))
            .enable_time()
            .build()
            .map_err(|e| SqlError::internal(format!("starting the query runtime: {e}")))?;
        let common = common_runtime(&spill)?;
        Ok(Arc::new(Engine { runtime, common, gate: Arc::default() }))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

struct Plan {
    query: ast::Query,
    columns: Vec<ColumnInfo>,
    params: Vec<SqlType>,
    /// Of these the ones that are of domains, with their oids.
    domains: Vec<(usize, u32)>,
    /// Functions of users that it calls.
    called: Vec<u32>,
    common: Arc<RuntimeEnv>,
    gate: Arc<Gate>,
    handle: tokio::runtime::Handle,
    keeping: Keeping,
    /// Whether several threads could read for it.
    side_by_side: bool,
    /// A materialized view without data that it would read.
    unpopulated: Option<String>,
    /// Copies that no execution uses. A second one is made when a portal of the statement is still
    /// open as the next one begins.
    idle: Arc<Mutex<Vec<PlanCopy>>>,
}

/// For which executions a plan is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeping {
    ForAll,
    /// Those for whose values it was made.
    ForSome,
    /// It is made for each.
    Never,
}

/// So many plans are kept that no execution uses.
const IDLE_MAX: usize = 8;

/// A plan that one execution at a time can use.
struct PlanCopy {
    place: OwnPlace,
    logical: Arc<LogicalPlan>,
    assumed: Assumed,
    /// For one thread, and for several.
    physical: [Option<Made>; 2],
    /// Entries that its last execution has looked at in one scan.
    entries: Option<u64>,
}

impl PlanCopy {
    fn new(place: OwnPlace, (logical, assumed): (LogicalPlan, Assumed)) -> PlanCopy {
        let logical = Arc::new(logical);
        PlanCopy { place, logical, assumed, physical: [None, None], entries: None }
    }
}

/// A running plan, with its place among those that run.
struct Running {
    /// Ends before its copy is given back.
    rows: Option<PlanRows>,
    copy: Option<PlanCopy>,
    /// Whether the copy is used again.
    kept: bool,
    /// Whether it is executed, or only shown.
    runs: bool,
    idle: Arc<Mutex<Vec<PlanCopy>>>,
    _admitted: Option<Admitted>,
}

impl RowStream for Running {
    fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>> {
        self.rows.as_mut().map_or(Ok(None), PlanRows::next_batch)
    }

    fn next_answer(&mut self) -> SqlResult<Option<Answer>> {
        self.rows.as_mut().map_or(Ok(None), PlanRows::next_answer)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.rows = None;
        if let Some(mut copy) = self.copy.take() {
            let entries = copy.place.leave();
            if self.runs {
                copy.entries = entries;
            }
            if self.kept {
                let mut idle = self.idle.lock();
                let longest = if idle.len() < IDLE_MAX { None } else { Some(idle.remove(0)) };
                idle.push(copy);
                drop((idle, longest));
            }
        }
    }
}

/// The rows of a plan that an execution has chosen.
fn page_of(
    operators: Arc<dyn ExecutionPlan>,
    page: Option<(usize, usize)>,
) -> Arc<dyn ExecutionPlan> {
    match page {
        Some((skipped, taken)) => Arc::new(GlobalLimitExec::new(operators, skipped, Some(taken))),
        None => operators,
    }
}

fn output(bound: &Bounded) -> Vec<ColumnInfo> {
    bound
        .columns
        .iter()
        .map(|c| {
            let (table_oid, attnum) = c.origin.unwrap_or((0, 0));
            let collation = c.collation.of_column();
            let info = ColumnInfo::computed(&*c.name, c.ty.clone());
            ColumnInfo { table_oid, attnum, collation, ..info }
        })
        .collect()
}

impl GeneralQueries for Engine {
    fn catalog_function(
        &self,
        session: &SqlSession,
        name: &str,
        args: &[Datum],
    ) -> SqlResult<Option<Datum>> {
        system::catalog_function(session, name, args)
    }

    fn reads_columns(&self) -> bool {
        true
    }

    fn plan(
        &self,
        query: &ast::Query,
        context: &PlanContext,
        declared: &[Option<SqlType>],
    ) -> SqlResult<Arc<dyn GeneralPlan>> {
        let place = OwnPlace::default();
        let mut binder = Binder::new(Surroundings {
            context,
            eval: context.eval.clone(),
            place: Arc::clone(&place),
            binding: Binding::Kept,
            cancel: context.cancel.clone(),
            params: ParamTypes::new(declared).with_types(context.types()),
        });
        let bound = binder.statement(query)?;
        let keeping = match () {
            () if binder.can_be_kept() => Keeping::ForAll,
            () if binder.can_be_kept_for_values() => Keeping::ForSome,
            () => Keeping::Never,
        };
        let side_by_side =
            !binder.is_volatile() && side_by_side::is_possible(&bound.plan).map_err(from_df)?;
        let mut copies = Vec::new();
        let columns = output(&bound);
        if keeping == Keeping::ForAll {
            let logical = result_columns(bound)?;
            copies.push(PlanCopy::new(place, (logical, Assumed::default())));
        }
        Ok(Arc::new(Plan {
            query: query.clone(),
            columns,
            params: binder.params().finish(),
            domains: binder.params().domains().to_vec(),
            called: binder.params().called().to_vec(),
            common: self.common.clone(),
            gate: self.gate.clone(),
            handle: self.runtime.handle().clone(),
            keeping,
            side_by_side,
            unpopulated: binder.unpopulated().map(str::to_string),
            idle: Arc::new(Mutex::new(copies)),
        }))
    }
}

/// Only the result columns, in their order.
fn result_columns(bound: Bounded) -> SqlResult<LogicalPlan> {
    LogicalPlanBuilder::from(bound.plan)
        .project(bound.columns.iter().map(|c| c.expr.clone()))
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_df)
}

impl Plan {
    /// The logical plan for executions at a place, and what these must have in common.
    fn bind(
        &self,
        run: &RunContext,
        place: &Arc<Place>,
        binding: Binding,
    ) -> SqlResult<(LogicalPlan, Assumed)> {
        let declared: Vec<Option<SqlType>> = self.params.iter().cloned().map(Some).collect();
        let mut binder = Binder::new(Surroundings {
            context: &run.plan,
            eval: run.eval.clone(),
            place: place.clone(),
            binding,
            cancel: run.cancel.clone(),
            params: ParamTypes::new(&declared).with_types(run.plan.types()),
        });
        let bound = binder.statement(&self.query)?;
        Ok((result_columns(bound)?, binder.assumed()))
    }

    /// 55000 if a materialized view that it reads has no data.
    fn check_populated(&self) -> SqlResult<()> {
        let Some(view) = &self.unpopulated else { return Ok(()) };
        Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("materialized view \"{view}\" has not been populated"),
        )
        .with_hint("Use the REFRESH MATERIALIZED VIEW command."))
    }

    fn bounds(&self, run: &RunContext) -> Bounds {
        Bounds { cancel: run.cancel.clone(), memory: run.memory.clone() }
    }

    /// Its place among the plans that run; waits for one if need be.
    fn admitted(&self, run: &RunContext) -> SqlResult<Admitted> {
        self.gate.pass(run.memory.pool(), run.txn.is_unlocked(), &run.cancel, &self.handle)
    }

    /// A copy for one execution, with its values as literals.
    fn for_these_values(&self, run: &RunContext) -> SqlResult<PlanCopy> {
        let now = Execution::of(run, self.bounds(run), &self.common);
        let place = OwnPlace::of(now);
        let logical = self.bind(run, &place, Binding::Once)?;
        Ok(PlanCopy::new(place, logical))
    }

    /// A copy whose execution has begun, to be given back if it can be used again.
    fn enter(&self, run: &RunContext) -> SqlResult<PlanCopy> {
        let binding = match self.keeping {
            Keeping::ForAll => Binding::Kept,
            Keeping::ForSome => Binding::ForValues,
            Keeping::Never => return self.for_these_values(run),
        };
        let now = Execution::of(run, self.bounds(run), &self.common);
        let idle = {
            let mut idle = self.idle.lock();
            let found = idle.iter().rposition(|copy| copy.assumed.holds(&run.eval));
            found.map(|at| idle.remove(at))
        };
        let copy = match idle {
            Some(copy) => copy,
            None => {
                let place = OwnPlace::default();
                let logical = self.bind(run, &place, binding)?;
                PlanCopy::new(place, logical)
            }
        };
        copy.place.enter(now);
        Ok(copy)
    }

    /// Operators for one execution.
    fn operators(
        &self,
        copy: &mut PlanCopy,
        run: &RunContext,
    ) -> SqlResult<Arc<dyn ExecutionPlan>> {
        let _entered = self.handle.enter();
        let known = copy.entries.map(|entries| self.way(run, side_by_side::after(run, entries)));
        if let Some(way) = known
            && let Some(made) = &copy.physical[usize::from(way.helpers > 0)]
            && made.way == way
            && !made.is_for_others()
        {
            return run::fresh_operators(&made.operators);
        }
        let optimized = run::optimized(&copy.logical, &run.cancel)?;
        let way = match known {
            Some(way) => way,
            None => self.way(run, side_by_side::at_first(run.side_by_side, &optimized)?),
        };
        let operators = run::physical_at(optimized, &copy.place, way, &run.cancel)?;
        if self.keeping == Keeping::Never {
            return Ok(operators);
        }
        let fresh = run::fresh_operators(&operators)?;
        copy.physical[usize::from(way.helpers > 0)] = Some(Made::new(way, operators));
        Ok(fresh)
    }

    /// How operators are made for an execution that reads much, or not.
    fn way(&self, run: &RunContext, much: bool) -> Way {
        let threads = match much && self.side_by_side {
            true => side_by_side::threads(run.side_by_side),
            false => 1,
        };
        Way { short_memory: false, helpers: threads - 1 }
    }

    /// Starts an execution.
    fn start(&self, copy: &mut PlanCopy, run: &RunContext) -> SqlResult<PlanRows> {
        let page = copy.assumed.page(&run.eval)?;
        let physical = page_of(self.operators(copy, run)?, page);
        let types = self.columns.iter().map(|c| c.ty.clone()).collect();
        let task = run::task(self.bounds(run), &self.common);
        let execution = copy.place.execution()?;
        let rows = PlanRows::start(task, physical, types, &execution, self.handle.clone())?;
        let (logical, place, cancel) =
            (copy.logical.clone(), Arc::clone(&copy.place), run.cancel.clone());
        Ok(rows.or_else(Box::new(move || {
            let way = Way { short_memory: true, helpers: 0 };
            let plan = run::optimized(&logical, &cancel)?;
            Ok(page_of(run::physical_at(plan, &place, way, &cancel)?, page))
        })))
    }
}

impl GeneralPlan for Plan {
    fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    fn param_types(&self) -> &[SqlType] {
        &self.params
    }

    fn param_domains(&self) -> &[(usize, u32)] {
        &self.domains
    }

    fn called(&self) -> &[u32] {
        &self.called
    }

    fn execute(&self, run: &RunContext) -> SqlResult<Box<dyn RowStream>> {
        self.check_populated()?;
        let admitted = self.admitted(run)?;
        let mut running = Running {
            rows: None,
            copy: Some(self.enter(run)?),
            kept: self.keeping != Keeping::Never,
            runs: true,
            idle: self.idle.clone(),
            _admitted: Some(admitted),
        };
        if let Some(copy) = &mut running.copy {
            running.rows = Some(self.start(copy, run)?);
        }
        Ok(Box::new(running))
    }

    fn explain(&self, run: &RunContext, analyze: bool, as_kept: bool) -> SqlResult<Explained> {
        if analyze {
            self.check_populated()?;
        }
        let admitted = analyze.then(|| self.admitted(run)).transpose()?;
        let copy = match as_kept {
            true => self.enter(run)?,
            false => self.for_these_values(run)?,
        };
        // With its values in place, so that spans can be shown.
        let mut running = Running {
            rows: None,
            copy: Some(copy),
            kept: self.keeping != Keeping::Never && as_kept,
            runs: analyze,
            idle: self.idle.clone(),
            _admitted: admitted,
        };
        let Some(copy) = &mut running.copy else { unreachable!("it was put there") };
        let page = copy.assumed.page(&run.eval)?;
        let mut physical = page_of(self.operators(copy, run)?, page);
        let _entered = self.handle.enter();
        let mut head = "general plan (DataFusion)".to_string();
        match self.keeping {
            Keeping::ForAll => {}
            Keeping::ForSome => head.push_str(", made for these values"),
            Keeping::Never => head.push_str(", made for each execution"),
        }
        let mut rows = None;
        if analyze {
            let before = run.txn.stats().requests;
            let task = run::task(self.bounds(run), &self.common);
            let (measured, count) = explain::measure(task, physical, &run.cancel)?;
            (physical, rows) = (measured, Some(count));
            let requests = run.txn.stats().requests - before;
            head.push_str(&format!(" (actual rows={count}, requests={requests})"));
        }
        let mut lines = vec![PlanLine::from(head)];
        lines.extend(explain::lines(&physical, 1));
        Ok(Explained { lines, rows })
    }
}
