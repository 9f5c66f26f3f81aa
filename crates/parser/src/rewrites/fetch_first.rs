//! FETCH FIRST is LIMIT in other words, but for ties.
//!
//! ```text
//!   FETCH FIRST ROW ONLY                      LIMIT 1
//!   FETCH FIRST (n + 1) ROWS ONLY             LIMIT (n + 1)
//!   FETCH NEXT ($1::int) ROWS WITH TIES       FETCH NEXT $1 ROWS WITH TIES
//! ```
//! With ties sqlparser has no form for a count in parentheses that is more than a number or a
//! parameter: that stays as it is, and is refused.

use braid_types::{SqlError, SqlResult};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::{word, wrap};

/// Writes FETCH FIRST in a form that is read.
///
/// # Errors
/// 42601 for a query with two limits.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    let is = |tokens: &[TokenWithSpan], n: usize, text: &str| {
        tokens.get(n).is_some_and(|t| token_is(&t.token, text))
    };
    // Whether there is a limit, at each depth of parentheses.
    let mut levels = vec![false];
    let mut at = 0;
    while at < tokens.len() {
        let (word_here, begin) = (tokens[at].token.to_string(), tokens[at].span.start);
        let begins =
            is(tokens, at, "fetch") && (is(tokens, at + 1, "first") || is(tokens, at + 1, "next"));
        let end = begins.then(|| end_of_count(tokens, at + 2)).flatten();
        let end = end.filter(|end| is(tokens, *end, "row") || is(tokens, *end, "rows"));
        if let Some(end) = end {
            if is(tokens, end + 1, "only") {
                tokens.drain(end..end + 2);
                let one = || wrap(Token::Number("1".into(), false));
                let limit = std::iter::once(word("limit"));
                tokens.splice(at..at + 2, limit.chain((end == at + 2).then(one)));
            } else if tokens[at + 2].token == Token::LParen && is_plain(&tokens[at + 3..end - 1]) {
                tokens.drain(at + 4..end);
                tokens.remove(at + 2);
            }
        }
        let is_name = at > 0 && (is(tokens, at - 1, "as") || tokens[at - 1].token == Token::Period);
        match &tokens[at].token {
            Token::LParen => levels.push(false),
            Token::RParen if levels.len() > 1 => drop(levels.pop()),
            Token::SemiColon => levels = vec![false],
            limit
                if !is_name
                    && (token_is(limit, "limit") || end.is_some())
                    && levels.last_mut().is_some_and(|has| std::mem::replace(has, true)) =>
            {
                let text = format!("syntax error at or near \"{word_here}\"");
                return Err(SqlError::syntax(text).or_at(begin.line, begin.column));
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The end of a count that begins somewhere: of nothing, a value, a number with a sign, a call or
/// something in parentheses.
fn end_of_count(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    match &tokens.get(at)?.token {
        Token::Word(word)
            if ["row", "rows"].iter().any(|end| word.value.eq_ignore_ascii_case(end)) =>
        {
            Some(at)
        }
        Token::Word(_) => Some(closing(tokens, at + 1).unwrap_or(at) + 1),
        Token::Plus | Token::Minus => Some(at + 2),
        Token::LParen => Some(closing(tokens, at)? + 1),
        _ => Some(at + 1),
    }
}

/// A number or a parameter, also as an integer.
fn is_plain(count: &[TokenWithSpan]) -> bool {
    let integer = |t: &TokenWithSpan| {
        ["int", "integer", "int4", "bigint", "int8"].iter().any(|name| token_is(&t.token, name))
    };
    let value = |t: &TokenWithSpan| matches!(t.token, Token::Number(..) | Token::Placeholder(_));
    match count {
        [n] => value(n),
        [n, sign, ty] => value(n) && sign.token == Token::DoubleColon && integer(ty),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    fn shown(sql: &str) -> String {
        crate::parse_query(sql).unwrap().to_string()
    }

    #[test]
    fn rows_only_is_a_limit() {
        assert_eq!(shown("select 1 fetch first row only"), "SELECT 1 LIMIT 1");
        assert_eq!(shown("select 1 fetch next 3 rows only offset 2"), "SELECT 1 LIMIT 3 OFFSET 2");
        assert_eq!(shown("select 1 fetch first -1 row only"), "SELECT 1 LIMIT -1");
        assert_eq!(shown("select 1 fetch first abs(2) rows only"), "SELECT 1 LIMIT abs(2)");
        assert_eq!(
            shown("select 1 offset (2) rows fetch first (1 + (2)) rows only"),
            "SELECT 1 LIMIT (1 + (2)) OFFSET (2) ROWS"
        );
        assert_eq!(
            shown("select (select 2 fetch first (1) row only)"),
            "SELECT (SELECT 2 LIMIT (1))"
        );
    }

    #[test]
    fn ties_stay_and_their_counts_in_parentheses_are_read() {
        assert_eq!(
            shown("select 1 order by 1 fetch next ($1::int) row with ties"),
            "SELECT 1 ORDER BY 1 FETCH FIRST $1 ROWS WITH TIES"
        );
        assert!(
            crate::parse_query("select 1 order by 1 fetch first (1 + 1) rows with ties").is_err()
        );
    }

    #[test]
    fn a_query_has_one_limit_and_a_column_may_have_its_name() {
        for (sql, at) in [
            ("select 1 limit 1 fetch first 1 row only", "fetch"),
            ("select 1 fetch first 1 row only limit 1", "limit"),
            ("select 1 limit 1 limit 2", "limit"),
            ("select 1 order by 1 fetch first 1 row with ties limit 1", "limit"),
        ] {
            let message = crate::parse_query(sql).unwrap_err().message().to_string();
            assert_eq!(message, format!("syntax error at or near \"{at}\""), "{sql}");
        }
        shown("select 1 as limit, (select 1 limit 1) limit 2");
        shown("(select 1 limit 1) union (select 2 limit 1) fetch first 1 row only");
    }
}
