//! Dropping what nobody can see any more without reading it.
//!
//! A range tombstone up to the gc threshold hides everything older in its span, for every read
//! that is still allowed. So, in one edit and over all levels:
//!
//! ```text
//!   L0             [T1 .... @9 ....)[T2 .... @12 ...)       gc threshold 20
//!   L5      |--a--|--b--| |---c----|
//!   L6    |---d----|---e---|---f---|---g----|--h--|----i----|
//!
//!   whole ssts inside      b c e f g h and all like them: dropped, however many, unread
//!   at the edges           d, i: cut back to what is left, as virtual ssts (a: too little to gain)
//!   T1, T2                 an sst of nothing but tombstones goes, if nothing is left below it
//! ```
//!
//! An sst is dead if tombstones newer than all of it cover all of its span; they may be of several
//! ssts, since flushes and compactions cut tombstones at the bounds of their outputs. Whether they
//! lie above or below it does not matter (contract C1: what is older arrived earlier). The
//! tombstones must be durable in ssts, and the threshold in the manifest (C6).
//!
//! Sweeps run when the threshold passes a tombstone, before other compactions get to read what it
//! covers. A tombstone in the memtable that hides much is flushed first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::drop_rules::skyline_up_to;
use super::scheduler::SweepPlan;
use super::spec::CompactionReason;
use crate::error::Result;
use crate::key::KeySpan;
use crate::range_tombstone::Skyline;
use crate::store::Store;
use crate::versions::{Edit, LEVELS, SstFacts, SstMeta, Version};

/// Pieces of one sst that are covered, beyond which nothing is cut out of it.
const MOST_PIECES: usize = 8;
/// An edge is cut back if that saves at least this share of the sst, in percent.
const LEAST_SAVED: u64 = 25;
/// Tombstones of a memtable are flushed early if they cover this many bytes of ssts, and
/// `SEAL_RATIO` times the memtable.
const SEAL_BYTES: u64 = 1 << 20;
const SEAL_RATIO: u64 = 4;

/// What a sweep found to do.
pub(crate) struct Swept {
    pub(crate) edit: Edit,
    pub(crate) dropped: u64,
    /// Dropped whole, or cut away.
    pub(crate) bytes: u64,
}

/// How much of an sst is dead.
enum Dead {
    No,
    Whole,
    /// These parts of it, neighbours joined.
    Parts(Vec<KeySpan>),
}

/// The parts of `sst` under tombstones that are newer than all of it.
fn dead_parts(skyline: &Skyline, sst: &SstMeta) -> Dead {
    let bounds = sst.bounds();
    let mut parts: Vec<KeySpan> = Vec::new();
    let mut at = bounds.start.clone();
    while at < bounds.end {
        let cover = skyline.cover(&at, u64::MAX, u64::MAX, false);
        let until = cover.until.map_or(bounds.end.clone(), |until| until.min(bounds.end.clone()));
        if cover.ts > sst.max_ts {
            match parts.last_mut() {
                Some(last) if last.end == at => last.end = until.clone(),
                _ => parts.push(KeySpan { start: at, end: until.clone() }),
            }
        }
        at = until;
    }
    match parts.as_slice() {
        [] => Dead::No,
        [all] if all.covers(bounds) => Dead::Whole,
        _ => Dead::Parts(parts),
    }
}

/// Whether an sst holds nothing but tombstones up to `gc`.
fn only_old_tombstones(sst: &SstMeta, gc: u64) -> bool {
    sst.rows == 0 && sst.tombstones > 0 && sst.max_ts <= gc
}

impl Store {
    /// A skyline of the durable tombstones up to `gc`.
    fn killers(&self, version: &Version, gc: u64) -> Result<Skyline> {
        let mut tombstones = Vec::new();
        for sst in version.ssts().filter(|sst| sst.tombstones > 0 && sst.min_ts <= gc) {
            tombstones.extend(sst.tombstones_inside(&self.env)?);
        }
        Ok(skyline_up_to(gc, &tombstones))
    }

    /// Looks for ssts in `span` to drop, to cut and to elide. What is found is claimed; the caller
    /// installs the edit and ends the claim. `None` if there is nothing.
    pub(crate) fn plan_sweep(self: &Arc<Store>, span: &KeySpan) -> Result<Option<(u64, Swept)>> {
        // In this order: the threshold may be lowered for ssts that a later version has.
        let version = self.state.load().version.clone();
        let gc = self.durable_gc()?;
        let killers = self.killers(&version, gc)?;
        let mut plan = SweepPlan::default();
        for sst in version.ssts().filter(|sst| sst.bounds().overlaps(span)) {
            if only_old_tombstones(sst, gc) {
                plan.tombstones.push(sst.clone());
                continue;
            }
            if killers.is_empty() || sst.min_ts > gc {
                continue;
            }
            match dead_parts(&killers, sst) {
                Dead::No => {}
                Dead::Whole => plan.dead.push(sst.clone()),
                Dead::Parts(parts) if parts.len() <= MOST_PIECES => {
                    plan.partly.push((sst.clone(), parts));
                }
                Dead::Parts(_) => {}
            }
        }
        let Some(claim) = self.background.claim_sweep(self, &mut plan) else { return Ok(None) };
        let swept = self.carry_out(&version, &plan);
        match swept {
            Ok(Some(swept)) => Ok(Some((claim, swept))),
            Ok(None) => {
                self.background.end_claim(claim);
                Ok(None)
            }
            Err(error) => {
                self.background.end_claim(claim);
                Err(error)
            }
        }
    }

    fn carry_out(&self, version: &Version, plan: &SweepPlan) -> Result<Option<Swept>> {
        let reason = Some(CompactionReason::DeleteOnly.as_str().into());
        let mut swept = Swept { edit: Edit { reason, ..Edit::default() }, dropped: 0, bytes: 0 };
        for sst in &plan.dead {
            swept.edit.dropped.push(sst.file_no);
            swept.dropped += 1;
            swept.bytes += sst.size;
        }
        for (sst, parts) in &plan.partly {
            self.cut_back(sst, parts, &mut swept)?;
        }
        // From the bottom up: a tombstone below may have been all that one above it was kept for.
        let mut tombstones = plan.tombstones.clone();
        tombstones.sort_by_key(|sst| (std::cmp::Reverse(sst.level), sst.arrival_high));
        for sst in tombstones {
            if !holds_below(version, &sst, &swept.edit) {
                swept.edit.dropped.push(sst.file_no);
                swept.dropped += 1;
                swept.bytes += sst.size;
            }
        }
        Ok((!swept.edit.dropped.is_empty()).then_some(swept))
    }

    /// Cuts the dead part that saves most out of an sst, if it saves enough.
    fn cut_back(&self, sst: &SstMeta, parts: &[KeySpan], swept: &mut Swept) -> Result<()> {
        let mut best: Option<(u64, Vec<SstFacts>)> = None;
        for part in parts {
            let number = || self.next_file.fetch_add(1, Ordering::AcqRel);
            let rest = sst.cut_out(part, &self.env, number)?;
            let left: u64 = rest.iter().map(|facts| facts.size).sum();
            if best.as_ref().is_none_or(|(least, _)| left < *least) {
                best = Some((left, rest));
            }
        }
        let Some((left, rest)) = best else { return Ok(()) };
        let saved = sst.size.saturating_sub(left);
        if saved * 100 >= sst.size * LEAST_SAVED {
            swept.edit.dropped.push(sst.file_no);
            swept.edit.added.extend(rest);
            swept.bytes += saved;
        }
        Ok(())
    }

    /// Installs what a sweep found, and ends its claim. False if it did not fit any more.
    pub(crate) fn install_sweep(&self, claim: u64, swept: &Swept) -> Result<bool> {
        let installed = self.install(&swept.edit, |_| {});
        self.background.end_claim(claim);
        let fits = installed?;
        if fits {
            self.counters.compaction.dropped(CompactionReason::DeleteOnly, swept.dropped);
            tracing::debug!(ssts = swept.dropped, bytes = swept.bytes, "dropped unread");
        }
        Ok(fits)
    }

    /// Seals the mutable memtable if its tombstones up to `gc` hide far more than it holds: in
    /// there they cannot drop anything.
    pub(crate) fn flush_tombstones(self: &Arc<Store>, gc: u64) {
        let state = self.state.load_full();
        let mutable = &state.mutable;
        if mutable.min_ts() > gc || mutable.skyline().is_empty() {
            return;
        }
        let killers = skyline_up_to(gc, &mutable.tombstones());
        let dead = |sst: &&Arc<SstMeta>| matches!(dead_parts(&killers, sst), Dead::Whole);
        let bytes: u64 = state.version.ssts().filter(dead).map(|sst| sst.size).sum();
        if bytes >= SEAL_BYTES.max(mutable.bytes() as u64 * SEAL_RATIO) {
            let mut commit = self.commit.lock();
            if !self.closed.load(Ordering::Acquire) && !self.state.load().mutable.is_empty() {
                self.rotate(&mut commit);
            }
        }
    }

    /// Drops ssts in a span that hold nothing a read may still see, without reading them. Returns
    /// how many, and how many bytes went with them and with parts of others.
    pub(crate) fn sweep_span(self: &Arc<Store>, span: &KeySpan) -> Result<(u64, u64)> {
        self.flush_all()?;
        loop {
            let Some((claim, swept)) = self.plan_sweep(span)? else { return Ok((0, 0)) };
            if self.install_sweep(claim, &swept)? {
                self.schedule();
                return Ok((swept.dropped, swept.bytes));
            }
        }
    }
}

/// Whether anything that stays lies below an sst.
fn holds_below(version: &Version, sst: &SstMeta, edit: &Edit) -> bool {
    let stays = |other: &Arc<SstMeta>| {
        other.bounds().overlaps(sst.bounds()) && !edit.dropped.contains(&other.file_no)
    };
    let older_in_l0 = |other: &&Arc<SstMeta>| {
        sst.level == 0 && other.file_no != sst.file_no && other.arrival_high <= sst.arrival_high
    };
    let cut_parts =
        edit.added.iter().any(|new| new.bounds.overlaps(sst.bounds()) && new.level >= sst.level);
    cut_parts
        || version.level(0).iter().filter(older_in_l0).any(stays)
        || (sst.level + 1..LEVELS)
            .any(|level| version.overlapping(level, sst.bounds()).iter().any(stays))
}
