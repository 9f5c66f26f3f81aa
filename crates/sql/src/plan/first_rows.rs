//! The first rows of a table for each row before it: LATERAL with ORDER BY and LIMIT.
//!
//! ```text
//!   FROM customers c LEFT JOIN LATERAL
//!        (SELECT o.id, o.total FROM orders o WHERE o.customer = c.id
//!         ORDER BY o.placed DESC LIMIT 3) x ON true
//!     step 1   rows of customers
//!     step 2   for each, an index on (customer, placed) backwards, three rows
//! ```
//! Where no key gives the order, all rows that the conditions name are sorted. The query in FROM
//! has one table, whose key its conditions bound, and selects columns in their order; everything
//! else is for general plans.

use std::collections::VecDeque;
use std::sync::Arc;

use braid_catalog::memory_error;
use braid_rows::{Row, row_memory};
use braid_scalar::{
    Bound, ParamTypes, Scope, ScopeColumn, ident_name, object_name_parts, order_form,
};
use braid_types::{SqlResult, SqlState};
use bytes::Bytes;
use sqlparser::ast::{
    self, Expr, OrderByKind, SelectItem, SelectItemQualifiedWildcardKind, TableFactor,
};

use super::build::{From, limits_over, simple_select};
use super::groups::has_groups;
use super::joined::passes;
use super::rows::RowSource;
use super::select::{SortKey, Step, count_for};
use super::semi;
use super::sorting::compare;
use super::sorting::sorted;
use crate::session::Context;

/// Which rows of a step are wanted for each row before it.
pub(super) struct FirstRows {
    /// Over the joined row.
    pub(super) order: Vec<SortKey>,
    /// LIMIT and OFFSET, over the row before.
    page: (Option<Bound>, Option<Bound>),
}

impl FirstRows {
    /// All that it computes.
    pub(super) fn exprs(&self) -> impl Iterator<Item = &Bound> {
        let order = self.order.iter().map(|key| &key.expr);
        order.chain(&self.page.0).chain(&self.page.1)
    }

    /// Whether not all rows are wanted.
    pub(super) fn is_limited(&self) -> bool {
        self.page.0.is_some()
    }

    /// What it wants, for EXPLAIN.
    pub(super) fn describe(&self, names: &dyn Fn(usize) -> String) -> String {
        let mut text = format!("first rows{}", SortKey::describe(&self.order, " by ", names));
        for (what, number) in [("limit", &self.page.0), ("offset", &self.page.1)] {
            if let Some(number) = number {
                text.push_str(&format!(", {what} {}", number.to_sql(names)));
            }
        }
        text
    }

    /// The rows that a step gives for one row of the steps before, joined with it.
    ///
    /// # Errors
    /// Of reading and computing; 2201W and 2201X for a LIMIT and an OFFSET below 0; 53200 when
    /// rows that are sorted do not fit.
    pub(super) fn find(
        &self,
        ctx: &Context,
        step: &Step,
        (rows, outer): (RowSource, &Row),
    ) -> SqlResult<VecDeque<(Bytes, Row)>> {
        let limit = count_for(&self.page.0, "LIMIT", outer, ctx)?.unwrap_or(u64::MAX);
        let offset = count_for(&self.page.1, "OFFSET", outer, ctx)?.unwrap_or(0);
        let [most, skip] = [limit, offset].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let wanted = most.saturating_add(skip);
        let in_order = self.order.is_empty() || step.in_order.is_some();
        let mut rows = match in_order {
            true => rows.expecting(wanted),
            false => rows,
        };
        let mut held = ctx.memory.hold("first rows");
        let mut found: Vec<(Row, (Bytes, Row))> = Vec::new();
        while most > 0 && !(in_order && found.len() >= wanted) {
            let Some((key, own)) = rows.next_row(ctx)? else { break };
            ctx.check_cancel()?;
            let row = super::family::joined(outer, own);
            if !passes(&step.access.rest, &row, ctx)? {
                continue;
            }
            let by = self.order.iter().map(|key| key.expr.eval(&row, &ctx.eval));
            let by = if in_order { Row::new() } else { by.collect::<SqlResult<Row>>()? };
            held.grow(row_memory(&by) + row_memory(&row)).map_err(|e| memory_error(&e))?;
            found.push((by, (key, row)));
        }
        if !in_order {
            let by_keys = |a: &(Row, _), b: &(Row, _)| compare(&self.order, a.0.as_slice(), &b.0);
            found = sorted(found, by_keys, || ctx.check_cancel())?;
        }
        Ok(found.into_iter().skip(skip).take(most).map(|(_, row)| row).collect())
    }
}

/// Adds a query in FROM as the first rows of its table; `false` if it is none of those.
///
/// # Errors
/// XX000. What is wrong with it is for general plans to tell, which know more forms.
pub(super) fn add_query(
    ctx: &Context,
    factor: &TableFactor,
    left: bool,
    (tables, scope): (&mut Vec<From>, &mut Scope),
    params: &mut ParamTypes,
) -> SqlResult<bool> {
    let TableFactor::Derived { lateral: true, subquery, alias: Some(alias), sample: None } = factor
    else {
        return Ok(false);
    };
    let name = ident_name(&alias.name);
    if tables.is_empty() || !alias.columns.is_empty() || scope.has_table(&name) {
        return Ok(false);
    }
    let mut tried = params.clone();
    let found = match bind(ctx, subquery, scope, &mut tried) {
        Err(e) if e.state() == SqlState::INTERNAL_ERROR => return Err(e),
        found => found.unwrap_or_default(),
    };
    let Some((mut inner, shown)) = found else { return Ok(false) };
    *params = tried;
    let offset = inner.offset;
    for (at, column) in inner.layout.table.columns.iter().enumerate() {
        let output = shown.iter().find(|(shown, _)| *shown == at);
        scope.push(ScopeColumn {
            table: output.map(|_| name.clone()),
            nullable: column.nullable || left,
            hidden: output.is_none(),
            collation: column.collated(),
            ..ScopeColumn::new(output.map_or("", |(_, name)| name), column.ty.clone())
        });
    }
    debug_assert_eq!(scope.len(), offset + inner.layout.table.columns.len());
    (inner.alias, inner.left) = (name, left);
    tables.push(inner);
    Ok(true)
}

/// By ordinal of the table, which columns a query shows, and under which names.
type Shown = Vec<(usize, String)>;

fn bind(
    ctx: &Context,
    query: &ast::Query,
    around: &Scope,
    params: &mut ParamTypes,
) -> SqlResult<Option<(From, Shown)>> {
    let Some(select) = simple_select(query).filter(|s| !has_groups(s)) else { return Ok(None) };
    if !query.locks.is_empty() {
        return Ok(None);
    }
    let found = semi::table_of(ctx, select, (around, around.len()), params)?;
    let Some((mut inner, inside)) = found else { return Ok(None) };
    let Some(shown) = columns(select, &inner, &inside)? else { return Ok(None) };
    let mut order = Vec::new();
    if let Some(by) = &query.order_by {
        let OrderByKind::Expressions(list) = &by.kind else { return Ok(None) };
        for key in list {
            let expr = sort_expr(&key.expr, &shown, (&inner, &inside), params)?;
            expr.ty().check_comparable("ordering")?;
            order.push(SortKey::by(order_form(expr)?, &key.options));
        }
    }
    let Some(page) = limits_within(query, around, params)? else { return Ok(None) };
    inner.first = Some(Arc::new(FirstRows { order, page }));
    Ok(Some((inner, shown)))
}

/// LIMIT and OFFSET of a subquery; `None` where they name what is not there for them: what is
/// wrong with that depends on more than is known here.
pub(super) fn limits_within(
    q: &ast::Query,
    around: &Scope,
    params: &mut ParamTypes,
) -> SqlResult<Option<(Option<Bound>, Option<Bound>)>> {
    match limits_over(q, around, params) {
        Err(e) if e.state() == SqlState::UNDEFINED_COLUMN => Ok(None),
        page => page.map(Some),
    }
}

/// What ORDER BY names: a number or a name of what is shown, or an expression over the tables.
fn sort_expr(
    expr: &Expr,
    shown: &Shown,
    (inner, inside): (&From, &Scope),
    params: &mut ParamTypes,
) -> SqlResult<Bound> {
    let numbered = braid_scalar::column_by_number(expr, shown.len(), "ORDER BY")?;
    let named = || match expr {
        Expr::Identifier(name) => shown.iter().position(|(_, shown)| *shown == ident_name(name)),
        _ => None,
    };
    match numbered.or_else(named) {
        Some(at) => {
            let column = &inner.layout.table.columns[shown[at].0];
            let bound = Bound::column(inner.offset + shown[at].0, column.ty.clone());
            Ok(bound.with_collation(column.collated()))
        }
        None => braid_scalar::bind(expr, inside, params),
    }
}

/// The columns of its table that a query shows; `None` if it shows something else, or in another
/// order.
fn columns(select: &ast::Select, inner: &From, inside: &Scope) -> SqlResult<Option<Shown>> {
    let table = &inner.layout.table.columns;
    let all =
        || (0..table.len()).filter(|at| !table[*at].hidden).map(|at| (at, table[at].name.clone()));
    let mut shown = Shown::new();
    for item in &select.projection {
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(e) => (e, braid_scalar::output_name(e)),
            SelectItem::ExprWithAlias { expr, alias } => (expr, ident_name(alias)),
            SelectItem::Wildcard(options)
                if *options == ast::WildcardAdditionalOptions::default() =>
            {
                shown.extend(all());
                continue;
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _)
                if object_name_parts(name) == [inner.alias.as_str()] =>
            {
                shown.extend(all());
                continue;
            }
            _ => return Ok(None),
        };
        let parts = match expr {
            Expr::Identifier(name) => vec![ident_name(name)],
            Expr::CompoundIdentifier(names) => names.iter().map(ident_name).collect(),
            _ => return Ok(None),
        };
        let Some(at) = inside.find(&parts)?.and_then(|at| at.checked_sub(inner.offset)) else {
            return Ok(None);
        };
        shown.push((at, name));
    }
    let ascend = shown.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let apart = |n: usize| shown[..n].iter().all(|(_, name)| *name != shown[n].1);
    Ok((ascend && (0..shown.len()).all(apart)).then_some(shown))
}
