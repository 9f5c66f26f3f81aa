//! Temporary tables: tables of a schema that belongs to one session.
//!
//! ```text
//!   pg_temp_7.t        what session 7 calls t, or pg_temp.t, before anything of its search path
//! ```
//! The schema comes with the first temporary table, and goes with everything in it when the session
//! ends; what a crash leaves behind goes when the database is opened, in a cluster by the node
//! whose sessions they were. Otherwise these are tables like all others: in transactions, with
//! indexes, rolled back.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::{OnCommit, Schema, Table};
use braid_parser::Name;
use braid_types::{SqlError, SqlResult, SqlState};

use super::{Change, bad_table, drop, truncate};
use crate::session::{Context, is_temporary_schema};

/// The schema of the session's temporary tables, made when it is not there.
pub(super) fn schema(c: &mut Change) -> SqlResult<u32> {
    let name = c.ctx.session.temporary_schema();
    c.ctx.session.has_temporary();
    if let Some(schema) = c.catalog.schema(c.ctx.database, &name) {
        return Ok(schema.id);
    }
    let id = c.new_id()?;
    let database = c.ctx.database;
    c.catalog.put_schema(Schema { id, database, name, on_commit: Vec::new() });
    c.sync();
    Ok(id)
}

/// The schema and the name of a new relation that goes with its session, because that is said of it
/// or its name says so; `None`: it stays.
///
/// # Errors
/// 42P16: its name says otherwise.
pub(super) fn place(
    c: &mut Change,
    name: &[String],
    temporary: bool,
) -> SqlResult<Option<(u32, String)>> {
    match name {
        [bare] if temporary => Ok(Some((schema(c)?, bare.clone()))),
        [named, bare] if c.ctx.session.is_own_temporary(named) => {
            Ok(Some((schema(c)?, bare.clone())))
        }
        _ if temporary => {
            Err(bad_table("cannot create temporary relation in non-temporary schema"))
        }
        _ => Ok(None),
    }
}

/// The schema and the name of a new type or function: with `pg_temp` before it, it goes with its
/// session.
///
/// # Errors
/// 3F000.
pub(super) fn target_schema(c: &mut Change, name: &Name) -> SqlResult<(u32, String)> {
    match place(c, name, false)? {
        Some(place) => Ok(place),
        None => c.ctx.target_schema(name),
    }
}

/// Whether a schema is one of temporary tables.
pub(super) fn holds_temporary(c: &Change, schema: u32) -> bool {
    c.catalog.schema_by_id(schema).is_some_and(|s| is_temporary_schema(&s.name))
}

/// Tables that end with sessions, and those that stay, do not refer to each other.
///
/// # Errors
/// 42P16.
pub(super) fn check_reference(c: &Change, from: &Table, to: &Table) -> SqlResult<()> {
    let kind = match (holds_temporary(c, from.schema), holds_temporary(c, to.schema)) {
        (true, false) => "temporary",
        (false, true) => "permanent",
        _ => return Ok(()),
    };
    Err(SqlError::new(
        SqlState::INVALID_TABLE_DEFINITION,
        format!("constraints on {kind} tables may reference only {kind} tables"),
    ))
}

/// What ON COMMIT asks of the session's tables, at the end of a transaction.
pub(crate) fn at_commit(c: &mut Change) -> SqlResult<String> {
    let (dropped, emptied): (Vec<_>, Vec<_>) =
        due(&c.ctx).into_iter().partition(|(_, on)| *on == OnCommit::Drop);
    let dropped: Vec<Arc<Table>> = dropped.into_iter().map(|(table, _)| table).collect();
    drop::drop_tables(c, &dropped, true)?;
    check_keys(c, &emptied)?;
    let mut full = BTreeSet::new();
    for (table, _) in &emptied {
        let layout = super::backfill::layout(c, table.id)?;
        if super::backfill::has_rows(c, &layout)? {
            full.insert(table.id);
        }
    }
    truncate::tables(c, &full)?;
    Ok(String::new())
}

/// Rows that go with each transaction cannot be referred to by rows that stay.
fn check_keys(c: &Change, emptied: &[(Arc<Table>, OnCommit)]) -> SqlResult<()> {
    let stays = |id: u32| !emptied.iter().any(|(table, _)| table.id == id);
    for (table, _) in emptied {
        if let Some(other) = c.catalog.referencing_tables(table.id).find(|r| stays(r.id)) {
            let text = "unsupported ON COMMIT and foreign key combination";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).with_detail(format!(
                "Table \"{}\" references \"{}\", but they do not have the same ON COMMIT setting.",
                other.name, table.name
            )));
        }
    }
    Ok(())
}

/// Keeps what ON COMMIT says of a new table.
pub(super) fn note(c: &mut Change, table: &Table, on_commit: Option<OnCommit>) -> SqlResult<()> {
    let Some(on_commit) = on_commit else { return Ok(()) };
    let schema = c.catalog.schema_by_id(table.schema);
    let mut schema = (**schema.ok_or_else(|| SqlError::internal("schema is gone"))?).clone();
    schema.on_commit.retain(|(id, _)| c.catalog.table(*id).is_some());
    schema.on_commit.push((table.id, on_commit));
    c.catalog.put_schema(schema);
    c.sync();
    Ok(())
}

/// Whether there is something to do for [`at_commit`].
pub(crate) fn is_due(ctx: &Context) -> bool {
    !due(ctx).is_empty()
}

/// The session's tables that have an ON COMMIT.
fn due(ctx: &Context) -> Vec<(Arc<Table>, OnCommit)> {
    let name = ctx.session.temporary_schema();
    let schema = ctx.catalog.schema(ctx.database, &name);
    let noted = schema.into_iter().flat_map(|s| &s.on_commit);
    noted.filter_map(|(id, on)| Some((ctx.catalog.table(*id)?.clone(), *on))).collect()
}
