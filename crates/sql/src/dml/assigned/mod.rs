//! What columns are assigned, before it is a value.

pub(crate) mod commit_time;
pub(super) mod set_list;
pub(super) mod untyped;
