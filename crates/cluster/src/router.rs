//! Finds leaseholders, and asks until there is an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use braid_env::clock::{Clock, Hlc};
use braid_env::fs::FileSystem;
use braid_kv::{KvError, KvResult, TXN_COUNTER_BITS, TxnId};
use braid_lsm::{CommitTs, KeySpan};
use braid_range::{Answer, Ask, NodeId, RangeDescriptor, RangeId, Request};
use parking_lot::Mutex;

use crate::routes::{Route, Routes};
use crate::transport::Transport;
use crate::txns::Txns;
use crate::watches::Watches;

/// A node that has not answered for so long is asked again, or another one is.
const ASK_PATIENCE: Duration = Duration::from_secs(2);
/// From one try to the next, where somebody has said that it cannot be now.
const PAUSE: Duration = Duration::from_millis(20);

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
    /// After so long without an answer of use a request fails. Default 30 s.
    pub patience: Duration,
    /// Where files of bulk loads are.
    pub fs: Arc<dyn FileSystem>,
    /// The first ranges that are known; others are told of.
    pub ranges: Vec<RangeDescriptor>,
}

/// See the [crate's page](crate).
pub struct Router {
    pub(crate) options: RouterOptions,
    transport: Arc<dyn Transport>,
    routes: Mutex<Routes>,
    pub(crate) txns: Mutex<Txns>,
    pub(crate) watches: Watches,
    count: AtomicU64,
    last_number: AtomicU64,
    never: AtomicBool,
}

/// What became of a request.
pub(crate) enum Sent {
    /// It was answered.
    Answer(Answer),
    /// The range has other keys than was thought. That is known now.
    Moved,
}

impl Router {
    /// A router that knows these ranges.
    pub fn new(transport: Arc<dyn Transport>, mut options: RouterOptions) -> Router {
        let mut routes = Routes::default();
        routes.learn(std::mem::take(&mut options.ranges));
        Router {
            options,
            transport,
            routes: Mutex::new(routes),
            txns: Mutex::default(),
            watches: Watches::default(),
            count: AtomicU64::new(0),
            last_number: AtomicU64::new(0),
            never: AtomicBool::new(false),
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

    /// Asks the leaseholder of a range until somebody answers; what is asked may depend on the
    /// node.
    pub(crate) fn send(
        &self,
        route: &Route,
        ask: &dyn Fn(NodeId) -> Ask,
        stop: Option<&AtomicBool>,
    ) -> KvResult<Sent> {
        let stop = stop.unwrap_or(&self.never);
        let wall = &self.options.wall;
        let until = wall.now_micros() + self.options.patience.as_micros() as u64;
        let mut node = route.holder.unwrap_or(route.nodes[0]);
        let mut hops = 0;
        loop {
            let request = Request { range: route.range, ask: ask(node) };
            let reply = self.transport.ask(node, &request, ASK_PATIENCE, stop);
            if reply.is_none() && stop.load(Ordering::Relaxed) {
                return Err(KvError::Canceled);
            }
            let Some(reply) = reply else {
                node = other(route, node);
                if until < wall.now_micros() {
                    return Err(unavailable(route, "no node answers"));
                }
                continue;
            };
            self.hear(reply.clock);
            if let Ask::Get { when, .. } | Ask::Scan { when, .. } = &request.ask {
                self.txns.lock().observe(when.at, node, reply.clock);
            }
            let (next, waits) = match reply.answer {
                Answer::NotHolder { try_node: Some(next) } if next != node && hops < 3 => {
                    (next, false)
                }
                Answer::NotHolder { .. } | Answer::NoReplica => (other(route, node), true),
                Answer::Again => (node, true),
                Answer::WrongRange { known } => {
                    self.learn(known);
                    return Ok(Sent::Moved);
                }
                answer => {
                    self.routes.lock().set_holder(route.range, Some(node));
                    return Ok(Sent::Answer(answer));
                }
            };
            if until < wall.now_micros() {
                return Err(unavailable(route, "no node serves it at the moment"));
            }
            node = next;
            hops += 1;
            if waits {
                hops = 0;
                self.transport.pause(PAUSE);
            }
        }
    }

    /// Asks once, and does not care what comes of it.
    pub(crate) fn tell(&self, range: RangeId, ask: Ask) {
        let known = self.routes.lock().all().find(|route| route.range == range).cloned();
        let Some(route) = known else { return };
        let node = route.holder.unwrap_or(route.nodes[0]);
        let request = Request { range, ask };
        if let Some(reply) = self.transport.ask(node, &request, ASK_PATIENCE, &self.never) {
            self.hear(reply.clock);
        }
    }

    /// Says in all ranges where transactions of this router have had locks which of them are still
    /// running. To be called every second or two: without it their locks go.
    pub fn announce(&self) {
        let Some((newest, running, ranges)) = self.txns.lock().announcement() else { return };
        for range in ranges {
            self.tell(range, Ask::Running { newest, running: running.clone() });
        }
    }

    /// Takes up what a node has said of ranges.
    fn learn(&self, known: Vec<RangeDescriptor>) {
        let came_from = self.routes.lock().learn(known);
        let mut txns = self.txns.lock();
        came_from.iter().for_each(|(from, (to, span))| txns.moved(*from, (*to, span)));
    }

    /// Lifts the clock, unless the other one is out of bounds.
    fn hear(&self, clock: CommitTs) {
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

fn unavailable(route: &Route, reason: &str) -> KvError {
    KvError::Unavailable(format!("{:?}: {reason}", route.range))
}

/// The error for an answer that is none to what was asked.
pub(crate) fn unexpected(answer: Answer) -> KvError {
    match answer {
        Answer::Conflict(conflict) => KvError::Retry { conflict },
        Answer::Uncertain(ts) => KvError::Retry { conflict: braid_kv::Conflict::Uncertain(ts) },
        Answer::Refused(reason) => KvError::Unavailable(reason),
        Answer::OutcomeUnknown => KvError::OutcomeUnknown("it was asked for too late".into()),
        other => KvError::Unavailable(format!("a node gave a wrong kind of answer: {other:?}")),
    }
}
