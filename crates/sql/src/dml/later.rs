//! Questions that writing a row leaves for later: for the end of the statement, or of the block
//! ([`super::deferred`]).

use std::sync::Arc;

use braid_catalog::{ForeignKey, Table};

use super::writer::TableInfo;
use crate::general_query::Row;

/// A question for the end of the statement.
pub(super) enum Later {
    /// Does the referenced row exist now? (table, foreign key, row)
    Reference(Arc<TableInfo>, usize, Row),
    /// Is the old key still referenced? (referenced table, its old row, referencing table, key)
    Referenced(Arc<TableInfo>, Row, u32, ForeignKey),
    /// Are there still children below this row? (parent, its row, child)
    Children(Arc<TableInfo>, Row, Arc<Table>),
}

impl Later {
    /// The foreign key that it is about; none: an interleaving.
    pub(super) fn foreign_key(&self) -> Option<&ForeignKey> {
        match self {
            Later::Reference(info, n, _) => Some(&info.references[*n].0),
            Later::Referenced(_, _, _, fk) => Some(fk),
            Later::Children(..) => None,
        }
    }

    /// The row that it keeps.
    pub(super) fn row(&self) -> &Row {
        match self {
            Later::Reference(_, _, row) | Later::Referenced(_, row, ..) => row,
            Later::Children(_, row, _) => row,
        }
    }

    fn parts(&self) -> (&Arc<TableInfo>, u32) {
        match self {
            Later::Reference(info, n, _) => (info, info.references[*n].0.parent),
            Later::Referenced(info, _, child, _) => (info, *child),
            Later::Children(info, _, child) => (info, child.id),
        }
    }

    /// The tables that it is about.
    pub(super) fn tables(&self) -> [u32; 2] {
        let (info, other) = self.parts();
        [info.table().id, other]
    }

    /// The name of one of its tables.
    pub(super) fn name_of(&self, table: u32) -> Option<&str> {
        let (info, _) = self.parts();
        let other = match self {
            Later::Reference(info, n, _) => &info.references[*n].1.table.name,
            Later::Referenced(info, _, child, _) => {
                &info.referenced_by.iter().find(|(t, _)| t.id == *child)?.0.name
            }
            Later::Children(_, _, child) => &child.name,
        };
        Some(if info.table().id == table { &info.table().name } else { other })
    }
}
