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
//! * A scan that is still open may have shown more than it has noted: until it ends, its whole span
//!   counts.
//!
//! Commits of `synchronous_commit = off` promise nothing to their writer, and nothing to those who
//! read them: nobody waits for them. Readers of such a commit may see it gone after a crash, but
//! never a later synchronous commit without it, and never a half of one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use braid_lsm::{CommitTs, KeySpan, Pending};
use parking_lot::Mutex;

use crate::error::KvResult;
use crate::store::Store;

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

    fn upto(&self) -> CommitTs {
        CommitTs(self.upto.load(Ordering::Acquire))
    }

    /// The newest commit that a read at `read_ts` may see, if that is not durable yet.
    pub(crate) fn open_at(&self, read_ts: CommitTs) -> Option<CommitTs> {
        let newest = CommitTs(self.newest.load(Ordering::Acquire)).min(read_ts);
        (newest > self.upto()).then_some(newest)
    }

    /// Blocks until every commit up to `ts` is durable.
    fn wait(&self, ts: CommitTs) -> KvResult<()> {
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
    /// Open scans over something that was not durable, and the newest that they may see.
    open_scans: AtomicUsize,
    newest_of_scans: AtomicU64,
}

impl Shown {
    /// Blocks until everything that was noted is durable. To be called before an answer leaves,
    /// and while it is handed out, before each part of it.
    ///
    /// # Errors
    /// The disk failed: what was seen may be lost, and must not be shown.
    pub fn settle(&self, store: &Store) -> KvResult<()> {
        let mut newest = self.newest.load(Ordering::Acquire);
        if self.open_scans.load(Ordering::Acquire) > 0 {
            newest = newest.max(self.newest_of_scans.load(Ordering::Acquire));
        }
        if newest <= store.durable().upto().0 {
            return Ok(());
        }
        store.durable().wait(CommitTs(newest))
    }

    fn note(&self, ts: CommitTs) {
        self.newest.fetch_max(ts.0, Ordering::AcqRel);
    }
}

/// What a view has to note; `None`: nothing, all that it can see is durable.
#[derive(Clone)]
pub(crate) struct Noting {
    shown: Arc<Shown>,
    read_ts: CommitTs,
    /// The newest commit that the view may see.
    newest: CommitTs,
}

impl Noting {
    /// For a view at `read_ts` that was just made.
    pub(crate) fn of(
        store: &Store,
        shown: Option<&Arc<Shown>>,
        read_ts: CommitTs,
    ) -> Option<Noting> {
        let shown = shown?;
        let newest = store.durable().open_at(read_ts)?;
        Some(Noting { shown: shown.clone(), read_ts, newest })
    }

    /// Above this, something may not be durable; `None`: all of it is by now.
    fn floor(&self, store: &Store) -> Option<CommitTs> {
        Some(store.durable().upto()).filter(|upto| *upto < self.newest)
    }

    /// A point read found a row of `found`, or none.
    pub(crate) fn point(&self, store: &Store, key: &[u8], found: Option<CommitTs>) -> KvResult<()> {
        let Some(floor) = self.floor(store) else { return Ok(()) };
        let seen = match found {
            Some(ts) => Some(ts).filter(|ts| *ts > floor),
            None => {
                let end = [key, b"\0"].concat();
                let span = KeySpan::new(bytes::Bytes::copy_from_slice(key), end);
                store.engine().newest_above(&span, floor)?
            }
        };
        if let Some(ts) = seen {
            // What is newer than the view was not seen, but may hide what was.
            self.shown.note(ts.min(self.read_ts));
        }
        Ok(())
    }

    /// A scan of this span begins; `None` if all that it can see is durable.
    pub(crate) fn scan(&self, store: &Store, span: &KeySpan) -> KvResult<Option<NotingScan>> {
        let Some(floor) = self.floor(store) else { return Ok(None) };
        if store.engine().newest_above(span, floor)?.is_none() {
            return Ok(None);
        }
        self.shown.newest_of_scans.fetch_max(self.newest.0, Ordering::AcqRel);
        self.shown.open_scans.fetch_add(1, Ordering::AcqRel);
        Ok(Some(NotingScan { noting: self.clone(), floor }))
    }
}

/// An open scan over something that was not durable when it began.
pub(crate) struct NotingScan {
    noting: Noting,
    floor: CommitTs,
}

impl NotingScan {
    /// This part of the span was read: rows, and where there were none.
    pub(crate) fn has_read(&self, store: &Store, span: &KeySpan) {
        let Noting { shown, read_ts, newest } = &self.noting;
        match store.engine().newest_above(span, self.floor) {
            Ok(None) => {}
            Ok(Some(ts)) => shown.note(ts.min(*read_ts)),
            // Whatever it was: waiting for more is never wrong.
            Err(_) => shown.note(*newest),
        }
    }
}

impl Drop for NotingScan {
    fn drop(&mut self) {
        self.noting.shown.open_scans.fetch_sub(1, Ordering::AcqRel);
    }
}
