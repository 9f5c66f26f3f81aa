//! Partitions: which rows are in which.
//!
//! The table holds all rows; a partition is a condition on them with a name (see
//! [`braid_catalog::Partition`], and the note `docs/design/2026-11-25-partitions.md`).
//!
//! ```text
//!   written under the table's name      routing: which partition takes the row? none: 23514
//!   written under a partition's name    routing: is it this one, or below it? no: 23514
//!   read under a partition's name       condition: the table's rows for which it holds
//! ```
//! - `key`: the values of a row that decide.
//! - `condition`: what a partition's rows have in common, as SQL: for reading, for the predicates
//!   of indexes of a partition alone, and for clients.
//! - `routing`: the same as a search, for writing.

mod condition;
mod key;
mod routing;

pub use condition::{bound_text, condition, constraint_text, key_text, key_types, table_oid};
pub(crate) use condition::{condition_of, limits_text};
pub(crate) use key::Key;
pub(crate) use routing::{Edge, Router, edges, order};
