//! Range tombstones: one record that deletes every older row in a span.

mod bound;
mod skyline;

pub(crate) use skyline::{Cover, Skyline, coalesce};
