//! Functions and operators over `bit` and `bit varying`.

use braid_types::ordered::bits;
use braid_types::{Datum, OrderedKind, SqlError, SqlResult, SqlState};

use super::i64_of;
use super::slices::{cut, new_bit, overlaid};
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

fn pieces(t: &mut Table) {
    t.add("get_bit(bit, int4) int4 -- the bit at a place, the first is 0", |a, _| {
        let bits = bits_of(&a[0]);
        Ok(Datum::Int4(bits[index(&bits, &a[1])?].into()))
    });
    t.add("set_bit(bit, int4, int4) bit -- with another bit at a place", |a, _| {
        let mut bits = bits_of(&a[0]);
        let at = index(&bits, &a[1])?;
        bits[at] = new_bit(&a[2])?;
        bit(&bits)
    });
    t.add("substring(bit, int4) bit", |a, _| bit(cut(&bits_of(&a[0]), i64_of(&a[1]), None)?));
    t.add("substring(bit, int4, int4) bit", |a, _| {
        bit(cut(&bits_of(&a[0]), i64_of(&a[1]), Some(i64_of(&a[2])))?)
    });
    t.add("overlay(bit, bit, int4) bit", |a, _| {
        let part = bits_of(&a[1]);
        bit(&overlaid(&bits_of(&a[0]), &part, i64_of(&a[2]), part.len() as i64)?)
    });
    t.add("overlay(bit, bit, int4, int4) bit", |a, _| {
        bit(&overlaid(&bits_of(&a[0]), &bits_of(&a[1]), i64_of(&a[2]), i64_of(&a[3]))?)
    });
}
