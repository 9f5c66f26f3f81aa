//! Index blocks: where blocks lie, and what lets a read skip them.
//!
//! The index has two levels with one format: the top index (kept in memory with the open sst)
//! leads to partitions, a partition leads to row blocks. An entry's separator is at or above the
//! last key of its block and below the first key of the next one.
//!
//! ```text
//!   n u32 | separators' ends u32 x n | offset u64 x n | len u32 x n | cum_live u64 x n |
//!   classes u32 x n | min_ts u64 x n | max_ts u64 x n | flags u8 x n | separators
//! ```

use bytes::Bytes;

use super::format::{BlockHandle, le_u32, le_u64};
use super::row_block::BlockFacts;

const HAS_DELETE: u8 = 1;
const HAS_MULTI: u8 = 2;
const PER_ENTRY: usize = 4 + 8 + 4 + 8 + 4 + 8 + 8 + 1;

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
        let mut facts = BlockFacts {
            classes: 0,
            min_ts: u64::MAX,
            max_ts: 0,
            live: 0,
            has_delete: false,
            has_multi: false,
        };
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
    let shared = last.iter().zip(next).take_while(|(a, b)| a == b).count();
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

/// An index block in memory, checked when it was loaded.
pub(crate) struct IndexBlock {
    image: Bytes,
    n: usize,
}

impl IndexBlock {
    pub(crate) fn parse(image: Bytes) -> Result<IndexBlock, &'static str> {
        if image.len() < 4 {
            return Err("index block header is cut off");
        }
        let n = le_u32(&image, 0) as usize;
        let keys = n.checked_mul(PER_ENTRY).and_then(|x| x.checked_add(4));
        if keys.is_none_or(|keys| keys > image.len()) {
            return Err("index block columns do not fit");
        }
        let block = IndexBlock { image, n };
        let mut last = 0;
        for i in 0..n {
            let end = le_u32(&block.image, 4 + i * 4);
            if end < last {
                return Err("index separators overlap");
            }
            last = end;
        }
        if block.column(PER_ENTRY) + last as usize != block.image.len() {
            return Err("index separators have another length than they say");
        }
        Ok(block)
    }

    /// As if all rows under this index had been written at `ts`.
    pub(crate) fn override_ts(&mut self, ts: u64) {
        let mut image = self.image.to_vec();
        let columns = self.column(28)..self.column(44);
        for slot in image[columns].chunks_exact_mut(8) {
            slot.copy_from_slice(&ts.to_le_bytes());
        }
        self.image = image.into();
    }

    /// Start of the column behind `width` bytes of columns per entry.
    fn column(&self, width: usize) -> usize {
        4 + self.n * width
    }

    pub(crate) fn len(&self) -> usize {
        self.n
    }

    pub(crate) fn memory(&self) -> usize {
        self.image.len() + size_of::<IndexBlock>()
    }

    pub(crate) fn separator(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { le_u32(&self.image, 4 + (i - 1) * 4) as usize };
        let end = le_u32(&self.image, 4 + i * 4) as usize;
        let keys = self.column(PER_ENTRY);
        &self.image[keys + start..keys + end]
    }

    pub(crate) fn handle(&self, i: usize) -> BlockHandle {
        BlockHandle {
            offset: le_u64(&self.image, self.column(4) + i * 8),
            len: le_u32(&self.image, self.column(12) + i * 4),
        }
    }

    pub(crate) fn cum_live(&self, i: usize) -> u64 {
        le_u64(&self.image, self.column(16) + i * 8)
    }

    pub(crate) fn classes(&self, i: usize) -> u32 {
        le_u32(&self.image, self.column(24) + i * 4)
    }

    pub(crate) fn min_ts(&self, i: usize) -> u64 {
        le_u64(&self.image, self.column(28) + i * 8)
    }

    pub(crate) fn max_ts(&self, i: usize) -> u64 {
        le_u64(&self.image, self.column(36) + i * 8)
    }

    /// First entry whose separator is at or after `key`; `len()` if there is none.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.n);
        while low < high {
            let middle = low.midpoint(high);
            if self.separator(middle) < key { low = middle + 1 } else { high = middle }
        }
        low
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
        let block = IndexBlock::parse(builder.finish().into()).unwrap();
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
