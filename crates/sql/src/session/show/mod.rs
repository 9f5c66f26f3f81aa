//! SHOW.
//!
//! - [`statement`]: what each SHOW shows.
//! - [`create`]: descriptors back to SQL. [`tree`]: SHOW INTERLEAVE TREE. [`ranges`]: SHOW RANGES.
//! - [`proposals`]: SHOW INTERLEAVE PROPOSALS.

pub(crate) mod create;
mod proposals;
mod ranges;
mod statement;
mod tree;

pub use ranges::{RangeViewer, shown_borders};
pub(crate) use statement::{columns, rows};
