//! The rows of an sst that was built outside of a store, for those who cannot take it in whole.

use std::path::Path;
use std::sync::Arc;

use braid_env::fs::FileSystem;
use bytes::Bytes;

use crate::cache::BlockCache;
use crate::error::{Error, Result};
use crate::key::{KeySpan, Kind};
use crate::sstable::{SstEntries, SstIdentity, SstReader};

/// Of the index, so much is kept, in bytes: what comes next is read once.
const CACHE: usize = 64 << 10;

/// The rows of one sst that was built outside of a store, in key order: a cursor. Blocks on the
/// device.
pub struct SstRowReader {
    entries: SstEntries,
}

impl SstRowReader {
    /// Bytes of memory that one takes, besides the block that it reads.
    pub const MEMORY: usize = CACHE + (32 << 10);

    /// Stands on the first row at or behind `from`, and ends in front of `to`. Fails with
    /// `Corruption` if the file is damaged, or holds deletions: those would be lost.
    pub fn open(
        fs: &dyn FileSystem,
        path: &Path,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Result<SstRowReader> {
        let identity = SstIdentity { file_no: 0, sealed_no: None, ts_override: 0 };
        let cache = Arc::new(BlockCache::new(CACHE));
        let reader = Arc::new(SstReader::open_for_rows(fs, path, identity, cache)?);
        let facts = reader.properties();
        if facts.deletes > 0 || facts.tombstones > 0 {
            return Err(Error::corruption(path, 0, "rows are expected, and there are deletions"));
        }
        let start = from.map_or_else(|| facts.start.clone(), Bytes::copy_from_slice);
        let end = to.map_or_else(|| facts.end.clone(), Bytes::copy_from_slice);
        let entries = match (from, to) {
            (None, None) => SstEntries::open(reader)?,
            _ => SstEntries::open_span(reader, KeySpan { start, end })?,
        };
        Ok(SstRowReader { entries })
    }

    /// Key and value of the current row; `None` at the end.
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        let key = self.entries.key()?;
        debug_assert!(self.entries.kind() == Kind::Put, "there are no deletions");
        Some((key, self.entries.value()))
    }

    /// Goes to the next row.
    pub fn advance(&mut self) -> Result<()> {
        self.entries.advance()
    }
}

/// Calls `visit` with key and value of each row, in key order. Fails as [`SstRowReader::open`].
pub fn visit_sst(
    fs: &dyn FileSystem,
    path: &Path,
    visit: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<()> {
    let mut rows = SstRowReader::open(fs, path, None, None)?;
    while let Some((key, value)) = rows.row() {
        visit(key, value);
        rows.advance()?;
    }
    Ok(())
}
