//! Parts of what is counted from 1 on: bytes, and bits.

use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::i64_of;

/// What lies from a place on, so much of it; all the rest without `count`.
///
/// # Errors
/// 22011 for a negative count.
pub(super) fn cut<T>(all: &[T], from: i64, count: Option<i64>) -> SqlResult<&[T]> {
    if count.is_some_and(|count| count < 0) {
        let reason = "negative substring length not allowed";
        return Err(SqlError::new(SqlState::SUBSTRING_ERROR, reason));
    }
    let end = count.map_or(i64::MAX, |count| from.saturating_add(count));
    let place = |at: i64| (at.saturating_sub(1)).clamp(0, all.len() as i64) as usize;
    let (from, end) = (place(from), place(end));
    Ok(&all[from..end.max(from)])
}

/// With a part in the place of so many from a place on.
///
/// # Errors
/// 22011 for a place before the first, 22003 for an end that is no `int4`.
pub(super) fn overlaid<T: Clone>(
    all: &[T],
    part: &[T],
    from: i64,
    count: i64,
) -> SqlResult<Vec<T>> {
    let before = cut(all, 1, Some(from - 1))?;
    let end = i32::try_from(from.saturating_add(count))
        .map_err(|_| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))?;
    Ok([before, part, cut(all, end.into(), None)?].concat())
}

/// The value that a bit is to get.
///
/// # Errors
/// 22023 for other numbers than 0 and 1.
pub(super) fn new_bit(value: &Datum) -> SqlResult<bool> {
    match i64_of(value) {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "new bit must be 0 or 1")),
    }
}
