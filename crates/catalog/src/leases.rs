//! Schema leases: the right of a node to go by what it knows of the schema.
//!
//! ```text
//!   a node     locks its record (exclusive, no waiting) ─ reads the version ─ commits the record
//!              |<- nothing of the schema changes from here ───────────────── until X ->|
//!   a change   locks all records (shared, to its end) ─ all give it back, or X is over
//!              ─ locks, reads, publishes as it does where there are no leases
//! ```
//! As long as a node has one, its transactions use the catalog that it has, and lock the shapes of
//! tables in shared mode among themselves ([`LockLeases`](braid_kv::LockLeases)): nothing of that
//! is sent. Without one all of it is asked for where the system's keys are.
//!
//! **Who waits for whom.** Who wants to publish a version, or to lock a shape exclusively, first
//! locks the records of all processes, there or not, in shared mode. From then on nobody gets a
//! lease or a longer one, until that transaction ends: it would need its record's lock exclusively.
//! Changes do not exclude each other by that. Then the change reads the records and asks each
//! holder to give its lease back, which takes the locks under it where others see them. After that
//! all is as if there had never been a lease.
//!
//! **Clocks.** A record says until when its lease is good at most: `X` on the holder's clock. The
//! holder relies on it only up to `X - offset`: commits are refused after that by whoever serves
//! their range, on that node's clock, and transactions that read later ask for the catalog. When a
//! change's clock has passed `X`, all clocks have passed `X - offset`. A holder that is dead, cut
//! off or stopped keeps a change waiting for no longer than `LEASE_MICROS` and twice the offset.
//!
//! **A process, not a node.** A node that was started anew cannot vouch for commits that the
//! process before it has sent. It has another record, and the old one ends by itself, or when all
//! nodes have said that they take nothing from that process any more.

use std::sync::Arc;

use braid_env::clock::Hlc;
use braid_keys::system;
use braid_kv::{
    CommitTs, Coordinator, Isolation, KeySpan, KvError, KvResult, LeaseHolder, LockMode, ReadMode,
    ScanOptions, Txn, TxnOptions, Wait,
};
use braid_types::SqlResult;

use crate::error::kv_error;
use crate::store::version_as;

/// A lease may be relied on for so long.
const LEASE_MICROS: u64 = 3_000_000;
/// Records of leases that were over so long ago go when another one is granted.
const FORGOTTEN_MICROS: u64 = 60_000_000;

/// What was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    /// Of the catalog: it stays this one.
    pub(crate) version: u64,
    /// From here on it is known to be so.
    pub(crate) from: CommitTs,
    /// It may be relied on up to there.
    pub(crate) upto: CommitTs,
}

/// A record, as it is stored: 8 bytes node, 8 bytes the end in microseconds, big endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    holder: LeaseHolder,
    /// On the holder's clock, in microseconds.
    end: u64,
}

impl Record {
    fn encode(&self) -> Vec<u8> {
        [self.holder.node.to_be_bytes(), self.end.to_be_bytes()].concat()
    }

    fn decode(key: &[u8], value: &[u8]) -> Option<Record> {
        let (node, end) = value.split_at_checked(8)?;
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_be_bytes);
        let coordinator = system::schema_lease_process(key)?;
        let holder = LeaseHolder { node: number(node)?, coordinator };
        Some(Record { holder, end: number(end)? })
    }
}

fn records_span() -> KeySpan {
    let (start, end) = system::schema_leases();
    KeySpan::new(start, end)
}

/// The newest records, in a transaction that has locked them, or one of them.
fn records(txn: &Arc<Txn>) -> KvResult<Vec<Record>> {
    let options = ScanOptions { mode: ReadMode::Latest, ..ScanOptions::default() };
    let mut scan = txn.scan(records_span(), options)?;
    let mut all = Vec::new();
    while let Some((key, value)) = scan.next()? {
        all.extend(Record::decode(&key, &value));
    }
    Ok(all)
}

/// Gets a lease for this process, or a longer one; `None` if the schema is being changed. Whoever
/// asks [keeps](braid_kv::LockLeases::keep) others from doing so. `first`: it is no renewal, and
/// what others have left behind is taken away.
///
/// # Errors
/// Of the transaction; then there is none.
pub(crate) fn grant_lease(at: &Arc<Coordinator>, first: bool) -> SqlResult<Option<Granted>> {
    let Some(home) = at.leases().map(braid_kv::LockLeases::home) else { return Ok(None) };
    // Before anybody can see its record.
    at.holds_lease(true);
    let granted = try_grant(at, home.holder, home.max_clock_offset_us, first);
    if first && granted.is_err() {
        at.holds_lease(false);
    }
    match granted {
        Ok(granted) => Ok(Some(granted)),
        Err(KvError::LockNotAvailable) => Ok(None),
        Err(e) => Err(kv_error(e)),
    }
}

fn try_grant(
    at: &Arc<Coordinator>,
    holder: LeaseHolder,
    offset: u64,
    first: bool,
) -> KvResult<Granted> {
    let now = at.wall_clock_us();
    let txn = begin(at)?;
    let key = system::schema_lease(holder.coordinator);
    txn.lock(&key, LockMode::Exclusive, Wait::NoWait)?;
    if first {
        forget_old(&txn, now)?;
    }
    // Whoever changes it holds all records until that has happened.
    let version = version_as(&txn, ReadMode::Latest).map_err(|e| {
        KvError::Unavailable(format!("the version of the catalog: {}", e.message()))
    })?;
    let end = now + LEASE_MICROS + offset;
    txn.put(key, Record { holder, end }.encode())?;
    let from = txn.commit()?;
    let upto = CommitTs(Hlc::from_micros(now + LEASE_MICROS));
    Ok(Granted { version: version.unwrap_or(0), from, upto })
}

fn begin(at: &Arc<Coordinator>) -> KvResult<Arc<Txn>> {
    at.begin(TxnOptions { isolation: Isolation::RepeatableRead, ..TxnOptions::default() })
}

/// Takes records away of processes that are gone.
fn forget_old(txn: &Arc<Txn>, now: u64) -> KvResult<()> {
    for record in records(txn)? {
        // Nobody grants one that ends so late: its clock was wrong.
        let is_wrong = record.end > now + LEASE_MICROS + FORGOTTEN_MICROS;
        if is_wrong || record.end + FORGOTTEN_MICROS < now {
            let key = system::schema_lease(record.holder.coordinator);
            txn.lock(&key, LockMode::Exclusive, Wait::NoWait)?;
            txn.delete(key)?;
        }
    }
    Ok(())
}

/// Makes sure that nobody goes by what he knows of the schema without asking, and that nobody does
/// until the transaction ends. Where keys are in one store, nobody ever does.
///
/// # Errors
/// Of the transaction's locks; 57014 and 55P03 as for who waits for a lock.
pub fn recall_leases(txn: &Arc<Txn>) -> SqlResult<()> {
    recall(txn).map_err(kv_error)
}

fn recall(txn: &Arc<Txn>) -> KvResult<()> {
    let at = txn.coordinator();
    let Some(home) = at.leases().map(braid_kv::LockLeases::home) else { return Ok(()) };
    let span = records_span();
    if txn.is_span_held(&span, LockMode::Shared) {
        return Ok(());
    }
    txn.hold_span(&span, LockMode::Shared)?;
    // Not before that: nobody gets one any more.
    at.give_lease_back()?;
    let begun = at.wall_clock_us();
    let longest = LEASE_MICROS + 2 * home.max_clock_offset_us;
    let mut left = records(txn)?;
    left.retain(|record| record.holder != home.holder);
    loop {
        let now = at.wall_clock_us();
        // One that ends later than any can, was granted by a clock that was wrong.
        left.retain(|record| now <= record.end.min(begun + longest) && !at.recall(record.holder));
        if left.is_empty() {
            return Ok(());
        }
        if txn.is_stopped() {
            return Err(KvError::Canceled);
        }
        let patience = txn.lock_timeout();
        if patience.is_some_and(|most| now.saturating_sub(begun) > most.as_micros() as u64) {
            return Err(KvError::LockTimeout);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were_stored() {
        let holder = LeaseHolder { node: 3, coordinator: 3 << 16 | 7 };
        let record = Record { holder, end: 1_700_000_000_000_000 };
        let key = system::schema_lease(holder.coordinator);
        assert_eq!(Record::decode(&key, &record.encode()), Some(record));
        assert_eq!(Record::decode(&key, b"short"), None);
        let span = records_span();
        assert!(span.contains(&key) && !span.contains(&system::change_lock(1)));
    }
}
