//! Rows into Parquet: gathered by column, and written as a row group when they are many.

use std::io;
use std::sync::Arc;

use braid_env::memory::{Account, Held};
use braid_types::{
    ArrayValue, Datum, Dimension, SqlError, SqlResult, SqlState, SqlType, Style, numeric,
};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;

use super::packed::Packed;
use super::parts::failed;
use super::schema::{Form, Shape, schema};
use crate::parquet::{EPOCH_DAYS, EPOCH_MICROS};
use crate::reader::out_of_memory;

/// A row group has at most so many bytes of values.
const GROUP_BYTES: usize = 16 << 20;
/// And so many rows.
const GROUP_ROWS: usize = 1 << 17;

/// Memory is asked for in steps of this.
const HELD_STEP: usize = 1 << 20;

/// Values of a column, NULLs left out.
enum Values {
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

struct Column {
    name: String,
    shape: Shape,
    values: Values,
    /// Of each place: how much of it there is.
    defined: Vec<i16>,
    /// Of each place of a list: 0 begins a row.
    repeated: Vec<i16>,
}

/// A Parquet file that takes rows.
pub struct RowGroups {
    writer: SerializedFileWriter<Packed>,
    /// What messages call the file.
    file: String,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
    held: Held,
}

impl RowGroups {
    /// An empty file with columns of these names and types. `codec` is none, snappy, gzip or zstd.
    ///
    /// # Errors
    /// 22023 for another codec; 42701 for two columns of one name; those of the disk.
    pub fn new(
        sink: Packed,
        file: &str,
        columns: &[(String, SqlType)],
        codec: &str,
        account: &Arc<Account>,
    ) -> SqlResult<RowGroups> {
        for (at, (name, _)) in columns.iter().enumerate() {
            if columns[..at].iter().any(|(other, _)| other == name) {
                let message = format!("column name \"{name}\" is not unique");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message).with_hint(
                    "Fields of Parquet go by name: give each column its own, with AS.",
                ));
            }
        }
        let shapes: Vec<(String, Shape)> =
            columns.iter().map(|(name, ty)| (name.clone(), Shape::of(ty))).collect();
        let properties = WriterProperties::builder()
            .set_compression(codec_named(codec)?)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by("BraidDB".into())
            .build();
        let writer = schema(&shapes)
            .and_then(|schema| SerializedFileWriter::new(sink, schema, Arc::new(properties)))
            .map_err(|e| failed(file, &as_io(e)))?;
        let columns = shapes.into_iter().map(|(name, shape)| Column::new(name, shape)).collect();
        let held = account.hold("rows of a Parquet file");
        Ok(RowGroups { writer, file: file.into(), columns, rows: 0, bytes: 0, held })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// 0A000 for what Parquet has no place for, with its column; 53200; those of the disk. The file
    /// is of no use then.
    pub fn add(&mut self, row: &[Datum]) -> SqlResult<()> {
        for (column, datum) in self.columns.iter_mut().zip(row) {
            self.bytes += datum.memory();
            column.add(datum)?;
        }
        self.rows += 1;
        // What is gathered, and about as much again while it is written.
        let want = self.bytes * 2;
        let more = want.saturating_sub(self.held.bytes());
        let is_strained = more > 0 && self.held.grow(more.max(HELD_STEP)).is_err();
        if is_strained && self.rows == 1 {
            self.held.grow(more).map_err(|e| out_of_memory(&e))?;
        }
        // Smaller groups need less memory, and are as good but for their size.
        if is_strained || self.bytes >= GROUP_BYTES || self.rows >= GROUP_ROWS {
            self.write_group()?;
        }
        Ok(())
    }

    /// Bytes of the file so far, those included that are not written yet.
    pub fn bytes(&self) -> usize {
        self.writer.bytes_written() + self.bytes
    }

    fn write_group(&mut self) -> SqlResult<()> {
        let write = |writer: &mut SerializedFileWriter<Packed>, columns: &mut [Column]| {
            let mut group = writer.next_row_group()?;
            for column in columns {
                let Some(mut to) = group.next_column()? else { break };
                column.write(to.untyped())?;
                to.close()?;
            }
            group.close().map(|_| ())
        };
        let written = write(&mut self.writer, &mut self.columns);
        written.map_err(|e| failed(&self.file, &as_io(e)))?;
        (self.rows, self.bytes) = (0, 0);
        self.held.release();
        Ok(())
    }

    /// Ends the file: what [`super::Parts::end`] takes.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn finish(mut self) -> SqlResult<Packed> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.writer.into_inner().map_err(|e| failed(&self.file, &as_io(e)))
    }
}

fn codec_named(name: &str) -> SqlResult<Compression> {
    Ok(match name {
        "none" => Compression::UNCOMPRESSED,
        "snappy" => Compression::SNAPPY,
        "gzip" => Compression::GZIP(GzipLevel::default()),
        "zstd" => Compression::ZSTD(ZstdLevel::default()),
        _ => {
            let message = format!("Parquet files are not compressed with \"{name}\"");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                .with_hint("Codecs are none, snappy, gzip and zstd."));
        }
    })
}

/// What the disk had said, if it was the disk.
fn as_io(e: ParquetError) -> io::Error {
    match e {
        ParquetError::External(e) => match e.downcast::<io::Error>() {
            Ok(e) => *e,
            Err(e) => io::Error::other(e),
        },
        other => io::Error::other(other),
    }
}

impl Column {
    fn new(name: String, shape: Shape) -> Column {
        let values = match shape.form {
            Form::Bool => Values::Bool(Vec::new()),
            Form::Int2 | Form::Int4 | Form::Date => Values::Int32(Vec::new()),
            Form::Int8 | Form::Short(..) | Form::Time | Form::Timestamp(_) => {
                Values::Int64(Vec::new())
            }
            Form::Float4 => Values::Float(Vec::new()),
            Form::Float8 => Values::Double(Vec::new()),
            Form::Long(..) | Form::Uuid => Values::Fixed(Vec::new()),
            Form::Bytes | Form::Json | Form::Enum | Form::Text => Values::Bytes(Vec::new()),
        };
        Column { name, shape, values, defined: Vec::new(), repeated: Vec::new() }
    }

    fn add(&mut self, datum: &Datum) -> SqlResult<()> {
        if !self.shape.list {
            self.defined.push(i16::from(!datum.is_null()));
            return self.push(datum);
        }
        let items: &[Datum] = match datum {
            Datum::Array(array) if is_list(array) => &array.items,
            Datum::Null => {
                self.defined.push(0);
                self.repeated.push(0);
                return Ok(());
            }
            _ => return Err(self.no_place("an array of more dimensions or another lower bound")),
        };
        if items.is_empty() {
            self.defined.push(1);
            self.repeated.push(0);
        }
        for (at, item) in items.iter().enumerate() {
            self.defined.push(2 + i16::from(!item.is_null()));
            self.repeated.push(i16::from(at > 0));
            self.push(item)?;
        }
        Ok(())
    }

    /// Adds a value that is not NULL.
    fn push(&mut self, datum: &Datum) -> SqlResult<()> {
        if datum.is_null() {
            return Ok(());
        }
        match &mut self.values {
            Values::Bool(to) => to.push(matches!(datum, Datum::Bool(true))),
            Values::Int32(to) => match datum {
                Datum::Int2(v) => to.push(i32::from(*v)),
                Datum::Int4(v) => to.push(*v),
                Datum::Date(v) => match v.checked_add(EPOCH_DAYS) {
                    Some(days) if !matches!(*v, i32::MIN | i32::MAX) => to.push(days),
                    _ => return Err(self.no_place("an infinite date")),
                },
                _ => return Err(self.no_place("a value of another type")),
            },
            Values::Int64(to) => match whole(datum, self.shape.form) {
                Some(v) => to.push(v),
                None => return Err(self.no_place(&describe(datum))),
            },
            Values::Float(to) => match datum {
                Datum::Float4(v) => to.push(*v),
                _ => return Err(self.no_place("a value of another type")),
            },
            Values::Double(to) => match datum {
                Datum::Float8(v) => to.push(*v),
                _ => return Err(self.no_place("a value of another type")),
            },
            Values::Fixed(to) => match fixed(datum, self.shape.form) {
                Some(v) => to.push(v.to_vec().into()),
                None => return Err(self.no_place(&describe(datum))),
            },
            Values::Bytes(to) => match datum {
                Datum::Bytea(bytes) if self.shape.form == Form::Bytes => {
                    to.push(bytes.to_vec().into());
                }
                _ => {
                    let text = datum.to_text(Style::utc()).unwrap_or_default();
                    to.push(text.into_bytes().into());
                }
            },
        }
        Ok(())
    }

    fn no_place(&self, what: &str) -> SqlError {
        let message = format!("column \"{}\": {what} has no place in a Parquet file", self.name);
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_hint(
            "EXPORT .. FROM SELECT column::text AS column: IMPORT reads the text back; or as CSV.",
        )
    }

    /// Writes the values into their place of the row group, and forgets them.
    fn write(&mut self, to: &mut ColumnWriter<'_>) -> ParquetResult<()> {
        let defined = Some(&self.defined[..]);
        let repeated = self.shape.list.then_some(&self.repeated[..]);
        macro_rules! put {
            ($to:expr, $values:expr) => {{
                $to.write_batch($values, defined, repeated)?;
                $values.clear();
            }};
        }
        use ColumnWriter as W;
        match (to, &mut self.values) {
            (W::BoolColumnWriter(to), Values::Bool(v)) => put!(to, v),
            (W::Int32ColumnWriter(to), Values::Int32(v)) => put!(to, v),
            (W::Int64ColumnWriter(to), Values::Int64(v)) => put!(to, v),
            (W::FloatColumnWriter(to), Values::Float(v)) => put!(to, v),
            (W::DoubleColumnWriter(to), Values::Double(v)) => put!(to, v),
            (W::ByteArrayColumnWriter(to), Values::Bytes(v)) => put!(to, v),
            (W::FixedLenByteArrayColumnWriter(to), Values::Fixed(v)) => put!(to, v),
            _ => return Err(ParquetError::General("a column of another type".into())),
        }
        self.defined.clear();
        self.repeated.clear();
        Ok(())
    }
}

/// Whether an array is what a list can be: one dimension, from 1.
fn is_list(array: &ArrayValue) -> bool {
    matches!(array.dimensions()[..], [] | [Dimension { lower: 1, .. }])
}

/// What is refused.
fn describe(datum: &Datum) -> String {
    match datum {
        Datum::NumericNan => "NaN".into(),
        Datum::Numeric(_) => "a number with more digits than its column".into(),
        Datum::Timestamp(_) | Datum::TimestampTz(_) => "an infinite or very late time".into(),
        _ => "a value of another type".into(),
    }
}

fn whole(datum: &Datum, form: Form) -> Option<i64> {
    match (datum, form) {
        (Datum::Int8(v) | Datum::Time(v), _) => Some(*v),
        (Datum::Timestamp(v) | Datum::TimestampTz(v), _) => {
            v.checked_add(EPOCH_MICROS).filter(|_| *v != i64::MIN && *v != i64::MAX)
        }
        (Datum::Numeric(_), Form::Short(p, s)) => i64::try_from(digits(datum, p, s)?).ok(),
        _ => None,
    }
}

fn fixed(datum: &Datum, form: Form) -> Option<[u8; 16]> {
    match (datum, form) {
        (Datum::Uuid(v), _) => Some(*v),
        (Datum::Numeric(_), Form::Long(p, s)) => Some(digits(datum, p, s)?.to_be_bytes()),
        _ => None,
    }
}

/// A number as an integer with its point `scale` digits from the right.
fn digits(datum: &Datum, precision: u16, scale: i16) -> Option<i128> {
    let Datum::Numeric(value) = datum else { return None };
    let digits = numeric::at_scale(value, u8::try_from(scale).ok()?)?;
    (digits.unsigned_abs() < 10u128.checked_pow(u32::from(precision))?).then_some(digits)
}
