//! The same random statements here and on PostgreSQL, with the same answers.
//!
//! ```text
//!   seed ─► schema ─► interleaved twin on BraidDB ─┐
//!                  ├► flat twin on BraidDB        ─┼─ every statement, three answers, compared
//!                  └► flat on PostgreSQL          ─┘
//! ```
//!
//! [`corpus`] compares expressions instead of statements: every function, operator and cast.
//! [`hierarchies`] lets the tables live: schema changes, transactions, reads of the past.
//!
//! Compared are rows (as a multiset, or in order where ORDER BY is total), row counts, and for
//! errors the SQLSTATE. What may differ is listed in [`known`], each with its reason; everything
//! else is a failure, printed with the seed and all statements of its round.

mod corpus;
mod evolution;
mod expressions;
mod fill;
mod hierarchies;
mod joins;
mod known;
mod queries;
mod runner;
mod schema;
mod subqueries;
mod writes;

pub use corpus::{
    Claim, ClaimKind, CorpusReport, CorpusResult, CorpusSettings, allowed_differences, run_corpus,
    without_generator,
};
pub use runner::{Report, Settings, run};
