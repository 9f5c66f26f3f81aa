//! FETCH FIRST .. WITH TIES: rows that are equal to the last one by ORDER BY come along. How
//! many rows LIMIT and OFFSET say, also by columns of a query around.
//!
//! ```text
//!   offset 1 fetch 2      rows by their keys      10   20   20   20   30
//!                         place of the row         1    2    3    4    5    > 1
//!                         rank: of its first peer  1    2    2    2    5    <= 1 + 2
//! ```

use std::sync::Arc;

use braid_scalar::{Applied, Bound, EvalContext, Node, Scope, Volatility, at_beginning, coerce};
use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType};
use datafusion::arrow::datatypes::DataType;
use datafusion::functions_window::rank::rank_udwf;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{Sort, WindowFunction};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, Projection, WindowFunctionDefinition, WindowUDF, lit,
};
use sqlparser::ast;

use super::assumed::row_count;
use super::function_table::columns_of;
use super::window::{up_to_here, window_column};
use super::{Binder, SlotKind, column};
use crate::error::from_df;

impl Binder<'_> {
    /// The number of rows that LIMIT or OFFSET says.
    pub(super) fn page_count(
        &mut self,
        query: &ast::Query,
        expr: &ast::Expr,
        clause: &'static str,
    ) -> SqlResult<Bound> {
        let counted = self.isolated(|b| {
            let none = Scope::empty();
            b.without_aggregates(clause, |b| braid_scalar::bind_unsettled(expr, &none, b))
        });
        let bound = match counted {
            Err(error) if error.state() == SqlState::UNDEFINED_COLUMN => {
                let other = self.count_of_own_rows(query, expr, clause)?;
                return Err(other.unwrap_or(error));
            }
            bound => bound?,
        };
        let bound = match bound.columns().is_empty() {
            true => bound,
            // Columns of queries around: they belong to this level.
            false => {
                let own = std::mem::take(&mut self.level().scope);
                let bound = braid_scalar::bind_unsettled(expr, &Scope::empty(), self);
                self.level().scope = own;
                bound?
            }
        };
        coerce(bound, &SqlType::Int8, CastContext::Assignment, self)
            .map_err(|e| at_beginning(e, expr))
    }

    /// What is wrong with a count that means columns of the query itself.
    fn count_of_own_rows(
        &mut self,
        query: &ast::Query,
        expr: &ast::Expr,
        clause: &'static str,
    ) -> SqlResult<Option<SqlError>> {
        let ast::SetExpr::Select(select) = &*query.body else { return Ok(None) };
        self.isolated(|b| {
            b.bind_from(&select.from)?;
            let own = b.level().scope.clone();
            let bound =
                b.without_aggregates(clause, |b| braid_scalar::bind_unsettled(expr, &own, b));
            Ok(match bound {
                Ok(bound) if bound.columns().is_empty() => None,
                Ok(_) => {
                    let text = format!("argument of {clause} must not contain variables");
                    let error = SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, text);
                    Some(at_beginning(error, expr))
                }
                Err(error) => Some(error).filter(|e| e.state() != SqlState::UNDEFINED_COLUMN),
            })
        })
    }

    /// The rows of a sorted plan after the first `skip`: `most`, at least one, and those that are
    /// equal to the last of them.
    pub(super) fn with_ties(
        &mut self,
        plan: LogicalPlan,
        skip: usize,
        most: usize,
    ) -> SqlResult<LogicalPlan> {
        match plan {
            LogicalPlan::Sort(sort) => {
                let input = Arc::unwrap_or_clone(sort.input);
                self.first_with_ties(input, sort.expr, skip, most)
            }
            LogicalPlan::Projection(above) => {
                let input = Arc::unwrap_or_clone(above.input);
                let input = Arc::new(self.with_ties(input, skip, most)?);
                Projection::try_new(above.expr, input).map(LogicalPlan::Projection).map_err(from_df)
            }
            _ => Err(SqlError::unsupported("WITH TIES of this query")
                .with_hint("Put the query into FROM, and order and fetch outside of it.")),
        }
    }

    fn first_with_ties(
        &mut self,
        input: LogicalPlan,
        order: Vec<Sort>,
        skip: usize,
        most: usize,
    ) -> SqlResult<LogicalPlan> {
        let own = columns_of(&input);
        let (ranked, rank) = self.numbered(input, rank_udwf(), &order)?;
        let last = i64::try_from(skip.saturating_add(most)).unwrap_or(i64::MAX);
        let mut kept = column(&rank).lt_eq(lit(last));
        let mut plan = ranked;
        if skip > 0 {
            let place;
            (plan, place) = self.numbered(plan, row_number_udwf(), &order)?;
            kept = kept.and(column(&place).gt(lit(i64::try_from(skip).unwrap_or(i64::MAX))));
        }
        LogicalPlanBuilder::from(plan)
            .filter(kept)
            .and_then(|builder| builder.sort(order))
            .and_then(|builder| builder.project(own))
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)
    }

    /// The rows of a plan after as many as one value says, and as many as another says: both are
    /// values of columns of queries around.
    pub(super) fn as_many_as(
        &mut self,
        plan: LogicalPlan,
        (limit, offset): (Option<&Bound>, Option<&Bound>),
        with_ties: bool,
    ) -> SqlResult<LogicalPlan> {
        if with_ties {
            return Err(SqlError::unsupported("WITH TIES of as many rows as a column says"));
        }
        let (input, order) = match plan {
            LogicalPlan::Sort(sort) => (Arc::unwrap_or_clone(sort.input), sort.expr),
            LogicalPlan::Projection(above) if is_sorted(&above.input) => {
                let input = Arc::unwrap_or_clone(above.input);
                let input = Arc::new(self.as_many_as(input, (limit, offset), false)?);
                return Projection::try_new(above.expr, input)
                    .map(LogicalPlan::Projection)
                    .map_err(from_df);
            }
            other => (other, Vec::new()),
        };
        let own = columns_of(&input);
        let (numbered, place) = self.numbered(input, row_number_udwf(), &order)?;
        let slot = self.add_slot(SlotKind::Plan(column(&place)), SqlType::Int8);
        let all = || Bound::constant(Datum::Null, SqlType::Int8);
        let args = vec![
            Bound::column(slot, SqlType::Int8),
            limit.cloned().unwrap_or_else(all),
            offset.cloned().unwrap_or_else(all),
        ];
        let is_one = Bound::new(Node::Apply(Arc::new(IsOneOf), args), SqlType::Bool);
        let kept = self.plan_expr(&is_one)?;
        let builder = LogicalPlanBuilder::from(numbered).filter(kept).map_err(from_df)?;
        let builder = if order.is_empty() { Ok(builder) } else { builder.sort(order) };
        builder
            .and_then(|builder| builder.project(own))
            .and_then(LogicalPlanBuilder::build)
            .map_err(from_df)
    }

    /// A column with the number of each row in an order.
    fn numbered(
        &mut self,
        input: LogicalPlan,
        function: Arc<WindowUDF>,
        order: &[Sort],
    ) -> SqlResult<(LogicalPlan, String)> {
        let name = self.fresh("n");
        let mut call =
            WindowFunction::new(WindowFunctionDefinition::WindowUDF(function), Vec::<Expr>::new());
        call.params.order_by = order.to_vec();
        call.params.window_frame = up_to_here(order);
        let plan = window_column(input, call, name.clone(), &DataType::Int64)?;
        Ok((plan, name))
    }
}

/// Whether its rows are sorted before it shows some of their columns.
fn is_sorted(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(above) => is_sorted(&above.input),
        _ => false,
    }
}

/// Whether the row of a number is one of so many after so many.
struct IsOneOf;

impl Applied for IsOneOf {
    fn apply(&self, args: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
        let [Datum::Int8(number), limit, offset] = args else {
            return Err(SqlError::internal("the number of a row is missing"));
        };
        let number = usize::try_from(*number).unwrap_or(0);
        let most = row_count(limit.clone(), "LIMIT")?;
        let skip = row_count(offset.clone(), "OFFSET")?.unwrap_or(0);
        let is_one = number > skip && most.is_none_or(|most| number - skip <= most);
        Ok(Datum::Bool(is_one))
    }

    fn label(&self) -> String {
        "limit".to_string()
    }

    fn volatility(&self) -> Volatility {
        Volatility::Immutable
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
