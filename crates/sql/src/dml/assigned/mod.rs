//! What columns are assigned, before it is a value.
//!
//! - [`set_list`]: which columns UPDATE assigns what. [`fields`]: fields of columns.
//! - [`untyped`]: literals that have no type.
//! - [`commit_time`]: `PENDING_COMMIT_TIMESTAMP()`, and what must not read it.

pub(crate) mod commit_time;
pub(super) mod fields;
pub(super) mod set_list;
pub(super) mod untyped;
