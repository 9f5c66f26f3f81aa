//! What a statement of a dump becomes when it cannot be had as it is, but its rows can.
//!
//! ```text
//!   DEFAULT f(), CHECK (f(a))       f is not here            without them
//!   COLLATE "en_US.utf8"            a locale of libc         COLLATE "en-US-x-icu"
//!   a tsvector                      a type that is not here  a text, if statements may be left out
//! ```
//! All of it is told as `changed`.

use braid_parser::{CreateDomain, Kind, Statement};
use braid_types::{SqlError, SqlState, quote_ident};
use sqlparser::ast::{ColumnOption, DataType, TableConstraint};

/// Another text for a statement that failed, and what is told of it; `None` if there is none.
/// `asked`: what is not supported may be left out.
pub(super) fn instead(
    (statement, text): (&Statement, &str),
    e: &SqlError,
    asked: bool,
) -> Option<(String, String)> {
    match e.state() {
        SqlState::UNDEFINED_FUNCTION => {
            let other = without_function(statement, e)?;
            Some((other, format!("without defaults and checks: {}", e.message())))
        }
        SqlState::UNDEFINED_OBJECT if e.message().starts_with("collation ") => {
            with_collation_of_icu(text, e)
        }
        SqlState::UNDEFINED_OBJECT if asked => with_texts(statement, e),
        _ => None,
    }
}

/// The name between the first quotes of a message that begins with a word.
fn named_by<'a>(e: &'a SqlError, word: &str) -> Option<&'a str> {
    let rest = e.message().strip_prefix(word)?.strip_prefix(" \"")?;
    rest.split_once('"').map(|(name, _)| name)
}

/// With the collation that ICU has for a locale of libc, which are not here.
fn with_collation_of_icu(text: &str, e: &SqlError) -> Option<(String, String)> {
    let name = named_by(e, "collation")?;
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    let locale = name.split(['.', '@']).next()?;
    let (language, country) = locale.split_once('_').unwrap_or((locale, "XX"));
    let is_language =
        (2..=3).contains(&language.len()) && language.bytes().all(|byte| byte.is_ascii_lowercase());
    if !is_language || country.len() != 2 || !country.bytes().all(|b| b.is_ascii_uppercase()) {
        return None;
    }
    let own = format!("{}-x-icu", locale.replace('_', "-"));
    let written = |schema: &str| format!("COLLATE {schema}{}", quote_ident(name));
    let other = ["pg_catalog.", ""].iter().find_map(|schema| {
        let written = written(schema);
        let own = format!("COLLATE pg_catalog.{}", quote_ident(&own));
        text.contains(&written).then(|| text.replace(&written, &own))
    })?;
    Some((other, format!("collation \"{name}\" is of libc: \"{own}\" in its place")))
}

/// With texts in columns whose type is not here. A column that is computed is left out, since a
/// dump has no values of it.
fn with_texts(statement: &Statement, e: &SqlError) -> Option<(String, String)> {
    let missing = named_by(e, "type")?.to_lowercase();
    let Kind::CreateTable(made) = &*statement.kind else { return None };
    if made.by.is_some() || !made.likes.is_empty() {
        return None;
    }
    let is_of = |ty: &DataType| {
        let written = ty.to_string().to_lowercase().replace('"', "");
        let bare = written.split(['(', '[']).next().unwrap_or_default().trim();
        bare == missing
    };
    let mut table = made.base.clone();
    let mut told = Vec::new();
    table.columns.retain_mut(|column| {
        if !is_of(&column.data_type) {
            return true;
        }
        let computed = |o: &ColumnOption| {
            matches!(o, ColumnOption::Generated { generation_expr: Some(_), .. })
        };
        if column.options.iter().any(|o| computed(&o.option)) {
            told.push(format!("without the computed column {}", column.name));
            return false;
        }
        told.push(format!("{} is text instead of {}", column.name, column.data_type));
        column.data_type = DataType::Text;
        let kept = |o: &ColumnOption| {
            matches!(o, ColumnOption::Null | ColumnOption::NotNull | ColumnOption::Comment(_))
        };
        column.options.retain(|o| kept(&o.option));
        true
    });
    (!told.is_empty()).then(|| (table.to_string(), told.join("; ")))
}

/// A CREATE TABLE or CREATE DOMAIN without the defaults and checks that call a function which is
/// not there; `None` if that is not what it fails for.
fn without_function(statement: &Statement, e: &SqlError) -> Option<String> {
    let called = e.message().strip_prefix("function ")?;
    let end = called.find(['(', ' '])?;
    let called = called[..end].replace('"', "");
    let last = called.rsplit_once('.').map_or(&*called, |(_, last)| last);
    let call = format!("{last}(");
    let calls = |text: &dyn std::fmt::Display| text.to_string().replace('"', "").contains(&call);
    match &*statement.kind {
        Kind::CreateTable(made) if made.by.is_none() && made.likes.is_empty() => {
            let mut table = made.base.clone();
            for column in &mut table.columns {
                column.options.retain(|o| match &o.option {
                    ColumnOption::Default(default) => !calls(default),
                    ColumnOption::Check(check) => !calls(check),
                    _ => true,
                });
            }
            table.constraints.retain(|c| !matches!(c, TableConstraint::Check(_)) || !calls(c));
            (table != made.base).then(|| table.to_string())
        }
        Kind::CreateDomain(made) => {
            let mut domain = (**made).clone();
            domain.default.take_if(|default| calls(default));
            domain.checks.retain(|(_, check)| !calls(check));
            let fewer = domain.default.is_some() != made.default.is_some()
                || domain.checks.len() != made.checks.len();
            fewer.then(|| domain_text(&domain))
        }
        _ => None,
    }
}

fn domain_text(d: &CreateDomain) -> String {
    let name: Vec<String> = d.name.iter().map(|part| quote_ident(part)).collect();
    let mut out = format!("CREATE DOMAIN {} AS {}", name.join("."), d.base);
    if let Some(default) = &d.default {
        out.push_str(&format!(" DEFAULT {default}"));
    }
    if d.not_null {
        out.push_str(" NOT NULL");
    }
    for (name, check) in &d.checks {
        if let Some(name) = name {
            out.push_str(&format!(" CONSTRAINT {}", quote_ident(name)));
        }
        out.push_str(&format!(" CHECK ({check})"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_here_has_something_in_its_place() {
        let of = |text: &str, message: &str, asked| {
            let statement = braid_parser::parse_script(text).unwrap().pop().unwrap();
            let e = SqlError::new(SqlState::UNDEFINED_OBJECT, message);
            instead((&statement, text), &e, asked)
        };
        let missing = "collation \"pg_catalog.de_AT.utf8\" for encoding \"UTF8\" does not exist";
        let text = "CREATE TABLE t (a text COLLATE pg_catalog.\"de_AT.utf8\", b int)";
        let (other, why) = of(text, missing, false).unwrap();
        assert_eq!(other, "CREATE TABLE t (a text COLLATE pg_catalog.\"de-AT-x-icu\", b int)");
        assert_eq!(why, "collation \"de_AT.utf8\" is of libc: \"de-AT-x-icu\" in its place");
        // Neither a collation of somebody's own, nor one of ICU that is not there either.
        for name in ["mine", "xx-YY-x-icu"] {
            let text = format!("CREATE TABLE t (a text COLLATE \"{name}\")");
            assert_eq!(of(&text, &format!("collation \"{name}\" does not exist"), true), None);
        }
        let missing = "type \"tsvector\" does not exist";
        let text = "CREATE TABLE t (a int, b tsvector[] DEFAULT f() NOT NULL, \
                    c tsvector GENERATED ALWAYS AS (f(a)) STORED)";
        assert_eq!(of(text, missing, false), None);
        let (other, why) = of(text, missing, true).unwrap();
        assert_eq!(other, "CREATE TABLE t (a INT, b TEXT NOT NULL)");
        assert_eq!(why, "b is text instead of TSVECTOR[]; without the computed column c");
        let text = "CREATE TABLE t (g public.geometry(Point,4326))";
        let (other, _) = of(text, "type \"public.geometry\" does not exist", true).unwrap();
        assert_eq!(other, "CREATE TABLE t (g TEXT)");
    }
}
