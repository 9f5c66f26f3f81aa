//! What a statement writes to.
//!
//! - [`written`]: the table, the scope of its columns, RETURNING.
//! - [`through`]: a table behind views.

mod through;
mod written;

pub(super) use through::{Verb, ViewChecks};
pub(crate) use written::scope_of;
pub use written::{Returning, returning};
pub(super) use written::{
    Target, bind_inserted, bind_returning, check_assignable, is_default, refuse_given, returned,
    with_extras,
};
