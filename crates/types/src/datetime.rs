//! Dates, times and timestamps: the calendar.
//!
//! The epoch is 2000-01-01, as on the PostgreSQL wire. Days are `i32`, times and timestamps are
//! microseconds in `i64`. The two ends of each integer are the infinities.

use crate::{Datum, SqlError, SqlResult, SqlState};

/// Microseconds in a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds in a day.
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// Microseconds from 1970-01-01 to 2000-01-01.
pub const UNIX_EPOCH_MICROS: i64 = 946_684_800 * MICROS_PER_SECOND;
/// `infinity` of `date`.
pub(crate) const DATE_INFINITY: i32 = i32::MAX;
/// `-infinity` of `date`.
pub(crate) const DATE_MINUS_INFINITY: i32 = i32::MIN;

/// First day that `date` can hold: 4714-11-24 BC.
const MIN_DAYS: i64 = -2_451_545;
/// First day after those of `date`: 5874898-01-01.
const END_DAYS: i64 = 2_145_031_949;
/// First microsecond after those of `timestamp`: 294277-01-01.
const END_MICROS: i64 = 9_223_371_331_200_000_000;
/// A placeholder among timestamps: above all there are, below infinity. See
/// [`Datum::PENDING_COMMIT_TIME`].
const PENDING: i64 = i64::MAX - 1;

/// Days since 2000-01-01 of a proleptic Gregorian date; year 0 is 1 BC.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let shifted = (month + 9) % 12;
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 730_425
}

/// Year (0 is 1 BC), month, day of a day number.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 730_425;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Days in a month.
pub(crate) fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Checks a day number against what `date` holds.
///
/// # Errors
/// 22008.
pub fn check_date(days: i64) -> SqlResult<i32> {
    if (MIN_DAYS..END_DAYS).contains(&days) {
        Ok(days as i32)
    } else {
        Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range"))
    }
}

/// Checks microseconds against what `timestamp` holds.
///
/// # Errors
/// 22008.
pub fn check_timestamp(micros: i128) -> SqlResult<i64> {
    if micros >= i128::from(MIN_DAYS) * i128::from(MICROS_PER_DAY)
        && micros < i128::from(END_MICROS)
    {
        Ok(micros as i64)
    } else {
        Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range"))
    }
}

/// Writes a time of day.
pub(crate) fn time_text(micros: i64) -> String {
    let seconds = micros / MICROS_PER_SECOND;
    let fraction = micros % MICROS_PER_SECOND;
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        text.push('.');
        text.push_str(digits.trim_end_matches('0'));
    }
    text
}

impl Datum {
    /// Stands for the time of a commit that has not happened, in a column of type timestamptz. Only
    /// the transaction that writes it ever meets it, and it must not look at it.
    pub const PENDING_COMMIT_TIME: Datum = Datum::TimestampTz(PENDING);

    /// Whether it stands for the time of a commit that has not happened.
    #[inline]
    pub fn is_pending_commit_time(&self) -> bool {
        matches!(self, Datum::TimestampTz(PENDING))
    }
}

/// 55000: somebody wants to know the time of a commit that has not happened.
pub fn commit_time_is_pending() -> SqlError {
    SqlError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "a pending commit timestamp cannot be read in the transaction that writes it",
    )
    .with_hint("Read the column when the transaction has committed.")
}

/// 22008 for what is no timestamp, of clients that send its microseconds.
pub(crate) fn timestamp_in(micros: i64) -> SqlResult<i64> {
    match micros {
        i64::MIN | i64::MAX => Ok(micros),
        _ => check_timestamp(micros.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqlType;

    #[test]
    fn nobody_can_send_the_placeholder() {
        for ty in [SqlType::Timestamp, SqlType::TimestampTz] {
            let read = |micros: i64| Datum::from_binary(&micros.to_be_bytes(), &ty);
            for good in [i64::MIN, -211_813_488_000_000_000, 0, i64::MAX] {
                assert!(!read(good).unwrap().is_pending_commit_time(), "{good}");
            }
            for bad in [PENDING, i64::MAX - 2, i64::MIN + 1] {
                assert_eq!(read(bad).unwrap_err().state(), SqlState::DATETIME_FIELD_OVERFLOW);
            }
        }
        assert!(Datum::PENDING_COMMIT_TIME.is_pending_commit_time());
    }
}
