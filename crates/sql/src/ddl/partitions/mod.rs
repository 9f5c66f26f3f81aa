//! Partitions of tables (what they are: [`crate::partitions`]).
//!
//! - [`key`]: PARTITION BY. [`bounds`]: FOR VALUES, and that no two partitions want one row.
//! - [`divided`]: a table or partition that is divided, and how that changes. [`declare`]: CREATE
//!   TABLE .. PARTITION OF.
//! - [`attach`]: a table becomes a partition, a partition becomes a table, or goes; its rows move.
//! - [`indexes`]: names of indexes, and indexes of one partition alone.
//! - [`mod@alter`]: what else is done to a partition under its name.

mod alter;
mod attach;
mod bounds;
mod declare;
mod divided;
mod indexes;
mod key;

pub(crate) use alter::alter;
pub(super) use alter::place;
pub(crate) use attach::change;
pub(super) use attach::{drop_partition, empty};
pub(crate) use declare::create;
use divided::{Divided, redivide};
pub(super) use indexes::{
    check_index, create_index, drop_index, rename as rename_index, settle_names,
};
pub(super) use key::{declare_key, refuse_key, rename_column};
