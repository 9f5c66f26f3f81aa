//! Functions of GoogleSQL that PostgreSQL does not have, with GoogleSQL's meaning.
//!
//! They are *guests*: a function of a user goes before one of them, so that nobody's own
//! `split(text, text)` means another thing here. Names that PostgreSQL has as well stay its own.

mod arrays;
mod civil;
mod documents;
mod farm;
mod formats;
mod guests;
mod numbers;
mod patterns;
mod texts;
mod times;

pub(super) use guests::fill;
