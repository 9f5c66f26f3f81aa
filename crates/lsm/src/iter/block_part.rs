//! Rows of one block that a scan hands out together, where they lie.
//!
//! ```text
//!   block    a1 a2 b7 c1 c2 c3 ...              beside it in the cache: what readers have made of
//!   part      0     2  3     5                  its rows, for whoever comes next
//! ```
//!
//! Whoever reads a column of many rows does not want their keys put together and their values found
//! one by one, and least of all again for the next scan: blocks never change. So what a reader has
//! made of a block can be [kept](BlockPart::keep) beside it. It takes room of the cache, and leaves
//! it with the block.

use std::any::Any;
use std::sync::Arc;

use crate::cache::Sidecar;
use crate::key::{CommitTs, Kind};
use crate::sstable::{BlockPlace, RowBlock};

/// Some rows of a block. It keeps the block in memory.
#[derive(Clone)]
pub struct BlockPart {
    block: RowBlock,
    place: BlockPlace,
    rows: Vec<u16>,
}

impl BlockPart {
    pub(crate) fn new(block: RowBlock, place: BlockPlace, rows: Vec<u16>) -> BlockPart {
        BlockPart { block, place, rows }
    }

    /// Which rows of the block the part has, ascending.
    pub fn rows(&self) -> &[u16] {
        &self.rows
    }

    /// Number of rows of the block, whoever sees them: their numbers are `0..block_len()`.
    pub fn block_len(&self) -> usize {
        self.block.len()
    }

    /// Whether a row of the block has a value, rather than saying that its key is deleted.
    pub fn has_value(&self, row: usize) -> bool {
        self.block.kind(row) == Kind::Put
    }

    /// Class of a row of the block. See `RowClassFn`.
    pub fn class(&self, row: usize) -> u8 {
        self.block.class(row)
    }

    /// Puts the key of a row of the block into `key`.
    pub fn read_key(&self, row: usize, key: &mut Vec<u8>) {
        self.block.read_key(row, key);
    }

    /// Value of a row of the block.
    pub fn value(&self, row: usize) -> &[u8] {
        self.block.value(row)
    }

    /// Commit timestamp of a row of the block.
    pub fn ts(&self, row: usize) -> CommitTs {
        CommitTs(self.block.ts(row))
    }

    /// Whether a value of the block may begin with this byte.
    pub fn may_begin_with(&self, first: u8) -> bool {
        self.block.may_begin_with(first)
    }

    /// Whether to make something that is kept: somebody had read the block before and may come
    /// again, and there is room for it. To be asked only by who would make it: whoever is sent
    /// away makes what nobody uses go sooner.
    pub fn is_worth_keeping(&self) -> bool {
        self.place.is_worth_keeping()
    }

    /// Bytes of memory that the block takes.
    pub fn block_bytes(&self) -> usize {
        self.block.memory()
    }

    /// Brings what was kept beside the block closer, without waiting for it.
    pub fn prefetch_kept(&self) {
        self.place.prefetch_sidecar();
    }

    /// What was kept beside the block.
    pub fn kept(&self) -> Option<Arc<Sidecar>> {
        self.place.sidecar()
    }

    /// Says that what was kept was what the reader looked for: what nobody uses makes room.
    pub fn note_use_of_kept(&self) {
        self.place.note_use_of_sidecar();
    }

    /// Keeps something beside the block, in place of what is there. It must not depend on anything
    /// but the block. `bytes`: memory that it takes; it is not kept if the cache has no room.
    pub fn keep(&self, made: impl Any + Send + Sync, bytes: usize) {
        self.place.keep(Sidecar::new(made, bytes));
    }

    /// Bytes of keys and values, about.
    pub(crate) fn byte_len(&self) -> usize {
        self.rows.len() * self.block.bytes_each()
    }

    /// Bytes of memory, the block included.
    pub(crate) fn memory(&self) -> usize {
        self.block.memory() + self.rows.capacity() * size_of::<u16>()
    }
}

/// Without its rows: those are the batch's to show.
impl std::fmt::Debug for BlockPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {:?}", self.rows.len(), self.block)
    }
}
