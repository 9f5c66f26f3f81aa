//! The rows of a common table expression, computed at the first use and read by every other.
//!
//! Whoever reads them first computes them, in its own turn; others that want them meanwhile wait as
//! streams do, without a thread: all threads of the engine may be needed for the computing.

use std::sync::{Arc, OnceLock};

use braid_sql::SideBySide;
use braid_types::SqlResult;
use datafusion::common::DataFusionError;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::future::{BoxFuture, Shared, WeakShared};
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;

use super::kept::{Kept, Whole};
use crate::error::{from_df, to_df};
use crate::run::physical_side_by_side;

/// This part of the statement's memory is for rows that are kept: other operators need the rest.
const PART: usize = 4;

/// The rows, or why there are none.
type Computed = std::result::Result<Arc<Whole>, Arc<DataFusionError>>;

/// Puts something around the operators of a plan.
pub(crate) type Around =
    fn(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError>;

/// The rows, once they are computed.
pub(super) type Computing = Shared<BoxFuture<'static, Computed>>;

/// See the [module documentation](self).
pub struct Materialized {
    plan: LogicalPlan,
    state: Arc<SessionState>,
    side_by_side: SideBySide,
    /// The operators, once somebody has asked for the rows or for their plan.
    operators: Mutex<Option<Arc<dyn ExecutionPlan>>>,
    /// What is put around the operators before they run.
    around: OnceLock<Around>,
    computed: Arc<OnceLock<Arc<Whole>>>,
    /// As long as somebody waits for them: computing ends with the streams that want the rows.
    computing: Mutex<Option<WeakShared<BoxFuture<'static, Computed>>>>,
}

impl Materialized {
    /// The rows of a plan, with these columns.
    ///
    /// # Errors
    /// When the projection cannot be planned.
    pub fn new(
        plan: LogicalPlan,
        columns: Vec<Expr>,
        state: Arc<SessionState>,
        side_by_side: SideBySide,
    ) -> SqlResult<Materialized> {
        let plan = LogicalPlanBuilder::from(plan)
            .project(columns)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        Ok(Materialized {
            plan,
            state,
            side_by_side,
            operators: Mutex::default(),
            around: OnceLock::new(),
            computed: Arc::default(),
            computing: Mutex::default(),
        })
    }

    /// Puts something around the operators, if they do not run yet.
    pub(crate) fn run_within(&self, around: Around) {
        let _: Result<(), Around> = self.around.set(around);
    }

    /// The operators that compute the rows, or have done so.
    ///
    /// # Errors
    /// Of planning.
    pub(crate) fn operators(&self) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let mut operators = self.operators.lock();
        if let Some(made) = &*operators {
            return Ok(made.clone());
        }
        let plan = physical_side_by_side(&self.state, &self.plan, self.side_by_side);
        let plan = plan.map_err(to_df)?;
        let plan = self.around.get().map_or(Ok(plan.clone()), |around| around(plan))?;
        Ok(operators.insert(plan).clone())
    }

    /// The rows, as somebody computes them. What does not fit into memory goes to disk. After an
    /// error the next one who asks tries again.
    pub(super) fn rows(&self) -> Computing {
        let mut last = self.computing.lock();
        let running = last.as_ref().and_then(WeakShared::upgrade);
        if let Some(running) = running.filter(|running| !matches!(running.peek(), Some(Err(_)))) {
            return running;
        }
        if last.is_some() && self.computed.get().is_none() {
            // They have run, and not to their end.
            *self.operators.lock() = None;
        }
        let (plan, task) = (self.operators(), self.state.task_ctx());
        let computed = self.computed.clone();
        let computing = async move {
            if let Some(rows) = computed.get() {
                return Ok(rows.clone());
            }
            let rows = compute(plan?, task).await?;
            Ok(computed.get_or_init(|| rows).clone())
        };
        let computing = computing.boxed().shared();
        *last = computing.downgrade();
        computing
    }
}

async fn compute(
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
) -> Result<Arc<Whole>, DataFusionError> {
    let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
    let names = ("common table expression", "rows of a common table expression");
    let mut rows = Kept::new(names, plan.schema(), &task, metrics).within_part(PART, &task);
    let mut stream = execute_stream(plan, task)?;
    while let Some(batch) = stream.next().await {
        rows.push(batch?)?;
    }
    Ok(rows.finish())
}
