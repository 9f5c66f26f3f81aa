//! Types that users make.
//!
//! - [`user_type`]: names, enum types, DROP. [`composite`]: composite types and their fields.
//! - [`domain`]: domains.

pub(crate) mod composite;
pub(crate) mod domain;
pub(crate) mod user_type;
