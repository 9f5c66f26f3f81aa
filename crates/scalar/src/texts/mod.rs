//! How texts compare.
//!
//! - [`blank_padded`]: `char(n)`, without its padding.
//! - [`collator`]: what orders the texts of a locale, by ICU.
//! - [`collated`]: comparisons by a locale, as comparisons of bytes.
//! - [`pattern`]: LIKE, SIMILAR TO and regular expressions.

pub(crate) mod blank_padded;
pub(crate) mod collated;
pub(crate) mod collator;
pub(crate) mod pattern;
