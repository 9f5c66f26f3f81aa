//! Schema changes.
//!
//! A change clones the catalog, edits the clone ([`Change`]) and, where rows are concerned, checks
//! or writes them through the statement's transaction. The session then writes the difference
//! between the two catalogs into the same transaction, so a schema change commits or rolls back
//! with its block and is read at old timestamps like any row.
//!
//! Every table whose use a change affects is locked exclusively by name first: statements that
//! read its shape wait, and run again if they were planned before. Which tables those are:
//!
//! ```text
//!   CREATE TABLE c .. INTERLEAVE IN p      p and its ancestors  (range deletes look downwards)
//!   FOREIGN KEY .. REFERENCES p            p                    (deletes look for references)
//!   ALTER, DROP, TRUNCATE t                t, and what it drags along
//! ```
//! - `change`: a change in the making. Which statement makes which: [`crate::statement`].
//! - [`tables`]: CREATE TABLE; a table gets or loses its primary key. [`mod@column`],
//!   [`constraint`], [`interleave`]: declarations and their checks.
//! - [`alter`]: ALTER TABLE. [`mod@drop`]: DROP and TRUNCATE. [`index`]: CREATE INDEX.
//! - [`backfill`]: index entries, key changes and validation over existing rows.
//! - [`online`]: the same for a table that has rows, in steps that do not keep writers out;
//!   [`online_index`]: filling an index meanwhile.
//! - [`moves`]: tables that move into, out of and between parents, or to another primary key.
//! - [`partitions`]: PARTITION BY and OF, ATTACH, DETACH, and what is done to a partition.
//! - [`time`]: row deletion policies, and columns that are told when a row is committed.
//! - [`temporary`]: tables that go with their session.
//! - [`kept`]: names in what is kept as text: they follow renames, and are in the way of DROP.
//! - [`access`]: roles, owners, privileges, which are kept and not enforced.
//! - [`schema`], [`view`] (materialized ones too), [`sequence`], [`user_type`], [`composite`],
//!   [`domain`], [`collation`], [`functions`], [`comment`]: databases and schemas, and what lies in
//!   them.

pub(crate) mod access;
pub(crate) mod alter;
mod alter_column;
mod alter_type;
pub mod backfill;
mod change;
mod column;
pub(crate) mod comment;
pub(crate) mod constraint;
pub(crate) mod drop;
pub(crate) mod functions;
pub(crate) mod index;
mod interleave;
mod kept;
pub(crate) mod moves;
pub(crate) mod online;
mod online_index;
pub(crate) mod partitions;
pub(crate) mod schema;
pub(crate) mod sequence;
pub(crate) mod tables;
pub(crate) mod temporary;
mod time;
mod user_types;
pub(crate) mod view;

pub(crate) use change::{Change, run};
use change::{bad_table, exists, parts};
pub(crate) use column::named_column;
use kept::named_relations;
use tables::primary_key;
pub(crate) use tables::{create_table, other_kinds, truncate};
use time::{commit_timestamp, ttl};
pub(crate) use user_types::{collation, composite, domain, user_type};
