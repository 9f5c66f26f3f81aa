//! Statements about the session itself: transaction blocks, settings, PREPARE.

use std::sync::Arc;

use braid_catalog::kv_error;
use braid_types::{SqlError, SqlResult, SqlState, SqlType};

use super::context::Notice;
use super::outcome::Outcome;
use super::prepared::Prepared;
use super::run::Session;
use super::settings::Settings;
use super::transaction::{
    OpenTxn, Savepoint, isolation_at, isolation_name, isolation_of, level_of, no_transaction,
};
use braid_parser::{Kind, Statement, TxnModes};

impl Session {
    pub(super) fn warn(&self, state: SqlState, message: &str) {
        self.notices.lock().push(Notice { severity: "WARNING", state, message: message.into() });
    }

    /// Statements about transactions, settings and prepared statements.
    pub(super) fn control(&mut self, statement: &Statement) -> SqlResult<Option<Outcome>> {
        let done = |tag: &str| Ok(Some(Outcome::Done(tag.to_string())));
        match &*statement.kind {
            Kind::Empty => Ok(Some(Outcome::Empty)),
            Kind::Begin(modes) => {
                self.begin(modes, statement.as_of.as_deref())?;
                done("BEGIN")
            }
            Kind::Commit(chain) => {
                let tag = self.commit_or_roll_back()?;
                if *chain {
                    self.open_txn(&TxnModes::default(), None, true)?;
                }
                done(tag)
            }
            Kind::Rollback(chain) => {
                if !self.open.as_ref().is_some_and(|o| o.explicit) {
                    self.warn(
                        SqlState::NO_ACTIVE_SQL_TRANSACTION,
                        "there is no transaction in progress",
                    );
                }
                self.rollback();
                if *chain {
                    self.open_txn(&TxnModes::default(), None, true)?;
                }
                done("ROLLBACK")
            }
            Kind::Savepoint(name) => {
                self.savepoint(name)?;
                done("SAVEPOINT")
            }
            Kind::RollbackTo(name) => {
                self.rollback_to(name)?;
                done("ROLLBACK")
            }
            Kind::Release(name) => {
                let open = self.block("RELEASE SAVEPOINT")?;
                let at = open.savepoint(name)?;
                open.savepoints.truncate(at);
                open.savepoints_changed();
                done("RELEASE")
            }
            Kind::SetTransaction(modes) => {
                self.set_transaction(modes, statement.as_of.as_deref())?;
                done("SET")
            }
            Kind::SetSessionTransaction(modes) => {
                if let Some(i) = modes.isolation {
                    let name = isolation_name(isolation_at(i));
                    self.state.set("default_transaction_isolation", name, false)?;
                }
                if let Some(r) = modes.read_only {
                    let value = if r { "on" } else { "off" };
                    self.state.set("default_transaction_read_only", value, false)?;
                }
                done("SET")
            }
            Kind::Set(v) => {
                self.set_variable(v)?;
                done("SET")
            }
            Kind::Reset(name) => {
                self.state.settings(|s| s.reset(name.as_deref()))?;
                self.state.report_all();
                done("RESET")
            }
            Kind::Prepare(..) | Kind::Deallocate(_) | Kind::Discard(_) => {
                self.prepared_statements(statement)
            }
            Kind::NoOp(tag, tables) => {
                for name in tables {
                    let text: Vec<String> =
                        name.iter().map(|part| braid_types::quote_ident(part)).collect();
                    if braid_scalar::SessionFunctions::relation_oid(&*self.state, &text.join("."))?
                        .is_none()
                    {
                        return Err(SqlError::new(
                            SqlState::UNDEFINED_TABLE,
                            format!("relation \"{}\" does not exist", name.join(".")),
                        ));
                    }
                }
                done(tag)
            }
            Kind::CancelJob(id) => {
                self.cancel_job(*id)?;
                done("CANCEL JOB")
            }
            Kind::Refused(what) => Err(SqlError::unsupported(what)),
            _ => Ok(None),
        }
    }

    /// PREPARE, DEALLOCATE, DISCARD.
    fn prepared_statements(&mut self, statement: &Statement) -> SqlResult<Option<Outcome>> {
        let done = |tag: &str| Ok(Some(Outcome::Done(tag.to_string())));
        match &*statement.kind {
            Kind::Prepare(name, types, inner) => {
                let types = types
                    .iter()
                    .map(|t| braid_scalar::sql_type_of(t).map(Some))
                    .collect::<SqlResult<Vec<_>>>()?;
                self.check_unnamed(name)?;
                let p = self.prepare_inner(inner.clone(), &types)?;
                self.named.insert(name.clone(), p);
                done("PREPARE")
            }
            Kind::Deallocate(name) => {
                match name {
                    None => self.named.clear(),
                    Some(n) => {
                        self.named(n)?;
                        self.named.remove(n);
                    }
                }
                done(if name.is_none() { "DEALLOCATE ALL" } else { "DEALLOCATE" })
            }
            Kind::Discard(what) => {
                if what == "all" {
                    if self.open.as_ref().is_some_and(|o| o.explicit) {
                        return Err(SqlError::new(
                            SqlState::ACTIVE_SQL_TRANSACTION,
                            "DISCARD ALL cannot run inside a transaction block",
                        ));
                    }
                    self.state.settings(|s| s.reset(None))?;
                    self.state.report_all();
                    self.named.clear();
                }
                if what == "all" || what == "plans" {
                    self.cache.clear();
                }
                if what == "all" || what == "sequences" {
                    self.state.forget_sequences();
                }
                done(&format!("DISCARD {}", what.to_uppercase()))
            }
            _ => Ok(None),
        }
    }

    /// 42P05 if a prepared statement has this name.
    fn check_unnamed(&self, name: &str) -> SqlResult<()> {
        if self.named.contains_key(name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        Ok(())
    }

    /// Plans a statement and keeps it under a name. PREPARE and the protocol's Parse share their
    /// names: what one makes, EXECUTE, Bind, DEALLOCATE and Close of the other find.
    ///
    /// # Errors
    /// 42P05 if the name is taken; those of [`Session::prepare`].
    pub fn prepare_named(
        &mut self,
        name: &str,
        statement: Statement,
        declared: &[Option<SqlType>],
    ) -> SqlResult<()> {
        self.check_unnamed(name)?;
        let prepared = self.prepare(statement, declared)?;
        self.named.insert(name.to_string(), prepared);
        Ok(())
    }

    /// The prepared statement of this name.
    ///
    /// # Errors
    /// 26000.
    pub fn prepared(&self, name: &str) -> SqlResult<Arc<Prepared>> {
        self.named(name)
    }

    /// Forgets the prepared statement of this name, if there is one.
    pub fn close_prepared(&mut self, name: &str) {
        self.named.remove(name);
    }

    pub(super) fn block(&mut self, what: &str) -> SqlResult<&mut OpenTxn> {
        match &mut self.open {
            Some(o) if o.explicit => Ok(o),
            _ => Err(no_transaction(what)),
        }
    }

    pub(super) fn begin(
        &mut self,
        modes: &TxnModes,
        as_of: Option<&sqlparser::ast::Expr>,
    ) -> SqlResult<()> {
        match &mut self.open {
            Some(o) if o.explicit => {
                self.warn(
                    SqlState::ACTIVE_SQL_TRANSACTION,
                    "there is already a transaction in progress",
                );
                Ok(())
            }
            Some(o) if o.statements > 0 => {
                // Statements before BEGIN in the same message belong to the block, as in
                // PostgreSQL.
                o.explicit = true;
                Ok(())
            }
            _ => self.open_txn(modes, as_of, true),
        }
    }

    pub(super) fn set_transaction(
        &mut self,
        modes: &TxnModes,
        as_of: Option<&sqlparser::ast::Expr>,
    ) -> SqlResult<()> {
        let Some(o) = &self.open else {
            self.warn(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION can only be used in transaction blocks",
            );
            return Ok(());
        };
        let (explicit, used) = (o.explicit, o.statements > 0);
        let same = modes.isolation.is_none_or(|i| isolation_at(i) == o.txn.isolation())
            && modes.read_only.is_none_or(|r| r == o.txn.read_only())
            && as_of.is_none();
        if same {
            return Ok(());
        }
        if used {
            return Err(SqlError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION must be called before any query",
            ));
        }
        let merged = TxnModes {
            isolation: modes.isolation.or(Some(level_of(o.txn.isolation()))),
            read_only: modes.read_only.or(Some(o.txn.read_only())),
        };
        self.open_txn(&merged, as_of, explicit)
    }

    pub(super) fn set_variable(&mut self, v: &braid_parser::SetVar) -> SqlResult<()> {
        if v.name == "transaction_isolation" || v.name == "transaction_read_only" {
            let value = v.values.as_ref().and_then(|v| v.first()).cloned().unwrap_or_default();
            let modes = if v.name == "transaction_isolation" {
                TxnModes { isolation: Some(level_of(isolation_of(&value))), read_only: None }
            } else {
                TxnModes { isolation: None, read_only: Some(value == "on" || value == "true") }
            };
            return self.set_transaction(&modes, None);
        }
        if v.local && self.open.is_none() {
            self.warn(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET LOCAL can only be used in transaction blocks",
            );
            return Ok(());
        }
        match &v.values {
            None => {
                self.state.settings(|s| s.reset(Some(&v.name)))?;
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

    pub(super) fn savepoint(&mut self, name: &str) -> SqlResult<()> {
        let settings = self.state.settings(|s| s.clone());
        let open = self.block("SAVEPOINT")?;
        open.savepoints.push(Savepoint {
            name: name.to_string(),
            id: open.txn.savepoint(),
            catalog: open.catalog.clone(),
            schema_changed: open.schema_changed,
            settings,
        });
        open.savepoints_changed();
        Ok(())
    }

    pub(super) fn rollback_to(&mut self, name: &str) -> SqlResult<()> {
        let open = self.block("ROLLBACK TO SAVEPOINT")?;
        let at = open.savepoint(name)?;
        open.savepoints.truncate(at + 1);
        open.savepoints_changed();
        let s = &open.savepoints[at];
        open.txn.rollback_to(s.id);
        open.catalog = s.catalog.clone();
        open.schema_changed = s.schema_changed;
        open.failure.lower();
        let (catalog, settings) = (s.catalog.clone(), s.settings.clone());
        self.state.set_catalog(catalog);
        self.state.settings(|x| *x = settings);
        Ok(())
    }

    pub(super) fn commit_or_roll_back(&mut self) -> SqlResult<&'static str> {
        match &self.open {
            Some(o) if o.is_failed() => {
                self.rollback();
                Ok("ROLLBACK")
            }
            Some(o) => {
                if !o.explicit {
                    self.warn(
                        SqlState::NO_ACTIVE_SQL_TRANSACTION,
                        "there is no transaction in progress",
                    );
                }
                self.commit()?;
                Ok("COMMIT")
            }
            None => {
                self.warn(
                    SqlState::NO_ACTIVE_SQL_TRANSACTION,
                    "there is no transaction in progress",
                );
                Ok("COMMIT")
            }
        }
    }

    pub(super) fn commit(&mut self) -> SqlResult<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let result = if open.schema_changed {
            self.db.commit_schema_change(&open.txn)
        } else {
            open.txn.commit().map(|_| ())
        };
        if result.is_err() {
            self.state.settings(|s| *s = open.settings);
        }
        self.state.settings(Settings::end_transaction);
        result.map_err(kv_error)
    }

    pub(super) fn rollback(&mut self) {
        let Some(open) = self.open.take() else { return };
        open.txn.rollback();
        self.state.settings(|s| {
            *s = open.settings;
            s.end_transaction();
        });
        self.state.report_all();
    }
}
