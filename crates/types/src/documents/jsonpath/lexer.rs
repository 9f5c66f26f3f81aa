//! Tokens of a path.

use crate::{SqlError, SqlResult, SqlState};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A word, or a key in quotes behind a point.
    Word(String),
    /// In quotes.
    Text(String),
    Number(String),
    /// `$name`
    Variable(String),
    /// Everything else: `$`, `@`, `==`, `**`, ..
    Sign(&'static str),
}

/// A token, and what messages say stands there: PostgreSQL shows what its scanner has matched
/// last, which behind a word is the blank that ends it, or nothing.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) shown: String,
}

/// Longer ones first.
const SIGNS: [&str; 31] = [
    "**", "==", "!=", "<>", "<=", ">=", "&&", "||", "$", "@", "*", ".", "[", "]", "(", ")", "{",
    "}", "?", ",", "<", ">", "!", "+", "-", "/", "%", "=", "&", "|", ":",
];

pub(super) fn tokens(text: &str) -> SqlResult<Vec<Placed>> {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        if is_blank(c) {
            at += 1;
            continue;
        }
        if c == '/' && chars.get(at + 1) == Some(&'*') {
            at = comment_end(&chars, at + 2)?;
            continue;
        }
        let (token, shown, next) = token(&chars, at)?;
        out.push(Placed { token, shown });
        at = next;
    }
    Ok(out)
}

fn comment_end(chars: &[char], from: usize) -> SqlResult<usize> {
    let end = (from..chars.len()).find(|n| chars[*n] == '*' && chars.get(n + 1) == Some(&'/'));
    end.map(|at| at + 2).ok_or_else(|| at_end("unexpected end of comment"))
}

/// The token that begins here, how it is shown, and where it ends.
fn token(chars: &[char], at: usize) -> SqlResult<(Token, String, usize)> {
    let c = chars[at];
    let next = chars.get(at + 1).copied();
    if c == '"' {
        let (text, end) = quoted(chars, at + 1)?;
        return Ok((Token::Text(text), "\"".into(), end));
    }
    if c == '$' && next == Some('"') {
        let (name, end) = quoted(chars, at + 2)?;
        return Ok((Token::Variable(name), "\"".into(), end));
    }
    if c == '$' && next.is_some_and(in_word) {
        let end = (at + 1..).find(|n| !chars.get(*n).copied().is_some_and(in_word));
        let end = end.unwrap_or(chars.len());
        let name: String = chars[at + 1..end].iter().collect();
        let shown = format!("${name}");
        return Ok((Token::Variable(name), shown, end));
    }
    let is_number = c.is_ascii_digit() || c == '.' && next.is_some_and(|c| c.is_ascii_digit());
    if is_number && let Some((text, end)) = number(chars, at)? {
        return Ok((Token::Number(text.clone()), text, end));
    }
    if in_word(c) || c == '\\' {
        let (name, end) = word(chars, at)?;
        let blanks = chars[end..].iter().take_while(|c| is_blank(**c)).collect();
        return Ok((Token::Word(name), blanks, end));
    }
    let here = |sign: &&&str| sign.chars().enumerate().all(|(n, s)| chars.get(at + n) == Some(&s));
    let sign = SIGNS.iter().find(here).ok_or_else(|| near("syntax error", &c.to_string()))?;
    Ok((Token::Sign(sign), (*sign).to_string(), at + sign.len()))
}

pub(super) fn near(what: &str, shown: &str) -> SqlError {
    if shown.is_empty() {
        return at_end(what);
    }
    SqlError::syntax(format!("{what} at or near \"{shown}\" of jsonpath input"))
}

fn at_end(what: &str) -> SqlError {
    SqlError::syntax(format!("{what} at end of jsonpath input"))
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

fn in_word(c: char) -> bool {
    !is_blank(c) && !"?%$.[]{}()|&!=<>@#,*:-+/\\\"".contains(c)
}

/// A number and its end; `None` if it is the beginning of a longer word, which is no number.
fn number(chars: &[char], start: usize) -> SqlResult<Option<(String, usize)>> {
    let digits = |mut at: usize| {
        while chars.get(at).is_some_and(char::is_ascii_digit) {
            at += 1;
        }
        at
    };
    // An integer has no zero in front.
    let mut at = if chars[start] == '0' { start + 1 } else { digits(start) };
    if chars.get(at) == Some(&'.') {
        at = digits(at + 1);
    }
    let mut failed = false;
    if matches!(chars.get(at), Some('e' | 'E')) {
        let signed = matches!(chars.get(at + 1), Some('+' | '-'));
        let end = digits(at + 1 + usize::from(signed));
        match end > at + 1 + usize::from(signed) {
            true => at = end,
            false if signed => (at, failed) = (at + 2, true),
            false => {}
        }
    }
    let shown = |end: usize| chars[start..end].iter().collect::<String>();
    if failed {
        return Err(near("invalid numeric literal", &shown(at)));
    }
    // What follows at once makes junk of it, or a word, if a word is longer than the junk.
    if chars.get(at).copied().is_some_and(in_word) {
        let letters = chars[start..].iter().take_while(|c| in_word(**c)).count();
        return match start + letters > at + 1 {
            true => Ok(None),
            false => Err(near("trailing junk after numeric literal", &shown(at + 1))),
        };
    }
    Ok(Some((shown(at), at)))
}

fn word(chars: &[char], mut at: usize) -> SqlResult<(String, usize)> {
    let mut out = String::new();
    while let Some(&c) = chars.get(at).filter(|c| in_word(**c) || **c == '\\') {
        if c == '\\' {
            at = escaped(chars, at, &mut out)?;
        } else {
            out.push(c);
            at += 1;
        }
    }
    Ok((out, at))
}

/// What stands in quotes that open before `at`, and where it goes on behind them.
fn quoted(chars: &[char], mut at: usize) -> SqlResult<(String, usize)> {
    let mut out = String::new();
    loop {
        match chars.get(at) {
            None => return Err(at_end("unexpected end of quoted string")),
            Some('"') => return Ok((out, at + 1)),
            Some('\\') => at = escaped(chars, at, &mut out)?,
            Some(c) => {
                out.push(*c);
                at += 1;
            }
        }
    }
}

/// Reads the escape that begins here; says where it ends.
fn escaped(chars: &[char], at: usize, out: &mut String) -> SqlResult<usize> {
    let plain = match chars.get(at + 1) {
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('v') => '\u{b}',
        Some('x') => {
            let digits = digits_at(chars, at + 2, 2);
            if digits.len() < 2 {
                let shown = format!("\\x{digits}");
                return Err(near("invalid hex character sequence", &shown));
            }
            out.push(character(&digits)?);
            return Ok(at + 4);
        }
        Some('u') => return unicode(chars, at, out),
        Some(c) => *c,
        None => return Err(near("unexpected end after backslash", "\\")),
    };
    out.push(plain);
    Ok(at + 2)
}

/// Hexadecimal digits, at most so many.
fn digits_at(chars: &[char], from: usize, most: usize) -> String {
    chars[from.min(chars.len())..].iter().take(most).take_while(|c| c.is_ascii_hexdigit()).collect()
}

fn character(digits: &str) -> SqlResult<char> {
    match u32::from_str_radix(digits, 16) {
        Ok(0) => Err(SqlError::new(
            SqlState::UNTRANSLATABLE_CHARACTER,
            "unsupported Unicode escape sequence",
        )
        .with_detail("\\u0000 cannot be converted to text.")),
        code => code
            .ok()
            .and_then(char::from_u32)
            .ok_or_else(|| SqlError::syntax("invalid Unicode code point")),
    }
}

/// `\uXXXX` or `\u{X..}`, as many as follow each other: two halves of a character belong together.
fn unicode(chars: &[char], start: usize, out: &mut String) -> SqlResult<usize> {
    let mut at = start;
    let mut high = None;
    let unpaired = |detail: &str| {
        let text = "invalid input syntax for type jsonpath";
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, text).with_detail(detail)
    };
    let follows = "Unicode low surrogate must follow a high surrogate.";
    while chars.get(at..at + 2) == Some(&['\\', 'u']) {
        let braced = chars.get(at + 2) == Some(&'{');
        let from = at + 2 + usize::from(braced);
        let digits = digits_at(chars, from, if braced { 6 } else { 4 });
        let end = from + digits.len();
        let closed = if braced { chars.get(end) == Some(&'}') } else { digits.len() == 4 };
        if !closed || digits.is_empty() {
            let shown: String = chars[start..end].iter().collect();
            return Err(near("invalid unicode sequence", &shown));
        }
        at = end + usize::from(braced);
        match (u32::from_str_radix(&digits, 16), high.take()) {
            (Ok(0xD800..0xDC00), Some(_)) => {
                return Err(unpaired("Unicode high surrogate must not follow a high surrogate."));
            }
            (Ok(code @ 0xD800..0xDC00), None) => high = Some(code),
            (Ok(low @ 0xDC00..0xE000), Some(high)) => {
                let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                out.extend(char::from_u32(code));
            }
            (Ok(0xDC00..0xE000), None) | (_, Some(_)) => return Err(unpaired(follows)),
            (_, None) => out.push(character(&digits)?),
        }
    }
    if high.is_some() {
        return Err(unpaired(follows));
    }
    Ok(at)
}
