//! LIKE and regular expressions.

use std::sync::Arc;

pub(crate) use braid_types::regexp::regex;
use braid_types::{Datum, SqlError, SqlResult, SqlState};
use memchr::memmem::Finder;
use regex::Regex;

/// A LIKE pattern taken apart: `%` any run, `_` one character, the escape character (usually
/// backslash) takes the next one literally.
struct LikePattern {
    parts: Vec<Part>,
    ignore_case: bool,
    /// If it has nothing but texts and runs: most patterns.
    pieces: Option<Pieces>,
}

/// Texts with runs between them.
enum Pieces {
    Only(String),
    /// The text begins with the first and ends with the last; the others are found in between.
    Between {
        first: String,
        inner: Vec<Finder<'static>>,
        last: String,
    },
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
        LikePattern { parts, ignore_case, pieces: pieces.map(Pieces::new) }
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
            Some(pieces) => Ok(pieces.make(text)),
            None => matches(&text.chars().collect::<Vec<char>>(), &self.parts),
        }
    }
}

impl Pieces {
    fn new(mut pieces: Vec<String>) -> Pieces {
        let last = pieces.pop().unwrap_or_default();
        if pieces.is_empty() {
            return Pieces::Only(last);
        }
        let first = pieces.remove(0);
        let inner = pieces.iter().filter(|piece| !piece.is_empty());
        let inner = inner.map(|piece| Finder::new(piece).into_owned()).collect();
        Pieces::Between { first, inner, last }
    }

    /// Whether a text is made of the pieces, with any text between them.
    fn make(&self, text: &str) -> bool {
        let (first, inner, last) = match self {
            Pieces::Only(only) => return text == only,
            Pieces::Between { first, inner, last } => (first, inner, last),
        };
        let Some(mut text) = text.as_bytes().strip_prefix(first.as_bytes()) else { return false };
        // Neither begins inside of a character, so bytes tell as much as characters.
        for piece in inner {
            match piece.find(text) {
                Some(at) => text = &text[at + piece.needle().len()..],
                None => return false,
            }
        }
        text.ends_with(last.as_bytes())
    }
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

/// SIMILAR TO as a regular expression over the whole text. Quotes behind the escape character cut
/// it in three, of which SUBSTRING gives the second: the first one matches as little as it can.
///
/// # Errors
/// 2200C for more than two of them.
pub(crate) fn similar_regex(pattern: &str, escape: Option<char>) -> SqlResult<String> {
    let quotes = escape.map_or(0, |sign| cuts(pattern, sign));
    let mut out = String::from(if quotes == 0 { "^(?:" } else { "^(?U:" });
    let (mut cut, mut in_class) = (0, false);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            match chars.next() {
                Some('"') if !in_class => {
                    cut += 1;
                    out.push_str(match cut {
                        1 => ")(",
                        2 => ")(?:",
                        _ => return Err(too_many_cuts()),
                    });
                }
                // What is escaped may be a class of characters, such as `\d`.
                Some(next) => out.extend(['\\', next]),
                None => out.push('\\'),
            }
            continue;
        }
        match c {
            '\\' => out.push_str("\\\\"),
            c if in_class => {
                in_class = c != ']';
                out.push(c);
            }
            '[' => {
                in_class = true;
                out.push(c);
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '.' | '^' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push_str(")$");
    Ok(out)
}

fn too_many_cuts() -> SqlError {
    SqlError::new(
        SqlState("2200C"),
        "SQL regular expression may not contain more than two escape-double-quote separators",
    )
}

/// How many quotes stand behind the escape character.
fn cuts(pattern: &str, escape: char) -> usize {
    let mut chars = pattern.chars();
    let mut count = 0;
    while let Some(c) = chars.next() {
        if c == escape {
            count += usize::from(chars.next() == Some('"'));
        }
    }
    count
}

/// The character that escapes in a pattern; an empty text is none.
///
/// # Errors
/// 22025 for more than one.
pub(crate) fn escape_of(text: &str) -> SqlResult<Option<char>> {
    let mut chars = text.chars();
    let first = chars.next();
    if chars.next().is_none() {
        return Ok(first);
    }
    Err(SqlError::new(SqlState("22025"), "invalid escape string")
        .with_hint("Escape string must be empty or one character."))
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
