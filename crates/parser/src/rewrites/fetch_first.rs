//! FETCH FIRST with a count in parentheses, for which sqlparser has no form.
//!
//! ```text
//!   FETCH FIRST (n + 1) ROWS ONLY             LIMIT (n + 1)
//!   FETCH NEXT ($1::int) ROWS WITH TIES       FETCH NEXT $1 ROWS WITH TIES
//! ```
//! LIMIT has no ties: there a count that is more than a number or a parameter stays as it is, and
//! is refused.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::word;

/// Writes such a count in a form that is read.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 2 < tokens.len() {
        let is = |n: usize, text: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, text));
        let fetch = is(at, "fetch") && (is(at + 1, "first") || is(at + 1, "next"));
        if fetch
            && tokens[at + 2].token == Token::LParen
            && let Some(close) = closing(tokens, at + 2)
            && (is(close + 1, "row") || is(close + 1, "rows"))
        {
            if is(close + 2, "only") {
                tokens.drain(close + 1..close + 3);
                tokens.splice(at..at + 2, [word("limit")]);
            } else if is_plain(&tokens[at + 3..close]) {
                tokens.drain(at + 4..=close);
                tokens.remove(at + 2);
            }
        }
        at += 1;
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
    #[test]
    fn counts_in_parentheses_are_read() {
        let shown = |sql: &str| crate::parse_query(sql).unwrap().to_string();
        assert_eq!(
            shown("select 1 offset (2) rows fetch first (1 + (2)) rows only"),
            "SELECT 1 LIMIT (1 + (2)) OFFSET (2) ROWS"
        );
        assert_eq!(
            shown("select 1 order by 1 fetch next ($1::int) row with ties"),
            "SELECT 1 ORDER BY 1 FETCH FIRST $1 ROWS WITH TIES"
        );
        assert_eq!(
            shown("select (select 2 fetch first (1) row only)"),
            "SELECT (SELECT 2 LIMIT (1))"
        );
        assert!(
            crate::parse_query("select 1 order by 1 fetch first (1 + 1) rows with ties").is_err()
        );
    }
}
