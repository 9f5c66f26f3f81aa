//! Texts about keys in errors: `Key (id)=(1) already exists.`

use std::sync::Arc;

use braid_catalog::{Index, Lost, Table};
use braid_types::{Datum, SqlError, TimeZone};

use crate::partitions::Router;
use crate::session::{Context, Shown, key_column};

/// A value as error details show it.
pub(crate) fn show(d: &Datum) -> String {
    match d.is_pending_commit_time() {
        true => "pending".into(),
        false => d.to_text(TimeZone::utc()).unwrap_or_else(|| "null".into()),
    }
}

/// What a column of a key is called; an expression as PostgreSQL prints it.
fn key_name(t: &Table, id: u32) -> String {
    match t.column(id).is_some_and(|c| c.expression.is_some()) {
        true => key_column(t, id, Shown::Plain),
        false => t.key_name(id).to_string(),
    }
}

/// `Key (a, b)=(1, x)`.
pub(crate) fn columns_detail(t: &Table, columns: &[u32], row: &[Datum]) -> String {
    let names: Vec<_> = columns.iter().map(|c| key_name(t, *c)).collect();
    let values: Vec<_> =
        columns.iter().map(|c| t.ordinal(*c).map_or_else(String::new, |o| show(&row[o]))).collect();
    format!("Key ({})=({})", names.join(", "), values.join(", "))
}

/// `Key (..)=(..)` of an index.
pub(crate) fn key_detail(t: &Table, index: &Index, row: &[Datum]) -> String {
    let columns: Vec<_> = index.columns.iter().map(|c| c.column).collect();
    columns_detail(t, &columns, row)
}

/// 23505.
pub(crate) fn duplicate_key(ctx: &Context, t: &Table, index: &Index, row: &[Datum]) -> SqlError {
    let (table, name) =
        as_partition(ctx, t, index, row).unwrap_or_else(|| (t.name.clone(), index.name.clone()));
    Lost::Duplicate
        .error(format!("duplicate key value violates unique constraint \"{name}\""))
        .with_detail(format!("{} already exists.", key_detail(t, index, row)))
        .with_table(ctx.schema_name(t.schema), &table)
        .with_constraint(&name)
}

/// What the partition that a row lies in is called, and what it calls an index of the table.
fn as_partition(
    ctx: &Context,
    t: &Table,
    index: &Index,
    row: &[Datum],
) -> Option<(String, String)> {
    let router = Router::new(&Arc::new(t.clone())).ok()??;
    let leaf = router.leaf(row, &ctx.eval).ok()??;
    let name = router.index_name(leaf, index.id)?;
    Some((router.name_of(leaf).to_string(), name.to_string()))
}

/// `(1, null, x)`: the whole row, hidden columns left out.
pub(crate) fn failing_row(t: &Table, row: &[Datum]) -> String {
    let values: Vec<_> =
        t.columns.iter().zip(row).filter(|(c, _)| !c.hidden).map(|(_, d)| show(d)).collect();
    format!("Failing row contains ({}).", values.join(", "))
}
