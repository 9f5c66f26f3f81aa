//! One execution of a statement, from its begin to its last row.
//!
//! The time in which a portal waits for its client to ask for more does not count; the time in
//! which rows are sent does, as in PostgreSQL.

use std::sync::Arc;

use braid_catalog::After;
use braid_env::clock::{Clock, WallClock};
use braid_env::memory::Account;
use braid_kv::{Txn, TxnStats};
use braid_types::SqlError;

use super::log::{self, Ended};
use super::sessions::{Activity, Sum};
use super::statements::Counted;
use super::tally::Lost;
use crate::session::Context;

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_nanos() -> u64 {
    WallClock.monotonic_nanos()
}

/// What is known of an execution as it begins.
pub(crate) struct Begin {
    /// Where it is counted, if it is.
    pub(crate) counted: Option<Arc<Counted>>,
    pub(crate) activity: Arc<Activity>,
    /// What its rows are to its session's sums.
    pub(crate) rows_are: Sum,
    /// It is a transaction of its own.
    pub(crate) alone: bool,
    /// Nanoseconds of planning, if it was planned for this.
    pub(crate) planned: u64,
    /// Nanoseconds from which on it is logged.
    pub(crate) slow: Option<u64>,
}

/// See the [module documentation](self). Dropped without an end, it counts as failed.
pub(crate) struct Measure {
    begin: Begin,
    /// When it began or went on; `None` while it waits for its client.
    since: Option<u64>,
    spent: u64,
    tries: u64,
    work: Option<Work>,
    lost: Lost,
    ended: bool,
}

/// Where it is seen what an execution does.
struct Work {
    txn: Arc<Txn>,
    /// What the transaction had done before.
    before: TxnStats,
    memory: Arc<Account>,
}

impl Measure {
    /// An execution begins.
    pub(crate) fn begin(begin: Begin) -> Box<Measure> {
        let since = Some(now_nanos());
        let (work, lost) = (None, Lost::default());
        Box::new(Measure { begin, since, spent: 0, tries: 0, work, lost, ended: false })
    }

    /// Of the statement, if it is counted.
    pub(crate) fn fingerprint(&self) -> Option<i64> {
        self.begin.counted.as_ref().map(|counted| counted.id())
    }

    /// It was planned once more.
    pub(crate) fn add_planning(&mut self, nanos: u64) {
        self.begin.planned += nanos;
    }

    /// One try begins.
    pub(crate) fn begin_try(&mut self, ctx: &Context) {
        self.tries += 1;
        let known = self.work.as_ref().filter(|work| Arc::ptr_eq(&work.txn, &ctx.txn));
        if ctx.db.is_shared() {
            ctx.txn.begin_touching();
        }
        let before = known.map_or_else(|| ctx.txn.stats(), |work| work.before);
        self.begin.activity.runs_in(&ctx.txn, before, &ctx.memory, self.tries);
        self.work = Some(Work { txn: ctx.txn.clone(), before, memory: ctx.memory.clone() });
    }

    /// A try of it was lost.
    pub(crate) fn lose(&mut self, error: &SqlError) {
        self.lost.add(error.retry_reason());
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

    /// It has failed.
    pub(crate) fn fail(mut self, error: &SqlError) {
        self.pause();
        self.lose(error);
        // What lets go of its locks before it runs again has lost by a deadlock.
        if After::error(error) == After::AgainUnlocked {
            self.begin.activity.add(Sum::Deadlocks, 1);
        }
        drop(self);
    }

    /// It has come to its end, after so many rows.
    pub(crate) fn end(mut self, rows: u64) {
        self.pause();
        self.ended = true;
        let milliseconds = |nanos: u64| nanos as f64 / 1e6;
        let work = self.work.take();
        let (now, before) =
            work.as_ref().map_or_else(Default::default, |w| (w.txn.stats(), w.before));
        let peak = work.as_ref().map_or(0, |w| w.memory.peak() as u64);
        let read = now.rows_scanned + now.gets - before.rows_scanned - before.gets;
        self.begin.activity.add(Sum::RowsRead, read);
        let (looked, from_disk) = (
            now.work.blocks - before.work.blocks,
            now.work.blocks_from_disk - before.work.blocks_from_disk,
        );
        self.begin.activity.add(Sum::BlocksFound, looked - from_disk);
        self.begin.activity.add(Sum::BlocksRead, from_disk);
        self.begin.activity.add(self.begin.rows_are, rows);
        self.begin.activity.add(Sum::Commits, u64::from(self.begin.alone));
        if self.begin.slow.is_some_and(|limit| self.spent >= limit) {
            let ended = Ended {
                nanos: self.spent,
                planned_nanos: self.begin.planned,
                rows,
                tries: self.tries,
                memory_peak: peak,
                before,
                after: now,
            };
            log::slow(&self.begin.activity, &ended);
        }
        let Some(counted) = &self.begin.counted else { return };
        counted.count(self.begin.activity.pid, |tally| {
            tally.executions.add(milliseconds(self.spent));
            if self.begin.planned > 0 {
                tally.plans.add(milliseconds(self.begin.planned));
            }
            tally.rows += rows;
            tally.retries += self.tries.saturating_sub(1);
            tally.requests += now.requests - before.requests;
            tally.lock_waits += now.lock_waits - before.lock_waits;
            let waited = now.lock_wait_nanos - before.lock_wait_nanos;
            tally.lock_wait_time += milliseconds(waited);
            tally.work = tally.work.plus(now.work.since(before.work));
            tally.memory_peak = tally.memory_peak.max(peak);
            tally.network = tally.network.plus(now.network.since(before.network));
            tally.ranges_touched += now.ranges_touched;
            tally.lost.merge(&self.lost);
            if self.begin.alone && work.is_some() {
                tally.alone.end(&now, true, self.spent);
                tally.alone.lost.merge(&self.lost);
            }
        });
    }
}

impl Drop for Measure {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.begin.activity.add(Sum::Errors, 1);
        self.begin.activity.add(Sum::Rollbacks, u64::from(self.begin.alone));
        let retries = self.tries.saturating_sub(1);
        if let Some(counted) = &self.begin.counted {
            let stats = self.work.as_ref().map(|work| work.txn.stats()).unwrap_or_default();
            counted.count(self.begin.activity.pid, |tally| {
                tally.errors += 1;
                tally.retries += retries;
                tally.lost.merge(&self.lost);
                if self.begin.alone && self.work.is_some() {
                    tally.alone.end(&stats, false, self.spent);
                    tally.alone.lost.merge(&self.lost);
                }
            });
        }
    }
}

/// The number of rows that a command tag tells, as in `INSERT 0 3`.
pub(crate) fn rows_of_tag(tag: &str) -> u64 {
    tag.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}
