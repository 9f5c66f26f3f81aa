//! What readers give: rows that fit their columns, and rows that do not.

use braid_types::{Datum, SqlError, SqlResult};

use crate::reader::out_of_memory;
use crate::room::Room;

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
}

impl Row {
    /// Bytes of memory.
    fn memory(&self) -> usize {
        let behind = |value: &Datum| value.memory() - size_of::<Datum>();
        let places = self.values.len() * size_of::<Option<Datum>>();
        size_of::<Row>() + places + self.values.iter().flatten().map(behind).sum::<usize>()
    }
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

/// Some rows of one file, in its order. What they take of memory is counted as long as this is
/// there.
#[derive(Debug)]
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
    /// Bytes of memory.
    size: usize,
    /// Nothing comes after it from this file.
    pub last: bool,
    /// Bytes after which it ends. They are counted before, and a quarter more.
    most: usize,
    /// What it takes beyond that: of long rows.
    beyond: Room,
}

impl Batch {
    /// An empty one, which ends at about so many bytes.
    pub(crate) fn new(file: usize, most: usize, beyond: Room) -> Batch {
        let (rows, misfits, end) = (Vec::new(), Vec::new(), Position::default());
        Batch { file, rows, misfits, read: 0, end, size: 0, last: false, most, beyond }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.size >= self.most || self.rows.len() + self.misfits.len() >= BATCH_ROWS
    }

    /// Bytes of memory so far.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Bytes that rows may still take before it is full.
    pub(crate) fn left(&self) -> usize {
        self.most.saturating_sub(self.size)
    }

    /// Whether it takes more than was counted before.
    pub(crate) fn is_long(&self) -> bool {
        self.beyond.bytes() > 0
    }

    /// It is given away: no more rows are expected.
    pub(crate) fn seal(&mut self) {
        self.beyond.ask_nobody();
        let beyond = self.size.saturating_sub(self.most + self.most / 4);
        if beyond < self.beyond.bytes() {
            let _less_is_never_refused = self.beyond.resize(beyond);
        }
    }

    /// Another row comes that may take so many bytes.
    ///
    /// # Errors
    /// 53200 if there is no room for it.
    pub(crate) fn expect(&mut self, bytes: usize) -> SqlResult<()> {
        let beyond = (self.size + bytes).saturating_sub(self.most + self.most / 4);
        if beyond <= self.beyond.bytes() {
            return Ok(());
        }
        self.beyond.resize(beyond).map_err(|e| out_of_memory(&e))
    }

    /// Adds a row.
    ///
    /// # Errors
    /// 53200 if it takes more than was expected, and there is no room for that.
    pub(crate) fn push(&mut self, row: Row) -> SqlResult<()> {
        let size = row.memory();
        self.expect(size)?;
        self.size += size;
        self.rows.push(row);
        Ok(())
    }

    /// Adds a row that is none.
    ///
    /// # Errors
    /// As of [`Batch::push`].
    pub(crate) fn refuse(&mut self, misfit: Misfit) -> SqlResult<()> {
        let size = size_of::<Misfit>() + misfit.text.len();
        self.expect(size)?;
        self.size += size;
        self.misfits.push(misfit);
        Ok(())
    }
}
