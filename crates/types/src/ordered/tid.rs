//! `tid`: the place of a row of PostgreSQL's, kept as the number of its block and the one in it.
//! Nothing here has such a place: values come from clients.

use super::{Ordered, OrderedKind};
use crate::SqlResult;
use crate::text_in::bad_input;

/// Reads `(block,number)` as PostgreSQL does: nothing before the parenthesis or behind the other
/// matters, a number that is left out is 0, and blocks may be written as signed numbers.
pub(super) fn parse(text: &str) -> SqlResult<Ordered> {
    read(text).ok_or_else(|| bad_input("tid", text))
}

fn read(text: &str) -> Option<Ordered> {
    let (inside, _) = text.split_once(')')?;
    // A comma begins the first number as well as the parenthesis.
    let (_, numbers) = inside.split_once(['(', ','])?;
    let (block, number) = numbers.split_once(',')?;
    let block = number_of(block)?;
    let low = block as u32;
    if block != u64::from(low) && block != i64::from(low as i32) as u64 {
        return None;
    }
    let number = u16::try_from(number_of(number)?).ok()?;
    let bytes = [&low.to_be_bytes()[..], &number.to_be_bytes()].concat();
    Some(Ordered::new(OrderedKind::Tid, &bytes))
}

/// A number without a sign, of which a negative one is what C makes of it.
fn number_of(text: &str) -> Option<u64> {
    if text.is_empty() {
        return Some(0);
    }
    let text = text.trim_start();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(if text.starts_with('-') { number.wrapping_neg() } else { number })
}

pub(super) fn text(value: &Ordered) -> String {
    let (block, number) = value.bytes().split_at(4);
    let number_of = |bytes: &[u8]| bytes.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    format!("({},{})", number_of(block), number_of(number))
}
