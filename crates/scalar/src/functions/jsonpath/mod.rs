//! SQL/JSON paths, as PostgreSQL 15 has them: `$.items[*] ? (@.price > 10).name`.
//!
//! ```text
//!   text ── parse ──> Path (mode, Node) ── eval ──> items: parts of the document, values made
//! ```
//! A path in *lax* mode, the default, takes an array for its elements and an element for an array
//! of one where that helps, and finds nothing where there is nothing; *strict* makes errors of
//! both. In a predicate an error is *unknown*, which no filter lets pass.
//!
//! Not there: `.datetime()` and `.keyvalue()` (0A000). Numbers are `numeric`, exactly.
//! Source: ISO/IEC 9075-2:2016, 9.39, and the PostgreSQL manual, 9.16.2.

mod calls;
mod eval;
mod lexer;
mod parse;
mod path;
#[cfg(test)]
mod tests;

pub(in crate::functions) use calls::fill;
pub(crate) use calls::{path_exists, path_items, path_matches};
