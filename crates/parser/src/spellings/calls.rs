//! What GoogleSQL writes as calls, and is read as PostgreSQL's.
//!
//! ```text
//!   COUNTIF(a)                              count((a) or null)
//!   LOGICAL_AND(a), LOGICAL_OR(a)           bool_and(a), bool_or(a)
//!   APPROX_COUNT_DISTINCT(a)                count(distinct a)
//!   STRING_AGG(a)                           string_agg(a, ',')
//!   ARRAY_AGG(a IGNORE NULLS)               array_agg(a) filter (where (a) is not null)
//!   ARRAY_AGG(a ORDER BY b LIMIT n)         (array_agg(a order by b))[1:n]
//!   ANY_VALUE(a HAVING MAX b)               (array_agg(a order by b desc) filter (..))[1]
//!   EXTRACT(DATE FROM a)                    cast(a as date)
//!   INTERVAL a + 1 DAY                      interval (a + 1) day
//!   SAFE.SUBSTR(..)                         safe."substr"(..)
//!   r'a\b', b'ab'                           'a\b', '\x6162'::bytea
//!   STRUCT<INT64, s STRING>(1, 'a')         row(cast(1 as INT64), cast('a' as STRING))
//! ```

use braid_types::{SqlError, SqlResult};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::{word, wrap};

type Tokens = Vec<TokenWithSpan>;

pub(super) fn is(tokens: &[TokenWithSpan], at: usize, text: &str) -> bool {
    tokens.get(at).is_some_and(|t| token_is(&t.token, text))
}

pub(super) fn is_token(tokens: &[TokenWithSpan], at: usize, token: &Token) -> bool {
    tokens.get(at).is_some_and(|t| t.token == *token)
}

/// Places of tokens outside of all brackets that fit.
fn outside(tokens: &[TokenWithSpan], fits: impl Fn(usize, &Token) -> bool) -> Vec<usize> {
    let mut depth = 0i32;
    let mut out = Vec::new();
    for (at, t) in tokens.iter().enumerate() {
        match t.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth -= 1,
            _ if depth == 0 && fits(at, &t.token) => out.push(at),
            _ => {}
        }
    }
    out
}

fn words(text: &str) -> Tokens {
    text.split(' ')
        .map(|part| match part {
            "(" => wrap(Token::LParen),
            ")" => wrap(Token::RParen),
            "[" => wrap(Token::LBracket),
            "]" => wrap(Token::RBracket),
            "1" => wrap(Token::Number("1".into(), false)),
            ":" => wrap(Token::Colon),
            other => word(other),
        })
        .collect()
}

pub(super) fn in_brackets(inner: Tokens) -> Tokens {
    [vec![wrap(Token::LParen)], inner, vec![wrap(Token::RParen)]].concat()
}

/// Rewrites what begins with a word.
pub(super) fn rewrite(tokens: &mut Tokens, at: usize, word: &str) -> SqlResult<()> {
    match word {
        "countif"
        | "logical_and"
        | "logical_or"
        | "approx_count_distinct"
        | "string_agg"
        | "array_agg"
        | "any_value" => return aggregate(tokens, at),
        "extract" => extracted_date(tokens, at),
        "interval" => counted_interval(tokens, at),
        "safe" => safe(tokens, at),
        "r" => raw_text(tokens, at),
        _ => {}
    }
    Ok(())
}

/// Rewrites the call of an aggregate whose name is at a place.
fn aggregate(tokens: &mut Tokens, at: usize) -> SqlResult<()> {
    let called = is_token(tokens, at + 1, &Token::LParen)
        && !(at > 0 && is_token(tokens, at - 1, &Token::Period))
        && !is(tokens, at.saturating_sub(1), "function");
    let Some(end) = closing(tokens, at + 1).filter(|_| called) else { return Ok(()) };
    let Token::Word(name) = &tokens[at].token else { return Ok(()) };
    let name = name.value.to_ascii_lowercase();
    let inner: Tokens = tokens[at + 2..end].to_vec();
    let commas = outside(&inner, |_, t| *t == Token::Comma).len();
    if inner.is_empty() {
        return Ok(());
    }
    let call = |name: &str, inner: Tokens| [vec![word(name)], in_brackets(inner)].concat();
    let new = match name.as_str() {
        _ if commas > 0 && !matches!(name.as_str(), "string_agg" | "array_agg") => return Ok(()),
        "countif" => call("count", [in_brackets(inner), words("or null")].concat()),
        "logical_and" => call("bool_and", inner),
        "logical_or" => call("bool_or", inner),
        "approx_count_distinct" => call("count", [words("distinct"), inner].concat()),
        "string_agg" if commas == 0 => {
            let order = outside(&inner, |_, t| token_is(t, "order") || token_is(t, "limit"));
            let (value, rest) = inner.split_at(order.first().copied().unwrap_or(inner.len()));
            let comma = [wrap(Token::Comma), wrap(Token::SingleQuotedString(",".into()))];
            call("string_agg", [value, &comma, rest].concat())
        }
        "array_agg" => match listed(&inner) {
            Some(list) => list,
            None => return Ok(()),
        },
        "any_value" => match extreme(&inner)? {
            Some(value) => value,
            None => return Ok(()),
        },
        _ => return Ok(()),
    };
    tokens.splice(at..=end, new);
    Ok(())
}

/// `a IGNORE NULLS ORDER BY b LIMIT n` of ARRAY_AGG; `None` of what PostgreSQL has itself.
fn listed(inner: &[TokenWithSpan]) -> Option<Tokens> {
    let first = |text: &str| outside(inner, |_, t| token_is(t, text)).first().copied();
    let nulls = ["ignore", "respect"].into_iter().find_map(|word| {
        first(word).filter(|at| is(inner, at + 1, "nulls")).map(|at| (at, word == "ignore"))
    });
    let limit = first("limit");
    if nulls.is_none() && limit.is_none() {
        return None;
    }
    let order = first("order");
    let end = limit.unwrap_or(inner.len());
    let value_end = [nulls.map(|n| n.0), order, Some(end)].into_iter().flatten().min()?;
    let mut out = vec![word("array_agg"), wrap(Token::LParen)];
    out.extend_from_slice(&inner[..value_end]);
    if let Some(order) = order {
        out.extend_from_slice(inner.get(order..end)?);
    }
    out.push(wrap(Token::RParen));
    if nulls.is_some_and(|(_, ignore)| ignore) {
        let plain = usize::from(is(inner, 0, "distinct"));
        out.extend(words("filter ( where"));
        out.extend(in_brackets(inner[plain..value_end].to_vec()));
        out.extend(words("is not null )"));
    }
    if let Some(limit) = limit {
        out = in_brackets(out);
        out.extend(words("[ 1 :"));
        out.extend_from_slice(&inner[limit + 1..]);
        out.push(wrap(Token::RBracket));
    }
    Some(out)
}

/// `a HAVING MAX b` of ANY_VALUE: `a` of the row with the greatest `b`.
fn extreme(inner: &[TokenWithSpan]) -> SqlResult<Option<Tokens>> {
    let Some(at) = outside(inner, |_, t| token_is(t, "having")).first().copied() else {
        return Ok(None);
    };
    let order = match (is(inner, at + 1, "max"), is(inner, at + 1, "min")) {
        (true, _) => "desc",
        (_, true) => "asc",
        _ => return Err(SqlError::syntax("syntax error: MAX or MIN stands behind HAVING")),
    };
    let (value, by) = (inner[..at].to_vec(), inner[at + 2..].to_vec());
    let mut out = words("( array_agg (");
    out.extend(value);
    out.extend(words("order by"));
    out.extend(by.clone());
    out.extend(words(order));
    out.extend(words(") filter ( where"));
    out.extend(in_brackets(by));
    out.extend(words("is not null ) ) [ 1 ]"));
    Ok(Some(out))
}

/// `INTERVAL n + 1 DAY`: what is counted stands in parentheses.
fn counted_interval(tokens: &mut Tokens, at: usize) {
    const UNITS: [&str; 10] = [
        "microsecond",
        "millisecond",
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "quarter",
        "year",
    ];
    const STRANGE: [&str; 14] = [
        "as", "from", "where", "and", "or", "is", "not", "in", "desc", "asc", "then", "else",
        "when", "end",
    ];
    let begins = |t: &Token| match t {
        Token::Word(w) => w.quote_style.is_some() || !STRANGE.contains(&&*w.value.to_lowercase()),
        Token::Number(..) | Token::Minus | Token::LParen | Token::Placeholder(_) => true,
        _ => false,
    };
    if !tokens.get(at + 1).is_some_and(|t| begins(&t.token)) {
        return;
    }
    let mut depth = 0i32;
    for n in at + 1..tokens.len() {
        let token = &tokens[n].token;
        match token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket if depth == 0 => return,
            Token::RParen | Token::RBracket => depth -= 1,
            Token::Comma | Token::SemiColon if depth == 0 => return,
            Token::SingleQuotedString(_) if n == at + 1 => return,
            Token::Word(_) if depth == 0 && UNITS.iter().any(|unit| token_is(token, unit)) => {
                let alone = closing(tokens, at + 1) == Some(n - 1);
                if n > at + 2 && !(alone && is_token(tokens, at + 1, &Token::LParen)) {
                    tokens.insert(n, wrap(Token::RParen));
                    tokens.insert(at + 1, wrap(Token::LParen));
                }
                return;
            }
            Token::Word(_) if STRANGE.iter().any(|word| token_is(token, word)) => return,
            _ => {}
        }
    }
}

/// `EXTRACT(DATE FROM a)`
fn extracted_date(tokens: &mut Tokens, at: usize) {
    let date = is_token(tokens, at + 1, &Token::LParen)
        && is(tokens, at + 2, "date")
        && is(tokens, at + 3, "from");
    let Some(end) = closing(tokens, at + 1).filter(|_| date) else { return };
    tokens.splice(end..end, words("as date"));
    tokens.drain(at + 2..at + 4);
    tokens[at] = word("cast");
}

/// `SAFE.f(..)`: as a quoted name the function is read as any other.
fn safe(tokens: &mut Tokens, at: usize) {
    let first = at == 0 || !is_token(tokens, at - 1, &Token::Period);
    if !first
        || !is_token(tokens, at + 1, &Token::Period)
        || !is_token(tokens, at + 3, &Token::LParen)
    {
        return;
    }
    if let Some(Token::Word(name)) = tokens.get(at + 2).map(|t| &t.token)
        && name.quote_style.is_none()
    {
        let name = name.value.to_ascii_lowercase();
        tokens[at + 2].token = Token::make_word(&name, Some('"'));
    }
}

/// `r'a\b'`: the text as it is.
fn raw_text(tokens: &mut Tokens, at: usize) {
    let touches =
        |t: &TokenWithSpan| t.span.start != t.span.end && t.span.start == tokens[at].span.end;
    let text = tokens.get(at + 1).filter(|t| touches(t)).map(|t| &t.token);
    if let Some(Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_)) = text {
        tokens.remove(at);
    }
}

/// `b'ab'`, which has a letter: no bits of PostgreSQL, but bytes.
pub(super) fn bytes(tokens: &mut Tokens, at: usize) -> SqlResult<()> {
    let Token::SingleQuotedByteStringLiteral(text) = &tokens[at].token else { return Ok(()) };
    if !text.contains(|c: char| c.is_ascii_alphabetic()) {
        return Ok(());
    }
    let hex: String = unescaped(text)?.iter().map(|b| format!("{b:02x}")).collect();
    let text = wrap(Token::SingleQuotedString(format!("\\x{hex}")));
    tokens.splice(at..=at, [text, wrap(Token::DoubleColon), word("bytea")]);
    Ok(())
}

/// The bytes of a literal with escapes.
fn unescaped(text: &str) -> SqlResult<Vec<u8>> {
    let bad = || SqlError::syntax(format!("syntax error: illegal escape in b'{text}'"));
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.extend(c.to_string().bytes());
            continue;
        }
        out.push(match rest.next().ok_or_else(bad)? {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            c @ ('\\' | '?' | '"' | '\'' | '`') => c as u8,
            'x' | 'X' => {
                let digits: String = rest.by_ref().take(2).collect();
                u8::from_str_radix(&digits, 16).map_err(|_| bad())?
            }
            c @ '0'..='3' => {
                let digits: String = [c].into_iter().chain(rest.by_ref().take(2)).collect();
                u8::from_str_radix(&digits, 8).map_err(|_| bad())?
            }
            _ => return Err(bad()),
        });
    }
    Ok(out)
}

/// `STRUCT<INT64, s STRING>(1, 'a')`, a row of these types.
pub(super) fn typed_struct(tokens: &mut Tokens, at: usize) -> SqlResult<()> {
    let Some((types, open)) = struct_types(tokens, at + 1) else { return Ok(()) };
    let Some(end) = closing(tokens, open) else { return Ok(()) };
    let inner = &tokens[open + 1..end];
    let mut values = Vec::new();
    let mut start = 0;
    for comma in outside(inner, |_, t| *t == Token::Comma) {
        values.push(inner[start..comma].to_vec());
        start = comma + 1;
    }
    values.push(inner[start..].to_vec());
    if values.len() != types.len() {
        let text = format!("STRUCT has {} fields, but {} values", types.len(), values.len());
        return Err(SqlError::syntax(format!("syntax error: {text}")));
    }
    let mut row = Tokens::new();
    for (n, (value, ty)) in values.into_iter().zip(types).enumerate() {
        if n > 0 {
            row.push(wrap(Token::Comma));
        }
        let cast = [value, vec![word("as")], ty].concat();
        row.push(word("cast"));
        row.extend(in_brackets(cast));
    }
    tokens.splice(at..=end, [vec![word("row")], in_brackets(row)].concat());
    Ok(())
}

/// The types of `<a INT64, STRING(9)>` that begin here, and where the values begin.
fn struct_types(tokens: &[TokenWithSpan], at: usize) -> Option<(Vec<Tokens>, usize)> {
    let (fields, end) = struct_fields(tokens, at)?;
    let values = is_token(tokens, end + 1, &Token::LParen) && is_token(tokens, end, &Token::Gt);
    values.then(|| (fields.into_iter().map(|(_, ty)| ty).collect(), end + 1))
}

/// Names, if they have some, and types of fields.
pub(super) type Fields = Vec<(Option<TokenWithSpan>, Tokens)>;

/// The fields of `<a INT64, STRING(9)>` that begin here, and where the sign stands that ends them.
pub(super) fn struct_fields(tokens: &[TokenWithSpan], at: usize) -> Option<(Fields, usize)> {
    if !is_token(tokens, at, &Token::Lt) {
        return None;
    }
    let mut types = vec![Tokens::new()];
    let mut depth = 0;
    let mut end = at + 1;
    loop {
        let token = &tokens.get(end)?.token;
        match token {
            // Of an array of such.
            Token::Gt | Token::ShiftRight if depth == 0 => break,
            Token::Comma if depth == 0 => types.push(Tokens::new()),
            Token::Word(_)
            | Token::Number(..)
            | Token::LParen
            | Token::RParen
            | Token::Comma
            | Token::LBracket
            | Token::RBracket => {
                depth += i32::from(*token == Token::LParen) - i32::from(*token == Token::RParen);
                types.last_mut()?.push(tokens[end].clone());
            }
            _ => return None,
        }
        end += 1;
    }
    let mut fields = Fields::new();
    for mut ty in types {
        // A name stands in front of the type.
        let named = matches!(ty.get(1).map(|t| &t.token), Some(Token::Word(_)))
            && !is(&ty, 0, "timestamp")
            && !is(&ty, 0, "double");
        let name = named.then(|| ty.remove(0));
        if ty.is_empty() {
            return None;
        }
        fields.push((name, ty));
    }
    Some((fields, end))
}
