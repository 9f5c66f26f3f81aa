//! What flushes and compactions have done since open, by level and by reason.

use std::sync::atomic::{AtomicU64, Ordering};

use super::job::JobOutput;
use super::spec::{CompactionReason, Spec};
use crate::metrics::{LevelMetrics, ReasonMetrics};
use crate::versions::LEVELS;

#[derive(Default)]
struct Level {
    written: AtomicU64,
    read: AtomicU64,
    moved: AtomicU64,
}

#[derive(Default)]
struct Reason {
    compactions: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    moves: AtomicU64,
    dropped: AtomicU64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct CompactionCounters {
    levels: [Level; LEVELS],
    reasons: [Reason; CompactionReason::ALL.len()],
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl CompactionCounters {
    pub(crate) fn flushed(&self, output: &JobOutput) {
        add(&self.levels[0].written, output.bytes_out);
    }

    pub(crate) fn compacted(&self, spec: &Spec, output: &JobOutput) {
        let reason = &self.reasons[spec.reason as usize];
        if output.moved > 0 {
            add(&reason.moves, output.moved);
            add(&self.levels[spec.output_level].moved, spec.inputs().map(|sst| sst.size).sum());
            return;
        }
        add(&reason.compactions, 1);
        add(&reason.bytes_in, output.bytes_in);
        add(&reason.bytes_out, output.bytes_out);
        add(&self.levels[spec.output_level].written, output.bytes_out);
        for sst in spec.inputs() {
            add(&self.levels[sst.level].read, sst.size);
        }
    }

    /// An edit dropped or cut ssts that nobody can see into any more.
    pub(crate) fn dropped(&self, reason: CompactionReason, ssts: u64) {
        add(&self.reasons[reason as usize].compactions, 1);
        add(&self.reasons[reason as usize].dropped, ssts);
    }

    /// Compactions that were more than moves.
    pub(crate) fn compactions(&self) -> u64 {
        self.reasons.iter().map(|reason| get(&reason.compactions)).sum()
    }

    /// Bytes read and written by all of them.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let sum = |of: fn(&Reason) -> &AtomicU64| self.reasons.iter().map(|r| get(of(r))).sum();
        (sum(|reason| &reason.bytes_in), sum(|reason| &reason.bytes_out))
    }

    /// Bytes that flushes wrote, and compactions that were not for the sake of reads.
    pub(crate) fn bytes_not_for_reads(&self) -> u64 {
        let all: u64 = self.levels.iter().map(|level| get(&level.written)).sum();
        all.saturating_sub(get(&self.reasons[CompactionReason::ReadTriggered as usize].bytes_out))
    }

    pub(crate) fn fill_level(&self, level: usize, metrics: &mut LevelMetrics) {
        metrics.bytes_written = get(&self.levels[level].written);
        metrics.bytes_read = get(&self.levels[level].read);
        metrics.bytes_moved = get(&self.levels[level].moved);
    }

    pub(crate) fn reasons(&self) -> Vec<ReasonMetrics> {
        let numbers = CompactionReason::ALL.iter().zip(&self.reasons);
        numbers
            .map(|(reason, counters)| ReasonMetrics {
                reason: *reason,
                compactions: get(&counters.compactions),
                bytes_in: get(&counters.bytes_in),
                bytes_out: get(&counters.bytes_out),
                moves: get(&counters.moves),
                dropped_ssts: get(&counters.dropped),
            })
            .collect()
    }
}
