//! Where one output of a flush or compaction ends and the next begins.
//!
//! ```text
//!   outputs of a flush     |--a--|---b---|     c      |--d--|
//!   split keys                   ^       ^                     columns of L0: always cut here
//!   base level             |--------|-------||-----|------|    a wide gap holds whole ssts: cut
//! ```
//!
//! 1. *Split keys* (flushes and compactions within L0): jobs in different columns do not meet.
//! 2. *Gaps* (the same): where two neighbouring keys have many bytes of the store between them, an
//!    output over both would be a wide sst that everything in between has to lie on.
//! 3. *Grandparents*, the ssts of the level below the output: a bound of theirs is a good place to
//!    cut from half the target size on, the sooner the more bounds were passed (an idea of
//!    RocksDB); an output never overlaps more than ten times its target of them.
//! 4. Size: the target, or half as much again while waiting for a good place.

use bytes::Bytes;

use crate::options::Options;
use crate::versions::{SstMeta, Version};

/// Sized pieces of the key line, disjoint and in order, passed from left to right.
#[derive(Default, Clone)]
struct Pieces {
    list: Vec<(Bytes, Bytes, u64)>,
    at: usize,
}

impl Pieces {
    fn of_ssts<'a>(ssts: impl Iterator<Item = &'a std::sync::Arc<SstMeta>>) -> Pieces {
        let piece = |sst: &std::sync::Arc<SstMeta>| {
            (sst.bounds().start.clone(), sst.bounds().end.clone(), sst.size)
        };
        Pieces { list: ssts.map(piece).collect(), at: 0 }
    }

    /// Moves on to `key`. Returns how many ends were passed, the bytes of the pieces left behind,
    /// and the bytes of those of them that begin after `last` (all of them if there is none).
    fn pass(&mut self, last: Option<&[u8]>, key: &[u8]) -> (usize, u64, u64) {
        let (mut ends, mut bytes, mut inside) = (0, 0, 0);
        while let Some((start, _, size)) = self.list.get(self.at).filter(|p| p.1.as_ref() <= key) {
            ends += 1;
            bytes += size;
            if last.is_none_or(|last| start.as_ref() > last) {
                inside += size;
            }
            self.at += 1;
        }
        (ends, bytes, inside)
    }
}

/// Decides, key by key in ascending order. See the module.
#[derive(Default, Clone)]
pub(crate) struct OutputCuts {
    target: u64,
    splits: Vec<Bytes>,
    next_split: usize,
    /// Bytes between two keys that make a gap; 0: gaps do not matter.
    gap: u64,
    l0: Pieces,
    grandparents: Pieces,
    has_grandparents: bool,
    /// Since the current output began.
    bounds_passed: usize,
    overlap: u64,
}

/// Ends of grandparents count for this much of an output's overlap, in targets.
const MAX_OVERLAP: u64 = 10;

impl OutputCuts {
    /// By size only.
    pub(crate) fn by_size(target: u64) -> OutputCuts {
        OutputCuts { target: target.max(1), ..OutputCuts::default() }
    }

    /// For ssts that stay in L0 of `version`, over the base level `base`.
    pub(crate) fn for_l0(version: &Version, base: usize, options: &Options) -> OutputCuts {
        if !options.l0_sublevels {
            return OutputCuts::by_size(u64::MAX);
        }
        let l0 = version.l0();
        let pieces =
            l0.interval_bytes().map(|(start, end, bytes)| (start.clone(), end.clone(), bytes));
        OutputCuts {
            target: (options.target_sst_size.min(options.flush_split_bytes) / 2).max(1),
            splits: l0.split_keys(options.flush_split_bytes),
            gap: options.flush_split_bytes.max(1),
            l0: Pieces { list: pieces.collect(), at: 0 },
            grandparents: Pieces::of_ssts(version.level(base).iter()),
            has_grandparents: !version.level(base).is_empty(),
            ..OutputCuts::default()
        }
    }

    /// For outputs of `target` bytes above `grandparents`, which are in key order.
    pub(crate) fn above<'a>(
        target: u64,
        grandparents: impl Iterator<Item = &'a std::sync::Arc<SstMeta>>,
    ) -> OutputCuts {
        let grandparents = Pieces::of_ssts(grandparents);
        let has_grandparents = !grandparents.list.is_empty();
        OutputCuts { target: target.max(1), grandparents, has_grandparents, ..Default::default() }
    }

    /// The next split key up to `key` (`None`: the next of all), which is then passed: whatever
    /// is being written ends there.
    pub(crate) fn split_before(&mut self, key: Option<&[u8]>) -> Option<Bytes> {
        let split = self.splits.get(self.next_split)?;
        if key.is_some_and(|key| split.as_ref() > key) {
            return None;
        }
        self.next_split += 1;
        Some(split.clone())
    }

    /// Whether the output of `size` bytes whose last key is `last` ends in front of `key`; with no
    /// output open, only moves on.
    pub(crate) fn ends_before(&mut self, output: Option<(&[u8], u64)>, key: &[u8]) -> bool {
        let last = output.map(|(last, _)| last);
        let (bounds, overlap, mut between) = self.grandparents.pass(last, key);
        if self.gap > 0 {
            between += self.l0.pass(last, key).2;
        }
        self.bounds_passed += bounds;
        self.overlap += overlap;
        let Some((_, size)) = output else {
            self.begin();
            return false;
        };
        let good_place = bounds > 0 && {
            let percent = 50 + (self.bounds_passed as u64 * 5).min(40);
            size >= self.target / 100 * percent
        };
        let limit =
            if self.has_grandparents { self.target.saturating_mul(3) / 2 } else { self.target };
        let ends = good_place
            || size >= limit
            || (self.gap > 0 && between >= self.gap)
            || self.overlap >= self.target.saturating_mul(MAX_OVERLAP);
        if ends {
            self.begin();
        }
        ends
    }

    /// Another output begins.
    pub(crate) fn begin(&mut self) {
        self.bounds_passed = 0;
        self.overlap = 0;
    }
}
