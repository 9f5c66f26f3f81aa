//! Dates and timestamps: moved, compared by parts, cut off, made and taken apart.

use braid_types::{
    Datum, MICROS_PER_DAY, MICROS_PER_SECOND, SqlError, SqlResult, SqlType, Style, TimeZone,
    UNIX_EPOCH_MICROS, check_date, check_timestamp, days_from_civil,
};

use super::civil::{Part, add_months};
use super::guests::invalid;
use crate::ArgType;
use crate::functions::datetime::zone_of;
use crate::functions::{i64_of, interval_of, text_of};
use crate::registry::{Eval, Table};

fn unknown(part: &str, of: &str) -> SqlError {
    invalid(format!("a valid date part for {of} is needed, not {part}"))
}

fn part_of(value: &Datum, function: &str) -> SqlResult<Part> {
    let name = text_of(value).to_lowercase();
    Part::named(&name).ok_or_else(|| unknown(&name, function))
}

/// Days of a date; infinities have none.
fn days_of(value: &Datum) -> SqlResult<i64> {
    match value {
        Datum::Date(i32::MAX | i32::MIN) => Err(invalid("infinity has no date parts")),
        Datum::Date(days) => Ok(i64::from(*days)),
        _ => Ok(0),
    }
}

fn micros_of(value: &Datum) -> SqlResult<i64> {
    match value {
        Datum::Timestamp(i64::MAX | i64::MIN) | Datum::TimestampTz(i64::MAX | i64::MIN) => {
            Err(invalid("infinity has no date parts"))
        }
        Datum::Timestamp(micros) | Datum::TimestampTz(micros) => Ok(*micros),
        _ => Ok(0),
    }
}

/// A date later or earlier by an interval of days, weeks, months, quarters or years.
fn moved(a: &[Datum], sign: i64, function: &str) -> SqlResult<Datum> {
    if matches!(a[0], Datum::Date(i32::MAX | i32::MIN)) {
        return Ok(a[0].clone());
    }
    let by = interval_of(&a[1]);
    if by.micros != 0 {
        let text = format!("{function} takes an interval of days, weeks, months or years");
        return Err(invalid(text).with_hint("TIMESTAMP_ADD adds hours and less."));
    }
    let range =
        || SqlError::new(braid_types::SqlState::DATETIME_FIELD_OVERFLOW, "date out of range");
    let day = add_months(days_of(&a[0])?, sign * i64::from(by.months)).ok_or_else(range)?;
    Ok(Datum::Date(check_date(day + sign * i64::from(by.days))?))
}

/// Micros of a unit of a fixed length.
fn length_of(part: &str) -> Option<i64> {
    Some(match part {
        "microsecond" => 1,
        "millisecond" => 1_000,
        "second" => MICROS_PER_SECOND,
        "minute" => 60 * MICROS_PER_SECOND,
        "hour" => 3600 * MICROS_PER_SECOND,
        "day" => MICROS_PER_DAY,
        _ => return None,
    })
}

/// Whole units between two moments.
fn timestamp_diff(a: &[Datum]) -> SqlResult<Datum> {
    let (later, earlier) = (micros_of(&a[0])?, micros_of(&a[1])?);
    let part = text_of(&a[2]).to_lowercase();
    let between = i128::from(later) - i128::from(earlier);
    let units = match (part.as_str(), length_of(&part)) {
        ("nanosecond", _) => between * 1_000,
        (_, Some(length)) => between / i128::from(length),
        (part, None) => return Err(unknown(part, "TIMESTAMP_DIFF")),
    };
    let range =
        || SqlError::new(braid_types::SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range");
    Ok(Datum::Int8(i64::try_from(units).map_err(|_| range())?))
}

/// A local time cut off to a part.
fn truncated(part: &str, local: i64) -> SqlResult<i64> {
    let day = local.div_euclid(MICROS_PER_DAY);
    if let Some(part) = Part::named(part) {
        return Ok(part.begin(day) * MICROS_PER_DAY);
    }
    match length_of(part) {
        Some(length) => Ok(local.div_euclid(length) * length),
        None => Err(unknown(part, "TIMESTAMP_TRUNC")),
    }
}

/// A moment cut off to a part of the time of a zone.
fn cut(value: &Datum, part: &Datum, zone: &TimeZone) -> SqlResult<Datum> {
    let Datum::TimestampTz(at) = value else { return Ok(Datum::Null) };
    if matches!(*at, i64::MAX | i64::MIN) {
        return Ok(value.clone());
    }
    let part = text_of(part).to_lowercase();
    let local = truncated(&part, zone.to_local(*at))?;
    // Times of a day are cut off within it, also where it is changed.
    let at = match length_of(&part).filter(|_| part != "day") {
        Some(_) => *at - (zone.to_local(*at) - local),
        None => zone.to_utc(local),
    };
    Ok(Datum::TimestampTz(check_timestamp(at.into())?))
}

fn moving(t: &mut Table) {
    t.add("date_add(date, interval) date -- a date so much later", |a, _| moved(a, 1, "DATE_ADD"));
    t.add("date_sub(date, interval) date -- a date so much earlier", |a, _| {
        moved(a, -1, "DATE_SUB")
    });
    let moments: fn(&[ArgType]) -> bool = |args| {
        let time = |ty: &ArgType| {
            *ty == ArgType::Exact(SqlType::Timestamp) || *ty == ArgType::Exact(SqlType::TimestampTz)
        };
        let span = ArgType::Exact(SqlType::Interval);
        matches!(args, [first, second] if time(first) && *second == span)
    };
    t.alias("timestamp_add", ("+", "a moment so much later"), moments);
    t.alias("timestamp_sub", ("-", "a moment so much earlier"), moments);
}

fn comparing(t: &mut Table) {
    const ABOUT: &str =
        "date_diff(date, date, text) int8 -- how many days, weeks, months .. begin between";
    t.add(ABOUT, |a, _| {
        let part = part_of(&a[2], "DATE_DIFF")?;
        Ok(Datum::Int8(part.between(days_of(&a[0])?, days_of(&a[1])?)))
    });
    const WHOLE: &str = "timestamp_diff(timestamptz, timestamptz, text) int8 -- whole seconds, \
         hours, days .. between";
    t.add(WHOLE, |a, _| timestamp_diff(a));
    t.add("timestamp_diff(timestamp, timestamp, text) int8", |a, _| timestamp_diff(a));
}

fn cutting(t: &mut Table) {
    t.add(
        "timestamp_trunc(timestamptz, text) timestamptz -- cut off to a part; weeks begin on \
         Sunday",
        |a, c| cut(&a[0], &a[1], &c.style.zone),
    )
    .stable();
    t.add("timestamp_trunc(timestamptz, text, text) timestamptz", |a, _| {
        cut(&a[0], &a[1], &zone_of(text_of(&a[2]))?)
    });
    t.add("timestamp_trunc(timestamp, text) timestamp", |a, _| {
        if matches!(a[0], Datum::Timestamp(i64::MAX | i64::MIN)) {
            return Ok(a[0].clone());
        }
        let local = truncated(&text_of(&a[1]).to_lowercase(), micros_of(&a[0])?)?;
        Ok(Datum::Timestamp(check_timestamp(local.into())?))
    });
    t.add("timestamp_trunc(date, text) date", |a, _| {
        if matches!(a[0], Datum::Date(i32::MAX | i32::MIN)) {
            return Ok(a[0].clone());
        }
        let part = part_of(&a[1], "DATE_TRUNC")?;
        Ok(Datum::Date(check_date(part.begin(days_of(&a[0])?))?))
    });
    t.add("last_day(date) date -- the last day of the month, or of another part", |a, _| {
        last_day(&a[0], Part::Month)
    });
    t.add("last_day(date, text) date", |a, _| last_day(&a[0], part_of(&a[1], "LAST_DAY")?));
}

fn last_day(value: &Datum, part: Part) -> SqlResult<Datum> {
    let begin = part.begin(days_of(value)?);
    let next = match part {
        Part::Day => Some(begin + 1),
        Part::Week(_) => Some(begin + 7),
        Part::Month => add_months(begin, 1),
        Part::Quarter => add_months(begin, 3),
        Part::Year => add_months(begin, 12),
        // Its length is 52 or 53 weeks: a day of the next one is surely 54 weeks on.
        Part::IsoYear => Some(part.begin(begin + 54 * 7)),
    };
    match next {
        Some(next) => Ok(Datum::Date(check_date(next - 1)?)),
        None => Ok(Datum::Null),
    }
}

/// Days and moments as numbers since 1970.
fn numbers(t: &mut Table) {
    const EPOCH_DAYS: i64 = UNIX_EPOCH_MICROS / MICROS_PER_DAY;
    fn moment(value: &Datum, unit: i64) -> SqlResult<Datum> {
        let micros = i128::from(i64_of(value)) * i128::from(unit) - i128::from(UNIX_EPOCH_MICROS);
        Ok(Datum::TimestampTz(check_timestamp(micros)?))
    }
    fn number(value: &Datum, unit: i64) -> SqlResult<Datum> {
        let micros = i128::from(micros_of(value)?) + i128::from(UNIX_EPOCH_MICROS);
        Ok(Datum::Int8(micros.div_euclid(unit.into()) as i64))
    }
    t.add("timestamp_seconds(int8) timestamptz -- so many seconds behind 1970", |a, _| {
        moment(&a[0], MICROS_PER_SECOND)
    });
    t.add("timestamp_millis(int8) timestamptz -- so many milliseconds behind 1970", |a, _| {
        moment(&a[0], 1_000)
    });
    t.add("timestamp_micros(int8) timestamptz -- so many microseconds behind 1970", |a, _| {
        moment(&a[0], 1)
    });
    t.add("unix_seconds(timestamptz) int8 -- seconds since 1970", |a, _| {
        number(&a[0], MICROS_PER_SECOND)
    });
    t.add("unix_millis(timestamptz) int8 -- milliseconds since 1970", |a, _| number(&a[0], 1_000));
    t.add("unix_micros(timestamptz) int8 -- microseconds since 1970", |a, _| number(&a[0], 1));
    t.add("date_from_unix_date(int8) date -- so many days behind 1970", |a, _| {
        Ok(Datum::Date(check_date(i64_of(&a[0]).saturating_sub(EPOCH_DAYS))?))
    });
    t.add("unix_date(date) int8 -- days since 1970", |a, _| {
        Ok(Datum::Int8(days_of(&a[0])? + EPOCH_DAYS))
    });
}

/// A moment that a text says, in a zone if it says none itself.
fn moment_in(value: &Datum, zone: &Datum) -> SqlResult<Datum> {
    let zone = zone_of(text_of(zone))?;
    match value {
        Datum::Text(text) => Datum::parse(text, &SqlType::TimestampTz, Style::iso(zone)),
        Datum::Date(i32::MAX) | Datum::Timestamp(i64::MAX) => Ok(Datum::TimestampTz(i64::MAX)),
        Datum::Date(i32::MIN) | Datum::Timestamp(i64::MIN) => Ok(Datum::TimestampTz(i64::MIN)),
        Datum::Date(days) => {
            let local = check_timestamp(i128::from(*days) * i128::from(MICROS_PER_DAY))?;
            Ok(Datum::TimestampTz(check_timestamp(zone.to_utc(local).into())?))
        }
        Datum::Timestamp(local) => {
            Ok(Datum::TimestampTz(check_timestamp(zone.to_utc(*local).into())?))
        }
        _ => Ok(Datum::Null),
    }
}

fn day_in(micros: i64, zone: &TimeZone) -> SqlResult<Datum> {
    Ok(Datum::Date(check_date(zone.to_local(micros).div_euclid(MICROS_PER_DAY))?))
}

fn constructors(t: &mut Table) {
    t.add("date(int8, int8, int8) date -- of year, month, day; of a moment in a zone", |a, _| {
        let [year, month, day] = [&a[0], &a[1], &a[2]].map(i64_of);
        let bad = || invalid(format!("there is no day {year}-{month}-{day}"));
        if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return Err(bad());
        }
        let first = days_from_civil(year, month, 1);
        match add_months(first, 1) {
            Some(next) if first + day <= next => Ok(Datum::Date(check_date(first + day - 1)?)),
            _ => Err(bad()),
        }
    });
    t.add("date(timestamptz, text) date", |a, _| {
        day_in(micros_of(&a[0])?, &zone_of(text_of(&a[1]))?)
    });
    t.add("current_date(text) date", |a, c| day_in(c.statement_micros, &zone_of(text_of(&a[0]))?))
        .stable();
    let made: Eval = |a, _| moment_in(&a[0], &a[1]);
    t.add("timestamp(text, text) timestamptz -- the moment of a text or day in a zone", made);
    t.add("timestamp(date, text) timestamptz", made);
    t.add("timestamp(timestamp, text) timestamptz", made);
    t.add("string(timestamptz, text) text -- the text of a moment in a zone", |a, _| {
        let style = Style::iso(zone_of(text_of(&a[1]))?);
        Ok(a[0].to_text(style).map_or(Datum::Null, Datum::text))
    });
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    moving(t);
    comparing(t);
    cutting(t);
    numbers(t);
    constructors(t);
}
