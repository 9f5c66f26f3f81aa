//! What `USING` asks for.
//!
//! ```text
//!   btree, and nothing     an ordinary index
//!   hash, brin             an ordinary index answers all that they do: it is one, with a notice
//!   gin, gist, spgist      what is inside of values has no index here: kept as it is declared, so
//!                          that migrations and dumps pass, without entries, and never read
//! ```
//! What PostgreSQL would refuse is refused, so that a migration that passes here passes there. The
//! method and the operator classes that are named are kept and shown, so that a tool that compares
//! schemas finds what it has made.

use braid_catalog::{Column, Declared, IndexColumn, Table, operator_class};
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;

use crate::ddl::{Change, parts};
use braid_parser::CreateIndex;

/// What an index is declared as.
///
/// # Errors
/// 42704 for a method that nobody knows; 0A000 for what PostgreSQL's do not have.
pub(super) fn method(create: &CreateIndex) -> SqlResult<Declared> {
    let base = &create.base;
    let class = |c: &ast::IndexColumn| c.operator_class.as_ref().map(|name| parts(name).join("."));
    let using = base.using.as_ref();
    let method = using.map_or("btree".to_string(), |using| using.to_string().to_lowercase());
    let declared =
        Declared { method: method.clone(), classes: base.columns.iter().map(class).collect() };
    let lacks = |what: &str| {
        let text = format!("access method \"{method}\" does not support {what}");
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text))
    };
    let known = ["btree", "hash", "brin", "gin", "gist", "spgist"];
    if !known.contains(&method.as_str()) {
        let text = format!("access method \"{method}\" does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text));
    }
    if method == "btree" {
        return Ok(declared);
    }
    let options = |c: &ast::IndexColumn| c.column.options;
    if base.unique {
        return lacks("unique indexes");
    } else if !base.include.is_empty() && !matches!(method.as_str(), "gist" | "spgist") {
        return lacks("included columns");
    } else if base.columns.len() > 1 && matches!(method.as_str(), "hash" | "spgist") {
        return lacks("multicolumn indexes");
    } else if base.columns.iter().any(|c| options(c).asc.is_some()) {
        return lacks("ASC/DESC options");
    } else if base.columns.iter().any(|c| options(c).nulls_first.is_some()) {
        return lacks("NULLS FIRST/LAST options");
    }
    if create.interleave.is_some() {
        return Err(SqlError::unsupported(format!(
            "an interleaved index with the method {method}"
        ))
        .with_hint("Leave USING away."));
    }
    Ok(declared)
}

/// Whether an index of a method has entries.
fn has_entries(declared: &Declared) -> bool {
    matches!(declared.method.as_str(), "btree" | "hash" | "brin")
}

/// Tells what became of a method that is not here.
pub(super) fn tell(c: &Change, declared: &Declared) {
    let method = &declared.method;
    match has_entries(declared) {
        false => c.ctx.notice(format!(
            "the index is kept as it is declared and never read: the method {method} is not here"
        )),
        true if method != "btree" => {
            c.ctx.notice(format!("the index is an ordinary one: the method {method} is not here"));
        }
        true => {}
    }
}

/// That a method has an operator class for each column, as PostgreSQL has.
///
/// # Errors
/// 42704, 42804.
pub(in crate::ddl) fn check_classes(
    t: &Table,
    columns: &[IndexColumn],
    declared: &Declared,
) -> SqlResult<()> {
    for (key, named) in columns.iter().zip(&declared.classes) {
        let Some(Column { ty, .. }) = t.column(key.column) else { continue };
        // What has no order is refused by the one who asks whether it is a type of keys.
        if named.is_some() || declared.method != "btree" {
            operator_class(&declared.method, ty, named.as_deref())?;
        }
    }
    Ok(())
}

/// What is kept of a declaration that was checked: of an index without entries, and of an ordinary
/// one. A class that is its type's default is not said again.
pub(super) fn kept(
    t: &Table,
    columns: &[IndexColumn],
    mut declared: Declared,
) -> (Option<Declared>, Option<Declared>) {
    for (key, named) in columns.iter().zip(&mut declared.classes) {
        let ty = t.column(key.column).map(|column| &column.ty);
        let class = |ty| operator_class(&declared.method, ty, named.as_deref()).ok();
        if let Some(class) = named.as_ref().and(ty).and_then(class) {
            let is_default = ty.is_some_and(|ty| {
                operator_class(&declared.method, ty, None).is_ok_and(|own| own.oid == class.oid)
            });
            *named = (!is_default).then(|| class.name.clone());
        }
    }
    if !has_entries(&declared) {
        return (Some(declared), None);
    }
    let is_plain = declared.method == "btree" && declared.classes.iter().all(Option::is_none);
    (None, (!is_plain).then_some(declared))
}
