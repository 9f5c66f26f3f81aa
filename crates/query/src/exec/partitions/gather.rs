//! Rows of several partitions as one stream, as they come, where all of them are wanted.
//!
//! DataFusion's operator for that gives each partition to one of the engine's threads, and whoever
//! asked sleeps:
//!
//! ```text
//!   asks    ▪▪ wakes a ──────────── sleeps ─────────────▪▪      ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪ partition 0 ▪▪
//!   a          ▪ wakes b ▪▪▪▪▪▪ partition 0 ▪▪▪▪▪▪              ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪ partition 1
//!   b            ......▪▪▪▪▪▪▪▪ partition 1 ▪▪▪▪▪▪              (free for others)
//! ```
//! On a machine whose processors are as many as the partitions, the last thread is woken while
//! the one that asked has not gone to sleep yet: the scheduler sees no free processor, and puts two
//! threads on one until it balances, some milliseconds later (seen in three of fifteen scans of
//! 10 ms). So whoever asks reads the first partition itself.
//!
//! Only where all rows are wanted anyway: it gives back nothing while it reads.

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
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::{Stream, StreamExt};

/// Puts [`Gather`] in the place of DataFusion's operator below those that take all of their input
/// before they give anything. Runs after all rules that know that operator.
#[derive(Debug)]
pub(crate) struct Gathers;

impl PhysicalOptimizerRule for Gathers {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if !takes_all(&node) {
                return Ok(Transformed::no(node));
            }
            let mut inputs: Vec<_> = node.children().into_iter().cloned().collect();
            // Of joins the side that is held comes first.
            let Some(gather) = inputs.first().and_then(Gather::instead_of) else {
                return Ok(Transformed::no(node));
            };
            inputs[0] = Arc::new(gather);
            let mode = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(node.replace_children(inputs, mode)?))
        })
        .data()
    }

    fn name(&self) -> &str {
        "gathers"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether an operator has nothing to give before its first input has ended.
fn takes_all(node: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        return aggregate.limit_options().is_none();
    }
    node.is::<HashJoinExec>()
        || node.is::<NestedLoopJoinExec>()
        || node.is::<CrossJoinExec>()
        || node.is::<SortExec>()
}

/// See the [module documentation](self).
#[derive(Debug)]
struct Gather {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl Gather {
    /// In the place of DataFusion's operator, if it is that and gives all rows.
    fn instead_of(node: &Arc<dyn ExecutionPlan>) -> Option<Gather> {
        let coalesce = node.downcast_ref::<CoalescePartitionsExec>()?;
        let (input, properties) = (coalesce.input().clone(), coalesce.properties().clone());
        coalesce.fetch().is_none().then_some(Gather { input, properties })
    }
}

impl DisplayAs for Gather {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GatherExec")
    }
}

impl ExecutionPlan for Gather {
    fn name(&self) -> &str {
        "GatherExec"
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
        let input = children.pop().unwrap_or_else(|| self.input.clone());
        let properties = CoalescePartitionsExec::new(input.clone()).properties().clone();
        Ok(Arc::new(Gather { input, properties }))
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
        let partitions = self.input.properties().output_partitioning().partition_count();
        let own = self.input.execute(0, task.clone())?;
        if partitions == 1 {
            return Ok(own);
        }
        let mut others = RecordBatchReceiverStream::builder(self.input.schema(), partitions - 1);
        for partition in 1..partitions {
            let (input, task, output) = (self.input.clone(), task.clone(), others.tx());
            others.spawn(async move {
                let mut rows = input.execute(partition, task)?;
                drop(input);
                while let Some(batch) = rows.next().await {
                    let failed = batch.is_err();
                    // Who does not take it wants no more.
                    if output.send(batch).await.is_err() || failed {
                        break;
                    }
                }
                Ok(())
            });
        }
        let schema = self.input.schema();
        Ok(Box::pin(Gathered { own: Some(own), others: Some(others.build()), schema }))
    }
}

struct Gathered {
    /// What this thread reads, until it has ended.
    own: Option<SendableRecordBatchStream>,
    /// What others have read, until they have ended.
    others: Option<SendableRecordBatchStream>,
    schema: SchemaRef,
}

impl Stream for Gathered {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        // What is there first, since others wait when too much is.
        for stream in [&mut this.others, &mut this.own] {
            if let Some(open) = stream {
                match open.as_mut().poll_next(cx) {
                    Poll::Ready(None) => *stream = None,
                    Poll::Pending => {}
                    ready @ Poll::Ready(Some(_)) => return ready,
                }
            }
        }
        match (&this.own, &this.others) {
            (None, None) => Poll::Ready(None),
            _ => Poll::Pending,
        }
    }
}

impl RecordBatchStream for Gathered {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
