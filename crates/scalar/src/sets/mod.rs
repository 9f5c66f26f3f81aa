//! Functions that give rows, by subject.
//!
//! A call takes one row of arguments and gives all its rows at once, as lists of values; plans
//! unnest them. A NULL argument gives no rows, unless the entry says `.lax()`.

mod arrays;
mod documents;
mod series;

use crate::registry::Table;

/// What adds the set-returning functions of each subject to the registry.
pub(crate) const SUBJECTS: &[fn(&mut Table)] = &[series::fill, arrays::fill, documents::fill];
