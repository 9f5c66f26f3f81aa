//! `to_date` and `to_timestamp` of text by a format.

use braid_types::ordered::timetz;
use braid_types::{
    Datum, MICROS_PER_DAY, MICROS_PER_SECOND, SqlError, SqlResult, SqlState, TimeZone, check_date,
    check_timestamp, days_from_civil,
};

use super::calendar::{DAYS, MONTHS, ROMAN, iso_year_start};
use super::date_format::{Node, nodes};

/// What the text says.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    seconds_of_day: Option<i64>,
    afternoon: Option<bool>,
    twelve: bool,
    before_christ: bool,
    julian: Option<i64>,
    century: Option<i64>,
    week: Option<i64>,
    week_of_month: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    /// From 1 for Sunday.
    weekday: Option<i64>,
    /// 1 or -1, if a zone is given.
    zone_sign: Option<i64>,
    zone_hour: i64,
    zone_minute: i64,
    /// Digits behind the second that count.
    precision: Option<u32>,
    short_year: bool,
    /// Whether the weeks of ISO 8601 are counted; `None` until a field tells.
    iso: Option<bool>,
}

impl Fields {
    /// Fields of the Gregorian calendar do not go together with those of ISO 8601's weeks.
    fn check_convention(&mut self, name: &str) -> SqlResult<()> {
        let iso = match name {
            "IYYY" | "IYY" | "IY" | "I" | "IDDD" | "ID" | "IW" => true,
            "YYYY" | "YYY" | "YY" | "Y" | "Y,YYY" | "MM" | "DD" | "DDD" | "D" | "WW" | "W"
            | "RM" => false,
            name if name.to_ascii_uppercase().starts_with("MON") => false,
            _ => return Ok(()),
        };
        match self.iso.replace(iso) {
            Some(before) if before != iso => {
                Err(malformed("invalid combination of date conventions".to_string()).with_hint(
                    "Do not mix Gregorian and ISO week date conventions in a formatting template.",
                ))
            }
            _ => Ok(()),
        }
    }
}

fn malformed(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

fn out_of_range(text: &str) -> SqlError {
    SqlError::new(
        SqlState::DATETIME_FIELD_OVERFLOW,
        format!("date/time field value out of range: \"{text}\""),
    )
}

/// The text that is left to read.
struct Input<'a> {
    rest: &'a str,
}

impl<'a> Input<'a> {
    fn skip_blanks(&mut self) -> i64 {
        let trimmed = self.rest.trim_start();
        let skipped = self.rest.len() - trimmed.len();
        self.rest = trimmed;
        skipped as i64
    }

    /// A whole number: at most so many characters, or as many digits as there are.
    fn number(&mut self, width: Option<usize>, pattern: &str) -> SqlResult<(i64, usize)> {
        self.skip_blanks();
        let limit = match width {
            Some(n) => self.rest.char_indices().nth(n).map_or(self.rest.len(), |(i, _)| i),
            None => self.rest.len(),
        };
        let piece = &self.rest[..limit];
        let sign = usize::from(piece.starts_with(['-', '+']));
        let digits = piece[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let invalid = || malformed(format!("invalid value \"{piece}\" for \"{pattern}\""));
        if let Some(n) = width
            && piece.chars().count() < n
        {
            return Err(malformed(format!(
                "source string too short for \"{pattern}\" formatting field"
            ))
            .with_detail(format!(
                "Field requires {n} characters, but only {} remain.",
                piece.chars().count()
            ))
            .with_hint(
                "If your source string is not fixed-width, try using the \"FM\" modifier.",
            ));
        }
        if digits == 0 {
            return Err(invalid().with_detail("Value must be an integer."));
        }
        if let Some(n) = width
            && sign + digits < n
        {
            return Err(invalid().with_detail(format!(
                "Field requires {n} characters, but only {} could be parsed.",
                sign + digits
            )));
        }
        let value = piece[..sign + digits].parse::<i64>().map_err(|_| {
            SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("value for \"{pattern}\" in source string is out of range"),
            )
        })?;
        if i32::try_from(value).is_err() {
            return Err(SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("value for \"{pattern}\" in source string is out of range"),
            ));
        }
        self.rest = &self.rest[sign + digits..];
        Ok((value, digits))
    }

    /// One of these words in any case; the longest that fits.
    fn word(&mut self, words: &[&str], pattern: &str) -> SqlResult<i64> {
        let fits =
            |w: &&str| self.rest.get(..w.len()).is_some_and(|head| head.eq_ignore_ascii_case(w));
        let best = words.iter().enumerate().filter(|(_, w)| fits(w)).max_by_key(|(_, w)| w.len());
        match best {
            Some((at, w)) => {
                self.rest = &self.rest[w.len()..];
                Ok(at as i64)
            }
            None => Err(malformed(format!(
                "invalid value \"{}\" for \"{pattern}\"",
                self.rest.chars().take(pattern.len()).collect::<String>()
            ))
            .with_detail(
                "The given value did not match any of the allowed values for this field.",
            )),
        }
    }
}

/// Whether the number before this place in the format ends where its digits end.
fn separated(next: Option<&Node<'_>>) -> bool {
    match next {
        None => true,
        Some(Node::Text(c)) => !c.is_ascii_digit(),
        Some(Node::Pattern { name, .. }) => {
            // Patterns that begin with a letter end the digits.
            matches!(
                *name,
                "MONTH"
                    | "Month"
                    | "MON"
                    | "Mon"
                    | "DAY"
                    | "Day"
                    | "DY"
                    | "Dy"
                    | "AM"
                    | "PM"
                    | "A.M."
                    | "P.M."
                    | "AD"
                    | "BC"
                    | "A.D."
                    | "B.C."
                    | "RM"
                    | "TZ"
                    | "TZH"
                    | "OF"
            )
        }
    }
}

/// Sets a field; one that is given twice has to be the same.
fn once(field: &mut Option<i64>, value: i64, shown: &str) -> SqlResult<()> {
    match field.replace(value) {
        Some(before) if before != 0 && before != value => {
            Err(malformed(format!("conflicting values for \"{shown}\" field in formatting string"))
                .with_detail("This value contradicts a previous setting for the same field type."))
        }
        _ => Ok(()),
    }
}

fn full_year(value: i64, digits: usize) -> i64 {
    match digits {
        0..=3 if value < 70 => value + 2000,
        0..=3 if value < 100 => value + 1900,
        0..=3 if value < 520 => value + 2000,
        0..=3 if value < 1000 => value + 1000,
        _ => value,
    }
}

/// How a text is read.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// As `to_timestamp` does, which skips blanks and forgives separators.
    Leniently,
    /// As SQL/JSON does: sign by sign, from end to end.
    ByTheStandard,
}

fn read(text: &str, format: &str, way: Way) -> SqlResult<Fields> {
    let mut f = Fields::default();
    let list = nodes(format);
    if way == Way::ByTheStandard {
        return read_exactly(text, &list, f);
    }
    let exact = list.iter().any(|n| matches!(n, Node::Pattern { name: "FX", .. }));
    let mut input = Input { rest: text };
    let mut extra = if exact { 0 } else { input.skip_blanks() };
    for (at, node) in list.iter().enumerate() {
        if input.rest.is_empty() && !matches!(node, Node::Text(_)) {
            break;
        }
        match node {
            Node::Text(c) => {
                let separator = |c: char| !c.is_ascii_alphanumeric() && c > ' ' && c < '\u{7f}';
                if c.is_whitespace() || separator(*c) {
                    if exact {
                        let first = input.rest.chars().next();
                        input.rest = first.map_or("", |f| &input.rest[f.len_utf8()..]);
                        continue;
                    }
                    extra -= 1;
                    if let Some(first) =
                        input.rest.chars().next().filter(|f| f.is_whitespace() || separator(*f))
                    {
                        input.rest = &input.rest[first.len_utf8()..];
                        extra += 1;
                    }
                } else if !exact && extra > 0 {
                    extra -= 1;
                } else if let Some(first) = input.rest.chars().next() {
                    input.rest = &input.rest[first.len_utf8()..];
                }
            }
            Node::Pattern { name, fill, ordinal, text: shown, .. } => {
                if !exact {
                    extra += input.skip_blanks();
                }
                let free = !fill || separated(list.get(at + 1));
                if *name == "TZH" {
                    let before = text[..text.len() - input.rest.len()].chars().next_back();
                    f.zone_sign = Some(zone_sign(&mut input, before.filter(|_| extra > 0)));
                }
                field(&mut f, name, shown, free, &mut input)?;
                if ordinal.is_some() {
                    let skip =
                        input.rest.char_indices().nth(2).map_or(input.rest.len(), |(i, _)| i);
                    input.rest = &input.rest[skip..];
                }
                extra = if exact { 0 } else { input.skip_blanks() };
            }
        }
    }
    Ok(f)
}

/// By SQL/JSON: what is no field stands in the text as in the format, and both end together.
fn read_exactly(text: &str, list: &[Node<'_>], mut f: Fields) -> SqlResult<Fields> {
    let mut input = Input { rest: text };
    for (at, node) in list.iter().enumerate() {
        if input.rest.is_empty() {
            let short = "input string is too short for datetime format";
            return Err(malformed(short.to_string()));
        }
        match node {
            Node::Text(c) => match input.rest.strip_prefix(*c) {
                Some(rest) => input.rest = rest,
                None if is_separator(*c) => {
                    return Err(malformed(format!("unmatched format separator \"{c}\"")));
                }
                None => return Err(malformed(format!("unmatched format character \"{c}\""))),
            },
            Node::Pattern { name, fill, ordinal, text: shown, .. } => {
                if *name == "TZH" {
                    f.zone_sign = Some(zone_sign(&mut input, None));
                }
                let free = !fill || separated(list.get(at + 1));
                field(&mut f, name, shown, free, &mut input)?;
                if ordinal.is_some() {
                    let skip = input.rest.char_indices().nth(2);
                    input.rest = &input.rest[skip.map_or(input.rest.len(), |(i, _)| i)..];
                }
            }
        }
    }
    input.skip_blanks();
    if input.rest.is_empty() {
        return Ok(f);
    }
    let behind = "trailing characters remain in input string after datetime format";
    Err(malformed(behind.to_string()))
}

/// Whether the standard lets a format have this between fields.
fn is_separator(c: char) -> bool {
    "-./,':; ".contains(c)
}

/// 22007 for a format that has letters outside of quotes which are no field.
fn check_separators(format: &str) -> SqlResult<()> {
    let mut quoted = false;
    let mut outside = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '\\' if quoted => drop(chars.next()),
            _ if quoted => {}
            c => outside.push(c),
        }
    }
    for node in nodes(&outside) {
        if let Node::Text(c) = node
            && !is_separator(c)
        {
            return Err(malformed(format!("invalid datetime format separator: \"{c}\"")));
        }
    }
    Ok(())
}

fn field(
    f: &mut Fields,
    name: &str,
    shown: &str,
    free: bool,
    input: &mut Input<'_>,
) -> SqlResult<()> {
    let width = |n: usize| if free { None } else { Some(n) };
    f.check_convention(name)?;
    match name {
        "YYYY" | "YYY" | "YY" | "Y" => {
            let (value, digits) = input.number(width(name.len()), shown)?;
            let short = digits < 4 && name.len() < 4;
            let value = if short { full_year(value, digits) } else { value };
            once(&mut f.year, value, shown)?;
            f.short_year = name == "YY" || name == "Y";
        }
        "Y,YYY" => {
            let (thousands, _) = input.number(None, shown)?;
            input.rest = input.rest.strip_prefix(',').unwrap_or(input.rest);
            let (rest, _) = input.number(Some(3), shown)?;
            f.year = Some(thousands * 1000 + rest);
        }
        "IYYY" | "IYY" | "IY" | "I" => {
            let (value, digits) = input.number(width(name.len()), shown)?;
            let short = digits < 4 && name.len() < 4;
            let value = if short { full_year(value, digits) } else { value };
            once(&mut f.iso_year, value, shown)?;
        }
        "MM" => once(&mut f.month, input.number(width(2), shown)?.0, shown)?,
        "DD" => once(&mut f.day, input.number(width(2), shown)?.0, shown)?,
        "DDD" | "IDDD" => once(&mut f.day_of_year, input.number(width(3), shown)?.0, shown)?,
        "D" => once(&mut f.weekday, input.number(width(1), shown)?.0, shown)?,
        "ID" => {
            let day = input.number(width(1), shown)?.0;
            f.weekday = Some(if (0..7).contains(&day) { day + 1 } else { 1 });
        }
        "HH24" => f.hour = input.number(width(2), shown)?.0,
        "HH12" | "HH" => {
            f.hour = input.number(width(2), shown)?.0;
            f.twelve = true;
        }
        "MI" => f.minute = input.number(width(2), shown)?.0,
        "SS" => f.second = input.number(width(2), shown)?.0,
        "SSSS" | "SSSSS" => once(&mut f.seconds_of_day, input.number(width(5), shown)?.0, shown)?,
        "MS" => {
            let (value, digits) = input.number(width(3), shown)?;
            f.micros += value * 10i64.pow(3u32.saturating_sub(digits as u32)) * 1000;
        }
        "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let places = if name == "US" { 6 } else { usize::from(name.as_bytes()[2] - b'0') };
            let (value, digits) = input.number(width(places), shown)?;
            f.micros += value * 10i64.pow(6u32.saturating_sub(digits as u32));
            f.precision = (name != "US").then_some(places as u32);
        }
        "WW" => once(&mut f.week, input.number(width(2), shown)?.0, shown)?,
        "IW" => once(&mut f.iso_week, input.number(width(2), shown)?.0, shown)?,
        "W" => once(&mut f.week_of_month, input.number(width(1), shown)?.0, shown)?,
        "CC" => once(&mut f.century, input.number(width(2), shown)?.0, shown)?,
        "J" => once(&mut f.julian, input.number(None, shown)?.0, shown)?,
        // The quarter does not decide the date.
        "Q" => drop(input.number(width(1), shown)?),
        "MONTH" | "Month" => once(&mut f.month, input.word(&MONTHS, shown)? + 1, shown)?,
        "MON" | "Mon" => {
            let short: Vec<&str> = MONTHS.iter().map(|m| &m[..3]).collect();
            f.month = Some(input.word(&short, shown)? + 1);
        }
        "RM" => once(&mut f.month, input.word(&ROMAN, shown)? + 1, shown)?,
        "DAY" | "Day" => {
            f.weekday = Some((input.word(&DAYS, shown)? + 1) % 7 + 1);
        }
        "DY" | "Dy" => {
            let short: Vec<&str> = DAYS.iter().map(|d| &d[..3]).collect();
            f.weekday = Some((input.word(&short, shown)? + 1) % 7 + 1);
        }
        "AM" | "PM" => {
            f.afternoon = Some(input.word(&["AM", "PM"], shown)? == 1);
            f.twelve = true;
        }
        "A.M." | "P.M." => {
            f.afternoon = Some(input.word(&["A.M.", "P.M."], shown)? == 1);
            f.twelve = true;
        }
        "AD" | "BC" => f.before_christ = input.word(&["AD", "BC"], shown)? == 1,
        "A.D." | "B.C." => f.before_christ = input.word(&["A.D.", "B.C."], shown)? == 1,
        "TZH" => f.zone_hour = input.number(width(2), shown)?.0,
        "TZM" => {
            f.zone_sign.get_or_insert(1);
            f.zone_minute = input.number(width(2), shown)?.0;
        }
        "TZ" | "OF" => {
            return Err(SqlError::unsupported(format!(
                "formatting field \"{shown}\" is only supported in to_char"
            )));
        }
        _ => {}
    }
    Ok(())
}

/// The local day, and the microseconds of it.
fn assemble(f: &mut Fields, text: &str) -> SqlResult<(i64, i64)> {
    if let Some(seconds) = f.seconds_of_day {
        (f.hour, f.minute, f.second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    if f.twelve {
        if !(1..=12).contains(&f.hour) {
            return Err(malformed(format!("hour \"{}\" is invalid for the 12-hour clock", f.hour))
                .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
        }
        match f.afternoon {
            Some(true) if f.hour < 12 => f.hour += 12,
            Some(false) | None if f.hour == 12 && f.afternoon.is_some() => f.hour = 0,
            _ => {}
        }
    }
    // A field of zero counts as not given.
    for given in [&mut f.month, &mut f.day, &mut f.day_of_year] {
        *given = given.filter(|v| *v != 0);
    }
    let mut year = f.year;
    if let Some(century) = f.century {
        let first = (century - 1) * 100;
        year = Some(match (year, f.short_year) {
            (Some(y), true) => {
                let last = y % 100;
                first + if last == 0 { 100 } else { last }
            }
            (Some(y), false) => y,
            (None, _) => first + 1,
        });
    }
    // There is no year 0: one before Christ, written so or as a negative number, is one further.
    let counted = |y: i64| match if f.before_christ { -y } else { y } {
        y if y < 0 => y + 1,
        y => y,
    };
    let year = year.map(counted);
    let iso_year = f.iso_year.map(counted);
    let y = year.unwrap_or(0);
    let mut days = None;
    if let Some(julian) = f.julian {
        days = Some(julian - 2_451_545);
    }
    if let Some(week) = f.iso_week {
        let iso_year = iso_year.or(year).unwrap_or(0);
        let day = match f.weekday.filter(|d| *d != 0) {
            None => 0,
            Some(day) if day > 1 => day - 2,
            Some(_) => 6,
        };
        days = Some(iso_year_start(iso_year) + (week - 1) * 7 + day);
    } else if let (Some(iso_year), Some(day)) = (iso_year, f.day_of_year) {
        days = Some(iso_year_start(iso_year) + day - 1);
    } else if let Some(week) = f.week {
        f.day_of_year = Some((week - 1) * 7 + 1);
    }
    if let (Some(week), None) = (f.week_of_month, f.day) {
        f.day = Some((week - 1) * 7 + 1);
    }
    if days.is_none()
        && let Some(day) = f.day_of_year
        && f.month.is_none()
    {
        if year.is_none() {
            return Err(malformed(
                "cannot calculate day of year without year information".to_string(),
            ));
        }
        let length = days_from_civil(y + 1, 1, 1) - days_from_civil(y, 1, 1);
        if !(1..=length).contains(&day) {
            return Err(out_of_range(text));
        }
        days = Some(days_from_civil(y, 1, 1) + day - 1);
    }
    let days = match days {
        Some(days) => days,
        None => {
            let (month, day) = (f.month.unwrap_or(1), f.day.unwrap_or(1));
            if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
                return Err(out_of_range(text));
            }
            let y = year.or(iso_year).unwrap_or(0);
            let first = days_from_civil(y, month, 1);
            let next = days_from_civil(y + i64::from(month == 12), month % 12 + 1, 1);
            if day > next - first {
                return Err(out_of_range(text));
            }
            first + day - 1
        }
    };
    if !(0..24).contains(&f.hour) || !(0..60).contains(&f.minute) || !(0..60).contains(&f.second) {
        return Err(out_of_range(text));
    }
    let time = (f.hour * 3600 + f.minute * 60 + f.second) * MICROS_PER_SECOND + f.micros;
    Ok((days, time))
}

/// Local microseconds.
fn local_micros((days, time): (i64, i64)) -> SqlResult<i64> {
    check_timestamp(i128::from(days) * i128::from(MICROS_PER_DAY) + i128::from(time))
}

/// `to_timestamp(text, format)`: UTC microseconds.
pub(super) fn timestamp(text: &str, format: &str, zone: &TimeZone) -> SqlResult<i64> {
    let mut f = read(text, format, Way::Leniently)?;
    let local = local_micros(assemble(&mut f, text)?)?;
    let instant = match f.zone_sign {
        Some(sign) => {
            let seconds = sign * (f.zone_hour * 3600 + f.zone_minute * 60);
            TimeZone::Fixed(seconds as i32).to_utc(local)
        }
        None => zone.to_utc(local),
    };
    let unit = f.precision.map_or(1, |digits| 10i64.pow(6 - digits.min(6)));
    let half = if instant < 0 { -(unit / 2) } else { unit / 2 };
    check_timestamp(i128::from((instant + half) / unit * unit))
}

/// Takes the sign of a zone; `before` is what was skipped more than the format has: a sign there
/// was no separator.
fn zone_sign(input: &mut Input<'_>, before: Option<char>) -> i64 {
    match input.rest.strip_prefix(['-', '+', ' ']) {
        Some(rest) => {
            let negative = input.rest.starts_with('-');
            input.rest = rest;
            if negative { -1 } else { 1 }
        }
        None if before == Some('-') => -1,
        None => 1,
    }
}

/// `to_date(text, format)`: days since 2000-01-01.
pub(super) fn date(text: &str, format: &str) -> SqlResult<i64> {
    let mut f = read(text, format, Way::Leniently)?;
    check_date(assemble(&mut f, text)?.0).map(i64::from)
}

/// A date, a time or both, and the zone that was written with it, in seconds east of UTC.
pub(super) struct Parsed {
    pub(super) value: Datum,
    pub(super) east: Option<i32>,
}

/// Reads a text by a format as SQL/JSON does: the fields of the format decide the type.
///
/// # Errors
/// 22007 and 22008.
pub(super) fn standard(text: &str, format: &str) -> SqlResult<Parsed> {
    check_separators(format)?;
    let (dated, timed, zoned) = parts_of(format);
    let mut f = read(text, format, Way::ByTheStandard)?;
    let (days, time) = assemble(&mut f, text)?;
    let local = || local_micros((days, time));
    let seconds = f.zone_sign.unwrap_or(1) * (f.zone_hour * 3600 + f.zone_minute * 60);
    if f.zone_hour > 15 || f.zone_minute > 59 {
        let message = format!("time zone displacement out of range: \"{text}\"");
        return Err(SqlError::new(SqlState("22009"), message));
    }
    let unit = f.precision.map_or(1, |digits| 10i64.pow(6 - digits.min(6)));
    let rounded = |micros: i64| {
        let half = if micros < 0 { -(unit / 2) } else { unit / 2 };
        (micros + half) / unit * unit
    };
    let (time, zone) = (rounded(time), TimeZone::Fixed(seconds as i32));
    let value = match (dated, timed, zoned) {
        (true, true, true) => {
            let utc = rounded(zone.to_utc(local()?));
            Datum::TimestampTz(check_timestamp(i128::from(utc))?)
        }
        (true, true, false) => Datum::Timestamp(check_timestamp(i128::from(rounded(local()?)))?),
        (true, false, true) => {
            return Err(malformed("datetime format is zoned but not timed".to_string()));
        }
        (true, false, false) => Datum::Date(check_date(days)?),
        (false, true, true) => Datum::Ordered(timetz::of(time, seconds as i32)),
        (false, true, false) => Datum::Time(time),
        (false, false, _) => {
            return Err(malformed("datetime format is not dated and not timed".to_string()));
        }
    };
    Ok(Parsed { value, east: zoned.then_some(seconds as i32) })
}

/// Whether a format has fields of a date, of a time, of a zone.
fn parts_of(format: &str) -> (bool, bool, bool) {
    let mut parts = (false, false, false);
    for node in nodes(format) {
        let Node::Pattern { name, .. } = node else { continue };
        match name {
            "FX" => {}
            "TZ" | "TZH" | "TZM" | "OF" => parts.2 = true,
            "A.D." | "AD" | "B.C." | "BC" => parts.0 = true,
            "A.M." | "AM" | "P.M." | "PM" | "HH24" | "HH12" | "HH" | "MI" | "SS" | "SSSS"
            | "SSSSS" | "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                parts.1 = true;
            }
            _ => parts.0 = true,
        }
    }
    parts
}
