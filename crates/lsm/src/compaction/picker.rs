//! Proposes compactions: which level is over its target, and which ssts relieve it best.
//!
//! ```text
//!   level    target
//!   L0       a number of files
//!   Lbase    base_level_size (64 MiB)      levels between L0 and Lbase are empty
//!   ...      x 10 each
//!   L6       what is there
//! ```
//!
//! The base level moves up as the store grows. Score = size / target; the level with the highest
//! score of at least 1 is worked on. From it, the sst that drags the least data of the next level
//! into the rewrite is taken, counting its own tombstones in its favour.

use std::sync::Arc;

use crate::key::KeySpan;
use crate::options::Options;
use crate::versions::{LEVELS, SstMeta, Version};

const BOTTOM: usize = LEVELS - 1;

/// A proposed compaction.
pub(crate) struct Spec {
    /// Inputs, newest run first, each in key order.
    pub(crate) runs: Vec<Vec<Arc<SstMeta>>>,
    pub(crate) output_level: usize,
    /// Why, for people.
    pub(crate) reason: &'static str,
}

impl Spec {
    /// The only input, if moving it down needs no rewrite.
    pub(crate) fn trivial_move(&self, gc: u64) -> Option<&Arc<SstMeta>> {
        let [run] = self.runs.as_slice() else { return None };
        let [sst] = run.as_slice() else { return None };
        // Deletes at or below the threshold may have become droppable down there.
        let droppable = sst.tombstones + sst.deletes > 0 && sst.min_ts <= gc;
        (!droppable && sst.level != self.output_level).then_some(sst)
    }
}

/// Base level and target bytes per level.
pub(crate) fn levels_targets(version: &Version, options: &Options) -> (usize, [u64; LEVELS]) {
    let mut targets = [u64::MAX; LEVELS];
    let base_size = options.base_level_size.max(1);
    let multiplier = options.level_multiplier.max(2);
    let largest = (1..LEVELS).map(|level| version.level_bytes(level)).max().unwrap_or(0);
    let first = (1..LEVELS).find(|level| !version.level(*level).is_empty());
    // The bottom holds most of the data; each level above it a tenth of the one below.
    let mut base = BOTTOM;
    let mut size = largest.max(base_size);
    while base > 1 && size > base_size {
        base -= 1;
        size /= multiplier;
    }
    // Data that is already above the computed base level keeps that level in use.
    let base = first.map_or(base, |first| base.min(first));
    let mut target = base_size;
    for slot in &mut targets[base..] {
        *slot = target;
        target = target.saturating_mul(multiplier);
    }
    (base, targets)
}

/// The most urgent compaction, if any level needs one.
pub(crate) fn pick(version: &Version, options: &Options, gc: u64) -> Option<Spec> {
    let (base, targets) = levels_targets(version, options);
    let l0_score = version.l0_runs().count() as f64 / options.l0_compaction_files.max(1) as f64;
    let mut best = (l0_score, 0);
    for (level, target) in targets.iter().enumerate().take(BOTTOM).skip(base) {
        let score = version.level_bytes(level) as f64 / *target as f64;
        if score > best.0 {
            best = (score, level);
        }
    }
    match best {
        (score, _) if score < 1.0 => pick_garbage(version, base, gc),
        (_, 0) => pick_l0(version, base),
        // A level that is exactly at its target is not over it.
        (score, level) if score > 1.0 => pick_level(version, level),
        _ => pick_garbage(version, base, gc),
    }
}

/// When no level is over its target: an sst whose range tombstones or many deletes are at or
/// below the threshold goes down, so that they meet what they hide; at the bottom it is rewritten
/// without them. Ends, because each step moves them down or removes them.
fn pick_garbage(version: &Version, base: usize, gc: u64) -> Option<Spec> {
    let garbage = |sst: &Arc<SstMeta>| {
        let dense = sst.deletes * 10 >= sst.rows && sst.deletes > 0;
        sst.max_ts <= gc && (sst.tombstones > 0 || dense)
    };
    if version.level(0).iter().any(garbage) {
        return pick_l0(version, base);
    }
    for level in base..BOTTOM {
        if let Some(sst) = version.level(level).iter().find(|sst| garbage(sst)) {
            return Some(push_down(version, sst, "its tombstones can take effect"));
        }
    }
    let sst = version.level(BOTTOM).iter().find(|sst| garbage(sst))?;
    let runs = vec![vec![sst.clone()]];
    Some(Spec { runs, output_level: BOTTOM, reason: "its tombstones have done their work" })
}

fn push_down(version: &Version, seed: &Arc<SstMeta>, reason: &'static str) -> Spec {
    let mut runs = vec![vec![seed.clone()]];
    let lower = version.overlapping(seed.level + 1, seed.bounds());
    if !lower.is_empty() {
        runs.push(lower);
    }
    Spec { runs, output_level: seed.level + 1, reason }
}

fn pick_l0(version: &Version, base: usize) -> Option<Spec> {
    let mut runs: Vec<Vec<Arc<SstMeta>>> = version.l0_runs().map(<[_]>::to_vec).collect();
    let span = bounds_of(runs.iter().flatten())?;
    let lower = version.overlapping(base, &span);
    if !lower.is_empty() {
        runs.push(lower);
    }
    Some(Spec { runs, output_level: base, reason: "L0 has too many files" })
}

fn pick_level(version: &Version, level: usize) -> Option<Spec> {
    let cost = |sst: &Arc<SstMeta>| {
        let overlap: u64 =
            version.overlapping(level + 1, sst.bounds()).iter().map(|sst| sst.size).sum();
        // A range tombstone frees data below it: as if the sst were larger by what it overlaps.
        let gain = sst.size + if sst.tombstones > 0 { overlap } else { 0 };
        overlap as f64 / gain.max(1) as f64
    };
    let seed = version
        .level(level)
        .iter()
        .min_by(|a, b| cost(a).total_cmp(&cost(b)).then(a.file_no.cmp(&b.file_no)))?;
    Some(push_down(version, seed, "level is over its target"))
}

/// Everything that overlaps a span, with what must come along, down to the bottom.
pub(crate) fn spec_for_span(version: &Version, span: &KeySpan) -> Option<Spec> {
    let mut span = span.clone();
    let mut runs: Vec<Vec<Arc<SstMeta>>> = Vec::new();
    // L0 runs overlap each other: taking one means taking the older ones under it.
    loop {
        let taken: Vec<Vec<Arc<SstMeta>>> =
            version.l0_runs().map(|run| overlapping(run, &span)).collect();
        let wider = widen(&span, taken.iter().flatten());
        if wider == span {
            runs.extend(taken.into_iter().filter(|run| !run.is_empty()));
            break;
        }
        span = wider;
    }
    for level in 1..LEVELS {
        let taken = overlapping(version.level(level), &span);
        span = widen(&span, taken.iter());
        if !taken.is_empty() {
            runs.push(taken);
        }
    }
    if runs.is_empty() {
        return None;
    }
    Some(Spec { runs, output_level: BOTTOM, reason: "asked for" })
}

fn overlapping(run: &[Arc<SstMeta>], span: &KeySpan) -> Vec<Arc<SstMeta>> {
    run.iter().filter(|sst| sst.bounds().overlaps(span)).cloned().collect()
}

fn widen<'a>(span: &KeySpan, ssts: impl Iterator<Item = &'a Arc<SstMeta>>) -> KeySpan {
    let mut wider = span.clone();
    for sst in ssts {
        wider.start = wider.start.min(sst.bounds().start.clone());
        wider.end = wider.end.max(sst.bounds().end.clone());
    }
    wider
}

fn bounds_of<'a>(mut ssts: impl Iterator<Item = &'a Arc<SstMeta>>) -> Option<KeySpan> {
    let first = ssts.next()?.bounds().clone();
    Some(widen(&first, ssts))
}
