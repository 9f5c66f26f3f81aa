//! Clients on nodes, with the process that they share: it comes and goes with its node.
//!
//! Its threads are a keeper, which has the process's schema lease, and clients, each a session. The
//! clock is the node's; requests to the own node do not go over the network.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use braid_env::random::Random;
use braid_range::{Ask, NodeId, Request};

use crate::actor::{Actor, coordinator_of};
use crate::desk::{Desk, Place};
use crate::network::Party;
use crate::plan::Plan;
use crate::world::{ANY_LIFE, Event, FIRST_CLIENT, Worker, World};

/// A change may wait for leases for so long when nodes talk again: as long as a lease may live,
/// until it is known that a process has died that was getting one, and for others in front of it.
const LONGEST_RECALL_MICROS: u64 = 3_000_000 + 10_000_000 + 5_000_000;
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

    /// How much later than others a request arrives. Its process may die as soon as it is sent.
    pub(crate) fn lateness(&mut self, party: Party, node: u64, request: &Request) -> u64 {
        let Some(late) = self.plan.clients.late.clone() else { return 0 };
        let is_commit = matches!(request.ask, Ask::Commit(_) | Ask::Prepare(_));
        if !is_commit || party == node || self.healed_at.is_some() {
            return 0;
        }
        if !self.random.chance(late.of_hundred, 100) {
            return 0;
        }
        self.count("late commits");
        if party < FIRST_CLIENT && self.random.chance(late.last, 100) {
            let down_micros = self.random.between(10_000, 500_000);
            self.after(1_000, Event::Crash { node: party, down_micros });
        }
        self.random.below(late.micros)
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
        let near = desk.near_reads();
        for (what, count) in
            [("commits under leases", leased), ("changes", changed), ("near reads", near)]
        {
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
