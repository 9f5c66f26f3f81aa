//! `UNIQUE NULLS NOT DISTINCT` of a column, which sqlparser knows of tables only.
//!
//! ```text
//!   UNIQUE NULLS NOT DISTINCT                 CONSTRAINT "\0nulls not distinct " UNIQUE
//!   CONSTRAINT u UNIQUE NULLS NOT DISTINCT    CONSTRAINT "\0nulls not distinct u" UNIQUE
//!   UNIQUE NULLS DISTINCT                     UNIQUE
//! ```

use sqlparser::ast::Ident;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{fold, token_is};
use crate::script::{word, wrap};

/// What the name of such a constraint begins with. No name that can be typed has that character.
const MARK: &str = "\0nulls not distinct ";

/// The name of a column's UNIQUE, and whether NULLs are equal to each other.
pub fn take_null_keys(name: Option<&Ident>) -> (Option<Ident>, bool) {
    match name.and_then(|name| name.value.strip_prefix(MARK)) {
        None => (name.cloned(), false),
        Some("") => (None, true),
        Some(own) => (Some(Ident::with_quote('"', own)), true),
    }
}

/// Writes the mark into the names of such constraints.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 2 < tokens.len() {
        let is = |n: usize, w: &str| tokens.get(n).is_some_and(|t| token_is(&t.token, w));
        let not = usize::from(is(at + 2, "not"));
        let end = at + 3 + not;
        let of_table = tokens.get(end).is_some_and(|t| t.token == Token::LParen);
        if !is(at, "unique") || !is(at + 1, "nulls") || !is(end - 1, "distinct") || of_table {
            at += 1;
            continue;
        }
        let named = at > 1 && is(at - 2, "constraint");
        tokens.drain(at + 1..end);
        if not == 1 {
            match &tokens[at - usize::from(named)].token {
                Token::Word(name) if named => {
                    let marked = format!("{MARK}{}", fold(name));
                    tokens[at - 1].token = Token::make_word(&marked, Some('"'));
                }
                _ => {
                    let mark = wrap(Token::make_word(MARK, Some('"')));
                    tokens.splice(at..at, [word("constraint"), mark]);
                    at += 2;
                }
            }
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::{Kind, parse_script};

    #[test]
    fn a_column_says_that_its_nulls_are_equal_in_the_constraints_name() {
        for (sql, marks) in [
            ("create table t (a int unique nulls not distinct deferrable, b int)", 1),
            ("create table t (a int constraint \"U\" unique nulls not distinct not null)", 1),
            ("alter table t add column a int constraint u unique nulls not distinct", 1),
            ("create table t (a int unique nulls distinct, b int)", 0),
            ("create table t (a int, unique nulls not distinct (a))", 0),
        ] {
            let all = parse_script(sql).unwrap();
            let shown = format!("{:?}", all[0].kind);
            assert_eq!(shown.matches("0nulls not distinct").count(), marks, "{shown}");
            assert!(!matches!(&*all[0].kind, Kind::Empty));
        }
    }
}
