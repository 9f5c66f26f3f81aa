//! `jsonb`: parsing, normal form, text form, order.
//!
//! The normal form sorts object keys by length, then by bytes, keeps the last of duplicate keys,
//! and writes numbers as `numeric` does.

use std::cmp::Ordering;

pub use serde_json;
use serde_json::{Map, Number, Value};

use crate::{Datum, SqlError, SqlResult, SqlState, numeric};

/// Parses and normalises.
///
/// # Errors
/// 22P02 for malformed text, 54001 for nesting beyond the limit.
pub fn parse(text: &str) -> SqlResult<Value> {
    let value: Value = serde_json::from_str(text).map_err(|e| {
        if e.to_string().contains("recursion limit") {
            return SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "JSON is nested too deeply");
        }
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json")
            .with_detail(e.to_string())
    })?;
    normalize(value)
}

/// Brings a value to the normal form.
///
/// # Errors
/// 22P05 for a NUL character.
pub fn normalize(value: Value) -> SqlResult<Value> {
    Ok(match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map.into_iter().collect();
            entries.sort_by(|a, b| key_order(&a.0, &b.0));
            let mut sorted = Map::new();
            for (key, value) in entries {
                check_text(&key)?;
                sorted.insert(key, normalize(value)?);
            }
            Value::Object(sorted)
        }
        Value::Array(items) => {
            Value::Array(items.into_iter().map(normalize).collect::<SqlResult<_>>()?)
        }
        Value::Number(n) => {
            let text = n.to_string();
            match numeric::parse(&text) {
                Some(number) => {
                    Value::Number(Number::from_string_unchecked(numeric::text(&number)))
                }
                None => {
                    return Err(SqlError::new(
                        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                        "value overflows numeric format",
                    ));
                }
            }
        }
        Value::String(text) => {
            check_text(&text)?;
            Value::String(text)
        }
        other => other,
    })
}

fn check_text(text: &str) -> SqlResult<()> {
    if text.contains('\0') {
        return Err(SqlError::new(
            SqlState::UNTRANSLATABLE_CHARACTER,
            "unsupported Unicode escape sequence",
        )
        .with_detail("\\u0000 cannot be converted to text."));
    }
    Ok(())
}

/// Order of object keys: shorter first, then bytes.
pub(crate) fn key_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

/// The text form, with a blank after each comma and colon.
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            out.push('{');
            for (at, (key, item)) in map.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                out.push_str(&crate::json::quoted(key));
                out.push_str(": ");
                write(item, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::String(text) => out.push_str(&crate::json::quoted(text)),
        other => out.push_str(&other.to_string()),
    }
}

/// The text form over several lines, four blanks per level (`jsonb_pretty`).
pub fn pretty(value: &Value) -> String {
    let mut out = String::new();
    write_pretty(value, 0, &mut out);
    out
}

fn write_pretty(value: &Value, depth: usize, out: &mut String) {
    let indent = |depth: usize, out: &mut String| {
        out.push('\n');
        out.push_str(&"    ".repeat(depth));
    };
    match value {
        Value::Object(map) => {
            out.push('{');
            for (at, (key, item)) in map.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                indent(depth + 1, out);
                out.push_str(&crate::json::quoted(key));
                out.push_str(": ");
                write_pretty(item, depth + 1, out);
            }
            indent(depth, out);
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                indent(depth + 1, out);
                write_pretty(item, depth + 1, out);
            }
            indent(depth, out);
            out.push(']');
        }
        other => write(other, out),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::String(_) => 1,
        Value::Number(_) => 2,
        Value::Bool(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

/// The total order of `jsonb`. An empty array as the whole document sorts before everything: so
/// it is in PostgreSQL, by accident of history.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    let empty = |v: &Value| v.as_array().is_some_and(Vec::is_empty);
    match (empty(a), empty(b)) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        _ => compare_inner(a, b),
    }
}

fn compare_inner(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(x), Value::Bool(y)) => x.cmp(y),
        (Value::String(x), Value::String(y)) => x.as_bytes().cmp(y.as_bytes()),
        (Value::Number(x), Value::Number(y)) => {
            match (numeric::parse(&x.to_string()), numeric::parse(&y.to_string())) {
                (Some(x), Some(y)) => numeric::compare(&x, &y),
                _ => Ordering::Equal,
            }
        }
        (Value::Array(x), Value::Array(y)) => x.len().cmp(&y.len()).then_with(|| {
            x.iter()
                .zip(y)
                .map(|(a, b)| compare_inner(a, b))
                .find(|o| o.is_ne())
                .unwrap_or(Ordering::Equal)
        }),
        (Value::Object(x), Value::Object(y)) => x.len().cmp(&y.len()).then_with(|| {
            x.iter()
                .zip(y)
                .map(|((ka, va), (kb, vb))| {
                    // Stored by length, compared as texts.
                    ka.as_bytes().cmp(kb.as_bytes()).then_with(|| compare_inner(va, vb))
                })
                .find(|o| o.is_ne())
                .unwrap_or(Ordering::Equal)
        }),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// `left @> right`.
pub fn contains(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(l), Value::Object(r)) => {
            r.iter().all(|(key, item)| l.get(key).is_some_and(|have| contains(have, item)))
        }
        (Value::Array(l), Value::Array(r)) => {
            r.iter().all(|item| l.iter().any(|have| contains_element(have, item)))
        }
        // A scalar is contained in an array that has it, at the top level only.
        (Value::Array(l), scalar) if !scalar.is_object() => {
            l.iter().any(|have| compare(have, scalar).is_eq())
        }
        (a, b) => rank(a) == rank(b) && compare(a, b).is_eq(),
    }
}

fn contains_element(have: &Value, item: &Value) -> bool {
    match (have, item) {
        (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_)) => {
            contains(have, item)
        }
        (a, b) => rank(a) == rank(b) && compare(a, b).is_eq(),
    }
}

/// A SQL value of this text as JSON number.
pub fn number(value: &str) -> Value {
    match numeric::parse(value) {
        Some(n) => Value::Number(Number::from_string_unchecked(numeric::text(&n))),
        None => Value::String(value.to_string()),
    }
}

/// A datum from a normalised value.
pub fn datum(value: Value) -> Datum {
    Datum::Jsonb(value.into())
}
