//! Queries that lock what they find.
//!
//! - [`lock_clauses`]: FOR UPDATE and its like, and what they name.
//! - [`lock_within`]: locks within queries of queries.
//! - [`locked`]: plans of queries that are none of ours, whose rows are locked.

pub(super) mod lock_clauses;
pub(super) mod lock_within;
pub(crate) mod locked;
