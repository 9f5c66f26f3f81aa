//! Payloads: the bytes of one value in a row (`row_value.rs`). The reader knows the type.
//! Byte table: `docs/formats/keys.md`.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use braid_types::{
    ArrayValue, CompositeType, Datum, Dimension, Geometry, Interval, MultirangeValue, Ordered,
    OrderedKind, RangeKind, RangeValue, Shape, SqlResult, SqlType,
};

use super::row_value::damaged;

/// A number of one byte or two, which most are, or of more.
#[inline]
pub(super) fn short_varint(bytes: &mut &[u8]) -> SqlResult<u64> {
    match **bytes {
        [b, ref rest @ ..] if b < 0x80 => {
            *bytes = rest;
            Ok(u64::from(b))
        }
        [b, c, ref rest @ ..] if c < 0x80 => {
            *bytes = rest;
            Ok(u64::from(b & 0x7F) | u64::from(c) << 7)
        }
        _ => read_varint(bytes),
    }
}

/// An integer's payload.
#[inline]
pub(super) fn decode_integer(mut payload: &[u8]) -> SqlResult<i64> {
    short_varint(&mut payload).map(unzigzag)
}

/// What a numeric's payload is at a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecimalOf {
    /// So many units of the scale.
    Number(i128),
    /// NaN.
    NotANumber,
    /// Infinite, too large, or with more digits than the scale.
    Unfit,
}

/// A numeric's payload as a number of units of 10^-`scale`.
#[inline]
pub(super) fn decode_decimal(payload: &[u8], scale: i64) -> SqlResult<DecimalOf> {
    if payload.is_empty() {
        return Ok(DecimalOf::NotANumber);
    }
    let mut digits = payload;
    let own = unzigzag(short_varint(&mut digits)?);
    let value = match digits.len() {
        1..=8 => i128::from(little_endian(digits)),
        9..=16 => {
            let (low, high) = digits.split_at(8);
            i128::from(little_endian(high)) << 64 | i128::from(little_endian(low) as u64)
        }
        _ => return Ok(DecimalOf::Unfit),
    };
    if own == scale {
        return Ok(DecimalOf::Number(value));
    }
    let power = |n: i64| u32::try_from(n).ok().and_then(|n| 10i128.checked_pow(n));
    let scaled = match power(scale - own) {
        Some(factor) => value.checked_mul(factor),
        None => power(own - scale).filter(|by| value % by == 0).map(|by| value / by),
    };
    Ok(scaled.map_or(DecimalOf::Unfit, DecimalOf::Number))
}

/// One to eight bytes of two's complement, the lowest first: without a copy of unknown length.
#[inline]
fn little_endian(bytes: &[u8]) -> i64 {
    let n = bytes.len();
    debug_assert!((1..=8).contains(&n), "a number of one to eight bytes");
    // The first and the last bytes of it; what is in both is the same.
    let wide = if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (low, high) = (u32::from_le_bytes(*low), u32::from_le_bytes(*high));
        u64::from(low) | u64::from(high) << (8 * (n - 4))
    } else if let (Some(low), Some(high)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (low, high) = (u16::from_le_bytes(*low), u16::from_le_bytes(*high));
        u64::from(low) | u64::from(high) << (8 * (n - 2))
    } else {
        u64::from(bytes[0])
    };
    let unused = 64 - 8 * n as u32;
    (wide << unused) as i64 >> unused
}

/// LEB128.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

pub(crate) fn read_varint(bytes: &mut &[u8]) -> SqlResult<u64> {
    let mut v = 0u64;
    for shift in (0..64).step_by(7) {
        let (&b, rest) = bytes.split_first().ok_or_else(|| damaged("number"))?;
        *bytes = rest;
        v |= u64::from(b & 0x7F) << shift;
        if b < 0x80 {
            return Ok(v);
        }
    }
    Err(damaged("number"))
}

fn zigzag(v: i64) -> u64 {
    ((v << 1) ^ (v >> 63)) as u64
}

fn unzigzag(v: u64) -> i64 {
    ((v >> 1) as i64) ^ -((v & 1) as i64)
}

/// Appends a value's payload; its type is known to the reader.
pub fn encode_payload(out: &mut Vec<u8>, value: &Datum) {
    match value {
        Datum::Null => {}
        Datum::Bool(b) => out.push(u8::from(*b)),
        Datum::Int2(v) => push_varint(out, zigzag(i64::from(*v))),
        Datum::Int4(v) | Datum::Date(v) => push_varint(out, zigzag(i64::from(*v))),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => {
            push_varint(out, zigzag(*v));
        }
        Datum::Oid(v) => push_varint(out, zigzag(i64::from(*v))),
        Datum::Enum(v) => push_varint(out, zigzag(v.place)),
        Datum::Float4(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Float8(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Numeric(v) => {
            let (digits, scale) = v.as_bigint_and_exponent();
            push_varint(out, zigzag(scale));
            out.extend_from_slice(&digits.to_signed_bytes_le());
        }
        Datum::NumericNan => {}
        // A finite number has at least one byte after its scale.
        Datum::NumericInf(negative) => push_varint(out, zigzag(if *negative { -1 } else { 1 })),
        Datum::Json(text) => out.extend_from_slice(text.as_bytes()),
        Datum::Text(s) => out.extend_from_slice(s.as_bytes()),
        Datum::Bytea(b) => out.extend_from_slice(b),
        Datum::Ordered(value) => out.extend_from_slice(value.bytes()),
        Datum::Geometry(shape) => out.extend_from_slice(&shape.bytes()),
        Datum::Range(range) => encode_range(out, range),
        Datum::Multirange(value) => {
            for range in value.ranges() {
                let mut payload = Vec::new();
                encode_range(&mut payload, range);
                push_varint(out, payload.len() as u64);
                out.extend_from_slice(&payload);
            }
        }
        Datum::Uuid(u) => out.extend_from_slice(u),
        Datum::Interval(i) => {
            push_varint(out, zigzag(i64::from(i.months)));
            push_varint(out, zigzag(i64::from(i.days)));
            push_varint(out, zigzag(i.micros));
        }
        Datum::Jsonb(j) => out.extend_from_slice(braid_types::jsonb::text(j).as_bytes()),
        Datum::Array(a) => {
            if let Shape::Grid(dimensions) = &a.shape {
                encode_dimensions(out, dimensions);
            }
            a.items.iter().for_each(|item| encode_part(out, item));
        }
        Datum::Record(row) => {
            push_varint(out, row.len() as u64);
            row.iter().for_each(|field| encode_part(out, field));
        }
    }
}

/// An element or a field: 0 for NULL, else its payload behind its length and one.
pub fn encode_part(out: &mut Vec<u8>, part: &Datum) {
    if part.is_null() {
        return push_varint(out, 0);
    }
    let mut payload = Vec::new();
    encode_payload(&mut payload, part);
    push_varint(out, payload.len() as u64 + 1);
    out.extend_from_slice(&payload);
}

/// What [`encode_part`] wrote.
pub fn decode_part(b: &mut &[u8], ty: &SqlType) -> SqlResult<Datum> {
    let length = read_varint(b)?;
    let Some(length) = length.checked_sub(1) else { return Ok(Datum::Null) };
    let cut = usize::try_from(length).ok().and_then(|length| b.split_at_checked(length));
    let (payload, rest) = cut.ok_or_else(|| damaged("a part of a value"))?;
    *b = rest;
    decode_payload(payload, ty)
}

fn decode_row(mut b: &[u8], ty: &CompositeType) -> SqlResult<Datum> {
    let stored = read_varint(&mut b)?;
    if stored > ty.fields.len() as u64 {
        return Err(damaged("fields of a row"));
    }
    let mut fields = Vec::with_capacity(ty.fields.len());
    for field in &ty.fields[..stored as usize] {
        fields.push(decode_part(&mut b, &field.ty)?);
    }
    // The type has got more since.
    fields.resize(ty.fields.len(), Datum::Null);
    Ok(ty.value(fields))
}

/// The value of a payload.
///
/// # Errors
/// XX001 if the payload is not of this type.
pub fn decode_payload(mut b: &[u8], ty: &SqlType) -> SqlResult<Datum> {
    let int = |b: &mut &[u8]| read_varint(b).map(unzigzag);
    let narrow = |_| damaged("integer out of range");
    Ok(match ty {
        SqlType::Bool => Datum::Bool(b.first() == Some(&1)),
        SqlType::Int2 => Datum::Int2(int(&mut b)?.try_into().map_err(narrow)?),
        SqlType::Int4 => Datum::Int4(int(&mut b)?.try_into().map_err(narrow)?),
        SqlType::Int8 => Datum::Int8(int(&mut b)?),
        SqlType::Date => Datum::Date(int(&mut b)?.try_into().map_err(narrow)?),
        SqlType::Time => Datum::Time(int(&mut b)?),
        SqlType::Timestamp => Datum::Timestamp(int(&mut b)?),
        SqlType::TimestampTz => Datum::TimestampTz(int(&mut b)?),
        ty if ty.is_oid_like() => Datum::Oid(int(&mut b)?.try_into().map_err(narrow)?),
        SqlType::Enum(ty) => {
            let value = ty.value_at(int(&mut b)?);
            Datum::Enum(value.ok_or_else(|| damaged("a value that its enum type has not"))?)
        }
        SqlType::Float4 => {
            Datum::Float4(f32::from_le_bytes(b.try_into().map_err(|_| damaged("real"))?))
        }
        SqlType::Float8 => {
            Datum::Float8(f64::from_le_bytes(b.try_into().map_err(|_| damaged("double"))?))
        }
        SqlType::Numeric(_) if b.is_empty() => Datum::NumericNan,
        SqlType::Json => {
            Datum::Json(std::str::from_utf8(b).map_err(|_| damaged("json is not UTF-8"))?.into())
        }
        SqlType::Numeric(_) => {
            let scale = int(&mut b)?;
            if b.is_empty() {
                return Ok(Datum::NumericInf(scale < 0));
            }
            Datum::Numeric(Arc::new(BigDecimal::new(BigInt::from_signed_bytes_le(b), scale)))
        }
        ty if ty.is_text_like() || ty.is_unordered_text() => {
            Datum::text(std::str::from_utf8(b).map_err(|_| damaged("text is not UTF-8"))?)
        }
        SqlType::Bytea => Datum::Bytea(b.into()),
        SqlType::Uuid => Datum::Uuid(b.try_into().map_err(|_| damaged("uuid"))?),
        SqlType::Interval => Datum::Interval(Interval {
            months: int(&mut b)?.try_into().map_err(narrow)?,
            days: int(&mut b)?.try_into().map_err(narrow)?,
            micros: int(&mut b)?,
        }),
        SqlType::Jsonb => {
            let text = std::str::from_utf8(b).map_err(|_| damaged("jsonb is not UTF-8"))?;
            Datum::Jsonb(Arc::new(serde_json::from_str(text).map_err(|_| damaged("jsonb"))?))
        }
        SqlType::Array(element) => decode_array(b, element)?,
        SqlType::Int2Vector => decode_vector(b, SqlType::Int2)?,
        SqlType::OidVector => decode_vector(b, SqlType::Oid)?,
        SqlType::Composite(ty) => decode_row(b, ty)?,
        SqlType::Range(kind) => Datum::Range(Arc::new(decode_range(b, kind)?)),
        SqlType::Multirange(kind) => decode_multirange(b, kind)?,
        SqlType::Geometry(kind) => {
            let value = Geometry::from_bytes(*kind, b);
            Datum::Geometry(Arc::new(value.ok_or_else(|| damaged(&ty.name()))?))
        }
        ty if let Some(kind) = OrderedKind::of(ty) => {
            let value = Ordered::from_bytes(kind, b);
            Datum::Ordered(value.ok_or_else(|| damaged(&ty.name()))?)
        }
        _ => return Err(damaged("type")),
    })
}

/// Flags of a stored range: what it is not, and which bounds belong to it.
const EMPTY: u8 = 1;
const WITH_LOWER: u8 = 2;
const WITH_UPPER: u8 = 4;
const NO_LOWER: u8 = 8;
const NO_UPPER: u8 = 16;

fn encode_range(out: &mut Vec<u8>, range: &RangeValue) {
    let flags = [
        (range.empty, EMPTY),
        (range.with_lower, WITH_LOWER),
        (range.with_upper, WITH_UPPER),
        (range.lower.is_null(), NO_LOWER),
        (range.upper.is_null(), NO_UPPER),
    ];
    out.push(flags.iter().filter(|(on, _)| *on).map(|(_, flag)| flag).sum());
    for bound in [&range.lower, &range.upper].into_iter().filter(|b| !b.is_null()) {
        let mut payload = Vec::new();
        encode_payload(&mut payload, bound);
        push_varint(out, payload.len() as u64);
        out.extend_from_slice(&payload);
    }
}

fn decode_multirange(mut b: &[u8], kind: &RangeKind) -> SqlResult<Datum> {
    let mut ranges = Vec::new();
    while !b.is_empty() {
        let length = read_varint(&mut b)? as usize;
        let parts = b.split_at_checked(length).ok_or_else(|| damaged("multirange"))?;
        ranges.push(decode_range(parts.0, kind)?);
        b = parts.1;
    }
    Ok(Datum::Multirange(Arc::new(MultirangeValue::new(kind, ranges))))
}

fn decode_range(b: &[u8], kind: &RangeKind) -> SqlResult<RangeValue> {
    let bad = || damaged("range");
    let (&flags, mut rest) = b.split_first().ok_or_else(bad)?;
    if flags & EMPTY != 0 {
        return Ok(RangeValue::empty(kind));
    }
    let mut bound = |none: u8| {
        if flags & none != 0 {
            return Ok(Datum::Null);
        }
        let length = read_varint(&mut rest)? as usize;
        let (payload, after) = rest.split_at_checked(length).ok_or_else(bad)?;
        rest = after;
        decode_payload(payload, &kind.element())
    };
    let (lower, upper) = (bound(NO_LOWER)?, bound(NO_UPPER)?);
    let with = (flags & WITH_LOWER != 0, flags & WITH_UPPER != 0);
    RangeValue::new(kind, lower, upper, with).map_err(|_| bad())
}

/// In front of the elements of an array that is not one list from 1: no element is that long.
const GRID: u64 = u64::MAX;

fn encode_dimensions(out: &mut Vec<u8>, dimensions: &[Dimension]) {
    push_varint(out, GRID);
    push_varint(out, dimensions.len() as u64);
    for dimension in dimensions {
        push_varint(out, dimension.length as u64);
        push_varint(out, zigzag(dimension.lower.into()));
    }
}

fn decode_dimensions(b: &mut &[u8]) -> SqlResult<Vec<Dimension>> {
    let bad = || damaged("dimensions of an array");
    let mut rest = *b;
    if rest.is_empty() || read_varint(&mut rest)? != GRID {
        return Ok(Vec::new());
    }
    let mut dimensions = Vec::new();
    for _ in 0..read_varint(&mut rest)? {
        let length = usize::try_from(read_varint(&mut rest)?).map_err(|_| bad())?;
        let lower = i32::try_from(unzigzag(read_varint(&mut rest)?)).map_err(|_| bad())?;
        dimensions.push(Dimension { lower, length });
        braid_types::check_dimensions(dimensions.len()).map_err(|_| bad())?;
    }
    *b = rest;
    Ok(dimensions)
}

fn decode_array(mut b: &[u8], element: &SqlType) -> SqlResult<Datum> {
    let dimensions = decode_dimensions(&mut b)?;
    let mut items = Vec::new();
    while !b.is_empty() {
        items.push(decode_part(&mut b, element)?);
    }
    let places = dimensions.iter().try_fold(1usize, |n, d| n.checked_mul(d.length));
    if !dimensions.is_empty() && places != Some(items.len()) {
        return Err(damaged("dimensions of an array"));
    }
    Ok(Datum::Array(Arc::new(ArrayValue::of(element.clone(), items, &dimensions))))
}

fn decode_vector(mut b: &[u8], element: SqlType) -> SqlResult<Datum> {
    let mut items = Vec::new();
    while !b.is_empty() {
        items.push(decode_part(&mut b, &element)?);
    }
    Ok(Datum::Array(Arc::new(ArrayValue::vector(element, items))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_the_numbers_that_rows_hold() {
        for text in ["0", "1.5", "-0.01", "99999999999999999999999999999999999.99", "7", "1e5"] {
            let number: BigDecimal = text.parse().unwrap();
            let mut payload = Vec::new();
            encode_payload(&mut payload, &Datum::Numeric(Arc::new(number.clone())));
            let expected = (number * BigDecimal::from(100)).to_string().parse::<BigDecimal>();
            let DecimalOf::Number(units) = decode_decimal(&payload, 2).unwrap() else {
                panic!("{text} fits");
            };
            assert_eq!(BigDecimal::from(units), expected.unwrap(), "{text}");
        }
        for bits in 0..127 {
            for units in [1i128 << bits, (1 << bits) - 1, -(1 << bits), 1 - (1 << bits), -1] {
                let number = BigDecimal::new(units.into(), 2);
                let mut payload = Vec::new();
                encode_payload(&mut payload, &Datum::Numeric(Arc::new(number)));
                let decoded = decode_decimal(&payload, 2).unwrap();
                assert_eq!(decoded, DecimalOf::Number(units), "{bits} bits");
            }
        }
        let unfit = |value: Datum| {
            let mut payload = Vec::new();
            encode_payload(&mut payload, &value);
            decode_decimal(&payload, 2).unwrap()
        };
        let number = |text: &str| Datum::Numeric(Arc::new(text.parse().unwrap()));
        assert_eq!(unfit(number("1.005")), DecimalOf::Unfit);
        assert_eq!(unfit(number("1e40")), DecimalOf::Unfit);
        assert_eq!(unfit(Datum::NumericInf(true)), DecimalOf::Unfit);
        assert_eq!(unfit(Datum::NumericNan), DecimalOf::NotANumber);
    }
}
