//! Work over existing rows: filling indexes, checking new constraints, moving rows to a new key.
//!
//! All of it runs in the statement's transaction, after the table was locked for change (unless it
//! goes in steps: [`super::online`]): everybody
//! who had written to it has ended, and nobody can write until this transaction ends. So the newest
//! state is read, at every isolation level: the view of a statement that had to wait for the lock
//! is older than the rows it waited for.

use std::sync::Arc;

use braid_catalog::{ForeignKey, Index, Lost, Table, kv_error};
use braid_kv::{BulkLoad, KeySpan, Loaded, LockMode, ReadMode, Wait};
use braid_types::{Datum, SqlError, SqlResult, SqlState, commit_time_is_pending};

use super::Change;
use super::index::entries::{Entries, finish_beside, put_each};
use crate::bulk::{SMALL_LOAD, ingest_private};
use crate::dml::keys::key_detail;
use crate::dml::references::{find_by_key_as, missing_parent, missing_reference, reference_values};
use crate::jobs::reclaim;
use crate::session::Context;
use crate::statistics::Delta;
use braid_rows::Row;
use braid_rows::layout::IndexLayout;
use braid_rows::{TableLayout, TableScan};
use braid_scalar::Bound;

fn scan(c: &Change, layout: &Arc<TableLayout>) -> TableScan {
    let spans = vec![layout.rows.whole_span()];
    TableScan::new(c.ctx.txn.clone(), layout.clone(), spans, None, false).reading(c.reading)
}

/// Later statements of a transaction with one view would see other rows than are read here.
fn check_unseen(c: &Change, layout: &TableLayout) -> SqlResult<()> {
    match c.reading {
        ReadMode::Latest => c.ctx.txn.check_seen(&layout.rows.whole_span()).map_err(kv_error),
        _ => Ok(()),
    }
}

/// What the change reads by queries and deletes from now on is the newest state of these rows, too:
/// the view of a statement that waited for the lock is older.
pub(super) fn renew_view(c: &Change, layout: &TableLayout) -> SqlResult<()> {
    check_unseen(c, layout)?;
    c.ctx.txn.begin_statement().map_err(kv_error)
}

/// Calls `f` with each row.
pub(super) fn each_row(
    c: &Change,
    layout: &Arc<TableLayout>,
    mut f: impl FnMut(&[u8], Row) -> SqlResult<()>,
) -> SqlResult<u64> {
    check_unseen(c, layout)?;
    let mut rows = scan(c, layout);
    while let Some((key, row)) = rows.next_row()? {
        c.ctx.check_cancel()?;
        f(&key, row)?;
    }
    Ok(rows.rows)
}

/// Whether the table holds a row.
pub(super) fn has_rows(c: &Change, layout: &Arc<TableLayout>) -> SqlResult<bool> {
    Ok(scan(c, layout).next_row()?.is_some())
}

/// The layout of a table as the change sees it.
pub(super) fn layout(c: &Change, table: u32) -> SqlResult<Arc<TableLayout>> {
    let t = c.catalog.table(table).ok_or_else(|| SqlError::internal("table is gone"))?;
    Ok(Arc::new(TableLayout::new(&c.catalog, t)?))
}

/// Writes the entries of an index for all rows.
///
/// # Errors
/// 23505 if a unique index finds duplicates.
pub(super) fn build_index(c: &mut Change, table: u32, index: u32) -> SqlResult<()> {
    let layout = layout(c, table)?;
    let Some(at) = layout.indexes.iter().position(|i| i.index.id == index) else {
        return Err(SqlError::internal("index is not in its table"));
    };
    let i = &layout.indexes[at];
    check_unseen(c, &layout)?;
    // Writers wait for it: it does not spare them.
    let (reading, rate) = (c.reading, None);
    let entries = Entries { ctx: &c.ctx, layout: &layout, index: i, reading, rate };
    let load = entries.load(|_| ())?;
    let spans = i.index.interleave_in.is_none().then(|| i.layout.whole_span());
    take_in(c, load, spans.into_iter().collect(), |row| {
        Err(duplicated(&layout, i, row.key, row.value)?)
    })?;
    match i.index.deferral {
        Some(_) => prove_unique(c, &layout, i),
        None => Ok(()),
    }
}

/// Looks at the entries of an index whose key does not tell rows apart: no two rows have equal
/// keys.
///
/// # Errors
/// 23505.
fn prove_unique(c: &Change, layout: &TableLayout, i: &IndexLayout) -> SqlResult<()> {
    let options = i.scan_options(ReadMode::Latest, false);
    let mut scan = c.ctx.txn.scan(i.layout.whole_span(), options).map_err(kv_error)?;
    let mut last: Option<Vec<u8>> = None;
    while let Some((key, value)) = scan.next().map_err(kv_error)? {
        c.ctx.check_cancel()?;
        let Some(row) = layout.row_of_entry(i, &key, &value)? else { continue };
        let own = i.deferred_key(&row)?;
        if own.is_some() && own == last {
            return Err(duplicated(layout, i, &key, &value)?);
        }
        last = own;
    }
    Ok(())
}

/// 23505 of a unique index that is being built: two rows want this entry.
pub(super) fn duplicated(
    layout: &TableLayout,
    i: &IndexLayout,
    key: &[u8],
    value: &[u8],
) -> SqlResult<SqlError> {
    let values = layout.row_of_entry(i, key, value)?.unwrap_or_default();
    Ok(not_unique(layout, &i.index, &values))
}

fn not_unique(layout: &TableLayout, index: &Index, row: &[Datum]) -> SqlError {
    Lost::Duplicate
        .error(format!("could not create unique index \"{}\"", index.name))
        .with_detail(format!("{} is duplicated.", key_detail(&layout.table, index, row)))
        .with_constraint(&index.name)
}

/// Ends a load into new spans: small ones go through the transaction's buffer. `twice` makes the
/// error for a key that came twice.
pub(super) fn take_in(
    c: &Change,
    load: BulkLoad,
    spans: Vec<KeySpan>,
    twice: impl Fn(&Loaded<'_>) -> SqlResult<()> + Sync,
) -> SqlResult<()> {
    if load.is_below(SMALL_LOAD) {
        return Ok(put_each(&c.ctx, load, twice)?);
    }
    let files = finish_beside(&c.ctx, load, twice)?;
    ingest_private(&c.ctx.txn, c.new_id()?, &spans, &files)
}

/// Checks a new CHECK constraint.
pub(super) fn validate_check(
    c: &Change,
    table: &Arc<Table>,
    name: &str,
    check: &Bound,
) -> SqlResult<()> {
    let layout = layout(c, table.id)?;
    each_row(c, &layout, |_, row| match check.eval(&row, &c.ctx.eval)? {
        braid_types::Datum::Bool(false) => Err(SqlError::new(
            SqlState::CHECK_VIOLATION,
            format!(
                "check constraint \"{name}\" of relation \"{}\" is violated by some row",
                table.name
            ),
        )
        .with_table(c.ctx.schema_name(table.schema), &table.name)
        .with_constraint(name)),
        _ => Ok(()),
    })?;
    Ok(())
}

/// Checks that a column holds no NULL.
pub(super) fn validate_not_null(c: &Change, table: u32, ordinal: usize) -> SqlResult<()> {
    let layout = layout(c, table)?;
    each_row(c, &layout, |_, row| {
        if row[ordinal].is_null() {
            return Err(null_found(&c.ctx, &layout.table, ordinal));
        }
        Ok(())
    })?;
    Ok(())
}

/// 23502: a column that shall hold none holds a NULL.
pub(super) fn null_found(ctx: &Context, t: &Table, ordinal: usize) -> SqlError {
    let name = &t.columns[ordinal].name;
    SqlError::new(
        SqlState::NOT_NULL_VIOLATION,
        format!("column \"{name}\" of relation \"{}\" contains null values", t.name),
    )
    .with_table(ctx.schema_name(t.schema), &t.name)
    .with_column(name)
}

/// Checks a new foreign key.
pub(super) fn validate_foreign_key(
    c: &Change,
    table: &Arc<Table>,
    fk: &ForeignKey,
) -> SqlResult<()> {
    let own = layout(c, table.id)?;
    let parent = layout(c, fk.parent)?;
    each_row(c, &own, |_, row| {
        // The referenced table is locked for change, too: its rows need no locks of their own.
        let Some(values) = reference_values(table, fk, &row)? else { return Ok(()) };
        match find_by_key_as(&c.ctx, &parent, &fk.parent_columns, &values, c.reading)? {
            Some(_) => Ok(()),
            None => Err(missing_reference(&c.ctx, table, fk, &parent.table, &row)),
        }
    })?;
    Ok(())
}

/// Checks that every row has its interleave parent.
pub(super) fn validate_parents(c: &Change, table: &Arc<Table>) -> SqlResult<()> {
    let own = layout(c, table.id)?;
    let Some(i) = &table.interleave else { return Ok(()) };
    let parent = layout(c, i.parent)?;
    each_row(c, &own, |_, row| {
        let key = own.parent_key(&parent, &row)?;
        match c.ctx.txn.get_as(&key, ReadMode::Latest).map_err(kv_error)? {
            Some(_) => Ok(()),
            None => Err(missing_parent(&c.ctx, &own, &parent, &row)),
        }
    })?;
    Ok(())
}

/// Loads all rows of a table, converted, with their entries in these indexes, under the keys of its
/// present layout. How many there are.
///
/// # Errors
/// 23505 for two of them with one key; of reading and of `convert`.
pub(super) fn load_rows(
    c: &mut Change,
    old: &Arc<TableLayout>,
    now: &TableLayout,
    indexes: &[&IndexLayout],
    mut convert: impl FnMut(Row) -> SqlResult<Row>,
) -> SqlResult<u64> {
    let mut load = c
        .ctx
        .txn
        .bulk_load(1 + indexes.len(), c.ctx.session.load_memory(), &c.ctx.memory)
        .map_err(kv_error)?;
    let rows = each_row(c, old, |_, row| {
        let mut row = convert(row)?;
        // The load is there before the commit.
        if row.iter().any(Datum::is_pending_commit_time) {
            return Err(commit_time_is_pending());
        }
        load.put(0, &now.row_key(&row)?, &now.row_value(&row)).map_err(kv_error)?;
        for (n, i) in indexes.iter().enumerate() {
            now.compute(i, &mut row)?;
            let Some(key) = i.entry_key(&row)? else { continue };
            load.put(n + 1, &key, &now.entry_value(i, &row)).map_err(kv_error)?;
        }
        Ok(())
    })?;
    let mut spans = Vec::new();
    if now.table.interleave.is_none() {
        spans.push(now.rows.whole_span());
    }
    let global = indexes.iter().filter(|i| i.index.interleave_in.is_none());
    spans.extend(global.map(|i| i.layout.whole_span()));
    take_in(c, load, spans, |row| Err(twice(now, indexes, row)?))?;
    for i in indexes.iter().filter(|i| i.index.deferral.is_some()) {
        prove_unique(c, now, i)?;
    }
    Ok(rows)
}

/// 23505 of a load of rows and their entries.
pub(super) fn twice(
    now: &TableLayout,
    indexes: &[&IndexLayout],
    row: &Loaded<'_>,
) -> SqlResult<SqlError> {
    match row.target {
        0 => {
            let values = now.decode(row.key, row.value, None)?.unwrap_or_default();
            Ok(not_unique(now, &now.table.primary, &values))
        }
        n => duplicated(now, indexes[n - 1], row.key, row.value),
    }
}

/// Writes all rows of `old` anew as rows of `table` in the catalog: after a change of the primary
/// key or of a column's stored form. `convert` makes the new row. Rows move to another generation
/// of the table, and entries to that of indexes which the caller has given a new one; only where
/// other tables are interleaved in it rows keep their keys, and are replaced one by one.
pub(super) fn rewrite(
    c: &mut Change,
    old: &Arc<TableLayout>,
    table: u32,
    convert: impl FnMut(Row) -> SqlResult<Row>,
) -> SqlResult<()> {
    let mut now = layout(c, table)?;
    let moved_before = old.table.generation != now.table.generation
        || old.table.interleave.is_some() != now.table.interleave.is_some();
    if !moved_before && now.has_children {
        replace_rows(c, old, &now, convert)?;
        for i in now.indexes.iter().filter(|i| is_renewed(old, i)) {
            build_index(c, table, i.index.id)?;
        }
        return forget_entries(c, old, &now, true);
    }
    if !moved_before {
        let mut new = (*now.table).clone();
        new.generation = c.next_generation(new.id, new.generation)?;
        if old.table.interleave.is_some() {
            let generation = (old.table.id, old.table.generation);
            let since = c.ctx.db.coordinator().wall_clock_us();
            reclaim::discard(&c.ctx.txn, &c.ctx.catalog, &old.table, generation, since)?;
        }
        c.put(new);
        now = layout(c, table)?;
    }
    // Whoever has written here has ended; if that was after this statement began, it begins anew
    // before the work instead of after it.
    let root = old.table.interleave.is_none();
    let old_span = old.rows.whole_span();
    if root {
        c.ctx.txn.lock_span(&old_span, LockMode::Exclusive, Wait::Block).map_err(kv_error)?;
    }
    let indexes: Vec<&IndexLayout> = now.indexes.iter().filter(|i| is_renewed(old, i)).collect();
    let rows = load_rows(c, old, &now, &indexes, convert)?;
    c.ctx.db.statistics_state().changes.add(&now.table, Delta::inserted(rows));
    if root {
        c.ctx.txn.delete_span(&old_span).map_err(kv_error)?;
    }
    // In a root's own families they have gone with its span.
    forget_entries(c, old, &now, !moved_before && !root)
}

/// Whether an index has another generation than before, or none before.
fn is_renewed(old: &TableLayout, i: &IndexLayout) -> bool {
    let before = old.indexes.iter().find(|o| o.index.id == i.index.id);
    before.is_none_or(|o| o.index.generation != i.index.generation)
}

/// Takes away the entries of generations that have ended; those inside of families if nobody else
/// does.
fn forget_entries(
    c: &Change,
    old: &TableLayout,
    now: &TableLayout,
    in_families: bool,
) -> SqlResult<()> {
    for i in now.indexes.iter().filter(|i| is_renewed(old, i)) {
        let Some(before) = old.indexes.iter().find(|o| o.index.id == i.index.id) else { continue };
        match before.index.interleave_in {
            Some(lies_in) if in_families => c.discard_index(lies_in, &before.index)?,
            Some(_) => {}
            None => {
                c.ctx.txn.delete_span(&before.layout.whole_span()).map_err(kv_error)?;
            }
        }
    }
    Ok(())
}

/// Writes rows anew under the keys that they have.
fn replace_rows(
    c: &Change,
    old: &Arc<TableLayout>,
    new: &TableLayout,
    mut convert: impl FnMut(Row) -> SqlResult<Row>,
) -> SqlResult<()> {
    let mut rows = 0;
    each_row(c, old, |_, row| {
        let row = convert(row)?;
        rows += 1;
        c.ctx.txn.put(new.row_key(&row)?, new.row_value(&row)).map_err(kv_error)
    })?;
    c.ctx.db.statistics_state().changes.add(&new.table, Delta::updated(rows));
    Ok(())
}
