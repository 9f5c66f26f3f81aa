//! A query in parentheses, and what stands behind them, is one query.
//!
//! ```text
//!   (SELECT a FROM t LIMIT 4) OFFSET 2                   SELECT a FROM t LIMIT 4 OFFSET 2
//!   (SELECT a FROM t LIMIT 4) LIMIT 2                    an error
//!   SELECT * FROM (SELECT a FROM t LIMIT 4) x LIMIT 2    stays: there are two
//! ```

use std::ops::ControlFlow;

use braid_types::{SqlError, SqlResult};
use braid_walk::WalkMut;
use sqlparser::ast::{Expr, LimitClause, Offset, OffsetRows, Query, SetExpr, VisitorMut};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::token_is;

/// Whether there may be one.
pub(crate) fn is_marked(tokens: &[TokenWithSpan]) -> bool {
    const CLAUSES: [&str; 5] = ["limit", "offset", "fetch", "order", "for"];
    tokens.windows(2).any(|pair| {
        let next = &pair[1].token;
        pair[0].token == Token::RParen
            && (*next == Token::LParen || CLAUSES.iter().any(|word| token_is(next, word)))
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
