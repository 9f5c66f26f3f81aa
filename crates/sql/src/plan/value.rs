//! Subqueries as values: steps that give one value for each row of the steps before.
//!
//! ```text
//!   SELECT name, (SELECT count(*) FROM orders o WHERE o.id = c.id) FROM customers c WHERE id = 7
//!     step 1   point read on customers      key id = 7
//!     step 2   span read on orders          key id = c.id, value: count(*)
//!   joined row   customers' columns | orders' columns, NULL | the value
//! ```
//! In the query around it a column of that place stands for the subquery. What it may contain is
//! what EXISTS may: one table whose key its conditions bound with columns of the tables around it.
//! It selects an aggregate, or an expression over at most one row.

use std::ops::ControlFlow;
use std::sync::Arc;

use braid_scalar::{Bound, EvalContext, ParamTypes, Scope, object_name_parts};
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, SelectItem,
};

use super::aggregate::{Aggregate, State};
use super::build::From;
use super::groups::has_groups;
use super::semi;
use crate::session::Context;

/// The table of whose columns those are that stand for subqueries: nobody writes such a letter.
const TABLE: &str = "\u{1}values";

/// What is computed from the rows of a step.
pub(super) enum Value {
    Aggregate(Aggregate),
    /// Of the only row; NULL if there is none.
    Row(Bound),
}

/// A value that is being computed.
pub(super) enum Computing {
    Aggregate(State),
    Row(Option<Datum>),
}

impl Value {
    pub(super) fn start(&self, ctx: &Context) -> Computing {
        match self {
            Value::Aggregate(aggregate) => {
                Computing::Aggregate(aggregate.start_in(Some(&ctx.memory)))
            }
            Value::Row(_) => Computing::Row(None),
        }
    }

    /// Takes in a joined row.
    ///
    /// # Errors
    /// 21000 for a second row where there can be one; of computing.
    pub(super) fn add(
        &self,
        computing: &mut Computing,
        row: &[Datum],
        eval: &EvalContext,
    ) -> SqlResult<()> {
        match (self, computing) {
            (Value::Aggregate(aggregate), Computing::Aggregate(state)) => {
                aggregate.add(state, row, eval)
            }
            (Value::Row(expr), Computing::Row(known @ None)) => {
                *known = Some(expr.eval(row, eval)?);
                Ok(())
            }
            _ => Err(SqlError::new(
                SqlState::CARDINALITY_VIOLATION,
                "more than one row returned by a subquery used as an expression",
            )),
        }
    }

    /// The value, once all rows were taken in.
    ///
    /// # Errors
    /// Of the aggregate.
    pub(super) fn finish(&self, computing: Computing, eval: &EvalContext) -> SqlResult<Datum> {
        match (self, computing) {
            (Value::Aggregate(aggregate), Computing::Aggregate(state)) => {
                aggregate.finish(&state, eval)
            }
            (_, Computing::Row(value)) => Ok(value.unwrap_or(Datum::Null)),
            (Value::Row(_), Computing::Aggregate(_)) => Err(SqlError::internal("another value")),
        }
    }

    /// Expressions over the joined row.
    pub(super) fn exprs(&self) -> &[Bound] {
        match self {
            Value::Aggregate(aggregate) => &aggregate.args,
            Value::Row(expr) => std::slice::from_ref(expr),
        }
    }

    pub(super) fn describe(&self, names: &dyn Fn(usize) -> String) -> String {
        match self {
            Value::Aggregate(aggregate) => aggregate.describe(names),
            Value::Row(expr) => expr.to_sql(names),
        }
    }
}

/// A query with columns in the place of its subqueries, and those; `None` if there are none.
pub(super) fn taken_out(select: &ast::Select) -> Option<(ast::Select, Vec<ast::Query>)> {
    let is_subquery = |e: &Expr| match e {
        Expr::Subquery(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    if has_groups(select) || ast::visit_expressions(select, is_subquery).is_continue() {
        return None;
    }
    let mut out = select.clone();
    let mut found = Vec::new();
    for item in &mut out.projection {
        let SelectItem::UnnamedExpr(expr) = item else {
            if let SelectItem::ExprWithAlias { expr, .. } = item {
                take(expr, &mut found);
            }
            continue;
        };
        let before = found.len();
        let name = braid_scalar::output_name(expr);
        take(expr, &mut found);
        if found.len() > before {
            let (expr, alias) = (expr.clone(), Ident::with_quote('"', name));
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
    if let Some(condition) = &mut out.selection {
        take(condition, &mut found);
    }
    (!found.is_empty()).then_some((out, found))
}

/// Takes subqueries out of an expression, as far as their values are wanted whatever else it says.
fn take(expr: &mut Expr, found: &mut Vec<ast::Query>) {
    match expr {
        Expr::Subquery(_) => {
            let column = vec![Ident::with_quote('"', TABLE), Ident::new(found.len().to_string())];
            let taken = std::mem::replace(expr, Expr::CompoundIdentifier(column));
            if let Expr::Subquery(query) = taken {
                found.push(*query);
            }
        }
        Expr::Nested(inner)
        | Expr::Cast { expr: inner, .. }
        | Expr::UnaryOp { expr: inner, .. }
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner) => take(inner, found),
        Expr::BinaryOp { op: BinaryOperator::Or, .. } => {}
        Expr::BinaryOp { left, right, .. } => {
            take(left, found);
            take(right, found);
        }
        Expr::Function(call) => {
            let FunctionArguments::List(list) = &mut call.args else { return };
            if object_name_parts(&call.name) == ["coalesce"]
                && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))) =
                    list.args.first_mut()
            {
                take(inner, found);
            }
        }
        _ => {}
    }
}

/// Binds subqueries as more tables, and adds the columns that stand for their values to the scope;
/// `false` if one is not as simple as that.
///
/// # Errors
/// What is wrong with a subquery.
pub(super) fn bind(
    ctx: &Context,
    queries: &[ast::Query],
    tables: &mut Vec<From>,
    scope: &mut Scope,
    params: &mut ParamTypes,
) -> SqlResult<bool> {
    let around = scope.clone();
    let mut width = tables.last().map_or(0, From::end);
    for (n, query) in queries.iter().enumerate() {
        let Some((mut inner, inside, select)) =
            semi::subquery(ctx, query, (&around, width), params)?
        else {
            return Ok(false);
        };
        let expr = match select.projection.as_slice() {
            [SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. }] => e,
            _ => return Ok(false),
        };
        let (value, ty) = match Aggregate::bind_any(expr, &inside, params)? {
            Some(aggregate) => {
                let ty = aggregate.ty.clone();
                (Value::Aggregate(aggregate), ty)
            }
            None => {
                let expr = braid_scalar::bind(expr, &inside, params)?;
                let ty = expr.ty().clone();
                (Value::Row(expr), ty)
            }
        };
        // An aggregate over nothing but outer columns belongs to the query around.
        let own = |e: &Bound| e.columns().is_empty() || e.columns().iter().any(|at| *at >= width);
        if matches!(value, Value::Aggregate(_)) && !value.exprs().iter().all(own)
            || ty == SqlType::Record
        {
            return Ok(false);
        }
        inner.value = Some(Arc::new(value));
        width = inner.end();
        tables.push(inner);
        // Its table's columns, and those of tables before it, cannot be named.
        scope.pad(width - 1);
        let value = scope.push_table(TABLE, None, [(n.to_string(), ty, true)]);
        scope.columns_mut()[value].hidden = true;
    }
    Ok(true)
}
