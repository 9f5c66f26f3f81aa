//! What a statement writes to.
//!
//! - [`written`]: the table, the scope of its columns, RETURNING.
//! - [`by_query`]: what of ON CONFLICT and RETURNING only a query can tell.
//! - [`sets`]: columns that a query gives values for.
//! - [`through`]: a table behind views.
//! - [`table_oid`]: `tableoid` in RETURNING.

mod by_query;
mod sets;
mod table_oid;
mod through;
mod written;

pub(super) use by_query::{JoinedRows, ReturningByQuery, UpdateByQuery, beginning, check_settable};
pub(super) use sets::Sets;
pub(super) use table_oid::with_table_oid;
pub(super) use through::{Verb, ViewChecks};
pub(crate) use written::scope_of;
pub use written::{Returning, returning};
pub(super) use written::{
    Target, bind_inserted, bind_returning, check_assignable, is_default, refuse_given, returned,
    with_extras,
};
