//! Text of ranges.

use super::{RangeKind, RangeValue};
use crate::text_in::parse_base;
use crate::text_out::push_quoted;
use crate::{Datum, SqlError, SqlResult, SqlState, Style};

fn malformed(text: &str, detail: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("malformed range literal: \"{text}\""),
    )
    .with_detail(detail)
}

/// Reads a range.
pub(crate) fn parse(text: &str, kind: &RangeKind, style: &Style) -> SqlResult<RangeValue> {
    let inner = text.trim();
    if inner.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("empty")) {
        return match inner.len() {
            5 => Ok(RangeValue::empty(kind)),
            _ => Err(malformed(text, "Junk after \"empty\" key word.")),
        };
    }
    let with_lower = match inner.chars().next() {
        Some('[') => true,
        Some('(') => false,
        _ => return Err(malformed(text, "Missing left parenthesis or bracket.")),
    };
    let mut rest = &inner[1..];
    let lower = bound(text, &mut rest)?;
    rest = rest
        .strip_prefix(',')
        .ok_or_else(|| malformed(text, "Missing comma after lower bound."))?;
    let upper = bound(text, &mut rest)?;
    let with_upper = match rest.chars().next() {
        Some(']') => true,
        Some(')') => false,
        _ => return Err(malformed(text, "Too many commas.")),
    };
    if !rest[1..].trim().is_empty() {
        return Err(malformed(text, "Junk after right parenthesis or bracket."));
    }
    let value = |bound: Option<String>| match bound {
        Some(text) => parse_base(&text, &kind.element(), style),
        None => Ok(Datum::Null),
    };
    RangeValue::new(kind, value(lower)?, value(upper)?, (with_lower, with_upper))
}

/// A bound up to what ends it; nothing is no bound.
fn bound(text: &str, rest: &mut &str) -> SqlResult<Option<String>> {
    if rest.starts_with([',', ')', ']']) {
        return Ok(None);
    }
    let mut out = String::new();
    let mut quoted = false;
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, c)) => out.push(c),
                None => break,
            },
            '"' if quoted && chars.peek().is_some_and(|(_, c)| *c == '"') => {
                chars.next();
                out.push('"');
            }
            '"' => quoted = !quoted,
            ',' | ')' | ']' if !quoted => {
                *rest = &rest[at..];
                return Ok(Some(out));
            }
            c => out.push(c),
        }
    }
    Err(malformed(text, "Unexpected end of input."))
}

/// Writes a range.
pub(crate) fn write(range: &RangeValue, style: &Style) -> String {
    if range.empty {
        return "empty".to_string();
    }
    let mut out = String::from(if range.with_lower { "[" } else { "(" });
    push_bound(&mut out, &range.lower, style);
    out.push(',');
    push_bound(&mut out, &range.upper, style);
    out.push(if range.with_upper { ']' } else { ')' });
    out
}

fn push_bound(out: &mut String, value: &Datum, style: &Style) {
    let Some(text) = value.to_text(style) else { return };
    let special = |c: char| "\"\\()[],".contains(c) || c.is_ascii_whitespace();
    if !text.is_empty() && !text.contains(special) {
        out.push_str(&text);
        return;
    }
    push_quoted(out, &text);
}
