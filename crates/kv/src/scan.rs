//! Scans of a transaction: the engine's rows at the read timestamp with the own writes laid over.
//!
//! The overlay is copied when the scan is opened. So a statement that writes while it scans never
//! meets its own rows again (the "Halloween problem").
//!
//! Rows come in batches ([`crate::Spans::scan_many`]), small ones first: nobody knows yet whether
//! the scan will be read to its end. What counts as read by the transaction is what was handed out,
//! not what was asked for.

use std::sync::Arc;

use braid_lsm::{CommitTs, KeySpan};
use bytes::Bytes;

use crate::buffer::{Overlay, Slot};
use crate::error::KvResult;
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
    /// After a row of these classes, the scan goes on at its key followed by this byte.
    pub jump: Option<(u32, u8)>,
    /// Rows of the first request; later ones ask for more and more.
    pub first: usize,
}

/// Default of [`ScanOptions::first`].
const FIRST_ROWS: usize = 128;
/// Each request asks for so many times the rows of the one before.
const GROWTH: usize = 4;

impl Default for ScanOptions {
    fn default() -> ScanOptions {
        ScanOptions {
            reverse: false,
            limit: None,
            classes: u32::MAX,
            mode: ReadMode::Recorded,
            jump: None,
            first: FIRST_ROWS,
        }
    }
}

/// An open scan. Dropping it records what was read for validation at commit.
pub struct TxnScan {
    txn: Arc<Txn>,
    id: u64,
    stored: Stored,
    engine_head: Option<(Bytes, Bytes)>,
    overlay: std::iter::Peekable<std::vec::IntoIter<(Bytes, Slot)>>,
    deleted: SpanMap,
    options: ScanOptions,
    returned: usize,
    exhausted: bool,
    /// Whether the commit will depend on what was read.
    records: bool,
    /// Nothing of the transaction's own lies in the span.
    plain: bool,
    /// The part of the span that is being read now; earlier parts are already recorded.
    segment: KeySpan,
    last_key: Option<Bytes>,
}

/// Rows of the far side.
struct Stored {
    batch: std::vec::IntoIter<(Bytes, Bytes)>,
    /// What was not asked for yet.
    rest: Option<KeySpan>,
    cursor: Option<u64>,
    at: ReadAt,
    /// Rows to ask for next.
    step: usize,
    /// Rows that may still be asked for, if that is known.
    left: Option<usize>,
}

impl TxnScan {
    pub(crate) fn open(
        txn: Arc<Txn>,
        id: u64,
        (span, at): (KeySpan, ReadAt),
        mut overlay: Overlay,
        ahead: Option<(SpanRows, CommitTs)>,
        options: ScanOptions,
    ) -> KvResult<TxnScan> {
        // The limit goes to the far side only if the overlay cannot hide any of its rows.
        let hides = !overlay.points.is_empty() || !overlay.spans.is_empty();
        let left = options.limit.filter(|_| !hides);
        let mut stored = Stored {
            batch: Vec::new().into_iter(),
            rest: Some(span.clone()).filter(|span| !span.is_empty()),
            cursor: None,
            at,
            step: left.unwrap_or(options.first).max(1),
            left,
        };
        if let Some((part, seen_at)) = ahead {
            stored.take_in(part, seen_at);
        }
        if options.classes != u32::MAX {
            let class_of = txn.coordinator().row_class();
            overlay.points.retain(|(key, _)| options.classes & (1 << class_of(key)) != 0);
        }
        if options.reverse {
            overlay.points.reverse();
        }
        let records = options.mode == ReadMode::Recorded && txn.records_reads();
        Ok(TxnScan {
            txn,
            id,
            stored,
            engine_head: None,
            overlay: overlay.points.into_iter().peekable(),
            deleted: overlay.spans,
            options,
            returned: 0,
            exhausted: false,
            records,
            plain: !hides,
            segment: span,
            last_key: None,
        })
    }

    /// Rows that were answered and not handed out yet, for whoever wants to ask for what follows
    /// from them. They are not read before [`TxnScan::next`] hands them out.
    pub fn waiting_rows(&self) -> &[(Bytes, Bytes)] {
        self.stored.batch.as_slice()
    }

    /// The next row, or `None` at the end.
    ///
    /// May ask the far side, and read blocks from disk there.
    #[expect(clippy::should_implement_trait, reason = "fallible, and the scan can also seek")]
    pub fn next(&mut self) -> KvResult<Option<(Bytes, Bytes)>> {
        if self.exhausted || self.options.limit.is_some_and(|l| self.returned >= l) {
            return Ok(None);
        }
        let row = self.merged()?;
        match &row {
            Some((key, _)) => {
                self.returned += 1;
                if self.records {
                    self.last_key = Some(key.clone());
                }
            }
            None => self.exhausted = true,
        }
        Ok(row)
    }

    /// Skips forward to the first key at or after `key`. What is skipped does not count as read.
    ///
    /// Only for ascending scans.
    pub fn seek(&mut self, key: &[u8]) -> KvResult<()> {
        debug_assert!(!self.options.reverse, "seek is for ascending scans");
        if key <= self.segment.start.as_ref() as &[u8] {
            return Ok(());
        }
        self.record();
        let end = self.segment.end.clone();
        self.segment = KeySpan::new(Bytes::copy_from_slice(key), end);
        self.last_key = None;
        if self.segment.is_empty() {
            self.exhausted = true;
            return Ok(());
        }
        while self.overlay.next_if(|(k, _)| k.as_ref() < key).is_some() {}
        if self.engine_head.as_ref().is_some_and(|(k, _)| k.as_ref() < key) {
            self.engine_head = None;
        }
        self.skip_to(key);
        Ok(())
    }

    /// Stored rows before `key` are not wanted.
    fn skip_to(&mut self, key: &[u8]) {
        let stored = &mut self.stored;
        while stored.batch.as_slice().first().is_some_and(|(k, _)| k.as_ref() < key) {
            stored.batch.next();
            // It was not one of those that the limit means.
            stored.left = stored.left.map(|left| left + 1);
        }
        if stored.batch.as_slice().is_empty()
            && let Some(rest) = &mut stored.rest
            && (rest.start.as_ref() as &[u8]) < key
        {
            rest.start = Bytes::copy_from_slice(key);
        }
    }

    fn merged(&mut self) -> KvResult<Option<(Bytes, Bytes)>> {
        while self.plain {
            match self.stored.batch.next() {
                Some(row) => return Ok(Some(row)),
                None if self.ask()? => {}
                None => return Ok(None),
            }
        }
        loop {
            self.fill()?;
            let order = match (&self.engine_head, self.overlay.peek()) {
                (None, None) => return Ok(None),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((e, _)), Some((o, _))) if self.options.reverse => o.cmp(e),
                (Some((e, _)), Some((o, _))) => e.cmp(o),
            };
            if order == std::cmp::Ordering::Less {
                return Ok(self.engine_head.take());
            }
            if order == std::cmp::Ordering::Equal {
                self.engine_head = None;
            }
            let (key, slot) = self.overlay.next().expect("was peeked");
            if let Some(value) = slot {
                return Ok(Some((key, value)));
            }
        }
    }

    /// Makes `engine_head` the next stored row that this transaction has not deleted by span.
    fn fill(&mut self) -> KvResult<()> {
        while self.engine_head.is_none() {
            match self.stored.batch.next() {
                None => {
                    if !self.ask()? {
                        return Ok(());
                    }
                }
                Some(row) => match self.deleted.covering(&row.0) {
                    Some(_) if self.options.reverse => {}
                    Some(span) => {
                        let end = span.end.clone();
                        self.skip_to(&end);
                    }
                    None => self.engine_head = Some(row),
                },
            }
        }
        Ok(())
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
        let rows = stored.step.min(self.txn.batch_max()).min(stored.left.unwrap_or(usize::MAX));
        if rest.start >= rest.end || rows == 0 {
            return Ok(false);
        }
        let more = stored.left.is_none_or(|left| left > rows);
        let scan = SpanScan { span: rest, rows, more, cursor: stored.cursor.take() };
        let answer = self.txn.ask_scans(vec![scan], stored.at, &self.options)?;
        stored.step = stored.step.saturating_mul(GROWTH);
        for part in answer.parts {
            stored.take_in(part, answer.at);
        }
        Ok(true)
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
        self.txn.record_span_read(read);
    }
}

impl Stored {
    fn take_in(&mut self, part: SpanRows, at: CommitTs) {
        // What comes next is read at the same time, whatever was asked for first.
        self.at = ReadAt::Time(at);
        self.left = self.left.map(|left| left - part.rows.len().min(left));
        self.rest = part.rest;
        self.cursor = part.cursor;
        self.batch = part.rows.into_iter();
    }
}

impl Drop for TxnScan {
    fn drop(&mut self) {
        self.record();
        if let Some(cursor) = self.stored.cursor {
            self.txn.spans().close_cursor(cursor);
        }
        self.txn.scan_closed(self.id, self.returned as u64);
    }
}
