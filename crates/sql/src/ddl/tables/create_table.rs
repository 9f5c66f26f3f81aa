//! CREATE TABLE.

use std::sync::Arc;

use braid_catalog::{
    Column, ColumnOptions, Index, IndexColumn, IndexConstraint, OnCommit, Partitioning, Table,
    Upkeep, choose_constraint_name, constraint_name,
};
use braid_types::{Collated, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;

use super::like::{self, Spelled};
use crate::ddl::column::{self, Declared};
use crate::ddl::{
    Change, bad_table, composite, constraint, exists, index, interleave, partitions, parts,
    temporary, ttl,
};
use crate::general_query::ColumnInfo;
use braid_parser::CreateTable;
use braid_scalar::ident_name;

/// Most columns of a table.
const MAX_COLUMNS: usize = 1600;

pub(crate) fn run(c: &mut Change, create: &CreateTable) -> SqlResult<String> {
    if !create.likes.is_empty() {
        let Spelled { create, comments } = like::spell_out(c, create)?;
        let is_there = c.ctx.find_relation(&parts(&create.base.name))?.is_some();
        let tag = run(c, &create)?;
        if !is_there {
            like::comment(c, &create, comments)?;
        }
        return Ok(tag);
    }
    let base = &create.base;
    refuse(base, create.of.is_some())?;
    let (schema, name) = place(c, base)?;
    if c.taken(schema, &name) {
        if base.if_not_exists {
            let text = format!("relation \"{name}\" already exists, skipping");
            c.ctx.notice_in(SqlState::DUPLICATE_TABLE, text);
            let tag = if base.query.is_some() { "CREATE TABLE AS" } else { "CREATE TABLE" };
            return Ok(tag.into());
        }
        return Err(exists(&name));
    }
    if let Some(query) = &base.query {
        return create_as(c, schema, name, create, query);
    }
    let (mut t, declared) = declare(c, create, empty(c, schema, name)?)?;
    for d in &declared {
        for k in &d.constraints {
            if !matches!(k, ast::TableConstraint::PrimaryKey(_)) {
                constraint::add(c, &mut t, k, Some(&d.name))?;
                tell_index(c, &t, k);
            }
        }
    }
    for k in &base.constraints {
        if !matches!(k, ast::TableConstraint::PrimaryKey(_)) {
            constraint::add(c, &mut t, k, None)?;
            tell_index(c, &t, k);
        }
    }
    c.put(t.clone());
    for i in &create.indexes {
        index::add(c, &mut t, i)?;
        c.put(t.clone());
    }
    Ok("CREATE TABLE".into())
}

/// A table with its columns, its primary key and its place; what else is declared comes after it.
fn declare(
    c: &mut Change,
    create: &CreateTable,
    mut t: Table,
) -> SqlResult<(Table, Vec<Declared>)> {
    let base = &create.base;
    temporary::note(c, &t, on_commit(base))?;
    let mut declared = Vec::new();
    for def in &base.columns {
        let d = column::declare(c, &mut t, def)?;
        declared.push(d);
    }
    if t.columns.len() > MAX_COLUMNS {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("tables can have at most {MAX_COLUMNS} columns"),
        ));
    }
    primary_key(c, &mut t, base, &declared)?;
    if let Some(by) = &create.by {
        let key = partitions::declare_key(c, &t, by)?;
        t.upkeep.partitioning = Some(Arc::new(Partitioning { key, partitions: Vec::new() }));
    }
    if let Some(clause) = &create.interleave {
        let place = interleave::declare(c, &t, clause)?;
        if let Some(parent) = c.catalog.table(place.parent) {
            temporary::check_reference(c, &t, parent)?;
        }
        t.interleave = Some(place);
    }
    if let Some(clause) = &create.ttl {
        t.upkeep.ttl = Some(ttl::declare(c, &t, clause)?);
    }
    let mut t = (*c.put(t)).clone();
    column::finish(c, &mut t, &declared, "CREATE")?;
    if !t.has_row_id() {
        c.ctx.debug(implicit_index("PRIMARY KEY", &t.primary.name, &t.name));
    }
    Ok(((*c.put(t)).clone(), declared))
}

/// Tells of the index behind a unique key that was just added.
fn tell_index(c: &Change, t: &Table, k: &ast::TableConstraint) {
    if let (ast::TableConstraint::Unique(_), Some(index)) = (k, t.indexes.last()) {
        c.ctx.debug(implicit_index("UNIQUE", &index.name, &t.name));
    }
}

fn implicit_index(what: &str, index: &str, table: &str) -> String {
    format!("CREATE TABLE / {what} will create implicit index \"{index}\" for table \"{table}\"")
}

/// The schema and the name of the new table.
fn place(c: &mut Change, base: &ast::CreateTable) -> SqlResult<(u32, String)> {
    let name = parts(&base.name);
    if let Some(place) = temporary::place(c, &name, base.temporary)? {
        return Ok(place);
    }
    if base.on_commit.is_some() {
        return Err(bad_table("ON COMMIT can only be used on temporary tables"));
    }
    c.ctx.target_schema(&name)
}

/// ON COMMIT, as the descriptor has it.
fn on_commit(base: &ast::CreateTable) -> Option<OnCommit> {
    match base.on_commit {
        Some(ast::OnCommit::Drop) => Some(OnCommit::Drop),
        Some(ast::OnCommit::DeleteRows) => Some(OnCommit::DeleteRows),
        Some(ast::OnCommit::PreserveRows) | None => None,
    }
}

fn refuse(base: &ast::CreateTable, of_type: bool) -> SqlResult<()> {
    let refused = [
        (
            base.like.is_some(),
            "CREATE TABLE .. LIKE without brackets",
            "Write CREATE TABLE x (LIKE t INCLUDING ALL).",
        ),
        (
            base.inherits.is_some(),
            "INHERITS",
            "Write the columns of both tables out, or keep them in one table with a column that \
             tells their kinds apart.",
        ),
        (of_type, "CREATE TABLE .. OF a type", "Write CREATE TABLE x (LIKE the_type)."),
        (base.or_replace, "CREATE OR REPLACE TABLE", "Use CREATE TABLE IF NOT EXISTS."),
    ];
    match refused.iter().find(|r| r.0) {
        Some((_, what, hint)) => Err(SqlError::unsupported(what).with_hint(*hint)),
        None => Ok(()),
    }
}

/// A table without columns and with a hidden row id as its key.
pub(in crate::ddl) fn empty(c: &Change, schema: u32, name: String) -> SqlResult<Table> {
    let id = c.ctx.db.new_ids(2)?;
    let primary = Index {
        id: id + 1,
        generation: 1,
        name: constraint_name(&name, &[], "rowid"),
        unique: true,
        deferral: None,
        nulls_not_distinct: false,
        columns: Vec::new(),
        include: Vec::new(),
        interleave_in: None,
        predicate: None,
        constraint: None,
        of_partition: None,
        unread: None,
        declared: None,
    };
    Ok(Table {
        id,
        schema,
        name,
        generation: 1,
        columns: Vec::new(),
        next_column: 1,
        primary,
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        interleave: None,
        comment: None,
        step: 0,
        building: None,
        upkeep: Upkeep::default(),
    })
}

/// Gives the table the primary key that was declared, or a hidden row id.
fn primary_key(
    c: &Change,
    t: &mut Table,
    base: &ast::CreateTable,
    declared: &[Declared],
) -> SqlResult<()> {
    let mut keys = Vec::new();
    for d in declared {
        for k in &d.constraints {
            if let ast::TableConstraint::PrimaryKey(p) = k {
                keys.push((p, Some(&d.name)));
            }
        }
    }
    for k in &base.constraints {
        if let ast::TableConstraint::PrimaryKey(p) = k {
            keys.push((p, None));
        }
    }
    match keys.as_slice() {
        [] => {
            add_row_id(t);
            Ok(())
        }
        [(p, column)] => {
            let columns = match column {
                Some(n) => {
                    vec![IndexColumn::asc(t.column_named(n).expect("declared just now").id)]
                }
                None => index::key_columns(t, &p.columns)?,
            };
            constraint::refuse_deferrable(p.characteristics.as_ref())?;
            let name = match &p.name {
                Some(n) => ident_name(n),
                None => choose_constraint_name(&t.name, &[], "pkey", |n| {
                    c.taken(t.schema, n) || n == t.name
                }),
            };
            if c.taken(t.schema, &name) {
                return Err(exists(&name));
            }
            set_primary(t, columns, name)
        }
        _ => Err(bad_table(format!(
            "multiple primary keys for table \"{}\" are not allowed",
            t.name
        ))),
    }
}

/// Makes columns the primary key: they become NOT NULL.
pub(in crate::ddl) fn set_primary(
    t: &mut Table,
    columns: Vec<IndexColumn>,
    name: String,
) -> SqlResult<()> {
    index::check_key_types(t, &columns)?;
    for k in &columns {
        if let Some(col) = t.columns.iter_mut().find(|c| c.id == k.column) {
            col.nullable = false;
        }
    }
    // The key holds no NULLs, so one placement is as good as the other.
    t.primary.columns =
        columns.into_iter().map(|k| IndexColumn { nulls_first: k.desc, ..k }).collect();
    t.primary.name = name;
    t.primary.constraint = Some(IndexConstraint::Primary);
    Ok(())
}

/// Gives a table a hidden column that tells its rows apart, as its key.
pub(in crate::ddl) fn add_row_id(t: &mut Table) {
    let id = t.next_column;
    t.next_column += 1;
    t.columns.push(Column {
        nullable: false,
        hidden: true,
        ..Column::new(id, "rowid", SqlType::Int8)
    });
    t.primary.columns = vec![IndexColumn::asc(id)];
}

/// CREATE TABLE .. AS query.
fn create_as(
    c: &mut Change,
    schema: u32,
    name: String,
    create: &CreateTable,
    query: &ast::Query,
) -> SqlResult<String> {
    let text = "CREATE TABLE AS of statements that write is not supported";
    let hint = "Create the table first; then INSERT into it, with the same WITH in front.";
    crate::dml::with::refuse(query, text, Some(hint))?;
    let source = crate::dml::source::Source::plan_query(&c.ctx, query)?;
    let t = of_query(c, schema, name, &create.names, source.columns())?;
    temporary::note(c, &t, on_commit(&create.base))?;
    let t = c.put(t);
    if create.no_data {
        return Ok("CREATE TABLE AS".into());
    }
    let count = crate::dml::query_load::fill_table(&c.ctx, &t, &source)?;
    Ok(format!("SELECT {count}"))
}

/// A table with the columns of a query, of which the first ones have the names that are given.
pub(in crate::ddl) fn of_query(
    c: &Change,
    schema: u32,
    name: String,
    names: &[String],
    columns: &[ColumnInfo],
) -> SqlResult<Table> {
    if names.len() > columns.len() {
        return Err(SqlError::syntax("too many column names were specified"));
    }
    let mut t = empty(c, schema, name)?;
    for (n, info) in columns.iter().enumerate() {
        let name = names.get(n).unwrap_or(&info.name).clone();
        column::check_name(&name)?;
        if t.column_named(&name).is_some() {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        let ty = if info.ty == SqlType::Unknown { SqlType::Text } else { info.ty.clone() };
        composite::refuse_row_type(c, &name, &ty)?;
        let id = t.next_column;
        t.next_column += 1;
        if matches!(info.collation, Collated::Indeterminate(..)) {
            let text = format!(
                "no collation was derived for column \"{name}\" with collatable type {}",
                ty.base_name()
            );
            return Err(SqlError::new(SqlState::INDETERMINATE_COLLATION, text)
                .with_hint("Use the COLLATE clause to set the collation explicitly."));
        }
        let collation = info.collation.known().cloned();
        let options = ColumnOptions { collation, ..ColumnOptions::default() };
        // `timestamp(3)` and domains go along with a column.
        let refinement = info.of_column(&c.catalog, |column| column.refinement).flatten();
        t.columns.push(Column { options, refinement, ..Column::new(id, name, ty) });
    }
    add_row_id(&mut t);
    Ok(t)
}
