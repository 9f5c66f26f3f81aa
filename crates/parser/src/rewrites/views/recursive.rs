//! CREATE RECURSIVE VIEW, as the view that it means.
//!
//! ```text
//!   CREATE RECURSIVE VIEW s.v (a) AS q
//!   CREATE VIEW s.v (a) AS WITH RECURSIVE v (a) AS (q) SELECT a FROM v
//! ```

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::{word, wrap};

/// Writes each of them anew.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 1 < tokens.len() {
        let here = token_is(&tokens[at].token, "recursive")
            && token_is(&tokens[at + 1].token, "view")
            && is_created(&tokens[..at]);
        // What is no view with columns and a query is refused as it stands.
        if here && let Some((from, to, query)) = query(tokens, at + 2) {
            tokens.splice(from..to, query);
            tokens.remove(at);
        }
        at += 1;
    }
}

/// CREATE, OR REPLACE, TEMPORARY.
fn is_created(before: &[TokenWithSpan]) -> bool {
    let mut words = before.iter().rev();
    let word = words.find(|t| {
        !["temp", "temporary", "or", "replace"].iter().any(|word| token_is(&t.token, word))
    });
    word.is_some_and(|t| token_is(&t.token, "create"))
}

/// Where the query of a view stands whose name begins here, and the one in its place.
fn query(tokens: &[TokenWithSpan], name: usize) -> Option<(usize, usize, Vec<TokenWithSpan>)> {
    let open = name + tokens[name..].iter().position(|t| t.token == Token::LParen)?;
    let close = closing(tokens, open)?;
    if !tokens.get(close + 1).is_some_and(|t| token_is(&t.token, "as")) {
        return None;
    }
    let from = close + 2;
    let length = tokens[from..].iter().position(|t| t.token == Token::SemiColon);
    let to = length.map_or(tokens.len(), |length| from + length);
    let bare = tokens[open - 1].clone();
    let columns = &tokens[open + 1..close];
    let mut out = vec![word("with"), word("recursive"), bare.clone()];
    out.extend_from_slice(&tokens[open..=close]);
    out.extend([word("as"), wrap(Token::LParen)]);
    out.extend_from_slice(&tokens[from..to]);
    out.extend([wrap(Token::RParen), word("select")]);
    out.extend_from_slice(columns);
    out.extend([word("from"), bare]);
    Some((from, to, out))
}

#[cfg(test)]
mod tests {
    use crate::parse_script;

    #[test]
    fn a_recursive_view_is_a_view_of_a_recursive_query() {
        let all = parse_script(
            "create or replace temp recursive view s.v (a, b) as select 1, 2; select 1",
        );
        let all = all.expect("two statements");
        assert_eq!(all.len(), 2);
        let shown = format!("{:?}", all[0].kind);
        assert!(shown.contains("recursive: true"), "{shown}");
        for sql in ["create recursive view v as select 1", "create recursive table v (a int)"] {
            assert!(parse_script(sql).is_err(), "{sql}");
        }
    }
}
