//! Window functions over the few rows that a chain finds.
//!
//! ```text
//!   SELECT id, count(*) OVER (), row_number() OVER (PARTITION BY customer ORDER BY placed DESC)
//!     joined rows, all of them        7 ..   8 ..   9 ..
//!     behind their columns            3, 1   3, 2   3, 1       what the windows give
//! ```
//! Aggregates take the rows of their partition in one by one, as far as their frames end where one
//! more of them ends ([`super::frames`]); those of a few rows around each row are computed anew.
//! Windows of WINDOW: [`super::named_windows`].

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

use braid_catalog::memory_error;
use braid_env::memory::Held;
use braid_parser::take_exclusion;
use braid_rows::{Row, row_memory};
use braid_scalar::{
    Bound, Code, EvalContext, ParamTypes, Scope, ScopeColumn, Volatility, WindowCode, coerce,
    object_name_parts, resolve,
};
use braid_types::{CastContext, Datum, GroupKey, SqlError, SqlResult, SqlState, SqlType};
use bytes::Bytes;
use sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, OrderByKind, SelectItem,
    WindowType,
};

use super::frames::Frame;
use crate::plan::aggregate::{Aggregate, State};
use crate::plan::select::SortKey;
use crate::plan::shown::{STAND_INS, stand_in};
use crate::plan::sorting::compare;
use crate::plan::sorting::sorted;
use crate::session::Context;

/// One window function; its expressions are over the joined row.
pub(in crate::plan) struct Window {
    kind: Kind,
    partition: Vec<Bound>,
    order: Vec<SortKey>,
    frame: Frame,
    /// Its place behind the joined row.
    at: usize,
}

/// What a window function gives.
enum Kind {
    /// A function of the registry, with its arguments.
    Function(WindowCode, Vec<Bound>),
    /// Of the rows of the frame.
    Aggregate(Aggregate),
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
    let Some(WindowType::WindowSpec(mut spec)) = call.over.take() else { return Ok(None) };
    if spec.window_name.is_some()
        || take_exclusion(&mut spec).is_some()
        || call.null_treatment.is_some()
        || !call.within_group.is_empty()
    {
        return Ok(None);
    }
    let ordered = !spec.order_by.is_empty();
    let Some(frame) = Frame::of(spec.window_frame.as_ref(), ordered) else { return Ok(None) };
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
    let Some((kind, ty)) = kind(call, (frame, ordered), scope, params)? else { return Ok(None) };
    Ok(Some((Window { kind, partition, order, frame, at }, ty)))
}

fn kind(
    call: ast::Function,
    (frame, ordered): (Frame, bool),
    scope: &Scope,
    params: &mut ParamTypes,
) -> SqlResult<Option<(Kind, SqlType)>> {
    let name = object_name_parts(&call.name);
    let name = match name.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [name] | ["pg_catalog", name] => name.to_string(),
        _ => return Ok(None),
    };
    if braid_scalar::is_aggregate(&name) && !braid_scalar::is_called_as_window(&name, &call) {
        let found = Aggregate::bind(&Expr::Function(call), scope, params)?;
        // What keeps its rows would be made of all of them for each.
        let fits = |a: &Aggregate| {
            let few = frame.is_whole(ordered) || !a.keeps() && (frame.begins() || frame.is_short());
            few && !a.is_volatile() && !a.is_of_sorted()
        };
        return Ok(found.filter(fits).map(|aggregate| {
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
        args.push(braid_scalar::bind_unsettled(e, scope, params)?);
    }
    let given: Vec<SqlType> = args.iter().map(|a| a.ty().clone()).collect();
    let Ok(choice) = resolve(&name, &given, false) else { return Ok(None) };
    let Code::Window(code) = choice.function.code else { return Ok(None) };
    for (arg, ty) in args.iter_mut().zip(&choice.args) {
        *arg = coerce(arg.clone(), ty, CastContext::Implicit, params)?;
    }
    // How many parts there are, the first row says.
    let varies = code == WindowCode::Ntile && args.iter().any(|arg| !arg.columns().is_empty());
    let plain = |e: &Bound| {
        e.volatility() != Volatility::Volatile && e.collation().is_by_bytes() && !e.ty().is_row()
    };
    let fits = args.iter().all(plain) && !varies;
    Ok(fits.then_some((Kind::Function(code, args), choice.ret)))
}

/// A row with what orders it in its partition, and its place among the rows.
type Placed = (Row, usize);

impl Window {
    /// All expressions over the joined row.
    pub(in crate::plan) fn exprs(&self) -> impl Iterator<Item = &Bound> {
        let (aggregate, args) = match &self.kind {
            Kind::Aggregate(aggregate) => (Some(aggregate), &[][..]),
            Kind::Function(_, args) => (None, args.as_slice()),
        };
        let order = self.order.iter().map(|key| &key.expr);
        let own = aggregate.into_iter().flat_map(Aggregate::exprs).chain(args);
        self.partition.iter().chain(order).chain(own)
    }

    /// What EXPLAIN says, with columns of the joined row named by `names`.
    pub(in crate::plan) fn describe(&self, names: &dyn Fn(usize) -> String) -> String {
        let (what, framed) = match &self.kind {
            Kind::Function(code, args) => {
                let args: Vec<String> = args.iter().map(|arg| arg.to_sql(names)).collect();
                (format!("{}({})", code.name(), args.join(", ")), code.is_of_frame())
            }
            Kind::Aggregate(aggregate) => (aggregate.describe(names), true),
        };
        let keys: Vec<String> = self.partition.iter().map(|key| key.to_sql(names)).collect();
        let by = if keys.is_empty() { String::new() } else { format!(" for {}", keys.join(", ")) };
        let order = SortKey::describe(&self.order, " by ", names);
        let frame = if framed { self.frame.describe() } else { String::new() };
        format!("{what}{by}{order}{frame}")
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
            let values = self.of_partition(&Partition::new(self, &partition, rows, ctx), ctx)?;
            held.grow(row_memory(&values)).map_err(|e| memory_error(&e))?;
            for ((_, place), value) in partition.iter().zip(values) {
                rows[*place].1[self.at] = value;
            }
        }
        Ok(())
    }

    /// The values of the rows of a partition, in its order.
    fn of_partition(&self, all: &Partition<'_>, ctx: &Context) -> SqlResult<Row> {
        match &self.kind {
            Kind::Aggregate(aggregate) => self.aggregated(aggregate, all, ctx),
            Kind::Function(WindowCode::Ntile, args) => tiles(args, all),
            Kind::Function(code, args) => {
                (0..all.len()).map(|row| self.value(*code, args, all, row)).collect()
            }
        }
    }

    /// What an aggregate gives for each row.
    fn aggregated(
        &self,
        aggregate: &Aggregate,
        all: &Partition<'_>,
        ctx: &Context,
    ) -> SqlResult<Row> {
        let start = || aggregate.start(Some(&ctx.memory));
        let add = |state: &mut State, rows: Range<usize>| {
            rows.into_iter().try_for_each(|row| aggregate.add(state, all.row(row), all.eval))
        };
        let (mut state, mut taken) = (start(), 0..0);
        let mut values: Row = Vec::with_capacity(all.len());
        for row in 0..all.len() {
            ctx.check_cancel()?;
            let frame = self.frame.around(row, all.peers(row), all.len());
            match values.last() {
                Some(last) if frame == taken => {
                    values.push(last.clone());
                    continue;
                }
                _ if self.frame.begins() => add(&mut state, taken.end..frame.end)?,
                _ => {
                    state = start();
                    add(&mut state, frame.clone())?;
                }
            }
            taken = frame;
            values.push(aggregate.finish(&mut state, all.eval)?);
        }
        Ok(values)
    }

    /// What a function gives for a row.
    fn value(
        &self,
        code: WindowCode,
        args: &[Bound],
        all: &Partition<'_>,
        row: usize,
    ) -> SqlResult<Datum> {
        let peers = all.peers(row);
        let share = |count: usize, of: usize| Datum::Float8(count as f64 / of.max(1) as f64);
        let count = |at: usize| -> SqlResult<Option<i64>> {
            match args.get(at) {
                None => Ok(Some(1)),
                Some(count) => Ok(whole(&count.eval(all.row(row), all.eval)?)),
            }
        };
        let frame = || self.frame.around(row, peers, all.len());
        let found = match code {
            WindowCode::Rank => return Ok(Datum::Int8(peers.start as i64 + 1)),
            WindowCode::DenseRank => return Ok(Datum::Int8(all.number[row] as i64 + 1)),
            WindowCode::PercentRank => return Ok(share(peers.start, all.len() - 1)),
            WindowCode::CumeDist => return Ok(share(peers.end, all.len())),
            WindowCode::Lag | WindowCode::Lead => {
                let Some(by) = count(1)? else { return Ok(Datum::Null) };
                let by = if code == WindowCode::Lag { -i128::from(by) } else { by.into() };
                let found = usize::try_from(row as i128 + by).ok().filter(|at| *at < all.len());
                match (found, args.get(2)) {
                    (None, Some(default)) => return default.eval(all.row(row), all.eval),
                    (found, _) => found,
                }
            }
            WindowCode::FirstValue => frame().next(),
            WindowCode::LastValue => frame().next_back(),
            WindowCode::NthValue => match count(1)? {
                None => None,
                Some(n @ 1..) => frame().nth(usize::try_from(n - 1).unwrap_or(usize::MAX)),
                Some(_) => return Err(below_one("22016", code)),
            },
            // Parts are counted together.
            WindowCode::RowNumber | WindowCode::Ntile => return Ok(Datum::Int8(row as i64 + 1)),
        };
        match (found, args.first()) {
            (Some(found), Some(value)) => value.eval(all.row(found), all.eval),
            _ => Ok(Datum::Null),
        }
    }
}

/// The rows of a partition, which come in its order.
struct Partition<'a> {
    rows: &'a [(Bytes, Row)],
    placed: &'a [Placed],
    /// Rows that are equal by the order.
    peers: Vec<Range<usize>>,
    /// Which of them each row belongs to.
    number: Vec<usize>,
    eval: &'a EvalContext,
}

impl<'a> Partition<'a> {
    fn new(
        window: &Window,
        placed: &'a [Placed],
        rows: &'a [(Bytes, Row)],
        ctx: &'a Context,
    ) -> Partition<'a> {
        let (mut peers, mut number) = (Vec::new(), Vec::with_capacity(placed.len()));
        let equal = |a: &Placed, b: &Placed| compare(&window.order, &a.0, &b.0) == Ordering::Equal;
        let mut start = 0;
        for run in placed.chunk_by(equal) {
            number.extend(std::iter::repeat_n(peers.len(), run.len()));
            peers.push(start..start + run.len());
            start += run.len();
        }
        Partition { rows, placed, peers, number, eval: &ctx.eval }
    }

    fn len(&self) -> usize {
        self.placed.len()
    }

    fn row(&self, at: usize) -> &[Datum] {
        &self.rows[self.placed[at].1].1
    }

    fn peers(&self, row: usize) -> &Range<usize> {
        &self.peers[self.number[row]]
    }
}

/// `ntile`: the longer parts come first.
fn tiles(args: &[Bound], all: &Partition<'_>) -> SqlResult<Row> {
    let parts = match args.first() {
        Some(parts) if all.len() > 0 => whole(&parts.eval(all.row(0), all.eval)?),
        _ => None,
    };
    let Some(parts) = parts else { return Ok(vec![Datum::Null; all.len()]) };
    if parts < 1 {
        return Err(below_one("22014", WindowCode::Ntile));
    }
    let (size, longer) = (all.len() as i64 / parts, all.len() as i64 % parts);
    let tile = |row: i64| match row {
        row if row < longer * (size + 1) => row / (size + 1) + 1,
        // There are no parts behind those of one row each.
        row => longer + (row - longer * (size + 1)) / size.max(1) + 1,
    };
    Ok((0..all.len() as i64).map(|row| Datum::Int4(tile(row) as i32)).collect())
}

/// A number of rows or parts.
fn whole(count: &Datum) -> Option<i64> {
    match count {
        Datum::Int4(count) => Some(i64::from(*count)),
        Datum::Int8(count) => Some(*count),
        _ => None,
    }
}

fn below_one(state: &'static str, code: WindowCode) -> SqlError {
    let text = format!("argument of {} must be greater than zero", code.name());
    SqlError::new(SqlState(state), text)
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
