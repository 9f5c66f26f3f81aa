//! Range tombstones: one record that deletes every older row in a span.

mod skyline;

pub(crate) use skyline::{Cover, Skyline, coalesce};
