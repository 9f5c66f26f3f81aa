//! Tables as PostgreSQL lets them be named where sqlparser reads something else.
//!
//! ```text
//!   FROM t *                         FROM t
//!   .. UNION TABLE t                 .. UNION SELECT * FROM t
//!   INSERT INTO s TABLE t            INSERT INTO s SELECT * FROM t
//!   1 + (VALUES (2))                 1 + (SELECT * FROM (VALUES (2)) AS v)
//! ```

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::{word, wrap};

/// Words that a name of a table, or several, follow.
const BEFORE: [&str; 4] = ["from", "join", "update", "using"];

/// Writes such tables in a form that is read.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at < tokens.len() {
        let is = |n: usize, text: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, text));
        let named = |n: usize| matches!(tokens.get(n).map(|t| &t.token), Some(Token::Word(_)));
        let behind = |n: usize| BEFORE.iter().any(|w| is(n, w));
        if behind(at - 1)
            && let Some(end) = end_of_name(tokens, at)
            && has(tokens, end, &Token::Mul)
            && !begins_value(tokens, end + 1)
            // Not in FOR UPDATE RETURNING *.
            && (!is(at - 1, "update") || is(end + 1, "set"))
        {
            tokens.remove(end);
        } else if is(at, "table") && named(at + 1) && begins_operand(tokens, at) {
            tokens.splice(at..=at, select_all());
        } else if is(at, "values")
            && is_value(tokens, at)
            && let Some(close) = closing(tokens, at - 1)
        {
            let name = wrap(Token::make_word("values", Some('"')));
            tokens.splice(close..close, [wrap(Token::RParen), word("as"), name]);
            tokens.splice(at..at, select_all().into_iter().chain([wrap(Token::LParen)]));
            at += 4;
        }
        at += 1;
    }
}

fn select_all() -> [TokenWithSpan; 3] {
    [word("select"), wrap(Token::Mul), word("from")]
}

fn has(tokens: &[TokenWithSpan], at: usize, token: &Token) -> bool {
    tokens.get(at).is_some_and(|t| t.token == *token)
}

/// Whether a value may begin here: then the star is an operator, as in `IS DISTINCT FROM a * b`.
fn begins_value(tokens: &[TokenWithSpan], at: usize) -> bool {
    const CLAUSES: [&str; 7] = ["where", "group", "order", "limit", "join", "union", "set"];
    match tokens.get(at).map(|t| &t.token) {
        None | Some(Token::RParen | Token::Comma | Token::SemiColon) => false,
        Some(token) => !CLAUSES.iter().any(|clause| token_is(token, clause)),
    }
}

/// Where a name with its schemas ends that begins here.
fn end_of_name(tokens: &[TokenWithSpan], mut at: usize) -> Option<usize> {
    loop {
        let Token::Word(_) = &tokens.get(at)?.token else { return None };
        at += 1;
        if !has(tokens, at, &Token::Period) {
            return Some(at);
        }
        at += 1;
    }
}

/// Whether VALUES in parentheses stands where sqlparser reads an expression.
fn is_value(tokens: &[TokenWithSpan], at: usize) -> bool {
    const WORDS: [&str; 14] = [
        "any",
        "some",
        "select",
        "then",
        "else",
        "when",
        "and",
        "or",
        "not",
        "where",
        "returning",
        "between",
        "case",
        "having",
    ];
    let rows = has(tokens, at + 1, &Token::LParen) && has(tokens, at - 1, &Token::LParen);
    let Some(before) = rows.then(|| at.checked_sub(2)).flatten() else { return false };
    let is = |n: usize, text: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, text));
    let joined = |n: usize| ["union", "intersect", "except"].iter().any(|w| is(n, w));
    match &tokens[before].token {
        Token::Word(_) if is(before, "all") => before > 0 && !joined(before - 1),
        Token::Word(_) => WORDS.iter().any(|w| token_is(&tokens[before].token, w)),
        Token::Comma
        | Token::Eq
        | Token::Lt
        | Token::Gt
        | Token::LtEq
        | Token::GtEq
        | Token::Neq
        | Token::Plus
        | Token::Minus
        | Token::Mul
        | Token::Div
        | Token::StringConcat => true,
        _ => false,
    }
}

/// Whether an operand of a set operation begins here, or a query in parentheses.
fn begins_operand(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is = |n: usize, text: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, text));
    let operator = |n: usize| ["union", "intersect", "except"].iter().any(|w| is(n, w));
    let quantified = ["all", "distinct"].iter().any(|w| is(at - 1, w)) && at > 1;
    let parenthesis = has(tokens, at - 1, &Token::LParen);
    operator(at - 1) || (quantified && operator(at - 2)) || parenthesis || is_main(tokens, at)
}

/// Whether TABLE stands behind the name or the columns of INSERT, or the last query of WITH.
fn is_main(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is = |n: usize, text: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, text));
    if has(tokens, at - 1, &Token::RParen) {
        return is(0, "with") || is(0, "insert") || is(0, "explain");
    }
    let into = tokens[..at].windows(2).rposition(|w| {
        let inserts =
            ["insert", "replace", "ignore"].iter().any(|word| token_is(&w[0].token, word));
        inserts && token_is(&w[1].token, "into")
    });
    into.is_some_and(|before| end_of_name(tokens, before + 2) == Some(at))
}

#[cfg(test)]
mod tests {
    #[test]
    fn tables_are_read_in_all_forms() {
        let shown = |sql: &str| crate::parse_query(sql).unwrap().to_string();
        assert_eq!(
            shown("select * from s.t * where a * b = 1"),
            "SELECT * FROM s.t WHERE a * b = 1"
        );
        assert_eq!(
            shown("select 1 union all table t union (table s.u)"),
            "SELECT 1 UNION ALL SELECT * FROM t UNION (SELECT * FROM s.u)"
        );
        assert_eq!(
            shown("select a is distinct from b * c, extract(day from b * c)"),
            "SELECT a IS DISTINCT FROM b * c, EXTRACT(DAY FROM b * c)"
        );
        assert_eq!(
            shown("select 1 + (values (2)), (values (3))"),
            "SELECT 1 + (SELECT * FROM (VALUES (2)) AS \"values\"), \
             (SELECT * FROM (VALUES (3)) AS \"values\")"
        );
        assert_eq!(
            shown("select 1 union all (values (2)) union all (select 3)"),
            "SELECT 1 UNION ALL (VALUES (2)) UNION ALL (SELECT 3)"
        );
        assert_eq!(
            shown("select a = any (values (2), (3)), a <> all (values (1))"),
            "SELECT a = ANY(SELECT * FROM (VALUES (2), (3)) AS \"values\"), \
             a <> ALL(SELECT * FROM (VALUES (1)) AS \"values\")"
        );
        for (table, select) in [
            ("insert into s.t table u", "insert into s.t select * from u"),
            ("insert into t (a) table u", "insert into t (a) select * from u"),
            ("with w as (select 1) table w", "with w as (select 1) select * from w"),
        ] {
            assert_eq!(shown(table), shown(select));
        }
        assert!(crate::parse_query("insert into t select 1 for update returning *").is_ok());
        assert_eq!(shown("select * from (values (1)) v"), "SELECT * FROM (VALUES (1)) v");
        assert_eq!(shown("select 1 fetch first 2 rows only"), "SELECT 1 LIMIT 2");
    }
}
