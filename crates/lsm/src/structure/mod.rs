//! Operations that change which files make up the store, not what is in them.
//!
//! ```text
//!   SstBuilder          writes an sst outside of the store
//!   Db::ingest          takes finished ssts in          (ingest)
//!   Db::excise          cuts a span out of the tree     (ingest, with no files)
//!   Db::checkpoint      a hard-linked copy
//!   Db::prepare         a batch in front of its place; a large one becomes ssts   (bulk)
//! ```
//!
//! Ingest and excise take a place in the arrival order like a batch: a wal record under the commit
//! mutex. From then on reads see them, as a layer of their own in the queue of memtables
//! ([`queued`]). When all older memtables that they overlap are flushed, one edit of the version
//! makes them part of the tree ([`install`]): O(files touched), whatever the number of rows.
//!
//! A compaction that was running meanwhile may find its inputs gone: its outputs are then thrown
//! away and the work is picked again ([`Store::install`](crate::store::Store::install) says so).

mod bulk;
mod checkpoint;
mod ingest;
mod install;
mod names;
mod queued;
mod record;
mod split;
mod sst_builder;
mod sst_rows;

pub use bulk::PreparedBatch;
pub use ingest::IngestOptions;
pub(crate) use names::NameSyncs;
pub(crate) use queued::{
    ARRIVAL_STEP, BarrierCursor, Incoming, Place, Queued, Structural, without,
};
pub(crate) use record::{Record, StructuralRecord};
pub use sst_builder::{IngestFile, SstBuilder};
pub use sst_rows::{SstRowReader, visit_sst};
