//! SQL/JSON paths, as PostgreSQL 15 has them: `$.items[*] ? (@.price > 10).name`.
//!
//! ```text
//!   text ── lexer ──> tokens ── parse ──> Path (mode, Node) ── print ──> the text that is kept
//! ```
//! A value of type `jsonpath` is its printed form: `lax $.a` is kept as `$."a"`. Whoever evaluates
//! it parses it again, once; nothing here knows of documents.
//!
//! Source: ISO/IEC 9075-2:2016, 9.39, and the PostgreSQL manual, 8.14.7 and 9.16.2.

mod lexer;
mod parse;
mod print;
mod tree;

pub use tree::{Arithmetic, Comparison, Method, Node, Path, RegexFlags, Step};
