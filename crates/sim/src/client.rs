//! A client: one transaction after the other, each followed until its outcome is known.
//!
//! ```text
//!   read some spans now -> T        read others at T        commit what follows from them
//! ```
//! Whoever gets no answer asks another node, for a commit under the same name. A few give up
//! instead: then nobody knows whether the transaction has happened.

use braid_env::random::Random;
use braid_kv::Reads;
use braid_lsm::{CommitTs, KeySpan};
use braid_range::{
    Answer, Ask, CommitAsk, NodeId, RangeDescriptor, RangeId, Request, TxnId, Write,
};
use braid_workload::history::record::{Key, Op, Outcome, Transaction};
use bytes::Bytes;

use crate::data;
use crate::plan::{Plan, Sabotage};

/// What a transaction does with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Look(Key),
    Append(Key),
    Erase(u32),
    /// A register, after a look at it or not.
    Overwrite(Key, bool),
}

impl Step {
    /// What it has to read.
    pub(crate) fn reads(self) -> Vec<Key> {
        match self {
            Step::Look(key) | Step::Append(key) | Step::Overwrite(key, true) => vec![key],
            Step::Erase(n) => vec![Key::List(n), Key::Trail(n)],
            Step::Overwrite(_, false) => Vec::new(),
        }
    }

    /// The number whose things it touches.
    pub(crate) fn number(self) -> u32 {
        match self {
            Step::Erase(n) => n,
            Step::Look(key) | Step::Append(key) | Step::Overwrite(key, _) => match key {
                Key::List(n) | Key::Trail(n) | Key::Register(n) => n,
            },
        }
    }

    /// All that it reads or writes.
    pub(crate) fn touches(self) -> Vec<Key> {
        match self {
            Step::Overwrite(key, false) => vec![key],
            other => other.reads(),
        }
    }
}

/// Where a transaction is.
#[derive(Debug)]
enum Stage {
    Idle,
    /// Of so many keys the rows are not there yet.
    Reading {
        first: bool,
    },
    Committing,
}

/// What a client wants to be done.
pub(crate) enum Wish {
    /// To be sent to a node; if there is no answer, the client looks again.
    Send { node: NodeId, number: u64, request: Request, patience_micros: u64 },
    /// The transaction is over. If nobody knows how, this is what could be asked again.
    Done(Transaction, Option<Ask>),
    /// The transaction has not happened, and why.
    Failed(Transaction, String),
    /// Some time is to pass, and then the client looks again.
    Rest { number: u64, micros: u64 },
    /// The client itself is broken.
    Wrong(String),
}

/// What a transaction is going to do.
pub(crate) fn steps(random: &mut Random, plan: &Plan) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..random.between(1, 3) {
        let n = random.below(plan.keys) as u32;
        let step = match random.below(10) {
            0..=1 => Step::Look(Key::List(n)),
            2 => Step::Look(Key::Register(n)),
            3..=6 => Step::Append(Key::List(n)),
            7 => Step::Erase(n),
            8 => Step::Overwrite(Key::Register(n), true),
            _ => Step::Overwrite(Key::Register(n), false),
        };
        // Each key once: what a transaction sees of itself is its coordinator's business.
        let touched = |step: &Step| match *step {
            Step::Look(key) | Step::Append(key) | Step::Overwrite(key, _) => key,
            Step::Erase(n) => Key::List(n),
        };
        if !steps.iter().any(|other| touched(other) == touched(&step)) {
            steps.push(step);
        }
    }
    steps
}

/// See the [module's page](self).
pub(crate) struct Client {
    id: u64,
    random: Random,
    plan: Plan,
    steps: Vec<Step>,
    stage: Stage,
    began: u64,
    /// Of the question that is open. Its answers have it.
    pub(crate) number: u64,
    read_at: CommitTs,
    rows: Vec<(Bytes, Bytes)>,
    ops: Vec<Op>,
    ask: Option<Ask>,
    node: u64,
    /// The ranges that it knows of.
    known: Vec<RangeDescriptor>,
    /// The one that was asked last.
    asked: RangeId,
    gives_up: bool,
}

impl Client {
    pub(crate) fn new(id: u64, plan: &Plan, range: RangeDescriptor, random: Random) -> Client {
        Client {
            id,
            random,
            plan: plan.clone(),
            steps: Vec::new(),
            stage: Stage::Idle,
            began: 0,
            number: id << 32,
            read_at: CommitTs::ZERO,
            rows: Vec::new(),
            ops: Vec::new(),
            ask: None,
            node: 1 + id % plan.nodes,
            known: vec![range],
            asked: RangeId(1),
            gives_up: false,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// Begins a transaction.
    pub(crate) fn begin(&mut self, now: u64) -> Wish {
        let steps = steps(&mut self.random, &self.plan);
        let random = &mut self.random;
        self.gives_up = random.chance(1, 30);
        if random.chance(1, 6) {
            self.node = random.between(1, self.plan.all_nodes());
        }
        self.start(now, steps)
    }

    /// Begins a transaction that looks at everything of a number.
    pub(crate) fn begin_last(&mut self, now: u64, n: u32) -> Wish {
        self.gives_up = false;
        // The one that was asked last may have no replica of its range, nor know where one is.
        self.node = 1 + self.node % self.plan.all_nodes();
        let keys = [Key::List(n), Key::Trail(n), Key::Register(n)];
        self.start(now, keys.map(Step::Look).to_vec())
    }

    fn start(&mut self, now: u64, steps: Vec<Step>) -> Wish {
        (self.began, self.steps) = (now, steps);
        (self.rows, self.ops) = (Vec::new(), Vec::new());
        let keys: Vec<Key> = self.steps.iter().flat_map(|step| step.reads()).collect();
        if keys.is_empty() {
            return self.commit(now);
        }
        // Some now, the others at the same time in a second request.
        let some = 1 + self.random.below(keys.len() as u64) as usize;
        let spans = keys[..some].iter().map(|key| data::span(*key)).collect();
        self.stage = Stage::Reading { first: true };
        self.pose(Ask::Read { spans, at: None, bytes: 1 << 20 })
    }

    /// A new question.
    fn pose(&mut self, ask: Ask) -> Wish {
        self.number += 1;
        self.ask = Some(ask);
        self.send()
    }

    fn send(&mut self) -> Wish {
        let ask = self.ask.clone().expect("a question is open");
        let patience_micros = self.random.between(200_000, 1_500_000);
        let range = self.range().unwrap_or_else(|| self.first_range());
        self.asked = range;
        let request = Request { range, ask };
        let (node, number) = (NodeId(self.node), self.number);
        Wish::Send { node, number, request, patience_micros }
    }

    /// The range that has all keys of the transaction, as far as is known.
    fn range(&self) -> Option<RangeId> {
        let asked: Vec<KeySpan> = match self.ask.as_ref()? {
            Ask::Commit(CommitAsk { reads, writes, .. }) => {
                reads.spans.iter().cloned().chain(writes.iter().map(Write::span)).collect()
            }
            Ask::Read { spans, .. } => spans.clone(),
            _ => return None,
        };
        let own = self.steps.iter().flat_map(|step| step.reads()).map(data::span);
        let all: Vec<KeySpan> = asked.into_iter().chain(own).collect();
        let has = |range: &&RangeDescriptor| all.iter().all(|span| range.span.covers(span));
        let having = self.known.iter().filter(has);
        having.max_by_key(|range| range.generation).map(|range| range.id)
    }

    /// The range that has the first key: what has become of a commit of keys that lie in several
    /// ranges now, all of these know.
    fn first_range(&self) -> RangeId {
        let first = match &self.ask {
            Some(Ask::Commit(CommitAsk { writes, .. })) => writes.first().map(Write::span),
            _ => None,
        };
        let has = |range: &&RangeDescriptor| {
            first.as_ref().is_some_and(|first| range.span.contains(&first.start))
        };
        let having = self.known.iter().filter(has).max_by_key(|range| range.generation);
        having.map_or(RangeId(1), |range| range.id)
    }

    /// Ranges are not what they were thought to be.
    fn learn(&mut self, now: u64, told: Vec<RangeDescriptor>) -> Option<Wish> {
        let before = self.range();
        for range in told {
            match self.known.iter_mut().find(|known| known.id == range.id) {
                Some(known) if known.generation < range.generation => *known = range,
                Some(_) => {}
                None => self.known.push(range),
            }
        }
        match self.range() {
            // Whoever was asked never had these keys together, perhaps.
            None if self.first_range() != self.asked => Some(self.send()),
            // It would have several participants, which these clients cannot do.
            None => Some(self.done(now, Outcome::Aborted)),
            after if after != before => Some(self.send()),
            _ => None,
        }
    }

    fn commit(&mut self, now: u64) -> Wish {
        let mut writes: Vec<Write> = Vec::new();
        // A value that nobody else writes, and that can be told from others.
        let mut count = 0;
        let (id, number) = (self.id, self.number);
        let mut fresh = || {
            count += 1;
            (id << 40) | (number & 0xFFFF_FFFF) << 8 | count
        };
        for step in self.steps.clone() {
            let keys = step.reads();
            self.ops.extend(keys.iter().flat_map(|key| data::seen(&self.rows, *key)));
            let before = |key| data::values(&self.rows, key);
            match step {
                Step::Look(_) => {}
                Step::Append(key) => {
                    let value = fresh();
                    writes.extend(data::append(key, &before(key), value));
                    self.ops.push(Op::Append { key, value });
                }
                Step::Overwrite(key, _) => {
                    let value = fresh();
                    writes.extend(data::write(key, value));
                    self.ops.push(Op::Write { key, value });
                }
                Step::Erase(n) => {
                    let (key, trail, value) = (Key::List(n), Key::Trail(n), fresh());
                    writes.extend(data::append(trail, &before(trail), value));
                    writes.extend(data::erase(key, value));
                    self.ops.push(Op::Append { key: trail, value });
                    self.ops.push(Op::Erase { key, value });
                }
            }
        }
        if writes.is_empty() {
            return self.done(now, Outcome::Committed);
        }
        let reads: Vec<KeySpan> =
            self.steps.iter().flat_map(|step| step.reads()).map(data::span).collect();
        let (txn, read_at) = (self.name(now), self.read_at);
        self.stage = Stage::Committing;
        let reads = Reads { points: Vec::new(), spans: reads };
        let (locks, not_after, not_before, anchor) = (None, None, CommitTs::ZERO, None);
        self.pose(Ask::Commit(CommitAsk {
            txn,
            read_at,
            reads,
            locks,
            not_after,
            not_before,
            writes,
            anchor,
        }))
    }

    /// Names the commit.
    fn name(&mut self, now: u64) -> TxnId {
        let began = CommitTs(braid_env::clock::Hlc::from_micros(now));
        TxnId { began, number: self.id << 40 | self.random.below(1 << 40) }
    }

    fn done(&mut self, now: u64, outcome: Outcome) -> Wish {
        self.stage = Stage::Idle;
        let ask = self.ask.take().filter(|_| outcome == Outcome::Unknown);
        // Nobody waits for answers to it.
        self.number += 1;
        let ops = std::mem::take(&mut self.ops);
        Wish::Done(Transaction { began: self.began, ended: now, outcome, ops }, ask)
    }

    /// Asks for what somebody gave up, until it is answered.
    pub(crate) fn find_out(&mut self, ask: Ask) -> Wish {
        self.gives_up = false;
        self.steps = Vec::new();
        self.stage = Stage::Committing;
        self.pose(ask)
    }

    /// There was no answer.
    pub(crate) fn impatient(&mut self, now: u64) -> Wish {
        if matches!(self.stage, Stage::Committing) {
            if self.gives_up {
                return self.done(now, Outcome::Unknown);
            }
            if self.plan.sabotage == Some(Sabotage::NewNames) {
                let name = self.name(now);
                if let Some(Ask::Commit(CommitAsk { txn, read_at, .. })) = &mut self.ask {
                    (*txn, *read_at) = (name, name.began);
                }
            }
        }
        self.node = 1 + self.random.below(self.plan.all_nodes());
        self.send()
    }

    /// An answer to the open question.
    pub(crate) fn answer(&mut self, now: u64, answer: Answer) -> Option<Wish> {
        match answer {
            Answer::Rows { at, rows, .. } => {
                self.rows.extend(rows);
                self.read_at = at;
                self.read_on(now, at)
            }
            Answer::Committed { .. } => Some(self.done(now, Outcome::Committed)),
            Answer::Conflict(_) => Some(self.done(now, Outcome::Aborted)),
            Answer::Again if self.plan.sabotage == Some(Sabotage::AgainIsDone) => {
                let committing = matches!(self.stage, Stage::Committing);
                committing.then(|| self.done(now, Outcome::Committed))
            }
            Answer::WrongRange { known } => self.learn(now, known),
            Answer::NotHolder { try_node: Some(node) } if node.0 != self.node => {
                self.node = node.0;
                Some(self.send())
            }
            // The client's patience ends this: another node is asked then.
            _ => None,
        }
    }

    fn read_on(&mut self, now: u64, at: CommitTs) -> Option<Wish> {
        let Stage::Reading { first } = self.stage else { return None };
        let Some(Ask::Read { spans, .. }) = &self.ask else { return None };
        let keys: Vec<Key> = self.steps.iter().flat_map(|step| step.reads()).collect();
        if first && spans.len() < keys.len() {
            let spans = keys[spans.len()..].iter().map(|key| data::span(*key)).collect();
            self.stage = Stage::Reading { first: false };
            return Some(self.pose(Ask::Read { spans, at: Some(at), bytes: 1 << 20 }));
        }
        Some(self.commit(now))
    }
}
