//! `macaddr` and `macaddr8`: addresses of network cards, as six or eight bytes.

use super::{Ordered, OrderedKind};
use crate::text_in::bad_input;
use crate::{SqlError, SqlResult, SqlState};

/// The value that bytes are.
pub fn of(bytes: &[u8]) -> Ordered {
    let kind = if bytes.len() == 6 { OrderedKind::Macaddr } else { OrderedKind::Macaddr8 };
    Ordered::new(kind, bytes)
}

/// Forms of an address: how many digits a byte has at most, how many bytes a group has, and what
/// stands between groups.
const FORMS: &[(usize, usize, char)] = &[
    (usize::MAX, 1, ':'),
    (usize::MAX, 1, '-'),
    (2, 3, ':'),
    (2, 3, '-'),
    (2, 2, '.'),
    (2, 2, '-'),
    (2, 6, ' '),
];

/// Reads six hexadecimal numbers as C's `%x` does: blanks and a sign may stand in front of each.
fn numbers(text: &str, (width, group, divider): (usize, usize, char)) -> Option<[i64; 6]> {
    let mut rest = text;
    let mut out = [0; 6];
    for (at, number) in out.iter_mut().enumerate() {
        if at > 0 && at % group == 0 {
            rest = rest.strip_prefix(divider)?;
        }
        rest = rest.trim_start();
        let sign = rest.starts_with(['+', '-']);
        let digits = &rest[usize::from(sign)..];
        let most = width.saturating_sub(usize::from(sign));
        let len = digits.bytes().take(most).take_while(u8::is_ascii_hexdigit).count();
        let value = i64::from_str_radix(&digits[..len], 16).ok()?;
        *number = if rest.starts_with('-') { -value } else { value };
        rest = &digits[len..];
    }
    rest.trim().is_empty().then_some(out)
}

pub(super) fn parse(text: &str) -> SqlResult<Ordered> {
    let found = FORMS.iter().find_map(|form| numbers(text, *form));
    let found = found.ok_or_else(|| bad_input("macaddr", text))?;
    let mut bytes = [0; 6];
    for (byte, number) in bytes.iter_mut().zip(found) {
        *byte = u8::try_from(number).map_err(|_| {
            SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("invalid octet value in \"macaddr\" value: \"{text}\""),
            )
        })?;
    }
    Ok(of(&bytes))
}

pub(super) fn parse8(text: &str) -> SqlResult<Ordered> {
    let bytes = match pairs(text.trim()) {
        Some(bytes) if bytes.len() == 8 => bytes,
        Some(bytes) if bytes.len() == 6 => extended(&bytes),
        _ => return Err(bad_input("macaddr8", text)),
    };
    Ok(of(&bytes))
}

/// Pairs of digits with one kind of separator, which may stand between any two of them.
fn pairs(text: &str) -> Option<Vec<u8>> {
    let mut separator = None;
    let mut bytes = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let pair = rest.get(..2).filter(|p| p.bytes().all(|b| b.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(pair, 16).ok()?);
        rest = &rest[2..];
        if let Some(sign) = rest.chars().next().filter(|c| ":-.".contains(*c)) {
            if *separator.get_or_insert(sign) != sign || rest.len() == 1 {
                return None;
            }
            rest = &rest[1..];
        }
    }
    Some(bytes)
}

/// Eight bytes out of six: FF and FE in the middle.
pub fn extended(six: &[u8]) -> Vec<u8> {
    [&six[..3], &[0xFF, 0xFE], &six[3..]].concat()
}

pub(super) fn text(value: &Ordered) -> String {
    let pairs: Vec<String> = value.bytes().iter().map(|b| format!("{b:02x}")).collect();
    pairs.join(":")
}
