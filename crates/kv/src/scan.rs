//! Scans of a transaction: the engine's rows at the read timestamp with the own writes laid over.
//!
//! The overlay is copied when the scan is opened. So a statement that writes while it scans never
//! meets its own rows again (the "Halloween problem").
//!
//! Rows come in batches ([`crate::Spans::scan_many`]), small ones first: nobody knows yet whether
//! the scan will be read to its end. What counts as read by the transaction is what was handed out,
//! not what was asked for.

use std::ops::Range;
use std::sync::Arc;

use braid_lsm::{CommitTs, KeySpan, Piece, RowBatch};
use bytes::Bytes;

use crate::error::KvResult;
use crate::own_writes::{Overlay, OwnRows};
use crate::read_set::successor;
use crate::span_map::SpanMap;
use crate::spans::{ReadAt, SpanRows, SpanScan};
use crate::txn::Txn;

/// Which state a read sees, and whether the commit depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadMode {
    /// At the read timestamp; a SERIALIZABLE commit proves that it would still read the same.
    #[default]
    Recorded,
    /// At the read timestamp; nothing depends on it.
    Unrecorded,
    /// The newest committed state, at every isolation level; nothing depends on it. What it said
    /// stays true only as far as a lock taken *before* the read protects it.
    Latest,
}

/// What a scan returns and in which order.
#[derive(Clone, Copy, Debug)]
pub struct ScanOptions {
    /// Keys descending instead of ascending.
    pub reverse: bool,
    /// Stop after so many rows.
    pub limit: Option<usize>,
    /// Only rows of these classes: bit n stands for class n. See `braid_lsm::RowClassFn`.
    pub classes: u32,
    /// Which state it sees.
    pub mode: ReadMode,
    /// After a row of these classes, the scan goes on at its key followed by this byte; what lies
    /// between does not count as read.
    pub jump: Option<(u32, u8)>,
    /// Rows of the first request; later ones ask for more and more.
    pub first: usize,
    /// Rows may come as parts of blocks ([`Rows::pieces`]), where the transaction has written
    /// nothing and each row need not be noted by itself.
    pub blocks: bool,
}

/// Default of [`ScanOptions::first`].
const FIRST_ROWS: usize = 128;
/// Each request asks for so many times the rows of the one before.
const GROWTH: usize = 4;
/// Rows that come as parts of blocks are so many times as many: nobody copies them.
const IN_PARTS: usize = 8;
/// Own rows that are handed out together at most.
const OWN_ROWS: usize = 1_024;

impl ScanOptions {
    /// Rows of one request at most, where others have `most`.
    pub(crate) fn rows_at_once(&self, most: usize) -> usize {
        if self.blocks { most.saturating_mul(IN_PARTS) } else { most }
    }
}

impl Default for ScanOptions {
    fn default() -> ScanOptions {
        ScanOptions {
            reverse: false,
            limit: None,
            classes: u32::MAX,
            mode: ReadMode::Recorded,
            jump: None,
            first: FIRST_ROWS,
            blocks: false,
        }
    }
}

/// An open scan. Dropping it records what was read for validation at commit.
///
/// Rows are handed out in *runs*: neighbours in a batch of the far side with nothing of the
/// transaction's own between them, or own rows with nothing stored between them.
///
/// ```text
///   stored   a b c d e f g h        own   d'  d2      deleted by span  [f, g)
///   runs     [a b c] [d' d2] [e] [g h]
/// ```
pub struct TxnScan {
    txn: Arc<Txn>,
    id: u64,
    stored: Stored,
    overlay: OwnRows,
    deleted: SpanMap,
    /// Own rows of the run.
    own: RowBatch,
    run: Run,
    options: ScanOptions,
    returned: usize,
    exhausted: bool,
    /// Whether the commit will depend on what was read.
    records: bool,
    /// Nothing of the transaction's own lies in the span.
    plain: bool,
    /// The part of the span that is being read now; earlier parts are already recorded.
    segment: KeySpan,
    /// The last key of this part that was handed out.
    last_key: Option<Vec<u8>>,
    /// What lies before this key lies inside of a row that is jumped over.
    past: Vec<u8>,
}

/// Rows that can be handed out without looking at anything else.
#[derive(Default)]
struct Run {
    is_own: bool,
    /// What was handed out from here on is not noted yet.
    start: usize,
    at: usize,
    end: usize,
}

/// Rows of a scan that were handed out together.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    batch: &'a RowBatch,
    from: usize,
    to: usize,
    are_last: bool,
}

impl<'a> Rows<'a> {
    /// Whether it is known that no others follow them.
    pub fn are_last(&self) -> bool {
        self.are_last
    }

    /// How many.
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.to - self.from
    }

    /// Key of row `i`; panics if `i >= len()`.
    #[inline]
    pub fn key(&self, i: usize) -> &'a [u8] {
        self.batch.key(self.from + i)
    }

    /// Value of row `i`; panics if `i >= len()`.
    #[inline]
    pub fn value(&self, i: usize) -> &'a [u8] {
        self.batch.value(self.from + i)
    }

    /// Whether some of them come as parts of blocks.
    pub fn has_parts(&self) -> bool {
        self.batch.has_parts()
    }

    /// The rows as they came: parts of blocks, with single rows between them.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'a>> {
        self.batch.pieces(self.from..self.to)
    }
}

/// Rows of the far side.
struct Stored {
    batch: Arc<RowBatch>,
    /// Those of the batch before this one belong to runs.
    at: usize,
    /// What was not asked for yet.
    rest: Option<KeySpan>,
    cursor: Option<u64>,
    read_at: ReadAt,
    /// Rows to ask for next.
    step: usize,
    /// Rows that may still be asked for, if that is known.
    left: Option<usize>,
}

impl TxnScan {
    pub(crate) fn open(
        txn: Arc<Txn>,
        id: u64,
        (span, read_at): (KeySpan, ReadAt),
        overlay: Overlay,
        ahead: Option<(SpanRows, CommitTs)>,
        mut options: ScanOptions,
    ) -> KvResult<TxnScan> {
        // The limit goes to the far side only if the overlay cannot hide any of its rows.
        let hides = !overlay.is_empty();
        let left = options.limit.filter(|_| !hides);
        let mut stored = Stored {
            batch: Arc::default(),
            at: 0,
            rest: Some(span.clone()).filter(|span| !span.is_empty()),
            cursor: None,
            read_at,
            step: left.unwrap_or(options.first).max(1),
            left,
        };
        if let Some((part, seen_at)) = ahead {
            stored.take_in(part, seen_at);
        }
        let deleted = overlay.spans.clone();
        let classes = (options.classes, txn.coordinator().row_class());
        let overlay = OwnRows::open(overlay, &span, classes, options.reverse)?;
        let records = options.mode == ReadMode::Recorded && txn.records_reads();
        // Each row is noted by itself.
        let notes = records && options.jump.is_some();
        options.blocks &= !(hides || options.reverse || notes);
        if options.blocks {
            // What lies inside of rows is passed by its class, block by block.
            options.jump = None;
        }
        Ok(TxnScan {
            txn,
            id,
            stored,
            overlay,
            deleted,
            own: RowBatch::copying(),
            run: Run::default(),
            options,
            returned: 0,
            exhausted: false,
            records,
            plain: !hides,
            segment: span,
            last_key: None,
            past: Vec::new(),
        })
    }

    /// Rows that were answered and not handed out yet, for whoever wants to ask for what follows
    /// from them. They are not read before they are handed out.
    pub fn waiting_rows(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let stored = &self.stored;
        let of_run = if self.run.is_own { 0..0 } else { self.run.at..self.run.end };
        let rows = of_run.chain(stored.at..stored.batch.len());
        rows.map(|row| (stored.batch.key(row), stored.batch.value(row)))
    }

    /// How many rows wait.
    pub fn waiting(&self) -> usize {
        let of_run = if self.run.is_own { 0 } else { self.run.end - self.run.at };
        of_run + self.stored.batch.len() - self.stored.at
    }

    /// The next row, or `None` at the end.
    ///
    /// May ask the far side, and read blocks from disk there.
    #[expect(clippy::should_implement_trait, reason = "fallible, and the scan can also seek")]
    pub fn next(&mut self) -> KvResult<Option<(Bytes, Bytes)>> {
        let row = self.next_row()?;
        Ok(row.map(|(key, value)| (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value))))
    }

    /// As [`TxnScan::next`], without a copy.
    pub fn next_row(&mut self) -> KvResult<Option<(&[u8], &[u8])>> {
        let rows = self.next_batch(1)?;
        Ok(rows.map(|rows| (rows.key(0), rows.value(0))))
    }

    /// The next rows, at least one and at most `most`, or `None` at the end.
    #[inline]
    pub fn next_batch(&mut self, most: usize) -> KvResult<Option<Rows<'_>>> {
        let left = self.options.limit.map_or(usize::MAX, |limit| limit - self.returned);
        if left == 0 || (self.run.at == self.run.end && !self.find_run()?) {
            return Ok(None);
        }
        let from = self.run.at;
        let to = self.run.end.min(from.saturating_add(most.clamp(1, left)));
        self.run.at = to;
        self.returned += to - from;
        let stored = &self.stored;
        let all_asked = stored.rest.is_none() && stored.at == stored.batch.len();
        let are_last = self.plain && all_asked && to == self.run.end;
        let batch = if self.run.is_own { &self.own } else { &stored.batch };
        Ok(Some(Rows { batch, from, to, are_last }))
    }

    /// Skips forward to the first key at or after `key`. What is skipped does not count as read.
    ///
    /// Only for ascending scans.
    pub fn seek(&mut self, key: &[u8]) -> KvResult<()> {
        debug_assert!(!self.options.reverse, "seek is for ascending scans");
        self.note_handed_out();
        if key <= self.segment.start.as_ref() as &[u8] {
            return Ok(());
        }
        self.record();
        let end = self.segment.end.clone();
        self.segment = KeySpan::new(Bytes::copy_from_slice(key), end);
        self.last_key = None;
        if self.segment.is_empty() {
            self.exhausted = true;
            self.run = Run::default();
            return Ok(());
        }
        let run = &mut self.run;
        let batch = if run.is_own { &self.own } else { &self.stored.batch };
        let skipped = rows_while(batch, run.at..run.end, |row| row < key);
        run.at += skipped;
        run.start = run.at;
        if !run.is_own {
            self.stored.left = self.stored.left.map(|left| left + skipped);
        }
        self.pass_own(key)?;
        self.skip_to(key);
        Ok(())
    }

    /// Own rows before `key` are not wanted.
    fn pass_own(&mut self, key: &[u8]) -> KvResult<()> {
        while self.overlay.head().is_some_and(|own| own.as_ref() < key) {
            self.overlay.next()?;
        }
        Ok(())
    }

    /// Stored rows before `key` are not wanted.
    fn skip_to(&mut self, key: &[u8]) {
        let stored = &mut self.stored;
        let waiting = stored.at..stored.batch.len();
        let skipped = rows_while(&stored.batch, waiting, |row| row < key);
        stored.at += skipped;
        // They were none of those that the limit means.
        stored.left = stored.left.map(|left| left + skipped);
        if stored.at == stored.batch.len()
            && let Some(rest) = &mut stored.rest
            && (rest.start.as_ref() as &[u8]) < key
        {
            rest.start = Bytes::copy_from_slice(key);
        }
    }

    /// Finds what can be handed out next; `false` at the end.
    fn find_run(&mut self) -> KvResult<bool> {
        self.note_handed_out();
        self.run = Run::default();
        if self.exhausted {
            return Ok(false);
        }
        let found = if self.plain { self.plain_run()? } else { self.merged_run()? };
        self.exhausted = !found;
        Ok(found)
    }

    /// All that was answered.
    fn plain_run(&mut self) -> KvResult<bool> {
        while self.stored.at == self.stored.batch.len() {
            if !self.ask()? {
                return Ok(false);
            }
        }
        let (start, end) = (self.stored.at, self.stored.batch.len());
        self.stored.at = end;
        self.run = Run { is_own: false, start, at: start, end };
        Ok(true)
    }

    /// Stored rows up to the next own write, or own rows.
    fn merged_run(&mut self) -> KvResult<bool> {
        let reverse = self.options.reverse;
        loop {
            if !self.past.is_empty() {
                let past = std::mem::take(&mut self.past);
                self.pass_own(&past)?;
                self.skip_to(&past);
            }
            if self.stored.at == self.stored.batch.len() && self.ask()? {
                continue;
            }
            let stored = &self.stored;
            let waiting = stored.at..stored.batch.len();
            let head = (!waiting.is_empty()).then(|| stored.batch.key(stored.at));
            if let Some(gone) = head.and_then(|head| self.deleted.covering(head)) {
                let gone = gone.clone();
                if reverse {
                    let inside = |row: &[u8]| row >= gone.start.as_ref() as &[u8];
                    self.stored.at += rows_while(&stored.batch, waiting, inside);
                } else {
                    self.skip_to(&gone.end);
                }
                continue;
            }
            let own = self.overlay.head().map(|key| key.as_ref() as &[u8]);
            match (head, own) {
                (None, None) => return Ok(false),
                (Some(head), own) if own.is_none_or(|own| comes_before(head, own, reverse)) => {
                    let gone = match reverse {
                        true => self.deleted.last_below(head).map(|gone| gone.end.as_ref()),
                        false => self.deleted.first_above(head).map(|gone| gone.start.as_ref()),
                    };
                    let in_front = |row: &[u8]| {
                        own.is_none_or(|own| comes_before(row, own, reverse))
                            && gone
                                .is_none_or(|gone| if reverse { row >= gone } else { row < gone })
                    };
                    let start = stored.at;
                    let end = start + rows_while(&stored.batch, waiting, in_front);
                    self.stored.at = end;
                    self.run = Run { is_own: false, start, at: start, end };
                    return Ok(true);
                }
                _ => {
                    if self.own_run()? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Makes the next own writes the run, those that are rows, up to the next stored row or in its
    /// place. `false` if there was none.
    fn own_run(&mut self) -> KvResult<bool> {
        self.own.clear();
        let stored = &mut self.stored;
        while let Some(key) = self.overlay.head() {
            if stored.at < stored.batch.len() {
                let head = stored.batch.key(stored.at);
                if comes_before(head, key, self.options.reverse) {
                    break;
                }
                stored.at += usize::from(head == key.as_ref() as &[u8]);
            }
            if let Some((key, Some(value))) = self.overlay.next()? {
                self.own.push(&key, &value, CommitTs::ZERO);
            }
            // What lies inside of a row is not known to be wanted before that was handed out.
            if self.options.jump.is_some() || self.own.len() >= OWN_ROWS {
                break;
            }
            if stored.at == stored.batch.len() && stored.rest.is_some() {
                break;
            }
        }
        self.run = Run { is_own: true, start: 0, at: 0, end: self.own.len() };
        Ok(!self.own.is_empty())
    }

    /// Asks for the next rows; `false` at the end.
    fn ask(&mut self) -> KvResult<bool> {
        let stored = &mut self.stored;
        let Some(mut rest) = stored.rest.take() else { return Ok(false) };
        if !self.options.reverse
            && let Some(gone) = self.deleted.covering(&rest.start)
        {
            rest.start = gone.end.clone();
        }
        let mut options = self.options;
        // Few rows cost less one by one, and the first ones may be all.
        options.blocks &= stored.step > FIRST_ROWS;
        let most = options.rows_at_once(self.txn.batch_max());
        let rows = stored.step.min(most).min(stored.left.unwrap_or(usize::MAX));
        if rest.start >= rest.end || rows == 0 {
            return Ok(false);
        }
        let more = stored.left.is_none_or(|left| left > rows);
        let scan = SpanScan { span: rest, rows, more, cursor: stored.cursor.take() };
        let answer = self.txn.ask_scans(vec![scan], stored.read_at, &options)?;
        stored.step = stored.step.saturating_mul(GROWTH);
        for part in answer.parts {
            stored.take_in(part, answer.at);
        }
        Ok(true)
    }

    /// What was handed out of the run is read. Where a scan jumps, the insides of its rows are not.
    fn note_handed_out(&mut self) {
        let handed_out = self.run.start..self.run.at;
        self.run.start = self.run.at;
        let batch = if self.run.is_own { &self.own } else { &*self.stored.batch };
        if batch.has_parts() {
            if let Some(last) = handed_out.last().filter(|_| self.records) {
                batch.read_key(last, self.last_key.get_or_insert_default());
            }
            return;
        }
        let Some(last) = handed_out.clone().last().map(|row| batch.key(row)) else { return };
        let jump = self.options.jump.filter(|_| !self.options.reverse);
        let Some((classes, suffix)) = jump else {
            if self.records {
                let key = self.last_key.get_or_insert_default();
                key.clear();
                key.extend_from_slice(last);
            }
            return;
        };
        let all = self.options.classes & !classes == 0;
        let class_of = self.txn.coordinator().row_class();
        let jumps = |key: &[u8]| all || classes & (1 << class_of(key)) != 0;
        if self.records {
            let keys = handed_out.map(|row| batch.key(row));
            let (read, behind) = jumped_over(&mut self.segment, keys, jumps, suffix);
            self.last_key = behind.map(<[u8]>::to_vec);
            if !read.is_empty() {
                self.txn.record_spans_read(read);
            }
        }
        if !self.plain && jumps(last) {
            self.past.clear();
            self.past.extend_from_slice(last);
            self.past.push(suffix);
        }
    }

    fn record(&mut self) {
        if !self.records {
            return;
        }
        let read = match (&self.last_key, self.exhausted) {
            (_, true) => self.segment.clone(),
            (None, false) => return,
            (Some(last), false) if self.options.reverse => {
                KeySpan::new(last.clone(), self.segment.end.clone())
            }
            (Some(last), false) => KeySpan::new(self.segment.start.clone(), successor(last)),
        };
        self.txn.record_spans_read([read]);
    }
}

/// What was read by handing out rows whose insides are jumped over: up to each of them. The segment
/// begins behind the last one then; behind that, the last key that was read.
pub(crate) fn jumped_over<'a>(
    segment: &mut KeySpan,
    keys: impl Iterator<Item = &'a [u8]>,
    jumps: impl Fn(&[u8]) -> bool,
    suffix: u8,
) -> (Vec<KeySpan>, Option<&'a [u8]>) {
    // All keys in one piece of memory: [key 00][key suffix]...
    let mut bytes: Vec<u8> = Vec::new();
    let mut ends = Vec::new();
    let mut last = None;
    for key in keys {
        if !jumps(key) {
            last = Some(key);
            continue;
        }
        last = None;
        bytes.extend_from_slice(key);
        bytes.push(0);
        bytes.extend_from_slice(key);
        bytes.push(suffix);
        ends.push((bytes.len(), key.len() + 1));
    }
    let bytes = Bytes::from(bytes);
    let mut spans = Vec::with_capacity(ends.len());
    for (end, len) in ends {
        let read_to = bytes.slice(end - 2 * len..end - len);
        let past = bytes.slice(end - len..end);
        spans.push(KeySpan::new(std::mem::replace(&mut segment.start, past), read_to));
    }
    (spans, last)
}

/// Whether a key comes before another one in the scan's direction.
fn comes_before(key: &[u8], other: &[u8], reverse: bool) -> bool {
    if reverse { key > other } else { key < other }
}

/// How many of these rows lie in front of the first for which it does not hold. It must not hold
/// for any behind that.
fn rows_while(batch: &RowBatch, rows: Range<usize>, holds: impl Fn(&[u8]) -> bool) -> usize {
    let (mut low, mut high) = (rows.start, rows.end);
    while low < high {
        let middle = low.midpoint(high);
        if holds(batch.key(middle)) { low = middle + 1 } else { high = middle }
    }
    low - rows.start
}

impl Stored {
    fn take_in(&mut self, part: SpanRows, at: CommitTs) {
        // What comes next is read at the same time, whatever was asked for first.
        self.read_at = ReadAt::Time(at);
        self.left = self.left.map(|left| left - part.rows.len().min(left));
        self.rest = part.rest;
        self.cursor = part.cursor;
        self.batch = part.rows;
        self.at = 0;
    }
}

impl Drop for TxnScan {
    fn drop(&mut self) {
        self.note_handed_out();
        self.record();
        if let Some(cursor) = self.stored.cursor {
            self.txn.spans().close_cursor(cursor);
        }
        self.txn.scan_closed(self.id, self.returned as u64);
    }
}
