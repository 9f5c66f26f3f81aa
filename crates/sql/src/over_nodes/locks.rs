//! Advisory locks of a cluster: a record for each that a session of some node has.
//!
//! ```text
//!   01 'o' db kind number ─► holders  process A, session 12, exclusive, number 881
//!                            waiters  process B, session 40, shared
//! ```
//! A session first has the lock among those of its own node ([`crate::runtime::advisory`]), then it
//! writes itself into the record, if nobody of another node is in the way. So a record has few
//! waiters, and circles within a node are found there.
//!
//! Holders have numbers: what is given back late, since no majority was there, takes that holder
//! away and no later one of the same session. A holder whose process [is
//! gone](super::presence) is none.
//!
//! Who waits looks again and again; after a second it says in the record that it waits, and looks
//! whether others wait for it. Of a circle the session with the greatest process id is refused.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use braid_catalog::{Lost, kv_error};
use braid_keys::system;
use braid_kv::{LockMode, ReadMode, Txn, TxnOptions};
use braid_scalar::AdvisoryKey;
use braid_types::{SqlError, SqlResult, SqlState};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::presence::{Kept, again, begin, newest};
use crate::database::Database;
use crate::runtime::AdvisoryLock;
use crate::runtime::advisory::{Place, Want};

/// A session that has a lock, or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Party {
    process: u64,
    pid: i32,
    shared: bool,
    /// Of a holder: what it is given back by.
    number: i64,
}

/// What is stored about a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    holders: Vec<Party>,
    waiters: Vec<Party>,
}

impl Record {
    fn decode(value: &[u8]) -> SqlResult<Record> {
        serde_json::from_slice(value).map_err(|_| {
            SqlError::new(SqlState::DATA_CORRUPTED, "damaged system record: advisory lock")
        })
    }

    /// Other sessions that keep one from having it.
    fn in_the_way(&self, pid: i32, shared: bool) -> impl Iterator<Item = i32> {
        let others = self.holders.iter().filter(move |one| one.pid != pid);
        others.filter(move |one| !(shared && one.shared)).map(|one| one.pid)
    }

    fn store(&self, txn: &Txn, key: Vec<u8>) -> SqlResult<()> {
        let done = match self.holders.is_empty() && self.waiters.is_empty() {
            true => txn.delete_at_commit(key),
            false => {
                let text = serde_json::to_vec(self).map_err(|e| SqlError::internal(e.to_string()));
                txn.put_over(key, text?)
            }
        };
        done.map_err(kv_error)
    }
}

fn key_of((database, key): &Place) -> Vec<u8> {
    match *key {
        AdvisoryKey::One(n) => system::advisory_lock(*database, false, n as u64),
        AdvisoryKey::Two(a, b) => {
            let both = u64::from(a as u32) << 32 | u64::from(b as u32);
            system::advisory_lock(*database, true, both)
        }
    }
}

fn place_of(key: &[u8]) -> Option<Place> {
    let (database, two, number) = system::advisory_lock_of(key)?;
    let key = match two {
        false => AdvisoryKey::One(number as i64),
        true => AdvisoryKey::Two((number >> 32) as i32, number as i32),
    };
    Some((database, key))
}

/// A lock that a session has among all nodes: of its place, the session, and the mode.
type Mine = (Place, i32, bool);

/// What this process has to do with locks of the cluster.
#[derive(Default)]
pub(crate) struct LocksOverNodes {
    /// Numbers of what sessions of this process hold.
    held: Mutex<HashMap<Mine, i64>>,
    /// What is to be taken out of records, because its session has ended or nobody could be asked.
    pending: Mutex<Vec<(Place, i64)>>,
}

/// What a try has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tried {
    Has,
    /// Somebody is in the way.
    Taken,
    /// And waits, over others, for this session, which is the one to be refused.
    Circle,
}

impl Database {
    /// Tries once to have a lock among all nodes. `says`: that it waits is written down, if it has
    /// to.
    ///
    /// # Errors
    /// Of the transaction. The lock is not held then.
    pub(crate) fn try_over_nodes(
        &self,
        pid: i32,
        want: &Want,
        says: bool,
        options: TxnOptions,
    ) -> SqlResult<Tried> {
        let mine = (want.place, pid, want.shared);
        let locks = &self.over_nodes().locks;
        if locks.held.lock().contains_key(&mine) {
            return Ok(Tried::Has);
        }
        let Some(home) = self.home() else { return Ok(Tried::Has) };
        self.present_or_lost()?;
        let number = self.coordinator().unique_number();
        let me = Party { process: home.holder.coordinator, pid, shared: want.shared, number };
        match self.try_record(&me, want, says, options) {
            Ok(Tried::Has) => {
                locks.held.lock().insert(mine, number);
                Ok(Tried::Has)
            }
            Ok(other) => Ok(other),
            Err(e) => {
                // Nobody may know whether it was written down.
                locks.pending.lock().push((want.place, number));
                Err(e)
            }
        }
    }

    fn try_record(
        &self,
        me: &Party,
        want: &Want,
        says: bool,
        options: TxnOptions,
    ) -> SqlResult<Tried> {
        let key = key_of(&want.place);
        let txn = begin(self, options)?;
        if !says {
            // Most who wait only look.
            let now = self.advisory_record(&txn, &key)?;
            if now.in_the_way(me.pid, me.shared).next().is_some() {
                txn.rollback();
                return Ok(Tried::Taken);
            }
        }
        txn.hold(&key, LockMode::Exclusive).map_err(kv_error)?;
        let mut record = self.advisory_record(&txn, &key)?;
        let said = record.waiters.iter().any(|one| one.pid == me.pid);
        record.waiters.retain(|one| one.pid != me.pid);
        let free = record.in_the_way(me.pid, me.shared).next().is_none();
        if !free && (!says || (said && !self.is_victim(&txn, me.pid)?)) {
            txn.rollback();
            return Ok(Tried::Taken);
        }
        match (free, said) {
            (true, _) => record.holders.push(*me),
            (false, false) => record.waiters.push(*me),
            // It will not wait any more.
            (false, true) => {}
        }
        record.store(&txn, key)?;
        txn.commit().map_err(kv_error)?;
        Ok(match (free, said) {
            (true, _) => Tried::Has,
            (false, false) => Tried::Taken,
            (false, true) => Tried::Circle,
        })
    }

    /// The newest state of a record, without what belongs to processes that are gone.
    fn advisory_record(&self, txn: &Arc<Txn>, key: &[u8]) -> SqlResult<Record> {
        let value = txn.get_as(key, ReadMode::Latest).map_err(kv_error)?;
        let record = value.map_or_else(|| Ok(Record::default()), |v| Record::decode(&v))?;
        self.living(txn, record)
    }

    fn living(&self, txn: &Arc<Txn>, mut record: Record) -> SqlResult<Record> {
        let all = record.holders.iter().chain(&record.waiters);
        let processes: BTreeSet<u64> = all.map(|one| one.process).collect();
        for process in processes {
            if self.is_gone(txn, process).map_err(kv_error)? {
                record.holders.retain(|one| one.process != process);
                record.waiters.retain(|one| one.process != process);
            }
        }
        Ok(record)
    }

    /// Whether a session that has said that it waits is in a circle, and the one of it that is to
    /// be refused.
    fn is_victim(&self, txn: &Arc<Txn>, pid: i32) -> SqlResult<bool> {
        let mut waits: HashMap<i32, Vec<i32>> = HashMap::new();
        for (_, value) in newest(txn, system::advisory_locks()).map_err(kv_error)? {
            let record = self.living(txn, Record::decode(&value)?)?;
            for waiter in &record.waiters {
                let others = record.in_the_way(waiter.pid, waiter.shared);
                waits.entry(waiter.pid).or_default().extend(others);
            }
        }
        Ok(greatest_of_circle(&waits, pid) == Some(pid))
    }

    /// Takes what a session does not have any more among those of its node out of the records.
    /// What cannot be taken out now is later.
    pub(crate) fn give_back_over_nodes(&self, pid: i32) {
        self.note_given_back(pid);
        if let Err(error) = self.take_pending_out() {
            tracing::debug!(%error, "advisory locks cannot be given back now");
        }
    }

    /// As [`Database::give_back_over_nodes`], without asking anybody now.
    pub(crate) fn note_given_back(&self, pid: i32) {
        let locks = &self.over_nodes().locks;
        let mut held = locks.held.lock();
        let over = held.extract_if(|(place, owner, shared), _| {
            *owner == pid && !self.advisory().has(pid, place, *shared)
        });
        let over: Vec<_> = over.map(|((place, ..), number)| (place, number)).collect();
        locks.pending.lock().extend(over);
    }

    /// A session does not wait for a lock any more.
    pub(crate) fn stop_waiting_over_nodes(&self, pid: i32, place: &Place) {
        let tried = self.change_record(place, |record| {
            record.waiters.retain(|one| one.pid != pid);
        });
        if let Err(error) = tried {
            tracing::debug!(%error, "a session that waits no more is still written down");
        }
    }

    fn take_pending_out(&self) -> SqlResult<()> {
        let locks = &self.over_nodes().locks;
        loop {
            let Some((place, number)) = locks.pending.lock().pop() else { return Ok(()) };
            let gone = |record: &mut Record| record.holders.retain(|one| one.number != number);
            if let Err(e) = self.change_record(&place, gone) {
                locks.pending.lock().push((place, number));
                return Err(e);
            }
        }
    }

    fn change_record(&self, place: &Place, change: impl Fn(&mut Record)) -> SqlResult<()> {
        again(|| {
            let txn = begin(self, TxnOptions::default())?;
            let key = key_of(place);
            txn.hold(&key, LockMode::Exclusive).map_err(kv_error)?;
            let mut record = self.advisory_record(&txn, &key)?;
            change(&mut record);
            record.store(&txn, key)?;
            txn.commit().map(|_| ()).map_err(kv_error)
        })
    }

    /// Keeps what sessions of this process hold among all nodes: called again and again by a thread
    /// of its own; does nothing where there are no other nodes.
    ///
    /// # Errors
    /// Of the transactions; the next call tries again.
    pub fn keep_over_nodes(&self) -> SqlResult<()> {
        if !self.is_shared() {
            return Ok(());
        }
        let locks = &self.over_nodes().locks;
        if self.is_presence_over() {
            self.lose_locks();
        }
        let holds = !locks.held.lock().is_empty();
        if !holds && locks.pending.lock().is_empty() {
            return self.leave_when_over();
        }
        if holds {
            self.present_or_lost()?;
        }
        self.take_pending_out()
    }

    /// As [`Database::be_present`]; what was held before is lost if nobody had to believe in it.
    fn present_or_lost(&self) -> SqlResult<()> {
        if self.be_present()? == Kept::Lapsed {
            self.lose_locks();
        }
        Ok(())
    }

    /// What was held may be somebody else's: the sessions that relied on it end.
    fn lose_locks(&self) {
        let locks = &self.over_nodes().locks;
        let lost: Vec<(Mine, i64)> = locks.held.lock().drain().collect();
        locks.pending.lock().extend(lost.iter().map(|((place, ..), number)| (*place, *number)));
        let pids: BTreeSet<i32> = lost.iter().map(|((_, pid, _), _)| *pid).collect();
        for pid in pids {
            tracing::warn!(pid, "this node was cut off: a session ends that had advisory locks");
            self.end_session(pid);
        }
    }

    /// Advisory locks of other nodes' sessions, held or waited for.
    ///
    /// # Errors
    /// Of reading.
    pub fn advisory_locks_elsewhere(&self) -> SqlResult<Vec<AdvisoryLock>> {
        let Some(home) = self.home().filter(|_| self.is_shared()) else { return Ok(Vec::new()) };
        again(|| self.shown_elsewhere(home.holder.coordinator))
    }

    fn shown_elsewhere(&self, process: u64) -> SqlResult<Vec<AdvisoryLock>> {
        let txn = begin(self, TxnOptions { read_only: true, ..TxnOptions::default() })?;
        let mut all = Vec::new();
        for (key, value) in newest(&txn, system::advisory_locks()).map_err(kv_error)? {
            let record = self.living(&txn, Record::decode(&value)?)?;
            let Some(place) = place_of(&key) else { continue };
            let holders = record.holders.iter().map(|one| (one, true));
            let parties = holders.chain(record.waiters.iter().map(|one| (one, false)));
            let others = parties.filter(|(one, _)| one.process != process);
            all.extend(others.map(|(one, granted)| AdvisoryLock {
                database: place.0,
                key: place.1,
                pid: one.pid,
                shared: one.shared,
                granted,
            }));
        }
        Ok(all)
    }
}

/// What is said to a session whose wait would never end.
pub(crate) fn deadlock() -> SqlError {
    Lost::Deadlock.error("deadlock detected")
}

/// The greatest of those that wait for themselves over `pid`, and it over them; `None`: it is in no
/// circle.
fn greatest_of_circle(waits: &HashMap<i32, Vec<i32>>, pid: i32) -> Option<i32> {
    let reach = |from: i32| {
        let (mut todo, mut seen) = (vec![from], BTreeSet::new());
        while let Some(next) = todo.pop() {
            let more = waits.get(&next).into_iter().flatten();
            todo.extend(more.copied().filter(|other| seen.insert(*other)));
        }
        seen
    };
    let circle = reach(pid).into_iter().filter(|other| reach(*other).contains(&pid));
    circle.max().filter(|_| reach(pid).contains(&pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_circle_is_refused_and_nobody_outside_of_it() {
        let waits = HashMap::from([(1, vec![2]), (2, vec![3, 9]), (3, vec![1]), (7, vec![1])]);
        assert_eq!([1, 2, 3].map(|pid| greatest_of_circle(&waits, pid)), [Some(3); 3]);
        assert_eq!([7, 9].map(|pid| greatest_of_circle(&waits, pid)), [None; 2]);
    }

    #[test]
    fn a_lock_is_found_by_its_key() {
        let keys = [AdvisoryKey::One(-1), AdvisoryKey::One(i64::MAX), AdvisoryKey::Two(-3, 7)];
        for place in keys.map(|key| (104, key)) {
            assert_eq!(place_of(&key_of(&place)), Some(place));
        }
        assert_ne!(key_of(&(1, AdvisoryKey::One(7))), key_of(&(1, AdvisoryKey::Two(0, 7))));
    }
}
