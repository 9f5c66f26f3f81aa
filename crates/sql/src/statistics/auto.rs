//! ANALYZE that nobody has asked for: of tables that have changed much, one at a time.
//!
//! ```text
//!   rows written since the last ANALYZE  >  50 + a tenth of the rows      PostgreSQL's rule
//!   and there was none, or nobody writes at the moment, or it was         a table that is loaded
//!   a minute ago                                                          changes all the time
//!   and no other node's was less than a minute ago                        each counts its own
//!   and it took at most a tenth of the time since then (of a table        it may read thousands of
//!   that is written a fiftieth), and none failed in the last minute       ranges
//!   and no other node is about it: the table's claim is free              all begin at once
//! ```
//! Counts begin anew with a process. So the first time, tables are looked for that hold much, or
//! much more than then, and about which nothing is known.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use braid_catalog::{Catalog, Table, kv_error};
use braid_keys::system;
use braid_kv::{Isolation, LockMode, Locked, Txn, TxnOptions, Wait};
use braid_types::{SqlError, SqlResult, SqlState};
use parking_lot::Mutex;

use super::analyze::{DEFAULT_TARGET, Work, analyze_table};
use crate::database::Database;
use braid_rows::TableLayout;

/// Rows that may be written without a word, and the part of the table that may.
const FEW: f64 = 50.0;
const PART: f64 = 0.1;
/// A table that is written all the time is analyzed this often.
const BUSY_MICROS: u64 = 60_000_000;
/// The last one took at most such a part of the time since then: of a table at rest, and of one
/// that is written.
const PART_AT_REST: u64 = 10;
const PART_WHILE_BUSY: u64 = 50;
/// What a sample may hold.
const MEMORY: usize = 64 << 20;
/// Pause after a thousand rows: half of the time others have the processor and the disk.
const PAUSE: Duration = Duration::from_millis(2);
const PAUSE_ROWS: u64 = 1024;
/// Stored bytes that are worth a look after the start, if nothing is known; and by how much a table
/// must have grown, if something is.
const MUCH_BYTES: u64 = 64 << 10;
const MORE_BYTES: u64 = 8 << 20;

/// Tables that have something to be found out about, after the start of the process; and when that
/// was looked for.
#[derive(Default)]
pub(super) struct Waiting(Mutex<Option<(u64, VecDeque<u32>)>>);

impl Database {
    /// Analyzes the table that has changed most since its last ANALYZE, if one has changed enough;
    /// whether there was one; none while `autovacuum` is off. `ending` is asked before each
    /// row whether to give up. Called from time to time by a background task.
    pub fn analyze_changed(&self, ending: &dyn Fn() -> bool) -> SqlResult<bool> {
        if !self.cluster_settings().analyzes() {
            return Ok(false);
        }
        let (txn, catalog) = self.begin(TxnOptions { read_only: true, ..TxnOptions::default() })?;
        let Some(table) = self.next_to_analyze(&catalog)? else { return Ok(false) };
        let Some(_claim) = self.claim_to_analyze(table.id)? else {
            self.waits(table.id);
            return Ok(false);
        };
        let rows = Cell::new(0u64);
        let stop = || {
            if ending() {
                return Err(SqlError::new(SqlState::ADMIN_SHUTDOWN, "the node is stopping"));
            }
            rows.set(rows.get() + 1);
            if rows.get().is_multiple_of(PAUSE_ROWS) {
                std::thread::sleep(PAUSE);
            }
            Ok(())
        };
        let work = Work {
            db: self,
            txn: &txn,
            catalog: &catalog,
            memory: &self.coordinator().memory().account(MEMORY),
            stop: &stop,
            target: DEFAULT_TARGET,
            automatic: true,
            whole_bytes: None,
        };
        let begun = self.coordinator().wall_clock_us();
        let done = analyze_table(&work, &table, None);
        let now = self.coordinator().wall_clock_us();
        if matches!(&done, Err(e) if e.state() == SqlState::ADMIN_SHUTDOWN) {
            return Ok(false);
        }
        self.statistics_state().changes.of(&table).tried((begun, now), done.is_ok());
        done.map(|_| true)
    }

    fn next_to_analyze(&self, catalog: &Catalog) -> SqlResult<Option<Arc<Table>>> {
        let now = self.coordinator().wall_clock_us();
        let mut best: Option<(f64, Arc<Table>)> = None;
        for table in catalog.tables() {
            let written = self.statistics_state().changes.of(table);
            let modified = written.modified();
            let rests = written.is_as_seen(modified);
            let record = self.record(table);
            let most = FEW + PART * record.as_ref().map_or(0.0, |record| record.rows);
            let much = modified as f64 / most;
            let by_another = record.filter(|record| record.at_us > written.last_analyze());
            let is_due = match rests {
                true => written.may_take(PART_AT_REST, now),
                false => {
                    written.last_analyze() + BUSY_MICROS <= now
                        && written.may_take(PART_WHILE_BUSY, now)
                }
            };
            if much > 1.0
                && is_due
                && by_another.is_none_or(|record| record.at_us + BUSY_MICROS <= now)
                && written.last_failure() + BUSY_MICROS <= now
                && best.as_ref().is_none_or(|(least, _)| much > *least)
            {
                best = Some((much, table.clone()));
            }
        }
        match best {
            Some((_, table)) => Ok(Some(table)),
            None => self.next_waiting(catalog),
        }
    }

    /// As long as this lives nobody else in the cluster analyzes the table by itself; `None`:
    /// somebody does, and what comes of that is looked at next time.
    fn claim_to_analyze(&self, table: u32) -> SqlResult<Option<Arc<Txn>>> {
        let options = TxnOptions { isolation: Isolation::ReadCommitted, ..TxnOptions::default() };
        let txn = self.coordinator().begin(options).map_err(kv_error)?;
        let key = system::analyzing(table);
        let locked = txn.lock(&key, LockMode::Exclusive, Wait::SkipLocked).map_err(kv_error)?;
        Ok((locked == Locked::Yes).then_some(txn))
    }

    /// A table is looked at later, behind the others.
    fn waits(&self, table: u32) {
        if let Some((_, left)) = &mut *self.statistics_state().waiting.0.lock()
            && !left.contains(&table)
        {
            left.push_back(table);
        }
    }

    /// The next of those that were there when the process began, and that no other node has
    /// analyzed since.
    fn next_waiting(&self, catalog: &Catalog) -> SqlResult<Option<Arc<Table>>> {
        let mut waiting = self.statistics_state().waiting.0.lock();
        if waiting.is_none() {
            let now = self.coordinator().wall_clock_us();
            *waiting = Some((now, self.unknown(catalog)?));
        }
        let Some((made, left)) = waiting.as_mut() else { return Ok(None) };
        while let Some(id) = left.pop_front() {
            let Some(table) = catalog.table(id) else { continue };
            if self.record(table).is_none_or(|record| record.at_us < *made) {
                return Ok(Some(table.clone()));
            }
        }
        Ok(None)
    }

    fn unknown(&self, catalog: &Catalog) -> SqlResult<VecDeque<u32>> {
        let mut out = VecDeque::new();
        for table in catalog.tables() {
            let span = TableLayout::new(catalog, table)?.rows.whole_span();
            let bytes = self.coordinator().stored_bytes(&span).map_err(kv_error)?;
            let most = match self.record(table) {
                Some(record) => record.bytes.saturating_mul(2).saturating_add(MORE_BYTES),
                None => MUCH_BYTES,
            };
            if bytes > most {
                out.push_back(table.id);
            }
        }
        Ok(out)
    }
}
