//! EXPORT: rows of a table or a query into files of the node's folder for imports.
//!
//! ```text
//!   table or query ─ [`crate::dml::source`] ─► rows ─┬─ CSV as COPY writes it ─┐
//!                                                    └─ Parquet row groups ────┴─► parts
//! ```
//! The rows are those of one moment: the statement's. Parts get their names together when the last
//! of them is on the disk ([`braid_import::written`]), so that an export that fails, is canceled or
//! is killed leaves none that anybody could take for whole.

mod options;
mod run;

pub(crate) use run::{columns, export};
