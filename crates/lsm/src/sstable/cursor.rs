//! Walks an sst: block by block through the index, row by row at a timestamp.

use std::sync::Arc;

use super::format::BlockHandle;
use super::index_block::IndexBlock;
use super::reader::SstReader;
use super::row_block::RowBlock;
use crate::error::Result;
use crate::key::Kind;
use crate::range_tombstone::Cover;
use crate::view::ReadCounters;

/// A position in the two-level index.
pub(crate) struct BlockWalker {
    reader: Arc<SstReader>,
    part_no: usize,
    part: Option<Arc<IndexBlock>>,
    at: usize,
    counters: Option<Arc<ReadCounters>>,
    fill: bool,
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
}

impl BlockWalker {
    pub(crate) fn new(
        reader: Arc<SstReader>,
        counters: Option<Arc<ReadCounters>>,
        fill: bool,
    ) -> BlockWalker {
        BlockWalker { reader, part_no: 0, part: None, at: 0, counters, fill }
    }

    pub(crate) fn reader(&self) -> &Arc<SstReader> {
        &self.reader
    }

    fn row_passed(&self) {
        if let Some(counters) = &self.counters {
            counters.row_passed();
        }
    }

    /// The current entry; `None` at the end (or before the first seek).
    pub(crate) fn entry(&self) -> Option<EntryRef<'_>> {
        self.part.as_deref().map(|index| EntryRef { index, at: self.at })
    }

    /// Where the current block lies.
    pub(crate) fn handle(&self) -> Option<BlockHandle> {
        self.part.as_ref().map(|part| part.handle(self.at))
    }

    fn enter(&mut self, part_no: usize) -> Result<()> {
        self.part_no = part_no;
        self.part = if part_no < self.reader.top().len() {
            Some(self.reader.partition(part_no, self.counters.as_deref())?)
        } else {
            None
        };
        Ok(())
    }

    /// To the first block that may hold a key at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.enter(self.reader.top().lower_bound(key))?;
        self.at = self.part.as_ref().map_or(0, |part| part.lower_bound(key));
        self.normalise()
    }

    /// To the first block.
    pub(crate) fn first(&mut self) -> Result<()> {
        self.enter(0)?;
        self.at = 0;
        self.normalise()
    }

    /// To the last block.
    pub(crate) fn last(&mut self) -> Result<()> {
        match self.reader.top().len().checked_sub(1) {
            Some(last) => {
                self.enter(last)?;
                self.at = self.part.as_ref().map_or(0, |part| part.len().saturating_sub(1));
            }
            None => self.part = None,
        }
        Ok(())
    }

    fn normalise(&mut self) -> Result<()> {
        while self.part.as_ref().is_some_and(|part| self.at >= part.len()) {
            self.enter(self.part_no + 1)?;
            self.at = 0;
        }
        Ok(())
    }

    /// To the next block for which `wanted(index, position)` holds, first asked of partitions.
    pub(crate) fn next_where(&mut self, wanted: impl Fn(&IndexBlock, usize) -> bool) -> Result<()> {
        loop {
            let Some(part) = &self.part else { return Ok(()) };
            self.at += 1;
            if self.at < part.len() {
                if wanted(part, self.at) {
                    return Ok(());
                }
                continue;
            }
            let mut next = self.part_no + 1;
            while next < self.reader.top().len() && !wanted(self.reader.top(), next) {
                next += 1;
            }
            self.enter(next)?;
            self.at = 0;
            if self.part.as_ref().is_none_or(|part| part.len() > 0 && wanted(part, 0)) {
                return Ok(());
            }
        }
    }

    /// To the previous block for which `wanted` holds.
    pub(crate) fn prev_where(&mut self, wanted: impl Fn(&IndexBlock, usize) -> bool) -> Result<()> {
        loop {
            let Some(part) = &self.part else { return Ok(()) };
            if self.at > 0 {
                self.at -= 1;
                if wanted(part, self.at) {
                    return Ok(());
                }
                continue;
            }
            let mut next = self.part_no;
            loop {
                if next == 0 {
                    self.part = None;
                    return Ok(());
                }
                next -= 1;
                if wanted(self.reader.top(), next) {
                    break;
                }
            }
            self.enter(next)?;
            self.at = self.part.as_ref().map_or(0, |part| part.len());
        }
    }

    /// Reads the current block.
    pub(crate) fn load(&self) -> Result<Arc<RowBlock>> {
        let part = self.part.as_ref().expect("callers stand on an entry");
        self.reader.rows(part.handle(self.at), self.fill, self.counters.as_deref())
    }
}

/// The newest visible entry per key of one sst, in either direction.
pub(crate) struct SstCursor {
    walker: BlockWalker,
    block: Option<Arc<RowBlock>>,
    row: usize,
    /// Backward: first row of the current key's group in `block`; `None` if the group began in an
    /// earlier block.
    group_start: Option<usize>,
    key: Vec<u8>,
    read_ts: u64,
    classes: u32,
    backward: bool,
}

impl SstCursor {
    pub(crate) fn new(
        reader: Arc<SstReader>,
        read_ts: u64,
        backward: bool,
        classes: u32,
        fill: bool,
        counters: Arc<ReadCounters>,
    ) -> SstCursor {
        SstCursor {
            walker: BlockWalker::new(reader, Some(counters), fill),
            block: None,
            row: 0,
            group_start: None,
            key: Vec::new(),
            read_ts,
            classes,
            backward,
        }
    }

    pub(crate) fn reader(&self) -> &Arc<SstReader> {
        self.walker.reader()
    }

    fn entry_wanted(&self) -> bool {
        self.walker.entry().is_none_or(|entry| {
            entry.min_ts() <= self.read_ts && entry.classes() & self.classes != 0
        })
    }

    fn next_block(&mut self) -> Result<()> {
        let (read_ts, classes) = (self.read_ts, self.classes);
        self.walker
            .next_where(|index, i| index.min_ts(i) <= read_ts && index.classes(i) & classes != 0)
    }

    fn prev_block(&mut self) -> Result<()> {
        let (read_ts, classes) = (self.read_ts, self.classes);
        self.walker
            .prev_where(|index, i| index.min_ts(i) <= read_ts && index.classes(i) & classes != 0)
    }

    pub(crate) fn seek(&mut self, to: &[u8]) -> Result<()> {
        if self.backward { self.seek_below(to) } else { self.seek_at(to) }
    }

    fn seek_at(&mut self, key: &[u8]) -> Result<()> {
        self.walker.seek(key)?;
        if !self.entry_wanted() {
            self.next_block()?;
        }
        if self.walker.entry().is_none() {
            self.block = None;
            return Ok(());
        }
        let block = self.walker.load()?;
        self.row = block.lower_bound(key);
        self.block = Some(block);
        self.settle_forward(false)
    }

    /// From `row` on, to the first row that is the newest visible one of its key.
    /// `passed`: the key of the rows before has been handed out already.
    fn settle_forward(&mut self, mut passed: bool) -> Result<()> {
        loop {
            let Some(block) = &self.block else { return Ok(()) };
            let n = block.len();
            let simple = block.max_ts() <= self.read_ts;
            while self.row < n {
                if passed && block.same_key(self.row) {
                    self.row += 1;
                    continue;
                }
                passed = false;
                let visible = simple || block.ts(self.row) <= self.read_ts;
                if visible && self.classes & (1 << (block.class(self.row) & 31)) != 0 {
                    block.read_key(self.row, &mut self.key);
                    return Ok(());
                }
                self.walker.row_passed();
                self.row += 1;
            }
            let left_at = self.walker.entry().map(|entry| entry.separator().to_vec());
            self.next_block()?;
            if self.walker.entry().is_none() {
                self.block = None;
                return Ok(());
            }
            let next = self.walker.load()?;
            // If blocks were skipped, the first row here cannot go on with a passed key: blocks
            // with older versions of it are never skipped.
            passed = passed && next.continues() && {
                let mut first = Vec::new();
                next.read_key(0, &mut first);
                left_at.is_some_and(|last| last == first)
            };
            self.block = Some(next);
            self.row = 0;
        }
    }

    fn seek_below(&mut self, key: &[u8]) -> Result<()> {
        self.walker.seek(key)?;
        if self.walker.entry().is_none() {
            self.walker.last()?;
        }
        if !self.entry_wanted() {
            self.prev_block()?;
        }
        if self.walker.entry().is_none() {
            self.block = None;
            return Ok(());
        }
        let block = self.walker.load()?;
        let below = block.lower_bound(key);
        self.block = Some(block);
        self.settle_backward(below)
    }

    /// From the rows before `end` in the current block, to the last key with a visible entry.
    fn settle_backward(&mut self, mut end: usize) -> Result<()> {
        loop {
            let Some(block) = self.block.clone() else { return Ok(()) };
            while end > 0 {
                let last = end - 1;
                let mut start = last;
                while start > 0 && block.same_key(start) {
                    start -= 1;
                }
                block.read_key(last, &mut self.key);
                if block.same_key(start) {
                    return self.resolve_long_group();
                }
                let wanted = self.classes & (1 << (block.class(start) & 31)) != 0;
                let newest = (start..end).find(|row| block.ts(*row) <= self.read_ts);
                if let (true, Some(row)) = (wanted, newest) {
                    self.row = row;
                    self.group_start = Some(start);
                    return Ok(());
                }
                self.walker.row_passed();
                end = start;
            }
            self.prev_block()?;
            if self.walker.entry().is_none() {
                self.block = None;
                return Ok(());
            }
            let block = self.walker.load()?;
            end = block.len();
            self.block = Some(block);
        }
    }

    /// The versions of `self.key` began in an earlier block: looks it up from its start.
    fn resolve_long_group(&mut self) -> Result<()> {
        let key = std::mem::take(&mut self.key);
        let found = self.walker.reader().find(&key, self.read_ts, true, None)?;
        if let Some((block, row)) = found
            && self.classes & (1 << (block.class(row) & 31)) != 0
        {
            self.block = Some(block);
            self.row = row;
            self.group_start = None;
            self.key = key;
            return Ok(());
        }
        self.seek_below(&key)
    }

    pub(crate) fn advance(&mut self) -> Result<()> {
        if self.block.is_none() {
            return Ok(());
        }
        if !self.backward {
            self.row += 1;
            return self.settle_forward(true);
        }
        match self.group_start {
            Some(start) => self.settle_backward(start),
            None => {
                let key = std::mem::take(&mut self.key);
                self.seek_below(&key)
            }
        }
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.block.as_ref().map(|_| self.key.as_slice())
    }

    fn current(&self) -> &RowBlock {
        self.block.as_ref().expect("callers look at the entry only while there is one")
    }

    pub(crate) fn ts(&self) -> u64 {
        self.current().ts(self.row)
    }

    pub(crate) fn kind(&self) -> Kind {
        self.current().kind(self.row)
    }

    pub(crate) fn value(&self) -> &[u8] {
        self.current().value(self.row)
    }

    /// Forward: jumps over blocks in which every row is older than the tombstone.
    pub(crate) fn skip_hidden(&mut self, cover: &Cover) -> Result<()> {
        if self.block.is_none() {
            return Ok(());
        }
        let until = cover.until.as_deref();
        if self.reader().properties().max_point_ts < cover.ts {
            return match until {
                Some(until) => self.seek(until),
                None => {
                    self.block = None;
                    Ok(())
                }
            };
        }
        if self.backward {
            return Ok(());
        }
        let hidden = |entry: &EntryRef<'_>| {
            entry.max_ts() < cover.ts && until.is_none_or(|until| entry.separator() < until)
        };
        if !self.walker.entry().is_some_and(|entry| hidden(&entry)) {
            return Ok(());
        }
        let ts = cover.ts;
        // The next block with something newer, or the one in which the cover ends.
        self.walker.next_where(|index, i| {
            index.max_ts(i) >= ts || until.is_some_and(|until| index.separator(i) >= until)
        })?;
        if self.walker.entry().is_some() {
            self.block = Some(self.walker.load()?);
            self.row = 0;
            return self.settle_forward(false);
        }
        self.block = None;
        Ok(())
    }
}
