//! COMMENT ON, of every kind of object.

use braid_types::SqlResult;
use sqlparser::ast;

use crate::cursor::Cursor;
use crate::functions::function::reference;
use crate::{Kind, Name};

/// What a comment is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commented {
    /// A relation, of the kind that is said.
    Relation(&'static str),
    /// A column: the name ends with it.
    Column,
    /// A schema.
    Schema,
    /// A database.
    Database,
    /// A type, or a domain.
    Type(&'static str),
    /// A collation.
    Collation,
    /// A role.
    Role,
    /// An extension.
    Extension,
    /// A constraint of a table: the name of the table, and then its own.
    TableConstraint,
    /// A constraint of a domain, in the same way.
    DomainConstraint,
    /// A function: the name is that of its reference.
    Function,
    /// What is not here: triggers and others.
    Other(&'static str),
}

/// COMMENT ON.
#[derive(Clone, Debug, PartialEq)]
pub struct Comment {
    /// What it is about.
    pub kind: Commented,
    /// Its name.
    pub name: Name,
    /// Types of what a function is given.
    pub inputs: Option<Vec<ast::DataType>>,
    /// The text; `None` takes it away.
    pub text: Option<String>,
}

/// Kinds, as COMMENT ON says them.
const KINDS: [(&[&str], Commented); 38] = [
    (&["materialized", "view"], Commented::Relation("materialized view")),
    (&["table"], Commented::Relation("table")),
    (&["view"], Commented::Relation("view")),
    (&["sequence"], Commented::Relation("sequence")),
    (&["index"], Commented::Relation("index")),
    (&["column"], Commented::Column),
    (&["schema"], Commented::Schema),
    (&["database"], Commented::Database),
    (&["type"], Commented::Type("type")),
    (&["domain"], Commented::Type("domain")),
    (&["role"], Commented::Role),
    (&["extension"], Commented::Extension),
    (&["constraint"], Commented::TableConstraint),
    (&["access", "method"], Commented::Other("access method")),
    (&["aggregate"], Commented::Other("aggregate")),
    (&["cast"], Commented::Other("cast")),
    (&["collation"], Commented::Collation),
    (&["conversion"], Commented::Other("conversion")),
    (&["event", "trigger"], Commented::Other("event trigger")),
    (&["foreign", "table"], Commented::Other("foreign table")),
    (&["foreign", "data", "wrapper"], Commented::Other("foreign data wrapper")),
    (&["function"], Commented::Function),
    (&["language"], Commented::Other("language")),
    (&["procedural", "language"], Commented::Other("language")),
    (&["large", "object"], Commented::Other("large object")),
    (&["operator"], Commented::Other("operator")),
    (&["policy"], Commented::Other("policy")),
    (&["procedure"], Commented::Other("procedure")),
    (&["publication"], Commented::Other("publication")),
    (&["routine"], Commented::Other("routine")),
    (&["rule"], Commented::Other("rule")),
    (&["server"], Commented::Other("server")),
    (&["statistics"], Commented::Other("statistics")),
    (&["subscription"], Commented::Other("subscription")),
    (&["tablespace"], Commented::Other("tablespace")),
    (&["text", "search"], Commented::Other("text search")),
    (&["transform"], Commented::Other("transform")),
    (&["trigger"], Commented::Other("trigger")),
];

/// Reads COMMENT ON; `None` if it is another statement.
pub(crate) fn comment(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    if !c.take(&["comment", "on"]) {
        return Ok(None);
    }
    let Some((_, kind)) = KINDS.iter().find(|(words, _)| c.take(words)) else {
        return Err(c.unexpected());
    };
    let (mut kind, mut name, mut inputs) = (*kind, Vec::new(), None);
    match kind {
        Commented::Other(_) => {
            while !c.done() && !c.is_word(0, "is") {
                c.next();
            }
        }
        Commented::Function => {
            let of = reference(c)?;
            (name, inputs) = (of.name, of.inputs);
        }
        Commented::TableConstraint => {
            let own = c.ident()?;
            c.expect(&["on"])?;
            if c.take(&["domain"]) {
                kind = Commented::DomainConstraint;
            }
            name = c.any_name()?;
            name.push(own);
        }
        _ => name = c.any_name()?,
    }
    c.expect(&["is"])?;
    let text = if c.take(&["null"]) { None } else { Some(c.text()?) };
    Ok(Some(Kind::Comment(Comment { kind, name, inputs, text })))
}
