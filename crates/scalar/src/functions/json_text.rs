//! Functions over `json`, which keeps its text, and the making of it.
//!
//! The blanks are PostgreSQL's: `json_build_object` writes `{"a" : 1}`, `row_to_json` writes
//! `{"a":1}`, `json_agg` writes `[1, 2]`.

use std::borrow::Cow;

use braid_types::json::{self, Shape};
use braid_types::{Datum, SqlError, SqlResult, SqlState, TimeZone, jsonb};

use super::{bool_of, i64_of, text_of, words};
use crate::EvalContext;
use crate::registry::{Eval, Table};

/// Text of a json argument.
fn source(value: &Datum) -> &str {
    match value {
        Datum::Json(text) => text,
        _ => "null",
    }
}

fn made(text: impl Into<std::sync::Arc<str>>) -> SqlResult<Datum> {
    Ok(Datum::Json(text.into()))
}

/// A timestamp, date or time as JSON writes it: ISO with a `T`, whatever `DateStyle` says.
pub(super) fn iso_text(value: &Datum, zone: TimeZone) -> String {
    let style = braid_types::Style::iso(zone);
    let text = value.to_text(style).unwrap_or_default();
    let zoned = matches!(value, Datum::TimestampTz(_));
    let text = match value {
        Datum::Timestamp(_) | Datum::TimestampTz(_) => text.replacen(' ', "T", 1),
        _ => text,
    };
    // ISO offsets have minutes in JSON.
    let (head, era) = match text.strip_suffix(" BC") {
        Some(head) => (head, " BC"),
        None => (text.as_str(), ""),
    };
    let bare = zoned
        && head.len() > 3
        && matches!(head.as_bytes()[head.len() - 3], b'+' | b'-')
        && head.contains('T');
    if bare { format!("{head}:00{era}") } else { text }
}

/// Any SQL value as the text of a JSON value. With `pretty`, line feeds between the fields of rows
/// and the elements of arrays, as the two-argument forms of `row_to_json` put them.
pub(crate) fn json_text(value: &Datum, ctx: &EvalContext, pretty: bool) -> String {
    match value {
        Datum::Null => "null".to_string(),
        Datum::Bool(b) => b.to_string(),
        Datum::Json(text) => text.to_string(),
        Datum::Jsonb(document) => jsonb::text(document),
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) => value.to_string(),
        Datum::Numeric(_) | Datum::NumericNan | Datum::NumericInf(_) => {
            json::number(&value.to_string())
        }
        Datum::Float4(_) | Datum::Float8(_) => {
            json::number(&value.to_text(ctx.style).unwrap_or_default())
        }
        Datum::Array(array) => {
            let items: Vec<String> =
                array.outer().iter().map(|i| json_text(i, ctx, false)).collect();
            format!("[{}]", items.join(if pretty { ",\n " } else { "," }))
        }
        Datum::Record(record) => {
            let fields: Vec<String> = record
                .iter()
                .enumerate()
                .map(|(at, field)| {
                    let name = match &record.names {
                        Some(names) => Cow::Borrowed(&*names[at]),
                        None => Cow::Owned(format!("f{}", at + 1)),
                    };
                    format!("{}:{}", json::quoted(&name), json_text(field, ctx, false))
                })
                .collect();
            format!("{{{}}}", fields.join(if pretty { ",\n " } else { "," }))
        }
        Datum::Date(_) | Datum::Timestamp(_) | Datum::TimestampTz(_) => {
            json::quoted(&iso_text(value, ctx.style.zone))
        }
        other => json::quoted(&other.to_text(ctx.style).unwrap_or_default()),
    }
}

/// A JSON key of a value.
pub(crate) fn json_key(value: &Datum, ctx: &EvalContext) -> SqlResult<String> {
    match value {
        Datum::Null => {
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "field name must not be null"))
        }
        Datum::Array(_) | Datum::Record(_) | Datum::Json(_) | Datum::Jsonb(_) => {
            Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "key value must be scalar, not array, composite, or json",
            ))
        }
        Datum::Bool(b) => Ok(b.to_string()),
        Datum::Date(_) | Datum::Timestamp(_) | Datum::TimestampTz(_) => {
            Ok(iso_text(value, ctx.style.zone))
        }
        other => Ok(other.to_text(ctx.style).unwrap_or_default()),
    }
}

/// The element at a position that may count from the end.
fn at_index(text: &str, at: i64) -> Option<&str> {
    if json::shape(text) != Shape::Array {
        return None;
    }
    let items = json::elements(text);
    let at = if at < 0 { at + items.len() as i64 } else { at };
    usize::try_from(at).ok().and_then(|at| items.get(at).copied())
}

/// The value of a key; the last of several counts.
fn at_key<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    if json::shape(text) != Shape::Object {
        return None;
    }
    json::entries(text).into_iter().rev().find(|(k, _)| k == key).map(|(_, v)| v)
}

fn step<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    match json::shape(text) {
        Shape::Array => at_index(text, key.trim().parse().ok()?),
        _ => at_key(text, key),
    }
}

fn follow<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(text.trim(), |at, key| step(at, key))
}

fn value(found: Option<&str>) -> SqlResult<Datum> {
    found.map_or(Ok(Datum::Null), made)
}

/// A JSON value as SQL text: strings without quotes, null as NULL.
pub fn plain_text(text: &str) -> Datum {
    match json::shape(text) {
        Shape::Null => Datum::Null,
        Shape::String => Datum::text(json::string(text).into_owned()),
        _ => Datum::text(text),
    }
}

fn text_value(found: Option<&str>) -> SqlResult<Datum> {
    Ok(found.map_or(Datum::Null, plain_text))
}

fn has_null(value: &Datum) -> bool {
    matches!(value, Datum::Array(a) if a.items.iter().any(Datum::is_null))
}

fn accessors(t: &mut Table) {
    t.add("->(json, text) json", |a, _| value(at_key(source(&a[0]), text_of(&a[1]))));
    t.add("->(json, int4) json", |a, _| value(at_index(source(&a[0]), i64_of(&a[1]))));
    t.add("->>(json, text) text", |a, _| text_value(at_key(source(&a[0]), text_of(&a[1]))));
    t.add("->>(json, int4) text", |a, _| text_value(at_index(source(&a[0]), i64_of(&a[1]))));
    fn path(a: &[Datum]) -> Option<&str> {
        if has_null(&a[1]) { None } else { follow(source(&a[0]), &words(&a[1])) }
    }
    t.add("#>(json, text[]) json", |a, _| value(path(a)));
    t.add("#>>(json, text[]) text", |a, _| text_value(path(a)));
    fn steps(a: &[Datum]) -> Option<&str> {
        follow(source(&a[0]), &a[1..].iter().map(text_of).collect::<Vec<_>>())
    }
    t.add("json_extract_path(json, ...text) json -- what is at a path", |a, _| value(steps(a)));
    t.add("json_extract_path_text(json, ...text) text -- what is at a path, as text", |a, _| {
        text_value(steps(a))
    });
    t.add("json_typeof(json) text -- kind of the outermost value", |a, _| {
        Ok(Datum::text(match json::shape(source(&a[0])) {
            Shape::Null => "null",
            Shape::Bool => "boolean",
            Shape::Number => "number",
            Shape::String => "string",
            Shape::Array => "array",
            Shape::Object => "object",
        }))
    });
    t.add("json_array_length(json) int4 -- number of elements", |a, _| {
        let text = source(&a[0]);
        let refuse = |what: &str| {
            SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("cannot get array length of a {what}"),
            )
        };
        match json::shape(text) {
            Shape::Array => Ok(Datum::Int4(json::elements(text).len() as i32)),
            Shape::Object => Err(refuse("non-array")),
            _ => Err(refuse("scalar")),
        }
    });
    t.add("json_strip_nulls(json) json -- without fields that are null", |a, _| {
        made(stripped(source(&a[0])))
    });
}

/// Without fields that are null, and without blanks.
fn stripped(text: &str) -> String {
    match json::shape(text) {
        Shape::Array => {
            let items: Vec<String> = json::elements(text).into_iter().map(stripped).collect();
            format!("[{}]", items.join(","))
        }
        Shape::Object => {
            let fields: Vec<String> = json::entries(text)
                .into_iter()
                .filter(|(_, v)| json::shape(v) != Shape::Null)
                .map(|(k, v)| format!("{}:{}", json::quoted(&k), stripped(v)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Shape::String => json::quoted(&json::string(text)),
        _ => text.trim().to_string(),
    }
}

fn build_object(a: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
    if !a.len().is_multiple_of(2) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "argument list must have even number of elements",
        )
        .with_hint(
            "The arguments of json_build_object() must consist of alternating keys and values.",
        ));
    }
    let mut fields = Vec::with_capacity(a.len() / 2);
    for (at, pair) in a.chunks(2).enumerate() {
        if pair[0].is_null() {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("argument {} cannot be null", at * 2 + 1),
            )
            .with_hint("Object keys should be text."));
        }
        let key = json_key(&pair[0], ctx)?;
        fields.push(format!("{} : {}", json::quoted(&key), json_text(&pair[1], ctx, false)));
    }
    made(format!("{{{}}}", fields.join(", ")))
}

/// Pairs of `json_object(text[])` and `jsonb_object(text[])`.
pub(super) fn text_pairs(a: &[Datum]) -> SqlResult<Vec<(String, Datum)>> {
    let wrong = |text: &str| SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, text);
    for array in a {
        let Datum::Array(array) = array else { continue };
        match (array.dimensions().as_slice(), a.len()) {
            ([] | [_], _) => {}
            ([_, pair], 1) if pair.length == 2 => {}
            ([_, _], 1) => return Err(wrong("array must have two columns")),
            _ => return Err(wrong("wrong number of array subscripts")),
        }
    }
    let items = |v: &Datum| match v {
        Datum::Array(array) => array.items.clone(),
        _ => Vec::new(),
    };
    let keys = items(&a[0]);
    let pairs: Vec<(Datum, Datum)> = match a.get(1) {
        None => {
            if !keys.len().is_multiple_of(2) {
                return Err(wrong("array must have even number of elements"));
            }
            keys.chunks(2).map(|p| (p[0].clone(), p[1].clone())).collect()
        }
        Some(values) => {
            let values = items(values);
            if keys.len() != values.len() {
                return Err(wrong("mismatched array dimensions"));
            }
            keys.into_iter().zip(values).collect()
        }
    };
    pairs
        .into_iter()
        .map(|(key, value)| match key {
            Datum::Null => {
                Err(SqlError::new(SqlState("22004"), "null value not allowed for object key"))
            }
            key => Ok((text_of(&key).to_string(), value)),
        })
        .collect()
}

fn constructors(t: &mut Table) {
    t.add("to_json(anyelement) json -- any value as json", |a, c| made(json_text(&a[0], c, false)))
        .stable();
    t.add("row_to_json(record) json -- a row as json", |a, c| made(json_text(&a[0], c, false)))
        .stable();
    t.add("row_to_json(record, bool) json", |a, c| made(json_text(&a[0], c, bool_of(&a[1]))))
        .stable();
    t.add("array_to_json(anyarray) json -- an array as json", |a, c| {
        made(json_text(&a[0], c, false))
    })
    .stable();
    t.add("array_to_json(anyarray, bool) json", |a, c| made(json_text(&a[0], c, bool_of(&a[1]))))
        .stable();
    let build_array: Eval = |a, c| {
        let items: Vec<String> = a.iter().map(|v| json_text(v, c, false)).collect();
        made(format!("[{}]", items.join(", ")))
    };
    t.add("json_build_array(...any) json -- an array of the arguments", build_array).lax().stable();
    t.add("json_build_array() json", build_array).lax().stable();
    t.add("json_build_object(...any) json -- an object of keys and values in turn", build_object)
        .lax()
        .stable();
    t.add("json_build_object() json", build_object).lax().stable();
    let object: Eval = |a, c| {
        let fields: Vec<String> = text_pairs(a)?
            .iter()
            .map(|(k, v)| format!("{} : {}", json::quoted(k), json_text(v, c, false)))
            .collect();
        made(format!("{{{}}}", fields.join(", ")))
    };
    t.add("json_object(text[]) json -- an object of texts", object);
    t.add("json_object(text[], text[]) json", object);
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    accessors(t);
    constructors(t);
}
