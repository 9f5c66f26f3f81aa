//! One execution of a statement, from its begin to its last row.
//!
//! The time in which a portal waits for its client to ask for more does not count; the time in
//! which rows are sent does, as in PostgreSQL.

use std::sync::Arc;

use braid_env::clock::{Clock, WallClock};
use braid_env::memory::Account;
use braid_kv::Txn;

use super::statements::Counted;
use crate::session::Context;

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_nanos() -> u64 {
    WallClock.monotonic_nanos()
}

/// See the [module documentation](self). Dropped without an end, it counts as failed.
pub(crate) struct Measure {
    entry: Arc<Counted>,
    session: i32,
    /// When it began or went on; `None` while it waits for its client.
    since: Option<u64>,
    spent: u64,
    /// Nanoseconds of planning, if it was planned for this.
    planned: u64,
    tries: u64,
    work: Option<Work>,
    ended: bool,
}

/// Where it is seen what an execution does.
struct Work {
    txn: Arc<Txn>,
    /// Requests that the transaction had made before.
    requests: u64,
    memory: Arc<Account>,
}

impl Measure {
    /// An execution begins.
    pub(crate) fn begin(entry: Arc<Counted>, session: i32, planned: u64) -> Measure {
        let since = Some(now_nanos());
        Measure { entry, session, since, spent: 0, planned, tries: 0, work: None, ended: false }
    }

    /// It was planned once more.
    pub(crate) fn add_planning(&mut self, nanos: u64) {
        self.planned += nanos;
    }

    /// One try begins.
    pub(crate) fn begin_try(&mut self, ctx: &Context) {
        self.tries += 1;
        let known = self.work.as_ref().filter(|work| Arc::ptr_eq(&work.txn, &ctx.txn));
        let requests = known.map_or_else(|| ctx.txn.stats().requests, |work| work.requests);
        self.work = Some(Work { txn: ctx.txn.clone(), requests, memory: ctx.memory.clone() });
    }

    /// The client is going to ask for the next rows, sometime.
    pub(crate) fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.spent += now_nanos().saturating_sub(since);
        }
    }

    /// The client has asked.
    pub(crate) fn go_on(&mut self) {
        if self.since.is_none() {
            self.since = Some(now_nanos());
        }
    }

    /// It has come to its end, after so many rows.
    pub(crate) fn end(mut self, rows: u64) {
        self.pause();
        self.ended = true;
        let milliseconds = |nanos: u64| nanos as f64 / 1e6;
        let work = self.work.take();
        let requests = work.as_ref().map_or(0, |w| w.txn.stats().requests - w.requests);
        let peak = work.as_ref().map_or(0, |w| w.memory.peak() as u64);
        self.entry.count(self.session, |tally| {
            tally.executions.add(milliseconds(self.spent));
            if self.planned > 0 {
                tally.plans.add(milliseconds(self.planned));
            }
            tally.rows += rows;
            tally.retries += self.tries.saturating_sub(1);
            tally.requests += requests;
            tally.memory_peak = tally.memory_peak.max(peak);
        });
    }
}

impl Drop for Measure {
    fn drop(&mut self) {
        if !self.ended {
            let retries = self.tries.saturating_sub(1);
            self.entry.count(self.session, |tally| {
                tally.errors += 1;
                tally.retries += retries;
            });
        }
    }
}

/// The number of rows that a command tag tells, as in `INSERT 0 3`.
pub(crate) fn rows_of_tag(tag: &str) -> u64 {
    tag.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}
