//! L0 without sublevels, for comparison: what engines did before them.
//!
//! Each sst is a run of its own. One job at a time goes from L0 to the base level: the oldest sst
//! with all that overlaps it, and all that overlaps those, and so on; one wide sst brings along
//! everything. While that job runs, the newest free ssts may be merged into a single one, however
//! wide it becomes.

use super::base_pick::{Runs, under};
use super::candidate::{Limits, Traffic};
use super::sublevels::Sublevels;
use crate::compaction::widen;
use crate::versions::SstMeta;

/// The oldest sst with everything that overlaps, down to the base level.
pub(crate) fn pick_base_per_file(
    l0: &Sublevels,
    level: usize,
    base: &[std::sync::Arc<SstMeta>],
    traffic: &Traffic<'_>,
) -> Option<Runs> {
    let oldest = l0.files().first()?;
    let mut hull = oldest.sst.bounds().clone();
    let mut taken = vec![false; l0.files().len()];
    loop {
        let before = hull.clone();
        for (i, placed) in l0.files().iter().enumerate() {
            if !taken[i] && placed.sst.bounds().overlaps(&hull) {
                if (traffic.busy)(&placed.sst) {
                    return None;
                }
                taken[i] = true;
                widen(&mut hull, placed.sst.bounds());
            }
        }
        if hull == before {
            break;
        }
    }
    let below = under(base, &hull);
    for sst in below {
        widen(&mut hull, sst.bounds());
    }
    if below.iter().any(|sst| (traffic.busy)(sst)) || (traffic.blocked)(level, &hull) {
        return None;
    }
    let chosen = l0.files().iter().zip(&taken).rev().filter(|(_, taken)| **taken);
    let mut runs: Runs = chosen.map(|(placed, _)| vec![placed.sst.clone()]).collect();
    if !below.is_empty() {
        runs.push(below.to_vec());
    }
    Some(runs)
}

/// The newest free ssts, at least `min_depth` of them.
pub(crate) fn pick_intra_per_file(
    l0: &Sublevels,
    traffic: &Traffic<'_>,
    min_depth: usize,
    limits: Limits,
) -> Option<Runs> {
    let mut runs: Runs = Vec::new();
    let mut bytes = 0;
    for placed in l0.files().iter().rev() {
        bytes += placed.sst.size;
        if (traffic.busy)(&placed.sst) || bytes > limits.hard_bytes {
            break;
        }
        runs.push(vec![placed.sst.clone()]);
    }
    (runs.len() >= min_depth.max(2)).then_some(runs)
}
