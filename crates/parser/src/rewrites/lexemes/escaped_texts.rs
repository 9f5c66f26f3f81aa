//! Texts in quotes as they were before `standard_conforming_strings`: a backslash in them begins an
//! escape, as behind E. So each that has one gets an E.

use braid_types::{SqlError, SqlResult, SqlState};

use sqlparser::tokenizer::TokenizerError;

use super::unicode_escapes::wrong;
use crate::rewrites::pieces::Pieces;

/// The script, read with the setting off, as it is written with the setting on.
///
/// # Errors
/// 0A000 for texts with characters by their numbers, which would have two kinds of escapes.
pub fn with_standard_texts(sql: &str) -> SqlResult<String> {
    let mut out = String::with_capacity(sql.len() + 8);
    for piece in Pieces::with_escapes_everywhere(sql) {
        if piece.escapes && piece.text.starts_with('\'') {
            let before = &sql[..piece.at];
            if before.ends_with("U&") || before.ends_with("u&") {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "unsafe use of string constant with Unicode escapes",
                )
                .with_detail(
                    "String constants with Unicode escapes cannot be used when \
                     standard_conforming_strings is off.",
                ));
            }
            if piece.text.contains('\\') {
                out.push_str(if piece.in_word { " E" } else { "E" });
            }
        }
        out.push_str(piece.text);
    }
    Ok(out)
}

/// The script with the characters that texts behind E spell byte by byte: `E'\303\251'`.
/// sqlparser takes each byte for a character. Blanks behind the text keep the places of the rest;
/// `None` if there is no such text.
///
/// # Errors
/// For bytes that are no UTF-8.
pub(crate) fn plain_bytes(sql: &str) -> Result<Option<String>, TokenizerError> {
    let may = |sql: &str| {
        sql.contains("\\x")
            || (b'2'..=b'3').any(|digit| sql.contains(&format!("\\{}", digit as char)))
    };
    if !(sql.contains("E'") || sql.contains("e'")) || !may(sql) {
        return Ok(None);
    }
    let mut out = String::with_capacity(sql.len());
    for piece in Pieces::of(sql) {
        if !piece.escapes {
            out.push_str(piece.text);
            continue;
        }
        let spelled = spell(sql, piece.at, piece.text)?;
        let missing = piece.text.chars().count() - spelled.chars().count();
        out.push_str(&spelled);
        out.extend(std::iter::repeat_n(' ', missing));
    }
    Ok(Some(out))
}

/// A text behind E, whose bytes over 127 are characters then.
fn spell(sql: &str, start: usize, text: &str) -> Result<String, TokenizerError> {
    let mut out = String::with_capacity(text.len());
    let mut bytes = Vec::new();
    let mut rest = text;
    loop {
        let byte = byte_escape(rest).filter(|(byte, _)| *byte > 0x7f);
        if let Some((byte, length)) = byte {
            bytes.push(byte);
            rest = &rest[length..];
            continue;
        }
        if !bytes.is_empty() {
            let shown: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
            let decoded = String::from_utf8(std::mem::take(&mut bytes)).map_err(|_| {
                let shown = shown.join(" ");
                wrong(sql, start, &format!("invalid byte sequence for encoding \"UTF8\": {shown}"))
            })?;
            out.push_str(&decoded);
        }
        // What is escaped otherwise stays as it is.
        let Some(c) = rest.chars().next() else { return Ok(out) };
        let next = if c == '\\' { rest[1..].chars().next() } else { None };
        let length = c.len_utf8() + next.map_or(0, char::len_utf8);
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
}

/// The byte that an escape spells, and its length.
fn byte_escape(text: &str) -> Option<(u8, usize)> {
    let spelled = text.strip_prefix('\\')?;
    let (digits, radix, most, before) = match spelled.strip_prefix('x') {
        Some(digits) => (digits, 16, 2, 2),
        None => (spelled, 8, 3, 1),
    };
    let count = digits.chars().take(most).take_while(|c| c.is_digit(radix)).count();
    let value = u32::from_str_radix(&digits[..count], radix).ok()?;
    Some((value as u8, before + count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_characters() {
        let plain = |sql: &str| plain_bytes(sql).unwrap().unwrap();
        assert_eq!(plain(r"select E'\303\251\n', 1"), "select E'é\\n'       , 1");
        assert_eq!(plain(r"E'a\xC3\xa9\x41'"), "E'aé\\x41'       ");
        assert_eq!(plain(r"E'\\303', '\303'"), r"E'\\303', '\303'");
        assert!(plain_bytes(r"E'\303'").unwrap_err().message.starts_with("invalid byte sequence"));
    }

    #[test]
    fn texts_with_a_backslash_get_an_e() {
        for (text, want) in [
            (r"select 'a\'b', 'c', E'\n'", r"select E'a\'b', 'c', E'\n'"),
            (r"interval'\t1' -- '\'", r"interval E'\t1' -- '\'"),
            (r"$$'\'$$, $1, x'0f', '\\'", r"$$'\'$$, $1, x'0f', E'\\'"),
        ] {
            assert_eq!(with_standard_texts(text).unwrap(), want);
        }
        let refused = with_standard_texts(r"select U&'\0061'").unwrap_err();
        assert_eq!(refused.state(), SqlState::FEATURE_NOT_SUPPORTED);
    }
}
