//! Taking what names outer columns out of a subquery's plan.
//!
//! ```text
//!   Projection s.x                          Projection s.x, s.k
//!     Filter s.k = $outer AND s.y > 3   ─►    Filter s.y > 3          and apart: s.k = $outer
//!       Scan s                                  Scan s
//! ```
//! The plan then no longer depends on the row around it, and the conditions apart join the two. An
//! equality passes a GROUP BY, whose groups it divides; other conditions do not. Where a plan
//! cannot be taken apart the answer is `None`, and the subquery runs for batches of rows (see
//! [`super::keyed`]).

use std::collections::HashMap;

use datafusion::common::{Column, JoinType, Result};
use datafusion::logical_expr::expr_rewriter::unalias;
use datafusion::logical_expr::logical_plan::{
    Aggregate, FetchType, Filter, Join, Limit, Projection, SkipType, Sort,
};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator};

use super::outer::{has_outer, plan_has_outer, replace_columns};

/// A subquery's plan without outer columns, and the conditions that name them.
pub(crate) struct Core {
    pub(crate) plan: LogicalPlan,
    pub(crate) conditions: Vec<Expr>,
}

/// Takes projections and sorts off the top of a plan: what is left, and the values over it.
pub(crate) fn open(
    mut plan: LogicalPlan,
    mut values: Vec<Expr>,
) -> Result<(LogicalPlan, Vec<Expr>)> {
    loop {
        match plan {
            LogicalPlan::Sort(Sort { input, fetch: None, .. }) => plan = (*input).clone(),
            LogicalPlan::Projection(Projection { expr, input, schema, .. }) => {
                let map: HashMap<Column, Expr> =
                    schema.columns().into_iter().zip(expr.into_iter().map(unalias)).collect();
                values = values
                    .into_iter()
                    .map(|v| replace_columns(v, &map))
                    .collect::<Result<Vec<_>>>()?;
                plan = (*input).clone();
            }
            other => return Ok((other, values)),
        }
    }
}

/// Whether LIMIT and OFFSET leave a row if there is one.
pub(crate) fn keeps_some(limit: &Limit) -> bool {
    let skips = !matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)));
    let takes = matches!(limit.get_fetch_type(), Ok(FetchType::Literal(n)) if n != Some(0));
    takes && !skips
}

/// The two sides of `inner = outer`.
pub(crate) fn key(condition: &Expr) -> Option<(&Expr, &Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else {
        return None;
    };
    let inner = |e: &Expr| !has_outer(e) && !e.column_refs().is_empty();
    let outer = |e: &Expr| has_outer(e) && e.column_refs().is_empty();
    match (&**left, &**right) {
        (l, r) if inner(l) && outer(r) => Some((l, r)),
        (l, r) if outer(l) && inner(r) => Some((r, l)),
        _ => None,
    }
}

/// Takes a plan apart; `fresh` makes names for new columns.
pub(crate) fn pull(plan: &LogicalPlan, fresh: &mut dyn FnMut() -> String) -> Result<Option<Core>> {
    if !plan_has_outer(plan) {
        return Ok(Some(Core { plan: plan.clone(), conditions: Vec::new() }));
    }
    match plan {
        LogicalPlan::Filter(Filter { predicate, input, .. }) => {
            let Some(mut core) = pull(input, fresh)? else { return Ok(None) };
            let (apart, kept): (Vec<Expr>, Vec<Expr>) =
                split_conjunction_owned(predicate.clone()).into_iter().partition(has_outer);
            core.conditions.extend(apart);
            if let Some(kept) = conjunction(kept) {
                core.plan = LogicalPlanBuilder::from(core.plan).filter(kept)?.build()?;
            }
            Ok(Some(core))
        }
        LogicalPlan::Sort(sort) if sort.expr.iter().all(|s| !has_outer(&s.expr)) => {
            let Some(mut core) = pull(&sort.input, fresh)? else { return Ok(None) };
            if sort.fetch.is_some() {
                return Ok(None);
            }
            // An aggregate above may take its rows in this order.
            core.plan = LogicalPlanBuilder::from(core.plan).sort(sort.expr.clone())?.build()?;
            Ok(Some(core))
        }
        LogicalPlan::Projection(projection) => pull_projection(projection, fresh),
        LogicalPlan::Aggregate(aggregate) if !aggregate.group_expr.is_empty() => {
            pull_aggregate(aggregate, fresh)
        }
        LogicalPlan::Join(join) => pull_join(join, fresh),
        _ => Ok(None),
    }
}

fn pull_projection(
    projection: &Projection,
    fresh: &mut dyn FnMut() -> String,
) -> Result<Option<Core>> {
    if projection.expr.iter().any(has_outer) {
        return Ok(None);
    }
    let Some(core) = pull(&projection.input, fresh)? else { return Ok(None) };
    let mut columns = projection.expr.clone();
    for column in core.conditions.iter().flat_map(Expr::column_refs) {
        let expr = Expr::Column(column.clone());
        if !columns.contains(&expr) {
            columns.push(expr);
        }
    }
    let plan = LogicalPlanBuilder::from(core.plan).project(columns)?.build()?;
    Ok(Some(Core { plan, conditions: core.conditions }))
}

/// Divides groups by the keys of the conditions, which are equalities then.
pub(crate) fn pull_aggregate(
    aggregate: &Aggregate,
    fresh: &mut dyn FnMut() -> String,
) -> Result<Option<Core>> {
    let own = aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
    if own.clone().any(has_outer) {
        return Ok(None);
    }
    let Some(core) = pull(&aggregate.input, fresh)? else { return Ok(None) };
    let mut groups = aggregate.group_expr.clone();
    let mut conditions = Vec::new();
    for condition in &core.conditions {
        let Some((inner, outer)) = key(condition) else { return Ok(None) };
        let name = fresh();
        groups.push(inner.clone().alias(name.clone()));
        conditions.push(Expr::Column(Column::new_unqualified(name)).eq(outer.clone()));
    }
    let plan = LogicalPlanBuilder::from(core.plan)
        .aggregate(groups, aggregate.aggr_expr.clone())?
        .build()?;
    Ok(Some(Core { plan, conditions }))
}

fn pull_join(join: &Join, fresh: &mut dyn FnMut() -> String) -> Result<Option<Core>> {
    let inner = join.join_type == JoinType::Inner;
    let left_stays = matches!(
        join.join_type,
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark
    );
    if !(inner || left_stays) || join.on.iter().any(|(l, r)| has_outer(l) || has_outer(r)) {
        return Ok(None);
    }
    let Some(left) = pull(&join.left, fresh)? else { return Ok(None) };
    let Some(right) = pull(&join.right, fresh)? else { return Ok(None) };
    let filter = join.filter.clone().map(split_conjunction_owned).unwrap_or_default();
    let (apart, kept): (Vec<Expr>, Vec<Expr>) = filter.into_iter().partition(has_outer);
    if left_stays && !(right.conditions.is_empty() && apart.is_empty()) {
        return Ok(None);
    }
    let mut joined = join.clone();
    joined.left = left.plan.into();
    joined.right = right.plan.into();
    joined.filter = conjunction(kept);
    let plan = LogicalPlan::Join(joined).recompute_schema()?;
    let conditions = left.conditions.into_iter().chain(right.conditions).chain(apart).collect();
    Ok(Some(Core { plan, conditions }))
}
