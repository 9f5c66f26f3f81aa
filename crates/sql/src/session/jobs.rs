//! Jobs as a session sees them: schema changes that run in steps, SHOW JOBS, CANCEL JOB.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_catalog::{Catalog, Lost, SeenBy, kv_error, load_catalog, table_lock_key};
use braid_env::memory::Account;
use braid_keys::system;
use braid_kv::{Isolation, KeySpan, LockMode, SavedTxn, TxnOptions};
use braid_types::{Datum, SqlError, SqlResult, SqlState};
use serde::{Deserialize, Serialize};

use super::Context;
use super::client::{Session, SessionOptions};
use super::context::canceled;
use super::outcome::Outcome;
use super::transaction::OpenTxn;
use crate::bulk::erase_abandoned;
use crate::jobs::registry::Job;
use crate::jobs::{Record, RunAs, State};
use crate::over_nodes::calls::JobWish;
use crate::statistics::Delta;
use braid_parser::{ImportDump, Statement, TxnModes};
use braid_rows::Row;
use braid_rows::TableLayout;

/// What a block of a job is besides its transaction, to go on with in another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedBlock {
    /// Whether it has changed the catalog, and if so whether all see that.
    changed: Option<bool>,
    /// When it began, as `now()` says it.
    started_micros: i64,
    /// Settings that were given.
    settings: Vec<(String, String)>,
}

impl Session {
    /// Runs a schema change in steps, if it is one to run so.
    pub(super) fn run_in_steps(&mut self, statement: &Statement) -> SqlResult<Option<Outcome>> {
        self.go_in_steps(statement, None)
    }

    /// Runs a move of a table that the node has not ended before it stopped.
    pub(crate) fn move_again(&mut self, statement: Statement, record: &Record) -> SqlResult<()> {
        if self.go_in_steps(&statement, Some(record.id))?.is_some() {
            return Ok(());
        }
        // Without rows it is no job any more.
        let prepared = self.prepare(statement, &[])?;
        self.execute(&prepared, Vec::new())?;
        let ended = Record { state: State::Succeeded, fraction: 1.0, ..record.clone() };
        ended.store(self.db.coordinator())
    }

    /// `again`: as the job of this id.
    fn go_in_steps(
        &mut self,
        statement: &Statement,
        again: Option<u32>,
    ) -> SqlResult<Option<Outcome>> {
        if self.state.derived().modes.read_only {
            return Ok(None);
        }
        let options = self.txn_options(&TxnModes::default(), None)?;
        let options = TxnOptions { isolation: Isolation::RepeatableRead, ..options };
        let (txn, catalog) = self.db.begin(options)?;
        let ctx = self.context(txn, catalog, Arc::default());
        let tag = match crate::ddl::online::run(&ctx, statement)? {
            None => crate::ddl::moves::run_in_steps(&ctx, statement, again)?,
            done => done,
        };
        Ok(tag.map(Outcome::Done))
    }

    /// IMPORT PGDUMP, in a session of its own that is like this one.
    pub(crate) fn import_dump(&mut self, d: &ImportDump, statement: &str) -> SqlResult<Outcome> {
        if self.open.is_some() {
            let state = SqlState::ACTIVE_SQL_TRANSACTION;
            return Err(SqlError::new(state, "IMPORT cannot run inside a transaction block"));
        }
        // What the client speaks says nothing of the file, which names its own encoding.
        let mut settings = self.changed_settings();
        settings.retain(|(name, _)| name != "client_encoding");
        let options = SessionOptions {
            user: self.state.user.clone(),
            database: self.state.database.clone(),
            settings,
            cancel: self.cancel.clone(),
            ..SessionOptions::default()
        };
        let (user, database) = (options.user.clone(), options.database.clone());
        let run_as = RunAs { user, database, settings: options.settings.clone() };
        let own = Session::new(self.db.clone(), options)?;
        crate::import::import_dump(own, (&self.db, run_as), d, statement)
    }

    /// Writes a job's record along with the open block, whatever others have written there
    /// meanwhile.
    pub(crate) fn write_with_block(&self, record: &Record) -> SqlResult<()> {
        let open = self.open.as_ref().ok_or_else(|| SqlError::internal("no block is open"))?;
        open.txn.put_over(record.key(), record.encode()).map_err(kv_error)
    }

    /// What the open block is so far, for [`Session::restore_block`] of a session in another
    /// process. `None` if it has anything that cannot be carried over. It sees from now on what
    /// others have written until now.
    ///
    /// # Errors
    /// 40001 if something that it has read has changed: it could not commit.
    pub(crate) fn save_block(&mut self) -> SqlResult<Option<(SavedBlock, SavedTxn)>> {
        let waits = self.state.made_temporary() || self.state.asked_count() > 0;
        let alone = self.cursors.is_empty() && !waits;
        let plain = |open: &&mut OpenTxn| {
            let ended = open.is_failed() || !open.explicit;
            alone && !ended && open.savepoints.is_empty() && open.deferred.is_empty()
        };
        let committed = self.db.current_catalog()?;
        let Some(open) = self.open.as_mut().filter(plain) else { return Ok(None) };
        let (private, fixed) = surroundings(open, &committed)?;
        let Some(txn) = open.txn.save(&private, fixed).map_err(kv_error)? else { return Ok(None) };
        open.begin_statement(&self.db, true, self.db.schema_epoch())?;
        let changed = open.changed.map(|seen_by| seen_by == SeenBy::All);
        let (catalog, started_micros) = (open.catalog.clone(), open.started_micros);
        self.state.set_catalog(&catalog);
        let settings = self.state.settings().given();
        Ok(Some((SavedBlock { changed, started_micros, settings }, txn)))
    }

    /// Makes a block that has just begun the one that was saved. `loaded`: the tables that were
    /// filled, and how many rows came.
    ///
    /// # Errors
    /// 40001 if it cannot be: something else has changed meanwhile.
    pub(crate) fn restore_block(
        &mut self,
        block: &SavedBlock,
        txn: &SavedTxn,
        loaded: &[(u32, u64)],
    ) -> SqlResult<()> {
        let none = || SqlError::internal("no block is open");
        // What says that others have changed the catalog stays for ever; that others have deleted a
        // row may be gone without a trace.
        let (start, end) = system::all();
        let outside = txn.depends_outside(&KeySpan::new(start, end));
        let look_back = || self.db.coordinator().look_back(txn.read_ts());
        let behind = outside.then(look_back).transpose().map_err(kv_error)?;
        if matches!(behind, Some(None)) {
            let message = "nobody can look back so far as to see what others have changed";
            return Err(Lost::Changed.error(message));
        }
        let epoch = self.db.schema_epoch();
        let open = self.open.as_mut().ok_or_else(none)?;
        open.txn.restore(txn).map_err(kv_error)?;
        open.catalog = match block.changed {
            Some(_) => Arc::new(load_catalog(&open.txn)?),
            None => self.db.catalog_at(&open.txn)?,
        };
        open.changed = block.changed.map(|all| if all { SeenBy::All } else { SeenBy::Owner });
        // Its view stays where it is.
        (open.statements, open.epoch) = (1, epoch);
        open.started_micros = block.started_micros;
        let catalog = open.catalog.clone();
        self.state.set_catalog(&catalog);
        let settings = self.state.settings();
        let other = |(name, value): &&(String, String)| settings.get(name).as_ref() != Some(value);
        for (name, value) in block.settings.iter().filter(other) {
            self.state.set(name, value, false)?;
        }
        for (id, rows) in loaded {
            if let Some(table) = catalog.table(*id) {
                self.db.statistics_state().changes.add(table, Delta::inserted(*rows));
            }
        }
        Ok(())
    }

    /// The flag that stops what runs.
    pub(crate) fn cancel_flag(&self) -> Arc<AtomicBool> {
        self.cancel.clone()
    }

    /// Statements hold what they hold as part of this account, and a load of them so many bytes.
    pub(crate) fn pay_from(&self, account: &Arc<Account>, load: usize) {
        self.state.pay_from(account, load);
    }

    /// A place where a job of this session may pause, or ends.
    pub(crate) fn pass(&self, job: &Job) -> SqlResult<()> {
        job.pass(&|| match self.cancel.load(Ordering::Relaxed) {
            true => Err(canceled()),
            false => Ok(()),
        })
    }

    /// PAUSE, RESUME and CANCEL JOB, on the node whose job it is.
    pub(crate) fn change_job(&self, id: u32, wish: JobWish) -> SqlResult<()> {
        if self.db.is_shared() && self.db.jobs().record(id).is_none() {
            let stored = Record::change(self.db.coordinator(), id, |_| None)?;
            let node = stored.filter(|r| !r.state.is_final()).map_or(0, |record| record.node);
            if node != 0 && node != self.db.own_node() && !self.is_gone(node) {
                return self.db.wish_of_job(node, id, wish);
            }
        }
        match wish {
            JobWish::Pause => self.pause_job(id, true),
            JobWish::Resume => self.pause_job(id, false),
            JobWish::Cancel => self.cancel_job(id),
        }
    }

    fn is_gone(&self, node: u64) -> bool {
        let nodes = self.db.coordinator().describe_nodes();
        nodes.iter().any(|one| one.id == node && one.state == "gone")
    }

    fn cancel_job(&self, id: u32) -> SqlResult<()> {
        if self.db.jobs().cancel(id) {
            return Ok(());
        }
        // One that pauses since before the node started, or has no room on the disk.
        if self.change_paused(id, State::Canceled)?.is_none() {
            return Err(self.not_running(id)?);
        }
        crate::import::forget_files(&self.db, id);
        if let Err(error) = erase_abandoned(self.db.coordinator()) {
            tracing::warn!(%error, job = id, "cannot erase yet what a job has left");
        }
        Ok(())
    }

    fn pause_job(&self, id: u32, paused: bool) -> SqlResult<()> {
        let state = if paused { State::Paused } else { State::Running };
        match self.db.jobs().set_paused(id, paused) {
            Some(true) => {
                let change = |stored: Option<&Record>| {
                    let stored = stored.filter(|record| !record.state.is_final())?;
                    Some(Record { state, ..stored.clone() })
                };
                Record::change(self.db.coordinator(), id, change).map(|_| ())
            }
            Some(false) => Err(SqlError::unsupported("PAUSE JOB of a schema change")
                .with_hint("CANCEL JOB takes it back.")),
            None => match paused {
                true => Err(self.not_running(id)?),
                false => match self.change_paused(id, State::Running)? {
                    Some(record) => crate::import::go_on(&self.db, record),
                    None => Err(self.not_running(id)?),
                },
            },
        }
    }

    /// Another state for a job that pauses and does not run; `None` if it is not one.
    fn change_paused(&self, id: u32, state: State) -> SqlResult<Option<Record>> {
        // Without room on the disk it could not be written down that a job pauses.
        let pauses = |record: &&Record| {
            let waits = record.state == State::Running && record.run_as.is_some();
            record.state == State::Paused || waits
        };
        let change = |stored: Option<&Record>| {
            stored.filter(pauses).map(|stored| Record { state, ..stored.clone() })
        };
        let before = Record::change(self.db.coordinator(), id, change)?;
        Ok(before.filter(|record| pauses(&record)).map(|record| Record { state, ..record }))
    }

    fn not_running(&self, id: u32) -> SqlResult<SqlError> {
        let txn = self.db.coordinator().begin(TxnOptions::default()).map_err(kv_error)?;
        let known = Record::all(&txn)?.into_iter().find(|record| record.id == id);
        Ok(match known {
            Some(record) => SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("job {id} is not running"),
            )
            .with_detail(format!("Its state is {}.", record.state.name())),
            None => SqlError::new(SqlState::UNDEFINED_OBJECT, format!("job {id} does not exist")),
        })
    }
}

/// Spans that nobody but the block can know, and those that it relies on without having read them
/// as of its view: tables into which it lets nobody write, and that the catalog is the same.
fn surroundings(open: &OpenTxn, committed: &Catalog) -> SqlResult<(Vec<KeySpan>, Vec<KeySpan>)> {
    let mut private = Vec::new();
    let mut fixed = vec![KeySpan::point(&system::shared_changes())];
    for table in open.catalog.tables() {
        let lock = table_lock_key(table.id, table.step);
        let is_new = committed.table(table.id).is_none_or(|t| t.generation < table.generation);
        if is_new {
            let layout = TableLayout::new(&open.catalog, table)?;
            if table.interleave.is_none() {
                private.push(layout.rows.whole_span());
            }
            let apart = layout.indexes.iter().filter(|i| i.index.interleave_in.is_none());
            private.extend(apart.map(|i| i.layout.whole_span()));
        } else if open.txn.holds(&lock, LockMode::Exclusive) {
            fixed.push(TableLayout::new(&open.catalog, table)?.rows.whole_span());
        }
    }
    Ok((private, fixed))
}

/// SHOW JOBS.
pub(super) fn rows(ctx: &Context) -> SqlResult<Vec<Row>> {
    let mut records = Record::all(&ctx.txn)?;
    for record in &mut records {
        // What runs knows better than what it has stored last.
        if !record.state.is_final()
            && let Some(now) = ctx.db.jobs().record(record.id)
        {
            *record = now;
        }
    }
    let text = |text: &str| Datum::text(text);
    Ok(records
        .into_iter()
        .map(|r| {
            vec![
                text(&r.id.to_string()),
                text(&r.kind),
                text(&r.statement),
                text(r.state.name()),
                text(&r.step),
                text(&format!("{:.2}", r.fraction)),
                r.error.as_deref().map_or(Datum::Null, text),
            ]
        })
        .collect())
}
