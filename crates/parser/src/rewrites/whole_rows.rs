//! Whole rows beside operators, which sqlparser reads as stars of a select list.
//!
//! ```text
//!   t.* <> excluded.*        t <> excluded
//!   t.*::text                t::text
//! ```

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::token_is;

/// Takes the stars away.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 2 < tokens.len() {
        let is_star = matches!(tokens[at].token, Token::Word(_))
            && tokens[at + 1].token == Token::Period
            && tokens[at + 2].token == Token::Mul;
        let after = tokens.get(at + 3).map(|t| &t.token);
        let before = at.checked_sub(1).map(|before| &tokens[before].token);
        if is_star
            && (after.is_some_and(|t| compares(t) || *t == Token::DoubleColon || token_is(t, "is"))
                || before.is_some_and(compares))
        {
            tokens.drain(at + 1..at + 3);
        }
        at += 1;
    }
}

fn compares(token: &Token) -> bool {
    matches!(token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq)
}

#[cfg(test)]
mod tests {
    use crate::{Kind, parse_script};

    fn read(sql: &str) -> String {
        let all = parse_script(sql).unwrap();
        match &*all[0].kind {
            Kind::Sql(statement) => statement.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn stars_beside_operators_are_rows() {
        assert_eq!(
            read("SELECT t.*, t.*::text FROM t WHERE t.* <> u.* AND t.* IS NULL"),
            "SELECT t.*, t::TEXT FROM t WHERE t <> u AND t IS NULL"
        );
        let plain = "SELECT count(t.*), t.* FROM t WHERE f(t.*) = 1 AND a = t.b * 2";
        assert_eq!(read(plain), plain);
    }
}
