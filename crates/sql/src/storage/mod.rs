//! Rows and index entries as keys and values, and scans that give rows back.
//!
//! - [`bulk`]: tables and indexes as targets of bulk loads.
//! - [`columns`]: rows to columns.
//! - [`column_scan`]: scans that give columns.
//! - [`block_columns`]: columns of whole blocks, kept beside them.
//! - [`packed`]: columns of a block in little memory.
//! - [`computed`]: expressions of indexes, computed when they are wanted.
//! - [`row_value`]: the value of a row: columns by id, each found at once.
//! - [`row_codec`]: the payload of a column in it.
//! - [`entry`]: from an entry of an index to its row.
//! - [`entry_maker`]: from a row to its entry in an index, for very many rows.
//! - [`erased`]: which entries may have lost their rows.
//! - [`layout`]: where a table's rows and an index's entries lie: keys, spans, decoding.
//! - [`scan`]: rows of a table or through an index, over spans.

mod beside;
mod block_columns;
pub mod bulk;
mod column_scan;
pub mod columns;
pub mod computed;
mod entry;
mod entry_maker;
pub(crate) mod erased;
pub mod layout;
mod packed;
pub(crate) mod row_codec;
mod row_value;
pub mod scan;

pub use columns::{Column, Form, RowDecoder, Values};
pub(crate) use entry_maker::EntryMaker;
pub use erased::Liveness;
pub use layout::{IndexLayout, KeyColumn, Layout, TableLayout};
pub use row_value::ROW_FORM;
pub(crate) use row_value::commit_micros;
pub use scan::{IndexScan, TableScan};
