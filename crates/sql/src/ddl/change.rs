//! [`Change`]: a schema change in the making.

use std::sync::Arc;

use braid_catalog::{Catalog, Index, Table};
use braid_keys::path::{OWN_CLASS, class_of};
use braid_kv::ReadMode;
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;

use super::{collation, commit_timestamp, partitions};
use crate::jobs::reclaim;
use crate::session::Context;
use braid_parser::Name;
use braid_scalar::object_name_parts;

/// A schema change in the making. `ctx.catalog` follows `catalog` by [`Change::sync`].
pub(crate) struct Change {
    pub(crate) ctx: Context,
    pub(crate) catalog: Catalog,
    /// Which state of the rows is checked: the newest, with writers locked out; or that of the
    /// transaction's view, by which all of them keep to the change already.
    pub(crate) reading: ReadMode,
    /// ONLY: partitions are not to follow.
    pub(crate) only: bool,
}

impl Change {
    pub(super) fn new(ctx: &Context) -> Change {
        let catalog = (*ctx.catalog).clone();
        Change { ctx: ctx.clone(), catalog, reading: ReadMode::Latest, only: false }
    }

    /// Lets name resolution and layouts see what was changed so far.
    pub(crate) fn sync(&mut self) {
        self.ctx.catalog = Arc::new(self.catalog.clone());
    }

    /// A table that the statement has met before, as it is by now.
    pub(super) fn stored(&self, id: u32) -> SqlResult<Arc<Table>> {
        let table = self.catalog.table(id).cloned();
        table.ok_or_else(|| SqlError::internal("a table is gone"))
    }

    /// Adds or replaces a table and syncs.
    pub(crate) fn put(&mut self, table: Table) -> Arc<Table> {
        let id = table.id;
        self.catalog.put_table(table);
        self.sync();
        self.catalog.table(id).expect("just put there").clone()
    }

    /// Makes those who use columns of a domain plan anew: what is asked of their rows has changed,
    /// though their own descriptors say the same.
    pub(crate) fn touch_users(&mut self, domain: u32) {
        let all = self.catalog.types_over(domain);
        let users: Vec<Table> = self
            .catalog
            .tables()
            .filter(|t| t.columns.iter().any(|c| all.iter().any(|id| c.has_type(*id))))
            .map(|t| Table { step: t.step + 1, ..(**t).clone() })
            .collect();
        for table in users {
            self.catalog.put_table(table);
        }
        self.sync();
    }

    pub(crate) fn new_id(&self) -> SqlResult<u32> {
        self.ctx.db.new_ids(1)
    }

    /// A generation for a table, index or sequence whose old rows shall be out of reach. It was
    /// never used before: a change that was rolled back may have left rows in the one it took.
    pub(crate) fn new_generation(&self) -> SqlResult<u32> {
        Ok(self.new_id()? | OWN_CLASS)
    }

    /// As [`Change::new_generation`], of another class than the one that ends.
    pub(crate) fn next_generation(&self, id: u32, old: u32) -> SqlResult<u32> {
        loop {
            let new = self.new_generation()?;
            if class_of(id, new) != class_of(id, old) {
                return Ok(new);
            }
        }
    }

    /// Has what a table keeps inside of families taken away when nobody can read it any more.
    pub(crate) fn discard(&self, table: &Arc<Table>) -> SqlResult<()> {
        let now = self.ctx.db.coordinator().wall_clock_us();
        // Where its rows lie: an ancestor may have a new generation already.
        reclaim::discard_table(&self.ctx.txn, &self.ctx.catalog, table, now)
    }

    /// As [`Change::discard`], of one index inside of the rows of a table.
    pub(crate) fn discard_index(&self, lies_in: u32, index: &Index) -> SqlResult<()> {
        let now = self.ctx.db.coordinator().wall_clock_us();
        let catalog = &self.ctx.catalog;
        let Some(lies_in) = catalog.table(lies_in) else { return Ok(()) };
        let generation = (index.id, index.generation);
        reclaim::discard(&self.ctx.txn, catalog, lies_in, generation, now)
    }

    /// Whether a relation of this name is in the schema.
    pub(crate) fn taken(&self, schema: u32, name: &str) -> bool {
        self.catalog.is_taken(schema, name)
    }

    /// Locks a table and everything above it in its hierarchy.
    pub(crate) fn lock_chain(&self, table: &Arc<Table>) -> SqlResult<()> {
        for t in self.catalog.chain(table) {
            self.ctx.lock_for_change(t.id)?;
        }
        Ok(())
    }
}

/// 42P07.
pub(crate) fn exists(name: &str) -> SqlError {
    SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists"))
}

/// 42P16.
pub(crate) fn bad_table(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

pub(crate) fn parts(name: &ast::ObjectName) -> Name {
    object_name_parts(name)
}

/// Runs a schema change: the command tag and the new catalog.
pub(crate) fn run(
    ctx: &Context,
    work: impl FnOnce(&mut Change) -> SqlResult<String>,
) -> SqlResult<(String, Catalog)> {
    let mut change = Change::new(ctx);
    let tag = work(&mut change)?;
    let only = change.only;
    partitions::settle_names(&mut change, &ctx.catalog, only)?;
    let before = |t: &Arc<Table>| ctx.catalog.table(t.id).is_some_and(|old| Arc::ptr_eq(old, t));
    for table in change.catalog.tables().filter(|t| !before(t)) {
        commit_timestamp::check(ctx, table)?;
        collation::check_keys(table)?;
    }
    super::access::roles::note_new_objects(&mut change, &ctx.catalog);
    Ok((tag, change.catalog))
}
