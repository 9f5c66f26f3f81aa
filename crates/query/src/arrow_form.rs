//! SQL values as Arrow arrays.
//!
//! DataFusion moves, joins, groups and sorts columns; it never computes with our types, so each
//! SQL type needs only a carrier:
//!
//! ```text
//!   native    bool, int2/4/8, oid            Boolean, Int16/32/64, UInt32
//!             date, time, timestamp(tz)      Int32, Int64 (PostgreSQL's epoch)
//!             enum types                     Int64: the places of their values
//!             text types; bytea, uuid        Utf8; Binary       bytes order as SQL orders
//!             numeric(p,s), p <= 38          Decimal128(38, s): see below
//!   floats    Float32, Float64               compared by a normal form: one NaN, one zero
//!   packed    other numeric, interval,       Binary: the wire form, which keeps display scales;
//!             jsonb, arrays, records         compared and grouped through a sort key
//! ```
//! A *sort key* is a Binary whose byte order and equality are those of SQL.
//!
//! *Decimals.* All values of a declared numeric show the same number of digits after the point, so
//! an integer is enough. The carrier always says 38 digits: columns of one scale are of one Arrow
//! type, and nobody has a reason to convert them. NaN is the largest i128, which needs more digits
//! than any value may have: it sorts last and equals itself. Arrow compares, sorts and hashes these
//! integers; all arithmetic on them is ours, because DataFusion's has other scales and no NaN.

use std::borrow::Borrow;
use std::sync::Arc;

use braid_keys::column::{Direction, encode_column};
use braid_types::jsonb::serde_json::{self, Value};
use braid_types::numeric::BigDecimal;
use braid_types::{
    ArrayValue, Datum, Dimension, Ordered, OrderedKind, RangeKind, RecordValue, SqlType, numeric,
};
use datafusion::arrow::array::{
    Array, ArrayRef, BinaryArray, BinaryBuilder, BooleanArray, Decimal128Array, Decimal256Array,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, StringArray, StringBuilder,
    UInt32Array, new_null_array,
};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, i256};
use datafusion::common::ScalarValue;

/// NaN among decimals.
pub(crate) const DECIMAL_NAN: i128 = i128::MAX;

/// NaN among decimals of 256 bits, which only expressions have.
pub(crate) const WIDE_NAN: i256 = i256::MAX;

/// The number that a decimal of 256 bits is.
pub(crate) fn wide_number(value: i256, scale: u8) -> BigDecimal {
    numeric::from_scaled_wide(&value.to_le_bytes(), scale)
}

/// The Arrow type of decimals of a scale.
pub(crate) fn decimal(scale: u8) -> DataType {
    DataType::Decimal128(38, scale as i8)
}

/// The scale of a type whose values travel as decimals.
pub(crate) fn decimal_scale(ty: &SqlType) -> Option<u8> {
    match ty {
        SqlType::Numeric(Some((precision @ 1..=38, scale))) => {
            u8::try_from(*scale).ok().filter(|s| u16::from(*s) <= *precision)
        }
        _ => None,
    }
}

/// The integer that carries a numeric; `None` for one that the scale cannot hold.
pub(crate) fn to_decimal(value: &Datum, scale: u8) -> Option<i128> {
    match value {
        Datum::Numeric(v) => numeric::at_scale(v, scale),
        Datum::NumericNan => Some(DECIMAL_NAN),
        _ => None,
    }
}

/// The numeric that a decimal carries.
pub(crate) fn from_decimal(value: i128, scale: u8) -> Datum {
    match value {
        DECIMAL_NAN => Datum::NumericNan,
        _ => Datum::Numeric(Arc::new(numeric::from_scaled(value, scale))),
    }
}

/// The Arrow type that carries a SQL type.
pub fn data_type(ty: &SqlType) -> DataType {
    if let Some(scale) = decimal_scale(ty) {
        return decimal(scale);
    }
    match ty {
        SqlType::Bool => DataType::Boolean,
        SqlType::Int2 => DataType::Int16,
        SqlType::Int4 | SqlType::Date => DataType::Int32,
        SqlType::Int8
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Enum(_) => DataType::Int64,
        ty if ty.is_oid_like() => DataType::UInt32,
        SqlType::Float4 => DataType::Float32,
        SqlType::Float8 => DataType::Float64,
        ty if ty.is_text_like() => DataType::Utf8,
        SqlType::Json | SqlType::Unknown | SqlType::Void => DataType::Utf8,
        ty if ty.is_unordered_text() => DataType::Utf8,
        _ => DataType::Binary,
    }
}

/// A nullable field.
pub fn field(name: &str, ty: &SqlType) -> FieldRef {
    Arc::new(Field::new(name, data_type(ty), true))
}

/// Whether Arrow's own equality and order of the carrier are SQL's.
pub(crate) fn is_native(ty: &SqlType) -> bool {
    decimal_scale(ty).is_some()
        || !matches!(
            ty,
            SqlType::Float4
                | SqlType::Float8
                | SqlType::Numeric(_)
                | SqlType::Interval
                | SqlType::Citext
                | SqlType::Jsonb
                | SqlType::Array(_)
                | SqlType::Range(_)
                | SqlType::Multirange(_)
                | SqlType::Int2Vector
                | SqlType::OidVector
                | SqlType::Record
                | SqlType::Composite(_)
                | SqlType::Geometry(_)
        )
}

/// The bytes of a packed value. Records, and arrays of records, tell the types and names of their
/// fields; other values are what the type says.
pub fn pack(value: &Datum, out: &mut Vec<u8>) {
    match value {
        Datum::Record(record) => {
            out.extend((record.len() as u32).to_be_bytes());
            out.push(u8::from(record.names.is_some()));
            for (at, field) in record.iter().enumerate() {
                if let Some(names) = &record.names {
                    push_sized(out, |out| out.extend(names[at].as_bytes()));
                }
                pack_field(field, out);
            }
        }
        Datum::Array(array) if array.element.is_row() => {
            let dimensions = array.dimensions();
            out.extend((dimensions.len() as u32).to_be_bytes());
            for dimension in dimensions {
                out.extend((dimension.length as u32).to_be_bytes());
                out.extend((dimension.lower as u32).to_be_bytes());
            }
            array.items.iter().for_each(|item| pack_field(item, out));
        }
        other => other.to_binary(&other.implied_type(), out),
    }
}

/// Type, length and bytes of a value inside another.
fn pack_field(field: &Datum, out: &mut Vec<u8>) {
    pack_type(&field.implied_type(), out);
    if field.is_null() {
        out.extend(u32::MAX.to_be_bytes());
        return;
    }
    push_sized(out, |out| pack(field, out));
}

/// Marks an enum type, and an array of one, whose oid alone says nothing here.
const ENUM: u32 = u32::MAX;
const ENUM_ARRAY: u32 = u32::MAX - 1;
const RANGE: u32 = u32::MAX - 2;
const MULTIRANGE: u32 = u32::MAX - 3;
/// In front of the type of the elements, where that is a range.
const RANGE_ARRAY: u32 = u32::MAX - 4;

/// The oid of a type; of an enum type and of ranges of a user's type all of it.
fn pack_type(ty: &SqlType, out: &mut Vec<u8>) {
    if let Some((range, _)) = ty.made_range() {
        let mark = if matches!(ty, SqlType::Range(_)) { RANGE } else { MULTIRANGE };
        out.extend(mark.to_be_bytes());
        return push_sized(out, |out| out.extend(serde_json::to_vec(&**range).unwrap_or_default()));
    }
    if let SqlType::Array(element) = ty
        && element.made_range().is_some()
    {
        out.extend(RANGE_ARRAY.to_be_bytes());
        return pack_type(element, out);
    }
    let (mark, user) = match ty {
        SqlType::Enum(user) => (ENUM, user),
        SqlType::Array(element) => match &**element {
            SqlType::Enum(user) => (ENUM_ARRAY, user),
            SqlType::Composite(_) => {
                return out.extend(SqlType::Record.array_of().oid().to_be_bytes());
            }
            _ => return out.extend(ty.oid().to_be_bytes()),
        },
        // Of rows of a user's type the fields are told, too.
        SqlType::Composite(_) => return out.extend(SqlType::Record.oid().to_be_bytes()),
        _ => return out.extend(ty.oid().to_be_bytes()),
    };
    out.extend(mark.to_be_bytes());
    // Names and numbers, which JSON always takes.
    push_sized(out, |out| out.extend(serde_json::to_vec(&**user).unwrap_or_default()));
}

fn push_sized(out: &mut Vec<u8>, f: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend([0; 4]);
    f(out);
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// The value of packed bytes. They were made by [`pack`] in this process, so damage is a bug and
/// gives NULL.
pub fn unpack(bytes: &[u8], ty: &SqlType) -> Datum {
    let mut packed = Packed(bytes);
    match ty {
        SqlType::Record => packed.record().unwrap_or(Datum::Null),
        SqlType::Composite(_) => ty.known(&packed.record().unwrap_or(Datum::Null)),
        SqlType::Array(element) if element.is_row() => {
            ty.known(&packed.records().unwrap_or(Datum::Null))
        }
        _ => Datum::from_binary(bytes, &ty.base()).unwrap_or(Datum::Null),
    }
}

/// Reads what [`pack`] wrote.
struct Packed<'a>(&'a [u8]);

impl<'a> Packed<'a> {
    fn number(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_at_checked(4)?;
        self.0 = rest;
        Some(u32::from_be_bytes(head.try_into().ok()?))
    }

    fn bytes(&mut self, length: u32) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length as usize)?;
        self.0 = rest;
        Some(head)
    }

    fn field(&mut self) -> Option<Datum> {
        let ty = self.sql_type()?;
        let length = self.number()?;
        if length == u32::MAX {
            return Some(Datum::Null);
        }
        Some(unpack(self.bytes(length)?, &ty))
    }

    /// What [`pack_type`] wrote.
    fn sql_type(&mut self) -> Option<SqlType> {
        let oid = self.number()?;
        match oid {
            ENUM | ENUM_ARRAY => {}
            RANGE_ARRAY => return self.sql_type().map(|element| element.array_of()),
            RANGE | MULTIRANGE => {
                let length = self.number()?;
                let made = serde_json::from_slice(self.bytes(length)?).ok()?;
                let kind = RangeKind::Made(Arc::new(made));
                return Some(match oid {
                    RANGE => SqlType::Range(kind),
                    _ => SqlType::Multirange(kind),
                });
            }
            other => return SqlType::from_oid(other, -1),
        }
        let length = self.number()?;
        let user = SqlType::Enum(serde_json::from_slice(self.bytes(length)?).ok().map(Arc::new)?);
        Some(if oid == ENUM { user } else { SqlType::Array(Box::new(user)) })
    }

    fn record(&mut self) -> Option<Datum> {
        let count = self.number()?;
        let named = self.bytes(1)? == [1];
        let (mut names, mut fields) = (Vec::<Arc<str>>::new(), Vec::new());
        for _ in 0..count {
            if named {
                let length = self.number()?;
                names.push(std::str::from_utf8(self.bytes(length)?).ok()?.into());
            }
            fields.push(self.field()?);
        }
        let names = named.then(|| names.into());
        Some(Datum::Record(Arc::new(RecordValue { names, fields })))
    }

    fn records(&mut self) -> Option<Datum> {
        let (mut dimensions, mut count) = (Vec::new(), 1);
        for _ in 0..self.number()? {
            let length = self.number()? as usize;
            count *= length;
            dimensions.push(Dimension { lower: self.number()? as i32, length });
        }
        let count = if dimensions.is_empty() { 0 } else { count };
        let items = (0..count).map(|_| self.field()).collect::<Option<Vec<_>>>()?;
        Some(Datum::Array(Arc::new(ArrayValue::of(SqlType::Record, items, &dimensions))))
    }
}

/// Bytes that sort and compare as the value does. NULL has none.
pub(crate) fn sort_key(value: &Datum) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    push_sort_key(value, &mut out)?;
    Some(out)
}

fn push_sort_key(value: &Datum, out: &mut Vec<u8>) -> Option<()> {
    match value {
        Datum::Null => return None,
        Datum::Jsonb(json) => {
            // An empty array as the whole document sorts first.
            let empty = json.as_array().is_some_and(Vec::is_empty);
            out.push(u8::from(!empty));
            push_document(json, out);
        }
        Datum::Record(fields) => {
            for field in fields.iter() {
                match field {
                    // NULL fields sort last and equal each other.
                    Datum::Null => out.push(0xFF),
                    other => {
                        push_sort_key(other, out);
                    }
                }
            }
        }
        // The zeros are equal.
        Datum::Float4(v) if *v == 0.0 => encode(&Datum::Float8(0.0), out),
        Datum::Float8(v) if *v == 0.0 => encode(&Datum::Float8(0.0), out),
        other => encode(other, out),
    }
    Some(())
}

/// Bytes in the order of documents: kind, then size, then contents.
fn push_document(value: &Value, out: &mut Vec<u8>) {
    let text = |s: &str, out: &mut Vec<u8>| encode(&Datum::text(s), out);
    match value {
        Value::Null => out.push(0),
        Value::String(s) => {
            out.push(1);
            text(s, out);
        }
        Value::Number(n) => {
            out.push(2);
            let exact = numeric::parse(&n.to_string()).unwrap_or_else(|| numeric::from_i128(0));
            encode(&Datum::Numeric(Arc::new(exact)), out);
        }
        Value::Bool(b) => out.extend([3, u8::from(*b)]),
        Value::Array(items) => {
            out.push(4);
            out.extend((items.len() as u32).to_be_bytes());
            items.iter().for_each(|item| push_document(item, out));
        }
        Value::Object(fields) => {
            out.push(5);
            out.extend((fields.len() as u32).to_be_bytes());
            for (key, value) in fields {
                text(key, out);
                push_document(value, out);
            }
        }
    }
}

fn encode(value: &Datum, out: &mut Vec<u8>) {
    if encode_column(out, value, Direction::ASC).is_err() {
        // Arrays of documents have no key form: their packed bytes tell equality.
        pack(value, out);
    }
}

/// Builds the array that carries these values.
pub fn build<'a>(ty: &SqlType, values: impl Iterator<Item = &'a Datum>) -> ArrayRef {
    macro_rules! collect {
        ($array:ty, $($from:pat => $to:expr),+) => {
            Arc::new(
                values.map(|v| match v { $($from => Some($to),)+ _ => None }).collect::<$array>(),
            )
        };
    }
    match data_type(ty) {
        DataType::Boolean => collect!(BooleanArray, Datum::Bool(b) => *b),
        DataType::Int16 => collect!(Int16Array, Datum::Int2(i) => *i),
        DataType::Int32 => collect!(
            Int32Array,
            Datum::Int4(i) | Datum::Date(i) => *i,
            Datum::Int2(i) => i32::from(*i)
        ),
        DataType::Int64 => collect!(
            Int64Array,
            Datum::Int8(i) | Datum::Time(i) | Datum::Timestamp(i) | Datum::TimestampTz(i) => *i,
            Datum::Enum(value) => value.place,
            Datum::Int4(i) => i64::from(*i),
            Datum::Int2(i) => i64::from(*i)
        ),
        DataType::UInt32 => collect!(UInt32Array, Datum::Oid(i) => *i),
        DataType::Float32 => collect!(Float32Array, Datum::Float4(f) => *f),
        DataType::Float64 => {
            collect!(Float64Array, Datum::Float8(f) => *f, Datum::Float4(f) => f64::from(*f))
        }
        DataType::Decimal128(_, scale) => Arc::new(decimals(values, scale as u8)),
        DataType::Utf8 => {
            let mut builder = StringBuilder::new();
            for value in values {
                match value {
                    Datum::Text(s) | Datum::Json(s) => builder.append_value(s),
                    _ => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        _ => packed(values),
    }
}

/// As [`build`], for expressions of numerics that travel as decimals because their scale is known
/// beforehand; see `exec/vector`.
pub(crate) fn build_carried<'a>(
    carrier: &DataType,
    ty: &SqlType,
    values: impl Iterator<Item = &'a Datum>,
) -> ArrayRef {
    match carrier {
        DataType::Decimal128(_, scale) => Arc::new(decimals(values, *scale as u8)),
        DataType::Decimal256(_, scale) => {
            let scale = *scale as u8;
            let wide = values.map(|value| match value {
                Datum::Numeric(v) => numeric::at_scale_wide(v, scale).map(i256::from_le_bytes),
                Datum::NumericNan => Some(WIDE_NAN),
                _ => None,
            });
            Arc::new(wide.collect::<Decimal256Array>().with_data_type(carrier.clone()))
        }
        _ => build(ty, values),
    }
}

/// Decimals of a declared type. Values that come from elsewhere than its columns have gone through
/// a cast, so each has the scale.
fn decimals<'a>(values: impl Iterator<Item = &'a Datum>, scale: u8) -> Decimal128Array {
    let carried = values.map(|value| match value {
        Datum::Numeric(v) => {
            debug_assert_eq!(numeric::parts(v).1, i64::from(scale), "a numeric of another scale");
            let rounded = || numeric::at_scale(&numeric::round(v, i64::from(scale)), scale);
            numeric::at_scale(v, scale).or_else(rounded)
        }
        other => to_decimal(other, scale),
    });
    carried.collect::<Decimal128Array>().with_data_type(decimal(scale))
}

fn packed<'a>(values: impl Iterator<Item = &'a Datum>) -> ArrayRef {
    let mut builder = BinaryBuilder::new();
    let mut bytes = Vec::new();
    for value in values {
        match value {
            Datum::Null => builder.append_null(),
            Datum::Bytea(b) => builder.append_value(b),
            Datum::Uuid(u) => builder.append_value(u),
            Datum::Ordered(value) => builder.append_value(value.bytes()),
            other => {
                bytes.clear();
                pack(other, &mut bytes);
                builder.append_value(&bytes);
            }
        }
    }
    Arc::new(builder.finish())
}

/// A reader of one column: downcast once, then read by row.
pub enum Reader<'a> {
    /// `boolean`.
    Bool(&'a BooleanArray),
    /// 16-bit carrier.
    I16(&'a Int16Array),
    /// 32-bit carrier.
    I32(&'a Int32Array),
    /// 64-bit carrier.
    I64(&'a Int64Array),
    /// Oids.
    U32(&'a UInt32Array),
    /// `real`.
    F32(&'a Float32Array),
    /// `double precision`.
    F64(&'a Float64Array),
    /// Declared numerics, and their scale.
    Decimal(&'a Decimal128Array, u8),
    /// Numerics of an expression, and their scale.
    Wide(&'a Decimal256Array, u8),
    /// Text types.
    Text(&'a StringArray),
    /// Binary carriers.
    Binary(&'a BinaryArray),
    /// A column of another carrier holds only NULLs.
    Nulls,
}

impl<'a> Reader<'a> {
    /// Opens a column.
    pub fn new(array: &'a dyn Array) -> Reader<'a> {
        let any = array.as_any();
        match array.data_type() {
            DataType::Boolean => any.downcast_ref().map(Reader::Bool),
            DataType::Int16 => any.downcast_ref().map(Reader::I16),
            DataType::Int32 => any.downcast_ref().map(Reader::I32),
            DataType::Int64 => any.downcast_ref().map(Reader::I64),
            DataType::UInt32 => any.downcast_ref().map(Reader::U32),
            DataType::Float32 => any.downcast_ref().map(Reader::F32),
            DataType::Float64 => any.downcast_ref().map(Reader::F64),
            DataType::Decimal128(_, scale) => {
                any.downcast_ref().map(|a| Reader::Decimal(a, *scale as u8))
            }
            DataType::Decimal256(_, scale) => {
                any.downcast_ref().map(|a| Reader::Wide(a, *scale as u8))
            }
            DataType::Utf8 => any.downcast_ref().map(Reader::Text),
            DataType::Binary => any.downcast_ref().map(Reader::Binary),
            _ => None,
        }
        .unwrap_or(Reader::Nulls)
    }

    /// The text of a row, in a column of texts that is not NULL there.
    pub fn text(&self, row: usize) -> Option<&'a str> {
        match self {
            Reader::Text(a) if a.is_valid(row) => Some(a.value(row)),
            _ => None,
        }
    }

    /// The value of a row as a SQL type.
    pub fn get(&self, row: usize, ty: &SqlType) -> Datum {
        macro_rules! valid {
            ($array:expr) => {
                if $array.is_null(row) {
                    return Datum::Null;
                } else {
                    $array.value(row)
                }
            };
        }
        match self {
            Reader::Nulls => Datum::Null,
            Reader::Bool(a) => Datum::Bool(valid!(a)),
            Reader::I16(a) => Datum::Int2(valid!(a)),
            Reader::I32(a) => {
                let v = valid!(a);
                if *ty == SqlType::Date { Datum::Date(v) } else { Datum::Int4(v) }
            }
            Reader::I64(a) => {
                let v = valid!(a);
                match ty {
                    SqlType::Time => Datum::Time(v),
                    SqlType::Timestamp => Datum::Timestamp(v),
                    SqlType::TimestampTz => Datum::TimestampTz(v),
                    SqlType::Enum(ty) => ty.value_at(v).map_or(Datum::Null, Datum::Enum),
                    _ => Datum::Int8(v),
                }
            }
            Reader::U32(a) => Datum::Oid(valid!(a)),
            Reader::F32(a) => Datum::Float4(valid!(a)),
            Reader::F64(a) => Datum::Float8(valid!(a)),
            Reader::Decimal(a, scale) => from_decimal(valid!(a), *scale),
            Reader::Wide(a, scale) => match valid!(a) {
                WIDE_NAN => Datum::NumericNan,
                value => Datum::Numeric(Arc::new(wide_number(value, *scale))),
            },
            Reader::Text(a) if *ty == SqlType::Json => Datum::Json(valid!(a).into()),
            Reader::Text(a) => Datum::text(valid!(a)),
            Reader::Binary(a) => {
                let bytes = valid!(a);
                match ty {
                    SqlType::Bytea => Datum::Bytea(bytes.into()),
                    SqlType::Uuid => bytes.try_into().map_or(Datum::Null, Datum::Uuid),
                    ty if let Some(kind) = OrderedKind::of(ty) => {
                        Ordered::from_bytes(kind, bytes).map_or(Datum::Null, Datum::Ordered)
                    }
                    ty => unpack(bytes, ty),
                }
            }
        }
    }
}

/// One value as a DataFusion scalar. A value that is given away, and may take much memory, is gone
/// before the scalar is there.
pub fn scalar(value: impl Borrow<Datum>, ty: &SqlType) -> ScalarValue {
    let array = build(ty, std::iter::once(value.borrow()));
    drop(value);
    ScalarValue::try_from_array(&array, 0).unwrap_or(ScalarValue::Null)
}

/// The value of a DataFusion scalar.
pub(crate) fn from_scalar(value: &ScalarValue, ty: &SqlType) -> Datum {
    match value.to_array() {
        Ok(array) => Reader::new(&array).get(0, ty),
        Err(_) => Datum::Null,
    }
}

/// An array of NULLs.
pub fn nulls(ty: &SqlType, rows: usize) -> ArrayRef {
    new_null_array(&data_type(ty), rows)
}
