//! What a router keeps of transactions and of read timestamps.

use std::collections::{BTreeMap, HashMap};

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
    /// It was said whom it waits for.
    waits: bool,
    /// The time of the past that it reads.
    as_of: Option<CommitTs>,
}

/// What is said now and then.
pub(crate) struct Announcement {
    pub(crate) newest: TxnId,
    pub(crate) running: Vec<TxnId>,
    /// Where, and what [`Txns::announced`] wants to know.
    pub(crate) ranges: Vec<(RangeId, u64)>,
}

/// See the [module's page](self).
#[derive(Debug, Default)]
pub(crate) struct Txns {
    running: BTreeMap<TxnId, Running>,
    /// Of each read timestamp: what clocks of other nodes showed after it was taken.
    observed: HashMap<CommitTs, BTreeMap<NodeId, CommitTs>>,
    /// Ranges that may think that somebody has locks there, and how many requests for locks there
    /// were in all when the last one was there.
    locked: BTreeMap<RangeId, u64>,
    requests: u64,
    newest: Option<TxnId>,
}

impl Txns {
    pub(crate) fn begin(&mut self, txn: TxnId, as_of: Option<CommitTs>) {
        self.running.insert(txn, Running { as_of, ..Running::default() });
        self.newest = self.newest.max(Some(txn));
    }

    /// Ends a transaction; returns where it still has locks.
    pub(crate) fn end(&mut self, txn: TxnId) -> Vec<RangeId> {
        let running = self.running.remove(&txn).unwrap_or_default();
        running.sessions.into_keys().collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.running.len()
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

    /// What a transaction has locked, and in which ranges it has locks.
    pub(crate) fn locks(&self, txn: TxnId) -> (Vec<Target>, BTreeMap<RangeId, LockSession>) {
        let running = self.running.get(&txn);
        running.map(|own| (own.locked.clone(), own.sessions.clone())).unwrap_or_default()
    }

    /// It is said whether a transaction waits somewhere. Returns where it has locks.
    pub(crate) fn waits(&mut self, txn: TxnId, waits: bool) -> BTreeMap<RangeId, LockSession> {
        let Some(running) = self.running.get_mut(&txn) else { return BTreeMap::new() };
        running.waits = waits;
        running.sessions.clone()
    }

    /// Whether it was said that a transaction waits.
    pub(crate) fn is_said_to_wait(&self, txn: TxnId) -> bool {
        self.running.get(&txn).is_some_and(|running| running.waits)
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
        self.requests += 1;
        self.locked.insert(range, self.requests);
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
            }
        }
        // Locks of transactions that have ended meanwhile may be there: nobody has said so there.
        self.requests += 1;
        self.locked.insert(to, self.requests);
    }

    /// What is to be said where: the newest transaction, those that are running, and the ranges.
    pub(crate) fn announcement(&self) -> Option<Announcement> {
        let ranges = self.locked.iter().map(|(range, requests)| (*range, *requests)).collect();
        let running = self.running.keys().copied().collect();
        Some(Announcement { newest: self.newest?, running, ranges })
    }

    /// A range has heard an announcement. If nobody has had locks there since then, and nobody has
    /// any, it need not hear another one.
    pub(crate) fn announced(&mut self, (range, requests): (RangeId, u64)) {
        let has = self.running.values().any(|running| running.sessions.contains_key(&range));
        if !has && self.locked.get(&range) == Some(&requests) {
            self.locked.remove(&range);
        }
    }

    /// A transaction reads no time of the past any more.
    pub(crate) fn reads_now(&mut self, txn: TxnId) {
        if let Some(running) = self.running.get_mut(&txn) {
            running.as_of = None;
        }
    }

    /// Whether a transaction reads a time of the past that it has asked for.
    pub(crate) fn reads_past(&self, txn: TxnId) -> bool {
        self.running.get(&txn).is_some_and(|running| running.as_of.is_some())
    }

    /// The oldest time that is read.
    pub(crate) fn oldest_read(&self) -> Option<CommitTs> {
        let past = self.running.values().filter_map(|running| running.as_of);
        past.chain(self.observed.keys().copied()).min()
    }

    /// Whether this is a time of the past that was asked for.
    pub(crate) fn is_past(&self, at: CommitTs) -> bool {
        !self.observed.contains_key(&at)
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
