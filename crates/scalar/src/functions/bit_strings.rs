//! Functions and operators over `bit` and `bit varying`.

use braid_types::ordered::bits;
use braid_types::{Datum, OrderedKind, SqlError, SqlResult, SqlState};

use super::i64_of;
use crate::registry::Table;

fn bits_of(value: &Datum) -> Vec<bool> {
    match value {
        Datum::Ordered(value) => bits::bits_of(value),
        _ => Vec::new(),
    }
}

fn made(bits: &[bool], kind: OrderedKind) -> SqlResult<Datum> {
    Ok(Datum::Ordered(bits::of(bits, kind)))
}

fn bit(bits: &[bool]) -> SqlResult<Datum> {
    made(bits, OrderedKind::Bit)
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    operators(t);
    lengths(t);
    pieces(t);
}

fn both(x: &Datum, y: &Datum, name: &str, op: fn(bool, bool) -> bool) -> SqlResult<Datum> {
    let (x, y) = (bits_of(x), bits_of(y));
    if x.len() != y.len() {
        return Err(SqlError::new(
            SqlState::STRING_DATA_LENGTH_MISMATCH,
            format!("cannot {name} bit strings of different sizes"),
        ));
    }
    let made: Vec<bool> = x.iter().zip(&y).map(|(x, y)| op(*x, *y)).collect();
    bit(&made)
}

/// Bits that are in both.
pub(crate) fn and(x: &Datum, y: &Datum) -> SqlResult<Datum> {
    both(x, y, "AND", |x, y| x & y)
}

/// Bits that are in one of them.
pub(crate) fn or(x: &Datum, y: &Datum) -> SqlResult<Datum> {
    both(x, y, "OR", |x, y| x | y)
}

/// Bits that are in one of them only.
pub(crate) fn xor(x: &Datum, y: &Datum) -> SqlResult<Datum> {
    both(x, y, "XOR", |x, y| x ^ y)
}

/// Shifted to the left, or by a negative number to the right; the length stays.
fn shifted(bits: &[bool], by: i64) -> Vec<bool> {
    let source = |at: usize| (at as i64).checked_add(by).and_then(|at| usize::try_from(at).ok());
    let at = |at: usize| source(at).and_then(|at| bits.get(at)).copied().unwrap_or(false);
    (0..bits.len()).map(at).collect()
}

fn operators(t: &mut Table) {
    t.add("&(bit, bit) bit", |a, _| and(&a[0], &a[1]));
    t.add("|(bit, bit) bit", |a, _| or(&a[0], &a[1]));
    t.add("#(bit, bit) bit", |a, _| xor(&a[0], &a[1]));
    t.add("~(bit) bit", |a, _| {
        let not: Vec<bool> = bits_of(&a[0]).iter().map(|b| !b).collect();
        bit(&not)
    });
    t.add("<<(bit, int4) bit", |a, _| bit(&shifted(&bits_of(&a[0]), i64_of(&a[1]))));
    t.add(">>(bit, int4) bit", |a, _| bit(&shifted(&bits_of(&a[0]), -i64_of(&a[1]))));
    t.add("||(varbit, varbit) varbit", |a, _| {
        made(&[bits_of(&a[0]), bits_of(&a[1])].concat(), OrderedKind::Varbit)
    });
}

fn lengths(t: &mut Table) {
    t.add("length(bit) int4", |a, _| Ok(Datum::Int4(bits_of(&a[0]).len() as i32)));
    t.add("bit_length(bit) int4", |a, _| Ok(Datum::Int4(bits_of(&a[0]).len() as i32)));
    t.add("octet_length(bit) int4", |a, _| {
        Ok(Datum::Int4(bits_of(&a[0]).len().div_ceil(8) as i32))
    });
    t.add("bit_count(bit) int8 -- number of ones", |a, _| {
        Ok(Datum::Int8(bits_of(&a[0]).iter().filter(|b| **b).count() as i64))
    });
    t.add(
        "position(bit, bit) int4 -- position of the other bits, 0 if they are not there",
        |a, _| {
            let (all, part) = (bits_of(&a[0]), bits_of(&a[1]));
            // Bits that there are not are found nowhere in bits that there are not.
            if all.is_empty() || part.is_empty() {
                return Ok(Datum::Int4(i32::from(!all.is_empty())));
            }
            let found = all.windows(part.len()).position(|w| *w == part[..]);
            Ok(Datum::Int4(found.map_or(0, |at| at as i32 + 1)))
        },
    );
}

fn index(bits: &[bool], at: &Datum) -> SqlResult<usize> {
    let at = i64_of(at);
    usize::try_from(at).ok().filter(|at| *at < bits.len()).ok_or_else(|| {
        SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            format!("bit index {at} out of valid range (0..{})", bits.len() as i64 - 1),
        )
    })
}

/// The bits from a position on (the first is 1), so many of them.
fn cut(bits: &[bool], from: i64, count: Option<i64>) -> SqlResult<&[bool]> {
    let end = match count {
        Some(count) if count < 0 => {
            return Err(SqlError::new(
                SqlState::SUBSTRING_ERROR,
                "negative substring length not allowed",
            ));
        }
        Some(count) => from.saturating_add(count),
        None => i64::MAX,
    };
    let place = |at: i64| (at - 1).clamp(0, bits.len() as i64) as usize;
    let (from, end) = (place(from), place(end));
    Ok(&bits[from..end.max(from)])
}

fn pieces(t: &mut Table) {
    t.add("get_bit(bit, int4) int4 -- the bit at a place, the first is 0", |a, _| {
        let bits = bits_of(&a[0]);
        Ok(Datum::Int4(bits[index(&bits, &a[1])?].into()))
    });
    t.add("set_bit(bit, int4, int4) bit -- with another bit at a place", |a, _| {
        let mut bits = bits_of(&a[0]);
        let at = index(&bits, &a[1])?;
        bits[at] = match i64_of(&a[2]) {
            0 => false,
            1 => true,
            _ => {
                let message = "new bit must be 0 or 1";
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        };
        bit(&bits)
    });
    t.add("substring(bit, int4) bit", |a, _| bit(cut(&bits_of(&a[0]), i64_of(&a[1]), None)?));
    t.add("substring(bit, int4, int4) bit", |a, _| {
        bit(cut(&bits_of(&a[0]), i64_of(&a[1]), Some(i64_of(&a[2])))?)
    });
    t.add("overlay(bit, bit, int4) bit", |a, _| {
        let part = bits_of(&a[1]);
        overlay(&bits_of(&a[0]), &part, i64_of(&a[2]), part.len() as i64)
    });
    t.add("overlay(bit, bit, int4, int4) bit", |a, _| {
        overlay(&bits_of(&a[0]), &bits_of(&a[1]), i64_of(&a[2]), i64_of(&a[3]))
    });
}

fn overlay(bits: &[bool], part: &[bool], from: i64, count: i64) -> SqlResult<Datum> {
    let before = cut(bits, 1, Some(from - 1))?;
    let end = i32::try_from(from.saturating_add(count))
        .map_err(|_| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))?;
    let after = cut(bits, end.into(), None)?;
    bit(&[before, part, after].concat())
}
