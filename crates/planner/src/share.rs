//! The share of a table's rows that pass conditions of our own plans.
//!
//! Conditions are taken as independent of each other, but for the bounds on one column, which are a
//! range. General plans do the same with DataFusion's expressions; what a column's statistics say
//! is with [`Facts`].

use std::collections::HashMap;
use std::ops::Bound as Limit;

use braid_scalar::{Bound, CmpOp, EvalContext, Node, Volatility};
use braid_types::Datum;

use crate::facts::{Facts, LIKE, Range, SOME};

/// Never less than this: an estimate of nothing hides all that follows.
const LEAST: f64 = 1e-7;

/// What conditions are estimated with.
#[derive(Clone, Copy)]
pub struct Estimator<'a> {
    /// About the table.
    pub facts: &'a Facts,
    /// Values of parameters and the clock, as far as they are known.
    pub eval: Option<&'a EvalContext>,
    /// Ordinal of the table's first column in the conditions.
    pub offset: usize,
}

type Ranges = HashMap<usize, Range>;

impl Estimator<'_> {
    /// The share of rows that pass all conditions.
    pub fn share(&self, conditions: &[Bound]) -> f64 {
        let mut ranges = Ranges::new();
        let parts = conditions.iter().map(|condition| self.part(condition, &mut ranges));
        let others: f64 = parts.product();
        let within = ranges.iter().map(|(at, range)| self.facts.share_between(*at, range));
        (others * within.product::<f64>()).clamp(LEAST, 1.0)
    }

    /// The share that passes one condition; bounds are noted and count 1.
    fn part(&self, condition: &Bound, ranges: &mut Ranges) -> f64 {
        match condition.node() {
            Node::And(parts) => parts.iter().map(|part| self.part(part, ranges)).product(),
            Node::Or(parts) => {
                let misses = parts.iter().map(|part| 1.0 - self.alone(part));
                1.0 - misses.product::<f64>()
            }
            Node::Not(inner) => 1.0 - self.alone(inner),
            Node::Const(value) => f64::from(u8::from(matches!(value, Datum::Bool(true)))),
            Node::Compare(op, a, b) => match (self.column(a), self.column(b)) {
                (Some(column), None) => self.comparison(column, *op, b, ranges),
                (None, Some(column)) => self.comparison(column, op.flipped(), a, ranges),
                (Some(a), Some(b)) if *op == CmpOp::Eq => {
                    1.0 / self.facts.distinct(a).max(self.facts.distinct(b))
                }
                _ => SOME,
            },
            Node::InList(needle, list, negated) => {
                let Some(column) = self.column(needle) else { return SOME };
                let any = self.any_of(column, list);
                if *negated { 1.0 - any } else { any }
            }
            Node::IsNull(inner, negated) => {
                let nulls = self.column(inner).map_or(SOME, |at| self.facts.share_of_nulls(at));
                if *negated { 1.0 - nulls } else { nulls }
            }
            Node::Call(function, _) if function.name.contains("!~~") => 1.0 - LIKE,
            Node::Call(function, _) if function.name.contains("~~") => LIKE,
            _ => SOME,
        }
    }

    fn alone(&self, condition: &Bound) -> f64 {
        self.share(std::slice::from_ref(condition))
    }

    fn comparison(&self, column: usize, op: CmpOp, value: &Bound, ranges: &mut Ranges) -> f64 {
        let equal = |value: &Bound| self.any_of(column, std::slice::from_ref(value));
        match op {
            CmpOp::Eq => return equal(value),
            CmpOp::Ne => return 1.0 - equal(value),
            _ => {}
        }
        let (known, range) = (self.value(value), ranges.entry(column).or_default());
        match op {
            CmpOp::Gt => range.low = Limit::Excluded(known),
            CmpOp::Ge => range.low = Limit::Included(known),
            CmpOp::Lt => range.high = Limit::Excluded(known),
            _ => range.high = Limit::Included(known),
        }
        1.0
    }

    /// The share of rows with one of these values.
    pub(crate) fn any_of(&self, column: usize, values: &[Bound]) -> f64 {
        let each = values.iter().map(|v| self.facts.share_equal(column, self.value(v).as_ref()));
        each.sum::<f64>().min(1.0)
    }

    /// The value of an expression, if it can be told now.
    pub fn value(&self, expr: &Bound) -> Option<Datum> {
        if let Some(value) = expr.as_const() {
            return Some(value.clone());
        }
        // Volatile functions have effects.
        let told = expr.volatility() < Volatility::Volatile && expr.columns().is_empty();
        expr.eval(&[], self.eval.filter(|_| told)?).ok()
    }

    /// The table's column that an expression is.
    fn column(&self, expr: &Bound) -> Option<usize> {
        let at = expr.as_column()?.checked_sub(self.offset)?;
        (at < self.facts.layout().table.columns.len()).then_some(at)
    }
}
