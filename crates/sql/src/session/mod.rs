//! Sessions: settings, transactions, prepared statements, and the one way to run a statement.
//!
//! ```text
//!   server                      Session
//!     parse_script(text)   ─►   [Statement]
//!     prepare(statement)   ─►   Prepared { columns, parameter types }
//!     execute(prepared)    ─►   Outcome { rows | tag | copy }
//!     tx_status, notices, parameter changes
//! ```
//! - [`client`]: [`Session`], what a connection holds and asks. [`prepare`]: plans, and which are
//!   kept. [`execute`]: who runs a statement. [`retry`]: trying it until it is done.
//! - [`blocks`]: BEGIN, COMMIT, savepoints; [`transaction`]: what is open meanwhile, isolation
//!   levels, AS OF SYSTEM TIME. [`named`]: PREPARE and EXECUTE. [`variables`]: SET, RESET, DISCARD;
//!   `node_settings`: ALTER SYSTEM.
//! - [`settings`], [`state`]: the settings themselves; what functions see of the session.
//! - `context`: what one running statement has around it; `type_names`: the types that it can name,
//!   `functions`: the functions of users that it can call.
//!   `interrupt`: who stops it.
//! - `cursors`: DECLARE, FETCH, MOVE, CLOSE. `temporary`: tables that go with the session.
//! - `jobs`: schema changes that run in steps, SHOW JOBS, CANCEL JOB.
//! - [`show`]: SHOW statements. `split`: borders of ranges.
//! - [`outcome`]: what execution gives back.
//!
//! Which statement types there are, and what each may do: [`crate::statement`].

mod begun;
mod between;
mod blocks;
mod client;
mod context;
mod cursors;
pub(crate) mod execute;
mod functions;
pub mod interrupt;
mod jobs;
mod named;
mod node_settings;
mod outcome;
pub(crate) mod prepare;
pub(crate) mod prepared;
mod retry;
pub mod settings;
mod shapes;
pub(crate) mod show;
pub(crate) mod split;
pub mod state;
mod temporary;
pub mod transaction;
mod type_names;
mod variables;

pub(crate) use begun::begun;
pub use client::{Session, SessionOptions};
pub(crate) use context::{Block, no_relation};
pub use context::{Context, Notice, no_schema};
pub(crate) use cursors::{current_row, with_keys};
pub use interrupt::{Backends, Cause, Interrupt};
pub(crate) use jobs::SavedBlock;
pub use outcome::{NoRows, Outcome, Rows, RowsTag, VecRows};
pub use prepared::Prepared;
pub use settings::{ShownSetting, duration_ms, shown_settings};
pub use show::create::{
    Shown, checked_columns, column_names, deparsed, foreign_key, index_column_name,
    index_definition, key_column, row_deletion_policy, said_of_check, waiting,
};
pub(crate) use show::create::{collate_clause, declared_type, index_columns};
pub use show::{RangeViewer, shown_borders};
pub use state::{SessionState, Timeouts};
pub(crate) use temporary::{drop_leftovers, is_temporary_schema, node_of_session};
pub use temporary::{session_number, sessions_most};
pub use type_names::types_in_reach;
pub(crate) use type_names::{judged, value_scope};
