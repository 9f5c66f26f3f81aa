//! CREATE COLLATION, ALTER COLLATION and DROP COLLATION.

use braid_types::{SqlError, SqlResult};
use sqlparser::tokenizer::Token;

use crate::cursor::Cursor;
use crate::{Kind, Name};

/// What is done with collations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollationStatement {
    /// CREATE COLLATION.
    Create {
        /// Its name.
        name: Name,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// What it is.
        made: CollationMade,
    },
    /// DROP COLLATION.
    Drop {
        /// Their names.
        names: Vec<Name>,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
    },
    /// ALTER COLLATION.
    Alter(Name, CollationChange),
}

/// What a new collation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollationMade {
    /// FROM another one.
    From(Name),
    /// Of these properties, in their order.
    With(Vec<(String, String)>),
}

/// What ALTER COLLATION changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollationChange {
    /// RENAME TO.
    Rename(String),
    /// SET SCHEMA.
    Schema(String),
    /// REFRESH VERSION.
    Refresh,
}

/// Reads one of them; `None` if it is none, or about who owns one.
pub(crate) fn collation(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    let made = if c.take(&["create", "collation"]) {
        create(c)?
    } else if c.take(&["drop", "collation"]) {
        let if_exists = c.take(&["if", "exists"]);
        let mut names = vec![c.name()?];
        while c.take_token(&Token::Comma) {
            names.push(c.name()?);
        }
        let cascade = c.take(&["cascade"]);
        c.take(&["restrict"]);
        CollationStatement::Drop { names, if_exists, cascade }
    } else if c.take(&["alter", "collation"]) {
        let name = c.name()?;
        let change = if c.take(&["rename", "to"]) {
            CollationChange::Rename(c.own_name()?)
        } else if c.take(&["set", "schema"]) {
            CollationChange::Schema(c.own_name()?)
        } else if c.take(&["refresh", "version"]) {
            CollationChange::Refresh
        } else {
            return Err(c.unexpected());
        };
        CollationStatement::Alter(name, change)
    } else {
        return Ok(None);
    };
    Ok(Some(Kind::Collation(Box::new(made))))
}

fn create(c: &mut Cursor) -> SqlResult<CollationStatement> {
    let if_not_exists = c.take(&["if", "not", "exists"]);
    let name = c.name()?;
    if c.take(&["from"]) {
        let made = CollationMade::From(c.name()?);
        return Ok(CollationStatement::Create { name, if_not_exists, made });
    }
    c.expect_token(&Token::LParen)?;
    let mut given: Vec<(String, String)> = Vec::new();
    loop {
        let property = c.ident()?;
        c.expect_token(&Token::Eq)?;
        if given.iter().any(|(known, _)| *known == property) {
            return Err(SqlError::syntax("conflicting or redundant options"));
        }
        given.push((property, value(c)?));
        if !c.take_token(&Token::Comma) {
            break;
        }
    }
    c.expect_token(&Token::RParen)?;
    let made = CollationMade::With(given);
    Ok(CollationStatement::Create { name, if_not_exists, made })
}

/// A word, a text or a number.
fn value(c: &mut Cursor) -> SqlResult<String> {
    match c.peek().cloned() {
        Some(Token::Number(digits, _)) => {
            c.next();
            Ok(digits.to_string())
        }
        Some(Token::Word(_)) => c.ident(),
        _ => c.text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_script;

    fn read(sql: &str) -> CollationStatement {
        match &*parse_script(sql).unwrap()[0].kind {
            Kind::Collation(made) => (**made).clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn collations_are_read() {
        let CollationStatement::Create { name, if_not_exists: true, made } = read(
            "create collation if not exists s.\"N\" (provider = icu, locale = 'und-u-kn-true', \
             deterministic = false)",
        ) else {
            panic!()
        };
        assert_eq!(name, ["s", "N"]);
        let given = [("provider", "icu"), ("locale", "und-u-kn-true"), ("deterministic", "false")];
        let given = given.map(|(a, b)| (a.to_string(), b.to_string())).to_vec();
        assert_eq!(made, CollationMade::With(given));
        assert!(matches!(
            read("create collation n from \"sv-x-icu\""),
            CollationStatement::Create { made: CollationMade::From(_), .. }
        ));
        assert!(matches!(
            read("drop collation if exists a, s.b cascade"),
            CollationStatement::Drop { if_exists: true, cascade: true, .. }
        ));
        assert!(matches!(
            read("alter collation n refresh version"),
            CollationStatement::Alter(_, CollationChange::Refresh)
        ));
    }
}
