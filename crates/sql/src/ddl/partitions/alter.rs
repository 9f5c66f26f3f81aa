//! ALTER TABLE of a partition: what it has of its own. The rest is the table's.

use braid_catalog::{Check, Partition, Table};
use braid_parser::AlterOwn;
use braid_scalar::ident_name;
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::{self, AlterTableOperation as Op};

use super::declare::some_row;
use super::{indexes, redivide};
use crate::ddl::{Change, access::roles, alter, constraint, exists, parts};
use crate::partitions::condition_of;

/// Runs the operations of an ALTER TABLE on a partition.
pub(crate) fn alter(c: &mut Change, window: &Table, operations: &[Op]) -> SqlResult<()> {
    let id = window.shown_id();
    c.lock_chain(&c.stored(window.id)?)?;
    for op in operations {
        let window = c.catalog.partition(id).cloned();
        let window = window.ok_or_else(|| SqlError::internal("a partition is gone"))?;
        operation(c, &window, op)?;
    }
    Ok(())
}

/// SET SCHEMA.
pub(in crate::ddl) fn place(c: &mut Change, window: &Table, op: &AlterOwn) -> SqlResult<()> {
    let AlterOwn::SetSchema(name) = op else { return Err(of_table(window, "That")) };
    let Some(schema) = c.catalog.schema(c.ctx.database, name).cloned() else {
        return Err(crate::session::no_schema(name));
    };
    let own = partition(window)?;
    let names = std::iter::once(&own.name).chain(own.indexes.iter().map(|i| &i.name));
    if let Some(taken) = names.into_iter().find(|n| c.taken(schema.id, n)) {
        return Err(exists(taken));
    }
    change(c, window, |p| p.schema = schema.id)
}

fn partition(window: &Table) -> SqlResult<&Partition> {
    window.window().ok_or_else(|| SqlError::internal("no partition"))
}

fn change(c: &mut Change, window: &Table, work: impl FnOnce(&mut Partition)) -> SqlResult<()> {
    let id = window.shown_id();
    redivide(c, window.id, |divided| {
        if let Some(p) = divided.partition_mut(id) {
            work(p);
        }
    })?;
    Ok(())
}

/// 0A000 for what is the whole table's.
fn of_table(window: &Table, what: &str) -> SqlError {
    SqlError::unsupported(format!("{what} of a partition alone"))
        .with_hint(format!("\"{}\" has no rows of its own: change its table.", window.name))
}

fn inherited(what: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_TABLE_DEFINITION, format!("cannot {what}"))
}

fn operation(c: &mut Change, window: &Table, op: &Op) -> SqlResult<()> {
    match op {
        Op::AddColumn { .. } => {
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, "cannot add column to a partition"))
        }
        Op::DropColumn { column_names, .. } => {
            let name = column_names.first().map(ident_name).unwrap_or_default();
            Err(inherited(&format!("drop inherited column \"{name}\"")))
        }
        Op::RenameColumn { old_column_name, .. } => {
            Err(inherited(&format!("rename inherited column \"{}\"", ident_name(old_column_name))))
        }
        Op::AlterColumn { column_name, op } => column(c, window, &ident_name(column_name), op),
        Op::AddConstraint { not_valid: true, .. } => {
            Err(SqlError::unsupported("a NOT VALID constraint of a partition alone")
                .with_hint("Add it to the partitioned table."))
        }
        Op::AddConstraint { constraint: k, .. } => add_constraint(c, window, k),
        Op::DropConstraint { if_exists, name, drop_behavior } => {
            let cascade = matches!(drop_behavior, Some(ast::DropBehavior::Cascade));
            drop_constraint(c, window, &ident_name(name), *if_exists, cascade)
        }
        Op::RenameTable { table_name } => {
            let (ast::RenameTableNameKind::To(n) | ast::RenameTableNameKind::As(n)) = table_name;
            let name = parts(n).pop().unwrap_or_default();
            if c.taken(window.schema, &name) {
                return Err(exists(&name));
            }
            alter::refuse_if_viewed(c, window, "rename table")?;
            change(c, window, |p| p.name = name)
        }
        Op::OwnerTo { new_owner } => roles::give_partition(c, window.shown_id(), new_owner),
        Op::ReplicaIdentity { .. } | Op::ClusterBy { .. } | Op::ValidateConstraint { .. } => Ok(()),
        other => {
            let text = other.to_string();
            let words: Vec<_> = text.split_whitespace().take(2).collect();
            Err(of_table(window, &words.join(" ")))
        }
    }
}

fn column(
    c: &mut Change,
    window: &Table,
    name: &str,
    op: &ast::AlterColumnOperation,
) -> SqlResult<()> {
    let Some(col) = window.column_named(name).cloned() else {
        return Err(SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" of relation \"{}\" does not exist", window.name),
        ));
    };
    let default = match op {
        ast::AlterColumnOperation::SetDefault { value } => {
            Some(crate::ddl::column::check_default(c, value, (&col.name, &col.ty))?)
        }
        ast::AlterColumnOperation::DropDefault => None,
        ast::AlterColumnOperation::SetNotNull if !col.nullable => return Ok(()),
        ast::AlterColumnOperation::SetNotNull | ast::AlterColumnOperation::DropNotNull => {
            return Err(of_table(window, "NOT NULL"));
        }
        _ => return Err(inherited(&format!("alter inherited column \"{name}\""))),
    };
    let of_table = c.catalog.table(window.id).and_then(|t| t.column(col.id)?.default.clone());
    change(c, window, |p| {
        p.defaults.retain(|(id, _)| *id != col.id);
        if default != of_table {
            p.defaults.push((col.id, default));
        }
    })
}

fn add_constraint(c: &mut Change, window: &Table, k: &ast::TableConstraint) -> SqlResult<()> {
    match k {
        ast::TableConstraint::PrimaryKey(p) => {
            let index = constraint::primary_of_partition(c, window, p)?;
            indexes::add(c, window, index)
        }
        ast::TableConstraint::Unique(_) => match constraint::declare(c, window, k, None)? {
            braid_catalog::Addition::Index { index, .. } => indexes::add(c, window, index),
            _ => Err(SqlError::internal("a unique key without an index")),
        },
        ast::TableConstraint::Check(_) => match constraint::declare(c, window, k, None)? {
            braid_catalog::Addition::Check(check) => add_check(c, window, check),
            _ => Err(SqlError::internal("a check is none")),
        },
        _ => Err(of_table(window, "a foreign key")),
    }
}

fn add_check(c: &mut Change, window: &Table, check: Check) -> SqlResult<()> {
    let within = condition_of(window, window.shown_id())?;
    let table = c.stored(window.id)?;
    if some_row(c, &table, &format!("{within} AND NOT ({})", check.expr))? {
        return Err(SqlError::new(
            SqlState::CHECK_VIOLATION,
            format!(
                "check constraint \"{}\" of relation \"{}\" is violated by some row",
                check.name, window.name
            ),
        ));
    }
    change(c, window, |p| p.checks.push(check))
}

fn drop_constraint(
    c: &mut Change,
    window: &Table,
    name: &str,
    if_exists: bool,
    cascade: bool,
) -> SqlResult<()> {
    let own = partition(window)?;
    if own.checks.iter().any(|k| k.name == name) {
        return change(c, window, |p| p.checks.retain(|k| k.name != name));
    }
    let of_table = |i: &&braid_catalog::Index| i.name == name && i.constraint.is_some();
    let found = window.all_indexes().find(of_table);
    let alone = found.and_then(|i| i.of_partition.as_ref()).map(|of| of.partition);
    if let Some(index) = found
        && alone == Some(own.id)
    {
        let table = c.stored(window.id)?;
        return crate::ddl::drop::remove_index(c, &table, index.id, cascade);
    }
    if found.is_some() || window.has_constraint(name) {
        let text = format!("drop inherited constraint \"{name}\" of relation \"{}\"", window.name);
        return Err(inherited(&text));
    }
    let text = format!("constraint \"{name}\" of relation \"{}\" does not exist", window.name);
    if if_exists {
        c.ctx.notice(format!("{text}, skipping"));
        return Ok(());
    }
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text))
}
