//! Schemas, databases, views, comments.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use braid_catalog::{Database, Relation, Schema, Table, View};
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;

use super::{Change, drop, exists, parts};
use braid_scalar::ident_name;

pub(super) fn create_schema(
    c: &mut Change,
    name: &ast::SchemaName,
    if_not_exists: bool,
) -> SqlResult<String> {
    let bare = match name {
        ast::SchemaName::Simple(n) | ast::SchemaName::NamedAuthorization(n, _) => {
            parts(n).pop().unwrap_or_default()
        }
        ast::SchemaName::UnnamedAuthorization(i) => ident_name(i),
    };
    let tag = "CREATE SCHEMA".to_string();
    if c.catalog.schema(c.ctx.database, &bare).is_some() {
        if if_not_exists {
            c.ctx.notice(format!("schema \"{bare}\" already exists, skipping"));
            return Ok(tag);
        }
        return Err(SqlError::new(
            SqlState::DUPLICATE_SCHEMA,
            format!("schema \"{bare}\" already exists"),
        ));
    }
    if bare.starts_with("pg_") || bare == "information_schema" {
        return Err(SqlError::new(
            SqlState("42939"),
            format!("unacceptable schema name \"{bare}\""),
        )
        .with_detail("The prefix \"pg_\" is reserved for system schemas."));
    }
    let id = c.new_id()?;
    c.catalog.put_schema(Schema { id, database: c.ctx.database, name: bare });
    c.sync();
    Ok(tag)
}

pub(super) fn alter_schema(c: &mut Change, a: &ast::AlterSchema) -> SqlResult<String> {
    let name = parts(&a.name).pop().unwrap_or_default();
    let Some(schema) = c.catalog.schema(c.ctx.database, &name).cloned() else {
        return Err(crate::session::no_schema(&name));
    };
    for op in &a.operations {
        match op {
            ast::AlterSchemaOperation::Rename { name } => {
                let new = parts(name).pop().unwrap_or_default();
                if c.catalog.schema(c.ctx.database, &new).is_some() {
                    return Err(SqlError::new(
                        SqlState::DUPLICATE_SCHEMA,
                        format!("schema \"{new}\" already exists"),
                    ));
                }
                c.catalog.put_schema(Schema { name: new, ..(*schema).clone() });
            }
            ast::AlterSchemaOperation::OwnerTo { .. } => {}
            other => return Err(SqlError::unsupported(format!("ALTER SCHEMA {other}"))),
        }
    }
    c.sync();
    Ok("ALTER SCHEMA".into())
}

pub(super) fn create_database(
    c: &mut Change,
    name: &str,
    if_not_exists: bool,
) -> SqlResult<String> {
    let tag = "CREATE DATABASE".to_string();
    if c.catalog.database(name).is_some() {
        if if_not_exists {
            c.ctx.notice(format!("database \"{name}\" already exists, skipping"));
            return Ok(tag);
        }
        return Err(SqlError::new(
            SqlState::DUPLICATE_DATABASE,
            format!("database \"{name}\" already exists"),
        ));
    }
    if c.ctx.failure.is_some() {
        return Err(SqlError::new(
            SqlState::ACTIVE_SQL_TRANSACTION,
            "CREATE DATABASE cannot run inside a transaction block",
        ));
    }
    let id = c.ctx.db.new_ids(2)?;
    c.catalog.put_database(Database { id, name: name.to_string() });
    c.catalog.put_schema(Schema { id: id + 1, database: id, name: "public".into() });
    c.sync();
    Ok(tag)
}

pub(super) fn create_view(c: &mut Change, v: &ast::CreateView) -> SqlResult<String> {
    if v.materialized || v.temporary {
        return Err(SqlError::unsupported("a materialized or temporary view"));
    }
    let tag = "CREATE VIEW".to_string();
    let (schema, name) = c.ctx.target_schema(&parts(&v.name))?;
    let old = match c.catalog.relation(schema, &name) {
        None => None,
        Some(Relation::View(old)) if v.or_replace => Some(old),
        Some(_) if v.if_not_exists => return Ok(tag),
        Some(Relation::View(_)) => return Err(exists(&name)),
        Some(_) if v.or_replace => {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{name}\" is not a view"),
            ));
        }
        Some(_) => return Err(exists(&name)),
    };
    let source = crate::dml::source::Source::plan_query(&c.ctx, &v.query)?;
    let mut columns: Vec<_> =
        source.columns().iter().map(|i| (i.name.clone(), i.ty.clone())).collect();
    if v.columns.len() > columns.len() {
        return Err(SqlError::syntax("CREATE VIEW specifies more column names than columns"));
    }
    for (slot, given) in columns.iter_mut().zip(&v.columns) {
        slot.0 = ident_name(&given.name);
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = columns.iter().find(|c| !seen.insert(c.0.clone())) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{}\" specified more than once", twice.0),
        ));
    }
    if let Some(old) = &old {
        let keeps = old.columns.len() <= columns.len()
            && old.columns.iter().zip(&columns).all(|(a, b)| a == b);
        if !keeps {
            return Err(bad_view("cannot change names or types of existing columns of a view"));
        }
    }
    let view = View {
        id: match &old {
            Some(o) => o.id,
            None => c.new_id()?,
        },
        schema,
        name,
        query: v.query.to_string(),
        columns,
        depends_on: relations_of(c, &v.query),
        search_path: c.ctx.search_path.to_vec(),
        comment: None,
    };
    if view.depends_on.contains(&view.id) {
        return Err(bad_view("infinite recursion detected in a view"));
    }
    // The tables must not change under the view between planning and commit.
    for id in &view.depends_on {
        c.ctx.lock_for_change(*id)?;
    }
    c.catalog.put_view(view);
    c.sync();
    Ok(tag)
}

fn bad_view(message: &str) -> SqlError {
    super::bad_table(message)
}

/// Relations that a query names and that exist.
fn relations_of(c: &Change, query: &ast::Query) -> Vec<u32> {
    let mut found = BTreeSet::new();
    let _ = ast::visit_relations(query, |name| {
        if let Ok(Some(r)) = c.ctx.find_relation(&parts(name)) {
            found.insert(r.id());
        }
        ControlFlow::<()>::Continue(())
    });
    found.into_iter().collect()
}

pub(super) fn comment(
    c: &mut Change,
    kind: ast::CommentObject,
    name: &ast::ObjectName,
    text: Option<String>,
) -> SqlResult<String> {
    let name = parts(name);
    let tag = "COMMENT".to_string();
    match kind {
        ast::CommentObject::Table => {
            let mut t = (*c.ctx.table(&name)?).clone();
            t.comment = text;
            c.put(t);
        }
        ast::CommentObject::Column => {
            let (column, table) = name
                .split_last()
                .ok_or_else(|| SqlError::syntax("column name must be qualified"))?;
            let mut t = (*c.ctx.table(&table.to_vec())?).clone();
            match t.columns.iter_mut().find(|x| x.name == *column && !x.hidden) {
                Some(x) => x.comment = text,
                None => {
                    return Err(SqlError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!("column \"{column}\" of relation \"{}\" does not exist", t.name),
                    ));
                }
            }
            c.put(t);
        }
        ast::CommentObject::View => {
            if let Relation::View(v) = c.ctx.relation(&name)? {
                c.catalog.put_view(View { comment: text, ..(*v).clone() });
                c.sync();
            }
        }
        _ => c.ctx.notice("comments are kept for tables, columns and views only"),
    }
    Ok(tag)
}

pub(super) fn set_schema(c: &mut Change, t: &Arc<Table>, schema: &str) -> SqlResult<()> {
    let Some(schema) = c.catalog.schema(c.ctx.database, schema).cloned() else {
        return Err(crate::session::no_schema(schema));
    };
    super::alter::refuse_if_viewed(c, t, "move table")?;
    let names = std::iter::once(&t.name).chain(t.all_indexes().map(|i| &i.name));
    for n in names {
        if c.taken(schema.id, n) {
            return Err(exists(n));
        }
    }
    let mut new = (**t).clone();
    new.schema = schema.id;
    for s in t.columns.iter().filter_map(|x| x.sequence) {
        if let Some(seq) = c.catalog.sequence(s).cloned() {
            let mut seq = (*seq).clone();
            seq.schema = schema.id;
            c.catalog.put_sequence(seq);
        }
    }
    c.put(new);
    let _ = drop::dependent_views(c, &BTreeSet::from([t.id]));
    Ok(())
}
