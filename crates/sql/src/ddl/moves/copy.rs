//! All rows of tables that move, as of one time, under their new keys: sorted runs that are taken
//! in at once.
//!
//! Nobody reads there yet. Range deletes of the families that the rows come to lie in may reach
//! them: an ingest at the time that was read would be newer than such a tombstone in arrival and
//! older in time. Then the rows come in with a commit instead, above it.

use std::sync::Arc;

use braid_catalog::kv_error;
use braid_kv::{BulkLoad, KvError, Loaded, ReadMode};
use braid_types::SqlResult;
use bytes::Bytes;

use super::moving::{Moving, MovingTable};
use super::online::Job;
use crate::bulk::{LoadError, SMALL_LOAD};
use crate::ddl::backfill::twice;
use crate::ddl::index::entries::{Pace, Way, finish_beside};
use crate::session::Context;
use braid_rows::layout::IndexLayout;
use braid_rows::{TableLayout, TableScan};

/// Rows between words about how far it is.
const TELL_EVERY: u64 = 1024;

/// Copies the rows that the context's transaction sees.
pub(super) fn copy(job: &Job, moving: &Moving, ctx: &Context) -> SqlResult<()> {
    let tables = moving.tables.len() as f64;
    for (n, one) in moving.tables.iter().enumerate() {
        let progress = |fraction: f64| job.progress((n as f64 + fraction) / tables);
        copy_one(job, one, ctx, progress)?;
    }
    Ok(())
}

/// The rows of a table that the context's transaction sees.
pub(super) fn rows_of(ctx: &Context, layout: &Arc<TableLayout>, reverse: bool) -> TableScan {
    let spans = vec![layout.rows.whole_span()];
    let scan = TableScan::new(ctx.txn.clone(), layout.clone(), spans, None, reverse);
    scan.reading(ReadMode::Unrecorded)
}

fn copy_one(
    job: &Job,
    one: &MovingTable,
    ctx: &Context,
    progress: impl Fn(f64),
) -> Result<(), LoadError> {
    let mut load =
        ctx.txn.bulk_load(1 + one.now.indexes.len(), ctx.session.load_memory(), &ctx.memory)?;
    let end = |reverse: bool| -> SqlResult<_> {
        let found = rows_of(ctx, &one.old, reverse).next_row()?;
        Ok(found.map(|(key, _)| key).unwrap_or_default())
    };
    let way = Way::between(&end(false)?, &end(true)?);
    let mut pace = Pace::new(ctx.session.backfill_rate(), 1);
    let mut rows = rows_of(ctx, &one.old, false);
    while let Some((key, row)) = rows.next_row()? {
        pace.row(ctx)?;
        ctx.check_cancel()?;
        if rows.rows.is_multiple_of(TELL_EVERY) {
            progress(way.fraction(&key));
        }
        one.check(ctx, &row)?;
        for stored in one.stored(&row)? {
            load.put(stored.target, &stored.key, &stored.value)?;
        }
    }
    take_in(job, one, ctx, load)
}

fn take_in(job: &Job, one: &MovingTable, ctx: &Context, load: BulkLoad) -> Result<(), LoadError> {
    let indexes: Vec<&IndexLayout> = one.now.indexes.iter().collect();
    let twice = |row: &Loaded<'_>| Err(twice(&one.now, &indexes, row)?);
    if load.is_below(SMALL_LOAD) {
        let mut all: Vec<(Bytes, Bytes)> = Vec::new();
        load.drain(|row| -> Result<(), LoadError> {
            if row.again {
                twice(&row)?;
            }
            all.push((Bytes::copy_from_slice(row.key), Bytes::copy_from_slice(row.value)));
            Ok(())
        })?;
        return Ok(job.again(|ctx| {
            let put = |(key, value): &(Bytes, Bytes)| ctx.txn.put(key.clone(), value.clone());
            all.iter().try_for_each(put).map_err(kv_error)
        })?);
    }
    let files = finish_beside(ctx, load, twice)?;
    match ctx.txn.ingest_private(&files) {
        Err(KvError::Retry { .. }) => {
            let above = job.now()?;
            above.txn.attach(files)?;
            Ok(above.txn.commit().map(|_| ())?)
        }
        other => Ok(other?),
    }
}
