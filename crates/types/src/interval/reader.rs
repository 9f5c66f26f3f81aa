//! Texts of intervals.
//!
//! ```text
//!   1 year 2 mons 3 days 04:05:06.7 ago     numbers with units, a time
//!   1-2 3 4:05:06                           the SQL standard's: years-months, days, time
//!   P1Y2M3DT4H5M6.7S                        ISO 8601's, see `iso`
//! ```
//!
//! What a text means follows PostgreSQL's rules (its documentation, 8.5.4). Pieces are gone through
//! from the last to the first, so that a unit is known when its number comes; a number without one
//! is of the last field of the type, of days in front of a time or of hours, or of the unit that
//! follows.

use super::fields::IntervalFields;
use super::iso;
use super::sum::{Number, Sum, Unit};
use crate::datetime_in::{Kind, Piece, fraction_micros, pieces};
use crate::{Interval, IntervalForm, SqlError, SqlResult, SqlState, Style};

/// Why a text is no interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It is not of a form that is known.
    Syntax,
    /// A field is too large.
    Range,
}

/// Reads all the styles PostgreSQL reads.
pub(crate) fn parse_interval(text: &str, style: &Style) -> SqlResult<Interval> {
    read(text, style, None)
}

impl Interval {
    /// Reads `INTERVAL 'text' FIRST TO LAST`.
    ///
    /// # Errors
    /// 22007 for what is no interval, 22015 and 22008 for one that is too long.
    pub fn parse_fields(text: &str, style: &Style, fields: IntervalFields) -> SqlResult<Interval> {
        read(text, style, Some(fields)).map(|interval| fields.cut(interval))
    }
}

fn read(text: &str, style: &Style, fields: Option<IntervalFields>) -> SqlResult<Interval> {
    let sum = match pieces(text).ok_or(Trouble::Syntax).and_then(|all| decode(&all, style, fields))
    {
        Err(Trouble::Syntax) => iso::read(text),
        read => read,
    };
    let sum = sum.map_err(|trouble| match trouble {
        Trouble::Syntax => SqlError::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type interval: \"{text}\""),
        ),
        Trouble::Range => SqlError::new(
            SqlState("22015"),
            format!("interval field value out of range: \"{text}\""),
        ),
    })?;
    sum.interval()
        .ok_or_else(|| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range"))
}

/// What a second with a fraction gives.
const SECONDS: [Unit; 3] = [Unit::Second, Unit::Millisecond, Unit::Microsecond];
/// Characters of a word that count.
const WORD: usize = 10;

/// What a word means.
enum Meaning {
    Unit(Unit),
    /// A unit that intervals do not have.
    NoUnit,
    Ago,
}

fn meaning(word: &str) -> Option<Meaning> {
    let unit = match word.get(..WORD).unwrap_or(word) {
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Unit::Microsecond,
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Unit::Millisecond,
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
        "d" | "day" | "days" => Unit::Day,
        "w" | "week" | "weeks" => Unit::Week,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
        "dec" | "decs" | "decade" | "decades" => Unit::Decade,
        "c" | "cent" | "century" | "centuries" => Unit::Century,
        "mil" | "mils" | "millennia" | "millennium" => Unit::Millennium,
        "qtr" | "quarter" | "timezone" | "timezone_h" | "timezone_m" => {
            return Some(Meaning::NoUnit);
        }
        "ago" => return Some(Meaning::Ago),
        _ => return None,
    };
    Some(Meaning::Unit(unit))
}

/// What the next number to the left is.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    /// Nothing was said.
    Any,
    Unit(Unit),
    /// No number can be it.
    Nothing,
}

struct Decoder {
    fields: Option<IntervalFields>,
    sum: Sum,
    wanted: Wanted,
    /// What was given already: each once.
    given: Vec<Unit>,
    /// One sign is meant for all.
    backwards: bool,
    ago: bool,
}

fn decode(all: &[Piece], style: &Style, fields: Option<IntervalFields>) -> Result<Sum, Trouble> {
    let sign = |piece: &Piece| piece.text.starts_with(['-', '+']);
    let backwards = style.interval == IntervalForm::Sql
        && all.first().is_some_and(|first| first.text.starts_with('-'))
        && !all[1..].iter().any(sign);
    let mut decoder = Decoder {
        fields,
        sum: Sum::default(),
        wanted: Wanted::Any,
        given: Vec::new(),
        backwards,
        ago: false,
    };
    for piece in all.iter().rev() {
        decoder.piece(piece)?;
    }
    if decoder.given.is_empty() {
        return Err(Trouble::Syntax);
    }
    if decoder.ago { decoder.sum.turned() } else { Ok(decoder.sum) }
}

impl Decoder {
    fn piece(&mut self, piece: &Piece) -> Result<(), Trouble> {
        let text = piece.text.as_str();
        match piece.kind {
            Kind::Time => self.time(text, false),
            // What is wrong with it, PostgreSQL does not say: it tries a number then.
            Kind::Offset if text.contains(':') => {
                self.time(&text[1..], text.starts_with('-')).map_err(|_| Trouble::Syntax)
            }
            Kind::Offset | Kind::Date | Kind::Number => self.number(text),
            Kind::Word => {
                match meaning(text).ok_or(Trouble::Syntax)? {
                    Meaning::Unit(unit) => self.wanted = Wanted::Unit(unit),
                    Meaning::NoUnit => self.wanted = Wanted::Nothing,
                    Meaning::Ago => (self.ago, self.wanted) = (true, Wanted::Nothing),
                }
                Ok(())
            }
        }
    }

    fn give(&mut self, units: &[Unit]) -> Result<(), Trouble> {
        if units.iter().any(|unit| self.given.contains(unit)) {
            return Err(Trouble::Syntax);
        }
        self.given.extend(units);
        Ok(())
    }

    /// `h:m`, `h:m:s`, `m:s.f`.
    fn time(&mut self, text: &str, negative: bool) -> Result<(), Trouble> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (text, None),
        };
        let number = |digits: &str| match digits {
            "" => Ok(0),
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse::<i64>().map_err(|_| Trouble::Range)
            }
            _ => Err(Trouble::Syntax),
        };
        let small = |digits: &str| {
            let value = number(digits)?;
            if value > i64::from(i32::MAX) { Err(Trouble::Range) } else { Ok(value) }
        };
        let parts: Vec<&str> = whole.split(':').collect();
        let two = fraction.is_some() || self.fields.is_some_and(|f| f.is_minutes_and_seconds());
        let [hours, minutes, seconds] = match parts.as_slice() {
            [m, s] if two => [0, small(m)?, small(s)?],
            [h, m] => [number(h)?, small(m)?, 0],
            [h, m, s] => [number(h)?, small(m)?, small(s)?],
            _ => return Err(Trouble::Syntax),
        };
        let micros = fraction.map_or(Some(0), fraction_micros).ok_or(Trouble::Syntax)?;
        if minutes > 59 || seconds > 60 {
            return Err(Trouble::Range);
        }
        self.sum.set_time([hours, minutes, seconds], micros).ok_or(Trouble::Range)?;
        if negative {
            self.sum.turn_time()?;
        }
        if self.backwards {
            self.sum.turn_time_back();
        }
        self.wanted = Wanted::Unit(Unit::Day);
        self.give(&[Unit::Hour, Unit::Minute])?;
        self.give(&SECONDS)
    }

    /// A number, or `years-months`.
    fn number(&mut self, text: &str) -> Result<(), Trouble> {
        let mut unit = match self.wanted {
            Wanted::Any => Some(self.fields.map_or(Unit::Second, IntervalFields::unit)),
            Wanted::Unit(unit) => Some(unit),
            Wanted::Nothing => None,
        };
        let negative = text.starts_with('-');
        let unsigned = text.trim_start_matches(['-', '+']);
        let end = unsigned.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = unsigned.split_at(end);
        let sign = if negative { -1 } else { 1 };
        let read = |digits: &str| match digits {
            "" => Ok(0),
            // With its sign, for the smallest.
            digits => format!("{}{digits}", if negative { "-" } else { "" })
                .parse::<i64>()
                .map_err(|_| Trouble::Range),
        };
        let mut number = Number { whole: read(digits)?, fraction: 0.0 };
        if let Some(months) = rest.strip_prefix('-') {
            let months = months_of(months)?;
            let all = number.whole.checked_mul(12).and_then(|all| all.checked_add(sign * months));
            (number.whole, unit) = (all.ok_or(Trouble::Range)?, Some(Unit::Month));
        } else if let Some(digits) = rest.strip_prefix('.') {
            if !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(Trouble::Syntax);
            }
            let fraction = if digits.is_empty() { 0.0 } else { rest.parse().unwrap_or(0.0) };
            number.fraction = fraction * sign as f64;
        } else if !rest.is_empty() {
            return Err(Trouble::Syntax);
        }
        if self.backwards {
            number.whole = -number.whole.saturating_abs();
            number.fraction = -number.fraction.abs();
        }
        let unit = unit.ok_or(Trouble::Syntax)?;
        self.sum.add(number, unit)?;
        self.wanted = Wanted::Unit(if unit == Unit::Hour { Unit::Day } else { unit });
        match unit {
            Unit::Second if number.fraction != 0.0 => self.give(&SECONDS),
            unit => self.give(&[unit]),
        }
    }
}

/// Months behind the years, below twelve.
fn months_of(text: &str) -> Result<i64, Trouble> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(digits);
    let months = if digits.is_empty() { Some(0) } else { digits.parse().ok() };
    match months.filter(|months| *months < 12) {
        None => Err(Trouble::Range),
        Some(_) if !rest.is_empty() => Err(Trouble::Syntax),
        Some(months) => Ok(months),
    }
}
