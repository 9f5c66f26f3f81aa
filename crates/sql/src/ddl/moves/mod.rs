//! Tables that move: into a parent, out of one, to another one, to another primary key, with
//! everything interleaved in them.
//!
//! - [`relocate`]: what becomes of them; the move, and a change of key columns' types, as a part of
//!   a transaction.
//! - [`online`]: the move as a job, which keeps nobody out until its last moment.
//! - [`moving`]: both forms of the tables, and which rows lie where.
//! - [`copy`]: all rows as of one time.
//! - [`changes`]: what others have written since then.
//! - [`parents`]: does every row have its parent row?

mod changes;
mod copy;
mod moving;
mod online;
mod parents;
mod relocate;

pub(crate) use online::{may_go_in_steps, run_in_steps};
pub(super) use relocate::{Place, rewrite, run};
