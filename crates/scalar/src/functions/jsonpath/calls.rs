//! Functions over SQL/JSON paths: `jsonb_path_exists` and its relatives, `@?` and `@@`.
//!
//! `silent`, and the operators, take errors of the document for NULL; `vars` gives values to
//! `$name`.

use braid_types::{Datum, SqlError, SqlResult, SqlState, jsonb};
use serde_json::{Map, Value};

use super::eval::{Asked, is_of_document};
use super::path::Path;
use crate::functions::{bool_of, json_of, text_of};
use crate::registry::{Eval, Table};

/// What a function is called with: document, path, variables, whether it is silent.
struct Call {
    items: Vec<Value>,
    /// The error of the document that ended it, if it is to be passed over.
    broken: bool,
}

fn call(a: &[Datum], asked: Asked, silent: bool) -> SqlResult<Call> {
    let path = Path::parse(text_of(&a[1]))?;
    let silent = silent || a.get(3).is_some_and(bool_of);
    let none = Map::new();
    let given = a.get(2).map(json_of);
    let variables = match &given {
        None => &none,
        Some(given) => match &**given {
            Value::Object(map) => map,
            _ => {
                let text = "\"vars\" argument is not an object";
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text).with_detail(
                    "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.",
                ));
            }
        },
    };
    let document = json_of(&a[0]);
    let (items, ended) = path.items(document, variables, asked);
    match ended {
        Ok(()) => Ok(Call { items, broken: false }),
        Err(e) if silent && is_of_document(&e) => Ok(Call { items, broken: true }),
        Err(e) => Err(e),
    }
}

/// The items, for the form that gives rows.
pub(crate) fn path_items(a: &[Datum]) -> SqlResult<Vec<Datum>> {
    Ok(call(a, Asked::All, false)?.items.into_iter().map(jsonb::datum).collect())
}

/// `document @? path`
pub(crate) fn path_exists(a: &[Datum]) -> SqlResult<Datum> {
    exists(a, true)
}

/// `document @@ path`
pub(crate) fn path_matches(a: &[Datum]) -> SqlResult<Datum> {
    matches(a, true)
}

fn exists(a: &[Datum], silent: bool) -> SqlResult<Datum> {
    // In strict mode all of it has to be free of errors.
    let lax = Path::parse(text_of(&a[1]))?.is_lax();
    let found = call(a, if lax { Asked::First } else { Asked::All }, silent)?;
    Ok(match (found.broken, found.items.is_empty()) {
        (true, empty) if empty || !lax => Datum::Null,
        (_, empty) => Datum::Bool(!empty),
    })
}

fn matches(a: &[Datum], silent: bool) -> SqlResult<Datum> {
    let found = call(a, Asked::All, silent)?;
    match found.items.as_slice() {
        [Value::Bool(truth)] => Ok(Datum::Bool(*truth)),
        [Value::Null] => Ok(Datum::Null),
        _ if silent || a.get(3).is_some_and(bool_of) => Ok(Datum::Null),
        _ => Err(SqlError::new(SqlState("22038"), "single boolean result is expected")),
    }
}

/// Adds the functions of this file.
pub(in crate::functions) fn fill(t: &mut Table) {
    let all: [(Eval, [&'static str; 3]); 4] = [
        (
            |a, _| exists(a, false),
            [
                "jsonb_path_exists(jsonb, text) bool -- whether a path gives any item",
                "jsonb_path_exists(jsonb, text, jsonb) bool",
                "jsonb_path_exists(jsonb, text, jsonb, bool) bool",
            ],
        ),
        (
            |a, _| matches(a, false),
            [
                "jsonb_path_match(jsonb, text) bool -- what a path's predicate says",
                "jsonb_path_match(jsonb, text, jsonb) bool",
                "jsonb_path_match(jsonb, text, jsonb, bool) bool",
            ],
        ),
        (
            |a, _| {
                let items = call(a, Asked::All, false)?.items;
                Ok(jsonb::datum(Value::Array(items)))
            },
            [
                "jsonb_path_query_array(jsonb, text) jsonb -- the items of a path, as an array",
                "jsonb_path_query_array(jsonb, text, jsonb) jsonb",
                "jsonb_path_query_array(jsonb, text, jsonb, bool) jsonb",
            ],
        ),
        (
            |a, _| {
                let first = call(a, Asked::All, false)?.items.into_iter().next();
                Ok(first.map_or(Datum::Null, jsonb::datum))
            },
            [
                "jsonb_path_query_first(jsonb, text) jsonb -- the first item of a path",
                "jsonb_path_query_first(jsonb, text, jsonb) jsonb",
                "jsonb_path_query_first(jsonb, text, jsonb, bool) jsonb",
            ],
        ),
    ];
    for (eval, signatures) in all {
        for signature in signatures {
            t.add(signature, eval);
        }
    }
    t.add("jsonb_path_exists_opr(jsonb, text) bool -- as `@?`", |a, _| path_exists(a));
    t.add("jsonb_path_match_opr(jsonb, text) bool -- as `@@`", |a, _| path_matches(a));
}
