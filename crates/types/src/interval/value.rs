//! `interval`: arithmetic and reading.

use crate::datetime::{MICROS_PER_DAY, MICROS_PER_SECOND};
use crate::datetime_in::{fraction_micros, without_punctuation};
use crate::{Interval, IntervalForm, SqlError, SqlResult, SqlState, Style};

fn bad(text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_DATETIME_FORMAT,
        format!("invalid input syntax for type interval: \"{text}\""),
    )
}

fn field_out_of_range(text: &str) -> SqlError {
    SqlError::new(SqlState("22015"), format!("interval field value out of range: \"{text}\""))
}

fn overflow() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

impl Interval {
    /// Order by length, a month counted as 30 days and a day as 24 hours, in microseconds.
    pub fn length(&self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(MICROS_PER_DAY)
            + i128::from(self.micros)
    }

    /// Sum.
    ///
    /// # Errors
    /// 22008 on overflow.
    pub fn add(&self, other: &Interval) -> SqlResult<Interval> {
        Ok(Interval {
            months: self.months.checked_add(other.months).ok_or_else(overflow)?,
            days: self.days.checked_add(other.days).ok_or_else(overflow)?,
            micros: self.micros.checked_add(other.micros).ok_or_else(overflow)?,
        })
    }

    /// Opposite.
    ///
    /// # Errors
    /// 22008 on overflow.
    pub fn neg(&self) -> SqlResult<Interval> {
        Ok(Interval {
            months: self.months.checked_neg().ok_or_else(overflow)?,
            days: self.days.checked_neg().ok_or_else(overflow)?,
            micros: self.micros.checked_neg().ok_or_else(overflow)?,
        })
    }

    /// Product; fractions of months go to days, fractions of days to the time.
    ///
    /// # Errors
    /// 22008 on overflow.
    pub fn mul(&self, factor: f64) -> SqlResult<Interval> {
        self.scaled(|v| v * factor)
    }

    /// A part of the interval.
    ///
    /// # Errors
    /// 22008 on overflow.
    pub fn div(&self, divisor: f64) -> SqlResult<Interval> {
        self.scaled(|v| v / divisor)
    }

    /// Each field scaled; what is left of months goes into days, what is left of days into time.
    fn scaled(&self, by: impl Fn(f64) -> f64) -> SqlResult<Interval> {
        let fits = |v: f64| v >= f64::from(i32::MIN) && v < -f64::from(i32::MIN);
        let micro = |v: f64| (v * 1e6).round_ties_even() / 1e6;
        let (months, days) = (by(f64::from(self.months)), by(f64::from(self.days)));
        if !fits(months) || !fits(days) {
            return Err(overflow());
        }
        let month_days = micro((months - months.trunc()) * 30.0);
        let left = (days - days.trunc()) + (month_days - month_days.trunc());
        let mut seconds = micro(left * 86_400.0);
        let mut all_days = days.trunc();
        if seconds.abs() >= 86_400.0 {
            let whole = (seconds / 86_400.0).trunc();
            all_days += whole;
            seconds -= whole * 86_400.0;
        }
        all_days += month_days.trunc();
        let micros = (by(self.micros as f64) + seconds * 1e6).round_ties_even();
        let time = i64::MIN as f64..-(i64::MIN as f64);
        if !fits(all_days) || !time.contains(&micros) {
            return Err(overflow());
        }
        Ok(Interval { months: months.trunc() as i32, days: all_days as i32, micros: micros as i64 })
    }

    fn from_parts(months: f64, days: f64, micros: f64) -> SqlResult<Interval> {
        if !months.is_finite() || !days.is_finite() || !micros.is_finite() {
            return Err(overflow());
        }
        let whole_months = months.trunc();
        let month_days = (months - whole_months) * 30.0;
        let month_days = (month_days * 1e6).round() / 1e6;
        let all_days = days.trunc() + month_days.trunc();
        let seconds =
            ((days - days.trunc()) + (month_days - month_days.trunc())) * MICROS_PER_DAY as f64;
        let micros = micros + seconds;
        if whole_months.abs() > f64::from(i32::MAX)
            || all_days.abs() > f64::from(i32::MAX)
            || micros.abs() >= 9.2e18
        {
            return Err(overflow());
        }
        Ok(Interval {
            months: whole_months as i32,
            days: all_days as i32,
            micros: micros.round_ties_even() as i64,
        })
    }
}

/// Months, days and microseconds of one unit.
fn unit(word: &str) -> Option<(f64, f64, f64)> {
    let second = MICROS_PER_SECOND as f64;
    Some(match word {
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" => (0.0, 0.0, 1.0),
        "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => (0.0, 0.0, 1000.0),
        "second" | "seconds" | "sec" | "secs" | "s" => (0.0, 0.0, second),
        "minute" | "minutes" | "min" | "mins" | "m" => (0.0, 0.0, 60.0 * second),
        "hour" | "hours" | "hr" | "hrs" | "h" => (0.0, 0.0, 3600.0 * second),
        "day" | "days" | "d" => (0.0, 1.0, 0.0),
        "week" | "weeks" | "w" => (0.0, 7.0, 0.0),
        "month" | "months" | "mon" | "mons" => (1.0, 0.0, 0.0),
        "year" | "years" | "yr" | "yrs" | "y" => (12.0, 0.0, 0.0),
        "decade" | "decades" | "dec" | "decs" => (120.0, 0.0, 0.0),
        "century" | "centuries" | "c" | "cent" => (1200.0, 0.0, 0.0),
        "millennium" | "millennia" | "mil" | "mils" => (12000.0, 0.0, 0.0),
        _ => return None,
    })
}

/// Reads all the styles PostgreSQL reads by default.
pub(crate) fn parse_interval(text: &str, style: &Style) -> SqlResult<Interval> {
    let spaced = without_punctuation(text);
    let lowered = spaced.trim();
    if lowered.is_empty() {
        return Err(bad(text));
    }
    if let Some(iso) = lowered.strip_prefix('p') {
        return parse_iso(iso, text);
    }
    // The SQL standard's form has one sign, which counts for all fields.
    let standard = style.interval == IntervalForm::Sql
        && lowered.starts_with('-')
        && !lowered[1..].contains(['-', '+']);
    let mut total = Interval::default();
    let mut pending: Option<f64> = None;
    let mut any = false;
    let mut ago = false;
    let text_of_fields = if standard { &lowered[1..] } else { lowered };
    for word in words(text_of_fields) {
        let word = word.as_str();
        if word == "and" {
        } else if word == "ago" {
            ago = true;
        } else if word.contains(':') {
            if let Some(days) = pending.take() {
                total = total.add(&Interval::from_parts(0.0, days, 0.0)?)?;
            }
            total = total.add(&parse_hms(word).ok_or_else(|| bad(text))?)?;
            any = true;
        } else if let Some((months, days, micros)) = unit(word) {
            let amount = pending.take().ok_or_else(|| bad(text))?;
            total = total.add(&Interval::from_parts(
                months * amount,
                days * amount,
                micros * amount,
            )?)?;
            any = true;
        } else if let Some((years, months)) = parse_year_month(word) {
            if months >= 12 {
                return Err(field_out_of_range(text));
            }
            let months = years.checked_mul(12).map(|all| all + months);
            let months = months.and_then(|all| i32::try_from(all).ok());
            let sign = if word.starts_with('-') { -1 } else { 1 };
            let months = sign * months.ok_or_else(|| field_out_of_range(text))?;
            total = total.add(&Interval { months, ..Interval::default() })?;
            any = true;
        } else {
            if pending.is_some() {
                return Err(bad(text));
            }
            // A point alone is no digits behind it.
            let number = if word == "." { Ok(0.0) } else { word.parse() };
            pending = Some(number.map_err(|_| bad(text))?);
        }
    }
    if let Some(seconds) = pending {
        total = total.add(&Interval::from_parts(0.0, 0.0, seconds * MICROS_PER_SECOND as f64)?)?;
        any = true;
    }
    if !any {
        return Err(bad(text));
    }
    if ago != standard { total.neg() } else { Ok(total) }
}

/// Splits `-10s` into `-10`, `s` and keeps `04:05:06` and `1-2` whole.
fn words(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    // A divider in front of a number is none.
    let words = text.split_whitespace().map(|word| word.trim_start_matches([':', '/']));
    for word in words.filter(|word| !word.is_empty()) {
        if word.contains(':') {
            out.push(word.to_string());
            continue;
        }
        let mut current = String::new();
        let mut previous_alpha = false;
        for c in word.chars() {
            let alpha = c.is_alphabetic();
            if !current.is_empty() && alpha != previous_alpha {
                out.push(std::mem::take(&mut current));
            }
            current.push(c);
            previous_alpha = alpha;
        }
        out.push(current);
    }
    out
}

fn signed(word: &str) -> (i64, &str) {
    match word.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, word.strip_prefix('+').unwrap_or(word)),
    }
}

fn parse_hms(word: &str) -> Option<Interval> {
    let (sign, rest) = signed(word);
    let mut parts = rest.split(':');
    let digits = |s: &str| -> Option<i64> {
        match s.bytes().all(|b| b.is_ascii_digit()) {
            // `12:` is twelve hours.
            true if s.is_empty() => Some(0),
            true => s.parse().ok(),
            false => None,
        }
    };
    let hours = digits(parts.next().filter(|hours| !hours.is_empty())?)?;
    let minute_text = parts.next()?;
    let (minutes, seconds, micros) = match parts.next() {
        Some(s) => {
            let (whole, fraction) = s.split_once('.').unwrap_or((s, ""));
            (digits(minute_text)?, digits(whole)?, fraction_micros(fraction)?)
        }
        None => match minute_text.split_once('.') {
            Some((s, fraction)) => {
                return Some(Interval {
                    micros: sign
                        * ((hours * 60 + digits(s)?) * MICROS_PER_SECOND
                            + fraction_micros(fraction)?),
                    ..Interval::default()
                });
            }
            None => (digits(minute_text)?, 0, 0),
        },
    };
    if parts.next().is_some() || minutes > 59 || seconds > 60 {
        return None;
    }
    let total = hours
        .checked_mul(3600)?
        .checked_add(minutes * 60 + seconds)?
        .checked_mul(MICROS_PER_SECOND)?
        .checked_add(micros)?;
    Some(Interval { micros: sign * total, ..Interval::default() })
}

/// `1-2`: years and months.
/// Years and months of `1-2`, without its sign.
fn parse_year_month(word: &str) -> Option<(i64, i64)> {
    let (years, months) = signed(word).1.split_once('-')?;
    let number = |digits: &str| match digits.bytes().all(|b| b.is_ascii_digit()) {
        true => digits.parse().ok(),
        false => None,
    };
    Some((number(years)?, number(months)?))
}

/// ISO 8601 after the P: `1y2m3dt4h5m6s`.
fn parse_iso(rest: &str, text: &str) -> SqlResult<Interval> {
    let (mut months, mut days, mut micros) = (0.0, 0.0, 0.0);
    let mut in_time = false;
    let mut number = String::new();
    let mut any = false;
    for c in rest.chars() {
        if c == 't' && number.is_empty() {
            in_time = true;
            continue;
        }
        if c.is_ascii_digit() || matches!(c, '.' | '-' | '+') {
            number.push(c);
            continue;
        }
        let amount: f64 = number.parse().map_err(|_| bad(text))?;
        number.clear();
        any = true;
        let second = MICROS_PER_SECOND as f64;
        match (in_time, c) {
            (false, 'y') => months += amount * 12.0,
            (false, 'm') => months += amount,
            (false, 'w') => days += amount * 7.0,
            (false, 'd') => days += amount,
            (true, 'h') => micros += amount * 3600.0 * second,
            (true, 'm') => micros += amount * 60.0 * second,
            (true, 's') => micros += amount * second,
            _ => return Err(bad(text)),
        }
    }
    if !any || !number.is_empty() {
        return Err(bad(text));
    }
    Interval::from_parts(months, days, micros)
}
