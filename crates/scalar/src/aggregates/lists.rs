//! Aggregates that keep all rows: arrays, texts, documents.

use braid_types::json::quoted;
use braid_types::jsonb::serde_json::{Map, Value};
use braid_types::{Datum, SqlResult, SqlType, jsonb};

use super::accumulator::Accumulator;
use crate::EvalContext;
use crate::array_operators::array_of_values;
use crate::functions::{json_key, json_text, to_json};
use crate::registry::Table;

/// Arguments one behind the other, and what is made of the rows.
#[derive(Debug)]
struct List {
    values: Vec<Datum>,
    width: usize,
    nulls: bool,
    element: SqlType,
    make: fn(&List, &EvalContext) -> SqlResult<Datum>,
}

impl List {
    fn rows(&self) -> impl Iterator<Item = &[Datum]> {
        self.values.chunks(self.width)
    }
}

impl Accumulator for List {
    fn update(&mut self, args: &[Datum]) -> SqlResult<()> {
        if self.nulls || !args[0].is_null() {
            self.values.extend_from_slice(args);
        }
        Ok(())
    }

    fn finish(&self, ctx: &EvalContext) -> SqlResult<Datum> {
        if self.values.is_empty() { Ok(Datum::Null) } else { (self.make)(self, ctx) }
    }

    fn parts(&self) -> Vec<Datum> {
        self.values.clone()
    }

    fn merge(&mut self, parts: &[Datum]) -> SqlResult<()> {
        self.values.extend_from_slice(parts);
        Ok(())
    }

    fn keeps_rows(&self) -> bool {
        true
    }
}

fn array(list: &List, _: &EvalContext) -> SqlResult<Datum> {
    array_of_values(&list.element, list.values.clone())
}

fn text(list: &List, _: &EvalContext) -> SqlResult<Datum> {
    let mut out = String::new();
    for (at, row) in list.rows().enumerate() {
        if let (true, Some(Datum::Text(between))) = (at > 0, row.get(1)) {
            out.push_str(between);
        }
        if let Datum::Text(s) = &row[0] {
            out.push_str(s);
        }
    }
    Ok(Datum::text(out))
}

fn bytes(list: &List, _: &EvalContext) -> SqlResult<Datum> {
    let mut out = Vec::new();
    for (at, row) in list.rows().enumerate() {
        if let (true, Some(Datum::Bytea(between))) = (at > 0, row.get(1)) {
            out.extend_from_slice(between);
        }
        if let Datum::Bytea(b) = &row[0] {
            out.extend_from_slice(b);
        }
    }
    Ok(Datum::Bytea(out.into()))
}

fn json_array(list: &List, ctx: &EvalContext) -> SqlResult<Datum> {
    let mut text = String::from("[");
    for (at, value) in list.values.iter().enumerate() {
        if at > 0 {
            text.push_str(", ");
            // Rows and arrays begin a line each.
            if matches!(value, Datum::Record(_) | Datum::Array(_)) {
                text.push_str("\n ");
            }
        }
        text.push_str(&json_text(value, ctx, false));
    }
    text.push(']');
    Ok(Datum::Json(text.into()))
}

fn jsonb_array(list: &List, ctx: &EvalContext) -> SqlResult<Datum> {
    let items = list.values.iter().map(|v| to_json(v, ctx)).collect::<SqlResult<_>>()?;
    Ok(jsonb::datum(jsonb::normalize(Value::Array(items))?))
}

fn json_fields(list: &List, ctx: &EvalContext) -> SqlResult<Datum> {
    let mut fields = Vec::new();
    for row in list.rows() {
        let key = json_key(&row[0], ctx)?;
        fields.push(format!("{} : {}", quoted(&key), json_text(&row[1], ctx, false)));
    }
    Ok(Datum::Json(format!("{{ {} }}", fields.join(", ")).into()))
}

fn jsonb_fields(list: &List, ctx: &EvalContext) -> SqlResult<Datum> {
    let mut map = Map::new();
    for row in list.rows() {
        map.insert(json_key(&row[0], ctx)?, to_json(&row[1], ctx)?);
    }
    Ok(jsonb::datum(jsonb::normalize(Value::Object(map))?))
}

/// Adds the aggregates of this file.
pub(super) fn fill(t: &mut Table) {
    macro_rules! list {
        ($signature:literal, $make:ident, $nulls:literal) => {
            t.aggregate($signature, |types| {
                Box::new(List {
                    values: Vec::new(),
                    width: types.args.len().max(1),
                    nulls: $nulls,
                    element: types.element(),
                    make: $make,
                })
            })
            .by_order();
        };
    }
    list!("array_agg(anyelement) anyarray -- the values as an array", array, true);
    t.aggregate("array_agg(anyarray) anyarray -- arrays as one of a dimension more", |types| {
        Box::new(List {
            values: Vec::new(),
            width: 1,
            nulls: true,
            element: types.element().array_of(),
            make: array,
        })
    })
    .by_order();
    list!("string_agg(text, text) text -- the texts with another between them", text, false);
    list!("string_agg(bytea, bytea) bytea", bytes, false);
    list!("json_agg(anyelement) json -- the values as a json array", json_array, true);
    list!("jsonb_agg(anyelement) jsonb -- the values as a jsonb array", jsonb_array, true);
    list!("json_object_agg(any, any) json -- keys and values as an object", json_fields, true);
    list!("jsonb_object_agg(any, any) jsonb -- keys and values as an object", jsonb_fields, true);
}
