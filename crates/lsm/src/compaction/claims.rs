//! What running compactions have taken, so that others keep out of their way.
//!
//! * An input of one job is no input of another.
//! * Two jobs that write to the same level do not overlap, from the first to the last key of their
//!   inputs (their *hull*): otherwise their outputs could.
//! * A *reserved* span is kept free of jobs altogether, for work that must see a part of the tree
//!   stand still.
//!
//! That is all. Jobs at different depths of one span may run side by side: what lies above in the
//! arrival order stays above, since whoever takes an sst down takes everything older under it.

use std::collections::HashSet;
use std::sync::Arc;

use super::spec::Spec;
use crate::key::KeySpan;
use crate::versions::SstMeta;

struct Claim {
    id: u64,
    output_level: usize,
    hull: KeySpan,
    files: Vec<u64>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Claims {
    next: u64,
    running: Vec<Claim>,
    busy: HashSet<u64>,
    reserved: Vec<(u64, KeySpan)>,
}

impl Claims {
    /// Whether an sst is an input of a running job.
    pub(crate) fn is_busy(&self, file_no: u64) -> bool {
        self.busy.contains(&file_no)
    }

    /// Whether a job over `hull` that writes to `level` would get in the way of others.
    pub(crate) fn blocks(&self, level: usize, hull: &KeySpan) -> bool {
        let meets =
            |claim: &Claim| level > 0 && claim.output_level == level && claim.hull.overlaps(hull);
        self.running.iter().any(meets) || self.is_reserved(hull)
    }

    /// Whether part of a span is reserved.
    pub(crate) fn is_reserved(&self, span: &KeySpan) -> bool {
        self.reserved.iter().any(|(_, reserved)| reserved.overlaps(span))
    }

    /// Whether a job runs out of L0 into a level below.
    pub(crate) fn drains_l0(&self, l0_files: impl Iterator<Item = u64>) -> bool {
        let l0: HashSet<u64> = l0_files.collect();
        let drains = |claim: &Claim| {
            claim.output_level > 0 && claim.files.iter().any(|file| l0.contains(file))
        };
        self.running.iter().any(drains)
    }

    /// Whether a running job overlaps a span.
    pub(crate) fn touches(&self, span: &KeySpan) -> bool {
        self.running.iter().any(|claim| claim.hull.overlaps(span))
    }

    /// Claims ssts that stay where they are until they are dropped or cut.
    pub(crate) fn take_files(&mut self, ssts: &[Arc<SstMeta>], hull: KeySpan) -> u64 {
        self.next += 1;
        let files: Vec<u64> = ssts.iter().map(|sst| sst.file_no).collect();
        self.busy.extend(&files);
        self.running.push(Claim { id: self.next, output_level: 0, hull, files });
        self.next
    }

    /// Claims the inputs and the output span of a spec.
    pub(crate) fn take(&mut self, spec: &Spec) -> u64 {
        self.next += 1;
        let files: Vec<u64> = spec.inputs().map(|sst| sst.file_no).collect();
        debug_assert!(files.iter().all(|file| !self.is_busy(*file)));
        self.busy.extend(&files);
        let (output_level, hull) = (spec.output_level, spec.hull());
        self.running.push(Claim { id: self.next, output_level, hull, files });
        self.next
    }

    /// Ends a claim: the job's edit is installed, or it failed.
    pub(crate) fn release(&mut self, id: u64) {
        let Some(at) = self.running.iter().position(|claim| claim.id == id) else { return };
        for file in self.running.swap_remove(at).files {
            self.busy.remove(&file);
        }
    }

    /// Keeps new jobs out of a span.
    pub(crate) fn reserve(&mut self, span: KeySpan) -> u64 {
        self.next += 1;
        self.reserved.push((self.next, span));
        self.next
    }

    /// Ends a reservation.
    pub(crate) fn unreserve(&mut self, id: u64) {
        self.reserved.retain(|(other, _)| *other != id);
    }
}
