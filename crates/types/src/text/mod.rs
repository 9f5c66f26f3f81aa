//! Pieces of text forms.
//!
//! - [`collation`]: which order texts have.
//! - [`encodings`]: others than UTF-8.
//! - [`float`]: numbers with a floating point.
//! - [`quote`]: names as SQL writes them.
//! - [`regexp`]: regular expressions.

pub(crate) mod collation;
pub mod encodings;
pub(crate) mod float;
pub(crate) mod quote;
pub mod regexp;
