//! Applies the entries of a range's log to the store, each exactly once.
//!
//! A pure function of the log: what an entry does follows from the entries before it, so it is the
//! same on all replicas. What an entry does is one batch: its writes, the outcome of its
//! transaction, and the range's state with the entry's place in the log. After a crash the store
//! has a prefix of the batches, and so knows from which entry to go on.
//!
//! An entry comes to *nothing* if it was proposed under another lease than the one that holds at
//! its place, if it repeats a proposal or a transaction, or if its timestamp is not the lease's.
//! What comes to nothing is not written either: applied again after a crash it comes to nothing
//! again.
//!
//! Timestamps of entries with an effect only grow: a holder takes them from its clock in the order
//! in which it proposes, and a lease begins above the end of the one before it. The machine
//! insists on it, since records without a time of their own are stamped with them.
//!
//! A *threshold* says that nobody reads as of a time below it. It moves by an entry, and never
//! above what may still be written: rows of the past are taken in above it only, and while a
//! prepared part may happen at or below it, it stays. A range that is split off inherits it.
//!
//! Between its threshold and the oldest data above that a range is *settled*: a threshold there
//! would let nothing more go. It does not move there, and does not hold that of the store either;
//! so the store's may be above times of entries that come late. It is lowered for these: of data
//! that was not written between two thresholds the higher one drops what the lower one does.
//!
//! Data may have an older timestamp than its entry: rows that are taken in, and what was prepared
//! and is resolved. Such data is a batch of its own, in front of the entry's. If a crash keeps only
//! the first one, the entry is applied again: rows are put again as they are, and what is resolved
//! has left a mark with its data and is not written twice.

use std::collections::BTreeMap;

use braid_consensus::codec::Reader;
use braid_consensus::{Entry, EntryKind, Error, LogIndex, Result, Term};
use braid_kv::{RowForm, StoredKeys, TxnId as LockTxn};
use braid_lsm::{Batch, CommitTs, Db, KeySpan, Pending, RowClassFn, ScanOptions, View};
use bytes::Bytes;

use crate::command::{Act, Command, Split, Write};
use crate::foreign::Foreign;
use crate::ids::{NodeId, RangeId, TxnId};
use crate::lease::Lease;
use crate::local_keys;
use crate::outcomes::{Outcome, Outcomes};
use crate::prepared::{Decision, Prepared};
use crate::splitting::SplitPoints;
use crate::state::RangeState;

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Applied {
    /// It is the group's own.
    Foreign,
    /// It came to nothing.
    Nothing { lease: u64, proposal: u64 },
    /// It had its effect.
    Done { lease: u64, proposal: u64 },
    /// There is a lease that is not a renewal; who had it before.
    Leased { before: NodeId },
    /// The range was split: the state of the new one.
    Split { lease: u64, proposal: u64, right: Box<RangeState> },
}

/// What is known of the values of data.
#[derive(Clone, Copy)]
pub(crate) struct ValueForms {
    pub(crate) row_class: RowClassFn,
    pub(crate) row_form: Option<RowForm>,
    pub(crate) split_points: SplitPoints,
}

/// See the [module's page](self).
pub(crate) struct Machine {
    forms: ValueForms,
    db: Db,
    pub(crate) state: RangeState,
    pub(crate) outcomes: Outcomes,
    /// What is prepared and not resolved.
    pub(crate) prepared: BTreeMap<TxnId, Prepared>,
    /// Whose parts were resolved since somebody looked.
    pub(crate) resolved: Vec<LockTxn>,
    /// The place in the log that the store knows.
    pub(crate) stored: LogIndex,
    /// The last batch.
    pub(crate) pending: Option<Pending>,
    /// What other clocks than the holder's have stamped.
    pub(crate) foreign: Foreign,
}

impl Machine {
    /// The machine of a range as the store has it.
    pub(crate) fn open(
        db: Db,
        state: RangeState,
        window_micros: u64,
        forms: ValueForms,
    ) -> Result<Machine> {
        let range = state.descriptor.id;
        let damaged = |what: &str| Error::Inconsistent(format!("{what} of {range:?} is damaged"));
        let (mut stored, mut prepared) = (Vec::new(), BTreeMap::new());
        let view = db.view(newest())?;
        let mut scan = view.scan(local_keys::outcomes(range), ScanOptions::default())?;
        while let Some(row) = scan.next_row()? {
            let txn = local_keys::txn_of(&row.key);
            let (Some(txn), Some(outcome)) = (txn, Outcome::decode(&row.value)) else {
                return Err(damaged("an outcome"));
            };
            stored.push((txn, outcome));
        }
        let mut scan = view.scan(local_keys::all_prepared(range), ScanOptions::default())?;
        while let Some(row) = scan.next_row()? {
            let part = Prepared::decode(&mut Reader::new(&row.value));
            let part = part.ok_or_else(|| damaged("a prepared part"))?;
            prepared.insert(part.txn, part);
        }
        let mut outcomes = Outcomes::new(window_micros);
        outcomes.load(stored);
        let stored = state.applied;
        let resolved = Vec::new();
        let foreign = Foreign::since(state.foreign, state.lease.start);
        let pending = None;
        Ok(Machine { forms, db, state, outcomes, prepared, resolved, stored, pending, foreign })
    }

    fn range(&self) -> RangeId {
        self.state.descriptor.id
    }

    /// The data, to be asked.
    pub(crate) fn keys(&self) -> StoredKeys<'_> {
        StoredKeys::new(&self.db, self.forms.row_class, self.forms.row_form)
    }

    /// Where keys may be parted.
    pub(crate) fn split_points(&self) -> SplitPoints {
        self.forms.split_points
    }

    /// The data as of a time.
    pub(crate) fn view(&self, at: CommitTs) -> braid_lsm::Result<View> {
        self.db.view(at)
    }

    /// Whether an entry can be applied without waiting for the store's background work.
    pub(crate) fn has_room(&self) -> bool {
        self.db.has_room()
    }

    /// Applies an entry, which is the one behind the last one.
    pub(crate) fn apply(&mut self, entry: &Entry) -> Result<Applied> {
        let range = self.range();
        let wrong = |reason: &str| {
            Err(Error::Inconsistent(format!("{range:?}, {}: {reason}", entry.index)))
        };
        if entry.index != self.state.applied.next() {
            return wrong("it is not the entry that follows");
        }
        self.state.applied = entry.index;
        if entry.data.is_empty() {
            return Ok(Applied::Foreign);
        }
        let Some(command) = entry.command().as_deref().and_then(Command::decode) else {
            return wrong("this version does not understand the entry");
        };
        let Command { lease, proposal, ts, act } = command;
        if matches!(act, Act::Replicas(_)) != (entry.kind == EntryKind::Replicas) {
            return wrong("its command is not one of its kind");
        }
        if !self.has_effect(lease, proposal, ts, &act) {
            return Ok(Applied::Nothing { lease, proposal });
        }
        if ts <= self.state.stamp {
            return wrong("its timestamp is not above those of the entries before it");
        }
        let mut batch = Batch::at(ts);
        let done = match act {
            Act::Lease(next) if next.sequence != lease => {
                let before = self.holder();
                self.state.lease = Lease { term: entry.term, ..next };
                Applied::Leased { before }
            }
            Act::Split { split, is_remembered } => {
                if is_remembered {
                    self.state.unfounded.push(split.right);
                }
                let right = Box::new(self.split(&mut batch, split, ts));
                Applied::Split { lease, proposal, right }
            }
            act => {
                self.perform(&mut batch, act, ts)?;
                Applied::Done { lease, proposal }
            }
        };
        self.state.stamp = ts;
        self.state.proposal = if matches!(done, Applied::Leased { .. }) { 0 } else { proposal };
        batch.put(&local_keys::state(range), &self.state.encode());
        self.make_room_at(ts)?;
        self.pending = Some(self.db.apply_at_once(batch)?);
        self.stored = entry.index;
        Ok(done)
    }

    /// What an act does within the range and its lease.
    fn perform(&mut self, batch: &mut Batch, act: Act, ts: CommitTs) -> Result<()> {
        let range = self.range();
        match act {
            Act::Commit { txn, writes, anchor } => {
                writes.iter().for_each(|write| put(batch, write));
                if !writes.is_empty() {
                    self.state.note_data(ts);
                }
                let decision = Decision::Committed { at: ts, by: self.holder() };
                self.remember(batch, txn, Outcome { decision, since: ts, anchor });
            }
            // Data first, in a batch of its own time: if only that survives a crash, the same rows
            // are put again at the same time, which changes nothing.
            Act::Ingest { txn, at, rows } => {
                let mut data = Batch::at(at);
                rows.iter().for_each(|(key, value)| data.put(key, value));
                self.write_data(data)?;
                let decision = Decision::Committed { at: ts, by: self.holder() };
                self.remember(batch, txn, Outcome { decision, since: ts, anchor: None });
            }
            Act::Lease(next) => self.state.lease.expiry = next.expiry,
            Act::Release => self.state.lease.expiry = CommitTs(ts.0 + 1),
            Act::Cut(index) => self.state.cut = index,
            Act::Gc(threshold) => self.state.move_threshold(threshold),
            Act::Replicas(change) => self.state.descriptor.carry_out(change),
            Act::Prepare(part) => {
                let part = Prepared { bound: ts, ..*part };
                let mut record = Vec::new();
                part.encode(&mut record);
                batch.put(&local_keys::prepared(range, part.txn), &record);
                self.prepared.insert(part.txn, part);
            }
            Act::Resolve { txn, decision } => self.resolve(batch, txn, (decision, ts))?,
            Act::Abort { txn } => {
                let decision = Decision::Aborted;
                self.remember(batch, txn, Outcome { decision, since: ts, anchor: None });
            }
            Act::Settle { txn } => {
                if let Some(decision) = self.outcomes.of(txn) {
                    self.remember(batch, txn, Outcome { decision, since: ts, anchor: None });
                }
            }
            Act::Founded(range) => self.state.unfounded.retain(|known| *known != range),
            Act::Split { .. } => unreachable!("a split makes a range"),
        }
        Ok(())
    }

    /// Data with a time of its own.
    fn write_data(&mut self, data: Batch) -> Result<()> {
        let at = data.ts();
        self.state.note_data(at);
        self.make_room_at(at)?;
        drop(self.db.apply_at_once(data)?);
        Ok(())
    }

    /// The store takes in what happens at that time.
    fn make_room_at(&self, at: CommitTs) -> Result<()> {
        if at <= self.db.gc_threshold() {
            self.db.lower_gc_threshold(self.state.gc)?;
        }
        Ok(())
    }

    /// Up to where a threshold lets nothing go in this range that its own does not: that of the
    /// store stays there. `None`: there is nothing above its own at all.
    pub(crate) fn holds_threshold(&self) -> Option<CommitTs> {
        let first = (self.state.first.0 < u64::MAX).then_some(self.state.first);
        let next = first.into_iter().chain(self.oldest_write()).min();
        next.map(|next| self.state.gc.max(CommitTs(next.0 - 1)))
    }

    /// Below this nothing can be read here, nor relied upon.
    pub(crate) fn oldest_readable(&self) -> CommitTs {
        self.state.gc.max(self.db.gc_threshold())
    }

    /// What was prepared happens at the time that was decided, or goes.
    fn resolve(
        &mut self,
        batch: &mut Batch,
        txn: TxnId,
        (decision, ts): (Decision, CommitTs),
    ) -> Result<()> {
        let range = self.range();
        let part = self.prepared.remove(&txn).expect("only what is prepared is resolved");
        if let Decision::Committed { at, by } = decision {
            let done = local_keys::done(range, txn);
            // What only reads may be decided at a time below the threshold.
            if !part.writes.is_empty() && self.db.get(&done, newest())?.is_none() {
                let mut data = Batch::at(at);
                part.writes.iter().for_each(|write| put(&mut data, write));
                data.put(&done, &[]);
                self.write_data(data)?;
            }
            batch.delete(&done);
            if by != self.holder() {
                self.state.foreign = self.state.foreign.max(at);
                self.foreign.note(at, by);
            }
        }
        batch.delete(&local_keys::prepared(range, txn));
        self.remember(batch, txn, Outcome { decision, since: ts, anchor: None });
        self.resolved.push(part.owner);
        Ok(())
    }

    /// Whether a command counts at this place of the log.
    fn has_effect(&self, lease: u64, proposal: u64, ts: CommitTs, act: &Act) -> bool {
        let (held, span) = (&self.state.lease, &self.state.descriptor.span);
        if lease != held.sequence {
            return false;
        }
        let in_lease = proposal > self.state.proposal && held.start <= ts && ts < held.expiry;
        match act {
            Act::Lease(next) if next.sequence == held.sequence => {
                let own = next.holder == held.holder && next.expiry > held.expiry;
                own && proposal > self.state.proposal
            }
            // The holder's own next lease may begin at once: it knows what it has served.
            Act::Lease(next) => {
                let after = next.holder == held.holder || next.start > held.expiry;
                let votes = self.state.descriptor.is_voter(next.holder);
                after && votes && next.sequence == held.sequence + 1
            }
            // Writes may have been proposed before the range was split.
            Act::Commit { txn, writes, .. } => {
                let inside = writes.iter().all(|write| span.covers(&write.span()));
                in_lease && inside && self.outcomes.of(*txn).is_none()
            }
            Act::Ingest { txn, at, rows } => {
                let inside = rows.iter().all(|(key, _)| span.contains(key));
                let in_time = self.state.gc < *at && *at < ts;
                in_lease && inside && in_time && self.outcomes.of(*txn).is_none()
            }
            Act::Release => in_lease,
            Act::Replicas(change) => {
                let allowed = self.state.descriptor.allows(*change, held.holder);
                in_lease && allowed && self.state.unfounded.is_empty()
            }
            Act::Cut(index) => {
                in_lease && *index > self.state.cut && self.state.unfounded.is_empty()
            }
            // What is prepared is written at its bound or later: above the threshold, too.
            Act::Gc(threshold) => {
                let moves = self.state.gc < *threshold && *threshold < ts;
                in_lease && moves && self.oldest_write().is_none_or(|oldest| *threshold < oldest)
            }
            Act::Founded(range) => in_lease && self.state.unfounded.contains(range),
            Act::Split { split, .. } => in_lease && span.start < split.at && split.at < span.end,
            Act::Prepare(part) => {
                let is_new = self.outcomes.of(part.txn).is_none() && !self.is_forgotten(part.txn);
                let whole = part.clipped(span);
                let inside = whole.is_some_and(|whole| whole == **part);
                in_lease && inside && is_new && !self.prepared.contains_key(&part.txn)
            }
            Act::Resolve { txn, decision } => {
                let part = self.prepared.get(txn);
                let in_time = |part: &Prepared| match decision {
                    // What only reads may have been prepared too late to matter.
                    Decision::Committed { at, .. } => {
                        *at < ts && (part.writes.is_empty() || part.bound <= *at)
                    }
                    Decision::Aborted => true,
                };
                in_lease && part.is_some_and(in_time)
            }
            Act::Abort { txn } => in_lease && self.outcomes.of(*txn).is_none(),
            Act::Settle { txn } => {
                let record = self.outcomes.record_of(*txn);
                in_lease && record.is_some_and(|record| record.anchor.is_some())
            }
        }
    }

    /// Gives the keys from there on to a range of its own. That one inherits the lease, so that
    /// nobody else serves before it is over, and all outcomes, so that a commit is answered
    /// wherever it is asked for again. What is prepared goes with its keys.
    fn split(&mut self, batch: &mut Batch, split: Split, ts: CommitTs) -> RangeState {
        let left = &mut self.state.descriptor;
        left.generation += 1;
        let mut right = left.clone();
        right.id = split.right;
        left.span.end = split.at.clone();
        right.span.start = split.at.clone();
        // No entry of the new range's log has granted it.
        let lease = Lease { term: Term(0), ..self.state.lease };
        let RangeState { foreign, gc, written, first, .. } = self.state;
        let new = RangeState::new(right);
        let right = RangeState { stamp: ts, lease, foreign, gc, written, first, ..new };
        let id = right.descriptor.id;
        batch.put(&local_keys::state(id), &right.encode());
        let mut stripped = Vec::new();
        for (txn, outcome) in self.outcomes.all() {
            // Whoever has the anchor's key keeps the record for those who wait.
            let mut copy = outcome.clone();
            match &outcome.anchor {
                Some(anchor) if anchor.key < split.at => (copy.since, copy.anchor) = (ts, None),
                Some(_) => stripped.push((txn, outcome.decision)),
                None => {}
            }
            batch.put(&local_keys::outcome(id, txn), &copy.encode());
        }
        for (txn, decision) in stripped {
            self.remember(batch, txn, Outcome { decision, since: ts, anchor: None });
        }
        self.part_prepared(batch, id, &right.descriptor.span);
        right
    }

    /// What is prepared for keys of a new range is prepared there.
    fn part_prepared(&mut self, batch: &mut Batch, right: RangeId, span: &KeySpan) {
        let own = self.state.descriptor.span.clone();
        let left = self.range();
        for (txn, part) in std::mem::take(&mut self.prepared) {
            let record = |part: &Prepared| {
                let mut record = Vec::new();
                part.encode(&mut record);
                record
            };
            if let Some(theirs) = part.clipped(span) {
                batch.put(&local_keys::prepared(right, txn), &record(&theirs));
            }
            match part.clipped(&own) {
                Some(part) => {
                    batch.put(&local_keys::prepared(left, txn), &record(&part));
                    self.prepared.insert(txn, part);
                }
                None => batch.delete(&local_keys::prepared(left, txn)),
            }
        }
    }

    /// The earliest time at which something that is prepared may be written.
    pub(crate) fn oldest_write(&self) -> Option<CommitTs> {
        let writes = self.prepared.values().filter(|part| !part.writes.is_empty());
        writes.map(|part| part.bound).min()
    }

    /// Whose clock stamps entries.
    pub(crate) fn holder(&self) -> NodeId {
        let node = self.state.descriptor.node_of(self.state.lease.holder);
        node.unwrap_or(NodeId(0))
    }

    fn remember(&mut self, batch: &mut Batch, txn: TxnId, outcome: Outcome) {
        let range = self.range();
        for gone in self.outcomes.trim(outcome.since) {
            batch.delete(&local_keys::outcome(range, gone));
        }
        batch.put(&local_keys::outcome(range, txn), &outcome.encode());
        self.outcomes.add(txn, outcome);
    }

    /// Whether the transaction's outcome is not known any more.
    pub(crate) fn is_forgotten(&self, txn: TxnId) -> bool {
        self.outcomes.is_forgotten(txn, self.state.stamp)
    }

    /// Newest change of a span above `floor`.
    pub(crate) fn newest_above(&self, span: &KeySpan, floor: CommitTs) -> Result<Option<CommitTs>> {
        Ok(self.db.newest_above(span, floor)?)
    }

    /// Newest change of a span above `floor` and not above `upto`.
    pub(crate) fn newest_between(
        &self,
        span: &KeySpan,
        (floor, upto): (CommitTs, CommitTs),
    ) -> Result<Option<CommitTs>> {
        Ok(self.db.newest_between(span, floor, upto)?)
    }

    /// Rows of a span, at most so many bytes but at least one; and what is left of it.
    pub(crate) fn rows(
        &self,
        span: &KeySpan,
        at: CommitTs,
        bytes: &mut usize,
        rows: &mut Vec<(Bytes, Bytes)>,
    ) -> Result<Option<KeySpan>> {
        let view = self.db.view(at)?;
        let mut scan = view.scan(span.clone(), ScanOptions::default())?;
        while let Some(row) = scan.next_row()? {
            let size = row.key.len() + row.value.len();
            if size > *bytes && !rows.is_empty() {
                return Ok(Some(KeySpan::new(row.key.clone(), span.end.clone())));
            }
            *bytes = bytes.saturating_sub(size);
            // The row's block is not kept for it.
            let own = |part: &Bytes| Bytes::copy_from_slice(part);
            rows.push((own(&row.key), own(&row.value)));
        }
        Ok(None)
    }
}

/// A timestamp that sees everything.
pub(crate) fn newest() -> CommitTs {
    CommitTs(u64::MAX - 1)
}

fn put(batch: &mut Batch, write: &Write) {
    match write {
        Write::Put(key, value) => batch.put(key, value),
        Write::Delete(key) => batch.delete(key),
        Write::DeleteSpan(span) => batch.delete_span(&span.start, &span.end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RangeDescriptor;
    use braid_consensus::ReplicaId;
    use braid_env::fs::MemFs;
    use braid_lsm::Options;

    fn machine() -> Machine {
        let options = Options { ballast_size: 0, ..Options::default() };
        let fs = std::sync::Arc::new(MemFs::new());
        let db = Db::open(fs, std::path::Path::new("/store"), options).expect("it opens");
        let replicas = vec![(ReplicaId(1), NodeId(1))];
        let span = KeySpan::new(local_keys::FIRST_DATA_KEY, KeySpan::all().end);
        let descriptor = RangeDescriptor::new(RangeId(1), span, replicas);
        let row_class = Options::default().row_class;
        let split_points = crate::splitting::anywhere;
        let forms = ValueForms { row_class, row_form: None, split_points };
        Machine::open(db, RangeState::new(descriptor), 1_000_000, forms).expect("it opens")
    }

    fn apply(machine: &mut Machine, lease: u64, proposal: u64, ts: u64, act: Act) -> Applied {
        let command = Command { lease, proposal, ts: CommitTs(ts), act };
        let (index, term) = (machine.state.applied.next(), Term(1));
        let entry = Entry { index, term, kind: EntryKind::Command, data: command.encode().into() };
        machine.apply(&entry).expect("it applies")
    }

    fn lease(sequence: u64, start: u64, expiry: u64) -> Act {
        let (start, expiry) = (CommitTs(start), CommitTs(expiry));
        Act::Lease(Lease { sequence, holder: ReplicaId(1), term: Term(1), start, expiry })
    }

    fn commit(number: u64) -> Act {
        let txn = TxnId { began: CommitTs(1), number };
        let writes = vec![Write::Put("\x01k".into(), number.to_string().into())];
        Act::Commit { txn, writes, anchor: None }
    }

    /// What clocks within the bound keep from happening, the sequence of the lease does as well:
    /// its holder does not know of the proposal, and may have served what it changes.
    #[test]
    fn an_entry_of_an_earlier_lease_comes_to_nothing_whatever_its_timestamp() {
        let mut machine = machine();
        let leased = |before| Applied::Leased { before: NodeId(before) };
        assert_eq!(apply(&mut machine, 0, 1, 10, lease(1, 10, 1_000)), leased(0));
        let done = Applied::Done { lease: 1, proposal: 1 };
        assert_eq!(apply(&mut machine, 1, 1, 20, commit(1)), done);
        assert_eq!(apply(&mut machine, 1, 2, 30, lease(2, 30, 2_000)), leased(1));
        let nothing = Applied::Nothing { lease: 1, proposal: 3 };
        assert_eq!(apply(&mut machine, 1, 3, 40, commit(2)), nothing);
        let cut = Act::Cut(LogIndex(1));
        assert_eq!(apply(&mut machine, 1, 3, 41, cut), nothing);
        let split = Split { at: "\x01k".into(), right: RangeId(2) };
        let split = Act::Split { split, is_remembered: true };
        assert_eq!(apply(&mut machine, 1, 3, 42, split), nothing);
        assert_eq!(apply(&mut machine, 1, 3, 43, lease(3, 43, 3_000)), nothing);
        assert_eq!(machine.state.lease.sequence, 2);
        let value = machine.db.get(b"\x01k", newest()).expect("it reads");
        assert_eq!(value.as_deref(), Some(b"1".as_slice()));
        let next = Applied::Done { lease: 2, proposal: 1 };
        assert_eq!(apply(&mut machine, 2, 1, 50, commit(3)), next);
    }

    fn part(number: u64, writes: Vec<Write>) -> Act {
        let (txn, key) = (TxnId { began: CommitTs(1), number }, Bytes::from_static(b"\x01k"));
        let (owner, anchor, bound) = (LockTxn(number), key.clone(), CommitTs::ZERO);
        let (reads, locks) = (vec![KeySpan::point(&key)], Vec::new());
        Act::Prepare(Box::new(Prepared { txn, owner, anchor, bound, writes, reads, locks }))
    }

    fn resolve(number: u64, at: u64) -> Act {
        let txn = TxnId { began: CommitTs(1), number };
        Act::Resolve { txn, decision: Decision::Committed { at: CommitTs(at), by: NodeId(1) } }
    }

    /// Applies entries of one lease; whether each had an effect. The store's threshold follows, so
    /// that it refuses what should have come to nothing.
    fn effects(machine: &mut Machine, acts: Vec<(u64, Act)>) -> Vec<bool> {
        if machine.state.lease.sequence == 0 {
            apply(machine, 0, 1, 10, lease(1, 10, 100_000));
        }
        let from = machine.state.proposal;
        let numbered = acts.into_iter().zip(from + 1..);
        let mut out = Vec::new();
        for ((ts, act), proposal) in numbered {
            let applied = apply(machine, 1, proposal, ts, act);
            out.push(!matches!(applied, Applied::Nothing { .. }));
            machine.db.set_gc_threshold(machine.state.gc).expect("it is open");
        }
        out
    }

    #[test]
    fn a_threshold_only_grows_and_stays_below_its_entry() {
        let mut machine = machine();
        let gc = |threshold| Act::Gc(CommitTs(threshold));
        let acts =
            vec![(100, gc(50)), (110, gc(50)), (120, gc(40)), (130, gc(130)), (140, gc(139))];
        assert_eq!(effects(&mut machine, acts), [true, false, false, false, true]);
        assert_eq!(machine.state.gc, CommitTs(139));
        // It is stored with the entry that moved it.
        let stored = machine.db.get(&local_keys::state(RangeId(1)), newest()).expect("it reads");
        let stored = RangeState::decode(&stored.expect("it is there")).expect("it is whole");
        assert_eq!((stored.gc, stored.applied), (CommitTs(139), machine.state.applied));
    }

    #[test]
    fn rows_of_the_past_are_taken_in_above_the_threshold_only() {
        let mut machine = machine();
        let ingest = |number, at| {
            let txn = TxnId { began: CommitTs(1), number };
            let rows = vec![(Bytes::from(format!("\x01{number}")), Bytes::new())];
            Act::Ingest { txn, at: CommitTs(at), rows }
        };
        let acts = vec![(100, Act::Gc(CommitTs(50))), (110, ingest(1, 50)), (120, ingest(2, 51))];
        assert_eq!(effects(&mut machine, acts), [true, false, true]);
    }

    #[test]
    fn a_threshold_waits_for_what_is_prepared_and_may_be_written_below_it() {
        let mut machine = machine();
        let write = vec![Write::Put("\x01k".into(), "1".into())];
        let gc = |threshold| Act::Gc(CommitTs(threshold));
        let acts = vec![
            (100, part(1, write)),
            (110, part(2, Vec::new())),
            (200, gc(100)),
            (210, gc(99)),
            // Decided as early as it may be.
            (220, resolve(1, 100)),
            (230, gc(200)),
            // What only reads may be decided below.
            (240, resolve(2, 105)),
        ];
        assert_eq!(effects(&mut machine, acts), [true, true, false, true, true, true, true]);
        assert!(machine.prepared.is_empty());
        let value = machine.db.get(b"\x01k", CommitTs(200)).expect("it reads");
        assert_eq!(value.as_deref(), Some(b"1".as_slice()));
    }

    #[test]
    fn who_is_settled_holds_no_threshold_and_what_comes_late_is_taken_in_all_the_same() {
        let mut machine = machine();
        let gc = |threshold| Act::Gc(CommitTs(threshold));
        assert_eq!(machine.holds_threshold(), None, "nothing was written yet");
        assert_eq!(effects(&mut machine, vec![(20, commit(1)), (30, commit(2))]), [true; 2]);
        assert_eq!(machine.holds_threshold(), Some(CommitTs(19)), "below the first");
        assert_eq!(effects(&mut machine, vec![(40, gc(25))]), [true]);
        assert_eq!(machine.holds_threshold(), Some(CommitTs(25)));
        assert_eq!(effects(&mut machine, vec![(50, gc(30))]), [true]);
        assert_eq!(machine.holds_threshold(), None);
        // Only what is prepared and writes nothing may be decided below.
        assert_eq!(effects(&mut machine, vec![(60, part(5, Vec::new()))]), [true]);
        assert_eq!(machine.holds_threshold(), None);
        let write = vec![Write::Put("\x01k".into(), "p".into())];
        assert_eq!(effects(&mut machine, vec![(70, part(6, write))]), [true]);
        assert_eq!(machine.holds_threshold(), Some(CommitTs(69)));
        // Other ranges have moved on, and this replica has not heard of it for long.
        machine.db.set_gc_threshold(CommitTs(1_000)).expect("it is open");
        assert_eq!(machine.oldest_readable(), CommitTs(1_000));
        let applied = apply(&mut machine, 1, 8, 80, resolve(6, 70));
        assert!(matches!(applied, Applied::Done { .. }), "{applied:?}");
        let txn = TxnId { began: CommitTs(1), number: 9 };
        let rows = vec![(Bytes::from_static(b"\x01r"), Bytes::from_static(b"r"))];
        let applied = apply(&mut machine, 1, 9, 90, Act::Ingest { txn, at: CommitTs(31), rows });
        assert!(matches!(applied, Applied::Done { .. }), "{applied:?}");
        assert_eq!(machine.oldest_readable(), CommitTs(30));
        assert_eq!(
            (machine.state.written, machine.holds_threshold()),
            (CommitTs(70), Some(CommitTs(30)))
        );
        let value = |at| machine.db.get(b"\x01k", CommitTs(at)).expect("it reads");
        assert_eq!(value(69).as_deref(), Some(b"2".as_slice()));
        assert_eq!(value(70).as_deref(), Some(b"p".as_slice()));
    }

    #[test]
    fn a_range_that_is_split_off_inherits_the_threshold() {
        let mut machine = machine();
        let split = Split { at: "\x01k".into(), right: RangeId(2) };
        let split = Act::Split { split, is_remembered: true };
        assert_eq!(effects(&mut machine, vec![(100, Act::Gc(CommitTs(50)))]), [true]);
        let applied = apply(&mut machine, 1, 2, 110, split);
        let Applied::Split { right, .. } = applied else { panic!("{applied:?}") };
        assert_eq!(right.gc, CommitTs(50));
        let stored = machine.db.get(&local_keys::state(RangeId(2)), newest()).expect("it reads");
        assert_eq!(RangeState::decode(&stored.expect("it is there")), Some(*right));
    }
}
