//! The filter of a memtable: gets of keys that are not there skip the skiplist.
//!
//! The same blocked bloom filter as in ssts, over atomic words. The writer sets bits before the
//! entry becomes visible, so there are no false negatives for anything that a read may see.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache::prefetch;
use crate::sstable::{filter_line, filter_probes};

const WORDS_PER_LINE: usize = 8;

/// Keys that may be in a memtable.
pub(crate) struct KeyFilter {
    words: Box<[AtomicU64]>,
}

impl KeyFilter {
    /// A filter that suits a memtable of so many bytes.
    pub(crate) fn for_memtable_of(bytes: usize) -> KeyFilter {
        let lines = (bytes / 32 / 64).clamp(8, 32 << 10);
        KeyFilter { words: (0..lines * WORDS_PER_LINE).map(|_| AtomicU64::new(0)).collect() }
    }

    fn word(&self, hash: u64, bit: usize) -> &AtomicU64 {
        let line = filter_line(hash, self.words.len() / WORDS_PER_LINE);
        &self.words[line * WORDS_PER_LINE + bit / 64]
    }

    /// Brings the line of a hash closer.
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(self.word(hash, 0));
    }

    /// Adds a hash. One writer at a time: bits of others are not lost, although reading and
    /// writing a word are two steps.
    pub(crate) fn insert(&self, hash: u64) {
        for bit in filter_probes(hash) {
            let word = self.word(hash, bit);
            let old = word.load(Ordering::Relaxed);
            word.store(old | (1 << (bit % 64)), Ordering::Relaxed);
        }
    }

    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        filter_probes(hash)
            .all(|bit| self.word(hash, bit).load(Ordering::Relaxed) & (1 << (bit % 64)) != 0)
    }
}
