//! The columns of ON DELETE SET NULL and SET DEFAULT, for which sqlparser has no form.
//!
//! ```text
//!   REFERENCES p (a, b) ON DELETE SET NULL (c)   REFERENCES p (a, b, "\0set c") ON DELETE SET NULL
//!   REFERENCES p ON DELETE SET NULL (c)          REFERENCES p ("\0set c") ON DELETE SET NULL
//! ```

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::Ident;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{closing, token_is};
use crate::script::wrap;

/// What stands before a name. No name that can be typed has that character.
const MARK: &str = "\0set ";

/// The columns that a foreign key refers to, and those that ON DELETE sets; none: all.
pub fn take_set_columns(columns: &[Ident]) -> (Vec<&Ident>, Vec<String>) {
    let set = |ident: &Ident| ident.value.strip_prefix(MARK).map(str::to_string);
    let referred = columns.iter().filter(|ident| set(ident).is_none()).collect();
    (referred, columns.iter().filter_map(set).collect())
}

/// Moves them to what is referred to.
///
/// # Errors
/// 0A000 behind ON UPDATE.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    let mut at = 0;
    while at + 4 < tokens.len() {
        let is = |n: usize, word: &str| token_is(&tokens[at + n].token, word);
        let set = is(0, "on") && is(2, "set") && (is(3, "null") || is(3, "default"));
        if !set || tokens[at + 4].token != Token::LParen {
            at += 1;
            continue;
        }
        if is(1, "update") {
            let action = tokens[at + 3].token.to_string().to_uppercase();
            let text =
                format!("a column list with SET {action} is only supported for ON DELETE actions");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
        }
        if is(1, "delete")
            && let Some(end) = closing(tokens, at + 4)
            && let Some(place) = referred(tokens, at)
        {
            let names: Vec<TokenWithSpan> = tokens.drain(at + 4..=end).collect();
            put(tokens, place, &names);
        }
        at += 1;
    }
    Ok(())
}

/// Where the referenced table's name ends that these actions are about.
fn referred(tokens: &[TokenWithSpan], before: usize) -> Option<usize> {
    let start = tokens[..before].iter().rposition(|t| token_is(&t.token, "references"))?;
    let mut end = start + 2;
    while tokens.get(end).is_some_and(|t| t.token == Token::Period) {
        end += 2;
    }
    Some(end)
}

/// Adds marked names to the list that stands, or is to stand, at a place.
fn put(tokens: &mut Vec<TokenWithSpan>, place: usize, names: &[TokenWithSpan]) {
    let mut marked = Vec::new();
    for name in names {
        let Token::Word(word) = &name.token else { continue };
        let folded = match word.quote_style {
            Some(_) => word.value.clone(),
            None => word.value.to_lowercase(),
        };
        if !marked.is_empty() {
            marked.push(wrap(Token::Comma));
        }
        marked.push(wrap(Token::make_word(&format!("{MARK}{folded}"), Some('"'))));
    }
    let opens = tokens.get(place).is_some_and(|t| t.token == Token::LParen);
    match opens.then(|| closing(tokens, place)).flatten() {
        Some(close) => {
            marked.insert(0, wrap(Token::Comma));
            tokens.splice(close..close, marked);
        }
        None => {
            marked.insert(0, wrap(Token::LParen));
            marked.push(wrap(Token::RParen));
            tokens.splice(place..place, marked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::ast::TableConstraint;

    fn read(actions: &str) -> (usize, Vec<String>) {
        let sql = format!("create table c (x int, y int, foreign key (x, y) references {actions})");
        let statement = crate::parse_script(&sql).unwrap().pop().unwrap();
        let crate::Kind::CreateTable(table) = &*statement.kind else { panic!("{statement:?}") };
        let [TableConstraint::ForeignKey(key)] = table.base.constraints.as_slice() else {
            panic!("{table:?}")
        };
        let (referred, set) = take_set_columns(&key.referred_columns);
        (referred.len(), set)
    }

    #[test]
    fn columns_that_are_set_are_told_apart_from_those_that_are_referred_to() {
        assert_eq!(read("p on delete set null"), (0, vec![]));
        assert_eq!(read("p on delete set null (Y)"), (0, vec!["y".to_string()]));
        assert_eq!(
            read("s.p (a, b) on update cascade on delete set default (x, \"Y\") deferrable"),
            (2, vec!["x".to_string(), "Y".to_string()])
        );
        let e = crate::parse_script("create table c (x int references p on update set null (x))");
        assert_eq!(e.unwrap_err().state().0, "0A000");
    }
}
