//! What puts operators that count into a plan.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

use super::bounded::BoundedWindows;
use super::whole::WholeWindows;

/// See the [module documentation](super). Runs after all rules that know DataFusion's operators.
#[derive(Debug)]
pub(crate) struct CountedWindows;

impl PhysicalOptimizerRule for CountedWindows {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let counted: Arc<dyn ExecutionPlan> = if node.is::<WindowAggExec>() {
                Arc::new(WholeWindows::new(node))
            } else if node.is::<BoundedWindowAggExec>() {
                Arc::new(BoundedWindows::new(node))
            } else {
                return Ok(Transformed::no(node));
            };
            Ok(Transformed::yes(counted))
        })
        .data()
    }

    fn name(&self) -> &str {
        "counted_windows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
