//! CREATE TABLE.
//!
//! - [`create_table`]: what is declared becomes a descriptor; AS.
//! - [`like`]: LIKE, written out.

pub(crate) mod create_table;
mod like;
