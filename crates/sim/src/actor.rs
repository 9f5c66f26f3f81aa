//! A client with a thread: its transactions are those of `kv`, over a router.
//!
//! ```text
//!   world    begin ────────►│               │◄─ Ask ── answer ──►│             │◄─ Done
//!   thread                  begin, get, ..  ask (waits)          put, .. commit
//! ```
//!
//! The thread runs only while the world waits for it: it gets the baton with an answer and gives it
//! back with the next question. So everything happens in one order, which the seed decides.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use braid_cluster::{Reply, Router, RouterOptions, Transport};
use braid_env::clock::{Clock, Hlc};
use braid_env::fs::MemFs;
use braid_env::memory::Pool;
use braid_env::random::Random;
use braid_env::tasks::spawn_thread;
use braid_kv::{
    Conflict, Coordinator, CoordinatorOptions, Isolation, KvError, KvResult, LockMode, ScanOptions,
    Txn, TxnOptions, Wait,
};
use braid_range::{
    Answer, AnswerTimes, Ask, CommitAsk, NodeId, RangeDescriptor, Recalls, Request, TxnId, Write,
};
use braid_workload::history::record::{Key, Op, Outcome, Transaction};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::client::{Step, Wish, steps};
use crate::clock::NodeClock;
use crate::data;
use crate::plan::Plan;

/// The world's word to the thread.
enum Word {
    /// Run a transaction; values that it writes begin with this one.
    Begin(u64),
    /// Look at everything of a number.
    Look(u32),
    /// Bring to their end what others have left.
    Tidy,
    /// The answer to the question, if there was one.
    Reply(Option<Reply>),
}

/// The thread's word to the world.
enum Said {
    Ask {
        node: NodeId,
        request: Request,
        patience: Duration,
    },
    /// Goes on at once.
    Tell {
        node: NodeId,
        request: Request,
    },
    Pause(Duration),
    Done {
        outcome: Outcome,
        why: Option<String>,
    },
    /// It has panicked.
    Gone,
}

/// See the [module's page](self).
pub(crate) struct Actor {
    id: u64,
    words: Option<Sender<Word>>,
    said: Receiver<Said>,
    thread: Option<JoinHandle<()>>,
    /// Of the question that is open. Its answers have it.
    pub(crate) number: u64,
    began: u64,
    count: u64,
    idle: bool,
    /// What the transaction has done so far.
    ops: Arc<Mutex<Vec<Op>>>,
    /// What nobody waits for the answer of.
    tells: Vec<(NodeId, Request)>,
    /// Under which names the transaction was to be committed.
    names: Vec<TxnId>,
}

/// How the thread's questions leave it.
struct Baton {
    nodes: u64,
    words: Mutex<Receiver<Word>>,
    said: Sender<Said>,
    clock: Arc<dyn Clock>,
    /// Says now and then who is running, also while it waits for an answer.
    router: OnceLock<Weak<Router>>,
    announced_at: AtomicU64,
    announces: AtomicBool,
}

/// From one announcement to the next.
const ANNOUNCE_MICROS: u64 = 1_000_000;

/// Of the numbers of coordinators that die and have successors these bits are the client's.
const CLIENT_BITS: u32 = 12;

impl Actor {
    /// The client with this number, after so many others.
    pub(crate) fn new(
        (id, dead): (u64, u64),
        plan: &Plan,
        range: RangeDescriptor,
        world: Arc<AtomicU64>,
        mut random: Random,
    ) -> Actor {
        let (words, inbox) = channel();
        let (outbox, said) = channel();
        let clock: Arc<dyn Clock> = Arc::new(NodeClock::new(world));
        let gone = outbox.clone();
        let baton = Arc::new(Baton {
            nodes: plan.all_nodes(),
            words: Mutex::new(inbox),
            said: outbox,
            clock,
            router: OnceLock::new(),
            announced_at: AtomicU64::new(0),
            announces: AtomicBool::new(false),
        });
        let (plan, seed) = (plan.clone(), random.next_u64());
        let (ops, coordinator) = (Arc::new(Mutex::default()), dead << CLIENT_BITS | id);
        let done = Arc::clone(&ops);
        let thread = spawn_thread("sim-client", move || {
            let run = || work(coordinator, &plan, range, &baton, seed, &done);
            let run = std::panic::AssertUnwindSafe(run);
            if std::panic::catch_unwind(run).is_err() {
                // Nobody listens if the world is over, too.
                let _ = gone.send(Said::Gone);
            }
        });
        Actor {
            id,
            words: Some(words),
            said,
            thread: Some(thread),
            number: id << 32 | dead << 24,
            began: 0,
            count: dead << 16,
            idle: true,
            ops,
            tells: Vec::new(),
            names: Vec::new(),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.idle
    }

    pub(crate) fn begin(&mut self, now: u64) -> Wish {
        self.count += 1;
        let first = (self.id << 40) | self.count << 8;
        self.start(now, Word::Begin(first))
    }

    /// Looks at everything of a number, until it has seen it.
    pub(crate) fn begin_last(&mut self, now: u64, n: u32) -> Wish {
        self.start(now, Word::Look(n))
    }

    /// Brings to their end what others have left half done.
    pub(crate) fn tidy(&mut self, now: u64) -> Wish {
        self.start(now, Word::Tidy)
    }

    fn start(&mut self, now: u64, word: Word) -> Wish {
        (self.began, self.idle) = (now, false);
        self.names.clear();
        self.ops.lock().clear();
        self.go_on(now, word)
    }

    /// It dies in the middle of its transaction: that one, and the names under which it may have
    /// happened.
    pub(crate) fn die(self, now: u64) -> (Transaction, Vec<TxnId>) {
        let ops = self.ops.lock().clone();
        let outcome = Outcome::Unknown;
        let names = self.names.clone();
        (Transaction { began: self.began, ended: now, outcome, ops }, names)
    }

    /// What was sent along, and is not answered.
    pub(crate) fn take_tells(&mut self) -> Vec<(NodeId, Request)> {
        std::mem::take(&mut self.tells)
    }

    /// An answer to the open question, or none.
    pub(crate) fn reply(&mut self, now: u64, reply: Option<Reply>) -> Wish {
        self.go_on(now, Word::Reply(reply))
    }

    /// Gives the thread the baton, and waits until it gives it back.
    fn go_on(&mut self, now: u64, word: Word) -> Wish {
        // A thread that is gone has said so.
        let _ = self.words.as_ref().expect("the world goes on").send(word);
        self.number += 1;
        let number = self.number;
        let said = loop {
            match self.said.recv().unwrap_or(Said::Gone) {
                Said::Tell { node, request } => self.tells.push((node, request)),
                said => break said,
            }
        };
        match said {
            Said::Tell { .. } => unreachable!("it does not give the baton back"),
            Said::Ask { node, request, patience } => {
                if let Ask::Commit(CommitAsk { txn, .. }) = &request.ask {
                    self.names.push(*txn);
                }
                let patience_micros = patience.as_micros() as u64;
                Wish::Send { node, number, request, patience_micros }
            }
            Said::Pause(time) => Wish::Rest { number, micros: time.as_micros() as u64 },
            Said::Done { outcome, why } => {
                self.idle = true;
                let ops = self.ops.lock().clone();
                let transaction = Transaction { began: self.began, ended: now, outcome, ops };
                match why {
                    Some(why) => Wish::Failed(transaction, why),
                    None => Wish::Done(transaction, None),
                }
            }
            Said::Gone => Wish::Wrong(format!("client {} has panicked", self.id)),
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.words = None;
        if let Some(thread) = self.thread.take() {
            // What it has to say of its end was said.
            let _ = thread.join();
        }
    }
}

impl Baton {
    fn announce(&self) {
        // On a node it has a thread of its own; here it asks like everything else.
        if self.announces.swap(true, Ordering::Relaxed) {
            return;
        }
        self.announce_if_due();
        self.announces.store(false, Ordering::Relaxed);
    }

    fn announce_if_due(&self) {
        let (now, last) = (self.clock.now_micros(), self.announced_at.load(Ordering::Relaxed));
        if last + ANNOUNCE_MICROS < now
            && let Some(router) = self.router.get().and_then(Weak::upgrade)
        {
            self.announced_at.store(now, Ordering::Relaxed);
            router.announce();
        }
    }

    /// Gives the baton back, and waits for it. `None`: the world is over.
    fn say(&self, said: Said) -> Option<Word> {
        self.said.send(said).ok()?;
        self.words.lock().recv().ok()
    }
}

impl Transport for Baton {
    fn ask(
        &self,
        node: NodeId,
        request: &Request,
        patience: Duration,
        _stop: &AtomicBool,
    ) -> Option<Reply> {
        if std::thread::panicking() {
            return None;
        }
        self.announce();
        match self.say(Said::Ask { node, request: request.clone(), patience }) {
            Some(Word::Reply(reply)) => reply,
            // Whoever asks on and on would never end: the thread is unwound.
            _ => std::panic::resume_unwind(Box::new(())),
        }
    }

    fn nodes(&self) -> Vec<NodeId> {
        (1..=self.nodes).map(NodeId).collect()
    }

    fn tell(&self, node: NodeId, request: &Request) {
        if !std::thread::panicking() {
            // Nobody listens if the world is over.
            let _ = self.said.send(Said::Tell { node, request: request.clone() });
        }
    }

    fn pause(&self, time: Duration) {
        if !std::thread::panicking() && self.say(Said::Pause(time)).is_none() {
            std::panic::resume_unwind(Box::new(()));
        }
    }
}

/// What the thread does.
fn work(
    coordinator: u64,
    plan: &Plan,
    range: RangeDescriptor,
    baton: &Arc<Baton>,
    seed: u64,
    ops: &Mutex<Vec<Op>>,
) {
    let fs = Arc::new(MemFs::new());
    let options = RouterOptions {
        home: None,
        coordinator,
        hlc: Arc::new(Hlc::new(baton.clock.clone())),
        wall: baton.clock.clone(),
        max_clock_offset_micros: plan.offset_micros,
        // Nobody gives up: what becomes of a commit is always found out.
        patience: Duration::from_secs(3_600),
        oldest_readable: Arc::default(),
        recalls: Recalls::default(),
        fs: fs.clone(),
        ranges: vec![range],
    };
    let router = Arc::new(Router::new(baton.clone(), options));
    let _ = baton.router.set(Arc::downgrade(&router));
    let own = CoordinatorOptions {
        fs,
        dir: Path::new("/").into(),
        engine: braid_lsm::Options::default(),
        memory: Pool::unlimited(),
        row_form: None,
    };
    let coordinator = Coordinator::over(router.clone(), own).expect("its disk is new");
    let mut random = Random::seeded(seed);
    let mut word = baton.words.lock().recv().ok();
    while let Some(task) = word {
        let run = match task {
            Word::Begin(value) => {
                router.housekeep();
                transaction(&coordinator, plan, &mut random, value, ops)
            }
            Word::Look(n) => {
                look(&coordinator, n, ops, baton);
                Ok(())
            }
            Word::Tidy => tidy(&router, &coordinator, plan, baton),
            Word::Reply(_) => return,
        };
        let (outcome, why) = match run {
            Ok(()) => (Outcome::Committed, None),
            Err(KvError::OutcomeUnknown(why)) => (Outcome::Unknown, Some(why)),
            Err(why) => (Outcome::Aborted, Some(why.to_string())),
        };
        word = baton.say(Said::Done { outcome, why });
    }
}

/// Some time passes, and what is old by then is brought to its end.
fn tidy(
    router: &Router,
    coordinator: &Arc<Coordinator>,
    plan: &Plan,
    baton: &Baton,
) -> KvResult<()> {
    let unused = Mutex::default();
    for _ in 0..3 {
        baton.pause(Duration::from_secs(4));
        // Ranges are learned of by asking for keys.
        (0..plan.keys as u32).for_each(|n| look(coordinator, n, &unused, baton));
        router.housekeep();
        router.recover()?;
    }
    Ok(())
}

/// Looks at everything of a number, until it has seen it.
fn look(coordinator: &Arc<Coordinator>, n: u32, ops: &Mutex<Vec<Op>>, baton: &Baton) {
    loop {
        ops.lock().clear();
        let seen = || -> KvResult<()> {
            let txn = coordinator.begin(TxnOptions { read_only: true, ..TxnOptions::default() })?;
            for key in [Key::List(n), Key::Trail(n), Key::Register(n)] {
                ops.lock().extend(data::seen(&rows(&txn, key)?, key));
            }
            txn.commit().map(drop)
        };
        match seen() {
            Ok(()) => return,
            Err(_) => baton.pause(Duration::from_millis(20)),
        }
    }
}

fn rows(txn: &Arc<Txn>, key: Key) -> KvResult<Vec<(Bytes, Bytes)>> {
    let mut scan = txn.scan(data::span(key), ScanOptions::default())?;
    let mut out = Vec::new();
    while let Some(row) = scan.next()? {
        out.push(row);
    }
    Ok(out)
}

fn write(txn: &Arc<Txn>, writes: Vec<Write>) -> KvResult<()> {
    for write in writes {
        match write {
            Write::Put(key, value) => txn.put(key, value)?,
            Write::Delete(key) => txn.delete(key)?,
            Write::DeleteSpan(span) => drop(txn.delete_span(&span)?),
        }
    }
    Ok(())
}

/// Locks all that there is of something, and sees its newest state from then on.
fn lock(txn: &Arc<Txn>, key: Key) -> KvResult<()> {
    loop {
        txn.begin_statement()?;
        match txn.lock_span(&data::span(key), LockMode::Exclusive, Wait::Block) {
            Err(KvError::Retry { conflict: Conflict::Written(_) | Conflict::WrittenSpan(_) }) => {}
            other => return other.map(drop),
        }
    }
}

/// One transaction, up to its commit. What fails is rolled back when it is dropped.
///
/// Some read and write without looking back: they lock all that they touch first, and only their
/// locks make them serializable.
fn transaction(
    coordinator: &Arc<Coordinator>,
    plan: &Plan,
    random: &mut Random,
    first: u64,
    ops: &Mutex<Vec<Op>>,
) -> KvResult<()> {
    let most = random.between(200, 3_000);
    let lock_timeout = random.chance(1, 2).then(|| Duration::from_millis(most));
    let batch = random.between(1, 8) as usize;
    let locks = random.chance(1, 3);
    let isolation = if locks { Isolation::ReadCommitted } else { Isolation::Serializable };
    let options = TxnOptions { lock_timeout, batch, isolation, ..TxnOptions::default() };
    let txn = coordinator.begin(options)?;
    let mut count = 0;
    let mut fresh = || {
        count += 1;
        first | count
    };
    let mut writes = false;
    for step in steps(random, plan) {
        let mut seen: Vec<(Bytes, Bytes)> = Vec::new();
        if locks {
            step.touches().into_iter().try_for_each(|key| lock(&txn, key))?;
        }
        for key in step.reads() {
            seen.extend(rows(&txn, key)?);
        }
        ops.lock().extend(step.reads().into_iter().flat_map(|key| data::seen(&seen, key)));
        let before = |key| data::values(&seen, key);
        writes |= !matches!(step, Step::Look(_));
        match step {
            Step::Look(_) => {}
            Step::Append(key) => {
                let value = fresh();
                write(&txn, data::append(key, &before(key), value))?;
                ops.lock().push(Op::Append { key, value });
            }
            Step::Overwrite(key, _) => {
                let value = fresh();
                write(&txn, data::write(key, value))?;
                ops.lock().push(Op::Write { key, value });
            }
            Step::Erase(n) => {
                let (key, trail, value) = (Key::List(n), Key::Trail(n), fresh());
                write(&txn, data::append(trail, &before(trail), value))?;
                write(&txn, data::erase(key, value))?;
                ops.lock().push(Op::Append { key: trail, value });
                ops.lock().push(Op::Erase { key, value });
            }
        }
    }
    if !writes && !locks && random.chance(1, 2) {
        txn.rollback();
        return Ok(());
    }
    txn.commit().map(drop)
}

/// What an answer was, and what the clock of the node showed.
pub(crate) fn reply(times: AnswerTimes, answer: Answer) -> Option<Reply> {
    Some(Reply { times, answer })
}
