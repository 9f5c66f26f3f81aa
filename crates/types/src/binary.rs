//! The binary forms of the wire protocol.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use bigdecimal::num_traits::{Signed, ToPrimitive, Zero};

use crate::array::{check_bounds, check_dimensions};
use crate::datetime::timestamp_in;
use crate::{
    ArrayValue, CastContext, Datum, Dimension, EnumValue, Geometry, Interval, Ordered, OrderedKind,
    RangeKind, Shape, SqlError, SqlResult, SqlState, SqlType, cast, json, jsonb, jsonpath, numeric,
    range, user_type,
};

fn malformed(ty: &SqlType) -> SqlError {
    SqlError::new(
        SqlState::INVALID_BINARY_REPRESENTATION,
        format!("incorrect binary data format for type {}", ty.name()),
    )
}

fn exact<const N: usize>(bytes: &[u8], ty: &SqlType) -> SqlResult<[u8; N]> {
    bytes.try_into().map_err(|_| malformed(ty))
}

/// UTF-8 without NUL bytes.
///
/// # Errors
/// 22021.
pub fn checked_text(bytes: &[u8]) -> SqlResult<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        Ok(_) => Err(SqlError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        )),
        Err(e) => {
            let at = e.valid_up_to();
            let end = (at + e.error_len().unwrap_or(1)).min(bytes.len());
            let hex: Vec<String> = bytes[at..end].iter().map(|b| format!("0x{b:02x}")).collect();
            Err(SqlError::new(
                SqlState::CHARACTER_NOT_IN_REPERTOIRE,
                format!("invalid byte sequence for encoding \"UTF8\": {}", hex.join(" ")),
            ))
        }
    }
}

impl Datum {
    /// Reads the binary form of a value that is not NULL.
    ///
    /// # Errors
    /// 22P03 for a wrong length or layout, 22021 for bytes that are not UTF-8, 22001/22003 when the
    /// value does not fit the type's modifiers.
    pub fn from_binary(bytes: &[u8], ty: &SqlType) -> SqlResult<Datum> {
        let value = match ty {
            SqlType::Bool => Datum::Bool(exact::<1>(bytes, ty)?[0] != 0),
            SqlType::Int2 => Datum::Int2(i16::from_be_bytes(exact(bytes, ty)?)),
            SqlType::Int4 => Datum::Int4(i32::from_be_bytes(exact(bytes, ty)?)),
            SqlType::Int8 => Datum::Int8(i64::from_be_bytes(exact(bytes, ty)?)),
            ty if ty.is_oid_like() => Datum::Oid(u32::from_be_bytes(exact(bytes, ty)?)),
            SqlType::Float4 => Datum::Float4(f32::from_be_bytes(exact(bytes, ty)?)),
            SqlType::Float8 => Datum::Float8(f64::from_be_bytes(exact(bytes, ty)?)),
            SqlType::Numeric(_) => numeric_in(bytes).ok_or_else(|| malformed(ty))?,
            SqlType::Bytea => Datum::Bytea(bytes.into()),
            SqlType::Date => Datum::Date(i32::from_be_bytes(exact(bytes, ty)?)),
            SqlType::Time => time_in(i64::from_be_bytes(exact(bytes, ty)?))?,
            SqlType::Timestamp => {
                Datum::Timestamp(timestamp_in(i64::from_be_bytes(exact(bytes, ty)?))?)
            }
            SqlType::TimestampTz => {
                Datum::TimestampTz(timestamp_in(i64::from_be_bytes(exact(bytes, ty)?))?)
            }
            SqlType::Interval => interval_in(bytes, ty)?,
            SqlType::Uuid => Datum::Uuid(exact(bytes, ty)?),
            SqlType::Jsonb => {
                let text = match bytes.split_first() {
                    Some((1, rest)) => rest,
                    // `json` has no version byte.
                    _ => bytes,
                };
                Datum::Jsonb(Arc::new(jsonb::parse(checked_text(text)?)?))
            }
            SqlType::Json => {
                let text = checked_text(bytes)?;
                json::check(text)?;
                Datum::Json(text.into())
            }
            SqlType::Jsonpath => path_in(bytes, ty)?,
            SqlType::Enum(enum_type) => Datum::Enum(EnumValue {
                ty: enum_type.clone(),
                place: enum_type.place_of(checked_text(bytes)?)?,
            }),
            SqlType::Array(element) => array_in(bytes, element).ok_or_else(|| malformed(ty))??,
            SqlType::Int2Vector | SqlType::OidVector => {
                vector_in(bytes, ty).ok_or_else(|| malformed(ty))??
            }
            ty if let Some(kind) = OrderedKind::of(ty) => {
                Datum::Ordered(Ordered::from_wire(kind, bytes).ok_or_else(|| malformed(ty))?)
            }
            SqlType::Range(kind) => {
                let value = range::from_wire(bytes, kind).ok_or_else(|| malformed(ty))??;
                Datum::Range(Arc::new(value))
            }
            SqlType::Geometry(kind) => {
                let shape = Geometry::from_wire(*kind, bytes).ok_or_else(|| malformed(ty))??;
                Datum::Geometry(Arc::new(shape))
            }
            SqlType::Multirange(kind) => multirange_in(bytes, kind, ty)?,
            SqlType::Composite(row) => {
                user_type::wire::from_wire(bytes, row).ok_or_else(|| malformed(ty))??
            }
            SqlType::Record => {
                return Err(SqlError::unsupported("input of anonymous composite types"));
            }
            SqlType::CharByte => byte_in(exact(bytes, ty)?),
            // Texts of all kinds.
            _ => Datum::text(checked_text(bytes)?),
        };
        cast::fit_modifiers(value, ty, CastContext::Assignment)
    }

    /// Appends the binary form of a value that is not NULL (NULL appends nothing: its length on the
    /// wire is -1).
    pub fn to_binary(&self, ty: &SqlType, out: &mut Vec<u8>) {
        match self {
            Datum::Null => {}
            Datum::Bool(b) => out.push(u8::from(*b)),
            Datum::Int2(v) => out.extend(v.to_be_bytes()),
            Datum::Int4(v) => out.extend(v.to_be_bytes()),
            Datum::Int8(v) => out.extend(v.to_be_bytes()),
            Datum::Oid(v) => out.extend(v.to_be_bytes()),
            Datum::Float4(v) => out.extend(v.to_be_bytes()),
            Datum::Float8(v) => out.extend(v.to_be_bytes()),
            Datum::Numeric(v) => numeric_out(v, out),
            Datum::NumericNan => out.extend([0, 0, 0, 0, 0xC0, 0, 0, 0]),
            Datum::NumericInf(false) => out.extend([0, 0, 0, 0, 0xD0, 0, 0, 0x20]),
            Datum::NumericInf(true) => out.extend([0, 0, 0, 0, 0xF0, 0, 0, 0x20]),
            Datum::Text(s) if *ty == SqlType::CharByte => out.push(cast::char_byte(s)),
            Datum::Text(s) => {
                out.extend((*ty == SqlType::Jsonpath).then_some(PATH_VERSION));
                out.extend(s.as_bytes());
            }
            Datum::Bytea(b) => out.extend(b.iter()),
            Datum::Date(d) => out.extend(d.to_be_bytes()),
            Datum::Time(t) | Datum::Timestamp(t) | Datum::TimestampTz(t) => {
                out.extend(t.to_be_bytes());
            }
            Datum::Interval(i) => {
                out.extend(i.micros.to_be_bytes());
                out.extend(i.days.to_be_bytes());
                out.extend(i.months.to_be_bytes());
            }
            Datum::Uuid(u) => out.extend(u),
            Datum::Jsonb(v) => {
                out.push(1);
                out.extend(jsonb::text(v).as_bytes());
            }
            Datum::Json(text) => out.extend(text.as_bytes()),
            Datum::Enum(value) => out.extend(value.label().as_bytes()),
            Datum::Ordered(value) => value.to_wire(out),
            Datum::Geometry(shape) => shape.to_wire(out),
            Datum::Range(value) => range::to_wire(value, out),
            Datum::Multirange(value) => range::multi::to_wire(value, out),
            Datum::Array(array) => array_out(array, ty, out),
            Datum::Record(row) => user_type::wire::to_wire(row, ty, out),
        }
    }

    /// The type that the variant alone tells: text for all text-like types, no modifiers.
    pub fn implied_type(&self) -> SqlType {
        match self {
            Datum::Null => SqlType::Unknown,
            Datum::Bool(_) => SqlType::Bool,
            Datum::Int2(_) => SqlType::Int2,
            Datum::Int4(_) => SqlType::Int4,
            Datum::Int8(_) => SqlType::Int8,
            Datum::Oid(_) => SqlType::Oid,
            Datum::Float4(_) => SqlType::Float4,
            Datum::Float8(_) => SqlType::Float8,
            Datum::Numeric(_) | Datum::NumericNan | Datum::NumericInf(_) => SqlType::Numeric(None),
            Datum::Json(_) => SqlType::Json,
            Datum::Text(_) => SqlType::Text,
            Datum::Bytea(_) => SqlType::Bytea,
            Datum::Date(_) => SqlType::Date,
            Datum::Time(_) => SqlType::Time,
            Datum::Timestamp(_) => SqlType::Timestamp,
            Datum::TimestampTz(_) => SqlType::TimestampTz,
            Datum::Interval(_) => SqlType::Interval,
            Datum::Uuid(_) => SqlType::Uuid,
            Datum::Jsonb(_) => SqlType::Jsonb,
            Datum::Enum(value) => SqlType::Enum(value.ty.clone()),
            Datum::Ordered(value) => value.kind().sql_type(),
            Datum::Geometry(shape) => SqlType::Geometry(shape.kind()),
            Datum::Range(value) => SqlType::Range(value.kind.clone()),
            Datum::Multirange(value) => SqlType::Multirange(value.kind.clone()),
            Datum::Array(a) if a.shape == Shape::Vector && a.element == SqlType::Oid => {
                SqlType::OidVector
            }
            Datum::Array(a) if a.shape == Shape::Vector => SqlType::Int2Vector,
            Datum::Array(a) => SqlType::Array(Box::new(a.element.clone())),
            Datum::Record(_) => SqlType::Record,
        }
    }
}

/// What stands in front of a path's text.
const PATH_VERSION: u8 = 1;

fn path_in(bytes: &[u8], ty: &SqlType) -> SqlResult<Datum> {
    let (version, text) = bytes.split_first().ok_or_else(|| malformed(ty))?;
    if *version != PATH_VERSION {
        let text = format!("unsupported jsonpath version number: {version}");
        return Err(SqlError::new(SqlState("XX000"), text));
    }
    jsonpath::Path::kept(checked_text(text)?).map(Datum::text)
}

/// `"char"`: the character of that number; 0 is no character.
fn byte_in([byte]: [u8; 1]) -> Datum {
    Datum::text(cast::shown_byte(byte))
}

fn interval_in(bytes: &[u8], ty: &SqlType) -> SqlResult<Datum> {
    let all: [u8; 16] = exact(bytes, ty)?;
    Ok(Datum::Interval(Interval {
        micros: i64::from_be_bytes(exact(&all[..8], ty)?),
        days: i32::from_be_bytes(exact(&all[8..12], ty)?),
        months: i32::from_be_bytes(exact(&all[12..], ty)?),
    }))
}

fn multirange_in(bytes: &[u8], kind: &RangeKind, ty: &SqlType) -> SqlResult<Datum> {
    let value = range::multi::from_wire(bytes, kind).ok_or_else(|| malformed(ty))??;
    Ok(Datum::Multirange(Arc::new(value)))
}

fn time_in(micros: i64) -> SqlResult<Datum> {
    if (0..=crate::MICROS_PER_DAY).contains(&micros) {
        return Ok(Datum::Time(micros));
    }
    Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "time out of range"))
}

/// A value behind its length; -1 for NULL.
pub(crate) fn sized(value: &Datum, ty: &SqlType, out: &mut Vec<u8>) {
    if value.is_null() {
        out.extend((-1i32).to_be_bytes());
        return;
    }
    let at = out.len();
    out.extend([0; 4]);
    value.to_binary(ty, out);
    let length = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn array_out(array: &ArrayValue, ty: &SqlType, out: &mut Vec<u8>) {
    let element = ty.element().unwrap_or(&array.element);
    let has_nulls = array.items.iter().any(Datum::is_null);
    let dimensions = array.dimensions();
    out.extend((dimensions.len() as i32).to_be_bytes());
    out.extend(i32::from(has_nulls).to_be_bytes());
    out.extend(element.oid().to_be_bytes());
    for dimension in dimensions {
        out.extend((dimension.length as i32).to_be_bytes());
        out.extend(dimension.lower.to_be_bytes());
    }
    for item in &array.items {
        sized(item, element, out);
    }
}

fn array_in(bytes: &[u8], element: &SqlType) -> Option<SqlResult<Datum>> {
    let mut rest = bytes;
    let mut int = || -> Option<i32> {
        let (head, tail) = rest.split_at_checked(4)?;
        rest = tail;
        Some(i32::from_be_bytes(head.try_into().expect("four bytes")))
    };
    let dimensions = int()?;
    let _flags = int()?;
    let oid = int()? as u32;
    let sender = SqlType::from_oid(oid, -1);
    // A type that is not built in may be a domain over the elements' type: its values are those.
    let domain = oid != 0 && sender.is_none() && SqlType::from_oid(element.oid(), -1).is_some();
    if oid != element.oid() && !domain {
        let sender = sender?;
        let both_text = sender.is_text_like() && element.is_text_like();
        if !both_text && !sender.same_base(element) {
            return None;
        }
    }
    let mut shape = Vec::new();
    let mut count = usize::from(dimensions > 0);
    for _ in 0..dimensions.max(0) {
        let (length, lower) = (usize::try_from(int()?).ok()?, int()?);
        count = count.checked_mul(length)?;
        shape.push(Dimension { lower, length });
        if let Err(e) = check_dimensions(shape.len()).and_then(|()| check_bounds(&shape)) {
            return Some(Err(e));
        }
    }
    // Each element has four bytes at least.
    if count > rest.len() / 4 {
        return None;
    }
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        let (head, tail) = rest.split_at_checked(4)?;
        let length = i32::from_be_bytes(head.try_into().expect("four bytes"));
        rest = tail;
        if length < 0 {
            items.push(Datum::Null);
            continue;
        }
        let (value, tail) = rest.split_at_checked(length as usize)?;
        rest = tail;
        match Datum::from_binary(value, element) {
            Ok(item) => items.push(item),
            Err(e) => return Some(Err(e)),
        }
    }
    if !rest.is_empty() {
        return None;
    }
    Some(Ok(Datum::Array(Arc::new(ArrayValue::of(element.clone(), items, &shape)))))
}

/// A vector: an array of one dimension, whatever its lower bound.
fn vector_in(bytes: &[u8], ty: &SqlType) -> Option<SqlResult<Datum>> {
    let element = ty.element()?;
    Some(match array_in(bytes, element)? {
        Ok(Datum::Array(array)) if array.dimensions().len() <= 1 => {
            let items = array.items.clone();
            Ok(Datum::Array(Arc::new(ArrayValue::vector(element.clone(), items))))
        }
        Ok(_) => return None,
        Err(e) => Err(e),
    })
}

/// Base-10000 digits, weight of the first, sign, display scale.
fn numeric_out(value: &BigDecimal, out: &mut Vec<u8>) {
    let (digits, scale) = numeric::parts(value);
    if let (Some(small), Ok(scale)) = (digits.to_i128(), u16::try_from(scale))
        && push_numeric(small, scale, out)
    {
        return;
    }
    let negative = digits.is_negative();
    // Pad so that the point falls between groups of four.
    let pad = (4 - scale.rem_euclid(4)) % 4;
    let mut magnitude = digits.abs() * BigInt::from(10u8).pow(pad as u32);
    let base = BigInt::from(10_000u16);
    let mut groups: Vec<u16> = Vec::new();
    while !magnitude.is_zero() {
        groups.push((&magnitude % &base).to_u16().expect("below 10000"));
        magnitude /= &base;
    }
    let fraction_groups = (scale + pad) / 4;
    let weight = groups.len() as i64 - fraction_groups - 1;
    groups.reverse();
    while groups.last() == Some(&0) {
        groups.pop();
    }
    out.extend((groups.len() as i16).to_be_bytes());
    out.extend((if groups.is_empty() { 0 } else { weight as i16 }).to_be_bytes());
    out.extend((if negative { 0x4000u16 } else { 0 }).to_be_bytes());
    out.extend((scale as i16).to_be_bytes());
    for group in groups {
        out.extend(group.to_be_bytes());
    }
}

/// The binary form of the numeric that an integer is at a scale. False, and nothing is written,
/// for numbers too large for that.
pub fn push_numeric(digits: i128, scale: u16, out: &mut Vec<u8>) -> bool {
    let pad = (4 - scale % 4) % 4;
    let Some(mut magnitude) = digits.unsigned_abs().checked_mul(10u128.pow(pad.into())) else {
        return false;
    };
    // From the last group to the first.
    let mut groups = [0u16; 11];
    let mut count = 0;
    while magnitude > 0 {
        (groups[count], magnitude) = match u64::try_from(magnitude) {
            Ok(small) => ((small % 10_000) as u16, u128::from(small / 10_000)),
            Err(_) => ((magnitude % 10_000) as u16, magnitude / 10_000),
        };
        count += 1;
    }
    let zeros = groups[..count].iter().take_while(|g| **g == 0).count();
    let fraction_groups = (scale + pad) / 4;
    let weight = if count == 0 { 0 } else { count as i16 - fraction_groups as i16 - 1 };
    out.extend(((count - zeros) as i16).to_be_bytes());
    out.extend(weight.to_be_bytes());
    out.extend((if digits < 0 { 0x4000u16 } else { 0 }).to_be_bytes());
    out.extend(scale.to_be_bytes());
    for group in groups[zeros..count].iter().rev() {
        out.extend(group.to_be_bytes());
    }
    true
}

/// The integer and the scale of a numeric in binary form. `None` for NaN and the infinities, for
/// numbers that do not fit, and for bytes that are no numeric.
pub fn small_numeric(bytes: &[u8]) -> Option<(i128, u8)> {
    let (head, groups) = bytes.split_first_chunk::<8>()?;
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let (count, weight) = (usize::from(word(0)), i64::from(word(2) as i16));
    let (sign, scale) = (word(4), word(6));
    if groups.len() != count * 2 || count > 8 || (sign != 0 && sign != 0x4000) {
        return None;
    }
    // 32 digits at most; then the zeros behind them, or without the digits that are not shown.
    let mut small = 0i128;
    for group in groups.chunks_exact(2) {
        let group = u16::from_be_bytes([group[0], group[1]]);
        small = small * 10_000 + i128::from(Some(group).filter(|g| *g <= 9_999)?);
    }
    let behind = (count as i64 - weight - 1) * 4 - i64::from(scale);
    let power = u32::try_from(behind.unsigned_abs()).ok().and_then(|n| 10i128.checked_pow(n));
    let shown = match (behind >= 0, power) {
        (true, Some(power)) => small / power,
        (true, None) => 0,
        (false, power) => small.checked_mul(power?)?,
    };
    Some((if sign == 0x4000 { -shown } else { shown }, u8::try_from(scale).ok()?))
}

fn numeric_in(bytes: &[u8]) -> Option<Datum> {
    let word = |at: usize| -> Option<u16> {
        Some(u16::from_be_bytes(bytes.get(at * 2..at * 2 + 2)?.try_into().ok()?))
    };
    let count = usize::from(word(0)?);
    let weight = i64::from(word(1)? as i16);
    let sign = word(2)?;
    let scale = i64::from(word(3)?);
    if bytes.len() != 8 + count * 2 {
        return None;
    }
    match sign {
        0xC000 => return Some(Datum::NumericNan),
        0xD000 => return Some(Datum::NumericInf(false)),
        0xF000 => return Some(Datum::NumericInf(true)),
        _ => {}
    }
    if sign != 0 && sign != 0x4000 {
        return None;
    }
    if let Some((small, scale)) = small_numeric(bytes) {
        return Some(Datum::Numeric(Arc::new(numeric::from_scaled(small, scale))));
    }
    let mut digits = BigInt::zero();
    for at in 0..count {
        let group = word(4 + at)?;
        if group > 9_999 {
            return None;
        }
        digits = digits * 10_000u16 + group;
    }
    if sign == 0x4000 {
        digits = -digits;
    }
    // The last group stands for 10000^(weight - count + 1).
    let exponent = (weight - count as i64 + 1) * 4;
    let value = BigDecimal::new(digits, -exponent);
    Some(Datum::Numeric(Arc::new(numeric::trunc(&value, scale))))
}
