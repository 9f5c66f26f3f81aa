//! A process's schema lease: getting it, keeping it while it is of use, giving it back.
//!
//! ```text
//!   sessions  ask (a flag) ──►  the keeper, a thread   ◄── another node recalls it
//!                                 none, asked    get one
//!                                 older than 1 s, of use   get it for longer
//!                                 recalled, or over        give it back
//!   begin     read timestamp within it: its catalog, and nobody is asked
//! ```
//! What it is good for and why nobody is deceived by it stands in [`crate::leases`]. Here is when:
//! a node that runs no statements has none, so that idle nodes send nothing; and one whose lease
//! was taken away soon after it got it waits longer and longer before it wants another, so that a
//! script of schema changes has to ask for it a few times and not each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_kv::{CommitTs, Coordinator, LockLease, LockLeases};
use braid_types::{SqlError, SqlResult};
use parking_lot::{Mutex, MutexGuard};

use crate::error::kv_error;
use crate::leases::grant_lease;
use crate::snapshot::Catalog;

/// After so long it is got for longer.
const RENEW_MICROS: u64 = 1_000_000;
/// After it was taken away nobody wants another one for so long, at least and at most.
const LEAST_PAUSE: u64 = 500_000;
const MOST_PAUSE: u64 = 4_000_000;
/// One that was taken away after less than that was not worth it.
const SHORT_LIFE: u64 = 5_000_000;
/// While somebody changes the schema it is tried so often.
const TRY_EVERY: u64 = 200_000;

/// See the [module's page](self).
#[derive(Default)]
pub struct SchemaLease {
    held: Mutex<Option<Held>>,
    /// Statements have begun since it was got last.
    asked: AtomicBool,
    pace: Mutex<Pace>,
}

/// A lease, with what is known under it.
struct Held {
    number: u64,
    catalog: Arc<Catalog>,
    granted_at: u64,
}

/// When another one is wanted.
#[derive(Default)]
struct Pace {
    not_before: u64,
    pause: u64,
    /// The end that was looked at last.
    seen: Option<u64>,
}

impl Pace {
    /// The last lease has lived from then to then. `taken`: somebody else wanted that.
    fn ended(&mut self, (begun, ended): (u64, u64), taken: bool) {
        if self.seen == Some(ended) {
            return;
        }
        self.seen = Some(ended);
        if !taken {
            return;
        }
        let longer = (2 * self.pause).clamp(LEAST_PAUSE, MOST_PAUSE);
        let is_short = ended.saturating_sub(begun) < SHORT_LIFE;
        self.pause = if is_short { longer } else { LEAST_PAUSE };
        self.not_before = ended + self.pause;
    }
}

impl SchemaLease {
    /// The catalog at a read timestamp, if the lease says what it is.
    pub fn catalog_at(&self, at: &Coordinator, read_ts: CommitTs) -> Option<Arc<Catalog>> {
        let (lease, held) = self.live(at)?;
        let known = lease.from <= read_ts && read_ts <= lease.upto;
        held.as_ref().filter(|_| known).map(|held| held.catalog.clone())
    }

    /// Tells leases apart; `None` if there is none. Who has it before a read timestamp is chosen,
    /// and the same later: no schema change was committed after that timestamp.
    pub fn epoch(&self, at: &Coordinator) -> Option<u64> {
        self.asked.store(true, Ordering::Relaxed);
        self.live(at).map(|(lease, _)| lease.number)
    }

    fn live(&self, at: &Coordinator) -> Option<(LockLease, MutexGuard<'_, Option<Held>>)> {
        let held = self.held.lock();
        let lease = at.leases()?.live(at.wall_clock_us())?;
        let is_it = held.as_ref().is_some_and(|held| held.number == lease.number);
        is_it.then_some((lease, held))
    }

    /// Does what is to be done about it: waits up to so long for somebody who wants it back, and
    /// gets one, or the same for longer, if that is of use. Called again and again by a thread of
    /// its own; does nothing where there are no other nodes. `newest` reads the newest catalog.
    ///
    /// # Errors
    /// Of the requests; the next call tries again.
    pub fn keep(
        &self,
        at: &Arc<Coordinator>,
        patience: Duration,
        newest: impl FnOnce() -> SqlResult<Arc<Catalog>>,
    ) -> SqlResult<()> {
        let Some(leases) = at.leases() else { return Ok(()) };
        let recalled = at.await_recall(patience);
        let kept = leases.keep();
        let now = at.wall_clock_us();
        match leases.current() {
            _ if recalled => self.give_back(at, &kept, true),
            Some(_) if leases.live(now).is_none() => self.give_back(at, &kept, false),
            Some(lease) => self.renew(at, &kept, (lease, now)),
            None => self.get(at, now, newest),
        }
    }

    /// Gives the lease back: the process ends. Nobody waits for it as long as it still answers.
    ///
    /// # Errors
    /// Of the requests; then others wait until it is over.
    pub fn end(&self, at: &Coordinator) -> SqlResult<()> {
        at.leases().map_or(Ok(()), |leases| self.give_back(at, &leases.keep(), false))
    }

    fn give_back(&self, at: &Coordinator, kept: &MutexGuard<'_, ()>, taken: bool) -> SqlResult<()> {
        at.give_kept_lease_back(kept).map_err(kv_error)?;
        *self.held.lock() = None;
        if let Some((begun, Some(ended))) = at.leases().map(LockLeases::last) {
            self.pace.lock().ended((begun, ended), taken);
        }
        Ok(())
    }

    fn renew(
        &self,
        at: &Arc<Coordinator>,
        kept: &MutexGuard<'_, ()>,
        (lease, now): (LockLease, u64),
    ) -> SqlResult<()> {
        let Some(leases) = at.leases() else { return Ok(()) };
        let known = self.held.lock().as_ref().map(|held| (held.granted_at, held.catalog.version));
        let Some((granted_at, version)) = known else { return self.give_back(at, kept, false) };
        let is_old = granted_at + RENEW_MICROS <= now;
        if !is_old || !(self.asked.swap(false, Ordering::Relaxed) || leases.is_in_use()) {
            return Ok(());
        }
        match grant_lease(at, false)? {
            None => self.give_back(at, kept, true),
            // Nobody can have come in between.
            Some(granted) if granted.version == version && granted.from <= lease.upto => {
                leases.extend(granted.upto);
                if let Some(held) = &mut *self.held.lock() {
                    held.granted_at = now;
                }
                Ok(())
            }
            Some(_) => self.give_back(at, kept, false),
        }
    }

    fn get(
        &self,
        at: &Arc<Coordinator>,
        now: u64,
        newest: impl FnOnce() -> SqlResult<Arc<Catalog>>,
    ) -> SqlResult<()> {
        let Some(leases) = at.leases() else { return Ok(()) };
        {
            let mut pace = self.pace.lock();
            // A change of this node takes it away without being heard here.
            if let (begun, Some(ended)) = leases.last() {
                pace.ended((begun, ended), true);
            }
            if now < pace.not_before || !self.asked.swap(false, Ordering::Relaxed) {
                return Ok(());
            }
            pace.not_before = now + TRY_EVERY;
        }
        let Some(granted) = grant_lease(at, true)? else { return Ok(()) };
        let catalog = match newest() {
            Ok(catalog) if catalog.version == granted.version => catalog,
            other => {
                at.holds_lease(false);
                let text = "the catalog has changed under a lease";
                return Err(other.err().unwrap_or_else(|| SqlError::internal(text)));
            }
        };
        let number = leases.begin((granted.from, granted.upto), now);
        *self.held.lock() = Some(Held { number, catalog, granted_at: now });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_loses_it_again_and_again_wants_it_less_often() {
        let mut pace = Pace::default();
        let mut now = 1_000_000;
        let mut pauses = Vec::new();
        for _ in 0..6 {
            pace.ended((now, now + 10), true);
            pace.ended((now, now + 10), true);
            pauses.push(pace.pause / 1_000);
            now += 10_000_000;
        }
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 4_000, 4_000]);
        assert_eq!(pace.not_before, now - 10_000_000 + 10 + MOST_PAUSE);
        pace.ended((now, now + SHORT_LIFE), true);
        assert_eq!(pace.pause, LEAST_PAUSE);
        let before = pace.not_before;
        pace.ended((now, now + 7 * SHORT_LIFE), false);
        assert_eq!(pace.not_before, before);
    }
}
