//! Window functions in memory that is short.
//!
//! DataFusion has two operators for windows, and neither counts what it keeps:
//!
//! ```text
//!   BoundedWindowAgg   frames that end at the row, or near it     keeps rows until their frames are
//!                      known: few, unless many rows are peers
//!   WindowAgg          frames that end with the partition         keeps all of its input
//! ```
//! Around the first stands [`bounded`], which counts. The second is replaced by [`whole`], which
//! takes one partition after the other, keeps of its rows in memory what the functions look at, and
//! writes the rows themselves to disk when there is no room for them.

mod bounded;
mod functions;
mod kept;
mod part;
mod whole;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

use bounded::BoundedWindows;
use whole::WholeWindows;

/// See the [module documentation](self). Runs after all rules that know DataFusion's operators.
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
