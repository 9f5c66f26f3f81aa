//! What statements have done: statistics by fingerprint, and one execution while it is measured.
//!
//! ```text
//!   execute ── Measure ── rows ── .. ── last row ──► Tally of the statement's fingerprint
//!                 │                                     │
//!                 └ clock, transaction's counts,        └ pg_stat_statements,
//!                   memory's peak                         braid_statement_statistics
//! ```
//! - [`statements`]: all fingerprints of the node and their tallies, bounded.
//! - [`tally`]: what is counted of one of them. [`measure`]: from an execution's begin to its end.
//!
//! Costs on the way of a point read: two looks at the clock and one lock that nobody else wants.

pub(crate) mod measure;
pub mod statements;
pub mod tally;

pub use statements::{StatementStatistics, Statements};
pub use tally::{Tally, Times};
