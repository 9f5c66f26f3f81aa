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

/// What becomes of a question for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recalled {
    /// It was given back.
    Given,
    /// Not yet; its holder hears that it is wanted.
    Held,
    /// No coordinator of this process has ever had it. Whoever asks has seen that one of this node
    /// has: a process before this one, which is gone.
    Unknown,
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

    /// Somebody wants it.
    pub(crate) fn recall(&self, coordinator: u64) -> Recalled {
        let mut all = self.0.by_coordinator.lock();
        let Some(own) = all.get_mut(&coordinator) else { return Recalled::Unknown };
        own.wanted = own.held;
        if !own.held {
            return Recalled::Given;
        }
        self.0.changed.notify_all();
        Recalled::Held
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
        assert_eq!(recalls.recall(7), Recalled::Unknown);
        recalls.set_held(7, true);
        assert!(!recalls.await_recall(7, Duration::ZERO));
        assert_eq!(recalls.clone().recall(7), Recalled::Held);
        assert!(recalls.await_recall(7, Duration::ZERO));
        recalls.set_held(7, false);
        assert!(!recalls.await_recall(7, Duration::ZERO));
        assert_eq!(recalls.recall(7), Recalled::Given);
        recalls.set_held(7, true);
        assert!(!recalls.await_recall(7, Duration::ZERO), "who has asked before wanted another");
    }
}
