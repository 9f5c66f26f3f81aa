//! What columns are assigned, before it is a value.
//!
//! - [`set_list`]: which columns UPDATE assigns what. [`fields`]: fields of columns.
//!   [`subscripts`]: places in arrays and documents. [`row_stars`]: stars in rows.
//! - [`untyped`]: literals that have no type. [`default_marks`]: DEFAULT in rows of a query.
//! - [`calls`]: what must not be called there.
//! - [`commit_time`]: `PENDING_COMMIT_TIMESTAMP()`, and what must not read it.

pub(in crate::dml) mod calls;
pub(crate) mod commit_time;
pub(super) mod default_marks;
pub(super) mod fields;
pub(super) mod row_stars;
pub(super) mod set_list;
mod subscripts;
pub(super) mod untyped;
