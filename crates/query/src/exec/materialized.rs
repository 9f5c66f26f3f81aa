//! The rows of a common table expression, computed at the first use and read by every other.

use std::sync::Arc;

use braid_types::SqlResult;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use parking_lot::Mutex;

use crate::error::{from_df, to_df};
use crate::run::{drive, physical};

/// Batches and the memory that they are accounted with.
struct Kept {
    batches: Arc<Vec<RecordBatch>>,
    _memory: MemoryReservation,
}

/// See the [module documentation](self).
pub struct Materialized {
    plan: LogicalPlan,
    state: Arc<SessionState>,
    kept: Mutex<Option<Kept>>,
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

    /// The rows; the first call computes them.
    ///
    /// # Errors
    /// Of planning and running; 53200 when they do not fit into the budget.
    pub fn batches(&self) -> Result<Arc<Vec<RecordBatch>>> {
        let mut kept = self.kept.lock();
        if let Some(kept) = &*kept {
            return Ok(kept.batches.clone());
        }
        let pool = &self.state.runtime_env().memory_pool;
        let memory = MemoryConsumer::new("common table expression").register(pool);
        let plan = physical(&self.state, &self.plan).map_err(to_df)?;
        let mut stream = execute_stream(plan, self.state.task_ctx())?;
        let mut batches = Vec::new();
        while let Some(batch) = drive(stream.next()) {
            let batch = batch?;
            memory.try_grow(batch.get_array_memory_size())?;
            batches.push(batch);
        }
        let batches = Arc::new(batches);
        *kept = Some(Kept { batches: batches.clone(), _memory: memory });
        Ok(batches)
    }
}
