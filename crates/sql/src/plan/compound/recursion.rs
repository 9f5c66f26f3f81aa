//! WITH RECURSIVE: rows that are made of those of the step before.
//!
//! ```text
//!   WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4)
//!     start    1
//!     step     r is 1   gives 2
//!              r is 2   gives 3 ..    r is 4   gives none
//! ```
//! Within the step the name means rows that were made: those that the step before gave. All is
//! made before anybody gets a row, so a recursion is ours only where all its rows are wanted. What
//! PostgreSQL refuses in a step (the name in a subquery or twice, aggregates, the side of an outer
//! join that may be missing) general plans refuse.

use std::collections::HashMap;
use std::sync::Arc;

use braid_rows::Row;
use braid_scalar::{ParamTypes, ident_name, names_itself, object_name_parts};
use braid_types::{GroupKey, SqlResult};
use parking_lot::Mutex;
use sqlparser::ast::{
    self, JoinOperator, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor,
};

use super::made::{Made, MadeBy};
use super::sets::{is_open, query_of};
use super::whole::{SelectPlan, plan_any};
use super::within::Within;
use crate::general_query::ColumnInfo;
use crate::plan::groups::has_groups;
use crate::session::Context;

/// What all that is kept is called when it does not fit.
const KEPT: &str = "rows of a recursion";

/// See the [module documentation](self).
pub(super) struct Recursion {
    start: SelectPlan,
    step: SelectPlan,
    /// What the name means within the step.
    work: Arc<Made>,
    /// Rows stay that were there already.
    all: bool,
}

impl Recursion {
    /// Plans a recursive query of WITH, which `whole` names; `None` if it is for general plans.
    ///
    /// # Errors
    /// XX000; those of its parts.
    pub(super) fn plan(
        ctx: &Context,
        cte: &ast::Cte,
        whole: &ast::Query,
        params: &mut ParamTypes,
    ) -> SqlResult<Option<Arc<Made>>> {
        let name = ident_name(&cte.alias.name);
        let Some((start, step, all)) = parts(&cte.query, &name) else { return Ok(None) };
        let open = |body: &SetExpr| is_open(body, params);
        if !wants_all(whole, &name, step) || open(start) || open(&query_of_select(step)) {
            return Ok(None);
        }
        let Some(start) = plan_any(ctx, &query_of(start), params)? else { return Ok(None) };
        if start.locks_rows() {
            return Ok(None);
        }
        let columns = start.columns().to_vec();
        let named = (name.clone(), cte.alias.columns.as_slice());
        let work = Made::of(ctx, MadeBy::Work, (named.clone(), &columns), STEPS)?;
        let Some(work) = work else { return Ok(None) };
        let within = ctx.within.naming(name, work.clone());
        let inner = Context { within, ..ctx.clone() };
        let step = plan_any(&inner, &query_of(&query_of_select(step)), params)?;
        let Some(step) = step.filter(|step| step.shows_each_row()) else { return Ok(None) };
        let alike = |(a, b): (&_, &_)| columns_alike(a, b);
        let alike =
            columns.len() == step.columns().len() && columns.iter().zip(step.columns()).all(alike);
        let comparable = columns.iter().all(|c| c.ty.is_comparable() && c.collation.is_by_bytes());
        if !alike || !all && !comparable {
            return Ok(None);
        }
        let recursion = Recursion { start, step, work, all };
        Made::of(ctx, MadeBy::Recursion(recursion), (named, &columns), STEPS)
    }

    /// All rows.
    ///
    /// # Errors
    /// Of its parts; 53200 when they do not fit.
    pub(super) fn rows(&self, ctx: &Arc<Context>) -> SqlResult<Vec<Row>> {
        let mut seen: HashMap<GroupKey, ()> = HashMap::new();
        let mut take = |plan: &SelectPlan, ctx: &Arc<Context>| -> SqlResult<Vec<Row>> {
            let mut stream = plan.run_for(ctx, None)?;
            let mut out = Vec::new();
            while let Some(mut batch) = stream.next_batch()? {
                ctx.check_cancel()?;
                if !self.all {
                    batch.retain(|row| seen.insert(GroupKey(row.clone()), ()).is_none());
                    ctx.keep_rows(KEPT, &batch)?;
                }
                ctx.keep_rows(KEPT, &batch)?;
                out.extend(batch);
            }
            Ok(out)
        };
        // What the step makes is of that step; what was made before is of the statement.
        let known = ctx.within.made.as_ref().map(|made| made.lock().clone()).unwrap_or_default();
        let mut rows = take(&self.start, ctx)?;
        let mut last = Arc::new(rows.clone());
        while !last.is_empty() {
            ctx.check_cancel()?;
            let mut made = known.clone();
            made.insert(self.work.place(), last);
            let within = Within { made: Some(Arc::new(Mutex::new(made))), ..ctx.within.clone() };
            let next = take(&self.step, &Arc::new(Context { within, ..Context::clone(ctx) }))?;
            rows.extend(next.iter().cloned());
            last = Arc::new(next);
        }
        Ok(rows)
    }

    /// Its parts, for EXPLAIN.
    pub(super) fn parts(&self) -> [&SelectPlan; 2] {
        [&self.start, &self.step]
    }
}

/// Rows that a recursion is expected to give, and each of its steps.
const STEPS: f64 = 20.0;

fn columns_alike(a: &ColumnInfo, b: &ColumnInfo) -> bool {
    a.ty == b.ty && a.collation == b.collation
}

fn query_of_select(select: &ast::Select) -> SetExpr {
    SetExpr::Select(Box::new(select.clone()))
}

/// Where a recursion begins, how it goes on, and whether equal rows stay.
fn parts<'q>(query: &'q ast::Query, name: &str) -> Option<(&'q SetExpr, &'q ast::Select, bool)> {
    let bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    let SetExpr::SetOperation { left, op: SetOperator::Union, set_quantifier, right } =
        &*query.body
    else {
        return None;
    };
    let all = match set_quantifier {
        SetQuantifier::All => true,
        SetQuantifier::None | SetQuantifier::Distinct => false,
        _ => return None,
    };
    let SetExpr::Select(step) = &**right else { return None };
    let fits = bare
        && matches!(**left, SetExpr::Select(_))
        && !names_itself(&query_of(left), name)
        && step.distinct.is_none()
        && step.having.is_none()
        && !has_groups(step)
        && is_named_once(step, name);
    fits.then_some((&**left, &**step, all))
}

/// Whether a SELECT reads a table of this name once, where each of its rows is read.
fn is_named_once(select: &ast::Select, name: &str) -> bool {
    let mut rest = select.clone();
    let is_it = |factor: &TableFactor| match factor {
        TableFactor::Table { name: table, .. } => object_name_parts(table) == [name],
        _ => false,
    };
    let mut found = 0;
    for item in &mut rest.from {
        let nothing = || TableFactor::UNNEST {
            alias: None,
            array_exprs: Vec::new(),
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: false,
        };
        if is_it(&item.relation) {
            found += 1;
            item.relation = nothing();
        }
        for join in &mut item.joins {
            let inner = matches!(
                join.join_operator,
                JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_)
            );
            if inner && is_it(&join.relation) {
                found += 1;
                join.relation = nothing();
            }
        }
    }
    found == 1 && !names_itself(&query_of(&query_of_select(&rest)), name)
}

/// Whether a query reads all rows of a recursion, whoever asks it: they are counted, sorted or put
/// together; or its step reads another table, which has an end.
fn wants_all(whole: &ast::Query, name: &str, step: &ast::Select) -> bool {
    let SetExpr::Select(select) = &*whole.body else { return false };
    let item = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => {
            let mut any = false;
            crate::plan::shown::take_aggregates(&mut e.clone(), &mut |call| {
                any = true;
                call
            });
            any
        }
        _ => false,
    };
    let together =
        whole.order_by.is_some() || has_groups(select) || select.projection.iter().any(item);
    let others = step.from.len() > 1 || step.from.iter().any(|from| !from.joins.is_empty());
    let first = select.from.first().is_some_and(|from| match &from.relation {
        TableFactor::Table { name: table, .. } => object_name_parts(table) == [name],
        _ => false,
    });
    whole.limit_clause.is_none()
        && whole.fetch.is_none()
        && first
        && is_named_once(select, name)
        && (together || others)
}
