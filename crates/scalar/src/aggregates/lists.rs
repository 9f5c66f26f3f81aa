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
    make: Make,
}

/// What becomes of the rows.
#[derive(Clone, Copy, Debug)]
struct Make {
    value: fn(&List, &EvalContext) -> SqlResult<Datum>,
    /// See [`Accumulator::copies_at_end`].
    copies: usize,
}

/// Bytes beside a value in the text of a document.
const PUNCTUATION: usize = 6;

/// The values again, or their text: as it grows, and as it is handed on.
const fn flat(value: fn(&List, &EvalContext) -> SqlResult<Datum>) -> Make {
    Make { value, copies: 2 }
}

/// A tree, whose nodes are larger than short values are; its fields are sorted into another one.
const fn as_tree(value: fn(&List, &EvalContext) -> SqlResult<Datum>, has_fields: bool) -> Make {
    Make { value, copies: if has_fields { 6 } else { 3 } }
}

impl List {
    fn rows(&self) -> impl Iterator<Item = &[Datum]> {
        self.values.chunks(self.width)
    }

    /// Of the texts in it: what grows by doubling would take twice as much.
    fn bytes(&self) -> usize {
        let size = |value: &Datum| match value {
            Datum::Text(text) => text.len(),
            Datum::Bytea(bytes) => bytes.len(),
            _ => 0,
        };
        self.values.iter().map(size).sum()
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
        if self.values.is_empty() { Ok(Datum::Null) } else { (self.make.value)(self, ctx) }
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

    fn copies_at_end(&self) -> usize {
        self.make.copies
    }
}

fn array(list: &List, _: &EvalContext) -> SqlResult<Datum> {
    array_of_values(&list.element, list.values.clone())
}

fn text(list: &List, _: &EvalContext) -> SqlResult<Datum> {
    let mut out = String::with_capacity(list.bytes());
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
    let mut out = Vec::with_capacity(list.bytes());
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
    let mut text = String::with_capacity(list.bytes() + PUNCTUATION * list.values.len());
    text.push('[');
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
    let mut items = Vec::with_capacity(list.values.len());
    for value in &list.values {
        items.push(to_json(value, ctx)?);
    }
    Ok(jsonb::datum(jsonb::normalize(Value::Array(items))?))
}

fn json_fields(list: &List, ctx: &EvalContext) -> SqlResult<Datum> {
    let mut text = String::with_capacity(list.bytes() + PUNCTUATION * list.values.len());
    text.push_str("{ ");
    for (at, row) in list.rows().enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        text.push_str(&quoted(&json_key(&row[0], ctx)?));
        text.push_str(" : ");
        text.push_str(&json_text(&row[1], ctx, false));
    }
    text.push_str(" }");
    Ok(Datum::Json(text.into()))
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
        ($signature:literal, $make:expr, $nulls:literal) => {
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
    list!("array_agg(anyelement) anyarray -- the values as an array", flat(array), true);
    t.aggregate("array_agg(anyarray) anyarray -- arrays as one of a dimension more", |types| {
        Box::new(List {
            values: Vec::new(),
            width: 1,
            nulls: true,
            element: types.element().array_of(),
            make: flat(array),
        })
    })
    .by_order();
    list!("string_agg(text, text) text -- the texts with another between them", flat(text), false);
    list!("string_agg(bytea, bytea) bytea", flat(bytes), false);
    list!("json_agg(anyelement) json -- the values as a json array", flat(json_array), true);
    list!(
        "jsonb_agg(anyelement) jsonb -- the values as a jsonb array",
        as_tree(jsonb_array, false),
        true
    );
    list!(
        "json_object_agg(any, any) json -- keys and values as an object",
        flat(json_fields),
        true
    );
    list!(
        "jsonb_object_agg(any, any) jsonb -- keys and values as an object",
        as_tree(jsonb_fields, true),
        true
    );
}
