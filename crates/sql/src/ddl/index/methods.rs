//! What `USING` asks for.
//!
//! ```text
//!   btree, and nothing     an ordinary index
//!   hash, brin             an ordinary index answers all that they do: it is one, with a notice
//!   gin, gist, spgist      what is inside of values has no index here: kept as it is declared, so
//!                          that migrations and dumps pass, without entries, and never read
//! ```
//! What PostgreSQL would refuse is refused, so that a migration that passes here passes there.

use braid_catalog::{Column, IndexColumn, Table, Unread};
use braid_types::{GeometryKind, SqlError, SqlResult, SqlState, SqlType};
use sqlparser::ast;

use crate::ddl::{Change, parts};
use braid_parser::CreateIndex;

/// The method of an index that is never read; `None` for an ordinary one.
///
/// # Errors
/// 42704 for a method that nobody knows; 0A000 for what PostgreSQL's do not have.
pub(super) fn method(create: &CreateIndex) -> SqlResult<Option<Unread>> {
    let base = &create.base;
    let Some(using) = &base.using else { return Ok(None) };
    let method = using.to_string().to_lowercase();
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
        return Ok(None);
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
    if matches!(method.as_str(), "hash" | "brin") {
        return Ok(None);
    }
    let class = |c: &ast::IndexColumn| c.operator_class.as_ref().map(|name| parts(name).join("."));
    Ok(Some(Unread { method, classes: base.columns.iter().map(class).collect() }))
}

/// Tells what became of a method that is not here.
pub(super) fn tell(c: &Change, create: &CreateIndex, unread: Option<&Unread>) {
    let Some(using) = &create.base.using else { return };
    let method = using.to_string().to_lowercase();
    match unread {
        Some(_) => c.ctx.notice(format!(
            "the index is kept as it is declared and never read: the method {method} is not here"
        )),
        None if method != "btree" => {
            c.ctx.notice(format!("the index is an ordinary one: the method {method} is not here"));
        }
        None => {}
    }
}

/// That a method has an operator class for each column, as PostgreSQL has.
///
/// # Errors
/// 42704.
pub(in crate::ddl) fn check_classes(
    t: &Table,
    columns: &[IndexColumn],
    unread: &Unread,
) -> SqlResult<()> {
    let method = unread.method.as_str();
    for (key, class) in columns.iter().zip(&unread.classes) {
        let Some(Column { ty, .. }) = t.column(key.column) else { continue };
        match class {
            Some(class) => {
                let bare = class.trim_start_matches("pg_catalog.").trim_start_matches("public.");
                if !classes_of(method, ty).contains(&bare) {
                    let text = format!(
                        "operator class \"{class}\" does not exist for access method \"{method}\""
                    );
                    return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text));
                }
            }
            None if has_default(method, ty) => {}
            None => {
                let text = format!(
                    "data type {} has no default operator class for access method \"{method}\"",
                    ty.base_name()
                );
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text).with_hint(
                    "You must specify an operator class for the index or define a default \
                     operator class for the data type.",
                ));
            }
        }
    }
    Ok(())
}

fn is_text(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_))
}

/// Operator classes that can be named for a type: PostgreSQL's own, and those of `pg_trgm`.
fn classes_of(method: &str, ty: &SqlType) -> &'static [&'static str] {
    match (method, ty) {
        ("gin", SqlType::Jsonb) => &["jsonb_ops", "jsonb_path_ops"],
        ("gin", SqlType::Array(_)) => &["array_ops"],
        ("gin", ty) if is_text(ty) => &["gin_trgm_ops"],
        ("gist", ty) if is_text(ty) => &["gist_trgm_ops"],
        ("gist" | "spgist", SqlType::Inet | SqlType::Cidr) => &["inet_ops"],
        ("gist" | "spgist", SqlType::Range(_)) => &["range_ops"],
        ("gist", SqlType::Geometry(GeometryKind::Point)) => &["point_ops"],
        ("spgist", SqlType::Geometry(GeometryKind::Point)) => &["quad_point_ops", "kd_point_ops"],
        ("gist" | "spgist", SqlType::Geometry(GeometryKind::Box)) => &["box_ops"],
        ("gist" | "spgist", SqlType::Geometry(GeometryKind::Polygon)) => &["poly_ops"],
        ("gist", SqlType::Geometry(GeometryKind::Circle)) => &["circle_ops"],
        ("spgist", ty) if is_text(ty) => &["text_ops"],
        _ => &[],
    }
}

/// Whether a type needs no operator class to be named.
fn has_default(method: &str, ty: &SqlType) -> bool {
    if matches!(ty, SqlType::Geometry(_)) {
        return !classes_of(method, ty).is_empty();
    }
    matches!(
        (method, ty),
        ("gin", SqlType::Jsonb | SqlType::Array(_))
            | ("gist" | "spgist", SqlType::Range(_))
            | ("spgist", SqlType::Inet | SqlType::Cidr | SqlType::Text | SqlType::Varchar(_))
    )
}
