//! Processes that are gone: whatever they have sent and comes later is not looked at.
//!
//! ```text
//!   node 3, process 7   commits ──────────── slowly ───────────────────────► refused
//!                       dies          process 8 says so ── all nodes fence 7 ──┘
//! ```
//! What a process has sent may arrive long after its end. Who wants to be sure that nothing of it
//! happens any more has *all* nodes fence it, since it may have asked any of them, and goes by what
//! a range holds after that. What was proposed before is in the range's log by then, where its
//! latches keep readers waiting, and is not later than the clock that answers.
//!
//! That is kept in memory. A node that was started anew has no connection to a process that was
//! gone before, so nothing of that one arrives there.

use std::collections::BTreeSet;

use braid_consensus::Result;
use braid_kv::TXN_COUNTER_BITS;

use crate::locking::coordinator_of;
use crate::replica::Replica;
use crate::replicas::Replicas;
use crate::request::Ask;

/// Coordinators of processes that are gone.
#[derive(Debug, Default)]
pub(crate) struct Fences(BTreeSet<u64>);

impl Fences {
    /// Whether a request comes from one of them.
    pub(crate) fn refuse(&self, ask: &Ask) -> bool {
        !self.0.is_empty() && asker(ask).is_some_and(|asker| self.0.contains(&asker))
    }
}

/// The coordinator of a request that would leave something behind.
fn asker(ask: &Ask) -> Option<u64> {
    match ask {
        Ask::Commit(ask) => Some(ask.txn.number >> TXN_COUNTER_BITS),
        Ask::Prepare(ask) => Some(coordinator_of(ask.owner)),
        Ask::Lock(ask) => Some(coordinator_of(ask.request.txn)),
        Ask::Running { newest, .. } => Some(coordinator_of(*newest)),
        _ => None,
    }
}

impl Replicas {
    /// Looks at nothing any more that a coordinator sends, and gives its locks to others.
    pub(crate) fn fence(&mut self, coordinator: u64) -> Result<()> {
        self.quiet.fences.0.insert(coordinator);
        let mut had = Vec::new();
        for (range, replica) in &mut self.replicas {
            // Who sleeps has no locks, and nobody waits there.
            if replica.fence(coordinator)? {
                had.push(*range);
            }
        }
        had.into_iter().for_each(|range| self.touch(range));
        self.pump()
    }
}

impl Replica {
    /// Whether there was something of the coordinator.
    fn fence(&mut self, coordinator: u64) -> Result<bool> {
        let (locks, waits) = (self.has_sessions_of(coordinator), self.has_waiting());
        if locks {
            self.end_sessions_of(coordinator)?;
        }
        if waits {
            self.dismiss(|ask| asker(ask) == Some(coordinator));
        }
        Ok(locks || waits)
    }
}
