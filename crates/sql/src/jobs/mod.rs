//! Long work that outlives a crash: records of it in the store, and what runs now.
//!
//! ```text
//!   start ─► running ─┬─ every step: record, in the transaction that publishes the step
//!                     ├─► succeeded
//!                     └─► undoing ─► failed | canceled
//!   found running or undoing when the store is opened ─► undone before the first session
//!   .. but for imports and moves of tables, which begin again: Database::resume_jobs
//! ```
//!
//! - [`record`]: what is stored about a job; SHOW JOBS prints it.
//! - [`registry`]: jobs that run in this process: progress, CANCEL JOB, who changes which table.
//! - [`undo`]: takes back what an unfinished schema change has published and written.
//! - `orphans`: schema changes whose node has gone, in a cluster.
//! - [`expiry`]: rows that their table's row deletion policy finds too old.
//! - [`reclaim`]: taking away what nobody can reach any more, in the background.
//!
//! What a job does is written where it belongs: schema changes in [`crate::ddl`]. Nothing here
//! knows sessions; it is not a crate of its own as long as the work itself needs their context to
//! evaluate expressions.

pub(crate) mod expiry;
mod orphans;
pub(crate) mod reclaim;
pub(crate) mod record;
pub(crate) mod registry;
pub(crate) mod undo;

pub use expiry::Expired;
pub use reclaim::Reclaimed;
pub use record::{Record, RunAs, State};
pub use registry::{Jobs, Step};
