//! Leases on locks that processes of this node hold, and who wants them back.
//!
//! Who has such a lease and what it is good for is decided by those above; here is only the place
//! where a question of another node and the answer of this one's process meet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// What a process of this node has.
#[derive(Clone, Copy, Default)]
struct Lent {
    held: bool,
    /// Somebody has asked for it since then.
    wanted: bool,
}

#[derive(Default)]
struct Shared {
    by_coordinator: Mutex<BTreeMap<u64, Lent>>,
    changed: Condvar,
}

/// See the [module's page](self). Copies are one.
#[derive(Clone, Default)]
pub struct Recalls(Arc<Shared>);

impl Recalls {
    /// Whether a coordinator of this process has a lease, or is about to get one.
    pub fn set_held(&self, coordinator: u64, held: bool) {
        let mut all = self.0.by_coordinator.lock();
        let own = all.entry(coordinator).or_default();
        *own = Lent { held, wanted: own.wanted && held };
    }

    /// Somebody wants it; whether it was given back. Of coordinators that this process never had
    /// nobody here knows that.
    pub fn recall(&self, coordinator: u64) -> bool {
        let mut all = self.0.by_coordinator.lock();
        let Some(own) = all.get_mut(&coordinator) else { return false };
        own.wanted = own.held;
        if own.held {
            self.0.changed.notify_all();
        }
        !own.held
    }

    /// Blocks until somebody wants it, but not for longer than that; whether somebody does.
    pub fn await_recall(&self, coordinator: u64, patience: Duration) -> bool {
        let is_wanted = |all: &BTreeMap<u64, Lent>| all.get(&coordinator).is_some_and(|l| l.wanted);
        let mut all = self.0.by_coordinator.lock();
        self.0.changed.wait_while_for(&mut all, |all| !is_wanted(all), patience);
        is_wanted(&all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_wanted_until_it_is_given_back() {
        let recalls = Recalls::default();
        assert!(!recalls.recall(7), "nobody knows of it");
        recalls.set_held(7, true);
        assert!(!recalls.await_recall(7, Duration::ZERO));
        assert!(!recalls.clone().recall(7));
        assert!(recalls.await_recall(7, Duration::ZERO));
        recalls.set_held(7, false);
        assert!(!recalls.await_recall(7, Duration::ZERO) && recalls.recall(7));
        recalls.set_held(7, true);
        assert!(!recalls.await_recall(7, Duration::ZERO), "who has asked before wanted another");
    }
}
