//! Until when what a process's sessions hold counts for the other nodes.
//!
//! A record says so, on the process's clock: `end`. The process relies on it only up to the bound
//! of clocks before that. Who looks at something that the process holds takes it for gone when the
//! record is not there, or its own clock has passed `end`: then the process's clock has passed the
//! time up to which it relied on it, too.
//!
//! A process that cannot renew it in time ends the sessions that hold something: it is somebody
//! else's now.

use std::sync::Arc;

use braid_catalog::{After, kv_error};
use braid_keys::system;
use braid_kv::{
    Isolation, KeySpan, KvError, KvResult, LeaseHome, LockMode, ReadMode, ScanOptions, Txn,
    TxnOptions,
};
use braid_types::SqlResult;
use parking_lot::Mutex;

use crate::database::Database;

/// It is said for so long, in microseconds.
const PRESENT: u64 = 6_000_000;
/// And said again after so long.
const RENEW_AFTER: u64 = 2_000_000;
/// Records that were over so long ago are taken away by the next process that writes one.
const FORGOTTEN: u64 = 60_000_000;
/// So often work is done again.
const TRIES: usize = 100;

/// See the [module's page](self).
#[derive(Default)]
pub(crate) struct Presence {
    said: Mutex<Option<Said>>,
}

#[derive(Clone, Copy)]
struct Said {
    at: u64,
    /// As in the record.
    end: u64,
}

/// What became of a presence that was to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It counts without a break.
    Yes,
    /// It was over for a while: what was held before is not held any more.
    Lapsed,
}

/// A transaction for records of this kind: what it reads it holds, so the newest state counts.
pub(super) fn begin(db: &Database, options: TxnOptions) -> SqlResult<Arc<Txn>> {
    let options = TxnOptions { isolation: Isolation::RepeatableRead, ..options };
    db.coordinator().begin(options).map_err(kv_error)
}

/// Does work in transactions of its own again, as long as others are in its way, or it is in doubt
/// which of two nodes' clocks is right.
///
/// # Errors
/// Of the work.
pub(super) fn again<T>(mut work: impl FnMut() -> SqlResult<T>) -> SqlResult<T> {
    let mut left = TRIES;
    loop {
        left -= 1;
        match work() {
            Err(e) if After::error(&e).is_again() && left > 0 => {}
            done => return done,
        }
    }
}

/// All records of a span, the newest ones.
pub(super) fn newest(
    txn: &Arc<Txn>,
    (start, end): (Vec<u8>, Vec<u8>),
) -> KvResult<Vec<(Vec<u8>, Vec<u8>)>> {
    let options = ScanOptions { mode: ReadMode::Latest, ..ScanOptions::default() };
    let mut scan = txn.scan(KeySpan::new(start, end), options)?;
    let mut all = Vec::new();
    while let Some((key, value)) = scan.next()? {
        all.push((key.to_vec(), value.to_vec()));
    }
    Ok(all)
}

fn end_of(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_be_bytes)
}

impl Database {
    /// Who this process is to others, and how far clocks may differ.
    pub(crate) fn home(&self) -> Option<LeaseHome> {
        self.coordinator().leases().map(braid_kv::LockLeases::home)
    }

    /// Whether the presence is over, as this process must see it.
    pub(super) fn is_presence_over(&self) -> bool {
        let said = *self.over_nodes().presence.said.lock();
        said.is_some_and(|said| self.is_over(said))
    }

    fn is_over(&self, said: Said) -> bool {
        let offset = self.home().map_or(0, |home| home.max_clock_offset_us);
        self.coordinator().wall_clock_us() >= said.end.saturating_sub(offset)
    }

    /// Sees to it that what this process is about to hold counts, for some time.
    ///
    /// # Errors
    /// Of the transaction.
    pub(super) fn be_present(&self) -> SqlResult<Kept> {
        let Some(home) = self.home() else { return Ok(Kept::Yes) };
        // One at a time: who waits finds it said.
        let mut said = self.over_nodes().presence.said.lock();
        let before = *said;
        let now = self.coordinator().wall_clock_us();
        if before.is_some_and(|before| now < before.at + RENEW_AFTER) {
            return Ok(Kept::Yes);
        }
        let end = now + PRESENT;
        let key = system::presence(home.holder.coordinator);
        again(|| {
            let txn = begin(self, TxnOptions::default())?;
            txn.put_over(key.clone(), end.to_be_bytes().to_vec()).map_err(kv_error)?;
            if before.is_none() {
                forget_old(&txn, now).map_err(kv_error)?;
            }
            txn.commit().map_err(kv_error)
        })?;
        *said = Some(Said { at: now, end });
        match before {
            Some(before) if self.is_over(before) => Ok(Kept::Lapsed),
            _ => Ok(Kept::Yes),
        }
    }

    /// Nothing is held that must count: the record goes when it is over.
    pub(super) fn leave_when_over(&self) -> SqlResult<()> {
        let Some(home) = self.home() else { return Ok(()) };
        let mut said = self.over_nodes().presence.said.lock();
        if said.take_if(|said| self.is_over(*said)).is_some() {
            let txn = begin(self, TxnOptions::default())?;
            txn.delete_at_commit(system::presence(home.holder.coordinator)).map_err(kv_error)?;
            txn.commit().map_err(kv_error)?;
        }
        Ok(())
    }

    /// Whether what a process holds counts no more, as a transaction finds it.
    pub(super) fn is_gone(&self, txn: &Arc<Txn>, process: u64) -> KvResult<bool> {
        if self.home().is_some_and(|home| home.holder.coordinator == process) {
            return Ok(false);
        }
        let record = txn.get_as(&system::presence(process), ReadMode::Latest)?;
        let end = record.as_deref().and_then(end_of);
        Ok(end.is_none_or(|end| self.coordinator().wall_clock_us() > end))
    }
}

fn forget_old(txn: &Arc<Txn>, now: u64) -> KvResult<()> {
    for (key, value) in newest(txn, system::presences())? {
        let is_old = end_of(&value).is_none_or(|end| end + FORGOTTEN < now);
        if is_old {
            match txn.hold_after(&key, LockMode::Exclusive, braid_kv::Wait::NoWait) {
                Ok(()) => txn.delete_at_commit(key)?,
                Err(KvError::LockNotAvailable) => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(())
}
