//! What set-returning functions and LATERAL subqueries give, row by row as it is asked for.
//!
//! ```text
//!   input row ─┬─► plain columns ──────────────┐
//!              └─► arguments ─► rows, lazily ──┴─► batches: the plain columns again and again,
//!                               rows, lazily       beside one record of each; NULL for a list
//!                                                  that has ended before the others
//! ```
//! Fields of the records that are all that is looked at come as columns; see [`narrowed`].
//!
//! Plans are made with lists that are unnested, which is what DataFusion's rules know. A list would
//! be in memory as a whole, of `generate_series(1, 100000000)` as well; so the rule of this module
//! puts one operator in the place of both before any other rule looks.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use braid_env::memory::LARGE_VALUE;
use braid_types::{Datum, SqlResult, SqlType};
use datafusion::arrow::array::{
    ArrayRef, BinaryBuilder, RecordBatch, RecordBatchOptions, UInt32Array,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{NullHandling, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::{Stream, ready};

use super::scalar::field_of;
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
            if let Some(set) = ProjectSet::of(&node) {
                return Ok(Transformed::yes(Arc::new(set) as Arc<dyn ExecutionPlan>));
            }
            Ok(match narrowed(&node)? {
                Some(plan) => Transformed::yes(plan),
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

/// Where records come from, and of which arguments.
type List<'a> = (&'a Arc<Records>, &'a Vec<Arc<dyn PhysicalExpr>>);

/// A column of the result.
#[derive(Clone, Debug)]
enum Output {
    /// The value beside each row.
    Plain(Arc<dyn PhysicalExpr>),
    /// Records, of the arguments that these expressions give.
    Records(Arc<Records>, Vec<Arc<dyn PhysicalExpr>>),
    /// Some of their fields, each a column.
    Fields(Arc<Records>, Vec<Arc<dyn PhysicalExpr>>, Vec<(usize, SqlType)>),
}

impl Output {
    fn list(&self) -> Option<List<'_>> {
        match self {
            Output::Plain(_) => None,
            Output::Records(records, args) | Output::Fields(records, args, _) => {
                Some((records, args))
            }
        }
    }
}

/// For each column of a [`ProjectSet`], the fields that are looked at; `None` where the whole is.
type Looked = Vec<Option<Vec<(usize, SqlType)>>>;

fn looked_at(set: &ProjectSet, exprs: &[ProjectionExpr]) -> Result<Looked> {
    let of = |output: &Output| matches!(output, Output::Records(..)).then(Vec::new);
    let mut looked: Looked = set.outputs.iter().map(of).collect();
    for projected in exprs {
        projected.expr.apply(|expr| {
            if let Some((column, at, ty)) = field_of_column(expr) {
                if let Some(fields) = &mut looked[column]
                    && !fields.iter().any(|(field, _)| *field == at)
                {
                    fields.push((at, ty.clone()));
                }
                return Ok(TreeNodeRecursion::Jump);
            }
            if let Some(column) = expr.downcast_ref::<Column>() {
                looked[column.index()] = None;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(looked)
}

/// The column, the field of it and the field's type that an expression gives.
fn field_of_column(expr: &Arc<dyn PhysicalExpr>) -> Option<(usize, usize, &SqlType)> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let (at, ty) = field_of(call.fun())?;
    let [column] = call.args() else { return None };
    Some((column.downcast_ref::<Column>()?.index(), at, ty))
}

/// A projection that looks at nothing but fields of records, over columns of these: values need
/// not be packed into a record and read out of it again for each of its fields.
fn narrowed(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(projection) = node.downcast_ref::<ProjectionExec>() else { return Ok(None) };
    let Some(set) = projection.input().downcast_ref::<ProjectSet>() else { return Ok(None) };
    if set.outputs.iter().any(|output| matches!(output, Output::Fields(..))) {
        return Ok(None);
    }
    let looked = looked_at(set, projection.expr())?;
    if looked.iter().all(Option::is_none) {
        return Ok(None);
    }
    let (mut outputs, mut columns, mut first) = (Vec::new(), Vec::new(), Vec::new());
    for (n, (output, fields)) in set.outputs.iter().zip(&looked).enumerate() {
        first.push(columns.len());
        match (output, fields) {
            (Output::Records(records, args), Some(fields)) => {
                let name = |at: &usize| format!("{} {at}", set.schema().field(n).name());
                columns.extend(fields.iter().map(|(at, ty)| arrow_form::field(&name(at), ty)));
                outputs.push(Output::Fields(records.clone(), args.clone(), fields.clone()));
            }
            _ => {
                columns.push(set.schema().fields()[n].clone());
                outputs.push(output.clone());
            }
        }
    }
    let schema: SchemaRef = Arc::new(Schema::new(columns));
    let column =
        |at: usize| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new(schema.field(at).name(), at)) };
    let rewritten = |projected: &ProjectionExpr| {
        let expr = projected.expr.clone().transform_down(|expr| {
            if let Some((of, at, _)) = field_of_column(&expr)
                && let Some(fields) = &looked[of]
                && let Some(n) = fields.iter().position(|(field, _)| *field == at)
            {
                let expr = column(first[of] + n);
                return Ok(Transformed::new(expr, true, TreeNodeRecursion::Jump));
            }
            Ok(match expr.downcast_ref::<Column>() {
                Some(old) => Transformed::yes(column(first[old.index()])),
                None => Transformed::no(expr),
            })
        });
        Ok(ProjectionExpr { expr: expr.data()?, alias: projected.alias.clone() })
    };
    let exprs = projection.expr().iter().map(rewritten).collect::<Result<Vec<_>>>()?;
    let set = ProjectSet::new(set.input.clone(), outputs, set.outer, schema.clone());
    Ok(Some(Arc::new(ProjectionExec::try_new(exprs, Arc::new(set))?)))
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
            Output::Records(_, args) | Output::Fields(_, args, _) => args,
        })
    }
}

impl DisplayAs for ProjectSet {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = self.outputs.iter().filter_map(Output::list);
        let names = lists.map(|(records, _)| records.name());
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

/// What the records of a list become.
enum Building {
    Records(BinaryBuilder),
    /// The number of each field that is wanted, its type, and its values.
    Fields(Vec<(usize, SqlType, Vec<Datum>)>),
}

impl Building {
    fn of(output: &Output) -> Option<Building> {
        match output {
            Output::Plain(_) => None,
            Output::Records(..) => Some(Building::Records(BinaryBuilder::new())),
            Output::Fields(_, _, fields) => {
                let begun = |(at, ty): &(usize, SqlType)| (*at, ty.clone(), Vec::new());
                Some(Building::Fields(fields.iter().map(begun).collect()))
            }
        }
    }

    /// Adds a record, or none; bytes that it takes.
    fn add(&mut self, record: Option<Vec<Datum>>) -> usize {
        match (self, record) {
            (Building::Records(builder), None) => {
                builder.append_null();
                0
            }
            (Building::Records(builder), Some(record)) => {
                let mut bytes = Vec::new();
                arrow_form::pack(&Datum::record(record), &mut bytes);
                builder.append_value(&bytes);
                bytes.len()
            }
            (Building::Fields(fields), record) => {
                let mut record = record.unwrap_or_default();
                let mut bytes = 0;
                for (at, _, values) in fields {
                    let value = record
                        .get_mut(*at)
                        .map_or(Datum::Null, |value| std::mem::replace(value, Datum::Null));
                    bytes += value.memory();
                    values.push(value);
                }
                bytes
            }
        }
    }

    fn finish(self) -> Vec<ArrayRef> {
        match self {
            Building::Records(mut builder) => vec![Arc::new(builder.finish())],
            Building::Fields(fields) => fields
                .into_iter()
                .map(|(_, ty, values)| arrow_form::build(&ty, values.iter()))
                .collect(),
        }
    }
}

/// A batch of the result in the making.
struct Filling {
    /// For each row of it, the row of the input.
    of: Vec<u32>,
    lists: Vec<Building>,
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
    fn lists(&self) -> impl Iterator<Item = List<'_>> {
        self.outputs.iter().filter_map(Output::list)
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
        let lists = self.outputs.iter().filter_map(Building::of).collect();
        let mut filling = Filling { of: Vec::new(), lists, bytes: 0 };
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
                        filling.lists.iter_mut().for_each(|list| {
                            list.add(None);
                        });
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
        let rows = of.len();
        let (mut plain, mut lists) = (open.plain.iter(), filling.lists.into_iter());
        let mut columns = Vec::new();
        for output in &self.outputs {
            match output {
                Output::Plain(_) => {
                    let column = plain.next().expect("as many as there are outputs");
                    columns.push(take(column, &of, None)?);
                }
                Output::Records(..) | Output::Fields(..) => {
                    let list = lists.next().expect("as many as there are outputs");
                    columns.extend(list.finish());
                }
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

/// Adds the next record of each list; `false` if none has one any more.
fn add_row(lists: &mut [RecordRows], filling: &mut Filling) -> SqlResult<bool> {
    if let [rows] = lists {
        let Some(record) = rows.next().transpose()? else { return Ok(false) };
        filling.bytes += filling.lists[0].add(Some(record));
        return Ok(true);
    }
    let next: Vec<Option<Vec<Datum>>> =
        lists.iter_mut().map(|rows| rows.next().transpose()).collect::<SqlResult<_>>()?;
    if next.iter().all(Option::is_none) {
        return Ok(false);
    }
    for (record, list) in next.into_iter().zip(&mut filling.lists) {
        filling.bytes += list.add(record);
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
