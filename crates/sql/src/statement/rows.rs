//! Statements over rows: queries, INSERT, UPDATE, DELETE, COPY, IMPORT, EXPORT.

use std::sync::Arc;

use braid_parser::{Copy, DeclareCursor, Kind};
use braid_settings::Feature;
use braid_types::SqlResult;
use sqlparser::ast::Statement as Sql;

use super::entry::{Effect, Entry, Planner, work};
use crate::copy::{self, CopyIn, CopyOut};
use crate::dml::{DeletePlan, InsertPlan, MergePlan, UpdatePlan, WithPlan, with};
use crate::export;
use crate::import;
use crate::session::execute::Ran;
use crate::session::prepare::plan_query;
use crate::session::prepared::{DeclarePlan, Plan};
use crate::session::{Context, Outcome, with_keys};

pub(super) static ENTRIES: &[Entry] = &[
    Entry::plan(
        "SELECT",
        "select a, b from t where a = 1",
        "rows of a query; also VALUES, TABLE; WITH, also over INSERT, UPDATE and DELETE",
        Effect::AsPlanned,
        work!(Sql Sql::Query(q) => |p| {
            if with::has_steps(q) {
                let plan = WithPlan::new(p.ctx, q, p.params)?;
                let columns = plan.columns();
                return Ok((Plan::With(Arc::new(plan)), columns));
            }
            let (plan, columns) = plan_query(p.ctx, q, p.params, p.declared)?;
            Ok((plan, Some(columns)))
        }),
    ),
    Entry::plan(
        "DECLARE CURSOR",
        "declare n cursor with hold for select a from t",
        "a query whose rows are fetched bit by bit; SCROLL, WITH HOLD, BINARY",
        Effect::Reads,
        work!(Kind::DeclareCursor(d) => |p| {
            let text = "DECLARE CURSOR must not contain data-modifying statements in WITH";
            with::refuse(&d.query, text, None)?;
            Ok((Plan::Declare(Arc::new(declare_plan(p, d)?)), None))
        }),
    )
    .of(Feature::Cursor),
    Entry::plan(
        "INSERT",
        "insert into t values (7, 'seven')",
        "new rows; ON CONFLICT, OVERRIDING, RETURNING",
        Effect::Writes,
        work!(Kind::Insert(i, clauses) => |p| {
            let plan = InsertPlan::new(p.ctx, i, clauses, p.params)?;
            let columns = plan.columns();
            Ok((Plan::Insert(Arc::new(plan)), columns))
        }),
    ),
    Entry::plan(
        "UPDATE",
        "update t set b = 'two' where a = 2",
        "changed rows; FROM, WHERE CURRENT OF, RETURNING",
        Effect::Writes,
        work!(Sql Sql::Update(u) => |p| {
            let plan = UpdatePlan::new(p.ctx, u, p.params)?;
            let columns = plan.columns();
            Ok((Plan::Update(Arc::new(plan)), columns))
        }),
    ),
    Entry::plan(
        "DELETE",
        "delete from t where a = 1",
        "fewer rows; whole families and spans of the key as one range delete; USING, WHERE \
         CURRENT OF, RETURNING",
        Effect::Writes,
        work!(Sql Sql::Delete(d) => |p| {
            let plan = DeletePlan::new(p.ctx, d, p.params)?;
            let columns = plan.columns();
            Ok((Plan::Delete(Arc::new(plan)), columns))
        }),
    ),
    Entry::plan(
        "MERGE",
        "merge into t using (select 1 as x) s on t.a = s.x when matched then delete",
        "rows of a source update, delete or become rows of a table",
        Effect::Writes,
        work!(Sql Sql::Merge(m) => |p| {
            Ok((Plan::Merge(Arc::new(MergePlan::new(p.ctx, m, p.params)?)), None))
        }),
    )
    .of(Feature::Merge),
    Entry::utility(
        "COPY TO",
        "copy t to stdout",
        "rows of a table or a query as text, CSV or binary",
        Effect::Reads,
        work!(Kind::Copy(c) if c.to && !copy::writes(c) => |_, ctx| copy_out(ctx, c)),
    )
    .of(Feature::Copy),
    Entry::utility(
        "COPY RETURNING TO",
        "copy (delete from t returning a) to stdout",
        "rows that a statement returns which writes, as text, CSV or binary",
        Effect::Writes,
        work!(Kind::Copy(c) if copy::writes(c) => |_, ctx| copy_out(ctx, c)),
    )
    .of(Feature::Copy),
    Entry::utility(
        "COPY FROM",
        "copy t from stdin",
        "many rows into a table",
        Effect::Writes,
        work!(Kind::Copy(c) if !c.to => |_, ctx| {
            Ok(match c.file {
                Some(_) => Outcome::Done(copy::copy_from_file(ctx, c)?).into(),
                None => Outcome::CopyIn(Box::new(CopyIn::start(ctx, c)?)).into(),
            })
        }),
    )
    .of(Feature::Copy),
    Entry::utility(
        "IMPORT",
        "import into t csv data ('nowhere.csv')",
        "rows of CSV, JSONL, Parquet or Avro files of the node into a table",
        Effect::Writes,
        work!(statement, Kind::Import(i) => |_, ctx| {
            Ok(import::start(ctx, i, &statement.text)?.into())
        }),
    )
    .of(Feature::Import)
    .with_columns(|_, s| match &*s.kind {
        Kind::Import(i) => Ok(Some(import::columns(i))),
        _ => Ok(None),
    }),
    Entry::utility(
        "EXPORT",
        "export into csv 'exports' from table t",
        "rows of a table or a query into CSV or Parquet files of the node",
        Effect::Reads,
        work!(Kind::Export(e) => |_, ctx| Ok(export::export(ctx, e)?.into())),
    )
    .of(Feature::Export)
    .with_columns(|_, s| match &*s.kind {
        Kind::Export(_) => Ok(Some(export::columns())),
        _ => Ok(None),
    }),
];

fn copy_out(ctx: &Context, c: &Copy) -> SqlResult<Ran> {
    let out = CopyOut::start(ctx, c)?;
    Ok(match c.file {
        Some(_) => Outcome::Done(out.write_file(ctx, c)?).into(),
        None => Outcome::CopyOut(Box::new(out)).into(),
    })
}

/// The plan of a cursor, with the keys of its rows behind its columns if they can be had.
fn declare_plan(p: &mut Planner<'_>, d: &DeclareCursor) -> SqlResult<DeclarePlan> {
    let cursor = d.clone();
    if let Some((query, tables)) = with_keys(p.ctx, &d.query) {
        let mut tried = p.params.clone();
        // A query of aggregates has no place for keys.
        if let Ok((rows, mut columns)) = plan_query(p.ctx, &query, &mut tried, p.declared) {
            *p.params = tried;
            let keys: usize = tables.iter().map(|table| table.keys()).sum();
            columns.truncate(columns.len() - keys);
            return Ok(DeclarePlan { cursor, rows, columns, tables });
        }
    }
    let (rows, columns) = plan_query(p.ctx, &d.query, p.params, p.declared)?;
    Ok(DeclarePlan { cursor, rows, columns, tables: Vec::new() })
}
