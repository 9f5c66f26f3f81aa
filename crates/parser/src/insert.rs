//! What INSERT may say that sqlparser does not read.
//!
//! ```text
//!   INSERT INTO t (..) OVERRIDING SYSTEM VALUE VALUES (..)
//!                      \______ lifted ______/
//!   .. ON CONFLICT (lower(email)) WHERE active DO UPDATE SET ..
//!                  \________ lifted _________/
//!   .. SELECT 1, 2 ON CONFLICT ..            .. SELECT 1, 2 WHERE true ON CONFLICT ..
//! ```
//! (ON would be a name for the last of the values.)
//!
//! An INSERT under WITH or in MERGE has no such place beside it: there both travel as names that
//! nobody can type, behind its columns and in its ON CONFLICT.
//!
//! ```text
//!   WITH .. INSERT INTO t (.., "\0overriding system") VALUES (..)
//!   .. ON CONFLICT ("\0lower(email)", "\0where active") DO UPDATE SET ..
//! ```

use braid_types::{SqlError, SqlResult};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::{parse_all, parse_expr, word, wrap};

/// What begins a name that stands for a clause.
const MARK: char = '\0';
const OVERRIDING: &str = "\0overriding ";
const WHERE: &str = "\0where ";

/// OVERRIDING of INSERT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overriding {
    /// SYSTEM VALUE: given values win over GENERATED ALWAYS.
    System,
    /// USER VALUE: given values of identity columns are ignored.
    User,
}

/// Which unique index ON CONFLICT means: by columns and expressions, and what its rows satisfy.
#[derive(Clone, Debug, PartialEq)]
pub struct Inference {
    /// The index's key, in any order.
    pub elements: Vec<ast::Expr>,
    /// `WHERE`: implies the predicate of a partial index.
    pub predicate: Option<ast::Expr>,
}

/// Clauses of INSERT that stand outside of its parsed form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InsertClauses {
    /// OVERRIDING.
    pub overriding: Option<Overriding>,
    /// ON CONFLICT with more than the names of columns.
    pub inference: Option<Inference>,
}

/// Cuts these clauses out of a statement.
pub(crate) fn lift(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<InsertClauses> {
    end_select_lists(tokens);
    let inserts = tokens.first().is_some_and(|t| token_is(&t.token, "insert"));
    if !inserts {
        mark(tokens)?;
        return Ok(InsertClauses::default());
    }
    let at = overriding(tokens);
    let overriding = at.map(|at| {
        let system = token_is(&tokens[at + 1].token, "system");
        tokens.drain(at..at + 3);
        if system { Overriding::System } else { Overriding::User }
    });
    Ok(InsertClauses { overriding, inference: lift_inference(tokens)? })
}

/// Makes names of these clauses, for an INSERT inside of another statement.
pub(crate) fn mark(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    mark_overriding(tokens);
    mark_inference(tokens)
}

/// Ends the select list of a query without clauses that ON CONFLICT follows.
fn end_select_lists(tokens: &mut Vec<TokenWithSpan>) {
    const CLAUSES: [&str; 13] = [
        "from", "where", "group", "having", "window", "order", "limit", "offset", "fetch", "for",
        "values", "default", "into",
    ];
    let mut at = 0;
    while let Some(found) = tokens[at..]
        .windows(2)
        .position(|w| token_is(&w[0].token, "on") && token_is(&w[1].token, "conflict"))
    {
        at += found;
        let mut depth = 0;
        let before = tokens[..at].iter().rev().find(|t| {
            match t.token {
                Token::RParen => depth += 1,
                Token::LParen => depth -= 1,
                _ => {}
            }
            let is = |word: &&str| token_is(&t.token, word);
            depth < 0 || (depth == 0 && (is(&"select") || CLAUSES.iter().any(is)))
        });
        if before.is_some_and(|t| token_is(&t.token, "select")) {
            tokens.splice(at..at, [word("where"), word("true")]);
            at += 2;
        }
        at += 2;
    }
}

/// Where OVERRIDING begins.
fn overriding(tokens: &[TokenWithSpan]) -> Option<usize> {
    tokens.windows(3).position(|w| {
        token_is(&w[0].token, "overriding")
            && (token_is(&w[1].token, "system") || token_is(&w[1].token, "user"))
            && token_is(&w[2].token, "value")
    })
}

/// Makes a column of each OVERRIDING.
fn mark_overriding(tokens: &mut Vec<TokenWithSpan>) {
    while let Some(at) = overriding(tokens) {
        let what = tokens[at + 1].token.to_string().to_lowercase();
        let mark = wrap(Token::make_word(&format!("{OVERRIDING}{what}"), Some('"')));
        tokens.drain(at..at + 3);
        match at > 0 && tokens[at - 1].token == Token::RParen {
            true => drop(tokens.splice(at - 1..at - 1, [wrap(Token::Comma), mark])),
            false => drop(tokens.splice(at..at, [wrap(Token::LParen), mark, wrap(Token::RParen)])),
        }
    }
}

/// Makes names of what ON CONFLICT has more than names.
fn mark_inference(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    let mut from = 0;
    while let Some(found) = target(&tokens[from..])? {
        let (open, close) = (from + found.open, from + found.close);
        from = close;
        if found.plain {
            continue;
        }
        let text = |tokens: &[TokenWithSpan]| {
            let words: Vec<String> = tokens.iter().map(|t| t.token.to_string()).collect();
            words.join(" ")
        };
        let elements = parse_all(tokens[open + 1..close].to_vec(), |p| {
            p.parse_comma_separated(|p| p.parse_expr())
        })?;
        let mut names: Vec<String> = elements.iter().map(|e| format!("{MARK}{e}")).collect();
        let mut end = close + 1;
        if let Some(length) = found.predicate {
            names.push(format!("{WHERE}{}", text(&tokens[end + 1..end + length])));
            end += length;
        }
        let mut new = Vec::with_capacity(names.len() * 2);
        for name in names {
            new.extend([wrap(Token::Comma), wrap(Token::make_word(&name, Some('"')))]);
        }
        new[0] = wrap(Token::LParen);
        new.push(wrap(Token::RParen));
        tokens.splice(open..end, new);
    }
    Ok(())
}

/// Takes the clauses off that an INSERT under WITH or in MERGE has as names.
///
/// # Errors
/// 42601.
pub fn take_clauses(insert: &mut ast::Insert) -> SqlResult<InsertClauses> {
    let mut clauses = InsertClauses::default();
    let marked = |name: &ast::ObjectName| match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => {
            name.value.strip_prefix(OVERRIDING).map(str::len)
        }
        _ => None,
    };
    if let Some(length) = insert.columns.last().and_then(marked) {
        insert.columns.pop();
        let system = length == "system".len();
        clauses.overriding = Some(if system { Overriding::System } else { Overriding::User });
    }
    let Some(ast::OnInsert::OnConflict(c)) = &mut insert.on else { return Ok(clauses) };
    let Some(ast::ConflictTarget::Columns(names)) = &c.conflict_target else { return Ok(clauses) };
    let mut inference = Inference { elements: Vec::new(), predicate: None };
    for name in names {
        if let Some(text) = name.value.strip_prefix(WHERE) {
            inference.predicate = Some(parse_expr(text)?);
        } else if let Some(text) = name.value.strip_prefix(MARK) {
            inference.elements.push(parse_expr(text)?);
        } else {
            return Ok(clauses);
        }
    }
    clauses.inference = Some(inference);
    c.conflict_target = None;
    Ok(clauses)
}

/// The list behind ON CONFLICT.
struct Target {
    open: usize,
    close: usize,
    /// Whether it is a list of names without WHERE: sqlparser reads those.
    plain: bool,
    /// How long the WHERE behind it is.
    predicate: Option<usize>,
}

fn target(tokens: &[TokenWithSpan]) -> SqlResult<Option<Target>> {
    let Some(at) = tokens.windows(3).position(|w| {
        token_is(&w[0].token, "on")
            && token_is(&w[1].token, "conflict")
            && w[2].token == Token::LParen
    }) else {
        return Ok(None);
    };
    let open = at + 2;
    let Some(close) = closing(tokens, open) else { return Ok(None) };
    let names = tokens[open + 1..close].iter().enumerate().all(|(n, t)| match &t.token {
        Token::Word(_) => n % 2 == 0,
        Token::Comma => n % 2 == 1,
        _ => false,
    });
    let mut predicate = None;
    if tokens.get(close + 1).is_some_and(|t| token_is(&t.token, "where")) {
        let action = |w: &[TokenWithSpan]| {
            token_is(&w[0].token, "do")
                && (token_is(&w[1].token, "nothing") || token_is(&w[1].token, "update"))
        };
        let found = tokens[close + 1..].windows(2).position(action);
        predicate = Some(found.ok_or_else(|| SqlError::syntax("ON CONFLICT needs DO"))?);
    }
    Ok(Some(Target { open, close, plain: names && predicate.is_none(), predicate }))
}

/// The target of ON CONFLICT, unless it is a list of names: sqlparser reads those.
fn lift_inference(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<Option<Inference>> {
    let Some(Target { open, close, plain: false, predicate: length }) = target(tokens)? else {
        return Ok(None);
    };
    let inside = tokens[open + 1..close].to_vec();
    let elements = parse_all(inside, |p| p.parse_comma_separated(|p| p.parse_expr()))?;
    let mut end = close + 1;
    let mut predicate = None;
    if let Some(length) = length {
        let text = tokens[end + 1..end + length].to_vec();
        predicate = Some(parse_all(text, |p| p.parse_expr())?);
        end += length;
    }
    tokens.drain(open..end);
    Ok(Some(Inference { elements, predicate }))
}
