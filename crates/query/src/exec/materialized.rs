//! The rows of a common table expression, computed at the first use and read by every other.
//!
//! Whoever reads them first computes them, in its own turn; others that want them meanwhile wait as
//! streams do, without a thread: all threads of the engine may be needed for the computing.

use std::sync::{Arc, OnceLock};

use braid_sql::SideBySide;
use braid_sql::explain::PlanLine;
use braid_types::SqlResult;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::future::{BoxFuture, Shared, WeakShared};
use futures::{FutureExt, StreamExt, TryFutureExt};
use parking_lot::Mutex;

use super::kept::{Kept, Whole};
use crate::error::{from_df, to_df};
use crate::memory::fitting;
use crate::run::physical_side_by_side;

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

/// What a common table expression is, for whoever computes it.
#[derive(Clone)]
struct Query {
    plan: LogicalPlan,
    state: Arc<SessionState>,
    side_by_side: SideBySide,
}

/// See the [module documentation](self).
pub struct Materialized {
    query: Query,
    watching: OnceLock<Watching>,
    told: Arc<OnceLock<Vec<PlanLine>>>,
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
            query: Query { plan, state, side_by_side },
            watching: OnceLock::new(),
            told: Arc::default(),
            computed: Arc::default(),
            computing: Mutex::default(),
        })
    }

    /// The operators are watched, if they do not run yet.
    pub(crate) fn watch(&self, watching: Watching) {
        self.watching.get_or_init(|| watching);
    }

    /// What there is to say of the operators: of those that were watched, what they did. `None` if
    /// nobody wanted their rows. Of others how they would be.
    ///
    /// # Errors
    /// Of planning.
    pub(crate) fn told(
        &self,
        lines: fn(&Operators) -> Vec<PlanLine>,
    ) -> Result<Option<Vec<PlanLine>>> {
        match self.watching.get() {
            Some(_) => Ok(self.told.get().cloned()),
            None => Ok(Some(lines(&self.query.operators()?))),
        }
    }

    /// The rows, as somebody computes them. What does not fit into memory goes to disk. After an
    /// error the next one who asks tries again.
    pub(super) fn rows(&self) -> Computing {
        let mut last = self.computing.lock();
        let running = last.as_ref().and_then(WeakShared::upgrade);
        if let Some(running) = running.filter(|running| !matches!(running.peek(), Some(Err(_)))) {
            return running;
        }
        let (query, watching) = (self.query.clone(), self.watching.get().copied());
        let (computed, told) = (self.computed.clone(), self.told.clone());
        let computing = async move {
            if let Some(rows) = computed.get() {
                return Ok(rows.clone());
            }
            let rows = match watching {
                None => query.compute(query.operators()?).await?,
                Some(watching) => {
                    let operators = (watching.measured)(query.operators()?)?;
                    let rows = query.compute(operators.clone()).await?;
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
    fn operators(&self) -> Result<Operators> {
        physical_side_by_side(&self.state, &self.plan, self.side_by_side).map_err(to_df)
    }

    async fn compute(&self, operators: Operators) -> Result<Arc<Whole>> {
        let task = fitting(self.state.task_ctx(), operators.as_ref());
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        let names = ("common table expression", "rows of a common table expression");
        let mut rows =
            Kept::new(names, operators.schema(), &task, metrics).within_part(PART, &task);
        let mut stream = execute_stream(operators, task)?;
        while let Some(batch) = stream.next().await {
            rows.push(batch?)?;
        }
        Ok(rows.finish())
    }
}
