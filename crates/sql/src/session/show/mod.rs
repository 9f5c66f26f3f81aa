//! SHOW.
//!
//! - [`statement`]: what each SHOW shows.
//! - [`create`]: descriptors back to SQL. [`tree`]: SHOW INTERLEAVE TREE. [`ranges`]: SHOW RANGES.

pub(crate) mod create;
mod ranges;
mod statement;
mod tree;

pub(crate) use statement::{columns, rows};
