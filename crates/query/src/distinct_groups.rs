//! Aggregates of distinct values, as groups of groups.
//!
//! ```text
//!   Aggregate  groups: [g]  count(DISTINCT x)      Aggregate  groups: [g]  count(x)
//!     Scan t                                  ──►    Aggregate  groups: [g, x]
//!                                                      Scan t
//! ```
//! Groups go to disk when memory is short; a set of values in the state of an aggregate cannot, and
//! travels as a whole from one operator to the next.
//!
//! It is done where all distinct aggregates of a node are of one argument, and the others can be
//! told from their parts: `count`, and those that are their own (`min`, `max`). Aggregates that
//! show the order of what they are given stay as they are.

use std::sync::Arc;

use braid_types::SqlType;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::sum::sum;
use datafusion::logical_expr::expr::{AggregateFunction, Alias};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, ExprSchemable, LogicalPlan, Projection, lit,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::arrow_form::is_native;
use crate::exec::aggregate::{Parts, parts};
use crate::exec::scalar::sortable;

/// The column of the lower level with the values that count once.
const VALUE: &str = "distinct value";

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct DistinctGroups;

impl OptimizerRule for DistinctGroups {
    fn name(&self) -> &str {
        "distinct_groups"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(node) = &plan else { return Ok(Transformed::no(plan)) };
        let is_set = |group: &Expr| matches!(group, Expr::GroupingSet(_));
        if node.group_expr.iter().any(is_set) {
            return Ok(Transformed::no(plan));
        }
        let mut levels = Levels::default();
        for expr in &node.aggr_expr {
            if !levels.take(expr) {
                return Ok(Transformed::no(plan));
            }
        }
        match levels.distinct.take() {
            None => Ok(Transformed::no(plan)),
            Some(distinct) => Ok(Transformed::yes(levels.plan(node, distinct)?)),
        }
    }
}

/// The argument of all distinct aggregates.
struct Distinct {
    value: Expr,
    ty: SqlType,
    /// The aggregate that keeps the first value of a group.
    first: Arc<AggregateUDF>,
}

/// Aggregates of both levels.
#[derive(Default)]
struct Levels {
    distinct: Option<Distinct>,
    /// Those of the lower level, named.
    lower: Vec<Expr>,
    /// Those of the upper level, in the order of the node's, and whether NULL stands for 0.
    upper: Vec<(Expr, bool)>,
}

impl Levels {
    /// Takes one aggregate apart; false if that cannot be done.
    fn take(&mut self, expr: &Expr) -> bool {
        let Expr::AggregateFunction(call) = without_alias(expr) else { return false };
        let Some(parts) = parts(&call.func) else { return false };
        let (upper, counts) = match parts {
            Parts::Distinct { all, first, ty } => {
                let [value] = call.params.args.as_slice() else { return false };
                let known = self.distinct.as_ref();
                let other = known.is_some_and(|d| d.value != *value);
                // A value may have to be computed twice: for its key, and as itself.
                if call.params.filter.is_some() || other || value.is_volatile() {
                    return false;
                }
                let value = value.clone();
                self.distinct = Some(Distinct { value, ty, first });
                (call_of(all, column(VALUE)), false)
            }
            Parts::Itself => (call_of(call.func.clone(), self.part(call)), false),
            Parts::Sum => (sum(self.part(call)), true),
        };
        self.upper.push((upper, counts));
        true
    }

    /// The column with an aggregate's result of each group of the lower level.
    fn part(&mut self, call: &AggregateFunction) -> Expr {
        let name = format!("part {}", self.lower.len());
        self.lower.push(Expr::AggregateFunction(call.clone()).alias(&name));
        column(&name)
    }

    fn plan(mut self, node: &Aggregate, distinct: Distinct) -> Result<LogicalPlan> {
        let Distinct { value, ty, first } = distinct;
        let name = |at: usize| format!("group {at}");
        let named = |(at, group): (usize, &Expr)| without_alias(group).clone().alias(name(at));
        let mut groups: Vec<Expr> = node.group_expr.iter().enumerate().map(named).collect();
        let decimal = matches!(value.get_type(node.input.schema())?, DataType::Decimal128(..));
        if decimal || is_native(&ty) {
            groups.push(value.alias(VALUE));
        } else {
            groups.push(sortable(value.clone(), &ty).alias("distinct key"));
            // Of equal values one is as good as the other.
            self.lower.push(call_of(first, value).alias(VALUE));
        }
        let lower = Aggregate::try_new(node.input.clone(), groups, self.lower)?;

        let groups = (0..node.group_expr.len()).map(|at| column(&name(at))).collect();
        // Two may be the same but for how they are written.
        let named =
            |(at, (expr, _)): (usize, &(Expr, bool))| expr.clone().alias(format!("all {at}"));
        let upper = self.upper.iter().enumerate().map(named).collect();
        let upper = Aggregate::try_new(LogicalPlan::Aggregate(lower).into(), groups, upper)?;

        let counts = std::iter::repeat_n(false, node.group_expr.len());
        let counts = counts.chain(self.upper.iter().map(|(_, counts)| *counts));
        let columns = upper.schema.columns().into_iter().zip(node.schema.columns()).zip(counts);
        let exprs = columns.map(|((below, above), counts)| {
            let below = Expr::Column(below);
            // No group at all below a node without groups: nothing was counted.
            let result = if counts { coalesce(vec![below, lit(0_i64)]) } else { below };
            result.alias_qualified(above.relation, above.name)
        });
        let (exprs, input) = (exprs.collect(), LogicalPlan::Aggregate(upper).into());
        Ok(LogicalPlan::Projection(Projection::try_new_with_schema(
            exprs,
            input,
            node.schema.clone(),
        )?))
    }
}

fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn call_of(function: Arc<AggregateUDF>, arg: Expr) -> Expr {
    let call = AggregateFunction::new_udf(function, vec![arg], false, None, Vec::new(), None);
    Expr::AggregateFunction(call)
}

fn without_alias(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(Alias { expr, .. }) => without_alias(expr),
        other => other,
    }
}
