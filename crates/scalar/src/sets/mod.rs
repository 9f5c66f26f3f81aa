//! Functions that give rows, by subject.
//!
//! A call takes one row of arguments and gives rows as lists of values, which plans ask for one by
//! one. A NULL argument gives no rows, unless the entry says `.lax()`.

mod arrays;
mod documents;
mod keywords;
mod series;

use crate::registry::Table;

/// What adds the set-returning functions of each subject to the registry.
pub(crate) const SUBJECTS: &[fn(&mut Table)] =
    &[series::fill, arrays::fill, documents::fill, keywords::fill];
