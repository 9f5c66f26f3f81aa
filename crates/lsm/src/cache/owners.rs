//! How many owners a frame has. `tests/interleavings.rs` runs this file under loom.

use super::atomics::{AtomicUsize, Ordering, fence};

/// A count of owners.
pub(crate) struct Owners {
    count: AtomicUsize,
}

impl Owners {
    /// One owner.
    pub(crate) fn one() -> Owners {
        Owners { count: AtomicUsize::new(1) }
    }

    /// One more. Called by an owner.
    pub(crate) fn join(&self) {
        // Relaxed: the caller is an owner, so the count cannot reach zero meanwhile.
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// One less; true for the last one, who may then take the frame apart.
    pub(crate) fn leave(&self) -> bool {
        // Release: what this owner read happens before the last one takes the frame apart.
        if self.count.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        // Acquire: and the last one comes after all of them.
        fence(Ordering::Acquire);
        true
    }

    /// Whether the caller is the only owner.
    pub(crate) fn is_one(&self) -> bool {
        self.count.load(Ordering::Acquire) == 1
    }
}
