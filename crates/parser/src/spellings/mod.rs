//! What Spanner and CockroachDB write otherwise, settled on tokens: none of it means anything in
//! PostgreSQL.
//!
//! - [`statements`]: whole statements, and clauses of them.
//! - [`calls`]: aggregates with clauses of their own, and what else looks like a call.
//! - [`queries`]: select lists and FROM.
//! - [`pipes`]: `FROM t |> WHERE ..`.
//! - [`commit_times`]: commit timestamps.
//!
//! And what PostgreSQL itself reads as something else: [`parentheses`] around queries.

mod calls;
pub(crate) mod commit_times;
pub(crate) mod parentheses;
pub(crate) mod pipes;
mod queries;
mod statements;

pub use queries::STAR_EXCEPT;
pub use statements::take_included;
pub(crate) use statements::{plain_backticks, rewrite};
