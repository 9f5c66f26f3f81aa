//! Builds row blocks; the format is in [`row_block`](super::row_block).
//!
//! Rows are collected back to back and cut into columns when the block is full: the shared prefix
//! and the widths of columns are known only then.

use super::columns::head_of;
use super::row_block::{BUNDLE, CONTINUES, HAS_CLASSES, HEADER, NO_FIXED_LEN};
use crate::key::Kind;

#[derive(Clone, Copy)]
struct PendingRow {
    /// End of its key and value in the collected bytes; they begin where the row before ends.
    key_end: u32,
    value_end: u32,
    ts: u64,
    kind: Kind,
    class: u8,
    same_key: bool,
}

/// Collects rows of one block.
#[derive(Default)]
pub(crate) struct RowBlockBuilder {
    rows: Vec<PendingRow>,
    keys: Vec<u8>,
    values: Vec<u8>,
    image: Vec<u8>,
    /// Where the rows begin that have the class of the last one.
    run: usize,
    /// Bytes of them in the blocks before, if they are all of this one.
    run_before: usize,
    /// Class of the last row of the block before, and the bytes of the rows there that end with it.
    before: Option<(u8, usize)>,
}

/// What an index says about a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockFacts {
    pub(crate) classes: u32,
    pub(crate) min_ts: u64,
    pub(crate) max_ts: u64,
    /// Keys whose newest entry here is a put.
    pub(crate) live: u32,
    pub(crate) has_delete: bool,
    pub(crate) has_multi: bool,
}

impl BlockFacts {
    /// The facts of no rows.
    pub(crate) const NONE: BlockFacts = BlockFacts {
        classes: 0,
        min_ts: u64::MAX,
        max_ts: 0,
        live: 0,
        has_delete: false,
        has_multi: false,
    };
}

impl RowBlockBuilder {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        let bytes = self.keys.capacity() + self.values.capacity() + self.image.capacity();
        bytes + self.rows.capacity() * size_of::<PendingRow>()
    }

    /// Rough size of the finished block.
    pub(crate) fn size(&self) -> usize {
        self.size_from(0)
    }

    /// Of its rows from one on.
    fn size_from(&self, row: usize) -> usize {
        let (key_start, value_start) = self.start(row);
        let (keys, values) = (self.keys.len() - key_start, self.values.len() - value_start);
        keys / 2 + values + (self.rows.len() - row) * 8
    }

    /// Whether its last rows are of one class and another one comes now, and have so many bytes,
    /// with those of the blocks before.
    pub(crate) fn ends_run(&self, class: u8, least: usize) -> bool {
        let ends = self.rows.last().is_some_and(|last| last.class != class);
        ends && self.run_bytes() >= least
    }

    fn run_bytes(&self) -> usize {
        let before = if self.run == 0 { self.run_before } else { 0 };
        before + self.size_from(self.run)
    }

    /// Takes its last rows out, if they have so many bytes, are of one class, and stand behind
    /// others.
    pub(crate) fn split_run(&mut self, least: usize) -> Option<RowBlockBuilder> {
        let run = self.run;
        if run == 0 || self.size_from(run) < least {
            return None;
        }
        let (key_start, value_start) = self.start(run);
        let mut rows = self.rows.split_off(run);
        for row in &mut rows {
            row.key_end -= key_start as u32;
            row.value_end -= value_start as u32;
        }
        let (keys, values) = (self.keys.split_off(key_start), self.values.split_off(value_start));
        Some(RowBlockBuilder { rows, keys, values, ..RowBlockBuilder::default() })
    }

    /// Where the key and the value of a row begin.
    fn start(&self, row: usize) -> (usize, usize) {
        row.checked_sub(1).map_or((0, 0), |before| {
            let before = &self.rows[before];
            (before.key_end as usize, before.value_end as usize)
        })
    }

    /// Of a builder that is not empty.
    pub(crate) fn first_key(&self) -> &[u8] {
        self.key(0)
    }

    pub(crate) fn last_key(&self) -> &[u8] {
        self.rows.len().checked_sub(1).map_or(&[], |last| self.key(last))
    }

    pub(crate) fn add(
        &mut self,
        key: &[u8],
        ts: u64,
        kind: Kind,
        value: &[u8],
        class: u8,
        same_key: bool,
    ) {
        match self.rows.last() {
            None => {
                let before = self.before.filter(|(before, _)| *before == class);
                (self.run, self.run_before) = (0, before.map_or(0, |(_, bytes)| bytes));
            }
            Some(last) if last.class != class => self.run = self.rows.len(),
            Some(_) => {}
        }
        self.keys.extend_from_slice(key);
        self.values.extend_from_slice(value);
        self.rows.push(PendingRow {
            key_end: self.keys.len() as u32,
            value_end: self.values.len() as u32,
            ts,
            kind,
            class,
            same_key,
        });
    }

    fn key(&self, row: usize) -> &[u8] {
        &self.keys[self.start(row).0..self.rows[row].key_end as usize]
    }

    fn facts(&self) -> BlockFacts {
        let mut facts = BlockFacts::NONE;
        for row in &self.rows {
            facts.classes |= 1 << (row.class & 31);
            facts.min_ts = facts.min_ts.min(row.ts);
            facts.max_ts = facts.max_ts.max(row.ts);
            facts.live += u32::from(row.kind == Kind::Put && !row.same_key);
            facts.has_delete |= row.kind == Kind::Delete;
            facts.has_multi |= row.same_key;
        }
        facts
    }

    /// The length of all values, if it is the same.
    fn fixed_value_len(&self) -> Option<u16> {
        let first = self.rows.first()?.value_end;
        let fits = u16::try_from(first).ok().filter(|len| *len != NO_FIXED_LEN)?;
        let mut expected = 0;
        self.rows
            .iter()
            .all(|row| {
                expected += first;
                row.value_end == expected
            })
            .then_some(fits)
    }

    /// Writes the block's image and empties the builder. Must hold at least one row.
    pub(crate) fn finish(&mut self) -> (Vec<u8>, BlockFacts) {
        let facts = self.facts();
        let n = self.rows.len();
        let prefix_len = common_prefix(self.key(0), self.key(n - 1)).min(u16::MAX as usize);
        let ts_width = width_of(facts.max_ts - facts.min_ts);
        // Suffixes and bundle prefixes together are never longer than the keys.
        let wide = self.keys.len().max(self.values.len()) > usize::from(u16::MAX);
        let off_width = if wide { 4 } else { 2 };
        let fixed = self.fixed_value_len();
        let has_classes = !facts.classes.is_power_of_two();
        let mut flags = 0;
        if self.rows[0].same_key {
            flags |= CONTINUES;
        }
        if has_classes {
            flags |= HAS_CLASSES;
        }
        let mut out = std::mem::take(&mut self.image);
        out.clear();
        out.resize(HEADER, 0);
        out.extend_from_slice(&self.key(0)[..prefix_len]);
        self.push_bundles(&mut out, prefix_len);
        for row in &self.rows {
            let distance = (row.ts - facts.min_ts).to_le_bytes();
            out.extend_from_slice(&distance[..ts_width]);
        }
        push_bits(&mut out, self.rows.iter().map(|row| row.same_key));
        push_bits(&mut out, self.rows.iter().map(|row| row.kind == Kind::Put));
        if has_classes {
            out.extend(self.rows.iter().map(|row| row.class));
        }
        let offsets = out.len();
        let columns = if fixed.is_some() { n + 1 } else { 2 * (n + 1) };
        out.resize(offsets + columns * off_width, 0);
        if fixed.is_none() {
            let at = offsets + (n + 1) * off_width;
            for (row, end) in self.rows.iter().map(|row| row.value_end).enumerate() {
                put_offset(&mut out, at + (row + 1) * off_width, off_width, end);
            }
        }
        let keys_start = out.len() as u32;
        self.push_keys(&mut out, prefix_len, offsets, off_width);
        let values_start = out.len() as u32;
        out.extend_from_slice(&self.values);
        out[0..2].copy_from_slice(&(n as u16).to_le_bytes());
        out[2..4].copy_from_slice(&(n.div_ceil(BUNDLE) as u16).to_le_bytes());
        out[4] = flags;
        out[6] = ts_width as u8;
        out[7] = off_width as u8;
        out[8..10].copy_from_slice(&(prefix_len as u16).to_le_bytes());
        out[10..12].copy_from_slice(&fixed.unwrap_or(NO_FIXED_LEN).to_le_bytes());
        out[12..16].copy_from_slice(&facts.classes.to_le_bytes());
        out[16..24].copy_from_slice(&facts.min_ts.to_le_bytes());
        out[24..32].copy_from_slice(&facts.max_ts.to_le_bytes());
        out[32..36].copy_from_slice(&keys_start.to_le_bytes());
        out[36..40].copy_from_slice(&values_start.to_le_bytes());
        self.before = self.rows.last().map(|last| (last.class, self.run_bytes()));
        self.rows.clear();
        self.keys.clear();
        self.values.clear();
        (out, facts)
    }

    /// Takes an image back, to write the next one into the same memory.
    pub(crate) fn recycle(&mut self, image: Vec<u8>) {
        self.image = image;
    }

    /// Rows of a bundle, and the length of what their keys share behind the block prefix.
    fn bundle(&self, bundle: usize, prefix_len: usize) -> (usize, usize, usize) {
        let (first, end) = (bundle * BUNDLE, ((bundle + 1) * BUNDLE).min(self.rows.len()));
        let first_key = &self.key(first)[prefix_len..];
        let last_key = &self.key(end - 1)[prefix_len..];
        (first, end, common_prefix(first_key, last_key).min(u16::MAX as usize))
    }

    /// Heads of bundles, then where their prefixes lie in the key bytes.
    fn push_bundles(&self, out: &mut Vec<u8>, prefix_len: usize) {
        let n_bundles = self.rows.len().div_ceil(BUNDLE);
        for bundle in 0..n_bundles {
            let head = head_of(&self.key(bundle * BUNDLE)[prefix_len..]);
            out.extend_from_slice(&head.to_le_bytes());
        }
        let mut at = 0u32;
        for bundle in 0..n_bundles {
            let (first, end, shared) = self.bundle(bundle, prefix_len);
            out.extend_from_slice(&at.to_le_bytes());
            out.extend_from_slice(&(shared as u16).to_le_bytes());
            let bytes = self.rows[end - 1].key_end as usize - self.start(first).0;
            at += (bytes - (end - first) * (prefix_len + shared) + shared) as u32;
        }
    }

    /// Key bytes in storage order: per bundle its prefix, then the suffixes. Fills the column of
    /// their offsets on the way.
    fn push_keys(&self, out: &mut Vec<u8>, prefix_len: usize, offsets: usize, off_width: usize) {
        let start = out.len();
        for bundle in 0..self.rows.len().div_ceil(BUNDLE) {
            let (first, end, shared) = self.bundle(bundle, prefix_len);
            out.extend_from_slice(&self.key(first)[prefix_len..prefix_len + shared]);
            for row in first..end {
                let offset = (out.len() - start) as u32;
                put_offset(out, offsets + row * off_width, off_width, offset);
                out.extend_from_slice(&self.key(row)[prefix_len + shared..]);
            }
        }
        let end = (out.len() - start) as u32;
        put_offset(out, offsets + self.rows.len() * off_width, off_width, end);
    }
}

fn put_offset(out: &mut [u8], at: usize, width: usize, offset: u32) {
    out[at..at + width].copy_from_slice(&offset.to_le_bytes()[..width]);
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

fn width_of(distance: u64) -> usize {
    match distance {
        0 => 0,
        1..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    }
}

fn push_bits(out: &mut Vec<u8>, bits: impl ExactSizeIterator<Item = bool>) {
    let start = out.len();
    out.resize(start + bits.len().div_ceil(64) * 8, 0);
    for (i, bit) in bits.enumerate() {
        out[start + i / 8] |= u8::from(bit) << (i % 8);
    }
}
