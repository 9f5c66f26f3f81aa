//! JSON lines: one object (fields by name) or array (fields in order) in each line.
//!
//! Numbers are read from their digits, so nothing is lost of a `numeric`. A field that is not there
//! leaves its column to its default; `null` is NULL.

use std::sync::Arc;

use braid_types::{Datum, SqlError, SqlResult, SqlState, SqlType};
use serde_json::Value as Json;

use crate::batch::{Batch, Misfit, Row};
use crate::lines::Lines;
use crate::reader::Source;
use crate::target::{Target, Value, not_utf8};

/// Rows of one file.
pub(crate) struct JsonSource {
    lines: Lines,
    target: Arc<Target>,
}

type Values = Result<Vec<Option<Datum>>, (Option<usize>, SqlError)>;

impl JsonSource {
    pub(crate) fn new(lines: Lines, target: Arc<Target>) -> JsonSource {
        JsonSource { lines, target }
    }

    fn values(&self, line: &[u8]) -> Values {
        let text = std::str::from_utf8(line).map_err(|_| (None, not_utf8()))?;
        let bad = |message: String| {
            let e = SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message);
            (None, e.with_hint("Each line holds one JSON object, or one array of values."))
        };
        let json: Json =
            serde_json::from_str(text).map_err(|e| bad(format!("invalid JSON: {e}")))?;
        let columns = &self.target.columns;
        let mut out = vec![None; columns.len()];
        match json {
            Json::Object(fields) => {
                for (name, json) in fields {
                    let Some(at) = self.target.field(&name).map_err(|e| (None, e))? else {
                        continue;
                    };
                    out[at] = Some(self.value(at, json).map_err(|e| (Some(at), e))?);
                }
            }
            Json::Array(items) if items.len() == columns.len() => {
                for (at, json) in items.into_iter().enumerate() {
                    out[at] = Some(self.value(at, json).map_err(|e| (Some(at), e))?);
                }
            }
            Json::Array(items) => {
                let (given, wanted) = (items.len(), columns.len());
                return Err(bad(format!("the line has {given} values for {wanted} columns")));
            }
            other => return Err(bad(format!("the line is {}", kind(&other)))),
        }
        Ok(out)
    }

    fn value(&self, column: usize, json: Json) -> SqlResult<Datum> {
        let ty = &self.target.columns[column].ty;
        // A JSON null in a JSON column is NULL, too, as everywhere else in the line.
        if matches!(ty, SqlType::Json | SqlType::Jsonb) && !json.is_null() {
            return self.target.value(column, Value::Json(json));
        }
        self.target.value(column, value(json)?)
    }
}

fn value(json: Json) -> SqlResult<Value> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Typed(Datum::Bool(b), SqlType::Bool),
        Json::Number(n) => Value::Text(n.to_string()),
        Json::String(s) => Value::Text(s),
        Json::Array(items) => {
            Value::List(items.into_iter().map(value).collect::<SqlResult<Vec<_>>>()?)
        }
        object => Value::Json(object),
    })
}

fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

impl Source for JsonSource {
    fn read(&mut self, out: &mut Batch) -> SqlResult<()> {
        while !out.is_full() {
            let Some(record) = self.lines.next(None)? else {
                out.last = true;
                break;
            };
            let bytes = self.lines.bytes(&record);
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let number = record.line;
            let placed = |e: SqlError| self.lines.placed(e, number);
            // The tree of the line, and its values.
            out.expect(bytes.len() * 2).map_err(placed)?;
            let taken = match self.values(bytes) {
                Ok(values) => out.push(Row { number, values }),
                Err((column, error)) => {
                    let text = String::from_utf8_lossy(bytes).into_owned();
                    out.refuse(Misfit { number, column, error, text })
                }
            };
            taken.map_err(placed)?;
        }
        (out.read, out.end) = (self.lines.position(), self.lines.taken());
        Ok(())
    }
}
