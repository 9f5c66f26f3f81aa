//! Locks that a node grants to its own transactions, under a lease on them.
//!
//! ```text
//!   lease 3   |from ───────────────── upto|       commits that rely on it happen in between
//!   a transaction   locks, reads, commits         and nobody else is asked about that
//!   recalled        close ─ convert ─ drain ─ gone
//! ```
//! Who has such a lease, and who may want it back, is decided elsewhere (`braid_catalog::leases`).
//! While it lives, nobody takes a lock that excludes the shared locks under it, and nobody writes
//! the keys that transactions [depend on](Txn::depend_on). So both need not be asked for where the
//! keys are kept: a commit says that it must not happen after `upto`, and that is all.
//!
//! To give it back is to *convert*: each lock under it is taken where the keys are kept, for the
//! transaction that has it. That is free, since all who might have taken it wait for this. Commits
//! that are on their way rely on the lease to their end, so they are waited for; they fail when it
//! is over, so nobody waits for longer than that. What could not be converted is lost, as the locks
//! of a range whose lease has moved: the transaction can only be run again.
//!
//! On a node that is alone there is none of this.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use braid_env::clock::Hlc;
use braid_env::turns;
use braid_lsm::CommitTs;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{LockMode, Target, TxnId, Wait};
use crate::error::{Conflict, KvError, KvResult};
use crate::spans::{LeaseHome, LockItem, LockMany, ShownLock, Spans};
use crate::txn::{Held, State, Txn};

/// A commit that writes more than so many keys takes its locks where the keys are: it may be on its
/// way for longer than a lease lives, and whoever wants the lease would wait for it.
const MOST_WRITES: usize = 1_000;
/// Who waits for commits looks so often what time it is.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A lease on locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockLease {
    /// Grows with each that is not the one before for longer.
    pub number: u64,
    /// What it promises has been so since then,
    pub from: CommitTs,
    /// and is so up to there.
    pub upto: CommitTs,
}

/// Up to when a lease may be relied on. It grows as long as that is got for longer, so that a
/// commit into many ranges may take longer than one is granted for.
#[derive(Clone, Debug, Default)]
pub struct LeaseLimit(Arc<AtomicU64>);

impl LeaseLimit {
    /// As of now.
    pub fn now(&self) -> CommitTs {
        CommitTs(self.0.load(Ordering::SeqCst))
    }
}

/// What a node has of leases on locks. See the [module's page](self).
pub struct LockLeases {
    home: LeaseHome,
    state: Mutex<Kept>,
    /// Of commits on their way there are fewer.
    fewer: Condvar,
    /// Held by who gets one, or gives it back.
    keeping: Mutex<()>,
}

#[derive(Default)]
struct Kept {
    current: Option<LockLease>,
    /// Of that one.
    limit: LeaseLimit,
    /// It is being given back: nobody relies on it anew.
    closing: bool,
    /// Of the last one.
    number: u64,
    /// Who has locks under it.
    holders: BTreeMap<TxnId, Weak<Txn>>,
    /// Commits that rely on it.
    committing: usize,
    /// When the last one began, and when it was given back, in microseconds.
    begun_at: u64,
    ended_at: Option<u64>,
}

impl Kept {
    fn live(&self, now_micros: u64) -> Option<LockLease> {
        let now = CommitTs(Hlc::from_micros(now_micros));
        self.current.filter(|lease| !self.closing && now <= lease.upto)
    }
}

/// A commit that relies on a lease, until it is dropped.
struct Relying<'a> {
    leases: &'a LockLeases,
    lease: LockLease,
    limit: LeaseLimit,
}

impl Drop for Relying<'_> {
    fn drop(&mut self) {
        self.leases.state.lock().committing -= 1;
        self.leases.fewer.notify_all();
    }
}

/// What a commit relies on.
#[derive(Default)]
pub(crate) struct Reliance<'a> {
    relying: Option<Relying<'a>>,
    /// Nothing of what it depends on has changed or will.
    fixed: bool,
}

impl Reliance<'_> {
    /// The commit must not happen after that.
    pub(crate) fn not_after(&self) -> Option<LeaseLimit> {
        self.relying.as_ref().map(|relying| relying.limit.clone())
    }

    /// Whether keys that it depends on need not be looked at.
    pub(crate) fn fixes_dependencies(&self) -> bool {
        self.fixed
    }
}

impl LockLeases {
    pub(crate) fn new(home: LeaseHome) -> LockLeases {
        let (state, fewer, keeping) = (Mutex::default(), Condvar::new(), Mutex::new(()));
        LockLeases { home, state, fewer, keeping }
    }

    /// Whose they are.
    pub fn home(&self) -> LeaseHome {
        self.home
    }

    /// Keeps others from getting a lease or giving it back.
    pub fn keep(&self) -> MutexGuard<'_, ()> {
        turns::lock(&self.keeping)
    }

    /// The lease, if it may be relied on at this time of the wall clock.
    pub fn live(&self, now_micros: u64) -> Option<LockLease> {
        self.state.lock().live(now_micros)
    }

    /// The lease, whatever the time is.
    pub fn current(&self) -> Option<LockLease> {
        self.state.lock().current
    }

    /// Whether transactions have locks under it.
    pub fn is_in_use(&self) -> bool {
        let state = self.state.lock();
        state.committing > 0 || !state.holders.is_empty()
    }

    /// When the last one began, and when it was given back, in microseconds.
    pub fn last(&self) -> (u64, Option<u64>) {
        let state = self.state.lock();
        (state.begun_at, state.ended_at)
    }

    /// It was granted: a new one, as [`LockLeases::keep`] is held and there is none.
    pub fn begin(&self, (from, upto): (CommitTs, CommitTs), now_micros: u64) -> u64 {
        let mut state = self.state.lock();
        state.number += 1;
        let number = state.number;
        state.current = Some(LockLease { number, from, upto });
        state.limit = LeaseLimit(Arc::new(AtomicU64::new(upto.0)));
        (state.closing, state.begun_at) = (false, now_micros);
        number
    }

    /// It was granted for longer, before it was over.
    pub fn extend(&self, upto: CommitTs) {
        let mut state = self.state.lock();
        if let Some(lease) = &mut state.current {
            lease.upto = lease.upto.max(upto);
            state.limit.0.fetch_max(upto.0, Ordering::SeqCst);
        }
    }

    /// A commit begins that relies on it; on the lease of this number, if it has locks under that.
    fn rely(&self, number: Option<u64>, now_micros: u64) -> Option<Relying<'_>> {
        let mut state = self.state.lock();
        let lease = state.live(now_micros)?;
        if number.is_some_and(|number| number != lease.number) {
            return None;
        }
        state.committing += 1;
        Some(Relying { leases: self, lease, limit: state.limit.clone() })
    }

    /// Whether it is, or was, being given back: locks under it are taken elsewhere.
    fn is_closing(&self, number: u64) -> bool {
        let state = self.state.lock();
        state.closing && state.current.is_some_and(|lease| lease.number == number)
    }

    fn note_holder(&self, number: u64, txn: &Arc<Txn>, now_micros: u64) -> bool {
        let mut state = self.state.lock();
        let is_it = state.live(now_micros).is_some_and(|lease| lease.number == number);
        if is_it {
            state.holders.entry(txn.id()).or_insert_with(|| Arc::downgrade(txn));
        }
        is_it
    }

    fn forget(&self, txn: TxnId) {
        self.state.lock().holders.remove(&txn);
    }

    /// Nobody relies on it anew; returns it, and who has locks under it.
    fn close(&self) -> Option<(LockLease, Vec<Weak<Txn>>)> {
        let mut state = self.state.lock();
        state.closing = true;
        let holders = state.holders.values().cloned().collect();
        state.current.map(|lease| (lease, holders))
    }

    /// Waits for the commits that rely on a lease, as long as they can happen.
    fn drain(&self, spans: &dyn Spans, lease: LockLease) {
        let over = Hlc::micros_of(lease.upto.0) + 2 * self.home.max_clock_offset_us;
        let mut state = self.state.lock();
        while state.committing > 0 && spans.wall_clock_us() <= over {
            turns::wait_for(&self.fewer, &mut state, LOOK_EVERY);
        }
    }

    fn end(&self, now_micros: u64) {
        let mut state = self.state.lock();
        if state.current.take().is_some() {
            state.ended_at = Some(now_micros);
        }
        state.closing = false;
        state.holders.clear();
    }

    /// Gives the lease back, if there is one. [`LockLeases::keep`] is held.
    ///
    /// # Errors
    /// If locks under it cannot be taken elsewhere: it is not given back, and nobody relies on it
    /// anew.
    pub(crate) fn give_back(&self, spans: &dyn Spans) -> KvResult<()> {
        if let Some((lease, holders)) = self.close() {
            let now = CommitTs(Hlc::from_micros(spans.wall_clock_us()));
            for txn in holders.iter().filter_map(Weak::upgrade) {
                // Beyond its end others may have been given what is locked under it.
                if now <= lease.upto { txn.convert_leased()? } else { txn.lose_leased() }
            }
            self.drain(spans, lease);
            self.end(spans.wall_clock_us());
        }
        spans.holds_lease(false);
        Ok(())
    }

    /// Locks under it, to look at.
    pub(crate) fn shown(&self) -> Vec<ShownLock> {
        let holders: Vec<Weak<Txn>> = self.state.lock().holders.values().cloned().collect();
        let all = holders.iter().filter_map(Weak::upgrade);
        all.flat_map(|txn| txn.shown_leased()).collect()
    }
}

/// Locks that a transaction has under a lease.
#[derive(Default)]
pub(crate) struct Leased {
    /// Which, if there are keys.
    number: u64,
    keys: Vec<Bytes>,
    /// It has had others, which were taken where the keys are kept: they last until it ends.
    pinned: bool,
}

fn lost() -> KvError {
    KvError::Retry { conflict: Conflict::LocksLost }
}

impl Txn {
    fn wall_micros(&self) -> u64 {
        self.spans().wall_clock_us()
    }

    /// Whether it was told to stop waiting.
    pub fn is_stopped(&self) -> bool {
        self.stop_flag().load(Ordering::Relaxed)
    }

    /// Whether a key is locked under the node's lease.
    pub fn holds_under_lease(&self, key: &[u8]) -> bool {
        turns::lock(&self.leased).keys.iter().any(|own| own == key)
    }

    /// Locks a key in [`LockMode::Shared`] until the end of the transaction, under the node's
    /// lease: nobody is asked. `false`: there is none at the moment.
    ///
    /// # Errors
    /// [`KvError::Retry`] if locks that it had under an earlier one are lost.
    pub fn lock_under_lease(self: &Arc<Self>, key: &[u8]) -> KvResult<bool> {
        let Some(leases) = self.coordinator().leases() else { return Ok(false) };
        let mut own = turns::lock(&self.leased);
        let Some(lease) = leases.live(self.wall_micros()) else { return Ok(false) };
        if !own.keys.is_empty() && own.number != lease.number {
            turns::lock(&self.state).locks_lost = true;
            return Err(lost());
        }
        if !leases.note_holder(lease.number, self, self.wall_micros()) {
            return Ok(false);
        }
        own.number = lease.number;
        own.keys.push(Bytes::copy_from_slice(key));
        Ok(true)
    }

    /// Takes the locks that it has under a lease where the keys are kept.
    ///
    /// # Errors
    /// If that cannot be done now. Locks that somebody else has got are lost: its commit says so.
    pub(crate) fn convert_leased(&self) -> KvResult<()> {
        let mut own = turns::lock(&self.leased);
        let read_ts = {
            let state = turns::lock(&self.state);
            if own.keys.is_empty() || state.ended {
                return Ok(());
            }
            state.read_ts
        };
        let target = |key: &Bytes| Target::Key(key.clone());
        let item = |key| LockItem { target: target(key), mode: LockMode::Shared, check: false };
        let items = own.keys.iter().map(item).collect();
        let (wait, timeout) = (Wait::NoWait, None);
        let request = LockMany { txn: self.id(), items, read_ts, wait, timeout };
        match self.spans().lock_aside(request) {
            Ok(()) => {
                turns::lock(&self.state).pin(&own.keys);
                own.pinned = true;
            }
            Err(KvError::LockNotAvailable | KvError::Retry { .. }) => {
                turns::lock(&self.state).locks_lost = true;
            }
            Err(error) => return Err(error),
        }
        own.keys.clear();
        Ok(())
    }

    /// The lease is over, and so are its locks.
    fn lose_leased(&self) {
        let mut own = turns::lock(&self.leased);
        let mut state = turns::lock(&self.state);
        state.locks_lost |= !own.keys.is_empty();
        own.keys.clear();
    }

    /// Its commit begins: what that relies on.
    ///
    /// # Errors
    /// [`KvError::Retry`] if locks are lost.
    pub(crate) fn rely_on_lease(&self) -> KvResult<Reliance<'_>> {
        let Some(leases) = self.coordinator().leases() else { return Ok(Reliance::default()) };
        let (read_ts, large) = {
            let state = self.open_state()?;
            state.check_locks()?;
            (state.read_ts, state.is_large())
        };
        let number = {
            let own = turns::lock(&self.leased);
            (!own.keys.is_empty()).then_some(own.number)
        };
        if number.is_some() && large {
            self.convert_leased()?;
        } else if let Some(relying) = leases.rely(number, self.wall_micros()) {
            let fixed = relying.lease.from <= read_ts;
            let needed = fixed || number.is_some();
            return Ok(Reliance { relying: Some(relying).filter(|_| needed), fixed });
        } else if let Some(number) = number {
            // Whoever gives it back may be about to do this, or has done it.
            if leases.is_closing(number) {
                self.convert_leased()?;
            }
            if !turns::lock(&self.leased).keys.is_empty() {
                return Err(lost());
            }
        }
        self.open_state()?.check_locks()?;
        Ok(Reliance::default())
    }

    /// Whether nothing that it depends on can have changed between two read timestamps.
    pub(crate) fn is_fixed_between(&self, old: CommitTs, new: CommitTs) -> bool {
        let leases = self.coordinator().leases();
        let live = leases.and_then(|leases| leases.live(self.wall_micros()));
        live.is_some_and(|lease| lease.from <= old && new <= lease.upto)
    }

    /// Whether it has locks under a lease, or has had some.
    pub(crate) fn has_leased(&self) -> bool {
        let has = |own: &Leased| own.pinned || !own.keys.is_empty();
        self.coordinator().leases().is_some() && has(&turns::lock(&self.leased))
    }

    /// It ends: it has no locks under a lease any more. Whether others that were taken for it are
    /// to be given back.
    pub(crate) fn end_leased(&self) -> bool {
        let Some(leases) = self.coordinator().leases() else { return false };
        let mut own = turns::lock(&self.leased);
        own.keys.clear();
        leases.forget(self.id());
        std::mem::take(&mut own.pinned)
    }

    fn shown_leased(&self) -> Vec<ShownLock> {
        let (txn, mode, granted) = (self.id(), LockMode::Shared, true);
        let shown =
            |key: &Bytes| ShownLock { txn, target: Target::Key(key.clone()), mode, granted };
        turns::lock(&self.leased).keys.iter().map(shown).collect()
    }
}

impl State {
    /// Its commit may be on its way for long.
    fn is_large(&self) -> bool {
        self.is_attached() || self.own.has_layers() || self.own.len() > MOST_WRITES
    }

    /// Notes shared locks that last until the transaction ends, whatever savepoint it returns to:
    /// they were taken at some time, under a lease.
    fn pin(&mut self, keys: &[Bytes]) {
        for key in keys {
            let held = Held { mode: LockMode::Shared, checked: false };
            let known = self.held.entry(key.clone()).or_insert(held);
            known.mode = known.mode.max(held.mode);
        }
    }
}
