//! The lock table: granting, waiting, releasing. See the [folder's page](super) for the picture.
//!
//! Invariants, under the mutex:
//! 1. Locks that are held by different transactions and overlap do not exclude each other.
//! 2. A request in a queue has something in its way ([`State::each_in_the_way`]): whatever removes
//!    a lock or a request looks at those who may go on.
//! 3. `blocking` holds at least every transaction that somebody waits for.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_env::clock::{Clock, WallClock};
use braid_lsm::KeySpan;
use bytes::Bytes;
use foldhash::HashMap;
use parking_lot::{Condvar, Mutex};

use super::LockMode;
use super::spans::SpanLocks;
use crate::error::{KvError, KvResult};
use crate::spans::{LockOne, ShownLock};

/// Of a transaction's number so many bits count; those above say who has begun it, if there are
/// several who do.
pub const TXN_COUNTER_BITS: u32 = 40;

/// Identity of a transaction. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TxnId(pub u64);

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
pub enum Target {
    /// One key, present or not.
    Key(Bytes),
    /// Every key of a span, present or not.
    Span(KeySpan),
}

impl Target {
    pub(crate) fn overlaps(&self, other: &Target) -> bool {
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
pub(super) struct State {
    /// Keys that are held or waited for.
    points: BTreeMap<Bytes, Point>,
    spans: SpanLocks,
    /// Requests for spans, in order of arrival.
    span_waiters: BTreeMap<u64, Arc<Request>>,
    /// All waiting requests by transaction.
    pub(super) waiting: HashMap<TxnId, Vec<Arc<Request>>>,
    /// Transactions that were in somebody's way since they began.
    pub(super) blocking: HashSet<TxnId>,
    next_ticket: u64,
}

#[derive(Default)]
struct Point {
    holders: Vec<(TxnId, LockMode)>,
    /// Those who pass first, then in order of arrival.
    queue: VecDeque<Arc<Request>>,
    /// How many of them merely need the key.
    key_shares: usize,
}

/// What asking for a lock comes to, without waiting for it.
pub enum Asked {
    /// It is held.
    Granted,
    /// It is not free, and the asker passes over it.
    Skipped,
    /// It is not free. The request stands in its queue until it is granted or given up.
    Waits(LockWait),
}

/// A request that waits in the table.
pub struct LockWait(pub(super) Arc<Request>);

impl LockWait {
    /// Whether the lock is held now.
    pub fn is_granted(&self) -> bool {
        self.0.is_granted()
    }
}

/// Somebody waits.
pub(super) struct Request {
    ticket: u64,
    pub(super) txn: TxnId,
    pub(super) target: Target,
    mode: LockMode,
    /// It does not wait for others who wait, since they wait for it.
    passes: AtomicBool,
    granted: Mutex<bool>,
    wake: Condvar,
}

impl State {
    /// Calls `f` with the transactions in the way of a request. Of those waiting before it in a
    /// queue the nearest that wants to write stands for all before that one: it waits for them.
    pub(super) fn each_in_the_way(
        &self,
        r: &Request,
        f: &mut dyn FnMut(TxnId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let stops = |holder: TxnId, held: LockMode| holder != r.txn && held.excludes(r.mode);
        match &r.target {
            Target::Key(key) => {
                if let Some(point) = self.points.get(key) {
                    point.in_the_way(r, f)?;
                }
                for h in self.spans.at(key) {
                    if stops(h.txn, h.mode) {
                        f(h.txn)?;
                    }
                }
            }
            Target::Span(span) => {
                for (_, point) in self.points.range::<[u8], _>(bounds(span)) {
                    point.in_the_way(r, f)?;
                }
                for (_, _, holders) in self.spans.overlapping(span) {
                    for h in holders {
                        if stops(h.txn, h.mode) {
                            f(h.txn)?;
                        }
                    }
                }
            }
        }
        if !r.passes() {
            for (_, before) in self.span_waiters.range(..r.ticket) {
                if stops(before.txn, before.mode) && before.target.overlaps(&r.target) {
                    f(before.txn)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn is_free(&self, r: &Request) -> bool {
        self.each_in_the_way(r, &mut |_| ControlFlow::Break(())).is_continue()
    }

    /// Whether `txn` holds a lock that is in the way of the request.
    pub(super) fn holds_up(&self, txn: TxnId, r: &Request) -> bool {
        let stops = |mode: LockMode| mode.excludes(r.mode);
        let own = |p: &Point| p.holders.iter().any(|(t, mode)| *t == txn && stops(*mode));
        match &r.target {
            Target::Key(key) => {
                self.points.get(key).is_some_and(own)
                    || self.spans.at(key).iter().any(|h| h.txn == txn && stops(h.mode))
            }
            Target::Span(span) => {
                self.points.range::<[u8], _>(bounds(span)).any(|(_, p)| own(p))
                    || self.spans.overlapping(span).any(|(_, _, holders)| {
                        holders.iter().any(|h| h.txn == txn && stops(h.mode))
                    })
            }
        }
    }

    /// Lets a request that waits go before others that wait.
    pub(super) fn prefer(&mut self, r: &Arc<Request>) {
        r.passes.store(true, Ordering::Relaxed);
        if let Target::Key(key) = &r.target
            && let Some(point) = self.points.get_mut(key)
        {
            point.take_out(r);
            point.push(r);
        }
    }

    /// Whether somebody waits for a part of the target.
    fn is_wanted(&self, target: &Target) -> bool {
        let queued = match target {
            Target::Key(key) => self.points.get(key).is_some_and(|p| !p.queue.is_empty()),
            Target::Span(span) => {
                self.points.range::<[u8], _>(bounds(span)).any(|(_, p)| !p.queue.is_empty())
            }
        };
        queued || self.span_waiters.values().any(|w| w.target.overlaps(target))
    }

    fn grant(&mut self, txn: TxnId, target: &Target, mode: LockMode) {
        match target {
            Target::Key(key) => {
                let holders = &mut self.points.entry(key.clone()).or_default().holders;
                match holders.iter_mut().find(|(t, _)| *t == txn) {
                    Some((_, held)) => *held = (*held).max(mode),
                    None => holders.push((txn, mode)),
                }
            }
            Target::Span(span) => self.spans.insert(span, txn, mode),
        }
        if !self.waiting.is_empty() && self.is_wanted(target) {
            self.blocking.insert(txn);
        }
    }

    fn enqueue(&mut self, r: &Arc<Request>) {
        self.waiting.entry(r.txn).or_default().push(r.clone());
        match &r.target {
            Target::Key(key) => {
                self.points.entry(key.clone()).or_default().push(r);
            }
            Target::Span(_) => drop(self.span_waiters.insert(r.ticket, r.clone())),
        }
        let mut blockers = Vec::new();
        let _ = self.each_in_the_way(r, &mut |txn| {
            blockers.push(txn);
            ControlFlow::Continue(())
        });
        self.blocking.extend(blockers);
    }

    /// Takes a request out of all lists.
    fn dequeue(&mut self, r: &Request) {
        match &r.target {
            Target::Key(key) => {
                if let Some(point) = self.points.get_mut(key) {
                    point.take_out(r);
                    if point.is_unused() {
                        self.points.remove(key);
                    }
                }
            }
            Target::Span(_) => drop(self.span_waiters.remove(&r.ticket)),
        }
        if let Some(own) = self.waiting.get_mut(&r.txn) {
            own.retain(|other| other.ticket != r.ticket);
            if own.is_empty() {
                self.waiting.remove(&r.txn);
            }
        }
    }

    /// Grants what waits for a part of `target` and has nothing in its way any more.
    pub(super) fn wake(&mut self, target: &Target) {
        match target {
            Target::Key(key) => self.wake_key(key),
            Target::Span(span) => {
                let keys: Vec<Bytes> = self
                    .points
                    .range::<[u8], _>(bounds(span))
                    .filter(|(_, p)| !p.queue.is_empty())
                    .map(|(key, _)| key.clone())
                    .collect();
                for key in keys {
                    self.wake_key(&key);
                }
            }
        }
        self.wake_spans(target);
    }

    fn wake_key(&mut self, key: &Bytes) {
        let mut at = 0;
        while let Some(r) = self.points.get(key).and_then(|p| p.queue.get(at)).cloned() {
            if self.is_free(&r) {
                self.go_on(&r);
                continue;
            }
            at += 1;
            // Behind one who wants to write only those can go on who merely need the key.
            let all_wait = r.mode == LockMode::Exclusive || self.points[key].key_shares == 0;
            if r.mode.owns_writes() && !r.passes() && all_wait {
                return;
            }
        }
    }

    fn wake_spans(&mut self, target: &Target) {
        let candidates: Vec<Arc<Request>> =
            self.span_waiters.values().filter(|r| r.target.overlaps(target)).cloned().collect();
        for r in candidates {
            if self.is_free(&r) {
                self.go_on(&r);
            }
        }
    }

    fn go_on(&mut self, r: &Arc<Request>) {
        self.dequeue(r);
        self.grant(r.txn, &r.target, r.mode);
        *r.granted.lock() = true;
        r.wake.notify_one();
    }
}

impl Request {
    pub(super) fn is_granted(&self) -> bool {
        *self.granted.lock()
    }

    pub(super) fn passes(&self) -> bool {
        self.passes.load(Ordering::Relaxed)
    }
}

impl Point {
    fn is_unused(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    fn push(&mut self, r: &Arc<Request>) {
        let at = match r.passes() {
            true => self.queue.iter().take_while(|other| other.passes()).count(),
            false => self.queue.len(),
        };
        self.queue.insert(at, r.clone());
        self.key_shares += usize::from(r.mode == LockMode::KeyShare);
    }

    /// Who goes on is the first in most cases, and found without a look at the others.
    fn take_out(&mut self, r: &Request) {
        let is_it = |other: &Arc<Request>| {
            looked_at_one();
            other.ticket == r.ticket
        };
        if let Some(at) = self.queue.iter().position(is_it) {
            self.queue.remove(at);
            self.key_shares -= usize::from(r.mode == LockMode::KeyShare);
        }
    }

    fn in_the_way(
        &self,
        r: &Request,
        f: &mut dyn FnMut(TxnId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for &(holder, held) in &self.holders {
            looked_at_one();
            if holder != r.txn && held.excludes(r.mode) {
                f(holder)?;
            }
        }
        if r.passes() {
            return ControlFlow::Continue(());
        }
        // Behind those who pass, tickets are in order: whoever came later is not looked at.
        let end = self.queue.partition_point(|b| b.passes() || b.ticket < r.ticket);
        let older = |b: &&Arc<Request>| {
            looked_at_one();
            b.ticket < r.ticket && b.txn != r.txn
        };
        for before in self.queue.range(..end).rev().filter(older) {
            if before.mode.excludes(r.mode) {
                f(before.txn)?;
            }
            if before.mode.owns_writes() && !before.passes() {
                break;
            }
        }
        ControlFlow::Continue(())
    }
}

fn bounds(span: &KeySpan) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let (start, end): (&[u8], &[u8]) = (span.start.as_ref(), span.end.as_ref());
    // A map refuses a range whose end lies before its start.
    (Bound::Included(start), Bound::Excluded(end.max(start)))
}

/// How often a waiter looks at its cancel flag. Nobody who cancels needs to know where it sleeps.
const POLL: Duration = Duration::from_millis(50);

impl LockTable {
    /// Locks the target. Blocks according to `wait`; `waited` grows by the nanoseconds of that.
    /// `false`: skipped because it was locked.
    pub(crate) fn acquire(
        &self,
        request: LockOne<'_>,
        cancel: &AtomicBool,
        waited: &mut u64,
    ) -> KvResult<bool> {
        let LockOne { txn, item, wait, timeout, .. } = request;
        match self.ask(txn, item.target.clone(), item.mode, wait)? {
            Asked::Granted => Ok(true),
            Asked::Skipped => Ok(false),
            Asked::Waits(LockWait(request)) => {
                let begun = WallClock.monotonic_nanos();
                let granted = self.wait(&request, timeout, cancel);
                *waited += (WallClock.monotonic_nanos() - begun).max(1);
                granted
            }
        }
    }

    /// Grants the lock, or says what is to be done instead. Never blocks.
    ///
    /// # Errors
    /// [`KvError::LockNotAvailable`] and [`KvError::Deadlock`].
    pub fn ask(&self, txn: TxnId, target: Target, mode: LockMode, wait: Wait) -> KvResult<Asked> {
        let mut state = self.state.lock();
        let request = Request {
            ticket: state.next_ticket,
            txn,
            target,
            mode,
            passes: AtomicBool::new(false),
            granted: Mutex::new(false),
            wake: Condvar::new(),
        };
        if state.is_free(&request) {
            state.grant(txn, &request.target, mode);
            return Ok(Asked::Granted);
        }
        match wait {
            Wait::NoWait => return Err(KvError::LockNotAvailable),
            Wait::SkipLocked => return Ok(Asked::Skipped),
            Wait::Block => {}
        }
        state.next_ticket += 1;
        let request = Arc::new(request);
        state.enqueue(&request);
        if let Some(cycle) = state.unsolvable_cycle(txn) {
            state.dequeue(&request);
            state.wake(&request.target);
            let names: Vec<String> = cycle.iter().map(|t| format!("transaction {}", t.0)).collect();
            return Err(KvError::Deadlock { cycle: names.join(" waits for ") });
        }
        Ok(Asked::Waits(LockWait(request)))
    }

    /// Takes a request back that waits. `false`: too late, it has been granted.
    pub fn take_back(&self, wait: &LockWait) -> bool {
        self.give_up(&wait.0)
    }

    /// Takes a request back. `false`: too late, it has been granted.
    pub(super) fn give_up(&self, request: &Request) -> bool {
        let mut state = self.state.lock();
        if request.is_granted() {
            return false;
        }
        state.dequeue(request);
        state.wake(&request.target);
        true
    }

    /// Whether a transaction holds a lock that is in the way of a request.
    pub fn is_held_up_by(&self, wait: &LockWait, txn: TxnId) -> bool {
        self.state.lock().holds_up(txn, &wait.0)
    }

    /// Lets a request go before others that wait: it would wait for itself behind them.
    pub fn let_pass(&self, wait: &LockWait) {
        let mut state = self.state.lock();
        if !wait.is_granted() {
            state.prefer(&wait.0);
            state.wake(&wait.0.target);
        }
    }

    /// Whom a transaction waits for.
    pub fn whom(&self, txn: TxnId) -> Vec<TxnId> {
        self.state.lock().waits_for(txn)
    }

    fn wait(
        &self,
        request: &Request,
        timeout: Option<Duration>,
        cancel: &AtomicBool,
    ) -> KvResult<bool> {
        let mut waited = Duration::ZERO;
        loop {
            let expired = timeout.is_some_and(|t| waited >= t);
            if expired || cancel.load(Ordering::Relaxed) {
                if !self.give_up(request) {
                    return Ok(true);
                }
                return Err(if expired { KvError::LockTimeout } else { KvError::Canceled });
            }
            let mut granted = request.granted.lock();
            if *granted {
                return Ok(true);
            }
            let step = timeout.map_or(POLL, |t| POLL.min(t - waited));
            if request.wake.wait_for(&mut granted, step).timed_out() {
                waited += step;
            }
        }
    }

    /// Takes the locks on keys from `at` on out, into a table of their own. Nobody may wait.
    pub fn split_off(&self, at: &Bytes) -> LockTable {
        let mut state = self.state.lock();
        debug_assert!(state.waiting.is_empty(), "those who wait are told to ask again first");
        let points = state.points.split_off(at);
        let spans = state.spans.split_off(at);
        let (blocking, next_ticket) = (state.blocking.clone(), state.next_ticket);
        let right = State { points, spans, blocking, next_ticket, ..State::default() };
        LockTable { state: Mutex::new(right) }
    }

    /// Releases locks of `txn`. `ended`: it holds and wants nothing else.
    pub fn release<'a>(&self, txn: TxnId, targets: impl Iterator<Item = &'a Target>, ended: bool) {
        let mut state = self.state.lock();
        let mut wanted = Vec::new();
        for target in targets {
            match target {
                Target::Key(key) => {
                    let Some(point) = state.points.get_mut(key) else { continue };
                    point.holders.retain(|(t, _)| *t != txn);
                    if point.is_unused() {
                        state.points.remove(key);
                    }
                }
                Target::Span(span) => state.spans.remove(span, txn),
            }
            if !state.waiting.is_empty() {
                wanted.push(target);
            }
        }
        if ended {
            state.blocking.remove(&txn);
        }
        for target in wanted {
            if state.waiting.is_empty() {
                break;
            }
            state.wake(target);
        }
    }

    /// What a transaction holds of these targets, and how strongly; of a span the parts.
    pub fn held_by(&self, txn: TxnId, targets: &[Target]) -> Vec<(Target, LockMode)> {
        let state = self.state.lock();
        let mut held = Vec::new();
        for target in targets {
            match target {
                Target::Key(key) => {
                    let holders = state.points.get(key).into_iter().flat_map(|p| &p.holders);
                    let own = holders.filter(|(holder, _)| *holder == txn);
                    held.extend(own.map(|(_, mode)| (target.clone(), *mode)));
                }
                Target::Span(span) => {
                    for (start, end, holders) in state.spans.overlapping(span) {
                        let part = Target::Span(KeySpan::new(start.clone(), end.clone()));
                        let own = holders.iter().filter(|holder| holder.txn == txn);
                        held.extend(own.map(|holder| (part.clone(), holder.mode)));
                    }
                }
            }
        }
        held
    }

    /// Number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting.values().map(Vec::len).sum()
    }

    /// All locks, then all requests that wait, in order of arrival.
    pub fn all(&self) -> Vec<ShownLock> {
        let state = self.state.lock();
        let mut out = Vec::new();
        for (key, point) in &state.points {
            let target = Target::Key(key.clone());
            out.extend(point.holders.iter().map(|(txn, mode)| ShownLock {
                txn: *txn,
                target: target.clone(),
                mode: *mode,
                granted: true,
            }));
        }
        for (start, end, holders) in state.spans.all() {
            let target = Target::Span(KeySpan::new(start.to_vec(), end.to_vec()));
            out.extend(holders.iter().map(|h| ShownLock {
                txn: h.txn,
                target: target.clone(),
                mode: h.mode,
                granted: true,
            }));
        }
        let mut waiting: Vec<_> = state.waiting.values().flatten().collect();
        waiting.sort_by_key(|r| r.ticket);
        out.extend(waiting.into_iter().map(|r| ShownLock {
            txn: r.txn,
            target: r.target.clone(),
            mode: r.mode,
            granted: false,
        }));
        out
    }

    /// The table as text, one line per lock or waiting request, in key order.
    pub fn describe(&self) -> String {
        let state = self.state.lock();
        let mut out = String::new();
        for (key, point) in &state.points {
            for (txn, mode) in &point.holders {
                out.push_str(&format!("{} held {mode:?} by {}\n", key.escape_ascii(), txn.0));
            }
        }
        for (start, end, holders) in state.spans.all() {
            for h in holders {
                let (start, end) = (start.escape_ascii(), end.escape_ascii());
                out.push_str(&format!("[{start}, {end}) held {:?} by {}\n", h.mode, h.txn.0));
            }
        }
        let mut waiting: Vec<_> = state.waiting.values().flatten().collect();
        waiting.sort_by_key(|r| r.ticket);
        for r in waiting {
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

/// Counts, in tests, holders and requests that are looked at.
#[cfg(test)]
fn looked_at_one() {
    tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
}

#[cfg(not(test))]
fn looked_at_one() {}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        pub(super) static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    /// What 500 clients on one row cost the table, from the first that asks to the last that ends.
    fn a_crowd(clients: u64, mode: LockMode) -> usize {
        let table = LockTable::default();
        let row = Target::Key(Bytes::from_static(b"hot"));
        LOOKED_AT.set(0);
        for n in 0..clients {
            let asked = table.ask(TxnId(n), row.clone(), mode, Wait::Block).expect("no circle");
            assert_eq!(matches!(asked, Asked::Granted), n == 0);
        }
        for n in 0..clients {
            assert_eq!(table.waiting() as u64, clients - n - 1);
            table.release(TxnId(n), std::iter::once(&row), true);
        }
        assert_eq!(table.describe(), "");
        LOOKED_AT.get()
    }

    #[test]
    fn a_crowd_on_one_key_costs_each_the_same() {
        for mode in [LockMode::NoKeyExclusive, LockMode::Exclusive] {
            let (few, many) = (a_crowd(50, mode), a_crowd(500, mode));
            // Ten times as many, and the first one finds nobody.
            assert!(many <= 11 * few, "{mode:?}: {few} for 50, {many} for 500");
            assert!(many <= 500 * 10, "{mode:?}: {many} for 500");
        }
    }
}
