//! Conversions between types: which exist, in which context, and what they compute.

use std::sync::Arc;

use crate::datetime::{
    DATE_INFINITY, DATE_MINUS_INFINITY, MICROS_PER_DAY, check_date, check_timestamp,
};
use crate::geometry::cast as geometry;
use crate::oid::pseudo_type_name;
use crate::ordered::bits::fit;
use crate::ordered::cast as ordered;
use crate::text_in::{bad_input, clip_name, parse_base};
use crate::{
    ArrayValue, Datum, Interval, MultirangeValue, SqlError, SqlResult, SqlState, SqlType, Style,
    TypeCategory, numeric, quote_ident, system_type_name,
};

/// Where a conversion happens. Later contexts allow more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CastContext {
    /// Inside an expression, unasked.
    Implicit,
    /// Storing into a column.
    Assignment,
    /// CAST or `::`.
    Explicit,
}

/// The least context in which a value of `from` converts to `to`; `None` if never. Modifiers do
/// not matter.
pub fn cast_exists(from: &SqlType, to: &SqlType) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit, Implicit};
    use SqlType as T;
    if from.same_base(to) || *from == T::Unknown {
        return Some(Implicit);
    }
    if let (T::Array(a), T::Array(b)) = (from, to) {
        return cast_exists(a, b);
    }
    if from.is_vector() && matches!(to, T::Array(_)) {
        return cast_exists(from.element()?, to.element()?);
    }
    if to.is_vector() && matches!(from, T::Array(_)) {
        return (from.element() == to.element()).then_some(Explicit);
    }
    Some(match (from, to) {
        (T::Int2, T::Int4 | T::Int8 | T::Float4 | T::Float8 | T::Numeric(_)) => Implicit,
        (T::Int4, T::Int8 | T::Float4 | T::Float8 | T::Numeric(_)) => Implicit,
        (T::Int8, T::Float4 | T::Float8 | T::Numeric(_)) => Implicit,
        (T::Numeric(_), T::Float4 | T::Float8) | (T::Float4, T::Float8) => Implicit,
        (T::Int4, T::Int2) | (T::Int8, T::Int2 | T::Int4) => Assignment,
        (T::Numeric(_) | T::Float4 | T::Float8, T::Int2 | T::Int4 | T::Int8) => Assignment,
        (T::Float4 | T::Float8, T::Numeric(_)) | (T::Float8, T::Float4) => Assignment,
        (T::Int2 | T::Int4 | T::Int8, t) if t.is_oid_like() => Implicit,
        (f, T::Int4 | T::Int8) if f.is_oid_like() => Assignment,
        (f, t) if f.is_oid_like() && t.is_oid_like() => Implicit,
        (from, to) if let Some(least) = ordered::exists(from, to) => least,
        (from, to) if let Some(least) = geometry::exists(from, to) => least,
        (T::Bool, T::Int4) | (T::Int4, T::Bool) => Explicit,
        (T::Text | T::Varchar(_) | T::Char(_), T::Regclass) => Implicit,
        (T::Text | T::Varchar(_), T::Text | T::Varchar(_) | T::Char(_) | T::Name) => Implicit,
        (T::Char(_), T::Text | T::Varchar(_) | T::Name) => Implicit,
        (T::Name, T::Text) => Implicit,
        (T::Name, T::Varchar(_) | T::Char(_)) => Assignment,
        (T::CharByte, T::Text) => Implicit,
        (T::Text, T::CharByte) => Assignment,
        (T::CharByte, T::Int4) | (T::Int4, T::CharByte) => Explicit,
        (T::Date, T::Timestamp | T::TimestampTz) | (T::Timestamp, T::TimestampTz) => Implicit,
        (T::Timestamp, T::Date | T::Time) => Assignment,
        (T::TimestampTz, T::Date | T::Time | T::Timestamp) => Assignment,
        (T::Time, T::Interval) => Implicit,
        (T::Interval, T::Time) => Assignment,
        (
            T::Jsonb,
            T::Bool | T::Int2 | T::Int4 | T::Int8 | T::Float4 | T::Float8 | T::Numeric(_),
        ) => Explicit,
        (T::Json, T::Jsonb) | (T::Jsonb, T::Json) => Assignment,
        // Whether the fields go together shows later: `CompositeType::check_row`.
        (T::Record, T::Composite(_)) | (T::Composite(_), T::Record) => Implicit,
        (T::Range(a), T::Multirange(b)) if a.is_same(b) => Explicit,
        (T::Record, T::Text | T::Varchar(_)) => Assignment,
        (T::Void, T::Text | T::Varchar(_)) => Assignment,
        (T::Record | T::Void, _) | (_, T::Record | T::Void | T::Unknown) => return None,
        (_, t) if t.category() == TypeCategory::String => Assignment,
        (f, _) if f.category() == TypeCategory::String => Explicit,
        _ => return None,
    })
}

fn out_of_range(ty: &SqlType) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{} out of range", ty.base_name()))
}

/// Converts a value. The pair must exist by [`cast_exists`] in the given context, and names for
/// `regclass` must have been looked up by the caller.
///
/// # Errors
/// Input errors of text, 22003 out of range, 22001 too long, 42846 no such cast.
pub fn cast(
    value: &Datum,
    from: &SqlType,
    to: &SqlType,
    context: CastContext,
    style: impl Into<Style>,
) -> SqlResult<Datum> {
    let style = &style.into();
    if value.is_null() {
        return Ok(Datum::Null);
    }
    let converted = if from.same_base(to) {
        value.clone()
    } else if let (Datum::Array(array), SqlType::Array(target)) = (value, to) {
        let mut items = Vec::with_capacity(array.items.len());
        for item in &array.items {
            items.push(cast(item, &array.element, target, context, style)?);
        }
        return Ok(Datum::Array(Arc::new(if from.is_vector() {
            ArrayValue::of((**target).clone(), items, &array.dimensions())
        } else {
            array.like((**target).clone(), items)
        })));
    } else if let (Datum::Array(array), Some(target)) = (value, to.element()) {
        let items = array.items.clone();
        return Ok(Datum::Array(Arc::new(ArrayValue::vector(target.clone(), items))));
    } else if let (SqlType::Citext, Datum::Ordered(text)) = (from, value)
        && !to.is_text_like()
    {
        let text = Datum::text(crate::ordered::citext::text(text));
        convert(&text, &SqlType::Text, to, context, style)?
    } else {
        convert(value, from, to, context, style)?
    };
    fit_modifiers(converted, to, context)
}

fn convert(
    value: &Datum,
    from: &SqlType,
    to: &SqlType,
    context: CastContext,
    style: &Style,
) -> SqlResult<Datum> {
    use SqlType as T;
    if *from == T::Unknown
        && let Datum::Text(text) = value
    {
        return parse_base(text, to, style);
    }
    if let Some(converted) = ordered::convert(value, to, style) {
        return converted;
    }
    match to {
        T::Composite(ty) if let Datum::Record(row) = value => ty.of_row(row, context, style),
        T::Record if let Datum::Record(_) = value => Ok(value.clone()),
        T::Int2 | T::Int4 | T::Int8 => to_integer(value, from, to),
        oid if oid.is_oid_like() => match value {
            Datum::Text(text) => parse_base(text, to, style),
            other => {
                let v = integer(other).ok_or_else(|| no_cast(from, to))?;
                let least = if *from == T::Int8 { 0 } else { i64::from(i32::MIN) };
                if v < least || v > i64::from(u32::MAX) {
                    return Err(SqlError::new(
                        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                        "OID out of range",
                    ));
                }
                Ok(Datum::Oid(v as u32))
            }
        },
        T::Float4 | T::Float8 => to_float(value, from, to),
        T::Numeric(_) => to_numeric(value, from, to),
        T::Bool => match value {
            Datum::Int4(v) => Ok(Datum::Bool(*v != 0)),
            Datum::Text(text) => parse_base(text, to, style),
            Datum::Jsonb(json) => match &**json {
                serde_json::Value::Bool(b) => Ok(Datum::Bool(*b)),
                other => Err(json_mismatch(other, to)),
            },
            _ => Err(no_cast(from, to)),
        },
        T::Text | T::Varchar(_) | T::Char(_) | T::Name | T::CharByte => {
            to_text(value, from, to, style)
        }
        T::Citext => to_citext(value, from, style),
        T::Date => match value {
            Datum::Timestamp(t) => timestamp_date(*t),
            Datum::TimestampTz(t) if is_infinite(*t) => timestamp_date(*t),
            Datum::TimestampTz(t) => timestamp_date(style.zone.to_local(*t)),
            other => from_text(other, from, to, style),
        },
        T::Time => match value {
            Datum::Timestamp(t) | Datum::TimestampTz(t) if is_infinite(*t) => Ok(Datum::Null),
            Datum::Timestamp(t) => Ok(Datum::Time(t.rem_euclid(MICROS_PER_DAY))),
            Datum::TimestampTz(t) => {
                Ok(Datum::Time(style.zone.to_local(*t).rem_euclid(MICROS_PER_DAY)))
            }
            Datum::Interval(i) => Ok(Datum::Time(i.micros.rem_euclid(MICROS_PER_DAY))),
            other => from_text(other, from, to, style),
        },
        T::Timestamp => match value {
            Datum::Date(d) => Ok(Datum::Timestamp(date_timestamp(*d)?)),
            Datum::TimestampTz(t) if is_infinite(*t) => Ok(Datum::Timestamp(*t)),
            Datum::TimestampTz(t) => Ok(Datum::Timestamp(in_range(style.zone.to_local(*t))?)),
            other => from_text(other, from, to, style),
        },
        T::TimestampTz => match value {
            Datum::Date(d) => {
                let local = date_timestamp(*d)?;
                if is_infinite(local) {
                    return Ok(Datum::TimestampTz(local));
                }
                Ok(Datum::TimestampTz(in_range(style.zone.to_utc(local))?))
            }
            Datum::Timestamp(t) if is_infinite(*t) => Ok(Datum::TimestampTz(*t)),
            Datum::Timestamp(t) => Ok(Datum::TimestampTz(in_range(style.zone.to_utc(*t))?)),
            other => from_text(other, from, to, style),
        },
        T::Multirange(kind) if let Datum::Range(range) = value => {
            let many = MultirangeValue::new(kind, vec![(**range).clone()]);
            Ok(Datum::Multirange(Arc::new(many)))
        }
        T::Json if let Datum::Jsonb(document) = value => {
            Ok(Datum::Json(crate::jsonb::text(document).into()))
        }
        T::Jsonb if let Datum::Json(text) = value => parse_base(text, to, style),
        T::Interval => match value {
            Datum::Time(t) => Ok(Datum::Interval(Interval { micros: *t, ..Interval::default() })),
            other => from_text(other, from, to, style),
        },
        _ => from_text(value, from, to, style),
    }
}

fn to_citext(value: &Datum, from: &SqlType, style: &Style) -> SqlResult<Datum> {
    Ok(match to_text(value, from, &SqlType::Text, style)? {
        Datum::Text(text) => Datum::Ordered(crate::ordered::citext::of(&text)),
        other => other,
    })
}

fn no_cast(from: &SqlType, to: &SqlType) -> SqlError {
    SqlError::new(
        SqlState::CANNOT_COERCE,
        format!("cannot cast type {} to {}", from.base_name(), to.base_name()),
    )
}

fn json_mismatch(value: &serde_json::Value, to: &SqlType) -> SqlError {
    let kind = match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "boolean",
        serde_json::Value::Number(_) => "numeric",
        serde_json::Value::String(_) => "string",
        serde_json::Value::Array(_) => "array",
        serde_json::Value::Object(_) => "object",
    };
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("cannot cast jsonb {kind} to type {}", to.base_name()),
    )
}

/// From text, or from one shape to another.
fn from_text(value: &Datum, from: &SqlType, to: &SqlType, style: &Style) -> SqlResult<Datum> {
    match value {
        Datum::Text(text) => parse_base(text, to, style),
        Datum::Geometry(shape) if let SqlType::Geometry(kind) = to => {
            let shape = geometry::convert(shape, *kind).ok_or_else(|| no_cast(from, to))?;
            shape.map(|shape| Datum::Geometry(Arc::new(shape)))
        }
        _ => Err(no_cast(from, to)),
    }
}

fn is_infinite(micros: i64) -> bool {
    micros == i64::MAX || micros == i64::MIN
}

/// A time that a zone's offset may have moved out of the range.
fn in_range(micros: i64) -> SqlResult<i64> {
    check_timestamp(i128::from(micros))
}

fn timestamp_date(micros: i64) -> SqlResult<Datum> {
    Ok(Datum::Date(match micros {
        i64::MAX => DATE_INFINITY,
        i64::MIN => DATE_MINUS_INFINITY,
        _ => check_date(micros.div_euclid(MICROS_PER_DAY))?,
    }))
}

fn date_timestamp(days: i32) -> SqlResult<i64> {
    match days {
        DATE_INFINITY => Ok(i64::MAX),
        DATE_MINUS_INFINITY => Ok(i64::MIN),
        _ => check_timestamp(i128::from(days) * i128::from(MICROS_PER_DAY)).map_err(|_| {
            SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")
        }),
    }
}

fn integer(value: &Datum) -> Option<i64> {
    Some(match value {
        Datum::Int2(v) => i64::from(*v),
        Datum::Int4(v) => i64::from(*v),
        Datum::Int8(v) => *v,
        Datum::Oid(v) => i64::from(*v),
        _ => return None,
    })
}

fn to_integer(value: &Datum, from: &SqlType, to: &SqlType) -> SqlResult<Datum> {
    let wide: i128 = match value {
        // The same 32 bits.
        Datum::Oid(v) if *to == SqlType::Int4 => i128::from(*v as i32),
        Datum::Float4(_) | Datum::Float8(_) => {
            let f = match value {
                Datum::Float4(v) => f64::from(*v),
                Datum::Float8(v) => *v,
                _ => 0.0,
            };
            let rounded = f.round_ties_even();
            if !rounded.is_finite() || rounded.abs() > 1e19 {
                return Err(out_of_range(to));
            }
            rounded as i128
        }
        Datum::Numeric(v) => numeric::to_i128(v).ok_or_else(|| out_of_range(to))?,
        Datum::NumericNan => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot convert NaN to {}", to.base_name()),
            ));
        }
        Datum::NumericInf(_) => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot convert infinity to {}", to.base_name()),
            ));
        }
        Datum::Bool(b) => i128::from(*b),
        Datum::Text(text) if *from == SqlType::CharByte => i128::from(char_byte(text) as i8),
        Datum::Text(text) => return parse_base(text, to, &Style::utc()),
        Datum::Jsonb(json) => match &**json {
            serde_json::Value::Number(n) => numeric::parse(&n.to_string())
                .and_then(|n| numeric::to_i128(&n))
                .ok_or_else(|| out_of_range(to))?,
            other => return Err(json_mismatch(other, to)),
        },
        other => i128::from(integer(other).ok_or_else(|| no_cast(from, to))?),
    };
    let range = |_| out_of_range(to);
    Ok(match to {
        SqlType::Int2 => Datum::Int2(i16::try_from(wide).map_err(range)?),
        SqlType::Int4 => Datum::Int4(i32::try_from(wide).map_err(range)?),
        _ => Datum::Int8(i64::try_from(wide).map_err(range)?),
    })
}

fn to_float(value: &Datum, from: &SqlType, to: &SqlType) -> SqlResult<Datum> {
    let wide = match value {
        Datum::Float4(v) => f64::from(*v),
        Datum::Float8(v) => *v,
        Datum::Numeric(v) => numeric::to_f64(v),
        Datum::NumericNan => f64::NAN,
        Datum::NumericInf(negative) => numeric::infinity(*negative),
        Datum::Text(text) => return parse_base(text, to, &Style::utc()),
        Datum::Jsonb(json) => match &**json {
            serde_json::Value::Number(n) => n.to_string().parse().unwrap_or(f64::NAN),
            other => return Err(json_mismatch(other, to)),
        },
        other => integer(other).ok_or_else(|| no_cast(from, to))? as f64,
    };
    if *to == SqlType::Float8 {
        if wide.is_infinite() && matches!(value, Datum::Numeric(_)) {
            return Err(out_of_range(to));
        }
        return Ok(Datum::Float8(wide));
    }
    let narrow = match value {
        Datum::Int2(v) => f32::from(*v),
        Datum::Int4(v) => *v as f32,
        Datum::Int8(v) => *v as f32,
        _ => wide as f32,
    };
    if (narrow.is_infinite() && wide.is_finite()) || (narrow == 0.0 && wide != 0.0) {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            if narrow == 0.0 {
                "value out of range: underflow"
            } else {
                "value out of range: overflow"
            },
        ));
    }
    Ok(Datum::Float4(narrow))
}

fn to_numeric(value: &Datum, from: &SqlType, to: &SqlType) -> SqlResult<Datum> {
    let from_float = |v: f64, digits: usize| {
        if v.is_nan() {
            return Ok(Datum::NumericNan);
        }
        match numeric::from_f64(v, digits) {
            Some(n) => Ok(Datum::Numeric(n.into())),
            None => Ok(Datum::NumericInf(v < 0.0)),
        }
    };
    match value {
        Datum::Float4(v) => from_float(f64::from(*v), 6),
        Datum::Float8(v) => from_float(*v, 15),
        Datum::Text(text) => parse_base(text, to, &Style::utc()),
        Datum::Jsonb(json) => match &**json {
            serde_json::Value::Number(n) => numeric::parse(&n.to_string())
                .map(|n| Datum::Numeric(n.into()))
                .ok_or_else(|| bad_input("numeric", &n.to_string())),
            other => Err(json_mismatch(other, to)),
        },
        other => {
            let v = integer(other).ok_or_else(|| no_cast(from, to))?;
            Ok(Datum::Numeric(numeric::from_i128(v.into()).into()))
        }
    }
}

fn to_text(value: &Datum, from: &SqlType, to: &SqlType, style: &Style) -> SqlResult<Datum> {
    let text = match value {
        Datum::Text(text) => match from {
            // Leaving char(n) drops the padding.
            SqlType::Char(_) => Arc::from(text.trim_end_matches(' ')),
            _ => text.clone(),
        },
        // Booleans print in full when they are cast, not as the wire prints them.
        Datum::Bool(b) if *to == SqlType::Name => Arc::from(if *b { "t" } else { "f" }),
        Datum::Bool(b) => Arc::from(if *b { "true" } else { "false" }),
        Datum::Int4(v) if *to == SqlType::CharByte => {
            let byte = i8::try_from(*v).map_err(|_| {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "\"char\" out of range")
            })?;
            Arc::from(shown_byte(byte as u8))
        }
        Datum::Oid(0) if *from == SqlType::Regtype => Arc::from("-"),
        Datum::Oid(oid) if *from == SqlType::Regtype => {
            let known = SqlType::from_oid(*oid, -1).map(|ty| ty.base_name());
            let pseudo = || pseudo_type_name(*oid).map(|name| quote_ident(name).to_string());
            let of_system = || system_type_name(*oid);
            let none = (*oid == 0).then(|| "-".to_string());
            let name = none.or(known).or_else(pseudo).or_else(of_system);
            Arc::from(name.unwrap_or_else(|| oid.to_string()))
        }
        other => Arc::from(other.to_text(style).unwrap_or_default()),
    };
    Ok(match to {
        SqlType::Name => Datum::text(clip_name(&text)),
        SqlType::CharByte => Datum::text(first_byte(&text)),
        _ => Datum::Text(text),
    })
}

/// What `"char"` keeps of a text: one byte, that of a character of ASCII as this character, and
/// others as a backslash with three octal digits. So may any byte be written.
pub(crate) fn first_byte(text: &str) -> String {
    shown_byte(octal_byte(text).or_else(|| text.bytes().next()).unwrap_or(0))
}

/// A byte as a value of `"char"`.
pub(crate) fn shown_byte(byte: u8) -> String {
    match byte {
        0 => String::new(),
        1..=127 => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    }
}

/// The byte of a value of `"char"`; 0 of an empty one.
pub(crate) fn char_byte(value: &str) -> u8 {
    octal_byte(value).or_else(|| value.bytes().next()).unwrap_or(0)
}

fn octal_byte(text: &str) -> Option<u8> {
    match *text.as_bytes() {
        [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7'] => {
            Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
        }
        _ => None,
    }
}

/// Applies length and precision modifiers of the target type.
pub(crate) fn fit_modifiers(value: Datum, to: &SqlType, context: CastContext) -> SqlResult<Datum> {
    match (to, &value) {
        (SqlType::Varchar(Some(n)), Datum::Text(text)) => {
            match clip(text, *n as usize, context, "character varying")? {
                Some(cut) => Ok(Datum::text(cut)),
                None => Ok(value),
            }
        }
        (SqlType::Char(n), Datum::Text(text)) if *n > 0 => {
            let n = *n as usize;
            let length = text.chars().count();
            if length < n {
                let mut padded = text.to_string();
                padded.extend(std::iter::repeat_n(' ', n - length));
                return Ok(Datum::text(padded));
            }
            match clip(text, n, context, "character")? {
                Some(cut) => Ok(Datum::text(cut)),
                None => Ok(value),
            }
        }
        (SqlType::Numeric(Some((p, s))), Datum::NumericInf(_)) => {
            Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")
                .with_detail(format!(
                    "A field with precision {p}, scale {s} cannot hold an infinite value."
                )))
        }
        (SqlType::Numeric(Some((p, s))), Datum::Numeric(v)) if numeric::fits(v, *p, *s) => {
            Ok(value)
        }
        (SqlType::Numeric(Some((p, s))), Datum::Numeric(v)) => {
            Ok(Datum::Numeric(numeric::fit(v, *p, *s)?.into()))
        }
        (SqlType::Bit(n @ 1..) | SqlType::Varbit(Some(n)), Datum::Ordered(bits)) => {
            let varying = matches!(to, SqlType::Varbit(_));
            let explicit = context == CastContext::Explicit;
            let fitted = fit(bits, *n as usize, varying, explicit)?;
            Ok(Datum::Ordered(fitted))
        }
        (SqlType::Array(element), Datum::Array(array)) if element.typmod() >= 0 => {
            let mut items = Vec::with_capacity(array.items.len());
            for item in &array.items {
                items.push(fit_modifiers(item.clone(), element, context)?);
            }
            Ok(Datum::Array(Arc::new(array.like((**element).clone(), items))))
        }
        _ => Ok(value),
    }
}

/// The text cut to `n` characters, `None` when it fits as it is.
fn clip<'a>(
    text: &'a str,
    n: usize,
    context: CastContext,
    type_name: &str,
) -> SqlResult<Option<&'a str>> {
    let Some((end, _)) = text.char_indices().nth(n) else {
        return Ok(None);
    };
    if context != CastContext::Explicit && text[end..].bytes().any(|b| b != b' ') {
        return Err(SqlError::new(
            SqlState::STRING_DATA_RIGHT_TRUNCATION,
            format!("value too long for type {type_name}({n})"),
        ));
    }
    Ok(Some(&text[..end]))
}
