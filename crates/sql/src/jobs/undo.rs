//! Taking back what an unfinished schema change has published and written.
//!
//! ```text
//!   remove what it was building from the catalog      from here on nobody new writes for it
//!   all transactions that began before have ended     (looked at from time to time)
//!   erase entries and notes; the record says how it ended
//! ```
//! When the store is opened there are no transactions, and all of it is one commit.
//!
//! In a cluster the transactions of other nodes are not asked: while they write there, erasing is
//! put off. Another one may take the same change back: whatever is done twice does no harm.

use std::sync::Arc;
use std::time::Duration;

use braid_catalog::{After, Catalog, NOTES_GENERATION, kv_error, load_catalog, write_changes};
use braid_keys::path::{generation, generations_upto};
use braid_kv::{Coordinator, Isolation, KeySpan, KvError, Txn, TxnId, TxnOptions};
use braid_types::SqlResult;

use super::reclaim;
use super::record::{Record, State};
use crate::database::Database;

/// A change that holds the catalog longer is waited for by trying again later.
const PATIENCE: Duration = Duration::from_secs(1);

/// A job that is being taken back.
pub(crate) struct Undo {
    record: Record,
    /// How it ends.
    ends: State,
    /// The transaction that took it out of the catalog, once that has happened.
    unpublished: Option<TxnId>,
}

impl Undo {
    pub(crate) fn new(record: Record, ends: State) -> Undo {
        Undo { record: Record { state: State::Undoing, ..record }, ends, unpublished: None }
    }

    /// Goes on with it; `false` if something is in the way for now.
    pub(crate) fn go_on(&mut self, db: &Database) -> SqlResult<bool> {
        if self.unpublished.is_none() && !self.unpublish(db)? {
            return Ok(false);
        }
        let began = self.unpublished.expect("just made sure");
        if !db.coordinator().all_younger_than(began) {
            return Ok(false);
        }
        let txn = db.coordinator().begin(patient()).map_err(kv_error)?;
        let ended = Record { state: self.ends, copies: Vec::new(), ..self.record.clone() };
        let done = erase(&txn, &self.record, db.coordinator().wall_clock_us())
            .and_then(|()| ended.put(&txn))
            .and_then(|()| Record::forget_old(&txn));
        match done {
            // Transactions of other nodes, which nobody here knows of, write there still; or one
            // of them takes it back as well.
            Err(e) if After::error(&e) != After::Never => return Ok(false),
            done => done?,
        }
        match txn.commit() {
            Ok(_) => Ok(true),
            Err(KvError::Retry { .. }) => Ok(false),
            Err(e) => Err(kv_error(e)),
        }
    }

    fn unpublish(&mut self, db: &Database) -> SqlResult<bool> {
        loop {
            let (txn, catalog) = db.begin(patient())?;
            let changed = remove(&txn, &catalog, self.record.id, db.coordinator().wall_clock_us());
            let result = changed.and_then(|_| self.record.put(&txn));
            match result.and_then(|()| db.commit_schema_change(&txn).map_err(kv_error)) {
                Ok(()) => {
                    self.unpublished = Some(txn.id());
                    return Ok(true);
                }
                Err(e) => match After::error(&e) {
                    After::Again | After::AgainUnlocked => {}
                    After::Later => return Ok(false),
                    After::Never => return Err(e),
                },
            }
        }
    }
}

fn patient() -> TxnOptions {
    let isolation = Isolation::RepeatableRead;
    // What it takes back may have been stopped.
    let cancel = Some(Arc::default());
    TxnOptions { isolation, lock_timeout: Some(PATIENCE), cancel, ..TxnOptions::default() }
}

/// Takes what a job was building out of the catalog.
fn remove(txn: &Arc<Txn>, catalog: &Catalog, job: u32, now_us: u64) -> SqlResult<Catalog> {
    let mut new = catalog.clone();
    for t in catalog.tables() {
        if t.building.as_ref().is_some_and(|b| b.job == job) {
            let index = t.building_index().map(|(index, _)| index);
            if let Some(index) = index
                && let Some(lies_in) = index.interleave_in.and_then(|id| catalog.table(id))
            {
                let generation = (index.id, index.generation);
                reclaim::discard(txn, catalog, lies_in, generation, now_us)?;
            }
            let mut t = (**t).clone();
            t.building = None;
            t.forget_expressions();
            new.put_table(t);
        }
    }
    write_changes(txn, catalog, &mut new)?;
    Ok(new)
}

fn erase(txn: &Txn, record: &Record, now_us: u64) -> SqlResult<()> {
    let span = |(start, end)| txn.delete_span(&KeySpan::new(start, end)).map(|_| ());
    if let Some(index) = record.index {
        span(generations_upto(index, NOTES_GENERATION)).map_err(kv_error)?;
    }
    for copied in &record.copies {
        let own = (copied.id, copied.generation);
        match copied.root {
            Some(root) => reclaim::discard_below(txn, root, own, now_us)?,
            None => span(generation(copied.id, copied.generation)).map_err(kv_error)?,
        }
    }
    Ok(())
}

/// Takes back all that an earlier process has left unfinished. Called before the first session.
pub(crate) fn all(coordinator: &Arc<Coordinator>) -> SqlResult<()> {
    let options = TxnOptions { isolation: Isolation::RepeatableRead, ..TxnOptions::default() };
    let txn = coordinator.begin(options).map_err(kv_error)?;
    let records = Record::all(&txn)?;
    let mut catalog = load_catalog(&txn)?;
    let now_us = coordinator.wall_clock_us();
    for record in records.into_iter().filter(|record| !record.state.is_final()) {
        // What can begin again is not in the catalog.
        let again = record.run_as.is_some() && record.state != State::Undoing;
        if again && record.copies.is_empty() {
            continue;
        }
        erase(&txn, &record, now_us)?;
        let record = Record { copies: Vec::new(), ..record };
        if again {
            record.put(&txn)?;
            continue;
        }
        catalog = remove(&txn, &catalog, record.id, now_us)?;
        let error = record.error.clone().or_else(|| Some("the node stopped".into()));
        Record { state: State::Failed, error, ..record }.put(&txn)?;
    }
    txn.commit().map(|_| ()).map_err(kv_error)
}
