//! The implementation of `braid_sql::GeneralQueries`.
//!
//! Planning binds once to learn names and types. Running binds again with the parameters' values,
//! so that a parameter in a condition becomes a span of a scan like any literal.

use std::sync::Arc;
use std::time::Duration;

use braid_scalar::{Bound, EvalContext, Node, ParamTypes};
use braid_sql::session::SessionState as SqlSession;
use braid_sql::{ColumnInfo, GeneralPlan, GeneralQueries, PlanContext, Row, RowStream, RunContext};
use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlType};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::{ExecutionPlan, displayable};
use sqlparser::ast;

use crate::admission::{Admitted, Gate};
use crate::bind::{Binder, Bounded, OutputColumn, Surroundings};
use crate::error::from_df;
use crate::exec::scalar;
use crate::exec::stoppable::Bounds;
use crate::memory::SpillDirectory;
use crate::run::{self, PlanRows};
use crate::system;

/// See the [module documentation](self).
pub struct Engine {
    runtime: tokio::runtime::Runtime,
    spill: SpillDirectory,
    gate: Arc<Gate>,
    /// For describing plans.
    session: Arc<datafusion::execution::SessionState>,
}

impl Engine {
    /// An engine whose plans spill into a directory, which exists.
    ///
    /// # Errors
    /// When threads cannot be started.
    pub fn new(spill: SpillDirectory) -> SqlResult<Arc<Engine>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("braid-query")
            // A thread that read a spilled file keeps what it has freed until it ends.
            .thread_keep_alive(Duration::from_millis(200))
            .enable_time()
            .build()
            .map_err(|e| SqlError::internal(format!("starting the query runtime: {e}")))?;
        let session = run::session(Bounds::none(), &spill)?;
        Ok(Arc::new(Engine { runtime, spill, gate: Arc::default(), session }))
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
    spill: SpillDirectory,
    gate: Arc<Gate>,
    handle: tokio::runtime::Handle,
}

/// A running plan, with its place among those that run.
struct Running {
    rows: PlanRows,
    _admitted: Admitted,
}

impl RowStream for Running {
    fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>> {
        self.rows.next_batch()
    }
}

/// Clients are shown names for `regclass` and `regtype`, as text.
fn shown_type(ty: &SqlType) -> SqlType {
    match ty {
        SqlType::Regclass | SqlType::Regtype => SqlType::Text,
        other => other.clone(),
    }
}

/// A result column as the client is shown it.
fn shown(column: &OutputColumn, eval: &EvalContext) -> Expr {
    let shown = shown_type(&column.ty);
    if shown == column.ty {
        return column.expr.clone();
    }
    let value = Bound::column(0, column.ty.clone());
    let cast = Bound::new(Node::Cast(value, CastContext::Explicit), shown);
    let name = column.expr.schema_name().to_string();
    scalar::bound_expr(cast, eval, vec![(column.expr.clone(), column.ty.clone())]).alias(name)
}

fn output(bound: &Bounded) -> Vec<ColumnInfo> {
    bound
        .columns
        .iter()
        .map(|c| {
            let (table_oid, attnum) = c.origin.unwrap_or((0, 0));
            ColumnInfo { name: c.name.clone(), ty: shown_type(&c.ty), table_oid, attnum }
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

    fn plan(
        &self,
        query: &ast::Query,
        context: &PlanContext,
        declared: &[Option<SqlType>],
    ) -> SqlResult<Arc<dyn GeneralPlan>> {
        let mut binder = Binder::new(Surroundings {
            context,
            eval: context.eval.clone(),
            txn: None,
            cancel: context.cancel.clone(),
            state: self.session.clone(),
            params: ParamTypes::new(declared),
        });
        let bound = binder.statement(query)?;
        Ok(Arc::new(Plan {
            query: query.clone(),
            columns: output(&bound),
            params: binder.params().finish(),
            spill: self.spill.clone(),
            gate: self.gate.clone(),
            handle: self.runtime.handle().clone(),
        }))
    }
}

type Physical = (Arc<datafusion::execution::SessionState>, LogicalPlan, Arc<dyn ExecutionPlan>);

impl Plan {
    fn bind(
        &self,
        run: &RunContext,
        eval: &EvalContext,
    ) -> SqlResult<(Arc<datafusion::execution::SessionState>, LogicalPlan)> {
        let bounds = Bounds { cancel: run.cancel.clone(), memory: run.memory.clone() };
        let state = run::session(bounds, &self.spill)?;
        let declared: Vec<Option<SqlType>> = self.params.iter().cloned().map(Some).collect();
        let mut binder = Binder::new(Surroundings {
            context: &run.plan,
            eval: eval.clone(),
            txn: Some(run.txn.clone()),
            cancel: run.cancel.clone(),
            state: state.clone(),
            params: ParamTypes::new(&declared),
        });
        let bound = binder.statement(&self.query)?;
        // Only the result columns, in their order.
        let plan = LogicalPlanBuilder::from(bound.plan)
            .project(bound.columns.iter().map(|c| shown(c, eval)))
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        Ok((state, plan))
    }

    /// Its place among the plans that run; waits for one if need be.
    fn admitted(&self, run: &RunContext) -> SqlResult<Admitted> {
        self.gate.pass(run.memory.pool(), run.txn.is_unlocked(), &run.cancel, &self.handle)
    }

    /// The session to run it in, its logical plan and its physical one.
    fn physical(&self, run: &RunContext) -> SqlResult<Physical> {
        let _entered = self.handle.enter();
        let (state, plan) = self.bind(run, &run.eval)?;
        let physical = run::physical(&state, &plan)?;
        Ok((state, plan, physical))
    }
}

impl GeneralPlan for Plan {
    fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    fn param_types(&self) -> &[SqlType] {
        &self.params
    }

    fn execute(&self, run: &RunContext) -> SqlResult<Box<dyn RowStream>> {
        let admitted = self.admitted(run)?;
        let (state, plan, physical) = self.physical(run)?;
        let types = self.columns.iter().map(|c| c.ty.clone()).collect();
        let rows =
            PlanRows::start(state, physical, types, run.cancel.clone(), self.handle.clone())?;
        let bounds = Bounds { cancel: run.cancel.clone(), memory: run.memory.clone() };
        let spill = self.spill.clone();
        let rows = rows.or_else(Box::new(move || {
            let state = run::session_with(bounds, &spill, true)?;
            let physical = run::physical(&state, &plan)?;
            Ok((state, physical))
        }));
        Ok(Box::new(Running { rows, _admitted: admitted }))
    }

    fn explain(&self, run: &RunContext, analyze: bool) -> SqlResult<Vec<String>> {
        let _admitted = analyze.then(|| self.admitted(run)).transpose()?;
        let (state, _, physical) = self.physical(run)?;
        let mut lines = vec!["general plan (DataFusion)".to_string()];
        if analyze {
            let types = self.columns.iter().map(|c| c.ty.clone()).collect();
            let before = run.txn.stats().requests;
            let mut rows = PlanRows::start(
                state,
                physical.clone(),
                types,
                run.cancel.clone(),
                self.handle.clone(),
            )?;
            let mut count = 0;
            while let Some(batch) = rows.next_batch()? {
                count += batch.len();
            }
            drop(rows);
            let requests = run.txn.stats().requests - before;
            lines[0].push_str(&format!(" (actual rows={count}, requests={requests})"));
        }
        let text = displayable(physical.as_ref()).indent(false).to_string();
        lines.extend(text.lines().map(|l| format!("  {l}")));
        Ok(lines)
    }
}
