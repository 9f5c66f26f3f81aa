//! How an import's memory is divided: what all of it holds together never passes the setting.
//!
//! ```text
//!   |---- loads: rows being sorted, files being written and merged ----| readers |..| the rest
//!    worker 1              | worker 2                                   1    2
//! ```
//! Long rows take what they need of the whole: the load brings its own to the disk then, and nobody
//! reads ahead. A row that does not fit although is an error that says how much would do.

use std::sync::Arc;

use braid_env::memory::Account;
use braid_env::tasks::cores;
use braid_import::reader::Job as Reading;
use braid_kv::BulkLoad;
use braid_types::{SqlError, SqlResult, SqlState};

use super::options::MEMORY_MIN;
use crate::session::Context;

/// Readers have this part of the memory, together;
const READERS: usize = 8;
/// rows on their way and what there is besides, this one.
const REST: usize = 16;
/// Each worker has so much, in bytes, or there are fewer of them.
const WORKER_MIN: usize = 8 << 20;
/// What is asked for where a row does not fit: so many times what was refused.
const ENOUGH: usize = 4;

/// Memory of an import.
pub(super) struct Memory {
    pub(super) account: Arc<Account>,
    workers: usize,
    /// Of one reader, in bytes.
    reader: usize,
    /// Of all loads together.
    load: usize,
    /// Most bytes of an account before this one.
    peak: usize,
}

impl Memory {
    /// So many bytes, for a table with so many targets, of which so many files are read, at most
    /// `wanted` side by side.
    ///
    /// # Errors
    /// 53200 if that is too little for so many targets.
    pub(super) fn new(
        ctx: &Context,
        bytes: usize,
        targets: usize,
        (files, wanted): (usize, usize),
    ) -> SqlResult<Memory> {
        let limit = bytes.min(ctx.memory.limit());
        let workers = files.min(wanted).min(cores()).min(limit / WORKER_MIN).max(1);
        let memory = Memory::divided(ctx.memory.pool().account(limit), limit, workers);
        if memory.fits(targets) {
            return Ok(memory);
        }
        let fits = |limit: usize| {
            Memory::divided(memory.account.clone(), limit, 1).fits(targets).then_some(limit)
        };
        let enough = (1..).map(|n| n * MEMORY_MIN).find_map(fits).unwrap_or(usize::MAX);
        let (given, enough, indexes) = (shown(limit), shown(enough), targets.saturating_sub(2));
        let message = format!("{given} of memory are too little for {indexes} indexes");
        Err(SqlError::new(SqlState::OUT_OF_MEMORY, message)
            .with_hint(format!("WITH memory = '{enough}' would do.")))
    }

    fn divided(account: Arc<Account>, limit: usize, workers: usize) -> Memory {
        let reader = (limit / READERS / workers).clamp(Reading::MEMORY_MIN, Reading::MEMORY);
        let load = limit.saturating_sub(reader * workers + limit / REST);
        Memory { account, workers, reader, load, peak: 0 }
    }

    fn fits(&self, targets: usize) -> bool {
        self.load / self.workers >= BulkLoad::least_memory(targets)
    }

    /// For one that sorts nothing.
    pub(super) fn unsorted(ctx: &Context) -> Memory {
        let (account, reader) = (ctx.memory.clone(), Reading::MEMORY);
        Memory { account, workers: 1, reader, load: 0, peak: 0 }
    }

    /// How many files are read side by side.
    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    /// The same with one worker, which has all of it.
    pub(super) fn alone(&self) -> Memory {
        let (account, limit) = (&self.account, self.account.limit());
        let alone = Memory::divided(account.pool().account(limit), limit, 1);
        Memory { peak: self.peak(), ..alone }
    }

    /// Most bytes that were held at any time.
    pub(super) fn peak(&self) -> usize {
        self.peak.max(self.account.peak())
    }

    /// Bytes for one reader.
    pub(super) fn reader(&self) -> usize {
        self.reader
    }

    /// Bytes for all loads together.
    pub(super) fn load(&self) -> usize {
        self.load
    }

    /// An error of memory says which setting would do.
    pub(super) fn explain(&self, e: SqlError) -> SqlError {
        let limit = self.account.limit();
        if e.state() != SqlState::OUT_OF_MEMORY || limit == usize::MAX {
            return e;
        }
        let wanted = self.account.refused().saturating_mul(ENOUGH);
        match wanted > limit {
            true => e.with_hint(format!(
                "The import may hold {}: WITH memory = '{}' would do.",
                shown(limit),
                shown(wanted)
            )),
            // The node has no more, or others hold it.
            false => e,
        }
    }
}

/// A size as options have it, rounded up.
fn shown(bytes: usize) -> String {
    format!("{}MB", bytes.div_ceil(1 << 20))
}
