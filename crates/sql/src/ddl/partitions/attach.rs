//! ATTACH: a table becomes a partition. Its rows move into the table that holds all rows.

use std::sync::Arc;

use braid_catalog::{Index, KeyPart, Partition, PartitionBound, PartitionKey, Relation, Table};
use braid_parser::{ForValues, Name};
use braid_types::{SqlError, SqlResult, SqlState};

use super::declare::{check_default, parent_key, same_lifetime, some_row};
use super::rows::move_rows;
use super::{Divided, bounds, indexes, redivide};
use crate::ddl::{Change, backfill, drop};
use crate::partitions::condition_of;

pub(super) fn attach(
    c: &mut Change,
    name: &Name,
    partition: &Name,
    bound: &ForValues,
) -> SqlResult<()> {
    let parent = Divided::of_alter_table(c, name)?;
    let joining = match c.ctx.relation(partition)? {
        Relation::Table(t) if t.materialized().is_none() => t,
        Relation::Partition(w) => {
            let text = format!("\"{}\" is already a partition", w.name);
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text));
        }
        _ => {
            let bare = partition.last().map_or("", String::as_str);
            let text = format!("\"{bare}\" is not a table");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text));
        }
    };
    if joining.id == parent.table.id {
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, "circular inheritance not allowed")
            .with_detail(format!("\"{0}\" is already a child of \"{0}\".", joining.name)));
    }
    same_lifetime(c, joining.schema, &parent.table)?;
    c.lock_chain(&parent.table)?;
    c.lock_chain(&joining)?;
    check_alone(c, &joining)?;
    check_columns(&parent.table, &joining)?;
    let bound = bounds::declare(c, &parent_key(&parent)?, bound)?;
    let divided = parent.partitioning()?;
    bounds::check_new(&parent.table, divided, parent.id, (&joining.name, &bound))?;
    let parts = joining_parts(&parent, &joining, bound)?;
    check_rows(c, &parent, &joining, &parts)?;
    take_rows(c, &parent, &joining, parts)
}

/// What is interleaved, referred to or kept by a policy is more than a partition can be.
fn check_alone(c: &Change, t: &Table) -> SqlResult<()> {
    let interleaved =
        t.interleave.is_some() || c.catalog.interleaved_children(t.id).next().is_some();
    if interleaved {
        return Err(SqlError::unsupported("partitions with interleaved tables")
            .with_hint("Use ALTER TABLE .. DROP INTERLEAVE first."));
    }
    if t.upkeep.ttl.is_some() {
        return Err(SqlError::unsupported("a row deletion policy of a partition alone")
            .with_hint("Give the partitioned table the policy."));
    }
    if let Some(r) = c.catalog.referencing_tables(t.id).next() {
        return Err(SqlError::unsupported("attaching a table that foreign keys refer to")
            .with_hint(format!("Drop the foreign key of table \"{}\" first.", r.name)));
    }
    Ok(())
}

/// 42804.
fn mismatch(text: String) -> SqlError {
    SqlError::new(SqlState::DATATYPE_MISMATCH, text)
}

/// That a table has the columns and constraints of the one that it becomes a part of.
fn check_columns(table: &Table, joining: &Table) -> SqlResult<()> {
    for col in joining.visible_columns() {
        if table.column_named(&col.name).is_none() {
            return Err(mismatch(format!(
                "table \"{}\" contains column \"{}\" not found in parent \"{}\"",
                joining.name, col.name, table.name
            ))
            .with_detail("The new partition may contain only the columns present in parent."));
        }
    }
    for col in table.visible_columns() {
        let Some(own) = joining.column_named(&col.name) else {
            return Err(mismatch(format!("child table is missing column \"{}\"", col.name)));
        };
        if own.ty != col.ty || own.refinement != col.refinement {
            return Err(mismatch(format!(
                "child table \"{}\" has different type for column \"{}\"",
                joining.name, col.name
            )));
        }
        if own.nullable && !col.nullable {
            return Err(mismatch(format!(
                "column \"{}\" in child table must be marked NOT NULL",
                col.name
            )));
        }
        if own.generated.is_some() != col.generated.is_some() {
            let not = if own.generated.is_some() { "not " } else { "" };
            return Err(mismatch(format!(
                "column \"{}\" in child table must {not}be a generated column",
                col.name
            )));
        }
    }
    let names = |t: &Table| t.visible_columns().map(|c| c.name.clone()).collect::<Vec<_>>();
    if names(table) != names(joining) {
        return Err(SqlError::unsupported("a partition with its columns in another order")
            .with_hint(format!(
                "The order is: {}. CREATE TABLE .. PARTITION OF makes it so; then copy the rows.",
                names(table).join(", ")
            )));
    }
    for check in &table.checks {
        match joining.checks.iter().find(|k| k.name == check.name) {
            None => {
                let text = format!("child table is missing constraint \"{}\"", check.name);
                return Err(mismatch(text));
            }
            Some(own) if own.not_valid && !check.not_valid => {
                let text = format!(
                    "constraint \"{}\" conflicts with NOT VALID constraint on child table \"{}\"",
                    check.name, joining.name
                );
                return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text));
            }
            Some(own) if own.expr != check.expr => {
                return Err(mismatch(format!(
                    "child table \"{}\" has different definition for check constraint \"{}\"",
                    joining.name, check.name
                )));
            }
            Some(_) => {}
        }
    }
    check_references(table, joining)
}

/// Foreign keys are those of the whole table.
fn check_references(table: &Table, joining: &Table) -> SqlResult<()> {
    let names = |t: &Table, columns: &[u32]| {
        columns.iter().map(|c| t.key_name(*c).to_string()).collect::<Vec<_>>()
    };
    for own in &joining.foreign_keys {
        let same = |fk: &&braid_catalog::ForeignKey| {
            fk.parent == own.parent
                && fk.parent_columns == own.parent_columns
                && names(table, &fk.columns) == names(joining, &own.columns)
                && (fk.on_delete, fk.on_update) == (own.on_delete, own.on_update)
                && names(table, &fk.set_on_delete) == names(joining, &own.set_on_delete)
                && (fk.not_valid || !own.not_valid)
        };
        if !table.foreign_keys.iter().any(|fk| same(&fk)) {
            return Err(SqlError::unsupported("a foreign key of a partition alone").with_hint(
                format!(
                    "Give table \"{}\" the foreign key, or drop \"{}\" first.",
                    table.name, own.name
                ),
            ));
        }
    }
    Ok(())
}

/// A table as a partition, and its partitions as those of one.
fn joining_parts(
    parent: &Divided,
    joining: &Table,
    bound: PartitionBound,
) -> SqlResult<Vec<Partition>> {
    let table = &parent.table;
    let renamed = |key: &PartitionKey| PartitionKey {
        strategy: key.strategy,
        parts: key.parts.iter().map(|part| moved_part(joining, table, part)).collect(),
    };
    let defaults = joining.visible_columns().filter_map(|own| {
        let col = table.column_named(&own.name)?;
        let differs = own.default != col.default || own.sequence.is_some();
        (differs && own.generated.is_none()).then(|| (col.id, own.default.clone()))
    });
    let divided = joining.partitioning();
    let first = Partition {
        id: joining.id,
        schema: joining.schema,
        name: joining.name.clone(),
        parent: parent.id,
        bound,
        key: divided.map(|d| renamed(&d.key)),
        defaults: defaults.collect(),
        checks: joining
            .checks
            .iter()
            .filter(|k| !table.checks.iter().any(|own| own.name == k.name))
            .cloned()
            .collect(),
        indexes: Vec::new(),
    };
    let mut out = vec![first];
    for p in divided.into_iter().flat_map(|d| &d.partitions) {
        let key = p.key.as_ref().map(renamed);
        let defaults = p.defaults.iter().filter_map(|(id, default)| {
            let name = &joining.column(*id)?.name;
            Some((table.column_named(name)?.id, default.clone()))
        });
        out.push(Partition { key, defaults: defaults.collect(), ..p.clone() });
    }
    indexes::check_covers(&with_parts(table, &out))?;
    Ok(out)
}

/// A table with these partitions more.
fn with_parts(table: &Table, parts: &[Partition]) -> Table {
    let mut with = table.clone();
    if let Some(divided) = with.partitioning_mut() {
        divided.partitions.extend(parts.iter().cloned());
    }
    with
}

fn moved_part(from: &Table, to: &Table, part: &KeyPart) -> KeyPart {
    match part {
        KeyPart::Column(id) => {
            let column = from.column(*id).and_then(|c| to.column_named(&c.name));
            KeyPart::Column(column.map_or(0, |c| c.id))
        }
        KeyPart::Expression(text) => KeyPart::Expression(text.clone()),
    }
}

/// That the rows are within the bound, and that the default partition has none of it.
fn check_rows(c: &Change, parent: &Divided, joining: &Table, parts: &[Partition]) -> SqlResult<()> {
    let condition = condition_of(&with_parts(&parent.table, parts), joining.id)?;
    if some_row(c, joining, &format!("({condition}) IS NOT TRUE"))? {
        return Err(SqlError::new(
            SqlState::CHECK_VIOLATION,
            format!(
                "partition constraint of relation \"{}\" is violated by some row",
                joining.name
            ),
        ));
    }
    check_default(c, parent, &parent.table, &condition)
}

/// The table goes, the partition comes, and the rows move.
fn take_rows(
    c: &mut Change,
    parent: &Divided,
    joining: &Arc<Table>,
    parts: Vec<Partition>,
) -> SqlResult<()> {
    let old = backfill::layout(c, joining.id)?;
    let comment = joining.comment.clone();
    let columns: Vec<(u32, String)> = joining
        .columns
        .iter()
        .filter_map(|own| {
            let column = parent.table.column_named(&own.name)?;
            Some((column.id, own.comment.clone()?))
        })
        .collect();
    let mut wanted = Vec::new();
    for i in joining.shown_indexes() {
        let (mut index, expressions) = as_of_table(&parent.table, joining, i);
        index.generation = c.new_generation()?;
        wanted.push((index, expressions));
    }
    // The name is still the table's, whose rows go with it.
    move_rows(c, &old, &Arc::new(with_parts(&parent.table, &parts)), None)?;
    // Sequences that defaults name stay, and are nobody's.
    let mut stripped = (**joining).clone();
    stripped.columns.iter_mut().for_each(|col| col.sequence = None);
    for mut s in crate::ddl::truncate::owned_sequences(&c.catalog, joining) {
        s.owned_by = None;
        c.catalog.put_sequence(s);
    }
    drop::remove_table(c, &Arc::new(stripped))?;
    c.sync();
    redivide(c, parent.table.id, |divided| divided.partitions.extend(parts))?;
    if let Some(text) = comment {
        c.catalog.note(joining.id, |notes| notes.comment = Some(text));
    }
    for (id, text) in columns {
        c.catalog.note(joining.id, |notes| {
            notes.column_comments.insert(id, text);
        });
    }
    c.sync();
    for (index, expressions) in wanted {
        let window = c.catalog.partition(joining.id).cloned();
        let window = window.ok_or_else(|| SqlError::internal("a partition is gone"))?;
        let mut with = (*window).clone();
        with.adopt(&renumbered(&with, &expressions));
        indexes::add(c, &with, matched(&with, index, &expressions))?;
    }
    Ok(())
}

/// An index as one of another table with the same columns, and the expressions that it has.
fn as_of_table(to: &Table, from: &Table, i: &Index) -> (Index, Vec<braid_catalog::Column>) {
    let mut expressions = Vec::new();
    let mut column = |id: u32| {
        let own = from.column(id)?;
        if own.expression.is_some() {
            expressions.push(own.clone());
            return Some(id);
        }
        to.column_named(&own.name).map(|c| c.id)
    };
    let mut index = i.clone();
    for k in &mut index.columns {
        k.column = column(k.column).unwrap_or(k.column);
    }
    for id in &mut index.include {
        *id = column(*id).unwrap_or(*id);
    }
    if i.id == from.primary.id {
        index.unique = true;
    }
    (index, expressions)
}

/// Expressions as columns to come of a table.
fn renumbered(t: &Table, expressions: &[braid_catalog::Column]) -> Vec<braid_catalog::Column> {
    let number = |(n, c): (usize, &braid_catalog::Column)| {
        let id = t.next_column + n as u32;
        braid_catalog::Column { id, name: format!("\0{id}"), ..c.clone() }
    };
    expressions.iter().enumerate().map(number).collect()
}

/// An index over the columns that its expressions have become.
fn matched(t: &Table, mut index: Index, expressions: &[braid_catalog::Column]) -> Index {
    let first = t.next_column - expressions.len() as u32;
    for k in &mut index.columns {
        if let Some(n) = expressions.iter().position(|c| c.id == k.column) {
            k.column = first + n as u32;
        }
    }
    index
}
