//! All entries of an sst in order, every version: what compactions and checks read. For a virtual
//! sst, those inside its bounds.

use std::sync::Arc;

use bytes::Bytes;

use super::block_walker::BlockWalker;
use super::reader::SstReader;
use super::row_block::{BUNDLE, RowBlock};
use crate::error::Result;
use crate::key::{KeySpan, Kind};

/// A forward cursor over every entry. Blocks go past the cache.
pub(crate) struct SstEntries {
    reader: Arc<SstReader>,
    walker: BlockWalker,
    block: Option<RowBlock>,
    row: usize,
    key: Vec<u8>,
    /// How much of `key` the rows of its bundle share.
    shared: usize,
    /// Entries from here on do not count; `None`: to the end of the file.
    end: Option<Bytes>,
}

impl SstEntries {
    /// Stands on the first entry.
    pub(crate) fn open(reader: Arc<SstReader>) -> Result<SstEntries> {
        let mut walker = BlockWalker::new(false);
        walker.first(&reader)?;
        SstEntries::at(reader, walker, None)
    }

    fn at(reader: Arc<SstReader>, walker: BlockWalker, end: Option<Bytes>) -> Result<SstEntries> {
        let mut entries =
            SstEntries { reader, walker, block: None, row: 0, key: Vec::new(), shared: 0, end };
        entries.enter_block()?;
        Ok(entries)
    }

    /// Stands on the first entry inside `span`, and ends with it.
    pub(crate) fn open_span(reader: Arc<SstReader>, span: KeySpan) -> Result<SstEntries> {
        let mut walker = BlockWalker::new(false);
        walker.seek(&reader, &span.start)?;
        let mut entries = SstEntries::at(reader, walker, Some(span.end))?;
        while entries.key().is_some_and(|key| key < span.start.as_ref()) {
            entries.advance()?;
        }
        Ok(entries)
    }

    fn enter_block(&mut self) -> Result<()> {
        self.row = 0;
        self.block =
            if self.walker.is_on_entry() { Some(self.walker.load(&self.reader)?) } else { None };
        if let Some(block) = &self.block {
            block.read_shared(0, &mut self.key);
            self.shared = self.key.len();
            self.key.extend_from_slice(block.own_key(0));
        }
        self.stop_at_end();
        Ok(())
    }

    fn stop_at_end(&mut self) {
        if self.end.as_ref().is_some_and(|end| self.key.as_slice() >= end.as_ref()) {
            self.block = None;
        }
    }

    pub(crate) fn advance(&mut self) -> Result<()> {
        let Some(block) = &self.block else { return Ok(()) };
        self.row += 1;
        if self.row < block.len() {
            let new_bundle = self.row.is_multiple_of(BUNDLE);
            if new_bundle {
                block.read_shared(self.row, &mut self.key);
                self.shared = self.key.len();
            }
            if new_bundle || !block.same_key(self.row) {
                self.key.truncate(self.shared);
                self.key.extend_from_slice(block.own_key(self.row));
                self.stop_at_end();
            }
            return Ok(());
        }
        self.walker.next_where(&self.reader, |_, _| true)?;
        self.enter_block()
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

    /// Where the current block lies in the file.
    pub(crate) fn block_offset(&self) -> u64 {
        self.walker.entry().map_or(0, |entry| entry.handle().offset)
    }

    /// Whether what the index says of the current block holds for the current row.
    pub(crate) fn check_facts(&self) -> std::result::Result<(), &'static str> {
        let (Some(entry), Some(block)) = (self.walker.entry(), &self.block) else {
            return Ok(());
        };
        let ts = block.ts(self.row);
        if (entry.min_ts(), entry.max_ts()) != (block.min_ts(), block.max_ts()) {
            return Err("I6: index and block disagree on timestamps");
        }
        if ts < block.min_ts() || ts > block.max_ts() {
            return Err("I6: a row's timestamp is outside of its block's");
        }
        let class = 1u32 << (block.class(self.row) & 31);
        if entry.classes() != block.classes() || block.classes() & class == 0 {
            return Err("I6: class bitmap does not hold a row's class");
        }
        if self.key.as_slice() > entry.separator() {
            return Err("I6: a key lies above its block's separator");
        }
        Ok(())
    }
}
