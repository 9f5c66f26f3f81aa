//! ALTER SYSTEM: PostgreSQL's name for what is a cluster setting here.

use braid_parser::SetVar;
use braid_types::{SqlError, SqlResult, SqlState};

use super::client::Session;
use super::settings::switch;
use crate::database::Database;

/// The cluster settings that PostgreSQL has, by its names. All of them are on or off.
const OF_POSTGRES: &[&str] = &["autovacuum"];

impl Database {
    /// The value of such a setting; `None` if it is none.
    pub(crate) fn node_setting(&self, name: &str) -> Option<&'static str> {
        let value = OF_POSTGRES.contains(&name).then(|| self.cluster_settings().value(name))?;
        Some(if value == "true" { "on" } else { "off" })
    }
}

impl Session {
    /// ALTER SYSTEM SET; without values: RESET.
    pub(crate) fn alter_system(&mut self, v: &SetVar) -> SqlResult<()> {
        if self.is_open() {
            return Err(SqlError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "ALTER SYSTEM cannot run inside a transaction block",
            ));
        }
        let name = &v.name;
        if !OF_POSTGRES.contains(&name.as_str()) {
            self.state.settings().known(name)?;
            return Err(SqlError::unsupported(format!("ALTER SYSTEM SET {name}"))
                .with_hint(format!("It sets: {}.", OF_POSTGRES.join(", "))));
        }
        let value = match v.values.as_deref() {
            None => None,
            Some([value]) => Some(switch(name, value)?),
            Some(values) => return Err(switch(name, &values.join(", ")).expect_err("a list")),
        };
        let by = self.state.asks_as().0;
        self.db.set_for_cluster(name, value, &by).map(drop)
    }
}
