//! IMPORT .. WITH online: rows in small transactions, beside readers and other writers.
//!
//! ```text
//!   batch of rows ─► one transaction ─► rows, and in the job's record: up to where    ─► the next
//! ```
//! What was committed stays, whatever comes later. The record says how far that is, in the same
//! step, so that the job goes on behind it after a crash: no row is lost, and none comes twice.

use std::collections::BTreeMap;

use braid_catalog::{After, kv_error};
use braid_import::{Batch, Reader};
use braid_rows::Row;
use braid_types::{SqlError, SqlResult, SqlState};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::checkpoint::{FileMark, as_json, facts};
use super::refused::{Place, Refusal, Refused, StoredRefusal};
use super::run::{Item, Run, in_order};
use crate::dml::table_load::{Written, is_of_row};
use crate::dml::writer::{TableInfo, Writer};
use crate::jobs::State;

/// Tries of one transaction before its conflict ends the import.
const MAX_ATTEMPTS: usize = 50;

/// How far an online import has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Mark {
    /// Of the files with their sizes and times.
    files_hash: u64,
    files: BTreeMap<usize, FileMark>,
    rows: u64,
    refused: Vec<StoredRefusal>,
}

/// Loads everything, from where the job has been.
pub(super) fn load(run: &Run, refused: &mut Refused) -> SqlResult<Written> {
    let files_hash = xxh3_64(facts(&run.files).join("\n").as_bytes());
    let mut mark = match run.job.record().mark.map(|text| serde_json::from_str::<Mark>(&text)) {
        None => Mark { files_hash, ..Mark::default() },
        Some(Ok(mark)) if mark.files_hash == files_hash => mark,
        Some(_) => {
            let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
            return Err(SqlError::new(state, "the files are not those that the import began with")
                .with_hint("Its first rows are in the table: cancel it, and import the rest."));
        }
    };
    refused.restore(&run.ctx, std::mem::take(&mut mark.refused))?;
    run.job.phase("load");
    let done = run.files.iter().enumerate().try_for_each(|(file, _)| {
        let begun = mark.files.get(&file).copied().unwrap_or_default();
        if begun.done { Ok(()) } else { load_file(run, file, begun, &mut mark, refused) }
    });
    let rows = mark.rows;
    done.map_err(|e| match rows {
        0 => e,
        n => {
            let detail = e.detail().map(|d| format!("{d}\n")).unwrap_or_default();
            e.with_detail(format!("{detail}{n} rows before it were imported, and stay."))
        }
    })?;
    let record = run.job.record();
    let ended = crate::jobs::Record { state: State::Succeeded, fraction: 1.0, ..record };
    ended.store(run.ctx.db.coordinator())?;
    Ok(Written { rows, ..Written::default() })
}

fn load_file(
    run: &Run,
    file: usize,
    begun: FileMark,
    mark: &mut Mark,
    refused: &mut Refused,
) -> SqlResult<()> {
    let mut reader = Reader::start(run.reading_of(file, begun.position()))?;
    let mut taken = begun.taken;
    let before: u64 = run.files[..file].iter().map(|f| f.size).sum();
    let limit = run.options.row_limit.unwrap_or(u64::MAX);
    while let Some(batch) = reader.next_batch(&mut || Ok(()))? {
        run.job.pass(&|| run.ctx.check_cancel())?;
        let left = limit - mark.files.values().map(|m| m.taken).sum::<u64>().min(limit);
        let (read, end, last) = (batch.read, batch.end, batch.last);
        let (rows, count) = rows_of(run, batch, left, refused)?;
        taken += count;
        let here = FileMark::at(end, last, read, taken);
        commit(run, rows, (file, here), mark, refused)?;
        run.job.at_least((before + read) as f64 / run.bytes.max(1) as f64);
        run.job.tell("checkpoint");
        if count == left {
            return Ok(());
        }
    }
    Ok(())
}

/// The good rows of a batch, and how many items were taken.
fn rows_of(
    run: &Run,
    mut batch: Batch,
    left: u64,
    refused: &mut Refused,
) -> SqlResult<(Vec<(Place, Row)>, u64)> {
    let file = batch.file;
    let (mut rows, mut count) = (Vec::new(), 0);
    for (number, item) in in_order(&mut batch).take(usize::try_from(left).unwrap_or(usize::MAX)) {
        count += 1;
        let place = (file, number);
        match item {
            Item::Row(_) if refused.holds(&place) => {}
            Item::Row(values) => match run.whole(values) {
                Ok(row) => rows.push((place, row)),
                Err(refusal) => refused.add_if_of_row(&run.ctx, place, refusal)?,
            },
            Item::Misfit(m) => {
                let column = m.column.map(|at| run.reading.target.columns[at].name.clone());
                let refusal = Refusal { error: m.error, column, text: Some(m.text) };
                refused.add(&run.ctx, place, refusal)?;
            }
        }
    }
    Ok((rows, count))
}

/// Writes rows in a transaction of their own, without those that are no good.
fn commit(
    run: &Run,
    mut rows: Vec<(Place, Row)>,
    (file, here): (usize, FileMark),
    mark: &mut Mark,
    refused: &mut Refused,
) -> SqlResult<()> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut next = mark.clone();
        next.files.insert(file, here);
        next.rows += rows.len() as u64;
        next.refused = refused.stored();
        let text = as_json(&next)?;
        match write(run, &rows, Some(&text)) {
            Ok(()) => {
                next.refused.clear();
                *mark = next;
                run.job.set_mark(Some(text));
                return Ok(());
            }
            Err((Some(place), e)) if is_of_row(&e) => {
                rows.retain(|(other, _)| *other != place);
                refused.add(&run.ctx, place, Refusal { error: e, column: None, text: None })?;
            }
            Err((_, e)) if After::error(&e).is_again() && attempt < MAX_ATTEMPTS => {}
            Err((None, e)) if is_of_row(&e) && !rows.is_empty() => {
                let (place, error) = culprit(run, &rows, e);
                rows.retain(|(other, _)| *other != place);
                refused.add(&run.ctx, place, Refusal { error, column: None, text: None })?;
            }
            Err((Some(place), e)) => return Err(refused.placed(e, place, None)),
            Err((None, e)) => return Err(e),
        }
    }
}

/// Of rows that fail together, once all of them are written: the first one without which those
/// before it do not.
fn culprit(run: &Run, rows: &[(Place, Row)], e: SqlError) -> (Place, SqlError) {
    let (mut good, mut bad, mut error) = (0, rows.len(), e);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match write(run, &rows[..middle], None) {
            Err((None, e)) if is_of_row(&e) => (bad, error) = (middle, e),
            _ => good = middle,
        }
    }
    (rows[bad - 1].0, error)
}

/// One try, without a mark only to see: which row failed, if it was one.
fn write(
    run: &Run,
    rows: &[(Place, Row)],
    mark: Option<&str>,
) -> Result<(), (Option<Place>, SqlError)> {
    let other = |e: SqlError| (None, e);
    let ctx = run.ctx.begin_anew().map_err(other)?;
    let known = run.info.table();
    let table = ctx.catalog.table(known.id).filter(|now| now.columns == known.columns);
    let table = table.ok_or_else(|| {
        let message = format!("the columns of \"{}\" have changed", known.name);
        other(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
    })?;
    let info = std::sync::Arc::new(TableInfo::new(&ctx, &table.clone()).map_err(other)?);
    let mut writer = Writer::new(&ctx);
    writer.use_info(&info).map_err(other)?;
    writer.insert_together(&info, rows.to_vec())?;
    writer.finish().map_err(other)?;
    let Some(mark) = mark else { return Ok(()) };
    let record = crate::jobs::Record { mark: Some(mark.into()), ..run.job.record() };
    record.put(&ctx.txn).map_err(other)?;
    ctx.txn.commit().map(|_| ()).map_err(|e| (None, kv_error(e)))
}
