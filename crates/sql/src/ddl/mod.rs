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
//! - [`create_table`], [`mod@column`], [`constraint`], [`interleave`]: declarations and their
//!   checks.
//! - [`alter`]: ALTER TABLE. [`mod@drop`]: DROP and TRUNCATE. [`index`]: CREATE INDEX.
//! - [`backfill`]: index entries, key changes and validation over existing rows.
//! - [`online`]: the same for a table that has rows, in steps that do not keep writers out;
//!   [`online_index`]: filling an index meanwhile.
//! - [`schema`], [`view`], [`sequence`], [`comment`]: databases and schemas, and what lies in them.

mod alter;
mod alter_column;
mod alter_type;
pub mod backfill;
mod column;
mod comment;
mod constraint;
mod create_table;
mod drop;
mod index;
mod interleave;
pub(crate) mod online;
mod online_index;
mod schema;
mod sequence;
mod truncate;
mod view;

pub(crate) use column::table_scope;

use std::sync::Arc;

use braid_catalog::{Catalog, Index, Table};
use braid_keys::path::{OWN_CLASS, class_of};
use braid_kv::ReadMode;
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;

use crate::jobs::reclaim;
use crate::session::Context;
use braid_parser::{AlterOwn, Kind, Name, Statement};
use braid_scalar::object_name_parts;

/// A schema change in the making. `ctx.catalog` follows `catalog` by [`Change::sync`].
pub(crate) struct Change {
    pub(crate) ctx: Context,
    pub(crate) catalog: Catalog,
    /// Which state of the rows is checked: the newest, with writers locked out; or that of the
    /// transaction's view, by which all of them keep to the change already.
    pub(crate) reading: ReadMode,
}

impl Change {
    fn new(ctx: &Context) -> Change {
        let catalog = (*ctx.catalog).clone();
        Change { ctx: ctx.clone(), catalog, reading: ReadMode::Latest }
    }

    /// Lets name resolution and layouts see what was changed so far.
    pub(crate) fn sync(&mut self) {
        self.ctx.catalog = Arc::new(self.catalog.clone());
    }

    /// Adds or replaces a table and syncs.
    pub(crate) fn put(&mut self, table: Table) -> Arc<Table> {
        let id = table.id;
        self.catalog.put_table(table);
        self.sync();
        self.catalog.table(id).expect("just put there").clone()
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
pub fn run(ctx: &Context, statement: &Statement) -> SqlResult<(String, Option<Catalog>)> {
    let mut c = Change::new(ctx);
    let tag = match &*statement.kind {
        Kind::CreateTable(t) => create_table::run(&mut c, t)?,
        Kind::CreateIndex(i) => index::run(&mut c, i)?,
        Kind::AlterTableOwn(name, if_exists, op) => own_alter(&mut c, name, *if_exists, op)?,
        Kind::CreateSequence(name, if_not_exists, s) => {
            sequence::create(&mut c, name, *if_not_exists, s)?
        }
        Kind::AlterSequence(name, if_exists, s) => sequence::alter(&mut c, name, *if_exists, s)?,
        Kind::CreateDatabase(name, if_not_exists) => {
            schema::create_database(&mut c, name, *if_not_exists)?
        }
        Kind::Sql(s) => sql(&mut c, s)?,
        _ => return Err(SqlError::unsupported(&*statement.text)),
    };
    Ok((tag, Some(c.catalog)))
}

fn own_alter(c: &mut Change, name: &Name, if_exists: bool, op: &AlterOwn) -> SqlResult<String> {
    if if_exists && c.ctx.find_relation(name)?.is_none() {
        c.ctx.notice(format!("relation \"{}\" does not exist, skipping", name.join(".")));
        return Ok("ALTER TABLE".into());
    }
    let table = c.ctx.table(name)?;
    c.lock_chain(&table)?;
    match op {
        AlterOwn::SetOnDelete(action) => interleave::set_on_delete(c, &table, *action)?,
        AlterOwn::SetInterleave(clause) => interleave::set_interleave(c, &table, clause)?,
        AlterOwn::SetSchema(schema) => schema::set_schema(c, &table, schema)?,
    }
    Ok("ALTER TABLE".into())
}

fn sql(c: &mut Change, s: &ast::Statement) -> SqlResult<String> {
    match s {
        ast::Statement::AlterTable(a) => alter::run(c, a),
        ast::Statement::AlterIndex { name, operation } => index::alter(c, name, operation),
        ast::Statement::Drop { object_type, if_exists, names, cascade, .. } => {
            drop::run(c, *object_type, *if_exists, names, *cascade)
        }
        ast::Statement::Truncate(t) => truncate::run(c, t),
        ast::Statement::CreateView(v) => view::create_view(c, v),
        ast::Statement::CreateSchema { schema_name, if_not_exists, .. } => {
            schema::create_schema(c, schema_name, *if_not_exists)
        }
        ast::Statement::Comment { object_type, object_name, comment, .. } => {
            comment::comment(c, *object_type, object_name, comment.clone())
        }
        ast::Statement::AlterSchema(a) => schema::alter_schema(c, a),
        ast::Statement::Grant(_) | ast::Statement::Revoke(_) => {
            c.ctx.notice("there are no privileges yet: every user may do everything");
            Ok(if matches!(s, ast::Statement::Grant(_)) { "GRANT" } else { "REVOKE" }.into())
        }
        ast::Statement::CreateExtension(e) if e.name.value.eq_ignore_ascii_case("plpgsql") => {
            Ok("CREATE EXTENSION".into())
        }
        other => {
            let text = other.to_string();
            let words: Vec<_> = text.split_whitespace().take(2).collect();
            Err(SqlError::unsupported(words.join(" ").to_uppercase()))
        }
    }
}
