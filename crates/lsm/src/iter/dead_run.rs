//! A scan's way over keys without rows: looks whether others have been there, and tells them how
//! far it came. See [`DeadSpans`](super::DeadSpans).

use bytes::Bytes;

use super::dead_spans::{Watch, behind};
use super::scan::ScanPlan;
use crate::key::KeySpan;

/// Looking is not repeated more often than every so many entries where it leads to nothing.
const STEP_MAX: u64 = 1 << 16;
/// A run that is worth a note is so many times longer than one after which a scan looks: going
/// somewhere else takes as long as passing some hundreds of entries of a block.
const WORTH_A_NOTE: u64 = 8;

/// What a scan has passed since its last row. Numbers are of entries in blocks; those of memtables
/// count as [`STEP`](super::stretch::STEP) each.
pub(crate) struct DeadRun {
    /// Entries without a row.
    passed: u64,
    /// How many of them before it looks.
    patience: u64,
    /// How many more before it looks again.
    step: u64,
    /// How many at first.
    least: u64,
    watching: Option<Watching>,
}

/// Bounds are those of spans: included where they are a start, excluded where they are an end.
struct Watching {
    watch: Watch,
    from: Bytes,
    /// Up to where there was nothing.
    reached: Option<Bytes>,
}

impl DeadRun {
    /// Of a scan that looks after so many entries.
    pub(crate) fn new(least: u64) -> DeadRun {
        DeadRun { passed: 0, patience: least, step: least, least, watching: None }
    }

    /// Entries passed since the last row.
    #[inline]
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// With how many it is time to look.
    #[inline]
    pub(crate) fn patience(&self) -> u64 {
        self.patience
    }

    /// Whether it is time to look.
    #[inline]
    pub(crate) fn is_long(&self) -> bool {
        self.passed >= self.patience
    }

    /// So many entries were passed since the last row, by now.
    #[inline]
    pub(crate) fn pass(&mut self, passed: u64) {
        self.passed = passed;
    }

    /// Rows came, and `passed` entries behind the last one; or the scan goes elsewhere.
    #[inline]
    pub(crate) fn end_run(&mut self, plan: &ScanPlan, passed: u64) {
        if self.patience > self.least {
            self.end(plan);
            (self.step, self.patience) = (self.least, self.least);
        }
        self.passed = passed;
    }

    /// There was no row up to the end of what the scan reads.
    pub(crate) fn end_with_span(&mut self, plan: &ScanPlan, span: &KeySpan) {
        if let Some(watching) = &mut self.watching {
            let end = if plan.options.reverse { &span.start } else { &span.end };
            watching.reached = Some(end.clone());
        }
        self.end_run(plan, 0);
    }

    /// The scan stands on the key `at` of `span`. Returns where it can go on.
    #[cold]
    pub(crate) fn look(&mut self, plan: &ScanPlan, span: &KeySpan, at: &[u8]) -> Option<Bytes> {
        let backward = plan.options.reverse;
        let here = if backward { behind(at) } else { Bytes::copy_from_slice(at) };
        if let Some(watching) = &mut self.watching {
            watching.reached = Some(here.clone());
        }
        let spans = &plan.view.store().dead_spans;
        let to = spans.pass(at, plan.options.classes, plan.read(), backward);
        if let Some(to) = &to {
            self.end(plan);
            self.watch(plan, span, to.clone());
        } else if self.watching.is_none() && !self.watch(plan, span, here) {
            self.step = (self.step * 2).min(STEP_MAX);
        }
        self.patience = self.passed + self.step;
        to
    }

    fn watch(&mut self, plan: &ScanPlan, span: &KeySpan, from: Bytes) -> bool {
        let watched = match plan.options.reverse {
            true => KeySpan { start: span.start.clone(), end: from.clone() },
            false => KeySpan { start: from.clone(), end: span.end.clone() },
        };
        let store = plan.view.store();
        let watch = store.dead_spans.watch(watched, || store.read_point_of(&plan.view));
        self.watching = watch.map(|watch| Watching { watch, from, reached: None });
        self.watching.is_some()
    }

    /// Nobody has to tell this scan any more what comes; it says what it has found.
    pub(crate) fn end(&mut self, plan: &ScanPlan) {
        let Some(Watching { watch, from, reached }) = self.watching.take() else { return };
        let dead = reached.map(|reached| match plan.options.reverse {
            true => KeySpan { start: reached, end: from },
            false => KeySpan { start: from, end: reached },
        });
        let spans = &plan.view.store().dead_spans;
        let is_worth_it = self.passed >= self.least * WORTH_A_NOTE;
        spans.end_watch(watch, plan.options.classes, dead, is_worth_it);
    }
}
