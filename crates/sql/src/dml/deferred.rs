//! Checks of foreign keys and unique keys that wait for the end of their transaction block.
//!
//! ```text
//!   BEGIN
//!   INSERT INTO child ..      its parent is missing: kept for COMMIT, if the key is DEFERRED
//!   INSERT INTO parent ..
//!   COMMIT                    the row is read as it is now: is its parent there?
//! ```
//! A check asks what the rows are when it is answered, not when it was put off: whatever became of
//! them meanwhile, a rollback to a savepoint included, it is right. Outside of a block the end of
//! the statement is the end of the transaction, and nothing waits. Of foreign keys only NO ACTION
//! can wait, as in PostgreSQL: other actions are part of the statement. A unique key that can wait
//! is looked at when a statement ends at the earliest, so that rows may exchange their keys.

use std::collections::HashMap;
use std::sync::Arc;

use braid_catalog::{Deferral, memory_error};
use braid_env::memory::Account;
use braid_rows::row_memory;
use braid_types::{SqlError, SqlResult, SqlState};
use parking_lot::Mutex;

use super::later::Later;
use super::writer::Writer;
use crate::session::Context;

/// What a block has put off, and what it wants put off.
pub(crate) struct Deferred {
    waiting: Mutex<Vec<Later>>,
    modes: Mutex<Modes>,
    memory: Arc<Account>,
}

/// SET CONSTRAINTS, so far.
#[derive(Default)]
struct Modes {
    /// Of ALL.
    all: Option<bool>,
    /// By id of the foreign key, or of the index of the unique key.
    named: HashMap<u32, bool>,
}

impl Deferred {
    /// Of a block that begins. What waits is taken from an account.
    pub(crate) fn new(memory: Arc<Account>) -> Arc<Deferred> {
        let (waiting, modes) = (Mutex::default(), Mutex::default());
        Arc::new(Deferred { waiting, modes, memory })
    }

    /// Whether the checks of a constraint wait now.
    pub(super) fn waits(&self, (id, deferral): (u32, Option<Deferral>)) -> bool {
        let Some(deferral) = deferral else { return false };
        let modes = self.modes.lock();
        let set = modes.named.get(&id).copied().or(modes.all);
        set.unwrap_or(deferral == Deferral::Deferred)
    }

    /// Takes those of a statement's questions that wait; the others are left.
    pub(super) fn take(&self, laters: &mut Vec<Later>) -> SqlResult<()> {
        let (waiting, now) = std::mem::take(laters)
            .into_iter()
            .partition(|l| l.constraint().is_some_and(|k| self.waits(k)));
        *laters = now;
        let waiting: Vec<Later> = waiting;
        let bytes = waiting.iter().map(|l| row_memory(l.row())).sum();
        self.memory.take("deferred constraints", bytes).map_err(|e| memory_error(&e))?;
        self.waiting.lock().extend(waiting);
        Ok(())
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }

    /// 55006 if checks about a table wait: its rows must not get another shape before.
    pub(crate) fn refuse_change(&self, table: u32) -> SqlResult<()> {
        let waiting = self.waiting.lock();
        let about = |l: &&Later| l.tables().contains(&table);
        let Some(name) = waiting.iter().find(about).and_then(|l| l.name_of(table)) else {
            return Ok(());
        };
        Err(SqlError::new(
            SqlState::OBJECT_IN_USE,
            format!("cannot ALTER TABLE \"{name}\" because it has pending trigger events"),
        ))
    }

    /// SET CONSTRAINTS: of some constraints, or of all that can wait.
    pub(crate) fn set(&self, which: Option<&[u32]>, deferred: bool) {
        let mut modes = self.modes.lock();
        match which {
            None => *modes = Modes { all: Some(deferred), ..Modes::default() },
            Some(ids) => modes.named.extend(ids.iter().map(|id| (*id, deferred))),
        }
    }

    /// Answers what waits and need not any more: all of it at the end of the block.
    ///
    /// # Errors
    /// 23503, 23505.
    pub(crate) fn answer(&self, ctx: &Context, all: bool) -> SqlResult<()> {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        let (due, left): (Vec<Later>, Vec<Later>) = waiting
            .into_iter()
            .partition(|l| all || !l.constraint().is_some_and(|k| self.waits(k)));
        *self.waiting.lock() = left;
        let mut writer = Writer::new(ctx);
        due.into_iter().for_each(|later| writer.ask_later(later));
        writer.answer_all()
    }
}
