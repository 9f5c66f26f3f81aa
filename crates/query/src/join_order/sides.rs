//! The smaller side of an outer, semi or anti join on the left, where it is held.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::{Expr, Join, LogicalPlan};

use super::estimate::estimate;
use super::graph::with_columns_of;

/// How many times smaller the right side must be: exchanging costs a join the chance to tell the
/// scan on its right what it knows, when rows of that side stay without a match.
const CLEARLY: f64 = 2.0;

/// Exchanges the sides of a join whose right one is clearly smaller.
///
/// # Errors
/// What DataFusion reports when it rebuilds a node.
pub(super) fn smaller_first(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(join) = &plan else { return Ok(Transformed::no(plan)) };
    let Some(exchanged) = exchanged(join.join_type) else { return Ok(Transformed::no(plan)) };
    if join.on.is_empty() || join.null_aware {
        return Ok(Transformed::no(plan));
    }
    let (left, right) = (estimate(&join.left), estimate(&join.right));
    if left.rows <= right.rows * CLEARLY {
        return Ok(Transformed::no(plan));
    }
    let on: Vec<(Expr, Expr)> = join.on.iter().map(|(l, r)| (r.clone(), l.clone())).collect();
    let other = Join::try_new(
        join.right.clone(),
        join.left.clone(),
        on,
        join.filter.clone(),
        exchanged,
        join.join_constraint,
        join.null_equality,
        false,
    )?;
    Ok(Transformed::yes(with_columns_of(LogicalPlan::Join(other), &plan)?))
}

/// The same join with its sides exchanged, where there is one that is as good.
fn exchanged(join: JoinType) -> Option<JoinType> {
    match join {
        JoinType::Left => Some(JoinType::Right),
        JoinType::Right => Some(JoinType::Left),
        JoinType::LeftSemi => Some(JoinType::RightSemi),
        JoinType::LeftAnti => Some(JoinType::RightAnti),
        _ => None,
    }
}
