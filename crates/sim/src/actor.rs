//! A client with a thread: its transactions are those of `kv`, over a router.
//!
//! Here is the world's side of it; [`crate::line`] says how both talk, [`crate::work`] what the
//! thread does.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use braid_cluster::Reply;
use braid_env::random::Random;
use braid_env::tasks::spawn_thread;
use braid_range::{Answer, AnswerTimes, Ask, CommitAsk, NodeId, Request, TxnId};
use braid_workload::history::record::{Op, Outcome, Transaction};
use parking_lot::Mutex;

use crate::client::Wish;
use crate::desk::Desk;
use crate::gateways::task_of;
use crate::line::{Baton, Said, Word};
use crate::plan::Plan;
use crate::work::work;

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
    /// It keeps a lease: others do not wait for its end.
    keeps: bool,
    /// What it shares with the other threads of its process.
    pub(crate) desk: Arc<Desk>,
    /// What the transaction has done so far.
    ops: Arc<Mutex<Vec<Op>>>,
    /// What nobody waits for the answer of.
    tells: Vec<(NodeId, Request)>,
    /// Under which names the transaction was to be committed.
    names: Vec<TxnId>,
}
/// Of the numbers of coordinators that die and have successors these bits are the client's.
const CLIENT_BITS: u32 = 12;

/// The number of the coordinator of a client, after so many others.
pub(crate) fn coordinator_of(id: u64, dead: u64) -> u64 {
    dead << CLIENT_BITS | id
}

impl Actor {
    /// The client with this number, after so many others.
    pub(crate) fn new(
        (id, dead): (u64, u64),
        desk: Arc<Desk>,
        plan: &Plan,
        mut random: Random,
    ) -> Actor {
        let (words, inbox) = channel();
        let (outbox, said) = channel();
        let gone = outbox.clone();
        let (plan, seed) = (plan.clone(), random.next_u64());
        let (ops, shared) = (Arc::new(Mutex::default()), desk.clone());
        let done = Arc::clone(&ops);
        let task = task_of(&plan, (id, dead));
        let thread = spawn_thread("sim-client", move || {
            let baton = Baton { words: inbox, said: outbox };
            let run = move || work(&shared, (&plan, task), baton, seed, &done);
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
            number: id << 32 | dead << 20,
            began: 0,
            count: dead << 16,
            idle: true,
            keeps: false,
            desk,
            ops,
            tells: Vec::new(),
            names: Vec::new(),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.idle || self.keeps
    }

    /// Keeps its process's lease from now on, until that is to end.
    pub(crate) fn keep(&mut self, now: u64) -> Wish {
        self.keeps = true;
        self.start(now, Word::Keep)
    }

    /// Whether it keeps a lease.
    pub(crate) fn is_keeper(&self) -> bool {
        self.keeps
    }

    /// Makes what all transactions need.
    pub(crate) fn found(&mut self, now: u64) -> Wish {
        self.start(now, Word::Found)
    }

    /// It gets no word any more; its thread ends.
    pub(crate) fn hang_up(&mut self) {
        self.words = None;
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
                (self.idle, self.keeps) = (true, false);
                let ops = self.ops.lock().clone();
                let transaction = Transaction { began: self.began, ended: now, outcome, ops };
                match why {
                    Some(why) => Wish::Failed(transaction, why),
                    None => Wish::Done(transaction, None),
                }
            }
            Said::Wrong(what) => Wish::Wrong(what),
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

/// What an answer was, and what the clock of the node showed.
pub(crate) fn reply(times: AnswerTimes, answer: Answer) -> Option<Reply> {
    Some(Reply { times, answer })
}
