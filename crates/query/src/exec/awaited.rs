//! Scans that begin once the joins above them have told what they know.
//!
//! ```text
//!   Join s.nation = n.key
//!     Scan nation  ────────────────┐  one row
//!     Join p.supplier = s.key      │
//!       Coalesce                   ▼
//!         Scan supplier  ◄──  s.nation = 3    looked up, if it is known in time
//!       Scan partsupp
//! ```
//! The held side of a join is read by tasks of their own where several threads read, and these
//! begin with the whole plan. So such a scan would have read most of its table before the join
//! above has read its own held side. It waits for that instead; nobody else waits for it
//! meanwhile, since what a join has learned goes to its other side only, and that is read later.
//!
//! A sort with a limit tells scans something, too, but goes on learning while it reads them.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

use super::scan::SqlScan;

/// Makes the scans of several threads wait for what joins above tell them.
///
/// # Errors
/// What DataFusion reports when it rebuilds a node.
pub(crate) fn awaiting(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let mut told = HashSet::new();
    plan.apply(|node| {
        if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            let filters = join.dynamic_expressions_produced();
            told.extend(filters.iter().filter_map(|filter| filter.expression_id()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if told.is_empty() {
        return Ok(plan);
    }
    let linked = plan.transform_up(|node| {
        let scan = node.downcast_ref::<SqlScan>();
        Ok(match scan.and_then(|scan| scan.awaiting(&told)) {
            Some(scan) => Transformed::yes(Arc::new(scan) as Arc<dyn ExecutionPlan>),
            None => Transformed::no(node),
        })
    })?;
    Ok(linked.data)
}
