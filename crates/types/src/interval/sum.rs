//! An interval while its text is read: numbers of a unit are added, their fractions go down into
//! smaller units.

use super::reader::Trouble;
use crate::Interval;
use crate::datetime::{MICROS_PER_DAY, MICROS_PER_SECOND};

const DAYS_PER_MONTH: i32 = 30;
const DAYS_PER_WEEK: i32 = 7;
const MONTHS_PER_YEAR: i32 = 12;

/// A unit that a number is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

/// A number, cut at its point; both parts have its sign.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Number {
    pub(super) whole: i64,
    pub(super) fraction: f64,
}

/// What was read so far. Years stay apart from months until all is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
}

fn fits<T>(value: Option<T>) -> Result<T, Trouble> {
    value.ok_or(Trouble::Range)
}

/// Microseconds of a unit of time.
fn micros_of(unit: Unit) -> i64 {
    match unit {
        Unit::Hour => 3600 * MICROS_PER_SECOND,
        Unit::Minute => 60 * MICROS_PER_SECOND,
        Unit::Second => MICROS_PER_SECOND,
        Unit::Millisecond => 1000,
        _ => 1,
    }
}

impl Sum {
    /// Adds a number of a unit.
    pub(super) fn add(&mut self, number: Number, unit: Unit) -> Result<(), Trouble> {
        match unit {
            Unit::Microsecond | Unit::Millisecond | Unit::Second | Unit::Minute | Unit::Hour => {
                let each = micros_of(unit);
                let more = fits(number.whole.checked_mul(each))?;
                self.micros = fits(self.micros.checked_add(more))?;
                self.add_micros(number.fraction, each)
            }
            Unit::Day => {
                self.add_days(number.whole, 1)?;
                self.add_micros(number.fraction, MICROS_PER_DAY)
            }
            Unit::Week => {
                self.add_days(number.whole, DAYS_PER_WEEK)?;
                self.add_part_of_days(number.fraction, DAYS_PER_WEEK)
            }
            Unit::Month => {
                let more = fits(i32::try_from(number.whole).ok())?;
                self.months = fits(self.months.checked_add(more))?;
                self.add_part_of_days(number.fraction, DAYS_PER_MONTH)
            }
            Unit::Year => self.add_years(number, 1),
            Unit::Decade => self.add_years(number, 10),
            Unit::Century => self.add_years(number, 100),
            Unit::Millennium => self.add_years(number, 1000),
        }
    }

    /// The time is this; the fraction of its second is in microseconds already.
    pub(super) fn set_time(
        &mut self,
        [hours, minutes, seconds]: [i64; 3],
        micros: i64,
    ) -> Option<()> {
        self.micros = hours
            .checked_mul(60)?
            .checked_add(minutes)?
            .checked_mul(60)?
            .checked_add(seconds)?
            .checked_mul(MICROS_PER_SECOND)?
            .checked_add(micros)?;
        Some(())
    }

    /// The time counts backwards.
    pub(super) fn turn_time(&mut self) -> Result<(), Trouble> {
        self.micros = fits(self.micros.checked_neg())?;
        Ok(())
    }

    /// The time counts backwards unless it does.
    pub(super) fn turn_time_back(&mut self) {
        self.micros = -self.micros.saturating_abs();
    }

    /// Each field with the other sign.
    pub(super) fn turned(self) -> Result<Sum, Trouble> {
        Ok(Sum {
            years: fits(self.years.checked_neg())?,
            months: fits(self.months.checked_neg())?,
            days: fits(self.days.checked_neg())?,
            micros: fits(self.micros.checked_neg())?,
        })
    }

    /// The interval; nothing if it has too many months.
    pub(super) fn interval(self) -> Option<Interval> {
        let months = i64::from(self.years) * i64::from(MONTHS_PER_YEAR) + i64::from(self.months);
        let months = i32::try_from(months).ok()?;
        Some(Interval { months, days: self.days, micros: self.micros })
    }

    fn add_days(&mut self, whole: i64, each: i32) -> Result<(), Trouble> {
        let more = i32::try_from(whole).ok().and_then(|days| days.checked_mul(each));
        self.days = fits(more.and_then(|more| self.days.checked_add(more)))?;
        Ok(())
    }

    /// Adds a fraction of so many days.
    fn add_part_of_days(&mut self, fraction: f64, days: i32) -> Result<(), Trouble> {
        let part = fraction * f64::from(days);
        self.days = fits(self.days.checked_add(part as i32))?;
        self.add_micros(part - f64::from(part as i32), MICROS_PER_DAY)
    }

    /// Adds a fraction of so many microseconds, rounded to the nearest, a half towards zero.
    pub(super) fn add_micros(&mut self, fraction: f64, each: i64) -> Result<(), Trouble> {
        let part = fraction * each as f64;
        let mut micros = part as i64;
        let rest = part - micros as f64;
        if rest > 0.5 {
            micros += 1;
        } else if rest < -0.5 {
            micros -= 1;
        }
        self.micros = fits(self.micros.checked_add(micros))?;
        Ok(())
    }

    fn add_years(&mut self, number: Number, each: i32) -> Result<(), Trouble> {
        let more = i32::try_from(number.whole).ok().and_then(|years| years.checked_mul(each));
        self.years = fits(more.and_then(|more| self.years.checked_add(more)))?;
        let months = number.fraction * f64::from(each) * f64::from(MONTHS_PER_YEAR);
        self.months = fits(self.months.checked_add(months.round_ties_even() as i32))?;
        Ok(())
    }
}
