//! One column value as bytes that sort as SQL sorts.
//!
//! Ascending bytes start with a tag that tells the kind and thereby the length; descending bytes
//! are the complement of the ascending ones, tag included, so they are self-delimiting as well.
//!
//! ```text
//!   tag ASC   value                     following bytes
//!   0F        end of an array or of a row
//!   10        NULL, NULLS FIRST
//!   28 / 29   false / true
//!   30..37    negative integer          8..1 bytes, big-endian, of the two's complement
//!   38        0
//!   39..40    positive integer          1..8 bytes, big-endian
//!   41        float                     8 bytes: sign-flipped IEEE bits, NaN greatest
//!   48        text, bytea, inet, bit .. bytes with 00 -> 00 FF, end 00 01
//!   4A        uuid                      16 bytes
//!   4C        interval                  16 bytes: total microseconds, sign-flipped
//!   4F        numeric -Infinity
//!   50..53    numeric -, 0, +, NaN      see `decimal`; +Infinity is + with exponent FF FF FF FF
//!   58        array                     elements (NULL = 7F), end 0F
//!   59        range                     00; or 01, lower, upper: see `encode_range`
//!   5A        row                       fields (NULL = 7F), end 0F
//!   5B        jsonb                     see `document`
//!   7F        NULL, NULLS LAST
//! ```
//! Descending tags are 80..F0, so no column starts with the child marker FE or with FF.

use std::sync::Arc;

use braid_types::{
    ArrayValue, CompositeType, Datum, Dimension, Interval, MultirangeValue, Ordered, OrderedKind,
    RangeKind, RangeValue, Shape, SqlError, SqlResult, SqlState, SqlType,
};

use crate::{decimal, document};

const LOW_GRID_END: u8 = 0x0E;
const ARRAY_END: u8 = 0x0F;
const NULL_FIRST: u8 = 0x10;
const GRID_END: u8 = 0x11;
const FALSE: u8 = 0x28;
const TRUE: u8 = 0x29;
const INT_ZERO: u8 = 0x38;
const INT_MIN_TAG: u8 = 0x30;
const INT_MAX_TAG: u8 = 0x40;
const FLOAT: u8 = 0x41;
pub(crate) const BYTES: u8 = 0x48;
const UUID: u8 = 0x4A;
const INTERVAL: u8 = 0x4C;
const NUMERIC_MINUS_INF: u8 = 0x4F;
pub(crate) const NUMERIC_NEG: u8 = 0x50;
pub(crate) const NUMERIC_ZERO: u8 = 0x51;
pub(crate) const NUMERIC_POS: u8 = 0x52;
pub(crate) const NUMERIC_NAN: u8 = 0x53;
const ARRAY: u8 = 0x58;
const RANGE: u8 = 0x59;
const ROW: u8 = 0x5A;
pub(crate) const DOCUMENT: u8 = 0x5B;
const NULL_LAST: u8 = 0x7F;

const MICROS_PER_DAY: i128 = 86_400_000_000;

/// How a key column sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Direction {
    /// DESC.
    pub desc: bool,
    /// NULLS FIRST. PostgreSQL's default is the value of `desc`.
    pub nulls_first: bool,
}

impl Direction {
    /// ASC NULLS LAST.
    pub const ASC: Direction = Direction { desc: false, nulls_first: false };
    /// DESC NULLS FIRST.
    pub const DESC: Direction = Direction { desc: true, nulls_first: true };
}

/// Whether two values of this type can be equal but not identical (1.0 and 1.00), so that a key
/// cannot give the value back and the row's value must hold it too.
pub fn is_composite(ty: &SqlType) -> bool {
    match ty {
        SqlType::Numeric(_) | SqlType::Float4 | SqlType::Float8 | SqlType::Interval => true,
        SqlType::Citext | SqlType::Jsonb => true,
        SqlType::Range(kind) | SqlType::Multirange(kind) => is_composite(&kind.element()),
        SqlType::Array(e) => is_composite(e),
        SqlType::Composite(ty) => ty.fields.iter().any(|f| is_composite(&f.ty)),
        _ => false,
    }
}

/// Whether values of this type can be key columns. `json` cannot.
pub fn is_key_type(ty: &SqlType) -> bool {
    match ty {
        SqlType::Json | SqlType::Record | SqlType::Void | SqlType::Unknown => false,
        SqlType::Int2Vector | SqlType::OidVector | SqlType::Geometry(_) => false,
        ty if ty.is_unordered_text() => false,
        SqlType::Array(e) => is_key_type(e),
        SqlType::Range(kind) | SqlType::Multirange(kind) => is_key_type(&kind.element()),
        SqlType::Composite(ty) => ty.fields.iter().all(|f| is_key_type(&f.ty)),
        _ => true,
    }
}

/// Appends the value's bytes.
///
/// # Errors
/// 0A000 for values of types that cannot be keys.
pub fn encode_column(out: &mut Vec<u8>, value: &Datum, dir: Direction) -> SqlResult<()> {
    let from = out.len();
    match value {
        // The tag is chosen so that after the complement NULL stands where it should.
        Datum::Null => out.push(if dir.nulls_first != dir.desc { NULL_FIRST } else { NULL_LAST }),
        v => encode_ascending(out, v)?,
    }
    if dir.desc {
        out[from..].iter_mut().for_each(|b| *b = !*b);
    }
    Ok(())
}

fn encode_ascending(out: &mut Vec<u8>, value: &Datum) -> SqlResult<()> {
    match value {
        Datum::Null => out.push(NULL_LAST),
        Datum::Bool(b) => out.push(if *b { TRUE } else { FALSE }),
        Datum::Int2(v) => encode_int(out, i64::from(*v)),
        Datum::Int4(v) | Datum::Date(v) => encode_int(out, i64::from(*v)),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => {
            encode_int(out, *v);
        }
        Datum::Oid(v) => encode_int(out, i64::from(*v)),
        Datum::Enum(v) => encode_int(out, v.place),
        Datum::Float4(v) => encode_float(out, f64::from(*v)),
        Datum::Float8(v) => encode_float(out, *v),
        Datum::Numeric(v) => decimal::encode(out, v),
        Datum::NumericNan => out.push(NUMERIC_NAN),
        Datum::NumericInf(true) => out.push(NUMERIC_MINUS_INF),
        // Above every exponent that a finite number has.
        Datum::NumericInf(false) => {
            out.extend_from_slice(&[NUMERIC_POS, 0xFF, 0xFF, 0xFF, 0xFF, 0])
        }
        Datum::Text(s) => encode_bytes(out, s.as_bytes()),
        Datum::Bytea(b) => encode_bytes(out, b),
        Datum::Ordered(value) => encode_bytes(out, &value.key()),
        Datum::Range(range) => encode_range(out, range)?,
        Datum::Multirange(value) => {
            // As an array of them, which sorts the same.
            out.push(ARRAY);
            value.ranges().iter().try_for_each(|range| encode_range(out, range))?;
            out.push(ARRAY_END);
        }
        Datum::Uuid(u) => {
            out.push(UUID);
            out.extend_from_slice(u);
        }
        Datum::Interval(i) => {
            let days = i128::from(i.months) * 30 + i128::from(i.days);
            let total = days * MICROS_PER_DAY + i128::from(i.micros);
            out.push(INTERVAL);
            out.extend_from_slice(&((total as u128) ^ (1 << 127)).to_be_bytes());
        }
        Datum::Array(a) => {
            out.push(ARRAY);
            for item in &a.items {
                encode_ascending(out, item)?;
            }
            match &a.shape {
                Shape::Grid(dimensions) => encode_grid(out, dimensions),
                Shape::List | Shape::Vector => out.push(ARRAY_END),
            }
        }
        Datum::Record(row) => {
            out.push(ROW);
            for field in row.iter() {
                encode_ascending(out, field)?;
            }
            out.push(ARRAY_END);
        }
        Datum::Geometry(shape) => {
            let ty = SqlType::Geometry(shape.kind());
            return Err(SqlError::unsupported(format!("a key column of type {ty}")));
        }
        Datum::Jsonb(value) => document::encode(out, value)?,
        Datum::Json(_) => return Err(SqlError::unsupported("a key column of type json")),
    }
    Ok(())
}

fn encode_int(out: &mut Vec<u8>, v: i64) {
    let bytes = v.to_be_bytes();
    if v >= 0 {
        let skip = (v.leading_zeros() / 8) as usize;
        out.push(INT_ZERO + (8 - skip) as u8);
        out.extend_from_slice(&bytes[skip..]);
    } else {
        // At least one byte, so that -1 is not taken for zero.
        let skip = (((!v).leading_zeros() / 8) as usize).min(7);
        out.push(INT_ZERO - (8 - skip) as u8);
        out.extend_from_slice(&bytes[skip..]);
    }
}

fn encode_float(out: &mut Vec<u8>, v: f64) {
    let v = if v == 0.0 { 0.0 } else { v };
    let bits = if v.is_nan() {
        u64::MAX
    } else {
        let b = v.to_bits();
        if b >> 63 == 1 { !b } else { b | (1 << 63) }
    };
    out.push(FLOAT);
    out.extend_from_slice(&bits.to_be_bytes());
}

pub(crate) fn encode_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(BYTES);
    let mut rest = bytes;
    while let Some(zero) = memchr::memchr(0, rest) {
        let (front, behind) = rest.split_at(zero + 1);
        out.extend_from_slice(front);
        out.push(0xFF);
        rest = behind;
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0x00, 0x01]);
}

/// Bytes of a key, read through the complement of a descending column.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    pos: usize,
    mask: u8,
}

impl Reader<'_> {
    pub(crate) fn byte(&mut self) -> SqlResult<u8> {
        let b = *self.bytes.get(self.pos).ok_or_else(truncated)?;
        self.pos += 1;
        Ok(b ^ self.mask)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> SqlResult<[u8; N]> {
        let mut out = [0; N];
        for b in &mut out {
            *b = self.byte()?;
        }
        Ok(out)
    }

    pub(crate) fn escaped(&mut self) -> SqlResult<Vec<u8>> {
        let mut out = Vec::new();
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    0x01 => return Ok(out),
                    0xFF => out.push(0),
                    _ => return Err(damaged()),
                },
                b => out.push(b),
            }
        }
    }

    fn int(&mut self, tag: u8) -> SqlResult<i64> {
        let n = usize::from(tag.abs_diff(INT_ZERO));
        let mut bytes = if tag < INT_ZERO { [0xFF; 8] } else { [0; 8] };
        for b in &mut bytes[8 - n..] {
            *b = self.byte()?;
        }
        Ok(i64::from_be_bytes(bytes))
    }
}

fn truncated() -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "a key ends in the middle of a column")
}

pub(crate) fn damaged() -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "a key holds a malformed column")
}

/// Decodes the value at the start of `bytes`; returns it and the length of its encoding.
///
/// # Errors
/// XX001 if the bytes are not an encoding of this type. Never panics on any input.
pub fn decode_column(bytes: &[u8], ty: &SqlType, dir: Direction) -> SqlResult<(Datum, usize)> {
    let mut r = Reader { bytes, pos: 0, mask: if dir.desc { 0xFF } else { 0 } };
    let tag = r.byte()?;
    let datum = if tag == NULL_FIRST { Datum::Null } else { decode_tagged(&mut r, tag, ty)? };
    Ok((datum, r.pos))
}

fn decode_tagged(r: &mut Reader<'_>, tag: u8, ty: &SqlType) -> SqlResult<Datum> {
    let bad = |_| damaged();
    Ok(match (tag, ty) {
        (NULL_LAST, _) => Datum::Null,
        (FALSE, SqlType::Bool) => Datum::Bool(false),
        (TRUE, SqlType::Bool) => Datum::Bool(true),
        (INT_MIN_TAG..=INT_MAX_TAG, _) => {
            let v = r.int(tag)?;
            match ty {
                SqlType::Int2 => Datum::Int2(v.try_into().map_err(bad)?),
                SqlType::Int4 => Datum::Int4(v.try_into().map_err(bad)?),
                SqlType::Int8 => Datum::Int8(v),
                ty if ty.is_oid_like() => Datum::Oid(v.try_into().map_err(bad)?),
                SqlType::Date => Datum::Date(v.try_into().map_err(bad)?),
                SqlType::Time => Datum::Time(v),
                SqlType::Timestamp => Datum::Timestamp(v),
                SqlType::TimestampTz => Datum::TimestampTz(v),
                SqlType::Enum(ty) => Datum::Enum(ty.value_at(v).ok_or_else(damaged)?),
                _ => return Err(damaged()),
            }
        }
        (FLOAT, SqlType::Float4 | SqlType::Float8) => {
            let bits = u64::from_be_bytes(r.array()?);
            let v = if bits == u64::MAX {
                f64::NAN
            } else {
                f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
            };
            if *ty == SqlType::Float4 { Datum::Float4(v as f32) } else { Datum::Float8(v) }
        }
        (BYTES, SqlType::Bytea) => Datum::Bytea(r.escaped()?.into()),
        (
            BYTES,
            SqlType::Text
            | SqlType::Varchar(_)
            | SqlType::Char(_)
            | SqlType::Name
            | SqlType::CharByte,
        ) => Datum::text(String::from_utf8(r.escaped()?).map_err(|_| damaged())?),
        (BYTES, ty) if let Some(kind) = OrderedKind::of(ty) => {
            let value = Ordered::from_bytes(kind, &r.escaped()?).ok_or_else(damaged)?;
            Datum::Ordered(value)
        }
        (RANGE, SqlType::Range(kind)) => decode_range(r, kind)?,
        (UUID, SqlType::Uuid) => Datum::Uuid(r.array()?),
        (INTERVAL, SqlType::Interval) => decode_interval(u128::from_be_bytes(r.array()?)),
        (NUMERIC_NEG | NUMERIC_ZERO | NUMERIC_POS, SqlType::Numeric(_)) => {
            match decimal::decode(r, tag)? {
                Some(finite) => Datum::Numeric(Arc::new(finite)),
                None => Datum::NumericInf(false),
            }
        }
        (NUMERIC_MINUS_INF, SqlType::Numeric(_)) => Datum::NumericInf(true),
        (NUMERIC_NAN, SqlType::Numeric(_)) => Datum::NumericNan,
        (ARRAY, SqlType::Array(element)) => decode_array(r, element)?,
        (ARRAY, SqlType::Multirange(kind)) => decode_multirange(r, kind)?,
        (ROW, SqlType::Composite(ty)) => decode_row(r, ty)?,
        (DOCUMENT, SqlType::Jsonb) => document::decode(r)?,
        _ => return Err(damaged()),
    })
}

fn decode_row(r: &mut Reader<'_>, ty: &CompositeType) -> SqlResult<Datum> {
    let mut fields = Vec::with_capacity(ty.fields.len());
    for field in &ty.fields {
        let tag = r.byte()?;
        fields.push(decode_tagged(r, tag, &field.ty)?);
    }
    if r.byte()? != ARRAY_END {
        return Err(damaged());
    }
    Ok(ty.value(fields))
}

fn decode_array(r: &mut Reader<'_>, element: &SqlType) -> SqlResult<Datum> {
    let mut items = Vec::new();
    let dimensions = loop {
        match r.byte()? {
            ARRAY_END => break Vec::new(),
            LOW_GRID_END | GRID_END => break decode_grid(r)?,
            t => items.push(decode_tagged(r, t, element)?),
        }
    };
    let places = dimensions.iter().try_fold(1usize, |n, d| n.checked_mul(d.length));
    if !dimensions.is_empty() && places != Some(items.len()) {
        return Err(damaged());
    }
    Ok(Datum::Array(Arc::new(ArrayValue::of(element.clone(), items, &dimensions))))
}

/// Marks of bounds that there are not: no lower one is before all, no upper one behind all.
const NO_LOWER: u8 = 0;
const NO_UPPER: u8 = 2;
const BOUND: u8 = 1;

/// 00: the empty range; else 01 and both bounds. A bound is a mark, its value, and whether it
/// belongs to the range: a lower one that does comes first, an upper one that does last.
fn encode_range(out: &mut Vec<u8>, range: &RangeValue) -> SqlResult<()> {
    out.push(RANGE);
    out.push(u8::from(!range.empty));
    if range.empty {
        return Ok(());
    }
    let bounds =
        [(&range.lower, NO_LOWER, !range.with_lower), (&range.upper, NO_UPPER, range.with_upper)];
    for (value, none, last) in bounds {
        if value.is_null() {
            out.push(none);
            continue;
        }
        out.push(BOUND);
        encode_ascending(out, value)?;
        out.push(u8::from(last));
    }
    Ok(())
}

fn decode_multirange(r: &mut Reader<'_>, kind: &RangeKind) -> SqlResult<Datum> {
    let mut ranges = Vec::new();
    loop {
        match r.byte()? {
            ARRAY_END => break,
            RANGE => match decode_range(r, kind)? {
                Datum::Range(range) => ranges.push((*range).clone()),
                _ => return Err(damaged()),
            },
            _ => return Err(damaged()),
        }
    }
    Ok(Datum::Multirange(Arc::new(MultirangeValue::new(kind, ranges))))
}

fn decode_range(r: &mut Reader<'_>, kind: &RangeKind) -> SqlResult<Datum> {
    if r.byte()? == 0 {
        return Ok(Datum::Range(Arc::new(RangeValue::empty(kind))));
    }
    let mut bound = |none: u8| {
        if r.byte()? == none {
            return Ok((Datum::Null, false));
        }
        let tag = r.byte()?;
        let value = decode_tagged(r, tag, &kind.element())?;
        Ok((value, r.byte()? != 0))
    };
    let ((lower, without_lower), (upper, with_upper)) = (bound(NO_LOWER)?, bound(NO_UPPER)?);
    let range = RangeValue::new(kind, lower, upper, (!without_lower, with_upper));
    Ok(Datum::Range(Arc::new(range.map_err(|_| damaged())?)))
}

/// After the elements of an array that is not one list from 1: number of dimensions, and of each
/// its length, then of each its first subscript. Arrays of equal elements sort by that; a list from
/// 1 has only its mark, which lies between those of one dimension from less and all others.
fn encode_grid(out: &mut Vec<u8>, dimensions: &[Dimension]) {
    let low = matches!(dimensions, [Dimension { lower: ..=0, .. }]);
    out.push(if low { LOW_GRID_END } else { GRID_END });
    out.push(dimensions.len() as u8);
    for dimension in dimensions {
        out.extend_from_slice(&(dimension.length as u32).to_be_bytes());
    }
    for dimension in dimensions {
        out.extend_from_slice(&((dimension.lower as u32) ^ (1 << 31)).to_be_bytes());
    }
}

fn decode_grid(r: &mut Reader<'_>) -> SqlResult<Vec<Dimension>> {
    let count = r.byte()?;
    braid_types::check_dimensions(count.into()).map_err(|_| damaged())?;
    let mut dimensions = Vec::new();
    for _ in 0..count {
        let length = u32::from_be_bytes(r.array()?) as usize;
        dimensions.push(Dimension { lower: 1, length });
    }
    for dimension in &mut dimensions {
        dimension.lower = (u32::from_be_bytes(r.array()?) ^ (1 << 31)) as i32;
    }
    Ok(dimensions)
}

/// A value that equals the encoded one, in months, days and microseconds of PostgreSQL's
/// justified form.
fn decode_interval(bits: u128) -> Datum {
    let total = (bits ^ (1 << 127)) as i128;
    let days = total / MICROS_PER_DAY;
    let clamp = |v: i128| i32::try_from(v).unwrap_or(if v < 0 { i32::MIN } else { i32::MAX });
    Datum::Interval(Interval {
        months: clamp(days / 30),
        days: clamp(days % 30),
        micros: (total % MICROS_PER_DAY) as i64,
    })
}

/// Length of the column at the start of `bytes`, without knowing its type or direction.
///
/// # Errors
/// XX001 if no column starts here.
#[inline]
pub fn skip_column(bytes: &[u8]) -> SqlResult<usize> {
    let first = *bytes.first().ok_or_else(truncated)?;
    let tag = if first >= 0x80 { !first } else { first };
    let len = match tag {
        INT_MIN_TAG..=INT_MAX_TAG => 1 + usize::from(tag.abs_diff(INT_ZERO)),
        BYTES => return skip_bytes(bytes),
        _ => return skip_any(bytes),
    };
    if len > bytes.len() { Err(truncated()) } else { Ok(len) }
}

/// As [`skip_column`], of text.
fn skip_bytes(bytes: &[u8]) -> SqlResult<usize> {
    let mask = if bytes[0] >= 0x80 { 0xFF } else { 0 };
    let mut at = 1;
    loop {
        at += bytes[at..].iter().position(|b| *b == mask).ok_or_else(truncated)? + 1;
        match bytes.get(at).map(|b| b ^ mask) {
            Some(0x01) => return Ok(at + 1),
            Some(0xFF) => at += 1,
            Some(_) => return Err(damaged()),
            None => return Err(truncated()),
        }
    }
}

/// The integer (also of a date or a time) that is all of `bytes`, in either direction. `None` for
/// NULL.
///
/// # Errors
/// XX001 if the bytes are no such encoding.
#[inline]
pub fn decode_int(bytes: &[u8]) -> SqlResult<Option<i64>> {
    let first = *bytes.first().ok_or_else(truncated)?;
    let mask = if first >= 0x80 { u64::MAX } else { 0 };
    let tag = first ^ mask as u8;
    if tag == NULL_FIRST || tag == NULL_LAST {
        return Ok(None);
    }
    let len = usize::from(tag.abs_diff(INT_ZERO));
    if !(INT_MIN_TAG..=INT_MAX_TAG).contains(&tag) || bytes.len() != len + 1 {
        return Err(damaged());
    }
    let mut wide = [0; 8];
    wide[8 - len..].copy_from_slice(&bytes[1..]);
    // The bytes in front of those that are kept are the sign.
    let kept = if len == 0 { 0 } else { u64::MAX >> (64 - 8 * len) };
    let value = (u64::from_be_bytes(wide) ^ mask) & kept;
    let sign = if tag < INT_ZERO { !kept } else { 0 };
    Ok(Some((value | sign) as i64))
}

/// Appends the text or bytes that are all of `bytes`, in either direction; `false`: NULL.
///
/// # Errors
/// XX001 if the bytes are no such encoding.
pub fn decode_bytes(bytes: &[u8], out: &mut Vec<u8>) -> SqlResult<bool> {
    let first = *bytes.first().ok_or_else(truncated)?;
    let mask = if first >= 0x80 { 0xFF } else { 0 };
    match first ^ mask {
        NULL_FIRST | NULL_LAST => return Ok(false),
        BYTES => {}
        _ => return Err(damaged()),
    }
    let from = out.len();
    let mut at = 1;
    loop {
        let len = bytes[at..].iter().position(|b| *b == mask).ok_or_else(truncated)?;
        out.extend_from_slice(&bytes[at..at + len]);
        at += len + 2;
        match bytes.get(at - 1).map(|b| b ^ mask) {
            Some(0x01) => break,
            Some(0xFF) => out.push(mask),
            Some(_) => return Err(damaged()),
            None => return Err(truncated()),
        }
    }
    if mask != 0 {
        out[from..].iter_mut().for_each(|b| *b = !*b);
    }
    Ok(true)
}

/// As [`skip_column`], of any kind.
fn skip_any(bytes: &[u8]) -> SqlResult<usize> {
    let first = *bytes.first().ok_or_else(truncated)?;
    let mut r = Reader { bytes, pos: 0, mask: if first >= 0x80 { 0xFF } else { 0 } };
    let tag = r.byte()?;
    skip_tagged(&mut r, tag)?;
    Ok(r.pos)
}

fn skip_tagged(r: &mut Reader<'_>, tag: u8) -> SqlResult<()> {
    let fixed = match tag {
        NULL_FIRST | NULL_LAST | FALSE | TRUE | NUMERIC_ZERO | NUMERIC_NAN | NUMERIC_MINUS_INF => 0,
        INT_MIN_TAG..=INT_MAX_TAG => usize::from(tag.abs_diff(INT_ZERO)),
        FLOAT => 8,
        UUID | INTERVAL => 16,
        BYTES => {
            r.escaped()?;
            0
        }
        RANGE => {
            if r.byte()? != 0 {
                for none in [NO_LOWER, NO_UPPER] {
                    if r.byte()? != none {
                        let tag = r.byte()?;
                        skip_tagged(r, tag)?;
                        r.byte()?;
                    }
                }
            }
            0
        }
        NUMERIC_NEG | NUMERIC_POS => {
            decimal::skip(r, tag)?;
            0
        }
        DOCUMENT => {
            document::decode(r)?;
            0
        }
        ARRAY | ROW => {
            loop {
                match r.byte()? {
                    ARRAY_END => break,
                    LOW_GRID_END | GRID_END => {
                        decode_grid(r)?;
                        break;
                    }
                    t => skip_tagged(r, t)?,
                }
            }
            0
        }
        _ => return Err(damaged()),
    };
    for _ in 0..fixed {
        r.byte()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ways_say_what_the_long_way_says() {
        let ints = (0..64).flat_map(|n| [-1, 0, 1].map(|d| (1i64 << n).wrapping_add(d)));
        let ints = ints.flat_map(|v| [v, v.wrapping_neg()]).map(Datum::Int8);
        let texts = ["", "a", "a\0b", "\0", "\0\0", "\u{7f}\u{80}\u{ff}", "héllo"];
        let texts = texts.map(Datum::text);
        let others = [Datum::Null, Datum::Bool(true), Datum::Float8(-2.5), Datum::Uuid([7; 16])];
        let desc = Direction { desc: true, nulls_first: false };
        let directions = [Direction::ASC, Direction::DESC, desc];
        for value in ints.chain(texts).chain(others) {
            for dir in directions {
                let mut key = Vec::new();
                encode_column(&mut key, &value, dir).unwrap();
                let len = key.len();
                key.extend(b"\xfe rest");
                assert_eq!(skip_column(&key).unwrap(), skip_any(&key).unwrap(), "{value:?}");
                assert_eq!(skip_column(&key).unwrap(), len, "{value:?}");
                let mut out = b"before".to_vec();
                match &value {
                    Datum::Int8(v) => assert_eq!(decode_int(&key[..len]).unwrap(), Some(*v)),
                    Datum::Text(text) => {
                        assert!(decode_bytes(&key[..len], &mut out).unwrap());
                        assert_eq!(out, [b"before", text.as_bytes()].concat());
                    }
                    Datum::Null => {
                        assert_eq!(decode_int(&key[..len]).unwrap(), None);
                        assert!(!decode_bytes(&key[..len], &mut out).unwrap());
                    }
                    _ => {
                        decode_int(&key[..len]).unwrap_err();
                        decode_bytes(&key[..len], &mut out).unwrap_err();
                    }
                }
                for cut in 0..len {
                    skip_column(&key[..cut]).unwrap_err();
                    decode_int(&key[..cut]).unwrap_err();
                    decode_bytes(&key[..cut], &mut out).unwrap_err();
                }
            }
        }
    }
}
