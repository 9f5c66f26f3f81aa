//! `jsonb` as bytes that sort as documents do.
//!
//! ```text
//!   00                  the empty array as a whole document, which is before all others
//!   01                  null
//!   02                  string                text as of a column
//!   03                  number                numeric as of a column
//!   04 / 05             false / true
//!   06 nnnn             array                 so many elements
//!   07 nnnn             object                so many pairs of a text and a value
//! ```
//! The number of elements, in four bytes, comes first: so it decides, as in PostgreSQL.

use braid_types::jsonb::serde_json::{Map, Number, Value};
use braid_types::{Datum, SqlError, SqlResult, SqlState, numeric};

use crate::column::{self, NUMERIC_NEG, NUMERIC_POS, NUMERIC_ZERO, Reader, damaged};
use crate::decimal;

const EMPTY_ARRAY: u8 = 0;
const NULL: u8 = 1;
const STRING: u8 = 2;
const NUMBER: u8 = 3;
const FALSE: u8 = 4;
const TRUE: u8 = 5;
const ARRAY: u8 = 6;
const OBJECT: u8 = 7;

/// Deepest nesting in a key.
const MAX_DEPTH: usize = 1_000;

/// Appends a document, with its tag.
///
/// # Errors
/// 54001 for one that is nested too deeply.
pub(crate) fn encode(out: &mut Vec<u8>, value: &Value) -> SqlResult<()> {
    out.push(column::DOCUMENT);
    match value {
        Value::Array(items) if items.is_empty() => out.push(EMPTY_ARRAY),
        value => encode_inner(out, value, 0)?,
    }
    Ok(())
}

fn encode_inner(out: &mut Vec<u8>, value: &Value, depth: usize) -> SqlResult<()> {
    if depth > MAX_DEPTH {
        let text = format!("a document of a key is nested deeper than {MAX_DEPTH} levels");
        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, text));
    }
    match value {
        Value::Null => out.push(NULL),
        Value::Bool(b) => out.push(if *b { TRUE } else { FALSE }),
        Value::String(text) => {
            out.push(STRING);
            column::encode_bytes(out, text.as_bytes());
        }
        Value::Number(number) => {
            out.push(NUMBER);
            let number = numeric::parse(&number.to_string());
            decimal::encode(out, &number.ok_or_else(damaged)?);
        }
        Value::Array(items) => {
            out.push(ARRAY);
            count(out, items.len());
            for item in items {
                encode_inner(out, item, depth + 1)?;
            }
        }
        Value::Object(pairs) => {
            out.push(OBJECT);
            count(out, pairs.len());
            for (key, item) in pairs {
                column::encode_bytes(out, key.as_bytes());
                encode_inner(out, item, depth + 1)?;
            }
        }
    }
    Ok(())
}

fn count(out: &mut Vec<u8>, items: usize) {
    out.extend_from_slice(&(items as u32).to_be_bytes());
}

/// A document that equals the one that was encoded.
pub(crate) fn decode(r: &mut Reader<'_>) -> SqlResult<Datum> {
    let value = match r.byte()? {
        EMPTY_ARRAY => Value::Array(Vec::new()),
        tag => decode_inner(r, tag, 0)?,
    };
    Ok(Datum::Jsonb(value.into()))
}

fn decode_inner(r: &mut Reader<'_>, tag: u8, depth: usize) -> SqlResult<Value> {
    if depth > MAX_DEPTH {
        return Err(damaged());
    }
    Ok(match tag {
        NULL => Value::Null,
        FALSE => Value::Bool(false),
        TRUE => Value::Bool(true),
        STRING => Value::String(text(r)?),
        NUMBER => {
            let tag = r.byte()?;
            if ![NUMERIC_NEG, NUMERIC_ZERO, NUMERIC_POS].contains(&tag) {
                return Err(damaged());
            }
            let number = decimal::decode(r, tag)?.ok_or_else(damaged)?;
            Value::Number(Number::from_string_unchecked(numeric::text(&number)))
        }
        ARRAY => {
            let mut items = Vec::new();
            for _ in 0..u32::from_be_bytes(r.array()?) {
                let tag = r.byte()?;
                items.push(decode_inner(r, tag, depth + 1)?);
            }
            Value::Array(items)
        }
        OBJECT => {
            let mut pairs = Map::new();
            for _ in 0..u32::from_be_bytes(r.array()?) {
                let key = text(r)?;
                let tag = r.byte()?;
                pairs.insert(key, decode_inner(r, tag, depth + 1)?);
            }
            Value::Object(pairs)
        }
        _ => return Err(damaged()),
    })
}

fn text(r: &mut Reader<'_>) -> SqlResult<String> {
    if r.byte()? != column::BYTES {
        return Err(damaged());
    }
    String::from_utf8(r.escaped()?).map_err(|_| damaged())
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use braid_types::{SqlType, jsonb};

    use super::*;
    use crate::column::{Direction, decode_column, encode_column, skip_column};

    const TEXTS: [&str; 32] = [
        "null",
        "true",
        "false",
        "0",
        "-1",
        "-1.5",
        "1",
        "1.0",
        "1.00",
        "2e100",
        "1e-20",
        "123456789012345678901234567890.5",
        "\"\"",
        "\"a\"",
        "\"ab\"",
        "\"b\"",
        "\"\u{e9}\"",
        "[]",
        "[[]]",
        "[null]",
        "[1]",
        "[1.0]",
        "[1, 2]",
        "[2, 1]",
        "[\"a\", []]",
        "{}",
        "{\"a\": 1}",
        "{\"a\": 1.0}",
        "{\"b\": 1}",
        "{\"aa\": 1, \"b\": []}",
        "{\"aa\": [], \"b\": {}}",
        "{\"a\": {\"b\": {\"c\": [1, {}, null]}}}",
    ];

    #[test]
    fn keys_sort_as_documents_do_and_come_back() {
        let values = TEXTS.map(|text| jsonb::parse(text).unwrap());
        for dir in [Direction::ASC, Direction::DESC] {
            let keys = values.clone().map(|value| {
                let mut key = Vec::new();
                encode_column(&mut key, &Datum::Jsonb(value.clone().into()), dir).unwrap();
                let (back, len) = decode_column(&key, &SqlType::Jsonb, dir).unwrap();
                assert_eq!((len, skip_column(&key).unwrap()), (key.len(), key.len()));
                let Datum::Jsonb(back) = back else { panic!("{value}") };
                assert_eq!(jsonb::compare(&back, &value), Ordering::Equal, "{value}");
                for cut in 0..key.len() {
                    skip_column(&key[..cut]).unwrap_err();
                    decode_column(&key[..cut], &SqlType::Jsonb, dir).unwrap_err();
                }
                key
            });
            for (a, key_a) in values.iter().zip(&keys) {
                for (b, key_b) in values.iter().zip(&keys) {
                    let wanted = jsonb::compare(a, b);
                    let wanted = if dir.desc { wanted.reverse() } else { wanted };
                    assert_eq!(key_a.cmp(key_b), wanted, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn what_is_too_deep_is_refused() {
        let deep = (0..=MAX_DEPTH).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        let error = encode(&mut Vec::new(), &deep).unwrap_err();
        assert_eq!(error.state(), SqlState::STATEMENT_TOO_COMPLEX);
    }
}
