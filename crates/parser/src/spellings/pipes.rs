//! GoogleSQL's pipes, written as the queries that they mean.
//!
//! ```text
//!   FROM t |> WHERE a > 1 |> SELECT b      SELECT b FROM t WHERE (a > 1)
//!   .. |> WHERE b < 9                      SELECT * FROM (SELECT b FROM t ..) AS t WHERE (b < 9)
//!   .. |> AGGREGATE sum(a) AS s GROUP BY b SELECT b, sum(a) AS s .. GROUP BY b
//!   .. |> EXTEND a + 1 AS c                SELECT *, a + 1 AS c ..
//!   .. |> SET a = 1, |> DROP a             SELECT * REPLACE (1 AS a) .., SELECT * EXCEPT (a) ..
//!   .. |> RENAME a AS b                    SELECT * RENAME (a AS b) ..
//!   .. |> TABLESAMPLE BERNOULLI (9 PERCENT)  .. WHERE (random() * 100 < 9)
//! ```
//! An operator goes into the query that is there as long as it means the same in it; then that
//! becomes a query in FROM. It keeps the name of its table if it has only one.

use braid_types::{SqlError, SqlResult};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::calls::{is, is_token};
use crate::cursor::{at_commas, closing, token_is};
use crate::lexical::PIPE;
use crate::script::{word, wrap};

type Tokens = Vec<TokenWithSpan>;

/// A query as far as it is known.
#[derive(Default)]
struct Query {
    /// Behind FROM.
    from: Tokens,
    /// The name of its table, while it has one.
    name: Option<TokenWithSpan>,
    /// Conditions.
    filters: Vec<Tokens>,
    /// The select list, and GROUP BY.
    list: Option<Tokens>,
    groups: Tokens,
    order: Tokens,
    /// LIMIT and OFFSET.
    limit: Tokens,
    /// A query that is written out instead of all that.
    whole: Option<Tokens>,
}

fn is_pipe(token: &Token) -> bool {
    matches!(token, Token::CustomBinaryOperator(sign) if sign == PIPE)
}

/// Rewrites what has pipes in it.
///
/// # Errors
/// 0A000 for operators that are not read, 42601 for what is none.
pub(crate) fn rewrite(tokens: &mut Tokens) -> SqlResult<()> {
    if tokens.iter().any(|t| is_pipe(&t.token)) {
        *tokens = rewritten(std::mem::take(tokens))?;
    }
    Ok(())
}

/// Tokens of a script or of what stands in parentheses.
fn rewritten(tokens: Tokens) -> SqlResult<Tokens> {
    let (mut out, mut level) = (Tokens::new(), Tokens::new());
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].token {
            Token::LParen if closing(&tokens, at).is_some() => {
                let end = closing(&tokens, at).unwrap_or(at);
                level.push(tokens[at].clone());
                level.extend(rewritten(tokens[at + 1..end].to_vec())?);
                level.push(tokens[end].clone());
                at = end;
            }
            Token::SemiColon => {
                out.extend(of_level(std::mem::take(&mut level))?);
                out.push(tokens[at].clone());
            }
            _ => level.push(tokens[at].clone()),
        }
        at += 1;
    }
    out.extend(of_level(level)?);
    Ok(out)
}

/// Places outside of parentheses.
fn outside(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        out.push(at);
        at = match tokens[at].token {
            Token::LParen | Token::LBracket => closing(tokens, at).unwrap_or(at),
            _ => at,
        } + 1;
    }
    out
}

/// What stands on one level, its parentheses being rewritten.
fn of_level(mut tokens: Tokens) -> SqlResult<Tokens> {
    let places = outside(&tokens);
    let pipes: Vec<usize> =
        places.iter().copied().filter(|at| is_pipe(&tokens[*at].token)).collect();
    let Some(first) = pipes.first().copied() else { return Ok(tokens) };
    let begins = |at: &usize| ["from", "select", "values"].iter().any(|w| is(&tokens, *at, w));
    let start = places.iter().copied().find(begins).filter(|start| *start < first);
    let Some(start) = start else { return Err(unexpected(&tokens[first])) };
    let mut parts = Vec::new();
    for at in pipes.iter().rev() {
        let mut part = tokens.split_off(*at);
        part.remove(0);
        parts.push(part);
    }
    let mut query = begin(tokens.split_off(start));
    for part in parts.into_iter().rev() {
        query = applied(query, part)?;
    }
    tokens.extend(query.written());
    Ok(tokens)
}

/// The query in front of the first pipe.
fn begin(mut tokens: Tokens) -> Query {
    if is(&tokens, 0, "from") {
        tokens.remove(0);
        return Query { name: only_name(&tokens), from: tokens, ..Query::default() };
    }
    Query { whole: Some(tokens), ..Query::default() }
}

/// The name of the only table of FROM.
fn only_name(from: &[TokenWithSpan]) -> Option<TokenWithSpan> {
    let places = outside(from);
    let joins = places.iter().any(|at| {
        from[*at].token == Token::Comma
            || ["join", "tablesample", "with"].iter().any(|w| is(from, *at, w))
    });
    let last = from.last()?;
    let plain = from[0].token == Token::LParen
        || places.iter().all(|at| matches!(from[*at].token, Token::Word(_) | Token::Period));
    (!joins && plain && matches!(last.token, Token::Word(_))).then(|| last.clone())
}

fn comma(list: Vec<Tokens>) -> Tokens {
    list.join(&[wrap(Token::Comma)][..])
}

fn bracketed(tokens: Tokens) -> Tokens {
    [vec![wrap(Token::LParen)], tokens, vec![wrap(Token::RParen)]].concat()
}

impl Query {
    /// As a query of PostgreSQL.
    fn written(self) -> Tokens {
        if let Some(whole) = self.whole {
            return whole;
        }
        let mut out = vec![word("select")];
        out.extend(self.list.unwrap_or_else(|| vec![wrap(Token::Mul)]));
        out.push(word("from"));
        out.extend(self.from);
        for (n, filter) in self.filters.into_iter().enumerate() {
            out.push(word(if n == 0 { "where" } else { "and" }));
            out.extend(bracketed(filter));
        }
        out.extend(self.groups);
        out.extend(self.order);
        out.extend(self.limit);
        out
    }

    /// A query over the rows of this one.
    fn within(self, name: Option<TokenWithSpan>) -> Query {
        let name = name.or(self.name.clone());
        let shown = name.clone().unwrap_or_else(|| wrap(Token::make_word("pipe", Some('"'))));
        let from = [bracketed(self.written()), vec![word("as"), shown]].concat();
        Query { from, name, ..Query::default() }
    }

    /// Whether it is nothing but tables and conditions.
    fn is_plain(&self) -> bool {
        self.whole.is_none()
            && self.list.is_none()
            && self.order.is_empty()
            && self.limit.is_empty()
    }

    /// This query, or one over it, in which names mean columns of what is there.
    fn plain(self) -> Query {
        if self.is_plain() { self } else { self.within(None) }
    }

    fn listed(self, list: Tokens) -> Query {
        let open = self.whole.is_none() && self.list.is_none() && self.limit.is_empty();
        let query = if open { self } else { self.within(None) };
        Query { list: Some(list), ..query }
    }
}

/// A query with one operator more.
fn applied(query: Query, mut part: Tokens) -> SqlResult<Query> {
    let Some(Token::Word(first)) = part.first().map(|t| t.token.clone()) else {
        return Err(part
            .first()
            .map_or_else(|| SqlError::syntax("syntax error at end of input"), unexpected));
    };
    let operator = first.value.to_lowercase();
    let head = part[0].clone();
    let mut rest = part.split_off(1);
    let star = || wrap(Token::Mul);
    Ok(match operator.as_str() {
        "where" => {
            let mut query = query.plain();
            query.filters.push(rest);
            query
        }
        "select" => query.listed(rest),
        "distinct" if rest.is_empty() => query.plain().listed(vec![word("distinct"), star()]),
        "extend" => query.plain().listed([vec![star(), wrap(Token::Comma)], rest].concat()),
        "set" => query.plain().listed(replaced(rest)?),
        "rename" => query.plain().listed(renamed(rest)?),
        "tablesample" => sampled(query, &head, rest)?,
        "drop" => query.plain().listed([vec![star(), word("except")], bracketed(rest)].concat()),
        "as" => match rest.pop() {
            Some(name) if rest.is_empty() => query.within(Some(name)),
            _ => return Err(unexpected(&head)),
        },
        "aggregate" => aggregated(query, rest),
        "order" => {
            let query = query.plain();
            Query { order: [vec![word("order")], rest].concat(), ..query }
        }
        "limit" => {
            let open = query.whole.is_none() && query.limit.is_empty();
            let query = if open { query } else { query.within(None) };
            Query { limit: [vec![word("limit")], rest].concat(), ..query }
        }
        "join" | "inner" | "left" | "right" | "full" | "cross" => {
            let mut query = query.plain();
            if !query.filters.is_empty() {
                query = query.within(None);
            }
            query.from.push(head);
            query.from.extend(rest);
            query.name = None;
            query
        }
        "union" | "intersect" | "except" => joined(query, head, rest),
        "pivot" | "unpivot" | "call" | "window" | "assert" | "with" | "static_describe"
        | "recursive" => {
            let what = format!("|> {}", operator.to_uppercase());
            return Err(
                SqlError::unsupported(what).with_hint("Write it as a query: SELECT .. FROM (..).")
            );
        }
        _ => return Err(unexpected(&head)),
    })
}

/// `a = 1, b = 2` as `* REPLACE (1 AS a, 2 AS b)`.
fn replaced(rest: Tokens) -> SqlResult<Tokens> {
    let mut list = Vec::new();
    for part in parts(&rest) {
        let [name, equals, value @ ..] = part.as_slice() else {
            return Err(part
                .first()
                .map_or_else(|| SqlError::syntax("syntax error at end of input"), unexpected));
        };
        if equals.token != Token::Eq || value.is_empty() {
            return Err(unexpected(equals));
        }
        list.push([value, &[word("as"), name.clone()]].concat());
    }
    Ok([vec![wrap(Token::Mul), word("replace")], bracketed(comma(list))].concat())
}

/// `a AS b, c d` as `* RENAME (a AS b, c AS d)`.
fn renamed(rest: Tokens) -> SqlResult<Tokens> {
    let mut list = Vec::new();
    for part in parts(&rest) {
        let (name, new) = match part.as_slice() {
            [name, new] => (name, new),
            [name, word, new] if token_is(&word.token, "as") => (name, new),
            other => {
                return Err(other
                    .get(1)
                    .map_or_else(|| SqlError::syntax("syntax error at end of input"), unexpected));
            }
        };
        list.push(vec![name.clone(), word("as"), new.clone()]);
    }
    Ok([vec![wrap(Token::Mul), word("rename")], bracketed(comma(list))].concat())
}

/// `BERNOULLI (10 PERCENT)`: each row with this share; `RESERVOIR (10 ROWS)`: so many of them.
fn sampled(query: Query, head: &TokenWithSpan, rest: Tokens) -> SqlResult<Query> {
    let open = if is_token(&rest, 1, &Token::LParen) { closing(&rest, 1) } else { None };
    let Some(end) = open else {
        return Err(rest.first().map_or_else(|| unexpected(head), unexpected));
    };
    if let Some(more) = rest.get(end + 1) {
        return Err(SqlError::unsupported(format!("TABLESAMPLE .. {}", more.token))
            .with_hint("A sample is another one each time; its weights are not told."));
    }
    let known = ["bernoulli", "system", "reservoir"].iter().any(|method| is(&rest, 0, method));
    let random = || vec![word("random"), wrap(Token::LParen), wrap(Token::RParen)];
    let number = rest[2..end - 1].to_vec();
    let mut over = query.within(None);
    if !known || number.is_empty() {
        return Err(unexpected(&rest[0]));
    } else if is(&rest, end - 1, "percent") && !is(&rest, 0, "reservoir") {
        let hundred = vec![wrap(Token::Mul), wrap(Token::Number("100".into(), false))];
        let share = [random(), hundred, vec![wrap(Token::Lt)], bracketed(number)].concat();
        over.filters.push(share);
    } else if is(&rest, end - 1, "rows") && !is(&rest, 0, "system") {
        over.order = [vec![word("order"), word("by")], random()].concat();
        over.limit = [vec![word("limit")], bracketed(number)].concat();
    } else {
        return Err(unexpected(&rest[end - 1]));
    }
    Ok(over.within(None))
}

/// AGGREGATE: groups come first, then what is computed of them.
fn aggregated(query: Query, rest: Tokens) -> Query {
    let places = outside(&rest);
    let group = places.iter().copied().find(|at| is(&rest, *at, "group"));
    let computed = rest[..group.unwrap_or(rest.len())].to_vec();
    let mut query = query.plain();
    let Some(group) = group else { return query.listed(computed) };
    let ordered = is(&rest, group + 1, "and") && is(&rest, group + 2, "order");
    let keys = rest.get(group + if ordered { 4 } else { 2 }..).unwrap_or_default();
    let (mut shown, mut keys_only, mut order) = (Vec::new(), Vec::new(), Vec::new());
    for mut key in parts(keys) {
        let mut direction = Tokens::new();
        if let Some(last) = key.last()
            && (token_is(&last.token, "asc") || token_is(&last.token, "desc"))
        {
            direction.extend(key.pop());
        }
        shown.push(key.clone());
        if key.len() > 2 && is(&key, key.len() - 2, "as") {
            key.truncate(key.len() - 2);
        }
        order.push([key.clone(), direction].concat());
        keys_only.push(key);
    }
    query.groups = [vec![word("group"), word("by")], comma(keys_only)].concat();
    if ordered {
        query.order = [vec![word("order"), word("by")], comma(order)].concat();
    }
    if !computed.is_empty() {
        shown.push(computed);
    }
    query.list = Some(comma(shown));
    query
}

/// `UNION ALL (q), (r)`.
fn joined(query: Query, head: TokenWithSpan, rest: Tokens) -> Query {
    let quantified = rest.first().filter(|t| token_is(&t.token, "all")).cloned();
    let skip = usize::from(is(&rest, 0, "all") || is(&rest, 0, "distinct"));
    let name = query.name.clone();
    let mut whole = bracketed(query.written());
    for other in parts(&rest[skip..]) {
        whole.push(head.clone());
        whole.extend(quantified.clone());
        whole.extend(other);
    }
    Query { whole: Some(whole), name, ..Query::default() }
}

/// The parts of a list.
fn parts(tokens: &[TokenWithSpan]) -> Vec<Tokens> {
    at_commas(tokens).into_iter().filter(|part| !part.is_empty()).collect()
}

fn unexpected(token: &TokenWithSpan) -> SqlError {
    let place = token.span.start;
    let shown = if is_pipe(&token.token) { "|>".to_string() } else { token.token.to_string() };
    SqlError::syntax(format!("syntax error at or near \"{shown}\"")).or_at(place.line, place.column)
}

#[cfg(test)]
mod tests {
    fn shown(sql: &str) -> String {
        let all = crate::parse_script(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        match &*all[0].kind {
            crate::Kind::Sql(statement) => statement.to_string(),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn operators_go_into_a_query_as_long_as_they_can() {
        for (piped, query) in [
            ("from t |> where a > 1 |> select b", "SELECT b FROM t WHERE (a > 1)"),
            (
                "from t as x |> where x.a > 1 |> where b |> order by c desc |> limit 3 offset 1",
                "SELECT * FROM t AS x WHERE (x.a > 1) AND (b) ORDER BY c DESC LIMIT 3 OFFSET 1",
            ),
            (
                "from t |> aggregate sum(a) as s, count(*) group by b, c % 2 as d",
                "SELECT b, c % 2 AS d, sum(a) AS s, count(*) FROM t GROUP BY b, c % 2",
            ),
            ("from t |> aggregate count(*)", "SELECT count(*) FROM t"),
            (
                "from t |> aggregate count(*) as n group and order by b desc",
                "SELECT b, count(*) AS n FROM t GROUP BY b ORDER BY b DESC",
            ),
            (
                "from t |> tablesample reservoir (5 rows)",
                "SELECT * FROM (SELECT * FROM (SELECT * FROM t) AS t ORDER BY random() \
                 LIMIT (5)) AS t",
            ),
            ("from t |> join u using (id) |> select t.a", "SELECT t.a FROM t JOIN u USING(id)"),
        ] {
            assert_eq!(shown(piped), query, "{piped}");
        }
    }

    #[test]
    fn then_it_becomes_a_query_in_from() {
        for (piped, query) in [
            (
                "from s.t |> limit 5 |> where t.a = 1",
                "SELECT * FROM (SELECT * FROM s.t LIMIT 5) AS t WHERE (t.a = 1)",
            ),
            (
                "from t |> extend a + 1 as b |> where b > 1",
                "SELECT * FROM (SELECT *, a + 1 AS b FROM t) AS t WHERE (b > 1)",
            ),
            (
                "select a from t |> where a > 1",
                "SELECT * FROM (SELECT a FROM t) AS \"pipe\" WHERE (a > 1)",
            ),
            (
                "from t |> where a = 1 |> left join u on u.a = t.a",
                "SELECT * FROM (SELECT * FROM t WHERE (a = 1)) AS t LEFT JOIN u ON u.a = t.a",
            ),
            (
                "from t |> select a |> union all (from u |> select a), (select 1)",
                "(SELECT a FROM t) UNION ALL (SELECT a FROM u) UNION ALL (SELECT 1)",
            ),
            (
                "with w as (from t |> where a) from w |> as x |> select x.a",
                "WITH w AS (SELECT * FROM t WHERE (a)) SELECT x.a FROM (SELECT * FROM w) AS x",
            ),
        ] {
            assert_eq!(shown(piped), query, "{piped}");
        }
    }

    #[test]
    fn what_is_no_operator_is_said() {
        for (sql, state) in [
            ("from t |> rename a", "42601"),
            ("from t |> pivot (sum(a) for b in (1))", "0A000"),
            ("from t |> tablesample bernoulli", "42601"),
            ("from t |> tablesample system (5 rows)", "42601"),
            ("from t |> tablesample bernoulli (5 percent) repeatable (1)", "0A000"),
            ("from t |> nonsense", "42601"),
            ("from t |>", "42601"),
            ("from t |> set a", "42601"),
            ("|> where a", "42601"),
        ] {
            let error = crate::parse_script(sql).unwrap_err();
            assert_eq!(error.state().0, state, "{sql}: {error:?}");
        }
    }
}
