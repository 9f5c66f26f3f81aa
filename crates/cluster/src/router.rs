//! Finds leaseholders, and asks until there is an answer.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use braid_env::clock::{Clock, Hlc};
use braid_env::fs::FileSystem;
use braid_kv::{KvError, KvResult, Network, ShownNode, ShownRange, TXN_COUNTER_BITS, Tally, TxnId};
use braid_lsm::{CommitTs, KeySpan};
use braid_range::{
    Answer, Ask, FIRST_DATA_KEY, NodeId, RangeDescriptor, RangeId, Recalls, Request, WaitReport,
};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::patience::{Patience, Reach};
use crate::routes::{Route, Routes};
use crate::several::Decided;
use crate::transport::{Reply, Transport};
use crate::txns::{Announcement, Txns};
use crate::watches::Watches;

/// A node that has not answered for so long is asked again, or another one is.
pub(crate) const ASK_PATIENCE: Duration = Duration::from_secs(2);
/// From one try to the next, where somebody has said that it cannot be now.
const PAUSE: Duration = Duration::from_millis(20);
/// It is said again what is read while ranges are asked one by one.
const SAY_READS_MICROS: u64 = 1_000_000;

/// What a router stands on.
pub struct RouterOptions {
    /// The node that it is on: its clock is the router's.
    pub home: Option<NodeId>,
    /// Tells its transactions from those of other routers. Never used twice; at most 24 bits.
    pub coordinator: u64,
    /// Its clock, lifted by every answer.
    pub hlc: Arc<Hlc>,
    /// The same, without that.
    pub wall: Arc<dyn Clock>,
    /// No two clocks differ by more, in microseconds.
    pub max_clock_offset_micros: u64,
    /// After so long without an answer of use a request fails; sooner if the node has been cut off
    /// from a majority of the members. Default 30 s.
    pub patience: Duration,
    /// No transaction begins to read below: the newest threshold that the node knows of.
    pub oldest_readable: Arc<AtomicU64>,
    /// Where others ask for the leases of locks of this node's processes.
    pub recalls: Recalls,
    /// Where files of bulk loads are.
    pub fs: Arc<dyn FileSystem>,
    /// The first ranges that are known; others are told of.
    pub ranges: Vec<RangeDescriptor>,
}

/// See the [crate's page](crate).
pub struct Router {
    pub(crate) options: RouterOptions,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) routes: Mutex<Routes>,
    pub(crate) txns: Mutex<Txns>,
    pub(crate) watches: Watches,
    /// Transactions that have happened in several ranges, or have not, and of which not all of them
    /// have said that they know it.
    pub(crate) decided: Mutex<Vec<Decided>>,
    /// What its clock showed when it began.
    pub(crate) began: CommitTs,
    /// When it was said last what is read, in microseconds.
    said_reads_at: AtomicU64,
    pub(crate) near_reads: AtomicU64,
    /// How often news of settings were waited for.
    pub(crate) silent_waits: AtomicU64,
    count: AtomicU64,
    last_number: AtomicU64,
    pub(crate) never: AtomicBool,
    pub(crate) reach: Reach,
}

/// What became of a request.
pub(crate) enum Sent {
    /// It was answered.
    Answer(Answer),
    /// The range has other keys than was thought. That is known now.
    Moved,
}

/// What nodes say of the ranges that they have replicas of; together those have all keys.
struct ToldRanges {
    /// Each as who knows most of it says.
    newest: BTreeMap<RangeId, RangeDescriptor>,
    by_node: BTreeMap<NodeId, Vec<RangeDescriptor>>,
}

impl ToldRanges {
    /// Of how many ranges each node has a replica, loses it or is about to get one.
    fn counts(&self) -> BTreeMap<NodeId, usize> {
        let mut counts = BTreeMap::new();
        for RangeDescriptor { replicas, learners, leaving, .. } in self.newest.values() {
            for (_, node) in replicas.iter().chain(learners).chain(leaving) {
                *counts.entry(*node).or_default() += 1;
            }
        }
        counts
    }
}

fn not_all_answered() -> KvError {
    KvError::Unavailable("not all ranges have answered".into())
}

impl Router {
    /// A router that knows these ranges.
    pub fn new(transport: Arc<dyn Transport>, mut options: RouterOptions) -> Router {
        let mut routes = Routes::default();
        routes.learn(std::mem::take(&mut options.ranges));
        let began = CommitTs(options.hlc.now());
        Router {
            options,
            transport,
            routes: Mutex::new(routes),
            txns: Mutex::default(),
            watches: Watches::default(),
            decided: Mutex::default(),
            began,
            said_reads_at: AtomicU64::new(0),
            near_reads: AtomicU64::new(0),
            silent_waits: AtomicU64::new(0),
            count: AtomicU64::new(0),
            last_number: AtomicU64::new(0),
            never: AtomicBool::new(false),
            reach: Reach::default(),
        }
    }

    pub(crate) fn now(&self) -> CommitTs {
        CommitTs(self.options.hlc.now())
    }

    pub(crate) fn new_txn(&self) -> TxnId {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        TxnId(self.options.coordinator << TXN_COUNTER_BITS | count)
    }

    /// Grows with time; the lower bits are the node's.
    pub(crate) fn new_number(&self) -> i64 {
        const NODE_BITS: u32 = 12;
        let now = self.options.wall.now_micros().max(Hlc::micros_of(self.options.hlc.peek()));
        let next = |last: u64| Some(now.max(last + 1));
        let last = self.last_number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let number = now.max(last.expect("there is always a next one") + 1);
        let node = self.options.home.map_or(0, |node| node.0) & ((1 << NODE_BITS) - 1);
        (number << NODE_BITS | node) as i64
    }

    /// The range that has a key.
    pub(crate) fn route(&self, key: &[u8]) -> KvResult<Route> {
        let routes = self.routes.lock();
        let nobody = || KvError::Unavailable(format!("no range has {}", key.escape_ascii()));
        routes.of(key).cloned().ok_or_else(nobody)
    }

    /// The range that has the keys in front of one.
    pub(crate) fn route_before(&self, end: &[u8]) -> KvResult<Route> {
        let routes = self.routes.lock();
        let nobody = || KvError::Unavailable(format!("no range ends at {}", end.escape_ascii()));
        routes.before(end).cloned().ok_or_else(nobody)
    }

    /// A range by its number, and all that are known.
    pub(crate) fn routes(&self) -> Vec<Route> {
        self.routes.lock().all().cloned().collect()
    }

    /// How many ranges are known.
    pub fn range_count(&self) -> usize {
        self.routes.lock().all().count()
    }

    /// How often something of the past was read at a replica nearby, instead of where it is served.
    pub fn near_reads(&self) -> u64 {
        self.near_reads.load(Ordering::Relaxed)
    }

    /// Transactions that have begun here and not ended.
    pub fn active_transactions(&self) -> usize {
        self.txns.lock().count()
    }

    /// A span, cut at borders.
    pub(crate) fn pieces(&self, span: &KeySpan) -> KvResult<Vec<(Route, KeySpan)>> {
        let mut out = Vec::new();
        let mut from = span.start.clone();
        while from < span.end {
            let route = self.route(&from)?;
            let end = route.span.end.clone().min(span.end.clone());
            let piece = KeySpan::new(std::mem::replace(&mut from, end.clone()), end);
            out.push((route, piece));
        }
        Ok(out)
    }

    /// How long a request waits, unless it is told to stop.
    pub(crate) fn patience<'a>(&self, stop: Option<&'a AtomicBool>) -> Patience<'a> {
        let time = self.reach.patience(self.options.patience, &*self.options.wall);
        Patience::of(time, stop)
    }

    /// As [`Router::send_within`], for work of nobody's statement.
    pub(crate) fn send(&self, route: &Route, ask: &dyn Fn(NodeId) -> Ask) -> KvResult<Sent> {
        self.send_within(route, ask, self.patience(None))
    }

    /// As [`Router::send_within`]; it stops with the statement of the calling thread.
    pub(crate) fn send_stoppable(
        &self,
        route: &Route,
        ask: &dyn Fn(NodeId) -> Ask,
    ) -> KvResult<Sent> {
        let stop = Tally::stop_flag();
        self.send_within(route, ask, self.patience(stop.as_deref()))
    }

    /// Asks the leaseholder of a range until somebody answers; what is asked may depend on the
    /// node.
    pub(crate) fn send_within(
        &self,
        route: &Route,
        ask: &dyn Fn(NodeId) -> Ask,
        patience: Patience<'_>,
    ) -> KvResult<Sent> {
        let wall = &*self.options.wall;
        let mut left = patience.begin(wall);
        let mut node = route.holder.unwrap_or(route.nodes[0]);
        let (mut hops, mut in_vain) = (0, 0);
        // Its replicas may move; what is asked for may have happened where they were.
        let mut route = route.clone();
        loop {
            let request = Request { range: route.range, ask: ask(node) };
            self.count_range_call(route.range, node);
            let most = left.time(wall, ASK_PATIENCE);
            let reply = self.transport.ask(node, &request, most, left.patience.stop);
            if reply.is_none() && left.go_on(wall)? {
                continue;
            }
            if reply.as_ref().is_none_or(|reply| reply.answer == Answer::NoReplica) {
                self.asked_in_vain(&mut in_vain, &mut route, left.patience.stop);
            }
            let Some(reply) = reply else {
                node = other(&route, node);
                if left.is_over(wall) {
                    return Err(unavailable(&route, "no node answers"));
                }
                continue;
            };
            self.take_times(&request, node, &reply);
            let (next, waits) = match reply.answer {
                Answer::NotHolder { try_node: Some(next) } if next != node && hops < 3 => {
                    (next, false)
                }
                Answer::NotHolder { .. } | Answer::NoReplica => (other(&route, node), true),
                Answer::Again => (node, true),
                Answer::Waits { waits } => {
                    if let Ask::Lock(lock) = &request.ask {
                        self.say_who_waits(lock.request.txn, route.range, waits);
                    }
                    left.begin_anew(wall);
                    (node, false)
                }
                Answer::Blocked { txn, anchor } => {
                    self.unblock(&route, txn, &anchor, left.rest(wall))?;
                    (node, false)
                }
                Answer::WrongRange { known } => {
                    if !self.learn(known) && !self.learn_all(&route, node, left.patience.stop) {
                        self.transport.pause(PAUSE);
                    }
                    return Ok(Sent::Moved);
                }
                answer => {
                    self.routes.lock().set_holder(route.range, Some(node));
                    return Ok(Sent::Answer(answer));
                }
            };
            if left.is_over(wall) {
                return Err(unavailable(&route, "no node serves it at the moment"));
            }
            hops = if next == node || waits { 0 } else { hops + 1 };
            node = next;
            if waits {
                left.go_on(wall)?;
                self.transport.pause(PAUSE);
            }
        }
    }

    /// Each time that all nodes of a route were asked, it is looked where the replicas are now.
    fn asked_in_vain(&self, times: &mut usize, route: &mut Route, stop: &AtomicBool) {
        *times += 1;
        if times.is_multiple_of(route.nodes.len()) {
            self.follow(route, stop);
        }
    }

    /// What an answer says about the clock there, and of what a reader is certain from then on.
    pub(crate) fn take_times(&self, request: &Request, node: NodeId, reply: &Reply) {
        self.hear(reply.times.clock);
        if let Ask::Get { when, .. } | Ask::Scan { when, .. } = &request.ask {
            let has_read = matches!(reply.answer, Answer::Got(_) | Answer::Scanned(_));
            let range = has_read.then_some((request.range, reply.times.certain));
            self.txns.lock().observe(when.at, (node, range), reply.times.clock);
        }
    }

    /// All ranges, as the node has them that this router is on, also when nobody serves. Those that
    /// have no replica there, as another node has them.
    pub(crate) fn shown_ranges(&self) -> KvResult<Vec<ShownRange>> {
        let request = Request::of_node(Ask::ShowRanges);
        let stop = Tally::stop_flag();
        let stop = stop.as_deref().unwrap_or(&self.never);
        let mut shown: BTreeMap<Bytes, ShownRange> = BTreeMap::new();
        let mut any = false;
        for node in self.all_nodes(self.options.home) {
            let spans: Vec<KeySpan> = shown.values().map(|range| range.span.clone()).collect();
            if any && is_whole(&spans) {
                break;
            }
            let reply = self.transport.ask(node, &request, ASK_PATIENCE, stop);
            match reply.map(|reply| reply.answer) {
                Some(Answer::ShownRanges(ranges)) => {
                    any = true;
                    for range in ranges {
                        // They do not overlap each other: the last one in front of its end tells.
                        let end = (Unbounded, Excluded(&*range.span.end));
                        let before = shown.range::<[u8], _>(end).next_back();
                        if before.is_none_or(|(_, before)| !before.span.overlaps(&range.span)) {
                            shown.insert(range.span.start.clone(), range);
                        }
                    }
                }
                Some(other) => return Err(unexpected(other)),
                None => {}
            }
        }
        let silent = || KvError::Unavailable("no node's replicas answer".into());
        any.then(|| shown.into_values().collect()).ok_or_else(silent)
    }

    /// All nodes that the cluster ever had.
    pub(crate) fn shown_nodes(&self) -> Vec<ShownNode> {
        self.transport.shown_nodes()
    }

    /// Of how many ranges each node has a replica, loses it or is about to get one, as those say
    /// that know most of it. Nodes without any are left out.
    ///
    /// # Errors
    /// [`KvError::Unavailable`] if not all ranges were found, or one was told of by less than a
    /// majority of those who vote there: others may have moved it since then.
    pub fn replica_counts(&self) -> KvResult<BTreeMap<NodeId, usize>> {
        let told = self.told_ranges()?;
        let heard = |(_, node): &&(_, NodeId)| told.by_node.contains_key(node);
        let is_known = |range: &RangeDescriptor| {
            2 * range.replicas.iter().filter(heard).count() > range.replicas.len()
        };
        match told.newest.values().all(is_known) {
            true => Ok(told.counts()),
            false => Err(not_all_answered()),
        }
    }

    /// Of how many ranges a node has a replica, loses it or is about to get one. Where none is told
    /// of, whoever serves a range has the last word on that: a majority of those who had it once
    /// may not have heard where it is now, but none of them serves it.
    ///
    /// # Errors
    /// [`KvError::Unavailable`] if that cannot be said now.
    pub fn replicas_on(&self, node: NodeId) -> KvResult<usize> {
        let told = self.told_ranges()?;
        if let Some(count) = told.counts().get(&node) {
            return Ok(*count);
        }
        self.learn(told.newest.values().cloned().collect());
        let mut served = BTreeMap::new();
        for route in self.routes() {
            let asked = std::cell::Cell::new(node);
            let ask = |node| {
                asked.set(node);
                Ask::Unfinished
            };
            if let Sent::Answer(Answer::Unfinished(_)) = self.send(&route, &ask)? {
                served.insert(route.range, asked.get());
            }
        }
        // They say now what they had applied when they served, or more.
        let told = self.told_ranges()?;
        let is_known = |range: &RangeDescriptor| {
            let own = served.get(&range.id).and_then(|node| told.by_node.get(node));
            own.is_some_and(|own| own.contains(range))
        };
        match told.newest.values().all(is_known) {
            true => Ok(told.counts().get(&node).copied().unwrap_or(0)),
            false => Err(not_all_answered()),
        }
    }

    /// What all nodes that answer say of the ranges that they have replicas of.
    fn told_ranges(&self) -> KvResult<ToldRanges> {
        let request = Request::of_node(Ask::Ranges);
        let (mut newest, mut by_node) = (BTreeMap::<_, RangeDescriptor>::new(), BTreeMap::new());
        for other in self.all_nodes(self.options.home) {
            let reply = self.transport.ask(other, &request, ASK_PATIENCE, &self.never);
            let Some(Answer::Ranges(ranges)) = reply.map(|reply| reply.answer) else { continue };
            for range in &ranges {
                match newest.get(&range.id) {
                    Some(known) if known.generation >= range.generation => {}
                    _ => drop(newest.insert(range.id, range.clone())),
                }
            }
            by_node.insert(other, ranges);
        }
        let mut spans: Vec<KeySpan> = newest.values().map(|range| range.span.clone()).collect();
        spans.sort_by(|a, b| a.start.cmp(&b.start));
        match is_whole(&spans) {
            true => Ok(ToldRanges { newest, by_node }),
            false => Err(not_all_answered()),
        }
    }

    /// Asks a node something that is about no range of its own.
    pub(crate) fn ask_node(&self, node: NodeId, ask: Ask) -> Option<Answer> {
        let reply = self.transport.ask(node, &Request::of_node(ask), ASK_PATIENCE, &self.never);
        reply.map(|reply| reply.answer)
    }

    /// All nodes that are known, that one first.
    fn all_nodes(&self, first: Option<NodeId>) -> Vec<NodeId> {
        let mut all = self.routes.lock().nodes().clone();
        all.extend(self.transport.nodes());
        let others = all.into_iter().filter(|node| Some(*node) != first);
        first.into_iter().chain(others).collect()
    }

    /// No replica was found where a range was thought to be: where is it now?
    fn follow(&self, route: &mut Route, stop: &AtomicBool) {
        self.learn_all(route, route.nodes[0], stop);
        if let Some(known) = self.routes.lock().by_id(route.range) {
            route.nodes.clone_from(&known.nodes);
        }
    }

    /// Asks once; whether it was done. Who was told to stop does not wait for the answer.
    pub(crate) fn tell(&self, range: RangeId, ask: Ask) -> bool {
        let known = self.routes.lock().by_id(range).cloned();
        let Some(route) = known else { return false };
        let node = route.holder.unwrap_or(route.nodes[0]);
        let request = Request { range, ask };
        self.count_range_call(range, node);
        let stop = Tally::stop_flag();
        let stop = stop.as_deref().unwrap_or(&self.never);
        let reply = self.transport.ask(node, &request, ASK_PATIENCE, stop);
        let Some(reply) = reply else {
            // Who has not waited knows nothing of the node.
            if !stop.load(Ordering::Relaxed) {
                self.routes.lock().set_holder(range, Some(other(&route, node)));
            }
            return false;
        };
        self.hear(reply.times.clock);
        if reply.answer == Answer::NoReplica {
            let mut route = route;
            // Who has served it before may have none now, and others have.
            if route.nodes.contains(&node) {
                self.follow(&mut route, stop);
            }
            self.routes.lock().set_holder(range, Some(other(&route, node)));
            return false;
        }
        if let Answer::NotHolder { try_node } = reply.answer {
            let next = try_node.filter(|next| *next != node);
            self.routes.lock().set_holder(range, Some(next.unwrap_or(other(&route, node))));
        }
        reply.answer == Answer::Fine
    }

    /// Says where a transaction has locks who waits for whom while it waits in another range;
    /// nobody: it waits no more.
    pub(crate) fn say_who_waits(&self, txn: TxnId, waits_in: RangeId, waits: Vec<WaitReport>) {
        let sessions = self.txns.lock().waits(txn, !waits.is_empty());
        for route in self.routes() {
            if route.range != waits_in && sessions.contains_key(&route.range) {
                self.post(&route, Ask::WaitsFor { txn, waits: waits.clone() });
            }
        }
    }

    /// Sends a request to whoever has served a range last, and does not wait for the answer.
    pub(crate) fn post(&self, route: &Route, ask: Ask) {
        let node = route.holder.unwrap_or(route.nodes[0]);
        self.count_range_call(route.range, node);
        self.transport.tell(node, &Request { range: route.range, ask });
    }

    /// A range is asked, on a node.
    pub(crate) fn count_range_call(&self, range: RangeId, node: NodeId) {
        Tally::touch(range.0);
        self.count_call(node);
    }

    pub(crate) fn count_call(&self, node: NodeId) {
        if self.options.home != Some(node) {
            Tally::add_network(Network { calls: 1, ..Network::default() });
        }
    }

    /// Says to all nodes from when on transactions of this router read, and in all ranges where
    /// they have had locks which of them are still running. To be called every second or two:
    /// without it what they read goes, and so do their locks. It is looked, too, whether the node
    /// reaches a majority.
    pub fn announce(&self) {
        self.say_what_is_read();
        let announcement = self.txns.lock().announcement();
        let Some(Announcement { newest, running, ranges }) = announcement else { return };
        for range in ranges {
            // Ranges that are not served take their time.
            if self.said_reads_at.load(Ordering::Relaxed) + SAY_READS_MICROS
                < self.options.wall.now_micros()
            {
                self.say_what_is_read();
            }
            // A range that has not heard it may keep locks of transactions that are over.
            if self.tell(range.0, Ask::Running { newest, running: running.clone() }) {
                self.txns.lock().announced(range);
            }
        }
    }

    /// Whether this node does not reach a majority of the members.
    pub fn is_cut_off(&self) -> bool {
        self.transport.is_cut_off()
    }

    fn say_what_is_read(&self) {
        let now = self.options.wall.now_micros();
        self.said_reads_at.store(now, Ordering::Relaxed);
        // It is looked at each time, too, while ranges take their time.
        self.reach.note(self.is_cut_off(), now);
        let oldest = {
            let txns = self.txns.lock();
            // Who begins later reads a later time.
            let now = self.now();
            txns.oldest_read().map_or(now, |oldest| oldest.min(now))
        };
        let nodes = self.routes.lock().nodes().clone();
        let coordinator = self.options.coordinator;
        for node in nodes {
            let says = Request::of_node(Ask::ReadsFrom { coordinator, oldest });
            self.transport.tell(node, &says);
        }
    }

    /// What is to be done now and then: [`Router::announce`], and what transactions over several
    /// ranges have left to do.
    pub fn housekeep(&self) {
        self.announce();
        self.finish_decided();
    }

    /// Takes up what a node has said of ranges; whether anything of it is new.
    fn learn(&self, known: Vec<RangeDescriptor>) -> bool {
        let learned = self.routes.lock().learn(known);
        let mut txns = self.txns.lock();
        learned.came_from.iter().for_each(|(from, (to, span))| txns.moved(*from, (*to, span)));
        learned.any
    }

    /// Asks a node for all ranges that it knows: it has said that a range has other keys, and not
    /// which one has them. It may not know: a node that was away has no replica of ranges that
    /// were split off meanwhile. Then the others are asked, until one has news of the range's keys;
    /// whether one had.
    fn learn_all(&self, route: &Route, node: NodeId, stop: &AtomicBool) -> bool {
        let request = Request::of_node(Ask::Ranges);
        let before = self.generation_of(route);
        let own = route.nodes.iter().copied().filter(|other| *other != node);
        let known: Vec<NodeId> = std::iter::once(node).chain(own).collect();
        let all = self.all_nodes(None).into_iter().filter(|other| !known.contains(other));
        for node in known.iter().copied().chain(all) {
            self.count_call(node);
            let reply = self.transport.ask(node, &request, ASK_PATIENCE, stop);
            if let Some(Answer::Ranges(ranges)) = reply.map(|reply| reply.answer)
                && self.learn(ranges)
                && self.generation_of(route) != before
            {
                return true;
            }
        }
        false
    }

    /// What is known of the keys with which a range begins.
    fn generation_of(&self, route: &Route) -> Option<(RangeId, KeySpan, u64)> {
        let routes = self.routes.lock();
        let known = routes.of(&route.span.start);
        known.map(|known| (known.range, known.span.clone(), known.generation))
    }

    /// Lifts the clock, unless the other one is out of bounds.
    pub(crate) fn hear(&self, clock: CommitTs) {
        let bound = self.options.wall.now_micros() + self.options.max_clock_offset_micros;
        if Hlc::micros_of(clock.0) <= bound {
            self.options.hlc.update(clock.0);
        }
    }
}

/// Another node with a replica.
fn other(route: &Route, node: NodeId) -> NodeId {
    let at = route.nodes.iter().position(|other| *other == node).map_or(0, |at| at + 1);
    route.nodes[at % route.nodes.len()]
}

/// Whether ranges in key order leave no key of those between them out, nor at either end.
fn is_whole(spans: &[KeySpan]) -> bool {
    let gapless = spans.windows(2).all(|two| two[0].end == two[1].start);
    let first = spans.first().is_some_and(|span| span.start.as_ref() <= FIRST_DATA_KEY);
    first && gapless && spans.last().is_some_and(|span| span.end == KeySpan::all().end)
}

fn unavailable(route: &Route, reason: &str) -> KvError {
    KvError::Unavailable(format!("{:?}: {reason}", route.range))
}

/// The error for an answer that is none to what was asked.
pub(crate) fn unexpected(answer: Answer) -> KvError {
    match answer {
        Answer::Conflict(conflict) => KvError::Retry { conflict },
        Answer::Uncertain(ts) => KvError::Retry { conflict: braid_kv::Conflict::Uncertain(ts) },
        Answer::Refused(reason) => KvError::Refused(reason),
        Answer::DiskFull => KvError::Engine(braid_lsm::Error::DiskFull),
        Answer::Aborted => KvError::Retry { conflict: braid_kv::Conflict::Abandoned },
        Answer::OutcomeUnknown => KvError::OutcomeUnknown("it was asked for too late".into()),
        other => KvError::Unavailable(format!("a node gave a wrong kind of answer: {other:?}")),
    }
}
