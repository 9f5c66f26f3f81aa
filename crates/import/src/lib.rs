//! Files of rows, from a folder of the node to batches of typed values.
//!
//! ```text
//!   pattern ─ folder ─► files below one folder, none outside of it
//!   file ─ input ─► bytes, decompressed, with a count of what was read of the file
//!   bytes ─ csv jsonl parquet avro ─► rows of values in the columns' types
//!   [`reader`]: a thread ahead of whoever takes the batches
//!   [`dump`]: statements and data of a dump, plain or an archive
//!   [`written`]: the way back, rows into files
//! ```
//!
//! A row that does not fit is no end: it comes as a [`Misfit`] with its place, column and text, and
//! the taker decides. What damages the whole file (a cut gzip stream, a Parquet footer that is no
//! footer) ends the reading with an error that names the file and the place.
//!
//! Nothing here knows sessions, tables' constraints, plans or the wire. Libraries that may panic
//! over damaged files are called where a panic becomes an error of that file.

mod archive;
mod avro;
mod batch;
mod csv;
mod csv_syntax;
pub mod dump;
mod folder;
mod input;
mod jsonl;
mod lines;
mod options;
mod parquet;
pub mod reader;
mod room;
mod target;
mod unpacking;
pub mod written;

pub use batch::{Batch, Misfit, Position, Row};
pub use csv_syntax::{CsvField, CsvSyntax};
pub use folder::{Folder, SourceFile};
pub use options::{Compression, CsvOptions, Format, Header, ReadOptions};
pub use reader::Reader;
pub use target::{Target, TargetColumn};
