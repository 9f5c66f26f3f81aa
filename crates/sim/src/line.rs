//! How threads of clients ask: each through the baton that it has.
//!
//! ```text
//!   world    word ─────────►│              │◄─ Ask ── answer ──►│            │◄─ Done
//!   thread                  begin, get, ..  ask (waits)          put, .. commit
//! ```
//! A thread runs only while the world waits for it: it gets the baton with a word and gives it back
//! with what it says. So everything happens in one order, which the seed decides. Threads of one
//! process share a [`Line`]; each has its own baton.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use braid_cluster::{Reply, Router, Transport};
use braid_env::clock::Clock;
use braid_env::turns::take_turns;
use braid_range::{NodeId, Request};
use braid_workload::history::record::Outcome;

/// The world's word to the thread.
pub(crate) enum Word {
    /// Run a transaction; values that it writes begin with this one.
    Begin(u64),
    /// Look at everything of a number.
    Look(u32),
    /// Make the catalog.
    Found,
    /// Keep the process's schema lease, until it is to end.
    Keep,
    /// Bring to their end what others have left.
    Tidy,
    /// The answer to the question, if there was one.
    Reply(Option<Reply>),
}

/// The thread's word to the world.
pub(crate) enum Said {
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
    /// It has seen what must not be.
    Wrong(String),
    /// It has panicked.
    Gone,
}

/// From one announcement to the next.
const ANNOUNCE_MICROS: u64 = 1_000_000;
/// Who waits for another thread of its process looks again after so long.
const TURN: Duration = Duration::from_millis(1);

/// How a thread and the world talk.
pub(crate) struct Baton {
    pub(crate) words: Receiver<Word>,
    pub(crate) said: Sender<Said>,
}

thread_local! {
    static OWN: RefCell<Option<Rc<Baton>>> = const { RefCell::new(None) };
}

impl Baton {
    /// It is this thread's from now on.
    pub(crate) fn take(self) -> Rc<Baton> {
        let own = Rc::new(self);
        OWN.with(|place| *place.borrow_mut() = Some(own.clone()));
        take_turns(|| pause(TURN));
        own
    }

    /// Gives the baton back, and waits for it. `None`: the world is over.
    pub(crate) fn say(&self, said: Said) -> Option<Word> {
        self.said.send(said).ok()?;
        self.words.recv().ok()
    }
}

fn own() -> Option<Rc<Baton>> {
    OWN.with(|place| place.borrow().clone())
}

/// Says something, and waits for the world's word. Without one the thread is unwound: whoever asks
/// on and on would never end.
fn say(said: Said) -> Option<Word> {
    if std::thread::panicking() {
        return None;
    }
    match own()?.say(said) {
        None => std::panic::resume_unwind(Box::new(())),
        word => word,
    }
}

/// This thread rests for so long.
pub(crate) fn pause(time: Duration) {
    say(Said::Pause(time));
}

/// This thread has seen what must not be.
pub(crate) fn wrong(what: String) {
    say(Said::Wrong(what));
}

/// See the [module's page](self).
pub(crate) struct Line {
    nodes: u64,
    clock: Arc<dyn Clock>,
    /// Says now and then who is running, also while it waits for an answer.
    router: OnceLock<Weak<Router>>,
    announced_at: AtomicU64,
    announces: AtomicBool,
}

impl Line {
    pub(crate) fn new(nodes: u64, clock: Arc<dyn Clock>) -> Line {
        let (announced_at, announces) = (AtomicU64::new(0), AtomicBool::new(false));
        Line { nodes, clock, router: OnceLock::new(), announced_at, announces }
    }

    /// Whose line it is.
    pub(crate) fn belongs_to(&self, router: &Arc<Router>) {
        let _ = self.router.set(Arc::downgrade(router));
    }

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
}

impl Transport for Line {
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
        match say(Said::Ask { node, request: request.clone(), patience })? {
            Word::Reply(reply) => reply,
            _ => unreachable!("who has asked gets an answer"),
        }
    }

    fn nodes(&self) -> Vec<NodeId> {
        (1..=self.nodes).map(NodeId).collect()
    }

    /// Everybody is, now and then.
    fn nearest(&self, nodes: &[NodeId]) -> Option<NodeId> {
        let place = self.clock.now_micros() as usize % nodes.len().max(1);
        nodes.get(place).copied()
    }

    fn tell(&self, node: NodeId, request: &Request) {
        if let Some(own) = own().filter(|_| !std::thread::panicking()) {
            // Nobody listens if the world is over.
            let _ = own.said.send(Said::Tell { node, request: request.clone() });
        }
    }

    fn pause(&self, time: Duration) {
        pause(time);
    }
}
