//! Subqueries that become joins.
//!
//! ```text
//!   WHERE EXISTS (.. s.k = t.k)            t LEFT SEMI JOIN s ON s.k = t.k
//!   WHERE NOT EXISTS (..)                  t LEFT ANTI JOIN s ON ..
//!   WHERE t.a [NOT] IN (SELECT s.b ..)     the same, with t.a = s.b
//!   EXISTS or IN inside of an expression   t LEFT MARK JOIN s: a boolean column
//!   (SELECT max(s.b) .. s.k = t.k)         t LEFT JOIN (SELECT s.k, max(s.b) .. GROUP BY s.k)
//!   (SELECT s.b .. s.id = t.k), id a key   t LEFT JOIN s ON s.id = t.k
//!   (SELECT max(s.b) FROM s)               (SELECT max(s.b) FROM s) CROSS JOIN t
//! ```
//! A subquery is computed for all rows then, also for those that the row form would not have asked
//! for: so one that can fail keeps the row form, and so does one whose plan cannot be taken apart
//! ([`crate::decorrelate`]). One without outer columns keeps it as well, because it is computed
//! once; only IN as a condition and aggregates, which have always one row, are joins also then.
//!
//! `a NOT IN (SELECT b ..)` with NULLs is three anti joins: no row has `a = b`, none has `b IS
//! NULL`, and if `a IS NULL` there is no row at all. What is NOT NULL needs only the first.

use std::collections::HashMap;

use braid_scalar::{Bound, CmpOp, Node};
use braid_types::{Datum, SqlResult, SqlType};
use datafusion::common::{Column, ExprSchema, JoinType, Result};
use datafusion::logical_expr::logical_plan::{Aggregate, Filter, TableScan};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, when};

use super::call::AppliedSubquery;
use super::function_table::columns_of;
use super::{Binder, SlotKind, column, fitted};
use crate::arrow_form;
use crate::decorrelate::outer::{has_outer, replace_columns, substitute, unaliased};
use crate::decorrelate::pull::{self, Core};
use crate::error::from_df;
use crate::exec::subquery::Shape;
use crate::exec::table::layout_of;

/// A subquery's part in a join: its plan, the values of its columns, the conditions of the join.
struct Side {
    plan: LogicalPlan,
    values: Vec<Expr>,
    conditions: Vec<Expr>,
}

/// Whether an expression holds a subquery.
pub(super) fn has_subquery(bound: &Bound) -> bool {
    matches!(bound.node(), Node::Apply(..)) || bound.children().into_iter().any(has_subquery)
}

/// The subquery that an expression is.
pub(super) fn subquery_of(bound: &Bound) -> Option<(&AppliedSubquery, &[Bound])> {
    let Node::Apply(code, args) = bound.node() else { return None };
    Some((code.as_any().downcast_ref::<AppliedSubquery>()?, args))
}

impl Binder<'_> {
    /// Takes the subqueries of a condition into the plan; what is left of the condition.
    pub(super) fn lift_conditions(
        &mut self,
        plan: &mut LogicalPlan,
        condition: &Bound,
    ) -> SqlResult<Bound> {
        let conjuncts = condition.conjuncts();
        for conjunct in conjuncts.iter().filter(|c| !has_subquery(c)) {
            self.remember(conjunct);
        }
        let mut rest = Vec::with_capacity(conjuncts.len());
        for conjunct in &conjuncts {
            if !has_subquery(conjunct) {
                rest.push(conjunct.clone());
            } else if !self.join_condition(plan, conjunct)? {
                rest.push(self.lift(plan, conjunct)?);
            }
        }
        Ok(Bound::and(rest))
    }

    /// Remembers `column = constant`.
    fn remember(&mut self, conjunct: &Bound) {
        let Node::Compare(CmpOp::Eq, left, right) = conjunct.node() else { return };
        let fixed = |b: &Bound| matches!(b.node(), Node::Const(_) | Node::Param(_));
        let pair = match (left.as_column(), right.as_column()) {
            (Some(at), _) if fixed(right) => (at, right.clone()),
            (_, Some(at)) if fixed(left) => (at, left.clone()),
            _ => return,
        };
        self.level().fixed.push(pair);
    }

    /// Makes a condition that is a subquery a semi or anti join, if it can be one.
    fn join_condition(&mut self, plan: &mut LogicalPlan, condition: &Bound) -> SqlResult<bool> {
        let mut inner = condition;
        let mut negated = false;
        while let Node::Not(deeper) = inner.node() {
            inner = deeper;
            negated = !negated;
        }
        let Some((applied, args)) = subquery_of(inner) else { return Ok(false) };
        let Some(mut side) = self.side(applied, args)? else { return Ok(false) };
        let kind = if negated { JoinType::LeftAnti } else { JoinType::LeftSemi };
        match &applied.subquery.shape {
            Shape::Exists if !side.conditions.is_empty() => {}
            Shape::In(_) if negated => return self.not_in(plan, applied, args, side),
            Shape::In(_) => {
                let alone = side.conditions.is_empty();
                let equal = self.equalities(applied, args, &side)?;
                side.conditions.extend(equal);
                if alone {
                    // The subquery's rows are few or found by a key: the earlier, the better.
                    *plan = sunk(plan, side.plan, kind, side.conditions).map_err(from_df)?;
                    return Ok(true);
                }
            }
            Shape::Quantified(op, _, all) if !side.conditions.is_empty() => {
                // `x < ALL (..)` holds if there is no row with `NOT x < y`.
                let op = if *all { op.negated() } else { *op };
                return self.quantified_join(plan, applied, args, side, (op, *all, negated));
            }
            _ => return Ok(false),
        }
        *plan = joined(plan, side.plan, kind, side.conditions).map_err(from_df)?;
        Ok(true)
    }

    fn quantified_join(
        &mut self,
        plan: &mut LogicalPlan,
        applied: &AppliedSubquery,
        args: &[Bound],
        mut side: Side,
        (op, all, negated): (CmpOp, bool, bool),
    ) -> SqlResult<bool> {
        // ANY and NOT ALL look for a row; ALL and NOT ANY for none, where NULL counts as one.
        let kind = if all == negated { JoinType::LeftSemi } else { JoinType::LeftAnti };
        if kind == JoinType::LeftAnti && (self.nullable(&args[0]) || applied.nullable[0]) {
            return Ok(false);
        }
        let Shape::Quantified(_, converter, _) = &applied.subquery.shape else { return Ok(false) };
        let compared = self.over_value(converter, 0, applied, &side);
        let compared = Bound::new(Node::Compare(op, args[0].clone(), compared), SqlType::Bool);
        let condition = self.plan_expr(&compared)?;
        side.conditions.push(self.without_outer(condition, applied, args)?);
        *plan = joined(plan, side.plan, kind, side.conditions).map_err(from_df)?;
        Ok(true)
    }

    /// NOT IN with SQL's NULLs, see the [module documentation](self).
    fn not_in(
        &mut self,
        plan: &mut LogicalPlan,
        applied: &AppliedSubquery,
        args: &[Bound],
        side: Side,
    ) -> SqlResult<bool> {
        let needles = applied.subquery.needles();
        let partial = (0..needles).any(|at| self.nullable(&args[at]) || applied.nullable[at]);
        if partial && needles > 1 {
            return Ok(false);
        }
        let anti = |plan: &LogicalPlan, extra: Vec<Expr>| {
            let conditions = side.conditions.iter().cloned().chain(extra).collect();
            joined(plan, side.plan.clone(), JoinType::LeftAnti, conditions).map_err(from_df)
        };
        let equal = self.equalities(applied, args, &side)?;
        *plan = anti(plan, equal)?;
        if !partial {
            return Ok(true);
        }
        if applied.nullable[0] {
            let null = self.without_outer(side.values[0].clone(), applied, args)?.is_null();
            *plan = anti(plan, vec![null])?;
        }
        if self.nullable(&args[0]) {
            let null = self.plan_expr(&args[0])?.is_null();
            *plan = anti(plan, vec![null])?;
        }
        Ok(true)
    }

    /// Replaces the subqueries inside of an expression by columns of joins, where they can be.
    pub(super) fn lift(&mut self, plan: &mut LogicalPlan, bound: &Bound) -> SqlResult<Bound> {
        if !has_subquery(bound) {
            return Ok(bound.clone());
        }
        let mut error = None;
        let lifted = bound.map_children(&mut |child| match self.lift(plan, child) {
            Ok(child) => child,
            Err(e) => {
                error.get_or_insert(e);
                child.clone()
            }
        });
        if let Some(error) = error {
            return Err(error);
        }
        let Some((applied, args)) = subquery_of(&lifted) else { return Ok(lifted) };
        if applied.subquery.outer.is_empty() {
            return Ok(self.one_row_join(plan, applied)?.unwrap_or(lifted));
        }
        let found = match &applied.subquery.shape {
            Shape::Exists => match self.side(applied, args)? {
                Some(side) if !side.conditions.is_empty() => {
                    Some(self.mark(plan, side.plan, side.conditions)?)
                }
                _ => None,
            },
            Shape::In(_) => self.mark_in(plan, applied, args)?,
            Shape::Scalar | Shape::First => self.scalar_join(plan, applied, args)?,
            _ => None,
        };
        Ok(found.unwrap_or(lifted))
    }

    /// A column that tells whether the other side has a row.
    fn mark(
        &mut self,
        plan: &mut LogicalPlan,
        inner: LogicalPlan,
        conditions: Vec<Expr>,
    ) -> SqlResult<Bound> {
        let mut columns = columns_of(plan);
        let (inner, conditions) = self.renamed(inner, conditions)?;
        let marked = LogicalPlanBuilder::from(plan.clone())
            .join_on(inner, JoinType::LeftMark, conditions)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        let name = self.fresh("mark");
        columns.extend(columns_of(&marked).pop().map(|mark| mark.alias(name.clone())));
        *plan = LogicalPlanBuilder::from(marked)
            .project(columns)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        let slot = self.add_column(&name, SqlType::Bool);
        Ok(Bound::column(slot, SqlType::Bool))
    }

    /// A plan whose columns have no table, and conditions that find them. DataFusion names a mark
    /// after the table that all columns of the other side are of, and would look for it by that
    /// name when it has left out some of them.
    fn renamed(
        &mut self,
        plan: LogicalPlan,
        conditions: Vec<Expr>,
    ) -> SqlResult<(LogicalPlan, Vec<Expr>)> {
        let known = plan.schema().columns();
        let names: Vec<String> = known.iter().map(|_| self.fresh("in")).collect();
        let new = known.iter().cloned().zip(names.iter().map(|name| column(name))).collect();
        let conditions = conditions.into_iter().map(|e| replace_columns(e, &new));
        let conditions = conditions.collect::<Result<Vec<_>>>().map_err(from_df)?;
        let named = known.into_iter().zip(&names).map(|(c, name)| Expr::Column(c).alias(name));
        let plan = LogicalPlanBuilder::from(plan)
            .project(named)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        Ok((plan, conditions))
    }

    /// IN as a value: true if a row is equal; else NULL if a NULL could be; else false.
    fn mark_in(
        &mut self,
        plan: &mut LogicalPlan,
        applied: &AppliedSubquery,
        args: &[Bound],
    ) -> SqlResult<Option<Bound>> {
        let Some(side) = self.side(applied, args)? else { return Ok(None) };
        let needles = applied.subquery.needles();
        let (left, right) = (self.nullable(&args[0]), applied.nullable[0]);
        if side.conditions.is_empty()
            || needles > 1 && (0..needles).any(|n| self.nullable(&args[n]) || applied.nullable[n])
        {
            return Ok(None);
        }
        let with = |extra: Vec<Expr>| side.conditions.iter().cloned().chain(extra).collect();
        let equal = self.equalities(applied, args, &side)?;
        let found = self.mark(plan, side.plan.clone(), with(equal))?;
        let mut unknown = Vec::new();
        if needles == 1 && right {
            let null = self.without_outer(side.values[0].clone(), applied, args)?.is_null();
            unknown.push(self.mark(plan, side.plan.clone(), with(vec![null]))?);
        }
        if needles == 1 && left {
            let any = self.mark(plan, side.plan.clone(), with(Vec::new()))?;
            let null = Bound::new(Node::IsNull(args[0].clone(), false), SqlType::Bool);
            unknown.push(Bound::and(vec![null, any]));
        }
        if unknown.is_empty() {
            return Ok(Some(found));
        }
        let null = Bound::constant(Datum::Null, SqlType::Bool);
        Ok(Some(Bound::or(vec![found, Bound::and(vec![null, Bound::or(unknown)])])))
    }

    /// A value that is the same for all rows, of an aggregate that has always one row.
    fn one_row_join(
        &mut self,
        plan: &mut LogicalPlan,
        applied: &AppliedSubquery,
    ) -> SqlResult<Option<Bound>> {
        if applied.risky || !matches!(applied.subquery.shape, Shape::Scalar | Shape::First) {
            return Ok(None);
        }
        let (core, values) =
            pull::open(applied.subquery.plan.clone(), applied.values.clone()).map_err(from_df)?;
        let one_row = matches!(&core, LogicalPlan::Aggregate(a) if a.group_expr.is_empty());
        let Some(value) = values.into_iter().next().filter(|_| one_row) else { return Ok(None) };
        let name = self.fresh("sub");
        let columns: Vec<Expr> = columns_of(plan).into_iter().chain([column(&name)]).collect();
        // The row stands on the left: that side is held.
        *plan = LogicalPlanBuilder::from(core)
            .project([value.alias(name.clone())])
            .and_then(|one| one.cross_join(plan.clone()))
            .and_then(|b| b.project(columns))
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        let ty = applied.subquery.types[0].clone();
        let slot = self.add_column(&name, ty.clone());
        Ok(Some(Bound::column(slot, ty)))
    }

    /// A value that is one row of a join at most.
    fn scalar_join(
        &mut self,
        plan: &mut LogicalPlan,
        applied: &AppliedSubquery,
        args: &[Bound],
    ) -> SqlResult<Option<Bound>> {
        if applied.risky || !self.args_are_safe(args) {
            return Ok(None);
        }
        let (core, values) =
            pull::open(applied.subquery.plan.clone(), applied.values.clone()).map_err(from_df)?;
        let Some(value) = values.into_iter().next() else { return Ok(None) };
        let side = match &core {
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
                self.grouped_side(aggregate, value)?
            }
            _ => self.keyed_side(&core, value)?,
        };
        let Some((core, value)) = side else { return Ok(None) };
        let mut conditions = Vec::with_capacity(core.conditions.len());
        let inner = self.narrowed(core.plan, &core.conditions, applied, args)?;
        for condition in core.conditions {
            conditions.push(self.without_outer(condition, applied, args)?);
        }
        let value = self.without_outer(value, applied, args)?;
        let name = self.fresh("sub");
        let columns: Vec<Expr> =
            columns_of(plan).into_iter().chain([value.alias(name.clone())]).collect();
        *plan = LogicalPlanBuilder::from(plan.clone())
            .join_on(inner, JoinType::Left, conditions)
            .and_then(|b| b.project(columns))
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        let ty = applied.subquery.types[0].clone();
        let slot = self.add_column(&name, ty.clone());
        Ok(Some(Bound::column(slot, ty)))
    }

    /// An aggregate of all rows as one for each key: what a missing group would have given stands
    /// in for it.
    fn grouped_side(
        &mut self,
        aggregate: &Aggregate,
        value: Expr,
    ) -> SqlResult<Option<(Core, Expr)>> {
        let core = pull::pull_aggregate(aggregate, &mut || self.fresh("key")).map_err(from_df)?;
        let Some(core) = core else { return Ok(None) };
        let Some((key, _)) = core.conditions.first().and_then(pull::key) else { return Ok(None) };
        let mut stand_ins = HashMap::new();
        for (expr, name) in aggregate.aggr_expr.iter().zip(aggregate.schema.columns()) {
            let empty = match unaliased(expr) {
                Expr::AggregateFunction(call) => {
                    call.func.default_value(aggregate.schema.data_type(&name).map_err(from_df)?)
                }
                _ => return Ok(None),
            };
            let empty = empty.map_err(from_df)?;
            if !empty.is_null() {
                // Keys that were joined are not NULL.
                let shown = when(key.clone().is_null(), Expr::Literal(empty, None))
                    .otherwise(Expr::Column(name.clone()))
                    .map_err(from_df)?;
                stand_ins.insert(name, shown);
            }
        }
        let value = replace_columns(value, &stand_ins).map_err(from_df)?;
        Ok(Some((core, value)))
    }

    /// Rows of a table by a unique key.
    fn keyed_side(&mut self, plan: &LogicalPlan, value: Expr) -> SqlResult<Option<(Core, Expr)>> {
        let core = pull::pull(plan, &mut || self.fresh("key")).map_err(from_df)?;
        let Some(mut core) = core else { return Ok(None) };
        let keys: Vec<Column> = core
            .conditions
            .iter()
            .filter_map(pull::key)
            .filter_map(|(inner, _)| inner.try_as_col().cloned())
            .collect();
        if has_outer(&value) || !one_row_each(&core.plan, &keys) {
            return Ok(None);
        }
        // Computed below the join, so that it is NULL where there is no row.
        let name = self.fresh("val");
        let mut columns = vec![value.alias(name.clone())];
        for condition in &core.conditions {
            for used in condition.column_refs() {
                let used = Expr::Column(used.clone());
                if !columns.contains(&used) {
                    columns.push(used);
                }
            }
        }
        core.plan = LogicalPlanBuilder::from(core.plan)
            .project(columns)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        Ok(Some((core, column(&name))))
    }

    /// The subquery taken apart, if it can be.
    fn side(&mut self, applied: &AppliedSubquery, args: &[Bound]) -> SqlResult<Option<Side>> {
        if applied.risky || !self.args_are_safe(args) {
            return Ok(None);
        }
        let (core, values) =
            pull::open(applied.subquery.plan.clone(), applied.values.clone()).map_err(from_df)?;
        let core = match core {
            // Whether there is a row does not depend on how many there are.
            LogicalPlan::Limit(limit)
                if matches!(applied.subquery.shape, Shape::Exists) && pull::keeps_some(&limit) =>
            {
                pull::open((*limit.input).clone(), Vec::new()).map_err(from_df)?.0
            }
            other => other,
        };
        let pulled = pull::pull(&core, &mut || self.fresh("key")).map_err(from_df)?;
        let Some(core) = pulled else { return Ok(None) };
        let plan = self.narrowed(core.plan, &core.conditions, applied, args)?;
        let mut conditions = Vec::with_capacity(core.conditions.len());
        for condition in core.conditions {
            conditions.push(self.without_outer(condition, applied, args)?);
        }
        Ok(Some(Side { plan, values, conditions }))
    }

    /// The other side with what is known about its keys: `t.a = 5` and `s.k = t.a`.
    fn narrowed(
        &mut self,
        plan: LogicalPlan,
        conditions: &[Expr],
        applied: &AppliedSubquery,
        args: &[Bound],
    ) -> SqlResult<LogicalPlan> {
        let outer = &args[applied.subquery.needles()..];
        let mut values = HashMap::new();
        for ((name, _), arg) in applied.subquery.outer.iter().zip(outer) {
            let fixed = self.level().fixed.clone();
            let found = fixed.iter().find(|(at, _)| arg.as_column() == Some(*at));
            let found = found.map(|(_, constant)| fitted(constant, arg.ty()));
            // In another form than the column's it would meet no column there.
            let carrier = |bound: &Bound| arrow_form::data_type(bound.ty());
            if let Some(constant) = found.filter(|constant| carrier(constant) == carrier(arg)) {
                values.insert(name.clone(), self.plan_expr(&constant)?);
            }
        }
        let mut filters = Vec::new();
        for condition in conditions.iter().filter(|c| pull::key(c).is_some()) {
            let known = substitute(condition.clone(), &values).map_err(from_df)?;
            if !has_outer(&known) {
                filters.push(known);
            }
        }
        match conjunction(filters) {
            None => Ok(plan),
            Some(filter) => LogicalPlanBuilder::from(plan)
                .filter(filter)
                .and_then(LogicalPlanBuilder::build)
                .map_err(from_df),
        }
    }

    fn args_are_safe(&self, args: &[Bound]) -> bool {
        !args.iter().any(|a| self.can_fail(a))
    }

    /// Needles equal to the subquery's columns.
    fn equalities(
        &mut self,
        applied: &AppliedSubquery,
        args: &[Bound],
        side: &Side,
    ) -> SqlResult<Vec<Expr>> {
        let Shape::In(converters) = &applied.subquery.shape else { return Ok(Vec::new()) };
        let mut equal = Vec::with_capacity(converters.len());
        for (at, converter) in converters.iter().enumerate() {
            let value = self.over_value(converter, at, applied, side);
            let both = Node::Compare(CmpOp::Eq, args[at].clone(), value);
            let condition = self.plan_expr(&Bound::new(both, SqlType::Bool))?;
            equal.push(self.without_outer(condition, applied, args)?);
        }
        Ok(equal)
    }

    /// A conversion of the subquery's column over the plan that has it.
    fn over_value(
        &mut self,
        converter: &Bound,
        at: usize,
        applied: &AppliedSubquery,
        side: &Side,
    ) -> Bound {
        let kind = SlotKind::Plan(side.values[at].clone());
        let slot = self.add_slot(kind, applied.subquery.types[at].clone());
        converter.remap_columns(&|_| slot)
    }

    /// An expression of the subquery with the outer columns as this level has them.
    fn without_outer(
        &mut self,
        expr: Expr,
        applied: &AppliedSubquery,
        args: &[Bound],
    ) -> SqlResult<Expr> {
        let outer = &args[applied.subquery.needles()..];
        let mut values = HashMap::new();
        for ((name, _), arg) in applied.subquery.outer.iter().zip(outer) {
            values.insert(name.clone(), self.plan_expr(arg)?);
        }
        substitute(expr, &values).map_err(from_df)
    }

    /// Whether a value of this level may be NULL.
    pub(super) fn nullable(&mut self, bound: &Bound) -> bool {
        match bound.node() {
            Node::Const(value) => value.is_null(),
            Node::Column(at) => {
                let level = self.level();
                if let Some(column) = level.scope.columns().get(*at).filter(|_| *at < level.inputs)
                {
                    return column.nullable;
                }
                let group = level.groups.iter().find(|g| g.slot == *at).map(|g| g.bound.clone());
                group.is_none_or(|g| self.nullable(&g))
            }
            Node::Cast(inner, _) if inner.ty().is_integer() && bound.ty().is_integer() => {
                self.nullable(inner)
            }
            _ => true,
        }
    }
}

/// As [`joined`], but below inner joins, at the side whose columns the conditions name.
fn sunk(
    plan: &LogicalPlan,
    inner: LogicalPlan,
    kind: JoinType,
    conditions: Vec<Expr>,
) -> Result<LogicalPlan> {
    let LogicalPlan::Join(join) = plan else { return joined(plan, inner, kind, conditions) };
    let left_stays = matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti);
    let named = |side: &LogicalPlan| {
        let mut columns = conditions.iter().flat_map(Expr::column_refs);
        columns.all(|c| side.schema().has_column(c) || inner.schema().has_column(c))
    };
    let mut lower = join.clone();
    if (join.join_type == JoinType::Inner || left_stays) && named(&join.left) {
        lower.left = sunk(&join.left, inner, kind, conditions)?.into();
    } else if join.join_type == JoinType::Inner && named(&join.right) {
        lower.right = sunk(&join.right, inner, kind, conditions)?.into();
    } else {
        return joined(plan, inner, kind, conditions);
    }
    Ok(LogicalPlan::Join(lower))
}

/// A plan joined with a subquery's.
fn joined(
    plan: &LogicalPlan,
    inner: LogicalPlan,
    kind: JoinType,
    conditions: Vec<Expr>,
) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(plan.clone()).join_on(inner, kind, conditions)?.build()
}

/// Whether a table has at most one row for each value of these columns.
fn one_row_each(plan: &LogicalPlan, keys: &[Column]) -> bool {
    match plan {
        LogicalPlan::Filter(Filter { input, .. }) => one_row_each(input, keys),
        LogicalPlan::TableScan(TableScan { source, table_name, .. }) => {
            let Some(layout) = layout_of(source) else { return false };
            let table = &layout.table;
            let named = |id: u32| {
                table.columns.iter().filter(|c| c.id == id).any(|c| {
                    let own = |k: &&Column| k.relation.as_ref() == Some(table_name);
                    keys.iter().filter(own).any(|k| k.name == c.name)
                })
            };
            !table.has_row_id() && table.key_columns().into_iter().all(&named)
                || layout
                    .indexes
                    .iter()
                    .filter(|i| i.tells_rows_apart() && !i.index.columns.is_empty())
                    .any(|i| i.index.columns.iter().all(|c| named(c.column)))
        }
        _ => false,
    }
}
