//! ALTER TABLE of what is no table: a sequence, a view, an index. PostgreSQL lets it say what ALTER
//! SEQUENCE, ALTER VIEW and ALTER INDEX say, and tools that rename a table's sequence rely on it.

use std::sync::Arc;

use braid_catalog::{Relation, TypeKind, View};
use braid_parser::{MaterializedChange, Name, SequenceChange};
use braid_scalar::ident_name;
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::{self, AlterTableOperation as Op};

use crate::ddl::access::roles::wrong_kind;
use crate::ddl::view::{materialized, uses};
use crate::ddl::{Change, alter, exists, index, parts, sequence};

/// Runs ALTER TABLE of a relation that is no table; `false` if it is one.
pub(in crate::ddl) fn run(c: &mut Change, name: &Name, a: &ast::AlterTable) -> SqlResult<bool> {
    let relation = c.ctx.relation(name)?;
    if matches!(relation, Relation::Table(_) | Relation::Partition(_)) {
        return Ok(false);
    }
    match a.operations.as_slice() {
        [Op::RenameTable { table_name }] => {
            let (ast::RenameTableNameKind::As(new) | ast::RenameTableNameKind::To(new)) =
                table_name;
            rename(c, name, &relation, parts(new).pop().unwrap_or_default())?;
        }
        [Op::RenameColumn { old_column_name, new_column_name }]
            if let Relation::View(view) = &relation =>
        {
            rename_column(c, view, &ident_name(old_column_name), &ident_name(new_column_name))?;
        }
        [Op::RenameConstraint { old_name, .. }] => {
            let own = name.last().map_or("", String::as_str);
            let old = ident_name(old_name);
            let text = format!("constraint \"{old}\" for table \"{own}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text));
        }
        [Op::AlterColumn { op, .. }, ..]
            if matches!(relation, Relation::View(_))
                && matches!(
                    op,
                    ast::AlterColumnOperation::SetDefault { .. }
                        | ast::AlterColumnOperation::DropDefault
                ) =>
        {
            return Err(SqlError::unsupported("defaults of a view's columns")
                .with_hint("Give the default to the column of the table behind the view."));
        }
        [op, ..] => return Err(cannot_be_done(name, &relation, materialized::action_of(op))),
        [] => {}
    }
    Ok(true)
}

fn cannot_be_done(name: &Name, relation: &Relation, action: &str) -> SqlError {
    let own = name.last().map_or("", String::as_str);
    let kinds = match relation {
        Relation::Index(..) => "indexes".to_string(),
        other => format!("{}s", other.kind()),
    };
    let text = format!("ALTER action {action} cannot be performed on relation \"{own}\"");
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
        .with_detail(format!("This operation is not supported for {kinds}."))
}

/// 42809 for a composite type where a table is to be altered.
pub(in crate::ddl) fn refuse_type(c: &Change, name: &Name) -> SqlResult<()> {
    let found = c.ctx.user_type(name)?;
    let composite = found.filter(|ty| matches!(ty.kind, TypeKind::Composite(_)));
    match composite {
        None => Ok(()),
        Some(ty) => {
            let text = format!("\"{}\" is a composite type", ty.name);
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
                .with_hint("Use ALTER TYPE instead."))
        }
    }
}

/// RENAME TO.
pub(in crate::ddl) fn rename(
    c: &mut Change,
    name: &Name,
    relation: &Relation,
    new: String,
) -> SqlResult<()> {
    match relation {
        Relation::Sequence(_) => {
            let change = SequenceChange { rename: Some(new), ..Default::default() };
            sequence::alter(c, name, false, &change)?;
        }
        Relation::View(_) => {
            alter_view(c, name, false, &MaterializedChange::Rename(new))?;
        }
        Relation::Index(..) => {
            index::alter(c, name, false, &new)?;
        }
        Relation::Table(t) => alter::rename_table(c, t, new)?,
        Relation::Partition(_) => return Err(wrong_kind(name, "index")),
    }
    Ok(())
}

/// SET SCHEMA; `false` for a table.
pub(in crate::ddl) fn set_schema(c: &mut Change, name: &Name, schema: &str) -> SqlResult<bool> {
    match c.ctx.relation(name)? {
        Relation::Table(_) | Relation::Partition(_) => return Ok(false),
        Relation::Sequence(_) => {
            let change = SequenceChange { schema: Some(schema.into()), ..Default::default() };
            sequence::alter(c, name, false, &change)?;
        }
        Relation::View(_) => {
            alter_view(c, name, false, &MaterializedChange::SetSchema(schema.to_string()))?;
        }
        Relation::Index(t, id) => {
            let own = t.index(id).map_or("", |i| i.name.as_str());
            let text = format!("cannot change schema of index \"{own}\"");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
                .with_hint("Change the schema of the table instead."));
        }
    }
    Ok(true)
}

/// ALTER VIEW.
pub(crate) fn alter_view(
    c: &mut Change,
    name: &Name,
    if_exists: bool,
    change: &MaterializedChange,
) -> SqlResult<String> {
    let tag = "ALTER VIEW".to_string();
    if if_exists && c.ctx.find_relation(name)?.is_none() {
        c.ctx.notice(format!("relation \"{}\" does not exist, skipping", name.join(".")));
        return Ok(tag);
    }
    let Relation::View(view) = c.ctx.relation(name)? else {
        return Err(wrong_kind(name, "view"));
    };
    match change {
        MaterializedChange::Rename(new) => alter::rename_view(c, &view, new)?,
        MaterializedChange::RenameColumn(old, new) => rename_column(c, &view, old, new)?,
        MaterializedChange::SetSchema(to) => move_view(c, &view, to)?,
        MaterializedChange::Options => {}
        MaterializedChange::SetStatistics(..) => {
            let kind = Relation::View(view);
            return Err(cannot_be_done(name, &kind, "ALTER COLUMN ... SET STATISTICS"));
        }
    }
    c.sync();
    Ok(tag)
}

/// A column of a view gets another name: what it shows stays.
fn rename_column(c: &mut Change, view: &Arc<View>, old: &str, new: &str) -> SqlResult<()> {
    let Some(at) = view.columns.iter().position(|(name, _)| name == old) else {
        let text = format!("column \"{old}\" does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, text));
    };
    if view.columns.iter().any(|(name, _)| name == new) {
        let text = format!("column \"{new}\" of relation \"{}\" already exists", view.name);
        return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, text));
    }
    let what = format!("rename column \"{old}\" of view");
    let uses = |used: &braid_catalog::Definition| uses::may_use_column(used, &view.name, old);
    alter::refuse_if_used(c, (view.id, &view.name), &what, uses)?;
    c.ctx.lock_for_change(view.id)?;
    let mut changed = (**view).clone();
    changed.columns[at].0 = new.to_string();
    c.catalog.put_view(changed);
    Ok(())
}

/// A view goes to another schema. Its own query names relations with their schemas or by the path
/// that it was made with, so that it goes on to show what it showed.
fn move_view(c: &mut Change, view: &Arc<View>, schema: &str) -> SqlResult<()> {
    let Some(schema) = c.catalog.schema(c.ctx.database, schema).cloned() else {
        return Err(crate::session::no_schema(schema));
    };
    if schema.id == view.schema {
        return Ok(());
    }
    alter::refuse_if_used(c, (view.id, &view.name), "move view", |_| true)?;
    if c.taken(schema.id, &view.name) {
        return Err(in_schema(&view.name, &schema.name));
    }
    c.ctx.lock_for_change(view.id)?;
    c.catalog.put_view(View { schema: schema.id, ..(**view).clone() });
    Ok(())
}

/// 42P07: something else has the name in the schema that a relation is moved to.
pub(in crate::ddl) fn in_schema(name: &str, schema: &str) -> SqlError {
    let text = format!("relation \"{name}\" already exists in schema \"{schema}\"");
    SqlError::new(exists(name).state(), text)
}
