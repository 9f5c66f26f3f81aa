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
use std::sync::atomic::Ordering;

use braid_catalog::{Table, kv_error, memory_error};
use braid_env::memory::LARGE_VALUE;
use braid_kv::{BulkLoad, KeySpan, Loaded, ReadMode, ScanOptions, Wait};
use braid_types::{Datum, SqlError, SqlResult};
use bytes::Bytes;

use super::ahead;
use super::keys::duplicate_key;
use super::references::{find_by_key, missing_parent, missing_reference, reference_values};
use super::writer::TableInfo;
use crate::bulk::{LoadError, ingest_private};
use crate::session::{Block, Context};
use crate::statistics::Delta;
use braid_rows::Row;
use braid_rows::TableLayout;
use braid_rows::layout::IndexLayout;
use braid_rows::scan::live_row;

/// Rows are written one by one unless there are so many,
pub(crate) const FEW_ROWS: usize = 10_000;
/// or so many bytes of them.
pub(crate) const FEW_BYTES: usize = 2 << 20;

/// A load of one table.
pub(crate) struct TableLoad {
    pub(super) ctx: Context,
    pub(super) info: Arc<TableInfo>,
    pub(super) load: BulkLoad,
    pub(super) private: bool,
    /// By target: whether something is stored there already.
    pub(super) occupied: Vec<bool>,
    /// By foreign key, the parent last: the values that were found last. Children come in groups.
    pub(super) found: Vec<Option<Vec<Datum>>>,
    pub(super) written: Written,
}

/// What a load has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Rows.
    pub(crate) rows: u64,
    /// Entries of indexes.
    pub(crate) entries: u64,
    /// Bytes of keys and values.
    pub(crate) bytes: u64,
}

/// A key that more than one row wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TakenKey {
    /// As targets are numbered.
    pub(crate) target: usize,
    /// The key.
    pub(crate) key: Bytes,
    /// A row that was there before has it.
    pub(crate) stored: bool,
}

/// Who decides what becomes of a row that is no good: an error ends the load.
pub(crate) type Refuse<'a, T> = dyn FnMut(T, SqlError) -> SqlResult<()> + 'a;

/// Whether an error says something of a row, so that others may go on without it.
pub(crate) fn is_of_row(e: &SqlError) -> bool {
    e.state().0.starts_with("22") || e.state().0.starts_with("23")
}

impl TableLoad {
    /// Whether a load can take the rows: outside of a block, or in one that made the table.
    pub(crate) fn is_possible(ctx: &Context, info: &TableInfo) -> SqlResult<bool> {
        let table = info.table();
        // Whether rows of the load refer to each other could be told only when all are there.
        let own = info.references.iter().any(|(fk, _)| fk.parent == table.id);
        // Those that wait ask when all is there.
        let waits = |block: &Block| {
            let mut all = info.references.iter().map(|(fk, _)| (fk.id, fk.deferral));
            all.any(|constraint| block.deferred.waits(constraint))
        };
        let waits = ctx.block.as_ref().is_some_and(waits);
        // Entries of such a key do not collide.
        let late = info.layout.kept_indexes().any(|i| i.index.deferral.is_some());
        // Its files have their keys before there is a commit.
        let is_time = |id: u32| table.column(id).is_some_and(|column| column.commit_time);
        let mut keys = table.all_indexes().flat_map(|index| &index.columns);
        let times = keys.any(|key| is_time(key.column));
        // A load is all that its transaction writes.
        let alone = ctx.as_one().is_none();
        let good = alone && !own && !waits && !late && !times;
        Ok(good && (ctx.block.is_none() || ctx.is_private(table)?))
    }

    /// Whether a load, if one is possible, is there before the commit, in what nobody else can
    /// see: then its transaction may write other things, too.
    pub(crate) fn is_private(ctx: &Context, table: &Table) -> SqlResult<bool> {
        // In a block it is, or no load is possible; outside, a table or a generation that the
        // statement makes.
        let new = |t: &Arc<Table>| t.generation < table.generation;
        Ok(ctx.block.is_some() || ctx.db.current_catalog()?.table(table.id).is_none_or(new))
    }

    /// Begins. Waits for those who write to the table or to tables that it refers to, and keeps
    /// them out until the end of the transaction. Rows are sorted in so much memory, in bytes.
    pub(crate) fn start(
        ctx: &Context,
        info: &Arc<TableInfo>,
        memory: usize,
    ) -> SqlResult<TableLoad> {
        ctx.lock_writers_out(info.table(), Wait::Block)?;
        TableLoad::start_within_change(ctx, info, memory)
    }

    /// As [`TableLoad::start`], for a table that the same statement has made or emptied, and that
    /// nobody else knows or can use: it is not what others take it for.
    pub(crate) fn start_within_change(
        ctx: &Context,
        info: &Arc<TableInfo>,
        memory: usize,
    ) -> SqlResult<TableLoad> {
        for (_, parent) in &info.references {
            ctx.lock_writers_out(&parent.table, Wait::Block)?;
        }
        if let Some(parent) = &info.parent {
            ctx.lock_writers_out(&parent.table, Wait::Block)?;
        }
        TableLoad::begin(ctx, info, memory)
    }

    /// As [`TableLoad::start`], for a load that will never be written: nobody is kept out.
    pub(crate) fn trial(
        ctx: &Context,
        info: &Arc<TableInfo>,
        memory: usize,
    ) -> SqlResult<TableLoad> {
        TableLoad::begin(ctx, info, memory)
    }

    fn begin(ctx: &Context, info: &Arc<TableInfo>, memory: usize) -> SqlResult<TableLoad> {
        let layout = &info.layout;
        let mut occupied =
            vec![holds_rows(ctx, layout.rows.whole_span(), layout.rows.class_mask())?];
        for i in layout.kept_indexes() {
            occupied.push(
                i.index.unique && holds_rows(ctx, i.layout.whole_span(), i.layout.class_mask())?,
            );
        }
        let targets = TableLoad::targets(info);
        occupied.resize(targets, false);
        let mut load = ctx.txn.bulk_load(targets, memory, &ctx.memory).map_err(kv_error)?;
        // The last one is for records, which need no memory.
        load.expect_few(targets - 1);
        let cancel = ctx.cancel.clone();
        load.stop_if(move || cancel.load(Ordering::Relaxed));
        let found = vec![None; info.references.len() + 1];
        let private = TableLoad::is_private(ctx, info.table())?;
        let (ctx, info) = (ctx.clone(), info.clone());
        Ok(TableLoad { ctx, info, load, private, occupied, found, written: Written::default() })
    }

    /// How many targets the load of a table has: its rows, its indexes, and records.
    pub(crate) fn targets(info: &TableInfo) -> usize {
        2 + info.layout.kept_indexes().chain(info.layout.notes()).count()
    }

    /// What it has taken so far.
    pub(crate) fn written(&self) -> Written {
        self.written
    }

    /// Adds rows whose defaults are filled in, each with its place in the input.
    ///
    /// # Errors
    /// What is wrong with the first bad row, and its place.
    pub(crate) fn add<T>(&mut self, rows: Vec<(T, Row)>) -> Result<(), (T, SqlError)> {
        let mut first = None;
        let refused = self.add_or_refuse(rows, &mut |place, e: SqlError| {
            first = Some(place);
            Err(e)
        });
        match (refused, first) {
            (Err(e), Some(place)) => Err((place, e)),
            _ => Ok(()),
        }
    }

    /// As [`TableLoad::add`]; `refuse` decides about rows that are no good.
    ///
    /// # Errors
    /// Those of `refuse`.
    pub(crate) fn add_or_refuse<T>(
        &mut self,
        rows: Vec<(T, Row)>,
        refuse: &mut Refuse<'_, T>,
    ) -> SqlResult<()> {
        let complete = |(place, mut row): (T, Row)| {
            let done = self.info.filler.complete(&self.ctx, &mut row);
            (place, done.map(|()| row))
        };
        let rows: Vec<(T, SqlResult<Row>)> = rows.into_iter().map(complete).collect();
        let good = || rows.iter().filter_map(|(_, row)| row.as_ref().ok());
        // What fails here fails again for the row that it is about.
        let asked = match good().count() {
            0 | 1 => Ok(()),
            _ => ahead::of_loads(&self.ctx, &self.info, good()),
        };
        let mut asked = asked.err().filter(|e| !is_of_row(e));
        for (place, row) in rows {
            let put = match asked.take() {
                Some(e) => Err(e),
                None => row.and_then(|row| self.put(&row)),
            };
            if let Err(e) = put {
                refuse(place, e)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, row: &Row) -> SqlResult<()> {
        self.check_references(row)?;
        let layout = self.info.layout.clone();
        // All of a row or nothing: a key that cannot be is found before anything is put.
        let indexes = || layout.kept_indexes().chain(layout.notes()).enumerate();
        let key = layout.row_key(row)?;
        let entries = indexes().map(|(_, i)| i.entry_key(row)).collect::<SqlResult<Vec<_>>>()?;
        let value = layout.row_value(row);
        // A long row is there once more as it is stored.
        let mut held = self.ctx.memory.hold("a long row that is stored");
        if value.len() >= LARGE_VALUE {
            held.grow(value.len()).map_err(|e| memory_error(&e))?;
        }
        self.written.rows += 1;
        self.written.bytes += (key.len() + value.len()) as u64;
        self.load.put(0, &key, &value).map_err(kv_error)?;
        for (n, i) in indexes() {
            let Some(key) = &entries[n] else { continue };
            let value = layout.entry_value(i, row);
            self.written.entries += 1;
            self.written.bytes += (key.len() + value.len()) as u64;
            self.load.put(n + 1, key, &value).map_err(kv_error)?;
        }
        Ok(())
    }

    /// Puts a record next to the rows: it is stored if they are, and only then. Nobody else may
    /// write it meanwhile.
    pub(crate) fn along(&mut self, key: &[u8], value: &[u8]) -> SqlResult<()> {
        let last = self.occupied.len() - 1;
        self.load.put(last, key, value).map_err(kv_error)
    }

    /// The key that a row has in a target, if it has one there.
    pub(crate) fn key_in(
        layout: &TableLayout,
        target: usize,
        row: &Row,
    ) -> SqlResult<Option<Vec<u8>>> {
        match target {
            0 => layout.row_key(row).map(Some),
            _ => index_of(layout, target)?.entry_key(row),
        }
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

    /// Looks for keys that more than one row wants, without writing anything: at most so many of
    /// them.
    pub(crate) fn taken_keys(&mut self, most: usize) -> SqlResult<Vec<TakenKey>> {
        let TableLoad { ctx, info, load, occupied, .. } = self;
        let mut found: Vec<TakenKey> = Vec::new();
        let mut refuse = |key: TakenKey, e: SqlError| {
            found.push(key);
            if found.len() < most { Ok(()) } else { Err(e) }
        };
        let mut judge = Judge::new(ctx, info, &mut refuse);
        let visited = load.visit(|row: Loaded<'_>| judge.look_at(&row, occupied));
        let judged = visited.map_err(SqlError::from).and_then(|()| judge.decide());
        match judged {
            // That is what stopped it.
            Err(_) if found.len() >= most => Ok(found),
            other => other.map(|()| found),
        }
    }

    /// Puts the rows where the transaction's end makes them appear, all at once.
    pub(crate) fn finish(self) -> SqlResult<()> {
        self.finish_or_tell(&mut None)
    }

    /// As [`TableLoad::finish`]; says which key is taken, if that is what it fails for.
    pub(crate) fn finish_or_tell(self, taken: &mut Option<TakenKey>) -> SqlResult<()> {
        let TableLoad { ctx, info, load, private, occupied, written, .. } = self;
        let rows = written.rows;
        let mut refuse = |key: TakenKey, e: SqlError| {
            *taken = Some(key);
            Err(e)
        };
        let mut judge = Judge::new(&ctx, &info, &mut refuse);
        let files = load.finish(|row: Loaded<'_>| judge.look_at(&row, &occupied))?;
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

/// Says whether the keys of a load are taken: 23505 for each that is. Asks for many at once.
struct Judge<'a> {
    ctx: &'a Context,
    info: &'a TableInfo,
    /// In the order in which they came.
    waiting: Vec<Candidate>,
    /// Their bytes.
    bytes: usize,
    /// Rows that were looked at.
    seen: u64,
    /// Whom to tell about a key that is taken.
    refuse: &'a mut Refuse<'a, TakenKey>,
}

/// A row of a load whose key may be taken.
struct Candidate {
    target: usize,
    key: Bytes,
    value: Bytes,
    /// The row before had the same key.
    again: bool,
}

/// Rows that wait for their judgement have no more bytes than this.
const WAITING_BYTES: usize = 64 << 10;

impl<'a> Judge<'a> {
    fn new(
        ctx: &'a Context,
        info: &'a TableInfo,
        refuse: &'a mut Refuse<'a, TakenKey>,
    ) -> Judge<'a> {
        Judge { ctx, info, waiting: Vec::new(), bytes: 0, seen: 0, refuse }
    }

    /// A row on its way; `occupied`: whether something is stored in its target already.
    fn look_at(&mut self, row: &Loaded<'_>, occupied: &[bool]) -> Result<(), LoadError> {
        self.seen += 1;
        if self.seen.is_multiple_of(4096) {
            self.ctx.check_cancel()?;
        }
        if row.again || occupied[row.target] {
            self.take(row)?;
        }
        Ok(())
    }

    fn take(&mut self, row: &Loaded<'_>) -> SqlResult<()> {
        let (key, value) = (Bytes::copy_from_slice(row.key), Bytes::copy_from_slice(row.value));
        self.waiting.push(Candidate { target: row.target, key, value, again: row.again });
        // A row that came twice must not be written.
        self.bytes += row.key.len() + row.value.len();
        let full = self.waiting.len() >= self.ctx.txn.batch_max() || self.bytes >= WAITING_BYTES;
        if row.again || full {
            self.decide()?;
        }
        Ok(())
    }

    /// About those that came so far.
    fn decide(&mut self) -> SqlResult<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.bytes = 0;
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
        waiting.into_iter().try_for_each(|row| match judge(self.ctx, self.info, &row) {
            Err(e) if is_of_row(&e) => {
                let (target, key, stored) = (row.target, row.key, !row.again);
                (self.refuse)(TakenKey { target, key, stored }, e)
            }
            other => other,
        })
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
