//! Statements that are read as others.
//!
//! - [`locking`]: queries that lock rows, inside of other statements, go into WITH.
//! - [`merge`]: what sqlparser does not know of MERGE.

pub(crate) mod locking;
pub(crate) mod merge;
