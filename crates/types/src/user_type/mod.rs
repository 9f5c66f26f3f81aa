//! Types that users have made: enum types, and composite ones, which the rows of tables have, too.
//!
//! - [`enums`]: enum types and their values.
//! - [`composite`]: what a composite type is, and how values of other rows become values of it.
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

mod composite;
mod enums;
pub(crate) mod text;
pub(crate) mod wire;

pub(crate) use composite::by_oid as composite_by_oid;
pub use composite::{CompositeField, CompositeType};
pub(crate) use enums::by_oid as enum_by_oid;
pub use enums::{EnumLabel, EnumType, EnumValue, LABEL_STEP, shown_type_name};
