//! All replicas of a node, with the store and the raft log that they share.
//!
//! ```text
//!   receive  request  tick  log_synced      what has happened
//!                |
//!             effects()                     messages, answers, and what should be synced
//! ```
//!
//! Everything that groups want to be durable is written to the raft log as one record; whoever
//! drives this syncs the log, on whatever thread, and says so with [`Replicas::log_synced`]. The
//! store is synced now and then ([`Replicas::store_position`]); only then are logs cut, as the
//! store may lose what was not synced.
//!
//! A message carries the sender's clock. One that is further ahead than the bound is not looked at,
//! nor is its clock taken over: a node whose clock leaves the bound cannot talk to the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_consensus::codec::{Reader, put_number};
use braid_consensus::{
    Error, Group, GroupOptions, GroupStart, LogBatch, LogIndex, LogPlace, LoggedGroup, Message,
    RaftLog, RaftLogOptions, ReplicaId, Result,
};
use braid_env::clock::{Clock, Hlc};
use braid_env::fs::FileSystem;
use braid_env::random::Random;
use braid_kv::{RowForm, ShownRange};
use braid_lsm::{Batch, CommitTs, Db, Durability, Options, Pending, ScanOptions};

use crate::absent::Absent;
use crate::answers::{AnswerTimes, Answered};
use crate::collecting::{Readers, Thresholds, Walk};
use crate::command::Split;
use crate::envelope::Envelope;
use crate::ids::{NodeId, RangeDescriptor, RangeId, TxnId};
use crate::leading::moving::Moves;
use crate::leading::pace::{Cause, Seen, Turns};
use crate::leading::recalls::{Recalled, Recalls};
use crate::leading::sleeping::Quiet;
use crate::lease::micros;
use crate::local_keys;
use crate::machine::{Machine, ValueForms, newest};
use crate::members::retiring::{finish_retiring, stamp_for};
use crate::prepared::Decision;
use crate::raft_snapshot::{Staging, Traffic, finish_installs};
use crate::replica::{Clocks, Replica};
use crate::request::{Answer, Ask, NOBODY, Request, RequestNumber};
use crate::splitting::SplitPoints;
use crate::state::RangeState;

/// How a node behaves; but for `node` the same on all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeOptions {
    /// This node.
    pub node: NodeId,
    /// How its groups behave.
    pub group: GroupOptions,
    /// Length of a lease, in microseconds. Default 6 s.
    pub lease_micros: u64,
    /// No two clocks differ by more, in microseconds. Default 250 ms.
    pub max_clock_offset_micros: u64,
    /// For so long outcomes of transactions are remembered, in microseconds. Default 10 s.
    pub outcome_window_micros: u64,
    /// A request that cannot be served is given back after so many ticks.
    pub patience_ticks: u64,
    /// Entries that all replicas have are dropped when there are so many.
    pub cut_after_entries: u64,
    /// Every so many ticks it is looked whether other nodes lead much fewer ranges; `None`, which
    /// is the default: leases stay where they are. Not to be a multiple of what elections take.
    pub spread_ticks: Option<u64>,
    /// A range with more bytes in files is split. Default 256 MiB.
    pub max_range_bytes: u64,
    /// Locks of a coordinator that was not heard of for so long go, in microseconds. Default 10 s.
    pub coordinator_patience_micros: u64,
    /// Every so many ticks circles of waiting are looked for that lead over several ranges.
    /// Default 10.
    pub deadlock_ticks: u64,
    /// For so long all versions are kept, in microseconds; `None`: for ever, which is the default.
    pub gc_window_micros: Option<u64>,
    /// A transaction over several ranges that is not at its end for so long is taken for abandoned,
    /// in microseconds. Default 3 s.
    pub abandoned_micros: u64,
    /// A node that was not heard of for so many ticks is dead: others get its replicas, if there
    /// are
    /// any. Default 5 minutes.
    pub dead_after_ticks: u64,
    /// A range that nobody has asked anything for so many ticks sleeps; `None`: never. Default 50.
    pub quiet_ticks: Option<u64>,
}

impl NodeOptions {
    /// The defaults.
    pub fn new(node: NodeId) -> NodeOptions {
        NodeOptions {
            node,
            group: GroupOptions::default(),
            lease_micros: 6_000_000,
            max_clock_offset_micros: 250_000,
            outcome_window_micros: 10_000_000,
            patience_ticks: 20,
            cut_after_entries: 10_000,
            spread_ticks: None,
            max_range_bytes: 256 << 20,
            coordinator_patience_micros: 10_000_000,
            deadlock_ticks: 10,
            gc_window_micros: None,
            abandoned_micros: 3_000_000,
            dead_after_ticks: 3_000,
            quiet_ticks: Some(50),
        }
    }
}

/// What a node stands on.
pub struct NodeEnv {
    /// Its files, below `dir`.
    pub fs: Arc<dyn FileSystem>,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
    /// For election timeouts.
    pub random: Random,
    /// Where the store is; `None`: in a folder of its own below the node's directory.
    pub store_dir: Option<PathBuf>,
    /// Of the store.
    pub store: Options,
    /// Of the raft log.
    pub log: RaftLogOptions,
    /// What is known of the values of rows, as in [`braid_kv::StoreOptions`].
    pub row_form: Option<RowForm>,
    /// Where ranges may be split.
    pub split_points: SplitPoints,
}

/// What a node wants to be done.
#[derive(Debug, Default)]
pub struct NodeEffects {
    /// Bytes for other nodes' [`Replicas::receive`].
    pub send: Vec<(NodeId, Vec<u8>)>,
    /// Answers to requests.
    pub answers: Vec<Answered>,
    /// Somebody waits for the raft log to be durable up to here.
    pub sync: Option<LogPlace>,
    /// What people may want to know of what happens.
    pub notes: Vec<String>,
}

/// What the store holds at a moment; see [`Replicas::store_position`].
pub struct StorePosition {
    last: Vec<Pending>,
    stored: Vec<(RangeId, LogIndex)>,
    /// Nothing will be read below in any range, nor written at or below.
    threshold: CommitTs,
}

impl StorePosition {
    /// Blocks until all of it is durable.
    pub fn wait_durable(&self) -> Result<()> {
        self.last.iter().try_for_each(|pending| Ok(pending.wait_durable()?))
    }
}

/// An append that is written and not durable.
struct Unsynced {
    place: LogPlace,
    range: RangeId,
    number: u64,
    send: Vec<Message>,
}

/// What was appended to the raft log, and who may want to append something.
#[derive(Default)]
struct Appends {
    /// Ranges that something has happened to.
    touched: BTreeSet<RangeId>,
    unsynced: VecDeque<Unsynced>,
    synced: LogPlace,
}

/// See the [module's page](self).
pub struct Replicas {
    pub(crate) options: NodeOptions,
    pub(crate) clocks: Clocks,
    forms: ValueForms,
    pub(crate) db: Db,
    pub(crate) log: RaftLog,
    pub(crate) replicas: BTreeMap<RangeId, Replica>,
    appends: Appends,
    pub(crate) effects: NodeEffects,
    pub(crate) random: Random,
    pub(crate) thresholds: Thresholds,
    pub(crate) counts: Counts,
    pub(crate) traffic: Traffic,
    pub(crate) moves: Moves,
    pub(crate) absent: Absent,
    pub(crate) quiet: Quiet,
}

/// What a node counts.
#[derive(Default)]
pub(crate) struct Counts {
    /// How often it was started.
    pub(crate) starts: u64,
    /// When this process began, on its own clock.
    began_micros: u64,
    /// Ticks of this process.
    pub(crate) ticks: u64,
    /// The same, of each replica that was awake.
    pub(crate) replica_ticks: u64,
    /// Ranges that this process has given a number.
    ranges: u64,
}

impl Counts {
    /// A number that no range ever had: it is not used by any other node, nor by an earlier process
    /// of this one.
    fn new_range(&mut self, node: NodeId) -> RangeId {
        self.ranges += 1;
        RangeId(node.0 << 48 | self.starts << 24 | self.ranges)
    }
}

/// Sizes are looked at every so many ticks.
const SIZE_TICKS: u64 = 10;

/// Whether replicas hear of a leader is looked at every so many ticks.
const LEADERLESS_TICKS: u64 = 50;

/// Groups whose oldest entries lie so many segments behind keep too many files.
const OLD_SEGMENTS: u64 = 8;

impl Replicas {
    /// Opens a node's store and raft log, below a directory. A node that is new gets replicas of
    /// `ranges` as far as these name it, over what its store holds already: rows of a node that was
    /// alone. Fails if anything is damaged, or if store and log do not fit together. Blocks on the
    /// device.
    pub fn open(
        mut env: NodeEnv,
        dir: &Path,
        options: NodeOptions,
        ranges: &[RangeDescriptor],
    ) -> Result<Replicas> {
        let NodeEnv { row_form, split_points, store_dir, .. } = env;
        let store_dir = store_dir.unwrap_or_else(|| dir.join("store"));
        let forms = ValueForms { row_class: env.store.row_class, row_form, split_points };
        let staging = Staging::open(env.fs.clone(), dir, env.store.clone())?;
        let db = Db::open(env.fs.clone(), &store_dir, env.store)?;
        let (mut log, mut logged) = RaftLog::open(env.fs, &dir.join("raft"), env.log)?;
        if !logged.is_empty() && !is_of_cluster(&db)? {
            let why = "this is not the store that the raft log was written with: it was exchanged";
            return Err(Error::Inconsistent(why.into()));
        }
        finish_installs(&staging, &db, &mut log, &mut logged)?;
        let retired = finish_retiring(&db, &mut log, &mut logged, options.node)?;
        let starts = count_start(&db, options.node, ranges)?;
        let hlc = Arc::new(Hlc::new(env.clock.clone()));
        hlc.update(db.last_commit_ts().max(db.gc_threshold()).0);
        let clocks = Clocks { wall: env.clock, hlc };
        let mut replicas = BTreeMap::new();
        for state in stored_states(&db)? {
            let range = state.descriptor.id;
            let logged = logged.remove(&range.group()).unwrap_or_default();
            let random = Random::seeded(env.random.next_u64());
            let logged = with_unapplied(&log, &state, logged)?;
            let made = (options, clocks.clone(), forms);
            let replica = open_replica(&db, state, logged, random, made)?;
            replicas.insert(range, replica);
        }
        let touched: BTreeSet<RangeId> = replicas.keys().copied().collect();
        let began_micros = clocks.wall.now_micros();
        let readers = Readers::new(began_micros);
        let mut node = Replicas {
            options,
            clocks,
            forms,
            db,
            log,
            replicas,
            appends: Appends { touched, ..Appends::default() },
            effects: NodeEffects::default(),
            random: env.random,
            thresholds: Thresholds {
                readers,
                newest: Arc::default(),
                walk: Walk::default(),
                turns: Turns::default(),
            },
            counts: Counts { starts, began_micros, ..Counts::default() },
            traffic: Traffic::new(staging),
            moves: Moves::default(),
            absent: Absent::new(logged, retired),
            quiet: Quiet::new(options.group.election_ticks),
        };
        for range in node.replicas.keys().copied().collect::<Vec<_>>() {
            node.quiet.sleepers.begin(range);
            node.watch_nodes_of(range);
        }
        node.pump()?;
        Ok(node)
    }

    /// Time has passed: one tick.
    pub fn tick(&mut self) -> Result<()> {
        let (now, patience) =
            (self.clocks.wall.now_micros(), self.options.coordinator_patience_micros);
        let oldest = self.thresholds.readers.oldest(now, patience);
        let awake = self.quiet.sleepers.awake();
        let waits = self.wait_with_elections(&awake);
        let collecting = self.whose_thresholds_move(&awake, oldest);
        for range in awake {
            self.tell_of_room(range);
            let Some(replica) = self.replicas.get_mut(&range) else { continue };
            replica.tick(waits.contains(&range))?;
            if let Some(oldest) = oldest.filter(|_| collecting.contains(&range)) {
                replica.collect(oldest)?;
            }
            self.appends.touched.insert(range);
            self.counts.replica_ticks += 1;
        }
        self.counts.ticks += 1;
        if self.counts.ticks.is_multiple_of(SIZE_TICKS) {
            self.split_by_size()?;
        }
        if self.counts.ticks.is_multiple_of(LEADERLESS_TICKS) {
            self.tell_leaderless();
        }
        self.tick_states()?;
        self.tick_founding()?;
        self.move_leases()?;
        self.tick_placement()?;
        self.tick_closed();
        self.tick_quiet(oldest);
        self.pump()
    }

    /// Those that would ask for votes now, and whose turn it is not. Time stands still for them:
    /// elections of thousands of ranges at once would none of them come to an end.
    fn wait_with_elections(&mut self, awake: &[RangeId]) -> BTreeSet<RangeId> {
        let replicas = &self.replicas;
        let asks = |range: &RangeId| {
            replicas.get(range).is_some_and(|replica| replica.group.is_about_to_campaign())
        };
        let asking: Vec<RangeId> = awake.iter().copied().filter(asks).collect();
        let turns = self.quiet.elections.take(asking.clone());
        asking.into_iter().filter(|range| !turns.contains(range)).collect()
    }

    /// Says which replicas have heard of no leader since this was called last.
    fn tell_leaderless(&mut self) {
        let node = self.options.node;
        // Those that sleep hear of their leaders' nodes.
        for range in self.quiet.sleepers.awake() {
            let Some(replica) = self.replicas.get_mut(&range) else { continue };
            let hears = replica.group.hears_leader();
            if !hears && replica.progress.is_leaderless {
                let state = replica.describe(node);
                self.effects.notes.push(format!("{range:?} hears of no leader: {state}"));
            }
            replica.progress.is_leaderless = !hears;
        }
    }

    /// Splits what is too large and led by this node.
    fn split_by_size(&mut self) -> Result<()> {
        for range in self.quiet.sleepers.awake() {
            let Some(replica) = self.replicas.get_mut(&range) else { continue };
            let Some(at) = replica.wanted_split()? else { continue };
            let right = self.counts.new_range(self.options.node);
            let ask = Ask::Split(Split { at, right });
            replica.request(NOBODY, Request { range, ask })?;
        }
        Ok(())
    }

    /// Bytes have come from another node. What is not a message, or not for this node, does
    /// nothing; an error means that the node cannot go on.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(envelope) = Envelope::open(bytes) else { return Ok(()) };
        let bound = self.clocks.wall.now_micros() + self.options.max_clock_offset_micros;
        if micros(envelope.clock) > bound {
            return Ok(());
        }
        let (range, from) = (envelope.range, envelope.from);
        self.moves.placement.hear(from, self.counts.ticks);
        self.moves.short.hear_else(from, self.counts.ticks);
        if self.quiet.neighbours.hear(from, self.counts.ticks) {
            self.wake_ranges_of(Cause { node: from, is: Seen::Back });
        }
        if let Some(said) = envelope.said() {
            self.clocks.hlc.update(envelope.clock.0);
            self.heed(range, from, said)?;
            return self.pump();
        }
        let Some(Ok(message)) = envelope.message().map(Message::decode) else { return Ok(()) };
        if self.tell_removed(range, from, message.from()) {
            return Ok(());
        }
        let Some(replica) = self.replicas.get_mut(&range) else {
            self.clocks.hlc.update(envelope.clock.0);
            return self.receive_absent(range, from, &message);
        };
        if replica.group.id() < message.to() {
            if message.is_of_leader() {
                self.note_strange(range, from);
            }
            return Ok(());
        }
        self.clocks.hlc.update(envelope.clock.0);
        if replica.machine.state.descriptor.node_of(message.from()).is_none() {
            self.moves.placement.hear_stranger(range, message.from(), from);
        }
        if message.brings_entries() && replica.is_choked() {
            return Ok(());
        }
        if !self.wake_for_message(range, &message) {
            return self.pump();
        }
        let Some(replica) = self.replicas.get_mut(&range) else { return Ok(()) };
        match replica.group.receive(message) {
            Ok(()) | Err(Error::BadMessage(_)) => {}
            Err(error) => return Err(error),
        }
        self.appends.touched.insert(range);
        self.pump()
    }

    /// A client asks. The answer has the same number.
    pub fn request(&mut self, number: RequestNumber, mut request: Request) -> Result<()> {
        let range = request.range;
        let of_node = match &request.ask {
            Ask::Clock => Some(self.clock_asked()),
            Ask::ShowRanges => Some(Answer::ShownRanges(self.shown_ranges()?)),
            Ask::Ranges => {
                let all = self.ranges().into_iter().map(|(range, _)| range);
                Some(Answer::Ranges(all.collect()))
            }
            Ask::UnfinishedRanges => Some(Answer::Ranges(self.unfinished_ranges())),
            Ask::ReadsFrom { coordinator, oldest } => {
                self.thresholds.readers.hear(*coordinator, *oldest, self.clocks.wall.now_micros());
                Some(Answer::Fine)
            }
            Ask::Recall { coordinator } => Some(match self.quiet.recalls.recall(*coordinator) {
                Recalled::Given => Answer::Fine,
                Recalled::Held => Answer::Again,
                Recalled::Unknown => Answer::OfPredecessor { nodes: self.moves.placement.nodes() },
            }),
            Ask::Fence { coordinator } => {
                self.fence(*coordinator)?;
                Some(Answer::Fine)
            }
            ask if self.quiet.fences.refuse(ask) => Some(Answer::OutcomeUnknown),
            _ => None,
        };
        if let Some(answer) = of_node {
            self.answer_at_once(number, answer);
            return Ok(());
        }
        let is_paced = matches!(request.ask, Ask::SplitAt(_));
        if let Ask::SplitAt(at) = request.ask {
            let right = self.counts.new_range(self.options.node);
            request.ask = Ask::Split(Split { at, right });
        }
        if is_paced && self.waits_to_split(range) {
            self.wake_for_request(range);
            self.answer_at_once(number, Answer::Again);
            return Ok(());
        }
        let is_alone = |replica: &mut Replica| replica.needs_nobody(&request.ask);
        if !self.replicas.get_mut(&range).is_some_and(is_alone) {
            self.wake_for_request(range);
        }
        self.tell_of_room(range);
        let Some(replica) = self.replicas.get_mut(&range) else {
            self.answer_at_once(number, Answer::NoReplica);
            return Ok(());
        };
        replica.request(number, request)?;
        self.appends.touched.insert(range);
        self.pump()
    }

    /// Blocks until the raft log is durable up to there.
    pub fn sync_log(&self, upto: LogPlace) -> Result<()> {
        self.log.sync(upto)
    }

    /// The raft log is durable up to there.
    pub fn log_synced(&mut self, upto: LogPlace) -> Result<()> {
        self.appends.synced = self.appends.synced.max(upto);
        self.pump()
    }

    /// What the store holds now.
    pub fn store_position(&self) -> StorePosition {
        let find = |range: RangeId| Some((range, self.replicas.get(&range)?));
        // Of the others everything is durable.
        let restless: Vec<_> = self.quiet.sleepers.restless().filter_map(find).collect();
        let pending = |(_, replica): &(RangeId, &Replica)| replica.machine.pending.clone();
        let stored = |(range, replica): &(RangeId, &Replica)| (*range, replica.machine.stored);
        StorePosition {
            last: restless.iter().filter_map(pending).collect(),
            stored: restless.iter().map(stored).collect(),
            // A range that is born later has inherited one of these, or a later one.
            threshold: self.lowest_threshold(),
        }
    }

    /// The newest threshold of the node's ranges, as far as it lets nothing go in any of them that
    /// their own do not.
    fn lowest_threshold(&self) -> CommitTs {
        let awake = self.quiet.sleepers.awake().into_iter();
        let held = |range| self.replicas.get(&range)?.machine.holds_threshold();
        let held = awake.filter_map(held).chain(self.quiet.sleepers.lowest_threshold());
        let newest = CommitTs(self.thresholds.newest.load(Ordering::Acquire));
        held.fold(newest, CommitTs::min)
    }

    /// What the store held then is durable: logs may be cut, and versions may go. Blocks on the
    /// device if segments of the raft log can go.
    pub fn store_synced(&mut self, position: &StorePosition) -> Result<()> {
        // Not before the states that say so are durable: what is applied again after a crash is
        // above the thresholds that the ranges had then, but not above later ones.
        // Nor above that of a range that has got its replica since then.
        let threshold = self.lowest_threshold().min(position.threshold);
        if threshold > self.db.gc_threshold() {
            self.db.set_gc_threshold(threshold)?;
        }
        let mut batch = LogBatch::default();
        for (range, stored) in &position.stored {
            let Some(replica) = self.replicas.get_mut(range) else { continue };
            let index = replica.machine.state.cut.min(*stored);
            if index > replica.group.cut_at() {
                batch.cut(range.group(), replica.group.cut(index));
            }
            if replica.machine.stored == *stored {
                self.quiet.sleepers.is_synced(*range);
            }
        }
        self.note_old_files();
        for group in self.log.holding(2) {
            let Some(replica) = self.replicas.get(&RangeId(group.0)) else {
                self.absent.keep_promise(group, &mut batch);
                continue;
            };
            // Those with many entries are not quiet.
            let all = replica.group.all_entries().unwrap_or_default();
            batch.entries(group, &all);
        }
        if !batch.is_empty() {
            self.log.write(&batch)?;
            self.log.release()?;
        }
        Ok(())
    }

    /// Notes which groups' oldest entries keep files that could go. Ranges that should have their
    /// logs cut wake.
    fn note_old_files(&mut self) {
        let old: BTreeSet<RangeId> =
            self.log.holding(OLD_SEGMENTS).into_iter().map(|group| RangeId(group.0)).collect();
        for range in self.quiet.sleepers.awake().into_iter().chain(old.iter().copied()) {
            let Some(replica) = self.replicas.get_mut(&range) else { continue };
            replica.log.is_old = old.contains(&range);
            if replica.keeps_files() {
                self.wake(range);
            }
        }
    }

    /// What must be done.
    pub fn effects(&mut self) -> NodeEffects {
        std::mem::take(&mut self.effects)
    }

    /// How often this node was started.
    pub fn starts(&self) -> u64 {
        self.counts.starts
    }

    /// The newest threshold of a range that this node knows of: below it no transaction should
    /// begin to read. Grows.
    pub fn newest_threshold(&self) -> Arc<AtomicU64> {
        self.thresholds.newest.clone()
    }

    /// How many states of ranges this process has got instead of entries of their logs.
    pub fn states_installed(&self) -> Arc<AtomicU64> {
        self.traffic.installed.clone()
    }

    /// The store, to look at.
    pub fn store(&self) -> &Db {
        &self.db
    }

    /// What each replica has applied: its range's descriptor, and up to which entry.
    pub fn ranges(&self) -> Vec<(RangeDescriptor, LogIndex)> {
        let state = |replica: &Replica| {
            (replica.machine.state.descriptor.clone(), replica.machine.state.applied)
        };
        self.replicas.values().map(state).collect()
    }

    /// The same, for people.
    fn shown_ranges(&self) -> Result<Vec<ShownRange>> {
        let (now, view) = (self.clocks.wall.now_micros(), self.db.view(newest())?);
        let all = self.replicas.values().map(|replica| &replica.machine.state.descriptor);
        let mut moves = self.shown_moves(all).into_iter();
        let mut shown = Vec::new();
        for replica in self.replicas.values() {
            let RangeState { descriptor, lease, .. } = &replica.machine.state;
            let holder = descriptor.node_of(lease.holder).filter(|_| !lease.is_over(now));
            shown.push(ShownRange {
                id: descriptor.id.0,
                span: descriptor.span.clone(),
                replicas: descriptor.replicas.iter().map(|(_, node)| node.0).collect(),
                leaseholder: holder.map(|node| node.0),
                bytes: view.stored_bytes(&descriptor.span)?,
                moves: moves.next().flatten(),
            });
        }
        shown.sort_by(|a, b| a.span.start.cmp(&b.span.start));
        Ok(shown)
    }

    /// Leases on locks that processes of this node hold, and who wants them back.
    pub fn recalls(&self) -> &Recalls {
        &self.quiet.recalls
    }

    /// The node's clock, which every message and every answer lifts.
    pub fn hlc(&self) -> &Arc<Hlc> {
        &self.clocks.hlc
    }

    /// Whether this node serves a range at the moment.
    pub fn serves(&self, range: RangeId) -> bool {
        let replica = self.replicas.get(&range);
        replica.is_some_and(|replica| replica.serves(self.clocks.now()))
    }

    /// What has become of a transaction, as far as any replica remembers it.
    pub fn decision(&self, txn: TxnId) -> Option<Decision> {
        let mut known = self.replicas.values().filter_map(|r| r.machine.outcomes.of(txn));
        known.next()
    }

    /// How many transactions over several ranges are not at their end, as far as replicas know:
    /// prepared ones, and decided ones that somebody may not know of.
    pub fn unfinished(&self) -> (usize, usize) {
        let of = |replica: &Replica| {
            (replica.machine.prepared.len(), replica.machine.outcomes.anchored().count())
        };
        let all = self.replicas.values().map(of);
        all.fold((0, 0), |(prepared, decided), (p, d)| (prepared + p, decided + d))
    }

    /// Those of them that this node leads.
    fn unfinished_ranges(&self) -> Vec<RangeDescriptor> {
        // Whoever has some is awake.
        let awake = self.quiet.sleepers.awake().into_iter();
        let led = awake.filter_map(|range| self.replicas.get(&range));
        let led = led.filter(|replica| replica.group.is_leader() && replica.has_unfinished());
        led.map(|replica| replica.machine.state.descriptor.clone()).collect()
    }

    /// The state, a line for each replica and for each promise of one that is not there yet.
    pub fn describe(&self) -> String {
        let node = self.options.node;
        let lines = self.replicas.values().map(|replica| replica.describe(node));
        lines.chain(self.absent.describe(node)).collect::<Vec<String>>().join("\n")
    }

    /// Something has happened to a range's replica.
    pub(crate) fn touch(&mut self, range: RangeId) {
        self.appends.touched.insert(range);
    }

    /// Carries out what groups want, until they want nothing.
    pub(crate) fn pump(&mut self) -> Result<()> {
        self.tell_synced();
        while !self.appends.touched.is_empty() {
            let mut batch = LogBatch::default();
            let (mut appended, mut removed) = (Vec::new(), Vec::new());
            for range in std::mem::take(&mut self.appends.touched) {
                let Some(replica) = self.replicas.get_mut(&range) else { continue };
                let effects = replica.group.effects();
                let idle = effects.appends.is_empty()
                    && effects.apply.is_empty()
                    && effects.fetch.is_empty();
                self.send(range, effects.send);
                self.note_behind(range, &effects.behind);
                for append in effects.appends {
                    batch.append(range.group(), &append);
                    appended.push((range, append.number, append.send));
                }
                let Some(replica) = self.replicas.get_mut(&range) else { continue };
                for fetch in effects.fetch {
                    let (first, end) = (fetch.first(), fetch.end());
                    let entries = self.log.read(range.group(), first, end, fetch.bytes())?;
                    replica.group.fetched(fetch, &entries);
                }
                replica.take_committed(effects.apply);
                replica.apply()?;
                let threshold = replica.machine.state.gc;
                self.thresholds.newest.fetch_max(threshold.0, Ordering::AcqRel);
                if replica.progress.is_removed {
                    removed.push(range);
                }
                let (answers, born) = (replica.answers.take(), take(&mut replica.progress.born));
                for state in born {
                    self.bear(range, state)?;
                }
                self.answer(answers);
                if !idle {
                    self.appends.touched.insert(range);
                }
            }
            let place = self.log.write(&batch)?;
            let unsynced = |(range, number, send)| Unsynced { place, range, number, send };
            self.appends.unsynced.extend(appended.into_iter().map(unsynced));
            for range in removed {
                self.retire(range)?;
            }
            self.tell_synced();
        }
        let awaited = self.appends.unsynced.back().map(|unsynced| unsynced.place);
        self.effects.sync = awaited.filter(|place| *place > self.appends.synced);
        Ok(())
    }

    /// Makes the replica of a range that another one was split into. It is durable before it takes
    /// part in anything: whoever counts on it must not find that it is gone with the end of the
    /// store's log. Blocks on the device.
    fn bear(&mut self, left: RangeId, state: RangeState) -> Result<()> {
        let range = state.descriptor.id;
        if self.replicas.contains_key(&range) {
            let reason = format!("{range:?} is split off and has a replica already");
            return Err(Error::Inconsistent(reason));
        }
        if let Some(pending) = self.replicas.get(&left).and_then(|l| l.machine.pending.clone()) {
            pending.wait_durable()?;
        }
        let logged = self.absent.unborn.remove(&range.group()).unwrap_or_default();
        self.add_replica(state, logged)?;
        let mut replica = self.replicas.remove(&range).expect("it was added");
        let inherited = match self.replicas.get_mut(&left) {
            Some(left) => replica.inherit(left),
            None => Ok(()),
        };
        self.replicas.insert(range, replica);
        inherited
    }

    /// Makes a replica of what store and log have.
    pub(crate) fn add_replica(&mut self, state: RangeState, logged: LoggedGroup) -> Result<()> {
        let range = state.descriptor.id;
        let logged = with_unapplied(&self.log, &state, logged)?;
        let random = Random::seeded(self.random.next_u64());
        let made = (self.options, self.clocks.clone(), self.forms);
        let replica = open_replica(&self.db, state, logged, random, made)?;
        self.replicas.insert(range, replica);
        self.quiet.sleepers.begin(range);
        self.watch_nodes_of(range);
        self.appends.touched.insert(range);
        Ok(())
    }

    /// What was appended for a replica that begins anew is not awaited.
    pub(crate) fn forget_unsynced(&mut self, range: RangeId) {
        self.appends.unsynced.retain(|unsynced| unsynced.range != range);
    }

    /// Followers need what was cut of a range's log.
    fn note_behind(&mut self, range: RangeId, behind: &[ReplicaId]) {
        let Some(replica) = self.replicas.get(&range) else { return };
        for follower in behind {
            if let Some(node) = replica.machine.state.descriptor.node_of(*follower) {
                self.traffic.want(range, node);
            }
        }
    }

    /// Answers to requests, with what the node knows of other ranges.
    pub(crate) fn answer(&mut self, answers: Vec<Answered>) {
        let answers = answers.into_iter().filter(|answered| answered.number != NOBODY);
        let told = |answered: Answered| Answered { answer: self.told(answered.answer), ..answered };
        let answers: Vec<Answered> = answers.map(told).collect();
        self.effects.answers.extend(answers);
    }

    /// Answers a request that no replica has to look at.
    pub(crate) fn answer_at_once(&mut self, number: RequestNumber, answer: Answer) {
        let times = AnswerTimes::of(CommitTs(self.clocks.hlc.now()));
        self.effects.answers.push(Answered { number, times, answer });
    }

    /// What messages say of this node's clock.
    pub(crate) fn clock(&self) -> CommitTs {
        let wall = Hlc::from_micros(self.clocks.wall.now_micros());
        CommitTs(self.clocks.hlc.peek().max(wall))
    }

    /// Whoever asks for the clock relies on it to be above all that this node has ever stamped. An
    /// earlier process may have stamped times of a clock that was ahead by the bound.
    fn clock_asked(&self) -> Answer {
        let age = self.clocks.wall.now_micros().saturating_sub(self.counts.began_micros);
        match age > self.options.max_clock_offset_micros {
            true => Answer::Fine,
            false => Answer::Refused("its clock may be behind what it has stamped before".into()),
        }
    }

    /// An answer with what the node knows of other ranges: of the next ones in key order, which
    /// have got what the range has given away, and not of all, since there may be very many.
    /// Whoever learns nothing new by that asks for all.
    fn told(&self, answer: Answer) -> Answer {
        const MOST: usize = 64;
        match answer {
            Answer::WrongRange { mut known } => {
                let end = known[0].span.end.clone();
                let all = self.replicas.values().map(|replica| &replica.machine.state.descriptor);
                let mut next: Vec<_> = all.filter(|other| other.span.start >= end).collect();
                if next.len() > MOST {
                    let by_start = |a: &&RangeDescriptor, b: &&RangeDescriptor| {
                        a.span.start.cmp(&b.span.start)
                    };
                    next.select_nth_unstable_by(MOST, by_start);
                }
                known.extend(next.into_iter().take(MOST).cloned());
                Answer::WrongRange { known }
            }
            other => other,
        }
    }

    /// Tells groups what is durable.
    fn tell_synced(&mut self) {
        while let Some(unsynced) = self.appends.unsynced.pop_front() {
            if unsynced.place > self.appends.synced {
                self.appends.unsynced.push_front(unsynced);
                return;
            }
            let Unsynced { range, number, send, .. } = unsynced;
            self.send(range, send);
            if let Some(replica) = self.replicas.get_mut(&range) {
                replica.group.persisted(number);
                self.appends.touched.insert(range);
            }
        }
    }

    pub(crate) fn send(&mut self, range: RangeId, messages: Vec<Message>) {
        let Some(replica) = self.replicas.get(&range) else { return };
        let descriptor = &replica.machine.state.descriptor;
        let head = (range, self.options.node, self.clock());
        for message in messages {
            let stranger = || self.moves.placement.stranger(range, message.to());
            if let Some(node) = descriptor.node_of(message.to()).or_else(stranger) {
                let bytes = Envelope::of_group(head, message.encode()).seal();
                self.effects.send.push((node, bytes));
            }
        }
    }
}

/// What the log has of a group, with all entries that are not applied.
fn with_unapplied(log: &RaftLog, state: &RangeState, logged: LoggedGroup) -> Result<LoggedGroup> {
    let next = state.applied.max(logged.cut.0).next();
    let Some(first) = logged.entries.first().map(|entry| entry.index).filter(|at| next < *at)
    else {
        return Ok(logged);
    };
    let mut entries = log.read(state.descriptor.id.group(), next, first, u64::MAX)?;
    entries.extend(logged.entries);
    let older = logged.older.into_iter().filter(|(begins, _)| *begins < next).collect();
    Ok(LoggedGroup { older, entries, ..logged })
}

fn open_replica(
    db: &Db,
    state: RangeState,
    logged: LoggedGroup,
    random: Random,
    (options, clocks, forms): (NodeOptions, Clocks, ValueForms),
) -> Result<Replica> {
    let range = state.descriptor.id;
    let lost = || Error::Inconsistent(format!("{range:?} has no replica on this node"));
    let id = state.descriptor.replica_on(options.node).ok_or_else(lost)?;
    let start = GroupStart {
        hard_state: logged.hard_state,
        replicas: state.replicas(),
        applied: state.applied,
        cut: logged.cut,
        older: logged.older,
        older_bytes: logged.older_bytes,
        entries: logged.entries,
    };
    let group = Group::open(id, options.group, start, random)
        .map_err(|error| Error::Inconsistent(format!("{range:?}: {error}")))?;
    let machine = Machine::open(db.clone(), state, options.outcome_window_micros, forms)?;
    Ok(Replica::new(group, machine, options, clocks))
}

/// The states of all replicas in the store.
pub(crate) fn stored_states(db: &Db) -> Result<Vec<RangeState>> {
    let view = db.view(newest())?;
    let mut scan = view.scan(local_keys::all_ranges(), ScanOptions::default())?;
    let mut states = Vec::new();
    while let Some(row) = scan.next_row()? {
        if local_keys::is_state(&row.key) {
            let damaged = || Error::Inconsistent("the state of a range is damaged".into());
            states.push(RangeState::decode(&row.value).ok_or_else(damaged)?);
        }
    }
    Ok(states)
}

/// Whether a store is that of a node of a cluster, or was: what it holds counts together with the
/// node's raft log only, and with what the node has promised.
///
/// # Errors
/// The store's.
pub fn is_of_cluster(db: &Db) -> Result<bool> {
    Ok(db.get(local_keys::NODE, newest())?.is_some())
}

/// Counts a start of the node's store; at the first one, its replicas get their states. Durable
/// when it returns.
fn count_start(db: &Db, node: NodeId, ranges: &[RangeDescriptor]) -> Result<u64> {
    let wrong = |reason: String| Err(Error::Inconsistent(reason));
    let mut starts = 0;
    if let Some(record) = db.get(local_keys::NODE, newest())? {
        let mut reader = Reader::new(&record);
        let (Some(owner), Some(count)) = (reader.number(), reader.number()) else {
            return wrong("the node's record is damaged".into());
        };
        if owner != node.0 {
            return wrong(format!("this is the store of n{owner}, not of {node:?}"));
        }
        starts = count;
    }
    starts += 1;
    let (newest, gc) = (db.last_commit_ts(), db.gc_threshold());
    let mut batch = Batch::at(stamp_for(db, local_keys::NODE)?);
    let mut record = Vec::new();
    put_number(&mut record, node.0);
    put_number(&mut record, starts);
    batch.put(local_keys::NODE, &record);
    if starts == 1 {
        for range in ranges.iter().filter(|range| range.replica_on(node).is_some()) {
            let state = RangeState::over_rows(range.clone(), newest, gc);
            batch.put(&local_keys::state(range.id), &state.encode());
        }
    }
    db.write(batch, Durability::Sync)?;
    Ok(starts)
}
