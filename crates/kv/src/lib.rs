//! Transactions over key spans.
//!
//! One [`Store`] per process wraps one engine directory; its [`Coordinator`] begins transactions. A
//! [`Txn`] reads at its *read timestamp*, keeps its writes in a buffer, and puts them into the
//! engine as **one batch at one commit timestamp**:
//!
//! ```text
//!   begin ── read timestamp T ──────────────────────────────────────────► commit
//!     get/scan   the state at T, own buffer laid over it       (reads are remembered)
//!     put/delete exclusive lock, "nothing newer than T", then into the buffer
//!     delete_span  exclusive lock on the span, one entry in the buffer, whatever it covers
//!     commit     under the commit mutex: C = clock; nothing newer than T in what was read
//!                (serializable); batch at C applied; then, outside the mutex, made durable
//! ```
//!
//! **Isolation.** SERIALIZABLE validates the read spans at commit, so every transaction behaves as
//! if it ran at its commit timestamp (optimistic validation in the style of Kung and Robinson,
//! "On Optimistic Methods for Concurrency Control", 1981, with timestamps kept by the engine).
//! REPEATABLE READ is snapshot isolation: the same without that validation. READ COMMITTED takes a
//! new read timestamp for each statement. Writers never overwrite what they have not seen: a lock
//! is granted together with the check that nothing newer than the read timestamp is below it,
//! else the caller gets [`KvError::Retry`].
//!
//! **Locks** live in memory, on keys and on spans, with waiting in order of arrival and deadlock
//! detection (`locks/mod.rs`). A crash loses them together with the buffers they protect.
//!
//! **The seam.** A transaction's state is data at its coordinator ([`Coordinator`], [`Txn`]); what
//! it needs of the keys' place it asks through one trait, [`Spans`], whose requests and answers are
//! data as well. Locks, validation, timestamps and entries are on the other side, today in one
//! [`Store`] (`local.rs`). Whoever is about to do the same for many keys asks ahead
//! ([`Txn::get_ahead`], [`Txn::lock_ahead`], [`Txn::scan_ahead`]), which changes the number of
//! requests and nothing else (`ahead.rs`).
//!
//! **What this crate does not know**: SQL types, tables, sessions. It sees keys, spans and bytes.

mod ahead;
mod buffer;
mod bulk;
mod commit;
mod coordinator;
mod error;
mod local;
mod locking;
mod locks;
mod own_writes;
mod read_set;
mod reading;
mod row_form;
mod saved;
mod scan;
mod short_spans;
mod shown;
mod span_map;
mod spans;
mod store;
mod stored;
mod tally;
mod txn;
mod watch;

pub use braid_lsm::{
    BlockPart, CommitTs, KeySpan, Piece, RowBatch, Sidecar, SingleRows, even_cuts, prefetch,
};
pub use bulk::{BulkFiles, BulkLoad, Loaded, SavedLoad, ScratchFile, SpillAs, Spilled, Ways};
pub use coordinator::{Coordinator, CoordinatorOptions, Watching};
pub use error::{Conflict, KvError, KvResult};
pub use locks::leased::{LeaseLimit, LockLease, LockLeases};
pub use locks::{Asked, LockMode, LockTable, LockWait, TXN_COUNTER_BITS, Target, TxnId, Wait};
pub use read_set::{PointRead, ReadPart, Reads};
pub use reading::LookBack;
pub use row_form::{KeyNames, KeyTime, RowForm, Settle};
pub use saved::SavedTxn;
pub use scan::{ReadMode, Rows, ScanOptions, TxnScan};
pub use shown::Shown;
pub use spans::{
    Begun, Commit, Committed, GetMany, GotMany, GotOne, Grant, Jump, LeaseHolder, LeaseHome,
    LockItem, LockMany, LockOne, LockReport, LockedMany, LockedOne, NodeCall, NodeSettings, ReadAt,
    ScanMany, ScannedMany, ShownLock, ShownNode, ShownRange, SpanRows, SpanScan, Spans, Validate,
    Work, Writes,
};
pub use store::{Store, StoreOptions};
pub use stored::StoredKeys;
pub use tally::{Network, StopsBy, Tally};
pub use txn::{Isolation, Locked, SavepointId, StatementMark, Txn, TxnOptions, TxnStats};
pub use watch::{Watch, Watched};
