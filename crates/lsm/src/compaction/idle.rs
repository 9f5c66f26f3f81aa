//! Writing out a memtable in which nothing happens any more.
//!
//! After a load come the queries: what lies in a memtable is walked over entry by entry, where
//! blocks of an sst are read by columns. While nobody writes there is time to write it out, and
//! after a crash there is less of the log to replay. A memtable of less than an eighth of its size
//! stays: small ssts, one for each pause, would only have to be merged.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use crate::store::Store;

/// A memtable with this part of its size is worth an sst.
const WORTH_IT: usize = 8;
/// Bytes that come between two looks while nothing happens: those of somebody's bookkeeping.
const NOTHING: usize = 64 << 10;

/// What the last look found: the memtable, by its arrival, and its bytes.
#[derive(Default)]
pub(crate) struct LastLook(Mutex<Option<(u64, usize)>>);

impl Store {
    /// See [`Db::flush_if_idle`](crate::Db::flush_if_idle).
    pub(crate) fn flush_if_idle(self: &Arc<Store>) -> bool {
        let state = self.state.load();
        let (arrival, bytes) = (state.mutable.arrival, state.mutable.bytes());
        let before = self.last_look.0.lock().replace((arrival, bytes));
        let is_idle = before.is_some_and(|(same, then)| same == arrival && bytes - then <= NOTHING);
        let is_worth_it = bytes >= self.options.memtable_size / WORTH_IT;
        if !is_idle || !is_worth_it || !state.immutable.is_empty() {
            return false;
        }
        // Whoever holds it is about to write.
        let Some(mut commit) = self.commit.try_lock() else { return false };
        if self.closed.load(Ordering::Acquire) {
            return false;
        }
        self.rotate(&mut commit);
        drop(commit);
        self.schedule();
        true
    }
}
