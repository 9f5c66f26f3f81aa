//! All texts that are kept, one after the other.

use std::cell::LazyCell;
use std::sync::Arc;

use braid_catalog::{
    Addition, Building, Check, Column, Definition, Function, Index, Partition, Relation, Table,
    TypeKind, UserType,
};
use braid_parser::{parse_expr, parse_query};
use braid_rows::table_scope;
use braid_scalar::{Scope, bind_to, bind_unsettled};
use braid_types::{SqlResult, SqlType};
use braid_walk::{VisitorMut, WalkMut};
use sqlparser::ast;

use crate::ddl::{Change, alter, user_type};
use crate::dml::source::Source;
use crate::session::{Context, value_scope};

/// A text that was read.
#[derive(Clone, PartialEq)]
pub(super) enum Tree {
    Expr(Box<ast::Expr>),
    Query(Box<ast::Query>),
}

impl Tree {
    pub(super) fn walk_mut(&mut self, visitor: &mut impl VisitorMut<Break = ()>) {
        let _ = match self {
            Tree::Expr(expr) => expr.walk_mut(visitor),
            Tree::Query(query) => query.walk_mut(visitor),
        };
    }

    fn text(&self) -> String {
        match self {
            Tree::Expr(expr) => expr.to_string(),
            Tree::Query(query) => query.to_string(),
        }
    }
}

/// What columns a kept expression sees, and the type that is wanted of it.
struct Around<'a> {
    scope: &'a dyn Fn() -> Scope,
    target: Option<&'a SqlType>,
}

/// A kept text that is looked at.
pub(super) struct Kept<'a> {
    pub(super) tree: Tree,
    /// By which the names in it are meant.
    pub(super) path: &'a [String],
    /// `None` for a query.
    around: Option<Around<'a>>,
    /// What it is kept with, in words.
    pub(super) what: &'a str,
    /// Its name.
    pub(super) of: &'a str,
}

impl Kept<'_> {
    /// Whether it means something, in this state of the catalog.
    ///
    /// # Errors
    /// Those of its first mistake.
    pub(super) fn check(&self, ctx: &Context) -> SqlResult<()> {
        match (&self.tree, &self.around) {
            (Tree::Expr(expr), Some(Around { scope, target: Some(target) })) => {
                bind_to(expr, target, &scope(), &mut ctx.no_params()).map(drop)
            }
            (Tree::Expr(expr), around) => {
                let scope = around.as_ref().map_or_else(Scope::empty, |around| (around.scope)());
                bind_unsettled(expr, &scope, &mut ctx.no_params()).map(drop)
            }
            (Tree::Query(query), _) => {
                let search_path = Arc::new(self.path.to_vec());
                let ctx = Context { search_path, ..ctx.clone() };
                Source::plan(&ctx, query, &mut ctx.no_params()).map(drop)
            }
        }
    }
}

/// How texts are changed.
pub(super) struct Rewrite<'a> {
    /// Whether a text may be concerned; others are not read.
    pub(super) may: &'a dyn Fn(&str) -> bool,
    /// Changes one; whether it did.
    pub(super) change: &'a dyn Fn(&mut Kept) -> SqlResult<bool>,
}

/// Where a text is.
struct Place<'a> {
    path: &'a [String],
    what: &'a str,
    of: &'a str,
    around: Option<Around<'a>>,
}

impl Rewrite<'_> {
    fn text(&self, text: &mut String, place: Place<'_>) -> SqlResult<bool> {
        if !(self.may)(text) {
            return Ok(false);
        }
        let tree = match place.around {
            Some(_) => Tree::Expr(Box::new(parse_expr(text)?)),
            None => Tree::Query(parse_query(text)?),
        };
        let Place { path, what, of, around } = place;
        let mut kept = Kept { tree, path, around, what, of };
        let changed = (self.change)(&mut kept)?;
        if changed {
            *text = kept.tree.text();
        }
        Ok(changed)
    }

    fn expr(
        &self,
        text: Option<&mut String>,
        of: &Owner<'_>,
        what: &str,
        target: Option<&SqlType>,
        scope: &dyn Fn() -> Scope,
    ) -> SqlResult<bool> {
        let Some(text) = text else { return Ok(false) };
        let around = Some(Around { scope, target });
        self.text(text, Place { path: &of.path, what, of: of.name, around })
    }
}

/// What texts are kept with.
struct Owner<'a> {
    name: &'a str,
    path: Vec<String>,
}

impl Owner<'_> {
    /// Types and functions have their schemas in expressions. In those of older stores they have
    /// none.
    fn new<'a>(c: &Change, schema: u32, name: &'a str) -> Owner<'a> {
        Owner { name, path: vec![c.ctx.schema_name(schema), "public".to_string()] }
    }
}

/// Has every text of the database changed.
///
/// # Errors
/// Those of a change, of texts that cannot be read, and of locking what they are kept with.
pub(super) fn rewrite(c: &mut Change, how: &Rewrite<'_>) -> SqlResult<()> {
    let mut tables = Vec::new();
    for table in c.catalog.tables().filter(|t| is_here(c, t.schema)) {
        let mut new = (**table).clone();
        if in_table(c, &mut new, how)? {
            tables.push(new);
        }
    }
    for table in tables {
        c.ctx.lock_for_change(table.id)?;
        c.catalog.put_table(table);
    }
    in_views(c, how)?;
    let mut types = Vec::new();
    for user in c.catalog.user_types().filter(|t| is_here(c, t.schema)) {
        let mut new = (**user).clone();
        if in_domain(c, &mut new, how)? {
            types.push(new);
        }
    }
    for new in types {
        user_type::lock_users(c, &new)?;
        let id = new.id;
        c.catalog.put_type(new);
        c.touch_users(id);
    }
    let mut functions = Vec::new();
    for function in c.catalog.functions().filter(|f| is_here(c, f.schema)) {
        let mut new = (**function).clone();
        if in_function(c, &mut new, how)? {
            functions.push(new);
        }
    }
    for function in functions {
        c.catalog.put_function(function);
    }
    Ok(())
}

/// Whether a schema is one of the session's database.
pub(super) fn is_here(c: &Change, schema: u32) -> bool {
    c.catalog.schema_by_id(schema).is_some_and(|s| s.database == c.ctx.database)
}

fn in_table(c: &Change, new: &mut Table, how: &Rewrite<'_>) -> SqlResult<bool> {
    let before = new.clone();
    let columns = LazyCell::new(|| table_scope(&before));
    let scope: &dyn Fn() -> Scope = &|| (*columns).clone();
    let of = Owner::new(c, new.schema, &before.name);
    let mut any = false;
    for column in &mut new.columns {
        any |= in_column(column, &of, how, scope)?;
    }
    let bool = Some(&SqlType::Bool);
    for check in &mut new.checks {
        any |= how.expr(Some(&mut check.expr), &of, "a constraint", bool, scope)?;
    }
    for index in &mut new.indexes {
        any |= in_index(index, &of, how, scope)?;
    }
    match &mut new.building {
        Some(Building { addition: Addition::Check(Check { expr, .. }), .. }) => {
            any |= how.expr(Some(expr), &of, "a constraint", bool, scope)?;
        }
        Some(Building { addition: Addition::Index { index, expressions, .. }, .. }) => {
            any |= in_index(index, &of, how, scope)?;
            for column in expressions {
                any |= in_column(column, &of, how, scope)?;
            }
        }
        _ => {}
    }
    for partition in new.partitioning_mut().into_iter().flat_map(|d| &mut d.partitions) {
        any |= in_partition(partition, &before, &of, how, scope)?;
    }
    Ok(any)
}

fn in_column(
    column: &mut Column,
    of: &Owner<'_>,
    how: &Rewrite<'_>,
    scope: &dyn Fn() -> Scope,
) -> SqlResult<bool> {
    let ty = Some(&column.ty);
    let default = how.expr(column.default.as_mut(), of, "a default", ty, &Scope::empty)?;
    let generated = &mut column.generated;
    let generated = how.expr(generated.as_mut(), of, "a generated column", ty, scope)?;
    let expression = how.expr(column.expression.as_mut(), of, "an index", None, scope)?;
    Ok(default || generated || expression)
}

fn in_index(
    index: &mut Index,
    of: &Owner<'_>,
    how: &Rewrite<'_>,
    scope: &dyn Fn() -> Scope,
) -> SqlResult<bool> {
    let bool = Some(&SqlType::Bool);
    let predicate = how.expr(index.predicate.as_mut(), of, "an index", bool, scope)?;
    let own = index.of_partition.as_mut().and_then(|own| own.predicate.as_mut());
    Ok(how.expr(own, of, "an index", bool, scope)? || predicate)
}

fn in_partition(
    partition: &mut Partition,
    table: &Table,
    of: &Owner<'_>,
    how: &Rewrite<'_>,
    scope: &dyn Fn() -> Scope,
) -> SqlResult<bool> {
    let mut any = false;
    for (column, default) in &mut partition.defaults {
        let ty = table.column(*column).map(|column| &column.ty);
        any |= how.expr(default.as_mut(), of, "a default", ty, &Scope::empty)?;
    }
    for check in &mut partition.checks {
        let bool = Some(&SqlType::Bool);
        any |= how.expr(Some(&mut check.expr), of, "a constraint", bool, scope)?;
    }
    Ok(any)
}

/// Queries of views of both kinds.
fn in_views(c: &mut Change, how: &Rewrite<'_>) -> SqlResult<()> {
    let mut changed: Vec<(u32, Definition)> = Vec::new();
    for (view, definition) in c.catalog.definitions() {
        let (schema, of) = match c.catalog.relation_by_id(view) {
            Some(Relation::View(view)) => (view.schema, view.name.clone()),
            Some(Relation::Table(kept)) => (kept.schema, kept.name.clone()),
            _ => continue,
        };
        if !is_here(c, schema) {
            continue;
        }
        let mut new = definition.clone();
        let path = &definition.search_path;
        let place = Place { path, what: "the query", of: &of, around: None };
        if how.text(&mut new.query, place)? {
            changed.push((view, new));
        }
    }
    for (view, definition) in changed {
        c.ctx.lock_for_change(view)?;
        alter::put_definition(c, view, definition);
    }
    Ok(())
}

fn in_domain(c: &Change, new: &mut UserType, how: &Rewrite<'_>) -> SqlResult<bool> {
    let base = c.catalog.sql_type(new);
    let TypeKind::Domain(domain) = &mut new.kind else { return Ok(false) };
    let base = base.unwrap_or_else(|| domain.base.clone());
    let scope: &dyn Fn() -> Scope = &|| value_scope(&base);
    let of = Owner::new(c, new.schema, &new.name);
    let default = domain.default.as_mut();
    let mut any = how.expr(default, &of, "the default", Some(&base), &Scope::empty)?;
    for check in &mut domain.checks {
        let bool = Some(&SqlType::Bool);
        any |= how.expr(Some(&mut check.expr), &of, "a constraint", bool, scope)?;
    }
    Ok(any)
}

/// Defaults of parameters. The body is text, which nobody reads before the function is called.
fn in_function(c: &Change, new: &mut Function, how: &Rewrite<'_>) -> SqlResult<bool> {
    let of = Owner::new(c, new.schema, &new.name);
    let mut any = false;
    for parameter in &mut new.params {
        let default = parameter.default.as_mut();
        any |= how.expr(default, &of, "a parameter", Some(&parameter.ty), &Scope::empty)?;
    }
    Ok(any)
}
