//! The share of a table's rows that pass its filters.
//!
//! What a filter compares a column with is a literal, or a constant of the execution: plans are
//! made while their first execution has begun, so its values are known. Later ones ask whether
//! theirs promise about as many rows ([`Spec::rows_expected`](crate::exec)), and are planned anew
//! if not.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use braid_types::{Datum, SqlType};
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::arrow_form;
use crate::exec::constant;
use crate::exec::execution::Place;
use crate::exec::facts::{Facts, LIKE, Range, SOME};
use crate::exec::key_conditions::value_of;

/// Never less than this: an estimate of nothing hides all that follows.
const LEAST: f64 = 1e-7;

/// The share that passes one of our functions, by what it is called.
pub(super) fn of_call(name: &str) -> f64 {
    match (name.contains("!~~"), name.contains("~~")) {
        (true, _) => 1.0 - LIKE,
        (false, true) => LIKE,
        _ => SOME,
    }
}

/// A table whose filters have values.
#[derive(Clone, Copy)]
struct Filtered<'a> {
    facts: &'a Facts,
    place: &'a Arc<Place>,
}

/// The share of a table's rows that pass all filters, with the values of the execution that has
/// begun at this place.
pub(crate) fn of_table(facts: &Facts, place: &Arc<Place>, filters: &[Expr]) -> f64 {
    Filtered { facts, place }.all(filters)
}

impl Filtered<'_> {
    fn all(self, filters: &[Expr]) -> f64 {
        let mut ranges: HashMap<usize, Range> = HashMap::new();
        let mut share = 1.0;
        for filter in filters {
            share *= self.part(filter, &mut ranges);
        }
        for (ordinal, range) in ranges {
            share *= self.facts.share_between(ordinal, &range);
        }
        share.clamp(LEAST, 1.0)
    }

    /// The share that passes a filter; ranges of columns are noted and count 1.
    fn part(self, filter: &Expr, ranges: &mut HashMap<usize, Range>) -> f64 {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                self.part(left, ranges) * self.part(right, ranges)
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                let (a, b) = (self.whole(left), self.whole(right));
                a + b - a * b
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (column, op, value) = match (self.column(left), self.column(right)) {
                    (Some(column), None) => (column, *op, right),
                    (None, Some(column)) => (column, op.swap().unwrap_or(*op), left),
                    (Some(a), Some(b)) if *op == Operator::Eq => {
                        return 1.0 / self.facts.distinct(a).max(self.facts.distinct(b));
                    }
                    _ => return SOME,
                };
                self.comparison(column, op, value, ranges)
            }
            Expr::InList(InList { expr, list, negated }) => {
                let Some(column) = self.column(expr) else { return SOME };
                let each = list.iter().map(|value| self.equal(column, value));
                let any = each.sum::<f64>().min(1.0);
                if *negated { 1.0 - any } else { any }
            }
            Expr::Between(Between { expr, negated: false, low, high }) => {
                let Some(column) = self.column(expr) else { return SOME };
                self.comparison(column, Operator::GtEq, low, ranges)
                    * self.comparison(column, Operator::LtEq, high, ranges)
            }
            Expr::Not(inner) => 1.0 - self.whole(inner),
            Expr::IsNull(inner) => self.nulls(inner),
            Expr::IsNotNull(inner) => 1.0 - self.nulls(inner),
            Expr::ScalarFunction(call) => of_call(call.name()),
            _ => SOME,
        }
    }

    /// The share that passes a filter by itself.
    fn whole(self, filter: &Expr) -> f64 {
        self.all(std::slice::from_ref(filter))
    }

    fn nulls(self, expr: &Expr) -> f64 {
        self.column(expr).map_or(SOME, |at| self.facts.share_of_nulls(at))
    }

    fn comparison(
        self,
        column: usize,
        op: Operator,
        value: &Expr,
        ranges: &mut HashMap<usize, Range>,
    ) -> f64 {
        let known = || self.known(column, value);
        match op {
            Operator::Eq | Operator::IsNotDistinctFrom => return self.equal(column, value),
            Operator::NotEq | Operator::IsDistinctFrom => return 1.0 - self.equal(column, value),
            Operator::Gt => ranges.entry(column).or_default().low = Bound::Excluded(known()),
            Operator::GtEq => ranges.entry(column).or_default().low = Bound::Included(known()),
            Operator::Lt => ranges.entry(column).or_default().high = Bound::Excluded(known()),
            Operator::LtEq => ranges.entry(column).or_default().high = Bound::Included(known()),
            _ => return SOME,
        }
        1.0
    }

    fn equal(self, column: usize, value: &Expr) -> f64 {
        self.facts.share_equal(column, self.known(column, value).as_ref())
    }

    fn known(self, column: usize, value: &Expr) -> Option<Datum> {
        let ty: &SqlType = &self.facts.layout().table.columns[column].ty;
        match value {
            Expr::Literal(value, _) => value_of(value, ty),
            Expr::Cast(cast) => self.known(column, &cast.expr),
            other => {
                let at = constant::number(other)?;
                let held = self.place.constant_type(at)?;
                let value = self.place.constant(at).ok()?;
                value_of(&arrow_form::scalar(&value, &held), ty)
            }
        }
    }

    /// The table's column that an expression is, perhaps widened.
    fn column(self, expr: &Expr) -> Option<usize> {
        let columns = &self.facts.layout().table.columns;
        match expr {
            Expr::Column(c) => columns.iter().position(|own| own.name == c.name),
            Expr::Cast(cast) => self.column(&cast.expr),
            _ => None,
        }
    }
}
