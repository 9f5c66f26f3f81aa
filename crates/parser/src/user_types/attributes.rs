//! ALTER TYPE of a composite type: its fields, which PostgreSQL calls attributes.

use braid_types::{SqlError, SqlResult, built_in_collation};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use crate::Kind;
use crate::cursor::Cursor;

/// What is changed about a field.
#[derive(Clone, Debug)]
pub enum AttributeChange {
    /// ADD ATTRIBUTE.
    Add(String, ast::DataType),
    /// DROP ATTRIBUTE; the flag is IF EXISTS.
    Drop(String, bool),
    /// ALTER ATTRIBUTE .. TYPE.
    Retype(String, ast::DataType),
    /// RENAME ATTRIBUTE .. TO.
    Rename(String, String),
}

/// Reads a change of fields; `None` if it is none.
pub(crate) fn attributes(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    if !c.looking_at(&["alter", "type"]) {
        return Ok(None);
    }
    let mut probe = c.clone();
    probe.take(&["alter", "type"]);
    let Ok(name) = probe.name() else { return Ok(None) };
    if !["add", "drop", "alter", "rename"].iter().any(|w| probe.looking_at(&[w, "attribute"])) {
        return Ok(None);
    }
    let mut changes = vec![change(&mut probe)?];
    while probe.take_token(&Token::Comma) {
        changes.push(change(&mut probe)?);
    }
    *c = probe;
    Ok(Some(Kind::AlterAttributes(name, changes)))
}

fn change(c: &mut Cursor) -> SqlResult<AttributeChange> {
    let changed = if c.take(&["add", "attribute"]) {
        AttributeChange::Add(c.own_name()?, data_type(c)?)
    } else if c.take(&["drop", "attribute"]) {
        let if_exists = c.take(&["if", "exists"]);
        AttributeChange::Drop(c.own_name()?, if_exists)
    } else if c.take(&["alter", "attribute"]) {
        let name = c.own_name()?;
        c.take(&["set", "data"]);
        c.expect(&["type"])?;
        AttributeChange::Retype(name, data_type(c)?)
    } else {
        c.expect(&["rename", "attribute"])?;
        let from = c.own_name()?;
        c.expect(&["to"])?;
        AttributeChange::Rename(from, c.own_name()?)
    };
    // What depends on a type are tables of it, which there are none of.
    let _ = c.take(&["cascade"]) || c.take(&["restrict"]);
    Ok(changed)
}

fn data_type(c: &mut Cursor) -> SqlResult<ast::DataType> {
    let data_type = c.with_parser(|p| p.parse_data_type())?;
    if c.take(&["collate"]) {
        let name = c.name()?;
        let bare = name.last().map_or("", String::as_str);
        if built_in_collation(bare).is_none_or(|known| known.locale.is_some()) {
            return Err(SqlError::unsupported("a collation of a field of a composite type")
                .with_hint("Give the expression COLLATE where it is compared."));
        }
    }
    Ok(data_type)
}
