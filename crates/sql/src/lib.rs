//! From statements to effects: sessions, DDL, DML, plans of our own.
//!
//! ```text
//!   text ─ parse ─► Statement ─ session.prepare ─► Prepared ─ session.execute ─► Outcome
//!                                    │                             │
//!              ddl: catalog changes ─┤                             ├─ rows, pulled in batches
//!              dml: rows, keys, FKs ─┤                             ├─ a command tag
//!     plan: point, span, family ─────┤                             └─ COPY in or out
//!     everything else: general_query ┘ (DataFusion, injected)
//! ```
//!
//! Where to look:
//! - [`statement`]: the statement types, one entry each: a new one begins there.
//! - [`session`]: settings, transactions, prepared statements, the one way to run a statement.
//! - [`ddl`]: schema changes. [`dml`]: INSERT, UPDATE, DELETE, constraints, the range delete.
//! - [`plan`]: our own SELECT plans. [`general_query`]: the seam to the others.
//! - [`partitions`]: which rows of a table are in which of its partitions.
//! - [`views`]: which views can be written to.
//! - [`statistics`]: ANALYZE, and what planners ask of it.
//! - [`cluster_settings`]: what holds on all nodes, and what they deny.
//! - [`copy`]: COPY. `import`: IMPORT. `export`: EXPORT.
//! - [`jobs`]: records of long work, what runs, and taking it back.
//! - [`explain`]: EXPLAIN, from a plan's lines to JSON.
//! - `over_nodes`: what sessions of different nodes have in common: advisory locks, NOTIFY.
//! - [`runtime`]: what statements do and have done: sessions, statistics by fingerprint.
//!
//! Text becomes statements in [`braid_parser`]; scalar expressions are bound and evaluated in
//! [`braid_scalar`].
//!
//! Not here: bytes on the wire, DataFusion, how keys are stored.

pub mod answer;
pub(crate) mod bulk;
pub mod cluster_settings;
pub mod copy;
pub mod database;
pub mod ddl;
pub mod dml;
pub mod explain;
pub(crate) mod export;
pub mod general_query;
pub(crate) mod import;
pub mod jobs;
pub mod object_names;
pub(crate) mod over_nodes;
pub mod partitions;
pub mod plan;
pub mod runtime;
pub mod session;
pub mod statement;
pub mod statistics;
pub mod views;

pub use braid_catalog::{kv_error, memory_error};
pub use database::Database;
pub use general_query::{
    ColumnInfo, GeneralPlan, GeneralQueries, GivenRows, NoGeneralQueries, PlanContext, RowStream,
    RunContext, SideBySide,
};
pub use runtime::Notification;
pub use session::{
    Backends, Cause, Interrupt, Notice, Outcome, Prepared, RangeViewer, Rows, RowsTag, Session,
    SessionOptions, Timeouts, session_number, sessions_most, shown_borders,
};
