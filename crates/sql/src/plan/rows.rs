//! The rows of one table that an access path finds.

use std::sync::Arc;

use braid_catalog::kv_error;
use braid_kv::KeySpan;
use braid_types::{Datum, SqlResult};
use bytes::Bytes;

use super::compound::MadeRows;
use crate::explain::PlanLine;
use crate::session::Context;
use braid_planner::access::Access;
use braid_rows::Row;
use braid_rows::scan::{Lookahead, get_part_of_row, get_row_as, rows_ahead, stored_rows};
use braid_rows::{IndexScan, Liveness, TableLayout, TableScan};

/// Rows with their keys, in key order of the access.
pub(crate) enum RowSource {
    /// Single rows.
    Points(PointReads),
    /// Spans of the table.
    Table(TableScan),
    /// Spans of an index.
    Index(IndexScan),
    /// Wider spans than the condition, which would have made too many.
    Filtered(Box<RowSource>, Box<Excess>),
    /// Rows of a query, which were made before.
    Made(MadeRows),
}

/// Rows by their keys.
pub(crate) struct PointReads {
    keys: std::vec::IntoIter<Vec<u8>>,
    layout: Arc<TableLayout>,
    ahead: Lookahead,
    /// Columns that anybody looks at, and their name to the store; `None`: all of them.
    wanted: Option<(Vec<bool>, Bytes)>,
}

impl PointReads {
    fn new(
        ctx: &Context,
        keys: Vec<Vec<u8>>,
        layout: &Arc<TableLayout>,
        wanted: Option<Vec<bool>>,
    ) -> PointReads {
        let ahead = Lookahead::new(usize::MAX);
        let wanted = wanted.filter(|_| ctx.txn.is_validated(ctx.reading)).map(|wanted| {
            let part = layout.part(&wanted);
            (wanted, part)
        });
        PointReads { keys: keys.into_iter(), layout: layout.clone(), ahead, wanted }
    }

    fn expecting(mut self, rows: usize) -> PointReads {
        self.ahead = Lookahead::new(rows);
        self
    }

    fn next_row(&mut self, ctx: &Context) -> SqlResult<Option<(Bytes, Row)>> {
        loop {
            let waiting = self.keys.as_slice();
            if waiting.is_empty() {
                return Ok(None);
            }
            let ask = self.ahead.next(waiting.len(), ctx.txn.batch_max());
            if ask > 1 {
                let keys = waiting[..ask].iter().cloned().map(Bytes::from);
                ctx.txn.get_ahead(keys, ctx.reading).map_err(kv_error)?;
            }
            let Some(key) = self.keys.next() else { return Ok(None) };
            let found = match &self.wanted {
                None => get_row_as(&ctx.txn, &self.layout, key, ctx.reading)?,
                Some((wanted, part)) => {
                    let part = (wanted.as_slice(), part);
                    get_part_of_row(&ctx.txn, &self.layout, key, ctx.reading, part)?
                }
            };
            if let Some(found) = found {
                return Ok(Some(found));
            }
        }
    }
}

/// The one row whose key an access path gives ([`Access::is_key`]); `wanted` says by ordinal which
/// columns to decode.
pub(crate) fn row_by_key(
    ctx: &Context,
    layout: &TableLayout,
    access: &Access,
    wanted: Option<&[bool]>,
) -> SqlResult<Option<Row>> {
    layout.used_by(&ctx.txn, ctx.reading)?;
    let Some(key) = access.key(layout, &[], &ctx.eval)? else { return Ok(None) };
    let part = wanted.filter(|_| ctx.txn.is_validated(ctx.reading)).map(|w| layout.part(w));
    let found = match &part {
        Some(part) => ctx.txn.get_part(&key, ctx.reading, part),
        None => ctx.txn.get_as(&key, ctx.reading),
    };
    match found.map_err(kv_error)? {
        Some(value) => layout.decode(&key, &value, wanted),
        None => Ok(None),
    }
}

/// What rows of wider spans must still pass.
pub(crate) struct Excess {
    access: Access,
    layout: Arc<TableLayout>,
    lists: Vec<(usize, Vec<Datum>)>,
    outer: Row,
}

impl RowSource {
    /// Opens an access path. `wanted` says by ordinal which columns to decode.
    pub fn open(
        ctx: &Context,
        layout: &Arc<TableLayout>,
        access: &Access,
        wanted: Option<Vec<bool>>,
        reverse: bool,
    ) -> SqlResult<RowSource> {
        RowSource::lookup(ctx, layout, access, wanted, reverse, &[])
    }

    /// As [`RowSource::open`], for one row of the tables before it in a join.
    pub fn lookup(
        ctx: &Context,
        layout: &Arc<TableLayout>,
        access: &Access,
        wanted: Option<Vec<bool>>,
        reverse: bool,
        outer: &[Datum],
    ) -> SqlResult<RowSource> {
        let eval = &ctx.eval;
        let lists = access.excess(layout, outer, eval)?;
        if access.is_point(layout) && lists.is_empty() {
            layout.used_by(&ctx.txn, ctx.reading)?;
            let mut keys = access.points(layout, outer, eval)?;
            if reverse {
                keys.reverse();
            }
            return Ok(RowSource::Points(PointReads::new(ctx, keys, layout, wanted)));
        }
        let spans = access.spans(layout, outer, eval)?;
        let txn = ctx.txn.clone();
        // The filter looks at key columns, which may not be wanted otherwise.
        let wanted = if lists.is_empty() { wanted } else { None };
        let source = match access.index {
            None => {
                let scan = TableScan::new(txn, layout.clone(), spans, wanted, reverse);
                RowSource::Table(scan.reading(ctx.reading))
            }
            Some(i) => {
                let scan = IndexScan::new(txn, layout.clone(), i, spans, reverse);
                RowSource::Index(scan.reading(ctx.reading).wanting(wanted))
            }
        };
        if lists.is_empty() {
            return Ok(source);
        }
        let (access, outer) = (access.clone(), outer.to_vec());
        let excess = Excess { access, layout: layout.clone(), lists, outer };
        Ok(RowSource::Filtered(Box::new(source), Box::new(excess)))
    }

    /// Makes rows of entries where these tell all that is wanted; for who does not lock them.
    pub fn covering(self, liveness: Liveness) -> RowSource {
        match self {
            RowSource::Index(scan) => RowSource::Index(scan.covering(liveness)),
            other => other,
        }
    }

    /// Says how many rows will be wanted, as far as that is known.
    pub fn expecting(self, rows: usize) -> RowSource {
        match self {
            RowSource::Table(scan) => RowSource::Table(scan.expecting(rows)),
            RowSource::Index(scan) => RowSource::Index(scan.expecting(rows)),
            RowSource::Points(reads) => RowSource::Points(reads.expecting(rows)),
            other => other,
        }
    }

    /// The next row.
    pub fn next_row(&mut self, ctx: &Context) -> SqlResult<Option<(Bytes, Row)>> {
        match self {
            RowSource::Table(s) => s.next_row(),
            RowSource::Index(s) => s.next_row(),
            RowSource::Filtered(source, e) => {
                while let Some((key, row)) = source.next_row(ctx)? {
                    ctx.check_cancel()?;
                    if e.access.admits(&e.lists, &e.layout, &row, &e.outer, &ctx.eval)? {
                        return Ok(Some((key, row)));
                    }
                }
                Ok(None)
            }
            RowSource::Points(reads) => reads.next_row(ctx),
            RowSource::Made(rows) => Ok(rows.next_row().map(|row| (Bytes::new(), row))),
        }
    }
}

/// Keys or spans that are asked for ahead, for each row that a batch may have.
const ASKED_PER_ROW: usize = 8;

/// Asks ahead what [`RowSource::lookup`] is going to ask for each of these rows: of those that
/// entries tell, only where these may be dead. What fails here fails again when it is that row's
/// turn.
pub(super) fn ask_ahead<'a>(
    ctx: &Context,
    layout: &Arc<TableLayout>,
    access: &Access,
    outers: impl Iterator<Item = &'a Row>,
    covered: Option<&Liveness>,
) -> SqlResult<()> {
    let (eval, mode) = (&ctx.eval, ctx.reading);
    let most = ctx.txn.batch_max().saturating_mul(ASKED_PER_ROW);
    let exact = |outer: &&Row| access.excess(layout, outer, eval).is_ok_and(|e| e.is_empty());
    let outers = outers.filter(exact);
    if access.is_point(layout) {
        let keys = outers.filter_map(|outer| access.points(layout, outer, eval).ok()).flatten();
        return ctx.txn.get_ahead(keys.take(most).map(Bytes::from), mode).map_err(kv_error);
    }
    let spans = outers.filter_map(|outer| access.spans(layout, outer, eval).ok()).flatten();
    let spans: Vec<KeySpan> = spans.take(most).collect();
    match access.index {
        None => {
            ctx.txn.scan_ahead(&spans, &layout.scan_options(mode, false)).map_err(kv_error)?;
            Ok(())
        }
        Some(n) => {
            let index = &layout.indexes[n];
            let options = index.scan_options(mode, false);
            let entries = ctx.txn.scan_ahead(&spans, &options).map_err(kv_error)?;
            if let Some(liveness) = covered
                && liveness.ask(&ctx.txn, layout, mode)?.is_some()
            {
                return Ok(());
            }
            let entries = entries.iter().flat_map(|rows| stored_rows(rows));
            rows_ahead(&ctx.txn, layout, index, entries, mode)
        }
    }
}

/// All rows of an access path that pass what the spans do not express.
pub fn collect_rows(
    ctx: &Context,
    layout: &Arc<TableLayout>,
    access: &Access,
) -> SqlResult<Vec<(Bytes, Row)>> {
    let mut source = RowSource::open(ctx, layout, access, None, false)?;
    let mut out = Vec::new();
    while let Some((key, row)) = passing_row(ctx, access, &mut source)? {
        ctx.keep_rows("rows to be written", [&row])?;
        out.push((key, row));
    }
    Ok(out)
}

/// The next row of a source that passes what its access path does not express.
pub(crate) fn passing_row(
    ctx: &Context,
    access: &Access,
    source: &mut RowSource,
) -> SqlResult<Option<(Bytes, Row)>> {
    'rows: while let Some((key, row)) = source.next_row(ctx)? {
        ctx.check_cancel()?;
        for part in &access.rest {
            if !part.eval_bool(&row, &ctx.eval)? {
                continue 'rows;
            }
        }
        return Ok(Some((key, row)));
    }
    Ok(None)
}

/// How an access reads, for EXPLAIN. `names` are those of the columns that it computes with.
pub fn describe(
    layout: &TableLayout,
    access: &Access,
    indent: &str,
    names: &dyn Fn(usize) -> String,
) -> Vec<PlanLine> {
    let table = &layout.table.name;
    let kind = if access.is_full() { "Seq Scan" } else { "Index Scan" };
    let head = match access.index {
        None if access.is_point(layout) => format!("point read on {table}"),
        None if access.is_full() => format!("full scan of {table}"),
        None => format!("span read on {table}"),
        Some(i) => format!("index lookup on {table} using {}", layout.indexes[i].index.name),
    };
    let mut first = PlanLine::operator(format!("{indent}{head}"), kind, Some(table));
    if let (Some(operator), Some(at)) = (&mut first.operator, access.index) {
        operator.index = Some(layout.indexes[at].index.name.clone());
    }
    let mut lines = vec![first];
    if !access.is_full() {
        lines.push(format!("{indent}  key: {}", access.describe(layout, names)).into());
    }
    if !access.rest.is_empty() {
        let parts: Vec<_> = access.rest.iter().map(|part| part.to_sql(names)).collect();
        lines.push(format!("{indent}  filter: {}", parts.join(" AND ")).into());
    }
    lines
}
