//! Advisory locks: locks on numbers, which mean what the application says they mean.
//!
//! ```text
//!   (database, number) ─► holders: session 7 shared ×2, session 9 shared ×1
//!                         waits:   session 8 exclusive
//! ```
//! They live on this node, beside the locks on rows: a session holds one until it gives it back or
//! ends, or until its transaction ends. A session that would wait for one that waits for it, over
//! any number of others, is refused with 40P01.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_catalog::Lost;
use braid_scalar::AdvisoryKey;
use braid_types::{SqlError, SqlResult, SqlState};
use parking_lot::{Condvar, Mutex};

/// How often somebody who waits looks whether he shall stop.
const STEP: Duration = Duration::from_millis(20);

/// What one session holds of a lock: how many times in each mode, for itself and for its
/// transaction.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    exclusive: [u32; 2],
    shared: [u32; 2],
}

impl Counts {
    fn of(&mut self, shared: bool, in_transaction: bool) -> &mut u32 {
        let modes = if shared { &mut self.shared } else { &mut self.exclusive };
        &mut modes[usize::from(in_transaction)]
    }

    fn is_exclusive(&self) -> bool {
        self.exclusive != [0, 0]
    }

    fn is_none(&self) -> bool {
        self.exclusive == [0, 0] && self.shared == [0, 0]
    }
}

/// A lock: number of its database, and the application's number.
type Place = (u32, AdvisoryKey);

#[derive(Debug, Default)]
struct State {
    held: HashMap<Place, HashMap<u64, Counts>>,
    /// What each waiting session waits for, and whether it would share it.
    waiting: HashMap<u64, (Place, bool)>,
    sessions: u64,
}

impl State {
    /// Who keeps a session from having a lock.
    fn in_the_way(&self, owner: u64, place: &Place, shared: bool) -> Vec<u64> {
        let holders = self.held.get(place).into_iter().flatten();
        holders
            .filter(|(other, counts)| **other != owner && (!shared || counts.is_exclusive()))
            .map(|(other, _)| *other)
            .collect()
    }

    /// Whether a session waits for itself, over others.
    fn is_circle(&self, owner: u64, place: &Place, shared: bool) -> bool {
        let mut todo = self.in_the_way(owner, place, shared);
        let mut seen = Vec::new();
        while let Some(next) = todo.pop() {
            if next == owner {
                return true;
            }
            if seen.contains(&next) {
                continue;
            }
            seen.push(next);
            if let Some((place, shared)) = self.waiting.get(&next) {
                todo.extend(self.in_the_way(next, place, *shared));
            }
        }
        false
    }

    fn take(&mut self, owner: u64, want: &Want) {
        let counts = self.held.entry(want.place).or_default().entry(owner).or_default();
        *counts.of(want.shared, want.in_transaction) += 1;
    }
}

/// What a session asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) place: Place,
    pub(crate) shared: bool,
    pub(crate) in_transaction: bool,
}

/// All advisory locks of a node.
#[derive(Debug, Default)]
pub(crate) struct AdvisoryLocks {
    state: Mutex<State>,
    changed: Condvar,
}

impl AdvisoryLocks {
    /// A number for a new session.
    pub(crate) fn open(&self) -> u64 {
        let mut state = self.state.lock();
        state.sessions += 1;
        state.sessions
    }

    /// Takes a lock if nobody is in the way.
    pub(crate) fn try_lock(&self, owner: u64, want: &Want) -> bool {
        let mut state = self.state.lock();
        let free = state.in_the_way(owner, &want.place, want.shared).is_empty();
        if free {
            state.take(owner, want);
        }
        free
    }

    /// Takes a lock, and waits for it.
    ///
    /// # Errors
    /// 57014 on cancel, 55P03 after the limit, 40P01 instead of waiting in a circle.
    pub(crate) fn lock(
        &self,
        owner: u64,
        want: &Want,
        cancel: &AtomicBool,
        limit: Option<Duration>,
    ) -> SqlResult<()> {
        let mut state = self.state.lock();
        let mut waited = Duration::ZERO;
        let result = loop {
            if state.in_the_way(owner, &want.place, want.shared).is_empty() {
                state.take(owner, want);
                break Ok(());
            }
            if state.is_circle(owner, &want.place, want.shared) {
                break Err(Lost::Deadlock.error("deadlock detected"));
            }
            if cancel.load(Ordering::Relaxed) {
                break Err(SqlError::new(
                    SqlState::QUERY_CANCELED,
                    "canceling statement due to user request",
                ));
            }
            if limit.is_some_and(|limit| waited >= limit) {
                break Err(Lost::NotFree.error("canceling statement due to lock timeout"));
            }
            state.waiting.insert(owner, (want.place, want.shared));
            if self.changed.wait_for(&mut state, STEP).timed_out() {
                waited += STEP;
            }
        };
        state.waiting.remove(&owner);
        result
    }

    /// Gives a lock of the session back once; `false` if it is not held.
    pub(crate) fn unlock(&self, owner: u64, place: &Place, shared: bool) -> bool {
        let mut state = self.state.lock();
        let Some(holders) = state.held.get_mut(place) else { return false };
        let Some(counts) = holders.get_mut(&owner) else { return false };
        let count = counts.of(shared, false);
        if *count == 0 {
            return false;
        }
        *count -= 1;
        if counts.is_none() {
            holders.remove(&owner);
        }
        state.held.retain(|_, holders| !holders.is_empty());
        self.changed.notify_all();
        true
    }

    /// Gives back what a session holds: for itself, or for its transaction.
    pub(crate) fn unlock_all(&self, owner: u64, of_transaction: bool) {
        let mut state = self.state.lock();
        let mut any = false;
        for holders in state.held.values_mut() {
            if let Some(counts) = holders.get_mut(&owner) {
                *counts.of(true, of_transaction) = 0;
                *counts.of(false, of_transaction) = 0;
                any = true;
            }
            holders.retain(|_, counts| !counts.is_none());
        }
        if any {
            state.held.retain(|_, holders| !holders.is_empty());
            self.changed.notify_all();
        }
    }
}
