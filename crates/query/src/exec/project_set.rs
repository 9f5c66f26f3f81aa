//! What set-returning functions and LATERAL subqueries give, row by row as it is asked for.
//!
//! ```text
//!   input row ─┬─► plain columns ──────────────┐
//!              └─► arguments ─► rows, lazily ──┴─► batches: the plain columns again and again,
//!                               rows, lazily       beside one record of each; NULL for a list
//!                                                  that has ended before the others
//! ```
//! Plans are made with lists that are unnested, which is what DataFusion's rules know. A list would
//! be in memory as a whole, of `generate_series(1, 100000000)` as well; so the rule of this module
//! puts one operator in the place of both before any other rule looks.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use braid_env::memory::LARGE_VALUE;
use braid_types::{Datum, SqlResult};
use datafusion::arrow::array::{ArrayRef, BinaryBuilder, RecordBatch, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{NullHandling, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::{Stream, ready};

use super::set_returning::{RecordRows, Records};
use super::stoppable::{Bounds, own_bytes};
use crate::arrow_form::{self, Reader};
use crate::error::to_df;

/// Rows of a batch,
const BATCH_ROWS: usize = 8192;
/// or so many bytes.
const BATCH_BYTES: usize = 1 << 20;
/// Rows of arguments for which nothing was given, after which others have a look at the plan: each
/// may have run a subquery.
const FRUITLESS: usize = 16;

/// Puts [`ProjectSet`] in the place of lists and what unnests them.
#[derive(Debug)]
pub(crate) struct ProjectSets;

impl PhysicalOptimizerRule for ProjectSets {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(match ProjectSet::of(&node) {
                Some(set) => Transformed::yes(Arc::new(set) as Arc<dyn ExecutionPlan>),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "project_sets"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A column of the result.
#[derive(Clone, Debug)]
enum Output {
    /// The value beside each row.
    Plain(Arc<dyn PhysicalExpr>),
    /// Records, of the arguments that these expressions give.
    Records(Arc<Records>, Vec<Arc<dyn PhysicalExpr>>),
}

/// See the [module documentation](self).
#[derive(Clone, Debug)]
struct ProjectSet {
    input: Arc<dyn ExecutionPlan>,
    outputs: Vec<Output>,
    /// A row without any stays, with NULL.
    outer: bool,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ProjectSet {
    /// In the place of what unnests lists of ours.
    fn of(node: &Arc<dyn ExecutionPlan>) -> Option<ProjectSet> {
        let unnest = node.downcast_ref::<UnnestExec>()?;
        let lists = unnest.input().downcast_ref::<ProjectionExec>()?;
        let unnested = unnest.list_column_indices();
        if !unnest.struct_column_indices().is_empty() || unnested.iter().any(|l| l.depth != 1) {
            return None;
        }
        let mut outputs = Vec::new();
        for (at, projected) in lists.expr().iter().enumerate() {
            let is_list = unnested.iter().any(|list| list.index_in_input_schema == at);
            outputs.push(match is_list {
                true => {
                    let call = projected.expr.downcast_ref::<ScalarFunctionExpr>()?;
                    Output::Records(Records::of(call.fun())?, call.args().to_vec())
                }
                false => Output::Plain(projected.expr.clone()),
            });
        }
        let outer = unnest.options().null_handling != NullHandling::Drop;
        Some(ProjectSet::new(lists.input().clone(), outputs, outer, unnest.schema()))
    }

    fn new(
        input: Arc<dyn ExecutionPlan>,
        outputs: Vec<Output>,
        outer: bool,
        schema: SchemaRef,
    ) -> ProjectSet {
        let partitions = input.properties().output_partitioning().partition_count();
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        let metrics = ExecutionPlanMetricsSet::new();
        ProjectSet { input, outputs, outer, properties, metrics }
    }

    fn expressions(&self) -> impl Iterator<Item = &Arc<dyn PhysicalExpr>> {
        self.outputs.iter().flat_map(|output| match output {
            Output::Plain(expr) => std::slice::from_ref(expr),
            Output::Records(_, args) => args,
        })
    }
}

impl DisplayAs for ProjectSet {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.outputs.iter().filter_map(|output| match output {
            Output::Plain(_) => None,
            Output::Records(records, _) => Some(records.name()),
        });
        write!(f, "ProjectSet: {}", names.collect::<Vec<_>>().join(", "))
    }
}

impl ExecutionPlan for ProjectSet {
    fn name(&self) -> &str {
        "ProjectSet"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for expr in self.expressions() {
            recursion = recursion.visit_sibling(|| f(expr))?;
        }
        Ok(recursion)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| self.input.clone());
        Ok(Arc::new(match options.children_properties {
            // Operators above it need not compute theirs again either.
            ChildrenPropertiesMode::Keep => {
                let metrics = ExecutionPlanMetricsSet::new();
                ProjectSet { input, metrics, ..ProjectSet::clone(&self) }
            }
            ChildrenPropertiesMode::Recompute => {
                ProjectSet::new(input, self.outputs.clone(), self.outer, self.schema())
            }
        }))
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let bounds = task.session_config().get_extension::<Bounds>();
        let input = self.input.execute(partition, task)?;
        let (outputs, outer, schema) = (self.outputs.clone(), self.outer, self.schema());
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        Ok(Box::pin(Sets { input, outputs, outer, schema, open: None, metrics, bounds }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// An input batch on its way.
struct Open {
    /// The plain columns.
    plain: Vec<ArrayRef>,
    /// For each list, the arguments of each row.
    given: Vec<Vec<Vec<Datum>>>,
    rows: usize,
    /// Bytes of a row of the plain columns, on average.
    row_bytes: usize,
    /// The row whose records come, and what is left of them.
    row: usize,
    left: Option<Vec<RecordRows>>,
}

/// A batch of the result in the making.
struct Filling {
    /// For each row of it, the row of the input.
    of: Vec<u32>,
    records: Vec<BinaryBuilder>,
    bytes: usize,
}

impl Filling {
    /// The row that was added stands beside the open one.
    fn push(&mut self, open: &Open) {
        self.of.push(open.row as u32);
        self.bytes += open.row_bytes;
    }

    fn is_full(&self) -> bool {
        self.of.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }
}

struct Sets {
    input: SendableRecordBatchStream,
    outputs: Vec<Output>,
    outer: bool,
    schema: SchemaRef,
    open: Option<Open>,
    metrics: BaselineMetrics,
    bounds: Option<Arc<Bounds>>,
}

/// Large arguments are there so many times: as they were made, as constants of the plan, in
/// columns, as values, and as what a function cuts.
const COPIES: usize = 6;

impl Sets {
    fn lists(&self) -> impl Iterator<Item = (&Arc<Records>, &Vec<Arc<dyn PhysicalExpr>>)> {
        self.outputs.iter().filter_map(|output| match output {
            Output::Plain(_) => None,
            Output::Records(records, args) => Some((records, args)),
        })
    }

    fn begin(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        let of = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(batch)?.into_array(rows);
        let (mut plain, mut given) = (Vec::new(), Vec::new());
        for output in &self.outputs {
            if let Output::Plain(expr) = output {
                plain.push(of(expr)?);
            }
        }
        for (records, args) in self.lists() {
            let columns = args.iter().map(of).collect::<Result<Vec<_>>>()?;
            if let Some(bounds) = &self.bounds {
                bounds.pass(&columns, LARGE_VALUE, COPIES)?;
            }
            let readers: Vec<Reader<'_>> =
                columns.iter().map(|column| Reader::new(column)).collect();
            let types = records.arg_types();
            let read = |at: usize| -> Vec<Datum> {
                readers.iter().zip(&types).map(|(reader, ty)| reader.get(at, ty)).collect()
            };
            let all: Vec<Vec<Datum>> = (0..rows).map(read).collect();
            records.expect(&all);
            given.push(all);
        }
        let row_bytes = own_bytes(&plain)? / rows;
        self.open = Some(Open { plain, given, rows, row_bytes, row: 0, left: None });
        Ok(())
    }

    /// The next rows of the open batch. `None` after some rows of arguments that gave nothing.
    fn fill(&mut self) -> Result<Option<RecordBatch>> {
        let Some(mut open) = self.open.take() else { return Ok(None) };
        let lists = open.given.len();
        let records = std::iter::repeat_with(BinaryBuilder::new).take(lists).collect();
        let mut filling = Filling { of: Vec::new(), records, bytes: 0 };
        let mut begun = 0;
        while open.row < open.rows && !filling.is_full() {
            if open.left.is_none() {
                if begun == FRUITLESS && filling.of.is_empty() {
                    break;
                }
                begun += 1;
                let rows = self.lists().enumerate();
                let rows = rows.map(|(n, (records, _))| records.rows(&open.given[n][open.row]));
                let mut rows = rows.collect::<SqlResult<Vec<_>>>().map_err(to_df)?;
                let any = add_row(&mut rows, &mut filling).map_err(to_df)?;
                if any || self.outer {
                    if !any {
                        filling.records.iter_mut().for_each(BinaryBuilder::append_null);
                    }
                    filling.push(&open);
                }
                open.left = any.then_some(rows);
            } else if let Some(rows) = &mut open.left
                && add_row(rows, &mut filling).map_err(to_df)?
            {
                filling.push(&open);
            } else {
                open.left = None;
            }
            if open.left.is_none() {
                open.row += 1;
            }
        }
        let batch = match filling.of.is_empty() {
            true => None,
            false => Some(self.batch(&open, filling)?),
        };
        self.open = Some(open).filter(|open| open.row < open.rows);
        Ok(batch)
    }

    fn batch(&self, open: &Open, filling: Filling) -> Result<RecordBatch> {
        let of = UInt32Array::from(filling.of);
        let (mut plain, mut records) = (open.plain.iter(), filling.records.into_iter());
        let columns = self.outputs.iter().map(|output| match output {
            Output::Plain(_) => {
                let column = plain.next().expect("as many as there are outputs");
                Ok(take(column, &of, None)?)
            }
            Output::Records(..) => {
                let mut builder = records.next().expect("as many as there are outputs");
                Ok(Arc::new(builder.finish()) as ArrayRef)
            }
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }
}

/// Adds the next record of each list; `false` if none has one any more.
fn add_row(lists: &mut [RecordRows], filling: &mut Filling) -> SqlResult<bool> {
    let next: Vec<Option<Datum>> =
        lists.iter_mut().map(|rows| rows.next().transpose()).collect::<SqlResult<_>>()?;
    if next.iter().all(Option::is_none) {
        return Ok(false);
    }
    let mut bytes = Vec::new();
    for (record, builder) in next.into_iter().zip(&mut filling.records) {
        match record {
            Some(record) => {
                bytes.clear();
                arrow_form::pack(&record, &mut bytes);
                filling.bytes += bytes.len();
                builder.append_value(&bytes);
            }
            None => builder.append_null(),
        }
    }
    Ok(true)
}

impl Stream for Sets {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while self.open.is_none() {
            match ready!(self.input.as_mut().poll_next(cx)) {
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                Some(Ok(batch)) => {
                    if let Err(error) = self.begin(&batch) {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                other => return Poll::Ready(other),
            }
        }
        match self.fill() {
            Ok(Some(batch)) => Poll::Ready(Some(Ok(batch.record_output(&self.metrics)))),
            Ok(None) => {
                // Whoever polls looks whether somebody wants to stop.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }
}

impl RecordBatchStream for Sets {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
