//! DELETE whose WHERE is nothing but spans of the key: the rows are not looked for, only counted.
//!
//! ```text
//!   DELETE FROM orders WHERE customer = 7 AND id < 100
//!     span   [/customers/7/#/orders , /customers/7/#/orders/100)     with all lines in it
//! ```
//! The spans hold no row of another table that is not below the deleted rows. Rows of a table in
//! which nothing lies go so when that is less work ([`super::worth`]). Partitions that are dropped
//! or emptied are spans too, and nobody wants to know of how many rows ([`erase_all`]).

use std::sync::Arc;

use braid_catalog::After;
use braid_kv::{Isolation, KeySpan, ReadMode};
use braid_types::SqlResult;
use bytes::Bytes;

use super::doomed::Doomed;
use super::erase::lock_families;
use super::fate::Fate;
use super::worth::{self, FEW_ROWS};
use crate::dml::in_parts::part;
use crate::dml::writer::{TableInfo, Writer};
use crate::session::Context;
use braid_planner::access::Access;
use braid_rows::Row;
use braid_rows::TableScan;

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
    /// Nothing: rows are less work.
    Nothing,
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
    } else {
        let counted = match few_rows(ctx, info, &spans)? {
            Found::Few(rows) => return Ok(Deleted::Few(rows)),
            Found::Large => 0,
            Found::Many => FEW_ROWS,
        };
        if !are_worth_it(ctx, (&fate, info), access, &spans, counted)? {
            return Ok(Deleted::Nothing);
        }
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

/// Deletes what lies in the spans of an access, if it is more than a few rows. Nothing is read, and
/// who is at work there is waited for: the caller has locked all others out.
pub(in crate::dml) fn erase_all(
    ctx: &Context,
    w: &mut Writer,
    info: &Arc<TableInfo>,
    access: &Access,
) -> SqlResult<bool> {
    let (fate, layout) = (info.fate(ctx)?, &info.layout);
    let spans = access.spans(layout, &[], &ctx.eval)?;
    if !worth::has_more(ctx, &layout.rows, &spans, FEW_ROWS, ReadMode::Latest)? {
        return Ok(false);
    }
    let count = worth::weigh(ctx, layout, &spans)?;
    let heads = access.prefixes(&[], &ctx.eval)?;
    w.erase(&fate, info, &Doomed::in_spans(spans, heads, count))?;
    Ok(true)
}

/// Whether spans, which are locked then, are less work than the rows in them, which are more than
/// those that were counted.
fn are_worth_it(
    ctx: &Context,
    (fate, info): (&Fate, &TableInfo),
    access: &Access,
    spans: &[KeySpan],
    counted: usize,
) -> SqlResult<bool> {
    let few = worth::few(ctx, fate, &info.layout, spans.len());
    let rows = &info.layout.rows;
    if few > counted && !worth::has_more(ctx, rows, spans, few, ReadMode::Unrecorded)? {
        return Ok(false);
    }
    let doomed = Doomed::in_spans(spans.to_vec(), access.prefixes(&[], &ctx.eval)?, 0);
    if !worth::are_asked_together(ctx, (fate, rows), &doomed, few)? {
        return Ok(false);
    }
    match worth::are_free(ctx, spans) {
        // Rows that a view does not show, which is kept for good, are in nobody's way.
        Err(e)
            if After::error(&e) == After::Again
                && ctx.txn.isolation() == Isolation::RepeatableRead =>
        {
            Ok(false)
        }
        other => other,
    }
}

/// Rows in spans, as far as they were looked for.
enum Found {
    /// All of them, which are a few.
    Few(Vec<(Bytes, Row)>),
    /// Those that were looked at are much in memory.
    Large,
    Many,
}

/// The rows in spans, if they are no more than a few.
fn few_rows(ctx: &Context, info: &TableInfo, spans: &[KeySpan]) -> SqlResult<Found> {
    let layout = &info.layout;
    let mut scan = TableScan::new(ctx.txn.clone(), layout.clone(), spans.to_vec(), None, false);
    let mut held = ctx.memory.hold("rows to be deleted");
    let mut left = FEW_ROWS;
    let mut next = || match left {
        0 => Ok(None),
        _ => {
            left -= 1;
            scan.next_row()
        }
    };
    let rows = part(ctx, &mut held, &mut next)?.unwrap_or_default();
    let some = rows.len() == FEW_ROWS;
    if scan.next_row()?.is_some() {
        return Ok(if some { Found::Many } else { Found::Large });
    }
    held.release();
    ctx.keep_rows("rows to be deleted", rows.iter().map(|(_, row)| row))?;
    Ok(Found::Few(rows))
}
