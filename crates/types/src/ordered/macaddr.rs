//! `macaddr` and `macaddr8`: addresses of network cards, as six or eight bytes.

use super::{Ordered, OrderedKind};
use crate::SqlResult;
use crate::text_in::bad_input;

/// The value that bytes are.
pub fn of(bytes: &[u8]) -> Ordered {
    let kind = if bytes.len() == 6 { OrderedKind::Macaddr } else { OrderedKind::Macaddr8 };
    Ordered::new(kind, bytes)
}

/// Pairs of digits, in groups that one kind of separator divides.
fn digits(text: &str) -> Option<Vec<u8>> {
    const BYTES: usize = 6;
    let text = text.trim();
    let separator = text.chars().find(|c| !c.is_ascii_hexdigit());
    let parts: Vec<&str> = match separator {
        Some(c) if ":-.".contains(c) => text.split(c).collect(),
        Some(_) => return None,
        None => vec![text],
    };
    let hex: String = match parts.len() {
        // Digits may be left out where each byte is on its own.
        BYTES => {
            let each = parts.iter().map(|p| (1..=2).contains(&p.len()).then(|| format!("{p:0>2}")));
            each.collect::<Option<_>>()?
        }
        1..=3 => {
            let length = BYTES * 2 / parts.len();
            parts.iter().all(|p| p.len() == length).then(|| parts.concat())?
        }
        _ => return None,
    };
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|p| u8::from_str_radix(std::str::from_utf8(p).ok()?, 16).ok()).collect()
}

pub(super) fn parse(text: &str) -> SqlResult<Ordered> {
    let bytes = digits(text).ok_or_else(|| bad_input("macaddr", text))?;
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
