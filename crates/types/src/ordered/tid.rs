//! `tid`: the place of a row of PostgreSQL's, kept as the number of its block and the one in it.
//! Nothing here has such a place: values come from clients.

use super::{Ordered, OrderedKind};
use crate::SqlResult;
use crate::text_in::bad_input;

/// Reads `(block,number)`. As in PostgreSQL, nothing before the parenthesis or behind it matters,
/// and blocks may be written as signed numbers.
pub(super) fn parse(text: &str) -> SqlResult<Ordered> {
    read(text).ok_or_else(|| bad_input("tid", text))
}

fn read(text: &str) -> Option<Ordered> {
    let (inside, _) = text.split_once('(')?.1.split_once(')')?;
    let (block, number) = inside.split_once(',')?;
    let block = block.trim_start();
    let block = match block.strip_prefix('-') {
        Some(digits) => number_of(digits)?.wrapping_neg(),
        None => number_of(block.strip_prefix('+').unwrap_or(block))?,
    };
    let low = block as u32;
    if block != u64::from(low) && block != i64::from(low as i32) as u64 {
        return None;
    }
    let number = number.trim_start();
    let number = u16::try_from(number_of(number.strip_prefix('+').unwrap_or(number))?).ok()?;
    let bytes = [&low.to_be_bytes()[..], &number.to_be_bytes()].concat();
    Some(Ordered::new(OrderedKind::Tid, &bytes))
}

fn number_of(digits: &str) -> Option<u64> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

pub(super) fn text(value: &Ordered) -> String {
    let (block, number) = value.bytes().split_at(4);
    let number_of = |bytes: &[u8]| bytes.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    format!("({},{})", number_of(block), number_of(number))
}
