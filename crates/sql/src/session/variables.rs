//! Settings as statements change them: SET, RESET, DISCARD.

use braid_types::{SqlError, SqlResult, SqlState};

use super::client::Session;
use super::settings::{boolean, invalid, no_level};
use super::transaction::level_named;
use braid_parser::{SetVar, TxnModes};
use braid_scalar::SessionFunctions;

/// What a setting says that is one of the transaction.
fn modes_of(v: &SetVar) -> SqlResult<Option<TxnModes>> {
    let mut modes = TxnModes::default();
    let value = v.values.as_ref().and_then(|v| v.first());
    match (&*v.name, value) {
        ("transaction_isolation", Some(value)) => {
            modes.isolation = Some(level_named(value).ok_or_else(|| no_level(&v.name, value))?);
        }
        ("transaction_read_only", Some(value)) => {
            modes.read_only = Some(boolean(value).ok_or_else(|| invalid(&v.name, value))? == "on");
        }
        ("transaction_deferrable", Some(value)) => {
            modes.deferrable = Some(boolean(value).ok_or_else(|| invalid(&v.name, value))? == "on");
        }
        // As the session has it: DEFAULT.
        ("transaction_isolation" | "transaction_read_only" | "transaction_deferrable", None) => {}
        _ => return Ok(None),
    }
    Ok(Some(modes))
}

impl Session {
    /// SET.
    pub(crate) fn set_variable(&mut self, v: &SetVar) -> SqlResult<()> {
        if let Some(modes) = modes_of(v)? {
            return self.set_transaction(&modes, None);
        }
        if v.local && self.open.is_none() {
            self.warn(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET LOCAL can only be used in transaction blocks",
            );
            return Ok(());
        }
        if let ("role" | "session_authorization", Some([role])) = (&*v.name, v.values.as_deref()) {
            self.check_role(&v.name, role)?;
        }
        match &v.values {
            None => {
                self.state.change_settings(|s| s.reset(Some(&v.name)))?;
                self.state.report_all();
            }
            Some(values) => {
                let text = if v.name == "search_path" {
                    let quoted: Vec<_> =
                        values.iter().map(|v| braid_types::quote_ident(v)).collect();
                    quoted.join(", ")
                } else {
                    values.join(", ")
                };
                self.state.set(&v.name, &text, v.local)?;
            }
        }
        Ok(())
    }

    /// SET ROLE and SET SESSION AUTHORIZATION take roles that exist.
    fn check_role(&self, setting: &str, role: &str) -> SqlResult<()> {
        let known = self.state.catalog().role_oid(role, &self.state.user).is_some();
        if known || (setting == "role" && role == "none") {
            return Ok(());
        }
        Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("role \"{role}\" does not exist"),
        ))
    }

    /// RESET; `None`: all.
    pub(crate) fn reset(&mut self, name: Option<&str>) -> SqlResult<()> {
        self.state.change_settings(|s| s.reset(name))?;
        self.state.report_all();
        Ok(())
    }

    /// DISCARD ALL, PLANS, SEQUENCES, TEMP.
    pub(crate) fn discard(&mut self, what: &str) -> SqlResult<()> {
        if what == "all" {
            if self.open.as_ref().is_some_and(|o| o.explicit) {
                return Err(SqlError::new(
                    SqlState::ACTIVE_SQL_TRANSACTION,
                    "DISCARD ALL cannot run inside a transaction block",
                ));
            }
            self.reset(None)?;
            self.forget_prepared();
            self.close_cursor(None)?;
            SessionFunctions::advisory_unlock_all(&*self.state);
            self.unlisten(None)?;
        }
        if what == "all" || what == "temp" || what == "temporary" {
            self.drop_temporary()?;
        }
        if what == "all" || what == "plans" {
            self.cache.clear();
        }
        if what == "all" || what == "sequences" {
            self.state.forget_sequences();
        }
        Ok(())
    }
}
