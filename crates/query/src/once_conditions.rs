//! Conditions that name no column, above an aggregate of all rows.
//!
//! ```text
//!   Filter  $1 = 1                    CrossJoin
//!     Aggregate  [] [count(*)]   ──►    Aggregate  [] [count(*)]
//!       Scan t                            Scan t
//!                                       Filter  $1 = 1
//!                                         one row
//! ```
//! HAVING of such an aggregate decides whether there is a row at all. Pushed below the aggregate,
//! as every condition would be that names none of its results, it would only take away what is
//! counted.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct OnceConditions;

impl OptimizerRule for OnceConditions {
    fn name(&self) -> &str {
        "once_conditions"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else { return Ok(Transformed::no(plan)) };
        let conditions = split_conjunction_owned(filter.predicate.clone());
        let (once, each): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(is_once);
        if once.is_empty() || !filter.input.exists(|below| Ok(is_of_all_rows(below)))? {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        let condition = once.into_iter().reduce(Expr::and).unwrap_or_else(|| lit(true));
        let one_row = LogicalPlanBuilder::empty(true)
            .filter(condition)?
            .project([lit(true).alias("\0once")])?
            .build()?;
        let columns: Vec<Expr> =
            filter.input.schema().columns().into_iter().map(Expr::Column).collect();
        let input = match conjunction(each) {
            None => Arc::unwrap_or_clone(filter.input),
            Some(each) => LogicalPlan::Filter(Filter::try_new(each, filter.input)?),
        };
        let joined = LogicalPlanBuilder::from(input).cross_join(one_row)?.project(columns)?;
        Ok(Transformed::yes(joined.build()?))
    }
}

/// Whether a condition says the same of all rows, and is not known yet.
fn is_once(e: &Expr) -> bool {
    let asks =
        |e: &Expr| Ok(matches!(e, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)));
    e.column_refs().is_empty()
        && !e.exists(asks).unwrap_or(true)
        && !e.is_volatile()
        && !e.contains_outer()
        && !matches!(e, Expr::Literal(..))
}

/// An aggregate that gives a row of no rows.
fn is_of_all_rows(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(aggregate) = plan else { return false };
    aggregate.group_expr.is_empty()
        || matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)])
}
