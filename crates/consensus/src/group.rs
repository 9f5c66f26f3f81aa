//! One replica's part in a group: a pure machine around the raft crate.
//!
//! ```text
//!   tick()  receive()  propose()  persisted()  applied()      what has happened
//!                        |
//!                    effects()                                what must be done about it
//!                        |
//!     send            messages for other replicas
//!     appends         make durable, in this order; then say so with persisted(number), and only
//!                     then send what belongs to it
//!     apply           committed entries, in order, each one once; then say so with applied(index)
//!     fetch           entries to be read from the log's files; hand them over with fetched(..)
//!     behind          followers that need entries that were cut: they must be given a state
//! ```
//!
//! Invariants, which [`Group::open`] checks of what was stored:
//!
//! 1. Entries behind the cut have no gap, and their terms never go down.
//! 2. `cut <= applied <= last entry`: what was applied was durable in this log before.
//! 3. `applied <= commit <= last entry`. A commit that was known when an entry was applied may not
//!    have become durable (nobody waits for that); it is raised to `applied`.
//! 4. What is not applied, or not durable, is in memory; other entries may be in the files only.
//! 5. The set of replicas is the one as of `applied`: it is stored with it.
//!
//! *Only the leader proposes*: the raft crate's followers would hand proposals on silently, and
//! whoever proposed could not tell what became of them.
//!
//! The raft crate draws election timeouts from the thread's generator. They are replaced after
//! every call, by one that follows from the replica's seed, its term and its role (`settle`).

use std::collections::VecDeque;
use std::fmt::Write as _;

use braid_env::random::Random;
use protobuf::Message as _;
use raft::eraftpb::{self, ConfChangeV2};
use raft::{Config, ProgressState, RawNode, StateRole};

use crate::entry::{Entry, EntryKind, HardState, ReplicaChange, ReplicaSet};
use crate::error::{Error, Result};
use crate::group_log::{GroupLog, Missing};
use crate::ids::{LogIndex, ReplicaId, Term};
use crate::message::Message;

/// How a group behaves; the same for all of its replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupOptions {
    /// A follower that hears nothing for so many ticks, up to twice as many, asks for votes.
    pub election_ticks: usize,
    /// The leader says that it is there every so many ticks.
    pub heartbeat_ticks: usize,
    /// Bytes of proposals that are not committed yet; beyond that the leader is busy.
    pub max_uncommitted_bytes: u64,
    /// Bytes of entries that are kept in memory though they are applied and durable: followers that
    /// are further behind get theirs from the log's files. Default 1 MiB.
    pub kept_bytes: u64,
    /// A log with more bytes may be cut though some follower needs what goes: it is given a state
    /// then. Half of that stays. Default 64 MiB.
    pub max_log_bytes: u64,
}

impl Default for GroupOptions {
    fn default() -> GroupOptions {
        GroupOptions {
            election_ticks: 10,
            heartbeat_ticks: 3,
            max_uncommitted_bytes: 64 << 20,
            kept_bytes: 1 << 20,
            max_log_bytes: 64 << 20,
        }
    }
}

/// An election timeout is doubled so often at most.
const MOST_DOUBLED: u64 = 3;

/// A log is cut in so many steps at least while it grows to its longest.
const BLOCKS: u64 = 64;

/// What was stored of a replica.
#[derive(Debug, Clone, Default)]
pub struct GroupStart {
    /// What it has promised.
    pub hard_state: HardState,
    /// Who belonged to the group when `applied` was.
    pub replicas: ReplicaSet,
    /// The last entry whose effect is stored.
    pub applied: LogIndex,
    /// Place and term of the last entry that was dropped.
    pub cut: (LogIndex, Term),
    /// What lies between the cut and the first of `entries` is in the log's files only: where each
    /// term begins there.
    pub older: Vec<(LogIndex, Term)>,
    /// Bytes of those.
    pub older_bytes: u64,
    /// The entries behind that: at least those that are not applied.
    pub entries: Vec<Entry>,
}

/// Something to be made durable.
#[derive(Debug, Default)]
pub struct Append {
    /// For [`Group::persisted`]; grows.
    pub number: u64,
    /// To be put behind the entry before the first of them; what is there goes.
    pub entries: Vec<Entry>,
    /// What is promised from now on.
    pub hard_state: Option<HardState>,
    /// Whether somebody waits for it. If not, it is enough that all earlier ones are durable.
    pub must_sync: bool,
    /// To be sent when this is durable.
    pub send: Vec<Message>,
}

/// What a replica wants to be done.
#[derive(Debug, Default)]
pub struct Effects {
    /// To be sent now.
    pub send: Vec<Message>,
    /// To be made durable, in this order.
    pub appends: Vec<Append>,
    /// Committed: to be applied in this order.
    pub apply: Vec<Entry>,
    /// To be read from the log's files. What is not is asked for again.
    pub fetch: Vec<Fetch>,
    /// Followers that need entries that were cut. They are named again until they have a state.
    pub behind: Vec<ReplicaId>,
}

/// Entries that a follower needs and that are not in memory.
pub struct Fetch {
    missing: Missing,
}

impl Fetch {
    /// The first one.
    pub fn first(&self) -> LogIndex {
        LogIndex(self.missing.first)
    }

    /// The one behind the last.
    pub fn end(&self) -> LogIndex {
        LogIndex(self.missing.end)
    }

    /// Bytes that are wanted at most, but at least one entry.
    pub fn bytes(&self) -> u64 {
        self.missing.bytes
    }
}

impl std::fmt::Debug for Fetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "fetch [{}, {})", self.first(), self.end())
    }
}

/// One replica of a group.
pub struct Group {
    node: RawNode<GroupLog>,
    /// Of election timeouts.
    seed: u64,
    /// The last term in which it has known a leader, or the one in which it was opened.
    led: u64,
    options: GroupOptions,
}

impl Group {
    /// A replica as it was stored. Fails if what was stored does not fit together.
    pub fn open(
        id: ReplicaId,
        options: GroupOptions,
        start: GroupStart,
        mut random: Random,
    ) -> Result<Group> {
        let log = checked_log(&start, options.max_log_bytes)?;
        let config = Config {
            id: id.0,
            election_tick: options.election_ticks,
            heartbeat_tick: options.heartbeat_ticks,
            min_election_tick: options.election_ticks,
            max_election_tick: (options.election_ticks * 2) << MOST_DOUBLED,
            applied: start.applied.0,
            max_size_per_msg: 1 << 20,
            max_inflight_msgs: 64,
            max_committed_size_per_ready: 16 << 20,
            max_uncommitted_size: options.max_uncommitted_bytes,
            check_quorum: true,
            pre_vote: true,
            ..Config::default()
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let node = RawNode::new(&config, log, &logger)
            .map_err(|error| Error::Inconsistent(error.to_string()))?;
        let led = node.raft.term;
        let mut group = Group { node, seed: random.next_u64(), led, options };
        group.settle();
        Ok(group)
    }

    /// Time has passed.
    pub fn tick(&mut self) {
        self.node.tick();
        self.settle();
    }

    /// Whether it asks for votes with the next tick, if it hears of nobody until then.
    pub fn is_about_to_campaign(&self) -> bool {
        let raft = &self.node.raft;
        let is_due = raft.election_elapsed + 1 >= raft.randomized_election_timeout();
        !self.is_leader() && raft.promotable() && is_due
    }

    /// A message has arrived. Those that are late, repeated or lost do no harm.
    pub fn receive(&mut self, message: Message) -> Result<()> {
        if message.to() != self.id() {
            let (to, id) = (message.to(), self.id());
            return Err(Error::BadMessage(format!("it is for {to}, not for {id}")));
        }
        let result = self.node.step(message.raft);
        self.settle();
        match result {
            // From somebody who does not belong to the group any more, or not yet.
            Ok(()) | Err(raft::Error::StepPeerNotFound) => Ok(()),
            Err(error) => Err(Error::BadMessage(error.to_string())),
        }
    }

    /// Puts a command into the leader's log; returns its place. It happens if that entry is
    /// committed, and never if another one is at that place.
    pub fn propose(&mut self, data: Vec<u8>) -> Result<LogIndex> {
        self.check_leader()?;
        let result = self.node.propose(Vec::new(), data);
        self.settle();
        self.proposed(result)
    }

    /// Proposes other replicas, with a command that the entry carries ([`Entry::command`]). One
    /// change at a time; several at once go over a joint set.
    pub fn change_replicas(
        &mut self,
        changes: &[ReplicaChange],
        command: Vec<u8>,
    ) -> Result<LogIndex> {
        self.check_leader()?;
        if self.node.raft.has_pending_conf() {
            return Err(Error::Busy);
        }
        let mut change = ConfChangeV2::default();
        change.set_changes(changes.iter().map(|change| change.to_raft()).collect());
        change.context = command.into();
        let result = self.node.propose_conf_change(Vec::new(), change);
        self.settle();
        self.proposed(result)
    }

    /// Carries out an entry of [`EntryKind::Replicas`] when it is applied; returns the replicas as
    /// of then. Not called for one that comes to nothing: then nothing has changed.
    pub fn apply_replicas(&mut self, entry: &Entry) -> Result<ReplicaSet> {
        let bad = |reason: String| Error::Inconsistent(format!("{}: {reason}", entry.index));
        if entry.kind != EntryKind::Replicas {
            return Err(bad("the entry does not change replicas".into()));
        }
        let mut change = ConfChangeV2::default();
        change.merge_from_bytes(&entry.data).map_err(|error| bad(error.to_string()))?;
        let state = self.node.apply_conf_change(&change).map_err(|error| bad(error.to_string()))?;
        self.settle();
        Ok(ReplicaSet::of_raft(&state))
    }

    /// Hands leadership to a follower, if it is up to date in time.
    pub fn transfer_leadership(&mut self, to: ReplicaId) {
        self.node.transfer_leader(to.0);
        self.settle();
    }

    /// Asks for votes now.
    pub fn campaign(&mut self) -> Result<()> {
        let result = self.node.campaign();
        self.settle();
        result.map_err(|error| Error::Inconsistent(error.to_string()))
    }

    /// Everything up to the append of this number is durable.
    pub fn persisted(&mut self, number: u64) {
        self.node.on_persist_ready(number);
        self.let_go();
        self.settle();
    }

    /// Everything up to this entry was applied.
    pub fn applied(&mut self, index: LogIndex) {
        self.node.advance_apply_to(index.0);
        self.let_go();
        self.settle();
    }

    /// Lets go of entries that nobody needs who is not far behind.
    fn let_go(&mut self) {
        let log = &self.node.raft.raft_log;
        let upto = log.applied.min(log.persisted);
        self.node.mut_store().let_go(upto, self.options.kept_bytes);
    }

    /// Here is what [`Effects::fetch`] has asked for, or the first part of it.
    pub fn fetched(&mut self, fetch: Fetch, entries: &[Entry]) {
        self.node.mut_store().set_fetched(entries.iter().map(Entry::to_raft).collect());
        for context in fetch.missing.contexts {
            self.node.on_entries_fetched(context);
        }
        self.node.mut_store().set_fetched(Vec::new());
        self.settle();
    }

    /// Drops entries up to `index`: they must be applied, and their effect durable. Who needs them
    /// is behind from then on. Returns place and term of the last one that is dropped.
    pub fn cut(&mut self, index: LogIndex) -> (LogIndex, Term) {
        let index = index.0.min(self.node.raft.raft_log.applied);
        self.node.mut_store().cut_to(index);
        let (index, term) = self.node.store().cut();
        (LogIndex(index), Term(term))
    }

    /// What must be done. Changes of no other kind may happen before it is taken up.
    pub fn effects(&mut self) -> Effects {
        let mut out = Effects::default();
        while self.node.has_ready() {
            let mut ready = self.node.ready();
            let messages = |list: Vec<eraftpb::Message>| {
                list.into_iter().map(|raft| Message { raft }).collect::<Vec<_>>()
            };
            out.send.extend(messages(ready.take_messages()));
            let committed = ready.take_committed_entries();
            out.apply.extend(committed.into_iter().map(Entry::of_raft));
            let entries = ready.take_entries();
            self.node.mut_store().append(entries.clone());
            out.appends.push(Append {
                number: ready.number(),
                entries: entries.into_iter().map(Entry::of_raft).collect(),
                hard_state: ready.hs().map(HardState::of_raft),
                must_sync: ready.must_sync(),
                send: messages(ready.take_persisted_messages()),
            });
            self.node.advance_append_async(ready);
        }
        let missing = self.node.mut_store().take_missing();
        out.fetch = missing.into_iter().map(|missing| Fetch { missing }).collect();
        out.behind = self.node.mut_store().take_behind().into_iter().map(ReplicaId).collect();
        out
    }

    /// This replica.
    pub fn id(&self) -> ReplicaId {
        ReplicaId(self.node.raft.id)
    }

    /// The newest term that it has heard of.
    pub fn term(&self) -> Term {
        Term(self.node.raft.term)
    }

    /// Whether it leads, as far as it knows.
    pub fn is_leader(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    /// Who leads, as far as it knows.
    pub fn leader(&self) -> Option<ReplicaId> {
        Some(ReplicaId(self.node.raft.leader_id)).filter(|leader| leader.0 != 0)
    }

    /// Whether it leads, or has heard of a leader lately. One that does not vote may believe in a
    /// leader for ever that is gone.
    pub fn hears_leader(&self) -> bool {
        let raft = &self.node.raft;
        let lately = raft.election_elapsed <= 2 * self.options.election_ticks;
        self.is_leader() || raft.leader_id != 0 && lately
    }

    /// On the leader: up to here every replica is known to have the log.
    pub fn matched_by_all(&self) -> Option<LogIndex> {
        if !self.is_leader() {
            return None;
        }
        let matched = self.node.raft.prs().iter().map(|(_, progress)| progress.matched);
        matched.min().map(LogIndex)
    }

    /// If the log is longer than it should be: up to where it may be cut.
    pub fn excess(&self) -> Option<LogIndex> {
        let (log, most) = (self.node.store(), self.options.max_log_bytes);
        (log.log_bytes() > most).then(|| LogIndex(log.end_of_all_but(most / 2)))
    }

    /// The last entry behind the cut that is in the log's files only; the cut if there is none.
    pub fn in_files_up_to(&self) -> LogIndex {
        let log = self.node.store();
        LogIndex(log.cut().0 + log.counts().1)
    }

    /// The term of an entry, if it is in the log, or the last one that was cut.
    pub fn term_of(&self, index: LogIndex) -> Option<Term> {
        self.node.store().term_of(index.0).map(Term)
    }

    /// Whether the entry is in the log, and durable: then this replica has all before it, too.
    pub fn has(&self, index: LogIndex, term: Term) -> bool {
        self.term_of(index) == Some(term) && index.0 <= self.node.raft.raft_log.persisted
    }

    /// What it has promised, durable or not.
    pub fn hard_state(&self) -> HardState {
        HardState::of_raft(&self.node.raft.hard_state())
    }

    /// Tells the leader that this replica has the log up to an entry, or a state that makes it
    /// unnecessary. Both must be durable.
    pub fn say_has(&self, leader: ReplicaId, index: LogIndex) -> Message {
        let mut raft = eraftpb::Message::default();
        raft.set_msg_type(eraftpb::MessageType::MsgAppendResponse);
        (raft.from, raft.to) = (self.id().0, leader.0);
        (raft.term, raft.index, raft.commit) = (self.node.raft.term, index.0, index.0);
        Message { raft }
    }

    /// On the leader: whether a follower was heard of lately and has nearly all of the log.
    pub fn is_current(&self, follower: ReplicaId) -> bool {
        const NEARLY: u64 = 1_000;
        let last = self.node.raft.raft_log.last_index();
        self.is_leader()
            && self.node.raft.prs().get(follower.0).is_some_and(|progress| {
                progress.recent_active
                    && progress.state == ProgressState::Replicate
                    && progress.matched + NEARLY > last
            })
    }

    /// On the leader: whether a follower was heard of lately and has all of the log.
    pub fn has_all(&self, follower: ReplicaId) -> bool {
        let raft = &self.node.raft;
        let matched = raft.prs().get(follower.0).map(|progress| progress.matched);
        self.is_current(follower) && matched == Some(raft.raft_log.last_index())
    }

    /// The last entry of the log, durable or not.
    pub fn last(&self) -> LogIndex {
        LogIndex(self.node.raft.raft_log.last_index())
    }

    /// The term and the last entry of a replica that has nothing to do: all of its log is durable,
    /// committed and applied, nobody is to be told anything, and leadership is not handed on.
    pub fn at_rest(&self) -> Option<(Term, LogIndex)> {
        let raft = &self.node.raft;
        let (log, last) = (&raft.raft_log, raft.raft_log.last_index());
        let is_whole = [log.committed, log.applied, log.persisted].iter().all(|at| *at == last);
        let changes = self.is_leader() && raft.has_pending_conf() || raft.lead_transferee.is_some();
        let rests = is_whole && !changes && !self.node.has_ready();
        rests.then(|| (self.term(), LogIndex(last)))
    }

    /// On a follower: how many ticks ago it has heard of a leader, or voted.
    pub fn silent_ticks(&self) -> usize {
        self.node.raft.election_elapsed
    }

    /// Goes on after a time without ticks. A leader says that it is there, and counts anew who
    /// answers; a follower goes on as if it had heard of its leader so many ticks ago. (As it was
    /// when its ticks ended it would refuse its vote to others for too long.)
    pub fn wake(&mut self, silent_ticks: usize) {
        match self.is_leader() {
            true => {
                self.node.raft.election_elapsed = 0;
                self.node.ping();
            }
            // Many may wake at the same moment: they are not to ask for votes at the same, too.
            false => {
                let most = self.options.election_ticks;
                self.node.raft.election_elapsed = silent_ticks.min(most);
            }
        }
        self.settle();
    }

    /// Whether a message says no more than that a follower of this leader is there.
    pub fn is_known_from(&self, message: &Message) -> bool {
        let of_term = Term(message.raft.term) == self.term();
        self.is_leader() && of_term && message.answers_heartbeat()
    }

    /// The place behind which entries are kept.
    pub fn cut_at(&self) -> LogIndex {
        LogIndex(self.node.store().cut().0)
    }

    /// All entries behind the cut, to be written again; nothing if some are only in files.
    pub fn all_entries(&self) -> Option<Vec<Entry>> {
        let all = self.node.store().all()?;
        Some(all.iter().cloned().map(Entry::of_raft).collect())
    }

    /// How many entries are in memory, and how many behind the cut are only in files.
    pub(crate) fn entry_counts(&self) -> (u64, u64) {
        self.node.store().counts()
    }

    /// The state in one line.
    pub fn describe(&self) -> String {
        let raft = &self.node.raft;
        let (cut, last) = (self.node.store().cut().0, self.node.store().last());
        let mut out = format!("{} ", self.id());
        let _ = match raft.state {
            StateRole::Leader => write!(out, "leads"),
            StateRole::Follower if raft.leader_id == 0 => write!(out, "follows nobody"),
            StateRole::Follower => write!(out, "follows r{}", raft.leader_id),
            StateRole::PreCandidate => write!(out, "looks around"),
            StateRole::Candidate => write!(out, "asks for votes"),
        };
        let (commit, applied) = (raft.raft_log.committed, raft.raft_log.applied);
        let _ = write!(
            out,
            " t{}, log (i{cut}, i{last}], durable i{}, commit i{commit}, applied i{applied}",
            raft.term, raft.raft_log.persisted
        );
        let (_, in_files) = self.entry_counts();
        if in_files > 0 {
            let _ = write!(out, ", {in_files} in files only");
        }
        if self.is_leader() {
            let mut matched: Vec<(u64, u64)> =
                raft.prs().iter().map(|(id, progress)| (*id, progress.matched)).collect();
            matched.sort_unstable();
            let matched: Vec<String> =
                matched.iter().map(|(id, m)| format!("r{id} i{m}")).collect();
            let _ = write!(out, ", has {}", matched.join(" "));
        }
        out
    }

    fn check_leader(&self) -> Result<()> {
        match self.is_leader() {
            true => Ok(()),
            false => Err(Error::NotLeader { leader: self.leader() }),
        }
    }

    fn proposed(&self, result: raft::Result<()>) -> Result<LogIndex> {
        match result {
            Ok(()) => Ok(LogIndex(self.node.raft.raft_log.last_index())),
            Err(raft::Error::ProposalDropped) => Err(Error::Busy),
            Err(error) => Err(Error::Inconsistent(error.to_string())),
        }
    }

    /// Replaces the election timeout, which the call before may have drawn: the same seed, term and
    /// role give the same one. Two replicas that stand for election at the same time do so with
    /// other timeouts in the next term.
    ///
    /// Where term after term ends without a leader, votes take longer than the timeout: nodes have
    /// too much to do. From the third one on each waits twice as long as the one before, up to
    /// eight times; asking anew would only give them more.
    fn settle(&mut self) {
        let raft = &mut self.node.raft;
        if raft.leader_id != 0 {
            self.led = raft.term;
        }
        let in_vain = raft.term.saturating_sub(self.led + 2).min(MOST_DOUBLED);
        let mut random = Random::seeded(self.seed ^ (raft.term << 2) ^ raft.state as u64);
        let shortest = self.options.election_ticks << in_vain;
        let ticks = shortest + random.below(shortest as u64) as usize;
        raft.set_randomized_election_timeout(ticks);
    }
}

/// Checks the invariants of what was stored.
fn checked_log(start: &GroupStart, max_log_bytes: u64) -> Result<GroupLog> {
    let bad = |reason: String| Err(Error::Inconsistent(reason));
    let (mut last, mut term) = start.cut;
    let kept = start.entries.first().map_or(last.next(), |entry| entry.index);
    for (first, of) in &start.older {
        if *first < last.next() || *first >= kept || *of < term {
            return bad(format!("{first}/{of} follows {last}/{term}"));
        }
        (last, term) = (*first, *of);
    }
    if kept != start.cut.0.next() {
        if start.older.first().is_none_or(|(first, _)| *first != start.cut.0.next()) {
            return bad(format!("nothing is known of entries between {last} and {kept}"));
        }
        last = LogIndex(kept.0 - 1);
    }
    for entry in &start.entries {
        if entry.index != last.next() || entry.term < term {
            return bad(format!("{}/{} follows {last}/{term}", entry.index, entry.term));
        }
        (last, term) = (entry.index, entry.term);
    }
    let (cut, applied) = (start.cut.0, start.applied);
    if applied < cut || last < applied {
        return bad(format!("{applied} was applied, but the raft log has ({cut}, {last}]"));
    }
    if kept > applied.next() {
        return bad(format!("{applied} was applied, but entries are given from {kept} on"));
    }
    let commit = start.hard_state.commit.max(applied);
    if last < commit {
        return bad(format!("{commit} was committed, but the raft log has ({cut}, {last}]"));
    }
    if start.hard_state.term < term {
        let known = start.hard_state.term;
        return bad(format!("there is an entry of {term}, but no term above {known} was seen"));
    }
    let hard_state = HardState { commit, ..start.hard_state }.to_raft();
    let entries = start.entries.iter().map(Entry::to_raft).collect();
    let older: VecDeque<_> = start.older.iter().map(|(first, term)| (first.0, term.0)).collect();
    let cut = (start.cut.0.0, start.cut.1.0);
    let state = (hard_state, start.replicas.to_raft());
    let older = (older, start.older_bytes);
    Ok(GroupLog::new(state, cut, older, entries, max_log_bytes / BLOCKS))
}
