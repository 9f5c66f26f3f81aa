//! RETURNING of a statement that joins its table with others: UPDATE .. FROM, DELETE .. USING.
//!
//! ```text
//!   UPDATE t .. FROM s .. RETURNING *, t.a + s.b        query: key, new values, s.x, s.b
//!                                                       RETURNING over t's new row, s.x, s.b
//! ```
//! Columns of the others are *extras*: the query that names the rows selects them as well, and they
//! stand behind the row. The list is planned as a select list too, which judges its names. A list
//! with whole rows or subqueries in it is a query over the written rows with all of the extras.

use std::ops::ControlFlow;

use braid_scalar::{ParamTypes, Scope, ScopeColumn, ident_name, object_name_parts, output_name};
use braid_types::{SqlError, SqlResult, quote_ident};
use braid_walk::{Walk, WalkMut};
use sqlparser::ast::{
    self, Expr, FunctionArgExpr, SelectItem, SelectItemQualifiedWildcardKind, TableFactor, Visitor,
    VisitorMut,
};

use super::source::Source;
use super::target::{JoinedRows, Returning, ReturningByQuery, Target, returning, with_table_oid};
use crate::session::Context;

/// A bound list, and the items that the query of the rows needs for it.
#[derive(Default)]
pub(super) struct JoinedReturning {
    pub(super) list: Option<Returning>,
    pub(super) extras: Vec<String>,
}

/// Binds RETURNING; `others` are joined with the target, which stands in FROM as `first`.
pub(super) fn bind_joined(
    ctx: &Context,
    items: Option<&[SelectItem]>,
    target: &Target,
    (first, others): (&str, &[ast::TableWithJoins]),
    params: &mut ParamTypes,
) -> SqlResult<JoinedReturning> {
    let Some(items) = items else { return Ok(JoinedReturning::default()) };
    let items = &*with_table_oid(items, target)?;
    let from: Vec<String> = others.iter().map(ToString::to_string).collect();
    let from = from.join(", ");
    let shown: Vec<String> = items.iter().map(ToString::to_string).collect();
    plan(ctx, &format!("SELECT {} FROM {first}, {from}", shown.join(", ")), params)?;
    if items.to_vec().walk(&mut QueryNeeded(&target.alias)).is_break() {
        return bind_by_query(ctx, items, target, (&from, others), params);
    }
    let mut list =
        List { ctx, target, from, scope: target.scope(), extras: Vec::new(), out: vec![] };
    for item in items {
        list.add(item, others, params)?;
    }
    let List { from, mut scope, extras, out, .. } = list;
    if !extras.is_empty() {
        let source = plan(ctx, &format!("SELECT {} FROM {from}", extras.join(", ")), params)?;
        for (at, column) in source.columns().iter().enumerate() {
            scope.push(ScopeColumn {
                table: Some(String::new()),
                collation: column.collation.clone(),
                ..ScopeColumn::new(mark(at), column.ty.clone())
            });
        }
    }
    let table = target.table.clone();
    let origin = move |at: usize| table.columns.get(at).map(|c| (table.id, c.id));
    let list = returning(&out, &scope, &origin, params);
    match list.and_then(|list| list.settled(target)) {
        Err(e) if braid_scalar::needs_general_query(&e) => {
            Err(SqlError::unsupported("a subquery or aggregate in RETURNING"))
        }
        list => Ok(JoinedReturning { list: Some(list?), extras }),
    }
}

/// Binds a list that only a query can tell.
fn bind_by_query(
    ctx: &Context,
    items: &[SelectItem],
    target: &Target,
    (from, others): (&str, &[ast::TableWithJoins]),
    params: &mut ParamTypes,
) -> SqlResult<JoinedReturning> {
    let mut joined = Vec::new();
    for alias in aliases(others, "RETURNING of whole rows or subqueries")? {
        let text = format!("SELECT {}.* FROM {from}", quote_ident(&alias));
        let columns = plan(ctx, &text, params)?.columns().to_vec();
        joined.push(JoinedRows { alias, columns });
    }
    let query = ReturningByQuery::joined(ctx, items, target, &joined, params)?;
    let extras = joined.iter().flat_map(JoinedRows::items).collect();
    Ok(JoinedReturning { list: Some(Returning::of_query(query)), extras })
}

/// Looks for what the row itself does not tell: subqueries, and rows as values.
struct QueryNeeded<'a>(&'a str);

impl Visitor for QueryNeeded<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let star = |arg: &ast::FunctionArg| {
            matches!(arg, ast::FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)))
        };
        let found = match expr {
            Expr::Identifier(name) => ident_name(name) == self.0,
            Expr::QualifiedWildcard(..) => true,
            Expr::Function(call) => match &call.args {
                ast::FunctionArguments::List(list) => list.args.iter().any(star),
                _ => false,
            },
            _ => false,
        };
        if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn plan(ctx: &Context, text: &str, params: &mut ParamTypes) -> SqlResult<Source> {
    Source::plan(ctx, &*braid_parser::parse_query(text)?, params)
}

/// What an extra is called in the list. No name that can be typed has that character.
fn mark(at: usize) -> String {
    format!("\0{at}")
}

fn quoted(name: &str) -> ast::Ident {
    ast::Ident::with_quote('"', name)
}

/// A list that is being written anew, over the target and the extras.
struct List<'a> {
    ctx: &'a Context,
    target: &'a Target,
    from: String,
    scope: Scope,
    extras: Vec<String>,
    out: Vec<SelectItem>,
}

impl List<'_> {
    fn add(
        &mut self,
        item: &SelectItem,
        others: &[ast::TableWithJoins],
        params: &mut ParamTypes,
    ) -> SqlResult<()> {
        match item {
            SelectItem::Wildcard(_) => {
                self.target_star();
                for alias in aliases(others, "RETURNING *")? {
                    self.star(&alias, params)?;
                }
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(n), _) => {
                let name = object_name_parts(n).pop().unwrap_or_default();
                match name == self.target.alias {
                    true => self.target_star(),
                    false => self.star(&name, params)?,
                }
            }
            SelectItem::UnnamedExpr(e) => self.expr(e.clone(), &output_name(e), params),
            SelectItem::ExprWithAlias { expr, alias } => {
                self.expr(expr.clone(), &ident_name(alias), params);
            }
            other => return Err(SqlError::unsupported(format!("the select item {other}"))),
        }
        Ok(())
    }

    fn push(&mut self, expr: Expr, name: &str) {
        self.out.push(SelectItem::ExprWithAlias { expr, alias: quoted(name) });
    }

    /// The visible columns of the target.
    fn target_star(&mut self) {
        let target = self.target;
        for name in target.shown_names() {
            let expr = Expr::CompoundIdentifier(vec![quoted(&target.alias), quoted(&name)]);
            self.push(expr, &name);
        }
    }

    /// All columns of another table.
    fn star(&mut self, alias: &str, params: &mut ParamTypes) -> SqlResult<()> {
        let text = format!("SELECT {}.* FROM {}", quote_ident(alias), self.from);
        for c in plan(self.ctx, &text, params)?.columns() {
            self.extras.push(format!("{}.{}", quote_ident(alias), quote_ident(&c.name)));
            let expr = Expr::Identifier(quoted(&mark(self.extras.len() - 1)));
            self.push(expr, &c.name);
        }
        Ok(())
    }

    /// An expression, with extras in the place of what is not the target's.
    fn expr(&mut self, mut expr: Expr, name: &str, params: &mut ParamTypes) {
        let _ = expr.walk_mut(&mut Extras { list: self, params });
        self.push(expr, name);
    }
}

struct Extras<'l, 'a> {
    list: &'l mut List<'a>,
    params: &'l mut ParamTypes,
}

impl VisitorMut for Extras<'_, '_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            return ControlFlow::Continue(());
        }
        let mut tried = self.params.clone();
        if braid_scalar::bind(expr, &self.list.scope, &mut tried).is_err() {
            self.list.extras.push(expr.to_string());
            *expr = Expr::Identifier(quoted(&mark(self.list.extras.len() - 1)));
        }
        ControlFlow::Continue(())
    }
}

/// The names of the other tables, in the order of `*`.
fn aliases(others: &[ast::TableWithJoins], what: &str) -> SqlResult<Vec<String>> {
    let mut out = Vec::new();
    for table in others {
        let merged = table.joins.iter().any(|join| {
            let text = join.to_string().to_ascii_uppercase();
            text.contains(" USING") || text.contains("NATURAL")
        });
        let factors =
            std::iter::once(&table.relation).chain(table.joins.iter().map(|j| &j.relation));
        for factor in factors {
            let name = match factor {
                TableFactor::Table { name, alias: None, .. } => object_name_parts(name).pop(),
                TableFactor::Table { alias, .. }
                | TableFactor::Derived { alias, .. }
                | TableFactor::Function { alias, .. }
                | TableFactor::UNNEST { alias, .. } => alias.as_ref().map(|a| ident_name(&a.name)),
                _ => None,
            };
            match name.filter(|_| !merged) {
                Some(name) => out.push(name),
                None => {
                    return Err(SqlError::unsupported(format!("{what} over these joins"))
                        .with_hint("Name the columns."));
                }
            }
        }
    }
    Ok(out)
}
