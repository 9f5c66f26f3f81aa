//! [`Spans`] over one engine in this process: every request is a call.
//!
//! Nothing is pinned from one request to the next but a scan's *cursor*: the engine's scan where
//! the last answer ended. It is known by a number and taken out of the table while it is in use; an
//! asker who comes without it, or after it was closed, is searched its place by key.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use braid_lsm::{CommitTs, IngestOptions, KeySpan, RowBatch, Scan, ScanStats, View};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::error::{Conflict, KvError, KvResult};
use crate::locks::{Target, TxnId};
use crate::read_set::successor;
use crate::spans::{
    Begun, Commit, GetMany, GotMany, GotOne, Grant, Jump, LockMany, LockOne, LockReport,
    LockedMany, LockedOne, ReadAt, ScanMany, ScannedMany, SpanRows, SpanScan, Spans, Validate,
    Work, Writes,
};
use crate::store::Store;
use crate::watch::{Watch, Watched};

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
}

impl Cursors {
    /// The cursor of this number, if it can go on with the span.
    fn take(&self, number: u64, span: &KeySpan, at: CommitTs, reverse: bool) -> Option<Cursor> {
        let cursor = self.open.lock().remove(&number)?;
        let same = match reverse {
            true => cursor.rest == *span,
            false => cursor.rest.end == span.end && cursor.rest.start <= span.start,
        };
        (same && cursor.at == at).then_some(cursor)
    }

    fn keep(&self, cursor: Cursor) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(number, cursor);
        number
    }

    fn close(&self, number: u64) {
        // Freed outside of the lock.
        let closed = self.open.lock().remove(&number);
        drop(closed);
    }

    /// Number of open cursors.
    pub(crate) fn len(&self) -> usize {
        self.open.lock().len()
    }
}

impl Spans for Store {
    fn begin(&self, as_of: Option<CommitTs>) -> KvResult<Begun> {
        let txn = self.new_txn_id();
        let read_ts = match as_of {
            None => self.enter(txn),
            Some(asked) => self.enter_at(txn, asked)?,
        };
        Ok(Begun { txn, read_ts })
    }

    fn refresh(&self, txn: TxnId, old: CommitTs) -> CommitTs {
        let new = self.enter(txn);
        if new != old {
            self.leave(txn, old);
        }
        new
    }

    fn leave(&self, txn: TxnId, read_ts: CommitTs) {
        self.forget_active(txn, read_ts);
    }

    fn all_younger_than(&self, txn: TxnId) -> bool {
        Store::all_younger_than(self, txn)
    }

    fn unique_number(&self) -> i64 {
        Store::unique_number(self)
    }

    fn wall_clock_us(&self) -> u64 {
        Store::wall_clock_us(self)
    }

    fn get_many(&self, request: &GetMany) -> KvResult<GotMany> {
        let at = self.time_of(request.at);
        let noting = request.notes && self.durable().open_at(at).is_some();
        let values = Vec::with_capacity(request.keys.len());
        let mut out = GotMany { values, ..GotMany::default() };
        for key in &request.keys {
            let GotOne { value, undurable, work } = self.get_at(key, at, noting)?;
            out.undurable = out.undurable.max(undurable);
            out.work = out.work.plus(work);
            out.values.push(value);
        }
        Ok(out)
    }

    fn get(&self, key: &[u8], at: ReadAt, notes: bool) -> KvResult<GotOne> {
        let at = self.time_of(at);
        self.get_at(key, at, notes && self.durable().open_at(at).is_some())
    }

    fn scan_many(&self, request: &ScanMany) -> KvResult<ScannedMany> {
        let at = self.time_of(request.at);
        let (view, work) = (None, Work::default());
        let mut answer = Scanning { store: self, request, at, view, rows: 0, bytes: 0, work };
        let mut parts = Vec::with_capacity(request.scans.len());
        let mut undurable = None;
        for scan in &request.scans {
            let part = answer.part(scan)?;
            if request.notes {
                undurable = undurable.max(self.undurable_in(&read_part(scan, &part, request), at)?);
            }
            parts.push(part);
        }
        let work = Work { bytes: answer.bytes as u64, ..answer.work };
        Ok(ScannedMany { parts, at, undurable, work })
    }

    fn divide(&self, span: &KeySpan, parts: usize, least: u64) -> KvResult<Vec<Bytes>> {
        Ok(self.engine().view(self.time_of(ReadAt::Latest))?.divide(span, parts, least)?)
    }

    fn stored_bytes(&self, span: &KeySpan) -> KvResult<u64> {
        Ok(self.engine().view(self.time_of(ReadAt::Latest))?.stored_bytes(span)?)
    }

    fn close_cursor(&self, cursor: u64) {
        self.cursors().close(cursor);
    }

    fn lock_many(&self, request: LockMany, stop: &AtomicBool) -> LockedMany {
        let LockMany { txn, items, read_ts, wait, timeout } = request;
        let mut answer = LockedMany::default();
        for item in &items {
            let locked = self.lock(LockOne { txn, item, read_ts, wait, timeout }, stop);
            answer.grants.extend(locked.grant);
            answer.error = locked.error;
            answer.waited_nanos += locked.waited_nanos;
            if answer.error.is_some() {
                break;
            }
        }
        answer
    }

    fn lock(&self, request: LockOne<'_>, stop: &AtomicBool) -> LockedOne {
        let LockOne { item, read_ts, .. } = request;
        let mut waited_nanos = 0;
        let (grant, error) = match self.locks().acquire(request, stop, &mut waited_nanos) {
            Ok(true) if !item.check => (Some(Grant::Held), None),
            Ok(true) => match self.check_unwritten(&item.target, read_ts) {
                Ok(()) => (Some(Grant::Held), None),
                Err(error) => (Some(Grant::Newer), Some(error)),
            },
            Ok(false) => (Some(Grant::Skipped), None),
            Err(error) => (None, Some(error)),
        };
        LockedOne { grant, error, waited_nanos }
    }

    fn release(&self, txn: TxnId, targets: &[Target], ended: bool) {
        self.locks().release(txn, targets.iter(), ended);
    }

    fn validate(&self, request: &Validate) -> KvResult<()> {
        self.check_reads(request.floor, &request.reads)
    }

    fn commit(&self, request: Commit) -> KvResult<CommitTs> {
        let Commit { read_ts, reads, writes, waits } = request;
        match writes {
            Writes::Batch(batch) => self.commit_batch(read_ts, reads.as_ref(), waits, batch),
            Writes::Files(files) => self.commit_files(read_ts, reads.as_ref(), &files),
        }
    }

    fn ingest(&self, files: &[PathBuf], at: CommitTs) -> KvResult<()> {
        let options = IngestOptions { ts_override: Some(at), ..IngestOptions::default() };
        match self.engine().ingest(files, options) {
            Err(braid_lsm::Error::TimestampContract { key, have, .. }) if have > at => {
                Err(KvError::Retry { conflict: Conflict::Written(key.into()) })
            }
            other => Ok(other?),
        }
    }

    fn watch(&self, watch: Watch) -> u64 {
        let _order = self.commit_order.lock();
        self.watches().open(watch)
    }

    fn watched(&self, watch: u64, upto: CommitTs) -> Watched {
        self.watches().take(watch, upto)
    }

    fn unwatch(&self, watch: u64) {
        self.watches().close(watch);
    }

    fn await_durable(&self, ts: CommitTs) -> KvResult<()> {
        self.durable().wait(ts)
    }

    fn describe_locks(&self) -> LockReport {
        LockReport {
            lines: self.locks().describe(),
            waiting: self.locks().waiting(),
            locks: self.locks().all(),
        }
    }
}

impl Store {
    fn time_of(&self, at: ReadAt) -> CommitTs {
        match at {
            ReadAt::Time(ts) => ts,
            ReadAt::Latest => self.now(),
        }
    }

    /// A value, and, if `noting`, what of the answer is not durable.
    fn get_at(&self, key: &[u8], at: CommitTs, noting: bool) -> KvResult<GotOne> {
        let length =
            |value: &Option<Bytes>| value.as_ref().map_or(0, |v| key.len() + v.len()) as u64;
        if !noting {
            let (value, stats) = self.engine().get_with_stats(key, at)?;
            let work = Work { bytes: length(&value), ..work_of(stats) };
            return Ok(GotOne { value, undurable: None, work });
        }
        let view = self.engine().view(at)?;
        let found = view.get_with_ts(key)?;
        let (blocks, blocks_from_disk) = view.blocks_read();
        let seen = match &found {
            Some((_, ts)) => Some(*ts).filter(|ts| *ts > self.durable().upto()),
            // What is not there may be missing because of a newer deletion.
            None => {
                let key = Bytes::copy_from_slice(key);
                self.undurable_in(&KeySpan::new(key.clone(), successor(&key)), at)?
            }
        };
        let value = found.map(|(value, _)| value);
        let (entries, bytes) = (u64::from(value.is_some()), length(&value));
        let work = Work { entries, blocks, blocks_from_disk, bytes, tombstones: 0 };
        Ok(GotOne { value, undurable: seen.map(|ts| ts.min(at)), work })
    }

    /// The newest thing in a span, up to `at`, that is not durable.
    fn undurable_in(&self, span: &KeySpan, at: CommitTs) -> KvResult<Option<CommitTs>> {
        if self.durable().open_at(at).is_none() || span.is_empty() {
            return Ok(None);
        }
        let newest = self.engine().newest_above(span, self.durable().upto())?;
        // What is newer than the view was not seen, but may hide what was.
        Ok(newest.map(|ts| ts.min(at)))
    }

    /// That nothing newer than `read_ts` is stored at a target.
    fn check_unwritten(&self, target: &Target, read_ts: CommitTs) -> KvResult<()> {
        let conflict = match target {
            Target::Key(key) if self.engine().max_ts(key)? > read_ts => {
                Conflict::Written(key.clone())
            }
            Target::Span(span) if self.engine().newest_above(span, read_ts)?.is_some() => {
                Conflict::WrittenSpan(span.clone())
            }
            Target::Key(_) | Target::Span(_) => return Ok(()),
        };
        Err(KvError::Retry { conflict })
    }
}

/// What an answer has read of a span: its rows, and where there were none.
fn read_part(scan: &SpanScan, part: &SpanRows, request: &ScanMany) -> KeySpan {
    let span = &scan.span;
    match &part.rest {
        None => span.clone(),
        Some(rest) if request.reverse => KeySpan::new(rest.end.clone(), span.end.clone()),
        Some(rest) => KeySpan::new(span.start.clone(), rest.start.clone()),
    }
}

/// An answer to [`ScanMany`] that is being made.
struct Scanning<'a> {
    store: &'a Store,
    request: &'a ScanMany,
    at: CommitTs,
    /// Made when it is first needed.
    view: Option<View>,
    rows: usize,
    bytes: usize,
    work: Work,
}

/// What a scan has looked at.
fn work_of(stats: ScanStats) -> Work {
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

impl Scanning<'_> {
    fn part(&mut self, asked: &SpanScan) -> KvResult<SpanRows> {
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
        let mut rows = if keeps { RowBatch::new() } else { RowBatch::copying() };
        let bytes = request.bytes - self.bytes;
        let mut from = None;
        let is_full = match &request.jump {
            None => scan.extend_batch(&mut rows, most, bytes)?,
            Some(jump) => {
                let past = from.insert(asked.span.start.to_vec());
                self.fill_jumping(&mut scan, &mut rows, (most, bytes), jump, past)?
            }
        };
        self.rows += rows.len();
        self.bytes += rows.byte_len();
        self.work = self.work.plus(work_of(scan.stats()).since(before));
        let rest = match rows.len().checked_sub(1).map(|last| rows.key(last)) {
            _ if !is_full => None,
            None => None,
            Some(last) if request.reverse => {
                Some(KeySpan::new(asked.span.start.clone(), last.to_vec()))
            }
            Some(last) => {
                let start = from.filter(|past| past.as_slice() > last);
                let start = start.unwrap_or_else(|| successor(last));
                Some(KeySpan::new(start, asked.span.end.clone()))
            }
        };
        let rest = rest.filter(|rest| !rest.is_empty());
        let cursor = rest.as_ref().filter(|_| asked.more).map(|rest| {
            let rest = rest.clone();
            self.store.cursors().keep(Cursor { scan, at: self.at, rest })
        });
        Ok(SpanRows { rows: Arc::new(rows), rest, cursor })
    }

    /// Rows up to `most` or `bytes` without what lies inside of those that are jumped over; `past`
    /// is where the next one may lie. `false` at the end of the span.
    ///
    /// Where little lies between two rows, that is passed by class; where there is much, the scan
    /// leaps.
    fn fill_jumping(
        &self,
        scan: &mut Scan,
        rows: &mut RowBatch,
        (most, bytes): (usize, usize),
        jump: &Jump,
        past: &mut Vec<u8>,
    ) -> KvResult<bool> {
        let class_of = self.store.row_class();
        let all = self.request.classes & !jump.classes == 0;
        let leaps = |key: &[u8], past: &mut Vec<u8>| {
            if key < past.as_slice() {
                return false;
            }
            if all || jump.classes & (1 << class_of(key)) != 0 {
                past.clear();
                past.extend_from_slice(key);
                past.extend_from_slice(&jump.suffix);
            }
            true
        };
        let mut step = 4;
        loop {
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
                let before = rows.len();
                if !scan.push_row(rows)? {
                    return Ok(scan.is_at_limit() && !rows.is_empty());
                }
                rows.retain_keys(before, |key| leaps(key, past));
                if rows.len() >= most || rows.byte_len() >= bytes {
                    return Ok(true);
                }
            }
        }
    }

    /// The engine's scan at the place where the span begins.
    fn open(&mut self, asked: &SpanScan, most: usize) -> KvResult<Scan> {
        let request = self.request;
        let known = asked.cursor.and_then(|number| {
            self.store.cursors().take(number, &asked.span, self.at, request.reverse)
        });
        if let Some(mut cursor) = known {
            if cursor.rest.start < asked.span.start {
                cursor.scan.seek(&asked.span.start)?;
            }
            return Ok(cursor.scan);
        }
        let options = braid_lsm::ScanOptions {
            reverse: request.reverse,
            classes: request.classes,
            limit: (!asked.more).then_some(most),
            ..Default::default()
        };
        let view = match &self.view {
            Some(view) => view,
            None => self.view.insert(self.store.engine().view(self.at)?),
        };
        Ok(view.scan(asked.span.clone(), options)?)
    }
}

impl Store {
    /// Scans that wait to be asked on.
    pub fn open_cursors(&self) -> usize {
        self.cursors().len()
    }
}
