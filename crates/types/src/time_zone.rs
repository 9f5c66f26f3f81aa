//! Time zones: a fixed offset or a name of the IANA database.

use chrono::{LocalResult, NaiveDateTime, Offset, TimeZone as _};
use chrono_tz::{OffsetComponents as _, Tz};

use crate::Style;
use crate::datetime::{
    MICROS_PER_DAY, MICROS_PER_SECOND, UNIX_EPOCH_MICROS, civil_from_days, days_from_civil,
};
use crate::datetime_in::abbreviations;
use crate::interval::parse_interval;

/// A session's or an expression's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeZone {
    /// Seconds east of UTC.
    Fixed(i32),
    /// A named zone.
    Named(Tz),
}

impl TimeZone {
    /// UTC under its name.
    pub fn utc() -> TimeZone {
        TimeZone::Named(Tz::UTC)
    }

    /// Parses a zone of AT TIME ZONE: as [`TimeZone::parse_setting`], and abbreviations.
    pub fn parse(name: &str) -> Option<TimeZone> {
        let name = name.trim();
        // These are zones with a name as well, which SHOW prints.
        if ["z", "zulu", "utc", "uct", "gmt"].iter().any(|utc| name.eq_ignore_ascii_case(utc)) {
            return Some(TimeZone::utc());
        }
        abbreviations::meaning(name).or_else(|| named(name)).or_else(|| posix(name))
    }

    /// Parses the value of the setting `TimeZone`: `Europe/Berlin` in any case, hours east of UTC
    /// as a number or as `INTERVAL '02:00'`, or POSIX's `UTC+3` and `+02:00`, whose sign counts to
    /// the *west*. Gives the name that SHOW prints as well.
    pub fn parse_setting(name: &str) -> Option<(TimeZone, String)> {
        let name = name.trim();
        if let Some(zone) = named(name) {
            return Some((zone, zone.name()));
        }
        let hours = match name.split_at_checked("interval".len()) {
            Some((word, text)) if word.eq_ignore_ascii_case("interval") => {
                Some(interval_hours(text.trim())?)
            }
            _ => name.parse::<f64>().ok(),
        };
        if let Some(hours) = hours {
            let seconds = (hours * 3600.0).round();
            if seconds.abs() > 168.0 * 3600.0 || !name.contains(|c: char| c.is_ascii_digit()) {
                return None;
            }
            let zone = TimeZone::Fixed(seconds as i32);
            return Some((zone, zone.name()));
        }
        posix(name).map(|zone| (zone, name.to_ascii_uppercase()))
    }

    /// All abbreviations: what they mean, and whether of a summer time, which is not known of those
    /// whose zone tells.
    pub fn all_abbreviations() -> impl Iterator<Item = (&'static str, TimeZone, Option<bool>)> {
        abbreviations::all()
    }

    /// Every zone that has a name.
    pub fn all_named() -> impl Iterator<Item = TimeZone> {
        chrono_tz::TZ_VARIANTS.iter().map(|zone| TimeZone::Named(*zone))
    }

    /// Whether clocks are put forward at a UTC time.
    pub fn is_summer_at(&self, utc_micros: i64) -> bool {
        match self {
            TimeZone::Fixed(_) => false,
            TimeZone::Named(zone) => naive(utc_micros)
                .is_some_and(|time| !zone.offset_from_utc_datetime(&time).dst_offset().is_zero()),
        }
    }

    /// The short name that is in use at a UTC time.
    pub fn abbreviation_at(&self, utc_micros: i64) -> String {
        match self {
            TimeZone::Fixed(seconds) => offset_text(*seconds),
            TimeZone::Named(zone) => match naive(utc_micros) {
                Some(time) => zone.offset_from_utc_datetime(&time).to_string(),
                None => zone.name().to_string(),
            },
        }
    }

    /// The name as `SHOW timezone` prints it.
    pub fn name(&self) -> String {
        match self {
            TimeZone::Named(zone) => zone.name().to_string(),
            TimeZone::Fixed(seconds) => {
                // POSIX's sign; of no offset as well.
                let west = offset_text(-*seconds);
                let west = if *seconds == 0 { west.replace('+', "-") } else { west };
                format!("<{}>{west}", offset_text(*seconds))
            }
        }
    }

    /// Seconds east of UTC at a UTC time (microseconds since 2000-01-01).
    pub fn offset_at_utc(&self, utc_micros: i64) -> i32 {
        match self {
            TimeZone::Fixed(seconds) => *seconds,
            TimeZone::Named(zone) => match naive(utc_micros) {
                Some(time) => zone.offset_from_utc_datetime(&time).fix().local_minus_utc(),
                None => 0,
            },
        }
    }

    /// Seconds east of UTC for a wall-clock time. A time that a jump skips is read with the offset
    /// before the jump, one that happens twice with the offset after, as PostgreSQL does.
    pub(crate) fn offset_at_local(&self, local_micros: i64) -> i32 {
        match self {
            TimeZone::Fixed(seconds) => *seconds,
            TimeZone::Named(zone) => match naive(local_micros) {
                Some(time) => match zone.offset_from_local_datetime(&time) {
                    LocalResult::Single(offset) => offset.fix().local_minus_utc(),
                    LocalResult::Ambiguous(_, latest) => latest.fix().local_minus_utc(),
                    LocalResult::None => self.offset_at_utc(local_micros - MICROS_PER_DAY),
                },
                None => 0,
            },
        }
    }

    /// Wall-clock microseconds of a UTC time.
    pub fn to_local(&self, utc_micros: i64) -> i64 {
        utc_micros.saturating_add(i64::from(self.offset_at_utc(utc_micros)) * MICROS_PER_SECOND)
    }

    /// UTC microseconds of a wall-clock time.
    pub fn to_utc(&self, local_micros: i64) -> i64 {
        local_micros
            .saturating_sub(i64::from(self.offset_at_local(local_micros)) * MICROS_PER_SECOND)
    }
}

fn named(name: &str) -> Option<TimeZone> {
    let found = name.parse().ok().or_else(|| {
        chrono_tz::TZ_VARIANTS.iter().find(|z| z.name().eq_ignore_ascii_case(name)).copied()
    });
    found.map(TimeZone::Named)
}

/// `UTC+3`, `<+02>-02`, `+02:00`: a name that may be missing, and how far west of UTC.
fn posix(text: &str) -> Option<TimeZone> {
    let rest = match text.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>')?.1,
        None => text.trim_start_matches(|c: char| c.is_ascii_alphabetic()),
    };
    let signed = if rest.starts_with(|c: char| c.is_ascii_digit()) {
        format!("+{rest}")
    } else {
        rest.into()
    };
    // The digits are hours: +0330 would be 330 of them.
    const MOST_HOURS: i32 = 7 * 24 - 1;
    let (sign, digits) = match signed.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let mut seconds = 0;
    for (at, part) in digits.split(':').enumerate() {
        let number = part.parse().ok().filter(|_| part.bytes().all(|b| b.is_ascii_digit()))?;
        let (unit, most) = *[(3600, MOST_HOURS), (60, 59), (1, 59)].get(at)?;
        seconds += unit * Some(number).filter(|number: &i32| *number <= most)?;
    }
    Some(TimeZone::Fixed(-sign * seconds))
}

/// Hours of a quoted interval that has neither months nor days.
fn interval_hours(quoted: &str) -> Option<f64> {
    let text = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
    let offset = parse_interval(text, &Style::utc()).ok()?;
    (offset.months == 0 && offset.days == 0).then(|| offset.micros as f64 / 3.6e9)
}

/// A time for looking up offsets. The rules of the last years that the database lists go on for
/// ever: a later year has the offsets of one that is as long and begins with the same day of the
/// week.
fn naive(micros: i64) -> Option<NaiveDateTime> {
    const LISTED: std::ops::Range<i64> = 2040..2068;
    let day = micros.div_euclid(MICROS_PER_DAY);
    let (year, ..) = civil_from_days(day);
    let mut micros = micros;
    if year >= LISTED.end {
        let new_year = |y: i64| days_from_civil(y, 1, 1);
        let like = LISTED.into_iter().find(|y| {
            (new_year(*y) - new_year(year)) % 7 == 0
                && new_year(y + 1) - new_year(*y) == new_year(year + 1) - new_year(year)
        })?;
        micros -= (new_year(year) - new_year(like)) * MICROS_PER_DAY;
    }
    let unix = micros.checked_add(UNIX_EPOCH_MICROS)?;
    chrono::DateTime::from_timestamp_micros(unix).map(|t| t.naive_utc())
}

/// `+02`, `-03:30`.
pub(crate) fn offset_text(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let s = seconds.abs();
    let (h, m, sec) = (s / 3600, s / 60 % 60, s % 60);
    if sec != 0 {
        format!("{sign}{h:02}:{m:02}:{sec:02}")
    } else if m != 0 {
        format!("{sign}{h:02}:{m:02}")
    } else {
        format!("{sign}{h:02}")
    }
}
