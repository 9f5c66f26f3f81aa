//! [`Spans`] over one engine in this process: every request is a call.
//!
//! What an engine answers is in `stored.rs`; here are locks, what is not durable yet, and time.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use braid_lsm::{CommitTs, IngestOptions, KeySpan};
use bytes::Bytes;

use crate::error::{Conflict, KvError, KvResult};
use crate::locks::{Target, TxnId};
use crate::read_set::successor;
use crate::spans::{
    Begun, Commit, Committed, GetMany, GotMany, GotOne, Grant, LockMany, LockOne, LockReport,
    LockedMany, LockedOne, ReadAt, ScanMany, ScannedMany, SpanRows, SpanScan, Spans, Validate,
    Work, Writes,
};
use crate::store::Store;
use crate::stored::{Scanning, work_of};
use crate::watch::{Watch, Watched};

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
        if !noting {
            return self.stored().get_many(&request.keys, at);
        }
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
        let mut answer = Scanning::new(self.stored(), request, at);
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
            Ok(true) => match self.stored().check_unwritten(&item.target, read_ts) {
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

    fn commit(&self, request: Commit) -> KvResult<Committed> {
        let Commit { read_ts, reads, writes, names, waits, .. } = request;
        let at = match writes {
            Writes::Batch(batch) => {
                self.commit_batch(read_ts, reads.as_ref(), waits, (batch, &names))
            }
            Writes::Files(files) => self.commit_files(read_ts, reads.as_ref(), &files),
        };
        Ok(Committed { at: at?, participants: 1 })
    }

    fn takes_files(&self) -> bool {
        true
    }

    fn gives_key_times(&self) -> bool {
        true
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
            let value = self.stored().settled(key, value, at)?;
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
        let value = self.stored().settled(key, found.map(|(value, _)| value), at)?;
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

impl Store {
    /// Scans that wait to be asked on.
    pub fn open_cursors(&self) -> usize {
        self.cursors().len()
    }
}
