//! Functions over text.

use braid_types::{ArrayValue, Datum, SqlError, SqlResult, SqlState, SqlType};
use std::sync::Arc;

use super::pieces::Pieces;
use super::{i64_of, text_of};
use crate::array_operators::array;
use crate::limits::{COUNTED, check_bytes, items};
use crate::registry::{Eval, Table};
use crate::{EvalContext, pattern};
use braid_types::quote_ident;

fn text(s: impl Into<String>) -> SqlResult<Datum> {
    Ok(Datum::text(s.into()))
}

/// Characters from 1-based `from` on, `length` of them.
fn substring(s: &str, from: i64, length: Option<i64>) -> SqlResult<String> {
    let end = match length {
        Some(n) if n < 0 => {
            return Err(SqlError::new(SqlState("22011"), "negative substring length not allowed"));
        }
        Some(n) => from.saturating_add(n),
        None => i64::MAX,
    };
    let start = from.max(1);
    if end <= start {
        return Ok(String::new());
    }
    Ok(s.chars().skip((start - 1) as usize).take((end - start) as usize).collect())
}

fn overlay(s: &str, with: &str, from: i64, length: i64) -> SqlResult<String> {
    if from <= 0 {
        return Err(SqlError::new(SqlState("22011"), "negative substring length not allowed"));
    }
    if i32::try_from(from + length).is_err() {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"));
    }
    let head = substring(s, 1, Some(from - 1))?;
    let tail = substring(s, from + length, None)?;
    Ok(format!("{head}{with}{tail}"))
}

fn pad(a: &[Datum], left: bool, ctx: &EvalContext) -> SqlResult<Datum> {
    let (s, length) = (text_of(&a[0]), i64_of(&a[1]).max(0) as usize);
    let fill = a.get(2).map_or(" ", text_of);
    check_bytes(length, 0, ctx)?;
    let have = s.chars().count();
    if have >= length {
        return text(s.chars().take(length).collect::<String>());
    }
    if fill.is_empty() {
        return Ok(a[0].clone());
    }
    let padding: String = fill.chars().cycle().take(length - have).collect();
    text(if left { format!("{padding}{s}") } else { format!("{s}{padding}") })
}

fn initcap(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    let mut inside = false;
    for c in s.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        inside = c.is_alphanumeric();
    }
    out
}

/// The n-th field, counted from the end when negative.
fn split_part(s: &str, delimiter: &str, n: i64) -> SqlResult<String> {
    if n == 0 {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "field position must not be zero",
        ));
    }
    let fields: Vec<&str> =
        if delimiter.is_empty() { vec![s] } else { s.split(delimiter).collect() };
    let at = if n > 0 { n - 1 } else { fields.len() as i64 + n };
    Ok(usize::try_from(at).ok().and_then(|at| fields.get(at)).unwrap_or(&"").to_string())
}

/// The text of a value of any type, as a cast to text gives it.
fn any_text(value: &Datum, ctx: &EvalContext) -> String {
    match value {
        Datum::Bool(b) => if *b { "t" } else { "f" }.to_string(),
        other => other.to_text(ctx.style).unwrap_or_default(),
    }
}

fn quote_literal(s: &str) -> String {
    let quoted = format!("'{}'", s.replace('\\', "\\\\").replace('\'', "''"));
    if s.contains('\\') { format!(" E{quoted}").trim_start().to_string() } else { quoted }
}

/// The width that `*` takes from the arguments, from the next one or from that of `*n$`.
fn star(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    a: &[Datum],
    next: &mut usize,
) -> SqlResult<i32> {
    let bad = |m: &str| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, m.to_string());
    let mut digits = String::new();
    while let Some(d) = chars.next_if(char::is_ascii_digit) {
        digits.push(d);
    }
    let at = match digits.is_empty() {
        true => *next,
        false if chars.next_if_eq(&'$').is_some() => digits.parse().unwrap_or(usize::MAX),
        false => return Err(bad("width argument position must be ended by \"$\"")),
    };
    if at == 0 {
        return Err(bad(ARGUMENT_ZERO));
    }
    *next = at.saturating_add(1);
    match a.get(at).ok_or_else(|| bad("too few arguments for format()"))? {
        Datum::Null => Ok(0),
        Datum::Int2(v) => Ok(i32::from(*v)),
        Datum::Int4(v) => Ok(*v),
        value => {
            let text = value.to_string();
            text.trim().parse().map_err(|_| {
                SqlError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    format!("invalid input syntax for type integer: \"{text}\""),
                )
            })
        }
    }
}

/// `format('%s %I %L', ...)`.
/// What `%0$s` asks for.
const ARGUMENT_ZERO: &str = "format specifies argument 0, but arguments are numbered from 1";

fn format_text(a: &[Datum], ctx: &EvalContext) -> SqlResult<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let bad = |m: &str| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, m.to_string());
    let mut out = String::new();
    let mut next = 1;
    let mut chars = text_of(&a[0]).chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut digits = String::new();
        let mut left = false;
        if chars.peek() == Some(&'-') {
            left = true;
            chars.next();
        }
        while let Some(d) = chars.peek().filter(|c| c.is_ascii_digit()) {
            digits.push(*d);
            chars.next();
        }
        let mut position = None;
        let mut width_given = None;
        if chars.peek() == Some(&'*') && digits.is_empty() {
            chars.next();
            width_given = Some(star(&mut chars, a, &mut next)?);
        } else if chars.peek() == Some(&'$') {
            chars.next();
            position = digits.parse::<usize>().ok();
            if position == Some(0) {
                return Err(bad(ARGUMENT_ZERO));
            }
            digits.clear();
            while let Some(d) = chars.peek().filter(|c| c.is_ascii_digit() || **c == '-') {
                if *d == '-' {
                    left = true;
                } else {
                    digits.push(*d);
                }
                chars.next();
            }
            if chars.peek() == Some(&'*') && digits.is_empty() {
                chars.next();
                width_given = Some(star(&mut chars, a, &mut next)?);
            }
        }
        let kind = chars.next().ok_or_else(|| bad("unterminated format() type specifier"))?;
        if kind == '%' {
            out.push('%');
            continue;
        }
        let at = position.unwrap_or(next);
        next = at + 1;
        let value = a.get(at).ok_or_else(|| bad("too few arguments for format()"))?;
        let piece = match kind {
            's' => any_text(value, ctx),
            'I' if value.is_null() => {
                return Err(SqlError::new(
                    SqlState("22004"),
                    "null values cannot be formatted as an SQL identifier",
                ));
            }
            'I' => quote_ident(&any_text(value, ctx)),
            'L' if value.is_null() => "NULL".to_string(),
            'L' => quote_literal(&any_text(value, ctx)),
            other => {
                return Err(bad(&format!("unrecognized format() type specifier \"{other}\"")));
            }
        };
        let width = match width_given {
            Some(width) => {
                left |= width < 0;
                width.checked_abs()
            }
            None if digits.is_empty() => Some(0),
            None => digits.parse().ok(),
        };
        let width = width.ok_or_else(|| {
            SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range")
        })?;
        let width = usize::try_from(width).unwrap_or(0);
        check_bytes(width.max(piece.len()).saturating_add(out.len()), 0, ctx)?;
        let missing = width.saturating_sub(piece.chars().count());
        if left {
            out.push_str(&piece);
        }
        out.extend(std::iter::repeat_n(' ', missing));
        if !left {
            out.push_str(&piece);
        }
    }
    text(out)
}

fn trim_set(a: &[Datum]) -> Vec<char> {
    a.get(1).map_or(vec![' '], |set| text_of(set).chars().collect())
}

/// The first match of a regular expression, or of its first group if it has one.
fn matched(text: &Datum, pattern: &str) -> SqlResult<Datum> {
    let regex = pattern::regex(pattern, "")?;
    let found = regex.captures(text_of(text));
    let part = found.and_then(|found| found.get(usize::from(regex.captures_len() > 1)));
    Ok(part.map_or(Datum::Null, |part| Datum::text(part.as_str())))
}

fn basic(t: &mut Table) {
    let length: Eval = |a, _| Ok(Datum::Int4(text_of(&a[0]).chars().count() as i32));
    t.add("length(text) int4 -- length in characters or bytes", length);
    t.add("char_length(text) int4 -- length in characters", length);
    t.add("character_length(text) int4 -- as `char_length`", length);
    t.add("octet_length(text) int4 -- length in bytes", |a, _| {
        Ok(Datum::Int4(text_of(&a[0]).len() as i32))
    });
    t.add("octet_length(character) int4", |a, _| Ok(Datum::Int4(text_of(&a[0]).len() as i32)));
    t.add("bit_length(text) int4 -- length in bits", |a, _| {
        Ok(Datum::Int4(text_of(&a[0]).len() as i32 * 8))
    });
    t.add("lower(text) text -- in small letters", |a, _| text(text_of(&a[0]).to_lowercase()));
    t.add("upper(text) text -- in capital letters", |a, _| text(text_of(&a[0]).to_uppercase()));
    t.add("initcap(text) text -- each word with a capital letter", |a, _| {
        text(initcap(text_of(&a[0])))
    });
    let sub: Eval = |a, _| text(substring(text_of(&a[0]), i64_of(&a[1]), a.get(2).map(i64_of))?);
    t.add(
        "substring(text, int4) text \
         -- characters from a position on, or the match of an expression",
        sub,
    );
    t.add("substring(text, int4, int4) text", sub);
    t.add("substr(text, int4) text -- as `substring`", sub);
    t.add("substr(text, int4, int4) text", sub);
    t.add("substring(text, text) text", |a, _| matched(&a[0], text_of(&a[1])));
    t.add("substring(text, text, text) text", |a, _| {
        let escape = pattern::escape_of(text_of(&a[2]))?;
        matched(&a[0], &pattern::similar_regex(text_of(&a[1]), escape)?)
    });
    t.add("left(text, int4) text -- the first characters; negative, all but the last", |a, _| {
        let (s, n) = (text_of(&a[0]), i64_of(&a[1]));
        let keep = if n >= 0 { n } else { (s.chars().count() as i64 + n).max(0) };
        text(s.chars().take(keep as usize).collect::<String>())
    });
    t.add("right(text, int4) text -- the last characters; negative, all but the first", |a, _| {
        let (s, n) = (text_of(&a[0]), i64_of(&a[1]));
        let have = s.chars().count() as i64;
        let skip = match n {
            // The smallest number has no opposite: nothing is cut off, as in PostgreSQL.
            n if n == i64::from(i32::MIN) => 0,
            n if n >= 0 => (have - n).max(0),
            n => (-n).min(have),
        };
        text(s.chars().skip(skip as usize).collect::<String>())
    });
    let find: Eval = |a, _| {
        let s = text_of(&a[0]);
        Ok(Datum::Int4(s.find(text_of(&a[1])).map_or(0, |at| s[..at].chars().count() as i32 + 1)))
    };
    t.add("strpos(text, text) int4 -- position of the other text, 0 if it is not there", find);
    t.add("position(text, text) int4 -- as `strpos`; also `position(b IN a)`", find);
    let trim: Eval = |a, _| text(text_of(&a[0]).trim_matches(trim_set(a).as_slice()));
    let ltrim: Eval = |a, _| text(text_of(&a[0]).trim_start_matches(trim_set(a).as_slice()));
    let rtrim: Eval = |a, _| text(text_of(&a[0]).trim_end_matches(trim_set(a).as_slice()));
    t.add("btrim(text) text -- without these characters (blanks) at both ends", trim);
    t.add("btrim(text, text) text", trim);
    t.add("ltrim(text) text -- without these characters (blanks) at the start", ltrim);
    t.add("ltrim(text, text) text", ltrim);
    t.add("rtrim(text) text -- without these characters (blanks) at the end", rtrim);
    t.add("rtrim(text, text) text", rtrim);
}

fn changing(t: &mut Table) {
    t.add("lpad(text, int4) text -- filled on the left to a length", |a, c| pad(a, true, c));
    t.add("lpad(text, int4, text) text", |a, c| pad(a, true, c));
    t.add("rpad(text, int4) text -- filled on the right to a length", |a, c| pad(a, false, c));
    t.add("rpad(text, int4, text) text", |a, c| pad(a, false, c));
    t.add("repeat(text, int4) text -- so many times one behind the other", |a, c| {
        let n = i64_of(&a[1]).max(0) as usize;
        check_bytes(n.saturating_mul(text_of(&a[0]).len()), text_of(&a[0]).len(), c)?;
        text(text_of(&a[0]).repeat(n))
    });
    t.add("reverse(text) text -- from the end to the start", |a, _| {
        text(text_of(&a[0]).chars().rev().collect::<String>())
    });
    t.add("replace(text, text, text) text -- every occurrence replaced", |a, c| {
        let (s, from, to) = (text_of(&a[0]), text_of(&a[1]), text_of(&a[2]));
        if from.is_empty() {
            return Ok(a[0].clone());
        }
        if to.len() > from.len() && s.len() / from.len() * to.len() > COUNTED {
            let found = s.matches(from).count();
            check_bytes(s.len() + found.saturating_mul(to.len() - from.len()), s.len(), c)?;
        }
        text(s.replace(from, to))
    });
    t.add("translate(text, text, text) text -- characters replaced one by one", |a, _| {
        let from: Vec<char> = text_of(&a[1]).chars().collect();
        let to: Vec<char> = text_of(&a[2]).chars().collect();
        let out: String = text_of(&a[0])
            .chars()
            .filter_map(|c| match from.iter().position(|f| *f == c) {
                Some(at) => to.get(at).copied(),
                None => Some(c),
            })
            .collect();
        text(out)
    });
    t.add("split_part(text, text, int4) text -- the n-th piece between delimiters", |a, _| {
        text(split_part(text_of(&a[0]), text_of(&a[1]), i64_of(&a[2]))?)
    });
    t.add("starts_with(text, text) bool -- whether the text begins with the other", |a, _| {
        Ok(Datum::Bool(text_of(&a[0]).starts_with(text_of(&a[1]))))
    });
    t.add("overlay(text, text, int4) text -- a part replaced, from a position on", |a, _| {
        let length = text_of(&a[1]).chars().count() as i64;
        text(overlay(text_of(&a[0]), text_of(&a[1]), i64_of(&a[2]), length)?)
    });
    t.add("overlay(text, text, int4, int4) text", |a, _| {
        text(overlay(text_of(&a[0]), text_of(&a[1]), i64_of(&a[2]), i64_of(&a[3]))?)
    });
    t.add("ascii(text) int4 -- code of the first character", |a, _| {
        Ok(Datum::Int4(text_of(&a[0]).chars().next().map_or(0, |c| c as i32)))
    });
    t.add("chr(int4) text -- the character with this code", |a, _| {
        let code = i64_of(&a[0]);
        if code < 0 {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "character number must be positive",
            ));
        }
        if code == 0 {
            let text = "null character not permitted";
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, text));
        }
        match u32::try_from(code).ok().and_then(char::from_u32) {
            Some(c) => text(c),
            None => Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "requested character not valid for encoding",
            )),
        }
    });
    t.add("to_hex(int4) text -- as hexadecimal digits", |a, _| {
        text(format!("{:x}", i64_of(&a[0]) as i32))
    });
    t.add("to_hex(int8) text", |a, _| text(format!("{:x}", i64_of(&a[0]))));
    t.add("quote_ident(text) text -- as an identifier of SQL", |a, _| {
        text(quote_ident(text_of(&a[0])))
    });
    t.add("quote_literal(text) text -- as a literal of SQL", |a, _| {
        text(quote_literal(text_of(&a[0])))
    });
    t.add("quote_literal(anyelement) text", |a, ctx| match &a[0] {
        // As a cast to text shows it.
        Datum::Bool(b) => text(quote_literal(&b.to_string())),
        other => text(quote_literal(&any_text(other, ctx))),
    })
    .stable();
    t.add("quote_nullable(text) text -- as a literal of SQL, NULL as the word", |a, _| {
        text(if a[0].is_null() { "NULL".to_string() } else { quote_literal(text_of(&a[0])) })
    })
    .lax();
}

fn assembling(t: &mut Table) {
    t.add("concat(...any) text -- the texts of all arguments, NULLs left out", |a, c| {
        text(a.iter().map(|v| any_text(v, c)).collect::<String>())
    })
    .lax()
    .stable();
    t.add(
        "concat_ws(text, ...any) text \
         -- the texts of all arguments with the first between them, NULLs left out",
        |a, c| {
            if a[0].is_null() {
                return Ok(Datum::Null);
            }
            let parts: Vec<String> =
                a[1..].iter().filter(|v| !v.is_null()).map(|v| any_text(v, c)).collect();
            text(parts.join(text_of(&a[0])))
        },
    )
    .lax()
    .stable();
    t.add("format(text) text -- arguments put into a text at %s, %I and %L", format_text)
        .lax()
        .stable();
    t.add("format(text, ...any) text", format_text).lax().stable();
    let pieces: Eval = |a, _| match Pieces::delimited(a) {
        Some(pieces) => Ok(array(SqlType::Text, items(pieces)?)),
        None => Ok(Datum::Null),
    };
    t.add("string_to_array(text, text) text[] -- the pieces between delimiters", pieces).lax();
    t.add("string_to_array(text, text, text) text[]", pieces).lax();
    t.add(
        "array_to_string(anyarray, text) text \
         -- texts of the elements with a delimiter between them",
        |a, c| join_array(a, None, c),
    )
    .stable();
    t.add("array_to_string(anyarray, text, text) text", |a, c| {
        let null = match &a[2] {
            Datum::Null => None,
            word => Some(text_of(word)),
        };
        join_array(a, null, c)
    })
    .lax()
    .stable();
}

fn join_array(a: &[Datum], null: Option<&str>, ctx: &EvalContext) -> SqlResult<Datum> {
    let (Datum::Array(array), false) = (&a[0], a[1].is_null()) else { return Ok(Datum::Null) };
    let given = a[0].memory();
    let mut out = String::new();
    let mut any = false;
    for item in &array.items {
        let piece = match (item, null) {
            (Datum::Null, None) => continue,
            (Datum::Null, Some(null)) => null.into(),
            (item, _) => any_text(item, ctx),
        };
        if any {
            out.push_str(text_of(&a[1]));
        }
        any = true;
        out.push_str(&piece);
        check_bytes(out.len(), given, ctx)?;
    }
    text(out)
}

/// PostgreSQL's `\1` in a replacement as the regex crate's `${1}`.
pub(super) fn replacement(s: &str) -> String {
    let mut out = String::new();
    let mut chars = s.chars();
    while let Some(c) = chars.next() {
        match c {
            '$' => out.push_str("$$"),
            '\\' => match chars.next() {
                Some(d @ '1'..='9') => out.push_str(&format!("${{{d}}}")),
                Some('&') => out.push_str("${0}"),
                Some('\\') | None => out.push('\\'),
                Some(other) => {
                    out.push('\\');
                    out.push(other);
                }
            },
            c => out.push(c),
        }
    }
    out
}

fn regexes(t: &mut Table) {
    let replace: Eval = |a, c| {
        let flags = a.get(3).map_or("", text_of);
        let regex = pattern::regex(text_of(&a[1]), flags)?;
        let to = replacement(text_of(&a[2]));
        let source = text_of(&a[0]);
        if !flags.contains('g') {
            return text(regex.replacen(source, 1, to.as_str()));
        }
        let mut out = String::new();
        let mut from = 0;
        for found in pattern::all_matches(&regex, source) {
            let whole = found.get(0).map_or(0..0, |m| m.range());
            out.push_str(&source[from..whole.start]);
            found.expand(&to, &mut out);
            check_bytes(out.len(), source.len(), c)?;
            from = whole.end;
        }
        out.push_str(&source[from..]);
        text(out)
    };
    t.add("regexp_replace(text, text, text) text -- matches replaced", replace);
    t.add("regexp_replace(text, text, text, text) text", replace);
    let found: Eval = |a, _| {
        pattern::no_global(a, "regexp_match")?;
        let regex = pattern::regex(text_of(&a[1]), a.get(2).map_or("", text_of))?;
        let Some(captures) = regex.captures(text_of(&a[0])) else { return Ok(Datum::Null) };
        let first = if regex.captures_len() > 1 { 1 } else { 0 };
        let items = (first..regex.captures_len())
            .map(|i| captures.get(i).map_or(Datum::Null, |m| Datum::text(m.as_str())))
            .collect();
        Ok(Datum::Array(Arc::new(ArrayValue::list(SqlType::Text, items))))
    };
    t.add("regexp_match(text, text) text[] -- captures of the first match", found);
    t.add("regexp_match(text, text, text) text[]", found);
    let like: Eval = |a, _| {
        pattern::no_global(a, "regexp_like")?;
        let regex = pattern::regex(text_of(&a[1]), a.get(2).map_or("", text_of))?;
        Ok(Datum::Bool(regex.is_match(text_of(&a[0]))))
    };
    t.add("regexp_like(text, text) bool -- whether a part matches the expression", like);
    t.add("regexp_like(text, text, text) bool", like);
    let split: Eval = |a, _| {
        pattern::no_global(a, "regexp_split_to_array")?;
        Ok(array(SqlType::Text, items(Pieces::between_matches(a)?)?))
    };
    t.add("regexp_split_to_array(text, text) text[] -- the pieces between matches", split);
    t.add("regexp_split_to_array(text, text, text) text[]", split);
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    basic(t);
    changing(t);
    assembling(t);
    regexes(t);
}
