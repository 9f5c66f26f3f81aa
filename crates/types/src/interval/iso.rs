//! ISO 8601's forms of an interval.
//!
//! ```text
//!   P1Y2M3W4DT5H6M7.8S     a letter behind each number
//!   P0001-02-03T04:05:06   the alternative form, extended
//!   P00010203T040506       the same, basic
//! ```

use super::reader::Trouble;
use super::sum::{Number, Sum, Unit};

/// Largest number; beyond it a double has no exact fraction.
const LARGEST: f64 = 1.0e15;

struct Reader<'a> {
    rest: &'a [u8],
    sum: Sum,
}

/// Reads a text of ISO's form.
pub(super) fn read(text: &str) -> Result<Sum, Trouble> {
    match text.as_bytes() {
        [b'P', rest @ ..] if !rest.is_empty() => Reader { rest, sum: Sum::default() }.run(),
        _ => Err(Trouble::Syntax),
    }
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| b.is_ascii_digit()).count()
}

/// How much of the text is a number with fraction and exponent.
fn width(bytes: &[u8]) -> usize {
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(&bytes[at..]);
    at += whole;
    let mut any = whole > 0;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(&bytes[at + 1..]);
        any |= fraction > 0;
        at += 1 + fraction;
    }
    if !any {
        return 0;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+')));
        let exponent = digits(bytes.get(at + 1 + sign..).unwrap_or_default());
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    at
}

impl Reader<'_> {
    /// The next number, and how many digits it has before its point.
    fn number(&mut self) -> Result<(Number, usize), Trouble> {
        let (text, rest) = self.rest.split_at(width(self.rest));
        let read = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
        let value = read.ok_or(Trouble::Syntax)?;
        if value.abs() > LARGEST {
            return Err(Trouble::Range);
        }
        self.rest = rest;
        let sign = usize::from(text.first() == Some(&b'-'));
        let number = Number { whole: value.trunc() as i64, fraction: value - value.trunc() };
        Ok((number, digits(&text[sign..])))
    }

    /// Takes the next character.
    fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn run(mut self) -> Result<Sum, Trouble> {
        let (mut in_time, mut any) = (false, false);
        while !self.rest.is_empty() {
            if self.rest[0] == b'T' {
                self.take();
                (in_time, any) = (true, false);
                continue;
            }
            let (number, width) = self.number()?;
            let letter = self.take();
            let unit = match (in_time, letter) {
                (false, Some(b'Y')) => Unit::Year,
                (false, Some(b'M')) => Unit::Month,
                (false, Some(b'W')) => Unit::Week,
                (false, Some(b'D')) => Unit::Day,
                (true, Some(b'H')) => Unit::Hour,
                (true, Some(b'M')) => Unit::Minute,
                (true, Some(b'S')) => Unit::Second,
                (false, None | Some(b'T')) if width == 8 && !any => {
                    self.basic_date(number)?;
                    (in_time, any) = (true, false);
                    continue;
                }
                (false, None | Some(b'T' | b'-')) if !any => {
                    self.extended_date(number, letter)?;
                    (in_time, any) = (true, false);
                    continue;
                }
                (true, None) if width == 6 && !any => return self.basic_time(number),
                (true, None | Some(b':')) if !any => {
                    return self.extended_time(number, letter.is_none());
                }
                _ => return Err(Trouble::Syntax),
            };
            self.sum.add(number, unit)?;
            any = true;
        }
        Ok(self.sum)
    }

    /// `YYYYMMDD`.
    fn basic_date(&mut self, number: Number) -> Result<(), Trouble> {
        let whole = |whole: i64| Number { whole, fraction: 0.0 };
        self.sum.add(whole(number.whole / 10_000), Unit::Year)?;
        self.sum.add(whole(number.whole / 100 % 100), Unit::Month)?;
        self.sum.add(Number { whole: number.whole % 100, ..number }, Unit::Day)
    }

    /// `YYYY-MM-DD`; the end or a `T` may stand behind each field.
    fn extended_date(&mut self, years: Number, divider: Option<u8>) -> Result<(), Trouble> {
        self.sum.add(years, Unit::Year)?;
        let mut divider = divider;
        for unit in [Unit::Month, Unit::Day] {
            match divider {
                None | Some(b'T') => return Ok(()),
                Some(b'-') => {}
                Some(_) => return Err(Trouble::Syntax),
            }
            let (number, _) = self.number()?;
            self.sum.add(number, unit)?;
            divider = self.take();
        }
        if matches!(divider, None | Some(b'T')) { Ok(()) } else { Err(Trouble::Syntax) }
    }

    /// `HHMMSS`.
    fn basic_time(mut self, number: Number) -> Result<Sum, Trouble> {
        let parts = [number.whole / 10_000, number.whole / 100 % 100, number.whole % 100];
        for (whole, unit) in parts.into_iter().zip([Unit::Hour, Unit::Minute, Unit::Second]) {
            self.sum.add(Number { whole, fraction: 0.0 }, unit)?;
        }
        // PostgreSQL takes the fraction for one of a microsecond.
        self.sum.add_micros(number.fraction, 1)?;
        Ok(self.sum)
    }

    /// `HH:MM:SS`; the end may stand behind each field.
    fn extended_time(mut self, hours: Number, ended: bool) -> Result<Sum, Trouble> {
        self.sum.add(hours, Unit::Hour)?;
        if ended {
            return Ok(self.sum);
        }
        let (minutes, _) = self.number()?;
        self.sum.add(minutes, Unit::Minute)?;
        match self.take() {
            None => return Ok(self.sum),
            Some(b':') => {}
            Some(_) => return Err(Trouble::Syntax),
        }
        let (seconds, _) = self.number()?;
        self.sum.add(seconds, Unit::Second)?;
        if self.rest.is_empty() { Ok(self.sum) } else { Err(Trouble::Syntax) }
    }
}
