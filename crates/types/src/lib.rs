//! SQL types and values, shared by everything from the key codec to the wire.
//!
//! - [`SqlType`]: a column's or expression's type, with its modifiers.
//! - [`Datum`]: one value.
//! - [`SqlError`]: what a client sees when something is wrong: SQLSTATE, message, detail, hint.
//!
//! This crate knows PostgreSQL's meaning of values (text forms, casts, comparison, arithmetic) and
//! nothing of tables, keys, statements or connections.

mod datum;
mod error;
mod sql_type;

pub use datum::{ArrayValue, Datum, Interval};
pub use error::{SqlError, SqlResult, SqlState};
pub use sql_type::SqlType;
