//! What is merged inside of L0, when the way down is busy.
//!
//! Merging a tall stack into one sst makes reads cheaper without touching the base level. The
//! *cap* is the newest free sst of the deepest interval; from it the set grows downwards, and
//! takes along everything newer over it, up to the cap's arrival. The outputs lie where the cap
//! was: all that is left out and overlaps is either older than every input under it, or newer than
//! the cap.
//!
//! The set is one piece of the key line without holes, and its outputs are cut at the split keys
//! of flushes: such a compaction never makes an sst wider than it found.

use super::base_pick::Runs;
use super::candidate::{Candidate, Limits, Traffic};
use super::sublevels::Sublevels;

/// Intervals that are tried before giving up.
const TRIES: usize = 16;

/// Proposes a compaction within L0 that makes some interval lower by at least `min_depth - 1`.
pub(crate) fn pick_intra(
    l0: &Sublevels,
    traffic: &Traffic<'_>,
    min_depth: usize,
    limits: Limits,
) -> Option<Runs> {
    let min_depth = min_depth.max(2);
    let busy: Vec<bool> = l0.files().iter().map(|placed| (traffic.busy)(&placed.sst)).collect();
    let mut order: Vec<(usize, usize)> = Vec::new();
    for interval in 0..l0.interval_count() {
        let depth = free_top(l0.stack(interval), &busy).len();
        if depth >= min_depth {
            order.push((depth, interval));
        }
    }
    order.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut tried = vec![false; l0.files().len()];
    let mut tries = 0;
    for (_, interval) in order {
        let stack = free_top(l0.stack(interval), &busy);
        let cap = stack[stack.len() - 1];
        if std::mem::replace(&mut tried[cap], true) {
            continue;
        }
        tries += 1;
        if tries > TRIES {
            break;
        }
        if let Some(set) = grow(l0, stack, traffic, min_depth, limits) {
            return Some(set.runs(l0));
        }
    }
    None
}

/// The uppermost free ssts of a stack that lie on each other.
fn free_top<'a>(stack: &'a [usize], busy: &[bool]) -> &'a [usize] {
    let top = stack.iter().rposition(|file| !busy[*file]).map_or(0, |at| at + 1);
    let stack = &stack[..top];
    let first = stack.iter().rposition(|file| busy[*file]).map_or(0, |at| at + 1);
    &stack[first..]
}

fn grow(
    l0: &Sublevels,
    stack: &[usize],
    traffic: &Traffic<'_>,
    min_depth: usize,
    limits: Limits,
) -> Option<Candidate> {
    let cap = *stack.last()?;
    let newest = l0.files()[cap].sst.arrival_high;
    let mut set = Candidate::new(l0, cap);
    let mut height = 1;
    for &file in stack[..stack.len() - 1].iter().rev() {
        let mut larger = set.clone();
        larger.add(l0, file);
        let bottom = l0.files()[file].sublevel;
        let newer = |sst: &crate::versions::SstMeta| sst.arrival_high > newest;
        let closed = larger.close(l0, bottom + 1..l0.depth(), traffic, &newer);
        if !closed || !limits.allow(set.bytes, larger.bytes) {
            break;
        }
        set = larger;
        height += 1;
    }
    (height >= min_depth).then_some(set)
}
