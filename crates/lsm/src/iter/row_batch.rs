//! Rows in columns: what a fast scan hands out.
//!
//! All keys lie in one buffer. A value lies in a second buffer, or where it was read: the batch
//! then keeps the row block, and the value is a place in it.
//!
//! ```text
//!   keys     a1 a2 b7 c1 c2 c3          values     [ no. 0: own buffer | no. 1.. : blocks ]
//!   rows     (1, 4096, 100) (1, 4196, 100) (0, 0, 12) (1, 4296, 100) ...
//! ```
//!
//! Copying a value reads all of it, and it is cold more often than not; a reader that looks at
//! some columns, or passes the value on, then reads it twice. Blocks are only kept where many rows
//! come from them, and up to [`MAX_KEPT`] bytes: a batch of single rows from blocks here and there
//! would keep a thousand times its size.
//!
//! A scan that is asked for it ([`ScanOptions::blocks`](super::ScanOptions)) does not even look at
//! the rows of a block, if many of them come together: the batch then has *parts* of blocks, with
//! single rows between them. Whoever asks it for a row by number gets it all the same; all rows are
//! put together for the first one who does.
//!
//! ```text
//!   pieces   [ part of block 1: 290 rows ] [ 3 single rows ] [ part of block 2: 301 rows ]
//! ```

use std::ops::Range;
use std::sync::OnceLock;

use super::block_part::BlockPart;
use crate::key::CommitTs;
use crate::sstable::RowBlock;

/// Bytes of blocks that a batch keeps; values behind that are copied.
const MAX_KEPT: usize = 1 << 20;
/// Values that make up less than this are copied: counting a reference would cost as much.
const MIN_KEPT: usize = 512;

/// Some rows of a scan. It may keep up to 1 MiB of row blocks in memory until it is cleared or
/// dropped.
#[derive(Clone, Default)]
pub struct RowBatch {
    keys: Vec<u8>,
    values: Vec<u8>,
    rows: Vec<Place>,
    /// Blocks that values lie in: place number 1 and on.
    blocks: Vec<RowBlock>,
    kept: usize,
    value_bytes: usize,
    copies: bool,
    /// Parts of blocks with single rows between them; empty: single rows only.
    sections: Vec<Section>,
    /// Rows of the parts, and their bytes.
    part_rows: usize,
    part_bytes: usize,
    /// All rows as single ones, if there are parts and somebody has asked.
    single: OnceLock<Box<RowBatch>>,
}

/// A part of a batch.
#[derive(Clone)]
enum Section {
    /// The next of the single rows: so many.
    Single(usize),
    Part(BlockPart),
}

/// A part of a batch, as [`RowBatch::pieces`] gives it.
pub enum Piece<'a> {
    /// Single rows.
    Single(SingleRows<'a>),
    /// Of the part's rows, those at these places in its list.
    Part(&'a BlockPart, Range<usize>),
}

/// Single rows of a batch.
#[derive(Clone)]
pub struct SingleRows<'a> {
    batch: &'a RowBatch,
    rows: Range<usize>,
}

impl<'a> SingleRows<'a> {
    /// How many.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Key of row `i`; panics if `i >= len()`.
    #[inline]
    pub fn key(&self, i: usize) -> &'a [u8] {
        self.batch.single_key(self.rows.start + i)
    }

    /// Value of row `i`; panics if `i >= len()`.
    #[inline]
    pub fn value(&self, i: usize) -> &'a [u8] {
        self.batch.single_value(self.rows.start + i)
    }
}

/// Where a row lies.
#[derive(Clone, Copy)]
struct Place {
    /// Where its key ends: it begins where the one before ends.
    key_end: usize,
    /// Where its value begins in its source.
    start: usize,
    len: u32,
    /// 0: in the batch's own buffer; n: in block n - 1.
    source: u32,
    ts: u64,
}

impl RowBatch {
    /// An empty batch.
    pub fn new() -> RowBatch {
        RowBatch::default()
    }

    /// An empty batch that keeps no blocks: all values will lie in it. For few rows that may be
    /// held for long.
    pub fn copying() -> RowBatch {
        RowBatch { copies: true, ..RowBatch::default() }
    }

    /// As [`RowBatch::copying`], with room for somewhat more than another one has, and not for all
    /// rows that it may get at most.
    pub fn copying_like(other: &RowBatch) -> RowBatch {
        const SPARE: usize = 2;
        RowBatch {
            keys: Vec::with_capacity(other.keys.len() * SPARE),
            values: Vec::with_capacity(other.values.len() * SPARE),
            rows: Vec::with_capacity((other.len() * SPARE).max(1)),
            ..RowBatch::copying()
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len() + self.part_rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of keys and values; of parts of blocks, about.
    pub fn byte_len(&self) -> usize {
        self.keys.len() + self.value_bytes + self.part_bytes
    }

    /// Bytes of memory that it takes, kept blocks included.
    pub fn memory(&self) -> usize {
        let own = self.keys.capacity() + self.values.capacity();
        let single = self.single.get().map_or(0, |single| single.memory());
        own + self.rows.capacity() * size_of::<Place>() + self.kept + single
    }

    /// Whether it has parts of blocks.
    pub fn has_parts(&self) -> bool {
        !self.sections.is_empty()
    }

    /// Its parts of blocks.
    pub fn parts(&self) -> impl Iterator<Item = &BlockPart> {
        self.sections.iter().filter_map(|section| match section {
            Section::Part(part) => Some(part),
            Section::Single(_) => None,
        })
    }

    /// These rows, in order, as they came.
    pub fn pieces(&self, rows: Range<usize>) -> impl Iterator<Item = Piece<'_>> {
        let (mut at, mut singles, mut left) = (0, 0, rows);
        let mut numbers = 0..self.sections.len().max(1);
        std::iter::from_fn(move || {
            while let Some(number) = numbers.next().filter(|_| !left.is_empty()) {
                let (len, part) = match self.sections.get(number) {
                    None => (self.rows.len(), None),
                    Some(Section::Single(rows)) => (*rows, None),
                    Some(Section::Part(part)) => (part.rows().len(), Some(part)),
                };
                let here = left.start.max(at) - at..left.end.clamp(at, at + len) - at;
                let first = singles;
                at += len;
                singles += if part.is_none() { len } else { 0 };
                if here.is_empty() {
                    continue;
                }
                left.start = at;
                let rows = first + here.start..first + here.end;
                return Some(match part {
                    Some(part) => Piece::Part(part, here),
                    None => Piece::Single(SingleRows { batch: self, rows }),
                });
            }
            None
        })
    }

    /// All rows as single ones, if they are not.
    fn as_single(&self) -> Option<&RowBatch> {
        if self.sections.is_empty() {
            return None;
        }
        Some(self.single.get_or_init(|| {
            let mut single = RowBatch::copying();
            let mut key = Vec::new();
            for piece in self.pieces(0..self.len()) {
                match piece {
                    Piece::Single(rows) => {
                        let places = &self.rows[rows.rows.clone()];
                        for (i, place) in places.iter().enumerate() {
                            single.push_of(self.len(), rows.key(i), rows.value(i), place.ts);
                        }
                    }
                    Piece::Part(part, rows) => {
                        for row in part.rows()[rows].iter().copied().map(usize::from) {
                            part.read_key(row, &mut key);
                            single.push_of(self.len(), &key, part.value(row), part.ts(row).0);
                        }
                    }
                }
            }
            Box::new(single)
        }))
    }

    /// Makes single rows of all rows.
    pub fn make_single(&mut self) {
        self.as_single();
        if let Some(single) = self.single.take() {
            let copies = self.copies;
            *self = RowBatch { copies, ..*single };
        }
    }

    /// Puts the key of row `i` into `key`: for who wants few of them. Panics if `i >= len()`.
    pub fn read_key(&self, i: usize, key: &mut Vec<u8>) {
        match self.pieces(i..i + 1).next().expect("a batch has as many rows as it says") {
            Piece::Part(part, at) => part.read_key(part.rows()[at.start].into(), key),
            Piece::Single(rows) => {
                key.clear();
                key.extend_from_slice(rows.key(0));
            }
        }
    }

    /// Key of row `i`; panics if `i >= len()`.
    #[inline]
    pub fn key(&self, i: usize) -> &[u8] {
        self.as_single().unwrap_or(self).single_key(i)
    }

    #[inline]
    fn single_key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.rows[i - 1].key_end };
        &self.keys[start..self.rows[i].key_end]
    }

    /// Value of row `i`; panics if `i >= len()`.
    #[inline]
    pub fn value(&self, i: usize) -> &[u8] {
        self.as_single().unwrap_or(self).single_value(i)
    }

    #[inline]
    fn single_value(&self, i: usize) -> &[u8] {
        let Place { start, len, source, .. } = self.rows[i];
        match source.checked_sub(1) {
            None => &self.values[start..start + len as usize],
            Some(block) => self.blocks[block as usize].bytes_at(start, len as usize),
        }
    }

    /// Commit timestamp of row `i`; panics if `i >= len()`.
    pub fn ts(&self, i: usize) -> CommitTs {
        CommitTs(self.as_single().unwrap_or(self).rows[i].ts)
    }

    /// The rows as (key, value, timestamp).
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8], CommitTs)> {
        (0..self.len()).map(|i| (self.key(i), self.value(i), self.ts(i)))
    }

    /// Adds a row, copied.
    pub fn push(&mut self, key: &[u8], value: &[u8], ts: CommitTs) {
        self.push_of(1, key, value, ts.0);
    }

    /// Gives row `i` another value; panics if `i >= len()`.
    pub fn set_value(&mut self, i: usize, value: &[u8]) {
        self.make_single();
        let place = &mut self.rows[i];
        self.value_bytes = self.value_bytes - place.len as usize + value.len();
        (place.start, place.len, place.source) = (self.values.len(), value.len() as u32, 0);
        self.values.extend_from_slice(value);
    }

    /// Keeps the rows from row `from` on whose keys are wanted, and all before it.
    pub fn retain_keys(&mut self, from: usize, mut wanted: impl FnMut(&[u8]) -> bool) {
        self.make_single();
        let mut key_start = from.checked_sub(1).map_or(0, |before| self.rows[before].key_end);
        let (mut kept, mut kept_end) = (from, key_start);
        for i in from..self.rows.len() {
            let key = key_start..self.rows[i].key_end;
            key_start = key.end;
            if !wanted(&self.keys[key.clone()]) {
                self.value_bytes -= self.rows[i].len as usize;
                continue;
            }
            let len = key.len();
            // Where nothing was taken out so far, all stays where it is.
            if key.start > kept_end {
                self.keys.copy_within(key, kept_end);
            }
            kept_end += len;
            self.rows[kept] = Place { key_end: kept_end, ..self.rows[i] };
            kept += 1;
        }
        self.rows.truncate(kept);
        self.keys.truncate(kept_end);
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.rows.clear();
        self.blocks.clear();
        (self.kept, self.value_bytes) = (0, 0);
        self.sections.clear();
        (self.part_rows, self.part_bytes) = (0, 0);
        self.single.take();
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
        self.rows.reserve(rows);
    }

    /// Adds a row to a batch that will have about `rows`.
    #[inline]
    pub(crate) fn push_of(&mut self, rows: usize, key: &[u8], value: &[u8], ts: u64) {
        if self.rows.capacity() == 0 {
            self.reserve_like(key, value, rows);
        }
        self.keys.extend_from_slice(key);
        self.push_value(value, ts);
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
            return self.push_value(block.value(row), block.ts(row));
        }
        let (start, end) = block.value_bounds(row);
        // Nobody looks at it yet, but soon.
        block.prefetch_value(start);
        self.push_place(start, end - start, source, block.ts(row));
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
        if self.copies {
            return 0;
        }
        if rows.min(block.len()) * each < MIN_KEPT || self.kept + block.memory() > MAX_KEPT {
            return 0;
        }
        self.kept += block.memory();
        self.blocks.push(block.clone());
        self.blocks.len() as u32
    }

    fn push_value(&mut self, value: &[u8], ts: u64) {
        let start = self.values.len();
        self.values.extend_from_slice(value);
        self.push_place(start, value.len(), 0, ts);
    }

    #[inline]
    fn push_place(&mut self, start: usize, len: usize, source: u32, ts: u64) {
        self.value_bytes += len;
        let (key_end, len) = (self.keys.len(), len as u32);
        self.rows.push(Place { key_end, start, len, source, ts });
        if !self.sections.is_empty() {
            self.count_single();
        }
    }

    /// A single row was added behind a part.
    fn count_single(&mut self) {
        self.single.take();
        match self.sections.last_mut() {
            Some(Section::Single(rows)) => *rows += 1,
            _ => self.sections.push(Section::Single(1)),
        }
    }

    /// Adds a part of a block, which is not empty.
    pub(crate) fn push_part(&mut self, part: BlockPart) {
        self.single.take();
        if self.sections.is_empty() && !self.rows.is_empty() {
            self.sections.push(Section::Single(self.rows.len()));
        }
        self.part_rows += part.rows().len();
        self.part_bytes += part.byte_len();
        self.kept += part.memory();
        self.sections.push(Section::Part(part));
    }
}

/// Batches are equal if their rows are, wherever those lie.
impl PartialEq for RowBatch {
    fn eq(&self, other: &RowBatch) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for RowBatch {}

impl std::fmt::Debug for RowBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_can_get_another_value() {
        let mut batch = RowBatch::new();
        let rows = [("a", "one"), ("b", "two"), ("c", "")];
        for (key, value) in rows {
            batch.push(key.as_bytes(), value.as_bytes(), CommitTs(7));
        }
        for (i, value) in [(1, "much longer"), (0, ""), (2, "new"), (1, "2")] {
            batch.set_value(i, value.as_bytes());
            assert_eq!((batch.value(i), batch.ts(i)), (value.as_bytes(), CommitTs(7)));
        }
        let mut expected = RowBatch::copying();
        for (key, value) in [("a", ""), ("b", "2"), ("c", "new")] {
            expected.push(key.as_bytes(), value.as_bytes(), CommitTs(7));
        }
        assert_eq!((&batch, batch.byte_len()), (&expected, expected.byte_len()));
    }

    #[test]
    fn rows_that_nobody_wants_can_be_taken_out() {
        for from in 0..4 {
            let mut batch = RowBatch::new();
            let names = ["a", "bb", "ccc", "dddd", "e", "ff"];
            for (n, name) in names.iter().enumerate() {
                batch.push(name.as_bytes(), name.to_uppercase().as_bytes(), CommitTs(n as u64));
            }
            batch.retain_keys(from, |key| key.len() % 2 == 0);
            let wanted = names.iter().enumerate();
            let wanted = wanted.filter(|(n, name)| *n < from || name.len() % 2 == 0);
            let mut expected = RowBatch::copying();
            for (n, name) in wanted {
                expected.push(name.as_bytes(), name.to_uppercase().as_bytes(), CommitTs(n as u64));
            }
            assert_eq!(batch, expected, "from {from}");
            assert_eq!(batch.byte_len(), expected.byte_len(), "from {from}");
            batch.push(b"g", b"G", CommitTs(9));
            assert_eq!(
                (batch.key(batch.len() - 1), batch.len()),
                (b"g".as_ref(), expected.len() + 1)
            );
        }
    }
}
