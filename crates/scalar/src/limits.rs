//! How large the value of one call may become.
//!
//! Most functions give about as much as they get. Some make much of little: `repeat` does, and
//! a short text that is replaced by a long one again and again, and a text split into its
//! characters. Such a value is made in one piece, before anybody can count it; so its size is
//! limited here. What is larger already (a parameter, a stored value) may stay as large as it is.

use braid_types::{Datum, SqlError, SqlResult, SqlState};

use crate::EvalContext;

/// Bytes of a text that a call makes.
pub(crate) const MAX_BYTES: usize = 64 << 20;
/// Values of fewer bytes are nobody's concern.
pub(crate) const COUNTED: usize = 64 << 10;
/// Elements of an array that a call makes.
pub(crate) const MAX_ITEMS: usize = MAX_BYTES / size_of::<Datum>();

pub(crate) fn too_long() -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large")
        .with_detail(format!("A call makes at most {MAX_BYTES} bytes of less."))
}

pub(crate) fn too_many_items() -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("array size exceeds the maximum allowed ({MAX_ITEMS})"),
    )
    .with_hint("generate_series and unnest give any number of rows.")
}

/// That many bytes of `given` ones are going to be made: they are not too many, and there is room.
pub(crate) fn check_bytes(bytes: usize, given: usize, ctx: &EvalContext) -> SqlResult<()> {
    if bytes > MAX_BYTES && bytes > given {
        return Err(too_long());
    }
    match &ctx.large {
        Some(large) if bytes >= COUNTED => large.pass(bytes),
        _ => Ok(()),
    }
}

/// The elements of an array that is made of something else.
pub(crate) fn items(made: impl Iterator<Item = Datum>) -> SqlResult<Vec<Datum>> {
    let items: Vec<Datum> = made.take(MAX_ITEMS + 1).collect();
    if items.len() > MAX_ITEMS { Err(too_many_items()) } else { Ok(items) }
}

/// A call's value, unless it is larger than all that it was made of and than calls may make, or
/// than there is room for.
pub(crate) fn checked(value: Datum, args: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
    let largest = |size: fn(&Datum) -> usize| args.iter().map(size).max().unwrap_or(0);
    let size = match &value {
        Datum::Text(text) => text.len(),
        Datum::Json(text) => text.len(),
        Datum::Bytea(bytea) => bytea.len(),
        Datum::Array(array) => array.items.len() * size_of::<Datum>(),
        _ => return Ok(value),
    };
    if size < COUNTED {
        return Ok(value);
    }
    match &value {
        Datum::Array(array) if array.items.len() > MAX_ITEMS.max(largest(length)) => {
            return Err(too_many_items());
        }
        Datum::Text(_) | Datum::Bytea(_) if size > MAX_BYTES => {
            return check_bytes(size, largest(bytes), ctx).map(|()| value);
        }
        _ => {}
    }
    if let Some(large) = &ctx.large {
        large.pass(size.max(bytes(&value)))?;
    }
    Ok(value)
}

fn bytes(value: &Datum) -> usize {
    match value {
        Datum::Text(text) => text.len(),
        Datum::Bytea(bytea) => bytea.len(),
        Datum::Array(_) => value.memory(),
        _ => 0,
    }
}

fn length(value: &Datum) -> usize {
    match value {
        Datum::Array(array) => array.items.len(),
        _ => 0,
    }
}
