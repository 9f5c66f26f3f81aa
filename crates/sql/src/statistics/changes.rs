//! How many rows were written to each table, counted in memory as statements write them.
//!
//! Counts are estimates: what was rolled back stays counted, a range delete counts the rows below
//! its table by what a family holds on average, and a process begins at nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use braid_catalog::Table;
use foldhash::HashMap;
use parking_lot::Mutex;

use crate::database::EPOCH_MICROS;

/// Rows that were written to tables, by id and generation.
#[derive(Default)]
pub(crate) struct Changes {
    tables: Mutex<HashMap<(u32, u32), Arc<Written>>>,
}

/// Rows written to one table since the process began.
#[derive(Debug, Default)]
pub(crate) struct Written {
    inserted: AtomicU64,
    updated: AtomicU64,
    deleted: AtomicU64,
    /// Where counting stood when the last ANALYZE began to read.
    analyzed_modified: AtomicI64,
    analyzed_grown: AtomicI64,
    /// Rows written since the last ANALYZE when the background looked last.
    seen: AtomicI64,
    /// By somebody, and by the background.
    asked: Analyzes,
    automatic: Analyzes,
    /// How long the background's last one took, in microseconds, and when its last failure was.
    took_us: AtomicU64,
    failed_us: AtomicU64,
}

/// How often a table was analyzed, and when last, in microseconds since 1970.
#[derive(Debug, Default)]
struct Analyzes {
    count: AtomicU64,
    last_us: AtomicU64,
}

/// What was written to a table since the process began, and when it was analyzed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableActivity {
    /// Rows that were inserted.
    pub inserted: u64,
    /// Rows that were updated.
    pub updated: u64,
    /// Rows that were deleted.
    pub deleted: u64,
    /// Rows that were written since the last ANALYZE.
    pub modified: u64,
    /// When an ANALYZE ended that somebody had asked for, in microseconds since 2000.
    pub last_analyze: Option<i64>,
    /// When one ended that nobody had asked for.
    pub last_auto_analyze: Option<i64>,
    /// How many of the former.
    pub analyzes: u64,
    /// How many of the latter.
    pub auto_analyzes: u64,
}

/// Where the counts of a table stand since the process began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// Rows that were written.
    modified: i64,
    /// Rows that came, less those that went.
    grown: i64,
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
    }

    /// Rows that were written since the last ANALYZE.
    pub(super) fn modified(&self) -> i64 {
        self.mark().modified - self.analyzed_modified.load(Ordering::Relaxed)
    }

    /// Whether nothing was written since the background looked last, which is now.
    pub(super) fn is_as_seen(&self, modified: i64) -> bool {
        self.seen.swap(modified, Ordering::Relaxed) == modified
    }

    /// When this process has analyzed it last, in microseconds since 1970; 0: never.
    pub(super) fn last_analyze(&self) -> u64 {
        let last = |a: &Analyzes| a.last_us.load(Ordering::Relaxed);
        last(&self.asked).max(last(&self.automatic))
    }

    /// When the background could not analyze it, the same way.
    pub(super) fn last_failure(&self) -> u64 {
        self.failed_us.load(Ordering::Relaxed)
    }

    /// Whether the background's last ANALYZE took at most such a part of the time since then. A
    /// second is nothing.
    pub(super) fn may_take(&self, part: u64, now_us: u64) -> bool {
        const NOTHING: u64 = 1_000_000;
        let took = self.took_us.load(Ordering::Relaxed).saturating_sub(NOTHING);
        self.last_analyze().saturating_add(took.saturating_mul(part)) <= now_us
    }

    /// The background has tried to analyze it, from when to when.
    pub(super) fn tried(&self, (begun_us, now_us): (u64, u64), is_done: bool) {
        self.took_us.store(now_us.saturating_sub(begun_us), Ordering::Relaxed);
        if !is_done {
            self.failed_us.store(now_us, Ordering::Relaxed);
        }
    }

    pub(super) fn activity(&self) -> TableActivity {
        let count = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let last = |a: &Analyzes| match count(&a.last_us) {
            0 => None,
            us => Some(us as i64 - EPOCH_MICROS),
        };
        TableActivity {
            inserted: count(&self.inserted),
            updated: count(&self.updated),
            deleted: count(&self.deleted),
            modified: self.modified().max(0) as u64,
            last_analyze: last(&self.asked),
            last_auto_analyze: last(&self.automatic),
            analyzes: count(&self.asked.count),
            auto_analyzes: count(&self.automatic.count),
        }
    }

    /// Rows that there are more than at the last ANALYZE.
    pub(super) fn grown_since_analyze(&self) -> f64 {
        (self.mark().grown - self.analyzed_grown.load(Ordering::Relaxed)) as f64
    }

    /// Rows that there are more than at the start of the process.
    pub(super) fn grown(&self) -> f64 {
        self.mark().grown as f64
    }

    /// Where counting stands when an ANALYZE begins to read.
    pub(super) fn mark(&self) -> Mark {
        let count = |n: &AtomicU64| n.load(Ordering::Relaxed) as i64;
        let (inserted, deleted) = (count(&self.inserted), count(&self.deleted));
        let modified = inserted + count(&self.updated) + deleted;
        Mark { modified, grown: inserted - deleted }
    }

    /// An ANALYZE that ends now has seen what was counted up to its mark, whatever others that ran
    /// beside it have seen.
    pub(super) fn analyzed(&self, mark: Mark, automatic: bool, now_us: u64) {
        let kind = if automatic { &self.automatic } else { &self.asked };
        kind.count.fetch_add(1, Ordering::Relaxed);
        kind.last_us.store(now_us, Ordering::Relaxed);
        self.analyzed_modified.store(mark.modified, Ordering::Relaxed);
        self.analyzed_grown.store(mark.grown, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn analyzes_beside_each_other_count_what_was_written_once() {
        let written = Written::default();
        written.add(Delta::inserted(1_000));
        let asked = written.mark();
        written.add(Delta::inserted(10));
        let automatic = written.mark();
        written.analyzed(automatic, true, 1);
        assert_eq!((written.modified(), written.grown_since_analyze()), (0, 0.0));
        // What it has stored holds ten rows less.
        written.analyzed(asked, false, 2);
        assert_eq!((written.modified(), written.grown_since_analyze()), (10, 10.0));
        written.add(Delta { deleted: 4, updated: 1, ..Delta::default() });
        assert_eq!((written.modified(), written.grown_since_analyze()), (15, 6.0));
        assert_eq!(written.grown(), 1_006.0);
    }

    #[test]
    fn a_long_analyze_is_not_repeated_soon() {
        let written = Written::default();
        assert!(written.may_take(50, 0), "there was none");
        let seconds = |n: u64| n * 1_000_000;
        written.tried((seconds(1), seconds(9)), true);
        written.analyzed(written.mark(), true, seconds(9));
        assert_eq!((written.last_analyze(), written.last_failure()), (seconds(9), 0));
        let may = |part, now| written.may_take(part, seconds(now));
        assert!(!may(10, 78) && may(10, 79) && !may(50, 358) && may(50, 359));
        written.tried((seconds(400), seconds(400) + 9), false);
        assert_eq!(written.last_failure(), seconds(400) + 9);
        assert!(written.may_take(50, seconds(9)), "it took no time");
    }
}
