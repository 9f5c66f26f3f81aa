//! Transactions over several ranges at the leaseholder: prepared, decided, resolved.
//!
//! ```text
//!   coordinator     Prepare ►a   Prepare ►b   Commit ►anchor        Resolve ►a ►b   Settle ►anchor
//!   somebody else   meets what is prepared ── Decide ►anchor ── Resolve
//! ```
//!
//! 1. Who has prepared something waits only for older transactions' sake: an older one waits for a
//!    younger one, and a younger one yields to an older one. So nobody waits in a circle.
//! 2. What is prepared for too long has lost its coordinator, maybe. Whoever meets it asks the
//!    anchor, which makes sure that a transaction that has not happened never will.
//! 3. The anchor keeps the record of what has happened until everybody knows: whoever is not in its
//!    records has not happened.

use std::collections::BTreeSet;

use braid_consensus::Result;
use braid_kv::TxnId as LockTxn;
use braid_lsm::{CommitTs, KeySpan};

use crate::command::{Act, Write};
use crate::ids::TxnId;
use crate::leading::room::puts;
use crate::lease::micros;
use crate::machine::newest;
use crate::prepared::{Decision, Prepared};
use crate::replica::{Matter, Replica, Tried};
use crate::request::{Answer, PrepareAsk, RequestNumber, Unfinished};
use crate::serving::spans_of;

impl Replica {
    pub(crate) fn prepare(&mut self, number: RequestNumber, ask: &PrepareAsk) -> Result<Tried> {
        let spans: Vec<KeySpan> = ask.writes.iter().map(Write::span).collect();
        let reads = spans_of(&ask.reads);
        let matter = Matter::Part(ask.txn, ask.owner);
        let touched = (ask.txn.began, reads.as_slice(), spans.as_slice());
        if let Some(tried) = self.not_ready(number, matter, touched)? {
            return Ok(tried);
        }
        if let Some(part) = self.machine.prepared.get(&ask.txn) {
            return Ok(Tried::Answer(Answer::Prepared { bound: part.bound }));
        }
        if let Some(tried) = self.in_the_way_of_writes(Some(ask.txn), &reads, &spans) {
            return Ok(tried);
        }
        if let Some(no) = self.does_not_hold(ask.locks.as_ref(), ask.read_at, &ask.reads)? {
            return Ok(Tried::Answer(no));
        }
        if self.tenure.lacks_room && puts(&ask.writes) {
            return Ok(Tried::Answer(Answer::DiskFull));
        }
        let part = Prepared {
            txn: ask.txn,
            owner: ask.owner,
            anchor: ask.anchor.clone(),
            bound: CommitTs::ZERO,
            writes: ask.writes.clone(),
            reads: reads.clone(),
            locks: self.locking.held_by(ask.owner),
        };
        let ts = self.next_write();
        let act = Act::Prepare(Box::new(part));
        self.propose_for(number, matter, (ts, spans, reads), act)
    }

    pub(crate) fn resolve(
        &mut self,
        number: RequestNumber,
        txn: TxnId,
        decision: Decision,
    ) -> Result<Tried> {
        let above = match decision {
            Decision::Committed { at, .. } => at,
            Decision::Aborted => CommitTs::ZERO,
        };
        let matter = Matter::Resolution(txn);
        if let Some(tried) = self.not_ready(number, matter, (above, &[], &[]))? {
            return Ok(tried);
        }
        if self
            .pending
            .values()
            .any(|pending| matches!(pending.matter, Matter::Part(t, _) if t == txn))
        {
            return Ok(Tried::Wait);
        }
        if !self.machine.prepared.contains_key(&txn) {
            return Ok(Tried::Answer(Answer::Fine));
        }
        let ts = self.next_write();
        self.propose_for(
            number,
            matter,
            (ts, Vec::new(), Vec::new()),
            Act::Resolve { txn, decision },
        )
    }

    /// What has become of a transaction of which nothing is known so far.
    pub(crate) fn decide(&mut self, number: RequestNumber, txn: TxnId) -> Result<Tried> {
        let matter = Matter::End(txn);
        match self.not_ready(number, matter, (txn.began, &[], &[]))? {
            // What has happened is remembered as long as anybody may ask.
            Some(Tried::Answer(Answer::OutcomeUnknown)) => Ok(Tried::Answer(Answer::Aborted)),
            Some(tried) => Ok(tried),
            None => {
                let ts = self.next_write();
                let act = Act::Abort { txn };
                self.propose_for(number, matter, (ts, Vec::new(), Vec::new()), act)
            }
        }
    }

    /// Nobody waits for a transaction's outcome any more.
    pub(crate) fn settle(&mut self, number: RequestNumber, txn: TxnId) -> Result<Tried> {
        let matter = Matter::Record(txn);
        if let Some(tried) = self.not_ready(number, matter, (CommitTs::ZERO, &[], &[]))? {
            return Ok(tried);
        }
        let record = self.machine.outcomes.record_of(txn);
        if record.is_none_or(|record| record.anchor.is_none()) {
            return Ok(Tried::Answer(Answer::Fine));
        }
        let ts = self.next_write();
        self.propose_for(number, matter, (ts, Vec::new(), Vec::new()), Act::Settle { txn })
    }

    /// Whether a transaction over several ranges is prepared here, or was decided here and not
    /// everybody knows it.
    pub(crate) fn has_unfinished(&self) -> bool {
        !self.machine.prepared.is_empty() || self.machine.outcomes.anchored().next().is_some()
    }

    pub(crate) fn unfinished(&self) -> Tried {
        if !self.serves(self.clocks.now()) {
            return self.elsewhere().map_or(Tried::Wait, Tried::Answer);
        }
        let old = self.machine.prepared.values().filter(|part| self.is_abandoned(part.bound));
        let decided = self.machine.outcomes.anchored();
        let decided = decided.filter(|(_, record)| self.is_abandoned(record.since));
        Tried::Answer(Answer::Unfinished(Unfinished {
            prepared: old.map(|part| (part.txn, part.anchor.clone())).collect(),
            decided: decided
                .filter_map(|(txn, record)| Some((txn, record.decision, record.anchor.clone()?)))
                .collect(),
        }))
    }

    /// Whether something that began then should be at its end.
    fn is_abandoned(&self, since: CommitTs) -> bool {
        micros(since) + self.options.abandoned_micros < self.clocks.wall.now_micros()
    }

    fn wait_for(&self, part: &Prepared) -> Tried {
        match self.is_abandoned(part.bound) {
            true => {
                let (txn, anchor) = (part.txn, part.anchor.clone());
                Tried::Answer(Answer::Blocked { txn, anchor })
            }
            false => Tried::Wait,
        }
    }

    /// Why spans cannot be read as of a time: something is prepared there that may happen before.
    pub(crate) fn in_the_way_of_reads(&self, spans: &[KeySpan], at: CommitTs) -> Option<Tried> {
        self.prepared_in(spans, at).map(|part| self.wait_for(part))
    }

    /// Something that is prepared and may be written into these spans at or below a time.
    pub(crate) fn prepared_in(&self, spans: &[KeySpan], at: CommitTs) -> Option<&Prepared> {
        let mut parts = self.machine.prepared.values();
        parts.find(|part| part.bound <= at && part.writes_into(spans))
    }

    /// Why something cannot be written: what is prepared has to do with it. `who` has prepared
    /// something elsewhere, or may have.
    pub(crate) fn in_the_way_of_writes(
        &self,
        who: Option<TxnId>,
        reads: &[KeySpan],
        writes: &[KeySpan],
    ) -> Option<Tried> {
        let in_the_way = |part: &&Prepared| {
            Some(part.txn) != who
                && (part.writes_into(reads) || part.writes_into(writes) || part.reads_from(writes))
        };
        let mut wait = None;
        for part in self.machine.prepared.values().filter(in_the_way) {
            match self.wait_for(part) {
                Tried::Wait if who.is_some_and(|who| who > part.txn) => {
                    wait = Some(Tried::Answer(Answer::Yield));
                }
                Tried::Wait => wait = wait.or(Some(Tried::Wait)),
                blocked => return Some(blocked),
            }
        }
        wait
    }

    /// Whether something writes there of which it is not known what the outcome is.
    pub(crate) fn is_being_written(&self, spans: &[KeySpan]) -> bool {
        self.is_latched(spans, newest())
            || self.machine.prepared.values().any(|part| part.writes_into(spans))
    }

    /// What is said to those who wait for a lock there, if they wait for somebody who should be at
    /// his end.
    pub(crate) fn abandoned_at(&self, span: &KeySpan) -> Option<Answer> {
        let there = std::slice::from_ref(span);
        let in_the_way = |part: &&Prepared| {
            self.is_abandoned(part.bound) && (part.writes_into(there) || part.locks_in(span))
        };
        let part = self.machine.prepared.values().find(in_the_way)?;
        Some(Answer::Blocked { txn: part.txn, anchor: part.anchor.clone() })
    }

    /// Whose locks stay whatever their coordinators say.
    pub(crate) fn owners_of_parts(&self) -> BTreeSet<LockTxn> {
        let pending = self.pending.values().filter_map(|pending| match pending.matter {
            Matter::Part(_, owner) => Some(owner),
            _ => None,
        });
        pending.chain(self.machine.prepared.values().map(|part| part.owner)).collect()
    }
}
