//! Functions over jsonb.

use braid_types::jsonb::serde_json::{Map, Value};
use braid_types::{Datum, SqlError, SqlResult, SqlState, jsonb};

use super::json_text::{iso_text, json_key, text_pairs};
use super::{bool_of, json_of, text_of};
use crate::EvalContext;
use crate::operators::{json_remove_path, json_step, json_text};
use crate::registry::{Eval, Table};

/// Any SQL value as a jsonb document.
///
/// # Errors
/// 22P02 never for checked json; 54001 for nesting beyond the limit.
pub fn to_json(value: &Datum, ctx: &EvalContext) -> SqlResult<Value> {
    Ok(match value {
        Datum::Null => Value::Null,
        Datum::Bool(b) => Value::Bool(*b),
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Numeric(_) => {
            jsonb::number(&value.to_string())
        }
        Datum::Float4(_) | Datum::Float8(_) => jsonb::number(&value.to_string()),
        Datum::Jsonb(v) => (**v).clone(),
        Datum::Json(text) => jsonb::parse(text)?,
        Datum::Array(a) => {
            Value::Array(a.outer().iter().map(|i| to_json(i, ctx)).collect::<SqlResult<_>>()?)
        }
        Datum::Record(record) => {
            let mut map = Map::new();
            for (at, field) in record.iter().enumerate() {
                let name = match &record.names {
                    Some(names) => names[at].to_string(),
                    None => format!("f{}", at + 1),
                };
                map.insert(name, to_json(field, ctx)?);
            }
            Value::Object(map)
        }
        Datum::Date(_) | Datum::Timestamp(_) | Datum::TimestampTz(_) => {
            Value::String(iso_text(value, ctx.style.zone))
        }
        other => Value::String(other.to_text(ctx.style).unwrap_or_default()),
    })
}

fn object(a: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
    if !a.len().is_multiple_of(2) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "argument list must have even number of elements",
        )
        .with_hint(
            "The arguments of jsonb_build_object() must consist of alternating keys and values.",
        ));
    }
    let mut map = Map::new();
    for (at, pair) in a.chunks(2).enumerate() {
        if pair[0].is_null() {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("argument {}: key must not be null", at * 2 + 1),
            ));
        }
        map.insert(json_key(&pair[0], ctx)?, to_json(&pair[1], ctx)?);
    }
    Ok(jsonb::datum(jsonb::normalize(Value::Object(map))?))
}

/// What `jsonb_typeof` calls it.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What `jsonb_set` and `jsonb_insert` do at the end of the path.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    Set { create: bool },
    Insert { after: bool },
}

fn not_a_position(step: &str, at: usize) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("path element at position {} is not an integer: \"{step}\"", at + 1),
    )
}

/// The steps of a path.
pub(crate) fn path_of(value: &Datum) -> &[Datum] {
    match value {
        Datum::Array(path) => &path.items,
        _ => &[],
    }
}

/// A step of a path as text.
///
/// # Errors
/// 22004 for NULL.
pub(crate) fn path_step(step: &Datum, at: usize) -> SqlResult<&str> {
    match step {
        Datum::Null => Err(SqlError::new(
            SqlState("22004"),
            format!("path element at position {} is null", at + 1),
        )),
        other => Ok(super::text_of(other)),
    }
}

/// Changes the value at a path; `at` is the place in the path, for errors.
fn change_path(
    target: &mut Value,
    path: &[Datum],
    at: usize,
    new: &Value,
    change: Change,
) -> SqlResult<()> {
    let Some(step) = path.get(at) else { return Ok(()) };
    let step = path_step(step, at)?;
    if !target.is_array() && !target.is_object() {
        return Ok(());
    }
    let last = at + 1 == path.len();
    match target {
        Value::Object(map) if last => match (map.contains_key(step), change) {
            (true, Change::Insert { .. }) => {
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "cannot replace existing key")
                    .with_hint("Try using the function jsonb_set to replace key value."))
            }
            (false, Change::Set { create: false }) => Ok(()),
            _ => {
                map.insert(step.to_string(), new.clone());
                Ok(())
            }
        },
        Value::Object(map) => match map.get_mut(step) {
            Some(inner) => change_path(inner, path, at + 1, new, change),
            None => Ok(()),
        },
        Value::Array(items) => {
            let given: i64 = step.trim().parse().map_err(|_| not_a_position(step, at))?;
            let place = if given < 0 { given + items.len() as i64 } else { given };
            let inside = usize::try_from(place).ok().filter(|p| *p < items.len());
            match (inside, last, change) {
                (Some(p), false, _) => change_path(&mut items[p], path, at + 1, new, change),
                (None, false, _) | (None, true, Change::Set { create: false }) => Ok(()),
                (Some(p), true, Change::Set { .. }) => {
                    items[p] = new.clone();
                    Ok(())
                }
                (Some(p), true, Change::Insert { after }) => {
                    items.insert(p + usize::from(after), new.clone());
                    Ok(())
                }
                (None, true, _) => {
                    let end = if place < 0 { 0 } else { items.len() };
                    items.insert(end, new.clone());
                    Ok(())
                }
            }
        }
        _ => Ok(()),
    }
}

fn changed(a: &[Datum], change: Change) -> SqlResult<Datum> {
    let mut value = json_of(&a[0]).clone();
    if !value.is_array() && !value.is_object() {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "cannot set path in scalar"));
    }
    let untouched = matches!(change, Change::Set { create: false })
        && (value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty));
    if untouched {
        return Ok(a[0].clone());
    }
    change_path(&mut value, path_of(&a[1]), 0, json_of(&a[2]), change)?;
    Ok(jsonb::datum(jsonb::normalize(value)?))
}

/// `jsonb_set_lax`: what is done where the new value is NULL is the last argument.
fn set_lax(a: &[Datum], _: &EvalContext) -> SqlResult<Datum> {
    if a[0].is_null() || a[1].is_null() || a.get(3).is_some_and(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let change = Change::Set { create: a.get(3).is_none_or(bool_of) };
    let given = !a[2].is_null();
    let treatment = match a.get(4) {
        None => Some("use_json_null"),
        Some(Datum::Null) => None,
        Some(word) => Some(text_of(word)),
    };
    let known = ["delete_key", "return_target", "use_json_null", "raise_exception"];
    // A word that is not needed may be any, but not NULL.
    if treatment.is_none_or(|word| !given && !known.contains(&word)) {
        let text = "null_value_treatment must be \"delete_key\", \"return_target\", \
                    \"use_json_null\", or \"raise_exception\"";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text));
    }
    if given {
        return changed(&a[..3], change);
    }
    match treatment.unwrap_or_default() {
        "return_target" => Ok(a[0].clone()),
        "delete_key" => Ok(jsonb::datum(json_remove_path(json_of(&a[0]), path_of(&a[1]))?)),
        "raise_exception" => {
            let reason = "Exception was raised because null_value_treatment is \
                          \"raise_exception\".";
            let way = "To avoid, either change the null_value_treatment argument or ensure that an \
                       SQL NULL is not passed.";
            Err(SqlError::new(SqlState("22004"), "JSON value must not be null")
                .with_detail(reason)
                .with_hint(way))
        }
        _ => {
            let null = jsonb::datum(Value::Null);
            changed(&[a[0].clone(), a[1].clone(), null], change)
        }
    }
}

fn strip_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(_, v)| !v.is_null())
                .map(|(k, v)| (k.clone(), strip_nulls(v)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(strip_nulls).collect()),
        other => other.clone(),
    }
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.add("to_jsonb(anyelement) jsonb -- any value as jsonb", |a, c| {
        Ok(jsonb::datum(jsonb::normalize(to_json(&a[0], c)?)?))
    })
    .stable();
    let build_array: Eval = |a, c| {
        let items = a.iter().map(|v| to_json(v, c)).collect::<SqlResult<_>>()?;
        Ok(jsonb::datum(jsonb::normalize(Value::Array(items))?))
    };
    t.add("jsonb_build_array(...any) jsonb -- an array of the arguments", build_array)
        .lax()
        .stable();
    t.add("jsonb_build_array() jsonb", build_array).lax().stable();
    t.add("jsonb_build_object(...any) jsonb -- an object of keys and values in turn", object)
        .lax()
        .stable();
    t.add("jsonb_build_object() jsonb", object).lax().stable();
    let type_of: Eval = |a, _| Ok(Datum::text(type_name(json_of(&a[0]))));
    t.add("jsonb_typeof(jsonb) text -- kind of the outermost value", type_of);
    let length: Eval = |a, _| match json_of(&a[0]) {
        Value::Array(items) => Ok(Datum::Int4(items.len() as i32)),
        Value::Object(_) => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "cannot get array length of a non-array",
        )),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "cannot get array length of a scalar",
        )),
    };
    t.add("jsonb_array_length(jsonb) int4 -- number of elements", length);
    t.add("jsonb_pretty(jsonb) text -- as text with line breaks", |a, _| {
        Ok(Datum::text(jsonb::pretty(json_of(&a[0]))))
    });
    t.add("jsonb_strip_nulls(jsonb) jsonb -- without fields that are null", |a, _| {
        Ok(jsonb::datum(strip_nulls(json_of(&a[0]))))
    });
    let path: Eval = |a, _| {
        let mut value = json_of(&a[0]);
        for step in &a[1..] {
            match json_step(value, text_of(step)) {
                Some(next) => value = next,
                None => return Ok(Datum::Null),
            }
        }
        Ok(jsonb::datum(value.clone()))
    };
    t.add("jsonb_extract_path(jsonb, ...text) jsonb -- what is at a path", path);
    let path_text: Eval = |a, _| {
        let mut value = json_of(&a[0]);
        for step in &a[1..] {
            match json_step(value, text_of(step)) {
                Some(next) => value = next,
                None => return Ok(Datum::Null),
            }
        }
        Ok(json_text(Some(value)))
    };
    t.add("jsonb_extract_path_text(jsonb, ...text) text -- what is at a path, as text", path_text);
    let set: Eval = |a, _| changed(a, Change::Set { create: a.get(3).is_none_or(bool_of) });
    t.add("jsonb_set(jsonb, text[], jsonb) jsonb -- with the value at a path replaced", set);
    t.add("jsonb_set(jsonb, text[], jsonb, bool) jsonb", set);
    let insert: Eval = |a, _| changed(a, Change::Insert { after: a.get(3).is_some_and(bool_of) });
    t.add("jsonb_insert(jsonb, text[], jsonb) jsonb -- with a new value at a path", insert);
    t.add("jsonb_insert(jsonb, text[], jsonb, bool) jsonb", insert);
    t.add(
        "jsonb_set_lax(jsonb, text[], jsonb) jsonb -- as jsonb_set, with a say in what NULL means",
        set_lax,
    )
    .lax();
    t.add("jsonb_set_lax(jsonb, text[], jsonb, bool) jsonb", set_lax).lax();
    t.add("jsonb_set_lax(jsonb, text[], jsonb, bool, text) jsonb", set_lax).lax();
    let from_pairs: Eval = |a, c| {
        let mut map = Map::new();
        for (key, value) in text_pairs(a)? {
            map.insert(key, to_json(&value, c)?);
        }
        Ok(jsonb::datum(jsonb::normalize(Value::Object(map))?))
    };
    t.add("jsonb_object(text[]) jsonb -- an object of texts", from_pairs);
    t.add("jsonb_object(text[], text[]) jsonb", from_pairs);
    t.add("jsonb_exists(jsonb, text) bool -- as `?`", |a, _| {
        Ok(Datum::Bool(match json_of(&a[0]) {
            Value::Object(map) => map.contains_key(text_of(&a[1])),
            Value::Array(items) => items.iter().any(|i| i.as_str() == Some(text_of(&a[1]))),
            _ => false,
        }))
    });
}
