//! Writes ssts outside of a store, to be ingested later.
//!
//! ```no_run
//! use braid_lsm::{CommitTs, Db, IngestOptions, Options, SstBuilder};
//! use braid_env::fs::DiskFs;
//! use std::path::Path;
//!
//! # fn main() -> Result<(), braid_lsm::Error> {
//! let (fs, options) = (DiskFs::shared(), Options::default());
//! let mut builder = SstBuilder::create(&fs, Path::new("/load/1.sst"), CommitTs(10), &options)?;
//! builder.put(b"a", b"1")?; // keys in ascending order
//! builder.put(b"b", b"2")?;
//! builder.delete_span(b"c", b"d")?; // at any time
//! let file = builder.finish()?;
//! let db = Db::open(fs, Path::new("/store"), options)?;
//! db.ingest(&[file.path], IngestOptions::default())?;
//! # Ok(())
//! # }
//! ```
//!
//! A file may hold several versions of a key (newest first) and several timestamps. Its blocks are
//! sealed with a number made of its path, with the top bit set: no file of a store has such one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_env::fs::FileSystem;
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::key::{CommitTs, KeySpan, Kind};
use crate::memtable::Tombstone;
use crate::options::{MAX_KEY_LEN, MAX_VALUE_LEN, Options};
use crate::sstable::{SstWriter, WRITE_SIZE, WriterOptions};

/// A finished file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Every key and range tombstone lies in here.
    pub span: KeySpan,
    /// Puts and deletes.
    pub rows: u64,
    /// Range tombstones.
    pub tombstones: u64,
    /// Smallest timestamp.
    pub min_ts: CommitTs,
    /// Largest timestamp.
    pub max_ts: CommitTs,
}

/// An sst being written outside of a store.
pub struct SstBuilder {
    writer: SstWriter,
    path: PathBuf,
    ts: CommitTs,
    last: Option<u64>,
    rows: u64,
    tombstones: Vec<Tombstone>,
}

impl SstBuilder {
    /// Starts a file at `path`; an existing one is lost. Entries are written at `ts` unless they
    /// say otherwise. Of the options, those of blocks, filters and compression count; the row
    /// class function must be the store's.
    pub fn create(
        fs: &Arc<dyn FileSystem>,
        path: &Path,
        ts: CommitTs,
        options: &Options,
    ) -> Result<SstBuilder> {
        let sealed_no = xxh3_64(path.as_os_str().as_encoded_bytes()) | 1 << 63;
        let options = WriterOptions {
            block_size: options.block_size,
            index_partition_size: options.index_partition_size,
            filter_bits_per_key: options.filter_bits_per_key,
            codec: options.codec,
            row_class: options.row_class,
            write_size: WRITE_SIZE,
        };
        let writer = SstWriter::create(&**fs, path.to_path_buf(), sealed_no, options)?;
        let path = path.to_path_buf();
        Ok(SstBuilder { writer, path, ts, last: None, rows: 0, tombstones: Vec::new() })
    }

    /// Adds a row. Its key must be above all keys added before.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.add(key, self.ts, Kind::Put, value)
    }

    /// Adds a point tombstone. Its key must be above all keys added before.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.add(key, self.ts, Kind::Delete, &[])
    }

    /// Adds a version of a row. Versions of one key come newest first.
    pub fn put_at(&mut self, key: &[u8], ts: CommitTs, value: &[u8]) -> Result<()> {
        self.add(key, ts, Kind::Put, value)
    }

    /// Adds a point tombstone as a version of its key; see [`SstBuilder::put_at`].
    pub fn delete_at(&mut self, key: &[u8], ts: CommitTs) -> Result<()> {
        self.add(key, ts, Kind::Delete, &[])
    }

    /// Deletes everything older than the builder's timestamp in `[start, end)`: of the store that
    /// it is ingested into, and of this file.
    pub fn delete_span(&mut self, start: &[u8], end: &[u8]) -> Result<()> {
        self.delete_span_at(start, end, self.ts)
    }

    /// As [`SstBuilder::delete_span`], at a timestamp of its own.
    pub fn delete_span_at(&mut self, start: &[u8], end: &[u8], ts: CommitTs) -> Result<()> {
        check_ts(ts)?;
        for key in [start, end] {
            limit("key", key.len(), MAX_KEY_LEN + 1)?;
        }
        if start < end {
            let (start, end) = (Bytes::copy_from_slice(start), Bytes::copy_from_slice(end));
            self.tombstones.push(Tombstone { start, end, ts: ts.0 });
        }
        Ok(())
    }

    fn add(&mut self, key: &[u8], ts: CommitTs, kind: Kind, value: &[u8]) -> Result<()> {
        check_ts(ts)?;
        limit("key", key.len(), MAX_KEY_LEN)?;
        limit("value", value.len(), MAX_VALUE_LEN)?;
        if let Some(newer) = self.last {
            let last = self.writer.last_key();
            if last > key || (last == key && newer <= ts.0) {
                let (last, key) = (last.escape_ascii(), key.escape_ascii());
                let reason = format!("\"{key}\" @{ts} does not come after \"{last}\" @{newer}");
                return Err(Error::InvalidIngest { reason });
            }
        }
        self.writer.add(key, ts.0, kind, value)?;
        self.last = Some(ts.0);
        self.rows += 1;
        Ok(())
    }

    /// Writes so many bytes at once, unless a row is longer: for those who have little memory.
    pub fn write_at_once(&mut self, bytes: usize) {
        self.writer.write_at_once(bytes);
    }

    /// Bytes of memory that it takes, with what its end needs. Grows with the number of rows.
    pub fn memory(&self) -> usize {
        self.writer.memory()
    }

    /// Bytes so far, about.
    pub fn size(&self) -> u64 {
        self.writer.size()
    }

    /// Ends the file; its bytes are durable when this returns, its name when the caller syncs its
    /// directory (an ingest does not need that). Refused if nothing was added.
    pub fn finish(mut self) -> Result<IngestFile> {
        if self.rows == 0 && self.tombstones.is_empty() {
            let reason = format!("{} would hold nothing", self.path.display());
            return Err(Error::InvalidIngest { reason });
        }
        self.tombstones.sort_by_key(|tombstone| tombstone.ts);
        let (facts, bytes) = self.writer.finish(&self.tombstones, (0, 0))?;
        Ok(IngestFile {
            path: self.path,
            bytes,
            span: KeySpan { start: facts.start, end: facts.end },
            rows: facts.rows,
            tombstones: facts.tombstones,
            min_ts: CommitTs(facts.min_ts),
            max_ts: CommitTs(facts.max_ts),
        })
    }
}

fn check_ts(ts: CommitTs) -> Result<()> {
    if ts == CommitTs::ZERO || ts == CommitTs::MAX {
        return Err(Error::InvalidIngest { reason: format!("nothing can be written at {ts}") });
    }
    Ok(())
}

fn limit(what: &'static str, size: usize, limit: usize) -> Result<()> {
    if size > limit {
        return Err(Error::TooLarge { what, size: size as u64, limit: limit as u64 });
    }
    Ok(())
}
