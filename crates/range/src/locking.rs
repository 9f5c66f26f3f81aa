//! Locks at the leaseholder: sessions, and requests that wait.
//!
//! ```text
//!   Lock step 3 ----> granted, checked ----> answered, kept as the answer to step 3
//!                     |            |
//!                     waits for    waits for a latch: what is being written there
//!                     a lock
//! ```
//!
//! Locks are in memory and go with the lease. A transaction that has locks in a range has a
//! *session* there, known by the lease under which its table of locks began; whoever comes with
//! another one, or when it is gone, is told that its locks are lost. So a commit never happens
//! whose locks somebody else may have had in between.
//!
//! Requests come late and twice. Those of a transaction are numbered by *steps*: an older step than
//! the last one does nothing, the last one is answered again. A session that no coordinator speaks
//! for ends: when its coordinator names those that are running, or is not heard of for long. What
//! it has said is remembered: a copy of a request that comes when its transaction is over would
//! get a lock that nobody ever gives back.
//!
//! The locks of a transaction that is prepared here stay until it is resolved, whoever has the
//! lease: a new table begins with them.

use std::collections::BTreeMap;

use braid_consensus::Result;
use braid_kv::TxnId as LockTxn;
use braid_kv::{
    Asked, Conflict, Grant, KvError, LockMode, LockReport, LockTable, LockWait, Target, Wait,
};
use braid_lsm::{CommitTs, KeySpan};
use bytes::Bytes;

use crate::deadlocks::{KnownWaits, Suspected};
use crate::prepared::Prepared;
use crate::replica::{Replica, Tried};
use crate::request::{Answer, LockAsk, LockSession, LockStop, Locked, RequestNumber};

/// What a transaction is known by.
#[derive(Clone, Default)]
struct Session {
    /// The last step that was taken.
    step: u64,
    /// What was answered to it.
    last: Option<Locked>,
    /// All that it has ever asked for. What it has of that goes when it ends: a lock may be granted
    /// while its request ends, and others of a request were granted before it was answered.
    asked: Vec<Target>,
    /// Its locks are there only because it is prepared: they were another table's.
    restored: bool,
}

/// A request that is not answered yet.
pub(crate) struct Waiter {
    pub(crate) askers: Vec<RequestNumber>,
    pub(crate) ask: LockAsk,
    pub(crate) locked: Locked,
    pub(crate) on: Option<WaitsFor>,
    /// A circle that it was seen in when circles of waiting were looked for last.
    pub(crate) suspected: Option<Suspected>,
    /// Since when it waits for a lock, in microseconds.
    since: u64,
}

/// What keeps a request from being answered. Of a latch the lock below it is held.
pub(crate) enum WaitsFor {
    Lock(LockWait),
    Latch,
}

impl WaitsFor {
    /// Whether it is a lock, and nobody has granted it yet.
    pub(crate) fn is_for_lock(&self) -> bool {
        matches!(self, WaitsFor::Lock(wait) if !wait.is_granted())
    }
}

/// See the [module's page](self).
#[derive(Default)]
pub(crate) struct Locking {
    /// The lease under which it began. Leases of the same process that follow each other without
    /// another one in between are one to it.
    since: u64,
    /// Whoever validated was told that nothing will be written up to here.
    pub(crate) promised: CommitTs,
    pub(crate) table: LockTable,
    sessions: BTreeMap<LockTxn, Session>,
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) ticks: u64,
    /// Who waits for whom, as those who wait in other ranges have said.
    pub(crate) elsewhere: KnownWaits,
    /// When each coordinator was heard of last, in microseconds.
    heard: BTreeMap<u64, u64>,
    /// What each has said of its transactions. Whoever has the lease: what is over stays over.
    said: BTreeMap<u64, Said>,
}

/// What a coordinator has said of its transactions.
#[derive(Clone)]
struct Said {
    newest: LockTxn,
    /// Of those up to the newest.
    running: Vec<LockTxn>,
    /// When, in microseconds.
    at: u64,
}

/// Copies of requests do not come so much later.
const SAID_MICROS: u64 = 60_000_000;

/// Who leads a transaction: its number's upper bits.
pub(crate) fn coordinator_of(txn: LockTxn) -> u64 {
    txn.0 >> braid_kv::TXN_COUNTER_BITS
}

pub(crate) fn span_of(target: &Target) -> KeySpan {
    match target {
        Target::Key(key) => KeySpan::point(key),
        Target::Span(span) => span.clone(),
    }
}

impl Locking {
    /// Nothing is locked when a lease begins that somebody else may have had before.
    pub(crate) fn of_lease(sequence: u64, before: Locking) -> Locking {
        Locking { since: sequence, said: before.said, ..Locking::default() }
    }

    /// Whether the transaction still has the locks that it got in a session.
    pub(crate) fn has(&self, txn: LockTxn, session: LockSession) -> bool {
        let own = self.sessions.get(&txn);
        session == self.since && own.is_some_and(|own| !own.restored)
    }

    /// What a transaction holds.
    pub(crate) fn held_by(&self, txn: LockTxn) -> Vec<(Target, LockMode)> {
        let own = self.sessions.get(&txn);
        own.map(|own| self.table.held_by(txn, &own.asked)).unwrap_or_default()
    }

    /// Takes up the locks of what is prepared, into a table that nobody has asked for a lock yet.
    pub(crate) fn restore<'a>(&mut self, prepared: impl Iterator<Item = &'a Prepared>) {
        for part in prepared {
            let session = self.sessions.entry(part.owner).or_default();
            session.restored = true;
            for (target, mode) in &part.locks {
                // Those of parts that are prepared do not exclude each other.
                let asked = self.table.ask(part.owner, target.clone(), *mode, Wait::NoWait);
                debug_assert!(matches!(asked, Ok(Asked::Granted)), "{part:?}");
                session.asked.push(target.clone());
            }
        }
    }

    /// Whether a transaction whose part is resolved has nothing else to do here.
    fn is_over(&self, owner: LockTxn) -> bool {
        let own = self.sessions.get(&owner);
        own.is_some_and(|own| own.restored || own.step == u64::MAX)
    }

    /// Whether somebody has a lock, or waits for one.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.sessions.is_empty() || !self.waiters.is_empty()
    }

    /// Requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    pub(crate) fn describe(&self) -> LockReport {
        let (lines, waiting) = (self.table.describe(), self.table.waiting());
        LockReport { lines, waiting, locks: self.table.all() }
    }

    /// Nobody waits any more; returns who did.
    pub(crate) fn dismiss(&mut self) -> Vec<RequestNumber> {
        let mut askers = Vec::new();
        for waiter in std::mem::take(&mut self.waiters) {
            if let Some(WaitsFor::Lock(wait)) = &waiter.on {
                self.table.take_back(wait);
            }
            askers.extend(waiter.askers);
        }
        askers
    }

    /// What lies from a key on, for a range of its own. Nobody may wait.
    pub(crate) fn split_off(&mut self, at: &Bytes) -> Locking {
        let (table, sessions) = (self.table.split_off(at), self.sessions.clone());
        let (since, promised, heard) = (self.since, self.promised, self.heard.clone());
        let (waiters, elsewhere) = (Vec::new(), self.elsewhere.clone());
        let (ticks, said) = (self.ticks, self.said.clone());
        Locking { since, promised, table, sessions, waiters, ticks, elsewhere, heard, said }
    }

    /// Whether its coordinator has said that a transaction has ended.
    fn has_ended(&self, txn: LockTxn) -> bool {
        let said = self.said.get(&coordinator_of(txn));
        said.is_some_and(|said| txn <= said.newest && !said.running.contains(&txn))
    }

    fn hear(&mut self, txn: LockTxn, now_micros: u64) {
        self.heard.insert(coordinator_of(txn), now_micros);
    }

    /// Ends the sessions that are not spoken for.
    fn end(&mut self, is_over: impl Fn(LockTxn) -> bool) -> Vec<RequestNumber> {
        let over: Vec<LockTxn> =
            self.sessions.keys().copied().filter(|txn| is_over(*txn)).collect();
        let mut askers = Vec::new();
        for txn in over {
            let theirs = |waiter: &mut Waiter| waiter.ask.request.txn == txn;
            for waiter in self.waiters.extract_if(.., theirs) {
                if let Some(WaitsFor::Lock(wait)) = &waiter.on {
                    self.table.take_back(wait);
                }
                askers.extend(waiter.askers);
            }
            self.elsewhere.forget(txn);
            if let Some(session) = self.sessions.remove(&txn) {
                self.table.release(txn, session.asked.iter(), true);
            }
        }
        askers
    }
}

impl Replica {
    pub(crate) fn lock(&mut self, number: RequestNumber, ask: &LockAsk) -> Result<Tried> {
        let now = self.clocks.now();
        if !self.serves(now) {
            return Ok(self.elsewhere().map_or(Tried::Wait, Tried::Answer));
        }
        let txn = ask.request.txn;
        self.locking.hear(txn, self.clocks.wall.now_micros());
        let lost = ask.session.is_some_and(|session| !self.locking.has(txn, session));
        if lost || self.locking.has_ended(txn) {
            return Ok(Tried::Answer(Answer::Conflict(Conflict::LocksLost)));
        }
        // The lease is about to go: who has no lock here waits for the next one.
        if self.is_closing() && !self.locking.sessions.contains_key(&txn) {
            return Ok(Tried::Wait);
        }
        if ask.step == 0 {
            return Ok(self.lock_aside(ask));
        }
        let session = self.locking.sessions.entry(txn).or_default();
        if ask.step < session.step {
            return Ok(Tried::Answer(Answer::Again));
        }
        if ask.step == session.step {
            if let Some(last) = &session.last {
                return Ok(Tried::Answer(Answer::Locked(last.clone())));
            }
            let mut waiters = self.locking.waiters.iter_mut();
            if let Some(waiter) = waiters.find(|waiter| waiter.ask.request.txn == txn) {
                waiter.askers.push(number);
                return Ok(Tried::Later);
            }
        }
        if ask.step != session.step {
            session.asked.extend(ask.request.items.iter().map(|item| item.target.clone()));
        }
        (session.step, session.last) = (ask.step, None);
        let locked = Locked { session: self.locking.since, ..Locked::default() };
        let (askers, ask) = (vec![number], ask.clone());
        let mut waiter = Waiter { askers, ask, locked, on: None, suspected: None, since: 0 };
        match self.advance(&mut waiter)? {
            true => self.answer_locked(waiter),
            false => self.locking.waiters.push(waiter),
        }
        Ok(Tried::Later)
    }

    /// Takes locks beside what else the transaction asks for. To ask again changes nothing.
    fn lock_aside(&mut self, ask: &LockAsk) -> Tried {
        let txn = ask.request.txn;
        let session = self.locking.sessions.entry(txn).or_default();
        let mut locked = Locked { session: self.locking.since, ..Locked::default() };
        for item in &ask.request.items {
            let target = item.target.clone();
            session.asked.push(target.clone());
            match self.locking.table.ask(txn, target, item.mode, Wait::NoWait) {
                Ok(Asked::Granted) => locked.grants.push(Grant::Held),
                Ok(Asked::Skipped | Asked::Waits(_)) => locked.stop = Some(LockStop::NotFree),
                Err(error) => locked.stop = Some(stop_of(&error)),
            }
            if locked.stop.is_some() {
                break;
            }
        }
        Tried::Answer(Answer::Locked(locked))
    }

    /// Goes through the items from the one on that was not granted yet; whether all is done.
    fn advance(&mut self, waiter: &mut Waiter) -> Result<bool> {
        let request = &waiter.ask.request;
        while let Some(item) = request.items.get(waiter.locked.grants.len()) {
            let wall = self.clocks.wall.now_micros();
            match waiter.on.take() {
                None => {
                    let (target, mode) = (item.target.clone(), item.mode);
                    match self.locking.table.ask(request.txn, target, mode, request.wait) {
                        Ok(Asked::Granted) => {}
                        Ok(Asked::Skipped) => {
                            waiter.locked.grants.push(Grant::Skipped);
                            continue;
                        }
                        Ok(Asked::Waits(wait)) => {
                            waiter.since = wall;
                            waiter.on = Some(WaitsFor::Lock(wait));
                            continue;
                        }
                        Err(error) => {
                            waiter.locked.stop = Some(stop_of(&error));
                            return Ok(true);
                        }
                    }
                }
                Some(WaitsFor::Lock(wait)) if wait.is_granted() => {
                    waiter.locked.waited_nanos += (wall.saturating_sub(waiter.since)) * 1_000 + 1;
                }
                Some(WaitsFor::Lock(wait)) => {
                    let most = request.timeout.map_or(u64::MAX, |most| most.as_micros() as u64);
                    if wall.saturating_sub(waiter.since) < most
                        || !self.locking.table.take_back(&wait)
                    {
                        waiter.on = Some(WaitsFor::Lock(wait));
                        return Ok(false);
                    }
                    waiter.locked.waited_nanos += (wall.saturating_sub(waiter.since)) * 1_000;
                    waiter.locked.stop = Some(LockStop::TimedOut);
                    return Ok(true);
                }
                Some(WaitsFor::Latch) => {}
            }
            if item.check {
                let span = span_of(&item.target);
                if self.is_being_written(std::slice::from_ref(&span)) {
                    waiter.on = Some(WaitsFor::Latch);
                    return Ok(false);
                }
                if let Some(collected) = self.collected(request.read_ts) {
                    waiter.locked.grants.push(Grant::Newer);
                    waiter.locked.stop = Some(LockStop::Newer(collected));
                    return Ok(true);
                }
                match self.machine.keys().check_unwritten(&item.target, request.read_ts) {
                    Ok(()) => {}
                    Err(KvError::Retry { conflict }) => {
                        waiter.locked.grants.push(Grant::Newer);
                        waiter.locked.stop = Some(LockStop::Newer(conflict));
                        return Ok(true);
                    }
                    Err(error) => return Err(crate::serving::failed(error)),
                }
            }
            waiter.locked.grants.push(Grant::Held);
        }
        Ok(true)
    }

    pub(crate) fn answer_locked(&mut self, waiter: Waiter) {
        if let Some(session) = self.locking.sessions.get_mut(&waiter.ask.request.txn)
            && session.step == waiter.ask.step
        {
            session.last = Some(waiter.locked.clone());
        }
        let answer = Answer::Locked(waiter.locked);
        self.answers.extend(waiter.askers.into_iter().map(|asker| (asker, answer.clone())));
    }

    /// Looks whether those who wait may go on. Who goes on may let others go on.
    pub(crate) fn advance_locks(&mut self) -> Result<()> {
        let mut any = !self.locking.waiters.is_empty();
        while std::mem::take(&mut any) {
            for mut waiter in std::mem::take(&mut self.locking.waiters) {
                match self.advance(&mut waiter)? {
                    true => {
                        any = true;
                        self.answer_locked(waiter);
                    }
                    false => self.locking.waiters.push(waiter),
                }
            }
        }
        Ok(())
    }

    pub(crate) fn give_up(&mut self, txn: LockTxn, step: u64) -> Result<Tried> {
        if !self.serves(self.clocks.now()) {
            return Ok(self.elsewhere().map_or(Tried::Wait, Tried::Answer));
        }
        let own = |waiter: &Waiter| waiter.ask.request.txn == txn && waiter.ask.step == step;
        if let Some(at) = self.locking.waiters.iter().position(own) {
            let Some(WaitsFor::Lock(wait)) = &self.locking.waiters[at].on else {
                // It has the lock; what it still waits for comes by itself.
                return Ok(Tried::Wait);
            };
            if !self.locking.table.take_back(wait) {
                return Ok(Tried::Wait);
            }
            let mut waiter = self.locking.waiters.remove(at);
            waiter.locked.stop = Some(LockStop::GivenUp);
            let answer = Answer::Locked(waiter.locked.clone());
            self.answer_locked(waiter);
            self.advance_locks()?;
            return Ok(Tried::Answer(answer));
        }
        if self.locking.has_ended(txn) {
            return Ok(Tried::Answer(Answer::Conflict(Conflict::LocksLost)));
        }
        let since = self.locking.since;
        let session = self.locking.sessions.entry(txn).or_default();
        if step > session.step {
            let stop = Some(LockStop::GivenUp);
            let locked = Locked { session: since, stop, ..Locked::default() };
            (session.step, session.last) = (step, Some(locked));
        }
        let last = session.last.clone().filter(|_| step == session.step);
        Ok(Tried::Answer(last.map_or(Answer::Again, Answer::Locked)))
    }

    pub(crate) fn release(
        &mut self,
        (txn, step): (LockTxn, u64),
        targets: &[Target],
        ended: bool,
    ) -> Result<Tried> {
        if !self.serves(self.clocks.now()) {
            return Ok(self.elsewhere().map_or(Tried::Wait, Tried::Answer));
        }
        self.locking.hear(txn, self.clocks.wall.now_micros());
        if let Some(session) = self.locking.sessions.get_mut(&txn)
            && session.step < step
        {
            (session.step, session.last) = (step, None);
            match ended {
                true => self.end_sessions(|other| other == txn)?,
                false => {
                    self.locking.table.release(txn, targets.iter(), false);
                    self.advance_locks()?;
                }
            }
        }
        Ok(Tried::Answer(Answer::Fine))
    }

    /// A coordinator says which of its transactions are running.
    pub(crate) fn running(&mut self, newest: LockTxn, running: &[LockTxn]) -> Result<Tried> {
        if !self.serves(self.clocks.now()) {
            return Ok(self.elsewhere().map_or(Tried::Wait, Tried::Answer));
        }
        let at = self.clocks.wall.now_micros();
        self.locking.hear(newest, at);
        let coordinator = coordinator_of(newest);
        let said = self.locking.said.get(&coordinator);
        // They come in any order; of those up to the same one ever fewer are running.
        let is_later =
            |said: &Said| (said.newest, running.len()) < (newest, said.running.len() + 1);
        if said.is_none_or(is_later) {
            let running = running.to_vec();
            self.locking.said.insert(coordinator, Said { newest, running, at });
        }
        self.end_sessions(|txn| {
            coordinator_of(txn) == coordinator && txn <= newest && !running.contains(&txn)
        })?;
        Ok(Tried::Answer(Answer::Fine))
    }

    /// Ends the sessions of coordinators that were not heard of for long.
    pub(crate) fn end_silent_sessions(&mut self) -> Result<()> {
        let now = self.clocks.wall.now_micros();
        self.locking.said.retain(|_, said| said.at.saturating_add(SAID_MICROS) > now);
        if self.locking.sessions.is_empty() {
            return Ok(());
        }
        let patience = self.options.coordinator_patience_micros;
        self.locking.heard.retain(|_, at| at.saturating_add(patience) > now);
        let heard: Vec<u64> = self.locking.heard.keys().copied().collect();
        self.end_sessions(|txn| !heard.contains(&coordinator_of(txn)))
    }

    /// Parts were resolved: what was kept for them goes.
    pub(crate) fn end_resolved(&mut self) -> Result<()> {
        for owner in std::mem::take(&mut self.machine.resolved) {
            if self.locking.is_over(owner) {
                self.end_sessions(|txn| txn == owner)?;
            }
        }
        Ok(())
    }

    /// Tells those who wait for locks of transactions that should be at their end. They go on
    /// waiting: whoever asks again is found here.
    pub(crate) fn tell_of_abandoned(&mut self) {
        for mut waiter in std::mem::take(&mut self.locking.waiters) {
            let item = waiter.ask.request.items.get(waiter.locked.grants.len());
            let wanted = item.map(|item| span_of(&item.target));
            let blocked = wanted.and_then(|span| self.abandoned_at(&span));
            if let Some(answer) = blocked {
                let askers = std::mem::take(&mut waiter.askers);
                self.answers.extend(askers.into_iter().map(|asker| (asker, answer.clone())));
            }
            self.locking.waiters.push(waiter);
        }
    }

    pub(crate) fn has_sessions_of(&self, coordinator: u64) -> bool {
        self.locking.sessions.keys().any(|txn| coordinator_of(*txn) == coordinator)
    }

    /// What a coordinator has locked is free, but for what is prepared.
    pub(crate) fn end_sessions_of(&mut self, coordinator: u64) -> Result<()> {
        self.end_sessions(|txn| coordinator_of(txn) == coordinator)
    }

    fn end_sessions(&mut self, is_over: impl Fn(LockTxn) -> bool) -> Result<()> {
        let kept = self.owners_of_parts();
        let askers = self.locking.end(|txn| !kept.contains(&txn) && is_over(txn));
        self.answers.extend(askers.into_iter().map(|asker| (asker, Answer::Again)));
        self.advance_locks()
    }
}

fn stop_of(error: &KvError) -> LockStop {
    match error {
        KvError::Deadlock { cycle } => LockStop::Deadlock(cycle.clone()),
        _ => LockStop::NotFree,
    }
}
