//! The block cache: checked, decompressed blocks, by file and offset.
//!
//! Sharded, scan-resistant, bounded by bytes (quick_cache). A block is one `Arc`: evicting it does
//! not take it away from cursors that are on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::sstable::{IndexBlock, RowBlock};

/// A block in the cache.
#[derive(Clone)]
pub(crate) enum CachedBlock {
    Rows(Arc<RowBlock>),
    Index(Arc<IndexBlock>),
}

type Place = (u64, u64);

#[derive(Clone)]
struct ByBytes;

impl Weighter<Place, CachedBlock> for ByBytes {
    fn weight(&self, _: &Place, block: &CachedBlock) -> u64 {
        let bytes = match block {
            CachedBlock::Rows(block) => block.memory(),
            CachedBlock::Index(block) => block.memory(),
        };
        bytes as u64
    }
}

/// Blocks of all ssts of a store.
pub(crate) struct BlockCache {
    cache: Cache<Place, CachedBlock, ByBytes>,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl BlockCache {
    /// A cache of at most `bytes`.
    pub(crate) fn new(bytes: usize) -> BlockCache {
        let blocks = (bytes / (16 << 10)).max(8);
        BlockCache {
            cache: Cache::with_weighter(blocks, bytes as u64, ByBytes),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    pub(crate) fn get(&self, file_no: u64, offset: u64) -> Option<CachedBlock> {
        let found = self.cache.get(&(file_no, offset));
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    pub(crate) fn insert(&self, file_no: u64, offset: u64, block: CachedBlock) {
        self.cache.insert((file_no, offset), block);
    }

    /// Hits and misses since open.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }
}
