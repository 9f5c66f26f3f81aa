//! What a router keeps of transactions and of read timestamps.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use braid_kv::{Target, TxnId};
use braid_lsm::{CommitTs, KeySpan};
use braid_range::{LockSession, NodeId, RangeId, When};

/// A transaction that has not ended.
#[derive(Debug, Default)]
struct Running {
    /// The last request for locks.
    step: u64,
    /// Where it has locks.
    sessions: BTreeMap<RangeId, LockSession>,
    /// What it has ever locked.
    locked: Vec<Target>,
}

/// See the [module's page](self).
#[derive(Debug, Default)]
pub(crate) struct Txns {
    running: BTreeMap<TxnId, Running>,
    /// Of each read timestamp: what clocks of other nodes showed after it was taken.
    observed: HashMap<CommitTs, BTreeMap<NodeId, CommitTs>>,
    /// Ranges in which somebody had locks since that was said there last.
    locked: BTreeSet<RangeId>,
    newest: Option<TxnId>,
}

impl Txns {
    pub(crate) fn begin(&mut self, txn: TxnId) {
        self.running.insert(txn, Running::default());
        self.newest = self.newest.max(Some(txn));
    }

    /// Ends a transaction; returns where it still has locks.
    pub(crate) fn end(&mut self, txn: TxnId) -> Vec<RangeId> {
        let running = self.running.remove(&txn).unwrap_or_default();
        running.sessions.into_keys().collect()
    }

    pub(crate) fn all_younger_than(&self, txn: TxnId) -> bool {
        self.running.keys().next().is_none_or(|oldest| *oldest > txn)
    }

    /// The next step of a transaction.
    pub(crate) fn step(&mut self, txn: TxnId) -> u64 {
        let running = self.running.entry(txn).or_default();
        running.step += 1;
        running.step
    }

    /// The locks that a transaction has in a range.
    pub(crate) fn session(&self, txn: TxnId, range: RangeId) -> Option<LockSession> {
        self.running.get(&txn)?.sessions.get(&range).copied()
    }

    pub(crate) fn sessions(&self, txn: TxnId) -> Vec<(RangeId, LockSession)> {
        let running = self.running.get(&txn);
        running.into_iter().flat_map(|r| &r.sessions).map(|(r, s)| (*r, *s)).collect()
    }

    /// A transaction has locks in a range.
    pub(crate) fn has_locks(
        &mut self,
        txn: TxnId,
        (range, session): (RangeId, LockSession),
        targets: impl Iterator<Item = Target>,
    ) {
        let running = self.running.entry(txn).or_default();
        // The first one counts: if the lease was lost since then, so were its locks.
        running.sessions.entry(range).or_insert(session);
        running.locked.extend(targets);
        self.locked.insert(range);
    }

    /// Forgets where a transaction has locks; returns where.
    pub(crate) fn take_sessions(&mut self, txn: TxnId) -> Vec<RangeId> {
        let running = self.running.get_mut(&txn);
        let sessions = running.map(|r| std::mem::take(&mut r.sessions)).unwrap_or_default();
        sessions.into_keys().collect()
    }

    /// A range has keys that were another one's. Whoever has locks on some of them has them there.
    pub(crate) fn moved(&mut self, from: RangeId, (to, span): (RangeId, &KeySpan)) {
        for running in self.running.values_mut() {
            let Some(session) = running.sessions.get(&from).copied() else { continue };
            let is_there = |target: &Target| match target {
                Target::Key(key) => span.contains(key),
                Target::Span(locked) => span.overlaps(locked),
            };
            if running.locked.iter().any(is_there) {
                running.sessions.entry(to).or_insert(session);
                self.locked.insert(to);
            }
        }
    }

    /// What is to be said where: the newest transaction, those that are running, and the ranges.
    pub(crate) fn announcement(&mut self) -> Option<(TxnId, Vec<TxnId>, Vec<RangeId>)> {
        let has = |range: &RangeId| self.running.values().any(|r| r.sessions.contains_key(range));
        let still: BTreeSet<RangeId> = self.locked.iter().copied().filter(has).collect();
        let ranges = std::mem::replace(&mut self.locked, still).into_iter().collect();
        Some((self.newest?, self.running.keys().copied().collect(), ranges))
    }

    /// A read timestamp is in use. Of the node that gave it, it is what its clock showed.
    pub(crate) fn read_from(&mut self, at: CommitTs, home: Option<NodeId>) {
        self.observed.insert(at, home.into_iter().map(|node| (node, at)).collect());
    }

    pub(crate) fn read_no_more(&mut self, at: CommitTs) {
        self.observed.remove(&at);
    }

    /// What a node must know to answer a read. A time of the past is read as it was.
    pub(crate) fn when(&self, at: CommitTs, node: NodeId, bound: u64) -> When {
        match self.observed.get(&at) {
            None => When::exactly(at),
            Some(seen) => {
                let limit = CommitTs(at.0 + braid_env::clock::Hlc::from_micros(bound));
                When { at, limit, observed: seen.get(&node).copied() }
            }
        }
    }

    /// A node's clock has shown this.
    pub(crate) fn observe(&mut self, at: CommitTs, node: NodeId, clock: CommitTs) {
        if let Some(seen) = self.observed.get_mut(&at) {
            seen.entry(node).or_insert(clock);
        }
    }
}
