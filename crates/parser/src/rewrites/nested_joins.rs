//! Joins whose right side is a join without brackets, which sqlparser reads only with them.
//!
//! ```text
//!   a LEFT JOIN b JOIN c ON x ON y        a LEFT JOIN (b JOIN c ON x) ON y
//! ```
//! Each ON or USING is that of the last JOIN before it that has none yet.

use braid_types::{SqlError, SqlResult};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::token_is;
use crate::script::wrap;

/// A JOIN whose condition is still to come.
struct Open {
    /// Where its right side begins.
    right: usize,
    /// Whether that is a join.
    nested: bool,
}

/// Puts the brackets around such right sides.
///
/// # Errors
/// 42601 for a JOIN without a condition.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    if !tokens.iter().any(|t| token_is(&t.token, "join")) {
        return Ok(());
    }
    // For each bracket around this place, the joins that are open in it.
    let mut levels: Vec<Vec<Open>> = vec![Vec::new()];
    let mut brackets: Vec<(usize, Token)> = Vec::new();
    for (at, t) in tokens.iter().enumerate() {
        match &t.token {
            Token::LParen => levels.push(Vec::new()),
            Token::RParen => {
                if levels.pop().is_some_and(|open| !open.is_empty()) {
                    return Err(SqlError::syntax("syntax error at or near \")\"")
                        .or_at(t.span.start.line, t.span.start.column));
                }
                if levels.is_empty() {
                    levels.push(Vec::new());
                }
            }
            token if token_is(token, "join") => {
                let Some(open) = levels.last_mut() else { return Ok(()) };
                if let Some(around) = open.last_mut() {
                    around.nested = true;
                }
                if wants_condition(&tokens[..at]) {
                    open.push(Open { right: at + 1, nested: false });
                }
            }
            token if token_is(token, "on") || token_is(token, "using") => {
                let Some(of) = levels.last_mut().and_then(Vec::pop) else { continue };
                if of.nested {
                    brackets.push((of.right, Token::LParen));
                    brackets.push((at, Token::RParen));
                }
            }
            _ => {}
        }
    }
    if levels.iter().any(|open| !open.is_empty()) {
        return Err(SqlError::syntax("syntax error at end of input"));
    }
    // From the end, so that places stay.
    brackets.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (at, bracket) in brackets {
        tokens.insert(at, wrap(bracket));
    }
    Ok(())
}

/// Whether a JOIN behind these words has ON or USING: not CROSS JOIN and NATURAL JOIN.
fn wants_condition(before: &[TokenWithSpan]) -> bool {
    let mut words = before.iter().rev().map(|t| &t.token);
    let sides = ["inner", "left", "right", "full", "outer"];
    let first = words.find(|t| !sides.iter().any(|side| token_is(t, side)));
    !first.is_some_and(|t| token_is(t, "cross") || token_is(t, "natural"))
}

#[cfg(test)]
mod tests {
    use crate::{Kind, parse_script};

    fn read(from: &str) -> String {
        let all = parse_script(&format!("SELECT 1 FROM {from}")).unwrap();
        match &*all[0].kind {
            Kind::Sql(statement) => statement.to_string()["SELECT 1 FROM ".len()..].to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_join_on_the_right_stands_in_brackets() {
        assert_eq!(
            read("a LEFT JOIN b JOIN c ON x ON y JOIN d ON z"),
            "a LEFT JOIN (b JOIN c ON x) ON y JOIN d ON z"
        );
        assert_eq!(
            read("a JOIN b JOIN c JOIN d ON x ON y ON z"),
            "a JOIN (b JOIN (c JOIN d ON x) ON y) ON z"
        );
        assert_eq!(
            read("a JOIN b LEFT JOIN c USING(x) JOIN d ON y USING(z)"),
            "a JOIN (b LEFT JOIN c USING(x) JOIN d ON y) USING(z)"
        );
        assert_eq!(read("a JOIN b CROSS JOIN c ON x"), "a JOIN (b CROSS JOIN c) ON x");
        for bad in ["a JOIN b", "a JOIN b JOIN c ON x", "(a LEFT JOIN b) AS s"] {
            assert!(parse_script(&format!("SELECT 1 FROM {bad}")).is_err(), "{bad}");
        }
        for plain in [
            "a JOIN b ON x JOIN c ON y",
            "a NATURAL JOIN b JOIN c ON x",
            "a CROSS JOIN b LEFT JOIN c ON x",
            "(SELECT 1 FROM a JOIN b ON x) AS s JOIN c ON left(d, 1) = e",
        ] {
            assert_eq!(read(plain), plain);
        }
    }
}
