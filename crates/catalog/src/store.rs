//! Descriptors in the store: reading all of them, writing a difference, handing out ids.
//!
//! Each descriptor is one JSON value under its system key. The version key is written by every
//! schema change ([`mod@crate::publish`]): a cached catalog is current for a transaction exactly if
//! it has the version that the transaction reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use braid_keys::system;
use braid_kv::{Coordinator, Isolation, KeySpan, KvError, ReadMode, ScanOptions, Txn, TxnOptions};
use braid_types::{SqlError, SqlResult, SqlState};
use serde::{Deserialize, Serialize};

use crate::access::{DefaultAcl, Notes, Role};
use crate::collations::UserCollation;
use crate::descriptor::{Database, Schema, Sequence, Table, View};
use crate::error::kv_error;
use crate::functions::Function;
use crate::publish::write_changes;
use crate::snapshot::Catalog;
use crate::user_types::UserType;

/// The first id for user objects. Smaller ones belong to the initial database.
pub(crate) const FIRST_USER_ID: u32 = 16;

/// What an empty store has: a place to work in, and those that PostgreSQL's tools connect to before
/// they create or drop another.
const FIRST_DATABASES: [&str; 3] = ["defaultdb", "postgres", "template1"];

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Stored {
    Database(Database),
    Schema(Schema),
    Table(Box<Table>),
    View(View),
    Sequence(Sequence),
    Type(UserType),
    Function(Box<Function>),
    Collation(UserCollation),
    Role(Role),
    #[serde(rename = "default_acl")]
    DefaultAcl(DefaultAcl),
}

/// The version of the catalog as the transaction reads it; `None` in an empty store. The
/// transaction does not come to depend on it: it depends on the descriptors that it uses.
pub fn read_version(txn: &Txn) -> SqlResult<Option<u64>> {
    version_as(txn, ReadMode::Unrecorded)
}

pub(crate) fn version_as(txn: &Txn, mode: ReadMode) -> SqlResult<Option<u64>> {
    let Some(bytes) = txn.get_as(&system::catalog_version(), mode).map_err(kv_error)? else {
        return Ok(None);
    };
    let bytes: [u8; 8] = bytes[..].try_into().map_err(|_| damaged("catalog version"))?;
    Ok(Some(u64::from_be_bytes(bytes)))
}

fn damaged(what: impl std::fmt::Display) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, format!("damaged system record: {what}"))
}

/// Reads all descriptors. The transaction does not come to depend on them.
pub fn load_catalog(txn: &Arc<Txn>) -> SqlResult<Catalog> {
    load_as(txn, ReadMode::Unrecorded)
}

pub(crate) fn load_as(txn: &Arc<Txn>, mode: ReadMode) -> SqlResult<Catalog> {
    let version = version_as(txn, mode)?.unwrap_or(0);
    let mut catalog = Catalog { version, ..Catalog::default() };
    let (start, end) = system::descriptors();
    let options = ScanOptions { mode, ..ScanOptions::default() };
    let mut scan = txn.scan(KeySpan::new(start, end), options).map_err(kv_error)?;
    while let Some((key, value)) = scan.next().map_err(kv_error)? {
        let stored: Stored = serde_json::from_slice(&value)
            .map_err(|e| damaged(format!("{}: {e}", braid_keys::pretty::key(&key))))?;
        match stored {
            Stored::Database(d) => drop(catalog.databases.insert(d.id, Arc::new(d))),
            Stored::Schema(s) => drop(catalog.schemas.insert(s.id, Arc::new(s))),
            Stored::Table(t) => drop(catalog.tables.insert(t.id, Arc::new(*t))),
            Stored::View(v) => drop(catalog.views.insert(v.id, Arc::new(v))),
            Stored::Sequence(s) => drop(catalog.sequences.insert(s.id, Arc::new(s))),
            Stored::Type(t) => drop(catalog.types.insert(t.id, Arc::new(t))),
            Stored::Function(f) => drop(catalog.functions.insert(f.id, Arc::new(*f))),
            Stored::Collation(c) => drop(catalog.collations.insert(c.id, Arc::new(c))),
            Stored::Role(r) => drop(catalog.roles.insert(r.id, Arc::new(r))),
            Stored::DefaultAcl(d) => drop(catalog.default_acls.insert(d.id, Arc::new(d))),
        }
    }
    let (start, end) = system::all_notes();
    let options = ScanOptions { mode, ..ScanOptions::default() };
    let mut scan = txn.scan(KeySpan::new(start, end), options).map_err(kv_error)?;
    while let Some((key, value)) = scan.next().map_err(kv_error)? {
        let notes: Notes = serde_json::from_slice(&value)
            .map_err(|e| damaged(format!("{}: {e}", braid_keys::pretty::key(&key))))?;
        catalog.notes.insert(notes.id, Arc::new(notes));
    }
    catalog.know_types();
    catalog.reindex();
    Ok(catalog)
}

/// Writes what differs between two catalogs.
///
/// # Errors
/// XX000 naming the broken invariants if `new` does not pass [`Catalog::check`].
pub(crate) fn write_descriptors(txn: &Txn, old: &Catalog, new: &Catalog) -> SqlResult<()> {
    let broken = new.check();
    if !broken.is_empty() {
        return Err(SqlError::internal(format!("catalog invariant: {}", broken.join("; "))));
    }
    diff(txn, &old.databases, &new.databases, |d| Stored::Database(d.clone()))?;
    diff(txn, &old.schemas, &new.schemas, |s| Stored::Schema(s.clone()))?;
    diff(txn, &old.tables, &new.tables, |t| Stored::Table(Box::new(t.clone())))?;
    for id in old.tables.keys().filter(|id| !new.tables.contains_key(id)) {
        txn.delete(system::statistics(*id)).map_err(kv_error)?;
    }
    for (id, table) in &old.tables {
        if !new.tables.get(id).is_some_and(|n| Arc::ptr_eq(n, table) || n.reads_like(table)) {
            let version = (old.version + 1).to_be_bytes().to_vec();
            txn.put(system::shape(*id), version).map_err(kv_error)?;
        }
    }
    diff(txn, &old.views, &new.views, |v| Stored::View(v.clone()))?;
    diff(txn, &old.sequences, &new.sequences, |s| Stored::Sequence(s.clone()))?;
    diff(txn, &old.types, &new.types, |t| Stored::Type(t.clone()))?;
    diff(txn, &old.functions, &new.functions, |f| Stored::Function(Box::new(f.clone())))?;
    diff(txn, &old.collations, &new.collations, |c| Stored::Collation(c.clone()))?;
    diff(txn, &old.roles, &new.roles, |r| Stored::Role(r.clone()))?;
    diff(txn, &old.default_acls, &new.default_acls, |d| Stored::DefaultAcl(d.clone()))?;
    diff_at(system::notes, txn, &old.notes, &new.notes, Notes::clone)?;
    Ok(())
}

/// Writes what differs under the descriptors' keys.
fn diff<T: PartialEq>(
    txn: &Txn,
    old: &BTreeMap<u32, Arc<T>>,
    new: &BTreeMap<u32, Arc<T>>,
    stored: impl Fn(&T) -> Stored,
) -> SqlResult<()> {
    diff_at(system::descriptor, txn, old, new, stored)
}

fn diff_at<T: PartialEq, S: Serialize>(
    key: fn(u32) -> Vec<u8>,
    txn: &Txn,
    old: &BTreeMap<u32, Arc<T>>,
    new: &BTreeMap<u32, Arc<T>>,
    stored: impl Fn(&T) -> S,
) -> SqlResult<()> {
    for id in old.keys().filter(|id| !new.contains_key(id)) {
        txn.delete(key(*id)).map_err(kv_error)?;
    }
    for (id, value) in new {
        if old.get(id).is_some_and(|o| Arc::ptr_eq(o, value) || **o == **value) {
            continue;
        }
        let json = serde_json::to_vec(&stored(value))
            .map_err(|e| SqlError::internal(format!("descriptor {id} as JSON: {e}")))?;
        txn.put(key(*id), json).map_err(kv_error)?;
    }
    Ok(())
}

/// Creates the first database and schema if the store is empty.
pub fn bootstrap(coordinator: &Arc<Coordinator>) -> SqlResult<()> {
    let txn = coordinator.begin(TxnOptions::default()).map_err(kv_error)?;
    if read_version(&txn)?.is_some() {
        return Ok(());
    }
    let old = Catalog::default();
    let mut new = old.clone();
    for (at, name) in FIRST_DATABASES.into_iter().enumerate() {
        let id = at as u32 * 2 + 1;
        new.put_database(Database { id, name: name.into() });
        let (name, on_commit) = ("public".into(), Vec::new());
        new.put_schema(Schema { id: id + 1, database: id, name, on_commit });
    }
    write_changes(&txn, &old, &mut new)?;
    txn.put(system::erasures_are_noted(), Vec::new()).map_err(kv_error)?;
    txn.commit().map_err(kv_error)?;
    Ok(())
}

/// Hands out `count` ids that were never used and never will be again; returns the first. Runs in
/// a transaction of its own, so that a rollback of the caller does not give them back.
pub fn reserve_ids(coordinator: &Arc<Coordinator>, count: u32) -> SqlResult<u32> {
    loop {
        let options = TxnOptions { isolation: Isolation::RepeatableRead, ..TxnOptions::default() };
        let txn = coordinator.begin(options).map_err(kv_error)?;
        match try_reserve(&txn, count) {
            Ok(first) => return Ok(first),
            Err(KvError::Retry { .. }) => continue,
            Err(e) => return Err(kv_error(e)),
        }
    }
}

fn try_reserve(txn: &Txn, count: u32) -> Result<u32, KvError> {
    let key = system::next_id();
    let next = match txn.get(&key)? {
        Some(b) => <[u8; 4]>::try_from(&b[..]).map_or(FIRST_USER_ID, u32::from_be_bytes),
        None => FIRST_USER_ID,
    };
    txn.put(key, (next + count).to_be_bytes().to_vec())?;
    txn.commit()?;
    Ok(next)
}

/// The key by whose lock statements that were planned with a step of a table, and schema changes
/// of that table, exclude each other.
pub fn table_lock_key(table: u32, step: u32) -> Vec<u8> {
    system::table_lock(table, step)
}

/// The key by whose lock schema changes of one table exclude each other.
pub fn change_lock_key(table: u32) -> Vec<u8> {
    system::change_lock(table)
}
