//! What the pieces of a date or time mean, piece by piece.
//!
//! A number means what is still missing, in an order that `DateOrder` and a month in letters
//! decide: PostgreSQL's rules (its documentation, appendix B.1).

use super::tokens::{Kind, Piece};
use super::values::{Fields, fraction_micros};
use super::words::{Label, Meaning, meaning};
use crate::datetime::{
    MICROS_PER_DAY, MICROS_PER_SECOND, civil_from_days, days_from_civil, month_days,
};
use crate::{DateOrder, Style, TimeZone};

/// The Julian day of 2000-01-01.
const JULIAN_2000: i64 = 2_451_545;

/// Why a text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    Syntax,
    Overflow,
    /// A month or day that another `DateStyle` might not read as one.
    Order,
    /// An offset that no zone has.
    Offset,
    /// A name that may only be a zone's, and is none.
    Zone(String),
}

type Read<T> = Result<T, Trouble>;

const YEAR: u16 = 1;
const MONTH: u16 = 2;
const DAY: u16 = 4;
const DATE: u16 = YEAR | MONTH | DAY;
const DAY_OF_YEAR: u16 = 8;
const HOUR: u16 = 16;
const MINUTE: u16 = 32;
const SECOND: u16 = 64;
const TIME: u16 = HOUR | MINUTE | SECOND;
const ZONE: u16 = 128;
const NOON: u16 = 256;
const ERA: u16 = 512;
const WEEKDAY: u16 = 1024;
const SUMMER: u16 = 2048;
/// A time by its name alone; whatever stands beside it does not count.
const NAMED: u16 = 4096;

/// Numbers as they were written.
#[derive(Debug, Default)]
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
}

/// What has been read so far.
pub(super) struct Reader<'a> {
    style: &'a Style,
    /// A time of day is read: numbers are times unless said otherwise.
    of_day: bool,
    have: u16,
    parts: Parts,
    zone: Option<TimeZone>,
    /// The offset of a zone that was named may differ from day to day.
    wants_day: bool,
    /// The year has one or two digits.
    short_year: bool,
    julian: bool,
    text_month: bool,
    /// Years count backwards.
    backwards: bool,
    after_noon: Option<bool>,
    label: Option<Label>,
    /// It is a word alone.
    out: Fields,
}

fn number(digits: &str) -> Read<i64> {
    match digits.parse::<i32>() {
        Ok(number) => Ok(number.into()),
        Err(_) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            Err(Trouble::Overflow)
        }
        Err(_) => Err(Trouble::Syntax),
    }
}

fn fraction(digits: &str) -> Read<i64> {
    fraction_micros(digits).ok_or(Trouble::Syntax)
}

/// The offset of `+02`, `-0330`, `+05:45:10`, and what is wrong with it.
fn offset(text: &str) -> Read<TimeZone> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let mut rest = &text[1..];
    let mut next = || {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (part, behind) = rest.split_at(digits);
        rest = behind.strip_prefix(':').unwrap_or(behind);
        (part, behind.starts_with(':'), behind.is_empty())
    };
    let (first, colon, last) = next();
    let (mut hours, mut minutes, mut seconds) = (number(first)?, 0, 0);
    let mut whole = last;
    if colon {
        let (part, colon, last) = next();
        (minutes, whole) = (number(part)?, last);
        if colon {
            let (part, _, last) = next();
            (seconds, whole) = (number(part)?, last);
        }
    } else if last && first.len() > 2 {
        (hours, minutes) = (hours / 100, hours % 100);
    }
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Trouble::Offset);
    }
    match whole {
        true => Ok(TimeZone::Fixed((sign * (hours * 3600 + minutes * 60 + seconds)) as i32)),
        false => Err(Trouble::Syntax),
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(style: &'a Style, of_day: bool) -> Reader<'a> {
        Reader {
            style,
            of_day,
            have: 0,
            parts: Parts::default(),
            zone: None,
            wants_day: false,
            short_year: false,
            julian: false,
            text_month: false,
            backwards: false,
            after_noon: None,
            label: None,
            out: Fields::default(),
        }
    }

    /// Reads all pieces.
    pub(super) fn read(mut self, pieces: &[Piece]) -> Read<Fields> {
        for at in 0..pieces.len() {
            let got = self.piece(pieces, at)?;
            if got & self.have != 0 {
                return Err(Trouble::Syntax);
            }
            self.have |= got;
        }
        self.finish()
    }

    /// Reads a piece; returns what came with it.
    fn piece(&mut self, pieces: &[Piece], at: usize) -> Read<u16> {
        let text = pieces[at].text.as_str();
        match pieces[at].kind {
            Kind::Time => {
                if !matches!(self.label.take(), None | Some(Label::Time)) {
                    return Err(Trouble::Syntax);
                }
                self.clock(text)
            }
            Kind::Offset => {
                self.zone = Some(offset(text)?);
                Ok(ZONE)
            }
            Kind::Date if self.of_day => {
                let last = pieces.last().is_some_and(|last| last.kind == Kind::Date);
                let before_time = pieces.get(1).is_some_and(|next| next.kind == Kind::Time);
                match at == 0 && pieces.len() >= 2 && (last || before_time) {
                    true => self.date(text),
                    false => self.time_and_zone(text),
                }
            }
            Kind::Date => match self.label {
                Some(Label::JulianDay) => {
                    self.label = None;
                    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
                    self.julian_day(&text[..digits])?;
                    self.zone = Some(offset(&text[digits..])?);
                    Ok(DATE | TIME | ZONE)
                }
                None if self.have & (MONTH | DAY) != (MONTH | DAY) => self.date(text),
                None | Some(Label::Time) => self.time_and_zone(text),
                Some(_) => Err(Trouble::Syntax),
            },
            Kind::Number => match self.label.take() {
                Some(label) => self.labelled(label, text),
                None => self.number(text, pieces, at),
            },
            Kind::Word => self.word(text, pieces, at),
        }
    }

    /// `hh:mm`, `hh:mm:ss.fff`, `mm:ss.fff`.
    fn clock(&mut self, text: &str) -> Read<u16> {
        let (whole, after) = match text.split_once('.') {
            Some((whole, digits)) => (whole, Some(digits)),
            None => (text, None),
        };
        // `12:` is noon.
        let read = |part: &str| if part.is_empty() { Ok(0) } else { number(part) };
        let mut parts = whole.split(':').map(read);
        let first = parts.next().unwrap_or(Err(Trouble::Syntax))?;
        let second = parts.next().unwrap_or(Err(Trouble::Syntax))?;
        (self.parts.hour, self.parts.minute, self.parts.second) = match (parts.next(), after) {
            (None, None) => (first, second, 0),
            (None, Some(_)) => (0, first, second),
            (Some(third), _) => (first, second, third?),
        };
        self.parts.micros = after.map_or(Ok(0), fraction)?;
        if parts.next().is_some() {
            return Err(Trouble::Syntax);
        }
        match self.parts.minute > 59 || self.parts.second > 60 || self.time() > MICROS_PER_DAY {
            true => Err(Trouble::Overflow),
            false => Ok(TIME),
        }
    }

    fn time(&self) -> i64 {
        ((self.parts.hour * 60 + self.parts.minute) * 60 + self.parts.second) * MICROS_PER_SECOND
            + self.parts.micros
    }

    /// A date of numbers and perhaps a month in letters, with something between them.
    fn date(&mut self, text: &str) -> Read<u16> {
        let (mut got, before) = (0, self.have);
        let mut numbers = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            let digits = rest.starts_with(|c: char| c.is_ascii_digit());
            let len = rest
                .bytes()
                .take_while(|b| b.is_ascii_alphanumeric() && b.is_ascii_digit() == digits)
                .count();
            let (part, behind) = rest.split_at(len);
            rest = behind;
            match (digits, meaning(part)) {
                _ if part.is_empty() => return Err(Trouble::Syntax),
                (true, _) => numbers.push(part),
                (false, Some(Meaning::Filler)) => {}
                (false, Some(Meaning::Month(month))) if (before | got) & MONTH == 0 => {
                    (self.parts.month, self.text_month) = (month, true);
                    got |= MONTH;
                }
                (false, _) => return Err(Trouble::Syntax),
            }
            // One character divides.
            let mut behind = rest.chars();
            behind.next();
            rest = behind.as_str();
        }
        for part in numbers {
            let more = self.loose_number(part, before | got)?;
            if more & (before | got) != 0 {
                return Err(Trouble::Syntax);
            }
            got |= more;
        }
        match (before | got) & !(DAY_OF_YEAR | ZONE) == DATE {
            true => Ok(got),
            false => Err(Trouble::Syntax),
        }
    }

    /// `hhmmss-zz`, or the name of a zone.
    fn time_and_zone(&mut self, text: &str) -> Read<u16> {
        let labelled = self.label.take().is_some();
        if !labelled && !text.starts_with(|c: char| c.is_ascii_digit()) {
            return self.named_zone(text).map_err(|_| Trouble::Zone(text.to_string()));
        }
        let at = text.find('-').ok_or(Trouble::Syntax)?;
        if self.have & TIME == TIME {
            return Err(Trouble::Syntax);
        }
        self.zone = Some(offset(&text[at..])?);
        let known = if self.of_day { DATE } else { self.have };
        Ok(self.run_together(&text[..at], known)? | ZONE)
    }

    fn named_zone(&mut self, name: &str) -> Read<u16> {
        let zone = TimeZone::parse(name).ok_or(Trouble::Syntax)?;
        self.wants_day = matches!(zone, TimeZone::Named(_)) && name.contains('/');
        self.zone = Some(zone);
        Ok(ZONE)
    }

    /// A number that stands alone.
    fn number(&mut self, text: &str, pieces: &[Piece], at: usize) -> Read<u16> {
        let before_point = text.find('.');
        if self.of_day {
            let dated = at == 0 && pieces.len() >= 2 && pieces[pieces.len() - 1].kind == Kind::Date;
            return match before_point {
                Some(_) if dated => self.date(text),
                Some(digits) if digits > 2 => self.run_together(text, DATE),
                Some(_) => Err(Trouble::Syntax),
                None if text.len() > 4 => self.run_together(text, DATE),
                None => self.loose_number(text, DATE),
            };
        }
        let missing = self.have & DATE == 0 || self.have & TIME == 0;
        match before_point {
            Some(_) if self.have & DATE == 0 => self.date(text),
            Some(digits) if digits > 2 => self.run_together(text, self.have),
            _ if text.len() >= 6 && missing => self.run_together(text, self.have),
            _ => self.loose_number(text, self.have),
        }
    }

    /// A number that means what is missing.
    fn loose_number(&mut self, text: &str, have: u16) -> Read<u16> {
        let (digits, after) = match text.split_once('.') {
            Some((digits, _)) if digits.len() > 2 => return self.run_together(text, have | DATE),
            Some((digits, after)) => (digits, Some(after)),
            None => (text, None),
        };
        let value = number(digits)?;
        if let Some(after) = after {
            self.parts.micros = fraction(after)?;
        }
        let len = text.len();
        if len == 3 && have & DATE == YEAR && (1..=366).contains(&value) {
            self.parts.day_of_year = value;
            return Ok(DAY_OF_YEAR | MONTH | DAY);
        }
        let order = self.style.order;
        let got = match have & DATE {
            0 if len >= 3 || order == DateOrder::Ymd => YEAR,
            0 if order == DateOrder::Dmy => DAY,
            0 => MONTH,
            YEAR => MONTH,
            MONTH if self.text_month && (len >= 3 || order == DateOrder::Ymd) => YEAR,
            MONTH => DAY,
            known if known == YEAR | MONTH => {
                if self.text_month && len >= 3 && self.short_year {
                    // The first number was the day.
                    (self.parts.day, self.parts.year, self.short_year) =
                        (self.parts.year, value, false);
                    return Ok(DAY);
                }
                DAY
            }
            DAY => MONTH,
            known if known == MONTH | DAY => YEAR,
            DATE => return self.run_together(text, have),
            _ => return Err(Trouble::Syntax),
        };
        match got {
            YEAR => (self.parts.year, self.short_year) = (value, len <= 2),
            MONTH => self.parts.month = value,
            _ => self.parts.day = value,
        }
        Ok(got)
    }

    /// `yyyymmdd`, `yymmdd`, `hhmmss`, `hhmm`.
    fn run_together(&mut self, text: &str, have: u16) -> Read<u16> {
        let (digits, after) = match text.split_once('.') {
            Some((digits, after)) => (digits, Some(after)),
            None => (text, None),
        };
        let len = digits.len();
        if let Some(after) = after {
            self.parts.micros = fraction(after)?;
        } else if have & DATE != DATE && len >= 6 {
            self.parts.day = number(&digits[len - 2..])?;
            self.parts.month = number(&digits[len - 4..len - 2])?;
            self.parts.year = number(&digits[..len - 4])?;
            self.short_year |= len == 6;
            return Ok(DATE);
        }
        if have & TIME == TIME || !matches!(len, 4 | 6) {
            return Err(Trouble::Syntax);
        }
        (self.parts.hour, self.parts.minute) = (number(&digits[..2])?, number(&digits[2..4])?);
        self.parts.second = if len == 6 { number(&digits[4..])? } else { 0 };
        Ok(TIME)
    }

    fn julian_day(&mut self, digits: &str) -> Read<()> {
        (self.parts.year, self.parts.month, self.parts.day) =
            civil_from_days(number(digits)? - JULIAN_2000);
        self.julian = true;
        Ok(())
    }

    /// A number behind a word that says what it is.
    fn labelled(&mut self, label: Label, text: &str) -> Read<u16> {
        let (digits, after) = match text.split_once('.') {
            Some((digits, after)) => (digits, Some(after)),
            None => (text, None),
        };
        let may_have_point = matches!(label, Label::JulianDay | Label::Second | Label::Time);
        if after.is_some() && !may_have_point {
            return Err(Trouble::Syntax);
        }
        if label == Label::Time {
            let got = self.run_together(text, self.have | DATE)?;
            return if got == TIME { Ok(got) } else { Err(Trouble::Syntax) };
        }
        let value = number(digits)?;
        let behind_hour = self.have & MONTH != 0 && self.have & HOUR != 0;
        Ok(match label {
            Label::Year => {
                self.parts.year = value;
                YEAR
            }
            Label::Month if !behind_hour => {
                self.parts.month = value;
                MONTH
            }
            Label::Month | Label::Minute => {
                self.parts.minute = value;
                MINUTE
            }
            Label::Day => {
                self.parts.day = value;
                DAY
            }
            Label::Hour => {
                self.parts.hour = value;
                HOUR
            }
            Label::Second => {
                self.parts.second = value;
                self.parts.micros = after.map_or(Ok(0), fraction)?;
                SECOND
            }
            Label::JulianDay => {
                self.julian_day(digits)?;
                let Some(after) = after else { return Ok(DATE) };
                let part: f64 = format!("0.{after}").parse().map_err(|_| Trouble::Syntax)?;
                self.parts.micros = (part * MICROS_PER_DAY as f64).round() as i64;
                DATE | TIME
            }
            Label::Time | Label::Other => return Err(Trouble::Syntax),
        })
    }

    fn word(&mut self, word: &str, pieces: &[Piece], at: usize) -> Read<u16> {
        let Some(meaning) = meaning(word) else { return self.named_zone(word) };
        let only_time = matches!(meaning, Meaning::Month(_) | Meaning::Weekday | Meaning::Day(_))
            && self.of_day;
        if only_time {
            return Err(Trouble::Syntax);
        }
        Ok(match meaning {
            Meaning::Month(month) => {
                let mut got = MONTH;
                let numeric = self.have & MONTH != 0 && !self.text_month;
                if numeric && self.have & DAY == 0 && (1..=31).contains(&self.parts.month) {
                    // What was taken for the month is the day.
                    (self.parts.day, got) = (self.parts.month, DAY);
                }
                (self.parts.month, self.text_month) = (month, true);
                got
            }
            Meaning::Weekday => WEEKDAY,
            Meaning::Filler => 0,
            Meaning::Day(days) => {
                self.now(days);
                DATE
            }
            Meaning::Now => {
                self.parts.micros = self.now(0);
                self.zone = Some(self.style.zone);
                if self.of_day { TIME } else { DATE | TIME | ZONE }
            }
            Meaning::Epoch | Meaning::Infinity(_) if self.of_day => return Err(Trouble::Syntax),
            Meaning::Epoch => {
                self.out.epoch = true;
                NAMED
            }
            Meaning::Infinity(positive) => {
                self.out.infinity = Some(positive);
                NAMED
            }
            Meaning::AllBalls => {
                self.zone = Some(TimeZone::utc());
                TIME | ZONE
            }
            Meaning::Noon(after) => {
                self.after_noon = Some(after);
                NOON
            }
            Meaning::Era(backwards) => {
                self.backwards = backwards;
                ERA
            }
            Meaning::SummerTime => {
                if let Some(TimeZone::Fixed(east)) = self.zone {
                    self.zone = Some(TimeZone::Fixed(east + 3600));
                }
                SUMMER
            }
            Meaning::Label(label) => return self.label_next(label, pieces.get(at + 1)),
        })
    }

    /// A word says what the next piece is.
    fn label_next(&mut self, label: Label, next: Option<&Piece>) -> Read<u16> {
        if label == Label::Time {
            let next = next.map(|next| next.kind);
            let time = matches!(next, Some(Kind::Number | Kind::Time | Kind::Date));
            if !time || (!self.of_day && self.have & DATE != DATE) {
                return Err(Trouble::Syntax);
            }
        }
        self.label = Some(label);
        Ok(0)
    }

    /// Takes the day so many days from today; returns the time of day.
    fn now(&mut self, days: i64) -> i64 {
        let now = self.style.zone.to_local(self.style.now);
        let day = now.div_euclid(MICROS_PER_DAY) + days;
        (self.parts.year, self.parts.month, self.parts.day) = civil_from_days(day);
        self.julian = true;
        now.rem_euclid(MICROS_PER_DAY)
    }

    /// All was read: what it comes to.
    fn finish(mut self) -> Read<Fields> {
        if self.have & YEAR != 0 && !self.julian {
            self.parts.year = match self.short_year && !self.backwards {
                true if self.parts.year < 70 => self.parts.year + 2000,
                true => self.parts.year + if self.parts.year < 100 { 1900 } else { 0 },
                false if self.parts.year <= 0 => return Err(Trouble::Overflow),
                false if self.backwards => 1 - self.parts.year,
                false => self.parts.year,
            };
        }
        if self.have & DAY_OF_YEAR != 0 {
            let day = days_from_civil(self.parts.year, 1, 1) + self.parts.day_of_year - 1;
            (self.parts.year, self.parts.month, self.parts.day) = civil_from_days(day);
        }
        let wrong_month = self.have & MONTH != 0 && !(1..=12).contains(&self.parts.month);
        if wrong_month || (self.have & DAY != 0 && !(1..=31).contains(&self.parts.day)) {
            return Err(Trouble::Order);
        }
        let dated = self.have & DATE == DATE;
        if dated && self.parts.day > month_days(self.parts.year, self.parts.month) {
            return Err(Trouble::Overflow);
        }
        if let Some(after_noon) = self.after_noon {
            self.parts.hour = match (after_noon, self.parts.hour) {
                (_, 13..) => return Err(Trouble::Overflow),
                (false, 12) => 0,
                (true, hour) if hour != 12 => hour + 12,
                (_, hour) => hour,
            };
        }
        if self.have & NAMED != 0 {
            return Ok(self.out);
        }
        let timed = self.have & TIME == TIME;
        if self.of_day {
            let whole =
                self.parts.minute <= 59 && self.parts.second <= 60 && self.time() <= MICROS_PER_DAY;
            if !whole {
                return Err(Trouble::Overflow);
            }
            if !timed || (self.wants_day && !dated) {
                return Err(Trouble::Syntax);
            }
        } else if !dated {
            return Err(Trouble::Syntax);
        }
        self.out.date = dated.then_some((self.parts.year, self.parts.month, self.parts.day));
        self.out.time = Some(self.time());
        self.out.zone = self.zone;
        Ok(self.out)
    }
}
