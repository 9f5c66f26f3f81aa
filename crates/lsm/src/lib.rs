//! A storage engine whose only number is the commit timestamp.
//!
//! Keys and values are bytes. A [`Batch`] writes at one [`CommitTs`] that the caller chooses; a
//! [`View`] reads the store as of a timestamp. Deleting a span of keys is one record, whatever is
//! inside, and reads skip what it hides without looking at it.
//!
//! ```
//! use braid_lsm::{Batch, CommitTs, Db, Durability, KeySpan, Options, ScanOptions};
//! use braid_env::fs::MemFs;
//! use std::{path::Path, sync::Arc};
//!
//! # fn main() -> Result<(), braid_lsm::Error> {
//! let db = Db::open(Arc::new(MemFs::new()), Path::new("/store"), Options::default())?;
//! let mut batch = Batch::at(CommitTs(10));
//! batch.put(b"customer/7", b"Ada");
//! batch.put(b"customer/7/order/1", b"tea");
//! db.write(batch, Durability::Sync)?;
//!
//! let mut batch = Batch::at(CommitTs(20));
//! batch.delete_span(b"customer/7", b"customer/8"); // the whole family: one record
//! db.write(batch, Durability::Sync)?;
//!
//! assert_eq!(db.view(CommitTs(20))?.get(b"customer/7/order/1")?, None);
//! let before = db.view(CommitTs(19))?;
//! let mut rows = before.scan(KeySpan::prefix(b"customer/7"), ScanOptions::default())?;
//! assert_eq!(rows.next_row()?.unwrap().value.as_ref(), b"Ada");
//! # Ok(())
//! # }
//! ```
//!
//! # The tour
//!
//! *Write*: `batch` (net effect) -> `commit` (contracts, order) -> `wal` (durable) -> `memtable`
//! (sorted, with its `range_tombstone` skyline) -> visible.
//!
//! *Read*: [`View`] pins a `State` (memtables and ssts) -> `iter` merges its layers, newest first,
//! and parks those below a tombstone.
//!
//! Two orders, never mixed up: timestamps decide what a read *sees*; the arrival order of layers
//! decides which one lies *above* which. The engine promises correct answers as long as writers
//! keep the contracts below, checks them, and writes nothing when they are broken:
//!
//! * C1: a write is not older than what it overlaps; a range tombstone is newer than the points
//!   in its span that arrived before.
//! * C2: nothing is written at or below the garbage collection threshold, but by an ingest where
//!   it cuts out all that was there, and by batches that fill spans in which nothing was written.
//! * C5: nothing is read below it. Where it is lowered ([`Db::lower_gc_threshold`]), nothing but
//!   what is put in the place of a span that is cut out then, or lies where nothing was written
//!   between the two.
//!
//! What this crate does not know: SQL, transactions, ranges, async runtimes.

mod ballast;
mod batch;
mod cache;
mod commit;
mod compaction;
mod db;
mod error;
mod inspect;
mod iter;
mod key;
mod large_pages;
mod memtable;
mod metrics;
mod open;
mod options;
mod prepare;
mod range_tombstone;
mod sstable;
mod state;
mod store;
mod structure;
mod versions;
mod view;
mod wal;

pub use batch::{Batch, BatchWrite};
pub use cache::{Sidecar, prefetch};
pub use commit::{Durability, Pending};
pub use compaction::CompactionReason;
pub use db::Db;
pub use error::{Error, Result};
#[cfg(any(test, feature = "fuzzing"))]
pub use inspect::fuzzing;
pub use inspect::{
    CheckReport, DropCounts, Event, EventKind, EventListener, EventSst, JobKind, JobOutcome,
    Problem, check_store, dump, lsm_page,
};
pub use iter::{
    BlockPart, Export, Exported, Piece, Row, RowBatch, Scan, ScanOptions, ScanStats, SingleRows,
    even_cuts,
};
pub use key::{CommitTs, KeySpan};
pub use metrics::{LevelMetrics, Metrics, ReasonMetrics};
pub use options::{Codec, MAX_KEY_LEN, Options, RowClassFn};
pub use structure::{
    IngestFile, IngestOptions, PreparedBatch, SstBuilder, SstRowReader, visit_sst,
};
pub use view::View;
pub use wal::{LogAppended, SegmentedLog, SegmentedLogOptions, VisitRecord};
