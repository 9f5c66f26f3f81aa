//! `interval`: arithmetic.

use crate::datetime::MICROS_PER_DAY;
use crate::{Interval, SqlError, SqlResult, SqlState};

fn overflow() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

impl Interval {
    /// Order by length, a month counted as 30 days and a day as 24 hours, in microseconds.
    pub fn length(&self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(MICROS_PER_DAY)
            + i128::from(self.micros)
    }

    /// Sum.
    ///
    /// # Errors
    /// 22008 on overflow.
    pub fn add(&self, other: &Interval) -> SqlResult<Interval> {
        Ok(Interval {
            months: self.months.checked_add(other.months).ok_or_else(overflow)?,
            days: self.days.checked_add(other.days).ok_or_else(overflow)?,
            micros: self.micros.checked_add(other.micros).ok_or_else(overflow)?,
        })
    }

    /// Opposite.
    ///
    /// # Errors
    /// 22008 on overflow.
    pub fn neg(&self) -> SqlResult<Interval> {
        Ok(Interval {
            months: self.months.checked_neg().ok_or_else(overflow)?,
            days: self.days.checked_neg().ok_or_else(overflow)?,
            micros: self.micros.checked_neg().ok_or_else(overflow)?,
        })
    }

    /// Product; fractions of months go to days, fractions of days to the time.
    ///
    /// # Errors
    /// 22008 on overflow.
    pub fn mul(&self, factor: f64) -> SqlResult<Interval> {
        self.scaled(|v| v * factor)
    }

    /// A part of the interval.
    ///
    /// # Errors
    /// 22008 on overflow.
    pub fn div(&self, divisor: f64) -> SqlResult<Interval> {
        self.scaled(|v| v / divisor)
    }

    /// Each field scaled; what is left of months goes into days, what is left of days into time.
    fn scaled(&self, by: impl Fn(f64) -> f64) -> SqlResult<Interval> {
        let fits = |v: f64| v >= f64::from(i32::MIN) && v < -f64::from(i32::MIN);
        let micro = |v: f64| (v * 1e6).round_ties_even() / 1e6;
        let (months, days) = (by(f64::from(self.months)), by(f64::from(self.days)));
        if !fits(months) || !fits(days) {
            return Err(overflow());
        }
        let month_days = micro((months - months.trunc()) * 30.0);
        let left = (days - days.trunc()) + (month_days - month_days.trunc());
        let mut seconds = micro(left * 86_400.0);
        let mut all_days = days.trunc();
        if seconds.abs() >= 86_400.0 {
            let whole = (seconds / 86_400.0).trunc();
            all_days += whole;
            seconds -= whole * 86_400.0;
        }
        all_days += month_days.trunc();
        let micros = (by(self.micros as f64) + seconds * 1e6).round_ties_even();
        let time = i64::MIN as f64..-(i64::MIN as f64);
        if !fits(all_days) || !time.contains(&micros) {
            return Err(overflow());
        }
        Ok(Interval { months: months.trunc() as i32, days: all_days as i32, micros: micros as i64 })
    }
}
