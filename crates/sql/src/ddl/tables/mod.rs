//! CREATE TABLE, and the keys under which rows lie.
//!
//! - [`create_table`]: what is declared becomes a descriptor; AS.
//! - [`like`]: LIKE, written out.
//! - [`primary_key`]: a table gets or loses its primary key.

pub(crate) mod create_table;
mod like;
pub(in crate::ddl) mod primary_key;
