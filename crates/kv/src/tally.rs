//! What each thread has asked of far sides.
//!
//! A transaction counts what all its readers have asked together. Several may read for it at the
//! same time, each on a thread of its own; what one of them has asked is what its thread's tally
//! has grown by.

use std::cell::Cell;

use crate::spans::Work;

/// Requests, and what was looked at for their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests.
    pub requests: u64,
    /// What was sent to other nodes for them.
    pub remote_calls: u64,
    /// What was looked at.
    pub work: Work,
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
            remote_calls: self.remote_calls - before.remote_calls,
            work: self.work.since(before.work),
        }
    }

    /// What both are.
    #[must_use]
    pub fn plus(self, other: Tally) -> Tally {
        Tally {
            requests: self.requests + other.requests,
            remote_calls: self.remote_calls + other.remote_calls,
            work: self.work.plus(other.work),
        }
    }

    /// Something is sent to another node: said by far sides that do.
    pub fn add_remote_call() {
        let tally = HERE.get();
        HERE.set(Tally { remote_calls: tally.remote_calls + 1, ..tally });
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

thread_local! {
    static HERE: Cell<Tally> = const { Cell::new(Tally {
        requests: 0,
        remote_calls: 0,
        work: Work { entries: 0, tombstones: 0, blocks: 0, blocks_from_disk: 0, bytes: 0 },
    }) };
}
