//! The one place where a path to data is chosen: by what conditions say of keys, and what is known
//! of the rows.
//!
//! ```text
//!   conditions ─► candidates: primary key, each index, unions of them       access, implied
//!                     │
//!   ANALYZE ─► estimate ─► record ─► statistics ─► facts ─► share: how many rows each one finds
//!                     │                                           │
//!                     └────────────► choice: rules, or what costs markedly less ◄─┘
//! ```
//! - [`access`]: from conjunctions over a table's columns to spans of a key.
//! - [`implied`]: whether one condition follows from another: partial indexes.
//! - [`choice`]: which of the accesses.
//! - [`facts`]: what is known of a table, and what it costs to read it by a key.
//! - [`share`]: the share of rows that pass conditions.
//! - [`statistics`]: fractions of rows for which a condition on one column holds.
//! - [`estimate`]: from sampled values to what is kept. [`record`]: what is stored.
//!
//! Not here: sessions, transactions, statements, how a plan runs. Who knows the rows is asked
//! through [`Known`].

use std::sync::Arc;

use braid_catalog::Table;
use braid_rows::TableLayout;
use braid_scalar::Bound;

pub mod access;
pub mod choice;
pub mod estimate;
pub mod facts;
pub mod implied;
mod position;
pub mod record;
pub mod share;
pub mod statistics;
#[cfg(test)]
mod truth;

pub use statistics::{ColumnStatistics, FamilySize, TableStatistics};

/// Whether two values of an execution are the same.
pub type Same<'a> = &'a dyn Fn(&Bound, &Bound) -> bool;

/// Who knows about rows of tables without reading them.
pub trait Known: Send + Sync {
    /// How many rows a table has now, about.
    fn rows(&self, layout: &TableLayout) -> f64;
    /// How many bytes its rows have in files, about.
    fn bytes(&self, layout: &TableLayout) -> f64;
    /// What ANALYZE has found out about it.
    fn statistics(&self, table: &Arc<Table>) -> Option<Arc<TableStatistics>>;
    /// What part of its rows had columns beside their blocks at the last large scan; 0 if there was
    /// none.
    fn beside(&self, table: &Table) -> f64;
    /// Notes what a large scan has found of that.
    fn note_beside(&self, table: &Table, part: f64);
}
