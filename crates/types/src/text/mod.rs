//! Pieces of text forms.
//!
//! - [`float`]: numbers with a floating point.
//! - [`quote`]: names as SQL writes them.
//! - [`regexp`]: regular expressions.

pub(crate) mod float;
pub(crate) mod quote;
pub mod regexp;
