//! A coarse map of an sst's range tombstones: "is there certainly none over this key?"
//!
//! Most keys are under no tombstone, but proving it by a search touches four or five cold cache
//! lines per sst. The map touches one, and that one can be asked for in advance. It cuts the range
//! of the bounds' heads into equal cells, and has a bit for each that a tombstone touches:
//!
//! ```text
//!   tombstones       [--)            [-------)   [-)
//!   cells       0 0 0 1 1 0 0 0 0 0 0 1 1 1 1 0 0 1 1
//! ```
//!
//! It is made in time linear in the tombstones when the sst is opened, and takes about four bytes
//! per bound. Where keys are spread very unevenly, more cells have a bit than need one; then the
//! search decides, as it would without a map.

use bytes::Bytes;

use crate::cache::prefetch;
use crate::sstable::head_of;

/// Cells per bound.
const CELLS: usize = 32;
const MOST_CELLS: usize = 1 << 22;
/// Longest common prefix of all bounds; with a longer one there is no map.
const MOST_PREFIX: usize = 24;

/// See the module.
pub(crate) struct TombstoneMap {
    /// What all bounds begin with.
    prefix: [u8; MOST_PREFIX],
    prefix_len: u8,
    shift: u8,
    /// Head of the first bound.
    base: u64,
    cells: Box<[u64]>,
}

impl TombstoneMap {
    /// A map of tombstones, given by the heads of their bounds behind the common prefix. `lowest`
    /// and `highest` are the heads of the first and the last of `n_bounds` bounds.
    pub(crate) fn of(
        prefix: &[u8],
        n_bounds: usize,
        (lowest, highest): (u64, u64),
        tombstones: impl Iterator<Item = (u64, u64)>,
    ) -> Option<TombstoneMap> {
        let mut own = [0; MOST_PREFIX];
        own.get_mut(..prefix.len())?.copy_from_slice(prefix);
        let range = highest.checked_sub(lowest)?;
        let most = n_bounds.saturating_mul(CELLS).next_power_of_two().min(MOST_CELLS) as u64;
        let mut shift = 0u8;
        while range >> shift >= most {
            shift += 1;
        }
        let mut cells = vec![0u64; (range >> shift) as usize / 64 + 1];
        for (start, end) in tombstones {
            // Keys with the head of the exclusive end may still lie in front of it.
            let cell = |head: u64| (head.saturating_sub(lowest) >> shift) as usize;
            for at in cell(start)..=cell(end.min(highest)) {
                cells[at / 64] |= 1 << (at % 64);
            }
        }
        let (prefix_len, cells) = (prefix.len() as u8, cells.into());
        Some(TombstoneMap { prefix: own, prefix_len, shift, base: lowest, cells })
    }

    /// What all bounds begin with.
    fn prefix(&self) -> &[u8] {
        &self.prefix[..usize::from(self.prefix_len)]
    }

    /// The number of the word and the bit of a key's cell; `None` if it is outside of all bounds.
    #[inline]
    fn cell_of(&self, key: &[u8]) -> Option<(usize, u64)> {
        let rest = key.strip_prefix(self.prefix())?;
        let cell = head_of(rest).checked_sub(self.base)? >> self.shift;
        let word = (cell / 64) as usize;
        (word < self.cells.len()).then_some((word, cell % 64))
    }

    /// Whether a tombstone may be over `key`.
    #[inline]
    pub(crate) fn may_cover(&self, key: &[u8]) -> bool {
        self.cell_of(key).is_some_and(|(word, bit)| self.cells[word] >> bit & 1 != 0)
    }

    /// If there is certainly no tombstone over `key`: up to where there is none. `None` inside: to
    /// the end of the key space.
    ///
    /// The boundary is the least key of the next cell with a bit: a head without the zeros at its
    /// end, as a key that is shorter than a head counts as filled up with zeros.
    #[inline]
    pub(crate) fn free_until(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let (mut word, bit) = self.cell_of(key)?;
        let mut bits = self.cells[word] >> bit << bit;
        if bits >> bit & 1 != 0 {
            return None;
        }
        while bits == 0 {
            word += 1;
            match self.cells.get(word) {
                Some(next) => bits = *next,
                None => return Some(None),
            }
        }
        let next = word as u64 * 64 + u64::from(bits.trailing_zeros());
        let head = (self.base + (next << self.shift)).to_be_bytes();
        let len = head.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        Some(Some([self.prefix(), &head[..len]].concat().into()))
    }

    /// Brings what [`TombstoneMap::may_cover`] will look at closer.
    #[inline]
    pub(crate) fn prefetch(&self, key: &[u8]) {
        if let Some((word, _)) = self.cell_of(key) {
            prefetch(&raw const self.cells[word]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_free_keys_look_covered() {
        // A hundredth of the keys is covered, by 1,000 tombstones.
        let tombstones = || (0..1_000u64).map(|i| (i << 40, (i << 40) + (1 << 33)));
        let bounds = (0, (999 << 40) + (1 << 33));
        let map = TombstoneMap::of(b"table/", 2_000, bounds, tombstones()).unwrap();
        let key = |head: u64| [b"table/".as_slice(), &head.to_be_bytes(), b"rest"].concat();
        let (mut wrong, mut free) = (0, 0);
        for i in 0..100_000u64 {
            let head = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % bounds.1;
            let covered = tombstones().any(|(start, end)| start <= head && head < end);
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
        assert!(TombstoneMap::of(&[7; 25], 2, (0, 1), std::iter::empty()).is_none());
    }
}
