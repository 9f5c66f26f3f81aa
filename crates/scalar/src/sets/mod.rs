//! Functions that give rows, by subject.
//!
//! A call takes one row of arguments and gives all its rows at once, as lists of values; plans
//! unnest them. A NULL argument gives no rows, unless the entry says `.lax()`.

mod arrays;
mod documents;
mod series;

use crate::registry::Table;

/// Adds every set-returning function to the registry.
pub(crate) fn fill(t: &mut Table) {
    series::fill(t);
    arrays::fill(t);
    documents::fill(t);
}
