//! Dates and timestamps as texts by GoogleSQL's format elements (`%Y-%m-%d`), and back.

use braid_types::{
    Datum, MICROS_PER_DAY, MICROS_PER_SECOND, SqlError, SqlResult, SqlState, TimeZone,
    UNIX_EPOCH_MICROS, check_date, check_timestamp, civil_from_days, days_from_civil,
};

use super::guests::invalid;
use crate::functions::calendar::{DAYS, MONTHS, iso_week, weekday_monday};
use crate::functions::datetime::zone_of;
use crate::functions::text_of;
use crate::registry::{Eval, Table};

/// A local time, with how far east of UTC and how it is called.
struct Moment {
    local: i64,
    utc: i64,
    east: i32,
    zone: String,
    /// A date has no time of day.
    date: bool,
}

impl Moment {
    fn of(utc: i64, zone: &TimeZone) -> Moment {
        let east = zone.offset_at_utc(utc);
        let name = zone.abbreviation_at(utc);
        Moment { local: zone.to_local(utc), utc, east, zone: name, date: false }
    }

    fn of_day(days: i32) -> Moment {
        let local = i64::from(days) * MICROS_PER_DAY;
        Moment { local, utc: local, east: 0, zone: "UTC".to_string(), date: true }
    }

    fn offset(&self, between: &str) -> String {
        let sign = if self.east < 0 { '-' } else { '+' };
        let minutes = self.east.abs() / 60;
        format!("{sign}{:02}{between}{:02}", minutes / 60, minutes % 60)
    }
}

fn unknown(element: &str) -> SqlError {
    SqlError::unsupported(format!("the format element %{element}"))
        .with_hint("to_char has format elements of PostgreSQL.")
}

fn of_date(m: &Moment, element: char) -> Option<String> {
    let days = m.local.div_euclid(MICROS_PER_DAY);
    let (year, month, day) = civil_from_days(days);
    let weekday = weekday_monday(days);
    let of_year = days - days_from_civil(year, 1, 1);
    let (month_name, day_name) = (MONTHS[(month - 1) as usize], DAYS[weekday as usize]);
    let (iso_year, week) = iso_week(days);
    Some(match element {
        'A' => day_name.to_string(),
        'a' => day_name[..3].to_string(),
        'B' => month_name.to_string(),
        'b' | 'h' => month_name[..3].to_string(),
        'C' => format!("{:02}", year.div_euclid(100)),
        'D' | 'x' => format!("{month:02}/{day:02}/{:02}", year.rem_euclid(100)),
        'd' => format!("{day:02}"),
        'e' => format!("{day:2}"),
        'F' => format!("{year:04}-{month:02}-{day:02}"),
        'G' => iso_year.to_string(),
        'g' => format!("{:02}", iso_year.rem_euclid(100)),
        'j' => format!("{:03}", of_year + 1),
        'm' => format!("{month:02}"),
        'Q' => ((month - 1) / 3 + 1).to_string(),
        'U' => format!("{:02}", (of_year + 7 - (weekday + 1) % 7) / 7),
        'u' => (weekday + 1).to_string(),
        'V' => format!("{week:02}"),
        'W' => format!("{:02}", (of_year + 7 - weekday) / 7),
        'w' => ((weekday + 1) % 7).to_string(),
        'Y' => year.to_string(),
        'y' => format!("{:02}", year.rem_euclid(100)),
        _ => return None,
    })
}

fn of_time(m: &Moment, element: char) -> Option<String> {
    let seconds = m.local.rem_euclid(MICROS_PER_DAY) / MICROS_PER_SECOND;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let twelve = (hour + 11) % 12 + 1;
    let half = if hour < 12 { "AM" } else { "PM" };
    Some(match element {
        'H' => format!("{hour:02}"),
        'I' => format!("{twelve:02}"),
        'k' => format!("{hour:2}"),
        'l' => format!("{twelve:2}"),
        'M' => format!("{minute:02}"),
        'P' => half.to_lowercase(),
        'p' => half.to_string(),
        'R' => format!("{hour:02}:{minute:02}"),
        'S' => format!("{second:02}"),
        's' => {
            let micros = i128::from(m.utc) + i128::from(UNIX_EPOCH_MICROS);
            micros.div_euclid(i128::from(MICROS_PER_SECOND)).to_string()
        }
        'T' | 'X' => format!("{hour:02}:{minute:02}:{second:02}"),
        'Z' => m.zone.clone(),
        'z' => m.offset(""),
        _ => return None,
    })
}

/// Digits of a second behind a point.
fn fraction(m: &Moment, digits: usize) -> String {
    let micros = format!("{:06}", m.local.rem_euclid(MICROS_PER_SECOND));
    format!("{micros:0<9}")[..digits].to_string()
}

/// A text by a format. Of a date, elements of times are taken as they are written.
fn write(format: &str, m: &Moment) -> SqlResult<String> {
    let mut out = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let element = rest.next().unwrap_or('%');
        let simple =
            of_date(m, element).or_else(|| if m.date { None } else { of_time(m, element) });
        match element {
            _ if simple.is_some() => out.push_str(&simple.unwrap_or_default()),
            '%' => out.push('%'),
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'c' if !m.date => out.push_str(&write("%a %b %e %T %Y", m)?),
            'c' => out.push_str(&write("%a %b %e 00:00:00 %Y", m)?),
            'E' => {
                let next = rest.next().unwrap_or(' ');
                match (next, next.to_digit(10)) {
                    ('z', _) if !m.date => out.push_str(&m.offset(":")),
                    ('Y', _) | ('4', _) if next == 'Y' || rest.as_str().starts_with('Y') => {
                        let year = civil_from_days(m.local.div_euclid(MICROS_PER_DAY)).0;
                        if next == '4' {
                            rest.next();
                        }
                        out.push_str(&format!("{year:04}"));
                    }
                    ('*', _) if !m.date && rest.as_str().starts_with('S') => {
                        rest.next();
                        out.push_str(&of_time(m, 'S').unwrap_or_default());
                        let part = fraction(m, 6);
                        let part = part.trim_end_matches('0');
                        if !part.is_empty() {
                            out.push_str(&format!(".{part}"));
                        }
                    }
                    (_, Some(digits)) if !m.date && rest.as_str().starts_with('S') => {
                        rest.next();
                        out.push_str(&of_time(m, 'S').unwrap_or_default());
                        if digits > 0 {
                            out.push_str(&format!(".{}", fraction(m, digits as usize)));
                        }
                    }
                    _ => return Err(unknown(&format!("E{next}"))),
                }
            }
            other if m.date && of_time(m, other).is_some() => {
                out.push('%');
                out.push(other);
            }
            other => return Err(unknown(&other.to_string())),
        }
    }
    Ok(out)
}

/// What a text said.
#[derive(Default)]
struct Said {
    year: Option<i64>,
    century: Option<i64>,
    short_year: Option<i64>,
    month: i64,
    day: i64,
    of_year: Option<i64>,
    hour: i64,
    half: Option<i64>,
    minute: i64,
    second: i64,
    micros: i64,
    east: Option<i64>,
    epoch: Option<i64>,
    zone: Option<TimeZone>,
}

/// Reads a text by a format.
struct Reader<'a> {
    rest: &'a str,
    said: Said,
}

impl<'a> Reader<'a> {
    fn bad(&self) -> SqlError {
        SqlError::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("failed to parse input at \"{}\"", self.rest),
        )
    }

    fn number(&mut self, digits: usize, bounds: std::ops::RangeInclusive<i64>) -> SqlResult<i64> {
        let length = self.rest.bytes().take(digits).take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.rest.split_at(length);
        match number.parse() {
            Ok(value) if bounds.contains(&value) => {
                self.rest = rest;
                Ok(value)
            }
            _ => Err(self.bad()),
        }
    }

    /// The place of a name, or of its first three letters.
    fn name(&mut self, names: &[&str]) -> SqlResult<i64> {
        let matches = |text: &str| {
            self.rest.get(..text.len()).is_some_and(|head| head.eq_ignore_ascii_case(text))
        };
        for (at, name) in names.iter().enumerate() {
            let found = [*name, &name[..3]].into_iter().find(|text| matches(text));
            if let Some(found) = found {
                self.rest = &self.rest[found.len()..];
                return Ok(at as i64);
            }
        }
        Err(self.bad())
    }

    /// AM or PM.
    fn half(&mut self) -> SqlResult<()> {
        let (half, rest) = self.rest.split_at_checked(2).ok_or_else(|| self.bad())?;
        self.said.half = Some(match half.to_ascii_lowercase().as_str() {
            "am" => 0,
            "pm" => 1,
            _ => return Err(self.bad()),
        });
        self.rest = rest;
        Ok(())
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn fraction(&mut self, most: usize) -> SqlResult<()> {
        let Some(rest) = self.rest.strip_prefix('.').filter(|_| most > 0) else { return Ok(()) };
        let length = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let digits = format!("{:0<6}", &rest[..length.min(6)]);
        self.said.micros = digits.parse().map_err(|_| self.bad())?;
        self.rest = &rest[length..];
        Ok(())
    }

    fn offset(&mut self) -> SqlResult<()> {
        if let Some(rest) = self.rest.strip_prefix(['Z', 'z']) {
            self.rest = rest;
            self.said.east = Some(0);
            return Ok(());
        }
        let sign = match self.rest.chars().next() {
            Some('+') => 1,
            Some('-') => -1,
            _ => return Err(self.bad()),
        };
        self.rest = &self.rest[1..];
        let hours = self.number(2, 0..=14)?;
        self.rest = self.rest.strip_prefix(':').unwrap_or(self.rest);
        let minutes = match self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            true => self.number(2, 0..=59)?,
            false => 0,
        };
        self.said.east = Some(sign * (hours * 3600 + minutes * 60));
        Ok(())
    }

    fn zone(&mut self) -> SqlResult<()> {
        let length = self.rest.bytes().take_while(|b| !b.is_ascii_whitespace()).count();
        let (name, rest) = self.rest.split_at(length);
        self.said.zone = Some(zone_of(name)?);
        self.rest = rest;
        Ok(())
    }

    fn date_element(&mut self, element: char) -> SqlResult<bool> {
        match element {
            'A' | 'a' => drop(self.name(&DAYS)?),
            'B' | 'b' | 'h' => self.said.month = self.name(&MONTHS)? + 1,
            'C' => self.said.century = Some(self.number(2, 0..=99)?),
            'd' | 'e' => {
                self.blanks();
                self.said.day = self.number(2, 1..=31)?;
            }
            'j' => self.said.of_year = Some(self.number(3, 1..=366)?),
            'm' => self.said.month = self.number(2, 1..=12)?,
            'u' | 'w' => drop(self.number(1, 0..=7)?),
            'Y' => self.said.year = Some(self.number(4, 1..=9999)?),
            'y' => self.said.short_year = Some(self.number(2, 0..=99)?),
            'F' => self.read("%Y-%m-%d")?,
            'D' | 'x' => self.read("%m/%d/%y")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn time_element(&mut self, element: char) -> SqlResult<bool> {
        match element {
            'H' | 'k' => {
                self.blanks();
                self.said.hour = self.number(2, 0..=23)?;
            }
            'I' | 'l' => {
                self.blanks();
                self.said.hour = self.number(2, 1..=12)? % 12;
            }
            'M' => self.said.minute = self.number(2, 0..=59)?,
            'P' | 'p' => self.half()?,
            'S' => self.said.second = self.number(2, 0..=59)?,
            's' => self.said.epoch = Some(self.number(18, 0..=i64::MAX)?),
            'R' => self.read("%H:%M")?,
            'T' | 'X' => self.read("%H:%M:%S")?,
            'c' => self.read("%a %b %e %T %Y")?,
            'Z' => self.zone()?,
            'z' => self.offset()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read(&mut self, format: &str) -> SqlResult<()> {
        let mut rest = format.chars();
        while let Some(c) = rest.next() {
            if c.is_whitespace() {
                self.blanks();
                continue;
            }
            if c != '%' {
                self.rest = self.rest.strip_prefix(c).ok_or_else(|| self.bad())?;
                continue;
            }
            match rest.next().unwrap_or('%') {
                '%' => self.rest = self.rest.strip_prefix('%').ok_or_else(|| self.bad())?,
                'n' | 't' => self.blanks(),
                'E' => {
                    let next = rest.next().unwrap_or(' ');
                    match (next, next.to_digit(10)) {
                        ('z', _) => self.offset()?,
                        ('4', _) if rest.as_str().starts_with('Y') => {
                            rest.next();
                            self.said.year = Some(self.number(4, 1..=9999)?);
                        }
                        ('*', _) | (_, Some(_)) if rest.as_str().starts_with('S') => {
                            rest.next();
                            self.said.second = self.number(2, 0..=59)?;
                            self.fraction(next.to_digit(10).map_or(9, |d| d as usize))?;
                        }
                        _ => return Err(unknown(&format!("E{next}"))),
                    }
                }
                other => {
                    if !self.date_element(other)? && !self.time_element(other)? {
                        return Err(unknown(&other.to_string()));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Said {
    /// Days since 2000.
    fn days(&self) -> SqlResult<i64> {
        let short = self.short_year.map(|y| match self.century {
            Some(century) => century * 100 + y,
            None if y < 69 => 2000 + y,
            None => 1900 + y,
        });
        let alone = self.century.filter(|_| short.is_none()).map(|century| century * 100);
        let year = self.year.or(short).or(alone).unwrap_or(1970);
        if let Some(of_year) = self.of_year {
            return Ok(days_from_civil(year, 1, 1) + of_year - 1);
        }
        let (month, day) = (self.month.max(1), self.day.max(1));
        let days = days_from_civil(year, month, day);
        match civil_from_days(days).1 == month {
            true => Ok(days),
            false => Err(SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("there is no day {year}-{month:02}-{day:02}"),
            )),
        }
    }

    fn moment(&self, zone: &TimeZone) -> SqlResult<Datum> {
        if let Some(epoch) = self.epoch {
            let micros = i128::from(epoch) * i128::from(MICROS_PER_SECOND);
            let at = check_timestamp(micros - i128::from(UNIX_EPOCH_MICROS))?;
            return Ok(Datum::TimestampTz(at));
        }
        let hour = self.hour + self.half.map_or(0, |half| half * 12);
        let seconds = hour * 3600 + self.minute * 60 + self.second;
        let local = self.days()? * MICROS_PER_DAY + seconds * MICROS_PER_SECOND + self.micros;
        let utc = match (self.east, &self.zone) {
            (Some(east), _) => local - east * MICROS_PER_SECOND,
            (None, Some(own)) => own.to_utc(local),
            (None, None) => zone.to_utc(local),
        };
        Ok(Datum::TimestampTz(check_timestamp(utc.into())?))
    }
}

fn said(format: &Datum, text: &Datum) -> SqlResult<Said> {
    let mut reader = Reader { rest: text_of(text).trim(), said: Said::default() };
    reader.read(text_of(format))?;
    match reader.rest.trim().is_empty() {
        true => Ok(reader.said),
        false => Err(reader.bad()),
    }
}

fn formatted(format: &Datum, value: &Datum, zone: &TimeZone) -> SqlResult<Datum> {
    let moment = match value {
        Datum::Date(i32::MAX | i32::MIN)
        | Datum::Timestamp(i64::MAX | i64::MIN)
        | Datum::TimestampTz(i64::MAX | i64::MIN) => {
            return Err(invalid("infinity has no date parts"));
        }
        Datum::Date(days) => Moment::of_day(*days),
        Datum::Timestamp(local) => Moment::of(*local, &TimeZone::utc()),
        Datum::TimestampTz(utc) => Moment::of(*utc, zone),
        _ => return Ok(Datum::Null),
    };
    Ok(Datum::text(write(text_of(format), &moment)?))
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    let plain: Eval = |a, c| formatted(&a[0], &a[1], &c.style.zone);
    t.add("format_timestamp(text, timestamptz) text -- by format elements: %Y-%m-%d", plain)
        .stable();
    t.add("format_timestamp(text, timestamptz, text) text", |a, _| {
        formatted(&a[0], &a[1], &zone_of(text_of(&a[2]))?)
    });
    t.add("format_timestamp(text, timestamp) text", plain);
    t.add("format_date(text, date) text -- by format elements: %Y-%m-%d", plain);
    t.add("parse_date(text, text) date -- a date, by format elements", |a, _| {
        Ok(Datum::Date(check_date(said(&a[0], &a[1])?.days()?)?))
    });
    t.add("parse_timestamp(text, text) timestamptz -- a moment, by format elements", |a, c| {
        said(&a[0], &a[1])?.moment(&c.style.zone)
    })
    .stable();
    t.add("parse_timestamp(text, text, text) timestamptz", |a, _| {
        said(&a[0], &a[1])?.moment(&zone_of(text_of(&a[2]))?)
    });
}
