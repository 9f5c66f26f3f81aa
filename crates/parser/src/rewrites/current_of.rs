//! `WHERE CURRENT OF c` of UPDATE and DELETE, for which sqlparser has no form: a function of the
//! cursor's name.
//!
//! ```text
//!   DELETE FROM t WHERE CURRENT OF c      DELETE FROM t WHERE "\0current_of"("c")
//! ```

use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{fold, token_is};
use crate::script::wrap;

/// No name that can be typed has that character.
const CURRENT_OF: &str = "\0current_of";

/// Writes the function for each such condition.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at + 3 < tokens.len() {
        let words = ["where", "current", "of"].iter().zip(&tokens[at..]);
        if words.into_iter().all(|(word, t)| token_is(&t.token, word)) && is_whole(tokens, at) {
            let Token::Word(name) = &tokens[at + 3].token else { return };
            let name = Token::make_word(&fold(name), Some('"'));
            tokens[at + 1].token = Token::make_word(CURRENT_OF, Some('"'));
            tokens[at + 2].token = Token::LParen;
            tokens[at + 3].token = name;
            tokens.insert(at + 4, wrap(Token::RParen));
        }
        at += 1;
    }
}

/// Whether the WHERE at this place is one of UPDATE or DELETE, and has nothing else.
fn is_whole(tokens: &[TokenWithSpan], at: usize) -> bool {
    let named = matches!(tokens[at + 3].token, Token::Word(_));
    let ends = match tokens.get(at + 4).map(|t| &t.token) {
        None | Some(Token::SemiColon | Token::RParen | Token::EOF) => true,
        Some(token) => token_is(token, "returning"),
    };
    let mut depth = 0usize;
    for (n, t) in tokens[..at].iter().enumerate().rev() {
        let of_conflict = || n > 0 && token_is(&tokens[n - 1].token, "do");
        match &t.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            Token::SemiColon => return false,
            token if depth == 0 && ["update", "delete"].iter().any(|w| token_is(token, w)) => {
                return named && ends && !of_conflict();
            }
            token if depth == 0 && token_is(token, "select") => return false,
            _ => {}
        }
    }
    false
}

/// The cursor that a condition names, if it is of this kind.
pub fn cursor_of(condition: Option<&ast::Expr>) -> Option<&str> {
    let ast::Expr::Function(function) = condition? else { return None };
    let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    let ast::FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Identifier(cursor)))]
            if name.value == CURRENT_OF =>
        {
            Some(&cursor.value)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, parse_script};

    #[test]
    fn a_cursor_is_a_condition_of_update_and_delete() {
        let cursor = |sql: &str| {
            let kind = parse_script(sql).unwrap().remove(0).kind.clone();
            let Kind::Sql(statement) = &*kind else { panic!("{sql}") };
            match &**statement {
                ast::Statement::Update(update) => {
                    cursor_of(update.selection.as_ref()).map(str::to_string)
                }
                ast::Statement::Delete(delete) => {
                    cursor_of(delete.selection.as_ref()).map(str::to_string)
                }
                _ => None,
            }
        };
        let told = |sql| cursor(sql).unwrap();
        assert_eq!(told("update t set a = (select 1) where current of C returning a"), "c");
        assert_eq!(told("DELETE FROM t WHERE CURRENT OF \"My C\";"), "My C");
        assert_eq!(cursor("delete from t where current"), None);
        for wrong in [
            "select a from t where current of c",
            "delete from t where current of c and true",
            "insert into t values (1) on conflict (a) do update set a = 1 where current of c",
        ] {
            assert!(parse_script(wrong).is_err(), "{wrong}");
        }
    }
}
