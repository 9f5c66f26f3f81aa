//! Plain reads of one table, in columns: what is selected are columns, or aggregates over them, and
//! the spans say all that is asked of a row. Then no row is ever put together: keys and values
//! become columns, and these what the client is sent.
//!
//! Where rows are filtered, grouped, put together or sorted, each of them stands in the same place
//! for a moment ([`OneByOne`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_kv::ReadMode;
use braid_types::{Datum, SqlResult, SqlType};

use super::aggregate::{Aggregate, State};
use super::joined::passes;
use super::rows::RowSource;
use super::select::{Output, Parts};
use crate::answer::{ColumnBatch, StoredColumns};
use crate::session::Context;
use braid_rows::{Form, IndexScan, Liveness, Row, RowDecoder, TableScan};

/// Rows of the first batch.
const FIRST_ROWS: usize = 256;
/// Rows of a batch at most.
const BATCH_ROWS: usize = 4_096;
/// Bytes of text and the like after which a batch ends.
const BATCH_BYTES: usize = 1 << 20;

/// Rows of a table on their way out.
pub(super) struct ColumnarRows {
    scan: Scan,
    decoder: RowDecoder,
    /// Which columns of the table they are.
    columns: Vec<usize>,
    types: Arc<[SqlType]>,
    /// Rows of the next batch.
    rows: usize,
    /// Rows that are still wanted.
    left: Option<u64>,
}

/// Where they are found.
enum Scan {
    Table(TableScan),
    Index(IndexScan),
}

impl Scan {
    fn expecting(self, rows: usize) -> Scan {
        match self {
            Scan::Table(scan) => Scan::Table(scan.expecting(rows)),
            Scan::Index(scan) => Scan::Index(scan.expecting(rows)),
        }
    }

    fn decoder(&self, out: &[(usize, Form)]) -> RowDecoder {
        match self {
            Scan::Table(scan) => scan.decoder(out, &[]),
            Scan::Index(scan) => scan.decoder(out, &[]),
        }
    }

    /// Reads the next rows, `most` or fewer; `false` at the end.
    fn read(&mut self, decoder: &mut RowDecoder, most: usize) -> SqlResult<bool> {
        match self {
            Scan::Table(scan) => scan.read_columns(decoder, most, |_, _| Ok(None)),
            Scan::Index(scan) => scan.read_columns(decoder, most, |_, _| Ok(None)),
        }
    }
}

/// How a column is decoded: as it is sent.
fn form(ty: &SqlType) -> Form {
    match ty {
        SqlType::Bool => Form::Bool,
        SqlType::Int2 => Form::I16,
        SqlType::Int4 | SqlType::Date => Form::I32,
        SqlType::Int8 | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => Form::I64,
        SqlType::Float4 => Form::F32,
        SqlType::Float8 => Form::F64,
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Name => Form::Bytes,
        _ => Form::Made,
    }
}

impl ColumnarRows {
    /// Opens such a read; `None` if the plan is another one.
    pub(super) fn open(
        ctx: &Context,
        parts: &Parts,
        limit: Option<u64>,
    ) -> SqlResult<Option<ColumnarRows>> {
        let [step] = parts.steps.as_slice() else { return Ok(None) };
        if !parts.sort.is_empty() || !step.access.rest.is_empty() {
            return Ok(None);
        }
        let columns: Option<Vec<usize>> = match &parts.output {
            Output::Rows(out) if !out.is_plain() => None,
            Output::Rows(out) => out.exprs.iter().map(|e| e.as_column()).collect(),
            // Those that arguments are made of.
            Output::Aggregates(aggregates) => {
                let exprs = aggregates.list.iter().flat_map(Aggregate::exprs);
                let columns: BTreeSet<usize> = exprs.flat_map(|e| e.columns()).collect();
                Some(columns.into_iter().collect())
            }
            Output::Groups(_) => None,
        };
        match columns {
            Some(columns) => ColumnarRows::of_first_step(ctx, parts, columns, limit),
            None => Ok(None),
        }
    }

    /// Rows of the table of the first step, whatever else is asked of them.
    fn of_first_step(
        ctx: &Context,
        parts: &Parts,
        columns: Vec<usize>,
        limit: Option<u64>,
    ) -> SqlResult<Option<ColumnarRows>> {
        let step = &parts.steps[0];
        let layout = &step.layout;
        let plain = parts.locking.is_none()
            && ctx.within.measured.is_none()
            && !step.access.is_point(layout)
            && step.after.is_empty()
            && step.semi.is_none()
            && step.value.is_none()
            && step.made.is_none()
            && (step.access.index.is_some() || !layout.has_children || layout.jumps());
        let table = &layout.table.columns;
        if !plain || columns.iter().any(|at| table[*at].expression.is_some()) {
            return Ok(None);
        }
        let wanted = step.wanted.clone();
        let rows = RowSource::lookup(ctx, layout, &step.access, wanted, parts.reverse, &[])?;
        let scan = match rows.covering(Liveness::default()) {
            RowSource::Table(scan) => Scan::Table(scan),
            RowSource::Index(scan) if ctx.reading != ReadMode::Latest && scan.gives_columns() => {
                Scan::Index(scan)
            }
            _ => return Ok(None),
        };
        let expected = limit.and_then(|rows| usize::try_from(rows).ok());
        let scan = match expected {
            Some(rows) => scan.expecting(rows),
            None => scan,
        };
        let out: Vec<(usize, Form)> =
            columns.iter().map(|at| (*at, form(&table[*at].ty))).collect();
        let types = columns.iter().map(|at| table[*at].ty.clone()).collect();
        let decoder = scan.decoder(&out);
        Ok(Some(ColumnarRows { scan, decoder, columns, types, rows: FIRST_ROWS, left: limit }))
    }

    /// Adds all rows to aggregates.
    pub(super) fn aggregate(
        mut self,
        ctx: &Context,
        aggregates: &[Aggregate],
        states: &mut [State],
    ) -> SqlResult<()> {
        let mut row = Vec::new();
        while let Some(batch) = self.next(ctx)? {
            let mut by_row = Vec::new();
            for (aggregate, state) in aggregates.iter().zip(&mut *states) {
                if !aggregate.add_batch(state, &batch, &self.columns)? {
                    by_row.push((aggregate, state));
                }
            }
            if by_row.is_empty() {
                continue;
            }
            let width = self.columns.iter().max().map_or(0, |last| last + 1);
            row.resize_with(width, || Datum::Null);
            for at in 0..batch.rows() {
                ctx.check_cancel()?;
                for (place, column) in self.columns.iter().enumerate() {
                    row[*column] = batch.value(place, at);
                }
                for (aggregate, state) in &mut by_row {
                    aggregate.add(state, &row, &ctx.eval)?;
                }
            }
        }
        Ok(())
    }

    /// The next rows.
    pub(super) fn next(&mut self, ctx: &Context) -> SqlResult<Option<StoredColumns>> {
        let left = self.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let wanted = self.rows.min(left);
        self.rows = (self.rows * 2).min(BATCH_ROWS);
        while self.decoder.len() < wanted && self.decoder.byte_len() < BATCH_BYTES {
            ctx.check_cancel()?;
            let most = wanted - self.decoder.len();
            if !self.scan.read(&mut self.decoder, most)? {
                break;
            }
        }
        let (columns, rows) = self.decoder.take();
        self.left = self.left.map(|left| left - rows as u64);
        if rows == 0 {
            return Ok(None);
        }
        Ok(Some(StoredColumns::new(columns, self.types.clone(), rows)))
    }
}

/// Rows of the table of a plan's first step that pass what its spans do not express, each in the
/// place of the one before it.
pub(super) struct OneByOne {
    parts: Arc<Parts>,
    rows: ColumnarRows,
    batch: Option<StoredColumns>,
    at: usize,
    row: Row,
}

impl OneByOne {
    /// Opens a read of what so many steps give; `None` if these are several, or their rows do not
    /// come in columns.
    pub(super) fn open(
        ctx: &Context,
        parts: &Arc<Parts>,
        steps: usize,
    ) -> SqlResult<Option<OneByOne>> {
        if steps != 1 {
            return Ok(None);
        }
        let step = &parts.steps[0];
        let width = step.layout.table.columns.len();
        let is_wanted = |at: &usize| step.wanted.as_ref().is_none_or(|wanted| wanted[*at]);
        let columns = (0..width).filter(is_wanted).collect();
        let rows = ColumnarRows::of_first_step(ctx, parts, columns, None)?;
        let (parts, row) = (parts.clone(), vec![Datum::Null; width]);
        Ok(rows.map(|rows| OneByOne { parts, rows, batch: None, at: 0, row }))
    }

    /// The row that was looked at last.
    pub(super) fn take(&mut self) -> Row {
        let width = self.row.len();
        std::mem::replace(&mut self.row, vec![Datum::Null; width])
    }

    /// The next row, by the columns of the table; those that nobody wants are NULL.
    pub(super) fn next(&mut self, ctx: &Context) -> SqlResult<Option<&Row>> {
        loop {
            while self.batch.as_ref().is_none_or(|batch| self.at >= batch.rows()) {
                (self.batch, self.at) = (self.rows.next(ctx)?, 0);
                if self.batch.is_none() {
                    return Ok(None);
                }
            }
            if let Some(batch) = &self.batch {
                for (place, column) in self.rows.columns.iter().enumerate() {
                    self.row[*column] = batch.value(place, self.at);
                }
            }
            self.at += 1;
            if passes(&self.parts.steps[0].access.rest, &self.row, ctx)? {
                return Ok(Some(&self.row));
            }
        }
    }
}
