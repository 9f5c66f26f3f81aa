//! UPDATE.
//!
//! Without FROM and subqueries: rows by our own access path. With them: a SELECT of the row's key
//! and the new values runs as a general query, and its rows say what to write.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use braid_catalog::kv_error;
use braid_kv::ReadMode;
use braid_types::{SqlError, SqlResult, quote_ident};
use bytes::Bytes;
use sqlparser::ast::{self, UpdateTableFromKind};

use super::Written;
use super::assigned::row_stars;
use super::family::fate::Fate;
use super::in_parts::{stand_alone_updated, write_in_parts};
use super::insert::bind_sets;
use super::joined_returning::{JoinedReturning, bind_joined};
use super::source::Source;
use super::target::{
    Returning, Sets, Target, Verb, ViewChecks, bind_returning, returned, with_extras,
};
use super::writer::{TableInfo, Writer};
use crate::explain::{Explained, writing};
use crate::general_query::ColumnInfo;
use crate::plan::choice;
use crate::plan::rows::collect_rows;
use crate::session::Context;
use braid_planner::access::Access;
use braid_rows::Row;
use braid_rows::scan::get_row;
use braid_scalar::{Bound, ParamTypes};

/// A planned UPDATE.
pub struct UpdatePlan {
    info: Arc<TableInfo>,
    how: How,
    returning: Option<Returning>,
    /// How many values behind the new ones are for RETURNING.
    extras: usize,
    checks: Option<ViewChecks>,
}

/// Columns and what they are set to; `None`: their default.
type OwnSets = [(usize, Option<Bound>)];

enum How {
    Own {
        access: Box<Access>,
        sets: Vec<(usize, Option<Bound>)>,
    },
    /// The source yields the key and then a value for each of the sets that is given one.
    General {
        source: Source,
        sets: Sets,
    },
}

impl UpdatePlan {
    /// The table that it writes to.
    pub(crate) fn table(&self) -> u32 {
        self.info.layout.table.id
    }

    /// Plans an UPDATE.
    pub fn new(
        ctx: &Context,
        update: &ast::Update,
        params: &mut ParamTypes,
    ) -> SqlResult<UpdatePlan> {
        if !update.table.joins.is_empty() || !update.order_by.is_empty() || update.limit.is_some() {
            return Err(SqlError::unsupported("UPDATE with JOIN, ORDER BY or LIMIT")
                .with_hint("Use UPDATE .. FROM."));
        }
        let target = Target::factor(ctx, &update.table.relation, Verb::Update)?;
        let at_cursor;
        let update = match target.under_cursor(update.selection.as_ref())? {
            None => update,
            Some(selection) => {
                check_keys_stay(&target, &update.assignments)?;
                at_cursor = ast::Update { selection: Some(selection), ..update.clone() };
                &at_cursor
            }
        };
        let info = Arc::new(TableInfo::new(ctx, &target.table)?);
        let own = if update.from.is_none() {
            let mut tried = params.clone();
            match bind_own(ctx, &target, &info, update, &mut tried) {
                Ok(how) => {
                    *params = tried;
                    Some(how)
                }
                Err(e) if braid_scalar::needs_general_query(&e) => None,
                Err(e) => return Err(e),
            }
        } else {
            None
        };
        let items = update.returning.as_deref();
        let JoinedReturning { list, extras } = match &update.from {
            Some(UpdateTableFromKind::AfterSet(from) | UpdateTableFromKind::BeforeSet(from)) => {
                let first = target.in_from(ctx, update.table.to_string());
                bind_joined(ctx, items, &target, (&first, from), params)?
            }
            None => JoinedReturning {
                list: bind_returning(ctx, items, &target, params)?,
                ..JoinedReturning::default()
            },
        };
        let how = match own {
            Some(how) => how,
            None => bind_general(ctx, &target, update, &extras, params)?,
        };
        let checks = target.view_checks()?;
        Ok(UpdatePlan { info, how, returning: list, extras: extras.len(), checks })
    }

    /// RETURNING columns.
    pub fn columns(&self) -> Option<Vec<ColumnInfo>> {
        self.returning.as_ref().map(|r| r.columns.clone())
    }

    /// Runs it.
    pub fn run(&self, ctx: &Context) -> SqlResult<Written> {
        let mut w = Writer::new(ctx);
        w.use_info(&self.info)?;
        if let How::Own { access, sets } = &self.how
            && ctx.as_one().is_none()
            && !self.returning.as_ref().is_some_and(Returning::is_by_query)
            && stand_alone_updated(&self.info, sets.iter().map(|(at, _)| *at))
        {
            let write = |w: &mut Writer, rows| {
                let rows = w.update(&self.info, self.own_changes(ctx, rows, sets)?)?;
                self.check(ctx, &rows)?;
                Ok(rows)
            };
            let returning = self.returning.as_ref();
            return write_in_parts(ctx, (&self.info, access), w, returning, write);
        }
        let since = self.returning.as_ref().and_then(|r| r.began(ctx));
        let mut extras = HashMap::new();
        let mut changes = self.changes(ctx, &mut extras)?;
        if let Some(one) = ctx.as_one() {
            changes = one.updates(ctx, &self.info, changes)?;
        }
        let count = changes.len() as u64;
        let keys: Vec<Bytes> = match extras.is_empty() {
            true => Vec::new(),
            false => changes.iter().map(|(key, ..)| key.clone()).collect(),
        };
        let mut rows = w.update(&self.info, changes)?;
        self.check(ctx, &rows)?;
        with_extras(&mut rows, &keys, &extras)?;
        w.finish()?;
        let returning = returned(ctx, self.returning.as_ref(), &rows, since)?;
        Ok(Written { count, returning, work: w.work })
    }

    /// What views say of new rows.
    fn check(&self, ctx: &Context, rows: &[Row]) -> SqlResult<()> {
        let Some(checks) = &self.checks else { return Ok(()) };
        rows.iter().try_for_each(|row| checks.check(ctx, self.info.table(), row))
    }

    /// Rows with what they become.
    fn own_changes(
        &self,
        ctx: &Context,
        rows: Vec<(Bytes, Row)>,
        sets: &OwnSets,
    ) -> SqlResult<Vec<(Bytes, Row, Row)>> {
        let change = |(key, old): (Bytes, Row)| {
            ctx.check_cancel()?;
            let mut new = old.clone();
            for (at, e) in sets {
                new[*at] = match e {
                    Some(e) => e.eval(&old, &ctx.eval)?,
                    None => self.info.filler.default(ctx, *at)?,
                };
            }
            Ok((key, old, new))
        };
        rows.into_iter().map(change).collect()
    }

    /// What is to be written; `extras` gets what RETURNING needs besides.
    fn changes(
        &self,
        ctx: &Context,
        extras: &mut HashMap<Bytes, Row>,
    ) -> SqlResult<Vec<(Bytes, Row, Row)>> {
        let _past = ctx.look_back()?;
        let table = self.info.table();
        match &self.how {
            How::Own { access, sets } => {
                let rows = collect_rows(ctx, &self.info.layout, access)?;
                self.own_changes(ctx, rows, sets)
            }
            How::General { source, sets } => {
                let mut seen = HashSet::new();
                let mut out = Vec::new();
                let keys = table.primary.columns.len();
                let mut named = Vec::new();
                for values in source.rows(ctx)? {
                    let key = Bytes::from(self.info.layout.rows.prefix(&values[..keys])?);
                    match seen.insert(key.clone()) {
                        true => named.push((key, values)),
                        false => ctx.passed_by()?,
                    }
                }
                let most = ctx.txn.batch_max();
                for n in 0..named.len() {
                    if n.is_multiple_of(most) {
                        let part = named[n..].iter().take(most).map(|(key, _)| key.clone());
                        ctx.txn.get_ahead(part, ReadMode::Recorded).map_err(kv_error)?;
                    }
                    let (key, values) = std::mem::take(&mut named[n]);
                    let Some((key, old)) = get_row(&ctx.txn, &self.info.layout, key)? else {
                        continue;
                    };
                    let mut new = old.clone();
                    let (given, more) = values[keys..].split_at(values.len() - keys - self.extras);
                    if !more.is_empty() {
                        extras.insert(key.clone(), more.to_vec());
                    }
                    sets.apply(ctx, &self.info, given, &mut new)?;
                    out.push((key, old, new));
                }
                Ok(out)
            }
        }
    }

    /// The tables whose rows move along when the key changes.
    fn moving(&self, ctx: &Context) -> SqlResult<Option<String>> {
        let sets: Vec<usize> = match &self.how {
            How::Own { sets, .. } => sets.iter().map(|(at, _)| *at).collect(),
            How::General { sets, .. } => sets.columns.iter().map(|(at, _)| *at).collect(),
        };
        let key = self.info.layout.rows.columns();
        if !key.iter().any(|k| sets.contains(&k.ordinal)) {
            return Ok(None);
        }
        let fate = Fate::of_moved(&ctx.catalog, self.info.table())?;
        let names: Vec<&str> = fate.dying[1..].iter().map(|t| t.name.as_str()).collect();
        Ok((!names.is_empty()).then(|| format!("  families move: {}", names.join(", "))))
    }

    /// EXPLAIN.
    pub fn explain(&self, ctx: &Context, analyze: bool) -> SqlResult<Explained> {
        let mut lines: Vec<_> = self.moving(ctx)?.into_iter().map(Into::into).collect();
        lines.extend(match &self.how {
            How::Own { access, .. } => choice::described(ctx, &self.info.layout, access, "  "),
            How::General { source, .. } => source.explain(ctx)?,
        });
        let run = analyze.then_some(|| self.run(ctx));
        writing(ctx, "Update", &self.info.table().name, lines, run)
    }
}

/// A cursor knows its row by its key.
fn check_keys_stay(target: &Target, assignments: &[ast::Assignment]) -> SqlResult<()> {
    let names = |target: &ast::AssignmentTarget| match target {
        ast::AssignmentTarget::ColumnName(name) => vec![name.clone()],
        ast::AssignmentTarget::Tuple(names) => names.clone(),
    };
    let key: Vec<u32> = target.table.primary.columns.iter().map(|key| key.column).collect();
    for name in assignments.iter().flat_map(|a| names(&a.target)) {
        let column = &target.table.columns[target.ordinal_of(&name)?];
        if key.contains(&column.id) {
            let text = "UPDATE of a column of the primary key WHERE CURRENT OF";
            return Err(SqlError::unsupported(text).with_hint("Name the row by its key."));
        }
    }
    Ok(())
}

fn bind_own(
    ctx: &Context,
    target: &Target,
    info: &TableInfo,
    update: &ast::Update,
    params: &mut ParamTypes,
) -> SqlResult<How> {
    let scope = target.scope();
    let filter = target.filter(update.selection.as_ref(), params)?;
    let mut sets = bind_sets(target, &update.assignments, &scope, params)?;
    for (_, e) in &mut sets {
        *e = e.take().map(|e| target.settle(e)).transpose()?;
    }
    let access = choice::for_writing(ctx, &info.layout, filter.as_ref());
    Ok(How::Own { access: Box::new(access), sets })
}

/// `SELECT key, value.. FROM target, others WHERE ..`.
fn bind_general(
    ctx: &Context,
    target: &Target,
    update: &ast::Update,
    extras: &[String],
    params: &mut ParamTypes,
) -> SqlResult<How> {
    let table = &target.table;
    let mut items = target.key_items();
    let mut from = vec![target.in_from(ctx, update.table.to_string())];
    if let Some(UpdateTableFromKind::AfterSet(list) | UpdateTableFromKind::BeforeSet(list)) =
        &update.from
    {
        from.extend(list.iter().map(ToString::to_string));
    }
    let columns_of = |of: &[String]| {
        let star = of.iter().map(|part| quote_ident(part)).collect::<Vec<_>>().join(".");
        let all = key_query(ctx, &[format!("{star}.*")], &from, None, "", &mut params.clone())?;
        Ok(all.columns().iter().map(|c| c.name.clone()).collect())
    };
    let assignments = row_stars::of_others(target, &update.assignments, columns_of)?;
    let mut sets = Sets::new(target, &assignments, params)?;
    items.append(&mut sets.items);
    items.extend_from_slice(extras);
    let source = key_query(ctx, &items, &from, update.selection.as_ref(), "", params)?;
    let plan = |items: &[String]| {
        let selection = update.selection.as_ref();
        Ok(key_query(ctx, items, &from, selection, "", params)?.columns().to_vec())
    };
    sets.typed(table, &source.columns()[table.primary.columns.len()..], plan)?;
    Ok(How::General { source, sets })
}

/// Plans `SELECT items FROM from WHERE selection`, and what comes behind that.
pub(super) fn key_query(
    ctx: &Context,
    items: &[String],
    from: &[String],
    selection: Option<&ast::Expr>,
    tail: &str,
    params: &mut ParamTypes,
) -> SqlResult<Source> {
    let mut text = format!("SELECT {} FROM {}", items.join(", "), from.join(", "));
    if let Some(e) = selection {
        text.push_str(&format!(" WHERE {e}"));
    }
    text.push_str(tail);
    Source::plan(ctx, &*braid_parser::parse_query(&text)?, params)
}
