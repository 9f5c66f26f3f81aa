//! The text form of arrays: `{1,NULL,"two words"}`.

use crate::{SqlError, SqlResult, SqlState};

/// Writes elements; `None` is NULL.
pub(crate) fn write(items: impl Iterator<Item = Option<String>>) -> String {
    let mut out = String::from("{");
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(',');
        }
        match item {
            None => out.push_str("NULL"),
            Some(text) => {
                let quote = text.is_empty()
                    || text.eq_ignore_ascii_case("null")
                    || text.chars().any(|c| {
                        matches!(c, '{' | '}' | ',' | '"' | '\\')
                            || c.is_ascii_whitespace()
                            || c == '\u{b}'
                    });
                if quote {
                    out.push('"');
                    for c in text.chars() {
                        if matches!(c, '"' | '\\') {
                            out.push('\\');
                        }
                        out.push(c);
                    }
                    out.push('"');
                } else {
                    out.push_str(&text);
                }
            }
        }
    }
    out.push('}');
    out
}

/// Splits an array literal into elements.
///
/// # Errors
/// 22P02; 0A000 for more than one dimension or explicit bounds.
pub(crate) fn split(text: &str) -> SqlResult<Vec<Option<String>>> {
    let bad = |detail: &str| {
        SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("malformed array literal: \"{text}\""),
        )
        .with_detail(detail)
    };
    let trimmed = text.trim();
    let bounds = trimmed.strip_prefix('[').and_then(|rest| rest.split_once('='));
    let bound = |c: char| c.is_ascii_digit() || "[]:+- ".contains(c);
    if bounds.is_some_and(|(bounds, _)| bounds.chars().all(bound)) {
        return Err(SqlError::unsupported("an array with explicit bounds"));
    }
    let inner = trimmed
        .strip_prefix('{')
        .ok_or_else(|| bad("Array value must start with \"{\" or dimension information."))?;
    let mut items = Vec::new();
    let mut chars = inner.chars().peekable();
    let mut closed = false;
    loop {
        while chars.peek().is_some_and(|c| c.is_whitespace()) {
            chars.next();
        }
        match chars.peek() {
            None => break,
            Some('}') => {
                if !items.is_empty() {
                    return Err(bad("Unexpected \"}\" character."));
                }
                chars.next();
                closed = true;
                break;
            }
            Some('{') => return Err(SqlError::unsupported("an array of several dimensions")),
            Some(_) => {}
        }
        let (item, end) = element(&mut chars).ok_or_else(|| bad("Unexpected end of input."))?;
        items.push(item);
        if end == '}' {
            closed = true;
            break;
        }
    }
    if !closed {
        return Err(bad("Unexpected end of input."));
    }
    if chars.any(|c| !c.is_whitespace()) {
        return Err(bad("Junk after closing right brace."));
    }
    Ok(items)
}

/// One element and the delimiter after it.
fn element(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<(Option<String>, char)> {
    let mut out = String::new();
    let mut quoted = false;
    let mut keep = 0;
    loop {
        match chars.next()? {
            '"' => {
                quoted = true;
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => out.push(chars.next()?),
                        c => out.push(c),
                    }
                }
                keep = out.len();
            }
            '\\' => {
                out.push(chars.next()?);
                keep = out.len();
            }
            '{' => return None,
            c @ (',' | '}') => {
                if !quoted || out.len() > keep {
                    let trimmed = out.trim_end().len().max(keep);
                    out.truncate(trimmed);
                }
                if !quoted && out.is_empty() {
                    return None;
                }
                let null = !quoted && out.eq_ignore_ascii_case("null");
                return Some((if null { None } else { Some(out) }, c));
            }
            c => out.push(c),
        }
    }
}
