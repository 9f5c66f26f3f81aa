//! A position in the two-level index of an sst.
//!
//! A walker does not hold its sst; every call is given it. It holds the partition of the index that
//! it stands in, which the cache may have let go meanwhile.

use std::sync::Arc;

use super::format::BlockHandle;
use super::index_block::IndexBlock;
use super::reader::{Partition, SstReader};
use super::row_block::RowBlock;
use crate::cache::{COLD, Sidecar, WARM};
use crate::error::Result;
use crate::iter::ReadWork;

/// A walk that has loaded more blocks than this is a long scan: what it brings in is the first to
/// leave the cache again.
const LONG_WALK: u64 = 64;

/// Walks the blocks of one sst.
pub(crate) struct BlockWalker {
    part_no: usize,
    /// The partition, if the walker stands on an entry.
    part: Option<Arc<Partition>>,
    at: usize,
    /// Whether the walker stands on an entry.
    on_entry: bool,
    fill: bool,
    /// Whether the block that was loaded last lay in the cache.
    was_cached: bool,
    pub(crate) work: ReadWork,
}

/// Where the cache has a block, if it has it.
#[derive(Clone)]
pub(crate) struct BlockPlace {
    part: Arc<Partition>,
    at: usize,
    was_cached: bool,
}

impl BlockPlace {
    /// Whether the block lay in the cache when it was looked for, and there is room beside it.
    pub(crate) fn is_worth_keeping(&self) -> bool {
        self.was_cached && self.part.has_room_beside()
    }

    /// Brings what lies beside the block closer, if anything does.
    pub(crate) fn prefetch_sidecar(&self) {
        self.part.prefetch_sidecar(self.at);
    }

    /// What lies beside the block.
    pub(crate) fn sidecar(&self) -> Option<Arc<Sidecar>> {
        self.part.sidecar(self.at)
    }

    /// Says that somebody uses that.
    pub(crate) fn note_use_of_sidecar(&self) {
        self.part.note_use_of_sidecar(self.at);
    }

    /// Puts something beside it, if it is in the cache.
    pub(crate) fn keep(&self, sidecar: Arc<Sidecar>) {
        self.part.set_sidecar(self.at, sidecar);
    }
}

/// What is going to be looked at of the next block.
#[derive(Clone, Copy)]
pub(crate) enum Ahead {
    /// Where a search begins; that says where its rows are.
    Search,
    /// Its first rows.
    Rows,
    /// Which of its rows a reader sees; that begins with the header, which has to be there.
    Part,
}

/// The index entry a walker stands on.
pub(crate) struct EntryRef<'a> {
    index: &'a IndexBlock,
    at: usize,
}

impl<'a> EntryRef<'a> {
    pub(crate) fn separator(&self) -> &'a [u8] {
        self.index.separator(self.at)
    }

    pub(crate) fn min_ts(&self) -> u64 {
        self.index.min_ts(self.at)
    }

    pub(crate) fn max_ts(&self) -> u64 {
        self.index.max_ts(self.at)
    }

    pub(crate) fn classes(&self) -> u32 {
        self.index.classes(self.at)
    }

    pub(crate) fn handle(&self) -> BlockHandle {
        self.index.handle(self.at)
    }

    /// Whether every key of the block is certainly at or above `key`.
    pub(crate) fn is_above(&self, key: &[u8]) -> bool {
        is_above(self.index, self.at, key)
    }
}

/// Whether every key of block `at` is certainly at or above `key`: its keys are above the
/// separator of the block before. Of the first block of a partition nothing is known.
pub(crate) fn is_above(index: &IndexBlock, at: usize, key: &[u8]) -> bool {
    at > 0 && index.separator(at - 1) >= key
}

impl BlockWalker {
    /// `fill`: whether blocks that are read stay in the cache.
    pub(crate) fn new(fill: bool) -> BlockWalker {
        BlockWalker {
            part_no: 0,
            part: None,
            at: 0,
            on_entry: false,
            fill,
            was_cached: false,
            work: ReadWork::default(),
        }
    }

    /// Whether there is a current entry.
    pub(crate) fn is_on_entry(&self) -> bool {
        self.on_entry
    }

    /// The current entry; `None` at the end (or before the first seek).
    pub(crate) fn entry(&self) -> Option<EntryRef<'_>> {
        self.on_entry.then(|| EntryRef { index: &self.part().index, at: self.at })
    }

    /// The partition that the walker stands in.
    fn part(&self) -> &Arc<Partition> {
        self.part.as_ref().expect("a walker on an entry stands in a partition")
    }

    /// Enters a partition; its number of entries, or `None` behind the last one.
    fn enter(&mut self, reader: &SstReader, part_no: usize) -> Result<Option<usize>> {
        (self.part_no, self.part, self.on_entry) = (part_no, None, false);
        if part_no >= reader.top().len() {
            return Ok(None);
        }
        let part = reader.partition(part_no, self.fill, &mut self.work)?;
        self.on_entry = true;
        Ok(Some(self.part.insert(part).index.len()))
    }

    /// To the first block that may hold a key at or after `key`.
    #[inline]
    pub(crate) fn seek(&mut self, reader: &SstReader, key: &[u8]) -> Result<()> {
        if self.enter(reader, reader.top().lower_bound(key))?.is_some() {
            self.at = self.part().index.lower_bound(key);
        }
        self.normalise(reader)
    }

    /// To the first block.
    pub(crate) fn first(&mut self, reader: &SstReader) -> Result<()> {
        self.enter(reader, 0)?;
        self.at = 0;
        self.normalise(reader)
    }

    /// To the last block.
    pub(crate) fn last(&mut self, reader: &SstReader) -> Result<()> {
        self.on_entry = false;
        if let Some(last) = reader.top().len().checked_sub(1)
            && let Some(entries) = self.enter(reader, last)?
        {
            self.at = entries.saturating_sub(1);
            self.on_entry = entries > 0;
        }
        Ok(())
    }

    fn normalise(&mut self, reader: &SstReader) -> Result<()> {
        while self.on_entry && self.at >= self.part().index.len() {
            self.enter(reader, self.part_no + 1)?;
            self.at = 0;
        }
        Ok(())
    }

    /// To the next block for which `wanted(index, position)` holds, first asked of partitions.
    /// Returns whether blocks were left out on the way.
    pub(crate) fn next_where(
        &mut self,
        reader: &SstReader,
        wanted: impl Fn(&IndexBlock, usize) -> bool,
    ) -> Result<bool> {
        let mut skipped = false;
        while self.on_entry {
            self.at += 1;
            let index = &self.part().index;
            if self.at < index.len() {
                if wanted(index, self.at) {
                    return Ok(skipped);
                }
                skipped = true;
                continue;
            }
            let top = reader.top();
            let mut next = self.part_no + 1;
            while next < top.len() && !wanted(top, next) {
                skipped = true;
                next += 1;
            }
            let entries = self.enter(reader, next)?;
            self.at = 0;
            if entries.is_some_and(|n| n > 0) {
                if wanted(&self.part().index, 0) {
                    return Ok(skipped);
                }
                skipped = true;
            }
        }
        Ok(skipped)
    }

    /// To the previous block for which `wanted` holds.
    pub(crate) fn prev_where(
        &mut self,
        reader: &SstReader,
        wanted: impl Fn(&IndexBlock, usize) -> bool,
    ) -> Result<()> {
        while self.on_entry {
            if self.at > 0 {
                self.at -= 1;
                if wanted(&self.part().index, self.at) {
                    return Ok(());
                }
                continue;
            }
            let Some(before) = (0..self.part_no).rev().find(|part| wanted(reader.top(), *part))
            else {
                self.on_entry = false;
                return Ok(());
            };
            self.at = self.enter(reader, before)?.unwrap_or(0);
        }
        Ok(())
    }

    /// Reads the current block.
    pub(crate) fn load(&mut self, reader: &SstReader) -> Result<RowBlock> {
        let heat = if self.work.blocks > LONG_WALK { COLD } else { WARM };
        let part = self.part.as_ref().expect("a walker on an entry stands in a partition");
        let from_disk = self.work.from_disk;
        let block = reader.block(part, self.at, self.fill.then_some(heat), &mut self.work);
        self.was_cached = self.work.from_disk == from_disk;
        block
    }

    /// The place of the block that was loaded last.
    pub(crate) fn place(&self) -> BlockPlace {
        BlockPlace { part: self.part().clone(), at: self.at, was_cached: self.was_cached }
    }

    /// Brings the next blocks of the partition closer, if they are in memory.
    pub(crate) fn prefetch_next(&self, reader: &SstReader, what: Ahead) {
        let Some(part) = &self.part else { return };
        match what {
            Ahead::Search => reader.prefetch_block(part, self.at + 1),
            Ahead::Rows => reader.prefetch_columns(part, self.at + 1),
            Ahead::Part => {
                reader.prefetch_header(part, self.at + 2);
                reader.prefetch_classes(part, self.at + 1);
            }
        }
    }

    /// Brings the current block closer, if it is in memory.
    pub(crate) fn prefetch(&self, reader: &SstReader) {
        if self.on_entry {
            reader.prefetch_block(self.part(), self.at);
        }
    }
}
