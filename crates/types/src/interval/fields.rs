//! The fields that an interval is of: `INTERVAL '1:30' HOUR TO MINUTE`.

use super::sum::Unit;
use crate::Interval;
use crate::datetime::MICROS_PER_SECOND;

/// A field of an interval, from the largest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntervalField {
    /// Years.
    Year,
    /// Months.
    Month,
    /// Days.
    Day,
    /// Hours.
    Hour,
    /// Minutes.
    Minute,
    /// Seconds and their fraction.
    Second,
}

/// From which to which field an interval goes. A number without a unit is of the last one, and what
/// is smaller than that is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalFields {
    /// The largest field.
    pub first: IntervalField,
    /// The smallest field.
    pub last: IntervalField,
}

impl IntervalFields {
    /// The unit of a number that has none.
    pub(super) fn unit(self) -> Unit {
        match self.last {
            IntervalField::Year => Unit::Year,
            IntervalField::Month => Unit::Month,
            IntervalField::Day => Unit::Day,
            IntervalField::Hour => Unit::Hour,
            IntervalField::Minute => Unit::Minute,
            IntervalField::Second => Unit::Second,
        }
    }

    /// Whether `1:30` means a minute and thirty seconds.
    pub(super) fn is_minutes_and_seconds(self) -> bool {
        (self.first, self.last) == (IntervalField::Minute, IntervalField::Second)
    }

    /// The interval without what is smaller than the last field.
    pub(super) fn cut(self, interval: Interval) -> Interval {
        let Interval { months, days, micros } = interval;
        let time = |each: i64| Interval { micros: micros / each * each, ..interval };
        match self.last {
            IntervalField::Year => Interval { months: months / 12 * 12, days: 0, micros: 0 },
            IntervalField::Month => Interval { months, days: 0, micros: 0 },
            IntervalField::Day => Interval { months, days, micros: 0 },
            IntervalField::Hour => time(3600 * MICROS_PER_SECOND),
            IntervalField::Minute => time(60 * MICROS_PER_SECOND),
            IntervalField::Second => interval,
        }
    }
}
