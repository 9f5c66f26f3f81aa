//! Plans that stop when they are asked to.
//!
//! An operator that looks for a match, counts or sorts takes batches from its inputs in a loop and
//! gives nothing back for hours; DataFusion leaves it to the runtime to stop it, and our threads
//! have none. So between every operator and its inputs stands a [`Stoppable`], which looks at the
//! cancel flag before each batch. Two operators can compute long within one batch of their input:
//! the nested loop join gets a filter that looks, and unnesting, which makes one batch of all the
//! lists in a batch, gets its input in pieces.
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

use braid_env::memory::Account;
use braid_types::{SqlError, SqlState};
use datafusion::arrow::array::{Array, ListArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::Stream;

use crate::error::to_df;

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
        let node = if node.downcast_ref::<UnnestExec>().is_some() {
            // What computes the lists gets few rows at once, what unnests them few elements.
            let lists = match node.children().first() {
                Some(input) if input.downcast_ref::<ProjectionExec>().is_some() => {
                    let projection = input.children()[0].clone();
                    in_pieces(&projection, Piece::Rows, cancel)?
                }
                Some(input) => (*input).clone(),
                None => return internal_err!("unnesting without input"),
            };
            let checked = Stoppable { input: lists, cancel: cancel.clone(), piece: None };
            in_pieces(&with_input(&node, Arc::new(checked))?, Piece::Elements, cancel)?
        } else {
            node
        };
        let input: Arc<dyn ExecutionPlan> =
            Arc::new(Stoppable { input: node, cancel: cancel.clone(), piece: None });
        Ok(Transformed::yes(input))
    })?;
    Ok(wrapped.data)
}

/// Whether this is a check and no operator.
pub(crate) fn is_stoppable(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.name() == STOPPABLE
}

/// An operator of one input, which now comes in pieces.
fn in_pieces(
    node: &Arc<dyn ExecutionPlan>,
    piece: Piece,
    cancel: &Arc<AtomicBool>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(input) = node.children().first().map(|input| (*input).clone()) else {
        return Ok(node.clone());
    };
    with_input(node, Arc::new(Stoppable { input, cancel: cancel.clone(), piece: Some(piece) }))
}

fn with_input(
    node: &Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    replace_children_if_necessary(node.clone(), vec![input])
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

/// What is counted in a piece of a batch.
#[derive(Clone, Copy, Debug)]
enum Piece {
    /// At most [`ROWS`] rows.
    Rows,
    /// Rows whose longest lists hold at most [`ELEMENTS`] elements together, at least one row.
    Elements,
}

/// Rows for which lists are computed at once: their lengths are not known before.
const ROWS: usize = 16;
/// List elements that are unnested at once.
const ELEMENTS: usize = 8192;

const STOPPABLE: &str = "Stoppable";

/// See the [module documentation](self).
#[derive(Debug)]
struct Stoppable {
    input: Arc<dyn ExecutionPlan>,
    cancel: Arc<AtomicBool>,
    /// How batches are cut.
    piece: Option<Piece>,
}

impl DisplayAs for Stoppable {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STOPPABLE)
    }
}

impl ExecutionPlan for Stoppable {
    fn name(&self) -> &str {
        STOPPABLE
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(self.input.as_ref())
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| self.input.clone());
        let (cancel, piece) = (self.cancel.clone(), self.piece);
        Ok(Arc::new(Stoppable { input, cancel, piece }))
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        check(&self.cancel)?;
        let input = self.input.execute(partition, task)?;
        let cancel = self.cancel.clone();
        Ok(Box::pin(Checks { input, cancel, piece: self.piece, rest: None }))
    }
}

struct Checks {
    input: SendableRecordBatchStream,
    cancel: Arc<AtomicBool>,
    piece: Option<Piece>,
    /// What is left of a batch that is given in pieces.
    rest: Option<RecordBatch>,
}

impl Checks {
    /// Cuts the first piece off a batch.
    fn cut(&mut self, batch: RecordBatch) -> RecordBatch {
        let rows = match self.piece {
            None => batch.num_rows(),
            Some(Piece::Rows) => batch.num_rows().min(ROWS),
            Some(Piece::Elements) => {
                let mut elements = 0;
                let fits = |row: &usize| {
                    let fits = elements < ELEMENTS;
                    elements += elements_in(&batch, *row);
                    fits
                };
                (0..batch.num_rows()).take_while(fits).count()
            }
        };
        if rows == batch.num_rows() {
            return batch;
        }
        self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        batch.slice(0, rows)
    }
}

/// Elements of the longest list in a row.
fn elements_in(batch: &RecordBatch, row: usize) -> usize {
    let length = |column: &Arc<dyn Array>| {
        column.as_any().downcast_ref::<ListArray>().map_or(0, |l| l.value_length(row))
    };
    batch.columns().iter().map(length).max().unwrap_or(0).max(1) as usize
}

impl Stream for Checks {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Err(e) = check(&self.cancel) {
            return Poll::Ready(Some(Err(e)));
        }
        if let Some(rest) = self.rest.take() {
            return Poll::Ready(Some(Ok(self.cut(rest))));
        }
        match self.input.as_mut().poll_next(cx) {
            Poll::Ready(Some(Ok(batch))) => Poll::Ready(Some(Ok(self.cut(batch)))),
            other => other,
        }
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
