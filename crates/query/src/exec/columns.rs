//! Scans that hand out Arrow arrays without a value in between.
//!
//! `braid_sql` decodes rows to columns in plain memory (`storage/columns.rs`); that memory becomes
//! Arrow's here. Batches are small at first: nobody knows yet how many rows will be wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use braid_rows::{Column, Form, IndexScan, RowDecoder, TableLayout, TableScan, Values};
use braid_types::{OrderedKind, SqlError, SqlResult, SqlState, SqlType};
use datafusion::arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, BooleanBufferBuilder, Decimal128Array,
    PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray,
};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, SchemaRef, UInt32Type,
};

use super::facts::Facts;
use super::scan_filter::ScanFilter;
use crate::arrow_form;

/// Rows of the first batch.
const FIRST_ROWS: usize = 128;
/// Rows of a batch at most.
const BATCH_ROWS: usize = 8_192;
/// Bytes of text and the like after which a batch ends.
const BATCH_BYTES: usize = 1 << 20;

/// How a column of a table is decoded.
fn form(ty: &SqlType) -> Form {
    match arrow_form::data_type(ty) {
        DataType::Boolean => Form::Bool,
        DataType::Int16 => Form::I16,
        DataType::Int32 => Form::I32,
        DataType::Int64 => Form::I64,
        DataType::UInt32 => Form::U32,
        DataType::Float32 => Form::F32,
        DataType::Float64 => Form::F64,
        DataType::Decimal128(_, scale) => Form::I128(i64::from(scale)),
        DataType::Utf8 => Form::Bytes,
        _ if matches!(ty, SqlType::Bytea | SqlType::Uuid) => Form::Bytes,
        _ if OrderedKind::of(ty).is_some() => Form::Bytes,
        _ => Form::Packed(arrow_form::pack),
    }
}

fn internal(error: impl std::fmt::Display) -> SqlError {
    SqlError::internal(error.to_string())
}

fn validity(nulls: &[u32], rows: usize) -> Option<NullBuffer> {
    if nulls.is_empty() {
        return None;
    }
    let mut valid = BooleanBufferBuilder::new(rows);
    valid.append_n(rows, true);
    nulls.iter().for_each(|row| valid.set_bit(*row as usize, false));
    Some(NullBuffer::new(valid.finish()))
}

fn primitive<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    nulls: Option<NullBuffer>,
) -> SqlResult<PrimitiveArray<T>> {
    PrimitiveArray::try_new(ScalarBuffer::from(values), nulls).map_err(internal)
}

/// A decoded column as an array of this type.
fn array(column: Column, rows: usize, ty: &DataType) -> SqlResult<ArrayRef> {
    let nulls = validity(&column.nulls, rows);
    Ok(match column.values {
        Values::Bool(values) => Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls)),
        Values::I16(values) => Arc::new(primitive::<Int16Type>(values, nulls)?),
        Values::I32(values) => Arc::new(primitive::<Int32Type>(values, nulls)?),
        Values::I64(values) => Arc::new(primitive::<Int64Type>(values, nulls)?),
        Values::U32(values) => Arc::new(primitive::<UInt32Type>(values, nulls)?),
        Values::F32(values) => Arc::new(primitive::<Float32Type>(values, nulls)?),
        Values::F64(values) => Arc::new(primitive::<Float64Type>(values, nulls)?),
        Values::I128(values) => {
            let array = Decimal128Array::try_new(ScalarBuffer::from(values), nulls);
            Arc::new(array.map_err(internal)?.with_data_type(ty.clone()))
        }
        Values::Made(_) => return Err(SqlError::internal("values instead of a column")),
        Values::Bytes(ends, bytes) => {
            let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
            let bytes = Buffer::from_vec(bytes);
            match ty {
                DataType::Utf8 => {
                    Arc::new(StringArray::try_new(ends, bytes, nulls).map_err(internal)?)
                }
                _ => Arc::new(BinaryArray::try_new(ends, bytes, nulls).map_err(internal)?),
            }
        }
    })
}

/// A batch of decoded columns.
pub(super) fn record_batch(
    columns: Vec<Column>,
    rows: usize,
    schema: &SchemaRef,
) -> SqlResult<RecordBatch> {
    let fields = schema.fields().iter();
    let arrays =
        columns.into_iter().zip(fields).map(|(c, field)| array(c, rows, field.data_type()));
    let arrays = arrays.collect::<SqlResult<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(internal)
}

/// Where rows in columns come from.
pub(super) enum Stored {
    /// Spans of the table.
    Table(TableScan),
    /// Entries of an index, or the rows behind them.
    Index(IndexScan),
}

impl Stored {
    fn layout(&self) -> &Arc<TableLayout> {
        match self {
            Stored::Table(scan) => scan.layout(),
            Stored::Index(scan) => scan.layout(),
        }
    }

    fn decoder(&self, out: &[(usize, Form)], probe: &[(usize, Form)]) -> RowDecoder {
        match self {
            Stored::Table(scan) => scan.decoder(out, probe),
            Stored::Index(scan) => scan.decoder(out, probe),
        }
    }

    fn read(
        &mut self,
        decoder: &mut RowDecoder,
        most: usize,
        filter: impl FnOnce(Vec<Column>, usize) -> SqlResult<Option<Vec<u32>>>,
    ) -> SqlResult<bool> {
        match self {
            Stored::Table(scan) => scan.read_columns(decoder, most, filter),
            Stored::Index(scan) => scan.read_columns(decoder, most, filter),
        }
    }
}

/// A scan of a table's rows in columns.
pub(super) struct ColumnScan {
    scan: Stored,
    decoder: RowDecoder,
    schema: SchemaRef,
    filter: Option<ScanFilter>,
    /// Spans of the table that it began with; 0: entries of an index.
    spans: usize,
    /// Rows of the next batch.
    rows: usize,
}

impl ColumnScan {
    /// The columns of the projection, of the rows of a scan that pass the filter.
    pub(super) fn new(
        scan: Stored,
        projection: &[usize],
        schema: SchemaRef,
        filter: Option<ScanFilter>,
    ) -> ColumnScan {
        let table = scan.layout().table.clone();
        let forms = |columns: &[usize]| -> Vec<(usize, Form)> {
            columns.iter().map(|at| (*at, form(&table.columns[*at].ty))).collect()
        };
        let probe = filter.as_ref().map_or(&[][..], |filter| &filter.columns);
        let decoder = scan.decoder(&forms(projection), &forms(probe));
        let spans = match &scan {
            Stored::Table(scan) => scan.spans_left(),
            Stored::Index(_) => 0,
        };
        ColumnScan { scan, decoder, schema, filter, spans, rows: FIRST_ROWS }
    }

    /// Tells what it has found, if it has read the table itself.
    pub(super) fn note_read(&self, facts: &Facts) {
        if self.spans > 0 {
            facts.note_read(self.spans, self.decoder.rows_read());
        }
    }

    /// The next batch, of at most `left` rows.
    ///
    /// # Errors
    /// Of reading, and 57014 when the flag goes up.
    pub(super) fn next(
        &mut self,
        left: usize,
        cancel: &AtomicBool,
    ) -> SqlResult<Option<RecordBatch>> {
        let wanted = self.rows.min(left);
        self.rows = (self.rows * 2).min(BATCH_ROWS);
        while self.decoder.len() < wanted && self.decoder.byte_len() < BATCH_BYTES {
            if cancel.load(Ordering::Relaxed) {
                return Err(canceled());
            }
            let filter = self.filter.as_ref();
            let most = filter.map_or(wanted - self.decoder.len(), |_| BATCH_ROWS);
            let choose = |columns, rows| match filter {
                Some(filter) => filter.choose(columns, rows),
                None => Ok(None),
            };
            if !self.scan.read(&mut self.decoder, most, choose)? {
                break;
            }
        }
        let (columns, rows) = self.decoder.take();
        if rows == 0 {
            return Ok(None);
        }
        let batch = record_batch(columns, rows, &self.schema)?;
        Ok(Some(batch.slice(0, rows.min(left))))
    }
}

/// 57014.
pub(super) fn canceled() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}
