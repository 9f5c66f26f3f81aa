//! `bit(n)` and `bit varying(n)`: strings of bits.
//!
//! ```text
//!   8 bytes of bits, zeros behind them | how many of the 64 count; 65: all, and more follow
//! ```
//! Such groups sort like the strings: bit by bit, and a string before those that begin with it.

use super::{Ordered, OrderedKind};
use crate::{SqlError, SqlResult, SqlState};

const GROUP: usize = 64;
const MORE: u8 = 65;

/// The value of bits.
pub fn of(bits: &[bool], kind: OrderedKind) -> Ordered {
    let mut bytes = Vec::with_capacity(bits.len() / 7 + 9);
    let mut rest = bits;
    loop {
        let (group, after) = rest.split_at(rest.len().min(GROUP));
        let mut word = 0u64;
        for (at, bit) in group.iter().enumerate() {
            word |= u64::from(*bit) << (GROUP - 1 - at);
        }
        bytes.extend(word.to_be_bytes());
        bytes.push(if after.is_empty() { group.len() as u8 } else { MORE });
        rest = after;
        if rest.is_empty() {
            return Ordered::new(kind, &bytes);
        }
    }
}

/// The bits of a value.
pub fn bits_of(value: &Ordered) -> Vec<bool> {
    let mut bits = Vec::new();
    for group in value.bytes().chunks_exact(9) {
        let word = u64::from_be_bytes(group[..8].try_into().expect("eight bytes"));
        let count = usize::from(group[8]).min(GROUP);
        bits.extend((0..count).map(|at| word >> (GROUP - 1 - at) & 1 == 1));
    }
    bits
}

/// Number of bits.
pub fn length(value: &Ordered) -> usize {
    let groups = value.bytes().len() / 9;
    (groups - 1) * GROUP + usize::from(value.bytes()[groups * 9 - 1])
}

pub(super) fn is_sound(bytes: &[u8]) -> bool {
    let (groups, rest) = bytes.as_chunks::<9>();
    let Some((last, before)) = groups.split_last() else { return false };
    let word = u64::from_be_bytes(last[..8].try_into().expect("eight bytes"));
    let counted = usize::from(last[8]);
    let full = before.iter().all(|g| g[8] == MORE);
    let zeros = counted == GROUP || word.checked_shl(counted as u32) == Some(0);
    rest.is_empty() && full && counted <= GROUP && zeros
}

pub(super) fn parse(text: &str, kind: OrderedKind) -> SqlResult<Ordered> {
    let bad = |c: char, what: &str| {
        SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("\"{c}\" is not a valid {what} digit"),
        )
    };
    let (digits, is_hex) = match text.as_bytes().first() {
        Some(b'b' | b'B') => (&text[1..], false),
        Some(b'x' | b'X') => (&text[1..], true),
        _ => (text, false),
    };
    let mut bits = Vec::with_capacity(digits.len());
    for c in digits.chars() {
        if is_hex {
            let digit = c.to_digit(16).ok_or_else(|| bad(c, "hexadecimal"))?;
            bits.extend((0..4).rev().map(|at| digit >> at & 1 == 1));
        } else {
            bits.push(c.to_digit(2).ok_or_else(|| bad(c, "binary"))? == 1);
        }
    }
    Ok(of(&bits, kind))
}

pub(super) fn text(value: &Ordered) -> String {
    bits_of(value).iter().map(|b| if *b { '1' } else { '0' }).collect()
}

/// Bits as bytes, zeros behind the last.
pub fn packed(bits: &[bool]) -> Vec<u8> {
    let byte = |eight: &[bool]| {
        eight.iter().enumerate().fold(0, |byte, (at, bit)| byte | u8::from(*bit) << (7 - at))
    };
    bits.chunks(8).map(byte).collect()
}

pub(super) fn to_wire(value: &Ordered, out: &mut Vec<u8>) {
    let bits = bits_of(value);
    out.extend((bits.len() as i32).to_be_bytes());
    out.extend(packed(&bits));
}

pub(super) fn from_wire(bytes: &[u8], kind: OrderedKind) -> Option<Ordered> {
    let (head, packed) = bytes.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_be_bytes(*head)).ok()?;
    if packed.len() != count.div_ceil(8) {
        return None;
    }
    let bits: Vec<bool> = (0..count).map(|at| packed[at / 8] >> (7 - at % 8) & 1 == 1).collect();
    Some(of(&bits, kind))
}

/// The string cut or filled up with zeros to the length that its type asks for.
///
/// # Errors
/// 22026 and 22001, unless the cast is explicit.
pub(crate) fn fit(
    value: &Ordered,
    length: usize,
    varying: bool,
    explicit: bool,
) -> SqlResult<Ordered> {
    let has = self::length(value);
    if has == length || (varying && has < length) {
        return Ok(value.clone());
    }
    if !explicit {
        return Err(if varying {
            SqlError::new(
                SqlState::STRING_DATA_RIGHT_TRUNCATION,
                format!("bit string too long for type bit varying({length})"),
            )
        } else {
            SqlError::new(
                SqlState::STRING_DATA_LENGTH_MISMATCH,
                format!("bit string length {has} does not match type bit({length})"),
            )
        });
    }
    let mut bits = bits_of(value);
    bits.resize(length, false);
    Ok(of(&bits, value.kind()))
}

/// An integer of so many bits as a string of a length: its last bits, the sign in front.
pub(crate) fn of_integer(number: i64, length: usize) -> Ordered {
    let bits: Vec<bool> = (0..length).rev().map(|at| number >> at.min(63) & 1 == 1).collect();
    of(&bits, OrderedKind::Bit)
}

/// The integer of `width` bits that a string is; `None` if it is longer.
pub(crate) fn to_integer(value: &Ordered, width: usize) -> Option<i64> {
    let bits = bits_of(value);
    if bits.len() > width {
        return None;
    }
    let number = bits.iter().fold(0u64, |n, bit| n << 1 | u64::from(*bit));
    Some(if width == 32 { i64::from(number as u32 as i32) } else { number as i64 })
}
