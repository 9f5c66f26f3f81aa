//! `json`: text that is kept as it was written, with blanks, order and duplicates.
//!
//! A value is checked once ([`check`]); everything else cuts slices out of checked text.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{SqlError, SqlResult, SqlState, jsonb};

/// Checks a text.
///
/// # Errors
/// 22P02; 54001 for nesting beyond the limit.
pub fn check(text: &str) -> SqlResult<()> {
    // A surrogate without its other half is text all the same, so escapes are not decoded.
    let mut scanner = Scanner { text, at: 0, depth: 0 };
    if scanner.value().is_some() && scanner.blank() == text.len() {
        return Ok(());
    }
    if scanner.depth > MAX_DEPTH {
        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
    }
    Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json"))
}

/// What a checked text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `null`
    Null,
    /// `true`, `false`
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// `[..]`
    Array,
    /// `{..}`
    Object,
}

/// The shape of a checked text.
pub fn shape(text: &str) -> Shape {
    match text.trim_start().as_bytes().first() {
        Some(b'{') => Shape::Object,
        Some(b'[') => Shape::Array,
        Some(b'"') => Shape::String,
        Some(b't' | b'f') => Shape::Bool,
        Some(b'n') => Shape::Null,
        _ => Shape::Number,
    }
}

/// The elements of a checked array.
pub fn elements(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut scanner = Scanner::inside(text);
    while let Some(value) = scanner.value() {
        out.push(value);
        if !scanner.take(b',') {
            break;
        }
    }
    out
}

/// The keys, decoded, and values of a checked object, in their order.
pub fn entries(text: &str) -> Vec<(Cow<'_, str>, &str)> {
    let mut out = Vec::new();
    let mut scanner = Scanner::inside(text);
    while let Some(key) = scanner.value() {
        scanner.take(b':');
        let Some(value) = scanner.value() else { break };
        out.push((string(key), value));
        if !scanner.take(b',') {
            break;
        }
    }
    out
}

/// Goes over a checked array or object that is kept: what `make` makes of each key, decoded, and
/// value. Keys of an array are empty.
pub fn each<T>(text: Arc<str>, make: impl Fn(Cow<'_, str>, &str) -> T) -> impl Iterator<Item = T> {
    let keyed = shape(&text) == Shape::Object;
    let mut at = Some(Scanner::inside(&text).at);
    std::iter::from_fn(move || {
        let mut scanner = Scanner { text: &text, at: at?, depth: 0 };
        let mut key = Cow::Borrowed("");
        if keyed {
            key = string(scanner.value()?);
            scanner.take(b':');
        }
        let made = make(key, scanner.value()?);
        at = scanner.take(b',').then_some(scanner.at);
        Some(made)
    })
}

/// The text that a checked string stands for.
pub fn string(text: &str) -> Cow<'_, str> {
    let inner = text.trim().trim_start_matches('"');
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    match jsonb::serde_json::from_str::<String>(text.trim()) {
        Ok(decoded) => Cow::Owned(decoded),
        Err(_) => Cow::Borrowed(inner),
    }
}

/// A string as JSON writes it.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A number or another scalar: numbers that JSON has no form for are strings.
pub fn number(text: &str) -> String {
    let finite = text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && !text.ends_with(|c: char| c.is_ascii_alphabetic());
    if finite { text.to_string() } else { quoted(text) }
}

/// Reading recurses.
const MAX_DEPTH: usize = 6_000;

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Scanner<'a> {
    /// Behind the opening bracket.
    fn inside(text: &'a str) -> Scanner<'a> {
        let mut scanner = Scanner { text, at: 0, depth: 0 };
        scanner.blank();
        scanner.at += 1;
        scanner
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blank(&mut self) -> usize {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.at
    }

    fn take(&mut self, byte: u8) -> bool {
        self.blank();
        let yes = self.peek() == Some(byte);
        self.at += usize::from(yes);
        yes
    }

    /// The next value without the blanks around it.
    fn value(&mut self) -> Option<&'a str> {
        let start = self.blank();
        match self.peek()? {
            b'{' => self.nested(b'}', true)?,
            b'[' => self.nested(b']', false)?,
            b'"' => self.string()?,
            b't' => self.word("true")?,
            b'f' => self.word("false")?,
            b'n' => self.word("null")?,
            _ => self.number()?,
        }
        Some(&self.text[start..self.at])
    }

    fn nested(&mut self, close: u8, object: bool) -> Option<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        self.at += 1;
        if self.take(close) {
            self.depth -= 1;
            return Some(());
        }
        loop {
            if object {
                self.blank();
                if self.peek()? != b'"' {
                    return None;
                }
                self.string()?;
                if !self.take(b':') {
                    return None;
                }
            }
            self.value()?;
            if self.take(close) {
                self.depth -= 1;
                return Some(());
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => {
                    let kind = *self.text.as_bytes().get(self.at + 1)?;
                    self.at += 2;
                    match kind {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                        b'u' => {
                            let hex = self.text.as_bytes().get(self.at..self.at + 4)?;
                            if !hex.iter().all(u8::is_ascii_hexdigit) {
                                return None;
                            }
                            self.at += 4;
                        }
                        _ => return None,
                    }
                }
                c if c < 0x20 => return None,
                _ => self.at += 1,
            }
        }
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let rest = self.text[self.at..].strip_prefix(word)?;
        if rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            return None;
        }
        self.at += word.len();
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        match self.peek() {
            Some(b) if b.is_ascii_alphanumeric() || b == b'_' => None,
            _ => Some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_checked_and_cut() {
        for good in ["1", " [1,  2] ", "{\"a\":1,\"a\":[ ]}", "\"\\u00e9\"", "-0.5e+3", "null "] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in
            ["", "01", "[1,]", "{a:1}", "\"\t\"", "nul", "1 2", "{\"a\"}", "-", "1.", "tru e"]
        {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert_eq!(elements(" [1,  {\"a\": [2]} , \"x\"]"), ["1", "{\"a\": [2]}", "\"x\""]);
        let found = entries("{\"a\" : 1, \"a\":\"b\"}");
        assert_eq!(found, [("a".into(), "1"), ("a".into(), "\"b\"")]);
        assert!(elements("[]").is_empty() && entries("{ }").is_empty());
    }
}
