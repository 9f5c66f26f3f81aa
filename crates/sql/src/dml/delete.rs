//! DELETE: families by range tombstones, whatever names their rows; single rows one by one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use braid_catalog::kv_error;
use braid_kv::{ReadMode, SavepointId};
use braid_types::{Datum, SqlError, SqlResult};
use bytes::Bytes;
use sqlparser::ast;

use super::Written;
use super::family::span_delete::{self, Deleted};
use super::in_parts::{stand_alone_deleted, write_in_parts};
use super::joined_returning::{JoinedReturning, bind_joined};
use super::source::Source;
use super::target::{Returning, Target, Verb, bind_returning, returned, with_extras};
use super::update::key_query;
use super::writer::{TableInfo, Writer};
use crate::explain::{Explained, PlanLine, writing};
use crate::general_query::ColumnInfo;
use crate::plan::choice;
use crate::plan::rows::collect_rows;
use crate::session::Context;
use braid_planner::access::Access;
use braid_rows::Row;
use braid_rows::TableLayout;
use braid_rows::scan::get_row;
use braid_scalar::{Bound, Node, ParamTypes};

/// A planned DELETE.
pub struct DeletePlan {
    info: Arc<TableInfo>,
    how: How,
    returning: Option<Returning>,
    /// How many values behind the key are for RETURNING.
    extras: usize,
}

enum How {
    /// What lies in spans of the key goes.
    Spans(Box<Access>),
    /// Rows are found, and go one by one or with their families.
    Found { access: Box<Access>, reason: String },
    /// Rows named by a query that yields keys.
    General(Source),
}

impl DeletePlan {
    /// The table that it writes to.
    pub(crate) fn table(&self) -> u32 {
        self.info.layout.table.id
    }

    /// Plans a DELETE.
    pub fn new(
        ctx: &Context,
        delete: &ast::Delete,
        params: &mut ParamTypes,
    ) -> SqlResult<DeletePlan> {
        let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) =
            &delete.from;
        let [one] = from.as_slice() else {
            return Err(SqlError::syntax("DELETE needs one table"));
        };
        if !one.joins.is_empty() {
            return Err(SqlError::unsupported("DELETE with JOIN").with_hint("Use DELETE .. USING."));
        }
        let target = Target::factor(ctx, &one.relation, Verb::Delete)?;
        let at_cursor;
        let delete = match target.under_cursor(delete.selection.as_ref())? {
            None => delete,
            Some(selection) => {
                at_cursor = ast::Delete { selection: Some(selection), ..delete.clone() };
                &at_cursor
            }
        };
        let info = Arc::new(TableInfo::new(ctx, &target.table)?);
        let items = delete.returning.as_deref();
        let JoinedReturning { list, extras } = match &delete.using {
            Some(using) => {
                let first = target.in_from(ctx, one.to_string());
                bind_joined(ctx, items, &target, (&first, using), params)?
            }
            None => JoinedReturning {
                list: bind_returning(ctx, items, &target, params)?,
                ..JoinedReturning::default()
            },
        };
        let how = match own_filter(delete, &target, params)? {
            Some(filter) => {
                let filter = filter.and_then(|filter| narrowing(&filter, &info.layout));
                own_access(ctx, &info, filter.as_ref())?
            }
            None => How::General(named_rows(ctx, delete, one, &target, &extras, params)?),
        };
        Ok(DeletePlan { info, how, returning: list, extras: extras.len() })
    }

    /// RETURNING columns.
    pub fn columns(&self) -> Option<Vec<ColumnInfo>> {
        self.returning.as_ref().map(|r| r.columns.clone())
    }

    /// Runs it.
    pub fn run(&self, ctx: &Context) -> SqlResult<Written> {
        let mut w = Writer::new(ctx);
        w.use_info(&self.info)?;
        let layout = &self.info.layout;
        let since = self.returning.as_ref().and_then(|r| r.began(ctx));
        if ctx.as_one().is_some() {
            return self.run_as_one(ctx, w, since);
        }
        let mut extras = HashMap::new();
        let found: Vec<(Bytes, Row)> = match &self.how {
            // Heads of families by their keys are read: those that are not there count for nothing.
            How::Spans(access) | How::Found { access, .. } if access.is_point(layout) => {
                collect_rows(ctx, layout, access)?
            }
            // Lists of keys may name so many combinations that the spans would hold other rows too.
            How::Spans(access) if access.excess(layout, &[], &ctx.eval)?.is_empty() => {
                let wanted = self.returning.is_some();
                match span_delete::run(ctx, &mut w, &self.info, access, wanted)? {
                    Deleted::Few(rows) => rows,
                    Deleted::Erased(count, rows) => {
                        w.act()?;
                        return self.end(ctx, w, count, &rows, since);
                    }
                    Deleted::Nothing => return self.row_by_row(ctx, w, access, since),
                }
            }
            How::Spans(access) | How::Found { access, .. } => {
                return self.row_by_row(ctx, w, access, since);
            }
            How::General(source) => self.named(ctx, source, &mut extras)?,
        };
        w.delete(&self.info, &found)?;
        let (keys, mut rows): (Vec<Bytes>, Vec<Row>) = found.into_iter().unzip();
        with_extras(&mut rows, &keys, &extras)?;
        self.end(ctx, w, rows.len() as u64, &rows, since)
    }

    /// Deletes the rows that an access finds.
    fn row_by_row(
        &self,
        ctx: &Context,
        mut w: Writer,
        access: &Access,
        since: Option<SavepointId>,
    ) -> SqlResult<Written> {
        if since.is_none() && stand_alone_deleted(ctx, &self.info)? {
            let write = |w: &mut Writer, found: Vec<(Bytes, Row)>| {
                w.delete(&self.info, &found)?;
                Ok(found.into_iter().map(|(_, row)| row).collect())
            };
            return write_in_parts(ctx, (&self.info, access), w, self.returning.as_ref(), write);
        }
        let found = collect_rows(ctx, &self.info.layout, access)?;
        w.delete(&self.info, &found)?;
        let rows: Vec<Row> = found.into_iter().map(|(_, row)| row).collect();
        self.end(ctx, w, rows.len() as u64, &rows, since)
    }

    /// Runs it where nobody asks how many rows that are, and nobody else may write: as fast for
    /// many as for few.
    pub(crate) fn run_alone(&self, ctx: &Context) -> SqlResult<()> {
        if let How::Spans(access) = &self.how
            && access.excess(&self.info.layout, &[], &ctx.eval)?.is_empty()
        {
            let mut w = Writer::new(ctx);
            w.use_info(&self.info)?;
            if span_delete::erase_all(ctx, &mut w, &self.info, access)? {
                w.act()?;
                return w.finish();
            }
        }
        self.run(ctx).map(|_| ())
    }

    /// The rows whose keys a query yields; `extras` gets what RETURNING needs besides.
    fn named(
        &self,
        ctx: &Context,
        source: &Source,
        extras: &mut HashMap<Bytes, Row>,
    ) -> SqlResult<Vec<(Bytes, Row)>> {
        let mut seen = HashSet::new();
        let mut keys = Vec::new();
        for values in source.rows(ctx)? {
            let (values, more) = values.split_at(values.len() - self.extras);
            let key = self.info.layout.rows.prefix(values)?;
            match seen.insert(key.clone()) {
                true => {
                    let key = Bytes::from(key);
                    if !more.is_empty() {
                        extras.insert(key.clone(), more.to_vec());
                    }
                    keys.push(key);
                }
                false => ctx.passed_by()?,
            }
        }
        let mut out = Vec::new();
        for part in keys.chunks(ctx.txn.batch_max()) {
            let ask = part.iter().cloned();
            ctx.txn.get_ahead(ask, ReadMode::Recorded).map_err(kv_error)?;
            for key in part {
                out.extend(get_row(&ctx.txn, &self.info.layout, key.clone())?);
            }
        }
        Ok(out)
    }

    /// Runs it as a part of a statement: its rows are read as they were before the statement.
    fn run_as_one(
        &self,
        ctx: &Context,
        mut w: Writer,
        since: Option<SavepointId>,
    ) -> SqlResult<Written> {
        let past = ctx.look_back()?;
        let mut extras = HashMap::new();
        let mut found = match &self.how {
            How::Spans(access) | How::Found { access, .. } => {
                collect_rows(ctx, &self.info.layout, access)?
            }
            How::General(source) => self.named(ctx, source, &mut extras)?,
        };
        drop(past);
        if let Some(one) = ctx.as_one() {
            let going = one.deletes(ctx, &self.info, &mut found)?;
            w.delete(&self.info, &going)?;
        }
        let (keys, mut rows): (Vec<Bytes>, Vec<Row>) = found.into_iter().unzip();
        with_extras(&mut rows, &keys, &extras)?;
        self.end(ctx, w, rows.len() as u64, &rows, since)
    }

    fn end(
        &self,
        ctx: &Context,
        mut w: Writer,
        count: u64,
        rows: &[Row],
        since: Option<SavepointId>,
    ) -> SqlResult<Written> {
        w.finish()?;
        let returning = returned(ctx, self.returning.as_ref(), rows, since)?;
        Ok(Written { count, returning, work: w.work })
    }

    /// EXPLAIN.
    pub fn explain(&self, ctx: &Context, analyze: bool) -> SqlResult<Explained> {
        let layout = &self.info.layout;
        let fate = self.info.fate(ctx)?;
        let mut lines: Vec<PlanLine> = Vec::new();
        match &self.how {
            How::Spans(access) => {
                lines.extend(spans_explained(ctx, &self.info, access)?);
                let about = fate.explain().into_iter().chain(fate.explain_left());
                lines.extend(about.map(|l| format!("    {l}").into()));
            }
            How::Found { access, reason } => {
                lines.extend(self.found_explained(ctx, reason)?);
                lines.extend(choice::described(ctx, layout, access, "  "));
            }
            How::General(source) => {
                lines.extend(self.found_explained(ctx, "the rows are named by a query")?);
                lines.extend(source.explain(ctx)?);
            }
        }
        let run = analyze.then_some(|| self.run(ctx));
        writing(ctx, "Delete", &self.info.table().name, lines, run)
    }

    /// How rows go that are looked for.
    fn found_explained(&self, ctx: &Context, reason: &str) -> SqlResult<Vec<PlanLine>> {
        let fate = self.info.fate(ctx)?;
        let about = fate.explain().into_iter().map(|l| PlanLine::from(format!("    {l}")));
        if !fate.is_family() {
            let first = PlanLine::from(format!("  row by row: {reason}"));
            return Ok(std::iter::once(first).chain(about).collect());
        }
        let names: Vec<_> = fate.dying.iter().map(|t| t.name.as_str()).collect();
        let mut lines = vec![PlanLine::from(format!("  range delete: {}", names.join(", ")))];
        lines.push(format!("    one tombstone for each row: {reason}").into());
        lines.extend(about);
        lines.extend(fate.explain_left().map(|l| PlanLine::from(format!("    {l}"))));
        Ok(lines)
    }
}

/// The condition, if our own plans can find the rows; `None` if a query must name them.
fn own_filter(
    delete: &ast::Delete,
    target: &Target,
    params: &mut ParamTypes,
) -> SqlResult<Option<Option<Bound>>> {
    if delete.using.is_some() || !delete.order_by.is_empty() || delete.limit.is_some() {
        return Ok(None);
    }
    let mut tried = params.clone();
    match target.filter(delete.selection.as_ref(), &mut tried) {
        Ok(filter) => {
            *params = tried;
            Ok(Some(filter))
        }
        Err(e) if braid_scalar::needs_general_query(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

/// A condition without what holds for every row: who has to write one and means all rows writes
/// `true`, or that a column of the key is not NULL.
fn narrowing(filter: &Bound, layout: &TableLayout) -> Option<Bound> {
    let always = |part: &Bound| match part.node() {
        Node::Const(value) => matches!(value, Datum::Bool(true)),
        Node::IsNull(of, true) => of.as_column().is_some_and(|at| {
            let in_key = layout.rows.columns().iter().any(|key| key.ordinal == at);
            in_key && !layout.table.columns[at].nullable
        }),
        _ => false,
    };
    let parts: Vec<Bound> = filter.conjuncts().into_iter().filter(|part| !always(part)).collect();
    (!parts.is_empty()).then(|| Bound::and(parts))
}

/// By spans where they say exactly what goes, unless single rows do; else by finding rows.
fn own_access(ctx: &Context, info: &TableInfo, filter: Option<&Bound>) -> SqlResult<How> {
    let primary = Access::primary(&info.layout, filter);
    let reason = match span_delete::is_exact(ctx, info, &primary) {
        Ok(()) if info.fate(ctx)?.is_family() || !primary.is_point(&info.layout) => {
            return Ok(How::Spans(Box::new(primary)));
        }
        Ok(()) => "single rows by their keys".into(),
        Err(reason) => reason,
    };
    let access = Box::new(choice::for_writing(ctx, &info.layout, filter));
    Ok(How::Found { access, reason })
}

/// A query for the keys of the rows.
fn named_rows(
    ctx: &Context,
    delete: &ast::Delete,
    one: &ast::TableWithJoins,
    target: &Target,
    extras: &[String],
    params: &mut ParamTypes,
) -> SqlResult<Source> {
    let mut from = vec![target.in_from(ctx, one.to_string())];
    from.extend(delete.using.iter().flatten().map(ToString::to_string));
    let mut tail = String::new();
    if !delete.order_by.is_empty() {
        let by: Vec<String> = delete.order_by.iter().map(ToString::to_string).collect();
        tail.push_str(&format!(" ORDER BY {}", by.join(", ")));
    }
    if let Some(limit) = &delete.limit {
        tail.push_str(&format!(" LIMIT {limit}"));
    }
    let mut items = target.key_items();
    items.extend_from_slice(extras);
    key_query(ctx, &items, &from, delete.selection.as_ref(), &tail, params)
}

/// EXPLAIN lines of spans that go.
fn spans_explained(ctx: &Context, info: &TableInfo, access: &Access) -> SqlResult<Vec<PlanLine>> {
    let fate = info.fate(ctx)?;
    let names: Vec<_> = fate.dying.iter().map(|t| t.name.as_str()).collect();
    let few = if fate.is_family() { "" } else { ", row by row if they are few" };
    let mut lines = vec![format!("  range delete: {}{few}", names.join(", "))];
    let names = |at| info.layout.column_name(at);
    lines.push(format!("    where: {}", access.describe(&info.layout, &names)));
    // Without parameter values the spans are not known yet.
    if let Ok(spans) = access.spans(&info.layout, &[], &ctx.eval) {
        for s in spans.iter().take(10) {
            lines.push(format!("    span: {}", braid_keys::pretty::span(&s.start, &s.end)));
        }
        if spans.len() > 10 {
            lines.push(format!("    and {} more spans", spans.len() - 10));
        }
    }
    Ok(lines.into_iter().map(PlanLine::from).collect())
}
