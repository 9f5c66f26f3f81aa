//! CREATE, REFRESH and ALTER MATERIALIZED VIEW. Its owner is in `access.rs`, DROP is sqlparser's.

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use crate::cursor::{Cursor, closing};
use crate::script::parse_all;
use crate::table::create::{spell_out_table, take_data_clause};
use crate::{Kind, Name};

/// CREATE MATERIALIZED VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateMaterialized {
    /// Its name.
    pub name: Name,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Names of its first columns.
    pub columns: Vec<String>,
    /// Its query.
    pub query: Box<ast::Query>,
    /// Whether it has rows at once.
    pub with_data: bool,
}

/// REFRESH MATERIALIZED VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct Refresh {
    /// Which.
    pub name: Name,
    /// CONCURRENTLY.
    pub concurrently: bool,
    /// Whether it has rows afterwards.
    pub with_data: bool,
}

/// What ALTER MATERIALIZED VIEW changes, and ALTER VIEW.
#[derive(Clone, Debug, PartialEq)]
pub enum MaterializedChange {
    /// RENAME TO.
    Rename(String),
    /// RENAME COLUMN .. TO.
    RenameColumn(String, String),
    /// SET SCHEMA.
    SetSchema(String),
    /// ALTER COLUMN .. SET STATISTICS.
    SetStatistics(String, i64),
    /// SET and RESET of options of a view that change nothing.
    Options,
}

/// Reads a statement about a materialized view; `None` if it is another one.
pub(crate) fn materialized(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    if c.looking_at(&["create", "unlogged", "materialized", "view"]) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "materialized views cannot be unlogged",
        ));
    }
    if c.take(&["create", "materialized", "view"]) {
        return Ok(Some(Kind::CreateMaterialized(Box::new(create(c)?))));
    }
    if c.take(&["refresh", "materialized", "view"]) {
        let concurrently = c.take(&["concurrently"]);
        let name = c.name()?;
        let with_data = !c.take(&["with", "no", "data"]);
        c.take(&["with", "data"]);
        return Ok(Some(Kind::Refresh(Refresh { name, concurrently, with_data })));
    }
    if c.take(&["alter", "materialized", "view"]) {
        let if_exists = c.take(&["if", "exists"]);
        let name = c.name()?;
        return Ok(Some(Kind::AlterMaterialized(name, if_exists, change(c)?)));
    }
    if c.looking_at(&["alter", "view"]) {
        return altered_view(c);
    }
    Ok(None)
}

fn create(c: &mut Cursor) -> SqlResult<CreateMaterialized> {
    let if_not_exists = c.take(&["if", "not", "exists"]);
    let name = c.name()?;
    let columns = if c.peek() == Some(&Token::LParen) { c.ident_list()? } else { Vec::new() };
    if c.take(&["using"]) {
        c.expect(&["heap"])?;
    }
    if c.take(&["with"]) {
        // How PostgreSQL stores it.
        let end = closing(&c.rest(), 0).ok_or_else(|| c.unexpected())?;
        (0..=end).for_each(|_| drop(c.next()));
    }
    c.expect(&["as"])?;
    let mut tokens = c.rest();
    while c.next().is_some() {}
    let with_data = !take_data_clause(&mut tokens);
    spell_out_table(&mut tokens, 0);
    let query = parse_all(tokens, |p| p.parse_query())?;
    Ok(CreateMaterialized { name, if_not_exists, columns, query, with_data })
}

/// ALTER VIEW: names and schema; what else there is to it is read elsewhere.
fn altered_view(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    let mut probe = c.clone();
    probe.take(&["alter", "view"]);
    let if_exists = probe.take(&["if", "exists"]);
    let Ok(name) = probe.name() else { return Ok(None) };
    if probe.looking_at(&["rename"]) || probe.looking_at(&["set", "schema"]) {
        let change = change(&mut probe)?;
        *c = probe;
        return Ok(Some(Kind::AlterView(name, if_exists, change)));
    }
    if let Some(kind) = view_options(&mut probe, (name, if_exists))? {
        *c = probe;
        return Ok(Some(kind));
    }
    let what = ["alter", "set"].into_iter().find(|word| probe.looking_at(&[word]));
    match what {
        Some(word) => Err(SqlError::unsupported(format!("ALTER VIEW .. {}", word.to_uppercase()))
            .with_hint("CREATE OR REPLACE VIEW, or DROP VIEW and CREATE VIEW.")),
        None => Ok(None),
    }
}

/// SET and RESET of options that change nothing here: who asks sees what he may see.
fn view_options(c: &mut Cursor, (name, if_exists): (Name, bool)) -> SqlResult<Option<Kind>> {
    let is_set = c.is_word(0, "set");
    if !(is_set || c.is_word(0, "reset")) || c.peek_at(1) != Some(&Token::LParen) {
        return Ok(None);
    }
    c.next();
    c.next();
    loop {
        let option = c.ident()?;
        if !["security_barrier", "security_invoker"].contains(&option.as_str()) {
            let what = format!("ALTER VIEW .. SET ({option})");
            return Err(SqlError::unsupported(what).with_hint("CREATE OR REPLACE VIEW."));
        }
        if is_set && c.take_token(&Token::Eq) {
            c.next();
        }
        if !c.take_token(&Token::Comma) {
            break;
        }
    }
    c.expect_token(&Token::RParen)?;
    Ok(Some(Kind::AlterView(name, if_exists, MaterializedChange::Options)))
}

fn change(c: &mut Cursor) -> SqlResult<MaterializedChange> {
    if c.take(&["rename", "to"]) {
        return Ok(MaterializedChange::Rename(c.own_name()?));
    }
    if c.take(&["rename"]) {
        c.take(&["column"]);
        let old = c.own_name()?;
        c.expect(&["to"])?;
        return Ok(MaterializedChange::RenameColumn(old, c.own_name()?));
    }
    if c.take(&["set", "schema"]) {
        return Ok(MaterializedChange::SetSchema(c.own_name()?));
    }
    if c.take(&["alter"]) {
        c.take(&["column"]);
        let column = c.own_name()?;
        c.expect(&["set", "statistics"])?;
        return Ok(MaterializedChange::SetStatistics(column, c.integer()?));
    }
    let mut words = Vec::new();
    while let Some(token) = c.next() {
        words.push(token.to_string().to_uppercase());
    }
    words.truncate(2);
    Err(SqlError::unsupported(format!("ALTER MATERIALIZED VIEW .. {}", words.join(" "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_script;

    fn created(sql: &str) -> CreateMaterialized {
        match &*parse_script(sql).unwrap()[0].kind {
            Kind::CreateMaterialized(made) => (**made).clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_may_stand_around_the_query() {
        let made = created(
            "create materialized view if not exists S.M (a, \"B\") using heap \
             with (fillfactor = 70) as select 1, 2 with no data",
        );
        assert_eq!(made.name, ["s", "m"]);
        assert_eq!(made.columns, ["a", "B"]);
        assert!(made.if_not_exists && !made.with_data);
        let made = created("create materialized view m as table t with data");
        assert_eq!((made.query.to_string().as_str(), made.with_data), ("SELECT * FROM t", true));
        let made = created("create materialized view m as with data as (select 1) table data");
        assert!(made.with_data);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (sql, state) in [
            ("create materialized view m (select 1)", "42601"),
            ("create materialized view m as", "42601"),
            ("create unlogged materialized view m as select 1", "0A000"),
            ("refresh materialized view m with", "42601"),
            ("refresh materialized view m with data with data", "42601"),
            ("alter materialized view m set (fillfactor = 70)", "0A000"),
            ("alter materialized view m rename a b", "42601"),
        ] {
            let error = parse_script(sql).err().unwrap_or_else(|| panic!("{sql}"));
            assert_eq!(error.state().0, state, "{sql}: {error:?}");
        }
    }
}
