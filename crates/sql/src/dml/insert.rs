//! INSERT.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use braid_catalog::Identity;
use braid_kv::{ReadMode, SavepointId};
use braid_types::{Datum, Mark, Place, SqlError, SqlResult, SqlState, SqlType};
use bytes::Bytes;
use sqlparser::ast::{self, AssignmentTarget, Spanned};

use super::Written;
use super::ahead;
use super::arbiters::{self, Arbiters};
use super::assigned::commit_time;
use super::assigned::default_marks::{Marks, marked, taken_off};
use super::assigned::fields::whole_columns;
use super::assigned::set_list::set_list;
use super::assigned::untyped;
use super::query_load::{Taken, take_rows};
use super::source::Source;
use super::target::{
    Returning, Target, UpdateByQuery, Verb, ViewChecks, beginning, bind_inserted, check_assignable,
    check_settable, is_default, refuse_given, returned,
};
use super::writer::{TableInfo, Writer};
use crate::explain::{Explained, PlanLine, writing};
use crate::general_query::ColumnInfo;
use crate::session::Context;
use braid_parser::{Inference, InsertClauses, Overriding};
use braid_rows::Row;
use braid_rows::scan::get_row_as;
use braid_scalar::{Bound, ParamTypes, Scope, Volatility, at_beginning, object_name_parts};

/// A planned INSERT.
pub struct InsertPlan {
    info: Arc<TableInfo>,
    /// Ordinals that the source's columns go to.
    targets: Vec<usize>,
    /// Identity columns whose given values are ignored (OVERRIDING USER VALUE).
    ignored: Vec<bool>,
    source: Rows,
    conflict: Option<Conflict>,
    returning: Option<Returning>,
    checks: Option<ViewChecks>,
}

enum Rows {
    /// VALUES; `None` is DEFAULT.
    Values(Vec<Vec<Option<Bound>>>),
    Query(Box<FromQuery>),
    /// DEFAULT VALUES.
    Defaults,
}

/// Rows of a query.
struct FromQuery {
    source: Source,
    /// Which of its columns are the time of the commit.
    pending: Vec<usize>,
    /// Marks of what is DEFAULT stand behind each row.
    defaults: Option<Marks>,
}

struct Conflict {
    /// Unique keys whose conflicts are caught.
    arbiters: Arbiters,
    update: Option<ConflictUpdate>,
}

enum ConflictUpdate {
    /// Over the existing row followed by the excluded one.
    Own {
        /// `None` is DEFAULT.
        sets: Vec<(usize, Option<Bound>)>,
        filter: Option<Bound>,
    },
    ByQuery(Box<UpdateByQuery>),
}

impl InsertPlan {
    /// The table that it writes to.
    pub(crate) fn table(&self) -> u32 {
        self.info.layout.table.id
    }

    /// Plans an INSERT.
    pub fn new(
        ctx: &Context,
        insert: &ast::Insert,
        clauses: &InsertClauses,
        params: &mut ParamTypes,
    ) -> SqlResult<InsertPlan> {
        let ast::TableObject::TableName(name) = &insert.table else {
            return Err(SqlError::syntax("INSERT needs a table name"));
        };
        if insert.replace_into || insert.overwrite {
            return Err(SqlError::unsupported("REPLACE INTO")
                .with_hint("Use INSERT .. ON CONFLICT .. DO UPDATE."));
        }
        let alias = insert.table_alias.as_ref().map(|a| &a.alias);
        let target = Target::named(ctx, name, alias, Verb::Insert)?;
        let table = &target.table;
        if let Some(whole) = whole_columns(&target, insert)? {
            return InsertPlan::new(ctx, &whole, clauses, params);
        }
        let mut targets = listed(&target, insert)?;
        let overriding = clauses.overriding;
        let named = !targets.is_empty();
        if !named {
            targets = target.in_order().0;
        }
        let source = rows(ctx, insert, &target, &mut targets, named, params)?;
        let mut ignored = vec![false; targets.len()];
        for (n, at) in targets.iter().enumerate() {
            let c = &table.columns[*at];
            let given = match &source {
                Rows::Values(rows) => rows.iter().any(|r| r[n].is_some()),
                Rows::Query(q) => q.defaults.as_ref().is_none_or(|marks| marks.given[n]),
                Rows::Defaults => false,
            };
            if given && c.generated.is_some() {
                return Err(refuse_given(table, *at));
            }
            if c.identity.is_some() && overriding == Some(Overriding::User) {
                ignored[n] = true;
            } else if given && c.identity == Some(Identity::Always) && overriding.is_none() {
                return Err(
                    refuse_given(table, *at).with_hint("Use OVERRIDING SYSTEM VALUE to override.")
                );
            }
        }
        let info = Arc::new(TableInfo::new(ctx, table)?);
        let conflict = match (&insert.or, &insert.on) {
            (None, None) => None,
            (None, Some(ast::OnInsert::OnConflict(c))) => {
                Some(conflict(ctx, &info, &target, (c, clauses.inference.as_ref()), params)?)
            }
            (Some(or), None) => {
                let written = written_by_key(&target, insert, &targets);
                let by_key = by_key(&target, or, &written, insert.returning.is_some())?;
                by_key.map(|c| conflict(ctx, &info, &target, (&c, None), params)).transpose()?
            }
            _ => return Err(SqlError::unsupported("ON DUPLICATE KEY UPDATE")),
        };
        let returning = bind_inserted(ctx, insert.returning.as_deref(), &target, params)?;
        let checks = target.view_checks()?;
        Ok(InsertPlan { info, targets, ignored, source, conflict, returning, checks })
    }

    /// RETURNING columns.
    pub fn columns(&self) -> Option<Vec<ColumnInfo>> {
        self.returning.as_ref().map(|r| r.columns.clone())
    }

    /// Runs it.
    pub fn run(&self, ctx: &Context) -> SqlResult<Written> {
        let mut w = Writer::new(ctx);
        w.use_info(&self.info)?;
        let mut out = Vec::new();
        let mut count = 0;
        let mut touched = HashSet::new();
        let upsert = self.conflict.as_ref().is_some_and(|c| c.update.is_some());
        let width = self.info.table().columns.len();
        let tells = self.returning.as_ref().is_some_and(|r| r.looks_behind(width));
        let since = self.returning.as_ref().and_then(|r| r.began(ctx));
        let by_query = self.conflict.as_ref().is_some_and(Conflict::asks);
        let since = since.or_else(|| by_query.then(|| beginning(ctx)));
        let mut all = |rows: &mut dyn Iterator<Item = SqlResult<Row>>| -> SqlResult<()> {
            loop {
                // An error in the middle is told after the rows before it were written.
                let mut bad = None;
                let mut part: Vec<((), Row)> = Vec::new();
                while part.len() < ctx.txn.batch_max() && bad.is_none() {
                    match rows.next() {
                        None => break,
                        Some(Ok(row)) => part.push(((), row)),
                        Some(Err(e)) => bad = Some(e),
                    }
                }
                let ended = part.is_empty() && bad.is_none();
                if let Some(((), e)) = w.prepare(&self.info, &mut part, upsert)? {
                    bad = Some(e);
                }
                self.ask_upserts(ctx, &part)?;
                for ((), row) in part {
                    if let Some((mut row, was_there)) =
                        self.write(ctx, &mut w, row, (&mut touched, since))?
                    {
                        if let Some(checks) = &self.checks {
                            checks.check(ctx, self.info.table(), &row)?;
                        }
                        count += 1;
                        if self.returning.is_some() {
                            if tells {
                                row.push(Datum::Int8(i64::from(was_there)));
                            }
                            out.push(row);
                        }
                    }
                }
                match bad {
                    Some(e) => return Err(e),
                    None if ended => return Ok(()),
                    None => {}
                }
            }
        };
        match &self.source {
            Rows::Values(rows) => {
                all(&mut rows.iter().map(|exprs| {
                    let given = exprs.iter().map(|e| match e {
                        Some(e) => e.eval(&[], &ctx.eval).map(Some),
                        None => Ok(None),
                    });
                    self.fill(ctx, given.collect::<SqlResult<_>>()?)
                }))?;
            }
            Rows::Defaults => {
                let given = vec![None; self.targets.len()];
                all(&mut std::iter::once_with(|| self.fill(ctx, given.clone())))?;
            }
            Rows::Query(from) => {
                let FromQuery { source, pending, defaults } = &**from;
                let types: Vec<SqlType> = source.columns().iter().map(|c| c.ty.clone()).collect();
                let mut whole = |mut values: Row| {
                    let left = defaults.as_ref().map(|_| taken_off(&mut values));
                    let mut given = self.convert(ctx, &types, values)?;
                    pending.iter().for_each(|n| given[*n] = Some(Datum::PENDING_COMMIT_TIME));
                    left.iter().flatten().for_each(|n| given[*n] = None);
                    self.fill(ctx, given)
                };
                // All rows first: parts of the query that start late must not see what the
                // statement itself writes. A load may be in the store before the commit.
                let at_once =
                    self.conflict.is_some() || self.returning.is_some() || self.checks.is_some();
                let rows = if at_once || !pending.is_empty() {
                    source.rows(ctx)?
                } else {
                    match take_rows(ctx, source, &self.info, &mut whole)? {
                        Taken::Given(rows) => rows,
                        Taken::Loaded(count) => {
                            return Ok(Written { count, ..Written::default() });
                        }
                    }
                };
                all(&mut rows.into_iter().map(whole))?;
            }
        }
        w.finish()?;
        let returning = returned(ctx, self.returning.as_ref(), &out, since)?;
        Ok(Written { count, returning, work: w.work })
    }

    fn convert(
        &self,
        ctx: &Context,
        types: &[SqlType],
        values: Row,
    ) -> SqlResult<Vec<Option<Datum>>> {
        let table = self.info.table();
        values
            .into_iter()
            .zip(types)
            .zip(&self.targets)
            .map(|((v, from), at)| {
                let to = &table.columns[*at].ty;
                let from = if *from == SqlType::Unknown { &SqlType::Text } else { from };
                crate::dml::assign(&v, from, to, &ctx.eval).map(Some)
            })
            .collect()
    }

    /// A whole row from the given values.
    fn fill(&self, ctx: &Context, given: Vec<Option<Datum>>) -> SqlResult<Row> {
        let n = self.info.table().columns.len();
        let mut row: Vec<Option<Datum>> = vec![None; n];
        for ((v, at), ignored) in given.into_iter().zip(&self.targets).zip(&self.ignored) {
            if !ignored {
                row[*at] = v;
            }
        }
        row.into_iter()
            .enumerate()
            .map(|(at, v)| match v {
                Some(v) => Ok(v),
                None => self.info.filler.default(ctx, at),
            })
            .collect()
    }

    /// Asks ahead what updating the rows that are there already will ask: all of it where what
    /// they will become can be told before, else only their locks.
    fn ask_upserts(&self, ctx: &Context, rows: &[((), Row)]) -> SqlResult<()> {
        let Some(Conflict { arbiters, update: Some(update) }) = &self.conflict else {
            return Ok(());
        };
        if rows.len() < 2 {
            return Ok(());
        }
        let settled = |e: &Bound| e.volatility() != Volatility::Volatile;
        let set = |(at, e): &(usize, Option<Bound>)| match e {
            Some(e) => settled(e),
            None => self.info.filler.is_settled(*at),
        };
        let foreseen = match update {
            ConflictUpdate::Own { sets, filter } => {
                sets.iter().all(set) && filter.as_ref().is_none_or(settled)
            }
            ConflictUpdate::ByQuery(_) => false,
        };
        let arbiters = arbiters.now(ctx, &self.info)?;
        let (mut changes, mut locks) = (Vec::new(), Vec::new());
        for ((), row) in rows {
            let Some((key, old)) = self.existing(ctx, &arbiters, row)? else { continue };
            if !foreseen {
                locks.push(key);
                continue;
            }
            let mut both = old.clone();
            both.extend(row.iter().cloned());
            // What fails here fails again when it is this row's turn.
            if let Ok(Some(mut new)) = self.upserted(ctx, update, None, &old, &both)
                && self.info.filler.generate(ctx, &mut new).is_ok()
            {
                changes.push((key, old, new));
            }
        }
        ahead::of_locks(ctx, locks)?;
        ahead::of_updates(
            ctx,
            &changes.iter().map(|(k, o, n)| (&self.info, k, o, n)).collect::<Vec<_>>(),
        )
    }

    /// The row that a new one meets, as the statement sees it.
    fn existing(
        &self,
        ctx: &Context,
        arbiters: &[Option<usize>],
        row: &Row,
    ) -> SqlResult<Option<(Bytes, Row)>> {
        let layout = &self.info.layout;
        for arbiter in arbiters {
            let index = arbiter.map(|n| &layout.indexes[n]);
            let key = match index {
                None => Some(Bytes::from(layout.row_key(row)?)),
                Some(i) if !i.index.unique || !i.enforces_for(row) => None,
                Some(i) => match i.entry_key(row)? {
                    Some(entry) => ahead::row_behind(ctx, layout, i, &entry)?,
                    None => None,
                },
            };
            let Some(key) = key else { continue };
            let Some(found) = get_row_as(&ctx.txn, layout, key, ReadMode::Unrecorded)? else {
                continue;
            };
            let same = match index {
                None => true,
                Some(i) => i.entry_key(&found.1)? == i.entry_key(row)?,
            };
            if same {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The row that an existing one becomes; `both`: it, followed by the excluded one. `None` if it
    /// stays as it is.
    fn upserted(
        &self,
        ctx: &Context,
        update: &ConflictUpdate,
        since: Option<SavepointId>,
        old: &Row,
        both: &Row,
    ) -> SqlResult<Option<Row>> {
        let excluded = &both[old.len()..];
        let (sets, filter) = match (update, since) {
            (ConflictUpdate::Own { sets, filter }, _) => (sets, filter),
            (ConflictUpdate::ByQuery(query), Some(since)) => {
                return query.updated(ctx, &self.info, since, (old, &excluded.to_vec()));
            }
            (ConflictUpdate::ByQuery(_), None) => {
                return Err(SqlError::internal("nobody noted where the statement began"));
            }
        };
        if let Some(f) = filter
            && !f.eval_bool(both, &ctx.eval)?
        {
            return Ok(None);
        }
        let mut new = old.clone();
        for (at, e) in sets {
            let passed = e.as_ref().and_then(|e| commit_time::passed_on(e, *at, excluded));
            new[*at] = match e {
                _ if let Some(value) = passed => value.clone(),
                Some(e) => e.eval(both, &ctx.eval)?,
                None => self.info.filler.default(ctx, *at)?,
            };
        }
        Ok(Some(new))
    }

    /// Inserts a prepared row, or does what ON CONFLICT says. `None` if nothing was written; else
    /// with whether a row was there before.
    fn write(
        &self,
        ctx: &Context,
        w: &mut Writer,
        row: Row,
        (touched, since): (&mut HashSet<Vec<u8>>, Option<SavepointId>),
    ) -> SqlResult<Option<(Row, bool)>> {
        let one = ctx.as_one();
        let Some(conflict) = &self.conflict else {
            let row = w.insert(&self.info, row)?;
            if let Some(one) = one {
                one.wrote(&Bytes::from(self.info.layout.row_key(&row)?));
            }
            return Ok(Some((row, false)));
        };
        for arbiter in &*conflict.arbiters.now(ctx, &self.info)? {
            let Some((key, old)) = w.find_conflict(&self.info, *arbiter, &row)? else { continue };
            let Some(update) = &conflict.update else { return Ok(None) };
            let first = one.is_none_or(|one| one.wrote(&key));
            if !touched.insert(key.to_vec()) || !first {
                return Err(SqlError::new(
                    SqlState::CARDINALITY_VIOLATION,
                    "ON CONFLICT DO UPDATE command cannot affect row a second time",
                )
                .with_hint(
                    "Ensure that no rows proposed for insertion within the same command have \
                     duplicate constrained values.",
                ));
            }
            let mut both = old.clone();
            both.extend(row);
            let Some(new) = self.upserted(ctx, update, since, &old, &both)? else {
                return Ok(None);
            };
            let new = w.update(&self.info, vec![(key, old, new)])?.pop();
            return Ok(new.map(|row| (row, true)));
        }
        let key = self.info.layout.row_key(&row)?;
        let row = w.insert(&self.info, row)?;
        if let Some(one) = one {
            one.wrote(&Bytes::from(key.clone()));
        }
        touched.insert(key);
        Ok(Some((row, false)))
    }

    /// EXPLAIN.
    pub fn explain(&self, ctx: &Context, analyze: bool) -> SqlResult<Explained> {
        let mut lines: Vec<PlanLine> = Vec::new();
        match &self.source {
            Rows::Values(rows) => lines.push(format!("  values: {} rows", rows.len()).into()),
            Rows::Defaults => lines.push("  default values".into()),
            Rows::Query(from) => {
                lines.extend(from.source.explain(ctx)?);
            }
        }
        let run = analyze.then_some(|| self.run(ctx));
        writing(ctx, "Insert", &self.info.table().name, lines, run)
    }
}

/// The columns that an INSERT lists.
fn listed(target: &Target, insert: &ast::Insert) -> SqlResult<Vec<usize>> {
    let mut out: Vec<usize> = Vec::new();
    for c in &insert.columns {
        let at = target.ordinal_of(c)?;
        if out.contains(&at) {
            let name = object_name_parts(c).pop().unwrap_or_default();
            let text = format!("column \"{name}\" specified more than once");
            let start = c.span().start;
            return Err(
                SqlError::new(SqlState::DUPLICATE_COLUMN, text).or_at(start.line, start.column)
            );
        }
        out.push(at);
    }
    Ok(out)
}

fn rows(
    ctx: &Context,
    insert: &ast::Insert,
    target: &Target,
    targets: &mut Vec<usize>,
    named: bool,
    params: &mut ParamTypes,
) -> SqlResult<Rows> {
    let table = &target.table;
    let Some(query) = &insert.source else { return Ok(Rows::Defaults) };
    let selected = as_select(query);
    let query = selected.as_ref().unwrap_or(query);
    let plain = query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none();
    if let ast::SetExpr::Values(v) = &*query.body
        && plain
    {
        match values(insert, v, target, (targets, named), params) {
            Err(e) if braid_scalar::needs_general_query(&e) => {}
            other => return other,
        }
    }
    let (without, pending) = commit_time::taken_out(query).unzip();
    let (query, pending) = (without.as_ref().unwrap_or(query), pending.unwrap_or_default());
    let (with_marks, defaults) = marked(query).unzip();
    let query = with_marks.as_ref().unwrap_or(query);
    untyped::decide_domains(query, table, targets, params);
    let typed = untyped::typed(query, table, targets);
    let source = Source::plan(ctx, typed.as_ref().unwrap_or(query), params)?;
    let from_values = matches!(&*query.body, ast::SetExpr::Values(_));
    let exprs = written_out(query);
    let width = source.columns().len() - usize::from(defaults.is_some());
    check_count(target, width, targets, named)
        .map_err(|e| at_excess(e, insert, &exprs, targets.len()))?;
    for n in &pending {
        commit_time::pending(table, targets[*n])?;
    }
    if !from_values {
        for (n, (c, at)) in source.columns().iter().zip(targets.iter()).enumerate() {
            check_assignable(table, *at, &c.ty, exprs.get(n).copied())?;
        }
    }
    Ok(Rows::Query(Box::new(FromQuery { source, pending, defaults })))
}

/// A single row of VALUES that has a set-returning function is a select list, as in PostgreSQL.
fn as_select(query: &ast::Query) -> Option<Box<ast::Query>> {
    let ast::SetExpr::Values(values) = &*query.body else { return None };
    let [row] = values.rows.as_slice() else { return None };
    let gives_sets = braid_walk::expressions(&row.content, |e| match e {
        ast::Expr::Function(f) => {
            let name = object_name_parts(&f.name).pop().unwrap_or_default();
            match braid_scalar::is_set_returning(&name) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
        _ => ControlFlow::Continue(()),
    });
    if gives_sets.is_continue() || marked(query).is_some() {
        return None;
    }
    let items: Vec<String> = row.content.iter().map(ToString::to_string).collect();
    let listed = *braid_parser::parse_query(&format!("SELECT {}", items.join(", "))).ok()?;
    Some(Box::new(ast::Query { body: listed.body, ..query.clone() }))
}

fn check_count(
    target: &Target,
    given: usize,
    targets: &mut Vec<usize>,
    named: bool,
) -> SqlResult<()> {
    if given > targets.len() {
        if let (false, Some(e)) = (named, target.in_order().1) {
            return Err(e);
        }
        return Err(SqlError::syntax("INSERT has more expressions than target columns"));
    }
    if given < targets.len() {
        if named {
            return Err(SqlError::syntax("INSERT has more target columns than expressions"));
        }
        targets.truncate(given);
    }
    Ok(())
}

/// The expressions of a select list, as far as it is written out.
fn written_out(query: &ast::Query) -> Vec<&ast::Expr> {
    let ast::SetExpr::Select(select) = &*query.body else { return Vec::new() };
    let expr = |item: &'_ ast::SelectItem| {
        matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. })
    };
    let items = select.projection.iter().take_while(|item| expr(item));
    let exprs = items.filter_map(|item| match item {
        ast::SelectItem::UnnamedExpr(e) | ast::SelectItem::ExprWithAlias { expr: e, .. } => Some(e),
        _ => None,
    });
    exprs.collect()
}

/// An error about too many or too few values, with the first column or value that has no other.
fn at_excess(
    error: SqlError,
    insert: &ast::Insert,
    given: &[&ast::Expr],
    wanted: usize,
) -> SqlError {
    match (given.get(wanted), insert.columns.get(given.len())) {
        (Some(expr), _) => at_beginning(error, expr),
        (None, Some(column)) if !given.is_empty() => {
            let (start, name) = (column.span().start, object_name_parts(column));
            let mark = Mark::Word(name.into_iter().next().unwrap_or_default());
            error.or_place(Some(Place { line: start.line, column: start.column, mark }))
        }
        _ => error,
    }
}

fn values(
    insert: &ast::Insert,
    v: &ast::Values,
    target: &Target,
    (targets, named): (&mut Vec<usize>, bool),
    params: &mut ParamTypes,
) -> SqlResult<Rows> {
    let first: Vec<&ast::Expr> = v.rows.first().iter().flat_map(|r| &r.content).collect();
    let width = first.len();
    let table = &target.table;
    check_count(target, width, targets, named)
        .map_err(|e| at_excess(e, insert, &first, targets.len()))?;
    let mut out = Vec::with_capacity(v.rows.len());
    for row in &v.rows {
        if row.content.len() != width {
            let error = SqlError::syntax("VALUES lists must all be the same length");
            let first = row.content.first();
            return Err(error.or_place(first.and_then(braid_scalar::beginning)));
        }
        let mut exprs = Vec::with_capacity(width);
        for (e, at) in row.content.iter().zip(targets.iter()) {
            exprs.push(if is_default(e) {
                None
            } else {
                Some(bind_column(table, *at, e, &Scope::empty(), params)?)
            });
        }
        out.push(exprs);
    }
    Ok(Rows::Values(out))
}

/// Binds a value for a column; a type error names the column.
pub(super) fn bind_column(
    table: &braid_catalog::Table,
    at: usize,
    e: &ast::Expr,
    scope: &Scope,
    params: &mut ParamTypes,
) -> SqlResult<Bound> {
    let c = &table.columns[at];
    if commit_time::is_pending(e) {
        return commit_time::pending(table, at);
    }
    untyped::decide_domain(e, c, params);
    braid_scalar::bind_to(e, &c.ty, scope, params)
        .map_err(|err| crate::ddl::named_column(err, &c.name, "expression"))
}

/// The columns that a row that is there gets: those that are listed. Without a list it is the whole
/// row, as in CockroachDB: what VALUES is too short for gets its default.
fn written_by_key(target: &Target, insert: &ast::Insert, targets: &[usize]) -> Vec<usize> {
    let columns = &target.table.columns;
    let by_default = |at: &usize| columns[*at].identity != Some(Identity::Always);
    let mut written = targets.to_vec();
    if insert.columns.is_empty() {
        let rest = target.in_order().0.into_iter().filter(by_default);
        written.extend(rest.filter(|at| !targets.contains(at)));
    }
    written
}

/// Spanner's INSERT OR UPDATE and INSERT OR IGNORE, CockroachDB's UPSERT: a row with the same
/// primary key gets the values that are given, or stays. `returned`: what has only a key, too, is
/// returned.
fn by_key(
    target: &Target,
    or: &ast::SqliteOnConflict,
    targets: &[usize],
    returned: bool,
) -> SqlResult<Option<ast::OnConflict>> {
    let update = match or {
        ast::SqliteOnConflict::Ignore => false,
        // What the parser makes of INSERT OR UPDATE.
        ast::SqliteOnConflict::Replace => true,
        other => return Err(SqlError::unsupported(format!("INSERT {other}"))),
    };
    let table = &target.table;
    if table.has_row_id() {
        return Ok(None);
    }
    if target.is_view() {
        return Err(SqlError::unsupported("INSERT OR UPDATE of a view")
            .with_hint("Use INSERT .. ON CONFLICT .. DO UPDATE."));
    }
    let quoted = |name: &str| ast::Ident::with_quote('"', name);
    let key = table.key_columns();
    let set = |at: &&usize| {
        let c = &table.columns[**at];
        update && !key.contains(&c.id) && c.generated.is_none()
    };
    let assignment = |at: &usize| {
        let name = quoted(&table.columns[*at].name);
        ast::Assignment {
            target: AssignmentTarget::ColumnName(vec![name.clone()].into()),
            value: ast::Expr::CompoundIdentifier(vec![quoted("excluded"), name]),
        }
    };
    let mut assignments: Vec<ast::Assignment> =
        targets.iter().filter(set).map(assignment).collect();
    if update && returned && assignments.is_empty() {
        let settable = |at: &&usize| table.columns[**at].generated.is_none();
        assignments.extend(targets.iter().find(settable).map(assignment));
    }
    let action = match assignments.is_empty() {
        true => ast::OnConflictAction::DoNothing,
        false => ast::OnConflictAction::DoUpdate(ast::DoUpdate { assignments, selection: None }),
    };
    let names = key.iter().filter_map(|id| table.column(*id)).map(|c| quoted(&c.name)).collect();
    let conflict_target = Some(ast::ConflictTarget::Columns(names));
    Ok(Some(ast::OnConflict { conflict_target, action }))
}

impl Conflict {
    /// Whether queries tell what rows become.
    fn asks(&self) -> bool {
        matches!(self.update, Some(ConflictUpdate::ByQuery(_)))
    }
}

fn conflict(
    ctx: &Context,
    info: &TableInfo,
    target: &Target,
    (c, inference): (&ast::OnConflict, Option<&Inference>),
    params: &mut ParamTypes,
) -> SqlResult<Conflict> {
    let arbiters = arbiters::of(info, target, (c, inference), params)?;
    let update = match &c.action {
        ast::OnConflictAction::DoNothing => None,
        ast::OnConflictAction::DoUpdate(u) => {
            let mut tried = params.clone();
            match own_update(target, u, &mut tried) {
                Err(e) if braid_scalar::needs_general_query(&e) => {
                    let query = UpdateByQuery::plan(ctx, target, u, params)?;
                    Some(ConflictUpdate::ByQuery(Box::new(query)))
                }
                own => {
                    *params = tried;
                    Some(own?)
                }
            }
        }
    };
    Ok(Conflict { arbiters, update })
}

fn own_update(
    target: &Target,
    u: &ast::DoUpdate,
    params: &mut ParamTypes,
) -> SqlResult<ConflictUpdate> {
    let scope = target.scope_with_excluded();
    let mut sets = bind_sets(target, &u.assignments, &scope, params)?;
    for (_, e) in &mut sets {
        *e = e.take().map(|e| target.settle_excluded(e)).transpose()?;
    }
    let filter = match &u.selection {
        Some(e) => {
            let bound = braid_scalar::bind_bool(e, "WHERE", &scope, params)?;
            Some(target.settle_excluded(bound)?)
        }
        None => None,
    };
    Ok(ConflictUpdate::Own { sets, filter })
}

/// Binds SET clauses over a scope; `None` is DEFAULT.
pub(super) fn bind_sets(
    target: &Target,
    assignments: &[ast::Assignment],
    scope: &Scope,
    params: &mut ParamTypes,
) -> SqlResult<Vec<(usize, Option<Bound>)>> {
    let mut out = Vec::new();
    let table = &target.table;
    for (at, e) in set_list(target, assignments, params)? {
        let e = &*e;
        let bound = if is_default(e) {
            None
        } else {
            check_settable(table, at)?;
            Some(bind_column(table, at, e, scope, params)?)
        };
        out.push((at, bound));
    }
    Ok(out)
}
