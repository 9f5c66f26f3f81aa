//! Advisory locks: locks on numbers, which mean what the application says they mean.
//!
//! ```text
//!   (database, number) ─► holders: session 7 shared ×2, session 9 shared ×1
//!                         waits:   session 8 exclusive
//! ```
//! They live on this node, beside the locks on rows: a session holds one until it gives it back or
//! ends, or until its transaction ends. A session that would wait for one that waits for it, over
//! any number of others, is refused with 40P01. What sessions of other nodes hold comes behind
//! that: [`crate::over_nodes::locks`].

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

    fn is_shared(&self) -> bool {
        self.shared != [0, 0]
    }

    fn is_none(&self) -> bool {
        !self.is_exclusive() && !self.is_shared()
    }
}

/// A lock: number of its database, and the application's number.
pub(crate) type Place = (u32, AdvisoryKey);

#[derive(Debug, Default)]
struct State {
    held: HashMap<Place, HashMap<i32, Counts>>,
    /// What each waiting session waits for, and whether it would share it.
    waiting: HashMap<i32, (Place, bool)>,
}

impl State {
    /// Who keeps a session from having a lock.
    fn in_the_way(&self, owner: i32, place: &Place, shared: bool) -> Vec<i32> {
        let holders = self.held.get(place).into_iter().flatten();
        holders
            .filter(|(other, counts)| **other != owner && (!shared || counts.is_exclusive()))
            .map(|(other, _)| *other)
            .collect()
    }

    /// Whether a session waits for itself, over others.
    fn is_circle(&self, owner: i32, place: &Place, shared: bool) -> bool {
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

    fn forget_ended(&mut self) {
        self.held.retain(|_, holders| {
            holders.retain(|_, counts| !counts.is_none());
            !holders.is_empty()
        });
    }

    fn take(&mut self, owner: i32, want: &Want) {
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

/// An advisory lock that a session has or waits for.
#[derive(Clone, Copy, Debug)]
pub struct AdvisoryLock {
    /// Id of its database.
    pub database: u32,
    /// What it is on.
    pub key: AdvisoryKey,
    /// Whose it is.
    pub pid: i32,
    /// Whether others may have it, too, in this mode.
    pub shared: bool,
    /// Held, not waited for.
    pub granted: bool,
}

/// All advisory locks of a node, by the process ids of sessions.
#[derive(Debug, Default)]
pub(crate) struct AdvisoryLocks {
    state: Mutex<State>,
    changed: Condvar,
}

impl AdvisoryLocks {
    /// What is held and what is waited for, as clients are shown it.
    pub(crate) fn shown(&self) -> Vec<AdvisoryLock> {
        let state = self.state.lock();
        let one = |place: &Place, pid: i32, shared: bool, granted: bool| AdvisoryLock {
            database: place.0,
            key: place.1,
            pid,
            shared,
            granted,
        };
        let mut all = Vec::new();
        for (place, holders) in &state.held {
            for (pid, counts) in holders {
                let modes = [(counts.is_exclusive(), false), (counts.is_shared(), true)];
                let modes = modes.into_iter().filter(|(held, _)| *held);
                all.extend(modes.map(|(_, shared)| one(place, *pid, shared, true)));
            }
        }
        let waits = state.waiting.iter();
        all.extend(waits.map(|(pid, (place, shared))| one(place, *pid, *shared, false)));
        all
    }

    /// Takes a lock if nobody is in the way.
    pub(crate) fn try_lock(&self, owner: i32, want: &Want) -> bool {
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
        owner: i32,
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
    pub(crate) fn unlock(&self, owner: i32, place: &Place, shared: bool) -> bool {
        let mut state = self.state.lock();
        let Some(holders) = state.held.get_mut(place) else { return false };
        let Some(counts) = holders.get_mut(&owner) else { return false };
        let count = counts.of(shared, false);
        if *count == 0 {
            return false;
        }
        *count -= 1;
        state.forget_ended();
        self.changed.notify_all();
        true
    }

    /// Takes back what was just taken: it could not be had among all nodes.
    pub(crate) fn take_back(&self, owner: i32, want: &Want) {
        let mut state = self.state.lock();
        if let Some(counts) = state.held.get_mut(&want.place).and_then(|all| all.get_mut(&owner)) {
            let count = counts.of(want.shared, want.in_transaction);
            *count = count.saturating_sub(1);
        }
        state.forget_ended();
        self.changed.notify_all();
    }

    /// Whether a session has a lock in a mode.
    pub(crate) fn has(&self, owner: i32, place: &Place, shared: bool) -> bool {
        let state = self.state.lock();
        let counts = state.held.get(place).and_then(|holders| holders.get(&owner));
        counts.is_some_and(|c| if shared { c.is_shared() } else { c.is_exclusive() })
    }

    /// Gives back what a session holds: for itself, or for its transaction.
    pub(crate) fn unlock_all(&self, owner: i32, of_transaction: bool) {
        let mut state = self.state.lock();
        let mut any = false;
        for holders in state.held.values_mut() {
            if let Some(counts) = holders.get_mut(&owner) {
                *counts.of(true, of_transaction) = 0;
                *counts.of(false, of_transaction) = 0;
                any = true;
            }
        }
        if any {
            state.forget_ended();
            self.changed.notify_all();
        }
    }
}
