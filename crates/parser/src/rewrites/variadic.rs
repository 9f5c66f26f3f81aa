//! `f(a, VARIADIC list)`: a call whose last arguments are the elements of an array. sqlparser does
//! not know the word; the array is written as a call, which the binder knows: [`VARIADIC`].

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::token_is;
use crate::script::wrap;

/// What marks the array, for the binder.
const VARIADIC: &str = "variadic array";

/// Rewrites all calls of a script.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at + 1 < tokens.len() {
        let in_call = matches!(tokens[at - 1].token, Token::LParen | Token::Comma);
        if in_call
            && token_is(&tokens[at].token, "variadic")
            && !declares(tokens, at + 1)
            && let Some(end) = end_of_call(tokens, at + 1)
        {
            tokens.insert(end, wrap(Token::RParen));
            tokens[at].token = Token::make_word(VARIADIC, Some('"'));
            tokens.insert(at + 1, wrap(Token::LParen));
        }
        at += 1;
    }
}

/// Whether a parameter of a function is declared here: by a name and a type, or by a type.
fn declares(tokens: &[TokenWithSpan], at: usize) -> bool {
    let token = |n: usize| tokens.get(at + n).map(|t| &t.token);
    let word = |n: usize| matches!(token(n), Some(Token::Word(_)));
    let brackets = token(1) == Some(&Token::LBracket) && token(2) == Some(&Token::RBracket);
    let is_pseudo = matches!(token(0), Some(Token::Word(w)) if {
        ["anyarray", "anycompatiblearray"].contains(&w.value.to_lowercase().as_str())
            || w.value == "any" && w.quote_style.is_some()
    });
    word(0) && (word(1) || brackets) || is_pseudo
}

/// Where the parenthesis is closed that is open here.
fn end_of_call(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return Some(at),
            Token::RParen => depth -= 1,
            Token::SemiColon => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::parse_script;

    #[test]
    fn the_last_argument_is_marked() {
        let shown = |sql: &str| format!("{:?}", parse_script(sql).unwrap()[0].kind);
        assert!(shown("select f(1, variadic array[2, (3)])").contains(super::VARIADIC));
        assert!(!shown("drop function f(variadic int[])").contains(super::VARIADIC));
        assert!(!shown("drop function f(int, variadic anyarray)").contains(super::VARIADIC));
    }
}
