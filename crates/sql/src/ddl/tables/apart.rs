//! A large load of a cluster goes into a table that is set apart: it gets a new generation, as
//! TRUNCATE would give it, of which nobody knows before the load commits.
//!
//! ```text
//!   set apart       generation 7 of t, and of what lies in it; all of them empty, locked
//!   the load        goes to the ranges part by part, at a time of the past: nobody looks there
//!   its commit      the descriptors: from now on t is generation 7
//! ```
//! On a node alone the files of a load become part of the commit as they are. Over ranges a commit
//! is entries of their logs, which have a bound; a load that is set apart has none, and takes no
//! memory anywhere. A table that has rows cannot be set apart.
//!
//! Other schema changes may happen meanwhile: it is staged when it commits.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::{Catalog, Table, kv_error, publish, stage_over};
use braid_kv::{ReadMode, TxnId};
use braid_types::SqlResult;

use super::truncate;
use crate::ddl::{Change, backfill};
use crate::dml::table_load::TableLoad;
use crate::dml::writer::TableInfo;
use crate::session::Context;

/// What a transaction has set apart.
pub(crate) struct Apart {
    pub(crate) txn: TxnId,
    pub(crate) old: Arc<Catalog>,
    new: Catalog,
}

/// Sets a table apart that a load is about to fill, if that is of use and can be done: the context
/// in which it is, and the table there. Its transaction must end with [`Context::commit_load`].
///
/// # Errors
/// Of locking and reading; 40001 if the table has changed since the statement has begun.
pub(crate) fn set_apart(
    ctx: &Context,
    table: &Arc<Table>,
) -> SqlResult<Option<(Context, Arc<TableInfo>)>> {
    if !ctx.db.is_shared() || ctx.block.is_some() {
        return Ok(None);
    }
    if TableLoad::is_private(ctx, table)? {
        return Ok(None);
    }
    // Nothing can refer to it: it is empty.
    let wanted: BTreeSet<u32> = ctx.catalog.subtree(table).iter().map(|t| t.id).collect();
    let mut found = Change::new(ctx);
    found.reading = ReadMode::Unrecorded;
    if !are_empty(&found, &wanted)? {
        return Ok(None);
    }
    let mut empty = false;
    let (_, new) = crate::ddl::run(ctx, |c| {
        truncate::lock(c, &wanted)?;
        c.reading = ReadMode::Latest;
        empty = are_empty(c, &wanted)?;
        if empty {
            truncate::take_rows(c, &wanted, false)?;
        }
        Ok(String::new())
    })?;
    if !empty {
        return Ok(None);
    }
    let catalog = Arc::new(new.clone());
    ctx.session.set_apart(Apart { txn: ctx.txn.id(), old: ctx.catalog.clone(), new });
    let apart = Context { catalog, ..ctx.clone() };
    let table = apart.catalog.table(table.id).unwrap_or(table);
    let info = Arc::new(TableInfo::new(&apart, table)?);
    Ok(Some((apart, info)))
}

fn are_empty(c: &Change, tables: &BTreeSet<u32>) -> SqlResult<bool> {
    for id in tables {
        if backfill::has_rows(c, &backfill::layout(c, *id)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Context {
    /// Commits a statement outside of a block that may have loaded rows.
    ///
    /// # Errors
    /// Of the commit; 40001 if what others have changed meanwhile does not go together with it.
    pub(crate) fn commit_load(&self) -> SqlResult<()> {
        match self.session.take_apart().filter(|apart| apart.txn == self.txn.id()) {
            None => self.txn.commit().map(|_| ()).map_err(kv_error),
            Some(Apart { old, mut new, .. }) => {
                stage_over(&self.txn, &old, &mut new)?;
                publish(&self.txn, old.version)?;
                self.db.commit_schema_change(&self.txn).map_err(kv_error)
            }
        }
    }
}
