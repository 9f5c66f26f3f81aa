//! How PostgreSQL stores a table, which nothing here goes by: read, checked for what it names, and
//! left at that.
//!
//! ```text
//!   ALTER TABLE t SET (fillfactor = 70), ALTER COLUMN c SET STORAGE EXTERNAL, SET LOGGED
//!   ALTER TABLE t DISABLE TRIGGER USER                     there are no triggers
//!   ALTER TABLE t DISABLE TRIGGER ALL                      this one counts: its foreign keys rest
//!   ALTER INDEX i SET (fillfactor = 70)
//! ```
//! A statement that asks for something else as well is not read here.

use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::tokenizer::Token;

use crate::cursor::Cursor;
use crate::{Kind, Name};

/// ALTER TABLE or ALTER INDEX with nothing but such options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageOptions {
    /// Of an index.
    pub index: bool,
    /// The table, or the index.
    pub name: Name,
    /// IF EXISTS.
    pub if_exists: bool,
    /// Columns that are named.
    pub columns: Vec<String>,
    /// SET STATISTICS of columns, beside others.
    pub statistics: Vec<(String, i64)>,
    /// Indexes that are named.
    pub indexes: Vec<String>,
    /// ENABLE or DISABLE TRIGGER.
    pub triggers: Option<Triggers>,
}

/// Which triggers are enabled or disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Triggers {
    /// One by its name.
    Named(String),
    /// Those of users: there are none.
    OfUsers,
    /// All, those that keep foreign keys among them; whether they are enabled.
    All(bool),
}

/// Reads one; `None` if it is another statement.
pub(crate) fn change(c: &mut Cursor) -> SqlResult<Option<Kind>> {
    let mut probe = c.clone();
    let index = probe.take(&["alter", "index"]);
    if !index && !probe.take(&["alter", "table"]) {
        return Ok(None);
    }
    let if_exists = probe.take(&["if", "exists"]);
    probe.take(&["only"]);
    let Ok(name) = probe.name() else { return Ok(None) };
    let mut out = StorageOptions { index, name, if_exists, ..StorageOptions::default() };
    loop {
        if !action(&mut probe, &mut out)? {
            return Ok(None);
        }
        if !probe.take_token(&Token::Comma) {
            break;
        }
    }
    // SET STATISTICS alone is read elsewhere.
    let other = out.columns.len() > out.statistics.len() || out.triggers.is_some();
    let alone = out.statistics.len() == 1 && !other && out.indexes.is_empty();
    if !probe.done() || alone && !index {
        return Ok(None);
    }
    *c = probe;
    Ok(Some(Kind::StorageOptions(Box::new(out))))
}

/// Reads one action; `false` if it is another one.
fn action(c: &mut Cursor, out: &mut StorageOptions) -> SqlResult<bool> {
    if c.take(&["alter"]) {
        c.take(&["column"]);
        let column = match c.peek() {
            Some(Token::Number(..)) if out.index => c.integer()?.to_string(),
            _ => c.ident()?,
        };
        let known = if c.take(&["set", "storage"]) {
            let word = c.ident()?;
            storage(&word)?;
            true
        } else if c.take(&["set", "compression"]) {
            let word = c.ident()?;
            compression(&word)?;
            true
        } else if c.take(&["set", "statistics"]) {
            let target = c.integer()?;
            if !out.index {
                out.statistics.push((column.clone(), target));
            }
            true
        } else {
            options(c, &["n_distinct", "n_distinct_inherited"])?
        };
        if !out.index {
            out.columns.push(column);
        }
        return Ok(known);
    }
    if c.take(&["set", "logged"])
        || c.take(&["set", "unlogged"])
        || c.take(&["set", "without", "cluster"])
        || c.take(&["set", "without", "oids"])
    {
        return Ok(!out.index);
    }
    for (words, noun, known) in [
        (&["set", "tablespace"][..], "tablespace", "pg_default"),
        (&["set", "access", "method"], "access method", "heap"),
    ] {
        if c.take(words) {
            let given = c.ident()?;
            return if given == known { Ok(true) } else { Err(missing(noun, &given)) };
        }
    }
    if c.take(&["cluster", "on"]) {
        out.indexes.push(c.ident()?);
        return Ok(!out.index);
    }
    for (words, enabled) in [(["enable", "trigger"], true), (["disable", "trigger"], false)] {
        if c.take(&words) {
            out.triggers = Some(if c.take(&["all"]) {
                Triggers::All(enabled)
            } else if c.take(&["user"]) {
                Triggers::OfUsers
            } else {
                Triggers::Named(c.ident()?)
            });
            return Ok(!out.index);
        }
    }
    options(c, PARAMETERS)
}

pub(super) fn missing(what: &str, name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("{what} \"{name}\" does not exist"))
}

fn storage(word: &str) -> SqlResult<()> {
    if ["plain", "external", "extended", "main", "default"].contains(&word) {
        return Ok(());
    }
    let text = format!("invalid storage type \"{word}\"");
    Err(SqlError::new(SqlState("22023"), text))
}

fn compression(word: &str) -> SqlResult<()> {
    if ["pglz", "lz4", "default"].contains(&word) {
        return Ok(());
    }
    Err(SqlError::new(SqlState("22023"), format!("invalid compression method \"{word}\"")))
}

/// Names of storage parameters of tables and indexes; those that begin with `autovacuum_` and
/// `toast.` are others.
pub(super) const PARAMETERS: &[&str] = &[
    "fillfactor",
    "parallel_workers",
    "toast_tuple_target",
    "user_catalog_table",
    "vacuum_index_cleanup",
    "vacuum_truncate",
    "log_autovacuum_min_duration",
    "deduplicate_items",
    "buffering",
    "fastupdate",
    "gin_pending_list_limit",
    "pages_per_range",
    "autosummarize",
];

/// Those of CREATE TABLE.
pub(super) const PARAMETERS_OF_TABLES: &[&str] = &[
    "fillfactor",
    "parallel_workers",
    "toast_tuple_target",
    "user_catalog_table",
    "vacuum_index_cleanup",
    "vacuum_truncate",
    "log_autovacuum_min_duration",
    "oids",
];

/// SET (..) and RESET (..).
fn options(c: &mut Cursor, known: &[&str]) -> SqlResult<bool> {
    if !c.take(&["set"]) && !c.take(&["reset"]) {
        return Ok(false);
    }
    if !c.take_token(&Token::LParen) {
        return Ok(false);
    }
    parameters(c, known)?;
    Ok(true)
}

/// Storage parameters up to the closing bracket.
pub(super) fn parameters(c: &mut Cursor, known: &[&str]) -> SqlResult<()> {
    loop {
        let name = c.any_name()?.join(".");
        let of_vacuum = name.starts_with("autovacuum_") || name.starts_with("toast.");
        if !known.contains(&name.as_str()) && !of_vacuum {
            let text = format!("unrecognized parameter \"{name}\"");
            return Err(SqlError::new(SqlState("22023"), text));
        }
        if c.take_token(&Token::Eq) {
            c.take_token(&Token::Minus);
            c.next();
        }
        if !c.take_token(&Token::Comma) {
            break;
        }
    }
    c.expect_token(&Token::RParen)
}

#[cfg(test)]
mod tests {
    use crate::{Kind, parse_script};

    #[test]
    fn options_are_read_alone_only() {
        for (sql, read) in [
            ("alter table t set (fillfactor = 70, autovacuum_enabled = false)", true),
            ("alter table if exists only s.t alter c set storage plain, set logged", true),
            ("alter table t disable trigger all", true),
            ("alter index i reset (fillfactor)", true),
            ("alter table t set (fillfactor = 70), add column c int", false),
            ("alter table t set schema x", false),
            ("alter table t alter c set default 1", false),
            ("alter table t alter c set statistics 5", false),
        ] {
            let parsed = parse_script(sql);
            let is = matches!(&parsed, Ok(all) if matches!(&*all[0].kind, Kind::StorageOptions(_)));
            assert_eq!(is, read, "{sql}: {parsed:?}");
        }
        assert_eq!(parse_script("alter table t set (what = 1)").unwrap_err().state().0, "22023");
    }
}
