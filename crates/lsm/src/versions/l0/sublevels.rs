//! Sublevels: overlapping ssts, laid out as few runs as their overlaps allow.
//!
//! An sst lies one sublevel above the highest older sst that it overlaps. So sublevel 0 is what
//! may go down first, a read looks into one sst per sublevel, and narrow ssts cost nothing where
//! they are not:
//!
//! ```text
//!   arrival 4 3 2 1        L0.2        c--4--f
//!                          L0.1  a-2-b    d-----3-----k
//!                          L0.0  a---------1-------h    l-2-n
//!   intervals                    a   b c  d  f     h  k l   n
//! ```
//!
//! The key line is cut into *intervals* at all bounds of ssts. Each interval knows the ssts over
//! it, bottom to top. An sst that arrives later than all others is added in time linear in the
//! index, without sorting anything again; anything else builds the index anew.
//!
//! Order: by arrival. Two ssts of one arrival (outputs of one flush) are disjoint. A compaction
//! inside L0 makes ssts that lie where their newest input was.
//!
//! With `per_file` (the option `l0_sublevels = false`) each sst is a run of its own, as engines did
//! before sublevels; kept to compare with.

use std::sync::Arc;

use bytes::Bytes;

use crate::key::KeySpan;
use crate::versions::SstMeta;

/// An sst with its place.
#[derive(Clone)]
pub(crate) struct Placed {
    pub(crate) sst: Arc<SstMeta>,
    pub(crate) sublevel: usize,
    /// First interval of the sst.
    pub(crate) first: usize,
    /// The interval after its last.
    pub(crate) end: usize,
}

/// A piece of the key line between two neighbouring bounds.
#[derive(Clone, Default)]
struct Interval {
    /// Numbers of the ssts over it, bottom to top.
    files: Vec<usize>,
    /// Estimated bytes in it: each sst spread evenly over its intervals.
    bytes: u64,
}

/// L0 of one version.
#[derive(Clone, Default)]
pub(crate) struct Sublevels {
    per_file: bool,
    /// In order of arrival.
    files: Vec<Placed>,
    /// Bounds of intervals: interval i is `[bounds[i], bounds[i + 1])`.
    bounds: Vec<Bytes>,
    intervals: Vec<Interval>,
    /// The ssts of each sublevel in key order, lowest sublevel first.
    runs: Vec<Vec<Arc<SstMeta>>>,
}

fn by_arrival(a: &Arc<SstMeta>, b: &Arc<SstMeta>) -> std::cmp::Ordering {
    a.arrival_high.cmp(&b.arrival_high).then_with(|| a.bounds().start.cmp(&b.bounds().start))
}

fn sorted_bounds<'a>(ssts: impl Iterator<Item = &'a Arc<SstMeta>>) -> Vec<Bytes> {
    let mut bounds: Vec<Bytes> =
        ssts.flat_map(|sst| [sst.bounds().start.clone(), sst.bounds().end.clone()]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    bounds
}

impl Sublevels {
    /// Lays out `ssts`, given in any order.
    pub(crate) fn build(mut ssts: Vec<Arc<SstMeta>>, per_file: bool) -> Sublevels {
        ssts.sort_by(by_arrival);
        let mut index = Sublevels { per_file, ..Sublevels::default() };
        if !per_file {
            index.bounds = sorted_bounds(ssts.iter());
            index.intervals = vec![Interval::default(); index.bounds.len().saturating_sub(1)];
        }
        for sst in ssts {
            index.place(sst);
        }
        index.spread_bytes();
        index
    }

    /// Adds ssts that arrived after all others, disjoint from each other if of one arrival.
    /// `None` if they did not arrive later.
    pub(crate) fn with_newer(&self, new: &[Arc<SstMeta>]) -> Option<Sublevels> {
        let mut new = new.to_vec();
        new.sort_by(by_arrival);
        let newest = self.files.last().map_or(0, |placed| placed.sst.arrival_high);
        if new.first().is_some_and(|sst| sst.arrival_high <= newest) && !self.files.is_empty() {
            return None;
        }
        let mut index = self.clone();
        if !self.per_file {
            index.refine(sorted_bounds(new.iter()));
        }
        for sst in new {
            index.place(sst);
        }
        index.spread_bytes();
        Some(index)
    }

    /// Cuts intervals at more bounds.
    fn refine(&mut self, new: Vec<Bytes>) {
        let mut bounds = Vec::with_capacity(self.bounds.len() + new.len());
        bounds.extend(self.bounds.iter().cloned());
        bounds.extend(new);
        bounds.sort_unstable();
        bounds.dedup();
        // Where each old bound is now; both lists ascend.
        let mut moved = Vec::with_capacity(self.bounds.len());
        let mut at = 0;
        for bound in &self.bounds {
            at += bounds[at..].partition_point(|new| new < bound);
            moved.push(at);
        }
        let mut intervals = vec![Interval::default(); bounds.len().saturating_sub(1)];
        for (old, interval) in self.intervals.iter().enumerate() {
            for new in &mut intervals[moved[old]..moved[old + 1]] {
                new.files.clone_from(&interval.files);
            }
        }
        for placed in &mut self.files {
            placed.first = moved[placed.first];
            placed.end = moved[placed.end];
        }
        self.bounds = bounds;
        self.intervals = intervals;
    }

    /// Puts an sst on top. Its bounds are bounds of intervals already.
    fn place(&mut self, sst: Arc<SstMeta>) {
        if self.per_file {
            let sublevel = self.runs.len();
            self.runs.push(vec![sst.clone()]);
            self.files.push(Placed { sst, sublevel, first: 0, end: 0 });
            return;
        }
        let number = self.files.len();
        let first = self.bounds.partition_point(|bound| *bound < sst.bounds().start);
        let end = self.bounds.partition_point(|bound| *bound < sst.bounds().end);
        let below = self.intervals[first..end].iter().filter_map(|interval| interval.files.last());
        let sublevel = below.map(|file| self.files[*file].sublevel + 1).max().unwrap_or(0);
        for interval in &mut self.intervals[first..end] {
            interval.files.push(number);
        }
        if self.runs.len() <= sublevel {
            self.runs.resize_with(sublevel + 1, Vec::new);
        }
        let run = &mut self.runs[sublevel];
        let at = run.partition_point(|other| other.bounds().start < sst.bounds().start);
        run.insert(at, sst.clone());
        self.files.push(Placed { sst, sublevel, first, end });
    }

    fn spread_bytes(&mut self) {
        for interval in &mut self.intervals {
            interval.bytes = 0;
        }
        for placed in &self.files {
            let width = (placed.end - placed.first).max(1) as u64;
            for interval in &mut self.intervals[placed.first..placed.end] {
                interval.bytes += placed.sst.size / width;
            }
        }
    }

    /// The runs, newest first.
    pub(crate) fn runs(&self) -> impl DoubleEndedIterator<Item = &[Arc<SstMeta>]> {
        self.runs.iter().rev().map(Vec::as_slice)
    }

    /// Number of runs: what L0 adds to the cost of a read.
    pub(crate) fn depth(&self) -> usize {
        self.runs.len()
    }

    /// Whether each sst is a run of its own.
    pub(crate) fn per_file(&self) -> bool {
        self.per_file
    }

    /// All ssts, in order of arrival.
    pub(crate) fn files(&self) -> &[Placed] {
        &self.files
    }

    /// Number of intervals.
    pub(crate) fn interval_count(&self) -> usize {
        self.intervals.len()
    }

    /// Numbers of the ssts over an interval, bottom to top.
    pub(crate) fn stack(&self, interval: usize) -> &[usize] {
        &self.intervals[interval].files
    }

    /// The keys from interval `first` up to, not including, interval `end`.
    pub(crate) fn span(&self, first: usize, end: usize) -> KeySpan {
        KeySpan { start: self.bounds[first].clone(), end: self.bounds[end].clone() }
    }

    /// The intervals with their estimated bytes, in key order.
    pub(crate) fn interval_bytes(&self) -> impl Iterator<Item = (&Bytes, &Bytes, u64)> {
        let pairs = self.bounds.windows(2).zip(&self.intervals);
        pairs.map(|(pair, interval)| (&pair[0], &pair[1], interval.bytes))
    }

    /// The most ssts over any key that are not `busy`: the depth that no running job will lower.
    pub(crate) fn free_depth(&self, busy: &dyn Fn(&SstMeta) -> bool) -> usize {
        if self.per_file {
            return self.files.iter().filter(|placed| !busy(&placed.sst)).count();
        }
        let free: Vec<bool> = self.files.iter().map(|placed| !busy(&placed.sst)).collect();
        let depth = |interval: &Interval| interval.files.iter().filter(|i| free[**i]).count();
        self.intervals.iter().map(depth).max().unwrap_or(0)
    }

    /// Where outputs of flushes are cut, so that they line up in columns of about `step` bytes
    /// per sublevel, and jobs in different columns do not meet.
    pub(crate) fn split_keys(&self, step: u64) -> Vec<Bytes> {
        let step = step.max(1).saturating_mul(self.runs.len() as u64);
        let mut keys = Vec::new();
        let mut sum = 0;
        for (i, interval) in self.intervals.iter().enumerate() {
            if sum > step {
                keys.push(self.bounds[i].clone());
                sum = 0;
            }
            sum += interval.bytes;
        }
        keys
    }

    /// What must hold of a layout; the text says what is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        for interval in &self.intervals {
            for pair in interval.files.windows(2) {
                let (lower, upper) = (&self.files[pair[0]], &self.files[pair[1]]);
                if lower.sublevel >= upper.sublevel
                    || lower.sst.arrival_high >= upper.sst.arrival_high
                {
                    return Err(format!(
                        "I3: L0 sst {} lies above {} but did not arrive later",
                        upper.sst.file_no, lower.sst.file_no
                    ));
                }
            }
        }
        Ok(())
    }

    /// One line per sublevel, the highest first.
    #[cfg(test)]
    pub(crate) fn drawing(&self) -> String {
        use std::fmt::Write;
        let mut out = String::new();
        for (sublevel, run) in self.runs.iter().enumerate().rev() {
            let _ = write!(out, "L0.{sublevel}");
            for sst in run {
                let (start, end) = (&sst.bounds().start, &sst.bounds().end);
                let (start, end) = (start.escape_ascii(), end.escape_ascii());
                let _ = write!(out, "  {start}--{}--{end}", sst.file_no);
            }
            out.push('\n');
        }
        out
    }
}
