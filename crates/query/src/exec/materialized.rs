//! The rows of a common table expression, computed at the first use and read by every other.

use std::sync::Arc;

use braid_types::SqlResult;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use futures::StreamExt;
use parking_lot::Mutex;

use super::kept::{Kept, Whole};
use crate::error::{from_df, to_df};
use crate::run::{drive, physical};

/// This part of the statement's memory is for rows that are kept: other operators need the rest.
const PART: usize = 4;

/// See the [module documentation](self).
pub struct Materialized {
    plan: LogicalPlan,
    state: Arc<SessionState>,
    kept: Mutex<Option<Arc<Whole>>>,
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
    ) -> SqlResult<Materialized> {
        let plan = LogicalPlanBuilder::from(plan)
            .project(columns)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        Ok(Materialized { plan, state, kept: Mutex::new(None) })
    }

    /// The rows; the first call computes them. What does not fit into memory goes to disk.
    ///
    /// # Errors
    /// Of planning, running and of the disk.
    pub(super) fn rows(&self) -> Result<Arc<Whole>> {
        let mut kept = self.kept.lock();
        if let Some(kept) = &*kept {
            return Ok(kept.clone());
        }
        let plan = physical(&self.state, &self.plan).map_err(to_df)?;
        let task = self.state.task_ctx();
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        let names = ("common table expression", "rows of a common table expression");
        let mut rows = Kept::new(names, plan.schema(), &task, metrics).within_part(PART, &task);
        let mut stream = execute_stream(plan, task)?;
        while let Some(batch) = drive(stream.next()) {
            rows.push(batch?)?;
        }
        Ok(kept.insert(rows.finish()).clone())
    }
}
