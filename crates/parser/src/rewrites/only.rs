//! `FROM ONLY t`, for which sqlparser has no form: a mark before the name.
//!
//! ```text
//!   FROM ONLY s.t AS x, ONLY (u)      FROM "\0only".s.t AS x, "\0only".u
//! ```
//! Tables inherit nothing here, so that ONLY says something of partitioned tables alone: their rows
//! are all in their partitions, and ONLY of them has none. Who asks for the parts of a name does
//! not get the mark (`braid_scalar::object_name_parts`).

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::wrap;

/// No name that can be typed has that character.
pub(super) const ONLY: &str = "\0only";

/// Writes the mark for each ONLY before a table's name.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|t| token_is(&t.token, "only")) {
        return;
    }
    let mut at = 1;
    while at + 1 < tokens.len() {
        if token_is(&tokens[at].token, "only") && precedes_table(tokens, at) {
            one(tokens, at);
        }
        at += 1;
    }
}

/// Whether what stands around this ONLY makes it one of a table.
fn precedes_table(tokens: &[TokenWithSpan], at: usize) -> bool {
    const BEFORE: [&str; 4] = ["from", "join", "update", "using"];
    let merges = at > 1 && token_is(&tokens[at - 2].token, "merge");
    let before = &tokens[at - 1].token;
    let named = match &tokens[at + 1].token {
        Token::LParen => true,
        Token::Word(w) => w.quote_style.is_some() || !["from", "as"].iter().any(|k| w.value == *k),
        _ => false,
    };
    let follows = BEFORE.iter().any(|word| token_is(before, word));
    named && (*before == Token::Comma || follows || merges && token_is(before, "into"))
}

fn one(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    if tokens[at + 1].token == Token::LParen {
        let Some(close) = closing(tokens, at + 1) else { return };
        tokens.remove(close);
        tokens.remove(at + 1);
    }
    // An error about the name is told where the name is.
    let span = tokens[at + 1].span;
    tokens[at] = TokenWithSpan { token: Token::make_word(ONLY, Some('"')), span };
    tokens.insert(at + 1, wrap(Token::Period));
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_is_a_mark_before_the_name() {
        let shown = |sql: &str| crate::parse_query(sql).unwrap().to_string().replace('\0', "~");
        assert_eq!(
            shown("select * from only s.t x join only (u) using (a), only v order by 1"),
            "SELECT * FROM \"~only\".s.t x JOIN \"~only\".u USING(a), \"~only\".v ORDER BY 1"
        );
        assert_eq!(shown("select a from t fetch first 2 rows only"), "SELECT a FROM t LIMIT 2");
    }
}
