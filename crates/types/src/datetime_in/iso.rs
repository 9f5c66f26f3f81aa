//! What nearly all dates and times look like: `2026-01-31`, `2026-01-31 23:59:59.25`. Files have
//! millions of them, and a year of four digits in front means the same in every `DateStyle`.
//!
//! Whatever is not exactly that is none, and left to the [reader](super::reader): so errors are its
//! errors.

use crate::datetime::{days_from_civil, month_days};

/// A day number.
pub(super) fn date(text: &str) -> Option<i64> {
    match text.as_bytes() {
        [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] => {
            let year = two(*y1, *y2)? * 100 + two(*y3, *y4)?;
            let (month, day) = (two(*m1, *m2)?, two(*d1, *d2)?);
            let is_day = year > 0 && (1..=12).contains(&month) && day > 0;
            (is_day && day <= month_days(year, month)).then(|| days_from_civil(year, month, day))
        }
        _ => None,
    }
}

/// Day number and microseconds of its day of a moment, and the seconds east of UTC that it names,
/// if it names some, as in `2026-01-31 12:00:00+01` and `-03:30`.
pub(super) fn moment(text: &str) -> Option<(i64, i64, Option<i32>)> {
    let (day, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix([' ', 'T'])?;
    let (time, zone) = rest.split_at(rest.find(['+', '-']).unwrap_or(rest.len()));
    let zone = if zone.is_empty() { None } else { Some(offset(zone)?) };
    Some((date(day)?, time_of_day(time)?, zone))
}

/// Seconds east of UTC, of less than 15 hours.
fn offset(text: &str) -> Option<i32> {
    let (west, hours, minutes) = match text.as_bytes() {
        [sign, h1, h2] => (*sign == b'-', two(*h1, *h2)?, 0),
        [sign, h1, h2, b':', m1, m2] => (*sign == b'-', two(*h1, *h2)?, two(*m1, *m2)?),
        _ => return None,
    };
    let seconds = (hours * 60 + minutes) * 60;
    let east = if west { -seconds } else { seconds };
    (hours < 15 && minutes < 60).then_some(east as i32)
}

/// Microseconds of `23:59:59`, with up to six digits of a fraction.
fn time_of_day(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_at_checked(8)?;
    let [h1, h2, b':', m1, m2, b':', s1, s2] = clock.as_bytes() else { return None };
    let (hours, minutes, seconds) = (two(*h1, *h2)?, two(*m1, *m2)?, two(*s1, *s2)?);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let micros = match fraction.strip_prefix('.') {
        None if fraction.is_empty() => 0,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => match digits.len() {
            count @ 1..=6 => digits.parse::<i64>().ok()? * 10i64.pow(6 - count as u32),
            _ => return None,
        },
        _ => return None,
    };
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros)
}

fn two(tens: u8, ones: u8) -> Option<i64> {
    let digit = |b: u8| b.is_ascii_digit().then(|| i64::from(b - b'0'));
    Some(digit(tens)? * 10 + digit(ones)?)
}

#[cfg(test)]
mod tests {
    use super::super::values::as_read;
    use super::*;
    use crate::{DateForm, DateOrder, Style, TimeZone};

    /// Texts that are some of ours, and texts that nearly are.
    fn texts() -> Vec<String> {
        let mut out = Vec::new();
        let times = ["", "T00:00:00", " 23:59:59.25", " 24:00:00", "T12:60:00", " 01:02:60"];
        let fractions = [" 1:02:03", "T01:02:03.", " 01:02:03.000001", " 01:02:03.1234567"];
        let zones = [" 01:02:03+00", "T01:02:03.5-03:30", " 01:02:03+15", " 01:02:03-14:60"];
        for year in [0, 1, 4, 99, 1900, 2000, 2024, 2026, 9999] {
            for (month, day) in (0..14).flat_map(|month| (0..33).map(move |day| (month, day))) {
                for time in times.iter().chain(&fractions).chain(&zones) {
                    out.push(format!("{year:04}-{month:02}-{day:02}{time}"));
                }
            }
        }
        let whole = "2026-01-31 23:59:59.250000+01:30";
        for at in 0..whole.len() {
            out.push(whole[..at].to_string());
            for with in "0129-:. TZ+é".chars() {
                out.push(format!("{}{with}{}", &whole[..at], &whole[at..]));
                out.push(format!("{}{with}{}", &whole[..at], &whole[at + 1..]));
            }
        }
        out
    }

    #[test]
    fn what_is_read_at_once_is_what_the_reader_reads() {
        let (mut dates, mut moments) = (0, 0);
        let orders = [DateOrder::Mdy, DateOrder::Dmy, DateOrder::Ymd];
        for (text, order) in texts().iter().flat_map(|t| orders.map(|order| (t, order))) {
            let style = Style { order, date: DateForm::German, ..Style::iso(TimeZone::utc()) };
            let fields = || as_read(text, &style).unwrap_or_else(|| panic!("{text} is refused"));
            if let Some(day) = date(text) {
                dates += 1;
                let (year, month, of_month) = fields().date.expect(text);
                assert_eq!(days_from_civil(year, month, of_month), day, "{text}");
            }
            if let Some((day, micros, zone)) = moment(text) {
                moments += 1;
                let fields = fields();
                let (year, month, of_month) = fields.date.expect(text);
                assert_eq!(days_from_civil(year, month, of_month), day, "{text}");
                assert_eq!(fields.time, Some(micros), "{text}");
                assert_eq!(fields.zone, zone.map(TimeZone::Fixed), "{text}");
            }
        }
        assert!(dates > 5_000 && moments > 20_000, "{dates} {moments}");
        assert_eq!((date("2026-02-29"), date("0000-01-01"), date("2026-1-02")), (None, None, None));
    }
}
