//! Are spans less work than rows? Asked where nothing lies in the rows, so that both ways are open.
//!
//! ```text
//!   few rows, or few for each span     row by row    a tombstone is more than a few rows
//!   few of all rows, indexes elsewhere row by row    somebody would look through whole indexes
//!                                                    for a few dead entries
//!   many rows elsewhere may refer      row by row    each looks for its own by an index
//!   somebody is at work in the spans   row by row    nobody waits for rows that he does not delete
//!   else                               spans
//! ```
//! Each question costs less than what depends on its answer, and what comes out is the same.

use braid_catalog::{RefAction, kv_error};
use braid_kv::{KeySpan, LockMode, Locked, ReadMode, ScanOptions, Wait};
use braid_types::{Datum, SqlResult};

use super::doomed::Doomed;
use super::erase::family_lock;
use super::fate::{Fate, Incoming};
use super::follow::heads_in;
use super::probe::leading;
use crate::dml::references::lookup_of;
use crate::session::Context;
use braid_rows::{Layout, TableLayout};

/// So many rows go one by one.
pub(super) const FEW_ROWS: usize = 256;
/// Rows of a span, on average, for which spans are less work than rows.
pub(super) const WORTH_SPANS: usize = 16;
/// This part of a table's rows is few, if entries are left that somebody must look for.
const SHARE: f64 = 1.0 / 64.0;
/// So many places are weighed to tell how many rows lie in all of them.
const WEIGHED: usize = 8;
/// A row that is found by an index costs as much as so many that are read one after the other.
const READ_FOR_ONE: usize = 8;
/// Where two numbers are compared, neither of which is known, one is looked at so many times as far
/// as before.
const GROWTH: usize = 4;

/// So many rows of a table are few, in so many spans.
pub(super) fn few(ctx: &Context, fate: &Fate, table: &TableLayout, spans: usize) -> usize {
    let few = FEW_ROWS.max(spans.saturating_mul(WORTH_SPANS));
    let table = &table.table;
    if !table.indexes.iter().any(|i| i.unread.is_none() && fate.leaves_entries(i.interleave_in)) {
        return few;
    }
    let known = ctx.db.statistics(table).map_or(0.0, |known| known.rows);
    few.max((known * SHARE) as usize)
}

/// Whether more than so many keys of a layout's class are in spans.
pub(super) fn has_more(
    ctx: &Context,
    layout: &Layout,
    spans: &[KeySpan],
    keys: usize,
    mode: ReadMode,
) -> SqlResult<bool> {
    let options = ScanOptions { classes: layout.class_mask(), mode, ..ScanOptions::default() };
    let mut seen = 0;
    for (at, span) in spans.iter().enumerate() {
        if at.is_multiple_of(ctx.txn.batch_max()) && spans.len() > 1 {
            let part = &spans[at..spans.len().min(at + ctx.txn.batch_max())];
            ctx.txn.scan_ahead(part, &options).map_err(kv_error)?;
        }
        let mut scan = ctx.txn.scan(span.clone(), options).map_err(kv_error)?;
        while scan.next_row().map_err(kv_error)?.is_some() {
            seen += 1;
            if seen > keys {
                return Ok(true);
            }
            if seen.is_multiple_of(1024) {
                ctx.check_cancel()?;
            }
        }
    }
    Ok(false)
}

/// Whether those who may refer to the rows that go, more than so many, are asked with less work for
/// all of them together.
pub(super) fn are_asked_together(
    ctx: &Context,
    (fate, layout): (&Fate, &Layout),
    doomed: &Doomed,
    more_than: usize,
) -> SqlResult<bool> {
    let mut rows = more_than.max(1);
    for incoming in &fate.incoming {
        let Incoming { from, fk, to, .. } = incoming;
        // Rows that refuse at once, whatever else goes, refuse in the order of rows.
        if from.table.id == to.table.id && fk.on_delete == RefAction::Restrict {
            return Ok(false);
        }
        let nothing = vec![Datum::Null; fk.columns.len()];
        // Without an index each row would look through all of them.
        let indexed = !lookup_of(from, &fk.columns, &nothing).1.is_empty();
        if !indexed || heads_in(incoming, doomed)?.is_some() {
            continue;
        }
        // Neither is counted much farther than the other is many.
        let (keys, spans) = candidates(incoming, doomed)?;
        while has_more(ctx, keys, &spans, rows * READ_FOR_ONE, ReadMode::Latest)? {
            let more = rows * GROWTH;
            if !has_more(ctx, layout, &doomed.spans, more, ReadMode::Unrecorded)? {
                return Ok(false);
            }
            rows = more;
        }
    }
    Ok(true)
}

/// Where rows lie that may refer to what goes, as it is looked for.
fn candidates<'a>(
    incoming: &'a Incoming,
    doomed: &Doomed,
) -> SqlResult<(&'a Layout, Vec<KeySpan>)> {
    let from = &incoming.from;
    let leading = leading(incoming, doomed);
    let nothing = vec![Datum::Null; leading.len()];
    let (index, found) = lookup_of(from, &leading, &nothing);
    let keys = index.map_or(&from.rows, |n| &from.indexes[n].layout);
    if found.is_empty() {
        return Ok((keys, vec![keys.whole_span()]));
    }
    let span = |head: &Vec<Datum>| {
        let (_, values) = lookup_of(from, &leading, &head[..leading.len()]);
        keys.prefix_span(&values)
    };
    Ok((keys, doomed.heads.iter().map(span).collect::<SqlResult<_>>()?))
}

/// Locks spans, unless somebody else has locked something in them.
///
/// # Errors
/// 40001 if something was written there that the transaction does not see.
pub(super) fn are_free(ctx: &Context, spans: &[KeySpan]) -> SqlResult<bool> {
    let txn = &ctx.txn;
    if spans.len() > 1 {
        txn.lock_ahead(spans.iter().map(family_lock).collect()).map_err(kv_error)?;
    }
    for span in spans {
        let locked = txn.lock_span(span, LockMode::Exclusive, Wait::SkipLocked);
        if locked.map_err(kv_error)? == Locked::Skipped {
            return Ok(false);
        }
    }
    Ok(true)
}

/// About how many rows lie in spans that have more than a few; for statistics.
pub(super) fn weigh(ctx: &Context, layout: &TableLayout, spans: &[KeySpan]) -> SqlResult<u64> {
    let few = FEW_ROWS as u64 + 1;
    let Some(known) = ctx.db.statistics(&layout.table) else { return Ok(few) };
    let bytes = |span: &KeySpan| ctx.txn.stored_bytes(span).map_err(kv_error);
    let all = bytes(&layout.rows.whole_span())?.max(1);
    let weighed = spans.len().clamp(1, WEIGHED);
    let mut some = 0;
    for span in spans.iter().take(weighed) {
        some += bytes(span)?;
    }
    let share = some as f64 * (spans.len() as f64 / weighed as f64) / all as f64;
    Ok(((known.rows * share.min(1.0)).round() as u64).max(few))
}
