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
//! Beside a block lies what readers have made of it, if they keep that ([`Sidecar`]): it comes
//! later than the block, and goes with it. Sidecars have half of the budget; when that is taken,
//! whoever wants to add one is sent away, and once in a while one that nobody uses goes: a scan of
//! more than there is room for leaves what is there alone.
//!
//! Eviction is CLOCK: a ring of filled slots and a hand. Each slot has a heat of 0 to 3; a hit
//! raises it, the hand lowers it, and takes the block of a slot that is cold. Blocks that a long
//! scan brings in start cold. The ring's lock is taken when a block is loaded from the device,
//! never on a hit.
//!
//! Index partitions and filters lie on the [shelf](super::shelf), and count towards the budget, so
//! that row blocks make room for them. What leads to partitions (a part in ten thousand) lives as
//! long as its sst is open.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwapAny, ArcSwapOption, Guard};
use parking_lot::Mutex;

use super::prefetch::prefetch;
use super::shelf::Shelf;
use crate::sstable::RowBlock;

const HOTTEST: u8 = 3;
/// Heat of a block that a point read or a short scan brought in.
pub(crate) const WARM: u8 = 1;
/// Heat of a block that a long scan brought in: the first to go.
pub(crate) const COLD: u8 = 0;

/// Sidecars take this part of the budget at most.
const SIDECAR_PART: u64 = 2;
/// For each so many that are sent away, one sidecar is looked at, and goes if nobody used it.
const SENT_AWAY: u64 = 8;
/// Slots that are looked through for it, under the ring's lock.
const LOOKED_AT: usize = 64;

/// What a reader has made of a block, for the next reader. The cache does not know what it is.
pub struct Sidecar {
    made: Box<dyn Any + Send + Sync>,
    bytes: u64,
}

impl Sidecar {
    /// `bytes`: memory that it takes.
    pub(crate) fn new(made: impl Any + Send + Sync, bytes: usize) -> Arc<Sidecar> {
        let bytes = (bytes + size_of::<Sidecar>()) as u64;
        Arc::new(Sidecar { made: Box::new(made), bytes })
    }

    /// Brings what was made closer, without waiting for it.
    pub fn prefetch(&self) {
        prefetch(&raw const *self.made);
    }

    /// What was made, if it is of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.made.downcast_ref()
    }
}

struct Slot {
    block: ArcSwapAny<Option<RowBlock>>,
    /// Only where there is a block.
    sidecar: ArcSwapOption<Sidecar>,
    heat: AtomicU8,
    /// Whether somebody has used the sidecar since the sidecars' hand came by.
    sidecar_used: AtomicBool,
}

impl Default for Slot {
    fn default() -> Slot {
        let block = ArcSwapAny::new(None);
        let (sidecar, sidecar_used) = (ArcSwapOption::empty(), AtomicBool::new(false));
        Slot { block, sidecar, heat: AtomicU8::new(0), sidecar_used }
    }
}

/// The slots of the blocks of one index partition.
pub(crate) struct Frames {
    slots: Arc<[Slot]>,
    /// What was pinned along with them.
    _pinned: Pinned,
    cache: Arc<BlockCache>,
}

/// Bytes that count towards the budget and are not evicted, as long as this lives.
pub(crate) struct Pinned {
    bytes: u64,
    cache: Arc<BlockCache>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let mut ring = self.cache.ring.lock();
        ring.used -= self.bytes;
        ring.pinned -= self.bytes;
    }
}

impl Frames {
    /// Bytes of so many slots without their blocks.
    pub(crate) fn memory(slots: usize) -> usize {
        slots * size_of::<Slot>()
    }

    /// The block in a slot, if it is there. Lock-free.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Guard<Option<RowBlock>> {
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

    /// Counts a block that was found in its slot.
    #[inline]
    pub(crate) fn count_hit(&self) {
        STRIPE.with(|stripe| self.cache.hits[*stripe].0.fetch_add(1, Ordering::Relaxed));
    }

    /// Puts a block into its slot, and takes cold ones out of theirs until it fits.
    pub(crate) fn insert(&self, at: usize, block: &RowBlock, heat: u8) {
        let bytes = block.memory() as u32;
        let mut ring = self.cache.ring.lock();
        let slot = &self.slots[at];
        // Under the lock: of two threads that loaded the same block, the second finds it here.
        if slot.block.load().is_some() {
            return;
        }
        slot.heat.store(heat, Ordering::Relaxed);
        slot.block.store(Some(block.clone()));
        ring.filled.push(Filled { slots: Arc::downgrade(&self.slots), slot: at as u32, bytes });
        ring.used += u64::from(bytes);
        ring.sweep_dead();
        ring.evict(self.cache.capacity);
        self.cache.note_room_beside(&ring);
    }

    /// Brings what lies beside the block in a slot closer, if anything does.
    pub(crate) fn prefetch_sidecar(&self, at: usize) {
        if let Some(sidecar) = &*self.slots[at].sidecar.load() {
            prefetch(Arc::as_ptr(sidecar));
        }
    }

    /// What lies beside the block in a slot. Lock-free.
    pub(crate) fn sidecar(&self, at: usize) -> Option<Arc<Sidecar>> {
        self.slots[at].sidecar.load_full()
    }

    /// Says that somebody uses what lies beside the block in a slot. Lock-free.
    pub(crate) fn note_use_of_sidecar(&self, at: usize) {
        let used = &self.slots[at].sidecar_used;
        if !used.load(Ordering::Relaxed) {
            used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether there is room for something beside a block, or for more than is there.
    pub(crate) fn has_room_beside(&self) -> bool {
        if !self.cache.is_full_beside.load(Ordering::Relaxed) {
            return true;
        }
        if self.cache.sent_away.fetch_add(1, Ordering::Relaxed).is_multiple_of(SENT_AWAY) {
            let mut ring = self.cache.ring.lock();
            ring.drop_unused_sidecar();
            self.cache.note_room_beside(&ring);
        }
        false
    }

    /// Puts something beside the block in a slot, if that is still there and there is room, in
    /// place of what lay there.
    pub(crate) fn set_sidecar(&self, at: usize, sidecar: Arc<Sidecar>) {
        let capacity = self.cache.capacity;
        let mut ring = self.cache.ring.lock();
        let slot = &self.slots[at];
        let there = slot.sidecar.load().as_ref().map_or(0, |sidecar| sidecar.bytes);
        let all = ring.sidecars - there + sidecar.bytes;
        if all > capacity / SIDECAR_PART {
            return self.cache.is_full_beside.store(true, Ordering::Relaxed);
        }
        if slot.block.load().is_some() {
            slot.sidecar_used.store(true, Ordering::Relaxed);
            ring.set_sidecar(slot, Some(sidecar));
            ring.evict(capacity);
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // Under the lock, so that eviction does not take out what is counted here.
        let mut ring = self.cache.ring.lock();
        for slot in self.slots.iter() {
            ring.set_sidecar(slot, None);
            if let Some(block) = slot.block.swap(None) {
                ring.used -= block.memory() as u64;
                ring.dead += 1;
            }
        }
        self.cache.note_room_beside(&ring);
    }
}

struct Filled {
    slots: Weak<[Slot]>,
    slot: u32,
    bytes: u32,
}

#[derive(Default)]
struct Ring {
    filled: Vec<Filled>,
    hand: usize,
    sidecar_hand: usize,
    /// Bytes of all blocks in slots, and of what is pinned.
    used: u64,
    /// Of these, what is pinned.
    pinned: u64,
    /// Of these, what sidecars take.
    sidecars: u64,
    /// Entries whose slots are gone.
    dead: usize,
}

impl Ring {
    /// Another sidecar, or none, for a slot of the ring.
    fn set_sidecar(&mut self, slot: &Slot, sidecar: Option<Arc<Sidecar>>) {
        let bytes = |sidecar: &Option<Arc<Sidecar>>| sidecar.as_ref().map_or(0, |it| it.bytes);
        let more = bytes(&sidecar);
        let less = bytes(&slot.sidecar.swap(sidecar));
        self.used = self.used - less + more;
        self.sidecars = self.sidecars - less + more;
    }

    /// Goes on to the next sidecar, and takes it if nobody has used it since the last time.
    fn drop_unused_sidecar(&mut self) {
        for _ in 0..self.filled.len().min(LOOKED_AT) {
            self.sidecar_hand = (self.sidecar_hand + 1) % self.filled.len();
            let filled = &self.filled[self.sidecar_hand];
            let Some(slots) = filled.slots.upgrade() else { continue };
            let slot = &slots[filled.slot as usize];
            if slot.sidecar.load().is_some() {
                if !slot.sidecar_used.swap(false, Ordering::Relaxed) {
                    self.set_sidecar(slot, None);
                }
                return;
            }
        }
    }

    /// Forgets slots of closed ssts once they are half of the ring.
    fn sweep_dead(&mut self) {
        if self.dead > 64 && self.dead * 2 > self.filled.len() {
            self.filled.retain(|filled| filled.slots.strong_count() > 0);
            (self.hand, self.dead) = (0, 0);
        }
    }

    /// Moves the hand until the blocks fit.
    fn evict(&mut self, capacity: u64) {
        while self.used > capacity && !self.filled.is_empty() {
            if self.hand >= self.filled.len() {
                self.hand = 0;
            }
            let filled = &self.filled[self.hand];
            let bytes = filled.bytes;
            if let Some(slots) = filled.slots.upgrade() {
                let slot = &slots[filled.slot as usize];
                let heat = slot.heat.load(Ordering::Relaxed);
                if heat > 0 {
                    slot.heat.store(heat - 1, Ordering::Relaxed);
                    self.hand += 1;
                    continue;
                }
                self.set_sidecar(slot, None);
                if slot.block.swap(None).is_some() {
                    self.used -= u64::from(bytes);
                }
            }
            self.filled.swap_remove(self.hand);
        }
    }
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
    pub(super) capacity: u64,
    ring: Mutex<Ring>,
    pub(super) shelf: Mutex<Shelf>,
    hits: [Stripe; STRIPES],
    misses: AtomicU64,
    /// Whether sidecars have no room any more.
    is_full_beside: AtomicBool,
    /// How many were sent away because of that.
    sent_away: AtomicU64,
}

impl BlockCache {
    /// A cache of at most `bytes`.
    pub(crate) fn new(bytes: usize) -> BlockCache {
        BlockCache {
            capacity: bytes as u64,
            ring: Mutex::default(),
            shelf: Mutex::default(),
            hits: std::array::from_fn(|_| Stripe::default()),
            misses: AtomicU64::new(0),
            is_full_beside: AtomicBool::new(false),
            sent_away: AtomicU64::new(0),
        }
    }

    /// Slots for `n` blocks; `pinned`: bytes that stay in memory as long as they do.
    pub(crate) fn frames(self: &Arc<BlockCache>, n: usize, pinned: usize) -> Frames {
        let slots = (0..n).map(|_| Slot::default()).collect();
        Frames { slots, _pinned: self.pin(pinned), cache: self.clone() }
    }

    /// Counts bytes that stay in memory until the result is dropped; blocks make room for them.
    pub(crate) fn pin(self: &Arc<BlockCache>, bytes: usize) -> Pinned {
        let bytes = bytes as u64;
        let mut ring = self.ring.lock();
        ring.used += bytes;
        ring.pinned += bytes;
        ring.evict(self.capacity);
        Pinned { bytes, cache: self.clone() }
    }

    /// Counts a block that had to be read.
    pub(crate) fn count_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes sidecars again once an eighth of their room is free.
    fn note_room_beside(&self, ring: &Ring) {
        let most = self.capacity / SIDECAR_PART;
        if self.is_full_beside.load(Ordering::Relaxed) && ring.sidecars <= most - most / 8 {
            self.is_full_beside.store(false, Ordering::Relaxed);
        }
    }

    /// Bytes of what lies beside blocks; [`BlockCache::bytes`] counts them with the blocks.
    pub(crate) fn sidecar_bytes(&self) -> u64 {
        self.ring.lock().sidecars
    }

    /// Bytes of blocks, and of what is pinned.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let ring = self.ring.lock();
        (ring.used - ring.pinned, ring.pinned)
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

    fn block(len: usize) -> RowBlock {
        let mut builder = RowBlockBuilder::default();
        builder.add(b"key", 1, Kind::Put, &vec![0; len], 0, false);
        RowBlock::parse(&builder.finish().0).unwrap()
    }

    #[test]
    fn cold_blocks_go_first_and_the_budget_holds() {
        let cache = Arc::new(BlockCache::new(100_000));
        let frames = cache.frames(100, 1_000);
        for at in 0..100 {
            frames.insert(at, &block(5_000), WARM);
            for hot in 0..3.min(at + 1) {
                assert!(frames.get(hot).is_some(), "block {hot} is used all the time");
            }
            assert!(cache.ring.lock().used <= 100_000);
        }
        let filled = (0..100).filter(|at| frames.slots[*at].block.load().is_some()).count();
        assert!((15..=20).contains(&filled), "{filled} blocks");
        drop(frames);
        assert_eq!(cache.ring.lock().used, 0);
    }

    #[test]
    fn what_lies_beside_a_block_counts_and_goes_with_it() {
        let cache = Arc::new(BlockCache::new(100_000));
        let frames = cache.frames(100, 0);
        let sidecar = |n: usize| Sidecar::new(n, 2_000);
        let kept = |at: usize| frames.sidecar(at).map(|it| *it.get::<usize>().unwrap());
        frames.set_sidecar(0, sidecar(0));
        assert_eq!(kept(0), None, "there is no block");
        for at in 0..10 {
            frames.insert(at, &block(5_000), COLD);
            frames.set_sidecar(at, sidecar(at));
            assert_eq!(kept(at), Some(at));
        }
        let used = || {
            let used = cache.ring.lock().used;
            (used, cache.sidecar_bytes())
        };
        let before = used();
        frames.set_sidecar(3, sidecar(33));
        assert_eq!((kept(3), used()), (Some(33), before), "in place of what was there");
        assert!(frames.sidecar(3).unwrap().get::<String>().is_none());
        frames.set_sidecar(4, Sidecar::new((), 60_000));
        assert_eq!((kept(4), used()), (Some(4), before), "more than their part");
        for at in 10..100 {
            frames.insert(at, &block(5_000), COLD);
            assert!(used().0 <= 100_000);
        }
        for at in 0..100 {
            let has_block = frames.slots[at].block.load().is_some();
            assert!(has_block || kept(at).is_none(), "block {at} is gone");
        }
        drop(frames);
        assert_eq!(used(), (0, 0));
    }

    #[test]
    fn sidecars_that_nobody_uses_make_room_slowly() {
        let cache = Arc::new(BlockCache::new(100_000));
        let frames = cache.frames(60, 0);
        (0..60).for_each(|at| frames.insert(at, &block(100), WARM));
        // As a reader of table `table` does, of which blocks may have another's beside them.
        let read = |at: usize, table: usize| {
            let known = frames.sidecar(at).is_some_and(|it| it.get() == Some(&table));
            if known {
                frames.note_use_of_sidecar(at);
            } else if frames.has_room_beside() {
                frames.set_sidecar(at, Sidecar::new(table, 2_000));
            }
            known
        };
        let kept = || (0..60).filter(|at| frames.slots[*at].sidecar.load().is_some()).count();
        // Twice as much as there is room for, again and again: who comes first stays.
        for _ in 0..3 {
            (0..60).for_each(|at| _ = read(at, 1));
            assert_eq!((kept(), frames.sidecar(0).is_some()), (24, true));
        }
        // A reader of another table is sent away everywhere, also where the first one is.
        assert!((0..12).all(|at| !read(at, 2) && read(at, 1)));
        // The first one is not read any more, though its blocks are.
        for _ in 0..40 {
            (0..60).for_each(|at| _ = read(at, 2));
        }
        let is_second =
            |at: &usize| frames.sidecar(*at).is_some_and(|it| it.get() == Some(&2_usize));
        let second = (0..60).filter(is_second).count();
        assert!(second > 12, "{second} of {}", kept());
        assert!(cache.sidecar_bytes() <= 50_000);
    }

    #[test]
    fn slots_of_closed_ssts_leave_the_ring() {
        let cache = Arc::new(BlockCache::new(1 << 20));
        for _ in 0..50 {
            let frames = cache.frames(10, 0);
            for at in 0..10 {
                frames.insert(at, &block(100), COLD);
            }
        }
        assert!(cache.ring.lock().filled.len() < 200);
    }
}
