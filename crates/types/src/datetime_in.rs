//! Text to dates, times and timestamps.

use crate::datetime::{
    DATE_INFINITY, DATE_MINUS_INFINITY, MICROS_PER_DAY, MICROS_PER_SECOND, UNIX_EPOCH_MICROS,
    check_date, check_timestamp, civil_from_days, days_from_civil, month_days,
};
use crate::{DateOrder, SqlError, SqlResult, SqlState, Style, TimeZone};

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

/// The text in lower case, with blanks in place of the punctuation that only divides.
pub(crate) fn without_punctuation(text: &str) -> String {
    let mut in_word = false;
    let mut divided = |c: char| {
        // Names of zones have underscores in them.
        let means = "+-.:/".contains(c) || (c == '_' && in_word);
        in_word = c.is_alphabetic() || (c == '_' && in_word);
        if c.is_ascii_punctuation() && !means { ' ' } else { c }
    };
    text.to_lowercase().chars().map(&mut divided).collect()
}

/// Splits and reads a date/time text: ISO, `Jan 5 2020`, `5 January 2020`, `1/5/2020` (month
/// first), `20200105`, times with fraction and AM/PM, zones as offset or name, BC, infinity.
pub(crate) fn parse_fields(text: &str, type_name: &str, style: &Style) -> SqlResult<Fields> {
    let order = style.order;
    let mut fields = Fields::default();
    let spaced = without_punctuation(text);
    let lowered = spaced.trim();
    match lowered {
        "infinity" | "+infinity" => fields.infinity = Some(true),
        "-infinity" => fields.infinity = Some(false),
        "epoch" => fields.epoch = true,
        "allballs" => fields.time = Some(0),
        _ => {}
    }
    if fields.infinity.is_some() || fields.epoch || fields.time.is_some() {
        return Ok(fields);
    }
    let of_day = matches!(type_name, "time" | "time with time zone");
    let mut loose: Vec<i64> = Vec::new();
    let mut month_word: Option<(i64, usize)> = None;
    let mut bc = false;
    for part in split_words(lowered, of_day) {
        let part = part.as_str();
        if part.contains(':') && !part.starts_with(['+', '-']) {
            let (time, zone) = split_zone(part);
            fields.time = Some(parse_clock(time, text, type_name)?);
            if let Some(zone) = zone {
                fields.zone =
                    Some(TimeZone::parse_input(zone).ok_or_else(|| bad(type_name, text))?);
            }
        } else if let Some(days) = days_from_today(part) {
            let local = style.zone.to_local(style.now);
            fields.date = Some(civil_from_days(local.div_euclid(MICROS_PER_DAY) + days));
            if part == "now" {
                fields.time = Some(local.rem_euclid(MICROS_PER_DAY));
                fields.zone = Some(style.zone);
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
            } else if part.len() == 6 && (fields.date.is_some() || of_day) {
                let clock = format!("{}:{}:{}", &part[..2], &part[2..4], &part[4..]);
                fields.time = Some(parse_clock(&clock, text, type_name)?);
            } else if part.len() == 4 && of_day {
                let clock = format!("{}:{}", &part[..2], &part[2..]);
                fields.time = Some(parse_clock(&clock, text, type_name)?);
            } else {
                loose.push(part.parse().map_err(|_| bad(type_name, text))?);
            }
        } else if part.starts_with(|c: char| c.is_ascii_digit()) && fields.date.is_none() {
            fields.date = Some(parse_date_word(part, order).ok_or_else(|| bad(type_name, text))?);
        } else if let Some(zone) = TimeZone::parse_input(part) {
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

/// How far away the day lies that a word means.
fn days_from_today(word: &str) -> Option<i64> {
    match word {
        "now" | "today" => Some(0),
        "tomorrow" => Some(1),
        "yesterday" => Some(-1),
        _ => None,
    }
}

fn num(digits: &str) -> i64 {
    digits.parse().unwrap_or(0)
}

/// Words separated by blanks, commas, and the `t` between an ISO date and its time.
fn split_words(text: &str, of_day: bool) -> Vec<String> {
    let mut words = Vec::new();
    for word in text.split_ascii_whitespace() {
        let bytes = word.as_bytes();
        // `040506+02`: a date has no sign in it.
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let one_sign = word.bytes().filter(|b| matches!(b, b'+' | b'-')).count() == 1;
        let signed = matches!(bytes.get(digits), Some(b'+' | b'-')) && one_sign;
        if of_day && matches!(digits, 4 | 6) && signed {
            words.extend([word[..digits].to_string(), word[digits..].to_string()]);
            continue;
        }
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

fn parse_date_word(word: &str, order: DateOrder) -> Option<(i64, i64, i64)> {
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
        match order {
            DateOrder::Mdy => Some((year_of(c)?, int(a)?, int(b)?)),
            DateOrder::Dmy => Some((year_of(c)?, int(b)?, int(a)?)),
            DateOrder::Ymd => Some((year_of(a)?, int(b)?, int(c)?)),
        }
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
pub(crate) fn parse_date(text: &str, style: &Style) -> SqlResult<i32> {
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
