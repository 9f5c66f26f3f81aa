//! What goes from L0 down to the base level.
//!
//! 1. The deepest intervals first: they are what reads pay for.
//! 2. The *seed* is the lowest sst there. The ssts above it are stacked on while they are free and
//!    the set does not grow out of proportion; each takes along everything older under it.
//! 3. The ssts of the base level under the set join. If one of them is busy, or another job is
//!    about to write into the span, the next interval is tried.
//! 4. The set is widened sideways to a rectangle as far as that drags in no more of the base level:
//!    the base ssts are rewritten anyway, so more L0 bytes make the rewrite cheaper per byte.
//!
//! ```text
//!   L0.2          f6          f9             seed f1 (the stack f1 f2 f6 f9 is the deepest)
//!   L0.1      f2  ----  f4 --------          f6 needs f4, f4 needs f3
//!   L0.0   f1---------   f3-----             f9 would take the set over its limit: it stays
//!   Lbase     b1-------  b2-------           inputs: f1 f2 f6 f4 f3, b1 b2
//! ```
//!
//! Source: the sublevel article of CockroachDB ("Faster bulk-data loading"), and what is known of
//! Pebble's picker; the widening step and the limits follow the latter.

use std::sync::Arc;

use super::candidate::{Candidate, Limits, Traffic};
use super::sublevels::Sublevels;
use crate::compaction::widen as widen_span;
use crate::key::KeySpan;
use crate::versions::SstMeta;

/// Intervals that are tried before giving up.
const TRIES: usize = 64;

/// Inputs, newest run first; the ssts of the base level, if any, are the last run.
pub(crate) type Runs = Vec<Vec<Arc<SstMeta>>>;

/// The ssts of a run of disjoint ssts that overlap a span.
pub(super) fn under<'a>(run: &'a [Arc<SstMeta>], span: &KeySpan) -> &'a [Arc<SstMeta>] {
    let first = run.partition_point(|sst| sst.bounds().end <= span.start);
    let end = run.partition_point(|sst| sst.bounds().start < span.end);
    &run[first..end.max(first)]
}

/// Proposes a compaction from L0 into the ssts `base` of level `level`, for intervals that are at
/// least `min_depth` deep.
pub(crate) fn pick_base(
    l0: &Sublevels,
    level: usize,
    base: &[Arc<SstMeta>],
    traffic: &Traffic<'_>,
    min_depth: usize,
    limits: Limits,
) -> Option<Runs> {
    let busy: Vec<bool> = l0.files().iter().map(|placed| (traffic.busy)(&placed.sst)).collect();
    let mut order: Vec<(usize, usize)> = Vec::with_capacity(l0.interval_count());
    for interval in 0..l0.interval_count() {
        let stack = l0.stack(interval);
        let depth = stack.iter().filter(|file| !busy[**file]).count();
        let free = stack.first().is_some_and(|file| !busy[*file]);
        if free && depth >= min_depth {
            order.push((depth, interval));
        }
    }
    order.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut tried = vec![false; l0.files().len()];
    let mut tries = 0;
    for (_, interval) in order {
        let stack = l0.stack(interval);
        if std::mem::replace(&mut tried[stack[0]], true) {
            continue;
        }
        tries += 1;
        if tries > TRIES {
            break;
        }
        let Some(set) = grow(l0, stack, traffic, min_depth, limits) else { continue };
        if let Some(runs) = join_base(l0, set, level, base, traffic, limits) {
            return Some(runs);
        }
    }
    None
}

/// A compaction of one sst, with everything older under it, into the ssts `base` of `level`.
pub(crate) fn pick_base_from(
    l0: &Sublevels,
    seed: usize,
    level: usize,
    base: &[Arc<SstMeta>],
    traffic: &Traffic<'_>,
) -> Option<Runs> {
    if (traffic.busy)(&l0.files()[seed].sst) {
        return None;
    }
    let mut set = Candidate::new(l0, seed);
    let below = (0..l0.files()[seed].sublevel).rev();
    if !set.close(l0, below, traffic, &|_| false) {
        return None;
    }
    join_base(l0, set, level, base, traffic, Limits::default())
}

/// Ssts of the lowest sublevel that have nothing under them in `base`: they can go there as they
/// are. At most `most` of them, next to each other. `fit` says which ones may move.
pub(crate) fn pick_moves(
    l0: &Sublevels,
    level: usize,
    base: &[Arc<SstMeta>],
    traffic: &Traffic<'_>,
    fit: &dyn Fn(&SstMeta) -> bool,
    most: usize,
) -> Vec<Arc<SstMeta>> {
    let mut moves: Vec<Arc<SstMeta>> = Vec::new();
    let mut hull: Option<KeySpan> = None;
    for sst in l0.runs().next_back().unwrap_or(&[]) {
        let mut wider = hull.clone().unwrap_or_else(|| sst.bounds().clone());
        widen_span(&mut wider, sst.bounds());
        let free = fit(sst) && !(traffic.busy)(sst) && under(base, sst.bounds()).is_empty();
        if free && !(traffic.blocked)(level, &wider) {
            hull = Some(wider);
            moves.push(sst.clone());
        } else if !moves.is_empty() {
            break;
        }
        if moves.len() >= most {
            break;
        }
    }
    moves
}

/// `taken` with everything else of L0 that lies inside of `hull` and needs nothing from outside.
/// Whatever of the base level overlaps `hull` must be an input, too.
pub(crate) fn pick_within(
    l0: &Sublevels,
    taken: &[u64],
    hull: &KeySpan,
    traffic: &Traffic<'_>,
    limits: Limits,
) -> Option<Runs> {
    let is_taken = |file: &usize| taken.contains(&l0.files()[*file].sst.file_no);
    let mut files = (0..l0.files().len()).filter(is_taken);
    let mut set = Candidate::new(l0, files.next()?);
    for file in files {
        set.add(l0, file);
    }
    widen(l0, &mut set, hull, l0.depth(), traffic, limits);
    Some(set.runs(l0))
}

/// Step 2: the seed, and what is stacked on it.
fn grow(
    l0: &Sublevels,
    stack: &[usize],
    traffic: &Traffic<'_>,
    min_depth: usize,
    limits: Limits,
) -> Option<Candidate> {
    let mut set = Candidate::new(l0, stack[0]);
    let close = |set: &mut Candidate, file: usize| {
        let top = l0.files()[file].sublevel;
        set.close(l0, (0..top).rev(), traffic, &|_| false)
    };
    if !close(&mut set, stack[0]) {
        return None;
    }
    let mut height = 1;
    for &file in &stack[1..] {
        if (traffic.busy)(&l0.files()[file].sst) {
            break;
        }
        if !set.has(file) {
            let mut larger = set.clone();
            larger.add(l0, file);
            if !close(&mut larger, file) || !limits.allow(set.bytes, larger.bytes) {
                break;
            }
            set = larger;
        }
        height += 1;
    }
    (height >= min_depth).then_some(set)
}

/// Steps 3 and 4.
fn join_base(
    l0: &Sublevels,
    mut set: Candidate,
    level: usize,
    base: &[Arc<SstMeta>],
    traffic: &Traffic<'_>,
    limits: Limits,
) -> Option<Runs> {
    let span = set.span(l0);
    let below = under(base, &span);
    let mut hull = span;
    if let (Some(first), Some(last)) = (below.first(), below.last()) {
        hull.start = hull.start.min(first.bounds().start.clone());
        hull.end = hull.end.max(last.bounds().end.clone());
    }
    if below.iter().any(|sst| (traffic.busy)(sst)) || (traffic.blocked)(level, &hull) {
        return None;
    }
    let top = (0..l0.files().len()).filter(|file| set.has(*file));
    let top = top.map(|file| l0.files()[file].sublevel).max().unwrap_or(0);
    widen(l0, &mut set, &hull, top, traffic, limits);
    let mut runs = set.runs(l0);
    if !below.is_empty() {
        runs.push(below.to_vec());
    }
    Some(runs)
}

/// Adds ssts inside of `hull`, from the bottom up, that need nothing from outside of it.
fn widen(
    l0: &Sublevels,
    set: &mut Candidate,
    hull: &KeySpan,
    top: usize,
    traffic: &Traffic<'_>,
    limits: Limits,
) {
    // Arrival order is bottom-up for ssts that overlap.
    for (file, placed) in l0.files().iter().enumerate() {
        if set.has(file) || placed.sublevel > top || !hull.covers(placed.sst.bounds()) {
            continue;
        }
        let supported = (placed.first..placed.end).all(|interval| {
            let under = l0.stack(interval).iter().take_while(|other| **other != file);
            under.into_iter().all(|other| set.has(*other))
        });
        let fits = set.bytes + placed.sst.size <= limits.hard_bytes;
        if supported && fits && !(traffic.busy)(&placed.sst) {
            set.add(l0, file);
        }
    }
}
