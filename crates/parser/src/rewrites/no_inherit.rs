//! NO INHERIT of a CHECK, for which sqlparser has no form, and NOT VALID around it.
//!
//! ```text
//!   CHECK (a > 0) NO INHERIT                     CHECK ("\0no inherit" AND (a > 0))
//!   CHECK (a > 0) NOT VALID NO INHERIT           CHECK (a > 0) NO INHERIT NOT VALID
//!   CREATE TABLE t (a int, CHECK (a > 0) NOT VALID)      without it: there are no rows
//! ```

use sqlparser::ast::{BinaryOperator, Expr};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::token_is;
use crate::script::{word, wrap};

/// What stands before the condition. No name that can be typed has that character.
const MARK: &str = "\0no inherit";

/// The condition of a CHECK, and whether it says NO INHERIT.
pub fn take_no_inherit(condition: &Expr) -> (&Expr, bool) {
    if let Expr::BinaryOp { left, op: BinaryOperator::And, right } = condition
        && matches!(&**left, Expr::Identifier(name) if name.value == MARK)
        && let Expr::Nested(condition) = &**right
    {
        return (condition, true);
    }
    (condition, false)
}

/// Whether these words stand at a place.
fn says(tokens: &[TokenWithSpan], at: usize, words: &[&str]) -> bool {
    let mut all = words.iter().enumerate();
    all.all(|(n, word)| tokens.get(at + n).is_some_and(|t| token_is(&t.token, word)))
}

/// Takes NOT VALID out of the constraints of a table that is made: it has no rows that could
/// violate them.
fn all_are_valid(tokens: &mut Vec<TokenWithSpan>) {
    let is_table = tokens.iter().take(5).any(|t| token_is(&t.token, "table"));
    if !is_table || !says(tokens, 0, &["create"]) {
        return;
    }
    let (mut depth, mut at, mut is_constraint) = (0usize, 0, false);
    while at < tokens.len() {
        let begins = matches!(tokens[at].token, Token::LParen | Token::Comma);
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 1 && begins {
            let words = ["constraint", "check", "foreign"];
            is_constraint = words.iter().any(|word| says(tokens, at + 1, &[word]));
        }
        if depth == 1 && is_constraint && says(tokens, at, &["not", "valid"]) {
            tokens.drain(at..at + 2);
        } else {
            at += 1;
        }
    }
}

/// Puts the mark into the condition in front of each.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    all_are_valid(tokens);
    let mut at = 0;
    while at + 2 < tokens.len() {
        if tokens[at].token == Token::RParen
            && says(tokens, at + 1, &["not", "valid", "no", "inherit"])
        {
            tokens[at + 1..at + 5].rotate_left(2);
        }
        let here = tokens[at].token == Token::RParen
            && token_is(&tokens[at + 1].token, "no")
            && token_is(&tokens[at + 2].token, "inherit");
        if here && let Some(open) = opening(tokens, at) {
            tokens.splice(at..at + 3, [wrap(Token::RParen), wrap(Token::RParen)]);
            let mark = wrap(Token::make_word(MARK, Some('"')));
            tokens.splice(open + 1..open + 1, [mark, word("and"), wrap(Token::LParen)]);
        }
        at += 1;
    }
}

/// Where the condition of a CHECK opens that closes here.
fn opening(tokens: &[TokenWithSpan], close: usize) -> Option<usize> {
    let mut depth = 0usize;
    for at in (0..close).rev() {
        match &tokens[at].token {
            Token::RParen => depth += 1,
            Token::LParen if depth > 0 => depth -= 1,
            Token::LParen => {
                return (at > 0 && token_is(&tokens[at - 1].token, "check")).then_some(at);
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::{Kind, parse_script};

    #[test]
    fn a_check_says_no_inherit_within_its_condition() {
        for sql in [
            "create table t (a int check (a > (1)) no inherit, check (a < 9))",
            "alter table t add constraint c check (a > (1)) no inherit not valid",
            "alter table t add constraint c check (a > (1)) not valid no inherit",
            "create table t (a int, check (a > (1)) not valid no inherit)",
            "create table t (a int, constraint c check (a > 1) no inherit not valid, b int)",
        ] {
            let all = parse_script(sql).unwrap();
            let shown = format!("{:?}", all[0].kind);
            assert_eq!(shown.matches("no inherit").count(), 1, "{shown}");
            assert!(!matches!(&*all[0].kind, Kind::Empty));
        }
    }
}
