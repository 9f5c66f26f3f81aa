//! The parts of a union one after the other, as written.
//!
//! DataFusion reads them side by side and gives rows as they come; PostgreSQL's `Append`, and
//! whoever wrote `UNION ALL`, has them in order. Only plans for several threads do without.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::Stream;

/// Puts [`InOrder`] above unions. Runs before all rules that look at partitions.
#[derive(Debug)]
pub(crate) struct UnionsInOrder;

impl PhysicalOptimizerRule for UnionsInOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let parts = node.properties().output_partitioning().partition_count();
            if node.downcast_ref::<UnionExec>().is_none() || parts == 1 {
                return Ok(Transformed::no(node));
            }
            Ok(Transformed::yes(Arc::new(InOrder::new(node)) as Arc<dyn ExecutionPlan>))
        })
        .data()
    }

    fn name(&self) -> &str {
        "unions_in_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
struct InOrder {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl InOrder {
    fn new(input: Arc<dyn ExecutionPlan>) -> InOrder {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        InOrder { input, properties }
    }
}

impl DisplayAs for InOrder {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InOrder")
    }
}

impl ExecutionPlan for InOrder {
    fn name(&self) -> &str {
        "InOrder"
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
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(InOrder::new(children.pop().unwrap_or_else(|| self.input.clone()))))
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        // What is learned above goes through to the scans.
        FilterDescription::from_children(parent_filters, &self.children())
    }

    fn execute(&self, _: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let left = 0..self.input.properties().output_partitioning().partition_count();
        let (input, schema) = (self.input.clone(), self.input.schema());
        Ok(Box::pin(Parts { input, schema, task, left, open: None }))
    }
}

struct Parts {
    input: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    task: Arc<TaskContext>,
    /// Those that nobody has begun to read.
    left: std::ops::Range<usize>,
    open: Option<SendableRecordBatchStream>,
}

impl Stream for Parts {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(open) = &mut self.open {
                match open.as_mut().poll_next(cx) {
                    Poll::Ready(None) => self.open = None,
                    other => return other,
                }
            }
            let Some(next) = self.left.next() else { return Poll::Ready(None) };
            match self.input.execute(next, self.task.clone()) {
                Ok(open) => self.open = Some(open),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

impl RecordBatchStream for Parts {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
