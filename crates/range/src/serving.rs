//! What a leaseholder answers from what is applied: reads, validation, sizes. Nothing of it goes
//! through the log.
//!
//! ```text
//!   at          observed        limit = at + bound of clocks
//!   |----- ? -------|------------------|
//!    may have been   was later: the clock of this node showed `observed` after the reader began
//! ```
//!
//! A reader reads as of a time of its own clock. What this node wrote above that, but below the
//! limit, may have been acknowledged before the reader began, by a clock that is ahead. What it
//! wrote under its leases and above a time that its clock showed after the reader began, was not.
//! In between nobody knows: then the reader is told to read at a later time, where nothing is in
//! doubt.
//!
//! What a range's holders write under their own clocks is in the order of its log, whoever has the
//! lease. So what a reader has once been certain of in a range bounds its doubts there for good:
//! that
//! is said with each answer, and said again to whoever has the lease then.
//! Only what other clocks have stamped, of transactions over several ranges, stays in doubt up to
//! the limit.
//!
//! A replica without the lease reads what is closed ([`crate::leading::closed`]).
//!
//! There is doubt only about what is really there: the store knows all changes between two times,
//! and of a scan only what it has come to is asked for.

use braid_consensus::{Error, Result};
use braid_kv::{KvError, KvResult, Reads, ScanMany, ScannedMany};
use braid_lsm::{CommitTs, KeySpan};
use bytes::Bytes;

use crate::lease::micros;
use crate::machine::newest;
use crate::replica::{Replica, Tried};
use crate::request::{Answer, HeldLocks, When};

/// What was read, as spans.
pub(crate) fn spans_of(reads: &Reads) -> Vec<KeySpan> {
    let points = reads.points.iter().map(|read| KeySpan::point(&read.key));
    points.chain(reads.spans.iter().cloned()).collect()
}

/// What the answer to a scan is about: of each span the part in front of what is left.
fn come_to(request: &ScanMany, scanned: &ScannedMany) -> Vec<KeySpan> {
    let part = |(asked, rest): (&KeySpan, Option<&KeySpan>)| match (rest, request.reverse) {
        (None, _) => asked.clone(),
        (Some(rest), false) => KeySpan::new(asked.start.clone(), rest.start.clone()),
        (Some(rest), true) => KeySpan::new(rest.end.clone(), asked.end.clone()),
    };
    let asked = request.scans.iter().map(|scan| &scan.span);
    asked.zip(scanned.parts.iter().map(|part| part.rest.as_ref())).map(part).collect()
}

/// The store has failed under a request.
pub(crate) fn failed(error: KvError) -> Error {
    match error {
        KvError::Engine(error) => Error::Log(error),
        other => Error::Inconsistent(other.to_string()),
    }
}

/// An answer that the store gave, or why there is none.
fn told(result: KvResult<Answer>) -> Tried {
    Tried::Answer(match result {
        Ok(answer) => answer,
        Err(KvError::Retry { conflict }) => Answer::Conflict(conflict),
        Err(error) => Answer::Refused(error.to_string()),
    })
}

impl Replica {
    pub(crate) fn get(&mut self, keys: &[Bytes], when: &When) -> Result<Tried> {
        let spans: Vec<KeySpan> = keys.iter().map(|key| KeySpan::point(key)).collect();
        if let Some(not) = self.not_readable(&spans, when)? {
            return Ok(not);
        }
        if let Some(newest) = self.in_doubt(&spans, when)? {
            return Ok(Tried::Answer(Answer::Uncertain(newest)));
        }
        let got = self.machine.keys().get_many(keys, when.at).map(Answer::Got);
        Ok(self.told_reader(got, when))
    }

    pub(crate) fn scan(&mut self, request: &ScanMany, when: &When) -> Result<Tried> {
        let spans: Vec<KeySpan> = request.scans.iter().map(|scan| scan.span.clone()).collect();
        if let Some(not) = self.not_readable(&spans, when)? {
            return Ok(not);
        }
        let scanned = self.machine.keys().scan_many(request, when.at);
        if let Ok(scanned) = &scanned
            && let Some(newest) = self.in_doubt(&come_to(request, scanned), when)?
        {
            return Ok(Tried::Answer(Answer::Uncertain(newest)));
        }
        Ok(self.told_reader(scanned.map(Answer::Scanned), when))
    }

    /// What was read, or why nothing was.
    fn told_reader(&self, result: KvResult<Answer>, when: &When) -> Tried {
        match told(result) {
            Tried::Answer(read @ (Answer::Got(_) | Answer::Scanned(_))) => {
                Tried::Read(read, self.certain(when))
            }
            other => other,
        }
    }

    /// What is written here above this time, under the holders' own clocks, is later than the
    /// reader's beginning.
    fn certain(&self, when: &When) -> CommitTs {
        let When { at, limit, observed, served, ref met } = *when;
        // Under earlier leases other clocks than this node's have written.
        let held = self.machine.foreign.held_until(met);
        let seen = observed.unwrap_or(self.clocks.now()).max(held);
        limit.min(served.unwrap_or(limit)).min(seen).max(at)
    }

    /// Why spans cannot be read as of that time, if they cannot. If they can, nothing will be
    /// written there at or below that time.
    fn not_readable(&mut self, spans: &[KeySpan], when: &When) -> Result<Option<Tried>> {
        let now = self.clocks.now();
        if let Some(tried) = self.not_serving(when.at, now) {
            return Ok((!self.has_closed(spans, when)).then_some(tried));
        }
        if let Some(collected) = self.collected(when.at) {
            return Ok(Some(Tried::Answer(Answer::Conflict(collected))));
        }
        self.clocks.hlc.update(when.at.0);
        if self.is_latched(spans, when.at) {
            return Ok(Some(Tried::Wait));
        }
        // What is prepared may happen, or have happened, at any time above its bound.
        if let Some(tried) = self.in_the_way_of_reads(spans, when.limit.max(when.at)) {
            return Ok(Some(tried));
        }
        Ok(None)
    }

    /// When something was written there that may be older than the reader, and that it does not
    /// see.
    fn in_doubt(&self, spans: &[KeySpan], when: &When) -> Result<Option<CommitTs>> {
        let (When { at, limit, met, .. }, certain) = (when, self.certain(when));
        let (at, limit) = (*at, *limit);
        let mut doubts: Vec<(CommitTs, CommitTs)> =
            self.machine.foreign.within((certain, limit), met).collect();
        doubts.extend(Some((at, certain)).filter(|(at, certain)| at < certain));
        if doubts.is_empty() {
            return Ok(None);
        }
        for span in spans {
            if self.machine.newest_between(span, (at, limit))?.is_none() {
                continue;
            }
            for doubt in &doubts {
                if let Some(newest) = self.machine.newest_between(span, *doubt)? {
                    return Ok(Some(newest));
                }
            }
        }
        Ok(None)
    }

    /// Why this replica cannot answer for a time.
    pub(crate) fn not_serving(&self, ts: CommitTs, now: CommitTs) -> Option<Tried> {
        if micros(ts) > micros(now) + self.options.max_clock_offset_micros {
            let reason = "it is about a time that this node's clock has not come to";
            return Some(Tried::Answer(Answer::Refused(reason.into())));
        }
        if !self.serves(ts.max(now)) {
            return Some(self.elsewhere().map_or(Tried::Wait, Tried::Answer));
        }
        None
    }

    pub(crate) fn validate(
        &mut self,
        locks: Option<&HeldLocks>,
        (floor, through): (CommitTs, CommitTs),
        reads: &Reads,
    ) -> Result<Tried> {
        if let Some(tried) = self.not_serving(through, self.clocks.now()) {
            return Ok(tried);
        }
        if let Some(lost) = self.lost_locks(locks) {
            return Ok(Tried::Answer(lost));
        }
        // The clock stays: all ranges of the node have it, and the writer may be one of them.
        self.locking.promised = self.locking.promised.max(through);
        let spans = spans_of(reads);
        if self.is_latched(&spans, newest()) {
            return Ok(Tried::Wait);
        }
        if let Some(tried) = self.in_the_way_of_reads(&spans, newest()) {
            return Ok(tried);
        }
        if let Some(collected) = self.collected_since(floor, reads) {
            return Ok(Tried::Answer(Answer::Conflict(collected)));
        }
        Ok(told(self.machine.keys().check_reads(floor, reads).map(|()| Answer::Fine)))
    }

    /// What a transaction is told whose locks are gone.
    pub(crate) fn lost_locks(&self, locks: Option<&HeldLocks>) -> Option<Answer> {
        let HeldLocks { owner, session, .. } = locks?;
        let lost = !self.locking.has(*owner, *session);
        lost.then_some(Answer::Conflict(braid_kv::Conflict::LocksLost))
    }

    pub(crate) fn divide(&self, span: &KeySpan, parts: usize, least: u64) -> Tried {
        told(self.sizes(|view| view.divide(span, parts, least)).map(Answer::Divided))
    }

    pub(crate) fn stored_bytes(&self, span: &KeySpan) -> Tried {
        told(self.sizes(|view| view.stored_bytes(span)).map(Answer::Stored))
    }

    /// Sizes are about right on any replica.
    fn sizes<T>(&self, ask: impl FnOnce(&braid_lsm::View) -> braid_lsm::Result<T>) -> KvResult<T> {
        Ok(ask(&self.machine.view(newest())?)?)
    }
}
