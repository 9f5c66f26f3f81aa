//! Texts and bytes.

use braid_types::{Datum, SqlResult, SqlType};

use super::farm::fingerprint;
use super::guests::invalid;
use crate::array_operators::{array, items_of};
use crate::functions::{bytes_of, i64_of, text_of};
use crate::limits;
use crate::registry::{Eval, Table};

/// The n-th place of a part, from 1, searched from a place on; from one before the end if that is
/// negative, backwards. 0 if there is none.
fn instr(a: &[Datum]) -> SqlResult<i64> {
    let (text, part) = (text_of(&a[0]), text_of(&a[1]));
    let (from, wanted) = (a.get(2).map_or(1, i64_of), a.get(3).map_or(1, i64_of));
    if from == 0 || wanted < 1 {
        return Err(invalid("the position must not be 0, and the occurrence must be positive"));
    }
    let places: Vec<usize> =
        text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect();
    let length = places.len() as i64 - 1;
    let at = |n: i64| text[places[n as usize]..].starts_with(part);
    let found = match from > 0 {
        true => (from - 1..length).filter(|n| at(*n)).nth((wanted - 1) as usize),
        false => {
            let mut back = (0..=length.saturating_add(from)).rev().filter(|n| at(*n));
            back.nth((wanted - 1) as usize)
        }
    };
    Ok(if part.is_empty() { 0 } else { found.map_or(0, |n| n + 1) })
}

/// The parts of a text between a separator; without one, its characters.
fn split(text: &str, separator: &str) -> SqlResult<Datum> {
    let parts = match (text, separator) {
        ("", _) => vec![Datum::text("")],
        (text, "") => limits::items(text.chars().map(|c| Datum::text(c.to_string())))?,
        (text, separator) => limits::items(text.split(separator).map(Datum::text))?,
    };
    Ok(array(SqlType::Text, parts))
}

fn parts(t: &mut Table) {
    t.add("ends_with(text, text) bool -- whether a text ends so", |a, _| {
        Ok(Datum::Bool(text_of(&a[0]).ends_with(text_of(&a[1]))))
    });
    t.add("ends_with(bytea, bytea) bool", |a, _| {
        Ok(Datum::Bool(bytes_of(&a[0]).ends_with(bytes_of(&a[1]))))
    });
    let place: Eval = |a, _| Ok(Datum::Int8(instr(a)?));
    t.add("instr(text, text) int8 -- the n-th place of a part, from a place on", place);
    t.add("instr(text, text, int8) int8", place);
    t.add("instr(text, text, int8, int8) int8", place);
    t.add("split(text) text[] -- the parts between commas, or another separator", |a, _| {
        split(text_of(&a[0]), ",")
    });
    t.add("split(text, text) text[]", |a, _| split(text_of(&a[0]), text_of(&a[1])));
    t.add("byte_length(text) int8 -- number of bytes", |a, _| {
        Ok(Datum::Int8(text_of(&a[0]).len() as i64))
    });
    t.add("byte_length(bytea) int8", |a, _| Ok(Datum::Int8(bytes_of(&a[0]).len() as i64)));
}

/// A character by its number.
fn character(code: &Datum) -> SqlResult<char> {
    let found = u32::try_from(i64_of(code)).ok().and_then(char::from_u32);
    found.ok_or_else(|| invalid(format!("invalid code point {}", i64_of(code))))
}

fn codes(t: &mut Table) {
    t.add("to_code_points(text) int8[] -- the numbers of its characters", |a, _| {
        let codes = text_of(&a[0]).chars().map(|c| Datum::Int8(u32::from(c).into()));
        Ok(array(SqlType::Int8, limits::items(codes)?))
    });
    t.add("to_code_points(bytea) int8[]", |a, _| {
        let codes = bytes_of(&a[0]).iter().map(|b| Datum::Int8((*b).into()));
        Ok(array(SqlType::Int8, limits::items(codes)?))
    });
    t.add("code_points_to_string(int8[]) text -- the characters of these numbers", |a, _| {
        if items_of(&a[0]).iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let text = items_of(&a[0]).iter().map(character).collect::<SqlResult<String>>()?;
        match text.contains('\0') {
            true => Err(invalid("a text cannot have the code point 0")),
            false => Ok(Datum::text(text)),
        }
    });
    t.add("code_points_to_bytes(int8[]) bytea -- these bytes", |a, _| {
        if items_of(&a[0]).iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let byte = |item: &Datum| {
            u8::try_from(i64_of(item)).map_err(|_| invalid("a byte is a number from 0 to 255"))
        };
        let bytes = items_of(&a[0]).iter().map(byte).collect::<SqlResult<Vec<u8>>>()?;
        Ok(Datum::Bytea(bytes.into()))
    });
    t.add("unicode(text) int8 -- the number of the first character, 0 of none", |a, _| {
        Ok(Datum::Int8(text_of(&a[0]).chars().next().map_or(0, |c| u32::from(c).into())))
    });
}

fn nibble(digit: u8) -> SqlResult<u8> {
    let value = char::from(digit).to_digit(16);
    value.map(|v| v as u8).ok_or_else(|| invalid("a hexadecimal digit is 0 to 9 or a to f"))
}

/// Bytes of hexadecimal digits; before an odd number of them stands a zero.
fn from_hex(text: &str) -> SqlResult<Vec<u8>> {
    let (first, pairs) = text.as_bytes().split_at(text.len() % 2);
    let first = first.iter().map(|digit| nibble(*digit));
    let pairs = pairs.chunks(2).map(|pair| Ok(nibble(pair[0])? << 4 | nibble(pair[1])?));
    first.chain(pairs).collect()
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

fn from_base64(text: &str) -> SqlResult<Vec<u8>> {
    let bad = || invalid("invalid base64");
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let padding = digits.iter().rev().take_while(|b| **b == b'=').count();
    let body = &digits[..digits.len() - padding];
    if !digits.len().is_multiple_of(4) || padding > 2 {
        return Err(bad());
    }
    let mut out = Vec::with_capacity(body.len() / 4 * 3);
    let (mut word, mut bits) = (0u32, 0);
    for digit in body {
        let value = DIGITS.iter().position(|d| d == digit).ok_or_else(bad)?;
        word = word << 6 | value as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    Ok(out)
}

fn encodings(t: &mut Table) {
    t.add("to_hex(bytea) text", |a, _| {
        Ok(Datum::text(bytes_of(&a[0]).iter().map(|b| format!("{b:02x}")).collect::<String>()))
    });
    t.add("from_hex(text) bytea -- the bytes of hexadecimal digits", |a, _| {
        Ok(Datum::Bytea(from_hex(text_of(&a[0]))?.into()))
    });
    t.add("to_base64(bytea) text -- bytes in base64, on one line", |a, _| {
        Ok(Datum::text(to_base64(bytes_of(&a[0]))))
    });
    t.add("from_base64(text) bytea -- the bytes of base64", |a, _| {
        Ok(Datum::Bytea(from_base64(text_of(&a[0]))?.into()))
    });
    t.add(
        "safe_convert_bytes_to_string(bytea) text -- as UTF-8, with U+FFFD for what is none",
        |a, _| {
            let text = String::from_utf8_lossy(bytes_of(&a[0])).replace('\0', "\u{fffd}");
            Ok(Datum::text(text))
        },
    );
    t.add("sha1(bytea) bytea -- SHA-1 of bytes", |a, _| {
        Ok(Datum::Bytea(crate::functions::extensions::sha1(bytes_of(&a[0])).to_vec().into()))
    });
    t.add("farm_fingerprint(text) int8 -- FarmHash's Fingerprint64", |a, _| {
        Ok(Datum::Int8(fingerprint(text_of(&a[0]).as_bytes()) as i64))
    });
    t.add("farm_fingerprint(bytea) int8", |a, _| {
        Ok(Datum::Int8(fingerprint(bytes_of(&a[0])) as i64))
    });
}

/// A code of the sound of a word, as in English: a letter and three digits.
fn soundex(text: &str) -> String {
    let code = |c: char| match c.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        _ => '0',
    };
    let mut letters = text.chars().filter(char::is_ascii_alphabetic);
    let Some(first) = letters.next() else { return String::new() };
    let mut out = String::from(first.to_ascii_uppercase());
    let mut last = code(first);
    for letter in letters {
        let digit = code(letter);
        if digit != '0' && digit != last {
            out.push(digit);
        }
        // Letters that are not heard do not part two of one sound.
        if !matches!(letter.to_ascii_uppercase(), 'H' | 'W') {
            last = digit;
        }
        if out.len() == 4 {
            break;
        }
    }
    format!("{out:0<4}")
}

/// Adds the functions of this file.
pub(super) fn fill(t: &mut Table) {
    parts(t);
    codes(t);
    encodings(t);
    t.add("soundex(text) text -- a code of how a word sounds", |a, _| {
        Ok(Datum::text(soundex(text_of(&a[0]))))
    });
}
