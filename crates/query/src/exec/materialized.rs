//! The rows of a common table expression, computed at the first use and read by every other.
//!
//! Whoever reads them first computes them, in its own turn; others that want them meanwhile wait as
//! streams do, without a thread: all threads of the engine may be needed for the computing.

use std::sync::{Arc, OnceLock};

use braid_sql::SideBySide;
use braid_sql::explain::PlanLine;
use braid_types::SqlResult;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::future::{BoxFuture, Shared, WeakShared};
use futures::{FutureExt, StreamExt, TryFutureExt};
use parking_lot::Mutex;

use super::execution::{CommonScan, Execution, Place};
use super::kept::{Kept, Whole};
use super::made::Made;
use super::scalar::next_id;
use crate::error::{from_df, to_df};
use crate::memory::fitting;
use crate::run::{Way, fresh_operators, optimized, physical_at};
use crate::side_by_side;

/// This part of the statement's memory is for rows that are kept: other operators need the rest.
const PART: usize = 4;

/// The rows, or why there are none.
type Computed = std::result::Result<Arc<Whole>, Arc<DataFusionError>>;

/// The rows, once they are computed.
pub(super) type Computing = Shared<BoxFuture<'static, Computed>>;

/// The root of a plan's operators.
type Operators = Arc<dyn ExecutionPlan>;

/// How operators are watched while they run.
#[derive(Clone, Copy)]
pub(crate) struct Watching {
    /// Puts measures around them.
    pub(crate) measured: fn(Operators) -> Result<Operators>,
    /// What they did, when all is done. Not the operators themselves: they hold memory, and parts
    /// of them may be about to read what nobody wants any more.
    pub(crate) told: fn(&Operators) -> Vec<PlanLine>,
}

/// See the [module documentation](self).
pub struct Materialized {
    query: Arc<Query>,
}

/// What a common table expression is, for whoever computes it.
struct Query {
    /// A number that no other one has.
    id: u64,
    plan: LogicalPlan,
    /// Whether several threads may read for it.
    side_by_side: bool,
    /// With what was said about threads.
    made: Mutex<Option<(SideBySide, Made)>>,
}

/// What an execution has of a common table expression.
#[derive(Default)]
pub(crate) struct CommonRows {
    watching: OnceLock<Watching>,
    told: Arc<OnceLock<Vec<PlanLine>>>,
    computed: Arc<OnceLock<Arc<Whole>>>,
    /// As long as somebody waits for them: computing ends with the streams that want the rows.
    computing: Mutex<Option<WeakShared<BoxFuture<'static, Computed>>>>,
}

impl Materialized {
    /// The rows of a plan, with these columns; by several threads, if they may read for it.
    ///
    /// # Errors
    /// When the projection cannot be planned.
    pub fn new(plan: LogicalPlan, columns: Vec<Expr>, volatile: bool) -> SqlResult<Materialized> {
        let plan = LogicalPlanBuilder::from(plan)
            .project(columns)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        let side_by_side = !volatile && side_by_side::is_possible(&plan).map_err(from_df)?;
        let (id, made) = (next_id(), Mutex::default());
        Ok(Materialized { query: Arc::new(Query { id, plan, side_by_side, made }) })
    }

    /// What an execution has of it.
    fn of(&self, execution: &Execution) -> Arc<CommonRows> {
        execution.common_rows(self.query.id)
    }

    /// The operators of an execution are watched, if they do not run yet.
    pub(crate) fn watch(&self, execution: &Execution, watching: Watching) {
        self.of(execution).watching.get_or_init(|| watching);
    }

    /// What there is to say of the operators: of those that were watched, what they did. `None` if
    /// nobody wanted their rows. Of others how they would be.
    ///
    /// # Errors
    /// Of planning.
    pub(crate) fn told(
        scan: &CommonScan<'_>,
        lines: fn(&Operators) -> Vec<PlanLine>,
    ) -> Result<Option<Vec<PlanLine>>> {
        let rows = scan.rows.of(&scan.execution);
        match rows.watching.get() {
            Some(_) => Ok(rows.told.get().cloned()),
            None => Ok(Some(lines(&scan.rows.query.operators(scan.place, &scan.execution)?))),
        }
    }

    /// The rows, as somebody computes them for an execution at this place. What does not fit into
    /// memory goes to disk. After an error the next one who asks tries again.
    pub(super) fn rows(&self, place: &Arc<Place>, execution: &Arc<Execution>) -> Computing {
        let rows = self.of(execution);
        let mut last = rows.computing.lock();
        let running = last.as_ref().and_then(WeakShared::upgrade);
        if let Some(running) = running.filter(|running| !matches!(running.peek(), Some(Err(_)))) {
            return running;
        }
        let (query, watching) = (self.query.clone(), rows.watching.get().copied());
        let (computed, told) = (rows.computed.clone(), rows.told.clone());
        let (place, execution) = (place.clone(), execution.clone());
        let computing = async move {
            if let Some(rows) = computed.get() {
                return Ok(rows.clone());
            }
            let operators = query.operators(&place, &execution)?;
            let task = execution.task_beside().map_err(to_df)?;
            // Whoever waits for rows that nobody wants any more must not keep the transaction.
            drop(execution);
            let rows = match watching {
                None => compute(operators, task).await?,
                Some(watching) => {
                    let operators = (watching.measured)(operators)?;
                    let rows = compute(operators.clone(), task).await?;
                    told.get_or_init(|| (watching.told)(&operators));
                    rows
                }
            };
            Ok(computed.get_or_init(|| rows).clone())
        };
        let computing = computing.map_err(Arc::new).boxed().shared();
        *last = computing.downgrade();
        computing
    }
}

impl Query {
    /// Operators for one execution.
    fn operators(&self, place: &Arc<Place>, execution: &Execution) -> Result<Operators> {
        self.operators_for(place, execution).map_err(to_df)
    }

    fn operators_for(&self, place: &Arc<Place>, execution: &Execution) -> SqlResult<Operators> {
        let settings = match self.side_by_side {
            true => execution.side_by_side(),
            false => SideBySide::NEVER,
        };
        if let Some((then, made)) = &*self.made.lock()
            && *then == settings
            && !made.is_for_others()
        {
            return fresh_operators(&made.operators);
        }
        let optimized = optimized(&self.plan, &execution.cancel)?;
        let helpers = match side_by_side::at_first(settings, &optimized)? {
            true => side_by_side::threads(settings) - 1,
            false => 0,
        };
        let way = Way { short_memory: false, helpers };
        let made = Made::new(way, physical_at(optimized, place, way, &execution.cancel)?);
        let fresh = fresh_operators(&made.operators)?;
        *self.made.lock() = Some((settings, made));
        Ok(fresh)
    }
}

async fn compute(operators: Operators, task: Arc<TaskContext>) -> Result<Arc<Whole>> {
    let task = fitting(task, operators.as_ref());
    let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
    let names = ("common table expression", "rows of a common table expression");
    let mut rows = Kept::new(names, operators.schema(), &task, metrics).within_part(PART, &task);
    let mut stream = execute_stream(operators, task)?;
    while let Some(batch) = stream.next().await {
        rows.push(batch?)?;
    }
    Ok(rows.finish())
}
