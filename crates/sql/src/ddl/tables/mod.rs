//! CREATE TABLE, and the keys under which rows lie.
//!
//! - [`create_table`]: what is declared becomes a descriptor; AS.
//! - [`like`]: LIKE, written out.
//! - [`other_kinds`]: ALTER TABLE of sequences, views and indexes.
//! - [`named_relations`]: relations that expressions name.
//! - [`primary_key`]: a table gets or loses its primary key.

pub(crate) mod create_table;
mod like;
pub(in crate::ddl) mod named_relations;
pub(crate) mod other_kinds;
pub(in crate::ddl) mod primary_key;
