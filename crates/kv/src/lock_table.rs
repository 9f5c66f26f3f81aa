//! Locks of transactions on keys and key spans, in memory, with fair waiting and deadlock
//! detection.
//!
//! ```text
//!   points   k1 → {T3 exclusive}   k7 → {T4 shared, T5 shared}
//!   spans    [k2, k9) exclusive by T6
//!   waiting  T8 wants k7 exclusive   (behind T4, T5)
//! ```
//!
//! Two requests conflict when their spans overlap, at least one is exclusive, and they belong to
//! different transactions. A request waits while it conflicts with a held lock, or with a request
//! that waits already (so that a stream of shared locks cannot starve an exclusive one); a
//! transaction that already holds a lock there passes by those waiting, since they wait for it.
//!
//! *Deadlock*: before a transaction starts to wait, the graph "waits for" is searched from it. If
//! it leads back, the request fails with the circle as text; the transaction that closed the
//! circle is the victim, as in PostgreSQL.
//!
//! All state lives in one mutex; no I/O happens under it. Waiting uses one condition variable per
//! waiter, so that a release wakes only those that can go on.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_lsm::KeySpan;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use crate::error::{KvError, KvResult};

/// Identity of a transaction within this process. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TxnId(pub u64);

/// How strong a lock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// Others may read and lock shared; nobody may write.
    Shared,
    /// Nobody else may lock.
    Exclusive,
}

/// What to do when a lock is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Wait until it is free.
    Block,
    /// Fail with [`KvError::LockNotAvailable`].
    NoWait,
    /// Do not lock; the caller skips the row.
    SkipLocked,
}

/// What is asked for or held: one key, or a span of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Key(Bytes),
    Span(KeySpan),
}

impl Target {
    fn overlaps(&self, other: &Target) -> bool {
        match (self, other) {
            (Target::Key(a), Target::Key(b)) => a == b,
            (Target::Key(k), Target::Span(s)) | (Target::Span(s), Target::Key(k)) => s.contains(k),
            (Target::Span(a), Target::Span(b)) => a.start < b.end && b.start < a.end,
        }
    }
}

/// The table. One per store.
#[derive(Default)]
pub struct LockTable {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    points: BTreeMap<Bytes, Vec<(TxnId, LockMode)>>,
    spans: Vec<(KeySpan, TxnId, LockMode)>,
    /// In order of arrival.
    waiting: Vec<Request>,
    next_ticket: u64,
}

struct Request {
    ticket: u64,
    txn: TxnId,
    target: Target,
    mode: LockMode,
    granted: Arc<Signal>,
}

#[derive(Default)]
struct Signal {
    done: AtomicBool,
    wake: Condvar,
}

fn conflict(a: LockMode, b: LockMode) -> bool {
    a == LockMode::Exclusive || b == LockMode::Exclusive
}

impl State {
    /// Transactions that hold something in the way of the request.
    fn blockers(&self, txn: TxnId, target: &Target, mode: LockMode) -> HashSet<TxnId> {
        let mut out = HashSet::new();
        let mut check = |holder: TxnId, held: LockMode| {
            if holder != txn && conflict(held, mode) {
                out.insert(holder);
            }
        };
        match target {
            Target::Key(key) => {
                for &(holder, held) in self.points.get(key).into_iter().flatten() {
                    check(holder, held);
                }
            }
            Target::Span(span) => {
                let range = (
                    Bound::Included(span.start.as_ref() as &[u8]),
                    Bound::Excluded(span.end.as_ref() as &[u8]),
                );
                for (_, holders) in self.points.range::<[u8], _>(range) {
                    for &(holder, held) in holders {
                        check(holder, held);
                    }
                }
            }
        }
        for (span, holder, held) in &self.spans {
            if target.overlaps(&Target::Span(span.clone())) {
                check(*holder, *held);
            }
        }
        out
    }

    /// Whether `txn` already holds something that overlaps the target.
    fn holds_overlap(&self, txn: TxnId, target: &Target) -> bool {
        let point = match target {
            Target::Key(key) => {
                self.points.get(key).is_some_and(|h| h.iter().any(|(t, _)| *t == txn))
            }
            Target::Span(_) => false,
        };
        point
            || self
                .spans
                .iter()
                .any(|(s, t, _)| *t == txn && target.overlaps(&Target::Span(s.clone())))
    }

    /// Requests that arrived before `ticket` and must be served first.
    fn waiting_before(
        &self,
        ticket: u64,
        txn: TxnId,
        target: &Target,
        mode: LockMode,
    ) -> impl Iterator<Item = TxnId> {
        let passes = self.holds_overlap(txn, target);
        self.waiting
            .iter()
            .take_while(move |r| r.ticket < ticket)
            .filter(move |r| {
                !passes && r.txn != txn && conflict(r.mode, mode) && r.target.overlaps(target)
            })
            .map(|r| r.txn)
    }

    fn grant(&mut self, txn: TxnId, target: &Target, mode: LockMode) {
        match target {
            Target::Key(key) => {
                let holders = self.points.entry(key.clone()).or_default();
                match holders.iter_mut().find(|(t, _)| *t == txn) {
                    Some((_, held)) => *held = (*held).max(mode),
                    None => holders.push((txn, mode)),
                }
            }
            Target::Span(span) => self.spans.push((span.clone(), txn, mode)),
        }
    }

    /// Whom each waiting transaction waits for.
    fn waits_for(&self) -> HashMap<TxnId, HashSet<TxnId>> {
        let mut graph: HashMap<TxnId, HashSet<TxnId>> = HashMap::new();
        for r in &self.waiting {
            let edges = graph.entry(r.txn).or_default();
            edges.extend(self.blockers(r.txn, &r.target, r.mode));
            edges.extend(self.waiting_before(r.ticket, r.txn, &r.target, r.mode));
        }
        graph
    }

    /// The circle of transactions that waiting `from` would close, if any.
    fn cycle(&self, from: TxnId) -> Option<Vec<TxnId>> {
        let graph = self.waits_for();
        let mut path = vec![from];
        let mut seen = HashSet::new();
        fn walk(
            graph: &HashMap<TxnId, HashSet<TxnId>>,
            from: TxnId,
            path: &mut Vec<TxnId>,
            seen: &mut HashSet<TxnId>,
        ) -> bool {
            let here = *path.last().expect("path starts with one transaction");
            for &next in graph.get(&here).into_iter().flatten() {
                if next == from {
                    return true;
                }
                if seen.insert(next) {
                    path.push(next);
                    if walk(graph, from, path, seen) {
                        return true;
                    }
                    path.pop();
                }
            }
            false
        }
        walk(&graph, from, &mut path, &mut seen).then_some(path)
    }

    /// Grants every waiting request that nothing is in the way of any more.
    fn wake(&mut self) {
        let mut i = 0;
        while i < self.waiting.len() {
            let r = &self.waiting[i];
            let free = self.blockers(r.txn, &r.target, r.mode).is_empty()
                && self.waiting_before(r.ticket, r.txn, &r.target, r.mode).next().is_none();
            if free {
                let r = self.waiting.remove(i);
                self.grant(r.txn, &r.target, r.mode);
                r.granted.done.store(true, Ordering::Release);
                r.granted.wake.notify_one();
            } else {
                i += 1;
            }
        }
    }
}

impl LockTable {
    /// Locks the target. Blocks according to `wait`. `false`: skipped because it was locked.
    pub(crate) fn acquire(
        &self,
        txn: TxnId,
        target: Target,
        mode: LockMode,
        wait: Wait,
        timeout: Option<Duration>,
        cancel: &AtomicBool,
    ) -> KvResult<bool> {
        let mut state = self.state.lock();
        let ticket = state.next_ticket;
        let free = state.blockers(txn, &target, mode).is_empty()
            && (state.waiting.is_empty()
                || state.waiting_before(ticket, txn, &target, mode).next().is_none());
        if free {
            state.grant(txn, &target, mode);
            return Ok(true);
        }
        match wait {
            Wait::NoWait => return Err(KvError::LockNotAvailable),
            Wait::SkipLocked => return Ok(false),
            Wait::Block => {}
        }
        state.next_ticket += 1;
        let granted = Arc::new(Signal::default());
        state.waiting.push(Request { ticket, txn, target, mode, granted: Arc::clone(&granted) });
        if let Some(cycle) = state.cycle(txn) {
            state.waiting.retain(|r| r.ticket != ticket);
            state.wake();
            let names: Vec<String> = cycle.iter().map(|t| format!("transaction {}", t.0)).collect();
            return Err(KvError::Deadlock { cycle: names.join(" waits for ") });
        }
        // Polling the cancel flag costs nothing while nobody waits, and saves every canceller
        // from knowing which lock its victim sleeps on.
        const POLL: Duration = Duration::from_millis(20);
        let mut waited = Duration::ZERO;
        loop {
            if granted.done.load(Ordering::Acquire) {
                return Ok(true);
            }
            let expired = timeout.is_some_and(|t| waited >= t);
            if cancel.load(Ordering::Relaxed) || expired {
                state.waiting.retain(|r| r.ticket != ticket);
                state.wake();
                return Err(if expired { KvError::LockNotAvailable } else { KvError::Canceled });
            }
            if granted.wake.wait_for(&mut state, POLL).timed_out() {
                waited += POLL;
            }
        }
    }

    /// Releases everything that `txn` holds: `keys` and, if `has_spans`, its spans.
    pub(crate) fn release<'a>(
        &self,
        txn: TxnId,
        keys: impl Iterator<Item = &'a Bytes>,
        has_spans: bool,
    ) {
        let mut state = self.state.lock();
        for key in keys {
            if let Some(holders) = state.points.get_mut(key) {
                holders.retain(|(t, _)| *t != txn);
                if holders.is_empty() {
                    state.points.remove(key);
                }
            }
        }
        if has_spans {
            state.spans.retain(|(_, t, _)| *t != txn);
        }
        if !state.waiting.is_empty() {
            state.wake();
        }
    }

    /// The table as text, one line per lock or waiting request, in key order.
    pub fn describe(&self) -> String {
        let state = self.state.lock();
        let mut out = String::new();
        for (key, holders) in &state.points {
            for (txn, mode) in holders {
                out.push_str(&format!("{} held {mode:?} by {}\n", key.escape_ascii(), txn.0));
            }
        }
        for (s, txn, mode) in &state.spans {
            let (start, end) = (s.start.escape_ascii(), s.end.escape_ascii());
            out.push_str(&format!("[{start}, {end}) held {mode:?} by {}\n", txn.0));
        }
        for r in &state.waiting {
            let target = match &r.target {
                Target::Key(k) => k.escape_ascii().to_string(),
                Target::Span(s) => {
                    format!("[{}, {})", s.start.escape_ascii(), s.end.escape_ascii())
                }
            };
            out.push_str(&format!("{target} wanted {:?} by {}\n", r.mode, r.txn.0));
        }
        out
    }
}
