//! Aggregates over columns: the states of all groups lie in vectors, and a batch of arguments goes
//! into them at once.
//!
//! The row form (`braid_scalar`'s accumulators, `exec/aggregate.rs`) says what is right; a *fold*
//! is the same aggregate for arguments of a carrier that Arrow knows. States travel between partial
//! and final aggregation as typed columns. Of DISTINCT only `count` has a fold, of ORDER BY none.

mod counts;
mod distinct;
mod extremes;
mod fold;
mod packed;
mod sums;
#[cfg(test)]
mod tests;

pub(in crate::exec) use fold::{Groups, Single, fold, state_fields};
