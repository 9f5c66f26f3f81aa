//! Whether a view's query is simple enough to write through it, by PostgreSQL's rules and in its
//! words.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use braid_catalog::{Catalog, Definition, Relation, View};
use braid_parser::parse_query;
use braid_scalar::{ident_name, object_name_parts};
use braid_types::SqlResult;
use braid_walk::WalkMut;
use sqlparser::ast::{
    self, Expr, GroupByExpr, Ident, SelectItem, SetExpr, TableFactor, VisitorMut,
};

use crate::plan::calls_that_gather;

/// A view whose rows are rows of one relation.
#[derive(Clone, Debug)]
pub struct SimpleView {
    /// The relation.
    pub base: Relation,
    /// What the query calls it.
    pub alias: ast::TableAlias,
    /// What the view's columns show.
    pub items: Vec<Expr>,
    /// Which columns of the relation those are; `None`: none.
    pub columns: Vec<Option<String>>,
    /// Which rows.
    pub condition: Option<Expr>,
}

/// Reads the query of a view.
///
/// # Errors
/// The inner one: why it cannot be written to, as PostgreSQL's detail says it. The outer one: its
/// text does not parse.
pub fn simple(catalog: &Catalog, view: &View) -> SqlResult<Result<SimpleView, &'static str>> {
    let query = qualified_query(catalog, view)?;
    if let Some(reason) = refused(&query) {
        return Ok(Err(reason));
    }
    let SetExpr::Select(select) = *query.body else { return Ok(Err(NOT_SINGLE)) };
    Ok(of_select(catalog, view, *select))
}

/// A view that is read as its relation with its conditions; `None` if it asks for more.
pub(crate) fn read_through(catalog: &Catalog, view: &View) -> Option<SimpleView> {
    let only = |from: &ast::TableWithJoins| match &from.relation {
        TableFactor::Table { name, .. } => braid_scalar::is_only(name),
        _ => true,
    };
    let written = parse_query(&view.definition.query).ok()?;
    if matches!(&*written.body, SetExpr::Select(select) if select.from.iter().any(only)) {
        return None;
    }
    let query = qualified_query(catalog, view).ok()?;
    if query.order_by.is_some() || !query.locks.is_empty() || refused(&query).is_some() {
        return None;
    }
    let SetExpr::Select(select) = *query.body else { return None };
    of_select(catalog, view, *select).ok().filter(|simple| simple.alias.columns.is_empty())
}

const NOT_SINGLE: &str =
    "Views that do not select from a single table or view are not automatically updatable.";

/// What PostgreSQL asks before it looks at FROM, in its order.
fn refused(query: &ast::Query) -> Option<&'static str> {
    let select = match &*query.body {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { .. } => {
            return Some(
                "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.",
            );
        }
        _ => return Some(NOT_SINGLE),
    };
    let grouped =
        !matches!(&select.group_by, GroupByExpr::Expressions(e, m) if e.is_empty() && m.is_empty());
    Some(if select.distinct.is_some() {
        "Views containing DISTINCT are not automatically updatable."
    } else if grouped {
        "Views containing GROUP BY are not automatically updatable."
    } else if select.having.is_some() {
        "Views containing HAVING are not automatically updatable."
    } else if query.with.is_some() {
        "Views containing WITH are not automatically updatable."
    } else if query.limit_clause.is_some() || query.fetch.is_some() {
        "Views containing LIMIT or OFFSET are not automatically updatable."
    } else {
        return match calls_that_gather(&select.projection)? {
            "aggregate functions" => {
                Some("Views that return aggregate functions are not automatically updatable.")
            }
            "window functions" => {
                Some("Views that return window functions are not automatically updatable.")
            }
            _ => Some("Views that return set-returning functions are not automatically updatable."),
        };
    })
}

fn of_select(
    catalog: &Catalog,
    view: &View,
    select: ast::Select,
) -> Result<SimpleView, &'static str> {
    let [from] = select.from.as_slice() else { return Err(NOT_SINGLE) };
    let TableFactor::Table { name, alias, args: None, sample, .. } = &from.relation else {
        return Err(NOT_SINGLE);
    };
    if !from.joins.is_empty() {
        return Err(NOT_SINGLE);
    }
    let parts = object_name_parts(name);
    let base = match named(catalog, view, &parts) {
        Some(Relation::Table(t)) if t.materialized().is_some() => return Err(NOT_SINGLE),
        Some(base @ (Relation::Table(_) | Relation::Partition(_) | Relation::View(_))) => base,
        _ => return Err(NOT_SINGLE),
    };
    if sample.is_some() {
        return Err("Views containing TABLESAMPLE are not automatically updatable.");
    }
    let own = || ast::TableAlias {
        explicit: true,
        name: Ident::with_quote('"', parts.last().map_or("", String::as_str)),
        columns: Vec::new(),
        at: None,
    };
    let alias = alias.clone().unwrap_or_else(own);
    let names = names_of(&base, &alias);
    let mut items = Vec::new();
    for item in select.projection {
        match item {
            SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => items.push(e),
            // A star that was not written out shares columns, which one relation does not.
            _ => return Err(NOT_SINGLE),
        }
    }
    let called = ident_name(&alias.name);
    let columns: Vec<_> = items.iter().map(|e| column_of(e, &called, &names)).collect();
    if columns.iter().all(Option::is_none) {
        return Err("Views that have no updatable columns are not automatically updatable.");
    }
    Ok(SimpleView { base, alias, items, columns, condition: select.selection })
}

/// The columns of a relation, as an alias calls them and as they are called.
fn names_of(base: &Relation, alias: &ast::TableAlias) -> Vec<(String, String)> {
    let own: Vec<String> = match base {
        Relation::View(v) => v.columns.iter().map(|(name, _)| name.clone()).collect(),
        Relation::Table(t) | Relation::Partition(t) => {
            t.visible_columns().map(|c| c.name.clone()).collect()
        }
        _ => Vec::new(),
    };
    let mut shown = own.clone();
    for (name, given) in shown.iter_mut().zip(&alias.columns) {
        *name = ident_name(&given.name);
    }
    shown.into_iter().zip(own).collect()
}

/// The column that an expression is, if it is no more than that.
fn column_of(e: &Expr, alias: &str, names: &[(String, String)]) -> Option<String> {
    let name = match e {
        Expr::Nested(inner) => return column_of(inner, alias, names),
        Expr::Identifier(name) => ident_name(name),
        Expr::CompoundIdentifier(parts) => {
            let [.., of, name] = parts.as_slice() else { return None };
            if ident_name(of) != alias {
                return None;
            }
            ident_name(name)
        }
        _ => return None,
    };
    names.iter().find(|(shown, _)| *shown == name).map(|(_, own)| own.clone())
}

/// The relation that a view's query means by a name.
fn named(catalog: &Catalog, view: &View, parts: &[String]) -> Option<Relation> {
    let Definition { depends_on, search_path, .. } = &view.definition;
    let (name, schema) = match parts {
        [name] => (name, None),
        [.., schema, name] => (name, Some(schema)),
        [] => return None,
    };
    let known: BTreeSet<u32> = depends_on.iter().copied().collect();
    let mut found: Vec<(String, Relation)> = known
        .into_iter()
        .filter_map(|id| Some((catalog.qualified_name(id)?, catalog.relation_by_id(id)?)))
        .filter(|((of, own), _)| own == name && schema.is_none_or(|s| s == of))
        .map(|((of, _), relation)| (of, relation))
        .collect();
    // What is not on the path is there by another name of its schema: that of temporary tables.
    found.sort_by_key(|(of, _)| search_path.iter().position(|s| s == of).unwrap_or(usize::MAX));
    found.into_iter().next().map(|(_, relation)| relation)
}

/// The query of a view with the schemas of relations written out: it is read elsewhere than where
/// the view was made.
pub(crate) fn qualified_query(catalog: &Catalog, view: &View) -> SqlResult<ast::Query> {
    struct Qualify<'a>(&'a Catalog, &'a View, BTreeSet<String>);
    impl VisitorMut for Qualify<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
            let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
            self.2.extend(ctes.map(|cte| ident_name(&cte.alias.name)));
            ControlFlow::Continue(())
        }

        fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
            let TableFactor::Table { name, alias, args: None, .. } = factor else {
                return ControlFlow::Continue(());
            };
            let parts = object_name_parts(name);
            let [bare] = parts.as_slice() else { return ControlFlow::Continue(()) };
            if self.2.contains(bare) {
                return ControlFlow::Continue(());
            }
            let meant = named(self.0, self.1, &parts);
            if let Some((schema, own)) = meant.and_then(|r| self.0.qualified_name(r.id())) {
                let quoted = |name: &str| Ident::with_quote('"', name);
                *name = vec![quoted(&schema), quoted(&own)].into();
                alias.get_or_insert_with(|| ast::TableAlias {
                    explicit: true,
                    name: quoted(bare),
                    columns: Vec::new(),
                    at: None,
                });
            }
            ControlFlow::Continue(())
        }
    }
    let mut query = *parse_query(&view.definition.query)?;
    let _ = query.walk_mut(&mut Qualify(catalog, view, BTreeSet::new()));
    Ok(query)
}

/// Which columns of a view can be written to, through all views behind it; `None` if no rows can.
pub fn may_write(catalog: &Catalog, view: &View) -> Option<Vec<bool>> {
    let simple = simple(catalog, view).ok()?.ok()?;
    let below = match &simple.base {
        Relation::View(inner) => {
            let can = may_write(catalog, inner)?;
            Some((inner.clone(), can))
        }
        _ => None,
    };
    let can = |name: &String| match &below {
        None => true,
        Some((inner, can)) => {
            let at = inner.columns.iter().position(|(own, _)| own == name);
            at.is_some_and(|at| can[at])
        }
    };
    let columns: Vec<bool> =
        simple.columns.iter().map(|column| column.as_ref().is_some_and(can)).collect();
    Some(columns)
}
