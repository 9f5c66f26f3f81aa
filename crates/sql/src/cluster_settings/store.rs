//! The records of cluster settings and of rules, and their version.

use std::sync::Arc;

use braid_catalog::kv_error;
use braid_keys::system;
use braid_kv::{Isolation, KeySpan, KvError, ScanOptions, Txn, TxnOptions};
use braid_settings::{Picture, Rule, Stored};
use braid_types::{SqlError, SqlResult, SqlState};

use crate::database::Database;

/// All settings and rules, as a transaction sees them.
fn read(txn: &Arc<Txn>) -> SqlResult<Picture> {
    let version = txn.get(&system::settings_version()).map_err(kv_error)?;
    let version = match version {
        Some(bytes) => bytes.as_ref().try_into().map(u64::from_be_bytes).map_err(|_| damaged())?,
        None => 0,
    };
    let mut picture = Picture { version, ..Picture::default() };
    each(txn, system::all_settings(), |key, value| {
        let name = system::setting_name(key).ok_or_else(damaged)?;
        let stored = Stored::decode(value).ok_or_else(damaged)?;
        picture.values.insert(name.to_string(), stored);
        Ok(())
    })?;
    each(txn, system::all_denied_queries(), |key, value| {
        let id = system::denied_query_id(key).ok_or_else(damaged)?;
        picture.rules.insert(id, Rule::decode(value).ok_or_else(damaged)?);
        Ok(())
    })?;
    Ok(picture)
}

fn each(
    txn: &Arc<Txn>,
    (start, end): (Vec<u8>, Vec<u8>),
    mut take: impl FnMut(&[u8], &[u8]) -> SqlResult<()>,
) -> SqlResult<()> {
    let span = KeySpan::new(start, end);
    let mut scan = txn.scan(span, ScanOptions::default()).map_err(kv_error)?;
    while let Some((key, value)) = scan.next().map_err(kv_error)? {
        take(&key, &value)?;
    }
    Ok(())
}

fn damaged() -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "damaged system record: cluster setting")
}

/// Writes what is different.
fn write(txn: &Arc<Txn>, old: &Picture, new: &Picture) -> SqlResult<()> {
    let version = new.version.to_be_bytes().to_vec();
    txn.put(system::settings_version(), version).map_err(kv_error)?;
    for name in old.values.keys().filter(|name| !new.values.contains_key(*name)) {
        txn.delete(system::setting(name)).map_err(kv_error)?;
    }
    for (name, stored) in
        new.values.iter().filter(|(n, stored)| old.values.get(*n) != Some(*stored))
    {
        txn.put(system::setting(name), stored.encode()).map_err(kv_error)?;
    }
    for id in old.rules.keys().filter(|id| !new.rules.contains_key(id)) {
        txn.delete(system::denied_query(*id)).map_err(kv_error)?;
    }
    for (id, rule) in new.rules.iter().filter(|(id, rule)| old.rules.get(id) != Some(rule)) {
        txn.put(system::denied_query(*id), rule.encode()).map_err(kv_error)?;
    }
    Ok(())
}

impl Database {
    /// What the records say now, and the node from now on.
    ///
    /// # Errors
    /// Of reading; 58030 if this node's disk does not take the copy: then the node goes by what it
    /// went by.
    pub(crate) fn read_cluster_settings(&self) -> SqlResult<()> {
        let options = TxnOptions { read_only: true, ..TxnOptions::default() };
        let txn = self.coordinator().begin(options).map_err(kv_error)?;
        let picture = read(&txn)?;
        txn.commit().map_err(kv_error)?;
        self.go_by(picture)
    }

    fn go_by(&self, picture: Picture) -> SqlResult<()> {
        let version = picture.version;
        self.cluster_settings().take(picture).map_err(|e| {
            let text = format!("the copy of the cluster settings cannot be written: {e}");
            SqlError::new(SqlState::IO_ERROR, text)
        })?;
        self.coordinator().goes_by_settings(version);
        Ok(())
    }

    /// Changes settings and rules for all nodes, in a transaction of its own; what `change` gives,
    /// and the version from which on it holds. It is durable, and holds on this node, when this
    /// returns. `change` may be called again, if somebody else changes them at the same time.
    ///
    /// # Errors
    /// Those of `change`, of the transaction, and as [`Database::read_cluster_settings`].
    pub(crate) fn change_cluster_settings<T>(
        &self,
        change: impl Fn(&mut Picture) -> SqlResult<T>,
    ) -> SqlResult<(T, u64)> {
        let isolation = Isolation::Serializable;
        loop {
            let options = TxnOptions { isolation, ..TxnOptions::default() };
            let txn = self.coordinator().begin(options).map_err(kv_error)?;
            let old = read(&txn)?;
            let mut new = Picture { version: old.version + 1, ..old.clone() };
            let given = change(&mut new)?;
            write(&txn, &old, &new)?;
            match txn.commit() {
                Ok(_) => {
                    let version = new.version;
                    self.go_by(new)?;
                    return Ok((given, version));
                }
                Err(KvError::Retry { .. } | KvError::Deadlock { .. }) => {}
                Err(e) => return Err(kv_error(e)),
            }
        }
    }
}
