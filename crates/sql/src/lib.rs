//! From SQL text to effects: parse, bind, plan, execute.
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
//! - [`parse`]: sqlparser inside our own shell: INTERLEAVE, IMPORT, AS OF SYSTEM TIME, SHOW.
//! - [`session`]: settings, transactions, prepared statements, the one way to run a statement.
//! - [`ddl`]: schema changes. [`dml`]: INSERT, UPDATE, DELETE, constraints, the range delete.
//! - [`plan`]: our own SELECT plans. [`general_query`]: the seam to the others.
//! - [`storage`]: rows and index entries as keys and values. [`expr`]: scalar expressions.
//! - [`copy`]: COPY and IMPORT.
//!
//! Not here: bytes on the wire, DataFusion, how keys are stored.

pub mod copy;
pub mod database;
pub mod ddl;
pub mod dml;
pub mod expr;
pub mod general_query;
pub mod parse;
pub mod plan;
mod quote;
pub mod session;
pub mod storage;

pub use braid_catalog::{kv_error, memory_error};
pub use database::Database;
pub use general_query::{
    ColumnInfo, GeneralPlan, GeneralQueries, NoGeneralQueries, PlanContext, Row, RowStream,
    RunContext, row_memory,
};
pub use parse::Statement;
pub use quote::quote_ident;
pub use session::{
    Backends, Cause, Interrupt, Notice, Outcome, Prepared, Rows, RowsTag, Session, SessionOptions,
    Timeouts,
};
