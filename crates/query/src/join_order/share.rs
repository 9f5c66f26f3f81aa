//! The share of a table's rows that pass its filters.

use std::collections::HashMap;
use std::ops::Bound;

use braid_types::{Datum, SqlType};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::exec::facts::Facts;
use crate::exec::key_conditions::value_of;

/// Share of rows that pass a condition about which nothing is known.
pub(super) const SOME: f64 = 0.3;
/// The same for a pattern.
pub(super) const LIKE: f64 = 0.05;
/// The same for an equality.
const ONE_OF_MANY: f64 = 0.005;
/// The same for one end of a range.
const HALF_OPEN: f64 = 1.0 / 3.0;
/// Never less than this: an estimate of nothing hides all that follows.
const LEAST: f64 = 1e-7;

/// Bounds on one column.
#[derive(Clone)]
struct Range {
    low: Bound<Option<Datum>>,
    high: Bound<Option<Datum>>,
}

/// The share of a table's rows that pass all filters.
pub(super) fn of_table(facts: &Facts, filters: &[Expr]) -> f64 {
    let mut ranges: HashMap<usize, Range> = HashMap::new();
    let mut share = 1.0;
    for filter in filters {
        share *= part(facts, filter, &mut ranges);
    }
    for (ordinal, range) in ranges {
        share *= between(facts, ordinal, &range);
    }
    share.clamp(LEAST, 1.0)
}

/// The share that passes a filter; ranges of columns are noted and count 1.
fn part(facts: &Facts, filter: &Expr, ranges: &mut HashMap<usize, Range>) -> f64 {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            part(facts, left, ranges) * part(facts, right, ranges)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (a, b) = (whole(facts, left), whole(facts, right));
            a + b - a * b
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (column, op, value) = match (column(facts, left), column(facts, right)) {
                (Some(column), None) => (column, *op, right),
                (None, Some(column)) => (column, op.swap().unwrap_or(*op), left),
                (Some(a), Some(b)) if *op == Operator::Eq => {
                    return 1.0 / facts.distinct(a).max(facts.distinct(b));
                }
                _ => return SOME,
            };
            comparison(facts, column, op, value, ranges)
        }
        Expr::InList(InList { expr, list, negated }) => {
            let Some(column) = column(facts, expr) else { return SOME };
            let each = list.iter().map(|value| equal(facts, column, value));
            let any = each.sum::<f64>().min(1.0);
            if *negated { 1.0 - any } else { any }
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let Some(column) = column(facts, expr) else { return SOME };
            comparison(facts, column, Operator::GtEq, low, ranges)
                * comparison(facts, column, Operator::LtEq, high, ranges)
        }
        Expr::Not(inner) => 1.0 - whole(facts, inner),
        Expr::IsNull(inner) => nulls(facts, inner),
        Expr::IsNotNull(inner) => 1.0 - nulls(facts, inner),
        _ => SOME,
    }
}

/// The share that passes a filter by itself.
fn whole(facts: &Facts, filter: &Expr) -> f64 {
    of_table(facts, std::slice::from_ref(filter))
}

fn nulls(facts: &Facts, expr: &Expr) -> f64 {
    let known = column(facts, expr).and_then(|at| facts.statistics()?.column(at));
    known.map_or(ONE_OF_MANY, |c| c.null_fraction)
}

fn comparison(
    facts: &Facts,
    column: usize,
    op: Operator,
    value: &Expr,
    ranges: &mut HashMap<usize, Range>,
) -> f64 {
    let known = || known(facts, column, value);
    let open = Range { low: Bound::Unbounded, high: Bound::Unbounded };
    match op {
        Operator::Eq | Operator::IsNotDistinctFrom => return equal(facts, column, value),
        Operator::NotEq | Operator::IsDistinctFrom => return 1.0 - equal(facts, column, value),
        Operator::Gt => ranges.entry(column).or_insert(open).low = Bound::Excluded(known()),
        Operator::GtEq => ranges.entry(column).or_insert(open).low = Bound::Included(known()),
        Operator::Lt => ranges.entry(column).or_insert(open).high = Bound::Excluded(known()),
        Operator::LtEq => ranges.entry(column).or_insert(open).high = Bound::Included(known()),
        _ => return SOME,
    }
    1.0
}

fn equal(facts: &Facts, column: usize, value: &Expr) -> f64 {
    let statistics = facts.statistics().and_then(|s| s.column(column));
    match (statistics, known(facts, column, value)) {
        (Some(column), Some(value)) => column.fraction_equal(&value),
        (Some(column), None) => column.fraction_of_equal_unknown(),
        (None, _) => 1.0 / facts.distinct(column),
    }
}

fn between(facts: &Facts, column: usize, range: &Range) -> f64 {
    let edge = |b: &Bound<Option<Datum>>| !matches!(b, Bound::Unbounded);
    let ends = i32::from(edge(&range.low)) + i32::from(edge(&range.high));
    let unknown = if ends == 2 { ONE_OF_MANY * 5.0 } else { HALF_OPEN };
    let statistics = facts.statistics().and_then(|s| s.column(column));
    let (Some(statistics), Some(low), Some(high)) =
        (statistics, value_at(&range.low), value_at(&range.high))
    else {
        return unknown;
    };
    statistics.fraction_between(low, high)
}

/// A bound with its value; `None` if that is not known.
fn value_at(bound: &Bound<Option<Datum>>) -> Option<Bound<&Datum>> {
    Some(match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(value) => Bound::Included(value.as_ref()?),
        Bound::Excluded(value) => Bound::Excluded(value.as_ref()?),
    })
}

fn known(facts: &Facts, column: usize, value: &Expr) -> Option<Datum> {
    let ty: &SqlType = &facts.layout().table.columns[column].ty;
    match value {
        Expr::Literal(value, _) => value_of(value, ty),
        Expr::Cast(cast) => known(facts, column, &cast.expr),
        _ => None,
    }
}

/// The table's column that an expression is, perhaps widened.
fn column(facts: &Facts, expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Column(c) => facts.layout().table.columns.iter().position(|own| own.name == c.name),
        Expr::Cast(cast) => column(facts, &cast.expr),
        _ => None,
    }
}
