//! Text to values, with PostgreSQL's input errors.

use std::sync::Arc;

use crate::datetime_in::{parse_date, parse_time, parse_timestamp};
use crate::interval::parse_interval;
use crate::oid::pseudo_type_oid;
use crate::text::float::{parse_float4, parse_float8};
use crate::{
    ArrayValue, CastContext, Datum, EnumValue, Geometry, Ordered, OrderedKind, SqlError, SqlResult,
    SqlState, SqlType, Style, array, cast, json, jsonb, jsonpath, numeric, range, system_type_oid,
    user_type,
};

pub(crate) fn bad_input(ty: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {ty}: \"{text}\""),
    )
}

impl Datum {
    /// Parses a text form and fits it to the type's modifiers as an assignment does (a too long
    /// `varchar` is an error). `regclass` and `regtype` take numbers only: names need a catalog.
    ///
    /// # Errors
    /// 22P02, 22003, 22007, 22008, 22001 with PostgreSQL's messages.
    pub fn parse(text: &str, ty: &SqlType, style: impl Into<Style>) -> SqlResult<Datum> {
        let value = parse_base(text, ty, &style.into())?;
        cast::fit_modifiers(value, ty, CastContext::Assignment)
    }
}

/// Parses without looking at modifiers.
pub(crate) fn parse_base(text: &str, ty: &SqlType, style: &Style) -> SqlResult<Datum> {
    Ok(match ty {
        SqlType::Bool => Datum::Bool(parse_bool(text)?),
        SqlType::Int2 => {
            Datum::Int2(
                parse_int(text, "smallint", i64::from(i16::MIN), i64::from(i16::MAX))? as i16
            )
        }
        SqlType::Int4 => {
            let (min, max) = (i64::from(i32::MIN), i64::from(i32::MAX));
            Datum::Int4(parse_int(text, "integer", min, max)? as i32)
        }
        SqlType::Int8 => Datum::Int8(parse_int(text, "bigint", i64::MIN, i64::MAX)?),
        SqlType::Regtype => parse_type_name(text)?,
        ty if ty.is_oid_like() => {
            Datum::Oid(parse_int(text, "oid", i64::from(i32::MIN), i64::from(u32::MAX))? as u32)
        }
        SqlType::Float4 => Datum::Float4(parse_float4(text)?),
        SqlType::Float8 => Datum::Float8(parse_float8(text)?),
        SqlType::Numeric(_) => parse_numeric(text)?,
        SqlType::Name => Datum::text(clip_name(text)),
        SqlType::CharByte => Datum::text(cast::first_byte(text)),
        SqlType::Bytea => Datum::Bytea(parse_bytea(text)?.into()),
        SqlType::Date => Datum::Date(parse_date(text, style)?),
        SqlType::Time => Datum::Time(parse_time(text, style)?),
        SqlType::Timestamp => Datum::Timestamp(parse_timestamp(text, style, false)?),
        SqlType::TimestampTz => Datum::TimestampTz(parse_timestamp(text, style, true)?),
        SqlType::Interval => Datum::Interval(parse_interval(text, style)?),
        SqlType::Uuid => Datum::Uuid(parse_uuid(text)?),
        SqlType::Jsonb => Datum::Jsonb(Arc::new(jsonb::parse(text)?)),
        SqlType::Json => {
            json::check(text)?;
            Datum::Json(Arc::from(text))
        }
        SqlType::Jsonpath => Datum::text(jsonpath::Path::kept(text)?),
        SqlType::Enum(ty) => Datum::Enum(EnumValue { ty: ty.clone(), place: ty.place_of(text)? }),
        SqlType::Array(element) => parse_array(text, element, style)?,
        SqlType::Int2Vector | SqlType::OidVector => {
            let element = if *ty == SqlType::OidVector { SqlType::Oid } else { SqlType::Int2 };
            let words = text.split_whitespace();
            let items = words.map(|w| parse_base(w, &element, style)).collect::<SqlResult<_>>()?;
            Datum::Array(Arc::new(ArrayValue::vector(element, items)))
        }
        SqlType::Composite(ty) => user_type::text::parse(text, ty, style)?,
        SqlType::Record => {
            return Err(SqlError::unsupported("input of anonymous composite types"));
        }
        SqlType::Void => Datum::text(""),
        SqlType::Geometry(kind) => Datum::Geometry(Arc::new(Geometry::parse(*kind, text)?)),
        SqlType::Range(kind) => Datum::Range(Arc::new(range::parse(text, kind, style)?)),
        SqlType::Multirange(kind) => {
            Datum::Multirange(Arc::new(range::multi::parse(text, kind, style)?))
        }
        ty if let Some(kind) = OrderedKind::of(ty) => {
            Datum::Ordered(Ordered::parse(kind, text, style)?)
        }
        // Texts of all kinds.
        _ => Datum::text(text),
    })
}

fn parse_type_name(text: &str) -> SqlResult<Datum> {
    let lowered = text.trim().to_lowercase();
    let name = lowered.strip_prefix("pg_catalog.").unwrap_or(&lowered);
    if name == "-" {
        return Ok(Datum::Oid(0));
    }
    let built_in = SqlType::from_name(name).map(|found| found.oid());
    let bare = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
    let of_system = || system_type_oid(text.trim());
    if let Some(found) = built_in.or_else(|| pseudo_type_oid(bare)).or_else(of_system) {
        return Ok(Datum::Oid(found));
    }
    text.trim().parse().map(Datum::Oid).map_err(|_| {
        SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{text}\" does not exist"))
    })
}

fn parse_array(text: &str, element: &SqlType, style: &Style) -> SqlResult<Datum> {
    let literal = array::text::split(text, element.delimiter())?;
    let mut items = Vec::with_capacity(literal.items.len());
    for item in literal.items {
        items.push(match item {
            None => Datum::Null,
            Some(text) => parse_base(&text, element, style)?,
        });
    }
    Ok(Datum::Array(Arc::new(ArrayValue::of(element.clone(), items, &literal.dimensions))))
}

/// PostgreSQL's limit on identifiers, in bytes.
pub const MAX_IDENTIFIER: usize = 63;

/// As much of a name as is kept.
pub fn clip_name(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_IDENTIFIER)]
}

/// Whether a character is nothing around a value. Spaces that Unicode knows besides belong to it.
pub(crate) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

fn parse_bool(text: &str) -> SqlResult<bool> {
    let word = text.trim_matches(is_blank).to_ascii_lowercase();
    let prefix_of = |full: &str| !word.is_empty() && full.starts_with(word.as_str());
    if prefix_of("true") || prefix_of("yes") || word == "on" || word == "1" {
        Ok(true)
    } else if prefix_of("false") || prefix_of("no") || word == "of" || word == "off" || word == "0"
    {
        Ok(false)
    } else {
        Err(bad_input("boolean", text))
    }
}

fn parse_int(text: &str, ty: &str, min: i64, max: i64) -> SqlResult<i64> {
    let trimmed = text.trim_matches(is_blank);
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad_input(ty, text));
    }
    match trimmed.parse::<i64>() {
        Ok(value) if value >= min && value <= max => Ok(value),
        _ => Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value \"{text}\" is out of range for type {ty}"),
        )),
    }
}

fn parse_numeric(text: &str) -> SqlResult<Datum> {
    let trimmed = text.trim_matches(is_blank);
    let is_word = trimmed.ends_with(|c: char| c.is_ascii_alphabetic());
    let word = if is_word { trimmed.to_ascii_lowercase() } else { String::new() };
    match word.as_str() {
        "nan" => return Ok(Datum::NumericNan),
        "inf" | "infinity" | "+inf" | "+infinity" => return Ok(Datum::NumericInf(false)),
        "-inf" | "-infinity" => return Ok(Datum::NumericInf(true)),
        _ => {}
    }
    match numeric::parse(trimmed) {
        Some(value) => numeric::datum(value),
        None => {
            let looks_numeric = !trimmed.is_empty()
                && trimmed
                    .starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
                && trimmed.len() > 1_000;
            if looks_numeric {
                return Err(SqlError::new(
                    SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                    "value overflows numeric format",
                ));
            }
            Err(bad_input("numeric", text))
        }
    }
}

fn parse_uuid(text: &str) -> SqlResult<[u8; 16]> {
    let trimmed = text.trim_matches(is_blank);
    let inner = trimmed.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(trimmed);
    let mut bytes = [0u8; 16];
    let mut count = 0;
    let mut last_hyphen = true;
    for c in inner.chars() {
        if c == '-' {
            if last_hyphen || count % 4 != 0 {
                return Err(bad_input("uuid", text));
            }
            last_hyphen = true;
            continue;
        }
        let digit = c.to_digit(16).ok_or_else(|| bad_input("uuid", text))? as u8;
        if count == 32 {
            return Err(bad_input("uuid", text));
        }
        bytes[count / 2] = bytes[count / 2] << 4 | digit;
        count += 1;
        last_hyphen = false;
    }
    if count != 32 || last_hyphen {
        return Err(bad_input("uuid", text));
    }
    Ok(bytes)
}

/// Reads the hex form (`\xdead`) and the old escape form.
pub(crate) fn parse_bytea(text: &str) -> SqlResult<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let mut out = Vec::with_capacity(hex.len() / 2);
        let mut high = None;
        for c in hex.chars() {
            // Blanks may stand between bytes only.
            if c.is_ascii_whitespace() && high.is_none() {
                continue;
            }
            let digit = c.to_digit(16).ok_or_else(|| {
                SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid hexadecimal digit: \"{c}\""),
                )
            })? as u8;
            match high.take() {
                None => high = Some(digit),
                Some(h) => out.push(h << 4 | digit),
            }
        }
        if high.is_some() {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "invalid hexadecimal data: odd number of digits",
            ));
        }
        return Ok(out);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            out.push(bytes[at]);
            at += 1;
        } else if bytes.get(at + 1) == Some(&b'\\') {
            out.push(b'\\');
            at += 2;
        } else {
            let octal = bytes.get(at + 1..at + 4).filter(|d| {
                (b'0'..=b'3').contains(&d[0]) && d[1..].iter().all(|b| (b'0'..=b'7').contains(b))
            });
            let Some(d) = octal else {
                return Err(bad_input("bytea", text));
            };
            out.push((d[0] - b'0') * 64 + (d[1] - b'0') * 8 + (d[2] - b'0'));
            at += 4;
        }
    }
    Ok(out)
}
