//! Tables and indexes as targets of bulk loads.
//!
//! ```text
//!   target 0        rows of the table
//!   target n + 1    entries of its index n
//! ```
//! A load into spans that only this transaction knows (a new index, a table that it has created or
//! truncated) goes in at once, so that its later statements see the rows; a record that is removed
//! by the commit names the spans, so that what a crash leaves there is erased at the next start,
//! and what a rollback leaves, soon: whoever gets the lock that goes with the record knows that the
//! transaction is gone. A job whose transaction goes on in another process says so in its record:
//! its loads stay. A load into a table that others use goes in with the commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use braid_catalog::{After, kv_error};
use braid_keys::system;
use braid_kv::{
    BulkFiles, Coordinator, Isolation, KeySpan, KvError, LockMode, ReadMode, ScanOptions, Txn,
    TxnOptions, Wait,
};
use braid_types::{SqlError, SqlResult, SqlState};
use bytes::Bytes;

use crate::jobs::Record;

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
    // Before anybody can find the record.
    txn.hold(&lock_of(&key), LockMode::Exclusive).map_err(kv_error)?;
    let record = txn.coordinator().begin(snapshot()).map_err(kv_error)?;
    record.put(key.clone(), encode(spans)).and_then(|()| record.commit()).map_err(kv_error)?;
    txn.ingest_private(files).map_err(kv_error)?;
    // Gone with the commit, and only with it.
    txn.delete_at_commit(key).map_err(kv_error)
}

/// What a transaction has locked as long as a pending load is its own.
fn lock_of(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
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

/// Erases what loads of an earlier process left behind, whose transactions never committed and do
/// not go on. Called before the first session.
pub(crate) fn erase_unfinished(coordinator: &Arc<Coordinator>) -> SqlResult<()> {
    let seen = coordinator.begin(snapshot()).map_err(kv_error)?;
    let all = pending(&seen)?;
    for (key, value) in &all {
        give_up_what_meets(coordinator, key, value, &all)?;
    }
    let kept = kept(coordinator)?;
    let txn = coordinator.begin(snapshot()).map_err(kv_error)?;
    for (key, value) in all.into_iter().filter(|(key, _)| !kept.contains_key(key)) {
        erase(&txn, key, &value)?;
    }
    txn.commit().map(|_| ()).map_err(kv_error)
}

/// Erases what loads left behind whose transactions have been rolled back, and do not go on. Called
/// from time to time, and by whoever knows that it left some.
pub(crate) fn erase_abandoned(coordinator: &Arc<Coordinator>) -> SqlResult<()> {
    let seen = coordinator.begin(snapshot()).map_err(kv_error)?;
    let all = pending(&seen)?;
    if all.is_empty() {
        return Ok(());
    }
    let known = kept(coordinator)?;
    for (key, _) in all.iter().filter(|(key, _)| !known.contains_key(key)) {
        let txn = coordinator.begin(snapshot()).map_err(kv_error)?;
        match txn.lock(&lock_of(key), LockMode::Exclusive, Wait::NoWait) {
            Ok(_) => {}
            // It still may commit.
            Err(KvError::LockNotAvailable) => continue,
            Err(e) => return Err(kv_error(e)),
        }
        // It may have committed before the lock was free.
        let Some(value) = txn.get_as(key, ReadMode::Latest).map_err(kv_error)? else { continue };
        // Or its job has noted, as the last thing that it did, that it goes on with it.
        if kept(coordinator)?.contains_key(key) {
            continue;
        }
        give_up_what_meets(coordinator, key, &value, &all)?;
        match erase(&txn, key.to_vec(), &value).and_then(|()| txn.commit().map_err(kv_error)) {
            Ok(_) => {}
            // Something newer than this transaction is there: the next one finds it.
            Err(e) if After::error(&e) != After::Never => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The loads that unfinished jobs go on with, by key, each with its job.
fn kept(coordinator: &Arc<Coordinator>) -> SqlResult<BTreeMap<Vec<u8>, u32>> {
    let txn = coordinator.begin(snapshot()).map_err(kv_error)?;
    let mut out = BTreeMap::new();
    for record in Record::all(&txn)? {
        out.extend(record.kept_loads().map(|load| (system::pending_load(load), record.id)));
    }
    Ok(out)
}

/// A load that is to be erased takes others in the same spans along, and nobody can tell their rows
/// apart: a job that goes on with one of those has to begin again.
fn give_up_what_meets(
    coordinator: &Arc<Coordinator>,
    key: &[u8],
    value: &[u8],
    all: &[(Vec<u8>, Bytes)],
) -> SqlResult<()> {
    let kept = kept(coordinator)?;
    if kept.is_empty() || kept.contains_key(key) {
        return Ok(());
    }
    let spans = decode(value).unwrap_or_default();
    let meets = |value: &[u8]| {
        let others = decode(value).unwrap_or_default();
        others.iter().any(|other| spans.iter().any(|own| own.overlaps(other)))
    };
    let met = all.iter().filter(|(_, value)| meets(value)).filter_map(|(key, _)| kept.get(key));
    for job in met.collect::<BTreeSet<_>>() {
        tracing::warn!(job, "a checkpoint is of no use: a table of it was filled twice");
        Record::change(coordinator, *job, |stored| {
            stored.map(|record| Record { mark: None, ..record.clone() })
        })?;
        coordinator.sweep_job_files(|other, _| other != *job).map_err(kv_error)?;
    }
    Ok(())
}

fn pending(txn: &Arc<Txn>) -> SqlResult<Vec<(Vec<u8>, Bytes)>> {
    let (start, end) = system::pending_loads();
    let options = ScanOptions { mode: ReadMode::Unrecorded, ..ScanOptions::default() };
    let mut scan = txn.scan(KeySpan::new(start, end), options).map_err(kv_error)?;
    let mut found = Vec::new();
    while let Some((key, value)) = scan.next().map_err(kv_error)? {
        found.push((key.to_vec(), value));
    }
    Ok(found)
}

fn erase(txn: &Txn, key: Vec<u8>, value: &[u8]) -> SqlResult<()> {
    let spans = decode(value).ok_or_else(|| {
        SqlError::new(SqlState::DATA_CORRUPTED, "damaged system record: pending load")
    })?;
    for span in spans {
        txn.delete_span(&span).map_err(kv_error)?;
    }
    txn.delete(key).map_err(kv_error)
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
