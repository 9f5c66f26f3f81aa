//! What MERGE may say that sqlparser does not read.
//!
//! ```text
//!   WHEN MATCHED THEN DO NOTHING        UPDATE SET mark = NULL
//!   WHEN NOT MATCHED THEN DO NOTHING    INSERT (mark) VALUES (NULL)
//!   .. THEN INSERT DEFAULT VALUES       INSERT (mark) VALUES (NULL)
//!   USING a JOIN b ON .. ON ..          USING (a JOIN b ON ..) ON ..
//! ```

use braid_types::SqlResult;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::token_is;
use crate::script::{word, wrap};

/// The column that DO NOTHING of MERGE writes to. No name that can be typed has that character.
pub const MERGE_NOTHING: &str = "\0nothing";

/// The same of INSERT DEFAULT VALUES.
pub const MERGE_DEFAULTS: &str = "\0defaults";

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
        } else if says(&["merge", "into"]) {
            bracket_source(tokens, at);
        } else if says(&["then", "insert", "default", "values"]) {
            tokens.splice(at + 1..at + 4, insert(MERGE_DEFAULTS));
        } else if says(&["then", "do", "nothing"])
            && let Some(matched) = matched
        {
            let mark = wrap(Token::make_word(MERGE_NOTHING, Some('"')));
            let new = match matched {
                true => vec![word("update"), word("set"), mark, wrap(Token::Eq), word("null")],
                false => insert(MERGE_NOTHING),
            };
            tokens.splice(at + 1..at + 3, new);
        }
        at += 1;
    }
    Ok(())
}

/// `INSERT (mark) VALUES (NULL)`.
fn insert(mark: &str) -> Vec<TokenWithSpan> {
    let mark = wrap(Token::make_word(mark, Some('"')));
    let (open, close) = (|| wrap(Token::LParen), || wrap(Token::RParen));
    [[word("insert"), open(), mark, close()], [word("values"), open(), word("null"), close()]]
        .concat()
}

/// Puts a source that is a join into brackets. Of what stands outside of brackets before the first
/// WHEN, the last ON is that of MERGE: the others belong to the joins.
fn bracket_source(tokens: &mut Vec<TokenWithSpan>, merge: usize) {
    let (mut depth, mut using, mut on, mut joins) = (0usize, None, None, false);
    for (at, token) in tokens.iter().enumerate().skip(merge) {
        match &token.token {
            Token::LParen => depth += 1,
            // MERGE stands in brackets itself.
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            _ if depth > 0 => {}
            t if token_is(t, "when") => break,
            t if token_is(t, "using") && using.is_none() => using = Some(at),
            t if token_is(t, "on") => on = Some(at),
            t if token_is(t, "join") => joins = true,
            _ => {}
        }
    }
    if let (Some(using), Some(on), true) = (using, on, joins) {
        tokens.insert(on, wrap(Token::RParen));
        tokens.insert(using + 1, wrap(Token::LParen));
    }
}
