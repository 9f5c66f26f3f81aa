//! Spanner's commit timestamps.
//!
//! ```text
//!   at TIMESTAMP OPTIONS (allow_commit_timestamp = true)           at spanner.commit_timestamp
//!   SPANNER.PENDING_COMMIT_TIMESTAMP()                             pending_commit_timestamp()
//!   ALTER COLUMN at SET OPTIONS (allow_commit_timestamp = true)    is read as it is
//! ```

use braid_types::{SqlError, SqlResult};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{Cursor, token_is};
use crate::script::{word, wrap};

const OPTION: &str = "allow_commit_timestamp";

/// Rewrites what is at a place of a statement's tokens.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>, at: usize) -> SqlResult<()> {
    let is = |n: usize, text: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, text));
    let before = |n: usize, text: &str| at >= n && is(at - n, text);
    if is(at, "pending_commit_timestamp") {
        if before(2, "spanner") && tokens[at - 1].token == Token::Period {
            tokens.drain(at - 2..at);
        }
        return Ok(());
    }
    if !is(at, OPTION) || !before(2, "options") || before(3, "set") {
        return Ok(());
    }
    let mut c = Cursor::new(tokens[at - 1..].to_vec());
    let allow = option(&mut c)?;
    let end = at - 1 + c.at();
    let ty = type_of_column(tokens, at - 2);
    tokens.drain(at - 2..end);
    if allow {
        let known = |ty: &usize| {
            ["timestamp", "timestamptz"].iter().any(|w| token_is(&tokens[*ty].token, w))
        };
        let ty = ty.filter(known).ok_or_else(|| {
            SqlError::unsupported(format!("{OPTION} of another type than TIMESTAMP"))
        })?;
        tokens.splice(ty..=ty, [word("spanner"), wrap(Token::Period), word("commit_timestamp")]);
    }
    Ok(())
}

/// `(allow_commit_timestamp = true | false | null)`.
pub(crate) fn option(c: &mut Cursor) -> SqlResult<bool> {
    c.expect_token(&Token::LParen)?;
    c.expect(&[OPTION])?;
    c.expect_token(&Token::Eq)?;
    let allow = c.take(&["true"]);
    if !allow && !c.take(&["null"]) && !c.take(&["false"]) {
        return Err(c.unexpected());
    }
    c.expect_token(&Token::RParen)?;
    Ok(allow)
}

/// Where the type of the column stands whose options stand there: behind the column's name, which
/// is the first of an item in parentheses, or stands behind ADD COLUMN.
fn type_of_column(tokens: &[TokenWithSpan], options: usize) -> Option<usize> {
    let is = |n: usize, text: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, text));
    let mut depth = 0;
    for n in (0..options).rev() {
        match tokens[n].token {
            Token::RParen => depth += 1,
            Token::LParen if depth > 0 => depth -= 1,
            Token::LParen => return Some(n + 2),
            Token::Comma if depth == 0 => return Some(n + 2),
            _ if depth == 0 && is(n, "add") => {
                let mut name = n + 1;
                name += usize::from(is(name, "column"));
                name += if is(name, "if") { 3 } else { 0 };
                return Some(name + 1);
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> SqlResult<String> {
        let mut tokens = crate::lexical::tokens(sql).unwrap();
        let mut at = 0;
        while at < tokens.len() {
            rewrite(&mut tokens, at)?;
            at += 1;
        }
        Ok(tokens.iter().map(|t| t.token.to_string()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn columns_say_it_by_their_type() {
        for (sql, want) in [
            (
                "create table t (a int64, at timestamp not null options (allow_commit_timestamp = \
                 true), b int64)",
                "create table t ( a int64 , at spanner . commit_timestamp not null , b int64 )",
            ),
            (
                "create table t (at timestamp options (allow_commit_timestamp=null), b int8)",
                "create table t ( at timestamp , b int8 )",
            ),
            (
                "alter table t add column if not exists at timestamp options \
                 (allow_commit_timestamp = true)",
                "alter table t add column if not exists at spanner . commit_timestamp",
            ),
            (
                "alter table t alter column at set options (allow_commit_timestamp = true)",
                "alter table t alter column at set options ( allow_commit_timestamp = true )",
            ),
            (
                "insert into t values (spanner.pending_commit_timestamp(), a.b)",
                "insert into t values ( pending_commit_timestamp ( ) , a . b )",
            ),
            (
                "select allow_commit_timestamp from options",
                "select allow_commit_timestamp from options",
            ),
        ] {
            assert_eq!(shown(sql).unwrap(), want, "{sql}");
        }
        let date = "create table t (at date options (allow_commit_timestamp = true))";
        assert_eq!(shown(date).unwrap_err().state().0, "0A000");
        let other = "create table t (at timestamp options (allow_commit_timestamp = 7))";
        assert_eq!(shown(other).unwrap_err().state().0, "42601");
    }
}
