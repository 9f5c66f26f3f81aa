//! Clients on nodes, with the process that they share: it comes and goes with its node.
//!
//! Its threads are a keeper, which has the process's schema lease, and clients, each a session. The
//! clock is the node's; requests to the own node do not go over the network.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use braid_env::random::Random;
use braid_range::{Ask, NodeId, Request};

use crate::actor::{Actor, coordinator_of};
use crate::data;
use crate::desk::{Desk, Place};
use crate::network::Party;
use crate::plan::Plan;
use crate::work::Task;
use crate::world::{ANY_LIFE, Event, FIRST_CLIENT, Worker, World};

/// A change may wait for leases for so long when nodes talk again: as long as a lease may live,
/// until it is known that a process has died that was getting one, and for others in front of it.
const LONGEST_RECALL_MICROS: u64 = 3_000_000 + 10_000_000 + 5_000_000;
/// Which of a node's clients changes the schema when commits are late.
const CHANGERS: u64 = 3;
/// Clients on each node when commits are late.
pub(crate) const CLIENTS_OF_LATE_COMMITS: usize = 4;
/// A lease that was got a moment ago ends in so long; and its recall is tried so often.
const LEASE_MICROS: u64 = 3_000_000;
const RECALL_MICROS: u64 = 250_000;
/// Within so long after a node's start its clients begin.
const TRICKLE_MICROS: u64 = 100_000;

/// On which node a client is, if it is on one.
pub(crate) fn home_of(plan: &Plan, client: usize) -> Option<u64> {
    let (clients, nodes) = (plan.clients.count, plan.nodes as usize);
    let keepers = clients..clients + nodes;
    let is_on_a_node = plan.clients.changes.is_some() && client < keepers.end;
    is_on_a_node.then(|| match keepers.contains(&client) {
        true => (client - keepers.start) as u64 + 1,
        false => (client % nodes) as u64 + 1,
    })
}

/// What a client is for, before which so many have lived.
pub(crate) fn task_of(plan: &Plan, (id, dead): (u64, u64)) -> Task {
    let client = id - FIRST_CLIENT;
    match (client / plan.nodes, plan.clients.late.is_some()) {
        (0, _) if plan.clients.lookers => Task::Look,
        (1, _) if plan.clients.lookers => Task::Read,
        (0 | 1, true) => Task::Own(data::own_register(client, dead)),
        (2, true) => Task::Survey,
        (CHANGERS, true) => Task::Change,
        _ => Task::Write,
    }
}

/// What becomes of a late commit and its process, while somebody changes the schema.
struct Lateness {
    /// The commit arrives.
    micros: u64,
    /// Somebody begins to change the schema.
    change_micros: u64,
    /// Its process dies as soon as the commit was sent, and its node starts again after so long.
    down_micros: Option<u64>,
}

impl Lateness {
    fn draw(random: &mut Random, plan: &Plan, most: u64) -> Lateness {
        match random.below(3) {
            // Its process is there, and is asked for its lease.
            0 => {
                let micros = random.between(most / 4, most);
                let change_micros = random.below(most / 4);
                Lateness { micros, change_micros, down_micros: None }
            }
            // The next one of its node is asked, while the lease is not over.
            1 => {
                let down = random.between(10_000, 300_000);
                let micros = down + random.between(400_000, 1_400_000);
                let change_micros = down + random.below(100_000);
                Lateness { micros, change_micros, down_micros: Some(down) }
            }
            // Nobody is there, and it arrives when the change has waited for the lease's end, and
            // nobody has taken its row's lock away yet.
            _ => {
                let longest = LEASE_MICROS + RECALL_MICROS + 2 * plan.clocks.offset_micros;
                let micros = longest + random.between(100_000, 1_500_000);
                let (change_micros, down) = (random.below(100_000), 2 * longest);
                Lateness { micros, change_micros, down_micros: Some(down) }
            }
        }
    }
}

impl World {
    /// Under which number the network knows a client.
    pub(crate) fn party(&self, client: usize) -> Party {
        home_of(&self.plan, client).unwrap_or(FIRST_CLIENT + client as u64)
    }

    fn clients_on(&self, node: u64) -> Vec<usize> {
        (0..self.workers.len()).filter(|n| home_of(&self.plan, *n) == Some(node)).collect()
    }

    /// What all transactions need is being made; then clients begin.
    pub(crate) fn found(&mut self) {
        let (now, last) = (self.now(), self.workers.len() - 1);
        if let Worker::Threaded(actor) = &mut self.workers[last] {
            let wish = actor.found(now);
            self.grant(last, wish);
        }
    }

    /// It was made.
    pub(crate) fn is_founded(&mut self) {
        self.fates.founded = true;
        (0..self.workers.len() - 1).for_each(|client| self.begins_soon(client));
    }

    fn begins_soon(&mut self, client: usize) {
        let micros = self.random.below(TRICKLE_MICROS);
        self.after(micros, Event::Begin { client });
    }

    /// A node has started: so does what its clients share.
    pub(crate) fn open_gateway(&mut self, node: u64) {
        let clients = self.clients_on(node);
        let Some(keeper) = clients.last().copied() else { return };
        self.fates.dead += 1;
        let here = &self.nodes[node as usize - 1];
        let Some(process) = &here.process else { return };
        let place = Place {
            home: Some((NodeId(node), process.recalls().clone())),
            coordinator: coordinator_of(FIRST_CLIENT + keeper as u64, self.fates.dead),
            clock: here.clock.clone(),
            hlc: process.hlc().clone(),
            oldest_readable: process.newest_threshold(),
        };
        let desk = Arc::new(Desk::new(place, &self.plan, self.range.clone()));
        for client in clients {
            let random = Random::seeded(self.random.next_u64());
            let id = (FIRST_CLIENT + client as u64, self.fates.dead);
            let actor = Actor::new(id, desk.clone(), &self.plan, random);
            self.workers[client] = Worker::Threaded(Box::new(actor));
            self.begins_soon(client);
        }
    }

    /// A node is gone, and with it what its clients share. Nobody knows what became of what they
    /// did.
    pub(crate) fn close_gateway(&mut self, node: u64) {
        let mut gone = Vec::new();
        for client in self.clients_on(node) {
            let old = std::mem::replace(&mut self.workers[client], Worker::Absent);
            if let Worker::Threaded(mut actor) = old {
                // All of them, before one is waited for that waits for another.
                actor.hang_up();
                gone.push((client, actor));
            }
        }
        let now = self.now();
        for (client, actor) in gone {
            self.take_tally(&actor.desk.clone());
            if !actor.is_idle() {
                let (transaction, names) = actor.die(now);
                self.note(format!("c{client} dies: {transaction:?}"));
                self.fates.orphans.push((self.history.transactions.len(), names));
                self.history.transactions.push(transaction);
            }
        }
    }

    /// The keeper of a process begins, if that is what this client is.
    pub(crate) fn begin_to_keep(&mut self, client: usize) -> bool {
        let clients = self.plan.clients.count;
        let is_keeper = (clients..clients + self.plan.nodes as usize).contains(&client);
        let now = self.now();
        if let Worker::Threaded(actor) = &mut self.workers[client]
            && is_keeper
            && !actor.is_keeper()
        {
            let wish = actor.keep(now);
            self.grant(client, wish);
        }
        is_keeper
    }

    /// Which process of a node a request reaches: those between processes go over a connection,
    /// which ends with each of them.
    pub(crate) fn life_for(&self, party: Party, node: u64) -> u64 {
        if party < FIRST_CLIENT { self.nodes[node as usize - 1].life } else { ANY_LIFE }
    }

    /// How much later than others a request arrives: commits of those who go by the schema. With one of them now and then the schema is changed, and its process may die.
    pub(crate) fn lateness(&mut self, party: Party, node: u64, request: &Request) -> u64 {
        let Some(late) = self.plan.clients.late.clone() else { return 0 };
        let Ask::Commit(ask) = &request.ask else { return 0 };
        if party == node || self.healed_at.is_some() || !data::goes_by_a_shape(ask) {
            return 0;
        }
        if self.now() < self.fates.changed_at + late.change_every_micros {
            let is_late = self.random.chance(late.of_hundred, 100);
            return if is_late { self.random.below(late.micros) } else { 0 };
        }
        self.fates.changed_at = self.now();
        self.count("late commits");
        let plan = self.plan.clone();
        let drawn = Lateness::draw(&mut self.random, &plan, late.micros);
        if let Some(down_micros) = drawn.down_micros {
            self.after(1_000, Event::Crash { node: party, down_micros });
        }
        let first = CHANGERS * plan.nodes;
        let changers = (first..first + plan.nodes).map(|client| client as usize);
        let elsewhere: Vec<usize> =
            changers.filter(|client| home_of(&plan, *client) != Some(party)).collect();
        let client = *self.random.pick(&elsewhere);
        self.after(drawn.change_micros, Event::Change { client });
        drawn.micros
    }

    /// Whether a client changes the schema when commits are late, and does nothing else.
    pub(crate) fn waits_for_late_commits(&self, client: usize) -> bool {
        let first = CHANGERS * self.plan.nodes;
        let changers = first..first + self.plan.nodes;
        self.plan.clients.late.is_some() && changers.contains(&(client as u64))
    }

    /// All keepers are to end; whether they have.
    pub(crate) fn leases_are_over(&mut self) -> bool {
        let mut over = true;
        for worker in &self.workers {
            if let Worker::Threaded(actor) = worker {
                actor.desk.ends.store(true, Ordering::Relaxed);
                over &= !actor.is_keeper();
            }
        }
        over
    }

    /// Adds up what a process has done.
    pub(crate) fn take_tally(&mut self, desk: &Desk) {
        let (leased, changed, recalled) = desk.tally.take();
        let counts = &mut self.verdict.counts;
        for (what, count) in [("commits under leases", leased), ("changes", changed)] {
            if count > 0 {
                *counts.entry(what).or_default() += count;
            }
        }
        if recalled > 0 {
            let longest = counts.entry("longest recall, ms").or_default();
            *longest = (*longest).max(recalled / 1_000);
        }
        let most = LONGEST_RECALL_MICROS + 2 * self.plan.clocks.offset_micros;
        let was_healed = self.healed_at.is_some_and(|at| at + recalled < self.now());
        if recalled > most && was_healed {
            self.wrong(format!("a change has waited {recalled} us for leases"));
        }
    }
}
