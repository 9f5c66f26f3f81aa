//! Select lists and FROM of GoogleSQL.
//!
//! ```text
//!   SELECT AS VALUE a                       SELECT a
//!   SELECT * EXCEPT (a) REPLACE (b AS c)    SELECT "star except"(*, 'except', a, 'replace', b, c)
//!   UNNEST(a) AS e WITH OFFSET AS o         LATERAL (SELECT e, o - 1 FROM UNNEST(a)
//!                                             WITH ORDINALITY AS e(e, o)) AS e(e, o)
//!   UNNEST([STRUCT(1 AS a), (2)]) AS e      (VALUES (1), (2)) AS e(a)
//! ```

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::calls::{Fields, in_brackets, is, is_token, struct_fields};
use crate::cursor::{at_commas, closing, token_is};
use crate::script::{word, wrap};

type Tokens = Vec<TokenWithSpan>;

/// The call that stands for a star with exceptions.
pub const STAR_EXCEPT: &str = "star except";

/// `SELECT AS VALUE a`: of its only column each row is a value anyway.
pub(super) fn as_value(tokens: &mut Tokens, at: usize) {
    let at = at + usize::from(is(tokens, at + 1, "distinct") || is(tokens, at + 1, "all"));
    if is(tokens, at + 1, "as") && is(tokens, at + 2, "value") {
        let clause_ends = tokens.get(at + 3).is_none_or(|t| {
            matches!(t.token, Token::Comma | Token::RParen) || token_is(&t.token, "from")
        });
        if !clause_ends {
            tokens.drain(at + 1..at + 3);
        }
    }
}

/// `EXCEPT (a, b)` behind a star, and where it ends; no query stands in it.
fn excepted(tokens: &[TokenWithSpan], at: usize) -> Option<(Tokens, usize)> {
    if !is(tokens, at, "except") || !is_token(tokens, at + 1, &Token::LParen) {
        return None;
    }
    let end = closing(tokens, at + 1)?;
    let names = at_commas(&tokens[at + 2..end]);
    let query = ["select", "values", "with", "table"];
    let name = |part: &Tokens| {
        matches!(part.as_slice(), [TokenWithSpan { token: Token::Word(w), .. }]
            if w.quote_style.is_some() || !query.contains(&w.value.to_ascii_lowercase().as_str()))
    };
    if !names.iter().all(name) {
        return None;
    }
    let mut out = vec![wrap(Token::Comma), wrap(Token::SingleQuotedString("except".into()))];
    for part in names {
        out.push(wrap(Token::Comma));
        out.extend(part);
    }
    Some((out, end + 1))
}

/// `REPLACE (a AS b)` behind a star, and where it ends.
fn replaced(tokens: &[TokenWithSpan], at: usize) -> Option<(Tokens, usize)> {
    if !is(tokens, at, "replace") || !is_token(tokens, at + 1, &Token::LParen) {
        return None;
    }
    let end = closing(tokens, at + 1)?;
    let mut out = vec![wrap(Token::Comma), wrap(Token::SingleQuotedString("replace".into()))];
    for part in at_commas(&tokens[at + 2..end]) {
        let named = part.len() > 2 && is(&part, part.len() - 2, "as");
        let (value, name) = part.split_at(if named { part.len() - 2 } else { return None });
        out.push(wrap(Token::Comma));
        out.extend_from_slice(value);
        out.push(wrap(Token::Comma));
        out.push(name.last()?.clone());
    }
    Some((out, end + 1))
}

/// `RENAME (a AS b)` behind a star, which pipes make, and where it ends.
fn renamed(tokens: &[TokenWithSpan], at: usize) -> Option<(Tokens, usize)> {
    if !is(tokens, at, "rename") || !is_token(tokens, at + 1, &Token::LParen) {
        return None;
    }
    let end = closing(tokens, at + 1)?;
    let mut out = vec![wrap(Token::Comma), wrap(Token::SingleQuotedString("rename".into()))];
    for part in at_commas(&tokens[at + 2..end]) {
        let [name, _, other] = part.as_slice() else { return None };
        for token in [name, other] {
            out.extend([wrap(Token::Comma), token.clone()]);
        }
    }
    Some((out, end + 1))
}

/// `* EXCEPT (..)`, `t.* REPLACE (..)` of a select list, the star being at a place.
pub(super) fn star(tokens: &mut Tokens, at: usize) {
    let mut start = at;
    while start > 1 && is_token(tokens, start - 1, &Token::Period) {
        start -= 2;
    }
    let begins = start > 0
        && (is_token(tokens, start - 1, &Token::Comma)
            || ["select", "distinct", "all", "struct"].iter().any(|w| is(tokens, start - 1, w)));
    if !begins {
        return;
    }
    let mut list = Tokens::new();
    let mut end = at + 1;
    for read in [excepted, replaced, renamed] {
        if let Some((part, next)) = read(tokens, end) {
            list.extend(part);
            end = next;
        }
    }
    if list.is_empty() {
        return;
    }
    let mut call = vec![wrap(Token::make_word(STAR_EXCEPT, Some('"'))), wrap(Token::LParen)];
    call.extend_from_slice(&tokens[start..=at]);
    call.extend(list);
    call.push(wrap(Token::RParen));
    tokens.splice(start..end, call);
}

/// A name behind AS, or without it.
fn alias(tokens: &[TokenWithSpan], at: usize) -> Option<(TokenWithSpan, usize)> {
    const CLAUSES: [&str; 22] = [
        "where",
        "join",
        "inner",
        "left",
        "right",
        "full",
        "cross",
        "on",
        "using",
        "group",
        "order",
        "limit",
        "having",
        "union",
        "intersect",
        "except",
        "with",
        "window",
        "natural",
        "offset",
        "for",
        "then",
    ];
    let explicit = usize::from(is(tokens, at, "as"));
    let name = tokens.get(at + explicit)?;
    let Token::Word(w) = &name.token else { return None };
    let clause =
        w.quote_style.is_none() && CLAUSES.contains(&w.value.to_ascii_lowercase().as_str());
    (explicit == 1 || !clause).then(|| (name.clone(), at + explicit + 1))
}

/// The rows of an array of structs that is written out, with the names of its columns.
struct Listed {
    names: Tokens,
    rows: Vec<Tokens>,
}

/// `[STRUCT(1 AS a, 'x' AS b), (2, 'y')]`, `ARRAY<STRUCT<a INT64, b STRING>>[(1, 'x')]`.
fn listed(inner: &[TokenWithSpan]) -> Option<Listed> {
    let typed = is(inner, 0, "array") && is_token(inner, 1, &Token::Lt) && is(inner, 2, "struct");
    let (fields, open): (Fields, usize) = match typed {
        true => struct_fields(inner, 3).map(|(fields, end)| {
            let more = usize::from(is_token(inner, end, &Token::Gt));
            (fields, end + more + 1)
        })?,
        false => (Fields::new(), usize::from(is(inner, 0, "array"))),
    };
    let bracket = |at: usize, token: Token| inner.get(at).is_some_and(|t| t.token == token);
    if !bracket(open, Token::LBracket) || !bracket(inner.len() - 1, Token::RBracket) {
        return None;
    }
    let mut names: Tokens = fields.iter().filter_map(|(name, _)| name.clone()).collect();
    let mut rows = Vec::new();
    for (n, item) in at_commas(&inner[open + 1..inner.len() - 1]).into_iter().enumerate() {
        let start = usize::from(is(&item, 0, "struct"));
        let whole = is_token(&item, start, &Token::LParen)
            && closing(&item, start) == Some(item.len() - 1)
            && (start == 1 || typed || n > 0);
        if !whole {
            return None;
        }
        let mut row = Tokens::new();
        for (at, mut value) in at_commas(&item[start + 1..item.len() - 1]).into_iter().enumerate() {
            if value.len() > 2 && is(&value, value.len() - 2, "as") {
                let name = value.pop();
                value.pop();
                names.extend(name.filter(|_| n == 0 && !typed));
            }
            if at > 0 {
                row.push(wrap(Token::Comma));
            }
            match fields.get(at) {
                Some((_, ty)) => {
                    row.push(word("cast"));
                    row.extend(in_brackets([value, vec![word("as")], ty.clone()].concat()));
                }
                None => row.extend(value),
            }
        }
        rows.push(row);
    }
    let width = rows.first().map(|row| at_commas(row).len());
    (width == Some(names.len())).then_some(Listed { names, rows })
}

/// Rows of structs in FROM.
fn values(tokens: &mut Tokens, at: usize, close: usize) -> bool {
    let Some(Listed { mut names, mut rows }) = listed(&tokens[at + 2..close]) else { return false };
    let (table, mut end) = alias(tokens, close + 1)
        .unwrap_or_else(|| (wrap(Token::make_word("unnest", Some('"'))), close + 1));
    if is(tokens, end, "with") && is(tokens, end + 1, "offset") {
        let (offset, behind) = alias(tokens, end + 2)
            .unwrap_or_else(|| (wrap(Token::make_word("offset", Some('"'))), end + 2));
        names.push(offset);
        for (n, row) in rows.iter_mut().enumerate() {
            row.extend([wrap(Token::Comma), wrap(Token::Number(n.to_string(), false))]);
        }
        end = behind;
    }
    let list = |parts: Vec<Tokens>| parts.join(&[wrap(Token::Comma)][..]);
    let rows = list(rows.into_iter().map(in_brackets).collect());
    let names = list(names.into_iter().map(|name| vec![name]).collect());
    let from = in_brackets([vec![word("values")], rows].concat());
    let named = [vec![word("as"), table], in_brackets(names)].concat();
    tokens.splice(at..end, [from, named].concat());
    true
}

/// `UNNEST(a) [AS] e WITH OFFSET [AS] o`, and UNNEST of structs that are written out.
pub(super) fn unnest(tokens: &mut Tokens, at: usize) {
    let in_from = at > 0
        && (is_token(tokens, at - 1, &Token::Comma)
            || ["from", "join"].iter().any(|w| is(tokens, at - 1, w)));
    if !in_from || !is_token(tokens, at + 1, &Token::LParen) {
        return;
    }
    let Some(close) = closing(tokens, at + 1) else { return };
    if close > at + 2 && values(tokens, at, close) {
        return;
    }
    let (name, behind) = match alias(tokens, close + 1) {
        Some((name, behind)) => (name, behind),
        None => (wrap(Token::make_word("?column?", Some('"'))), close + 1),
    };
    if !is(tokens, behind, "with") || !is(tokens, behind + 1, "offset") {
        return;
    }
    let (offset, end) = alias(tokens, behind + 2)
        .unwrap_or_else(|| (wrap(Token::make_word("offset", Some('"'))), behind + 2));
    let both = || {
        let names = [name.clone(), wrap(Token::Comma), offset.clone()];
        [vec![name.clone(), wrap(Token::LParen)], names.to_vec(), vec![wrap(Token::RParen)]]
            .concat()
    };
    let call = tokens[at..=close].to_vec();
    let new = [
        vec![
            word("lateral"),
            wrap(Token::LParen),
            word("select"),
            name.clone(),
            wrap(Token::Period),
        ],
        vec![name.clone(), wrap(Token::Comma), offset.clone(), wrap(Token::Minus)],
        vec![wrap(Token::Number("1".into(), false)), word("from")],
        call,
        vec![word("with"), word("ordinality"), word("as")],
        both(),
        vec![wrap(Token::RParen), word("as")],
        both(),
    ];
    tokens.splice(at..end, new.concat());
}
