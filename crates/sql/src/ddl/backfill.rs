//! Work over existing rows: filling indexes, checking new constraints, moving rows to a new key.
//!
//! All of it runs in the statement's transaction, after the table was locked for change: everybody
//! who had written to it has ended, and nobody can write until this transaction ends. So the newest
//! state is read, at every isolation level: the view of a statement that had to wait for the lock
//! is older than the rows it waited for.

use std::sync::Arc;

use braid_catalog::{ForeignKey, Table, kv_error};
use braid_kv::ReadMode;
use braid_types::{SqlError, SqlResult, SqlState};

use super::Change;
use crate::dml::keys::{duplicate_key, key_detail};
use crate::dml::references::{find_by_key, missing_parent, missing_reference, reference_values};
use crate::expr::Bound;
use crate::general_query::Row;
use crate::storage::{TableLayout, TableScan};

/// Cancel is looked at every so many rows.
const CANCEL_EVERY: u64 = 1024;

fn scan(c: &Change, layout: &Arc<TableLayout>) -> TableScan {
    let spans = vec![layout.rows.whole_span()];
    TableScan::new(c.ctx.txn.clone(), layout.clone(), spans, None, false).reading(ReadMode::Latest)
}

/// Calls `f` with each row.
pub(super) fn each_row(
    c: &Change,
    layout: &Arc<TableLayout>,
    mut f: impl FnMut(&[u8], Row) -> SqlResult<()>,
) -> SqlResult<u64> {
    let mut rows = scan(c, layout);
    while let Some((key, row)) = rows.next_row()? {
        if rows.rows.is_multiple_of(CANCEL_EVERY) {
            c.ctx.check_cancel()?;
        }
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
    each_row(c, &layout, |_, row| {
        let i = &layout.indexes[at];
        let key = i.entry_key(&row)?;
        let taken = || c.ctx.txn.get_as(&key, ReadMode::Latest).map_err(kv_error);
        if i.enforces_for(&row) && taken()?.is_some() {
            return Err(SqlError::new(
                SqlState::UNIQUE_VIOLATION,
                format!("could not create unique index \"{}\"", i.index.name),
            )
            .with_detail(format!("{} is duplicated.", key_detail(&layout.table, &i.index, &row)))
            .with_constraint(&i.index.name));
        }
        c.ctx.txn.put(key, layout.entry_value(i, &row)).map_err(kv_error)
    })?;
    Ok(())
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
            let t = &layout.table;
            return Err(SqlError::new(
                SqlState::NOT_NULL_VIOLATION,
                format!(
                    "column \"{}\" of relation \"{}\" contains null values",
                    t.columns[ordinal].name, t.name
                ),
            )
            .with_table(c.ctx.schema_name(t.schema), &t.name)
            .with_column(&t.columns[ordinal].name));
        }
        Ok(())
    })?;
    Ok(())
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
        match find_by_key(&c.ctx, &parent, &fk.parent_columns, &values)? {
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

/// Writes all rows of `old` anew as rows of `table` in the catalog: after a change of the primary
/// key or of a column's stored form. `convert` makes the new row. The old rows must be unreachable
/// (another generation) or have the same keys.
pub(super) fn rewrite(
    c: &mut Change,
    old: &Arc<TableLayout>,
    table: u32,
    mut convert: impl FnMut(Row) -> SqlResult<Row>,
) -> SqlResult<()> {
    let new = layout(c, table)?;
    let moved = new.rows.whole_span() != old.rows.whole_span();
    each_row(c, old, |_, row| {
        let row = convert(row)?;
        let key = new.row_key(&row)?;
        let taken = || c.ctx.txn.get_as(&key, ReadMode::Latest).map_err(kv_error);
        if moved && taken()?.is_some() {
            return Err(duplicate_key(&c.ctx, &new.table, &new.table.primary, &row));
        }
        c.ctx.txn.put(key, new.row_value(&row)).map_err(kv_error)?;
        for i in &new.indexes {
            let key = i.entry_key(&row)?;
            c.ctx.txn.put(key, new.entry_value(i, &row)).map_err(kv_error)?;
        }
        Ok(())
    })?;
    Ok(())
}
