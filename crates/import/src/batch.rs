//! What readers give: rows that fit their columns, and rows that do not.

use braid_types::{Datum, SqlError};

/// Bytes of input after which a batch ends.
pub(crate) const BATCH_BYTES: usize = 512 << 10;
/// Rows after which a batch ends.
pub(crate) const BATCH_ROWS: usize = 1024;

/// A place in a file from which reading can go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Bytes in front of it, decompressed; 0 for formats whose rows are found by number.
    pub offset: u64,
    /// Lines in front of it, or rows.
    pub number: u64,
}

/// A row in the target's columns.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its line, or its number where the format has no lines; from 1.
    pub number: u64,
    /// By column of the target; `None` where the file has nothing for it.
    pub values: Vec<Option<Datum>>,
    /// Bytes of the input, about.
    pub size: usize,
}

/// A row that cannot be one of the target.
#[derive(Debug, Clone)]
pub struct Misfit {
    /// Its line, or its number; from 1.
    pub number: u64,
    /// Column of the target that it fails at.
    pub column: Option<usize>,
    /// What is wrong.
    pub error: SqlError,
    /// The row as it stands in the file, as text.
    pub text: String,
}

/// Some rows of one file, in its order.
#[derive(Debug, Default)]
pub struct Batch {
    /// Which file, by its place in the list.
    pub file: usize,
    /// Rows that fit.
    pub rows: Vec<Row>,
    /// Rows that do not.
    pub misfits: Vec<Misfit>,
    /// Bytes read of the file so far, as it lies on the disk.
    pub read: u64,
    /// What comes behind this batch.
    pub end: Position,
    /// Bytes of input in this batch, about.
    pub size: usize,
    /// Nothing comes after it from this file.
    pub last: bool,
}

impl Batch {
    pub(crate) fn is_full(&self) -> bool {
        self.size >= BATCH_BYTES || self.rows.len() + self.misfits.len() >= BATCH_ROWS
    }

    pub(crate) fn push(&mut self, row: Row) {
        self.size += row.size;
        self.rows.push(row);
    }

    pub(crate) fn refuse(&mut self, misfit: Misfit) {
        self.size += misfit.text.len();
        self.misfits.push(misfit);
    }
}
