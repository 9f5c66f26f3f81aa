//! A set of L0 ssts that grows into the inputs of a compaction.
//!
//! The set covers a range of intervals. Whoever takes an sst must take what it may not be parted
//! from: going down, everything older under it; staying in L0, everything newer over it. As each
//! sst that comes along may be wider, the set grows as a triangle:
//!
//! ```text
//!   down:   seed stack 1 2 3, then                within L0: the triangle stands on its tip
//!              |3|                                    \ 3   3 /
//!            / 2  2 \                                   \ 2 /
//!          / 1   1   1 \                                 |1|
//! ```

use std::sync::Arc;

use super::Sublevels;
use crate::key::KeySpan;
use crate::versions::SstMeta;

/// How large a compaction out of L0 may grow. It is done in units of narrow columns, so what counts
/// against a large one is only how much it keeps others from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Beyond this many bytes, a step may not multiply the size by more than 1.5.
    pub(crate) soft_bytes: u64,
    /// Beyond this many bytes it does not grow.
    pub(crate) hard_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { soft_bytes: 500 << 20, hard_bytes: 2 << 30 }
    }
}

impl Limits {
    /// Whether a set may grow from `before` to `after` bytes.
    pub(crate) fn allow(&self, before: u64, after: u64) -> bool {
        let jumps = after > self.soft_bytes && after > before.saturating_add(before / 2);
        after <= self.hard_bytes && !jumps
    }
}

/// What running jobs leave free.
pub(crate) struct Traffic<'a> {
    /// Whether an sst is an input of a running job.
    pub(crate) busy: &'a dyn Fn(&SstMeta) -> bool,
    /// Whether outputs in a span of a level would get in the way of a running job's.
    pub(crate) blocked: &'a dyn Fn(usize, &KeySpan) -> bool,
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Candidate {
    taken: Vec<bool>,
    /// Range of intervals.
    pub(crate) first: usize,
    pub(crate) end: usize,
    pub(crate) bytes: u64,
}

impl Candidate {
    pub(crate) fn new(l0: &Sublevels, seed: usize) -> Candidate {
        let placed = &l0.files()[seed];
        let mut taken = vec![false; l0.files().len()];
        taken[seed] = true;
        let (first, end) = (placed.first, placed.end);
        Candidate { taken, first, end, bytes: placed.sst.size }
    }

    pub(crate) fn has(&self, file: usize) -> bool {
        self.taken[file]
    }

    pub(crate) fn add(&mut self, l0: &Sublevels, file: usize) {
        if std::mem::replace(&mut self.taken[file], true) {
            return;
        }
        let placed = &l0.files()[file];
        self.first = self.first.min(placed.first);
        self.end = self.end.max(placed.end);
        self.bytes += placed.sst.size;
    }

    /// Adds what the set may not be parted from, sublevel by sublevel in the given order; ssts
    /// for which `skip` holds do not count. False if one of them is busy.
    pub(crate) fn close(
        &mut self,
        l0: &Sublevels,
        sublevels: impl Iterator<Item = usize>,
        traffic: &Traffic<'_>,
        skip: &dyn Fn(&SstMeta) -> bool,
    ) -> bool {
        for sublevel in sublevels {
            // The range grows only with the sublevels before this one.
            let (first, end) = (self.first, self.end);
            for interval in first..end {
                for file in l0.stack(interval) {
                    let placed = &l0.files()[*file];
                    if placed.sublevel != sublevel || self.taken[*file] || skip(&placed.sst) {
                        continue;
                    }
                    if (traffic.busy)(&placed.sst) {
                        return false;
                    }
                    self.add(l0, *file);
                }
            }
        }
        true
    }

    /// The keys it covers.
    pub(crate) fn span(&self, l0: &Sublevels) -> KeySpan {
        l0.span(self.first, self.end)
    }

    /// The ssts as runs, newest first.
    pub(crate) fn runs(&self, l0: &Sublevels) -> Vec<Vec<Arc<SstMeta>>> {
        let mut runs: Vec<Vec<Arc<SstMeta>>> = vec![Vec::new(); l0.depth()];
        for (file, placed) in l0.files().iter().enumerate() {
            if self.taken[file] {
                runs[placed.sublevel].push(placed.sst.clone());
            }
        }
        for run in &mut runs {
            run.sort_by(|a, b| a.bounds().start.cmp(&b.bounds().start));
        }
        runs.into_iter().rev().filter(|run| !run.is_empty()).collect()
    }
}
