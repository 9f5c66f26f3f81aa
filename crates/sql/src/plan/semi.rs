//! EXISTS, NOT EXISTS and IN as conditions: steps that only ask whether there is a row.
//!
//! ```text
//!   FROM orders o WHERE o.id = 7 AND EXISTS (SELECT 1 FROM lines l WHERE l.id = o.id AND l.n > 3)
//!     step 1   span read on orders          key id = 7
//!     step 2   lines, is there one?         key id = o.id, filter n > 3
//! ```
//! The inner query has one table, whose key its conditions bound, by values or by columns of the
//! tables around it. Everything else (NOT IN with its NULLs, aggregates, LIMIT, several tables) is
//! for general plans, and so are many outer rows: these are compared with all inner ones at once.

use braid_scalar::{Bound, CmpOp, ParamTypes, Scope, compare_bound};
use braid_types::SqlResult;
use sqlparser::ast::{self, BinaryOperator, Expr, SelectItem, TableFactor, UnaryOperator};

use super::build::{From, add_table, simple_select};
use super::groups::has_groups;
use crate::dml::returning;
use crate::session::Context;

/// What a step asks of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Semi {
    /// Rows stay for which there is one.
    Exists,
    /// Rows stay for which there is none.
    Absent,
}

/// A condition that is a subquery.
pub(super) struct Condition<'a> {
    semi: Semi,
    query: &'a ast::Query,
    /// What IN looks for.
    needle: Option<&'a Expr>,
}

/// Divides a condition into its conjuncts that are such subqueries, and the others.
pub(super) fn divided(condition: &Expr) -> (Vec<Condition<'_>>, Vec<&Expr>) {
    let (mut semi, mut plain) = (Vec::new(), Vec::new());
    let mut waiting = vec![condition];
    while let Some(expr) = waiting.pop() {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                waiting.push(right);
                waiting.push(left);
            }
            Expr::Nested(inner) => match form(inner) {
                Some(found) => semi.push(found),
                None if is_conjunction(inner) => waiting.push(inner),
                None => plain.push(expr),
            },
            other => match form(other) {
                Some(found) => semi.push(found),
                None => plain.push(other),
            },
        }
    }
    (semi, plain)
}

fn is_conjunction(mut expr: &Expr) -> bool {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    matches!(expr, Expr::BinaryOp { op: BinaryOperator::And, .. })
}

fn form(expr: &Expr) -> Option<Condition<'_>> {
    match expr {
        Expr::Exists { subquery, negated } => {
            let semi = if *negated { Semi::Absent } else { Semi::Exists };
            Some(Condition { semi, query: subquery, needle: None })
        }
        Expr::InSubquery { expr, subquery, negated: false } => {
            Some(Condition { semi: Semi::Exists, query: subquery, needle: Some(expr) })
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            let mut inner = &**expr;
            while let Expr::Nested(deeper) = inner {
                inner = deeper;
            }
            let found = form(inner).filter(|found| found.needle.is_none())?;
            let semi = if found.semi == Semi::Exists { Semi::Absent } else { Semi::Exists };
            Some(Condition { semi, ..found })
        }
        _ => None,
    }
}

impl Condition<'_> {
    /// Binds it as one more table; `None` if it is not as simple as that. `scope` has the columns
    /// of the tables around it, and the joined row is `width` columns wide so far.
    ///
    /// # Errors
    /// What is wrong with the subquery.
    pub(super) fn bind(
        &self,
        ctx: &Context,
        scope: &Scope,
        width: usize,
        params: &mut ParamTypes,
    ) -> SqlResult<Option<From>> {
        let found = subquery(ctx, self.query, (scope, width), params)?;
        let Some((mut inner, inside, select)) = found else { return Ok(None) };
        match self.needle {
            // What is selected must be right, and is not looked at.
            None => drop(returning(&select.projection, &inside, &|_| None, params)?),
            Some(needle) => {
                let value = match select.projection.as_slice() {
                    [SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. }] => e,
                    _ => return Ok(None),
                };
                let needle = braid_scalar::bind_unsettled(needle, scope, params)?;
                let value = braid_scalar::bind(value, &inside, params)?;
                if needle.ty().is_row() {
                    return Ok(None);
                }
                inner.on.push(equal(needle, value, params)?);
            }
        }
        inner.semi = Some(self.semi);
        Ok(Some(inner))
    }
}

/// The only table of a subquery with its conditions, what is bound over it, and the subquery;
/// `None` if it is not as simple as that. Around it are columns, and the joined row is that wide.
///
/// # Errors
/// What is wrong with its conditions.
fn subquery<'q>(
    ctx: &Context,
    query: &'q ast::Query,
    (scope, width): (&Scope, usize),
    params: &mut ParamTypes,
) -> SqlResult<Option<(From, Scope, &'q ast::Select)>> {
    let Some(select) = simple_select(query).filter(|s| !has_groups(s)) else { return Ok(None) };
    if query.order_by.is_some() || query.limit_clause.is_some() || !query.locks.is_empty() {
        return Ok(None);
    }
    let found = table_of(ctx, select, (scope, width), params)?;
    Ok(found.map(|(inner, inside)| (inner, inside, select)))
}

/// The only table of a SELECT within another query, with its conditions; see [`subquery`].
pub(super) fn table_of(
    ctx: &Context,
    select: &ast::Select,
    (scope, width): (&Scope, usize),
    params: &mut ParamTypes,
) -> SqlResult<Option<(From, Scope)>> {
    let [table] = select.from.as_slice() else { return Ok(None) };
    if !table.joins.is_empty() {
        return Ok(None);
    }
    let found = inner_table(ctx, &table.relation, (scope, width), params)?;
    let Some((mut inner, inside)) = found else { return Ok(None) };
    if let Some(condition) = &select.selection {
        inner.on = braid_scalar::bind_bool(condition, "WHERE", &inside, params)?.conjuncts();
    }
    Ok(Some((inner, inside)))
}

fn equal(needle: Bound, value: Bound, params: &mut ParamTypes) -> SqlResult<Bound> {
    compare_bound(CmpOp::Eq, value, needle, params)
}

/// The table of the subquery, and what its expressions are bound over: its own columns first, then
/// those around it, as far as none of its own has their name.
fn inner_table(
    ctx: &Context,
    relation: &TableFactor,
    (scope, width): (&Scope, usize),
    params: &mut ParamTypes,
) -> SqlResult<Option<(From, Scope)>> {
    let mut inside = scope.clone();
    // Tables of other subqueries.
    inside.pad(width);
    let mut tables = Vec::new();
    if !add_table(ctx, relation, false, (&mut tables, &mut inside), params)? {
        return Ok(None);
    }
    let Some(inner) = tables.pop() else { return Ok(None) };
    let own: Vec<String> = inner.layout.table.columns.iter().map(|c| c.name.clone()).collect();
    for column in &mut inside.columns_mut()[..width] {
        column.hidden |= own.contains(&column.name);
        if column.table.as_ref() == Some(&inner.alias) {
            (column.table, column.hidden) = (None, true);
        }
    }
    Ok(Some((inner, inside)))
}
