//! ALTER TABLE: constraints, renames, and the way to the column operations.

use std::sync::Arc;

use braid_catalog::{Definition, IndexConstraint, Relation, Table, Upkeep, View};
use braid_types::{SqlError, SqlResult, SqlState};
use sqlparser::ast::{self, AlterTableOperation as Op};

use super::view::uses;
use super::{
    Change, alter_column, commit_timestamp, constraint, drop, exists, index, interleave, moves,
    moves::Place, named_relations, other_kinds, partitions, parts, primary_key, schema, sequence,
    ttl, view::materialized,
};
use braid_parser::{AlterOwn, Name, StorageOptions, Triggers};
use braid_scalar::ident_name;

pub(crate) fn run(c: &mut Change, a: &ast::AlterTable) -> SqlResult<String> {
    let name = parts(&a.name);
    let tag = "ALTER TABLE".to_string();
    if a.if_exists && c.ctx.find_relation(&name)?.is_none() {
        c.ctx.notice(format!("relation \"{}\" does not exist, skipping", name.join(".")));
        return Ok(tag);
    }
    c.only = a.only;
    if c.ctx.find_relation(&name)?.is_none() {
        other_kinds::refuse_type(c, &name)?;
    }
    if let Relation::Partition(window) = c.ctx.relation(&name)? {
        partitions::alter(c, &window, &a.operations)?;
        return Ok(tag);
    }
    if other_kinds::run(c, &name, a)? {
        return Ok(tag);
    }
    let id = c.ctx.stored(&name)?.id;
    refuse_twice(&a.operations)?;
    let mut operations: Vec<&Op> = a.operations.iter().collect();
    operations.sort_by_key(|op| pass(op));
    for op in operations {
        let t = c.catalog.table(id).expect("a table does not go while it is altered").clone();
        materialized::check_operation(&t, op)?;
        c.lock_chain(&t)?;
        operation(c, &t, op)?;
        c.sync();
    }
    Ok(tag)
}

/// 0A000 for a column that gets two types.
fn refuse_twice(operations: &[Op]) -> SqlResult<()> {
    let mut seen = std::collections::BTreeSet::new();
    for op in operations {
        let Op::AlterColumn { column_name, op: ast::AlterColumnOperation::SetDataType { .. } } = op
        else {
            continue;
        };
        let name = ident_name(column_name);
        if !seen.insert(name.clone()) {
            let text = format!("cannot alter type of column \"{name}\" twice");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
        }
    }
    Ok(())
}

/// When an operation takes its turn among those of one statement, as PostgreSQL has it: what goes,
/// types, new columns, constraints on what is there by then.
fn pass(op: &Op) -> u8 {
    use ast::AlterColumnOperation as Column;
    match op {
        Op::DropColumn { .. }
        | Op::DropConstraint { .. }
        | Op::AlterColumn { op: Column::DropNotNull | Column::DropDefault, .. } => 0,
        Op::AlterColumn { op: Column::SetDataType { .. }, .. } => 1,
        Op::AddColumn { .. } => 2,
        Op::AlterColumn { op: Column::SetNotNull, .. } => 3,
        Op::AddConstraint { constraint, .. } => match constraint {
            ast::TableConstraint::ForeignKey(_) | ast::TableConstraint::Check(_) => 5,
            _ => 4,
        },
        Op::AlterColumn { op: Column::SetDefault { .. }, .. } => 5,
        _ => 6,
    }
}

/// SET SCHEMA, SET INTERLEAVE IN, DROP INTERLEAVE, SET ON DELETE, ALTER PRIMARY KEY: where a table
/// lies; SET OPTIONS and SET STATISTICS of a column.
pub(crate) fn place(
    c: &mut Change,
    name: &Name,
    if_exists: bool,
    op: &AlterOwn,
) -> SqlResult<String> {
    if if_exists && c.ctx.find_relation(name)?.is_none() {
        c.ctx.notice(format!("relation \"{}\" does not exist, skipping", name.join(".")));
        return Ok("ALTER TABLE".into());
    }
    if let Relation::Partition(window) = c.ctx.relation(name)? {
        partitions::place(c, &window, op)?;
        return Ok("ALTER TABLE".into());
    }
    if let AlterOwn::SetSchema(schema) = op
        && other_kinds::set_schema(c, name, schema)?
    {
        return Ok("ALTER TABLE".into());
    }
    let table = c.ctx.stored(name)?;
    if table.partitioning().is_some() && moves_rows(op) {
        return Err(SqlError::unsupported("interleaving a partitioned table").with_hint(
            "Its partitions and its place among families would be two answers to one \
                        question: how rows are kept together.",
        ));
    }
    if !matches!(op, AlterOwn::SetSchema(_) | AlterOwn::SetStatistics(..))
        && table.materialized().is_some()
    {
        return Err(materialized::cannot_be_done(&table, "ALTER TABLE"));
    }
    c.lock_chain(&table)?;
    match op {
        AlterOwn::SetOnDelete(action) => interleave::set_on_delete(c, &table, *action)?,
        AlterOwn::SetInterleave(clause) => interleave::set_interleave(c, &table, clause)?,
        AlterOwn::SetTtl(clause) => ttl::set(c, &table, clause.as_ref())?,
        AlterOwn::DropInterleave => moves::run(c, &table, Place::Alone)?,
        AlterOwn::PrimaryKey(columns, clause) => {
            moves::run(c, &table, Place::Key(columns, clause.as_ref()))?;
        }
        AlterOwn::SetSchema(schema) => schema::set_schema(c, &table, schema)?,
        AlterOwn::SetCommitTime(column, allow) => {
            commit_timestamp::set(c, &table, column, *allow)?;
        }
        AlterOwn::SetStatistics(column, target) => {
            alter_column::set_statistics(c, &table, column, *target)?;
        }
        AlterOwn::Identity(column, always, options) => {
            sequence::alter_identity(c, &table, column, *always, options)?;
        }
        AlterOwn::DropIdentity(column, if_exists) => {
            sequence::drop_identity(c, &table, column, *if_exists)?;
        }
        AlterOwn::DropExpression(column, if_exists) => {
            alter_column::drop_expression(c, &table, column, *if_exists)?;
        }
        AlterOwn::Constraint(name, characteristics) => {
            constraint::alter(c, &table, name, characteristics)?;
        }
    }
    Ok("ALTER TABLE".into())
}

/// Options that change nothing: what they name must be there.
pub(crate) fn storage(c: &mut Change, options: &StorageOptions) -> SqlResult<String> {
    let tag = if options.index { "ALTER INDEX" } else { "ALTER TABLE" }.to_string();
    let name = &options.name;
    let Some(found) = c.ctx.find_relation(name)? else {
        if options.if_exists {
            c.ctx.notice(format!("relation \"{}\" does not exist, skipping", name.join(".")));
            return Ok(tag);
        }
        return Err(crate::session::no_relation(name));
    };
    let table = match found {
        Relation::Index(..) => return Ok(tag),
        Relation::Table(t) | Relation::Partition(t) if !options.index => t,
        _ => {
            let what = if options.index { "an index" } else { "a table" };
            let text = format!("\"{}\" is not {what}", name.join("."));
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text));
        }
    };
    if let Some(column) = options.columns.iter().find(|name| table.column_named(name).is_none()) {
        return Err(alter_column::no_column(&table, column));
    }
    let known = |name: &&String| table.all_indexes().any(|i| i.name == **name);
    if let Some(index) = options.indexes.iter().find(|name| !known(name)) {
        let text = format!("index \"{index}\" for table \"{}\" does not exist", table.name);
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text));
    }
    for (column, target) in &options.statistics {
        let table = c.catalog.table(table.id).cloned().unwrap_or_else(|| table.clone());
        alter_column::set_statistics(c, &table, column, *target)?;
    }
    match &options.triggers {
        Some(Triggers::Named(name)) => {
            let text = format!("trigger \"{name}\" for table \"{}\" does not exist", table.name);
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text));
        }
        Some(Triggers::All(enabled)) => guard(c, table.id, *enabled)?,
        Some(Triggers::OfUsers) | None => {}
    }
    Ok(tag)
}

/// ENABLE and DISABLE TRIGGER ALL: whether foreign keys are asked when its rows are written. Rows
/// that come or go meanwhile are not looked at afterwards either, as in PostgreSQL.
fn guard(c: &mut Change, table: u32, enabled: bool) -> SqlResult<()> {
    let table = c.stored(table)?;
    if table.upkeep.unguarded == enabled {
        let upkeep = Upkeep { unguarded: !enabled, ..table.upkeep.clone() };
        c.put(Table { upkeep, ..(*table).clone() });
    }
    Ok(())
}

/// Whether rows get other keys, by what says where they lie.
fn moves_rows(op: &AlterOwn) -> bool {
    matches!(op, AlterOwn::SetInterleave(_) | AlterOwn::DropInterleave | AlterOwn::PrimaryKey(..))
}

fn operation(c: &mut Change, t: &Arc<Table>, op: &Op) -> SqlResult<()> {
    match op {
        Op::AddColumn { if_not_exists, column_def, .. } => {
            alter_column::add(c, t, column_def, *if_not_exists)
        }
        Op::DropColumn { column_names, if_exists, drop_behavior, .. } => {
            let cascade = matches!(drop_behavior, Some(ast::DropBehavior::Cascade));
            for n in column_names {
                let t = c.catalog.table(t.id).expect("still there").clone();
                alter_column::drop(c, &t, &ident_name(n), *if_exists, cascade)?;
            }
            Ok(())
        }
        Op::AlterColumn { column_name, op } => {
            alter_column::alter(c, t, &ident_name(column_name), op)
        }
        Op::RenameColumn { old_column_name, new_column_name } => {
            alter_column::rename(c, t, &ident_name(old_column_name), ident_name(new_column_name))
        }
        Op::AddConstraint { constraint: k, not_valid } => match k {
            ast::TableConstraint::PrimaryKey(p) => primary_key::add(c, t, p, None),
            ast::TableConstraint::UniqueUsingIndex(u) => index::promoted::unique(c, t, u),
            ast::TableConstraint::PrimaryKeyUsingIndex(u) => {
                let key = index::promoted::primary_key(c, t, u)?;
                let t = c.catalog.table(t.id).expect("still there").clone();
                primary_key::add(c, &t, &key, None)
            }
            k if *not_valid => constraint::add_unproven(c, &mut (**t).clone(), k),
            k => constraint::add(c, &mut (**t).clone(), k, None),
        },
        Op::DropConstraint { if_exists, name, drop_behavior } => {
            let cascade = matches!(drop_behavior, Some(ast::DropBehavior::Cascade));
            drop_constraint(c, t, &ident_name(name), *if_exists, cascade)
        }
        Op::RenameConstraint { old_name, new_name } => {
            rename_constraint(c, t, &ident_name(old_name), ident_name(new_name))
        }
        Op::RenameTable { table_name } => {
            let (ast::RenameTableNameKind::To(n) | ast::RenameTableNameKind::As(n)) = table_name;
            rename_table(c, t, parts(n).pop().unwrap_or_default())
        }
        Op::OwnerTo { new_owner } => super::access::roles::give_table(c, t, new_owner),
        // No replication, no triggers: nothing to change.
        Op::ReplicaIdentity { .. } | Op::ClusterBy { .. } => Ok(()),
        Op::ValidateConstraint { name } => constraint::validate(c, t, &ident_name(name)),
        other => {
            let text = other.to_string();
            let words: Vec<_> = text.split_whitespace().take(3).collect();
            Err(SqlError::unsupported(format!("ALTER TABLE .. {}", words.join(" "))))
        }
    }
}

pub(super) fn no_constraint(t: &Table, name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("constraint \"{name}\" of relation \"{}\" does not exist", t.name),
    )
}

fn drop_constraint(
    c: &mut Change,
    t: &Arc<Table>,
    name: &str,
    if_exists: bool,
    cascade: bool,
) -> SqlResult<()> {
    let mut new = (**t).clone();
    if let Some(at) = new.checks.iter().position(|k| k.name == name) {
        new.checks.remove(at);
        c.put(new);
        return Ok(());
    }
    if let Some(at) = new.foreign_keys.iter().position(|k| k.name == name) {
        let fk = new.foreign_keys.remove(at);
        c.ctx.lock_for_change(fk.parent)?;
        c.put(new);
        return Ok(());
    }
    if let Some(i) = new.indexes.iter().find(|i| i.name == name && i.constraint.is_some()) {
        return drop::remove_index(c, t, i.id, cascade);
    }
    if new.primary.name == name && new.primary.constraint == Some(IndexConstraint::Primary) {
        return primary_key::drop(c, t, cascade);
    }
    if if_exists {
        c.ctx.notice(format!(
            "constraint \"{name}\" of relation \"{}\" does not exist, skipping",
            t.name
        ));
        return Ok(());
    }
    Err(no_constraint(t, name))
}

fn rename_constraint(c: &mut Change, t: &Arc<Table>, old: &str, new: String) -> SqlResult<()> {
    let mut table = (**t).clone();
    if let Some(i) = t.all_indexes().find(|i| i.name == old && i.constraint.is_some()) {
        return index::rename(c, t, i.id, new);
    }
    if let Some(k) = table.checks.iter_mut().find(|k| k.name == old) {
        k.name = new;
    } else if let Some(k) = table.foreign_keys.iter_mut().find(|k| k.name == old) {
        k.name = new;
    } else {
        return Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("constraint \"{old}\" for table \"{}\" does not exist", t.name),
        ));
    }
    c.put(table);
    Ok(())
}

pub(super) fn rename_table(c: &mut Change, t: &Arc<Table>, new: String) -> SqlResult<()> {
    if c.taken(t.schema, &new) {
        return Err(exists(&new));
    }
    if !rename_in_views(c, (t.id, t.schema, &t.name), &new)? {
        return refuse_if_viewed(c, t, "rename table");
    }
    named_relations::follow_renamed(c, (t.id, t.schema), &new)?;
    let mut table = (*c.stored(t.id)?).clone();
    table.name = new;
    c.put(table);
    Ok(())
}

/// ALTER VIEW .. RENAME TO.
pub(super) fn rename_view(c: &mut Change, view: &Arc<View>, new: &str) -> SqlResult<()> {
    if c.taken(view.schema, new) {
        return Err(exists(new));
    }
    c.ctx.lock_for_change(view.id)?;
    if !rename_in_views(c, (view.id, view.schema, &view.name), new)? {
        let text = format!("cannot rename view {} because other objects depend on it", view.name);
        return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, text)
            .with_hint("Drop the views that show it, and create them again."));
    }
    named_relations::follow_renamed(c, (view.id, view.schema), new)?;
    let now = c.catalog.view(view.id).unwrap_or(view).clone();
    c.catalog.put_view(View { name: new.to_string(), ..(*now).clone() });
    Ok(())
}

/// Views go on to show a relation that gets another name; `false` if they cannot.
fn rename_in_views(
    c: &mut Change,
    (id, schema, old): (u32, u32, &str),
    new: &str,
) -> SqlResult<bool> {
    let schema = c.ctx.schema_name(schema);
    let using: Vec<(u32, Definition)> = c
        .catalog
        .definitions()
        .filter(|(_, definition)| definition.depends_on.contains(&id))
        .map(|(view, definition)| (view, definition.clone()))
        .collect();
    for (view, mut definition) in using {
        // Two relations of one name: the text alone does not tell which one is meant.
        let named = |id: &&u32| c.catalog.qualified_name(**id).is_some_and(|(_, name)| name == old);
        let alike = definition.depends_on.iter().filter(named).count();
        let query = uses::with_table_renamed(&definition, &schema, old, new)?;
        let Some(query) = query.filter(|_| alike == 1) else {
            return Ok(false);
        };
        definition.query = query;
        c.ctx.lock_for_change(view)?;
        put_definition(c, view, definition);
    }
    Ok(true)
}

/// Gives a view of either kind another text for the same query.
pub(super) fn put_definition(c: &mut Change, view: u32, definition: Definition) {
    match c.catalog.relation_by_id(view) {
        Some(Relation::View(old)) => c.catalog.put_view(View { definition, ..(*old).clone() }),
        Some(Relation::Table(kept)) => {
            let mut table = (*kept).clone();
            if let Some(materialized) = table.upkeep.materialized.as_mut() {
                materialized.definition = definition;
            }
            c.put(table);
        }
        _ => {}
    }
}

/// Views keep their query as text, so names that they use must stay.
pub(super) fn refuse_if_viewed(c: &Change, t: &Table, what: &str) -> SqlResult<()> {
    refuse_if_used(c, (t.id, &t.name), what, |_| true)
}

/// The same of a column.
pub(super) fn refuse_if_column_viewed(
    c: &Change,
    t: &Table,
    column: &str,
    what: &str,
) -> SqlResult<()> {
    refuse_if_used(c, (t.id, &t.name), what, |definition| {
        uses::may_use_column(definition, &t.name, column)
    })
}

/// A view that uses a column.
pub(super) fn viewer_of_column(c: &Change, t: &Table, column: &str) -> Option<Relation> {
    user(c, t.id, |definition| uses::may_use_column(definition, &t.name, column))
}

fn user(c: &Change, of: u32, uses: impl Fn(&Definition) -> bool) -> Option<Relation> {
    let mut definitions = c.catalog.definitions();
    let by = definitions.find(|(_, used)| used.depends_on.contains(&of) && uses(used));
    by.and_then(|(view, _)| c.catalog.relation_by_id(view))
}

/// The same of any relation, in what a view must use for it.
pub(super) fn refuse_if_used(
    c: &Change,
    (id, name): (u32, &str),
    what: &str,
    uses: impl Fn(&Definition) -> bool,
) -> SqlResult<()> {
    match user(c, id, uses) {
        None => Ok(()),
        Some(view) => Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("cannot {what} \"{name}\" because {} depends on it", drop::called(c, &view)),
        )
        .with_hint("Drop the view and create it again afterwards.")),
    }
}
