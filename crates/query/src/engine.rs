//! The implementation of `braid_sql::GeneralQueries`.
//!
//! A query is bound and planned once and executed many times:
//!
//! ```text
//!   plan      bind ── names, types, a logical plan            ┐ kept with the prepared statement
//!   execute   the first time: optimize, physical plan         ┘
//!             each time: values of parameters and clock at the plan's Place, run
//! ```
//! What depends on the execution beyond such values (rows of the system catalog, LIMIT $1,
//! subqueries that run by themselves) makes the binder say so; such a query is bound and planned
//! for each execution.

use std::sync::Arc;
use std::time::Duration;

use braid_env::tasks::cores;
use braid_scalar::{Bound, Node, ParamTypes};
use braid_sql::answer::Answer;
use braid_sql::explain::{Explained, PlanLine};
use braid_sql::session::SessionState as SqlSession;
use braid_sql::{
    ColumnInfo, GeneralPlan, GeneralQueries, PlanContext, Row, RowStream, RunContext, SideBySide,
};
use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;
use sqlparser::ast;

use crate::admission::{Admitted, Gate};
use crate::bind::{Binder, Binding, Bounded, OutputColumn, Surroundings};
use crate::error::from_df;
use crate::exec::execution::{Execution, Place, rows_expected};
use crate::exec::scalar;
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
    /// Functions of users that it calls.
    called: Vec<u32>,
    common: Arc<RuntimeEnv>,
    gate: Arc<Gate>,
    handle: tokio::runtime::Handle,
    /// Whether it can be executed many times as it was made.
    kept: bool,
    /// Whether several threads could read for it.
    side_by_side: bool,
    /// A materialized view without data that it would read.
    unpopulated: Option<String>,
    /// Copies that no execution uses. A second one is made when a portal of the statement is still
    /// open as the next one begins.
    idle: Arc<Mutex<Vec<PlanCopy>>>,
}

/// A plan that one execution at a time can use.
struct PlanCopy {
    place: Arc<Place>,
    logical: LogicalPlan,
    /// For one thread, and for several.
    physical: [Option<Made>; 2],
    /// Entries that its last execution has looked at in one scan.
    entries: Option<u64>,
}

/// Operators of a plan. Never executed themselves: each execution gets its own.
struct Made {
    way: Way,
    operators: Arc<dyn ExecutionPlan>,
    /// How many rows its scans were expected to give when it was made.
    expected: Vec<f64>,
}

/// A scan that gives so many times more or fewer rows than the plan was made for asks for another
/// plan.
const OTHER_ROWS: f64 = 10.0;
/// Not, if it gives no more than this.
const FEW_ROWS: f64 = 50_000.0;

impl Made {
    /// Whether a plan for the values of the execution that has begun might be another one.
    fn is_for_others(&self) -> bool {
        let now = rows_expected(&self.operators);
        let differ = |(then, now): (&f64, &f64)| {
            let (less, more) = (then.min(*now), then.max(*now));
            more > FEW_ROWS && more > less * OTHER_ROWS
        };
        self.expected.iter().zip(&now).any(differ)
    }
}

impl PlanCopy {
    fn new(place: Arc<Place>, logical: LogicalPlan) -> PlanCopy {
        PlanCopy { place, logical, physical: [None, None], entries: None }
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
                self.idle.lock().push(copy);
            }
        }
    }
}

/// Clients are shown names for `regclass` and `regtype`, as text.
fn shown_type(ty: &SqlType) -> SqlType {
    match ty {
        ty if ty.names_objects() => SqlType::Text,
        SqlType::Array(element) if element.names_objects() => SqlType::Text.array_of(),
        other => other.clone(),
    }
}

/// A result column as the client is shown it.
fn shown(column: &OutputColumn, place: &Arc<Place>) -> Expr {
    let shown = shown_type(&column.ty);
    if shown == column.ty {
        return column.expr.clone();
    }
    let value = Bound::column(0, column.ty.clone());
    let cast = Bound::new(Node::Cast(value, CastContext::Explicit), shown);
    let name = column.expr.schema_name().to_string();
    scalar::bound_expr(cast, place, vec![(column.expr.clone(), column.ty.clone())]).alias(name)
}

fn output(bound: &Bounded) -> Vec<ColumnInfo> {
    bound
        .columns
        .iter()
        .map(|c| {
            let (table_oid, attnum) = c.origin.unwrap_or((0, 0));
            let collation = c.collation.of_column();
            let info = ColumnInfo::computed(&*c.name, shown_type(&c.ty));
            ColumnInfo { kept: c.ty.clone(), table_oid, attnum, collation, ..info }
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
        let place = Arc::new(Place::default());
        let mut binder = Binder::new(Surroundings {
            context,
            eval: context.eval.clone(),
            place: place.clone(),
            binding: Binding::Kept,
            cancel: context.cancel.clone(),
            state: run::planner().clone(),
            side_by_side: SideBySide::NEVER,
            params: ParamTypes::new(declared).with_types(context.types()),
        });
        let bound = binder.statement(query)?;
        let kept = binder.can_be_kept();
        let side_by_side =
            !binder.is_volatile() && side_by_side::is_possible(&bound.plan).map_err(from_df)?;
        let mut copies = Vec::new();
        let columns = output(&bound);
        if kept {
            let logical = result_columns(bound, &place)?;
            copies.push(PlanCopy::new(place, logical));
        }
        Ok(Arc::new(Plan {
            query: query.clone(),
            columns,
            params: binder.params().finish(),
            called: binder.params().called().to_vec(),
            common: self.common.clone(),
            gate: self.gate.clone(),
            handle: self.runtime.handle().clone(),
            kept,
            side_by_side,
            unpopulated: binder.unpopulated().map(str::to_string),
            idle: Arc::new(Mutex::new(copies)),
        }))
    }
}

/// Only the result columns, in their order.
fn result_columns(bound: Bounded, place: &Arc<Place>) -> SqlResult<LogicalPlan> {
    LogicalPlanBuilder::from(bound.plan)
        .project(bound.columns.iter().map(|c| shown(c, place)))
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_df)
}

impl Plan {
    /// The logical plan for executions at a place.
    fn bind(
        &self,
        run: &RunContext,
        place: &Arc<Place>,
        binding: Binding,
    ) -> SqlResult<LogicalPlan> {
        let state = match binding {
            Binding::Once => run::session(self.bounds(run), &self.common)?,
            Binding::Kept | Binding::Anew => run::planner().clone(),
        };
        let declared: Vec<Option<SqlType>> = self.params.iter().cloned().map(Some).collect();
        let mut binder = Binder::new(Surroundings {
            context: &run.plan,
            eval: run.eval.clone(),
            place: place.clone(),
            binding,
            cancel: run.cancel.clone(),
            state,
            side_by_side: run.side_by_side,
            params: ParamTypes::new(&declared).with_types(run.plan.types()),
        });
        let bound = binder.statement(&self.query)?;
        result_columns(bound, place)
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
        let now = Execution::of(run, self.bounds(run));
        let place = Place::of(now);
        let logical = self.bind(run, &place, Binding::Once)?;
        Ok(PlanCopy::new(place, logical))
    }

    /// A copy whose execution has begun, to be given back if it can be used again.
    fn enter(&self, run: &RunContext) -> SqlResult<PlanCopy> {
        if !self.kept {
            return self.for_these_values(run);
        }
        let now = Execution::of(run, self.bounds(run));
        let idle = self.idle.lock().pop();
        let copy = match idle {
            Some(copy) => copy,
            None => {
                let place = Arc::new(Place::default());
                let logical = self.bind(run, &place, Binding::Kept)?;
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
        if !self.kept {
            return Ok(operators);
        }
        let fresh = run::fresh_operators(&operators)?;
        let expected = rows_expected(&operators);
        copy.physical[usize::from(way.helpers > 0)] = Some(Made { way, operators, expected });
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
        let physical = self.operators(copy, run)?;
        let types = self.columns.iter().map(|c| c.ty.clone()).collect();
        let task = run::task(self.bounds(run), &self.common)?;
        let execution = copy.place.execution()?;
        let rows = PlanRows::start(task, physical, types, &execution, self.handle.clone())?;
        let (logical, place, cancel) =
            (copy.logical.clone(), copy.place.clone(), run.cancel.clone());
        Ok(rows.or_else(Box::new(move || {
            let way = Way { short_memory: true, helpers: 0 };
            run::physical_at(run::optimized(&logical, &cancel)?, &place, way, &cancel)
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

    fn called(&self) -> &[u32] {
        &self.called
    }

    fn execute(&self, run: &RunContext) -> SqlResult<Box<dyn RowStream>> {
        self.check_populated()?;
        let admitted = self.admitted(run)?;
        let mut running = Running {
            rows: None,
            copy: Some(self.enter(run)?),
            kept: self.kept,
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
            kept: self.kept && as_kept,
            runs: analyze,
            idle: self.idle.clone(),
            _admitted: admitted,
        };
        let Some(copy) = &mut running.copy else { unreachable!("it was put there") };
        let mut physical = self.operators(copy, run)?;
        let _entered = self.handle.enter();
        let mut head = "general plan (DataFusion)".to_string();
        if !self.kept {
            head.push_str(", made for each execution");
        }
        let mut rows = None;
        if analyze {
            let before = run.txn.stats().requests;
            let task = run::task(self.bounds(run), &self.common)?;
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
