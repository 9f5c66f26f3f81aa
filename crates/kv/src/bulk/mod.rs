//! Bulk loads: any number of rows, sorted outside of memory, that enter the store as finished ssts
//! in one step.
//!
//! ```text
//!   put(target, key, value)      in any order
//!     buffer of the target  ──full──►  ssts, if buffers come one behind the other  ──┐ kept
//!     buffer of the target  ──full──►  a sorted run, if not    ┐                     │
//!     what is still in memory, sorted                          ┴ finish: one merge   │
//!   or, once a sample has cut the key space:                       in key order ──► ssts that
//!     file of the part      ───────────────► finish: sorted part by part ─────────► share no keys
//!   Txn::ingest_private   now, at the transaction's read timestamp: a span that nobody else knows
//!   Txn::attach           at commit, at the commit timestamp: one edit of the manifest
//! ```
//!
//! - [`load`]: what is put, and where it goes. [`finish`]: what becomes of it.
//! - [`buffer`]: rows of one target in memory, and their order. [`order`]: what full ones become.
//! - [`run`]: sorted runs on disk, in [`frame`]s with checksums. [`sst`]: finished ssts.
//! - [`scatter`]: rows by part of the key space.
//! - [`merge`]: all of it as one ordered stream. [`piece`]: how many files that may be.
//! - [`folder`], [`files`], [`saved`]: files, and how a load goes on in another process.
//!
//! - [`scratch`]: no load, but in the same folder: rows that a session keeps for a while.
//!
//! *Targets* are places in key space that are filled at the same time, such as a table's rows and
//! one of its indexes: rows often arrive in key order, index entries hardly ever do.
//!
//! **Memory** is bounded by the load's budget, whatever is loaded, and by what its account
//! gives: a buffer that is refused is spilled. Of the budget, an eighth is for files that are
//! written ([`desk`]), and an eighth for reading runs while buffers are full; when there are more
//! runs than that, buffers are spilled, and then runs are merged into longer ones first. Only a row
//! that is longer than all that is an error (53200). **Files** lie in the
//! folder `bulk` of the store's directory; what a crash leaves there is removed at the next open,
//! but for files of jobs that may go on.
//! No lock is taken for a row: the caller holds what keeps others away from the targets.

pub(crate) mod buffer;
mod desk;
pub(crate) mod files;
mod finish;
pub(crate) mod folder;
pub(crate) mod frame;
pub(crate) mod load;
pub(crate) mod merge;
pub(crate) mod order;
mod piece;
pub(crate) mod run;
pub(crate) mod saved;
pub(crate) mod scatter;
pub(crate) mod scratch;
pub(crate) mod sst;

pub use files::BulkFiles;
pub(crate) use finish::SST_BYTES;
pub(crate) use folder::BulkFolder;
pub use load::{BulkLoad, Loaded, Spilled};
pub use order::{SpillAs, Ways};
pub use saved::SavedLoad;
pub use scratch::ScratchFile;

use folder::io_error;
