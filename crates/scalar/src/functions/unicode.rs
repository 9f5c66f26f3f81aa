//! Characters by their numbers, and normal forms.

use braid_types::{Datum, SqlError, SqlResult, SqlState};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::{is_nfc, is_nfd, is_nfkc, is_nfkd};

use super::text_of;
use crate::registry::Table;

fn bad_escape() -> SqlError {
    SqlError::syntax("invalid Unicode escape")
        .with_hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
}

fn bad_pair() -> SqlError {
    SqlError::syntax("invalid Unicode surrogate pair")
}

/// The number of an escape, and how many bytes it takes.
fn escape(rest: &str) -> SqlResult<(u32, usize)> {
    let (from, digits) = match rest.as_bytes().get(1) {
        Some(b'+') => (2, 6),
        Some(b'u') => (2, 4),
        Some(b'U') => (2, 8),
        _ => (1, 4),
    };
    let text = rest.get(from..from + digits).ok_or_else(bad_escape)?;
    if !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(bad_escape());
    }
    let number = u32::from_str_radix(text, 16).map_err(|_| bad_escape())?;
    Ok((number, from + digits))
}

/// A text with its escapes read.
fn unistr(text: &str) -> SqlResult<Datum> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut high: Option<u32> = None;
    while let Some(c) = rest.chars().next() {
        if c != '\\' || rest.starts_with("\\\\") {
            if high.is_some() {
                return Err(bad_pair());
            }
            out.push(c);
            rest = &rest[c.len_utf8() + usize::from(c == '\\')..];
            continue;
        }
        let (number, length) = escape(rest)?;
        rest = &rest[length..];
        let number = match (high.take(), number) {
            (Some(first), 0xDC00..=0xDFFF) => {
                0x1_0000 + ((first - 0xD800) << 10) + (number - 0xDC00)
            }
            (Some(_), _) | (None, 0xDC00..=0xDFFF) => return Err(bad_pair()),
            (None, 0xD800..=0xDBFF) => {
                high = Some(number);
                continue;
            }
            (None, number) => number,
        };
        let character = char::from_u32(number).filter(|c| *c != '\0').ok_or_else(|| {
            let text = format!("invalid Unicode code point: {number:04X}");
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text)
        })?;
        out.push(character);
    }
    if high.is_some() {
        return Err(bad_pair());
    }
    Ok(Datum::text(out))
}

/// A normal form of Unicode.
#[derive(Clone, Copy)]
enum Form {
    C,
    D,
    CompatibleC,
    CompatibleD,
}

fn form(name: &str) -> SqlResult<Form> {
    Ok(match name.to_ascii_uppercase().as_str() {
        "NFC" => Form::C,
        "NFD" => Form::D,
        "NFKC" => Form::CompatibleC,
        "NFKD" => Form::CompatibleD,
        _ => {
            let text = format!("invalid normalization form: {name}");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text));
        }
    })
}

fn normalized(text: &str, form: Form) -> String {
    match form {
        Form::C => text.nfc().collect(),
        Form::D => text.nfd().collect(),
        Form::CompatibleC => text.nfkc().collect(),
        Form::CompatibleD => text.nfkd().collect(),
    }
}

fn is_normalized(text: &str, form: Form) -> bool {
    match form {
        Form::C => is_nfc(text),
        Form::D => is_nfd(text),
        Form::CompatibleC => is_nfkc(text),
        Form::CompatibleD => is_nfkd(text),
    }
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    t.add("unistr(text) text -- escapes `\\0041`, `\\u0041` and `\\+000041` read", |a, _| {
        unistr(text_of(&a[0]))
    });
    t.add("normalize(text) text -- a normal form of Unicode, NFC if none is named", |a, _| {
        Ok(Datum::text(normalized(text_of(&a[0]), Form::C)))
    });
    t.add("normalize(text, text) text", |a, _| {
        Ok(Datum::text(normalized(text_of(&a[0]), form(text_of(&a[1]))?)))
    });
    t.add("is_normalized(text, text) bool -- `x IS NFC NORMALIZED`", |a, _| {
        Ok(Datum::Bool(is_normalized(text_of(&a[0]), form(text_of(&a[1]))?)))
    });
}
