//! GROUP BY and DISTINCT over the few rows that a chain of steps finds.
//!
//! ```text
//!   SELECT o.id, o.placed, count(*) .. GROUP BY o.id, o.placed ORDER BY 3 DESC
//!     keys o.id, o.placed   aggregates count(*)   outputs key 0, key 1, aggregate 0
//! ```
//! Groups come in the order in which their first rows do. What is shown of them are expressions
//! over keys and aggregates ([`super::shown`]), of which ORDER BY names some; grouping sets are for
//! general plans, and so are many rows.

use std::sync::Arc;

use braid_catalog::memory_error;
use braid_rows::{Row, row_memory};
use braid_scalar::{Bound, ParamTypes, Scope, Volatility, ident_name, needs_general_query};
use braid_types::{GroupKey, SqlResult};
use foldhash::HashMap;
use sqlparser::ast::{self, Distinct, GroupByExpr, OrderByKind, SelectItem};

use super::aggregate::{Aggregate, State};
use super::columnar::OneByOne;
use super::joined::Joined;
use super::select::{Parts, SortKey};
use super::shown::{Showing, Shown};
use super::sorting::{compare, sorted};
use crate::dml::returning;
use crate::general_query::ColumnInfo;
use crate::session::Context;

/// Rows that are expected, from which on a general plan groups them faster.
pub(super) const MANY_ROWS: f64 = 5_000.0;
/// Bytes of the state of an aggregate.
const STATE_BYTES: usize = 64;

/// What is grouped by what, and shown.
pub(super) struct Groups {
    pub(super) keys: Vec<Bound>,
    pub(super) aggregates: Vec<Aggregate>,
    shown: Shown,
    /// Over the result columns.
    sort: Vec<SortKey>,
}

/// What a select list is bound over.
pub(super) struct Over<'a> {
    pub(super) scope: &'a Scope,
    /// The table and column that a column of the scope is.
    pub(super) origin: &'a dyn Fn(usize) -> Option<(u32, u32)>,
}

/// Whether a query groups.
pub(super) fn has_groups(select: &ast::Select) -> bool {
    let grouped = matches!(&select.group_by, GroupByExpr::Expressions(list, _) if !list.is_empty());
    grouped || matches!(select.distinct, Some(Distinct::Distinct))
}

impl Groups {
    /// Binds a query that groups; `None` if it is not as simple as that.
    ///
    /// # Errors
    /// What is wrong with its expressions.
    pub(super) fn bind(
        q: &ast::Query,
        select: &ast::Select,
        over: &Over<'_>,
        params: &mut ParamTypes,
    ) -> SqlResult<Option<(Groups, Vec<ColumnInfo>)>> {
        let GroupByExpr::Expressions(list, modifiers) = &select.group_by else { return Ok(None) };
        if !modifiers.is_empty() || select.distinct.is_some() && !list.is_empty() {
            return Ok(None);
        }
        let (mut keys, mut written) = (Vec::new(), Vec::new());
        for expr in list {
            let found = group_key(expr, select, over.scope, params)?;
            let Some((key, expr)) = found else { return Ok(None) };
            keys.push(key);
            written.push(expr);
        }
        let mut showing = Showing::new(over, &written, &keys);
        for item in &select.projection {
            if !show(item, list.is_empty(), &mut keys, (over, &mut showing), params)? {
                return Ok(None);
            }
        }
        if let Some(having) = &select.having
            && (list.is_empty() || !showing.having(having, params)?)
        {
            return Ok(None);
        }
        let (aggregates, shown, columns) = showing.done();
        let mut groups = Groups { keys, aggregates, shown, sort: Vec::new() };
        let groupable = |key: &Bound| {
            key.volatility() != Volatility::Volatile
                && key.ty().is_comparable()
                && key.collation().is_by_bytes()
        };
        if !groups.keys.iter().all(groupable) || !groups.order(q, select, &columns) {
            return Ok(None);
        }
        Ok(Some((groups, columns)))
    }

    /// ORDER BY numbers, names and expressions of result columns; `false` if it asks for more.
    fn order(&mut self, q: &ast::Query, select: &ast::Select, columns: &[ColumnInfo]) -> bool {
        let Some(order) = &q.order_by else { return true };
        let OrderByKind::Expressions(list) = &order.kind else { return false };
        // With a wildcard, items are not columns.
        let items = (select.projection.len() == columns.len()).then_some(&select.projection);
        for wanted in list {
            let by_name = |name: &str| {
                let mut named = (0..columns.len()).filter(|at| columns[*at].name == name);
                named.next().filter(|_| named.next().is_none())
            };
            let by_expr = || {
                items?.iter().position(|item| match item {
                    SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => {
                        *e == wanted.expr
                    }
                    _ => false,
                })
            };
            let at = match &wanted.expr {
                ast::Expr::Value(v) => {
                    let number = v.value.to_string().parse::<usize>().ok();
                    number.and_then(|n| n.checked_sub(1)).filter(|n| *n < columns.len())
                }
                ast::Expr::Identifier(name) => by_name(&ident_name(name)),
                _ => by_expr(),
            };
            let Some(at) = at.filter(|at| columns[*at].ty.is_comparable()) else { return false };
            let expr = Bound::column(at, columns[at].ty.clone());
            self.sort.push(SortKey::by(expr, &wanted.options));
        }
        true
    }

    /// The groups of joined rows, sorted; they stay on the statement's account.
    ///
    /// # Errors
    /// Of reading and computing; 53200 when they do not fit.
    pub(super) fn collect(&self, ctx: &Arc<Context>, parts: &Arc<Parts>) -> SqlResult<Vec<Row>> {
        let mut found = Found::default();
        if let Some(mut rows) = OneByOne::open(ctx, parts, parts.steps.len())? {
            while let Some(row) = rows.next(ctx)? {
                ctx.check_cancel()?;
                found.add(self, row, ctx)?;
            }
        } else {
            let mut joined = Joined::open(ctx.clone(), parts.clone(), None);
            while let Some((_, row)) = joined.next_row()? {
                found.add(self, &row, ctx)?;
            }
        }
        self.finish(ctx, found.groups)
    }

    /// What is shown of groups, sorted.
    fn finish(&self, ctx: &Context, groups: Vec<(Row, Vec<State>)>) -> SqlResult<Vec<Row>> {
        let mut out = Vec::with_capacity(groups.len());
        for (mut group, mut states) in groups {
            for (aggregate, state) in self.aggregates.iter().zip(&mut states) {
                group.push(aggregate.finish(state, &ctx.eval)?);
            }
            out.extend(self.shown.row(&group, &ctx.eval)?);
        }
        if self.sort.is_empty() {
            return Ok(out);
        }
        let mut keyed = Vec::with_capacity(out.len());
        for row in out {
            let key = self.sort.iter().map(|key| key.expr.eval(&row, &ctx.eval));
            keyed.push((key.collect::<SqlResult<Row>>()?, row));
        }
        let by_keys = |a: &(Row, Row), b: &(Row, Row)| compare(&self.sort, &a.0, &b.0);
        let keyed = sorted(keyed, by_keys, || ctx.check_cancel())?;
        Ok(keyed.into_iter().map(|(_, row)| row).collect())
    }

    /// What EXPLAIN says, with columns of the joined row named by `names`.
    pub(super) fn describe(&self, names: &dyn Fn(usize) -> String) -> String {
        let keys: Vec<String> = self.keys.iter().map(|key| key.to_sql(names)).collect();
        let list: Vec<String> = self.aggregates.iter().map(|a| a.describe(names)).collect();
        let having = self.shown.describe_having(&|at| match at.checked_sub(keys.len()) {
            None => keys[at].clone(),
            Some(aggregate) => list[aggregate].clone(),
        });
        match list.is_empty() {
            true => format!("group: {}{having}", keys.join(", ")),
            false => format!("group: {}; aggregate: {}{having}", keys.join(", "), list.join(", ")),
        }
    }

    /// What is shown of each.
    pub(super) fn shown(&self) -> &Shown {
        &self.shown
    }

    /// All expressions over the joined row, to be changed.
    pub(super) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        self.keys.iter_mut().chain(self.aggregates.iter_mut().flat_map(Aggregate::exprs_mut))
    }

    /// All expressions over the joined row.
    pub(super) fn exprs(&self) -> impl Iterator<Item = &Bound> {
        self.keys.iter().chain(self.aggregates.iter().flat_map(Aggregate::exprs))
    }
}

/// Groups, in the order in which their first rows came.
#[derive(Default)]
struct Found {
    numbers: HashMap<GroupKey, usize>,
    groups: Vec<(Row, Vec<State>)>,
    /// Of the row that is looked at.
    key: GroupKey,
}

impl Found {
    fn add(&mut self, by: &Groups, row: &Row, ctx: &Context) -> SqlResult<()> {
        let own = &mut self.key.0;
        own.clear();
        for key in &by.keys {
            own.push(key.eval(row, &ctx.eval)?);
        }
        let at = match self.numbers.get(&self.key) {
            Some(known) => *known,
            None => {
                let account = Some(&ctx.memory);
                let states: Vec<State> = by.aggregates.iter().map(|a| a.start(account)).collect();
                let bytes = 2 * row_memory(&self.key.0) + states.len() * STATE_BYTES;
                ctx.memory.take("groups", bytes).map_err(|e| memory_error(&e))?;
                self.numbers.insert(self.key.clone(), self.groups.len());
                self.groups.push((self.key.0.clone(), states));
                self.groups.len() - 1
            }
        };
        let mut each = by.aggregates.iter().zip(&mut self.groups[at].1);
        each.try_for_each(|(aggregate, state)| aggregate.add(state, row, &ctx.eval))
    }
}

/// Adds a select item: a key, which DISTINCT makes of each, or an expression over keys and
/// aggregates. `false` if it is neither.
fn show(
    item: &SelectItem,
    distinct: bool,
    keys: &mut Vec<Bound>,
    (over, showing): (&Over<'_>, &mut Showing<'_>),
    params: &mut ParamTypes,
) -> SqlResult<bool> {
    let mut plain = params.clone();
    match returning(std::slice::from_ref(item), over.scope, over.origin, &mut plain) {
        Ok(bound) => {
            let places = bound.exprs.iter().map(|e| keys.iter().position(|key| same(key, e)));
            let mut places: Vec<Option<usize>> = places.collect();
            if !distinct && places.contains(&None) {
                return showing.show(item, params);
            }
            *params = plain;
            for (n, (expr, column)) in bound.exprs.into_iter().zip(bound.columns).enumerate() {
                let at = places[n].take().unwrap_or(keys.len());
                showing.show_key(at, expr.clone(), column);
                if at == keys.len() {
                    keys.push(expr);
                }
            }
            Ok(true)
        }
        Err(e) if needs_general_query(&e) && !distinct => showing.show(item, params),
        Err(e) => Err(e),
    }
}

/// An expression of GROUP BY, bound and as it is written: a number, a column, the name of a select
/// item.
fn group_key(
    expr: &ast::Expr,
    select: &ast::Select,
    scope: &Scope,
    params: &mut ParamTypes,
) -> SqlResult<Option<(Bound, ast::Expr)>> {
    let numbered = braid_scalar::column_by_number(expr, select.projection.len(), "GROUP BY");
    let expr = match numbered {
        Ok(None) => expr,
        Ok(Some(at)) => match &select.projection[at] {
            SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => e,
            _ => return Ok(None),
        },
        // A general plan says what is wrong with it.
        Err(_) => return Ok(None),
    };
    // What is not bound over the tables may be the name of a select item: a general plan knows.
    match braid_scalar::bind(expr, scope, params) {
        Ok(key) => Ok(Some((key, expr.clone()))),
        Err(_) => Ok(None),
    }
}

/// Whether two expressions give the same value for each row.
pub(super) fn same(a: &Bound, b: &Bound) -> bool {
    a.ty() == b.ty() && a.columns() == b.columns() && a.to_string() == b.to_string()
}
