//! Transaction blocks: BEGIN, COMMIT, ROLLBACK, savepoints, and blocks that nobody has said.

use std::sync::Arc;

use braid_catalog::{kv_error, publish};
use braid_kv::{Txn, TxnOptions};
use braid_types::{SqlError, SqlResult, SqlState};

use super::client::Session;
use super::context::Notice;
use super::cursors::Cursor;
use super::outcome::Outcome;
use super::transaction::{
    Failure, Modes, OpenTxn, Savepoint, as_of_timestamp, isolation_at, level_name, no_transaction,
};
use crate::ddl::constraint;
use crate::dml::deferred::Deferred;
use crate::runtime::sessions::Sum;
use crate::runtime::transactions::Story;
use braid_parser::{Name, Statement, TxnModes};
use braid_scalar::{ParamTypes, Scope};

/// What cannot be changed any more of a transaction that has read something.
fn too_late(old: Modes, new: Modes, nested: bool) -> &'static str {
    if old.level != new.level {
        return "SET TRANSACTION ISOLATION LEVEL must be called before any query";
    }
    if old.read_only && !new.read_only && nested {
        return "cannot set transaction read-write mode inside a read-only transaction";
    }
    if old.read_only && !new.read_only {
        return "transaction read-write mode must be set before any query";
    }
    if old.read_only == new.read_only {
        return "SET TRANSACTION [NOT] DEFERRABLE must be called before any query";
    }
    "SET TRANSACTION must be called before any query"
}

impl Session {
    /// Several statements of one message run in one transaction: call this before the first.
    pub fn begin_implicit(&mut self) -> SqlResult<()> {
        if self.open.is_none() {
            self.open_txn(&TxnModes::default(), None, false)?;
        }
        Ok(())
    }

    /// After the last statement of the message: commits what [`Session::begin_implicit`] opened,
    /// or rolls it back if a statement failed. An explicit block stays open.
    pub fn end_implicit(&mut self) -> SqlResult<()> {
        match &self.open {
            Some(o) if !o.explicit && o.is_failed() => {
                self.rollback();
                Ok(())
            }
            Some(o) if !o.explicit => self.commit(),
            _ => Ok(()),
        }
    }

    pub(super) fn txn_options(
        &self,
        modes: &TxnModes,
        as_of: Option<&sqlparser::ast::Expr>,
    ) -> SqlResult<TxnOptions> {
        let as_of = match as_of {
            None => None,
            Some(e) => {
                let bound = braid_scalar::bind(e, &Scope::empty(), &mut ParamTypes::default())?;
                let eval = self.state.eval_now();
                let value = bound.eval(&[], &eval)?;
                let now = self.db.coordinator().told_clock_us();
                Some(as_of_timestamp(&value, now, &eval.style.zone)?)
            }
        };
        let d = self.state.derived();
        let own = d.modes.with(modes);
        Ok(TxnOptions {
            isolation: isolation_at(own.level),
            // A session's temporary tables are written to in READ ONLY transactions as well:
            // `check_writable` refuses the rest.
            read_only: own.read_only && !self.state.made_temporary(),
            as_of,
            cancel: Some(self.cancel.clone()),
            lock_timeout: d.lock_timeout,
            async_commit: d.async_commit,
            shown: Some(self.shown.clone()),
            batch: d.sizes.batch,
            spill: d.sizes.memory,
        })
    }

    pub(super) fn open_txn(
        &mut self,
        modes: &TxnModes,
        as_of: Option<&sqlparser::ast::Expr>,
        explicit: bool,
    ) -> SqlResult<()> {
        let options = self.txn_options(modes, as_of)?;
        let as_of = options.as_of.is_some();
        let epoch = self.db.schema_epoch();
        let (txn, catalog) = self.db.begin(options)?;
        self.state.set_catalog(&catalog);
        let modes = self.state.derived().modes.with(modes);
        let modes = Modes { read_only: modes.read_only || as_of, ..modes };
        self.state.set_modes(Some(modes));
        self.open = Some(OpenTxn {
            failure: Failure::new(&txn),
            deferred: Deferred::new(self.db.coordinator().memory().account(usize::MAX)),
            txn,
            catalog,
            explicit,
            savepoints: Vec::new(),
            changed: None,
            started_micros: self.db.clock_micros(),
            statements: 0,
            as_of,
            modes,
            settings: self.state.settings(),
            epoch,
            story: Story::begin(),
        });
        Ok(())
    }

    pub(super) fn block(&mut self, what: &str) -> SqlResult<&mut OpenTxn> {
        match &mut self.open {
            Some(o) if o.explicit => Ok(o),
            _ => Err(no_transaction(what)),
        }
    }

    pub(crate) fn begin(
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

    pub(crate) fn set_transaction(
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
        let new = o.modes.with(modes);
        if new == o.modes && as_of.is_none() {
            return Ok(());
        }
        if used {
            let stricter = Modes { read_only: true, ..o.modes };
            if new != stricter || as_of.is_some() {
                let text = too_late(o.modes, new, !o.savepoints.is_empty());
                return Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, text));
            }
            return self.write_no_more();
        }
        self.open_txn(&new.into(), as_of, explicit)
    }

    /// SET TRANSACTION READ ONLY of a transaction that has done something already.
    fn write_no_more(&mut self) -> SqlResult<()> {
        let open = self.opened()?;
        open.modes.read_only = true;
        let modes = open.modes;
        self.state.set_modes(Some(modes));
        Ok(())
    }

    pub(crate) fn commit_or_roll_back(&mut self) -> SqlResult<&'static str> {
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

    /// Checks constraints that waited for the end of the block.
    fn check_deferred(&mut self) -> SqlResult<()> {
        let Some(open) = self.open.as_ref().filter(|o| !o.is_failed()) else { return Ok(()) };
        if open.deferred.is_empty() {
            return Ok(());
        }
        let deferred = open.deferred.clone();
        let ctx = self.context(open.txn.clone(), open.catalog.clone(), Arc::default());
        deferred.answer(&ctx, true)
    }

    /// SET CONSTRAINTS.
    pub(crate) fn set_constraints(
        &mut self,
        names: Option<&[Name]>,
        deferred: bool,
    ) -> SqlResult<()> {
        let Some(open) = self.open.as_ref() else {
            self.warn(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET CONSTRAINTS can only be used in transaction blocks",
            );
            return Ok(());
        };
        let checks = open.deferred.clone();
        let ctx = self.context(open.txn.clone(), open.catalog.clone(), Arc::default());
        let ids = names.map(|names| constraint::deferrable(&ctx, names)).transpose()?;
        checks.set(ids.as_deref(), deferred);
        checks.answer(&ctx, false)
    }

    /// Tells others of the block's schema changes, when it commits.
    fn publish_changes(&self) -> SqlResult<()> {
        match self.open.as_ref().filter(|open| open.changed.is_some() && !open.is_failed()) {
            Some(open) => publish(&open.txn, open.catalog.version).map(|_| ()),
            None => Ok(()),
        }
    }

    /// What the block has asked of others goes with it.
    fn say_asked(&self) -> SqlResult<()> {
        match self.open.as_ref().filter(|open| !open.is_failed()) {
            Some(open) => self.state.say_asked(&open.txn),
            None => Ok(()),
        }
    }

    pub(super) fn commit(&mut self) -> SqlResult<()> {
        let checked = self.check_deferred().and_then(|()| self.clear_at_commit());
        let checked = checked.and_then(|()| self.publish_changes());
        if let Err(e) = checked.and_then(|()| self.say_asked()) {
            self.rollback();
            return Err(e);
        }
        let Some(mut open) = self.open.take() else { return Ok(()) };
        self.state.set_modes(None);
        self.end_cursors(true);
        let order = (self.state.asked_count() > 0).then(|| self.db.channels().in_order());
        let result = if open.changed.is_some() {
            self.db.commit_schema_change(&open.txn)
        } else {
            open.txn.commit().map(|_| ())
        };
        match result {
            Ok(()) => self.state.post_asked(),
            Err(_) => self.state.forget_asked(0),
        }
        drop(order);
        if result.is_err() {
            self.state.restore_settings(open.settings);
            self.cursors.retain(|_, cursor| !cursor.is_new());
        }
        self.cursors.values_mut().for_each(Cursor::settle);
        self.state.end_transaction_locks();
        self.state.end_local_settings();
        let ended = if result.is_ok() { Sum::Commits } else { Sum::Rollbacks };
        self.activity.add(ended, 1);
        let result = result.map_err(kv_error);
        if let Err(e) = &result {
            open.story.loses(e);
        }
        self.count_ended(open.story, &open.txn, result.is_ok());
        result
    }

    pub(super) fn rollback(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.state.set_modes(None);
        self.end_cursors(false);
        self.state.forget_asked(0);
        self.state.end_transaction_locks();
        open.txn.rollback();
        self.activity.add(Sum::Rollbacks, 1);
        self.count_ended(open.story, &open.txn, false);
        self.state.restore_settings(open.settings);
        self.state.end_local_settings();
    }

    fn count_ended(&self, story: Story, txn: &Txn, committed: bool) {
        let database = self.state.database_id();
        self.db.transactions().ended(database, story, &txn.stats(), committed);
    }

    /// SAVEPOINT.
    pub(crate) fn savepoint(&mut self, name: &str) -> SqlResult<()> {
        self.block("SAVEPOINT")?;
        self.mark(name)
    }

    /// A place to return to, also in a block that nobody has said.
    pub(crate) fn mark(&mut self, name: &str) -> SqlResult<()> {
        let settings = self.state.settings();
        let asked = self.state.asked_count();
        let open = self.opened()?;
        open.savepoints.push(Savepoint {
            name: name.to_string(),
            id: open.txn.savepoint(),
            catalog: open.catalog.clone(),
            changed: open.changed,
            settings,
            asked,
            modes: open.modes,
        });
        open.savepoints_changed();
        Ok(())
    }

    /// Whether a transaction is open, said or not.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Runs a statement that another one contains.
    pub(crate) fn run_inside(&mut self, statement: Statement) -> SqlResult<Outcome> {
        let prepared = self.prepare_inner(statement, &[])?;
        self.execute_inner(&prepared, Vec::new())
    }

    /// Runs statements that another one contains as a text; what the last gives.
    pub(crate) fn run_text(&mut self, sql: &str) -> SqlResult<Option<Outcome>> {
        let mut last = None;
        for statement in braid_parser::parse_script(sql)? {
            last = Some(self.run_inside(statement)?);
        }
        Ok(last)
    }

    /// Tells the client something.
    pub(crate) fn tell(&self, notice: Notice) {
        self.notices.lock().push(notice);
    }

    fn opened(&mut self) -> SqlResult<&mut OpenTxn> {
        self.open.as_mut().ok_or_else(|| SqlError::internal("no transaction is open"))
    }

    /// ROLLBACK TO SAVEPOINT.
    pub(crate) fn rollback_to(&mut self, name: &str) -> SqlResult<()> {
        self.block("ROLLBACK TO SAVEPOINT")?;
        self.return_to(name)
    }

    /// Takes back all since [`Session::mark`], which stays.
    pub(crate) fn return_to(&mut self, name: &str) -> SqlResult<()> {
        let at = self.opened()?.savepoint(name)?;
        self.forget_cursors_since(at);
        let open = self.opened()?;
        open.savepoints.truncate(at + 1);
        open.savepoints_changed();
        let s = &open.savepoints[at];
        open.txn.rollback_to(s.id);
        open.catalog = s.catalog.clone();
        open.changed = s.changed;
        open.modes = s.modes;
        open.failure.lower();
        let (catalog, settings, asked) = (s.catalog.clone(), s.settings.clone(), s.asked);
        let modes = s.modes;
        self.state.set_modes(Some(modes));
        self.state.forget_asked(asked);
        self.state.set_catalog(&catalog);
        self.state.restore_settings(settings);
        Ok(())
    }

    /// RELEASE SAVEPOINT.
    pub(crate) fn release(&mut self, name: &str) -> SqlResult<()> {
        self.block("RELEASE SAVEPOINT")?;
        self.unmark(name)
    }

    /// Forgets a place of [`Session::mark`]: what was done since then stays.
    pub(crate) fn unmark(&mut self, name: &str) -> SqlResult<()> {
        let open = self.opened()?;
        let at = open.savepoint(name)?;
        open.savepoints.truncate(at);
        open.savepoints_changed();
        open.txn.keep_savepoints(open.savepoints.iter().map(|s| s.id));
        self.adopt_cursors(at);
        Ok(())
    }

    /// ROLLBACK: of a block, with a warning if there is none.
    pub(crate) fn roll_back_block(&mut self) {
        if !self.open.as_ref().is_some_and(|o| o.explicit) {
            self.warn(SqlState::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress");
        }
        self.rollback();
    }

    /// AND CHAIN: what the next block, which begins at once, takes from the one that ends.
    pub(crate) fn chained(&mut self, what: &str, chain: bool) -> SqlResult<Option<TxnModes>> {
        if !chain {
            return Ok(None);
        }
        let open = self.block(&format!("{what} AND CHAIN"))?;
        Ok(Some(open.modes.into()))
    }

    /// The next block begins, if there is to be one.
    pub(crate) fn chain(&mut self, next: Option<TxnModes>) -> SqlResult<()> {
        next.map_or(Ok(()), |modes| self.open_txn(&modes, None, true))
    }

    /// SET SESSION CHARACTERISTICS AS TRANSACTION.
    pub(crate) fn set_session_modes(&mut self, modes: &TxnModes) -> SqlResult<()> {
        if let Some(i) = modes.isolation {
            self.state.set("default_transaction_isolation", level_name(i), false)?;
        }
        if let Some(r) = modes.read_only {
            let value = if r { "on" } else { "off" };
            self.state.set("default_transaction_read_only", value, false)?;
        }
        if let Some(deferrable) = modes.deferrable {
            let value = if deferrable { "on" } else { "off" };
            self.state.set("default_transaction_deferrable", value, false)?;
        }
        Ok(())
    }
}
