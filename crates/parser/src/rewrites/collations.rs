//! COLLATE behind a cast, where sqlparser knows none.
//!
//! ```text
//!   a::text COLLATE "C"     a::text::"\0collate"."C", which [`settle`] makes `a::text COLLATE "C"`
//! ```
//! Which collations there are, and where one makes a difference, is known to those who bind it.

use std::ops::ControlFlow;

use braid_walk::WalkMut;
use sqlparser::ast::{self, DataType, Expr, ObjectName};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::token_is;
use crate::script::wrap;

/// The schema of a type that stands for a collation.
const MARK: &str = "\0collate";

/// Writes what sqlparser reads.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 2;
    while at + 1 < tokens.len() {
        if token_is(&tokens[at].token, "collate") && is_behind_cast(tokens, at) {
            tokens[at] = wrap(Token::DoubleColon);
            let mark = [wrap(Token::make_word(MARK, Some('"'))), wrap(Token::Period)];
            tokens.splice(at + 1..at + 1, mark);
        }
        at += 1;
    }
}

/// Whether nothing but a type stands between here and a `::`.
fn is_behind_cast(tokens: &[TokenWithSpan], at: usize) -> bool {
    let mut inside = false;
    for t in tokens[..at].iter().rev() {
        match t.token {
            Token::DoubleColon => return !inside,
            Token::RParen | Token::RBracket => inside = true,
            Token::LParen | Token::LBracket if inside => inside = false,
            Token::Number(..) | Token::Comma if inside => {}
            Token::Word(_) | Token::Period if !inside => {}
            _ => return false,
        }
    }
    false
}

/// Whether tokens have a mark that [`settle`] takes away.
pub(crate) fn is_marked(tokens: &[TokenWithSpan]) -> bool {
    tokens.iter().any(|t| matches!(&t.token, Token::Word(w) if w.value == MARK))
}

/// Makes each cast to a marked type what it stands for.
pub(crate) fn settle(parsed: &mut impl WalkMut) {
    let _: ControlFlow<()> = braid_walk::expressions_mut(parsed, |expr| {
        if let Expr::Cast { expr: inner, data_type: DataType::Custom(ObjectName(parts), _), .. } =
            expr
            && let [ast::ObjectNamePart::Identifier(mark), name @ ..] = parts.as_slice()
            && mark.value == MARK
        {
            let collation = ObjectName(name.to_vec());
            *expr = Expr::Collate { expr: inner.clone(), collation };
        }
        ControlFlow::Continue(())
    });
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_collation_may_stand_behind_a_cast() {
        let shown = |sql: &str| crate::parse_query(sql).unwrap().to_string();
        assert_eq!(shown("select a::text collate \"C\" b"), "SELECT a::TEXT COLLATE \"C\" AS b");
        assert_eq!(
            shown("select 1 order by a::varchar(3)[] collate pg_catalog.\"default\" desc"),
            "SELECT 1 ORDER BY a::VARCHAR(3)[] COLLATE pg_catalog.\"default\" DESC"
        );
        assert_eq!(
            shown("select a::numeric(3, 1), lower(b collate x), lower(c::text collate x)"),
            "SELECT a::NUMERIC(3,1), lower(b COLLATE x), lower(c::TEXT COLLATE x)"
        );
    }
}
