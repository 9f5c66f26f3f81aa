//! Groups that keep the names of their columns.
//!
//! ```text
//!   Aggregate  groups: [t.a AS group1]        Projection  [t.a AS group1, sum]
//!     Scan t                             ──►    Aggregate  groups: [t.a]
//!                                                 Scan t
//! ```
//! What a join above learns about `group1` reaches the scan through the projection, which knows
//! what the name stands for; an aggregate looks for the same name below it and finds none.

use std::collections::HashSet;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct BareGroups;

impl OptimizerRule for BareGroups {
    fn name(&self) -> &str {
        "bare_groups"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = plan else { return Ok(Transformed::no(plan)) };
        let bare: Vec<Expr> = aggregate.group_expr.iter().map(without_alias).collect();
        // Two columns of one name cannot both keep it.
        let names = bare.iter().chain(&aggregate.aggr_expr).map(|e| e.qualified_name().1);
        let different: HashSet<String> = names.collect();
        let all = bare.len() + aggregate.aggr_expr.len();
        if bare == aggregate.group_expr || different.len() < all {
            return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
        }
        let schema = aggregate.schema.clone();
        let below = Aggregate::try_new(aggregate.input.clone(), bare, aggregate.aggr_expr.clone())?;
        let named = below.schema.columns().into_iter().zip(schema.columns());
        let exprs = named
            .map(|(below, above)| match below == above {
                true => Expr::Column(below),
                false => Expr::Column(below).alias_qualified(above.relation, above.name),
            })
            .collect();
        let input = LogicalPlan::Aggregate(below).into();
        let named = Projection::try_new_with_schema(exprs, input, schema)?;
        Ok(Transformed::yes(LogicalPlan::Projection(named)))
    }
}

/// The column behind a name.
fn without_alias(group: &Expr) -> Expr {
    match group {
        Expr::Alias(Alias { expr, .. }) if matches!(**expr, Expr::Column(_)) => (**expr).clone(),
        other => other.clone(),
    }
}
