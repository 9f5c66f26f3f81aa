//! ANALYZE: which tables and columns, and what is found out about each.

use std::sync::Arc;

use braid_catalog::{Catalog, Relation, Table};
use braid_env::memory::Account;
use braid_kv::Txn;
use braid_parser::{Analyze, Name};
use braid_scalar::SessionFunctions;
use braid_types::{SqlError, SqlResult, SqlState};

use super::sample::{Sample, Source, draw};
use crate::database::Database;
use crate::session::{Context, Notice};
use braid_planner::estimate::{Scale, summarize};
use braid_planner::record::{ColumnRecord, Record};
use braid_rows::TableLayout;

/// Rows that are drawn for each common value and part of a histogram. So many keep the error of a
/// histogram's parts below a half with 99 % (Chaudhuri, Motwani and Narasayya, 1998).
const ROWS_PER_TARGET: usize = 300;
/// How much is kept of a column if nobody says otherwise.
pub(super) const DEFAULT_TARGET: usize = 100;

/// What one table is analyzed with.
pub(super) struct Work<'a> {
    pub(super) db: &'a Database,
    pub(super) txn: &'a Arc<Txn>,
    pub(super) catalog: &'a Catalog,
    pub(super) memory: &'a Account,
    pub(super) stop: &'a dyn Fn() -> SqlResult<()>,
    pub(super) target: usize,
    pub(super) automatic: bool,
    /// See [`Source::whole_bytes`].
    pub(super) whole_bytes: Option<u64>,
}

/// What was looked at.
pub(super) struct Looked {
    pub(super) sampled: usize,
    pub(super) rows: f64,
}

/// Runs the statement.
pub(crate) fn analyze(ctx: &Context, statement: &Analyze) -> SqlResult<()> {
    let named = |n: &str| ctx.session.setting(n).and_then(|v| v.parse::<u64>().ok());
    let work = Work {
        db: &ctx.db,
        txn: &ctx.txn,
        catalog: &ctx.catalog,
        memory: &ctx.memory,
        stop: &|| ctx.check_cancel(),
        target: named("default_statistics_target").map_or(DEFAULT_TARGET, |n| n as usize),
        automatic: false,
        whole_bytes: named("braid.analyze_whole_bytes"),
    };
    for (table, columns) in chosen(ctx, statement)? {
        ctx.check_cancel()?;
        let name = format!("{}.{}", ctx.schema_name(table.schema), table.name);
        if statement.verbose {
            info(ctx, format!("analyzing \"{name}\""));
        }
        let Looked { sampled, rows } = analyze_table(&work, &table, columns.as_deref())?;
        if statement.verbose {
            let found = format!("{sampled} rows in sample, {rows:.0} estimated total rows");
            info(ctx, format!("\"{}\": {found}", table.name));
        }
    }
    Ok(())
}

/// Analyzes a table, or the columns with these ordinals, and stores what was found.
pub(super) fn analyze_table(
    work: &Work<'_>,
    table: &Arc<Table>,
    columns: Option<&[usize]>,
) -> SqlResult<Looked> {
    let written = work.db.statistics_state().changes.of(table);
    let mark = written.mark();
    let layout = TableLayout::new(work.catalog, table)?;
    let parent = table.interleave.as_ref().and_then(|i| work.catalog.table(i.parent));
    let parent = parent.map(|p| TableLayout::new(work.catalog, p)).transpose()?;
    let targets =
        table.columns.iter().map(|c| c.options.statistics.map_or(work.target, |n| n as usize));
    let sample = draw(&Source {
        txn: work.txn,
        layout: &layout,
        parent: parent.as_ref(),
        target: targets.max().unwrap_or(work.target).max(1) * ROWS_PER_TARGET,
        memory: work.memory,
        stop: work.stop,
        seed: work.db.random_u64(),
        whole_bytes: work.whole_bytes,
    })?;
    let looked = Looked { sampled: sample.rows, rows: sample.total };
    let record = record(work, &layout, parent.as_ref(), sample, columns)?;
    work.db.store_record(table, record, mark)?;
    Ok(looked)
}

fn record(
    work: &Work<'_>,
    layout: &TableLayout,
    parent: Option<&TableLayout>,
    sample: Sample,
    columns: Option<&[usize]>,
) -> SqlResult<Record> {
    let table = &layout.table;
    let before = work.db.record(table);
    let leading = layout.rows.columns().first().map(|c| c.ordinal);
    let row_bytes = sample.columns.iter().map(|values| values.bytes_per_row()).sum();
    let mut records = Vec::new();
    // Of no rows there is nothing to say.
    let columns = if sample.rows == 0 { Some(&[][..]) } else { columns };
    for (at, (values, column)) in sample.columns.into_iter().zip(&table.columns).enumerate() {
        (work.stop)()?;
        if columns.is_some_and(|columns| !columns.contains(&at)) {
            let old = before.as_ref().and_then(|b| b.columns.iter().find(|r| r.id == column.id));
            records.extend(old.cloned());
            continue;
        }
        let target = column.options.statistics.map_or(work.target, |n| n as usize);
        if target == 0 {
            continue;
        }
        let scale = Scale { rows: sample.total, target };
        let distinct = sample.leading.filter(|_| leading == Some(at));
        let summary = summarize(values, &column.ty, scale, distinct);
        records.push(ColumnRecord { id: column.id, ty: column.ty.clone(), summary });
    }
    Ok(Record {
        table: table.id,
        generation: table.generation,
        at_us: work.db.coordinator().wall_clock_us(),
        automatic: work.automatic,
        rows: sample.total,
        row_bytes,
        bytes: sample.bytes,
        family: parent.zip(sample.family).map(|(parent, size)| (parent.table.id, size)),
        columns: records,
    })
}

type Chosen = (Arc<Table>, Option<Vec<usize>>);

/// Tables with the columns that are asked for.
fn chosen(ctx: &Context, statement: &Analyze) -> SqlResult<Vec<Chosen>> {
    if statement.tables.is_empty() {
        let here = |t: &&Arc<Table>| {
            ctx.catalog.schema_by_id(t.schema).is_some_and(|s| s.database == ctx.database)
        };
        return Ok(ctx.catalog.tables().filter(here).map(|t| (t.clone(), None)).collect());
    }
    let mut out = Vec::new();
    for (name, columns) in &statement.tables {
        match ctx.find_relation(name)? {
            Some(Relation::Table(table)) => {
                let columns = ordinals(&table, columns)?;
                out.push((table, columns));
            }
            // What is known of the table is known of its parts.
            Some(Relation::Partition(window)) => {
                let table = ctx.catalog.table(window.id).cloned();
                let columns = ordinals(&window, columns)?;
                out.extend(table.map(|table| (table, columns)));
            }
            Some(_) => warn(ctx, name),
            None if is_system(ctx, name)? => {}
            None => return Err(crate::session::no_relation(name)),
        }
    }
    Ok(out)
}

fn ordinals(table: &Table, columns: &[String]) -> SqlResult<Option<Vec<usize>>> {
    let mut out = Vec::new();
    for name in columns {
        let at = table.columns.iter().position(|c| !c.hidden && c.name == *name);
        let at = at.ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" of relation \"{}\" does not exist", table.name),
            )
        })?;
        if out.contains(&at) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" of relation \"{}\" appears more than once", table.name),
            ));
        }
        out.push(at);
    }
    Ok((!out.is_empty()).then_some(out))
}

/// Whether a name means a table of the system catalog, which is made when it is read: those are the
/// business of general queries.
fn is_system(ctx: &Context, name: &Name) -> SqlResult<bool> {
    let text: Vec<String> = name.iter().map(|part| braid_types::quote_ident(part)).collect();
    let query = braid_parser::parse_query(&format!("SELECT FROM {}", text.join(".")))?;
    Ok(ctx.db.general().plan(&query, &ctx.plan_context(), &[]).is_ok())
}

fn warn(ctx: &Context, name: &Name) {
    let what = "cannot analyze non-tables or special system tables";
    let name = name.last().map_or("", |n| n);
    say(ctx, "WARNING", format!("skipping \"{name}\" --- {what}"));
}

fn info(ctx: &Context, message: String) {
    say(ctx, "INFO", message);
}

fn say(ctx: &Context, severity: &'static str, message: String) {
    let state = SqlState::SUCCESSFUL_COMPLETION;
    ctx.notices.lock().push(Notice { severity, state, message, detail: None, hint: None });
}
