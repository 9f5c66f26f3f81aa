//! COPY and IMPORT.
use braid_types::{SqlError, SqlResult};

use crate::general_query::ColumnInfo;
use crate::parse::{Copy, CopyFormat, Import};
use crate::session::Context;

/// COPY FROM STDIN: feed it the client's data.
pub struct CopyIn {
    columns: Vec<ColumnInfo>,
    format: CopyFormat,
}

impl CopyIn {
    pub(crate) fn start(_ctx: &Context, _c: &Copy) -> SqlResult<CopyIn> {
        Err(SqlError::unsupported("COPY"))
    }
    /// Columns expected.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }
    /// Format expected.
    pub fn format(&self) -> CopyFormat {
        self.format
    }
    /// Takes a piece of data.
    pub fn feed(&mut self, _data: &[u8]) -> SqlResult<()> {
        Err(SqlError::unsupported("COPY"))
    }
    /// All data was fed: writes, and commits outside of a block. Returns the number of rows; the
    /// command tag is `COPY n`.
    pub fn finish(self: Box<Self>) -> SqlResult<u64> {
        Err(SqlError::unsupported("COPY"))
    }
    /// The client gave up.
    pub fn abort(self: Box<Self>, message: &str) -> SqlError {
        SqlError::new(
            braid_types::SqlState::QUERY_CANCELED,
            format!("COPY from stdin failed: {message}"),
        )
    }
}

/// COPY TO STDOUT: pull the data.
pub struct CopyOut {
    columns: Vec<ColumnInfo>,
    format: CopyFormat,
    rows: u64,
}

impl CopyOut {
    pub(crate) fn start(_ctx: &Context, _c: &Copy) -> SqlResult<CopyOut> {
        Err(SqlError::unsupported("COPY"))
    }
    pub(crate) fn write_file(self, _ctx: &Context, _c: &Copy) -> SqlResult<String> {
        Err(SqlError::unsupported("COPY"))
    }
    /// Columns given.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }
    /// Format given.
    pub fn format(&self) -> CopyFormat {
        self.format
    }
    /// The next piece of data; `None` at the end.
    pub fn next_chunk(&mut self) -> SqlResult<Option<Vec<u8>>> {
        Ok(None)
    }
    /// Rows given so far; the command tag is `COPY n`.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

pub(crate) fn copy_from_file(_ctx: &Context, _c: &Copy) -> SqlResult<String> {
    Err(SqlError::unsupported("COPY FROM a file"))
}

pub(crate) fn import(_ctx: &Context, _i: &Import) -> SqlResult<String> {
    Err(SqlError::unsupported("IMPORT"))
}
