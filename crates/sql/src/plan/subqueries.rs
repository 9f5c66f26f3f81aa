//! How subqueries become steps that give values ([`super::value`]).
//!
//! ```text
//!   SELECT c.name,
//!          (SELECT json_agg(x) FROM (SELECT o.o, (SELECT json_agg(l.n ORDER BY l.n) FROM lines l
//!                                                 WHERE l.id = o.id AND l.o = o.o) AS lines
//!                                    FROM orders o WHERE o.id = c.id ORDER BY o.o DESC) x),
//!          ARRAY(SELECT n.text FROM notes n WHERE n.id = c.id), last.n
//!   FROM customers c LEFT JOIN LATERAL (SELECT max(n) AS n FROM orders o WHERE o.id = c.id) last
//!        ON true
//!
//!   taken out    1  the value of orders     within it: 2, the value of lines, for each order
//!                3  an array of notes       4  last.n, of orders
//! ```
//! A subquery has one table, whose key its conditions bound with columns of the tables around it,
//! bare or as the only thing in FROM in parentheses. It selects aggregates, an expression over at
//! most one row (the first of an order, with LIMIT), or it is within ARRAY() or EXISTS. Everything
//! else is for general plans.

use std::ops::ControlFlow;
use std::sync::Arc;

use braid_scalar::{
    Bound, FieldNames, Node, ParamTypes, Scope, ScopeColumn, Volatility, ident_name, is_aggregate,
    object_name_parts, order_form,
};
use braid_types::{SqlResult, SqlState, SqlType};
use sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    JoinConstraint, JoinOperator, OrderByKind, SelectItem, TableFactor,
};

use super::aggregate::Aggregate;
use super::build::{From, simple_select};
use super::first_rows::limits_within;
use super::groups::has_groups;
use super::select::SortKey;
use super::semi;
use super::shown::{STAND_INS, arguments, order_within, stand_in, take_aggregates};
use super::value::{Value, What};
use crate::dml::returning;
use crate::session::Context;

/// Its column that stands for a whole row of the subquery's table.
const ROW: &str = "row";

/// A subquery that was taken out of an expression.
pub(super) struct Taken {
    query: ast::Query,
    form: Form,
}

/// How a subquery stands in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `(SELECT ..)`
    Scalar,
    /// `ARRAY(SELECT ..)`
    Array,
    /// `EXISTS (SELECT ..)`, or NOT EXISTS.
    Exists(bool),
}

/// A subquery of FROM that gives one row, of aggregates: its alias, and each with its name.
pub(super) struct Lateral {
    alias: String,
    values: Vec<(String, Taken)>,
}

/// A query with columns in the place of its subqueries, and those; `None` if there are none.
pub(super) fn taken_out(select: &ast::Select) -> Option<(ast::Select, Vec<Lateral>, Vec<Taken>)> {
    let is_subquery = |e: &Expr| match e {
        Expr::Subquery(_) => ControlFlow::Break(()),
        Expr::Function(f) if matches!(f.args, FunctionArguments::Subquery(_)) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    };
    let asks = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => {
            braid_walk::expressions(e, |part| match part {
                Expr::Exists { .. } => ControlFlow::Break(()),
                other => is_subquery(other),
            })
            .is_break()
        }
        _ => false,
    };
    let is_lateral = |t: &TableFactor| matches!(t, TableFactor::Derived { lateral: true, .. });
    let joined = |from: &ast::TableWithJoins| from.joins.iter().any(|j| is_lateral(&j.relation));
    let any = select.from.iter().any(|from| is_lateral(&from.relation) || joined(from))
        || braid_walk::expressions(select, is_subquery).is_break()
        || select.projection.iter().any(asks);
    if has_groups(select) || !any {
        return None;
    }
    let mut out = select.clone();
    let laterals = laterals(&mut out.from);
    let mut found = Vec::new();
    for item in &mut out.projection {
        let SelectItem::UnnamedExpr(expr) = item else {
            if let SelectItem::ExprWithAlias { expr, .. } = item {
                take(expr, &mut found, Place::List);
            }
            continue;
        };
        let before = found.len();
        let name = braid_scalar::output_name(expr);
        take(expr, &mut found, Place::List);
        if found.len() > before {
            let (expr, alias) = (expr.clone(), Ident::with_quote('"', name));
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
    if let Some(condition) = &mut out.selection {
        take(condition, &mut found, Place::Where);
    }
    (!found.is_empty() || !laterals.is_empty()).then_some((out, laterals, found))
}

/// Takes the last tables of FROM out that are LATERAL and nothing but aggregates of one table: they
/// give one row each.
fn laterals(from: &mut Vec<ast::TableWithJoins>) -> Vec<Lateral> {
    let mut out = Vec::new();
    while let Some(last) = from.last_mut() {
        if let Some(join) = last.joins.last() {
            let on = match &join.join_operator {
                JoinOperator::Join(on) | JoinOperator::Inner(on) => on,
                JoinOperator::CrossJoin(on) => on,
                JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => on,
                _ => break,
            };
            let always = match on {
                JoinConstraint::None => true,
                JoinConstraint::On(Expr::Value(v)) => v.value == ast::Value::Boolean(true),
                _ => false,
            };
            let Some(found) = lateral(&join.relation).filter(|_| always) else { break };
            out.push(found);
            last.joins.pop();
            continue;
        }
        let Some(found) = lateral(&last.relation).filter(|_| from.len() > 1) else { break };
        out.push(found);
        from.pop();
    }
    out.reverse();
    out
}

fn lateral(factor: &TableFactor) -> Option<Lateral> {
    let TableFactor::Derived { lateral: true, subquery, alias: Some(alias), sample: None } = factor
    else {
        return None;
    };
    let select = simple_select(subquery).filter(|s| !has_groups(s) && alias.columns.is_empty())?;
    let mut values = Vec::new();
    for item in &select.projection {
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(e) => (e, braid_scalar::output_name(e)),
            SelectItem::ExprWithAlias { expr, alias } => (expr, ident_name(alias)),
            _ => return None,
        };
        let mut any = false;
        take_aggregates(&mut expr.clone(), &mut |call| {
            any = true;
            call
        });
        if !any {
            return None;
        }
        let mut query = (**subquery).clone();
        if let ast::SetExpr::Select(select) = &mut *query.body {
            select.projection = vec![SelectItem::UnnamedExpr(expr.clone())];
        }
        values.push((name, Taken { query, form: Form::Scalar }));
    }
    Some(Lateral { alias: ident_name(&alias.name), values })
}

/// Where an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    List,
    /// EXISTS as a condition is for [`semi`].
    Where,
    /// In a query whose aggregates are computed in the same place.
    Inside,
}

/// Takes subqueries out of an expression, as far as their values are wanted whatever else it says;
/// out of aggregates, too, if these are computed in the same place.
fn take(expr: &mut Expr, found: &mut Vec<Taken>, place: Place) {
    match expr {
        Expr::Subquery(_) => {
            let column = stand_in(found.len().to_string());
            if let Expr::Subquery(query) = std::mem::replace(expr, column) {
                found.push(Taken { query: *query, form: Form::Scalar });
            }
        }
        Expr::Exists { negated, .. } if place != Place::Where => {
            let form = Form::Exists(!*negated);
            let column = stand_in(found.len().to_string());
            if let Expr::Exists { subquery, .. } = std::mem::replace(expr, column) {
                found.push(Taken { query: *subquery, form });
            }
        }
        Expr::Nested(inner)
        | Expr::Cast { expr: inner, .. }
        | Expr::UnaryOp { expr: inner, .. }
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner) => take(inner, found, place),
        Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. }
            if place == Place::Inside => {}
        Expr::BinaryOp { op: BinaryOperator::Or, .. } => {}
        // A row, which has as many columns as the other.
        Expr::BinaryOp { left, right, .. }
            if [&**left, &**right].iter().any(|side| matches!(side, Expr::Tuple(_)))
                && [&**left, &**right].iter().any(|side| matches!(side, Expr::Subquery(_))) => {}
        Expr::BinaryOp { left, right, .. } => {
            take(left, found, place);
            take(right, found, place);
        }
        Expr::Tuple(parts) => parts.iter_mut().for_each(|part| take(part, found, place)),
        // What the first condition does not decide is looked at only then.
        Expr::Case { operand, conditions, .. } => {
            let first = conditions.first_mut().map(|case| &mut case.condition);
            operand.as_deref_mut().into_iter().chain(first).for_each(|e| take(e, found, place));
        }
        Expr::Function(call) => take_from_call(call, found, place),
        _ => {}
    }
    if let Expr::Function(call) = expr
        && matches!(call.args, FunctionArguments::Subquery(_))
        && object_name_parts(&call.name) == ["array"]
    {
        let args = std::mem::replace(&mut call.args, FunctionArguments::None);
        if let FunctionArguments::Subquery(query) = args {
            *expr = stand_in(found.len().to_string());
            found.push(Taken { query: *query, form: Form::Array });
        }
    }
}

fn take_from_call(call: &mut ast::Function, found: &mut Vec<Taken>, place: Place) {
    let name = object_name_parts(&call.name).pop().unwrap_or_default();
    let plain = call.over.is_none() && call.filter.is_none() && call.within_group.is_empty();
    if !plain || is_aggregate(&name) && place != Place::Inside {
        return;
    }
    for arg in arguments(call) {
        take(arg, found, place);
        if name == "coalesce" {
            // The others are looked at only where it is NULL.
            break;
        }
    }
}

/// Binds subqueries as more tables, and adds the columns that stand for their values to the scope;
/// `false` if one is not as simple as that.
///
/// # Errors
/// What is wrong with a subquery.
pub(super) fn bind(
    ctx: &Context,
    queries: &[Taken],
    tables: &mut Vec<From>,
    scope: &mut Scope,
    params: &mut ParamTypes,
) -> SqlResult<bool> {
    let around = scope.clone();
    let mut width = tables.last().map_or(0, From::end);
    for (n, taken) in queries.iter().enumerate() {
        let Some((inner, ty)) = bind_value(ctx, taken, (&around, width), params)? else {
            return Ok(false);
        };
        width = inner.end();
        tables.push(inner);
        // Its table's columns, and those of tables before it, cannot be named.
        scope.pad(width - 1);
        let value = scope.push_table(STAND_INS, None, [(n.to_string(), ty, true)]);
        scope.columns_mut()[value].hidden = true;
    }
    Ok(true)
}

/// As [`bind`], of what was in FROM: the values are columns that everybody may name.
pub(super) fn bind_laterals(
    ctx: &Context,
    laterals: &[Lateral],
    tables: &mut Vec<From>,
    scope: &mut Scope,
    params: &mut ParamTypes,
) -> SqlResult<bool> {
    for Lateral { alias, values } in laterals {
        if scope.has_table(alias) {
            return Ok(false);
        }
        let around = scope.clone();
        for (name, taken) in values {
            let width = tables.last().map_or(0, From::end);
            let Some((inner, ty)) = bind_value(ctx, taken, (&around, width), params)? else {
                return Ok(false);
            };
            scope.pad(inner.end() - 1);
            scope.push_table(alias, None, [(name.clone(), ty, true)]);
            tables.push(inner);
        }
    }
    Ok(true)
}

/// What a subquery's expressions are bound over: the columns around it and its table's; behind
/// them what stands for expressions over those.
struct Inside {
    scope: Scope,
    /// How many columns there are.
    real: usize,
    /// What the others stand for.
    meant: Vec<Bound>,
}

impl Inside {
    fn push(&mut self, table: &str, name: &str, meant: Bound) {
        self.scope.push(ScopeColumn {
            table: Some(table.to_string()),
            collation: meant.collation().of_column(),
            ..ScopeColumn::new(name, meant.ty().clone())
        });
        self.meant.push(meant);
    }

    /// The expression over columns that there are.
    fn resolved(&self, e: &Bound) -> Bound {
        match e.as_column() {
            Some(at) if at >= self.real => self.meant[at - self.real].clone(),
            Some(_) => e.clone(),
            None => e.map_children(&mut |part| self.resolved(part)),
        }
    }
}

/// Binds one subquery; what its value's type is. What is wrong with one is for general plans to
/// tell, which know more forms.
fn bind_value(
    ctx: &Context,
    taken: &Taken,
    (around, width): (&Scope, usize),
    params: &mut ParamTypes,
) -> SqlResult<Option<(From, SqlType)>> {
    match bind_one(ctx, taken, (around, width), params) {
        Ok(found) => Ok(found.filter(|(_, ty)| *ty != SqlType::Record)),
        Err(e) if e.state() == SqlState::INTERNAL_ERROR => Err(e),
        Err(_) => Ok(None),
    }
}

fn bind_one(
    ctx: &Context,
    taken: &Taken,
    (around, width): (&Scope, usize),
    params: &mut ParamTypes,
) -> SqlResult<Option<(From, SqlType)>> {
    let query = &taken.query;
    let Some(select) = simple_select(query).filter(|s| !has_groups(s)) else { return Ok(None) };
    if !query.locks.is_empty() {
        return Ok(None);
    }
    if let Form::Exists(wanted) = taken.form {
        return bind_exists(ctx, (query, select, wanted), (around, width), params);
    }
    let expr = match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. }] => e,
        _ => return Ok(None),
    };
    let derived = derived(select);
    let core = derived.as_ref().map_or(Some(select), |(query, _)| simple_select(query));
    let Some(core) = core.filter(|core| !has_groups(core)) else { return Ok(None) };
    let found = semi::table_of(ctx, core, (around, width), params)?;
    let Some((mut inner, scope)) = found else { return Ok(None) };
    let mut inside = Inside { real: scope.len(), scope, meant: Vec::new() };
    let mut order = Vec::new();
    let limited = derived.as_ref().map_or(query, |(query, _)| query);
    let Some(page) = limits_within(limited, &Scope::empty(), params)? else { return Ok(None) };
    // Rows would be taken in twice, in two orders.
    let outer = query.limit_clause.is_some() || page.0.is_some() && query.order_by.is_some();
    if derived.is_some() && outer {
        return Ok(None);
    }
    let mut expr = expr.clone();
    let name = match derived {
        None if deeper(ctx, [&mut expr], &mut inner, &mut inside, params)? => {
            push_row(&mut inside, &inner);
            inner.alias.clone()
        }
        None => return Ok(None),
        Some((query, name)) => {
            let from = (query, core, name.as_str());
            let by = push_derived(ctx, from, around, (&mut inner, &mut inside), params)?;
            let Some(by) = by else { return Ok(None) };
            order = by;
            name
        }
    };
    name_rows(&mut expr, (&name, ROW), &inside.scope);
    if let Some(by) = &query.order_by {
        let output = match &select.projection[0] {
            SelectItem::ExprWithAlias { alias, .. } => ident_name(alias),
            SelectItem::UnnamedExpr(e) => braid_scalar::output_name(e),
            _ => return Ok(None),
        };
        let value = braid_scalar::bind(&expr, &inside.scope, params)?;
        let found = sort_keys(by, &[(output, value)], &inside, params)?;
        let Some(by) = found.filter(|_| order.is_empty()) else { return Ok(None) };
        order = by;
    }
    let Some((what, ty)) = what(&mut expr, taken.form, (&inside, width), params)? else {
        return Ok(None);
    };
    // The one row of aggregates has no pages, and its order is none.
    let pages = query.limit_clause.is_some() || query.order_by.is_some();
    if pages && matches!(what, What::Aggregates(..)) {
        return Ok(None);
    }
    inner.value = Some(Arc::new(Value { what, order, page }));
    Ok(Some((inner, ty)))
}

/// As [`bind_one`], of a subquery of which only is asked whether it has a row.
fn bind_exists(
    ctx: &Context,
    (query, select, wanted): (&ast::Query, &ast::Select, bool),
    (around, width): (&Scope, usize),
    params: &mut ParamTypes,
) -> SqlResult<Option<(From, SqlType)>> {
    if query.order_by.is_some() {
        return Ok(None);
    }
    let found = semi::table_of(ctx, select, (around, width), params)?;
    let Some((mut inner, scope)) = found else { return Ok(None) };
    // What is selected must be right, and is not looked at; aggregates would have a row always.
    drop(returning(&select.projection, &scope, &|_| None, params)?);
    let page = limits_within(query, &Scope::empty(), params)?;
    let Some(page) = page else { return Ok(None) };
    let what = What::Exists(wanted);
    inner.value = Some(Arc::new(Value { what, order: Vec::new(), page }));
    Ok(Some((inner, SqlType::Bool)))
}

/// The query in FROM, if that is all that is there, and its alias.
fn derived(select: &ast::Select) -> Option<(&ast::Query, String)> {
    let [table] = select.from.as_slice() else { return None };
    match &table.relation {
        TableFactor::Derived { subquery, alias: Some(alias), sample: None, .. }
            if table.joins.is_empty()
                && alias.columns.is_empty()
                && select.selection.is_none()
                && subquery.locks.is_empty() =>
        {
            Some((subquery, ident_name(&alias.name)))
        }
        _ => None,
    }
}

/// Binds the subqueries in expressions over a subquery's table: for each of its rows.
fn deeper<'e>(
    ctx: &Context,
    exprs: impl IntoIterator<Item = &'e mut Expr>,
    inner: &mut From,
    inside: &mut Inside,
    params: &mut ParamTypes,
) -> SqlResult<bool> {
    let mut found = Vec::new();
    exprs.into_iter().for_each(|expr| take(expr, &mut found, Place::Inside));
    let around = inside.scope.clone();
    for (n, taken) in found.iter().enumerate() {
        let Some((nested, ty)) = bind_value(ctx, taken, (&around, inner.end()), params)? else {
            return Ok(false);
        };
        inside.scope.pad(nested.end() - 1);
        let value = inside.scope.push_table(STAND_INS, None, [(n.to_string(), ty, true)]);
        inside.scope.columns_mut()[value].hidden = true;
        inner.nested.push(nested);
        inside.real = inside.scope.len();
    }
    Ok(true)
}

/// A column that stands for a whole row of the subquery's table.
fn push_row(inside: &mut Inside, inner: &From) {
    let columns = &inner.layout.table.columns;
    let named = columns.iter().enumerate().filter(|(_, c)| !c.is_row_id());
    let field = |(at, c): (usize, &braid_catalog::Column)| {
        let collation = inside.scope.columns()[inner.offset + at].collation.clone();
        let field = Bound::column(inner.offset + at, c.ty.clone()).with_collation(collation);
        (field, Arc::from(&*c.name))
    };
    let (fields, names): (Vec<Bound>, Vec<Arc<str>>) = named.map(field).unzip();
    inside.push(STAND_INS, ROW, row(fields, names.into()));
    hide_last(inside);
}

fn row(fields: Vec<Bound>, names: FieldNames) -> Bound {
    Bound::new(Node::Row(fields, Some(names)), SqlType::Record)
}

fn hide_last(inside: &mut Inside) {
    if let Some(last) = inside.scope.columns_mut().last_mut() {
        last.hidden = true;
    }
}

/// Columns that stand for what the query in FROM selects; the order that it gives its rows.
fn push_derived(
    ctx: &Context,
    (query, core, alias): (&ast::Query, &ast::Select, &str),
    around: &Scope,
    (inner, inside): (&mut From, &mut Inside),
    params: &mut ParamTypes,
) -> SqlResult<Option<Vec<SortKey>>> {
    let mut list = Vec::new();
    for item in &core.projection {
        list.push(match item {
            SelectItem::UnnamedExpr(e) => (braid_scalar::output_name(e), e.clone()),
            SelectItem::ExprWithAlias { expr, alias } => (ident_name(alias), expr.clone()),
            _ => return Ok(None),
        });
    }
    if !deeper(ctx, list.iter_mut().map(|(_, e)| e), inner, inside, params)? {
        return Ok(None);
    }
    let own = inner.alias.clone();
    push_row(inside, inner);
    let mut known = Vec::new();
    for (name, e) in &mut list {
        name_rows(e, (&own, ROW), &inside.scope);
        let bound = braid_scalar::bind(e, &inside.scope, params)?;
        // It is computed as often as it is named.
        if bound.volatility() == Volatility::Volatile {
            return Ok(None);
        }
        known.push((name.clone(), inside.resolved(&bound)));
    }
    let order = match &query.order_by {
        Some(by) => sort_keys(by, &known, inside, params)?,
        None => Some(Vec::new()),
    };
    let Some(order) = order else { return Ok(None) };
    // From here on only what it selects can be named, and what is around it.
    let hide = |column: &mut ScopeColumn| {
        (column.table, column.hidden) = (None, true);
        column.name.clear();
    };
    let (outer, own) = inside.scope.columns_mut().split_at_mut(inner.offset);
    own.iter_mut().for_each(hide);
    for (column, before) in outer.iter_mut().zip(around.columns()) {
        *column = before.clone();
        if column.table.as_deref() == Some(alias) {
            hide(column);
        }
        column.hidden |= known.iter().any(|(name, _)| *name == column.name);
    }
    let names: Vec<Arc<str>> = known.iter().map(|(name, _)| Arc::from(name.as_str())).collect();
    let fields = known.iter().map(|(_, bound)| bound.clone()).collect();
    for (name, bound) in known {
        inside.push(alias, &name, bound);
    }
    inside.push(STAND_INS, ROW, row(fields, names.into()));
    hide_last(inside);
    Ok(Some(order))
}

/// Whole rows of the table of this name get the column that stands for them.
pub(super) fn name_rows(expr: &mut Expr, (alias, row): (&str, &str), scope: &Scope) {
    let is_column = |name: &str| scope.columns().iter().any(|c| !c.hidden && c.name == name);
    let is_row = |parts: &[String]| parts == [alias] && !is_column(alias);
    let _walked: ControlFlow<()> = braid_walk::expressions_mut(expr, |e| {
        match e {
            Expr::Identifier(name) if is_row(&[ident_name(name)]) => *e = stand_in(row.into()),
            // A star within ROW is the columns.
            Expr::Function(call) if object_name_parts(&call.name) != ["row"] => {
                if let FunctionArguments::List(list) = &mut call.args {
                    for arg in &mut list.args {
                        if let FunctionArg::Unnamed(whole) = arg
                            && let FunctionArgExpr::QualifiedWildcard(name) = whole
                            && object_name_parts(name) == [alias]
                        {
                            *whole = FunctionArgExpr::Expr(stand_in(row.into()));
                        }
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
}

/// ORDER BY of a subquery; `None` if it is not as simple as that.
fn sort_keys(
    by: &ast::OrderBy,
    known: &[(String, Bound)],
    inside: &Inside,
    params: &mut ParamTypes,
) -> SqlResult<Option<Vec<SortKey>>> {
    let OrderByKind::Expressions(list) = &by.kind else { return Ok(None) };
    sorted_by(list, known, inside, params)
}

fn sorted_by(
    list: &[ast::OrderByExpr],
    known: &[(String, Bound)],
    inside: &Inside,
    params: &mut ParamTypes,
) -> SqlResult<Option<Vec<SortKey>>> {
    let mut out = Vec::new();
    for key in list {
        let expr = match &key.expr {
            // The number of what it selects.
            Expr::Value(n) => {
                let number = n.value.to_string().parse::<usize>().ok();
                match number.and_then(|n| known.get(n.checked_sub(1)?)) {
                    Some((_, bound)) => bound.clone(),
                    None => return Ok(None),
                }
            }
            Expr::Identifier(name) => {
                let name = ident_name(name);
                match known.iter().find(|(output, _)| *output == name) {
                    Some((_, bound)) => bound.clone(),
                    None => braid_scalar::bind(&key.expr, &inside.scope, params)?,
                }
            }
            e => braid_scalar::bind(e, &inside.scope, params)?,
        };
        expr.ty().check_comparable("ordering")?;
        out.push(SortKey::by(inside.resolved(&order_form(expr)?), &key.options));
    }
    Ok(Some(out))
}

/// What a subquery computes, and of which type it is.
fn what(
    expr: &mut Expr,
    form: Form,
    (inside, width): (&Inside, usize),
    params: &mut ParamTypes,
) -> SqlResult<Option<(What, SqlType)>> {
    let mut calls = Vec::new();
    take_aggregates(expr, &mut |call| {
        calls.push(call);
        stand_in(format!("aggregate {}", calls.len() - 1))
    });
    let is_array = form == Form::Array;
    if calls.is_empty() {
        let bound = inside.resolved(&braid_scalar::bind(expr, &inside.scope, params)?);
        // What compares with a value of another collation is for general plans.
        if !bound.collation().is_by_bytes() {
            return Ok(None);
        }
        let ty = bound.ty().clone();
        return Ok(Some(match is_array {
            true => (What::Array(bound, ty.clone()), ty.array_of()),
            false => (What::Row(bound), ty),
        }));
    }
    if is_array {
        return Ok(None);
    }
    let (mut aggregates, mut over) = (Vec::new(), Scope::empty());
    for call in &mut calls {
        let order = match order_within(call) {
            Some(by) => sorted_by(&by, &[], inside, params)?,
            None => Some(Vec::new()),
        };
        let Some(order) = order else { return Ok(None) };
        let Some(mut found) = Aggregate::bind(call, &inside.scope, params)? else {
            return Ok(None);
        };
        found.exprs_mut().for_each(|e| *e = inside.resolved(e));
        // An aggregate over nothing but outer columns belongs to the query around.
        let own = |e: &Bound| e.columns().is_empty() || e.columns().iter().any(|at| *at >= width);
        if !found.exprs().all(own) {
            return Ok(None);
        }
        let name = format!("aggregate {}", aggregates.len());
        over.push_table(STAND_INS, None, [(name, found.ty.clone(), true)]);
        let Some(found) = found.ordered(order) else { return Ok(None) };
        aggregates.push(found);
    }
    // Columns beside aggregates are for those who know what is wrong with them.
    let Ok(expr) = braid_scalar::bind(expr, &over, params) else { return Ok(None) };
    let ty = expr.ty().clone();
    Ok(Some((What::Aggregates(aggregates, expr), ty)))
}
