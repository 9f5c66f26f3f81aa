//! Text in other encodings than UTF-8: those that PostgreSQL lets clients have.
//!
//! - [`encoding`]: which there are, by name and number; text there and back.
//! - [`single`]: one byte for each character; [`tables`]: which.
//! - [`double`]: one byte or more, made of a library's tables and what PostgreSQL has otherwise;
//!   [`rules`]: what that is.
//! - [`decoding`]: bytes that come in pieces.
//! - [`within`]: texts within binary forms of values.

mod decoding;
mod double;
mod encoding;
mod rules;
mod single;
mod tables;
mod within;

pub use decoding::Decoding;
pub use encoding::Encoding;
pub use within::recode_binary;
