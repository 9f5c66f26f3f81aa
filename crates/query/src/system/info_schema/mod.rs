//! `information_schema`, with Spanner's columns and tables.
//!
//! - [`relations`]: tables, columns, constraints, views, sequences, indexes.
//! - [`declared_types`]: domains, elements of arrays, composite types, collations.
//! - [`unused`]: what is not here.
//! - [`usage`]: what uses what.

mod declared_types;
mod relations;
mod unused;
mod usage;

pub use relations::table;
pub(super) use relations::{data_type, referenced, udt_schema};
