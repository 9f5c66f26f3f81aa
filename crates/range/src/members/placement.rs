//! Where replicas should be: who leads a range looks whether its nodes are the right ones, and
//! changes them one by one.
//!
//! ```text
//!   node      fit      heard of within 3 s, and a member
//!             away     not heard of for a while, or short of room on its disk
//!             dead     for longer than an operator wants to wait
//!             leaving  its operator wants it to be empty
//! ```
//!
//! For each range, the first that applies:
//!
//! 1. A replica that does not vote any more goes.
//! 2. A replica that does not vote yet is given the range's state; when it has nearly all of the
//!    log it gets its vote. If its node is not there any more it goes.
//! 3. One voter too many: one loses its vote, of a dead or leaving node first, then of one that is
//!    away, then of the node with the most replicas.
//! 4. A voter on a dead or leaving node: a fit node gets a replica, the one that is furthest from
//!    the other voters, and of those the one with the fewest.
//! 5. Too few voters: the same.
//! 6. A fit node is further from the others than some voter's node: it gets a replica.
//! 7. A voter's node has at least two replicas more, or a 64th of what it has, than some fit node
//!    that is no closer to the others: that one gets a replica.
//!
//! How close nodes are is counted by their [localities](super::locality), pair by pair. In 3, of
//! nodes that are equally well the one that is closest to the others loses its vote.
//!
//! No step is taken that leaves fewer than a majority of the voters there and up to date. Without
//! another fit node nothing moves: a range keeps its dead replica, with which it is not worse off
//! than without.
//!
//! Whoever leads decides for its ranges alone; nodes say every second how many replicas they have.
//! A step needs a lease and an entry of the log like every other change, so two who believe that
//! they lead cannot both take one.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use braid_consensus::{ReplicaId, Result};

use crate::command::Act;
use crate::ids::{NodeId, RangeDescriptor, RangeId};
use crate::members::locality::Locality;
use crate::members::replica_changes::Change;
use crate::raft_snapshot::Said;
use crate::replica::{Matter, Replica};
use crate::replicas::Replicas;
use crate::request::NOBODY;

/// Every so many ticks a node says how many replicas it has, and looks for steps. No multiple of
/// what elections take: then it would always look when the leader has begun to count anew who is
/// there.
const SAY_TICKS: u64 = 11;
/// What goes on with a change that was begun is looked at every so many ticks: a replica is moved
/// by four steps.
const GO_ON_TICKS: u64 = 2;
/// A node that was not heard of for so many ticks is away.
const AWAY_TICKS: u64 = 30;
/// A replica that has not heard of a leader asks every so many ticks whether it was removed.
const ASK_TICKS: u64 = 53;
/// So many replicas of others are remembered that are not known here; they say something again.
const MOST_STRANGERS: usize = 10_000;
/// So many replicas at a time are on their way to their votes, of the ranges that a node leads.
/// States of large ones wait for each other nevertheless.
const ON_THE_WAY: usize = 8;
/// The same if some nodes have very many more than others.
const MOST_ON_THE_WAY: usize = 16;

/// Of so many replicas one more or less does not matter.
const MANY: u64 = 64;

/// How ranges are looked at.
struct Turn {
    /// So many voters.
    wanted: usize,
    /// Whether replicas move for the sake of balance.
    balances: bool,
    /// Whether who has not all of the log is given the state again; who was given it a moment ago
    /// may not have said yet that it has it.
    feeds: bool,
}

/// What the cluster wants of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It has its share.
    Member,
    /// It gives away all that it has.
    Leaving,
    /// It is not let in any more.
    Gone,
}

/// The nodes of the cluster, as far as this node knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    /// Each range has so many replicas, if there are as many nodes.
    pub replicas: usize,
    /// All nodes that there ever were.
    pub nodes: BTreeMap<NodeId, Standing>,
    /// Where they are, of those that have said it.
    pub localities: BTreeMap<NodeId, Locality>,
}

/// What a node is good for at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Health {
    Fit,
    Away,
    Leaving,
    Dead,
}

impl Health {
    fn must_go(self) -> bool {
        self >= Health::Leaving
    }
}

/// A node as it looks from here.
#[derive(Debug, Clone, Copy)]
struct Seen {
    health: Health,
    replicas: u64,
}

/// What is to be done next with the replicas of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A replica needs the state.
    Feed(NodeId),
    Take(Change),
}

/// What a node knows of where replicas should be.
#[derive(Default)]
pub(crate) struct Placement {
    /// `None`: nobody has said; replicas stay where they are.
    members: Option<Members>,
    /// By node: in which tick it was heard last.
    heard: BTreeMap<NodeId, u64>,
    /// How many replicas it has, as it said or as will be.
    counts: BTreeMap<NodeId, u64>,
    /// How many ranges it leads, the same way.
    led: BTreeMap<NodeId, u64>,
    /// A step could not be taken: a lease was over, and has been renewed since then.
    again: bool,
    /// Ranges of which a replica is about to come or to go; whether the one that comes was given
    /// the state already.
    changing: BTreeMap<RangeId, bool>,
    /// Where replicas are that have said something and that this node's own replica has not heard
    /// of: they were added while it was away. Without an answer they could not give it anything.
    strangers: BTreeMap<(RangeId, ReplicaId), NodeId>,
    /// How nodes looked when it was looked at ranges that sleep, and none of them had a step to
    /// take.
    looked: Option<(usize, BTreeMap<NodeId, Health>)>,
}

impl Placement {
    /// Something was heard of a node.
    pub(crate) fn hear(&mut self, node: NodeId, tick: u64) {
        self.heard.insert(node, tick);
    }

    /// Whether a node was heard of lately.
    pub(crate) fn has_heard(&self, node: NodeId, tick: u64) -> bool {
        self.heard.get(&node).is_some_and(|heard| heard + AWAY_TICKS > tick)
    }

    /// A replica that is not known here has said something.
    pub(crate) fn hear_stranger(&mut self, range: RangeId, replica: ReplicaId, node: NodeId) {
        if self.strangers.len() >= MOST_STRANGERS {
            self.strangers.clear();
        }
        self.strangers.insert((range, replica), node);
    }

    /// Where a replica is that is not known here.
    pub(crate) fn stranger(&self, range: RangeId, replica: ReplicaId) -> Option<NodeId> {
        self.strangers.get(&(range, replica)).copied()
    }

    /// A node has said how many replicas it has, and how many ranges it leads.
    pub(crate) fn hear_counts(&mut self, node: NodeId, replicas: u64, led: u64) {
        self.counts.insert(node, replicas);
        self.led.insert(node, led);
    }

    /// How many ranges a node leads, as far as it has said.
    pub(crate) fn led(&self, node: NodeId) -> u64 {
        self.led.get(&node).copied().unwrap_or(0)
    }

    /// A node gets one lease more.
    pub(crate) fn leads_more(&mut self, node: NodeId) {
        // Where nobody says anything, nothing would ever be taken back.
        if self.members.is_some() {
            *self.led.entry(node).or_default() += 1;
        }
    }

    /// All nodes that may have replicas, as far as somebody has said.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        let nodes = self.members.iter().flat_map(|members| &members.nodes);
        let present = nodes.filter(|(_, standing)| **standing != Standing::Gone);
        present.map(|(node, _)| *node).collect()
    }

    /// Whether a node gives away what it has.
    pub(crate) fn is_leaving(&self, node: NodeId) -> bool {
        let standing = self.members.as_ref().and_then(|members| members.nodes.get(&node));
        standing.is_some_and(|standing| *standing != Standing::Member)
    }

    fn see(&self, own: NodeId, (now, dead_after): (u64, u64)) -> BTreeMap<NodeId, Seen> {
        let nodes = self.members.iter().flat_map(|members| &members.nodes);
        let look = |(node, standing): (&NodeId, &Standing)| {
            let heard = match *node == own {
                true => Some(now),
                false => self.heard.get(node).copied(),
            };
            let silent = now - heard.unwrap_or(0).min(now);
            let health = match standing {
                Standing::Gone => Health::Dead,
                _ if silent >= dead_after => Health::Dead,
                Standing::Leaving => Health::Leaving,
                // Who was never heard of may not have been started yet: nothing is given to it.
                Standing::Member if silent >= AWAY_TICKS || heard.is_none() => Health::Away,
                Standing::Member => Health::Fit,
            };
            let replicas = self.counts.get(node).copied().unwrap_or(0);
            (*node, Seen { health, replicas })
        };
        nodes.map(look).collect()
    }
}

/// What a step is decided by.
struct Situation<'a> {
    range: &'a RangeDescriptor,
    own: NodeId,
    wanted: usize,
    nodes: &'a BTreeMap<NodeId, Seen>,
    localities: &'a BTreeMap<NodeId, Locality>,
    /// Whether a replica is there and has nearly all of the log.
    is_current: &'a dyn Fn(ReplicaId) -> bool,
    /// Whether it may be that a replica moves for the sake of balance.
    balances: bool,
}

impl Situation<'_> {
    /// Who is not in the list of nodes yet is left in peace.
    fn health(&self, node: NodeId) -> Health {
        self.nodes.get(&node).map_or(Health::Away, |seen| seen.health)
    }

    fn replicas(&self, node: NodeId) -> u64 {
        self.nodes.get(&node).map_or(0, |seen| seen.replicas)
    }

    /// Whether of these voters a majority is up to date.
    fn holds(&self, voters: impl Iterator<Item = (ReplicaId, NodeId)>) -> bool {
        let (mut all, mut there) = (0, 0);
        for (replica, node) in voters {
            all += 1;
            there += usize::from(node == self.own || (self.is_current)(replica));
        }
        there > all / 2
    }

    /// Fit nodes that have no replica of this range.
    fn candidates(&self) -> impl Iterator<Item = NodeId> {
        let fit = self.nodes.iter().filter(|(node, seen)| {
            seen.health == Health::Fit && self.range.replica_on(**node).is_none()
        });
        fit.map(|(node, _)| *node)
    }

    /// Of these the one that is furthest from the voters that stay, and has the fewest replicas.
    fn candidate(&self) -> Option<NodeId> {
        let order = |node: &NodeId| (self.closeness(*node, None), self.replicas(*node), *node);
        self.candidates().min_by_key(order)
    }

    /// How close a node is to the voters, but for itself, those that must go, and `without`.
    fn closeness(&self, node: NodeId, without: Option<NodeId>) -> usize {
        let Some(own) = self.localities.get(&node) else { return 0 };
        let voters = self.range.replicas.iter().map(|(_, voter)| *voter);
        let others = voters.filter(|other| {
            *other != node && Some(*other) != without && !self.health(*other).must_go()
        });
        others.filter_map(|other| self.localities.get(&other)).map(|at| own.closeness(at)).sum()
    }

    /// A voter, and the node that should have a replica instead, since it is further from the
    /// others: the pair for which that is most.
    fn misplaced(&self) -> Option<(NodeId, NodeId)> {
        let by_place = self.pairs().map(|(voter, node)| {
            let gain =
                self.closeness(voter, None) as i64 - self.closeness(node, Some(voter)) as i64;
            (gain, voter, node)
        });
        let (gain, voter, node) = by_place.max_by_key(|(gain, voter, node)| {
            (*gain, std::cmp::Reverse(self.replicas(*node)), *voter)
        })?;
        (gain > 0).then_some((voter, node))
    }

    /// A voter's node with two replicas more than another one that would do as well; of many, with
    /// more of them than are on their way anyhow, or they would be moved to and fro.
    fn uneven(&self) -> Option<(NodeId, NodeId)> {
        let no_closer = |(voter, node): &(NodeId, NodeId)| {
            self.closeness(*node, Some(*voter)) <= self.closeness(*voter, None)
        };
        let more = |(voter, node): &(NodeId, NodeId)| {
            (self.replicas(*voter) as i64 - self.replicas(*node) as i64, std::cmp::Reverse(*node))
        };
        let pair = self.pairs().filter(no_closer).max_by_key(more)?;
        let least = worth_a_move(self.replicas(pair.0));
        (more(&pair).0 >= least as i64).then_some(pair)
    }

    /// Voters on other nodes, with those that could have a replica instead.
    fn pairs(&self) -> impl Iterator<Item = (NodeId, NodeId)> {
        let voters = self.range.replicas.iter().map(|(_, node)| *node);
        let others = voters.filter(|node| *node != self.own);
        others.flat_map(|voter| self.candidates().map(move |node| (voter, node)))
    }

    /// Whether nothing has to be done.
    fn is_settled(&self) -> bool {
        let RangeDescriptor { replicas, learners, leaving, .. } = self.range;
        let stays = |(_, node): &(ReplicaId, NodeId)| !self.health(*node).must_go();
        let moves = !learners.is_empty() || !leaving.is_empty();
        let all = !moves && replicas.len() == self.wanted && replicas.iter().all(stays);
        all && self.misplaced().is_none()
    }

    fn add(&self) -> Option<Step> {
        self.candidate().map(|node| self.add_on(node))
    }

    fn add_on(&self, node: NodeId) -> Step {
        Step::Take(Change::Add(self.range.next_replica, node))
    }

    fn next(&self) -> Option<(Step, &'static str)> {
        let (range, voters) = (self.range, &self.range.replicas);
        if let Some(&(replica, _)) = range.leaving.first() {
            return Some((Step::Take(Change::Remove(replica)), "it has no vote any more"));
        }
        if let Some(&(learner, node)) = range.learners.first() {
            if self.health(node).must_go() {
                return Some((
                    Step::Take(Change::Remove(learner)),
                    "its node is not there any more",
                ));
            }
            if !(self.is_current)(learner) {
                return Some((Step::Feed(node), ""));
            }
            let all = voters.iter().chain(&range.learners).copied();
            let holds = self.holds(all);
            return holds.then_some((Step::Take(Change::Promote(learner)), "it has what there is"));
        }
        if voters.len() > self.wanted {
            return self.one_less();
        }
        if voters.iter().any(|(_, node)| self.health(*node).must_go()) {
            return Some((self.add()?, "in place of one whose node is dead or leaving"));
        }
        if voters.len() < self.wanted {
            return Some((self.add()?, "there are too few"));
        }
        if let Some((_, node)) = self.misplaced() {
            return Some((self.add_on(node), "its node is further from the others"));
        }
        let (_, node) = self.uneven().filter(|_| self.balances)?;
        Some((self.add_on(node), "its node has the fewest"))
    }

    fn one_less(&self) -> Option<(Step, &'static str)> {
        // Who gives its leases away is removed by the next who leads.
        if self.health(self.own).must_go() {
            return None;
        }
        let others = self.range.replicas.iter().filter(|(_, node)| *node != self.own);
        let order =
            |node| (self.health(node), self.closeness(node, None), self.replicas(node), node);
        let (victim, node) = *others.max_by_key(|(_, node)| order(*node))?;
        let rest = self.range.replicas.iter().copied().filter(|(replica, _)| *replica != victim);
        let why = match self.health(node) {
            Health::Fit if self.closeness(node, None) > 0 => "its node is closest to the others",
            Health::Fit => "its node has the most",
            Health::Away => "its node is away",
            Health::Leaving => "its node is leaving",
            Health::Dead => "its node is dead",
        };
        self.holds(rest).then_some((Step::Take(Change::Demote(victim)), why))
    }
}

/// How many replicas less another node must have to get one of a node that has so many.
fn worth_a_move(replicas: u64) -> u64 {
    (replicas / MANY).max(2)
}

/// How many replicas more than one that could get some the node with the most has, if that is
/// worth a move.
fn unevenness(nodes: &BTreeMap<NodeId, Seen>) -> u64 {
    let fit = nodes.values().filter(|seen| seen.health == Health::Fit);
    let fewest = fit.map(|seen| seen.replicas).min();
    let most = nodes.values().map(|seen| seen.replicas).max();
    let pair = most.zip(fewest).filter(|(most, fewest)| *most >= fewest + worth_a_move(*most));
    pair.map_or(0, |(most, fewest)| most - fewest)
}

/// How many replicas a node moves in one turn for the sake of balance. All nodes do it without
/// asking each other, so that is few of what there is to be moved.
fn moved_in_a_turn(nodes: &BTreeMap<NodeId, Seen>) -> usize {
    const PARTS: u64 = 8;
    let share = unevenness(nodes) / (PARTS * nodes.len().max(1) as u64);
    (share as usize).clamp(1, MOST_ON_THE_WAY)
}

/// What is about to change in who has a replica of a range, and why, for people.
fn told(
    range: &RangeDescriptor,
    nodes: &BTreeMap<NodeId, Seen>,
    members: &Members,
) -> Option<String> {
    let mut parts = Vec::new();
    let voters: Vec<NodeId> = range.replicas.iter().map(|(_, node)| *node).collect();
    for node in &voters {
        let why = match nodes.get(node).map(|seen| seen.health) {
            _ if members.nodes.get(node) == Some(&Standing::Gone) => "gone",
            Some(Health::Dead) => "dead",
            Some(Health::Leaving) => "leaving",
            Some(Health::Fit | Health::Away) | None => continue,
        };
        parts.push(format!("node {} is {why}", node.0));
    }
    let is_short = !parts.is_empty() || voters.len() < members.replicas;
    let is_fit = |(node, seen): (&NodeId, &Seen)| {
        seen.health == Health::Fit && range.replica_on(*node).is_none()
    };
    for (_, node) in &range.learners {
        parts.push(format!("node {} is given the range", node.0));
    }
    parts.extend(range.leaving.iter().map(|(_, node)| format!("node {} lets it go", node.0)));
    if range.learners.is_empty() && range.leaving.is_empty() {
        if voters.len() > members.replicas {
            parts.push(format!("{} replicas instead of {}", voters.len(), members.replicas));
        } else if is_short && !nodes.iter().any(is_fit) {
            parts.push("there is no other node".into());
        }
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

impl Replica {
    /// Proposes other replicas; whether it did.
    fn change_replicas(&mut self, change: Change) -> Result<bool> {
        // The lease of a range that nobody asks anything is over.
        self.wanted = true;
        let ts = self.next_write();
        let is_founding = !self.machine.state.unfounded.is_empty();
        let busy = self.is_being_split() || self.is_closing() || self.is_changing() || is_founding;
        if busy || !self.proposes() || !self.serves(ts) {
            return Ok(false);
        }
        self.propose_for(
            NOBODY,
            Matter::Replicas,
            (ts, Vec::new(), Vec::new()),
            Act::Replicas(change),
        )?;
        Ok(self.is_changing())
    }

    /// A replica that leads and has lost its vote meanwhile: somebody else had proposed that. It
    /// cannot have the lease, so another one has to lead.
    pub(crate) fn hand_on_without_a_vote(&mut self) {
        let descriptor = &self.machine.state.descriptor;
        if self.group.is_leader() && !descriptor.is_voter(self.group.id()) {
            let voters = descriptor.replicas.iter().map(|(replica, _)| *replica);
            if let Some(next) = voters.filter(|other| self.group.is_current(*other)).max() {
                self.group.transfer_leadership(next);
            }
        }
    }

    fn is_changing(&self) -> bool {
        self.pending.values().any(|pending| pending.matter == Matter::Replicas)
    }
}

impl Replicas {
    /// From now on these are the nodes of the cluster: replicas move to where they should be.
    pub fn set_members(&mut self, members: Members) {
        if self.moves.placement.members.as_ref() != Some(&members) {
            self.moves.placement.looked = None;
        }
        self.moves.placement.members = Some(members);
    }

    /// All nodes as they look from here. Nothing is given to those that are short of room.
    fn nodes_seen(&self) -> BTreeMap<NodeId, Seen> {
        let time = (self.counts.ticks, self.options.dead_after_ticks);
        let mut nodes = self.moves.placement.see(self.options.node, time);
        for (node, seen) in &mut nodes {
            if seen.health == Health::Fit && self.moves.short.has(*node) {
                seen.health = Health::Away;
            }
        }
        nodes
    }

    /// What is about to change in who has a replica, a line for each of these ranges; `None`:
    /// nothing, or nobody has said who belongs to the cluster.
    pub(crate) fn shown_moves<'a>(
        &self,
        ranges: impl Iterator<Item = &'a RangeDescriptor>,
    ) -> Vec<Option<String>> {
        let nodes = self.nodes_seen();
        let members = self.moves.placement.members.as_ref();
        ranges.map(|range| told(range, &nodes, members?)).collect()
    }

    /// Time has passed for replicas that are to move.
    pub(crate) fn tick_placement(&mut self) -> Result<()> {
        let Some(members) = &self.moves.placement.members else { return Ok(()) };
        let (own, now, wanted) = (self.options.node, self.counts.ticks, members.replicas);
        let others = members
            .nodes
            .iter()
            .filter(|(node, standing)| **node != own && **standing != Standing::Gone);
        let others: Vec<NodeId> = others.map(|(node, _)| *node).collect();
        if now.is_multiple_of(ASK_TICKS) {
            self.ask_whether_removed(&others);
        }
        let again = std::mem::take(&mut self.moves.placement.again);
        if !now.is_multiple_of(SAY_TICKS) {
            return match again {
                true => self.place(wanted, false),
                false if now.is_multiple_of(GO_ON_TICKS) => self.go_on(wanted),
                false => Ok(()),
            };
        }
        let replicas = self.replicas.len() as u64;
        self.moves.placement.counts.insert(own, replicas);
        let led = self.moves.led.load(Ordering::Relaxed);
        others.iter().for_each(|node| self.say(RangeId(0), *node, &Said::Here { replicas, led }));
        // Not all who lead at the same time, or the one with the fewest had the most; unless there
        // is much to do.
        let balances = self.random.chance(1, others.len() as u64 + 1);
        let much = self.moved_in_a_turn(&self.nodes_seen()) > 1;
        self.place(wanted, balances || much)
    }

    fn moved_in_a_turn(&self, nodes: &BTreeMap<NodeId, Seen>) -> usize {
        if self.is_busy() { 1 } else { moved_in_a_turn(nodes) }
    }

    /// The ranges that this node leads and that may have a step to take. Those that sleep are among
    /// them if nodes look otherwise than before, or if one may move for the sake of balance.
    fn ranges_to_place(
        &mut self,
        (wanted, balances): (usize, bool),
        nodes: &BTreeMap<NodeId, Seen>,
    ) -> Vec<RangeId> {
        let looks = nodes.iter().map(|(node, seen)| (*node, seen.health)).collect();
        let looks = Some((wanted, looks));
        let all = self.moves.placement.looked != looks || balances && unevenness(nodes) > 0;
        self.moves.placement.looked = looks;
        let some = match all {
            true => self.replicas.keys().copied().collect(),
            false => self.quiet.sleepers.awake(),
        };
        let leads = |range: &RangeId| self.replicas.get(range).map(|r| r.group.is_leader());
        some.into_iter().filter(|range| leads(range) == Some(true)).collect()
    }

    /// A range that this node leads falls asleep. If it should have other replicas it is looked at
    /// nevertheless.
    pub(crate) fn look_again_at(&mut self, range: RangeId) {
        let Some(members) = &self.moves.placement.members else { return };
        let (wanted, nodes) = (members.replicas, self.nodes_seen());
        let (_, is_settled) = self.next_step(range, (wanted, false), &nodes);
        if !is_settled {
            self.moves.placement.looked = None;
        }
    }

    /// What a range that this node leads has to do next; and whether nothing has to be done.
    fn next_step(
        &self,
        range: RangeId,
        (wanted, balances): (usize, bool),
        nodes: &BTreeMap<NodeId, Seen>,
    ) -> (Option<(Step, &'static str)>, bool) {
        let (replica, own) = (&self.replicas[&range], self.options.node);
        let descriptor = &replica.machine.state.descriptor;
        let (sleeps, neighbours) = (self.sleeps(range), &self.quiet.neighbours);
        let is_current = |other| {
            // What a leader that sleeps knows of others may be old.
            let node = descriptor.node_of(other).filter(|_| sleeps);
            replica.group.is_current(other) && !node.is_some_and(|node| neighbours.is_silent(node))
        };
        let is_current: &dyn Fn(ReplicaId) -> bool = &is_current;
        let nowhere = BTreeMap::new();
        let members = self.moves.placement.members.as_ref();
        let localities = members.map_or(&nowhere, |members| &members.localities);
        let situation =
            Situation { range: descriptor, own, wanted, nodes, localities, is_current, balances };
        (situation.next(), situation.is_settled())
    }

    /// Takes the next step of each range that this node leads, as far as there is room.
    fn place(&mut self, wanted: usize, balances: bool) -> Result<()> {
        let nodes = self.nodes_seen();
        let ranges = self.ranges_to_place((wanted, balances), &nodes);
        self.place_some(ranges, nodes, Turn { wanted, balances, feeds: true })
    }

    /// The same for ranges that are changing.
    fn go_on(&mut self, wanted: usize) -> Result<()> {
        let replicas = &self.replicas;
        let leads = |range: &RangeId| replicas.get(range).is_some_and(|r| r.group.is_leader());
        self.moves.placement.changing.retain(|range, _| leads(range));
        if self.moves.placement.changing.is_empty() {
            return Ok(());
        }
        let ranges = self.moves.placement.changing.keys().copied().collect();
        let nodes = self.nodes_seen();
        self.place_some(ranges, nodes, Turn { wanted, balances: false, feeds: false })
    }

    fn place_some(
        &mut self,
        ranges: Vec<RangeId>,
        mut nodes: BTreeMap<NodeId, Seen>,
        turn: Turn,
    ) -> Result<()> {
        let Turn { wanted, mut balances, feeds } = turn;
        // Who has replicas on the way does not sleep.
        let learners = |range: &RangeId| {
            self.replicas.get(range).map_or(0, |r| r.machine.state.descriptor.learners.len())
        };
        let mut on_the_way: usize = ranges.iter().map(learners).sum();
        let mut woken = 0;
        let in_a_turn = self.moved_in_a_turn(&nodes);
        let most = ON_THE_WAY.max(in_a_turn);
        let mut moved = 0;
        for range in ranges {
            let sleeps = self.sleeps(range);
            let (next, settled) = self.next_step(range, (wanted, balances), &nodes);
            if settled {
                self.moves.placement.changing.remove(&range);
            }
            if !settled
                && !sleeps
                && let Some(replica) = self.replicas.get_mut(&range)
            {
                // Where nothing is written, nobody knows who is up to date: its lease is renewed.
                replica.wanted = true;
            }
            let Some((step, why)) = next else { continue };
            if sleeps {
                // It may have to wait for others, and is looked at again until it is done.
                self.moves.placement.looked = None;
                if woken >= most {
                    continue;
                }
            }
            match step {
                Step::Feed(node) => {
                    let fed = self.moves.placement.changing.insert(range, true);
                    if feeds || fed != Some(true) {
                        self.traffic.want(range, node);
                    }
                }
                Step::Take(Change::Add(..)) if on_the_way >= most => {}
                Step::Take(change) => {
                    let count = usize::from(matches!(change, Change::Add(..)));
                    woken += usize::from(self.wake(range));
                    if self.take_step(range, change, why)? {
                        on_the_way += count;
                        moved += count;
                        // What others have said of their replicas does not count with these.
                        balances &= moved < in_a_turn;
                        nodes = self.nodes_seen();
                    } else {
                        self.moves.placement.again = true;
                    }
                }
            }
        }
        Ok(())
    }

    fn take_step(&mut self, range: RangeId, change: Change, why: &str) -> Result<bool> {
        let Some(replica) = self.replicas.get_mut(&range) else { return Ok(false) };
        let node = match change {
            Change::Add(_, node) => Some(node),
            Change::Promote(other) | Change::Demote(other) | Change::Remove(other) => {
                replica.machine.state.descriptor.node_of(other)
            }
        };
        let (Some(node), true) = (node, replica.change_replicas(change)?) else {
            return Ok(false);
        };
        let what = match change {
            Change::Add(..) => {
                *self.moves.placement.counts.entry(node).or_default() += 1;
                "gets a replica of"
            }
            Change::Promote(_) => "gets a vote in",
            Change::Demote(_) => "loses its vote in",
            Change::Remove(_) => "gives up its replica of",
        };
        self.touch(range);
        self.moves.placement.changing.insert(range, false);
        self.effects.notes.push(format!("{node:?} {what} {range:?}: {why}"));
        Ok(true)
    }

    /// Replicas that hear of no leader ask whether they were removed.
    fn ask_whether_removed(&mut self, others: &[NodeId]) {
        let awake = self.quiet.sleepers.awake().into_iter();
        let awake = awake.filter_map(|range| Some((range, self.replicas.get(&range)?)));
        let lost = awake.filter(|(_, replica)| !replica.group.hears_leader());
        let lost: Vec<_> = lost.map(|(range, replica)| (range, replica.group.id())).collect();
        for (range, replica) in lost {
            for node in others {
                self.say(range, *node, &Said::Asks { replica });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_lsm::KeySpan;

    fn range(voters: &[u64], learners: &[u64]) -> RangeDescriptor {
        let list = |ids: &[u64]| ids.iter().map(|id| (ReplicaId(*id), NodeId(*id))).collect();
        let new = RangeDescriptor::new(RangeId(1), KeySpan::new("a", "b"), list(voters));
        RangeDescriptor { learners: list(learners), next_replica: ReplicaId(9), ..new }
    }

    /// What node 1 does, of nodes `(number, health, replicas)`; those that are fit are up to date.
    fn step(range: &RangeDescriptor, nodes: &[(u64, Health, u64)]) -> Option<Step> {
        step_at(range, nodes, &[])
    }

    /// The same where some nodes are somewhere.
    fn step_at(
        range: &RangeDescriptor,
        nodes: &[(u64, Health, u64)],
        places: &[(u64, &str)],
    ) -> Option<Step> {
        let place = |(node, place): &(u64, &str)| (NodeId(*node), place.parse().expect("a place"));
        let localities: &BTreeMap<NodeId, Locality> = &places.iter().map(place).collect();
        let all: BTreeMap<NodeId, Seen> = nodes
            .iter()
            .map(|(node, health, replicas)| {
                (NodeId(*node), Seen { health: *health, replicas: *replicas })
            })
            .collect();
        let is_current = |replica: ReplicaId| {
            matches!(all[&NodeId(replica.0)].health, Health::Fit | Health::Leaving)
        };
        let (own, wanted, balances) = (NodeId(1), 3, true);
        let (nodes, is_current): (_, &dyn Fn(ReplicaId) -> bool) = (&all, &is_current);
        let situation = Situation { range, own, wanted, nodes, localities, is_current, balances };
        situation.next().map(|(step, _)| step)
    }

    use Health::{Away, Dead, Fit, Leaving};

    fn add(node: u64) -> Option<Step> {
        Some(Step::Take(Change::Add(ReplicaId(9), NodeId(node))))
    }

    fn remove(replica: u64) -> Option<Step> {
        Some(Step::Take(Change::Remove(ReplicaId(replica))))
    }

    fn demote(replica: u64) -> Option<Step> {
        Some(Step::Take(Change::Demote(ReplicaId(replica))))
    }

    fn promote(replica: u64) -> Option<Step> {
        Some(Step::Take(Change::Promote(ReplicaId(replica))))
    }

    #[test]
    fn a_dead_node_is_replaced_by_the_one_with_the_fewest_and_only_then_removed() {
        let three = range(&[1, 2, 3], &[]);
        let nodes = |third| [(1, Fit, 9), (2, Fit, 9), (3, third, 9), (4, Fit, 5), (5, Fit, 4)];
        assert_eq!(step(&three, &nodes(Dead)), add(5));
        assert_eq!(step(&three, &nodes(Leaving)), add(5));
        assert_eq!(step(&three, &nodes(Dead)[..3]), None, "there is nobody else");
        let joining = range(&[1, 2, 3], &[5]);
        assert_eq!(step(&joining, &nodes(Dead)), promote(5));
        let mut one_more = range(&[1, 2, 3, 5], &[]);
        assert_eq!(step(&one_more, &nodes(Dead)), demote(3));
        one_more.carry_out(Change::Demote(ReplicaId(3)));
        assert_eq!(step(&one_more, &nodes(Dead)), remove(3));
        assert_eq!(step(&one_more, &nodes(Fit)), remove(3), "even if it is back");
        assert_eq!(step(&range(&[1, 2, 5], &[]), &nodes(Dead)), add(4), "balance: n2 has 9");
    }

    #[test]
    fn no_step_leaves_less_than_a_majority_that_is_there() {
        // Of four voters two would be up to date.
        let joining = range(&[1, 2, 3], &[4]);
        let away = [(1, Fit, 1), (2, Away, 1), (3, Dead, 1), (4, Fit, 0)];
        assert_eq!(step(&joining, &away), None);
        // The one that is away goes first, and the others are a majority of what is left.
        let four = range(&[1, 2, 3, 4], &[]);
        let one_away = [(1, Fit, 1), (2, Away, 1), (3, Fit, 7), (4, Fit, 1)];
        assert_eq!(step(&four, &one_away), demote(2));
        let two_away = [(1, Fit, 1), (2, Away, 1), (3, Away, 7), (4, Fit, 1)];
        assert_eq!(step(&four, &two_away), demote(3));
        let alone = [(1, Fit, 1), (2, Away, 1), (3, Away, 7), (4, Away, 1)];
        assert_eq!(step(&four, &alone), None);
    }

    #[test]
    fn a_replica_is_fed_before_it_votes_and_goes_with_its_node() {
        let joining = range(&[1, 2, 3], &[4]);
        let nodes = |fourth| [(1, Fit, 1), (2, Fit, 1), (3, Fit, 1), (4, fourth, 0)];
        assert_eq!(step(&joining, &nodes(Away)), Some(Step::Feed(NodeId(4))));
        assert_eq!(step(&joining, &nodes(Dead)), remove(4));
        assert_eq!(step(&joining, &nodes(Leaving)), remove(4));
    }

    #[test]
    fn who_leads_and_leaves_is_not_removed_by_itself() {
        let four = range(&[1, 2, 3, 4], &[]);
        let nodes = [(1, Leaving, 1), (2, Fit, 1), (3, Fit, 1), (4, Fit, 0)];
        assert_eq!(step(&four, &nodes), None);
        assert_eq!(step(&range(&[1, 2, 3], &[]), &nodes), add(4), "but it finds its successor");
    }

    #[test]
    fn people_are_told_what_moves_and_why() {
        let standing = |standing| [(3, standing)].into_iter().collect::<BTreeMap<u64, Standing>>();
        let tell = |range: &RangeDescriptor, third, standings: &BTreeMap<u64, Standing>, four| {
            let healths = [(1, Fit), (2, Away), (3, third), (4, Fit)];
            let present = healths.into_iter().take(if four { 4 } else { 3 });
            let seen = |(node, health)| (NodeId(node), Seen { health, replicas: 1 });
            let of = |node: u64| standings.get(&node).copied().unwrap_or(Standing::Member);
            let nodes = (1..=4).map(|node| (NodeId(node), of(node))).collect();
            told(
                range,
                &present.map(seen).collect(),
                &Members { replicas: 3, nodes, localities: BTreeMap::new() },
            )
        };
        let (member, gone) = (standing(Standing::Member), standing(Standing::Gone));
        let three = range(&[1, 2, 3], &[]);
        let said = |text: Option<String>| text.unwrap_or_else(|| "nothing".into());
        assert_eq!(said(tell(&three, Fit, &member, true)), "nothing");
        assert_eq!(said(tell(&three, Dead, &member, true)), "node 3 is dead");
        let alone = "node 3 is leaving, there is no other node";
        assert_eq!(said(tell(&three, Leaving, &member, false)), alone);
        let joining = range(&[1, 2, 3], &[4]);
        let given = "node 3 is gone, node 4 is given the range";
        assert_eq!(said(tell(&joining, Dead, &gone, true)), given);
        let mut four = range(&[1, 2, 3, 4], &[]);
        assert_eq!(said(tell(&four, Fit, &member, true)), "4 replicas instead of 3");
        four.carry_out(Change::Demote(ReplicaId(3)));
        assert_eq!(said(tell(&four, Fit, &member, true)), "node 3 lets it go");
    }

    #[test]
    fn replicas_are_far_from_each_other_before_they_are_even() {
        let places = [(1, "z=a"), (2, "z=a"), (3, "z=b"), (4, "z=b"), (5, "z=c"), (6, "z=c")];
        let all =
            |counts: [u64; 6]| (1..=6).zip(counts).map(|(n, c)| (n, Fit, c)).collect::<Vec<_>>();
        let even = all([5; 6]);
        // Two of zone a: one of c comes, though it has more, and one of a goes.
        let (two, full) = (range(&[1, 2, 3], &[]), all([1, 1, 1, 1, 9, 8]));
        assert_eq!(step_at(&two, &full, &places), add(6));
        assert_eq!(step_at(&range(&[1, 2, 3, 6], &[]), &full, &places), demote(2));
        let good = range(&[1, 3, 6], &[]);
        assert_eq!(step_at(&good, &even, &places), None);
        // For the sake of balance only within its zone.
        assert_eq!(step_at(&good, &all([9, 0, 9, 8, 7, 9]), &places), add(5));
        assert_eq!(
            step_at(&range(&[1, 3, 5, 6], &[]), &all([9, 0, 9, 8, 8, 9]), &places),
            demote(6)
        );
        assert_eq!(step_at(&good, &all([9, 0, 9, 8, 8, 9]), &places), None);
        // A dead one is replaced from its own zone, or from wherever there is somebody.
        let dead = |mut nodes: Vec<(u64, Health, u64)>, who: &[u64]| {
            let of = |n: &mut (u64, Health, u64)| n.1 = if who.contains(&n.0) { Dead } else { n.1 };
            nodes.iter_mut().for_each(of);
            nodes
        };
        let busy = all([1, 1, 1, 9, 1, 1]);
        assert_eq!(step_at(&good, &dead(busy.clone(), &[3]), &places), add(4));
        assert_eq!(step_at(&good, &dead(busy, &[3, 4]), &places), add(2));
        // Where nobody says where he is, it is as if there were no places.
        assert_eq!(step_at(&two, &full, &places[..1]), None);
    }

    #[test]
    fn much_that_is_to_be_moved_is_moved_many_at_a_time() {
        let nodes = |counts: &[u64]| -> BTreeMap<NodeId, Seen> {
            let seen = |replicas: &u64| Seen { health: Health::Fit, replicas: *replicas };
            (1..).map(NodeId).zip(counts.iter().map(seen)).collect()
        };
        assert_eq!(
            [&[5, 5, 5][..], &[9, 0, 5], &[60, 60, 10]].map(|c| moved_in_a_turn(&nodes(c))),
            [1, 1, 2]
        );
        assert_eq!(moved_in_a_turn(&nodes(&[10_000, 10_000, 10_000, 0, 0])), MOST_ON_THE_WAY);
    }

    #[test]
    fn replicas_move_for_balance_only_by_two() {
        let three = range(&[1, 2, 3], &[]);
        let nodes = |fourth| [(1, Fit, 30), (2, Fit, 10), (3, Fit, 10), (4, Fit, fourth)];
        assert_eq!(step(&three, &nodes(8)), add(4));
        // What this node itself has too many of, others move away: it leads.
        assert_eq!(step(&three, &nodes(9)), None);
        let nodes = |fourth| [(1, Fit, 10), (2, Fit, 6_400), (3, Fit, 10), (4, Fit, fourth)];
        assert_eq!(step(&three, &nodes(6_300)), add(4));
        assert_eq!(step(&three, &nodes(6_301)), None);
    }
}
