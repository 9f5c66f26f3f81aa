//! Rows and index entries as keys and values, and scans that give rows back.
//!
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
mod column_scan;
pub mod columns;
pub mod computed;
mod entry;
mod entry_maker;
pub mod erased;
pub mod layout;
mod packed;
pub mod row_codec;
mod row_value;
pub mod scan;

pub use columns::{Column, Form, RowDecoder, Values};
pub use computed::table_scope;
pub use entry_maker::EntryMaker;
pub use erased::Liveness;
pub use layout::{IndexLayout, KeyColumn, Layout, TableLayout};
pub use row_value::ROW_FORM;
pub use row_value::commit_micros;
pub use scan::{IndexScan, TableScan};

use braid_types::Datum;

/// The values of one row, of a table or of a result.
pub type Row = Vec<Datum>;

/// Bytes that a row takes.
pub fn row_memory(row: &[Datum]) -> usize {
    size_of::<Row>() + row.iter().map(Datum::memory).sum::<usize>()
}
