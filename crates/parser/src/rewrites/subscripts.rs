//! Subscripts on the left side: sqlparser knows names there.
//!
//! ```text
//!   UPDATE t SET a[1] = x, (b[2:3], c) = (..)       UPDATE t SET a."\0[1]" = x, ..
//!   INSERT INTO t (a[1], a[2]) VALUES ..            INSERT INTO t (a."\0[1]", a."\0[2]") ..
//! ```
//! So a subscript is a step of the way into a column, as a field is; [`subscript`] tells which.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::wrap;

const MARK: char = '\0';

/// The text of a step that is a subscript, with its brackets.
pub fn subscript(step: &str) -> Option<&str> {
    step.strip_prefix(MARK)
}

/// Rewrites the targets of UPDATE, of ON CONFLICT DO UPDATE, and of INSERT.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|t| t.token == Token::LBracket) {
        return;
    }
    let (mut updates, mut at) = (false, 0);
    while at < tokens.len() {
        let word = |text: &str| token_is(&tokens[at].token, text);
        if word("update") {
            updates = true;
        } else if word("set") && updates {
            updates = false;
            at = in_set(tokens, at + 1);
            continue;
        } else if word("insert") {
            in_insert(tokens, at + 1);
        }
        at += 1;
    }
}

fn is_token(tokens: &[TokenWithSpan], at: usize, token: &Token) -> bool {
    tokens.get(at).is_some_and(|t| t.token == *token)
}

/// The targets of a SET list; gives the place behind it.
fn in_set(tokens: &mut Vec<TokenWithSpan>, mut at: usize) -> usize {
    loop {
        if is_token(tokens, at, &Token::LParen) {
            names(tokens, at + 1);
        } else {
            one(tokens, at);
        }
        let mut depth = 0usize;
        loop {
            match tokens.get(at).map(|t| &t.token) {
                None => return at,
                Some(Token::LParen | Token::LBracket) => depth += 1,
                Some(Token::RParen | Token::RBracket) if depth == 0 => return at,
                Some(Token::RParen | Token::RBracket) => depth -= 1,
                Some(Token::Comma) if depth == 0 => break,
                Some(t)
                    if depth == 0
                        && ["from", "where", "returning"].iter().any(|w| token_is(t, w)) =>
                {
                    return at;
                }
                _ => {}
            }
            at += 1;
        }
        at += 1;
    }
}

/// The list of columns of an INSERT, behind its table.
fn in_insert(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let stops = |t: &Token| ["values", "select", "with", "default"].iter().any(|w| token_is(t, w));
    let open = tokens[at..].iter().position(|t| t.token == Token::LParen || stops(&t.token));
    let Some(open) = open.map(|n| at + n).filter(|n| is_token(tokens, *n, &Token::LParen)) else {
        return;
    };
    let first = tokens.get(open + 1).map(|t| &t.token);
    if first.is_some_and(stops) || is_token(tokens, open + 1, &Token::LParen) {
        return;
    }
    names(tokens, open + 1);
}

/// Names with subscripts, separated by commas, up to a closing parenthesis.
fn names(tokens: &mut Vec<TokenWithSpan>, mut at: usize) {
    while at < tokens.len() && tokens[at].token != Token::RParen {
        one(tokens, at);
        while at < tokens.len() && tokens[at].token != Token::RParen {
            at += 1;
            if is_token(tokens, at - 1, &Token::Comma) {
                break;
            }
        }
    }
}

/// A name with subscripts and fields behind it.
fn one(tokens: &mut Vec<TokenWithSpan>, mut at: usize) {
    while matches!(tokens.get(at).map(|t| &t.token), Some(Token::Word(_) | Token::Period)) {
        at += 1;
    }
    if !is_token(tokens, at, &Token::LBracket) {
        return;
    }
    let mut end = at;
    while is_token(tokens, end, &Token::LBracket)
        && let Some(close) = bracket(tokens, end)
    {
        end = close + 1;
    }
    if end == at {
        return;
    }
    let inside = tokens[at..end].iter().map(|t| t.token.to_string());
    let text = format!("{MARK}{}", inside.collect::<Vec<_>>().join(" "));
    let step = Token::make_word(&text, Some('"'));
    tokens.splice(at..end, [wrap(Token::Period), wrap(step)]);
    if is_token(tokens, at + 2, &Token::Period) {
        one(tokens, at + 2);
    }
}

/// The place of the bracket that closes the one at a place.
fn bracket(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        match &tokens.get(at)?.token {
            Token::RBracket => return Some(at),
            Token::LBracket => at = bracket(tokens, at)?,
            Token::LParen => at = closing(tokens, at)?,
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::{Kind, parse_script};

    fn shown(sql: &str) -> String {
        match &*parse_script(sql).unwrap()[0].kind {
            Kind::Sql(s) => s.to_string().replace('\0', "~"),
            Kind::Insert(s, _) => s.to_string().replace('\0', "~"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn subscripts_are_steps() {
        assert_eq!(
            shown("update t set a[1] = b[2], c = d[3], (e[4], f) = (1, 2) where a[1] = 2"),
            "UPDATE t SET a.\"~[ 1 ]\" = b[2], c = d[3], (e.\"~[ 4 ]\", f) = (1, 2) WHERE a[1] = 2"
        );
        assert_eq!(
            shown(
                "insert into t (a[1][2], b) values (x[1], 2) on conflict (b) do update \
                 set a[f(1)] = 3"
            ),
            "INSERT INTO t (a.\"~[ 1 ] [ 2 ]\", b) VALUES (x[1], 2) ON CONFLICT(b) DO UPDATE SET \
             a.\"~[ f ( 1 ) ]\" = 3"
        );
    }
}
