//! Documents, and the language that looks into them.
//!
//! - [`json`]: text that is kept as it was written.
//! - [`jsonb`]: values in a normal form.
//! - [`jsonpath`]: paths of SQL/JSON, `$.items[*] ? (@.price > 10)`.

pub mod json;
pub mod jsonb;
pub mod jsonpath;
