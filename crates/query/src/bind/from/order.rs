//! The order of a query in FROM, for aggregates that look at the order of rows.
//!
//! ```text
//!   SELECT json_agg(d.name) FROM (SELECT name, n FROM t ORDER BY n DESC) d
//!   as                      json_agg(d.name ORDER BY d.n DESC)
//! ```
//! SQL does not promise that the order of a query in FROM is kept, and plans here do not keep it.
//! But PostgreSQL does where nothing else comes between, says so in its manual, and everybody who
//! makes JSON in a database writes it like that. Keys that the query does not select become hidden
//! columns of it ([`with_keys`]). So it is with a query of WITH that is named in FROM.

use std::borrow::Cow;
use std::sync::Arc;

use sqlparser::ast::{self, Expr, Ident, OrderByKind, SelectItem, SetExpr, TableFactor};

use braid_scalar::{Scope, ident_name, object_name_parts};

use crate::bind::rows_from::BESIDE;

/// The order in which rows come from FROM, over its columns; none if there is none, or if it is not
/// only a query with an order over what it selects.
pub(in crate::bind) fn from_order(
    from: &[ast::TableWithJoins],
    scope: &Scope,
    of_with: &dyn Fn(&str) -> Option<Named>,
) -> Vec<ast::OrderByExpr> {
    known(from, scope, of_with).unwrap_or_default()
}

/// A query of WITH, and whether its columns are called otherwise than in it.
pub(in crate::bind) type Named = (Arc<ast::Query>, bool);

fn known(
    from: &[ast::TableWithJoins],
    scope: &Scope,
    of_with: &dyn Fn(&str) -> Option<Named>,
) -> Option<Vec<ast::OrderByExpr>> {
    let [ast::TableWithJoins { relation, joins }] = from else { return None };
    let named;
    let (query, alias, renamed) = match relation {
        TableFactor::Derived { subquery, alias: Some(alias), .. } => {
            (&**subquery, ident_name(&alias.name), !alias.columns.is_empty())
        }
        TableFactor::Table { name, alias, args: None, .. } => {
            let [own] = &*object_name_parts(name) else { return None };
            named = of_with(own)?;
            let alias_name = alias.as_ref().map_or_else(|| own.clone(), |a| ident_name(&a.name));
            let again = alias.as_ref().is_some_and(|a| !a.columns.is_empty());
            (&*named.0, alias_name, named.1 || again)
        }
        _ => return None,
    };
    let (select, keys) = ordered(query)?;
    if !joins.is_empty() {
        return None;
    }
    let keys = keys.iter().enumerate().map(|(at, key)| {
        let selected = output(&select.projection, &key.expr).filter(|_| !renamed);
        let name = selected.unwrap_or_else(|| hidden(at));
        // Not there, or there twice: nobody knows which is meant.
        scope.find(&[alias.clone(), name.clone()]).ok().flatten()?;
        let expr = Expr::CompoundIdentifier(
            [&alias, &name].map(|part| Ident::with_quote('"', part)).to_vec(),
        );
        Some(ast::OrderByExpr { expr, ..key.clone() })
    });
    keys.collect()
}

fn ordered(query: &ast::Query) -> Option<(&ast::Select, &[ast::OrderByExpr])> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let OrderByKind::Expressions(keys) = &query.order_by.as_ref()?.kind else { return None };
    Some((select, keys))
}

/// What a key is called that the query does not select under a name of its own.
fn hidden(at: usize) -> String {
    format!("{BESIDE}order {at}")
}

/// A query of FROM that selects the keys of its order, too; `renamed` if its columns are called
/// otherwise outside.
pub(in crate::bind) fn with_keys(query: &ast::Query, renamed: bool) -> Cow<'_, ast::Query> {
    let Some((select, keys)) = ordered(query).filter(|(select, _)| select.distinct.is_none())
    else {
        return Cow::Borrowed(query);
    };
    let added = keys.iter().enumerate().filter_map(|(at, key)| {
        let meant = meant(&select.projection, &key.expr, renamed)?;
        Some((at, meant.clone()))
    });
    let added: Vec<(usize, Expr)> = added.collect();
    let mut out = if added.is_empty() { Cow::Borrowed(query) } else { Cow::Owned(query.clone()) };
    for (at, expr) in added {
        let query = out.to_mut();
        let alias = Ident::with_quote('"', hidden(at));
        if let Some(ast::OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by
        {
            keys[at].expr = Expr::Identifier(alias.clone());
        }
        if let SetExpr::Select(select) = &mut *query.body {
            select.projection.push(SelectItem::ExprWithAlias { expr, alias });
        }
    }
    out
}

/// What a key means, if it is to be a hidden column.
fn meant<'a>(items: &'a [SelectItem], key: &'a Expr, renamed: bool) -> Option<&'a Expr> {
    let Some(selected) = output(items, key) else {
        return (!matches!(key, Expr::Value(_))).then_some(key);
    };
    if !renamed {
        return None;
    }
    let is_column = |e: &Expr| matches!(e, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    let item = items.iter().find(|item| name(item).as_ref() == Some(&selected));
    match item {
        // Computed twice it may be something else.
        Some(SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. }) => {
            Some(e).filter(|e| is_column(e))
        }
        // One of a star's.
        _ => Some(key).filter(|e| is_column(e)),
    }
}

/// The name under which what is ordered by is selected.
fn output(items: &[SelectItem], key: &Expr) -> Option<String> {
    if let Expr::Value(value) = key {
        let at: usize = value.value.to_string().parse().ok()?;
        return name(items.get(at.checked_sub(1)?)?);
    }
    let own = match key {
        Expr::Identifier(name) => Some(ident_name(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(ident_name),
        _ => None,
    };
    if let Expr::Identifier(_) = key
        && own.is_some()
        && items.iter().any(|item| name(item) == own)
    {
        return own;
    }
    let selects = |item: &&SelectItem| match item {
        SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => e == key,
        _ => false,
    };
    if let Some(item) = items.iter().find(selects) {
        return name(item);
    }
    let all = |item: &SelectItem| {
        matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
    };
    own.filter(|_| items.iter().any(all))
}

fn name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(e) => Some(braid_scalar::output_name(e)),
        SelectItem::ExprWithAlias { alias, .. } => Some(ident_name(alias)),
        _ => None,
    }
}
