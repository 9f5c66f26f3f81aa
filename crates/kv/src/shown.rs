//! What was shown survives: reads do not reach a client before what they saw is durable.
//!
//! A commit is visible before it is durable, and its locks are gone by then: whoever writes over it
//! is behind it in the wal. But an answer is not in the wal. So reads note how new the newest thing
//! is that they saw and that was not durable then, and whoever hands answers out waits for that:
//!
//! ```text
//!   commit @7   visible ──────────────── durable
//!   SELECT               reads @7 ────── waits ─ answer      (notes 7)
//!   SELECT               reads @5 ─ answer                   (5 was durable: nothing noted)
//! ```
//!
//! * A view whose newest commit was durable when it was made notes nothing: that is the usual case,
//!   and costs two loads per view.
//! * Otherwise a point read compares the row's timestamp. What is *not* there may be missing
//!   because of a newer deletion, so absence looks for one; a scan does that for its span. All that
//!   is not durable lies in memtables, so no such look reads from the device.
//! * The far side says so with each answer ([`Spans`]); a scan's answers are batches, and a batch
//!   counts as seen as soon as it was read.
//!
//! Commits of `synchronous_commit = off` promise nothing to their writer, and nothing to those who
//! read them: nobody waits for them. Readers of such a commit may see it gone after a crash, but
//! never a later synchronous commit without it, and never a half of one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_lsm::{CommitTs, Pending};
use parking_lot::Mutex;

use crate::error::KvResult;
use crate::spans::Spans;

/// How far commits are durable.
#[derive(Default)]
pub(crate) struct Durable {
    /// All commits up to here that somebody waited for are durable.
    upto: AtomicU64,
    /// The newest one that somebody waits for.
    newest: AtomicU64,
    /// Those that were not durable yet when somebody looked, oldest first.
    waiting: Mutex<VecDeque<(CommitTs, Pending)>>,
}

impl Durable {
    /// A commit was applied; called in the order of commits, before readers can see it.
    pub(crate) fn applied(&self, ts: CommitTs, pending: &Pending) {
        self.waiting.lock().push_back((ts, pending.clone()));
        self.newest.fetch_max(ts.0, Ordering::AcqRel);
    }

    /// Commits up to here are durable: somebody has waited.
    pub(crate) fn reached(&self, ts: CommitTs) {
        if self.upto.fetch_max(ts.0, Ordering::AcqRel) >= ts.0 {
            return;
        }
        let mut waiting = self.waiting.lock();
        while waiting.front().is_some_and(|(first, _)| *first <= ts) {
            waiting.pop_front();
        }
    }

    pub(crate) fn upto(&self) -> CommitTs {
        CommitTs(self.upto.load(Ordering::Acquire))
    }

    /// The newest commit that a read at `read_ts` may see, if that is not durable yet.
    pub(crate) fn open_at(&self, read_ts: CommitTs) -> Option<CommitTs> {
        let newest = CommitTs(self.newest.load(Ordering::Acquire)).min(read_ts);
        (newest > self.upto()).then_some(newest)
    }

    /// Blocks until every commit up to `ts` is durable.
    pub(crate) fn wait(&self, ts: CommitTs) -> KvResult<()> {
        if ts <= self.upto() {
            return Ok(());
        }
        let last = {
            let waiting = self.waiting.lock();
            let upto = waiting.partition_point(|(other, _)| *other <= ts);
            upto.checked_sub(1).map(|last| waiting[last].clone())
        };
        if let Some((ts, pending)) = last {
            pending.wait_durable()?;
            self.reached(ts);
        }
        Ok(())
    }
}

/// What a client is about to be shown. One for a session; shared by all of its transactions.
#[derive(Default)]
pub struct Shown {
    /// The newest thing that was seen and was not durable then.
    newest: AtomicU64,
}

impl Shown {
    /// Blocks until everything that was noted is durable. To be called before an answer leaves,
    /// and while it is handed out, before each part of it.
    ///
    /// # Errors
    /// The disk failed: what was seen may be lost, and must not be shown.
    pub fn settle(&self, spans: &dyn Spans) -> KvResult<()> {
        match self.newest.load(Ordering::Acquire) {
            0 => Ok(()),
            newest => spans.await_durable(CommitTs(newest)),
        }
    }

    pub(crate) fn note(&self, ts: CommitTs) {
        self.newest.fetch_max(ts.0, Ordering::AcqRel);
    }
}
