//! The order of a query in FROM, for aggregates that look at the order of rows.
//!
//! ```text
//!   SELECT json_agg(d.name) FROM (SELECT name, n FROM t ORDER BY n DESC) d
//!   as                      json_agg(d.name ORDER BY d.n DESC)
//! ```
//! SQL does not promise that the order of a query in FROM is kept, and plans here do not keep it.
//! But PostgreSQL does where nothing else comes between, says so in its manual, and everybody who
//! makes JSON in a database writes it like that. Keys that the query does not select are not seen.

use sqlparser::ast::{self, Expr, Ident, OrderByKind, SelectItem, SetExpr, TableFactor};

use braid_scalar::{Scope, ident_name};

/// The order in which rows come from FROM, over its columns; none if there is none, or if it is not
/// only a query with an order over what it selects.
pub(super) fn from_order(from: &[ast::TableWithJoins], scope: &Scope) -> Vec<ast::OrderByExpr> {
    known(from, scope).unwrap_or_default()
}

fn known(from: &[ast::TableWithJoins], scope: &Scope) -> Option<Vec<ast::OrderByExpr>> {
    let [table] = from else { return None };
    let TableFactor::Derived { subquery, alias: Some(alias), .. } = &table.relation else {
        return None;
    };
    let SetExpr::Select(select) = &*subquery.body else { return None };
    let OrderByKind::Expressions(keys) = &subquery.order_by.as_ref()?.kind else { return None };
    if !table.joins.is_empty() || !alias.columns.is_empty() {
        return None;
    }
    let alias = ident_name(&alias.name);
    let keys = keys.iter().map(|key| {
        let name = output(&select.projection, &key.expr)?;
        // Not there, or there twice: nobody knows which is meant.
        scope.find(&[alias.clone(), name.clone()]).ok().flatten()?;
        let expr = Expr::CompoundIdentifier(
            [&alias, &name].map(|part| Ident::with_quote('"', part)).to_vec(),
        );
        Some(ast::OrderByExpr { expr, ..key.clone() })
    });
    keys.collect()
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
