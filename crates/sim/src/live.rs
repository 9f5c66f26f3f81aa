//! Three nodes for tests that have threads of their own: whoever asks moves the cluster on, under
//! one lock, until there is an answer.
//!
//! ```text
//!   threads of a test        Router.ask ──► lock ──► messages, disks, ticks until it is quiet ──►
//! ```
//!
//! Messages arrive at once and disks never fail: it is not for finding what breaks under trouble,
//! but for running tests that know nothing of ranges over some.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use braid_cluster::{Reply, Router, RouterOptions, Transport};
use braid_consensus::{RaftLogOptions, ReplicaId};
use braid_env::clock::{Clock, Hlc, WallClock};
use braid_env::fs::MemFs;
use braid_env::memory::Pool;
use braid_env::random::Random;
use braid_env::tasks::SeededTasks;
use braid_kv::{Coordinator, CoordinatorOptions, RowForm, TxnId as LockTxn};
use braid_lsm::{KeySpan, Options, RowClassFn};
use braid_range::{
    Answered, Ask, CommitAsk, FIRST_DATA_KEY, NodeEnv, NodeId, NodeOptions, RangeDescriptor,
    RangeId, Replicas, Request, Split, anywhere,
};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

const NODES: u64 = 3;
/// From one tick to the next, in real time.
const TICK_MICROS: u64 = 10_000;
/// Stores are synced every so many ticks.
const SYNC_TICKS: u64 = 50;
/// Every range costs time at every tick.
const MOST_RANGES: usize = 24;
const ANNOUNCE_MICROS: u64 = 100_000;
/// Nobody waits longer for a lock, unless something is wrong: then the test says what it sees
/// instead of standing still.
const LONGEST_WAIT_MICROS: u64 = 90_000_000;

/// What the nodes know of values.
#[derive(Default)]
pub struct LiveOptions {
    /// As in the engine's options.
    pub row_class: Option<RowClassFn>,
    /// As in the store's options.
    pub row_form: Option<RowForm>,
    /// The range is split at these keys before anybody uses it.
    pub borders: Vec<Bytes>,
    /// Ranges are split in the middle of every so many commits, in front of the last key that each
    /// of these writes.
    pub split_at_commits: Option<u64>,
    /// Versions are kept for so long, in microseconds; `None`: for ever.
    pub gc_window_micros: Option<u64>,
}

struct Node {
    process: Replicas,
    tasks: Arc<SeededTasks>,
}

#[derive(Default)]
struct Inner {
    nodes: Vec<Node>,
    messages: VecDeque<(NodeId, Vec<u8>)>,
    answers: BTreeMap<u64, Answered>,
    /// Whose answers nobody waits for.
    abandoned: BTreeSet<u64>,
    asked: u64,
    ticks: u64,
    ticked_at: u64,
    commits: u64,
    /// How often each range was asked something.
    requests: BTreeMap<RangeId, u64>,
    /// Since when each of those who ask for locks has asked for the same.
    lock_asked: BTreeMap<LockTxn, (u64, u64)>,
}

/// See the [module's page](self).
pub struct LiveCluster {
    inner: Mutex<Inner>,
    changed: Condvar,
    clock: Arc<dyn Clock>,
    options: LiveOptions,
    routers: Mutex<Vec<Weak<Router>>>,
    announced_at: AtomicU64,
}

fn descriptor() -> RangeDescriptor {
    let replicas = (1..=NODES).map(|id| (ReplicaId(id), NodeId(id))).collect();
    let span = KeySpan::new(FIRST_DATA_KEY, KeySpan::all().end);
    RangeDescriptor::new(RangeId(1), span, replicas)
}

impl LiveCluster {
    /// Starts three nodes with new disks. The first one leads.
    pub fn start(options: LiveOptions) -> Arc<LiveCluster> {
        let clock: Arc<dyn Clock> = Arc::new(WallClock);
        let mut inner = Inner::default();
        for id in 1..=NODES {
            let tasks = Arc::new(SeededTasks::new(id));
            let defaults = Options::default();
            let store = Options {
                row_class: options.row_class.unwrap_or(defaults.row_class),
                memtable_size: 4 << 20,
                block_cache_size: 4 << 20,
                ballast_size: 0,
                tasks: Some(tasks.clone()),
                clock: clock.clone(),
                ..defaults
            };
            let env = NodeEnv {
                fs: Arc::new(MemFs::new()),
                clock: clock.clone(),
                random: Random::seeded(id),
                store_dir: None,
                store,
                log: RaftLogOptions { clock: clock.clone(), ..RaftLogOptions::default() },
                row_form: options.row_form,
                split_points: anywhere,
            };
            let gc_window_micros = options.gc_window_micros;
            // Time is real: a silent router is not waited for as long as usual.
            let coordinator_patience_micros = match gc_window_micros {
                Some(_) => 1_000_000,
                None => NodeOptions::new(NodeId(id)).coordinator_patience_micros,
            };
            let own = NodeOptions {
                gc_window_micros,
                coordinator_patience_micros,
                ..NodeOptions::new(NodeId(id))
            };
            let process = Replicas::open(env, Path::new("/node"), own, &[descriptor()]);
            inner.nodes.push(Node { process: process.expect("its disk is new"), tasks });
        }
        // Only the first one's time passes until it leads.
        while !inner.nodes[0].process.serves(RangeId(1)) {
            inner.nodes[0].process.tick().expect("nothing fails");
            inner.settle();
        }
        for (n, at) in options.borders.iter().enumerate() {
            inner.split(at, RangeId(n as u64 + 2));
        }
        let (inner, changed) = (Mutex::new(inner), Condvar::new());
        let (routers, announced_at) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(LiveCluster { inner, changed, clock, options, routers, announced_at })
    }

    /// Begins transactions, on the first node.
    pub fn coordinator(self: &Arc<Self>) -> Arc<Coordinator> {
        self.coordinator_on(1)
    }

    /// Begins transactions, on this node.
    pub fn coordinator_on(self: &Arc<Self>, node: u64) -> Arc<Coordinator> {
        let hlc = self.inner.lock().nodes[node as usize - 1].process.hlc().clone();
        self.coordinator_by(node, self.clock.clone(), hlc)
    }

    /// The same by another clock than that of the nodes' ranges.
    pub fn coordinator_by_clock(
        self: &Arc<Self>,
        node: u64,
        clock: Arc<dyn Clock>,
    ) -> Arc<Coordinator> {
        self.coordinator_by(node, clock.clone(), Arc::new(Hlc::new(clock)))
    }

    fn coordinator_by(
        self: &Arc<Self>,
        node: u64,
        wall: Arc<dyn Clock>,
        hlc: Arc<Hlc>,
    ) -> Arc<Coordinator> {
        let mut routers = self.routers.lock();
        let fs = Arc::new(MemFs::new());
        let (oldest_readable, recalls) = {
            let process = &self.inner.lock().nodes[node as usize - 1].process;
            (process.newest_threshold(), process.recalls().clone())
        };
        let options = RouterOptions {
            home: Some(NodeId(node)),
            coordinator: 1 + routers.len() as u64,
            hlc,
            wall,
            max_clock_offset_micros: 250_000,
            patience: Duration::from_secs(30),
            oldest_readable,
            recalls,
            fs: fs.clone(),
            ranges: vec![descriptor()],
        };
        let router = Arc::new(Router::new(self.clone(), options));
        routers.push(Arc::downgrade(&router));
        let defaults = Options::default();
        let row_class = self.options.row_class.unwrap_or(defaults.row_class);
        let own = CoordinatorOptions {
            fs,
            dir: "/".into(),
            engine: Options { row_class, ..defaults },
            memory: Pool::unlimited(),
            row_form: self.options.row_form,
        };
        Coordinator::over(router, own).expect("its disk is new")
    }

    /// Splits whatever range has the key there. Nobody is told.
    pub fn split(&self, at: &Bytes) {
        let mut inner = self.inner.lock();
        let ranges = inner.nodes[0].process.ranges();
        let newest = ranges.iter().map(|(range, _)| range.id.0).max().unwrap_or(0);
        inner.split(at, RangeId(newest + 1));
    }

    /// Nodes hear nothing of those any more who have begun transactions so far.
    pub fn silence(&self) {
        self.routers.lock().iter_mut().for_each(|router| *router = Weak::new());
    }

    /// How often a range was asked something. Who says that he is there asks nothing.
    pub fn requests_to(&self, range: u64) -> u64 {
        self.inner.lock().requests.get(&RangeId(range)).copied().unwrap_or(0)
    }

    /// What transactions over several ranges have left to do is done.
    pub fn settle(&self) {
        let routers: Vec<_> = self.routers.lock().iter().filter_map(Weak::upgrade).collect();
        routers.iter().for_each(|router| router.housekeep());
    }

    /// As [`Replicas::unfinished`], of the first node.
    pub fn unfinished(&self) -> (usize, usize) {
        self.inner.lock().nodes[0].process.unfinished()
    }

    /// What the nodes have, a line for each range of each.
    pub fn describe(&self) -> String {
        self.inner.lock().describe()
    }

    /// Routers say who is running, if that is due.
    fn announce(&self) {
        let (now, last) = (self.clock.now_micros(), self.announced_at.load(Ordering::Relaxed));
        if last + ANNOUNCE_MICROS < now {
            self.announced_at.store(now, Ordering::Relaxed);
            let routers: Vec<_> = self.routers.lock().iter().filter_map(Weak::upgrade).collect();
            routers.iter().for_each(|router| router.housekeep());
        }
    }
}

impl Inner {
    /// Messages arrive and disks work until nothing is left to do.
    fn settle(&mut self) {
        let mut any = true;
        while std::mem::take(&mut any) {
            for node in &mut self.nodes {
                while node.tasks.run_one() {}
                let effects = node.process.effects();
                if let Some(place) = effects.sync {
                    any = true;
                    node.process.sync_log(place).expect("the disk works");
                    node.process.log_synced(place).expect("nothing fails");
                }
                for answered in effects.answers {
                    if !self.abandoned.remove(&answered.number) {
                        self.answers.insert(answered.number, answered);
                    }
                }
                self.messages.extend(effects.send);
            }
            while let Some((to, bytes)) = self.messages.pop_front() {
                any = true;
                let there = &mut self.nodes[to.0 as usize - 1].process;
                there.receive(&bytes).expect("nothing fails");
            }
        }
    }

    /// Time passes, if it is time.
    fn pass(&mut self, now: u64) {
        if self.ticked_at + TICK_MICROS > now {
            return;
        }
        (self.ticked_at, self.ticks) = (now, self.ticks + 1);
        for node in &mut self.nodes {
            node.process.tick().expect("nothing fails");
            if self.ticks.is_multiple_of(SYNC_TICKS) {
                let position = node.process.store_position();
                position.wait_durable().expect("the disk works");
                node.process.store_synced(&position).expect("the disk works");
            }
        }
        self.settle();
    }

    fn request(&mut self, node: NodeId, request: Request) -> u64 {
        self.asked += 1;
        if !matches!(request.ask, Ask::Running { .. }) {
            *self.requests.entry(request.range).or_default() += 1;
        }
        let there = &mut self.nodes[node.0 as usize - 1].process;
        there.request(self.asked, request).expect("nothing fails");
        self.settle();
        self.asked
    }

    /// Ends a test in which somebody waits for a lock for too long.
    ///
    /// # Panics
    /// Then.
    fn complain(&mut self, request: &Request, now: u64) {
        let Ask::Lock(ask) = &request.ask else { return };
        let asked = self.lock_asked.entry(ask.request.txn).or_insert((ask.step, now));
        if asked.0 != ask.step {
            *asked = (ask.step, now);
        }
        let waits = now - asked.1;
        assert!(waits < LONGEST_WAIT_MICROS, "waits in {:?}:\n{}", request.range, self.describe());
    }

    fn describe(&self) -> String {
        let lines: Vec<String> = self.nodes.iter().map(|node| node.process.describe()).collect();
        lines.join("\n")
    }

    /// Splits the range of a commit that comes, if that is due: nobody who asks knows of it.
    fn split_under(&mut self, request: &Request, every: u64) {
        let Ask::Commit(CommitAsk { writes, .. }) = &request.ask else { return };
        self.commits += 1;
        let Some(at) = writes.last().map(|write| write.span().start) else { return };
        let ranges = self.nodes[0].process.ranges();
        let starts = ranges.iter().any(|(range, _)| range.span.start == at);
        if self.commits.is_multiple_of(every) && !starts && ranges.len() < MOST_RANGES {
            let newest = ranges.iter().map(|(range, _)| range.id.0).max().unwrap_or(0);
            self.split(&at, RangeId(newest + 1));
        }
    }

    /// Splits whatever range has the key.
    fn split(&mut self, at: &Bytes, right: RangeId) {
        let ranges = self.nodes[0].process.ranges();
        let has = ranges.into_iter().find(|(range, _)| range.span.contains(at));
        let (range, _) = has.expect("ranges have all keys");
        let ask = Ask::Split(Split { at: at.clone(), right });
        let number = self.request(NodeId(1), Request { range: range.id, ask });
        self.answers.remove(&number);
        while !self.nodes[0].process.serves(right) {
            self.nodes[0].process.tick().expect("nothing fails");
            self.settle();
        }
    }
}

impl Transport for LiveCluster {
    fn ask(
        &self,
        node: NodeId,
        request: &Request,
        patience: Duration,
        stop: &AtomicBool,
    ) -> Option<Reply> {
        self.announce();
        let mut inner = self.inner.lock();
        if let Some(every) = self.options.split_at_commits {
            inner.split_under(request, every);
        }
        inner.complain(request, self.clock.now_micros());
        if self.options.gc_window_micros.is_some() {
            // It passes also while nobody waits.
            inner.pass(self.clock.now_micros());
        }
        let number = inner.request(node, request.clone());
        self.changed.notify_all();
        let until = self.clock.now_micros() + patience.as_micros() as u64;
        loop {
            if let Some(Answered { times, answer, .. }) = inner.answers.remove(&number) {
                return Some(Reply { times, answer });
            }
            let now = self.clock.now_micros();
            if now > until || stop.load(Ordering::Relaxed) {
                inner.abandoned.insert(number);
                return None;
            }
            inner.pass(now);
            if !inner.answers.contains_key(&number) {
                self.changed.wait_for(&mut inner, Duration::from_millis(5));
            }
        }
    }

    fn tell(&self, node: NodeId, request: &Request) {
        let mut inner = self.inner.lock();
        let number = inner.request(node, request.clone());
        if inner.answers.remove(&number).is_none() {
            inner.abandoned.insert(number);
        }
        self.changed.notify_all();
    }

    fn pause(&self, time: Duration) {
        self.clock.sleep(time);
    }
}
