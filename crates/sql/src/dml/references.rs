//! Foreign keys and interleave parents: does the referenced row exist, who references a row.

use std::sync::Arc;

use braid_catalog::{ForeignKey, Table, kv_error};
use braid_kv::{Isolation, LockMode, Wait};
use braid_types::{Datum, SqlError, SqlResult, SqlState};
use bytes::Bytes;

use super::keys::columns_detail;
use crate::general_query::Row;
use crate::plan::rows::RowSource;
use crate::session::Context;
use crate::storage::scan::live_row;
use crate::storage::{IndexScan, TableLayout, TableScan};

/// Locks a row that must stay because another one refers to it. Under SERIALIZABLE the read itself
/// is validated at commit.
fn keep_row(ctx: &Context, key: &[u8]) -> SqlResult<()> {
    if ctx.txn.isolation() != Isolation::Serializable {
        ctx.txn.lock(key, LockMode::Shared, Wait::Block).map_err(kv_error)?;
    }
    Ok(())
}

/// Key of the row with these values in the columns of a unique key, if there is such a row.
pub(crate) fn find_by_key(
    ctx: &Context,
    layout: &TableLayout,
    columns: &[u32],
    values: &[Datum],
) -> SqlResult<Option<Bytes>> {
    let mut row = vec![Datum::Null; layout.table.columns.len()];
    for (c, v) in columns.iter().zip(values) {
        if let Some(o) = layout.table.ordinal(*c) {
            row[o] = v.clone();
        }
    }
    let same = |key: &[u32]| key.len() == columns.len() && key.iter().all(|k| columns.contains(k));
    if same(&layout.table.key_columns()) {
        let key = layout.row_key(&row)?;
        let found = ctx.txn.get(&key).map_err(kv_error)?.is_some();
        return Ok(found.then(|| key.into()));
    }
    for i in layout.indexes.iter().filter(|i| i.index.unique) {
        let key: Vec<u32> = i.index.columns.iter().map(|c| c.column).collect();
        if same(&key) {
            let key = i.entry_key(&row)?;
            let Some(value) = ctx.txn.get(&key).map_err(kv_error)? else { return Ok(None) };
            return Ok(live_row(&ctx.txn, layout, i, &key, &value)?.map(|(k, _)| k));
        }
    }
    Err(SqlError::internal("a foreign key references columns without a unique index"))
}

/// The referencing values of a row; `None` if the constraint asks nothing of it (NULLs).
pub(crate) fn reference_values(
    table: &Table,
    fk: &ForeignKey,
    row: &[Datum],
) -> SqlResult<Option<Vec<Datum>>> {
    let values: Vec<Datum> = fk
        .columns
        .iter()
        .map(|c| table.ordinal(*c).map_or(Datum::Null, |o| row[o].clone()))
        .collect();
    let nulls = values.iter().filter(|v| v.is_null()).count();
    if nulls == 0 {
        return Ok(Some(values));
    }
    if fk.match_full && nulls < values.len() {
        return Err(SqlError::new(
            SqlState::FOREIGN_KEY_VIOLATION,
            format!(
                "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
                table.name, fk.name
            ),
        )
        .with_detail("MATCH FULL does not allow mixing of null and nonnull key values.")
        .with_constraint(&fk.name));
    }
    Ok(None)
}

/// Whether the row that a row refers to exists; also true if it refers to nothing.
pub(crate) fn reference_exists(
    ctx: &Context,
    table: &Table,
    fk: &ForeignKey,
    parent: &TableLayout,
    row: &[Datum],
) -> SqlResult<bool> {
    let Some(values) = reference_values(table, fk, row)? else { return Ok(true) };
    match find_by_key(ctx, parent, &fk.parent_columns, &values)? {
        Some(key) => keep_row(ctx, &key).map(|()| true),
        None => Ok(false),
    }
}

/// 23503 on the referencing side.
pub(crate) fn missing_reference(
    ctx: &Context,
    table: &Table,
    fk: &ForeignKey,
    parent: &Table,
    row: &[Datum],
) -> SqlError {
    SqlError::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
            table.name, fk.name
        ),
    )
    .with_detail(format!(
        "{} is not present in table \"{}\".",
        columns_detail(table, &fk.columns, row),
        parent.name
    ))
    .with_table(ctx.schema_name(table.schema), &table.name)
    .with_constraint(&fk.name)
}

/// 23503 on the referenced side.
pub(crate) fn still_referenced(
    ctx: &Context,
    parent: &Table,
    parent_row: &[Datum],
    child: &Table,
    fk: &ForeignKey,
) -> SqlError {
    SqlError::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \
             \"{}\"",
            parent.name, fk.name, child.name
        ),
    )
    .with_detail(format!(
        "{} is still referenced from table \"{}\".",
        columns_detail(parent, &fk.parent_columns, parent_row),
        child.name
    ))
    .with_table(ctx.schema_name(child.schema), &child.name)
    .with_constraint(&fk.name)
}

/// 23503 when children of an enforced interleaving with NO ACTION or RESTRICT are in the way.
pub(crate) fn still_has_children(
    ctx: &Context,
    parent: &Table,
    parent_row: Option<&[Datum]>,
    child: &Table,
) -> SqlError {
    let e = SqlError::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!(
            "delete on table \"{}\" violates interleave constraint of table \"{}\"",
            parent.name, child.name
        ),
    )
    .with_table(ctx.schema_name(child.schema), &child.name)
    .with_hint("Delete the child rows first, or declare the child ON DELETE CASCADE.");
    match parent_row {
        Some(row) => e.with_detail(format!(
            "{} still has rows interleaved from table \"{}\".",
            columns_detail(parent, &parent.key_columns(), row),
            child.name
        )),
        None => e,
    }
}

/// Checks that the interleave parent of a row exists: one point read.
pub(crate) fn parent_exists(
    ctx: &Context,
    own: &TableLayout,
    parent: &TableLayout,
    row: &[Datum],
) -> SqlResult<()> {
    let n = parent.rows.columns().len();
    // The parent's key is the child's key cut at the parent's last column.
    let values: Vec<Datum> =
        own.rows.columns()[..n].iter().map(|c| row[c.ordinal].clone()).collect();
    let key = parent.rows.prefix(&values)?;
    if ctx.txn.get(&key).map_err(kv_error)?.is_some() {
        return keep_row(ctx, &key);
    }
    let t = &own.table;
    let columns = t.interleave.as_ref().map(|i| i.columns.clone()).unwrap_or_default();
    Err(SqlError::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!("insert or update on table \"{}\" violates its interleave constraint", t.name),
    )
    .with_detail(format!(
        "{} is not present in parent table \"{}\".",
        columns_detail(t, &columns, row),
        parent.table.name
    ))
    .with_hint("Write the parent row before its children.")
    .with_table(ctx.schema_name(t.schema), &t.name))
}

/// Rows with these values in these columns, found by the key or index that starts with most of
/// the columns.
pub(crate) fn rows_with(
    ctx: &Context,
    layout: &Arc<TableLayout>,
    columns: &[u32],
    values: &[Datum],
    limit: usize,
) -> SqlResult<Vec<(Bytes, Row)>> {
    let value_of = |c: u32| columns.iter().position(|x| *x == c).map(|i| values[i].clone());
    let prefix =
        |keys: &mut dyn Iterator<Item = u32>| -> Vec<Datum> { keys.map_while(value_of).collect() };
    let primary = prefix(&mut layout.rows.columns().iter().map(|k| k.column));
    let mut best: Option<(usize, Vec<Datum>)> = None;
    for (n, i) in layout.indexes.iter().enumerate() {
        let p = prefix(&mut i.layout.columns()[..i.declared].iter().map(|k| k.column));
        if p.len() > primary.len() && best.as_ref().is_none_or(|b| p.len() > b.1.len()) {
            best = Some((n, p));
        }
    }
    let mut source = match best {
        Some((n, p)) => {
            let span = layout.indexes[n].layout.prefix_span(&p)?;
            let scan = IndexScan::new(ctx.txn.clone(), layout.clone(), n, vec![span], false);
            RowSource::Index(scan)
        }
        None => {
            let span = layout.rows.prefix_span(&primary)?;
            let scan = TableScan::new(ctx.txn.clone(), layout.clone(), vec![span], None, false);
            RowSource::Table(scan)
        }
    };
    let mut out = Vec::new();
    while let Some((key, row)) = source.next_row(ctx)? {
        let same = columns.iter().zip(values).all(|(c, v)| {
            layout.table.ordinal(*c).is_some_and(|o| !row[o].is_null() && row[o].cmp_sql(v).is_eq())
        });
        if same {
            out.push((key, row));
            if out.len() >= limit {
                break;
            }
        }
    }
    Ok(out)
}
