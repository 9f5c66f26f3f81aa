//! Range tombstones of an sst: a skyline that is searched as it lies in the file.
//!
//! The bounds of all tombstones, sorted, cut the key line into numbered pieces. Fragments are
//! pairs of such numbers, in arrays; array 0 is the skyline seen from above. Each fragment names
//! the array of what it covered (`under`), as in the memtable's
//! [`Skyline`](crate::range_tombstone::Skyline), so a read in the past goes down:
//!
//! ```text
//!   [a, e)@1, [c, g)@2, [b, d)@3       bounds  a b c d e g     numbers 0 to 5
//!
//!   array 0   a--1--b----3----d--2--------g        0-1@1  1-3@3 (under: 1)  3-5@2 (under: 2)
//!   array 1         b-1-c--2--d                    1-2@1  2-3@2 (under: 2)
//!   array 2             c-1----e                   2-4@1
//! ```
//!
//! Halves of a fragment that was cut share their `under`, and a fragment moves from array 0 to one
//! other array at most: t tombstones take O(t) space, however deeply they are nested. Nothing is
//! built when an sst is opened or read; a look costs O((1 + j) log t), j newer tombstones above.
//!
//! ```text
//!   bounds u32 k | fragments u32 f | arrays u32 a | shared u32 | heads u64 x k | ends u32 x k |
//!   first fragment u32 x (a + 1) | start u32 x f | end u32 x f | under u32 x f | ts u64 x f | keys
//! ```

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bytes::Bytes;

use super::columns::{head_of, partition_point, slice_at, u32_at, u64_at};
use super::format::le_u32;
use crate::key::compare;
use crate::memtable::Tombstone;
use crate::range_tombstone::{Cover, Head, TombstoneMap, Top, TopPlace, coalesce};

const HEADER: usize = 16;

#[derive(Clone, Copy)]
struct Fragment {
    start: u32,
    end: u32,
    under: u32,
    ts: u64,
}

/// Puts fragments together: tombstones come in ascending order of their timestamps.
#[derive(Default)]
struct Builder {
    top: BTreeMap<u32, Fragment>,
    /// What lies under others, in the order of its coming there. Number 0 stands for none.
    arrays: Vec<Vec<Fragment>>,
}

impl Builder {
    /// Makes sure that no fragment of the top crosses `at`.
    fn cut(&mut self, at: u32) {
        if let Some((_, fragment)) = self.top.range_mut(..at).next_back()
            && fragment.end > at
        {
            let high = Fragment { start: at, ..*fragment };
            fragment.end = at;
            self.top.insert(at, high);
        }
    }

    fn insert(&mut self, start: u32, end: u32, ts: u64) {
        self.cut(start);
        self.cut(end);
        let covered: Vec<Fragment> = self.top.range(start..end).map(|(_, f)| *f).collect();
        for fragment in &covered {
            self.top.remove(&fragment.start);
        }
        let mut under = 0;
        if !covered.is_empty() {
            self.arrays.push(covered);
            under = self.arrays.len() as u32;
        }
        self.top.insert(start, Fragment { start, end, under, ts });
    }
}

/// Writes the block of an sst's tombstones, oldest first.
pub(crate) fn encode(tombstones: &[Tombstone]) -> Vec<u8> {
    let mut bounds: Vec<&Bytes> = tombstones.iter().flat_map(|t| [&t.start, &t.end]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let number = |key: &Bytes| bounds.partition_point(|bound| *bound < key) as u32;
    let mut builder = Builder::default();
    for tombstone in tombstones {
        builder.insert(number(&tombstone.start), number(&tombstone.end), tombstone.ts);
    }
    // The top first, then the arrays from the youngest on: `under` always points onwards.
    let n_arrays = builder.arrays.len() as u32 + 1;
    let top: Vec<Fragment> = builder.top.into_values().collect();
    let arrays: Vec<Vec<Fragment>> =
        std::iter::once(top).chain(builder.arrays.into_iter().rev()).collect();
    let fragments: Vec<&Fragment> = arrays.iter().flatten().collect();
    let shared = match (bounds.first(), bounds.last()) {
        (Some(a), Some(b)) => a.iter().zip(b.iter()).take_while(|(x, y)| x == y).count(),
        _ => 0,
    };
    let mut out = Vec::new();
    for count in [bounds.len() as u32, fragments.len() as u32, n_arrays, shared as u32] {
        out.extend_from_slice(&count.to_le_bytes());
    }
    bounds.iter().for_each(|b| out.extend_from_slice(&head_of(&b[shared..]).to_le_bytes()));
    let mut end = 0u32;
    for bound in &bounds {
        end += bound.len() as u32;
        out.extend_from_slice(&end.to_le_bytes());
    }
    let mut first = 0u32;
    for array in &arrays {
        out.extend_from_slice(&first.to_le_bytes());
        first += array.len() as u32;
    }
    out.extend_from_slice(&first.to_le_bytes());
    fragments.iter().for_each(|f| out.extend_from_slice(&f.start.to_le_bytes()));
    fragments.iter().for_each(|f| out.extend_from_slice(&f.end.to_le_bytes()));
    for fragment in &fragments {
        let under = if fragment.under == 0 { 0 } else { n_arrays - fragment.under };
        out.extend_from_slice(&under.to_le_bytes());
    }
    fragments.iter().for_each(|f| out.extend_from_slice(&f.ts.to_le_bytes()));
    bounds.iter().for_each(|bound| out.extend_from_slice(bound));
    out
}

/// A tombstone block in memory. What leads from one place of the image to another is checked by
/// [`StoredSkyline::parse`]; the SAFETY notes refer to that.
pub(crate) struct StoredSkyline {
    image: Bytes,
    n_bounds: usize,
    n_fragments: usize,
    n_arrays: usize,
    shared: usize,
    /// Positions of columns.
    ends: usize,
    firsts: usize,
    starts: usize,
    keys: usize,
    /// All tombstones count as written at this timestamp; 0: each has its own.
    ts_override: u64,
    map: Option<TombstoneMap>,
}

/// Where a piece of the key line lies among the fragments of an array.
enum Place {
    /// In this fragment.
    Inside(usize),
    /// Between the end of one and the start of the next, as numbers of bounds.
    Gap(Option<u32>, Option<u32>),
}

impl Default for StoredSkyline {
    /// No tombstones.
    fn default() -> StoredSkyline {
        StoredSkyline {
            image: Bytes::new(),
            n_bounds: 0,
            n_fragments: 0,
            n_arrays: 0,
            shared: 0,
            ends: 0,
            firsts: 0,
            starts: 0,
            keys: 0,
            ts_override: 0,
            map: None,
        }
    }
}

impl StoredSkyline {
    /// Reads and checks an image.
    pub(crate) fn parse(image: Bytes) -> Result<StoredSkyline, &'static str> {
        if image.len() < HEADER {
            return Err("tombstone block header is cut off");
        }
        let [n_bounds, n_fragments, n_arrays, shared] =
            [0, 4, 8, 12].map(|at| le_u32(&image, at) as usize);
        let ends = HEADER + n_bounds * 8;
        let firsts = ends + n_bounds * 4;
        let starts = firsts + (n_arrays + 1) * 4;
        let keys = starts + n_fragments * 20;
        if keys > image.len() || n_arrays == 0 || n_bounds == 0 {
            return Err("tombstone block columns do not fit");
        }
        let ts_override = 0;
        let mut block = StoredSkyline {
            image,
            n_bounds,
            n_fragments,
            n_arrays,
            shared,
            ends,
            firsts,
            starts,
            keys,
            ts_override,
            map: None,
        };
        block.check_bounds()?;
        block.check_fragments()?;
        block.map = block.draw_map();
        Ok(block)
    }

    fn check_bounds(&self) -> Result<(), &'static str> {
        let mut last = 0;
        for i in 0..self.n_bounds {
            let end = self.number(self.ends, i);
            if end < last {
                return Err("tombstone bounds overlap");
            }
            last = end;
        }
        if self.keys + last as usize != self.image.len() {
            return Err("tombstone bounds have another length than they say");
        }
        let prefix = self.bound(0).get(..self.shared).ok_or("tombstone prefix is cut off")?;
        for i in 0..self.n_bounds {
            if i > 0 && self.bound(i - 1) >= self.bound(i) {
                return Err("tombstone bounds are not in order");
            }
            if self.bound(i).strip_prefix(prefix).map(head_of) != Some(self.head(i)) {
                return Err("a tombstone head is not that of its bound");
            }
        }
        Ok(())
    }

    fn check_fragments(&self) -> Result<(), &'static str> {
        if self.number(self.firsts, 0) != 0
            || self.number(self.firsts, self.n_arrays) as usize != self.n_fragments
        {
            return Err("tombstone arrays do not hold all fragments");
        }
        for array in 0..self.n_arrays {
            let (first, end) = (self.first(array), self.first(array + 1));
            if first > end || end > self.n_fragments {
                return Err("tombstone arrays overlap");
            }
            let mut last = 0;
            for i in first..end {
                let (from, to, under) = (self.start(i), self.end(i), self.under(i));
                if from < last || from >= to || to as usize >= self.n_bounds {
                    return Err("tombstone fragments are not in order");
                }
                // Onwards only: going down comes to an end.
                if under != 0 && (under <= array || under >= self.n_arrays) {
                    return Err("a tombstone fragment lies over itself");
                }
                last = to;
            }
        }
        Ok(())
    }

    /// The top array is over everything that lies in the others.
    fn draw_map(&self) -> Option<TombstoneMap> {
        let head = |bound: usize| Head::of(&self.bound(bound)[self.shared..]);
        let top = (0..self.first(1)).map(|i| Top {
            start: head(self.start(i) as usize),
            end: head(self.end(i) as usize),
            ts: self.ts(i),
        });
        let bounds = (head(0), head(self.n_bounds - 1));
        TombstoneMap::of(&self.bound(0)[..self.shared], self.n_bounds, bounds, top)
    }

    /// Brings what the first look of [`StoredSkyline::stab`] needs closer.
    #[inline]
    pub(crate) fn prefetch(&self, key: &[u8]) {
        if let Some(map) = &self.map {
            map.prefetch(key);
        }
    }

    /// If a tombstone may be over `key`, brings what tells which one closer.
    #[inline]
    pub(crate) fn prefetch_top(&self, key: &[u8]) {
        if let Some(map) = &self.map {
            map.prefetch_top(key);
        }
    }

    /// Where `key` (with `before`: the keys just below it) lies among the fragments of the top and
    /// the timestamp there (0: none), if there is a map and a read at `read_ts` need not look below
    /// the top.
    #[inline]
    fn top_at(&self, key: &[u8], read_ts: u64, before: bool) -> Option<(TopPlace, u64)> {
        let map = self.map.as_ref()?;
        let mut place = map.place_of(key, before);
        if let TopPlace::Tie(i) = place {
            place = self.beyond_tie(key, i, before);
        }
        let ts = match place {
            TopPlace::Under(_) if self.ts_override > 0 => self.ts_override,
            TopPlace::Under(i) => map.top(i).ts,
            TopPlace::Before(_) | TopPlace::Tie(_) => 0,
        };
        (ts <= read_ts).then_some((place, ts))
    }

    /// Up to where the answer for this place among the fragments of the top holds.
    fn until(&self, place: TopPlace, backward: bool) -> Option<Bytes> {
        let (top, at_start) = match place {
            TopPlace::Under(i) => (i, backward),
            TopPlace::Before(i) if backward => (i.checked_sub(1)?, false),
            TopPlace::Before(i) | TopPlace::Tie(i) => (i, true),
        };
        if top == self.first(1) {
            return None;
        }
        // What the map knows by heart need not be read from three columns.
        let known = self.map.as_ref().and_then(|map| {
            let Top { start, end, .. } = *map.top(top);
            map.bound(if at_start { start } else { end })
        });
        let bound = || self.bound_bytes(if at_start { self.start(top) } else { self.end(top) });
        Some(known.unwrap_or_else(bound))
    }

    /// The bounds decide where their heads do not: the place of a key behind the tops before `i`.
    fn beyond_tie(&self, key: &[u8], mut i: usize, before: bool) -> TopPlace {
        let behind = |bound: &[u8]| if before { key > bound } else { key >= bound };
        while i < self.first(1) && behind(self.bound(self.end(i) as usize)) {
            i += 1;
        }
        if i < self.first(1) && behind(self.bound(self.start(i) as usize)) {
            TopPlace::Under(i)
        } else {
            TopPlace::Before(i)
        }
    }

    /// As if all tombstones had been written at `ts`.
    pub(crate) fn override_ts(&mut self, ts: u64) {
        self.ts_override = ts;
    }

    #[inline]
    fn number(&self, column: usize, i: usize) -> u32 {
        // SAFETY: callers stay below the length of their column, which lies in the image (parse).
        unsafe { u32_at(&self.image, column + i * 4) }
    }

    fn head(&self, i: usize) -> u64 {
        debug_assert!(i < self.n_bounds);
        // SAFETY: `i < n_bounds`, and the columns lie in the image (parse).
        unsafe { u64_at(&self.image, HEADER + i * 8) }
    }

    fn first(&self, array: usize) -> usize {
        debug_assert!(array <= self.n_arrays);
        self.number(self.firsts, array) as usize
    }

    fn start(&self, i: usize) -> u32 {
        debug_assert!(i < self.n_fragments);
        self.number(self.starts, i)
    }

    fn end(&self, i: usize) -> u32 {
        debug_assert!(i < self.n_fragments);
        self.number(self.starts + self.n_fragments * 4, i)
    }

    fn under(&self, i: usize) -> usize {
        debug_assert!(i < self.n_fragments);
        self.number(self.starts + self.n_fragments * 8, i) as usize
    }

    fn ts(&self, i: usize) -> u64 {
        debug_assert!(i < self.n_fragments);
        if self.ts_override > 0 {
            return self.ts_override;
        }
        // SAFETY: `i < n_fragments`, and the columns lie in the image (parse).
        unsafe { u64_at(&self.image, self.starts + self.n_fragments * 12 + i * 8) }
    }

    fn bound_at(&self, i: usize) -> (usize, usize) {
        debug_assert!(i < self.n_bounds);
        let start = if i == 0 { 0 } else { self.number(self.ends, i - 1) as usize };
        (self.keys + start, self.keys + self.number(self.ends, i) as usize)
    }

    fn bound(&self, i: usize) -> &[u8] {
        let (start, end) = self.bound_at(i);
        // SAFETY: ends of bounds ascend, and the last one is the image's end (check_bounds).
        unsafe { slice_at(&self.image, start, end) }
    }

    /// A bound that shares the block's memory.
    fn bound_bytes(&self, i: u32) -> Bytes {
        let (start, end) = self.bound_at(i as usize);
        self.image.slice(start..end)
    }

    /// Number of bounds below `key`.
    fn bounds_below(&self, key: &[u8]) -> usize {
        if self.n_bounds == 0 {
            return 0;
        }
        let prefix = &self.bound(0)[..self.shared];
        let Some(rest) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { self.n_bounds };
        };
        let head = head_of(rest);
        let at = partition_point(self.n_bounds, |i| self.head(i) < head);
        if at == self.n_bounds || self.head(at) != head {
            return at;
        }
        let equal = partition_point(self.n_bounds - at, |i| self.head(at + i) == head);
        at + partition_point(equal, |i| self.bound(at + i) < key)
    }

    /// The piece of the key line that holds `key` (with `before`: the keys just below it), as the
    /// number of bounds up to it; 0: in front of the first bound.
    fn piece(&self, key: &[u8], before: bool) -> u32 {
        let below = self.bounds_below(key);
        let on_bound = !before && below < self.n_bounds && self.bound(below) == key;
        (below + usize::from(on_bound)) as u32
    }

    /// Finds a piece in an array. Piece p lies behind bound p - 1 and in front of bound p.
    fn locate(&self, array: usize, piece: u32) -> Place {
        let (first, end) = (self.first(array), self.first(array + 1));
        let after = first + partition_point(end - first, |i| self.start(first + i) < piece);
        let next = (after < end).then(|| self.start(after));
        match after.checked_sub(1).filter(|before| *before >= first) {
            Some(before) if self.end(before) >= piece => Place::Inside(before),
            before => Place::Gap(before.map(|before| self.end(before)), next),
        }
    }

    /// Timestamp of the newest tombstone over `key` with `ts <= read_ts`; 0 if there is none.
    pub(crate) fn stab(&self, key: &[u8], read_ts: u64) -> u64 {
        if self.n_fragments == 0 || self.map.as_ref().is_some_and(|map| !map.may_cover(key)) {
            return 0;
        }
        if let Some((_, ts)) = self.top_at(key, read_ts, false) {
            return ts;
        }
        let (piece, mut array) = (self.piece(key, false), 0);
        while let Place::Inside(i) = self.locate(array, piece) {
            if self.ts(i) <= read_ts {
                return self.ts(i);
            }
            array = self.under(i);
            if array == 0 {
                break;
            }
        }
        0
    }

    /// The fragment of the top that is over `key`. `finger`: one near to where a reader looked
    /// last, best the one behind.
    fn top_near(&self, key: &[u8], finger: usize) -> Option<usize> {
        const NEAR: usize = 3;
        let end_of = |at: usize| self.bound(self.end(at) as usize);
        let start_of = |at: usize| self.bound(self.start(at) as usize);
        if finger < self.first(1) {
            match compare(start_of(finger), key) {
                Ordering::Equal => return Some(finger),
                Ordering::Greater if finger == 0 || end_of(finger - 1) <= key => return None,
                Ordering::Greater => {}
                Ordering::Less => {
                    for at in finger..(finger + NEAR).min(self.first(1)) {
                        if key < end_of(at) {
                            return (start_of(at) <= key).then_some(at);
                        }
                    }
                }
            }
        }
        match self.top_at(key, u64::MAX, false) {
            Some((TopPlace::Under(at), _)) => Some(at),
            Some(_) => None,
            None => match self.locate(0, self.piece(key, false)) {
                Place::Inside(at) => Some(at),
                Place::Gap(..) => None,
            },
        }
    }

    /// If a visible tombstone is over `from`: follows those that touch it, to where the last of
    /// them ends. They are visible at `read_ts`, and newer than `newest_point`, the newest point of
    /// the file, or end at or in front of `own`, its next one (`None`: it has none left). The walk
    /// stops when it reaches `stop`. Adds to `passed` how many there were.
    ///
    /// Tombstones that touch share a bound: a step compares two numbers.
    pub(crate) fn run_from(
        &self,
        from: &[u8],
        (read_ts, newest_point): (u64, u64),
        (stop, own): (&[u8], Option<&[u8]>),
        finger: &mut usize,
        passed: &mut u64,
    ) -> Option<&[u8]> {
        if self.n_fragments == 0 {
            return None;
        }
        let mut at = self.top_near(from, *finger)?;
        let mut reached = None;
        let mut left = self.first(1) - at;
        // Bounds are compared one by one where there are few, and by number where there are many.
        let mut last = None;
        loop {
            *finger = at;
            let (ts, end) = (self.ts(at), self.end(at));
            let before = |key: &[u8]| compare(self.bound(end as usize), key).is_lt();
            let is_hidden = || own.is_none_or(|own| self.bound(end as usize) <= own);
            if ts > read_ts || ts <= newest_point && !is_hidden() {
                break;
            }
            *passed += 1;
            reached = Some(end);
            left -= 1;
            let ends = match last {
                Some(last) => end >= last,
                None => !before(stop),
            };
            if left > 0 {
                *finger = at + 1;
            }
            if ends || left == 0 || self.start(at + 1) != end {
                break;
            }
            at += 1;
            last.get_or_insert_with(|| self.bounds_below(stop) as u32);
        }
        reached.map(|end| self.bound(end as usize))
    }

    /// As [`StoredSkyline::stab`], with the span over which the answer holds. Forward: for `key`
    /// and the keys after it; backward: for the keys just below `key`.
    pub(crate) fn cover(&self, key: &[u8], read_ts: u64, backward: bool) -> Cover {
        if self.n_fragments == 0 {
            return Cover { ts: 0, until: None, clean: false };
        }
        if !backward && let Some(until) = self.map.as_ref().and_then(|map| map.free_until(key)) {
            return Cover { ts: 0, until, clean: false };
        }
        if let Some((place, ts)) = self.top_at(key, read_ts, backward) {
            return Cover { ts, until: self.until(place, backward), clean: false };
        }
        let piece = self.piece(key, backward);
        let mut until: Option<u32> = None;
        let mut narrow = |found: Option<u32>| {
            until = match (until, found) {
                (Some(a), Some(b)) => Some(if backward { a.max(b) } else { a.min(b) }),
                (a, b) => a.or(b),
            };
        };
        let mut array = 0;
        let ts = loop {
            match self.locate(array, piece) {
                Place::Gap(low, high) => {
                    narrow(if backward { low } else { high });
                    break 0;
                }
                Place::Inside(i) => {
                    narrow(Some(if backward { self.start(i) } else { self.end(i) }));
                    if self.ts(i) <= read_ts {
                        break self.ts(i);
                    }
                    array = self.under(i);
                    if array == 0 {
                        break 0;
                    }
                }
            }
        };
        Cover { ts, until: until.map(|bound| self.bound_bytes(bound)), clean: false }
    }

    /// Largest timestamp of a tombstone that shares a key with `[start, end)`; 0 if none.
    pub(crate) fn max_ts_in(&self, start: &[u8], end: &[u8]) -> u64 {
        if self.n_fragments == 0 || start >= end {
            return 0;
        }
        let (low, high) = (self.piece(start, false), self.piece(end, true));
        // Whatever lies under the top is not newer.
        let n = self.first(1);
        let first = partition_point(n, |i| self.end(i) < low);
        let touching = (first..n).take_while(|i| self.start(*i) < high);
        touching.map(|i| self.ts(i)).max().unwrap_or(0)
    }

    /// The tombstones, oldest first, put together again from their fragments.
    pub(crate) fn tombstones(&self) -> Vec<Tombstone> {
        let pieces = (0..self.n_fragments).map(|i| Tombstone {
            start: self.bound_bytes(self.start(i)),
            end: self.bound_bytes(self.end(i)),
            ts: self.ts(i),
        });
        coalesce(pieces.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range_tombstone::Skyline;
    use braid_env::random::Random;

    fn key(n: u64) -> Bytes {
        format!("long/prefix/{n:03}").into_bytes().into()
    }

    #[test]
    fn answers_as_the_skyline_of_a_memtable() {
        for seed in 0..80 {
            let mut random = Random::seeded(seed);
            let skyline = Skyline::default();
            let mut tombstones = Vec::new();
            for n in 0..random.between(1, 60) {
                let a = random.below(99);
                let b = a + 1 + random.below(if seed % 2 == 0 { 4 } else { 99 - a });
                let ts = n / 2 + 1;
                skyline.insert(&key(a), &key(b), ts, 0);
                tombstones.push(Tombstone { start: key(a), end: key(b), ts });
            }
            let stored = StoredSkyline::parse(encode(&tombstones).into()).unwrap();
            assert!(stored.n_fragments <= 3 * tombstones.len());
            for k in 0..=105 {
                for read_ts in [0, 1, 5, 17, 30, u64::MAX] {
                    let (key, max) = (key(k), u64::MAX);
                    assert_eq!(stored.stab(&key, read_ts), skyline.stab(&key, read_ts, max));
                    for backward in [false, true] {
                        let wanted = skyline.cover(&key, read_ts, max, backward);
                        let mut found = stored.cover(&key, read_ts, backward);
                        assert_eq!(found.ts, wanted.ts);
                        // The map may stop short of a tombstone, but gets there.
                        for _ in 0..2 {
                            let Some(until) = found.until.clone() else { break };
                            if found.ts > 0 || found.until == wanted.until || backward {
                                break;
                            }
                            assert!(
                                key < until && wanted.until.as_ref().is_some_and(|w| until < w)
                            );
                            found = stored.cover(&until, read_ts, backward);
                        }
                        assert_eq!((found.ts, &found.until), (wanted.ts, &wanted.until));
                    }
                }
                for end in [k, k + 1, k + 9] {
                    let newest = skyline.max_ts_in(&key(k), &key(end));
                    let wanted = if end > k { newest } else { 0 };
                    assert_eq!(stored.max_ts_in(&key(k), &key(end)), wanted, "seed {seed}");
                }
            }
            assert_eq!(stored.tombstones(), coalesce(tombstones), "seed {seed}");
        }
    }

    #[test]
    fn nested_tombstones_take_linear_space() {
        let nested: Vec<Tombstone> = (0..2_000)
            .map(|n| Tombstone { start: Bytes::from("a"), end: Bytes::from("z"), ts: n + 1 })
            .collect();
        let image = encode(&nested);
        assert!(image.len() < nested.len() * 40, "{} bytes", image.len());
        let stored = StoredSkyline::parse(image.into()).unwrap();
        assert_eq!(stored.stab(b"m", 77), 77);
    }
}
