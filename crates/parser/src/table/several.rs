//! Statements that are several: actions of ALTER TABLE of which not all are sqlparser's, and the
//! elements of CREATE SCHEMA.
//!
//! ```text
//!   ALTER TABLE t ALTER a DROP IDENTITY, ADD b int    ALTER TABLE t ALTER a DROP IDENTITY
//!                                                     ALTER TABLE t ADD b int
//!   CREATE SCHEMA s CREATE VIEW v AS ..               CREATE SCHEMA s
//!                   CREATE TABLE t (..)               CREATE TABLE t (..)     in s
//!                                                     CREATE VIEW v AS ..     in s
//! ```

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::cursor::{Cursor, at_commas, token_is};
use crate::script::parse_nested;
use crate::{AlterOwn, Kind, Name, Statement};

/// Statements that one is read as.
#[derive(Clone, Debug)]
pub struct Several {
    /// In the order in which they run.
    pub parts: Vec<Statement>,
    /// The table that is altered.
    pub table: Option<Name>,
}

/// Reads one; `None` for what is a single statement.
pub(crate) fn statement(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    let found = match c.looking_at(&["create", "schema"]) {
        true => schema(c)?.map(|parts| Kind::CreateSchemaWith(Several { parts, table: None })),
        false => alter_table(c),
    };
    if found.is_some() {
        while c.next().is_some() {}
    }
    Ok(found)
}

/// Actions of ALTER TABLE; those that sqlparser reads stay together.
fn alter_table(c: &Cursor) -> Option<Kind> {
    let mut probe = c.clone();
    if !probe.take(&["alter", "table"]) {
        return None;
    }
    probe.take(&["if", "exists"]);
    probe.take(&["only"]);
    let table = probe.name().ok()?;
    probe.take_token(&Token::Mul);
    let head = probe.since(c.at()).to_vec();
    let actions = at_commas(&probe.rest());
    if actions.len() < 2 {
        return None;
    }
    let (mut parts, mut theirs) = (Vec::new(), None);
    for action in actions {
        let alone = head.iter().cloned().chain(action).collect();
        let part = parse_nested(alone).ok()?;
        let Some(more) = operations(&part) else {
            parts.push((pass(&part)?, part));
            continue;
        };
        match theirs.take() {
            None => theirs = Some(part),
            Some(first) => {
                let kind = joined(&first, more)?.into();
                theirs = Some(Statement { kind, ..first });
            }
        }
    }
    if parts.is_empty() {
        return None;
    }
    parts.extend(theirs.map(|part| (1, part)));
    parts.sort_by_key(|(pass, _)| *pass);
    let parts = parts.into_iter().map(|(_, part)| part).collect();
    Some(Kind::AlterTableParts(Several { parts, table: Some(table) }))
}

fn operations(part: &Statement) -> Option<Vec<ast::AlterTableOperation>> {
    match &*part.kind {
        Kind::Sql(sql) => match &**sql {
            ast::Statement::AlterTable(a) => Some(a.operations.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// An ALTER TABLE with more operations.
fn joined(first: &Statement, more: Vec<ast::AlterTableOperation>) -> Option<Kind> {
    let Kind::Sql(sql) = &*first.kind else { return None };
    let ast::Statement::AlterTable(mut a) = (**sql).clone() else { return None };
    a.operations.extend(more);
    Some(Kind::Sql(Box::new(ast::Statement::AlterTable(a))))
}

/// Whether it takes its turn before what sqlparser reads (0) or after that (2), as PostgreSQL has
/// it; `None` for what stands alone.
fn pass(part: &Statement) -> Option<u8> {
    match &*part.kind {
        Kind::AlterTableOwn(_, _, AlterOwn::DropIdentity(..) | AlterOwn::DropExpression(..)) => {
            Some(0)
        }
        Kind::AlterTableOwn(
            _,
            _,
            AlterOwn::SetStatistics(..)
            | AlterOwn::Identity(..)
            | AlterOwn::SetCommitTime(..)
            | AlterOwn::Constraint(..),
        )
        | Kind::StorageOptions(_)
        | Kind::Owner(_) => Some(2),
        _ => None,
    }
}

/// CREATE SCHEMA and its elements, in PostgreSQL's order of kinds; `None` without any.
fn schema(c: &Cursor) -> SqlResult<Option<Vec<Statement>>> {
    let mut head = c.rest();
    let begins = |at: usize, tokens: &[TokenWithSpan]| {
        let is = |at: usize, word: &str| {
            tokens.get(at).is_some_and(|token| token_is(&token.token, word))
        };
        is(at, "create") || is(at, "grant") && !is(at.wrapping_sub(1), "with")
    };
    let mut starts = Vec::new();
    let mut depth = 0i32;
    for (at, token) in head.iter().enumerate().skip(2) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ if depth == 0 && begins(at, &head) => starts.push(at),
            _ => {}
        }
    }
    let Some(first) = starts.first().copied() else { return Ok(None) };
    if c.is_word(2, "if") && c.is_word(3, "not") {
        let place = head[first].span.start;
        let text = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text);
        return Err(error.or_at(place.line, place.column));
    }
    let mut elements = Vec::new();
    for at in starts.into_iter().rev() {
        let tokens = head.split_off(at);
        let element = parse_nested(tokens.clone())?;
        let Some(order) = order(&element.kind) else {
            let wrong = tokens.get(1).unwrap_or(&tokens[0]);
            let error = SqlError::syntax(format!("syntax error at or near \"{}\"", wrong.token));
            return Err(error.or_at(wrong.span.start.line, wrong.span.start.column));
        };
        elements.push((order, element));
    }
    elements.reverse();
    elements.sort_by_key(|(order, _)| *order);
    let mut parts = vec![parse_nested(head)?];
    parts.extend(elements.into_iter().map(|(_, element)| element));
    Ok(Some(parts))
}

/// When an element takes its turn; `None` for what is none.
fn order(kind: &Kind) -> Option<u8> {
    use crate::Access;
    match kind {
        Kind::CreateSequence { .. } => Some(0),
        Kind::CreateTable(table) => table.base.query.is_none().then_some(1),
        Kind::Sql(sql) => matches!(**sql, ast::Statement::CreateView(_)).then_some(2),
        Kind::CreateIndex(_) => Some(3),
        Kind::Access(access) => matches!(**access, Access::Grant(_)).then_some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_script;

    fn kinds(sql: &str) -> Vec<String> {
        match &*parse_script(sql).unwrap()[0].kind {
            Kind::AlterTableParts(s) | Kind::CreateSchemaWith(s) => {
                s.parts.iter().map(|part| part.text.to_string()).collect()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn actions_take_their_turns() {
        let sql = "alter table if exists only t add b int default f(1, 2), alter a set statistics \
                   5, alter a drop identity, drop column c";
        let heads = kinds(sql);
        let heads: Vec<&str> = heads.iter().map(|text| text.split(' ').nth(7).unwrap()).collect();
        assert_eq!(heads, ["a", "b", "a"]);
        for single in [
            "alter table t add b int, drop c",
            "alter table t alter a drop identity",
            "alter table t set (fillfactor = 70), set logged",
            "alter table t split at values (1), (2)",
        ] {
            assert!(kinds(single).is_empty(), "{single}");
        }
    }

    #[test]
    fn elements_of_a_schema_come_by_their_kind() {
        let sql = "create schema s grant select on t to r with grant option create view v as \
                   (select 1) create table t (a int) create sequence q";
        let words: Vec<String> =
            kinds(sql).iter().map(|text| text.split(' ').nth(1).unwrap().to_lowercase()).collect();
        assert_eq!(words, ["schema", "sequence", "table", "view", "select"]);
        for (sql, state) in [
            ("create schema if not exists s create table t (a int)", "0A000"),
            ("create schema s create role r", "42601"),
        ] {
            assert_eq!(parse_script(sql).unwrap_err().state().0, state);
        }
        assert!(kinds("create schema s authorization root").is_empty());
    }
}
