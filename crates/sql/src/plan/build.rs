//! From a parsed SELECT to a [`Chain`], or to the answer that it is none of ours.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_catalog::{Relation, kv_error};
use braid_types::{CastContext, Datum, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast::{
    self, Distinct, GroupByExpr, JoinConstraint, JoinOperator, LimitClause, SetExpr, TableFactor,
};

use super::aggregate::Aggregate;
use super::choice;
use super::compound::{self, Keys, Made, OverTable, SelectPlan, plan_any};
use super::first_rows::{self, FirstRows};
use super::gather::Gather;
use super::groups::{MANY_ROWS, has_groups};
use super::lock_clauses::{check_lockable, locked_in};
use super::order::{Met, met, met_within};
use super::passes::AllPasses;
use super::select::{Chain, Locking, Output, Parts, SortKey, Step};
use super::select_list::{self, shown, sort_key};
use super::semi::{Condition, Semi, divided};
use super::subqueries::{self, Lateral, Taken};
use super::using;
use super::value::Value;
use crate::dml::scope_of;
use crate::general_query::ColumnInfo;
use crate::session::Context;
use braid_planner::access::Access;
use braid_planner::choice::Wanted;
use braid_rows::TableLayout;
use braid_scalar::{Bound, ParamTypes, Scope, Volatility, ident_name, is_only, object_name_parts};

/// A table named in FROM, or in a condition that asks whether it has a row.
pub(super) struct From {
    pub(super) layout: Arc<TableLayout>,
    pub(super) alias: String,
    pub(super) offset: usize,
    pub(super) left: bool,
    pub(super) semi: Option<Semi>,
    pub(super) value: Option<Arc<Value>>,
    pub(super) first: Option<Arc<FirstRows>>,
    /// Its rows are those of a query.
    pub(super) made: Option<Arc<Made>>,
    /// It is what a view shows of it; the view's conditions are among its own.
    pub(super) view: Option<Arc<OverTable>>,
    /// What its value needs of each of its rows.
    pub(super) nested: Vec<From>,
    pub(super) on: Vec<Bound>,
}

impl From {
    /// A table of FROM without conditions: where its columns begin, and whether rows stay that
    /// have none of its.
    fn of_table(layout: Arc<TableLayout>, alias: String, (offset, left): (usize, bool)) -> From {
        let (semi, value, first, made, view) = (None, None, None, None, None);
        let (nested, on) = (Vec::new(), Vec::new());
        From { layout, alias, offset, left, semi, value, first, made, view, nested, on }
    }

    /// How wide the joined row is with it.
    pub(super) fn end(&self) -> usize {
        let own = self.offset + self.layout.table.columns.len();
        let inner = self.nested.last().map_or(own, From::end);
        inner + usize::from(self.value.is_some())
    }

    /// The order of which its first rows are wanted.
    fn order_of_first(&self) -> Option<&[SortKey]> {
        let value = self.value.as_ref().filter(|value| value.wants_first());
        let first = self.first.as_ref().filter(|first| first.is_limited());
        let order = value.map(|value| &value.order).or(first.map(|first| &first.order))?;
        (!order.is_empty()).then_some(order)
    }

    /// A table of FROM, not of a subquery.
    fn is_joined(&self) -> bool {
        self.semi.is_none() && self.value.is_none()
    }
}

/// What tells of a row which table it is of: the general planner knows.
const TABLE_OID: &str = "tableoid";

/// Plans a query if it is one of ours. `params` changes only then.
///
/// # Errors
/// What is wrong with the query, when it would be ours if it were right.
pub(crate) fn plan_query(
    ctx: &Context,
    q: &ast::Query,
    params: &mut ParamTypes,
) -> SqlResult<Option<SelectPlan>> {
    let mut tried = params.clone();
    match plan_any(ctx, q, &mut tried) {
        Ok(Some(p)) => {
            *params = tried;
            Ok(Some(p.or_general(q, params)))
        }
        Ok(None) => Ok(None),
        Err(e) if braid_scalar::needs_general_query(&e) => Ok(None),
        // The general planner may know more.
        Err(e) if e.state() == SqlState::FEATURE_NOT_SUPPORTED => Ok(None),
        Err(e) if e.state() == SqlState::UNDEFINED_COLUMN && e.message().contains(TABLE_OID) => {
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// A SELECT without what nobody but general plans knows.
fn simple_or_having(q: &ast::Query) -> Option<&ast::Select> {
    if q.with.is_some()
        || q.fetch.is_some()
        || q.for_clause.is_some()
        || q.settings.is_some()
        || !q.pipe_operators.is_empty()
    {
        return None;
    }
    let SetExpr::Select(s) = &*q.body else { return None };
    let ungrouped =
        matches!(&s.group_by, GroupByExpr::Expressions(e, m) if e.is_empty() && m.is_empty());
    let on = matches!(s.distinct, Some(Distinct::On(_))) && ungrouped;
    let plain = (s.distinct.is_none() || on || has_groups(s))
        && s.top.is_none()
        && s.into.is_none()
        && s.lateral_views.is_empty()
        && s.prewhere.is_none()
        && s.connect_by.is_empty()
        && (ungrouped || has_groups(s))
        && s.cluster_by.is_empty()
        && s.distribute_by.is_empty()
        && s.sort_by.is_empty()
        && s.named_window.is_empty()
        && s.qualify.is_none();
    plain.then_some(s)
}

/// A SELECT that has no HAVING either.
pub(super) fn simple_select(q: &ast::Query) -> Option<&ast::Select> {
    simple_or_having(q).filter(|select| {
        select.having.is_none() && !matches!(select.distinct, Some(Distinct::On(_)))
    })
}

/// Plans one SELECT.
pub(super) fn plan(
    ctx: &Context,
    q: &ast::Query,
    params: &mut ParamTypes,
) -> SqlResult<Option<Chain>> {
    let without_names = select_list::written_out(q);
    let q = without_names.as_ref().unwrap_or(q);
    let Some(select) = simple_or_having(q) else { return Ok(None) };
    match BoundSelect::bind(ctx, (q, select), params)? {
        Some(bound) => bound.planned(ctx),
        None => Ok(None),
    }
}

/// A SELECT whose names are bound, and for which no keys are chosen yet.
struct BoundSelect {
    /// The tables of FROM, and behind them those of subqueries.
    tables: Vec<From>,
    joined: usize,
    /// Whether there are such subqueries.
    asks: bool,
    filter: Vec<Bound>,
    output: Output,
    columns: Vec<ColumnInfo>,
    sort: Vec<SortKey>,
    page: (Option<Bound>, Option<Bound>),
    locking: Option<Locking>,
}

impl BoundSelect {
    fn bind(
        ctx: &Context,
        (q, select): (&ast::Query, &ast::Select),
        params: &mut ParamTypes,
    ) -> SqlResult<Option<BoundSelect>> {
        let without = subqueries::taken_out(select);
        let (select, laterals, values) =
            without.as_ref().map_or((select, &[][..], &[][..]), |(s, l, v)| (s, l, v));
        let Some((mut tables, mut scope)) = from(ctx, select, params)? else { return Ok(None) };
        let joined = tables.len();
        let (asked, plain) = select.selection.as_ref().map(divided).unwrap_or_default();
        let asks = !asked.is_empty() || !values.is_empty() || !laterals.is_empty();
        let gives_values = !values.is_empty() && asked.is_empty() && laterals.is_empty();
        if asks && (joined == 0 && !gives_values || !q.locks.is_empty()) {
            return Ok(None);
        }
        let all = (laterals, asked.as_slice(), values);
        if !add_subqueries(ctx, all, (&mut tables, &mut scope), params)? {
            return Ok(None);
        }
        let mut filter = Vec::new();
        for condition in plain {
            filter.extend(braid_scalar::bind_bool(condition, "WHERE", &scope, params)?.conjuncts());
        }
        scope.pad(tables.last().map_or(0, From::end));
        let shown = shown((q, select), &tables, joined, &mut scope, params)?;
        let Some((mut output, columns, mut sort)) = shown else { return Ok(None) };
        let in_parts = !output.is_plain() && !matches!(output, Output::Aggregates(_));
        if (in_parts || select.distinct.is_some()) && !q.locks.is_empty() {
            return Ok(None);
        }
        if matches!(output, Output::Aggregates(_)) {
            if !sort.is_empty() || !q.locks.is_empty() {
                return Ok(None);
            }
            sort = extreme_order(&output, &tables[..joined]);
        }
        if let (Output::Rows(out), Some(Distinct::On(on))) = (&mut output, &select.distinct) {
            let over = (out.exprs.as_slice(), columns.as_slice(), &scope);
            let key = |e: &ast::Expr| sort_key(e, over, params);
            // What is wrong with it, general plans tell.
            match select_list::distinct_on(on, &mut sort, key) {
                Ok(Some(on)) => out.on = on,
                _ => return Ok(None),
            }
        }
        let page = limits(q, params).map_err(|e| with_variables(e, q, &scope))?;
        let Some(locking) = locking(q, select, &tables[..joined])? else { return Ok(None) };
        Ok(Some(BoundSelect { tables, joined, asks, filter, output, columns, sort, page, locking }))
    }

    /// Chooses keys; `None` if a general plan is better.
    fn planned(self, ctx: &Context) -> SqlResult<Option<Chain>> {
        let BoundSelect { mut tables, joined, asks, filter, mut output, mut sort, .. } = self;
        let (columns, (limit, offset), locking) = (self.columns, self.page, self.locking);
        let mut first_only = matches!(output, Output::Aggregates(_)) && !sort.is_empty();
        let in_parts = matches!(output, Output::Groups(_)) || output.wants_all();
        let first = match first_only {
            true => Some(1.0),
            // All rows are wanted for the first group.
            false if in_parts => None,
            false => limit.as_ref().map(|limit| first_rows(ctx, limit, offset.as_ref())),
        };
        let used = used_columns(&output, &sort, &filter, &tables);
        let covers = locking.is_none().then_some(&used);
        let mut steps = chain(ctx, &tables, &filter, (&sort, covers), first);
        if first_only && !matches!(steps, Some((_, _, Met::Forward | Met::Backward))) {
            first_only = false;
            sort.clear();
            steps = chain(ctx, &tables, &filter, (&sort, covers), None);
        }
        if first_only && let Some(found) = all_are_few(ctx, &tables, &filter, (&steps, covers)) {
            (first_only, steps) = (false, Some(found));
            sort.clear();
        }
        let plain = |t: &From| !t.left && t.is_joined() && t.first.is_none();
        if steps.is_none()
            && tables.len() == 2
            && joined == 2
            && tables.iter().all(plain)
            && locking.is_none()
            && !output.wants_all()
        {
            let filter = turn_round(&mut tables, &filter, &mut output, &mut sort);
            steps = chain(ctx, &tables, &filter, (&sort, None), first);
        }
        let Some((mut steps, constant, order)) = steps else { return Ok(None) };
        let reverse = order == Met::Backward;
        if order != Met::No {
            sort.clear();
        }
        note_wanted(&mut steps, &output, &sort);
        let passes = AllPasses::plan(ctx, &steps, reverse, locking.is_some());
        let parts = Parts {
            steps,
            passes,
            constant,
            output,
            sort,
            reverse,
            first_only,
            limit,
            offset,
            locking,
            columns,
        };
        let general = is_better_general(ctx, &parts, asks, first)?;
        Ok((!general).then(|| Chain { parts: Arc::new(parts) }))
    }
}

/// Whether a general plan does that faster. `asks`: there are subqueries; `first`: so many rows are
/// wanted.
fn is_better_general(
    ctx: &Context,
    parts: &Parts,
    asks: bool,
    first: Option<f64>,
) -> SqlResult<bool> {
    let Parts { steps, passes, output, sort, .. } = parts;
    let early = &steps[..parts.late_from(false)];
    let many = !parts.first_only && puts_much_together(ctx, output, steps)?;
    if many || asks && joins_many(ctx, early)? {
        return Ok(true);
    }
    let locks = parts.locking.is_some();
    let ends_early = parts.limit.is_some() && sort.is_empty() && !output.wants_all();
    let all_wanted = !ends_early && !locks && !parts.first_only;
    let is_costly = match early.len() < steps.len() {
        true => choice::finds_very_much(ctx, early, passes.of(false)),
        false => is_costly(ctx, (steps, passes), (output, sort), all_wanted),
    };
    let by_filter = ends_early && !locks && !steps.iter().any(|step| step.semi.is_some());
    let looks_through = |first| choice::looks_through_much(ctx, steps, first);
    Ok(is_costly || by_filter && first.is_some_and(looks_through))
}

/// Rows that are looked at all rather than as many as it takes to find the first one.
const ALL_OF: f64 = 2_000.0;

/// The way to all rows instead of the one along an order to the first that passes its conditions,
/// if the conditions find few: nobody knows how far away the first one is, or whether there is one.
fn all_are_few(
    ctx: &Context,
    tables: &[From],
    filter: &[Bound],
    (steps, covers): (&Option<Found>, Option<&BTreeSet<usize>>),
) -> Option<Found> {
    let [step] = steps.as_ref()?.0.as_slice() else { return None };
    if !step.access.is_full() || step.access.rest.is_empty() {
        return None;
    }
    let found = chain(ctx, tables, filter, (&[], covers), None)?;
    let [step] = found.0.as_slice() else { return None };
    let few = !step.access.is_full() && step.rows_found(ctx) <= ALL_OF;
    few.then_some(found)
}

/// Whether looking things up costs so much that a general plan is better.
fn is_costly(
    ctx: &Context,
    (steps, passes): (&[Step], &AllPasses),
    (output, sort): (&Output, &[SortKey]),
    all_wanted: bool,
) -> bool {
    let known = passes.of(false);
    let together = matches!(output, Output::Aggregates(_));
    let by_row = is_work_by_row(steps, output, sort);
    // General plans run such a query for each row as well.
    let firsts = steps.iter().any(|step| step.first.is_some());
    looks_up_deeply(steps, known.gather.as_ref())
        || all_wanted && !firsts && choice::looks_up_too_much(ctx, steps, &known.ends)
        || all_wanted && by_row && choice::finds_too_much(ctx, steps, together)
}

/// Adds what is asked of subqueries as more tables; `false` if one is none of ours.
fn add_subqueries(
    ctx: &Context,
    (laterals, asked, values): (&[Lateral], &[Condition<'_>], &[Taken]),
    (tables, scope): (&mut Vec<From>, &mut Scope),
    params: &mut ParamTypes,
) -> SqlResult<bool> {
    if !subqueries::bind_laterals(ctx, laterals, tables, scope, params)? {
        return Ok(false);
    }
    for condition in asked {
        let width = tables.last().map_or(0, From::end);
        let Some(inner) = condition.bind(ctx, scope, width, params)? else { return Ok(false) };
        tables.push(inner);
    }
    subqueries::bind(ctx, values, tables, scope, params)
}

/// Whether rows are looked at one by one: plain columns of all rows in some spans are none's work.
fn is_work_by_row(steps: &[Step], output: &Output, sort: &[SortKey]) -> bool {
    let filters = |step: &Step| !step.access.rest.is_empty();
    let takes_all = |step: &Step| step.value.is_some() && step.in_order.is_none();
    steps.iter().any(|step| filters(step) || takes_all(step))
        || !sort.is_empty()
        || !output.is_plain()
}

/// Whether values within values would be looked up row by row: those are many requests.
fn looks_up_deeply(steps: &[Step], gather: Option<&Gather>) -> bool {
    let gathered = gather.map_or(0, |gather| gather.last);
    steps.iter().skip(gathered + 1).any(|step| !step.nested.is_empty())
}

/// Two joined tables the other way round; the filter over them.
fn turn_round(
    tables: &mut [From],
    filter: &[Bound],
    output: &mut Output,
    sort: &mut [SortKey],
) -> Vec<Bound> {
    let widths = [tables[0].layout.table.columns.len(), tables[1].layout.table.columns.len()];
    let map = move |c: usize| if c < widths[0] { c + widths[1] } else { c - widths[0] };
    let remap = |b: &Bound| b.remap_columns(&map);
    let on: Vec<_> = tables[1].on.iter().chain(&tables[0].on).map(remap).collect();
    tables.swap(0, 1);
    tables[0].offset = 0;
    tables[0].on = Vec::new();
    tables[1].offset = widths[1];
    tables[1].on = on;
    match output {
        Output::Rows(out) => out.exprs.iter_mut().for_each(|e| *e = remap(e)),
        Output::Aggregates(totals) => {
            let exprs = totals.list.iter_mut().flat_map(Aggregate::exprs_mut);
            exprs.for_each(|e| *e = remap(e));
        }
        Output::Groups(groups) => groups.exprs_mut().for_each(|e| *e = remap(e)),
    }
    sort.iter_mut().for_each(|k| k.expr = remap(&k.expr));
    filter.iter().map(remap).collect()
}

/// The tables of FROM with their ON conditions, and the scope of all their columns.
fn from(
    ctx: &Context,
    select: &ast::Select,
    params: &mut ParamTypes,
) -> SqlResult<Option<(Vec<From>, Scope)>> {
    let mut tables: Vec<From> = Vec::new();
    let mut scope = Scope::empty();
    for item in &select.from {
        let both = (&mut tables, &mut scope);
        if !first_rows::add_query(ctx, &item.relation, false, both, params)?
            && !add_pulled_up(ctx, &item.relation, false, (&mut tables, &mut scope), params)?
            && !add_table(ctx, &item.relation, false, (&mut tables, &mut scope), params)?
        {
            return Ok(None);
        }
        for join in &item.joins {
            let (left, constraint) = match &join.join_operator {
                JoinOperator::Join(c) | JoinOperator::Inner(c) => (false, c),
                JoinOperator::CrossJoin(c) => (false, c),
                JoinOperator::Left(c) | JoinOperator::LeftOuter(c) => (true, c),
                _ => return Ok(None),
            };
            let is_true = |on: &ast::Expr| match on {
                ast::Expr::Value(value) => value.value == ast::Value::Boolean(true),
                _ => false,
            };
            let always = match constraint {
                JoinConstraint::On(on) => is_true(on),
                JoinConstraint::None => !left,
                _ => false,
            };
            let both = (&mut tables, &mut scope);
            if always && first_rows::add_query(ctx, &join.relation, left, both, params)? {
                continue;
            }
            if !add_pulled_up(ctx, &join.relation, left, (&mut tables, &mut scope), params)?
                && !add_table(ctx, &join.relation, left, (&mut tables, &mut scope), params)?
            {
                return Ok(None);
            }
            let on = match constraint {
                JoinConstraint::On(e) => {
                    braid_scalar::bind_bool(e, "JOIN/ON", &scope, params)?.conjuncts()
                }
                JoinConstraint::None if !left => Vec::new(),
                JoinConstraint::None => return Ok(None),
                // Of several items each has an order of its own for `*`.
                _ if select.from.len() > 1 => return Ok(None),
                other => {
                    let begin = tables.last().map_or(0, |table| table.offset);
                    match using::merged(other, begin, &mut scope, params)? {
                        Some(on) => on,
                        None => return Ok(None),
                    }
                }
            };
            tables.last_mut().expect("added just now").on.extend(on);
        }
    }
    // A LEFT JOIN inside of a comma list binds differently from what a chain does.
    if select.from.len() > 1 && tables.iter().any(|t| t.left) {
        return Ok(None);
    }
    braid_scalar::decide_by_casts(&select.projection, params);
    Ok(Some((tables, scope)))
}

/// Adds a table and its columns; `false` if it is none of ours.
///
/// # Errors
/// 42712 for an alias that is there.
pub(super) fn add_table(
    ctx: &Context,
    factor: &TableFactor,
    left: bool,
    (tables, scope): (&mut Vec<From>, &mut Scope),
    params: &mut ParamTypes,
) -> SqlResult<bool> {
    if let Some((made, alias)) = compound::made_of(ctx, factor, params)? {
        check_alias(tables, &alias)?;
        push_table(made.layout().clone(), (alias, None), left, (tables, scope));
        tables.last_mut().expect("added just now").made = Some(made);
        return Ok(true);
    }
    let TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        sample: None,
        ..
    } = factor
    else {
        return Ok(false);
    };
    if !with_hints.is_empty() || !partitions.is_empty() {
        return Ok(false);
    }
    let parts = object_name_parts(name);
    // Unqualified system names mean pg_catalog first, as in PostgreSQL.
    if parts.len() == 1 && parts[0].starts_with("pg_") {
        return Ok(false);
    }
    let table = match ctx.find_relation(&parts) {
        // One that has no data is refused when it is read, which general plans know how to.
        Ok(Some(Relation::Table(t))) if t.materialized().is_none_or(|view| view.populated) => t,
        _ => return Ok(false),
    };
    // ONLY of a partitioned table: no rows, which general plans know how to.
    if is_only(name) && table.partitioning().is_some() {
        return Ok(false);
    }
    if alias.as_ref().is_some_and(|a| !a.columns.is_empty()) {
        return Ok(false);
    }
    let (alias, schema) = match alias {
        Some(a) => (ident_name(&a.name), None),
        None => (table.name.clone(), Some(ctx.schema_name(table.schema))),
    };
    check_alias(tables, &alias)?;
    let layout = Arc::new(TableLayout::new(&ctx.catalog, &table)?);
    push_table(layout, (alias, schema), left, (tables, scope));
    Ok(true)
}

/// Adds the table of a view, or of a query that is as simple, as it shows it; `false` if it is none
/// of ours.
///
/// # Errors
/// 42712 for an alias that is there.
fn add_pulled_up(
    ctx: &Context,
    factor: &TableFactor,
    left: bool,
    (tables, scope): (&mut Vec<From>, &mut Scope),
    params: &mut ParamTypes,
) -> SqlResult<bool> {
    let Some((table, over)) = OverTable::of(ctx, factor) else { return Ok(false) };
    let offset = scope.len();
    let mut tried = params.clone();
    let Ok(conditions) = over.conditions(&table, offset, &mut tried) else { return Ok(false) };
    *params = tried;
    check_alias(tables, over.alias())?;
    let layout = Arc::new(TableLayout::new(&ctx.catalog, &table)?);
    push_table(layout, (over.alias().to_string(), over.schema(ctx)), left, (tables, scope));
    over.rename(&mut scope.columns_mut()[offset..]);
    let last = tables.last_mut().expect("added just now");
    (last.on, last.view) = (conditions, Some(Arc::new(over)));
    Ok(true)
}

/// 42712 for an alias that is there.
fn check_alias(tables: &[From], alias: &str) -> SqlResult<()> {
    if tables.iter().any(|t| t.alias == alias) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_ALIAS,
            format!("table name \"{alias}\" specified more than once"),
        ));
    }
    Ok(())
}

/// Adds a table with its columns, under an alias and perhaps the name of its schema.
fn push_table(
    layout: Arc<TableLayout>,
    (alias, schema): (String, Option<String>),
    left: bool,
    (tables, scope): (&mut Vec<From>, &mut Scope),
) {
    let offset = scope.len();
    for c in scope_of(&layout.table, &alias, schema.as_deref()).columns() {
        let mut c = c.clone();
        c.nullable |= left;
        c.hidden |= compound::is_unseen(&alias);
        scope.push(c);
    }
    tables.push(From::of_table(layout, alias, (offset, left)));
}

/// Stored bytes from which on columns are worth the start of a general plan, twice.
const MUCH_BYTES: u64 = 256 << 10;

/// Rows of a table from which on filtering all of them in columns is worth the same.
const MANY_FILTERED: f64 = 1_500.0;

/// Whether one table is read as a whole, and is large: general plans read columns, not rows.
fn reads_much(ctx: &Context, steps: &[Step]) -> SqlResult<bool> {
    let [step] = steps else { return Ok(false) };
    if !step.is_whole_table() || !ctx.db.general().reads_columns() {
        return Ok(false);
    }
    if !step.access.rest.is_empty() && step.facts(ctx).rows() > MANY_FILTERED {
        return Ok(true);
    }
    let whole = step.layout.rows.whole_span();
    Ok(ctx.txn.divide(&whole, 2, MUCH_BYTES).map_err(kv_error)?.len() > 1)
}

/// Whether so many rows are aggregated or grouped that a general plan does it faster.
fn puts_much_together(ctx: &Context, output: &Output, steps: &[Step]) -> SqlResult<bool> {
    match output {
        Output::Rows(out) => Ok(!out.is_plain() && (steps.is_empty() || joins_many(ctx, steps)?)),
        Output::Aggregates(totals) => {
            let keeps = totals.list.iter().any(Aggregate::keeps);
            Ok(reads_much(ctx, steps)? || keeps && joins_many(ctx, steps)?)
        }
        Output::Groups(_) => Ok(steps.is_empty() || joins_many(ctx, steps)?),
    }
}

/// Whether so many rows are grouped or asked for others that a general plan does it faster.
fn joins_many(ctx: &Context, steps: &[Step]) -> SqlResult<bool> {
    if !ctx.db.general().reads_columns() {
        return Ok(false);
    }
    // A hash join reads each table once.
    if steps.len() > 1 && steps[0].is_whole_table() || reads_much(ctx, steps)? {
        return Ok(true);
    }
    let mut rows = 1.0;
    Ok(steps.iter().any(|step| {
        rows = step.rows_expected(ctx, rows);
        rows > MANY_ROWS
    }))
}

/// The order in which the first row holds the wanted minimum or maximum.
fn extreme_order(output: &Output, tables: &[From]) -> Vec<SortKey> {
    let (Output::Aggregates(totals), [table]) = (output, tables) else { return Vec::new() };
    let [one] = totals.list.as_slice() else { return Vec::new() };
    match one.extreme() {
        // NULLs do not count, so they must not be there to come first.
        Some((at, desc)) if !table.layout.table.columns[at].nullable => vec![SortKey {
            expr: Bound::column(at, table.layout.table.columns[at].ty.clone()),
            desc,
            nulls_first: desc,
        }],
        _ => Vec::new(),
    }
}

pub(super) fn limits(
    q: &ast::Query,
    params: &mut ParamTypes,
) -> SqlResult<(Option<Bound>, Option<Bound>)> {
    limits_over(q, &Scope::empty(), params)
}

/// LIMIT and OFFSET of a query with these columns around it.
pub(super) fn limits_over(
    q: &ast::Query,
    around: &Scope,
    params: &mut ParamTypes,
) -> SqlResult<(Option<Bound>, Option<Bound>)> {
    let mut number = |e: &ast::Expr| {
        let bound = braid_scalar::bind_unsettled(e, around, params)?;
        braid_scalar::coerce(bound, &SqlType::Int8, CastContext::Assignment, params)
    };
    match &q.limit_clause {
        None => Ok((None, None)),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => Ok((
            limit.as_ref().map(&mut number).transpose()?,
            offset.as_ref().map(|o| number(&o.value)).transpose()?,
        )),
        Some(_) => Err(SqlError::unsupported("this LIMIT clause")),
    }
}

/// 42P10 for columns of the query itself in its LIMIT or OFFSET.
fn with_variables(error: SqlError, q: &ast::Query, scope: &Scope) -> SqlError {
    let Some(LimitClause::LimitOffset { limit, offset, .. }) = &q.limit_clause else {
        return error;
    };
    let has_columns = |e: &ast::Expr| {
        let bound = braid_scalar::bind_unsettled(e, scope, &mut ParamTypes::default());
        bound.is_ok_and(|bound| !bound.columns().is_empty())
    };
    let (clause, e) = match (limit, offset) {
        (Some(e), _) if has_columns(e) => ("LIMIT", e),
        (_, Some(offset)) if has_columns(&offset.value) => ("OFFSET", &offset.value),
        _ => return error,
    };
    let text = format!("argument of {clause} must not contain variables");
    braid_scalar::at_beginning(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, text), e)
}

/// FOR UPDATE and FOR SHARE; outer `None` if not ours.
fn locking(
    q: &ast::Query,
    select: &ast::Select,
    tables: &[From],
) -> SqlResult<Option<Option<Locking>>> {
    if q.locks.is_empty() {
        return Ok(Some(None));
    }
    let [From { layout, made: None, view: None, .. }] = tables else { return Ok(None) };
    check_lockable(&layout.table)?;
    let mut locked = locked_in(select, &q.locks)?;
    Ok(locked.pop().map(|(_, locking)| Some(locking)))
}

/// Rows that a LIMIT of unknown value is taken to want.
const SOME_ROWS: f64 = 100.0;

/// How many rows LIMIT and OFFSET want to be found.
pub(super) fn first_rows(ctx: &Context, limit: &Bound, offset: Option<&Bound>) -> f64 {
    let number = |bound: &Bound| match bound.eval(&[], &ctx.eval) {
        Ok(Datum::Int8(rows)) => rows.max(0) as f64,
        _ => SOME_ROWS,
    };
    number(limit) + offset.map_or(0.0, number)
}

/// Steps, conditions without tables, and whether the keys give an order.
type Found = (Vec<Step>, Vec<Bound>, Met);

/// Puts conditions on tables and chooses their keys. `used`: nothing else is looked at; `first`: so
/// many rows are wanted. `None` if a key-wise plan would be poor.
fn chain(
    ctx: &Context,
    tables: &[From],
    filter: &[Bound],
    (sort, used): (&[SortKey], Option<&BTreeSet<usize>>),
    first: Option<f64>,
) -> Option<Found> {
    let mut left_over: Vec<Bound> = filter.to_vec();
    // What says something else each time it is asked is asked for each joined row.
    let volatile = |b: &Bound| b.columns().is_empty() && b.volatility() == Volatility::Volatile;
    let constant =
        take(&mut left_over, |b| b.columns().is_empty() && (tables.is_empty() || !volatile(b)));
    let mut steps = Vec::new();
    let joined = tables.iter().filter(|t| t.is_joined()).count();
    for (n, t) in tables.iter().enumerate() {
        let end = t.end();
        let whole = n + 1 == joined;
        let ready = |b: &Bound| b.columns().into_iter().all(|c| c < end) && (whole || !volatile(b));
        let mut after = Vec::new();
        let mut on = t.on.clone();
        if t.left || t.value.is_some() || t.first.is_some() {
            // An ON condition that is not about this table at all still decides about NULLs, so it
            // stays with the lookup; WHERE comes after.
            after = take(&mut left_over, ready);
        } else if t.semi.is_none() {
            on.extend(take(&mut left_over, ready));
        }
        // Rests are evaluated over the joined row; nothing to remap.
        let candidates = |on| Access::candidates(&t.layout, on, t.offset);
        let best = match (&t.made, n == 0 && joined == 1) {
            (Some(_), _) => Made::access(on),
            (None, true) => choose_ordered(ctx, t, candidates(&on), (sort, used), first),
            (None, false) => choose_joined(ctx, t, candidates(&on), n == 0),
        };
        let made = t.made.is_some();
        let family =
            n > 0 && t.is_joined() && t.first.is_none() && is_family(&tables[n - 1], t, &best);
        if n > 0 && !made && best.eq_len() == 0 {
            return None;
        }
        if n > 0 && !made && !t.is_joined() && best.columns().into_iter().all(|c| c >= t.offset) {
            // The same rows for each outer one: a general plan reads them once.
            return None;
        }
        let whole_tables = || steps.iter().all(Step::is_whole_table);
        if n > 0 && !family && t.first.is_none() && whole_tables() && first.is_none() {
            // Looking up a row for each row of a whole table: a hash join does better.
            return None;
        }
        let nested = t.nested.iter().map(|inner| nested_step(ctx, inner)).collect();
        let mut step = Step { nested, after, family, ..Step::of(t, best) };
        note_order(&mut step);
        steps.push(step);
    }
    if !left_over.is_empty() {
        return None;
    }
    let order = met(&steps, sort);
    // Sorting in memory is for what a key has narrowed down, and for small tables.
    if order == Met::No && steps.iter().all(Step::is_whole_table) && !is_small(ctx, &steps) {
        return None;
    }
    Some((steps, constant, order))
}

/// Rows of a table that are sorted in memory before a general plan begins.
const FEW_ROWS: f64 = 300.0;

/// Whether it is one table of which it is known that it is small.
fn is_small(ctx: &Context, steps: &[Step]) -> bool {
    let [step] = steps else { return false };
    let facts = step.facts(ctx);
    facts.statistics().is_some() && facts.rows() <= FEW_ROWS
}

/// Where the keys of a step give the order in which its value takes rows in, or in which its first
/// rows are wanted, the first of them are enough.
fn note_order(step: &mut Step) {
    let value = step.value.as_ref().filter(|value| value.wants_first() && step.nested.is_empty());
    let first = step.first.as_ref().filter(|first| first.is_limited());
    let order = value.map(|value| &value.order).or(first.map(|first| &first.order));
    let Some(order) = order else { return };
    let met = met_within(step, order);
    step.in_order = Some(met).filter(|met| *met != Met::No);
}

/// A step within another one that gives a value.
fn nested_step(ctx: &Context, t: &From) -> Step {
    let nested = t.nested.iter().map(|inner| nested_step(ctx, inner)).collect();
    let access = match t.made {
        Some(_) => Made::access(t.on.clone()),
        None => {
            let all = Access::candidates(&t.layout, &t.on, t.offset);
            choose_joined(ctx, t, all, false)
        }
    };
    Step { nested, ..Step::of(t, access) }
}

impl Step {
    /// A step that reads a table in this way, and nothing else yet.
    fn of(t: &From, access: Access) -> Step {
        let end = t.offset + t.layout.table.columns.len();
        let made = t.made.as_ref();
        let made = made.map(|made| (made.clone(), Keys::among(&access.rest, t.offset, end)));
        Step {
            layout: t.layout.clone(),
            offset: t.offset,
            access,
            left: t.left,
            semi: t.semi,
            value: t.value.clone(),
            first: t.first.clone(),
            made,
            in_order: None,
            nested: Vec::new(),
            after: Vec::new(),
            wanted: None,
            family: false,
        }
    }
}

fn take(list: &mut Vec<Bound>, wanted: impl Fn(&Bound) -> bool) -> Vec<Bound> {
    let (yes, no) = std::mem::take(list).into_iter().partition(|b| wanted(b));
    *list = no;
    yes
}

/// For one table: the best key, preferring one that gives the order when that saves a sort of
/// everything.
fn choose_ordered(
    ctx: &Context,
    t: &From,
    all: Vec<Access>,
    (sort, used): (&[SortKey], Option<&BTreeSet<usize>>),
    first: Option<f64>,
) -> Access {
    let gives = |a: &Access| {
        let step = Step { left: false, ..Step::of(t, a.clone()) };
        met_within(&step, sort) != Met::No
    };
    let score = |at: usize| all[at].score(&t.layout);
    let best = Access::best_of(&all, &t.layout);
    let ordered = (0..all.len()).filter(|at| gives(&all[*at])).max_by_key(|at| score(*at));
    let by_rules = match ordered {
        _ if sort.is_empty() || gives(&all[best]) => best,
        Some(at) if score(at) >= score(best) => at,
        Some(at) if all[best].is_full() && first.is_some() => at,
        Some(at) if all[best].is_full() && all[at].index.is_none() => at,
        _ => best,
    };
    let columns = t.layout.table.columns.len();
    let columns: Option<Vec<bool>> =
        used.map(|used| (0..columns).map(|at| used.contains(&(t.offset + at))).collect());
    let wanted = Wanted { ordered: !sort.is_empty(), first, columns: columns.as_deref() };
    choice::choose(ctx, &t.layout, t.offset, all, by_rules, (wanted, &gives))
}

/// For one of several tables, the outermost or one that is looked up in.
fn choose_joined(ctx: &Context, t: &From, mut all: Vec<Access>, outermost: bool) -> Access {
    if let Some(order) = t.order_of_first()
        && all.iter().any(|access| access.eq_len() > 0)
    {
        all.retain(|access| access.eq_len() > 0);
        return choose_ordered(ctx, t, all, (order, None), Some(1.0));
    }
    let mut by_rules = Access::best_of(&all, &t.layout);
    if !outermost {
        // Where rows lie inside of others, that is the way to them.
        if all[by_rules].index.is_none() {
            return all.swap_remove(by_rules);
        }
        let looked_up = |access: &Access| access.index.is_some() && access.eq_len() > 0;
        let best = all[by_rules].clone();
        all.retain(looked_up);
        by_rules = Access::best_of(&all, &t.layout);
        if all.is_empty() {
            return best;
        }
    }
    choice::choose(ctx, &t.layout, t.offset, all, by_rules, (Wanted::default(), &|_| false))
}

/// Whether the looked-up rows lie inside the row found before.
fn is_family(outer: &From, inner: &From, access: &Access) -> bool {
    access.index.is_none()
        && inner.layout.table.interleave.as_ref().is_some_and(|i| {
            i.parent == outer.layout.table.id && access.eq_len() >= i.columns.len()
        })
}

/// Columns that make what comes out.
fn columns_out(output: &Output, sort: &[SortKey]) -> BTreeSet<usize> {
    let mut used = BTreeSet::new();
    match output {
        Output::Rows(out) => out.all().for_each(|e| used.extend(e.columns())),
        Output::Aggregates(totals) => {
            let exprs = totals.list.iter().flat_map(Aggregate::exprs);
            exprs.for_each(|e| used.extend(e.columns()));
        }
        Output::Groups(groups) => groups.exprs().for_each(|e| used.extend(e.columns())),
    }
    sort.iter().for_each(|k| used.extend(k.expr.columns()));
    used
}

/// Columns that anybody may look at, before it is known which conditions keys express.
fn used_columns(
    output: &Output,
    sort: &[SortKey],
    filter: &[Bound],
    tables: &[From],
) -> BTreeSet<usize> {
    let mut used = columns_out(output, sort);
    filter.iter().for_each(|e| used.extend(e.columns()));
    used_by_tables(tables, &mut used);
    used
}

fn used_by_tables(tables: &[From], used: &mut BTreeSet<usize>) {
    for t in tables {
        t.on.iter().for_each(|e| used.extend(e.columns()));
        t.value.iter().flat_map(|v| v.exprs()).for_each(|e| used.extend(e.columns()));
        t.first.iter().flat_map(|first| first.exprs()).for_each(|e| used.extend(e.columns()));
        used_by_tables(&t.nested, used);
    }
}

/// Tells each step which columns anybody looks at.
fn note_wanted(steps: &mut [Step], output: &Output, sort: &[SortKey]) {
    let mut used = columns_out(output, sort);
    used_by_steps(steps, &mut used);
    want(steps, &used);
}

fn used_by_steps(steps: &[Step], used: &mut BTreeSet<usize>) {
    for s in steps {
        s.after.iter().chain(&s.access.rest).for_each(|e| used.extend(e.columns()));
        used.extend(s.access.columns());
        s.value.iter().flat_map(|v| v.exprs()).for_each(|e| used.extend(e.columns()));
        s.first.iter().flat_map(|first| first.exprs()).for_each(|e| used.extend(e.columns()));
        used_by_steps(&s.nested, used);
    }
}

fn want(steps: &mut [Step], used: &BTreeSet<usize>) {
    for s in steps {
        let n = s.layout.table.columns.len();
        s.wanted = Some((0..n).map(|i| used.contains(&(s.offset + i))).collect());
        want(&mut s.nested, used);
    }
}
