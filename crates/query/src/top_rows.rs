//! The first rows of an outer join are rows of the first rows of its outer side.
//!
//! ```text
//!   Sort  by name, first 15                      Sort  by name, first 15
//!     Left Join  on id = customer_id               Left Join  on id = customer_id
//!       Scan customer                    ──►         Sort  by name, first 15
//!       Aggregate  count by customer_id                Scan customer
//!         Scan orders                                Aggregate  count by customer_id
//!                                                      Scan orders      learns 15 keys
//! ```
//! Each row of the outer side comes out of the join at least once, so of those that are not among
//! its first so many nothing is wanted. That is so where the order is one of the outer side alone.
//! Subqueries in a select list become such joins, and so do LEFT JOINs that look things up.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType, Result};
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Projection, Sort, SortExpr};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// More rows than that are not held twice.
const MOST: usize = 10_000;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct TopRows;

impl OptimizerRule for TopRows {
    fn name(&self) -> &str {
        "top_rows"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        // Joins within joins: what is put below one is looked at next.
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Sort(sort) = &plan else { return Ok(Transformed::no(plan)) };
        let Some(most) = sort.fetch.filter(|most| *most <= MOST) else {
            return Ok(Transformed::no(plan));
        };
        match below(&sort.input, &sort.expr, most)? {
            Some(input) => {
                let sort = Sort { input: Arc::new(input), ..sort.clone() };
                Ok(Transformed::yes(LogicalPlan::Sort(sort)))
            }
            None => Ok(Transformed::no(plan)),
        }
    }
}

/// What a sort of which so many rows are wanted reads, with another sort below its outer join;
/// `None` if there is no such join, or there is one already.
fn below(plan: &LogicalPlan, keys: &[SortExpr], most: usize) -> Result<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Projection(projection) => {
            if projection.expr.iter().any(Expr::is_volatile) {
                return Ok(None);
            }
            let keys = behind(projection, keys)?;
            let input = below(&projection.input, &keys, most)?;
            let over = |input| {
                let (exprs, schema) = (projection.expr.clone(), projection.schema.clone());
                Projection::try_new_with_schema(exprs, Arc::new(input), schema)
            };
            Ok(input.map(over).transpose()?.map(LogicalPlan::Projection))
        }
        LogicalPlan::Join(join) => {
            let outer = match join.join_type {
                JoinType::Left | JoinType::LeftMark => &join.left,
                JoinType::Right | JoinType::RightMark => &join.right,
                _ => return Ok(None),
            };
            if !keys.iter().all(|key| is_of(&key.expr, outer.schema())) || has_first(outer) {
                return Ok(None);
            }
            let (expr, input) = (keys.to_vec(), outer.clone());
            let first = Arc::new(LogicalPlan::Sort(Sort { expr, input, fetch: Some(most) }));
            let join = match Arc::ptr_eq(outer, &join.left) {
                true => Join { left: first, ..join.clone() },
                false => Join { right: first, ..join.clone() },
            };
            Ok(Some(LogicalPlan::Join(join)))
        }
        _ => Ok(None),
    }
}

/// Sort keys over what a projection reads.
fn behind(projection: &Projection, keys: &[SortExpr]) -> Result<Vec<SortExpr>> {
    let columns = projection.schema.columns().into_iter();
    let known: HashMap<Column, &Expr> = columns.zip(&projection.expr).collect();
    let inner = |expr: Expr| match &expr {
        Expr::Column(column) => Ok(match known.get(column) {
            Some(Expr::Alias(Alias { expr, .. })) => Transformed::yes((**expr).clone()),
            Some(other) => Transformed::yes((*other).clone()),
            None => Transformed::no(expr),
        }),
        _ => Ok(Transformed::no(expr)),
    };
    let key = |key: &SortExpr| {
        Ok(SortExpr { expr: key.expr.clone().transform_up(inner)?.data, ..key.clone() })
    };
    keys.iter().map(key).collect()
}

/// Whether an expression has columns of this schema alone, and says the same each time.
fn is_of(expr: &Expr, schema: &DFSchema) -> bool {
    !expr.is_volatile() && expr.column_refs().iter().all(|column| schema.has_column(column))
}

/// Whether no more than some first rows come from here.
fn has_first(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => has_first(&projection.input),
        LogicalPlan::Sort(sort) => sort.fetch.is_some(),
        LogicalPlan::Limit(_) => true,
        _ => false,
    }
}
