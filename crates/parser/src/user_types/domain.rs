//! CREATE DOMAIN, ALTER DOMAIN and DROP DOMAIN.

use braid_types::{SqlError, SqlResult};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use crate::cursor::Cursor;
use crate::{Kind, Name};

/// CREATE DOMAIN.
#[derive(Clone, Debug)]
pub struct CreateDomain {
    /// Name.
    pub name: Name,
    /// The type of its values.
    pub base: ast::DataType,
    /// COLLATE.
    pub collation: Option<Name>,
    /// DEFAULT.
    pub default: Option<ast::Expr>,
    /// NOT NULL.
    pub not_null: bool,
    /// CHECK, with the names that are given.
    pub checks: Vec<(Option<String>, ast::Expr)>,
}

/// What ALTER DOMAIN changes.
#[derive(Clone, Debug)]
pub enum DomainChange {
    /// SET DEFAULT; `None` is DROP DEFAULT.
    Default(Option<ast::Expr>),
    /// SET or DROP NOT NULL.
    NotNull(bool),
    /// ADD CONSTRAINT; the flag is NOT VALID.
    Add(Option<String>, ast::Expr, bool),
    /// DROP CONSTRAINT; the flag is IF EXISTS.
    Drop(String, bool),
    /// VALIDATE CONSTRAINT.
    Validate(String),
    /// RENAME CONSTRAINT.
    RenameConstraint(String, String),
    /// RENAME TO.
    Rename(String),
}

/// Reads one of them; `None` if it is neither, or about where a domain lies.
pub(crate) fn domain(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    if c.take(&["create", "domain"]) {
        return create(c).map(|d| Some(Kind::CreateDomain(Box::new(d))));
    }
    if c.take(&["drop", "domain"]) {
        return dropped(c).map(Some);
    }
    if !c.looking_at(&["alter", "domain"]) {
        return Ok(None);
    }
    let mut probe = c.clone();
    probe.take(&["alter", "domain"]);
    let name = probe.name()?;
    let Some(change) = change(&mut probe)? else { return Ok(None) };
    *c = probe;
    Ok(Some(Kind::AlterDomain(name, change)))
}

fn dropped(c: &mut Cursor) -> SqlResult<Kind> {
    let if_exists = c.take(&["if", "exists"]);
    let mut names = vec![c.name()?];
    while c.take_token(&Token::Comma) {
        names.push(c.name()?);
    }
    let cascade = c.take(&["cascade"]);
    if !cascade {
        c.take(&["restrict"]);
    }
    Ok(Kind::DropDomains(names, if_exists, cascade))
}

/// What ends a DEFAULT: `1 NOT NULL` is no expression here.
const AFTER_DEFAULT: [&[&str]; 4] = [&["not", "null"], &["constraint"], &["check"], &["collate"]];

fn create(c: &mut Cursor) -> SqlResult<CreateDomain> {
    let name = c.name()?;
    c.take(&["as"]);
    let base = c.with_parser(|p| p.parse_data_type())?;
    let mut domain = CreateDomain {
        name,
        base,
        collation: None,
        default: None,
        not_null: false,
        checks: vec![],
    };
    loop {
        let named = if c.take(&["constraint"]) { Some(c.own_name()?) } else { None };
        if c.take(&["not", "null"]) {
            domain.not_null = true;
        } else if c.take(&["null"]) {
            domain.not_null = false;
        } else if c.take(&["check"]) {
            domain.checks.push((named, condition(c)?));
        } else if c.take(&["default"]) {
            domain.default = Some(c.expr_before(&AFTER_DEFAULT)?);
        } else if c.take(&["collate"]) {
            if domain.collation.replace(c.name()?).is_some() {
                return Err(SqlError::syntax("multiple COLLATE clauses not allowed"));
            }
        } else if named.is_some() {
            return Err(c.unexpected());
        } else {
            return Ok(domain);
        }
    }
}

fn condition(c: &mut Cursor) -> SqlResult<ast::Expr> {
    c.expect_token(&Token::LParen)?;
    let expr = c.expr()?;
    c.expect_token(&Token::RParen)?;
    Ok(expr)
}

fn change(c: &mut Cursor) -> SqlResult<Option<DomainChange>> {
    Ok(Some(if c.take(&["set", "default"]) {
        DomainChange::Default(Some(c.expr()?))
    } else if c.take(&["drop", "default"]) {
        DomainChange::Default(None)
    } else if c.take(&["set", "not", "null"]) {
        DomainChange::NotNull(true)
    } else if c.take(&["drop", "not", "null"]) {
        DomainChange::NotNull(false)
    } else if c.take(&["add"]) {
        let name = if c.take(&["constraint"]) { Some(c.own_name()?) } else { None };
        c.expect(&["check"])?;
        let check = condition(c)?;
        DomainChange::Add(name, check, c.take(&["not", "valid"]))
    } else if c.take(&["drop", "constraint"]) {
        let if_exists = c.take(&["if", "exists"]);
        let name = c.own_name()?;
        let _ = c.take(&["cascade"]) || c.take(&["restrict"]);
        DomainChange::Drop(name, if_exists)
    } else if c.take(&["validate", "constraint"]) {
        DomainChange::Validate(c.own_name()?)
    } else if c.take(&["rename", "constraint"]) {
        let from = c.own_name()?;
        c.expect(&["to"])?;
        DomainChange::RenameConstraint(from, c.own_name()?)
    } else if c.take(&["rename", "to"]) {
        DomainChange::Rename(c.own_name()?)
    } else {
        return Ok(None);
    }))
}
