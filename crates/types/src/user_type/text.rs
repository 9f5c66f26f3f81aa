//! Rows as text: `(1,"two words",)`. An empty field is NULL, `""` an empty text; backslash takes
//! the next character as it is, and so do doubled quotes.

use super::CompositeType;
use crate::text_out::push_quoted;
use crate::{Datum, SqlError, SqlResult, SqlState, Style};

fn malformed(text: &str, detail: &str) -> SqlError {
    let message = format!("malformed record literal: \"{text}\"");
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message).with_detail(detail)
}

/// Reads a value of a type.
pub(crate) fn parse(text: &str, ty: &CompositeType, style: &Style) -> SqlResult<Datum> {
    ty.of_texts(split(text, ty.fields.len())?, style)
}

/// The texts of so many fields.
fn split(text: &str, count: usize) -> SqlResult<Vec<Option<String>>> {
    let blank = |c: char| c.is_ascii_whitespace() || c == '\x0b';
    let Some(mut rest) = text.trim_start_matches(blank).strip_prefix('(') else {
        return Err(malformed(text, "Missing left parenthesis."));
    };
    let mut fields = Vec::with_capacity(count);
    for at in 0..count {
        if at > 0 {
            rest = rest.strip_prefix(',').ok_or_else(|| malformed(text, "Too few columns."))?;
        }
        let (field, after) =
            field(rest).ok_or_else(|| malformed(text, "Unexpected end of input."))?;
        fields.push(field);
        rest = after;
    }
    let Some(after) = rest.strip_prefix(')') else {
        return Err(malformed(text, "Too many columns."));
    };
    if !after.trim_start_matches(blank).is_empty() {
        return Err(malformed(text, "Junk after right parenthesis."));
    }
    Ok(fields)
}

/// One field, and what follows it: a comma or the parenthesis; `None` at the end of the text.
fn field(text: &str) -> Option<(Option<String>, &str)> {
    if text.starts_with([',', ')']) {
        return Some((None, text));
    }
    let (mut out, mut quoted) = (String::new(), false);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            ',' | ')' if !quoted => return Some((Some(out), &text[at..])),
            '\\' => out.push(chars.next()?.1),
            '"' if quoted && chars.peek().is_some_and(|(_, next)| *next == '"') => {
                chars.next();
                out.push('"');
            }
            '"' => quoted = !quoted,
            other => out.push(other),
        }
    }
    None
}

/// Writes a row.
pub(crate) fn write(fields: &[Datum], style: &Style) -> String {
    let mut out = String::from("(");
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let Some(text) = field.to_text(style) else {
            continue;
        };
        let quote = text.is_empty()
            || text
                .chars()
                .any(|c| matches!(c, '(' | ')' | ',' | '"' | '\\') || c.is_ascii_whitespace());
        if quote {
            push_quoted(&mut out, &text);
        } else {
            out.push_str(&text);
        }
    }
    out.push(')');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_split_as_postgres_splits_them() {
        let some = |s: &str| Some(s.to_string());
        assert_eq!(split("(1,a b,)", 3).unwrap(), [some("1"), some("a b"), None]);
        assert_eq!(
            split(r#" ("",",""\)" , x\,y ) "#, 3).unwrap(),
            [some(""), some(",\") "), some(" x,y "),]
        );
        for (text, count, detail) in [
            ("1,2)", 2, "Missing left parenthesis."),
            ("(1)", 2, "Too few columns."),
            ("(1,2)", 1, "Too many columns."),
            ("(1,\"2)", 2, "Unexpected end of input."),
            ("(1,2", 2, "Unexpected end of input."),
            ("(1,2)x", 2, "Junk after right parenthesis."),
        ] {
            assert_eq!(split(text, count).unwrap_err().detail(), Some(detail), "{text}");
        }
    }
}
