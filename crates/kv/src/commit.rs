//! The moment a transaction happens.
//!
//! Under the commit mutex: take a timestamp, check what was read, apply the batch, publish. The
//! mutex is never held while waiting for the disk: durability is waited for afterwards, together
//! with everybody else's (the engine's group commit). Locks are released before that wait: whoever
//! reads our rows and commits is behind us in the wal, so he cannot become durable without us.

use braid_lsm::{CommitTs, Pending};

use crate::error::{Conflict, KvError, KvResult};
use crate::read_set::ReadSet;
use crate::store::Store;

impl Store {
    /// Validates and applies. `reads` is `None` below SERIALIZABLE. `waits`: the caller will wait
    /// until the commit is durable, and so will those who read it.
    pub(crate) fn commit_batch(
        &self,
        read_ts: CommitTs,
        reads: Option<&ReadSet>,
        waits: bool,
        batch_at: impl FnOnce(CommitTs) -> braid_lsm::Batch,
    ) -> KvResult<(CommitTs, Pending)> {
        let _order = self.commit_order.lock();
        if let Some(reads) = reads {
            self.validate(read_ts, reads)?;
        }
        let ts = self.next_commit_ts();
        let pending = self.engine().apply(batch_at(ts))?;
        if waits {
            self.durable().applied(ts, &pending);
        }
        self.publish(ts);
        Ok((ts, pending))
    }

    /// Whether everything that was read at `read_ts` would be read alike now.
    pub(crate) fn validate(&self, read_ts: CommitTs, reads: &ReadSet) -> KvResult<()> {
        if self.engine().last_commit_ts() <= read_ts {
            return Ok(());
        }
        for key in reads.points() {
            let newest = self.engine().max_ts(key)?;
            if newest > read_ts {
                return Err(KvError::Retry { conflict: Conflict::Read(key.clone()) });
            }
        }
        for span in reads.spans() {
            if self.engine().newest_above(span, read_ts)?.is_some() {
                return Err(KvError::Retry { conflict: Conflict::ReadSpan(span.clone()) });
            }
        }
        Ok(())
    }
}
