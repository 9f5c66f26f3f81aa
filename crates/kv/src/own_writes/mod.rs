//! A transaction's own writes before its commit: in memory, and on disk once there are very many.
//!
//! ```text
//!   put, delete, delete_span ─► buffer            in memory, with a log for savepoints
//!                                 │ full
//!                                 ▼
//!                               layer n           sorted on disk, in partitions; directories say
//!                               layer 1           where a key may be, and which are not there
//!
//!   reads    the buffer, then layers from the newest; a span that was deleted hides what is older
//!   commit   few: one batch     any layer: one merge ─► ssts that enter the store in one step
//! ```
//!
//! - [`writes`]: the whole of it, and what a savepoint is a position in.
//! - [`layer`], [`directory`], [`filter`]: what lies on disk, and what of it is kept in memory.
//! - [`rows`]: all of it as one ordered stream, for scans and for the commit.
//! - [`files`]: the ssts of a commit.
//!
//! A layer ends where a savepoint may have to go back to, so that going back drops whole layers.
//! Files lie with those of bulk loads and go with their transaction; what a crash leaves there is
//! removed at the next open.

#[cfg(test)]
mod buffer_scenarios;
mod directory;
mod files;
mod filter;
mod layer;
mod rows;
mod writes;

pub(crate) use rows::OwnRows;
pub(crate) use writes::{Earlier, Overlay, OwnWrites};
