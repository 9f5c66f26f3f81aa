//! What a router keeps of transactions and of read timestamps.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use braid_kv::{Target, TxnId};
use braid_lsm::{CommitTs, KeySpan};
use braid_range::{LockSession, MetClocks, NodeId, RangeId, When};

/// A transaction that has not ended.
#[derive(Debug, Default)]
struct Running {
    /// The last request for locks.
    step: u64,
    /// Where it has locks.
    sessions: BTreeMap<RangeId, LockSession>,
    /// Where it has asked for some: it may have got them though nobody was told.
    asked: BTreeSet<RangeId>,
    /// What it has ever locked.
    locked: Vec<Target>,
    /// It was said whom it waits for.
    waits: bool,
    /// The time of the past that it reads.
    as_of: Option<CommitTs>,
}

/// What clocks showed after a read timestamp was taken.
#[derive(Debug, Default)]
struct Observed {
    /// Clocks were asked for: see [`Txns::is_to_meet`].
    is_met: bool,
    of_nodes: BTreeMap<NodeId, CommitTs>,
    /// Of what whoever served these ranges has been certain when it answered this reader.
    of_ranges: BTreeMap<RangeId, CommitTs>,
    /// Of those that were asked for their clocks, and of the own one.
    met: MetClocks,
}

impl Observed {
    fn meet(&mut self, clocks: impl IntoIterator<Item = (NodeId, CommitTs)>) {
        let known = self.met.0.iter().copied();
        self.met = MetClocks(known.chain(clocks).collect());
    }
}

/// What a node's clock showed when it was asked for that.
pub(crate) struct SeenClock {
    pub(crate) node: NodeId,
    pub(crate) clock: CommitTs,
    /// It is above all that the node has ever stamped.
    pub(crate) sure: bool,
}

/// What is said now and then.
pub(crate) struct Announcement {
    pub(crate) newest: TxnId,
    pub(crate) running: Vec<TxnId>,
    /// Where; and if none of those that are running has asked for a lock there, up to which request
    /// that is so.
    pub(crate) ranges: Vec<(RangeId, Option<u64>)>,
}

/// See the [module's page](self).
#[derive(Debug, Default)]
pub(crate) struct Txns {
    running: BTreeMap<TxnId, Running>,
    /// Read timestamps that are in use.
    observed: HashMap<CommitTs, Observed>,
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

    /// A transaction is about to ask for locks in a range.
    pub(crate) fn asks_for_locks(&mut self, txn: TxnId, range: RangeId) {
        self.running.entry(txn).or_default().asked.insert(range);
        self.requests += 1;
        self.locked.insert(range, self.requests);
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
                running.asked.insert(to);
            }
        }
        // Locks of transactions that have ended meanwhile may be there: nobody has said so there.
        self.requests += 1;
        self.locked.insert(to, self.requests);
    }

    /// What is to be said where: the newest transaction, those that are running, and the ranges.
    pub(crate) fn announcement(&self) -> Option<Announcement> {
        let in_use = |range: &RangeId| {
            let has = |own: &Running| own.asked.contains(range) || own.sessions.contains_key(range);
            self.running.values().any(has)
        };
        let quiet = |(range, requests): (&RangeId, &u64)| {
            (*range, Some(*requests).filter(|_| !in_use(range)))
        };
        let ranges = self.locked.iter().map(quiet).collect();
        let running = self.running.keys().copied().collect();
        Some(Announcement { newest: self.newest?, running, ranges })
    }

    /// A range has heard an announcement. If that named nobody who has locks there, and nobody has
    /// asked for any since then, it need not hear another one.
    pub(crate) fn announced(&mut self, (range, quiet): (RangeId, Option<u64>)) {
        if quiet.is_some() && self.locked.get(&range).copied() == quiet {
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

    /// A read timestamp is in use. Of the node that gave it, it is what its clock showed; if it is
    /// `sure`, above all that the node has ever stamped.
    pub(crate) fn read_from(&mut self, at: CommitTs, home: Option<NodeId>, sure: bool) {
        let own = home.map(|node| (node, at));
        let of_nodes = own.into_iter().collect();
        let mut seen = Observed { of_nodes, ..Observed::default() };
        seen.meet(own.filter(|_| sure));
        self.observed.insert(at, seen);
    }

    /// Nodes were asked for their clocks after a reader had begun.
    pub(crate) fn meet(&mut self, at: CommitTs, clocks: Vec<SeenClock>) {
        let Some(seen) = self.observed.get_mut(&at) else { return };
        for SeenClock { node, clock, .. } in &clocks {
            seen.of_nodes.entry(*node).or_insert(*clock);
        }
        let sure = clocks.iter().filter(|seen| seen.sure);
        seen.meet(sure.map(|seen| (seen.node, seen.clock)));
    }

    pub(crate) fn read_no_more(&mut self, at: CommitTs) {
        self.observed.remove(&at);
    }

    /// Whether a reader has not asked for clocks yet. Once is enough: later, what they show is
    /// above what the reader is in doubt about anyway.
    pub(crate) fn is_to_meet(&mut self, at: CommitTs) -> bool {
        let seen = self.observed.get_mut(&at);
        seen.is_some_and(|seen| !std::mem::replace(&mut seen.is_met, true))
    }

    /// Whether a node's clock has been seen since a reader began.
    pub(crate) fn has_met(&self, at: CommitTs, node: NodeId) -> bool {
        self.observed.get(&at).is_some_and(|seen| seen.of_nodes.contains_key(&node))
    }

    /// What a node must know to answer a read of a range. A time of the past is read as it was.
    pub(crate) fn when(&self, at: CommitTs, from: (NodeId, RangeId), bound: u64) -> When {
        match self.observed.get(&at) {
            None => When::exactly(at),
            Some(seen) => {
                let limit = CommitTs(at.0 + braid_env::clock::Hlc::from_micros(bound));
                let observed = seen.of_nodes.get(&from.0).copied();
                let served = seen.of_ranges.get(&from.1).copied();
                When { at, limit, observed, served, met: seen.met.clone() }
            }
        }
    }

    /// A node's clock has shown this when it answered; a range, if it has read there, and of what
    /// it was certain then.
    pub(crate) fn observe(
        &mut self,
        at: CommitTs,
        (node, range): (NodeId, Option<(RangeId, CommitTs)>),
        clock: CommitTs,
    ) {
        if let Some(seen) = self.observed.get_mut(&at) {
            seen.of_nodes.entry(node).or_insert(clock);
            if let Some((range, certain)) = range {
                seen.of_ranges.entry(range).or_insert(certain);
            }
        }
    }
}
