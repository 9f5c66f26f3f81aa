//! `ROWS FROM (f(..), g(..))`, for which sqlparser has no form: several functions side by side.
//!
//! ```text
//!   FROM ROWS FROM (f(1), g(2)) AS t                FROM "rows from"(f(1), g(2)) AS t
//!   FROM ROWS FROM (f(1) AS (a int, b text))        FROM "rows from"("as"(f(1), 'a int, b text'))
//! ```

use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use braid_types::SqlResult;

use super::recursion::spaced;
use crate::cursor::{closing, token_is};
use crate::script::wrap;

/// The function that stands for ROWS FROM. No name that can be typed has that character.
pub const ROWS_FROM: &str = "\0rows from";

/// The function around a call that has a list of columns.
pub const WITH_COLUMNS: &str = "\0as";

/// The columns of a list.
///
/// # Errors
/// 42601.
pub fn column_list(text: &str) -> SqlResult<Vec<ast::TableAliasColumnDef>> {
    let query = crate::parse_query(&format!("SELECT FROM f() AS t ({text})"))?;
    let ast::SetExpr::Select(select) = *query.body else { return Ok(Vec::new()) };
    let relation = select.from.into_iter().next().map(|from| from.relation);
    Ok(match relation {
        Some(
            ast::TableFactor::Table { alias: Some(alias), .. }
            | ast::TableFactor::Function { alias: Some(alias), .. },
        ) => alias.columns,
        _ => Vec::new(),
    })
}

/// Writes each ROWS FROM as a call.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 2 < tokens.len() {
        let word = |n: usize, text: &str| token_is(&tokens[at + n].token, text);
        let found = word(0, "rows") && word(1, "from") && tokens[at + 2].token == Token::LParen;
        if found && let Some(close) = closing(tokens, at + 2) {
            lists(tokens, at + 3, close);
            let name = Token::make_word(ROWS_FROM, Some('"'));
            tokens.splice(at..at + 2, [wrap(name)]);
        }
        at += 1;
    }
}

/// Writes the calls with lists of columns among those from `start` on, from the last to the first.
fn lists(tokens: &mut Vec<TokenWithSpan>, start: usize, end: usize) {
    let (mut depth, mut places) = (0usize, Vec::new());
    let mut first = start;
    for (at, token) in tokens.iter().enumerate().take(end).skip(start) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => first = at + 1,
            token if depth == 0 && token_is(token, "as") => places.push((first, at)),
            _ => {}
        }
    }
    for (first, at) in places.into_iter().rev() {
        if tokens.get(at + 1).is_none_or(|t| t.token != Token::LParen) {
            continue;
        }
        let Some(close) = closing(tokens, at + 1) else { continue };
        let text = wrap(Token::SingleQuotedString(spaced(&tokens[at + 2..close])));
        tokens.splice(at..=close, [wrap(Token::Comma), text, wrap(Token::RParen)]);
        let name = wrap(Token::make_word(WITH_COLUMNS, Some('"')));
        tokens.splice(first..first, [name, wrap(Token::LParen)]);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn functions_side_by_side_are_a_call() {
        let shown = |sql: &str| crate::parse_query(sql).unwrap().to_string().replace('\0', "~");
        assert_eq!(
            shown("select * from rows from (f(1), g(2, 3)) with ordinality as t (a, b)"),
            "SELECT * FROM \"~rows from\"(f(1), g(2, 3)) WITH ORDINALITY AS t (a, b)"
        );
        assert_eq!(
            shown("select * from rows from (f(x) as (a int, b numeric(3, 1)), g(1)) t"),
            "SELECT * FROM \"~rows from\"(\"~as\"(f(x), 'a int, b numeric ( 3, 1 )'), g(1)) t"
        );
        let columns = super::column_list("a int , b numeric ( 3 , 1 )").unwrap();
        let shown: Vec<String> = columns.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["a INT", "b NUMERIC(3,1)"]);
    }
}
