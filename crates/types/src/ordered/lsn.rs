//! `pg_lsn`: a place in a log of changes, as a number of bytes that is written in two halves.
//! Nothing here has such a log: values come from clients.

use super::{Ordered, OrderedKind};
use crate::SqlResult;
use crate::text_in::bad_input;

/// The place behind so many bytes.
pub fn of(bytes: u64) -> Ordered {
    Ordered::new(OrderedKind::PgLsn, &bytes.to_be_bytes())
}

/// How many bytes are before a place.
pub fn bytes_before(value: &Ordered) -> u64 {
    value.bytes().iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// Reads `16/B374D848`: two numbers of up to eight hexadecimal digits.
pub(super) fn parse(text: &str) -> SqlResult<Ordered> {
    let half = |digits: &str| {
        let sound =
            (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        sound.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
    };
    let halves = text.split_once('/').and_then(|(high, low)| half(high).zip(half(low)));
    let (high, low) = halves.ok_or_else(|| bad_input("pg_lsn", text))?;
    Ok(of(high << 32 | low))
}

pub(super) fn text(value: &Ordered) -> String {
    let bytes = bytes_before(value);
    format!("{:X}/{:X}", bytes >> 32, bytes & 0xffff_ffff)
}
