//! Locks of transactions on keys and key spans, in memory, with fair waiting and deadlock
//! detection.
//!
//! ```text
//!   points   k1 → held by T3 exclusive
//!            k7 → held by T4 shared, T5 shared      queue: T8 exclusive, T9 key share
//!   spans    [k2, k4) T6   [k4, k9) T6 T7           fragments, each with its holders
//!   span waiters   T10 wants [k0, k8) exclusive
//! ```
//!
//! - [`mode`]: the four strengths of a lock and which of them exclude each other.
//! - [`spans`]: locked spans as disjoint fragments.
//! - [`table`]: granting, waiting, releasing; the order of service.
//! - `testscripts/locks`: stories of who holds what, and who waits for whom.
//! - [`deadlock`]: whom a transaction waits for, and whether that leads back to itself.
//! - `leased`: locks that a node of a cluster grants to its own transactions.
//!
//! **Order of service.** A request waits while it is in conflict with a held lock, or with a
//! request that came before it (so that a stream of weak locks cannot starve a strong one); but it
//! goes before one that waits for it.
//!
//! **Cost.** All state lives in one mutex; no I/O happens under it. A lock that is free, a wait and
//! a release each cost the same however many clients wait for one key.

mod deadlock;
pub(crate) mod leased;
mod mode;
#[cfg(test)]
mod scenarios;
mod spans;
pub(crate) mod table;

pub use mode::LockMode;
pub use table::{Asked, LockTable, LockWait, TXN_COUNTER_BITS, Target, TxnId, Wait};
