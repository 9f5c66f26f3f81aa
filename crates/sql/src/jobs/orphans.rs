//! Schema changes in steps whose node has gone, or was silent for long: another node takes them
//! back.
//!
//! ```text
//!   a change            holds the change locks of its tables from its first step to its last
//!   its node is gone    the locks go; the tables still say what is being built
//!   another node        gets such a lock: nobody works on that any more. It is taken back
//! ```
//! A node that was only silent finds its change gone with the next step that it publishes.
//!
//! Entries and notes are erased once the transactions of this node are younger; those of others may
//! add some later. Nobody ever reads them: the number of an index is not used again.

use braid_catalog::{change_lock_key, kv_error};
use braid_kv::{Isolation, KvError, LockMode, TxnOptions, Wait};
use braid_types::SqlResult;

use super::record::{Record, State};
use super::undo::Undo;
use crate::database::Database;

impl Database {
    /// Takes back what nodes that are gone have left half done. Called from time to time by a
    /// background task; does nothing where there are no other nodes.
    pub fn take_back_orphans(&self) -> SqlResult<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let catalog = self.current_catalog()?;
        let building = |t: &braid_catalog::Table| Some((t.id, t.building.as_ref()?.job));
        for (table, job) in catalog.tables().filter_map(|t| building(t)) {
            if self.jobs().record(job).is_none() {
                self.take_back_if_orphan(table, job)?;
            }
        }
        Ok(())
    }

    fn take_back_if_orphan(&self, table: u32, job: u32) -> SqlResult<()> {
        let isolation = Isolation::ReadCommitted;
        let options = TxnOptions { isolation, ..TxnOptions::default() };
        let txn = self.coordinator().begin(options).map_err(kv_error)?;
        match txn.lock(&change_lock_key(table), LockMode::Exclusive, Wait::NoWait) {
            Ok(_) => {}
            // Somebody works on it.
            Err(KvError::LockNotAvailable) => return Ok(()),
            Err(e) => return Err(kv_error(e)),
        }
        let now = self.current_catalog()?;
        let building = now.table(table).and_then(|t| t.building.as_ref());
        if building.is_some_and(|building| building.job == job) {
            tracing::info!(job, "takes back a schema change whose node has gone");
            self.take_back_orphan(job)?;
        }
        txn.rollback();
        Ok(())
    }

    /// Takes a change back that nobody works on: the caller holds a lock that whoever did would
    /// hold.
    pub(crate) fn take_back_orphan(&self, job: u32) -> SqlResult<()> {
        let txn = self.coordinator().begin(TxnOptions::default()).map_err(kv_error)?;
        let stored = Record::all(&txn)?.into_iter().find(|record| record.id == job);
        txn.rollback();
        let record = stored.unwrap_or_else(|| Record::new(job, "schema change", ""));
        let error = record.error.clone().or_else(|| Some("its node stopped".into()));
        self.undo(Undo::new(Record { error, ..record }, State::Failed))
    }
}
