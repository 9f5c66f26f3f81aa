//! Tokens of a path.

use braid_types::{SqlError, SqlResult};

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

/// Longer ones first.
const SIGNS: [&str; 30] = [
    "**", "==", "!=", "<>", "<=", ">=", "&&", "||", "$", "@", "*", ".", "[", "]", "(", ")", "{",
    "}", "?", ",", "<", ">", "!", "+", "-", "/", "%", "=", "&", "|",
];

pub(super) fn tokens(text: &str) -> SqlResult<Vec<Token>> {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        if c.is_whitespace() {
            at += 1;
        } else if c == '/' && chars.get(at + 1) == Some(&'*') {
            let end =
                (at + 2..chars.len()).find(|n| chars[*n] == '*' && chars.get(n + 1) == Some(&'/'));
            at = end.ok_or_else(|| {
                SqlError::syntax("unexpected end of comment at end of jsonpath input")
            })? + 2;
        } else if c == '"' {
            let (text, next) = quoted(&chars, at + 1)?;
            out.push(Token::Text(text));
            at = next;
        } else if c == '$' && chars.get(at + 1) == Some(&'"') {
            let (name, next) = quoted(&chars, at + 2)?;
            out.push(Token::Variable(name));
            at = next;
        } else if c == '$' && chars.get(at + 1).is_some_and(|c| in_word(*c)) {
            let (name, next) = word(&chars, at + 1)?;
            out.push(Token::Variable(name));
            at = next;
        } else if c.is_ascii_digit()
            || c == '.' && chars.get(at + 1).is_some_and(char::is_ascii_digit)
        {
            let next = number_end(&chars, at);
            if let Some(c) = chars.get(next).filter(|c| in_word(**c)) {
                return Err(SqlError::syntax(format!(
                    "trailing junk after numeric literal at or near \"{}{c}\" of jsonpath input",
                    chars[at..next].iter().collect::<String>()
                )));
            }
            out.push(Token::Number(chars[at..next].iter().collect()));
            at = next;
        } else if in_word(c) {
            let (name, next) = word(&chars, at)?;
            out.push(Token::Word(name));
            at = next;
        } else {
            let here =
                |sign: &&&str| sign.chars().enumerate().all(|(n, s)| chars.get(at + n) == Some(&s));
            let sign = SIGNS.iter().find(here).ok_or_else(|| near(&c.to_string()))?;
            out.push(Token::Sign(sign));
            at += sign.len();
        }
    }
    Ok(out)
}

pub(super) fn near(what: &str) -> SqlError {
    SqlError::syntax(format!("syntax error at or near \"{what}\" of jsonpath input"))
}

fn in_word(c: char) -> bool {
    c == '\\' || !c.is_whitespace() && !"?%$.[]{}()|&!=<>@#,*:-+/\"".contains(c)
}

fn number_end(chars: &[char], start: usize) -> usize {
    let digits = |mut at: usize| {
        while chars.get(at).is_some_and(char::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut at = digits(start);
    if chars.get(at) == Some(&'.') && chars.get(at + 1).is_some_and(char::is_ascii_digit) {
        at = digits(at + 1);
    }
    if matches!(chars.get(at), Some('e' | 'E')) {
        let signed = at + 1 + usize::from(matches!(chars.get(at + 1), Some('+' | '-')));
        if chars.get(signed).is_some_and(char::is_ascii_digit) {
            at = digits(signed);
        }
    }
    at
}

fn word(chars: &[char], mut at: usize) -> SqlResult<(String, usize)> {
    let mut out = String::new();
    while let Some(&c) = chars.get(at).filter(|c| in_word(**c)) {
        if c == '\\' {
            let (c, next) = escaped(chars, at + 1)?;
            out.push(c);
            at = next;
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
            None => {
                return Err(SqlError::syntax(
                    "unterminated quoted string at end of jsonpath input",
                ));
            }
            Some('"') => return Ok((out, at + 1)),
            Some('\\') => {
                let (c, next) = escaped(chars, at + 1)?;
                out.push(c);
                at = next;
            }
            Some(c) => {
                out.push(*c);
                at += 1;
            }
        }
    }
}

/// The character that is meant behind a backslash.
fn escaped(chars: &[char], at: usize) -> SqlResult<(char, usize)> {
    let plain = |c| Ok((c, at + 1));
    match chars.get(at) {
        Some('b') => plain('\u{8}'),
        Some('f') => plain('\u{c}'),
        Some('n') => plain('\n'),
        Some('r') => plain('\r'),
        Some('t') => plain('\t'),
        Some('v') => plain('\u{b}'),
        Some('x') => {
            let code = hexadecimal(chars, at + 1, at + 3);
            let c = code.and_then(char::from_u32);
            Ok((
                c.ok_or_else(|| SqlError::syntax("invalid hexadecimal character sequence"))?,
                at + 3,
            ))
        }
        Some('u') => unicode(chars, at + 1),
        Some(c) => plain(*c),
        None => Err(SqlError::syntax("unexpected end after backslash at end of jsonpath input")),
    }
}

fn hexadecimal(chars: &[char], from: usize, to: usize) -> Option<u32> {
    let digits: String = chars.get(from..to)?.iter().collect();
    u32::from_str_radix(&digits, 16).ok()
}

/// `XXXX`, twice with surrogates, or `{X..}`.
fn unicode(chars: &[char], at: usize) -> SqlResult<(char, usize)> {
    let bad = || SqlError::syntax("invalid Unicode escape sequence");
    let (code, next) = if chars.get(at) == Some(&'{') {
        let end = (at..chars.len().min(at + 8)).find(|n| chars[*n] == '}').ok_or_else(bad)?;
        (hexadecimal(chars, at + 1, end).ok_or_else(bad)?, end + 1)
    } else {
        let high = hexadecimal(chars, at, at + 4).ok_or_else(bad)?;
        let second =
            (0xD800..0xDC00).contains(&high) && chars.get(at + 4..at + 6) == Some(&['\\', 'u']);
        match second.then(|| hexadecimal(chars, at + 6, at + 10)).flatten() {
            Some(low @ 0xDC00..0xE000) => {
                (0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), at + 10)
            }
            _ => (high, at + 4),
        }
    };
    Ok((char::from_u32(code).filter(|c| *c != '\0').ok_or_else(bad)?, next))
}
