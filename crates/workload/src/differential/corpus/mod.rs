//! Expressions for every function, operator and cast that we claim, here and on PostgreSQL.
//!
//! ```text
//!   our pg_proc, pg_operator, pg_cast ──► signatures ──┐
//!   edge values of every type ─────────► leaves ──────┼─► expression of depth 1 to 3
//!   CASE, COALESCE, IN, BETWEEN, .. ───► constructs ──┘        │
//!        own plan (a point read), 64 in a round ─► those with a value: one general query
//!        4 of a round: WHERE · GROUP BY · ORDER BY over the table, on both servers at once
//!                                                              │
//!        value, name of the type, class of SQLSTATE ◄──────────┘  a difference is shrunk to the
//!                                                                 smallest part that differs
//! ```
//!
//! The signatures are read over the wire, so a function added to the table is covered by the next
//! run. Aggregates, set-returning and window functions have recipes in [`recipes`]; what is claimed
//! and not called fails the run ([`coverage`]). What may differ is listed in [`known`], each with
//! its reason.

mod calls;
mod catalog;
mod constructs;
mod coverage;
mod generate;
mod known;
mod recipes;
mod runner;
mod servers;
mod values;

pub use coverage::{Claim, ClaimKind, without_generator};
pub use known::reasons as allowed_differences;
pub use runner::{CorpusReport, CorpusSettings, run_corpus};

/// A broken connection, or a claim that the corpus has no recipe for.
pub type CorpusResult<T> = Result<T, Box<dyn std::error::Error>>;
