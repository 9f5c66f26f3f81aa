//! ADD CONSTRAINT .. USING INDEX: an index becomes the one of a constraint, and is called as it.

use std::sync::Arc;

use braid_catalog::{Index, IndexConstraint, Table};
use braid_parser::parse_expr;
use braid_scalar::ident_name;
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;

use super::rename;
use crate::ddl::{Change, constraint, drop};

/// UNIQUE USING INDEX.
pub(in crate::ddl) fn unique(
    c: &mut Change,
    t: &Arc<Table>,
    u: &ast::ConstraintUsingIndex,
) -> SqlResult<()> {
    if constraint::refuse_deferrable(u.characteristics.as_ref()).is_err() {
        return Err(SqlError::unsupported("a DEFERRABLE constraint USING INDEX")
            .with_hint("Its entries are others: ADD CONSTRAINT .. UNIQUE (..) DEFERRABLE."));
    }
    let (id, name) = named(c, t, u)?;
    if let Some(name) = name {
        rename(c, t, id, name)?;
    }
    let mut t = (**c.catalog.table(t.id).expect("still there")).clone();
    for i in t.indexes.iter_mut().filter(|i| i.id == id) {
        i.constraint = Some(IndexConstraint::Unique);
    }
    c.put(t);
    Ok(())
}

/// PRIMARY KEY USING INDEX: the constraint of the same columns. The index goes, since rows will lie
/// under its key.
pub(in crate::ddl) fn primary_key(
    c: &mut Change,
    t: &Arc<Table>,
    u: &ast::ConstraintUsingIndex,
) -> SqlResult<ast::PrimaryKeyConstraint> {
    let (id, name) = named(c, t, u)?;
    let index = t.index(id).ok_or_else(|| SqlError::internal("index without table"))?;
    let columns = index.columns.iter().filter_map(|k| t.column(k.column));
    let columns: SqlResult<Vec<ast::IndexColumn>> = columns
        .map(|column| {
            let expr = parse_expr(&braid_types::quote_ident(&column.name))?;
            let options = ast::OrderByOptions { asc: None, nulls_first: None };
            let column = ast::OrderByExpr { expr, options, with_fill: None };
            Ok(ast::IndexColumn { column, operator_class: None })
        })
        .collect();
    let name = name.unwrap_or_else(|| index.name.clone());
    let key = ast::PrimaryKeyConstraint {
        name: Some(ast::Ident::with_quote('"', name)),
        index_name: None,
        index_type: None,
        columns: columns?,
        index_options: Vec::new(),
        characteristics: u.characteristics,
    };
    drop::remove_index(c, t, id, false)?;
    Ok(key)
}

/// The index that is named, and the other name that it gets.
fn named(c: &Change, t: &Table, u: &ast::ConstraintUsingIndex) -> SqlResult<(u32, Option<String>)> {
    let old = ident_name(&u.index_name);
    let Some(index) = t.indexes.iter().find(|i| i.name == old) else {
        let text = format!("index \"{old}\" does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text));
    };
    check(t, index)?;
    let name = u.name.as_ref().map(ident_name).filter(|name| *name != old);
    if let Some(name) = &name {
        c.ctx.notice(format!(
            "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{old}\" to \"{name}\""
        ));
    }
    Ok((index.id, name))
}

/// That an index can be one of a constraint.
fn check(t: &Table, index: &Index) -> SqlResult<()> {
    let wrong = |text: String| {
        let reason = "Cannot create a primary key or unique constraint using such an index.";
        Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text).with_detail(reason))
    };
    let name = &index.name;
    if index.constraint.is_some() {
        let text = format!("index \"{name}\" is already associated with a constraint");
        return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text));
    }
    if !index.unique {
        return wrong(format!("\"{name}\" is not a unique index"));
    }
    let computed = |id: u32| t.column(id).is_some_and(|column| column.expression.is_some());
    if index.columns.iter().any(|k| computed(k.column)) {
        return wrong(format!("index \"{name}\" contains expressions"));
    }
    if index.predicate.is_some() {
        return wrong(format!("\"{name}\" is a partial index"));
    }
    if index.columns.iter().any(|k| k.desc || k.nulls_first) {
        let text = "does not have default sorting behavior";
        return wrong(format!("index \"{name}\" column number 1 {text}"));
    }
    Ok(())
}
