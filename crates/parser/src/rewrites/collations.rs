//! COLLATE behind a cast, where sqlparser knows none.
//!
//! ```text
//!   a::text COLLATE "C"     a::text
//! ```
//! There is one order of text: a collation that means it says nothing, and another one is refused.

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::token_is;

/// Collations that sort by bytes, or as the database does.
const BYTES: [&str; 5] = ["C", "POSIX", "default", "ucs_basic", "C.UTF-8"];

/// Leaves them out.
///
/// # Errors
/// 42704 for another collation.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    let mut at = 2;
    while at + 1 < tokens.len() {
        if token_is(&tokens[at].token, "collate") && is_behind_cast(tokens, at) {
            let end = end_of_known(tokens, at + 1)?;
            tokens.drain(at..end);
        } else {
            at += 1;
        }
    }
    Ok(())
}

/// Whether nothing but a type stands between here and a `::`.
fn is_behind_cast(tokens: &[TokenWithSpan], at: usize) -> bool {
    let of_type = |t: &TokenWithSpan| {
        matches!(
            t.token,
            Token::Word(_)
                | Token::Number(..)
                | Token::Period
                | Token::Comma
                | Token::LParen
                | Token::RParen
                | Token::LBracket
                | Token::RBracket
        )
    };
    let before = tokens[..at].iter().rev().find(|t| !of_type(t));
    before.is_some_and(|t| t.token == Token::DoubleColon)
}

fn end_of_known(tokens: &[TokenWithSpan], at: usize) -> SqlResult<usize> {
    let word = |n: usize| match tokens.get(n).map(|t| &t.token) {
        Some(Token::Word(word)) => word.value.as_str(),
        _ => "",
    };
    let qualified = word(at).eq_ignore_ascii_case("pg_catalog")
        && tokens.get(at + 1).is_some_and(|t| t.token == Token::Period);
    let at = if qualified { at + 2 } else { at };
    if BYTES.contains(&word(at)) {
        return Ok(at + 1);
    }
    let error = SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("collation \"{}\" for encoding \"UTF8\" does not exist", word(at)),
    )
    .with_hint("Text is ordered by its bytes: collations C and default are here.");
    Err(match tokens.get(at).map(|t| t.span.start) {
        Some(start) => error.or_at(start.line, start.column),
        None => error,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_order_of_bytes_may_be_named_behind_a_cast() {
        let shown = |sql: &str| crate::parse_query(sql).unwrap().to_string();
        assert_eq!(shown("select a::text collate \"C\" b"), "SELECT a::TEXT AS b");
        assert_eq!(
            shown("select 1 order by a::varchar(3)[] collate pg_catalog.\"default\" desc"),
            "SELECT 1 ORDER BY a::VARCHAR(3)[] DESC"
        );
        assert!(crate::parse_query("select a::text collate \"de_DE\"").is_err());
        assert!(shown("select lower(a) collate \"de_DE\"").contains("COLLATE"));
    }
}
