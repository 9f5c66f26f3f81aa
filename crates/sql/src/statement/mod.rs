//! Statement types: each is one entry of a registry, with what it does and what may be done to it.
//!
//! ```text
//!   Statement ─ registry::entry_of ─► Entry { name, effect, .. , runs }
//!                                                              │
//!        Runs::Session   by the session, without a transaction of its own    BEGIN, SET, PREPARE
//!        Runs::Plan      by a plan that is made once and kept                SELECT, INSERT
//!        Runs::Utility   from the parsed statement, in a transaction         EXPLAIN, COPY
//!        Runs::Change    as a change of the catalog, in a transaction        CREATE, ALTER, DROP
//! ```
//! A new statement is a variant of [`braid_parser::Kind`] with the code that reads it, and an entry
//! in the file of its subject: [`session`] (transactions, settings, prepared statements, reports),
//! [`rows`] (queries, DML, COPY), [`schema`] (everything that changes descriptors). Nothing else
//! asks of which kind a statement is. `docs/statements.md` is written from the entries.
//!
//! - [`procedural`]: statements inside of DO. [`several`]: those that are several.
//! - `out_of_reach`: tables that are named where they are not in reach.
//! - `out_parameters`: arguments that come out of a call.
//! - [`entry`]: what an entry says. [`registry`]: all of them, and which one a statement has.

pub mod entry;
pub(crate) mod out_of_reach;
pub(crate) mod out_parameters;
mod procedural;
pub mod registry;
mod rows;
mod schema;
mod session;
mod several;

pub use entry::{Effect, Entry};
pub use registry::entries;
