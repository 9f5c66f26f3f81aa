//! The stacked skyline: which range tombstone covers a key, at which time.
//!
//! Tombstones are kept as non-overlapping *fragments* in an ordered list. Each fragment carries
//! the list of what it covered when it came (`under`), so that a read in the past can go down:
//!
//! ```text
//!   insert [a, e)@1, [c, g)@2, [b, d)@3
//!
//!   top      a--1--b----3----c....d--2--------g
//!   under           b-1-c--2--d   d-1-e
//!   under                c-1-d
//! ```
//!
//! Invariant: going down at any key, timestamps do not increase (contract C1: newer tombstones
//! arrive later).
//!
//! The lists are skiplists in one arena. One writer changes the topmost list in place; readers
//! walk without locks and ignore tombstones that their view does not see: no read ever rebuilds or
//! copies anything. An insert `[a, b)` takes three steps, each of which changes no answer:
//!
//! ```text
//!   1  cut the fragment over a:   x-----------y    becomes   x----a + a----y    (then x ends at a)
//!   2  cut the fragment over b    likewise
//!   3  put [a, b) in place of all fragments from a up to b, which become what lies under it
//! ```
//!
//! * 1, 2: the rest is linked before the fragment's end moves. A reader who sees the new end looks
//!   at the next fragment once more and finds the rest.
//! * 3: a reader may still come into the replaced fragments by a link that it read before. They
//!   and their links are never changed again, so it sees the skyline as it was before the insert,
//!   and the new tombstone is not visible to it: commit indexes are raised after inserts.
//! * The new fragment is as high as the highest that it replaces, so every link only ever moves to
//!   a fragment at or in front of the one it led to, as [`Link`] demands.
//!
//! An insert costs O(log n) steps and makes at most three fragments, so memory is O(n), however
//! deeply tombstones are nested. Beside each link lies the largest timestamp of the fragments it
//! passes, which answers for whole spans in O(log n). Only the writer's lock guards those sums.

use std::cmp::Ordering;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering as Memory};

use braid_env::random::Random;
use bytes::Bytes;
use parking_lot::Mutex;

use super::fragment::{Facts, Fragment, FragmentRef, allocate, freeze};
use crate::key::compare;
use crate::memtable::{Arena, Link, Tombstone, key_head};

const MAX_HEIGHT: usize = 20;

/// What covers a key: the visible tombstone and how far it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cover {
    /// Timestamp of the visible tombstone; 0 if none.
    pub(crate) ts: u64,
    /// Forward: the answer holds for keys below this; backward: for keys from this on.
    /// `None`: to the end of the key space in that direction.
    pub(crate) until: Option<Bytes>,
    /// No point of this layer is newer than the tombstone: all of them in the span are hidden.
    pub(crate) clean: bool,
}

/// The writer's side.
struct Writer {
    arena: Arena,
    random: Random,
    /// The tombstones as they came.
    arrived: Vec<FragmentRef<'static>>,
}

/// Last fragment before a key on each level; null stands for the list's own tower.
#[derive(Clone)]
struct Path([*mut Fragment; MAX_HEIGHT]);

impl Path {
    fn at(&self, level: usize) -> *mut Fragment {
        self.0[level]
    }
}

/// Where a reader looked last in a skyline that it keeps alive.
#[derive(Clone, Copy)]
pub(crate) struct Finger(*mut Fragment);

// SAFETY: only the skyline follows the pointer; what it finds there may be looked at by any thread.
unsafe impl Send for Finger {}

impl Finger {
    /// Nowhere yet.
    pub(crate) fn nowhere() -> Finger {
        Finger(ptr::null_mut())
    }
}

/// Range tombstones of one layer.
pub(crate) struct Skyline {
    tower: [Link<Fragment>; MAX_HEIGHT],
    /// As `sum` of a fragment, for the links of the tower.
    sums: [AtomicU64; MAX_HEIGHT],
    height: AtomicUsize,
    prefix: Box<[u8]>,
    writer: Mutex<Writer>,
}

// SAFETY: what readers find is immutable or atomic and lives as long as the skyline; the writer's
// state is behind a mutex. Raw pointers inside are only an implementation of that sharing.
unsafe impl Send for Skyline {}
// SAFETY: as above.
unsafe impl Sync for Skyline {}

impl std::fmt::Debug for Skyline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut list = f.debug_list();
        for (start, end, ts) in self.topmost() {
            list.entry(&format!("[{},{})@{ts}", start.escape_ascii(), end.escape_ascii()));
        }
        list.finish()
    }
}

/// A key to look for. `at`: fragments that start there count as before it.
#[derive(Clone, Copy)]
struct Position<'k> {
    head: u64,
    key: &'k [u8],
    at: bool,
}

impl Position<'_> {
    #[inline]
    fn is_behind_start_of(&self, fragment: FragmentRef<'_>) -> bool {
        match fragment.head().cmp(&self.head) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal if self.at => fragment.start() <= self.key,
            Ordering::Equal => fragment.start() < self.key,
        }
    }
}

/// Where a key lies among the fragments of one list.
enum Place<'a> {
    /// In this fragment, which ended there when it was found: it may be cut in front of the key
    /// any time.
    Inside(FragmentRef<'a>, &'a [u8]),
    /// Between the end of one fragment and the start of the next.
    Gap(Option<&'a [u8]>, Option<&'a [u8]>),
}

impl Default for Skyline {
    fn default() -> Skyline {
        Skyline::new(b"")
    }
}

impl Skyline {
    /// A skyline without tombstones; `prefix` is a guess of what most bounds begin with.
    pub(crate) fn new(prefix: &[u8]) -> Skyline {
        Skyline {
            tower: std::array::from_fn(|_| Link::end()),
            sums: std::array::from_fn(|_| AtomicU64::new(0)),
            height: AtomicUsize::new(1),
            prefix: prefix.into(),
            writer: Mutex::new(Writer {
                arena: Arena::new(),
                random: Random::seeded(prefix.len() as u64),
                arrived: Vec::new(),
            }),
        }
    }

    /// Whether there are no tombstones.
    pub(crate) fn is_empty(&self) -> bool {
        self.tower[0].next().is_null()
    }

    fn position<'k>(&self, key: &'k [u8], at: bool) -> Position<'k> {
        Position { head: key_head(&self.prefix, key), key, at }
    }

    /// What a link or a path leads to.
    fn fragment(&self, node: *mut Fragment) -> Option<FragmentRef<'_>> {
        // SAFETY: all links and paths of this struct lead into its arena.
        unsafe { FragmentRef::new(node) }
    }

    fn link(&self, node: *mut Fragment, level: usize) -> &Link<Fragment> {
        self.fragment(node).map_or(&self.tower[level], |fragment| fragment.link(level))
    }

    fn sum(&self, node: *mut Fragment, level: usize) -> &AtomicU64 {
        self.fragment(node).map_or(&self.sums[level], |fragment| fragment.sum(level))
    }

    fn top(&self) -> &[Link<Fragment>] {
        &self.tower[..self.height.load(Memory::Relaxed)]
    }

    /// Moves forward on one level while the next fragment is before the position.
    #[inline]
    fn walk<'a>(
        &'a self,
        tower: &'a [Link<Fragment>],
        mut at: Option<FragmentRef<'a>>,
        level: usize,
        position: &Position<'_>,
    ) -> Option<FragmentRef<'a>> {
        loop {
            let (head, next) = at.map_or(&tower[level], |at| at.link(level)).read();
            if head > position.head {
                return at;
            }
            let Some(next) = self.fragment(next) else { return at };
            // The next fragment is at or in front of the one with this head.
            if head == position.head && !position.is_behind_start_of(next) {
                return at;
            }
            at = Some(next);
        }
    }

    /// Finds the fragment of `key`. With `before`, the place of the keys just below it instead.
    fn locate<'a>(&'a self, tower: &'a [Link<Fragment>], key: &[u8], before: bool) -> Place<'a> {
        let position = self.position(key, !before);
        let mut at = None;
        for level in (0..tower.len()).rev() {
            at = self.walk(tower, at, level, &position);
        }
        loop {
            let low = at.map(FragmentRef::end);
            if let (Some(fragment), Some(end)) = (at, low)
                && (key < end || (before && key == end))
            {
                return Place::Inside(fragment, end);
            }
            // It may have been cut just now: then the rest is linked behind it.
            let link = at.map_or(tower.first(), |at| Some(at.link(0)));
            let next = link.and_then(|link| self.fragment(link.next()));
            match next {
                Some(fragment) if position.is_behind_start_of(fragment) => at = next,
                _ => return Place::Gap(low, next.map(FragmentRef::start)),
            }
        }
    }

    /// Timestamp of the newest tombstone over `key` with `ts <= read_ts` and `idx <= visible`;
    /// 0 if there is none.
    pub(crate) fn stab(&self, key: &[u8], read_ts: u64, visible: u64) -> u64 {
        self.newest_over(key, read_ts, visible).map_or(0, FragmentRef::ts)
    }

    /// As [`Skyline::stab`]; also whether the tombstone hides all points of its layer that it
    /// covers, as [`Cover::clean`].
    pub(crate) fn stab_clean(&self, key: &[u8], read_ts: u64, visible: u64) -> (u64, bool) {
        let found = self.newest_over(key, read_ts, visible);
        found.map_or((0, false), |fragment| {
            (fragment.ts(), !fragment.overwritten().load(Memory::Acquire))
        })
    }

    fn newest_over(&self, key: &[u8], read_ts: u64, visible: u64) -> Option<FragmentRef<'_>> {
        let mut tower = self.top();
        while let Place::Inside(fragment, _) = self.locate(tower, key, false) {
            if fragment.ts() <= read_ts && fragment.idx() <= visible {
                return Some(fragment);
            }
            tower = fragment.under();
        }
        None
    }

    /// As [`Skyline::stab`], with the span over which the answer holds. Forward: for `key` and
    /// the keys after it; backward: for the keys just below `key`.
    pub(crate) fn cover(&self, key: &[u8], read_ts: u64, visible: u64, backward: bool) -> Cover {
        let mut until = None;
        let mut narrow = |found| {
            until = match (until, found) {
                (Some(old), Some(new)) if backward => Some(std::cmp::max::<&[u8]>(old, new)),
                (Some(old), Some(new)) => Some(std::cmp::min(old, new)),
                (old, new) => old.or(new),
            };
        };
        let mut tower = self.top();
        let (ts, clean) = loop {
            match self.locate(tower, key, backward) {
                Place::Gap(low, high) => {
                    narrow(if backward { low } else { high });
                    break (0, false);
                }
                Place::Inside(fragment, end) => {
                    narrow(Some(if backward { fragment.start() } else { end }));
                    if fragment.ts() <= read_ts && fragment.idx() <= visible {
                        break (fragment.ts(), !fragment.overwritten().load(Memory::Acquire));
                    }
                    tower = fragment.under();
                }
            }
        };
        Cover { ts, until: until.map(Bytes::copy_from_slice), clean }
    }

    /// As `locate` in the topmost list, for the keys from `key` on: from where the finger points
    /// to, if `key` is a few fragments behind.
    fn locate_near<'a>(&'a self, key: &[u8], finger: Finger) -> Place<'a> {
        const NEAR: usize = 4;
        let last = self.fragment(finger.0);
        // Where tombstones of several layers touch in turn, the next one starts right here.
        if let Some(next) = last.and_then(|last| self.fragment(last.link(0).next()))
            && compare(next.start(), key).is_eq()
        {
            return Place::Inside(next, next.end());
        }
        let mut near = last.filter(|at| at.start() <= key);
        for _ in 0..NEAR {
            let Some(at) = near else { break };
            let end = at.end();
            if key < end {
                return Place::Inside(at, end);
            }
            // If it was cut before its end was read, the rest is linked behind it.
            match self.fragment(at.link(0).next()) {
                Some(next) if next.start() <= key => near = Some(next),
                next => return Place::Gap(Some(end), next.map(FragmentRef::start)),
            }
        }
        self.locate(self.top(), key, false)
    }

    /// If a visible tombstone is over `from`: follows those that touch it, to where the last of
    /// them ends. They are visible to the read and hide all points of their layer, or end at or in
    /// front of `own`, its next point (`None`: it has none left). The walk stops when it reaches
    /// `stop`. Adds to `passed` how many there were.
    ///
    /// One step along the list for each, where a look for each would begin at its tower again. The
    /// finger is to be used by one view only: what it points to may have been replaced meanwhile,
    /// but by nothing that the view sees.
    pub(crate) fn run_from<'a>(
        &'a self,
        from: &[u8],
        (read_ts, visible): (u64, u64),
        (stop, own): (&[u8], Option<&[u8]>),
        finger: &mut Finger,
        passed: &mut u64,
    ) -> Option<&'a [u8]> {
        let Place::Inside(mut fragment, mut end) = self.locate_near(from, *finger) else {
            return None;
        };
        let mut reached = None;
        loop {
            finger.0 = fragment.as_ptr();
            let is_visible = fragment.ts() <= read_ts && fragment.idx() <= visible;
            let is_clean = !fragment.overwritten().load(Memory::Acquire);
            if !is_visible || !is_clean && own.is_some_and(|own| own < end) {
                break;
            }
            *passed += 1;
            reached = Some(end);
            if compare(end, stop).is_ge() {
                break;
            }
            match self.fragment(fragment.link(0).next()) {
                Some(next) if compare(next.start(), end).is_le() => {
                    (fragment, end) = (next, next.end());
                }
                _ => break,
            }
        }
        reached
    }

    /// Notes that a point arrives at `key`: a tombstone over it no longer hides all rows of its
    /// layer. Must be called before the point becomes visible.
    pub(crate) fn point_arrives(&self, key: &[u8]) {
        if let Place::Inside(fragment, _) = self.locate(self.top(), key, false)
            && !fragment.overwritten().load(Memory::Relaxed)
        {
            fragment.overwritten().store(true, Memory::Release);
        }
    }

    /// Start, end and timestamp of the topmost fragments, in key order. Nobody may insert.
    pub(crate) fn topmost(&self) -> impl Iterator<Item = (&[u8], &[u8], u64)> {
        let first = self.fragment(self.tower[0].next());
        let next = |at: &FragmentRef<'_>| self.fragment(at.link(0).next());
        std::iter::successors(first, next)
            .map(|fragment| (fragment.start(), fragment.end(), fragment.ts()))
    }

    /// All tombstones as they came, in that order.
    pub(crate) fn tombstones(&self) -> Vec<Tombstone> {
        self.tombstones_up_to(u64::MAX)
    }

    /// Those of the batches up to a commit index.
    pub(crate) fn tombstones_up_to(&self, visible: u64) -> Vec<Tombstone> {
        let writer = self.writer.lock();
        let tombstone = |fragment: &FragmentRef<'_>| Tombstone {
            start: Bytes::copy_from_slice(fragment.start()),
            end: Bytes::copy_from_slice(fragment.first_end()),
            ts: fragment.ts(),
        };
        let seen = writer.arrived.iter().filter(|fragment| fragment.idx() <= visible);
        seen.map(tombstone).collect()
    }

    /// Largest timestamp of a tombstone that shares a key with `[start, end)`; 0 if none.
    /// O(log n): over whole stretches the sums answer.
    pub(crate) fn max_ts_in(&self, start: &[u8], end: &[u8]) -> u64 {
        // Links and sums go together only while nobody changes them.
        let _writer = self.writer.lock();
        let mut newest = 0;
        let mut at = match self.locate(self.top(), start, false) {
            Place::Inside(fragment, _) => Some(fragment),
            Place::Gap(_, None) => None,
            Place::Gap(_, Some(next)) => match self.locate(self.top(), next, false) {
                Place::Inside(fragment, _) if fragment.start() < end => Some(fragment),
                _ => None,
            },
        };
        let end = self.position(end, false);
        while let Some(fragment) = at {
            newest = newest.max(fragment.ts());
            at = None;
            for level in (0..fragment.height()).rev() {
                let next = self.fragment(fragment.link(level).next());
                if next.is_some_and(|next| end.is_behind_start_of(next)) {
                    newest = newest.max(fragment.sum(level).load(Memory::Relaxed));
                    at = next;
                    break;
                }
            }
        }
        newest
    }

    /// Adds `[start, end)@ts`. O(log n). `ts` must not be below any tombstone in the span.
    pub(crate) fn insert(&self, start: &[u8], end: &[u8], ts: u64, idx: u64) {
        debug_assert!(start < end, "a tombstone covers at least one key");
        let mut writer = self.writer.lock();
        let writer = &mut *writer;
        let (low, high) = (self.position(start, false), self.position(end, false));
        let to_start = self.path(&low, &Path([ptr::null_mut(); MAX_HEIGHT]));
        if let Some(over) = self.fragment(to_start.at(0))
            && over.end() > start
        {
            // The rest goes under the new fragment at once: one level is enough.
            self.cut(writer, over, &low, &to_start, 1);
        }
        let to_end = self.path(&high, &to_start);
        if to_end.at(0) != to_start.at(0)
            && let Some(over) = self.fragment(to_end.at(0))
            && over.end() > end
        {
            let height = random_height(writer);
            self.cut(writer, over, &high, &to_end, height);
        }
        let replaced = (0..MAX_HEIGHT).take_while(|i| to_start.at(*i) != to_end.at(*i)).count();
        let links = (0..replaced).map(|level| self.link(to_start.at(level), level));
        let under = freeze(&mut writer.arena, links);
        let height = random_height(writer).max(replaced);
        let facts = Facts::new(ts, idx, under);
        let arena = &mut writer.arena;
        let fragment = allocate(arena, height, (low.head, start), Ok(end), facts);
        self.publish(fragment, &to_start, &to_end);
        // SAFETY: the list goes with the arena that the fragment lies in.
        writer.arrived.push(unsafe { fragment.outliving_its_borrow() });
    }

    /// The last fragment that starts before the position on each level, from an earlier path on.
    fn path(&self, position: &Position<'_>, from: &Path) -> Path {
        let mut path = from.clone();
        let height = self.height.load(Memory::Relaxed);
        let mut at = ptr::null_mut();
        for level in (0..height).rev() {
            if level + 1 == height || at == from.at(level + 1) {
                at = from.at(level);
            }
            let found = self.walk(&self.tower, self.fragment(at), level, position);
            at = found.map_or(ptr::null_mut(), FragmentRef::as_ptr);
            path.0[level] = at;
        }
        path
    }

    /// Cuts a fragment in two at a position inside of it, to which the path leads.
    fn cut(
        &self,
        writer: &mut Writer,
        over: FragmentRef<'_>,
        at: &Position<'_>,
        path: &Path,
        height: usize,
    ) {
        let start = (at.head, at.key);
        let rest = allocate(&mut writer.arena, height, start, Err(over), over.facts());
        self.publish(rest, path, path);
        over.cut(rest);
    }

    /// Puts a fragment behind `before`, in front of what `after` leads to.
    fn publish(&self, fragment: FragmentRef<'_>, before: &Path, after: &Path) {
        let height = fragment.height();
        let old_height = self.height.load(Memory::Relaxed);
        if height > old_height {
            self.height.store(height, Memory::Relaxed);
        }
        for level in 0..height {
            fragment.link(level).follow(self.link(after.at(level), level));
        }
        for level in 0..height {
            self.link(before.at(level), level).publish(fragment.as_ptr(), fragment.head());
        }
        for level in 1..height {
            self.sum_up(before.at(level), level);
            self.sum_up(fragment.as_ptr(), level);
        }
        for level in height..old_height {
            let sum = self.sum(before.at(level), level);
            sum.store(sum.load(Memory::Relaxed).max(fragment.ts()), Memory::Relaxed);
        }
    }

    /// Computes a sum from those of the level below.
    fn sum_up(&self, from: *mut Fragment, level: usize) {
        let to = self.link(from, level).next();
        let (mut at, mut newest) = (from, 0);
        loop {
            newest = newest.max(self.sum(at, level - 1).load(Memory::Relaxed));
            at = self.link(at, level - 1).next();
            if at == to {
                break;
            }
        }
        self.sum(from, level).store(newest, Memory::Relaxed);
    }
}

fn random_height(writer: &mut Writer) -> usize {
    (1 + writer.random.next_u64().trailing_zeros() as usize).min(MAX_HEIGHT)
}

/// Joins pieces of the same timestamp that touch; sorts by timestamp, then start.
pub(crate) fn coalesce(mut pieces: Vec<Tombstone>) -> Vec<Tombstone> {
    pieces.sort_by(|a, b| a.ts.cmp(&b.ts).then_with(|| a.start.cmp(&b.start)));
    let mut joined: Vec<Tombstone> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match joined.last_mut() {
            Some(last) if last.ts == piece.ts && piece.start <= last.end => {
                if piece.end > last.end {
                    last.end = piece.end;
                }
            }
            _ => joined.push(piece),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn key(n: u64) -> Vec<u8> {
        format!("{n:03}").into_bytes()
    }

    #[test]
    fn answers_as_a_plain_list_does() {
        for seed in 0..60 {
            let mut random = Random::seeded(seed);
            let skyline = Skyline::default();
            let mut list = Vec::new();
            for idx in 1..=80u64 {
                let a = random.below(99);
                let b = a + 1 + random.below(99 - a);
                let ts = idx / 3 + 1;
                skyline.insert(&key(a), &key(b), ts, idx);
                list.push((a, b, ts, idx));
                let (t, visible) = (random.below(30), random.below(idx + 1));
                let newest = |k: u64| {
                    list.iter()
                        .filter(|x| x.0 <= k && k < x.1 && x.2 <= t && x.3 <= visible)
                        .map(|x| x.2)
                        .max()
                        .unwrap_or(0)
                };
                for k in 0..100 {
                    assert_eq!(skyline.stab(&key(k), t, visible), newest(k), "seed {seed}");
                    let cover = skyline.cover(&key(k), t, visible, false);
                    assert_eq!(cover.ts, newest(k));
                    let end = cover.until.map_or(100, |u| {
                        String::from_utf8(u.to_vec()).unwrap().parse::<u64>().unwrap()
                    });
                    assert!(end > k);
                    assert!((k..end).all(|x| newest(x) == cover.ts), "seed {seed}");
                    if k > 0 {
                        let cover = skyline.cover(&key(k), t, visible, true);
                        let from = cover.until.map_or(0, |u| {
                            String::from_utf8(u.to_vec()).unwrap().parse::<u64>().unwrap()
                        });
                        assert!(from < k);
                        assert!((from..k).all(|x| newest(x) == cover.ts), "seed {seed}");
                    }
                }
                let max = list.iter().filter(|x| x.0 < b && a < x.1).map(|x| x.2).max();
                assert_eq!(skyline.max_ts_in(&key(a), &key(b)), max.unwrap_or(0));
            }
        }
    }

    #[test]
    fn readers_see_their_own_tombstones_while_others_come() {
        const BATCHES: u64 = 2_000;
        let mut random = Random::seeded(5);
        let list: Vec<(u64, u64)> = (0..BATCHES)
            .map(|_| {
                let a = random.below(99);
                let width = if random.below(3) == 0 { 99 - a } else { (99 - a).min(6) };
                (a, a + 1 + random.below(width))
            })
            .collect();
        let shared = Arc::new((Skyline::default(), AtomicU64::new(0), list));
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let shared = shared.clone();
                braid_env::tasks::spawn_thread("reader", move || {
                    let (skyline, visible, list) = &*shared;
                    let mut random = Random::seeded(reader);
                    let mut seen = 0;
                    while seen < BATCHES {
                        seen = visible.load(Memory::Acquire);
                        let newest = |k: u64| {
                            let over = |idx: &u64| {
                                let (a, b) = list[*idx as usize - 1];
                                a <= k && k < b
                            };
                            (1..=seen).rev().find(over).unwrap_or(0)
                        };
                        let k = random.below(98) + 1;
                        let number = |bound: Bytes| {
                            String::from_utf8(bound.to_vec()).unwrap().parse::<u64>().unwrap()
                        };
                        assert_eq!(skyline.stab(&key(k), u64::MAX, seen), newest(k));
                        let cover = skyline.cover(&key(k), u64::MAX, seen, false);
                        let end = cover.until.map_or(100, number);
                        assert!(end > k && (k..end).all(|k| newest(k) == cover.ts));
                        let cover = skyline.cover(&key(k), u64::MAX, seen, true);
                        let from = cover.until.map_or(0, number);
                        assert!(from < k && (from..k).all(|k| newest(k) == cover.ts));
                    }
                })
            })
            .collect();
        let (skyline, visible, list) = &*shared;
        for (idx, (a, b)) in (1..).zip(list) {
            skyline.insert(&key(*a), &key(*b), idx, idx);
            visible.store(idx, Memory::Release);
            if idx % 64 == 0 {
                std::thread::yield_now();
            }
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    }

    #[test]
    fn deeply_nested_tombstones_are_dropped_without_recursion() {
        let skyline = Skyline::default();
        for ts in 1..=200_000 {
            skyline.insert(b"a", b"z", ts, 0);
        }
        assert_eq!(skyline.stab(b"m", 77, 0), 77);
        drop(skyline);
    }
}
