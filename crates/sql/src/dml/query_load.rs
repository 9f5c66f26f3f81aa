//! The rows of a query into a table: INSERT .. SELECT, CREATE TABLE AS.
//!
//! ```text
//!   query ─ rows ─┬─ the query ends early ─────────► all of them, to be written row by row
//!                 └─ FEW_ROWS or FEW_BYTES passed ─► a bulk load takes them and all that follow
//! ```
//! Nothing of a load is visible before its end, so a query that reads the table it fills never
//! meets its own rows. The row by row path has to read all rows first for that.

use std::sync::Arc;

use braid_catalog::Table;
use braid_rows::{Row, row_memory};
use braid_types::{Datum, SqlResult};

use super::source::Source;
use super::table_load::{FEW_BYTES, FEW_ROWS, TableLoad};
use super::writer::{TableInfo, Writer};
use crate::ddl::tables::apart;
use crate::session::Context;

/// What came of a query's rows.
pub(crate) enum Taken {
    /// They are few, or a load cannot take them: here they are.
    Given(Vec<Row>),
    /// So many were loaded.
    Loaded(u64),
}

/// Begins the load of a table.
type Start = fn(&Context, &Arc<TableInfo>, usize) -> SqlResult<TableLoad>;

/// Reads a query's rows, and loads them if they are many. `whole` makes a row of the table from
/// a row of the query.
///
/// # Errors
/// Of the query and the load; 53200 when rows that cannot be loaded do not fit into memory.
pub(crate) fn take_rows(
    ctx: &Context,
    source: &Source,
    info: &Arc<TableInfo>,
    whole: &mut dyn FnMut(Row) -> SqlResult<Row>,
) -> SqlResult<Taken> {
    take_rows_into(TableLoad::start, ctx, source, info, whole)
}

fn take_rows_into(
    start: Start,
    ctx: &Context,
    source: &Source,
    info: &Arc<TableInfo>,
    whole: &mut dyn FnMut(Row) -> SqlResult<Row>,
) -> SqlResult<Taken> {
    if !TableLoad::is_possible(ctx, info)? {
        return Ok(Taken::Given(source.rows(ctx)?));
    }
    let mut stream = source.stream(ctx)?;
    let mut first = Vec::new();
    let mut bytes = 0;
    while first.len() < FEW_ROWS && bytes < FEW_BYTES {
        let Some(batch) = stream.next_batch()? else { return Ok(Taken::Given(first)) };
        ctx.keep_rows("rows to be written", &batch)?;
        bytes += batch.iter().map(|row| row_memory(row)).sum::<usize>();
        first.extend(batch);
    }
    let apart = apart::set_apart(ctx, info.table())?;
    let (ctx, info) = apart.as_ref().map_or((ctx, info), |(ctx, info)| (ctx, info));
    let mut load = start(ctx, info, ctx.session.load_memory())?;
    let mut count = 0u64;
    let mut batch = Some(first);
    while let Some(rows) = batch {
        ctx.check_cancel()?;
        count += rows.len() as u64;
        let mut rows = rows.into_iter();
        while rows.len() > 0 {
            let part = rows.by_ref().take(ctx.txn.batch_max()).map(|row| Ok(((), whole(row)?)));
            load.add(part.collect::<SqlResult<Vec<_>>>()?).map_err(|((), e)| e)?;
        }
        batch = stream.next_batch()?;
    }
    load.finish()?;
    Ok(Taken::Loaded(count))
}

/// Fills a table that the statement has made or emptied with the rows of a query, whose columns are
/// the table's visible ones in order.
///
/// # Errors
/// As [`take_rows`], and of writing.
pub(crate) fn fill_table(ctx: &Context, table: &Arc<Table>, source: &Source) -> SqlResult<u64> {
    let info = Arc::new(TableInfo::new(ctx, table)?);
    let mut whole = |values: Row| {
        let mut values = values.into_iter();
        let columns = table.columns.iter().enumerate();
        columns
            .map(|(at, c)| match c.hidden {
                true => info.filler.default(ctx, at),
                false => Ok(values.next().unwrap_or(Datum::Null)),
            })
            .collect()
    };
    let start = TableLoad::start_within_change;
    let rows = match take_rows_into(start, ctx, source, &info, &mut whole)? {
        Taken::Loaded(count) => return Ok(count),
        Taken::Given(rows) => rows,
    };
    let count = rows.len() as u64;
    let mut w = Writer::new(ctx);
    let mut rows = rows.into_iter();
    loop {
        let part = rows.by_ref().take(ctx.txn.batch_max()).map(|values| Ok(((), whole(values)?)));
        let part = part.collect::<SqlResult<Vec<((), Row)>>>()?;
        if part.is_empty() {
            break;
        }
        w.insert_together(&info, part).map_err(|(_, e)| e)?;
    }
    w.finish()?;
    Ok(count)
}
