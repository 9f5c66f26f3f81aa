//! CREATE TABLE and CREATE INDEX, and what our readers take out of them before sqlparser reads the
//! rest.
//!
//! - [`create`]: the statements, INTERLEAVE, inline indexes, AS.
//! - [`identity`]: options of identity columns.
//! - [`key_storage`]: how indexes of keys are stored, read over.
//! - [`like`]: LIKE among the columns.
//! - [`null_keys`]: UNIQUE NULLS NOT DISTINCT of a column.
//! - [`partition`]: PARTITION BY and OF, ATTACH and DETACH.
//! - [`several`]: statements that are several.
//! - [`storage`]: what is read and changes nothing.
//! - [`typed`]: tables of a composite type.

pub(crate) mod create;
pub(crate) mod identity;
pub(crate) mod key_storage;
pub(crate) mod like;
pub(crate) mod null_keys;
pub(crate) mod partition;
pub(crate) mod several;
pub(crate) mod storage;
pub(crate) mod typed;
