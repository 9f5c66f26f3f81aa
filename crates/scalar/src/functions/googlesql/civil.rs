//! Days and their parts as GoogleSQL counts them.

use braid_types::{check_date, civil_from_days, days_from_civil};

use crate::functions::calendar::{iso_week, iso_year_start, weekday_monday};

/// A part of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Day,
    /// Weeks that begin on a day, 0 for Monday.
    Week(i64),
    Month,
    Quarter,
    Year,
    /// The year that weeks of ISO 8601 belong to.
    IsoYear,
}

/// The days on which weeks can begin, as in `WEEK(TUESDAY)`.
const WEEKS: [&str; 7] = [
    "week(monday)",
    "week(tuesday)",
    "week(wednesday)",
    "week(thursday)",
    "week(friday)",
    "week(saturday)",
    "week(sunday)",
];

impl Part {
    /// By its name in small letters.
    pub(super) fn named(name: &str) -> Option<Part> {
        Some(match name {
            "day" => Part::Day,
            "week" => Part::Week(6),
            "isoweek" => Part::Week(0),
            "month" => Part::Month,
            "quarter" => Part::Quarter,
            "year" => Part::Year,
            "isoyear" => Part::IsoYear,
            name => Part::Week(WEEKS.iter().position(|week| *week == name)? as i64),
        })
    }

    /// The first day of the part that a day lies in.
    pub(super) fn begin(self, day: i64) -> i64 {
        let (year, month, _) = civil_from_days(day);
        match self {
            Part::Day => day,
            Part::Week(first) => day - (weekday_monday(day) - first).rem_euclid(7),
            Part::Month => days_from_civil(year, month, 1),
            Part::Quarter => days_from_civil(year, (month - 1) / 3 * 3 + 1, 1),
            Part::Year => days_from_civil(year, 1, 1),
            Part::IsoYear => iso_year_start(iso_week(day).0),
        }
    }

    /// How many of these parts begin between two days, with a sign.
    pub(super) fn between(self, later: i64, earlier: i64) -> i64 {
        let months = |day: i64| {
            let (year, month, _) = civil_from_days(day);
            year * 12 + month - 1
        };
        match self {
            Part::Day => later - earlier,
            Part::Week(_) => (self.begin(later) - self.begin(earlier)) / 7,
            Part::Month => months(later) - months(earlier),
            Part::Quarter => months(later).div_euclid(3) - months(earlier).div_euclid(3),
            Part::Year => civil_from_days(later).0 - civil_from_days(earlier).0,
            Part::IsoYear => iso_week(later).0 - iso_week(earlier).0,
        }
    }
}

/// A day so many months later; at the end of a shorter month its last one.
pub(super) fn add_months(day: i64, months: i64) -> Option<i64> {
    let (year, month, of_month) = civil_from_days(day);
    let all = year.checked_mul(12)?.checked_add(month - 1)?.checked_add(months)?;
    // Far from all dates that there are.
    if all.abs() > 100_000_000 {
        return None;
    }
    let first = days_from_civil(all.div_euclid(12), all.rem_euclid(12) + 1, 1);
    let next = all + 1;
    let last = days_from_civil(next.div_euclid(12), next.rem_euclid(12) + 1, 1) - 1;
    Some((first + of_month - 1).min(last))
}

/// A day as a date holds it, if it is one.
pub(super) fn days_of(day: i64) -> Option<i32> {
    check_date(day).ok()
}
