//! What the parsed tree says beside what is computed.
//!
//! - [`mod@deparse`]: stored expressions as PostgreSQL prints them.
//! - [`interval_literal`]: INTERVAL with its fields.
//! - [`places`]: where in the script stands what an error is about.

mod deparse;
mod interval_literal;
mod places;

pub use deparse::{SPECIAL, deparse, typed_literal};
pub(crate) use interval_literal::bind_interval;
pub(crate) use places::at_its_place;
pub use places::{at_beginning, beginning};
