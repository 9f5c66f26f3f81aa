//! COLLATE behind a cast, and behind the new type of a column, where sqlparser knows none.
//!
//! ```text
//!   a::text COLLATE "C"     a::text::"\0collate"."C", which [`settle`] makes `a::text COLLATE "C"`
//!   ALTER a TYPE text COLLATE "C" USING b     TYPE text USING "\0typed"(b) COLLATE "C"
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

/// The function around what USING says, if a new type has a collation; of nothing if it says
/// nothing.
const TYPED: &str = "\0typed";

/// Writes what sqlparser reads.
pub(crate) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    of_new_types(tokens);
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

/// Moves COLLATE behind the new type of a column to what USING says.
fn of_new_types(tokens: &mut Vec<TokenWithSpan>) {
    let mut altering = false;
    let mut at = 0;
    while at < tokens.len() {
        let word = |at: usize, word| tokens.get(at).is_some_and(|t| token_is(&t.token, word));
        if at == 0 || tokens[at - 1].token == Token::SemiColon {
            altering = word(at, "alter") && word(at + 1, "table");
        }
        if altering
            && word(at, "type")
            && let Some(collate) = found(tokens, at + 1, &["collate"])
            && found(tokens, at + 1, &["using"]).is_none_or(|using| collate < using)
        {
            at = move_to_using(tokens, collate);
        }
        at += 1;
    }
}

/// Where the next of some words stands in this part of a list.
fn found(tokens: &[TokenWithSpan], from: usize, words: &[&str]) -> Option<usize> {
    let end = end_of_part(tokens, from);
    (from..end).find(|at| words.iter().any(|word| token_is(&tokens[*at].token, word)))
}

/// Where a part of a list ends.
fn end_of_part(tokens: &[TokenWithSpan], from: usize) -> usize {
    let mut depth = 0usize;
    for (at, t) in tokens.iter().enumerate().skip(from) {
        match t.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => return at,
            Token::SemiColon => return at,
            _ => {}
        }
    }
    tokens.len()
}

/// The same for one COLLATE; gives the place behind it.
fn move_to_using(tokens: &mut Vec<TokenWithSpan>, collate: usize) -> usize {
    let end = end_of_part(tokens, collate);
    let using = found(tokens, collate, &["using"]);
    let name = tokens[collate + 1..using.unwrap_or(end)].to_vec();
    let said = using.map_or(Vec::new(), |using| tokens[using + 1..end].to_vec());
    let mut new = vec![
        wrap(Token::make_word("USING", None)),
        wrap(Token::make_word(TYPED, Some('"'))),
        wrap(Token::LParen),
    ];
    new.extend(said);
    new.extend([
        wrap(Token::RParen),
        wrap(Token::DoubleColon),
        wrap(Token::make_word(MARK, Some('"'))),
        wrap(Token::Period),
    ]);
    new.extend(name);
    let behind = collate + new.len();
    tokens.splice(collate..end, new);
    behind
}

/// The collation of a new type, and what USING says, out of what USING was made.
pub fn take_collation(using: Option<&Expr>) -> (Option<&ObjectName>, Option<&Expr>) {
    let Some(Expr::Collate { expr, collation }) = using else { return (None, using) };
    let Expr::Function(call) = &**expr else { return (None, using) };
    let [ast::ObjectNamePart::Identifier(name)] = call.name.0.as_slice() else {
        return (None, using);
    };
    let ast::FunctionArguments::List(list) = &call.args else { return (None, using) };
    if name.value != TYPED {
        return (None, using);
    }
    let said = match list.args.as_slice() {
        [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e))] => Some(e),
        _ => None,
    };
    (Some(collation), said)
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
    fn new_types_have_collations() {
        use sqlparser::ast::{AlterColumnOperation, AlterTableOperation, Statement};
        let sql = "alter table t alter a type varchar(3) collate \"C\", alter column b set data \
                   type text collate s.x using b || 'a, ', alter c type int using d collate y";
        let script = crate::parse_script(sql).unwrap();
        let crate::Kind::Sql(sql) = &*script[0].kind else { panic!() };
        let Statement::AlterTable(alter) = &**sql else { panic!() };
        let shown: Vec<String> = alter
            .operations
            .iter()
            .map(|op| {
                let AlterTableOperation::AlterColumn { op, .. } = op else { panic!() };
                let AlterColumnOperation::SetDataType { using, .. } = op else { panic!() };
                let (collation, using) = super::take_collation(using.as_ref());
                let shown = |e: Option<String>| e.unwrap_or_default();
                format!(
                    "{} {}",
                    shown(collation.map(ToString::to_string)),
                    shown(using.map(ToString::to_string))
                )
            })
            .collect();
        assert_eq!(shown, ["\"C\" ", "s.x b || 'a, '", " d COLLATE y"]);
    }

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
