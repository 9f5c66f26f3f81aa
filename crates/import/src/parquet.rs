//! Apache Parquet: row groups read column by column, some rows at a time.
//!
//! ```text
//!   column a   |1|2|3|4|   values where the definition level is the highest
//!   column b   |x| |y|z|   the others are NULL
//!                 └─ row 2
//! ```
//! Columns are plain values or lists of them. Structs and maps are refused by name, unless their
//! field is left out.

use std::io::{self, Read};
use std::sync::Arc;

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use braid_env::fs::File;
use braid_env::memory::Exceeded;
use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType, numeric};
use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, TimeUnit};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::schema::types::{ColumnDescriptor, Type};

use crate::batch::{Batch, Misfit, Row};
use crate::folder::SourceFile;
use crate::input::failed;
use crate::reader::{Job, Source, damaged, out_of_memory};
use crate::room::Room;
use crate::target::{Target, Value};

/// Days from 1970 to 2000.
pub(crate) const EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
pub(crate) const EPOCH_MICROS: i64 = 946_684_800_000_000;

/// The file as the library wants it.
struct Chunks {
    file: Arc<dyn File>,
    len: u64,
}

struct Chunk {
    file: Arc<dyn File>,
    at: u64,
}

impl Read for Chunk {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(buffer, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Chunks {
    type T = io::BufReader<Chunk>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(io::BufReader::new(Chunk { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            return Err(ParquetError::EOF("a part of the file lies behind its end".into()));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A column of the file that is read.
struct Column {
    /// Which one of the file.
    leaf: usize,
    /// Which one of the target.
    target: usize,
    kind: Kind,
    max_def: i16,
    /// Of a list: the definition level of an element's place.
    list: Option<i16>,
}

/// What the numbers and bytes of a column mean.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Text,
    Unsigned,
    Decimal(i32),
    Date,
    Time(Unit),
    Timestamp(Unit, bool),
    Uuid,
    Half,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    Millis,
    Micros,
    Nanos,
}

/// Rows of one file.
pub(crate) struct ParquetSource {
    reader: SerializedFileReader<Chunks>,
    file: SourceFile,
    target: Arc<Target>,
    columns: Vec<Column>,
    /// The row group that comes next.
    group: usize,
    open: Vec<ColumnReader>,
    /// Rows of the open group that are left.
    left: u64,
    row: u64,
    rows: u64,
    /// Bytes of a row in memory, as far as is known.
    row_bytes: usize,
    /// Rows that were read last at once.
    taken: usize,
    /// Of what the file says of itself.
    room: Room,
}

/// Rows that are read at once: at first, and at most.
const ROWS_FIRST: usize = 4;
const ROWS_MAX: usize = 256;
/// What a file says of its columns takes so many bytes of memory for each on the disk.
const FOOTER_GROWS: usize = 6;

/// Pages of a column, whose memory is counted: a dictionary stays until the column's end, another
/// page until the next one.
struct CountedPages {
    inner: Box<dyn PageReader>,
    room: Room,
    dictionary: usize,
}

impl Iterator for CountedPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<ParquetResult<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CountedPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let Some(page) = self.inner.get_next_page()? else { return Ok(None) };
        let bytes = page.buffer().len();
        if let Page::DictionaryPage { num_values, .. } = &page {
            // Its values, each with its place in the page.
            self.dictionary = bytes + *num_values as usize * size_of::<ByteArray>();
        }
        let all = if page.is_dictionary_page() { 0 } else { bytes } + self.dictionary;
        // It is there once more as it lies on the disk.
        let held = self.room.resize(all + bytes).and_then(|()| self.room.resize(all));
        held.map_err(|e| ParquetError::External(Box::new(NoMemory(e))))?;
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.inner.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> ParquetResult<bool> {
        self.inner.at_record_boundary()
    }
}

/// A page for which there is no memory.
#[derive(Debug)]
struct NoMemory(Exceeded);

impl std::fmt::Display for NoMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::error::Error for NoMemory {}

/// What is wrong with a file, or that there is no memory for it.
fn failure(file: &SourceFile, e: ParquetError) -> SqlError {
    match e {
        ParquetError::External(inner) if inner.is::<NoMemory>() => {
            SqlError::new(SqlState::OUT_OF_MEMORY, format!("out of memory: {inner}"))
                .with_detail(format!("file \"{}\"", file.name))
        }
        e => damaged(file, e),
    }
}

impl ParquetSource {
    pub(crate) fn open(job: &Job, file: &SourceFile, room: &Room) -> SqlResult<ParquetSource> {
        let opened = job.fs.open(&file.path).map_err(|e| failed(file, &e))?;
        let len = opened.len().map_err(|e| failed(file, &e))?;
        let mut room = room.another("the footer of a Parquet file");
        let footer = footer_len(&*opened, len).map_err(|e| failed(file, &e))?;
        let grown = room.resize(footer * FOOTER_GROWS);
        grown.map_err(|e| out_of_memory(&e).with_detail(format!("its footer, near byte {len}")))?;
        let chunks = Chunks { file: opened, len };
        let reader = SerializedFileReader::new(chunks)
            .map_err(|e| damaged(file, e).with_detail(format!("its footer, near byte {len}")))?;
        let metadata = reader.metadata();
        let rows = u64::try_from(metadata.file_metadata().num_rows()).unwrap_or(0);
        let columns = columns(reader.metadata().file_metadata().schema_descr(), &job.target)?;
        let (file, target) = (file.clone(), job.target.clone());
        Ok(ParquetSource {
            reader,
            file,
            target,
            columns,
            group: 0,
            open: Vec::new(),
            left: 0,
            row: 0,
            rows,
            row_bytes: 0,
            taken: ROWS_FIRST,
            room,
        })
    }

    /// Opens the next row group; `false` at the end.
    fn next_group(&mut self) -> SqlResult<bool> {
        let place = format!("row group {}", self.group + 1);
        let damaged = |e: ParquetError| damaged(&self.file, e).with_detail(place.clone());
        if self.group == self.reader.num_row_groups() {
            return Ok(false);
        }
        // The pages of the one before are gone.
        self.open = Vec::new();
        let group = self.reader.get_row_group(self.group).map_err(damaged)?;
        self.left = u64::try_from(group.metadata().num_rows()).unwrap_or(0);
        for column in &self.columns {
            let codec = group.metadata().column(column.leaf).compression();
            check_codec(codec).map_err(|e| e.with_detail(place.clone()))?;
        }
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let open = self.columns.iter().map(|c| {
            let inner = group.get_column_page_reader(c.leaf)?;
            let room = self.room.another("a page of a Parquet file");
            let pages = Box::new(CountedPages { inner, room, dictionary: 0 });
            Ok(get_column_reader(schema.column(c.leaf), pages))
        });
        self.open = open.collect::<ParquetResult<Vec<_>>>().map_err(damaged)?;
        self.group += 1;
        Ok(true)
    }

    fn take_rows(&mut self, count: usize, out: &mut Batch) -> SqlResult<()> {
        let before = out.size();
        let row = self.row + 1;
        let placed = |e: SqlError| e.with_detail(format!("row {row}"));
        // Before they are rows, and as such.
        out.expect(self.row_bytes * count * 2).map_err(placed)?;
        let mut by_column: Vec<std::vec::IntoIter<Value>> = Vec::with_capacity(self.columns.len());
        for (column, reader) in self.columns.iter().zip(&mut self.open) {
            let values = read(reader, column, count).map_err(|e| {
                let (file, row) = (&self.file.name, self.row + 1);
                failure(&self.file, e).with_detail(format!("file \"{file}\", row {row}"))
            })?;
            if values.len() != count {
                let e = damaged(&self.file, "a column ends before the others do");
                return Err(e.with_detail(format!("row {}", self.row + 1 + values.len() as u64)));
            }
            by_column.push(values.into_iter());
        }
        for _ in 0..count {
            self.row += 1;
            let mut values: Vec<Option<Datum>> = vec![None; self.target.columns.len()];
            let mut bad = None;
            for (column, from) in self.columns.iter().zip(&mut by_column) {
                let value = from.next().unwrap_or(Value::Null);
                let text = format_value(&value, bad.is_none());
                match self.target.value(column.target, value) {
                    Ok(datum) => values[column.target] = Some(datum),
                    Err(e) => bad = bad.or(Some((column.target, e, text()))),
                }
            }
            let taken = match bad {
                None => out.push(Row { number: self.row, values }),
                Some((column, error, text)) => {
                    let column = Some(column);
                    out.refuse(Misfit { number: self.row, column, error, text })
                }
            };
            taken.map_err(placed)?;
        }
        self.left -= count as u64;
        self.row_bytes = ((out.size() - before) / count.max(1)).max(self.row_bytes / 2);
        self.taken = count;
        Ok(())
    }
}

/// The text of a value, made only when it is asked for.
fn format_value(value: &Value, wanted: bool) -> impl FnOnce() -> String + use<> {
    // Lists and bytes may be long: what they begin with says enough.
    let kept = match value {
        Value::Text(t) if wanted => Value::Text(t.chars().take(200).collect()),
        Value::Typed(d, ty) if wanted && *ty != SqlType::Bytea => {
            Value::Typed(d.clone(), ty.clone())
        }
        _ => Value::Null,
    };
    move || match kept {
        Value::Text(t) => t,
        Value::Typed(d, _) => d.to_text(braid_types::TimeZone::utc()).unwrap_or_default(),
        _ => String::new(),
    }
}

impl Source for ParquetSource {
    fn read(&mut self, out: &mut Batch) -> SqlResult<()> {
        while !out.is_full() {
            if self.left == 0 {
                if !self.next_group()? {
                    out.last = true;
                    break;
                }
                continue;
            }
            // Rows may be long: not many at once before it is known.
            let fit = out.left() / self.row_bytes.max(1);
            let count = fit.min(self.taken * 4).clamp(1, ROWS_MAX);
            let left = usize::try_from(self.left).unwrap_or(usize::MAX);
            self.take_rows(count.min(left), out)?;
        }
        let part = self.row as f64 / self.rows.max(1) as f64;
        out.read = (self.file.size as f64 * part.min(1.0)) as u64;
        out.end.number = self.row;
        Ok(())
    }
}

/// Codecs that there are.
fn check_codec(codec: Compression) -> SqlResult<()> {
    let name = match codec {
        Compression::BROTLI(_) => "brotli",
        Compression::LZ4 | Compression::LZ4_RAW => "lz4",
        Compression::LZO => "lzo",
        Compression::UNCOMPRESSED
        | Compression::SNAPPY
        | Compression::GZIP(_)
        | Compression::ZSTD(_) => return Ok(()),
    };
    Err(SqlError::unsupported(format!("Parquet codec \"{name}\""))
        .with_hint("Write the file with snappy, gzip or zstd, or without compression."))
}

/// Length of a file's footer, as its end says; 0 if that is none, or longer than the file.
fn footer_len(file: &dyn File, len: u64) -> io::Result<usize> {
    let mut end = [0; 8];
    let Some(at) = len.checked_sub(8) else { return Ok(0) };
    file.read_exact_at(&mut end, at)?;
    let footer = u32::from_le_bytes([end[0], end[1], end[2], end[3]]);
    Ok(if u64::from(footer) > at { 0 } else { footer as usize })
}

/// Which columns of the file are read, and for what.
fn columns(
    schema: &parquet::schema::types::SchemaDescriptor,
    target: &Target,
) -> SqlResult<Vec<Column>> {
    let mut out: Vec<Column> = Vec::new();
    for leaf in 0..schema.num_columns() {
        let descriptor = schema.column(leaf);
        let root = schema.get_column_root(leaf);
        let Some(at) = target.field(root.name())? else { continue };
        let nested = || {
            let name = root.name();
            SqlError::unsupported(format!("field \"{name}\" of the file: a struct or map"))
                .with_hint("Lists of values become arrays; everything else must be flat.")
        };
        if out.iter().any(|c| c.target == at) {
            return Err(nested());
        }
        let list = match descriptor.max_rep_level() {
            0 if descriptor.path().parts().len() == 1 => None,
            1 => Some(list_level(root, &descriptor).ok_or_else(nested)?),
            _ => return Err(nested()),
        };
        let (kind, max_def) = (kind_of(&descriptor), descriptor.max_def_level());
        out.push(Column { leaf, target: at, kind, max_def, list });
    }
    Ok(out)
}

/// The definition level of an element's place in a list, whatever way the list is written.
fn list_level(root: &Type, leaf: &ColumnDescriptor) -> Option<i16> {
    let mut level = 0;
    let mut node = root;
    loop {
        match node.get_basic_info().repetition() {
            Repetition::REQUIRED => {}
            Repetition::OPTIONAL => level += 1,
            Repetition::REPEATED => return Some(level + 1),
        }
        let [only] = node.is_group().then(|| node.get_fields())? else { return None };
        debug_assert!(leaf.path().parts().len() > 1, "a group has something in it");
        node = only;
    }
}

fn kind_of(column: &ColumnDescriptor) -> Kind {
    if let Some(logical) = column.logical_type() {
        match logical {
            LogicalType::String | LogicalType::Enum | LogicalType::Json => return Kind::Text,
            LogicalType::Decimal { scale, .. } => return Kind::Decimal(scale),
            LogicalType::Date => return Kind::Date,
            LogicalType::Time { unit, .. } => return Kind::Time(unit_of(&unit)),
            LogicalType::Timestamp { unit, is_adjusted_to_u_t_c } => {
                return Kind::Timestamp(unit_of(&unit), is_adjusted_to_u_t_c);
            }
            LogicalType::Integer { is_signed: false, .. } => return Kind::Unsigned,
            LogicalType::Uuid => return Kind::Uuid,
            LogicalType::Float16 => return Kind::Half,
            _ => {}
        }
    }
    match column.converted_type() {
        ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Kind::Text,
        ConvertedType::DECIMAL => Kind::Decimal(column.type_scale()),
        ConvertedType::DATE => Kind::Date,
        ConvertedType::TIME_MILLIS => Kind::Time(Unit::Millis),
        ConvertedType::TIME_MICROS => Kind::Time(Unit::Micros),
        // Before there were logical types, all timestamps were instants.
        ConvertedType::TIMESTAMP_MILLIS => Kind::Timestamp(Unit::Millis, true),
        ConvertedType::TIMESTAMP_MICROS => Kind::Timestamp(Unit::Micros, true),
        ConvertedType::UINT_8
        | ConvertedType::UINT_16
        | ConvertedType::UINT_32
        | ConvertedType::UINT_64 => Kind::Unsigned,
        _ => Kind::Plain,
    }
}

fn unit_of(unit: &TimeUnit) -> Unit {
    match unit {
        TimeUnit::MILLIS(_) => Unit::Millis,
        TimeUnit::MICROS(_) => Unit::Micros,
        TimeUnit::NANOS(_) => Unit::Nanos,
    }
}

/// The next values of a column, one for each row.
fn read(reader: &mut ColumnReader, c: &Column, count: usize) -> ParquetResult<Vec<Value>> {
    use ColumnReader as R;
    match reader {
        R::BoolColumnReader(r) => {
            rows(r, c, count, |b, _| Ok(typed(Datum::Bool(b), SqlType::Bool)))
        }
        R::Int32ColumnReader(r) => rows(r, c, count, int32),
        R::Int64ColumnReader(r) => rows(r, c, count, int64),
        R::Int96ColumnReader(r) => {
            rows(r, c, count, |v: Int96, _| timestamp(v.to_nanos().div_euclid(1000), false))
        }
        R::FloatColumnReader(r) => {
            rows(r, c, count, |v, _| Ok(typed(Datum::Float4(v), SqlType::Float4)))
        }
        R::DoubleColumnReader(r) => {
            rows(r, c, count, |v, _| Ok(typed(Datum::Float8(v), SqlType::Float8)))
        }
        R::ByteArrayColumnReader(r) => rows(r, c, count, |v, kind| bytes(v.data(), kind)),
        R::FixedLenByteArrayColumnReader(r) => {
            rows(r, c, count, |v: FixedLenByteArray, kind| bytes(v.data(), kind))
        }
    }
}

fn rows<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    column: &Column,
    count: usize,
    value: impl Fn(T::T, Kind) -> ParquetResult<Value>,
) -> ParquetResult<Vec<Value>> {
    let (mut defined, mut repeated, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut records = 0;
    while records < count {
        let (defined, repeated) = (Some(&mut defined), Some(&mut repeated));
        let (read, ..) = reader.read_records(count - records, defined, repeated, &mut values)?;
        if read == 0 {
            break;
        }
        records += read;
    }
    let mut values = values.into_iter();
    let mut next = || match values.next() {
        Some(v) => value(v, column.kind),
        None => Err(ParquetError::General("a value is missing".into())),
    };
    if column.max_def == 0 {
        return (0..records).map(|_| next()).collect();
    }
    let Some(place) = column.list else {
        let one = |level: &i16| if *level == column.max_def { next() } else { Ok(Value::Null) };
        return defined.iter().map(one).collect();
    };
    let mut out: Vec<Value> = Vec::with_capacity(records);
    for (level, again) in defined.iter().zip(&repeated) {
        let element = match *level {
            l if l == column.max_def => Some(next()?),
            l if l >= place => Some(Value::Null),
            _ => None,
        };
        match (out.last_mut(), element) {
            (Some(Value::List(items)), Some(element)) if *again > 0 => items.push(element),
            (_, Some(element)) => out.push(Value::List(vec![element])),
            (_, None) if level + 1 == place => out.push(Value::List(Vec::new())),
            (_, None) => out.push(Value::Null),
        }
    }
    Ok(out)
}

fn typed(datum: Datum, ty: SqlType) -> Value {
    Value::Typed(datum, ty)
}

fn out_of_range(what: &str) -> ParquetError {
    ParquetError::General(format!("a {what} is out of range"))
}

fn int32(v: i32, kind: Kind) -> ParquetResult<Value> {
    Ok(match kind {
        Kind::Unsigned => typed(Datum::Int8(i64::from(v as u32)), SqlType::Int8),
        Kind::Date => {
            let days = v.checked_sub(EPOCH_DAYS).ok_or_else(|| out_of_range("date"))?;
            typed(Datum::Date(days), SqlType::Date)
        }
        Kind::Time(unit) => time(i64::from(v), unit)?,
        Kind::Decimal(scale) => decimal(BigInt::from(v), scale)?,
        _ => typed(Datum::Int4(v), SqlType::Int4),
    })
}

fn int64(v: i64, kind: Kind) -> ParquetResult<Value> {
    Ok(match kind {
        Kind::Unsigned => decimal(BigInt::from(v as u64), 0)?,
        Kind::Time(unit) => time(v, unit)?,
        Kind::Timestamp(unit, utc) => timestamp(micros(v, unit)?, utc)?,
        Kind::Decimal(scale) => decimal(BigInt::from(v), scale)?,
        _ => typed(Datum::Int8(v), SqlType::Int8),
    })
}

fn micros(v: i64, unit: Unit) -> ParquetResult<i64> {
    match unit {
        Unit::Millis => v.checked_mul(1000).ok_or_else(|| out_of_range("time")),
        Unit::Micros => Ok(v),
        Unit::Nanos => Ok(v.div_euclid(1000)),
    }
}

fn time(v: i64, unit: Unit) -> ParquetResult<Value> {
    let micros = micros(v, unit)?;
    match (0..=86_400_000_000).contains(&micros) {
        true => Ok(typed(Datum::Time(micros), SqlType::Time)),
        false => Err(out_of_range("time of day")),
    }
}

fn timestamp(micros: i64, utc: bool) -> ParquetResult<Value> {
    let v = micros.checked_sub(EPOCH_MICROS).ok_or_else(|| out_of_range("timestamp"))?;
    Ok(match utc {
        true => typed(Datum::TimestampTz(v), SqlType::TimestampTz),
        false => typed(Datum::Timestamp(v), SqlType::Timestamp),
    })
}

/// A number from its digits and where its point is.
pub(crate) fn decimal(digits: BigInt, scale: i32) -> ParquetResult<Value> {
    let datum = numeric::datum(BigDecimal::new(digits, i64::from(scale)));
    let datum = datum.map_err(|_| out_of_range("decimal"))?;
    Ok(typed(datum, SqlType::Numeric(None)))
}

fn bytes(v: &[u8], kind: Kind) -> ParquetResult<Value> {
    Ok(match kind {
        Kind::Text => match std::str::from_utf8(v) {
            Ok(text) => Value::Text(text.into()),
            Err(_) => return Err(ParquetError::General("text that is not UTF-8".into())),
        },
        Kind::Decimal(scale) => decimal(BigInt::from_signed_bytes_be(v), scale)?,
        Kind::Uuid => match <[u8; 16]>::try_from(v) {
            Ok(v) => typed(Datum::Uuid(v), SqlType::Uuid),
            Err(_) => return Err(ParquetError::General("a UUID that has not 16 bytes".into())),
        },
        Kind::Half => match <[u8; 2]>::try_from(v) {
            Ok(v) => typed(Datum::Float4(half(u16::from_le_bytes(v))), SqlType::Float4),
            Err(_) => return Err(ParquetError::General("a half that has not 2 bytes".into())),
        },
        _ => typed(Datum::Bytea(v.into()), SqlType::Bytea),
    })
}

/// A half as a float.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        e => sign * (1.0 + fraction / 1024.0) * 2f32.powi(e - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves() {
        let known = [(0x3c00, 1.0), (0xc000, -2.0), (0x0001, 5.960_464_5e-8), (0x7bff, 65504.0)];
        for (bits, value) in known {
            assert_eq!(half(bits), value);
        }
        assert!(half(0x7e00).is_nan() && half(0xfc00) == f32::NEG_INFINITY);
    }
}
