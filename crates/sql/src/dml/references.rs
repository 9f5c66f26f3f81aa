//! Foreign keys and interleave parents: does the referenced row exist, who references a row.
//!
//! Both questions are asked of the **newest** state, at every isolation level, under a lock on the
//! referenced row that both sides take:
//!
//! ```text
//!   child comes    key share lock on the parent ─ is it there?    ─ keep the lock until the end
//!   parent goes    exclusive lock on the parent ─ any children?   ─ keep the lock until the end
//! ```
//!
//! Whoever comes second waits for the first to end and then sees what he did. An older view, that
//! of a REPEATABLE READ transaction or of a READ COMMITTED statement that waited, would miss it.
//! The answer cannot change while the lock is held, so a SERIALIZABLE commit has nothing to
//! validate, and an update of the parent's other columns (no key exclusive) is in nobody's way.

use std::sync::Arc;

use braid_catalog::{ForeignKey, Table, kv_error};
use braid_kv::{LockMode, ReadMode};
use braid_types::{Datum, SqlError, SqlResult, SqlState};
use bytes::Bytes;

use super::keys::columns_detail;
use crate::plan::rows::RowSource;
use crate::session::Context;
use braid_rows::Row;
use braid_rows::scan::live_row;
use braid_rows::{IndexLayout, IndexScan, TableLayout, TableScan};

/// Where a row with given values in the columns of a unique key is to be found.
pub(crate) enum Place {
    /// Under this key.
    Row(Bytes),
    /// Behind this entry of the index at this position.
    Entry(usize, Bytes),
}

impl Place {
    /// The key to look at.
    pub(crate) fn key(&self) -> &Bytes {
        match self {
            Place::Row(key) | Place::Entry(_, key) => key,
        }
    }
}

/// The place of the row with these values in the columns of a unique key.
pub(crate) fn place_of(
    layout: &TableLayout,
    columns: &[u32],
    values: &[Datum],
) -> SqlResult<Place> {
    let mut row = vec![Datum::Null; layout.table.columns.len()];
    for (c, v) in columns.iter().zip(values) {
        if let Some(o) = layout.table.ordinal(*c) {
            row[o] = v.clone();
        }
    }
    let same = |key: &[u32]| key.len() == columns.len() && key.iter().all(|k| columns.contains(k));
    if same(&layout.table.key_columns()) {
        return Ok(Place::Row(layout.row_key(&row)?.into()));
    }
    for (n, i) in layout.indexes.iter().enumerate().filter(|(_, i)| i.tells_rows_apart()) {
        let key: Vec<u32> = i.index.columns.iter().map(|c| c.column).collect();
        if same(&key) {
            return Ok(Place::Entry(n, i.key_of(&row)?.into()));
        }
    }
    Err(SqlError::internal("a foreign key references columns without a unique index"))
}

/// Key of the row with these values in the columns of a unique key, if there is such a row, in the
/// newest state: see the [module's page](self).
pub(crate) fn find_by_key(
    ctx: &Context,
    layout: &TableLayout,
    columns: &[u32],
    values: &[Datum],
) -> SqlResult<Option<Bytes>> {
    find_by_key_as(ctx, layout, columns, values, ReadMode::Latest)
}

/// As [`find_by_key`], in the state that the mode says.
pub(crate) fn find_by_key_as(
    ctx: &Context,
    layout: &TableLayout,
    columns: &[u32],
    values: &[Datum],
    mode: ReadMode,
) -> SqlResult<Option<Bytes>> {
    let place = place_of(layout, columns, values)?;
    let found = ctx.txn.get_as(place.key(), mode).map_err(kv_error)?;
    match (found, place) {
        (None, _) => Ok(None),
        (Some(_), Place::Row(key)) => Ok(Some(key)),
        (Some(value), Place::Entry(n, key)) => {
            let index = &layout.indexes[n];
            let live = live_row(&ctx.txn, layout, index, &key, &value, mode)?;
            Ok(live.map(|(k, _)| k))
        }
    }
}

/// As [`find_by_key`], and the row's key stays as it is until the end of the transaction.
fn keep_by_key(
    ctx: &Context,
    layout: &TableLayout,
    columns: &[u32],
    values: &[Datum],
) -> SqlResult<bool> {
    let mut locked: Option<Bytes> = None;
    loop {
        let found = find_by_key(ctx, layout, columns, values)?;
        match found {
            None => return Ok(false),
            // Found again after its lock was granted: whoever wants to delete it waits for us.
            Some(key) if locked.as_ref() == Some(&key) => return Ok(true),
            Some(key) => {
                ctx.txn.hold(&key, LockMode::KeyShare).map_err(kv_error)?;
                locked = Some(key);
            }
        }
    }
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
    keep_by_key(ctx, parent, &fk.parent_columns, &values)
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

/// Checks that the interleave parent of a row exists, and keeps it: one lock, one point read.
pub(crate) fn parent_exists(
    ctx: &Context,
    own: &TableLayout,
    parent: &TableLayout,
    row: &[Datum],
) -> SqlResult<()> {
    let key = own.parent_key(parent, row)?;
    ctx.txn.hold(&key, LockMode::KeyShare).map_err(kv_error)?;
    match ctx.txn.get_as(&key, ReadMode::Latest).map_err(kv_error)? {
        Some(_) => Ok(()),
        None => Err(missing_parent(ctx, own, parent, row)),
    }
}

/// 23503 for a row without its interleave parent.
pub(crate) fn missing_parent(
    ctx: &Context,
    own: &TableLayout,
    parent: &TableLayout,
    row: &[Datum],
) -> SqlError {
    let t = &own.table;
    let columns = t.interleave.as_ref().map(|i| i.columns.clone()).unwrap_or_default();
    SqlError::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!("insert or update on table \"{}\" violates its interleave constraint", t.name),
    )
    .with_detail(format!(
        "{} is not present in parent table \"{}\".",
        columns_detail(t, &columns, row),
        parent.table.name
    ))
    .with_hint("Write the parent row before its children.")
    .with_table(ctx.schema_name(t.schema), &t.name)
}

/// The key or index that starts with most of these columns, and the values that it starts with.
pub(crate) fn lookup_of(
    layout: &TableLayout,
    columns: &[u32],
    values: &[Datum],
) -> (Option<usize>, Vec<Datum>) {
    let value_of = |c: u32| columns.iter().position(|x| *x == c).map(|i| values[i].clone());
    let prefix =
        |keys: &mut dyn Iterator<Item = u32>| -> Vec<Datum> { keys.map_while(value_of).collect() };
    let primary = prefix(&mut layout.rows.columns().iter().map(|k| k.column));
    let mut best: Option<(usize, Vec<Datum>)> = None;
    let whole = |(_, i): &(usize, &IndexLayout)| i.predicate.is_none();
    for (n, i) in layout.indexes.iter().enumerate().filter(whole) {
        let p = prefix(&mut i.layout.columns()[..i.declared].iter().map(|k| k.column));
        if p.len() > primary.len() && best.as_ref().is_none_or(|b| p.len() > b.1.len()) {
            best = Some((n, p));
        }
    }
    match best {
        Some((n, p)) => (Some(n), p),
        None => (None, primary),
    }
}

/// Rows with certain values in certain columns, in the newest state, found by the key or index that
/// starts with most of the columns.
pub(crate) struct Referrers {
    source: RowSource,
    /// By position in the row.
    wanted: Vec<(usize, Datum)>,
}

impl Referrers {
    pub(crate) fn open(
        ctx: &Context,
        layout: &Arc<TableLayout>,
        columns: &[u32],
        values: &[Datum],
    ) -> SqlResult<Referrers> {
        let (index, p) = lookup_of(layout, columns, values);
        let keys = index.map_or(&layout.rows, |n| &layout.indexes[n].layout);
        let spans = vec![keys.prefix_span(&p)?];
        let (txn, layout) = (ctx.txn.clone(), layout.clone());
        let at = |c: &u32| layout.table.ordinal(*c);
        let places: Option<Vec<usize>> = columns.iter().map(at).collect();
        let places = places.ok_or_else(|| SqlError::internal("a referencing column is gone"))?;
        let wanted = places.into_iter().zip(values.iter().cloned()).collect();
        let source = match index {
            Some(n) => RowSource::Index(
                IndexScan::new(txn, layout, n, spans, false).reading(ReadMode::Latest),
            ),
            None => RowSource::Table(
                TableScan::new(txn, layout, spans, None, false).reading(ReadMode::Latest),
            ),
        };
        Ok(Referrers { source, wanted })
    }

    /// Says how many rows will be wanted, as far as that is known.
    fn expecting(self, rows: usize) -> Referrers {
        Referrers { source: self.source.expecting(rows), ..self }
    }

    /// The next row with its key.
    pub(crate) fn next(&mut self, ctx: &Context) -> SqlResult<Option<(Bytes, Row)>> {
        while let Some((key, row)) = self.source.next_row(ctx)? {
            let same =
                |(at, v): &(usize, Datum)| !row[*at].is_null() && row[*at].cmp_sql(v).is_eq();
            if self.wanted.iter().all(same) {
                return Ok(Some((key, row)));
            }
        }
        Ok(None)
    }
}

/// At most so many of the rows that [`Referrers`] finds.
pub(crate) fn rows_with(
    ctx: &Context,
    layout: &Arc<TableLayout>,
    columns: &[u32],
    values: &[Datum],
    limit: usize,
) -> SqlResult<Vec<(Bytes, Row)>> {
    let mut rows = Referrers::open(ctx, layout, columns, values)?;
    if limit < usize::MAX {
        rows = rows.expecting(limit);
    }
    let mut out = Vec::new();
    while out.len() < limit
        && let Some(found) = rows.next(ctx)?
    {
        out.push(found);
    }
    Ok(out)
}
