//! Which versions go: the leaseholder moves its range's threshold on with the clock.
//!
//! ```text
//!                |-------------- window ---------------|
//!   ----x--------x-------------o-----------o-----------now
//!       threshold              read timestamps of those who run
//!                next step
//! ```
//!
//! 1. A threshold moves in *steps*, for which it takes one entry of the log each. All ranges move
//!    at the same steps, also those that nobody asks anything: the store's threshold is the
//!    smallest of its replicas' ones. Those that sleep are woken for it, some with each tick. A
//!    range stays where it is as long as nothing was written in it between its threshold and the
//!    next one: it is *settled* there, and nothing of it can go ([`crate::machine`]).
//! 2. It stays below the oldest time that a transaction reads. Each router says now and then what
//!    that is, to each node. Who begins later reads a later time, so what it has said stays true;
//!    and who was silent for too long protects nobody any more.
//! 3. A process that has not listened for that long yet does not know who is there, and moves no
//!    threshold.
//! 4. Whoever reads below the threshold, or relies on what he has read there, is refused: what was
//!    deleted since then may be gone without a trace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use braid_consensus::Result;
use braid_env::clock::Hlc;
use braid_kv::{Conflict, Reads};
use braid_lsm::CommitTs;

use crate::command::Act;
use crate::ids::RangeId;
use crate::leading::pace::{AT_ONCE, Turns};
use crate::lease::micros;
use crate::replica::{Matter, Replica};
use crate::replicas::{NodeOptions, Replicas};
use crate::request::NOBODY;

/// Steps of a window.
const STEPS: u64 = 16;
/// A step is no shorter, in microseconds: it is an entry of each range.
const MIN_STEP_MICROS: u64 = 100_000;
/// Nor longer.
const MAX_STEP_MICROS: u64 = 600_000_000;

/// What routers have said of the oldest times that their transactions read.
pub(crate) struct Readers {
    /// When this process began to listen, in microseconds.
    since: u64,
    /// By coordinator: what it said, and when it was heard.
    heard: BTreeMap<u64, (CommitTs, u64)>,
}

impl Readers {
    pub(crate) fn new(now_micros: u64) -> Readers {
        Readers { since: now_micros, heard: BTreeMap::new() }
    }

    pub(crate) fn hear(&mut self, coordinator: u64, oldest: CommitTs, now_micros: u64) {
        self.heard.insert(coordinator, (oldest, now_micros));
    }

    /// Below this nobody reads; `None`: that is not known yet.
    pub(crate) fn oldest(&mut self, now_micros: u64, patience_micros: u64) -> Option<CommitTs> {
        let in_time = |at: u64| at.saturating_add(patience_micros) > now_micros;
        self.heard.retain(|_, (_, at)| in_time(*at));
        if in_time(self.since) {
            return None;
        }
        let oldest = self.heard.values().map(|(oldest, _)| *oldest).min();
        Some(oldest.unwrap_or(CommitTs(u64::MAX)))
    }
}

/// What a node knows of the thresholds of its ranges, and of what keeps them from moving.
pub(crate) struct Thresholds {
    pub(crate) readers: Readers,
    /// The newest one.
    pub(crate) newest: Arc<AtomicU64>,
    pub(crate) walk: Walk,
    /// Of those that are awake.
    pub(crate) turns: Turns,
}

/// A walk over all ranges, to wake those that sleep and whose thresholds are to move. All at once
/// would be in the way of who is asked something: some are looked at at once, the others in the
/// course of the first half of the step.
#[derive(Default)]
pub(crate) struct Walk {
    /// Where thresholds are to come to.
    target: CommitTs,
    /// The range that is looked at next; `None`: it is over.
    next: Option<RangeId>,
    /// When it began, in microseconds, and how many it has looked at.
    begun: u64,
    looked: usize,
}

impl Walk {
    /// How many are looked at now, of so many in all.
    fn pace(&self, now_micros: u64, step_micros: u64, all: usize) -> usize {
        let gone = now_micros.saturating_sub(self.begun) as f64;
        let part = (2.0 * gone / step_micros as f64).min(1.0) * all as f64;
        (AT_ONCE + part as usize).saturating_sub(self.looked)
    }
}

impl Replica {
    /// Moves the threshold on, if that is due. Below `read` nobody reads.
    pub(crate) fn collect(&mut self, read: CommitTs) -> Result<()> {
        let Some(threshold) = self.next_threshold(read).filter(|_| self.may_collect()) else {
            return Ok(());
        };
        // The lease of a range that nobody asks anything is over.
        self.wanted = true;
        let ts = self.next_write();
        if self.proposes() && self.serves(ts) {
            let place = (ts, Vec::new(), Vec::new());
            self.propose_for(NOBODY, Matter::Threshold, place, Act::Gc(threshold))?;
        }
        Ok(())
    }

    /// Whether nothing is on its way that moves the threshold, and this replica could.
    fn may_collect(&self) -> bool {
        let is_proposed = self.pending.values().any(|pending| pending.matter == Matter::Threshold);
        self.group.is_leader() && !is_proposed
    }

    /// Whether the threshold is to move.
    pub(crate) fn is_collecting(&self, read: CommitTs) -> bool {
        self.next_threshold(read).is_some()
    }

    /// Where the threshold should be, if not where it is.
    fn next_threshold(&self, read: CommitTs) -> Option<CommitTs> {
        let below = self.machine.oldest_write().map_or(read, |write| write.min(read));
        let threshold = threshold_at(&self.options, self.clocks.wall.now_micros(), below)?;
        self.machine.holds_threshold().filter(|held| threshold > *held).map(|_| threshold)
    }

    /// Why a time cannot be read any more, if so.
    pub(crate) fn collected(&self, at: CommitTs) -> Option<Conflict> {
        let oldest = self.machine.oldest_readable();
        (at < oldest).then_some(Conflict::Collected(oldest))
    }

    /// Why it cannot be told any more whether what was read then still holds, if so.
    pub(crate) fn collected_since(&self, floor: CommitTs, reads: &Reads) -> Option<Conflict> {
        let any = !reads.points.is_empty() || !reads.spans.is_empty();
        self.collected(floor).filter(|_| any)
    }
}

/// From one step to the next, in microseconds; `None`: nothing goes.
fn step_of(options: &NodeOptions) -> Option<u64> {
    let window = options.gc_window_micros?;
    Some((window / STEPS).clamp(MIN_STEP_MICROS, MAX_STEP_MICROS))
}

/// Where thresholds of ranges should be if nobody reads below a time; `None`: nothing goes.
fn threshold_at(options: &NodeOptions, now_micros: u64, below: CommitTs) -> Option<CommitTs> {
    let (window, step) = (options.gc_window_micros?, step_of(options)?);
    let kept = now_micros.saturating_sub(window);
    let most = kept.min(micros(CommitTs(below.0.saturating_sub(1))));
    Some(CommitTs(Hlc::from_micros(most / step * step)))
}

impl Replicas {
    /// Those of who is awake whose thresholds move with this tick.
    pub(crate) fn whose_thresholds_move(
        &mut self,
        awake: &[RangeId],
        oldest: Option<CommitTs>,
    ) -> BTreeSet<RangeId> {
        let Some(oldest) = oldest else { return BTreeSet::new() };
        let is_due = |range: &RangeId| {
            let replica = self.replicas.get(range);
            replica.is_some_and(|r| r.may_collect() && r.is_collecting(oldest))
        };
        let due: Vec<RangeId> = awake.iter().copied().filter(is_due).collect();
        self.thresholds.turns.take(due)
    }

    /// Wakes ranges that this node leads, that sleep, and whose thresholds are to move.
    pub(crate) fn wake_for_thresholds(&mut self, oldest: CommitTs) {
        let now = self.clocks.wall.now_micros();
        let Some(target) = threshold_at(&self.options, now, oldest) else { return };
        let Some(step) = step_of(&self.options) else { return };
        let walk = &mut self.thresholds.walk;
        if walk.next.is_none() && target > walk.target {
            *walk = Walk { target, next: Some(RangeId(0)), begun: now, looked: 0 };
        }
        let Some(from) = walk.next else { return };
        let most = walk.pace(now, step, self.replicas.len());
        walk.looked += most;
        let mut rest = self.replicas.range(from..);
        let is_due = |(_, replica): &(&RangeId, &Replica)| {
            replica.group.is_leader() && replica.is_collecting(oldest)
        };
        let due: Vec<RangeId> =
            rest.by_ref().take(most).filter(is_due).map(|(range, _)| *range).collect();
        walk.next = rest.next().map(|(range, _)| *range);
        for range in due {
            self.wake(range);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_takes_half_a_step_and_a_short_one_no_time() {
        let mut walk = Walk { begun: 1_000, ..Walk::default() };
        let mut looked = |now, all| {
            let most = walk.pace(now, 600, all);
            walk.looked += most;
            most
        };
        assert_eq!(looked(1_000, 3_000), 32);
        assert_eq!([looked(1_001, 3_000), looked(1_010, 3_000)], [10, 90]);
        // A clock that is set back.
        assert_eq!(looked(900, 3_000), 0);
        assert_eq!(looked(1_300, 3_000), 2_900);
        assert_eq!(looked(9_000, 3_000), 0);
        // Some have come meanwhile.
        assert_eq!(looked(9_000, 3_010), 10);
    }

    #[test]
    fn who_is_silent_for_too_long_protects_nobody_and_who_listens_not_yet_knows_nobody() {
        let mut readers = Readers::new(1_000);
        let oldest = |readers: &mut Readers, now| readers.oldest(now, 100).map(|ts| ts.0);
        readers.hear(1, CommitTs(50), 1_010);
        assert_eq!(oldest(&mut readers, 1_099), None);
        assert_eq!(oldest(&mut readers, 1_100), Some(50));
        readers.hear(2, CommitTs(40), 1_105);
        assert_eq!(oldest(&mut readers, 1_109), Some(40));
        // The first one is not heard of any more.
        readers.hear(2, CommitTs(60), 1_109);
        assert_eq!(oldest(&mut readers, 1_110), Some(60));
        assert_eq!(oldest(&mut readers, 1_300), Some(u64::MAX));
        // A clock that is set back makes nobody forgotten.
        readers.hear(3, CommitTs(70), 1_300);
        assert_eq!(oldest(&mut readers, 900), None);
    }
}
