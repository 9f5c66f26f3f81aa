//! What one engine answers to requests: the same for a store in this process and for a replica of a
//! range.
//!
//! Nothing is pinned from one request to the next but a scan's *cursor*: the engine's scan where
//! the last answer ended. It is known by a number and taken out of the table while it is in use; an
//! asker who comes without it, or after it was closed, is searched its place by key. Who keeps no
//! cursors searches each time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_lsm::{CommitTs, Db, KeySpan, RowBatch, RowClassFn, Scan, ScanStats, View};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::error::{Conflict, KvError, KvResult};
use crate::locks::Target;
use crate::read_set::{PointRead, Reads, successor};
use crate::row_form::RowForm;
use crate::spans::{GotMany, Jump, ScanMany, ScannedMany, SpanRows, SpanScan, Work};

/// The keys of an engine, to be asked. See the [module's page](self).
#[derive(Clone, Copy)]
pub struct StoredKeys<'a> {
    pub(crate) engine: &'a Db,
    pub(crate) row_class: RowClassFn,
    pub(crate) row_form: Option<RowForm>,
    pub(crate) cursors: Option<&'a Cursors>,
}

impl<'a> StoredKeys<'a> {
    /// Those of an engine, of whose values this is known. No cursors are kept.
    pub fn new(engine: &'a Db, row_class: RowClassFn, row_form: Option<RowForm>) -> Self {
        StoredKeys { engine, row_class, row_form, cursors: None }
    }

    /// The values of keys.
    pub fn get_many(&self, keys: &[Bytes], at: CommitTs) -> KvResult<GotMany> {
        let (mut values, stats) = self.engine.get_many(keys, at)?;
        for (key, value) in keys.iter().zip(&mut values) {
            *value = self.settled(key, value.take(), at)?;
        }
        let bytes = |(key, value): (&Bytes, &Option<Bytes>)| {
            value.as_ref().map_or(0, |value| key.len() + value.len()) as u64
        };
        let bytes = keys.iter().zip(&values).map(bytes).sum();
        let work = Work { bytes, ..work_of(stats) };
        Ok(GotMany { values, work, ..GotMany::default() })
    }

    /// What a key was found to be as of `at`, as readers see it.
    pub(crate) fn settled(
        &self,
        key: &[u8],
        found: Option<Bytes>,
        at: CommitTs,
    ) -> KvResult<Option<Bytes>> {
        match (found, self.row_form) {
            (Some(value), Some(form)) => form.settled(self.engine, (key, value), at).map(Some),
            (found, _) => Ok(found),
        }
    }

    /// Rows of spans, as of `at`, whatever the request says.
    pub fn scan_many(&self, request: &ScanMany, at: CommitTs) -> KvResult<ScannedMany> {
        let mut answer = Scanning::new(*self, request, at);
        let parts = request.scans.iter().map(|scan| answer.part(scan));
        let parts = parts.collect::<KvResult<Vec<SpanRows>>>()?;
        let work = Work { bytes: answer.bytes as u64, ..answer.work };
        Ok(ScannedMany { parts, at, undurable: None, work })
    }

    /// That nothing newer than `read_ts` is stored at a target.
    pub fn check_unwritten(&self, target: &Target, read_ts: CommitTs) -> KvResult<()> {
        let conflict = match target {
            Target::Key(key) if self.engine.max_ts(key)? > read_ts => {
                Conflict::Written(key.clone())
            }
            Target::Span(span) if self.engine.newest_above(span, read_ts)?.is_some() => {
                Conflict::WrittenSpan(span.clone())
            }
            Target::Key(_) | Target::Span(_) => return Ok(()),
        };
        Err(KvError::Retry { conflict })
    }

    /// Whether nothing that was read has changed after `floor`.
    pub fn check_reads(&self, floor: CommitTs, reads: &Reads) -> KvResult<()> {
        for read in &reads.points {
            if self.engine.newest_of(&read.key, floor)?.is_some() && !self.says_the_same(read)? {
                return Err(KvError::Retry { conflict: Conflict::Read(read.key.clone()) });
            }
        }
        for span in &reads.spans {
            if self.engine.newest_above(span, floor)?.is_some() {
                return Err(KvError::Retry { conflict: Conflict::ReadSpan(span.clone()) });
            }
        }
        Ok(())
    }

    /// Whether what mattered of a value that was written since it was read is as it was: then the
    /// read would give the same now.
    fn says_the_same(&self, read: &PointRead) -> KvResult<bool> {
        let (Some(part), Some(form)) = (&read.part, self.row_form) else { return Ok(false) };
        let at = self.engine.last_commit_ts();
        let now = self.settled(&read.key, self.engine.get(&read.key, at)?, at)?;
        Ok(match now {
            None => part.digest.is_none(),
            Some(value) => {
                part.digest.is_some() && (form.part_digest)(&value, &part.what) == part.digest
            }
        })
    }
}

/// Scans that were not finished by one answer.
#[derive(Default)]
pub(crate) struct Cursors {
    open: Mutex<HashMap<u64, Cursor>>,
    last: AtomicU64,
}

/// Where an answer ended.
struct Cursor {
    scan: Scan,
    at: CommitTs,
    /// What it would read on.
    rest: KeySpan,
    /// Whether it hands out parts of blocks.
    blocks: bool,
}

impl Cursors {
    /// The cursor of this number, if it can go on with the span.
    fn take(&self, number: u64, span: &KeySpan, at: CommitTs, of: &ScanMany) -> Option<Cursor> {
        let cursor = self.open.lock().remove(&number)?;
        let same = match of.reverse {
            true => cursor.rest == *span,
            false => cursor.rest.end == span.end && cursor.rest.start <= span.start,
        };
        (same && cursor.at == at && cursor.blocks == of.blocks).then_some(cursor)
    }

    fn keep(&self, cursor: Cursor) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(number, cursor);
        number
    }

    pub(crate) fn close(&self, number: u64) {
        // Freed outside of the lock.
        let closed = self.open.lock().remove(&number);
        drop(closed);
    }

    /// Number of open cursors.
    pub(crate) fn len(&self) -> usize {
        self.open.lock().len()
    }
}

/// An answer to [`ScanMany`] that is being made.
pub(crate) struct Scanning<'a> {
    pub(crate) stored: StoredKeys<'a>,
    pub(crate) request: &'a ScanMany,
    pub(crate) at: CommitTs,
    /// Made when it is first needed.
    view: Option<View>,
    /// Over all spans, if one scan can go from each to the next.
    all: Option<KeySpan>,
    /// That scan, between two spans.
    scan: Option<Scan>,
    /// The last rows that were found.
    last: Arc<RowBatch>,
    rows: usize,
    pub(crate) bytes: usize,
    pub(crate) work: Work,
}

/// Rows of one of many spans, as they usually are.
const SHORT: usize = 8;

/// The span over all that are asked for, if they come one behind the other and nobody is going to
/// ask for the rest of one by a cursor: to go on from one to the next is less work than to begin.
fn all_in_order(request: &ScanMany) -> Option<KeySpan> {
    let (scans, reverse) = (&request.scans, request.reverse);
    let (first, last) = (&scans.first()?.span, &scans.last()?.span);
    let alone = |scan: &SpanScan| scan.more || scan.cursor.is_some();
    let in_order = |pair: &[SpanScan]| pair[0].span.end <= pair[1].span.start;
    let in_turn = scans.len() > 1 && !reverse && !scans.iter().any(alone);
    (in_turn && scans.windows(2).all(in_order))
        .then(|| KeySpan::new(first.start.clone(), last.end.clone()))
}

/// What a scan has looked at.
pub(crate) fn work_of(stats: ScanStats) -> Work {
    Work {
        entries: stats.rows_visited,
        tombstones: stats.slabs_parked + stats.tombstones_passed,
        blocks: stats.blocks_read,
        blocks_from_disk: stats.blocks_from_disk,
        bytes: 0,
    }
}

/// A scan that passes so many rows for each that it hands out leaps over them by seeks: classes
/// are passed 64 rows at a time, and without reading blocks that have none of them.
const PASSED_MAX: u64 = 256;
/// Rows from one look at what is passed to the next.
const LEAPS: usize = 64;
/// The first rows are leapt from, whatever lies in them: who wants few of them does not pay for it.
const FIRST_LEAPS: usize = 3;

impl<'a> Scanning<'a> {
    pub(crate) fn new(stored: StoredKeys<'a>, request: &'a ScanMany, at: CommitTs) -> Self {
        let (view, scan, last) = (None, None, Arc::default());
        let (all, work) = (all_in_order(request), Work::default());
        Scanning { stored, request, at, view, all, scan, last, rows: 0, bytes: 0, work }
    }

    pub(crate) fn part(&mut self, asked: &SpanScan) -> KvResult<SpanRows> {
        let request = self.request;
        let most = asked.rows.min(request.rows.saturating_sub(self.rows));
        if asked.span.is_empty() {
            return Ok(SpanRows::default());
        }
        if most == 0 || self.bytes >= request.bytes {
            let rest = Some(asked.span.clone());
            return Ok(SpanRows { rows: Arc::default(), rest, cursor: asked.cursor });
        }
        let mut scan = self.open(asked, most)?;
        let before = work_of(scan.stats());
        // Blocks are kept by whoever reads on and on, not by many small answers.
        let keeps = request.scans.len() == 1 && asked.more;
        let mut rows = match (keeps, &self.all) {
            (true, _) => RowBatch::new(),
            (false, Some(_)) => RowBatch::copying_like(&self.last),
            (false, None) => RowBatch::copying(),
        };
        let bytes = request.bytes - self.bytes;
        let mut from = None;
        let is_full = match &request.jump {
            None => scan.extend_batch(&mut rows, most, bytes)?,
            Some(jump) => {
                let past = from.insert(asked.span.start.to_vec());
                let jump = (jump, asked.cursor.is_none());
                self.fill_jumping(&mut scan, &mut rows, (most, bytes), jump, past)?
            }
        };
        if let Some(form) = self.stored.row_form {
            form.settle_rows(&mut rows);
        }
        self.rows += rows.len();
        self.bytes += rows.byte_len();
        self.work = self.work.plus(work_of(scan.stats()).since(before));
        let mut last = Vec::new();
        let rest = match rows.len().checked_sub(1).filter(|_| is_full) {
            None => None,
            Some(row) if request.reverse => {
                rows.read_key(row, &mut last);
                Some(KeySpan::new(asked.span.start.clone(), last))
            }
            Some(row) => {
                rows.read_key(row, &mut last);
                let start = from.filter(|past| *past > last);
                let start = start.unwrap_or_else(|| successor(&last));
                Some(KeySpan::new(start, asked.span.end.clone()))
            }
        };
        let rest = rest.filter(|rest| !rest.is_empty());
        let kept = rest.as_ref().filter(|_| asked.more).zip(self.stored.cursors);
        let cursor = match kept {
            Some((rest, cursors)) => {
                let (at, blocks) = (self.at, request.blocks);
                Some(cursors.keep(Cursor { scan, at, rest: rest.clone(), blocks }))
            }
            None => {
                self.scan = self.all.is_some().then_some(scan);
                None
            }
        };
        let rows = Arc::new(rows);
        if !rows.is_empty() {
            self.last = rows.clone();
        }
        Ok(SpanRows { rows, rest, cursor })
    }

    /// Rows up to `most` or `bytes` without what lies inside of those that are jumped over; `past`
    /// is where the next one may lie. `false` at the end of the span.
    ///
    /// Where little lies between two rows, that is passed by class; where there is much, and behind
    /// the first rows of a span, the scan leaps.
    fn fill_jumping(
        &self,
        scan: &mut Scan,
        rows: &mut RowBatch,
        (most, bytes): (usize, usize),
        (jump, from_start): (&Jump, bool),
        past: &mut Vec<u8>,
    ) -> KvResult<bool> {
        let class_of = self.stored.row_class;
        let all = self.request.classes & !jump.classes == 0;
        let leaps = |key: &[u8], past: &mut Vec<u8>| {
            // What lies inside of the last row has a longer key: most rows need no look at it.
            if key.len() + jump.suffix.len() > past.len() && key < past.as_slice() {
                return false;
            }
            if all || jump.classes & (1 << class_of(key)) != 0 {
                past.clear();
                past.extend_from_slice(key);
                past.extend_from_slice(&jump.suffix);
            }
            true
        };
        // Takes one row; `Some` if that is the end, and whether there is more of the span.
        let take = |scan: &mut Scan, rows: &mut RowBatch, past: &mut Vec<u8>| {
            let before = rows.len();
            if !scan.push_row(rows)? {
                return Ok::<_, KvError>(Some(scan.is_at_limit() && !rows.is_empty()));
            }
            rows.retain_keys(before, |key| leaps(key, past));
            Ok((rows.len() >= most || rows.byte_len() >= bytes).then_some(true))
        };
        let mut few = FIRST_LEAPS;
        let mut step = 4;
        loop {
            // To take a row is to look for the next one, over all that lies in between.
            while few > 0 && from_start {
                few -= 1;
                if let Some(more) = take(scan, rows, past)? {
                    return Ok(more);
                }
                scan.seek(past)?;
            }
            let (before, visited) = (rows.len(), scan.stats().rows_visited);
            let goes_on = scan.extend_batch(rows, most.min(before + step), bytes)?;
            rows.retain_keys(before, |key| leaps(key, past));
            if !goes_on {
                return Ok(scan.is_at_limit() && !rows.is_empty());
            }
            if rows.len() >= most || rows.byte_len() >= bytes {
                return Ok(true);
            }
            step = (step * 4).min(1_024);
            let visited = scan.stats().rows_visited - visited;
            if visited < PASSED_MAX * (rows.len() - before).max(1) as u64 {
                continue;
            }
            step = 1;
            for _ in 0..LEAPS {
                scan.seek(past)?;
                if let Some(more) = take(scan, rows, past)? {
                    return Ok(more);
                }
            }
        }
    }

    /// The engine's scan at the place where the span begins.
    fn open(&mut self, asked: &SpanScan, most: usize) -> KvResult<Scan> {
        let request = self.request;
        if let Some(all) = self.all.clone() {
            let mut scan = match self.scan.take() {
                Some(scan) => scan,
                None => self.new_scan(all, Some(SHORT))?,
            };
            scan.go_on_with(asked.span.clone(), most);
            return Ok(scan);
        }
        let known = asked
            .cursor
            .zip(self.stored.cursors)
            .and_then(|(number, cursors)| cursors.take(number, &asked.span, self.at, request));
        if let Some(mut cursor) = known {
            if cursor.rest.start < asked.span.start {
                cursor.scan.seek(&asked.span.start)?;
            }
            return Ok(cursor.scan);
        }
        self.new_scan(asked.span.clone(), (!asked.more).then_some(most))
    }

    fn new_scan(&mut self, span: KeySpan, limit: Option<usize>) -> KvResult<Scan> {
        let ScanMany { reverse, classes, blocks, .. } = *self.request;
        let options =
            braid_lsm::ScanOptions { reverse, classes, limit, blocks, ..Default::default() };
        let view = match &self.view {
            Some(view) => view,
            None => self.view.insert(self.stored.engine.view(self.at)?),
        };
        Ok(view.scan(span, options)?)
    }
}
