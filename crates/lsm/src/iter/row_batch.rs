//! Rows in columns: what a fast scan hands out.
//!
//! All keys lie in one buffer. A value lies in a second buffer, or where it was read: the batch
//! then keeps the row block, and the value is a place in it.
//!
//! ```text
//!   keys     a1 a2 b7 c1 c2 c3          values     [ no. 0: own buffer | no. 1.. : blocks ]
//!   places   (1, 4096, 100) (1, 4196, 100) (0, 0, 12) (1, 4296, 100) ...
//! ```
//!
//! Copying a value reads all of it, and it is cold more often than not; a reader that looks at
//! some columns, or passes the value on, then reads it twice. Blocks are only kept where many rows
//! come from them, and up to [`MAX_KEPT`] bytes: a batch of single rows from blocks here and there
//! would keep a thousand times its size.

use crate::key::CommitTs;
use crate::sstable::RowBlock;

/// Bytes of blocks that a batch keeps; values behind that are copied.
const MAX_KEPT: usize = 1 << 20;
/// Values that make up less than this are copied: counting a reference would cost as much.
const MIN_KEPT: usize = 512;

/// Some rows of a scan. It may keep up to 1 MiB of row blocks in memory until it is cleared or
/// dropped.
#[derive(Debug, Clone, Default)]
pub struct RowBatch {
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    values: Vec<u8>,
    places: Vec<Place>,
    timestamps: Vec<u64>,
    /// Blocks that values lie in: place number 1 and on.
    blocks: Vec<RowBlock>,
    kept: usize,
    value_bytes: usize,
}

/// Where a value lies.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: usize,
    len: u32,
    /// 0: in the batch's own buffer; n: in block n - 1.
    source: u32,
}

impl RowBatch {
    /// An empty batch.
    pub fn new() -> RowBatch {
        RowBatch::default()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.timestamps.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.timestamps.is_empty()
    }

    /// Bytes of keys and values.
    pub fn byte_len(&self) -> usize {
        self.keys.len() + self.value_bytes
    }

    /// Key of row `i`; panics if `i >= len()`.
    pub fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.key_ends[i - 1] };
        &self.keys[start..self.key_ends[i]]
    }

    /// Value of row `i`; panics if `i >= len()`.
    pub fn value(&self, i: usize) -> &[u8] {
        let Place { start, len, source } = self.places[i];
        match source.checked_sub(1) {
            None => &self.values[start..start + len as usize],
            Some(block) => self.blocks[block as usize].bytes_at(start, len as usize),
        }
    }

    /// Commit timestamp of row `i`; panics if `i >= len()`.
    pub fn ts(&self, i: usize) -> CommitTs {
        CommitTs(self.timestamps[i])
    }

    /// The rows as (key, value, timestamp).
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8], CommitTs)> {
        (0..self.len()).map(|i| (self.key(i), self.value(i), self.ts(i)))
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.key_ends.clear();
        self.values.clear();
        self.places.clear();
        self.timestamps.clear();
        self.blocks.clear();
        (self.kept, self.value_bytes) = (0, 0);
    }

    /// Makes room for rows like the first one, of which about so many will come.
    fn reserve_like(&mut self, key: &[u8], value: &[u8], rows: usize) {
        const MAX_ROWS: usize = 1_024;
        const MAX_BYTES: usize = 256 << 10;
        let rows = rows.clamp(1, MAX_ROWS);
        self.keys.reserve((rows * key.len()).min(MAX_BYTES));
        if rows * value.len() < MIN_KEPT {
            self.values.reserve(rows * value.len());
        }
        self.key_ends.reserve(rows);
        self.places.reserve(rows);
        self.timestamps.reserve(rows);
    }

    /// Adds a row to a batch that will have about `rows`.
    #[inline]
    pub(crate) fn push_of(&mut self, rows: usize, key: &[u8], value: &[u8], ts: u64) {
        if self.timestamps.capacity() == 0 {
            self.reserve_like(key, value, rows);
        }
        self.keys.extend_from_slice(key);
        self.push_value(value);
        self.end_row(ts);
    }

    /// Adds a row of a block to a batch that will have about `rows`: `key` appends its key, and
    /// `source` is what [`RowBatch::keep`] said of the block.
    #[inline]
    pub(crate) fn push_from(
        &mut self,
        block: &RowBlock,
        row: usize,
        source: u32,
        key: impl FnOnce(&mut Vec<u8>),
    ) {
        key(&mut self.keys);
        if source == 0 {
            self.push_value(block.value(row));
        } else {
            let (start, end) = block.value_bounds(row);
            // Nobody looks at it yet, but soon.
            block.prefetch_value(start);
            self.value_bytes += end - start;
            self.places.push(Place { start, len: (end - start) as u32, source });
        }
        self.end_row(block.ts(row));
    }

    /// Keeps the block, if about `rows` rows of it that follow are worth it. Returns where their
    /// values will be: 0 for a copy.
    pub(crate) fn keep(&mut self, block: &RowBlock, rows: usize) -> u32 {
        // A few runs take turns: it is one of the latest blocks, or a new one.
        let before = self.blocks.len();
        if let Some(back) = self.blocks.iter().rev().take(8).position(|kept| kept.is(block)) {
            return (before - back) as u32;
        }
        let each = block.value_bytes_len() / block.len();
        if rows.min(block.len()) * each < MIN_KEPT || self.kept + block.memory() > MAX_KEPT {
            return 0;
        }
        self.kept += block.memory();
        self.blocks.push(block.clone());
        self.blocks.len() as u32
    }

    fn push_value(&mut self, value: &[u8]) {
        let place = Place { start: self.values.len(), len: value.len() as u32, source: 0 };
        self.values.extend_from_slice(value);
        self.value_bytes += value.len();
        self.places.push(place);
    }

    #[inline]
    fn end_row(&mut self, ts: u64) {
        self.key_ends.push(self.keys.len());
        self.timestamps.push(ts);
    }
}
