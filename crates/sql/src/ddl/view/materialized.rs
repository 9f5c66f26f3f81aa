//! Materialized views: tables whose rows are those of a query, as of the last REFRESH.
//!
//! ```text
//!   CREATE   a table with a hidden row id and the query's columns ─ filled as CREATE TABLE AS does
//!   REFRESH  a new generation, as after TRUNCATE ─ filled in the same transaction
//! ```
//! A refresh is seen as a whole or not at all: the generation is in the catalog, which commits with
//! the rows. Who reads at an older timestamp has the older catalog and finds the older rows, so
//! nobody waits, with CONCURRENTLY or without; it only asks for what PostgreSQL asks for.
//!
//! The rows are nobody's to write: [`Context::table`] does not find materialized views. What may
//! work on them asks for [`Context::stored`].
//!
//! [`Context::table`]: crate::session::Context::table
//! [`Context::stored`]: crate::session::Context::stored

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::{Lost, Materialized, Relation, Table};
use braid_parser::{CreateMaterialized, MaterializedChange, Name, Refresh, parse_query};
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::{AlterColumnOperation, AlterTableOperation as Op};

use super::declare::{definition, shows_temporary};
use crate::ddl::access::roles::wrong_kind;
use crate::ddl::{Change, alter, alter_column, create_table, exists, schema, temporary, truncate};
use crate::dml::{query_load, source::Source, with};
use crate::general_query::ColumnInfo;
use crate::session::Context;

/// CREATE MATERIALIZED VIEW.
pub(crate) fn create(c: &mut Change, create: &CreateMaterialized) -> SqlResult<String> {
    let tag = "CREATE MATERIALIZED VIEW".to_string();
    let (schema, name) = c.ctx.target_schema(&create.name)?;
    if c.taken(schema, &name) {
        if create.if_not_exists {
            let text = format!("relation \"{name}\" already exists, skipping");
            c.ctx.notice_in(SqlState::DUPLICATE_TABLE, text);
            return Ok(tag);
        }
        return Err(exists(&name));
    }
    let query = &create.query;
    with::refuse(query, "materialized views must not use data-modifying statements in WITH", None)?;
    if temporary::holds_temporary(c, schema) || shows_temporary(c, query) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "materialized views must not use temporary tables or views",
        ));
    }
    let source = Source::plan_query(&c.ctx, query)?;
    let mut t = create_table::of_query(c, schema, name, &create.columns, source.columns())?;
    let definition = definition(c, query)?;
    // What it is made of stays as it is until it is there.
    for table in definition.depends_on.iter().filter_map(|id| c.catalog.table(*id)) {
        c.ctx.lock_shape(table)?;
    }
    t.upkeep.materialized = Some(Materialized { definition, populated: create.with_data });
    let t = c.put(t);
    if !create.with_data {
        return Ok(tag);
    }
    let count = query_load::fill_table(&c.ctx, &t, &source)?;
    Ok(format!("SELECT {count}"))
}

/// REFRESH MATERIALIZED VIEW.
pub(crate) fn refresh(c: &mut Change, refresh: &Refresh) -> SqlResult<String> {
    let (t, view) = to_refresh(c, refresh)?;
    truncate::tables(c, &BTreeSet::from([t.id]))?;
    let mut new = (**c.catalog.table(t.id).expect("it was truncated")).clone();
    new.upkeep.materialized = Some(Materialized { populated: refresh.with_data, ..view.clone() });
    let new = c.put(new);
    if refresh.with_data {
        let ctx = as_at_creation(&c.ctx, &view);
        let source = Source::plan_query(&ctx, &*parse_query(&view.definition.query)?)?;
        check_columns(&new, source.columns())?;
        query_load::fill_table(&ctx, &new, &source).map_err(|e| match refresh.concurrently {
            true => e,
            false => of_whole_index(&new, e),
        })?;
    }
    Ok("REFRESH MATERIALIZED VIEW".into())
}

/// The view that is refreshed, if it can be so.
fn to_refresh(c: &Change, refresh: &Refresh) -> SqlResult<(Arc<Table>, Materialized)> {
    let bare = refresh.name.last().map_or("", String::as_str);
    let t = match c.ctx.relation(&refresh.name)? {
        Relation::Table(t) => t,
        _ => return Err(wrong_kind(&refresh.name, "table or materialized view")),
    };
    let Some(view) = t.materialized().cloned() else {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("\"{bare}\" is not a materialized view"),
        ));
    };
    if refresh.concurrently {
        may_be_concurrent(c, &t, refresh.with_data)?;
    }
    Ok((t, view))
}

/// CONCURRENTLY compares rows by a key, in PostgreSQL.
fn may_be_concurrent(c: &Change, t: &Table, with_data: bool) -> SqlResult<()> {
    if !with_data {
        return Err(SqlError::syntax(
            "CONCURRENTLY and WITH NO DATA options cannot be used together",
        ));
    }
    let plain = |id: u32| t.column(id).is_some_and(|c| c.expression.is_none());
    let key = t
        .indexes
        .iter()
        .any(|i| i.unique && i.predicate.is_none() && i.columns.iter().all(|k| plain(k.column)));
    if !key {
        let shown = format!("{}.{}", c.ctx.schema_name(t.schema), t.name);
        return Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("cannot refresh materialized view \"{shown}\" concurrently"),
        )
        .with_hint(
            "Create a unique index with no WHERE clause on one or more columns of the \
             materialized view.",
        ));
    }
    if t.materialized().is_some_and(|view| view.populated) {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "CONCURRENTLY cannot be used when the materialized view is not populated",
    ))
}

/// The surroundings in which the query's names mean what they meant at its creation.
fn as_at_creation(ctx: &Context, view: &Materialized) -> Context {
    Context { search_path: Arc::new(view.definition.search_path.clone()), ..ctx.clone() }
}

/// A star in the query may have more columns than at its creation: those behind the view's own are
/// left out; any others would shift them.
fn check_columns(t: &Table, now: &[ColumnInfo]) -> SqlResult<()> {
    let own: Vec<_> = t.visible_columns().collect();
    let types = own.len() <= now.len()
        && own
            .iter()
            .zip(now)
            .all(|(c, now)| now.ty == c.ty || now.ty == braid_types::SqlType::Unknown);
    let names = || own.iter().zip(now).all(|(c, now)| c.name == now.name);
    if types && (own.len() == now.len() || names()) {
        return Ok(());
    }
    Err(SqlError::unsupported(format!(
        "refreshing \"{}\", whose query has other columns than at its creation,",
        t.name
    ))
    .with_hint("Drop it and create it again; columns that are listed instead of * stay."))
}

/// 23505 of rows that come all at once, as PostgreSQL says it of an index that is made anew.
fn of_whole_index(t: &Table, e: SqlError) -> SqlError {
    let detail = e.detail().and_then(|text| text.strip_suffix(" already exists."));
    let index = t.indexes.iter().find(|i| e.constraint() == Some(&i.name));
    let (Some(index), Some(key)) = (index, detail) else { return e };
    Lost::Duplicate
        .error(format!("could not create unique index \"{}\"", index.name))
        .with_detail(format!("{key} is duplicated."))
        .with_constraint(&index.name)
}

/// ALTER MATERIALIZED VIEW.
pub(crate) fn alter(
    c: &mut Change,
    name: &Name,
    if_exists: bool,
    change: &MaterializedChange,
) -> SqlResult<String> {
    let tag = "ALTER MATERIALIZED VIEW".to_string();
    if if_exists && c.ctx.find_relation(name)?.is_none() {
        c.ctx.notice(format!("relation \"{}\" does not exist, skipping", name.join(".")));
        return Ok(tag);
    }
    let t = match c.ctx.relation(name)? {
        Relation::Table(t) if t.materialized().is_some() => t,
        _ => return Err(wrong_kind(name, "materialized view")),
    };
    c.lock_chain(&t)?;
    match change {
        MaterializedChange::Rename(new) => alter::rename_table(c, &t, new.clone())?,
        MaterializedChange::RenameColumn(old, new) => {
            alter_column::rename(c, &t, old, new.clone())?;
        }
        MaterializedChange::SetSchema(to) => schema::set_schema(c, &t, to)?,
        // Of views alone.
        MaterializedChange::Options => {}
        MaterializedChange::SetStatistics(column, target) => {
            alter_column::set_statistics(c, &t, column, *target)?;
        }
    }
    Ok(tag)
}

/// Refuses what ALTER TABLE cannot do to a materialized view: all but new names, another owner.
///
/// # Errors
/// 42809.
pub(in crate::ddl) fn check_operation(t: &Table, op: &Op) -> SqlResult<()> {
    match op {
        _ if t.materialized().is_none() => Ok(()),
        Op::RenameTable { .. } | Op::RenameColumn { .. } | Op::OwnerTo { .. } => Ok(()),
        op => Err(cannot_be_done(t, action_of(op))),
    }
}

/// What an operation of ALTER TABLE is called where it is refused.
pub(in crate::ddl) fn action_of(op: &Op) -> &'static str {
    match op {
        Op::AddColumn { .. } => "ADD COLUMN",
        Op::DropColumn { .. } => "DROP COLUMN",
        Op::AddConstraint { .. } => "ADD CONSTRAINT",
        Op::DropConstraint { .. } => "DROP CONSTRAINT",
        Op::RenameConstraint { .. } => "RENAME CONSTRAINT",
        Op::ValidateConstraint { .. } => "VALIDATE CONSTRAINT",
        Op::ReplicaIdentity { .. } => "REPLICA IDENTITY",
        Op::AlterColumn { op, .. } => match op {
            AlterColumnOperation::SetNotNull => "ALTER COLUMN ... SET NOT NULL",
            AlterColumnOperation::DropNotNull => "ALTER COLUMN ... DROP NOT NULL",
            AlterColumnOperation::SetDataType { .. } => "ALTER COLUMN ... SET DATA TYPE",
            AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::DropDefault => {
                "ALTER COLUMN ... SET DEFAULT"
            }
            _ => "ALTER COLUMN",
        },
        _ => "ALTER TABLE",
    }
}

/// 42809: an action that is for tables only.
pub(in crate::ddl) fn cannot_be_done(t: &Table, action: &str) -> SqlError {
    SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("ALTER action {action} cannot be performed on relation \"{}\"", t.name),
    )
    .with_detail("This operation is not supported for materialized views.")
}
