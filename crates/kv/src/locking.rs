//! A transaction's locks: what it asks for, and what it knows that it holds.

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use braid_lsm::KeySpan;
use bytes::Bytes;

use crate::error::{Conflict, KvError, KvResult};
use crate::locks::{LockMode, Target, Wait};
use crate::read_set::Reads;
use crate::spans::{Grant, LockItem, LockMany, LockOne, LockedOne, Validate};
use crate::txn::{Held, Isolation, Locked, RELEASED_AT_ONCE, State, Txn, WORTH_SPILLING};

/// What a lock takes besides its key.
const LOCK_BYTES: usize = 150;

/// What a lock takes in memory.
pub(crate) fn lock_memory(target: &Target) -> usize {
    LOCK_BYTES
        + match target {
            Target::Key(key) => key.len(),
            Target::Span(span) => span.start.len() + span.end.len(),
        }
}

/// How long a transaction waits for a lock, in nanoseconds; [`FOR_EVER`] without a limit.
pub(crate) struct Patience(AtomicU64);

const FOR_EVER: u64 = u64::MAX;

impl Patience {
    pub(crate) fn new(most: Option<Duration>) -> Patience {
        let patience = Patience(AtomicU64::new(FOR_EVER));
        patience.set(most);
        patience
    }

    fn set(&self, most: Option<Duration>) {
        let nanos = most.map_or(FOR_EVER, |m| u64::try_from(m.as_nanos()).unwrap_or(FOR_EVER));
        self.0.store(nanos, Ordering::Relaxed);
    }
}

impl Txn {
    /// How long it waits for a lock.
    pub fn lock_timeout(&self) -> Option<Duration> {
        let nanos = self.patience.0.load(Ordering::Relaxed);
        (nanos != FOR_EVER).then(|| Duration::from_nanos(nanos))
    }

    /// From now on it waits so long for a lock.
    pub fn set_lock_timeout(&self, most: Option<Duration>) {
        self.patience.set(most);
    }

    /// Locks a key until the end of the transaction, and checks that nothing newer than the read
    /// timestamp is stored there. Blocks according to `wait`.
    pub fn lock(&self, key: &[u8], mode: LockMode, wait: Wait) -> KvResult<Locked> {
        if self.open_state()?.holds(key, mode, true) {
            return Ok(Locked::Yes);
        }
        let target = Target::Key(Bytes::copy_from_slice(key));
        self.ask_lock(LockItem { target, mode, check: true }, wait)
    }

    /// Locks a key until the end of the transaction, whatever has happened to it since the read
    /// timestamp: for what is asked of the newest state ([`crate::ReadMode::Latest`]) and must stay
    /// true.
    pub fn hold(&self, key: &[u8], mode: LockMode) -> KvResult<()> {
        self.hold_after(key, mode, Wait::Block)
    }

    /// As [`Txn::hold`], waiting so for others.
    pub fn hold_after(&self, key: &[u8], mode: LockMode, wait: Wait) -> KvResult<()> {
        if self.open_state()?.holds(key, mode, false) {
            return Ok(());
        }
        let target = Target::Key(Bytes::copy_from_slice(key));
        self.ask_lock(LockItem { target, mode, check: false }, wait).map(|_| ())
    }

    /// Whether a lock on a key is held, at least as strong.
    pub fn holds(&self, key: &[u8], mode: LockMode) -> bool {
        self.state.lock().holds(key, mode, false)
    }

    /// Locks every key of a span, present or not, with the same check as [`Txn::lock`].
    pub fn lock_span(&self, span: &KeySpan, mode: LockMode, wait: Wait) -> KvResult<Locked> {
        if self.open_state()?.holds_span(span, mode) {
            return Ok(Locked::Yes);
        }
        let target = Target::Span(span.clone());
        self.ask_lock(LockItem { target, mode, check: true }, wait)
    }

    /// Locks every key of a span until the end of the transaction, whatever has happened there
    /// since the read timestamp: as [`Txn::hold`].
    pub fn hold_span(&self, span: &KeySpan, mode: LockMode) -> KvResult<()> {
        if self.is_span_held(span, mode) {
            return Ok(());
        }
        let target = Target::Span(span.clone());
        self.ask_lock(LockItem { target, mode, check: false }, Wait::Block).map(|_| ())
    }

    /// Whether this very span is locked, at least as strong.
    pub fn is_span_held(&self, span: &KeySpan, mode: LockMode) -> bool {
        let state = self.state.lock();
        let held = state.held_spans.get(&span.start);
        held.is_some_and(|(own, held)| own == span && held.mode >= mode)
    }

    /// Whether its locks take much memory: then [`Txn::lock_instead`] helps.
    pub fn holds_many_locks(&self) -> bool {
        self.state.lock().memory.locked.bytes() > self.much()
    }

    /// Locks a span exclusively, as [`Txn::lock_span`], and gives back the locks on single keys in
    /// it, which nobody needs any more. Locks that were taken later may then outlive going back to
    /// a savepoint.
    pub fn lock_instead(&self, span: &KeySpan) -> KvResult<()> {
        self.lock_span(span, LockMode::Exclusive, Wait::Block)?;
        let mut state = self.open_state()?;
        let acquired = std::mem::take(&mut state.acquired);
        let inside = |target: &Target| matches!(target, Target::Key(key) if span.contains(key));
        // Going back to a savepoint keeps what was locked before: so the span takes the place of
        // the first lock that it stands for.
        let first = acquired.iter().position(inside);
        let whole = acquired.iter().position(|t| matches!(t, Target::Span(own) if own == span));
        let mut gone = Vec::new();
        for (n, target) in acquired.into_iter().enumerate() {
            if first == Some(n) && whole.is_some_and(|whole| whole > n) {
                state.acquired.push(Target::Span(span.clone()));
            }
            if inside(&target) {
                gone.push(target);
            } else if whole != Some(n) || first.is_none_or(|first| first > n) {
                state.acquired.push(target);
            }
        }
        for target in &gone {
            if let Target::Key(key) = target {
                state.held.remove(key);
            }
            state.memory.locked.shrink(lock_memory(target));
        }
        drop(state);
        for part in gone.chunks(RELEASED_AT_ONCE) {
            self.spans().release(self.id(), part, false);
        }
        Ok(())
    }

    /// Takes the locks that a statement is going to ask for one by one, as far as they are free, in
    /// one request. Where one is not free, or protects something newer than the read timestamp, it
    /// ends: whoever asks for that lock then waits, or learns of the conflict.
    pub fn lock_ahead(&self, items: Vec<LockItem>) -> KvResult<()> {
        let wanted: Vec<LockItem> = {
            let state = self.open_state()?;
            let held = |item: &LockItem| match &item.target {
                Target::Key(key) => state.holds(key, item.mode, item.check),
                Target::Span(span) => state.holds_span(span, item.mode),
            };
            items.into_iter().filter(|item| !held(item)).collect()
        };
        if self.batch_max() < 2 {
            return Ok(());
        }
        for part in wanted.chunks(self.batch_max()) {
            let (grants, error) = self.ask_locks(part.to_vec(), Wait::NoWait)?;
            match error {
                // Told again, at the right moment, to whoever asks for this very lock.
                Some(KvError::LockNotAvailable | KvError::Retry { .. }) => return Ok(()),
                Some(error) => return Err(error),
                None => debug_assert_eq!(grants.len(), part.len()),
            }
        }
        Ok(())
    }

    /// As [`Txn::lock_ahead`], for one who passes over what is not free: what became of the first
    /// of these, in their order. Where something newer lies below a lock, it ends before that.
    pub fn lock_ahead_skipping(&self, items: Vec<LockItem>) -> KvResult<Vec<Locked>> {
        let mut out = Vec::new();
        if self.batch_max() < 2 {
            return Ok(out);
        }
        for part in items.chunks(self.batch_max()) {
            let (grants, error) = self.ask_locks(part.to_vec(), Wait::SkipLocked)?;
            out.extend(grants.iter().map_while(|grant| match grant {
                Grant::Held => Some(Locked::Yes),
                Grant::Skipped => Some(Locked::Skipped),
                Grant::Newer => None,
            }));
            match error {
                // Told again, at the right moment, to whoever asks for this very lock.
                Some(KvError::Retry { .. }) => return Ok(out),
                Some(error) => return Err(error),
                None => {}
            }
        }
        Ok(out)
    }

    /// Locks one after the other in this order, each with its check if it wants one: waits where
    /// one is not free, and keeps those before it meanwhile.
    pub fn lock_many(&self, items: Vec<LockItem>) -> KvResult<()> {
        for part in items.chunks(self.batch_max()) {
            let (_, error) = self.ask_locks(part.to_vec(), Wait::Block)?;
            error.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// What the commit depends on so far, for [`Txn::hold_reads`] of another try; `None` if it is
    /// more than `most` keys and spans.
    pub fn reads_so_far(&self, most: usize) -> Option<Reads> {
        let state = self.state.lock();
        let reads = state.reads.all();
        (reads.points.len() + reads.spans.len() <= most).then(|| reads.clone())
    }

    /// Locks what another try has read, so that from now on nobody writes to it: whoever reads the
    /// same after that is not overtaken again. The read timestamp stays, see [`Txn::restart`].
    /// Others may go on to refer to the rows.
    pub fn hold_reads(&self, reads: &Reads) -> KvResult<()> {
        let points = reads.points.iter().map(|read| KeySpan::point(&read.key));
        let mut spans: Vec<KeySpan> = points.chain(reads.spans.iter().cloned()).collect();
        // All who do this come in the same order.
        spans.sort_unstable_by(|a, b| (&a.start, &b.end).cmp(&(&b.start, &a.end)));
        spans.dedup_by(|next, kept| next.end <= kept.end);
        let items = spans.into_iter().filter(|span| !span.is_empty()).map(|span| LockItem {
            target: Target::Span(span),
            mode: LockMode::NoKeyExclusive,
            check: false,
        });
        self.lock_many(items.collect())
    }

    /// Takes memory for locks, if need be from what was written.
    fn take_for_locks(&self, state: &mut State, bytes: usize) -> KvResult<()> {
        match state.memory.locked.grow(bytes) {
            Err(_) if state.memory.written.bytes() >= WORTH_SPILLING && self.spill(state)? => {
                Ok(state.memory.locked.grow(bytes)?)
            }
            other => Ok(other?),
        }
    }

    /// As [`Txn::ask_locks`], for one.
    fn ask_lock(&self, item: LockItem, wait: Wait) -> KvResult<Locked> {
        let bytes = lock_memory(&item.target);
        let read_ts = {
            let mut state = self.open_state()?;
            self.take_for_locks(&mut state, bytes)?;
            state.read_ts
        };
        let _asking = self.count_request();
        let LockedOne { grant, error, waited_nanos } = self.spans().lock(
            LockOne { txn: self.id(), item: &item, read_ts, wait, timeout: self.lock_timeout() },
            self.stop_flag(),
        );
        self.counts.add_wait(waited_nanos);
        let mut state = self.state.lock();
        let held = matches!(grant, Some(Grant::Held | Grant::Newer));
        let checked = item.check && grant == Some(Grant::Held);
        if !held || !state.granted(item, checked) {
            state.memory.locked.shrink(bytes);
        }
        state.ahead.lock_granted();
        state.note_lost(error.as_ref());
        match (error, grant) {
            (Some(error), _) => Err(error),
            (None, Some(Grant::Skipped)) => Ok(Locked::Skipped),
            (None, _) => Ok(Locked::Yes),
        }
    }

    /// Asks, and remembers what was granted.
    fn ask_locks(
        &self,
        items: Vec<LockItem>,
        wait: Wait,
    ) -> KvResult<(Vec<Grant>, Option<KvError>)> {
        let bytes: usize = items.iter().map(|item| lock_memory(&item.target)).sum();
        let read_ts = {
            let mut state = self.open_state()?;
            self.take_for_locks(&mut state, bytes)?;
            state.read_ts
        };
        let request = self.lock_request(items.clone(), read_ts, wait);
        let asking = self.count_request();
        let answer = self.spans().lock_many(request, self.stop_flag());
        drop(asking);
        self.counts.add_wait(answer.waited_nanos);
        let mut state = self.state.lock();
        let mut kept = 0;
        for (item, grant) in items.into_iter().zip(&answer.grants) {
            if *grant != Grant::Skipped {
                let bytes = lock_memory(&item.target);
                let checked = item.check && *grant == Grant::Held;
                kept += if state.granted(item, checked) { bytes } else { 0 };
            }
        }
        state.memory.locked.shrink(bytes - kept);
        state.ahead.lock_granted();
        state.note_lost(answer.error.as_ref());
        Ok((answer.grants, answer.error))
    }

    /// Asks whether all its locks are there.
    pub(crate) fn check_locks(&self) -> KvResult<()> {
        let _asking = self.count_request();
        self.spans().check_locks(self.id())
    }

    fn lock_request(
        &self,
        items: Vec<LockItem>,
        read_ts: braid_lsm::CommitTs,
        wait: Wait,
    ) -> LockMany {
        let timeout = self.lock_timeout();
        LockMany { txn: self.id(), items, read_ts, wait, timeout }
    }

    /// Waits until no other transaction holds a key in a way that excludes `mode`, without keeping
    /// a lock, and checks that nothing newer than the read timestamp is stored there.
    pub fn await_key(&self, key: &[u8], mode: LockMode) -> KvResult<()> {
        let (read_ts, held) = {
            let state = self.open_state()?;
            if state.holds(key, mode, true) || state.ahead.was_awaited(key, mode) {
                return Ok(());
            }
            (state.read_ts, state.held.contains_key(key))
        };
        let target = Target::Key(Bytes::copy_from_slice(key));
        let items = vec![LockItem { target: target.clone(), mode, check: true }];
        let request = self.lock_request(items, read_ts, Wait::Block);
        let asking = self.count_request();
        let answer = self.spans().lock_many(request, self.stop_flag());
        drop(asking);
        self.counts.add_wait(answer.waited_nanos);
        // What was held before is held on, and released at the end.
        if !held && !answer.grants.is_empty() {
            self.spans().release(self.id(), &[target], false);
        }
        self.state.lock().ahead.lock_granted();
        answer.error.map_or(Ok(()), Err)
    }

    /// As [`Txn::await_key`] for keys that a statement is going to await one by one, as far as
    /// nobody has to be waited for, in one request.
    pub fn await_ahead(&self, keys: Vec<Bytes>, mode: LockMode) -> KvResult<()> {
        if self.batch_max() < 2 {
            return Ok(());
        }
        let (read_ts, wanted) = {
            let state = self.open_state()?;
            let free =
                |key: &Bytes| !state.held.contains_key(key) && !state.ahead.was_awaited(key, mode);
            (state.read_ts, keys.into_iter().filter(free).collect::<Vec<Bytes>>())
        };
        for keys in wanted.chunks(self.batch_max()) {
            let target = |key: &Bytes| Target::Key(key.clone());
            let item = |key| LockItem { target: target(key), mode, check: true };
            let request = self.lock_request(keys.iter().map(item).collect(), read_ts, Wait::NoWait);
            let asking = self.count_request();
            let answer = self.spans().lock_many(request, self.stop_flag());
            drop(asking);
            let granted: Vec<Target> = keys[..answer.grants.len()].iter().map(target).collect();
            self.spans().release(self.id(), &granted, false);
            let mut state = self.open_state()?;
            let told = state.ahead.told(self.coordinator().memory());
            for (key, grant) in keys.iter().zip(&answer.grants) {
                if *grant == Grant::Held {
                    told.awaited(key.clone(), mode);
                }
            }
            match answer.error {
                // Told again, at the right moment, to whoever awaits this very key.
                Some(KvError::LockNotAvailable | KvError::Retry { .. }) => return Ok(()),
                Some(error) => return Err(error),
                None => {}
            }
        }
        Ok(())
    }

    /// That what is newest in a span ([`crate::ReadMode::Latest`]) is what this transaction's later
    /// reads will see: under READ COMMITTED always, else if nothing newer than its view is there.
    pub fn check_seen(&self, span: &KeySpan) -> KvResult<()> {
        let floor = self.open_state()?.read_ts;
        if self.options.isolation == Isolation::ReadCommitted {
            return Ok(());
        }
        let _asking = self.count_request();
        let reads = Reads { points: Vec::new(), spans: vec![span.clone()] };
        match self.spans().validate(&Validate { floor, through: floor, reads }) {
            Err(KvError::Retry { .. }) => {
                Err(KvError::Retry { conflict: Conflict::WrittenSpan(span.clone()) })
            }
            other => other,
        }
    }
}

impl State {
    /// Remembers that locks are gone, if that was the error.
    fn note_lost(&mut self, error: Option<&KvError>) {
        let conflict = Conflict::LocksLost;
        self.locks_lost |= matches!(error, Some(KvError::Retry { conflict: c }) if *c == conflict);
    }

    /// That nobody has said that locks are gone.
    pub(crate) fn check_locks(&self) -> KvResult<()> {
        match self.locks_lost {
            true => Err(KvError::Retry { conflict: Conflict::LocksLost }),
            false => Ok(()),
        }
    }

    /// Notes a lock as held; whether it was not before.
    fn granted(&mut self, item: LockItem, checked: bool) -> bool {
        let LockItem { target, mode, .. } = item;
        match &target {
            Target::Key(key) => {
                if let Some(held) = self.held.get_mut(key) {
                    held.mode = held.mode.max(mode);
                    held.checked |= checked;
                    return false;
                }
                self.held.insert(key.clone(), Held { mode, checked });
            }
            Target::Span(span) => {
                let held = Held { mode, checked };
                self.held_spans.insert(span.start.clone(), (span.clone(), held));
            }
        }
        self.acquired.push(target);
        true
    }

    /// Whether a lock on the key is held; `checked`: and nothing newer was there.
    pub(crate) fn holds(&self, key: &[u8], mode: LockMode, checked: bool) -> bool {
        let enough = |h: &Held| h.mode >= mode && (h.checked || !checked);
        let upto = (Bound::Unbounded, Bound::Included(key));
        self.held.get(key).is_some_and(enough)
            || self
                .held_spans
                .range::<[u8], _>(upto)
                .next_back()
                .is_some_and(|(_, (span, h))| enough(h) && span.contains(key))
    }

    pub(crate) fn holds_span(&self, span: &KeySpan, mode: LockMode) -> bool {
        let upto = (Bound::Unbounded, Bound::Included(span.start.as_ref() as &[u8]));
        self.held_spans
            .range::<[u8], _>(upto)
            .next_back()
            .is_some_and(|(_, (own, h))| h.checked && h.mode >= mode && own.end >= span.end)
    }
}
