//! The numbers that `.keyvalue()` gives to objects: where an object begins in PostgreSQL's binary
//! form of its document, and ten thousand millions for each document before.
//!
//! ```text
//!   container   a header of 4 bytes, 4 bytes for each element (8 for each member), then keys,
//!               then values; numbers and containers begin at a multiple of four
//! ```

use std::collections::HashMap;

use braid_types::{Datum, SqlType, jsonb, numeric};
use serde_json::Value;

use super::item::Item;

/// Which document a part is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Origin {
    Document,
    /// The object of variables.
    Variables,
    /// The path itself, or nothing.
    Nowhere,
}

/// Where a part is counted from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    pub(super) origin: Origin,
    /// The number of the document: parts that an object of `.keyvalue()` holds are of that one.
    pub(super) id: i64,
    /// How much further such a part begins there.
    pub(super) shift: i64,
}

/// Documents are this far apart.
const APART: i64 = 10_000_000_000;

/// Where containers of the two documents begin, as far as somebody asked.
#[derive(Default)]
pub(super) struct Layouts {
    document: Option<HashMap<*const Value, i64>>,
    variables: Option<HashMap<*const Value, i64>>,
}

impl Layouts {
    fn begin(&mut self, part: &Value, origin: Origin, root: &Value) -> i64 {
        let known = match origin {
            Origin::Document => &mut self.document,
            Origin::Variables => &mut self.variables,
            Origin::Nowhere => return 0,
        };
        let known = known.get_or_insert_with(|| {
            let mut places = HashMap::new();
            lay(root, 0, &mut places);
            places
        });
        known.get(&std::ptr::from_ref(part)).copied().unwrap_or(0)
    }

    /// The number of an object of a document.
    pub(super) fn id(&mut self, object: &Item<'_>, root: &Value) -> i64 {
        match object {
            Item::Part(part, base) => {
                self.begin(part, base.origin, root) + base.shift + base.id * APART
            }
            Item::Pair(pair) => pair.own.id * APART,
            _ => 0,
        }
    }

    /// What a value is counted from that is put into the pair of an object with this number.
    pub(super) fn moved(
        &mut self,
        id: i64,
        key: &str,
        value: Item<'_>,
        root: &Value,
        own: i64,
    ) -> Option<Base> {
        let Item::Part(part, base) = value else { return None };
        let names = "idkeyvalue".len() as i64;
        let at = aligned(4 + 3 * 8 + names) + number_size(&jsonb::number(&id.to_string()));
        let begin = aligned(at + key.len() as i64);
        let shift = begin - self.begin(part, base.origin, root);
        Some(Base { origin: base.origin, id: own, shift })
    }
}

fn aligned(at: i64) -> i64 {
    (at + 3) & !3
}

/// Notes where containers begin in one that is written at a place; says where it ends.
fn lay(value: &Value, at: i64, places: &mut HashMap<*const Value, i64>) -> i64 {
    match value {
        Value::Null | Value::Bool(_) => at,
        Value::String(text) => at + text.len() as i64,
        Value::Number(_) => aligned(at) + number_size(value),
        Value::Array(elements) => {
            let begin = aligned(at);
            places.insert(std::ptr::from_ref(value), begin);
            let first = begin + 4 + 4 * elements.len() as i64;
            elements.iter().fold(first, |at, element| lay(element, at, places))
        }
        Value::Object(map) => {
            let begin = aligned(at);
            places.insert(std::ptr::from_ref(value), begin);
            let keys: usize = map.keys().map(String::len).sum();
            let first = begin + 4 + 8 * map.len() as i64 + keys as i64;
            map.values().fold(first, |at, member| lay(member, at, places))
        }
    }
}

/// Bytes of a number: a header, which is short for most, and two for each four digits.
fn number_size(value: &Value) -> i64 {
    let Value::Number(number) = value else { return 0 };
    let Some(Ok(datum)) = numeric::parse(&number.to_string()).map(numeric::datum) else { return 0 };
    let mut wire = Vec::new();
    datum.to_binary(&SqlType::Numeric(None), &mut wire);
    let word = |at: usize| wire.get(at..at + 2).map_or(0, |b| i16::from_be_bytes([b[0], b[1]]));
    let (groups, weight, scale) = (i64::from(word(0)), word(2), word(6));
    let short = (-64..=63).contains(&weight) && (0..=63).contains(&scale);
    debug_assert!(matches!(datum, Datum::Numeric(_)));
    4 + if short { 2 } else { 4 } + 2 * groups
}
