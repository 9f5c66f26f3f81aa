//! `JOIN u USING (a) AS j`, for which sqlparser has no form: the alias is a mark among the names.
//!
//! ```text
//!   t JOIN u USING (a) AS j      t JOIN u USING (a, "\0join j")
//! ```

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, fold, token_is};
use crate::script::wrap;

/// What the mark begins with. No name that can be typed has that character.
pub(super) const JOIN_ALIAS: &str = "\0join ";

/// Writes the mark for each such alias.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at + 1 < tokens.len() {
        if token_is(&tokens[at].token, "using")
            && tokens[at + 1].token == Token::LParen
            && let Some(close) = closing(tokens, at + 1)
            && let Some([by, Some(alias)]) =
                tokens.get(close + 1..close + 3).map(|t| [Some(&t[0].token), Some(&t[1].token)])
            && by.is_some_and(|token| token_is(token, "as"))
            && let Token::Word(alias) = alias
            && !is_of_time(&tokens[close + 1..])
            && is_of_join(&tokens[..at])
        {
            let mark = Token::make_word(&format!("{JOIN_ALIAS}{}", fold(alias)), Some('"'));
            tokens.drain(close + 1..close + 3);
            tokens.splice(close..close, [wrap(Token::Comma), wrap(mark)]);
        }
        at += 1;
    }
}

/// AS OF SYSTEM TIME is no alias.
fn is_of_time(tokens: &[TokenWithSpan]) -> bool {
    let words = ["as", "of", "system", "time"];
    words.iter().enumerate().all(|(at, w)| tokens.get(at).is_some_and(|t| token_is(&t.token, w)))
}

/// Whether the last word before this place that could have a USING is JOIN.
fn is_of_join(before: &[TokenWithSpan]) -> bool {
    let mut depth = 0usize;
    for t in before.iter().rev() {
        match &t.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            token if depth == 0 && token_is(token, "join") => return true,
            Token::Comma if depth == 0 => return false,
            token if depth == 0 && ["from", "into", "on"].iter().any(|w| token_is(token, w)) => {
                return false;
            }
            _ => {}
        }
    }
    false
}

/// Takes the alias of a join from the names of its USING.
pub fn take_join_alias(names: &mut Vec<String>) -> Option<String> {
    let alias = names.last()?.strip_prefix(JOIN_ALIAS)?.to_string();
    names.pop();
    Some(alias)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_alias_of_a_join_is_a_mark_among_its_columns() {
        let shown = |sql: &str| crate::parse_query(sql).unwrap().to_string().replace('\0', "~");
        assert_eq!(
            shown("select j.a from t join (u join v using (b) as k) using (a, b) as J"),
            "SELECT j.a FROM t JOIN (u JOIN v USING(b, \"~join k\")) USING(a, b, \"~join j\")"
        );
    }
}
