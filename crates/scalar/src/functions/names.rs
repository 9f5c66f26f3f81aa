//! Names and what they are of: `parse_ident`, `to_regtype` and its relatives, and sizes in words.

use braid_types::{ArrayValue, Datum, SqlError, SqlResult, SqlState, SqlType, numeric};
use std::sync::Arc;

use super::{bool_of, text_of};
use crate::EvalContext;
use crate::registry::{Eval, Table};

fn bad_name(text: &str) -> SqlError {
    let text = format!("string is not a valid identifier: \"{text}\"");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
}

fn starts_name(c: char) -> bool {
    c == '_' || c.is_ascii_alphabetic() || !c.is_ascii()
}

fn goes_on(c: char) -> bool {
    starts_name(c) || c.is_ascii_digit() || c == '$'
}

/// A quoted name, and what is behind it.
fn quoted<'a>(whole: &str, text: &'a str) -> SqlResult<(String, &'a str)> {
    let mut name = String::new();
    let mut rest = &text[1..];
    loop {
        let Some(at) = rest.find('"') else {
            return Err(bad_name(whole).with_detail("String has unclosed double quotes."));
        };
        name.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => break,
        }
    }
    if name.is_empty() {
        return Err(bad_name(whole).with_detail("Quoted identifier must not be empty."));
    }
    Ok((name, rest))
}

/// The parts of a qualified name.
fn parse_ident(whole: &str, strict: bool) -> SqlResult<Datum> {
    let mut parts = Vec::new();
    let mut rest = whole.trim_start();
    loop {
        let first = rest.chars().next();
        if first == Some('"') {
            let (name, behind) = quoted(whole, rest)?;
            parts.push(Datum::text(name));
            rest = behind;
        } else if first.is_some_and(starts_name) {
            let end = rest.find(|c| !goes_on(c)).unwrap_or(rest.len());
            parts.push(Datum::text(rest[..end].to_ascii_lowercase()));
            rest = &rest[end..];
        } else if first == Some('.') {
            return Err(bad_name(whole).with_detail("No valid identifier before \".\"."));
        } else if !parts.is_empty() {
            return Err(bad_name(whole).with_detail("No valid identifier after \".\"."));
        } else {
            return Err(bad_name(whole));
        }
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(behind) => rest = behind.trim_start(),
            None if rest.is_empty() || !strict => break,
            None => return Err(bad_name(whole)),
        }
    }
    Ok(Datum::Array(Arc::new(ArrayValue::list(SqlType::Text, parts))))
}

/// The oid that a name means; NULL if there is none.
fn looked_up(a: &[Datum], ty: &SqlType, ctx: &EvalContext) -> SqlResult<Datum> {
    let name = text_of(&a[0]);
    if name == "-" || name.parse::<u32>().is_ok() {
        return Ok(Datum::Null);
    }
    let asked = [Datum::text(ty.name()), Datum::text(name)];
    match ctx.session.catalog_function("regin", &asked) {
        Ok(found) => Ok(found.unwrap_or(Datum::Null)),
        // What is not there, and what has several meanings.
        Err(e) if ["3F000", "42704", "42883", "42725"].contains(&e.state().0) => Ok(Datum::Null),
        Err(e) => Err(e),
    }
}

/// Bytes of a size in words.
fn size_bytes(text: &str) -> SqlResult<Datum> {
    let bad =
        || SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("invalid size: \"{text}\""));
    let trimmed = text.trim();
    let digits = |from: &str| from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
    let mut end = usize::from(trimmed.starts_with(['+', '-']));
    let whole = digits(&trimmed[end..]);
    end += whole;
    let mut fraction = 0;
    if trimmed[end..].starts_with('.') {
        fraction = digits(&trimmed[end + 1..]);
        end += 1 + fraction;
    }
    if whole + fraction == 0 {
        return Err(bad());
    }
    if trimmed[end..].starts_with(['e', 'E']) {
        let sign = usize::from(trimmed[end + 1..].starts_with(['+', '-']));
        let exponent = digits(&trimmed[end + 1 + sign..]);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let (number, unit) = (&trimmed[..end], trimmed[end..].trim());
    let number = numeric::parse(number).ok_or_else(bad)?;
    let power = match unit.to_ascii_lowercase().as_str() {
        "" | "bytes" => 0,
        "kb" => 1,
        "mb" => 2,
        "gb" => 3,
        "tb" => 4,
        "pb" => 5,
        _ => {
            return Err(bad().with_detail(format!("Invalid size unit: \"{unit}\".")).with_hint(
                "Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".",
            ));
        }
    };
    let bytes = numeric::mul(&number, &numeric::from_i128(1024_i128.pow(power)));
    let bytes = numeric::to_i128(&numeric::round(&bytes, 0)).and_then(|v| i64::try_from(v).ok());
    bytes
        .map(Datum::Int8)
        .ok_or_else(|| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"))
}

/// How many arguments are NULL, or are not.
fn counted(a: &[Datum], null: bool) -> SqlResult<Datum> {
    let count = a.iter().filter(|v| v.is_null() == null).count();
    Ok(Datum::Int4(i32::try_from(count).unwrap_or(i32::MAX)))
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.add("parse_ident(text) text[] -- the parts of a qualified name", |a, _| {
        parse_ident(text_of(&a[0]), true)
    });
    t.add("parse_ident(text, bool) text[]", |a, _| parse_ident(text_of(&a[0]), bool_of(&a[1])));
    t.add(
        "to_regnamespace(text) regnamespace -- oid of a schema, NULL if there is none",
        |a, c| looked_up(a, &SqlType::Regnamespace, c),
    )
    .stable();
    t.add("to_regrole(text) regrole -- oid of a role, NULL if there is none", |a, c| {
        looked_up(a, &SqlType::Regrole, c)
    })
    .stable();
    t.add("to_regproc(text) regproc -- oid of a function, NULL if there is none", |a, c| {
        looked_up(a, &SqlType::Regproc, c)
    })
    .stable();
    t.add(
        "to_regprocedure(text) regprocedure \
         -- oid of a function with these types of arguments, NULL if there is none",
        |a, c| looked_up(a, &SqlType::Regprocedure, c),
    )
    .stable();
    t.add("to_regoper(text) regoper -- oid of an operator, NULL if there is none", |a, c| {
        looked_up(a, &SqlType::Regoper, c)
    })
    .stable();
    t.add(
        "to_regoperator(text) regoperator \
         -- oid of an operator of these types, NULL if there is none",
        |a, c| looked_up(a, &SqlType::Regoperator, c),
    )
    .stable();
    t.add(
        "to_regcollation(text) regcollation -- oid of a collation, NULL if there is none",
        |a, c| looked_up(a, &SqlType::Regcollation, c),
    )
    .stable();
    t.add("pg_size_bytes(text) int8 -- bytes of a size in words", |a, _| {
        size_bytes(text_of(&a[0]))
    });
    let nulls: Eval = |a, _| counted(a, true);
    let others: Eval = |a, _| counted(a, false);
    t.add("num_nulls(...any) int4 -- how many of the arguments are NULL", nulls).lax();
    t.add("num_nonnulls(...any) int4 -- how many of the arguments are not NULL", others).lax();
}
