//! Very many rows at once, into a table that others may be using: COPY, INSERT .. SELECT.
//!
//! ```text
//!   writers locked out of the table, and of the tables it refers to
//!   row ─ defaults, checks ─ parent and references there? ─► bulk load: row, index entries
//!   sorted ─ equal neighbours? already stored? ─► ssts ─► in at once, or with the commit
//! ```
//! Row by row, a transaction holds a lock and a copy of each row until it ends. This way it holds a
//! lock on each table, and memory does not grow with the rows; readers are not disturbed, other
//! writers wait. Constraints are those of the row by row path, with the same errors; what belongs
//! to a key is reported once all rows are there, without its line.

use std::sync::Arc;

use braid_catalog::kv_error;
use braid_kv::{BulkLoad, KeySpan, Loaded, ReadMode, ScanOptions};
use braid_types::{Datum, SqlError, SqlResult};
use bytes::Bytes;

use super::ahead;
use super::keys::duplicate_key;
use super::references::{find_by_key, missing_parent, missing_reference, reference_values};
use super::writer::TableInfo;
use crate::general_query::Row;
use crate::session::Context;
use crate::statistics::Delta;
use crate::storage::TableLayout;
use crate::storage::bulk::{LOAD_MEMORY, LoadError, ingest_private};
use crate::storage::layout::IndexLayout;
use crate::storage::scan::live_row;

/// Rows are written one by one unless there are so many,
pub(crate) const FEW_ROWS: usize = 10_000;
/// or so many bytes of them.
pub(crate) const FEW_BYTES: usize = 2 << 20;

/// A load of one table.
pub(crate) struct TableLoad {
    ctx: Context,
    info: Arc<TableInfo>,
    load: BulkLoad,
    private: bool,
    /// By target: whether something is stored there already.
    occupied: Vec<bool>,
    /// By foreign key, the parent last: the values that were found last. Children come in groups.
    found: Vec<Option<Vec<Datum>>>,
    rows: u64,
}

impl TableLoad {
    /// Whether a load can take the rows: outside of a block, or in one that made the table.
    pub(crate) fn is_possible(ctx: &Context, info: &TableInfo) -> SqlResult<bool> {
        let table = info.table();
        // Whether rows of the load refer to each other could be told only when all are there.
        let own = info.references.iter().any(|(fk, _)| fk.parent == table.id);
        Ok(!own && (ctx.failure.is_none() || ctx.is_private(table)?))
    }

    /// Begins. Waits for those who write to the table or to tables that it refers to, and keeps
    /// them out until the end of the transaction.
    pub(crate) fn start(ctx: &Context, info: &Arc<TableInfo>) -> SqlResult<TableLoad> {
        ctx.lock_writers_out(info.table())?;
        for (_, parent) in &info.references {
            ctx.lock_writers_out(&parent.table)?;
        }
        if let Some(parent) = &info.parent {
            ctx.lock_writers_out(&parent.table)?;
        }
        let layout = &info.layout;
        let mut occupied =
            vec![holds_rows(ctx, layout.rows.whole_span(), layout.rows.class_mask())?];
        for i in layout.kept_indexes() {
            occupied.push(
                i.index.unique && holds_rows(ctx, i.layout.whole_span(), i.layout.class_mask())?,
            );
        }
        let targets = occupied.len() + usize::from(layout.notes().is_some());
        occupied.resize(targets, false);
        let load = ctx.txn.bulk_load(targets, LOAD_MEMORY, &ctx.memory).map_err(kv_error)?;
        let found = vec![None; info.references.len() + 1];
        // In a block it is, or no load is possible; outside, a table that the statement makes.
        let private =
            ctx.failure.is_some() || ctx.db.current_catalog()?.table(info.table().id).is_none();
        let (ctx, info) = (ctx.clone(), info.clone());
        Ok(TableLoad { ctx, info, load, private, occupied, found, rows: 0 })
    }

    /// Adds rows whose defaults are filled in, each with its place in the input.
    ///
    /// # Errors
    /// What is wrong with the first bad row, and its place.
    pub(crate) fn add<T>(&mut self, mut rows: Vec<(T, Row)>) -> Result<(), (T, SqlError)> {
        let mut bad = None;
        for (n, (_, row)) in rows.iter_mut().enumerate() {
            if let Err(e) = self.info.filler.complete(&self.ctx, row) {
                bad = Some((n, e));
                break;
            }
        }
        let bad = bad.and_then(|(n, e)| {
            rows.truncate(n + 1);
            rows.pop().map(|(place, _)| (place, e))
        });
        let asked = match rows.len() {
            0 | 1 => Ok(()),
            _ => ahead::of_loads(&self.ctx, &self.info, rows.iter().map(|(_, row)| row)),
        };
        for (place, row) in rows {
            if let Err(e) = asked.clone().and_then(|()| self.put(&row)) {
                return Err((place, e));
            }
        }
        bad.map_or(Ok(()), Err)
    }

    fn put(&mut self, row: &Row) -> SqlResult<()> {
        self.check_references(row)?;
        let layout = self.info.layout.clone();
        let key = layout.row_key(row)?;
        self.rows += 1;
        self.load.put(0, &key, &layout.row_value(row)).map_err(kv_error)?;
        for (n, i) in layout.kept_indexes().chain(layout.notes()).enumerate() {
            let Some(key) = i.entry_key(row)? else { continue };
            self.load.put(n + 1, &key, &layout.entry_value(i, row)).map_err(kv_error)?;
        }
        Ok(())
    }

    fn check_references(&mut self, row: &Row) -> SqlResult<()> {
        let (ctx, info) = (&self.ctx, &self.info);
        let same = |last: &Option<Vec<Datum>>, values: &[Datum]| {
            let all =
                |last: &Vec<Datum>| last.iter().zip(values).all(|(a, b)| a.cmp_sql(b).is_eq());
            last.as_ref().is_some_and(all)
        };
        for (n, (fk, parent)) in info.references.iter().enumerate() {
            let Some(values) = reference_values(info.table(), fk, row)? else { continue };
            if same(&self.found[n], &values) {
                continue;
            }
            if find_by_key(ctx, parent, &fk.parent_columns, &values)?.is_none() {
                return Err(missing_reference(ctx, info.table(), fk, &parent.table, row));
            }
            self.found[n] = Some(values);
        }
        if let Some(parent) = &info.parent {
            let columns = &info.layout.rows.columns()[..parent.rows.columns().len()];
            let values: Vec<Datum> = columns.iter().map(|c| row[c.ordinal].clone()).collect();
            let last = self.found.last_mut().expect("one more than foreign keys");
            if !same(last, &values) {
                let key = info.layout.parent_key(parent, row)?;
                if ctx.txn.get_as(&key, ReadMode::Latest).map_err(kv_error)?.is_none() {
                    return Err(missing_parent(ctx, &info.layout, parent, row));
                }
                *last = Some(values);
            }
        }
        Ok(())
    }

    /// Puts the rows where the transaction's end makes them appear, all at once.
    pub(crate) fn finish(self) -> SqlResult<()> {
        let TableLoad { ctx, info, load, private, occupied, rows, .. } = self;
        let mut seen = 0u64;
        let mut judge = Judge { ctx: &ctx, info: &info, waiting: Vec::new() };
        let files = load.finish(|row: Loaded<'_>| -> Result<(), LoadError> {
            seen += 1;
            if seen.is_multiple_of(4096) {
                ctx.check_cancel()?;
            }
            if row.again || occupied[row.target] {
                judge.take(&row)?;
            }
            Ok(())
        })?;
        judge.decide()?;
        ctx.db.statistics_state().changes.add(info.table(), Delta::inserted(rows));
        if !private {
            return ctx.txn.attach(files).map_err(kv_error);
        }
        let table = info.table();
        let mut spans = Vec::new();
        if table.interleave.is_none() {
            spans.push(info.layout.rows.whole_span());
        }
        for i in info.layout.kept_indexes().filter(|i| i.index.interleave_in.is_none()) {
            spans.push(i.layout.whole_span());
        }
        ingest_private(&ctx.txn, ctx.db.new_ids(1)?, &spans, &files)
    }
}

fn holds_rows(ctx: &Context, span: KeySpan, classes: u32) -> SqlResult<bool> {
    let mode = ReadMode::Latest;
    let options = ScanOptions { limit: Some(1), classes, mode, ..ScanOptions::default() };
    let mut scan = ctx.txn.scan(span, options).map_err(kv_error)?;
    Ok(scan.next().map_err(kv_error)?.is_some())
}

/// Says whether the keys of a load are taken: 23505 for the first that is. Asks for many at once.
struct Judge<'a> {
    ctx: &'a Context,
    info: &'a TableInfo,
    /// In the order in which they came.
    waiting: Vec<Candidate>,
}

/// A row of a load whose key may be taken.
struct Candidate {
    target: usize,
    key: Bytes,
    value: Bytes,
    /// The row before had the same key.
    again: bool,
}

impl Judge<'_> {
    fn take(&mut self, row: &Loaded<'_>) -> SqlResult<()> {
        let (key, value) = (Bytes::copy_from_slice(row.key), Bytes::copy_from_slice(row.value));
        self.waiting.push(Candidate { target: row.target, key, value, again: row.again });
        // A row that came twice must not be written.
        if row.again || self.waiting.len() >= self.ctx.txn.batch_max() {
            self.decide()?;
        }
        Ok(())
    }

    /// About those that came so far.
    fn decide(&mut self) -> SqlResult<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let txn = &self.ctx.txn;
        let keys = waiting.iter().filter(|row| !row.again).map(|row| row.key.clone());
        txn.get_ahead(keys, ReadMode::Latest).map_err(kv_error)?;
        let mut behind = Vec::new();
        for row in waiting.iter().filter(|row| !row.again && row.target > 0) {
            if let Some(value) = txn.get_as(&row.key, ReadMode::Latest).map_err(kv_error)? {
                let index = index_of(&self.info.layout, row.target)?;
                let layout = &self.info.layout;
                behind.extend(layout.row_key_of_entry(index, &row.key, &value)?.map(Bytes::from));
            }
        }
        txn.get_ahead(behind, ReadMode::Latest).map_err(kv_error)?;
        waiting.iter().try_for_each(|row| judge(self.ctx, self.info, row))
    }
}

/// The index behind a target that is not the rows.
fn index_of(layout: &TableLayout, target: usize) -> SqlResult<&IndexLayout> {
    let kept = layout.kept_indexes().chain(layout.notes()).nth(target - 1);
    kept.ok_or_else(|| SqlError::internal("a load of an unknown index"))
}

/// A row that came twice, or whose key may be taken: 23505 if so.
fn judge(ctx: &Context, info: &TableInfo, row: &Candidate) -> SqlResult<()> {
    let layout: &TableLayout = &info.layout;
    let stored = match row.again {
        true => None,
        false => ctx.txn.get_as(&row.key, ReadMode::Latest).map_err(kv_error)?,
    };
    if !row.again && stored.is_none() {
        return Ok(());
    }
    if row.target == 0 {
        let values = layout.decode(&row.key, &row.value, None)?.unwrap_or_default();
        return Err(duplicate_key(ctx, &layout.table, &layout.table.primary, &values));
    }
    let i = index_of(layout, row.target)?;
    if let Some(value) = stored {
        // An entry whose row was erased with its family is in nobody's way.
        if live_row(&ctx.txn, layout, i, &row.key, &value, ReadMode::Latest)?.is_none() {
            return Ok(());
        }
    }
    let nothing = vec![Datum::Null; layout.table.columns.len()];
    let values = layout.row_of_entry(i, &row.key, &row.value)?.unwrap_or(nothing);
    // Entries of other indexes end with the primary key: if they are equal, that is.
    let index = if i.index.unique { &i.index } else { &layout.table.primary };
    Err(duplicate_key(ctx, &layout.table, index, &values))
}
