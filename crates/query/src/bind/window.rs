//! Window functions.

use std::sync::Arc;

use braid_parser::{Exclusion, take_exclusion};
use braid_scalar::{Bound, CaseBranch, Code, Node, WindowCode, coerce, ident_name, resolve};
use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::functions_window::cume_dist::cume_dist_udwf;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::functions_window::nth_value::{first_value_udwf, last_value_udwf, nth_value_udwf};
use datafusion::functions_window::ntile::ntile_udwf;
use datafusion::functions_window::rank::{dense_rank_udwf, percent_rank_udwf, rank_udwf};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{Sort, WindowFunction};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, Projection, WindowFunctionDefinition, WindowUDF, cast,
};
use sqlparser::ast;

use super::call::Arguments;
use super::frames::{Frame, OrderedBy};
use super::grouping::Chosen;
use super::{Binder, aggregate_not_allowed, column};
use crate::arrow_form;
use crate::error::from_df;
use crate::exec::scalar;
use crate::exec::windows::{Excluding, Inner};

/// A window call that was met.
#[derive(Clone)]
pub(super) struct Pending {
    function: WindowFunctionDefinition,
    args: Vec<Bound>,
    partition: Vec<Bound>,
    order: Vec<OrderedBy>,
    frame: Option<ast::WindowFrame>,
    exclusion: Option<Exclusion>,
    filter: Option<Bound>,
    slot: usize,
    ret: SqlType,
}

impl Pending {
    /// All expressions it holds, to move them from inputs to groups.
    pub(super) fn for_each(
        &mut self,
        f: &mut dyn FnMut(&Bound) -> SqlResult<Bound>,
    ) -> SqlResult<()> {
        for bound in self
            .args
            .iter_mut()
            .chain(self.partition.iter_mut())
            .chain(self.order.iter_mut().map(|(b, _, _)| b))
            .chain(self.filter.iter_mut())
        {
            *bound = f(bound)?;
        }
        Ok(())
    }
}

impl Pending {
    /// The call with its arguments and its FILTER.
    fn call(&self, mut args: Vec<Expr>, filter: Option<Expr>) -> WindowFunction {
        let inner = self.excluded_from();
        let Some((inner, exclusion)) = inner.zip(self.exclusion) else {
            let mut call = WindowFunction::new(self.function.clone(), args);
            call.params.filter = filter.map(Box::new);
            return call;
        };
        let count = (args.len(), filter.is_some());
        args.extend(filter);
        let ret = arrow_form::data_type(&self.ret);
        let function = Excluding::function(inner, exclusion, count, ret);
        WindowFunction::new(WindowFunctionDefinition::WindowUDF(function), args)
    }

    /// What looks at a frame that leaves rows out.
    fn excluded_from(&self) -> Option<Inner> {
        match &self.function {
            WindowFunctionDefinition::AggregateUDF(aggregate) => {
                Some(Inner::Aggregate(aggregate.clone()))
            }
            WindowFunctionDefinition::WindowUDF(function) => {
                let codes = [WindowCode::FirstValue, WindowCode::LastValue, WindowCode::NthValue];
                let is = |code: &WindowCode| definition(*code).name() == function.name();
                codes.into_iter().find(is).map(Inner::Value)
            }
        }
    }
}

/// What computes a window function of the registry.
fn definition(code: WindowCode) -> Arc<WindowUDF> {
    match code {
        WindowCode::RowNumber => row_number_udwf(),
        WindowCode::Rank => rank_udwf(),
        WindowCode::DenseRank => dense_rank_udwf(),
        WindowCode::PercentRank => percent_rank_udwf(),
        WindowCode::CumeDist => cume_dist_udwf(),
        WindowCode::Ntile => ntile_udwf(),
        WindowCode::Lag => lag_udwf(),
        WindowCode::Lead => lead_udwf(),
        WindowCode::FirstValue => first_value_udwf(),
        WindowCode::LastValue => last_value_udwf(),
        WindowCode::NthValue => nth_value_udwf(),
    }
}

/// A window call that was resolved.
struct Resolved {
    function: WindowFunctionDefinition,
    args: Vec<Bound>,
    ret: SqlType,
    /// Taken where there is no row to look at, if it differs from row to row.
    default: Option<Bound>,
}

/// What aggregates cannot be told when they have a window.
fn refuse_in_window(name: &str, function: &ast::Function, given: &Arguments<'_>) -> SqlResult<()> {
    if !function.within_group.is_empty() {
        return Err(SqlError::unsupported(format!("OVER with the ordered-set aggregate {name}")));
    }
    if given.distinct {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "DISTINCT is not implemented for window functions",
        ));
    }
    if !given.order.is_empty() {
        return Err(SqlError::unsupported("ORDER BY in the arguments of a window function"));
    }
    Ok(())
}

/// 42P20 for what a window that is made of a named one cannot say again.
fn check_copied(name: &str, base: &ast::WindowSpec, spec: &ast::WindowSpec) -> SqlResult<()> {
    let refuse = |text: String| Err(SqlError::new(SqlState("42P20"), text));
    if !spec.partition_by.is_empty() {
        return refuse(format!("cannot override PARTITION BY clause of window \"{name}\""));
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return refuse(format!("cannot override ORDER BY clause of window \"{name}\""));
    }
    if base.window_frame.is_none() {
        return Ok(());
    }
    let text = format!("cannot copy window \"{name}\" because it has a frame clause");
    let error = SqlError::new(SqlState("42P20"), text);
    let bare = spec.order_by.is_empty() && spec.window_frame.is_none();
    Err(match bare {
        true => error.with_hint("Omit the parentheses in this OVER clause."),
        false => error,
    })
}

impl Binder<'_> {
    /// The window of a call, and what its frame leaves out.
    fn window_spec(
        &mut self,
        over: &ast::WindowType,
    ) -> SqlResult<(ast::WindowSpec, Option<Exclusion>)> {
        let named = |binder: &mut Self, name: &ast::Ident| {
            let (name, start) = (ident_name(name), name.span.start);
            binder
                .level()
                .named_windows
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, spec)| spec.clone())
                .ok_or_else(|| {
                    let text = format!("window \"{name}\" does not exist");
                    SqlError::new(SqlState::UNDEFINED_OBJECT, text).or_at(start.line, start.column)
                })
        };
        match over {
            ast::WindowType::NamedWindow(name) => {
                let mut spec = named(self, name)?;
                let exclusion = take_exclusion(&mut spec);
                Ok((spec, exclusion))
            }
            ast::WindowType::WindowSpec(spec) => {
                let mut spec = spec.clone();
                let exclusion = take_exclusion(&mut spec);
                if let Some(name) = spec.window_name.take() {
                    let base = named(self, &name)?;
                    check_copied(&ident_name(&name), &base, &spec)?;
                    spec.partition_by = base.partition_by;
                    if spec.order_by.is_empty() {
                        spec.order_by = base.order_by;
                    }
                }
                Ok((spec, exclusion))
            }
        }
    }

    pub(super) fn window_call(&mut self, name: &str, function: &ast::Function) -> SqlResult<Bound> {
        self.risky |= !matches!(name, "row_number" | "rank" | "dense_rank" | "count");
        if let Some(clause) = self.level().aggregating.refused_in {
            return Err(SqlError::new(
                SqlState("42P20"),
                format!("window functions are not allowed in {clause}"),
            ));
        }
        if self.level().aggregating.inside {
            return Err(aggregate_not_allowed("window functions' arguments"));
        }
        let over = function.over.as_ref().ok_or_else(|| SqlError::internal("no OVER"))?;
        let (spec, exclusion) = self.window_spec(over)?;
        let Resolved { function: definition, args, ret, default } =
            self.window_function(name, function)?;
        let filter = match &function.filter {
            Some(f) => Some(self.condition(f, "FILTER")?),
            None => None,
        };
        let args = self.behind_filter(filter.as_ref(), args);
        let mut partition = Vec::new();
        for expr in &spec.partition_by {
            let bound = self.settled(expr)?;
            bound.ty().check_comparable("equality")?;
            partition.push(bound);
        }
        let mut order = Vec::new();
        for key in &spec.order_by {
            let desc = key.options.asc == Some(false);
            let nulls_first = key.options.nulls_first.unwrap_or(desc);
            let bound = self.settled(&key.expr)?;
            bound.ty().check_comparable("ordering")?;
            order.push((bound, desc, nulls_first));
        }
        let mut pending = Pending {
            function: definition,
            args,
            partition,
            order,
            frame: spec.window_frame.clone(),
            exclusion,
            filter,
            slot: 0,
            ret: ret.clone(),
        };
        let Some(default) = default else { return Ok(self.window_slot(pending)) };
        let value = self.window_slot(pending.clone());
        pending.args[0] = Bound::constant(Datum::Bool(true), SqlType::Bool);
        pending.ret = SqlType::Bool;
        let there = self.window_slot(pending);
        let found = Bound::new(Node::IsNull(there, true), SqlType::Bool);
        let branch = CaseBranch { when: found, then: value };
        Ok(Bound::new(Node::Case(vec![branch], Some(default)), ret))
    }

    /// The column that a window call fills.
    fn window_slot(&mut self, mut pending: Pending) -> Bound {
        let column = self.fresh("win");
        let ret = pending.ret.clone();
        pending.slot = self.add_column(&column, ret.clone());
        let slot = pending.slot;
        self.level().windows.push(pending);
        Bound::column(slot, ret)
    }

    fn window_function(&mut self, name: &str, function: &ast::Function) -> SqlResult<Resolved> {
        let given = Self::arguments(function)?;
        if braid_scalar::is_aggregate(name) {
            let Chosen { udf, args, ret } = self.choose_aggregate(name, function)?;
            refuse_in_window(name, function, &given)?;
            let function = WindowFunctionDefinition::AggregateUDF(udf);
            return Ok(Resolved { function, args, ret, default: None });
        }
        let mut args = Vec::new();
        for expr in &given.exprs {
            args.push(self.expr(expr)?);
        }
        let types: Vec<SqlType> = args.iter().map(|a| a.ty().clone()).collect();
        let choice = resolve(name, &types, false)?;
        let Code::Window(code) = choice.function.code else {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "OVER specified, but {name} is not a window function nor an aggregate function"
                ),
            ));
        };
        let mut converted = Vec::with_capacity(args.len());
        for (arg, ty) in args.into_iter().zip(&choice.args) {
            converted.push(coerce(arg, ty, CastContext::Implicit, self)?);
        }
        let mut resolved = self.counted(name, code, converted, choice.ret)?;
        let last = resolved.args.len().checked_sub(1);
        if last == code.default_argument()
            && resolved.args.last().is_some_and(|d| d.as_const().is_none())
        {
            resolved.default = resolved.args.pop();
        }
        Ok(resolved)
    }

    /// The functions whose count is the same for all rows, and the others.
    fn counted(
        &mut self,
        name: &str,
        code: WindowCode,
        mut args: Vec<Bound>,
        ret: SqlType,
    ) -> SqlResult<Resolved> {
        if let Some(arg) = code.counting_argument().and_then(|at| args.get_mut(at)) {
            let wide = coerce(arg.clone(), &SqlType::Int8, CastContext::Implicit, self)?;
            *arg = self.fixed_argument(name, &wide)?;
            if arg.as_const().is_some_and(Datum::is_null) {
                // Without a count there is no row to look at.
                let null = Bound::constant(Datum::Null, ret.clone());
                let function = WindowFunctionDefinition::WindowUDF(first_value_udwf());
                return Ok(Resolved { function, args: vec![null], ret, default: None });
            }
            if let (Some(state), Some(Datum::Int8(..=0))) = (code.state_below_one(), arg.as_const())
            {
                let message = format!("argument of {name} must be greater than zero");
                return Err(SqlError::new(SqlState(state), message));
            }
        }
        let function = WindowFunctionDefinition::WindowUDF(definition(code));
        Ok(Resolved { function, args, ret, default: None })
    }

    /// An argument that is the same for all rows, as a constant.
    fn fixed_argument(&mut self, name: &str, arg: &Bound) -> SqlResult<Bound> {
        if !arg.is_const() {
            return Err(SqlError::unsupported(format!("a count for {name} that is not constant"))
                .with_hint("Use a constant or a parameter."));
        }
        Ok(match self.value_now(arg)? {
            Some(value) => Bound::constant(value, arg.ty().clone()),
            None => Bound::constant(Datum::Int8(1), SqlType::Int8),
        })
    }

    /// The window nodes for the calls of this level.
    pub(super) fn window_plan(&mut self, plan: LogicalPlan) -> SqlResult<LogicalPlan> {
        let pending = std::mem::take(&mut self.level().windows);
        let mut plan = plan;
        for one in pending {
            self.check_cancel()?;
            let mut args = Vec::with_capacity(one.args.len());
            for arg in &one.args {
                let expr = self.plan_expr(arg)?;
                args.push(self.without_placeholders(&mut plan, expr)?);
            }
            let mut partition = Vec::new();
            for bound in &one.partition {
                let expr = self.plan_expr(bound)?;
                let expr = self.without_placeholders(&mut plan, expr)?;
                partition.push(scalar::sortable(expr, bound.ty()));
            }
            let Frame { window: frame, key } = self.frame(&one.order, one.frame.as_ref())?;
            let mut order = Vec::new();
            for (bound, desc, nulls_first) in &one.order {
                let bound = key.as_ref().map_or(bound, |(key, _)| key);
                let expr = self.plan_expr(bound)?;
                let expr = self.without_placeholders(&mut plan, expr)?;
                let mut expr = scalar::sortable(expr, bound.ty());
                if let Some((_, carrier)) = &key
                    && arrow_form::data_type(bound.ty()) != *carrier
                {
                    expr = cast(expr, carrier.clone());
                }
                order.push(Sort::new(expr, !desc, *nulls_first));
            }
            let filter = match &one.filter {
                Some(f) => {
                    let expr = self.plan_expr(f)?;
                    Some(self.without_placeholders(&mut plan, expr)?)
                }
                None => None,
            };
            let mut call = one.call(args, filter);
            call.params.partition_by = partition;
            call.params.order_by = order;
            call.params.window_frame = frame;
            let name = self.slot_name(one.slot);
            plan = window_column(plan, call, name, &arrow_form::data_type(&one.ret))?;
        }
        Ok(plan)
    }

    /// The expression, or a column below that holds its value if it is of an outer query or a
    /// parameter: a window's column is named by its expressions as they are when it is planned, and
    /// there these have become values.
    fn without_placeholders(&mut self, plan: &mut LogicalPlan, expr: Expr) -> SqlResult<Expr> {
        let is_placeholder = |e: &Expr| Ok(matches!(e, Expr::Placeholder(_)));
        if !expr.exists(is_placeholder).map_err(from_df)? {
            return Ok(expr);
        }
        let name = self.fresh("w");
        let mut all = super::function_table::columns_of(plan);
        all.push(expr.alias(name.clone()));
        *plan = LogicalPlanBuilder::from(plan.clone())
            .project(all)
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)?;
        Ok(column(&name))
    }
}

/// Adds a window call's value as the last column, under a name and in a carrier of ours: ranks are
/// unsigned in DataFusion.
pub(super) fn window_column(
    plan: LogicalPlan,
    call: WindowFunction,
    name: String,
    carrier: &DataType,
) -> SqlResult<LogicalPlan> {
    let call = Expr::WindowFunction(Box::new(call));
    let plan = LogicalPlanBuilder::window_plan(plan, [call]).map_err(from_df)?;
    let mut all: Vec<Expr> = super::function_table::columns_of(&plan);
    if let Some(last) = all.pop() {
        all.push(cast(last, carrier.clone()).alias(name));
    }
    // Not by the builder: it would look for each column in all the windows below.
    Projection::try_new(all, Arc::new(plan)).map(LogicalPlan::Projection).map_err(from_df)
}
