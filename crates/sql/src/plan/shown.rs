//! What is shown of groups: expressions over their keys and aggregates.
//!
//! ```text
//!   SELECT status || '!', sum(total) / count(*) .. GROUP BY status HAVING count(*) > 1
//!
//!   keys 0 status    aggregates 1 sum(total), 2 count(*)
//!   shown #0 || '!', #1 / #2    having #2 > 1         over the keys, and behind them aggregates
//! ```
//! Aggregates are computed once where they are written twice. What names a column that is no key is
//! wrong, or a form that general plans know: they say which.

use braid_rows::Row;
use braid_scalar::{
    Bound, EvalContext, ParamTypes, Scope, ScopeColumn, bind_bool, ident_name, is_aggregate,
    needs_general_query, object_name_parts, order_form,
};
use braid_types::{Datum, SqlResult};
use sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Ident,
    SelectItem,
};

use super::aggregate::Aggregate;
use super::groups::Over;
use super::select::SortKey;
use crate::dml::returning;
use crate::general_query::ColumnInfo;

/// The table of whose columns those are that stand for other expressions: nobody writes such a
/// letter.
pub(super) const STAND_INS: &str = "\u{1}values";

/// A column that stands for another expression.
pub(super) fn stand_in(name: String) -> Expr {
    let parts = [STAND_INS.to_string(), name].map(|part| Ident::with_quote('"', part));
    Expr::CompoundIdentifier(parts.to_vec())
}

/// See the [module documentation](self).
pub(super) struct Shown {
    exprs: Vec<Bound>,
    /// Groups for which it does not hold are not shown.
    having: Option<Bound>,
}

impl Shown {
    /// The row of a group, if it is shown.
    ///
    /// # Errors
    /// Of computing.
    pub(super) fn row(&self, group: &[Datum], eval: &EvalContext) -> SqlResult<Option<Row>> {
        if let Some(having) = &self.having
            && !having.eval_bool(group, eval)?
        {
            return Ok(None);
        }
        let row = self.exprs.iter().map(|e| e.eval(group, eval));
        Ok(Some(row.collect::<SqlResult<Row>>()?))
    }

    /// What it computes of a group.
    pub(super) fn exprs(&self) -> impl Iterator<Item = &Bound> {
        self.exprs.iter().chain(&self.having)
    }

    /// HAVING, for EXPLAIN.
    pub(super) fn describe_having(&self, names: &dyn Fn(usize) -> String) -> String {
        let having = self.having.as_ref().map(|having| having.to_sql(names));
        having.map_or_else(String::new, |having| format!("; having: {having}"))
    }
}

/// A select list and HAVING that are being bound.
pub(super) struct Showing<'a> {
    over: &'a Over<'a>,
    /// Expressions of GROUP BY as they are written.
    keys: &'a [Expr],
    /// What stands for the keys and the aggregates so far.
    scope: Scope,
    /// Aggregates as they are written.
    calls: Vec<Expr>,
    aggregates: Vec<Aggregate>,
    exprs: Vec<Bound>,
    columns: Vec<ColumnInfo>,
    having: Option<Bound>,
}

impl<'a> Showing<'a> {
    /// Nothing shown yet of groups with these keys, as they are written and as they are bound.
    pub(super) fn new(over: &'a Over<'a>, keys: &'a [Expr], bound: &[Bound]) -> Showing<'a> {
        let mut out = Showing {
            over,
            keys,
            scope: Scope::empty(),
            calls: Vec::new(),
            aggregates: Vec::new(),
            exprs: Vec::new(),
            columns: Vec::new(),
            having: None,
        };
        for (n, key) in bound.iter().enumerate() {
            out.scope.push(ScopeColumn {
                table: Some(STAND_INS.to_string()),
                collation: key.collation().of_column(),
                ..ScopeColumn::new(format!("key {n}"), key.ty().clone())
            });
        }
        out
    }

    /// Adds a key as it is.
    pub(super) fn show_key(&mut self, at: usize, key: Bound, column: ColumnInfo) {
        let shown = Bound::column(at, key.ty().clone()).with_collation(key.collation().clone());
        self.exprs.push(shown);
        self.columns.push(column);
    }

    /// Adds a select item; `false` if it is not as simple as that.
    ///
    /// # Errors
    /// What is wrong with an aggregate.
    pub(super) fn show(&mut self, item: &SelectItem, params: &mut ParamTypes) -> SqlResult<bool> {
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(e) => (e, braid_scalar::output_name(e)),
            SelectItem::ExprWithAlias { expr: e, alias } => (e, ident_name(alias)),
            _ => return Ok(false),
        };
        let Some(expr) = self.over_groups(expr, params)? else { return Ok(false) };
        let item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
        let items = std::slice::from_ref(&item);
        let Ok(bound) = returning(items, &self.scope, &|_| None, params) else { return Ok(false) };
        self.exprs.extend(bound.exprs);
        self.columns.extend(bound.columns);
        Ok(true)
    }

    /// Adds HAVING; `false` if it is not as simple as that.
    ///
    /// # Errors
    /// What is wrong with an aggregate.
    pub(super) fn having(&mut self, having: &Expr, params: &mut ParamTypes) -> SqlResult<bool> {
        let Some(expr) = self.over_groups(having, params)? else { return Ok(false) };
        self.having = bind_bool(&expr, "HAVING", &self.scope, params).ok();
        Ok(self.having.is_some())
    }

    /// An expression with columns in the place of its aggregates and of keys.
    fn over_groups(&mut self, expr: &Expr, params: &mut ParamTypes) -> SqlResult<Option<Expr>> {
        let (mut expr, mut all) = (expr.clone(), Ok(true));
        take_aggregates(&mut expr, &mut |call| match self.place_of(&call, params) {
            Ok(Some(at)) => stand_in(format!("aggregate {at}")),
            other => {
                all = other.map(|_| false);
                call
            }
        });
        take_keys(&mut expr, self.keys);
        Ok(all?.then_some(expr))
    }

    /// Which of the aggregates a call is; one that may differ each time is another each time.
    fn place_of(&mut self, call: &Expr, params: &mut ParamTypes) -> SqlResult<Option<usize>> {
        let known = self.calls.iter().position(|known| known == call);
        if let Some(at) = known.filter(|at| !self.aggregates[*at].is_volatile()) {
            return Ok(Some(at));
        }
        let Some(aggregate) = bind_ordered(call, self.over.scope, params)? else { return Ok(None) };
        let at = self.aggregates.len();
        let name = format!("aggregate {at}");
        self.scope.push_table(STAND_INS, None, [(name, aggregate.ty.clone(), true)]);
        self.calls.push(call.clone());
        self.aggregates.push(aggregate);
        Ok(Some(at))
    }

    /// The aggregates, what is shown, and its columns.
    pub(super) fn done(self) -> (Vec<Aggregate>, Shown, Vec<ColumnInfo>) {
        (self.aggregates, Shown { exprs: self.exprs, having: self.having }, self.columns)
    }
}

/// Binds an aggregate call that may have an ORDER BY.
fn bind_ordered(
    call: &Expr,
    scope: &Scope,
    params: &mut ParamTypes,
) -> SqlResult<Option<Aggregate>> {
    let mut call = call.clone();
    let Some(by) = order_within(&mut call) else { return Aggregate::bind(&call, scope, params) };
    let Some(found) = Aggregate::bind(&call, scope, params)? else { return Ok(None) };
    let mut order = Vec::new();
    for key in by {
        let expr = match braid_scalar::bind(&key.expr, scope, params) {
            Ok(expr) => order_form(expr)?,
            Err(e) if needs_general_query(&e) => return Ok(None),
            Err(e) => return Err(e),
        };
        // Numbers are no places here, and mean nothing.
        if !expr.ty().is_comparable() || !expr.collation().is_by_bytes() {
            return Ok(None);
        }
        order.push(SortKey::by(expr, &key.options));
    }
    Ok(found.ordered(order))
}

/// Takes ORDER BY out of an aggregate.
pub(super) fn order_within(call: &mut Expr) -> Option<Vec<ast::OrderByExpr>> {
    let Expr::Function(call) = call else { return None };
    let FunctionArguments::List(list) = &mut call.args else { return None };
    match list.clauses.as_slice() {
        [FunctionArgumentClause::OrderBy(by)] => {
            let by = by.clone();
            list.clauses.clear();
            Some(by)
        }
        _ => None,
    }
}

/// Puts something in the place of each aggregate of an expression.
pub(super) fn take_aggregates(expr: &mut Expr, taken: &mut dyn FnMut(Expr) -> Expr) {
    if let Expr::Function(call) = expr
        && is_aggregate(&object_name_parts(&call.name).pop().unwrap_or_default())
    {
        let call = std::mem::replace(expr, Expr::Tuple(Vec::new()));
        *expr = taken(call);
        return;
    }
    parts(expr).into_iter().for_each(|part| take_aggregates(part, taken));
}

/// Puts columns in the place of what is a key.
fn take_keys(expr: &mut Expr, keys: &[Expr]) {
    if let Some(at) = keys.iter().position(|key| key == expr) {
        *expr = stand_in(format!("key {at}"));
        return;
    }
    parts(expr).into_iter().for_each(|part| take_keys(part, keys));
}

/// The arguments of a call that are expressions.
pub(super) fn arguments(call: &mut ast::Function) -> impl Iterator<Item = &mut Expr> {
    let list = match &mut call.args {
        FunctionArguments::List(list) => list.args.as_mut_slice(),
        _ => &mut [],
    };
    list.iter_mut().filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => Some(e),
        _ => None,
    })
}

/// The expressions that an expression is made of, as far as it is of the same query.
fn parts(expr: &mut Expr) -> Vec<&mut Expr> {
    match expr {
        Expr::Nested(inner)
        | Expr::Cast { expr: inner, .. }
        | Expr::UnaryOp { expr: inner, .. }
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsTrue(inner)
        | Expr::IsFalse(inner) => vec![inner],
        Expr::BinaryOp { left, right, .. } => vec![left, right],
        Expr::Between { expr, low, high, .. } => vec![expr, low, high],
        Expr::InList { expr, list, .. } => {
            let mut all = vec![&mut **expr];
            all.extend(list);
            all
        }
        Expr::Case { operand, conditions, else_result, .. } => {
            let mut all: Vec<&mut Expr> = Vec::new();
            all.extend(operand.as_deref_mut());
            for case in conditions {
                all.extend([&mut case.condition, &mut case.result]);
            }
            all.extend(else_result.as_deref_mut());
            all
        }
        Expr::Function(call) if call.over.is_none() => arguments(call).collect(),
        _ => Vec::new(),
    }
}
