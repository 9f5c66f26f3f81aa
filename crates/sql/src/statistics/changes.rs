//! How many rows were written to each table, counted in memory as statements write them.
//!
//! Counts are estimates: what was rolled back stays counted, a range delete counts the rows below
//! its table by what a family holds on average, and a process begins at nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use braid_catalog::Table;
use parking_lot::Mutex;

/// Rows that were written to tables, by id and generation.
#[derive(Default)]
pub(crate) struct Changes {
    tables: Mutex<HashMap<(u32, u32), Arc<Written>>>,
}

/// Rows written to one table since the process began.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(super) inserted: AtomicU64,
    pub(super) updated: AtomicU64,
    pub(super) deleted: AtomicU64,
    /// Of all three, and of rows more than before, since the last ANALYZE.
    modified: AtomicI64,
    grown: AtomicI64,
}

/// What a statement has written to a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delta {
    pub(crate) inserted: u64,
    pub(crate) updated: u64,
    pub(crate) deleted: u64,
}

/// What a statement has written so far, table by table.
#[derive(Default)]
pub(crate) struct Tally(Vec<(Arc<Table>, Delta)>);

impl Delta {
    /// So many new rows.
    pub(crate) fn inserted(inserted: u64) -> Delta {
        Delta { inserted, ..Delta::default() }
    }

    /// So many changed rows.
    pub(crate) fn updated(updated: u64) -> Delta {
        Delta { updated, ..Delta::default() }
    }

    /// So many rows that are gone.
    pub(crate) fn deleted(deleted: u64) -> Delta {
        Delta { deleted, ..Delta::default() }
    }
}

impl Tally {
    pub(crate) fn add(&mut self, table: &Arc<Table>, more: Delta) {
        match self.0.iter_mut().find(|(known, _)| known.id == table.id) {
            Some((_, delta)) => {
                delta.inserted += more.inserted;
                delta.updated += more.updated;
                delta.deleted += more.deleted;
            }
            None => self.0.push((table.clone(), more)),
        }
    }

    /// The statement has come to its end.
    pub(crate) fn tell(&mut self, changes: &Changes) {
        self.0.drain(..).for_each(|(table, delta)| changes.add(&table, delta));
    }
}

impl Changes {
    /// The counts of a table as it is now.
    pub(super) fn of(&self, table: &Table) -> Arc<Written> {
        let mut tables = self.tables.lock();
        tables.entry((table.id, table.generation)).or_default().clone()
    }

    /// A statement has written.
    pub(crate) fn add(&self, table: &Table, delta: Delta) {
        if delta != Delta::default() {
            self.of(table).add(delta);
        }
    }
}

impl Written {
    fn add(&self, Delta { inserted, updated, deleted }: Delta) {
        self.inserted.fetch_add(inserted, Ordering::Relaxed);
        self.updated.fetch_add(updated, Ordering::Relaxed);
        self.deleted.fetch_add(deleted, Ordering::Relaxed);
        self.modified.fetch_add((inserted + updated + deleted) as i64, Ordering::Relaxed);
        self.grown.fetch_add(inserted as i64 - deleted as i64, Ordering::Relaxed);
    }

    /// Rows that there are more than at the last ANALYZE.
    pub(super) fn grown_since_analyze(&self) -> f64 {
        self.grown.load(Ordering::Relaxed) as f64
    }

    /// Rows that there are more than at the start of the process.
    pub(super) fn grown(&self) -> f64 {
        let count = |n: &AtomicU64| n.load(Ordering::Relaxed) as f64;
        count(&self.inserted) - count(&self.deleted)
    }

    /// Where counting stands when an ANALYZE begins to read.
    pub(super) fn mark(&self) -> (i64, i64) {
        (self.modified.load(Ordering::Relaxed), self.grown.load(Ordering::Relaxed))
    }

    /// An ANALYZE has seen what was counted up to then.
    pub(super) fn analyzed(&self, (modified, grown): (i64, i64)) {
        self.modified.fetch_sub(modified, Ordering::Relaxed);
        self.grown.fetch_sub(grown, Ordering::Relaxed);
    }
}
