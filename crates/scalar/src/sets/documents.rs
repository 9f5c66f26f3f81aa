//! Documents and texts as rows.

use std::sync::Arc;

use braid_types::json::{self, Shape};
use braid_types::jsonb::serde_json::Value;
use braid_types::{Datum, SqlError, SqlResult, SqlState, jsonb};

use crate::EvalContext;
use crate::functions::citext::regex_arguments;
use crate::functions::pieces::Pieces;
use crate::functions::{fill_path_rows, json_of, plain_text, text_of};
use crate::pattern::no_global;
use crate::registry::{Rows, RowsEval, Table};

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The error of a function that wants an object and got something else.
fn not_an_object(of: &str, what: &str) -> SqlError {
    invalid(match of {
        "json_each" if what == "an array" => "cannot deconstruct an array as an object".into(),
        "json_each" => "cannot deconstruct a scalar".into(),
        "jsonb_each" | "jsonb_each_text" => format!("cannot call {of} on a non-object"),
        _ => format!("cannot call {of} on {what}"),
    })
}

/// What a function makes of each element of an array.
fn binary_items(value: &Datum, make: fn(&Value) -> Datum) -> SqlResult<Rows> {
    match json_of(value) {
        Value::Array(items) => {
            let (count, kept) = (items.len(), value.clone());
            Ok(Rows::numbered(count, move |at| vec![make(&json_of(&kept)[at])]))
        }
        Value::Object(_) => Err(invalid("cannot extract elements from an object".into())),
        _ => Err(invalid("cannot extract elements from a scalar".into())),
    }
}

fn binary_fields<'a>(
    value: &'a Datum,
    of: &str,
) -> SqlResult<impl Iterator<Item = (&'a String, &'a Value)>> {
    match json_of(value) {
        Value::Object(map) => Ok(map.iter()),
        Value::Array(_) => Err(not_an_object(of, "an array")),
        _ => Err(not_an_object(of, "a scalar")),
    }
}

fn binary_text(value: &Value) -> Datum {
    match value {
        Value::Null => Datum::Null,
        Value::String(s) => Datum::text(s.as_str()),
        other => Datum::text(jsonb::text(other)),
    }
}

/// What a function makes of each element of an array.
fn text_items(value: &Datum, of: &str, make: fn(&str) -> Datum) -> SqlResult<Rows> {
    let Datum::Json(text) = value else { return Ok(Rows::none()) };
    match json::shape(text) {
        Shape::Array => Ok(Rows::each(json::each(Arc::clone(text), move |_, v| Ok(vec![make(v)])))),
        Shape::Object => Err(invalid(format!("cannot call {of} on a non-array"))),
        _ => Err(invalid(format!("cannot call {of} on a scalar"))),
    }
}

/// What a function makes of each field of an object.
fn text_fields(value: &Datum, of: &str, make: fn(&str, &str) -> Vec<Datum>) -> SqlResult<Rows> {
    let Datum::Json(text) = value else { return Ok(Rows::none()) };
    match json::shape(text) {
        Shape::Object => Ok(Rows::each(json::each(Arc::clone(text), move |k, v| Ok(make(&k, v))))),
        Shape::Array => Err(not_an_object(of, "an array")),
        _ => Err(not_an_object(of, "a scalar")),
    }
}

fn kept(text: &str) -> Datum {
    Datum::Json(text.into())
}

fn binary(t: &mut Table) {
    const VALUE: &[(&str, &str)] = &[("value", "jsonb")];
    const TEXT: &[(&str, &str)] = &[("value", "text")];
    t.rows("jsonb_array_elements(jsonb) jsonb -- the elements of an array", |a, _| {
        binary_items(&a[0], |v| jsonb::datum(v.clone()))
    })
    .columns(VALUE);
    t.rows("jsonb_array_elements_text(jsonb) text -- the elements of an array, as text", |a, _| {
        binary_items(&a[0], binary_text)
    })
    .columns(TEXT);
    t.rows("jsonb_object_keys(jsonb) text -- the keys of an object", |a, _| {
        let fields = binary_fields(&a[0], "jsonb_object_keys")?;
        Ok(fields.map(|(k, _)| vec![Datum::text(k.as_str())]).collect())
    });
    t.rows("jsonb_each(jsonb) record -- the fields of an object", |a, _| {
        let fields = binary_fields(&a[0], "jsonb_each")?;
        Ok(fields.map(|(k, v)| vec![Datum::text(k.as_str()), jsonb::datum(v.clone())]).collect())
    })
    .columns(&[("key", "text"), ("value", "jsonb")]);
    t.rows("jsonb_each_text(jsonb) record -- the fields of an object, as text", |a, _| {
        let fields = binary_fields(&a[0], "jsonb_each_text")?;
        Ok(fields.map(|(k, v)| vec![Datum::text(k.as_str()), binary_text(v)]).collect())
    })
    .columns(&[("key", "text"), ("value", "text")]);
    fill_path_rows(t);
}

fn textual(t: &mut Table) {
    t.rows("json_array_elements(json) json -- the elements of an array", |a, _| {
        text_items(&a[0], "json_array_elements", kept)
    })
    .columns(&[("value", "json")]);
    t.rows("json_array_elements_text(json) text -- the elements of an array, as text", |a, _| {
        text_items(&a[0], "json_array_elements_text", plain_text)
    })
    .columns(&[("value", "text")]);
    t.rows("json_object_keys(json) text -- the keys of an object", |a, _| {
        text_fields(&a[0], "json_object_keys", |k, _| vec![Datum::text(k)])
    });
    t.rows("json_each(json) record -- the fields of an object", |a, _| {
        text_fields(&a[0], "json_each", |k, v| vec![Datum::text(k), kept(v)])
    })
    .columns(&[("key", "text"), ("value", "json")]);
    t.rows("json_each_text(json) record -- the fields of an object, as text", |a, _| {
        text_fields(&a[0], "json_each", |k, v| vec![Datum::text(k), plain_text(v)])
    })
    .columns(&[("key", "text"), ("value", "text")]);
}

/// One array of captures for each match; without the flag `g` the first match only.
fn matches(a: &[Datum], _: &EvalContext) -> SqlResult<Rows> {
    let flags = a.get(2).map_or("", text_of);
    let found = crate::regexp_captures(text_of(&a[0]), text_of(&a[1]), &flags.replace('g', ""))?;
    let limit = if flags.contains('g') { usize::MAX } else { 1 };
    Ok(found.into_iter().take(limit).map(|row| vec![row]).collect())
}

/// Pieces of texts may be many more than an array holds.
fn each(pieces: Pieces) -> Rows {
    Rows::each(pieces.map(|piece| Ok(vec![piece])))
}

fn texts(t: &mut Table) {
    t.rows("regexp_matches(text, text) text[] -- captures of the matches", matches);
    t.rows("regexp_matches(text, text, text) text[]", matches);
    let any_case: RowsEval = |a, c| matches(&regex_arguments(a), c);
    t.rows("regexp_matches(citext, citext) text[]", any_case);
    t.rows("regexp_matches(citext, citext, text) text[]", any_case);
    let between_matches: RowsEval = |a, _| {
        no_global(a, "regexp_split_to_table")?;
        Ok(each(Pieces::between_matches(a)?))
    };
    t.rows("regexp_split_to_table(text, text) text -- the pieces between matches", between_matches);
    t.rows("regexp_split_to_table(text, text, text) text", between_matches);
    let between_any_case: RowsEval = |a, _| {
        no_global(a, "regexp_split_to_table")?;
        Ok(each(Pieces::between_matches(&regex_arguments(a))?))
    };
    t.rows("regexp_split_to_table(citext, citext) text", between_any_case);
    t.rows("regexp_split_to_table(citext, citext, text) text", between_any_case);
    // Without a delimiter the text is split into characters.
    let delimited: RowsEval = |a, _| Ok(Pieces::delimited(a).map_or_else(Rows::none, each));
    t.rows("string_to_table(text, text) text -- the pieces between delimiters", delimited).lax();
    t.rows("string_to_table(text, text, text) text", delimited).lax();
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    binary(t);
    textual(t);
    texts(t);
}
