//! Filling an index while others write: the backfill and the notes.
//!
//! ```text
//!   index 104    generation 1   entries          empty until the backfill comes, at timestamp T
//!                generation 2   notes            by whoever writes rows meanwhile
//!
//!   T:    all rows as of T ─ sorted runs ─ one ingest at T           [`fill`]
//!   then: writers keep the entries; each note is settled: what does
//!         its row say now, and whose entry is stored?                [`merge_notes`]
//! ```
//! Everybody who writes from T on has noted what he touched, or keeps the entries themselves. So
//! all that may be wrong with the entries as of T is in the notes, and after these are settled,
//! each under locks on the row and the entry, nothing is.
//!
//! A row that breaks the uniqueness of the index is found by the backfill (two rows as of T), by a
//! note (two rows now), or refused by the writers that keep the entries already.

use std::cell::Cell;
use std::sync::Arc;

use braid_catalog::{Addition, After, NOTES_GENERATION, kv_error};
use braid_keys::path::generations_upto;
use braid_kv::{Conflict, KeySpan, KvError, Loaded, LockMode, ReadMode, ScanOptions};
use braid_types::{SqlError, SqlResult};
use bytes::Bytes;

use super::backfill::duplicated;
use super::index::entries::{Entries, Way, finish_beside, put_each};
use super::online::Online;
use crate::bulk::{LoadError, SMALL_LOAD};
use crate::session::Context;
use braid_rows::Row;
use braid_rows::TableLayout;
use braid_rows::layout::{BuildingLayout, IndexLayout};
use braid_rows::scan::{get_row_as, live_row};

/// Notes, or rows, that are settled in one transaction.
const AT_ONCE: usize = 256;
/// Tries of a backfill that meets range deletes of families that its entries lie in.
const BACKFILLS: usize = 3;

/// A key with what is stored there.
type Pair = (Bytes, Bytes);

/// The layout of the table, and of what it is building.
fn layouts(online: &Online, ctx: &Context) -> SqlResult<(Arc<TableLayout>, BuildingLayout)> {
    let layout = Arc::new(TableLayout::new(&ctx.catalog, &online.table_of(ctx)?)?);
    let building = layout.building.clone();
    let building = building.ok_or_else(|| SqlError::internal("a change was lost"))?;
    Ok((layout, building))
}

/// Writes the entries of all rows as of one timestamp.
pub(super) fn fill(online: &Online) -> SqlResult<()> {
    for _ in 0..BACKFILLS {
        let met = Cell::new(false);
        online.until_certain(|| {
            let ctx = online.now()?;
            match backfill(online, &ctx) {
                // What it reads was in doubt.
                Err(LoadError::Kv(e @ KvError::Retry { conflict: Conflict::Uncertain(_) })) => {
                    Err(kv_error(e))
                }
                // Entries inside of a family that was deleted meanwhile: they would be newer than
                // the tombstone in arrival and older in time.
                Err(LoadError::Kv(KvError::Retry { .. })) => {
                    met.set(true);
                    Ok(())
                }
                other => other.map_err(SqlError::from),
            }
        })?;
        if !met.get() {
            return Ok(());
        }
    }
    online.until_certain(|| note_all_rows(online))
}

fn backfill(online: &Online, ctx: &Context) -> Result<(), LoadError> {
    let (layout, building) = layouts(online, ctx)?;
    let i = &building.index;
    online.job().step("backfill");
    let (reading, rate) = (ReadMode::Unrecorded, ctx.session.backfill_rate());
    let entries = Entries { ctx, layout: &layout, index: i, reading, rate };
    let load = entries.load(|fraction| online.job().progress(fraction))?;
    let twice = |row: &Loaded<'_>| Err(duplicated(&layout, i, row.key, row.value)?);
    if load.is_below(SMALL_LOAD) {
        online.job().step("ingest");
        put_each(ctx, load, twice)?;
        ctx.txn.commit()?;
        return Ok(());
    }
    let files = finish_beside(ctx, load, twice)?;
    online.job().step("ingest");
    Ok(ctx.txn.ingest_private(&files)?)
}

/// Instead of a backfill: a note for every row.
fn note_all_rows(online: &Online) -> SqlResult<()> {
    let ctx = online.now()?;
    let (layout, building) = layouts(online, &ctx)?;
    let notes = &building.notes;
    online.job().step("backfill");
    let (ctx, layout) = (&ctx, &layout);
    let (reading, rate) = (ReadMode::Unrecorded, ctx.session.backfill_rate());
    let entries = Entries { ctx, layout, index: notes, reading, rate };
    let whole = layout.rows.whole_span();
    let mut rows = entries.scan(&whole, Some(layout.entry_columns(notes)), false);
    let way = Way::over(&entries, &whole)?;
    let mut pace = entries.pace(1);
    let mut batch: Vec<Pair> = Vec::new();
    loop {
        let next = rows.next_row()?;
        let last = next.is_none();
        if let Some((key, mut row)) = next {
            pace.row(ctx)?;
            online.job().progress(way.fraction(&key));
            layout.compute(notes, &mut row)?;
            let value = layout.entry_value(notes, &row);
            if let Some(key) = notes.entry_key(&row)? {
                batch.push((key.into(), value.into()));
            }
        }
        if batch.len() == AT_ONCE || last {
            let batch = std::mem::take(&mut batch);
            again(online, |ctx| {
                for (key, value) in &batch {
                    ctx.txn.put(key.clone(), value.clone()).map_err(kv_error)?;
                }
                Ok(())
            })?;
        }
        if last {
            return Ok(());
        }
    }
}

/// Runs and commits a short transaction until it does not meet others.
fn again(online: &Online, work: impl Fn(&Context) -> SqlResult<()>) -> SqlResult<()> {
    loop {
        let ctx = online.now()?;
        ctx.check_cancel()?;
        let result = work(&ctx).and_then(|()| ctx.txn.commit().map(|_| ()).map_err(kv_error));
        match result {
            Err(e) if After::error(&e).is_again() => {}
            other => return other,
        }
    }
}

/// Settles all notes. Nobody writes any more.
pub(super) fn merge_notes(online: &Online) -> SqlResult<()> {
    let ctx = online.now()?;
    let (layout, building) = layouts(online, &ctx)?;
    online.job().step("merge");
    let span = building.notes.layout.whole_span();
    let options = ScanOptions { mode: ReadMode::Unrecorded, ..ScanOptions::default() };
    let mut notes = ctx.txn.scan(span, options).map_err(kv_error)?;
    loop {
        let mut batch: Vec<Pair> = Vec::new();
        while batch.len() < AT_ONCE
            && let Some(note) = notes.next().map_err(kv_error)?
        {
            batch.push(note);
        }
        if batch.is_empty() {
            return Ok(());
        }
        again(online, |ctx| {
            batch.iter().try_for_each(|note| settle(ctx, &layout, &building, note))
        })?;
    }
}

/// Makes the entry that a note is about what its row says now.
fn settle(
    ctx: &Context,
    layout: &TableLayout,
    building: &BuildingLayout,
    (key, value): &Pair,
) -> SqlResult<()> {
    let txn = &ctx.txn;
    let i = &building.index;
    let Some(noted) = layout.row_of_entry(&building.notes, key, value)? else {
        return Err(SqlError::internal("a note is not one of its index"));
    };
    let row_key = Bytes::from(layout.row_key(&noted)?);
    let entry = Bytes::from(i.key_of(&noted)?);
    txn.hold(&row_key, LockMode::Shared).map_err(kv_error)?;
    txn.hold(&entry, LockMode::Exclusive).map_err(kv_error)?;
    let row: Option<Row> =
        get_row_as(txn, layout, row_key.clone(), ReadMode::Latest)?.map(|(_, row)| row);
    let wanted = match row {
        Some(row) if i.entry_key(&row)?.as_deref() == Some(&entry[..]) => {
            Some(layout.entry_value(i, &row))
        }
        _ => None,
    };
    let stored = txn.get_as(&entry, ReadMode::Latest).map_err(kv_error)?;
    let owner = match &stored {
        Some(stored) => layout.row_key_of_entry(i, &entry, stored)?,
        None => None,
    };
    let own = owner.as_ref().is_none_or(|owner| owner[..] == row_key[..]);
    match (wanted, stored) {
        (Some(wanted), Some(stored)) if own && stored[..] == wanted[..] => Ok(()),
        (Some(wanted), stored) => {
            if let Some(owner) = owner.filter(|_| !own) {
                refuse_duplicate(ctx, layout, i, &owner, &entry, &stored.unwrap_or_default())?;
            }
            txn.put(entry, wanted).map_err(kv_error)
        }
        (None, Some(_)) if own => txn.delete(entry).map_err(kv_error),
        (None, _) => Ok(()),
    }
}

/// 23505 if another row owns an entry.
fn refuse_duplicate(
    ctx: &Context,
    layout: &TableLayout,
    i: &IndexLayout,
    owner: &[u8],
    entry: &[u8],
    stored: &[u8],
) -> SqlResult<()> {
    // It may be about to go.
    ctx.txn.hold(owner, LockMode::Shared).map_err(kv_error)?;
    match live_row(&ctx.txn, layout, i, entry, stored, ReadMode::Latest)? {
        Some(_) => Err(duplicated(layout, i, entry, stored)?),
        None => Ok(()),
    }
}

/// Erases the notes with the transaction that makes the index public.
pub(super) fn erase_notes(ctx: &Context, built: &Addition) -> SqlResult<()> {
    let Addition::Index { index, .. } = built else { return Ok(()) };
    let (_, end) = generations_upto(index.id, NOTES_GENERATION);
    let (_, start) = generations_upto(index.id, NOTES_GENERATION - 1);
    ctx.txn.delete_span(&KeySpan::new(start, end)).map(|_| ()).map_err(kv_error)
}
