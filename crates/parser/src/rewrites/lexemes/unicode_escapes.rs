//! `U&'d\0061t\+000061'` and `U&"d!0061ta" UESCAPE '!'`: texts and names whose characters are
//! written by their numbers. They are replaced in the text, with blanks behind, so that nothing
//! else moves.

use sqlparser::tokenizer::{Location, TokenizerError};

use crate::rewrites::pieces::{Pieces, quoted};

/// The text without such escapes; `None` if it has none.
///
/// # Errors
/// For what is no escape, and no sign to begin one with.
pub(crate) fn plain(sql: &str) -> Result<Option<String>, TokenizerError> {
    if !sql.contains("U&") && !sql.contains("u&") {
        return Ok(None);
    }
    let mut out = String::with_capacity(sql.len());
    let mut pieces = Pieces::of(sql);
    while let Some(piece) = pieces.next() {
        let behind = &sql[piece.at + piece.text.len()..];
        let marked = behind.starts_with("&'") || behind.starts_with("&\"");
        if !piece.in_word && marked && matches!(piece.text, "u" | "U") {
            pieces.go_on_at(literal(sql, piece.at, &mut out)?);
        } else {
            out.push_str(piece.text);
        }
    }
    Ok(Some(out))
}

/// An error of a text, at a place in it.
pub(super) fn wrong(sql: &str, at: usize, message: &str) -> TokenizerError {
    let before = &sql[..at];
    let line = before.matches('\n').count() as u64 + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() as u64 + 1;
    TokenizerError { message: message.to_string(), location: Location { line, column } }
}

/// Writes the literal that begins here, and as many blanks as it is shorter; says where it ends.
fn literal(sql: &str, start: usize, out: &mut String) -> Result<usize, TokenizerError> {
    let open = start + 2;
    let quote = if sql[open..].starts_with('"') { '"' } else { '\'' };
    let Some(length) = quoted(&sql[open..], quote, false) else {
        out.push_str(&sql[start..]);
        return Ok(sql.len());
    };
    // A text goes on in quotes on another line.
    let mut pieces = vec![(open, length)];
    let mut last = open + length;
    while let Some(next) = continuation(sql, last).filter(|_| quote == '\'')
        && let Some(length) = quoted(&sql[next..], quote, false)
    {
        pieces.push((next, length));
        last = next + length;
    }
    let (escape, end) = escape_sign(sql, last)?;
    let mut at = start;
    for (open, length) in pieces {
        // Between pieces there is nothing but blanks.
        out.push_str(if at == start { "" } else { &sql[at..open] });
        let inside = &sql[open + 1..open + length - 1];
        let mut made = String::new();
        made.push(quote);
        decode(sql, open + 1, inside, escape, quote, &mut made)?;
        made.push(quote);
        let from = if at == start { start } else { open };
        let written = sql[from..open + length].chars().count();
        let missing = written.saturating_sub(made.chars().count());
        out.push_str(&made);
        out.extend(std::iter::repeat_n(' ', missing));
        at = open + length;
    }
    // New lines stay new lines.
    out.extend(sql[last..end].chars().map(|c| if c == '\n' { c } else { ' ' }));
    Ok(end)
}

/// Where a text goes on behind blanks with a new line.
fn continuation(sql: &str, end: usize) -> Option<usize> {
    let rest = sql[end..].trim_start();
    let blanks = &sql[end..sql.len() - rest.len()];
    (blanks.contains('\n') && rest.starts_with('\'')).then_some(end + blanks.len())
}

/// What begins escapes, by `UESCAPE '!'` behind the literal, and where that ends.
fn escape_sign(sql: &str, end: usize) -> Result<(char, usize), TokenizerError> {
    let rest = sql[end..].trim_start();
    let is_clause = rest.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("uescape"));
    if !is_clause || rest[7..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return Ok(('\\', end));
    }
    let given = rest[7..].trim_start();
    let begin = sql.len() - given.len();
    let near = |text: &str, what: &str| wrong(sql, begin, &format!("{text} at or near \"{what}\""));
    let Some(inside) = given.strip_prefix('\'') else {
        let word = given.split(|c: char| c.is_whitespace() || ";,)".contains(c)).next();
        let text = "UESCAPE must be followed by a simple string literal";
        return Err(near(text, word.unwrap_or_default()));
    };
    let mut chars = inside.chars();
    let sign = chars.next().filter(|c| {
        !c.is_ascii_hexdigit() && !matches!(c, '+' | '\'' | '"') && !c.is_ascii_whitespace()
    });
    match (sign, chars.next()) {
        (Some(sign), Some('\'')) => Ok((sign, begin + 2 + sign.len_utf8())),
        _ => {
            let shown = &given[..quoted(given, '\'', false).unwrap_or(given.len())];
            Err(near("invalid Unicode escape character", shown))
        }
    }
}

/// Writes what stands in quotes with its escapes decoded.
fn decode(
    sql: &str,
    begin: usize,
    inside: &str,
    escape: char,
    quote: char,
    out: &mut String,
) -> Result<(), TokenizerError> {
    let mut rest = inside;
    let mut high = None;
    while let Some(c) = rest.chars().next() {
        let place = begin + inside.len() - rest.len();
        let pair = || wrong(sql, place, "invalid Unicode surrogate pair");
        rest = &rest[c.len_utf8()..];
        if c != escape || rest.starts_with(escape) {
            if high.is_some() {
                return Err(pair());
            }
            out.push(c);
            if c == escape {
                rest = &rest[c.len_utf8()..];
            }
            continue;
        }
        let (digits, width) = match rest.strip_prefix('+') {
            Some(digits) => (digits, 6),
            None => (rest, 4),
        };
        let hex = digits.get(..width).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(hex) = hex else { return Err(wrong(sql, place, "invalid Unicode escape")) };
        rest = &digits[width..];
        let code = match (u32::from_str_radix(hex, 16).unwrap_or(0), high.take()) {
            (code @ 0xD800..0xDC00, None) => {
                high = Some(code);
                continue;
            }
            (low @ 0xDC00..0xE000, Some(high)) => {
                0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
            }
            (0xD800..0xE000, _) | (_, Some(_)) => return Err(pair()),
            (code, None) => code,
        };
        let value = char::from_u32(code).filter(|c| *c != '\0');
        let value = value.ok_or_else(|| wrong(sql, place, "invalid Unicode escape value"))?;
        out.push(value);
        if value == quote {
            out.push(value);
        }
    }
    match high {
        Some(_) => Err(wrong(sql, begin + inside.len(), "invalid Unicode surrogate pair")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_in_their_place() {
        for (text, want) in [
            (r"select U&'d\0061t\+000061', 1", "select 'data'           , 1"),
            (
                r#"select u&"d!0061t" uescape '!' from t"#,
                r#"select "dat"                   from t"#,
            ),
            (r"U&'\D83D\DE00\\'", "'😀\\'             "),
            (r"U&'a\0027b'", "'a''b'     "),
            (
                "'U&''\\0061' -- U&'\\0061'\n/* /* U&'\\' */ */ e'\\'U&' $$U&'\\0061'$$ xU&'a'",
                "'U&''\\0061' -- U&'\\0061'\n/* /* U&'\\' */ */ e'\\'U&' $$U&'\\0061'$$ xU&'a'",
            ),
        ] {
            let made = plain(text).unwrap().unwrap();
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(words(&made), words(want), "{text}");
            assert_eq!(made.chars().count(), text.chars().count(), "{text}");
        }
        for (text, want) in [
            (r"U&'wrong: \061'", "invalid Unicode escape"),
            (r"U&'\D83D'", "invalid Unicode surrogate pair"),
            (r"U&'\+110000'", "invalid Unicode escape value"),
            (r"U&'a' uescape '+'", "invalid Unicode escape character at or near \"'+'\""),
            (
                r"U&'a' uescape +",
                "UESCAPE must be followed by a simple string literal at or near \"+\"",
            ),
        ] {
            assert_eq!(plain(text).unwrap_err().message, want, "{text}");
        }
        assert_eq!(plain("select 1").unwrap(), None);
    }
}
