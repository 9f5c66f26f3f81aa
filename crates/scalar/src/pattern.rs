//! LIKE and regular expressions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use braid_types::{Datum, SqlError, SqlResult, SqlState};
use regex::Regex;

/// A LIKE pattern taken apart: `%` any run, `_` one character, the escape character (usually
/// backslash) takes the next one literally.
struct LikePattern {
    parts: Vec<Part>,
    ignore_case: bool,
    /// The texts between the runs, if it has nothing but texts and runs: most patterns.
    pieces: Option<Vec<String>>,
}

impl LikePattern {
    fn new(pattern: &str, escape: Option<char>, ignore_case: bool) -> LikePattern {
        let mut parts = Vec::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            if Some(c) == escape {
                match chars.next() {
                    Some(next) => push_literal(&mut parts, next, ignore_case),
                    None => parts.push(Part::Unfinished),
                }
            } else {
                match c {
                    '%' => parts.push(Part::Run),
                    '_' => parts.push(Part::One),
                    c => push_literal(&mut parts, c, ignore_case),
                }
            }
        }
        let mut pieces = Some(vec![String::new()]);
        for part in &parts {
            match (part, &mut pieces) {
                (Part::Literal(c), Some(pieces)) => {
                    if let Some(last) = pieces.last_mut() {
                        last.push(*c);
                    }
                }
                (Part::Run, Some(pieces)) => pieces.push(String::new()),
                _ => pieces = None,
            }
        }
        LikePattern { parts, ignore_case, pieces }
    }

    fn matches(&self, text: &str) -> SqlResult<bool> {
        let lowered;
        let text = match self.ignore_case {
            true => {
                lowered = text.to_lowercase();
                &lowered
            }
            false => text,
        };
        match &self.pieces {
            Some(pieces) => Ok(between_runs(text, pieces)),
            None => matches(&text.chars().collect::<Vec<char>>(), &self.parts),
        }
    }
}

/// Whether a text is these pieces with any text between them.
fn between_runs(text: &str, pieces: &[String]) -> bool {
    let (first, rest) = match pieces {
        [] => return text.is_empty(),
        [only] => return text == only,
        [first, rest @ ..] => (first, rest),
    };
    let Some(mut text) = text.strip_prefix(first.as_str()) else { return false };
    let (last, inner) = rest.split_last().expect("at least two pieces");
    for piece in inner {
        match text.find(piece.as_str()) {
            Some(at) => text = &text[at + piece.len()..],
            None => return false,
        }
    }
    text.ends_with(last.as_str())
}

/// Whether text matches a LIKE pattern.
///
/// # Errors
/// 22025 when the text reaches an escape character at the end of the pattern.
pub(crate) fn like(
    text: &str,
    pattern: &str,
    escape: Option<char>,
    ignore_case: bool,
) -> SqlResult<bool> {
    LikePattern::new(pattern, escape, ignore_case).matches(text)
}

/// A pattern that is matched with many texts.
pub struct TextPattern(Kind);

enum Kind {
    Like(LikePattern),
    Regex(Arc<Regex>),
    Start(String),
}

impl TextPattern {
    /// The pattern of an operator of two texts (`~~` is LIKE), and whether the operator denies the
    /// match. `None` for other operators, and for patterns that are malformed.
    pub fn of_operator(name: &str, pattern: &str) -> Option<(TextPattern, bool)> {
        let like = |any_case| Some(Kind::Like(LikePattern::new(pattern, Some('\\'), any_case)));
        let regex = |flags| regex(pattern, flags).ok().map(Kind::Regex);
        let kind = match name {
            "~~" | "!~~" => like(false),
            "~~*" | "!~~*" => like(true),
            "~" | "!~" => regex(""),
            "~*" | "!~*" => regex("i"),
            "^@" | "starts_with" => Some(Kind::Start(pattern.to_string())),
            _ => None,
        };
        kind.map(|kind| (TextPattern(kind), name.starts_with('!')))
    }

    /// Whether a text matches.
    ///
    /// # Errors
    /// 22025 when the text reaches an escape character at the end of the pattern.
    pub fn matches(&self, text: &str) -> SqlResult<bool> {
        match &self.0 {
            Kind::Like(pattern) => pattern.matches(text),
            Kind::Regex(regex) => Ok(regex.is_match(text)),
            Kind::Start(start) => Ok(text.starts_with(start)),
        }
    }
}

enum Part {
    Run,
    One,
    Literal(char),
    /// An escape character at the end: an error if the text reaches it.
    Unfinished,
}

fn push_literal(parts: &mut Vec<Part>, c: char, ignore_case: bool) {
    if ignore_case {
        parts.extend(c.to_lowercase().map(Part::Literal));
    } else {
        parts.push(Part::Literal(c));
    }
}

/// Greedy matching that comes back only to the last run: linear in practice.
fn matches(text: &[char], parts: &[Part]) -> SqlResult<bool> {
    let (mut t, mut p) = (0, 0);
    let mut last_run: Option<(usize, usize)> = None;
    while t < text.len() {
        match parts.get(p) {
            Some(Part::Run) => {
                last_run = Some((p, t));
                p += 1;
                continue;
            }
            Some(Part::Unfinished) => {
                return Err(SqlError::new(
                    SqlState("22025"),
                    "LIKE pattern must not end with escape character",
                ));
            }
            Some(Part::One) => {
                t += 1;
                p += 1;
                continue;
            }
            Some(Part::Literal(c)) if *c == text[t] => {
                t += 1;
                p += 1;
                continue;
            }
            _ => {}
        }
        match last_run {
            Some((run, start)) => {
                last_run = Some((run, start + 1));
                t = start + 1;
                p = run + 1;
            }
            None => return Ok(false),
        }
    }
    Ok(parts[p..].iter().all(|part| matches!(part, Part::Run)))
}

/// SIMILAR TO as a regular expression over the whole text.
pub(crate) fn similar_regex(pattern: &str, escape: Option<char>) -> String {
    let mut out = String::from("^(?:");
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            if let Some(next) = chars.next() {
                out.push_str(&regex::escape(&next.to_string()));
            }
            continue;
        }
        match c {
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '.' | '^' | '$' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push_str(")$");
    out
}

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

/// 22023 if the third argument asks for all matches.
pub(crate) fn no_global(a: &[Datum], function: &str) -> SqlResult<()> {
    if a.get(2).is_some_and(|f| crate::functions::text_of(f).contains('g')) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("{function}() does not support the \"global\" option"),
        ));
    }
    Ok(())
}

/// All matches from left to right; behind one that is not empty an empty one may stand.
pub(crate) fn all_matches<'t>(
    regex: &'t Regex,
    text: &'t str,
) -> impl Iterator<Item = regex::Captures<'t>> {
    matches_from(regex, text, 0)
}

/// As [`all_matches`], from a byte of the text on; what is before it still stands before it.
pub(crate) fn matches_from<'t>(
    regex: &'t Regex,
    text: &'t str,
    first: usize,
) -> impl Iterator<Item = regex::Captures<'t>> {
    let mut from = Some(first);
    std::iter::from_fn(move || {
        let found = regex.captures_at(text, from?)?;
        let whole = found.get(0)?;
        from = match whole.is_empty() {
            // On to the next character, if there is one.
            true => text[whole.end()..].chars().next().map(|c| whole.end() + c.len_utf8()),
            false => Some(whole.end()),
        };
        Some(found)
    })
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
pub(crate) fn regex(pattern: &str, flags: &str) -> SqlResult<Arc<Regex>> {
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
        let reason = e.to_string();
        let last = reason.lines().last().unwrap_or_default();
        SqlError::new(SqlState("2201B"), format!("invalid regular expression: {last}"))
    })?);
    COMPILED.with_borrow_mut(|c| {
        if c.len() >= 64 {
            c.clear();
        }
        c.insert(key, compiled.clone());
    });
    Ok(compiled)
}
