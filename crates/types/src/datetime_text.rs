//! Dates and timestamps to text, in the forms of `DateStyle`.
//!
//! ```text
//!   ISO       2024-02-29 12:34:56+01        SQL       02/29/2024 12:34:56 CET
//!   Postgres  Thu Feb 29 12:34:56 2024 CET  German    29.02.2024 12:34:56 CET
//! ```

use crate::datetime::{
    DATE_INFINITY, DATE_MINUS_INFINITY, MICROS_PER_DAY, civil_from_days, time_text,
};
use crate::time_zone::offset_text;
use crate::{DateForm, DateOrder, Style};

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A date without the mark for years before 1.
fn day_text(shown_year: i64, month: i64, day: i64, style: &Style) -> String {
    let day_first = style.order == DateOrder::Dmy;
    match style.date {
        DateForm::Iso => format!("{shown_year:04}-{month:02}-{day:02}"),
        DateForm::German => format!("{day:02}.{month:02}.{shown_year:04}"),
        DateForm::Sql if day_first => format!("{day:02}/{month:02}/{shown_year:04}"),
        DateForm::Sql => format!("{month:02}/{day:02}/{shown_year:04}"),
        DateForm::Postgres if day_first => format!("{day:02}-{month:02}-{shown_year:04}"),
        DateForm::Postgres => format!("{month:02}-{day:02}-{shown_year:04}"),
    }
}

/// Writes a date.
pub(crate) fn date_text(days: i32, style: &Style) -> String {
    match days {
        DATE_INFINITY => return "infinity".to_string(),
        DATE_MINUS_INFINITY => return "-infinity".to_string(),
        _ => {}
    }
    let (year, month, day) = civil_from_days(i64::from(days));
    let mut text = day_text(if year > 0 { year } else { 1 - year }, month, day, style);
    if year <= 0 {
        text.push_str(" BC");
    }
    text
}

/// Writes a timestamp; with the flag, its wall-clock time in the zone of the style and the zone.
pub(crate) fn timestamp_text(micros: i64, zoned: bool, style: &Style) -> String {
    match micros {
        i64::MAX => return "infinity".to_string(),
        i64::MIN => return "-infinity".to_string(),
        _ => {}
    }
    let local = if zoned { style.zone.to_local(micros) } else { micros };
    let days = local.div_euclid(MICROS_PER_DAY);
    let (year, month, day) = civil_from_days(days);
    let shown_year = if year > 0 { year } else { 1 - year };
    let time = time_text(local.rem_euclid(MICROS_PER_DAY));
    let mut text = match style.date {
        DateForm::Postgres => {
            let name = MONTHS[(month - 1) as usize];
            // 2000-01-01 was a Saturday.
            let weekday = DAYS[(days + 5).rem_euclid(7) as usize];
            match style.order {
                DateOrder::Dmy => format!("{weekday} {day:02} {name} {time} {shown_year:04}"),
                _ => format!("{weekday} {name} {day:02} {time} {shown_year:04}"),
            }
        }
        _ => format!("{} {time}", day_text(shown_year, month, day, style)),
    };
    if zoned {
        match style.date {
            DateForm::Iso => text.push_str(&offset_text(style.zone.offset_at_utc(micros))),
            _ => text.push_str(&format!(" {}", style.zone.abbreviation_at(micros))),
        }
    }
    if year <= 0 {
        text.push_str(" BC");
    }
    text
}
