//! A subquery's plan for many outer rows at once.
//!
//! ```text
//!   outer rows      $keys             the plan, each row with the number of its key
//!     x = 7    ─►   n │ x      ─►     Join s.k = $keys.x        n │ s.v
//!     x = 9         0 │ 7               $keys                   0 │ 'a'
//!     x = 7         1 │ 9               Scan s                  1 │ 'b'
//! ```
//! The table of keys is joined where the plan first depends on the outer row: below the filters
//! that name it. Above, groups and limits are those of each key; an aggregate of all rows has one
//! row for each key, also for one without rows. What cannot be turned like this (windows,
//! recursion, some outer joins) gives `None`.

use std::collections::HashMap;
use std::sync::Arc;

use braid_types::{Datum, SqlType};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ExprSchema, JoinType, Result, TableReference};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::logical_plan::{
    Aggregate, FetchType, Filter, Join, Limit, Projection, SkipType, Sort, TableScan,
};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, SortExpr, WindowFrame, WindowFunctionDefinition, lit,
    when,
};

use super::outer::{has_outer, plan_has_outer, substitute, unaliased};
use crate::arrow_form;

/// What the tables of keys are called.
const KEYS: &str = "$keys";
/// A plan for many keys; its first column is the number of the key.
pub(crate) struct Keyed {
    plan: LogicalPlan,
    schema: SchemaRef,
    types: Vec<SqlType>,
}

impl Keyed {
    /// Turns a plan; the outer columns are the placeholders of these names. `wanted` are the
    /// columns of the plan that are asked for.
    pub(crate) fn new(
        plan: &LogicalPlan,
        outer: &[(String, SqlType)],
        wanted: usize,
    ) -> Result<Option<Keyed>> {
        let mut fields = vec![Field::new("n", DataType::Int64, false)];
        for (name, ty) in outer {
            fields.push(Field::new(name, arrow_form::data_type(ty), true));
        }
        let schema = Arc::new(Schema::new(fields));
        let mut turner = Turner { schema: schema.clone(), next: 0 };
        let columns = plan.schema().columns();
        let Some(turned) = turner.turn(plan)? else { return Ok(None) };
        let mut shown = vec![turned.number.alias(format!("{KEYS} number"))];
        if wanted > 0 {
            shown.extend(columns.into_iter().take(wanted).map(Expr::Column));
        }
        let mut builder = LogicalPlanBuilder::from(turned.plan).project(shown)?;
        if wanted == 0 {
            // Only whether there is a row.
            builder = builder.distinct()?;
        }
        let types = outer.iter().map(|(_, ty)| ty.clone()).collect();
        Ok(Some(Keyed { plan: builder.build()?, schema, types }))
    }

    /// The plan before it knows the keys.
    pub(crate) fn plan(&self) -> &LogicalPlan {
        &self.plan
    }

    /// `plan`, which is this one or what an optimizer made of it, for these keys.
    pub(crate) fn with_keys(&self, plan: LogicalPlan, keys: &[Vec<Datum>]) -> Result<LogicalPlan> {
        let numbers = Int64Array::from_iter_values(0..keys.len() as i64);
        let mut columns: Vec<ArrayRef> = vec![Arc::new(numbers)];
        for (at, ty) in self.types.iter().enumerate() {
            columns.push(arrow_form::build(ty, keys.iter().map(|key| &key[at])));
        }
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        let source = provider_as_source(Arc::new(MemTable::try_new(
            self.schema.clone(),
            vec![vec![batch]],
        )?));
        plan.transform_up(|node| match node {
            LogicalPlan::TableScan(scan) if scan.table_name.table().starts_with(KEYS) => {
                let scan = TableScan { source: source.clone(), ..scan };
                Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
            }
            other => Ok(Transformed::no(other)),
        })
        .map(|t| t.data)
    }
}

/// A turned plan: where the number of the key is, and the outer columns.
struct Turned {
    plan: LogicalPlan,
    number: Expr,
    outer: HashMap<String, Expr>,
}

impl Turned {
    /// Number and outer columns, to be passed on.
    fn passed(&self) -> Vec<Expr> {
        let mut all = vec![self.number.clone()];
        let mut outer: Vec<&Expr> = self.outer.values().collect();
        outer.sort_by_key(|e| e.schema_name().to_string());
        all.extend(outer.into_iter().cloned());
        all
    }

    fn replaced(&self, expr: &Expr) -> Result<Expr> {
        let name = expr.schema_name().to_string();
        let replaced = substitute(expr.clone(), &self.outer)?;
        // The expressions above know it by its name.
        Ok(match has_outer(expr) && !matches!(expr, Expr::Alias(_)) {
            true => replaced.alias(name),
            false => replaced,
        })
    }

    fn with(self, plan: LogicalPlan) -> Turned {
        Turned { plan, ..self }
    }
}

struct Turner {
    schema: SchemaRef,
    next: usize,
}

impl Turner {
    /// A table of the keys.
    fn keys(&mut self) -> Result<Turned> {
        self.next += 1;
        let name = TableReference::bare(format!("{KEYS}{}", self.next));
        let table = MemTable::try_new(self.schema.clone(), vec![Vec::new()])?;
        let plan =
            LogicalPlanBuilder::scan(name.clone(), provider_as_source(Arc::new(table)), None)?
                .build()?;
        let column = |field: &str| Expr::Column(Column::new(Some(name.clone()), field));
        let outer = self.schema.fields().iter().skip(1);
        let outer = outer.map(|f| (f.name().clone(), column(f.name()))).collect();
        Ok(Turned { plan, number: column("n"), outer })
    }

    fn turn(&mut self, plan: &LogicalPlan) -> Result<Option<Turned>> {
        if !plan_has_outer(plan) {
            let keys = self.keys()?;
            let crossed =
                LogicalPlanBuilder::from(keys.plan.clone()).cross_join(plan.clone())?.build()?;
            return Ok(Some(keys.with(crossed)));
        }
        match plan {
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                let Some(turned) = self.turn(input)? else { return Ok(None) };
                let predicate = substitute(predicate.clone(), &turned.outer)?;
                let plan =
                    LogicalPlanBuilder::from(turned.plan.clone()).filter(predicate)?.build()?;
                Ok(Some(turned.with(plan)))
            }
            LogicalPlan::Projection(Projection { expr, input, .. }) => {
                let Some(turned) = self.turn(input)? else { return Ok(None) };
                let mut columns = turned.passed();
                for e in expr {
                    let e = turned.replaced(e)?;
                    if !columns.contains(&e) {
                        columns.push(e);
                    }
                }
                let plan =
                    LogicalPlanBuilder::from(turned.plan.clone()).project(columns)?.build()?;
                Ok(Some(turned.with(plan)))
            }
            LogicalPlan::Sort(sort) => {
                let Some(turned) = self.turn(&sort.input)? else { return Ok(None) };
                match sort.fetch {
                    None => {
                        let keys = sort_keys(sort, &turned)?;
                        let plan =
                            LogicalPlanBuilder::from(turned.plan.clone()).sort(keys)?.build()?;
                        Ok(Some(turned.with(plan)))
                    }
                    Some(n) => limited(turned, sort_keys(sort, &Turned::none())?, 0, Some(n)),
                }
            }
            LogicalPlan::Limit(limit) => self.turn_limit(limit),
            LogicalPlan::Aggregate(aggregate) => self.turn_aggregate(aggregate),
            LogicalPlan::Join(join) => self.turn_join(join),
            _ => Ok(None),
        }
    }

    fn turn_limit(&mut self, limit: &Limit) -> Result<Option<Turned>> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return Ok(None);
        };
        let (input, order) = match &*limit.input {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => (&sort.input, Some(sort)),
            _ => (&limit.input, None),
        };
        let Some(turned) = self.turn(input)? else { return Ok(None) };
        let order = order.map(|sort| sort_keys(sort, &turned)).transpose()?.unwrap_or_default();
        limited(turned, order, skip, fetch)
    }

    fn turn_aggregate(&mut self, aggregate: &Aggregate) -> Result<Option<Turned>> {
        let Some(turned) = self.turn(&aggregate.input)? else { return Ok(None) };
        let own: Vec<Expr> =
            aggregate.group_expr.iter().map(|e| turned.replaced(e)).collect::<Result<_>>()?;
        let calls: Vec<Expr> =
            aggregate.aggr_expr.iter().map(|e| turned.replaced(e)).collect::<Result<_>>()?;
        if !own.is_empty() {
            let groups = own.into_iter().chain(turned.passed());
            let plan =
                LogicalPlanBuilder::from(turned.plan.clone()).aggregate(groups, calls)?.build()?;
            return Ok(Some(turned.with(plan)));
        }
        // One row for each key: for a key without rows that of no rows.
        let plan = LogicalPlanBuilder::from(turned.plan)
            .aggregate([turned.number.clone()], calls)?
            .build()?;
        let keys = self.keys()?;
        let found = turned.number;
        let mut columns = keys.passed();
        for (call, column) in aggregate.aggr_expr.iter().zip(aggregate.schema.columns()) {
            let Expr::AggregateFunction(function) = unaliased(call) else { return Ok(None) };
            let ty = aggregate.schema.data_type(&column)?;
            let empty = function.func.default_value(ty)?;
            let value = Expr::Column(column.clone());
            columns.push(match empty.is_null() {
                true => value,
                false => when(found.clone().is_null(), Expr::Literal(empty, None))
                    .otherwise(value)?
                    .alias_qualified(column.relation.clone(), column.name.clone()),
            });
        }
        let plan = LogicalPlanBuilder::from(keys.plan.clone())
            .join_on(plan, JoinType::Left, [keys.number.clone().eq(found)])?
            .project(columns)?
            .build()?;
        Ok(Some(keys.with(plan)))
    }

    fn turn_join(&mut self, join: &Join) -> Result<Option<Turned>> {
        let right_outer = plan_has_outer(&join.right);
        let left_outer = plan_has_outer(&join.left);
        if join.on.iter().any(|(l, r)| has_outer(l) || has_outer(r)) {
            return Ok(None);
        }
        match join.join_type {
            JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => {}
            JoinType::LeftMark if !right_outer => {}
            _ => return Ok(None),
        }
        if join.join_type == JoinType::Inner && !left_outer && right_outer {
            let Some(right) = self.turn(&join.right)? else { return Ok(None) };
            let plan =
                rejoined(join, join.left.as_ref().clone(), right.plan.clone(), &right, None)?;
            return Ok(Some(right.with(plan)));
        }
        let Some(left) = self.turn(&join.left)? else { return Ok(None) };
        if !right_outer {
            let right = join.right.as_ref().clone();
            let plan = rejoined(join, left.plan.clone(), right, &left, None)?;
            return Ok(Some(left.with(plan)));
        }
        let Some(right) = self.turn(&join.right)? else { return Ok(None) };
        let same = left.number.clone().eq(right.number.clone());
        let plan = rejoined(join, left.plan.clone(), right.plan, &left, Some(same))?;
        Ok(Some(left.with(plan)))
    }
}

impl Turned {
    /// No plan: for expressions that name no outer column.
    fn none() -> Turned {
        let plan = LogicalPlan::default();
        Turned { plan, number: lit(0i64), outer: HashMap::new() }
    }
}

fn rejoined(
    join: &Join,
    left: LogicalPlan,
    right: LogicalPlan,
    outer: &Turned,
    same: Option<Expr>,
) -> Result<LogicalPlan> {
    let own = join.filter.clone().map(|f| substitute(f, &outer.outer)).transpose()?;
    let mut joined = join.clone();
    joined.left = left.into();
    joined.right = right.into();
    joined.filter = own.into_iter().chain(same).reduce(Expr::and);
    LogicalPlan::Join(joined).recompute_schema()
}

fn sort_keys(sort: &Sort, turned: &Turned) -> Result<Vec<SortExpr>> {
    let replaced = |s: &SortExpr| {
        let expr = substitute(s.expr.clone(), &turned.outer)?;
        Ok(SortExpr { expr, ..s.clone() })
    };
    sort.expr.iter().map(replaced).collect()
}

/// The first rows of each key.
fn limited(
    turned: Turned,
    order: Vec<SortExpr>,
    skip: usize,
    fetch: Option<usize>,
) -> Result<Option<Turned>> {
    let before: Vec<Expr> = turned.plan.schema().columns().into_iter().map(Expr::Column).collect();
    let definition = WindowFunctionDefinition::WindowUDF(row_number_udwf());
    let mut call = WindowFunction::new(definition, Vec::new());
    call.params.partition_by = vec![turned.number.clone()];
    call.params.window_frame = WindowFrame::new((!order.is_empty()).then_some(false));
    call.params.order_by = order;
    let call = Expr::WindowFunction(Box::new(call));
    let numbered = LogicalPlanBuilder::window_plan(turned.plan.clone(), [call])?;
    let Some(number) = numbered.schema().columns().pop().map(Expr::Column) else {
        return Ok(None);
    };
    let mut kept = number.clone().gt(lit(skip as u64));
    if let Some(fetch) = fetch {
        kept = kept.and(number.lt_eq(lit(skip.saturating_add(fetch) as u64)));
    }
    let plan = LogicalPlanBuilder::from(numbered).filter(kept)?.project(before)?.build()?;
    Ok(Some(turned.with(plan)))
}
