//! How many rows a plan gives, and how many different values its columns have.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::{Column, JoinType};
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, FetchType, Join, LogicalPlan, Operator, TableScan,
};

use super::share;
use crate::decorrelate::outer::unaliased;
use crate::exec::facts::{Facts, SOME};
use crate::exec::set_returning::values_rows;
use crate::exec::table::{facts_of, given_rows, place_of};

/// Rows of something that nobody can tell anything about.
const UNKNOWN_ROWS: f64 = 1_000.0;

/// How many different values an expression has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    /// In the rows that there are.
    now: f64,
    /// In the table that they come from, before any condition.
    all: f64,
}

/// See the [module documentation](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    pub(super) rows: f64,
    /// Rows before any condition.
    pub(super) before: f64,
    distinct: HashMap<Column, Values>,
    /// The table, when it is one.
    pub(super) table: Option<Arc<Facts>>,
    /// By ordinal, which columns of the table are wanted.
    pub(super) wanted: Vec<bool>,
}

impl Estimate {
    /// So many rows, of which nothing else is known.
    fn of_rows(rows: f64) -> Estimate {
        Estimate { rows, before: rows, ..Estimate::default() }
    }

    /// Different values of an expression.
    pub(super) fn distinct(&self, expr: &Expr) -> f64 {
        self.values(expr).now
    }

    pub(super) fn values(&self, expr: &Expr) -> Values {
        let known = match expr {
            Expr::Column(column) => self.distinct.get(column).copied(),
            Expr::Cast(cast) => return self.values(&cast.expr),
            Expr::Alias(Alias { expr, .. }) => return self.values(expr),
            _ => None,
        };
        let Values { now, all } = known.unwrap_or(Values { now: self.rows, all: self.before });
        let now = now.clamp(1.0, self.rows.max(1.0));
        Values { now, all: all.max(now) }
    }

    /// The same after a part of the rows is gone.
    fn part(mut self, share: f64) -> Estimate {
        let rows = self.rows * share;
        for values in self.distinct.values_mut() {
            values.now = remaining(values.now, self.rows, share);
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

/// The share of rows that have a match among others: those whose key is there at all, and of these
/// those that pass the rest of the condition with one of the rows that have it.
///
/// `keys`: values of each equality, here and there. `others`: the estimate of the others.
pub(super) fn matched(
    keys: impl Iterator<Item = (Values, Values)>,
    before: f64,
    others: &Estimate,
    filter: Option<&Expr>,
) -> f64 {
    let (mut here, mut there, mut now) = (1.0, 1.0, 1.0);
    for (own, other) in keys {
        here *= own.all;
        there *= other.all;
        now *= other.now;
    }
    let now = now.min(others.rows).max(1.0);
    let known = f64::max(f64::min(here, before), f64::min(there, others.before)).max(now);
    let each = others.rows / now;
    let passing = filter.map_or(1.0, |filter| 1.0 - (1.0 - share_of_pair(filter)).powf(each));
    now / known * passing
}

/// The share of pairs with the same key that pass a condition.
fn share_of_pair(filter: &Expr) -> f64 {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            share_of_pair(left) * share_of_pair(right)
        }
        // One of them may be the row itself.
        Expr::BinaryExpr(BinaryExpr { op: Operator::NotEq, .. }) => 0.5,
        _ => SOME,
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
            let distinct = names.map(|(name, expr)| (name, input.values(expr))).collect();
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
            Estimate { rows: groups, before: groups, table: None, ..input_rows }
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
            Estimate::of_rows(inputs.sum())
        }
        LogicalPlan::Join(join) => of_join(join),
        LogicalPlan::Values(values) => Estimate::of_rows(values.values.len() as f64),
        LogicalPlan::Unnest(unnest) => {
            let input = estimate(&unnest.input);
            let rows = input.rows * rows_of_values(&unnest.input);
            Estimate { rows, table: None, ..input }
        }
        LogicalPlan::EmptyRelation(empty) => {
            Estimate::of_rows(f64::from(u8::from(empty.produce_one_row)))
        }
        other => match other.inputs().as_slice() {
            [input] => Estimate { table: None, ..estimate(input) },
            _ => Estimate::of_rows(UNKNOWN_ROWS),
        },
    }
}

/// How many rows VALUES has, if that is what is unnested.
fn rows_of_values(lists: &LogicalPlan) -> f64 {
    let LogicalPlan::Projection(lists) = lists else { return 1.0 };
    let rows = lists.expr.iter().filter_map(|expr| match unaliased(expr) {
        Expr::ScalarFunction(call) => values_rows(&call.func),
        _ => None,
    });
    rows.max().map_or(1.0, |rows| rows as f64)
}

fn of_scan(scan: &TableScan) -> Estimate {
    let (Some(facts), Some(place)) = (facts_of(&scan.source), place_of(&scan.source)) else {
        return Estimate::of_rows(given_rows(&scan.source).map_or(UNKNOWN_ROWS, |n| n as f64));
    };
    let rows = facts.rows().max(1.0);
    let columns = &facts.layout().table.columns;
    let named = scan.projected_schema.columns().into_iter().filter_map(|name| {
        let at = columns.iter().position(|c| c.name == name.name)?;
        let all = facts.distinct(at);
        Some((name, Values { now: all, all }))
    });
    let share = share::of_table(&facts, &place, &scan.filters);
    let distinct = named.collect();
    let filtered = scan.filters.iter().flat_map(Expr::column_refs).map(|c| c.name.clone());
    let given = scan.projected_schema.columns().into_iter().map(|c| c.name);
    let used: HashSet<String> = filtered.chain(given).collect();
    let wanted = columns.iter().map(|c| used.contains(&c.name)).collect();
    let all = Estimate { distinct, wanted, ..Estimate::of_rows(rows) };
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
        Expr::ScalarFunction(call) => share::of_call(call.name()),
        Expr::Not(inner) => 1.0 - share(input, inner),
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
    let grouped = |group: &Expr| {
        let Values { now, all } = input.values(group);
        Values { now: now.min(rows), all }
    };
    let distinct = named.map(|(name, group)| (name, grouped(group))).collect();
    Estimate { distinct, ..Estimate::of_rows(rows) }
}

fn of_join(join: &Join) -> Estimate {
    let (left, right) = (estimate(&join.left), estimate(&join.right));
    match join.join_type {
        JoinType::LeftSemi | JoinType::LeftAnti => {
            let keys = join.on.iter().map(|(l, r)| (left.values(l), right.values(r)));
            let share = matched(keys, left.before, &right, join.filter.as_ref());
            return left.part(passing(share, join.join_type == JoinType::LeftAnti));
        }
        JoinType::RightSemi | JoinType::RightAnti => {
            let keys = join.on.iter().map(|(l, r)| (right.values(r), left.values(l)));
            let share = matched(keys, right.before, &left, join.filter.as_ref());
            return right.part(passing(share, join.join_type == JoinType::RightAnti));
        }
        JoinType::LeftMark => return left,
        JoinType::RightMark => return right,
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {}
    }
    let pairs: Vec<(f64, f64)> =
        join.on.iter().map(|(l, r)| (left.distinct(l), right.distinct(r))).collect();
    let keys = |side: fn(&(f64, f64)) -> f64, rows: f64| -> f64 {
        pairs.iter().map(side).product::<f64>().min(rows).max(1.0)
    };
    let (left_keys, right_keys) = (keys(|p| p.0, left.rows), keys(|p| p.1, right.rows));
    let filtered = if join.filter.is_some() { SOME } else { 1.0 };
    let inner = left.rows * right.rows / left_keys.max(right_keys) * filtered;
    let mut distinct = left.distinct;
    distinct.extend(right.distinct);
    let rows = match join.join_type {
        JoinType::Left => inner.max(left.rows),
        JoinType::Right => inner.max(right.rows),
        JoinType::Full => inner.max(left.rows + right.rows),
        _ => inner,
    };
    let before = left.before.max(right.before).max(rows);
    Estimate { before, distinct, ..Estimate::of_rows(rows) }
}

/// The share of rows that go on behind a semi or anti join, if such a share has a match.
pub(super) fn passing(matched: f64, anti: bool) -> f64 {
    // An estimate of nothing hides all that follows.
    if anti { (1.0 - matched).max(0.05) } else { matched.min(1.0) }
}
