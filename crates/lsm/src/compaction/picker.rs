//! Proposes compactions: which level is over its target, and which ssts relieve it best.
//!
//! ```text
//!   level    target
//!   L0       a number of sublevels, and base_level_size (64 MiB)
//!   Lbase    64 MiB to ten times that      levels between L0 and Lbase are empty
//!   ...      a tenth of the level below
//!   L6       what is there
//! ```
//!
//! The base level moves up as the store grows, and not before it would be too large for one level:
//! each level costs every row a rewrite or more, and reads a run. *Fill* = size / target, where an
//! sst counts for more if it frees data below it. Levels with a fill of at least 1 are worked on in
//! the order of fill / fill of the next level: so pressure drains from the bottom, and a level is
//! not emptied into one that is overfull itself. From a level, the sst that drags the least data of
//! the next level into the rewrite is taken; neighbours that add nothing to that come along.
//!
//! Whatever a running job has claimed is left alone; see [`Claims`].

use std::collections::HashMap;
use std::sync::Arc;

use super::claims::Claims;
use super::spec::{CompactionReason, Spec, hull_of, widen};
use crate::key::KeySpan;
use crate::options::Options;
use crate::versions::l0::{self, Limits, Traffic};
use crate::versions::{LEVELS, SstMeta, Version};

const BOTTOM: usize = LEVELS - 1;
/// Ssts that one edit moves down at most.
const MOST_MOVES: usize = 64;
/// Inputs of the upper level in one compaction between levels, in targets of its ssts.
const MOST_SEEDS: u64 = 8;

/// Dead parts of files that are not worth any work.
const HOLLOW_BYTES: u64 = 16 << 20;

/// What a picker looks at.
pub(crate) struct Scene<'a> {
    pub(crate) version: &'a Version,
    pub(crate) options: &'a Options,
    /// Gc threshold; the job makes it durable before it drops anything.
    pub(crate) gc: u64,
    pub(crate) claims: &'a Claims,
    /// Whether ssts may be rewritten for the sake of their tombstones alone. Not while a sweep
    /// is due: it may drop what they cover unread.
    pub(crate) garbage: bool,
}

impl Scene<'_> {
    /// The level that L0 compacts into.
    pub(crate) fn base(&self) -> usize {
        levels_targets(self.version, self.options).0
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
    // Without sublevels each job out of L0 rewrites the whole base level: then it is small.
    let most = if options.l0_sublevels { multiplier } else { 1 };
    while base > 1 && size > base_size.saturating_mul(most) {
        base -= 1;
        size /= multiplier;
    }
    // Data that is already above the computed base level keeps that level in use.
    while base > first.unwrap_or(base) {
        base -= 1;
        size /= multiplier;
    }
    let mut target = if options.l0_sublevels { size.max(base_size) } else { base_size };
    for slot in &mut targets[base..] {
        *slot = target;
        target = target.saturating_mul(multiplier);
    }
    (base, targets)
}

/// Bytes by which levels are over their targets: work that waits.
pub(crate) fn debt(version: &Version, options: &Options) -> u64 {
    let (base, targets) = levels_targets(version, options);
    let over = |level: usize| version.level_bytes(level).saturating_sub(targets[level]);
    version.level_bytes(0) + (base..BOTTOM).map(over).sum::<u64>()
}

/// Target size of an sst at a level.
pub(crate) fn target_sst_size(options: &Options, base: usize, level: usize) -> u64 {
    options.target_sst_size.max(1) << level.saturating_sub(base).min(3)
}

/// The most urgent compaction that nothing running is in the way of.
pub(crate) fn pick(scene: &Scene<'_>) -> Option<Spec> {
    let (base, targets) = levels_targets(scene.version, scene.options);
    let busy = |sst: &SstMeta| scene.claims.is_busy(sst.file_no);
    let mut fills = [0.0; LEVELS];
    fills[0] = scene.l0_fill(&busy);
    for level in base..LEVELS {
        let bytes: u64 = scene.version.level(level).iter().map(|sst| scene.weight(sst)).sum();
        fills[level] = bytes as f64 / targets[level] as f64;
    }
    let next = |level: usize| if level == 0 { base } else { level + 1 };
    let mut order: Vec<(f64, usize)> = (0..BOTTOM)
        .filter(|level| if *level == 0 { fills[0] >= 1.0 } else { fills[*level] > 1.0 })
        .map(|level| (fills[level] / fills[next(level)].max(0.1), level))
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, level) in order {
        let spec = if level == 0 {
            scene.pick_l0(base, targets[base], &busy)
        } else {
            scene.pick_level(level, targets[level], &busy)
        };
        if spec.is_some() {
            return spec;
        }
    }
    if !scene.garbage {
        return None;
    }
    scene.pick_garbage(base, &busy).or_else(|| scene.pick_hollow(&busy))
}

impl Scene<'_> {
    /// How full L0 is: 1 starts compactions.
    fn l0_fill(&self, busy: &dyn Fn(&SstMeta) -> bool) -> f64 {
        let l0 = self.version.l0();
        let depth = l0.free_depth(busy) as f64;
        if l0.per_file() {
            return depth / self.options.l0_compaction_files.max(1) as f64;
        }
        let free = l0.files().iter().filter(|placed| !busy(&placed.sst));
        let bytes: u64 = free.map(|placed| placed.sst.size).sum();
        let by_size = bytes as f64 / self.options.base_level_size.max(1) as f64;
        by_size.max(depth / self.options.l0_compaction_sublevels.max(1) as f64)
    }

    /// Bytes of an sst, plus those below it that its tombstones will free.
    fn weight(&self, sst: &SstMeta) -> u64 {
        let mut weight = sst.size;
        if sst.deletes > 0 && sst.rows > 0 {
            weight += (sst.size as f64 * sst.deletes as f64 / sst.rows as f64) as u64;
        }
        if sst.tombstones > 0 && sst.min_ts <= self.gc && sst.level < BOTTOM {
            weight += self.bytes_under(sst.level + 1, sst.bounds());
        }
        weight
    }

    fn bytes_under(&self, level: usize, span: &KeySpan) -> u64 {
        self.version.overlapping(level, span).iter().map(|sst| sst.size).sum()
    }

    fn blocked(&self, level: usize, hull: &KeySpan) -> bool {
        self.claims.blocks(level, hull)
    }

    fn pick_l0(&self, base: usize, target: u64, busy: &dyn Fn(&SstMeta) -> bool) -> Option<Spec> {
        let l0 = self.version.l0();
        let blocked = |level: usize, hull: &KeySpan| self.blocked(level, hull);
        let traffic = Traffic { busy, blocked: &blocked };
        let below = self.version.level(base);
        let limits = Limits::default();
        let intra = self.options.l0_intra_depth;
        if l0.per_file() {
            let drains = self.claims.drains_l0(l0.files().iter().map(|placed| placed.sst.file_no));
            let down =
                if drains { None } else { l0::pick_base_per_file(l0, base, below, &traffic) };
            let spec = |runs, output_level, reason| Spec { runs, output_level, reason };
            return down
                .map(|runs| spec(runs, base, CompactionReason::L0ToBase))
                .or_else(|| {
                    let runs = l0::pick_intra_per_file(l0, &traffic, intra, limits)?;
                    Some(spec(runs, 0, CompactionReason::WithinL0))
                })
                .filter(|spec| !self.claims.is_reserved(&spec.hull()));
        }
        // Into a full level they would be rewritten soon, one by one; in L0 they gather first.
        let room = base == BOTTOM || self.version.level_bytes(base) < target;
        let fit = |sst: &SstMeta| room && sst.tombstones == 0 && sst.deletes * 10 < sst.rows.max(1);
        let moves = l0::pick_moves(l0, base, below, &traffic, &fit, MOST_MOVES);
        if !moves.is_empty() {
            let reason = CompactionReason::L0ToBase;
            return Some(Spec { runs: vec![moves], output_level: base, reason });
        }
        let wanted = self.options.l0_compaction_sublevels.max(1);
        let depth = l0.free_depth(busy);
        let min_depth = if depth >= wanted { wanted } else { 1 };
        if let Some(runs) = l0::pick_base(l0, base, below, &traffic, min_depth, limits) {
            let reason = CompactionReason::L0ToBase;
            let spec = Spec { runs, output_level: base, reason };
            return Some(self.through_full_base(spec, target, busy));
        }
        let runs = l0::pick_intra(l0, &traffic, intra, limits)?;
        let spec = Spec { runs, output_level: 0, reason: CompactionReason::WithinL0 };
        (!self.claims.is_reserved(&spec.hull())).then_some(spec)
    }

    /// If the base level is full, what goes into it soon goes on to the next level: then it is
    /// cheaper to take that along at once, as long as there is not much more of it.
    ///
    /// ```text
    ///   two steps: L0 10 + base 2 -> 12 written, then 12 + next 10 -> 22 written
    ///   one step:  L0 10 + base 2 + next 10                        -> 22 written
    /// ```
    fn through_full_base(&self, spec: Spec, target: u64, busy: &dyn Fn(&SstMeta) -> bool) -> Spec {
        let next = spec.output_level + 1;
        let full = self.version.level_bytes(spec.output_level) >= target;
        if next > BOTTOM || !full || spec.moves(self.gc).is_some() {
            return spec;
        }
        // What overlaps on either level comes along; where bounds do not line up soon, nothing.
        let mut hull = spec.hull();
        let levels = [spec.output_level, next];
        for round in 0.. {
            let mut wider = hull.clone();
            for level in levels {
                for sst in self.version.overlapping(level, &wider) {
                    widen(&mut wider, sst.bounds());
                }
            }
            if wider == hull {
                break;
            }
            if round == 3 {
                return spec;
            }
            hull = wider;
        }
        let lower = levels.map(|level| self.version.overlapping(level, &hull));
        let blocked = |level: usize, hull: &KeySpan| self.blocked(level, hull);
        let traffic = Traffic { busy, blocked: &blocked };
        let from_l0: Vec<u64> =
            spec.inputs().filter(|sst| sst.level == 0).map(|sst| sst.file_no).collect();
        let (l0, limits) = (self.version.l0(), Limits::default());
        let Some(mut runs) = l0::pick_within(l0, &from_l0, &hull, &traffic, limits) else {
            return spec;
        };
        let bytes = |ssts: &[Arc<SstMeta>]| ssts.iter().map(|sst| sst.size).sum::<u64>();
        let upper = runs.iter().map(|run| bytes(run)).sum::<u64>() + bytes(lower[0]);
        let cheap = bytes(lower[1]) <= upper.saturating_mul(3) / 2
            && upper + bytes(lower[1]) <= limits.hard_bytes;
        let taken = lower.iter().any(|level| level.iter().any(|sst| busy(sst)));
        if !cheap || taken || self.blocked(next, &hull) {
            return spec;
        }
        runs.extend(lower.iter().filter(|level| !level.is_empty()).map(|level| level.to_vec()));
        Spec { runs, output_level: next, reason: spec.reason }
    }

    /// The cheapest sst of a level to bring down, relative to what that relieves.
    fn pick_level(
        &self,
        level: usize,
        target: u64,
        busy: &dyn Fn(&SstMeta) -> bool,
    ) -> Option<Spec> {
        let files = self.version.level(level);
        let mut order: Vec<(f64, usize)> = Vec::with_capacity(files.len());
        for (i, sst) in files.iter().enumerate().filter(|(_, sst)| !busy(sst)) {
            let overlap = self.bytes_under(level + 1, sst.bounds());
            order.push((overlap as f64 / self.weight(sst).max(1) as f64, i));
        }
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(files[a.1].file_no.cmp(&files[b.1].file_no)));
        let excess = self.version.level_bytes(level).saturating_sub(target);
        order
            .iter()
            .take(16)
            .find_map(|(_, i)| self.push_down(level, *i, excess, CompactionReason::LevelSize, busy))
    }

    /// Brings sst number `at` of a level down by one, with neighbours that cost nothing more.
    pub(super) fn push_down(
        &self,
        level: usize,
        at: usize,
        excess: u64,
        reason: CompactionReason,
        busy: &dyn Fn(&SstMeta) -> bool,
    ) -> Option<Spec> {
        let files = self.version.level(level);
        let seed = &files[at];
        if busy(seed) {
            return None;
        }
        let lower = self.version.overlapping(level + 1, seed.bounds());
        let mut hull = seed.bounds().clone();
        for sst in lower {
            widen(&mut hull, sst.bounds());
        }
        if lower.iter().any(|sst| busy(sst)) || self.blocked(level + 1, &hull) {
            return None;
        }
        let mut bytes = seed.size;
        let mut end = at + 1;
        // Inside of the hull the lower ssts are rewritten anyway; with none of them, neighbours
        // that overlap nothing move along.
        while let Some(sst) = files.get(end).filter(|sst| !busy(sst)) {
            let free = if lower.is_empty() {
                let mut wider = hull.clone();
                widen(&mut wider, sst.bounds());
                let fits = self.version.overlapping(level + 1, &wider).is_empty()
                    && !self.blocked(level + 1, &wider)
                    && end - at < MOST_MOVES
                    && bytes < excess;
                if fits {
                    hull = wider;
                }
                fits
            } else {
                hull.covers(sst.bounds()) && bytes < seed.size.saturating_mul(MOST_SEEDS)
            };
            if !free {
                break;
            }
            bytes += sst.size;
            end += 1;
        }
        let mut start = at;
        while start > 0 && !lower.is_empty() {
            let sst = &files[start - 1];
            let fits = bytes < seed.size.saturating_mul(MOST_SEEDS);
            if busy(sst) || !fits || !hull.covers(sst.bounds()) {
                break;
            }
            bytes += sst.size;
            start -= 1;
        }
        let mut runs = vec![files[start..end].to_vec()];
        if !lower.is_empty() {
            runs.push(lower.to_vec());
        }
        Some(Spec { runs, output_level: level + 1, reason })
    }

    /// When no level is over its target: an sst whose range tombstones or many deletes are at or
    /// below the threshold goes down, so that they meet what they hide; at the bottom it is
    /// rewritten without them. Ends, because each step moves them down or removes them.
    fn pick_garbage(&self, base: usize, busy: &dyn Fn(&SstMeta) -> bool) -> Option<Spec> {
        let gc = self.gc;
        let garbage = |sst: &SstMeta| {
            let dense = sst.deletes * 10 >= sst.rows && sst.deletes > 0;
            sst.max_ts <= gc && (sst.tombstones > 0 || dense) && !busy(sst)
        };
        let reason = CompactionReason::Garbage;
        let l0 = self.version.l0();
        let blocked = |level: usize, hull: &KeySpan| self.blocked(level, hull);
        let traffic = Traffic { busy, blocked: &blocked };
        for (i, _) in l0.files().iter().enumerate().filter(|(_, placed)| garbage(&placed.sst)) {
            let below = self.version.level(base);
            let runs = if l0.per_file() {
                l0::pick_base_per_file(l0, base, below, &traffic)
            } else {
                l0::pick_base_from(l0, i, base, below, &traffic)
            };
            if let Some(runs) = runs {
                return Some(Spec { runs, output_level: base, reason });
            }
        }
        for level in base..BOTTOM {
            for (i, _) in self.version.level(level).iter().enumerate().filter(|(_, s)| garbage(s)) {
                let spec = self.push_down(level, i, 0, reason, busy);
                if spec.is_some() {
                    return spec;
                }
            }
        }
        let bottom = self.version.level(BOTTOM).iter().filter(|sst| garbage(sst));
        bottom
            .filter(|sst| !self.blocked(BOTTOM, sst.bounds()))
            .map(|sst| Spec { runs: vec![vec![sst.clone()]], output_level: BOTTOM, reason })
            .next()
    }
}

impl Scene<'_> {
    /// Virtual ssts keep whole files alive. When the dead parts of files are more than a tenth of
    /// the store, the sst with the least share of its file is written anew, by itself.
    fn pick_hollow(&self, busy: &dyn Fn(&SstMeta) -> bool) -> Option<Spec> {
        let live: u64 = (0..LEVELS).map(|level| self.version.level_bytes(level)).sum();
        let garbage = self.version.garbage_bytes();
        if garbage == 0 || garbage < HOLLOW_BYTES.min(self.options.base_level_size) + live / 10 {
            return None;
        }
        let mut used: HashMap<u64, u64> = HashMap::new();
        for sst in self.version.ssts().filter(|sst| sst.is_virtual()) {
            *used.entry(sst.backing.file_no).or_default() += sst.size;
        }
        let share =
            |sst: &SstMeta| used[&sst.backing.file_no] as f64 / sst.backing.size.max(1) as f64;
        let seed = self
            .version
            .ssts()
            .filter(|sst| sst.is_virtual() && share(sst) < 0.5 && !busy(sst))
            .filter(|sst| !self.claims.blocks(sst.level, sst.bounds()))
            .min_by(|a, b| share(a).total_cmp(&share(b)).then(a.file_no.cmp(&b.file_no)))?;
        let reason = CompactionReason::Garbage;
        Some(Spec { runs: vec![vec![seed.clone()]], output_level: seed.level, reason })
    }
}

/// Everything that overlaps a span, with what must come along, down to the bottom.
pub(crate) fn spec_for_span(version: &Version, span: &KeySpan) -> Option<Spec> {
    let mut span = span.clone();
    let overlapping = |run: &[Arc<SstMeta>], span: &KeySpan| -> Vec<Arc<SstMeta>> {
        run.iter().filter(|sst| sst.bounds().overlaps(span)).cloned().collect()
    };
    let mut runs: Vec<Vec<Arc<SstMeta>>> = Vec::new();
    // L0 runs overlap each other: taking one means taking the older ones under it.
    loop {
        let taken: Vec<Vec<Arc<SstMeta>>> =
            version.l0().runs().map(|run| overlapping(run, &span)).collect();
        let mut wider = span.clone();
        if let Some(hull) = hull_of(taken.iter().flatten()) {
            widen(&mut wider, &hull);
        }
        if wider == span {
            runs.extend(taken.into_iter().filter(|run| !run.is_empty()));
            break;
        }
        span = wider;
    }
    for level in 1..LEVELS {
        let taken = version.overlapping(level, &span).to_vec();
        if let Some(hull) = hull_of(taken.iter()) {
            widen(&mut span, &hull);
            runs.push(taken);
        }
    }
    if runs.is_empty() {
        return None;
    }
    Some(Spec { runs, output_level: BOTTOM, reason: CompactionReason::Manual })
}
