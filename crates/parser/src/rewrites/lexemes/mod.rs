//! Single lexemes that are read as others.
//!
//! - [`escaped_texts`]: backslashes in texts.
//! - [`long_names`]: names of more than 63 bytes.
//! - [`unicode_escapes`]: texts and names with characters by their numbers.

pub(crate) mod escaped_texts;
pub(crate) mod long_names;
pub(crate) mod unicode_escapes;
