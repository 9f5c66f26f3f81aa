//! Statements that are read as others.
//!
//! - [`check_option`]: WITH CHECK OPTION of views.
//! - [`locking`]: queries that lock rows, inside of other statements, go into WITH.
//! - [`merge`]: what sqlparser does not know of MERGE.
//! - [`subscripts`]: `SET a[1] = ..`.

pub(crate) mod check_option;
pub(crate) mod locking;
pub(crate) mod merge;
pub(crate) mod subscripts;
