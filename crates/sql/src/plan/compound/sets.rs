//! UNION, INTERSECT and EXCEPT of queries that are own plans.
//!
//! ```text
//!   a UNION ALL b UNION ALL c LIMIT 5      a, then b, then c, until there are five rows
//!   a UNION b, a EXCEPT b, .. ORDER BY     all rows of both, in memory
//! ```
//! The types of the columns are found across the branches as general plans find them, which also
//! tell what is wrong with a set operation: all errors of planning are theirs.

use std::collections::HashMap;
use std::sync::Arc;

use braid_rows::Row;
use braid_scalar::{
    Bound, ParamTypes, can_fail, coerce, common_type, ident_name, order_form, untyped_items,
};
use braid_types::{CastContext, Collated, GroupKey, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{self, Expr, OrderByKind, SelectItem, SetExpr, SetOperator, SetQuantifier};

use super::whole::{SelectPlan, plan_any};
use super::within::Telling;
use crate::explain::PlanLine;
use crate::general_query::{ColumnInfo, RowStream};
use crate::plan::build::limits;
use crate::plan::groups::MANY_ROWS;
use crate::plan::select::{SortKey, count};
use crate::plan::sorting::compare;
use crate::plan::sorting::sorted;
use crate::session::{Context, VecRows};

/// What all that is kept is called when it does not fit.
const KEPT: &str = "rows of a set operation";

/// See the [module documentation](self).
pub(super) struct Sets {
    op: SetOperator,
    all: bool,
    branches: Vec<Branch>,
    /// Over the columns.
    sort: Vec<SortKey>,
    limit: Option<Bound>,
    offset: Option<Bound>,
    columns: Vec<ColumnInfo>,
}

/// One of the queries.
struct Branch {
    plan: SelectPlan,
    /// Its columns in the types of all, where these are others.
    converted: Option<Vec<Bound>>,
}

impl Branch {
    /// Its rows as those of the whole.
    fn rows(&self, rows: Vec<Row>, ctx: &Context) -> SqlResult<Vec<Row>> {
        let Some(exprs) = &self.converted else { return Ok(rows) };
        let one = |row: Row| exprs.iter().map(|e| e.eval(&row, &ctx.eval)).collect();
        rows.into_iter().map(one).collect()
    }
}

/// A branch that is being planned.
struct Planned {
    plan: SelectPlan,
    types: Vec<SqlType>,
}

impl Sets {
    /// Plans a set operation; `None` if it is none of ours.
    ///
    /// # Errors
    /// XX000.
    pub(super) fn plan(
        ctx: &Context,
        q: &ast::Query,
        params: &mut ParamTypes,
    ) -> SqlResult<Option<Sets>> {
        if q.with.is_some()
            || q.fetch.is_some()
            || q.for_clause.is_some()
            || q.settings.is_some()
            || !q.pipe_operators.is_empty()
            || !q.locks.is_empty()
            || !has_few_operations(&q.body)
        {
            return Ok(None);
        }
        match Sets::bind(ctx, q, params) {
            Err(e) if e.state() == SqlState::INTERNAL_ERROR => Err(e),
            found => Ok(found.unwrap_or_default()),
        }
    }

    fn bind(ctx: &Context, q: &ast::Query, params: &mut ParamTypes) -> SqlResult<Option<Sets>> {
        let Some((op, all, operands)) = operands(&q.body) else { return Ok(None) };
        let mut planned = Vec::with_capacity(operands.len());
        for operand in &operands {
            let Some(branch) = plan_branch(ctx, operand, params)? else { return Ok(None) };
            planned.push(branch);
        }
        let work: f64 = planned.iter().map(|branch| branch.plan.work(ctx)).sum();
        if work > MANY_ROWS && ctx.db.general().reads_columns() {
            return Ok(None);
        }
        let Some(columns) = columns(&planned, op == SetOperator::Union && all) else {
            return Ok(None);
        };
        let mut branches = Vec::with_capacity(planned.len());
        for Planned { plan, types } in planned {
            let converted = converted(&types, &columns, params)?;
            branches.push(Branch { plan, converted });
        }
        let Some(sort) = sort_keys(q, &columns)? else { return Ok(None) };
        let (limit, offset) = limits(q, params)?;
        Ok(Some(Sets { op, all, branches, sort, limit, offset, columns }))
    }

    pub(super) fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// See [`SelectPlan::work`].
    pub(super) fn work(&self, ctx: &Context) -> f64 {
        self.branches.iter().map(|branch| branch.plan.work(ctx)).sum()
    }

    /// See [`SelectPlan::rows_given`].
    pub(super) fn rows_given(&self, ctx: &Context) -> f64 {
        self.branches.iter().map(|branch| branch.plan.rows_given(ctx)).sum()
    }

    /// See [`SelectPlan::is_quiet`].
    pub(super) fn is_quiet(&self) -> bool {
        let quiet = |branch: &Branch| {
            let converted = branch.converted.iter().flatten();
            let fails = |e: &Bound| can_fail(e, &|column| column.ty().typmod() >= 0);
            branch.plan.is_quiet() && !converted.into_iter().any(fails)
        };
        self.branches.iter().all(quiet)
    }

    /// See [`SelectPlan::makes_rows`].
    pub(super) fn makes_rows(&self) -> bool {
        self.branches.iter().any(|branch| branch.plan.makes_rows())
    }

    /// Whether rows are handed out as they come.
    fn streams(&self) -> bool {
        self.all && self.op == SetOperator::Union && self.sort.is_empty()
    }

    pub(super) fn run(
        self: &Arc<Sets>,
        ctx: &Arc<Context>,
        most: Option<u64>,
    ) -> SqlResult<Box<dyn RowStream>> {
        let limit = count(&self.limit, "LIMIT", ctx)?;
        let limit = limit.into_iter().chain(most).min();
        let skip = count(&self.offset, "OFFSET", ctx)?.unwrap_or(0);
        if limit == Some(0) {
            return Ok(Box::new(VecRows::new(Vec::new())));
        }
        if self.streams() {
            let (ctx, sets) = (ctx.clone(), self.clone());
            return Ok(Box::new(InTurn { ctx, sets, at: 0, open: None, skip, left: limit }));
        }
        let mut rows = self.together(ctx)?;
        if !self.sort.is_empty() {
            let mut keyed = Vec::with_capacity(rows.len());
            for row in rows {
                let key = self.sort.iter().map(|key| key.expr.eval(&row, &ctx.eval));
                keyed.push((key.collect::<SqlResult<Row>>()?, row));
            }
            ctx.keep_rows(KEPT, keyed.iter().map(|(key, _)| key))?;
            let by_keys = |a: &(Row, Row), b: &(Row, Row)| compare(&self.sort, &a.0, &b.0);
            keyed = sorted(keyed, by_keys, || ctx.check_cancel())?;
            rows = keyed.into_iter().map(|(_, row)| row).collect();
        }
        let [skip, most] = [Some(skip), limit].map(|n| n.map(|n| n as usize));
        let rows = rows.into_iter().skip(skip.unwrap_or(0)).take(most.unwrap_or(usize::MAX));
        Ok(Box::new(VecRows::new(rows.collect())))
    }

    /// All rows of the operation.
    fn together(&self, ctx: &Arc<Context>) -> SqlResult<Vec<Row>> {
        if self.op == SetOperator::Union {
            let mut out = Vec::new();
            for branch in &self.branches {
                all_rows(ctx, branch, |row| out.push(row))?;
            }
            let mut seen: HashMap<GroupKey, ()> = HashMap::new();
            if !self.all {
                // A copy of each that stays.
                ctx.keep_rows(KEPT, &out)?;
                out.retain(|row| seen.insert(GroupKey(row.clone()), ()).is_none());
            }
            return Ok(out);
        }
        let [left, right] = self.branches.as_slice() else {
            return Err(SqlError::internal("a set operation of two"));
        };
        let (mut rows, mut others) = (Vec::new(), HashMap::<GroupKey, usize>::new());
        all_rows(ctx, left, |row| rows.push(row))?;
        all_rows(ctx, right, |row| *others.entry(GroupKey(row)).or_default() += 1)?;
        // Of equal rows, so many as there are on both sides, or as there are more on the left; or
        // the first of them.
        let intersect = self.op == SetOperator::Intersect;
        let mut first: HashMap<GroupKey, ()> = HashMap::new();
        if !self.all {
            ctx.keep_rows(KEPT, &rows)?;
        }
        rows.retain(|row| {
            let key = GroupKey(row.clone());
            let there = match others.get_mut(&key) {
                None | Some(0) => false,
                Some(left) => {
                    *left -= usize::from(self.all);
                    true
                }
            };
            there == intersect && (self.all || first.insert(key, ()).is_none())
        });
        Ok(rows)
    }

    /// EXPLAIN.
    pub(super) fn explain(&self, ctx: &Context, telling: &mut Telling<'_>) -> Vec<PlanLine> {
        let (name, kind) = match (self.op, self.all) {
            (SetOperator::Union, true) => ("union all", "Append"),
            (SetOperator::Union, false) => ("union", "Unique"),
            (SetOperator::Intersect, true) => ("intersect all", "SetOp"),
            (SetOperator::Intersect, false) => ("intersect", "SetOp"),
            (_, true) => ("except all", "SetOp"),
            (_, false) => ("except", "SetOp"),
        };
        let mut lines = vec![PlanLine::operator(name, kind, None)];
        if self.limit.is_some() || self.offset.is_some() {
            let show = |b: &Option<Bound>| b.as_ref().map_or("none".into(), ToString::to_string);
            let (limit, offset) = (show(&self.limit), show(&self.offset));
            lines.push(format!("  limit: {limit}, offset: {offset}").into());
        }
        if !self.sort.is_empty() {
            let names = |at: usize| self.columns[at].name.clone();
            lines.push(SortKey::describe(&self.sort, "  sort: ", &names).into());
        }
        for branch in &self.branches {
            lines.extend(branch.plan.lines(ctx, telling).into_iter().map(PlanLine::indented));
        }
        lines
    }
}

/// More operations than this are for the general planner, which counts and watches its stack: a
/// text of a megabyte may be a tree of 100,000 of them, one within the other.
const FEW_OPERATIONS: usize = 64;

fn has_few_operations(body: &SetExpr) -> bool {
    let (mut left, mut count) = (vec![body], 0);
    while let Some(body) = left.pop() {
        match body {
            SetExpr::SetOperation { left: first, right, .. } => {
                count += 1;
                left.extend([&**first, &**right]);
            }
            SetExpr::Query(query) => left.push(&query.body),
            _ => {}
        }
        if count > FEW_OPERATIONS {
            return false;
        }
    }
    true
}

/// The operation and its operands: a chain of one kind of union is one union of many.
fn operands(body: &SetExpr) -> Option<(SetOperator, bool, Vec<&SetExpr>)> {
    let SetExpr::SetOperation { left, op, set_quantifier, right } = body else { return None };
    let is_all = |quantifier: &SetQuantifier| match quantifier {
        SetQuantifier::All => Some(true),
        SetQuantifier::None | SetQuantifier::Distinct => Some(false),
        _ => None,
    };
    let all = is_all(set_quantifier)?;
    if !matches!(op, SetOperator::Union | SetOperator::Intersect | SetOperator::Except) {
        return None;
    }
    let mut operands = vec![&**right];
    let mut first = &**left;
    while *op == SetOperator::Union
        && let SetExpr::SetOperation { left, op: inner, set_quantifier, right } = first
        && inner == op
        && is_all(set_quantifier) == Some(all)
    {
        operands.push(right);
        first = left;
    }
    operands.push(first);
    operands.reverse();
    Some((*op, all, operands))
}

/// Plans one of the queries; the types of its columns, unknown where literals have none.
fn plan_branch(
    ctx: &Context,
    operand: &SetExpr,
    params: &mut ParamTypes,
) -> SqlResult<Option<Planned>> {
    if is_open(operand, params) {
        return Ok(None);
    }
    let plan = match operand {
        // All of a recursion is made, and a LIMIT around it may want less.
        SetExpr::Query(query) if query.with.as_ref().is_some_and(|with| with.recursive) => None,
        SetExpr::Query(query) => plan_any(ctx, query, params)?,
        body => plan_any(ctx, &query_of(body), params)?,
    };
    let Some(plan) = plan.filter(|plan| !plan.locks_rows()) else { return Ok(None) };
    let mut types: Vec<SqlType> = plan.columns().iter().map(|c| c.ty.clone()).collect();
    for at in untyped_items(operand) {
        if let Some(ty) = types.get_mut(at) {
            *ty = SqlType::Unknown;
        }
    }
    Ok(Some(Planned { plan, types }))
}

/// A query that is nothing but its body.
pub(super) fn query_of(body: &SetExpr) -> ast::Query {
    ast::Query {
        with: None,
        body: Box::new(body.clone()),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// Whether it selects a parameter of which nobody has said yet what it is: the other side may.
pub(super) fn is_open(operand: &SetExpr, params: &ParamTypes) -> bool {
    let SetExpr::Select(select) = operand else {
        return match operand {
            SetExpr::Query(query) => is_open(&query.body, params),
            _ => false,
        };
    };
    select.projection.iter().any(|item| {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            return false;
        };
        braid_scalar::parameter(expr).is_some_and(|index| params.get(index).is_none())
    })
}

/// The columns of the whole; `None` where general plans know more, or that something is wrong.
/// Unless `all` rows of a union come as they are, they are compared.
fn columns(planned: &[Planned], all: bool) -> Option<Vec<ColumnInfo>> {
    let first = planned.first()?;
    if planned.iter().any(|branch| branch.types.len() != first.types.len()) {
        return None;
    }
    let mut out = Vec::with_capacity(first.types.len());
    for (at, named) in first.plan.columns().iter().enumerate() {
        let mut ty = first.types[at].clone();
        for other in &planned[1..] {
            ty = common_type(&[&ty, &other.types[at]])?;
        }
        let plain = |branch: &Planned| {
            let collation = &branch.plan.columns()[at].collation;
            matches!(collation, Collated::Default) && collation.is_by_bytes()
        };
        let same = planned.iter().all(|branch| branch.types[at] == ty);
        // Texts of different lengths are compared without their padding.
        let padded = matches!(ty, SqlType::Char(_)) && !same;
        if !planned.iter().all(plain) || !all && (padded || !ty.is_comparable()) {
            return None;
        }
        out.push(ColumnInfo::computed(named.name.clone(), ty));
    }
    Some(out)
}

/// The columns of a branch in the types of the whole; `None` where they are so.
fn converted(
    types: &[SqlType],
    columns: &[ColumnInfo],
    params: &mut ParamTypes,
) -> SqlResult<Option<Vec<Bound>>> {
    // A literal travels as the text that it was written as.
    let is_so = |ty: &SqlType, wanted: &SqlType| {
        ty == wanted || *ty == SqlType::Unknown && *wanted == SqlType::Text
    };
    if types.iter().zip(columns).all(|(ty, column)| is_so(ty, &column.ty)) {
        return Ok(None);
    }
    let mut out = Vec::with_capacity(types.len());
    for (at, (ty, column)) in types.iter().zip(columns).enumerate() {
        out.push(match is_so(ty, &column.ty) {
            true => Bound::column(at, column.ty.clone()),
            false => {
                let value = Bound::column(at, ty.clone());
                coerce(value, &column.ty, CastContext::Explicit, params)?
            }
        });
    }
    Ok(Some(out))
}

/// ORDER BY numbers and names of columns; `None` if it asks for more.
fn sort_keys(q: &ast::Query, columns: &[ColumnInfo]) -> SqlResult<Option<Vec<SortKey>>> {
    let Some(order) = &q.order_by else { return Ok(Some(Vec::new())) };
    let OrderByKind::Expressions(list) = &order.kind else { return Ok(None) };
    let mut out = Vec::with_capacity(list.len());
    for key in list {
        let at = match &key.expr {
            Expr::Identifier(name) => {
                let name = ident_name(name);
                let mut named = (0..columns.len()).filter(|at| columns[*at].name == name);
                named.next().filter(|_| named.next().is_none())
            }
            expr => braid_scalar::column_by_number(expr, columns.len(), "ORDER BY")?,
        };
        let Some(at) = at else { return Ok(None) };
        columns[at].ty.check_comparable("ordering")?;
        let column = Bound::column(at, columns[at].ty.clone());
        out.push(SortKey::by(order_form(column)?, &key.options));
    }
    Ok(Some(out))
}

/// Takes all rows of a branch, which stay on the statement's account.
fn all_rows(ctx: &Arc<Context>, branch: &Branch, mut take: impl FnMut(Row)) -> SqlResult<()> {
    let mut stream = branch.plan.run_for(ctx, None)?;
    while let Some(batch) = stream.next_batch()? {
        ctx.check_cancel()?;
        let rows = branch.rows(batch, ctx)?;
        ctx.keep_rows(KEPT, &rows)?;
        rows.into_iter().for_each(&mut take);
    }
    Ok(())
}

/// The rows of UNION ALL, one branch after the other.
struct InTurn {
    ctx: Arc<Context>,
    sets: Arc<Sets>,
    /// The branch whose turn it is.
    at: usize,
    open: Option<Box<dyn RowStream>>,
    skip: u64,
    left: Option<u64>,
}

impl RowStream for InTurn {
    fn next_batch(&mut self) -> SqlResult<Option<Vec<Row>>> {
        while self.left != Some(0)
            && let Some(branch) = self.sets.branches.get(self.at)
        {
            let most = self.left.map(|left| left.saturating_add(self.skip));
            let open = match &mut self.open {
                Some(open) => open,
                None => self.open.insert(branch.plan.run_for(&self.ctx, most)?),
            };
            let Some(mut batch) = open.next_batch()? else {
                (self.at, self.open) = (self.at + 1, None);
                continue;
            };
            let passed = usize::try_from(self.skip).unwrap_or(usize::MAX).min(batch.len());
            self.skip -= passed as u64;
            batch.drain(..passed);
            if let Some(left) = &mut self.left {
                batch.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= batch.len() as u64;
            }
            if !batch.is_empty() {
                return branch.rows(batch, &self.ctx).map(Some);
            }
        }
        Ok(None)
    }
}
