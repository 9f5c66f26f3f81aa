//! Values of what was read: dates, times of day, moments.

use super::reader::{Reader, Trouble};
use super::{iso, tokens};
use crate::datetime::{
    DATE_INFINITY, DATE_MINUS_INFINITY, MICROS_PER_DAY, UNIX_EPOCH_MICROS, check_date,
    check_timestamp, days_from_civil,
};
use crate::{SqlError, SqlResult, SqlState, Style, TimeZone};

/// What a date/time text holds.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub(crate) infinity: Option<bool>,
    pub(crate) epoch: bool,
    pub(crate) date: Option<(i64, i64, i64)>,
    pub(crate) time: Option<i64>,
    pub(crate) zone: Option<TimeZone>,
}

fn bad(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_DATETIME_FORMAT,
        format!("invalid input syntax for type {type_name}: \"{text}\""),
    )
}

fn out_of_range(text: &str) -> SqlError {
    SqlError::new(
        SqlState::DATETIME_FIELD_OVERFLOW,
        format!("date/time field value out of range: \"{text}\""),
    )
}

/// Reads the text of a date or time: ISO, `Jan 5 2020`, `5 January 2020`, `1/5/2020` in the order
/// of `DateStyle`, `20200105`, `2020-006`, `J2458854`, times with fraction and AM/PM, zones as
/// offset or name, BC, infinity.
pub(crate) fn parse_fields(text: &str, type_name: &str, style: &Style) -> SqlResult<Fields> {
    let of_day = matches!(type_name, "time" | "time with time zone");
    let pieces = tokens::pieces(text).ok_or_else(|| bad(type_name, text))?;
    Reader::new(style, of_day).read(&pieces).map_err(|trouble| match trouble {
        Trouble::Syntax => bad(type_name, text),
        Trouble::Overflow => out_of_range(text),
        Trouble::Order => {
            out_of_range(text).with_hint("Perhaps you need a different \"datestyle\" setting.")
        }
        Trouble::Offset => SqlError::new(
            SqlState("22009"),
            format!("time zone displacement out of range: \"{text}\""),
        ),
        Trouble::Zone(name) => SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("time zone \"{name}\" not recognized"),
        ),
    })
}

/// Digits after the point to microseconds, rounded as PostgreSQL does: by way of a double, halves
/// to even.
pub(crate) fn fraction_micros(digits: &str) -> Option<i64> {
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction: f64 = if digits.is_empty() { 0.0 } else { format!("0.{digits}").parse().ok()? };
    Some((fraction * 1e6).round_ties_even() as i64)
}

/// Reads a `date`.
pub(crate) fn parse_date(text: &str, style: &Style) -> SqlResult<i32> {
    if let Some(day) = iso::date(text) {
        return Ok(day as i32);
    }
    let fields = parse_fields(text, "date", style)?;
    match fields.infinity {
        Some(true) => return Ok(DATE_INFINITY),
        Some(false) => return Ok(DATE_MINUS_INFINITY),
        None => {}
    }
    if fields.epoch {
        return Ok(-10_957);
    }
    let (year, month, day) = fields.date.ok_or_else(|| bad("date", text))?;
    check_date(days_from_civil(year, month, day)).map_err(|_| {
        SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("date out of range: \"{text}\""))
    })
}

/// Reads a `time`.
pub(crate) fn parse_time(text: &str, style: &Style) -> SqlResult<i64> {
    let fields = parse_fields(text, "time", style)?;
    fields.time.ok_or_else(|| bad("time", text))
}

/// Reads a `timestamp`, or a `timestamptz`.
pub(crate) fn parse_timestamp(text: &str, style: &Style, zoned: bool) -> SqlResult<i64> {
    if let Some((day, time, zone)) = iso::moment(text) {
        let local = day * MICROS_PER_DAY + time;
        let zone = zone.map_or(style.zone, TimeZone::Fixed);
        return Ok(if zoned { zone.to_utc(local) } else { local });
    }
    let type_name = if zoned { "timestamp with time zone" } else { "timestamp" };
    let fields = parse_fields(text, type_name, style)?;
    match fields.infinity {
        Some(true) => return Ok(i64::MAX),
        Some(false) => return Ok(i64::MIN),
        None => {}
    }
    if fields.epoch {
        return Ok(-UNIX_EPOCH_MICROS);
    }
    let (year, month, day) = fields.date.ok_or_else(|| bad(type_name, text))?;
    let local = i128::from(days_from_civil(year, month, day)) * i128::from(MICROS_PER_DAY)
        + i128::from(fields.time.unwrap_or(0));
    let range = |_| {
        SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("timestamp out of range: \"{text}\""),
        )
    };
    let local = check_timestamp(local).map_err(range)?;
    if !zoned {
        return Ok(local);
    }
    let zone = fields.zone.unwrap_or(style.zone);
    check_timestamp(i128::from(zone.to_utc(local))).map_err(range)
}

/// The fields of a moment as the reader reads them; `None` if it refuses them.
#[cfg(test)]
pub(super) fn as_read(text: &str, style: &Style) -> Option<Fields> {
    parse_fields(text, "timestamp", style).ok()
}
