//! The stars of a view's query, written as the columns that they mean at its creation: what its
//! tables get later is no part of it, as in PostgreSQL.
//!
//! ```text
//!   SELECT a.*, 1 AS one FROM a   ─►   SELECT a.id, a.name, 1 AS one FROM a
//! ```
//! Only the columns of the whole query count: a star inside of it may grow unseen.

use std::collections::BTreeSet;

use braid_parser::{STAR_EXCEPT, parse_query};
use braid_types::{SqlError, SqlResult, quote_ident};
use sqlparser::ast::{
    self, Expr, Ident, ObjectName, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableFactor, TableWithJoins,
};

use crate::ddl::Change;
use crate::dml::source::Source;

/// A query without stars in what it gives.
pub(super) fn written_out(c: &Change, query: &ast::Query) -> SqlResult<ast::Query> {
    let mut query = query.clone();
    let with = query.with.as_ref().map(|with| format!("{with} ")).unwrap_or_default();
    in_body(c, &with, &mut query.body)?;
    Ok(query)
}

fn in_body(c: &Change, with: &str, body: &mut SetExpr) -> SqlResult<()> {
    match body {
        SetExpr::Select(select) => in_select(c, with, select),
        SetExpr::SetOperation { left, right, .. } => {
            in_body(c, with, left)?;
            in_body(c, with, right)
        }
        SetExpr::Query(query) if query.with.is_none() => in_body(c, with, &mut query.body),
        _ => Ok(()),
    }
}

fn in_select(c: &Change, with: &str, select: &mut ast::Select) -> SqlResult<()> {
    let mut items = Vec::new();
    for item in &select.projection {
        if let SelectItem::UnnamedExpr(e) = item
            && let Some(row) = braid_scalar::all_fields(e)
        {
            let names = selected(c, with, &e.to_string(), &select.from)?;
            let fields = names.iter().map(|name| field(&row, name));
            items.extend(fields.map(SelectItem::UnnamedExpr));
            continue;
        }
        if let SelectItem::UnnamedExpr(Expr::Function(call)) = item
            && braid_scalar::object_name_parts(&call.name) == [STAR_EXCEPT]
        {
            return Err(SqlError::unsupported("EXCEPT or REPLACE behind a star in a view")
                .with_hint("List the columns."));
        }
        match star(item) {
            None => items.push(item.clone()),
            Some(of) => match columns(c, with, of, &select.from)? {
                Some(columns) => items.extend(columns.into_iter().map(SelectItem::UnnamedExpr)),
                None => return Ok(()),
            },
        }
    }
    select.projection = items;
    Ok(())
}

/// Whether an item is a star, and of what.
fn star(item: &SelectItem) -> Option<Option<&ObjectName>> {
    match item {
        SelectItem::Wildcard(options) if options.to_string().is_empty() => Some(None),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(of), options)
            if options.to_string().is_empty() =>
        {
            Some(Some(of))
        }
        _ => None,
    }
}

/// The relations whose columns stand behind each other in a star; `None` if some have no name, or
/// share columns.
fn relations(from: &[TableWithJoins]) -> Option<Vec<ObjectName>> {
    let name = |factor: &TableFactor| match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. } => Some(alias.name.clone().into()),
        TableFactor::Table { name, alias: None, .. } => {
            Some(name.0.last()?.as_ident()?.clone().into())
        }
        _ => None,
    };
    let mut out = Vec::new();
    for part in from {
        out.push(name(&part.relation)?);
        for join in &part.joins {
            let shares = ["USING", "NATURAL"].iter().any(|word| join.to_string().contains(word));
            out.push(name(&join.relation).filter(|_| !shares)?);
        }
    }
    Some(out)
}

/// The columns of a star; `None` if nothing else says what it means.
fn columns(
    c: &Change,
    with: &str,
    of: Option<&ObjectName>,
    from: &[TableWithJoins],
) -> SqlResult<Option<Vec<Expr>>> {
    if let Some(names) = names(c, with, of, from)? {
        return Ok(Some(names.iter().map(|name| column(of, name)).collect()));
    }
    let relations = if of.is_none() { relations(from) } else { None };
    let Some(relations) = relations else { return Ok(None) };
    let mut out = Vec::new();
    for relation in relations {
        let Some(names) = names(c, with, Some(&relation), from)? else { return Ok(None) };
        out.extend(names.iter().map(|name| column(Some(&relation), name)));
    }
    Ok(Some(out))
}

/// Names of a star's columns; `None` if two are alike.
fn names(
    c: &Change,
    with: &str,
    of: Option<&ObjectName>,
    from: &[TableWithJoins],
) -> SqlResult<Option<Vec<String>>> {
    let of = of.map(|of| format!("{of}.")).unwrap_or_default();
    let names = selected(c, with, &format!("{of}*"), from)?;
    let all: BTreeSet<&String> = names.iter().collect();
    Ok((all.len() == names.len()).then_some(names))
}

/// Names of what a select item gives.
fn selected(c: &Change, with: &str, item: &str, from: &[TableWithJoins]) -> SqlResult<Vec<String>> {
    let from: Vec<String> = from.iter().map(ToString::to_string).collect();
    let from = if from.is_empty() { String::new() } else { format!(" FROM {}", from.join(", ")) };
    let text = format!("{with}SELECT {item}{from}");
    let source = Source::plan_query(&c.ctx, &*parse_query(&text)?)?;
    Ok(source.columns().iter().map(|info| info.name.clone()).collect())
}

/// A name as it is written in a query.
pub(in crate::ddl) fn ident(name: &str) -> Ident {
    let plain = *quote_ident(name) == *name;
    if plain { Ident::new(name) } else { Ident::with_quote('"', name) }
}

/// `(row).name`.
fn field(row: &Expr, name: &str) -> Expr {
    let root = match row {
        Expr::Nested(_) => row.clone(),
        other => Expr::Nested(Box::new(other.clone())),
    };
    let access_chain = vec![ast::AccessExpr::Dot(Expr::Identifier(ident(name)))];
    Expr::CompoundFieldAccess { root: Box::new(root), access_chain }
}

fn column(of: Option<&ObjectName>, name: &str) -> Expr {
    let ident = ident(name);
    let Some(of) = of else { return Expr::Identifier(ident) };
    let parts = of.0.iter().filter_map(|part| part.as_ident().cloned());
    Expr::CompoundIdentifier(parts.chain([ident]).collect())
}
