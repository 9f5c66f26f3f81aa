//! UNION, INTERSECT, EXCEPT, VALUES, recursive queries.

use std::ops::ControlFlow;
use std::sync::Arc;

use braid_scalar::{Bound, ScopeColumn, coerce, common_type, is_aggregate};
use braid_types::{CastContext, Collated, Place, SqlError, SqlResult, SqlState, SqlType};
use braid_walk::Walk;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::Column;
use datafusion::datasource::provider_as_source;
use datafusion::functions_aggregate::expr_fn::max;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, Union, WindowFunctionDefinition, lit,
};
use sqlparser::ast::{self, Visitor};

use super::from::Item;
use super::function_table::unnested;
use super::grouped_sets::gives_sets;
use super::recursion::{HIDDEN, reference};
use super::{Binder, Bounded, Cte, Named, OutputColumn, Relation, Slot, SlotKind, column};
use crate::arrow_form;
use crate::error::from_df;
use crate::exec::scalar;
use crate::exec::set_returning::values_expr;

impl Binder<'_> {
    pub(super) fn set_operation(
        &mut self,
        left: &ast::SetExpr,
        op: ast::SetOperator,
        quantifier: ast::SetQuantifier,
        right: &ast::SetExpr,
    ) -> SqlResult<Bounded> {
        let all = match quantifier {
            ast::SetQuantifier::All => true,
            ast::SetQuantifier::None | ast::SetQuantifier::Distinct => false,
            other => return Err(SqlError::unsupported(format!("{op} {other}"))),
        };
        // A chain of one kind of union is one union of many: a plan that is wide, not deep.
        let mut operands = vec![right];
        let mut first = left;
        while op == ast::SetOperator::Union
            && let ast::SetExpr::SetOperation { left, op: inner, set_quantifier, right } = first
            && *inner == op
            && matches!(set_quantifier, ast::SetQuantifier::All) == all
        {
            operands.push(right);
            first = left;
        }
        operands.push(first);
        operands.reverse();
        let mut inputs = Vec::with_capacity(operands.len());
        for operand in &operands {
            let mut input = self.deeper(|b| b.set_expr(operand))?;
            for at in braid_scalar::untyped_items(operand) {
                if let Some(column) = input.columns.get_mut(at) {
                    column.ty = SqlType::Unknown;
                }
            }
            inputs.push(input);
        }
        let types = common_types(&inputs, op, &operands)?;
        let collations = common_collations(&inputs, types.len());
        if !(all && op == ast::SetOperator::Union) {
            types.iter().try_for_each(|ty| ty.check_comparable("equality"))?;
            collations.iter().try_for_each(Collated::check_implicit)?;
        }
        let names: Vec<String> = types.iter().map(|_| self.fresh("u")).collect();
        let outputs: Vec<OutputColumn> = inputs[0]
            .columns
            .iter()
            .zip(&types)
            .zip(names.iter().zip(collations))
            .map(|((c, ty), (name, collation))| OutputColumn {
                name: c.name.clone(),
                ty: ty.clone(),
                collation,
                expr: column(name),
                origin: None,
                nullable: true,
            })
            .collect();
        let mut plans = Vec::with_capacity(inputs.len());
        for input in inputs {
            plans.push(Arc::new(self.converted(input, &types, &names, "UNION")?));
        }
        let kept = outputs.iter().map(|c| c.collation.clone());
        let typed: Vec<Named> =
            names.into_iter().zip(types).zip(kept).map(|((n, ty), c)| (n, ty, c)).collect();
        let plan = match op {
            ast::SetOperator::Union => {
                let union = Union::try_new_with_loose_types(plans).map_err(from_df)?;
                let whole = LogicalPlan::Union(union);
                if all { whole } else { self.distinct_plan(whole, &typed)? }
            }
            ast::SetOperator::Intersect | ast::SetOperator::Except => {
                let intersect = op == ast::SetOperator::Intersect;
                let (left, right) = (plans[0].as_ref().clone(), plans[1].as_ref().clone());
                if all {
                    self.compared_bags(left, right, typed, intersect)?
                } else {
                    self.compared(left, right, &typed, intersect)?
                }
            }
            other => return Err(SqlError::unsupported(other)),
        };
        Ok(Bounded { plan, columns: outputs })
    }

    /// The query's columns in these types under these names.
    pub(super) fn converted(
        &mut self,
        bound: Bounded,
        types: &[SqlType],
        names: &[String],
        _what: &str,
    ) -> SqlResult<LogicalPlan> {
        let exprs = self.isolated(|b| {
            b.level().slots = bound
                .columns
                .iter()
                .map(|c| {
                    // A literal travels as the text that it was written as.
                    let open = c.ty == SqlType::Unknown;
                    let ty = if open { SqlType::Text } else { c.ty.clone() };
                    Slot { kind: SlotKind::Plan(c.expr.clone()), ty }
                })
                .collect();
            let mut exprs = Vec::new();
            for (at, (ty, name)) in types.iter().zip(names).enumerate() {
                let value = Bound::column(at, bound.columns[at].ty.clone());
                let value = coerce(value, ty, CastContext::Explicit, b)?;
                exprs.push(b.plan_expr(&value)?.alias(name.clone()));
            }
            Ok(exprs)
        })?;
        LogicalPlanBuilder::from(bound.plan)
            .project(exprs)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)
    }

    /// INTERSECT and EXCEPT: both sides are tagged, united and grouped.
    fn compared(
        &mut self,
        left: LogicalPlan,
        right: LogicalPlan,
        columns: &[Named],
        intersect: bool,
    ) -> SqlResult<LogicalPlan> {
        let (in_left, in_right) = (self.fresh("l"), self.fresh("r"));
        let tagged = |plan: LogicalPlan, l: i32, r: i32| {
            let mut exprs: Vec<Expr> = columns.iter().map(|(n, ..)| column(n)).collect();
            exprs.push(lit(l).alias(in_left.clone()));
            exprs.push(lit(r).alias(in_right.clone()));
            LogicalPlanBuilder::from(plan).project(exprs).and_then(LogicalPlanBuilder::build)
        };
        let (left, right) =
            (tagged(left, 1, 0).map_err(from_df)?, tagged(right, 0, 1).map_err(from_df)?);
        let mut keys = Vec::new();
        for (name, ty, collation) in columns {
            let key = self.equal_form(column(name), ty, collation)?;
            keys.push(key.alias(format!("{name}_key")));
        }
        let (any_left, any_right) = (self.fresh("l"), self.fresh("r"));
        let mut results = vec![
            max(column(&in_left)).alias(any_left.clone()),
            max(column(&in_right)).alias(any_right.clone()),
        ];
        for (name, ty, _) in columns {
            results.push(self.first_value(column(name), ty).alias(name.clone()));
        }
        let wanted =
            column(&any_left).eq(lit(1)).and(column(&any_right).eq(lit(i32::from(intersect))));
        LogicalPlanBuilder::from(left)
            .union(right)
            .and_then(|b| b.aggregate(keys, results))
            .and_then(|b| b.filter(wanted))
            .and_then(|b| b.project(columns.iter().map(|(n, ..)| column(n))))
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)
    }

    /// INTERSECT ALL and EXCEPT ALL: equal rows are numbered on each side, and the number is
    /// compared like a column, so that n copies meet m copies in the smaller count.
    fn compared_bags(
        &mut self,
        left: LogicalPlan,
        right: LogicalPlan,
        columns: Vec<Named>,
        intersect: bool,
    ) -> SqlResult<LogicalPlan> {
        let number = self.fresh("copy");
        let mut keys = Vec::with_capacity(columns.len());
        for (name, ty, collation) in &columns {
            keys.push(self.equal_form(column(name), ty, collation)?);
        }
        let numbered = |plan: LogicalPlan| {
            let definition = WindowFunctionDefinition::WindowUDF(row_number_udwf());
            let mut call = WindowFunction::new(definition, Vec::new());
            call.params.partition_by = keys.clone();
            let carrier = arrow_form::data_type(&SqlType::Int8);
            super::window::window_column(plan, call, number.clone(), &carrier)
        };
        let (left, right) = (numbered(left)?, numbered(right)?);
        let mut all = columns.clone();
        all.push((number.clone(), SqlType::Int8, Collated::Default));
        let plan = self.compared(left, right, &all, intersect)?;
        LogicalPlanBuilder::from(plan)
            .project(columns.iter().map(|(n, ..)| column(n)))
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)
    }

    pub(super) fn values(&mut self, values: &ast::Values) -> SqlResult<Bounded> {
        let width = values.rows.first().map_or(0, |r| r.content.len());
        let mut rows: Vec<Vec<Bound>> = Vec::new();
        for row in &values.rows {
            if row.content.len() != width {
                let error = SqlError::syntax("VALUES lists must all be the same length");
                let first = row.content.first();
                return Err(error.or_place(first.and_then(braid_scalar::beginning)));
            }
            if let Some(e) = row.content.iter().find(|e| gives_sets(e)) {
                let text = "set-returning functions are not allowed in VALUES";
                let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text);
                return Err(braid_scalar::at_beginning(error, e));
            }
            rows.push(row.content.iter().map(|e| self.expr(e)).collect::<SqlResult<_>>()?);
        }
        let mut types = Vec::new();
        for at in 0..width {
            let column: Vec<&SqlType> = rows.iter().map(|r| r[at].ty()).collect();
            types.push(common_type(&column).ok_or_else(|| {
                SqlError::new(SqlState::DATATYPE_MISMATCH, "VALUES types cannot be matched")
            })?);
        }
        let collation = |at: usize| {
            let parts = rows.iter().map(|row| row[at].collation());
            parts.fold(Collated::Default, |all, part| all.with(part)).of_column()
        };
        let collations: Vec<Collated> = (0..width).map(collation).collect();
        let mut exprs = Vec::new();
        for (row, written) in rows.into_iter().zip(&values.rows) {
            let mut out = Vec::new();
            for ((value, ty), e) in row.into_iter().zip(&types).zip(&written.content) {
                let value = coerce(value, ty, CastContext::Implicit, self)
                    .map_err(|error| braid_scalar::at_beginning(error, e))?;
                out.push(self.plan_expr(&value)?);
            }
            exprs.push(out);
        }
        let names: Vec<String> = types.iter().map(|_| self.fresh("v")).collect();
        let plan = self.rows_of_values(exprs, &types, &names)?;
        let columns = names
            .iter()
            .zip(types.into_iter().zip(collations))
            .enumerate()
            .map(|(at, (name, (ty, collation)))| OutputColumn {
                name: format!("column{}", at + 1),
                ty,
                collation,
                expr: column(name),
                origin: None,
                nullable: true,
            })
            .collect();
        Ok(Bounded { plan, columns })
    }

    /// A plan of rows of expressions.
    fn rows_of_values(
        &mut self,
        mut rows: Vec<Vec<Expr>>,
        types: &[SqlType],
        names: &[String],
    ) -> SqlResult<LogicalPlan> {
        let renamed = |exprs: Vec<Expr>| {
            exprs.into_iter().zip(names).map(|(e, n)| e.alias(n.clone())).collect::<Vec<_>>()
        };
        if rows.iter().flatten().all(|e| matches!(e, Expr::Literal(..))) {
            return LogicalPlanBuilder::values(rows)
                .and_then(|b| {
                    let columns = b.schema().columns().into_iter().map(Expr::Column);
                    let columns = columns.collect();
                    b.project(renamed(columns))
                })
                .and_then(LogicalPlanBuilder::build)
                .map_err(from_df);
        }
        // DataFusion computes the rows of a Values node when it makes the physical plan: once for
        // all executions.
        let one_row = LogicalPlanBuilder::empty(true);
        if rows.len() == 1 {
            let row = rows.remove(0);
            return one_row
                .project(renamed(row))
                .and_then(LogicalPlanBuilder::build)
                .map_err(from_df);
        }
        let list = self.fresh("list");
        let records = values_expr(types.to_vec(), rows).alias(list.clone());
        let fields = types.iter().enumerate();
        let fields = fields.map(|(at, ty)| scalar::record_field(column(&list), at, ty)).collect();
        let names = vec![Column::new_unqualified(list)];
        one_row
            .build()
            .and_then(|one_row| unnested(one_row, [records], names, false))
            .and_then(|b| b.project(renamed(fields)))
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)
    }

    /// The rows of a recursive query's work table.
    pub(super) fn work_item(
        &mut self,
        table: &str,
        shown: &str,
        columns: Vec<(String, SqlType)>,
    ) -> SqlResult<Item> {
        let fields: Vec<Field> = columns
            .iter()
            .enumerate()
            .map(|(at, (_, ty))| {
                Field::new(format!("{table}_{at}"), arrow_form::data_type(ty), true)
            })
            .collect();
        let work = CteWorkTable::new(table, Arc::new(Schema::new(fields)));
        let scan = LogicalPlanBuilder::scan(
            datafusion::common::TableReference::bare(table.to_string()),
            provider_as_source(Arc::new(work)),
            None,
        )
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_df)?;
        let mut exprs = Vec::new();
        let mut relation =
            Relation { plan: scan.clone(), scope: Default::default(), columns: Vec::new() };
        for (source, (name, ty)) in scan.schema().columns().into_iter().zip(columns) {
            let fresh = self.fresh("w");
            exprs.push(Expr::Column(source).alias(fresh.clone()));
            relation.columns.push(column(&fresh));
            relation.scope.push(ScopeColumn {
                table: Some(shown.to_string()),
                hidden: name.starts_with(HIDDEN),
                ..ScopeColumn::new(name.trim_start_matches(HIDDEN), ty)
            });
        }
        relation.plan = LogicalPlanBuilder::from(scan)
            .project(exprs)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        let origins = vec![None; relation.columns.len()];
        Ok(Item { relation, origins })
    }

    /// `WITH RECURSIVE name AS (start UNION [ALL] step)`.
    pub(super) fn recursive_query(
        &mut self,
        name: &str,
        names: &[String],
        query: &ast::Query,
    ) -> SqlResult<Bounded> {
        use ast::SetOperator::Union;
        // It may not end where nobody asks for its rows.
        self.risky = true;
        let ast::SetExpr::SetOperation { left, op: Union, set_quantifier, right } = &*query.body
        else {
            return Err(SqlError::new(
                SqlState("42P19"),
                format!(
                    "recursive query \"{name}\" does not have the form non-recursive-term UNION \
                     [ALL] recursive-term"
                ),
            ));
        };
        check_aggregates(name, right)?;
        let known = self.ctes.len();
        if let Some(with) = &query.with {
            self.add_ctes(with, query)?;
        }
        let bound = self.recursive_union(name, names, (&**left, &**right), *set_quantifier);
        self.ctes.truncate(known);
        bound
    }

    fn recursive_union(
        &mut self,
        name: &str,
        names: &[String],
        (left, right): (&ast::SetExpr, &ast::SetExpr),
        quantifier: ast::SetQuantifier,
    ) -> SqlResult<Bounded> {
        let all = quantifier == ast::SetQuantifier::All;
        let start = self.set_expr(left)?;
        let table = self.fresh("work");
        let types: Vec<SqlType> = start.columns.iter().map(|c| c.ty.clone()).collect();
        let collations: Vec<Collated> = start.columns.iter().map(|c| c.collation.clone()).collect();
        let carriers: Vec<String> = (0..types.len()).map(|at| format!("{table}_{at}")).collect();
        let shown: Vec<String> = start
            .columns
            .iter()
            .enumerate()
            .map(|(at, c)| names.get(at).cloned().unwrap_or_else(|| c.name.clone()))
            .collect();
        let start = self.converted(start, &types, &carriers, "UNION")?;
        self.ctes.push(Cte::Work {
            name: name.to_string(),
            columns: shown.iter().cloned().zip(types.iter().cloned()).collect(),
            collations: collations.clone(),
            table: table.clone(),
        });
        let outside = std::mem::replace(&mut self.work_level, self.levels.len());
        let step = self.set_expr(right);
        self.work_level = outside;
        self.ctes.pop();
        let step = step?;
        if step.columns.len() != types.len() {
            return Err(SqlError::syntax("each UNION query must have the same number of columns"));
        }
        for (at, (have, want)) in step.columns.iter().zip(&types).enumerate() {
            // A length or a precision is kept if both have it.
            let overall = match common_type(&[want, &have.ty]) {
                _ if have.ty == *want => want.clone(),
                Some(common) => common.base(),
                None => have.ty.clone(),
            };
            if overall != *want {
                return Err(SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "recursive query \"{name}\" column {} has type {want} in non-recursive \
                         term but type {overall} overall",
                        at + 1
                    ),
                )
                .with_hint("Cast the output of the non-recursive term to the correct type."));
            }
        }
        if !all {
            types.iter().try_for_each(|ty| ty.check_comparable("equality"))?;
            if !collations.iter().all(Collated::is_deterministic) {
                let text = "UNION of a recursive query with a nondeterministic collation";
                return Err(SqlError::unsupported(text).with_hint("Use UNION ALL."));
            }
        }
        let step = self.converted(step, &types, &carriers, "UNION")?;
        let plan = LogicalPlanBuilder::from(start)
            .to_recursive_query(table, step, !all)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        let fresh: Vec<String> = types.iter().map(|_| self.fresh("rec")).collect();
        let from = plan.schema().columns();
        let exprs: Vec<Expr> =
            from.into_iter().zip(&fresh).map(|(c, n)| Expr::Column(c).alias(n.clone())).collect();
        let plan = LogicalPlanBuilder::from(plan)
            .project(exprs)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        let columns = shown
            .into_iter()
            .zip(types.into_iter().zip(collations))
            .zip(fresh)
            .map(|((name, (ty, collation)), fresh)| OutputColumn {
                name,
                ty,
                collation,
                expr: column(&fresh),
                origin: None,
                nullable: true,
            })
            .collect();
        Ok(Bounded { plan, columns })
    }
}

/// Refuses aggregates of a query's own rows within its recursive term.
fn check_aggregates(name: &str, step: &ast::SetExpr) -> SqlResult<()> {
    struct Selects<'a>(&'a str);
    impl Visitor for Selects<'_> {
        type Break = ();
        fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
            let itself = select.from.iter().any(|from| reference(from, self.0).is_some());
            let aggregate = |item: &ast::SelectItem| item.walk(&mut Aggregates(0)).is_break();
            match itself && select.projection.iter().any(aggregate) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    if step.walk(&mut Selects(name)).is_break() {
        return Err(SqlError::new(
            SqlState("42P19"),
            "aggregate functions are not allowed in a recursive query's recursive term",
        ));
    }
    Ok(())
}

/// Looks for an aggregate outside of subqueries, whose depth it counts.
struct Aggregates(usize);

impl Visitor for Aggregates {
    type Break = ();

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.0 -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::Function(f)
                if self.0 == 0
                    && f.over.is_none()
                    && braid_scalar::object_name_parts(&f.name)
                        .last()
                        .is_some_and(|name| is_aggregate(name)) =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Where an item of an operand begins, if its list is written out so far.
fn place_of_item(operand: &ast::SetExpr, at: usize) -> Option<Place> {
    match operand {
        ast::SetExpr::Select(select) => match select.projection.get(at)? {
            ast::SelectItem::UnnamedExpr(e) | ast::SelectItem::ExprWithAlias { expr: e, .. } => {
                braid_scalar::beginning(e)
            }
            _ => None,
        },
        ast::SetExpr::Query(query) => place_of_item(&query.body, at),
        ast::SetExpr::SetOperation { left, .. } => place_of_item(left, at),
        _ => None,
    }
}

/// The collations of a set operation's columns.
fn common_collations(inputs: &[Bounded], width: usize) -> Vec<Collated> {
    let of = |at: usize| {
        let parts = inputs.iter().map(|input| &input.columns[at].collation);
        parts.fold(Collated::Default, |all, part| all.with(part))
    };
    (0..width).map(of).collect()
}

/// The types of a set operation's columns, found from left to right.
fn common_types(
    inputs: &[Bounded],
    op: ast::SetOperator,
    operands: &[&ast::SetExpr],
) -> SqlResult<Vec<SqlType>> {
    let mut types: Vec<SqlType> = inputs[0].columns.iter().map(|c| c.ty.clone()).collect();
    for (input, operand) in inputs[1..].iter().zip(&operands[1..]) {
        if input.columns.len() != types.len() {
            return Err(SqlError::syntax(format!(
                "each {op} query must have the same number of columns"
            ))
            .or_place(place_of_item(operand, 0)));
        }
        for (at, (ty, column)) in types.iter_mut().zip(&input.columns).enumerate() {
            let common = common_type(&[ty, &column.ty]).ok_or_else(|| {
                SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!("{op} types {ty} and {} cannot be matched", column.ty),
                )
                .or_place(place_of_item(operand, at))
            })?;
            *ty = common;
        }
    }
    Ok(types)
}
