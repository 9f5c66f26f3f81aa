//! Scans of a transaction: the engine's rows at the read timestamp with the own writes laid over.
//!
//! The overlay is copied when the scan is opened. So a statement that writes while it scans never
//! meets its own rows again (the "Halloween problem").

use std::sync::Arc;

use braid_lsm::KeySpan;
use bytes::Bytes;

use crate::buffer::{Overlay, Slot};
use crate::error::KvResult;
use crate::read_set::successor;
use crate::shown::NotingScan;
use crate::span_map::SpanMap;
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
}

impl Default for ScanOptions {
    fn default() -> ScanOptions {
        ScanOptions { reverse: false, limit: None, classes: u32::MAX, mode: ReadMode::Recorded }
    }
}

/// An open scan. Dropping it records what was read for validation at commit.
pub struct TxnScan {
    txn: Arc<Txn>,
    id: u64,
    engine: braid_lsm::Scan,
    engine_head: Option<(Bytes, Bytes)>,
    engine_done: bool,
    overlay: std::iter::Peekable<std::vec::IntoIter<(Bytes, Slot)>>,
    deleted: SpanMap,
    options: ScanOptions,
    returned: usize,
    exhausted: bool,
    /// The part of the span that is being read now; earlier parts are already recorded.
    segment: KeySpan,
    last_key: Option<Bytes>,
    /// Something in the span may not be durable yet.
    noting: Option<NotingScan>,
}

impl TxnScan {
    pub(crate) fn new(
        txn: Arc<Txn>,
        id: u64,
        engine: braid_lsm::Scan,
        mut overlay: Overlay,
        (span, noting): (KeySpan, Option<NotingScan>),
        options: ScanOptions,
    ) -> TxnScan {
        if options.classes != u32::MAX {
            let class_of = txn.store().row_class();
            overlay.points.retain(|(key, _)| options.classes & (1 << class_of(key)) != 0);
        }
        if options.reverse {
            overlay.points.reverse();
        }
        TxnScan {
            txn,
            id,
            engine,
            engine_head: None,
            engine_done: false,
            overlay: overlay.points.into_iter().peekable(),
            deleted: overlay.spans,
            options,
            returned: 0,
            exhausted: false,
            segment: span,
            last_key: None,
            noting,
        }
    }

    /// The next row, or `None` at the end.
    ///
    /// May read blocks from disk.
    #[expect(clippy::should_implement_trait, reason = "fallible, and the scan can also seek")]
    pub fn next(&mut self) -> KvResult<Option<(Bytes, Bytes)>> {
        if self.exhausted || self.options.limit.is_some_and(|l| self.returned >= l) {
            return Ok(None);
        }
        let row = self.merged()?;
        match &row {
            Some((key, _)) => {
                self.returned += 1;
                self.last_key = Some(key.clone());
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
        if self.engine_head.is_none() && !self.engine_done {
            self.engine.seek(key)?;
        }
        Ok(())
    }

    fn merged(&mut self) -> KvResult<Option<(Bytes, Bytes)>> {
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

    /// Makes `engine_head` the next engine row that this transaction has not deleted by span.
    fn fill(&mut self) -> KvResult<()> {
        while self.engine_head.is_none() && !self.engine_done {
            match self.engine.next_row()? {
                None => self.engine_done = true,
                Some(row) => match self.deleted.covering(&row.key) {
                    Some(_) if self.options.reverse => {}
                    Some(span) => {
                        let end = span.end.clone();
                        self.engine.seek(&end)?;
                    }
                    None => self.engine_head = Some((row.key, row.value)),
                },
            }
        }
        Ok(())
    }

    fn record(&mut self) {
        let recorded = self.options.mode == ReadMode::Recorded;
        if !recorded && self.noting.is_none() {
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
        if let Some(noting) = &self.noting {
            noting.has_read(self.txn.store(), &read);
        }
        if recorded {
            self.txn.record_span_read(read);
        }
    }
}

impl Drop for TxnScan {
    fn drop(&mut self) {
        self.record();
        self.txn.scan_closed(self.id, self.returned as u64);
    }
}
