//! [`RangeValue`]: from a lower to an upper bound, each with its own value or not, or empty.
//!
//! ```text
//!   [1,5)      lower 1, with it;  upper 5, without it
//!   (,5]       no lower bound;    upper 5, with it: of integers and dates kept as (,6)
//!   empty      nothing
//! ```
//! Ranges of integers and dates are kept in one form, `[a,b)`, so that equal ranges look equal.

use std::cmp::Ordering;
use std::sync::Arc;

use super::RangeType;
use super::made::by_oid;
use crate::{Datum, SqlError, SqlResult, SqlState, SqlType};

/// Which type of ranges.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum RangeKind {
    /// `int4range`.
    Int4,
    /// `int8range`.
    Int8,
    /// `numrange`.
    Num,
    /// `tsrange`.
    Ts,
    /// `tstzrange`.
    Tstz,
    /// `daterange`.
    Date,
    /// One that a user has made.
    Made(#[serde(with = "by_oid")] Arc<RangeType>),
}

impl RangeKind {
    /// Those that are built in.
    pub const ALL: [RangeKind; 6] = [
        RangeKind::Int4,
        RangeKind::Int8,
        RangeKind::Num,
        RangeKind::Ts,
        RangeKind::Tstz,
        RangeKind::Date,
    ];

    /// The type of the bounds.
    pub fn element(&self) -> SqlType {
        match self {
            RangeKind::Int4 => SqlType::Int4,
            RangeKind::Int8 => SqlType::Int8,
            RangeKind::Num => SqlType::Numeric(None),
            RangeKind::Ts => SqlType::Timestamp,
            RangeKind::Tstz => SqlType::TimestampTz,
            RangeKind::Date => SqlType::Date,
            RangeKind::Made(ty) => ty.subtype.clone(),
        }
    }

    /// Whether both are the same type, whatever is known of it.
    pub fn is_same(&self, other: &RangeKind) -> bool {
        match (self, other) {
            (RangeKind::Made(a), RangeKind::Made(b)) => a.one.oid == b.one.oid,
            (a, b) => a == b,
        }
    }
}

/// A range. A bound that is NULL is none.
#[derive(Clone, Debug)]
pub struct RangeValue {
    /// Its type.
    pub kind: RangeKind,
    /// It has no value at all; the rest then means nothing.
    pub empty: bool,
    /// Lower bound.
    pub lower: Datum,
    /// The lower bound belongs to it.
    pub with_lower: bool,
    /// Upper bound.
    pub upper: Datum,
    /// The upper bound belongs to it.
    pub with_upper: bool,
}

impl RangeValue {
    /// The empty range.
    pub fn empty(kind: &RangeKind) -> RangeValue {
        let (lower, upper) = (Datum::Null, Datum::Null);
        let kind = kind.clone();
        RangeValue { kind, empty: true, lower, with_lower: false, upper, with_upper: false }
    }

    /// A range in its kept form; `with` says which bounds belong to it.
    ///
    /// # Errors
    /// 22000 if the lower bound is greater, 22003 if the kept form does not fit the type.
    pub fn new(
        kind: &RangeKind,
        lower: Datum,
        upper: Datum,
        with: (bool, bool),
    ) -> SqlResult<RangeValue> {
        let mut range = RangeValue {
            kind: kind.clone(),
            empty: false,
            with_lower: with.0 && !lower.is_null(),
            with_upper: with.1 && !upper.is_null(),
            lower,
            upper,
        };
        if !range.lower.is_null() && !range.upper.is_null() {
            match range.lower.cmp_sql(&range.upper) {
                Ordering::Greater => {
                    return Err(SqlError::new(
                        SqlState("22000"),
                        "range lower bound must be less than or equal to range upper bound",
                    ));
                }
                Ordering::Equal if !(range.with_lower && range.with_upper) => {
                    return Ok(RangeValue::empty(kind));
                }
                _ => {}
            }
        }
        if !range.lower.is_null() && !range.with_lower && range.is_discrete() {
            (range.lower, range.with_lower) = (next(&range.lower)?, is_finite(&range.lower));
        }
        if range.with_upper && range.is_discrete() {
            range.with_upper = !is_finite(&range.upper);
            range.upper = next(&range.upper)?;
        }
        let both = !range.lower.is_null() && !range.upper.is_null() && range.is_discrete();
        if both && range.lower.cmp_sql(&range.upper).is_ge() && !range.with_upper {
            return Ok(RangeValue::empty(kind));
        }
        Ok(range)
    }

    /// Bytes in memory.
    pub fn memory(&self) -> usize {
        size_of::<RangeValue>() + self.lower.memory() + self.upper.memory()
    }

    fn is_discrete(&self) -> bool {
        matches!(self.kind, RangeKind::Int4 | RangeKind::Int8 | RangeKind::Date)
    }

    /// The order: the empty one, then by the lower bounds, then by the upper ones.
    pub fn compare(&self, other: &RangeValue) -> Ordering {
        match (self.empty, other.empty) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.cmp_lower(other).then_with(|| self.cmp_upper(other)),
        }
    }

    /// The order of the lower bounds.
    pub fn cmp_lower(&self, other: &RangeValue) -> Ordering {
        match (self.lower.is_null(), other.lower.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self
                .lower
                .cmp_sql(&other.lower)
                .then_with(|| other.with_lower.cmp(&self.with_lower)),
        }
    }

    /// The order of the upper bounds.
    pub fn cmp_upper(&self, other: &RangeValue) -> Ordering {
        match (self.upper.is_null(), other.upper.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self
                .upper
                .cmp_sql(&other.upper)
                .then_with(|| self.with_upper.cmp(&other.with_upper)),
        }
    }

    /// Where this one's upper bound stands beside the other's lower one: less if they have nothing
    /// in common, equal if both have just that value.
    pub fn end_beside_start(&self, other: &RangeValue) -> Ordering {
        if self.upper.is_null() || other.lower.is_null() {
            return Ordering::Greater;
        }
        self.upper.cmp_sql(&other.lower).then(match self.with_upper && other.with_lower {
            true => Ordering::Equal,
            false => Ordering::Less,
        })
    }

    /// Whether this one ends where the other begins, with nothing between and nothing in common.
    pub fn touches(&self, other: &RangeValue) -> bool {
        let bounds = !self.upper.is_null() && !other.lower.is_null();
        bounds && self.upper.cmp_sql(&other.lower).is_eq() && self.with_upper != other.with_lower
    }

    /// Whether a value lies in it.
    pub fn has(&self, value: &Datum) -> bool {
        let above = self.lower.is_null()
            || match self.lower.cmp_sql(value) {
                Ordering::Less => true,
                Ordering::Equal => self.with_lower,
                Ordering::Greater => false,
            };
        let below = self.upper.is_null()
            || match value.cmp_sql(&self.upper) {
                Ordering::Less => true,
                Ordering::Equal => self.with_upper,
                Ordering::Greater => false,
            };
        !self.empty && above && below
    }

    /// Whether all of the other lies in it.
    pub fn contains(&self, other: &RangeValue) -> bool {
        other.empty || !self.empty && self.cmp_lower(other).is_le() && self.cmp_upper(other).is_ge()
    }

    /// Whether they have a value in common.
    pub fn overlaps(&self, other: &RangeValue) -> bool {
        let meet = |a: &RangeValue, b: &RangeValue| a.end_beside_start(b).is_ge();
        !self.empty && !other.empty && meet(self, other) && meet(other, self)
    }

    /// A range with the lower bound of one and the upper bound of another.
    pub fn between(from: &RangeValue, to: &RangeValue) -> RangeValue {
        RangeValue {
            kind: from.kind.clone(),
            empty: false,
            lower: from.lower.clone(),
            with_lower: from.with_lower,
            upper: to.upper.clone(),
            with_upper: to.with_upper,
        }
    }
}

fn is_finite(value: &Datum) -> bool {
    !matches!(value, Datum::Date(i32::MIN | i32::MAX))
}

/// The value after a value; infinite dates have none.
fn next(value: &Datum) -> SqlResult<Datum> {
    let range = |ty: &str| {
        SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"))
    };
    match value {
        Datum::Int4(v) => v.checked_add(1).map(Datum::Int4).ok_or_else(|| range("integer")),
        Datum::Int8(v) => v.checked_add(1).map(Datum::Int8).ok_or_else(|| range("bigint")),
        Datum::Date(d) if is_finite(value) => crate::check_date(i64::from(*d) + 1).map(Datum::Date),
        other => Ok(other.clone()),
    }
}
