//! Views and queries in FROM that show columns of one table: the table, with their conditions.
//!
//! ```text
//!   CREATE VIEW open AS SELECT id, note FROM job WHERE done IS NULL
//!
//!   FROM open o WHERE o.id = 7
//!   FROM (SELECT id, note FROM job WHERE done IS NULL) o WHERE o.id = 7
//!   FROM job o WHERE done IS NULL AND o.id = 7        where o has two columns
//! ```
//! So keys and indexes find what conditions from around ask for. All other views are for general
//! plans, and so are those that were made where names meant something else; other queries are made
//! first.

use std::sync::Arc;

use braid_catalog::{Column, Relation, Table, View};
use braid_scalar::{
    Bound, ParamTypes, Scope, ScopeColumn, ident_name, is_only, object_name_parts, output_name,
};
use braid_types::SqlResult;
use sqlparser::ast::{self, Expr, SelectItem, TableFactor};

use crate::dml::scope_of;
use crate::plan::build::simple_select;
use crate::plan::groups::has_groups;
use crate::session::Context;
use crate::views::read_through;

/// See the [module documentation](self).
pub(in crate::plan) struct OverTable {
    /// What its rows are called.
    alias: String,
    /// `None`: it is a query.
    view: Option<Arc<View>>,
    /// By ordinal of the table, the number of the column that it is, and that column's name.
    shown: Vec<Option<(u32, String)>>,
    /// What the query calls the table.
    inner: String,
    condition: Option<Expr>,
}

impl OverTable {
    /// The table that something of FROM shows, and what it shows of it; `None` if it is not as
    /// simple as that.
    pub(in crate::plan) fn of(
        ctx: &Context,
        factor: &TableFactor,
    ) -> Option<(Arc<Table>, OverTable)> {
        match factor {
            TableFactor::Table { name, alias, args: None, sample: None, .. } if !is_only(name) => {
                let parts = object_name_parts(name);
                if names_query(ctx, &parts) {
                    return None;
                }
                let Ok(Some(Relation::View(view))) = ctx.find_relation(&parts) else { return None };
                OverTable::of_view(ctx, &view, alias.as_ref())
            }
            TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None } => {
                OverTable::of_query(ctx, subquery, alias)
            }
            _ => None,
        }
    }

    fn of_view(
        ctx: &Context,
        view: &Arc<View>,
        alias: Option<&ast::TableAlias>,
    ) -> Option<(Arc<Table>, OverTable)> {
        if *ctx.search_path != view.definition.search_path {
            return None;
        }
        let simple = read_through(&ctx.catalog, view)?;
        let Relation::Table(table) = simple.base else { return None };
        let names = view.columns.iter().map(|(name, _)| name.clone());
        let columns = simple.columns.into_iter().collect::<Option<Vec<_>>>()?;
        let shown = in_order(&table, columns.into_iter().zip(names))?;
        let own = |(number, _): &(u32, String)| view.columns.get(*number as usize - 1);
        let same = |(c, shown): (&Column, &Option<(u32, String)>)| {
            shown.as_ref().is_none_or(|shown| own(shown).is_some_and(|(_, ty)| *ty == c.ty))
        };
        if alias.is_some_and(|alias| !alias.columns.is_empty())
            || !table.columns.iter().zip(&shown).all(same)
        {
            return None;
        }
        let over = OverTable {
            alias: alias.map_or_else(|| view.name.clone(), |alias| ident_name(&alias.name)),
            view: Some(view.clone()),
            shown,
            inner: ident_name(&simple.alias.name),
            condition: simple.condition,
        };
        Some((table, over))
    }

    fn of_query(
        ctx: &Context,
        query: &ast::Query,
        alias: &ast::TableAlias,
    ) -> Option<(Arc<Table>, OverTable)> {
        let select = simple_select(query).filter(|select| !has_groups(select))?;
        let bare = query.order_by.is_none() && query.limit_clause.is_none();
        let [from] = select.from.as_slice() else { return None };
        if !bare || !query.locks.is_empty() || !from.joins.is_empty() || !alias.columns.is_empty() {
            return None;
        }
        let TableFactor::Table { name, alias: inner, args: None, sample: None, .. } =
            &from.relation
        else {
            return None;
        };
        let parts = object_name_parts(name);
        let renamed = inner.as_ref().is_some_and(|inner| !inner.columns.is_empty());
        let of_system = parts.len() == 1 && parts[0].starts_with("pg_");
        if is_only(name) || renamed || of_system || names_query(ctx, &parts) {
            return None;
        }
        let Ok(Some(Relation::Table(table))) = ctx.find_relation(&parts) else { return None };
        if table.materialized().is_some_and(|view| !view.populated) {
            return None;
        }
        let inner = inner.as_ref().map_or_else(|| table.name.clone(), |a| ident_name(&a.name));
        let mut columns = Vec::new();
        for item in &select.projection {
            match item {
                SelectItem::Wildcard(options) if *options == Default::default() => {
                    let all = table.columns.iter().filter(|c| !c.hidden);
                    columns.extend(all.map(|c| (c.name.clone(), c.name.clone())));
                }
                SelectItem::UnnamedExpr(e) => columns.push((column(e, &inner)?, output_name(e))),
                SelectItem::ExprWithAlias { expr, alias } => {
                    columns.push((column(expr, &inner)?, ident_name(alias)));
                }
                _ => return None,
            }
        }
        let shown = in_order(&table, columns.into_iter())?;
        let (alias, condition) = (ident_name(&alias.name), select.selection.clone());
        Some((table, OverTable { alias, view: None, shown, inner, condition }))
    }

    /// Its conditions over the joined row, in which the table begins there.
    ///
    /// # Errors
    /// Those of general plans, which know more of them.
    pub(in crate::plan) fn conditions(
        &self,
        table: &Table,
        offset: usize,
        params: &mut ParamTypes,
    ) -> SqlResult<Vec<Bound>> {
        let Some(condition) = &self.condition else { return Ok(Vec::new()) };
        let mut scope = Scope::empty();
        scope.pad(offset);
        for column in scope_of(table, &self.inner, None).columns() {
            scope.push(column.clone());
        }
        Ok(braid_scalar::bind_bool(condition, "WHERE", &scope, params)?.conjuncts())
    }

    /// Names the columns of its table as it does; nobody can name the others.
    pub(in crate::plan) fn rename(&self, columns: &mut [ScopeColumn]) {
        for (column, shown) in columns.iter_mut().zip(&self.shown) {
            match shown {
                Some((_, name)) => {
                    column.name.clone_from(name);
                    column.hidden = false;
                }
                None => {
                    column.name.clear();
                    (column.table, column.hidden) = (None, true);
                }
            }
        }
    }

    /// The table and column that a column of the table is for clients.
    pub(in crate::plan) fn origin(&self, table: &Table, at: usize) -> Option<(u32, u32)> {
        let (number, _) = self.shown.get(at)?.as_ref()?;
        match &self.view {
            Some(view) => Some((view.id, *number)),
            None => Some((table.id, table.columns.get(at)?.id)),
        }
    }

    /// What its rows are called.
    pub(in crate::plan) fn alias(&self) -> &str {
        &self.alias
    }

    /// The name of the column that a column of the table is.
    pub(in crate::plan) fn name_of(&self, at: usize) -> Option<&str> {
        self.shown.get(at)?.as_ref().map(|(_, name)| name.as_str())
    }

    /// The schema that names it, if it has its own name.
    pub(in crate::plan) fn schema(&self, ctx: &Context) -> Option<String> {
        let view = self.view.as_ref().filter(|view| view.name == self.alias)?;
        Some(ctx.schema_name(view.schema))
    }
}

/// Whether a name means a query of WITH.
fn names_query(ctx: &Context, parts: &[String]) -> bool {
    let [bare] = parts else { return false };
    ctx.within.named.iter().any(|(name, _)| name == bare)
}

/// The column that an expression is, if it is no more than that.
fn column(e: &Expr, table: &str) -> Option<String> {
    match e {
        Expr::Identifier(name) => Some(ident_name(name)),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [of, name] if ident_name(of) == table => Some(ident_name(name)),
            _ => None,
        },
        _ => None,
    }
}

/// Columns with their names by ordinal of the table; `None` if they do not come as they lie in it,
/// which is how a star shows them.
fn in_order(
    table: &Table,
    columns: impl Iterator<Item = (String, String)>,
) -> Option<Vec<Option<(u32, String)>>> {
    let mut shown = vec![None; table.columns.len()];
    let mut least = 0;
    for (number, (column, name)) in (1..).zip(columns) {
        let at = table.columns.iter().position(|c| c.name == column && !c.hidden)?;
        if at < least {
            return None;
        }
        (shown[at], least) = (Some((number, name)), at + 1);
    }
    Some(shown)
}
