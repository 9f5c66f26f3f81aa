//! Set-returning functions, in FROM and in the select list.

use std::ops::ControlFlow;
use std::sync::Arc;

use braid_scalar::{Bound, Code, Columns, coerce, ordered_arguments, output_name};
use braid_types::{
    CastContext, Collated, CompositeType, Datum, SqlError, SqlResult, SqlState, SqlType,
};
use braid_walk::Walk;
use datafusion::common::{Column, Result, UnnestOptions};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use sqlparser::ast::{self, Visitor};

use super::call::Inner;
use super::populate::populating;
use super::rows_from::check_ordinality;
use super::{Binder, Bounded};
use crate::error::from_df;
use crate::evaluated::evaluated;
use crate::exec::scalar;
use crate::exec::set_returning::{SetFunction, choose, list_expr, subquery_expr};
use crate::exec::subquery::Shape;

/// A set-returning function of the select list.
pub(super) struct Pending {
    rows: SetRows,
    args: Vec<Bound>,
    slot: usize,
}

/// What gives its rows.
enum SetRows {
    /// What is built in.
    Builtin(SetFunction),
    /// The body of a function of a user, whose one column is of this type.
    Body(Box<Inner>, SqlType),
}

impl Pending {
    /// The slot of its value.
    pub(super) fn slot(&self) -> usize {
        self.slot
    }

    /// Its arguments, to move them from inputs to groups.
    pub(super) fn for_each(
        &mut self,
        f: &mut dyn FnMut(&Bound) -> SqlResult<Bound>,
    ) -> SqlResult<()> {
        for bound in &mut self.args {
            *bound = f(bound)?;
        }
        Ok(())
    }
}

/// What is said where a function's rows are refused.
const INTO_FROM: &str =
    "You might be able to move the set-returning function into a LATERAL FROM item.";

/// 0A000 for rows of a function in a clause.
pub(super) fn sets_not_allowed(clause: &str) -> SqlError {
    let text = format!("set-returning functions are not allowed in {clause}");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
}

/// 0A000 for rows of a function in arguments of another one in FROM.
fn not_at_top_level() -> SqlError {
    let text = "set-returning functions must appear at top level of FROM";
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
}

/// Finds calls of set-returning functions outside of subqueries, in which it is so deep.
struct SetCalls(usize);

impl Visitor for SetCalls {
    type Break = ast::Function;

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<ast::Function> {
        self.0 += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<ast::Function> {
        self.0 -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<ast::Function> {
        match expr {
            ast::Expr::Function(call)
                if self.0 == 0
                    && braid_scalar::is_set_returning(&Binder::bare_name(&call.name)) =>
            {
                ControlFlow::Break(call.clone())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// What a function in FROM gives.
pub(super) struct FunctionRows {
    pub(super) plan: LogicalPlan,
    pub(super) columns: Vec<(String, SqlType, Expr)>,
    /// That of the texts among them.
    pub(super) collation: Collated,
}

impl Binder<'_> {
    fn choose_set_function(
        &mut self,
        name: &str,
        exprs: &[&ast::Expr],
    ) -> SqlResult<(SetFunction, Vec<Bound>)> {
        let mut args = Vec::new();
        for expr in exprs {
            args.push(self.expr(expr)?);
        }
        let types: Vec<SqlType> = args.iter().map(|a| a.ty().clone()).collect();
        let function = choose(name, &types, &self.place)?;
        self.risky = true;
        let mut converted = Vec::new();
        for (arg, ty) in args.into_iter().zip(&function.args) {
            converted.push(coerce(arg, ty, CastContext::Implicit, self)?);
        }
        Ok((function, converted))
    }

    /// A call in the select list: its rows multiply the row.
    pub(super) fn set_function_call(
        &mut self,
        name: &str,
        function: &ast::Function,
    ) -> SqlResult<Bound> {
        self.check_sets_allowed()?;
        let ordered = match &function.args {
            ast::FunctionArguments::List(list) => ordered_arguments(name, &list.args)?,
            _ => None,
        };
        let exprs = match &ordered {
            Some(exprs) => exprs.iter().collect(),
            None => Self::arguments(function)?.exprs,
        };
        let (chosen, args) = self.choose_set_function(name, &exprs)?;
        if matches!(chosen.function.code, Code::Rows(_, Columns::Elements)) {
            let types: Vec<String> = chosen.args.iter().map(SqlType::base_name).collect();
            return Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function {name}({}) does not exist", types.join(", ")),
            )
            .with_hint("Several arrays are unnested in FROM."));
        }
        let ret = match chosen.columns.as_slice() {
            [(_, ty)] => ty.clone(),
            columns => SqlType::Composite(Arc::new(CompositeType::record(columns))),
        };
        let collation = match ret.is_collatable() {
            true => collation_of_all(&args),
            false => Collated::Default,
        };
        Ok(self.set_slot(SetRows::Builtin(chosen), args, ret).with_collation(collation))
    }

    /// The same of a body that was bound, with one column.
    pub(super) fn set_of_rows(&mut self, inner: Inner, ty: SqlType) -> Bound {
        let args = inner.outer.iter().map(|(_, bound)| bound.clone()).collect();
        self.risky = true;
        self.set_slot(SetRows::Body(Box::new(inner), ty.clone()), args, ty)
    }

    fn set_slot(&mut self, rows: SetRows, args: Vec<Bound>, ty: SqlType) -> Bound {
        let column = self.fresh("set");
        let slot = self.add_column(&column, ty.clone());
        self.level().set_functions.push(Pending { rows, args, slot });
        Bound::column(slot, ty)
    }

    /// 0A000 where rows of a function could not multiply rows.
    pub(super) fn check_sets_allowed(&mut self) -> SqlResult<()> {
        let aggregating = &self.level().aggregating;
        let within = |calls: &str| {
            let text = format!("{calls} calls cannot contain set-returning function calls");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).with_hint(INTO_FROM))
        };
        if aggregating.refused_in == Some("FILTER") {
            return Err(sets_not_allowed("FILTER"));
        } else if aggregating.inside {
            return within("aggregate function");
        } else if aggregating.no_windows == Some(super::window::NESTED) {
            return within("window function");
        }
        match aggregating.refused_in {
            None | Some("GROUP BY") => Ok(()),
            Some(super::from::OWN_LEVEL) => Err(not_at_top_level()),
            Some("JOIN/ON") => Err(sets_not_allowed("JOIN conditions")),
            Some(clause) => Err(sets_not_allowed(clause)),
        }
    }

    /// Refuses set-returning functions in something that is not always computed.
    pub(super) fn check_not_conditional(&self, expr: &ast::Expr) -> SqlResult<()> {
        let clause = match expr {
            ast::Expr::Case { .. } => "CASE",
            ast::Expr::Function(f) if Self::bare_name(&f.name) == "coalesce" => "COALESCE",
            _ => return Ok(()),
        };
        match expr.walk(&mut SetCalls(0)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(call) => {
                let error = sets_not_allowed(clause).with_hint(INTO_FROM);
                Err(braid_scalar::at_beginning(error, &ast::Expr::Function(call)))
            }
        }
    }

    /// Unnests the set-returning functions of the select list: those in arguments of others first,
    /// all others in step with each other.
    pub(super) fn set_function_plan(&mut self, mut plan: LogicalPlan) -> SqlResult<LogicalPlan> {
        let mut pending = std::mem::take(&mut self.level().set_functions);
        while !pending.is_empty() {
            let slots: Vec<usize> = pending.iter().map(Pending::slot).collect();
            let waits = |one: &Pending| {
                one.args.iter().flat_map(Bound::columns).any(|column| slots.contains(&column))
            };
            let (later, now): (Vec<_>, Vec<_>) = pending.into_iter().partition(waits);
            plan = self.unnested_in_step(plan, now)?;
            pending = later;
        }
        Ok(plan)
    }

    fn unnested_in_step(
        &mut self,
        plan: LogicalPlan,
        pending: Vec<Pending>,
    ) -> SqlResult<LogicalPlan> {
        let before: Vec<Expr> = columns_of(&plan);
        let mut lists = before.clone();
        let mut list_names = Vec::new();
        let mut results = before;
        for one in pending {
            let args = one.args.iter().map(|a| self.plan_expr(a)).collect::<SqlResult<Vec<_>>>()?;
            let list = self.fresh("list");
            let name = self.slot_name(one.slot);
            let first = |ty| scalar::record_field(super::column(&list), 0, ty);
            let (rows, value) = match one.rows {
                SetRows::Builtin(function) => {
                    let value = match function.columns.as_slice() {
                        [(_, ty)] => first(ty),
                        _ => super::column(&list),
                    };
                    (list_expr(function, false, args), value)
                }
                SetRows::Body(inner, ty) => {
                    (subquery_expr(inner.prepared(Shape::Rows, self), args), first(&ty))
                }
            };
            lists.push(rows.alias(list.clone()));
            results.push(value.alias(name));
            list_names.push(Column::new_unqualified(list));
        }
        unnested(plan, lists, list_names, false)
            .and_then(|b| b.project(results))
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)
    }

    /// A call in FROM. With `input`, its arguments may name the input's columns and its rows
    /// multiply the input's (LATERAL); the input's columns stay.
    pub(super) fn function_rows(
        &mut self,
        name: &str,
        exprs: &[&ast::Expr],
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
        input: Option<LogicalPlan>,
    ) -> SqlResult<FunctionRows> {
        let before = self.level().set_functions.len();
        let rows = self.rows_of_function(name, exprs, ordinality, alias, input);
        if self.level().set_functions.len() > before {
            return Err(not_at_top_level());
        }
        rows
    }

    fn rows_of_function(
        &mut self,
        name: &str,
        exprs: &[&ast::Expr],
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
        input: Option<LogicalPlan>,
    ) -> SqlResult<FunctionRows> {
        let plan = match input {
            Some(plan) => plan,
            None => LogicalPlanBuilder::empty(true).build().map_err(from_df)?,
        };
        check_ordinality(ordinality, alias)?;
        if let Some(call) = populating(name) {
            return self.populated_rows(&call, exprs, ordinality, alias, plan);
        }
        refuse_definitions(alias)?;
        if !braid_scalar::is_set_returning(name) {
            return self.scalar_rows(name, exprs, ordinality, plan);
        }
        let (function, args) = self.choose_set_function(name, exprs)?;
        let collation = collation_of_all(&args);
        let args = args.iter().map(|a| self.plan_expr(a)).collect::<SqlResult<Vec<_>>>()?;
        let list = self.fresh("list");
        let before = columns_of(&plan);
        let mut lists = before.clone();
        let mut columns = function.columns.clone();
        if ordinality {
            columns.push(("ordinality".to_string(), SqlType::Int8));
        }
        lists.push(list_expr(function, ordinality, args).alias(list.clone()));
        let mut results = before;
        let mut out = Vec::new();
        for (at, (name, ty)) in columns.into_iter().enumerate() {
            let fresh = self.fresh("fn");
            results.push(scalar::record_field(super::column(&list), at, &ty).alias(fresh.clone()));
            out.push((name, ty, super::column(&fresh)));
        }
        let plan = unnested(plan, lists, vec![Column::new_unqualified(list)], false)
            .and_then(|b| b.project(results))
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        Ok(FunctionRows { collation, ..self.with_fields(plan, out)? })
    }

    /// Columns of composite types are columns of their fields: what gives rows gives them so.
    pub(super) fn with_fields(
        &mut self,
        plan: LogicalPlan,
        columns: Vec<(String, SqlType, Expr)>,
    ) -> SqlResult<FunctionRows> {
        if !columns.iter().any(|(_, ty, _)| matches!(ty, SqlType::Composite(_))) {
            return Ok(FunctionRows { plan, columns, collation: Collated::Default });
        }
        let (mut results, mut out) = (columns_of(&plan), Vec::new());
        for (name, ty, expr) in columns {
            let SqlType::Composite(row) = &ty else {
                out.push((name, ty, expr));
                continue;
            };
            for (at, field) in row.fields.iter().enumerate() {
                let fresh = self.fresh("field");
                let value = scalar::record_field(expr.clone(), at, &field.ty);
                results.push(value.alias(fresh.clone()));
                out.push((field.name.to_string(), field.ty.clone(), super::column(&fresh)));
            }
        }
        let plan = LogicalPlanBuilder::from(plan)
            .project(results)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        Ok(FunctionRows { plan, columns: out, collation: Collated::Default })
    }

    /// A scalar function in FROM: one row of one column.
    fn scalar_rows(
        &mut self,
        name: &str,
        exprs: &[&ast::Expr],
        ordinality: bool,
        plan: LogicalPlan,
    ) -> SqlResult<FunctionRows> {
        let args = exprs
            .iter()
            .map(|e| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr((*e).clone())))
            .collect();
        let call = ast::Expr::Function(ast::Function {
            name: ast::ObjectName::from(vec![ast::Ident::new(name)]),
            uses_odbc_syntax: false,
            parameters: ast::FunctionArguments::None,
            args: ast::FunctionArguments::List(ast::FunctionArgumentList {
                duplicate_treatment: None,
                args,
                clauses: Vec::new(),
            }),
            filter: None,
            null_treatment: None,
            over: None,
            within_group: Vec::new(),
        });
        self.one_row(&call, ordinality, plan)
    }

    /// The value of a call as a row.
    pub(super) fn one_row(
        &mut self,
        call: &ast::Expr,
        ordinality: bool,
        plan: LogicalPlan,
    ) -> SqlResult<FunctionRows> {
        let bound = self.settled(call)?;
        let fresh = self.fresh("fn");
        let mut results = columns_of(&plan);
        results.push(self.plan_expr(&bound)?.alias(fresh.clone()));
        let mut columns = vec![(output_name(call), bound.ty().clone(), super::column(&fresh))];
        if ordinality {
            let fresh = self.fresh("fn");
            let first = Bound::constant(Datum::Int8(1), SqlType::Int8);
            results.push(self.plan_expr(&first)?.alias(fresh.clone()));
            columns.push(("ordinality".to_string(), SqlType::Int8, super::column(&fresh)));
        }
        let plan = LogicalPlanBuilder::from(plan)
            .project(results)
            .and_then(LogicalPlanBuilder::build)
            .and_then(evaluated)
            .map_err(from_df)?;
        let collation = bound.collation().of_column();
        Ok(FunctionRows { collation, ..self.with_fields(plan, columns)? })
    }
}

/// The collation that texts made of these have as a column.
pub(super) fn collation_of_all(args: &[Bound]) -> Collated {
    args.iter().fold(Collated::Default, |all, arg| all.with(arg.collation())).of_column()
}

/// Refuses a list of columns with types behind a function that has its own.
fn refuse_definitions(alias: Option<&ast::TableAlias>) -> SqlResult<()> {
    let columns = alias.map_or(&[][..], |a| a.columns.as_slice());
    if columns.iter().all(|column| column.data_type.is_none()) {
        return Ok(());
    }
    Err(SqlError::syntax(
        "a column definition list is only allowed for functions returning \"record\"",
    ))
}

/// The rows of `values` over a plan, once for each element of their columns `lists`; with `outer` a
/// row stays whose lists are empty.
pub(super) fn unnested(
    plan: LogicalPlan,
    values: impl IntoIterator<Item = Expr>,
    lists: Vec<Column>,
    outer: bool,
) -> Result<LogicalPlanBuilder> {
    let options = UnnestOptions::new().with_preserve_nulls(outer);
    LogicalPlanBuilder::from(plan).project(values)?.unnest_columns_with_options(lists, options)
}

/// All columns of a plan, as expressions.
pub(super) fn columns_of(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

/// The arguments of a call in FROM; `ordered` if some have names.
pub(super) fn plain_args<'a>(
    ordered: &'a Option<Vec<ast::Expr>>,
    args: &'a [ast::FunctionArg],
) -> SqlResult<Vec<&'a ast::Expr>> {
    if let Some(exprs) = ordered {
        return Ok(exprs.iter().collect());
    }
    args.iter()
        .map(|a| match a {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) => Ok(e),
            other => Err(SqlError::unsupported(format!("the argument {other}"))),
        })
        .collect()
}

/// A query in FROM: what is volatile in it is computed even if its value is not wanted.
pub(super) fn whole(bound: Bounded) -> SqlResult<Bounded> {
    Ok(Bounded { plan: evaluated(bound.plan).map_err(from_df)?, ..bound })
}
