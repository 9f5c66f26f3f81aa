//! The operator that gives the rows of a part: its own, or those that another occurrence has
//! computed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::{Distribution, EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use crate::memory::part_of;

type Values = Vec<Arc<dyn PhysicalExpr>>;

/// What an occurrence has computed for the others.
#[derive(Clone)]
enum Computed {
    Rows(Arc<(Vec<RecordBatch>, MemoryReservation)>),
    /// There was no memory for it: each computes its own.
    Refused,
}

type Computing = Shared<BoxFuture<'static, Result<Computed, Arc<DataFusionError>>>>;

/// What occurrences of a part have computed in one execution, by the values of their parameters.
#[derive(Default)]
struct Common {
    computed: Mutex<HashMap<Vec<ScalarValue>, Computing>>,
}

impl fmt::Debug for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Common")
    }
}

/// See the [module documentation](self).
#[derive(Clone, Debug)]
pub(super) struct PartExec {
    group: u64,
    /// Which of them it is.
    number: usize,
    /// The parameters of each occurrence.
    values: Arc<Vec<Values>>,
    input: Arc<dyn ExecutionPlan>,
    common: Arc<Common>,
    properties: Arc<PlanProperties>,
}

impl PartExec {
    pub(super) fn new(
        group: u64,
        (number, values): (usize, Vec<Values>),
        input: Arc<dyn ExecutionPlan>,
    ) -> PartExec {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        ));
        let (values, common) = (Arc::new(values), Arc::default());
        PartExec { group, number, values, input, common, properties }
    }

    /// The values of its parameters, if those of another occurrence are the same. One that cannot
    /// be computed is reported by the operator that needs it.
    fn values_in_common(&self) -> Option<Vec<ScalarValue>> {
        let own = values(self.values.get(self.number)?)?;
        let others = self.values.iter().enumerate().filter(|(n, _)| *n != self.number);
        let mut others = others.filter_map(|(_, constants)| values(constants));
        others.any(|other| other == own).then_some(own)
    }

    fn computing(&self, key: Vec<ScalarValue>, task: &Arc<TaskContext>) -> Computing {
        let mut computed = self.common.computed.lock();
        let (input, task) = (self.input.clone(), task.clone());
        let compute = || async move { computed_by(input, task).await.map_err(Arc::new) };
        computed.entry(key).or_insert_with(|| compute().boxed().shared()).clone()
    }
}

fn values(constants: &Values) -> Option<Vec<ScalarValue>> {
    let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
    let value = |expr: &Arc<dyn PhysicalExpr>| match expr.evaluate(&nothing) {
        Ok(ColumnarValue::Scalar(value)) => Some(value),
        _ => None,
    };
    constants.iter().map(value).collect()
}

/// This part of the statement's memory is for rows that are kept: other operators need the rest.
const SHARE: usize = 8;

/// All rows, if there is memory for them.
async fn computed_by(input: Arc<dyn ExecutionPlan>, task: Arc<TaskContext>) -> Result<Computed> {
    let memory = MemoryConsumer::new("common part of a query").register(task.memory_pool());
    let most = part_of(&task, SHARE);
    let mut rows = input.execute(0, task)?;
    let mut batches = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let bytes = batch.get_array_memory_size();
        if memory.size() + bytes > most || memory.try_grow(bytes).is_err() {
            return Ok(Computed::Refused);
        }
        batches.push(batch);
    }
    Ok(Computed::Rows(Arc::new((batches, memory))))
}

/// The rows of another occurrence, whose columns have other names.
fn renamed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// Lets the occurrences of each part know each other, for one execution.
///
/// # Errors
/// What DataFusion reports when it rebuilds a node.
pub(crate) fn linked(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if !plan.exists(|node| Ok(node.downcast_ref::<PartExec>().is_some()))? {
        return Ok(plan);
    }
    let mut groups: HashMap<u64, Arc<Common>> = HashMap::new();
    plan.transform_up(|node| {
        let Some(part) = node.downcast_ref::<PartExec>() else { return Ok(Transformed::no(node)) };
        let common = groups.entry(part.group).or_default().clone();
        Ok(Transformed::yes(Arc::new(PartExec { common, ..part.clone() }) as _))
    })
    .data()
}

impl DisplayAs for PartExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Part: computed once for {} places", self.values.len())
    }
}

impl ExecutionPlan for PartExec {
    fn name(&self) -> &str {
        "Part"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
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
        Ok(Arc::new(PartExec { input, ..PartExec::clone(&self) }))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(PartExec { common: Arc::default(), ..PartExec::clone(&self) }))
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(key) = self.values_in_common() else { return self.input.execute(partition, task) };
        let (computing, schema) = (self.computing(key, &task), self.schema());
        let (input, named) = (self.input.clone(), schema.clone());
        let rows = async move {
            match computing.await.map_err(DataFusionError::Shared)? {
                Computed::Refused => input.execute(partition, task),
                Computed::Rows(rows) => {
                    let at = 0..rows.0.len();
                    let again = named.clone();
                    let batches = at.map(move |n| renamed(&rows.0[n], &again));
                    Ok(Box::pin(RecordBatchStreamAdapter::new(named, stream::iter(batches))) as _)
                }
            }
        };
        let rows = stream::once(rows).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
