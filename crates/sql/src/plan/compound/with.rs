//! WITH, queries in FROM, and lists that queries give, as rows that are made first.
//!
//! ```text
//!   WITH c AS (..) SELECT .. FROM c             c is made, however often it is named
//!   FROM (SELECT ..) x JOIN orders ..           x is made
//!   FROM orders WHERE customer IN (SELECT ..)   where that is not asked of each order:
//!     FROM (SELECT DISTINCT ..) l JOIN orders ON customer = l.value
//!   FROM orders WHERE placed = (SELECT max(..) ..)     where that is the same for each order:
//!     FROM (SELECT max(..) ..) v CROSS JOIN orders WHERE placed = v.value
//! ```

use std::sync::Arc;

use braid_parser::take_recursion;
use braid_scalar::{
    ParamTypes, general_query_needed, ident_name, names_itself, object_name_parts, with_in_order,
};
use braid_types::{SqlResult, SqlState};
use sqlparser::ast::{
    self, BinaryOperator, Distinct, Expr, Ident, JoinConstraint, JoinOperator, SelectItem, SetExpr,
    TableAlias, TableFactor,
};

use super::functions::FunctionRows;
use super::made::Made;
use super::recursion::Recursion;
use super::whole::{SelectPlan, plan_any};
use crate::plan::build;
use crate::plan::groups::has_groups;
use crate::plan::select::Chain;
use crate::plan::shown::take_aggregates;
use crate::session::Context;

/// The alias of a list in FROM: nobody writes such a letter, and no star means its column.
const LIST: &str = "\u{1}list";
/// The alias of a value in FROM.
const ONE: &str = "\u{1}one";
/// The column of both.
const VALUE: &str = "value";

/// Whether a table of FROM is there for the plan only.
pub(in crate::plan) fn is_unseen(alias: &str) -> bool {
    alias == LIST || alias == ONE
}

/// Plans a query with its WITH; `None` if one of the queries there is none of ours.
///
/// # Errors
/// XX000; what is wrong with the query itself.
pub(super) fn plan(
    ctx: &Context,
    with: &ast::With,
    q: &ast::Query,
    params: &mut ParamTypes,
) -> SqlResult<Option<SelectPlan>> {
    if !q.locks.is_empty() {
        return Ok(None);
    }
    let Ok(ordered) = with_in_order(with) else { return Ok(None) };
    let mut ctx = ctx.clone();
    let mut own: Vec<String> = Vec::new();
    for cte in &ordered.cte_tables {
        let name = ident_name(&cte.alias.name);
        let mut columns = cte.alias.columns.iter().map(|c| ident_name(&c.name)).collect();
        // SEARCH and CYCLE, or something wrong with them.
        let clauses = !matches!(take_recursion(&mut columns), Ok(None));
        if own.contains(&name) || clauses {
            return Ok(None);
        }
        let made = match with.recursive && names_itself(&cte.query, &name) {
            true => match Recursion::plan(&ctx, cte, q, params) {
                Err(e) if e.state() == SqlState::INTERNAL_ERROR => return Err(e),
                made => made.unwrap_or_default(),
            },
            false => Made::plan(&ctx, &cte.query, (name.clone(), &cte.alias.columns), params)?,
        };
        let Some(made) = made else { return Ok(None) };
        own.push(name.clone());
        ctx.within = ctx.within.naming(name, made);
    }
    let q = ast::Query { with: None, ..q.clone() };
    match plan_any(&ctx, &q, params) {
        Err(e) if e.state() == SqlState::INTERNAL_ERROR => Err(e),
        found => Ok(found.unwrap_or_default()),
    }
}

/// The rows that a table of FROM means, if they are those of a query, and its alias.
///
/// # Errors
/// XX000; where general plans know more.
pub(in crate::plan) fn made_of(
    ctx: &Context,
    factor: &TableFactor,
    params: &mut ParamTypes,
) -> SqlResult<Option<(Arc<Made>, String)>> {
    if let Some(made) = FunctionRows::made(ctx, factor, params)? {
        return Ok(Some(made));
    }
    match factor {
        TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None } => {
            let name = ident_name(&alias.name);
            let shown = match name.as_str() {
                LIST => "IN list".to_string(),
                ONE => "value".to_string(),
                _ => name.clone(),
            };
            let made = Made::plan(ctx, subquery, (shown, &alias.columns), params)?;
            Ok(made.map(|made| (made, name)))
        }
        TableFactor::Table { name, alias, args, sample, with_ordinality, .. } => {
            let parts = object_name_parts(name);
            let [bare] = parts.as_slice() else { return Ok(None) };
            let named = ctx.within.named.iter().rfind(|(name, _)| name == bare);
            let Some((_, made)) = named.filter(|_| args.is_none()) else { return Ok(None) };
            let renamed = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
            if renamed || sample.is_some() || *with_ordinality || braid_scalar::is_only(name) {
                return Err(general_query_needed("a query of WITH with more to it"));
            }
            let alias = alias.as_ref().map_or_else(|| bare.clone(), |a| ident_name(&a.name));
            Ok(Some((made.clone(), alias)))
        }
        _ => Ok(None),
    }
}

/// Plans one SELECT; a list that a query gives may be where it begins.
///
/// # Errors
/// What is wrong with it, when it would be ours if it were right.
pub(super) fn plan_select(
    ctx: &Context,
    q: &ast::Query,
    params: &mut ParamTypes,
) -> SqlResult<Option<Chain>> {
    let mut tried = params.clone();
    if let Some(chain) = build::plan(ctx, q, &mut tried)? {
        *params = tried;
        return Ok(Some(chain));
    }
    for other in [from_list(q), from_value(q)].into_iter().flatten() {
        let mut tried = params.clone();
        match build::plan(ctx, &other, &mut tried) {
            Err(e) if e.state() == SqlState::INTERNAL_ERROR => return Err(e),
            Ok(Some(chain)) => {
                *params = tried;
                return Ok(Some(chain));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// The query that begins with the list of the first `column IN (SELECT ..)`, if there is one.
fn from_list(q: &ast::Query) -> Option<ast::Query> {
    begun_with(q, LIST, |select| {
        let list = take_list(select.selection.as_mut()?)?;
        distinct(list, select)
    })
}

/// The query that begins with the value of the first subquery in a comparison of WHERE that is an
/// aggregate of all its rows: it has one, whatever is around it.
fn from_value(q: &ast::Query) -> Option<ast::Query> {
    begun_with(q, ONE, |select| take_value(select.selection.as_mut()?))
}

/// A query with rows that it begins with, which are taken out of it.
fn begun_with(
    q: &ast::Query,
    name: &str,
    take: impl FnOnce(&mut ast::Select) -> Option<ast::Query>,
) -> Option<ast::Query> {
    let SetExpr::Select(select) = &*q.body else { return None };
    if !q.locks.is_empty() || select.from.is_empty() {
        return None;
    }
    let mut query = q.clone();
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let relation = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(take(select)?),
        alias: Some(alias(name)),
        sample: None,
    };
    let first = select.from.first_mut()?;
    let joined = ast::Join {
        relation: std::mem::replace(&mut first.relation, relation),
        global: false,
        join_operator: JoinOperator::CrossJoin(JoinConstraint::None),
    };
    first.joins.insert(0, joined);
    Some(query)
}

fn alias(name: &str) -> TableAlias {
    TableAlias {
        explicit: true,
        name: Ident::with_quote('"', name),
        columns: vec![ast::TableAliasColumnDef {
            name: Ident::with_quote('"', VALUE),
            data_type: None,
        }],
        at: None,
    }
}

/// Takes the query of the first `column IN (SELECT ..)` out of a condition: the column equals a
/// value of the list then.
fn take_list(condition: &mut Expr) -> Option<ast::Query> {
    match condition {
        Expr::Nested(inner) => take_list(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            take_list(left).or_else(|| take_list(right))
        }
        Expr::InSubquery { expr, subquery, negated: false }
            if matches!(**expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) =>
        {
            let list = (**subquery).clone();
            let parts = [LIST, VALUE].map(|part| Ident::with_quote('"', part));
            *condition = Expr::BinaryOp {
                left: expr.clone(),
                op: BinaryOperator::Eq,
                right: Box::new(Expr::CompoundIdentifier(parts.to_vec())),
            };
            Some(list)
        }
        _ => None,
    }
}

/// Takes the first such subquery out of a condition: see [`from_value`].
fn take_value(condition: &mut Expr) -> Option<ast::Query> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq};
    match condition {
        Expr::Nested(inner) => take_value(inner),
        Expr::BinaryOp { left, op: And, right } => take_value(left).or_else(|| take_value(right)),
        Expr::BinaryOp { left, op: Eq | Lt | LtEq | Gt | GtEq, right } => {
            let side = [left, right].into_iter().find(|side| is_aggregate_of_all(side))?;
            let parts = [ONE, VALUE].map(|part| Ident::with_quote('"', part));
            match std::mem::replace(&mut **side, Expr::CompoundIdentifier(parts.to_vec())) {
                Expr::Subquery(query) => Some(*query),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether it is a subquery that gives one row, of an aggregate.
fn is_aggregate_of_all(e: &Expr) -> bool {
    let Expr::Subquery(query) = e else { return false };
    let SetExpr::Select(select) = &*query.body else { return false };
    let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] =
        select.projection.as_slice()
    else {
        return false;
    };
    let mut any = false;
    take_aggregates(&mut item.clone(), &mut |call| {
        any = true;
        call
    });
    let bare = query.with.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    any && bare && !has_groups(select) && select.having.is_none()
}

/// The different values of a list; `None` if it has not one column. They are selected as by
/// `template`, of which nothing else is left.
fn distinct(mut list: ast::Query, template: &ast::Select) -> Option<ast::Query> {
    let is_plain = list.order_by.is_none() && list.limit_clause.is_none() && list.fetch.is_none();
    if let SetExpr::Select(select) = &mut *list.body {
        let [SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }] =
            select.projection.as_slice()
        else {
            return None;
        };
        let ungrouped = matches!(&select.group_by,
            ast::GroupByExpr::Expressions(list, _) if list.is_empty());
        if is_plain && ungrouped && select.distinct.is_none() && select.having.is_none() {
            select.distinct = Some(Distinct::Distinct);
            return Some(list);
        }
    }
    // The rows of the list, and of these the different ones.
    let mut outer = list.clone();
    let select = ast::Select {
        distinct: Some(Distinct::Distinct),
        projection: vec![SelectItem::UnnamedExpr(Expr::Identifier(Ident::with_quote('"', VALUE)))],
        from: vec![ast::TableWithJoins {
            relation: TableFactor::Derived {
                lateral: false,
                subquery: Box::new(list),
                alias: Some(alias("list")),
                sample: None,
            },
            joins: Vec::new(),
        }],
        ..bare_select(template)
    };
    *outer.body = SetExpr::Select(Box::new(select));
    outer.with = None;
    outer.order_by = None;
    outer.limit_clause = None;
    outer.fetch = None;
    Some(outer)
}

/// A SELECT without anything in it.
fn bare_select(select: &ast::Select) -> ast::Select {
    ast::Select {
        selection: None,
        group_by: ast::GroupByExpr::Expressions(Vec::new(), Vec::new()),
        having: None,
        named_window: Vec::new(),
        ..select.clone()
    }
}
