//! [`Spans`] as a whole, and bulk loads. Commits are in [`crate::several`].

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_env::clock::Hlc;
use braid_kv::{
    Begun, Commit, Committed, GetMany, GotMany, KvError, KvResult, LeaseHolder, LeaseHome,
    LockMany, LockReport, LockedMany, NodeCall, NodeSettings, ScanMany, ScannedMany, ShownNode,
    ShownRange, Spans, Target, TxnId, Validate, Watch, Watched, Writes,
};
use braid_lsm::{BatchWrite, CommitTs, KeySpan, visit_sst};
use braid_range::{Answer, Ask, NodeId, TxnId as CommitName, Write};
use bytes::Bytes;

use crate::news::News;
use crate::router::{Router, Sent, unexpected};

/// Bytes of rows that are taken in at once.
const INGEST_BYTES: usize = 1 << 20;
/// Bytes that the files of a commit have at most: it is held in memory, here and by replicas.
const COMMIT_BYTES_MAX: usize = 256 << 20;
/// What was said of settings is said again each time that they were waited for so often in vain.
const WAITS_TO_WORD: u64 = 2;

impl Router {
    /// What a transaction writes, in the order in which it must happen.
    pub(crate) fn writes_of(&self, writes: &Writes) -> KvResult<Vec<Write>> {
        let copy = Bytes::copy_from_slice;
        match writes {
            Writes::Batch(batch) => {
                let write = |write| match write {
                    BatchWrite::Put(key, value) => Write::Put(copy(key), copy(value)),
                    BatchWrite::Delete(key) => Write::Delete(copy(key)),
                    BatchWrite::DeleteSpan(start, end) => {
                        Write::DeleteSpan(KeySpan::new(copy(start), copy(end)))
                    }
                };
                Ok(batch.writes().map(write).collect())
            }
            Writes::Files(files) => {
                let rows = self.rows_of(files)?.into_iter();
                Ok(rows.map(|(key, value)| Write::Put(key, value)).collect())
            }
        }
    }

    fn rows_of(&self, files: &[PathBuf]) -> KvResult<Vec<(Bytes, Bytes)>> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for file in files {
            visit_sst(&*self.options.fs, file, &mut |key, value| {
                bytes += key.len() + value.len();
                if bytes <= COMMIT_BYTES_MAX {
                    rows.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
                }
            })?;
            if bytes > COMMIT_BYTES_MAX {
                return Err(KvError::Refused("a commit writes more than 256 MiB".into()));
            }
        }
        Ok(rows)
    }

    /// Takes the rows of files in, a part after the other: all of them may be more than memory has
    /// room for.
    fn ingest_rows(&self, files: &[PathBuf], at: CommitTs) -> KvResult<()> {
        let (mut rows, mut bytes, mut done) = (Vec::new(), 0, Ok(()));
        for file in files {
            visit_sst(&*self.options.fs, file, &mut |key, value| {
                if done.is_err() {
                    return;
                }
                bytes += key.len() + value.len();
                rows.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
                if bytes >= INGEST_BYTES {
                    bytes = 0;
                    done = self.ingest_part(std::mem::take(&mut rows), at);
                }
            })?;
            std::mem::replace(&mut done, Ok(()))?;
        }
        self.ingest_part(rows, at)
    }

    fn ingest_part(&self, mut left: Vec<(Bytes, Bytes)>, at: CommitTs) -> KvResult<()> {
        left.reverse();
        while let Some((key, _)) = left.last() {
            let route = self.route(key)?;
            let (mut rows, mut bytes) = (Vec::new(), 0);
            while bytes < INGEST_BYTES
                && let Some((key, value)) = left.pop_if(|(key, _)| route.span.contains(key))
            {
                bytes += key.len() + value.len();
                rows.push((key, value));
            }
            let name = CommitName { began: self.now(), number: self.new_txn().0 };
            let ask = |_| Ask::Ingest { txn: name, at, rows: rows.clone() };
            match self.send_stoppable(&route, &ask)? {
                Sent::Moved => left.extend(rows.into_iter().rev()),
                Sent::Answer(Answer::Committed { .. }) => {}
                Sent::Answer(other) => return Err(unexpected(other)),
            }
        }
        Ok(())
    }

    fn divided(&self, span: &KeySpan, parts: usize, least: u64) -> KvResult<Vec<Bytes>> {
        let mut cuts = Vec::new();
        for (route, piece) in self.pieces(span)? {
            if piece.start != span.start {
                cuts.push(piece.start.clone());
            }
            match self.send_for_sizes(&route, &Ask::Divide(piece.clone(), parts, least))? {
                Sent::Moved => {}
                Sent::Answer(Answer::Divided(more)) => cuts.extend(more),
                Sent::Answer(other) => return Err(unexpected(other)),
            }
        }
        // Too many of them are thinned out evenly.
        let most = parts.max(1) - 1;
        let step = cuts.len().div_ceil(most.max(1)).max(1);
        Ok(cuts.into_iter().skip(step - 1).step_by(step).take(most).collect())
    }
}

impl Spans for Router {
    fn begin(&self, as_of: Option<CommitTs>) -> KvResult<Begun> {
        // A time that is taken is protected before anybody says what is read, and nobody says that
        // all others up to this one are over before it is known to run.
        let mut txns = self.txns.lock();
        let txn = self.new_txn();
        let now = self.now();
        let oldest = CommitTs(self.options.oldest_readable.load(Ordering::Acquire));
        if let Some(asked) = as_of.filter(|asked| *asked > now || *asked < oldest) {
            return Err(KvError::TimestampOutOfWindow { asked, oldest, newest: now });
        }
        txns.begin(txn, as_of);
        if as_of.is_none() {
            txns.read_from(now, self.options.home, self.is_sure(now));
        }
        Ok(Begun { txn, read_ts: as_of.unwrap_or(now) })
    }

    fn refresh(&self, txn: TxnId, old: CommitTs) -> CommitTs {
        let mut txns = self.txns.lock();
        let now = self.now();
        txns.read_no_more(old);
        txns.reads_now(txn);
        txns.read_from(now, self.options.home, self.is_sure(now));
        now
    }

    fn settle(&self, txn: TxnId, old: CommitTs) -> CommitTs {
        self.settled(txn, old)
    }

    fn leave(&self, txn: TxnId, read_ts: CommitTs) {
        let ranges = {
            let mut txns = self.txns.lock();
            // The time of the past that it read may be another one's own.
            if !txns.reads_past(txn) {
                txns.read_no_more(read_ts);
            }
            txns.end(txn)
        };
        ranges.into_iter().for_each(|range| self.end_in(txn, range));
    }

    fn all_younger_than(&self, txn: TxnId) -> bool {
        self.txns.lock().all_younger_than(txn)
    }

    fn unique_number(&self) -> i64 {
        self.new_number()
    }

    fn wall_clock_us(&self) -> u64 {
        self.options.wall.now_micros()
    }

    fn told_clock_us(&self) -> u64 {
        let wall = self.options.wall.now_micros();
        let last = self.options.hlc.peek();
        let lifted = Hlc::micros_of(last);
        if lifted < wall {
            return wall;
        }
        // What was stamped in that microsecond is in front of the next one, and what will be is
        // behind it. Who only asks for the time does not lift the clock.
        let stamped = u64::from(last > Hlc::from_micros(lifted));
        let told = (lifted + stamped).min(wall + self.options.max_clock_offset_micros);
        self.options.hlc.update(Hlc::from_micros(told));
        told
    }

    fn get_many(&self, request: &GetMany) -> KvResult<GotMany> {
        self.get_keys(request)
    }

    fn scan_many(&self, request: &ScanMany) -> KvResult<ScannedMany> {
        self.scan_spans(request)
    }

    fn divide(&self, span: &KeySpan, parts: usize, least: u64) -> KvResult<Vec<Bytes>> {
        self.divided(span, parts, least)
    }

    fn stored_bytes(&self, span: &KeySpan) -> KvResult<u64> {
        let mut sum = 0;
        for (route, piece) in self.pieces(span)? {
            match self.send_for_sizes(&route, &Ask::StoredBytes(piece.clone()))? {
                Sent::Moved => {}
                Sent::Answer(Answer::Stored(bytes)) => sum += bytes,
                Sent::Answer(other) => return Err(unexpected(other)),
            }
        }
        Ok(sum)
    }

    /// There are none.
    fn close_cursor(&self, _cursor: u64) {}

    fn lock_many(&self, request: LockMany, stop: &AtomicBool) -> LockedMany {
        self.lock_all(&request, stop)
    }

    fn release(&self, txn: TxnId, targets: &[Target], ended: bool) {
        self.release_all(txn, targets, ended);
    }

    fn check_locks(&self, txn: TxnId) -> KvResult<()> {
        self.has_all_locks(txn)
    }

    fn lock_aside(&self, request: LockMany) -> KvResult<()> {
        self.lock_beside(&request)
    }

    fn lease_home(&self) -> Option<LeaseHome> {
        let max_clock_offset_us = self.options.max_clock_offset_micros;
        Some(LeaseHome { holder: self.lease_holder(), max_clock_offset_us })
    }

    fn holds_lease(&self, held: bool) {
        self.options.recalls.set_held(self.options.coordinator, held);
    }

    fn await_recall(&self, patience: Duration) -> bool {
        self.options.recalls.await_recall(self.options.coordinator, patience)
    }

    fn recall(&self, holder: LeaseHolder) -> bool {
        self.recall_lease(holder)
    }

    fn validate(&self, request: &Validate) -> KvResult<()> {
        self.validate_reads(request)
    }

    fn commit(&self, request: Commit) -> KvResult<Committed> {
        let committed = self.commit_writes(&request)?;
        // Whoever begins here from now on sees it.
        self.options.hlc.update(committed.at.0);
        Ok(committed)
    }

    fn participants(&self, writes: &[KeySpan]) -> KvResult<u64> {
        let mut ranges = BTreeSet::new();
        for span in writes {
            ranges.extend(self.pieces(span)?.into_iter().map(|(route, _)| route.range));
        }
        Ok(ranges.len() as u64)
    }

    fn ingest(&self, files: &[PathBuf], at: CommitTs) -> KvResult<()> {
        self.ingest_rows(files, at)
    }

    fn watch(&self, watch: Watch) -> u64 {
        self.open_watch(watch)
    }

    fn watched(&self, watch: u64, upto: CommitTs) -> Watched {
        self.look_at_watch(watch, upto)
    }

    fn unwatch(&self, watch: u64) {
        self.watches.close(watch);
    }

    /// What was answered is durable on a majority of the nodes.
    fn await_durable(&self, _ts: CommitTs) -> KvResult<()> {
        Ok(())
    }

    fn split_at(&self, key: &[u8]) -> KvResult<()> {
        let key = Bytes::copy_from_slice(key);
        loop {
            let route = self.route(&key)?;
            if route.span.start == key {
                return Ok(());
            }
            // It has other keys when it is split.
            let ask = |_| Ask::SplitAt(key.clone());
            if let Sent::Answer(other) = self.send_stoppable(&route, &ask)? {
                return Err(unexpected(other));
            }
        }
    }

    fn describe_ranges(&self) -> KvResult<Option<Vec<ShownRange>>> {
        self.shown_ranges().map(Some)
    }

    fn describe_nodes(&self) -> Vec<ShownNode> {
        self.shown_nodes()
    }

    fn goes_by_settings(&self, version: u64) {
        if self.transport.news().is_some_and(|news| news.goes_by(version)) {
            self.transport.spread_news();
        }
    }

    fn await_settings(&self, known: u64, patience: Duration) -> u64 {
        let Some(news) = self.transport.news() else {
            self.transport.pause(patience);
            return known;
        };
        let newest = news.wait(known, patience);
        // Words may have been lost: that they are said again in vain costs all nodes something.
        let waited = self.silent_waits.fetch_add(1, Ordering::Relaxed);
        if newest <= known && waited.is_multiple_of(WAITS_TO_WORD) {
            self.transport.spread_news();
        }
        newest
    }

    fn call_node(&self, node: u64, body: Bytes, patience: Duration) -> Option<Bytes> {
        self.transport.call(NodeId(node), body, patience)
    }

    fn next_call(&self, patience: Duration) -> Option<NodeCall> {
        self.transport.next_call(patience)
    }

    fn answer_call(&self, call: &NodeCall, answer: Bytes) {
        self.transport.answer_call(call, answer);
    }

    fn has_messages(&self, count: u64) {
        if self.transport.news().is_some_and(|news| news.has_messages(count)) {
            self.transport.spread_news();
        }
    }

    fn await_messages(&self, known: Option<u64>, patience: Duration) {
        match self.transport.news() {
            Some(news) => news.wait_for_messages(known, patience),
            None => self.transport.pause(patience),
        }
    }

    fn settings_of_nodes(&self) -> Vec<NodeSettings> {
        let now = self.options.wall.monotonic_nanos();
        let of_nodes = |news: &News| news.of_nodes(self.options.home, now);
        self.transport.news().map(of_nodes).unwrap_or_default()
    }

    fn describe_locks(&self) -> LockReport {
        let mut out = LockReport::default();
        for route in self.routes() {
            let sent = self.send_stoppable(&route, &|_| Ask::ShowLocks);
            if let Ok(Sent::Answer(Answer::Locks(locks))) = sent {
                out.lines.push_str(&locks.lines);
                out.waiting += locks.waiting;
                out.locks.extend(locks.locks);
            }
        }
        out
    }
}
