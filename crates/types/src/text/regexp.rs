//! Regular expressions as PostgreSQL spells them, compiled.
//!
//! The language is that of its advanced regular expressions: escapes, brackets and flags that mean
//! something else in the library are rewritten for it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use regex::Regex;

use crate::{SqlError, SqlResult, SqlState};

/// The escapes that mean something else in PostgreSQL, and brackets, in which nothing but a class
/// opens another bracket.
///
/// # Errors
/// 2201B for a number that is none of a group or a character, 0A000 for one of a group.
fn translated(pattern: &str) -> SqlResult<String> {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    let (mut inside, mut groups) = (false, 0);
    while let Some(c) = chars.next() {
        match (c, inside) {
            ('\\', _) => match (chars.next(), inside) {
                (Some('x'), _) => {
                    let mut digits = String::new();
                    while let Some(digit) = chars.next_if(char::is_ascii_hexdigit) {
                        digits.push(digit);
                    }
                    out.push_str(&numbered(&digits, inside));
                }
                (Some(digit @ '0'..='9'), _) => {
                    let groups = if inside { None } else { Some(groups) };
                    out.push_str(&octal(digit, &mut chars, groups)?);
                }
                (Some('b'), _) => out.push_str("\\x08"),
                (Some('B'), _) => out.push_str("\\\\"),
                (Some('y'), false) => out.push_str("\\b"),
                (Some('Y'), false) => out.push_str("\\B"),
                (Some('m'), false) => out.push_str("\\b{start}"),
                (Some('M'), false) => out.push_str("\\b{end}"),
                (Some('w'), false) => out.push_str("[\\p{Alphabetic}\\p{Nd}_]"),
                (Some('W'), false) => out.push_str("[^\\p{Alphabetic}\\p{Nd}_]"),
                (Some('w'), true) => out.push_str("\\p{Alphabetic}\\p{Nd}_"),
                (Some('d'), _) => out.push_str(if inside { "0-9" } else { "[0-9]" }),
                (Some('D'), false) => out.push_str("[^0-9]"),
                // What is no letter of ASCII stands for itself.
                (Some(sign), _) if !sign.is_ascii() => out.push(sign),
                (other, _) => {
                    out.push(c);
                    out.extend(other);
                }
            },
            ('[', false) => {
                inside = true;
                out.push(c);
                out.extend(chars.next_if_eq(&'^'));
                // A closing bracket at the start stands for itself.
                if chars.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            ('[', true) if !chars.peek().is_some_and(|n| matches!(n, ':' | '.' | '=')) => {
                out.push_str("\\[");
            }
            ('[', true) => {
                out.push(c);
                copy_class(&mut chars, &mut out);
            }
            ('&' | '~', true) => out.extend(['\\', c]),
            // Blanks mean something in brackets, also where the flag `x` ignores them.
            (' ' | '#', true) => out.extend(['\\', c]),
            ('\t'..='\r', true) => out.push_str(&format!("\\x{:02x}", c as u32)),
            (']', true) => {
                inside = false;
                out.push(c);
            }
            ('(', false) => {
                groups += u32::from(chars.peek() != Some(&'?'));
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}

/// A class, up to its closing bracket.
fn copy_class(chars: &mut Characters<'_>, out: &mut String) {
    for next in chars.by_ref() {
        out.push(next);
        if next == ']' {
            return;
        }
    }
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Why an expression is none, in PostgreSQL's words where it has some.
fn reason(said: &str) -> &str {
    const WORDS: [(&str, &str); 9] = [
        ("repetition operator missing", "quantifier operand invalid"),
        ("unclosed group", "parentheses () not balanced"),
        ("unopened group", "parentheses () not balanced"),
        ("unclosed character class", "brackets [] not balanced"),
        ("invalid repetition count range", "invalid repetition count(s)"),
        ("unclosed counted repetition", "braces {} not balanced"),
        ("incomplete escape sequence", "invalid escape \\ sequence"),
        ("unrecognized escape sequence", "invalid escape \\ sequence"),
        ("invalid character class range", "invalid character range"),
    ];
    let last = said.lines().last().unwrap_or_default();
    let last = last.strip_prefix("error: ").unwrap_or(last);
    WORDS.iter().find(|(ours, _)| last.starts_with(ours)).map_or(last, |(_, theirs)| theirs)
}

/// A character by its octal number, which begins with this digit. `groups`: how many were opened
/// before; `None` in brackets, where no number is of a group.
fn octal(digit: char, chars: &mut Characters<'_>, groups: Option<u32>) -> SqlResult<String> {
    let invalid = |what: &str| {
        let message = format!("invalid regular expression: {what}");
        Err(SqlError::new(SqlState("2201B"), message))
    };
    let digits: String = chars.clone().take_while(char::is_ascii_digit).collect();
    let group = format!("{digit}{digits}").parse::<u32>().ok();
    let is_there = group.is_some_and(|n| groups.is_some_and(|groups| n <= groups));
    // As PostgreSQL tells it: one digit is a group, more are if there are so many.
    if digit != '0' && (digits.is_empty() || is_there) {
        return match groups {
            Some(_) if is_there => {
                Err(SqlError::unsupported("back reference in a regular expression"))
            }
            Some(_) => invalid("invalid backreference number"),
            None => invalid("invalid escape \\ sequence"),
        };
    }
    let Some(mut number) = digit.to_digit(8) else {
        return invalid("invalid escape \\ sequence");
    };
    for _ in 0..2 {
        let next = chars.peek().and_then(|c| c.to_digit(8)).map(|d| number * 8 + d);
        let Some(next) = next.filter(|n| *n <= 0xff) else { break };
        number = next;
        chars.next();
    }
    Ok(format!("\\x{{{number:x}}}"))
}

/// A character by its number, of any number of digits. A number that is none of Unicode's stands
/// for a character that no text has; one beyond 31 bits is refused later.
fn numbered(digits: &str, inside: bool) -> String {
    let number = u32::from_str_radix(digits.trim_start_matches('0'), 16);
    match number {
        Ok(n) if n < 0x7fff_ffff && char::from_u32(n).is_none() => {
            // In brackets the last of all characters, which is reserved for no use.
            String::from(if inside { "\\x{10FFFF}" } else { "[^\\s\\S]" })
        }
        _ => format!("\\x{{{digits}}}"),
    }
}

/// Classes of characters mean all of Unicode, as they do in PostgreSQL under a UTF-8 locale.
fn unicode_classes(pattern: &str) -> String {
    if !pattern.contains("[:") {
        return pattern.to_string();
    }
    pattern
        .replace("[:alpha:]", "\\p{Alphabetic}")
        .replace("[:alnum:]", "\\p{Alphabetic}\\p{Nd}")
        .replace("[:lower:]", "\\p{Lowercase}")
        .replace("[:upper:]", "\\p{Uppercase}")
        .replace("[:space:]", "\\s")
}

/// A brace that opens no count stands for itself.
fn plain_braces(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                out.push(c);
                // What `\p{..}` and `\x{..}` name stays as it is.
                let named = chars.peek().is_some_and(|n| matches!(n, 'p' | 'P' | 'x' | 'u' | 'U'));
                out.extend(chars.next());
                if named && chars.peek() == Some(&'{') {
                    out.extend(chars.next());
                }
            }
            '{' if !chars.peek().is_some_and(char::is_ascii_digit) => out.push_str("\\{"),
            c => out.push(c),
        }
    }
    out
}

thread_local! {
    static COMPILED: RefCell<HashMap<(String, String), Arc<Regex>>> = RefCell::new(HashMap::new());
}

/// A compiled regular expression; recent ones are kept. Flags as PostgreSQL's functions take them:
/// `i` ignores case, `n` and `m` make lines matter, `p` only for what a point is, `w` only for
/// where lines begin and end; `s` and `g` mean nothing here.
///
/// # Errors
/// 2201B for a malformed pattern, 0A000 for back references and look-around.
pub fn regex(pattern: &str, flags: &str) -> SqlResult<Arc<Regex>> {
    let key = (pattern.to_string(), flags.to_string());
    if let Some(found) = COMPILED.with_borrow(|c| c.get(&key).cloned()) {
        return Ok(found);
    }
    let spelled = match flags.contains('q') {
        true => regex::escape(pattern),
        false => unicode_classes(&translated(&plain_braces(pattern))?),
    };
    let mut builder = regex::RegexBuilder::new(&spelled);
    builder.size_limit(4 << 20).dot_matches_new_line(true);
    for flag in flags.chars() {
        match flag {
            'i' => {
                builder.case_insensitive(true);
            }
            'n' | 'm' => {
                builder.multi_line(true).dot_matches_new_line(false);
            }
            'p' => {
                builder.dot_matches_new_line(false);
            }
            'w' => {
                builder.multi_line(true);
            }
            'x' => {
                builder.ignore_whitespace(true);
            }
            'c' | 's' | 'g' | 'q' => {}
            other => {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid regular expression option: \"{other}\""),
                ));
            }
        }
    }
    let compiled = Arc::new(builder.build().map_err(|e| {
        if pattern.contains("(?=") || pattern.contains("(?!") || pattern.contains("(?<") {
            return SqlError::unsupported("look-around in a regular expression");
        }
        let text = format!("invalid regular expression: {}", reason(&e.to_string()));
        SqlError::new(SqlState("2201B"), text)
    })?);
    COMPILED.with_borrow_mut(|c| {
        if c.len() >= 64 {
            c.clear();
        }
        c.insert(key, compiled.clone());
    });
    Ok(compiled)
}
