//! COMMENT ON.

use braid_catalog::{Relation, View};
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast;

use super::{Change, parts, user_type};

pub(crate) fn comment(
    c: &mut Change,
    kind: ast::CommentObject,
    name: &ast::ObjectName,
    text: Option<String>,
) -> SqlResult<String> {
    let name = parts(name);
    let tag = "COMMENT".to_string();
    match kind {
        ast::CommentObject::Table => {
            let mut t = (*c.ctx.table(&name)?).clone();
            t.comment = text;
            c.put(t);
        }
        ast::CommentObject::Column => {
            let (column, table) = name
                .split_last()
                .ok_or_else(|| SqlError::syntax("column name must be qualified"))?;
            let mut t = (*c.ctx.table(&table.to_vec())?).clone();
            match t.columns.iter_mut().find(|x| x.name == *column && !x.hidden) {
                Some(x) => x.comment = text,
                None => {
                    return Err(SqlError::new(
                        SqlState::UNDEFINED_COLUMN,
                        format!("column \"{column}\" of relation \"{}\" does not exist", t.name),
                    ));
                }
            }
            c.put(t);
        }
        ast::CommentObject::View => {
            if let Relation::View(v) = c.ctx.relation(&name)? {
                c.catalog.put_view(View { comment: text, ..(*v).clone() });
                c.sync();
            }
        }
        ast::CommentObject::Type | ast::CommentObject::Domain => {
            user_type::comment(c, &name, text)?
        }
        _ => c.ctx.notice("comments are kept for tables, columns, types and views only"),
    }
    Ok(tag)
}
