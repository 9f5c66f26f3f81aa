//! One replica of a range: it asks for the lease when it leads, and serves while it has it.
//!
//! ```text
//!   request ----> answered at once | waits | proposed
//!                                    |         |  latches on what it writes
//!                        tried again |         v
//!                        when something      applied ----> answered, latches given back
//!                        was applied
//! ```
//!
//! Rules:
//!
//! 1. A replica *serves* a timestamp if it has applied the lease that this process asked for, and
//!    the lease covers the timestamp. A process that was started anew serves under no lease that it
//!    had before: it does not know what it has served.
//! 2. It *proposes* only while it also leads in the term of its lease. So proposals of one lease
//!    are in the log in the order of their numbers and timestamps, or not at all.
//! 3. A read waits for every proposal that writes what it reads at or below its timestamp. The
//!    clock is lifted to each timestamp that was served, so that later writes are above it.
//!    What is closed is read without a lease.
//! 4. What was proposed under a lease that has ended, and was not applied, will never be: when
//!    the next lease is applied, its askers are told to ask again.
//! 5. Applying never waits for the store. What is committed waits while there is no room for it,
//!    and all else goes on: ticks, votes, leases, reads. While much waits, no more is taken.
//! 6. A replica that has applied a split knows of every commit of keys on both sides whether it has
//!    happened: later it cannot. So it looks for the outcome before it says that the keys are not
//!    its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use braid_consensus::{Entry, EntryKind, Error, Group, LogIndex, Result, Term};
use braid_env::clock::{Clock, Hlc};
use braid_kv::{KvError, Reads, TxnId as LockTxn};
use braid_lsm::{CommitTs, KeySpan, MAX_KEY_LEN};
use bytes::Bytes;

use crate::answers::{Answered, Answers};
use crate::command::{Act, Command, Split, Write};
use crate::ids::{NodeId, RangeId, TxnId};
use crate::leading::closed::ClosedTimes;
use crate::leading::moving::Giving;
use crate::leading::room::puts;
use crate::lease::{Lease, micros};
use crate::local_keys::FIRST_DATA_KEY;
use crate::locking::{Locking, span_of};
use crate::machine::{Applied, Machine};
use crate::members::replica_changes::differ;
use crate::prepared::Decision;
use crate::replicas::NodeOptions;
use crate::request::{Answer, Ask, CommitAsk, HeldLocks, PrepareAsk, Request, RequestNumber};
use crate::serving::{failed, spans_of};
use crate::state::RangeState;

/// Bytes that a commit may write: it is one entry.
const MAX_COMMIT_BYTES: usize = 64 << 20;

/// While so many bytes of committed entries wait for room in the store, no more are taken.
const MAX_UNAPPLIED_BYTES: usize = 16 << 20;

/// The clocks of a node.
#[derive(Clone)]
pub(crate) struct Clocks {
    pub(crate) wall: Arc<dyn Clock>,
    pub(crate) hlc: Arc<Hlc>,
}

impl Clocks {
    pub(crate) fn now(&self) -> CommitTs {
        CommitTs(self.hlc.now())
    }
}

/// What a proposal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Matter {
    Split,
    /// Whether a transaction happens.
    End(TxnId),
    /// A part of a transaction, with the owner of its locks.
    Part(TxnId, LockTxn),
    /// The end of such a part.
    Resolution(TxnId),
    /// The end of a transaction's record.
    Record(TxnId),
    /// Up to where versions go.
    Threshold,
    /// Who has a replica.
    Replicas,
    /// That a range is founded.
    Founded(RangeId),
}

/// What was proposed and is not applied yet.
pub(crate) struct Pending {
    pub(crate) matter: Matter,
    ts: CommitTs,
    /// Latches: what it writes.
    spans: Vec<KeySpan>,
    /// What others must not write.
    pub(crate) guarded: Vec<KeySpan>,
    askers: Vec<RequestNumber>,
}

struct Waiting {
    number: RequestNumber,
    ask: Ask,
    ticks_left: u64,
}

/// Under which lease this process serves.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tenure {
    /// The lease that it may serve under: it has asked for it and applied it.
    pub(crate) lease: Option<u64>,
    /// It is being given to another replica.
    pub(crate) giving: Option<Giving>,
    /// Of the range's voters fewer than a majority have room for what adds data.
    pub(crate) lacks_room: bool,
    /// One that was asked for: its sequence, and the place of the entry.
    asked: Option<(u64, Term, LogIndex)>,
}

/// Committed entries that wait for room in the store.
#[derive(Default)]
struct Unapplied {
    entries: VecDeque<Entry>,
    bytes: usize,
}

/// What the replica's log is needed for.
#[derive(Default)]
pub(crate) struct LogUse {
    unapplied: Unapplied,
    /// What lies behind this is needed for states that are on their way to others.
    pub(crate) needed: Option<LogIndex>,
    /// Its oldest entries keep files that could go.
    pub(crate) is_old: bool,
}

/// What comes of trying to serve a request.
pub(crate) enum Tried {
    Answer(Answer),
    /// What was read, and above which time writes are certain to be later than the reader.
    Read(Answer, CommitTs),
    Wait,
    /// It is answered when it has happened.
    Later,
}

/// See the [module's page](self).
pub(crate) struct Replica {
    pub(crate) group: Group,
    pub(crate) machine: Machine,
    pub(crate) options: NodeOptions,
    pub(crate) clocks: Clocks,
    pub(crate) locking: Locking,
    pub(crate) tenure: Tenure,
    pub(crate) closed: ClosedTimes,
    /// Somebody wants the range to be served.
    pub(crate) wanted: bool,
    pub(crate) log: LogUse,
    last_proposal: u64,
    /// By lease and proposal.
    pub(crate) pending: BTreeMap<(u64, u64), Pending>,
    waiting: VecDeque<Waiting>,
    pub(crate) answers: Answers,
    pub(crate) progress: Progress,
    /// For so many ticks the range does not sleep, whatever happens.
    pub(crate) rest_left: u64,
}

/// What came of applying.
#[derive(Default)]
pub(crate) struct Progress {
    /// Term of the last entry.
    term: Term,
    /// Ranges that this one was split into, of which there is no replica yet.
    pub(crate) born: Vec<RangeState>,
    /// The replica was removed, and applies no more.
    pub(crate) is_removed: bool,
    /// It had heard of no leader when somebody looked last.
    pub(crate) is_leaderless: bool,
}

impl Replica {
    pub(crate) fn new(
        group: Group,
        machine: Machine,
        options: NodeOptions,
        clocks: Clocks,
    ) -> Replica {
        let answers = Answers::new(clocks.hlc.clone());
        Replica {
            group,
            machine,
            options,
            clocks,
            locking: Locking::default(),
            tenure: Tenure::default(),
            closed: ClosedTimes::default(),
            wanted: true,
            log: LogUse::default(),
            last_proposal: 0,
            pending: BTreeMap::new(),
            waiting: VecDeque::new(),
            answers,
            progress: Progress::default(),
            rest_left: options.quiet_ticks.unwrap_or(0),
        }
    }

    /// Begins its life by a split of another one. Where that one may serve, this one may, too: the
    /// same process has served its keys, and has locked them.
    pub(crate) fn inherit(&mut self, left: &mut Replica) -> Result<()> {
        self.tenure = Tenure { giving: None, asked: None, ..left.tenure };
        self.machine.foreign = left.machine.foreign.clone();
        // Who waited for something else when the split was applied may wait for a lock since then.
        left.dismiss_lock_waiters();
        self.locking = left.locking.split_off(&self.machine.state.descriptor.span.start);
        match left.group.is_leader() {
            true => self.group.campaign(),
            false => Ok(()),
        }
    }

    /// Time has passed, but not for the group if it is to wait with an election.
    pub(crate) fn tick(&mut self, waits_with_election: bool) -> Result<()> {
        self.rest_left = self.rest_left.saturating_sub(1);
        if !waits_with_election {
            self.group.tick();
        }
        self.tick_giving()?;
        self.hand_on_without_a_vote();
        self.look_after_lease()?;
        self.propose_cut()?;
        for waiting in &mut self.waiting {
            waiting.ticks_left -= 1;
        }
        let is_late = |waiting: &Waiting| waiting.ticks_left == 0;
        for late in self.waiting.iter().filter(|waiting| is_late(waiting)) {
            self.answers.push((late.number, Answer::Again));
        }
        self.waiting.retain(|waiting| !is_late(waiting));
        self.end_silent_sessions()?;
        self.tell_of_abandoned();
        self.look_for_deadlocks()?;
        self.try_waiting()
    }

    /// A request has come; it is answered now or later.
    pub(crate) fn request(&mut self, number: RequestNumber, request: Request) -> Result<()> {
        self.is_wanted_again();
        match self.attempt(number, &request.ask)? {
            Tried::Answer(answer) => self.answer(number, answer),
            Tried::Read(answer, certain) => self.answer_read(number, answer, certain),
            Tried::Later => {}
            Tried::Wait => {
                let ticks_left = self.options.patience_ticks.max(1);
                self.waiting.push_back(Waiting { number, ask: request.ask, ticks_left });
                self.look_after_lease()?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, number: RequestNumber, answer: Answer) {
        // Those of a lease are in the order of their times.
        match self.pending.values().next() {
            Some(oldest) => self.answers.push_below(oldest.ts, (number, answer)),
            None => self.answers.push((number, answer)),
        }
    }

    fn answer_read(&mut self, number: RequestNumber, answer: Answer, certain: CommitTs) {
        self.answer(number, answer);
        self.answers.is_certain_above(certain);
    }

    /// Takes committed entries, to be applied.
    pub(crate) fn take_committed(&mut self, entries: Vec<Entry>) {
        self.log.unapplied.bytes += entries.iter().map(|entry| entry.data.len()).sum::<usize>();
        self.log.unapplied.entries.extend(entries);
    }

    /// Whether so much waits to be applied that no more should come.
    pub(crate) fn is_choked(&self) -> bool {
        self.log.unapplied.bytes > MAX_UNAPPLIED_BYTES
    }

    /// Applies what is committed, as far as the store has room.
    pub(crate) fn apply(&mut self) -> Result<()> {
        let mut last = None;
        while !self.log.unapplied.entries.is_empty()
            && self.machine.has_room()
            && !self.progress.is_removed
        {
            let entry = self.log.unapplied.entries.pop_front().expect("there is one");
            self.log.unapplied.bytes -= entry.data.len();
            let applied = self.machine.apply(&entry)?;
            self.progress.term = entry.term;
            if entry.kind == EntryKind::Replicas && matches!(applied, Applied::Done { .. }) {
                self.follow_change(&entry)?;
            }
            match applied {
                Applied::Foreign => {}
                Applied::Nothing { lease, proposal } | Applied::Done { lease, proposal } => {
                    self.settle_proposal(lease, proposal);
                }
                Applied::Leased { before } => self.begin_lease(before),
                Applied::Split { lease, proposal, right } => {
                    self.settle_proposal(lease, proposal);
                    // Who waits for locks may want them of the other range.
                    self.dismiss_lock_waiters();
                    self.progress.born.push(*right);
                }
            }
            self.tenure.asked = self.tenure.asked.filter(|asked| entry.index < asked.2);
            last = Some(entry.index);
        }
        let Some(last) = last else { return Ok(()) };
        self.has_stirred();
        self.group.applied(last);
        self.advance_giving()?;
        self.look_after_lease()?;
        // What is written here from now on is above what others have stamped.
        self.clocks.hlc.update(self.machine.state.foreign.0);
        self.end_resolved()?;
        self.try_waiting()
    }

    /// The descriptor has other replicas: so has the group.
    fn follow_change(&mut self, entry: &Entry) -> Result<()> {
        let group = self.group.apply_replicas(entry)?;
        if let Some(why) = differ(&group, &self.machine.state.replicas(), &self.group) {
            return Err(Error::Inconsistent(format!("{}: {why}", entry.index)));
        }
        self.progress.is_removed = !group.contains(self.group.id());
        Ok(())
    }

    /// A proposal's entry was applied, with or without an effect.
    fn settle_proposal(&mut self, lease: u64, proposal: u64) {
        let Some(pending) = self.pending.remove(&(lease, proposal)) else { return };
        let answer = match pending.matter {
            Matter::Split => Answer::Again,
            Matter::Threshold | Matter::Replicas | Matter::Founded(_) => Answer::Fine,
            Matter::End(txn) => self.decided(txn).unwrap_or(Answer::Again),
            Matter::Part(txn, _) => match self.machine.prepared.get(&txn) {
                Some(part) => Answer::Prepared { bound: part.bound },
                None => self.decided(txn).unwrap_or(Answer::Again),
            },
            Matter::Resolution(txn) => match self.machine.prepared.contains_key(&txn) {
                true => Answer::Again,
                false => Answer::Fine,
            },
            Matter::Record(txn) => match self.machine.outcomes.record_of(txn) {
                Some(record) if record.anchor.is_some() => Answer::Again,
                _ => Answer::Fine,
            },
        };
        self.answers.extend(pending.askers.into_iter().map(|asker| (asker, answer.clone())));
    }

    /// What has become of a transaction, if that is known.
    pub(crate) fn decided(&self, txn: TxnId) -> Option<Answer> {
        Some(match self.machine.outcomes.of(txn)? {
            Decision::Committed { at, by } => Answer::Committed { at, by },
            Decision::Aborted => Answer::Aborted,
        })
    }

    /// There is a new lease: what was proposed under earlier ones and was not applied, is lost.
    fn begin_lease(&mut self, holder_before: NodeId) {
        let lease = self.machine.state.lease;
        let asked = self
            .tenure
            .asked
            .is_some_and(|asked| (asked.0, asked.1) == (lease.sequence, lease.term));
        let before = self.tenure.lease;
        self.tenure.lease = (asked && lease.holder == self.group.id()).then_some(lease.sequence);
        self.last_proposal = 0;
        // Nobody else has had it in between.
        let goes_on = self.tenure.lease.is_some() && before == Some(lease.sequence - 1);
        if !goes_on {
            let holder = self.machine.holder();
            self.machine.foreign.note_lease(holder_before, holder, lease.start);
            self.dismiss_lock_waiters();
            let before = std::mem::take(&mut self.locking);
            self.locking = Locking::of_lease(lease.sequence, before);
            if self.tenure.lease.is_some() {
                self.locking.restore(self.machine.prepared.values());
            }
        }
        for (_, lost) in std::mem::take(&mut self.pending) {
            self.answers.extend(lost.askers.into_iter().map(|asker| (asker, Answer::Again)));
        }
    }

    /// Whoever waits for locks is told to ask again.
    fn dismiss_lock_waiters(&mut self) {
        let askers = self.locking.dismiss();
        self.answers.extend(askers.into_iter().map(|asker| (asker, Answer::Again)));
    }

    /// Whether this replica may serve a timestamp; see the rules.
    pub(crate) fn serves(&self, ts: CommitTs) -> bool {
        let lease = &self.machine.state.lease;
        self.tenure.lease == Some(lease.sequence)
            && lease.covers(ts, self.options.max_clock_offset_micros)
    }

    /// Whether a lease was asked for, and nobody knows yet what becomes of that.
    pub(crate) fn is_asking(&self) -> bool {
        self.tenure.asked.is_some()
    }

    /// Whether requests wait to be tried again.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Nobody waits any more for requests of that kind: whoever has asked is gone.
    pub(crate) fn dismiss(&mut self, is_gone: impl Fn(&Ask) -> bool) {
        let gone = self.waiting.iter().filter(|waiting| is_gone(&waiting.ask));
        self.answers.extend(gone.map(|gone| (gone.number, Answer::OutcomeUnknown)));
        self.waiting.retain(|waiting| !is_gone(&waiting.ask));
    }

    /// Whether it leads in the term of its lease.
    pub(crate) fn proposes(&self) -> bool {
        let lease = &self.machine.state.lease;
        let leads = self.group.is_leader() && lease.term == self.group.term();
        leads && self.tenure.lease == Some(lease.sequence)
    }

    /// Asks for the lease, or to have it renewed, if that is due.
    fn look_after_lease(&mut self) -> Result<()> {
        // All entries of earlier terms are applied when the first one of this term is.
        let votes = self.machine.state.descriptor.is_voter(self.group.id());
        let ready = self.group.is_leader() && self.progress.term == self.group.term() && votes;
        if ready {
            // So what was asked for in one of them is there, or lost.
            self.tenure.asked = self.tenure.asked.filter(|asked| asked.1 == self.group.term());
        }
        if !ready || self.tenure.asked.is_some() || self.tenure.giving.is_some() {
            return Ok(());
        }
        let lease = self.machine.state.lease;
        let now = self.clocks.wall.now_micros();
        let expiry = Hlc::from_micros(now + self.options.lease_micros);
        if self.proposes() {
            let half_over = now + self.options.lease_micros / 2 > micros(lease.expiry);
            if half_over && std::mem::take(&mut self.wanted) && expiry > lease.expiry.0 {
                let next = Lease { expiry: CommitTs(expiry), ..lease };
                let ts = self.clocks.now();
                self.ask_for(next, ts)?;
            }
            return Ok(());
        }
        if self.tenure.lease != Some(lease.sequence) && !lease.is_over(now) {
            return Ok(());
        }
        let start = self.clocks.now();
        let (sequence, holder) = (lease.sequence + 1, self.group.id());
        let term = self.group.term();
        self.ask_for(Lease { sequence, holder, term, start, expiry: CommitTs(expiry) }, start)
    }

    fn ask_for(&mut self, lease: Lease, ts: CommitTs) -> Result<()> {
        if let Some((_, index)) = self.propose(Act::Lease(lease), ts)? {
            self.tenure.asked = Some((lease.sequence, self.group.term(), index));
        }
        Ok(())
    }

    /// Whoever waits for something is told to ask again: this replica goes.
    pub(crate) fn dismiss_all(&mut self) -> Vec<Answered> {
        self.dismiss_lock_waiters();
        let pending = std::mem::take(&mut self.pending);
        let waiting = std::mem::take(&mut self.waiting);
        let askers = pending.into_values().flat_map(|pending| pending.askers);
        let askers = askers.chain(waiting.into_iter().map(|waiting| waiting.number));
        self.answers.extend(askers.map(|asker| (asker, Answer::Again)));
        self.answers.take()
    }

    /// Lets the log be cut where all replicas have it and this one has applied it; or, if it is too
    /// long, where this one has applied it.
    fn propose_cut(&mut self) -> Result<()> {
        let ts = self.clocks.now();
        // The lease of a range that nobody asks anything is over.
        self.wanted |= self.keeps_files();
        if !self.proposes() || !self.serves(ts) {
            return Ok(());
        }
        let state = &self.machine.state;
        if !state.unfounded.is_empty() {
            return Ok(());
        }
        let Some(matched) = self.group.matched_by_all() else { return Ok(()) };
        let index = matched.min(self.machine.stored);
        if index.0 >= state.cut.0 + self.options.cut_after_entries {
            self.propose(Act::Cut(index), ts)?;
            return Ok(());
        }
        // Not before what was decided has been done.
        if self.group.cut_at() < state.cut {
            return Ok(());
        }
        let excess = self.group.excess();
        let in_files = self.log.is_old.then(|| self.group.in_files_up_to());
        let Some(index) = excess.max(in_files) else { return Ok(()) };
        let index = index.min(self.machine.stored).min(self.log.needed.unwrap_or(index));
        if index > state.cut {
            self.propose(Act::Cut(index), ts)?;
        }
        Ok(())
    }

    /// Whether this replica leads and should have its log cut since its oldest entries keep files
    /// that could go, and are not in memory, from where they could be written again.
    pub(crate) fn keeps_files(&self) -> bool {
        let state = &self.machine.state;
        self.log.is_old && self.group.is_leader() && self.group.in_files_up_to() > state.cut
    }

    /// Proposes; returns the proposal's number and the place of its entry, nothing if the group
    /// takes none now.
    pub(crate) fn propose(&mut self, act: Act, ts: CommitTs) -> Result<Option<(u64, LogIndex)>> {
        // A lease is small, and to lose it would help nobody.
        if self.is_choked() && !matches!(act, Act::Lease(_)) {
            return Ok(None);
        }
        let proposal = self.last_proposal + 1;
        let lease = self.machine.state.lease.sequence;
        let change = if let Act::Replicas(change) = &act { Some(*change) } else { None };
        let command = Command { lease, proposal, ts, act }.encode();
        let proposed = match change {
            Some(change) => self.group.change_replicas(&[change.of_group()], command),
            None => self.group.propose(command),
        };
        match proposed {
            Ok(index) => {
                self.last_proposal = proposal;
                Ok(Some((proposal, index)))
            }
            Err(Error::Busy | Error::NotLeader { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn try_waiting(&mut self) -> Result<()> {
        for waiting in std::mem::take(&mut self.waiting) {
            match self.attempt(waiting.number, &waiting.ask)? {
                Tried::Answer(answer) => self.answer(waiting.number, answer),
                Tried::Read(answer, certain) => self.answer_read(waiting.number, answer, certain),
                Tried::Later => {}
                Tried::Wait => self.waiting.push_back(waiting),
            }
        }
        self.advance_locks()
    }

    fn attempt(&mut self, number: RequestNumber, ask: &Ask) -> Result<Tried> {
        // First of all: it may have happened when the range still had all of its keys.
        if let Ask::Commit(CommitAsk { txn, .. })
        | Ask::Ingest { txn, .. }
        | Ask::Prepare(PrepareAsk { txn, .. })
        | Ask::Decide { txn, .. } = ask
            && let Some(decided) = self.decided(*txn)
        {
            return Ok(Tried::Answer(decided));
        }
        if let Some(answer) = self.refusal(ask) {
            return self.refused(number, ask, answer);
        }
        self.wanted = true;
        match ask {
            Ask::Read { spans, at, bytes } => self.read(spans, *at, *bytes),
            Ask::Get { keys, when } => self.get(keys, when),
            Ask::Scan { request, when } => self.scan(request, when),
            Ask::Commit(commit) => self.commit(number, commit),
            Ask::Prepare(part) => self.prepare(number, part),
            Ask::Resolve { txn, decision, .. } => self.resolve(number, *txn, *decision),
            Ask::Decide { txn, .. } => self.decide(number, *txn),
            Ask::Settle { txn, .. } => self.settle(number, *txn),
            Ask::Unfinished => Ok(self.unfinished()),
            Ask::Validate { locks, floor, through, reads } => {
                self.validate(locks.as_ref(), (*floor, *through), reads)
            }
            Ask::Lock(lock) => self.lock(number, lock),
            Ask::GiveUp { txn, step } => self.give_up(*txn, *step),
            Ask::Release { txn, step, targets, ended } => {
                self.release((*txn, *step), targets, *ended)
            }
            Ask::WaitsFor { txn, waits } => Ok(self.waits_for(*txn, waits)),
            Ask::Running { newest, running } => self.running(*newest, running),
            Ask::Ingest { txn, at, rows } => self.ingest(number, *txn, *at, rows),
            Ask::Divide(span, parts, least) => Ok(self.divide(span, *parts, *least)),
            Ask::StoredBytes(span) => Ok(self.stored_bytes(span)),
            Ask::ShowLocks => Ok(match self.serves(self.clocks.now()) {
                true => Tried::Answer(Answer::Locks(self.locking.describe())),
                false => self.elsewhere().map_or(Tried::Wait, Tried::Answer),
            }),
            Ask::Split(split) => self.split(number, split),
            Ask::SplitAt(_) => unreachable!("the node has given the new range its number"),
            Ask::ReadsFrom { .. }
            | Ask::Recall { .. }
            | Ask::Fence { .. }
            | Ask::Clock
            | Ask::Ranges
            | Ask::ShowRanges
            | Ask::UnfinishedRanges => {
                unreachable!("the node answers for all of its replicas")
            }
        }
    }

    /// Nobody is told that a commit's keys lie in several ranges now who may take that for its end:
    /// it may have been proposed when they did not, and happen yet. Whoever has the lease knows of
    /// all proposals what has become of them.
    fn refused(&mut self, number: RequestNumber, ask: &Ask, answer: Answer) -> Result<Tried> {
        if let (Answer::WrongRange { .. }, Ask::Commit(CommitAsk { txn, .. }))
        | (Answer::WrongRange { .. }, Ask::Ingest { txn, .. }) = (&answer, ask)
            && let Some(tried) = self.not_ready(number, Matter::End(*txn), (txn.began, &[], &[]))?
        {
            self.wanted = true;
            return Ok(tried);
        }
        Ok(Tried::Answer(answer))
    }

    /// Why the request can never be served here.
    fn refusal(&self, ask: &Ask) -> Option<Answer> {
        let descriptor = &self.machine.state.descriptor;
        let refused = |reason: &str| Some(Answer::Refused(reason.to_string()));
        let outside = |span: &KeySpan| span.is_empty() || !descriptor.span.covers(span);
        let local = |span: &KeySpan| span.start.as_ref() < FIRST_DATA_KEY;
        let known = vec![descriptor.clone()];
        if let Ask::Split(Split { at, .. }) = ask {
            let inside = descriptor.span.start < *at && *at < descriptor.span.end;
            return (!inside).then_some(Answer::WrongRange { known });
        }
        let (spans, bytes) = touched(ask);
        if spans.iter().any(local) {
            return refused("keys below 01 are the node's own");
        }
        if spans.iter().any(|span| span.end.len() > MAX_KEY_LEN + 1) {
            return refused("a key is longer than 65536 bytes");
        }
        if bytes > MAX_COMMIT_BYTES {
            return refused("a commit writes more than 64 MiB into one range");
        }
        spans.iter().any(outside).then_some(Answer::WrongRange { known })
    }

    /// Who else may serve; nothing if this replica may be about to.
    pub(crate) fn elsewhere(&self) -> Option<Answer> {
        if self.group.is_leader() {
            return None;
        }
        let leader = self.group.leader();
        let node = |replica| self.machine.state.descriptor.node_of(replica);
        Some(Answer::NotHolder { try_node: leader.and_then(node) })
    }

    /// Whether something that is not applied yet writes into a span at or below `ts`.
    pub(crate) fn is_latched(&self, spans: &[KeySpan], ts: CommitTs) -> bool {
        self.pending.values().any(|held| held.ts <= ts && overlap(&held.spans, spans))
    }

    fn read(&mut self, spans: &[KeySpan], at: Option<CommitTs>, bytes: usize) -> Result<Tried> {
        let now = self.clocks.now();
        let ts = at.unwrap_or(now);
        if micros(ts) > micros(now) + self.options.max_clock_offset_micros {
            let reason = "it reads a time that this node's clock has not come to";
            return Ok(Tried::Answer(Answer::Refused(reason.into())));
        }
        if !self.serves(ts.max(now)) {
            return Ok(self.elsewhere().map_or(Tried::Wait, Tried::Answer));
        }
        if let Some(collected) = self.collected(ts) {
            return Ok(Tried::Answer(Answer::Conflict(collected)));
        }
        self.clocks.hlc.update(ts.0);
        if self.is_latched(spans, ts) {
            return Ok(Tried::Wait);
        }
        if let Some(tried) = self.in_the_way_of_reads(spans, ts) {
            return Ok(tried);
        }
        let (mut rows, mut rest, mut left) = (Vec::new(), Vec::new(), bytes);
        for span in spans {
            match rest.is_empty() {
                true => rest.extend(self.machine.rows(span, ts, &mut left, &mut rows)?),
                false => rest.push(span.clone()),
            }
        }
        Ok(Tried::Answer(Answer::Rows { at: ts, rows, rest }))
    }

    fn split(&mut self, number: RequestNumber, split: &Split) -> Result<Tried> {
        let ts = self.clocks.now();
        if !self.proposes() || !self.serves(ts) {
            return Ok(self.elsewhere().map_or(Tried::Wait, Tried::Answer));
        }
        let act = Act::Split { split: split.clone(), is_remembered: true };
        self.propose_for(number, Matter::Split, (ts, Vec::new(), Vec::new()), act)
    }

    fn commit(&mut self, number: RequestNumber, ask: &CommitAsk) -> Result<Tried> {
        let spans: Vec<KeySpan> = ask.writes.iter().map(Write::span).collect();
        let reads = spans_of(&ask.reads);
        let above = ask.txn.began.max(ask.not_before);
        if let Some(tried) =
            self.not_ready(number, Matter::End(ask.txn), (above, &reads, &spans))?
        {
            return Ok(tried);
        }
        // Who has prepared nothing elsewhere keeps nobody waiting while it waits.
        let elsewhere = ask.anchor.is_some().then_some(ask.txn);
        if let Some(tried) = self.in_the_way_of_writes(elsewhere, &reads, &spans) {
            return Ok(tried);
        }
        if let Some(no) = self.does_not_hold(ask.locks.as_ref(), ask.read_at, &ask.reads)? {
            return Ok(Tried::Answer(no));
        }
        if self.tenure.lacks_room && puts(&ask.writes) {
            return Ok(Tried::Answer(Answer::DiskFull));
        }
        let ts = self.next_write();
        if ask.not_after.is_some_and(|latest| latest < ts) {
            return Ok(Tried::Answer(Answer::TooLate));
        }
        let (writes, anchor) = (ask.writes.clone(), ask.anchor.clone());
        let act = Act::Commit { txn: ask.txn, writes, anchor };
        self.propose_for(number, Matter::End(ask.txn), (ts, spans, Vec::new()), act)
    }

    /// Why a transaction cannot happen, if it cannot: locks that are gone, or what was read.
    pub(crate) fn does_not_hold(
        &self,
        locks: Option<&HeldLocks>,
        read_at: CommitTs,
        reads: &Reads,
    ) -> Result<Option<Answer>> {
        if let Some(lost) = self.lost_locks(locks) {
            return Ok(Some(lost));
        }
        if let Some(collected) = self.collected_since(read_at, reads) {
            return Ok(Some(Answer::Conflict(collected)));
        }
        match self.machine.keys().check_reads(read_at, reads) {
            Ok(()) => Ok(None),
            Err(KvError::Retry { conflict }) => Ok(Some(Answer::Conflict(conflict))),
            Err(error) => Err(failed(error)),
        }
    }

    /// Takes rows in at a time of the past.
    fn ingest(
        &mut self,
        number: RequestNumber,
        txn: TxnId,
        at: CommitTs,
        rows: &[(Bytes, Bytes)],
    ) -> Result<Tried> {
        let spans: Vec<KeySpan> = rows.iter().map(|(key, _)| KeySpan::point(key)).collect();
        let matter = Matter::End(txn);
        if let Some(tried) = self.not_ready(number, matter, (txn.began, &[], &spans))? {
            return Ok(tried);
        }
        if let Some(tried) = self.in_the_way_of_writes(None, &[], &spans) {
            return Ok(tried);
        }
        if self.tenure.lacks_room {
            return Ok(Tried::Answer(Answer::DiskFull));
        }
        // Nothing is written at the threshold either.
        if let Some(collected) = self.collected(CommitTs(at.0.saturating_sub(1))) {
            return Ok(Tried::Answer(Answer::Conflict(collected)));
        }
        for (key, _) in rows {
            if self.machine.newest_above(&KeySpan::point(key), at)?.is_some() {
                let conflict = braid_kv::Conflict::Written(key.clone());
                return Ok(Tried::Answer(Answer::Conflict(conflict)));
            }
        }
        let ts = self.next_write();
        if at >= ts {
            let reason = "rows of the past have a time that has not come";
            return Ok(Tried::Answer(Answer::Refused(reason.into())));
        }
        let act = Act::Ingest { txn, at, rows: rows.to_vec() };
        self.propose_for(number, matter, (ts, spans, Vec::new()), act)
    }

    /// Why something about a transaction cannot be proposed at this moment, if it cannot. If it
    /// can, the clock is above `above`.
    pub(crate) fn not_ready(
        &mut self,
        number: RequestNumber,
        matter: Matter,
        (above, reads, writes): (CommitTs, &[KeySpan], &[KeySpan]),
    ) -> Result<Option<Tried>> {
        let now = self.clocks.now();
        if micros(above) > micros(now) + self.options.max_clock_offset_micros {
            let reason = "it is about a time that this node's clock has not come to";
            return Ok(Some(Tried::Answer(Answer::Refused(reason.into()))));
        }
        // Its commit must be above its begin: see `outcomes`.
        self.clocks.hlc.update(above.0);
        if !self.proposes() || !self.serves(now.max(above)) {
            return Ok(Some(self.elsewhere().map_or(Tried::Wait, Tried::Answer)));
        }
        if let Matter::End(txn) | Matter::Part(txn, _) = matter
            && self.machine.is_forgotten(txn)
        {
            return Ok(Some(Tried::Answer(Answer::OutcomeUnknown)));
        }
        if let Some(twin) = self.pending.values_mut().find(|pending| pending.matter == matter) {
            twin.askers.push(number);
            return Ok(Some(Tried::Later));
        }
        let now = self.clocks.now();
        let guarded = |pending: &Pending| overlap(&pending.guarded, writes);
        let latched = self.is_latched(reads, now)
            || self.is_latched(writes, now)
            || self.pending.values().any(guarded);
        Ok(latched.then_some(Tried::Wait))
    }

    /// When something that is proposed now is written: above what was read, by the clock, and above
    /// what was promised.
    pub(crate) fn next_write(&self) -> CommitTs {
        self.clocks.now().max(CommitTs(self.locking.promised.0 + 1))
    }

    /// Proposes something at a time; it writes into spans, and guards others.
    pub(crate) fn propose_for(
        &mut self,
        number: RequestNumber,
        matter: Matter,
        (ts, spans, guarded): (CommitTs, Vec<KeySpan>, Vec<KeySpan>),
        act: Act,
    ) -> Result<Tried> {
        if !self.serves(ts) {
            return Ok(Tried::Wait);
        }
        // Entries of any kind are above it from now on.
        self.clocks.hlc.update(ts.0);
        let Some((proposal, _)) = self.propose(act, ts)? else { return Ok(Tried::Wait) };
        let lease = self.machine.state.lease.sequence;
        let pending = Pending { matter, ts, spans, guarded, askers: vec![number] };
        self.pending.insert((lease, proposal), pending);
        Ok(Tried::Later)
    }

    /// Whether a split was proposed and is not applied yet.
    pub(crate) fn is_being_split(&self) -> bool {
        self.pending.values().any(|pending| pending.matter == Matter::Split)
    }

    /// The state in a few lines.
    pub(crate) fn describe(&self, node: NodeId) -> String {
        let state = &self.machine.state;
        format!(
            "{node:?} {} | {:?} | {} to apply, {} pending, {} waiting, {} for locks, {} outcomes, \
             {} prepared",
            self.group.describe(),
            state.lease,
            self.log.unapplied.entries.len(),
            self.pending.len(),
            self.waiting.len(),
            self.locking.waiting(),
            self.machine.outcomes.count(),
            self.machine.prepared.len(),
        )
    }
}

fn overlap(some: &[KeySpan], others: &[KeySpan]) -> bool {
    some.iter().any(|one| others.iter().any(|other| one.overlaps(other)))
}

/// The spans that a request is about, and how many bytes it writes.
fn touched(ask: &Ask) -> (Vec<KeySpan>, usize) {
    let spans = match ask {
        Ask::Read { spans, .. } => spans.clone(),
        Ask::Get { keys, .. } => keys.iter().map(|key| KeySpan::point(key)).collect(),
        Ask::Scan { request, .. } => request.scans.iter().map(|scan| scan.span.clone()).collect(),
        Ask::Commit(CommitAsk { reads, writes, locks, .. })
        | Ask::Prepare(PrepareAsk { reads, writes, locks, .. }) => {
            let mut spans = spans_of(reads);
            spans.extend(locks.iter().map(|locks| locks.span.clone()));
            spans.extend(writes.iter().map(Write::span));
            return (spans, writes.iter().map(Write::bytes).sum());
        }
        Ask::Ingest { rows, .. } => {
            let spans = rows.iter().map(|(key, _)| KeySpan::point(key)).collect();
            return (spans, rows.iter().map(|(key, value)| key.len() + value.len()).sum());
        }
        Ask::Validate { reads, locks, .. } => {
            let mut spans = spans_of(reads);
            spans.extend(locks.iter().map(|locks| locks.span.clone()));
            spans
        }
        Ask::Lock(ask) => ask.request.items.iter().map(|item| span_of(&item.target)).collect(),
        Ask::Divide(span, ..) | Ask::StoredBytes(span) => vec![span.clone()],
        Ask::Decide { anchor, .. } | Ask::Settle { anchor, .. } => vec![KeySpan::point(anchor)],
        Ask::Resolve { span, .. } => span.iter().cloned().collect(),
        Ask::Release { .. }
        | Ask::Unfinished
        | Ask::WaitsFor { .. }
        | Ask::GiveUp { .. }
        | Ask::Running { .. }
        | Ask::ShowLocks
        | Ask::ReadsFrom { .. }
        | Ask::Recall { .. }
        | Ask::Fence { .. }
        | Ask::Clock
        | Ask::Ranges
        | Ask::ShowRanges
        | Ask::UnfinishedRanges
        | Ask::Split(_)
        | Ask::SplitAt(_) => Vec::new(),
    };
    (spans, 0)
}
