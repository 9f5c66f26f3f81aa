//! Memory for frames: pieces of regions in large pages.
//!
//! Blocks are all about as large as each other, come when they are read and leave when the cache
//! wants their room, in any order. A region keeps a bit per KiB; a frame takes the first run of
//! free bits that is long enough, in the first region that has one, so that the later regions
//! empty themselves and go back to the system:
//!
//! ```text
//!   region   | number | frame 33 KiB | free 12 | frame 34 KiB | frame 29 KiB | free ... |
//!   bits       1        111...1        000..0    111...1        111...1        000..0
//! ```
//!
//! A bound on each region's longest free run, in an array of its own, says where to look. It is
//! made exact when a look was in vain, and only then.
//!
//! What stays as long as its sst is open (filters, index partitions) has regions of its own: among
//! blocks that come and go, one such piece would keep a region for hours. The pages of what is
//! free in a region are still the process's; [`release_free`] gives them back when memory is short.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use parking_lot::Mutex;

use crate::large_pages::{REGION, region, region_layout, release};

/// Bytes per bit.
const GRANULE: usize = 1 << 10;
const GRANULES: usize = REGION / GRANULE;
const WORDS: usize = GRANULES / 64;
/// Granules of a page, and their bits.
const PAGE: usize = 4;
const PAGE_BITS: u64 = (1 << PAGE) - 1;
const PAGES: usize = GRANULES / PAGE;
/// Smaller frames come from the usual allocator, which packs them better; larger ones too, which
/// would leave holes in regions.
const SIZES: std::ops::RangeInclusive<usize> = 2 * GRANULE..=REGION / 2;
/// Regions without frames that are kept for the next ones.
const MOST_EMPTY: usize = 2;
/// More than this part of all regions is worth being given back.
const WORTH_PART: u64 = 16;
/// Address sanitizers watch the borders of allocations: under a fuzzer, each frame is one.
const IN_USE: bool = !cfg!(feature = "fuzzing");

/// How long a frame lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// As long as the cache wants it.
    Passing,
    /// As long as its sst is open.
    Staying,
}

static PASSING: Mutex<Pool> = Mutex::new(Pool::new());
static STAYING: Mutex<Pool> = Mutex::new(Pool::new());

fn pool(life: Life) -> &'static Mutex<Pool> {
    match life {
        Life::Passing => &PASSING,
        Life::Staying => &STAYING,
    }
}

/// Whether the pool is in charge of this size.
fn is_pooled(layout: Layout) -> bool {
    IN_USE && SIZES.contains(&layout.size())
}

/// Bytes that an allocation really takes.
pub(super) fn size_taken(layout: Layout) -> usize {
    if is_pooled(layout) { layout.size().next_multiple_of(GRANULE) } else { layout.size() }
}

/// Uninitialised memory. The layout has a size above zero, and an alignment of at most a granule.
pub(super) fn allocate(layout: Layout, life: Life) -> NonNull<u8> {
    if is_pooled(layout) {
        return pool(life).lock().allocate(layout.size().div_ceil(GRANULE));
    }
    // SAFETY: the caller's layout is not empty.
    let raw = unsafe { alloc(layout) };
    NonNull::new(raw).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Gives memory back.
///
/// # Safety
/// It came from [`allocate`] with the same layout and life, and nobody uses it any more.
pub(super) unsafe fn free(start: NonNull<u8>, layout: Layout, life: Life) {
    if is_pooled(layout) {
        // SAFETY: the caller's promise.
        unsafe { pool(life).lock().free(start, layout.size().div_ceil(GRANULE)) };
    } else {
        // SAFETY: the caller's promise; this layout is the usual allocator's.
        unsafe { dealloc(start.as_ptr(), layout) };
    }
}

/// Bytes of all regions, and of what is free in them and not given back. They are the process's,
/// for all stores.
pub(crate) fn region_bytes() -> (u64, u64) {
    let bytes = |life| pool(life).lock().bytes();
    let (passing, staying) = (bytes(Life::Passing), bytes(Life::Staying));
    (passing.0 + staying.0, passing.1 + staying.1)
}

/// Gives the pages of free runs back to the system, if they are much. What is taken there next is
/// slower, once: its pages come anew, and are small ones.
pub(crate) fn release_free() {
    for life in [Life::Passing, Life::Staying] {
        let (all, free) = pool(life).lock().bytes();
        if free <= all / WORTH_PART {
            continue;
        }
        // Readers load blocks meanwhile: the lock is held for one region at a time.
        let mut number = 0;
        while let Some(region) = pool(life).lock().regions.get_mut(number) {
            region.iter_mut().for_each(Region::release_free);
            number += 1;
        }
    }
}

/// What is taken of a region. Its first granule holds its number.
struct Region {
    start: NonNull<u8>,
    taken: [u64; WORDS],
    /// What is free and was given back.
    released: [u64; WORDS],
    free: u16,
}

// SAFETY: what a region points to is only touched with the pool's lock held, or by the owners of
// the pieces given out.
unsafe impl Send for Region {}

struct Pool {
    /// By number; `None`: given back, the number is free.
    regions: Vec<Option<Region>>,
    /// Per region, no free run is longer than this.
    longest: Vec<u16>,
    empty: usize,
}

impl Region {
    /// The first free run of so many granules; if there is none, the length of the longest.
    fn find(&self, granules: usize) -> Result<usize, usize> {
        let (mut longest, mut run) = (0, 0);
        for (number, word) in self.taken.iter().enumerate() {
            let mut at = 0;
            while at < 64 {
                let rest = word >> at;
                if rest & 1 == 0 {
                    let free = (rest.trailing_zeros() as usize).min(64 - at);
                    run += free;
                    at += free;
                    if run >= granules {
                        return Ok(number * 64 + at - run);
                    }
                } else {
                    longest = longest.max(run);
                    run = 0;
                    at += rest.trailing_ones() as usize;
                }
            }
        }
        Err(longest.max(run))
    }

    /// Bytes that are free and not given back.
    fn resident_free(&self) -> usize {
        let released: u32 = self.released.iter().map(|word| word.count_ones()).sum();
        (usize::from(self.free) - released as usize) * GRANULE
    }

    /// Gives back the pages that lie in free runs.
    fn release_free(&mut self) {
        if self.resident_free() == 0 {
            return;
        }
        let mut page = 0;
        while page < PAGES {
            let run = (page..PAGES).take_while(|page| self.is_releasable(*page)).count();
            if run > 0 {
                // SAFETY: the pages lie in the region, and in no piece that anybody uses.
                unsafe { release(self.start.add(page * PAGE * GRANULE), run * PAGE * GRANULE) };
                (page..page + run).for_each(|page| {
                    self.released[page * PAGE / 64] |= PAGE_BITS << (page * PAGE % 64);
                });
            }
            page += run + 1;
        }
    }

    /// Whether a page is free, some of it not given back.
    fn is_releasable(&self, page: usize) -> bool {
        let (word, mask) = (page * PAGE / 64, PAGE_BITS << (page * PAGE % 64));
        self.taken[word] & mask == 0 && self.released[word] & mask != mask
    }

    /// Turns the bits of a run over.
    fn flip(&mut self, first: usize, granules: usize) {
        for word in first / 64..=(first + granules - 1) / 64 {
            let from = first.max(word * 64) - word * 64;
            let to = (first + granules).min(word * 64 + 64) - word * 64;
            self.taken[word] ^= (u64::MAX >> (64 - (to - from))) << from;
        }
        // Whoever touches a page has all of it.
        for page in first / PAGE..(first + granules).div_ceil(PAGE) {
            self.released[page * PAGE / 64] &= !(PAGE_BITS << (page * PAGE % 64));
        }
    }
}

impl Pool {
    /// Bytes of all regions, and of what is free and not given back.
    fn bytes(&self) -> (u64, u64) {
        let regions = || self.regions.iter().flatten();
        let free: usize = regions().map(Region::resident_free).sum();
        ((regions().count() * REGION) as u64, free as u64)
    }

    const fn new() -> Pool {
        Pool { regions: Vec::new(), longest: Vec::new(), empty: 0 }
    }

    fn allocate(&mut self, granules: usize) -> NonNull<u8> {
        let mut from = 0;
        while let Some(number) = self.next_with(granules, from) {
            let region = self.regions[number].as_mut().expect("only regions have free runs");
            match region.find(granules) {
                Ok(first) => return self.take(number, first, granules),
                Err(longest) => self.longest[number] = longest as u16,
            }
            from = number + 1;
        }
        let number = self.add_region();
        self.take(number, 1, granules)
    }

    /// The first region from `from` on that may have such a run. Looks at many at once: with a
    /// cache of 64 GiB there are 32,000 of them.
    fn next_with(&self, granules: usize, mut from: usize) -> Option<usize> {
        const AT_ONCE: usize = 64;
        while from < self.longest.len() {
            let some = &self.longest[from..(from + AT_ONCE).min(self.longest.len())];
            if usize::from(some.iter().copied().max().unwrap_or(0)) >= granules {
                let here = some.iter().position(|longest| usize::from(*longest) >= granules);
                return here.map(|at| from + at);
            }
            from += AT_ONCE;
        }
        None
    }

    fn take(&mut self, number: usize, first: usize, granules: usize) -> NonNull<u8> {
        let region = self.regions[number].as_mut().expect("callers chose a region");
        if usize::from(region.free) == GRANULES - 1 {
            self.empty -= 1;
        }
        region.flip(first, granules);
        region.free -= granules as u16;
        // SAFETY: the run lies inside the region.
        unsafe { region.start.add(first * GRANULE) }
    }

    fn add_region(&mut self) -> usize {
        let number = self.regions.iter().position(Option::is_none).unwrap_or(self.regions.len());
        if number == self.regions.len() {
            self.regions.push(None);
            self.longest.push(0);
        }
        let start = region();
        // SAFETY: the first granule is the region's own, and aligned for anything.
        unsafe { start.cast::<usize>().write(number) };
        let mut region =
            Region { start, taken: [0; WORDS], released: [0; WORDS], free: GRANULES as u16 - 1 };
        region.flip(0, 1);
        self.regions[number] = Some(region);
        self.longest[number] = GRANULES as u16 - 1;
        self.empty += 1;
        number
    }

    /// # Safety
    /// `start` came from [`Pool::allocate`] with as many granules, and nobody uses it any more.
    unsafe fn free(&mut self, start: NonNull<u8>, granules: usize) {
        let offset = start.as_ptr().addr() % REGION;
        // SAFETY: regions are aligned to their size, so this is the head of the one that the
        // piece was cut from, where `add_region` wrote the number.
        let number = unsafe { start.sub(offset).cast::<usize>().read() };
        let region = self.regions[number].as_mut().expect("a region with frames stays");
        region.flip(offset / GRANULE, granules);
        region.free += granules as u16;
        self.longest[number] = region.free;
        if usize::from(region.free) < GRANULES - 1 {
            return;
        }
        if self.empty < MOST_EMPTY {
            self.empty += 1;
            return;
        }
        self.longest[number] = 0;
        if let Some(region) = self.regions[number].take() {
            // SAFETY: `region()` allocated it with this layout, and no piece of it is in use.
            unsafe { dealloc(region.start.as_ptr(), region_layout()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_env::random::Random;

    /// Fills a piece with a number of its own; whoever overlaps with it destroys that.
    fn sign(start: NonNull<u8>, granules: usize, sign: u64) {
        for at in [0, granules * GRANULE - 8] {
            // SAFETY: both places lie in the piece, which is the test's, and are aligned.
            unsafe { start.add(at).cast::<u64>().write(sign) };
        }
    }

    fn is_signed(start: NonNull<u8>, granules: usize, sign: u64) -> bool {
        // SAFETY: as above; `sign` has written there.
        [0, granules * GRANULE - 8]
            .iter()
            .all(|at| unsafe { start.add(*at).cast::<u64>().read() == sign })
    }

    #[test]
    fn pieces_do_not_overlap_and_empty_regions_go_back() {
        let mut pool = Pool::new();
        let mut random = Random::seeded(1);
        let mut live = Vec::new();
        for turn in 0..200_000u64 {
            let grows = turn % 40_000 < 20_000;
            if live.is_empty() || random.chance(if grows { 6 } else { 4 }, 10) {
                let granules = random.between(2, 60) as usize;
                let start = pool.allocate(granules);
                assert!(start.as_ptr().addr().is_multiple_of(GRANULE));
                sign(start, granules, turn);
                live.push((start, granules, turn));
            } else {
                let (start, granules, number) =
                    live.swap_remove(random.below(live.len() as u64) as usize);
                assert!(is_signed(start, granules, number));
                // SAFETY: allocated above, and forgotten.
                unsafe { pool.free(start, granules) };
            }
        }
        let taken: usize = live.iter().map(|(_, granules, _)| granules).sum();
        let regions = pool.regions.iter().flatten().count();
        assert!(regions <= 2 * taken / GRANULES + MOST_EMPTY + 1, "{regions} for {taken} KiB");
        for (start, granules, number) in live {
            assert!(is_signed(start, granules, number));
            // SAFETY: as above.
            unsafe { pool.free(start, granules) };
        }
        assert_eq!(pool.regions.iter().flatten().count(), MOST_EMPTY);
        assert_eq!(pool.empty, MOST_EMPTY);
    }

    #[test]
    fn a_hole_is_filled_before_a_region_is_added() {
        let mut pool = Pool::new();
        let pieces: Vec<_> = (0..3 * GRANULES / 32).map(|_| pool.allocate(32)).collect();
        let regions = pool.regions.len();
        for start in pieces.iter().step_by(2) {
            // SAFETY: allocated above; this pointer is not used again.
            unsafe { pool.free(*start, 32) };
        }
        for _ in pieces.iter().step_by(2) {
            pool.allocate(31);
        }
        assert_eq!(pool.regions.len(), regions);
    }

    #[test]
    fn what_is_free_is_given_back_and_can_be_taken_again() {
        let mut pool = Pool::new();
        let mut pieces: Vec<_> = (0..GRANULES / 33).map(|_| pool.allocate(33)).collect();
        for (at, start) in pieces.iter().enumerate() {
            sign(*start, 33, at as u64);
        }
        let kept: Vec<_> = pieces.iter().copied().enumerate().step_by(3).collect();
        for (at, start) in pieces.drain(..).enumerate() {
            if at % 3 != 0 {
                // SAFETY: allocated above; this pointer is not used again.
                unsafe { pool.free(start, 33) };
            }
        }
        let (all, free) = pool.bytes();
        assert!(free > all / 2, "{free} of {all}");
        pool.regions.iter_mut().flatten().for_each(Region::release_free);
        // Of each of the 21 holes, and of the rest, less than a page on either side stays.
        let left = pool.bytes().1 as usize;
        assert!(left <= 22 * 2 * PAGE * GRANULE, "{left}");
        for (at, start) in &kept {
            assert!(is_signed(*start, 33, *at as u64));
        }
        let again: Vec<_> = (0..40).map(|_| pool.allocate(33)).collect();
        assert_eq!(pool.regions.len(), 1);
        for start in &again {
            sign(*start, 33, 1_000);
        }
        assert!(again.iter().all(|start| is_signed(*start, 33, 1_000)));
        assert!(kept.iter().all(|(at, start)| is_signed(*start, 33, *at as u64)));
        let free = usize::from(pool.regions[0].as_ref().unwrap().free) * GRANULE;
        assert!(pool.bytes().1 as usize <= free);
    }
}
