//! CREATE TABLE, and the keys under which rows lie.
//!
//! - [`apart`]: a new generation for a load of a cluster.
//! - [`create_table`]: what is declared becomes a descriptor; AS.
//! - [`like`]: LIKE, written out.
//! - [`other_kinds`]: ALTER TABLE of sequences, views and indexes.
//! - [`primary_key`]: a table gets or loses its primary key.
//! - [`mod@truncate`] empties them.

pub(crate) mod apart;
pub(crate) mod create_table;
mod like;
pub(crate) mod other_kinds;
pub(in crate::ddl) mod primary_key;
pub(crate) mod truncate;
