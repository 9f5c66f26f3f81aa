//! Columns that tell when: the commit timestamp, and how old a row may become.

pub(super) mod commit_timestamp;
pub(super) mod ttl;
