//! What INSERT may say that sqlparser does not read.
//!
//! ```text
//!   INSERT INTO t (..) OVERRIDING SYSTEM VALUE VALUES (..)
//!                      \______ lifted ______/
//!   .. ON CONFLICT (lower(email)) WHERE active DO UPDATE SET ..
//!                  \________ lifted _________/
//! ```

use braid_types::{SqlError, SqlResult};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::parse_all;

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
    let inserts = tokens.first().is_some_and(|t| token_is(&t.token, "insert"));
    let overriding = lift_overriding(tokens);
    let inference = if inserts { lift_inference(tokens)? } else { None };
    Ok(InsertClauses { overriding, inference })
}

fn lift_overriding(tokens: &mut Vec<TokenWithSpan>) -> Option<Overriding> {
    let at = tokens.windows(3).position(|w| {
        token_is(&w[0].token, "overriding")
            && (token_is(&w[1].token, "system") || token_is(&w[1].token, "user"))
            && token_is(&w[2].token, "value")
    })?;
    let system = token_is(&tokens[at + 1].token, "system");
    tokens.drain(at..at + 3);
    Some(if system { Overriding::System } else { Overriding::User })
}

/// The target of ON CONFLICT, unless it is a list of names: sqlparser reads those.
fn lift_inference(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<Option<Inference>> {
    let Some(at) = tokens.windows(3).position(|w| {
        token_is(&w[0].token, "on")
            && token_is(&w[1].token, "conflict")
            && w[2].token == Token::LParen
    }) else {
        return Ok(None);
    };
    let open = at + 2;
    let Some(close) = closing(tokens, open) else { return Ok(None) };
    let filtered = tokens.get(close + 1).is_some_and(|t| token_is(&t.token, "where"));
    let inside = &tokens[open + 1..close];
    let names = inside.iter().enumerate().all(|(n, t)| match &t.token {
        Token::Word(_) => n % 2 == 0,
        Token::Comma => n % 2 == 1,
        _ => false,
    });
    if names && !filtered {
        return Ok(None);
    }
    let elements = parse_all(inside.to_vec(), |p| p.parse_comma_separated(|p| p.parse_expr()))?;
    let mut end = close + 1;
    let mut predicate = None;
    if filtered {
        let action = |w: &[TokenWithSpan]| {
            token_is(&w[0].token, "do")
                && (token_is(&w[1].token, "nothing") || token_is(&w[1].token, "update"))
        };
        let found = tokens[end..].windows(2).position(action);
        let found = found.ok_or_else(|| SqlError::syntax("ON CONFLICT needs DO"))?;
        let text = tokens[end + 1..end + found].to_vec();
        predicate = Some(parse_all(text, |p| p.parse_expr())?);
        end += found;
    }
    tokens.drain(open..end);
    Ok(Some(Inference { elements, predicate }))
}
