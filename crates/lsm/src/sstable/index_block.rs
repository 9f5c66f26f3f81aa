//! Index blocks: where blocks lie, and what lets a read skip them.
//!
//! The index has two levels with one format: the top index (kept in memory with the open sst)
//! leads to partitions, a partition leads to row blocks. An entry's separator is at or above the
//! last key of its block and below the first key of the next one.
//!
//! ```text
//!   n u32 | shared u32 | heads u64 x n | separators' ends u32 x n | offset u64 x n | len u32 x n |
//!   cum_live u64 x n | classes u32 x n | min_ts u64 x n | max_ts u64 x n | flags u8 x n |
//!   separators
//! ```
//!
//! `shared` is the length of what all separators begin with, a head the eight bytes behind that:
//! a search runs over a dense column of numbers, and looks at a separator only if heads are equal.

use crate::cache::Frame;

use super::columns::{head_of, partition_point, slice_at, u32_at, u64_at};
use super::format::{BlockHandle, le_u32};
use super::prefix::Prefix;
use super::row_block_builder::BlockFacts;

const HAS_DELETE: u8 = 1;
const HAS_MULTI: u8 = 2;
const HEADER: usize = 8;
const PER_ENTRY: usize = 8 + 4 + 8 + 4 + 8 + 4 + 8 + 8 + 1;

struct PendingEntry {
    separator: Vec<u8>,
    handle: BlockHandle,
    facts: BlockFacts,
    cum_live: u64,
}

/// Collects the entries of one index block.
#[derive(Default)]
pub(crate) struct IndexBuilder {
    entries: Vec<PendingEntry>,
    bytes: usize,
}

impl IndexBuilder {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn size(&self) -> usize {
        self.bytes
    }

    /// `cum_live`: live rows of the sst up to and including this block.
    pub(crate) fn add(
        &mut self,
        separator: Vec<u8>,
        handle: BlockHandle,
        facts: BlockFacts,
        cum_live: u64,
    ) {
        self.bytes += separator.len() + PER_ENTRY;
        self.entries.push(PendingEntry { separator, handle, facts, cum_live });
    }

    /// Facts over all entries, and the last separator: what the level above says of this block.
    pub(crate) fn summary(&self) -> (Vec<u8>, BlockFacts, u64) {
        let mut facts = BlockFacts::NONE;
        for entry in &self.entries {
            facts.classes |= entry.facts.classes;
            facts.min_ts = facts.min_ts.min(entry.facts.min_ts);
            facts.max_ts = facts.max_ts.max(entry.facts.max_ts);
            facts.has_delete |= entry.facts.has_delete;
            facts.has_multi |= entry.facts.has_multi;
        }
        let last = self.entries.last();
        let separator = last.map_or(Vec::new(), |entry| entry.separator.clone());
        (separator, facts, last.map_or(0, |entry| entry.cum_live))
    }

    /// Writes the image and empties the builder.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let entries = std::mem::take(&mut self.entries);
        self.bytes = 0;
        let mut out = (entries.len() as u32).to_le_bytes().to_vec();
        let shared = match (entries.first(), entries.last()) {
            (Some(a), Some(b)) => shared_len(&a.separator, &b.separator),
            _ => 0,
        };
        out.extend_from_slice(&(shared as u32).to_le_bytes());
        for entry in &entries {
            out.extend_from_slice(&head_of(&entry.separator[shared..]).to_le_bytes());
        }
        let mut end = 0u32;
        for entry in &entries {
            end += entry.separator.len() as u32;
            out.extend_from_slice(&end.to_le_bytes());
        }
        entries.iter().for_each(|e| out.extend_from_slice(&e.handle.offset.to_le_bytes()));
        entries.iter().for_each(|e| out.extend_from_slice(&e.handle.len.to_le_bytes()));
        entries.iter().for_each(|e| out.extend_from_slice(&e.cum_live.to_le_bytes()));
        entries.iter().for_each(|e| out.extend_from_slice(&e.facts.classes.to_le_bytes()));
        entries.iter().for_each(|e| out.extend_from_slice(&e.facts.min_ts.to_le_bytes()));
        entries.iter().for_each(|e| out.extend_from_slice(&e.facts.max_ts.to_le_bytes()));
        out.extend(entries.iter().map(|e| {
            (u8::from(e.facts.has_delete) * HAS_DELETE) | (u8::from(e.facts.has_multi) * HAS_MULTI)
        }));
        entries.iter().for_each(|e| out.extend_from_slice(&e.separator));
        out
    }
}

/// A separator as short as possible: at or above `last`, below `next`.
pub(crate) fn separator(last: &[u8], next: Option<&[u8]>) -> Vec<u8> {
    let Some(next) = next else { return last.to_vec() };
    let shared = shared_len(last, next);
    // last = shared + x..., next = shared + y... with x < y: shared + (x + 1) fits if below y.
    if let (Some(&x), Some(&y)) = (last.get(shared), next.get(shared))
        && x + 1 < y
        && last.len() > shared + 1
    {
        let mut short = last[..=shared].to_vec();
        short[shared] = x + 1;
        return short;
    }
    last.to_vec()
}

fn shared_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// An index block in memory. What leads from one place of the image to another is checked by
/// [`IndexBlock::parse`]; the SAFETY notes refer to that.
pub(crate) struct IndexBlock {
    image: Frame<()>,
    n: usize,
    shared: usize,
    /// What all separators begin with, if it is short.
    prefix: Option<Prefix>,
}

impl IndexBlock {
    pub(crate) fn parse(image: &[u8]) -> Result<IndexBlock, &'static str> {
        if image.len() < HEADER {
            return Err("index block header is cut off");
        }
        let n = le_u32(image, 0) as usize;
        let keys = n.checked_mul(PER_ENTRY).and_then(|x| x.checked_add(HEADER));
        if keys.is_none_or(|keys| keys > image.len()) {
            return Err("index block columns do not fit");
        }
        let shared = le_u32(image, 4) as usize;
        let image = Frame::new((), image);
        let mut block = IndexBlock { image, n, shared, prefix: None };
        let mut last = 0;
        for i in 0..n {
            let end = block.end(i);
            if end < last {
                return Err("index separators overlap");
            }
            last = end;
        }
        if block.column(PER_ENTRY) + last as usize != block.image().len() {
            return Err("index separators have another length than they say");
        }
        block.check_heads()?;
        block.prefix = if n == 0 { None } else { Prefix::of(&block.separator(0)[..shared]) };
        Ok(block)
    }

    /// As if all rows under this index had been written at `ts`.
    pub(crate) fn override_ts(&mut self, ts: u64) {
        let mut image = self.image().to_vec();
        let columns = self.column(36)..self.column(52);
        for slot in image[columns].chunks_exact_mut(8) {
            slot.copy_from_slice(&ts.to_le_bytes());
        }
        self.image = Frame::new((), &image);
    }

    fn check_heads(&self) -> Result<(), &'static str> {
        if self.n == 0 {
            return Ok(());
        }
        let prefix = self.separator(0).get(..self.shared).ok_or("index prefix is cut off")?;
        for i in 0..self.n {
            let own = self.separator(i).strip_prefix(prefix);
            if own.map(head_of) != Some(self.head(i)) {
                return Err("an index head is not that of its separator");
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn image(&self) -> &[u8] {
        self.image.image()
    }

    /// Start of the column behind `width` bytes of columns per entry.
    fn column(&self, width: usize) -> usize {
        HEADER + self.n * width
    }

    fn head(&self, i: usize) -> u64 {
        self.number(0, i)
    }

    fn end(&self, i: usize) -> u32 {
        self.short(8, i)
    }

    /// Entry `i` of a column of `u64`.
    fn number(&self, width: usize, i: usize) -> u64 {
        assert!(i < self.n, "index entry out of range");
        // SAFETY: `i < n`, and n entries of all columns lie in the image (parse).
        unsafe { u64_at(self.image(), self.column(width) + i * 8) }
    }

    /// Entry `i` of a column of `u32`.
    fn short(&self, width: usize, i: usize) -> u32 {
        assert!(i < self.n, "index entry out of range");
        // SAFETY: `i < n`, and n entries of all columns lie in the image (parse).
        unsafe { u32_at(self.image(), self.column(width) + i * 4) }
    }

    pub(crate) fn len(&self) -> usize {
        self.n
    }

    pub(crate) fn memory(&self) -> usize {
        self.image.memory() + size_of::<IndexBlock>()
    }

    pub(crate) fn separator(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.end(i - 1) as usize };
        let keys = self.column(PER_ENTRY);
        // SAFETY: ends of separators ascend, and the last one is the image's end (parse).
        unsafe { slice_at(self.image(), keys + start, keys + self.end(i) as usize) }
    }

    pub(crate) fn handle(&self, i: usize) -> BlockHandle {
        BlockHandle { offset: self.number(12, i), len: self.short(20, i) }
    }

    pub(crate) fn cum_live(&self, i: usize) -> u64 {
        self.number(24, i)
    }

    pub(crate) fn classes(&self, i: usize) -> u32 {
        self.short(32, i)
    }

    /// Whether a key of the block has several versions in it.
    pub(crate) fn has_versions(&self, i: usize) -> bool {
        self.image()[self.column(PER_ENTRY - 1) + i] & HAS_MULTI != 0
    }

    pub(crate) fn min_ts(&self, i: usize) -> u64 {
        self.number(36, i)
    }

    pub(crate) fn max_ts(&self, i: usize) -> u64 {
        self.number(44, i)
    }

    /// What all separators begin with.
    fn shared(&self) -> &[u8] {
        let keys = self.column(PER_ENTRY);
        // SAFETY: every separator begins with `shared` bytes (check_heads), so they are there.
        unsafe { slice_at(self.image(), keys, keys + self.shared) }
    }

    /// First entry whose separator is at or after `key`; `len()` if there is none.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        if self.n == 0 {
            return 0;
        }
        let stripped = match &self.prefix {
            Some(prefix) => prefix.strip(key),
            None => key.strip_prefix(self.shared()),
        };
        let Some(rest) = stripped else {
            return if key < self.shared() { 0 } else { self.n };
        };
        let head = head_of(rest);
        // SAFETY: positions are below n, and the column lies in the image (parse).
        let head_of_entry = |i: usize| unsafe { u64_at(self.image(), HEADER + i * 8) };
        let at = partition_point(self.n, |i| head_of_entry(i) < head);
        if at == self.n || head_of_entry(at) != head {
            return at;
        }
        let equal = partition_point(self.n - at, |i| head_of_entry(at + i) == head);
        at + partition_point(equal, |i| self.separator(at + i) < key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_stay_between_their_blocks() {
        for (last, next) in [("abc", "abz"), ("ab", "abc"), ("a\u{1}zzz", "b"), ("abc", "x")] {
            let short = separator(last.as_bytes(), Some(next.as_bytes()));
            assert!(last.as_bytes() <= short.as_slice() && short.as_slice() < next.as_bytes());
            assert!(short.len() <= last.len());
        }
    }

    #[test]
    fn entries_round_trip() {
        let mut builder = IndexBuilder::default();
        for i in 0..50u64 {
            let facts = BlockFacts {
                classes: i as u32,
                min_ts: i,
                max_ts: i * 2,
                live: 1,
                has_delete: i % 2 == 0,
                has_multi: false,
            };
            let handle = BlockHandle { offset: i * 100, len: i as u32 };
            builder.add(format!("k{i:02}").into_bytes(), handle, facts, i * 10);
        }
        let block = IndexBlock::parse(&builder.finish()).unwrap();
        assert_eq!(block.len(), 50);
        for i in 0..50 {
            assert_eq!(block.separator(i), format!("k{i:02}").as_bytes());
            assert_eq!(block.handle(i), BlockHandle { offset: i as u64 * 100, len: i as u32 });
            assert_eq!(block.max_ts(i), i as u64 * 2);
            assert_eq!((block.min_ts(i), block.classes(i)), (i as u64, i as u32));
            assert_eq!(block.cum_live(i), i as u64 * 10);
        }
        assert_eq!(block.lower_bound(b"k07"), 7);
        assert_eq!(block.lower_bound(b"k070"), 8);
        assert_eq!(block.lower_bound(b"z"), 50);
    }
}
