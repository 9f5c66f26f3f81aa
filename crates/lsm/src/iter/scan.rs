//! The scan that callers hold: rows of a span in key order, either direction.

use std::sync::Arc;

use bytes::Bytes;

use super::merging::MergeCursor;
use super::row_batch::RowBatch;
use super::source::ReadPoint;
use crate::error::Result;
use crate::key::{CommitTs, KeySpan};
use crate::versions::{Run, SstEnv};
use crate::view::View;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The key.
    pub key: Bytes,
    /// The value.
    pub value: Bytes,
    /// When it was committed.
    pub ts: CommitTs,
}

/// How to scan.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// From the end of the span to its start.
    pub reverse: bool,
    /// Bit c set: rows of class c are wanted. Blocks without a wanted class are not read.
    pub classes: u32,
    /// Stops after this many rows.
    pub limit: Option<usize>,
    /// Whether blocks read are kept in the cache; large one-time scans say no.
    pub fill_cache: bool,
    /// Whether many rows of a block may come as a part of it: [`RowBatch::pieces`]. Forward only.
    pub blocks: bool,
}

impl Default for ScanOptions {
    fn default() -> ScanOptions {
        ScanOptions {
            reverse: false,
            classes: u32::MAX,
            limit: None,
            fill_cache: true,
            blocks: false,
        }
    }
}

/// What all cursors of a scan share: one allocation and one reference count for all of them.
pub(crate) struct ScanPlan {
    pub(crate) view: View,
    pub(crate) span: KeySpan,
    pub(crate) options: ScanOptions,
}

impl ScanPlan {
    /// The moment to read at.
    pub(crate) fn read(&self) -> ReadPoint {
        self.view.read_point()
    }

    /// A run of the view's layers, by its number.
    #[inline]
    pub(crate) fn run(&self, number: usize) -> &Run {
        self.view.state().run(number)
    }

    /// What is needed to open ssts.
    pub(crate) fn env(&self) -> &Arc<SstEnv> {
        self.view.env()
    }
}

/// What a scan did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanStats {
    /// Entries looked at, visible or not.
    pub rows_visited: u64,
    /// Rows handed out.
    pub rows_returned: u64,
    /// Seeks in layers.
    pub seeks: u64,
    /// Times that layers were parked below a range tombstone.
    pub slabs_parked: u64,
    /// Range tombstones that were passed together with one before them that they touch.
    pub tombstones_passed: u64,
    /// Row and index blocks looked at, cached or not.
    pub blocks_read: u64,
    /// Blocks that came from the device.
    pub blocks_from_disk: u64,
}

/// Rows of a span. Dropping it frees what it pins.
pub struct Scan {
    cursor: MergeCursor,
    left: usize,
}

impl Scan {
    pub(crate) fn new(cursor: MergeCursor, limit: Option<usize>) -> Scan {
        Scan { cursor, left: limit.unwrap_or(usize::MAX) }
    }

    fn step(&mut self) -> Result<bool> {
        if self.left == 0 || !self.cursor.next()? {
            return Ok(false);
        }
        self.left -= 1;
        self.cursor.stats.rows_returned += 1;
        Ok(true)
    }

    /// The next row; `None` at the end. May read blocks from the device.
    pub fn next_row(&mut self) -> Result<Option<Row>> {
        if !self.step()? {
            return Ok(None);
        }
        Ok(Some(Row {
            key: Bytes::copy_from_slice(self.cursor.key()),
            value: Bytes::copy_from_slice(self.cursor.value()),
            ts: CommitTs(self.cursor.ts()),
        }))
    }

    /// The next rows: at most `max_rows`, and no more once `max_bytes` are reached (at least one
    /// row if there is one). An empty batch means the end.
    pub fn next_batch(&mut self, max_rows: usize, max_bytes: usize) -> Result<RowBatch> {
        let mut batch = RowBatch::new();
        self.next_batch_into(&mut batch, max_rows, max_bytes)?;
        Ok(batch)
    }

    /// As [`Scan::next_batch`], into a batch whose memory is used again. Returns its length.
    pub fn next_batch_into(
        &mut self,
        batch: &mut RowBatch,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<usize> {
        batch.clear();
        self.extend_batch(batch, max_rows, max_bytes)?;
        Ok(batch.len())
    }

    /// Adds the next rows to a batch, until all in all it has `max_rows` or `max_bytes`. `false`
    /// if the scan came to its end, or to its limit, before that.
    pub fn extend_batch(
        &mut self,
        batch: &mut RowBatch,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<bool> {
        let before = batch.len();
        let most = max_rows.min(before.saturating_add(self.left));
        self.cursor.fill(batch, most, max_bytes)?;
        let added = batch.len() - before;
        self.left -= added;
        self.cursor.stats.rows_returned += added as u64;
        Ok(batch.len() >= max_rows || (batch.byte_len() >= max_bytes && !batch.is_empty()))
    }

    /// Whether the limit of rows was reached.
    pub fn is_at_limit(&self) -> bool {
        self.left == 0
    }

    /// Adds the next row to a batch; `false` at the end.
    pub fn push_row(&mut self, batch: &mut RowBatch) -> Result<bool> {
        if !self.step()? {
            return Ok(false);
        }
        batch.push(self.cursor.key(), self.cursor.value(), CommitTs(self.cursor.ts()));
        Ok(true)
    }

    /// Jumps ahead, so that the next row is the first at or after `key` (going backward: the
    /// last below `key`). Never goes back; a key that was passed is ignored.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.cursor.seek(key)
    }

    /// Goes on with a part of the scan's span, from its start to its end, up to this many rows:
    /// many short spans in the order of their keys are read like that with one scan over all of
    /// them. Each part begins at or behind the end of the one before. Forward only.
    pub fn go_on_with(&mut self, part: KeySpan, limit: usize) {
        self.left = limit;
        self.cursor.go_on_with(part);
    }

    /// What this scan has done so far.
    pub fn stats(&self) -> ScanStats {
        let mut stats = self.cursor.stats;
        let work = self.cursor.work();
        stats.rows_visited += work.rows_passed;
        (stats.blocks_read, stats.blocks_from_disk) = (work.blocks, work.from_disk);
        stats
    }
}
