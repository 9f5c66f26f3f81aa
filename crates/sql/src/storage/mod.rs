//! Rows and index entries as keys and values, and scans that give rows back.
//!
//! - [`bulk`]: tables and indexes as targets of bulk loads.
//! - [`columns`]: rows to columns.
//! - [`row_codec`]: the value of a row: columns by id, skippable.
//! - [`layout`]: where a table's rows and an index's entries lie: keys, spans, decoding.
//! - [`scan`]: rows of a table or through an index, over spans.

pub mod bulk;
pub mod columns;
pub mod layout;
pub mod row_codec;
pub mod scan;

pub use columns::{Column, Form, RowDecoder, Values};
pub use layout::{IndexLayout, KeyColumn, Layout, TableLayout};
pub use scan::{IndexScan, TableScan};
