//! Outer columns in a subquery's plan: placeholders whose names begin with [`OUTER`].

use std::collections::HashMap;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// What placeholders of outer columns begin with.
pub(crate) const OUTER: &str = "$outer";

/// Whether an expression names an outer column.
pub(crate) fn has_outer(expr: &Expr) -> bool {
    let outer = |e: &Expr| matches!(e, Expr::Placeholder(p) if p.id.starts_with(OUTER));
    expr.exists(|e| Ok(outer(e))).unwrap_or(true)
}

/// Whether any expression of a plan names an outer column.
pub(crate) fn plan_has_outer(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let seen = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|e| {
            found |= has_outer(e);
            Ok(TreeNodeRecursion::Continue)
        })
    });
    found || seen.is_err()
}

/// An expression with outer columns replaced.
pub(crate) fn substitute(expr: Expr, values: &HashMap<String, Expr>) -> Result<Expr> {
    expr.transform_up(|e| match &e {
        Expr::Placeholder(p) => match values.get(&p.id) {
            Some(value) => Ok(Transformed::yes(value.clone())),
            None => Ok(Transformed::no(e)),
        },
        _ => Ok(Transformed::no(e)),
    })
    .map(|t| t.data)
}

/// An expression with columns replaced by what computes them.
pub(crate) fn replace_columns(expr: Expr, values: &HashMap<Column, Expr>) -> Result<Expr> {
    expr.transform_up(|e| match &e {
        Expr::Column(c) => match values.get(c) {
            Some(value) => Ok(Transformed::yes(value.clone())),
            None => Ok(Transformed::no(e)),
        },
        _ => Ok(Transformed::no(e)),
    })
    .map(|t| t.data)
}

/// An expression without its name.
pub(crate) fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}
