//! GROUP BY and DISTINCT over the few rows that a chain of steps finds.
//!
//! ```text
//!   SELECT o.id, o.placed, count(*) .. GROUP BY o.id, o.placed ORDER BY 3 DESC
//!     keys o.id, o.placed   aggregates count(*)   outputs key 0, key 1, aggregate 0
//! ```
//! Groups come in the order in which their first rows do. A select list has keys and aggregates
//! here, and ORDER BY names some of them; expressions over aggregates, HAVING and grouping sets are
//! for general plans, and so are many rows.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use braid_catalog::memory_error;
use braid_rows::{Row, row_memory};
use braid_scalar::{Bound, ParamTypes, Scope, Volatility, ident_name, needs_general_query};
use braid_types::{Datum, GroupKey, SqlResult};
use sqlparser::ast::{self, Distinct, GroupByExpr, OrderByKind, SelectItem};

use super::aggregate::{Aggregate, State};
use super::joined::Joined;
use super::select::SortKey;
use super::sorting::sorted;
use super::stream::compare;
use crate::dml::returning;
use crate::general_query::ColumnInfo;
use crate::session::Context;

/// Rows that are expected, from which on a general plan groups them faster.
pub(super) const MANY_ROWS: f64 = 5_000.0;
/// Bytes of the state of an aggregate.
const STATE_BYTES: usize = 64;

/// Where a result column comes from.
#[derive(Clone, Copy, Debug)]
enum From {
    Key(usize),
    Aggregate(usize),
}

/// What is grouped by what, and shown.
pub(super) struct Groups {
    pub(super) keys: Vec<Bound>,
    pub(super) aggregates: Vec<Aggregate>,
    shown: Vec<From>,
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
        let mut groups = Groups {
            keys: Vec::new(),
            aggregates: Vec::new(),
            shown: Vec::new(),
            sort: Vec::new(),
        };
        for expr in list {
            let Some(key) = group_key(expr, select, over.scope, params)? else { return Ok(None) };
            groups.keys.push(key);
        }
        let mut columns = Vec::new();
        for item in &select.projection {
            if !groups.show(item, list.is_empty(), over, params, &mut columns)? {
                return Ok(None);
            }
        }
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

    /// Adds a select item: a key, or an aggregate of a query with GROUP BY. `false` if it is
    /// neither.
    fn show(
        &mut self,
        item: &SelectItem,
        distinct: bool,
        over: &Over<'_>,
        params: &mut ParamTypes,
        columns: &mut Vec<ColumnInfo>,
    ) -> SqlResult<bool> {
        let mut plain = params.clone();
        match returning(std::slice::from_ref(item), over.scope, over.origin, &mut plain) {
            Ok(bound) => {
                *params = plain;
                for (expr, column) in bound.exprs.into_iter().zip(bound.columns) {
                    let at = match self.keys.iter().position(|key| same(key, &expr)) {
                        Some(at) => at,
                        None if distinct => {
                            self.keys.push(expr);
                            self.keys.len() - 1
                        }
                        None => return Ok(false),
                    };
                    self.shown.push(From::Key(at));
                    columns.push(column);
                }
                return Ok(true);
            }
            Err(e) if needs_general_query(&e) && !distinct => {}
            Err(e) => return Err(e),
        }
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(e) => (e, braid_scalar::output_name(e)),
            SelectItem::ExprWithAlias { expr: e, alias } => (e, ident_name(alias)),
            _ => return Ok(false),
        };
        let Some(aggregate) = Aggregate::bind(expr, over.scope, params)? else { return Ok(false) };
        columns.push(ColumnInfo::computed(name, aggregate.ty.clone()));
        self.shown.push(From::Aggregate(self.aggregates.len()));
        self.aggregates.push(aggregate);
        Ok(true)
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
            let desc = wanted.options.asc == Some(false);
            let nulls_first = wanted.options.nulls_first.unwrap_or(desc);
            let expr = Bound::column(at, columns[at].ty.clone());
            self.sort.push(SortKey { expr, desc, nulls_first });
        }
        true
    }

    /// The groups of joined rows, sorted; they stay on the statement's account.
    ///
    /// # Errors
    /// Of reading and computing; 53200 when they do not fit.
    pub(super) fn collect(&self, ctx: &Context, mut joined: Joined) -> SqlResult<Vec<Row>> {
        let mut numbers: HashMap<GroupKey, usize> = HashMap::new();
        let mut groups: Vec<(Row, Vec<State>)> = Vec::new();
        while let Some((_, row)) = joined.next_row()? {
            let key = self.keys.iter().map(|key| key.eval(&row, &ctx.eval));
            let key = GroupKey(key.collect::<SqlResult<Vec<Datum>>>()?);
            let at = match numbers.entry(key) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let states: Vec<State> = self.aggregates.iter().map(Aggregate::start).collect();
                    let bytes = 2 * row_memory(&new.key().0) + states.len() * STATE_BYTES;
                    ctx.memory.take("groups", bytes).map_err(|e| memory_error(&e))?;
                    groups.push((new.key().0.clone(), states));
                    *new.insert(groups.len() - 1)
                }
            };
            for (aggregate, state) in self.aggregates.iter().zip(&mut groups[at].1) {
                aggregate.add(state, &row, &ctx.eval)?;
            }
        }
        let mut out = Vec::with_capacity(groups.len());
        for (key, states) in &groups {
            let value = |from: &From| match *from {
                From::Key(at) => Ok(key[at].clone()),
                From::Aggregate(at) => self.aggregates[at].finish(&states[at], &ctx.eval),
            };
            out.push(self.shown.iter().map(value).collect::<SqlResult<Row>>()?);
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
        match list.is_empty() {
            true => format!("group: {}", keys.join(", ")),
            false => format!("group: {}; aggregate: {}", keys.join(", "), list.join(", ")),
        }
    }

    /// All expressions over the joined row, to be changed.
    pub(super) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        self.keys.iter_mut().chain(self.aggregates.iter_mut().flat_map(|a| &mut a.args))
    }

    /// All expressions over the joined row.
    pub(super) fn exprs(&self) -> impl Iterator<Item = &Bound> {
        self.keys.iter().chain(self.aggregates.iter().flat_map(|a| &a.args))
    }
}

/// An expression of GROUP BY: a number, a column, the name of a select item.
fn group_key(
    expr: &ast::Expr,
    select: &ast::Select,
    scope: &Scope,
    params: &mut ParamTypes,
) -> SqlResult<Option<Bound>> {
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
        Ok(key) => Ok(Some(key)),
        Err(_) => Ok(None),
    }
}

/// Whether two expressions give the same value for each row.
fn same(a: &Bound, b: &Bound) -> bool {
    a.ty() == b.ty() && a.columns() == b.columns() && a.to_string() == b.to_string()
}
