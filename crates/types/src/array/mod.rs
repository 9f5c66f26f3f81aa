//! Arrays: their values and their text.
//!
//! - [`value`]: elements, and the dimensions that lay them out.
//! - [`text`]: `{1,NULL,"two words"}`, read and written.

pub(crate) mod text;
mod value;

pub use value::{ArrayValue, Dimension, Shape, check_bounds, check_dimensions};
