//! A map of an sst's range tombstones: answers "which one is over this key?" without a search.
//!
//! Most keys are under no tombstone, but proving it by a search touches four or five cold cache
//! lines per sst, and finding the one that is over a key touches more. The map touches one for the
//! former, which can be asked for in advance, and two for the latter. It cuts the range of the
//! bounds' heads into equal cells, and has a bit for each that a tombstone touches; a word of 64
//! bits also knows the first tombstone that it can be about:
//!
//! ```text
//!   tops         0                1           2
//!   tombstones  [--)            [-------)   [-)
//!   cells       1 1 0 0 0 0 0 | 0 1 1 1 1 0 1 | 1 ...      word 0: first 0, word 1: first 1
//! ```
//!
//! It is made in time linear in the tombstones when the sst is opened, and takes about 30 bytes
//! per bound. It knows bounds by their heads only: where that does not decide, the caller searches,
//! as it would without a map. Where keys are spread very unevenly, a word is about many tombstones,
//! and the map searches among them.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::cache::prefetch;
use crate::sstable::{Prefix, head_of, partition_point};

/// Cells per bound.
const CELLS: usize = 32;
const MOST_CELLS: usize = 1 << 22;

/// See the module.
pub(crate) struct TombstoneMap {
    /// What all bounds begin with.
    prefix: Prefix,
    shift: u8,
    /// Head of the first bound.
    base: u64,
    words: Box<[Word]>,
    tops: Box<[Top]>,
}

/// 64 cells.
#[derive(Clone, Copy, Default)]
struct Word {
    cells: u64,
    /// The first top that ends in this word or behind it.
    first: u32,
}

/// A tombstone as seen from above.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Top {
    pub(crate) ts: u64,
    pub(crate) start: Head,
    pub(crate) end: Head,
}

/// The first eight bytes of a key behind the common prefix, zero padded, and how long the key is
/// there. If that is at most eight, they are the whole key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    bytes: u64,
    len: u8,
}

impl Head {
    /// The head of what a key has behind the common prefix.
    #[inline]
    pub(crate) fn of(rest: &[u8]) -> Head {
        Head { bytes: head_of(rest), len: rest.len().min(9) as u8 }
    }

    /// The order of the keys, if the heads tell: of whole keys, a shorter one comes first.
    #[inline]
    fn order(self, other: Head) -> Option<Ordering> {
        match self.bytes.cmp(&other.bytes) {
            Ordering::Equal if self.len.max(other.len) > 8 => None,
            Ordering::Equal => Some(self.len.cmp(&other.len)),
            order => Some(order),
        }
    }
}

/// Where a key lies among the tops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopPlace {
    /// Under this one.
    Under(usize),
    /// Under none, in front of this one, or behind all if there is none of this number.
    Before(usize),
    /// At a bound of this one, as far as heads tell, and behind those before it.
    Tie(usize),
}

impl TombstoneMap {
    /// A map of the tombstones seen from above, in order, given by the heads of their bounds
    /// behind the common prefix. `lowest` and `highest` are the heads of the first and the last of
    /// `n_bounds` bounds.
    pub(crate) fn of(
        prefix: &[u8],
        n_bounds: usize,
        (lowest, highest): (Head, Head),
        tops: impl Iterator<Item = Top>,
    ) -> Option<TombstoneMap> {
        let (lowest, highest) = (lowest.bytes, highest.bytes);
        let prefix = Prefix::of(prefix)?;
        let range = highest.checked_sub(lowest)?;
        let most = n_bounds.saturating_mul(CELLS).next_power_of_two().min(MOST_CELLS) as u64;
        let mut shift = 0u8;
        while range >> shift >= most {
            shift += 1;
        }
        let mut words = vec![Word::default(); (range >> shift) as usize / 64 + 1];
        let tops: Box<[Top]> = tops.collect();
        let mut unnumbered = 0;
        for (number, top) in tops.iter().enumerate() {
            // Keys with the head of the exclusive end may still lie in front of it.
            let cell = |head: u64| (head.saturating_sub(lowest) >> shift) as usize;
            let last = cell(top.end.bytes.min(highest));
            for at in cell(top.start.bytes)..=last {
                words[at / 64].cells |= 1 << (at % 64);
            }
            for word in &mut words[unnumbered.min(last / 64 + 1)..=last / 64] {
                word.first = number as u32;
            }
            unnumbered = unnumbered.max(last / 64 + 1);
        }
        words[unnumbered..].iter_mut().for_each(|word| word.first = tops.len() as u32);
        Some(TombstoneMap { prefix, shift, base: lowest, words: words.into(), tops })
            .filter(|map| map.tops.len() < u32::MAX as usize)
    }

    /// The number of the word and the bit of a head's cell; `None` if it is outside of all bounds.
    #[inline]
    fn cell_at(&self, head: u64) -> Option<(usize, u64)> {
        let cell = head.checked_sub(self.base)? >> self.shift;
        let word = (cell / 64) as usize;
        (word < self.words.len()).then_some((word, cell % 64))
    }

    /// As `cell_at`, of a key.
    #[inline]
    fn cell_of(&self, key: &[u8]) -> Option<(usize, u64)> {
        self.cell_at(head_of(self.prefix.strip(key)?))
    }

    /// Whether a tombstone may be over `key`.
    #[inline]
    pub(crate) fn may_cover(&self, key: &[u8]) -> bool {
        self.cell_of(key).is_some_and(|(word, bit)| self.words[word].cells >> bit & 1 != 0)
    }

    /// The tombstone over `key` (with `before`: over the keys just below it), or where it lies
    /// between them.
    #[inline]
    pub(crate) fn place_of(&self, key: &[u8], before: bool) -> TopPlace {
        let Some(rest) = self.prefix.strip(key) else {
            return TopPlace::Before(if key < self.prefix.bytes() { 0 } else { self.tops.len() });
        };
        let head = Head::of(rest);
        let Some((word, _)) = self.cell_at(head.bytes) else {
            let in_front = head.bytes < self.base;
            return TopPlace::Before(if in_front { 0 } else { self.tops.len() });
        };
        let first = self.words[word].first as usize;
        // The next word's first may begin in this one, but none behind it does.
        let last = self.words.get(word + 1).map_or(self.tops.len(), |next| next.first as usize + 1);
        let some = &self.tops[first..last.min(self.tops.len())];
        let mut at = first + partition_point(some.len(), |i| some[i].end.bytes < head.bytes);
        // Just below a bound is not behind it.
        let least = if before { Ordering::Greater } else { Ordering::Equal };
        while let Some(top) = self.tops.get(at) {
            match head.order(top.end) {
                None => return TopPlace::Tie(at),
                Some(order) if order >= least => at += 1,
                Some(_) => {
                    return match head.order(top.start) {
                        None => TopPlace::Tie(at),
                        Some(order) if order >= least => TopPlace::Under(at),
                        Some(_) => TopPlace::Before(at),
                    };
                }
            }
        }
        TopPlace::Before(at)
    }

    /// A bound, if it is as short as a head.
    #[inline]
    pub(crate) fn bound(&self, head: Head) -> Option<Bytes> {
        let bytes = head.bytes.to_be_bytes();
        let own = bytes.get(..usize::from(head.len))?;
        Some([self.prefix.bytes(), own].concat().into())
    }

    /// A tombstone seen from above.
    #[inline]
    pub(crate) fn top(&self, number: usize) -> &Top {
        &self.tops[number]
    }

    /// If there is certainly no tombstone over `key`: up to where there is none. `None` inside: to
    /// the end of the key space.
    ///
    /// The boundary is the least key of the next cell with a bit: a head without the zeros at its
    /// end, as a key that is shorter than a head counts as filled up with zeros.
    #[inline]
    pub(crate) fn free_until(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let (mut word, bit) = self.cell_of(key)?;
        let mut bits = self.words[word].cells >> bit << bit;
        if bits >> bit & 1 != 0 {
            return None;
        }
        while bits == 0 {
            word += 1;
            match self.words.get(word) {
                Some(next) => bits = next.cells,
                None => return Some(None),
            }
        }
        let next = word as u64 * 64 + u64::from(bits.trailing_zeros());
        let head = (self.base + (next << self.shift)).to_be_bytes();
        let len = head.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        Some(Some([self.prefix.bytes(), &head[..len]].concat().into()))
    }

    /// Brings what [`TombstoneMap::may_cover`] will look at closer.
    #[inline]
    pub(crate) fn prefetch(&self, key: &[u8]) {
        if let Some((word, _)) = self.cell_of(key) {
            prefetch(&raw const self.words[word]);
        }
    }

    /// If a tombstone may be over `key`, brings what [`TombstoneMap::place_of`] will look at
    /// closer.
    #[inline]
    pub(crate) fn prefetch_top(&self, key: &[u8]) {
        if let Some((word, bit)) = self.cell_of(key)
            && self.words[word].cells >> bit & 1 != 0
        {
            prefetch(self.tops.as_ptr().wrapping_add(self.words[word].first as usize));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(head: u64) -> Vec<u8> {
        [b"table/".as_slice(), &head.to_be_bytes(), b"rest"].concat()
    }

    fn head(bytes: u64) -> Head {
        Head { bytes, len: 9 }
    }

    fn top(start: u64, end: u64, ts: u64) -> Top {
        Top { start: head(start), end: head(end), ts }
    }

    fn map(tops: &[Top]) -> TombstoneMap {
        let bounds = (tops[0].start, tops[tops.len() - 1].end);
        TombstoneMap::of(b"table/", 2 * tops.len(), bounds, tops.iter().copied()).unwrap()
    }

    #[test]
    fn few_free_keys_look_covered() {
        // A hundredth of the keys is covered, by 1,000 tombstones.
        let tops: Vec<Top> =
            (0..1_000u64).map(|i| top(i << 40, (i << 40) + (1 << 33), i)).collect();
        let map = map(&tops);
        let (mut wrong, mut free) = (0, 0);
        for i in 0..100_000u64 {
            let head = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % tops[999].end.bytes;
            let covered = tops.iter().any(|top| top.start.bytes <= head && head < top.end.bytes);
            assert!(!covered || map.may_cover(&key(head)));
            wrong += u64::from(!covered && map.may_cover(&key(head)));
            let until = map.free_until(&key(head));
            assert_eq!(until.is_none(), map.may_cover(&key(head)));
            if let Some(Some(until)) = until {
                let next = head.div_ceil(1 << 40) << 40;
                assert!(key(head) < until && until <= key(next), "{head} {until:?}");
                free += 1;
            }
        }
        assert!(free > 90_000, "{free}");
        assert!(wrong < 5_000, "{wrong} of 100,000 keys look covered");
        assert!(!map.may_cover(b"table") && !map.may_cover(b"tablf/x"));
        assert!(TombstoneMap::of(&[7; 32], 2, (head(0), head(1)), std::iter::empty()).is_none());
    }

    #[test]
    fn the_place_of_a_key_is_what_a_search_finds() {
        for (gap, width) in [(1u64, 1u64), (3, 2), (1_000, 10), (10, 1_000), (1 << 30, 1 << 20)] {
            // Some touch their neighbour; some are far away from the others.
            let mut tops = Vec::new();
            let mut at = 77;
            for i in 0..500 {
                at += if i % 3 == 0 { 0 } else { gap * (i % 7) } + u64::from(i == 250) * (1 << 40);
                tops.push(top(at, at + width, 1_000 - i));
                at += width;
            }
            let map = map(&tops);
            let ends = tops
                .iter()
                .flat_map(|top| [top.start.bytes, top.end.bytes, top.start.bytes + width / 2]);
            let heads: Vec<u64> = ends.flat_map(|head| [head - 1, head, head + 1]).collect();
            for head in heads {
                let place = map.place_of(&key(head), false);
                let on_bound =
                    tops.iter().any(|top| top.start.bytes == head || top.end.bytes == head);
                let tie = matches!(place, TopPlace::Tie(_));
                assert_eq!(on_bound, tie, "a head does not decide at a bound");
                let after = tops.partition_point(|top| top.end.bytes <= head);
                let inside = after < tops.len() && tops[after].start.bytes <= head;
                let expected =
                    if inside { TopPlace::Under(after) } else { TopPlace::Before(after) };
                if let TopPlace::Tie(top) = place {
                    assert_eq!(top, tops.partition_point(|top| top.end.bytes < head));
                } else {
                    assert_eq!(place, expected, "{head} in tombstones of {width}");
                }
                assert!(!inside || map.may_cover(&key(head)));
            }
        }
    }
}
