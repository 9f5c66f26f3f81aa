//! Transactions over key spans.
//!
//! One [`Store`] per process wraps one engine directory. A [`Txn`] reads at its *read timestamp*,
//! keeps its writes in a buffer, and puts them into the engine as **one batch at one commit
//! timestamp**:
//!
//! ```text
//!   begin ── read timestamp T ──────────────────────────────────────────► commit
//!     get/scan   engine view at T, own buffer laid over it     (reads are remembered)
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
//! **What this crate does not know**: SQL types, tables, sessions. It sees keys, spans and bytes.

mod buffer;
mod bulk;
mod commit;
mod error;
mod locks;
mod read_set;
mod scan;
mod shown;
mod span_map;
mod store;
mod txn;

pub use braid_lsm::{CommitTs, KeySpan};
pub use bulk::{BulkFiles, BulkLoad, Loaded};
pub use error::{Conflict, KvError, KvResult};
pub use locks::{LockMode, LockTable, TxnId, Wait};
pub use scan::{ReadMode, ScanOptions, TxnScan};
pub use shown::Shown;
pub use store::{Store, StoreOptions};
pub use txn::{Isolation, Locked, SavepointId, StatementMark, Txn, TxnOptions, TxnStats};
