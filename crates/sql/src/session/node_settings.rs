//! Settings of the whole node: ALTER SYSTEM. They are stored, and hold from then on for everybody.

use braid_catalog::kv_error;
use braid_keys::system;
use braid_kv::{Isolation, KvError, ReadMode, TxnOptions};
use braid_parser::SetVar;
use braid_types::{SqlError, SqlResult, SqlState};

use super::client::Session;
use super::settings::switch;
use crate::database::Database;

/// Those that there are, all of them on or off, with their defaults.
const NODE_SETTINGS: &[(&str, &str)] = &[("autovacuum", "on")];

fn default_of(name: &str) -> Option<&'static str> {
    NODE_SETTINGS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

impl Database {
    /// The value of a setting of the node; `None` if it is none.
    pub(crate) fn node_setting(&self, name: &str) -> SqlResult<Option<String>> {
        let Some(default) = default_of(name) else { return Ok(None) };
        let options = TxnOptions { read_only: true, ..TxnOptions::default() };
        let txn = self.coordinator().begin(options).map_err(kv_error)?;
        let stored = txn.get_as(&system::setting(name), ReadMode::Unrecorded).map_err(kv_error)?;
        let stored = stored.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Some(stored.unwrap_or_else(|| default.to_string())))
    }

    fn put_node_setting(&self, name: &str, value: Option<&str>) -> SqlResult<()> {
        let key = system::setting(name);
        loop {
            let isolation = Isolation::RepeatableRead;
            let options = TxnOptions { isolation, ..TxnOptions::default() };
            let txn = self.coordinator().begin(options).map_err(kv_error)?;
            let written = match value {
                Some(value) => txn.put(key.clone(), value.to_string()),
                None => txn.delete(key.clone()),
            };
            match written.and_then(|()| txn.commit()) {
                Ok(_) => return Ok(()),
                Err(KvError::Retry { .. }) => {}
                Err(e) => return Err(kv_error(e)),
            }
        }
    }
}

impl Session {
    /// ALTER SYSTEM SET; without values: RESET.
    pub(crate) fn alter_system(&mut self, v: &SetVar) -> SqlResult<()> {
        if self.open.is_some() {
            return Err(SqlError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "ALTER SYSTEM cannot run inside a transaction block",
            ));
        }
        let name = &v.name;
        if default_of(name).is_none() {
            self.state.settings().known(name)?;
            let known: Vec<&str> = NODE_SETTINGS.iter().map(|(name, _)| *name).collect();
            return Err(SqlError::unsupported(format!("ALTER SYSTEM SET {name}"))
                .with_hint(format!("It sets: {}.", known.join(", "))));
        }
        let value = match v.values.as_deref() {
            None => None,
            Some([value]) => Some(switch(name, value)?),
            Some(values) => return Err(switch(name, &values.join(", ")).expect_err("a list")),
        };
        self.db.put_node_setting(name, value)
    }
}
