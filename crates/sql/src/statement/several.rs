//! Statements that are several: each part runs as the statement that it is, within one change.

use std::sync::Arc;

use braid_catalog::Schema;
use braid_parser::{Kind, Name, Several, Statement};
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::Statement as Sql;

use super::entry::Runs;
use super::registry::entry_of;
use crate::ddl::Change;
use braid_scalar::object_name_parts;

fn run(c: &mut Change, part: &Statement) -> SqlResult<String> {
    let Runs::Change(of) = entry_of(part)?.runs else {
        return Err(SqlError::internal("a part that changes no catalog"));
    };
    let work = of(part).ok_or_else(|| SqlError::internal("a part of no type"))?;
    let tag = work(c)?;
    c.sync();
    Ok(tag)
}

/// Actions of ALTER TABLE. Of a table that need not be there, it is said once that it is not.
pub(super) fn alter_table(c: &mut Change, several: &Several) -> SqlResult<String> {
    let is_there = match &several.table {
        Some(table) => c.ctx.find_relation(table)?.is_some(),
        None => true,
    };
    let most = if is_there { several.parts.len() } else { 1 };
    for part in several.parts.iter().take(most) {
        run(c, part)?;
    }
    Ok("ALTER TABLE".into())
}

/// CREATE SCHEMA, and what is to lie in it: names without a schema mean it first.
pub(super) fn create_schema(c: &mut Change, several: &Several) -> SqlResult<String> {
    let Some((schema, elements)) = several.parts.split_first() else {
        return Err(SqlError::internal("no schema"));
    };
    let before: Vec<u32> = c.catalog.schemas(c.ctx.database).map(|s| s.id).collect();
    let tag = run(c, schema)?;
    let made: Option<Arc<Schema>> =
        c.catalog.schemas(c.ctx.database).find(|s| !before.contains(&s.id)).cloned();
    let made = made.ok_or_else(|| SqlError::internal("no schema was made"))?;
    let mut path = c.ctx.search_path.to_vec();
    let first = path.len().min(1);
    path.insert(first, made.name.clone());
    c.ctx.search_path = Arc::new(path);
    for element in elements {
        if let Some([.., named, _]) = name_of(element).as_deref()
            && *named != made.name
        {
            return Err(SqlError::new(
                SqlState("42P15"),
                format!(
                    "CREATE specifies a schema ({named}) different from the one being created ({})",
                    made.name
                ),
            ));
        }
        run(c, element)?;
    }
    Ok(tag)
}

/// The name of what is created.
fn name_of(element: &Statement) -> Option<Name> {
    match &*element.kind {
        Kind::CreateTable(table) => Some(object_name_parts(&table.base.name)),
        Kind::CreateIndex(index) => Some(object_name_parts(&index.base.table_name)),
        Kind::CreateSequence { name, .. } => Some(name.clone()),
        Kind::Sql(sql) => match &**sql {
            Sql::CreateView(view) => Some(object_name_parts(&view.name)),
            _ => None,
        },
        _ => None,
    }
}
