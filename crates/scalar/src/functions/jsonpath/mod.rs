//! Evaluating SQL/JSON paths: `jsonb_path_query`, its relatives, `@?` and `@@`.
//!
//! ```text
//!   Path (braid_types::jsonpath) ── eval ──> items: parts of the document, values made
//! ```
//! A path in *lax* mode, the default, takes an array for its elements and an element for an array
//! of one where that helps, and finds nothing where there is nothing; *strict* makes errors of
//! both. In a predicate an error is *unknown*, which no filter lets pass.
//!
//! - [`eval`]: what steps and expressions give; [`truth`]: what predicates say.
//! - [`item`]: items; [`moment`]: those of `.datetime()`; [`ids`]: the numbers that `.keyvalue()`
//!   gives to objects.
//! - [`calls`]: the functions.
//!
//! Numbers are `numeric`, exactly. Source: ISO/IEC 9075-2:2016, 9.39, and the PostgreSQL manual,
//! 9.16.2.

mod calls;
mod eval;
mod ids;
mod item;
mod moment;
#[cfg(test)]
mod tests;
mod truth;

pub(in crate::functions) use calls::fill;
pub(crate) use calls::fill_rows;
