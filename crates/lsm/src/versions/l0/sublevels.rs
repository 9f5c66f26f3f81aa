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
//! it, bottom to top. The stacks lie in one array, so that the next version's index is a
//! copy of this one: an sst that arrives later than all others is added to that without sorting or
//! searching anything again. Anything else builds the index anew.
//!
//! Order: by arrival. Two ssts of one arrival (outputs of one flush) are disjoint. A compaction
//! inside L0 makes ssts that lie where their newest input was.
//!
//! With `per_file` (the option `l0_sublevels = false`) each sst is a run of its own, as engines did
//! before sublevels; kept to compare with.

use std::sync::{Arc, OnceLock};

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

/// L0 of one version.
#[derive(Clone, Default)]
pub(crate) struct Sublevels {
    per_file: bool,
    /// In order of arrival.
    files: Vec<Placed>,
    /// Bounds of intervals: interval i is `[bounds[i], bounds[i + 1])`.
    bounds: Vec<Bytes>,
    /// Numbers of the ssts over interval 0, bottom to top, then those over interval 1, ...
    stacks: Vec<usize>,
    /// Where the stack of each interval ends.
    stack_ends: Vec<usize>,
    /// Estimated bytes in each interval, made when somebody asks: each sst spread evenly over its
    /// intervals.
    interval_bytes: OnceLock<Vec<u64>>,
    /// The ssts of each sublevel in key order, lowest sublevel first.
    runs: Vec<Arc<Vec<Arc<SstMeta>>>>,
}

/// More new ssts than this are not added one by one.
const MANY: usize = 16;

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
        if per_file {
            for sst in ssts {
                index.put(sst, index.runs.len(), (0, 0));
            }
            return index;
        }
        index.bounds = sorted_bounds(ssts.iter());
        // Sublevels of each interval that are taken.
        let mut heights = vec![0; index.bounds.len().saturating_sub(1)];
        let mut counts = vec![0; heights.len()];
        for sst in ssts {
            let first = index.bounds.partition_point(|bound| *bound < sst.bounds().start);
            let end = index.bounds.partition_point(|bound| *bound < sst.bounds().end).max(first);
            let sublevel = heights[first..end].iter().copied().max().unwrap_or(0);
            heights[first..end].fill(sublevel + 1);
            counts[first..end].iter_mut().for_each(|count| *count += 1);
            index.put(sst, sublevel, (first, end));
        }
        // Each stack gets its room; then the ssts come in order of arrival.
        let mut at = 0;
        for count in counts {
            index.stack_ends.push(at);
            at += count;
        }
        index.stacks = vec![0; at];
        for (number, placed) in index.files.iter().enumerate() {
            for end in &mut index.stack_ends[placed.first..placed.end] {
                index.stacks[*end] = number;
                *end += 1;
            }
        }
        index
    }

    /// Adds ssts that arrived after all others, disjoint from each other if of one arrival.
    /// `None` if they did not arrive later, or if they are so many that it does not pay.
    pub(crate) fn with_newer(&self, new: &[Arc<SstMeta>]) -> Option<Sublevels> {
        let mut new = new.to_vec();
        new.sort_by(by_arrival);
        let newest = self.files.last().map_or(0, |placed| placed.sst.arrival_high);
        if new.first().is_some_and(|sst| sst.arrival_high <= newest) && !self.files.is_empty() {
            return None;
        }
        if new.len() > MANY {
            return None;
        }
        let mut index = self.clone();
        for sst in new {
            index.add(sst);
        }
        Some(index)
    }

    /// Puts an sst on top.
    fn add(&mut self, sst: Arc<SstMeta>) {
        if self.per_file {
            self.put(sst, self.runs.len(), (0, 0));
            return;
        }
        self.interval_bytes = OnceLock::new();
        let first = self.cut_at(&sst.bounds().start);
        let end = self.cut_at(&sst.bounds().end);
        if end <= first {
            // Only a damaged manifest says that an sst is empty; the checker will find it.
            return self.put(sst, 0, (first, first));
        }
        let tops = (first..end).filter_map(|interval| self.stack(interval).last());
        let sublevel = tops.map(|file| self.files[*file].sublevel + 1).max().unwrap_or(0);
        // One more number at the end of each stack.
        let number = self.files.len();
        let from = self.stack_range(first).start;
        let until = self.stack_ends[end - 1];
        let mut stacks = Vec::with_capacity(until - from + end - first);
        for interval in first..end {
            stacks.extend_from_slice(self.stack(interval));
            stacks.push(number);
        }
        self.stacks.splice(from..until, stacks);
        for (i, stack_end) in self.stack_ends[first..].iter_mut().enumerate() {
            *stack_end += (i + 1).min(end - first);
        }
        self.put(sst, sublevel, (first, end));
    }

    /// Makes a key a bound of intervals; which one.
    fn cut_at(&mut self, key: &Bytes) -> usize {
        let at = self.bounds.partition_point(|bound| bound < key);
        if self.bounds.get(at) == Some(key) {
            return at;
        }
        self.bounds.insert(at, key.clone());
        let last = self.bounds.len() - 1;
        if at > 0 && at < last {
            // Both halves of an interval lie under the same ssts.
            let stack = self.stack_range(at - 1);
            let (end, len) = (stack.end, stack.len());
            let half = self.stacks[stack].to_vec();
            self.stacks.splice(end..end, half);
            self.stack_ends[at - 1..].iter_mut().for_each(|stack_end| *stack_end += len);
            self.stack_ends.insert(at - 1, end);
        } else if last > 0 {
            // A new interval before the first or behind the last one.
            let empty = if at == 0 { 0 } else { self.stacks.len() };
            self.stack_ends.insert(at.min(self.stack_ends.len()), empty);
        }
        for placed in &mut self.files {
            placed.first += usize::from(placed.first >= at);
            placed.end += usize::from(placed.end >= at);
        }
        at
    }

    /// Notes an sst that lies in `sublevel`, over these intervals.
    fn put(&mut self, sst: Arc<SstMeta>, sublevel: usize, (first, end): (usize, usize)) {
        if self.runs.len() <= sublevel {
            self.runs.resize_with(sublevel + 1, Arc::default);
        }
        let run = Arc::make_mut(&mut self.runs[sublevel]);
        let at = run.partition_point(|other| other.bounds().start < sst.bounds().start);
        run.insert(at, sst.clone());
        self.files.push(Placed { sst, sublevel, first, end });
    }

    fn stack_range(&self, interval: usize) -> std::ops::Range<usize> {
        let start = interval.checked_sub(1).map_or(0, |before| self.stack_ends[before]);
        start..self.stack_ends[interval]
    }

    /// Estimated bytes per interval.
    fn bytes_of_intervals(&self) -> &[u64] {
        self.interval_bytes.get_or_init(|| {
            let mut bytes = vec![0; self.stack_ends.len()];
            for placed in &self.files {
                let width = (placed.end - placed.first).max(1) as u64;
                for interval in &mut bytes[placed.first..placed.end] {
                    *interval += placed.sst.size / width;
                }
            }
            bytes
        })
    }

    /// The ssts that overlap a span, or might, oldest first.
    pub(crate) fn over(&self, span: &KeySpan) -> Vec<&Arc<SstMeta>> {
        if self.per_file {
            return self.files.iter().map(|placed| &placed.sst).collect();
        }
        let first = self.bounds.partition_point(|bound| *bound <= span.start).saturating_sub(1);
        let end = self.bounds.partition_point(|bound| *bound < span.end);
        let end = end.min(self.stack_ends.len()).max(first);
        let numbers = (first..end).flat_map(|interval| self.stack(interval));
        let mut numbers: Vec<usize> = numbers.copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|number| &self.files[number].sst).collect()
    }

    /// The runs, newest first.
    pub(crate) fn runs(&self) -> impl DoubleEndedIterator<Item = &[Arc<SstMeta>]> {
        self.runs.iter().rev().map(|run| run.as_slice())
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
        self.stack_ends.len()
    }

    /// Numbers of the ssts over an interval, bottom to top.
    pub(crate) fn stack(&self, interval: usize) -> &[usize] {
        &self.stacks[self.stack_range(interval)]
    }

    /// The keys from interval `first` up to, not including, interval `end`.
    pub(crate) fn span(&self, first: usize, end: usize) -> KeySpan {
        KeySpan { start: self.bounds[first].clone(), end: self.bounds[end].clone() }
    }

    /// The intervals with their estimated bytes, in key order.
    pub(crate) fn interval_bytes(&self) -> impl Iterator<Item = (&Bytes, &Bytes, u64)> {
        let pairs = self.bounds.windows(2).zip(self.bytes_of_intervals());
        pairs.map(|(pair, bytes)| (&pair[0], &pair[1], *bytes))
    }

    /// The most ssts over any key that are not `busy`: the depth that no running job will lower.
    pub(crate) fn free_depth(&self, busy: &dyn Fn(&SstMeta) -> bool) -> usize {
        if self.per_file {
            return self.files.iter().filter(|placed| !busy(&placed.sst)).count();
        }
        let free: Vec<bool> = self.files.iter().map(|placed| !busy(&placed.sst)).collect();
        let depth = |interval| self.stack(interval).iter().filter(|i| free[**i]).count();
        (0..self.interval_count()).map(depth).max().unwrap_or(0)
    }

    /// Where outputs of flushes are cut, so that they line up in columns of about `step` bytes
    /// per sublevel, and jobs in different columns do not meet.
    pub(crate) fn split_keys(&self, step: u64) -> Vec<Bytes> {
        let step = step.max(1).saturating_mul(self.runs.len() as u64);
        let mut keys = Vec::new();
        let mut sum = 0;
        for (i, bytes) in self.bytes_of_intervals().iter().enumerate() {
            if sum > step {
                keys.push(self.bounds[i].clone());
                sum = 0;
            }
            sum += bytes;
        }
        keys
    }

    /// What must hold of a layout; the text says what is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        for interval in 0..self.interval_count() {
            for pair in self.stack(interval).windows(2) {
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
            for sst in run.iter() {
                let (start, end) = (&sst.bounds().start, &sst.bounds().end);
                let (start, end) = (start.escape_ascii(), end.escape_ascii());
                let _ = write!(out, "  {start}--{}--{end}", sst.file_no);
            }
            out.push('\n');
        }
        out
    }
}
