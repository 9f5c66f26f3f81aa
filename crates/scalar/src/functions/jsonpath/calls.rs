//! Functions over SQL/JSON paths: `jsonb_path_exists` and its relatives, `@?` and `@@`.
//!
//! `silent`, and the operators, take errors of the document for NULL; `vars` gives values to
//! `$name`. The forms with `_tz` may compare times with and without a zone, by the session's zone.

use braid_types::jsonpath::Path;
use braid_types::{Datum, SqlError, SqlResult, SqlState, jsonb};
use serde_json::{Map, Value};

use super::eval::{Asked, Run, is_of_document};
use crate::EvalContext;
use crate::functions::{bool_of, json_of, text_of};
use crate::registry::{Eval, Rows, RowsEval, Table};

/// How a function was called.
#[derive(Clone, Copy)]
struct Call<'a> {
    a: &'a [Datum],
    ctx: &'a EvalContext,
    /// As operators are: without variables, silent.
    operator: bool,
    /// With the session's time zone.
    zoned: bool,
}

impl Call<'_> {
    fn silent(&self) -> bool {
        self.operator || self.a.get(3).is_some_and(bool_of)
    }

    /// Runs what is asked of the path; true if an error of the document was passed over.
    fn run(
        &self,
        ask: impl for<'x> FnOnce(&'x Path, &Run<'x>) -> SqlResult<()>,
    ) -> SqlResult<bool> {
        let path = Path::parse(text_of(&self.a[1]))?;
        let none = Value::Object(Map::new());
        let variables = match self.a.get(2).map(json_of) {
            None if self.operator => None,
            None => Some(&none),
            Some(given) if given.is_object() => Some(given),
            Some(_) => {
                let text = "\"vars\" argument is not an object";
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text).with_detail(
                    "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.",
                ));
            }
        };
        let document = json_of(&self.a[0]);
        let asked = Asked { document, variables, zoned: self.zoned, ctx: self.ctx };
        match ask(&path, &Run::new(&path, asked)) {
            Ok(()) => Ok(false),
            Err(e) if self.silent() && is_of_document(&e) => Ok(true),
            Err(e) => Err(e),
        }
    }

    /// The items, up to an error that is passed over.
    fn items(&self) -> SqlResult<Vec<Datum>> {
        let mut items = Vec::new();
        self.run(|path, run| {
            let all = run.each(&path.root, &run.start(), &mut |item| {
                let value = jsonb::datum(item.into_value());
                run.count(value.memory())?;
                items.push(value);
                Ok(true)
            });
            all.map(|_| ())
        })?;
        Ok(items)
    }

    fn exists(&self) -> SqlResult<Datum> {
        let mut found = false;
        let broken = self.run(|path, run| {
            found = run.exists(&path.root, &run.start())?;
            Ok(())
        })?;
        Ok(if broken { Datum::Null } else { Datum::Bool(found) })
    }

    fn matches(&self) -> SqlResult<Datum> {
        let items = self.items()?;
        match items.as_slice() {
            [one] if let Value::Bool(truth) = json_of(one) => Ok(Datum::Bool(*truth)),
            [one] if json_of(one).is_null() => Ok(Datum::Null),
            _ if self.silent() => Ok(Datum::Null),
            _ => Err(SqlError::new(SqlState("22038"), "single boolean result is expected")),
        }
    }

    fn array(&self) -> SqlResult<Datum> {
        let items = self.items()?;
        Ok(jsonb::datum(Value::Array(items.iter().map(|item| json_of(item).clone()).collect())))
    }

    fn first(&self) -> SqlResult<Datum> {
        Ok(self.items()?.into_iter().next().unwrap_or(Datum::Null))
    }
}

fn call<'a>(a: &'a [Datum], ctx: &'a EvalContext) -> Call<'a> {
    Call { a, ctx, operator: false, zoned: false }
}

fn zoned<'a>(a: &'a [Datum], ctx: &'a EvalContext) -> Call<'a> {
    Call { zoned: true, ..call(a, ctx) }
}

fn operator<'a>(a: &'a [Datum], ctx: &'a EvalContext) -> Call<'a> {
    Call { operator: true, ..call(a, ctx) }
}

/// The items, for the form that gives rows.
fn rows(items: Vec<Datum>) -> Rows {
    items.into_iter().map(|item| vec![item]).collect()
}

/// Adds `jsonb_path_query`, which gives rows.
pub(crate) fn fill_rows(t: &mut Table) {
    let found: RowsEval = |a, ctx| Ok(rows(call(a, ctx).items()?));
    t.rows("jsonb_path_query(jsonb, jsonpath) jsonb -- the items of a path", found);
    t.rows("jsonb_path_query(jsonb, jsonpath, jsonb) jsonb", found);
    t.rows("jsonb_path_query(jsonb, jsonpath, jsonb, bool) jsonb", found);
    let found: RowsEval = |a, ctx| Ok(rows(zoned(a, ctx).items()?));
    t.rows("jsonb_path_query_tz(jsonb, jsonpath) jsonb -- the same, with the time zone", found)
        .stable();
    t.rows("jsonb_path_query_tz(jsonb, jsonpath, jsonb) jsonb", found).stable();
    t.rows("jsonb_path_query_tz(jsonb, jsonpath, jsonb, bool) jsonb", found).stable();
}

/// The signatures of a function with its two optional arguments, by its name and result, and what
/// it does.
macro_rules! signatures {
    ($name:literal, $result:literal, $about:literal) => {
        [
            concat!($name, "(jsonb, jsonpath) ", $result, " -- ", $about),
            concat!($name, "(jsonb, jsonpath, jsonb) ", $result),
            concat!($name, "(jsonb, jsonpath, jsonb, bool) ", $result),
        ]
    };
}

/// Adds the functions and operators of this file.
pub(in crate::functions) fn fill(t: &mut Table) {
    let all: [(Eval, [&'static str; 3]); 4] = [
        (
            |a, ctx| call(a, ctx).exists(),
            signatures!("jsonb_path_exists", "bool", "whether a path gives any item"),
        ),
        (
            |a, ctx| call(a, ctx).matches(),
            signatures!("jsonb_path_match", "bool", "what a path's predicate says"),
        ),
        (
            |a, ctx| call(a, ctx).array(),
            signatures!("jsonb_path_query_array", "jsonb", "the items of a path, as an array"),
        ),
        (
            |a, ctx| call(a, ctx).first(),
            signatures!("jsonb_path_query_first", "jsonb", "the first item of a path"),
        ),
    ];
    for (eval, signatures) in all {
        for signature in signatures {
            t.add(signature, eval);
        }
    }
    let by_zone: [(Eval, [&'static str; 3]); 4] = [
        (
            |a, ctx| zoned(a, ctx).exists(),
            signatures!("jsonb_path_exists_tz", "bool", "the same, with the time zone"),
        ),
        (
            |a, ctx| zoned(a, ctx).matches(),
            signatures!("jsonb_path_match_tz", "bool", "the same, with the time zone"),
        ),
        (
            |a, ctx| zoned(a, ctx).array(),
            signatures!("jsonb_path_query_array_tz", "jsonb", "the same, with the time zone"),
        ),
        (
            |a, ctx| zoned(a, ctx).first(),
            signatures!("jsonb_path_query_first_tz", "jsonb", "the same, with the time zone"),
        ),
    ];
    for (eval, signatures) in by_zone {
        for signature in signatures {
            t.add(signature, eval).stable();
        }
    }
    let exists: Eval = |a, ctx| operator(a, ctx).exists();
    t.add("jsonb_path_exists_opr(jsonb, jsonpath) bool -- as `@?`", exists);
    t.add("@?(jsonb, jsonpath) bool -- whether a path gives any item", exists);
    let matches: Eval = |a, ctx| operator(a, ctx).matches();
    t.add("jsonb_path_match_opr(jsonb, jsonpath) bool -- as `@@`", matches);
    t.add("@@(jsonb, jsonpath) bool -- what a path's predicate says", matches);
}
