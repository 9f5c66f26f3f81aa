//! How many bytes tables and indexes have in files, about.
//!
//! The store knows the bytes of a span of keys. What lies in one span together, a tree of tables
//! with what is interleaved in it, has them by rows and widths:
//!
//! ```text
//!   span of customers    900 MB     customers     100,000 rows of  60 bytes     38 MB
//!                                   orders      1,000,000 rows of 120 bytes    769 MB
//!                                   by_status   1,000,000 entries of 14 ..       93 MB
//! ```
//! What has been written last, and is in memory only, does not count, unless that is all.

use std::sync::Arc;

use braid_catalog::{Catalog, Index, Relation, Table, kv_error};
use braid_kv::KeySpan;
use braid_types::SqlResult;

use super::cache::stored_width;
use crate::database::Database;
use braid_rows::TableLayout;

/// Bytes that a column has in an entry of an index, with its part of the head.
const ENTRY_COLUMN: f64 = 7.0;

/// What the bytes of a relation in files are counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeOf {
    /// The rows of a table, or the entries of an index.
    Relation,
    /// All indexes of a table but its primary key, which is the table.
    Indexes,
    /// Both.
    Total,
}

impl Database {
    /// About how many bytes a table or an index has in files; `None` for what has none of its own:
    /// views, sequences, partitions (whose rows lie in their table).
    ///
    /// # Errors
    /// Of the store.
    pub fn relation_bytes(
        &self,
        catalog: &Catalog,
        relation: &Relation,
        of: SizeOf,
    ) -> SqlResult<Option<u64>> {
        let (table, index) = match relation {
            Relation::Table(table) => (table, None),
            Relation::Index(table, index) => (table, Some(*index)),
            _ => return Ok(None),
        };
        if catalog.table(table.id).is_none() {
            return Ok(None);
        }
        let layout = TableLayout::new(catalog, table)?;
        let entries = |index: &Index| self.entries_bytes(catalog, &layout, index);
        if let Some(id) = index.filter(|id| *id != table.primary.id) {
            let own = table.indexes.iter().find(|own| own.id == id);
            return Ok(Some(match own {
                Some(own) if of != SizeOf::Indexes => entries(own)?,
                _ => 0,
            }));
        }
        let mut bytes = 0;
        if of != SizeOf::Indexes {
            bytes += self.part_of_tree(catalog, table, self.estimated_bytes(&layout))?;
        }
        if of != SizeOf::Relation && index.is_none() {
            for index in &table.indexes {
                bytes += entries(index)?;
            }
        }
        Ok(Some(bytes))
    }

    /// About how many bytes all tables of a database have in files.
    ///
    /// # Errors
    /// Of the store.
    pub fn database_bytes(&self, catalog: &Catalog, database: u32) -> SqlResult<u64> {
        let mut bytes = 0;
        let is_own = |table: &&Arc<Table>| {
            catalog.schema_by_id(table.schema).is_some_and(|schema| schema.database == database)
        };
        for table in catalog.tables().filter(is_own) {
            let relation = Relation::Table(table.clone());
            bytes += self.relation_bytes(catalog, &relation, SizeOf::Total)?.unwrap_or(0);
        }
        Ok(bytes)
    }

    fn entries_bytes(
        &self,
        catalog: &Catalog,
        layout: &TableLayout,
        index: &Index,
    ) -> SqlResult<u64> {
        let expected = self.estimated_rows(layout) * entry_width(&layout.table, index);
        if index.interleave_in.is_some() {
            return self.part_of_tree(catalog, &layout.table, expected);
        }
        let own = layout.indexes.iter().find(|own| own.index.id == index.id);
        match own {
            Some(own) => self.bytes_in(&own.layout.whole_span(), expected),
            None => Ok(0),
        }
    }

    /// Of the bytes of a table's tree, the part of something that should have so many.
    fn part_of_tree(&self, catalog: &Catalog, table: &Arc<Table>, own: f64) -> SqlResult<u64> {
        let mut root = table;
        while let Some(parent) = root.interleave.as_ref().and_then(|i| catalog.table(i.parent)) {
            root = parent;
        }
        let mut expected = 0.0;
        for member in catalog.subtree(root) {
            let layout = TableLayout::new(catalog, &member)?;
            expected += self.estimated_bytes(&layout);
            let inside = member.indexes.iter().filter(|index| index.interleave_in.is_some());
            let rows = self.estimated_rows(&layout);
            expected += inside.map(|index| rows * entry_width(&member, index)).sum::<f64>();
        }
        let span = TableLayout::new(catalog, root)?.rows.whole_span();
        let all = self.bytes_in(&span, expected)? as f64;
        Ok((all * own / expected.max(own).max(1.0)) as u64)
    }

    /// Bytes in files; what is in memory only has as many as expected.
    fn bytes_in(&self, span: &KeySpan, expected: f64) -> SqlResult<u64> {
        match self.coordinator().stored_bytes(span).map_err(kv_error)? {
            0 => Ok(expected as u64),
            stored => Ok(stored),
        }
    }
}

/// About how many bytes an entry has: its columns, and those of the row's key.
fn entry_width(table: &Table, index: &Index) -> f64 {
    let columns = index.columns.len() + table.primary.columns.len();
    (columns as f64 * ENTRY_COLUMN).min(stored_width(table).max(ENTRY_COLUMN))
}
