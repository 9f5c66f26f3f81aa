//! Types that users make.
//!
//! - [`user_type`]: names, enum types, DROP.
//! - [`composite`]: composite types and their fields.
//! - [`range`]: types of ranges.
//! - [`collation`]: orders of texts.
//! - [`domain`]: what a value must be beside its type.

pub(crate) mod collation;
pub(crate) mod composite;
pub(crate) mod domain;
mod range;
pub(crate) mod user_type;
