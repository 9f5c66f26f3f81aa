//! Sessions: settings, transactions, prepared statements, and the one way to run a statement.
//!
//! ```text
//!   server                      Session
//!     parse_script(text)   ─►   [Statement]
//!     prepare(statement)   ─►   Prepared { columns, parameter types }
//!     execute(prepared)    ─►   Outcome { rows | tag | copy }
//!     tx_status, notices, parameter changes
//! ```
//! - [`run`]: preparing and executing, retries, the statement's surroundings ([`Context`]).
//! - `control`: statements about the session itself.
//! - [`transaction`]: transaction blocks, savepoints, isolation levels, AS OF SYSTEM TIME.
//! - [`settings`], [`state`]: SET and SHOW; what functions see of the session.
//! - `jobs`: schema changes that run in steps, SHOW JOBS, CANCEL JOB.
//! - [`show`]: SHOW statements. [`outcome`]: what execution gives back.

mod context;
mod control;
pub mod interrupt;
mod jobs;
mod outcome;
mod prepared;
pub mod run;
pub mod settings;
mod show;
mod show_create;
pub mod state;
pub mod transaction;

pub use context::{Context, Notice, no_relation, no_schema};
pub use interrupt::{Backends, Cause, Interrupt};
pub use outcome::{NoRows, Outcome, Rows, RowsTag, VecRows};
pub use prepared::Prepared;
pub use run::{Session, SessionOptions};
pub use show_create::{column_names, foreign_key, index_definition};
pub use state::{SessionState, Timeouts};
