//! Advisory locks of a session: first among the sessions of its node, then among all nodes.

use std::sync::atomic::Ordering;
use std::time::Duration;

use braid_catalog::Lost;
use braid_kv::TxnOptions;
use braid_scalar::{Advisory, AdvisoryCall, SessionFunctions};
use braid_types::{SqlResult, SqlState};

use crate::over_nodes::locks::{Tried, deadlock};
use crate::runtime::advisory::Want;
use crate::session::context::Notice;
use crate::session::state::SessionState;

/// Who waits for a session of another node looks after so long, and then after twice that and so
/// on, up to the second one.
const LOOK_AFTER: Duration = Duration::from_millis(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// After so long it says that it waits, and looks for circles each time after that.
const SAY_AFTER: Duration = Duration::from_secs(1);

impl SessionState {
    /// What one of the functions for advisory locks does.
    ///
    /// # Errors
    /// 57014 on cancel, 55P03 after `lock_timeout`, 40P01 instead of waiting in a circle; in a
    /// cluster those of a transaction.
    pub(in crate::session) fn advisory_lock(&self, advisory: Advisory) -> SqlResult<bool> {
        let Advisory { call, key, shared, in_transaction } = advisory;
        let place = (self.database_id(), key);
        let (locks, want) = (self.db().advisory(), Want { place, shared, in_transaction });
        if in_transaction {
            self.locks_in_transaction.store(true, Ordering::Relaxed);
        }
        match call {
            AdvisoryCall::Lock => {
                let begun = self.db().clock_micros();
                let limit = self.derived().lock_timeout;
                locks.lock(self.pid(), &want, &self.cancel, limit)?;
                self.among_all_nodes(&want, Some((begun, limit)))
            }
            AdvisoryCall::TryLock => {
                Ok(locks.try_lock(self.pid(), &want) && self.among_all_nodes(&want, None)?)
            }
            AdvisoryCall::Unlock => {
                let held = locks.unlock(self.pid(), &place, shared);
                match held {
                    true => self.give_back(),
                    false => self.warn_of_no_lock(shared),
                }
                Ok(held)
            }
        }
    }

    fn warn_of_no_lock(&self, shared: bool) {
        let mode = if shared { "ShareLock" } else { "ExclusiveLock" };
        self.notices.lock().push(Notice {
            severity: "WARNING",
            state: SqlState("01000"),
            message: format!("you don't own a lock of type {mode}"),
            detail: None,
            hint: None,
        });
    }

    /// A lock that the session has on its node is to count on all of them; without `wait` it is
    /// only tried. Whether it does; if not, the session does not have it.
    fn among_all_nodes(
        &self,
        want: &Want,
        wait: Option<(i64, Option<Duration>)>,
    ) -> SqlResult<bool> {
        if !self.db().is_shared() {
            return Ok(true);
        }
        let has = self.wait_for_nodes(want, wait);
        if !matches!(has, Ok(true)) {
            self.db().advisory().take_back(self.pid(), want);
            self.give_back();
        }
        has
    }

    fn wait_for_nodes(
        &self,
        want: &Want,
        wait: Option<(i64, Option<Duration>)>,
    ) -> SqlResult<bool> {
        let (db, pid) = (self.db(), self.pid());
        let begun = wait.map_or(0, |(begun, _)| begun);
        let waited =
            || Duration::from_micros(u64::try_from(db.clock_micros() - begun).unwrap_or(0));
        let (mut pause, mut said) = (LOOK_AFTER, false);
        let ended = loop {
            let limit = wait.and_then(|(_, limit)| limit);
            let left = limit.map(|limit| limit.saturating_sub(waited()));
            let cancel = Some(self.cancel.clone());
            let options = TxnOptions { cancel, lock_timeout: left, ..TxnOptions::default() };
            let says = wait.is_some() && waited() >= SAY_AFTER;
            match db.try_over_nodes(pid, want, says, options) {
                Ok(Tried::Has) => return Ok(true),
                Ok(Tried::Circle) => return Err(deadlock()),
                Ok(Tried::Taken) if wait.is_none() => return Ok(false),
                Ok(Tried::Taken) => said |= says,
                Err(e) if braid_catalog::After::error(&e).is_again() => {}
                Err(e) => break Err(e),
            }
            if left == Some(Duration::ZERO) {
                break Err(Lost::NotFree.error("canceling statement due to lock timeout"));
            }
            let nap = left.map_or(pause, |left| pause.min(left));
            if let Err(e) = self.sleep(nap.as_micros() as i64) {
                break Err(e);
            }
            pause = (2 * pause).min(LOOK_EVERY);
        };
        if said {
            db.stop_waiting_over_nodes(pid, &want.place);
        }
        ended
    }

    fn give_back(&self) {
        if self.db().is_shared() {
            self.db().give_back_over_nodes(self.pid());
        }
    }

    /// Gives back the advisory locks of a transaction that has ended.
    pub(in crate::session) fn end_transaction_locks(&self) {
        if self.locks_in_transaction.swap(false, Ordering::Relaxed) {
            self.db().advisory().unlock_all(self.pid(), true);
            self.give_back();
        }
    }

    /// Gives back all that the session holds for itself.
    pub(in crate::session) fn unlock_all_advisory(&self) {
        self.db().advisory().unlock_all(self.pid(), false);
        self.give_back();
    }

    /// The session has ended: its locks are free soon.
    pub(in crate::session) fn end_advisory_locks(&self) {
        self.db().advisory().unlock_all(self.pid(), true);
        self.db().advisory().unlock_all(self.pid(), false);
        if self.db().is_shared() {
            self.db().note_given_back(self.pid());
        }
    }
}
