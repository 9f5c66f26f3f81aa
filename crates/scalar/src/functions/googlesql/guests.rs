//! All guests of the registry, and what their code shares.

use braid_types::{Datum, SqlError, SqlResult, SqlState};

use super::{arrays, documents, formats, numbers, patterns, texts, times};
use crate::registry::Table;

/// Adds all of them.
pub(in crate::functions) fn fill(t: &mut Table) {
    t.guests(true);
    for subject in [
        numbers::fill,
        arrays::fill,
        texts::fill,
        patterns::fill,
        times::fill,
        formats::fill,
        documents::fill,
    ] {
        subject(t);
    }
    t.guests(false);
}

/// The error of an argument that makes no sense.
pub(super) fn invalid(text: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
}

/// NULL where a value cannot be computed.
pub(super) fn or_null(value: SqlResult<Datum>) -> SqlResult<Datum> {
    match value {
        Err(e) if e.state().0.starts_with("22") => Ok(Datum::Null),
        value => value,
    }
}
