//! A fragment in memory: one piece of a range tombstone, as a node of a skiplist in an arena.
//!
//! ```text
//!   Fragment | Link[height] | max_ts[height] | start: len u32, bytes | end: len u32, bytes
//!       |                                         ^                      (only of a whole
//!       `- end: pointer to a bound: its own, or the start of the piece    tombstone)
//!          that it was cut from it: --------------'  in another fragment
//! ```
//!
//! Everything but `end`, `overwritten`, the links and the sums is written before the fragment is
//! published and never changes. Nothing is freed before the arena is, so whoever found a fragment
//! may go on looking at it, wherever it has moved to meanwhile.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use crate::memtable::{Arena, Link};

/// See the module.
#[repr(C)]
pub(super) struct Fragment {
    head: u64,
    ts: u64,
    /// Commit index of the batch in its memtable; 0 in other skylines.
    idx: u64,
    /// Where the piece ends: moves down when it is cut.
    end: AtomicPtr<u8>,
    /// The tower of the list of what this tombstone covered when it came; null: nothing.
    under: *const Tower,
    /// The fragment whose `overwritten` counts for all pieces of the tombstone.
    origin: *const Fragment,
    overwritten: AtomicBool,
    height: u8,
}

/// The beginning of a list of fragments; the links follow.
#[repr(C)]
struct Tower {
    height: usize,
}

const LINKS: usize = size_of::<Fragment>();

/// A fragment of a skyline, valid as long as the skyline is borrowed.
#[derive(Clone, Copy)]
pub(super) struct FragmentRef<'a> {
    node: NonNull<Fragment>,
    skyline: PhantomData<&'a Fragment>,
}

/// What all pieces of one tombstone have in common.
#[derive(Clone, Copy)]
pub(super) struct Facts {
    ts: u64,
    idx: u64,
    under: *const Tower,
    /// Null: the new fragment itself.
    origin: *const Fragment,
}

impl Facts {
    /// A new tombstone over what begins at `under` (none if it is empty).
    pub(super) fn new(ts: u64, idx: u64, under: Under) -> Facts {
        Facts { ts, idx, under: under.0, origin: ptr::null() }
    }
}

/// A frozen list, in its arena.
pub(super) struct Under(*const Tower);

/// Writes a bound and returns what is behind it.
///
/// # Safety
/// There must be room for it at `to`, which nobody else can see yet.
unsafe fn write_bound(to: *mut u8, key: &[u8]) -> *mut u8 {
    // SAFETY: as the caller promises.
    unsafe {
        to.cast::<u32>().write_unaligned(key.len() as u32);
        ptr::copy_nonoverlapping(key.as_ptr(), to.add(4), key.len());
        to.add(4 + key.len())
    }
}

/// # Safety
/// `at` must be where [`write_bound`] wrote, in an arena that lives for `'a`.
unsafe fn read_bound<'a>(at: *const u8) -> &'a [u8] {
    // SAFETY: as the caller promises; bounds never change.
    unsafe {
        let len = at.cast::<u32>().read_unaligned() as usize;
        std::slice::from_raw_parts(at.add(4), len)
    }
}

/// Makes a fragment that is not in any list yet. `end`: the bound of a whole tombstone, otherwise
/// that of the piece it is cut from.
pub(super) fn allocate<'a>(
    arena: &mut Arena,
    height: usize,
    (head, start): (u64, &[u8]),
    end: Result<&[u8], FragmentRef<'a>>,
    facts: Facts,
) -> FragmentRef<'a> {
    let own_end = end.as_ref().map_or(0, |end| 4 + end.len());
    let bounds = LINKS + height * (size_of::<Link<Fragment>>() + size_of::<AtomicU64>());
    let raw = arena.allocate(bounds + 4 + start.len() + own_end).as_ptr();
    let node = raw.cast::<Fragment>();
    // SAFETY: the allocation is large enough for all parts, is aligned to 8 as they are, and
    // nobody else has a pointer to it yet.
    unsafe {
        for level in 0..height {
            raw.add(LINKS).cast::<Link<Fragment>>().add(level).write(Link::end());
        }
        let sums = raw.add(LINKS + height * size_of::<Link<Fragment>>()).cast::<AtomicU64>();
        for level in 0..height {
            sums.add(level).write(AtomicU64::new(facts.ts));
        }
        let end_at = write_bound(raw.add(bounds), start);
        let end = match end {
            Ok(end) => {
                write_bound(end_at, end);
                end_at
            }
            Err(piece) => piece.header().end.load(Ordering::Relaxed),
        };
        node.write(Fragment {
            head,
            ts: facts.ts,
            idx: facts.idx,
            end: AtomicPtr::new(end),
            under: facts.under,
            origin: if facts.origin.is_null() { node } else { facts.origin },
            overwritten: AtomicBool::new(false),
            height: height as u8,
        });
    }
    FragmentRef { node: NonNull::new(node).expect("just allocated"), skyline: PhantomData }
}

/// Freezes the list that the links lead into.
pub(super) fn freeze<'a>(
    arena: &mut Arena,
    links: impl ExactSizeIterator<Item = &'a Link<Fragment>>,
) -> Under {
    let height = links.len();
    if height == 0 {
        return Under(ptr::null());
    }
    let size = size_of::<Tower>() + height * size_of::<Link<Fragment>>();
    let tower = arena.allocate(size).as_ptr().cast::<Tower>();
    // SAFETY: the allocation is large enough and aligned, and nobody else can see it yet.
    unsafe {
        tower.write(Tower { height });
        let first = tower.add(1).cast::<Link<Fragment>>();
        for (level, link) in links.enumerate() {
            let copy = Link::end();
            copy.follow(link);
            first.add(level).write(copy);
        }
    }
    Under(tower)
}

impl<'a> FragmentRef<'a> {
    /// What a link leads to.
    ///
    /// # Safety
    /// The link must be of a skyline that lives for `'a`.
    pub(super) unsafe fn new(node: *mut Fragment) -> Option<FragmentRef<'a>> {
        NonNull::new(node).map(|node| FragmentRef { node, skyline: PhantomData })
    }

    /// The same fragment, whatever the compiler knows about its skyline.
    ///
    /// # Safety
    /// The caller must not use it after the skyline is dropped.
    pub(super) unsafe fn outliving_its_borrow(self) -> FragmentRef<'static> {
        FragmentRef { node: self.node, skyline: PhantomData }
    }

    fn header(self) -> &'a Fragment {
        // SAFETY: fragments are complete before anybody finds them, and live as long as 'a.
        unsafe { self.node.as_ref() }
    }

    pub(super) fn as_ptr(self) -> *mut Fragment {
        self.node.as_ptr()
    }

    pub(super) fn head(self) -> u64 {
        self.header().head
    }

    pub(super) fn ts(self) -> u64 {
        self.header().ts
    }

    pub(super) fn idx(self) -> u64 {
        self.header().idx
    }

    pub(super) fn height(self) -> usize {
        usize::from(self.header().height)
    }

    fn behind(self, offset: usize) -> *const u8 {
        // SAFETY: callers stay inside of the allocation; `node` came from a pointer to all of it.
        unsafe { self.node.as_ptr().cast::<u8>().add(offset) }
    }

    fn start_at(self) -> *const u8 {
        let level = size_of::<Link<Fragment>>() + size_of::<AtomicU64>();
        self.behind(LINKS + self.height() * level)
    }

    pub(super) fn start(self) -> &'a [u8] {
        // SAFETY: `allocate` wrote it there.
        unsafe { read_bound(self.start_at()) }
    }

    /// Where the piece ends now.
    pub(super) fn end(self) -> &'a [u8] {
        // SAFETY: it leads to a bound, of this fragment or of one of the same arena.
        unsafe { read_bound(self.header().end.load(Ordering::Acquire)) }
    }

    /// Where the tombstone ended when it came. Only for fragments made with an end of their own.
    pub(super) fn first_end(self) -> &'a [u8] {
        // SAFETY: the fragment was made with its own end, which lies behind its start.
        unsafe { read_bound(self.start_at().add(4 + self.start().len())) }
    }

    /// Cuts off what is from the start of `rest` on, which must be linked behind this already:
    /// who sees the new end finds the rest.
    pub(super) fn cut(self, rest: FragmentRef<'a>) {
        self.header().end.store(rest.start_at().cast_mut(), Ordering::Release);
    }

    pub(super) fn facts(self) -> Facts {
        let Fragment { ts, idx, under, origin, .. } = *self.header();
        Facts { ts, idx, under, origin }
    }

    pub(super) fn link(self, level: usize) -> &'a Link<Fragment> {
        debug_assert!(level < self.height(), "a link of this fragment");
        // SAFETY: the links follow the header.
        unsafe { &*self.behind(LINKS).cast::<Link<Fragment>>().add(level) }
    }

    /// The largest timestamp from this fragment to the next of the level.
    pub(super) fn sum(self, level: usize) -> &'a AtomicU64 {
        debug_assert!(level < self.height(), "a sum of this fragment");
        let sums = LINKS + self.height() * size_of::<Link<Fragment>>();
        // SAFETY: the sums follow the links.
        unsafe { &*self.behind(sums).cast::<AtomicU64>().add(level) }
    }

    /// The tower of what this tombstone covered when it came.
    pub(super) fn under(self) -> &'a [Link<Fragment>] {
        let tower = self.header().under;
        if tower.is_null() {
            return &[];
        }
        // SAFETY: `freeze` wrote the header and so many links behind it; they never change.
        unsafe {
            let height = (*tower).height;
            std::slice::from_raw_parts(tower.add(1).cast::<Link<Fragment>>(), height)
        }
    }

    /// Whether a point arrived in the tombstone's span after it. One flag for all its pieces.
    pub(super) fn overwritten(self) -> &'a AtomicBool {
        // SAFETY: the origin lies in the same arena.
        unsafe { &(*self.header().origin).overwritten }
    }
}
