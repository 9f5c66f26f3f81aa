//! Leases go to other nodes: so that all of them serve their share, and before a node ends.
//!
//! ```text
//!   r1 closes      no new transaction gets a lock; those that have some come to their end
//!   r1 releases    an entry: no timestamp from here on belongs to its lease. It serves no more
//!   .. applied     leadership is handed to r2, which has the log up to there
//!   r2 leads       and asks for the lease as ever: the old one is over
//! ```
//!
//! 1. Whoever has proposed to release its lease serves nothing under it any more, whatever becomes
//!    of that entry: another leader may have it in its log.
//! 2. Locks do not travel. A lease moves for the sake of balance only when nobody has a lock;
//!    before a node ends, after a while at any price.
//! 3. If the other replica does not lead soon, this one asks for a new lease.
//! 4. Who drains says so with every tick: nobody gives it anything then, nor for a while after it
//!    was heard last.
//! 5. A node gives away when it leads at least two ranges more than the one with the fewest, one at
//!    a time. Each knows from its own replicas who leads what, and of others what they say.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_consensus::{LogIndex, ReplicaId, Result};

use crate::command::Act;
use crate::ids::{NodeId, RangeId};
use crate::leading::room::ShortNodes;
use crate::members::placement::Placement;
use crate::raft_snapshot::Said;
use crate::replica::Replica;
use crate::replicas::Replicas;

/// For so many ticks those who have locks may come to their end.
const CLOSING_TICKS: u64 = 10;
/// After so many ticks the other replica should lead.
const HANDING_TICKS: u64 = 15;
/// A node that has ended a closing in vain tries again after so many ticks.
const REST_TICKS: u64 = 300;

/// Of so many leases that another node has less it gets one at a time.
const PER_LEASE: u64 = 32;
/// And so many at most.
const MOST_LEASES: u64 = 16;

/// A node on which so many ranges are awake, and a quarter of all that it has, has enough to do: it
/// moves what must be moved, and for the sake of balance one at a time.
const MANY_AWAKE: usize = 300;

/// For so many ticks a node that has said that it drains gets nothing.
const DRAINING_TICKS: u64 = 30;

/// How far a lease is given away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Closing,
    /// The entry that says so lies there.
    Released(LogIndex),
    Handed,
}

/// A lease that is being given away.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Giving {
    to: ReplicaId,
    step: Step,
    /// Since that step.
    ticks: u64,
    at_any_price: bool,
}

/// What a node knows of the leases that it gives away.
#[derive(Default)]
pub(crate) struct Moves {
    /// It gives all of them away.
    draining: bool,
    /// Others that drain: until which tick they get nothing.
    others_drain: BTreeMap<NodeId, u64>,
    /// No balance before this tick.
    rests_until: u64,
    /// How many ranges it leads.
    pub(crate) led: Arc<AtomicU64>,
    pub(crate) placement: Placement,
    /// Whose disks have little room.
    pub(crate) short: Arc<ShortNodes>,
    /// Ranges that are to be split, and not all of whose replicas are up to date: since which tick.
    waiting_splits: BTreeMap<RangeId, u64>,
}

/// A split waits for replicas for so many ticks at most.
const SPLIT_TICKS: u64 = 20;

impl Replica {
    /// Begins to give the lease to a replica; whether it is this one's to give.
    fn give_away(&mut self, to: ReplicaId, at_any_price: bool) -> Result<bool> {
        if self.tenure.giving.is_some() || !self.group.is_leader() || self.is_being_split() {
            return Ok(false);
        }
        let giving = Giving { to, step: Step::Closing, ticks: 0, at_any_price };
        if self.proposes() && self.serves(self.clocks.now()) {
            self.tenure.giving = Some(giving);
            self.advance_giving()?;
            return Ok(true);
        }
        // Nobody has asked it anything for long: there is no lease to be released.
        let is_over = self.machine.state.lease.is_over(self.clocks.wall.now_micros());
        let may = is_over && !self.is_asking();
        if may {
            self.group.transfer_leadership(to);
            self.tenure.giving = Some(Giving { step: Step::Handed, ..giving });
        }
        Ok(may)
    }

    /// Whether no new transaction gets a lock.
    pub(crate) fn is_closing(&self) -> bool {
        self.tenure.giving.is_some()
    }

    /// A tick has passed.
    pub(crate) fn tick_giving(&mut self) -> Result<()> {
        if let Some(giving) = &mut self.tenure.giving {
            giving.ticks += 1;
            self.advance_giving()?;
        }
        Ok(())
    }

    /// Does what is next.
    pub(crate) fn advance_giving(&mut self) -> Result<()> {
        let Some(giving) = self.tenure.giving else { return Ok(()) };
        let next = match giving.step {
            _ if !self.group.is_leader() => None,
            Step::Closing => self.release_lease(giving)?,
            Step::Released(at) if self.machine.state.applied >= at => {
                self.group.transfer_leadership(giving.to);
                Some(Giving { step: Step::Handed, ticks: 0, ..giving })
            }
            Step::Released(_) | Step::Handed => Some(giving),
        };
        let is_late =
            |giving: &Giving| giving.step != Step::Closing && giving.ticks > HANDING_TICKS;
        self.tenure.giving = next.filter(|giving| !is_late(giving));
        Ok(())
    }

    /// Releases the lease, if nobody has a lock or it is time.
    fn release_lease(&mut self, giving: Giving) -> Result<Option<Giving>> {
        let is_time = giving.ticks >= CLOSING_TICKS;
        let is_free = !self.locking.is_in_use();
        let ts = self.next_write();
        if !self.proposes() || !self.serves(ts) || self.is_being_split() {
            return Ok(None);
        }
        let goes = is_free || is_time && giving.at_any_price;
        if !goes {
            return Ok(Some(giving).filter(|_| !is_time));
        }
        let Some((_, at)) = self.propose(Act::Release, ts)? else {
            return Ok(Some(giving).filter(|_| !is_time));
        };
        // Whatever becomes of the entry.
        self.tenure.lease = None;
        Ok(Some(Giving { step: Step::Released(at), ticks: 0, ..giving }))
    }
}

impl Replicas {
    /// Whether a split that somebody asks for had better wait for a moment: a replica that is there
    /// is not up to date. Who splits one range on and on would leave it without one half after the
    /// other, each of which it had to be given then.
    pub(crate) fn waits_to_split(&mut self, range: RangeId) -> bool {
        let (own, now) = (self.options.node, self.counts.ticks);
        let Some(replica) = self.replicas.get(&range) else { return false };
        let is_late = |(id, node): &(ReplicaId, NodeId)| {
            let is_there = *node == own || replica.group.is_current(*id);
            !is_there && self.moves.placement.has_heard(*node, now)
        };
        let voters = &replica.machine.state.descriptor.replicas;
        let is_short = replica.group.is_leader() && voters.iter().any(is_late);
        let since = *self.moves.waiting_splits.entry(range).or_insert(now);
        let waits = is_short && now < since + SPLIT_TICKS;
        if !waits {
            self.moves.waiting_splits.remove(&range);
        }
        waits
    }

    /// From now on this node gives away what it leads; or takes its share again.
    pub fn drain(&mut self, drains: bool) {
        self.moves.draining = drains;
    }

    /// Another node gives its leases away.
    pub(crate) fn note_draining(&mut self, node: NodeId) {
        self.moves.others_drain.insert(node, self.counts.ticks + DRAINING_TICKS);
    }

    /// Says to all that this node drains.
    fn say_draining(&mut self) {
        let descriptors = self.replicas.values().map(|r| &r.machine.state.descriptor);
        let nodes = descriptors.flat_map(|range| range.all_replicas().map(|(_, node)| node));
        let nodes: BTreeSet<NodeId> = nodes.filter(|node| *node != self.options.node).collect();
        nodes.into_iter().for_each(|node| self.say(RangeId(0), node, &Said::Drains));
    }

    /// How many ranges this node leads; counted anew with every tick.
    pub fn led(&self) -> Arc<AtomicU64> {
        self.moves.led.clone()
    }

    /// Gives leases away, if that is due.
    pub(crate) fn move_leases(&mut self) -> Result<()> {
        let own = self.options.node;
        let mut leads: BTreeMap<NodeId, u64> = self.quiet.sleepers.leads();
        let mut current: BTreeSet<NodeId> = self.quiet.sleepers.current().collect();
        let awake = self.quiet.sleepers.awake();
        for replica in awake.iter().filter_map(|range| self.replicas.get(range)) {
            let descriptor = &replica.machine.state.descriptor;
            let leader = replica.group.leader().and_then(|leader| descriptor.node_of(leader));
            leader.into_iter().for_each(|leader| *leads.entry(leader).or_default() += 1);
            let followers = descriptor.replicas.iter().filter(|(_, node)| *node != own);
            let up_to_date =
                followers.filter(|(replica_id, _)| replica.group.is_current(*replica_id));
            current.extend(up_to_date.map(|(_, node)| *node));
        }
        let mine = leads.get(&own).copied().unwrap_or(0);
        self.moves.led.store(mine, Ordering::Relaxed);
        let now = self.counts.ticks;
        self.moves.others_drain.retain(|_, until| *until > now);
        let placement = &self.moves.placement;
        let others_drain = &self.moves.others_drain;
        let drains = |node: &NodeId| others_drain.contains_key(node) || placement.is_leaving(*node);
        current.retain(|node| !drains(node));
        if let Some(why) = self.why_away() {
            self.say_draining();
            return self.give_all_away(leads, why);
        }
        let Some(every) = self.options.spread_ticks else { return Ok(()) };
        let is_moving =
            awake.iter().any(|range| self.replicas.get(range).is_some_and(Replica::is_closing));
        if !now.is_multiple_of(every) || now < self.moves.rests_until || is_moving {
            return Ok(());
        }
        // Of ranges that have no replica here a node knows what others say.
        let said = &self.moves.placement;
        let of = |node: &NodeId| leads.get(node).copied().unwrap_or(0).max(said.led(*node));
        let Some(to) = current.iter().copied().min_by_key(|node| (of(node), *node)) else {
            return Ok(());
        };
        let theirs = of(&to);
        if mine < theirs + 2 {
            return Ok(());
        }
        // Those without locks first: they can go at once. From the last one on: replicas move from
        // the first one on, and whose lease goes keeps its replicas for that time.
        let mut ranges: Vec<(bool, Reverse<RangeId>)> = self
            .replicas
            .iter()
            .filter(|(_, replica)| replica.group.is_leader())
            .map(|(range, replica)| (replica.locking.is_in_use(), Reverse(*range)))
            .collect();
        ranges.sort_unstable();
        let most = match self.is_busy() {
            true => 1,
            false => ((mine - theirs) / PER_LEASE).clamp(1, MOST_LEASES),
        };
        let mut given = 0;
        for (in_use, Reverse(range)) in ranges {
            // One that somebody uses goes alone.
            if given == most || in_use && given > 0 {
                break;
            }
            let why = format!("this node leads {mine} ranges, and that one {theirs}");
            if self.give(range, to, (false, &why))? {
                self.moves.rests_until = if in_use { now + REST_TICKS } else { now };
                given += if in_use { most } else { 1 };
            }
        }
        Ok(())
    }

    /// Why this node gives all of its leases away, if it does.
    fn why_away(&mut self) -> Option<&'static str> {
        if self.is_short() {
            self.say_short();
            return Some("this node's disk has little room");
        }
        let ends = self.moves.draining || self.moves.placement.is_leaving(self.options.node);
        ends.then_some("this node ends")
    }

    /// Whether nothing should move for the sake of balance that can wait.
    pub(crate) fn is_busy(&self) -> bool {
        let (awake, asleep) = (self.quiet.sleepers.count_awake(), self.quiet.sleepers.count());
        awake > MANY_AWAKE && awake > asleep / 3
    }

    /// Gives all away, to those that lead the fewest.
    fn give_all_away(&mut self, mut leads: BTreeMap<NodeId, u64>, why: &str) -> Result<()> {
        let own = self.options.node;
        for range in self.replicas.keys().copied().collect::<Vec<_>>() {
            let replica = &self.replicas[&range];
            let others = replica.machine.state.descriptor.replicas.iter();
            let (drain, placement) = (&self.moves.others_drain, &self.moves.placement);
            let drains = |node: &NodeId| drain.contains_key(node) || placement.is_leaving(*node);
            let current = others.filter(|(id, node)| {
                *node != own && !drains(node) && replica.group.is_current(*id)
            });
            let fewest = current
                .map(|(_, node)| *node)
                .min_by_key(|node| (leads.get(node).copied().unwrap_or(0), *node));
            if let Some(to) = fewest
                && self.give(range, to, (true, why))?
            {
                *leads.entry(to).or_default() += 1;
            }
        }
        Ok(())
    }

    fn give(&mut self, range: RangeId, to: NodeId, how: (bool, &str)) -> Result<bool> {
        let (at_any_price, why) = how;
        let Some(replica) = self.replicas.get_mut(&range) else { return Ok(false) };
        let Some(there) = replica.machine.state.descriptor.voter_on(to) else {
            return Ok(false);
        };
        if !replica.group.is_leader() || !replica.group.is_current(there) {
            return Ok(false);
        }
        self.wake(range);
        let Some(replica) = self.replicas.get_mut(&range) else { return Ok(false) };
        let gives = replica.give_away(there, at_any_price)?;
        if gives {
            self.moves.placement.leads_more(to);
            self.effects.notes.push(format!("the lease of {range:?} goes to {to:?}: {why}"));
        }
        Ok(gives)
    }
}
