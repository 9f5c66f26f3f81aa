//! Operators before ANY and ALL that sqlparser refuses there.
//!
//! ```text
//!   a OPERATOR(pg_catalog.=) ANY (b)      a = ANY (b)
//!   a @> ANY (b)                          a @> "\0any"(b), which [`settle`] makes `a @> ANY (b)`
//! ```
//! sqlparser takes comparisons and matches of texts only; what pg_dump and psql ask for names that
//! match a pattern says OPERATOR, so that no operator of a search path is meant.

use std::ops::ControlFlow;

use braid_walk::WalkMut;
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::wrap;

/// What begins the names of the calls that stand for ANY, SOME and ALL.
const MARKS: [&str; 3] = ["\0any", "\0some", "\0all"];

/// The tokens of the operators that sqlparser takes before ANY.
fn known(sign: &str) -> Option<Token> {
    Some(match sign {
        "=" => Token::Eq,
        "<>" | "!=" => Token::Neq,
        "<" => Token::Lt,
        "<=" => Token::LtEq,
        ">" => Token::Gt,
        ">=" => Token::GtEq,
        "~" => Token::Tilde,
        "~*" => Token::TildeAsterisk,
        "!~" => Token::ExclamationMarkTilde,
        "!~*" => Token::ExclamationMarkTildeAsterisk,
        "~~" => Token::DoubleTilde,
        "~~*" => Token::DoubleTildeAsterisk,
        "!~~" => Token::ExclamationMarkDoubleTilde,
        "!~~*" => Token::ExclamationMarkDoubleTildeAsterisk,
        _ => return None,
    })
}

/// Where the `OPERATOR(..)` begins that ends before a place.
fn operator_before(tokens: &[TokenWithSpan], end: usize) -> Option<usize> {
    let open = tokens[..end].iter().rposition(|t| t.token == Token::LParen)?;
    let start = open.checked_sub(1)?;
    (token_is(&tokens[start].token, "operator") && open + 1 < end - 1).then_some(start)
}

/// Whether a token is an operator's sign.
fn is_sign(token: &Token) -> bool {
    let text = token.to_string();
    !text.is_empty() && text.chars().all(|c| "+-*/<>=~!@#%^&|`?".contains(c))
}

/// Writes what sqlparser reads.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at + 1 < tokens.len() {
        let found = ["any", "some", "all"].iter().position(|w| token_is(&tokens[at].token, w));
        let opens = tokens[at + 1].token == Token::LParen;
        if let Some(which) = found.filter(|_| opens) {
            at = one(tokens, at, MARKS[which]);
        }
        at += 1;
    }
}

/// Rewrites one; gives the place where its word is now.
fn one(tokens: &mut Vec<TokenWithSpan>, at: usize, mark: &str) -> usize {
    let sign = tokens[at - 1].token.clone();
    if sign == Token::RParen
        && let Some(start) = operator_before(tokens, at)
    {
        let Some(plain) = known(&tokens[at - 2].token.to_string()) else {
            stand_in(tokens, at, mark);
            return at;
        };
        tokens[start].token = plain;
        tokens.drain(start + 1..at);
        return start + 1;
    }
    if is_sign(&sign) && known(&sign.to_string()).is_none() {
        stand_in(tokens, at, mark);
    }
    at
}

/// Makes the word a call, whose argument may be a query.
fn stand_in(tokens: &mut Vec<TokenWithSpan>, at: usize, mark: &str) {
    tokens[at].token = Token::make_word(mark, Some('"'));
    let queries = ["select", "with", "values"];
    if tokens.get(at + 2).is_some_and(|t| queries.iter().any(|word| token_is(&t.token, word)))
        && let Some(close) = closing(tokens, at + 1)
    {
        tokens.insert(close, wrap(Token::RParen));
        tokens.insert(at + 1, wrap(Token::LParen));
    }
}

/// Whether tokens have a mark that [`settle`] takes away.
pub(crate) fn is_marked(tokens: &[TokenWithSpan]) -> bool {
    tokens.iter().any(|t| matches!(&t.token, Token::Word(w) if MARKS.contains(&w.value.as_str())))
}

/// Makes each marked call what it stands for.
pub(crate) fn settle(parsed: &mut impl WalkMut) {
    let _: ControlFlow<()> = braid_walk::expressions_mut(parsed, |expr| {
        if let Expr::BinaryOp { left, op, right } = expr
            && let Some((which, inner)) = marked(right)
        {
            let (left, compare_op, right) = (left.clone(), op.clone(), Box::new(inner));
            *expr = match which {
                2 => Expr::AllOp { left, compare_op, right },
                _ => Expr::AnyOp { left, compare_op, right, is_some: which == 1 },
            };
        }
        ControlFlow::Continue(())
    });
}

/// Which of the marks a call has, and its argument.
fn marked(expr: &Expr) -> Option<(usize, Expr)> {
    let Expr::Function(call) = expr else { return None };
    let [ast::ObjectNamePart::Identifier(name)] = call.name.0.as_slice() else { return None };
    let which = MARKS.iter().position(|mark| *mark == name.value)?;
    match &call.args {
        FunctionArguments::Subquery(query) => Some((which, Expr::Subquery(query.clone()))),
        FunctionArguments::List(list) => match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))] => Some((which, inner.clone())),
            _ => None,
        },
        FunctionArguments::None => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_and_all_follow_every_operator() {
        for (sql, want) in [
            ("a operator(pg_catalog.=) any (array[1])", "a = ANY(ARRAY[1])"),
            ("a operator(!~) all (b) and c", "a !~ ALL(b) AND c"),
            ("a @> any (b) or c", "a @> ANY(b) OR c"),
            ("a && some (b)", "a && SOME(b)"),
            ("a || b @> all (select c)", "a || b @> ALL(SELECT c)"),
            ("a @> any (array(select c))", "a @> ANY(array(SELECT c))"),
            ("a operator(pg_catalog.<@) any ('{}')", "a OPERATOR(pg_catalog.<@) ANY('{}')"),
            ("a = any (b)", "a = ANY(b)"),
        ] {
            assert_eq!(crate::parse_expr(sql).unwrap().to_string(), want, "{sql}");
        }
        let set = crate::parse_query("select 1 union all (select 2)").unwrap();
        assert_eq!(set.to_string(), "SELECT 1 UNION ALL (SELECT 2)");
    }
}
