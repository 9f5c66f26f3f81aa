//! The share of a table's rows that pass its filters.

use std::collections::HashMap;
use std::ops::Bound;

use braid_types::{Datum, SqlType};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::exec::facts::{Facts, Range, SOME};
use crate::exec::key_conditions::value_of;

/// Never less than this: an estimate of nothing hides all that follows.
const LEAST: f64 = 1e-7;

/// The share of a table's rows that pass all filters.
pub(crate) fn of_table(facts: &Facts, filters: &[Expr]) -> f64 {
    let mut ranges: HashMap<usize, Range> = HashMap::new();
    let mut share = 1.0;
    for filter in filters {
        share *= part(facts, filter, &mut ranges);
    }
    for (ordinal, range) in ranges {
        share *= facts.share_between(ordinal, &range);
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
    column(facts, expr).map_or(SOME, |at| facts.share_of_nulls(at))
}

fn comparison(
    facts: &Facts,
    column: usize,
    op: Operator,
    value: &Expr,
    ranges: &mut HashMap<usize, Range>,
) -> f64 {
    let known = || known(facts, column, value);
    match op {
        Operator::Eq | Operator::IsNotDistinctFrom => return equal(facts, column, value),
        Operator::NotEq | Operator::IsDistinctFrom => return 1.0 - equal(facts, column, value),
        Operator::Gt => ranges.entry(column).or_default().low = Bound::Excluded(known()),
        Operator::GtEq => ranges.entry(column).or_default().low = Bound::Included(known()),
        Operator::Lt => ranges.entry(column).or_default().high = Bound::Excluded(known()),
        Operator::LtEq => ranges.entry(column).or_default().high = Bound::Included(known()),
        _ => return SOME,
    }
    1.0
}

fn equal(facts: &Facts, column: usize, value: &Expr) -> f64 {
    facts.share_equal(column, known(facts, column, value).as_ref())
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
