//! Which transactions have committed lately, and when: a repeated request is answered, not
//! executed.
//!
//! ```text
//!   outcomes   |--- window ---------------------------| newest timestamp of the range
//!        x  x  |  o    o  o      o    o        o      o
//!   forgotten, and who began before is refused
//! ```
//!
//! A commit's timestamp is above the time at which its transaction began. So a transaction whose
//! outcome was forgotten began before the window, too, and is refused instead of executed.

use std::collections::{BTreeMap, VecDeque};

use braid_lsm::CommitTs;

use crate::ids::TxnId;
use crate::lease::micros;

/// See the [module's page](self). The same on all replicas.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    window_micros: u64,
    by_txn: BTreeMap<TxnId, CommitTs>,
    /// In the order of timestamps.
    order: VecDeque<(CommitTs, TxnId)>,
}

impl Outcomes {
    pub(crate) fn new(window_micros: u64) -> Outcomes {
        Outcomes { window_micros, ..Outcomes::default() }
    }

    pub(crate) fn of(&self, txn: TxnId) -> Option<CommitTs> {
        self.by_txn.get(&txn).copied()
    }

    /// Whether the transaction began before the window that ends at `newest`.
    pub(crate) fn is_forgotten(&self, txn: TxnId, newest: CommitTs) -> bool {
        micros(txn.began) + self.window_micros < micros(newest)
    }

    /// Remembers an outcome that is newer than all others.
    pub(crate) fn add(&mut self, txn: TxnId, at: CommitTs) {
        self.by_txn.insert(txn, at);
        self.order.push_back((at, txn));
    }

    /// Forgets what lies before the window that ends at `newest`; returns whose outcomes.
    pub(crate) fn trim(&mut self, newest: CommitTs) -> Vec<TxnId> {
        let mut gone = Vec::new();
        while let Some((at, txn)) = self.order.front().copied()
            && micros(at) + self.window_micros < micros(newest)
        {
            self.order.pop_front();
            self.by_txn.remove(&txn);
            gone.push(txn);
        }
        gone
    }

    /// All that are remembered, in the order of timestamps.
    pub(crate) fn all(&self) -> impl Iterator<Item = (CommitTs, TxnId)> {
        self.order.iter().copied()
    }

    /// How many are remembered.
    pub(crate) fn count(&self) -> usize {
        self.order.len()
    }

    /// Takes what was stored, in any order.
    pub(crate) fn load(&mut self, mut stored: Vec<(CommitTs, TxnId)>) {
        stored.sort_unstable();
        stored.into_iter().for_each(|(at, txn)| self.add(txn, at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_env::clock::Hlc;

    #[test]
    fn whose_outcome_is_forgotten_is_refused() {
        let at = |micros| CommitTs(Hlc::from_micros(micros));
        let mut outcomes = Outcomes::new(100);
        for n in 0..50u64 {
            let txn = TxnId { began: at(n * 10), number: n };
            outcomes.add(txn, at(n * 10 + 5));
            let newest = at(n * 10 + 5);
            for gone in outcomes.trim(newest) {
                assert!(outcomes.is_forgotten(gone, newest), "{gone:?}");
            }
            assert_eq!(outcomes.of(txn), Some(newest));
            assert!(outcomes.by_txn.len() <= 11);
        }
    }
}
