//! What each thread has asked of far sides, and what stops it.
//!
//! A transaction counts what all its readers have asked together. Several may read for it at the
//! same time, each on a thread of its own; what one of them has asked is what its thread's tally
//! has grown by.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::spans::Work;

/// Requests, and what was looked at for their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests.
    pub requests: u64,
    /// What of them went to other nodes.
    pub network: Network,
    /// What was looked at.
    pub work: Work,
}

/// What went to other nodes, and came from there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Calls that were sent.
    pub calls: u64,
    /// Bytes of them and of their answers, as they are on the wire.
    pub bytes: u64,
    /// Nanoseconds in which an answer was waited for. What the other node needed for it, and its
    /// waiting for others, are among them.
    pub nanos: u64,
}

impl Network {
    /// What has come since then.
    #[must_use]
    pub fn since(self, before: Network) -> Network {
        Network {
            calls: self.calls - before.calls,
            bytes: self.bytes - before.bytes,
            nanos: self.nanos - before.nanos,
        }
    }

    /// What both are.
    #[must_use]
    pub fn plus(self, other: Network) -> Network {
        Network {
            calls: self.calls + other.calls,
            bytes: self.bytes + other.bytes,
            nanos: self.nanos + other.nanos,
        }
    }
}

impl Tally {
    /// Of the calling thread, since it began. Only differences mean something.
    pub fn here() -> Tally {
        HERE.get()
    }

    /// What has come since then.
    #[must_use]
    pub fn since(self, before: Tally) -> Tally {
        Tally {
            requests: self.requests - before.requests,
            network: self.network.since(before.network),
            work: self.work.since(before.work),
        }
    }

    /// What both are.
    #[must_use]
    pub fn plus(self, other: Tally) -> Tally {
        Tally {
            requests: self.requests + other.requests,
            network: self.network.plus(other.network),
            work: self.work.plus(other.work),
        }
    }

    /// Something goes to another node, or has come from there: said by far sides that send.
    pub fn add_network(network: Network) {
        let tally = HERE.get();
        HERE.set(Tally { network: tally.network.plus(network), ..tally });
    }

    /// A range is asked: said by far sides that have several.
    pub fn touch(range: u64) {
        TOUCHED.with_borrow_mut(|touched| {
            if let Some(touched) = touched.as_mut().filter(|t| t.last() != Some(&range)) {
                touched.push(range);
            }
        });
    }

    /// Has the ranges noted that the calling thread asks, if there is a list for them; the list so
    /// far. What is asked for nobody, without a list, is not noted.
    pub(crate) fn note_touched(list: Option<Vec<u64>>) -> Option<Vec<u64>> {
        TOUCHED.replace(list)
    }

    /// When this is raised, whoever waits for the answer to what the calling thread asks may stop
    /// waiting, if nothing is changed by that. For far sides that wait.
    pub fn stop_flag() -> Option<Arc<AtomicBool>> {
        STOP.with_borrow(Clone::clone)
    }

    /// Has a flag stop the calling thread as long as the answer lives: what it asks for, and
    /// transactions that it begins without a flag of their own.
    pub fn stop_by(flag: &Arc<AtomicBool>) -> StopsBy {
        StopsBy { before: STOP.replace(Some(flag.clone())), here: PhantomData }
    }

    pub(crate) fn add_request() {
        let tally = HERE.get();
        HERE.set(Tally { requests: tally.requests + 1, ..tally });
    }

    pub(crate) fn add_work(work: Work) {
        let tally = HERE.get();
        HERE.set(Tally { work: tally.work.plus(work), ..tally });
    }
}

/// What stops a thread, until this is dropped: then what has stopped it before.
pub struct StopsBy {
    before: Option<Arc<AtomicBool>>,
    /// Of this thread.
    here: PhantomData<*const ()>,
}

impl Drop for StopsBy {
    fn drop(&mut self) {
        STOP.set(self.before.take());
    }
}

thread_local! {
    static HERE: Cell<Tally> = const { Cell::new(Tally {
        requests: 0,
        network: Network { calls: 0, bytes: 0, nanos: 0 },
        work: Work { entries: 0, tombstones: 0, blocks: 0, blocks_from_disk: 0, bytes: 0 },
    }) };
    static TOUCHED: RefCell<Option<Vec<u64>>> = const { RefCell::new(None) };
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}
