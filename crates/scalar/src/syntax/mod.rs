//! What the parsed tree says beside what is computed.
//!
//! - [`interval_literal`]: INTERVAL with its fields.
//! - [`places`]: where in the script stands what an error is about.

mod interval_literal;
mod places;

pub(crate) use interval_literal::bind_interval;
pub(crate) use places::at_its_place;
pub use places::{at_beginning, beginning};
