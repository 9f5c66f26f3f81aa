//! A query in parentheses, and what stands behind them, is one query.
//!
//! ```text
//!   (SELECT a FROM t LIMIT 4) OFFSET 2                   SELECT a FROM t LIMIT 4 OFFSET 2
//!   (SELECT a FROM t LIMIT 4) LIMIT 2                    an error
//!   SELECT * FROM (SELECT a FROM t LIMIT 4) x LIMIT 2    stays: there are two
//! ```
//! sqlparser reads a parenthesis in an expression as a query only if SELECT or WITH follows. One
//! that begins with a query in parentheses is written for it as a query of that, and
//! [`settle`] takes the query around it away.
//!
//! ```text
//!   ((SELECT 2) UNION SELECT 2)      (SELECT * FROM ((SELECT 2) UNION SELECT 2) AS "\0query")
//! ```

use std::ops::ControlFlow;

use braid_types::{SqlError, SqlResult};
use braid_walk::WalkMut;
use sqlparser::ast::{
    Expr, LimitClause, Offset, OffsetRows, Query, SetExpr, TableFactor, TableWithJoins, VisitorMut,
};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::{word, wrap};

/// What a query is called that is there for sqlparser: no name that can be typed has that
/// character.
const MARK: &str = "\0query";
/// What follows a query that goes on.
const CLAUSES: [&str; 5] = ["limit", "offset", "fetch", "order", "for"];
const OPERATORS: [&str; 3] = ["union", "intersect", "except"];

/// Writes queries that sqlparser would not find in expressions as it finds them.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at + 1 < tokens.len() {
        if begins_query(tokens, at)
            && !names_call(&tokens[at - 1].token)
            && let Some(close) = closing(tokens, at)
        {
            let name = wrap(Token::make_word(MARK, Some('"')));
            tokens.splice(close..close, [wrap(Token::RParen), word("as"), name]);
            let around = [word("select"), wrap(Token::Mul), word("from"), wrap(Token::LParen)];
            tokens.splice(at + 1..at + 1, around);
            at += 4;
        }
        at += 1;
    }
}

/// Whether a parenthesis opens a query which begins with one in parentheses and goes on.
fn begins_query(tokens: &[TokenWithSpan], at: usize) -> bool {
    if tokens[at].token != Token::LParen {
        return false;
    }
    let inner = tokens[at + 1..].iter().find(|t| t.token != Token::LParen);
    let queries = ["select", "with", "values", "table"];
    if !inner.is_some_and(|t| queries.iter().any(|word| token_is(&t.token, word))) {
        return false;
    }
    let Some(end) = closing(tokens, at + 1) else { return false };
    let Some(next) = tokens.get(end + 1) else { return false };
    OPERATORS.iter().chain(&CLAUSES).any(|word| token_is(&next.token, word))
}

/// Whether a parenthesis behind this opens the arguments of a call, as in
/// `array_agg((SELECT a) ORDER BY b)`.
fn names_call(before: &Token) -> bool {
    const WORDS: [&str; 22] = [
        "all",
        "and",
        "any",
        "between",
        "by",
        "case",
        "distinct",
        "else",
        "having",
        "ilike",
        "in",
        "like",
        "limit",
        "not",
        "offset",
        "on",
        "or",
        "returning",
        "select",
        "some",
        "then",
        "when",
    ];
    let follows = |word: &&str| token_is(before, word);
    matches!(before, Token::Word(_)) && !WORDS.iter().chain(&["where"]).any(follows)
}

/// Whether there may be one.
pub(crate) fn is_marked(tokens: &[TokenWithSpan]) -> bool {
    let marked = |t: &Token| matches!(t, Token::Word(w) if w.value == MARK);
    tokens.windows(2).any(|pair| {
        let next = &pair[1].token;
        pair[0].token == Token::RParen
            && (*next == Token::LParen || CLAUSES.iter().any(|word| token_is(next, word)))
            || marked(next)
    })
}

/// Makes one of each.
///
/// # Errors
/// 42601 if both have a clause of which there can be one.
pub(crate) fn settle(tree: &mut impl WalkMut) -> SqlResult<()> {
    match tree.walk_mut(&mut Joiner) {
        ControlFlow::Break(e) => Err(e),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Joiner;

impl VisitorMut for Joiner {
    type Break = SqlError;

    /// What is inside has been joined before.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        if let Some(marked) = marked(query) {
            *query = marked;
        }
        let SetExpr::Query(inner) = &*query.body else { return ControlFlow::Continue(()) };
        if has_clauses(query) {
            let mut inner = inner;
            while let SetExpr::Query(deeper) = &*inner.body
                && !has_clauses(inner)
            {
                inner = deeper;
            }
            let mut one = (**inner).clone();
            if let Err(e) = join(&mut one, query) {
                return ControlFlow::Break(e);
            }
            *query = one;
        }
        ControlFlow::Continue(())
    }
}

/// The query of one that is there for sqlparser.
fn marked(query: &Query) -> Option<Query> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let [TableWithJoins { relation: TableFactor::Derived { subquery, alias, .. }, .. }] =
        select.from.as_slice()
    else {
        return None;
    };
    let is_marked = alias.as_ref().is_some_and(|alias| alias.name.value == MARK);
    is_marked.then(|| (**subquery).clone())
}

fn has_clauses(query: &Query) -> bool {
    query.with.is_some()
        || query.order_by.is_some()
        || query.limit_clause.is_some()
        || query.fetch.is_some()
        || !query.locks.is_empty()
}

/// Gives a query the clauses of the one around it.
fn join(one: &mut Query, outer: &mut Query) -> SqlResult<()> {
    one.order_by = either(one.order_by.take(), outer.order_by.take(), "ORDER BY")?;
    one.locks.append(&mut outer.locks);
    let (limit, offset) = limits(one);
    let (outer_limit, outer_offset) = limits(outer);
    let offset = either(offset, outer_offset, "OFFSET")?;
    let is_limited = |limit: &Option<Expr>, query: &Query| limit.is_some() || query.fetch.is_some();
    if is_limited(&limit, one) && is_limited(&outer_limit, outer) {
        return Err(twice("LIMIT"));
    }
    let limit = limit.or(outer_limit);
    if limit.is_some() || offset.is_some() {
        let limit_by = Vec::new();
        one.limit_clause = Some(LimitClause::LimitOffset { limit, offset, limit_by });
    }
    one.fetch = one.fetch.take().or(outer.fetch.take());
    one.with = either(one.with.take(), outer.with.take(), "WITH")?;
    Ok(())
}

/// LIMIT and OFFSET of a query, taken out of it.
fn limits(query: &mut Query) -> (Option<Expr>, Option<Offset>) {
    match query.limit_clause.take() {
        Some(LimitClause::LimitOffset { limit, offset, .. }) => (limit, offset),
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
            (Some(limit), Some(Offset { value: offset, rows: OffsetRows::None }))
        }
        None => (None, None),
    }
}

fn either<T>(inner: Option<T>, outer: Option<T>, what: &str) -> SqlResult<Option<T>> {
    match (inner, outer) {
        (Some(_), Some(_)) => Err(twice(what)),
        (inner, outer) => Ok(inner.or(outer)),
    }
}

fn twice(what: &str) -> SqlError {
    SqlError::syntax(format!("multiple {what} clauses not allowed"))
}

#[cfg(test)]
mod tests {
    use crate::parse_query;

    #[test]
    fn parentheses_with_clauses_behind_them_are_one_query() {
        for (sql, one) in [
            ("(select 1 limit 4) offset 2", "SELECT 1 LIMIT 4 OFFSET 2"),
            ("((select a from t limit 1)) order by a", "SELECT a FROM t ORDER BY a LIMIT 1"),
            (
                "with x as (select 1) (select * from x for update) limit 1",
                "WITH x AS (SELECT 1) SELECT * FROM x LIMIT 1 FOR UPDATE",
            ),
            (
                "(select 1 union select 2) order by 1 limit 3",
                "SELECT 1 UNION SELECT 2 ORDER BY 1 LIMIT 3",
            ),
            (
                "(select 1 limit 1) union (select 2 limit 1) limit 1",
                "(SELECT 1 LIMIT 1) UNION (SELECT 2 LIMIT 1) LIMIT 1",
            ),
            (
                "select * from (select 1 limit 1) x limit 1",
                "SELECT * FROM (SELECT 1 LIMIT 1) x LIMIT 1",
            ),
        ] {
            assert_eq!(parse_query(sql).unwrap().to_string(), one, "{sql}");
        }
        for (sql, one) in [
            ("1 + (((select 2)) union select 2)", "1 + (((SELECT 2)) UNION SELECT 2)"),
            ("a in (((select 2)) union select 1)", "a IN (((SELECT 2)) UNION SELECT 1)"),
            ("a = any ((select b) limit 1)", "a = ANY(SELECT b LIMIT 1)"),
            ("array_agg((select a) order by b)", "array_agg((SELECT a) ORDER BY b)"),
            ("((select 1) + 1)", "((SELECT 1) + 1)"),
        ] {
            assert_eq!(crate::parse_expr(sql).unwrap().to_string(), one, "{sql}");
        }
        // The parentheses are those of the call.
        assert!(crate::parse_expr("f((select 2) union select 2)").is_err());
        for (sql, what) in [
            ("(select 1 limit 1) limit 2", "LIMIT"),
            ("((select 1 fetch first row only)) limit 2", "LIMIT"),
            ("select * from ((select 1 order by 1) order by 1) x", "ORDER BY"),
            ("(select 1 offset 1) offset 2", "OFFSET"),
            ("with x as (select 1) (with y as (select 2) select 3)", "WITH"),
        ] {
            let e = parse_query(sql).unwrap_err();
            assert_eq!(e.message(), format!("multiple {what} clauses not allowed"), "{sql}");
        }
    }
}
