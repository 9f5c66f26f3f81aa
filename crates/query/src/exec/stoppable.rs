//! Plans that stop when they are asked to.
//!
//! An operator that looks for a match, counts or sorts takes batches from its inputs in a loop and
//! gives nothing back for hours; DataFusion leaves it to the runtime to stop it, and our threads
//! have none. So between every operator and its inputs stands a [`Stoppable`], which looks at the
//! cancel flag before each batch. The nested loop join can compute long within one batch of its
//! inputs, and gets a filter that looks. It also sees what is handed on, and takes room for batches
//! that are larger than batches are.
//!
//! ```text
//!   Aggregate              Aggregate
//!     CrossJoin     ──►      Stoppable
//!       Scan a                 CrossJoin
//!       Scan b                   Stoppable ── Scan a
//!                                Stoppable ── Scan b
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use braid_catalog::memory_error;
use braid_env::memory::Account;
use braid_types::{SqlError, SqlState};
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::Stream;

use crate::error::to_df;
use crate::exec::around::around_rows;

/// What bounds a query, as an extension of its session's configuration.
#[derive(Debug)]
pub struct Bounds {
    /// Raised when it has to stop.
    pub cancel: Arc<AtomicBool>,
    /// What it holds.
    pub memory: Arc<Account>,
}

impl Bounds {
    /// Of a query that is only planned.
    pub fn none() -> Bounds {
        Bounds { cancel: Arc::default(), memory: Account::unlimited() }
    }

    /// Columns on their way have room for so many copies, if they are of at least so many bytes.
    pub(crate) fn pass(&self, columns: &[ArrayRef], least: usize, copies: usize) -> Result<()> {
        let whole: usize = columns.iter().map(|column| column.get_array_memory_size()).sum();
        if whole < least {
            return Ok(());
        }
        // Many batches may be slices of one that is counted where it was made.
        let bytes = own_bytes(columns)?;
        if bytes < least {
            return Ok(());
        }
        self.memory.pass(bytes, copies).map_err(|e| to_df(memory_error(&e)))
    }
}

/// Bytes of columns, of what they are slices of their own part.
pub(crate) fn own_bytes(columns: &[ArrayRef]) -> Result<usize> {
    let own = columns.iter().map(|column| column.to_data().get_slice_memory_size());
    Ok(own.sum::<std::result::Result<usize, _>>()?)
}

/// 57014 once the flag is up.
pub(crate) fn check(cancel: &AtomicBool) -> Result<()> {
    if cancel.load(Ordering::Relaxed) {
        return Err(to_df(SqlError::new(
            SqlState::QUERY_CANCELED,
            "canceling statement due to user request",
        )));
    }
    Ok(())
}

/// Puts the checks into a plan.
///
/// # Errors
/// When an operator refuses its new inputs.
pub(crate) fn stoppable(
    plan: Arc<dyn ExecutionPlan>,
    cancel: &Arc<AtomicBool>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let wrapped = plan.transform_up(|node| {
        let node = match checked_join(&node, cancel)? {
            Some(join) => join,
            None => node,
        };
        let input: Arc<dyn ExecutionPlan> =
            Arc::new(Stoppable { input: node, cancel: cancel.clone() });
        Ok(Transformed::yes(input))
    })?;
    Ok(wrapped.data)
}

/// Whether this is a check and no operator.
pub(crate) fn is_stoppable(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.name() == STOPPABLE
}

/// A nested loop join with a filter that looks at the flag.
fn checked_join(
    node: &Arc<dyn ExecutionPlan>,
    cancel: &Arc<AtomicBool>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() else { return Ok(None) };
    let Some(filter) = join.filter() else { return Ok(None) };
    let inner = filter.expression().clone();
    let filter = JoinFilter::new(
        Arc::new(Checked { inner, cancel: cancel.clone() }),
        filter.column_indices().to_vec(),
        filter.schema().clone(),
    );
    let projection = join.projection().as_ref().map(|p| p.to_vec());
    let (left, right) = (join.left().clone(), join.right().clone());
    let join =
        NestedLoopJoinExec::try_new(left, right, Some(filter), join.join_type(), projection)?;
    Ok(Some(Arc::new(join)))
}

const STOPPABLE: &str = "Stoppable";

/// See the [module documentation](self).
#[derive(Clone, Debug)]
struct Stoppable {
    input: Arc<dyn ExecutionPlan>,
    cancel: Arc<AtomicBool>,
}

impl DisplayAs for Stoppable {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STOPPABLE)
    }
}

impl ExecutionPlan for Stoppable {
    around_rows!();

    fn name(&self) -> &str {
        STOPPABLE
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(self.input.as_ref())
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        check(&self.cancel)?;
        let bounds = task.session_config().get_extension::<Bounds>();
        let input = self.input.execute(partition, task)?;
        Ok(Box::pin(Checks { input, cancel: self.cancel.clone(), bounds }))
    }
}

struct Checks {
    input: SendableRecordBatchStream,
    cancel: Arc<AtomicBool>,
    bounds: Option<Arc<Bounds>>,
}

/// Bytes of a batch that needs room of its own,
const LARGE_BATCH: usize = 4 << 20;
/// for which it is there so many times: in two operators, as values, in a message.
const COPIES: usize = 4;

impl Stream for Checks {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Err(e) = check(&self.cancel) {
            return Poll::Ready(Some(Err(e)));
        }
        let polled = self.input.as_mut().poll_next(cx);
        if let (Poll::Ready(Some(Ok(batch))), Some(bounds)) = (&polled, &self.bounds) {
            bounds.pass(batch.columns(), LARGE_BATCH, COPIES)?;
        }
        polled
    }
}

impl RecordBatchStream for Checks {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

/// An expression that looks at the flag before it computes.
#[derive(Debug)]
struct Checked {
    inner: Arc<dyn PhysicalExpr>,
    cancel: Arc<AtomicBool>,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PartialEq for Checked {
    fn eq(&self, other: &Checked) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for Checked {}

impl Hash for Checked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl PhysicalExpr for Checked {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.inner.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.inner.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        check(&self.cancel)?;
        self.inner.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let inner = children.pop().unwrap_or_else(|| self.inner.clone());
        Ok(Arc::new(Checked { inner, cancel: self.cancel.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
