//! Range tombstones: one record that deletes every older row in a span.
//!
//! `fragment` is the memory of one piece of a tombstone, `skyline` the search over all of them.

mod fragment;
mod skyline;
mod tombstone_map;

pub(crate) use skyline::{Cover, Finger, Skyline, coalesce};
pub(crate) use tombstone_map::{Head, TombstoneMap, Top, TopPlace};
