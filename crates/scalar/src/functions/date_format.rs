//! `to_char` of timestamps and intervals: the patterns and what each writes.
//!
//! Patterns are recognised in the case in which they are listed; `FM` and `TM` before and `TH`
//! behind a pattern belong to that pattern alone; text in double quotes is copied.

use braid_types::{
    Interval, MICROS_PER_DAY, MICROS_PER_SECOND, SqlError, SqlResult, SqlState, TimeZone,
    civil_from_days, days_from_civil,
};

use super::calendar::{DAYS, MONTHS, ROMAN, iso_week, iso_year_start, weekday_monday};

/// A pattern of the format with what stands around it, or a character to copy.
pub(super) enum Node<'a> {
    Pattern { name: &'static str, lower: bool, fill: bool, ordinal: Option<bool>, text: &'a str },
    Text(char),
}

/// Longest first among those that begin alike.
const PATTERNS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "Day", "Dy", "D",
    "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW",
    "IYYY", "IYY", "IY", "I", "J", "MI", "MM", "MONTH", "MON", "MS", "Month", "Mon", "OF", "P.M.",
    "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY",
    "YYY", "YY", "Y",
];

/// The pattern at the start of a text: its name, whether it was written in lower case, its length.
fn find_pattern(text: &str) -> Option<(&'static str, bool, usize)> {
    PATTERNS.iter().find_map(|name| {
        let head = text.get(..name.len())?;
        let lower =
            head == name.to_ascii_lowercase() && name.chars().all(|c| !c.is_ascii_lowercase());
        (head == *name || lower).then_some((*name, lower && head != *name, name.len()))
    })
}

/// Splits a format.
pub(super) fn nodes(format: &str) -> Vec<Node<'_>> {
    let mut out = Vec::new();
    let mut rest = format;
    while let Some(c) = rest.chars().next() {
        let (mut fill, mut after) = (true, rest);
        loop {
            if let Some(tail) = after.strip_prefix("FM").or_else(|| after.strip_prefix("fm")) {
                fill = false;
                after = tail;
            } else if let Some(tail) = after.strip_prefix("TM").or_else(|| after.strip_prefix("tm"))
            {
                // Names of a language are as long as they are.
                let names = ["MONTH", "DAY"];
                let head = tail.get(..5).unwrap_or(tail).to_ascii_uppercase();
                fill &= !names.iter().any(|name| head.starts_with(name));
                after = tail;
            } else {
                break;
            }
        }
        if let Some((name, lower, length)) = find_pattern(after) {
            let text = &after[..length];
            after = &after[length..];
            let mut ordinal = None;
            if after.starts_with("TH") || after.starts_with("th") {
                ordinal = Some(after.starts_with("TH"));
                after = &after[2..];
            }
            out.push(Node::Pattern { name, lower, fill, ordinal, text });
            rest = after;
            continue;
        }
        if after.len() < rest.len() {
            // A modifier without a pattern writes nothing.
            rest = after;
            continue;
        }
        if c == '"' {
            rest = &rest[1..];
            while let Some(c) = rest.chars().next() {
                rest = &rest[c.len_utf8()..];
                match c {
                    '"' => break,
                    '\\' => {
                        if let Some(next) = rest.chars().next() {
                            rest = &rest[next.len_utf8()..];
                            out.push(Node::Text(next));
                        }
                    }
                    c => out.push(Node::Text(c)),
                }
            }
            continue;
        }
        if c == '\\' && rest[1..].starts_with('"') {
            out.push(Node::Text('"'));
            rest = &rest[2..];
            continue;
        }
        out.push(Node::Text(c));
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// The fields that patterns show.
struct Fields {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// Days since 2000-01-01; for intervals as if they were a date of the first years.
    days: i64,
    day_of_year: i64,
    interval: bool,
    zone: Option<(String, i64)>,
}

fn not_for_interval() -> SqlError {
    SqlError::new(
        SqlState::INVALID_DATETIME_FORMAT,
        "invalid format specification for an interval value",
    )
    .with_hint("Intervals are not tied to specific calendar dates.")
}

/// `to_char(timestamp, format)`; the zone is given for `timestamptz`.
pub(super) fn write_timestamp(
    local: i64,
    zone: Option<(&TimeZone, i64)>,
    format: &str,
) -> SqlResult<String> {
    let days = local.div_euclid(MICROS_PER_DAY);
    let time = local.rem_euclid(MICROS_PER_DAY);
    let (year, month, day) = civil_from_days(days);
    let zone = zone.map(|(z, utc)| (z.abbreviation_at(utc), i64::from(z.offset_at_utc(utc))));
    write(
        &Fields {
            year,
            month,
            day,
            hour: time / (3600 * MICROS_PER_SECOND),
            minute: time / (60 * MICROS_PER_SECOND) % 60,
            second: time / MICROS_PER_SECOND % 60,
            micros: time % MICROS_PER_SECOND,
            days,
            day_of_year: days - days_from_civil(year, 1, 1) + 1,
            interval: false,
            zone,
        },
        format,
    )
}

/// The Julian day that PostgreSQL counts for an interval's years, months and days: the formula for
/// dates, in whole numbers of 32 bits that go round and are rounded towards zero, with a month that
/// may be zero.
fn julian_of_span(year: i64, month: i64, day: i64) -> i64 {
    let (y, m) = if month > 2 { (year + 4800, month + 1) } else { (year + 4799, month + 13) };
    let century = y / 100;
    let days = y * 365 - 32_167 + y / 4 - century + century / 4 + 7834 * m / 256 + day;
    i64::from(days as i32)
}

/// `to_char(interval, format)`.
pub(super) fn write_interval(i: &Interval, format: &str) -> SqlResult<String> {
    let (year, month) = (i64::from(i.months / 12), i64::from(i.months % 12));
    let seconds = i.micros / MICROS_PER_SECOND;
    write(
        &Fields {
            year,
            month,
            day: i64::from(i.days),
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            micros: i.micros % MICROS_PER_SECOND,
            days: julian_of_span(year, month, i64::from(i.days)) - 2_451_545,
            // PostgreSQL counts with 32 bits, and goes round.
            day_of_year: i64::from(i.months.wrapping_mul(30).wrapping_add(i.days)),
            interval: true,
            zone: None,
        },
        format,
    )
}

/// A number in at least so many places, zeros in front; a minus takes a place of its own.
fn padded(value: i64, width: usize, fill: bool) -> String {
    match (fill, value < 0) {
        (false, _) => value.to_string(),
        (true, true) => format!("-{:0width$}", -value),
        (true, false) => format!("{value:0width$}"),
    }
}

/// A number in at least so many places; a minus takes one of them.
fn placed(value: i64, width: usize, fill: bool) -> String {
    if fill { format!("{value:0width$}") } else { value.to_string() }
}

/// 0 for Sunday, of a Julian day, rounded towards zero.
fn weekday_of_span(day: i64) -> i64 {
    (day + 1) % 7 + if (day + 1) % 7 < 0 { 7 } else { 0 }
}

/// Monday of the first ISO week of a year of an interval, from 2000-01-01.
fn iso_start_of_span(year: i64) -> i64 {
    let fourth = julian_of_span(year, 1, 4);
    fourth - weekday_of_span(fourth - 1) - 2_451_545
}

/// ISO year and week that PostgreSQL counts for an interval as if it were a date.
fn iso_week_of_span(year: i64, days: i64) -> (i64, i64) {
    let year = if days < iso_start_of_span(year) { year - 1 } else { year };
    let week = (days - iso_start_of_span(year)) / 7 + 1;
    let next = iso_start_of_span(year + 1);
    match week >= 52 && days >= next {
        true => (year + 1, (days - next) / 7 + 1),
        false => (year, week),
    }
}

fn write(f: &Fields, format: &str) -> SqlResult<String> {
    let mut out = String::new();
    for node in nodes(format) {
        match node {
            Node::Text(c) => out.push(c),
            Node::Pattern { name, lower, fill, ordinal, .. } => {
                let (text, number) = show(f, name, lower, fill)?;
                out.push_str(&text);
                if let (Some(upper), true) = (ordinal, number) {
                    out.push_str(super::number_format::ordinal(&text, upper));
                }
            }
        }
    }
    Ok(out)
}

/// The text of a pattern, and whether it is a number that takes `TH`.
fn show(f: &Fields, name: &str, lower: bool, fill: bool) -> SqlResult<(String, bool)> {
    if let Some(text) = show_name(f, name, lower, fill)? {
        return Ok((text, false));
    }
    let shown_year = if f.year <= 0 && !f.interval { 1 - f.year } else { f.year };
    let hour12 = if f.hour % 12 == 0 { 12 } else { f.hour % 12 };
    let calendar = |value: i64| if f.interval { Err(not_for_interval()) } else { Ok(value) };
    let iso = || match f.interval {
        true => iso_week_of_span(f.year, f.days),
        false => iso_week(f.days),
    };
    let (value, width) = match name {
        "HH24" => (f.hour, 2),
        // A sign has its place, also where the hour that is shown has none.
        "HH12" | "HH" => (hour12, if f.hour < 0 && hour12 > 0 { 3 } else { 2 }),
        "MI" => (f.minute, 2),
        "SS" => (f.second, 2),
        "MS" => return Ok((format!("{:03}", f.micros / 1000), true)),
        "US" => return Ok((format!("{:06}", f.micros), true)),
        "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let digits = usize::from(name.as_bytes()[2] - b'0');
            let part = f.micros / 10i64.pow(6 - digits as u32);
            return Ok((format!("{part:0digits$}"), true));
        }
        "SSSS" | "SSSSS" => {
            return Ok(((f.hour * 3600 + f.minute * 60 + f.second).to_string(), true));
        }
        "MM" => (f.month, 2),
        "DDD" => return Ok((placed(f.day_of_year, 3, fill), true)),
        "IDDD" => {
            let (year, _) = iso();
            let start = if f.interval { iso_start_of_span(year) } else { iso_year_start(year) };
            return Ok((placed(f.days - start + 1, 3, fill), true));
        }
        "DD" => return Ok((placed(f.day, 2, fill), true)),
        "D" => (calendar((weekday_monday(f.days) + 1) % 7 + 1)?, 0),
        "ID" => (calendar(weekday_monday(f.days) + 1)?, 0),
        "WW" => return Ok((placed((f.day_of_year - 1) / 7 + 1, 2, fill), true)),
        "IW" => return Ok((placed(iso().1, 2, fill), true)),
        "W" => ((f.day - 1) / 7 + 1, 0),
        "Q" if f.month == 0 => return Ok((String::new(), false)),
        "Q" => ((f.month - 1) / 3 + 1, 0),
        "CC" => {
            let century = match (f.interval, f.year > 0) {
                (true, _) => f.year / 100,
                (_, true) => (f.year - 1) / 100 + 1,
                _ => f.year / 100 - 1,
            };
            (century, 2)
        }
        "Y,YYY" => {
            return Ok((format!("{},{:03}", shown_year / 1000, shown_year % 1000), true));
        }
        "YYYY" => (shown_year, 4),
        "YYY" => (shown_year % 1000, 3),
        "YY" => (shown_year % 100, 2),
        "Y" => (shown_year % 10, 1),
        "IYYY" | "IYY" | "IY" | "I" => {
            let (year, _) = iso();
            // The years of an interval are a count, not years of the calendar.
            let year = if year <= 0 && !f.interval { 1 - year } else { year };
            let (value, width) = match name {
                "IYYY" => (year, 4),
                "IYY" => (year % 1000, 3),
                "IY" => (year % 100, 2),
                _ => (year % 10, 1),
            };
            // The places are those that the other calendar's year takes.
            return Ok((placed(value, width + usize::from(f.interval && f.year < 0), fill), true));
        }
        "J" => (f.days + 2_451_545, 0),
        _ => return Ok((String::new(), false)),
    };
    Ok((padded(value, width, fill), true))
}

/// The patterns that write words.
fn show_name(f: &Fields, name: &str, lower: bool, fill: bool) -> SqlResult<Option<String>> {
    let cased = |text: &str| if lower { text.to_lowercase() } else { text.to_string() };
    let wide = |text: String| if fill { format!("{text:<9}") } else { text };
    let month = || -> SqlResult<&'static str> {
        if f.interval {
            return Err(not_for_interval());
        }
        Ok(MONTHS[(f.month - 1) as usize])
    };
    let day = || -> SqlResult<&'static str> {
        if f.interval {
            return Err(not_for_interval());
        }
        Ok(DAYS[weekday_monday(f.days) as usize])
    };
    // Before midnight is before noon.
    let afternoon = f.hour % 24 >= 12;
    Ok(Some(match name {
        "A.M." | "P.M." => cased(if afternoon { "P.M." } else { "A.M." }),
        "AM" | "PM" => cased(if afternoon { "PM" } else { "AM" }),
        "AD" | "BC" | "A.D." | "B.C." => {
            if f.interval {
                return Err(not_for_interval());
            }
            let dotted = name.contains('.');
            cased(match (f.year <= 0, dotted) {
                (true, true) => "B.C.",
                (true, false) => "BC",
                (false, true) => "A.D.",
                (false, false) => "AD",
            })
        }
        "MONTH" if lower => wide(month()?.to_lowercase()),
        "MONTH" => wide(month()?.to_uppercase()),
        "Month" => wide(month()?.to_string()),
        "MON" if lower => month()?[..3].to_lowercase(),
        "MON" => month()?[..3].to_uppercase(),
        "Mon" => month()?[..3].to_string(),
        "DAY" if lower => wide(day()?.to_lowercase()),
        "DAY" => wide(day()?.to_uppercase()),
        "Day" => wide(day()?.to_string()),
        "DY" if lower => day()?[..3].to_lowercase(),
        "DY" => day()?[..3].to_uppercase(),
        "Dy" => day()?[..3].to_string(),
        "RM" => {
            if f.month == 0 && f.year == 0 {
                return Ok(Some(String::new()));
            }
            // Months of negative intervals are counted from the end of the list.
            let at = match f.month {
                0 if f.year < 0 => 0,
                months if months < 0 => 12 + months,
                months => (months - 1).rem_euclid(12),
            } as usize;
            let text = cased(ROMAN[at]);
            if fill { format!("{text:<4}") } else { text }
        }
        "TZ" | "TZH" | "TZM" | "OF" if f.interval => return Err(not_for_interval()),
        "TZ" => f.zone.as_ref().map_or(String::new(), |(name, _)| {
            if lower { name.to_lowercase() } else { name.to_uppercase() }
        }),
        "TZH" | "TZM" | "OF" => {
            let offset = f.zone.as_ref().map_or(0, |(_, seconds)| *seconds);
            let sign = if offset < 0 { '-' } else { '+' };
            let (hours, minutes) = (offset.abs() / 3600, offset.abs() / 60 % 60);
            match name {
                "TZH" => format!("{sign}{hours:02}"),
                "TZM" => format!("{minutes:02}"),
                _ => {
                    let hours = if fill { format!("{hours:02}") } else { hours.to_string() };
                    let tail = if minutes == 0 { String::new() } else { format!(":{minutes:02}") };
                    format!("{sign}{hours}{tail}")
                }
            }
        }
        "FX" => String::new(),
        _ => return Ok(None),
    }))
}
