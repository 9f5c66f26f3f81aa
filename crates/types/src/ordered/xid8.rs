//! `xid8`: the number of a transaction, without a sign.

use super::{Ordered, OrderedKind};

/// The value of a number.
fn of(number: u64) -> Ordered {
    Ordered::new(OrderedKind::Xid8, &number.to_be_bytes())
}

/// The number of a value.
pub(super) fn number(value: &Ordered) -> u64 {
    value.bytes().iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// Reads a number as C does: behind blanks and a sign in decimal, in hexadecimal after `0x`, in
/// octal after `0`, up to what is no digit. What begins with no digit is 0, what is too large the
/// largest number.
pub(super) fn parse(text: &str) -> Ordered {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let hexadecimal = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (base, digits) = match hexadecimal {
        Some(rest) => (16, rest),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let mut places = digits.chars().map_while(|c| c.to_digit(base));
    let number =
        places.try_fold(0u64, |n, digit| n.checked_mul(base.into())?.checked_add(digit.into()));
    of(match number {
        Some(n) if negative => n.wrapping_neg(),
        Some(n) => n,
        None => u64::MAX,
    })
}
