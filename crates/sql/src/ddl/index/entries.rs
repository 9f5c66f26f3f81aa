//! The entries of an index for all rows of a table: read, made and sorted on several threads.
//!
//! ```text
//!   rows   ├── part 1 ──┼── part 2 ──┤      cut where the store says that the halves are
//!   thread   scan, sort    scan, sort       each into a load of its own
//!            └───── one load ─────┘         merged side by side, too: [`finish_beside`]
//! ```
//! `max_parallel_maintenance_workers` says how many threads help the statement's own, 2 unless set
//! otherwise; there are never more than cores. `backfill_rows_per_second` slows down the change in
//! steps, which nobody waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use braid_env::tasks::{cores, side_by_side};
use braid_kv::{BulkLoad, KeySpan, Loaded, ReadMode};
use braid_types::SqlResult;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use crate::bulk::LoadError;
use crate::session::Context;
use braid_rows::Row;
use braid_rows::layout::IndexLayout;
use braid_rows::{EntryMaker, TableLayout, TableScan};

/// Rows between words about how far a thread is.
const TELL_EVERY: u64 = 1024;
/// Entries between looks at the cancel flag, where nothing is computed of them.
const CANCEL_EVERY: u64 = 1024;
/// A thread has at least so many bytes of rows to read.
const PART_BYTES: u64 = 4 << 20;

/// What is read, and how.
pub(in crate::ddl) struct Entries<'a> {
    pub(in crate::ddl) ctx: &'a Context,
    pub(in crate::ddl) layout: &'a Arc<TableLayout>,
    pub(in crate::ddl) index: &'a IndexLayout,
    pub(in crate::ddl) reading: ReadMode,
    /// Rows to be read in a second at most, by all threads.
    pub(in crate::ddl) rate: Option<u64>,
}

impl Entries<'_> {
    /// All entries, as a load. `progress` is told how much of the table was read.
    pub(in crate::ddl) fn load(
        &self,
        progress: impl Fn(f64) + Sync,
    ) -> Result<BulkLoad, LoadError> {
        let whole = self.layout.rows.whole_span();
        let parts = self.ctx.txn.divide(&whole, build_threads(self.ctx), PART_BYTES)?;
        let done: Vec<AtomicU64> = parts.iter().map(|_| AtomicU64::new(0)).collect();
        let (memory, threads) = (self.ctx.session.load_memory() / parts.len(), parts.len());
        let jobs = parts.iter().zip(&done).map(|(part, own)| {
            let (progress, done) = (&progress, &done);
            move || {
                self.part(part, memory, self.pace(threads), |fraction| {
                    own.store(fraction.to_bits(), Ordering::Relaxed);
                    let all = done.iter().map(|part| f64::from_bits(part.load(Ordering::Relaxed)));
                    progress(all.sum::<f64>() / done.len() as f64);
                })
            }
        });
        let mut all: Option<BulkLoad> = None;
        for load in side_by_side("index-build", jobs.collect()) {
            match &mut all {
                Some(all) => all.absorb(load?),
                None => all = Some(load?),
            }
        }
        Ok(all.expect("a span has a part"))
    }

    fn part(
        &self,
        part: &KeySpan,
        memory: usize,
        mut pace: Pace,
        progress: impl Fn(f64),
    ) -> Result<BulkLoad, LoadError> {
        let Entries { ctx, layout, index, .. } = self;
        let mut load = ctx.txn.bulk_load(1, memory, &ctx.memory)?;
        let wanted = Some(layout.entry_columns(index));
        let mut rows = self.scan(part, wanted, false);
        let way = Way::over(self, part)?;
        let (mut key, mut row) = (Vec::new(), Row::new());
        let mut maker = EntryMaker::new(layout, index);
        while rows.next_into(&mut key, &mut row)? {
            pace.row(ctx)?;
            ctx.check_cancel()?;
            if rows.rows.is_multiple_of(TELL_EVERY) {
                progress(way.fraction(&key));
            }
            if let Some((key, value)) = maker.entry(&mut row)? {
                load.put(0, key, value)?;
            }
        }
        progress(1.0);
        load.sort();
        Ok(load)
    }

    /// How fast one of so many threads may read.
    pub(in crate::ddl) fn pace(&self, threads: usize) -> Pace {
        Pace::new(self.rate, threads)
    }

    /// The rows of a part.
    pub(in crate::ddl) fn scan(
        &self,
        part: &KeySpan,
        wanted: Option<Vec<bool>>,
        reverse: bool,
    ) -> TableScan {
        let (txn, spans) = (self.ctx.txn.clone(), vec![part.clone()]);
        TableScan::new(txn, self.layout.clone(), spans, wanted, reverse).reading(self.reading)
    }
}

/// Keeps a thread from reading faster than it may: some rows, then a pause. It measures nothing, so
/// that with the time that reading takes it is rather slower than that.
pub(in crate::ddl) struct Pace {
    rate: Option<u64>,
    threads: u64,
    /// Rows before the next pause.
    left: u64,
}

impl Pace {
    /// Pauses in a second, if more than one row comes between them.
    const PAUSES: u64 = 20;

    /// So many rows in a second, by so many threads.
    pub(in crate::ddl) fn new(rate: Option<u64>, threads: usize) -> Pace {
        Pace { rate, threads: threads as u64, left: 0 }
    }

    /// Before each row.
    pub(in crate::ddl) fn row(&mut self, ctx: &Context) -> SqlResult<()> {
        let Some(rate) = self.rate else { return Ok(()) };
        if self.left > 0 {
            self.left -= 1;
            return Ok(());
        }
        let rows = (rate / (Pace::PAUSES * self.threads)).max(1);
        self.left = rows - 1;
        let mut pause = Duration::from_secs(1).mul_f64((rows * self.threads) as f64 / rate as f64);
        // It must be possible to cancel it at any time.
        while !pause.is_zero() {
            ctx.check_cancel()?;
            let part = pause.min(Duration::from_secs(1) / Pace::PAUSES as u32);
            let (nobody, never) = (Mutex::new(()), Condvar::new());
            let _slept = never.wait_for(&mut nobody.lock(), part);
            pause -= part;
        }
        Ok(())
    }
}

/// Threads that a build may use.
fn build_threads(ctx: &Context) -> usize {
    (ctx.session.maintenance_workers() + 1).min(cores())
}

/// Writes the rows of a small load through the transaction; `twice` as in [`finish_beside`].
pub(in crate::ddl) fn put_each(
    ctx: &Context,
    load: BulkLoad,
    twice: impl Fn(&Loaded<'_>) -> SqlResult<()>,
) -> Result<(), LoadError> {
    load.drain(|row| {
        if row.again {
            twice(&row)?;
        }
        Ok(ctx.txn.put(row.key.to_vec(), row.value.to_vec())?)
    })
}

/// Writes the ssts of a load on several threads; `twice` makes the error for a key that came twice.
pub(in crate::ddl) fn finish_beside(
    ctx: &Context,
    load: BulkLoad,
    twice: impl Fn(&Loaded<'_>) -> SqlResult<()> + Sync,
) -> Result<braid_kv::BulkFiles, LoadError> {
    load.finish_beside(build_threads(ctx), || {
        let (mut seen, twice) = (0, &twice);
        move |row: Loaded<'_>| -> Result<(), LoadError> {
            seen += 1;
            if seen % CANCEL_EVERY == 0 {
                ctx.check_cancel()?;
            }
            if row.again { Ok(twice(&row)?) } else { Ok(()) }
        }
    })
}

/// How far along its span a key lies.
pub(in crate::ddl) struct Way {
    common: usize,
    first: f64,
    last: f64,
}

impl Way {
    /// From the first to the last row of a part.
    pub(in crate::ddl) fn over(entries: &Entries<'_>, part: &KeySpan) -> SqlResult<Way> {
        let end = |reverse: bool| -> SqlResult<Option<Bytes>> {
            Ok(entries.scan(part, None, reverse).next_row()?.map(|(key, _)| key))
        };
        Ok(Way::between(&end(false)?.unwrap_or_default(), &end(true)?.unwrap_or_default()))
    }

    /// From one key to another.
    pub(in crate::ddl) fn between(first: &[u8], last: &[u8]) -> Way {
        let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let mut way = Way { common, first: 0.0, last: 1.0 };
        (way.first, way.last) = (way.place(first), way.place(last));
        way
    }

    fn place(&self, key: &[u8]) -> f64 {
        let mut bytes = [0; 8];
        let rest = key.get(self.common..).unwrap_or_default();
        let n = rest.len().min(8);
        bytes[..n].copy_from_slice(&rest[..n]);
        u64::from_be_bytes(bytes) as f64
    }

    /// 0 at the first row, 1 at the last.
    pub(in crate::ddl) fn fraction(&self, key: &[u8]) -> f64 {
        if self.last > self.first {
            (self.place(key) - self.first) / (self.last - self.first)
        } else {
            0.0
        }
    }
}
