//! Pieces of text forms.
//!
//! - [`collation`]: which order texts have.
//! - [`float`]: numbers with a floating point.
//! - [`quote`]: names as SQL writes them.
//! - [`regexp`]: regular expressions.

pub(crate) mod collation;
pub(crate) mod float;
pub(crate) mod quote;
pub mod regexp;
