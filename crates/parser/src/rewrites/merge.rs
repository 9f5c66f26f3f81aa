//! What MERGE may say that sqlparser does not read.
//!
//! ```text
//!   WHEN MATCHED THEN DO NOTHING        UPDATE SET mark = NULL
//!   WHEN NOT MATCHED THEN DO NOTHING    INSERT (mark) VALUES (NULL)
//! ```

use braid_types::{SqlError, SqlResult};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::token_is;
use crate::script::{word, wrap};

/// The column that DO NOTHING of MERGE writes to. No name that can be typed has that character.
pub const MERGE_NOTHING: &str = "\0nothing";

/// Writes these clauses in words that sqlparser reads.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    if !tokens.iter().any(|t| token_is(&t.token, "merge")) {
        return Ok(());
    }
    let mut at = 0;
    // Of the last WHEN [NOT] MATCHED.
    let mut matched = None;
    while at < tokens.len() {
        let says = |words: &[&str]| {
            words
                .iter()
                .enumerate()
                .all(|(n, word)| tokens.get(at + n).is_some_and(|t| token_is(&t.token, word)))
        };
        if says(&["when", "matched"]) {
            matched = Some(true);
        } else if says(&["when", "not", "matched"]) {
            matched = Some(false);
        } else if says(&["then", "insert", "default", "values"]) {
            return Err(SqlError::unsupported("INSERT DEFAULT VALUES in MERGE")
                .with_hint("Give one of the columns a value."));
        } else if says(&["then", "do", "nothing"])
            && let Some(matched) = matched
        {
            let mark = wrap(Token::make_word(MERGE_NOTHING, Some('"')));
            let (open, close) = (|| wrap(Token::LParen), || wrap(Token::RParen));
            let new = match matched {
                true => vec![word("update"), word("set"), mark, wrap(Token::Eq), word("null")],
                false => [
                    [word("insert"), open(), mark, close()],
                    [word("values"), open(), word("null"), close()],
                ]
                .concat(),
            };
            tokens.splice(at + 1..at + 3, new);
        }
        at += 1;
    }
    Ok(())
}
