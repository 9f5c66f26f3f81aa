//! Aggregates: their entries in the registry and what they compute, for every plan.
//!
//! ```text
//!   entry "sum(int4) int8" ─► an Accumulator for each group
//!        update(row) update(row) .. ─► parts ═merge═► another's (aggregation that spills)
//!                                   ─► finish ─► value
//! ```
//! Rows arrive in the order that matters (ORDER BY in the call) and without duplicates (DISTINCT):
//! plans see to that.

mod accumulator;
mod extremes;
mod hypothetical;
mod lists;
mod ordered;
mod pairs;
mod ranges;
mod running;
mod sums;

use crate::registry::Table;

pub use accumulator::{Accumulator, AggregateCode, AggregateTypes, Direct, OrderKey};
pub use extremes::first_of_group;

/// What adds the aggregates of each subject to the registry.
pub(crate) const SUBJECTS: &[fn(&mut Table)] = &[
    sums::fill,
    running::fill,
    extremes::fill,
    lists::fill,
    ordered::fill,
    hypothetical::fill,
    pairs::fill,
    ranges::fill,
];
