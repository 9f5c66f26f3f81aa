//! What an open sst needs again and again, and can read again: partitions of its index, its filter.
//!
//! They are small next to the blocks they lead to (about a hundredth), but a store may be a
//! thousand times as large as the memory. So they stay as long as they fit into half of the
//! cache's budget; beyond that those go that nobody has asked for since the hand came by last:
//!
//! ```text
//!   sst 7    [ part 0 | part 1 | part 2 ]  [ filter ]       cells: empty, or an Arc
//!                ^        ^                    ^
//!   shelf    [ used   | unused |  used   | ... ]            CLOCK with one bit
//! ```
//! A look is lock-free, and writes only where a hand has come by. Whoever holds a partition keeps
//! it, with the slots of its blocks; it counts towards the budget until the last one lets go.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwapOption, Guard};

use super::BlockCache;

/// This part of the cache's budget is for what is on the shelf.
const PART: u64 = 2;

/// What leaves the shelf. It is dropped when the shelf's lock is free again: a partition takes its
/// blocks out of the cache then.
type Parted = Vec<Arc<dyn Any + Send + Sync>>;

struct Cell<T> {
    value: ArcSwapOption<T>,
    /// Whether somebody has asked since the hand came by.
    used: AtomicBool,
    bytes: AtomicU64,
}

struct Row<T>(Box<[Cell<T>]>);

/// Cells of any kind.
trait Cells: Send + Sync {
    /// Whether the cell was used since the last call.
    fn was_used(&self, at: usize) -> bool;
    /// Empties the cell; bytes that it held.
    fn empty(&self, at: usize, parted: &mut Parted) -> u64;
}

impl<T: Send + Sync + 'static> Cells for Row<T> {
    fn was_used(&self, at: usize) -> bool {
        self.0[at].used.swap(false, Ordering::Relaxed)
    }

    fn empty(&self, at: usize, parted: &mut Parted) -> u64 {
        let Some(value) = self.0[at].value.swap(None) else { return 0 };
        parted.push(value);
        self.0[at].bytes.load(Ordering::Relaxed)
    }
}

/// Cells of one sst. See the [module documentation](self).
pub(crate) struct OnShelf<T: Send + Sync + 'static> {
    row: Arc<Row<T>>,
    cache: Arc<BlockCache>,
}

impl<T: Send + Sync + 'static> OnShelf<T> {
    /// That many empty cells.
    pub(crate) fn new(n: usize, cache: &Arc<BlockCache>) -> OnShelf<T> {
        let cell = |_| Cell {
            value: ArcSwapOption::empty(),
            used: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
        };
        OnShelf { row: Arc::new(Row((0..n).map(cell).collect())), cache: cache.clone() }
    }

    /// What is in a cell. Lock-free.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Guard<Option<Arc<T>>> {
        let cell = &self.row.0[at];
        // Written only while it changes: processors share what is hot.
        if !cell.used.load(Ordering::Relaxed) {
            cell.used.store(true, Ordering::Relaxed);
        }
        cell.value.load()
    }

    /// Fills a cell, and empties others until all fit. Gives what is in it in the end: of two
    /// threads that have read the same, the first one's.
    pub(crate) fn put(&self, at: usize, value: T, bytes: usize) -> Arc<T> {
        let value = Arc::new(value);
        let mut parted = Parted::new();
        let mut shelf = self.cache.shelf.lock();
        let cell = &self.row.0[at];
        if let Some(there) = cell.value.load_full() {
            drop(shelf);
            return there;
        }
        cell.used.store(true, Ordering::Relaxed);
        cell.bytes.store(bytes as u64, Ordering::Relaxed);
        cell.value.store(Some(value.clone()));
        let row: Arc<dyn Cells> = self.row.clone();
        shelf.filled.push((Arc::downgrade(&row), at as u32));
        shelf.bytes += bytes as u64;
        shelf.sweep_dead();
        shelf.make_room(self.cache.capacity / PART, &mut parted);
        drop(shelf);
        value
    }
}

impl<T: Send + Sync + 'static> Drop for OnShelf<T> {
    fn drop(&mut self) {
        let mut parted = Parted::new();
        let mut shelf = self.cache.shelf.lock();
        for at in 0..self.row.0.len() {
            let before = parted.len();
            shelf.bytes -= self.row.empty(at, &mut parted);
            shelf.dead += parted.len() - before;
        }
        drop(shelf);
    }
}

/// Filled cells of all ssts of a cache.
#[derive(Default)]
pub(super) struct Shelf {
    filled: Vec<(Weak<dyn Cells>, u32)>,
    hand: usize,
    bytes: u64,
    /// Entries whose cells are gone.
    dead: usize,
}

impl Shelf {
    /// Forgets cells of closed ssts once they are half of all.
    fn sweep_dead(&mut self) {
        if self.dead > 64 && self.dead * 2 > self.filled.len() {
            self.filled.retain(|(cells, _)| cells.strong_count() > 0);
            (self.hand, self.dead) = (0, 0);
        }
    }

    /// Moves the hand until the rest fits.
    fn make_room(&mut self, room: u64, parted: &mut Parted) {
        while self.bytes > room && !self.filled.is_empty() {
            if self.hand >= self.filled.len() {
                self.hand = 0;
            }
            let (cells, at) = &self.filled[self.hand];
            if let Some(cells) = cells.upgrade() {
                if cells.was_used(*at as usize) {
                    self.hand += 1;
                    continue;
                }
                self.bytes -= cells.empty(*at as usize, parted);
            }
            self.filled.swap_remove(self.hand);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn there(cells: &OnShelf<usize>, n: usize) -> Vec<usize> {
        (0..n).filter(|at| cells.row.0[*at].value.load().is_some()).collect()
    }

    #[test]
    fn what_nobody_asks_for_goes_when_room_is_short() {
        let cache = Arc::new(BlockCache::new(16 * MIB));
        let cells = OnShelf::new(20, &cache);
        for at in 0..8 {
            assert_eq!(*cells.put(at, at, MIB), at);
        }
        assert_eq!(there(&cells, 20), [0, 1, 2, 3, 4, 5, 6, 7], "8 MiB are there for it");
        // All were used: the hand goes round once, and takes the first.
        cells.put(8, 8, MIB);
        assert_eq!(there(&cells, 20), [1, 2, 3, 4, 5, 6, 7, 8]);
        let held = cells.get(2).as_ref().unwrap().clone();
        for at in [3, 5, 7] {
            assert!(cells.get(at).is_some());
        }
        for at in 9..13 {
            cells.put(at, at, MIB);
        }
        for at in [2, 3, 5, 7] {
            assert!(cells.get(at).is_some(), "{at} was asked for: {:?}", there(&cells, 20));
        }
        assert_eq!(there(&cells, 20).len(), 8);
        // It goes, but not for those who hold it.
        for at in (0..20).filter(|at| *at != 2).chain(13..20) {
            if cells.get(at).is_none() {
                cells.put(at, at, MIB);
            }
        }
        assert_eq!(*held, 2);
    }

    #[test]
    fn the_first_of_two_readers_wins_and_closing_gives_all_back() {
        let cache = Arc::new(BlockCache::new(4 * MIB));
        let cells = OnShelf::new(2, &cache);
        assert_eq!(*cells.put(0, 1, 100), 1);
        assert_eq!(*cells.put(0, 2, 100), 1);
        let large = OnShelf::new(1, &cache);
        // Larger than all room: the one who reads it has it, and it is not kept for long.
        assert_eq!(*large.put(0, 3, 9 * MIB), 3);
        assert!(large.get(0).is_none() && cells.get(0).is_none());
        assert_eq!(cache.shelf.lock().bytes, 0);
        assert_eq!(*large.put(0, 4, MIB), 4);
        drop(large);
        assert_eq!(cache.shelf.lock().bytes, 0);
        assert_eq!(cache.shelf.lock().dead, 1);
        for round in 0..200 {
            let cells = OnShelf::new(1, &cache);
            cells.put(0, round, 10);
        }
        assert!(cache.shelf.lock().filled.len() < 140);
    }
}
