//! The loop: the next event is taken, and may make others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_consensus::{Error, LogPlace, ReplicaId, Result};
use braid_env::clock::Hlc;
use braid_env::random::Random;
use braid_lsm::{CommitTs, KeySpan, ScanOptions};
use braid_range::{
    Answer, AnswerTimes, Answered, Ask, Decision, FIRST_DATA_KEY, NodeId, RangeDescriptor, RangeId,
    Replicas, Request, Split, TxnId,
};
use braid_workload::history::{History, Outcome, Transaction};

use crate::actor::{Actor, coordinator_of, reply};
use crate::client::{Client, Wish};
use crate::clock::{BEGIN_MICROS, NodeClock};
use crate::data;
use crate::desk::{Desk, Place};
use crate::gateways::home_of;
use crate::membership::Register;
use crate::network::{Network, Party};
use crate::node::Node;
use crate::plan::{Plan, Sabotage};
use crate::sabotage::{twist_answer, twist_message, twist_request};
use crate::verdict::Verdict;

/// Clients have numbers above those of nodes.
pub(crate) const FIRST_CLIENT: Party = 1_000;
/// What is sent to whatever process a node has when it arrives.
pub(crate) const ANY_LIFE: u64 = u64::MAX;
pub(crate) const TICK_MICROS: u64 = 100_000;
pub(crate) const STORE_SYNC_MICROS: u64 = 1_000_000;
/// Trouble is over after so long, whatever clients have come to.
const TROUBLE_MICROS: u64 = 120_000_000;
/// After that every transaction comes to its end within so long.
const HEALED_MICROS: u64 = 60_000_000;
/// Transactions that each client still begins then, at most: it may have come to few in the trouble
/// before, as it tries one node after the other, and is not late for that.
const HEALED_TRANSACTIONS: u64 = 10;

/// Something that happens.
pub(crate) enum Event {
    Tick {
        node: u64,
        life: u64,
    },
    StoreSync {
        node: u64,
        life: u64,
    },
    LogSynced {
        node: u64,
        life: u64,
        place: LogPlace,
    },
    Message {
        from: u64,
        node: u64,
        bytes: Vec<u8>,
    },
    Request {
        node: u64,
        life: u64,
        number: u64,
        request: Request,
    },
    Answer {
        client: Party,
        number: u64,
        times: AnswerTimes,
        answer: Answer,
    },
    Impatient {
        client: Party,
        number: u64,
    },
    Begin {
        client: usize,
    },
    Trouble,
    Mend,
    Start {
        node: u64,
    },
    /// A node's disk takes more.
    Grow {
        node: u64,
    },
    /// A node hears who belongs to the cluster.
    Members {
        node: u64,
    },
    /// A node crashes, and is back after so long.
    Crash {
        node: u64,
        down_micros: u64,
    },
}

/// What is going to happen, by time; at the same time in the order in which it was put in.
#[derive(Default)]
struct Agenda {
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, Event>,
    count: u64,
}

impl Agenda {
    fn put(&mut self, at: u64, event: Event) {
        self.count += 1;
        self.queue.push(Reverse((at, self.count)));
        self.events.insert(self.count, event);
    }

    fn take(&mut self) -> Option<(u64, Event)> {
        let Reverse((at, number)) = self.queue.pop()?;
        Some((at, self.events.remove(&number).expect("each is taken once")))
    }
}

/// Who asks.
pub(crate) enum Worker {
    Plain(Box<Client>),
    Threaded(Box<Actor>),
    /// Its node does not run.
    Absent,
}

impl Worker {
    fn number(&self) -> u64 {
        match self {
            Worker::Plain(client) => client.number,
            Worker::Threaded(actor) => actor.number,
            Worker::Absent => u64::MAX,
        }
    }

    fn is_idle(&self) -> bool {
        match self {
            Worker::Plain(client) => client.is_idle(),
            Worker::Threaded(actor) => actor.is_idle(),
            Worker::Absent => true,
        }
    }

    /// One that rests begins a transaction.
    fn begin(&mut self, now: u64) -> Option<Wish> {
        match self {
            Worker::Plain(client) => Some(client.begin(now)),
            Worker::Threaded(actor) => actor.is_idle().then(|| actor.begin(now)),
            Worker::Absent => None,
        }
    }

    fn answer(&mut self, now: u64, times: AnswerTimes, answer: Answer) -> Option<Wish> {
        match self {
            Worker::Plain(client) => client.answer(now, answer),
            Worker::Threaded(actor) => Some(actor.reply(now, reply(times, answer))),
            Worker::Absent => None,
        }
    }

    fn impatient(&mut self, now: u64) -> Option<Wish> {
        match self {
            Worker::Plain(client) => Some(client.impatient(now)),
            Worker::Threaded(actor) => Some(actor.reply(now, None)),
            Worker::Absent => None,
        }
    }

    fn begin_last(&mut self, now: u64, n: u32) -> Wish {
        match self {
            Worker::Plain(client) => client.begin_last(now, n),
            Worker::Threaded(actor) => actor.begin_last(now, n),
            Worker::Absent => unreachable!("the last one is on no node"),
        }
    }

    fn take_tells(&mut self) -> Vec<(NodeId, Request)> {
        match self {
            Worker::Threaded(actor) => actor.take_tells(),
            Worker::Plain(_) | Worker::Absent => Vec::new(),
        }
    }
}

/// Transactions whose outcome is found out in the end: their places in the history.
#[derive(Default)]
pub(crate) struct Fates {
    /// Whether there is what all transactions need, if that is more than nodes.
    pub(crate) founded: bool,
    /// Nobody was told.
    unknown: Vec<(usize, Ask)>,
    /// Their clients died: under which names they may have happened.
    pub(crate) orphans: Vec<(usize, Vec<TxnId>)>,
    /// Clients that died, and processes of clients on nodes that have begun.
    pub(crate) dead: u64,
    /// What nodes were asked, by number, as far as their answers are twisted.
    asked: BTreeMap<u64, Request>,
    /// While a client asks for what was given up: what it was told.
    found_out: Option<Outcome>,
}

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) range: RangeDescriptor,
    pub(crate) random: Random,
    now: Arc<AtomicU64>,
    agenda: Agenda,
    pub(crate) nodes: Vec<Node>,
    pub(crate) register: Register,
    pub(crate) workers: Vec<Worker>,
    pub(crate) network: Network,
    pub(crate) history: History,
    pub(crate) fates: Fates,
    begun: u64,
    pub(crate) healed_at: Option<u64>,
    /// Ranges that were thought of.
    pub(crate) ranges: u64,
    pub(crate) verdict: Verdict,
}

/// Runs a plan to its end.
pub fn run(plan: &Plan) -> Verdict {
    let mut world = World::new(plan.clone());
    world.go();
    world.verdict
}

impl World {
    fn new(plan: Plan) -> World {
        let mut random = Random::seeded(plan.seed ^ 0x5117);
        let now = Arc::new(AtomicU64::new(BEGIN_MICROS));
        let mut fork = || Random::seeded(random.next_u64());
        let network = Network::new(&plan.network, fork());
        let first = if plan.disk.grown_from.is_some() { 1 } else { plan.nodes };
        let replicas = (1..=first).map(|id| (ReplicaId(id), NodeId(id))).collect();
        let span = KeySpan::new(FIRST_DATA_KEY, KeySpan::all().end);
        let range = RangeDescriptor::new(RangeId(1), span, replicas);
        let mut nodes: Vec<Node> =
            (1..=plan.all_nodes()).map(|id| Node::new(NodeId(id), now.clone(), fork())).collect();
        if let Some(rows) = plan.disk.grown_from {
            nodes[0].live_alone(rows, BEGIN_MICROS / 2);
        }
        let register = Register::of_founders(plan.nodes);
        let plain = |n, random| {
            Worker::Plain(Box::new(Client::new(FIRST_CLIENT + n, &plan, range.clone(), random)))
        };
        let threaded = |n, random| {
            let clock = Arc::new(NodeClock::new(now.clone()));
            let place = Place::aside(coordinator_of(FIRST_CLIENT + n, 0), clock);
            let desk = Arc::new(Desk::new(place, &plan, range.clone()));
            Worker::Threaded(Box::new(Actor::new((FIRST_CLIENT + n, 0), desk, &plan, random)))
        };
        let mut workers: Vec<Worker> = Vec::new();
        for n in 0..plan.clients.count as u64 {
            workers.push(if plan.clients.over_kv { threaded(n, fork()) } else { plain(n, fork()) });
        }
        if plan.clients.changes.is_some() {
            // They, and a keeper for each node, are there when their nodes are.
            workers = (0..plan.clients.count as u64 + plan.nodes).map(|_| Worker::Absent).collect();
        }
        if plan.clients.over_kv {
            // Who looks at everything in the end.
            workers.push(threaded(workers.len() as u64, fork()));
        }
        World {
            range,
            random,
            now,
            agenda: Agenda::default(),
            nodes,
            register,
            workers,
            network,
            history: History::default(),
            fates: Fates::default(),
            begun: 0,
            healed_at: None,
            ranges: 1,
            verdict: Verdict::default(),
            plan,
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    pub(crate) fn after(&mut self, micros: u64, event: Event) {
        self.agenda.put(self.now() + micros, event);
    }

    /// Notes what has happened.
    pub(crate) fn note(&mut self, what: String) {
        let line = format!("{} {what}", self.now() - BEGIN_MICROS);
        for byte in line.bytes() {
            self.verdict.trace =
                (self.verdict.trace ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        }
        self.verdict.events += 1;
        let tail = &mut self.verdict.tail;
        if tail.len() == 2_000 {
            tail.pop_front();
        }
        tail.push_back(line);
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.verdict.counts.entry(what).or_default() += 1;
    }

    pub(crate) fn wrong(&mut self, what: String) {
        self.note(format!("WRONG: {what}"));
        self.verdict.problems.push(what);
    }

    fn go(&mut self) {
        (1..=self.plan.nodes).for_each(|node| self.after(0, Event::Start { node }));
        self.after(self.plan.trouble_every, Event::Trouble);
        self.split_at_borders();
        if self.plan.clients.changes.is_some() {
            self.found();
        }
        for client in 0..self.plan.clients.count {
            self.next_transaction(client);
        }
        while self.verdict.problems.is_empty() && !self.is_over() {
            let Some((at, event)) = self.agenda.take() else { break };
            self.now.store(at, Ordering::Relaxed);
            self.happen(event);
            self.heal_if_due();
        }
        if self.verdict.problems.is_empty() {
            self.look_at_everything();
        }
        for state in self.nodes.iter().map(describe).collect::<Vec<_>>() {
            self.note(state);
        }
        let naps = |node: &Node| node.process.as_ref().map_or(0, |process| process.activity().naps);
        *self.verdict.counts.entry("naps").or_default() += self.nodes.iter().map(naps).sum::<u64>();
        self.verdict.micros = self.now() - BEGIN_MICROS;
        let history = std::mem::take(&mut self.history);
        self.verdict.judge(&history);
    }

    fn is_over(&mut self) -> bool {
        let idle = self.workers.iter().all(Worker::is_idle);
        let done = idle && self.begun == self.plan.clients.transactions;
        if done && self.healed_at.is_some() && self.leases_are_over() {
            return true;
        }
        let late = self.healed_at.is_some_and(|at| at + HEALED_MICROS < self.now());
        if late {
            let states: Vec<String> = self.nodes.iter().map(describe).collect();
            self.wrong(format!(
                "not live a minute after all was healed:\n  {}",
                states.join("\n  ")
            ));
        }
        late
    }

    fn heal_if_due(&mut self) {
        let done = self.begun == self.plan.clients.transactions;
        if self.healed_at.is_some() || !done && self.now() < BEGIN_MICROS + TROUBLE_MICROS {
            return;
        }
        self.note("all is healed".into());
        self.healed_at = Some(self.now());
        let clients = &mut self.plan.clients;
        let rest = HEALED_TRANSACTIONS * clients.count as u64;
        clients.transactions = clients.transactions.min(self.begun + rest);
        self.network.heal();
        for node in 1..=self.plan.all_nodes() {
            let here = &mut self.nodes[node as usize - 1];
            here.clock.set_off(0);
            here.paused_until = 0;
            here.disarm();
            here.grow();
            if here.process.is_none() {
                self.after(1_000, Event::Start { node });
            }
        }
    }

    fn happen(&mut self, event: Event) {
        let node = match &event {
            Event::Tick { node, life }
            | Event::StoreSync { node, life }
            | Event::LogSynced { node, life, .. } => {
                // What was meant for a process that is gone.
                if self.nodes[*node as usize - 1].life != *life {
                    return;
                }
                Some(*node)
            }
            Event::Request { node, life, .. } => {
                if ![ANY_LIFE, self.nodes[*node as usize - 1].life].contains(life) {
                    return;
                }
                Some(*node)
            }
            Event::Message { node, .. } => Some(*node),
            _ => None,
        };
        let home = match &event {
            Event::Answer { client, .. } | Event::Impatient { client, .. } => {
                home_of(&self.plan, (client - FIRST_CLIENT) as usize)
            }
            Event::Begin { client } => home_of(&self.plan, *client),
            _ => None,
        };
        let Some(at) = node.or(home) else { return self.happen_outside(event) };
        let until = self.nodes[at as usize - 1].paused_until;
        if self.now() < until {
            let wait = until - self.now();
            return self.after(wait, event);
        }
        let Some(node) = node else { return self.happen_outside(event) };
        if self.nodes[node as usize - 1].process.is_some() && !self.has_room_for(node, &event) {
            return self.happen_without_room(node, event);
        }
        let Some(process) = &self.nodes[node as usize - 1].process else { return };
        let mut event = event;
        if let (Event::Request { number, request, .. }, Some(sabotage)) =
            (&mut event, self.plan.sabotage)
        {
            let clock = CommitTs(process.hlc().now());
            self.fates.asked.insert(*number, request.clone());
            if let Some(answer) = twist_request(sabotage, request, clock) {
                let (client, number, times) = (*number >> 32, *number, AnswerTimes::of(clock));
                return self.after(1_000, Event::Answer { client, number, times, answer });
            }
        }
        self.happen_on(node, event);
    }

    /// Something happens to a process.
    fn happen_on(&mut self, node: u64, event: Event) {
        let lies = self.plan.sabotage;
        let here = &mut self.nodes[node as usize - 1];
        let process = here.process.as_mut().expect("checked before");
        let (what, again, result) = match event {
            Event::Tick { life, .. } => {
                let again = Some((TICK_MICROS, Event::Tick { node, life }));
                (format!("n{node} tick"), again, process.tick())
            }
            Event::StoreSync { life, .. } => {
                let again = Some((STORE_SYNC_MICROS, Event::StoreSync { node, life }));
                let result = sync_store(process, lies);
                (format!("n{node} store synced"), again, result)
            }
            Event::LogSynced { place, .. } => {
                let synced = match lies {
                    Some(Sabotage::DisksLie) => Ok(()),
                    _ => process.sync_log(place),
                };
                let result = synced.and_then(|()| process.log_synced(place));
                (format!("n{node} log synced {place:?}"), None, result)
            }
            Event::Message { from, bytes, .. } => {
                let what = format!("n{from} to n{node}: {} bytes {}", bytes.len(), digest(&bytes));
                (what, None, process.receive(&bytes))
            }
            Event::Request { number, request, .. } => {
                let what = format!("n{node} is asked {number}: {:?}", request.ask);
                (what, None, process.request(number, request))
            }
            _ => unreachable!("other events happen outside of processes"),
        };
        self.note(what);
        if let Some((micros, event)) = again {
            self.after(micros, event);
        }
        self.settle(node, result);
    }

    /// Takes up what a process wants.
    pub(crate) fn settle(&mut self, node: u64, result: Result<()>) {
        let here = &mut self.nodes[node as usize - 1];
        // A flush makes all of the store durable, too.
        if self.plan.sabotage != Some(Sabotage::CutTooEarly) {
            here.background();
        }
        if here.has_crashed() {
            self.note(format!("n{node} lost power in mid-write"));
            self.count("crashes in mid-write");
            self.close_gateway(node);
            let down = self.random.between(10_000, 3_000_000);
            return self.after(down, Event::Start { node });
        }
        if self.stops_on_full_disk(node, &result) {
            return;
        }
        if let Err(error) = result {
            return self.wrong(format!("n{node} stopped: {error}"));
        }
        let here = &mut self.nodes[node as usize - 1];
        let life = here.life;
        let Some(process) = here.process.as_mut() else { return };
        let effects = process.effects();
        for note in effects.notes {
            self.count_what_is_noted(&note);
            self.note(format!("n{node}: {note}"));
        }
        for (to, bytes) in effects.send {
            let bytes = match self.plan.sabotage {
                Some(sabotage) => {
                    let whole = bytes.len();
                    let bytes = twist_message(sabotage, bytes);
                    if bytes.len() != whole {
                        self.count("states with something left out");
                    }
                    bytes
                }
                None => bytes,
            };
            for delay in self.network.arrivals(node, to.0) {
                let bytes = bytes.clone();
                self.after(delay, Event::Message { from: node, node: to.0, bytes });
            }
        }
        for Answered { number, times, mut answer } in effects.answers {
            let client = number >> 32;
            if client < FIRST_CLIENT {
                continue;
            }
            if let (Some(sabotage), Some(request)) =
                (self.plan.sabotage, self.fates.asked.get(&number))
            {
                let there = (request, NodeId(node));
                if let Some(ask) = twist_answer(sabotage, there, &mut answer) {
                    let request = Request { range: request.range, ask };
                    self.after(1, unasked(node, request));
                }
            }
            let party = self.party((client - FIRST_CLIENT) as usize);
            for delay in self.network.arrivals(node, party) {
                let answer = answer.clone();
                self.after(delay, Event::Answer { client, number, times, answer });
            }
        }
        if let Some(place) = effects.sync {
            let micros = self.random.between(10, self.plan.disk.sync_micros);
            self.after(micros, Event::LogSynced { node, life, place });
        }
    }

    fn count_what_is_noted(&mut self, note: &str) {
        for (words, count) in [
            ("goes on with a state", "states installed"),
            ("the lease of", "leases given away"),
            ("gets a vote in", "votes given"),
            ("on this node was removed", "replicas removed"),
        ] {
            if note.contains(words) {
                self.count(count);
            }
        }
    }

    fn happen_outside(&mut self, event: Event) {
        match event {
            Event::Answer { client, number, times, answer } => {
                let n = (client - FIRST_CLIENT) as usize;
                if self.workers[n].number() == number {
                    self.note(format!("c{n} is answered {number}: {answer:?}"));
                    let now = self.now();
                    if let Some(wish) = self.workers[n].answer(now, times, answer) {
                        self.grant(n, wish);
                    }
                }
            }
            Event::Impatient { client, number } => {
                let n = (client - FIRST_CLIENT) as usize;
                if self.workers[n].number() == number {
                    let now = self.now();
                    if let Some(wish) = self.workers[n].impatient(now) {
                        self.grant(n, wish);
                    }
                }
            }
            Event::Begin { client } => self.next_transaction(client),
            Event::Trouble => self.trouble(),
            Event::Mend => {
                self.note("the network is mended".into());
                self.network.mend();
            }
            Event::Start { node } => self.start(node),
            Event::Grow { node } => self.nodes[node as usize - 1].grow(),
            Event::Members { node } => self.tell_members(node),
            Event::Crash { node, down_micros } if self.healed_at.is_none() => {
                self.crash(node, down_micros);
            }
            Event::Crash { .. } => {}
            _ => unreachable!("other events happen to processes"),
        }
    }

    fn start(&mut self, node: u64) {
        if self.nodes[node as usize - 1].process.is_some() || !self.register.runs(node) {
            return;
        }
        let (plan, range) = (self.plan.clone(), self.range.clone());
        let started = self.nodes[node as usize - 1].start(&plan, &range);
        if let Err(Error::Log(error)) = &started
            && error.is_disk_full()
        {
            self.count("starts on full disks");
            return self.after(500_000, Event::Start { node });
        }
        if let Err(error) = started {
            return self.wrong(format!("n{node} does not start: {error}"));
        }
        let life = self.nodes[node as usize - 1].life;
        let state = describe(&self.nodes[node as usize - 1]);
        self.note(state);
        let first = self.random.below(TICK_MICROS);
        self.after(first, Event::Tick { node, life });
        self.after(STORE_SYNC_MICROS, Event::StoreSync { node, life });
        if self.plan.spares.is_some() {
            let micros = self.random.below(3_000_000);
            self.after(micros, Event::Members { node });
        }
        self.settle(node, Ok(()));
        self.open_gateway(node);
    }

    fn next_transaction(&mut self, client: usize) {
        if self.plan.clients.changes.is_some()
            && (!self.fates.founded || self.begin_to_keep(client))
        {
            return;
        }
        let now = self.now();
        if self.begun < self.plan.clients.transactions
            && let Some(wish) = self.workers[client].begin(now)
        {
            self.begun += 1;
            self.grant(client, wish);
        }
    }

    /// A client dies in the middle of what it does; another one takes its place.
    pub(crate) fn kill_client(&mut self) {
        let n = self.random.below(self.plan.clients.count as u64);
        let seed = self.random.next_u64();
        if !self.plan.clients.over_kv || self.workers[n as usize].is_idle() {
            return;
        }
        self.fates.dead += 1;
        self.count("clients died");
        let (id, now) = ((FIRST_CLIENT + n, self.fates.dead), self.now());
        let random = Random::seeded(seed);
        let clock = Arc::new(NodeClock::new(self.now.clone()));
        let place = Place::aside(coordinator_of(id.0, id.1), clock);
        let desk = Arc::new(Desk::new(place, &self.plan, self.range.clone()));
        let next = Actor::new(id, desk, &self.plan, random);
        let next = Worker::Threaded(Box::new(next));
        let Worker::Threaded(old) = std::mem::replace(&mut self.workers[n as usize], next) else {
            unreachable!("all that die have threads")
        };
        let (transaction, names) = old.die(now);
        self.note(format!("c{n} dies: {transaction:?}"));
        self.fates.orphans.push((self.history.transactions.len(), names));
        self.history.transactions.push(transaction);
        let rest = self.random.below(self.plan.clients.rest_micros);
        self.after(rest, Event::Begin { client: n as usize });
    }

    pub(crate) fn grant(&mut self, client: usize, wish: Wish) {
        let (name, party) = (FIRST_CLIENT + client as u64, self.party(client));
        for (node, request) in self.workers[client].take_tells() {
            for delay in self.network.arrivals(party, node.0) {
                let (number, request) = (name << 32, request.clone());
                let life = self.life_for(party, node.0);
                self.after(delay, Event::Request { node: node.0, life, number, request });
            }
        }
        match wish {
            Wish::Done(transaction, ask) => self.ended(client, transaction, ask),
            Wish::Failed(transaction, why) => {
                self.count(kind_of(&why));
                self.note(format!("c{client} has failed: {why}"));
                self.ended(client, transaction, None);
            }
            Wish::Send { node, number, request, patience_micros } => {
                match &request.ask {
                    Ask::Commit(ask) if ask.anchor.is_some() => {
                        self.count("commits into several ranges");
                    }
                    Ask::Decide { .. } => self.count("asked whether it has happened"),
                    _ => {}
                }
                let (late, life) =
                    (self.lateness(party, node.0, &request), self.life_for(party, node.0));
                for delay in self.network.arrivals(party, node.0) {
                    let (node, request) = (node.0, request.clone());
                    self.after(delay + late, Event::Request { node, life, number, request });
                }
                self.after(patience_micros, Event::Impatient { client: name, number });
            }
            Wish::Rest { number, micros } => {
                self.after(micros, Event::Impatient { client: name, number });
            }
            Wish::Wrong(what) => self.wrong(what),
        }
    }

    fn ended(&mut self, client: usize, transaction: Transaction, ask: Option<Ask>) {
        self.note(format!("c{client} is done: {transaction:?}"));
        if self.plan.clients.changes.is_some() && !self.fates.founded {
            return self.is_founded();
        }
        if let Worker::Threaded(actor) = &self.workers[client] {
            self.take_tally(&actor.desk.clone());
        }
        if let Some(found_out) = &mut self.fates.found_out {
            *found_out = transaction.outcome;
            return;
        }
        self.fates.unknown.extend(ask.map(|ask| (self.history.transactions.len(), ask)));
        self.history.transactions.push(transaction);
        let rest = self.random.below(self.plan.clients.rest_micros);
        self.after(rest, Event::Begin { client });
    }

    /// The first range is split in front of everything, if the plan says so.
    fn split_at_borders(&mut self) {
        if !self.plan.splits.at_first {
            return;
        }
        // From the last one on, so that the first range has all of them.
        let last = self.plan.keys as u32 + u32::from(self.plan.clients.changes.is_some());
        for n in (1..last).rev() {
            self.ranges += 1;
            let split = Split { at: data::border(n), right: RangeId(self.ranges) };
            for node in 1..=self.plan.nodes {
                let request = Request { range: RangeId(1), ask: Ask::Split(split.clone()) };
                let micros = 2_000_000 + 100_000 * u64::from(self.ranges as u32);
                self.after(micros, unasked(node, request));
            }
        }
    }

    /// What was given up is found out: has it happened? Then one transaction reads everything, and
    /// all replicas must have the same rows.
    fn look_at_everything(&mut self) {
        for (place, ask) in std::mem::take(&mut self.fates.unknown) {
            self.fates.found_out = Some(Outcome::Unknown);
            let wish = self.last().find_out(ask);
            if !self.lasts(wish) {
                return self.wrong("nobody says what became of a commit".into());
            }
            let (found_out, now) = (self.fates.found_out.take(), self.now());
            let transaction = &mut self.history.transactions[place];
            transaction.outcome = found_out.unwrap_or(Outcome::Unknown);
            transaction.ended = now;
            self.count("found out later");
        }
        let mut over = true;
        for n in 0..self.plan.keys as u32 {
            over &= self.looks_at(n);
        }
        // It has been in all ranges.
        if let Some(Worker::Threaded(actor)) = self.workers.last_mut() {
            self.fates.found_out = Some(Outcome::Unknown);
            let wish = actor.tidy(self.now.load(Ordering::Relaxed));
            over &= self.lasts(wish);
            self.fates.found_out = None;
        }
        if !over || !self.go_until(World::replicas_are_level) {
            let states: Vec<String> = self.nodes.iter().map(describe).collect();
            return self.wrong(format!("replicas do not become alike:\n  {}", states.join("\n  ")));
        }
        self.judge_orphans();
        self.check_ranges();
        self.compare_rows();
        self.look_for_old_rows();
    }

    /// What has become of transactions whose clients died; and nothing of them is left.
    fn judge_orphans(&mut self) {
        let now = self.now();
        let processes = || self.nodes.iter().filter_map(|node| node.process.as_ref());
        let left = processes().map(Replicas::unfinished).find(|left| *left != (0, 0));
        for (place, names) in &self.fates.orphans {
            let happened = |name: &TxnId| {
                let mut known = processes().filter_map(|process| process.decision(*name));
                matches!(known.next(), Some(Decision::Committed { .. }))
            };
            let outcome = match names.iter().any(happened) {
                true => Outcome::Committed,
                false => Outcome::Aborted,
            };
            let transaction = &mut self.history.transactions[*place];
            (transaction.outcome, transaction.ended) = (outcome, now);
        }
        if let Some(left) = left {
            self.wrong(format!("of transactions that are over is left: {left:?}"));
        }
    }

    /// Lets the last client look at everything of a number, with one node after the other; whether
    /// it has seen it. Else nobody could say what is lost.
    fn looks_at(&mut self, n: u32) -> bool {
        for _ in 0..2 * self.plan.all_nodes() {
            let now = self.now();
            let wish = self.workers.last_mut().expect("there is one").begin_last(now, n);
            let over = self.lasts(wish);
            let last = self.history.transactions.last();
            if !over || last.is_some_and(|last| last.outcome == Outcome::Committed) {
                return over;
            }
        }
        false
    }

    /// Lets the last client do something; whether it came to its end.
    fn lasts(&mut self, wish: Wish) -> bool {
        let last = self.workers.len() - 1;
        self.grant(last, wish);
        self.go_until(World::last_is_idle)
    }

    /// The client that looks at everything in the end.
    fn last(&mut self) -> &mut Client {
        match self.workers.last_mut() {
            Some(Worker::Plain(client)) => client,
            _ => unreachable!("the last one is plain"),
        }
    }

    fn last_is_idle(&self) -> bool {
        self.workers.last().is_some_and(Worker::is_idle)
    }

    /// Lets things happen until that is so; whether it came to that in time.
    fn go_until(&mut self, is_so: impl Fn(&World) -> bool) -> bool {
        let until = self.now() + HEALED_MICROS;
        while !is_so(self) {
            let Some((at, event)) = self.agenda.take() else { return false };
            if at > until || !self.verdict.problems.is_empty() {
                return false;
            }
            self.now.store(at, Ordering::Relaxed);
            self.happen(event);
        }
        true
    }

    /// Ranges cover all keys, each key once.
    fn check_ranges(&mut self) {
        let Some(process) = self.nodes.iter().find_map(|node| node.process.as_ref()) else {
            return;
        };
        let mut spans: Vec<KeySpan> =
            self.newest_ranges().into_values().map(|range| range.span).collect();
        spans.sort_by(|a, b| a.start.cmp(&b.start));
        let ends = spans.iter().map(|span| &span.end).take(spans.len() - 1);
        let gapless = spans.iter().skip(1).map(|span| &span.start).eq(ends);
        let whole = spans[0].start.as_ref() == FIRST_DATA_KEY
            && spans[spans.len() - 1].end == KeySpan::all().end;
        let threshold = process.newest_threshold().load(Ordering::Relaxed);
        let moved = Hlc::micros_of(threshold).saturating_sub(BEGIN_MICROS) / 1_000_000;
        *self.verdict.counts.entry("seconds collected").or_default() += moved;
        let splits = spans.len() as u64 - 1;
        *self.verdict.counts.entry("splits").or_default() += splits;
        if !gapless || !whole {
            self.wrong(format!("ranges overlap or leave keys out: {spans:?}"));
        }
    }
}

/// Nobody waits for the answer to that.
pub(crate) fn unasked(node: u64, request: Request) -> Event {
    Event::Request { node, life: ANY_LIFE, number: 0, request }
}

/// Of what kind a failure is, for counting.
fn kind_of(why: &str) -> &'static str {
    const KINDS: [&str; 9] = [
        "not kept any more",
        "about when this transaction began",
        "took too long",
        "lease of their range",
        "was read and has changed",
        "changed",
        "in time",
        "deadlock",
        "not known",
    ];
    KINDS.into_iter().find(|kind| why.contains(kind)).unwrap_or("other failures")
}

pub(crate) fn describe(node: &Node) -> String {
    let process = node.process.as_ref();
    process.map_or_else(|| format!("{:?} is down", node.id), Replicas::describe)
}

fn sync_store(process: &mut Replicas, lies: Option<Sabotage>) -> Result<()> {
    if lies == Some(Sabotage::CollectEverything) {
        // Reads below a store's threshold are refused: what was dropped must be missed later.
        let store = process.store();
        let before = store.gc_threshold();
        store.set_gc_threshold(CommitTs(process.hlc().now()))?;
        store.compact_span(&KeySpan::all())?;
        store.lower_gc_threshold(before)?;
    }
    let position = process.store_position();
    if lies != Some(Sabotage::CutTooEarly) {
        position.wait_durable()?;
    }
    process.store_synced(&position)
}

fn digest(bytes: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, fold)
}

/// All rows that a node has in a span, with their timestamps.
pub(crate) fn rows_of(node: &Node, span: &KeySpan) -> Vec<(Vec<u8>, Vec<u8>, CommitTs)> {
    let Some(process) = &node.process else { return Vec::new() };
    let view = process.store().view(CommitTs(u64::MAX - 1)).expect("the store is open");
    let mut scan = view.scan(span.clone(), ScanOptions::default()).expect("the disk works");
    let mut rows = Vec::new();
    while let Some(row) = scan.next_row().expect("the disk works") {
        rows.push((row.key.to_vec(), row.value.to_vec(), row.ts));
    }
    rows
}
