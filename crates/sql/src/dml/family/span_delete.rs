//! DELETE whose WHERE is nothing but spans of the key: the rows are not looked for, only counted.
//!
//! ```text
//!   DELETE FROM orders WHERE customer = 7 AND id < 100
//!     span   [/customers/7/#/orders , /customers/7/#/orders/100)     with all lines in it
//! ```
//! The spans hold no row of another table that is not below the deleted rows. Rows of a table in
//! which nothing lies go so when they are many; a few are less work one by one, for the engine too.

use std::sync::Arc;

use braid_kv::KeySpan;
use braid_types::SqlResult;
use bytes::Bytes;

use super::doomed::Doomed;
use super::erase::lock_families;
use crate::dml::writer::{TableInfo, Writer};
use crate::general_query::Row;
use crate::plan::access::Access;
use crate::session::Context;
use crate::storage::TableScan;

/// So many rows without families are deleted one by one.
const FEW_ROWS: usize = 256;

/// Whether what lies in the spans of an access is exactly what a statement deletes, or why not.
pub(in crate::dml) fn is_exact(
    ctx: &Context,
    info: &TableInfo,
    access: &Access,
) -> Result<(), String> {
    if let Some(rest) = access.rest.first() {
        let names = |at: usize| info.table().columns[at].name.clone();
        let rest = rest.to_sql(&names);
        return Err(format!("the condition {rest} is not a span of the primary key"));
    }
    if access.eq_len() < info.layout.rows.pure_len() {
        let parent = info.table().interleave.as_ref().and_then(|i| ctx.catalog.table(i.parent));
        let parent = parent.map_or("", |p| &p.name);
        return Err(format!("the spans would also hold rows of table {parent}"));
    }
    Ok(())
}

/// What was done with the spans.
pub(in crate::dml) enum Deleted {
    /// Rows that went in spans: how many, and themselves, if they are wanted.
    Erased(u64, Vec<Row>),
    /// Rows that are still there: too few for a span.
    Few(Vec<(Bytes, Row)>),
}

/// Deletes what lies in the spans of an access. Of rows that are not `wanted`, only keys are read.
pub(in crate::dml) fn run(
    ctx: &Context,
    w: &mut Writer,
    info: &Arc<TableInfo>,
    access: &Access,
    wanted: bool,
) -> SqlResult<Deleted> {
    let fate = info.fate(ctx)?;
    let layout = &info.layout;
    let spans = access.spans(layout, &[], &ctx.eval)?;
    if fate.is_family() {
        for t in &fate.dying {
            ctx.lock_shape(t)?;
        }
        lock_families(ctx, &spans)?;
    } else if let Some(few) = few_rows(ctx, info, &spans)? {
        return Ok(Deleted::Few(few));
    }
    let columns = (!wanted).then(|| vec![false; layout.table.columns.len()]);
    let mut scan = TableScan::new(ctx.txn.clone(), layout.clone(), spans.clone(), columns, false);
    let mut rows = Vec::new();
    while let Some((_, row)) = scan.next_row()? {
        if scan.rows.is_multiple_of(1024) {
            ctx.check_cancel()?;
        }
        if wanted {
            ctx.keep_rows("RETURNING", [&row])?;
            rows.push(row);
        }
    }
    let count = scan.rows;
    if count > 0 {
        let heads = access.prefixes(&[], &ctx.eval)?;
        w.erase(&fate, info, &Doomed::in_spans(spans, heads, count))?;
    }
    Ok(Deleted::Erased(count, rows))
}

/// The rows in spans, if they are no more than a few.
fn few_rows(
    ctx: &Context,
    info: &TableInfo,
    spans: &[KeySpan],
) -> SqlResult<Option<Vec<(Bytes, Row)>>> {
    let layout = &info.layout;
    let mut scan = TableScan::new(ctx.txn.clone(), layout.clone(), spans.to_vec(), None, false);
    let mut rows = Vec::new();
    while let Some((key, row)) = scan.next_row()? {
        if rows.len() == FEW_ROWS {
            return Ok(None);
        }
        ctx.keep_rows("rows to be deleted", [&row])?;
        rows.push((key, row));
    }
    Ok(Some(rows))
}
