//! The end of a replica that was removed.
//!
//! ```text
//!   number kept      durable: from here on it is gone, whatever crashes
//!   keys, records    cut out of the store; if they are few, deleted by the batch with the number
//!   raft log         has the group no more
//! ```
//!
//! A node that finds a kept number above that of a replica when it opens its store does what is
//! missing. So it does if the range's state names no replica of this node: the entry that removes
//! it was applied, and then the power failed. The number stays for ever: a state that would bring
//! the replica back, without what it had promised, is refused.
//!
//! Who was removed may not know it: it has no part in the entry that says so. So whoever knows
//! tells
//! it, as an answer to what it says; and who hears nothing from a leader for long asks all members.

use std::collections::BTreeMap;

use braid_consensus::codec::{Reader, put_number};
use braid_consensus::{GroupId, LogBatch, LoggedGroup, RaftLog, ReplicaId, Result};
use braid_lsm::{Batch, CommitTs, Db, Durability, KeySpan, ScanOptions};

use crate::ids::{NodeId, RangeId};
use crate::local_keys;
use crate::machine::newest;
use crate::raft_snapshot::Said;
use crate::replicas::{Replicas, stored_states};
use crate::state::RangeState;

/// What a replica has stored up to here is deleted, not cut out.
const SMALL_BYTES: u64 = 128 << 10;

/// Replicas of ranges that were removed from this node: all below these numbers.
pub(crate) type Retired = BTreeMap<RangeId, ReplicaId>;

/// A stamp for a record that has no time of its own: above its last one (contract C1), and above
/// the threshold (C2).
pub(crate) fn stamp_for(db: &Db, key: &[u8]) -> Result<CommitTs> {
    let last = db.newest_above(&KeySpan::point(key), CommitTs::ZERO)?;
    let last = last.unwrap_or(CommitTs::ZERO);
    Ok(CommitTs(last.max(db.gc_threshold()).0 + 1))
}

fn numbered(next: ReplicaId) -> Vec<u8> {
    let mut record = Vec::new();
    put_number(&mut record, next.0);
    record
}

/// Keeps a number. Durable when it returns.
fn keep_number(db: &Db, range: RangeId, next: ReplicaId) -> Result<()> {
    let key = local_keys::retired(range);
    let mut batch = Batch::at(stamp_for(db, &key)?);
    batch.put(&key, &numbered(next));
    db.write(batch, Durability::Sync)?;
    Ok(())
}

/// Keeps a number and deletes what a small replica had, in one batch: nothing of that is worth
/// that a memtable ends, as it does where keys are cut out that it has. Durable when it returns.
fn keep_number_and_delete(db: &Db, range: RangeId, next: ReplicaId, keys: &KeySpan) -> Result<()> {
    let (key, records) = (local_keys::retired(range), local_keys::records(range));
    let mut at = stamp_for(db, &key)?;
    for span in [keys, &records] {
        let newest = db.newest_above(span, CommitTs::ZERO)?;
        at = newest.map_or(at, |newest| at.max(CommitTs(newest.0 + 1)));
    }
    let mut batch = Batch::at(at);
    batch.put(&key, &numbered(next));
    [keys, &records].iter().for_each(|span| batch.delete_span(&span.start, &span.end));
    db.write(batch, Durability::Sync)?;
    Ok(())
}

/// Takes away what a replica had. Durable when it returns.
fn clear_away(db: &Db, log: &mut RaftLog, range: RangeId, keys: &KeySpan) -> Result<()> {
    db.excise(keys)?;
    db.excise(&local_keys::records(range))?;
    forget_log(log, range)
}

/// Durable when it returns: the next replica of the range on this node must not find the log of
/// this one after a crash.
fn forget_log(log: &mut RaftLog, range: RangeId) -> Result<()> {
    let mut batch = LogBatch::default();
    batch.remove(range.group());
    log.write(&batch)?;
    log.sync(log.written())
}

/// Does what a crash has kept from being done; returns the numbers that are kept.
pub(crate) fn finish_retiring(
    db: &Db,
    log: &mut RaftLog,
    logged: &mut BTreeMap<GroupId, LoggedGroup>,
    own: NodeId,
) -> Result<Retired> {
    let mut retired = Retired::new();
    let view = db.view(newest())?;
    let mut scan = view.scan(local_keys::all_retired(), ScanOptions::default())?;
    while let Some(row) = scan.next_row()? {
        let number = Reader::new(&row.value).number().map(ReplicaId);
        if let (Some(range), Some(number)) = (local_keys::retired_range(&row.key), number) {
            retired.insert(range, number);
        }
    }
    for state in stored_states(db)? {
        if state.descriptor.replica_on(own).is_none() {
            // The node gets none of the numbers below any more, and has got none of those above.
            let (range, next) = (state.descriptor.id, state.descriptor.next_replica);
            keep_number(db, range, next)?;
            retired.insert(range, next);
        }
    }
    for (range, next) in &retired {
        let state = db.get(&local_keys::state(*range), newest())?;
        let state = state.as_deref().and_then(RangeState::decode);
        let replica = state.as_ref().and_then(|state| state.descriptor.replica_on(own));
        if replica.is_some_and(|replica| replica >= *next) {
            continue;
        }
        let keys = state.map(|state| state.descriptor.span);
        if keys.is_some() || logged.contains_key(&range.group()) {
            let none = KeySpan::new("", "");
            clear_away(db, log, *range, &keys.unwrap_or(none))?;
            logged.remove(&range.group());
        }
    }
    Ok(retired)
}

impl Replicas {
    /// Whether a replica of a range on this node was removed.
    pub(crate) fn was_removed(&self, range: RangeId, replica: ReplicaId) -> bool {
        self.absent.retired.get(&range).is_some_and(|next| replica < *next)
    }

    /// This node's replica of a range goes: it was removed, and so were those that it had before.
    /// Blocks on the device.
    pub(crate) fn retire(&mut self, range: RangeId) -> Result<()> {
        let Some(replica) = self.replicas.get(&range) else { return Ok(()) };
        // No more than that: the node may have got the next one already.
        let next = ReplicaId(replica.group.id().0 + 1);
        let keys = replica.machine.state.descriptor.span.clone();
        let is_small = self.db.view(newest())?.stored_bytes(&keys)? <= SMALL_BYTES;
        if is_small {
            keep_number_and_delete(&self.db, range, next, &keys)?;
        } else {
            // What the store had before must not come back behind what is cut out now.
            self.store_position().wait_durable()?;
            keep_number(&self.db, range, next)?;
        }
        self.absent.retired.insert(range, next);
        self.quiet.sleepers.end(range);
        if let Some(mut replica) = self.replicas.remove(&range) {
            let answers = replica.dismiss_all();
            self.answer(answers);
        }
        self.forget_unsynced(range);
        self.absent.unborn.remove(&range.group());
        match is_small {
            true => forget_log(&mut self.log, range)?,
            false => clear_away(&self.db, &mut self.log, range, &keys)?,
        }
        self.effects.notes.push(format!("the replica of {range:?} on this node was removed"));
        Ok(())
    }

    /// Another node has said that a replica of this one was removed.
    pub(crate) fn hear_of_removal(&mut self, range: RangeId, replica: ReplicaId) -> Result<()> {
        let own = self.replicas.get(&range).map(|own| own.group.id());
        match own == Some(replica) {
            true => self.retire(range),
            false => Ok(()),
        }
    }

    /// A replica of another node says something, or asks whether it still is one. If it was
    /// removed,
    /// it is told so; whether it was.
    pub(crate) fn tell_removed(
        &mut self,
        range: RangeId,
        from: NodeId,
        replica: ReplicaId,
    ) -> bool {
        let Some(own) = self.replicas.get(&range) else { return false };
        let removed = own.machine.state.descriptor.has_removed(replica);
        if removed {
            self.say(range, from, &Said::Removed { replica });
        }
        removed
    }
}
