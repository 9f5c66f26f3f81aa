//! Composite types: `CREATE TYPE point AS (x integer, y integer)`, and the rows of tables.
//!
//! - [`of_type`]: what such a type is, and how values of other rows become values of it.
//! - [`text`]: `(1,"two words",)`, read; [`wire`]: the binary form.
//!
//! ```text
//!   catalog   TypeKind::Composite([{ x, integer }, { y, integer }])   the durable facts
//!      |
//!      v      made when a catalog is read
//!   CompositeType { oid, name, fields }  <---- SqlType::Composite
//!   RecordValue { names: x y, fields: 1 2 }    one value: Datum::Record
//! ```
//! A value carries the names of its fields, for `to_json`, and never its type: that is known from
//! where the value stands. Rows of tables hold the fields by their places, so that renaming one
//! touches no row.

mod of_type;
pub(crate) mod text;
pub(crate) mod wire;

pub(crate) use of_type::by_oid;
pub use of_type::{CompositeField, CompositeType};
