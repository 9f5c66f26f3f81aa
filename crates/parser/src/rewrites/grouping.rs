//! Grouping sets within grouping sets, for which sqlparser has no form, and `GROUP BY ALL` and
//! `DISTINCT`.
//!
//! ```text
//!   GROUPING SETS (a, GROUPING SETS ((), b))     GROUPING SETS (a, grouping_sets (row(), b))
//!   GROUP BY ALL a, ROLLUP (b)                   GROUP BY a, ROLLUP (b)
//!   GROUP BY DISTINCT a, ROLLUP (b)       GROUP BY GROUPING SETS (distinct_sets(a, rollup(b)))
//! ```
//! Inner ones are read as calls of functions of these names, of which there are none.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::token_is;
use crate::script::{word, wrap};

/// What stands for GROUPING SETS within another.
pub const INNER_SETS: &str = "grouping_sets";

/// What stands for the list behind GROUP BY DISTINCT, which is one element of GROUPING SETS then.
pub const DISTINCT_SETS: &str = "distinct_sets";

/// Writes inner sets in a form that is read.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    // Where the parentheses of GROUPING SETS are open, and whether those are inner ones.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let (mut depth, mut at) = (0, 0);
    while at < tokens.len() {
        let is = |n: usize, w: &str| tokens.get(at + n).is_some_and(|t| token_is(&t.token, w));
        let token = |n: usize| tokens.get(at + n).map(|t| &t.token);
        let by = is(0, "group") && is(1, "by");
        let (all, once) = (is(2, "all") && begins_a_key(token(3)), is(2, "distinct"));
        if by && all {
            tokens.remove(at + 2);
        } else if by && once {
            distinct(tokens, at + 2);
        }
        if is_sets(tokens, at) {
            let inner = !open.is_empty();
            if inner {
                tokens.splice(at..at + 2, [word(INNER_SETS)]);
            }
            at += if inner { 1 } else { 2 };
            depth += 1;
            open.push((depth, inner));
        } else if is_distinct(tokens, at) {
            depth += 1;
            open.push((depth, true));
            at += 1;
        } else if tokens[at].token == Token::LParen {
            let empty = tokens.get(at + 1).is_some_and(|t| t.token == Token::RParen);
            let called = at > 0 && matches!(tokens[at - 1].token, Token::Word(_));
            if empty && !called && open.last().is_some_and(|(_, inner)| *inner) {
                tokens.insert(at, word("row"));
                at += 1;
            }
            depth += 1;
        } else if tokens[at].token == Token::RParen {
            if open.last().is_some_and(|(own, _)| *own == depth) {
                open.pop();
            }
            depth = depth.saturating_sub(1);
        }
        at += 1;
    }
}

/// Writes the keys behind DISTINCT, which stands at this place, as sets.
fn distinct(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let mut depth = 0usize;
    let end = (at + 1..tokens.len()).find(|n| match &tokens[*n].token {
        Token::LParen => {
            depth += 1;
            false
        }
        Token::RParen | Token::SemiColon | Token::EOF if depth == 0 => true,
        Token::RParen => {
            depth -= 1;
            false
        }
        token => depth == 0 && ends_keys(token),
    });
    let end = end.unwrap_or(tokens.len());
    if end == at + 1 {
        return;
    }
    tokens.splice(end..end, [wrap(Token::RParen), wrap(Token::RParen)]);
    let words = [word("grouping"), word("sets"), wrap(Token::LParen)];
    let call = [word(DISTINCT_SETS), wrap(Token::LParen)];
    tokens.splice(at..=at, words.into_iter().chain(call));
}

/// Whether the list of GROUP BY DISTINCT begins here.
fn is_distinct(tokens: &[TokenWithSpan], at: usize) -> bool {
    let Some([name, open]) = tokens.get(at..at + 2) else { return false };
    token_is(&name.token, DISTINCT_SETS) && open.token == Token::LParen
}

/// Whether GROUPING SETS and its parenthesis are here.
fn is_sets(tokens: &[TokenWithSpan], at: usize) -> bool {
    let Some([grouping, sets, open]) = tokens.get(at..at + 3) else { return false };
    token_is(&grouping.token, "grouping")
        && token_is(&sets.token, "sets")
        && open.token == Token::LParen
}

/// Whether keys of GROUP BY follow, and not the end of it.
fn begins_a_key(token: Option<&Token>) -> bool {
    match token {
        Some(token @ Token::Word(_)) => !ends_keys(token),
        Some(Token::LParen | Token::Number(..)) => true,
        _ => false,
    }
}

fn ends_keys(token: &Token) -> bool {
    let ends = ["having", "window", "order", "limit", "offset", "fetch", "for"];
    let ends_too = ["union", "intersect", "except"];
    ends.iter().chain(&ends_too).any(|w| token_is(token, w))
}

#[cfg(test)]
mod tests {
    #[test]
    fn sets_may_stand_in_sets() {
        for (sql, shown) in [
            (
                "select 1 from t group by grouping sets (a, grouping sets ((), cube (b), f()))",
                "GROUPING SETS ((a), (grouping_sets(row(), cube(b), f())))",
            ),
            ("select 1 from t group by grouping sets ((), (a, b))", "GROUPING SETS ((), (a, b))"),
            ("select 1 from t group by all a, rollup (b)", "GROUP BY a, ROLLUP (b)"),
            ("select 1 from t group by all", "GROUP BY ALL"),
            (
                "select (select 1 from t group by distinct a, rollup ((b, c)) order by 1)",
                "GROUP BY GROUPING SETS ((distinct_sets(a, rollup((b, c))))) ORDER BY 1)",
            ),
            (
                "select 1 from t group by distinct grouping sets (a, ()), b having true",
                "GROUPING SETS ((distinct_sets(grouping_sets(a, row()), b))) HAVING true",
            ),
        ] {
            let parsed = crate::parse_query(sql).unwrap().to_string();
            assert!(parsed.ends_with(shown), "{parsed}");
        }
    }
}
