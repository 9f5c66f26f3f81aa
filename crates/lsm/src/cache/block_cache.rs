//! The block cache: checked, decompressed row blocks, found without hashing and without a lock.
//!
//! Every partition of an open sst's index owns one *slot* per block. A slot is an atomic pointer:
//! empty, or the block. A hit is one indexed load:
//!
//! ```text
//!   index partition   [sep | sep | sep | ...]
//!   frames            [ *  |     |  *  | ...]     slot i belongs to entry i
//!                       |           |
//!                     block       block           Arc: a reader keeps what eviction takes away
//! ```
//!
//! Eviction is CLOCK: a ring of filled slots and a hand. Each slot has a heat of 0 to 3; a hit
//! raises it, the hand lowers it, and takes the block of a slot that is cold. Blocks that a long
//! scan brings in start cold. The ring's lock is taken when a block is loaded from the device,
//! never on a hit.
//!
//! Index partitions and filters are not evicted: they live as long as their sst is open, and count
//! towards the budget, so that row blocks make room for them.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;

use crate::sstable::RowBlock;

const HOTTEST: u8 = 3;
/// Heat of a block that a point read or a short scan brought in.
pub(crate) const WARM: u8 = 1;
/// Heat of a block that a long scan brought in: the first to go.
pub(crate) const COLD: u8 = 0;

#[derive(Default)]
struct Slot {
    block: ArcSwapOption<RowBlock>,
    heat: AtomicU8,
}

/// The slots of the blocks of one index partition.
pub(crate) struct Frames {
    slots: Box<[Slot]>,
    /// Bytes of filled slots and of what was pinned along with them.
    bytes: AtomicU64,
    account: Arc<Account>,
}

impl Frames {
    /// The block in a slot, if it is there. Lock-free.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Guard<Option<Arc<RowBlock>>> {
        let slot = &self.slots[at];
        let block = slot.block.load();
        if block.is_some() {
            let heat = slot.heat.load(Ordering::Relaxed);
            // Written only while it changes: hot slots stay shared between processors.
            if heat < HOTTEST {
                slot.heat.store(heat + 1, Ordering::Relaxed);
            }
        }
        block
    }

    /// Whether the slot is filled; does not count as a use.
    #[cfg(test)]
    fn holds(&self, at: usize) -> bool {
        self.slots[at].block.load().is_some()
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.account.used.fetch_sub(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        let filled = self.slots.iter_mut().filter(|slot| slot.block.load().is_some()).count();
        self.account.dead.fetch_add(filled, Ordering::Relaxed);
    }
}

/// What all frames of a cache use together.
#[derive(Default)]
struct Account {
    used: AtomicU64,
    /// Ring entries whose frames are gone.
    dead: AtomicUsize,
}

struct Filled {
    frames: Weak<Frames>,
    slot: u32,
    bytes: u32,
}

#[derive(Default)]
struct Ring {
    filled: Vec<Filled>,
    hand: usize,
}

/// A counter that threads raise without sharing a cache line.
#[derive(Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

const STRIPES: usize = 16;

thread_local! {
    static STRIPE: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES
    };
}

/// Blocks of all ssts of a store.
pub(crate) struct BlockCache {
    capacity: u64,
    account: Arc<Account>,
    ring: Mutex<Ring>,
    hits: [Stripe; STRIPES],
    misses: AtomicU64,
}

impl BlockCache {
    /// A cache of at most `bytes`.
    pub(crate) fn new(bytes: usize) -> BlockCache {
        BlockCache {
            capacity: bytes as u64,
            account: Arc::default(),
            ring: Mutex::default(),
            hits: std::array::from_fn(|_| Stripe::default()),
            misses: AtomicU64::new(0),
        }
    }

    /// Slots for `n` blocks; `pinned`: bytes that stay in memory as long as they do.
    pub(crate) fn frames(&self, n: usize, pinned: usize) -> Arc<Frames> {
        self.account.used.fetch_add(pinned as u64, Ordering::Relaxed);
        Arc::new(Frames {
            slots: (0..n).map(|_| Slot::default()).collect(),
            bytes: AtomicU64::new(pinned as u64),
            account: self.account.clone(),
        })
    }

    /// Counts a block that was found in its slot.
    #[inline]
    pub(crate) fn count_hit(&self) {
        STRIPE.with(|stripe| self.hits[*stripe].0.fetch_add(1, Ordering::Relaxed));
    }

    /// Counts a block that had to be read.
    pub(crate) fn count_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Puts a block into its slot, and takes cold ones out of theirs until it fits.
    pub(crate) fn insert(&self, frames: &Arc<Frames>, at: usize, block: &Arc<RowBlock>, heat: u8) {
        let bytes = block.memory() as u32;
        let mut ring = self.ring.lock();
        let slot = &frames.slots[at];
        // Under the lock: of two threads that loaded the same block, the second finds it here.
        if slot.block.load().is_some() {
            return;
        }
        slot.heat.store(heat, Ordering::Relaxed);
        slot.block.store(Some(block.clone()));
        ring.filled.push(Filled { frames: Arc::downgrade(frames), slot: at as u32, bytes });
        frames.bytes.fetch_add(u64::from(bytes), Ordering::Relaxed);
        self.account.used.fetch_add(u64::from(bytes), Ordering::Relaxed);
        self.sweep_dead(&mut ring);
        self.evict(&mut ring);
    }

    /// Forgets slots of closed ssts once they are half of the ring.
    fn sweep_dead(&self, ring: &mut Ring) {
        let dead = self.account.dead.load(Ordering::Relaxed);
        if dead > 64 && dead * 2 > ring.filled.len() {
            ring.filled.retain(|filled| filled.frames.strong_count() > 0);
            ring.hand = 0;
            self.account.dead.store(0, Ordering::Relaxed);
        }
    }

    fn evict(&self, ring: &mut Ring) {
        while self.account.used.load(Ordering::Relaxed) > self.capacity && !ring.filled.is_empty() {
            if ring.hand >= ring.filled.len() {
                ring.hand = 0;
            }
            let filled = &ring.filled[ring.hand];
            if let Some(frames) = filled.frames.upgrade() {
                let slot = &frames.slots[filled.slot as usize];
                let heat = slot.heat.load(Ordering::Relaxed);
                if heat > 0 {
                    slot.heat.store(heat - 1, Ordering::Relaxed);
                    ring.hand += 1;
                    continue;
                }
                slot.block.store(None);
                let bytes = u64::from(filled.bytes);
                frames.bytes.fetch_sub(bytes, Ordering::Relaxed);
                self.account.used.fetch_sub(bytes, Ordering::Relaxed);
            }
            ring.filled.swap_remove(ring.hand);
        }
    }

    /// Hits and misses since open.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let hits = self.hits.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum();
        (hits, self.misses.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Kind;
    use crate::sstable::RowBlockBuilder;

    fn block(len: usize) -> Arc<RowBlock> {
        let mut builder = RowBlockBuilder::default();
        builder.add(b"key", 1, Kind::Put, &vec![0; len], 0, false);
        Arc::new(RowBlock::parse(builder.finish().0.into()).unwrap())
    }

    #[test]
    fn cold_blocks_go_first_and_the_budget_holds() {
        let cache = BlockCache::new(100_000);
        let frames = cache.frames(100, 1_000);
        for at in 0..100 {
            cache.insert(&frames, at, &block(5_000), WARM);
            for hot in 0..3.min(at + 1) {
                assert!(frames.get(hot).is_some(), "block {hot} is used all the time");
            }
            assert!(cache.account.used.load(Ordering::Relaxed) <= 100_000);
        }
        let filled = (0..100).filter(|at| frames.holds(*at)).count();
        assert!((15..=20).contains(&filled), "{filled} blocks");
        drop(frames);
        assert_eq!(cache.account.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn slots_of_closed_ssts_leave_the_ring() {
        let cache = BlockCache::new(1 << 20);
        for _ in 0..50 {
            let frames = cache.frames(10, 0);
            for at in 0..10 {
                cache.insert(&frames, at, &block(100), COLD);
            }
        }
        assert!(cache.ring.lock().filled.len() < 200);
    }
}
