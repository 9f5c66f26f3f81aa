//! What each thread has asked of far sides, and what stops it.
//!
//! A transaction counts what all its readers have asked together. Several may read for it at the
//! same time, each on a thread of its own; what one of them has asked is what its thread's tally
//! has grown by.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

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

/// What all readers of a transaction have asked together.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) gets: AtomicU64,
    pub(crate) rows_scanned: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) span_deletes: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) sent: Sent,
    pub(crate) participants: AtomicU64,
    pub(crate) commit_nanos: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) tombstones: AtomicU64,
    pub(crate) blocks: AtomicU64,
    pub(crate) blocks_from_disk: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) lock_waits: AtomicU64,
    pub(crate) lock_wait_nanos: AtomicU64,
}

/// What was asked of ranges and of other nodes.
#[derive(Default)]
pub(crate) struct Sent {
    calls: AtomicU64,
    bytes: AtomicU64,
    nanos: AtomicU64,
    ranges: Mutex<BTreeSet<u64>>,
    /// How many there are, for who does not want to lock them.
    pub(crate) touched: AtomicU64,
}

impl Sent {
    pub(crate) fn network(&self) -> Network {
        Network {
            calls: self.calls.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            nanos: self.nanos.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn begin_touching(&self) {
        let mut all = self.ranges.lock();
        all.clear();
        self.touched.store(0, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, more: Network, ranges: Vec<u64>) {
        if more != Network::default() {
            self.calls.fetch_add(more.calls, Ordering::Relaxed);
            self.bytes.fetch_add(more.bytes, Ordering::Relaxed);
            self.nanos.fetch_add(more.nanos, Ordering::Relaxed);
        }
        if !ranges.is_empty() {
            let mut all = self.ranges.lock();
            all.extend(ranges);
            self.touched.store(all.len() as u64, Ordering::Relaxed);
        }
    }
}

impl Counts {
    /// Somebody else had to be waited for, if it took any time.
    pub(crate) fn add_wait(&self, nanos: u64) {
        if nanos > 0 {
            self.lock_waits.fetch_add(1, Ordering::Relaxed);
            self.lock_wait_nanos.fetch_add(nanos, Ordering::Relaxed);
        }
    }

    /// What was looked at for an answer.
    pub(crate) fn add_work(&self, work: Work) {
        Tally::add_work(work);
        let add = |counter: &AtomicU64, more: u64| {
            if more > 0 {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        };
        add(&self.entries, work.entries);
        add(&self.tombstones, work.tombstones);
        add(&self.blocks, work.blocks);
        add(&self.blocks_from_disk, work.blocks_from_disk);
        add(&self.bytes, work.bytes);
    }

    pub(crate) fn work(&self) -> Work {
        Work {
            entries: self.entries.load(Ordering::Relaxed),
            tombstones: self.tombstones.load(Ordering::Relaxed),
            blocks: self.blocks.load(Ordering::Relaxed),
            blocks_from_disk: self.blocks_from_disk.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}
