//! Databases and schemas.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::{Database, Schema, Table};
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;

use super::kept::follow;
use super::{Change, drop, exists, named_relations, parts};
use braid_scalar::{SessionFunctions, ident_name};

/// The name of a role; `current_user` and others mean who they say unless they are quoted.
fn role_called(c: &Change, name: &ast::Ident) -> String {
    let session = &c.ctx.session;
    match ident_name(name).as_str() {
        "current_user" | "current_role" if name.quote_style.is_none() => session.current_user(),
        "session_user" if name.quote_style.is_none() => session.session_user(),
        own => own.to_string(),
    }
}

pub(crate) fn create_schema(
    c: &mut Change,
    name: &ast::SchemaName,
    if_not_exists: bool,
) -> SqlResult<String> {
    let bare = match name {
        ast::SchemaName::Simple(n) | ast::SchemaName::NamedAuthorization(n, _) => {
            parts(n).pop().unwrap_or_default()
        }
        ast::SchemaName::UnnamedAuthorization(i) => role_called(c, i),
    };
    let tag = "CREATE SCHEMA".to_string();
    if c.catalog.schema(c.ctx.database, &bare).is_some() {
        if if_not_exists {
            let text = format!("schema \"{bare}\" already exists, skipping");
            c.ctx.notice_in(SqlState::DUPLICATE_SCHEMA, text);
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
    c.catalog.put_schema(Schema {
        id,
        database: c.ctx.database,
        name: bare,
        on_commit: Vec::new(),
    });
    let owner = match name {
        ast::SchemaName::Simple(_) => None,
        ast::SchemaName::NamedAuthorization(_, owner)
        | ast::SchemaName::UnnamedAuthorization(owner) => Some(role_called(c, owner)),
    };
    if let Some(owner) = owner {
        super::access::roles::give_new(c, id, &owner)?;
    }
    c.sync();
    Ok(tag)
}

pub(crate) fn alter_schema(c: &mut Change, a: &ast::AlterSchema) -> SqlResult<String> {
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
                let renamed = named_relations::in_renamed(c, schema.id, &new);
                named_relations::follow(c, &renamed)?;
                follow::follow_schema(c, &schema.name, &new)?;
                c.catalog.put_schema(Schema { name: new, ..(*schema).clone() });
            }
            other => return Err(SqlError::unsupported(format!("ALTER SCHEMA {other}"))),
        }
    }
    c.sync();
    Ok("ALTER SCHEMA".into())
}

pub(crate) fn create_database(
    c: &mut Change,
    name: &str,
    if_not_exists: bool,
) -> SqlResult<String> {
    let tag = "CREATE DATABASE".to_string();
    if c.catalog.database(name).is_some() {
        if if_not_exists {
            let text = format!("database \"{name}\" already exists, skipping");
            c.ctx.notice_in(SqlState::DUPLICATE_DATABASE, text);
            return Ok(tag);
        }
        return Err(SqlError::new(
            SqlState::DUPLICATE_DATABASE,
            format!("database \"{name}\" already exists"),
        ));
    }
    if c.ctx.block.is_some() {
        return Err(SqlError::new(
            SqlState::ACTIVE_SQL_TRANSACTION,
            "CREATE DATABASE cannot run inside a transaction block",
        ));
    }
    let id = c.ctx.db.new_ids(2)?;
    c.catalog.put_database(Database { id, name: name.to_string() });
    c.catalog.put_schema(Schema {
        id: id + 1,
        database: id,
        name: "public".into(),
        on_commit: Vec::new(),
    });
    c.sync();
    Ok(tag)
}

pub(super) fn set_schema(c: &mut Change, t: &Arc<Table>, schema: &str) -> SqlResult<()> {
    let Some(schema) = c.catalog.schema(c.ctx.database, schema).cloned() else {
        return Err(crate::session::no_schema(schema));
    };
    if schema.id == t.schema {
        return Ok(());
    }
    super::alter::refuse_if_viewed(c, t, "move table")?;
    let names = std::iter::once(&t.name).chain(t.all_indexes().map(|i| &i.name));
    for n in names {
        if c.taken(schema.id, n) {
            return Err(exists(n));
        }
    }
    let own = t.columns.iter().filter_map(|x| c.catalog.sequence(x.sequence?));
    let own = own.map(|s| (s.id, &s.name)).chain(named_relations::with_indexes(t));
    let full = |(id, name): (u32, &String)| (id, named_relations::full_name(&schema.name, name));
    let moved = own.map(full).collect();
    named_relations::follow(c, &moved)?;
    let mut new = (*c.stored(t.id)?).clone();
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
