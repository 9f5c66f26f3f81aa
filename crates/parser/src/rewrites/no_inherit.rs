//! NO INHERIT of a CHECK, for which sqlparser has no form.
//!
//! ```text
//!   CHECK (a > 0) NO INHERIT        CHECK ("\0no inherit" AND (a > 0))
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

/// Puts the mark into the condition in front of each.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 2 < tokens.len() {
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
        ] {
            let all = parse_script(sql).unwrap();
            let shown = format!("{:?}", all[0].kind);
            assert_eq!(shown.matches("no inherit").count(), 1, "{shown}");
            assert!(!matches!(&*all[0].kind, Kind::Empty));
        }
    }
}
