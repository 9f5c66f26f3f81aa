//! JSON: values at a path, as GoogleSQL writes paths, and conversions.

use std::borrow::Cow;

use braid_types::json::{self, Shape};
use braid_types::{CastContext, Datum, SqlResult, SqlType, jsonb};

use super::guests::invalid;
use crate::array_operators::array;
use crate::functions::{json_text, text_of};
use crate::limits;
use crate::registry::{Eval, Table};

/// A step of a path.
enum Step<'a> {
    Key(Cow<'a, str>),
    Item(usize),
}

/// `$.a."b c"['d'][0]`.
fn steps(path: &str) -> SqlResult<Vec<Step<'_>>> {
    let bad = || invalid(format!("invalid JSONPath: {path}"));
    let mut rest = path.trim().strip_prefix('$').ok_or_else(bad)?;
    let mut out = Vec::new();
    while !rest.is_empty() {
        if let Some(key) = rest.strip_prefix('.') {
            let quoted = key.strip_prefix('"').and_then(|key| key.split_once('"'));
            let (name, behind) =
                quoted.unwrap_or_else(|| key.split_at(key.find(['.', '[']).unwrap_or(key.len())));
            if name.is_empty() && quoted.is_none() {
                return Err(bad());
            }
            out.push(Step::Key(name.into()));
            rest = behind;
            continue;
        }
        let (inner, behind) =
            rest.strip_prefix('[').and_then(|inner| inner.split_once(']')).ok_or_else(bad)?;
        let inner = inner.trim();
        let quoted = ['\'', '"']
            .into_iter()
            .find_map(|q| inner.strip_prefix(q).and_then(|inner| inner.strip_suffix(q)));
        out.push(match quoted {
            Some(name) => Step::Key(name.into()),
            None => Step::Item(inner.parse().map_err(|_| bad())?),
        });
        rest = behind;
    }
    Ok(out)
}

/// The text of the value at a path.
fn at<'a>(text: &'a str, path: &str) -> SqlResult<Option<&'a str>> {
    let mut found = text.trim();
    for step in steps(path)? {
        let next = match (&step, json::shape(found)) {
            (Step::Key(name), Shape::Object) => {
                json::entries(found).into_iter().rev().find(|(key, _)| key == name).map(|(_, v)| v)
            }
            (Step::Item(n), Shape::Array) => json::elements(found).get(*n).copied(),
            _ => None,
        };
        match next {
            Some(next) => found = next.trim(),
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// The text of a document; `None` of a text that is none.
fn source(value: &Datum) -> Option<Cow<'_, str>> {
    match value {
        Datum::Json(text) => Some(Cow::Borrowed(text)),
        Datum::Jsonb(document) => Some(Cow::Owned(jsonb::text(document))),
        Datum::Text(text) => json::check(text).is_ok().then_some(Cow::Borrowed(&**text)),
        _ => None,
    }
}

fn path_of(a: &[Datum]) -> &str {
    a.get(1).map_or("$", text_of)
}

/// A scalar as text: without quotes, NULL for null.
fn scalar(text: &str) -> Option<Datum> {
    match json::shape(text) {
        Shape::Object | Shape::Array => None,
        Shape::String => Some(Datum::text(json::string(text))),
        _ if text == "null" => None,
        _ => Some(Datum::text(text)),
    }
}

fn json_value(a: &[Datum]) -> SqlResult<Datum> {
    let Some(text) = source(&a[0]) else { return Ok(Datum::Null) };
    Ok(at(&text, path_of(a))?.and_then(scalar).unwrap_or(Datum::Null))
}

/// A part of a document, as what the document is.
fn like(value: &Datum, part: &str) -> SqlResult<Datum> {
    Ok(match value {
        Datum::Jsonb(_) => jsonb::datum(jsonb::parse(part)?),
        Datum::Json(_) => Datum::Json(part.into()),
        // A text is normalised: no blanks, as the values of JSON have none there.
        _ => Datum::text(compact(part)),
    })
}

/// Without blanks between its parts.
fn compact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut inside, mut escaped) = (false, false);
    for c in text.chars() {
        let blank = c.is_ascii_whitespace() && !inside;
        if !blank {
            out.push(c);
        }
        match c {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            _ => {}
        }
    }
    out
}

fn json_query(a: &[Datum]) -> SqlResult<Datum> {
    let Some(text) = source(&a[0]) else { return Ok(Datum::Null) };
    match at(&text, path_of(a))? {
        Some("null") if matches!(a[0], Datum::Text(_)) => Ok(Datum::Null),
        Some(part) => like(&a[0], part),
        None => Ok(Datum::Null),
    }
}

/// The texts of the elements of an array; NULL of anything else.
fn elements(a: &[Datum], make: impl Fn(&str) -> SqlResult<Option<Datum>>) -> SqlResult<Datum> {
    let Some(text) = source(&a[0]) else { return Ok(Datum::Null) };
    let Some(found) = at(&text, path_of(a))?.filter(|t| matches!(json::shape(t), Shape::Array))
    else {
        return Ok(Datum::Null);
    };
    let mut items = Vec::new();
    for part in json::elements(found) {
        match make(part.trim())? {
            Some(item) => items.push(item),
            None => return Ok(Datum::Null),
        }
    }
    let element = match &a[0] {
        Datum::Json(_) => SqlType::Json,
        Datum::Jsonb(_) => SqlType::Jsonb,
        _ => SqlType::Text,
    };
    Ok(array(element, limits::items(items.into_iter())?))
}

fn paths(t: &mut Table) {
    let value: Eval = |a, _| json_value(a);
    t.add("json_value(text) text -- the scalar at a path, as text", value);
    t.add("json_value(text, text) text", value);
    t.add("json_value(json) text", value);
    t.add("json_value(json, text) text", value);
    t.add("json_value(jsonb) text", value);
    t.add("json_value(jsonb, text) text", value);
    let query: Eval = |a, _| json_query(a);
    t.add("json_query(text) text -- what is at a path", query);
    t.add("json_query(text, text) text", query);
    t.add("json_query(json) json", query);
    t.add("json_query(json, text) json", query);
    t.add("json_query(jsonb) jsonb", query);
    t.add("json_query(jsonb, text) jsonb", query);
    t.add("json_extract(text, text) text -- as json_query", query);
    t.add("json_extract(json, text) json", query);
    t.add("json_extract(jsonb, text) jsonb", query);
    t.add("json_extract_scalar(text, text) text -- as json_value", value);
    t.add("json_extract_scalar(json, text) text", value);
    t.add("json_extract_scalar(jsonb, text) text", value);
}

fn lists(t: &mut Table) {
    // An element that is no scalar makes the whole NULL; one that is null is NULL.
    let values: Eval = |a, _| {
        let texts = [a[0].clone(), a.get(1).cloned().unwrap_or_else(|| Datum::text("$"))];
        let texts = match source(&texts[0]) {
            Some(text) => [Datum::text(text), texts[1].clone()],
            None => return Ok(Datum::Null),
        };
        elements(&texts, |part| Ok(if part == "null" { Some(Datum::Null) } else { scalar(part) }))
    };
    t.add("json_value_array(text) text[] -- the scalars of an array at a path", values);
    t.add("json_value_array(text, text) text[]", values);
    t.add("json_value_array(json) text[]", values);
    t.add("json_value_array(json, text) text[]", values);
    t.add("json_value_array(jsonb) text[]", values);
    t.add("json_value_array(jsonb, text) text[]", values);
    let all: Eval = |a, _| elements(a, |part| like(&a[0], part).map(Some));
    t.add("json_query_array(text) text[] -- the elements of an array at a path", all);
    t.add("json_query_array(text, text) text[]", all);
    t.add("json_query_array(json) json[]", all);
    t.add("json_query_array(json, text) json[]", all);
    t.add("json_query_array(jsonb) jsonb[]", all);
    t.add("json_query_array(jsonb, text) jsonb[]", all);
}

/// A scalar of a document as a value of a type.
fn scalar_as(a: &[Datum], ty: &SqlType, fits: fn(&str) -> bool) -> SqlResult<Datum> {
    let Some(text) = source(&a[0]) else { return Ok(Datum::Null) };
    let text = text.trim();
    if !fits(text) {
        return Err(invalid(format!("the JSON value is no {}", ty.name())));
    }
    let plain = scalar(text).unwrap_or(Datum::Null);
    braid_types::cast(&plain, &SqlType::Text, ty, CastContext::Explicit, braid_types::Style::utc())
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

fn conversions(t: &mut Table) {
    let whole: Eval = |a, _| scalar_as(a, &SqlType::Int8, is_number);
    t.add("int64(json) int8 -- the number that a document is", whole);
    t.add("int64(jsonb) int8", whole);
    let double: Eval = |a, _| scalar_as(a, &SqlType::Float8, is_number);
    t.add("float64(json) float8 -- the number that a document is", double);
    t.add("float64(jsonb) float8", double);
    let truth: Eval = |a, _| scalar_as(a, &SqlType::Bool, |t| matches!(t, "true" | "false"));
    t.add("bool(json) bool -- the truth value that a document is", truth);
    let text: Eval = |a, _| scalar_as(a, &SqlType::Text, |t| t.starts_with('"'));
    t.add("string(json) text", text);
    t.add("string(jsonb) text", text);
    t.add("parse_json(text) json -- a document", |a, _| {
        json::check(text_of(&a[0]))?;
        Ok(Datum::Json(text_of(&a[0]).into()))
    });
    t.add("to_json_string(any) text -- any value as the text of a document", |a, c| {
        Ok(Datum::text(compact(&json_text(&a[0], c, false))))
    })
    .lax()
    .stable();
    let kind: Eval = |a, _| {
        let Some(text) = source(&a[0]) else { return Ok(Datum::Null) };
        Ok(Datum::text(match json::shape(text.trim()) {
            Shape::Object => "object",
            Shape::Array => "array",
            Shape::String => "string",
            _ if is_number(text.trim()) => "number",
            _ if text.trim() == "null" => "null",
            _ => "boolean",
        }))
    };
    t.add("json_type(json) text -- what a document is", kind);
    t.add("json_type(jsonb) text", kind);
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    paths(t);
    lists(t);
    conversions(t);
}
