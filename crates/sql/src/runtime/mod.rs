//! What statements do and have done: sessions, statistics by fingerprint, one execution while it is
//! measured.
//!
//! ```text
//!   execute ── Measure ── rows ── .. ── last row ──► Tally of the statement's fingerprint
//!                 │                                     │
//!                 └ clock, transaction's counts,        ├ pg_stat_statements,
//!                   memory's peak                       │ braid_statement_statistics
//!                                                       └ braid_transaction_statistics, if it was
//!   BEGIN ── Story ── .. ── COMMIT ──► Kind ──────────────┘ a transaction of its own
//! ```
//! - [`statements`]: all fingerprints of the node and their tallies, bounded.
//! - [`tally`]: what is counted of one of them. `measure`: from an execution's begin to its end.
//! - [`transactions`]: blocks by the statements in them, and what was done in each minute.
//! - `node`: all of it, for one node. `log`: slow statements in the node's log.
//! - [`advisory`]: locks on numbers. [`channels`]: LISTEN and NOTIFY.
//! - [`copies`]: how far each COPY is.
//! - `schema_lease`: in a cluster, when the node need not ask what the schema is.
//! - [`sessions`]: who is connected, what each does now, and sums by database.
//!
//! Costs on the way of a point read: four looks at the clock, and four locks that nobody else
//! wants.

pub mod advisory;
pub mod channels;
pub mod copies;
pub(crate) mod log;
pub(crate) mod measure;
pub(crate) mod node;
mod schema_lease;
pub mod sessions;
pub mod statements;
pub mod tally;
pub mod transactions;

pub use advisory::AdvisoryLock;
pub use channels::Notification;
pub use copies::{Copies, CopyProgress};
pub use sessions::{Activity, Done, Now, Progress, SeenSession, Sessions, State};
pub use statements::{StatementStatistics, Statements};
pub use tally::{Lost, Tally, Times, Transacted};
pub use transactions::{Minute, TransactionStatistics, Transactions};
