//! Which parts of a plan are put in order.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::{Join, LogicalPlan};

use super::graph::{self, Graph};
use super::{search, sides};

/// The plan with its joins in order; unchanged if it has none.
///
/// # Errors
/// What DataFusion reports when it rebuilds a node.
pub(crate) fn ordered(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !has_join(&plan)? || has_mark(&plan)? {
        return Ok(Transformed::no(plan));
    }
    let joined = in_order(plan)?;
    let sides = joined.transform_up(sides::smaller_first)?;
    Ok(Transformed::yes(sides.data))
}

/// The groups of inner joins of a plan in order.
///
/// # Errors
/// As [`ordered`].
pub(super) fn in_order(plan: LogicalPlan) -> Result<LogicalPlan> {
    let ordered = plan.transform_down(|node| {
        let Some(graph) = Graph::of(&node)? else { return Ok(Transformed::no(node)) };
        let ordered = search::best(&graph)?.plan(&graph)?;
        let whole = graph::with_columns_of(ordered, &node)?;
        // Groups within the relations are in order already.
        Ok(Transformed::new(whole, true, TreeNodeRecursion::Jump))
    })?;
    Ok(ordered.data)
}

fn has_join(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| Ok(matches!(node, LogicalPlan::Join(_))))
}

/// Whether there is a mark join. The name of its mark depends on the columns that its right side
/// happens to have, and those above it would not find it any more.
fn has_mark(plan: &LogicalPlan) -> Result<bool> {
    let is_mark = |join: &Join| matches!(join.join_type, JoinType::LeftMark | JoinType::RightMark);
    plan.exists(|node| Ok(matches!(node, LogicalPlan::Join(join) if is_mark(join))))
}
