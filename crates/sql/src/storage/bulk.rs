//! Tables and indexes as targets of bulk loads.
//!
//! ```text
//!   target 0        rows of the table
//!   target n + 1    entries of its index n
//! ```
//! A load into spans that only this transaction knows (a new index, a table that it has created or
//! truncated) goes in at once, so that its later statements see the rows; a record that is removed
//! by the commit names the spans, so that what a crash or rollback leaves there is erased at the
//! next start. A load into a table that others use goes in with the commit.

use std::sync::Arc;

use braid_catalog::kv_error;
use braid_keys::system;
use braid_kv::{BulkFiles, Coordinator, Isolation, KeySpan, KvError, ScanOptions, Txn, TxnOptions};
use braid_types::{SqlError, SqlResult, SqlState};

/// Memory of one load, in bytes.
pub(crate) const LOAD_MEMORY: usize = 96 << 20;

/// Loads below these many bytes of keys and values go through the transaction's buffer: two syncs
/// and an sst are not worth it.
pub(crate) const SMALL_LOAD: usize = 1 << 20;

/// An error of a load: of the store, or of what the rows say.
pub(crate) enum LoadError {
    /// The store's.
    Kv(KvError),
    /// A constraint's.
    Sql(SqlError),
}

impl From<KvError> for LoadError {
    fn from(e: KvError) -> LoadError {
        LoadError::Kv(e)
    }
}

impl From<SqlError> for LoadError {
    fn from(e: SqlError) -> LoadError {
        LoadError::Sql(e)
    }
}

impl From<LoadError> for SqlError {
    fn from(e: LoadError) -> SqlError {
        match e {
            LoadError::Kv(e) => kv_error(e),
            LoadError::Sql(e) => e,
        }
    }
}

/// Takes a load in at once. `id` was never used for a load; `spans` are those that hold nothing
/// but what the transaction made.
pub fn ingest_private(
    txn: &Arc<Txn>,
    id: u32,
    spans: &[KeySpan],
    files: &BulkFiles,
) -> SqlResult<()> {
    if files.is_empty() {
        return Ok(());
    }
    let key = system::pending_load(id);
    let record = txn.coordinator().begin(snapshot()).map_err(kv_error)?;
    record.put(key.clone(), encode(spans)).and_then(|()| record.commit()).map_err(kv_error)?;
    txn.ingest_private(files).map_err(kv_error)?;
    // Gone with the commit, and only with it.
    txn.delete_at_commit(key).map_err(kv_error)
}

fn encode(spans: &[KeySpan]) -> Vec<u8> {
    let mut out = Vec::new();
    for span in spans {
        for key in [&span.start, &span.end] {
            out.extend_from_slice(&(key.len() as u32).to_be_bytes());
            out.extend_from_slice(key);
        }
    }
    out
}

fn decode(mut bytes: &[u8]) -> Option<Vec<KeySpan>> {
    let mut key = || {
        let (len, rest) = bytes.split_first_chunk::<4>()?;
        let (key, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        bytes = rest;
        Some((key.to_vec(), bytes.is_empty()))
    };
    let mut out = Vec::new();
    loop {
        let Some((start, _)) = key() else { return out.is_empty().then_some(out) };
        let (end, last) = key()?;
        out.push(KeySpan::new(start, end));
        if last {
            return Some(out);
        }
    }
}

/// Erases what loads of an earlier process left behind, whose transactions never committed. Called
/// before the first session.
pub(crate) fn erase_unfinished(coordinator: &Arc<Coordinator>) -> SqlResult<()> {
    let txn = coordinator.begin(snapshot()).map_err(kv_error)?;
    let (start, end) = system::pending_loads();
    let mut scan = txn.scan(KeySpan::new(start, end), ScanOptions::default()).map_err(kv_error)?;
    let mut found = Vec::new();
    while let Some((key, value)) = scan.next().map_err(kv_error)? {
        let spans = decode(&value).ok_or_else(|| {
            SqlError::new(SqlState::DATA_CORRUPTED, "damaged system record: pending load")
        })?;
        found.push((key, spans));
    }
    drop(scan);
    for (key, spans) in found {
        for span in spans {
            txn.delete_span(&span).map_err(kv_error)?;
        }
        txn.delete(key).map_err(kv_error)?;
    }
    txn.commit().map(|_| ()).map_err(kv_error)
}

fn snapshot() -> TxnOptions {
    TxnOptions { isolation: Isolation::RepeatableRead, ..TxnOptions::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_round_trip() {
        let spans = [KeySpan::new("a", "b"), KeySpan::new("", "zz")];
        assert_eq!(decode(&encode(&spans)).unwrap(), spans);
        assert_eq!(decode(&encode(&[])).unwrap(), []);
        assert_eq!(decode(&encode(&spans)[..7]), None);
    }
}
