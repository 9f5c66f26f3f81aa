//! Partitions of tables (what they are: [`crate::partitions`]).
//!
//! - [`key`]: PARTITION BY. [`bounds`]: FOR VALUES, and that no two partitions want one row.
//! - [`divided`]: a table or partition that is divided, and how that changes. [`declare`]: CREATE
//!   TABLE .. PARTITION OF.
//! - [`mod@change`]: ATTACH and DETACH. [`mod@attach`]: a table becomes a partition.
//!   [`mod@detach`]: a partition becomes a table. [`erase`]: a partition goes, or its rows.
//!   [`rows`]: how rows move and go.
//! - [`indexes`]: names of indexes, and indexes of one partition alone.
//! - [`mod@alter`]: what else is done to a partition under its name.

mod alter;
mod attach;
mod bounds;
mod change;
mod declare;
mod detach;
mod divided;
mod erase;
mod indexes;
mod key;
mod rows;

pub(crate) use alter::alter;
pub(super) use alter::place;
pub(crate) use change::change;
pub(crate) use declare::create;
use divided::{Divided, redivide};
pub(super) use erase::{drop_partition, empty};
pub(super) use indexes::{
    check_index, create_index, drop_index, rename as rename_index, settle_names,
};
pub(super) use key::{declare_key, refuse_key, rename_column};
