//! Bounds of RANGE with an offset: keys that lie so far from the row's key.
//!
//! ```text
//!   RANGE BETWEEN '1 month' PRECEDING ..     a row of 31 March: keys from 28 February on
//!   RANGE BETWEEN 0.5 PRECEDING ..           a row of infinity: keys from infinity on
//! ```
//! The arithmetic is that of the operators `+` and `-`, so days and months of `timestamptz` are
//! those of the session's time zone. It never wraps around: beyond the last value of a type are its
//! bounds only. What has no answer (an infinite offset from an infinity back to the finite) is
//! answered as PostgreSQL does: all keys are in the frame.

use std::cmp::Ordering;

use braid_scalar::{Builtin, EvalContext, resolve};
use braid_types::ordered::timetz;
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};

/// An offset of a frame by values, on one side of it.
pub(super) struct Distance {
    offset: Datum,
    /// To smaller keys.
    back: bool,
    /// `key + offset`, or minus, of keys that are more than numbers.
    moved: Option<&'static Builtin>,
}

/// Where a bound lies for one row.
pub(super) enum Limit {
    /// At a number, which may be greater than any key.
    Number(i128),
    /// At a key.
    Key(Datum),
    /// Nowhere: all keys but NaN are on both sides of it.
    Anywhere,
}

/// The type of an offset from keys of a type; `None`: they have no distance.
pub(crate) fn offset_type(key: &SqlType) -> Option<SqlType> {
    Some(match key {
        SqlType::Int8 => SqlType::Int8,
        SqlType::Float8 => SqlType::Float8,
        SqlType::Numeric(_) => SqlType::Numeric(None),
        SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Time
        | SqlType::TimeTz
        | SqlType::Interval => SqlType::Interval,
        _ => return None,
    })
}

/// 22013.
fn bad_size() -> SqlError {
    SqlError::new(SqlState("22013"), "invalid preceding or following size in window function")
}

fn is_nan(value: &Datum) -> bool {
    match value {
        Datum::NumericNan => true,
        Datum::Float8(v) => v.is_nan(),
        _ => false,
    }
}

impl Distance {
    /// An offset from keys of a type, backward or forward.
    ///
    /// # Errors
    /// XX000 for a type whose keys have no distance; the binder has refused it.
    pub(super) fn new(key: &SqlType, offset: Datum, back: bool) -> SqlResult<Distance> {
        let sign = if back { "-" } else { "+" };
        let moved = match key {
            SqlType::Timestamp | SqlType::TimestampTz | SqlType::Interval => {
                Some(resolve(sign, &[key.clone(), SqlType::Interval], true)?.function)
            }
            SqlType::Numeric(_) => {
                let number = SqlType::Numeric(None);
                Some(resolve(sign, &[number.clone(), number], true)?.function)
            }
            _ => None,
        };
        Ok(Distance { offset, back, moved })
    }

    fn sign(&self) -> i128 {
        if self.back { -1 } else { 1 }
    }

    /// The bound for a row with a key.
    ///
    /// # Errors
    /// 22013 for a negative offset, 22008 for a time out of range.
    pub(super) fn limit(&self, key: &Datum, eval: &EvalContext) -> SqlResult<Limit> {
        match (key, &self.offset) {
            (Datum::Int8(key), Datum::Int8(offset)) if *offset >= 0 => {
                Ok(Limit::Number(i128::from(*key) + self.sign() * i128::from(*offset)))
            }
            (Datum::Float8(key), Datum::Float8(offset)) if *offset >= 0.0 => {
                Ok(self.of_float(*key, *offset))
            }
            // Months and days of an offset say nothing of the time of day.
            (Datum::Time(key), Datum::Interval(offset)) if offset.micros >= 0 => {
                Ok(Limit::Number(i128::from(*key) + self.sign() * i128::from(offset.micros)))
            }
            (Datum::Ordered(key), Datum::Interval(offset)) if offset.micros >= 0 => {
                let (micros, east) = timetz::parts(key);
                let moved = i128::from(micros) + self.sign() * i128::from(offset.micros);
                // A zone less than the type's bounds is nothing beside what is left out here.
                let room = i128::from(i64::MAX / 2);
                let moved = moved.clamp(-room, room) as i64;
                Ok(Limit::Key(Datum::Ordered(timetz::of(moved, east))))
            }
            (
                Datum::Timestamp(_) | Datum::TimestampTz(_) | Datum::Interval(_),
                Datum::Interval(offset),
            ) if offset.length() >= 0 => self.moved(key, eval),
            (
                Datum::Numeric(_) | Datum::NumericNan | Datum::NumericInf(_),
                Datum::Numeric(_) | Datum::NumericInf(false),
            ) if !is_negative(&self.offset) => self.of_numeric(key, eval),
            _ => Err(bad_size()),
        }
    }

    fn of_float(&self, key: f64, offset: f64) -> Limit {
        let undecided = if self.back { f64::INFINITY } else { f64::NEG_INFINITY };
        match self.back {
            _ if key == undecided && offset.is_infinite() => Limit::Anywhere,
            true => Limit::Key(Datum::Float8(key - offset)),
            false => Limit::Key(Datum::Float8(key + offset)),
        }
    }

    fn of_numeric(&self, key: &Datum, eval: &EvalContext) -> SqlResult<Limit> {
        match (key, &self.offset) {
            (Datum::NumericNan, _) => Ok(Limit::Key(Datum::NumericNan)),
            (Datum::NumericInf(negative), Datum::NumericInf(_)) if *negative != self.back => {
                Ok(Limit::Anywhere)
            }
            (_, Datum::NumericInf(_)) => Ok(Limit::Key(Datum::NumericInf(self.back))),
            (Datum::NumericInf(_), _) => Ok(Limit::Key(key.clone())),
            _ => self.moved(key, eval),
        }
    }

    fn moved(&self, key: &Datum, eval: &EvalContext) -> SqlResult<Limit> {
        let moved = self.moved.ok_or_else(|| SqlError::internal("keys without a distance"))?;
        moved.eval(&[key.clone(), self.offset.clone()], eval).map(Limit::Key)
    }
}

fn is_negative(number: &Datum) -> bool {
    number.cmp_sql(&Datum::Int8(0)).is_lt()
}

impl Limit {
    /// How a key lies to the bound; `None` if that is nowhere.
    fn order(&self, key: &Datum) -> Option<Ordering> {
        let number = |n: i64, limit: &i128| Some(i128::from(n).cmp(limit));
        match (self, key) {
            (Limit::Number(limit), Datum::Int8(n) | Datum::Time(n)) => number(*n, limit),
            (Limit::Key(limit), key) => Some(key.cmp_sql(limit)),
            (Limit::Anywhere, key) if is_nan(key) => Some(Ordering::Greater),
            _ => None,
        }
    }

    /// Whether a key is not below the bound.
    pub(super) fn is_reached(&self, key: &Datum) -> bool {
        self.order(key).is_none_or(Ordering::is_ge)
    }

    /// Whether a key is not above the bound.
    pub(super) fn is_kept(&self, key: &Datum) -> bool {
        self.order(key).is_none_or(Ordering::is_le)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(ty: &SqlType, key: Datum, offset: Datum, back: bool) -> Limit {
        let distance = Distance::new(ty, offset, back).expect("a distance");
        distance.limit(&key, &EvalContext::constant()).expect("a limit")
    }

    #[test]
    fn numbers_do_not_wrap_around() {
        let last = Datum::Int8(i64::MAX);
        let up = limit(&SqlType::Int8, last.clone(), Datum::Int8(1), false);
        assert!(!up.is_reached(&last) && up.is_kept(&last));
        let first = Datum::Int8(i64::MIN);
        let down = limit(&SqlType::Int8, first.clone(), last, true);
        assert!(down.is_reached(&first) && !down.is_kept(&first));
    }

    #[test]
    fn infinities_and_nan_have_places() {
        let float = |v| Datum::Float8(v);
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let undecided = limit(&SqlType::Float8, float(inf), float(inf), true);
        for (key, kept) in [(-inf, true), (0.0, true), (inf, true), (nan, false)] {
            assert!(undecided.is_reached(&float(key)));
            assert_eq!(undecided.is_kept(&float(key)), kept);
        }
        let of_nan = limit(&SqlType::Float8, float(nan), float(1.0), true);
        assert!(of_nan.is_reached(&float(nan)) && !of_nan.is_reached(&float(inf)));
        let numeric = SqlType::Numeric(None);
        let far = limit(&numeric, Datum::NumericInf(true), Datum::NumericInf(false), true);
        assert!(far.is_reached(&Datum::NumericInf(true)) && far.is_kept(&Datum::NumericInf(true)));
        assert!(!far.is_kept(&Datum::NumericInf(false)));
    }

    #[test]
    fn times_of_day_end_with_the_day() {
        let hour = |n: i64| n * 3_600_000_000;
        let offset = braid_types::Interval { months: 1, days: 1, micros: hour(2) };
        let late = limit(&SqlType::Time, Datum::Time(hour(23)), Datum::Interval(offset), false);
        assert!(late.is_kept(&Datum::Time(hour(24))) && !late.is_reached(&Datum::Time(hour(1))));
    }
}
