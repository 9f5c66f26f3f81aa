//! DETACH: a partition becomes a table. Its rows move out of the table that holds all rows.

use std::sync::Arc;

use braid_catalog::{Index, OfPartition, Partition, PartitionIndex, Partitioning, Relation, Table};
use braid_parser::Name;
use braid_types::{SqlError, SqlResult, SqlState};

use super::declare::some_row;
use super::rows::{delete_rows, move_rows};
use super::{Divided, redivide};
use crate::ddl::{Change, backfill, create_table, drop};
use crate::partitions::condition_of;

pub(super) fn detach(c: &mut Change, name: &Name, partition: &Name) -> SqlResult<()> {
    let parent = Divided::of_alter_table(c, name)?;
    let found = c.ctx.relation(partition)?;
    let window = match &found {
        Relation::Partition(w) if w.window().is_some_and(|p| p.parent == parent.id) => w.clone(),
        _ => {
            let bare = partition.last().map_or("", String::as_str);
            return Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{bare}\" is not a partition of relation \"{}\"", parent.name),
            ));
        }
    };
    let own = window.window().cloned().ok_or_else(|| SqlError::internal("no partition"))?;
    c.lock_chain(&parent.table)?;
    // Nobody knows it as a table yet. Its rows are written under a lock all the same, as others'
    // are: without one it would be looked whether it is the one that all see.
    c.ctx.lock_for_change(own.id)?;
    let old = backfill::layout(c, parent.table.id)?;
    backfill::renew_view(c, &old)?;
    if c.catalog.referencing_tables(parent.table.id).next().is_some()
        && some_row(c, &window, "true")?
    {
        return Err(SqlError::unsupported("detaching rows of a table that foreign keys refer to")
            .with_hint("Delete the rows first, or drop the foreign keys."));
    }
    let condition = condition_of(&parent.table, own.id)?;
    let table = as_table(c, &window, &own)?;
    remove_from(c, &parent, &own)?;
    let table = c.put(table);
    move_rows(c, &old, &table, Some(&condition))?;
    delete_rows(c, &old, &condition)
}

/// Removes a partition with those of it, and their own indexes.
pub(super) fn remove_from(c: &mut Change, parent: &Divided, own: &Partition) -> SqlResult<()> {
    let divided = parent.partitioning()?;
    let gone: Vec<u32> = divided.downwards(own.id).iter().map(|p| p.id).collect();
    let is_gone = |of: &OfPartition| gone.contains(&of.partition);
    let indexes = parent.table.indexes.iter();
    let alone = indexes.filter(|i| i.of_partition.as_ref().is_some_and(is_gone));
    for i in alone.map(|i| i.id).collect::<Vec<_>>() {
        let table = c.stored(parent.table.id)?;
        drop::remove_index(c, &table, i, false)?;
    }
    redivide(c, parent.table.id, |divided| divided.partitions.retain(|p| !gone.contains(&p.id)))?;
    Ok(())
}

/// A partition as the table that it becomes: without rows, and with the columns, constraints and
/// indexes that it has.
fn as_table(c: &Change, window: &Table, own: &Partition) -> SqlResult<Table> {
    let mut table = create_table::empty(c, own.schema, own.name.clone())?;
    let spare = table.primary.id;
    table.id = own.id;
    table.generation = c.new_generation()?;
    table.columns = window.columns.clone();
    table.next_column = window.next_column;
    table.primary = Index { generation: 1, ..window.primary.clone() };
    table.primary.id =
        own.indexes.iter().find(|i| i.of == window.primary.id).map_or(spare, |i| i.id);
    table.checks = window.checks.clone();
    for fk in &window.foreign_keys {
        table.foreign_keys.push(braid_catalog::ForeignKey { id: c.new_id()?, ..fk.clone() });
    }
    for i in &window.indexes {
        let alias = own.indexes.iter().find(|o| o.of == i.id);
        let alone = i.of_partition.as_ref().filter(|of| of.partition == own.id);
        let id = match (alias, alone) {
            (Some(alias), _) => alias.id,
            (None, Some(_)) => i.id,
            (None, None) => continue,
        };
        let predicate = match &i.of_partition {
            Some(of) => of.predicate.clone(),
            None => i.predicate.clone(),
        };
        table.indexes.push(Index {
            id,
            generation: c.new_generation()?,
            predicate,
            of_partition: None,
            interleave_in: None,
            ..i.clone()
        });
    }
    table.forget_expressions();
    let divided = window.partitioning();
    table.upkeep.partitioning = own.key.as_ref().map(|key| {
        let inside = divided.map(|d| d.downwards(own.id)).unwrap_or_default();
        let partitions = inside.into_iter().filter(|p| p.id != own.id).map(|p| {
            let mut p = p.clone();
            // They are names of the new table's indexes now.
            p.indexes = renamed(&p.indexes, own);
            p
        });
        Arc::new(Partitioning { key: key.clone(), partitions: partitions.collect() })
    });
    Ok(table)
}

fn renamed(indexes: &[PartitionIndex], own: &Partition) -> Vec<PartitionIndex> {
    let of = |i: &PartitionIndex| Some(own.indexes.iter().find(|o| o.of == i.of)?.id);
    indexes.iter().filter_map(|i| Some(PartitionIndex { of: of(i)?, ..i.clone() })).collect()
}
