//! The moment a transaction happens.
//!
//! ```text
//!   validate what was read                     may read from the device
//!   prepare the batch                          waits for room; very many rows become ssts, and
//!                                              the ssts of a load get their names
//!   validate what came since                   little: from memory
//!   -- commit mutex -----------------------------------------------------------------
//!   validate what came since                   next to nothing
//!   timestamp, apply, publish
//!   ---------------------------------------------------------------------------------
//!   wait until it is durable
//! ```
//!
//! The mutex is never held while waiting for the disk or for background work: durability is waited
//! for afterwards, together with everybody else's (the engine's group commit). Locks are released
//! before that wait: whoever reads our rows and commits is behind us in the wal, so he cannot
//! become durable without us.
//!
//! Keys that get the time of their commit ([`KeyNames`]) are known under the mutex and not before:
//! then such a batch, which is no large one, is prepared once more. Room for it was waited for
//! with the names.

use std::path::PathBuf;

use braid_lsm::{Batch, CommitTs};

use crate::error::KvResult;
use crate::read_set::Reads;
use crate::row_form::KeyNames;
use crate::store::Store;

impl Store {
    /// Validates and applies. `reads` is `None` below SERIALIZABLE. `waits`: the caller will wait
    /// until the commit is durable, and so will those who read it.
    pub(crate) fn commit_batch(
        &self,
        read_ts: CommitTs,
        reads: Option<&Reads>,
        waits: bool,
        (batch, names): (Batch, &KeyNames),
    ) -> KvResult<CommitTs> {
        let mut floor = read_ts;
        let form = self.stored().row_form.filter(|_| !names.is_empty());
        let named = form.map(|form| (batch.clone(), form));
        // Everything up to `seen` is there to be found before the search for it begins.
        let catch_up = |floor: &mut CommitTs| -> KvResult<()> {
            let seen = self.published();
            if let Some(reads) = reads {
                self.check_reads(*floor, reads)?;
            }
            *floor = seen.max(*floor);
            Ok(())
        };
        catch_up(&mut floor)?;
        let mut prepared = self.engine().prepare(batch)?;
        catch_up(&mut floor)?;
        let (ts, pending) = {
            let _order = self.commit_order.lock();
            catch_up(&mut floor)?;
            let ts = match &named {
                None => self.next_commit_ts(),
                Some((batch, form)) => {
                    let ts = self.next_whole_commit_ts();
                    prepared = self.engine().prepare(names.given(batch, *form, ts))?;
                    ts
                }
            };
            if !self.watches().is_empty() {
                self.watches().batch(&prepared, ts, self.row_class());
            }
            let pending = prepared.apply(ts)?;
            if waits {
                self.durable().applied(ts, &pending);
            }
            self.publish(ts);
            (ts, pending)
        };
        drop(prepared);
        pending.relieve()?;
        Ok(ts)
    }

    /// Validates, and takes in the ssts of a bulk load at one timestamp. Durable when it returns.
    pub(crate) fn commit_files(
        &self,
        read_ts: CommitTs,
        reads: Option<&Reads>,
        files: &[PathBuf],
    ) -> KvResult<CommitTs> {
        let mut floor = read_ts;
        // Most of it before others have to wait.
        let catch_up = |floor: &mut CommitTs| -> KvResult<()> {
            let seen = self.published();
            if let Some(reads) = reads {
                self.check_reads(*floor, reads)?;
            }
            *floor = seen.max(*floor);
            Ok(())
        };
        catch_up(&mut floor)?;
        let spans = self.engine().spans_of(files)?;
        let mut prepared = self.engine().prepare_files(files)?;
        catch_up(&mut floor)?;
        let (ts, pending) = {
            let _order = self.commit_order.lock();
            catch_up(&mut floor)?;
            let ts = self.next_commit_ts();
            self.watches().files(&spans, ts);
            let pending = prepared.apply(ts)?;
            self.durable().applied(ts, &pending);
            self.publish(ts);
            (ts, pending)
        };
        drop(prepared);
        pending.relieve()?;
        self.durable().wait(ts)?;
        Ok(ts)
    }

    /// Whether nothing that was read has changed after `floor`.
    pub(crate) fn check_reads(&self, floor: CommitTs, reads: &Reads) -> KvResult<()> {
        if self.engine().last_commit_ts() <= floor {
            return Ok(());
        }
        self.stored().check_reads(floor, reads)
    }
}
