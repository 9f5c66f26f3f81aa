//! INSERT, UPDATE, DELETE, MERGE.
//!
//! - [`insert`], [`update`], [`delete`]: the statements: what to write.
//! - [`with`]: several of them under one WITH. [`as_one`]: what those see of each other.
//!   [`given`]: values in place of the rows of an earlier one.
//! - [`merge`]: MERGE, made of the others.
//! - [`writer`]: writing a row with its index entries, constraints and referential actions.
//! - [`ahead`]: what writing many rows will ask, asked in batches.
//! - [`family`]: families go or move as a whole, by one tombstone each.
//! - [`references`]: foreign keys and interleave parents. [`defaults`]: values and checks of a row.
//! - [`table_load`]: very many rows at once. [`load_ways`]: how they are kept until the end.
//! - [`source`]: rows from a query. [`query_load`]: where they go when they are many.
//! - [`assigned`]: what columns are assigned, before it is a value.
//! - [`joined_returning`]: RETURNING with columns of joined tables.
//! - [`target`]: names, scopes and RETURNING of the written table.
use braid_rows::Row;

mod ahead;
mod arbiters;
mod as_one;
pub(crate) mod assigned;
pub mod defaults;
pub(crate) mod deferred;
mod delete;
mod family;
mod given;
mod in_parts;
mod insert;
mod joined_returning;
pub(crate) mod keys;
mod later;
pub(crate) mod load_ways;
mod merge;
pub(crate) mod query_load;
pub(crate) mod references;
pub mod source;
pub(crate) mod table_load;
mod target;
mod update;
pub(crate) mod with;
pub mod writer;

pub(crate) use defaults::assign;
pub use delete::DeletePlan;
pub use insert::InsertPlan;
pub(crate) use keys::show;
pub use merge::MergePlan;
pub(crate) use target::scope_of;
pub use target::{Returning, returning};
pub use update::UpdatePlan;
pub(crate) use with::{With, WithPlan};

/// What a writing statement did.
#[derive(Debug, Default)]
pub struct Written {
    /// Rows of the named table.
    pub count: u64,
    /// RETURNING.
    pub returning: Option<Vec<Row>>,
    /// What that took.
    pub work: writer::WriteWork,
}
