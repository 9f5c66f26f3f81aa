//! Groups by what set-returning functions give.
//!
//! ```text
//!   SELECT unnest(tags) AS tag, count(*) FROM t GROUP BY tag
//!   SELECT "set".value AS tag, count(*) FROM t CROSS JOIN LATERAL unnest(tags) AS "set"(value)
//!   GROUP BY "set".value
//! ```
//! A function in the select list runs behind grouping, for each group; one that rows are grouped by
//! has to run before, for each row: as if it stood in FROM.

use std::ops::ControlFlow;

use crate::system;
use braid_scalar::{is_set_returning, object_name_parts, output_name};
use braid_types::{SqlError, SqlResult};
use braid_walk::{Walk, WalkMut};
use sqlparser::ast::{self, Expr, SelectItem, Visitor, VisitorMut};

/// A select list and its ORDER BY, with functions that rows are grouped by in FROM.
pub(super) struct Rewritten {
    pub(super) select: ast::Select,
    pub(super) order: Vec<ast::OrderByExpr>,
}

/// See the [module documentation](self); `None` if nobody groups by a set.
///
/// `keys` are what the keys of GROUP BY mean.
///
/// # Errors
/// 0A000 for groups by several sets.
pub(super) fn rewritten(
    select: &ast::Select,
    order: &[ast::OrderByExpr],
    keys: &Vec<Expr>,
) -> SqlResult<Option<Rewritten>> {
    let mut sets = sets_in(keys);
    sets.dedup();
    let [set] = sets.as_slice() else {
        return match sets.len() {
            0 => Ok(None),
            _ => Err(SqlError::unsupported("GROUP BY of several set-returning functions")
                .with_hint("Call them in FROM, and group by their columns.")),
        };
    };
    let text =
        format!("SELECT FROM t CROSS JOIN LATERAL {set} AS \"set\"(value) GROUP BY \"set\".value");
    let parsed = system::parse_query(&text)?;
    let ast::SetExpr::Select(model) = *parsed.body else { return Ok(None) };
    let (mut from, groups) = (model.from, model.group_by);
    let ast::GroupByExpr::Expressions(mut groups, _) = groups else { return Ok(None) };
    let (Some(joined), Some(value)) = (from.pop(), groups.pop()) else { return Ok(None) };
    let mut out = Rewritten { select: select.clone(), order: order.to_vec() };
    for item in &mut out.select.projection {
        if let SelectItem::UnnamedExpr(expr) = item {
            let alias = ast::Ident::with_quote('"', output_name(expr));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
    let put = &mut Put { set, value: &value };
    let _ = out.select.projection.walk_mut(put);
    let _ = out.select.group_by.walk_mut(put);
    let _ = out.select.having.walk_mut(put);
    let _ = out.order.walk_mut(put);
    match out.select.from.last_mut() {
        Some(last) => last.joins.extend(joined.joins),
        None => out.select.from = vec![alone(joined)?],
    }
    Ok(Some(out))
}

/// The function as all of FROM.
fn alone(joined: ast::TableWithJoins) -> SqlResult<ast::TableWithJoins> {
    let join = joined.joins.into_iter().next();
    let join = join.ok_or_else(|| SqlError::internal("a join was lost"))?;
    Ok(ast::TableWithJoins { relation: join.relation, joins: Vec::new() })
}

/// Whether there are set-returning functions that rows could be grouped by.
pub(super) fn are_possible(select: &ast::Select) -> bool {
    !sets_in(&select.projection).is_empty() || !sets_in(&select.group_by).is_empty()
}

/// Whether an expression calls a set-returning function, outside of subqueries.
pub(super) fn gives_sets(e: &Expr) -> bool {
    !sets_in(e).is_empty()
}

/// Calls of set-returning functions outside of subqueries.
fn sets_in(node: &impl Walk) -> Vec<Expr> {
    let mut found = Vec::new();
    let _ = node.walk(&mut Sets { found: &mut found, depth: 0 });
    found
}

/// Collects calls of set-returning functions outside of subqueries.
struct Sets<'a> {
    found: &'a mut Vec<Expr>,
    depth: usize,
}

impl Visitor for Sets<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Function(f) = expr
            && is_set_returning(&object_name_parts(&f.name).pop().unwrap_or_default())
        {
            self.found.push(expr.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Puts the column in the function's place.
struct Put<'a> {
    set: &'a Expr,
    value: &'a Expr,
}

impl VisitorMut for Put<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if expr == self.set {
            *expr = self.value.clone();
        }
        ControlFlow::Continue(())
    }
}
