//! `money`: cents, with a dollar sign and commas as the locale C shows them.

use super::{Ordered, OrderedKind};
use crate::text_in::bad_input;
use crate::{SqlError, SqlResult, SqlState};

/// The value of so many cents.
pub fn of(cents: i64) -> Ordered {
    Ordered::new(OrderedKind::Money, &((cents as u64) ^ (1 << 63)).to_be_bytes())
}

/// The cents of a value.
pub fn cents(value: &Ordered) -> i64 {
    let bytes = value.bytes().try_into().expect("money has eight bytes");
    (u64::from_be_bytes(bytes) ^ (1 << 63)) as i64
}

/// 22003.
pub fn out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "money out of range")
}

pub(super) fn parse(text: &str) -> SqlResult<Ordered> {
    let bad = || bad_input("money", text);
    let range = || {
        SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value \"{text}\" is out of range for type money"),
        )
    };
    let mut rest = text.trim();
    let mut negative = false;
    if let Some(inner) = rest.strip_prefix('(').and_then(|r| r.strip_suffix(')')) {
        (negative, rest) = (true, inner.trim());
    }
    for _ in 0..2 {
        if let Some(after) = rest.strip_prefix('-') {
            (negative, rest) = (true, after.trim_start());
        } else if let Some(after) = rest.strip_prefix('+') {
            rest = after.trim_start();
        }
        rest = rest.strip_prefix('$').unwrap_or(rest).trim_start();
    }
    if let Some(before) = rest.strip_suffix('-') {
        (negative, rest) = (true, before.trim_end());
    }
    let rest = rest.strip_suffix('$').unwrap_or(rest).trim_end();
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let whole: String = whole.chars().filter(|c| *c != ',').collect();
    let is_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(&whole) || !is_digits(fraction) {
        return Err(bad());
    }
    let digit = |at: usize| fraction.as_bytes().get(at).map_or(0, |b| i128::from(b - b'0'));
    let dollars: i128 = match whole.as_str() {
        "" => 0,
        digits => digits.parse().map_err(|_| range())?,
    };
    let up = i128::from(digit(2) >= 5);
    let cents = dollars.checked_mul(100).ok_or_else(range)? + digit(0) * 10 + digit(1) + up;
    let cents = if negative { -cents } else { cents };
    Ok(of(i64::try_from(cents).map_err(|_| range())?))
}

pub(super) fn text(value: &Ordered) -> String {
    let cents = cents(value);
    let (dollars, rest) = (cents.unsigned_abs() / 100, cents.unsigned_abs() % 100);
    let digits = dollars.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}${grouped}.{rest:02}")
}
