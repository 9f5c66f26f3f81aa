//! Both forms of tables that move: as they lie, and as they are going to lie.

use std::sync::Arc;

use braid_catalog::{Catalog, Table};
use braid_types::{SqlError, SqlResult, SqlState};
use bytes::Bytes;

use super::relocate::{self, Place};
use crate::ddl::{Change, backfill};
use crate::jobs::record::Copied;
use crate::session::Context;
use braid_rows::Row;
use braid_rows::TableLayout;

/// A table that moves with everything that lies in it.
pub(super) struct Moving {
    /// Parents first; the first is the one that was named.
    pub(super) tables: Vec<MovingTable>,
    /// In which each row of the first must have its parent row.
    pub(super) parent: Option<Arc<TableLayout>>,
}

/// One of them.
pub(super) struct MovingTable {
    /// As it lies.
    pub(super) old: Arc<TableLayout>,
    /// As it is going to lie.
    pub(super) now: Arc<TableLayout>,
    /// Columns that may hold no NULL any more, by ordinal.
    proven: Vec<usize>,
}

/// What is stored for a row.
pub(super) struct Stored {
    /// 0: the row; n: its entry in index n - 1.
    pub(super) target: usize,
    pub(super) key: Bytes,
    pub(super) value: Bytes,
}

impl Moving {
    /// Works out what becomes of a table, with generations that nobody has used.
    pub(super) fn plan(c: &mut Change, t: &Arc<Table>, place: Place<'_>) -> SqlResult<Moving> {
        let new = relocate::wanted(c, t, place)?;
        let parent = new.interleave.as_ref().filter(|i| i.enforced()).map(|i| i.parent);
        let subtree = c.catalog.subtree(t);
        let old: Vec<_> =
            subtree.iter().map(|s| backfill::layout(c, s.id)).collect::<SqlResult<_>>()?;
        relocate::renew_all(c, vec![new], &subtree)?;
        let mut tables = Vec::new();
        for old in old {
            let now = backfill::layout(c, old.table.id)?;
            let pairs = old.table.columns.iter().zip(&now.table.columns).enumerate();
            let proven = pairs.filter(|(_, (old, now))| old.nullable && !now.nullable);
            let proven = proven.map(|(at, _)| at).collect();
            tables.push(MovingTable { old, now, proven });
        }
        let parent = parent.map(|id| backfill::layout(c, id)).transpose()?;
        Ok(Moving { tables, parent })
    }

    /// The table that was named.
    pub(super) fn first(&self) -> &MovingTable {
        &self.tables[0]
    }

    /// What is going to be written: erased if it comes to nothing.
    pub(super) fn copies(&self, c: &Catalog) -> Vec<Copied> {
        let root_of = |t: &Arc<Table>| c.chain(t).first().map(|root| (root.id, root.generation));
        let mut out = Vec::new();
        for MovingTable { now, .. } in &self.tables {
            let t = &now.table;
            let root = t.interleave.as_ref().and_then(|_| root_of(t));
            out.push(Copied { id: t.id, generation: t.generation, root });
            for i in &t.indexes {
                let root = i.interleave_in.and_then(|id| c.table(id)).and_then(root_of);
                out.push(Copied { id: i.id, generation: i.generation, root });
            }
        }
        out
    }

    /// Makes the catalog say what was worked out.
    ///
    /// # Errors
    /// If the tables are not what they were then.
    pub(super) fn put(&self, c: &mut Change) -> SqlResult<()> {
        let mut new = Vec::new();
        for one in &self.tables {
            let (old, mut now) = (&one.old.table, (*one.now.table).clone());
            let found = c.catalog.table(old.id).cloned();
            let found = found.ok_or_else(|| SqlError::internal("a table went while it moved"))?;
            // Comments keep nobody out.
            now.comment.clone_from(&found.comment);
            let mut known = Table { comment: found.comment.clone(), ..(**old).clone() };
            known.step = found.step;
            now.step = found.step;
            for at in 0..known.columns.len().min(found.columns.len()) {
                known.columns[at].comment.clone_from(&found.columns[at].comment);
                now.columns[at].comment.clone_from(&found.columns[at].comment);
            }
            if *found != known {
                let name = &old.name;
                return Err(SqlError::new(
                    SqlState::OBJECT_IN_USE,
                    format!("table \"{name}\" was changed while it moved"),
                )
                .with_hint("Run the statement again."));
            }
            c.discard(old)?;
            new.push(now);
        }
        new.into_iter().for_each(|t| c.catalog.put_table(t));
        c.sync();
        Ok(())
    }
}

impl MovingTable {
    /// All that is going to be stored for a row.
    pub(super) fn stored(&self, row: &Row) -> SqlResult<Vec<Stored>> {
        let now = &self.now;
        let value = now.row_value(row).into();
        let mut out = vec![Stored { target: 0, key: now.row_key(row)?.into(), value }];
        for (n, i) in now.indexes.iter().enumerate() {
            if let Some(key) = i.entry_key(row)? {
                let value = now.entry_value(i, row).into();
                out.push(Stored { target: n + 1, key: key.into(), value });
            }
        }
        Ok(out)
    }

    /// The row that something belongs to which is stored in the new place, by its new key.
    pub(super) fn owner(&self, target: usize, key: &[u8], value: &[u8]) -> SqlResult<Option<Row>> {
        match target {
            0 => self.now.decode(key, value, None),
            n => self.now.row_of_entry(&self.now.indexes[n - 1], key, value),
        }
    }

    /// 23502 for a row that may not be as it is any more.
    pub(super) fn check(&self, ctx: &Context, row: &Row) -> SqlResult<()> {
        match self.proven.iter().find(|at| row[**at].is_null()) {
            Some(at) => Err(backfill::null_found(ctx, &self.now.table, *at)),
            None => Ok(()),
        }
    }
}
