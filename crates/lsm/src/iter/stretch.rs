//! A stretch: rows of one source that nobody else has a say in.
//!
//! While the next key of every other layer lies behind, the winning layer hands out row after row
//! into the batch, without going back to the merge:
//!
//! ```text
//!   L1   ................x              the runner-up stands here
//!   L6   a b c d e f g h   y z          a to h are one stretch
//! ```

use super::block_part::BlockPart;
use super::row_batch::RowBatch;
use crate::sstable::{BlockPlace, LEAST_PART, RowBlock};

/// To step over an entry of a memtable takes as long as to pass so many of a block, 64 at a time.
pub(super) const STEP: u64 = 8;

/// Where rows go, and up to where they may come from this source alone.
pub(crate) struct Stretch<'a> {
    batch: &'a mut RowBatch,
    max_rows: usize,
    max_bytes: usize,
    until: &'a [u8],
    /// Whether the key `until` itself still belongs to the stretch (going backward only).
    through: bool,
    backward: bool,
    hidden_below: u64,
    visited: u64,
    /// Entries passed since the last row, of this stretch or before it: see [`STEP`].
    dead: u64,
    /// With so many the stretch ends.
    patience: u64,
    /// Whether it has handed out a row.
    found: bool,
}

impl<'a> Stretch<'a> {
    /// A stretch into `batch`, at least one row if there is one. Forward it ends in front of
    /// `until`; backward behind it, or with it if `through` is set.
    pub(crate) fn new(batch: &'a mut RowBatch, max_rows: usize, max_bytes: usize) -> Stretch<'a> {
        Stretch {
            batch,
            max_rows,
            max_bytes,
            until: &[],
            through: false,
            backward: false,
            hidden_below: 0,
            visited: 0,
            dead: 0,
            patience: u64::MAX,
            found: false,
        }
    }

    /// Limits the stretch to keys in front of `until`.
    pub(crate) fn forward(mut self, until: &'a [u8]) -> Stretch<'a> {
        self.until = until;
        self
    }

    /// Limits the stretch, going backward, to keys above `until`, or from it on.
    pub(crate) fn backward(mut self, until: &'a [u8], through: bool) -> Stretch<'a> {
        (self.until, self.through, self.backward) = (until, through, true);
        self
    }

    /// Rows older than this are hidden by a range tombstone.
    pub(crate) fn hiding_below(mut self, ts: u64) -> Stretch<'a> {
        self.hidden_below = ts;
        self
    }

    /// Ends the stretch once `patience` entries were passed without a row, `dead` of them before
    /// it.
    pub(crate) fn with_patience(mut self, dead: u64, patience: u64) -> Stretch<'a> {
        (self.dead, self.patience) = (dead, patience);
        self
    }

    /// Does `work` with a stretch that ends at `end` if that comes earlier (going forward).
    pub(crate) fn within<R>(
        &mut self,
        end: Option<&[u8]>,
        work: impl FnOnce(&mut Stretch<'_>) -> R,
    ) -> R {
        let Some(end) = end.filter(|end| *end < self.until) else { return work(self) };
        let mut shorter = Stretch { batch: &mut *self.batch, until: end, ..*self };
        let result = work(&mut shorter);
        let Stretch { visited, dead, found, .. } = shorter;
        (self.visited, self.dead, self.found) = (visited, dead, found);
        result
    }

    #[inline]
    pub(crate) fn hidden_below(&self) -> u64 {
        self.hidden_below
    }

    /// Going forward: the first key that is no longer the source's to hand out.
    pub(crate) fn until(&self) -> &'a [u8] {
        self.until
    }

    /// Whether the batch takes another row, and it is worth looking for.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.batch.len() < self.max_rows
            && !self.is_too_long()
            && (self.batch.byte_len() < self.max_bytes || self.batch.is_empty())
    }

    /// Whether the row with this key is the source's to hand out now.
    #[inline]
    pub(crate) fn takes(&self, key: &[u8]) -> bool {
        self.has_room()
            && if self.backward {
                key > self.until || (self.through && key == self.until)
            } else {
                key < self.until
            }
    }

    /// Whether so much was passed that the merge has to look whether that goes on.
    #[inline]
    pub(crate) fn is_too_long(&self) -> bool {
        self.dead >= self.patience
    }

    /// Entries passed since the last row, and whether the stretch had one.
    pub(crate) fn dead(&self) -> (u64, bool) {
        (self.dead, self.found)
    }

    /// Hands out a row.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8], ts: u64) {
        self.visited += 1;
        (self.dead, self.found) = (0, true);
        self.batch.push_of(self.max_rows, key, value, ts);
    }

    /// Hands out rows of a block, which lie within the stretch. With the block's `place`, as a part
    /// of it if they are many.
    pub(crate) fn rows_of<'s>(
        &'s mut self,
        block: &'s RowBlock,
        place: Option<BlockPlace>,
    ) -> BlockRows<'s, 'a> {
        let source = match place {
            Some(_) => 0,
            None => self.batch.keep(block, self.max_rows - self.batch.len()),
        };
        BlockRows { stretch: self, block, source, place, picked: Vec::new() }
    }

    /// How many rows of this size the batch still takes, apart from `more` that it will get.
    fn room(&self, each: usize, more: usize) -> usize {
        let rows = self.max_rows.saturating_sub(self.batch.len() + more);
        let bytes = self.batch.byte_len() + more * each;
        let at_least = usize::from(self.batch.is_empty() && more == 0);
        rows.min(self.max_bytes.saturating_sub(bytes).div_ceil(each.max(1)).max(at_least))
    }

    /// Goes past a row that is deleted or hidden.
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.visited += 1;
        self.dead += STEP;
    }

    /// Rows handed out or passed.
    pub(crate) fn visited(&self) -> u64 {
        self.visited
    }
}

/// Rows of one block on their way into the batch.
pub(crate) struct BlockRows<'s, 'a> {
    stretch: &'s mut Stretch<'a>,
    block: &'s RowBlock,
    /// Where the batch has the block's values; 0: it copies them.
    source: u32,
    /// Where the block's rows may be handed out together.
    place: Option<BlockPlace>,
    /// Those that will be.
    picked: Vec<u16>,
}

impl BlockRows<'_, '_> {
    /// Whether the batch takes another row.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        if self.place.is_some() { self.room() > 0 } else { self.stretch.has_room() }
    }

    /// How many rows the batch takes.
    pub(crate) fn room(&self) -> usize {
        self.stretch.room(self.block.bytes_each(), self.picked.len())
    }

    /// Hands out rows of a word of 64 together.
    pub(crate) fn pick(&mut self, word: usize, mut rows: u64) {
        let first = word as u16 * 64;
        if rows != 0 {
            (self.stretch.dead, self.stretch.found) = (0, true);
        }
        if self.picked.capacity() == 0 {
            // One row in so many, or all: as the first ones are.
            let share = rows.count_ones() as usize * self.block.len() / 64;
            self.picked.reserve(share.clamp(16, self.block.len().max(16)) + 16);
        }
        if rows == u64::MAX {
            return self.picked.extend(first..first + 64);
        }
        while rows != 0 {
            self.picked.push(first + rows.trailing_zeros() as u16);
            rows &= rows - 1;
        }
    }

    /// Hands out a row, whose key `key` appends.
    #[inline]
    pub(crate) fn push(&mut self, row: usize, key: impl FnOnce(&mut Vec<u8>)) {
        (self.stretch.dead, self.stretch.found) = (0, true);
        if self.place.is_some() {
            return self.picked.push(row as u16);
        }
        self.stretch.visited += 1;
        self.stretch.batch.push_from(self.block, row, self.source, key);
    }

    /// Goes past rows that are deleted or hidden.
    #[inline]
    pub(crate) fn pass(&mut self, rows: u32) {
        self.stretch.visited += u64::from(rows);
        self.stretch.dead += u64::from(rows);
    }
}

/// What was picked goes into the batch.
impl Drop for BlockRows<'_, '_> {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        let (block, batch) = (self.block, &mut *self.stretch.batch);
        self.stretch.visited += self.picked.len() as u64;
        if self.picked.len() < LEAST_PART {
            for row in self.picked.drain(..).map(usize::from) {
                batch.push_from(block, row, 0, |keys| block.append_key(row, keys));
            }
            return;
        }
        let rows = std::mem::take(&mut self.picked);
        batch.push_part(BlockPart::new(block.clone(), place, rows));
    }
}
