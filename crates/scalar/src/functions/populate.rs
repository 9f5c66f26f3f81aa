//! Rows out of JSON: `jsonb_populate_record(NULL::t, '{"x": 1}')` and its family.
//!
//! What such a call gives depends on a type, so that is settled when the call is bound: the call
//! becomes a conversion of the document to that type, which no cast of SQL is. A field that the
//! document does not have is NULL, or what the row in the first argument has there.
//!
//! ```text
//!   jsonb_populate_record(NULL::t, doc)     doc as t
//!   jsonb_populate_record(row, doc)         ROW(CASE WHEN doc ? 'x' THEN (doc as t).x
//!                                               ELSE (row).x END, ..)
//! ```
//! Those that give rows, or a row of columns that are listed behind AS, are bound in FROM.

use std::sync::Arc;

use braid_types::json::{self, Shape};
use braid_types::{
    ArrayValue, CastContext, CompositeType, Datum, SqlError, SqlResult, SqlState, SqlType, jsonb,
};

use super::plain_text;
use crate::bind::field_of;
use crate::bind_call::bind_named;
use crate::conversion::{coerce, convert, fold};
use crate::registry::Table;
use crate::{BindContext, Bound, CaseBranch, EvalContext, Node};

/// A document as a value of a type.
///
/// # Errors
/// Those of reading the fields' texts; 22023 where an object or an array is wanted.
pub fn populate(document: &Datum, ty: &SqlType, ctx: &EvalContext) -> SqlResult<Datum> {
    match document {
        Datum::Null => Ok(Datum::Null),
        Datum::Jsonb(value) => of_text(&jsonb::text(value), ty, None, ctx),
        Datum::Json(text) => of_text(text, ty, None, ctx),
        _ => Err(SqlError::internal("a row out of what is no document")),
    }
}

/// A document that may be the value of a key.
fn of_text(text: &str, ty: &SqlType, key: Option<&str>, ctx: &EvalContext) -> SqlResult<Datum> {
    let shape = json::shape(text);
    match ty {
        _ if shape == Shape::Null => Ok(Datum::Null),
        SqlType::Json => Ok(Datum::Json(text.trim().into())),
        SqlType::Jsonb => Ok(jsonb::datum(jsonb::parse(text)?)),
        SqlType::Composite(row) => match shape {
            Shape::Object => of_object(text, row, ctx),
            Shape::String => of_string(text, ty, ctx),
            Shape::Array => Err(not_an_object("an array")),
            _ => Err(not_an_object("a scalar")),
        },
        SqlType::Array(element) => match shape {
            Shape::Array => of_array(text, element, ctx).map(|a| Datum::Array(Arc::new(a))),
            Shape::String => of_string(text, ty, ctx),
            _ => Err(no_array(key)),
        },
        _ => of_string(text, ty, ctx),
    }
}

fn no_array(key: Option<&str>) -> SqlError {
    let e = SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "expected JSON array");
    match key {
        Some(key) => e.with_hint(format!("See the value of key \"{key}\".")),
        None => e,
    }
}

fn not_an_object(what: &str) -> SqlError {
    let text = format!("cannot call populate_composite on {what}");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
}

/// What the text form of a type is read from: strings without their quotes.
fn of_string(text: &str, ty: &SqlType, ctx: &EvalContext) -> SqlResult<Datum> {
    let plain = plain_text(text.trim());
    convert(&plain, &SqlType::Unknown, ty, CastContext::Assignment, ctx)
}

fn of_object(text: &str, ty: &CompositeType, ctx: &EvalContext) -> SqlResult<Datum> {
    let entries = json::entries(text.trim());
    let mut fields = Vec::with_capacity(ty.fields.len());
    for field in &ty.fields {
        // The last of several counts.
        let found = entries.iter().rev().find(|(key, _)| **key == *field.name);
        fields.push(match found {
            Some((key, value)) => of_text(value, &field.ty, Some(key), ctx)?,
            None => Datum::Null,
        });
    }
    Ok(ty.value(fields))
}

fn of_array(text: &str, element: &SqlType, ctx: &EvalContext) -> SqlResult<ArrayValue> {
    let parts = json::elements(text.trim());
    let document = matches!(element, SqlType::Json | SqlType::Jsonb);
    let nested = parts.first().is_some_and(|part| json::shape(part) == Shape::Array);
    if !nested || document {
        let items = parts.iter().map(|part| of_text(part, element, None, ctx));
        return Ok(ArrayValue::list(element.clone(), items.collect::<SqlResult<_>>()?));
    }
    let mut inner = Vec::with_capacity(parts.len());
    for part in parts {
        if json::shape(part) != Shape::Array {
            return Err(ragged());
        }
        inner.push(Arc::new(of_array(part, element, ctx)?));
    }
    ArrayValue::stack(element.clone(), &inner).map_err(|_| ragged())
}

fn ragged() -> SqlError {
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "malformed JSON array")
        .with_detail("Multidimensional arrays must have sub-arrays with matching dimensions.")
}

/// Binds `json_populate_record` or `jsonb_populate_record`.
pub(crate) fn bind(name: &str, args: Vec<Bound>, ctx: &mut dyn BindContext) -> SqlResult<Bound> {
    let [base, document] =
        <[Bound; 2]>::try_from(args).map_err(|_| SqlError::internal("two arguments"))?;
    let SqlType::Composite(ty) = base.ty().clone() else {
        return Err(match base.ty() {
            SqlType::Unknown => SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                "could not determine polymorphic type because input has type unknown",
            ),
            _ => no_row_type(name),
        });
    };
    let kind = if name.starts_with("jsonb") { SqlType::Jsonb } else { SqlType::Json };
    let document = coerce(document, &kind, CastContext::Implicit, ctx)?;
    let own = SqlType::Composite(ty.clone());
    let refinement = ctx.params().refinement_of_type(&own)?;
    let made = Bound::new(Node::Cast(document.clone(), CastContext::Explicit), own.clone());
    let made = refinement.over(made);
    if matches!(base.as_const(), Some(Datum::Null)) {
        return fold(made);
    }
    let searched = coerce(document.clone(), &SqlType::Jsonb, CastContext::Explicit, ctx)?;
    let mut fields = Vec::with_capacity(ty.fields.len());
    for (at, field) in ty.fields.iter().enumerate() {
        let key = Bound::constant(Datum::text(&*field.name), SqlType::Text);
        let has = bind_named("?", vec![searched.clone(), key], true, ctx)?;
        let branch = CaseBranch { when: has, then: field_of(&made, at)? };
        let kept = field_of(&base, at)?;
        fields.push(Bound::new(Node::Case(vec![branch], Some(kept)), field.ty.clone()));
    }
    let row = Bound::new(Node::Row(fields, Some(ty.names().clone())), own.clone());
    // Without a document the row stays what it is.
    let none = Bound::new(Node::IsNull(document, false), SqlType::Bool);
    let branch = CaseBranch { when: none, then: base };
    fold(Bound::new(Node::Case(vec![branch], Some(row)), own))
}

/// 22023: nothing says what the fields are.
pub fn no_row_type(name: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("could not determine row type for result of {name}"),
    )
    .with_hint(
        "Provide a non-null record argument, or call the function in the FROM clause using a \
         column definition list.",
    )
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.add(
        "json_populate_record(anyelement, json) anyelement -- a row of the first one's type",
        |_, _| Err(unbound()),
    )
    .lax();
    t.add(
        "jsonb_populate_record(anyelement, jsonb) anyelement -- a row of the first one's type",
        |_, _| Err(unbound()),
    )
    .lax();
    t.rows(
        "json_populate_recordset(anyelement, json) anyelement -- a row of each object",
        |_, _| Err(unbound()),
    );
    t.rows(
        "jsonb_populate_recordset(anyelement, jsonb) anyelement -- a row of each object",
        |_, _| Err(unbound()),
    );
    t.rows("json_to_record(json) record -- fields as columns, listed in AS", |_, _| Err(unbound()));
    t.rows("jsonb_to_record(jsonb) record -- fields as columns, listed in AS", |_, _| {
        Err(unbound())
    });
    t.rows("json_to_recordset(json) record -- a row of each object, columns in AS", |_, _| {
        Err(unbound())
    });
    t.rows("jsonb_to_recordset(jsonb) record -- a row of each object, columns in AS", |_, _| {
        Err(unbound())
    });
}

/// Binding makes something else of each call.
fn unbound() -> SqlError {
    SqlError::unsupported("this call of a function that makes rows of JSON")
        .with_hint("Call it in FROM.")
}
