//! Batches of a scan.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use braid_kv::Tally;
use braid_rows::{IndexScan, TableLayout, TableScan};
use braid_types::{Datum, SqlError, SqlResult, SqlType};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};

use super::columns::{ColumnScan, Stored, canceled};
use super::execution::Execution;
use super::materialized::{Computing, Materialized};
use super::partitions::pieces::Reading;
use super::scan::{Spec, SqlScan};
use super::scan_filter::ScanFilter;
use crate::arrow_form;
use crate::error::to_df;

/// Rows in one batch.
const BATCH_ROWS: usize = 1024;

/// The batches of a common table expression.
pub(super) struct SharedStream {
    rows: Computing,
    /// Once they are computed.
    batches: Option<SendableRecordBatchStream>,
    projection: Vec<usize>,
    schema: SchemaRef,
    left: usize,
}

impl SharedStream {
    pub(super) fn new(
        rows: &Materialized,
        spec: &Spec,
        execution: &Arc<Execution>,
    ) -> SharedStream {
        SharedStream {
            rows: rows.rows(&spec.place, execution),
            batches: None,
            projection: spec.projection.clone(),
            schema: spec.schema.clone(),
            left: spec.limit.unwrap_or(usize::MAX),
        }
    }

    fn projected(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let batch = batch.slice(0, batch.num_rows().min(self.left));
        self.left -= batch.num_rows();
        let columns = self.projection.iter().map(|at| batch.column(*at).clone()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

impl Stream for SharedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        if self.batches.is_none() {
            match ready!(self.rows.poll_unpin(cx)) {
                Ok(rows) => self.batches = Some(rows.read()),
                Err(e) => {
                    self.left = 0;
                    return Poll::Ready(Some(Err(DataFusionError::Shared(e))));
                }
            }
        }
        let next = self.batches.as_mut().map(|batches| batches.poll_next_unpin(cx));
        next.unwrap_or(Poll::Ready(None))
            .map(|next| next.map(|batch| batch.and_then(|batch| self.projected(&batch))))
    }
}

impl RecordBatchStream for SharedStream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Where rows come from.
pub(super) enum Rows {
    Table(TableScan),
    Columns(Box<ColumnScan>),
    Index(IndexScan),
    Made(Arc<Vec<Vec<Datum>>>, usize),
}

impl Rows {
    /// Tells a scan how many rows will be wanted.
    pub(super) fn expecting(self, rows: Option<usize>) -> Rows {
        match (self, rows) {
            (Rows::Table(scan), Some(rows)) => Rows::Table(scan.expecting(rows)),
            (Rows::Index(scan), Some(rows)) => Rows::Index(scan.expecting(rows)),
            (other, _) => other,
        }
    }

    /// What can be read without a value in between is.
    pub(super) fn in_columns(self, spec: &Spec, filter: Option<ScanFilter>) -> Rows {
        let scan = match self {
            Rows::Table(scan) => Stored::Table(scan),
            // What expressions of indexes give is stored in no row.
            Rows::Index(scan)
                if scan.gives_columns() && !computes(scan.layout(), spec, &filter) =>
            {
                Stored::Index(scan)
            }
            other => return other,
        };
        let scan = ColumnScan::new(scan, &spec.projection, spec.schema.clone(), filter);
        Rows::Columns(Box::new(scan))
    }

    fn next(&mut self) -> SqlResult<Option<Vec<Datum>>> {
        Ok(match self {
            Rows::Table(_) | Rows::Columns(_) => None,
            Rows::Index(scan) => scan.next_row()?.map(|(_, row)| row),
            Rows::Made(rows, at) => {
                let row = rows.get(*at).cloned();
                *at += 1;
                row
            }
        })
    }
}

/// Whether columns are asked for that are computed.
fn computes(layout: &TableLayout, spec: &Spec, filter: &Option<ScanFilter>) -> bool {
    let probe = filter.iter().flat_map(|filter| &filter.columns);
    let mut columns = spec.projection.iter().chain(probe);
    columns.any(|at| layout.table.columns[*at].expression.is_some())
}

/// Batches of rows. Reading blocks: the stream is driven by the thread that wants them.
pub(super) struct ScanStream {
    scan: SqlScan,
    execution: Arc<Execution>,
    /// Until operators above have told what they know.
    told: Option<BoxFuture<'static, ()>>,
    /// Whether others, who were woken together with this one, have had their turn.
    has_made_way: bool,
    /// `None` until the first batch is wanted.
    rows: Option<Rows>,
    /// If others read beside it.
    _reading: Option<Reading>,
    /// Columns that the filter is about.
    probe: Vec<(usize, SqlType)>,
    left: usize,
}

impl ScanStream {
    pub(super) fn new(scan: SqlScan, execution: Arc<Execution>) -> ScanStream {
        let (probe, left) = (scan.probe_types(), scan.spec().limit.unwrap_or(usize::MAX));
        let _reading = (scan.spec().threads > 1).then(|| execution.readers.begin());
        let told = scan.told();
        let has_made_way = scan.spec().threads == 1;
        ScanStream { scan, execution, told, has_made_way, rows: None, _reading, probe, left }
    }

    /// The next batch; what it asked the store is counted.
    fn batch(&mut self) -> SqlResult<Option<RecordBatch>> {
        let before = Tally::here();
        let batch = self.next_rows();
        let asked = Tally::here().since(before);
        self.scan.count(asked.requests);
        self.execution.scanned(self.scan.spec(), asked);
        batch
    }

    fn next_rows(&mut self) -> SqlResult<Option<RecordBatch>> {
        loop {
            let execution = self.execution.clone();
            if execution.cancel.load(Ordering::Relaxed) || execution.readers.have_ended() {
                return Err(canceled());
            }
            let mut rows = match self.rows.take() {
                Some(rows) => rows,
                None => match self.scan.open(&execution)? {
                    Some(rows) => rows,
                    None => return Ok(None),
                },
            };
            let batch = self.read(&mut rows)?;
            let last = self.scan.spec().threads == 1 || self.left == 0;
            if batch.is_some() || last {
                self.rows = Some(rows);
                return Ok(batch);
            }
        }
    }

    fn read(&mut self, rows: &mut Rows) -> SqlResult<Option<RecordBatch>> {
        let spec = self.scan.spec();
        if let Rows::Columns(scan) = rows {
            let batch = scan.next(self.left, &self.execution.cancel)?;
            self.left -= batch.as_ref().map_or(0, RecordBatch::num_rows);
            if let (None, Some(facts)) = (&batch, &spec.facts) {
                scan.note_read(facts);
            }
            return Ok(batch);
        }
        loop {
            let most = BATCH_ROWS.min(self.left);
            let (mut read, mut columns) = (0, vec![Vec::new(); spec.projection.len()]);
            let mut probe = vec![Vec::new(); self.probe.len()];
            while read < most {
                let Some(mut row) = rows.next()? else { break };
                for (column, (at, _)) in probe.iter_mut().zip(&self.probe) {
                    column.push(row[*at].clone());
                }
                for (column, at) in columns.iter_mut().zip(&spec.projection) {
                    column.push(std::mem::replace(&mut row[*at], Datum::Null));
                }
                read += 1;
            }
            let mut batch = built(&columns, spec.types.iter(), &spec.schema, read)?;
            if let Some(filter) = self.scan.filter() {
                let types = self.probe.iter().map(|(_, ty)| ty);
                batch = filter.filter(&batch, &built(&probe, types, filter.schema(), read)?)?;
            }
            self.left -= batch.num_rows();
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
            if read < most || self.left == 0 {
                return Ok(None);
            }
        }
    }
}

/// The batch of these values.
fn built<'a>(
    columns: &[Vec<Datum>],
    types: impl Iterator<Item = &'a SqlType>,
    schema: &SchemaRef,
    rows: usize,
) -> SqlResult<RecordBatch> {
    let arrays = columns.iter().zip(types);
    let arrays: Vec<ArrayRef> =
        arrays.map(|(values, ty)| arrow_form::build(ty, values.iter())).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
        .map_err(|e| SqlError::internal(e.to_string()))
}

impl Stream for ScanStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(told) = &mut self.told {
            ready!(told.poll_unpin(cx));
            self.told = None;
        }
        // Reading does not pause. A thread that ends what others wait for has one of them as its
        // own next task, which no other thread takes: two parts of a scan would be read one after
        // the other, beside an idle processor.
        if !self.has_made_way {
            self.has_made_way = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.batch().map_err(to_df).transpose())
    }
}

impl RecordBatchStream for ScanStream {
    fn schema(&self) -> SchemaRef {
        self.scan.spec().schema.clone()
    }
}
