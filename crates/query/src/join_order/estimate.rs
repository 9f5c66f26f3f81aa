//! How many rows a plan gives, and how many different values its columns have.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{Column, JoinType};
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, FetchType, Join, LogicalPlan, Operator, TableScan,
};

use super::share;
use crate::exec::facts::{Facts, LIKE, SOME};
use crate::exec::table::facts_of;

/// Rows of something that nobody can tell anything about.
const UNKNOWN_ROWS: f64 = 1_000.0;

/// See the [module documentation](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    pub(super) rows: f64,
    distinct: HashMap<Column, f64>,
    /// Rows of the table before any condition, when it is one.
    pub(super) table: Option<Arc<Facts>>,
}

impl Estimate {
    /// Different values of an expression.
    pub(super) fn distinct(&self, expr: &Expr) -> f64 {
        let known = match expr {
            Expr::Column(column) => self.distinct.get(column).copied(),
            Expr::Cast(cast) => return self.distinct(&cast.expr),
            Expr::Alias(Alias { expr, .. }) => return self.distinct(expr),
            _ => None,
        };
        known.unwrap_or(self.rows).clamp(1.0, self.rows.max(1.0))
    }

    /// The same after a part of the rows is gone.
    fn part(mut self, share: f64) -> Estimate {
        let rows = self.rows * share;
        for distinct in self.distinct.values_mut() {
            *distinct = remaining(*distinct, self.rows, share);
        }
        self.rows = rows;
        self
    }

    /// The same columns under other names.
    fn renamed(self, from: &LogicalPlan, to: &LogicalPlan) -> Estimate {
        let names = from.schema().columns().into_iter().zip(to.schema().columns());
        let distinct = names.filter_map(|(from, to)| Some((to, *self.distinct.get(&from)?)));
        Estimate { distinct: distinct.collect(), ..self }
    }
}

/// How many of the different values in some rows are left in a share of them that was drawn by
/// chance (Yao, *Approximating block accesses in database organizations*, 1977, with replacement).
fn remaining(distinct: f64, rows: f64, share: f64) -> f64 {
    if distinct <= 0.0 || rows <= 0.0 {
        return distinct;
    }
    (distinct * (1.0 - (1.0 - share.min(1.0)).powf(rows / distinct))).max(1.0)
}

/// How many rows a plan gives, about.
pub(crate) fn rows_expected(plan: &LogicalPlan) -> f64 {
    estimate(plan).rows
}

/// The estimate of a plan.
pub(super) fn estimate(plan: &LogicalPlan) -> Estimate {
    match plan {
        LogicalPlan::TableScan(scan) => of_scan(scan),
        LogicalPlan::Projection(projection) => {
            let input = estimate(&projection.input);
            let names = plan.schema().columns().into_iter().zip(&projection.expr);
            let distinct = names.map(|(name, expr)| (name, input.distinct(expr))).collect();
            Estimate { distinct, ..input }
        }
        LogicalPlan::Filter(filter) => {
            let input = estimate(&filter.input);
            let share = share(&input, &filter.predicate);
            Estimate { table: None, ..input.part(share) }
        }
        LogicalPlan::SubqueryAlias(alias) => estimate(&alias.input).renamed(&alias.input, plan),
        LogicalPlan::Aggregate(aggregate) => of_aggregate(aggregate, plan),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let input_rows = estimate(input);
            let columns = input.schema().columns().into_iter().map(Expr::Column);
            let groups = groups(&input_rows, columns);
            Estimate { rows: groups, table: None, ..input_rows }
        }
        LogicalPlan::Limit(limit) => {
            let input = estimate(&limit.input);
            match limit.get_fetch_type() {
                Ok(FetchType::Literal(Some(n))) => {
                    Estimate { rows: input.rows.min(n as f64), table: None, ..input }
                }
                _ => input,
            }
        }
        LogicalPlan::Union(union) => {
            let inputs = union.inputs.iter().map(|input| estimate(input).rows);
            Estimate { rows: inputs.sum(), ..Estimate::default() }
        }
        LogicalPlan::Join(join) => of_join(join),
        LogicalPlan::Values(values) => {
            Estimate { rows: values.values.len() as f64, ..Estimate::default() }
        }
        LogicalPlan::EmptyRelation(empty) => {
            Estimate { rows: f64::from(u8::from(empty.produce_one_row)), ..Estimate::default() }
        }
        other => match other.inputs().as_slice() {
            [input] => Estimate { table: None, ..estimate(input) },
            _ => Estimate { rows: UNKNOWN_ROWS, ..Estimate::default() },
        },
    }
}

fn of_scan(scan: &TableScan) -> Estimate {
    let Some(facts) = facts_of(&scan.source) else {
        return Estimate { rows: UNKNOWN_ROWS, ..Estimate::default() };
    };
    let rows = facts.rows().max(1.0);
    let columns = &facts.layout().table.columns;
    let named = scan.projected_schema.columns().into_iter().filter_map(|name| {
        let at = columns.iter().position(|c| c.name == name.name)?;
        Some((name, facts.distinct(at)))
    });
    let share = share::of_table(&facts, &scan.filters);
    let distinct = named.collect();
    let all = Estimate { rows, distinct, table: None };
    Estimate { table: Some(facts), ..all.part(share) }
}

/// The share of rows that pass a condition over columns of any plan.
pub(super) fn share(input: &Estimate, predicate: &Expr) -> f64 {
    match predicate {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => share(input, left) * share(input, right),
            Operator::Or => {
                let (a, b) = (share(input, left), share(input, right));
                a + b - a * b
            }
            Operator::Eq => 1.0 / input.distinct(left).min(input.distinct(right)).max(1.0),
            _ => SOME,
        },
        Expr::ScalarFunction(call) => share_of_call(call.name()),
        Expr::Not(inner) => 1.0 - share(input, inner),
        _ => SOME,
    }
}

/// The share that passes one of our functions, by what it is called.
fn share_of_call(name: &str) -> f64 {
    match (name.contains("!~~"), name.contains("~~")) {
        (true, _) => 1.0 - LIKE,
        (false, true) => LIKE,
        _ => SOME,
    }
}

/// Different combinations of some columns' values.
fn groups(input: &Estimate, columns: impl Iterator<Item = Expr>) -> f64 {
    let all: f64 = columns.map(|column| input.distinct(&column)).product();
    all.min(input.rows).max(1.0)
}

fn of_aggregate(aggregate: &Aggregate, plan: &LogicalPlan) -> Estimate {
    let input = estimate(&aggregate.input);
    let rows = match aggregate.group_expr.is_empty() {
        true => 1.0,
        false => groups(&input, aggregate.group_expr.iter().cloned()),
    };
    let named = plan.schema().columns().into_iter().zip(&aggregate.group_expr);
    let distinct = named.map(|(name, group)| (name, input.distinct(group).min(rows))).collect();
    Estimate { rows, distinct, table: None }
}

fn of_join(join: &Join) -> Estimate {
    let (left, right) = (estimate(&join.left), estimate(&join.right));
    let pairs: Vec<(f64, f64)> =
        join.on.iter().map(|(l, r)| (left.distinct(l), right.distinct(r))).collect();
    let keys = |side: fn(&(f64, f64)) -> f64, rows: f64| -> f64 {
        pairs.iter().map(side).product::<f64>().min(rows).max(1.0)
    };
    let (left_keys, right_keys) = (keys(|p| p.0, left.rows), keys(|p| p.1, right.rows));
    let filtered = if join.filter.is_some() { SOME } else { 1.0 };
    let inner = left.rows * right.rows / left_keys.max(right_keys) * filtered;
    // Rows of a side that meet one of the other.
    let met = |own: f64, other: f64| (other / own.max(1.0)).min(1.0) * filtered.max(0.5);
    let unmet = |own: f64, other: f64| (1.0 - met(own, other)).max(0.1);
    let mut distinct = left.distinct.clone();
    distinct.extend(right.distinct.clone());
    match join.join_type {
        JoinType::LeftSemi => left.part(met(left_keys, right_keys)),
        JoinType::LeftAnti => left.part(unmet(left_keys, right_keys)),
        JoinType::RightSemi => right.part(met(right_keys, left_keys)),
        JoinType::RightAnti => right.part(unmet(right_keys, left_keys)),
        JoinType::LeftMark => left,
        JoinType::RightMark => right,
        JoinType::Inner => Estimate { rows: inner, distinct, table: None },
        JoinType::Left => Estimate { rows: inner.max(left.rows), distinct, table: None },
        JoinType::Right => Estimate { rows: inner.max(right.rows), distinct, table: None },
        JoinType::Full => {
            Estimate { rows: inner.max(left.rows + right.rows), distinct, table: None }
        }
    }
}
