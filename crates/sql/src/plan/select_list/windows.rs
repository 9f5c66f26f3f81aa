//! Window functions over the few rows that a chain finds.
//!
//! ```text
//!   SELECT id, count(*) OVER (), row_number() OVER (PARTITION BY customer ORDER BY placed DESC)
//!     joined rows, all of them        7 ..   8 ..   9 ..
//!     behind their columns            3, 1   3, 2   3, 1       what the windows give
//! ```
//! Known are the numbers of rows, aggregates of whole partitions, and single rows before and
//! behind. What has a frame, or an aggregate that runs along an order, is for general plans.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::ControlFlow;

use braid_catalog::memory_error;
use braid_env::memory::Held;
use braid_rows::{Row, row_memory};
use braid_scalar::{Bound, ParamTypes, Scope, ScopeColumn, Volatility, object_name_parts};
use braid_types::{Datum, GroupKey, SqlResult, SqlType};
use bytes::Bytes;
use sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, OrderByKind, SelectItem,
    WindowType,
};

use crate::plan::aggregate::Aggregate;
use crate::plan::select::SortKey;
use crate::plan::shown::{STAND_INS, stand_in};
use crate::plan::sorting::sorted;
use crate::plan::stream::compare;
use crate::session::Context;

/// One window function; its expressions are over the joined row.
pub(in crate::plan) struct Window {
    kind: Kind,
    partition: Vec<Bound>,
    order: Vec<SortKey>,
    /// Its place behind the joined row.
    at: usize,
}

/// What a window function gives.
enum Kind {
    RowNumber,
    Rank,
    DenseRank,
    /// Of all rows of the partition.
    Aggregate(Aggregate),
    /// Of the row so many places before, or behind.
    Beside(Bound, i64),
    /// Of the first row of the partition.
    First(Bound),
}

/// A query with columns in the place of its window functions.
pub(in crate::plan) struct Windowed {
    pub(in crate::plan) select: ast::Select,
    pub(in crate::plan) query: ast::Query,
    pub(in crate::plan) windows: Vec<Window>,
}

/// Takes the window functions out of a query, and adds the columns that stand for them to the
/// scope. Outer `None` if one is for general plans; inner `None` if there are none.
///
/// # Errors
/// What is wrong with one.
pub(in crate::plan) fn taken_out(
    (query, select): (&ast::Query, &ast::Select),
    scope: &mut Scope,
    params: &mut ParamTypes,
) -> SqlResult<Option<Option<Windowed>>> {
    let (mut query, mut select) = (query.clone(), select.clone());
    let mut calls: Vec<ast::Function> = Vec::new();
    let mut take = |e: &mut Expr| {
        let _: ControlFlow<()> = braid_walk::expressions_mut(e, |e| {
            if let Expr::Function(call) = e
                && call.over.is_some()
            {
                let at = calls.iter().position(|known| known == call).unwrap_or(calls.len());
                if at == calls.len() {
                    calls.push(call.clone());
                }
                *e = stand_in(format!("window {at}"));
            }
            ControlFlow::Continue(())
        });
    };
    for item in &mut select.projection {
        match item {
            SelectItem::UnnamedExpr(e) => {
                let name = braid_scalar::output_name(e);
                let before = e.clone();
                take(e);
                if *e != before {
                    let (expr, alias) = (e.clone(), ast::Ident::with_quote('"', name));
                    *item = SelectItem::ExprWithAlias { expr, alias };
                }
            }
            SelectItem::ExprWithAlias { expr, .. } => take(expr),
            _ => {}
        }
    }
    if let Some(order) = &mut query.order_by
        && let OrderByKind::Expressions(keys) = &mut order.kind
    {
        keys.iter_mut().for_each(|key| take(&mut key.expr));
    }
    if calls.is_empty() {
        return Ok(Some(None));
    }
    let (first, over) = (scope.len(), scope.clone());
    let mut windows = Vec::new();
    for (n, call) in calls.into_iter().enumerate() {
        let Some((window, ty)) = bind(call, first + n, &over, params)? else { return Ok(None) };
        scope.push(ScopeColumn {
            table: Some(STAND_INS.to_string()),
            hidden: true,
            ..ScopeColumn::new(format!("window {n}"), ty)
        });
        windows.push(window);
    }
    Ok(Some(Some(Windowed { select, query, windows })))
}

/// Binds a call; `None` if it is for general plans.
fn bind(
    mut call: ast::Function,
    at: usize,
    scope: &Scope,
    params: &mut ParamTypes,
) -> SqlResult<Option<(Window, SqlType)>> {
    let Some(WindowType::WindowSpec(spec)) = call.over.take() else { return Ok(None) };
    if spec.window_name.is_some()
        || spec.window_frame.is_some()
        || call.null_treatment.is_some()
        || !call.within_group.is_empty()
    {
        return Ok(None);
    }
    let settled = |e: &Bound| {
        e.volatility() != Volatility::Volatile
            && e.ty().is_comparable()
            && e.collation().is_by_bytes()
    };
    let (mut partition, mut order) = (Vec::new(), Vec::new());
    for e in &spec.partition_by {
        partition.push(braid_scalar::bind(e, scope, params)?);
    }
    for key in &spec.order_by {
        let expr = braid_scalar::bind(&key.expr, scope, params)?;
        order.push(SortKey::by(expr, &key.options));
    }
    if !partition.iter().chain(order.iter().map(|key| &key.expr)).all(settled) {
        return Ok(None);
    }
    let Some((kind, ty)) = kind(call, order.is_empty(), scope, params)? else { return Ok(None) };
    Ok(Some((Window { kind, partition, order, at }, ty)))
}

fn kind(
    call: ast::Function,
    whole: bool,
    scope: &Scope,
    params: &mut ParamTypes,
) -> SqlResult<Option<(Kind, SqlType)>> {
    let name = object_name_parts(&call.name);
    let name = match name.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [name] | ["pg_catalog", name] => name.to_string(),
        _ => return Ok(None),
    };
    if whole && braid_scalar::is_aggregate(&name) {
        let found = Aggregate::bind(&Expr::Function(call), scope, params)?;
        return Ok(found.filter(|a| !a.is_volatile()).map(|aggregate| {
            let ty = aggregate.ty.clone();
            (Kind::Aggregate(aggregate), ty)
        }));
    }
    let FunctionArguments::List(list) = &call.args else { return Ok(None) };
    if call.filter.is_some() || list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
        return Ok(None);
    }
    let mut args = Vec::new();
    for arg in &list.args {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) = arg else { return Ok(None) };
        args.push(braid_scalar::bind(e, scope, params)?);
    }
    let plain = |e: &Bound| e.as_column().is_some() && e.collation().is_by_bytes();
    Ok(match (name.as_str(), args.as_slice()) {
        ("row_number", []) => Some((Kind::RowNumber, SqlType::Int8)),
        ("rank", []) => Some((Kind::Rank, SqlType::Int8)),
        ("dense_rank", []) => Some((Kind::DenseRank, SqlType::Int8)),
        ("lag", [of]) if plain(of) => Some((Kind::Beside(of.clone(), -1), of.ty().clone())),
        ("lead", [of]) if plain(of) => Some((Kind::Beside(of.clone(), 1), of.ty().clone())),
        ("first_value", [of]) if plain(of) => Some((Kind::First(of.clone()), of.ty().clone())),
        _ => None,
    })
}

/// A row with what orders it in its partition, and its place among the rows.
type Placed = (Row, usize);

impl Window {
    /// All expressions over the joined row.
    pub(in crate::plan) fn exprs(&self) -> impl Iterator<Item = &Bound> {
        let (aggregate, of) = match &self.kind {
            Kind::Aggregate(aggregate) => (Some(aggregate), None),
            Kind::Beside(of, _) | Kind::First(of) => (None, Some(of)),
            _ => (None, None),
        };
        let order = self.order.iter().map(|key| &key.expr);
        let own = aggregate.into_iter().flat_map(Aggregate::exprs).chain(of);
        self.partition.iter().chain(order).chain(own)
    }

    /// What EXPLAIN says, with columns of the joined row named by `names`.
    pub(in crate::plan) fn describe(&self, names: &dyn Fn(usize) -> String) -> String {
        let what = match &self.kind {
            Kind::RowNumber => "row_number()".to_string(),
            Kind::Rank => "rank()".to_string(),
            Kind::DenseRank => "dense_rank()".to_string(),
            Kind::Aggregate(aggregate) => aggregate.describe(names),
            Kind::Beside(of, n) if *n < 0 => format!("lag({})", of.to_sql(names)),
            Kind::Beside(of, _) => format!("lead({})", of.to_sql(names)),
            Kind::First(of) => format!("first_value({})", of.to_sql(names)),
        };
        let keys: Vec<String> = self.partition.iter().map(|key| key.to_sql(names)).collect();
        let by = if keys.is_empty() { String::new() } else { format!(" for {}", keys.join(", ")) };
        format!("{what}{by}{}", SortKey::describe(&self.order, " by ", names))
    }

    /// Adds its values to rows.
    fn compute(&self, rows: &mut [(Bytes, Row)], ctx: &Context, held: &mut Held) -> SqlResult<()> {
        let mut numbers: HashMap<GroupKey, usize> = HashMap::new();
        let mut partitions: Vec<Vec<Placed>> = Vec::new();
        for (place, (_, row)) in rows.iter_mut().enumerate() {
            row.resize_with(row.len().max(self.at + 1), || Datum::Null);
            let key = self.partition.iter().map(|key| key.eval(row, &ctx.eval));
            let key = GroupKey(key.collect::<SqlResult<Row>>()?);
            let by = self.order.iter().map(|key| key.expr.eval(row, &ctx.eval));
            let by = by.collect::<SqlResult<Row>>()?;
            held.grow(row_memory(&key.0) + row_memory(&by)).map_err(|e| memory_error(&e))?;
            let next = partitions.len();
            let at = *numbers.entry(key).or_insert(next);
            if at == next {
                partitions.push(Vec::new());
            }
            partitions[at].push((by, place));
        }
        for mut partition in partitions {
            if !self.order.is_empty() {
                let by_keys = |a: &Placed, b: &Placed| compare(&self.order, &a.0, &b.0);
                partition = sorted(partition, by_keys, || ctx.check_cancel())?;
            }
            self.of_partition(&partition, rows, ctx)?;
        }
        Ok(())
    }

    /// The values of the rows of a partition, which come in its order.
    fn of_partition(
        &self,
        partition: &[Placed],
        rows: &mut [(Bytes, Row)],
        ctx: &Context,
    ) -> SqlResult<()> {
        let of = |expr: &Bound, n: usize, rows: &[(Bytes, Row)]| match partition.get(n) {
            Some((_, place)) => expr.eval(&rows[*place].1, &ctx.eval),
            None => Ok(Datum::Null),
        };
        let all = match &self.kind {
            Kind::Aggregate(aggregate) => {
                let mut state = aggregate.start(Some(&ctx.memory));
                for (_, place) in partition {
                    aggregate.add(&mut state, &rows[*place].1, &ctx.eval)?;
                }
                Some(aggregate.finish(&mut state, &ctx.eval)?)
            }
            Kind::First(expr) => Some(of(expr, 0, rows)?),
            _ => None,
        };
        let (mut rank, mut dense) = (0, 0);
        for (n, (by, place)) in partition.iter().enumerate() {
            let peer = n > 0 && compare(&self.order, &partition[n - 1].0, by) == Ordering::Equal;
            if !peer {
                (rank, dense) = (n as i64 + 1, dense + 1);
            }
            let value = match (&self.kind, &all) {
                (_, Some(value)) => value.clone(),
                (Kind::Rank, _) => Datum::Int8(rank),
                (Kind::DenseRank, _) => Datum::Int8(dense),
                (Kind::Beside(expr, by), _) => match n.checked_add_signed(*by as isize) {
                    Some(n) => of(expr, n, rows)?,
                    None => Datum::Null,
                },
                _ => Datum::Int8(n as i64 + 1),
            };
            rows[*place].1[self.at] = value;
        }
        Ok(())
    }
}

/// Adds the values of all windows to rows. What is kept for that is held as long as they are.
///
/// # Errors
/// Of computing; 53200 when it does not fit.
pub(in crate::plan) fn compute(
    windows: &[Window],
    rows: &mut [(Bytes, Row)],
    ctx: &Context,
    held: &mut Held,
) -> SqlResult<()> {
    windows.iter().try_for_each(|window| window.compute(rows, ctx, held))
}
