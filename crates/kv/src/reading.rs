//! A transaction's reads: answers of the far side with its own writes laid over them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use braid_env::memory::LARGE_VALUE;
use braid_lsm::{CommitTs, KeySpan, RowBatch};
use bytes::Bytes;
use foldhash::{HashMap, HashSet};

use crate::buffer::Lookup;
use crate::error::KvResult;
use crate::own_writes::Earlier;
use crate::read_set::ReadPart;
use crate::scan::{ReadMode, ScanOptions, TxnScan};
use crate::spans::{GetMany, Jump, ReadAt, ScanMany, ScannedMany, SpanScan};
use crate::txn::{SavepointId, State, Txn};

/// Bytes of one answer to a scan.
const ANSWER_BYTES: usize = 1 << 20;
/// Bytes of rows that are asked for ahead.
const AHEAD_BYTES: usize = 2 << 20;
/// Rows of each span that [`Txn::scan_ahead`] asks for: more are asked for when they are needed.
const ROWS_AHEAD: usize = 64;

/// Bytes of those values of one answer that are large.
fn large_bytes(values: &[Option<Bytes>]) -> usize {
    let large = |value: &&Bytes| value.len() >= LARGE_VALUE;
    values.iter().flatten().filter(large).map(Bytes::len).sum()
}

impl Txn {
    /// The newest value at or below the read timestamp, own writes included.
    pub fn get(&self, key: &[u8]) -> KvResult<Option<Bytes>> {
        self.get_as(key, ReadMode::Recorded)
    }

    /// The value of a key as the mode says; own writes are always included.
    pub fn get_as(&self, key: &[u8], mode: ReadMode) -> KvResult<Option<Bytes>> {
        self.counts.gets.fetch_add(1, Ordering::Relaxed);
        let at = {
            let mut state = self.open_state()?;
            match state.own.get(key)? {
                Lookup::Put(value) => return Ok(Some(value)),
                Lookup::Deleted => return Ok(None),
                Lookup::Unknown => {}
            }
            if mode == ReadMode::Recorded && self.records_reads() && !state.is_own(key) {
                state.reads.add_point(key);
                state.count_reads()?;
            }
            let at = state.read_at(mode);
            if let Some(value) = state.ahead.point(key, at) {
                return Ok(value.clone());
            }
            at
        };
        let _asking = self.count_request();
        let got = self.spans().get(key, at, self.options.shown.is_some())?;
        self.counts.add_work(got.work);
        self.note(got.undurable);
        self.pass(got.value.as_ref().map_or(0, Bytes::len))?;
        Ok(got.value)
    }

    /// As [`Txn::get_as`], for who looks at nothing but a part of the value: the commit depends on
    /// that part only. `what` names it to the store's [`RowForm`](crate::RowForm).
    pub fn get_part(&self, key: &[u8], mode: ReadMode, what: &Bytes) -> KvResult<Option<Bytes>> {
        let form = self.coordinator().row_form().filter(|_| self.is_validated(mode));
        let Some(form) = form else { return self.get_as(key, mode) };
        let is_ours = {
            let state = self.open_state()?;
            state.is_own(key) || !matches!(state.own.get(key)?, Lookup::Unknown)
        };
        if is_ours {
            return self.get_as(key, mode);
        }
        let value = self.get_as(key, ReadMode::Unrecorded)?;
        let part = match &value {
            None => Some(None),
            Some(value) => (form.part_digest)(value, what).map(Some),
        };
        let mut state = self.open_state()?;
        match part {
            Some(digest) => state.reads.add_part(key, ReadPart { what: what.clone(), digest }),
            None => state.reads.add_point(key),
        }
        state.count_reads()?;
        Ok(value)
    }

    /// Whether the commit is going to check what such reads have read.
    pub fn is_validated(&self, mode: ReadMode) -> bool {
        mode == ReadMode::Recorded && self.records_reads()
    }

    /// The values of keys, each as [`Txn::get_as`] gives it, in as few requests as there are
    /// batches. The far side is asked in key order, so that it reads together what lies together.
    pub fn get_many(&self, keys: &[Bytes], mode: ReadMode) -> KvResult<Vec<Option<Bytes>>> {
        self.counts.gets.fetch_add(keys.len() as u64, Ordering::Relaxed);
        let mut out = vec![None; keys.len()];
        let mut wanted = Vec::with_capacity(keys.len());
        let at = {
            let mut state = self.open_state()?;
            let at = state.read_at(mode);
            let records = mode == ReadMode::Recorded && self.records_reads();
            for (n, key) in keys.iter().enumerate() {
                match state.own.get(key)? {
                    Lookup::Put(value) => out[n] = Some(value),
                    Lookup::Deleted => {}
                    Lookup::Unknown => {
                        if records && !state.is_own(key) {
                            state.reads.add_point(key);
                        }
                        match state.ahead.point(key, at) {
                            Some(value) => out[n] = value.clone(),
                            None => wanted.push(n),
                        }
                    }
                }
            }
            state.count_reads()?;
            at
        };
        let wanted = in_key_order(keys, wanted);
        for part in wanted.chunks(self.batch_max().max(1)) {
            let _asking = self.count_request();
            let notes = self.options.shown.is_some();
            let asked = part.iter().map(|n| keys[*n].clone()).collect();
            let got = self.spans().get_many(&GetMany { keys: asked, at, notes })?;
            self.counts.add_work(got.work);
            self.note(got.undurable);
            self.pass(large_bytes(&got.values))?;
            for (n, value) in part.iter().zip(got.values) {
                out[*n] = value;
            }
        }
        Ok(out)
    }

    /// A span as parts of about the same number of stored bytes, in key order, for readers that
    /// work side by side. At most `parts`; fewer, so that each has at least `least` bytes.
    pub fn divide(&self, span: &KeySpan, parts: usize, least: u64) -> KvResult<Vec<KeySpan>> {
        if parts < 2 {
            return Ok(vec![span.clone()]);
        }
        let _asking = self.count_request();
        let mut start = span.start.clone();
        let mut out = Vec::new();
        for cut in self.spans().divide(span, parts, least)? {
            out.push(KeySpan::new(std::mem::replace(&mut start, cut.clone()), cut));
        }
        out.push(KeySpan::new(start, span.end.clone()));
        Ok(out)
    }

    /// About how many bytes a span has in files. What was written last, and what this transaction
    /// has written, does not count.
    pub fn stored_bytes(&self, span: &KeySpan) -> KvResult<u64> {
        let _asking = self.count_request();
        self.spans().stored_bytes(span)
    }

    /// Asks for the values of keys that a statement is going to read one by one, in as few requests
    /// as there are batches.
    pub fn get_ahead(&self, keys: impl IntoIterator<Item = Bytes>, mode: ReadMode) -> KvResult<()> {
        if self.batch_max() < 2 {
            return Ok(());
        }
        let (at, wanted) = {
            let state = self.open_state()?;
            let at = state.read_at(mode);
            let mut seen = HashSet::default();
            let known = |key: &Bytes| -> KvResult<bool> {
                Ok(state.ahead.point(key, at).is_some()
                    || !matches!(state.own.get(key)?, Lookup::Unknown))
            };
            let mut wanted: Vec<Bytes> = Vec::new();
            for key in keys {
                if !known(&key)? && seen.insert(key.clone()) {
                    wanted.push(key);
                }
            }
            (at, wanted)
        };
        for keys in wanted.chunks(self.batch_max()) {
            let _asking = self.count_request();
            let notes = self.options.shown.is_some();
            let request = GetMany { keys: keys.to_vec(), at, notes };
            let got = self.spans().get_many(&request)?;
            self.counts.add_work(got.work);
            self.note(got.undurable);
            self.pass(large_bytes(&got.values))?;
            let mut state = self.open_state()?;
            let told = state.ahead.told(self.coordinator().memory());
            told.add_points(request.keys.into_iter().zip(got.values), at);
        }
        Ok(())
    }

    /// Asks for the first rows of spans that a statement is going to scan one by one, all with
    /// these options. Returns what is stored there, so that what follows from it can be asked for
    /// ahead too.
    pub fn scan_ahead(
        &self,
        spans: &[KeySpan],
        options: &ScanOptions,
    ) -> KvResult<Vec<Arc<RowBatch>>> {
        let mut found = Vec::new();
        if self.batch_max() < 2 || options.reverse {
            return Ok(found);
        }
        let (at, wanted) = {
            let mut state = self.open_state()?;
            let at = state.read_at(options.mode);
            let mut uses: HashMap<&KeySpan, usize> = HashMap::default();
            spans.iter().for_each(|span| *uses.entry(span).or_default() += 1);
            let mut wanted: Vec<(KeySpan, usize)> = Vec::new();
            for span in spans {
                if let Some(uses) = uses.remove(span)
                    && !state.ahead.uses_span(span, options.classes, at, uses)
                {
                    wanted.push((span.clone(), uses));
                }
            }
            (at, wanted)
        };
        let rows = options.limit.unwrap_or(ROWS_AHEAD).min(ROWS_AHEAD);
        let mut left = wanted.as_slice();
        let mut bytes = 0;
        // What is large is not asked for again and again, whichever way.
        while !left.is_empty() && bytes < AHEAD_BYTES {
            let asked = &left[..left.len().min(self.batch_max())];
            let scan =
                |span: &KeySpan| SpanScan { span: span.clone(), rows, more: false, cursor: None };
            let scans = asked.iter().map(|(span, _)| scan(span)).collect();
            let answer = self.ask_scans(scans, at, options)?;
            let mut state = self.open_state()?;
            let told = state.ahead.told(self.coordinator().memory());
            let mut reached = 0;
            for ((span, uses), part) in asked.iter().zip(answer.parts) {
                if part.rows.is_empty() && part.rest.as_ref() == Some(span) {
                    break;
                }
                reached += 1;
                bytes += part.rows.byte_len();
                if !part.rows.is_empty() {
                    found.push(part.rows.clone());
                }
                told.add_span(span.clone(), options.classes, (part, answer.at), at, *uses);
            }
            // The answer was full before it came to the others.
            left = &left[reached.max(1)..];
        }
        Ok(found)
    }

    /// One request for rows of spans.
    pub(crate) fn ask_scans(
        &self,
        scans: Vec<SpanScan>,
        at: ReadAt,
        options: &ScanOptions,
    ) -> KvResult<ScannedMany> {
        let _asking = self.count_request();
        // Who reads on and on.
        let blocks = options.blocks && scans.len() == 1 && scans[0].more;
        let request = ScanMany {
            scans,
            blocks,
            at,
            reverse: options.reverse,
            classes: options.classes,
            jump: options.jump.map(|(classes, byte)| {
                let suffix = Bytes::copy_from_slice(&[byte]);
                Jump { classes, suffix }
            }),
            rows: options.rows_at_once(self.batch_max()),
            bytes: ANSWER_BYTES,
            notes: self.options.shown.is_some(),
        };
        let answer = self.spans().scan_many(&request)?;
        self.counts.add_work(answer.work);
        self.note(answer.undurable);
        let bytes: usize = answer.parts.iter().map(|part| part.rows.byte_len()).sum();
        let passed = self.pass(bytes.saturating_sub(ANSWER_BYTES));
        if passed.is_err() {
            // Nobody goes on with it.
            answer.parts.iter().filter_map(|part| part.cursor).for_each(|cursor| {
                self.spans().close_cursor(cursor);
            });
        }
        passed.map(|()| answer)
    }

    /// Makes the commit depend on a key as if it had been read at the read timestamp. Cheap to say
    /// again and again.
    pub fn depend_on(&self, key: &[u8]) -> KvResult<()> {
        if self.records_reads() {
            let mut state = self.open_state()?;
            if !state.depends_on.contains(key) {
                state.depends_on.insert(Bytes::copy_from_slice(key));
            }
        }
        Ok(())
    }

    /// Until what is returned is dropped, reads see nothing that this transaction has written since
    /// the savepoint: a statement of several parts that write reads one state throughout. Nothing
    /// may be written meanwhile.
    ///
    /// # Errors
    /// When the transaction has ended.
    pub fn look_back(self: &Arc<Self>, since: SavepointId) -> KvResult<LookBack> {
        let before = self.open_state()?.own.look_back(since.writes);
        Ok(LookBack { txn: self.clone(), before })
    }

    /// Opens a scan. See [`TxnScan`].
    pub fn scan(self: &Arc<Self>, span: KeySpan, options: ScanOptions) -> KvResult<TxnScan> {
        let (id, at, overlay, ahead) = {
            let mut state = self.open_state()?;
            self.check_names(&state, &span, false)?;
            let at = state.read_at(options.mode);
            let id = state.scans.next;
            state.scans.next += 1;
            if options.mode == ReadMode::Recorded && self.records_reads() {
                state.scans.open.insert(id, span.clone());
            }
            let ahead = match options.reverse {
                true => None,
                false => state.ahead.take_span(&span, options.classes, at),
            };
            (id, at, state.own.overlay(&span), ahead)
        };
        TxnScan::open(self.clone(), id, (span, at), overlay, ahead, options)
    }

    pub(crate) fn record_spans_read(&self, spans: impl IntoIterator<Item = KeySpan>) {
        if self.records_reads() {
            let mut state = self.state.lock();
            spans.into_iter().for_each(|span| state.reads.add_span(span));
        }
    }

    /// A scan has reported all it read.
    pub(crate) fn scan_closed(&self, id: u64, rows: u64) {
        self.state.lock().scans.open.remove(&id);
        self.counts.rows_scanned.fetch_add(rows, Ordering::Relaxed);
    }

    /// Whoever shows what was read waits for this first.
    fn note(&self, undurable: Option<CommitTs>) {
        if let (Some(shown), Some(ts)) = (&self.options.shown, undurable) {
            shown.note(ts);
        }
    }
}

/// See [`Txn::look_back`].
#[must_use]
pub struct LookBack {
    txn: Arc<Txn>,
    before: Option<Arc<Earlier>>,
}

impl Drop for LookBack {
    fn drop(&mut self) {
        self.txn.state.lock().own.look_at(self.before.take());
    }
}

impl State {
    /// Whether only we can write a key: others cannot change it, so nobody need validate it.
    fn is_own(&self, key: &[u8]) -> bool {
        self.held.get(key).is_some_and(|h| h.checked && h.mode.owns_writes())
    }

    pub(crate) fn read_at(&self, mode: ReadMode) -> ReadAt {
        match mode {
            ReadMode::Recorded | ReadMode::Unrecorded => ReadAt::Time(self.read_ts),
            ReadMode::Latest => ReadAt::Latest,
        }
    }
}

/// Some of these keys, by their numbers, in order. Most keys differ in their first bytes, which are
/// compared as one number.
fn in_key_order(keys: &[Bytes], numbers: Vec<usize>) -> Vec<usize> {
    let head = |number: usize| {
        let key = &keys[number];
        let mut head = [0; 16];
        let len = key.len().min(head.len());
        head[..len].copy_from_slice(&key[..len]);
        (u128::from_be_bytes(head), number)
    };
    let mut order: Vec<(u128, usize)> = numbers.into_iter().map(head).collect();
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| keys[a.1].cmp(&keys[b.1])));
    order.into_iter().map(|(_, number)| number).collect()
}
