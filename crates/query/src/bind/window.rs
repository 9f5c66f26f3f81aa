//! Window functions.

use std::sync::Arc;

use braid_parser::{Exclusion, take_exclusion};
use braid_scalar::{
    Bound, CaseBranch, Code, Node, OrderKey, WindowCode, coerce, equality_form, ident_name,
    is_aggregate, is_called_as_window, order_form, resolve,
};
use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNode;
use datafusion::functions_window::cume_dist::cume_dist_udwf;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::functions_window::nth_value::{first_value_udwf, last_value_udwf, nth_value_udwf};
use datafusion::functions_window::ntile::ntile_udwf;
use datafusion::functions_window::rank::{dense_rank_udwf, percent_rank_udwf, rank_udwf};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{Sort, WindowFunction};
use datafusion::logical_expr::{
    AggregateUDF, Expr, LogicalPlan, LogicalPlanBuilder, Projection, WindowFrame, WindowFrameBound,
    WindowFrameUnits, WindowFunctionDefinition, WindowUDF, cast,
};
use sqlparser::ast;

use super::call::Arguments;
use super::frames::{Frame, OrderedBy};
use super::grouping::{Chosen, Shown};
use super::{Binder, column};
use crate::arrow_form;
use crate::error::from_df;
use crate::exec::aggregate::spec_of;
use crate::exec::scalar;
use crate::exec::windows::{Edge, Framed, Inner, Layout};

/// A window call that was met.
#[derive(Clone)]
pub(super) struct Pending {
    function: Function,
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
    /// What we compute of it ourselves, if DataFusion does not, or not well.
    fn own(&self, frame: &Frame) -> Option<Inner> {
        let varies = |at: Option<usize>| {
            let arg = at.and_then(|at| self.args.get(at));
            arg.is_some_and(|arg| arg.as_const().is_none())
        };
        match &self.function {
            Function::Aggregate(function) => {
                let spec = spec_of(function).filter(|_| frame.streamed().is_none())?;
                Some(Inner::Aggregate(spec.clone()))
            }
            Function::Window(code) => {
                // Of whole partitions DataFusion looks at each frame for itself.
                let all = frame.shape.end == Edge::Unbounded || frame.streamed().is_none();
                let own = (code.is_of_frame() && all) || varies(code.counting_argument());
                own.then_some(Inner::Window(*code))
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

/// A window of WINDOW.
#[derive(Clone)]
pub(super) struct Named {
    name: String,
    spec: ast::WindowSpec,
    exclusion: Option<Exclusion>,
    /// A call or another window has named it: then its parts are bound there.
    used: bool,
}

pub(super) const NESTED: &str = "window function calls cannot be nested";
pub(super) const IN_DEFINITION: &str = "window functions are not allowed in window definitions";

/// A window function or an aggregate.
#[derive(Clone)]
enum Function {
    Aggregate(Arc<AggregateUDF>),
    Window(WindowCode),
}

impl Function {
    fn definition(&self) -> WindowFunctionDefinition {
        match self {
            Function::Aggregate(function) => {
                WindowFunctionDefinition::AggregateUDF(function.clone())
            }
            Function::Window(code) => WindowFunctionDefinition::WindowUDF(definition(*code)),
        }
    }
}

/// A window call that was resolved.
struct Resolved {
    function: Function,
    args: Vec<Bound>,
    ret: SqlType,
    shown: Shown,
    /// Taken where there is no row to look at, if it differs from row to row.
    default: Option<Bound>,
}

/// What aggregates cannot be told when they have a window.
fn refuse_in_window(name: &str, function: &ast::Function, given: &Arguments<'_>) -> SqlResult<()> {
    let refuse = |text: String| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
    if !function.within_group.is_empty() {
        return refuse(format!("OVER is not supported for ordered-set aggregate {name}"));
    }
    if given.distinct {
        return refuse("DISTINCT is not implemented for window functions".to_string());
    }
    if !given.order.is_empty() {
        let text = "aggregate ORDER BY is not implemented for window functions";
        return refuse(text.to_string());
    }
    Ok(())
}

/// What functions that are no aggregates cannot be told.
fn refuse_in_function(
    name: &str,
    function: &ast::Function,
    given: &Arguments<'_>,
) -> SqlResult<()> {
    if !function.within_group.is_empty() {
        let text = format!("window function {name} cannot have WITHIN GROUP");
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text));
    }
    refuse_in_window(name, function, given)?;
    if function.filter.is_some() {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "FILTER is not implemented for non-aggregate window functions",
        ));
    }
    Ok(())
}

/// 42P20 for what a window that is made of a named one cannot say again.
fn check_copied(
    name: &str,
    base: &ast::WindowSpec,
    (spec, over): (&ast::WindowSpec, bool),
) -> SqlResult<()> {
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
    let bare = over && spec.order_by.is_empty() && spec.window_frame.is_none();
    Err(match bare {
        true => error.with_hint("Omit the parentheses in this OVER clause."),
        false => error,
    })
}

impl Binder<'_> {
    /// Notes the windows of WINDOW, each of which may be made of one before it.
    pub(super) fn name_windows(&mut self, all: &[ast::NamedWindowDefinition]) -> SqlResult<()> {
        for ast::NamedWindowDefinition(ident, definition) in all {
            let ast::NamedWindowExpr::WindowSpec(spec) = definition else {
                return Err(SqlError::syntax(format!("syntax error at or near \"{ident}\"")));
            };
            let name = ident_name(ident);
            if self.level().named_windows.iter().any(|known| known.name == name) {
                let text = format!("window \"{name}\" is already defined");
                return Err(SqlError::new(SqlState("42P20"), text));
            }
            let (spec, exclusion) = self.own_window(spec, false)?;
            self.level().named_windows.push(Named { name, spec, exclusion, used: false });
        }
        Ok(())
    }

    fn named_window(&mut self, ident: &ast::Ident) -> SqlResult<Named> {
        let (name, start) = (ident_name(ident), ident.span.start);
        let found = self.level().named_windows.iter_mut().find(|known| known.name == name);
        let found = found.map(|known| {
            known.used = true;
            known.clone()
        });
        found.ok_or_else(|| {
            let text = format!("window \"{name}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_OBJECT, text).or_at(start.line, start.column)
        })
    }

    /// Binds the windows that nobody has named, to say what is wrong with them.
    ///
    /// # Errors
    /// Of binding.
    pub(super) fn check_unused_windows(&mut self) -> SqlResult<()> {
        let unused = self.level().named_windows.iter().filter(|known| !known.used);
        let unused: Vec<ast::WindowSpec> = unused.map(|known| known.spec.clone()).collect();
        for spec in &unused {
            self.without_windows(IN_DEFINITION, |b| b.window_keys(spec))?;
        }
        Ok(())
    }

    /// A window as it is written, behind OVER or in WINDOW, with what it has of the one that it is
    /// made of, and what its frame leaves out.
    fn own_window(
        &mut self,
        spec: &ast::WindowSpec,
        over: bool,
    ) -> SqlResult<(ast::WindowSpec, Option<Exclusion>)> {
        let mut spec = spec.clone();
        let exclusion = take_exclusion(&mut spec);
        if let Some(name) = spec.window_name.take() {
            let base = self.named_window(&name)?;
            check_copied(&base.name, &base.spec, (&spec, over))?;
            spec.partition_by = base.spec.partition_by;
            if spec.order_by.is_empty() {
                spec.order_by = base.spec.order_by;
            }
        }
        Ok((spec, exclusion))
    }

    /// The window of a call, and what its frame leaves out.
    fn window_spec(
        &mut self,
        over: &ast::WindowType,
    ) -> SqlResult<(ast::WindowSpec, Option<Exclusion>)> {
        match over {
            ast::WindowType::NamedWindow(name) => {
                let named = self.named_window(name)?;
                Ok((named.spec, named.exclusion))
            }
            ast::WindowType::WindowSpec(spec) => self.own_window(spec, true),
        }
    }

    pub(super) fn window_call(&mut self, name: &str, function: &ast::Function) -> SqlResult<Bound> {
        self.risky |= !matches!(name, "row_number" | "rank" | "dense_rank" | "count");
        let refuse = |text: String| Err(SqlError::new(SqlState("42P20"), text));
        if let Some(why) = self.level().aggregating.no_windows {
            return refuse(why.to_string());
        }
        if let Some(clause) = self.level().aggregating.refused_in {
            return refuse(format!("window functions are not allowed in {clause}"));
        }
        if self.level().aggregating.inside {
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                "aggregate function calls cannot contain window function calls",
            ));
        }
        let over = function.over.as_ref().ok_or_else(|| SqlError::internal("no OVER"))?;
        let (spec, exclusion) = self.window_spec(over)?;
        let (resolved, filter) = self.without_windows(NESTED, |b| {
            let resolved = b.window_function(name, function)?;
            let filter = function.filter.as_ref().map(|f| b.condition(f, "FILTER"));
            Ok((resolved, filter.transpose()?))
        })?;
        let Resolved { function: definition, args, ret, shown, default } = resolved;
        let args = self.behind_filter(filter.as_ref(), args);
        let (partition, order) = self.without_windows(IN_DEFINITION, |b| b.window_keys(&spec))?;
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
        let Some(default) = default else { return shown.value(self.window_slot(pending)) };
        let value = shown.value(self.window_slot(pending.clone()))?;
        pending.args[0] = Bound::constant(Datum::Bool(true), SqlType::Bool);
        pending.ret = SqlType::Bool;
        let there = self.window_slot(pending);
        let found = Bound::new(Node::IsNull(there, true), SqlType::Bool);
        let branch = CaseBranch { when: found, then: value };
        Ok(Bound::new(Node::Case(vec![branch], Some(default)), ret))
    }

    /// What makes partitions, and their order.
    fn window_keys(&mut self, spec: &ast::WindowSpec) -> SqlResult<(Vec<Bound>, Vec<OrderedBy>)> {
        let mut partition = Vec::new();
        for expr in &spec.partition_by {
            let bound = self.settled(expr)?;
            bound.ty().check_comparable("equality")?;
            partition.push(equality_form(bound)?);
        }
        let mut order = Vec::new();
        for key in &spec.order_by {
            let OrderKey { desc, nulls_first } = OrderKey::of(&key.options);
            let bound = self.settled(&key.expr)?;
            bound.ty().check_comparable("ordering")?;
            order.push((order_form(bound)?, desc, nulls_first));
        }
        Ok((partition, order))
    }

    /// Binds what may hold no window functions, for this reason.
    pub(super) fn without_windows<T>(
        &mut self,
        why: &'static str,
        bind: impl FnOnce(&mut Self) -> SqlResult<T>,
    ) -> SqlResult<T> {
        let before = self.level().aggregating.no_windows.replace(why);
        let bound = bind(self);
        self.level().aggregating.no_windows = before;
        bound
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
        if is_aggregate(name) && !is_called_as_window(name, function) {
            let Chosen { udf, args, ret, shown } = self.choose_aggregate(name, function)?;
            refuse_in_window(name, function, &given)?;
            let function = Function::Aggregate(udf);
            return Ok(Resolved { function, args, ret, shown, default: None });
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
        refuse_in_function(name, function, &given)?;
        let mut converted = Vec::with_capacity(args.len());
        for (arg, ty) in args.into_iter().zip(&choice.args) {
            converted.push(coerce(arg, ty, CastContext::Implicit, self)?);
        }
        let mut resolved = self.counted(name, code, converted, choice.ret)?;
        let last = resolved.args.len().checked_sub(1);
        let varies = |arg: Option<&Bound>| arg.is_some_and(|arg| arg.as_const().is_none());
        let counts = code.counting_argument().and_then(|at| resolved.args.get(at));
        if last == code.default_argument() && varies(resolved.args.last()) && !varies(counts) {
            resolved.default = resolved.args.pop();
        }
        Ok(resolved)
    }

    /// The functions that count rows or parts, as a rule the same number for all rows, and the
    /// others.
    fn counted(
        &mut self,
        name: &str,
        code: WindowCode,
        mut args: Vec<Bound>,
        ret: SqlType,
    ) -> SqlResult<Resolved> {
        if let Some(arg) = code.counting_argument().and_then(|at| args.get_mut(at)) {
            *arg = coerce(arg.clone(), &SqlType::Int8, CastContext::Implicit, self)?;
            if arg.is_const() {
                let value = self.value_now(arg)?.unwrap_or(Datum::Int8(1));
                *arg = Bound::constant(value, SqlType::Int8);
            }
            if arg.as_const().is_some_and(Datum::is_null) {
                // Without a count there is no row to look at.
                let null = Bound::constant(Datum::Null, ret.clone());
                let function = Function::Window(WindowCode::FirstValue);
                let (args, shown) = (vec![null], Shown::default());
                return Ok(Resolved { function, args, ret, shown, default: None });
            }
            if let (Some(state), Some(Datum::Int8(..=0))) = (code.state_below_one(), arg.as_const())
            {
                let message = format!("argument of {name} must be greater than zero");
                return Err(SqlError::new(SqlState(state), message));
            }
        }
        let shown = Shown::like(&args, &ret);
        Ok(Resolved { function: Function::Window(code), args, ret, shown, default: None })
    }

    /// The window nodes for the calls of this level.
    pub(super) fn window_plan(&mut self, plan: LogicalPlan) -> SqlResult<LogicalPlan> {
        let pending = std::mem::take(&mut self.level().windows);
        let mut plan = plan;
        for one in pending {
            self.check_cancel()?;
            let args = self.planned(&mut plan, &one.args)?;
            let partition = self.sortable_keys(&mut plan, one.partition.iter())?;
            let frame = self.frame(&one.order, one.frame.as_ref(), one.exclusion)?;
            let keys =
                self.sortable_keys(&mut plan, one.order.iter().map(|(bound, _, _)| bound))?;
            let sorts = keys.iter().cloned().zip(&one.order);
            let sorts =
                sorts.map(|(key, (_, desc, nulls_first))| Sort::new(key, !desc, *nulls_first));
            let order = sorts.collect();
            let filter = self.planned(&mut plan, one.filter.as_slice())?.pop();
            let mut call = match one.own(&frame) {
                Some(inner) => {
                    self.own_call(&mut plan, &one, (inner, frame), (args, filter, keys))?
                }
                None => {
                    let mut call = WindowFunction::new(one.function.definition(), args);
                    call.params.filter = filter.map(Box::new);
                    call.params.window_frame = frame.streamed().unwrap_or_else(|| frame.unused());
                    call
                }
            };
            call.params.partition_by = partition;
            call.params.order_by = order;
            let name = self.slot_name(one.slot);
            plan = window_column(plan, call, name, &arrow_form::data_type(&one.ret))?;
        }
        Ok(plan)
    }

    /// A call of a function of ours: with its filter and all that its frames are made of behind its
    /// arguments.
    fn own_call(
        &mut self,
        plan: &mut LogicalPlan,
        one: &Pending,
        (inner, frame): (Inner, Frame),
        (mut args, filter, keys): (Vec<Expr>, Option<Expr>, Vec<Expr>),
    ) -> SqlResult<WindowFunction> {
        let keys = if frame.shape.needs_peers() { keys } else { Vec::new() };
        let offsets = frame.offsets.each_ref();
        let layout = Layout {
            own: args.len(),
            filtered: filter.is_some(),
            offsets: offsets.map(Option::is_some),
            keyed: frame.key.is_some(),
            peers: keys.len(),
        };
        args.extend(filter);
        let offsets = offsets.into_iter().flatten().map(|offset| &offset.value);
        let behind: Vec<Bound> = offsets.chain(&frame.key).cloned().collect();
        args.extend(self.planned(plan, &behind)?);
        args.extend(keys);
        let unused = frame.unused();
        let place = self.place.clone();
        let own = Framed::function(inner, frame.shape, layout, one.ret.clone(), place);
        let mut call = WindowFunction::new(WindowFunctionDefinition::WindowUDF(own), args);
        call.params.window_frame = unused;
        Ok(call)
    }

    /// The expressions of a call over a plan.
    fn planned(&mut self, plan: &mut LogicalPlan, all: &[Bound]) -> SqlResult<Vec<Expr>> {
        let mut exprs = Vec::with_capacity(all.len());
        for bound in all {
            let expr = self.plan_expr(bound)?;
            exprs.push(self.without_placeholders(plan, expr)?);
        }
        Ok(exprs)
    }

    /// Keys that compare as SQL compares.
    fn sortable_keys<'b>(
        &mut self,
        plan: &mut LogicalPlan,
        all: impl Iterator<Item = &'b Bound>,
    ) -> SqlResult<Vec<Expr>> {
        let mut keys = Vec::new();
        for bound in all {
            let expr = self.plan_expr(bound)?;
            let expr = self.without_placeholders(plan, expr)?;
            keys.push(scalar::sortable(expr, bound.ty()));
        }
        Ok(keys)
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

/// The frame of functions that only number rows: one of distances would ask for keys that have
/// some, which those of a locale have not.
pub(super) fn up_to_here(order: &[Sort]) -> WindowFrame {
    if order.is_empty() {
        return WindowFrame::new(None);
    }
    let first = WindowFrameBound::Preceding(ScalarValue::UInt64(None));
    WindowFrame::new_bounds(WindowFrameUnits::Groups, first, WindowFrameBound::CurrentRow)
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
