//! Level 0, where flushed and ingested ssts may overlap: how it is laid out, and what is taken
//! out of it.
//!
//! * [`Sublevels`] sorts the ssts into sublevels, each a run of its own, over an index of
//!   *intervals* of the key line.
//! * `base_pick` proposes what goes down to the base level: deep stacks first, as narrow as they
//!   can be, several at once.
//! * `per_file` does without sublevels, for comparison.
//! * `intra_pick` proposes what is merged inside of L0 when the way down is busy.
//!
//! Nothing here reads or writes a file.

mod base_pick;
mod candidate;
mod intra_pick;
mod per_file;
#[cfg(test)]
mod scenarios;
mod sublevels;

pub(crate) use base_pick::{pick_base, pick_base_from, pick_moves, pick_within};
pub(crate) use candidate::{Limits, Traffic};
pub(crate) use intra_pick::pick_intra;
pub(crate) use per_file::{pick_base_per_file, pick_intra_per_file};
pub(crate) use sublevels::Sublevels;
