//! Dates, times and timestamps: the calendar and the text forms.
//!
//! The epoch is 2000-01-01, as on the PostgreSQL wire. Days are `i32`, times and timestamps are
//! microseconds in `i64`. The two ends of each integer are the infinities.

use crate::time_zone::offset_text;
use crate::{SqlError, SqlResult, SqlState, TimeZone};

/// Microseconds in a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds in a day.
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// Microseconds from 1970-01-01 to 2000-01-01.
pub const UNIX_EPOCH_MICROS: i64 = 946_684_800 * MICROS_PER_SECOND;
/// `infinity` of `date`.
pub const DATE_INFINITY: i32 = i32::MAX;
/// `-infinity` of `date`.
pub const DATE_MINUS_INFINITY: i32 = i32::MIN;

/// First day that `date` can hold: 4714-11-24 BC.
const MIN_DAYS: i64 = -2_451_545;
/// First day after those of `date`: 5874898-01-01.
const END_DAYS: i64 = 2_145_031_949;
/// First microsecond after those of `timestamp`: 294277-01-01.
const END_MICROS: i64 = 9_223_371_331_200_000_000;

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

/// Writes a date in ISO form.
pub(crate) fn date_text(days: i32) -> String {
    match days {
        DATE_INFINITY => "infinity".to_string(),
        DATE_MINUS_INFINITY => "-infinity".to_string(),
        _ => {
            let (year, month, day) = civil_from_days(i64::from(days));
            if year > 0 {
                format!("{year:04}-{month:02}-{day:02}")
            } else {
                format!("{:04}-{month:02}-{day:02} BC", 1 - year)
            }
        }
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

/// Writes a timestamp; with a zone, its wall-clock time there and the offset.
pub(crate) fn timestamp_text(micros: i64, zone: Option<&TimeZone>) -> String {
    match micros {
        i64::MAX => return "infinity".to_string(),
        i64::MIN => return "-infinity".to_string(),
        _ => {}
    }
    let local = zone.map_or(micros, |z| z.to_local(micros));
    let (year, month, day) = civil_from_days(local.div_euclid(MICROS_PER_DAY));
    let shown_year = if year > 0 { year } else { 1 - year };
    let mut text = format!(
        "{shown_year:04}-{month:02}-{day:02} {}",
        time_text(local.rem_euclid(MICROS_PER_DAY))
    );
    if let Some(zone) = zone {
        text.push_str(&offset_text(zone.offset_at_utc(micros)));
    }
    if year <= 0 {
        text.push_str(" BC");
    }
    text
}

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

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

fn month_number(word: &str) -> Option<i64> {
    if word.len() < 3 {
        return None;
    }
    MONTHS.iter().position(|m| m.starts_with(word)).map(|at| at as i64 + 1)
}

/// Splits and reads a date/time text: ISO, `Jan 5 2020`, `5 January 2020`, `1/5/2020` (month
/// first), `20200105`, times with fraction and AM/PM, zones as offset or name, BC, infinity.
pub(crate) fn parse_fields(text: &str, type_name: &str) -> SqlResult<Fields> {
    let mut fields = Fields::default();
    let lowered = text.trim().to_lowercase();
    match lowered.as_str() {
        "infinity" | "+infinity" => fields.infinity = Some(true),
        "-infinity" => fields.infinity = Some(false),
        "epoch" => fields.epoch = true,
        "now" | "today" | "tomorrow" | "yesterday" | "allballs" => {
            return Err(SqlError::unsupported(format!("the date/time input \"{lowered}\""))
                .with_hint("Use now() or current_date."));
        }
        _ => {}
    }
    if fields.infinity.is_some() || fields.epoch {
        return Ok(fields);
    }
    let mut loose: Vec<i64> = Vec::new();
    let mut month_word: Option<(i64, usize)> = None;
    let mut bc = false;
    for part in split_words(&lowered) {
        let part = part.as_str();
        if part.contains(':') && !part.starts_with(['+', '-']) {
            let (time, zone) = split_zone(part);
            fields.time = Some(parse_clock(time, text, type_name)?);
            if let Some(zone) = zone {
                fields.zone = Some(TimeZone::parse(zone).ok_or_else(|| bad(type_name, text))?);
            }
        } else if part == "bc" {
            bc = true;
        } else if part == "ad" {
        } else if part == "am" || part == "pm" {
            let time = fields.time.ok_or_else(|| bad(type_name, text))?;
            let hour = time / (3600 * MICROS_PER_SECOND);
            if !(1..=12).contains(&hour) {
                return Err(out_of_range(text));
            }
            let shift = match (part, hour) {
                ("am", 12) => -12,
                ("pm", h) if h < 12 => 12,
                _ => 0,
            };
            fields.time = Some(time + shift * 3600 * MICROS_PER_SECOND);
        } else if let Some(month) = month_number(part) {
            month_word = Some((month, loose.len()));
        } else if part.len() >= 3 && WEEKDAYS.iter().any(|d| d.starts_with(part)) {
        } else if part.bytes().all(|b| b.is_ascii_digit()) {
            if part.len() == 8 && fields.date.is_none() {
                fields.date = Some((num(&part[..4]), num(&part[4..6]), num(&part[6..])));
            } else if part.len() == 6 && fields.date.is_some() {
                let clock = format!("{}:{}:{}", &part[..2], &part[2..4], &part[4..]);
                fields.time = Some(parse_clock(&clock, text, type_name)?);
            } else {
                loose.push(part.parse().map_err(|_| bad(type_name, text))?);
            }
        } else if part.starts_with(|c: char| c.is_ascii_digit()) && fields.date.is_none() {
            fields.date = Some(parse_date_word(part).ok_or_else(|| bad(type_name, text))?);
        } else if let Some(zone) = TimeZone::parse(part) {
            fields.zone = Some(zone);
        } else {
            return Err(bad(type_name, text));
        }
    }
    if let Some((month, at)) = month_word {
        let (day, year) = match (loose.as_slice(), at) {
            ([day, year], _) if *day <= 31 => (*day, *year),
            ([year, day], _) => (*day, *year),
            _ => return Err(bad(type_name, text)),
        };
        fields.date = Some((year, month, day));
    } else if !loose.is_empty() {
        return Err(bad(type_name, text));
    }
    if let Some((year, month, day)) = &mut fields.date {
        if bc {
            *year = 1 - *year;
        } else if *year == 0 {
            return Err(out_of_range(text));
        }
        if !(1..=12).contains(month) || *day < 1 || *day > month_days(*year, *month) {
            return Err(out_of_range(text));
        }
    }
    Ok(fields)
}

fn num(digits: &str) -> i64 {
    digits.parse().unwrap_or(0)
}

/// Words separated by blanks, commas, and the `t` between an ISO date and its time.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in text.split([' ', ',', '\t', '\n']).filter(|w| !w.is_empty()) {
        let bytes = word.as_bytes();
        let split = word.find('t').filter(|&at| {
            at > 0
                && bytes[at - 1].is_ascii_digit()
                && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
        });
        match split {
            Some(at) => {
                words.push(word[..at].to_string());
                words.push(word[at + 1..].to_string());
            }
            None => match word.strip_suffix("am").or_else(|| word.strip_suffix("pm")) {
                Some(front) if front.contains(':') => {
                    words.push(front.to_string());
                    words.push(word[front.len()..].to_string());
                }
                _ => words.push(word.to_string()),
            },
        }
    }
    words
}

/// `12:00:00+02` into time and zone.
fn split_zone(word: &str) -> (&str, Option<&str>) {
    match word.find(|c: char| c == '+' || c == '-' || c.is_ascii_alphabetic()) {
        Some(at) => (&word[..at], Some(&word[at..])),
        None => (word, None),
    }
}

fn parse_date_word(word: &str) -> Option<(i64, i64, i64)> {
    let separator = word.find(['-', '/', '.']).map(|at| &word[at..=at])?;
    let parts: Vec<&str> = word.split(separator).collect();
    let [a, b, c] = parts.as_slice() else {
        return None;
    };
    let int = |s: &str| -> Option<i64> {
        if s.is_empty() || s.len() > 9 || !s.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        s.parse().ok()
    };
    if let Some(month) = month_number(b) {
        return Some(if a.len() > 2 {
            (int(a)?, month, int(c)?)
        } else {
            (year_of(c)?, month, int(a)?)
        });
    }
    if a.len() >= 3 {
        Some((int(a)?, int(b)?, int(c)?))
    } else {
        Some((year_of(c)?, int(a)?, int(b)?))
    }
}

fn year_of(digits: &str) -> Option<i64> {
    if !digits.bytes().all(|b| b.is_ascii_digit()) || digits.len() > 9 {
        return None;
    }
    let year: i64 = digits.parse().ok()?;
    Some(match digits.len() {
        1 | 2 if year < 70 => year + 2000,
        1 | 2 => year + 1900,
        _ => year,
    })
}

fn parse_clock(word: &str, text: &str, type_name: &str) -> SqlResult<i64> {
    let mut parts = word.split(':');
    let field = |what: Option<&str>| -> SqlResult<i64> {
        match what {
            Some(s) if !s.is_empty() && s.len() <= 2 && s.bytes().all(|b| b.is_ascii_digit()) => {
                Ok(num(s))
            }
            _ => Err(bad(type_name, text)),
        }
    };
    let hours = field(parts.next())?;
    let minutes = field(parts.next())?;
    let (mut seconds, mut micros) = (0, 0);
    if let Some(part) = parts.next() {
        let (whole, fraction) = part.split_once('.').unwrap_or((part, ""));
        seconds = field(Some(whole))?;
        micros = fraction_micros(fraction).ok_or_else(|| bad(type_name, text))?;
    }
    if parts.next().is_some() {
        return Err(bad(type_name, text));
    }
    let total = ((hours * 60 + minutes) * 60 + seconds) * MICROS_PER_SECOND + micros;
    if hours > 24 || minutes > 59 || seconds > 60 || total > MICROS_PER_DAY {
        return Err(out_of_range(text));
    }
    Ok(total)
}

/// Digits after the point to microseconds, rounded.
pub(crate) fn fraction_micros(digits: &str) -> Option<i64> {
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut micros = 0;
    for at in 0..6 {
        micros = micros * 10 + digits.as_bytes().get(at).map_or(0, |b| i64::from(b - b'0'));
    }
    if digits.as_bytes().get(6).is_some_and(|b| *b >= b'5') {
        micros += 1;
    }
    Some(micros)
}

/// Reads a `date`.
pub(crate) fn parse_date(text: &str) -> SqlResult<i32> {
    let fields = parse_fields(text, "date")?;
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
pub(crate) fn parse_time(text: &str) -> SqlResult<i64> {
    let fields = parse_fields(text, "time")?;
    fields.time.ok_or_else(|| bad("time", text))
}

/// Reads a `timestamp`, or with a zone a `timestamptz`.
pub(crate) fn parse_timestamp(text: &str, zone: Option<&TimeZone>) -> SqlResult<i64> {
    let type_name = if zone.is_some() { "timestamp with time zone" } else { "timestamp" };
    let fields = parse_fields(text, type_name)?;
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
    match zone {
        None => Ok(local),
        Some(session) => {
            let zone = fields.zone.unwrap_or(*session);
            check_timestamp(i128::from(zone.to_utc(local))).map_err(range)
        }
    }
}
