//! Names of months and days, and the weeks of ISO 8601.

use braid_types::{civil_from_days, days_from_civil};

/// Months.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Days of the week, from Monday.
pub(super) const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Months in Roman numbers.
pub(super) const ROMAN: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// Monday of ISO week 1 of a year, as day number.
pub(super) fn iso_year_start(year: i64) -> i64 {
    let fourth = days_from_civil(year, 1, 4);
    fourth - weekday_monday(fourth)
}

/// 0 for Monday.
pub(super) fn weekday_monday(days: i64) -> i64 {
    // 2000-01-01 was a Saturday.
    (days + 5).rem_euclid(7)
}

/// ISO year and week.
pub(super) fn iso_week(days: i64) -> (i64, i64) {
    let (year, _, _) = civil_from_days(days);
    let iso_year = if days >= iso_year_start(year + 1) {
        year + 1
    } else if days < iso_year_start(year) {
        year - 1
    } else {
        year
    };
    (iso_year, (days - iso_year_start(iso_year)) / 7 + 1)
}
