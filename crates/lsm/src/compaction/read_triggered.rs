//! Proposes compactions for the sake of reads.
//!
//! A candidate is an sst that reads wasted time on, with what must come along: either one level
//! down, or with everything below it at once. What is gained is the time that its inputs are
//! charged with, except those of the lowest run, which stay. What it costs is the rewrite,
//! including all that overlaps below; so a tiny sst over a huge level can never win. It is worth
//! it if reads waste at least as much as the rewrite takes, over the time that the tree is
//! likely to stay tidy: while users write, until as much has arrived again as was merged away.

use super::picker::Scene;
use super::read_meter::{ReadMeter, Written};
use super::spec::{CompactionReason, Spec, hull_of, widen};
use crate::versions::l0::{self, Traffic};
use crate::versions::{LEVELS, SstMeta};

/// Ssts that are looked at, those with the most waste first.
const CANDIDATES: usize = 12;
/// No such compaction reads more than this.
const MOST_BYTES: u64 = 256 << 20;
/// Waste must be this many times the cost, which is on the safe side: it is measured on the clock,
/// so it includes waiting for a processor.
const WORTH: f64 = 1.0;

/// The best candidate that the budget allows.
pub(crate) fn pick_for_reads(
    scene: &Scene<'_>,
    base: usize,
    meter: &ReadMeter,
    written: Written,
    now: u64,
) -> Option<Spec> {
    let ssts = scene.version.ssts().map(|sst| &**sst);
    let allowance = meter.evaluate(ssts, written, now);
    if allowance.bytes == 0 {
        return None;
    }
    let busy = |sst: &SstMeta| scene.claims.is_busy(sst.file_no);
    let mut charged: Vec<(f64, usize, usize)> = Vec::new();
    for level in 0..LEVELS - 1 {
        for (i, sst) in scene.version.level(level).iter().enumerate() {
            let rate = sst.reads.rate(now);
            if rate > 0.0 && !busy(sst) {
                charged.push((rate, level, i));
            }
        }
    }
    charged.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    charged.truncate(CANDIDATES);
    let mut best: Option<(f64, Spec)> = None;
    for (_, level, i) in charged {
        for spec in [scene.step_down(base, level, i, &busy), scene.all_the_way(level, i, &busy)] {
            let Some(spec) = spec else { continue };
            let bytes: u64 = spec.inputs().map(|sst| sst.size).sum();
            if bytes > MOST_BYTES.min(allowance.bytes) || spec.runs.len() < 2 {
                continue;
            }
            let upper = || spec.runs[..spec.runs.len() - 1].iter().flatten();
            let waste: f64 = upper().map(|sst| sst.reads.rate(now)).sum();
            let horizon = allowance.horizon(upper().map(|sst| sst.size).sum());
            let worth = waste * horizon / meter.rewrite_nanos(bytes).max(1.0);
            if worth >= WORTH && best.as_ref().is_none_or(|(most, _)| worth > *most) {
                best = Some((worth, spec));
            }
        }
    }
    let (_, spec) = best?;
    meter.spend(spec.inputs().map(|sst| sst.size).sum());
    Some(spec)
}

impl Scene<'_> {
    /// Sst number `i` of a level goes one level down.
    fn step_down(
        &self,
        base: usize,
        level: usize,
        i: usize,
        busy: &dyn Fn(&SstMeta) -> bool,
    ) -> Option<Spec> {
        let reason = CompactionReason::ReadTriggered;
        if level > 0 {
            return self.push_down(level, i, 0, reason, busy);
        }
        let runs = self.runs_from_l0(base, i, busy)?;
        Some(Spec { runs, output_level: base, reason })
    }

    fn runs_from_l0(
        &self,
        base: usize,
        i: usize,
        busy: &dyn Fn(&SstMeta) -> bool,
    ) -> Option<Vec<Vec<std::sync::Arc<SstMeta>>>> {
        let l0 = self.version.l0();
        let file_no = self.version.level(0)[i].file_no;
        let seed = l0.files().iter().position(|placed| placed.sst.file_no == file_no)?;
        let blocked = |level: usize, hull: &crate::key::KeySpan| self.claims.blocks(level, hull);
        let traffic = Traffic { busy, blocked: &blocked };
        let below = self.version.level(base);
        if l0.per_file() {
            return l0::pick_base_per_file(l0, base, below, &traffic);
        }
        l0::pick_base_from(l0, seed, base, below, &traffic)
    }

    /// Sst number `i` of a level and everything below it become one run of the lowest level that
    /// has anything there.
    fn all_the_way(&self, level: usize, i: usize, busy: &dyn Fn(&SstMeta) -> bool) -> Option<Spec> {
        let base = super::picker::levels_targets(self.version, self.options).0;
        let (mut runs, from) = if level == 0 {
            (self.runs_from_l0(base, i, busy)?, base + 1)
        } else {
            (vec![vec![self.version.level(level)[i].clone()]], level + 1)
        };
        let mut hull = hull_of(runs.iter().flatten())?;
        let mut output_level = if level == 0 { base } else { level };
        for lower in from..LEVELS {
            let under = self.version.overlapping(lower, &hull);
            if under.is_empty() {
                continue;
            }
            if under.iter().any(|sst| busy(sst)) {
                return None;
            }
            for sst in under {
                widen(&mut hull, sst.bounds());
            }
            output_level = lower;
            runs.push(under.to_vec());
        }
        let stays = output_level == level || self.claims.blocks(output_level, &hull);
        let reason = CompactionReason::ReadTriggered;
        (!stays).then_some(Spec { runs, output_level, reason })
    }
}
