//! Functions over jsonb.

use braid_types::jsonb::serde_json::{Map, Value};
use braid_types::{Datum, SqlError, SqlResult, SqlState, jsonb};

use super::super::EvalContext;
use super::super::builtin::{Eval, Table};
use super::super::operators::{json_step, json_text};
use super::{bool_of, json_of, text_of, words};

/// Any SQL value as JSON.
pub fn to_json(value: &Datum, ctx: &EvalContext) -> Value {
    match value {
        Datum::Null => Value::Null,
        Datum::Bool(b) => Value::Bool(*b),
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Numeric(_) => {
            jsonb::number(&value.to_string())
        }
        Datum::Float4(_) | Datum::Float8(_) => jsonb::number(&value.to_string()),
        Datum::Jsonb(v) => (**v).clone(),
        Datum::Array(a) => Value::Array(a.items.iter().map(|i| to_json(i, ctx)).collect()),
        Datum::Record(fields) => {
            let mut map = Map::new();
            for (at, field) in fields.iter().enumerate() {
                map.insert(format!("f{}", at + 1), to_json(field, ctx));
            }
            Value::Object(map)
        }
        Datum::Timestamp(_) | Datum::TimestampTz(_) => {
            let text = value.to_text(&ctx.time_zone).unwrap_or_default().replacen(' ', "T", 1);
            // ISO offsets have minutes in JSON.
            let bare = text.len() > 3
                && matches!(text.as_bytes()[text.len() - 3], b'+' | b'-')
                && matches!(value, Datum::TimestampTz(_));
            Value::String(if bare { format!("{text}:00") } else { text })
        }
        other => Value::String(other.to_text(&ctx.time_zone).unwrap_or_default()),
    }
}

fn object(a: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
    if !a.len().is_multiple_of(2) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "argument list must have even number of elements",
        ));
    }
    let mut map = Map::new();
    for pair in a.chunks(2) {
        if pair[0].is_null() {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "argument 1: key must not be null",
            ));
        }
        let key = pair[0].to_text(&ctx.time_zone).unwrap_or_default();
        map.insert(key, to_json(&pair[1], ctx));
    }
    Ok(jsonb::datum(jsonb::normalize(Value::Object(map))?))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn set_path(target: &mut Value, path: &[&str], new: &Value, create: bool, insert: bool) {
    let Some((step, rest)) = path.split_first() else { return };
    match target {
        Value::Object(map) => {
            if rest.is_empty() {
                if map.contains_key(*step) {
                    if !insert {
                        map.insert(step.to_string(), new.clone());
                    }
                } else if create {
                    map.insert(step.to_string(), new.clone());
                }
            } else if let Some(inner) = map.get_mut(*step) {
                set_path(inner, rest, new, create, insert);
            }
        }
        Value::Array(items) => {
            let Ok(given) = step.parse::<i64>() else { return };
            let at = if given < 0 { given + items.len() as i64 } else { given };
            let inside = at >= 0 && (at as usize) < items.len();
            if !rest.is_empty() {
                if inside {
                    set_path(&mut items[at as usize], rest, new, create, insert);
                }
            } else if inside && !insert {
                items[at as usize] = new.clone();
            } else if inside {
                items.insert(at as usize, new.clone());
            } else if create || insert {
                if at < 0 {
                    items.insert(0, new.clone());
                } else {
                    items.push(new.clone());
                }
            }
        }
        _ => {}
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
    let any: Eval = |a, c| Ok(jsonb::datum(jsonb::normalize(to_json(&a[0], c))?));
    t.add("to_jsonb(any) jsonb", any).stable();
    t.add("to_json(any) jsonb", any).stable();
    t.add("row_to_json(any) jsonb", any).stable();
    t.add("array_to_json(any) jsonb", any).stable();
    let build_array: Eval = |a, c| {
        let items = Value::Array(a.iter().map(|v| to_json(v, c)).collect());
        Ok(jsonb::datum(jsonb::normalize(items)?))
    };
    for name in ["jsonb_build_array(...any) jsonb", "json_build_array(...any) jsonb"] {
        t.add(name, build_array).lax().stable();
    }
    for name in ["jsonb_build_object(...any) jsonb", "json_build_object(...any) jsonb"] {
        t.add(name, object).lax().stable();
    }
    let type_of: Eval = |a, _| Ok(Datum::text(type_name(json_of(&a[0]))));
    t.add("jsonb_typeof(jsonb) text", type_of);
    t.add("json_typeof(jsonb) text", type_of);
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
    t.add("jsonb_array_length(jsonb) int4", length);
    t.add("json_array_length(jsonb) int4", length);
    t.add("jsonb_pretty(jsonb) text", |a, _| Ok(Datum::text(jsonb::pretty(json_of(&a[0])))));
    t.add("jsonb_strip_nulls(jsonb) jsonb", |a, _| Ok(jsonb::datum(strip_nulls(json_of(&a[0])))));
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
    t.add("jsonb_extract_path(jsonb, ...text) jsonb", path);
    t.add("json_extract_path(jsonb, ...text) jsonb", path);
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
    t.add("jsonb_extract_path_text(jsonb, ...text) text", path_text);
    t.add("json_extract_path_text(jsonb, ...text) text", path_text);
    let set: Eval = |a, _| {
        let mut value = json_of(&a[0]).clone();
        let create = a.get(3).is_none_or(bool_of);
        set_path(&mut value, &words(&a[1]), json_of(&a[2]), create, false);
        Ok(jsonb::datum(jsonb::normalize(value)?))
    };
    t.add("jsonb_set(jsonb, text[], jsonb) jsonb", set);
    t.add("jsonb_set(jsonb, text[], jsonb, bool) jsonb", set);
    t.add("jsonb_insert(jsonb, text[], jsonb) jsonb", |a, _| {
        let mut value = json_of(&a[0]).clone();
        set_path(&mut value, &words(&a[1]), json_of(&a[2]), true, true);
        Ok(jsonb::datum(jsonb::normalize(value)?))
    });
    t.add("jsonb_object(text[]) jsonb", |a, c| {
        let Datum::Array(items) = &a[0] else { return Ok(Datum::Null) };
        object(&items.items, c)
    })
    .stable();
    t.add("jsonb_exists(jsonb, text) bool", |a, _| {
        Ok(Datum::Bool(match json_of(&a[0]) {
            Value::Object(map) => map.contains_key(text_of(&a[1])),
            Value::Array(items) => items.iter().any(|i| i.as_str() == Some(text_of(&a[1]))),
            _ => false,
        }))
    });
}
