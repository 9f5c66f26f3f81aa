//! What an aggregate is to a plan.

use std::cmp::Ordering;
use std::fmt;

use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType, numeric};
use numeric::BigDecimal;
use sqlparser::ast::OrderByOptions;

use crate::EvalContext;
use crate::functions::i64_of;

/// The state of an aggregate over one group.
pub trait Accumulator: fmt::Debug + Send + Sync {
    /// Takes one row of arguments.
    ///
    /// # Errors
    /// 22003, 22008 when the state overflows.
    fn update(&mut self, args: &[Datum]) -> SqlResult<()>;

    /// Takes so many rows of the same arguments.
    ///
    /// # Errors
    /// As [`Accumulator::update`].
    fn update_many(&mut self, args: &[Datum], rows: usize) -> SqlResult<()> {
        (0..rows).try_for_each(|_| self.update(args))
    }

    /// Takes so many integers, none of them NULL, of which it knows no more than their sum; `false`
    /// if it has to see each of them, and has taken none.
    fn update_integers(&mut self, _sum: i128, _number: usize) -> bool {
        false
    }

    /// The aggregate of what was taken so far.
    ///
    /// # Errors
    /// 22003 when the result does not fit its type.
    fn finish(&self, ctx: &EvalContext) -> SqlResult<Datum>;

    /// The state as values, for [`Accumulator::merge`].
    fn parts(&self) -> Vec<Datum>;

    /// Adds the state of another.
    ///
    /// # Errors
    /// As [`Accumulator::update`].
    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()>;

    /// Whether each row makes the state larger.
    fn keeps_rows(&self) -> bool {
        false
    }

    /// How many times the memory of the rows that are kept [`Accumulator::finish`] needs beside
    /// them, its value included. Nobody can count while it runs, so plans set this aside before.
    fn copies_at_end(&self) -> usize {
        0
    }
}

/// The types that a call was resolved to.
#[derive(Clone, Copy, Debug)]
pub struct AggregateTypes<'a> {
    /// Of the arguments.
    pub args: &'a [SqlType],
    /// Of the result.
    pub ret: &'a SqlType,
    /// The keys of WITHIN GROUP, which are the last arguments.
    pub sorted: &'a [OrderKey],
}

/// How a key sorts.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderKey {
    /// DESC.
    pub desc: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
}

impl OrderKey {
    /// As ORDER BY says: NULLs are larger than all else unless it says where they are.
    pub fn of(options: &OrderByOptions) -> OrderKey {
        let desc = options.asc == Some(false);
        OrderKey { desc, nulls_first: options.nulls_first.unwrap_or(desc) }
    }

    /// The order of two values of the key.
    pub fn compare(self, a: &Datum, b: &Datum) -> Ordering {
        match (a.is_null(), b.is_null()) {
            (false, false) if self.desc => b.cmp_sql(a),
            (false, false) => a.cmp_sql(b),
            (a, b) if self.nulls_first => b.cmp(&a),
            (a, b) => a.cmp(&b),
        }
    }
}

/// The arguments in front of WITHIN GROUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direct {
    /// So many.
    Count(usize),
    /// One for each key.
    AsKeys,
}

impl AggregateTypes<'_> {
    pub(super) fn element(&self) -> SqlType {
        self.ret.element().cloned().unwrap_or(SqlType::Text)
    }
}

/// What the registry knows of an aggregate beside its signature.
#[derive(Clone, Copy)]
pub struct AggregateCode {
    /// Makes the state of an empty group.
    pub start: fn(AggregateTypes<'_>) -> Box<dyn Accumulator>,
    /// Whether another order of the rows may give another value.
    pub by_order: bool,
    /// Called with WITHIN GROUP behind these.
    pub within_group: Option<Direct>,
    /// The value is the first that is not NULL when rows are sorted by it; `true`: the last.
    pub extreme: Option<bool>,
}

pub(super) fn float_overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

pub(super) fn zero() -> BigDecimal {
    numeric::from_i128(0)
}

pub(super) fn exact(value: &Datum) -> Option<BigDecimal> {
    match value {
        Datum::Numeric(v) => Some((**v).clone()),
        Datum::NumericNan | Datum::NumericInf(_) => None,
        other => Some(numeric::from_i128(i64_of(other).into())),
    }
}

/// A number among the parts of a state.
pub(super) fn part(parts: &[Datum], at: usize) -> BigDecimal {
    parts.get(at).and_then(exact).unwrap_or_else(zero)
}

/// A count among the parts of a state.
pub(super) fn count(parts: &[Datum], at: usize) -> i64 {
    parts.get(at).map_or(0, i64_of)
}
