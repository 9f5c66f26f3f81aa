//! Ranges that nobody asks anything sleep: no ticks, no messages, nothing that is done for each.
//!
//! ```text
//!   r1 leads      idle ... all have all of it     sleep t4 i17 ---> r2, r3        sleeps
//!   r2, r3        follow r1, t4, i17 is the last, committed, applied              sleep
//!
//!   a request, a message of the group       wakes a replica; who leads says so to its followers
//!   r1's node is silent, or began anew      wakes r2 and r3, which ask for votes
//!   r2's node is silent, or is back         wakes r1, which must know who is there
//! ```
//!
//! What is promised does not depend on it: terms, votes, logs and leases do not know of ticks. A
//! replica that sleeps has the state of one whose ticks are late. What must not happen is that all
//! sleep who could go on, and for that there is one rule:
//!
//! *A replica sleeps only if it leads, or as long as it hears of the node of the one that it
//! follows.* All others are awake, and say so to everybody until they have a leader; and every
//! message wakes whoever it comes to. In detail:
//!
//! 1. Who leads sleeps when nothing is on its way, it has its lease (which may be over), and all of
//!    its voters have all of its log; those whose nodes are silent are not waited for if a majority
//!    is left. It says so in its last word, with its term and its last entry.
//! 2. Who follows it, in that term, with that last entry committed and applied, sleeps, too. Who
//!    does not agree says so at once, which wakes the leader; and who has not heard the last word
//!    hears nothing any more, and asks the leader before it asks for votes.
//! 3. While a follower sleeps, a word of its leader's node counts as a heartbeat of the leader:
//!    when it wakes it refuses its vote to others as long as it would have done then.
//! 4. Whoever is asked something wakes, also a follower, which asks its leader then: what it
//!    believes may be long past.
//! 5. A range with something to be done on a timer does not sleep: locks, waiting requests,
//!    prepared parts, transactions not all know of, replicas that come or go, ranges that were
//!    split off and are not founded, a lease that is given away, a log that keeps files.
//!
//! Leases are not renewed in their sleep. They are over when the range is asked again, and the
//! first request waits for one entry of the log. Thresholds move on nevertheless
//! ([`crate::collecting`]): for each step the ranges are woken, some with each tick.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_consensus::{LogIndex, Message, ReplicaId, Term};
use braid_lsm::CommitTs;

use crate::ids::{NodeId, RangeId};
use crate::leading::fencing::Fences;
use crate::leading::neighbours::Neighbours;
use crate::leading::pace::{Cause, Seen, Turns, Waking};
use crate::leading::recalls::Recalls;
use crate::leading::sleepers::{Asleep, Sleepers};
use crate::raft_snapshot::Said;
use crate::replica::Replica;
use crate::replicas::Replicas;

/// A range that was woken, but not by a request, is awake for so many ticks at least: those that
/// were woken with it come to their end.
const SHORT_REST: u64 = 10;
/// A follower that hears nothing asks whether its leader sleeps, every so many ticks; it would ask
/// for votes after ten at the earliest.
const ASK_TICKS: usize = 7;

/// What a node knows of its ranges' sleep, and of the nodes that it depends on.
pub(crate) struct Quiet {
    pub(crate) sleepers: Sleepers,
    pub(crate) neighbours: Neighbours,
    /// How many sleep, as of the last tick.
    pub(crate) count: Arc<AtomicU64>,
    /// Whoever has a lease on locks need not wake the range that has these.
    pub(crate) recalls: Recalls,
    pub(crate) fences: Fences,
    pub(crate) waking: Waking,
    /// Of those that ask for votes.
    pub(crate) elections: Turns,
}

impl Quiet {
    /// Nobody sleeps.
    pub(crate) fn new(election_ticks: usize) -> Quiet {
        let neighbours = Neighbours::new(election_ticks);
        let (sleepers, recalls, fences, count) = Default::default();
        let (waking, elections) = Default::default();
        Quiet { sleepers, neighbours, count, recalls, fences, waking, elections }
    }
}

/// How much a node's ranges do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    /// Ranges that sleep.
    pub asleep: usize,
    /// How often one fell asleep.
    pub naps: u64,
    /// How often a replica was told that time has passed.
    pub ticks: u64,
}

impl Replica {
    /// Somebody has asked something.
    pub(crate) fn is_wanted_again(&mut self) {
        self.rest_left = self.options.quiet_ticks.unwrap_or(0);
    }

    /// Something has happened that nobody has asked for.
    pub(crate) fn has_stirred(&mut self) {
        let short = self.options.quiet_ticks.unwrap_or(0).min(SHORT_REST);
        self.rest_left = self.rest_left.max(short);
    }

    /// Goes on after its sleep; so many ticks ago its leader's node was heard.
    fn wake(&mut self, silent_ticks: u64) {
        self.group.wake(silent_ticks as usize);
        self.has_stirred();
    }

    /// Whether somebody waits here.
    fn is_awaited(&self) -> bool {
        !self.pending.is_empty() || self.has_waiting() || self.locking.waiting() > 0
    }

    /// Whether this replica leads, and the range has nothing to do, now or later.
    fn has_nothing_to_do(&self) -> bool {
        let state = &self.machine.state;
        let moves = !state.descriptor.learners.is_empty() || !state.descriptor.leaving.is_empty();
        self.rest_left == 0
            && self.proposes()
            && !self.is_awaited()
            && !self.locking.is_in_use()
            && !self.is_closing()
            && !self.is_asking()
            && !moves
            && state.unfounded.is_empty()
            && self.log.needed.is_none()
            && !self.keeps_files()
            && !self.has_unfinished()
    }

    /// The nodes of the voters that have all of the log, if it can sleep with these: the others'
    /// nodes are silent, and a majority is left.
    fn who_has_all(&self, own: NodeId, neighbours: &Neighbours) -> Option<Vec<NodeId>> {
        let voters = &self.machine.state.descriptor.replicas;
        let mut all = Vec::new();
        for (replica, node) in voters.iter().filter(|(_, node)| *node != own) {
            if self.group.has_all(*replica) {
                all.push(*node);
            } else if !neighbours.is_silent(*node) {
                return None;
            }
        }
        (2 * (all.len() + 1) > voters.len()).then_some(all)
    }
}

impl Replicas {
    /// How much this node's ranges do.
    pub fn activity(&self) -> Activity {
        let sleepers = &self.quiet.sleepers;
        let (asleep, naps, ticks) = (sleepers.count(), sleepers.naps, self.counts.replica_ticks);
        Activity { asleep, naps, ticks }
    }

    /// How many ranges sleep on this node; counted anew with every tick.
    pub fn asleep(&self) -> Arc<AtomicU64> {
        self.quiet.count.clone()
    }

    /// Whether a range's replica on this node sleeps.
    pub fn sleeps(&self, range: RangeId) -> bool {
        self.quiet.sleepers.sleeps(range)
    }

    /// It is noticed from now on whether the other nodes of a range are there.
    pub(crate) fn watch_nodes_of(&mut self, range: RangeId) {
        let Some(replica) = self.replicas.get(&range) else { return };
        for (_, node) in replica.machine.state.descriptor.all_replicas() {
            if node != self.options.node {
                self.quiet.neighbours.watch(node, self.counts.ticks);
            }
        }
    }

    /// A tick has passed: this node says that it is there, looks who else is, and lets ranges sleep
    /// that have nothing to do. Below `oldest` nobody reads, if that is known.
    pub(crate) fn tick_quiet(&mut self, oldest: Option<CommitTs>) {
        if self.options.quiet_ticks.is_none() {
            return;
        }
        let (now, life) = (self.counts.ticks, self.counts.starts);
        if now.is_multiple_of(self.options.group.heartbeat_ticks.max(1) as u64) {
            for node in self.quiet.neighbours.nodes() {
                self.say(RangeId(0), node, &Said::There { life });
            }
        }
        self.quiet.waking.tick();
        for node in self.quiet.neighbours.tick(now) {
            self.wake_ranges_of(Cause { node, is: Seen::Silent });
        }
        self.wake_some();
        for range in self.quiet.sleepers.awake() {
            let silent = self.replicas.get(&range).map_or(0, |r| r.group.silent_ticks());
            if silent > 0 && silent.is_multiple_of(ASK_TICKS) {
                self.ask_leader(range);
            }
        }
        if let Some(oldest) = oldest {
            self.wake_for_thresholds(oldest);
        }
        self.fall_asleep(oldest);
        self.quiet.count.store(self.quiet.sleepers.count() as u64, Ordering::Relaxed);
    }

    /// Another node is there, in which life.
    pub(crate) fn hear_life(&mut self, from: NodeId, life: u64) {
        if self.quiet.neighbours.hear_life(from, life) {
            self.wake_ranges_of(Cause { node: from, is: Seen::BegunAnew });
        }
    }

    /// A node has become silent, is back, or began anew: ranges that it leads are to wake, and
    /// those that this node leads with replicas there.
    pub(crate) fn wake_ranges_of(&mut self, cause: Cause) {
        let (node, own) = (cause.node, self.options.node);
        let is_there = |range: &RangeId| {
            let replica = self.replicas.get(range);
            replica.is_some_and(|r| r.machine.state.descriptor.replica_on(node).is_some())
        };
        // Who is back, and had all of the log then, has it now.
        let is_back = cause.is == Seen::Back;
        let concerns = |(range, how): &(RangeId, &Asleep)| match how.leader == own {
            true => is_there(range) && !(is_back && how.current.contains(&node)),
            false => how.leader == node && !is_back,
        };
        let concerned = self.quiet.sleepers.asleep().filter(concerns);
        concerned.for_each(|(range, _)| self.quiet.waking.add(range, cause));
        self.wake_some();
    }

    /// Wakes those that are to wake, as far as it is their turn.
    fn wake_some(&mut self) {
        while let Some((range, Cause { node, is })) = self.quiet.waking.next() {
            let leader = self.quiet.sleepers.leader_of(range);
            let is_over = is == Seen::Silent && !self.quiet.neighbours.is_silent(node);
            if leader.is_none() || is_over {
                self.quiet.waking.is_left_asleep();
                continue;
            }
            // Who began anew leads nothing: nobody waits for a word of it.
            let is_gone = is == Seen::BegunAnew && leader == Some(node);
            let silent = is_gone.then_some(self.options.group.election_ticks as u64);
            self.wake_as(range, silent);
        }
    }

    /// A range's replica wakes; whether it has slept.
    pub(crate) fn wake(&mut self, range: RangeId) -> bool {
        self.wake_as(range, None)
    }

    /// The same; its leader was heard so many ticks ago, by default when its node was.
    fn wake_as(&mut self, range: RangeId, silent_ticks: Option<u64>) -> bool {
        let Some(leader) = self.quiet.sleepers.wake(range) else { return false };
        let heard = self.quiet.neighbours.silent_ticks(leader, self.counts.ticks);
        if let Some(replica) = self.replicas.get_mut(&range) {
            replica.wake(silent_ticks.unwrap_or(heard));
        }
        self.touch(range);
        true
    }

    /// A range's replica is asked something by a client.
    pub(crate) fn wake_for_request(&mut self, range: RangeId) {
        if self.wake(range) {
            self.ask_leader(range);
        }
    }

    /// A message has come for a range's group; whether the group has to look at it.
    pub(crate) fn wake_for_message(&mut self, range: RangeId, message: &Message) -> bool {
        if !self.quiet.sleepers.sleeps(range) {
            return true;
        }
        // An answer to what was said before the last word.
        let replica = self.replicas.get(&range);
        if replica.is_some_and(|replica| replica.group.is_known_from(message)) {
            return false;
        }
        self.wake(range);
        if !message.is_of_leader() {
            self.ask_leader(range);
        }
        true
    }

    /// A follower tells the replica that it takes for the leader what it has: if that one sleeps it
    /// wakes, and if it leads it says so.
    fn ask_leader(&mut self, range: RangeId) {
        let Some(replica) = self.replicas.get(&range) else { return };
        let leader = replica.group.leader().filter(|_| !replica.group.is_leader());
        leader.into_iter().for_each(|leader| self.say_what_it_has(range, leader));
    }

    fn say_what_it_has(&mut self, range: RangeId, to: ReplicaId) {
        let Some(replica) = self.replicas.get(&range) else { return };
        let message = replica.group.say_has(to, replica.machine.state.applied);
        self.send(range, vec![message]);
    }

    /// Lets those sleep that this node leads and that have nothing to do.
    fn fall_asleep(&mut self, oldest: Option<CommitTs>) {
        let own = self.options.node;
        for range in self.quiet.sleepers.awake() {
            let Some(replica) = self.replicas.get(&range) else { continue };
            if !replica.has_nothing_to_do() || oldest.is_some_and(|o| replica.is_collecting(o)) {
                continue;
            }
            let Some((term, last)) = replica.group.at_rest() else { continue };
            let Some(others) = replica.who_has_all(own, &self.quiet.neighbours) else { continue };
            self.say_closed(range);
            let said = Said::Sleep { term, last };
            others.iter().for_each(|node| self.say(range, *node, &said));
            self.look_again_at(range);
            self.put_to_sleep(range, own, others);
        }
    }

    /// The last word of a range's leader before it sleeps.
    pub(crate) fn hear_last_word(&mut self, range: RangeId, from: NodeId, at: (Term, LogIndex)) {
        let Some(replica) = self.replicas.get(&range) else { return };
        let descriptor = &replica.machine.state.descriptor;
        let leader = replica.group.leader().filter(|_| !replica.group.is_leader());
        let follows = leader.and_then(|leader| descriptor.node_of(leader)) == Some(from);
        let agrees = follows && replica.group.at_rest() == Some(at) && !replica.is_awaited();
        let sender = descriptor.replica_on(from);
        if agrees && self.options.quiet_ticks.is_some() {
            return self.put_to_sleep(range, from, Vec::new());
        }
        self.wake(range);
        sender.into_iter().for_each(|sender| self.say_what_it_has(range, sender));
    }

    fn put_to_sleep(&mut self, range: RangeId, leader: NodeId, current: Vec<NodeId>) {
        self.watch_nodes_of(range);
        let Some(replica) = self.replicas.get(&range) else { return };
        let threshold = replica.machine.holds_threshold();
        self.quiet.sleepers.sleep(range, Asleep { leader, current, threshold });
    }
}
