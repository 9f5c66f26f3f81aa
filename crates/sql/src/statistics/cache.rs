//! Statistics as planners find them: in memory, read from the store when they are asked for first,
//! replaced when an ANALYZE ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_catalog::{Table, kv_error};
use braid_keys::system;
use braid_kv::{Isolation, KvError, ReadMode, TxnOptions};
use braid_planner::record::Record;
use braid_planner::{Known, TableStatistics};
use braid_rows::TableLayout;
use braid_types::{SqlResult, SqlType};
use foldhash::HashMap;
use parking_lot::Mutex;

use super::auto::Waiting;
use super::changes::{Changes, Mark, TableActivity};
use crate::database::{Database, EPOCH_MICROS};

/// Stored bytes that a row takes beside its values: key, timestamp, lengths.
const ROW_OVERHEAD: f64 = 16.0;
/// Bytes of values are stored in about this part of them.
const COMPRESSION: f64 = 0.5;
/// By how much the number of rows or of distinct values must differ for plans to be made again.
const MARKED: f64 = 1.1;

/// What a node knows of its tables.
#[derive(Default)]
pub(crate) struct Statistics {
    tables: Mutex<HashMap<u32, Cached>>,
    version: AtomicU64,
    pub(crate) changes: Changes,
    pub(super) waiting: Waiting,
    /// By table: of how many of its rows the last large scan found columns beside their blocks.
    kept: Mutex<HashMap<u32, f64>>,
}

/// What is stored about a table, and the same by the columns of its last descriptor.
#[derive(Clone, Default)]
struct Cached {
    record: Option<Arc<Record>>,
    shaped: Option<(Arc<Table>, Arc<TableStatistics>)>,
}

impl Database {
    /// What ANALYZE has found out about the rows that a table has now; `None` if it never ran, or
    /// before they came.
    pub fn statistics(&self, table: &Arc<Table>) -> Option<Arc<TableStatistics>> {
        let state = self.statistics_state();
        let looked = |known: &Cached| (known.shaped.clone(), known.record.is_some());
        match state.tables.lock().get(&table.id).map(looked) {
            Some((Some((of, shaped)), _)) if Arc::ptr_eq(&of, table) => return Some(shaped),
            Some((_, false)) => return None,
            _ => {}
        }
        let record = self.record(table)?;
        let shaped = Arc::new(record.shaped(table));
        if let Some(known) = state.tables.lock().get_mut(&table.id)
            && known.record.as_ref().is_some_and(|now| Arc::ptr_eq(now, &record))
        {
            known.shaped = Some((table.clone(), shaped.clone()));
        }
        Some(shaped)
    }

    /// Changes when statistics did so markedly that plans should be made again.
    pub fn statistics_version(&self) -> u64 {
        self.statistics_state().version.load(Ordering::Acquire)
    }

    /// How many rows a table has, as far as that can be known without looking: as ANALYZE has
    /// counted, and what was written since; without it by stored bytes.
    pub fn estimated_rows(&self, layout: &TableLayout) -> f64 {
        let table = &layout.table;
        let written = self.statistics_state().changes.of(table);
        if let Some(record) = self.record(table) {
            return (record.rows + written.grown_since_analyze()).max(0.0);
        }
        let span = layout.rows.whole_span();
        // Nobody plans worse without an answer than with an error.
        let bytes = self.coordinator().stored_bytes(&span).unwrap_or(0) as f64;
        (bytes / stored_width(table)).max(written.grown()).floor()
    }

    /// How many bytes the rows of a table have in files, as far as that can be known without
    /// looking.
    pub(crate) fn estimated_bytes(&self, layout: &TableLayout) -> f64 {
        self.estimated_rows(layout) * stored_width(&layout.table)
    }

    /// What was written to a table, and when it was analyzed.
    pub fn table_activity(&self, table: &Table) -> TableActivity {
        let mut out = self.statistics_state().changes.of(table).activity();
        if let Some(record) = self.record(table) {
            // Also if that was in the life of another process.
            let last =
                if record.automatic { &mut out.last_auto_analyze } else { &mut out.last_analyze };
            last.get_or_insert(record.at_us as i64 - EPOCH_MICROS);
        }
        out
    }

    /// What is stored about the rows that a table has now.
    pub(super) fn record(&self, table: &Table) -> Option<Arc<Record>> {
        let state = self.statistics_state();
        let known = state.tables.lock().get(&table.id).map(|known| known.record.clone());
        let record = match known {
            Some(record) => record,
            None => {
                // What cannot be read is as good as nothing: ANALYZE writes it anew.
                let record = self.load_record(table.id).ok().flatten().map(Arc::new);
                // Whoever has analyzed meanwhile knows better.
                let mut tables = state.tables.lock();
                let entry = tables.entry(table.id);
                entry.or_insert_with(|| Cached { record, shaped: None }).record.clone()
            }
        };
        record.filter(|record| record.is_of(table))
    }

    fn load_record(&self, table: u32) -> SqlResult<Option<Record>> {
        let options = TxnOptions { read_only: true, ..TxnOptions::default() };
        let txn = self.coordinator().begin(options).map_err(kv_error)?;
        let stored = txn.get_as(&system::statistics(table), ReadMode::Unrecorded);
        Ok(stored.map_err(kv_error)?.and_then(|bytes| Record::decode(&bytes)))
    }

    /// Stores what was found out about a table, in a transaction of its own: it is true whatever
    /// becomes of the one that looked. `mark` is where counting stood when it began to.
    pub(super) fn store_record(
        &self,
        table: &Arc<Table>,
        record: Record,
        mark: Mark,
    ) -> SqlResult<()> {
        let key = system::statistics(record.table);
        loop {
            let isolation = Isolation::RepeatableRead;
            let options = TxnOptions { isolation, ..TxnOptions::default() };
            let txn = self.coordinator().begin(options).map_err(kv_error)?;
            let put = txn.put(key.clone(), record.encode());
            match put.and_then(|()| txn.commit()) {
                Ok(_) => break,
                Err(KvError::Retry { .. }) => {}
                Err(e) => return Err(kv_error(e)),
            }
        }
        let before = self.statistics(table);
        let after = Arc::new(record.shaped(table));
        let shaped = Some((table.clone(), after.clone()));
        let state = self.statistics_state();
        let mut tables = state.tables.lock();
        // Who analyzes at the same time replaces both.
        state.changes.of(table).analyzed(mark, record.automatic, record.at_us);
        tables.insert(table.id, Cached { record: Some(Arc::new(record)), shaped });
        drop(tables);
        if before.is_none_or(|before| differ(&before, &after)) {
            state.version.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }
}

impl Known for Database {
    fn rows(&self, layout: &TableLayout) -> f64 {
        self.estimated_rows(layout)
    }

    fn bytes(&self, layout: &TableLayout) -> f64 {
        self.estimated_bytes(layout)
    }

    fn statistics(&self, table: &Arc<Table>) -> Option<Arc<TableStatistics>> {
        Database::statistics(self, table)
    }

    fn beside(&self, table: &Table) -> f64 {
        self.statistics_state().kept.lock().get(&table.id).copied().unwrap_or(0.0)
    }

    fn note_beside(&self, table: &Table, part: f64) {
        self.statistics_state().kept.lock().insert(table.id, part);
    }
}

/// Whether a plan might be another by these statistics.
fn differ(before: &TableStatistics, after: &TableStatistics) -> bool {
    let markedly = |a: f64, b: f64| (a.max(b) + 1.0) / (a.min(b) + 1.0) > MARKED;
    let columns = before.columns.iter().zip(&after.columns);
    let column = columns.map(|(a, b)| match (a, b) {
        (Some(a), Some(b)) => markedly(a.distinct, b.distinct),
        (None, None) => false,
        _ => true,
    });
    markedly(before.rows, after.rows)
        || before.columns.len() != after.columns.len()
        || column.into_iter().any(|differs| differs)
}

/// Bytes that a row takes, of which nothing is known but the types of its columns.
pub(super) fn stored_width(table: &Table) -> f64 {
    let columns = table.columns.iter().map(|c| assumed_width(&c.ty));
    ROW_OVERHEAD + columns.sum::<f64>() * COMPRESSION
}

fn assumed_width(ty: &SqlType) -> f64 {
    match ty {
        SqlType::Bool | SqlType::CharByte => 1.0,
        SqlType::Int2 => 2.0,
        SqlType::Int4 | SqlType::Float4 | SqlType::Date | SqlType::Oid => 4.0,
        SqlType::Uuid | SqlType::Interval => 16.0,
        SqlType::Int8 | SqlType::Float8 | SqlType::Time => 8.0,
        SqlType::Timestamp | SqlType::TimestampTz | SqlType::Numeric(_) => 8.0,
        _ => 32.0,
    }
}
