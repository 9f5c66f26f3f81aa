//! A node's schema lease: getting it, keeping it while it is of use, giving it back.
//!
//! ```text
//!   sessions  ask (a flag) ──►  the keeper, a thread   ◄── another node recalls it
//!                                 none, asked    get one
//!                                 older than 1 s, of use   get it for longer
//!                                 recalled, or over        give it back
//!   begin     read timestamp within it: its catalog, and nobody is asked
//! ```
//! What it is good for and why nobody is deceived by it stands in `braid_catalog::leases`. Here is
//! when: a node that runs no statements has none, so that idle nodes send nothing; and one whose
//! lease was taken away soon after it got it waits longer and longer before it wants another, so
//! that a script of schema changes has to ask for it a few times and not each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_catalog::{Catalog, grant_lease, kv_error};
use braid_kv::{LockLease, LockLeases, Txn};
use braid_types::{SqlError, SqlResult};
use parking_lot::{Mutex, MutexGuard};

use crate::database::Database;

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
pub(crate) struct SchemaLease {
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

impl Database {
    /// The catalog for a transaction, if the node's lease says what it is at its read timestamp.
    pub(crate) fn leased_catalog(&self, txn: &Txn) -> Option<Arc<Catalog>> {
        let (lease, held) = self.live_lease()?;
        let read_ts = txn.read_ts();
        let known = lease.from <= read_ts && read_ts <= lease.upto;
        held.as_ref().filter(|_| known).map(|held| held.catalog.clone())
    }

    /// Tells leases apart; `None` if there is none. See [`Database::schema_epoch`].
    pub(crate) fn lease_epoch(&self) -> Option<u64> {
        self.schema_lease().asked.store(true, Ordering::Relaxed);
        self.live_lease().map(|(lease, _)| lease.number)
    }

    fn live_lease(&self) -> Option<(LockLease, MutexGuard<'_, Option<Held>>)> {
        let held = self.schema_lease().held.lock();
        let lease = self.coordinator().leases()?.live(self.coordinator().wall_clock_us())?;
        let is_it = held.as_ref().is_some_and(|held| held.number == lease.number);
        is_it.then_some((lease, held))
    }

    /// Does what is to be done about the node's schema lease: waits up to so long for somebody who
    /// wants it back, and gets one, or the same for longer, if that is of use. Called again and
    /// again by a thread of its own; does nothing where there are no other nodes.
    ///
    /// # Errors
    /// Of the requests; the next call tries again.
    pub fn keep_schema_lease(&self, patience: Duration) -> SqlResult<()> {
        let Some(leases) = self.coordinator().leases().filter(|_| self.is_shared()) else {
            return Ok(());
        };
        let recalled = self.coordinator().await_recall(patience);
        let kept = leases.keep();
        let now = self.coordinator().wall_clock_us();
        match leases.current() {
            _ if recalled => self.give_schema_lease_back(&kept, true),
            Some(_) if leases.live(now).is_none() => self.give_schema_lease_back(&kept, false),
            Some(lease) => self.renew_schema_lease(&kept, leases, (lease, now)),
            None => self.get_schema_lease(leases, now),
        }
    }

    /// Gives the lease back: the process ends. Nobody waits for it as long as it still answers.
    ///
    /// # Errors
    /// Of the requests; then others wait until it is over.
    pub fn end_schema_lease(&self) -> SqlResult<()> {
        match self.coordinator().leases() {
            Some(leases) => self.give_schema_lease_back(&leases.keep(), false),
            None => Ok(()),
        }
    }

    fn give_schema_lease_back(&self, kept: &MutexGuard<'_, ()>, taken: bool) -> SqlResult<()> {
        self.coordinator().give_kept_lease_back(kept).map_err(kv_error)?;
        *self.schema_lease().held.lock() = None;
        if let Some((begun, Some(ended))) = self.coordinator().leases().map(LockLeases::last) {
            self.schema_lease().pace.lock().ended((begun, ended), taken);
        }
        Ok(())
    }

    fn renew_schema_lease(
        &self,
        kept: &MutexGuard<'_, ()>,
        leases: &LockLeases,
        (lease, now): (LockLease, u64),
    ) -> SqlResult<()> {
        let own = self.schema_lease();
        let known = own.held.lock().as_ref().map(|held| (held.granted_at, held.catalog.version));
        let Some((granted_at, version)) = known else {
            return self.give_schema_lease_back(kept, false);
        };
        let is_old = granted_at + RENEW_MICROS <= now;
        if !is_old || !(own.asked.swap(false, Ordering::Relaxed) || leases.is_in_use()) {
            return Ok(());
        }
        match grant_lease(self.coordinator(), false)? {
            None => self.give_schema_lease_back(kept, true),
            // Nobody can have come in between.
            Some(granted) if granted.version == version && granted.from <= lease.upto => {
                leases.extend(granted.upto);
                if let Some(held) = &mut *own.held.lock() {
                    held.granted_at = now;
                }
                Ok(())
            }
            Some(_) => self.give_schema_lease_back(kept, false),
        }
    }

    fn get_schema_lease(&self, leases: &LockLeases, now: u64) -> SqlResult<()> {
        let own = self.schema_lease();
        {
            let mut pace = own.pace.lock();
            // A change of this node takes it away without being heard here.
            if let (begun, Some(ended)) = leases.last() {
                pace.ended((begun, ended), true);
            }
            if now < pace.not_before || !own.asked.swap(false, Ordering::Relaxed) {
                return Ok(());
            }
            pace.not_before = now + TRY_EVERY;
        }
        let Some(granted) = grant_lease(self.coordinator(), true)? else { return Ok(()) };
        let catalog = match self.current_catalog() {
            Ok(catalog) if catalog.version == granted.version => catalog,
            other => {
                self.coordinator().holds_lease(false);
                let text = "the catalog has changed under a lease";
                return Err(other.err().unwrap_or_else(|| SqlError::internal(text)));
            }
        };
        let number = leases.begin((granted.from, granted.upto), now);
        *own.held.lock() = Some(Held { number, catalog, granted_at: now });
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
