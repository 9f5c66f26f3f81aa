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

/// The bits by which type modifiers of PostgreSQL name the fields.
const BITS: [(IntervalField, i32); 6] = [
    (IntervalField::Year, 1 << 2),
    (IntervalField::Month, 1 << 1),
    (IntervalField::Day, 1 << 3),
    (IntervalField::Hour, 1 << 10),
    (IntervalField::Minute, 1 << 11),
    (IntervalField::Second, 1 << 12),
];

/// What a type modifier has in its upper half for all fields, and in its lower one for all digits.
const ALL: (i32, i32) = (0x7fff, 0xffff);

impl IntervalField {
    fn word(self) -> &'static str {
        match self {
            IntervalField::Year => "year",
            IntervalField::Month => "month",
            IntervalField::Day => "day",
            IntervalField::Hour => "hour",
            IntervalField::Minute => "minute",
            IntervalField::Second => "second",
        }
    }
}

impl std::fmt::Display for IntervalFields {
    /// As `format_type` prints them: `day to second`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.first.word())?;
        if self.first == self.last { Ok(()) } else { write!(f, " to {}", self.last.word()) }
    }
}

impl IntervalFields {
    /// The type modifier of intervals of some fields, with so many digits of seconds; -1 if all is
    /// kept.
    pub fn typmod(fields: Option<IntervalFields>, digits: Option<u8>) -> i32 {
        let between = |fields: IntervalFields| {
            let within = |f: &IntervalField| (fields.first..=fields.last).contains(f);
            BITS.iter().filter(|(field, _)| within(field)).map(|(_, bit)| bit).sum()
        };
        match (fields, digits) {
            (None, None) => -1,
            (fields, digits) => {
                fields.map_or(ALL.0, between) << 16 | digits.map_or(ALL.1, i32::from)
            }
        }
    }

    /// The fields and the digits that a type modifier means.
    pub fn of_typmod(typmod: i32) -> (Option<IntervalFields>, Option<u8>) {
        if typmod < 0 {
            return (None, None);
        }
        let mask = typmod >> 16 & ALL.0;
        let mut named = BITS.iter().filter(|(_, bit)| mask & bit != 0).map(|(field, _)| *field);
        let first = named.next().filter(|_| mask != ALL.0);
        let fields =
            first.map(|first| IntervalFields { first, last: named.next_back().unwrap_or(first) });
        (fields, u8::try_from(typmod & ALL.1).ok())
    }

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
    pub fn cut(self, interval: Interval) -> Interval {
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
